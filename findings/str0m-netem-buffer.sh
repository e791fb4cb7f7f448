#!/bin/sh
# The Rust crate str0m-netem 0.4.0, the emulated network of the WebRTC library str0m, counts packets that are on their
# way as if they waited in the link's buffer (enqueue_packet and poll_output in lib.rs: bytes leave the count when the
# latency is over). So no more than the buffer is under way at a time, and a link carries at most its buffer for each
# latency, whatever its rate. Of its own presets the satellite of "15 Mbps" carries 6.7 Mbit/s and "4G" of "30 Mbps" 16;
# the rest is dropped, with no queue at all. By its documentation (NetemConfig::link) packets flow with minimal queueing
# delay below the capacity, and are dropped over it. Nothing is said. Netem of Linux counts so too, but calls its limit
# what it may hold, in packets, not the buffer of its rate (tc-netem(8), limit).
#
# Seen, sent at the rate, without random loss and jitter: satellite 6.7 of 15 Mbit/s, all after 600 ms; cellular 16.1 of
# 30, after 50 ms; congested 5.0 of 10, after 80 ms; wifi, with a buffer of 16 ms and a latency of 5, 100 of 100.
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
str0m-netem = "=0.4.0"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use std::time::{Duration, Instant};
use str0m_netem::{Input, LossModel, Netem, NetemConfig, Output};

const SIZE: usize = 1250;
const TIME: u64 = 20;

/// Mbit/s that arrive of what is sent at a rate in Mbit/s, and the shortest and longest delay in ms.
fn carried(config: NetemConfig, rate: u64) -> (f64, u128, u128) {
    let mut netem: Netem<Vec<u8>> = Netem::new(config.loss(LossModel::None).jitter(Duration::ZERO));
    let start = Instant::now();
    let gap = Duration::from_nanos(SIZE as u64 * 8 * 1000 / rate);
    let count = TIME * rate * 1_000_000 / (SIZE as u64 * 8);
    let (mut arrived, mut shortest, mut longest) = (0, Duration::MAX, Duration::ZERO);
    for number in 0..count {
        let now = start + gap * number as u32;
        let mut data = vec![0; SIZE];
        data[..8].copy_from_slice(&number.to_le_bytes());
        let mut next = netem.poll_timeout();
        while next <= now {
            netem.handle_input(Input::Timeout(next));
            while let Some(Output::Packet(packet)) = netem.poll_output() {
                let sent = u64::from_le_bytes(packet[..8].try_into().unwrap());
                let delay = next - (start + gap * sent as u32);
                (arrived, shortest, longest) =
                    (arrived + 1, shortest.min(delay), longest.max(delay));
            }
            next = netem.poll_timeout();
        }
        netem.handle_input(Input::Packet(now, data));
    }
    let rate = (arrived * SIZE * 8) as f64 / TIME as f64 / 1e6;
    (rate, (shortest.as_micros() + 500) / 1000, (longest.as_micros() + 500) / 1000)
}

fn main() {
    let presets = [
        ("satellite", NetemConfig::satellite(), 15, "6.7"),
        ("cellular", NetemConfig::cellular(), 30, "16.1"),
        ("congested", NetemConfig::congested(), 10, "5.0"),
        ("wifi", NetemConfig::wifi(), 100, "100.0"),
    ];
    let mut changed = false;
    for (name, config, rate, expected) in presets {
        let (told, shortest, longest) = carried(config, rate);
        println!("{name}: {told:.1} of {rate} Mbit/s, after {shortest} to {longest} ms");
        changed |= format!("{told:.1}") != expected;
    }
    std::process::exit(changed.into());
}
END
cargo run --quiet
