//! `checks/live_packet.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/live_packet.rs"]
mod live_packet;

libfuzzer_sys::fuzz_target!(|input: &[u8]| live_packet::check(input));
