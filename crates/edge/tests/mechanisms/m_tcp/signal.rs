//! `detect = "signal"`: the link's signal closes the window, and nothing is queued (M-TCP+ §2.5).

use super::{MTcpScript, machine};
use crate::script_in_words::{ISNS, Script, Seg, with_payload};
use airtcp_core::{Duration, LinkSignal};
use airtcp_edge::{Action, Actions, Detect, MTcpConfig, Middlebox, Resume, Side};

fn config() -> MTcpConfig {
    MTcpConfig { detect: Detect::Signal, ..MTcpConfig::default() }
}

/// The fixed host sent 0:1000, 1000:2000 and 2000:3000, and the mobile acknowledged the first.
fn flowing(isn: u32, config: MTcpConfig) -> MTcpScript {
    let mut s = Script::open(machine(config), isn);
    for seq in [0, 1000, 2000] {
        assert_eq!(s.data(seq, 1000), ["pass"]);
    }
    assert_eq!(s.ack(1000), ["drop", "to fixed: ack 999 win 500"]);
    s
}

/// [`flowing`], then this signal, after which the window is closed.
fn closed(isn: u32, signal: LinkSignal) -> MTcpScript {
    let mut s = flowing(isn, config());
    assert_eq!(s.signal(signal), ["to fixed: ack 1000 win 0"]);
    s
}

#[test]
fn the_first_signal_gives_the_withheld_byte_and_closes_the_window() {
    for isn in ISNS {
        let mut s = closed(isn, LinkSignal::Fading);
        assert_eq!(s.signal(LinkSignal::Down).len(), 0, "once");
        assert_eq!(s.machine.counters().persist_packets, 1);
    }
    closed(0, LinkSignal::Down);
}

#[test]
fn silence_is_no_outage_and_nothing_is_queued_or_retransmitted() {
    for isn in ISNS {
        let mut s = flowing(isn, config());
        assert_eq!(s.until(60_000), ["100 to fixed: ack 1000 win 500"], "only the release (E)");
        assert_eq!(s.machine.held(), 0);
        for _ in 0..3 {
            assert_eq!(s.ack(1000), ["pass"], "a loss is the fixed host's to repair");
        }
    }
}

#[test]
fn in_an_outage_nothing_is_sent_to_the_mobile_by_the_node() {
    for isn in ISNS {
        let mut s = closed(isn, LinkSignal::Down);
        assert_eq!(s.until(180_000).len(), 0);
    }
}

#[test]
fn acks_on_the_way_count_in_full_and_do_not_open_the_window() {
    for isn in ISNS {
        let mut s = closed(isn, LinkSignal::Fading);
        assert_eq!(s.ack(3000), ["drop", "to fixed: ack 3000 win 0"], "nothing is outstanding");
        assert_eq!(s.ack(3000), ["drop"], "no news");
        assert_eq!(s.machine.counters().reconnections, 0);
    }
}

#[test]
fn data_of_the_mobile_on_the_way_passes_with_the_window_closed() {
    let mut s = closed(0, LinkSignal::Fading);
    let request = with_payload(s.mobile(2000), 300);
    let mut out = Actions::new();
    s.machine.on_segment(s.now, Side::Mobile, request.clone(), &mut out);
    let closing = Seg { window: 0, ..request };
    assert_eq!(out.as_slice()[1..], [Action::Inject { to: Side::Fixed, segment: closing }]);
}

#[test]
fn data_on_the_way_passes_and_its_ack_does_not_open_the_window() {
    for isn in ISNS {
        let mut s = closed(isn, LinkSignal::Fading);
        assert_eq!(s.data(3000, 1000), ["pass"]);
        assert_eq!(s.ack(4000), ["drop", "to fixed: ack 4000 win 0"]);
    }
}

#[test]
fn up_opens_the_window_and_leaves_what_was_lost_to_the_fixed_host() {
    for isn in ISNS {
        let mut s = closed(isn, LinkSignal::Down);
        s.until(30_000);
        assert_eq!(s.signal(LinkSignal::Up), ["to fixed: ack 1000 win 500"]);
        assert_eq!(s.signal(LinkSignal::Up).len(), 0);
        assert_eq!(s.data(1000, 1000), ["pass"]);
        assert_eq!(s.ack(2000), ["drop", "to fixed: ack 1999 win 500"], "as before");
        assert_eq!(s.machine.counters().reconnections, 1);
    }
}

#[test]
fn with_resume_by_probe_up_does_not_open_the_window_and_the_next_probe_does() {
    for isn in ISNS {
        let mut s = flowing(isn, MTcpConfig { resume: Resume::Probe, ..config() });
        s.signal(LinkSignal::Fading);
        s.ack(3000);
        assert_eq!(s.signal(LinkSignal::Up).len(), 0);
        assert_eq!(s.machine.counters().reconnections, 0);
        assert_eq!(s.data(3000, 1), ["pass", "to fixed: ack 3000 win 0"]);
        assert_eq!(s.ack(3000), ["pass"]);
        assert_eq!(s.machine.counters().reconnections, 1);
    }
}

#[test]
fn without_up_the_answer_to_a_retransmission_opens_the_window() {
    for isn in ISNS {
        let mut s = closed(isn, LinkSignal::Down);
        assert_eq!(s.data(1000, 1000), ["pass"]);
        assert_eq!(s.ack(2000), ["drop", "to fixed: ack 1999 win 500"]);
        assert_eq!(s.machine.counters().reconnections, 1);
    }
}

#[test]
fn without_up_the_answer_to_a_probe_opens_the_window() {
    for isn in ISNS {
        let mut s = closed(isn, LinkSignal::Fading);
        s.ack(3000);
        assert_eq!(s.data(3000, 1), ["pass", "to fixed: ack 3000 win 0"], "the sender survives");
        assert_eq!(s.ack(3000), ["pass"]);
        assert_eq!(s.machine.counters().reconnections, 1);
    }
}

#[test]
fn another_signal_takes_back_what_a_probe_would_have_proved() {
    let mut s = closed(0, LinkSignal::Fading);
    s.data(3000, 1);
    s.signal(LinkSignal::Down);
    assert_eq!(s.ack(1000), ["drop"]);
}

#[test]
fn a_mobile_gone_for_max_down_ends_the_connection() {
    let max_down = Some(Duration::from_secs(1));
    let mut s = flowing(0, MTcpConfig { max_down, ..config() });
    s.signal(LinkSignal::Down);
    s.until(900);
    s.ack(2000);
    assert_eq!(s.until(1899).len(), 0, "it was heard at 0.9 s");
    let sent = s.until(60_000);
    assert!(sent.len() == 2 && sent.iter().all(|line| line.contains("RST")), "{sent:?}");
    assert_eq!(s.signal(LinkSignal::Up).len(), 0);
}
