//! `checks/recording.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/recording.rs"]
mod recording;

libfuzzer_sys::fuzz_target!(|input: &[u8]| recording::check(input));
