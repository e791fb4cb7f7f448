//! docs/holdover.md, *Reconnection*.

use super::{Node, counters, each, fifo, with};
use crate::script::{Script, with_timestamps, with_window};
use airtcp_core::Duration;

/// Down and up again: the copies 1000:6000 are replayed.
fn replayed(s: &mut Script<Node>) {
    s.down();
    assert_eq!(s.up().len(), 5);
}

#[test]
fn all_copies_are_replayed_in_order() {
    each(|mut s| {
        s.down();
        s.data(6000, 500);
        let copies = ["1000:2000", "2000:3000", "3000:4000", "4000:5000", "5000:6000", "6000:6500"];
        assert_eq!(s.up(), copies.map(|copy| format!("+M {copy}")));
        assert_eq!(counters(&s).replays, 1);
    });
}

#[test]
fn super_segments_are_cut_where_their_options_leave_room() {
    for (stamped, pieces) in [(false, 1460), (true, 1448)] {
        each(|mut s| {
            s.ack(6000);
            let data = s.fixed(6000, 60_000);
            s.fixed_sends(if stamped { with_timestamps(data, 1, 1) } else { data });
            s.down();
            assert_eq!(s.up(), ["+M 6000:36000"]);
            assert_eq!(s.timer(1), [format!("+M 6000:{}", 6000 + pieces)]);
        });
    }
}

#[test]
fn the_first_segment_of_the_mobile_opens_the_window() {
    each(|mut s| {
        replayed(&mut s);
        assert_eq!(s.ack(2000), [">F ack 2000 win 500"]);
        assert_eq!(s.data(6000, 1000), ["+M 6000:7000", "kept 6000:7000"], "in its turn");
        assert_eq!(s.ack(1500), [">F ack 1500 win 500"]);
        assert_eq!(s.ack(7000), [">F ack 7000 win 500"]);
        assert_eq!(s.data(7000, 1000), [">M 7000:8000"], "connected: a plain forwarder");
        assert_eq!(s.ack(8000), [">F ack 8000 win 500"]);
        assert_eq!(counters(&s).resumes, 1);
        assert!(s.next_timer().is_empty());
    });
}

#[test]
fn with_nothing_to_replay_the_mobile_s_last_word_opens_the_window() {
    each(|mut s| {
        s.ack(6000);
        s.down();
        assert_eq!(s.up(), ["+F ack 6000 win 500"]);
        assert_eq!(s.data(6000, 1000), [">M 6000:7000"]);
    });
}

#[test]
fn retransmissions_and_probes_are_answered_until_the_mobile_is_heard() {
    each(|mut s| {
        replayed(&mut s);
        assert_eq!(s.data(1000, 1000)[0], "+F ack 1000 win 0");
        assert_eq!(
            s.data(6000, 1),
            ["+F ack 1000 win 0", "x 6000:6001"],
            "a replay is probe enough"
        );
        assert_eq!(s.data(6000, 1000), ["+M 6000:7000", "kept 6000:7000"], "new data follows");
    });
}

#[test]
fn a_lost_replay_is_repeated_with_back_off() {
    // The fixed host's own timer may be a minute off.
    each(|mut s| {
        replayed(&mut s);
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(s.timer(wait), ["+M 1000:2000"]);
        }
        assert_eq!(s.ack(2000).len(), 5, "it is heard: all that is missing");
        assert_eq!(s.timer(1), ["+M 2000:3000"], "until all that was replayed is there");
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert!(s.next_timer().is_empty());
    });
}

#[test]
fn the_third_duplicate_ack_sends_the_first_copy_again() {
    each(|mut s| {
        replayed(&mut s);
        s.ack(2000);
        assert_eq!(s.ack(2000), [">F ack 2000 win 500"]);
        assert_eq!(s.ack(2000), [">F ack 2000 win 500"]);
        assert_eq!(s.ack(2000), ["+M 2000:3000", ">F ack 2000 win 500"]);
    });
}

#[test]
fn the_mobile_s_own_closed_window_goes_on() {
    each(|mut s| {
        replayed(&mut s);
        let closed = with_window(s.mobile(5000), 0);
        assert_eq!(s.mobile_sends(closed), [">F ack 5000 win 0"]);
        assert_eq!(s.ack(5000), ["+M 5000:6000", ">F ack 5000 win 500"], "it has room again");
    });
}

#[test]
fn a_second_outage_before_the_mobile_is_heard_goes_on_with_the_first() {
    each(|mut s| {
        replayed(&mut s);
        assert!(s.down().is_empty());
        assert!(s.next_timer().is_empty());
        assert_eq!(s.ack(2000), [">F ack 2000 win 500"]);
        assert_eq!(s.up().len(), 4);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert_eq!((counters(&s).freezes, counters(&s).resumes), (1, 1));
    });
}

#[test]
fn a_second_outage_after_the_release_is_a_new_one() {
    each(|mut s| {
        replayed(&mut s);
        s.ack(2000);
        assert_eq!(s.fading(), ["+F ack 2000 win 0"]);
        assert!(s.next_timer().is_empty(), "nothing is resent to nobody");
        assert_eq!(s.up().len(), 4);
    });
}

#[test]
fn what_the_fifo_could_not_take_is_the_fixed_host_s() {
    with(fifo(4000), |mut s| {
        s.down();
        assert_eq!(s.up(), ["+M 1000:2000", "+M 2000:3000", "+M 3000:4000"]);
        assert_eq!(s.ack(4000), [">F ack 4000 win 500"]);
        assert_eq!(s.data(4000, 1000), [">M 4000:5000"]);
    });
}

// --- Senders that go back to their first unacknowledged byte ---

#[test]
fn replayed_data_that_the_fixed_host_sends_again_is_dropped_once() {
    // The mobile would answer each with a duplicate ACK.
    each(|mut s| {
        replayed(&mut s);
        s.ack(3000);
        assert_eq!(s.data(3000, 1000), ["x 3000:4000"], "under way to the mobile");
        s.ack(6000);
        assert_eq!(s.data(4000, 1000), ["x 4000:5000"], "its ACK is under way");
        assert_eq!(s.data(4000, 1000), [">M 4000:5000"], "it was lost");
        assert_eq!(s.data(5000, 500), ["x 5000:5500"]);
        assert_eq!(counters(&s).data_dropped, 3);
    });
}

#[test]
fn data_that_was_replayed_passes_when_the_fixed_host_was_beyond_it() {
    each(|mut s| {
        replayed(&mut s);
        s.ack(6000);
        s.data(6000, 1000);
        assert_eq!(s.data(4000, 1000), [">M 4000:5000"]);
    });
}

#[test]
fn data_of_before_the_replay_passes() {
    each(|mut s| {
        replayed(&mut s);
        s.ack(6000);
        assert_eq!(s.data(0, 1000), [">M 0:1000"], "the fixed host lacks an ACK");
    });
}

// --- The fixed host's timer is as long as the outage was ---

/// All that was replayed is acknowledged after 100 ms.
fn resumed(s: &mut Script<Node>) {
    replayed(s);
    s.wait(Duration::from_millis(100));
    s.ack(6000);
}

// RFC 8985 §7.2: two round trips, and 200 ms for a delayed ACK.
const PATIENCE: Duration = Duration::from_millis(400);

#[test]
fn the_last_segments_of_a_transfer_are_sent_again_if_nothing_is_heard_of_them() {
    each(|mut s| {
        resumed(&mut s);
        for seq in [6000, 7000, 8000, 9000] {
            assert_eq!(s.data(seq, 1000).len(), 1);
        }
        let start = s.now;
        assert_eq!(s.next_timer(), ["+M 6000:7000"]);
        assert_eq!(s.now.since(start), PATIENCE);
        s.ack(7000);
        assert_eq!(s.next_timer(), ["+M 7000:8000", "+M 8000:9000"], "it has nothing of the rest");
        s.ack(9000);
        assert_eq!(s.next_timer(), ["+M 9000:10000"]);
        assert_eq!(s.ack(10_000), [">F ack 10000 win 500"]);
        assert!(s.next_timer().is_empty());
        assert_eq!(counters(&s).copies_resent, 4);
    });
}

#[test]
fn progress_and_what_the_fixed_host_repairs_itself_start_the_timer_anew() {
    each(|mut s| {
        resumed(&mut s);
        for seq in [6000, 7000, 8000] {
            s.data(seq, 1000);
        }
        s.wait(PATIENCE / 2);
        s.ack(7000);
        s.wait(PATIENCE / 2);
        assert_eq!(s.data(7000, 1000), [">M 7000:8000"]);
        let start = s.now;
        assert_eq!(s.next_timer(), ["+M 7000:8000"]);
        assert_eq!(s.now.since(start), PATIENCE);
    });
}

#[test]
fn without_an_answer_the_timer_backs_off_and_leaves_the_rest_to_the_fixed_host() {
    each(|mut s| {
        resumed(&mut s);
        s.data(6000, 1000);
        let mut wait = PATIENCE;
        while wait <= Duration::from_secs(60) {
            let start = s.now;
            assert_eq!(s.next_timer(), ["+M 6000:7000"]);
            assert_eq!(s.now.since(start), wait);
            wait = wait * 2;
        }
        assert!(s.next_timer().is_empty());
    });
}

// RFC 6298 §2.3: each round trip takes an eighth off the fixed host's time-out.
#[test]
fn after_forty_round_trips_of_new_data_the_fixed_host_s_timer_is_short() {
    each(|mut s| {
        resumed(&mut s);
        for seq in (6000..).step_by(1000).take(40) {
            s.data(seq, 1000);
            s.wait(Duration::from_millis(250));
            s.ack(seq + 1000);
        }
        s.data(46_000, 1000);
        assert!(s.next_timer().is_empty());
    });
    each(|mut s| {
        resumed(&mut s);
        for seq in (6000..).step_by(1000).take(40) {
            s.data(seq, 1000);
            s.ack(seq + 1000);
        }
        s.data(46_000, 1000);
        assert_eq!(s.next_timer(), ["+M 46000:47000"], "it was one round trip");
    });
}

#[test]
fn a_new_outage_ends_the_timer_and_the_mobile_s_return_the_silence() {
    each(|mut s| {
        resumed(&mut s);
        s.data(6000, 1000);
        s.down();
        assert!(s.next_timer().is_empty());
    });
    each(|mut s| {
        resumed(&mut s);
        s.data(6000, 1000);
        s.data(7000, 1000);
        assert!(s.up().is_empty(), "it may be on its way");
        s.next_timer();
        assert_eq!(s.up(), ["+M 6000:7000", "+M 7000:8000"]);
    });
}
