#!/bin/sh
# The Rust crate chokepoint 0.5.1, which simulates networks on streams, loses packets that become due at the same time
# if the order may change. It keeps delayed packets in a map by the time at which they are due (UnorderedQueue in
# stream.rs), takes all that are ready as of one instant, and its distributions of latency give whole milliseconds: so
# of a burst, a window of TCP say, one packet is left of each millisecond, and of a constant latency one of all. These
# losses are in no setting and no count. Order Backpressure, which is to take one packet at a time, does the same;
# Ordered does not. And a bandwidth limit holds for each second, with one packet more if the last does not fit
# (BandwidthLimiter): a second's worth goes out at once, so a link of 1 Mbit/s has no queue for a burst of 100 packets
# and one of a second for the next. Netem of Linux, which the settings resemble, delays each packet by itself
# (tc-netem(8)).
#
# Seen, 100 packets at once: Unordered, 50 ms, 1 arrives; 50 ms with a deviation of 10, about 35; Ordered, 100. Limit of
# 125 kB/s, 400 packets of 1250 bytes: the 100th after 0.0 s, right is 1.0, the 101st after 1.0. Limit of 2 kB/s,
# packets of 1500 bytes: 3 kB/s.
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
bytes = "1"
chokepoint = "=0.5.1"
futures = "0.3"
tokio = { version = "1", features = ["macros", "rt", "time"] }

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use bytes::Bytes;
use chokepoint::{normal_distribution, ChokeSettings, ChokeSettingsOrder, ChokeStream};
use futures::StreamExt;
use std::time::{Duration, Instant};

/// Seconds after which so many packets, sent at once, arrive.
async fn arrivals(settings: ChokeSettings, count: usize, size: usize) -> Vec<f64> {
    let packets = vec![Bytes::from(vec![0; size]); count];
    let start = Instant::now();
    let stream = ChokeStream::new(Box::new(futures::stream::iter(packets)), settings);
    stream.map(|_| start.elapsed().as_secs_f64()).collect().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    use ChokeSettingsOrder::{Backpressure, Ordered, Unordered};
    let mut changed = false;
    for (order, expected) in [(Ordered, 100), (Unordered, 1), (Backpressure, 1)] {
        let settings = || ChokeSettings::default().set_ordering(Some(order));
        let constant =
            settings().set_latency_distribution(Some(|| Some(Duration::from_millis(50))));
        let random = settings().set_latency_distribution(normal_distribution(50.0, 10.0, 100.0));
        let constant = arrivals(constant, 100, 1000).await.len();
        let random = arrivals(random, 100, 1000).await.len();
        println!("{order:?}: constant latency {constant} of 100 arrive, random {random}");
        changed |= constant != expected || (random < 60) != (order != Ordered);
    }
    let limit = |rate| ChokeSettings::default().set_bandwidth_limit(Some(rate), 0.0);
    let times = arrivals(limit(125_000), 200, 1250).await;
    println!("125 kB/s: 100th after {:.1} s, 101st after {:.1} s", times[99], times[100]);
    changed |= times[99] > 0.5 || times[100] < 0.9;
    let times = arrivals(limit(2000), 6, 1500).await;
    let early = times.iter().filter(|time| **time < 2.9).count();
    println!("2 kB/s: {} bytes in 3 s", early * 1500);
    std::process::exit((changed || early != 6).into());
}
END
cargo run --quiet
