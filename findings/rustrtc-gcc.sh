#!/bin/sh
# The Rust crate rustrtc 0.4.20, WebRTC with congestion control after Google (GCC, on by default), estimates the rate of
# a path without knowing when its packets were sent. What it takes for the trend of the delay is that of the times
# between arrivals (trendline_slope in media/gcc.rs; by its own comment a regression over those at sender and receiver).
# So a link of half the rate, whose queue grows without an end, is like an empty one: packets arrive evenly. And video,
# a few packets at once for each frame, looks like a queue that drains: the rate told goes up to 10 Mbit/s, on any path.
# By draft-ietf-rmcat-gcc-02, 5.1, the delay varies by the time between arrivals less the time between departures. And
# of feedback as vectors of one bit it takes received packets for lost and lost ones for received (decode_twcc_feedback
# in rtp.rs: "the wire format Chrome and pion emit"). These write 1 for received (WebRTC's rtcp/transport_feedback.cc),
# as does the example in draft-holmer-rmcat-transport-wide-cc-extensions-01, 3.1.4, whose text says the opposite.
#
# Seen, 500 packets, sent each 5 ms: empty path, from 1000 to about 1050 kbit/s in 1 s, never down; link of half the
# rate, which delays the last packet by 2.5 s, the same. Frames of 5 packets each 33 ms, empty path: 10000 kbit/s. One
# of 14 packets lost: 1 received, 13 lost.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p crate/src src/media
cat >crate/Cargo.toml <<'END'
[package]
name = "sources"
version = "0.1.0"

[dependencies]
rustrtc = "=0.4.20"

[workspace]
END
touch crate/src/lib.rs
cargo fetch --quiet --manifest-path crate/Cargo.toml
sources=$(cargo metadata --format-version 1 --manifest-path crate/Cargo.toml | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(*(os.path.dirname(p["manifest_path"]) for p in packages if p["name"] == "rustrtc"))')/src
# The whole takes minutes to compile. These modules of it do not, as they are but for their tests and the lines by which
# a connection calls them.
cp "$sources/errors.rs" src
sed '/^#\[cfg(.*test.*)\]$/,$d' "$sources/rtp.rs" >src/rtp.rs
sed '/^use crate::peer_connection/,$d' "$sources/media/gcc.rs" >src/media/gcc.rs
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2024"

[features]
default = ["std"]
std = []

[dependencies]
bytes = { version = "1", features = ["serde"] }
parking_lot = "0.12"
serde = { version = "1", features = ["derive"] }
thiserror = "2"
tokio = { version = "1", features = ["sync"] }
tracing = "0.1"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
#![allow(dead_code, unused_imports)]
extern crate alloc;

mod errors;
mod rtp;
mod prelude {
    pub use alloc::borrow::{Cow, ToOwned};
    pub use alloc::collections::{BTreeMap, BTreeSet};
    pub use alloc::sync::{Arc, Weak};
}
mod media {
    pub mod gcc;
}
mod platform {
    pub mod net {
        pub type NetError = core::fmt::Error; // named in errors.rs alone
    }
}

use std::thread::sleep;
use std::time::Duration;

use media::gcc::GccBandwidthEstimator;
use rtp::TransportWideCc;

/// Unit of the times in feedback, in microseconds.
const TICK: i64 = 250;
/// Packets in each feedback.
const PACKETS: usize = 10;
const FEEDBACKS: usize = 50;

fn feedback(first: usize, count: usize, payload: Vec<u8>) -> TransportWideCc {
    TransportWideCc {
        sender_ssrc: 1,
        media_ssrc: 2,
        base_sequence: first as u16,
        packet_status_count: count as u16,
        reference_time_64ms: 0,
        feedback_packet_count: 0,
        payload,
    }
}

/// The rate told in bit/s, and how often it went up and down, after packets that arrive at these times in microseconds;
/// the first came so long after the one before it.
fn told(gap: i64, arrival: impl Fn(usize) -> i64) -> (u64, u64, u64) {
    let estimator = GccBandwidthEstimator::new();
    let mut last = arrival(0) - gap;
    for round in 0..FEEDBACKS {
        sleep(Duration::from_millis(20));
        let run_of_small_deltas: u16 = 1 << 13 | PACKETS as u16;
        let mut payload = run_of_small_deltas.to_be_bytes().to_vec();
        for number in round * PACKETS..(round + 1) * PACKETS {
            let now = arrival(number) / TICK * TICK;
            payload.push(((now - last) / TICK) as u8);
            last = now;
        }
        estimator.on_twcc_feedback(&feedback(round * PACKETS, PACKETS, payload));
    }
    (estimator.target_bitrate(), estimator.increase_count(), estimator.decrease_count())
}

fn main() {
    let mut changed = false;
    let mut show = |name: &str, (rate, up, down): (u64, u64, u64), same: std::ops::Range<u64>| {
        println!("{name}: {} kbit/s; {up} times up at once, {down} times down", rate / 1000);
        changed |= down > 0 || !same.contains(&rate);
    };
    show("empty path", told(5_000, |number| number as i64 * 5_000), 1_040_000..1_300_000);
    show("link of half the rate", told(10_000, |number| number as i64 * 10_000), 1_040_000..1_300_000);
    let frames = told(31_000, |number| (number / 5) as i64 * 33_000 + (number % 5) as i64 * 500);
    show("frames on an empty path", frames, 10_000_000..10_000_001);

    let estimator = GccBandwidthEstimator::new();
    let vector_last_lost: u16 = 1 << 15 | 0b11_1111_1111_1110;
    let mut payload = vector_last_lost.to_be_bytes().to_vec();
    payload.extend([20; 13]);
    estimator.on_twcc_feedback(&feedback(0, 14, payload));
    let order = std::sync::atomic::Ordering::Relaxed;
    let (received, lost) = (estimator.acked_packets.load(order), estimator.lost_packets.load(order));
    println!("13 received, 1 lost: {received} received, {lost} lost");
    changed |= (received, lost) != (1, 13);
    std::process::exit(changed.into());
}
END
cargo run --quiet
