#!/bin/sh
# The Rust crate triglav 0.2.0, which spreads packets over several uplinks and puts them in order again, loses what its
# reorder buffer has received (ReorderBuffer in multipath/aggregator.rs). It takes the first packet that comes for the
# first that was sent: those that it overtook on the other path are too old, in no count. And when the buffer is full it
# drops the packets at the head, which came, and still waits for the one that did not. To give that one up, the packet
# at the head must have waited for 500 ms; as it is always a new one, that never happens while 4096 packets take less
# than 500 ms to come. So above 98 Mbit/s (1500 bytes), or 25 with the 1024 packets of its README, one lost packet ends
# the transfer: nothing is delivered until the sender is slower. By its README, where three links make 250 Mbit/s,
# packets are delivered after the timeout "even if gaps exist", and 3 1 5 2 4 becomes 1 2 3 4 5.
#
# Seen: of 3 1 5 2 4 3 4 5, dropped 0. Of 3 s at 48 Mbit/s with one packet lost 11999 of 12000 packets; at 144 Mbit/s
# 999 of 36000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cargo info --quiet triglav@0.2.0 >log 2>&1 || { cat log >&2; exit 2; }
mkdir -p src/multipath
# Only this file of it, since the whole takes minutes to build. Uplink and Bandwidth are for its sender.
cp "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/triglav-0.2.0/src/multipath/aggregator.rs src/multipath/
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[dependencies]
humantime-serde = "=1.1.1"
parking_lot = "=0.12.5"
serde = { version = "=1.0.228", features = ["derive"] }

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
#[allow(dead_code, unused_imports)]
mod multipath {
    pub mod aggregator;

    pub struct Uplink;

    impl Uplink {
        pub fn is_usable(&self) -> bool {
            true
        }

        pub fn bandwidth(&self) -> crate::types::Bandwidth {
            crate::types::Bandwidth { bytes_per_sec: 0.0 }
        }

        pub fn numeric_id(&self) -> u16 {
            0
        }

        pub fn rtt(&self) -> std::time::Duration {
            std::time::Duration::ZERO
        }
    }
}

mod types {
    pub struct Bandwidth {
        pub bytes_per_sec: f64,
    }
}

use multipath::aggregator::{AggregatorConfig, BandwidthAggregator};
use std::time::{Duration, Instant};

/// Packets delivered of those sent in 3 s, with packet 1000 lost.
fn delivered(packets_per_second: u64) -> (usize, u64) {
    let receiver = BandwidthAggregator::new(AggregatorConfig::default());
    let (sent, start) = (3 * packets_per_second, Instant::now());
    let (mut count, mut next) = (0, 1);
    while next <= sent {
        let due = start.elapsed().as_micros() as u64 * packets_per_second / 1_000_000;
        while next <= due.min(sent) {
            if next != 1000 {
                count += receiver.receive(next, vec![0; 8], 0).len();
            }
            next += 1;
        }
        count += receiver.poll_timeout().len();
        std::thread::sleep(Duration::from_millis(1));
    }
    (count, sent)
}

fn main() {
    let receiver = BandwidthAggregator::new(AggregatorConfig::default());
    let received = [3, 1, 5, 2, 4].into_iter().flat_map(|number| receiver.receive(number.into(), vec![number], 0));
    let order: Vec<u8> = received.flatten().collect();
    println!("3 1 5 2 4: {order:?}, dropped {}", receiver.reorder_stats().dropped);
    let mut told = vec![format!("{order:?}")];
    for packets_per_second in [4000, 12000] {
        let (count, sent) = delivered(packets_per_second);
        println!("{} Mbit/s: {count} of {sent} packets", packets_per_second * 1500 * 8 / 1_000_000);
        told.push(format!("{count} of {sent}"));
    }
    std::process::exit((told != ["[3, 4, 5]", "11999 of 12000", "999 of 36000"]).into());
}
END
cargo run --quiet
