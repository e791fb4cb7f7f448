#!/bin/sh
# The Rust crate naia-shared 0.25.0, on which the networking library naia for games stands, measures how much a
# connection sends and receives in a window of time (bandwidth_measure_duration). It counts the bytes of the window in
# 16 bits (total_bytes in connection/bandwidth_monitor.rs). So in release builds the bandwidth starts from 0 again with
# each 64 KiB that are in the window: at 0.5 Mbit/s with a window of 1 s, at 0.13 with one of 4 s. A link of 1 Mbit/s
# seems to carry less than half of it, and a faster one may seem slower.
# Nothing is said. ConnectionStats calls it a rolling average in kilobits per second; by its source naia-client 0.25.0
# hands the same number out as bytes per second too (outgoing_bandwidth in client.rs).
#
# Seen, window of 1 s: 40 packets of 1200 bytes 384 kbit/s, right is 384; 100 packets 436, right is 960; 170 packets 59,
# right is 1632.
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
naia-shared = "=0.25.0"

[profile.release]
opt-level = 0

[workspace]
END
cat >src/main.rs <<'END'
use std::time::Duration;

use naia_shared::BandwidthMonitor;

const SIZE: usize = 1200;

fn main() {
    for count in [40, 100, 170] {
        let mut monitor = BandwidthMonitor::new(Duration::from_secs(1));
        for _ in 0..count {
            monitor.record_packet(SIZE);
        }
        println!("{count} packets: {:.0} kbit/s, right {}", monitor.bandwidth(), count * SIZE * 8 / 1000);
    }
}
END
cargo run --quiet --release | tee told
cat >expected <<'END'
40 packets: 384 kbit/s, right 384
100 packets: 436 kbit/s, right 960
170 packets: 59 kbit/s, right 1632
END
diff expected told
