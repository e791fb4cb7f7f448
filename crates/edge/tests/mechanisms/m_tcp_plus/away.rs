//! Algorithm 2, and the time until the mobile is back (M-TCP+ §3.2, Fig. 3).

use super::{counters, each, fifo, with};
use crate::script::{Script, with_flags, with_payload, with_window};
use airtcp_core::{
    Addr, Duration, Flags, Instant, LinkSignal, Options, SackBlock, Segment, SeqNum,
};
use airtcp_edge::{Actions, MTcpPlusConfig, Middlebox, MobileId, Side};
use std::net::{IpAddr, Ipv4Addr};

#[test]
fn algorithm_2_sends_two_acks() {
    // The last ACK with window 0, then one of all data: Fig. 3 (b) and (c).
    each(|mut s| {
        assert_eq!(s.down(), ["+F ack 1000 win 0", "+F ack 6000 win 0"]);
        assert_eq!((counters(&s).freezes, counters(&s).bytes_acked_early), (1, 5000));
    });
}

#[test]
fn algorithm_2_sends_one_ack_with_nothing_outstanding() {
    each(|mut s| {
        s.ack(6000);
        assert_eq!(s.down(), ["+F ack 6000 win 0"]);
        assert_eq!(counters(&s).bytes_acked_early, 0);
    });
}

#[test]
fn the_first_of_fading_and_down_freezes() {
    each(|mut s| {
        assert_eq!(s.fading(), ["+F ack 1000 win 0", "+F ack 6000 win 0"]);
        assert!(s.down().is_empty());
        assert!(s.fading().is_empty());
        assert_eq!(counters(&s).freezes, 1);
    });
}

// --- From the fixed host ---

#[test]
fn a_window_probe_is_answered_and_not_stored() {
    each(|mut s| {
        s.down();
        let answer = ["+F ack 6000 win 0", "+M 1000:2000", "x 6000:6001"];
        assert_eq!(s.data(6000, 1), answer, "and the mobile is sent what it waits for");
        assert_eq!(s.data(6000, 1), answer);
        assert_eq!((s.node.held(), counters(&s).answers, counters(&s).copies_resent), (5000, 2, 2));
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
fn linux_probes_and_keep_alives_are_answered() {
    each(|mut s| {
        s.down();
        let [linux, keep_alive] = [s.data(5999, 0), s.data(5999, 1)];
        assert_eq!(linux, ["+F ack 6000 win 0", "+M 1000:2000", "x 5999:5999"]);
        assert_eq!(keep_alive, ["+F ack 6000 win 0", "+M 1000:2000", "x 5999:6000"]);
    });
}

#[test]
fn data_that_was_on_the_wire_is_stored_and_acknowledged() {
    // Fig. 3 (a).
    each(|mut s| {
        s.down();
        assert_eq!(s.data(6000, 1000), ["+F ack 7000 win 0", "kept 6000:7000"]);
        assert_eq!(s.data(7000, 300), ["+F ack 7300 win 0", "kept 7000:7300"]);
        assert_eq!((s.node.held(), counters(&s).bytes_acked_early), (6300, 6300));
    });
}

#[test]
fn old_data_is_answered_and_not_stored_again() {
    each(|mut s| {
        s.down();
        let answer = ["+F ack 6000 win 0", "+M 1000:2000", "x 2000:3000"];
        assert_eq!(s.data(2000, 1000), answer);
        assert_eq!(s.node.held(), 5000);
    });
}

#[test]
fn only_data_without_a_gap_is_acknowledged() {
    // A loss on the wired side: 6000:7000 is missing.
    each(|mut s| {
        s.data(7000, 1000);
        assert_eq!(s.down(), ["+F ack 1000 win 0", "+F ack 6000 win 0"]);
        assert_eq!(s.data(8000, 1000), ["+F ack 6000 win 0", "kept 8000:9000"]);
        assert_eq!(s.data(6000, 1000), ["+F ack 9000 win 0", "kept 6000:7000"]);
    });
}

#[test]
fn a_retransmission_with_other_boundaries_fills_in_what_is_missing() {
    each(|mut s| {
        s.data(7000, 1000);
        s.down();
        assert_eq!(s.data(5500, 1600), ["+F ack 8000 win 0", "kept 5500:7100"]);
        assert_eq!(s.data(7200, 1000), ["+F ack 8200 win 0", "kept 7200:8200"]);
    });
}

#[test]
fn what_the_fifo_could_not_take_is_not_acknowledged() {
    // Spec: acknowledge only up to min(snd_max, hole).
    with(fifo(4000), |mut s| {
        // 4000:6000 was not copied, 6000:7000 was.
        assert_eq!(s.node.held(), 3000);
        s.data(6000, 1000);
        assert_eq!(s.down(), ["+F ack 1000 win 0", "+F ack 4000 win 0"]);
    });
}

#[test]
fn a_hole_is_forgotten_when_the_mobile_acknowledges_it() {
    with(fifo(4000), |mut s| {
        s.data(6000, 1000);
        s.ack(6000);
        assert_eq!(s.down(), ["+F ack 6000 win 0", "+F ack 7000 win 0"]);
    });
}

#[test]
fn data_without_room_stays_in_the_fixed_host_s_charge() {
    with(fifo(5000), |mut s| {
        s.data(6000, 1000);
        s.down();
        assert_eq!(s.data(7000, 1000), ["+F ack 5000 win 0", ">M 7000:8000"]);
    });
}

#[test]
fn pure_acks_of_the_fixed_host_pass() {
    each(|mut s| {
        s.down();
        assert_eq!(s.data(6000, 0), [">M 6000:6000"]);
    });
}

#[test]
fn fin_is_kept_and_never_acknowledged() {
    each(|mut s| {
        let fin = with_flags(s.fixed(6000, 500), Flags::FIN);
        assert_eq!(s.fixed_sends(fin.clone()), [">M F 6000:6500"]);
        assert_eq!(s.down(), ["+F ack 1000 win 0", "+F ack 6500 win 0"]);
        let again = ["+F ack 6500 win 0", "+M 1000:2000", "x F 6000:6500"];
        assert_eq!(s.fixed_sends(fin), again);
        let alone = with_flags(s.fixed(6500, 0), Flags::FIN);
        assert_eq!(s.fixed_sends(alone)[0], "+F ack 6500 win 0");
        assert_eq!(s.up().last().unwrap(), "+M F 6000:6500");
    });
}

#[test]
fn fin_that_comes_in_the_outage_is_kept_and_never_acknowledged() {
    each(|mut s| {
        s.down();
        let fin = with_flags(s.fixed(6000, 0), Flags::FIN);
        assert_eq!(s.fixed_sends(fin), ["+F ack 6000 win 0", "kept F 6000:6000"]);
        assert_eq!(s.up().last().unwrap(), "+M F 6000:6000");
    });
}

#[test]
fn a_fading_link_may_still_carry_data() {
    each(|mut s| {
        s.fading();
        assert_eq!(s.data(6000, 1000), ["+F ack 7000 win 0", ">M 6000:7000"]);
        s.down();
        assert_eq!(s.data(7000, 1000), ["+F ack 8000 win 0", "kept 7000:8000"]);
    });
}

// --- From the mobile ---

#[test]
fn acks_after_fading_free_copies_and_open_nothing() {
    // The signal comes ahead of the outage: ACKs that follow do not mean that there was none.
    each(|mut s| {
        s.fading();
        assert_eq!(s.ack(3000), ["x ack 3000 win 500"]);
        assert_eq!(s.node.held(), 3000);
        assert_eq!(s.ack(6000), ["x ack 6000 win 500"]);
        assert_eq!((s.node.held(), counters(&s).acks_suppressed), (0, 2));
    });
}

#[test]
fn an_ack_of_all_after_down_may_have_been_on_the_way() {
    // Fig. 3 (c).
    each(|mut s| {
        s.down();
        assert_eq!(s.ack(6000), ["x ack 6000 win 500"]);
        assert_eq!(s.up(), ["+F ack 6000 win 500"]);
    });
}

#[test]
fn a_mobile_that_lacks_data_after_down_gets_it() {
    // Spec: the fallback for a lost signal is any segment from the mobile.
    each(|mut s| {
        s.down();
        let replay = ["+M 4000:5000", "+M 5000:6000", "x ack 4000 win 500"];
        assert_eq!(s.ack(4000), replay);
    });
}

#[test]
fn an_answer_to_a_probe_means_that_the_mobile_is_back() {
    each(|mut s| {
        s.fading();
        s.data(6000, 1);
        assert_eq!(s.ack(5000), ["+M 5000:6000", "x ack 5000 win 500"]);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
    });
}

#[test]
fn the_mobile_is_asked_from_time_to_time_whatever_the_fixed_host_does() {
    each(|mut s| {
        s.fading();
        assert_eq!(s.timer(1), ["+M 1000:2000"]);
        assert_eq!(s.timer(2), ["+M 1000:2000"]);
        s.down();
        assert_eq!(s.timer(1), ["+M 1000:2000"], "anew after a signal");
        assert_eq!(s.ack(2000).len(), 5, "back: the rest is replayed");
    });
}

#[test]
fn a_timer_that_begins_with_stored_data_asks_for_that() {
    each(|mut s| {
        s.ack(6000);
        s.down();
        s.data(6000, 1000);
        assert_eq!(s.timer(1), ["+M 6000:7000"]);
    });
}

#[test]
fn a_false_alarm_costs_the_time_to_the_next_probe() {
    each(|mut s| {
        s.fading();
        s.ack(6000);
        assert_eq!(s.data(6000, 1), ["+F ack 6000 win 0", ">M 6000:6001"]);
        assert_eq!(s.ack(6001), [">F ack 6001 win 500"]);
        assert_eq!(s.ack(6001), [">F ack 6001 win 500"], "connected");
    });
}

#[test]
fn an_answer_to_a_retransmission_means_that_the_mobile_is_back() {
    // A strict sender under a closed window retransmits what was lost on the wired side: a segment
    // each time-out.
    each(|mut s| {
        s.ack(6000);
        s.data(7000, 1000);
        s.fading();
        assert_eq!(s.data(6000, 1000), ["+F ack 8000 win 0", ">M 6000:7000"]);
        assert_eq!(s.ack(8000), [">F ack 8000 win 500"]);
    });
    each(|mut s| {
        s.ack(6000);
        s.fading();
        assert_eq!(s.data(6000, 1000), ["+F ack 7000 win 0", ">M 6000:7000"]);
        assert_eq!(s.ack(7000), ["x ack 7000 win 500"], "it was on the wire when the signal came");
        s.wait(Duration::from_secs(1));
        assert_eq!(s.data(7000, 1000), ["+F ack 8000 win 0", ">M 7000:8000"]);
        assert_eq!(s.ack(8000), [">F ack 8000 win 500"], "so late it was not");
    });
}

#[test]
fn an_answer_to_a_probe_before_the_last_signal_proves_nothing() {
    each(|mut s| {
        s.fading();
        s.data(6000, 1);
        s.down();
        assert_eq!(s.ack(6000), ["x ack 6000 win 500"]);
    });
}

#[test]
fn the_mobile_s_data_passes_with_a_closed_window() {
    // Its own ACK is old for the fixed host and its window is not to be seen; SACK blocks would be
    // below the ACK.
    each(|mut s| {
        s.fading();
        let block = SackBlock { left: SeqNum(1), right: SeqNum(2) };
        let options = Options { sack: [block].into_iter().collect(), ..Options::default() };
        let data = Segment { options, ..with_payload(s.mobile(2000), 100) };
        assert_eq!(
            s.mobile_sends(data.clone()),
            ["x 0:100 ack 2000 win 500", "+F 0:100 ack 6000 win 0"]
        );
        let injected = s.injected(Side::Mobile, data.clone());
        assert_eq!(injected[0].options, Options::default());
        let fin = with_flags(Segment { seq: data.seq_end(), ..s.mobile(2000) }, Flags::FIN);
        assert_eq!(s.mobile_sends(fin), ["x F ack 2000 win 500", "+F F ack 6000 win 0"]);
    });
}

#[test]
fn answers_follow_the_mobile_s_data() {
    each(|mut s| {
        s.fading();
        let data = with_payload(s.mobile(2000), 100);
        s.mobile_sends(data.clone());
        let probe = s.fixed(6000, 1);
        assert_eq!(s.injected(Side::Fixed, probe)[0].seq, data.seq_end());
    });
}

#[test]
fn an_ack_that_closes_a_gap_passes_with_a_closed_window() {
    with(fifo(4000), |mut s| {
        s.data(6000, 1000);
        s.fading();
        assert_eq!(s.ack(5000), ["x ack 5000 win 500", "+F ack 5000 win 0"]);
        assert_eq!(s.ack(6000), ["x ack 6000 win 500", "+F ack 7000 win 0"]);
    });
}

#[test]
fn the_mobile_s_own_closed_window_is_not_opened() {
    each(|mut s| {
        let closed = with_window(s.mobile(6000), 0);
        s.mobile_sends(closed);
        s.down();
        assert_eq!(s.up(), ["+F ack 6000 win 0"]);
    });
}

// --- Probing ---

fn asking() -> MTcpPlusConfig {
    MTcpPlusConfig { probe_interval: Some(Duration::from_secs(3)), ..MTcpPlusConfig::default() }
}

#[test]
fn a_mobile_that_is_down_is_asked_and_its_answer_means_that_it_is_back() {
    with(asking(), |mut s| {
        s.ack(6000);
        s.down();
        assert_eq!(s.next_timer(), ["+M 5999:5999"]);
        assert!(s.now >= Instant::from_secs(3));
        assert_eq!(s.timer(3), ["+M 5999:5999"]);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert_eq!(counters(&s).probes_sent, 2);
        assert!(s.next_timer().is_empty(), "connected");
    });
}

#[test]
fn a_mobile_that_is_fading_is_asked_after_a_minute() {
    with(asking(), |mut s| {
        s.ack(6000);
        s.fading();
        let start = s.now;
        assert_eq!(s.next_timer(), ["+M 5999:5999"]);
        assert!(s.now.since(start) >= Duration::from_secs(60));
        s.expect_probes("+M 5999:5999");
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
    });
}

// As holdover: the node has closed the window.
#[test]
fn however_long_both_hosts_are_silent_the_mobile_is_asked() {
    with(asking(), |mut s| {
        s.ack(6000);
        s.down();
        s.expect_probes("+M 5999:5999");
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert_eq!(counters(&s).resumes, 1, "the connection was not forgotten");
    });
}

#[test]
fn an_answer_from_before_the_question_proves_nothing() {
    with(asking(), |mut s| {
        s.down();
        assert_eq!(s.ack(4000), ["x ack 4000 win 500"], "it was on the way when the signal came");
        assert_eq!(s.ack(6000), ["x ack 6000 win 500"]);
        assert_eq!(s.next_timer(), ["+M 5999:5999"]);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
    });
    with(asking(), |mut s| {
        s.down();
        s.ack(5000);
        assert_eq!(s.next_timer(), ["+M 4999:4999"], "no copies until it answers");
        assert_eq!(
            s.ack(5000),
            ["+M 5000:6000", "x ack 5000 win 500"],
            "it answers, and lacks this"
        );
    });
}

#[test]
fn after_up_nobody_is_asked() {
    with(asking(), |mut s| {
        s.down();
        s.up();
        for wait in [1, 2, 4] {
            assert_eq!(s.timer(wait), ["+M 1000:2000"], "the replay's");
        }
    });
}

#[test]
fn mobiles_that_went_down_together_are_not_asked_together() {
    let mobiles = 10_000u16;
    let address = |n: u16| IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + u32::from(n)));
    let mut node = super::node(asking());
    let mut out = Actions::new();
    let template = Script::new(super::node(asking()), 0);
    for n in 0..mobiles {
        for (from, mut segment) in
            [(Side::Mobile, template.mobile(0)), (Side::Fixed, template.fixed(0, 0))]
        {
            let flow = &mut segment.flow;
            let end = if from == Side::Mobile { &mut flow.src } else { &mut flow.dst };
            *end = Addr::new(address(n), 1000 + n);
            node.on_segment(Instant::ZERO, from, segment, &mut out);
        }
    }
    for n in 0..mobiles {
        node.on_link(Instant::ZERO, MobileId::Host(address(n)), LinkSignal::Down, &mut out);
    }
    while node.next_deadline() == Some(Instant::ZERO) {
        node.on_timer(Instant::ZERO, &mut out);
    }
    out.drain().for_each(drop);
    let (mut asked, mut most) = (0, 0);
    while let Some(due) = node.next_deadline().filter(|&due| due < Instant::from_secs(6)) {
        node.on_timer(due, &mut out);
        let keep_alives = out.drain().count();
        asked += keep_alives;
        most = most.max(keep_alives);
    }
    assert_eq!(asked, usize::from(mobiles));
    assert!(most <= asked / 100, "{most} at an instant");
}

#[test]
fn a_fading_mobile_is_asked_once_a_minute_at_most_whatever_its_hosts_send() {
    with(asking(), |mut s| {
        s.ack(6000);
        s.fading();
        s.wait(Duration::from_secs(58));
        let data = with_payload(s.mobile(6000), 100);
        s.mobile_sends(data);
        assert_eq!(s.next_timer(), ["+M 5999:5999"]);
        let start = s.now;
        assert_eq!(s.next_timer(), ["+M 5999:5999"]);
        assert!(s.now.since(start) >= Duration::from_secs(60));
    });
}
