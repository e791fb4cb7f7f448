//! TCP Karak (Almobaideen and Al-maitah 2014, §3): the window after a time-out, by the duplicate
//! ACKs before it.

use crate::{run_open, window};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{Congestion, KarakConfig};

fn karak(segments: u32) -> TcpConfig {
    let congestion = Congestion::Karak(KarakConfig::default());
    TcpConfig { congestion, ..window(segments) }
}

/// 16 segments are out; `script` begins at 0.3 s, RTO 1 s.
#[track_caller]
fn run_16(config: &TcpConfig, script: &str) {
    run_open(
        config,
        &format!(
            "0.200 write 16000
             0.200 > . 1:16001(16*1000) ack 1
             {script}"
        ),
    );
}

#[test]
fn no_duplicate_means_congestion() {
    run_16(
        &karak(16),
        "1.200 > . 1:1001(1000) ack 1
         1.200 ? cwnd 1000 ssthresh 8000 fewdups 0 larger 0",
    );
}

#[test]
fn after_one_duplicate_an_eighth() {
    run_16(
        &karak(16),
        "0.300 < ack 1
         1.200 > . 1:2001(2*1000) ack 1
         1.200 ? cwnd 2000 ssthresh 8000 fast 0 fewdups 1 larger 1
         # Slow start, from there to ssthresh.
         1.300 < ack 1001
         1.300 > . 2001:4001(2*1000) ack 1
         1.300 ? cwnd 3000",
    );
}

#[test]
fn after_two_duplicates_a_quarter() {
    run_16(
        &karak(16),
        "0.300 < ack 1 x2
         1.200 > . 1:4001(4*1000) ack 1
         1.200 ? cwnd 4000 ssthresh 8000 fast 0 fewdups 1 larger 1",
    );
}

#[test]
fn three_duplicates_are_a_fast_retransmit_and_a_timeout_in_it_starts_from_one_segment() {
    run_16(
        &karak(16),
        "0.300 < ack 1 x3
         0.300 > . 1:1001(1000) ack 1
         0.300 ? cwnd 11000 ssthresh 8000 fast 1
         1.300 > . 1:1001(1000) ack 1
         1.300 ? cwnd 1000 ssthresh 8000",
    );
}

#[test]
fn a_second_timeout_in_a_row_starts_from_one_segment() {
    run_16(
        &karak(16),
        "0.300 < ack 1 x2
         1.200 > . 1:4001(4*1000) ack 1
         3.200 > . 1:1001(1000) ack 1
         3.200 ? cwnd 1000 ssthresh 8000",
    );
}

#[test]
fn duplicates_before_the_last_new_ack_do_not_count() {
    run_16(
        &karak(16),
        "0.300 < ack 1 x2
         0.400 < ack 1001
         1.400 > . 1001:2001(1000) ack 1
         1.400 ? cwnd 1000",
    );
}

#[test]
fn duplicates_after_the_end_of_recovery_count_anew() {
    run_16(
        &karak(16),
        "0.300 < ack 1 x3
         0.300 > . 1:1001(1000) ack 1
         0.400 write 8000
         0.500 < ack 16001
         # One segment, then growth: 8 segments in flight.
         0.500 > . 16001:18001(2*1000) ack 1
         0.600 < ack 18001
         0.600 > . 18001:21001(3*1000) ack 1
         0.700 < ack 18001 x2
         1.600 > . 18001:19001(1000) ack 1
         1.600 ? ssthresh 2000 cwnd 1000",
    );
}

#[test]
fn an_application_limited_window_counts_as_far_as_it_was_used() {
    run_open(
        &karak(64),
        "0.200 write 10000
         0.200 > . 1:10001(10*1000) ack 1
         0.300 < ack 1 x2
         1.200 > . 1:4001(4*1000) ack 1
         1.200 ? cwnd 4000 ssthresh 5000",
    );
}

// §3: "the first power of two value higher than the one eighth or one quarter points".
#[test]
fn strict_rounding_raises_two_segments_to_four() {
    let congestion = Congestion::Karak(KarakConfig { strict: true, ..KarakConfig::default() });
    run_16(
        &TcpConfig { congestion, ..window(16) },
        "0.300 < ack 1
         1.200 > . 1:4001(4*1000) ack 1
         1.200 ? cwnd 4000 ssthresh 8000",
    );
}

#[test]
fn with_a_limit_of_none_it_is_newreno_that_counts() {
    let config = KarakConfig { limit: Some(0), ..KarakConfig::default() };
    run_16(
        &TcpConfig { congestion: Congestion::Karak(config), ..window(16) },
        "0.300 < ack 1
         1.200 > . 1:1001(1000) ack 1
         1.200 ? cwnd 1000 ssthresh 8000 fewdups 1 larger 1",
    );
}
