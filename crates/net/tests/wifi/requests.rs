//! What routing needs from a channel: overhearing, urgent packets, packets taken back, and moving
//! stations.

use crate::common::{dsss, line, play};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Duration, Instant};
use airtcp_net::config::QueueLimit;
use airtcp_net::mobility::{Mobility, Path};
use airtcp_net::wifi::{Channel, ChannelConfig, Output, Position, Receiver, StationId, preset};

const A: StationId = StationId(0);
const B: StationId = StationId(1);
const C: StationId = StationId(2);

/// 802.11 at 1 Mbit/s, no LLC: a packet of 100 B takes 1216 us, an ACK 304.
fn basic() -> ChannelConfig {
    let mut config = preset::ieee();
    dsss(&mut config).data_rate = dsss(&mut config).broadcast_rate;
    dsss(&mut config).control_rate = dsss(&mut config).broadcast_rate;
    config.mac.llc = Bytes::ZERO;
    config
}

fn outputs(channel: &mut Channel<u32>, until: Instant) -> Vec<(Instant, Output<u32>)> {
    let mut outputs = Vec::new();
    while let Some(at) = channel.next_deadline().filter(|&at| at <= until) {
        outputs.extend(std::iter::from_fn(|| channel.poll(at)).map(|output| (at, output)));
    }
    outputs
}

// Overhearing.

#[test]
fn a_station_that_asks_for_it_overhears_and_the_last_copy_says_so() {
    // C, further away than B, gets the last copy: B's comes out when C has it, 334 ns later.
    let mut cell = line(&basic(), &[(0.0, &[]), (100.0, &[]), (200.0, &[])]);
    cell.set_overhearing(C, true);
    play(
        &mut cell,
        "0        send A>B 100
         0        A>B DATA
         1216.668 B got 0, more to come
         1216.668 C overheard 0
         1226.334 B>A ACK",
    );
}

#[test]
fn a_station_can_stop_overhearing() {
    let mut cell = line(&basic(), &[(0.0, &[]), (0.0, &[]), (0.0, &[])]);
    cell.set_overhearing(C, true);
    cell.set_overhearing(C, false);
    play(&mut cell, "0 send A>B 100\n0 A>B DATA\n1216 B got 0\n1226 B>A ACK");
}

#[test]
fn what_is_overheard_but_not_delivered_stays_with_its_sender() {
    // B is out of range of A, C is in range. Both attempts are overheard; neither copy is the last.
    let mut config = basic();
    config.mac.short_retry_limit = 2;
    let mut cell = line(&config, &[(0.0, &[]), (2000.0, &[]), (0.0, &[])]);
    cell.set_overhearing(C, true);
    cell.send(Instant::ZERO, A, Receiver::Station(B), 7, Bytes(100)).expect("room");
    let what: Vec<_> =
        outputs(&mut cell, Instant::from_secs(1)).into_iter().map(|(_, output)| output).collect();
    let overheard = Output::Overhear { station: C, from: A, to: B, packet: 7, last: false };
    let drop = Output::Drop { station: A, packet: 7, reason: DropReason::Retries };
    let failure = Output::LinkFailure { station: A, to: B };
    assert_eq!(what, [overheard, overheard, drop, failure]);
}

#[test]
fn a_packet_that_has_arrived_is_not_overheard_again() {
    // Half of the ACKs are lost. A packet handed over for good must not come out again when it is
    // retried.
    let mut config = basic();
    config.radio.bit_error_rate = 3e-3;
    config.mac.queue = QueueLimit::Packets(1000);
    let mut cell = line(&config, &[(0.0, &[]), (0.0, &[]), (0.0, &[])]);
    cell.set_overhearing(C, true);
    for packet in 0..500 {
        cell.send(Instant::ZERO, A, Receiver::Station(B), packet, Bytes(1)).expect("room");
    }
    let mut over = std::collections::BTreeSet::new();
    let mut overheard = 0;
    for (_, output) in outputs(&mut cell, Instant::from_secs(100)) {
        match output {
            Output::Deliver { packet, last, .. } | Output::Overhear { packet, last, .. } => {
                assert!(!over.contains(&packet), "{packet} comes out again");
                overheard += u32::from(matches!(output, Output::Overhear { .. }));
                assert!(!last || over.insert(packet));
            }
            Output::Drop { packet, .. } => assert!(over.insert(packet), "{packet} ends twice"),
            Output::LinkFailure { .. } | Output::Mark { .. } => {}
        }
    }
    cell.catch_up(Instant::from_secs(100));
    assert!(cell.counters(B).duplicates > 50 && overheard > 100, "{overheard}");
    assert_eq!(over.len(), 500);
}

// The queue.

/// ns-2, `queue/priqueue.cc`: packets of routing protocols go to the head.
#[test]
fn an_urgent_packet_goes_before_those_that_wait() {
    let mut cell = line(&basic(), &[(0.0, &[]), (0.0, &[])]);
    let send = [(0, false), (1, false), (2, true), (3, true)];
    for (packet, urgent) in send {
        let to = Receiver::Station(B);
        let sent = match urgent {
            true => cell.send_urgent(Instant::ZERO, A, to, packet, Bytes(100)),
            false => cell.send(Instant::ZERO, A, to, packet, Bytes(100)),
        };
        sent.expect("room");
    }
    let order: Vec<_> = outputs(&mut cell, Instant::from_secs(1))
        .into_iter()
        .filter_map(|(_, output)| match output {
            Output::Deliver { packet, .. } => Some(packet),
            _ => None,
        })
        .collect();
    // Packet 0 is in the MAC already.
    assert_eq!(order, [0, 3, 2, 1]);
}

#[test]
fn a_packet_tells_how_long_it_waited_for_those_before_it() {
    let mut cell = line(&basic(), &[(0.0, &[]), (0.0, &[])]);
    for packet in 0..3 {
        cell.send(Instant::ZERO, A, Receiver::Station(B), packet, Bytes(100)).expect("room");
    }
    let delivered: Vec<_> = outputs(&mut cell, Instant::from_secs(1))
        .into_iter()
        .filter_map(|(at, output)| match output {
            Output::Deliver { waited, .. } => Some((at.since(Instant::ZERO), waited)),
            _ => None,
        })
        .collect();
    let [(first, none), (second, one), (_, two)] = delivered[..] else { panic!("{delivered:?}") };
    assert_eq!(none, Duration::ZERO);
    // Until the sender has the ACK of the one before.
    let ack = one - first;
    assert!(!ack.is_zero() && ack < Duration::from_millis(1), "{ack}");
    assert_eq!(two, second + ack);
}

#[test]
fn an_urgent_packet_pushes_the_last_out_of_a_full_queue() {
    for (limit, size) in [(QueueLimit::Packets(2), 100), (QueueLimit::Bytes(Bytes(200)), 100)] {
        let mut config = basic();
        config.mac.queue = limit;
        let mut cell = line(&config, &[(0.0, &[]), (0.0, &[])]);
        for packet in 0..3 {
            cell.send(Instant::ZERO, A, Receiver::Station(B), packet, Bytes(size)).expect("room");
        }
        cell.send_urgent(Instant::ZERO, A, Receiver::Station(B), 3, Bytes(size)).expect("urgent");
        assert_eq!(cell.next_deadline(), Some(Instant::ZERO));
        let dropped = Output::Drop { station: A, packet: 2, reason: DropReason::Queue };
        assert_eq!(cell.poll(Instant::ZERO), Some(dropped));
        assert_eq!((cell.queue_len(A), cell.counters(A).queue_drops), (2, 1));
    }
}

#[test]
fn an_urgent_packet_that_does_not_fit_alone_is_refused() {
    let mut config = basic();
    config.mac.queue = QueueLimit::Bytes(Bytes(50));
    let mut cell = line(&config, &[(0.0, &[]), (0.0, &[])]);
    cell.send(Instant::ZERO, A, Receiver::Station(B), 0, Bytes(100)).expect("into the MAC");
    cell.send(Instant::ZERO, A, Receiver::Station(B), 1, Bytes(50)).expect("room");
    let refused = cell.send_urgent(Instant::ZERO, A, Receiver::Station(B), 2, Bytes(100));
    assert_eq!(refused.expect_err("too large").0, 2);
    assert_eq!((cell.queue_len(A), cell.poll(Instant::ZERO)), (1, None));
}

#[test]
fn packets_for_a_failed_neighbour_are_taken_back_in_their_order() {
    let mut config = basic();
    config.mac.queue = QueueLimit::Bytes(Bytes(400));
    config.mac.short_retry_limit = 1;
    let mut cell = line(&config, &[(0.0, &[]), (2000.0, &[]), (0.0, &[])]);
    for (packet, to) in [(0, B), (1, B), (2, C), (3, B)] {
        cell.send(Instant::ZERO, A, Receiver::Station(to), packet, Bytes(100)).expect("room");
    }
    let (mut at, mut taken) = (Instant::ZERO, Vec::new());
    while !matches!(cell.poll(at), Some(Output::LinkFailure { .. })) {
        at = cell.next_deadline().unwrap_or(at);
    }
    cell.take_back(A, B, &mut taken);
    assert_eq!((taken, cell.queue_len(A)), (vec![1, 3], 1));
    // Their bytes are free again.
    cell.send(at, A, Receiver::Station(C), 4, Bytes(300)).expect("room");
}

/// The order in which A's packets arrive: one for the neighbour that is given up, one for another,
/// and what routing then sends.
fn order_after_a_failure(next_before_report: bool) -> Vec<u32> {
    let mut config = basic();
    config.mac.short_retry_limit = 1;
    config.mac.next_before_report = next_before_report;
    let mut cell = line(&config, &[(0.0, &[]), (2000.0, &[]), (0.0, &[])]);
    for (packet, to) in [(0, B), (1, B), (2, C)] {
        cell.send(Instant::ZERO, A, Receiver::Station(to), packet, Bytes(100)).expect("room");
    }
    let mut at = Instant::ZERO;
    while !matches!(cell.poll(at), Some(Output::LinkFailure { .. })) {
        at = cell.next_deadline().unwrap_or(at);
    }
    cell.take_back(A, B, &mut Vec::new());
    cell.send_urgent(at, A, Receiver::Broadcast, 3, Bytes(50)).expect("room");
    let delivered = |(_, output)| match output {
        Output::Deliver { packet, .. } => Some(packet),
        _ => None,
    };
    let outputs = outputs(&mut cell, at + Duration::from_millis(100));
    outputs.into_iter().filter_map(delivered).collect()
}

#[test]
fn what_routing_sends_about_a_failed_neighbour_is_first() {
    assert_eq!(order_after_a_failure(false), [3, 2]);
}

/// As in ns-2, whose packets reach the queue 25 us (LL `delay_`) after routing has sent them.
#[test]
fn the_next_packet_for_another_neighbour_may_be_first() {
    assert_eq!(order_after_a_failure(true), [2, 3]);
}

// Movement.

/// Milliseconds and metres.
pub(crate) fn walk(waypoints: &[(u64, f64)]) -> Mobility {
    let waypoint = |&(ms, x): &(u64, f64)| (Instant::from_millis(ms), Position { x, y: 0.0 });
    Mobility::Path(Path::new(waypoints.iter().map(waypoint).collect()).expect("a path"))
}

/// Fates of packets sent to B every 100 ms: true if delivered, false if given up.
fn pings(cell: &mut Channel<u32>, count: u64) -> Vec<(u32, bool)> {
    let mut fates = Vec::new();
    for packet in 0..count {
        let at = Instant::from_millis(100 * packet);
        cell.send(at, A, Receiver::Station(B), packet as u32, Bytes(100)).expect("room");
        for (_, output) in outputs(cell, at + Duration::from_millis(99)) {
            match output {
                Output::Deliver { packet, .. } => fates.push((packet, true)),
                Output::Drop { packet, .. } => fates.push((packet, false)),
                _ => {}
            }
        }
    }
    fates
}

#[test]
fn a_station_is_heard_where_it_is_when_the_frame_is_sent() {
    // At 100 m/s from 205 m: B passes 250 m, the range of the classic radio, after 450 ms, and
    // comes back.
    let mut config = preset::ns2();
    config.mac.short_retry_limit = 2;
    let mut cell = line(&config, &[(0.0, &[]), (205.0, &[])]);
    cell.set_mobility(Instant::ZERO, B, walk(&[(0, 205.0), (1000, 305.0), (2000, 205.0)]));
    let heard = |packet: u32| !(5..=15).contains(&packet);
    let expected: Vec<_> = (0..20).map(|packet| (packet, heard(packet))).collect();
    assert_eq!(pings(&mut cell, 20), expected);
    assert!(cell.reachable(A, B) && cell.in_range_of(A).eq([B]));
}

#[test]
fn the_delay_of_a_frame_is_that_of_the_place_where_it_was_sent() {
    // 299.792 m take a microsecond; with ten times the power the radio reaches that far.
    let mut config = basic();
    config.radio.tx_power = airtcp_net::wifi::Power::from_watts(2.8);
    let mut cell = line(&config, &[(0.0, &[]), (0.0, &[])]);
    cell.set_mobility(Instant::ZERO, B, walk(&[(0, 0.0), (1000, 299.792_458)]));
    cell.send(Instant::from_secs(1), A, Receiver::Station(B), 0, Bytes(100)).expect("room");
    let delivered = outputs(&mut cell, Instant::from_secs(2))[0];
    let after = Duration::from_micros(1216 + 1);
    assert_eq!(delivered.0, Instant::from_secs(1) + after);
}

#[test]
fn a_station_that_has_come_to_rest_is_a_neighbour_of_those_that_never_moved() {
    // A stands still, so its neighbours are cached; the cache must be updated.
    let mut cell = line(&preset::ns2(), &[(0.0, &[]), (9000.0, &[]), (10.0, &[])]);
    let heard = |cell: &mut Channel<u32>, ms| {
        let at = Instant::from_millis(ms);
        cell.send(at, A, Receiver::Broadcast, 0, Bytes(100)).expect("room");
        let until = at + Duration::from_millis(50);
        let of = |(_, output)| match output {
            Output::Deliver { station, .. } => Some(station),
            _ => None,
        };
        outputs(cell, until).into_iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(heard(&mut cell, 0), [C]);
    cell.set_mobility(Instant::from_millis(100), B, walk(&[(100, 9000.0), (200, 20.0)]));
    assert_eq!(heard(&mut cell, 300), [C, B]);
    cell.set_mobility(Instant::from_millis(400), B, walk(&[(400, 20.0), (500, 9000.0)]));
    assert_eq!(heard(&mut cell, 600), [C]);
}
