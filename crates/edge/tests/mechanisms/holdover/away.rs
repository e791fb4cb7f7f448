//! docs/holdover.md, *The signal* and *Away*.

use super::{counters, each, fifo, with};
use crate::script::{Script, with_flags, with_payload, with_timestamps};
use airtcp_core::{
    Duration, Flags, Instant, LinkSignal, Options, SackBlock, Segment, SeqNum, Timestamps,
};
use airtcp_edge::{HoldoverConfig, Side};

#[test]
fn the_first_signal_repeats_the_last_ack_with_window_0() {
    each(|mut s| {
        assert_eq!(s.fading(), ["+F ack 1000 win 0"]);
        assert!(s.fading().is_empty());
        assert_eq!(counters(&s).freezes, 1);
    });
    each(|mut s| {
        s.ack(6000);
        assert_eq!(s.down(), ["+F ack 6000 win 0"]);
        assert!(s.down().is_empty());
    });
}

// Linux: what a time-out under a closed window cost is not undone.
#[test]
fn with_data_outstanding_on_a_link_that_is_down_the_window_is_open() {
    each(|mut s| {
        assert!(s.down().is_empty());
        assert_eq!(s.ack(3000), [">F ack 3000 win 500"], "on the way");
        assert_eq!(s.ack(6000), ["x ack 6000 win 500", "+F ack 6000 win 0"], "the last one");
    });
    each(|mut s| {
        s.fading();
        assert_eq!(s.down(), ["+F ack 1000 win 500"]);
        assert!(s.down().is_empty());
    });
    each(|mut s| {
        s.ack(6000);
        s.down();
        assert_eq!(s.data(7000, 1000), ["+F ack 6000 win 500", "kept 7000:8000"], "on the wire");
        assert_eq!(s.data(8000, 1000), ["kept 8000:9000"]);
    });
}

#[test]
fn the_first_time_out_closes_the_window_and_a_tail_loss_probe_does_not() {
    each(|mut s| {
        s.down();
        assert_eq!(s.data(5000, 1000), ["+M 1000:2000", "x 5000:6000"]);
        assert_eq!(s.data(1000, 1000)[0], "+F ack 1000 win 0");
    });
}

// --- From the fixed host ---

#[test]
fn retransmissions_are_answered_and_acknowledge_nothing() {
    each(|mut s| {
        s.down();
        let answer = ["+F ack 1000 win 0", "+M 1000:2000", "x 1000:2000"];
        assert_eq!(s.data(1000, 1000), answer);
        assert_eq!(s.data(1000, 1000), answer);
        assert_eq!((counters(&s).answers, counters(&s).copies_resent), (2, 2));
    });
}

#[test]
fn window_probes_are_answered_and_not_stored() {
    // At SND.UNA after a BSD sender drew back, at SND.NXT of a strict one, below SND.UNA from
    // Linux.
    each(|mut s| {
        s.down();
        for (seq, len, end) in [(1000, 1, 1001), (6000, 1, 6001), (999, 0, 999)] {
            let answer = ["+F ack 1000 win 0", "+M 1000:2000", &format!("x {seq}:{end}")];
            assert_eq!(s.data(seq, len), answer);
        }
        assert_eq!(s.node.held(), 5000);
    });
}

#[test]
fn a_window_probe_with_nothing_held_is_answered_and_goes_on() {
    each(|mut s| {
        s.ack(6000);
        s.down();
        assert_eq!(s.data(6000, 1), ["+F ack 6000 win 0", ">M 6000:6001"]);
    });
}

#[test]
fn data_that_was_on_the_wire_is_stored_without_a_word() {
    // Answers to it would be duplicate ACKs.
    each(|mut s| {
        s.down();
        assert_eq!(s.data(6000, 1000), ["kept 6000:7000"]);
        assert_eq!(s.data(9000, 1000), ["kept 9000:10000"], "after a gap too");
        assert_eq!(s.node.held(), 7000);
    });
}

#[test]
fn data_that_the_mobile_waits_for_goes_on() {
    // As after a restart of the node: a retransmission of data that did not come through here.
    each(|mut s| {
        s.ack(6000);
        s.down();
        assert_eq!(s.data(6000, 1000), [">M 6000:7000"]);
        assert_eq!(s.ack(7000), [">F ack 7000 win 500"], "the mobile is there");
    });
}

#[test]
fn data_without_room_is_lost_with_the_link() {
    with(fifo(5000), |mut s| {
        s.data(6000, 1000);
        s.down();
        assert_eq!(s.data(7000, 1000), [">M 7000:8000"]);
    });
}

#[test]
fn pure_acks_of_the_fixed_host_pass() {
    each(|mut s| {
        s.down();
        assert_eq!(s.data(6000, 0), [">M 6000:6000"]);
        assert_eq!(s.data(1000, 0), [">M 1000:1000"], "of a BSD sender that drew back");
    });
}

#[test]
fn fin_is_kept_like_data() {
    each(|mut s| {
        s.down();
        let fin = with_flags(s.fixed(6000, 0), Flags::FIN);
        assert_eq!(s.fixed_sends(fin.clone()), ["kept F 6000:6000"]);
        assert_eq!(s.fixed_sends(fin), ["+M 1000:2000", "x F 6000:6000"]);
        assert_eq!(s.up().last().unwrap(), "+M F 6000:6000");
    });
}

#[test]
fn a_fading_link_may_still_carry_data() {
    each(|mut s| {
        s.fading();
        assert_eq!(s.data(6000, 1000), [">M 6000:7000"]);
        s.down();
        assert_eq!(s.data(7000, 1000), ["kept 7000:8000"]);
    });
}

// --- From the mobile ---

#[test]
fn genuine_acks_on_the_way_pass_with_window_0() {
    // With a warning one round trip ahead all is acknowledged: then every sender enters persist,
    // cwnd intact.
    each(|mut s| {
        s.fading();
        assert_eq!(s.ack(3000), ["x ack 3000 win 500", "+F ack 3000 win 0"]);
        assert_eq!(s.ack(6000), ["x ack 6000 win 500", "+F ack 6000 win 0"]);
        s.down();
        assert_eq!(s.data(6000, 1)[0], "+F ack 6000 win 0");
    });
}

#[test]
fn acks_without_news_are_suppressed() {
    each(|mut s| {
        s.down();
        assert_eq!(s.ack(1000), ["x ack 1000 win 500"]);
        assert_eq!(s.ack(500), ["x ack 500 win 500"]);
        assert_eq!(counters(&s).acks_suppressed, 2);
    });
}

#[test]
fn the_mobile_s_data_passes_with_window_0() {
    each(|mut s| {
        s.fading();
        let block = SackBlock { left: SeqNum(1), right: SeqNum(2) };
        let options = Options { sack: [block].into_iter().collect(), ..Options::default() };
        let data = Segment { options, ..with_payload(s.mobile(2000), 100) };
        let passed = ["x 0:100 ack 2000 win 500", "+F 0:100 ack 2000 win 0"];
        assert_eq!(s.mobile_sends(data.clone()), passed);
        assert_eq!(s.injected(Side::Mobile, data)[0].options, Options::default());
    });
}

#[test]
fn an_answer_to_a_probe_means_that_the_mobile_is_back() {
    each(|mut s| {
        s.down();
        s.data(1000, 1000);
        let replay = ["+M 3000:4000", "+M 4000:5000", "+M 5000:6000"];
        let back = s.ack(3000);
        assert_eq!(back[0], ">F ack 3000 win 500");
        assert_eq!(back[1..], replay);
        assert_eq!(s.ack(3000), [">F ack 3000 win 500"], "connected");
    });
}

#[test]
fn a_false_alarm_costs_the_time_to_the_next_probe() {
    each(|mut s| {
        s.fading();
        s.ack(6000);
        assert_eq!(s.data(6000, 1), ["+F ack 6000 win 0", ">M 6000:6001"]);
        assert_eq!(s.ack(6001), [">F ack 6001 win 500"]);
    });
}

#[test]
fn an_answer_to_what_left_the_fixed_host_after_the_signal_means_that_the_mobile_is_back() {
    // As a retransmission of what was lost on the wired side; what comes at once was on the wire
    // when the signal came.
    each(|mut s| {
        s.ack(6000);
        s.fading();
        s.data(6000, 1000);
        assert_eq!(s.ack(7000), ["x ack 7000 win 500", "+F ack 7000 win 0"]);
        s.wait(Duration::from_secs(1));
        assert_eq!(s.data(7000, 1000), [">M 7000:8000"]);
        assert_eq!(s.ack(8000), [">F ack 8000 win 500"]);
    });
}

#[test]
fn an_answer_to_a_probe_before_the_last_signal_proves_nothing() {
    each(|mut s| {
        s.fading();
        s.data(1000, 1000);
        s.down();
        assert_eq!(s.ack(6000), ["x ack 6000 win 500", "+F ack 6000 win 0"]);
    });
}

#[test]
fn an_ack_of_data_never_sent_leaves_no_trace() {
    each(|mut s| {
        s.down();
        assert_eq!(s.ack(6002), [">F ack 6002 win 500"]);
        assert_eq!(s.data(1000, 1000)[0], "+F ack 1000 win 0");
    });
}

// --- Connection control ---

// Forwarded, it would be lost on the dead link, and a mobile that only reads would wait for ever.
#[test]
fn a_reset_of_the_fixed_host_waits_until_the_mobile_has_what_is_held() {
    each(|mut s| {
        s.down();
        let reset = with_flags(s.fixed(6000, 0), Flags::RST);
        assert_eq!(s.fixed_sends(reset.clone()), ["x R 6000:6000"]);
        assert_eq!(s.fixed_sends(reset), ["x R 6000:6000"], "as it answers whatever it gets");
        assert_eq!(s.up().len(), 5);
        assert_eq!(s.ack(3000), [">F ack 3000 win 500"]);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500", "+M R 6000:6000"]);
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
fn forged_segments_change_nothing() {
    // RFC 5961 §3.2, §5.2.
    const FAR: u32 = 1 << 29;
    each(|mut s| {
        s.down();
        assert_eq!(s.data(FAR, 1000)[0], "+F ack 1000 win 0");
        for seq in [FAR, 999, 5999, 6001] {
            let reset = with_flags(s.fixed(seq, 0), Flags::RST);
            assert_eq!(s.fixed_sends(reset).len(), 1);
        }
        let ack = s.mobile(6000);
        assert_eq!(s.mobile_sends(Segment { seq: ack.seq + FAR, ..ack }).len(), 1);
        assert_eq!(s.node.held(), 5000);
        assert_eq!(s.up().len(), 5);
    });
}

#[test]
fn a_mobile_that_never_comes_back_ends_in_a_reset_of_both_hosts() {
    let config =
        HoldoverConfig { max_down: Some(Duration::from_secs(100)), ..HoldoverConfig::default() };
    with(config, |mut s| {
        s.fading();
        s.wait(Duration::from_secs(60));
        s.ack(2000);
        assert_eq!(s.timer(100), ["+F R 0:0 ack 2000 win 0", "+M R 2000:2000"]);
        assert_eq!((s.node.held(), counters(&s).resets), (0, 1));
        assert_eq!(s.data(2000, 1000), ["x 2000:3000", "+F R 0:0"]);
        assert_eq!(s.up(), ["+M R 2000:2000"]);
        assert_eq!(s.ack(2000), ["x ack 2000 win 500", "+M R 2000:2000"]);
    });
}

#[test]
fn without_max_down_waiting_never_ends() {
    each(|mut s| {
        s.down();
        assert!(s.next_timer().is_empty());
    });
}

// --- Timestamps ---

#[test]
fn the_mobile_echoes_no_retransmission_of_the_outage() {
    // Eifel (RFC 3522): an echo older than the retransmission tells the sender that the original
    // arrived.
    let mut s = Script::blank(super::node(HoldoverConfig::default()), 0);
    let ack = with_timestamps(s.mobile(0), 900, 90);
    s.mobile_sends(ack);
    let original = with_timestamps(s.fixed(0, 1000), 100, 900);
    s.fixed_sends(original);
    let closing = &s.injected_by(LinkSignal::Fading)[0];
    assert_eq!(closing.options.timestamps, Some(Timestamps { value: 900, echo: 90 }));
    s.down();
    let retransmission = with_timestamps(s.fixed(0, 1000), 3100, 900);
    let injected = s.injected(Side::Fixed, retransmission);
    let values: Vec<u32> = injected.iter().map(|i| i.options.timestamps.unwrap().value).collect();
    assert_eq!(values, [900, 100], "the answer, and the probe with the original's");
    let copy = &s.injected_by(LinkSignal::Up)[0];
    assert_eq!(copy.options.timestamps, Some(Timestamps { value: 100, echo: 900 }));
}

// --- Probing ---

fn asking() -> HoldoverConfig {
    HoldoverConfig { probe_interval: Some(Duration::from_secs(1)), ..HoldoverConfig::default() }
}

#[test]
fn a_mobile_that_is_down_is_asked_and_its_answer_means_that_it_is_back() {
    with(asking(), |mut s| {
        s.fading();
        s.wait(Duration::from_secs(9));
        s.down();
        assert!(s.next_timer()[..] == ["+M 999:999"] && s.now >= Instant::from_secs(10));
        assert_eq!(s.timer(1), ["+M 999:999"]);
        assert_eq!(s.ack(1000).len(), 6, "released, and all is replayed");
        assert_eq!(counters(&s).probes_sent, 2);
        assert_eq!(s.timer(1), ["+M 1000:2000"], "the replay's");
    });
}

#[test]
fn after_up_nobody_is_asked() {
    with(asking(), |mut s| {
        s.down();
        s.up();
        assert_eq!(s.timer(1), ["+M 1000:2000"], "the replay's");
        assert_eq!(s.timer(2), ["+M 1000:2000"]);
    });
}

// RFC 9293 §3.8.6.1: whoever has to learn of an open window asks. A sender that has no probes for a
// window closed on data outstanding (smoltcp) relies on the node, which has closed it.
#[test]
fn however_long_both_hosts_are_silent_the_mobile_is_asked() {
    with(asking(), |mut s| {
        s.down();
        assert_eq!(s.data(1000, 1000)[0], "+F ack 1000 win 0");
        s.expect_probes("+M 999:999");
        let shown = s.ack(1000);
        assert_eq!(shown[0], ">F ack 1000 win 500");
        let copies = ["1000:2000", "2000:3000", "3000:4000", "4000:5000", "5000:6000"];
        assert_eq!(shown[1..], copies.map(|copy| format!("+M {copy}")));
    });
}

#[test]
fn a_mobile_that_is_fading_for_a_minute_is_asked() {
    with(asking(), |mut s| {
        assert_eq!(s.fading(), ["+F ack 1000 win 0"]);
        let start = s.now;
        assert_eq!(s.next_timer(), ["+M 999:999"]);
        assert!(s.now.since(start) >= Duration::from_secs(60));
        s.expect_probes("+M 999:999");
        assert_eq!(s.ack(1000)[0], ">F ack 1000 win 500");
    });
}

#[test]
fn a_mobile_that_is_down_after_it_was_fading_is_asked_soon() {
    with(asking(), |mut s| {
        s.fading();
        s.wait(Duration::from_secs(9));
        s.down();
        let start = s.now;
        s.next_timer();
        assert!(s.now.since(start) <= Duration::from_secs(2));
    });
}

#[test]
fn a_fading_mobile_is_asked_once_a_minute_at_most_whatever_its_hosts_send() {
    with(asking(), |mut s| {
        s.fading();
        s.wait(Duration::from_secs(58));
        s.data(1000, 1000);
        assert_eq!(s.next_timer(), ["+M 999:999"]);
        let start = s.now;
        assert_eq!(s.next_timer(), ["+M 999:999"]);
        assert!(s.now.since(start) >= Duration::from_secs(60));
    });
}
