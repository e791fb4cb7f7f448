//! One test per rule: Packet Control §V.B and §VI, and the hazards of live traffic.

use super::script::{Script, Seg, Verdict, with_flags, with_payload, with_timestamps, with_window};
use Verdict::{Answered, Dropped, Forwarded};
use airtcp_core::{
    Duration, Flags, Instant, Length, LinkSignal, Options, SackBlock, Segment, SeqNum, Timestamps,
};
use airtcp_edge::{
    Actions, FlowTableConfig, Middlebox, MobileId, PacketControl, Side, ThresholdTooSmall,
};

/// Start of the sequence space: in the middle, and so that every script crosses the wraparound.
const ISNS: [u32; 3] = [1_000_000, u32::MAX - 500, u32::MAX - 5000];

fn answer(verdict: Verdict) -> Seg {
    match verdict {
        Answered(segment) => *segment,
        other => panic!("expected an answer, got {other:?}"),
    }
}

#[test]
fn thresholds_below_the_sender_s_are_refused() {
    let new = |threshold| PacketControl::new(threshold, FlowTableConfig::default()).map(|_| ());
    assert_eq!(new(2), Err(ThresholdTooSmall(2)));
    assert_eq!(new(0), Err(ThresholdTooSmall(0)));
    assert_eq!(new(3), Ok(()));
    assert_eq!(new(u32::MAX), Ok(()));
    assert_eq!(
        ThresholdTooSmall(2).to_string(),
        "the duplicate-ACK threshold of Packet Control must be at least 3, not 2"
    );
}

// --- ACK filter (paper §V.B.1, §VI) ---

#[test]
fn new_acks_are_forwarded_and_old_ones_dropped() {
    for isn in ISNS {
        let mut s = Script::new(6, isn);
        assert_eq!(s.ack(3000), Forwarded);
        assert_eq!(s.ack(2000), Dropped);
        assert_eq!(s.ack(2999), Dropped);
        assert_eq!(s.ack(4000), Forwarded);
        assert_eq!(s.counters().acks_old_dropped, 2);
        assert_eq!(s.counters().acks_forwarded, 3);
    }
}

#[test]
fn duplicates_are_thinned_evenly_as_in_the_worked_table() {
    // Packet Control §VI: with step R/3, the sender's third duplicate is the base station's R-th.
    for isn in ISNS {
        for (threshold, step) in [(3, 1), (6, 2), (9, 3), (12, 4)] {
            let expected: Vec<usize> = (step..=24).step_by(step).collect();
            assert_eq!(Script::new(threshold, isn).forwarded_duplicates(1000, 24), expected);
        }
    }
}

#[test]
fn thresholds_not_divisible_by_three_round_up() {
    // Packet Control §VI: the k-th duplicate passes at ceil(k·R/3).
    let first_six =
        |threshold| Script::new(threshold, 0).forwarded_duplicates(1000, 10)[..6].to_vec();
    assert_eq!(first_six(4), [2, 3, 4, 6, 7, 8]);
    assert_eq!(first_six(5), [2, 4, 5, 7, 9, 10]);
    assert_eq!(Script::new(7, 0).forwarded_duplicates(1000, 14), [3, 5, 7, 10, 12, 14]);
}

#[test]
fn the_paper_s_formula_gives_the_same_duplicates() {
    // §VI: numOfDupAckSent = floor((n - 1) / (R/3)), nextDupAckToSend = (numOfDupAckSent + 1) R/3.
    for threshold in [3, 6, 9, 12, 30] {
        let step = threshold as usize / 3;
        let paper: Vec<usize> = (1..=90).filter(|n| ((n - 1) / step + 1) * step == *n).collect();
        assert_eq!(Script::new(threshold, 0).forwarded_duplicates(1000, 90), paper);
    }
}

#[test]
fn a_new_ack_resets_the_count_of_duplicates() {
    let mut s = Script::new(6, 0);
    assert_eq!(s.forwarded_duplicates(1000, 3), [2]);
    assert_eq!(s.ack(2000), Forwarded);
    assert_eq!(s.forwarded_duplicates(2000, 4), [2, 4]);
    assert_eq!(s.counters().acks_duplicate_dropped, 4);
}

#[test]
fn an_old_ack_leaves_the_count_of_duplicates() {
    let mut s = Script::new(6, 0);
    assert_eq!(s.ack(1000), Dropped);
    assert_eq!(s.ack(900), Dropped);
    assert_eq!(s.ack(1000), Forwarded);
}

#[test]
fn flows_are_filtered_apart() {
    let mut s = Script::new(6, 0);
    let other = |mut segment: Seg| {
        segment.flow.src.port += 1;
        segment.flow.dst.port += 1;
        segment
    };
    let (data, ack) = (other(s.fixed(0, 5000)), other(s.mobile(500)));
    assert_eq!(s.fixed_sends(data), Forwarded);
    assert_eq!(s.mobile_sends(ack.clone()), Forwarded, "older than the first flow's");
    assert_eq!(s.ack(1000), Dropped);
    assert_eq!(s.mobile_sends(ack.clone()), Dropped);
    assert_eq!(s.ack(1000), Forwarded);
    assert_eq!(s.mobile_sends(ack), Forwarded);
    assert_eq!(s.filter.flows(), 2);
}

// --- Bypass ---

#[test]
fn segments_with_payload_from_the_mobile_pass_uncounted() {
    let mut s = Script::new(6, 0);
    assert_eq!(s.ack(1000), Dropped);
    for ack in [1000, 1000, 900] {
        let data = with_payload(s.mobile(ack), 100);
        assert_eq!(s.mobile_sends(data), Forwarded);
    }
    assert_eq!(s.ack(1000), Forwarded, "the second duplicate");
}

#[test]
fn an_ack_on_reverse_data_is_the_highest_ack_seen() {
    let mut s = Script::new(6, 0);
    let data = with_payload(s.mobile(3000), 100);
    assert_eq!(s.mobile_sends(data), Forwarded);
    assert_eq!(s.ack(2000), Dropped);
    assert_eq!(s.data(1000, 1000), Dropped);
}

#[test]
fn syn_fin_and_rst_from_the_mobile_pass() {
    for flags in [Flags::SYN, Flags::FIN, Flags::RST, Flags::FIN | Flags::PSH] {
        for ack in [900, 1000] {
            let mut s = Script::new(12, 0);
            let segment = with_flags(s.mobile(ack), flags);
            assert_eq!(s.mobile_sends(segment), Forwarded, "{flags:?} {ack}");
        }
    }
}

#[test]
fn syn_fin_and_rst_from_the_fixed_host_pass() {
    for flags in [Flags::SYN, Flags::FIN, Flags::RST] {
        let mut s = Script::new(12, 0);
        let segment = with_flags(s.fixed(0, 500), flags);
        assert_eq!(s.fixed_sends(segment.clone()), Forwarded, "{flags:?}");
        assert_eq!(s.fixed_sends(segment), Forwarded, "{flags:?}");
    }
}

#[test]
fn a_changed_window_passes_uncounted() {
    // RFC 5681 §2 (e): not a duplicate.
    let mut s = Script::new(6, 0);
    assert_eq!(s.ack(1000), Dropped);
    let update = with_window(s.mobile(1000), 600);
    assert_eq!(s.mobile_sends(update.clone()), Forwarded);
    assert_eq!(
        s.mobile_sends(update),
        Forwarded,
        "the second duplicate, with the window now known"
    );
}

#[test]
fn an_old_ack_with_another_window_does_not_hide_the_present_window() {
    let mut s = Script::new(6, 0);
    let old = with_window(s.mobile(900), 100);
    assert_eq!(s.mobile_sends(old), Forwarded);
    assert_eq!(s.forwarded_duplicates(1000, 4), [2, 4]);
}

#[test]
fn a_changed_ecn_echo_passes_uncounted() {
    let mut s = Script::new(6, 0);
    let echo = with_flags(s.mobile(1000), Flags::ECE);
    assert_eq!(s.mobile_sends(echo.clone()), Forwarded);
    assert_eq!(s.mobile_sends(echo.clone()), Dropped);
    assert_eq!(s.mobile_sends(echo), Forwarded);
    assert_eq!(s.ack(1000), Forwarded, "echo off again");
}

#[test]
fn zero_windows_and_answers_to_window_probes_pass() {
    let mut s = Script::new(12, 0);
    let closed = with_window(s.mobile(1000), 0);
    for _ in 0..5 {
        assert_eq!(s.mobile_sends(closed.clone()), Forwarded);
    }
    assert_eq!(s.ack(1000), Forwarded, "the window opens");
}

#[test]
fn answers_to_keep_alives_pass() {
    // RFC 5681 §2 (a): with nothing outstanding an ACK is not a duplicate.
    let mut s = Script::new(12, 0);
    assert_eq!(s.ack(10_000), Forwarded);
    for _ in 0..5 {
        assert_eq!(s.data(9_999, 0), Forwarded, "Linux: no byte at una - 1");
        assert_eq!(s.ack(10_000), Forwarded);
        assert_eq!(s.data(9_999, 1), Forwarded, "RFC 9293 §3.8.4: one garbage byte");
        assert_eq!(s.ack(10_000), Forwarded);
    }
    assert_eq!(s.data(10_000, 1000), Forwarded);
    assert_eq!(s.ack(10_000), Dropped, "outstanding again");
}

#[test]
fn sack_blocks_do_not_save_a_duplicate() {
    let mut s = Script::new(6, 0);
    let block = SackBlock { left: SeqNum(2000), right: SeqNum(3000) };
    let options = Options { sack: [block].into_iter().collect(), ..Options::default() };
    let duplicate = Segment { options, ..s.mobile(1000) };
    assert_eq!(s.mobile_sends(duplicate.clone()), Dropped);
    assert_eq!(s.mobile_sends(duplicate), Forwarded);
}

// --- Where state comes from ---

#[test]
fn a_handshake_with_the_mobile_as_server_leaves_no_wrong_state() {
    // Taking ack = 0 from a SYN would blackhole the flow. The mobile's ISN and the fixed host's
    // are far apart and half the sequence space behind zero.
    let mut s = Script::blank(6, 0x9000_0000);
    let syn = Segment { ack: None, ..with_flags(s.fixed(0, 0), Flags::SYN) };
    assert_eq!(s.fixed_sends(syn), Forwarded);
    let syn_ack = with_flags(s.mobile(1), Flags::SYN);
    assert_eq!(s.mobile_sends(syn_ack), Forwarded);
    assert_eq!(s.data(1, 0), Forwarded);
    assert_eq!(s.data(1, 2000), Forwarded);
    assert_eq!(s.ack(1001), Forwarded);
    assert_eq!(s.ack(2001), Forwarded);
    assert_eq!(s.ack(1001), Dropped);
}

#[test]
fn a_handshake_with_the_mobile_as_client_leaves_no_wrong_state() {
    let mut s = Script::blank(6, 0x9000_0000);
    let syn = Segment { ack: None, ..with_flags(s.mobile(0), Flags::SYN) };
    assert_eq!(s.mobile_sends(syn), Forwarded);
    let syn_ack = with_flags(s.fixed(0, 0), Flags::SYN);
    assert_eq!(s.fixed_sends(syn_ack), Forwarded);
    assert_eq!(s.ack(1), Forwarded);
    assert_eq!(s.data(1, 2000), Forwarded);
    assert_eq!(s.ack(1001), Forwarded);
    assert_eq!(s.data(1, 1000), Dropped);
}

#[test]
fn a_new_connection_on_the_same_ports_starts_afresh() {
    let mut s = Script::new(6, 0);
    let syn = Segment { ack: None, ..with_flags(s.fixed(0x7000_0000, 0), Flags::SYN) };
    assert_eq!(s.fixed_sends(syn), Forwarded);
    // Behind the old connection on the circle.
    assert_eq!(s.data(0xc000_0000, 1000), Forwarded);
    assert_eq!(s.ack(0xc000_0100), Forwarded);
    assert_eq!(s.ack(0xc000_0200), Forwarded);
}

#[test]
fn an_ack_of_data_never_seen_leaves_no_trace() {
    let mut s = Script::new(6, 0);
    assert_eq!(s.ack(10_001), Forwarded);
    assert_eq!(s.ack(2000), Forwarded, "still new");
    let mut without_data = Script::blank(6, 0);
    assert_eq!(without_data.forwarded_duplicates(1000, 5), [1, 2, 3, 4, 5]);
}

#[test]
fn a_forged_ack_does_not_make_honest_ones_old() {
    // RFC 5961 §5.2: it acknowledges what was sent, but its own number is wrong.
    let mut s = Script::new(6, 0);
    let ack = s.mobile(10_000);
    assert_eq!(s.mobile_sends(Segment { seq: ack.seq + (1 << 29), ..ack }), Forwarded);
    assert_eq!(s.ack(2000), Forwarded);
    assert_eq!(s.data(9_000, 1000), Forwarded);
}

#[test]
fn forged_data_and_resets_leave_no_trace() {
    let mut s = Script::new(6, 0);
    assert_eq!(s.data(1 << 29, 1000), Forwarded);
    let reset = with_flags(s.fixed(1 << 29, 0), Flags::RST);
    assert_eq!(s.fixed_sends(reset), Forwarded);
    assert_eq!(s.ack(1 << 28), Forwarded, "not sent");
    assert_eq!(s.ack(1000), Dropped, "a duplicate still");
}

#[test]
fn a_reset_with_a_wild_ack_number_leaves_no_trace() {
    let mut s = Script::new(6, 0);
    let reset = with_flags(s.mobile(9000), Flags::RST);
    assert_eq!(s.mobile_sends(reset), Forwarded);
    assert_eq!(s.ack(2000), Forwarded);
}

#[test]
fn a_flow_idle_for_long_starts_afresh() {
    let mut s = Script::new(6, 0);
    s.wait(FlowTableConfig::default().idle);
    // The mobile was elsewhere for half the sequence space and more.
    assert_eq!(s.data(0x8000_2000, 1000), Forwarded);
    assert_eq!(s.ack(0x8000_2100), Forwarded);
    assert_eq!(s.ack(0x8000_2200), Forwarded);
}

#[test]
fn a_full_flow_table_filters_nothing_of_further_flows() {
    let config = FlowTableConfig { limit: 0, ..FlowTableConfig::default() };
    let mut s = Script::blank(12, 0);
    s.filter = PacketControl::new(12, config).unwrap();
    assert_eq!(s.data(0, 5000), Forwarded);
    assert_eq!(s.forwarded_duplicates(1000, 4), [1, 2, 3, 4]);
    assert_eq!(s.ack(500), Forwarded);
    assert_eq!(s.data(0, 500), Forwarded);
    assert_eq!((s.filter.flows(), s.filter.segments_refused()), (0, 7));
}

// --- Data filter (paper §V.B.2) ---

#[test]
fn data_beyond_the_last_ack_passes() {
    for isn in ISNS {
        let mut s = Script::new(6, isn);
        assert_eq!(s.data(1000, 1000), Forwarded, "a retransmission that may be needed");
        assert_eq!(s.data(10_000, 1000), Forwarded);
        assert_eq!(s.counters().data_dropped, 0);
    }
}

#[test]
fn every_second_copy_of_acknowledged_data_is_answered() {
    for isn in ISNS {
        let mut s = Script::new(6, isn);
        for round in 1..=3 {
            assert_eq!(s.data(0, 1000), Dropped);
            let ack = answer(s.data(0, 1000));
            assert_eq!(ack, s.mobile(1000), "the mobile's last ACK once more");
            assert_eq!(s.counters().data_dropped, 2 * round);
            assert_eq!(s.counters().acks_generated, round);
        }
    }
}

#[test]
fn copies_are_counted_for_each_segment() {
    let mut s = Script::new(6, 0);
    assert_eq!(s.ack(3000), Forwarded);
    assert_eq!(s.data(0, 1000), Dropped);
    assert_eq!(s.data(1000, 1000), Dropped);
    assert_eq!(s.data(2000, 1000), Dropped);
    assert!(matches!(s.data(1000, 1000), Answered(_)));
    assert!(matches!(s.data(0, 1000), Answered(_)));
}

#[test]
fn a_super_segment_partly_beyond_the_last_ack_passes_whole() {
    let mut s = Script::new(6, 0);
    assert_eq!(s.data(0, 65_000), Forwarded);
    assert_eq!(s.data(0, 1000), Dropped);
    assert_eq!(s.data(0, 1001), Forwarded);
}

#[test]
fn copies_are_forgotten_64_kib_behind_the_last_ack() {
    for isn in ISNS {
        let mut s = Script::new(6, isn);
        assert_eq!(s.data(0, 200_000), Forwarded);
        assert_eq!(s.data(0, 1000), Dropped);
        assert_eq!(s.ack(65_536), Forwarded);
        assert!(matches!(s.data(0, 1000), Answered(_)), "64 KiB behind: remembered");
        assert_eq!(s.data(0, 1000), Dropped);
        assert_eq!(s.ack(65_537), Forwarded);
        assert_eq!(s.data(0, 1000), Dropped, "forgotten: the first copy again");
    }
}

#[test]
fn a_sender_stuck_far_behind_is_answered() {
    // All its ACKs were lost on the wired path: without an answer it would retransmit for ever.
    let mut s = Script::new(6, 0);
    assert_eq!(s.data(0, 1_000_000), Forwarded);
    assert_eq!(s.ack(1_000_000), Forwarded);
    assert_eq!(s.data(0, 1000), Dropped);
    assert_eq!(answer(s.data(0, 1000)), s.mobile(1_000_000));
}

#[test]
fn generated_acks_do_not_count_as_duplicates() {
    let mut s = Script::new(6, 0);
    assert_eq!(s.ack(1000), Dropped);
    assert_eq!(s.data(0, 1000), Dropped);
    assert!(matches!(s.data(0, 1000), Answered(_)));
    assert_eq!(s.ack(1000), Forwarded, "the second duplicate");
}

#[test]
fn a_generated_ack_is_what_the_mobile_would_send_now() {
    // Linux takes it only with seq exactly its rcv_nxt and the newest TSval (PAWS, RFC 7323 §5);
    // the window is in the mobile's scale, and there are no SACK blocks.
    let mut s = Script::new(6, u32::MAX - 50);
    let data = with_timestamps(with_payload(s.mobile(1000), 300), 20, 7);
    assert_eq!(s.mobile_sends(data.clone()), Forwarded);
    let newer = Segment { seq: data.seq_end(), ..s.mobile(2000) };
    let newer = with_flags(with_timestamps(with_window(newer, 777), 30, 9), Flags::ECE);
    assert_eq!(s.mobile_sends(newer.clone()), Forwarded);
    // Reordered on the wireless link: none of it may show.
    let late = with_timestamps(with_window(s.mobile(1500), 3), 10, 5);
    assert_eq!(s.mobile_sends(late), Forwarded);

    assert_eq!(s.data(0, 1000), Dropped);
    let ack = answer(s.data(0, 1000));
    assert_eq!(ack.seq, data.seq_end());
    assert_eq!((ack.window, ack.flags), (777, Flags::ECE));
    let timestamps = Some(Timestamps { value: 30, echo: 9 });
    assert_eq!(ack.options, Options { timestamps, ..Options::default() });
    assert_eq!(ack, newer);
}

#[test]
fn timestamps_wrap_around() {
    let mut s = Script::new(6, 0);
    let before = with_timestamps(s.mobile(2000), u32::MAX, 1);
    let after = with_timestamps(s.mobile(3000), 2, 3);
    assert_eq!(s.mobile_sends(before), Forwarded);
    assert_eq!(s.mobile_sends(after.clone()), Forwarded);
    assert_eq!(s.data(0, 1000), Dropped);
    assert_eq!(answer(s.data(0, 1000)).options, after.options);
}

#[test]
fn old_data_that_brings_the_mobile_news_passes() {
    // Data flows both ways: the fixed host acknowledges the mobile's data in its retransmission.
    let mut s = Script::new(6, 0);
    let copy = s.fixed(0, 1000);
    let acknowledging = Segment { ack: copy.ack.map(|a| a + 500), ..copy.clone() };
    assert_eq!(s.fixed_sends(acknowledging.clone()), Forwarded);
    assert_eq!(s.fixed_sends(acknowledging.clone()), Dropped);
    let opening = with_window(acknowledging, 9000);
    assert_eq!(s.fixed_sends(opening), Forwarded);
    let block = SackBlock { left: SeqNum(1), right: SeqNum(2) };
    let options = Options { sack: [block].into_iter().collect(), ..Options::default() };
    assert_eq!(s.fixed_sends(Segment { options, ..copy }), Forwarded);
}

#[test]
fn pure_acks_from_the_fixed_host_pass() {
    let mut s = Script::new(6, 0);
    for seq in [0, 500, 1000, 10_000] {
        assert_eq!(s.data(seq, 0), Forwarded);
    }
}

// --- The rest of the contract ---

#[test]
fn link_signals_and_timers_do_nothing() {
    let mut s = Script::new(6, 0);
    let mut out = Actions::<Length>::new();
    let mobile = MobileId::Host(s.fixed(0, 0).flow.dst.ip);
    for signal in [LinkSignal::Fading, LinkSignal::Down, LinkSignal::Up] {
        s.filter.on_link(Instant::ZERO, mobile, signal, &mut out);
    }
    Middlebox::<Length>::on_timer(&mut s.filter, Instant::ZERO + Duration::from_secs(1), &mut out);
    assert_eq!(out.as_slice(), []);
    assert_eq!(Middlebox::<Length>::next_deadline(&s.filter), None);
}

#[test]
fn real_bytes_are_filtered_like_lengths() {
    let mut filter = PacketControl::new(3, FlowTableConfig::default()).unwrap();
    let template = Script::blank(3, 0);
    let bytes = |segment: Seg, payload: &[u8]| Segment {
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
    filter.on_segment(Instant::ZERO, Side::Fixed, data.clone(), &mut out);
    filter.on_segment(Instant::ZERO, Side::Mobile, bytes(template.mobile(5), b""), &mut out);
    filter.on_segment(Instant::ZERO, Side::Fixed, data, &mut out);
    assert_eq!(out.drain().len(), 3);
    assert_eq!(filter.counters().data_dropped, 1);
}
