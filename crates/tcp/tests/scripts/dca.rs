//! TCP-DCA (Chen, Lee, Gerla, Sanadidi): the delay window, its timer, the repeated ACK, and the
//! sender's report of its cwnd.

use crate::{config, run_open, window};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{AckConfig, CwndIn, DcaConfig};

fn with(dca: DcaConfig) -> TcpConfig {
    TcpConfig { ack: AckConfig::Dca(dca), ..config() }
}

fn dca() -> TcpConfig {
    with(DcaConfig::default())
}

fn timestamps(dca: DcaConfig) -> TcpConfig {
    TcpConfig { timestamps: true, ..with(dca) }
}

// §III.A: "If data packets arrive in order, the receiver generates one cumulative ack for every w
// data packets"; w is "limited by the congestion window".
#[test]
fn one_ack_for_a_congestion_window() {
    run_open(
        &dca(),
        "1.000 < . 1:4001(4*1000) ack 1 win 4000
         1.000 > ack 4001
         1.100 < . 4001:8001(4*1000) ack 1 win 2999
         1.100 > ack 6001
         1.100 > ack 8001
         1.100 ? timer none",
    );
}

// The window in force is that of the latest segment.
#[test]
fn a_sender_that_has_halved_its_window_gets_its_ack_earlier() {
    run_open(
        &dca(),
        "1.000 < . 1:2001(2*1000) ack 1 win 8000
         1.010 < . 2001:3001(1000) ack 1 win 3000
         1.010 > ack 3001",
    );
}

#[test]
fn a_sender_with_less_than_a_segment_gets_an_ack_for_each() {
    run_open(
        &dca(),
        "1.000 < . 1:2001(2*1000) ack 1 win 0
         1.000 > ack 1001
         1.000 > ack 2001",
    );
}

/// Checks the segments that an ACK covers over this many hops, with a cwnd of 20 segments.
#[track_caller]
fn covers(config: &TcpConfig, hops: u8, at: &str, segments: u32) {
    let (before, end) = (segments - 1, segments * 1000 + 1);
    let last = end - 1000;
    run_open(
        config,
        &format!(
            "{at} hops {hops}
             {at} < . 1:{last}({before}*1000) ack 1 win 20000
             {at} ? acks 1
             {at} < . {last}:{end}(1000) ack 1 win 20000
             {at} > ack {end}"
        ),
    );
}

// Table I.
#[test]
fn the_hop_rule() {
    for (hops, segments) in [(1, 20), (3, 20), (4, 5), (9, 5), (10, 3), (30, 3)] {
        covers(&dca(), hops, "1.000", segments);
    }
}

#[test]
fn without_the_hop_rule_the_path_does_not_matter() {
    covers(&with(DcaConfig { hop_rule: false, ..DcaConfig::default() }), 12, "1.000", 20);
}

// §V.B: "sets the delay window limit to 5 when minimum RTT is beyond 80ms". The ACK of the
// handshake left at 0.1 s.
#[test]
fn the_delay_rule() {
    let both = DcaConfig { delay_rule: true, ..DcaConfig::default() };
    let delay_only = DcaConfig { hop_rule: false, ..both };
    for dca in [both, delay_only] {
        covers(&timestamps(dca), 1, "0.180", 20);
        covers(&timestamps(dca), 1, "0.181", 5);
    }
    covers(&timestamps(delay_only), 12, "0.181", 5);
}

#[test]
fn of_two_rules_the_smaller_window_counts() {
    let both = DcaConfig { delay_rule: true, ..DcaConfig::default() };
    covers(&timestamps(both), 12, "0.181", 3);
    covers(&timestamps(both), 5, "0.150", 5);
}

#[test]
fn the_delay_rule_follows_the_smallest_rtt() {
    let dca = DcaConfig { delay_rule: true, ..DcaConfig::default() };
    run_open(
        &timestamps(dca),
        "0.200 < . 1:1001(1000) ack 1 win 1000
         0.200 > ack 1001
         0.250 < . 1001:7001(6*1000) ack 1 win 20000
         0.250 ? acks 2
         0.750 > ack 7001",
    );
}

// §III: "a basic scheme (TCP-DCA) with a receiver delay window limit".
#[test]
fn a_fixed_limit_of_the_delay_window() {
    let limit =
        |limit| DcaConfig { hop_rule: false, window_limit: Some(limit), ..DcaConfig::default() };
    covers(&with(limit(2)), 1, "1.000", 2);
    covers(&with(limit(7)), 12, "1.000", 7);
    covers(&with(limit(50)), 12, "1.000", 20);
}

#[test]
fn merged_segments_count_by_their_size() {
    run_open(
        &dca(),
        "1.000 < . 1:2501(2500) ack 1 win 4000
         1.010 < . 2501:3501(1000) ack 1 win 4000
         1.010 > ack 3501",
    );
}

// Eq. 1 with β = 0.8, eq. 2 with α = 1.5: gaps of 10, 20, 10 and 10 ms average 11.28 ms.
#[test]
fn the_timer_waits_for_one_and_a_half_delay_windows() {
    run_open(
        &dca(),
        "1.000 < . 1:1001(1000) ack 1 win 4000
         1.010 < . 1001:2001(1000) ack 1
         1.030 < . 2001:3001(1000) ack 1
         1.040 < . 3001:4001(1000) ack 1
         1.040 > ack 4001
         1.050 < . 4001:5001(1000) ack 1
         1.050 ? timer 1.11768
         # The second segment does not restart it.
         1.060 < . 5001:6001(1000) ack 1
         1.11768 > ack 6001
         1.2 ? timer none",
    );
}

// "the receiver samples the inter-arrival time of any consecutively arrived data packets, not
// necessarily in-order packets".
#[test]
fn arrivals_out_of_order_are_sampled_too() {
    run_open(
        &dca(),
        "1.000 < . 1001:2001(1000) ack 1 win 4000
         1.000 > ack 1
         1.020 < . 1:1001(1000) ack 1
         1.020 > ack 2001
         1.040 < . 2001:3001(1000) ack 1
         1.040 ? timer 1.16
         1.160 > ack 3001",
    );
}

// "The receiver also generates an ack within 500 ms of the arrival of an unacknowledged data
// packet".
#[test]
fn no_ack_waits_longer_than_half_a_second() {
    run_open(
        &dca(),
        "1.000 < . 1:1001(1000) ack 1 win 20000
         1.200 < . 1001:2001(1000) ack 1
         1.500 > ack 2001
         1.600 < . 2001:3001(1000) ack 1
         1.600 ? timer 2.1
         2.100 > ack 3001",
    );
}

// "If an out of order packet is received, or a packet that fills a gap [...] the receiver acks
// immediately".
#[test]
fn a_gap_and_its_repair_are_acknowledged_at_once_and_the_count_starts_again() {
    run_open(
        &dca(),
        "1.000 < . 1:1001(1000) ack 1 win 3000
         1.010 < . 2001:3001(1000) ack 1
         1.010 > ack 1001
         1.010 ? timer none
         1.020 < . 1001:2001(1000) ack 1
         1.020 > ack 3001
         1.030 < . 3001:5001(2*1000) ack 1
         1.030 ? acks 3
         1.030 < . 5001:6001(1000) ack 1
         1.030 > ack 6001",
    );
}

#[test]
fn a_gap_filled_in_part_is_acknowledged_at_once() {
    run_open(
        &dca(),
        "1.000 < . 2001:3001(1000) ack 1 win 20000
         1.000 > ack 1
         1.020 < . 1:1001(1000) ack 1
         1.020 > ack 1001",
    );
}

#[test]
fn a_duplicate_is_acknowledged_at_once() {
    run_open(
        &dca(),
        "1.000 < . 1:1001(1000) ack 1 win 20000
         1.100 < . 1:1001(1000) ack 1
         1.100 > ack 1001
         1.100 ? timer none",
    );
}

#[test]
fn data_carries_the_ack() {
    run_open(
        &dca(),
        "1.000 < . 1:1001(1000) ack 1 win 20000
         1.050 write 500
         1.050 > . 1:501(500) ack 1001
         1.050 < ack 501
         1.050 ? timer none",
    );
}

fn repeating() -> TcpConfig {
    timestamps(DcaConfig { repeat_acks: true, ..DcaConfig::default() })
}

// §IV.D. At most six times; the interval doubles.
#[test]
fn an_ack_that_nothing_follows_is_repeated_with_back_off_and_not_for_ever() {
    run_open(
        &repeating(),
        "0.200 < . 1:1001(1000) ack 1 win 1000
         0.200 > ack 1001
         1.200 > ack 1001
         3.200 > ack 1001
         7.200 > ack 1001
         15.200 > ack 1001
         31.200 > ack 1001
         63.200 > ack 1001
         900.0 ? timer none",
    );
}

#[test]
fn data_stops_the_repetition_and_resets_its_back_off() {
    run_open(
        &repeating(),
        "0.200 < . 1:1001(1000) ack 1 win 1000
         0.200 > ack 1001
         1.200 > ack 1001
         1.300 < . 1001:2001(1000) ack 1 win 2000
         # The delay timer takes over.
         1.300 ? timer 1.8
         1.800 > ack 2001
         2.800 > ack 2001
         2.900 < . 2001:4001(2*1000) ack 1
         2.900 > ack 4001
         3.900 > ack 4001",
    );
}

// Samples of 400 and 80 ms: SRTT 360 ms; RTTVAR 220 ms with the SRTT that includes the sample.
#[test]
fn the_repetition_timer_is_the_rto_of_the_receiver() {
    run_open(
        &repeating(),
        "0.500 < . 1:1001(1000) ack 1 win 1000
         0.500 > ack 1001
         0.500 ? timer 1.7
         0.580 < . 1001:2001(1000) ack 1 win 1000
         0.580 > ack 2001
         0.580 ? timer 1.82
         1.820 > ack 2001",
    );
}

#[test]
fn after_fin_nothing_is_repeated() {
    run_open(
        &repeating(),
        "0.200 < F. 1:1001(1000) ack 1 win 1000
         0.200 > ack 1002
         0.200 ? timer none",
    );
}

#[test]
fn a_receiver_without_data_repeats_nothing() {
    run_open(
        &repeating(),
        "0.200 < ack 1
         0.200 ? timer none",
    );
}

// "the sender reuses the advertised window field in data packet header".
#[test]
fn the_sender_tells_its_cwnd_in_the_window_field_of_data() {
    let config = TcpConfig { ack: dca().ack, ..window(2) };
    run_open(
        &config,
        "0.200 write 10000
         0.200 > . 1:2001(2*1000) ack 1 win 2000
         0.300 < ack 2001
         0.300 > . 2001:5001(3*1000) ack 1 win 3000
         0.400 < . 1:1001(1000) ack 2001 win 0
         0.400 > . 5001:5001(0) ack 1001 win 65535",
    );
}

#[test]
fn the_window_field_tells_at_most_what_it_holds() {
    let config = TcpConfig { ack: dca().ack, ..window(70) };
    run_open(&config, "0.200 write 1000\n 0.200 > P. 1:1001(1000) ack 1 win 65535");
}

// §VI: "imbed the congestion window size in an option field".
#[test]
fn the_sender_may_tell_its_cwnd_in_an_option() {
    let dca = DcaConfig { cwnd_in: CwndIn::Option, ..DcaConfig::default() };
    let config = TcpConfig { ack: AckConfig::Dca(dca), ..window(70) };
    run_open(
        &config,
        "0.200 write 1000
         0.200 > P. 1:1001(1000) ack 1 win 65535 <cwnd 70000>
         1.000 < . 1:2001(2*1000) ack 1001 win 60000 <cwnd 4000>
         # The last that was told counts, and the window field is a window.
         1.010 < . 2001:4001(2*1000) ack 1001 win 1000 <>
         1.010 > ack 4001 win 65535 <>
         1.010 ? peerwnd 1000",
    );
}

#[test]
fn the_option_gives_way_to_sack_blocks() {
    let dca = DcaConfig { cwnd_in: CwndIn::Option, ..DcaConfig::default() };
    let config = TcpConfig {
        recovery: airtcp_tcp::config::Recovery::Sack,
        ack: AckConfig::Dca(dca),
        ..window(2)
    };
    run_open(
        &config,
        "1.000 < . 1001:2001(1000) ack 1 <>
         1.000 > ack 1
         1.000 < . 3001:4001(1000) ack 1 <>
         1.000 > ack 1
         1.000 < . 5001:6001(1000) ack 1 <>
         1.000 > ack 1
         1.100 write 500
         1.100 > P. 1:501(500) ack 1 <sack 5001:6001 3001:4001 1001:2001,cwnd 2000>
         1.200 < . 7001:8001(1000) ack 501 <>
         1.200 > ack 1
         1.300 write 500
         1.300 > P. 501:1001(500) ack 1 <sack 7001:8001 5001:6001 3001:4001 1001:2001>",
    );
}
