//! The body of `PUT /v1/sales/{sale}`: whatever the bytes, a sale that the store keeps as it is, or an explanation.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| holdfast_server::fuzzing::sale(bytes));
