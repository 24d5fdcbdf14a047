//! The body of `POST /v1/webhooks/stripe`: whatever the bytes, facts or an explanation, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| holdfast_server::fuzzing::stripe_event(bytes));
