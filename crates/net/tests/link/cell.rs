//! Cells: who sends in an interval, for how much of it, and what a packet sees of that. Shares are
//! compared with their closed forms.

use crate::common::{at_us, ms, plain};
use crate::properties::{links, traffic};
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_net::cell::{Grant, Links, SchedulerConfig, Tti};
use airtcp_net::config::{DelayConfig, Schedule};
use airtcp_net::config::{
    LinkConfig, LinkRate, OutageConfig, OutageMode, QueueConfig, QueueLimit, RlcConfig,
};
use airtcp_net::fading::{Efficiency, FadingConfig};
use airtcp_net::table::{Rates, Table};
use airtcp_net::{Cell, CellConfig, Dropped, Link, LinkStreams, Output, PacketMeta};
use proptest::prelude::*;
use std::sync::Arc;

const RR: SchedulerConfig = SchedulerConfig::RoundRobin;
const MAX_RATE: SchedulerConfig = SchedulerConfig::MaxRate;
const PF: SchedulerConfig =
    SchedulerConfig::ProportionalFair { time_constant: Duration::from_secs(1) };
const SIZE: Bytes = Bytes(1500);

fn config(scheduler: SchedulerConfig) -> CellConfig {
    CellConfig { tti: ms(1), scheduler, rlc: None }
}

/// A link without delay, with this rate and a long queue.
fn of_rate(rate: impl Into<LinkRate>) -> LinkConfig {
    LinkConfig {
        rate: rate.into(),
        delay: DelayConfig { base: Duration::ZERO, variation: None },
        queue: QueueConfig::DropTail { limit: QueueLimit::Packets(1000) },
        ..plain()
    }
}

/// The links of a cell and what has come out of them: time, link, packet; `false` if it was lost.
struct Base {
    cell: Cell,
    links: Vec<Link<u32>>,
    out: Vec<(Instant, usize, u32, bool)>,
}

struct Sharing<'a>(&'a mut [Link<u32>]);

impl Links for Sharing<'_> {
    fn competes(&mut self, link: usize, tti: Tti) -> Option<u64> {
        self.0[link].competes(tti)
    }
    fn send(&mut self, link: usize, grant: &mut Grant<'_>) -> u64 {
        self.0[link].send_in(grant)
    }
}

impl Base {
    fn new(scheduler: SchedulerConfig, links: &[LinkConfig]) -> Self {
        Self::of(&config(scheduler), links)
    }

    fn of(cell: &CellConfig, links: &[LinkConfig]) -> Self {
        let named = |(i, config): (usize, &LinkConfig)| {
            let name = format!("link{i}");
            let streams = LinkStreams::named(1, &name);
            Link::new(config, streams).in_cell(cell, &streams)
        };
        let links: Vec<_> = links.iter().enumerate().map(named).collect();
        Self { cell: Cell::new(cell, links.len()), links, out: Vec::new() }
    }

    /// Offers a packet, as the simulator does.
    fn offer(&mut self, now: Instant, link: usize, id: u32, size: Bytes) -> bool {
        self.run_until(now);
        self.cell.schedule(now, &mut Sharing(&mut self.links));
        self.cell.expect(now);
        match self.links[link].send(now, id, PacketMeta::from(size)) {
            Ok(()) => true,
            Err(Dropped(..)) => false,
        }
    }

    /// Goes on to just before `until`.
    fn run_until(&mut self, until: Instant) {
        loop {
            let arrivals = self.links.iter().filter_map(Link::next_deadline);
            let next = arrivals.chain(self.cell.next_deadline()).min();
            let Some(now) = next.filter(|&now| now < until) else { return };
            self.cell.schedule(now, &mut Sharing(&mut self.links));
            for (i, link) in self.links.iter_mut().enumerate() {
                while let Some(output) = link.poll(now) {
                    self.out.push(match output {
                        Output::Deliver(id, _) => (now, i, id, true),
                        Output::Drop(id, _) => (now, i, id, false),
                    });
                }
            }
        }
    }

    /// Deliveries in the order of time.
    fn deliveries(&mut self) -> Vec<(Instant, usize, u32)> {
        self.run_until(Instant::from_secs(1000));
        let delivered = self.out.iter().filter(|it| it.3);
        delivered.map(|&(at, link, id, _)| (at, link, id)).collect()
    }

    /// Keeps these links busy for so many intervals. Returns what each link carried, in Mbit/s.
    fn saturate(&mut self, busy: &[usize], intervals: u64) -> Vec<f64> {
        for n in 0..intervals {
            let now = Instant::from_millis(n);
            self.run_until(now);
            self.cell.schedule(now, &mut Sharing(&mut self.links));
            for &link in busy {
                while self.links[link].queue_len() < 20 {
                    self.offer(now, link, 0, SIZE);
                }
            }
        }
        self.run_until(Instant::from_millis(intervals));
        let carried = |link: &Link<u32>| link.counters().bytes_sent.bits() as f64;
        let time = intervals as f64 * 1000.0;
        self.links.iter().map(carried).map(|bits| bits / time).collect()
    }
}

/// What saturated links of these rates carry, in Mbit/s.
fn shares(scheduler: SchedulerConfig, rates: &[u64], intervals: u64) -> Vec<f64> {
    let links: Vec<_> = rates.iter().map(|&mbps| of_rate(DataRate::mbps(mbps))).collect();
    let all: Vec<_> = (0..links.len()).collect();
    Base::new(scheduler, &links).saturate(&all, intervals)
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64], share: f64) {
    for (found_one, expected_one) in found.iter().zip(expected) {
        let near = (found_one - expected_one).abs() <= share * expected_one;
        assert!(near, "{found:?}, not {expected:?}");
    }
}

#[test]
fn equal_links_share_equally() {
    for scheduler in [RR, PF] {
        assert_near(&shares(scheduler, &[20; 5], 5000), &[4.0; 5], 0.01);
    }
}

#[test]
fn each_link_gets_an_equal_share_of_the_time_whatever_its_rate() {
    // Jalali et al. 2000: at constant rates, proportional fairness divides the time equally (Kelly
    // 1998: it maximises the product of the throughputs). So does taking turns.
    for scheduler in [RR, PF] {
        let expected = [4.0 / 3.0, 8.0 / 3.0, 16.0 / 3.0];
        assert_near(&shares(scheduler, &[4, 8, 16], 9000), &expected, 0.01);
    }
}

#[test]
fn the_highest_rate_gets_everything() {
    assert_near(&shares(MAX_RATE, &[4, 16, 8], 2000), &[0.0, 16.0, 0.0], 0.01);
    // Of equal rates, the first.
    assert_near(&shares(MAX_RATE, &[8, 8], 2000), &[8.0, 0.0], 0.01);
}

#[test]
fn a_link_alone_has_its_rate() {
    for scheduler in [RR, PF, MAX_RATE] {
        let links = [20, 10, 20].map(|mbps| of_rate(DataRate::mbps(mbps)));
        let found = Base::new(scheduler, &links).saturate(&[1], 2000);
        assert_near(&found, &[0.0, 10.0, 0.0], 0.01);
    }
}

/// A channel whose rate is nearly proportional to the signal-to-noise ratio, as that is so low; so
/// many dB above 14.4 Mbit/s on average.
fn linear(db: f64) -> LinkConfig {
    let fading = FadingConfig {
        snr: libm::pow(10.0, (db - 30.0) / 10.0),
        bandwidth: 1e10,
        coherence_time: ms(1),
        efficiency: Efficiency::Shannon,
    };
    of_rate(LinkRate::Fading(Arc::new(fading)))
}

#[test]
fn proportional_fairness_gains_a_harmonic_number_from_rayleigh_fading() {
    // The best of n exponentials has n's harmonic number times the mean of one. (S. Borst,
    // "User-level performance of channel-aware scheduling algorithms in wireless data networks",
    // IEEE/ACM ToN 13(3), 2005: with rates proportional to the signal-to-noise ratio, the
    // sum of 1/k, k = 1 … n.)
    for n in [2, 4, 8] {
        let all: Vec<_> = (0..n).collect();
        let links: Vec<_> = all.iter().map(|_| linear(0.0)).collect();
        let total =
            |scheduler| -> f64 { Base::new(scheduler, &links).saturate(&all, 20_000).iter().sum() };
        let gain = total(PF) / total(RR);
        let expected: f64 = (1..=n).map(|k| 1.0 / k as f64).sum();
        assert!((gain / expected - 1.0).abs() < 0.03, "{n} links: {gain}, not {expected}");
    }
}

#[test]
fn proportional_fairness_scales_with_the_mean_of_each_link() {
    // Each link sends while its rate is high relative to its own mean: 1/n of the time, at the
    // harmonic number times its mean.
    let db = [0.0, -3.0, -6.0];
    let links = db.map(linear);
    let found = Base::new(PF, &links).saturate(&[0, 1, 2], 60_000);
    let share = (1.0 + 1.0 / 2.0 + 1.0 / 3.0) / 3.0;
    let expected = db.map(|db| 14.427 * libm::pow(10.0, db / 10.0) * share);
    assert_near(&found, &expected, 0.03);
}

#[test]
fn packets_are_cut_and_share_an_interval() {
    // 1000 B each interval, first of all for the first. What comes within one waits for the next.
    let mut base = Base::new(MAX_RATE, &[of_rate(DataRate::mbps(8)), of_rate(DataRate::mbps(8))]);
    for (id, size) in [(0, 1500), (1, 400)] {
        base.offer(at_us(200), 0, id, Bytes(size));
    }
    // The other has the 100 B that are left of the second interval.
    base.offer(at_us(1500), 1, 2, Bytes(101));
    assert_eq!(base.links[0].in_transit(), 2, "one in part");
    let expected = [(at_us(3000), 0, 0), (at_us(3000), 0, 1), (at_us(4000), 1, 2)];
    assert_eq!(base.deliveries(), expected);
    assert_eq!(base.cell.next_deadline(), None, "an idle cell sleeps");
}

#[test]
fn the_rest_of_an_interval_goes_to_the_next() {
    let rates = [8, 4, 4].map(|mbps| of_rate(DataRate::mbps(mbps)));
    let mut base = Base::new(RR, &rates);
    // A quarter of the interval at 8 Mbit/s, half of it at 4, and the rest.
    for (link, size) in [(0, 250), (1, 250), (2, 124), (2, 10)] {
        base.offer(at_us(100), link, 0, Bytes(size));
    }
    let expected =
        [(at_us(2000), 0, 0), (at_us(2000), 1, 0), (at_us(2000), 2, 0), (at_us(3000), 2, 0)];
    assert_eq!(base.deliveries(), expected);
}

#[test]
fn a_packet_is_too_late_for_the_interval_that_begins_as_it_arrives() {
    // In either order of the two events.
    for scheduled_first in [false, true] {
        let mut base = Base::new(PF, &[of_rate(DataRate::mbps(8)), of_rate(DataRate::mbps(8))]);
        base.offer(at_us(500), 0, 0, Bytes(100));
        if scheduled_first {
            base.cell.schedule(at_us(1000), &mut Sharing(&mut base.links));
        }
        base.offer(at_us(1000), 1, 1, Bytes(100));
        assert_eq!(base.deliveries(), [(at_us(2000), 0, 0), (at_us(3000), 1, 1)]);
    }
}

#[test]
fn a_link_does_not_compete_without_a_rate() {
    let steps = vec![(Instant::ZERO, None), (at_us(10_500), Some(DataRate::mbps(8)))];
    let rates = Rates::new(Table::new(steps).unwrap()).unwrap();
    let links = [of_rate(LinkRate::Table(Arc::new(rates))), of_rate(DataRate::mbps(8))];
    let mut base = Base::new(RR, &links);
    base.offer(at_us(0), 0, 0, Bytes(1000));
    base.offer(at_us(0), 1, 1, Bytes(1000));
    // Half of the interval from 10 ms on, and all of the next.
    assert_eq!(base.deliveries(), [(at_us(2000), 1, 1), (at_us(12_000), 0, 0)]);
}

#[test]
fn an_outage_holds_or_takes_the_packets_of_one_link() {
    let outage = |mode| {
        let schedule = Schedule::Listed(vec![(at_us(2000), at_us(5000))]);
        LinkConfig { outage: Some(OutageConfig { schedule, mode }), ..of_rate(DataRate::mbps(8)) }
    };
    // 500 B in each interval for both.
    let at = |mode| {
        let mut base = Base::new(RR, &[outage(mode), of_rate(DataRate::mbps(8))]);
        for link in [0, 1] {
            base.offer(at_us(0), link, 0, Bytes(1500));
        }
        base.deliveries()
    };
    assert_eq!(at(OutageMode::Hold), [(at_us(4000), 1, 0), (at_us(6000), 0, 0)]);
    assert_eq!(at(OutageMode::Drop), [(at_us(4000), 1, 0)]);
}

// Repairs.

fn repaired(rlc: RlcConfig) -> CellConfig {
    CellConfig { rlc: Some(rlc), ..config(RR) }
}

/// A link's packets with the times at which they arrive, `None` for lost ones, that all come at first.
fn burst(base: &mut Base, packets: u32, size: Bytes) -> Vec<(u32, Option<Instant>)> {
    for id in 0..packets {
        assert!(base.offer(at_us(1), 0, id, size));
    }
    base.run_until(Instant::from_secs(1000));
    base.out.iter().map(|&(at, _, id, arrived)| (id, arrived.then_some(at))).collect()
}

#[test]
fn a_link_alone_is_repaired_as_without_a_cell() {
    // Full blocks, of packets that are cut; the draws are the same.
    let rate = DataRate::mbps(12);
    for (bler, transmissions) in [(0.0, 4), (0.3, 4), (0.4, 1)] {
        let rlc = RlcConfig { bler, combining: 0.5, transmissions, ..RlcConfig::default() };
        let mut base = Base::of(&repaired(rlc), &[of_rate(rate), of_rate(rate)]);
        let in_cell = burst(&mut base, 500, Bytes(750));
        let config = LinkConfig { rlc: Some(Box::new(rlc)), ..of_rate(rate) };
        let mut link = Link::new(&config, LinkStreams::named(1, "link0"));
        for id in 0..500 {
            link.send(at_us(1), id, PacketMeta::from(Bytes(750))).unwrap();
        }
        let mut alone = Vec::new();
        while let Some(now) = link.next_deadline() {
            while let Some(output) = link.poll(now) {
                alone.push(match output {
                    Output::Deliver(id, _) => (id, Some(now)),
                    Output::Drop(id, _) => (id, None),
                });
            }
        }
        assert_eq!(in_cell, alone, "{bler}");
    }
}

#[test]
fn a_block_takes_as_much_again_of_a_later_interval_before_anything_new() {
    // TS 36.321 §7.7: 8 TTIs later. Both links have half of the first TTI, and lose it. Of the ninth,
    // B's retransmission takes one half and A's the other, so that B's new packet waits for the tenth.
    let lucky = RlcConfig { bler: 1.0, combining: 0.0, ..RlcConfig::default() };
    let mut base = Base::of(&repaired(lucky), &vec![of_rate(DataRate::mbps(12)); 2]);
    base.offer(at_us(500), 0, 0, Bytes(750));
    base.offer(at_us(500), 1, 1, Bytes(750));
    base.offer(at_us(8500), 1, 2, Bytes(750));
    let ms = Instant::from_millis;
    assert_eq!(base.deliveries(), [(ms(10), 0, 0), (ms(10), 1, 1), (ms(19), 1, 2)]);
}

#[test]
fn a_cell_carries_its_rate_by_the_mean_number_of_transmissions() {
    // 1 + p1 + p1 p2 + p1 p2 p3, as a link alone does; of equal links each carries its part.
    let rlc = RlcConfig { bler: 0.3, combining: 0.2, ..RlcConfig::default() };
    let mean = 1.0 + 0.3 + 0.3 * 0.06 + 0.3 * 0.06 * 0.012;
    for scheduler in [RR, PF] {
        let cell = CellConfig { scheduler, ..repaired(rlc) };
        let links = [of_rate(DataRate::mbps(10)), of_rate(DataRate::mbps(10))];
        let carried = Base::of(&cell, &links).saturate(&[0, 1], 20_000);
        assert_near(&carried, &[5.0 / mean; 2], 0.02);
    }
}

/// Links with so much to send and such rates, per interval.
struct Plain {
    backlog: Vec<u64>,
    rates: Vec<u64>,
    /// Share of the interval that is used.
    used: f64,
}

impl Links for Plain {
    fn competes(&mut self, link: usize, _: Tti) -> Option<u64> {
        (self.backlog[link] > 0).then_some(self.rates[link])
    }
    fn send(&mut self, link: usize, grant: &mut Grant<'_>) -> u64 {
        let sent = grant.bits.min(self.backlog[link]);
        self.backlog[link] -= sent;
        self.used += sent as f64 / self.rates[link] as f64;
        sent
    }
}

fn any_scheduler() -> impl Strategy<Value = SchedulerConfig> {
    let fair =
        (1u64..2000).prop_map(|n| SchedulerConfig::ProportionalFair { time_constant: ms(n) });
    prop_oneof![Just(RR), Just(MAX_RATE), fair]
}

proptest! {
    /// No interval carries more than it has room for, and none has room left while a link waits that
    /// could send.
    #[test]
    fn no_time_is_wasted(
        scheduler in any_scheduler(),
        intervals in proptest::collection::vec(
            proptest::collection::vec((0u64..30_000, prop_oneof![Just(0u64), 1u64..50_000]), 4),
            1..60,
        ),
    ) {
        let mut cell = Cell::new(&config(scheduler), 4);
        let mut links = Plain { backlog: vec![0; 4], rates: vec![0; 4], used: 0.0 };
        for (n, interval) in (0..).zip(intervals) {
            for (link, (more, rate)) in interval.into_iter().enumerate() {
                // Often nothing.
                if more % 3 == 0 {
                    links.backlog[link] += more;
                    cell.expect(Instant::from_millis(n));
                }
                links.rates[link] = rate;
            }
            links.used = 0.0;
            let now = Instant::from_millis(n + 1);
            cell.schedule(now, &mut links);
            let waits = (0..4).any(|i| links.backlog[i] > 0);
            let could_send = (0..4).any(|i| links.backlog[i] > 0 && links.rates[i] > 0);
            prop_assert!(links.used < 1.0 + 1e-9);
            // A nanosecond for each link, and a bit.
            let least = links.rates.iter().filter(|&&rate| rate > 0).min();
            let bit = least.map_or(0.0, |&rate| 1.0 / rate as f64);
            prop_assert!(!could_send || links.used > 1.0 - 4e-6 - 2.0 * bit, "{}", links.used);
            prop_assert!(!waits || cell.next_deadline() == Some(Instant::from_millis(n + 2)));
        }
    }

    /// Links of every kind lose no packet unseen, and repeat themselves.
    #[test]
    fn what_enters_comes_out(
        scheduler in any_scheduler(),
        bler in proptest::option::of(prop_oneof![0.0..0.5, Just(1.0)]),
        links in proptest::collection::vec(links(), 2..4),
        traffic in traffic(),
    ) {
        let rlc = bler.map(|bler| RlcConfig { bler, combining: 0.8, ..RlcConfig::default() });
        let cell = CellConfig { rlc, ..config(scheduler) };
        // Periodic outages may cover the start of every interval; a link's own RLC has others.
        let is_periodic = |it: &OutageConfig| matches!(it.schedule, Schedule::Periodic { .. });
        let links: Vec<_> = links
            .into_iter()
            .map(|link| LinkConfig {
                outage: link.outage.filter(|outage| !is_periodic(outage)),
                reconfiguration: None,
                rlc: None,
                ..link
            })
            .collect();
        let run = || {
            let mut base = Base::of(&cell, &links);
            let mut accepted = 0;
            for (id, &(at, meta)) in (0u32..).zip(&traffic) {
                accepted += usize::from(base.offer(at, id as usize % links.len(), id, meta.size));
            }
            base.run_until(Instant::from_secs(1000));
            (accepted, base)
        };
        let (accepted, base) = run();
        prop_assert_eq!(base.out.len(), accepted);
        prop_assert!(base.links.iter().all(|link| !link.is_busy()));
        prop_assert_eq!(base.cell.next_deadline(), None);
        prop_assert_eq!(run().1.out, base.out);
    }
}
