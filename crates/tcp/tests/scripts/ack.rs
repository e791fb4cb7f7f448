//! ACK policies other than delayed ACKs and TCP-DCA, and rules common to all policies.

use crate::{config, run_open};
use airtcp_core::Duration;
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{AckConfig, AdaConfig, DaaConfig, DcaConfig};

fn with(ack: AckConfig) -> TcpConfig {
    TcpConfig { ack, ..config() }
}

fn daa(spacing_factor: f64) -> TcpConfig {
    with(AckConfig::Daa(DaaConfig { spacing_factor }))
}

fn ada() -> TcpConfig {
    with(AckConfig::Ada(AdaConfig::default()))
}

fn altman() -> TcpConfig {
    with(AckConfig::Altman { timeout: Duration::from_millis(100) })
}

/// Script of segments arriving every 10 ms from 1 s on, with ACKs after these of them, by number
/// from 1.
fn acked_with(acked: &[u32], segments: u32) -> String {
    let mut script = String::new();
    for n in 1..=segments {
        let (at, seq, end) = (990 + n * 10, (n - 1) * 1000 + 1, n * 1000 + 1);
        let at = format!("{}.{:03}", at / 1000, at % 1000);
        script += &format!("{at} < . {seq}:{end}(1000) ack 1\n");
        if acked.contains(&n) {
            script += &format!("{at} > ack {end}\n");
        }
        script += &format!("{at} ? flight 0\n");
    }
    script
}

/// RFC 5681 §4.2, for every policy. `first`: when a policy acknowledges a lone segment.
#[test]
fn every_policy_answers_gaps_repairs_and_duplicates_at_once() {
    let delayed = AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(200), quick: 0 };
    for (config, first) in [
        (config(), "1.000"),
        (with(delayed), "1.200"),
        (with(AckConfig::Dca(DcaConfig::default())), "1.500"),
        (daa(1.0), "1.000"),
        (ada(), "1.500"),
        (altman(), "1.000"),
    ] {
        run_open(
            &config,
            &format!(
                "1.000 < . 1:1001(1000) ack 1
                 {first} > ack 1001
                 2.000 < . 1:1001(1000) ack 1
                 2.000 > ack 1001
                 2.010 < . 2001:3001(1000) ack 1
                 2.010 > ack 1001
                 2.020 < . 1001:2001(1000) ack 1
                 2.020 > ack 3001
                 2.020 ? timer none"
            ),
        );
    }
}

// Linux's quick ACKs: the sender's window is small at first, and after what may have been a lost ACK.
// The duplicate's own ACK is one of them.
#[test]
fn the_first_segments_and_those_after_a_duplicate_are_acknowledged_at_once() {
    let delayed = AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(200), quick: 2 };
    run_open(
        &with(delayed),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         1.010 < . 1001:2001(1000) ack 1
         1.010 > ack 2001
         1.020 < . 2001:3001(1000) ack 1
         1.220 > ack 3001
         2.000 < . 2001:3001(1000) ack 1
         2.000 > ack 3001
         2.010 < . 3001:4001(1000) ack 1
         2.010 > ack 4001
         2.020 < . 4001:5001(1000) ack 1
         2.220 > ack 5001",
    );
}

// Linux: `tcp_event_data_recv`. The RTO is 1 s.
#[test]
fn the_first_segments_after_a_silence_are_acknowledged_at_once() {
    let delayed = AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(200), quick: 2 };
    run_open(
        &with(delayed),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         1.010 < . 1001:2001(1000) ack 1
         1.010 > ack 2001
         2.010 < . 2001:3001(1000) ack 1
         2.210 > ack 3001
         3.011 < . 3001:4001(1000) ack 1
         3.011 > ack 4001
         3.020 < . 4001:5001(1000) ack 1
         3.020 > ack 5001
         3.030 < . 5001:6001(1000) ack 1
         3.230 > ack 6001",
    );
}

// TCP-DAA: one segment at first, three tenths more with each, up to four.
#[test]
fn daa_grows_its_delay_window_slowly_at_the_start() {
    run_open(&daa(10.0), &acked_with(&[1, 2, 3, 4, 6, 8, 11, 15, 19], 19));
}

#[test]
fn daa_falls_to_two_at_a_loss_and_grows_by_one_a_segment() {
    run_open(
        &daa(10.0),
        "1.000 < . 1001:2001(1000) ack 1
         1.000 > ack 1
         1.010 < . 1:1001(1000) ack 1
         1.010 > ack 2001
         1.020 < . 2001:3001(1000) ack 1
         1.030 < . 3001:4001(1000) ack 1
         1.030 > ack 4001
         1.040 < . 4001:7001(3*1000) ack 1
         1.050 < . 7001:8001(1000) ack 1
         1.050 > ack 8001",
    );
}

#[test]
fn a_duplicate_is_no_loss_to_daa() {
    run_open(
        &daa(10.0),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         1.010 < . 1:1001(1000) ack 1
         1.010 > ack 1001
         1.020 < . 1001:2001(1000) ack 1
         1.020 > ack 2001",
    );
}

// α = 0.75: gaps of 10, 10, 10, 10 and 30 ms average 15 ms.
#[test]
fn daa_waits_for_the_next_segment_as_long_as_it_should_take_and_then_falls_to_two() {
    run_open(
        &daa(2.2),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         1.010 < . 1001:2001(1000) ack 1
         1.010 > ack 2001
         1.020 < . 2001:3001(1000) ack 1
         1.020 > ack 3001
         1.030 < . 3001:4001(1000) ack 1
         1.030 > ack 4001
         1.040 < . 4001:5001(1000) ack 1
         1.040 ? timer 1.062
         1.062 > ack 5001
         1.070 < . 5001:6001(1000) ack 1
         1.070 ? timer 1.103
         1.080 < . 6001:7001(1000) ack 1
         1.080 > ack 7001",
    );
}

#[test]
fn the_timer_of_daa_starts_anew_with_each_segment_but_not_beyond_half_a_second() {
    run_open(
        &daa(10.0),
        "1.000 < . 1001:2001(1000) ack 1
         1.000 > ack 1
         1.050 < . 1:1001(1000) ack 1
         1.050 > ack 2001
         1.100 < . 2001:4001(2*1000) ack 1
         1.100 > ack 4001
         1.200 < . 4001:5001(1000) ack 1
         1.200 ? timer 1.45
         1.300 < . 5001:6001(1000) ack 1
         1.300 ? timer 1.7
         1.400 < . 6001:7001(1000) ack 1
         1.700 > ack 7001",
    );
}

// TCP-ADA: an ACK when the burst has ended, after 1.5 inter-arrival times.
#[test]
fn ada_acknowledges_a_burst_when_it_has_ended() {
    run_open(
        &ada(),
        "1.000 < . 1:1001(1000) ack 1
         1.010 < . 1001:2001(1000) ack 1
         1.010 ? timer 1.025
         1.020 < . 2001:3001(1000) ack 1
         1.030 < . 3001:4001(1000) ack 1
         1.045 > ack 4001
         1.045 ? acks 2",
    );
}

#[test]
fn ada_acknowledges_an_endless_burst_every_half_second() {
    run_open(
        &ada(),
        "1.000 < . 1:1001(1000) ack 1
         1.100 < . 1001:2001(1000) ack 1
         1.200 < . 2001:3001(1000) ack 1
         1.300 < . 3001:4001(1000) ack 1
         1.400 < . 4001:5001(1000) ack 1
         1.500 > ack 5001",
    );
}

// Altman and Jiménez 2003: one segment, then two, three and from the ninth on four.
#[test]
fn altman_and_jimenez_cover_more_segments_the_longer_the_connection_lasts() {
    run_open(&altman(), &acked_with(&[1, 3, 6, 10, 14, 18], 18));
}

#[test]
fn altman_and_jimenez_wait_for_a_tenth_of_a_second() {
    run_open(
        &altman(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         1.010 < . 1001:2001(1000) ack 1
         1.110 > ack 2001",
    );
}
