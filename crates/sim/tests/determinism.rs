//! One trajectory for each scenario and seed (DESIGN.md, "Engine"): compared by a fingerprint of every
//! packet at every node and every event.

mod common;

use airtcp_core::{Bytes, DataRate, Duration, Event, Instant, Source, Subscriber};
use airtcp_net::config::{Distribution, LossConfig, Variation};
use airtcp_sim::scenario::NodeId;
use airtcp_sim::scenario::Scenario;
use airtcp_sim::trace::{Direction, PacketTap};
use airtcp_sim::{Observers, Packet, World};
use airtcp_tcp::TcpConfig;
use std::fmt::{self, Write};

/// FNV-1a over the text of what it sees.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fingerprint(u64);

impl Fingerprint {
    const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    fn add(&mut self, seen: fmt::Arguments<'_>) {
        self.write_fmt(seen).expect("hashing does not fail");
    }
}
impl Write for Fingerprint {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let step = |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = s.bytes().fold(self.0, step);
        Ok(())
    }
}
impl Subscriber for Fingerprint {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        self.add(format_args!("{at}{source:?}{event:?}"));
    }
}
impl PacketTap for Fingerprint {
    fn on_packet(&mut self, at: Instant, node: NodeId, direction: Direction, packet: &Packet) {
        self.add(format_args!("{at}{node:?}{direction:?}{packet:?}"));
    }
}

/// Everything random at once: losses, a varying delay that reorders, a queue that overflows, flows that end.
fn busy() -> Scenario {
    let mut wireless = common::wire(DataRate::kbps(2000), Duration::from_millis(30), 20);
    wireless.loss.model = LossConfig::Bernoulli { p: 0.01 };
    wireless.delay.variation = Some(Variation {
        from: Instant::from_millis(500),
        distribution: Distribution::Exponential {
            offset: Duration::from_millis(20),
            mean: Duration::from_millis(10),
        },
        fifo: false,
    });
    let mut scenario = common::dumbbell(4, &wireless, Duration::from_secs(10));
    scenario.flows[1].bytes = Some(Bytes(100_000));
    scenario.flows[2].start = Instant::from_millis(1234);
    scenario.flows[3].sender = TcpConfig { mss: 700, ..TcpConfig::default() };
    scenario
}

fn fingerprint(seed: u64, run: impl FnOnce(&mut World, &mut Observers<'_>)) -> [Fingerprint; 2] {
    fingerprint_of(&mut World::new(&busy(), seed), run)
}

fn fingerprint_of(
    world: &mut World,
    run: impl FnOnce(&mut World, &mut Observers<'_>),
) -> [Fingerprint; 2] {
    let (mut events, mut packets) = (Fingerprint::EMPTY, Fingerprint::EMPTY);
    let mut observers = Observers { events: Some(&mut events), packets: Some(&mut packets) };
    run(world, &mut observers);
    assert!(events != Fingerprint::EMPTY && packets != Fingerprint::EMPTY);
    [events, packets]
}

#[test]
fn the_same_seed_gives_the_same_trajectory_and_another_seed_another() {
    let first = fingerprint(7, World::run);
    assert_eq!(fingerprint(7, World::run), first);
    assert_ne!(fingerprint(8, World::run)[1], first[1]);
}

#[test]
fn a_run_in_slices_is_the_same_run() {
    let sliced = fingerprint(7, |world, observers| {
        for ms in (0..10_000).step_by(37) {
            world.run_until(Instant::from_millis(ms), observers);
            assert_eq!(world.now(), Instant::from_millis(ms));
        }
        world.run(observers);
    });
    assert_eq!(sliced, fingerprint(7, World::run));
}

#[test]
fn runs_in_other_threads_change_nothing() {
    let alone = fingerprint(7, World::run);
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            [7, 8, 7, 9].map(|seed| scope.spawn(move || fingerprint(seed, World::run))).into();
        let runs: Vec<_> = runs.into_iter().map(|run| run.join().expect("no panic")).collect();
        assert_eq!((runs[0], runs[2]), (alone, alone));
    });
}

#[test]
fn observers_do_not_influence_the_run() {
    let mut world = World::new(&busy(), 7);
    world.run(&mut Observers::default());
    let mut watched = World::new(&busy(), 7);
    let mut events = Fingerprint::EMPTY;
    watched.run(&mut Observers { events: Some(&mut events), packets: None });
    assert_eq!(watched.metrics(), world.metrics());
}

/// oracles §11.3: Packet Control with R = 3 and nothing to do for its data filter is as if it were absent.
/// Here data overtakes by one or two, so that there are duplicate ACKs but no retransmissions, and ACKs do not
/// (the filter drops old ones at any R).
#[test]
fn a_transparent_middlebox_leaves_the_trace_alone() {
    let run = |threshold| {
        let mut scenario = common::reordering(threshold, Duration::from_secs(60));
        if let Some(variation) = &mut scenario.links[2].config.delay.variation {
            let (low, high) = (Duration::from_millis(153), Duration::from_millis(225));
            variation.distribution = Distribution::Uniform { low, high };
        }
        scenario.links[3].config.delay.variation = None;
        let mut world = World::new(&scenario, 3);
        (fingerprint_of(&mut world, World::run), world.metrics())
    };
    let (absent, _) = run(None);
    let (transparent, metrics) = run(Some(3));
    let counters = &metrics.middleboxes[0].counters;
    let (acks_forwarded, data_dropped) = (counters["acks_forwarded"], counters["data_dropped"]);
    assert!(acks_forwarded > 1000 && data_dropped == 0, "{acks_forwarded} {data_dropped}");
    assert_eq!(transparent, absent);
}
