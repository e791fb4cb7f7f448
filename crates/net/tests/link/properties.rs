//! Properties of every link under every arrival pattern (Little's law on the queue, conservation of
//! packets, determinism), and the reordering by the delay distribution of Packet Control, Table I.

use crate::common::{Fate, PACKET, fate, link, ms, plain, run, run_until, send_until};
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_net::config::{
    DelayConfig, Distribution, LinkConfig, LinkLoss, LossConfig, LossPlace, OutageConfig,
    OutageMode, PolicerConfig, QueueConfig, QueueLimit, ReconfigurationConfig, RlcConfig, Schedule,
    Variation,
};
use airtcp_net::queue::red::RedConfig;
use airtcp_net::{Dropped, Link, LinkCounters, PacketMeta};
use proptest::prelude::*;

fn distributions() -> impl Strategy<Value = Distribution> {
    let uniform = (1u64..50, 0u64..100)
        .prop_map(|(low, width)| Distribution::Uniform { low: ms(low), high: ms(low + width) });
    let exponential = (0u64..50, 1u64..50).prop_map(|(offset, mean)| Distribution::Exponential {
        offset: ms(offset),
        mean: ms(mean),
    });
    let normal = (1u64..50, 1u64..50)
        .prop_map(|(mean, dev)| Distribution::Normal { mean: ms(mean), deviation: ms(dev) });
    prop_oneof![
        uniform.clone(),
        exponential.clone(),
        normal,
        (uniform, exponential).prop_map(|(a, b)| Distribution::Mixture(vec![(0.7, a), (0.3, b)])),
    ]
}

fn delays() -> impl Strategy<Value = DelayConfig> {
    let variation =
        (0u64..300, distributions(), any::<bool>()).prop_map(|(from, distribution, fifo)| {
            Variation { from: Instant::from_millis(from), distribution, fifo }
        });
    (0u64..100, proptest::option::of(variation))
        .prop_map(|(base, variation)| DelayConfig { base: ms(base), variation })
}

fn losses() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        Just(LossConfig::None),
        Just(LossConfig::Bernoulli { p: 0.2 }),
        Just(LossConfig::GilbertElliott {
            good_to_bad: 0.1,
            bad_to_good: 0.3,
            loss_good: 0.0,
            loss_bad: 0.9
        }),
        proptest::collection::vec(0u64..60, 0..10).prop_map(LossConfig::List),
    ]
}

fn outages() -> impl Strategy<Value = Option<OutageConfig>> {
    let mode = prop_oneof![Just(OutageMode::Drop), Just(OutageMode::Hold)];
    let listed = proptest::collection::vec((0u64..200, 1u64..200), 0..4).prop_map(|gaps| {
        let mut at = 0;
        let intervals = gaps.iter().map(|&(gap, len)| {
            let start = at + gap;
            at = start + len;
            (Instant::from_millis(start), Instant::from_millis(at))
        });
        Schedule::Listed(intervals.collect())
    });
    let periodic = (1u64..50, 1u64..50).prop_map(|(down, up)| Schedule::Periodic {
        origin: Instant::from_millis(20),
        period: ms(down + up),
        start: ms(0),
        end: ms(down),
    });
    let schedule = prop_oneof![listed, periodic];
    proptest::option::of(
        (schedule, mode).prop_map(|(schedule, mode)| OutageConfig { schedule, mode }),
    )
}

fn reconfigurations() -> impl Strategy<Value = Option<ReconfigurationConfig>> {
    let slots = (1u64..200, 0u64..200, proptest::option::of(distributions()), 0u8..2);
    proptest::option::of(slots.prop_map(|(interval, offset, delay, loss)| ReconfigurationConfig {
        interval: ms(interval),
        offset: ms(offset.min(interval)),
        delay,
        loss: f64::from(loss) * 0.3,
        interruption: None,
        mode: OutageMode::Drop,
    }))
}

/// A TTI begins between any two outages: otherwise what they hold waits for ever.
fn sometimes_up(rlc: RlcConfig, outage: Option<&OutageConfig>) -> RlcConfig {
    match outage.map(|outage| &outage.schedule) {
        Some(&Schedule::Periodic { period, end, .. }) => {
            RlcConfig { tti: rlc.tti.min(period - end), ..rlc }
        }
        _ => rlc,
    }
}

fn cellular() -> impl Strategy<Value = Option<RlcConfig>> {
    let rlc = (1u64..20, 0.0..1.0, 1u32..4, 1u64..20, 0u64..50, 0u64..30);
    let rlc = rlc.prop_map(|(tti, bler, transmissions, rtt, reassembly, prohibit)| RlcConfig {
        tti: ms(tti),
        bler,
        combining: 0.5,
        transmissions,
        harq_rtt: ms(rtt),
        t_reassembly: ms(reassembly),
        t_status_prohibit: ms(prohibit),
        max_retx: 2,
    });
    proptest::option::weighted(0.3, rlc)
}

pub(crate) fn queues() -> impl Strategy<Value = QueueConfig> {
    prop_oneof![
        (0u64..20).prop_map(|n| QueueConfig::DropTail { limit: QueueLimit::Packets(n) }),
        (0u64..20_000).prop_map(|n| QueueConfig::DropTail { limit: QueueLimit::Bytes(Bytes(n)) }),
        any::<bool>().prop_map(|gentle| {
            QueueConfig::Red(RedConfig {
                min_threshold: 2.0,
                max_threshold: 6.0,
                max_p: 0.1,
                weight: 0.2,
                gentle,
                limit: 10,
                ..RedConfig::default()
            })
        }),
    ]
}

pub(crate) fn links() -> impl Strategy<Value = LinkConfig> {
    let place = prop_oneof![Just(LossPlace::Medium), Just(LossPlace::BeforeQueue)];
    let policer = (100u64..5000, 1000u64..20_000).prop_map(|(kbps, burst)| PolicerConfig {
        rate: DataRate::kbps(kbps),
        burst: Bytes(burst),
    });
    let policer = proptest::option::of(policer);
    let path = (delays(), reconfigurations(), cellular());
    (100u64..5000, path, losses(), place, policer, outages(), queues()).prop_map(
        |(kbps, (delay, reconfiguration, rlc), model, place, policer, outage, queue)| LinkConfig {
            rate: DataRate::kbps(kbps).into(),
            delay,
            loss: LinkLoss { model, place },
            duplicate: 0.0,
            policer,
            reconfiguration: reconfiguration.map(Box::new),
            handover: None,
            rlc: rlc.map(|rlc| Box::new(sometimes_up(rlc, outage.as_ref()))),
            outage,
            queue,
        },
    )
}

/// Up to 60 packets over about half a second, many at equal times.
pub(crate) fn traffic() -> impl Strategy<Value = Vec<(Instant, PacketMeta)>> {
    let packet = (prop_oneof![Just(0u64), 0u64..20_000_000], 1u64..1500, any::<bool>());
    proptest::collection::vec(packet, 0..60).prop_map(|packets| {
        let mut at = Instant::ZERO;
        let send = |(gap, size, data)| {
            at += Duration::from_nanos(gap);
            (at, PacketMeta::new(Bytes(size), data))
        };
        packets.into_iter().map(send).collect()
    })
}

fn delivered(log: &[Fate]) -> Vec<(Instant, u32)> {
    let arrival = |fate: &Fate| match *fate {
        Fate::Delivered(at, id) => Some((at, id)),
        Fate::Lost(..) => None,
    };
    log.iter().filter_map(arrival).collect()
}

proptest! {
    #[test]
    fn packets_are_conserved(config in links(), sends in traffic(), stop in 0u64..600) {
        let mut link = link(&config);
        let (sent, mut log) = send_until(&mut link, &sends, Instant::from_millis(stop));
        let counters = link.counters();
        let LinkCounters { queue_drops, loss_drops, policer_drops, outage_drops, .. } = counters;
        let lost = queue_drops + loss_drops + policer_drops + outage_drops;
        prop_assert_eq!(sent, log.len() + link.in_transit());
        prop_assert_eq!(log.len() - delivered(&log).len(), lost as usize);
        run_until(&mut link, Instant::MAX, &mut log);
        prop_assert_eq!(sent, log.len());
        prop_assert_eq!(link.in_transit(), 0);
    }

    #[test]
    fn extra_polls_change_nothing(
        config in links(), sends in traffic(), extra in proptest::collection::vec(0u64..1_000, 0..40),
    ) {
        let reference = run(&mut link(&config), &sends);
        let mut extra: Vec<_> = extra.into_iter().map(Instant::from_millis).collect();
        extra.sort_unstable();
        let mut extra = extra.into_iter().peekable();
        let (mut sliced, mut log) = (link(&config), Vec::new());
        for (id, &(at, meta)) in (0..).zip(&sends) {
            while let Some(slice) = extra.next_if(|&slice| slice < at) {
                run_until(&mut sliced, slice, &mut log);
                prop_assert_eq!(sliced.poll(slice), None);
            }
            run_until(&mut sliced, at, &mut log);
            if let Err(Dropped(id, reason)) = sliced.send(at, id, meta) {
                log.push(Fate::Lost(at, id, reason));
            }
        }
        for slice in extra {
            run_until(&mut sliced, slice, &mut log);
            prop_assert_eq!(sliced.poll(slice), None);
        }
        run_until(&mut sliced, Instant::MAX, &mut log);
        prop_assert_eq!(log, reference);
    }

    #[test]
    fn a_late_poll_gives_the_same_packets_in_the_same_order(config in links(), sends in traffic()) {
        let order = |log: &[Fate]| -> Vec<_> {
            let id_and_reason = |fate: &Fate| match *fate {
                Fate::Delivered(_, id) => (id, None),
                Fate::Lost(_, id, reason) => (id, Some(reason)),
            };
            log.iter().map(id_and_reason).collect()
        };
        let mut reference = order(&run(&mut link(&config), &sends));
        let mut late = link(&config);
        for (id, &(at, meta)) in (0..).zip(&sends) {
            if late.send(at, id, meta).is_err() {
                // Refused at the entrance, so never on the link.
                reference.retain(|&(refused, _)| refused != id);
            }
        }
        // Nothing is polled before the end; then one wake-up yields everything.
        let end = Instant::from_secs(3600);
        let log: Vec<_> =
            std::iter::from_fn(|| late.poll(end)).map(|output| fate(end, output)).collect();
        prop_assert_eq!(order(&log), reference);
    }

    #[test]
    fn outputs_come_in_order_of_time(config in links(), sends in traffic()) {
        let log = run(&mut link(&config), &sends);
        prop_assert!(log.is_sorted_by_key(|fate| fate.at()));
    }

    #[test]
    fn a_fifo_link_keeps_the_order(mut config in links(), sends in traffic()) {
        if let Some(variation) = &mut config.delay.variation {
            variation.fifo = true;
        }
        let order = delivered(&run(&mut link(&config), &sends));
        prop_assert!(order.is_sorted_by_key(|&(_, id)| id));
    }

    #[test]
    fn nothing_arrives_before_its_earliest_departure_plus_the_smallest_delay(
        config in links(), sends in traffic(),
    ) {
        let shortest = config.delay.variation.as_ref().map_or(config.delay.base, |v| {
            v.distribution.lower_bound().min(config.delay.base)
        });
        let of_slots = config.reconfiguration.as_ref().and_then(|it| it.delay.as_ref());
        let shortest = shortest + of_slots.map_or(Duration::ZERO, Distribution::lower_bound);
        for (at, id) in delivered(&run(&mut link(&config), &sends)) {
            let (sent, meta) = sends[id as usize];
            prop_assert!(at >= sent + config.rate.mean().transmission_time(meta.size) + shortest);
        }
    }

    #[test]
    fn little_s_law_holds_on_the_queue(sends in traffic(), kbps in 100u64..3000) {
        // With a constant delay and no loss, an arrival tells when service started, so the sum of
        // the waits must equal the integral of the queue length over time.
        let config = LinkConfig { rate: DataRate::kbps(kbps).into(), ..plain() };
        let log = delivered(&run(&mut link(&config), &sends));
        let start = |&(at, id): &(Instant, u32)| {
            at - config.delay.base - config.rate.mean().transmission_time(sends[id as usize].1.size)
        };
        let waits: u64 =
            log.iter().map(|d| start(d).since(sends[d.1 as usize].0).as_nanos()).sum();

        let mut observed = link(&config);
        let mut changes: Vec<_> = log.iter().map(|d| (start(d), None)).collect();
        changes.extend((0..).zip(&sends).map(|(id, &(at, meta))| (at, Some((id, meta)))));
        changes.sort_by_key(|&(at, _)| at);
        let (mut integral, mut last) = (0, Instant::ZERO);
        for (at, send) in changes {
            integral += observed.queue_len() as u64 * at.since(last).as_nanos();
            last = at;
            while observed.poll(at).is_some() {}
            if let Some((id, meta)) = send {
                let _ = observed.send(at, id, meta);
            }
        }
        prop_assert_eq!(integral, waits);
    }

    #[test]
    fn same_seed_and_name_same_fates(config in links(), sends in traffic()) {
        prop_assert_eq!(run(&mut link(&config), &sends), run(&mut link(&config), &sends));
    }
}

#[test]
fn packet_control_delays_reorder_as_computed() {
    // One-way delays of Packet Control, Table I, drawn independently, packets 33.28 ms apart (back
    // to back at 250 kbit/s), no loss. Computed by convolution: P(overtaken by >= 1, 3, 6, 9, 12
    // later packets).
    let part = |weight, low, high| (weight, Distribution::Uniform { low: ms(low), high: ms(high) });
    let distribution = Distribution::Mixture(vec![
        part(80.0, 153, 195),
        part(10.0, 195, 225),
        part(8.0, 225, 297),
        part(2.0, 297, 621),
    ]);
    let variation = Variation { from: Instant::ZERO, distribution, fifo: false };
    let config =
        LinkConfig { delay: DelayConfig { base: ms(170), variation: Some(variation) }, ..plain() };
    let n = 200_000;
    let spacing = config.rate.mean().transmission_time(PACKET.size);
    let mut link: Link<u32> = link(&config);
    let sends: Vec<_> = (0..n).map(|i| (Instant::ZERO + spacing * i, PACKET)).collect();
    let mut rank = vec![0; n as usize];
    for (position, (_, id)) in delivered(&run(&mut link, &sends)).into_iter().enumerate() {
        rank[id as usize] = position;
    }
    let reach = 20; // (621 - 153) / 33.28 = 14.06: no packet is overtaken by one further behind.
    let mut overtaken = [0.0; 5];
    for i in 0..rank.len() - reach {
        let by = rank[i + 1..=i + reach].iter().filter(|&&r| r < rank[i]).count();
        for (bin, threshold) in overtaken.iter_mut().zip([1, 3, 6, 9, 12]) {
            *bin += f64::from(u8::from(by >= threshold)) * 100.0 / n as f64;
        }
    }
    // Four standard errors (binomial; packets far apart are independent), plus the rounding of the
    // reference.
    for (percent, expected) in overtaken.into_iter().zip([15.5f64, 3.7, 1.43, 0.81, 0.21]) {
        let error = 4.0 * (expected * (100.0 - expected) / n as f64).sqrt() + 0.05;
        assert!((percent - expected).abs() < error, "{percent} against {expected}");
    }
}
