//! What all disciplines have in common, by properties; and each one's rules.

use super::codel::{CeThresholdFor, CodelConfig, Control, Rules};
use super::dualpi2::DualPi2Config;
use super::fq_codel::FqCodelConfig;
use super::pie::PieConfig;
use super::red::RedConfig;
use super::*;
use crate::config::QueueLimit;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn meta(size: u64, flow: u32, ecn: Ecn) -> PacketMeta {
    PacketMeta { flow, ecn, ..PacketMeta::new(Bytes(size), true) }
}

fn queue(config: &QueueConfig) -> Queue<u32> {
    Queue::new(config, Stream::new(3, "link/test/red"))
}

/// All disciplines, with a limit of so many packets.
fn disciplines(limit: u64) -> Vec<QueueConfig> {
    vec![
        QueueConfig::DropTail { limit: QueueLimit::Packets(limit) },
        QueueConfig::Red(RedConfig { limit, ecn: true, weight: 0.1, ..RedConfig::default() }),
        QueueConfig::Codel(CodelConfig { limit, ecn: true, ..CodelConfig::default() }),
        QueueConfig::FqCodel(FqCodelConfig { limit, flows: 8, ..FqCodelConfig::default() }),
        QueueConfig::Pie(PieConfig { limit, ecn: true, ..PieConfig::default() }),
        QueueConfig::DualPi2(DualPi2Config { limit, ..DualPi2Config::default() }),
    ]
}

/// Fates of packets 0, 1, …
#[derive(Debug, Default, PartialEq)]
struct Log {
    served: Vec<(u32, bool)>,
    dropped: Vec<u32>,
    longest: usize,
    left: usize,
}

/// Offers a packet to the queue after each gap (in 0.1 ms), and serves one each `service`.
fn drive(config: &QueueConfig, packets: &[(u64, PacketMeta)], service: u64) -> Log {
    let mut queue = queue(config);
    let mut log = Log::default();
    let (mut now, mut free) = (0, 0);
    let tenth = |n: u64| Instant::ZERO + Duration::from_micros(100 * n);
    let mut dropped = Vec::new();
    for (id, &(gap, meta)) in (0..).zip(packets) {
        now += gap;
        while free < now {
            let next = queue.dequeue(tenth(free), &mut dropped);
            log.served.extend(next.map(|packet| (packet.item, packet.marked)));
            free += service;
        }
        let packet = Waiting::new(tenth(now), id, meta);
        if let Err(refused) = queue.enqueue(packet, Server::default(), &mut dropped) {
            log.dropped.push(refused.item);
        }
        log.dropped.extend(dropped.drain(..).map(|packet| packet.item));
        log.longest = log.longest.max(queue.len());
    }
    log.left = queue.len();
    log
}

fn traffic() -> impl Strategy<Value = Vec<(u64, PacketMeta)>> {
    let packet = (0u64..30, 40u64..1500, 0u32..5, 0u8..4)
        .prop_map(|(gap, size, flow, ecn)| (gap, meta(size, flow, Ecn::from_bits(ecn))));
    proptest::collection::vec(packet, 1..400)
}

proptest! {
    #[test]
    fn no_packet_is_lost_twice_or_served_twice(packets in traffic(), service in 5u64..40) {
        for config in disciplines(20) {
            let log = drive(&config, &packets, service);
            let mut all: Vec<u32> = log.served.iter().map(|(id, _)| *id).collect();
            all.extend(&log.dropped);
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), log.served.len() + log.dropped.len());
            prop_assert_eq!(all.len() + log.left, packets.len());
            prop_assert!(log.longest <= 20, "{} in {}", log.longest, config.word());
        }
    }

    #[test]
    fn the_packets_of_a_flow_keep_their_order(packets in traffic(), service in 5u64..40) {
        for config in disciplines(50) {
            let mut latest = BTreeMap::new();
            for (id, _) in drive(&config, &packets, service).served {
                // DualPI2 keeps L4S and classic packets apart.
                let PacketMeta { flow, ecn, .. } = packets[id as usize].1;
                let l4s = matches!(ecn, Ecn::Ect1 | Ecn::Ce);
                prop_assert!(latest.insert((flow, l4s), id).is_none_or(|before| before < id));
            }
        }
    }

    #[test]
    fn the_same_packets_meet_the_same_fate(packets in traffic(), service in 5u64..40) {
        for config in disciplines(20) {
            prop_assert_eq!(drive(&config, &packets, service), drive(&config, &packets, service));
        }
    }

    #[test]
    fn only_capable_packets_are_marked(packets in traffic(), service in 5u64..40) {
        // RFC 3168 §5.
        for config in disciplines(50) {
            for (id, marked) in drive(&config, &packets, service).served {
                prop_assert!(!marked || packets[id as usize].1.ecn.is_capable());
            }
        }
    }
}

const RULES: Rules = Rules {
    target: Duration::from_millis(5),
    interval: Duration::from_millis(100),
    ecn: false,
    ce_threshold: None,
};

/// The times, ms, of the first drops of CoDel at a queue whose packets have all waited 50 ms.
fn codel_drops(rules: &Rules, count: usize) -> Vec<f64> {
    let mut control = Control::default();
    let mut drops = Vec::new();
    for tenth in 0.. {
        let now = ms(1000) + Duration::from_micros(100 * tenth);
        let offered = Instant::from_nanos(now.as_nanos() - 50_000_000);
        let pop = || Some((Waiting::new(offered, 0, meta(1000, 0, Ecn::Ect0)), Bytes(50_000)));
        let mut dropped = Vec::new();
        let served = control.dequeue(now, rules, Bytes(1000), pop, &mut dropped);
        let signals = dropped.len() + usize::from(served.is_some_and(|packet| packet.marked));
        drops.extend(std::iter::repeat_n(tenth as f64 / 10.0, signals));
        if drops.len() >= count {
            break;
        }
    }
    drops
}

#[test]
fn codel_drops_at_interval_over_the_square_root_of_the_count() {
    // RFC 8289 §5.4: the first drop after an interval; the n-th drop follows at the sum of
    // interval / sqrt(k) for k below n, where Linux takes a step of Newton's method for each root.
    // Both are asked every 0.1 ms.
    let (mut expected, mut root) = (vec![100.0], 1.0);
    for k in 1..20 {
        let count = k as f64;
        root *= (3.0 - count * root * root) / 2.0;
        let off = root * count.sqrt();
        assert!(k == 2 || (0.97..=1.0).contains(&off), "{k}: {off}");
        expected.push(expected[k - 1] + 100.0 * root);
    }
    let drops = codel_drops(&RULES, 20);
    for (drop, expected) in drops.iter().zip(&expected) {
        assert!((0.0..=0.2).contains(&(drop - expected)), "{drop} ms for {expected} ms");
    }
}

#[test]
fn codel_marks_by_the_same_law() {
    // RFC 8289 §5.4, RFC 3168 §5.
    let marks = codel_drops(&Rules { ecn: true, ..RULES }, 20);
    assert_eq!(marks, codel_drops(&RULES, 20));
}

#[test]
fn codel_leaves_a_queue_alone_that_is_short_in_time_or_in_bytes() {
    // RFC 8289 §5.6: below the target, or not more than an MTU.
    for (waited, left) in [(4, 50_000), (50, 1000)] {
        let mut control = Control::default();
        for step in 0..1000 {
            let now = ms(1000 + step);
            let offered = ms(1000 + step - waited);
            let pop = || Some((Waiting::new(offered, 0, meta(1000, 0, Ecn::NotEct)), Bytes(left)));
            let mut dropped = Vec::new();
            control.dequeue(now, &RULES, Bytes(1000), pop, &mut dropped);
            assert!(dropped.is_empty());
        }
    }
}

#[test]
fn codel_marks_what_waits_longer_than_the_ce_threshold() {
    let ce_threshold = Some(Duration::from_millis(1));
    let mut queue = queue(&QueueConfig::Codel(CodelConfig { ce_threshold, ..Default::default() }));
    let mut marked = |waited: u64| {
        let packet = Waiting::new(ms(0), 0, meta(1000, 0, Ecn::Ect0));
        queue.enqueue(packet, Server::default(), &mut Vec::new()).expect("room");
        queue.dequeue(ms(waited), &mut Vec::new()).expect("a packet").marked
    };
    assert_eq!((marked(1), marked(2)), (false, true));
}

fn offer(queue: &mut Queue<u32>, at: Instant, id: u32, meta: PacketMeta) -> Vec<u32> {
    let mut dropped = Vec::new();
    if let Err(refused) = queue.enqueue(Waiting::new(at, id, meta), Server::default(), &mut dropped)
    {
        dropped.push(refused);
    }
    dropped.into_iter().map(|packet| packet.item).collect()
}

fn serve(queue: &mut Queue<u32>, at: Instant) -> Option<u32> {
    queue.dequeue(at, &mut Vec::new()).map(|packet| packet.item)
}

#[test]
fn fq_codel_serves_a_sparse_flow_first() {
    // RFC 8290 §4.2: a queue that becomes active is new, and new queues are served first.
    let mut queue = queue(&QueueConfig::FqCodel(FqCodelConfig::default()));
    for id in 0..10 {
        offer(&mut queue, ms(0), id, meta(1500, 1, Ecn::NotEct));
    }
    assert_eq!(serve(&mut queue, ms(1)), Some(0));
    assert_eq!(serve(&mut queue, ms(2)), Some(1));
    offer(&mut queue, ms(2), 100, meta(100, 2, Ecn::NotEct));
    assert_eq!(serve(&mut queue, ms(3)), Some(100));
    assert_eq!(serve(&mut queue, ms(4)), Some(2));
}

#[test]
fn fq_codel_shares_bytes_not_packets() {
    // RFC 8290 §4.2: deficit round robin by quantum, in bytes.
    let mut queue = queue(&QueueConfig::FqCodel(FqCodelConfig::default()));
    for id in 0..300 {
        offer(&mut queue, ms(0), id, meta(1500, 1, Ecn::NotEct));
        for _ in 0..3 {
            offer(&mut queue, ms(0), id, meta(500, 2, Ecn::NotEct));
        }
    }
    let mut bytes = BTreeMap::new();
    for _ in 0..400 {
        let packet = queue.dequeue(ms(1), &mut Vec::new()).expect("a packet");
        *bytes.entry(packet.meta.flow).or_insert(0) += packet.meta.size.get();
    }
    // Apart by a quantum and a packet at most.
    assert!(bytes[&1].abs_diff(bytes[&2]) <= 1514 + 1500, "{bytes:?}");
}

#[test]
fn a_full_fq_codel_drops_from_the_head_of_the_longest_queue_in_batches() {
    // RFC 8290 §4.1.3; Linux: up to half of the queue, 64 packets at most.
    let config = FqCodelConfig { limit: 200, ..FqCodelConfig::default() };
    let mut queue = queue(&QueueConfig::FqCodel(config));
    for id in 0..190 {
        assert_eq!(offer(&mut queue, ms(0), id, meta(1000, 1, Ecn::NotEct)), [0; 0]);
    }
    for id in 1000..1010 {
        assert_eq!(offer(&mut queue, ms(0), id, meta(1000, 2, Ecn::NotEct)), [0; 0]);
    }
    let dropped = offer(&mut queue, ms(0), 2000, meta(1000, 2, Ecn::NotEct));
    assert_eq!(dropped, (0..64).collect::<Vec<_>>());
    assert_eq!(queue.len(), 137);
}

#[test]
fn dualpi2_marks_l4s_packets_beyond_the_step_and_serves_them_first() {
    // RFC 9332 §A.1: the step; the L queue has the larger weight.
    let mut queue = queue(&QueueConfig::DualPi2(DualPi2Config::default()));
    offer(&mut queue, ms(0), 0, meta(1500, 1, Ecn::Ect0));
    offer(&mut queue, ms(0), 1, meta(1500, 2, Ecn::Ect1));
    let first = queue.dequeue(ms(1), &mut Vec::new()).expect("a packet");
    assert_eq!((first.item, first.marked), (1, false));
    offer(&mut queue, ms(1), 2, meta(1500, 2, Ecn::Ect1));
    let marks: Vec<(u32, bool)> = (0..2)
        .map(|_| queue.dequeue(Instant::ZERO + Duration::from_micros(2001), &mut Vec::new()))
        .map(|packet| packet.map_or((9, false), |packet| (packet.item, packet.marked)))
        .collect();
    assert!(marks.contains(&(2, true)) && marks.contains(&(0, false)), "{marks:?}");
}

#[test]
fn dualpi2_gives_the_classic_queue_its_weight() {
    // Linux sch_dualpi2: 10 % while both queues have packets.
    let mut queue = queue(&QueueConfig::DualPi2(DualPi2Config::default()));
    for id in 0..1000 {
        offer(&mut queue, ms(0), id, meta(1500, 1, Ecn::Ect0));
        offer(&mut queue, ms(0), id, meta(1500, 2, Ecn::Ect1));
    }
    let flow = |queue: &mut Queue<u32>| queue.dequeue(ms(1), &mut Vec::new()).unwrap().meta.flow;
    let classic = (0..1000).filter(|_| flow(&mut queue) == 1).count();
    assert!((99..=101).contains(&classic), "{classic}");
}

/// Packets of 120 bytes, as in ns-3's suite `fq-codel-queue-disc`, of whose cases these are:
/// <https://gitlab.com/nsnam/ns-3-dev>, src/traffic-control/test. Two of them have no counterpart
/// here: packets that no filter classifies, and set-associative hashing.
fn of_ns3(flow: u32, ecn: Ecn) -> PacketMeta {
    meta(120, flow, ecn)
}

/// Flow and mark of the packet served at `at`.
fn serve_flow(queue: &mut Queue<u32>, at: Instant) -> Option<(u32, bool)> {
    queue.dequeue(at, &mut Vec::new()).map(|packet| (packet.meta.flow, packet.marked))
}

#[test]
fn ns3_flows_are_separate_and_the_fat_one_loses_half_at_the_limit() {
    let config = FqCodelConfig { limit: 4, quantum: Bytes(1500), ..FqCodelConfig::default() };
    let mut queue = queue(&QueueConfig::FqCodel(config));
    for (id, flow) in (0..).zip([1, 1, 1, 2]) {
        assert_eq!(offer(&mut queue, ms(0), id, of_ns3(flow, Ecn::NotEct)), [0; 0]);
    }
    assert_eq!(offer(&mut queue, ms(0), 4, of_ns3(2, Ecn::NotEct)), [0, 1]);
    let flows: Vec<_> = std::iter::from_fn(|| serve_flow(&mut queue, ms(0))).collect();
    assert_eq!(flows, [(1, false), (2, false), (2, false)]);
}

#[test]
fn ns3_a_flow_that_has_spent_its_quantum_waits_for_the_others() {
    let config = FqCodelConfig { quantum: Bytes(90), ..FqCodelConfig::default() };
    let mut queue = queue(&QueueConfig::FqCodel(config));
    offer(&mut queue, ms(0), 0, of_ns3(1, Ecn::NotEct));
    assert_eq!(serve_flow(&mut queue, ms(0)), Some((1, false)));
    for (id, flow) in (1..).zip([1, 1, 2, 2]) {
        offer(&mut queue, ms(0), id, of_ns3(flow, Ecn::NotEct));
    }
    let flows: Vec<_> =
        std::iter::from_fn(|| serve_flow(&mut queue, ms(0))).map(|(flow, _)| flow).collect();
    assert_eq!(flows, [2, 1, 2, 1]);
}

/// One flow queue of 20 packets, from which one is taken every 110 ms: how many CoDel marks, and
/// how many it drops. As in ns-3 it stops at 1500 bytes in this queue; Linux, and so FQ-CoDel here,
/// looks at the bytes in all queues.
fn marks_and_drops_of_ns3(ecn: Ecn) -> (usize, usize) {
    let rules = Rules { ecn: true, ..RULES };
    let (mut control, mut left) = (Control::default(), 20);
    let (mut marks, mut dropped) = (0, Vec::new());
    for turn in 1..=13 {
        let pop = || {
            left -= 1;
            Some((Waiting::new(ms(0), 0, of_ns3(1, ecn)), Bytes(120 * left)))
        };
        let served = control.dequeue(ms(110 * turn), &rules, Bytes(1500), pop, &mut dropped);
        marks += usize::from(served.is_some_and(|packet| packet.marked));
        if left == 0 {
            break;
        }
    }
    (marks, dropped.len())
}

#[test]
fn ns3_codel_marks_six_capable_packets_and_drops_four_others() {
    assert_eq!(marks_and_drops_of_ns3(Ecn::Ect0), (6, 0));
    assert_eq!(marks_and_drops_of_ns3(Ecn::NotEct), (0, 4));
}

#[test]
fn ns3_a_ce_threshold_of_2_ms_marks_by_the_order_of_the_flows() {
    let ce_threshold = Some(Duration::from_millis(2));
    let mut queue =
        queue(&QueueConfig::FqCodel(FqCodelConfig { ce_threshold, ..FqCodelConfig::default() }));
    for flow in 0..5 {
        let ecn = if flow < 3 { Ecn::Ect0 } else { Ecn::NotEct };
        for _ in 0..20 {
            assert_eq!(offer(&mut queue, ms(0), 0, of_ns3(flow, ecn)), [0; 0]);
        }
    }
    let mut marks = [0; 5];
    for turn in 1..=60 {
        let at = Instant::ZERO + Duration::from_micros(100 * turn);
        let (flow, marked) = serve_flow(&mut queue, at).expect("packets are left");
        marks[flow as usize] += u32::from(marked);
    }
    assert_eq!(marks, [0, 6, 13, 0, 0]);
}

/// Marked packets with ECT(1) and with ECT(0), when a packet of each arrives at these times and one
/// is taken every millisecond.
fn marks_in_l4s_mode(arrivals: impl Iterator<Item = (u64, u32, Ecn)>) -> [u32; 2] {
    let mut queue = queue(&QueueConfig::FqCodel(FqCodelConfig {
        ce_threshold: Some(Duration::from_millis(2)),
        ce_threshold_for: CeThresholdFor::L4s,
        ..FqCodelConfig::default()
    }));
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    let mut arrivals: Vec<_> = arrivals.collect();
    arrivals.sort_by_key(|&(micros, ..)| micros);
    let mut arrivals = arrivals.into_iter().peekable();
    let mut marks = [0; 2];
    let mut served_of = [0; 2];
    for turn in 1..=140_u64 {
        while let Some((micros, flow, ecn)) = arrivals.next_if(|&(at, ..)| at <= 1000 * turn) {
            let id = u32::from(ecn == Ecn::Ect0);
            assert_eq!(offer(&mut queue, at(micros), id, of_ns3(flow, ecn)), [0; 0]);
        }
        if let Some(packet) = queue.dequeue(at(1000 * turn), &mut Vec::new()) {
            marks[packet.item as usize] += u32::from(packet.marked);
            served_of[packet.item as usize] += 1;
        }
    }
    assert_eq!(served_of, [70, 70]);
    marks
}

#[test]
fn ns3_the_l4s_threshold_marks_ect1_and_leaves_ect0_to_codel() {
    let apart = (1..=70).flat_map(|n| [(500 * n, 1, Ecn::Ect1), (500 * n, 2, Ecn::Ect0)]);
    assert_eq!(marks_in_l4s_mode(apart), [66, 1]);
    let together =
        (0..70).flat_map(|n| [(1000 * n + 500, 1, Ecn::Ect1), (1000 * (n + 1), 1, Ecn::Ect0)]);
    assert_eq!(marks_in_l4s_mode(together), [68, 1]);
}
