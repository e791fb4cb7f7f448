//! `checks/control.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/control.rs"]
mod control;

libfuzzer_sys::fuzz_target!(|line: &[u8]| control::check(line));
