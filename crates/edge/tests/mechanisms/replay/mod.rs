//! Replays over a link with a queue, which loses and reorders, to a mobile with SACK or without.
//!
//! The rules are scripts in `tests/mechanisms/m_tcp_plus/replay.rs`; here is what they achieve.

mod path;

use airtcp_core::{DataRate, Duration};
use path::{FAST, Outcome, Path, nodes, replay};
use proptest::prelude::*;

/// So much was under way when the link went down: what the path and a queue as long hold.
const UNDER_WAY: u32 = 2_500_000;

/// Replays `bytes` over a path with each node, and checks each outcome.
fn each(path: &Path, bytes: u32, check: impl Fn(&Outcome)) {
    for node in nodes() {
        let outcome = replay(path, node, bytes, 1448);
        assert!(outcome.is_whole, "{path:?} {outcome:?}");
        check(&outcome);
    }
}

#[test]
fn a_replay_fills_the_link_after_some_round_trips() {
    // Slow start from 14 kB to 1.25 MB takes seven round trips, and all of it 0.2 s of the link.
    each(&FAST, UNDER_WAY, |outcome| {
        assert!(outcome.time < Duration::from_millis(1000), "{outcome:?}");
        assert_eq!((outcome.lost, outcome.sent), (0, u64::from(UNDER_WAY)), "{outcome:?}");
    });
}

#[test]
fn a_replay_before_a_short_queue_loses_little_and_no_timer_expires() {
    // A tenth of the path: a burst of all would lose nine tenths.
    let path = Path { queue: 125_000, ..FAST };
    each(&path, UNDER_WAY, |outcome| {
        assert!(outcome.time < Duration::from_millis(2500), "{outcome:?}");
        assert!(outcome.sent < u64::from(UNDER_WAY) * 3 / 2, "{outcome:?}");
    });
}

#[test]
fn several_losses_of_a_window_cost_a_round_trip_and_not_one_each() {
    let clean = replay(&FAST, nodes().into_iter().next().unwrap(), 200_000, 1448).time;
    let path = Path { first_lost: 2..6, ..FAST };
    each(&path, 200_000, |outcome| {
        // The window is halved besides.
        assert!(outcome.time <= clean + FAST.delay * 2 * 4, "{clean} {outcome:?}");
    });
}

#[test]
fn a_lost_tail_costs_two_round_trips_and_no_time_out() {
    let path = Path { first_lost: 6..10, ..FAST };
    each(&path, 14_480, |outcome| {
        assert!(outcome.time < Duration::from_millis(600), "{outcome:?}");
    });
}

// Taken for the round-trip time, it made the tail be probed so soon that everything was sent twice.
#[test]
fn an_answer_to_what_was_sent_before_the_replay_does_not_keep_it_slow() {
    for arrived in [0..3_000, 0..40_000, 10_000..14_000] {
        for queue in [5_000, 20_000, 125_000] {
            let path = Path { arrived: arrived.clone(), queue, ..FAST };
            each(&path, UNDER_WAY / 4, |outcome| {
                assert!(outcome.time < Duration::from_secs(5), "{path:?} {outcome:?}");
            });
        }
    }
}

// Taken for an answer, it had half of all sent in one burst.
#[test]
fn a_mobile_that_says_soon_that_it_has_half_is_not_sent_the_rest_at_once() {
    for (rate, queue) in [(1, 7_500), (20, 150_000), (100, 750_000)] {
        let (rate, delay) = (DataRate::mbps(rate), Duration::from_millis(300));
        let under_way = (queue * 11) as u32;
        let path = Path { rate, delay, queue, arrived: 0..under_way / 2, ..FAST };
        each(&path, under_way, |outcome| {
            assert!(outcome.time < Duration::from_millis(2500), "{path:?} {outcome:?}");
        });
    }
}

// Each loss halves the window, but the path has carried what is missing: additive increase from a
// few segments would take half a minute.
#[test]
fn losses_do_not_keep_a_replay_over_a_long_path_slow() {
    for queue in [150_000, 1_500_000] {
        let (rate, delay) = (DataRate::mbps(20), Duration::from_millis(300));
        let path = Path { rate, delay, queue, loss: 0.01, ..FAST };
        each(&path, 2_000_000, |outcome| {
            assert!(outcome.time < Duration::from_secs(9), "{path:?} {outcome:?}");
        });
    }
}

#[test]
fn copies_of_many_segments_are_sent_as_smoothly() {
    for node in nodes() {
        let outcome = replay(&Path { queue: 125_000, ..FAST }, node, UNDER_WAY, 62_264);
        assert!(outcome.is_whole && outcome.time < Duration::from_millis(2500), "{outcome:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_is_lost_or_reordered_all_arrives(
        seed: u64,
        loss in prop_oneof![Just(0.0), 0.0..0.4],
        jitter in prop_oneof![Just(0u64), 0u64..100],
        queue in 20_000u64..500_000,
        sack: bool,
        bytes in 1u32..400_000,
        copy in prop_oneof![Just(1448u32), 1u32..60_000],
    ) {
        let jitter = Duration::from_millis(jitter);
        let path = Path { queue, jitter, loss, sack, seed, ..FAST };
        for node in nodes() {
            let outcome = replay(&path, node, bytes, copy.max(bytes / 400));
            prop_assert!(outcome.is_whole, "{:?}", outcome);
            // What an event sends: an initial window, or twice what can be acknowledged at once.
            let window = (bytes / 2).clamp(14_600, 65_536);
            let most = u64::from(window).max(2 * outcome.acknowledged_at_once.max(1460));
            prop_assert!(outcome.burst <= most, "{:?}", outcome);
        }
    }
}
