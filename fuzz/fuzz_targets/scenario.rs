//! `checks/scenario.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/scenario.rs"]
mod scenario;

libfuzzer_sys::fuzz_target!(|text: &[u8]| scenario::check(text));
