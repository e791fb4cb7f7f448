//! Reconnection: replay and release (M-TCP+ §3.2), and which host ensures that copies arrive.

use crate::script::{Script, with_flags, with_payload, with_window};
use crate::{Node, counters, each, probing, with};
use airtcp_core::{Bytes, Duration, Flags};
use airtcp_edge::MTcpPlusConfig;

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
fn acks_below_what_was_acknowledged_are_suppressed_and_the_first_other_one_opens_the_window() {
    each(|mut s| {
        replayed(&mut s);
        assert_eq!(s.ack(3000), ["x ack 3000 win 500"]);
        assert_eq!(s.ack(5999), ["x ack 5999 win 500"]);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert_eq!((counters(&s).acks_suppressed, counters(&s).resumes), (2, 1));
        assert_eq!(s.ack(5000), [">F ack 5000 win 500"], "connected: a plain forwarder");
        assert_eq!(s.data(6000, 1000), [">M 6000:7000"]);
        assert_eq!(s.node.held(), 1000);
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
fn probes_are_answered_until_the_mobile_has_all() {
    each(|mut s| {
        replayed(&mut s);
        assert_eq!(s.data(6000, 1), ["+F ack 6000 win 0", "x 6000:6001"]);
        s.ack(5000);
        assert_eq!(s.data(5999, 0), ["+F ack 6000 win 0", "x 5999:5999"]);
        s.ack(6000);
        assert_eq!(s.data(6000, 1), [">M 6000:6001"]);
    });
}

#[test]
fn late_data_is_stored_acknowledged_and_sent_on() {
    each(|mut s| {
        replayed(&mut s);
        assert_eq!(
            s.data(6000, 1000),
            ["+F ack 7000 win 0", "+M 6000:7000", "kept 6000:7000"],
            "in its turn"
        );
        assert_eq!(s.ack(6000), ["x ack 6000 win 500"]);
        assert_eq!(s.ack(7000), [">F ack 7000 win 500"]);
    });
}

#[test]
fn the_mobile_s_data_passes_with_a_closed_window_until_it_has_all() {
    each(|mut s| {
        replayed(&mut s);
        let data = with_payload(s.mobile(5000), 100);
        assert_eq!(s.mobile_sends(data), ["x 0:100 ack 5000 win 500", "+F 0:100 ack 6000 win 0"]);
        let data = with_payload(s.mobile(6000), 100);
        assert_eq!(s.mobile_sends(data), [">F 0:100 ack 6000 win 500"]);
    });
}

#[test]
fn a_lost_replay_is_repeated_with_back_off() {
    // The fixed host will never send this data again: RFC 6298 §5.5 in its stead.
    each(|mut s| {
        replayed(&mut s);
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(s.timer(wait), ["+M 1000:2000"]);
        }
        assert_eq!(s.ack(2000).len(), 5, "it is heard: all that is missing");
        assert_eq!(s.timer(1), ["+M 2000:3000"], "progress starts the time-out anew");
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
    });
}

#[test]
fn progress_restarts_the_time_out() {
    each(|mut s| {
        replayed(&mut s);
        s.timer(1);
        s.wait(Duration::from_millis(900));
        s.ack(2000);
        assert_eq!(s.timer(1), ["+M 2000:3000"]);
    });
}

#[test]
fn no_timer_runs_without_promised_data() {
    each(|mut s| {
        assert!(s.next_timer().is_empty());
        s.ack(6000);
        s.down();
        assert!(s.next_timer().is_empty());
    });
}

#[test]
fn the_third_duplicate_ack_sends_the_first_copy_again() {
    each(|mut s| {
        replayed(&mut s);
        s.wait(Duration::from_millis(100));
        s.ack(2000);
        assert_eq!(s.ack(2000), ["x ack 2000 win 500"]);
        assert_eq!(s.ack(2000), ["x ack 2000 win 500"]);
        assert_eq!(s.ack(2000), ["+M 2000:3000", "x ack 2000 win 500"]);
        assert_eq!(s.ack(2000), ["x ack 2000 win 500"]);
        s.wait(Duration::from_millis(100));
        assert_eq!(s.ack(4000)[0], "+M 4000:5000", "a second loss");
    });
}

#[test]
fn a_mobile_that_had_no_room_is_sent_all_again_when_it_has() {
    each(|mut s| {
        replayed(&mut s);
        let closed = with_window(s.mobile(5000), 0);
        s.mobile_sends(closed);
        assert_eq!(s.ack(5000), ["+M 5000:6000", "x ack 5000 win 500"]);
    });
}

#[test]
fn the_mobile_s_own_closed_window_goes_on() {
    each(|mut s| {
        replayed(&mut s);
        let closed = with_window(s.mobile(6000), 0);
        assert_eq!(s.mobile_sends(closed), [">F ack 6000 win 0"]);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"], "and its update");
    });
}

#[test]
fn a_second_outage_in_the_replay_changes_nothing_for_the_fixed_host() {
    // Spec: acked_fh is monotone.
    each(|mut s| {
        replayed(&mut s);
        s.ack(3000);
        assert!(s.down().is_empty());
        assert_eq!(s.data(6000, 1)[0], "+F ack 6000 win 0");
        assert_eq!(s.up(), ["+M 3000:4000", "+M 4000:5000", "+M 5000:6000"]);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert_eq!((counters(&s).freezes, counters(&s).resumes), (1, 1));
    });
}

#[test]
fn an_outage_after_the_release_is_a_new_one() {
    each(|mut s| {
        replayed(&mut s);
        s.ack(6000);
        s.data(6000, 1000);
        assert_eq!(s.down(), ["+F ack 6000 win 0", "+F ack 7000 win 0"]);
    });
}

#[test]
fn reconnection_that_was_assumed_too_early_is_corrected_by_the_signal() {
    each(|mut s| {
        s.down();
        s.ack(4000);
        assert_eq!(s.timer(1), ["+M 4000:5000"]);
        assert_eq!(s.up(), ["+M 4000:5000", "+M 5000:6000"]);
        assert_eq!(s.timer(1), ["+M 4000:5000"]);
    });
}

#[test]
fn the_replayed_fin_is_the_fixed_host_s_to_see_acknowledged() {
    each(|mut s| {
        let fin = with_flags(s.fixed(6000, 0), Flags::FIN);
        s.fixed_sends(fin.clone());
        s.down();
        assert_eq!(s.up().last().unwrap(), "+M F 6000:6000");
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert_eq!(s.fixed_sends(fin), [">M F 6000:6000"]);
        assert_eq!(s.ack(6001), [">F ack 6001 win 500"]);
        assert_eq!(s.node.held(), 0);
    });
}

// --- resume = probe ---

#[test]
fn with_resume_probe_the_fixed_host_s_next_probe_opens_the_window() {
    with(probing(), |mut s| {
        replayed(&mut s);
        assert_eq!(
            s.data(6000, 1),
            ["+F ack 6000 win 0", "x 6000:6001"],
            "not before all is there"
        );
        assert_eq!(s.ack(3000), ["x ack 3000 win 500"]);
        assert_eq!(s.ack(6000), ["x ack 6000 win 500"]);
        assert_eq!(s.ack(6000), ["x ack 6000 win 500"]);
        assert!(s.next_timer().is_empty());
        assert_eq!(s.data(6000, 0), [">M 6000:6000"], "an ACK is no probe");
        assert_eq!(s.ack(6000), ["x ack 6000 win 500"]);
        assert_eq!(s.data(6000, 1), [">M 6000:6001"]);
        assert_eq!(s.ack(6001), [">F ack 6001 win 500"]);
        assert_eq!(counters(&s).resumes, 1);
    });
}

#[test]
fn with_resume_probe_nothing_more_is_promised_when_the_mobile_has_all() {
    // 4000:6000 found no room, 6000:7000 did: the mobile's ACK closes the gap, but the replay is
    // over.
    let config = MTcpPlusConfig { fifo: Bytes(4000), ..probing() };
    with(config, |mut s| {
        s.data(6000, 1000);
        s.down();
        s.up();
        assert_eq!(s.ack(6000), ["x ack 6000 win 500", "+F ack 6000 win 0"]);
        assert_eq!(s.ack(7000), ["x ack 7000 win 500", "+F ack 7000 win 0"]);
        assert_eq!(s.data(7000, 1), [">M 7000:7001"]);
    });
}

#[test]
fn with_resume_probe_and_nothing_to_replay_nothing_is_sent() {
    with(probing(), |mut s| {
        s.ack(6000);
        s.down();
        assert!(s.up().is_empty());
        assert_eq!(s.data(5999, 0), [">M 5999:5999"]);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
    });
}

#[test]
fn with_resume_probe_an_answer_to_a_forwarded_probe_is_one() {
    with(probing(), |mut s| {
        s.ack(6000);
        s.down();
        assert_eq!(s.data(6000, 1), ["+F ack 6000 win 0", ">M 6000:6001"]);
        assert_eq!(s.ack(6001), [">F ack 6001 win 500"]);
    });
}

#[test]
fn with_resume_probe_an_outage_while_waiting_for_the_probe_is_one() {
    with(probing(), |mut s| {
        replayed(&mut s);
        s.ack(6000);
        assert!(s.down().is_empty());
        assert_eq!(s.data(6000, 1), ["+F ack 6000 win 0", ">M 6000:6001"]);
    });
}
