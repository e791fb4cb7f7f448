//! Packets between nodes: static routes, TTL, partitioned networks, and nodes with routers, by test
//! protocols that use only the public interface.

use crate::common::{self, Network, wire};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, DataRate, Duration, Event, Instant, Source, Subscriber};
use airtcp_routing::router::{Context, Data, Message, NextHop, Notice, Packet as Routed};
use airtcp_routing::{Actions, LinkFailure, NodeId, Router};
use airtcp_sim::metrics::RunMetrics;
use airtcp_sim::scenario::Scenario;
use airtcp_sim::trace::{Crossing, Direction, PacketTap};
use airtcp_sim::{Observers, Packet, World};
use airtcp_tcp::TcpConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A line of nodes with this many links between its ends, and a transfer from end to end.
fn line(links: usize) -> Scenario {
    let mut network = Network::new(Duration::from_secs(20));
    let nodes: Vec<_> = (0..=links).map(|_| network.node()).collect();
    let link = wire(DataRate::mbps(10), Duration::from_millis(1), 50);
    for pair in nodes.windows(2) {
        network.connect(pair[0], pair[1], &link);
    }
    network.flow(nodes[0], nodes[links], Some(Bytes(10_000)), &TcpConfig::default());
    network.0
}

/// RFC 1812 §5.3.1: a node that forwards decrements the TTL, and drops the packet when it reaches
/// zero.
#[test]
fn a_packet_crosses_as_many_links_as_its_ttl_says() {
    let flow = &common::run(&line(64), 1).flows[0];
    assert_eq!((flow.delivered_bytes, flow.ttl_drops), (10_000, 0));

    let scenario = line(65);
    let mut drops = Drops::default();
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers { events: Some(&mut drops), ..Observers::default() });
    let flow = &world.metrics().flows[0];
    assert_eq!(flow.delivered_bytes, 0);
    assert!(flow.ttl_drops > 0);
    assert_eq!(drops.0, vec![(Source::Node(64), DropReason::TtlExpired); flow.ttl_drops as usize]);
}

/// The place and the reason of each packet drop.
#[derive(Default)]
struct Drops(Vec<(Source, DropReason)>);

impl Subscriber for Drops {
    fn on_event(&mut self, _: Instant, source: Source, event: &Event) {
        if let Event::Dropped { reason, .. } = *event {
            self.0.push((source, reason));
        }
    }
}

/// Two cells that do not hear each other, with traffic inside and between them.
const PARTS: &str = r#"
    duration = "10 s"
    node = [
        { name = "a", position = ["0 m", "0 m"] }, { name = "b", position = ["100 m", "0 m"] },
        { name = "c", position = ["900 m", "0 m"] }, { name = "d", position = ["5 km", "0 m"] },
    ]
    wlan = [{ name = "air", stations = ["a", "b", "c", "d"], preset = "ns2" }]
    flow = [{ name = "inside", from = "a", to = "b" }, { name = "between", from = "a", to = "c" }]
    udp = [
        { name = "paced", from = "a", to = "d", rate = "80 kbit/s", size = "1000 B" },
        { name = "saturated", from = "b", to = "c", rate = "saturated", size = "1000 B" },
    ]"#;

#[test]
fn a_partitioned_network_runs_and_counts_packets_without_a_route() {
    let metrics = common::run(&common::parse(PARTS, &[]), 1);
    let [inside, between] = metrics.flows.as_slice() else { panic!("{:?}", metrics.flows) };
    assert!(inside.goodput > 100_000.0 && inside.no_route_drops == 0, "{inside:?}");
    // The SYN at 0, 1, 2, 3, 4, 5 and 7 s: its first four time-outs do not double.
    assert_eq!((between.no_route_drops, between.delivered_bytes), (7, 0));
    let [paced, saturated] = metrics.udp.as_slice() else { panic!("{:?}", metrics.udp) };
    assert_eq!((paced.packets_sent, paced.no_route_drops), (101, 101));
    // Two packets at a time, each tried a millisecond after the drop of the one before.
    assert!(saturated.no_route_drops == saturated.packets_sent && saturated.packets_sent < 20_100);
}

/// Drops the data packets that a failed link returned.
fn drop_all(failure: LinkFailure<'_>, out: &mut Actions) {
    failure.data().for_each(|data| out.drop(data, DropReason::Retries));
}

/// A router that looks up the static next hop of each packet.
struct Fixed {
    node: NodeId,
    next: BTreeMap<NodeId, NodeId>,
}

impl Router for Fixed {
    fn on_packet(&mut self, _: &Context<'_>, _: Option<NodeId>, packet: Routed, out: &mut Actions) {
        let Routed::Data(data) = packet else { panic!("nobody sends control packets") };
        match self.next.get(&data.destination) {
            _ if data.destination == self.node => out.deliver(data),
            Some(&next) => out.send(data, NextHop::Node(next)),
            None => out.drop(data, DropReason::NoRoute),
        }
    }
    fn on_link_failure(&mut self, _: &Context<'_>, failure: LinkFailure<'_>, out: &mut Actions) {
        drop_all(failure, out);
    }
    fn on_timer(&mut self, _: &Context<'_>, _: &mut Actions) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// A wired host, a cell of a chain, and traffic in both directions.
const CHAIN: &str = r#"
    duration = "20 s"
    [[node]]
    name = "h"
    position = ["0 m", "50 m"]
    [[node]]
    name = "n"
    count = 3
    position = ["0 m", "0 m"]
    spacing = ["100 m", "0 m"]
    [[link]]
    between = ["h", "n0"]
    rate = "10 Mbit/s"
    delay = "2 ms"
    [[wlan]]
    name = "air"
    stations = ["n"]
    preset = "ns2"
    [[flow]]
    from = "h"
    to = "n2"
    [[udp]]
    from = "n2"
    to = "h"
    rate = "20 kbit/s"
    size = "500 B"
"#;

/// The log of events, and how many packets of each kind were sent.
#[derive(Default)]
struct Log {
    events: Vec<String>,
    control: u64,
}

impl Subscriber for Log {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        self.events.push(format!("{at} {source:?} {event:?}"));
    }
}

impl PacketTap for Log {
    fn on_packet(&mut self, &Crossing { direction, packet, .. }: &Crossing<'_>) {
        let sent = direction == Direction::Sent;
        self.control += u64::from(sent && matches!(packet, Packet::Control(_)));
    }
}

fn log(mut world: World) -> (Log, RunMetrics) {
    let (mut events, mut packets) = (Log::default(), Log::default());
    world.run(&mut Observers {
        events: Some(&mut events),
        packets: Some(&mut packets),
        ..Observers::default()
    });
    (Log { control: packets.control, ..events }, world.metrics())
}

#[test]
fn a_router_with_the_static_routes_gives_the_same_run() {
    let scenario = common::parse(CHAIN, &[]);
    let (by_table, metrics) = log(World::new(&scenario, 1));
    assert!(metrics.flows[0].goodput > 50_000.0 && metrics.udp[0].packets_received > 50);
    // Packets taken back from a failed link would make a difference.
    assert_eq!(metrics.stations.iter().map(|s| s.link_failures).sum::<u64>(), 0);
    let step = |at: u32, to: u32| match at {
        0 => 1,
        _ if to == 0 && at > 1 => 1,
        _ => to,
    };
    let router = |NodeId(node): NodeId| {
        let others = (0..4).filter(|&to| to != node);
        let next = others.map(|to| (NodeId(to), NodeId(step(node, to)))).collect();
        Some(Box::new(Fixed { node: NodeId(node), next }) as Box<dyn Router>)
    };
    let (by_router, routed) = log(World::with_routers(&scenario, 1, router));
    assert_eq!(by_router.events, by_table.events);
    assert_eq!((routed.flows, routed.stations), (metrics.flows, metrics.stations));
}

/// Forwards as another router does, and counts what it overhears.
struct Curious(Fixed, Arc<AtomicU64>);

impl Router for Curious {
    fn on_packet(
        &mut self,
        context: &Context<'_>,
        from: Option<NodeId>,
        packet: Routed,
        out: &mut Actions,
    ) {
        self.0.on_packet(context, from, packet, out);
    }
    fn overhears(&self) -> bool {
        true
    }
    fn on_overheard(
        &mut self,
        _: &Context<'_>,
        from: NodeId,
        to: NodeId,
        packet: &Routed,
        _: &mut Actions,
    ) {
        assert!(from != self.0.node && to != self.0.node);
        let Routed::Data(data) = packet else { panic!("nobody sends control packets") };
        assert!(data.ttl >= 61);
        self.1.fetch_add(1, Ordering::Relaxed);
    }
    fn on_link_failure(
        &mut self,
        context: &Context<'_>,
        failure: LinkFailure<'_>,
        out: &mut Actions,
    ) {
        self.0.on_link_failure(context, failure, out);
    }
    fn on_timer(&mut self, _: &Context<'_>, _: &mut Actions) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// Node 0 of a chain hears node 1 pass its packets on. Overhearing changes nothing, even for a
/// source that counts its packets on the first link.
#[test]
fn a_router_overhears_what_neighbours_send_to_others() {
    let scenario = common::parse(
        r#"
        duration = "10 s"
        node = [{ name = "n", count = 4, position = ["0 m", "0 m"], spacing = ["200 m", "0 m"] }]
        wlan = [{ name = "air", stations = ["n"], preset = "ns2" }]
        udp = [{ from = "n0", to = "n3", rate = "saturated", size = "1000 B" }]"#,
        &[],
    );
    let heard: [Arc<AtomicU64>; 4] = Default::default();
    let run = |overhear: bool| {
        let router = |node: NodeId| {
            let next = [(NodeId(3), NodeId(node.0 + 1))].into();
            let fixed = Fixed { node, next };
            let router: Box<dyn Router> = match overhear {
                true => Box::new(Curious(fixed, heard[node.0 as usize].clone())),
                false => Box::new(fixed),
            };
            Some(router)
        };
        log(World::with_routers(&scenario, 1, router))
    };
    let ((watched, metrics), (plain, expected)) = (run(true), run(false));
    let heard = heard.map(|count| count.load(Ordering::Relaxed));
    assert!(heard[0] > 100 && heard[1] > 100 && heard[3] == 0, "{heard:?}");
    assert_eq!(watched.events, plain.events);
    assert_eq!((metrics.udp, metrics.stations), (expected.udp, expected.stations));
}

/// Asks all its neighbours for routes it does not know, as on-demand protocols do.
struct Asking {
    node: NodeId,
    next: BTreeMap<NodeId, NodeId>,
    /// Data of its own node without a route yet.
    held: Vec<Data>,
    /// Requests to be relayed a little later, because neighbours that relay at once collide.
    later: Vec<(Instant, Arc<dyn Message>)>,
    seen: BTreeSet<(NodeId, u32)>,
    asked: u32,
}

#[derive(Clone, Copy, Debug)]
enum Talk {
    Question { number: u32, from: NodeId, about: NodeId },
    Answer { from: NodeId, to: NodeId },
}

impl Message for Talk {
    fn size(&self) -> Bytes {
        Bytes(48)
    }
}

impl Asking {
    fn boxed(node: NodeId) -> Option<Box<dyn Router>> {
        let (next, seen) = (BTreeMap::new(), BTreeSet::new());
        let (held, later) = (Vec::new(), Vec::new());
        Some(Box::new(Self { node, next, held, later, seen, asked: 0 }))
    }

    fn hold(&mut self, data: Data, out: &mut Actions) {
        let about = data.destination;
        if self.held.iter().all(|other| other.destination != about) {
            self.asked += 1;
            self.seen.insert((self.node, self.asked));
            let question = Talk::Question { number: self.asked, from: self.node, about };
            out.control(Arc::new(question), NextHop::Broadcast);
        }
        self.held.push(data);
    }
}

impl Router for Asking {
    fn on_packet(
        &mut self,
        context: &Context<'_>,
        from: Option<NodeId>,
        packet: Routed,
        out: &mut Actions,
    ) {
        let message = match packet {
            Routed::Data(data) if data.destination == self.node => return out.deliver(data),
            Routed::Data(data) => {
                return match self.next.get(&data.destination) {
                    Some(&next) => out.send(data, NextHop::Node(next)),
                    None if from.is_none() => self.hold(data, out),
                    None => out.drop(data, DropReason::NoRoute),
                };
            }
            Routed::Control(message) => message,
        };
        let neighbour = from.expect("control packets come from neighbours");
        match *message.downcast_ref::<Talk>().expect("there is one protocol") {
            Talk::Question { number, from, about } => {
                if !self.seen.insert((from, number)) {
                    return;
                }
                self.next.insert(from, neighbour);
                if about == self.node {
                    let answer = Talk::Answer { from: about, to: from };
                    return out.control(Arc::new(answer), NextHop::Node(neighbour));
                }
                let jitter = Duration::from_millis(u64::from(self.node.0));
                self.later.push((context.now + jitter, message));
            }
            Talk::Answer { from, to } => {
                self.next.insert(from, neighbour);
                if to != self.node {
                    return out.control(message, NextHop::Node(self.next[&to]));
                }
                out.notify(Notice::RouteFound(from));
                let ready = self.held.extract_if(.., |data| data.destination == from);
                ready.for_each(|data| out.send(data, NextHop::Node(neighbour)));
            }
        }
    }

    fn on_link_failure(&mut self, _: &Context<'_>, failure: LinkFailure<'_>, out: &mut Actions) {
        let neighbour = failure.neighbour;
        for (&to, _) in self.next.iter().filter(|(_, next)| **next == neighbour) {
            out.notify(Notice::RouteFailed(to));
        }
        self.next.retain(|_, next| *next != neighbour);
        for data in failure.data() {
            if data.source == self.node {
                self.hold(data, out);
            } else {
                out.drop(data, DropReason::Retries);
            }
        }
    }

    fn on_timer(&mut self, context: &Context<'_>, out: &mut Actions) {
        for (_, message) in self.later.extract_if(.., |(at, _)| *at <= context.now) {
            out.control(message, NextHop::Broadcast);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).min()
    }
}

/// Two paths from `a` to `d`, over `b` and over `c`; the first fails after 5 s.
const TWO_WAYS: &str = r#"
    duration = "20 s"
    node = [
        { name = "a", position = ["0 m", "0 m"] },
        { name = "b", position = ["200 m", "100 m"], outage = { layer = "phy", listed = [["5 s", "30 s"]] } },
        { name = "c", position = ["200 m", "-100 m"] },
        { name = "d", position = ["400 m", "0 m"] },
    ]
    wlan = [{ name = "air", stations = ["a", "b", "c", "d"], preset = "ns2" }]
    flow = [{ from = "a", to = "d" }]
    [tcp]
    preset = "rfc""#;

#[test]
fn a_protocol_discovers_routes_and_finds_others_when_a_link_fails() {
    let scenario = common::parse(TWO_WAYS, &[]);
    let (log, metrics) = log(World::with_routers(&scenario, 1, Asking::boxed));
    let flow = &metrics.flows[0];
    let b = &metrics.stations[1];
    assert!(b.data_frames_sent > 500, "the first path was the one over b: {b:?}");
    let told = |what: &str| log.events.iter().filter(|line| line.contains(what)).count();
    assert!(told("Node(0) RouteFailed { to: 10.0.0.4 }") == 1, "{:?}", told("RouteFailed"));
    assert_eq!(told("Node(0) RouteFound { to: 10.0.0.4 }"), 2);
    assert!(log.control >= 2 * 3, "{} control packets", log.control);
    // Packets queued for the failed neighbour took the other path; they did not fail one by one.
    assert_eq!((told("Node(0) Dropped"), metrics.stations[0].link_failures), (0, 1));
    // A static route would have worked for the first 5 s only.
    let (_, fixed) = self::log(World::new(&scenario, 1));
    assert!(flow.goodput > 2.5 * fixed.flows[0].goodput, "{flow:?} {:?}", fixed.flows[0]);
    assert_eq!(flow.aborted, None);
}

/// With a window of two segments, the sender's node has one to send when the path fails, and the
/// other is lost. ELFN sends it again once there is a route; otherwise it takes a time-out.
#[test]
fn a_sender_told_of_a_broken_route_stands_by_until_there_is_another() {
    let run = |tcp: &str| {
        let ways = TWO_WAYS.replace("\"5 s\"", "\"0.4 s\"");
        let text = format!("{ways}\ncwnd-limit = \"4 kB\"\n{tcp}");
        let (log, metrics) = log(World::with_routers(&common::parse(&text, &[]), 1, Asking::boxed));
        let last = |what: &str| {
            let line = log.events.iter().rfind(|line| line.contains(what))?;
            line.split(' ').next()?.parse::<f64>().ok()
        };
        let [failed, found] = ["RouteFailed", "RouteFound"]
            .map(|what| last(&format!("Node(0) {what} {{ to: 10.0.0.4 }}")).expect("told"));
        assert!(failed < found);
        let [begins, ends] =
            [true, false].map(|active| last(&format!("Standby {{ active: {active} }}")));
        assert_eq!(begins, ends.map(|_| failed));
        (ends.map(|ends| ends - found), metrics.flows[0].clone())
    };
    let (waits, with) = run("on-route-failure = \"elfn\"\nelfn.resume-on-route = true");
    assert_eq!((waits, with.timeouts), (Some(0.0), 0));
    // The segment that the router held is acknowledged before the first probe.
    let (waits, with) = run("on-route-failure = \"elfn\"");
    assert!(waits.is_some_and(|waits| waits > 0.01 && waits < 0.05), "{waits:?}");
    let (waits, without) = run("");
    assert_eq!((waits, with.timeouts, without.timeouts), (None, 0, 1));
    assert!(with.goodput > without.goodput, "{} {}", with.goodput, without.goodput);
}

/// Sends to the neighbour in range that is nearest to the destination.
struct Greedy {
    node: NodeId,
    nodes: u32,
}

/// The header of a data packet, updated hop by hop.
#[derive(Debug)]
struct Trail(Vec<NodeId>);

impl Message for Trail {
    fn size(&self) -> Bytes {
        Bytes(4 * self.0.len() as u64)
    }
}

impl Router for Greedy {
    fn on_packet(
        &mut self,
        context: &Context<'_>,
        _: Option<NodeId>,
        packet: Routed,
        out: &mut Actions,
    ) {
        let Routed::Data(mut data) = packet else { panic!("nobody sends control packets") };
        let trail = data.header.as_deref().and_then(|header| header.downcast_ref::<Trail>());
        let mut trail = trail.map_or(Vec::new(), |trail| trail.0.clone());
        assert!(!trail.contains(&self.node), "a loop: {trail:?}");
        if data.destination == self.node {
            return out.deliver(data);
        }
        assert_eq!(usize::from(data.ttl) + trail.len(), 64);
        trail.push(self.node);
        data.header = Some(Arc::new(Trail(trail)));
        let at = |node| (context.position_of)(node).expect("all have radios");
        let (here, there) = (at(self.node), at(data.destination));
        let others = (0..self.nodes).map(NodeId).filter(|&node| node != self.node);
        let near = others.filter(|&node| at(node).distance(here) <= 250.0);
        let best = near.min_by(|&a, &b| at(a).distance(there).total_cmp(&at(b).distance(there)));
        match best.filter(|&best| at(best).distance(there) < here.distance(there)) {
            Some(next) => out.send(data, NextHop::Node(next)),
            None => out.drop(data, DropReason::NoRoute),
        }
    }
    fn on_link_failure(&mut self, _: &Context<'_>, failure: LinkFailure<'_>, out: &mut Actions) {
        drop_all(failure, out);
    }
    fn on_timer(&mut self, _: &Context<'_>, _: &mut Actions) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// A protocol's header makes packets longer on the air.
#[test]
fn a_protocol_knows_positions_and_writes_into_packets() {
    let scenario = common::parse(
        r#"
        duration = "10 s"
        tcp = { preset = "rfc" }
        node = [{ name = "n", count = 4, position = ["0 m", "0 m"], spacing = ["200 m", "0 m"] }]
        wlan = [{ name = "air", stations = ["n"], preset = "ns2" }]
        flow = [{ from = "n0", to = "n3", bytes = "20 kB" }]"#,
        &[],
    );
    let greedy = |node| Some(Box::new(Greedy { node, nodes: 4 }) as Box<dyn Router>);
    let (_, with) = log(World::with_routers(&scenario, 1, greedy));
    let (_, without) = log(World::new(&scenario, 1));
    assert_eq!(with.flows[0].delivered_bytes, 20_000);
    let time = |metrics: &RunMetrics| metrics.flows[0].download_time.expect("complete");
    assert!(time(&with) > time(&without), "{} {}", time(&with), time(&without));
}
