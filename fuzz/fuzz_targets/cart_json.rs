//! The body of `POST /v1/holds`: whatever the bytes, a cart or an explanation, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| holdfast_server::fuzzing::cart(bytes));
