//! Handovers against times computed by hand. The link serves a packet in 1 ms and has a delay of
//! 10 ms; the handover begins at 100 ms and interrupts for 50 ms.

use crate::common::Fate::{Delivered, Lost};
use crate::common::{Fate, at_us, link, ms, run, run_until, send_until, traced};
use crate::properties::{links, queues, traffic};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_net::config::{
    Cell, DelayConfig, HandoverConfig, HandoverData, HandoverTimes, LinkConfig, OutageMode,
    QueueConfig, QueueLimit, RlcConfig,
};
use airtcp_net::queue::codel::CodelConfig;
use airtcp_net::queue::dualpi2::DualPi2Config;
use airtcp_net::queue::fq_codel::FqCodelConfig;
use airtcp_net::queue::pie::PieConfig;
use airtcp_net::{Dropped, Link, LinkCounters, PacketMeta};
use proptest::prelude::*;

/// 1000 bytes, 1 ms at 8 Mbit/s.
const PACKET: PacketMeta = PacketMeta::new(Bytes(1000), true);

fn forward(forwarding_delay: u64, end_marker: bool) -> HandoverData {
    HandoverData::Forward { forwarding_delay: ms(forwarding_delay), end_marker }
}

fn cell(at: u64) -> Cell {
    Cell { at: Instant::from_millis(at), rate: None, delay: None }
}

fn handovers(cells: Vec<Cell>, data: HandoverData) -> Option<Box<HandoverConfig>> {
    let times = HandoverTimes::Listed(cells);
    Some(Box::new(HandoverConfig { times, interruption: ms(50), data }))
}

fn config(data: HandoverData) -> LinkConfig {
    LinkConfig {
        rate: DataRate::mbps(8).into(),
        delay: DelayConfig { base: ms(10), variation: None },
        handover: handovers(vec![cell(100)], data),
        ..crate::common::plain()
    }
}

/// Sends packets 0, 1, … at these times, in microseconds.
fn fates_on(link: &mut Link<u32>, sends: &[u64]) -> Vec<Fate> {
    let sends: Vec<_> = sends.iter().map(|&us| (at_us(us), PACKET)).collect();
    run(link, &sends)
}

fn fates(config: &LinkConfig, sends: &[u64]) -> Vec<Fate> {
    fates_on(&mut link(config), sends)
}

fn delivered(us: u64, id: u32) -> Fate {
    Delivered(at_us(us), id)
}

fn discarded(us: u64, id: u32) -> Fate {
    Lost(at_us(us), id, DropReason::Handover)
}

/// The third of these is in service when the handover begins.
const BURST: [u64; 5] = [97_500; 5];

#[test]
fn what_the_source_holds_is_forwarded_and_sent_in_the_new_cell() {
    // TS 36.300 §10.1.2.3. The forwarded packets are there before the mobile is.
    let expected = [(108_500, 0), (109_500, 1), (161_000, 2), (162_000, 3), (163_000, 4)];
    assert_eq!(
        fates(&config(forward(10, true)), &BURST),
        expected.map(|(us, id)| delivered(us, id))
    );
}

#[test]
fn what_the_source_holds_is_discarded_and_so_is_what_comes_to_it() {
    let sends = [&BURST[..], &[120_000, 149_999, 150_000]].concat();
    let mut link = link(&config(HandoverData::Discard));
    let expected = [
        discarded(100_000, 2),
        discarded(100_000, 3),
        discarded(100_000, 4),
        delivered(108_500, 0),
        delivered(109_500, 1),
        discarded(120_000, 5),
        discarded(149_999, 6),
        delivered(161_000, 7),
    ];
    assert_eq!(fates_on(&mut link, &sends), expected);
    let LinkCounters { packets_sent, outage_drops, queue_drops, .. } = link.counters();
    assert_eq!((packets_sent, outage_drops, queue_drops), (3, 5, 0));
}

#[test]
fn a_packet_that_has_left_by_then_is_not_interrupted() {
    let expected = [delivered(110_000, 0), delivered(161_000, 1)];
    assert_eq!(fates(&config(forward(0, false)), &[99_000, 99_000]), expected);
}

#[test]
fn data_that_is_forwarded_late_comes_late() {
    // It is at the target 80 ms after the handover began, 30 ms after the mobile.
    let expected = [(108_500, 0), (109_500, 1), (191_000, 2), (192_000, 3), (193_000, 4)];
    assert_eq!(
        fates(&config(forward(80, true)), &BURST),
        expected.map(|(us, id)| delivered(us, id))
    );
}

#[test]
fn data_of_the_new_path_overtakes_what_is_forwarded_unless_it_waits_for_the_end_marker() {
    // Packet 0 comes to the source at 145 ms and to the target at 155 ms. Packet 1 takes the new
    // path. The end marker is at the target at 160 ms (TS 36.300 §10.1.2.2).
    let sends = [145_000, 151_000, 159_000, 163_000];
    let overtaken = [(162_000, 1), (166_000, 0), (170_000, 2), (174_000, 3)];
    assert_eq!(
        fates(&config(forward(10, false)), &sends),
        overtaken.map(|(us, id)| delivered(us, id))
    );
    let in_order = [(166_000, 0), (171_000, 1), (172_000, 2), (174_000, 3)];
    assert_eq!(
        fates(&config(forward(10, true)), &sends),
        in_order.map(|(us, id)| delivered(us, id))
    );
}

#[test]
fn the_target_sends_what_the_source_held_before_all_else() {
    // Packets 0 to 2 are at the target at 160 ms, when packet 3 has been sent, packet 4 is being
    // sent and packet 5 waits.
    let sends = [99_500, 99_500, 99_500, 155_000, 159_500, 159_500];
    let order: Vec<_> = fates(&config(forward(60, false)), &sends)
        .into_iter()
        .map(|fate| match fate {
            Delivered(_, id) => id,
            Lost(..) => unreachable!("{fate:?}"),
        })
        .collect();
    assert_eq!(order, [3, 4, 0, 1, 2, 5]);
}

#[test]
fn what_the_source_held_needs_no_room_in_the_targets_queue() {
    let queue = QueueConfig::DropTail { limit: QueueLimit::Packets(2) };
    let config = LinkConfig { queue, ..config(forward(0, false)) };
    // Packet 0 is being sent, 1 and 2 fill the queue; so do 3 and 4 in the interruption.
    let sends = [99_500, 99_500, 99_500, 110_000, 120_000, 130_000];
    let expected = [
        Lost(at_us(130_000), 5, DropReason::Queue),
        delivered(161_000, 0),
        delivered(162_000, 1),
        delivered(163_000, 2),
        delivered(164_000, 3),
        delivered(165_000, 4),
    ];
    assert_eq!(fates(&config, &sends), expected);
}

#[test]
fn the_mobile_keeps_what_it_has_to_send() {
    for data in [HandoverData::Discard, forward(20, true)] {
        let mut link = link(&config(data)).from_mobile();
        let sends = [99_500, 99_500, 120_000, 151_000];
        let expected = [(161_000, 0), (162_000, 1), (163_000, 2), (164_000, 3)];
        assert_eq!(fates_on(&mut link, &sends), expected.map(|(us, id)| delivered(us, id)));
    }
}

#[test]
fn rate_and_delay_are_those_of_the_cell() {
    let rate = Some(DataRate::mbps(4));
    let cells = vec![
        Cell { rate, delay: Some(ms(2)), ..cell(100) },
        Cell { delay: Some(ms(7)), ..cell(200) },
    ];
    let handover = handovers(cells, forward(0, true));
    let config = LinkConfig { handover, ..config(HandoverData::Discard) };
    let sends = [50_000, 99_500, 160_000, 260_000];
    let expected = [(61_000, 0), (154_000, 1), (164_000, 2), (269_000, 3)];
    assert_eq!(fates(&config, &sends), expected.map(|(us, id)| delivered(us, id)));
    // 100 ms at 8 Mbit/s, 200 ms at 4 Mbit/s.
    assert_eq!(link(&config).capacity(ms(300)), 1_600_000.0);
    assert_eq!(link(&config).capacity(ms(50)), 400_000.0);
}

#[test]
fn handovers_come_at_intervals() {
    let times = HandoverTimes::Periodic { first: Instant::from_millis(30), interval: ms(100) };
    let handover = HandoverConfig { times, interruption: ms(50), data: HandoverData::Discard };
    let config = LinkConfig { handover: Some(Box::new(handover)), ..config(forward(0, true)) };
    let sends = [29_000, 30_000, 79_999, 80_000, 129_000, 130_000, 1_031_000];
    let lost: Vec<_> = fates(&config, &sends)
        .into_iter()
        .filter_map(|fate| match fate {
            Lost(_, id, DropReason::Handover) => Some(id),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [1, 2, 5, 6]);
    let idle = link(&config);
    assert_eq!(idle.next_deadline(), None, "a handover without packets needs no wake-up");
    let down = [29, 30, 79, 80, 130].map(|at| idle.is_down(Instant::from_millis(at)));
    assert_eq!(down, [false, true, true, false, true]);
}

#[test]
fn blocks_that_rlc_has_not_delivered_are_forwarded() {
    // Each block is sent twice, 8 ms apart. Packet 1 leaves in time, and is decoded at 104 ms.
    let rlc = RlcConfig { bler: 1.0, combining: 0.0, ..RlcConfig::default() };
    let config = LinkConfig { rlc: Some(Box::new(rlc)), ..config(forward(0, true)) };
    let expected = [delivered(109_000, 0), delivered(169_000, 1), delivered(170_000, 2)];
    assert_eq!(fates(&config, &[90_000, 95_000, 120_000]), expected);
}

#[test]
fn a_packet_that_waits_for_opportunities_takes_later_ones() {
    // Opportunities every 10 ms; a packet of 3000 B needs two, here 90 and 100 ms.
    let handover = handovers(vec![cell(95)], forward(0, true));
    let config = LinkConfig { handover, ..config(HandoverData::Discard) };
    let mut link = link(&traced("10\n", &config));
    let large = PacketMeta::new(Bytes(2992), true);
    let fates = run(&mut link, &[(at_us(85_000), large), (at_us(86_000), PACKET)]);
    assert_eq!(fates, [delivered(170_000, 0), delivered(180_000, 1)]);
}

#[test]
fn every_discipline_gives_up_all_its_packets() {
    for queue in disciplines() {
        let config = LinkConfig { queue, ..config(HandoverData::Discard) };
        let sends: Vec<_> =
            (0..20).map(|n| (at_us(99_500), PacketMeta { flow: n % 3, ..PACKET })).collect();
        let log = run(&mut link(&config), &sends);
        assert!(log.iter().all(|fate| fate.at() == at_us(100_000)), "{log:?}");
        assert_eq!(log.len(), 20);
    }
}

fn disciplines() -> [QueueConfig; 4] {
    [
        QueueConfig::Codel(CodelConfig::default()),
        QueueConfig::FqCodel(FqCodelConfig::default()),
        QueueConfig::Pie(PieConfig::default()),
        QueueConfig::DualPi2(DualPi2Config::default()),
    ]
}

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    prop_oneof![queues(), (0..4usize).prop_map(|n| disciplines()[n].clone())]
}

fn any_handover() -> impl Strategy<Value = HandoverConfig> {
    let data = prop_oneof![
        Just(HandoverData::Discard),
        (0u64..30, any::<bool>()).prop_map(|(delay, end_marker)| forward(delay, end_marker)),
    ];
    // Finitely many: one in each of a slow packet's transmissions would never let it through.
    let gaps = proptest::collection::vec(1u64..200, 1..5);
    (gaps, 1u64..60, data).prop_map(|(gaps, interruption, data)| {
        let mut at = 0;
        let mut next = |gap| {
            at += gap;
            let cell = cell(at);
            at += interruption + 30;
            cell
        };
        let cells = gaps.into_iter().map(&mut next).collect();
        HandoverConfig { times: HandoverTimes::Listed(cells), interruption: ms(interruption), data }
    })
}

fn with_handovers() -> impl Strategy<Value = LinkConfig> {
    (links(), any_queue(), any_handover()).prop_map(|(config, queue, handover)| LinkConfig {
        queue,
        outage: None,
        handover: Some(Box::new(handover)),
        ..config
    })
}

proptest! {
    #[test]
    fn packets_are_conserved(config in with_handovers(), sends in traffic(), stop in 0u64..600) {
        let mut link = link(&config);
        let (sent, mut log) = send_until(&mut link, &sends, Instant::from_millis(stop));
        prop_assert_eq!(sent, log.len() + link.in_transit());
        run_until(&mut link, Instant::MAX, &mut log);
        prop_assert_eq!((sent, link.in_transit()), (log.len(), 0));
        let lost = log.iter().filter(|fate| matches!(fate, Lost(..))).count() as u64;
        let LinkCounters { queue_drops, loss_drops, policer_drops, outage_drops, .. } =
            link.counters();
        prop_assert_eq!(lost, queue_drops + loss_drops + policer_drops + outage_drops);
    }

    #[test]
    fn a_late_poll_gives_the_same_packets(config in with_handovers(), sends in traffic()) {
        let prompt = run(&mut link(&config), &sends);
        let mut late = link(&config);
        let mut arrivals: Vec<u32> = Vec::new();
        for (id, &(at, meta)) in (0..).zip(&sends) {
            if let Err(Dropped(id, _)) = late.send(at, id, meta) {
                arrivals.push(id);
            }
        }
        let end = Instant::ZERO + Duration::from_secs(3600);
        while let Some(output) = late.poll(end) {
            let (Delivered(_, id) | Lost(_, id, _)) = crate::common::fate(end, output);
            arrivals.push(id);
        }
        let mut prompt: Vec<u32> = prompt
            .iter()
            .map(|&(Delivered(_, id) | Lost(_, id, _))| id)
            .collect();
        prompt.sort_unstable();
        arrivals.sort_unstable();
        prop_assert_eq!(arrivals, prompt);
    }

    #[test]
    fn a_steered_link_never_taken_down_is_an_ordinary_link(
        config in with_handovers(), sends in traffic(),
    ) {
        let steered = run(&mut link(&config).steered(OutageMode::Hold), &sends);
        prop_assert_eq!(steered, run(&mut link(&config), &sends));
    }

    #[test]
    fn forwarding_loses_nothing_and_keeps_the_order(
        handover in any_handover(), sends in traffic(), delay in 0u64..30,
    ) {
        let queue = QueueConfig::DropTail { limit: QueueLimit::Packets(1000) };
        let handover = HandoverConfig { data: forward(delay, true), ..handover };
        let handover = Some(Box::new(handover));
        let config = LinkConfig { queue, handover, ..config(HandoverData::Discard) };
        let mut link = link(&config);
        let order: Vec<_> = run(&mut link, &sends)
            .iter()
            .map(|&(Delivered(_, id) | Lost(_, id, _))| id as usize)
            .collect();
        prop_assert_eq!(order, (0..sends.len()).collect::<Vec<_>>());
        prop_assert_eq!(link.counters().outage_drops, 0);
    }
}
