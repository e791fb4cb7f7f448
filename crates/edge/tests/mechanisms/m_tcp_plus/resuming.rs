//! Reconnection: replay and release (M-TCP+ §3.2), and which host ensures that copies arrive.

use super::{Node, counters, each, node, probing, with};
use crate::script::{ISNS, Script, with_flags, with_payload, with_window};
use airtcp_core::{Bytes, Duration, Flags};
use airtcp_edge::{MTcpPlusConfig, Open};

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

// --- open = in-steps ---

fn in_steps() -> MTcpPlusConfig {
    MTcpPlusConfig { open: Open::InSteps, ..MTcpPlusConfig::default() }
}

/// The mobile's ACK with a window of 60 kB, which a unit of its field stands for so many bytes of.
fn ack_wide(s: &mut Script<Node>, ack: u32, unit: u16) -> Vec<String> {
    let ack = with_window(s.mobile(ack), 60_000 / unit);
    s.mobile_sends(ack)
}

/// 60 segments of 1000 bytes, all that the window allows, are lost in an outage, and have been
/// replayed; the mobile has acknowledged all but the last.
fn each_full(config: MTcpPlusConfig, unit: u16, script: impl Fn(Script<Node>)) {
    for isn in ISNS {
        let mut s = Script::blank(node(config), isn);
        ack_wide(&mut s, 0, unit);
        for n in 0..60 {
            s.data(1000 * n, 1000);
        }
        s.down();
        assert_eq!(s.up().len(), 30, "half of it");
        s.wait(Duration::from_millis(100));
        ack_wide(&mut s, 30_000, unit);
        while s.next_timer().last().unwrap() != "+M 59000:60000" {}
        ack_wide(&mut s, 59_000, unit);
        script(s);
    }
}

#[test]
fn the_window_opens_at_once_as_in_the_paper() {
    each_full(MTcpPlusConfig::default(), 1, |mut s| {
        assert_eq!(ack_wide(&mut s, 60_000, 1), [">F ack 60000 win 60000"]);
        assert!(s.next_timer().is_empty());
    });
}

// RFC 5681 §3.1: as much as is proven to pass, and then twice what is acknowledged.
#[test]
fn the_window_opens_in_steps_clocked_by_the_mobile_s_acknowledgements() {
    for unit in [1, 4] {
        each_full(in_steps(), unit, |mut s| {
            let first = 30_000 / unit;
            let shown = |ack: u32, window: u16| {
                let own = 60_000 / unit;
                [format!("x ack {ack} win {own}"), format!("+F ack {ack} win {window}")]
            };
            assert_eq!(ack_wide(&mut s, 60_000, unit), shown(60_000, first));
            for n in 0..30 {
                s.data(60_000 + 1000 * n, 1000);
            }
            // The right edge moves on by twice as much.
            assert_eq!(ack_wide(&mut s, 62_000, unit), shown(62_000, first + 2000 / unit));
            assert_eq!(ack_wide(&mut s, 62_000, unit), shown(62_000, first + 2000 / unit));
            assert_eq!(ack_wide(&mut s, 89_000, unit), shown(89_000, first + 29_000 / unit));
            let own = 60_000 / unit;
            assert_eq!(ack_wide(&mut s, 90_000, unit), [format!(">F ack 90000 win {own}")]);
            assert!(s.next_timer().is_empty(), "connected");
        });
    }
}

#[test]
fn the_mobile_s_data_shows_the_same_window() {
    each_full(in_steps(), 1, |mut s| {
        let data = with_payload(with_window(s.mobile(60_000), 60_000), 100);
        let shown = ["x 0:100 ack 60000 win 60000", "+F 0:100 ack 60000 win 30000"];
        assert_eq!(s.mobile_sends(data), shown);
        let old = with_window(s.mobile(59_000), 60_000);
        assert_eq!(s.mobile_sends(old), [">F ack 59000 win 60000"], "it was overtaken");
        let small = with_window(s.mobile(60_000), 20_000);
        assert_eq!(s.mobile_sends(small), [">F ack 60000 win 20000"], "it has no more room");
    });
}

#[test]
fn the_window_is_open_when_nothing_is_acknowledged_for_long() {
    each_full(in_steps(), 1, |mut s| {
        ack_wide(&mut s, 60_000, 1);
        assert_eq!(s.timer(3), ["+F ack 60000 win 60000"]);
        assert!(s.next_timer().is_empty());
        assert_eq!(s.data(60_000, 1000), [">M 60000:61000"]);
        assert_eq!(ack_wide(&mut s, 61_000, 1), [">F ack 61000 win 60000"]);
    });
}

#[test]
fn the_window_is_open_ten_seconds_after_the_release_however_slow_the_flow_is() {
    each_full(in_steps(), 1, |mut s| {
        ack_wide(&mut s, 60_000, 1);
        for n in 1..=9 {
            s.wait(Duration::from_secs(1));
            s.data(60_000 + 10 * (n - 1), 10);
            let shown = ack_wide(&mut s, 60_000 + 10 * n, 1);
            assert!(shown[1].starts_with("+F"), "not all of it: {shown:?}");
        }
        assert_eq!(s.timer(1), ["+F ack 60090 win 60000"]);
        assert!(s.next_timer().is_empty(), "connected");
    });
}

#[test]
fn an_outage_while_the_window_opens_is_one() {
    each_full(in_steps(), 1, |mut s| {
        ack_wide(&mut s, 60_000, 1);
        s.data(60_000, 1000);
        assert_eq!(s.down(), ["+F ack 60000 win 0", "+F ack 61000 win 0"]);
        s.up();
        s.wait(Duration::from_millis(100));
        let first = 10 * 1460;
        let shown = format!("+F ack 61000 win {first}");
        assert_eq!(ack_wide(&mut s, 61_000, 1)[1], shown, "an initial window");
    });
}

#[test]
fn a_window_that_is_no_larger_than_a_step_opens_at_once() {
    with(in_steps(), |mut s| {
        replayed(&mut s);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        assert!(s.next_timer().is_empty());
    });
}
