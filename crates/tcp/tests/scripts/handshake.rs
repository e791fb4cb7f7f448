//! Opening, refusing and resetting connections (RFC 9293 §3.5, §3.10; RFC 6298 §5.7; RFC 7323; RFC
//! 5961).

use crate::{NEWRENO, config, run, run_open, window};
use airtcp_core::{Bytes, Duration};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{Recovery, RtoConfig};

fn impatient() -> TcpConfig {
    let rto = RtoConfig { max_retransmissions: 2, ..RtoConfig::default() };
    TcpConfig { rto, ..config() }
}

// RFC 9293 §3.5, figure 6.
#[test]
fn active_open() {
    run(
        &config(),
        "0.000 connect
         0.000 > S 0:0(0) win 65535 <mss 1000>
         0.000 ? state SynSent
         0.100 < S 0:0(0) ack 1 win 20000 <mss 1000>
         0.100 > . 1:1(0) ack 1 win 65535 <>
         0.100 ? state Established peerwnd 20000 srtt 0.1 rttvar 0.05 rto 1 timer none",
    );
}

#[test]
fn passive_open() {
    run(
        &config(),
        "0.000 listen
         0.000 ? state Listen timer none
         0.000 < S 0:0(0) win 20000 <mss 1000>
         0.000 > S 0:0(0) ack 1 win 65535 <mss 1000>
         0.000 ? state SynReceived
         0.050 < ack 1
         0.050 ? state Established srtt 0.05
         0.050 < . 1:1001(1000) ack 1
         0.050 > ack 1001",
    );
}

// RFC 9293 §3.5, figure 7: each end answers the other's SYN-ACK with an ACK.
#[test]
fn simultaneous_open() {
    run(
        &config(),
        "0.000 connect
         0.000 > S 0:0(0)
         0.100 < S 0:0(0) win 20000 <mss 1000>
         0.100 > S 0:0(0) ack 1 <mss 1000>
         0.100 ? state SynReceived
         0.200 < S 0:0(0) ack 1 win 20000 <mss 1000>
         0.200 > . 1:1(0) ack 1
         0.200 < . 1:1(0) ack 1
         0.200 ? state Established",
    );
}

// RFC 7323 §2.2: the window is scaled on everything but a SYN.
#[test]
fn the_ack_of_a_simultaneous_open_carries_the_scaled_window() {
    run(
        &TcpConfig { window_scaling: true, receive_buffer: Bytes(200_000), ..config() },
        "0.000 connect
         0.000 > S 0:0(0) win 65535 <mss 1000,wscale 2>
         0.100 < S 0:0(0) win 20000 <mss 1000,wscale 1>
         0.100 > S 0:0(0) ack 1 win 65535 <mss 1000,wscale 2>
         0.200 < S 0:0(0) ack 1 win 20000 <mss 1000,wscale 1>
         0.200 > . 1:1(0) ack 1 win 50000
         0.200 < . 1:1(0) ack 1 win 20000
         0.200 ? state Established peerwnd 40000",
    );
}

// RFC 6298 §2.1, §5.5, §5.7 and RFC 5681 §3.1.
#[test]
fn a_lost_syn_backs_off_then_restarts_with_3_s_and_one_segment() {
    run(
        &config(),
        "0.000 connect
         0.000 > S 0:0(0)
         0.000 write 3000
         1.000 > S 0:0(0) <mss 1000>
         3.000 > S 0:0(0)
         3.100 < S 0:0(0) ack 1 win 60000 <mss 1000>
         3.100 > . 1:1001(1000) ack 1
         3.100 ? cwnd 1000 rto 3 srtt none
         6.100 > . 1:1001(1000) ack 1",
    );
}

#[test]
fn a_lost_syn_ack_is_sent_again_by_the_timer() {
    run(
        &config(),
        "0.000 listen
         0.000 < S 0:0(0) win 20000 <mss 1000>
         0.000 > S 0:0(0) ack 1
         1.000 > S 0:0(0) ack 1 <mss 1000>
         1.050 < ack 1
         1.050 ? state Established cwnd 1000 rto 3",
    );
}

// Karn (RFC 6298 §3): which SYN-ACK the ACK answers is unknown.
#[test]
fn a_duplicate_syn_is_answered_and_not_timed() {
    run(
        &config(),
        "0.000 listen
         0.000 < S 0:0(0) win 20000 <mss 1000>
         0.000 > S 0:0(0) ack 1
         0.900 < S 0:0(0) win 20000 <mss 1000>
         0.900 > S 0:0(0) ack 1
         0.910 < ack 1
         0.910 ? state Established srtt none",
    );
}

// RFC 9293 §3.8.3: R2.
#[test]
fn a_syn_gives_up_after_its_retransmissions() {
    run(
        &impatient(),
        "0.000 connect
         0.000 > S 0:0(0)
         1.000 > S 0:0(0)
         3.000 > S 0:0(0)
         7.001 ? state Closed aborted RetransmissionLimit timer none",
    );
}

// Linux tcp_write_timeout.
#[test]
fn a_syn_gives_up_after_the_user_timeout() {
    run(
        &TcpConfig { user_timeout: Some(Duration::from_millis(3_500)), ..config() },
        "0.000 connect
         0.000 > S 0:0(0)
         1.000 > S 0:0(0)
         3.000 > S 0:0(0)
         4.499 ? aborted no
         4.501 ? state Closed aborted UserTimeout timer none",
    );
}

// RFC 9293 §3.10.7.3: the port is closed.
#[test]
fn refused() {
    run(
        &config(),
        "0.000 connect
         0.000 > S 0:0(0)
         0.100 < R 0:0(0) ack 1 win 0
         0.100 ? state Closed aborted Reset timer none",
    );
}

#[test]
fn a_rst_without_ack_or_for_another_syn_does_not_refuse() {
    run(
        &config(),
        "0.000 connect
         0.000 > S 0:0(0)
         0.100 < R 0:0(0)
         0.200 < R 0:0(0) ack 7
         0.200 ? state SynSent
         0.300 < S 0:0(0) ack 1 <mss 1000>
         0.300 > ack 1",
    );
}

// RFC 9293 §3.5.2 group 1.
#[test]
fn a_closed_end_answers_with_rst() {
    run(
        &config(),
        "0.000 < S 7:7(0) <mss 1000>
         0.000 > R wire 0:0(0) ack 8
         0.100 < . 8:8(0) ack 70
         0.100 > R 70:70(0)
         0.200 < R 8:8(0)
         0.200 ? state Closed",
    );
}

// RFC 9293 §3.10.7.2.
#[test]
fn listen_answers_an_ack_with_rst_and_ignores_rst() {
    run(
        &config(),
        "0.000 listen
         0.100 < R 5:5(0)
         0.100 < . 5:5(0) ack 900
         0.100 > R 900:900(0)
         0.100 ? state Listen",
    );
}

// RFC 9293 §3.5.1, figure 9: the peer remembers a connection that we have forgotten.
#[test]
fn half_open_is_discovered_and_reset() {
    run(
        &config(),
        "0.000 connect
         0.000 > S 0:0(0)
         0.100 < . 300:300(0) ack 100
         0.100 > R 100:100(0)
         0.100 ? state SynSent
         1.000 > S 0:0(0)
         1.100 < S 0:0(0) ack 1 <mss 1000>
         1.100 > ack 1
         1.100 ? state Established",
    );
}

// RFC 9293 §3.10.7.4, fifth check.
#[test]
fn syn_received_refuses_an_ack_of_what_was_not_sent() {
    run(
        &config(),
        "0.000 listen
         0.000 < S 0:0(0) <mss 1000>
         0.000 > S 0:0(0) ack 1
         0.100 < . 1:1(0) ack 50
         0.100 > R 50:50(0)
         0.100 ? state SynReceived
         0.200 < . 1:1(0) ack 1
         0.200 ? state Established",
    );
}

#[test]
fn rst_in_syn_received_ends_it() {
    run(
        &config(),
        "0.000 listen
         0.000 < S 0:0(0) <mss 1000>
         0.000 > S 0:0(0) ack 1
         0.100 < R 1:1(0)
         0.100 ? state Closed aborted Reset timer none",
    );
}

// RFC 9293 §3.7.1.
#[test]
fn the_peer_mss_is_536_when_it_names_none() {
    run(
        &config(),
        "0.000 connect
         0.000 > S 0:0(0) <mss 1000>
         0.100 < S 0:0(0) ack 1 <>
         0.100 > ack 1
         0.100 write 1500
         0.100 > . 1:1073(2*536) ack 1
         0.100 ? cwnd 2144",
    );
}

#[test]
fn segments_fit_the_smaller_mss() {
    run(
        &window(4),
        "0.000 connect
         0.000 > S 0:0(0)
         0.100 < S 0:0(0) ack 1 <mss 400>
         0.100 > ack 1
         0.100 write 1600
         0.100 > . 1:1601(4*400) ack 1",
    );
}

// RFC 6691: what is announced has room for options; timestamps take theirs from the payload, if both
// ends use them.
#[test]
fn timestamps_take_their_room_from_the_payload() {
    let timestamps = TcpConfig { timestamps: true, ..window(4) };
    run(
        &timestamps,
        "0.000 connect
         0.000 > S 0:0(0) <mss 1012,TS val 0 ecr 0>
         0.100 < S 0:0(0) ack 1 <mss 412,TS val 100 ecr 0>
         0.100 > ack 1
         0.100 write 1600
         0.100 > . 1:1601(4*400) ack 1",
    );
    run(
        &timestamps,
        "0.000 connect
         0.000 > S 0:0(0) <mss 1012,TS val 0 ecr 0>
         0.100 < S 0:0(0) ack 1 <mss 1012>
         0.100 > ack 1
         0.100 write 4048
         0.100 > . 1:4049(4*1012) ack 1",
    );
}

// RFC 2018 §2, RFC 7323 §2, §3: an option is in use only when both ends sent it.
#[test]
fn options_are_offered_and_accepted() {
    let all = TcpConfig {
        recovery: Recovery::Sack,
        timestamps: true,
        window_scaling: true,
        receive_buffer: Bytes(500_000),
        ..config()
    };
    run(
        &all,
        "0.000 connect
         0.000 > S 0:0(0) win 65535 <mss 1012,sackOK,TS val 0 ecr 0,wscale 3>
         0.100 < S 0:0(0) ack 1 win 1000 <mss 1012,sackOK,TS val 100 ecr 0,wscale 2>
         0.100 > . 1:1(0) ack 1 win 62500 <TS val 100 ecr 100>
         0.100 ? peerwnd 1000
         0.200 < . 2001:3001(1000) ack 1 win 1000 <TS val 200 ecr 100>
         0.200 > . 1:1(0) ack 1 <TS val 200 ecr 100,sack 2001:3001>
         0.200 ? peerwnd 4000",
    );
    run(
        &all,
        "0.000 connect
         0.000 > S 0:0(0) win 65535
         0.100 < S 0:0(0) ack 1 win 1000 <mss 1000>
         0.100 > . 1:1(0) ack 1 win 65535 <>
         0.200 < . 2001:3001(1000) ack 1 win 1000 <>
         0.200 > . 1:1(0) ack 1 <>
         0.200 ? peerwnd 1000",
    );
}

#[test]
fn options_not_offered_are_not_accepted() {
    run(
        &config(),
        "0.000 listen
         0.000 < S 0:0(0) win 1000 <mss 1000,sackOK,TS val 0 ecr 0,wscale 2>
         0.000 > S 0:0(0) ack 1 <mss 1000>
         0.100 < . 1:1(0) ack 1 win 1000 <>
         0.100 ? state Established peerwnd 1000
         0.200 < . 2001:3001(1000) ack 1 <>
         0.200 > . 1:1(0) ack 1 <>",
    );
}

// RFC 7323 §2.3: a larger shift counts as 14.
#[test]
fn the_window_shift_is_at_most_14() {
    let scaling = TcpConfig { window_scaling: true, ..config() };
    run(
        &scaling,
        "0.000 connect
         0.000 > S 0:0(0)
         0.100 < S 0:0(0) ack 1 win 10 <mss 1000,wscale 15>
         0.100 > ack 1
         0.200 < . 1:1(0) ack 1 win 10
         0.200 ? peerwnd 163840",
    );
}

// RFC 5961 §3.2.
#[test]
fn a_rst_resets_only_at_exactly_rcv_nxt() {
    run_open(
        &config(),
        "0.200 < R 5000:5000(0)
         0.200 > . 1:1(0) ack 1
         0.200 ? state Established
         0.300 < R 100000:100000(0)
         0.300 ? state Established
         0.400 < R 1:1(0)
         0.400 ? state Closed aborted Reset timer none",
    );
}

// RFC 5961 §4.2.
#[test]
fn a_syn_in_a_connection_is_challenged() {
    run_open(
        &config(),
        "0.200 < S 1:1(0) <mss 1000>
         0.200 > . 1:1(0) ack 1
         0.300 < S 0:0(0) ack 1 <mss 1000>
         0.300 > . 1:1(0) ack 1
         0.300 ? state Established",
    );
}

// RFC 9293 §3.10.7.4, fifth check.
#[test]
fn an_ack_of_what_was_never_sent_is_answered_and_ignored() {
    run_open(
        &config(),
        "0.200 write 1000
         0.200 > . 1:1001(1000) ack 1
         0.300 < . 1:1(0) ack 1002
         0.300 > . 1001:1001(0) ack 1
         0.300 ? flight 1000",
    );
}

#[test]
fn data_written_before_the_handshake_leaves_with_its_ack() {
    run(
        &TcpConfig { recovery: NEWRENO, ..config() },
        "0.000 connect
         0.000 > S 0:0(0)
         0.000 write 500
         0.100 < S 0:0(0) ack 1 win 60000 <mss 1000>
         0.100 > P 1:501(500) ack 1",
    );
}

// RFC 9293 §3.10.4.
#[test]
fn closing_before_the_answer_deletes_the_connection() {
    run(
        &config(),
        "0.000 connect
         0.000 > S 0:0(0)
         0.500 close
         0.500 ? state Closed timer none
         9.000 ? aborted no",
    );
    run(&config(), "0.0 listen\n 0.5 close\n 0.5 ? state Closed timer none");
}
