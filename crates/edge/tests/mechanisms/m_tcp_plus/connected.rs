//! Connected: a plain forwarder that keeps copies (paper §3.2).

use super::{MEMORY, counters, each, fifo, node};
use crate::script::{Script, with_flags, with_payload, with_window};
use airtcp_core::{Duration, Flags, Length, LinkSignal, Segment};
use airtcp_edge::{Action, Actions, FlowTableConfig, MTcpPlus, MTcpPlusConfig, Middlebox, Side};
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
        assert_eq!(s.ack(2000), [">F ack 2000 win 500"], "an old one too");
        assert_eq!(s.node.held(), 2000);
    });
}

#[test]
fn of_a_partly_acknowledged_segment_the_rest_is_sent_again() {
    each(|mut s| {
        s.ack(1500);
        assert_eq!(s.node.held(), 5000);
        s.down();
        assert_eq!(s.up()[0], "+M 1500:2000");
    });
}

#[test]
fn data_the_mobile_has_is_not_copied() {
    each(|mut s| {
        s.ack(6000);
        assert_eq!(s.data(5000, 1000), [">M 5000:6000"]);
        assert_eq!(s.node.held(), 0);
    });
}

#[test]
fn data_before_the_mobile_s_first_acknowledgement_is_forwarded_only() {
    let mut s = Script::blank(node(MTcpPlusConfig::default()), 0);
    assert_eq!(s.data(0, 1000), [">M 0:1000"]);
    assert_eq!(s.node.held(), 0);
    assert!(s.down().is_empty(), "nothing is known to acknowledge");
    assert!(s.up().is_empty());
}

#[test]
fn a_restarted_node_forwards_what_it_knows_nothing_of() {
    // Its predecessor had acknowledged up to 6000 in the mobile's name.
    let mut s = Script::blank(node(MTcpPlusConfig::default()), 0);
    assert_eq!(s.data(6000, 1), [">M 6000:6001"], "the fixed host's window probe");
    assert_eq!(s.ack(1000), [">F ack 1000 win 500"]);
}

#[test]
fn a_full_fifo_forwards_without_copying() {
    for isn in super::ISNS {
        let mut s = Script::new(node(fifo(5000)), isn);
        assert_eq!((s.node.held(), counters(&s).overflows), (4000, 1));
        assert_eq!(s.data(6000, 1000), [">M 6000:7000"]);
        assert_eq!((s.node.held(), counters(&s).overflows), (5000, 1), "there is room again");
    }
}

#[test]
fn memory_is_bounded_over_all_connections() {
    let node = MTcpPlus::new(MTcpPlusConfig::default(), FlowTableConfig::default(), 7000);
    let mut s = Script::new(node, 0);
    let other = |mut segment: Segment<Length>| {
        segment.flow.src.port += u16::from(segment.payload.0 > 0);
        segment.flow.dst.port += u16::from(segment.payload.0 == 0);
        segment
    };
    let ack = other(s.mobile(0));
    s.mobile_sends(ack);
    for seq in [0, 1000, 2000] {
        let data = other(s.fixed(seq, 1000));
        s.fixed_sends(data);
    }
    assert_eq!((s.node.held(), counters(&s).overflows), (7000, 1));
}

#[test]
fn a_super_segment_is_one_copy() {
    each(|mut s| {
        s.ack(6000);
        s.data(6000, 60_000);
        assert_eq!(s.down(), ["+F ack 6000 win 0", "+F ack 66000 win 0"]);
        assert_eq!(s.up(), ["+M 6000:36000"], "as much of it as an initial window");
    });
}

#[test]
fn data_of_another_connection_s_numbers_is_not_copied() {
    each(|mut s| {
        assert_eq!(s.data(0x7000_0000, 1000), [">M 1879048192:1879049192"]);
        assert_eq!(s.node.held(), 5000);
    });
}

#[test]
fn an_ack_of_data_never_sent_frees_nothing() {
    each(|mut s| {
        assert_eq!(s.ack(6002), [">F ack 6002 win 500"]);
        assert_eq!(s.node.held(), 5000);
        assert_eq!(s.down()[0], "+F ack 1000 win 0");
    });
}

#[test]
fn reconnection_without_disconnection_does_nothing() {
    each(|mut s| assert!(s.up().is_empty()));
}

#[test]
fn data_sent_before_the_mobile_s_first_acknowledgement_may_be_acknowledged() {
    let mut s = Script::blank(node(MTcpPlusConfig::default()), 0);
    s.data(0, 6000);
    s.ack(1000);
    assert_eq!(s.ack(4000), [">F ack 4000 win 500"]);
    assert_eq!(s.down(), ["+F ack 4000 win 0"]);
}

proptest! {
    /// M-TCP+ §3: without the signal the algorithm is never initiated.
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

#[test]
fn real_bytes_are_replayed_like_lengths() {
    let mut node =
        MTcpPlus::<Vec<u8>>::new(MTcpPlusConfig::default(), FlowTableConfig::default(), MEMORY);
    let template = Script::blank(super::node(MTcpPlusConfig::default()), 0);
    let bytes = |segment: Segment<Length>, payload: &[u8]| Segment {
        flow: segment.flow,
        seq: segment.seq,
        ack: segment.ack,
        window: segment.window,
        flags: segment.flags,
        ecn: segment.ecn,
        options: segment.options,
        payload: payload.to_vec(),
    };
    let mut out = Actions::new();
    let data = bytes(template.fixed(0, 0), b"hello");
    node.on_segment(s(0), Side::Mobile, bytes(template.mobile(0), b""), &mut out);
    node.on_segment(s(0), Side::Fixed, data.clone(), &mut out);
    let mobile = airtcp_edge::MobileId::Host(data.flow.dst.ip);
    node.on_link(s(1), mobile, LinkSignal::Down, &mut out);
    assert_eq!(out.drain().len(), 4);
    node.on_link(s(2), mobile, LinkSignal::Up, &mut out);
    assert_eq!(out.as_slice(), [Action::Inject { to: Side::Mobile, segment: data }]);
}

fn s(n: u64) -> airtcp_core::Instant {
    airtcp_core::Instant::from_secs(n)
}

#[test]
fn a_mobile_that_is_back_from_an_outage_nobody_told_of_gets_all_copies() {
    each(|mut s| {
        assert!(s.up().is_empty(), "nothing was sent again");
        s.data(1000, 1000);
        assert_eq!((s.up().len(), counters(&s).replays), (5, 1));
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
