#!/bin/sh
# The Rust crate interceptor 0.17.2, of webrtc-rs, tells the sender of a stream wrong losses in both of its reports. In
# receiver reports (receiver_stream.rs) it remembers packets by their sequence number modulo 128, the number of words
# of its bit map, instead of 8192, the number of bits. So all of a report's losses are judged by its last 128 packets:
# an outage before them is not told, one among them is told several times over. And a packet that arrives twice makes
# transport-wide feedback (twcc/mod.rs) go once around all sequence numbers to come to it again: whatever arrived after
# it is lost by that feedback. No error is returned. RFC 3550, 6.4.1 and A.3: packets expected less those received;
# draft-holmer-rmcat-transport-wide-cc-extensions-01, 3.1: one status for each sequence number from the base on. By its
# source github.com/pion/interceptor v0.1.51, which it was made after, has 8192 and leaves duplicates out.
#
# Seen, 100 of 1000 packets lost in a row, from the 101st on: 0 lost; from the 851st: 600. Feedback on ten packets, the
# first twice: 1 received, 9 lost.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat >"$dir/Cargo.toml" <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2024"
[dependencies]
interceptor = "=0.17.2"
rtcp = "=0.17.1"
rtp = "=0.17.1"
tokio = { version = "1", features = ["macros", "rt", "time"] }
[profile.dev]
debug = false
[workspace]
END
cat >"$dir/src/main.rs" <<'END'
use std::time::Duration;

use interceptor::InterceptorBuilder;
use interceptor::mock::mock_stream::MockStream;
use interceptor::report::receiver::ReceiverReport;
use interceptor::stream_info::StreamInfo;
use interceptor::twcc::Recorder;
use rtcp::transport_feedbacks::transport_layer_cc::{PacketStatusChunk, SymbolTypeTcc, TransportLayerCc};

const STREAM: u32 = 7;
const COUNT: u16 = 1000;
const LOST: u16 = 100;

/// The packets lost by a receiver report on `COUNT` packets, of which some are lost in a row.
async fn reported(first: u16) -> u32 {
    let interval = Duration::from_millis(500);
    let reporter = ReceiverReport::builder().with_interval(interval).build("").unwrap();
    let info = StreamInfo { ssrc: STREAM, clock_rate: 90_000, ..Default::default() };
    let stream = MockStream::new(&info, reporter).await;
    stream.written_rtcp().await.unwrap(); // the first comes at once
    for sequence_number in (1..=COUNT).filter(|number| !(first..first + LOST).contains(number)) {
        let header = rtp::header::Header { version: 2, ssrc: STREAM, sequence_number, ..Default::default() };
        stream.receive_rtp(rtp::packet::Packet { header, ..Default::default() }).await;
        stream.read_rtp().await.unwrap().unwrap();
    }
    let packets = stream.written_rtcp().await.unwrap();
    let report: &rtcp::receiver_report::ReceiverReport = packets[0].as_any().downcast_ref().unwrap();
    assert_eq!(report.reports[0].last_sequence_number, u32::from(COUNT), "too slow");
    report.reports[0].total_lost
}

/// How many packets are received and lost by the feedback on these.
fn feedback(numbers: &[u16]) -> (usize, usize) {
    let mut recorder = Recorder::new(1);
    for (index, &number) in numbers.iter().enumerate() {
        recorder.record(STREAM, number, 1_000_000 + 1000 * index as i64);
    }
    let packets = recorder.build_feedback_packet();
    assert_eq!(packets.len(), 1);
    let told: &TransportLayerCc = packets[0].as_any().downcast_ref().unwrap();
    assert_eq!(told.base_sequence_number, numbers[0]);
    let symbols = told.packet_chunks.iter().flat_map(|chunk| match chunk {
        PacketStatusChunk::RunLengthChunk(run) => vec![run.packet_status_symbol; run.run_length.into()],
        PacketStatusChunk::StatusVectorChunk(vector) => vector.symbol_list.clone(),
    });
    let symbols: Vec<_> = symbols.take(told.packet_status_count.into()).collect();
    let lost = symbols.iter().filter(|&&symbol| symbol == SymbolTypeTcc::PacketNotReceived).count();
    (symbols.len() - lost, lost)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (early, late) = (reported(101).await, reported(851).await);
    println!("{LOST} of {COUNT} packets lost, early: {early} by the receiver report; late: {late}");
    let once: Vec<u16> = (5000..5010).collect();
    let twice = [&once[..1], &once].concat();
    let (once, twice) = (feedback(&once), feedback(&twice));
    println!("ten packets: {once:?} received and lost by the feedback; the first of them twice: {twice:?}");
    assert_eq!((early, late, once, twice), (0, 600, (10, 0), (1, 9)), "it has changed");
}
END
CARGO_TARGET_DIR=$dir/target cargo run --quiet --manifest-path "$dir/Cargo.toml"
