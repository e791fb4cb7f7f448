//! What real senders make of M-TCP+ and holdover: the table of persist rules in docs/holdover.md,
//! and the purpose of M-TCP+ (paper §3), on a network without random loss.
//!
//! A fixed host sends without end over a wired path of 20 ms to the node and a wireless one of 10
//! ms and 8 Mbit/s to the mobile. The link is out of order for a while; the node is told when it
//! happens, or some time ahead.

mod world;

use airtcp_core::{Bytes, Duration, Length};
use airtcp_edge::{
    Acknowledge, FlowTableConfig, Holdover, HoldoverConfig, MTcpPlus, MTcpPlusConfig, Open,
    PacketControl, Resume,
};
use airtcp_tcp::config::{PersistOnShrink, Recovery, SpuriousDetection, TcpConfig};
use airtcp_tcp::preset;
use world::{Outcome, transfer};

/// Six segments, as in the paper (Table 1), and its persist timer and limit of retransmissions.
fn sender(on_shrink: PersistOnShrink) -> TcpConfig {
    let window = Bytes(8760);
    let mut config =
        TcpConfig { receive_buffer: window, cwnd_limit: Some(window), ..TcpConfig::default() };
    config.persist.on_shrink = on_shrink;
    config.persist.initial = Some(Duration::from_secs(1));
    config.rto.max_retransmissions = 6;
    config
}

fn m_tcp_plus(resume: Resume) -> MTcpPlus<Length> {
    let config = MTcpPlusConfig { resume, ..MTcpPlusConfig::default() };
    MTcpPlus::new(config, FlowTableConfig::default(), 1 << 20)
}

fn holdover() -> Holdover<Length> {
    Holdover::new(HoldoverConfig::default(), FlowTableConfig::default(), 1 << 20)
}

/// Nothing at work: the filter is transparent at the sender's own threshold.
fn plain() -> PacketControl {
    PacketControl::new(3, FlowTableConfig::default()).unwrap()
}

const AT_ONCE: Duration = Duration::ZERO;
const A_ROUND_TRIP_AHEAD: Duration = Duration::from_millis(150);

fn ms(outcome: &Outcome) -> u64 {
    outcome.dead_time.expect("the connection lives").as_millis()
}

#[test]
fn plain_tcp_waits_for_its_back_off_and_loses_cwnd() {
    let after = transfer(&sender(PersistOnShrink::Strict), plain(), 10, AT_ONCE);
    assert!(after.timeouts > 0 && after.reductions > 0, "{after:?}");
    assert!(ms(&after) > 1000, "{after:?}");
    let after = transfer(&sender(PersistOnShrink::Strict), plain(), 300, AT_ONCE);
    assert!(after.is_aborted);
}

#[test]
fn m_tcp_plus_keeps_cwnd_of_any_sender_for_any_time() {
    for rule in [PersistOnShrink::Strict, PersistOnShrink::Bsd, PersistOnShrink::Linux] {
        for seconds in [1, 10, 300] {
            let after = transfer(&sender(rule), m_tcp_plus(Resume::Flush), seconds, AT_ONCE);
            assert_eq!(
                (after.timeouts, after.retransmitted),
                (0, 0),
                "{rule:?} {seconds} {after:?}"
            );
            assert!(ms(&after) < 150, "{rule:?} {seconds} {after:?}");
        }
    }
}

/// Its window is 64 KiB, more than the queue in front of the link, and it has no SACK: as lwIP.
fn bursty() -> TcpConfig {
    let window = Bytes(65_535);
    TcpConfig {
        receive_buffer: window,
        cwnd_limit: Some(window),
        ..sender(PersistOnShrink::Strict)
    }
}

#[test]
fn a_window_that_opens_in_steps_overflows_no_queue_that_is_shorter() {
    let config = |open| MTcpPlusConfig { open, ..MTcpPlusConfig::default() };
    let transfer = |open| {
        let node = MTcpPlus::new(config(open), FlowTableConfig::default(), 1 << 20);
        transfer(&bursty(), node, 10, AT_ONCE)
    };
    let [at_once, in_steps] = [Open::AtOnce, Open::InSteps].map(transfer);
    assert!(at_once.overflows > 0 && at_once.reductions > 0, "{at_once:?}");
    let losses = (in_steps.overflows, in_steps.timeouts, in_steps.reductions);
    assert_eq!(losses, (0, 0, 0), "{in_steps:?}");
    assert!(ms(&in_steps) < 150, "{in_steps:?}");
}

// RFC 5482; Linux's persist timer also gives up a window that stays closed for so long.
#[test]
fn m_tcp_plus_in_time_keeps_a_user_timeout_from_running() {
    let sender = TcpConfig { user_timeout: Some(Duration::from_secs(20)), ..preset::linux() };
    let is_aborted = |seconds, acknowledge| {
        let config =
            MTcpPlusConfig { acknowledge, fifo: Bytes(4 << 20), ..MTcpPlusConfig::default() };
        let node = MTcpPlus::new(config, FlowTableConfig::default(), 4 << 20);
        transfer(&sender, node, seconds, AT_ONCE).is_aborted
    };
    for seconds in [15, 30, 60, 120, 240] {
        assert!(!is_aborted(seconds, Acknowledge::IN_TIME), "after {seconds} s");
    }
    assert!(is_aborted(30, Acknowledge::AtOnce));
}

#[test]
fn with_resume_probe_the_rest_of_a_persist_interval_is_lost() {
    let mut config = sender(PersistOnShrink::Strict);
    config.persist.backoff = 1.0;
    let after = transfer(&config, m_tcp_plus(Resume::Probe), 10, AT_ONCE);
    assert_eq!(after.timeouts, 0);
    assert!(ms(&after) < 1150, "{after:?}");
}

#[test]
fn holdover_with_a_warning_is_as_good_as_m_tcp_plus_for_any_sender() {
    for rule in [PersistOnShrink::Strict, PersistOnShrink::Bsd, PersistOnShrink::Linux] {
        for seconds in [1, 10, 300] {
            let after = transfer(&sender(rule), holdover(), seconds, A_ROUND_TRIP_AHEAD);
            assert_eq!(
                (after.timeouts, after.retransmitted),
                (0, 0),
                "{rule:?} {seconds} {after:?}"
            );
            assert!(ms(&after) < 150, "{rule:?} {seconds} {after:?}");
        }
    }
}

#[test]
fn holdover_lets_eifel_restore_cwnd() {
    for rule in [PersistOnShrink::Strict, PersistOnShrink::Linux] {
        let config =
            TcpConfig { timestamps: true, spurious: SpuriousDetection::Eifel, ..sender(rule) };
        let after = transfer(&config, holdover(), 10, AT_ONCE);
        assert!(after.timeouts > 0 && after.spurious_detected == 1, "{rule:?} {after:?}");
        assert!(after.cwnd.1 == after.cwnd.0, "{rule:?} {after:?}");
        assert!(ms(&after) < 150, "{rule:?} {after:?}");
    }
}

#[test]
fn holdover_lets_f_rto_restore_cwnd_of_a_sack_sender() {
    let config = TcpConfig {
        recovery: Recovery::Sack,
        spurious: SpuriousDetection::FRto,
        ..sender(PersistOnShrink::Strict)
    };
    let after = transfer(&config, holdover(), 10, AT_ONCE);
    assert!(after.timeouts > 0 && after.spurious_detected == 1, "{after:?}");
    assert!(ms(&after) < 150, "{after:?}");
}

#[test]
fn holdover_saves_the_back_off_of_a_sender_that_detects_nothing() {
    let strict = sender(PersistOnShrink::Strict);
    let [after, plain] =
        [transfer(&strict, holdover(), 10, AT_ONCE), transfer(&strict, plain(), 10, AT_ONCE)];
    assert!(ms(&after) < 150 && ms(&plain) > 1000, "{after:?} {plain:?}");
}

#[test]
fn holdover_keeps_bsd_and_linux_senders_alive_and_not_a_strict_one() {
    for rule in [PersistOnShrink::Bsd, PersistOnShrink::Linux] {
        let after = transfer(&sender(rule), holdover(), 300, AT_ONCE);
        assert!(ms(&after) < 150, "{rule:?} {after:?}");
    }
    let strict = transfer(&sender(PersistOnShrink::Strict), holdover(), 300, AT_ONCE);
    assert!(strict.is_aborted);
}
