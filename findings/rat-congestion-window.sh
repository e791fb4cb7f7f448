#!/bin/sh
# The Rust crate rat_congestion 0.1.0, CUBIC and BBR for whoever writes a protocol, mixes packets with bytes. Its
# windows, and what can_send compares them with, are in bytes by its documentation. Both begin at 10, which is in
# packets by the comment on INITIAL_CWND. So a single packet fills the window. CUBIC has no slow start and adds 0.4 t^3
# to it, in bytes too, where RFC 9438, 5, has segments: for 15 s one packet goes out in each round trip, then two. BBR
# takes the size of one packet over its round trip for the bandwidth of the path, however many are under way
# (on_congestion_event in algorithms.rs). Twice that is the most that its window becomes: two packets. Nothing is said.
# By RFC 6928 a window begins at ten segments, and at first it doubles in each round trip, by RFC 9438, 4.10, and in
# BBR's Startup (Cardwell and others, Communications of the ACM 60, 2017).
#
# Seen, packets of 1460 bytes, round trip of 50 ms, no losses and no limit of the path, packets in round trips 1, 10 and
# 60: CUBIC 1, 1 and 1, which is 0.2 Mbit/s; BBR 1, 2 and 2, which is 0.5. Right is 10, then 20 and so on.
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
rat_congestion = "=0.1.0"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use std::thread::sleep;
use std::time::Duration;

use rat_congestion::{Bbr, CongestionControlAlgorithm, CongestionEvent, Cubic};

const SIZE: u64 = 1460;
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// Packets that may be sent in each of the round trips, all acknowledged.
fn packets(mut control: impl CongestionControlAlgorithm) -> Vec<u64> {
    let mut number = 0;
    (0..60)
        .map(|_| {
            let mut count = 0;
            while count < 1000 && control.can_send(count * SIZE) {
                count += 1;
            }
            sleep(ROUND_TRIP);
            for _ in 0..count {
                number += 1;
                control.on_congestion_event(CongestionEvent::PacketAcked {
                    packet_number: number,
                    bytes: SIZE,
                    rtt: ROUND_TRIP,
                });
            }
            count
        })
        .collect()
}

fn main() {
    let mut changed = false;
    let cases = [("CUBIC", packets(Cubic::new()), [1, 1, 1]), ("BBR", packets(Bbr::new()), [1, 2, 2])];
    for (name, counts, expected) in cases {
        let told = [counts[0], counts[9], counts[59]];
        println!("{name}: {told:?} packets in round trips 1, 10 and 60");
        changed |= told != expected;
    }
    std::process::exit(changed.into());
}
END
cargo run --quiet
