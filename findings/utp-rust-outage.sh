#!/bin/sh
# CUBIC of librqbit-utp 0.7.0 (crates.io), the transport of the BitTorrent client rqbit, takes an outage for time to
# grow in. After a time-out it grows by the time since the last loss found by duplicate acknowledgements, or since the
# connection began, not since it left slow start (on_retransmission_timeout in congestion/cubic.rs keeps K and
# last_congestion_event). And from the second time-out of an outage on it takes the window of one segment for the one
# before the loss, so slow start ends at two segments. So on a path of 40 segments 10 s without a radio link are
# followed by 257 at a time in the second round trip, 30 s by all that the peer's window allows. Nothing is said. By
# RFC 8312, 4.7, which its source cites, slow start ends at 0.7 times the window, and the time is that since the
# congestion avoidance after it began; by RFC 5681, 3.1, further time-outs leave that threshold.
#
# Seen, round trip of 100 ms, window of 31 segments before the outage, in the round trips after it: of 3 s (4 time-outs)
# 2, 22, 22; of 10 s 2, 257, 401; of 30 s 2, then the peer's 748; right is slow start up to 21 and about that for a
# second. After a single time-out 2, 3, 6, 12, 30; right again up to 21.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2024"

[dependencies]
librqbit-utp = "=0.7.0"

[workspace]
END
cat >src/main.rs <<'END'
#![allow(dead_code)]
mod congestion;
mod rtte;

use std::time::{Duration, Instant};

use congestion::{CongestionController, cubic::Cubic};
use rtte::RttEstimator;

const SEGMENT: usize = 1400;
const PEER_WINDOW: usize = 1 << 20;
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Segments that the path holds.
const PATH: usize = 40;

struct Connection {
    now: Instant,
    cubic: Cubic,
    round_trips: RttEstimator,
}

impl Connection {
    fn segments(&self) -> usize {
        self.cubic.window() / SEGMENT
    }

    /// All that was sent is acknowledged, a segment at a time.
    fn round_trip(&mut self) {
        self.now += ROUND_TRIP;
        for _ in 0..self.segments() {
            self.cubic.on_ack(self.now, SEGMENT, &self.round_trips);
            self.round_trips.sample(ROUND_TRIP);
        }
    }
}

/// The window before an outage of so many milliseconds, its time-outs, and the windows after it.
fn after_outage(outage: u64) -> (usize, usize, Vec<usize>) {
    let now = Instant::now();
    let cubic = Cubic::new(now, SEGMENT);
    let mut connection = Connection { now, cubic, round_trips: RttEstimator::default() };
    connection.round_trips.sample(ROUND_TRIP);
    connection.cubic.set_remote_window(PEER_WINDOW);
    // Five losses, each found by duplicate acknowledgements when the path is full, then 1 s of growth.
    for _ in 0..5 {
        while connection.segments() < PATH {
            connection.round_trip();
        }
        connection.cubic.on_enter_recovery(connection.now);
    }
    for _ in 0..10 {
        connection.round_trip();
    }
    let before = connection.segments();
    let end = connection.now + Duration::from_millis(outage);
    let mut timeouts = 0;
    while timeouts == 0 || connection.now < end {
        connection.now += connection.round_trips.retransmission_timeout();
        connection.cubic.on_retransmission_timeout(connection.now);
        connection.round_trips.on_rto_timeout();
        timeouts += 1;
    }
    let mut windows = Vec::new();
    for _ in 0..7 {
        windows.push(connection.segments());
        connection.round_trip();
    }
    (before, timeouts, windows)
}

fn main() {
    for outage in [100, 3_000, 10_000, 30_000] {
        let (before, timeouts, windows) = after_outage(outage);
        println!("outage of {outage} ms, window {before}, time-outs {timeouts}: then {windows:?}");
    }
}
END
cargo fetch --quiet
sources=$(cargo metadata --format-version 1 | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(*(os.path.dirname(p["manifest_path"]) for p in packages if p["name"] == "librqbit-utp"))')/src
# The crate keeps these modules to itself, so they are compiled as they are, less its tests and its log.
mkdir src/congestion
cp "$sources/rtte.rs" src
sed '/^#\[cfg(test)\]/,$d' "$sources/congestion/cubic.rs" >src/congestion/cubic.rs
sed '/mod tracing/d' "$sources/congestion/mod.rs" >src/congestion/mod.rs
rustc --edition 2024 -A warnings -O src/main.rs
./main | tee told
cat >expected <<'END'
outage of 100 ms, window 31, time-outs 1: then [2, 3, 6, 12, 30, 30, 31]
outage of 3000 ms, window 31, time-outs 4: then [2, 22, 22, 23, 23, 24, 25]
outage of 10000 ms, window 31, time-outs 6: then [2, 257, 401, 484, 528, 555, 574]
outage of 30000 ms, window 31, time-outs 8: then [2, 748, 748, 748, 748, 748, 748]
END
diff expected told
