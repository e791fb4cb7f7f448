//! Time of the BPF program that mirrors packets, for one packet of a mobile that answers, in
//! nanoseconds: as root, `cargo bench -p airtcp-linux --bench mirror`.
//!
//! The kernel runs the program many times with the same packet (`BPF_PROG_TEST_RUN`). The result is
//! the shortest of many averages. An empty program takes some 25 ns that way.

use libbpf_rs::{MapCore, MapFlags, MapImpl, Object, ObjectBuilder, ProgramInput};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mirror.bpf.o"));
/// Runs of one average, and averages.
const RUNS: u32 = 3000;
const AVERAGES: u32 = 200;
const MOBILE: [u8; 4] = [10, 99, 2, 2];
const SERVER: [u8; 4] = [10, 99, 1, 2];
/// An address of no group.
const OTHER: [u8; 4] = [10, 99, 3, 2];
/// Offset of `presence` in `struct cached_mobile`.
const PRESENCE: usize = 64;

fn main() {
    let Ok(object) = load() else {
        return println!("mirror: not measured (needs root and Linux 6.4)");
    };
    let data = segment(SERVER, MOBILE, 1448);
    let answer = segment(MOBILE, SERVER, 0);
    run(&object, &answer, 1);
    let place = place_of_mobile(&object);
    let nothing = || {};
    let waiting = |since| {
        let (object, place) = (&object, &place);
        move || set_presence(object, place, since)
    };
    let show = |what, packet: &[u8], prepare: &dyn Fn()| {
        let average = |_| {
            prepare();
            run(&object, packet, RUNS)
        };
        let shortest = (0..AVERAGES).map(average).min().unwrap_or(Duration::ZERO);
        println!("{what:<40}{:>4} ns", shortest.as_nanos());
    };
    show("between hosts that are no mobiles", &segment(SERVER, OTHER, 1448), &nothing);
    show("to a mobile whose answer is due", &data, &waiting(0));
    show("to a mobile, the first after an answer", &data, &waiting(6_000_000));
    show("an answer", &answer, &waiting(0));
}

fn load() -> libbpf_rs::Result<Object> {
    let object = ObjectBuilder::default().open_memory(OBJECT)?.load()?;
    let tick = 4_000_000;
    let settings = [1, 0, 0, u64::from(u32::MAX), 7, 0, tick, 0].map(u64::to_ne_bytes).concat();
    let prefix = [&120u32.to_ne_bytes()[..], &mapped([10, 99, 2, 0])].concat();
    let to_silent_mobile = [2u32, 0].map(u32::to_ne_bytes).concat();
    set(&object, "settings", &[0; 4], &settings);
    set(&object, "generation", &[0; 4], &1u64.to_ne_bytes());
    set(&object, "mobiles", &prefix, &to_silent_mobile);
    Ok(object)
}

/// Key and value of the mobile in `mobile_cache`.
fn place_of_mobile(object: &Object) -> (Vec<u8>, Vec<u8>) {
    let cache = map(object, "mobile_cache");
    let place = |key: Vec<u8>| {
        let value = cache.lookup(&key, MapFlags::ANY).ok()??;
        value.starts_with(&mapped(MOBILE)).then_some((key, value))
    };
    cache.keys().find_map(place).expect("it was seen")
}

/// Sets the mobile's presence: sent something `since` nanoseconds ago, response time one second.
fn set_presence(object: &Object, (key, value): &(Vec<u8>, Vec<u8>), since: u64) {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock");
    let now = Duration::from(now).as_nanos() as u64;
    let second = 1_000_000_000;
    let presence = [now - since, now, second, second, 0, 0].map(u64::to_ne_bytes).concat();
    set(object, "mobile_cache", key, &[&value[..PRESENCE], &presence].concat());
}

fn run(object: &Object, packet: &[u8], repeat: u32) -> Duration {
    let program = object.progs_mut().find(|program| program.name() == "mirror_forwarded");
    let input = ProgramInput { data_in: Some(packet), repeat, ..Default::default() };
    program.expect("the object has it").test_run(input).expect("a run").duration
}

fn map<'a>(object: &'a Object, name: &str) -> MapImpl<'a> {
    object.maps().find(|map| map.name() == name).expect("the object has it")
}

fn set(object: &Object, name: &str, key: &[u8], value: &[u8]) {
    map(object, name).update(key, value, MapFlags::ANY).expect("there is a place");
}

fn mapped(ip: [u8; 4]) -> [u8; 16] {
    std::net::Ipv4Addr::from(ip).to_ipv6_mapped().octets()
}

/// An IPv4 packet with a TCP segment; checksums are 0.
fn segment(from: [u8; 4], to: [u8; 4], payload: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((52 + payload).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    packet.extend([from, to].concat());
    packet.extend([0x13, 0x88, 0x14, 0x51, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 0xff, 0xff]);
    packet.resize(52 + usize::from(payload), 0);
    packet
}
