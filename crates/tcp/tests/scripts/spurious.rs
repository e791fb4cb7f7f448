//! Needless retransmissions detected and undone: Eifel (RFC 3522) and F-RTO (RFC 5682), answered by
//! RFC 4015.

use crate::{NEWRENO, run, run_open, window};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{Recovery, SpuriousDetection};

fn eifel() -> TcpConfig {
    TcpConfig { timestamps: true, spurious: SpuriousDetection::Eifel, ..window(4) }
}

fn f_rto(recovery: Recovery) -> TcpConfig {
    TcpConfig { recovery, spurious: SpuriousDetection::FRto, ..window(4) }
}

/// Four segments out, their ACKs late, the timer expires at 1.2 s.
const LATE: &str = "0.2 write 20000
    0.2 > . 1:4001(4*1000) ack 1
    1.2 > . 1:1001(1000) ack 1
    1.2 ? cwnd 1000 ssthresh 2000\n";

fn late(script: &str) -> String {
    format!("{LATE}{script}")
}

// RFC 3522 §3.2, RFC 4015 §3.2: pipe_prev 4000; cwnd = flight 3000 + min(1000, IW); SRTT and RTTVAR
// from the sample of 1.3 s; new data instead of retransmissions.
#[test]
fn eifel_undoes_a_spurious_time_out() {
    run_open(
        &eifel(),
        &late(
            "1.5 < ack 1001 <TS val 1500 ecr 200>
             1.5 > . 4001:5001(1000) ack 1
             1.5 ? spurious 1 cwnd 4000 ssthresh 4000 srtt 1.3 rttvar 0.65 rto 3.9 timer 5.4",
        ),
    );
}

// RFC 3522 §3.2 step 4: the echo is of the retransmission.
#[test]
fn eifel_leaves_a_genuine_time_out() {
    run_open(
        &eifel(),
        &late(
            "1.5 < ack 1001 <TS val 1500 ecr 1200>
             1.5 > . 1001:3001(2*1000) ack 1
             1.5 ? spurious 0 cwnd 2000 ssthresh 2000",
        ),
    );
}

// Only the first of several time-outs saves the state: the second would save the reduced one.
#[test]
fn eifel_restores_what_was_before_the_first_of_several_time_outs() {
    run_open(
        &eifel(),
        &late(
            "3.2 > . 1:1001(1000) ack 1
             3.5 < ack 1001 <TS val 3500 ecr 200>
             3.5 > . 4001:5001(1000) ack 1
             3.5 ? spurious 1 cwnd 4000 ssthresh 4000",
        ),
    );
}

// RFC 3522 compares with the *first* retransmission: the original arrived, or the first
// retransmission did.
#[test]
fn eifel_takes_the_first_retransmission_as_its_mark() {
    run_open(
        &eifel(),
        &late(
            "3.2 > . 1:1001(1000) ack 1
             3.5 < ack 1001 <TS val 3500 ecr 1200>
             3.5 > . 1001:3001(2*1000) ack 1
             3.5 ? spurious 0",
        ),
    );
}

// Reordering taken for loss.
#[test]
fn eifel_undoes_a_spurious_fast_retransmit() {
    run_open(
        &eifel(),
        "0.2 write 4000
         0.2 > . 1:4001(4*1000) ack 1
         0.3 < ack 1 <TS val 300 ecr 200> x3
         0.3 > . 1:1001(1000) ack 1
         0.3 ? ssthresh 2000
         0.31 < ack 4001 <TS val 310 ecr 200>
         0.31 ? spurious 1 cwnd 4000 ssthresh 4000 srtt 0.10125",
    );
}

#[test]
fn eifel_leaves_a_genuine_fast_retransmit() {
    run_open(
        &eifel(),
        "0.2 write 4000
         0.2 > . 1:4001(4*1000) ack 1
         0.3 < ack 1 <TS val 300 ecr 200> x3
         0.3 > . 1:1001(1000) ack 1
         0.4 < ack 4001 <TS val 400 ecr 300>
         0.4 ? spurious 0 ssthresh 2000",
    );
}

// RFC 5682 §2.1 step 2b, then 3b: two new segments, and the second ACK decides.
#[test]
fn f_rto_undoes_a_spurious_time_out() {
    for recovery in [NEWRENO, Recovery::Sack, Recovery::Reno { avoid_multi_fr: false }] {
        run_open(
            &f_rto(recovery),
            &late(
                "1.5 < ack 1001
                 1.5 > . 4001:6001(2*1000) ack 1
                 1.51 < ack 2001
                 1.51 > . 6001:7001(1000) ack 1
                 1.51 ? spurious 1 cwnd 5000 ssthresh 4000 retransmitted 1",
            ),
        );
    }
}

// RFC 5682 §2.1 step 3a: conventional recovery, cwnd at most three segments.
#[test]
fn f_rto_falls_through_on_a_duplicate() {
    run_open(
        &f_rto(NEWRENO),
        &late(
            "1.5 < ack 1001
             1.5 > . 4001:6001(2*1000) ack 1
             1.6 < ack 1001
             1.6 > . 1001:4001(3*1000) ack 1
             1.6 ? spurious 0 cwnd 3000 ssthresh 2000",
        ),
    );
}

// Step 2a: a duplicate first.
#[test]
fn f_rto_is_conventional_after_a_duplicate() {
    run_open(
        &f_rto(NEWRENO),
        &late(
            "1.5 < ack 1
             1.6 < ack 1001
             1.6 > . 1001:3001(2*1000) ack 1
             1.6 ? spurious 0 cwnd 2000",
        ),
    );
}

// Step 2a: the first ACK covers everything, and nothing is left to learn.
#[test]
fn f_rto_is_conventional_when_the_first_ack_covers_all() {
    run_open(
        &f_rto(NEWRENO),
        &late(
            "1.5 < ack 4001
             1.5 > . 4001:6001(2*1000) ack 1
             1.5 ? spurious 0 cwnd 2000 ssthresh 2000",
        ),
    );
}

// Step 2b: no room in the peer's window, or nothing new to send.
#[test]
fn f_rto_is_conventional_without_new_data_to_send() {
    run_open(
        &f_rto(NEWRENO),
        &late(
            "1.5 < ack 1001 win 3000
             1.5 > . 1001:3001(2*1000) ack 1
             1.5 ? cwnd 2000",
        ),
    );
    run_open(
        &f_rto(NEWRENO),
        "0.2 write 4000
         0.2 > . 1:4001(4*1000) ack 1
         1.2 > . 1:1001(1000) ack 1
         1.5 < ack 1001
         1.5 > . 1001:3001(2*1000) ack 1
         1.6 < ack 3001
         1.6 > . 3001:4001(1000) ack 1
         1.6 ? spurious 0",
    );
}

// RFC 5682 §3.1 step 1: time-outs of the same segment in a row still qualify.
#[test]
fn f_rto_works_after_several_time_outs() {
    run_open(
        &f_rto(NEWRENO),
        &late(
            "3.2 > . 1:1001(1000) ack 1
             3.5 < ack 1001
             3.5 > . 4001:6001(2*1000) ack 1
             3.51 < ack 2001
             3.51 > . 6001:7001(1000) ack 1
             3.51 ? spurious 1 cwnd 5000 ssthresh 4000",
        ),
    );
}

// RFC 5682 §2.1 step 1: a time-out inside an earlier recovery is conventional.
#[test]
fn f_rto_keeps_out_of_an_earlier_recovery() {
    run_open(
        &f_rto(NEWRENO),
        &late(
            "1.3 < ack 1
             1.4 < ack 1001
             1.4 > . 1001:3001(2*1000) ack 1
             3.4 > . 1001:2001(1000) ack 1
             3.5 < ack 2001
             3.5 > . 2001:4001(2*1000) ack 1
             3.5 ? spurious 0",
        ),
    );
}

// RFC 5682 §3.1 step 2: with SACK a duplicate before the first new ACK is only noted.
#[test]
fn f_rto_with_sack_waits_past_duplicates() {
    run_open(
        &f_rto(Recovery::Sack),
        &late(
            "1.4 < ack 1 <sack 2001:3001>
             1.5 < ack 1001 <sack 2001:3001>
             1.5 > . 4001:6001(2*1000) ack 1
             1.6 < ack 3001
             1.6 > . 6001:8001(2*1000) ack 1
             1.6 ? spurious 1",
        ),
    );
}

// RFC 5682 §3.1 step 3: a SACK of data sent before the time-out and not since.
#[test]
fn f_rto_with_sack_is_convinced_by_originals() {
    run_open(
        &f_rto(Recovery::Sack),
        &late(
            "1.5 < ack 1001
             1.5 > . 4001:6001(2*1000) ack 1
             1.6 < ack 1001 <sack 2001:3001>
             1.6 ? spurious 1 ssthresh 4000",
        ),
    );
}

// §3.1 step 3: a SACK of the new data proves nothing. Segment 2 was indeed lost.
#[test]
fn f_rto_with_sack_is_not_convinced_by_the_new_data() {
    run_open(
        &f_rto(Recovery::Sack),
        &late(
            "1.5 < ack 1001
             1.5 > . 4001:6001(2*1000) ack 1
             1.6 < ack 1001 <sack 4001:5001>
             1.6 > . 1001:4001(3*1000) ack 1
             1.6 ? spurious 0 cwnd 3000",
        ),
    );
}

// Without detection the same delay costs a window (as in Packet Control's scenario III).
#[test]
fn without_detection_a_late_ack_resends_the_window() {
    run(
        &window(4),
        &format!(
            "0.0 connect
             0.0 > S 0:0(0)
             0.1 < S 0:0(0) ack 1 win 60000 <mss 1000>
             0.1 > ack 1
             {LATE}
             1.5 < ack 1001
             1.5 > . 1001:3001(2*1000) ack 1
             1.51 < ack 2001
             1.51 > . 3001:4001(1000) ack 1
             1.51 ? spurious 0"
        ),
    );
}
