#!/bin/sh
# neteq 0.9.1 (crates.io), a jitter buffer after WebRTC's NetEQ, measures how much later a packet came than the one
# before it, and takes the 97th percentile of that for the relative arrival delay (delay_manager.rs). WebRTC adds these
# up, for as long as the sum is above zero (relative_arrival_delay_tracker.cc): only the sum is how late a packet is. So
# a queue that fills up, with each packet 5 ms later than the last, is told as 5 ms whatever it grows to. After a stall
# only the first packet has a long gap, the others come at once, late too; one stall in 34 packets or more is beyond the
# percentile, and told as nothing. The buffer's target is drawn from these numbers, so it is too short for both, and the
# late packets are concealed. Its documentation says which percentile, not that it is not the delay. Delays of single
# packets are right if there are enough of them.
#
# Seen, packets of 20 ms in 2 s: delay up to 200 ms by 5 ms a packet 5 ms; a stall of 200 ms 0 ms; every tenth packet
# 100 ms late 100 ms. Right is 200, 200 and 100.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.0.0"
edition = "2021"

[dependencies]
neteq = { version = "=0.9.1", default-features = false }

[profile.dev]
debug = false

[workspace]
END
mkdir src
cat >src/main.rs <<'END'
use neteq::delay_manager::{DelayConfig, RelativeArrivalDelayTracker};
use std::time::{Duration, Instant};

const SAMPLE_RATE: u32 = 48_000;
const PACKET_MS: u64 = 20;
const PACKETS: u64 = 100; // the 2 s that the tracker looks back

/// What the tracker says after the last packet, and how late the latest came, in ms.
fn told(delay_ms: impl Fn(u64) -> u64) -> (i32, u64) {
    let mut tracker = RelativeArrivalDelayTracker::new(DelayConfig::default());
    let (start, mut told, mut latest) = (Instant::now(), 0, 0);
    for packet in 0..PACKETS {
        let timestamp = (packet * PACKET_MS) as u32 * (SAMPLE_RATE / 1000);
        let arrival = start + Duration::from_millis(packet * PACKET_MS + delay_ms(packet));
        told = tracker.update(timestamp, SAMPLE_RATE, arrival);
        latest = latest.max(delay_ms(packet));
    }
    (told, latest)
}

fn main() {
    let filling = told(|packet| 5 * packet.saturating_sub(50).min(40));
    let stall = told(|packet| match packet {
        60..=69 => 200 - (packet - 60) * PACKET_MS, // all come at the end of the stall
        _ => 0,
    });
    let single = told(|packet| if packet % 10 == 5 { 100 } else { 0 });
    for (name, (told, right)) in [("queue fills", filling), ("stall", stall), ("single packets", single)] {
        println!("{name}: {told} ms, right {right} ms");
    }
    std::process::exit(i32::from((filling.0, stall.0, single.0) != (5, 0, 100)));
}
END
cargo run --quiet
