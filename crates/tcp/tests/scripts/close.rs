//! Closing and aborting (RFC 9293 §3.6, §3.10.4, §3.10.7.4).

use crate::{config, run, run_open};
use airtcp_core::Duration;
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{AckConfig, Nagle, RtoConfig};

// RFC 9293 §3.6, figure 12, and 2 MSL.
#[test]
fn we_close_first() {
    run_open(
        &config(),
        "1.000 close
         1.000 > F 1:1(0) ack 1
         1.000 ? state FinWait1
         1.100 < ack 2
         1.100 ? state FinWait2 timer none
         1.200 < F 1:1(0) ack 2
         1.200 > . 2:2(0) ack 2
         1.200 ? state TimeWait eof true timer 61.2
         61.1 ? published established:1,closed:0,aborted:0
         61.201 ? state Closed aborted no timer none
         61.201 ? published established:1,closed:1,aborted:0",
    );
}

#[test]
fn the_peer_closes_first() {
    run_open(
        &config(),
        "1.000 < F 1:1(0) ack 1
         1.000 > . 1:1(0) ack 2
         1.000 ? state CloseWait eof true
         1.500 close
         1.500 > F 1:1(0) ack 2
         1.500 ? state LastAck
         1.600 < ack 2
         1.600 ? state Closed timer none allacked true
         1.600 ? published established:1,closed:1,aborted:0",
    );
}

// RFC 9293 §3.6, figure 13.
#[test]
fn both_close_at_once() {
    run_open(
        &config(),
        "1.000 close
         1.000 > F 1:1(0) ack 1
         1.050 < F 1:1(0) ack 1
         1.050 > . 2:2(0) ack 2
         1.050 ? state Closing
         1.100 < ack 2
         1.100 ? state TimeWait timer 61.1",
    );
}

#[test]
fn a_fin_that_acknowledges_our_fin_ends_in_time_wait() {
    run_open(
        &config(),
        "1.000 close
         1.000 > F 1:1(0) ack 1
         1.100 < F 1:1(0) ack 2
         1.100 > . 2:2(0) ack 2
         1.100 ? state TimeWait",
    );
}

// RFC 9293 §3.6: closing means "I have no more data to send".
#[test]
fn half_closed_we_still_receive() {
    run_open(
        &config(),
        "1.000 close
         1.000 > F 1:1(0) ack 1
         1.100 < ack 2
         1.200 < . 1:2001(2*1000) ack 2
         1.200 > . 2:2(0) ack 1001
         1.200 > . 2:2(0) ack 2001
         1.200 ? state FinWait2
         1.300 < F 2001:2001(0) ack 2
         1.300 > . 2:2(0) ack 2002
         1.300 ? state TimeWait",
    );
}

#[test]
fn half_closed_by_the_peer_we_still_send() {
    run_open(
        &config(),
        "1.000 < F 1:1(0) ack 1
         1.000 > . 1:1(0) ack 2
         1.100 write 2000
         1.100 > . 1:2001(2*1000) ack 2
         1.200 < ack 2001
         1.300 close
         1.300 > F 2001:2001(0) ack 2
         1.400 < ack 2002
         1.400 ? state Closed",
    );
}

#[test]
fn fin_follows_the_queued_data_and_rides_on_the_last_segment() {
    run_open(
        &TcpConfig { nagle: Nagle::Off, ..crate::window(2) },
        "1.000 write 2500
         1.000 > . 1:2001(2*1000) ack 1
         1.000 close
         1.000 ? state FinWait1
         1.100 < ack 2001
         1.100 > FP 2001:2501(500) ack 1
         1.200 < ack 2502
         1.200 ? state FinWait2 allacked true",
    );
}

#[test]
fn a_fin_may_carry_data() {
    run_open(
        &config(),
        "1.000 < F 1:501(500) ack 1
         1.000 > . 1:1(0) ack 502
         1.000 ? state CloseWait eof true",
    );
}

#[test]
fn a_fin_beyond_a_gap_waits_for_it() {
    run_open(
        &config(),
        "1.000 < F 1001:1501(500) ack 1
         1.000 > . 1:1(0) ack 1
         1.000 ? state Established eof false
         1.100 < . 1:1001(1000) ack 1
         1.100 > . 1:1(0) ack 1502
         1.100 ? state CloseWait eof true",
    );
}

#[test]
fn a_bare_fin_beyond_a_gap_waits_for_it() {
    run_open(
        &config(),
        "1.000 < F 1001:1001(0) ack 1
         1.000 > . 1:1(0) ack 1
         1.000 ? state Established
         1.100 < . 1:1001(1000) ack 1
         1.100 > . 1:1(0) ack 1002
         1.100 ? state CloseWait",
    );
}

#[test]
fn a_fin_is_acknowledged_at_once_under_delayed_acks() {
    let timeout = Duration::from_millis(200);
    let delayed =
        TcpConfig { ack: AckConfig::Delayed { segments: 2, timeout, quick: 0 }, ..config() };
    run_open(
        &delayed,
        "1.000 < F 1:101(100) ack 1
         1.000 > . 1:1(0) ack 102
         2.000 ? state CloseWait timer none",
    );
}

// RFC 6298 §5: FIN is retransmitted like data.
#[test]
fn a_lost_fin_is_retransmitted() {
    run_open(
        &config(),
        "1.000 close
         1.000 > F 1:1(0) ack 1
         2.000 > F 1:1(0) ack 1
         4.000 > F 1:1(0) ack 1
         4.100 < ack 2
         4.100 ? state FinWait2 timer none",
    );
}

#[test]
fn a_fin_nobody_acknowledges_gives_up() {
    let rto = RtoConfig { max_retransmissions: 1, ..RtoConfig::default() };
    run_open(
        &TcpConfig { rto, ..config() },
        "1.000 close
         1.000 > F 1:1(0) ack 1
         2.000 > F 1:1(0) ack 1
         4.001 ? state Closed aborted RetransmissionLimit",
    );
}

// RFC 9293 §3.10.7.4, eighth check.
#[test]
fn a_retransmitted_fin_restarts_time_wait() {
    run_open(
        &config(),
        "1.000 close
         1.000 > F 1:1(0) ack 1
         1.100 < F 1:1(0) ack 2
         1.100 > . 2:2(0) ack 2
         31.000 < F 1:1(0) ack 2
         31.000 > . 2:2(0) ack 2
         31.000 ? state TimeWait timer 91
         91.001 ? state Closed",
    );
}

#[test]
fn an_old_data_segment_does_not_prolong_time_wait() {
    run_open(
        &config(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         1.000 close
         1.000 > F 1:1(0) ack 1001
         1.100 < F 1001:1001(0) ack 2
         1.100 > . 2:2(0) ack 1002
         31.000 < . 1:1001(1000) ack 2
         31.000 > . 2:2(0) ack 1002
         31.000 ? state TimeWait timer 61.1",
    );
}

#[test]
fn rst_ends_time_wait_without_fuss() {
    run_open(
        &config(),
        "1.000 close
         1.000 > F 1:1(0) ack 1
         1.100 < F 1:1(0) ack 2
         1.100 > . 2:2(0) ack 2
         2.000 < R 2:2(0)
         2.000 ? state Closed aborted no timer none",
    );
}

#[test]
fn rst_ends_every_other_state() {
    run_open(
        &config(),
        "1.0 close\n 1.0 > F 1:1(0) ack 1
         1.1 < R 1:1(0)\n 1.1 ? state Closed aborted Reset timer none",
    );
    run_open(
        &config(),
        "1.0 close\n 1.0 > F 1:1(0) ack 1\n 1.1 < ack 2\n 1.1 ? state FinWait2
         1.2 < R 1:1(0)\n 1.2 ? state Closed aborted Reset timer none",
    );
    run_open(
        &config(),
        "1.0 < F 1:1(0) ack 1\n 1.0 > ack 2\n 1.0 ? state CloseWait
         1.2 < R 2:2(0)\n 1.2 ? state Closed aborted Reset timer none",
    );
    run_open(
        &config(),
        "1.0 < F 1:1(0) ack 1\n 1.0 > ack 2\n 1.1 close\n 1.1 > F 1:1(0) ack 2
         1.2 < R 2:2(0)\n 1.2 ? state Closed aborted Reset timer none",
    );
    run_open(
        &config(),
        "1.0 close\n 1.0 > F 1:1(0) ack 1\n 1.05 < F 1:1(0) ack 1\n 1.05 > . 2:2(0) ack 2
         1.2 < R 2:2(0)\n 1.2 ? state Closed aborted Reset timer none",
    );
}

// RFC 9293 §3.10.5.
#[test]
fn abort_sends_rst_at_snd_nxt() {
    run_open(
        &config(),
        "1.000 write 1000
         1.000 > . 1:1001(1000) ack 1
         1.100 abort
         1.100 > R 1001:1001(0) ack 1
         1.100 ? state Closed aborted User timer none
         1.100 ? published established:1,closed:0,aborted:1
         1.200 < ack 1001
         1.200 > R 1001:1001(0)",
    );
}

#[test]
fn abort_before_the_handshake_is_silent() {
    run(
        &config(),
        "0.0 connect\n 0.0 > S 0:0(0)\n 0.1 abort\n 0.1 ? state Closed aborted User timer none",
    );
}

#[test]
fn nothing_is_accepted_for_sending_after_close() {
    run_open(
        &config(),
        "1.000 close
         1.000 > F 1:1(0) ack 1
         1.100 write 1000 takes 0",
    );
}

#[test]
fn data_after_the_peers_fin_is_not_delivered() {
    run_open(
        &config(),
        "1.000 < F 1:1(0) ack 1
         1.000 > . 1:1(0) ack 2
         1.100 < . 2:1002(1000) ack 1
         1.100 > . 1:1(0) ack 2
         1.100 ? readable 0 state CloseWait",
    );
}

#[test]
fn close_in_syn_received_sends_fin_after_the_handshake() {
    run(
        &config(),
        "0.000 listen
         0.000 < S 0:0(0) <mss 1000>
         0.000 > S 0:0(0) ack 1
         0.010 close
         0.010 ? state SynReceived
         0.100 < ack 1
         0.100 > F 1:1(0) ack 1
         0.100 ? state FinWait1",
    );
}
