//! `checks/ledger.rs` on what libFuzzer makes.
#![no_main]

#[path = "../checks/ledger.rs"]
mod ledger;

libfuzzer_sys::fuzz_target!(|input: &[u8]| ledger::check(input));
