//! `acknowledge = "in-time"`: what is held is acknowledged no sooner than the mobile would have,
//! and so no round trip seems shorter than it is (RFC 9406 §4.2: what a sender does by its shortest
//! one); and soon enough for the sender's timer (RFC 6298) not to expire.

use super::{Node, counters, node};
use crate::script::{Script, with_flags, with_payload, with_timestamps};
use airtcp_core::{Duration, Flags, Options, SackBlock, Segment};
use airtcp_edge::{Acknowledge, MTcpPlusConfig};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn in_time() -> MTcpPlusConfig {
    MTcpPlusConfig { acknowledge: Acknowledge::IN_TIME, ..MTcpPlusConfig::default() }
}

/// The mobile is 80 ms away, and has acknowledged 1000 bytes at 80 ms.
fn met(config: MTcpPlusConfig, isn: u32) -> Script<Node> {
    let mut s = Script::blank(node(config), isn);
    s.ack(0);
    s.data(0, 1000);
    s.wait(ms(80));
    s.ack(1000);
    s
}

fn each_met(script: impl Fn(Script<Node>)) {
    crate::script::ISNS.into_iter().for_each(|isn| script(met(in_time(), isn)));
}

/// Of four segments that came 20 ms apart, at 80, 100, 120 and 140 ms, the mobile has acknowledged
/// none at 150 ms.
fn each(script: impl Fn(Script<Node>)) {
    each_met(|mut s| {
        for seq in [1000, 2000, 3000, 4000] {
            s.data(seq, 1000);
            s.wait(if seq < 4000 { ms(20) } else { ms(10) });
        }
        script(s);
    });
}

/// Actions of the next timer, and the milliseconds until then.
fn timer(s: &mut Script<Node>) -> (u64, Vec<String>) {
    let before = s.now;
    let shown = s.next_timer();
    (s.now.since(before).as_nanos() / 1_000_000, shown)
}

#[test]
fn what_is_held_is_acknowledged_a_round_trip_after_it_came() {
    each(|mut s| {
        assert_eq!(s.down(), ["+F ack 1000 win 0"], "closed at once, nothing is due");
        // What comes within a part of the round trip, 10 ms, is acknowledged together.
        for (after, ack) in [(20, 2000), (20, 3000), (20, 4000), (20, 5000)] {
            assert_eq!(timer(&mut s), (after, vec![format!("+F ack {ack} win 0")]));
        }
        assert_eq!(counters(&s).bytes_acked_early, 4000);
    });
}

#[test]
fn what_is_due_when_the_signal_comes_is_acknowledged_with_it() {
    each(|mut s| {
        s.wait(ms(55));
        assert_eq!(s.down(), ["+F ack 1000 win 0", "+F ack 3000 win 0"]);
    });
}

#[test]
fn what_comes_later_is_acknowledged_in_its_turn() {
    each(|mut s| {
        s.down();
        assert_eq!(s.data(5000, 1000), ["kept 5000:6000"]);
        assert_eq!(timer(&mut s).1, ["+F ack 2000 win 0"]);
        let last = std::iter::repeat_with(|| timer(&mut s)).nth(2);
        assert_eq!(last, Some((20, vec!["+F ack 6000 win 0".to_owned()])));
        assert_eq!(counters(&s).bytes_acked_early, 5000);
    });
}

#[test]
fn the_fixed_host_s_retransmission_is_answered_with_what_it_was_told() {
    each(|mut s| {
        s.down();
        let shown = s.data(1000, 1000);
        assert!(shown.contains(&"+F ack 1000 win 0".to_owned()), "{shown:?}");
    });
}

#[test]
fn a_mobile_that_is_back_before_anything_was_due_frees_the_fixed_host_and_is_replayed_the_rest() {
    each(|mut s| {
        s.down();
        let mut shown = s.up();
        assert_eq!(shown.pop().unwrap(), "+F ack 1000 win 500");
        let copies = ["1000:2000", "2000:3000", "3000:4000", "4000:5000"];
        assert_eq!(shown, copies.map(|copy| format!("+M {copy}")));
        assert_eq!(counters(&s).bytes_acked_early, 0);
        assert_eq!(s.ack(2000), [">F ack 2000 win 500"], "it is the mobile's word");
        s.wait(ms(300));
        s.ack(3000);
        let shown = s.next_timer();
        assert_eq!(shown, ["+M 3000:4000"], "the node still repairs the replay");
    });
}

#[test]
fn what_is_due_during_the_replay_is_acknowledged_and_then_awaited() {
    each(|mut s| {
        s.wait(ms(20));
        s.down();
        s.up();
        assert_eq!(counters(&s).bytes_acked_early, 1000);
        s.wait(ms(10));
        let data = with_payload(s.mobile(1000), 100);
        assert_eq!(s.mobile_sends(data), ["x 0:100 ack 1000 win 500", "+F 0:100 ack 2000 win 0"]);
        assert_eq!(timer(&mut s).1, ["+F ack 3000 win 0"]);
        assert_eq!(s.ack(2000), ["x ack 2000 win 500"]);
        assert_eq!(s.ack(3000), [">F ack 3000 win 500"]);
        assert_eq!(s.ack(5000), [">F ack 5000 win 500"]);
        assert_eq!(s.node.held(), 0);
    });
}

/// 60 segments of 1000 bytes.
fn send_with_timestamps(s: &mut Script<Node>) {
    for n in 1..=60 {
        let data = with_timestamps(s.fixed(1000 * n, 1000), 80, 0);
        s.fixed_sends(data);
    }
}

/// These segments came at 80 ms.
fn each_with_timestamps(script: impl Fn(Script<Node>)) {
    each_met(|mut s| {
        send_with_timestamps(&mut s);
        script(s);
    });
}

/// Each acknowledgement that the fixed host gets when the mobile stays away, with its time in
/// milliseconds after the freeze.
fn told(s: &mut Script<Node>) -> Vec<(u64, String)> {
    let since = s.now;
    assert_eq!(s.down(), ["+F ack 1000 win 0"]);
    let mut told = Vec::new();
    while told.last().is_none_or(|(_, ack)| ack != "+F ack 61000 win 0") {
        let shown = s.next_timer();
        // The mobile is asked as well.
        let ack = shown.into_iter().filter(|it| it.starts_with("+F"));
        told.extend(ack.map(|ack| (s.now.since(since).as_millis(), ack)));
    }
    told
}

// RFC 6298 §2.3: with a time of R' the time-out is R' at least; RFC 5681 §4.1: without anything
// outstanding for longer, a sender begins anew.
#[test]
fn with_timestamps_a_segment_is_acknowledged_whenever_half_of_the_time_has_passed_again() {
    each_with_timestamps(|mut s| {
        let told = told(&mut s);
        let paced = told.partition_point(|(at, _)| *at < 40_000);
        assert_eq!(paced, 15);
        for (n, (_, ack)) in told[..paced].iter().enumerate() {
            assert_eq!(*ack, format!("+F ack {} win 0", 1000 * (n + 2)));
        }
        for pair in told.windows(2) {
            assert!(pair[1].0 <= 2 * pair[0].0.max(80), "{told:?}");
        }
    });
}

// Linux wakes a program that waits to write when a third of the socket's buffer is free.
#[test]
fn after_the_pacing_all_but_the_last_segments_are_acknowledged() {
    each_with_timestamps(|mut s| {
        let told = told(&mut s);
        assert!(told.contains(&(40_000, "+F ack 53000 win 0".to_owned())), "{told:?}");
    });
    for isn in crate::script::ISNS {
        let config = MTcpPlusConfig {
            acknowledge: Acknowledge::InTime(ms(3000)),
            ..MTcpPlusConfig::default()
        };
        let mut s = met(config, isn);
        send_with_timestamps(&mut s);
        let told = told(&mut s);
        assert!(told.contains(&(3000, "+F ack 53000 win 0".to_owned())), "{told:?}");
    }
}

// RFC 5482, RFC 6298 §2.5: a timer of 60 s does not expire, and so no user timeout begins.
#[test]
fn the_last_segments_are_acknowledged_one_at_a_time_at_most_30_s_apart() {
    each_with_timestamps(|mut s| {
        let told = told(&mut s);
        let last = &told[told.len() - 8..];
        let times = last.iter().map(|(at, _)| at / 1000);
        assert!(times.eq([60, 90, 120, 150, 180, 210, 240, 270]), "{told:?}");
        for (n, (_, ack)) in last.iter().enumerate() {
            assert_eq!(*ack, format!("+F ack {} win 0", 1000 * (n + 54)));
        }
    });
}

// RFC 6298 §3: no time is taken of what was sent again.
#[test]
fn what_the_mobile_missed_when_the_signal_came_is_acknowledged_together() {
    each_with_timestamps(|mut s| {
        let number = |n| s.mobile(n).ack.unwrap();
        let beyond = SackBlock { left: number(3000), right: number(9000) };
        let options = Options { sack: [beyond].into_iter().collect(), ..Options::default() };
        let duplicate = Segment { options, ..s.mobile(1000) };
        s.mobile_sends(duplicate);
        s.wait(ms(90));
        assert_eq!(s.down(), ["+F ack 1000 win 0", "+F ack 9000 win 0"]);
        assert_eq!(s.next_timer(), ["+F ack 10000 win 0"]);
        let again = with_timestamps(s.fixed(3000, 1000), 400, 0);
        assert_eq!(s.fixed_sends(again)[0], "+F ack 10000 win 0", "it was under way");
    });
}

#[test]
fn when_the_fixed_host_s_timer_expires_all_that_is_due_is_acknowledged() {
    each_with_timestamps(|mut s| {
        s.down();
        s.wait(ms(90));
        let again = with_timestamps(s.fixed(1000, 1000), 400, 0);
        assert_eq!(s.fixed_sends(again)[0], "+F ack 61000 win 0");
    });
}

#[test]
fn the_mobile_s_answer_to_what_was_acknowledged_frees_the_fixed_host_which_is_not_idle() {
    each_with_timestamps(|mut s| {
        s.down();
        s.next_timer();
        assert_eq!(counters(&s).bytes_acked_early, 1000);
        s.up();
        assert_eq!(s.ack(2000).last().unwrap(), ">F ack 2000 win 500");
        assert_eq!(s.ack(3000).last().unwrap(), ">F ack 3000 win 500");
    });
}

#[test]
fn without_a_round_trip_all_is_acknowledged_at_once() {
    let mut s = Script::blank(node(in_time()), 0);
    s.ack(0);
    s.data(0, 1000);
    assert_eq!(s.down(), ["+F ack 0 win 0", "+F ack 1000 win 0"]);
}

// As holdover: the mobile's own acknowledgements gave the fixed host round-trip times as long as the
// outage.
#[test]
fn the_last_segment_after_a_replay_is_sent_again_if_nothing_is_heard_of_it() {
    each(|mut s| {
        s.down();
        s.up();
        s.wait(ms(100));
        assert_eq!(s.ack(5000), [">F ack 5000 win 500"]);
        assert_eq!(s.data(5000, 1000), [">M 5000:6000"]);
        assert_eq!(timer(&mut s), (400, vec!["+M 5000:6000".to_owned()]));
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert!(s.next_timer().is_empty());
    });
    each(|mut s| {
        s.down();
        s.wait(ms(20_000));
        s.next_timer();
        s.up();
        s.wait(ms(100));
        assert_eq!(s.ack(5000), [">F ack 5000 win 500"], "all was acknowledged early");
        assert_eq!(s.data(5000, 1000), [">M 5000:6000"]);
        assert_eq!(timer(&mut s), (400, vec!["+M 5000:6000".to_owned()]));
    });
}

// The acknowledgement of the last data releases the fixed host, whose timer is long.
#[test]
fn a_fin_that_is_not_acknowledged_with_the_last_data_is_sent_again() {
    each(|mut s| {
        let fin = with_flags(s.fixed(5000, 0), Flags::FIN);
        s.fixed_sends(fin);
        s.down();
        s.wait(ms(20_000));
        s.next_timer();
        assert_eq!(s.up().last().unwrap(), "+M F 5000:5000");
        s.wait(ms(100));
        assert_eq!(s.ack(5000), [">F ack 5000 win 500"], "the FIN is lost");
        assert_eq!(timer(&mut s), (400, vec!["+M F 5000:5000".to_owned()]));
        assert_eq!(s.ack(5001), [">F ack 5001 win 500"]);
        assert!(s.next_timer().is_empty());
    });
}
