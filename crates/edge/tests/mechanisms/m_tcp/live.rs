//! Hazards of live traffic.

use super::{MTcpScript, flowing, machine, open, shrunk};
use crate::script_in_words::{
    ISNS, Script, with_flags, with_payload, with_timestamps, with_window,
};
use airtcp_core::{Bytes, Flags, Options, SackBlock, Segment, SeqNum};
use airtcp_edge::{Action, Actions, FlowTableConfig, MTcp, MTcpConfig, Middlebox, Side};

#[test]
fn a_reduced_ack_is_the_mobile_s_own_in_all_else() {
    let mut s = open(0);
    s.data(0, 3000);
    let sack = [SackBlock { left: SeqNum(2000), right: SeqNum(3000) }].into_iter().collect();
    let mut ack = with_flags(with_timestamps(s.mobile(1000), 70, 20), Flags::ECE);
    ack.options = Options { sack, ..ack.options };
    let mut out = Actions::new();
    s.machine.on_segment(s.now, Side::Mobile, ack.clone(), &mut out);
    let segment = Segment { ack: ack.ack.map(|n| n - 1), ..ack };
    assert_eq!(out.as_slice()[1], Action::Inject { to: Side::Fixed, segment });
}

#[test]
fn generated_acks_carry_the_mobile_s_number_and_timestamps() {
    for isn in ISNS {
        let mut s = open(isn);
        let data = with_timestamps(s.fixed(0, 1000), 20, 60);
        s.pass(Side::Fixed, data);
        let request = with_timestamps(with_payload(s.mobile(0), 300), 70, 20);
        assert_eq!(s.pass(Side::Mobile, request), ["pass"]);
        assert_eq!(s.until(400)[0], "400 to fixed: ack 0 win 0 seq 300 TS val 70 ecr 20");
        let probe = with_timestamps(s.fixed(1000, 1), 900, 70);
        assert_eq!(
            s.pass(Side::Fixed, probe)[1],
            "to fixed: ack 0 win 0 seq 300 TS val 70 ecr 900",
            "as the mobile would echo the probe"
        );
    }
}

// RFC 7323 §5: the mobile may have seen a newer timestamp on something else.
#[test]
fn local_retransmissions_carry_the_newest_timestamp() {
    for isn in ISNS {
        let mut s = open(isn);
        let data = with_timestamps(s.fixed(0, 1000), 20, 60);
        s.pass(Side::Fixed, data);
        let keep_alive = with_timestamps(s.fixed(u32::MAX, 0), 90, 60);
        s.pass(Side::Fixed, keep_alive);
        assert_eq!(s.until(400)[1], "400 to mobile: 0:1000 TS val 90 ecr 60");
    }
}

#[test]
fn data_of_the_mobile_passes_unchanged_and_gives_the_withheld_byte_away() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let request = with_payload(s.mobile(2000), 300);
        assert_eq!(s.pass(Side::Mobile, request), ["pass"]);
        let more = Segment { seq: s.mobile(0).seq + 300, ..s.mobile(3000) };
        assert_eq!(
            s.pass(Side::Mobile, more),
            ["drop", "to fixed: ack 2999 win 500 seq 300"],
            "the next pure ACK is reduced again"
        );
    }
}

#[test]
fn a_pending_release_is_off_when_the_byte_was_given_away() {
    let mut s = flowing(0);
    s.ack(3000);
    let request = with_payload(s.mobile(3000), 300);
    s.pass(Side::Mobile, request);
    assert_eq!(s.until(5000).len(), 0);
}

#[test]
fn window_updates_pass_on_with_the_byte_withheld() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let update = with_window(s.mobile(1000), 700);
        assert_eq!(s.pass(Side::Mobile, update), ["drop", "to fixed: ack 999 win 700"]);
        assert_eq!(s.until(400).len(), 3, "no reason to restart the timer");
    }
}

#[test]
fn a_window_that_the_mobile_closes_ends_withholding_and_the_timer() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let closed = |s: &MTcpScript| with_window(s.mobile(1000), 0);
        let segment = closed(&s);
        assert_eq!(s.pass(Side::Mobile, segment), ["pass"]);
        assert_eq!(s.until(5000).len(), 0);
        // The fixed host probes the mobile, not us.
        assert_eq!(s.data(3000, 1), ["pass"]);
        let segment = closed(&s);
        assert_eq!(s.pass(Side::Mobile, segment), ["pass"]);
        assert_eq!(s.machine.held(), 2000, "the probe is not copied");
        assert_eq!(s.ack(1000), ["pass"], "the window opens");
        assert_eq!(s.until(5400).len(), 3, "and the timer starts");
    }
}

#[test]
fn old_data_that_brings_the_mobile_something_passes() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let mut news = s.fixed(0, 1000);
        news.ack = news.ack.map(|n| n + 1);
        assert_eq!(s.pass(Side::Fixed, news.clone()), ["pass"]);
        assert_eq!(s.pass(Side::Fixed, with_window(news.clone(), 9)), ["pass"]);
        assert_eq!(s.pass(Side::Fixed, with_window(news, 9)).len(), 2, "no news");
    }
}

#[test]
fn keep_alives_are_the_mobile_s_to_answer() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.ack(3000);
        s.until(200);
        for len in [0, 1] {
            assert_eq!(s.data(2999, len), ["pass"]);
            assert_eq!(s.ack(3000), ["pass"]);
        }
    }
}

#[test]
fn resets_pass_and_end_all() {
    for isn in ISNS {
        for from in [Side::Fixed, Side::Mobile] {
            let mut s = shrunk(isn);
            let segment = match from {
                Side::Fixed => s.fixed(3000, 0),
                Side::Mobile => s.mobile(1000),
            };
            assert_eq!(s.pass(from, with_flags(segment, Flags::RST)), ["pass"]);
            assert_eq!(s.machine.held(), 0);
            assert_eq!(s.until(60_000).len(), 0);
        }
    }
}

#[test]
fn forged_segments_change_nothing() {
    // RFC 5961 §3.2, §5.2.
    const FAR: u32 = 1 << 29;
    for isn in ISNS {
        let mut s = shrunk(isn);
        assert_eq!(s.data(FAR, 1000), ["to fixed: ack 1000 win 0", "pass"]);
        for seq in [FAR, 2000, 2999, 3001] {
            let reset = with_flags(s.fixed(seq, 0), Flags::RST);
            assert_eq!(s.pass(Side::Fixed, reset), ["pass"]);
        }
        let ack = s.mobile(3000);
        assert_eq!(s.pass(Side::Mobile, Segment { seq: ack.seq + FAR, ..ack }), ["pass"]);
        assert_eq!(s.machine.held(), 2000);
        assert_eq!(s.ack(1000).len(), 3, "the mobile is back");
    }
}

#[test]
fn a_handshake_begins_a_new_connection() {
    let mut s = shrunk(0);
    let syn = Segment { ack: None, ..with_flags(s.fixed(77_000, 0), Flags::SYN) };
    assert_eq!(s.pass(Side::Fixed, syn), ["to fixed: ack 1000 win 0", "pass"], "RFC 5961 §4.2");
    assert_eq!(s.machine.held(), 2000, "it may be forged");
    let syn_ack = with_flags(s.mobile(77_001), Flags::SYN);
    assert_eq!(s.pass(Side::Mobile, syn_ack), ["pass"]);
    assert_eq!(s.until(60_000).len(), 0);
    assert_eq!(s.machine.held(), 0);
}

#[test]
fn acks_of_data_that_did_not_come_through_here_leave_no_trace() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(s.ack(3001), ["pass"]);
        assert_eq!(s.machine.held(), 2000);
        assert_eq!(s.ack(2000), ["drop", "to fixed: ack 1999 win 500"]);
    }
}

#[test]
fn an_implausible_first_ack_starves_nobody() {
    for isn in ISNS {
        let mut s = Script::blank(machine(MTcpConfig::default()), isn);
        assert_eq!(s.ack(1 << 31), ["pass"]);
        assert_eq!(s.data(0, 1000), ["pass"]);
        assert_eq!(s.ack(500), ["pass"]);
        assert_eq!(s.data(1000, 1000), ["pass"]);
    }
}

#[test]
fn what_finds_no_room_is_left_to_the_fixed_host() {
    for isn in ISNS {
        let config = MTcpConfig { fifo: Bytes(1500), ..MTcpConfig::default() };
        let mut s = Script::open(machine(config), isn);
        for seq in [0, 1000, 2000] {
            assert_eq!(s.data(seq, 1000), ["pass"]);
        }
        assert_eq!((s.machine.held(), s.machine.counters().overflows), (1000, 2));
        assert_eq!(s.ack(1000), ["drop", "to fixed: ack 999 win 500"]);
        for _ in 0..3 {
            assert_eq!(s.ack(1000), ["pass"], "the fixed host's to repair");
        }
        assert_eq!(s.data(1000, 1000), ["pass"], "which it does");
        assert_eq!(s.ack(3000), ["drop", "to fixed: ack 2999 win 500"]);
    }
}

#[test]
fn all_connections_share_the_memory() {
    let mut s = Script::open(MTcp::new(MTcpConfig::default(), FlowTableConfig::default(), 2500), 0);
    let other = |mut segment: Segment<_>| {
        segment.flow.src.port += 1;
        segment.flow.dst.port += 1;
        segment
    };
    let mut pass = |from, segment: Segment<_>| {
        let mut out = Actions::new();
        s.machine.on_segment(s.now, from, segment, &mut out);
    };
    let template = super::open(0);
    pass(Side::Mobile, other(template.mobile(0)));
    pass(Side::Fixed, other(template.fixed(0, 2000)));
    pass(Side::Fixed, template.fixed(0, 1000));
    pass(Side::Fixed, template.fixed(1000, 400));
    assert_eq!((s.machine.held(), s.machine.counters().overflows), (2400, 1));
}

#[test]
fn super_segments_are_acknowledged_in_part() {
    for isn in ISNS {
        let mut s = open(isn);
        s.data(0, 60_000);
        assert_eq!(s.ack(1460), ["drop", "to fixed: ack 1459 win 500"]);
        assert_eq!(s.until(400), ["400 to fixed: ack 1460 win 0", "400 to mobile: 0:60000"]);
    }
}
