#!/bin/sh
# The Rust crate ezk-rtp 0.2.1 puts a received RTP packet into its jitter buffer only if its timestamp is later than
# that of the packet before (recv_rtp in session/mod.rs; by a comment the check is for the jitter). But all packets of a
# video frame have one timestamp. So of each frame all but the first are thrown away, and so is a packet that was
# overtaken, for which the buffer is there by its documentation. The fraction of lost packets in its reports is 255 of
# 256 or none, since no packet is ever counted as received (jitter_buffer.rs). And as the time of the sender's last
# report (LSR) they have the receiver's own time at which it arrived. So the round trip that the sender computes is off
# by the difference of the two clocks. No error is returned. RFC 3550, 5.1: packets of one frame have equal timestamps;
# 6.4.1: LSR is taken from the sender's report, and the fraction is of the packets expected.
#
# Seen, a packet every 4 ms: of 20 frames of five packets 20 packets of 100 come out; with every fourth packet overtaken
# 75 of 100. One of 100 lost, and 255 of 256 told as lost; right is 2. Clock of the sender 100 s ahead, and its report
# is named by a time 100 s before.
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
bytes = "=1.11.0"
ezk-rtp = "=0.2.1"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use ezk_rtp::rtcp_types::{prelude::*, Packet, SenderReport};
use ezk_rtp::{RtpExtensions, RtpPacket, RtpSession, RtpTimestamp, SequenceNumber, Ssrc};

const STREAM: u32 = 7;

/// Seconds since 1900.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() + 2_208_988_800.0
}

/// How many of these packets come out, how much of 256 is told as lost, and how far the sender's report is off, in s.
/// A packet every 4 ms, a timestamp for so many of them.
fn receive(order: &[u16], share: u16, ahead: f64) -> (usize, u8, f64) {
    let mut session = RtpSession::new(Ssrc(1), 90_000);
    let mut count = 0;
    for &sequence in order {
        session.recv_rtp(RtpPacket {
            pt: 96,
            sequence_number: SequenceNumber(sequence),
            ssrc: Ssrc(STREAM),
            timestamp: RtpTimestamp(u32::from(sequence / share * share) * 360),
            extensions: RtpExtensions::default(),
            payload: Bytes::from_static(&[0; 100]),
        });
        sleep(Duration::from_millis(4));
        while session.pop_rtp(None).is_some() {
            count += 1;
        }
    }
    let (mut data, sent) = ([0; 200], now() + ahead);
    let ntp = (sent * f64::from(1 << 16)) as u64;
    let size = SenderReport::builder(STREAM).ntp_timestamp(ntp << 16).write_into(&mut data).unwrap();
    session.recv_rtcp(Packet::parse(&data[..size]).unwrap());
    sleep(Duration::from_millis(500));
    while session.pop_rtp(None).is_some() {
        count += 1;
    }
    let size = session.generate_rtcp_report().unwrap_err().write_into(&mut data).unwrap();
    let Packet::Rr(report) = Packet::parse(&data[..size]).unwrap() else { unreachable!() };
    let block = report.report_blocks().next().unwrap();
    let off = (ntp as u32).wrapping_sub(block.last_sender_report_timestamp()) as i32;
    (count, block.fraction_lost(), f64::from(off) / 65536.0)
}

fn main() {
    let all: Vec<u16> = (0..100).collect();
    let overtaken: Vec<u16> = all.iter().map(|number| if number % 4 < 2 { *number } else { number ^ 1 }).collect();
    let lost: Vec<u16> = all.iter().copied().filter(|&number| number != 50).collect();
    let video = receive(&all, 5, 0.0);
    let (overtaken, lost, ahead) = (receive(&overtaken, 1, 0.0), receive(&lost, 1, 0.0), receive(&all, 1, 100.0));
    println!("frames of five packets: {} of 100 come out", video.0);
    println!("every fourth overtaken: {} of 100 come out", overtaken.0);
    println!("one of 100 lost: {} come out, {} of 256 told as lost", lost.0, lost.1);
    println!("sender's clock 100 s ahead: {} come out, its report off by {:.0} s", ahead.0, ahead.2);
    let told = (video.0, overtaken.0, lost.0, lost.1, ahead.0, ahead.2.round());
    std::process::exit((told != (20, 75, 99, 255, 100, 100.0)).into());
}
END
cargo run --quiet
