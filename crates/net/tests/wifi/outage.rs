//! A radio that is down neither sends nor hears, and its MAC is unaware of it.

use crate::common::line;
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Duration, Instant};
use airtcp_net::wifi::{Channel, Output, Receiver, StationId, preset};

const A: StationId = StationId(0);
const B: StationId = StationId(1);

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn send(cell: &mut Channel<u32>, at: Instant, from: StationId, to: StationId) {
    cell.send(at, from, Receiver::Station(to), 0, Bytes(1500)).expect("room in the queue");
}

/// Time at which the packet was delivered or given up.
fn run(cell: &mut Channel<u32>, until: Instant) -> Option<(Instant, Result<(), DropReason>)> {
    while let Some(at) = cell.next_deadline().filter(|&at| at <= until) {
        while let Some(output) = cell.poll(at) {
            match output {
                Output::Deliver { .. } => return Some((at, Ok(()))),
                Output::Drop { reason, .. } => return Some((at, Err(reason))),
                Output::Overhear { .. } | Output::LinkFailure { .. } | Output::Mark { .. } => {}
            }
        }
    }
    None
}

/// 802.11 §9.2.5.3: a station out of reach costs all attempts, in either direction.
#[test]
fn to_and_from_a_station_that_is_down_all_attempts_fail() {
    for (from, to) in [(A, B), (B, A)] {
        let mut cell = line(&preset::ieee(), &[(0.0, &[]), (1.0, &[])]);
        cell.set_down(ms(1), B, true);
        send(&mut cell, ms(2), from, to);
        let (_, fate) = run(&mut cell, ms(1000)).expect("given up");
        assert_eq!(fate, Err(DropReason::Retries));
        assert_eq!(cell.counters(from).data_sent, 7);
    }
}

#[test]
fn a_station_that_is_up_again_receives_the_next_attempt() {
    let mut cell = line(&preset::ieee(), &[(0.0, &[]), (1.0, &[])]);
    cell.set_down(ms(1), B, true);
    send(&mut cell, ms(2), A, B);
    assert_eq!(run(&mut cell, ms(5)), None);
    cell.set_down(ms(5), B, false);
    let (at, fate) = run(&mut cell, ms(1000)).expect("an end");
    assert!(fate.is_ok() && at > ms(5), "{at} {fate:?}");
}

/// The data frame lasts from 1000 to 2310 us.
#[test]
fn a_frame_on_the_air_at_a_change_is_lost() {
    for (station, back) in [(A, 1500), (B, 1500), (A, 5000), (B, 5000)] {
        let mut cell = line(&preset::ieee(), &[(0.0, &[]), (0.0, &[])]);
        send(&mut cell, ms(1), A, B);
        assert_eq!(run(&mut cell, ms(1)), None);
        let us = |n| Instant::ZERO + Duration::from_micros(n);
        cell.set_down(us(1400), station, true);
        assert_eq!(run(&mut cell, us(back)), None);
        cell.set_down(us(back), station, false);
        let (at, fate) = run(&mut cell, ms(1000)).expect("an end");
        assert!(fate.is_ok() && at > us(2310), "{station:?} {at} {fate:?}");
        assert!(cell.counters(A).retries >= 1);
    }
}

#[test]
fn a_station_that_went_down_while_the_medium_was_busy_finds_it_free_again() {
    let mut cell = line(&preset::ns2(), &[(0.0, &[]), (0.0, &[])]);
    send(&mut cell, ms(1), A, B);
    assert_eq!(run(&mut cell, ms(1)), None);
    cell.set_down(ms(1), B, true);
    cell.set_down(ms(2), B, false);
    let (_, fate) = run(&mut cell, ms(1000)).expect("an end");
    assert!(fate.is_ok());
    send(&mut cell, ms(2000), B, A);
    let (_, fate) = run(&mut cell, ms(3000)).expect("an end");
    assert!(fate.is_ok());
}
