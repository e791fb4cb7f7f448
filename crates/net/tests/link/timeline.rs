//! Each rule of a link as a timeline, exact to the nanosecond.

use crate::common::{Fate, PACKET, at_us, link, ms, plain, run, run_until, traced};
use Fate::{Delivered, Lost};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Duration, Instant};
use airtcp_net::config::{
    DelayConfig, Distribution, LinkConfig, LinkRate, LossConfig, LossPlace, OutageConfig,
    OutageMode, QueueConfig, QueueLimit, ReconfigurationConfig, RlcConfig, Schedule, Variation,
};
use airtcp_net::queue::red::RedConfig;
use airtcp_net::table::{Delays, Rates};
use airtcp_net::{Dropped, Link, LinkCounters, LinkStreams, PacketMeta};
use std::sync::Arc;

const ACK: PacketMeta = PacketMeta::new(Bytes(40), false);

#[test]
fn a_lone_packet_takes_transmission_time_plus_delay() {
    let log = run(&mut link(&plain()), &[(at_us(1000), PACKET)]);
    assert_eq!(log, [Delivered(at_us(1000 + 33_280 + 170_000), 0)]);
}

#[test]
fn packets_sent_together_arrive_one_transmission_time_apart() {
    let log = run(&mut link(&plain()), &[(Instant::ZERO, PACKET), (Instant::ZERO, ACK)]);
    assert_eq!(log, [Delivered(at_us(203_280), 0), Delivered(at_us(203_280 + 1_280), 1)]);
}

#[test]
fn an_idle_server_starts_at_the_arrival() {
    let log = run(&mut link(&plain()), &[(Instant::ZERO, PACKET), (at_us(50_000), PACKET)]);
    assert_eq!(log, [Delivered(at_us(203_280), 0), Delivered(at_us(253_280), 1)]);
}

#[test]
fn the_packet_in_service_is_not_in_the_queue() {
    let mut config = plain();
    config.queue = QueueConfig::DropTail { limit: QueueLimit::Packets(2) };
    let mut link = link(&config);
    let results: Vec<_> = (0..5).map(|id| link.send(Instant::ZERO, id, PACKET)).collect();
    assert_eq!(
        results,
        [
            Ok(()),
            Ok(()),
            Ok(()),
            Err(Dropped(3, DropReason::Queue)),
            Err(Dropped(4, DropReason::Queue))
        ]
    );
    assert_eq!(link.queue_len(), 2);
    assert_eq!(link.counters().queue_drops, 2);
    assert_eq!(link.counters().max_queue_packets, 2);
}

#[test]
fn a_departure_makes_room_for_an_arrival_at_the_same_instant() {
    let mut config = plain();
    config.queue = QueueConfig::DropTail { limit: QueueLimit::Packets(1) };
    let mut link = link(&config);
    assert!(link.send(Instant::ZERO, 0, PACKET).is_ok());
    assert!(link.send(Instant::ZERO, 1, PACKET).is_ok());
    assert!(link.send(at_us(33_279), 2, PACKET).is_err());
    assert!(link.send(at_us(33_280), 3, PACKET).is_ok());
}

#[test]
fn a_queue_in_bytes_takes_what_fits() {
    let mut config = plain();
    config.queue = QueueConfig::DropTail { limit: QueueLimit::Bytes(Bytes(1100)) };
    let mut link = link(&config);
    let sizes = [PACKET, PACKET, PACKET, ACK, ACK];
    let accepted: Vec<_> =
        (0..).zip(sizes).map(|(id, meta)| link.send(Instant::ZERO, id, meta).is_ok()).collect();
    assert_eq!(accepted, [true, true, false, true, false]);
    // The second packet goes into service and frees its bytes.
    assert!(link.send(at_us(33_280), 5, PACKET).is_ok());
}

#[test]
fn a_lost_packet_is_reported_when_it_would_have_arrived() {
    let mut config = plain();
    config.loss.model = LossConfig::List(vec![1]);
    let sends = [(Instant::ZERO, PACKET), (Instant::ZERO, ACK), (Instant::ZERO, PACKET)];
    let mut link = link(&config);
    let log = run(&mut link, &sends);
    assert_eq!(
        log,
        [
            Delivered(at_us(203_280), 0),
            Delivered(at_us(204_560), 1),
            Lost(at_us(237_840), 2, DropReason::Loss)
        ]
    );
    let counters = link.counters();
    assert_eq!((counters.packets_sent, counters.loss_drops), (3, 1));
    assert_eq!(counters.bytes_sent, Bytes(2120));
}

#[test]
fn a_loss_in_front_of_the_queue_takes_no_transmission_time() {
    let mut config = plain();
    config.loss.model = LossConfig::List(vec![1]);
    config.loss.place = LossPlace::BeforeQueue;
    let mut link = link(&config);
    let log = run(&mut link, &[(Instant::ZERO, PACKET); 3]);
    assert_eq!(
        log,
        [
            Lost(Instant::ZERO, 1, DropReason::Loss),
            Delivered(at_us(203_280), 0),
            Delivered(at_us(236_560), 2)
        ]
    );
    assert_eq!((link.counters().packets_sent, link.counters().loss_drops), (2, 1));
}

/// The delay spike of Packet Control, scenario III.
fn spike(mode: OutageMode) -> Option<OutageConfig> {
    let schedule = Schedule::Listed(vec![(Instant::from_secs(5), Instant::from_secs(11))]);
    Some(OutageConfig { schedule, mode })
}

#[test]
fn a_hold_releases_the_queue_back_to_back_at_its_end() {
    let mut config = plain();
    config.outage = spike(OutageMode::Hold);
    // Packet 0 is in service when the outage starts and still departs; 1 is due to start during it;
    // 2 arrives during it.
    let sends = [
        (at_us(4_990_000), PACKET),
        (at_us(4_995_000), PACKET),
        (at_us(7_000_000), PACKET),
        (at_us(11_200_000), PACKET),
    ];
    assert_eq!(
        run(&mut link(&config), &sends),
        [
            Delivered(at_us(5_023_280 + 170_000), 0),
            Delivered(at_us(11_033_280 + 170_000), 1),
            Delivered(at_us(11_066_560 + 170_000), 2),
            Delivered(at_us(11_233_280 + 170_000), 3),
        ]
    );
}

#[test]
fn a_hold_starts_with_its_half_open_interval() {
    let mut config = plain();
    config.outage = spike(OutageMode::Hold);
    let sends = [(at_us(5_000_000), PACKET), (at_us(11_100_000), PACKET)];
    assert_eq!(
        run(&mut link(&config), &sends),
        [Delivered(at_us(11_203_280), 0), Delivered(at_us(11_303_280), 1)]
    );
}

#[test]
fn held_packets_count_against_the_queue_limit() {
    let mut config = plain();
    config.outage = spike(OutageMode::Hold);
    config.queue = QueueConfig::DropTail { limit: QueueLimit::Packets(2) };
    let mut link = link(&config);
    let accepted = (0..4).filter(|&id| link.send(at_us(6_000_000), id, PACKET).is_ok()).count();
    assert_eq!((accepted, link.queue_len()), (2, 2));
    // The first held packet starts at the end of the outage.
    assert_eq!(link.next_deadline(), Some(at_us(11_000_000 + 203_280)));
}

#[test]
fn behind_a_hold_without_end_nothing_is_due() {
    let mut config = plain();
    let schedule =
        Schedule::Periodic { origin: Instant::ZERO, period: ms(1), start: ms(0), end: ms(1) };
    config.outage = Some(OutageConfig { schedule, mode: OutageMode::Hold });
    let mut link = link(&config);
    assert!(link.send(at_us(1000), 0, PACKET).is_ok());
    assert_eq!((link.next_deadline(), link.queue_len()), (None, 1));
}

#[test]
fn the_average_of_red_decays_while_the_link_is_idle() {
    let mut config = plain();
    let (min_threshold, max_threshold, max_p) = (2.0, 3.0, 1.0);
    config.queue = QueueConfig::Red(RedConfig {
        min_threshold,
        max_threshold,
        max_p,
        weight: 0.01,
        limit: 100,
        ..RedConfig::default()
    });
    // A trace counts idle time at its mean rate, here 25 packets a second.
    for mut link in [link(&config), link(&traced("40\n", &config))] {
        let accepted = (0..60).filter(|&id| link.send(Instant::ZERO, id, PACKET).is_ok()).count();
        assert!(accepted < 60, "the average is above the thresholds");
        for hour in 1..=20 {
            let now = Instant::from_secs(3600 * hour);
            while link.poll(now).is_some() {}
            assert!(link.send(now, 0, PACKET).is_ok());
        }
    }
}

#[test]
fn packets_propagating_when_an_outage_starts_still_arrive() {
    for mode in [OutageMode::Drop, OutageMode::Hold] {
        let mut config = plain();
        config.outage = spike(mode);
        // Departs at 4.983280 s, in flight at 5 s.
        let log = run(&mut link(&config), &[(at_us(4_950_000), PACKET)]);
        assert_eq!(log, [Delivered(at_us(4_983_280 + 170_000), 0)]);
    }
}

#[test]
fn a_drop_outage_loses_what_is_serialised_in_it() {
    let mut config = plain();
    config.outage = spike(OutageMode::Drop);
    // 0 overlaps the start, 1 lies inside, 2 overlaps the end, 3 starts at the end.
    let sends = [4_990_000, 7_000_000, 10_966_720 + 1, 11_000_000].map(|t| (at_us(t), PACKET));
    let mut link = link(&config);
    let log = run(&mut link, &sends);
    let lost = |us: u64, id| Lost(at_us(us + 203_280), id, DropReason::Outage);
    assert_eq!(
        log,
        [
            lost(4_990_000, 0),
            lost(7_000_000, 1),
            lost(10_966_721, 2),
            Delivered(at_us(11_000_001 + 203_280), 3),
        ]
    );
    assert_eq!(link.counters().outage_drops, 3);
}

fn varying(distribution: Distribution, fifo: bool) -> DelayConfig {
    let variation = Variation { from: at_us(100_000), distribution, fifo };
    DelayConfig { base: ms(170), variation: Some(variation) }
}

#[test]
fn packets_may_overtake_when_the_delay_shrinks() {
    let mut config = plain();
    config.delay = varying(Distribution::Constant(ms(20)), false);
    // 1 departs at 103.28 ms and takes 20 ms; 0 departed at 33.28 ms and takes 170 ms.
    let log = run(&mut link(&config), &[(Instant::ZERO, PACKET), (at_us(70_000), PACKET)]);
    assert_eq!(log, [Delivered(at_us(123_280), 1), Delivered(at_us(203_280), 0)]);
}

#[test]
fn a_rate_may_follow_a_table() {
    let mut config = plain();
    let rates = Rates::read("time (ms),rate (kbit/s)\n0,250\n33.28,0\n100,500\n").unwrap();
    config.rate = LinkRate::Table(Arc::new(rates));
    let log = run(&mut link(&config), &[(Instant::ZERO, PACKET), (Instant::ZERO, PACKET)]);
    // The pause begins as the first one leaves.
    assert_eq!(log, [Delivered(at_us(203_280), 0), Delivered(at_us(286_640), 1)]);
}

#[test]
fn a_rate_may_follow_a_mahimahi_trace() {
    let mut config = plain();
    config = traced("10\n30\n", &config);
    let log = run(&mut link(&config), &[(Instant::ZERO, PACKET), (Instant::ZERO, PACKET)]);
    // The second needs the rest of the first opportunity and some of the second.
    assert_eq!(log, [Delivered(at_us(180_000), 0), Delivered(at_us(200_000), 1)]);
}

#[test]
fn a_delay_may_follow_a_table() {
    let mut config = plain();
    let delays = Delays::read("time (ms),delay (ms)\n0,100\n50,20\n").unwrap();
    config.delay = varying(Distribution::Table(Arc::new(delays)), false);
    config.delay.variation.as_mut().expect("it varies").from = Instant::ZERO;
    let log = run(&mut link(&config), &[(Instant::ZERO, PACKET), (at_us(70_000), PACKET)]);
    assert_eq!(log, [Delivered(at_us(123_280), 1), Delivered(at_us(133_280), 0)]);
}

#[test]
fn in_fifo_order_a_packet_waits_for_its_predecessor() {
    let mut config = plain();
    config.delay = varying(Distribution::Constant(ms(20)), true);
    let log = run(&mut link(&config), &[(Instant::ZERO, PACKET), (at_us(70_000), PACKET)]);
    assert_eq!(log, [Delivered(at_us(203_280), 0), Delivered(at_us(203_280), 1)]);
}

#[test]
fn in_fifo_order_no_deadline_is_before_that_of_the_packet_in_front() {
    let mut config = plain();
    config.delay = varying(Distribution::Constant(ms(20)), true);
    let mut link = link(&config);
    assert!(link.send(Instant::ZERO, 0, PACKET).is_ok());
    assert!(link.send(at_us(70_000), 1, PACKET).is_ok());
    assert_eq!(link.next_deadline(), Some(at_us(203_280)));
    assert!(link.poll(at_us(203_280)).is_some());
    // Its own delay was over earlier.
    assert_eq!(link.next_deadline(), Some(at_us(203_280)));
}

#[test]
fn packets_that_arrive_together_come_out_in_the_order_of_departure() {
    let mut config = plain();
    config.delay = varying(Distribution::Constant(ms(20)), false);
    let empty = PacketMeta::new(Bytes::ZERO, false);
    let log = run(&mut link(&config), &[(at_us(200_000), empty); 6]);
    assert_eq!(log, [0, 1, 2, 3, 4, 5].map(|id| Delivered(at_us(220_000), id)));
}

/// Offers packets at once, with the copies that the link asks for; how often it asked.
fn with_copies(link: &mut Link<u32>, packets: u32) -> Vec<bool> {
    let offer = |id| {
        let copied = link.duplicates();
        for _ in 0..=u8::from(copied) {
            let _ = link.send(at_us(0), id, PACKET);
        }
        copied
    };
    (0..packets).map(offer).collect()
}

#[test]
fn a_copy_follows_its_packet_and_takes_transmission_time() {
    let mut link = link(&LinkConfig { duplicate: 1.0, ..plain() });
    with_copies(&mut link, 2);
    let mut log = Vec::new();
    run_until(&mut link, Instant::MAX, &mut log);
    let arrivals = [(203_280, 0), (236_560, 0), (269_840, 1), (303_120, 1)];
    assert_eq!(log, arrivals.map(|(us, id)| Delivered(at_us(us), id)));
    assert_eq!((link.counters().duplicates, link.counters().packets_sent), (2, 4));
}

#[test]
fn a_copy_finds_the_queue_as_full_as_any_packet() {
    let queue = QueueConfig::DropTail { limit: QueueLimit::Packets(2) };
    let mut link = link(&LinkConfig { duplicate: 1.0, queue, ..plain() });
    with_copies(&mut link, 2);
    // Of four packets one is in service and two wait.
    assert_eq!((link.queue_len(), link.counters().queue_drops), (2, 1));
    assert_eq!(link.counters().duplicates, 2);
}

#[test]
fn copies_are_independent_with_the_given_probability() {
    let n = 100_000;
    let mut link = link(&LinkConfig { duplicate: 0.2, ..plain() });
    let copied = with_copies(&mut link, n);
    let share = |of: usize| of as f64 / f64::from(n);
    // 0.2 of all, 0.04 of the pairs: four standard deviations are 0.0051 and 0.0029.
    let all = share(copied.iter().filter(|copied| **copied).count());
    let pairs = share(copied.windows(2).filter(|pair| pair[0] && pair[1]).count());
    assert!((all - 0.2).abs() < 0.0051 && (pairs - 0.04).abs() < 0.0029, "{all} {pairs}");
}

#[test]
fn copies_draw_from_a_stream_of_their_own() {
    // The losses of the first packets are the same, copied or not.
    let lossy = LinkConfig { loss: LossConfig::Bernoulli { p: 0.5 }.into(), ..plain() };
    let sends = [(at_us(0), PACKET); 20];
    let copying = LinkConfig { duplicate: 0.5, ..lossy.clone() };
    let mut asked = link(&copying);
    (0..20).for_each(|_| _ = asked.duplicates());
    assert_eq!(run(&mut asked, &sends), run(&mut link(&lossy), &sends));
}

#[test]
fn counters_start_at_zero_and_an_idle_link_is_small() {
    assert_eq!(link(&plain()).counters(), LinkCounters::default());
    assert_eq!(link(&plain()).next_deadline(), None);
    // A run may have 20,000 links.
    assert!(size_of::<Link<u32>>() < 400, "{}", size_of::<Link<u32>>());
}

/// A path through satellites: slots end at 12, 27, 42, … s.
fn starlink() -> ReconfigurationConfig {
    ReconfigurationConfig {
        interval: ms(15_000),
        offset: ms(12_000),
        delay: None,
        loss: 0.0,
        interruption: None,
        mode: OutageMode::Drop,
    }
}

#[test]
fn packets_of_a_slot_have_its_delay_in_both_directions() {
    let mut config = plain();
    let delay = Some(Distribution::Uniform { low: ms(20), high: ms(60) });
    config.reconfiguration = Some(Box::new(ReconfigurationConfig { delay, ..starlink() }));
    // Three packets in each of twenty slots.
    let sends: Vec<_> = (0..60).map(|i| (Instant::from_secs(5 * i), PACKET)).collect();
    let delays = |direction: &str| -> Vec<Duration> {
        let streams = LinkStreams::named(1, direction).of_path("path");
        let log = run(&mut Link::new(&config, streams), &sends);
        let fixed = Duration::from_micros(33_280) + config.delay.base;
        log.iter().zip(&sends).map(|(fate, (sent, _))| fate.at().since(*sent) - fixed).collect()
    };
    let up = delays("up");
    assert_eq!(up, delays("down"));
    assert!(up.iter().all(|delay| (ms(20)..ms(60)).contains(delay)));
    // Sent at 0, 5 and 10 s; at 15, 20 and 25 s; …
    assert!(up.chunks(3).all(|slot| slot.iter().all(|delay| *delay == slot[0])));
    assert!(up.chunks(3).zip(up.chunks(3).skip(1)).all(|(one, next)| one != next));
}

#[test]
fn where_the_delay_falls_packets_wait_for_their_predecessors() {
    let mut config = plain();
    let delay = Some(Distribution::Uniform { low: ms(0), high: ms(1000) });
    let slots = ReconfigurationConfig { interval: ms(500), offset: ms(500), delay, ..starlink() };
    config.reconfiguration = Some(Box::new(slots));
    let sends: Vec<_> = (0..200).map(|i| (Instant::ZERO + ms(50 * i), PACKET)).collect();
    let log = run(&mut link(&config), &sends);
    let bunched = log.windows(2).filter(|pair| pair[0].at() == pair[1].at()).count();
    assert!(bunched > 0, "no delay fell");
    let ids: Vec<_> = log.iter().map(|fate| matches!(fate, Delivered(..))).collect();
    assert_eq!(ids, [true; 200]);
    assert!(log.is_sorted_by_key(|fate| match fate {
        Delivered(_, id) | Lost(_, id, _) => *id,
    }));
}

#[test]
fn an_interruption_is_an_outage_at_the_end_of_each_slot() {
    for (mode, second) in [
        (OutageMode::Hold, Delivered(at_us(27_100_000 + 203_280), 1)),
        (OutageMode::Drop, Lost(at_us(27_050_000 + 203_280), 1, DropReason::Outage)),
    ] {
        let mut config = plain();
        let interruption = Some(ms(100));
        let slots = ReconfigurationConfig { interruption, mode, ..starlink() };
        config.reconfiguration = Some(Box::new(slots));
        let sends = [26_900_000, 27_050_000, 27_200_000].map(|us| (at_us(us), PACKET));
        let expected = [
            Delivered(at_us(26_900_000 + 203_280), 0),
            second,
            Delivered(at_us(27_200_000 + 203_280), 2),
        ];
        assert_eq!(run(&mut link(&config), &sends), expected);
    }
}

#[test]
fn where_outages_cover_every_slot_packets_wait_for_ever() {
    let every_10_ms = Schedule::Periodic {
        origin: Instant::ZERO,
        period: ms(10),
        start: Duration::ZERO,
        end: ms(5),
    };
    let mut config = plain();
    config.outage = Some(OutageConfig { schedule: every_10_ms, mode: OutageMode::Hold });
    let sends = [(at_us(1000), PACKET), (at_us(2000), PACKET)];
    assert_eq!(run(&mut link(&traced("10\n", &config)), &sends), []);
    config.rlc = Some(Box::new(RlcConfig { tti: ms(10), ..RlcConfig::default() }));
    assert_eq!(run(&mut link(&config), &sends), []);
    // With slots of another length, some begin while the link is up.
    config.rlc = Some(Box::new(RlcConfig { tti: ms(7), bler: 0.0, ..RlcConfig::default() }));
    assert_eq!(run(&mut link(&config), &sends).len(), 2);
}

#[test]
fn listed_outages_end_however_many_slots_they_cover() {
    let outage = |n: u64| (at_us(10_000 * n), at_us(10_000 * n + 5_000));
    let listed = Schedule::Listed((0..20_000).map(outage).collect());
    let mut config = plain();
    config.outage = Some(OutageConfig { schedule: listed, mode: OutageMode::Hold });
    let log = run(&mut link(&traced("10\n", &config)), &[(at_us(1000), PACKET)]);
    assert_eq!(log, [Delivered(at_us(200_000_000) + ms(170), 0)]);
}
