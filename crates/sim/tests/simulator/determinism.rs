//! One trajectory for each scenario and seed, compared by a fingerprint of every packet at every
//! node and every event.

use crate::common;
use airtcp_core::{Bytes, DataRate, Dscp, Duration, Event, Instant, Source, Subscriber};
use airtcp_net::CellConfig;
use airtcp_net::cell::SchedulerConfig;
use airtcp_net::config::{
    Distribution, LossConfig, OutageConfig, OutageMode, RlcConfig, Schedule, Variation,
};
use airtcp_sim::scenario::{
    Application, Cell, DatagramArrivals, Datagrams, LinkSender, NodeId, Scenario, Sizes, UdpSpec,
};
use airtcp_sim::trace::{Crossing, PacketTap};
use airtcp_sim::{Observers, RunMetrics, World};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{AckConfig, RtoConfig};
use proptest::prelude::*;
use std::fmt::{self, Write};
use std::sync::Arc;

/// FNV-1a over the text it is given.
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
    fn on_packet(&mut self, &Crossing { at, node, direction, packet, .. }: &Crossing<'_>) {
        self.add(format_args!("{at}{node:?}{direction:?}{packet:?}"));
    }
}

/// Everything random at once: losses, a varying delay that reorders, a queue that overflows, flows
/// that end.
fn busy() -> Scenario {
    let mut wireless = common::wire(DataRate::kbps(2000), Duration::from_millis(30), 20);
    wireless.loss = LossConfig::Bernoulli { p: 0.01 }.into();
    wireless.delay.variation = Some(Variation {
        from: Instant::from_millis(500),
        distribution: Distribution::Exponential {
            offset: Duration::from_millis(20),
            mean: Duration::from_millis(10),
        },
        fifo: false,
    });
    let mut scenario = common::dumbbell(4, &wireless, Duration::from_secs(10));
    scenario.flows[1].application = Arc::new(Application::Bulk(Some(Bytes(100_000))));
    scenario.flows[2].start = Instant::from_millis(1234);
    scenario.flows[3].sender = Arc::new(TcpConfig { mss: 700, ..TcpConfig::default() });
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
    let mut observers = Observers {
        events: Some(&mut events),
        packets: Some(&mut packets),
        ..Observers::default()
    };
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

type Outcome = ([Fingerprint; 2], RunMetrics);

/// A run at once, and one in slices.
fn whole_and_sliced(scenario: &Scenario) -> (Outcome, Outcome) {
    let run = |steps: &[u64]| {
        let mut world = World::new(scenario, 7);
        let prints = fingerprint_of(&mut world, |world, observers| {
            for &step in steps {
                world.run_until(Instant::from_nanos(step), observers);
            }
            world.run(observers);
        });
        (prints, world.metrics())
    };
    let end = scenario.duration.as_nanos();
    (run(&[]), run(&(0..end).step_by(1_234_567).collect::<Vec<_>>()))
}

/// With access categories, where a collision inside a station can be a packet's last attempt.
#[test]
fn a_cell_with_access_categories_in_slices_is_the_same_run() {
    let set = [("duration", "2 s"), ("wlan.cell.short-retry-limit", "1")];
    let text = include_str!("../../../../examples/voice.toml");
    let scenario = common::parse(text, &set);
    let (whole, sliced) = whole_and_sliced(&scenario);
    let ap = &whole.1.stations[0];
    assert!(ap.internal_collisions > 0 && ap.mac_drops > 0, "nothing happened: {ap:?}");
    assert_eq!(sliced, whole);
}

/// A run in slices reports at the same instants what a station's queue discipline drops or marks.
#[test]
fn a_cell_with_queue_disciplines_in_slices_is_the_same_run() {
    for kind in ["codel", "fq-codel", "pie", "dualpi2", "red"] {
        let text = format!(
            r#"duration = "3 s"
node = [{{ name = "FH" }}, {{ name = "AP" }}, {{ name = "MH" }}]
tcp.preset = "linux"
[[link]]
between = ["FH", "AP"]
rate = "100 Mbit/s"
delay = "10 ms"
[[wlan]]
name = "cell"
stations = ["AP", "MH"]
queue-discipline = {{ kind = "{kind}" }}
[[flow]]
name = "down"
from = "FH"
to = "MH"
count = 3
[[flow]]
name = "up"
from = "MH"
to = "FH"
sender = {{ ecn = "rfc3168" }}
receiver = {{ ecn = "rfc3168" }}
"#
        );
        let scenario = common::parse(&text, &[]);
        let (whole, sliced) = whole_and_sliced(&scenario);
        assert!(whole.1.stations[0].queue_drops > 0, "{kind}: nothing happened");
        assert_eq!(whole, sliced, "{kind}");
    }
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
    watched.run(&mut Observers { events: Some(&mut events), ..Observers::default() });
    assert_eq!(watched.metrics(), world.metrics());
}

/// A tree of nodes with links of few kinds, so that many events coincide: short queues, RED,
/// losses, an outage, several flows and datagrams. Each node is attached to an earlier one.
fn tree(parents: &[usize], kinds: &[u8], ends: &[(usize, usize, bool)]) -> Scenario {
    let mut network = common::Network::new(Duration::from_secs(3));
    let nodes: Vec<_> = (0..=parents.len()).map(|_| network.node()).collect();
    for (n, (&parent, &kind)) in parents.iter().zip(kinds).enumerate() {
        let rate = DataRate::mbps(if kind & 1 == 0 { 1 } else { 10 });
        let delay = Duration::from_millis(if kind & 2 == 0 { 2 } else { 5 });
        let mut link = common::wire(rate, delay, if kind & 4 == 0 { 3 } else { 50 });
        match kind >> 3 {
            0 => link.loss = LossConfig::Bernoulli { p: 0.02 }.into(),
            1 => {
                let schedule =
                    Schedule::Listed(vec![(Instant::from_secs(1), Instant::from_millis(1500))]);
                link.outage = Some(OutageConfig { schedule, mode: OutageMode::Hold });
            }
            2 => {
                let uniform = |low, high| Distribution::Uniform {
                    low: Duration::from_millis(low),
                    high: Duration::from_millis(high),
                };
                let from = Instant::ZERO;
                link.delay.variation =
                    Some(Variation { from, distribution: uniform(1, 9), fifo: false });
            }
            3 => link.duplicate = 0.05,
            _ => {}
        }
        network.connect(nodes[parent % (n + 1)], nodes[n + 1], &link);
    }
    for (k, &(from, to, udp)) in ends.iter().enumerate() {
        let [from, to] = [from, to].map(|end| nodes[end % nodes.len()]);
        if from == to {
            continue;
        }
        if udp {
            let size = Sizes::constant(Bytes(500));
            let arrivals = DatagramArrivals::Constant;
            let rate = DataRate::kbps(400);
            let datagrams = match k % 3 {
                0 => Datagrams::Saturated { size },
                _ => Datagrams::Paced { rate, size, arrivals, on_off: None },
            };
            let (name, dscp) = (format!("u{k}"), Dscp::DEFAULT);
            let (start, stop) = (Instant::ZERO, None);
            network.0.udp.push(UdpSpec { name, from, to, dscp, start, stop, datagrams });
        } else {
            network.flow(from, to, None, &TcpConfig { mss: 1000, ..TcpConfig::default() });
        }
    }
    network.0
}

/// Two sides of hosts, each with a flow of its own, over one link. Round numbers, so that many
/// events coincide; timers of few milliseconds, which expire while packets are under way. `kinds`:
/// for each flow, of its two access links and its endpoints.
fn two_sides(bottleneck: u8, kinds: &[(u8, u8, u8)]) -> Scenario {
    let ms = |n: u8| Duration::from_millis(u64::from(n));
    let mut network = common::Network::new(Duration::from_secs(3));
    let routers = [network.node(), network.node()];
    let queue = if bottleneck & 1 == 0 { 4 } else { 30 };
    let rate = DataRate::mbps(if bottleneck & 2 == 0 { 2 } else { 8 });
    network.connect(routers[0], routers[1], &common::wire(rate, ms(bottleneck >> 2), queue));
    for &(left, right, tcp) in kinds {
        let ends = [left, right].map(|kind| {
            let rate = DataRate::mbps(if kind & 1 == 0 { 8 } else { 100 });
            let mut link = common::wire(rate, ms(kind >> 1 & 7), 20);
            if kind & 16 > 0 {
                link.loss = LossConfig::Bernoulli { p: 0.02 }.into();
            }
            if kind & 32 > 0 {
                link.duplicate = 0.05;
            }
            (network.node(), link)
        });
        for ((node, link), router) in ends.iter().zip(routers) {
            network.connect(*node, router, link);
        }
        let ack = match tcp & 3 {
            0 => AckConfig::Every,
            timeout => AckConfig::Delayed { segments: 2, timeout: ms(3 * timeout), quick: 0 },
        };
        let initial = ms(50 << (tcp >> 2 & 1));
        let rto = RtoConfig { initial, min: ms(10 << (tcp >> 3 & 1)), ..RtoConfig::default() };
        let bytes = (tcp & 16 > 0).then_some(Bytes(50_000));
        let tcp = TcpConfig { mss: 1000, ack, rto, ..TcpConfig::default() };
        network.flow(ends[0].0, ends[1].0, bytes, &tcp);
    }
    network.0
}

/// The same with the links between the second router and its hosts in cells, in one direction or in
/// both: round intervals, so that packets come as these begin.
fn in_cells(bottleneck: u8, kinds: &[(u8, u8, u8)], directions: u8, scheduler: u8) -> Scenario {
    let ms = Duration::from_millis;
    let mut scenario = two_sides(bottleneck, kinds);
    let scheduler = match scheduler {
        0 => SchedulerConfig::RoundRobin,
        1 => SchedulerConfig::MaxRate,
        _ => SchedulerConfig::ProportionalFair { time_constant: ms(20) },
    };
    // Half of them repair losses.
    let rlc = bottleneck.is_multiple_of(2).then(|| RlcConfig { bler: 0.3, ..RlcConfig::default() });
    let config = CellConfig { tti: ms(1), scheduler, rlc };
    let cell = |name: &str| Cell { name: name.into(), config };
    let [left, base] = [NodeId(0), NodeId(1)];
    let [down, up] = ["down", "up"].map(|name| scenario.cells.push(cell(name)));
    for link in scenario.links.iter_mut().filter(|link| ![link.from, link.to].contains(&left)) {
        link.sender = match link.from == base {
            // Both directions in one cell.
            _ if directions == 0 => LinkSender::InCell(down),
            true if directions & 1 > 0 => LinkSender::InCell(down),
            false if directions & 2 > 0 => LinkSender::InCell(up),
            _ => LinkSender::Plain,
        };
    }
    scenario
}

/// Runs a scenario of three seconds with observers and, but for some slices, without. The results,
/// at the end of each slice, must be the same.
fn observed_or_not(scenario: &Scenario, slices: &[(u64, bool)]) -> Result<(), TestCaseError> {
    let (mut watched, mut alone) = (World::new(scenario, 1), World::new(scenario, 1));
    watched.measure_queueing_delays();
    alone.measure_queueing_delays();
    let mut now = 0;
    for &(ms, both) in slices.iter().chain([&(3000, false)]) {
        now = (now + ms).min(3000);
        let mut events = Fingerprint::EMPTY;
        let mut observers = Observers { events: Some(&mut events), ..Observers::default() };
        watched.run_until(Instant::from_millis(now), &mut observers);
        let mut observers = if both { observers } else { Observers::default() };
        alone.run_until(Instant::from_millis(now), &mut observers);
        prop_assert_eq!(alone.metrics(), watched.metrics());
    }
    Ok(())
}

/// Behind its own link, which takes all, a saturated source loses packets to a slower one.
#[test]
fn what_others_lose_is_not_the_loss_of_a_saturated_source() {
    let scenario = tree(&[0, 1], &[2, 33], &[(2, 0, true), (2, 1, false)]);
    observed_or_not(&scenario, &[]).unwrap();
}

/// A transport block brings packets at whole milliseconds, when datagrams are sent as well: which of
/// them is first depends on when the link knew that it would wake up.
#[test]
fn a_link_that_decides_later_knows_no_packets_ahead_of_time() {
    for more in [
        r#"queue = { kind = "codel" }"#,
        r#"mobile = "B", handover = { interruption = "50 ms", data = "forward", interval = "700 ms" }"#,
    ] {
        let text = format!(
            r#"duration = "4 s"
node = [{{ name = "A" }}, {{ name = "R" }}, {{ name = "B" }}]
link = [{{ between = ["A", "R"], rate = "100 Mbit/s", delay = "1 ms", queue = {{ limit = "1000 packets" }} }},
        {{ between = ["R", "B"], rate = "8 Mbit/s", delay = "20 ms", rlc = {{ bler = 0.3 }}, {more} }}]
flow = [{{ from = "A", to = "B" }}]
udp = [{{ from = "A", to = "B", rate = "2 Mbit/s", arrivals = "poisson" }},
       {{ from = "B", to = "A", rate = "1 Mbit/s", size = "200 B" }}]
"#
        );
        let scenario = common::parse(&text, &[]);
        for seed in 1..=10 {
            let (mut watched, mut alone) =
                (World::new(&scenario, seed), World::new(&scenario, seed));
            let mut events = Fingerprint::EMPTY;
            watched.run(&mut Observers { events: Some(&mut events), ..Observers::default() });
            alone.run(&mut Observers::default());
            assert_eq!(alone.metrics(), watched.metrics(), "{more}, seed {seed}");
        }
    }
}

/// A transport block brings several packets at once: some go on ahead of time, and the others arrive
/// in their place among simultaneous wake-ups.
#[test]
fn what_arrives_together_does_so_though_a_part_goes_ahead() {
    const TEXT: &str = r#"duration = "3 s"
node = [{ name = "A" }, { name = "R" }, { name = "S" }, { name = "B" }, { name = "C" }]
link = [{ between = ["A", "R"], rate = "1 Mbit/s", delay = "5 ms", queue = { limit = "200 packets" } },
        { between = ["R", "S"], rate = "12 Mbit/s", delay = "5 ms", rlc = { bler = 0.2 } },
        { between = ["S", "B"], rate = "12 Mbit/s", delay = "5 ms" },
        { between = ["S", "C"], rate = "100 Mbit/s", delay = "1 ms" }]
flow = [{ from = "B", to = "R" }]
udp = [{ from = "S", to = "B", rate = "1 Mbit/s", size = "125 B" },
       { from = "A", to = "C", rate = "1 Mbit/s", size = "125 B", arrivals = "poisson" }]
"#;
    let scenario = common::parse(TEXT, &[]);
    for seed in 1..=10 {
        let (mut watched, mut alone) = (World::new(&scenario, seed), World::new(&scenario, seed));
        let mut events = Fingerprint::EMPTY;
        watched.run(&mut Observers { events: Some(&mut events), ..Observers::default() });
        alone.run(&mut Observers::default());
        assert_eq!(alone.metrics(), watched.metrics(), "seed {seed}");
    }
}

fn slices() -> impl Strategy<Value = Vec<(u64, bool)>> {
    proptest::collection::vec((1..1500u64, any::<bool>()), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Without observers, packets go through some nodes ahead of time.
    #[test]
    fn a_run_without_observers_gives_the_same_results(
        parents in proptest::collection::vec(0..8usize, 2..8),
        kinds in proptest::collection::vec(0..64u8, 8),
        ends in proptest::collection::vec((0..9usize, 0..9usize, proptest::bool::weighted(0.3)), 1..6),
        slices in slices(),
    ) {
        observed_or_not(&tree(&parents, &kinds, &ends), &slices)?;
    }

    /// Without observers, hosts are ahead of the world, but not of their timers.
    #[test]
    fn hosts_ahead_of_the_world_give_the_same_results(
        bottleneck in 0..64u8,
        kinds in proptest::collection::vec((0..64u8, 0..64u8, 0..32u8), 2..6),
        slices in slices(),
    ) {
        observed_or_not(&two_sides(bottleneck, &kinds), &slices)?;
    }

    /// No packet comes to a cell ahead of time.
    #[test]
    fn cells_give_the_same_results_without_observers(
        bottleneck in 0..64u8,
        kinds in proptest::collection::vec((0..64u8, 0..64u8, 0..32u8), 2..6),
        directions in 0..4u8,
        scheduler in 0..3u8,
        slices in slices(),
    ) {
        observed_or_not(&in_cells(bottleneck, &kinds, directions, scheduler), &slices)?;
    }
}

/// With R = 3 and nothing to do for its data filter, Packet Control is transparent. Here data
/// overtakes by one or two, so there are duplicate ACKs but no retransmissions; ACKs do not
/// overtake (the filter drops old ones at any R).
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
