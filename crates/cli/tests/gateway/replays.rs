//! Downloads over links with short and long queues: no mechanism makes them slower than no gateway
//! does, whatever the replay meets in front of the link.
//!
//! These are some of the cells of the experiment `queues` in `studies/wake`.

use crate::downloads::{Interruption, Path, interrupted};
use crate::outages::Told;
use crate::testbed::{has_congestion_control, possible};
use std::thread;
use std::time::Duration;

/// The downloads with each mechanism, all at once beside one without: they take less time.
fn expect_faster(path: Path) {
    if !possible() || !has_congestion_control("cubic") {
        return;
    }
    let outages = [Duration::from_secs(5)];
    let download = |mechanism| {
        let interruption = Interruption { outages: &outages, told: Told::Soon };
        interrupted("cubic", mechanism, interruption, path)
    };
    let [none, m_tcp_plus, holdover] = thread::scope(|scope| {
        ["none", "m-tcp-plus", "holdover"]
            .map(|mechanism| scope.spawn(move || download(mechanism)))
            .map(|run| run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    for (name, with) in [("M-TCP+", &m_tcp_plus), ("holdover", &holdover)] {
        assert!(with.transfer_time <= none.transfer_time, "{name}: {with:?}, without: {none:?}");
    }
}

// What is replayed is eleven times as much as the queue holds.
#[test]
fn a_replay_in_front_of_a_short_queue_is_no_burst() {
    expect_faster(Path { mbit: 20, delay_ms: 50, queue: 0.1 });
}

#[test]
fn a_replay_in_front_of_a_queue_as_long_as_the_path_leaves_no_gap() {
    expect_faster(Path { mbit: 20, delay_ms: 50, queue: 1.0 });
}

#[test]
fn a_replay_over_a_short_path_with_a_long_queue_is_soon_done() {
    expect_faster(Path { mbit: 20, delay_ms: 10, queue: 4.0 });
}
