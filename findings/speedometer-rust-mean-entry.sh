#!/bin/sh
# The Rust crate speedometer 0.2.2 "measures throughput per second" of what is entered in a window of time, by its
# documentation in bytes per second. It divides the bytes in the window by the number of entries (measure in lib.rs), so
# what it tells is the mean size of a packet, whatever the rate and the window. What has left the window is taken off
# the sum, but where nothing is left in it the entries stay, and the next call takes them off again: after a stall
# longer than the window the sum falls below zero, and in a release build wraps around at 2^64. (A debug build
# panics.) No error is returned. The package of npm that it was ported from divides by time.
#
# Seen, packets of 1250 bytes, window of 1 s: 10 a second, 1250 bytes per second, right is 12500; 100 a second, 1250,
# right is 125000. After a stall of 1.5 s the first call tells 0, the second 1.8e17 (a hundred entries).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[dependencies]
speedometer = "=0.2.2"

[workspace]
END
cat >src/main.rs <<'END'
use std::thread::sleep;
use std::time::Duration;

use speedometer::Speedometer;

const PACKET: usize = 1250;

/// Bytes per second, as told at the end of two seconds with so many packets a second.
fn steady(packets: u32) -> usize {
    let mut meter = Speedometer::new(Duration::from_secs(1));
    let mut told = 0;
    for _ in 0..2 * packets {
        sleep(Duration::from_secs(1) / packets);
        meter.entry(PACKET);
        told = meter.measure().unwrap();
    }
    told
}

fn main() {
    let told = [steady(10), steady(100)];
    println!("10 packets a second: {} bytes per second; 100 a second: {}", told[0], told[1]);
    let mut meter = Speedometer::new(Duration::from_secs(1));
    for _ in 0..100 {
        meter.entry(PACKET);
    }
    meter.measure().unwrap();
    sleep(Duration::from_millis(1500));
    let stalled = [meter.measure().unwrap(), meter.measure().unwrap()];
    println!("after a stall: {}, then {:.1e}", stalled[0], stalled[1] as f64);
    let same = told == [PACKET, PACKET] && stalled[0] == 0 && stalled[1] > 1 << 57;
    std::process::exit(!same as i32);
}
END
cargo run --quiet --release
