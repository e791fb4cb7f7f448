#!/bin/sh
# The Rust crate netem-trace 0.5.0 (mahimahi, mahimahi_to_file) writes a bandwidth as the times of packets, over
# a length that it is given, and so loses what comes after the last of them: mm-link of Mahimahi starts anew at
# that time (link_queue.cc; its manual: it wraps around at the end of the file). A link that ends with an outage
# has none when it repeats: its period is shorter and its rate higher. Nothing is said, and the crate's own
# load_mahimahi_trace reads back a link without an outage. What helps: the outage first.
#
# Seen, 12 Mbit/s for 1 s and nothing for 4 s, written and read back: pause of 0 ms, 12.0 Mbit/s on average; the
# outage first: pause of 4000 ms, 2.4 Mbit/s. Right for both is 4000 ms, 2.4 Mbit/s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat >"$dir/Cargo.toml" <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"
[dependencies]
netem-trace = { version = "=0.5.0", features = ["mahimahi"] }
[profile.dev]
debug = false
[workspace]
END
cat >"$dir/src/main.rs" <<'END'
use netem_trace::model::{BwTraceConfig, RepeatedBwPatternConfig, StaticBwConfig};
use netem_trace::{load_mahimahi_trace, Bandwidth, BwTrace, Duration, Mahimahi};

const PERIOD: Duration = Duration::from_secs(5);

/// The longest pause in ms and the mean rate in Mbit/s of ten periods.
fn measure(mut link: impl BwTrace) -> (u128, f64) {
    let (mut left, mut longest, mut megabits) = (10 * PERIOD, Duration::ZERO, 0.0);
    while !left.is_zero() {
        let (bandwidth, duration) = link.next_bw().unwrap();
        let duration = duration.min(left);
        left -= duration;
        if bandwidth == Bandwidth::ZERO {
            longest = longest.max(duration);
        }
        megabits += bandwidth.as_bps() as f64 / 1e6 * duration.as_secs_f64();
    }
    (longest.as_millis(), megabits / (10 * PERIOD).as_secs_f64())
}

fn link(parts: [(u64, u64); 2]) -> RepeatedBwPatternConfig {
    let part = |(megabits, seconds)| {
        let bandwidth = Bandwidth::from_mbps(megabits);
        let part = StaticBwConfig::new().bw(bandwidth).duration(Duration::from_secs(seconds));
        Box::new(part) as Box<dyn BwTraceConfig>
    };
    RepeatedBwPatternConfig::new().pattern(parts.map(part).into())
}

fn main() {
    let up_and_down = [(12, 1), (0, 4)];
    let down_and_up = [(0, 4), (12, 1)];
    let mut seen = Vec::new();
    for parts in [up_and_down, down_and_up] {
        let times = link(parts).build().mahimahi(&PERIOD);
        let read = load_mahimahi_trace(times, None).unwrap().build();
        let (meant, read) = (measure(link(parts).build()), measure(read));
        println!("meant: pause of {} ms, {:.1} Mbit/s", meant.0, meant.1);
        println!("read back: pause of {} ms, {:.1} Mbit/s", read.0, read.1);
        assert_eq!((meant.0, (meant.1 * 10.0).round()), (4000, 24.0));
        seen.push((read.0, (read.1 * 10.0).round()));
    }
    assert_eq!(seen, [(0, 120.0), (4000, 24.0)], "it has changed");
}
END
CARGO_TARGET_DIR=$dir/target cargo run --quiet --manifest-path "$dir/Cargo.toml"
