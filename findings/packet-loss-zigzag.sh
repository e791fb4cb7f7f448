#!/bin/sh
# The Rust crate packet_loss_classification 0.1.0 tells losses by congestion from those by the radio, after Cen, Cosman
# and Voelker (IEEE/ACM Trans. Networking 11, 2003). Its answer depends on the unit of the delays. Their scheme ZigZag
# compares a delay with the mean and the deviation of the delays. By its own documentation both are exponential
# averages. But the old deviation is missing where the new one is computed: in its place stands the constant 1
# (rott_dev in zigzag.rs: 1 - 2 alpha, where that times the old deviation belongs). So the deviation is 0.94 and a bit,
# whatever the path is. In seconds that is far more than any delay: no single loss is ever by the radio, and all losses
# of four or more in a row are. In milliseconds or microseconds it is next to nothing: half of all losses are by the
# radio. ZBS, which picks the scheme that suits the path, averages the squares of the times between arrivals (t_avg in
# zbs.rs) and divides by a time, so its choice depends on the unit too. Nothing is said of a unit.
#
# Seen, delays of 20 to 119 ms, per cent by the radio: one loss at a time 0.0 in s, 47.8 in ms and us, right is 24.8;
# four at a time 100.0, 48.8 and 47.8, right is 61.8; ZBS 1.0, 46.0 and 46.0.
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
packet_loss_classification = "=0.1.0"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use packet_loss_classification::{PacketLoss, ZigZag, ZBS};

const LOSSES: u32 = 10_000;

/// Delays of 20 to 119 ms, mixed, in a unit of so many ms.
fn delays(unit: f64) -> impl Iterator<Item = f64> {
    (0..LOSSES).map(move |index| f64::from(20 + index * 37 % 100) / unit)
}

/// Per cent of the losses that are by the radio.
fn wireless(classes: impl Iterator<Item = bool>) -> f64 {
    classes.filter(|&wireless| wireless).count() as f64 * 100.0 / f64::from(LOSSES)
}

/// By the paper, with a deviation that is an average of the distances from the mean.
fn right(unit: f64, threshold: f64) -> f64 {
    let (mut mean, mut deviation) = (0.0, 0.0);
    wireless(delays(unit).map(|delay| {
        mean += (delay - mean) / 32.0;
        deviation += ((delay - mean).abs() - deviation) / 16.0;
        delay < mean + threshold * deviation
    }))
}

fn main() {
    for (name, unit) in [("s", 1000.0), ("ms", 1.0), ("us", 0.001)] {
        for (lost, threshold) in [(1, -1.0), (4, 0.5)] {
            let mut zigzag = ZigZag::default();
            let classes = delays(unit).map(|delay| zigzag.classify(delay, lost));
            let told = wireless(classes.map(|class| class == PacketLoss::Wireless));
            println!("{name}, {lost} lost: {told:.1}, right {:.1}", right(unit, threshold));
        }
        let mut zbs = ZBS::default();
        let classes = delays(unit).map(|delay| zbs.classify(delay, 20.0 / unit, 1));
        println!("{name}, ZBS: {:.1}", wireless(classes.map(|class| class == PacketLoss::Wireless)));
    }
}
END
cargo run --quiet | tee told
cat >expected <<'END'
s, 1 lost: 0.0, right 24.8
s, 4 lost: 100.0, right 61.8
s, ZBS: 1.0
ms, 1 lost: 47.8, right 24.8
ms, 4 lost: 48.8, right 61.8
ms, ZBS: 46.0
us, 1 lost: 47.8, right 24.8
us, 4 lost: 47.8, right 61.8
us, ZBS: 46.0
END
diff expected told
