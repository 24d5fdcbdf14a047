//! A signature and a body: whatever the bytes, nobody but us can sign, and never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| holdfast_server::fuzzing::signatures(bytes));
