//! The receiving half: reassembly, acknowledgements, the advertised window, timestamps (RFC 9293
//! §3.8.6, §3.10.7.4; RFC 5681 §4.2; RFC 2018; RFC 7323).

use crate::{config, run, run_open};
use airtcp_core::{Bytes, Duration};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{AckConfig, Recovery};

fn delayed(segments: u32) -> TcpConfig {
    let timeout = Duration::from_millis(200);
    TcpConfig { ack: AckConfig::Delayed { segments, timeout, quick: 0 }, ..config() }
}

fn sack() -> TcpConfig {
    TcpConfig { recovery: Recovery::Sack, ..config() }
}

fn buffer(bytes: u64) -> TcpConfig {
    TcpConfig { receive_buffer: Bytes(bytes), ..config() }
}

// RFC 5681 §4.2.
#[test]
fn out_of_order_data_is_acknowledged_at_once_and_a_filled_gap_too() {
    for config in [config(), delayed(2), delayed(4)] {
        run_open(
            &config,
            "1.000 < . 1001:2001(1000) ack 1
             1.000 > . 1:1(0) ack 1
             1.010 < . 3001:4001(1000) ack 1
             1.010 > . 1:1(0) ack 1
             1.020 < . 1:1001(1000) ack 1
             1.020 > . 1:1(0) ack 2001
             1.030 < . 2001:3001(1000) ack 1
             1.030 > . 1:1(0) ack 4001
             1.030 ? useless 0",
        );
    }
}

#[test]
fn a_duplicate_is_acknowledged_at_once() {
    run_open(
        &delayed(2),
        "1.000 < . 1:2001(2*1000) ack 1
         1.000 > ack 2001
         1.100 < . 1:1001(1000) ack 1
         1.100 > ack 2001
         1.100 ? useless 1",
    );
}

#[test]
fn overlapping_segments_deliver_each_byte_once() {
    run_open(
        &config(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         1.100 < . 501:1501(1000) ack 1
         1.100 > ack 1501
         1.200 < . 2001:3001(1000) ack 1
         1.200 > ack 1501
         1.300 < . 2501:3501(1000) ack 1
         1.300 > ack 1501
         1.400 < . 1001:4001(3000) ack 1
         1.400 > ack 4001",
    );
}

// M-TCP §2.2: its acknowledgements, reduced by one byte, make retransmissions start one byte early.
#[test]
fn a_segment_that_starts_one_byte_early_is_trimmed() {
    run_open(
        &config(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         1.100 < . 1000:2000(1000) ack 1
         1.100 > ack 2000",
    );
}

// RFC 1122 §4.2.3.2.
#[test]
fn delayed_ack_every_second_segment_or_after_the_timer() {
    run_open(
        &delayed(2),
        "1.000 < . 1:1001(1000) ack 1
         1.010 < . 1001:2001(1000) ack 1
         1.010 > . 1:1(0) ack 2001
         1.010 ? timer none
         2.000 < . 2001:3001(1000) ack 1
         2.000 ? timer 2.2
         2.200 > . 1:1(0) ack 3001
         3.000 < . 3001:3101(100) ack 1
         3.100 < . 3101:3201(100) ack 1
         3.200 > . 1:1(0) ack 3201",
    );
}

// An application that reads every segment as it comes gives no reason for a window update.
#[test]
fn delayed_ack_of_four_segments_is_not_preempted_by_reading() {
    run_open(
        &delayed(4),
        "1.000 < . 1:3001(3*1000) ack 1
         1.050 < . 3001:4001(1000) ack 1
         1.050 > . 1:1(0) ack 4001",
    );
}

#[test]
fn data_carries_the_delayed_ack() {
    run_open(
        &delayed(2),
        "1.000 < . 1:1001(1000) ack 1
         1.050 write 500
         1.050 > . 1:501(500) ack 1001
         1.050 < ack 501
         1.050 ? timer none",
    );
}

// RFC 2018 §4: the block of the segment that triggered the ACK first, then the most recent.
#[test]
fn sack_blocks_most_recent_first_and_at_most_four() {
    run_open(
        &sack(),
        "1.000 < . 1001:2001(1000) ack 1 <>
         1.000 > . 1:1(0) ack 1 <sack 1001:2001>
         1.010 < . 3001:4001(1000) ack 1 <>
         1.010 > . 1:1(0) ack 1 <sack 3001:4001 1001:2001>
         1.020 < . 5001:6001(1000) ack 1 <>
         1.020 > . 1:1(0) ack 1 <sack 5001:6001 3001:4001 1001:2001>
         1.030 < . 2001:2501(500) ack 1 <>
         1.030 > . 1:1(0) ack 1 <sack 1001:2501 5001:6001 3001:4001>
         1.040 < . 7001:8001(1000) ack 1 <>
         1.040 > . 1:1(0) ack 1 <sack 7001:8001 1001:2501 5001:6001 3001:4001>
         1.050 < . 9001:10001(1000) ack 1 <>
         1.050 > . 1:1(0) ack 1 <sack 9001:10001 7001:8001 1001:2501 5001:6001>
         1.060 < . 1:1001(1000) ack 1 <>
         1.060 > . 1:1(0) ack 2501 <sack 9001:10001 7001:8001 5001:6001 3001:4001>",
    );
}

#[test]
fn three_sack_blocks_beside_timestamps() {
    run_open(
        &TcpConfig { timestamps: true, ..sack() },
        "1.000 < . 1001:2001(1000) ack 1
         1.000 > . 1:1(0) ack 1
         1.000 < . 3001:4001(1000) ack 1
         1.000 > . 1:1(0) ack 1
         1.000 < . 5001:6001(1000) ack 1
         1.000 > . 1:1(0) ack 1
         1.000 < . 7001:8001(1000) ack 1 <TS val 1000 ecr 1000>
         1.000 > . 1:1(0) ack 1 <TS val 1000 ecr 100,sack 7001:8001 5001:6001 3001:4001>",
    );
}

// RFC 9293 §3.10.7.4: data beyond the window is not taken.
#[test]
fn data_beyond_the_window_is_trimmed() {
    run_open(
        &buffer(3000),
        "1.000 < . 1:4001(4000) ack 1 noread
         1.000 > . 1:1(0) ack 3001 win 0
         1.000 ? readable 3000",
    );
}

// RFC 9293 §3.8.6: the right edge does not move left; §3.8.6.2.2: nor right by little.
#[test]
fn the_window_closes_with_unread_data_and_reopens_by_half_the_buffer() {
    run_open(
        &buffer(4000),
        "1.000 < . 1:1001(1000) ack 1 noread
         1.000 > . 1:1(0) ack 1001 win 3000
         1.010 < . 1001:4001(3*1000) ack 1 noread
         1.010 > . 1:1(0) ack 2001 win 2000
         1.010 > . 1:1(0) ack 3001 win 1000
         1.010 > . 1:1(0) ack 4001 win 0
         2.000 read 999
         2.100 read 1000
         2.200 read 1
         2.200 > . 1:1(0) ack 4001 win 2000",
    );
}

#[test]
fn a_probe_of_a_closed_window_is_answered_and_not_taken() {
    run_open(
        &buffer(2000),
        "1.000 < . 1:2001(2*1000) ack 1 noread
         1.000 > . 1:1(0) ack 1001 win 1000
         1.000 > . 1:1(0) ack 2001 win 0
         2.000 < . 2001:2002(1) ack 1 noread
         2.000 > . 1:1(0) ack 2001 win 0
         2.000 ? readable 2000",
    );
}

// RFC 9293 §3.8.6.2.2: small reads open the window in steps of min(MSS, half the buffer) only.
#[test]
fn the_receiver_avoids_silly_windows() {
    run_open(
        &buffer(10_000),
        "1.000 < . 1:1001(1000) ack 1 noread
         1.000 > . 1:1(0) ack 1001 win 9000
         1.100 read 400
         1.200 < . 1001:1101(100) ack 1 noread
         1.200 > . 1:1(0) ack 1101 win 8900
         1.300 read 700
         1.400 < . 1101:1201(100) ack 1 noread
         1.400 > . 1:1(0) ack 1201 win 9900",
    );
}

// RFC 7323 §5.3, R1.
#[test]
fn paws_drops_and_answers_an_old_timestamp() {
    run_open(
        &TcpConfig { timestamps: true, ..config() },
        "1.000 < . 1:1001(1000) ack 1 <TS val 1000 ecr 100>
         1.000 > . 1:1(0) ack 1001 <TS val 1000 ecr 1000>
         1.100 < . 1001:2001(1000) ack 1 <TS val 999 ecr 100>
         1.100 > . 1:1(0) ack 1001 <TS val 1100 ecr 1000>
         1.200 < . 1001:2001(1000) ack 1 <TS val 1000 ecr 100>
         1.200 > . 1:1(0) ack 2001 <TS val 1200 ecr 1000>",
    );
}

// RFC 7323 §5.3 R3 comes after the check of the acknowledgement (RFC 9293 §3.10.7.4): what acknowledges
// data never sent leaves TS.Recent alone, or everything after it would be old.
#[test]
fn a_segment_that_acknowledges_too_much_leaves_no_timestamp() {
    run_open(
        &TcpConfig { timestamps: true, ..config() },
        "1.000 < . 1:1001(1000) ack 1 <TS val 1000 ecr 100>
         1.000 > . 1:1(0) ack 1001 <TS val 1000 ecr 1000>
         1.100 < . 1001:2001(1000) ack 9999 <TS val 2000000 ecr 100>
         1.100 > . 1:1(0) ack 1001 <TS val 1100 ecr 1000>
         1.200 < . 1001:2001(1000) ack 1 <TS val 1001 ecr 100>
         1.200 > . 1:1(0) ack 2001 <TS val 1200 ecr 1001>",
    );
}

// Otherwise two hosts behind a network that reorders ACKs answer each other forever.
#[test]
fn an_ack_with_an_old_timestamp_gets_no_answer() {
    run_open(
        &TcpConfig { timestamps: true, ..config() },
        "1.000 < . 1:1001(1000) ack 1 <TS val 1000 ecr 100>
         1.000 > . 1:1(0) ack 1001 <TS val 1000 ecr 1000>
         1.100 < . 1001:1001(0) ack 1 <TS val 999 ecr 100>
         1.200 < . 1001:2001(1000) ack 1 <TS val 1000 ecr 100>
         1.200 > . 1:1(0) ack 2001 <TS val 1200 ecr 1000>",
    );
}

// A peer that was shown a smaller window than before numbers its ACKs below what we expect. 4.4BSD
// does so, and also takes them.
#[test]
fn the_acknowledgement_of_an_old_segment_counts() {
    run_open(
        &config(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > . 1:1(0) ack 1001
         1.100 write 1000
         1.100 > P 1:1001(1000) ack 1001
         1.200 < . 501:501(0) ack 1001
         1.200 > . 1001:1001(0) ack 1001
         1.200 ? flight 0",
    );
}

#[test]
fn paws_spares_rst() {
    run_open(
        &TcpConfig { timestamps: true, ..config() },
        "1.000 < R 1:1(0) <TS val 50 ecr 0>
         1.000 ? state Closed aborted Reset",
    );
}

// RFC 7323 §4.3: TS.Recent comes from the segment that covers Last.ACK.sent. That is the earliest
// of those that a delayed ACK answers, and never data above a gap.
#[test]
fn the_echo_is_of_the_earliest_segment_not_yet_acknowledged() {
    run_open(
        &TcpConfig { timestamps: true, ..delayed(2) },
        "1.000 < . 1:1001(1000) ack 1 <TS val 1000 ecr 100>
         1.020 < . 1001:2001(1000) ack 1 <TS val 1020 ecr 100>
         1.020 > . 1:1(0) ack 2001 <TS val 1020 ecr 1000>
         1.100 < . 3001:4001(1000) ack 1 <TS val 1100 ecr 100>
         1.100 > . 1:1(0) ack 2001 <TS val 1100 ecr 1000>
         1.200 < . 2001:3001(1000) ack 1 <TS val 1200 ecr 100>
         1.200 > . 1:1(0) ack 4001 <TS val 1200 ecr 1200>",
    );
}

#[test]
fn the_window_is_scaled_down_and_never_overstated() {
    let config = TcpConfig { window_scaling: true, receive_buffer: Bytes(200_001), ..config() };
    run(
        &config,
        "0.000 connect
         0.000 > S 0:0(0) win 65535 <mss 1000,wscale 2>
         0.100 < S 0:0(0) ack 1 win 1000 <mss 1000,wscale 0>
         0.100 > . 1:1(0) ack 1 win 50000
         1.000 < . 1:1002(1001) ack 1 noread
         1.000 > . 1:1(0) ack 1002 win 49750",
    );
}
