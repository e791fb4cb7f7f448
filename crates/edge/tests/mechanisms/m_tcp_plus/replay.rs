//! How copies are sent to a mobile that came back: the rules at the top of `src/replay.rs`, which
//! are holdover's as well. Twenty segments of 1000 bytes are under way, two initial windows.

use super::{Node, fifo, node};
use crate::script::{ISNS, Script, Seg, with_flags, with_window};
use airtcp_core::{Duration, Flags, Options, SackBlock, Segment};

/// From a segment's departure to its acknowledgement.
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// So many segments of this size are under way when the link goes down.
fn down(isn: u32, count: u32, size: u32) -> Script<Node> {
    let mut script = Script::blank(node(fifo(1 << 20)), isn);
    script.ack(0);
    for n in 0..count {
        script.data(n * size, u64::from(size));
    }
    script.down();
    script
}

/// The link is down.
fn each(script: impl Fn(Script<Node>)) {
    for isn in ISNS {
        script(down(isn, 20, 1000));
    }
}

/// The link is up again, and a round trip has passed.
fn each_replayed(script: impl Fn(Script<Node>)) {
    each(|mut s| {
        assert_eq!(replayed(s.up()), numbers(0, 10));
        s.wait(ROUND_TRIP);
        script(s);
    });
}

/// Data sent to the mobile, in thousands of bytes.
fn replayed(shown: Vec<String>) -> Vec<u32> {
    let numbers = shown.iter().filter_map(|line| line.strip_prefix("+M "));
    numbers.map(|range| range.split(':').next().unwrap().parse::<u32>().unwrap() / 1000).collect()
}

/// So many segments from this one on.
fn numbers(first: u32, count: u32) -> Vec<u32> {
    (first..first + count).collect()
}

/// The mobile has all up to here, and these (in thousands).
fn sack(s: &Script<Node>, ack: u32, blocks: &[(u32, u32)]) -> Seg {
    let number = |n: u32| s.mobile(1000 * n).ack.unwrap();
    let block = |&(left, right)| SackBlock { left: number(left), right: number(right) };
    let options = Options { sack: blocks.iter().map(block).collect(), ..Options::default() };
    Segment { options, ..s.mobile(1000 * ack) }
}

fn acked(s: &mut Script<Node>, ack: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
    let segment = sack(s, ack, blocks);
    replayed(s.mobile_sends(segment))
}

// RFC 6928 §2, RFC 7661 §4.4.
#[test]
fn a_replay_begins_with_half_of_what_is_held_but_ten_segments_at_least_and_64_kib_at_most() {
    for (held, first) in [(5, 5), (12, 10), (20, 10), (60, 30), (131, 65), (200, 65)] {
        let mut s = down(7, held, 1000);
        assert_eq!(replayed(s.up()), numbers(0, first), "{held}");
    }
}

#[test]
fn a_copy_of_many_segments_is_cut_at_the_window() {
    let mut s = down(7, 1, 30_000);
    assert_eq!(s.up(), ["+M 0:15000"]);
    assert_eq!(s.ack(2920)[0], "+M 15000:20840", "twice as much");
}

// RFC 5681 §3.1, RFC 3465 §2.2.
#[test]
fn each_acknowledgement_sends_twice_what_it_acknowledges() {
    each_replayed(|mut s| {
        assert_eq!(acked(&mut s, 1, &[]), [10, 11]);
        assert_eq!(acked(&mut s, 3, &[]), [12, 13, 14, 15]);
        assert_eq!(acked(&mut s, 9, &[]), numbers(16, 4), "all that is left");
    });
}

#[test]
fn an_old_acknowledgement_sends_nothing() {
    each_replayed(|mut s| {
        acked(&mut s, 5, &[]);
        assert_eq!(acked(&mut s, 2, &[]), []);
    });
}

// RFC 7661 §4.4, RFC 9002 §7.7.
#[test]
fn when_the_initial_window_has_arrived_half_of_what_was_held_is_sent_evenly_over_a_round_trip() {
    for isn in ISNS {
        let mut s = down(isn, 600, 1000);
        assert_eq!(replayed(s.up()), numbers(0, 65));
        s.wait(ROUND_TRIP);
        let heard = s.now;
        let mut sent = acked(&mut s, 65, &[]);
        loop {
            assert!(sent.len() <= 5, "at once, of 300: {sent:?}");
            let end = sent.last().unwrap() + 1;
            if end == 65 + 300 {
                break;
            }
            sent = replayed(s.next_timer());
            assert_eq!(sent.first(), Some(&end));
        }
        let time = s.now.since(heard).as_millis();
        assert!((70..=81).contains(&time), "four fifths of a round trip: {time} ms");
    }
}

// The mobile may have said what it had before the outage, long before the replay is answered.
#[test]
fn an_acknowledgement_of_more_than_was_sent_answers_nothing_but_a_duplicate_does() {
    // RFC 2883 §4; a mobile without SACK repeats itself.
    for answer in [&[(0, 1)][..], &[]] {
        let mut s = down(7, 600, 1000);
        s.up();
        s.wait(ROUND_TRIP / 20);
        assert_eq!(acked(&mut s, 200, &[]), []);
        assert_eq!(acked(&mut s, 300, &[]), []);
        s.wait(ROUND_TRIP * 19 / 20);
        let heard = s.now;
        let mut sent = acked(&mut s, 300, answer);
        while sent.len() < 290 {
            sent.extend(replayed(s.next_timer()));
        }
        assert_eq!(sent, numbers(300, sent.len() as u32));
        let time = s.now.since(heard).as_millis();
        assert!((70..=81).contains(&time), "four fifths of a round trip: {time} ms");
    }
    let mut s = down(7, 600, 1000);
    s.up();
    s.wait(ROUND_TRIP);
    assert_eq!(acked(&mut s, 300, &[(0, 1)])[0], 300, "the first answer");
}

#[test]
fn an_acknowledgement_of_everything_ends_the_replay() {
    let mut s = down(7, 600, 1000);
    s.up();
    assert_eq!(s.ack(600_000), [">F ack 600000 win 500"]);
    assert_eq!(s.next_timer(), [""; 0]);
}

#[test]
fn a_loss_in_the_initial_window_leaves_the_replay_in_slow_start() {
    let mut s = down(7, 600, 1000);
    s.up();
    s.wait(ROUND_TRIP);
    let mut sent = Vec::new();
    for right in 2..=65 {
        sent.extend(acked(&mut s, 0, &[(1, right)]));
    }
    s.wait(ROUND_TRIP);
    sent.extend(acked(&mut s, 65, &[]));
    assert!(sent.len() < 100, "{}", sent.len());
    let heard = s.now;
    s.next_timer();
    assert!(s.now.since(heard) > ROUND_TRIP, "no timer but the tail's");
}

// RFC 6675 §4, IsLost.
#[test]
fn what_three_later_segments_passed_is_lost() {
    each_replayed(|mut s| {
        assert_eq!(acked(&mut s, 0, &[(1, 2)]), [10, 11], "one");
        assert_eq!(acked(&mut s, 0, &[(1, 3)]), [12, 13], "two");
        assert_eq!(acked(&mut s, 0, &[(1, 4)]), [0], "three: at once, whatever the window says");
        assert_eq!(acked(&mut s, 0, &[(1, 5)]), [], "the window is half of what it was");
    });
}

// RFC 2018 §4: the first block has what caused the acknowledgement, unless that moved its number
// on.
#[test]
fn what_the_mobile_has_had_since_before_the_outage_shows_no_loss() {
    each_replayed(|mut s| {
        assert_eq!(acked(&mut s, 1, &[(5, 8)]), [10, 11], "one has arrived");
        assert_eq!(acked(&mut s, 1, &[(2, 3), (9, 10), (5, 8)]), [12, 13]);
        s.wait(ROUND_TRIP);
        assert_eq!(acked(&mut s, 1, &[(2, 5), (9, 10)])[0], 1, "three have, after the first");
    });
}

#[test]
fn several_losses_of_one_window_are_repaired_in_one_round_trip_and_halve_it_once() {
    each_replayed(|mut s| {
        // 0, 2 and 4 are lost.
        let mut sent = acked(&mut s, 0, &[(1, 2)]);
        sent.extend(acked(&mut s, 0, &[(3, 4), (1, 2)]));
        for right in 6..=11 {
            sent.extend(acked(&mut s, 0, &[(5, right), (3, 4), (1, 2)]));
        }
        let again: Vec<u32> = sent.iter().copied().filter(|&n| n < 10).collect();
        assert_eq!(again, [0, 2, 4], "{sent:?}");
        // Twelve were under way.
        s.wait(ROUND_TRIP);
        sent.extend(acked(&mut s, 11, &[]));
        let under_way = sent.iter().filter(|&&n| n > 10).count();
        assert!((6..=8).contains(&under_way), "{sent:?}");
    });
}

// RFC 8985 §3.3: a retransmission that is lost again.
#[test]
fn a_lost_repair_is_repaired() {
    each_replayed(|mut s| {
        for right in 2..=10 {
            acked(&mut s, 0, &[(1, right)]);
        }
        // 10 and what follows left after the repair of 0, or with it.
        s.wait(ROUND_TRIP);
        let mut again = Vec::new();
        for right in 11..=16 {
            again.extend(acked(&mut s, 0, &[(1, right)]));
            s.wait(ROUND_TRIP / 2);
        }
        assert_eq!(again.iter().filter(|&&n| n == 0).count(), 1, "{again:?}");
    });
}

#[test]
fn a_piece_that_was_sent_together_with_what_arrived_is_not_lost() {
    each_replayed(|mut s| {
        // Two were overtaken by one: reordering.
        assert!(!acked(&mut s, 0, &[(2, 3)]).contains(&0));
        assert_eq!(acked(&mut s, 3, &[]).first(), Some(&12));
    });
}

// RFC 8985 §6.2, step 2.
#[test]
fn a_repair_that_may_have_been_needless_says_nothing_of_what_was_sent_before_it() {
    each(|mut s| {
        s.up();
        assert_eq!(acked(&mut s, 0, &[(1, 4)]), [0]);
        s.wait(ROUND_TRIP);
        let sent = acked(&mut s, 4, &[]);
        assert!(!sent.contains(&4), "there is no round-trip time yet: {sent:?}");
    });
    each_replayed(|mut s| {
        acked(&mut s, 0, &[(1, 2)]);
        assert_eq!(acked(&mut s, 0, &[(1, 4)])[0], 0);
        s.wait(ROUND_TRIP / 3);
        let sent = acked(&mut s, 4, &[]);
        assert!(!sent.contains(&4), "a round trip takes longer: {sent:?}");
    });
}

// RFC 5681 §3.2.
#[test]
fn without_sack_the_third_duplicate_means_a_loss() {
    each_replayed(|mut s| {
        acked(&mut s, 1, &[]);
        let sent: Vec<Vec<u32>> = (0..5).map(|_| acked(&mut s, 1, &[])).collect();
        assert_eq!(sent, [vec![], vec![], vec![1], vec![], vec![]]);
    });
}

// RFC 6582 §3.2.
#[test]
fn without_sack_a_partial_acknowledgement_shows_the_next_loss() {
    each_replayed(|mut s| {
        acked(&mut s, 1, &[]);
        (0..3).for_each(|_| drop(acked(&mut s, 1, &[])));
        s.wait(ROUND_TRIP);
        assert_eq!(acked(&mut s, 4, &[]).first(), Some(&4));
    });
}

/// The mobile acknowledges the initial window, and all that is left has been sent.
fn all_sent(s: &mut Script<Node>) {
    let mut sent = acked(s, 10, &[]);
    while sent.len() < 10 {
        sent.extend(replayed(s.next_timer()));
    }
    assert_eq!(sent, numbers(10, 10));
}

// RFC 8985 §7.2, then RFC 6298 §5.
#[test]
fn when_nothing_is_heard_the_tail_is_probed_and_then_the_timer_runs() {
    each_replayed(|mut s| {
        let mut before = s.now;
        all_sent(&mut s);
        let mut waits = Vec::new();
        for _ in 0..5 {
            assert_eq!(replayed(s.next_timer()), [10], "the first under way");
            waits.push(s.now.since(before).as_millis());
            before = s.now;
        }
        assert_eq!(waits, [210, 1000, 2000, 4000, 8000], "two round trips, then time-outs");
        assert_eq!(acked(&mut s, 11, &[]), numbers(11, 9), "it is heard");
    });
}

#[test]
fn the_answer_to_the_probe_shows_what_else_of_the_tail_was_lost() {
    each_replayed(|mut s| {
        all_sent(&mut s);
        assert_eq!(replayed(s.next_timer()), [10]);
        s.wait(ROUND_TRIP);
        let mut sent = acked(&mut s, 11, &[]);
        while sent.len() < 9 {
            s.wait(ROUND_TRIP);
            let last = sent.last().unwrap() + 1;
            let more = acked(&mut s, last, &[]);
            assert!(!more.is_empty(), "{sent:?}");
            sent.extend(more);
        }
        assert_eq!(sent, numbers(11, 9), "without the timer");
    });
}

// RFC 8985 §7.2: a single segment may wait for a delayed acknowledgement.
#[test]
fn a_single_segment_under_way_may_be_acknowledged_late() {
    let mut s = down(7, 2, 1000);
    s.up();
    s.wait(ROUND_TRIP);
    s.ack(1000);
    let before = s.now;
    assert_eq!(s.next_timer(), ["+M 1000:2000"]);
    assert_eq!(s.now.since(before), ROUND_TRIP * 2 + Duration::from_millis(200));
}

#[test]
fn a_mobile_that_closes_its_window_is_sent_nothing_until_it_opens_it() {
    each_replayed(|mut s| {
        let closed = with_window(s.mobile(5000), 0);
        assert_eq!(replayed(s.mobile_sends(closed)), []);
        assert_eq!(acked(&mut s, 5, &[]), numbers(5, 10), "from what it has");
    });
}

#[test]
fn a_second_outage_ends_the_replay_and_the_next_begins_at_what_is_missing() {
    each_replayed(|mut s| {
        acked(&mut s, 4, &[]);
        s.down();
        assert_eq!(replayed(s.up()), numbers(4, 10));
    });
}

// --- Data of the fixed host in the meantime ---

#[test]
fn new_data_waits_behind_the_copies() {
    each_replayed(|mut s| {
        acked(&mut s, 1, &[]);
        assert_eq!(s.data(20_000, 1000).last().unwrap(), "kept 20000:21000");
        let mut sent = Vec::new();
        for ack in 2..=15 {
            sent.extend(acked(&mut s, ack, &[]));
        }
        assert_eq!(sent, numbers(12, 9), "in order, once");
    });
}

#[test]
fn what_waits_is_not_sent_because_the_fixed_host_sends_it_again() {
    each_replayed(|mut s| {
        acked(&mut s, 1, &[]);
        for n in [14, 18, 14] {
            assert_eq!(replayed(s.data(1000 * n, 1000)), []);
        }
        assert_eq!(acked(&mut s, 9, &[]), numbers(12, 8), "in its turn");
    });
}

#[test]
fn a_fin_waits_behind_the_copies_and_goes_before_the_fixed_host_is_released() {
    each_replayed(|mut s| {
        let fin = with_flags(s.fixed(20_000, 0), Flags::FIN);
        assert_eq!(s.fixed_sends(fin).last().unwrap(), "kept F 20000:20000");
        let shown: Vec<String> =
            [5, 10, 20].into_iter().flat_map(|ack| s.ack(1000 * ack)).collect();
        let place = |line: &str| shown.iter().position(|other| other == line);
        let [fin, release] = ["+M F 20000:20000", ">F ack 20000 win 500"].map(place);
        assert!(fin.is_some() && fin < release, "{shown:?}");
    });
}

#[test]
fn what_came_since_goes_without_a_window_when_all_that_was_held_has_arrived() {
    each_replayed(|mut s| {
        // A loss makes the window small.
        for right in 2..=10 {
            acked(&mut s, 0, &[(1, right)]);
        }
        for n in 20..60 {
            s.data(1000 * n, 1000);
        }
        let mut sent = Vec::new();
        let mut ack = 10;
        while ack < 20 {
            s.wait(ROUND_TRIP);
            let more = acked(&mut s, ack, &[]);
            ack = more.last().map_or(ack, |last| last + 1).min(20);
            sent.extend(more);
        }
        assert!(!sent.contains(&40), "the window was in charge: {sent:?}");
        s.wait(ROUND_TRIP);
        let more = acked(&mut s, 20, &[]);
        assert!(more.len() >= 2, "{more:?}");
        let more = s.data(60_000, 1000);
        assert_eq!(replayed(more), [], "a burst of the fixed host leaves as smoothly");
    });
}
