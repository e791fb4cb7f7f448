#!/bin/sh
# The Rust crate twamp-rs 0.2.0, which measures round trips by TWAMP, writes nanoseconds into the fraction of its
# timestamps (try_from in timestamp.rs: subsec_nanos). By RFC 4656, 4.1.2, and RFC 5357, 4.1.2 and 4.2.1, the fraction
# is in units of 2^-32 s. So another implementation, or the crate itself when it turns a timestamp into seconds, sees
# clocks that run at a quarter of their speed and leap by 767 ms at each full second. A round trip of 200 ms is told as
# 46.6, one within which a second begins as 813.7; its own example computes its minimum, mean, jitter and one-way delays
# so (get_metrics in examples/controller). To a peer whose clock is exact, packets from a host whose clock is exact too
# seem up to 767 ms old. Only its documentation of one method says that the fraction is in nanoseconds.
#
# Seen, fraction of 0.5 s 500000000, read as 0.116 s, right is 2147483648; a round trip of 200 ms that began at x.1 s,
# 46.6 ms; one that began at x.95 s, 813.7 ms.
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
twamp-rs = "=0.2.0"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use std::time::Duration;
use twamp_rs::timestamp::timestamp::TimeStamp;

/// The timestamp of so many milliseconds after a full second.
fn stamp(milliseconds: u64) -> TimeStamp {
    TimeStamp::try_from(Duration::from_secs(1_700_000_000) + Duration::from_millis(milliseconds)).unwrap()
}

fn main() {
    let fraction = stamp(500).fractional_part_of_seconds();
    println!("0.5 s: fraction {fraction}, read as {:.3} s", f64::from(fraction) / 2f64.powi(32));
    for sent in [100, 950] {
        let round_trip = f64::from(stamp(sent + 200)) - f64::from(stamp(sent));
        println!("200 ms from {sent} ms on: {:.1} ms", round_trip * 1e3);
    }
}
END
cargo run --quiet | tee told
cat >expected <<'END'
0.5 s: fraction 500000000, read as 0.116 s
200 ms from 100 ms on: 46.6 ms
200 ms from 950 ms on: 813.7 ms
END
diff expected told
