//! Fast retransmit and recovery: Tahoe, Reno, NewReno (RFC 5681 §3.2, RFC 6582) and SACK (RFC
//! 6675).

use crate::{NEWRENO, config, run_open, window};
use airtcp_core::Bytes;
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{NewRenoConfig, Recovery};

fn with(recovery: Recovery, n: u32) -> TcpConfig {
    TcpConfig { recovery, ..window(n) }
}

fn reno(avoid_multi_fr: bool) -> TcpConfig {
    with(Recovery::Reno { avoid_multi_fr }, 10)
}

fn sack(n: u32) -> TcpConfig {
    with(Recovery::Sack, n)
}

/// Ten segments out at 0.2 s, ten more to send.
const TEN: &str = "0.2 write 20000\n 0.2 > . 1:10001(10*1000) ack 1\n";

fn ten(script: &str) -> String {
    format!("{TEN}{script}")
}

// RFC 5681 §3.2 step 2; packetdrill's fr-4pkt.
#[test]
fn three_duplicates_retransmit_at_once() {
    for recovery in [
        Recovery::Tahoe { avoid_multi_fr: false },
        Recovery::Reno { avoid_multi_fr: false },
        Recovery::Reno { avoid_multi_fr: true },
        NEWRENO,
    ] {
        run_open(
            &with(recovery, 4),
            "0.2 write 4000
             0.2 > . 1:4001(4*1000) ack 1
             0.3 < ack 1 x2
             0.3 ? fast 0
             0.31 < ack 1
             0.31 > . 1:1001(1000) ack 1
             0.31 ? fast 1 ssthresh 2000 reductions 1
             0.4 < ack 4001
             0.4 ? timer none",
        );
    }
}

// RFC 6675 §5; packetdrill's fr-4pkt-sack.
#[test]
fn three_sacks_retransmit_the_first_segment_only() {
    run_open(
        &sack(4),
        "0.2 write 4000
         0.2 > . 1:4001(4*1000) ack 1
         0.3 < ack 1 <sack 1001:2001>
         0.3 < ack 1 <sack 1001:3001>
         0.3 < ack 1 <sack 1001:4001>
         0.3 > . 1:1001(1000) ack 1
         0.3 ? fast 1 cwnd 2000 ssthresh 2000
         0.4 < ack 4001
         0.4 ? timer none retransmitted 1",
    );
}

// The end-to-end rival of Packet Control, which raises the threshold at the base station: any
// threshold.
#[test]
fn the_duplicate_threshold_is_free() {
    for threshold in 1..=12u32 {
        for recovery in [NEWRENO, Recovery::Reno { avoid_multi_fr: false }] {
            let config = TcpConfig { duplicate_ack_threshold: threshold, ..with(recovery, 14) };
            let early = if threshold > 1 {
                format!("0.3 < ack 1 x{}\n", threshold - 1)
            } else {
                String::new()
            };
            let cwnd = 7000 + threshold * 1000;
            run_open(
                &config,
                &format!(
                    "0.2 write 14000
                     0.2 > . 1:14001(14*1000) ack 1
                     {early}
                     0.3 ? fast 0 cwnd 14000
                     0.4 < ack 1
                     0.4 > . 1:1001(1000) ack 1
                     0.4 ? fast 1 ssthresh 7000 cwnd {cwnd}"
                ),
            );
        }
    }
}

// RFC 5681 §2: a duplicate carries no data and leaves the window unchanged.
#[test]
fn window_updates_and_data_are_no_duplicates() {
    run_open(
        &with(NEWRENO, 10),
        &ten("0.3 < ack 1 win 50000
              0.3 < ack 1 win 40000
              0.3 < ack 1 win 30000
              0.3 < . 1:1001(1000) ack 1
              0.3 > . 10001:10001(0) ack 1001
              0.3 ? dups 0 fast 0
              0.4 < ack 1 x3
              0.4 > . 1:1001(1000) ack 1001"),
    );
}

// RFC 5681 §2: nothing outstanding, no duplicate.
#[test]
fn repeated_acks_of_everything_are_no_duplicates() {
    run_open(&config(), "0.3 < ack 1 x5\n 0.3 ? dups 0 fast 0");
}

// Tahoe: slow start from the lost segment, needless retransmissions included (Fall and Floyd 1996,
// §3.1).
#[test]
fn tahoe_goes_back() {
    run_open(
        &with(Recovery::Tahoe { avoid_multi_fr: false }, 10),
        &ten("0.3 < ack 1 x3
              0.3 > . 1:1001(1000) ack 1
              0.3 ? cwnd 1000 ssthresh 5000
              0.31 < ack 1 x4
              0.31 ? cwnd 1000
              0.4 < ack 3001
              0.4 > . 3001:5001(2*1000) ack 1
              0.4 ? cwnd 2000
              0.5 < ack 10001
              0.5 > . 10001:13001(3*1000) ack 1"),
    );
}

// RFC 5681 §3.2 steps 3 to 6, without RFC 6582.
#[test]
fn reno_inflates_and_any_new_ack_deflates() {
    run_open(
        &reno(false),
        &ten("0.3 < ack 1 x3
              0.3 > . 1:1001(1000) ack 1
              0.3 ? cwnd 8000 ssthresh 5000
              0.31 < ack 1 x2
              0.31 ? cwnd 10000
              0.32 < ack 1
              0.32 > . 10001:11001(1000) ack 1
              0.4 < ack 3001
              0.4 ? cwnd 5000 flight 8000 reductions 1"),
    );
}

// ns-2's bugFix_: without the guard the second hole gets a second fast retransmit and a second cut;
// with it Reno waits for the time-out.
#[test]
fn reno_avoid_multi_fr_decides_about_the_second_hole() {
    let first =
        "0.3 < ack 1 x3\n 0.3 > . 1:1001(1000) ack 1\n 0.4 < ack 3001\n 0.5 < ack 3001 x3\n";
    run_open(
        &reno(false),
        &ten(&format!(
            "{first} 0.5 > . 3001:4001(1000) ack 1\n 0.5 ? fast 2 reductions 2 ssthresh 3500"
        )),
    );
    run_open(
        &reno(true),
        &ten(&format!("{first} 0.5 ? fast 1 cwnd 5000\n 1.4 > . 3001:4001(1000) ack 1")),
    );
}

// RFC 6582 §3.2 step 3: partial ACKs retransmit, deflate and let new data out; the full ACK ends
// it.
#[test]
fn newreno_repairs_a_hole_per_partial_ack() {
    run_open(
        &with(NEWRENO, 10),
        &ten("0.3 < ack 1 x3
              0.3 > . 1:1001(1000) ack 1
              0.3 < ack 1 x3
              0.3 > . 10001:11001(1000) ack 1
              0.3 ? cwnd 11000
              0.4 < ack 3001
              0.4 > . 3001:4001(1000) ack 1
              0.4 > . 11001:12001(1000) ack 1
              0.4 ? cwnd 9000 timer 1.4
              0.5 < ack 10001
              0.5 > . 12001:13001(1000) ack 1
              0.5 ? cwnd 3000 ssthresh 5000 fast 1 timeouts 0 reductions 1"),
    );
}

// RFC 6582 §3.2 step 3, exit (2); ns-2's partial_window_deflation_ 0: cwnd = ssthresh.
#[test]
fn newreno_without_deflation_sets_cwnd_to_ssthresh() {
    let newreno = NewRenoConfig { deflate: false, impatient: false };
    run_open(
        &TcpConfig { newreno, ..with(NEWRENO, 10) },
        &ten("0.3 < ack 1 x3
              0.3 > . 1:1001(1000) ack 1
              0.4 < ack 3001
              0.4 > . 3001:4001(1000) ack 1
              0.4 ? cwnd 5000
              0.5 < ack 10001
              0.5 > . 10001:15001(5*1000) ack 1"),
    );
}

// RFC 6582 §4: impatient resets the timer on the first partial ACK only.
#[test]
fn newreno_impatient_or_slow_but_steady() {
    let script = |timer| {
        ten(&format!(
            "0.3 < ack 1 x3
             0.3 > . 1:1001(1000) ack 1
             0.3 ? timer 1.3
             0.4 < ack 2001
             0.4 > . 2001:3001(1000) ack 1
             0.4 ? timer 1.4
             0.5 < ack 4001
             0.5 > . 4001:5001(1000) ack 1
             0.5 ? timer {timer}"
        ))
    };
    run_open(&with(NEWRENO, 10), &script("1.4"));
    let newreno = NewRenoConfig { deflate: true, impatient: false };
    run_open(&TcpConfig { newreno, ..with(NEWRENO, 10) }, &script("1.5"));
}

// RFC 6582 §3.2 step 2: duplicates of what was sent before the last time-out are no new loss.
#[test]
fn newreno_is_careful_after_a_time_out() {
    run_open(
        &with(NEWRENO, 10),
        &ten("1.2 > . 1:1001(1000) ack 1
              1.3 < ack 1001
              1.3 > . 1001:3001(2*1000) ack 1
              1.4 < ack 1001 x5
              1.4 ? fast 0"),
    );
}

// RFC 6582 §3.2 step 2, the boundary: the ACK must cover *more* than recover.
#[test]
fn newreno_needs_more_than_recover_for_the_next_fast_retransmit() {
    let head = "0.3 < ack 1 x3
              0.3 > . 1:1001(1000) ack 1
              0.4 < ack 10001
              0.4 > . 10001:12001(2*1000) ack 1\n";
    run_open(&with(NEWRENO, 10), &ten(&format!("{head} 0.5 < ack 10001 x3\n 0.5 ? fast 1")));
    run_open(
        &with(NEWRENO, 10),
        &ten(&format!(
            "{head} 0.5 < ack 11001
             0.5 > . 12001:14001(2*1000) ack 1
             0.6 < ack 11001 x3
             0.6 > . 11001:12001(1000) ack 1
             0.6 > . 14001:16001(2*1000) ack 1
             0.6 ? fast 2"
        )),
    );
}

// A time-out ends fast recovery (RFC 6582 §3.2 step 4).
#[test]
fn a_time_out_in_fast_recovery_goes_back() {
    run_open(
        &with(NEWRENO, 10),
        &ten("0.3 < ack 1 x3
              0.3 > . 1:1001(1000) ack 1
              1.3 > . 1:1001(1000) ack 1
              1.3 ? cwnd 1000 ssthresh 5000 timeouts 1
              1.4 < ack 2001
              1.4 > . 2001:4001(2*1000) ack 1"),
    );
}

// RFC 6675 §5 (2): by bytes (more than (DupThresh - 1) * SMSS above), on a single ACK.
#[test]
fn sack_enters_recovery_when_the_first_segment_is_lost_by_bytes() {
    run_open(
        &sack(10),
        &ten("0.3 < ack 1 <sack 1001:3001>
              0.3 ? fast 0
              0.31 < ack 1 <sack 1001:3002>
              0.31 > . 1:1001(1000) ack 1
              0.31 ? fast 1 cwnd 5000 ssthresh 5000"),
    );
}

// RFC 6675 §4, IsLost: DupThresh discontiguous blocks.
#[test]
fn sack_enters_recovery_when_the_first_segment_is_lost_by_blocks() {
    run_open(
        &sack(10),
        &ten("0.3 < ack 1 <sack 3001:3101 1001:1101>
              0.3 ? fast 0
              0.31 < ack 1 <sack 5001:5101 3001:3101 1001:1101>
              0.31 > . 1:1001(1000) ack 1
              0.31 ? fast 1"),
    );
}

// RFC 6675 §4 NextSeg rules 1 and 2, §5 step C.
#[test]
fn sack_fills_the_pipe_with_lost_then_new_segments() {
    run_open(
        &sack(10),
        &ten("0.3 < ack 1 <sack 1001:2001>
              0.3 < ack 1 <sack 1001:3001>
              0.3 < ack 1 <sack 1001:4001>
              0.3 > . 1:1001(1000) ack 1
              0.31 < ack 1 <sack 5001:6001 1001:4001>
              0.32 < ack 1 <sack 5001:7001 1001:4001>
              0.33 < ack 1 <sack 5001:8001 1001:4001>
              0.33 > . 4001:5001(1000) ack 1
              0.33 > . 10001:11001(1000) ack 1
              0.33 ? cwnd 5000 flight 11000
              0.4 < ack 10001
              0.4 > . 11001:15001(4*1000) ack 1
              0.4 ? cwnd 5000 fast 1 reductions 1 timeouts 0"),
    );
}

// RFC 6675 §4 NextSeg rules 3 (a hole not lost) and 4 (one rescue), with nothing new to send.
#[test]
fn sack_retransmits_unlost_holes_and_rescues_once() {
    run_open(
        &sack(10),
        "0.2 write 10000
         0.2 > . 1:10001(10*1000) ack 1
         0.3 < ack 1 <sack 1001:2001>
         0.3 < ack 1 <sack 1001:3001>
         0.3 < ack 1 <sack 1001:4001>
         0.3 > . 1:1001(1000) ack 1
         0.31 < ack 1 <sack 1001:5001>
         0.32 < ack 1 <sack 1001:6001>
         0.33 < ack 1 <sack 1001:7001>
         0.33 > . 9001:10001(1000) ack 1
         0.34 < ack 1 <sack 8001:9001 1001:7001>
         0.34 > . 7001:8001(1000) ack 1
         0.4 < ack 10001
         0.4 ? timer none retransmitted 3",
    );
}

// RFC 6675 §5.1: after a time-out the scoreboard says what to skip.
#[test]
fn after_a_time_out_sack_skips_what_the_receiver_holds() {
    run_open(
        &sack(10),
        &ten("0.3 < ack 1 <sack 3001:4001>
              1.2 > . 1:1001(1000) ack 1
              1.3 < ack 1001 <sack 3001:4001>
              1.3 > . 1001:3001(2*1000) ack 1
              1.4 < ack 2001 <sack 3001:4001>
              1.4 > . 4001:6001(2*1000) ack 1
              1.4 ? cwnd 3000"),
    );
}

// RFC 6675 §5.1: no fast recovery for a loss that the time-out has already answered.
#[test]
fn sack_does_not_enter_recovery_below_the_recovery_point() {
    run_open(
        &sack(10),
        &ten("1.2 > . 1:1001(1000) ack 1
              1.3 < ack 1 <sack 5001:6001>
              1.3 < ack 1 <sack 5001:7001>
              1.3 < ack 1 <sack 5001:9001>
              1.3 ? fast 0 cwnd 1000"),
    );
}

// RFC 2018 §8: after a time-out the SACKed data may be gone.
#[test]
fn a_receiver_that_reneges_gets_its_data_again() {
    run_open(
        &sack(4),
        "0.2 write 4000
         0.2 > . 1:4001(4*1000) ack 1
         0.3 < ack 1 <sack 1001:3001>
         0.4 < ack 1001 <>
         1.4 > . 1001:2001(1000) ack 1
         1.5 < ack 2001 <>
         1.5 > . 2001:4001(2*1000) ack 1",
    );
}

// RFC 2018 §2: without SACK-permitted in the peer's SYN the sender recovers as NewReno.
#[test]
fn without_negotiation_sack_is_newreno() {
    crate::run(
        &sack(10),
        "0.0 connect
         0.0 > S 0:0(0) <mss 1000,sackOK>
         0.1 < S 0:0(0) ack 1 win 60000 <mss 1000>
         0.1 > ack 1
         0.2 write 10000
         0.2 > . 1:10001(10*1000) ack 1
         0.3 < ack 1 x3
         0.3 > . 1:1001(1000) ack 1
         0.3 ? cwnd 8000
         0.4 < ack 3001
         0.4 > . 3001:4001(1000) ack 1",
    );
}

// RFC 2883: a DSACK block below the cumulative ACK is no news.
#[test]
fn a_dsack_block_is_no_duplicate_ack() {
    run_open(
        &sack(10),
        &ten("0.3 < ack 2001
              0.3 > . 10001:13001(3*1000) ack 1
              0.4 < ack 2001 <sack 1:1001> x4
              0.4 ? dups 0 fast 0"),
    );
}

// RFC 5681 eq. 4: at least two segments.
#[test]
fn ssthresh_is_at_least_two_segments() {
    run_open(
        &TcpConfig { initial_ssthresh: Some(Bytes(8000)), ..window(1) },
        "0.2 write 1000
         0.2 > . 1:1001(1000) ack 1
         1.2 > . 1:1001(1000) ack 1
         1.2 ? ssthresh 2000",
    );
}
