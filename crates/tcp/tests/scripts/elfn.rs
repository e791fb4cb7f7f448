//! Explicit link failure notification (Holland and Vaidya 1999, §5).

use crate::{run_open, window};
use airtcp_core::Duration;
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{ElfnConfig, RouteConfig};
use airtcp_tcp::route::Thaw;

fn elfn(config: ElfnConfig) -> TcpConfig {
    TcpConfig { on_route_failure: RouteConfig::Elfn(config), ..window(4) }
}

/// Four segments are out, RTO 1 s, when the notice comes.
#[track_caller]
fn run_broken(config: &TcpConfig, notice: &str, script: &str) {
    run_open(
        config,
        &format!(
            "0.200 write 4000
             0.200 > P. 1:4001(4*1000) ack 1
             0.300 {notice}
             {script}"
        ),
    );
}

const PROBES: &str = "2.300 > . 1:1001(1000) ack 1
     4.300 > . 1:1001(1000) ack 1
     6.300 > . 1:1001(1000) ack 1
     6.300 ? standby true timeouts 0 cwnd 4000 rto 1 timer 8.3";

#[test]
fn a_notice_stops_the_timer_and_a_probe_leaves_every_two_seconds() {
    run_broken(&elfn(ElfnConfig::default()), "route failed 1", PROBES);
}

#[test]
fn the_notice_may_name_any_segment_that_is_outstanding() {
    run_broken(&elfn(ElfnConfig::default()), "route failed 3001", PROBES);
}

#[test]
fn the_router_of_the_own_node_names_no_segment() {
    run_broken(&elfn(ElfnConfig::default()), "route failed", PROBES);
}

#[test]
fn a_notice_of_data_not_outstanding_is_old() {
    for seq in ["0", "4001"] {
        run_broken(
            &elfn(ElfnConfig::default()),
            &format!("route failed {seq}"),
            "0.300 ? standby false
             1.200 > . 1:1001(1000) ack 1
             1.200 ? timeouts 1",
        );
    }
}

#[test]
fn the_probe_interval_is_configurable() {
    let probe_interval = Duration::from_millis(500);
    run_broken(
        &elfn(ElfnConfig { probe_interval, ..ElfnConfig::default() }),
        "route failed",
        "0.800 > . 1:1001(1000) ack 1
         1.300 > . 1:1001(1000) ack 1",
    );
}

#[test]
fn a_second_notice_does_not_put_off_the_probe() {
    run_broken(
        &elfn(ElfnConfig::default()),
        "route failed",
        "1.000 route failed
         2.300 > . 1:1001(1000) ack 1",
    );
}

// "If an ACK is received, then it leaves the stand-by mode, restores its retransmission timers, and
// continues as normal."
#[test]
fn an_ack_restores_the_timer_and_the_window_and_the_next_segment_follows_at_once() {
    run_broken(
        &elfn(ElfnConfig::default()),
        "route failed",
        "1.000 write 3000
         2.300 > . 1:1001(1000) ack 1
         2.400 < ack 1001
         2.400 > . 1001:2001(1000) ack 1
         2.400 > . 4001:6001(2*1000) ack 1
         2.400 ? standby false cwnd 5000 rto 1 timer 3.4 timeouts 0",
    );
}

#[test]
fn an_ack_of_nothing_new_ends_standby_too() {
    run_broken(
        &elfn(ElfnConfig::default()),
        "route failed",
        "0.400 < ack 1
         0.400 > . 1:1001(1000) ack 1
         0.400 ? standby false cwnd 4000 timer 1.4",
    );
}

#[test]
fn the_window_may_start_anew() {
    let config = elfn(ElfnConfig { window: Thaw::Initial, ..ElfnConfig::default() });
    run_open(
        &config,
        "0.200 write 8000
         0.200 > . 1:4001(4*1000) ack 1
         0.300 < ack 2001
         0.300 > . 4001:7001(3*1000) ack 1
         0.300 ? cwnd 5000
         0.400 route failed
         2.400 > . 2001:3001(1000) ack 1
         2.500 < ack 7001
         2.500 > P. 7001:8001(1000) ack 1
         # The initial window, and one segment for the ACK.
         2.500 ? standby false cwnd 5000 rto 1",
    );
}

#[test]
fn the_rto_may_start_anew() {
    for (rto, seconds) in [(Thaw::AsFrozen, "2"), (Thaw::Initial, "1")] {
        run_open(
            &elfn(ElfnConfig { rto, ..ElfnConfig::default() }),
            &format!(
                "0.200 write 1000
                 0.200 > P. 1:1001(1000) ack 1
                 1.200 > P. 1:1001(1000) ack 1
                 1.200 ? rto 2
                 1.300 route failed
                 3.300 > P. 1:1001(1000) ack 1
                 3.400 < ack 1001
                 3.400 ? standby false rto {seconds}"
            ),
        );
    }
}

#[test]
fn news_of_a_route_changes_nothing() {
    run_broken(
        &elfn(ElfnConfig::default()),
        "route failed",
        "1.000 route found
         1.000 ? standby true
         2.300 > . 1:1001(1000) ack 1",
    );
}

#[test]
fn news_of_a_route_may_end_standby() {
    let config = ElfnConfig { resume_on_route: true, ..ElfnConfig::default() };
    run_broken(
        &elfn(config),
        "route failed",
        "1.000 route found
         1.000 > . 1:1001(1000) ack 1
         1.000 ? standby false cwnd 4000 timer 2",
    );
}

#[test]
fn without_outstanding_data_a_notice_changes_nothing() {
    run_open(
        &elfn(ElfnConfig::default()),
        "0.300 route failed
         0.300 ? standby false timer none",
    );
}
