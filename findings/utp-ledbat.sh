#!/bin/sh
# Two Rust crates of uTP, BitTorrent's transport that is to stay below the other traffic of an uplink (LEDBAT, RFC
# 6817), do not see the queue that they build. irontide-utp 1.7.0 goes by the delay of the packets that it receives
# (timestamp_diff in on_packet, conn.rs), which is that of the other direction. How long its own packets took, which the
# peer tells in each header (timestamp_difference_microseconds, BEP 29), it never reads. So an upload fills any queue,
# and stands still when a download fills the queue of the other direction. aria2-protocol 0.3.8 takes the least of the
# last 60 acknowledgements for the delay of an empty path (max_history in congestion.rs, "~1 minute of samples at 1
# sample/second"). At 400 a second that is what the queue was 150 ms ago. And its window grows by half of what is
# acknowledged (update_cwnd_congestion_avoidance), so by half of itself in each round trip; RFC 6817, 2.4.2, divides
# that by the window in segments, and keeps base delays for minutes. It stops at its limit of 1.5 MB. No error is
# returned. Both aim at a queue of 100 ms, the most that the RFC allows (2.5).
#
# Seen on an uplink of 5 Mbit/s, 50 ms to the peer and back, endless data: after 10 s packets of irontide-utp wait 4.8
# s, those of aria2-protocol 2.3 s and for good; right is 0.1 s at most. With a queue of 1 s on the way back, from 1 s
# on, irontide-utp carries 0.01 of the 5 Mbit/s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p src fetch/src
cat >fetch/Cargo.toml <<'END'
[package]
name = "fetch"
version = "0.1.0"
edition = "2024"

[dependencies]
aria2-protocol = "=0.3.8"
irontide-utp = "=1.7.0"

[workspace]
END
echo 'fn main() {}' >fetch/src/main.rs
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2024"

[dependencies]
bytes = "=1.11.0"
thiserror = "=2.0.17"
tracing = "=0.1.41"

[profile.dev]
debug = false

[workspace]
END
# The modules of the two protocols as they are, without sockets, encryption and the like, which take minutes to build.
cargo metadata --quiet --format-version 1 --manifest-path fetch/Cargo.toml >metadata
folder() { python3 - "$1" <<'END'
import json, os, sys
for package in json.load(open("metadata"))["packages"]:
    if package["name"] == sys.argv[1]:
        print(os.path.dirname(package["manifest_path"]) + "/src")
END
}
link() { ln -s "$1" "src/$2"; }
for module in congestion conn error packet seq; do link "$(folder irontide-utp)/$module.rs" "$module.rs"; done
link "$(folder aria2-protocol)/bittorrent/utp/congestion.rs" aria2.rs
cat >src/main.rs <<'END'
#![allow(dead_code)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use aria2::LedbatController;
use bytes::Bytes;
use conn::{ConnAction, Connection, timestamp_us};
use packet::{ExtensionType, Header, Packet, PacketType};
use seq::SeqNr;

mod aria2;
mod congestion;
mod conn;
mod error;
mod packet;
mod seq;

const RATE: f64 = 5e6;
/// Seconds from one end to the other, without a queue.
const ONE_WAY: f64 = 0.025;

/// A link with an endless queue, and what is under way to the peer and back.
struct Path<T> {
    free: f64,
    /// When the acknowledgement arrives, what the packet waited, its size and its name.
    under_way: VecDeque<(f64, f64, usize, T)>,
}

impl<T> Path<T> {
    fn new() -> Self {
        Path { free: 0.0, under_way: VecDeque::new() }
    }

    fn send(&mut self, now: f64, size: usize, back: f64, name: T) {
        let starts = self.free.max(now);
        self.free = starts + size as f64 * 8.0 / RATE;
        self.under_way.push_back((self.free + ONE_WAY + back, starts - now, size, name));
    }
}

/// How long packets wait after so many seconds, and Mbit/s in the second half of the time.
fn aria2(end: f64) -> (f64, f64) {
    const SIZE: usize = 1500;
    let mut sender = LedbatController::new();
    let mut path = Path::new();
    let (mut now, mut waited, mut bytes) = (0.0, 0.0, 0);
    while now < end {
        while sender.available_window() as usize >= SIZE {
            sender.on_data_sent(SIZE as u32);
            path.send(now, SIZE, ONE_WAY, ());
        }
        let size;
        (now, waited, size, _) = path.under_way.pop_front().unwrap();
        bytes += if now > end / 2.0 { size } else { 0 };
        let delay = waited + SIZE as f64 * 8.0 / RATE + ONE_WAY;
        sender.on_ack_received((delay * 1e6) as u64, SIZE as u32);
    }
    (waited, bytes as f64 * 8.0 / (end / 2.0) / 1e6)
}

/// The same; `back` is the delay of the way back.
fn irontide(end: f64, back: impl Fn(f64) -> f64) -> (f64, f64) {
    const ID: u16 = 7;
    let start = Instant::now();
    let (mut sender, syn) = Connection::new_outbound("10.0.0.2:6881".parse().unwrap(), ID);
    let acknowledge = |ack_nr: SeqNr, there: f64, back: f64| Packet {
        header: Header {
            packet_type: PacketType::State,
            extension: ExtensionType::None,
            connection_id: ID,
            timestamp_us: timestamp_us().wrapping_sub((back * 1e6) as u32),
            timestamp_diff_us: (there * 1e6) as u32,
            wnd_size: 1 << 30,
            seq_nr: SeqNr(1),
            ack_nr,
        },
        sack: None,
        close_reason: None,
        payload: Bytes::new(),
    };
    let number = Packet::decode(&syn).unwrap().header.seq_nr;
    sender.on_packet(&acknowledge(number, ONE_WAY, ONE_WAY), start);
    let mut path = Path::new();
    let (mut now, mut waited, mut bytes) = (0.0, 0.0, 0);
    let mut actions = sender.send_data(Bytes::from(vec![0; 100_000_000]), start);
    while now < end {
        for action in actions {
            let ConnAction::Send(data) = action else { continue };
            let number = Packet::decode(&data).unwrap().header.seq_nr;
            path.send(now, data.len(), back(now), number);
        }
        let (size, number);
        (now, waited, size, number) = path.under_way.pop_front().unwrap();
        bytes += if now > end / 2.0 { size } else { 0 };
        let there = waited + size as f64 * 8.0 / RATE + ONE_WAY;
        let at = start + Duration::from_secs_f64(now);
        actions = sender.on_packet(&acknowledge(number, there, back(now)), at);
        actions.extend(sender.flush_send_buf(at));
    }
    (waited, bytes as f64 * 8.0 / (end / 2.0) / 1e6)
}

fn main() {
    let told = [
        ("irontide-utp", irontide(10.0, |_| ONE_WAY)),
        ("aria2-protocol", aria2(10.0)),
        ("aria2-protocol, a minute", aria2(60.0)),
        ("irontide-utp, a queue on the way back", irontide(120.0, |now| if now < 1.0 { ONE_WAY } else { 1.0 })),
    ];
    for (name, (waited, rate)) in told {
        println!("{name}: packets wait {waited:.1} s, {rate:.2} Mbit/s");
    }
    let [(_, upload), (_, aria2), (_, minute), (_, other)] = told;
    let same = upload.0 > 4.0 && aria2.0 > 2.0 && minute.0 > 2.0 && other.1 < 0.2;
    std::process::exit((!same).into());
}
END
cargo run --quiet
