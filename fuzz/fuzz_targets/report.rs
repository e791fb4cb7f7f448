//! `checks/report.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/report.rs"]
mod report;

libfuzzer_sys::fuzz_target!(|input: &[u8]| report::check(input));
