//! `checks/gateway_config.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/gateway_config.rs"]
mod gateway_config;

libfuzzer_sys::fuzz_target!(|text: &[u8]| gateway_config::check(text));
