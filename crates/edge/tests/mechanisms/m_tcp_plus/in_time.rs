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

fn in_time() -> Node {
    node(MTcpPlusConfig { acknowledge: Acknowledge::InTime, ..MTcpPlusConfig::default() })
}

/// The mobile is 80 ms away, and has acknowledged 1000 bytes at 80 ms.
fn each_met(script: impl Fn(Script<Node>)) {
    for isn in crate::script::ISNS {
        let mut s = Script::blank(in_time(), isn);
        s.ack(0);
        s.data(0, 1000);
        s.wait(ms(80));
        s.ack(1000);
        script(s);
    }
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

/// 60 segments of 1000 bytes with timestamps came at 80 ms.
fn each_with_timestamps(script: impl Fn(Script<Node>)) {
    each_met(|mut s| {
        for n in 1..=60 {
            let data = with_timestamps(s.fixed(1000 * n, 1000), 80, 0);
            s.fixed_sends(data);
        }
        script(s);
    });
}

// RFC 6298 §2.3: with a time of R' the time-out is R' at least; RFC 5681 §4.1: without anything
// outstanding for longer, a sender begins anew.
#[test]
fn with_timestamps_a_segment_is_acknowledged_whenever_half_of_the_time_has_passed_again() {
    each_with_timestamps(|mut s| {
        let mut told = vec![s.now];
        assert_eq!(s.down(), ["+F ack 1000 win 0"]);
        loop {
            // The mobile is asked as well.
            let shown =
                std::iter::repeat_with(|| s.next_timer()).find(|it| it[0].starts_with("+F"));
            if s.now.since(told[0]) > Duration::from_secs(10) {
                assert_eq!(shown.unwrap(), ["+F ack 61000 win 0"]);
                break;
            }
            assert_eq!(shown.unwrap(), [format!("+F ack {} win 0", 1000 * (told.len() + 1))]);
            told.push(s.now);
        }
        assert_eq!(told.len(), 12);
        for pair in told.windows(2) {
            let timeout = pair[0].since(told[0]).max(ms(80)) * 2;
            assert!(pair[1].since(told[0]) <= timeout, "{told:?}");
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
    let mut s = Script::blank(in_time(), 0);
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
