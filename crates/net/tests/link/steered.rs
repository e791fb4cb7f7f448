//! Links taken down at run time behave as under the same outages in the schedule.

use crate::common::Fate::{Delivered, Lost};
use crate::common::{Fate, PACKET, at_us, link, ms, plain, run, run_until, traced};
use crate::properties::{links, traffic};
use airtcp_core::event::DropReason;
use airtcp_core::{DataRate, Duration, Instant, Stream};
use airtcp_net::config::{LossPlace, OutageConfig, OutageMode, Schedule};
use airtcp_net::{Departure, Dropped, Link, Output, PacketMeta, Passage};
use proptest::prelude::*;

/// As [`run`], with an outage by hand in each interval.
fn run_by_hand(
    link: &mut Link<u32>,
    sends: &[(Instant, PacketMeta)],
    outages: &[(Instant, Instant)],
) -> Vec<Fate> {
    let mut log = Vec::new();
    let mut commands =
        outages.iter().flat_map(|&(down, up)| [(down, true), (up, false)]).peekable();
    let mut command_until = |until: Instant, link: &mut Link<u32>, log: &mut Vec<Fate>| {
        while let Some((at, down)) = commands.next_if(|&(at, _)| at <= until) {
            run_until(link, Instant::from_nanos(at.as_nanos() - 1), log);
            if down {
                link.take_down(at);
            } else {
                link.take_up(at);
            }
        }
    };
    for (id, &(at, meta)) in (0..).zip(sends) {
        command_until(at, link, &mut log);
        run_until(link, at, &mut log);
        if let Err(Dropped(id, reason)) = link.send(at, id, meta) {
            log.push(Fate::Lost(at, id, reason));
        }
    }
    command_until(Instant::MAX, link, &mut log);
    run_until(link, Instant::MAX, &mut log);
    log
}

fn spike() -> [(Instant, Instant); 1] {
    [(at_us(5_000_000), at_us(11_000_000))]
}

#[test]
fn an_outage_by_hand_that_holds_stops_the_queue_too() {
    // Packet 0 is in service when the outage starts and still departs; 1 waits in the queue; 2
    // arrives during the outage.
    let sends = [4_990_000, 4_995_000, 7_000_000, 11_200_000].map(|us| (at_us(us), PACKET));
    let mut link = link(&plain()).steered(OutageMode::Hold);
    assert_eq!(
        run_by_hand(&mut link, &sends, &spike()),
        [
            Delivered(at_us(5_193_280), 0),
            Delivered(at_us(11_203_280), 1),
            Delivered(at_us(11_236_560), 2),
            Delivered(at_us(11_403_280), 3),
        ]
    );
}

#[test]
fn an_outage_by_hand_that_drops_takes_the_packet_in_service_and_what_follows() {
    // Packet 0 propagates, 1 is in service, 2 waits for the server, 3 arrives after the end.
    let sends = [4_960_000, 4_970_000, 4_980_000, 11_000_000].map(|us| (at_us(us), PACKET));
    let mut link = link(&plain()).steered(OutageMode::Drop);
    assert_eq!(
        run_by_hand(&mut link, &sends, &spike()),
        [
            Delivered(at_us(5_163_280), 0),
            Lost(at_us(5_196_560), 1, DropReason::Outage),
            Lost(at_us(5_229_840), 2, DropReason::Outage),
            Delivered(at_us(11_203_280), 3),
        ]
    );
}

#[test]
fn a_link_is_down_by_hand_or_by_schedule() {
    let mut config = plain();
    let schedule = Schedule::Listed(vec![(at_us(10), at_us(20))]);
    config.outage = Some(OutageConfig { schedule, mode: OutageMode::Drop });
    let mut link = link(&config).steered(OutageMode::Drop);
    link.take_down(at_us(5));
    assert!(link.is_down(at_us(6)));
    link.take_up(at_us(15));
    assert!(link.is_down(at_us(15)));
    assert!(!link.is_down(at_us(20)));
}

#[test]
fn a_link_that_is_not_steered_cannot_be_taken_down() {
    let mut link = link(&plain());
    link.take_down(at_us(5));
    assert!(!link.is_down(at_us(6)));
}

#[test]
fn taking_down_or_up_twice_changes_nothing() {
    let mut link = link(&plain()).steered(OutageMode::Hold);
    assert_eq!(link.send(at_us(0), 0, PACKET), Ok(()));
    assert_eq!(link.send(at_us(0), 1, PACKET), Ok(()));
    link.take_up(at_us(10));
    link.take_down(at_us(20));
    link.take_down(at_us(30));
    assert_eq!(link.next_deadline(), Some(at_us(203_280)));
    link.take_up(at_us(100_000));
    link.take_up(at_us(120_000));
    assert_eq!(
        link.poll(at_us(203_280)),
        Some(Output::Deliver(0, Passage { waited: Duration::ZERO, marked: false }))
    );
    assert_eq!(link.next_deadline(), Some(at_us(100_000 + 203_280)));
}

#[test]
fn departures_are_reported_at_their_time_with_the_fate_of_the_packet() {
    let mut link = link(&plain()).steered(OutageMode::Drop);
    link.report_departures();
    assert_eq!(link.send(at_us(0), 0, PACKET), Ok(()));
    assert_eq!(link.send(at_us(10), 1, PACKET), Ok(()));
    let departure = |arrived, at, lost| {
        Some(Departure { arrived: at_us(arrived), at: at_us(at), size: PACKET.size, lost })
    };
    assert_eq!(link.next_departure(at_us(33_279)), None);
    assert_eq!(link.next_departure(at_us(33_280)), departure(0, 33_280, false));
    // The second is in service then.
    link.take_down(at_us(40_000));
    assert_eq!(link.next_departure(at_us(66_560)), departure(10, 66_560, true));
}

fn outages() -> impl Strategy<Value = Vec<(Instant, Instant)>> {
    proptest::collection::vec((1u64..150_000_000, 1u64..150_000_000), 0..4).prop_map(|gaps| {
        let mut at = Instant::ZERO;
        let outage = |(gap, length)| {
            let start = at + Duration::from_nanos(gap);
            at = start + Duration::from_nanos(length);
            (start, at)
        };
        gaps.into_iter().map(outage).collect()
    })
}

proptest! {
    #[test]
    fn an_outage_by_hand_equals_one_in_the_schedule(
        mut config in links(), sends in traffic(), outages in outages(), hold in any::<bool>(),
    ) {
        let mode = if hold { OutageMode::Hold } else { OutageMode::Drop };
        config.outage = None;
        let mut by_hand = link(&config).steered(mode);
        let fates = run_by_hand(&mut by_hand, &sends, &outages);
        config.outage = Some(OutageConfig { schedule: Schedule::Listed(outages), mode });
        let mut by_schedule = link(&config);
        prop_assert_eq!(fates, run(&mut by_schedule, &sends));
        prop_assert_eq!(by_hand.counters(), by_schedule.counters());
    }

    #[test]
    fn the_same_holds_for_a_trace(
        mut config in links(), sends in traffic(), outages in outages(), hold in any::<bool>(),
        millis in proptest::collection::vec(0u64..20, 1..10),
    ) {
        let mode = if hold { OutageMode::Hold } else { OutageMode::Drop };
        let mut at = 0;
        let lines = millis.iter().map(|gap| { at += gap; format!("{at}\n") }).collect::<String>();
        config = traced(&format!("{lines}{}\n", at + 1), &config);
        config.outage = None;
        let mut by_hand = link(&config).steered(mode);
        let fates = run_by_hand(&mut by_hand, &sends, &outages);
        config.outage = Some(OutageConfig { schedule: Schedule::Listed(outages), mode });
        let mut by_schedule = link(&config);
        prop_assert_eq!(fates, run(&mut by_schedule, &sends));
        prop_assert_eq!(by_hand.counters(), by_schedule.counters());
    }

    #[test]
    fn a_steered_link_never_taken_down_is_an_ordinary_link(config in links(), sends in traffic()) {
        let steered = run(&mut link(&config).steered(OutageMode::Hold), &sends);
        prop_assert_eq!(steered, run(&mut link(&config), &sends));
    }

    #[test]
    fn every_packet_that_is_sent_has_departed(mut config in links(), sends in traffic()) {
        if config.loss.place == LossPlace::BeforeQueue {
            // The counter does not tell losses in front of the queue from those of a cellular link.
            config.rlc = None;
        }
        let mut link = link(&config).steered(OutageMode::Hold);
        link.report_departures();
        run(&mut link, &sends);
        let end = Instant::from_nanos(Instant::MAX.as_nanos() - 1);
        let departures: Vec<Departure> = std::iter::from_fn(|| link.next_departure(end)).collect();
        prop_assert!(departures.is_sorted_by_key(|departure| departure.at));
        prop_assert!(departures.iter().all(|departure| departure.arrived <= departure.at));
        let bytes = departures.iter().map(|departure| departure.size.get()).sum::<u64>();
        let counters = link.counters();
        prop_assert_eq!(
            (departures.len() as u64, bytes), (counters.packets_sent, counters.bytes_sent.get())
        );
        let lost = departures.iter().filter(|departure| departure.lost).count() as u64;
        let in_front = if config.loss.place == LossPlace::Medium { 0 } else { counters.loss_drops };
        prop_assert_eq!(lost, counters.loss_drops + counters.outage_drops - in_front);
    }

    #[test]
    fn services_start_in_order_once_for_each_packet_whenever_they_are_decided(
        config in links(), sends in traffic()
    ) {
        let [at_once, later] = [link(&config), link(&config).steered(OutageMode::Hold)].map(|it| {
            let mut link = it;
            link.report_service_starts();
            run(&mut link, &sends);
            let starts: Vec<_> = std::iter::from_fn(|| link.next_service_start()).collect();
            // Behind an outage without end there is no service.
            starts.into_iter().filter(|start| start.at < Instant::MAX).collect::<Vec<_>>()
        });
        prop_assert!(at_once.is_sorted_by_key(|start| start.at));
        prop_assert_eq!(&at_once, &later);
        let mut link = link(&config);
        run(&mut link, &sends);
        prop_assert_eq!(at_once.len() as u64, link.counters().packets_sent);
    }
}

#[test]
fn a_hold_by_hand_without_end_has_no_deadline() {
    let mut link = link(&plain()).steered(OutageMode::Hold);
    link.take_down(at_us(1));
    assert_eq!(link.send(at_us(2), 0, PACKET), Ok(()));
    assert_eq!((link.next_deadline(), link.in_transit()), (None, 1));
    link.take_up(at_us(2) + ms(1));
    assert_eq!(link.next_deadline(), Some(at_us(1_002)));
}

#[test]
fn a_change_of_the_rate_counts_from_the_next_packet_on() {
    // 1040 bytes take 33.28 ms at 250 kbit/s.
    let mut link = link(&plain()).steered(OutageMode::Drop);
    for id in 0..3 {
        link.send(Instant::ZERO, id, PACKET).unwrap();
    }
    link.set_rate(at_us(10_000), DataRate::kbps(500));
    let mut log = Vec::new();
    run_until(&mut link, Instant::MAX, &mut log);
    let arrivals = [203_280, 219_920, 236_560];
    let expected = arrivals.into_iter().zip(0..).map(|(us, id)| Delivered(at_us(us), id));
    assert_eq!(log, expected.collect::<Vec<_>>());
}

#[test]
fn a_trace_gives_way_to_a_rate() {
    let mut link = link(&traced("1000\n", &plain())).steered(OutageMode::Drop);
    link.set_rate(at_us(10_000), DataRate::kbps(250));
    link.send(at_us(20_000), 0, PACKET).unwrap();
    let mut log = Vec::new();
    run_until(&mut link, Instant::MAX, &mut log);
    assert_eq!(log, [Delivered(at_us(223_280), 0)]);
}

#[test]
fn a_shorter_delay_lets_no_packet_overtake() {
    let mut link = link(&plain()).steered(OutageMode::Drop);
    for id in 0..2 {
        link.send(Instant::ZERO, id, PACKET).unwrap();
    }
    link.set_delay(at_us(10_000), ms(20));
    link.send(at_us(300_000), 2, PACKET).unwrap();
    let mut log = Vec::new();
    run_until(&mut link, Instant::MAX, &mut log);
    let arrivals = [203_280, 203_280, 353_280];
    let expected = arrivals.into_iter().zip(0..).map(|(us, id)| Delivered(at_us(us), id));
    assert_eq!(log, expected.collect::<Vec<_>>());
}

#[test]
fn copies_by_hand_begin_and_end() {
    let mut link = link(&plain()).steered(OutageMode::Drop);
    let copied = [0.0, 1.0, 0.0].map(|p| {
        link.set_duplicate(p, Stream::new(1, "link/test/duplicate/0"));
        link.duplicates()
    });
    assert_eq!(copied, [false, true, false]);
}

#[test]
fn losses_by_hand_begin_and_end() {
    let mut link = link(&plain()).steered(OutageMode::Drop);
    let stream = |name| Stream::new(1, name);
    let mut log = Vec::new();
    for (id, p) in [1.0, 0.0].into_iter().enumerate() {
        let at = at_us(100_000 * id as u64);
        link.set_loss(at, p, stream("link/test/loss/0"));
        link.send(at, id as u32, PACKET).unwrap();
        run_until(&mut link, at + ms(99), &mut log);
    }
    run_until(&mut link, Instant::MAX, &mut log);
    assert!(matches!(log[..], [Lost(_, 0, DropReason::Loss), Delivered(_, 1)]), "{log:?}");
}
