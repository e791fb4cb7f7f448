#!/bin/sh
# The Rust crate bbr 0.1.0, BBRv3 for whoever writes a transport, stops looking for bandwidth (update_cycle_phase in
# v3.rs: in the phase Cruise it does nothing; the check for the time to probe is in Down alone, which ends when the
# queue is gone). So once it cruises it never sends faster than what it has measured, and a link that becomes faster
# stays unused. It paces 1 % below that, and forgets the old maximum each time it looks at the round trip, every 5 s: so
# on a link that does not change at all it slows down without an end, by 5 % a minute. Nothing is lost and nothing is
# said. By the draft that it names (draft-cardwell-iccrg-bbr-congestion-control, ProbeBW_CRUISE) a flow cruises until it
# is time to probe for bandwidth again, 2 to 3 s after the last time, and so does BBRv3 for Linux by its source.
#
# Seen, round trip of 100 ms, endless data, no loss: on a link of 20 Mbit/s 18.6 in the first minute, 11.6 in the tenth,
# 6.7 in the twentieth; where 5 Mbit/s become 20 after 20 s, 4.4 a minute and a half later.
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
bbr = "=0.1.0"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use std::collections::VecDeque;

use bbr::v3::{Bbr, BbrConfig, RateSample, Transport};

/// Bytes of a packet.
const SIZE: u64 = 1250;
/// Times are in microseconds.
const SECOND: u64 = 1_000_000;
const ROUND_TRIP: u64 = 100_000;

/// What the crate asks of a transport; rates are in bytes a second, the rest in packets.
#[derive(Default)]
struct Sender {
    now: u64,
    delivered: u64,
    delivered_at: u64,
    first_sent: u64,
    in_flight: u32,
    cwnd: u32,
    pacing_rate: u64,
    smoothed: Option<u32>,
}

impl Transport for Sender {
    fn now_us(&self) -> u64 {
        self.now
    }
    fn delivered(&self) -> u64 {
        self.delivered
    }
    fn delivered_ce(&self) -> u64 {
        0
    }
    fn packets_in_flight(&self) -> u32 {
        self.in_flight
    }
    fn cwnd(&self) -> u32 {
        self.cwnd
    }
    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
    }
    fn mss(&self) -> u32 {
        SIZE as u32
    }
    fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }
    fn set_pacing_rate(&mut self, rate: u64) {
        self.pacing_rate = rate;
    }
    fn max_pacing_rate(&self) -> u64 {
        1 << 40
    }
    fn ecn_eligible(&self) -> bool {
        false
    }
    fn is_cwnd_limited(&self) -> bool {
        self.in_flight >= self.cwnd
    }
    fn random_below(&self, max: u32) -> u32 {
        max / 2
    }
    fn srtt_us(&self) -> Option<u32> {
        self.smoothed
    }
    fn rcv_nxt(&self) -> u32 {
        0
    }
    fn in_recovery(&self) -> bool {
        false
    }
    fn lost_out(&self) -> u32 {
        0
    }
}

/// A packet under way, with the sender's state when it was sent.
struct Packet {
    acknowledged_at: u64,
    sent: u64,
    delivered: u64,
    delivered_at: u64,
    first_sent: u64,
    in_flight: u32,
}

/// Mbit/s in each minute, over a link of so many bit/s with an endless queue.
fn minutes(count: usize, rate: impl Fn(u64) -> f64) -> Vec<f64> {
    let mut sender = Sender { cwnd: 10, ..Sender::default() };
    let mut bbr = Bbr::new(BbrConfig::default());
    bbr.init(&mut sender);
    let (mut told, mut counted, mut may_send, mut link_free) = (Vec::new(), 0, 0, 0.0f64);
    let mut under_way: VecDeque<Packet> = VecDeque::new();
    while told.len() < count {
        let next = under_way.front().map_or(u64::MAX, |packet| packet.acknowledged_at);
        if !sender.is_cwnd_limited() && may_send.max(sender.now) <= next {
            sender.now = may_send.max(sender.now);
            if sender.in_flight == 0 {
                (sender.first_sent, sender.delivered_at) = (sender.now, sender.now);
            }
            may_send = sender.now + SIZE * SECOND / sender.pacing_rate;
            link_free = link_free.max(sender.now as f64)
                + SIZE as f64 * 8.0 * SECOND as f64 / rate(sender.now);
            sender.in_flight += 1;
            under_way.push_back(Packet {
                acknowledged_at: link_free as u64 + ROUND_TRIP,
                sent: sender.now,
                delivered: sender.delivered,
                delivered_at: sender.delivered_at,
                first_sent: sender.first_sent,
                in_flight: sender.in_flight,
            });
            continue;
        }
        let packet = under_way.pop_front().unwrap();
        let (prior_in_flight, round_trip) =
            (sender.in_flight, (packet.acknowledged_at - packet.sent) as u32);
        sender.now = packet.acknowledged_at;
        sender.in_flight -= 1;
        sender.delivered += 1;
        (sender.delivered_at, sender.first_sent) = (sender.now, packet.sent);
        sender.smoothed =
            Some(sender.smoothed.map_or(round_trip, |smoothed| (7 * smoothed + round_trip) / 8));
        let sample = RateSample {
            delivered: sender.delivered - packet.delivered,
            interval_us: (packet.sent - packet.first_sent).max(sender.now - packet.delivered_at),
            rtt_us: round_trip.into(),
            acked_sacked: 1,
            prior_in_flight,
            tx_in_flight: packet.in_flight,
            prior_delivered: packet.delivered,
            ..RateSample::default()
        };
        bbr.update(&mut sender, &sample);
        if sender.now >= (told.len() as u64 + 1) * 60 * SECOND {
            told.push((sender.delivered - counted) as f64 * SIZE as f64 * 8.0 / 60e6);
            counted = sender.delivered;
        }
    }
    told
}

fn main() {
    let steady = minutes(20, |_| 20e6);
    let faster = minutes(2, |now| if now < 20 * SECOND { 5e6 } else { 20e6 });
    let told = format!(
        "20 Mbit/s: {:.1} in minute 1, {:.1} in 10, {:.1} in 20; 20 instead of 5 Mbit/s after 20 s: {:.1} in minute 2",
        steady[0], steady[9], steady[19], faster[1]
    );
    println!("{told}");
    let same = told.contains(": 18.6 in minute 1, 11.6 in 10, 6.7 in 20;") && told.ends_with(": 4.4 in minute 2");
    std::process::exit((!same).into());
}
END
cargo run --quiet
