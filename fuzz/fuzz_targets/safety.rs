//! Every mechanism among real endpoints, with a forger, a crash and reordering in each run: the
//! worlds of its property tests, made of bytes.
#![no_main]

#[path = "../../crates/edge/tests/safety/case.rs"]
mod case;
#[path = "../../crates/edge/tests/safety/hostile.rs"]
mod hostile;
#[path = "../../crates/edge/tests/safety/observer.rs"]
mod observer;
#[path = "../../crates/edge/tests/safety/subjects.rs"]
mod subjects;
#[path = "../../crates/edge/tests/safety/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|input: &[u8]| hostile::check(input));
