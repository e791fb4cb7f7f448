//! What a frame costs as an ad hoc network grows at constant density: moving nodes with AODV (RFC
//! 3561), of which one in a hundred sends over TCP. `docs/measurements/channel.md` has the results.
//!
//! Each sender's peer is three hops away at the start, whatever the size of the network: so the
//! searches for routes end nearby (RFC 3561 §6.4, expanding ring), and the frames that a node sends
//! do not grow with the network. Throughput is counted in frames, so its inverse is the CPU time
//! per frame.

#[path = "../tests/simulator/common.rs"]
mod common;

use airtcp_core::{Duration, Instant, Position, Stream};
use airtcp_net::mobility::{MobilityConfig, RandomStart, RandomWaypoint};
use airtcp_net::wifi::{StationConfig, preset};
use airtcp_routing::RoutingConfig;
use airtcp_routing::config::ByPreset;
use airtcp_sim::scenario::{NodeId, Scenario, Station, Wlan};
use airtcp_sim::{Observers, World};
use airtcp_tcp::TcpConfig;
use airtcp_testing::cpu_time;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::sync::Arc;

/// The area of each node, m²: 7 others can receive a frame, and 33 sense it.
const AREA: f64 = 28_800.0;
const SENDERS: u32 = 100;
const HOPS: usize = 3;
/// By then all flows have started.
const START: Instant = Instant::from_secs(1);

fn network(nodes: u32, duration: Duration) -> Scenario {
    let side = (f64::from(nodes) * AREA).sqrt();
    let mut stream = Stream::new(1, "bench/adhoc");
    let mut place = || Position { x: stream.uniform(0.0, side), y: stream.uniform(0.0, side) };
    let places: Vec<_> = (0..nodes).map(|_| place()).collect();
    let mut network = common::Network::new(duration);
    let ids: Vec<_> = places.iter().map(|_| network.node()).collect();
    for node in &mut network.0.nodes {
        node.mobility = MobilityConfig::RandomWaypoint(RandomWaypoint {
            area: (side, side),
            speed: 10.0,
            min_speed: None,
            pause: Duration::ZERO,
            start: RandomStart::Position,
        });
    }
    let station = |(&node, &position)| Station { node, config: StationConfig { position } };
    let stations = ids.iter().zip(&places).map(station).collect();
    let config = preset::ns2();
    for sender in (0..nodes).step_by(SENDERS as usize) {
        let reached =
            |from: u32, to: u32| config.radio.in_range(places[from as usize], places[to as usize]);
        if let Some(receiver) = away(sender, nodes, reached) {
            network.flow(NodeId(sender), NodeId(receiver), None, &TcpConfig::default());
        }
    }
    let flows = network.0.flows.len() as u64;
    for (n, flow) in (0..).zip(&mut network.0.flows) {
        flow.start = Instant::ZERO + START.since_start() * n / flows;
    }
    network.0.wlans.push(Wlan { name: "air".to_owned(), config, arp: false, stations });
    network.0.routing = RoutingConfig::Aodv(ByPreset(Arc::default()));
    network.0
}

/// The first of the nodes that are [`HOPS`] away.
fn away(from: u32, nodes: u32, reached: impl Fn(u32, u32) -> bool) -> Option<u32> {
    let mut known = vec![false; nodes as usize];
    known[from as usize] = true;
    let mut last = vec![from];
    for _ in 0..HOPS {
        let new = |to: &u32| !known[*to as usize] && last.iter().any(|&from| reached(from, *to));
        last = (0..nodes).filter(new).collect();
        last.iter().for_each(|&node| known[node as usize] = true);
    }
    last.first().copied()
}

/// All frames so far, and the broadcasts among them.
fn frames(world: &World) -> (u64, u64) {
    world.metrics().stations.iter().fold((0, 0), |(all, broadcasts), station| {
        let exchange = station.rts_sent + station.cts_sent + station.ack_frames_sent;
        let sent = exchange + station.data_frames_sent + station.broadcasts_sent;
        (all + sent, broadcasts + station.broadcasts_sent)
    })
}

fn benchmark(c: &mut Criterion) {
    let mut group = c.benchmark_group("a frame in an ad hoc network");
    for (nodes, seconds) in [(100, 100), (1_000, 20), (10_000, 5)] {
        let end = START + Duration::from_secs(seconds);
        let scenario = network(nodes, end.since_start());
        let started = || {
            let mut world = World::new(&scenario, 1);
            world.run_until(START, &mut Observers::default());
            world
        };
        let mut world = started();
        let before = frames(&world);
        world.run(&mut Observers::default());
        let after = frames(&world);
        let (sent, broadcasts) = (after.0 - before.0, after.1 - before.1);
        let rate = sent as f64 / (f64::from(nodes) * seconds as f64);
        println!(
            "{nodes} nodes: {rate:.1} frames a node and second, {broadcasts} of {sent} broadcast"
        );
        group.throughput(Throughput::Elements(sent)).sample_size(10);
        group.bench_function(BenchmarkId::from_parameter(format!("{nodes} nodes")), |b| {
            b.iter_custom(|iterations| {
                let run = |_| {
                    let mut world = started();
                    let start = cpu_time();
                    world.run(&mut Observers::default());
                    cpu_time() - start
                };
                (0..iterations).map(run).sum()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
