#!/bin/sh
# The jitter buffers of two Rust crates, rtp-engine 0.1.0 and rtp-core 0.3.0, take each call for a packet (pop) for one
# packet, whether any was sent. With silence suppression none is, and the next has the next sequence number (RFC 3550,
# 5.1; RFC 3551, 4.1). So a pause counts as lost packets, and after one longer than the buffer's delay every packet
# comes too late for its number and is dropped, for the rest of the call. Timestamps would tell, but are not looked at.
# And the adaptive buffer of rtp-engine never adapts: the delay that it computes and tells, current_delay_ms, counts
# until the first packet is played only (should_start_playout in jitter.rs). So where a radio link gets worse, what is
# later than the first packets allowed for is dropped for ever, although the delay told has room for it. Nothing is
# said.
#
# Seen, 50 packets of 20 ms, a pause of 0.2 s, 50 packets: both play none of these; right is 50, as without a pause.
# Every other packet 120 ms later than at first, target of 60 ms, at most 200: all 75 late ones are dropped, delay told
# 200 ms.
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
rtp-core = { version = "=0.3.0", default-features = false }
rtp-engine = { version = "=0.1.0", default-features = false, features = ["srtp"] }

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use rtp_engine::{JitterBuffer, JitterConfig, JitterMode};
use std::thread::sleep;
use std::time::{Duration, Instant};

const FRAME: u64 = 20;
const SAMPLES: u32 = 160;

fn engine(mode: JitterMode) -> JitterBuffer {
    JitterBuffer::new(JitterConfig { mode, ..JitterConfig::default() })
}

/// Frame in which a packet is sent: the second half comes after a pause of so many frames.
fn sent(number: u64, pause: u64) -> u64 {
    if number < 50 {
        number
    } else {
        number + pause
    }
}

/// How many of the 50 packets after a pause are played by rtp-engine, in real time.
fn after_pause(pause: u64) -> usize {
    let mut buffer = engine(JitterMode::Fixed { delay_ms: 60 });
    let (start, mut played, mut next) = (Instant::now(), 0, 0);
    for frame in 0..110 + pause {
        sleep(
            (start + Duration::from_millis(frame * FRAME))
                .saturating_duration_since(Instant::now()),
        );
        if next < 100 && sent(next, pause) == frame {
            buffer.push(next as u16, frame as u32 * SAMPLES, vec![0; 160]);
            next += 1;
        }
        let packet = buffer.pop();
        played += usize::from(packet.is_some_and(|packet| !packet.synthesized && packet.seq >= 50));
    }
    played
}

/// The same for rtp-core, which knows no time.
fn core_after_pause(pause: u64) -> usize {
    let mut buffer = rtp_core::jitter::JitterBuffer::new(12);
    let (mut played, mut next) = (0, 0);
    for frame in 0..110 + pause {
        if next < 100 && sent(next, pause) == frame {
            let packet =
                rtp_core::packet::RtpPacket::new(0, next as u16, frame as u32 * SAMPLES, 1);
            buffer.insert(packet.with_payload(vec![0; 160]));
            next += 1;
        }
        played += usize::from(buffer.pop().is_some_and(|packet| packet.sequence_number >= 50));
    }
    played
}

/// Of 200 packets of which every other is 120 ms late from the 50th on: how many are dropped, how many of the late
/// ones of the last 100 are played, and the delay told at the end.
fn worse_path() -> (u64, usize, u32) {
    let mut buffer = engine(JitterMode::Adaptive { target_ms: 60, min_ms: 20, max_ms: 200 });
    let (start, mut late) = (Instant::now(), 0);
    for frame in 0..220 {
        sleep(
            (start + Duration::from_millis(frame * FRAME))
                .saturating_duration_since(Instant::now()),
        );
        for number in 0..200 {
            let delayed = number >= 50 && number % 2 == 1;
            if number + if delayed { 6 } else { 0 } == frame {
                buffer.push(number as u16, number as u32 * SAMPLES, vec![0; 160]);
            }
        }
        let packet = buffer.pop();
        late +=
            usize::from(packet.is_some_and(|packet| {
                !packet.synthesized && packet.seq >= 100 && packet.seq % 2 == 1
            }));
    }
    let stats = buffer.stats();
    (stats.packets_dropped, late, stats.current_delay_ms)
}

fn main() {
    let mut changed = false;
    for (pause, expected) in [(0, 50), (10, 0)] {
        let (engine, core) = (after_pause(pause), core_after_pause(pause));
        println!("pause of {} ms: rtp-engine plays {engine} of 50, rtp-core {core}", pause * FRAME);
        changed |= engine.abs_diff(expected) > 3 || core.abs_diff(expected) > 3;
    }
    let (dropped, late, delay) = worse_path();
    println!("120 ms later: {dropped} of 75 dropped, {late} of the last 50 played, delay told {delay} ms");
    std::process::exit((changed || late > 0 || delay < 150).into());
}
END
cargo run --quiet
