//! Connection control, options, and the end of waiting.

use super::{Node, counters, each, node, with};
use crate::script::{Script, Seg, with_flags, with_payload, with_timestamps};
use airtcp_core::{Duration, Flags, LinkSignal, SackBlock, Segment, Timestamps};
use airtcp_edge::{Action, Actions, MTcpPlusConfig, Side};

// --- SYN and RST ---

// Forwarded, it would be lost on the dead link, and with it what was acknowledged.
#[test]
fn a_reset_of_the_fixed_host_waits_until_the_mobile_has_what_is_held() {
    each(|mut s| {
        s.down();
        let reset = with_flags(s.fixed(6000, 0), Flags::RST);
        assert_eq!(s.fixed_sends(reset.clone()), ["x R 6000:6000"]);
        assert_eq!(s.fixed_sends(reset), ["x R 6000:6000"], "as it answers whatever it gets");
        assert!(s.node.held() > 0);
        s.up();
        s.ack(3000);
        assert_eq!(s.ack(6000).last().unwrap(), "+M R 6000:6000");
        assert_eq!(s.node.held(), 0);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"], "it is over");
    });
}

#[test]
fn a_fixed_host_that_goes_on_has_not_reset() {
    each(|mut s| {
        s.down();
        let reset = with_flags(s.fixed(6000, 0), Flags::RST);
        s.fixed_sends(reset);
        s.data(1000, 1000);
        s.up();
        let told = s.ack(6000);
        assert!(!told.iter().any(|segment| segment.contains(" R ")), "{told:?}");
    });
}

#[test]
fn a_reset_of_the_mobile_frees_all() {
    each(|mut s| {
        s.down();
        let reset = with_flags(s.mobile(1000), Flags::RST);
        assert_eq!(s.mobile_sends(reset).len(), 1);
        assert_eq!(s.node.held(), 0);
    });
}

#[test]
fn a_mobile_without_the_connection_resets_it_by_its_answer_to_a_copy() {
    // It repeats the copy's acknowledgement number (RFC 9293 §3.10.7.1): the fixed host must expect
    // it.
    each(|mut s| {
        let sent = with_payload(s.mobile(1000), 100);
        s.mobile_sends(sent.clone());
        let acknowledged = Segment { ack: Some(sent.seq_end()), ..s.fixed(6000, 0) };
        s.fixed_sends(acknowledged);
        s.down();
        let copies = s.injected_by(LinkSignal::Up);
        let answer = with_flags(Segment { seq: copies[0].ack.unwrap(), ..s.mobile(0) }, Flags::RST);
        s.mobile_sends(Segment { ack: None, ..answer });
        assert_eq!(s.node.held(), 0);
    });
}

// --- max_down ---

fn max_down(s: u64) -> MTcpPlusConfig {
    MTcpPlusConfig { max_down: Some(Duration::from_secs(s)), ..MTcpPlusConfig::default() }
}

#[test]
fn a_mobile_that_never_comes_back_ends_in_a_reset_of_both_hosts() {
    with(max_down(100), |mut s| {
        s.down();
        s.data(6000, 500);
        for wait in [1, 2, 4, 8, 16, 32] {
            assert_eq!(s.timer(wait), ["+M 1000:2000"]);
        }
        assert_eq!(s.timer(37), ["+F R 0:0 ack 6500 win 0", "+M R 1000:1000"]);
        assert_eq!((s.node.held(), counters(&s).resets), (0, 1));
        // A host that missed the reset gets another, as from a host without this connection.
        assert_eq!(s.data(6500, 1), ["x 6500:6501", "+F R 0:0"]);
        assert_eq!(s.up(), ["+M R 1000:1000"]);
        assert_eq!(s.ack(1000), ["x ack 1000 win 500", "+M R 1000:1000"]);
    });
}

#[test]
fn without_max_down_waiting_never_ends() {
    each(|mut s| {
        s.down();
        for _ in 0..1000 {
            assert_eq!(s.next_timer(), ["+M 1000:2000"]);
        }
    });
}

#[test]
fn hearing_the_mobile_starts_the_wait_anew() {
    with(max_down(100), |mut s| {
        s.ack(6000);
        s.fading();
        s.wait(Duration::from_secs(60));
        s.ack(6000);
        assert_eq!(s.timer(100)[0], "+F R 0:0 ack 6000 win 0");
    });
}

#[test]
fn after_the_release_nobody_is_reset() {
    with(max_down(100), |mut s| {
        s.down();
        s.up();
        s.ack(6000);
        assert!(s.next_timer().is_empty());
    });
}

// --- Options ---

/// Data and ACKs with timestamps: the fixed host's clock is 100 + seq / 1000, the mobile's 900.
fn stamped(isn: u32) -> Script<Node> {
    let mut s = Script::blank(node(MTcpPlusConfig::default()), isn);
    let ack = with_timestamps(s.mobile(0), 890, 90);
    s.mobile_sends(ack);
    for i in 0..6 {
        let data = stamp(&s, 1000 * i);
        s.fixed_sends(data);
    }
    let ack = with_timestamps(s.mobile(1000), 900, 100);
    s.mobile_sends(ack);
    s
}

fn stamp(s: &Script<Node>, seq: u32) -> Seg {
    with_timestamps(s.fixed(seq, 1000), 100 + seq / 1000, 880)
}

fn timestamps(segment: &Seg) -> (u32, u32) {
    let Timestamps { value, echo } = segment.options.timestamps.expect("timestamps");
    (value, echo)
}

#[test]
fn acks_in_the_mobile_s_name_carry_timestamps_as_its_own_would() {
    for isn in super::ISNS {
        let mut s = stamped(isn);
        let acks = s.injected_by(LinkSignal::Down);
        assert_eq!(timestamps(&acks[0]), (900, 100), "its last one once more");
        assert_eq!(timestamps(&acks[1]), (900, 101), "the first segment that it acknowledges");
        let late = stamp(&s, 6000);
        assert_eq!(timestamps(&s.injected(Side::Fixed, late)[0]), (900, 106));
    }
}

#[test]
fn of_what_the_mobile_had_reported_missing_the_retransmission_is_acknowledged() {
    // RFC 3522: by the echo the fixed host tells whether its retransmission was needless.
    for (left, echo, what) in [
        (2000, 150, "1000:2000 was missing"),
        (500, 101, "500:1000 came twice (RFC 2883), and 1000:2000 may be on its way"),
    ] {
        let mut s = stamped(0);
        let mut ack = with_timestamps(s.mobile(1000), 905, 100);
        let block = SackBlock { left: s.fixed(left, 0).seq, right: s.fixed(left + 500, 0).seq };
        ack.options.sack = [block].into_iter().collect();
        s.mobile_sends(ack);
        let retransmission = with_timestamps(s.fixed(1000, 1000), 150, 890);
        s.fixed_sends(retransmission);
        assert_eq!(timestamps(&s.injected_by(LinkSignal::Down)[1]), (905, echo), "{what}");
    }
}

#[test]
fn replayed_copies_do_not_look_old_to_the_mobile() {
    // RFC 7323 §5: it has seen 150 on a retransmission of 1000:2000, and would drop what carries
    // less.
    let mut s = stamped(0);
    let retransmission = with_timestamps(s.fixed(1000, 1000), 150, 890);
    s.fixed_sends(retransmission);
    let ack = with_timestamps(s.mobile(2000), 910, 150);
    s.mobile_sends(ack);
    s.injected_by(LinkSignal::Down);
    let late = stamp(&s, 6000);
    s.fixed_sends(late);
    let stale = with_timestamps(s.fixed(7000, 1000), 160, 890);
    s.fixed_sends(stale);
    let stamps: Vec<_> = s.injected_by(LinkSignal::Up).iter().map(timestamps).collect();
    assert_eq!(stamps, [(150, 890), (150, 890), (150, 890), (150, 890), (150, 890), (160, 890)]);
}

#[test]
fn copies_do_not_look_old_after_what_went_on_in_spite_of_the_node() {
    // RFC 7323 §5: a live gateway may be late in holding packets back, and then has but copies of
    // them.
    let mut s = stamped(0);
    s.injected_by(LinkSignal::Down);
    let retransmission = with_timestamps(s.fixed(1000, 1000), 150, 890);
    let mut out = Actions::new();
    s.node.on_copy(s.now, Side::Fixed, retransmission, &mut out);
    let forwarded = out.as_slice().iter().any(|action| matches!(action, Action::Forward { .. }));
    assert!(!forwarded, "it should have been held back");
    let stamps = s.injected_by(LinkSignal::Up).iter().map(timestamps).collect::<Vec<_>>();
    assert_eq!(stamps, [(150, 890); 5]);
}

#[test]
fn acks_in_the_mobile_s_name_carry_its_ecn_echo() {
    each(|mut s| {
        let echo = with_flags(s.mobile(2000), Flags::ECE);
        s.mobile_sends(echo);
        let acks = s.injected_by(LinkSignal::Down);
        assert!(
            acks.iter().all(|ack| ack.flags == Flags::ECE && ack.options == Default::default())
        );
    });
}

// --- After a restart of the node ---

#[test]
fn acks_in_the_mobile_s_name_begin_where_the_fixed_host_expects_them() {
    // The first segment of the mobile that comes by is an old one, sent again.
    for isn in super::ISNS {
        let mut s = Script::blank(node(MTcpPlusConfig::default()), isn);
        let expected = s.mobile(0).seq + 1600;
        let fixed = Segment { ack: Some(expected), ..s.fixed(1000, 0) };
        let old = with_payload(s.mobile(1000), 500);
        s.fixed_sends(fixed.clone());
        s.mobile_sends(old.clone());
        assert_eq!(s.injected_by(LinkSignal::Down)[0].seq, expected);
        let mut s = Script::blank(node(MTcpPlusConfig::default()), isn);
        s.mobile_sends(old);
        s.fixed_sends(fixed);
        assert_eq!(s.injected_by(LinkSignal::Down)[0].seq, expected);
    }
}

#[test]
fn acks_in_the_mobile_s_name_are_no_older_than_what_the_fixed_host_echoes() {
    for fixed_first in [true, false] {
        let mut s = Script::blank(node(MTcpPlusConfig::default()), 0);
        let mobile = with_timestamps(s.mobile(1000), u32::MAX - 5, 100);
        let fixed = with_timestamps(s.fixed(1000, 0), 105, 3);
        if fixed_first {
            s.fixed_sends(fixed.clone());
        }
        s.mobile_sends(mobile);
        s.fixed_sends(fixed);
        assert_eq!(timestamps(&s.injected_by(LinkSignal::Down)[0]), (3, 100));
    }
}

#[test]
fn a_fixed_host_that_was_not_heard_is_not_frozen() {
    let mut s = Script::blank(node(MTcpPlusConfig::default()), 0);
    s.ack(1000);
    assert!(s.down().is_empty());
}

// --- Several connections ---

#[test]
fn a_signal_freezes_all_connections_of_the_mobile_and_no_other() {
    let mut s = Script::new(node(MTcpPlusConfig::default()), 0);
    let connection = |s: &mut Script<Node>, change: fn(Seg) -> Seg| {
        let (ack, data) = (change(s.mobile(0)), change(s.fixed(0, 100)));
        s.mobile_sends(ack);
        s.fixed_sends(data);
    };
    // Another port of the mobile, then another mobile.
    connection(&mut s, |mut segment| {
        let end = if segment.payload.0 > 0 { &mut segment.flow.dst } else { &mut segment.flow.src };
        end.port += 1;
        segment
    });
    connection(&mut s, |mut segment| {
        let end = if segment.payload.0 > 0 { &mut segment.flow.dst } else { &mut segment.flow.src };
        end.ip = "10.0.0.9".parse().unwrap();
        segment
    });
    assert_eq!(s.node.flows(), 3);
    let flows: Vec<u16> =
        s.injected_by(LinkSignal::Down).iter().map(|ack| ack.flow.src.port).collect();
    assert_eq!(flows, [5001, 5001, 5002, 5002]);
}

#[test]
fn a_connection_that_begins_while_the_mobile_is_away_is_forwarded() {
    let mut s = Script::blank(node(MTcpPlusConfig::default()), 0);
    s.down();
    assert_eq!(s.data(0, 1), [">M 0:1"]);
    assert_eq!(s.ack(0), [">F ack 0 win 500"]);
    let data = with_payload(s.mobile(0), 10);
    assert_eq!(s.mobile_sends(data), [">F 0:10 ack 0 win 500"]);
}
