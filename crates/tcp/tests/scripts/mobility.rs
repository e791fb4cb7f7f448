//! A mobile host and its radio: M-TCP's recovery ACK (M-TCP §3.3) and Freeze-TCP (Goff et al.
//! 2000).

use crate::{config, run, run_open};
use airtcp_core::{Bytes, Duration};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{AckConfig, LinkReaction};

fn recovery_ack() -> TcpConfig {
    TcpConfig { on_link: LinkReaction::RecoveryAck, ..config() }
}

fn freeze() -> TcpConfig {
    TcpConfig { on_link: LinkReaction::Freeze, ..config() }
}

fn delayed(config: TcpConfig) -> TcpConfig {
    let ack = AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(200), quick: 0 };
    TcpConfig { ack, ..config }
}

#[test]
fn an_ordinary_host_makes_nothing_of_its_radio() {
    run_open(
        &config(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001 win 65535
         2.000 link fading
         2.100 link down
         3.000 link up
         3.000 < . 1001:2001(1000) ack 1
         3.000 > ack 2001 win 65535",
    );
}

// M-TCP §3.3: "this ACK packet contains the last ACK number with rwnd (usually greater than zero)".
#[test]
fn the_recovery_ack_repeats_the_last_ack_on_reconnection() {
    run_open(
        &recovery_ack(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         2.000 link fading
         2.000 link down
         3.000 link up
         3.000 > ack 1001 win 65535",
    );
}

#[test]
fn the_recovery_ack_carries_what_a_delayed_ack_owed() {
    run_open(
        &delayed(recovery_ack()),
        "1.000 < . 1:1001(1000) ack 1
         1.100 link up
         1.100 > ack 1001
         1.100 ? timer none",
    );
}

#[test]
fn there_is_no_recovery_ack_without_a_connection() {
    run(
        &recovery_ack(),
        "0.000 link up
         0.000 connect
         0.000 > S 0:0(0)
         0.050 link up
         0.100 < S 0:0(0) ack 1 win 60000 <mss 1000>
         0.100 > ack 1
         0.200 < R 1:1(0)
         0.300 link up
         0.300 ? state Closed",
    );
}

#[test]
fn fading_closes_the_window_at_once() {
    run_open(
        &delayed(freeze()),
        "1.000 < . 1:1001(1000) ack 1
         1.050 link fading
         1.050 > ack 1001 win 0
         1.050 ? timer none
         1.060 link fading
         1.070 link down",
    );
}

#[test]
fn a_frozen_window_stays_closed_for_data_and_probes() {
    run_open(
        &freeze(),
        "1.000 link fading
         1.000 > ack 1 win 0
         # In flight when the sender learnt of it.
         1.010 < . 1:1001(1000) ack 1
         1.010 > ack 1001 win 0
         # A probe.
         2.010 < . 1001:1002(1) ack 1
         2.010 > ack 1002 win 0
         2.020 ? readable 0",
    );
}

#[test]
fn data_of_our_own_carries_the_closed_window() {
    run_open(
        &freeze(),
        "1.000 link fading
         1.000 > ack 1 win 0
         1.100 write 500
         1.100 > P. 1:501(500) ack 1 win 0",
    );
}

#[test]
fn reading_opens_no_frozen_window() {
    let config = TcpConfig { receive_buffer: Bytes(4000), ..freeze() };
    run_open(
        &config,
        "1.000 < . 1:4001(4*1000) ack 1 noread
         1.000 > ack 1001 win 3000
         1.000 > ack 2001 win 2000
         1.000 > ack 3001 win 1000
         1.000 > ack 4001 win 0
         1.100 link down
         1.200 read 4000
         2.000 link up
         2.000 > ack 4001 win 4000 x3",
    );
}

#[test]
fn three_acks_with_the_true_window_announce_the_reconnection() {
    run_open(
        &freeze(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         2.000 link fading
         2.000 > ack 1001 win 0
         2.050 link down
         5.000 link up
         5.000 > ack 1001 win 65535 x3
         5.100 < . 1001:2001(1000) ack 1
         5.100 > ack 2001 win 65535",
    );
}

#[test]
fn an_outage_without_warning_freezes_in_silence() {
    run_open(
        &delayed(freeze()),
        "1.000 < . 1:1001(1000) ack 1
         1.050 link down
         # A delayed ACK falls due; if the link carried it after all, it would not invite data.
         1.200 > ack 1001 win 0
         5.000 link up
         5.000 > ack 1001 win 65535 x3",
    );
}

// Three duplicate ACKs out of nothing would make the sender retransmit.
#[test]
fn only_a_frozen_host_announces_a_reconnection() {
    run_open(
        &freeze(),
        "1.000 < . 1:1001(1000) ack 1
         1.000 > ack 1001
         2.000 link up
         3.000 link down
         4.000 link up
         4.000 > ack 1001 win 65535 x3
         4.100 link up",
    );
}

#[test]
fn a_connection_that_opens_during_an_outage_is_frozen() {
    run(
        &freeze(),
        "0.000 connect
         0.000 > S 0:0(0)
         0.050 link fading
         0.100 < S 0:0(0) ack 1 win 60000 <mss 1000>
         0.100 > ack 1 win 0
         0.200 link up
         0.200 > ack 1 win 65535 x3",
    );
}
