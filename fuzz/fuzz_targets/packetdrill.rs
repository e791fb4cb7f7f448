//! `checks/packetdrill.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/packetdrill.rs"]
mod packetdrill;

libfuzzer_sys::fuzz_target!(|text: &[u8]| packetdrill::check(text));
