//! `checks/segment.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/segment.rs"]
mod segment;

libfuzzer_sys::fuzz_target!(|packet: &[u8]| segment::check(packet));
