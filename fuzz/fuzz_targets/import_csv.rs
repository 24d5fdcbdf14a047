//! The body of `POST /v1/stock/import`: whatever the bytes, a report line by line, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| holdfast_server::fuzzing::csv(bytes));
