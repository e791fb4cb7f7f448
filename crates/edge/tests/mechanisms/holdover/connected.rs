//! docs/holdover.md, *Connected*.

use super::{counters, each, fifo, node, with};
use crate::script::{Script, with_flags, with_payload, with_window};
use airtcp_core::{Duration, Flags, Length, Segment};
use airtcp_edge::{Action, Actions, HoldoverConfig, Middlebox, Side};
use proptest::prelude::*;

#[test]
fn data_is_copied_and_forwarded() {
    each(|mut s| {
        assert_eq!(s.data(6000, 1000), [">M 6000:7000"]);
        assert_eq!(s.data(6000, 1000), [">M 6000:7000"], "a retransmission too");
        assert_eq!((s.node.held(), counters(&s).segments_copied), (6000, 7));
    });
}

#[test]
fn acks_pass_unmodified_and_free_copies() {
    each(|mut s| {
        assert_eq!(s.ack(4000), [">F ack 4000 win 500"]);
        assert_eq!(s.node.held(), 2000);
    });
}

#[test]
fn a_full_fifo_forwards_without_copying() {
    with(fifo(5000), |mut s| {
        assert_eq!((s.node.held(), counters(&s).overflows), (4000, 1));
        assert_eq!(s.data(6000, 1000), [">M 6000:7000"]);
        assert_eq!(s.node.held(), 5000);
    });
}

#[test]
fn reconnection_without_disconnection_does_nothing() {
    each(|mut s| assert!(s.up().is_empty()));
}

#[test]
fn without_the_mobile_s_acknowledgement_nothing_is_known_to_repeat() {
    let mut s = Script::blank(node(HoldoverConfig::default()), 0);
    assert_eq!(s.data(0, 1000), [">M 0:1000"]);
    assert!(s.down().is_empty());
    assert_eq!(s.data(0, 1000), [">M 0:1000"]);
}

#[test]
fn data_sent_before_the_mobile_s_first_acknowledgement_may_be_acknowledged() {
    let mut s = Script::blank(node(HoldoverConfig::default()), 0);
    s.data(0, 6000);
    s.ack(1000);
    assert_eq!(s.ack(4000), [">F ack 4000 win 500"]);
    assert_eq!(s.fading(), ["+F ack 4000 win 0"]);
}

proptest! {
    #[test]
    fn without_a_signal_every_segment_passes_as_it_came(
        isn: u32,
        limit in 0u64..20_000,
        stream in proptest::collection::vec(
            (any::<bool>(), 0u32..9000, 0u64..3000, any::<u8>(), any::<u16>(), any::<bool>(), 0u64..400), 0..200,
        ),
    ) {
        let mut s = Script::blank(node(fifo(limit)), isn);
        for (from_fixed, number, len, flags, window, ack, pause) in stream {
            s.wait(Duration::from_secs(pause));
            let (from, segment) = if from_fixed {
                (Side::Fixed, s.fixed(number, len))
            } else {
                (Side::Mobile, with_payload(s.mobile(number), len / 2000 * len))
            };
            let segment = with_window(with_flags(segment, Flags::from_bits_truncate(flags)), window);
            let segment = Segment { ack: segment.ack.filter(|_| ack), ..segment };
            let mut out = Actions::new();
            s.node.on_segment(s.now, from, segment.clone(), &mut out);
            let forward = Action::Forward { to: from.opposite(), segment };
            prop_assert_eq!(out.as_slice(), &[forward]);
            prop_assert_eq!(Middlebox::<Length>::next_deadline(&s.node), None);
            prop_assert!(s.node.held() <= limit);
        }
    }
}

// --- Nothing is lost if the node forgets ---

#[test]
fn nothing_is_ever_committed() {
    // A handshake, which may be forged, makes the node forget even a frozen connection.
    each(|mut s| {
        s.down();
        let syn = Segment { ack: None, ..with_flags(s.fixed(77, 0), Flags::SYN) };
        assert_eq!(s.fixed_sends(syn), ["+F ack 1000 win 0", ">M 77:77"], "RFC 5961 §4.2");
        assert_eq!(s.node.held(), 5000);
        let syn_ack = with_flags(s.mobile(78), Flags::SYN);
        assert_eq!(s.mobile_sends(syn_ack), [">F ack 78 win 500"]);
        assert_eq!((s.node.held(), s.node.flows()), (0, 0));
        assert_eq!(s.data(1000, 1000), [">M 1000:2000"], "the fixed host has all it needs");
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
    });
}

#[test]
fn a_mobile_that_is_back_from_an_outage_nobody_told_of_gets_all_copies() {
    each(|mut s| {
        assert!(s.up().is_empty(), "nothing was sent again");
        s.data(1000, 1000);
        assert_eq!((s.up().len(), counters(&s).replays), (5, 1));
        assert!(s.up().is_empty(), "once");
        s.data(1000, 1000);
        s.ack(2000);
        assert!(s.up().is_empty(), "the mobile goes on");
    });
}

#[test]
fn a_replay_that_is_not_answered_begins_anew_when_the_mobile_is_back() {
    each(|mut s| {
        s.expect_unanswered_replay_begins_anew();
        assert_eq!(counters(&s).replays, 2);
    });
}

#[test]
fn signals_pass_by_a_closed_connection() {
    each(Script::expect_signals_pass_by_a_closed_connection);
}
