//! The simulated world: nodes, links, endpoints, applications and middleboxes, driven by one event queue.
//!
//! A packet costs one event a hop: the wake-up of the link that delivers it, in which the next link takes
//! it (or the endpoint, whose answer goes out at once). Everything a component says ("send this", "wake me
//! then") is carried out here; no component knows another.
//!
//! Addresses: node `i` is 10.0.0.0 + `i` + 1; see [`addr`] for the ports.

pub mod addr;
mod mechanism;
mod packets;
mod routing;

use crate::apps::{App, BulkSource, Sink};
use crate::engine::Wakeups;
use crate::metrics::{FlowMetrics, LinkMetrics, RunMetrics};
use crate::scenario::model::{FlowSpec, Node, NodeId, Scenario};
use crate::trace::{Direction, PacketTap};
use addr::Destination;
use airtcp_core::event::DropReason;
use airtcp_core::{
    Bytes, Duration, Event, Events, Flags, Flow, Instant, Length, Payload, Segment, SeqNum, Source,
    Stream, Subscriber,
};
use airtcp_edge::{Action, Actions, Side};
use airtcp_net::{AboveMac, Dropped, Link, LinkStreams, Output};
use airtcp_tcp::{Endpoint, Io};
use mechanism::Mechanism;
use packets::{PacketId, Packets};

/// Who watches a run. Without anybody the run is the same, and faster.
#[derive(Default)]
pub struct Observers<'a> {
    /// Receives every event.
    pub events: Option<&'a mut dyn Subscriber>,
    /// Sees every packet.
    pub packets: Option<&'a mut dyn PacketTap>,
}

impl Observers<'_> {
    fn events(&mut self, source: Source) -> Events<'_> {
        let subscriber = self.events.as_mut();
        Events::new(subscriber.map(|s| &mut **s as &mut dyn Subscriber), source)
    }

    fn dropped(
        &mut self,
        at: Instant,
        source: Source,
        reason: DropReason,
        segment: &Segment<Length>,
    ) {
        let Segment { flow, seq, payload, .. } = *segment;
        let len = payload.len() as u32;
        self.events(source).emit(at, || Event::Dropped { reason, flow, seq, len });
    }

    #[inline]
    fn packet(&mut self, at: Instant, node: u32, dir: Direction, segment: &Segment<Length>) {
        if let Some(tap) = &mut self.packets {
            tap.on_packet(at, NodeId(node), dir, segment);
        }
    }
}

/// Where a packet goes next. A path is a run of these in [`World::hops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hop {
    /// Over this link.
    Link(u32),
    /// To this socket, on the node it has reached.
    Socket(u32),
    /// There is no path.
    Nowhere,
}

/// A unidirectional link and where it leads.
struct LinkState {
    link: Link<PacketId>,
    to: u32,
}

/// What a node does beyond plain forwarding; most do nothing.
struct NodeState {
    outage: Option<Box<AboveMac>>,
    /// Index into [`World::mechanisms`].
    mechanism: Option<u32>,
}

impl NodeState {
    fn new(node: &Node) -> Self {
        let outage = node.outage.clone().map(|schedule| Box::new(AboveMac::new(schedule)));
        Self { outage, mechanism: None }
    }

    fn drops(&self, now: Instant, flags: Flags) -> bool {
        self.outage.as_ref().is_some_and(|outage| outage.drops(now, flags))
    }
}

/// One end of a flow: endpoint, application, and the path of what it sends.
struct Socket {
    endpoint: Endpoint<Length>,
    app: App,
    /// When the application opens the connection; `None` once it has, and for the passive end.
    open_at: Option<Instant>,
    node: u32,
    /// First hop of its segments, index into [`World::hops`].
    path: u32,
    source: Source,
}

impl Socket {
    fn next_deadline(&self) -> Option<Instant> {
        self.open_at.or_else(|| self.endpoint.next_deadline())
    }
}

/// What only the metrics need of a flow.
struct FlowInfo {
    name: String,
    start: Instant,
    bytes: Option<Bytes>,
}

/// A run in progress: one scenario, one seed, one trajectory.
pub struct World {
    scenario: String,
    seed: u64,
    duration: Duration,
    now: Instant,
    events_processed: u64,
    wakeups: Wakeups,
    nodes: Vec<NodeState>,
    links: Vec<LinkState>,
    /// Sender and receiver of each flow, in turn.
    sockets: Vec<Socket>,
    /// Of the nodes that have one. Component numbers: links first, then sockets, then these.
    mechanisms: Vec<Mechanism>,
    hops: Vec<Hop>,
    packets: Packets,
    /// What the endpoint being called sends; empty between calls.
    outbox: Vec<Segment<Length>>,
    /// What the mechanism being called wants done; empty between calls.
    actions: Actions<Length>,
    node_names: Vec<String>,
    link_names: Vec<String>,
    flows: Vec<FlowInfo>,
}

impl World {
    /// The state at time zero of this scenario under this seed.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let Scenario { name, duration, nodes, links, flows } = scenario;
        let (hops, paths) = hops(scenario);
        let mechanisms: Vec<Mechanism> = (0..)
            .zip(nodes)
            .filter_map(|(n, node)| Some(Mechanism::new(n, node.middlebox.as_ref()?)))
            .collect();
        let mut world = Self {
            scenario: name.clone(),
            seed,
            duration: *duration,
            now: Instant::ZERO,
            events_processed: 0,
            wakeups: Wakeups::new(links.len() + 2 * flows.len() + mechanisms.len()),
            nodes: nodes.iter().map(NodeState::new).collect(),
            links: links
                .iter()
                .map(|l| LinkState {
                    link: Link::new(&l.config, LinkStreams::named(seed, &l.name)),
                    to: l.to.0,
                })
                .collect(),
            sockets: Vec::with_capacity(2 * flows.len()),
            mechanisms,
            hops,
            packets: Packets::default(),
            outbox: Vec::new(),
            actions: Actions::new(),
            node_names: nodes.iter().map(|n| n.name.clone()).collect(),
            link_names: links.iter().map(|l| l.name.clone()).collect(),
            flows: flows
                .iter()
                .map(|f| FlowInfo { name: f.name.clone(), start: f.start, bytes: f.bytes })
                .collect(),
        };
        for (index, mechanism) in (0..).zip(&world.mechanisms) {
            world.nodes[mechanism.node as usize].mechanism = Some(index);
        }
        for (index, (flow, [forward, backward])) in (0..).zip(flows.iter().zip(paths)) {
            let FlowSpec { name, from, to, start, bytes, sender, receiver } = flow;
            let mut isn = Stream::new(seed, &format!("flow/{name}/isn"));
            let mut isn = || SeqNum(isn.bits() as u32);
            let tuple = addr::of_flow(index, *from, *to);
            let mut passive = Endpoint::new(receiver.clone(), tuple.reversed(), isn());
            passive.listen();
            world.sockets.push(Socket {
                endpoint: Endpoint::new(sender.clone(), tuple, isn()),
                app: App::Source(BulkSource::new(*bytes)),
                open_at: Some(*start),
                node: from.0,
                path: forward,
                source: Source::Sender(index),
            });
            world.sockets.push(Socket {
                endpoint: passive,
                app: App::Sink(Sink::default()),
                open_at: None,
                node: to.0,
                path: backward,
                source: Source::Receiver(index),
            });
            world.arm_socket(2 * index);
        }
        world
    }

    /// Runs to the end of the scenario.
    pub fn run(&mut self, observers: &mut Observers<'_>) {
        self.run_until(Instant::ZERO + self.duration, observers);
    }

    /// Runs up to and including `until`. A run in slices is the same run.
    pub fn run_until(&mut self, until: Instant, observers: &mut Observers<'_>) {
        while let Some((now, component)) = self.wakeups.next(until) {
            self.now = now;
            self.events_processed += 1;
            let (links, sockets) = (self.links.len() as u32, self.sockets.len() as u32);
            let deadline = if component < links {
                self.wake_link(component, observers)
            } else if component < links + sockets {
                self.wake_socket(component - links, observers)
            } else {
                self.wake_mechanism(component - links - sockets, observers)
            };
            self.wakeups.sleep(component, deadline);
        }
        self.now = self.now.max(until);
    }

    /// Simulated time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Wake-ups processed so far.
    pub fn events_processed(&self) -> u64 {
        self.events_processed
    }

    #[inline]
    fn wake_link(&mut self, index: u32, observers: &mut Observers<'_>) -> Option<Instant> {
        loop {
            let LinkState { link, to } = &mut self.links[index as usize];
            let (output, node) = (link.poll(self.now), *to);
            let deadline = link.next_deadline();
            match output {
                None => return deadline,
                Some(Output::Deliver(packet)) => self.arrive(node, packet, observers),
                Some(Output::Drop(packet, reason)) => {
                    self.discard(packet, reason, Source::Link(index), observers);
                }
            }
            // Nothing a delivery causes can reach this link again at this instant.
            if deadline.is_none_or(|due| due > self.now) {
                return deadline;
            }
        }
    }

    fn wake_socket(&mut self, index: u32, observers: &mut Observers<'_>) -> Option<Instant> {
        let now = self.now;
        self.call(index, observers, |socket, io| match socket.open_at {
            Some(at) if at <= now => {
                socket.open_at = None;
                socket.endpoint.connect(now, io);
            }
            Some(_) => {}
            // Woken too early when the deadline has moved: then there is nothing to do yet.
            None if socket.endpoint.next_deadline().is_some_and(|due| due <= now) => {
                socket.endpoint.on_timer(now, io);
            }
            None => {}
        });
        self.sockets[index as usize].next_deadline()
    }

    /// A link delivered a packet to a node.
    #[inline]
    fn arrive(&mut self, node: u32, packet: PacketId, observers: &mut Observers<'_>) {
        let segment = self.packets.segment(packet);
        observers.packet(self.now, node, Direction::Received, segment);
        if self.nodes[node as usize].drops(self.now, segment.flags) {
            return self.discard(packet, DropReason::Outage, Source::Node(node), observers);
        }
        if let Some(mechanism) = self.nodes[node as usize].mechanism
            && let Some(side) = self.side(mechanism, packet)
        {
            return self.hand_over(mechanism, side, packet, observers);
        }
        self.forward(node, packet, observers);
    }

    /// The side from which a packet comes to the mechanism that must see it; `None` when it is no business
    /// of the mechanism, being for this node itself or between others.
    fn side(&self, mechanism: u32, packet: PacketId) -> Option<Side> {
        if !matches!(self.hops[self.packets.hop(packet) as usize], Hop::Link(_)) {
            return None;
        }
        let to = self.socket_of(&self.packets.segment(packet).flow)?;
        let node = |socket: u32| self.sockets[socket as usize].node;
        self.mechanisms[mechanism as usize].side(node(to ^ 1), node(to))
    }

    /// The socket a segment is for.
    fn socket_of(&self, flow: &Flow) -> Option<u32> {
        let socket = match addr::destination(flow)? {
            Destination::Sender(flow) => 2 * flow,
            Destination::Receiver(flow) => 2 * flow + 1,
        };
        ((socket as usize) < self.sockets.len()).then_some(socket)
    }

    /// Gives a packet to a mechanism on its way.
    fn hand_over(
        &mut self,
        mechanism: u32,
        side: Side,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let segment = self.packets.remove(packet);
        let machine = self.mechanisms[mechanism as usize].middlebox();
        machine.on_segment(self.now, side, segment, &mut self.actions);
        let deadline = machine.next_deadline();
        self.carry_out(mechanism, observers);
        let component = self.links.len() + self.sockets.len() + mechanism as usize;
        self.wakeups.arm(component as u32, deadline);
    }

    fn wake_mechanism(&mut self, index: u32, observers: &mut Observers<'_>) -> Option<Instant> {
        let machine = self.mechanisms[index as usize].middlebox();
        if machine.next_deadline().is_some_and(|due| due <= self.now) {
            machine.on_timer(self.now, &mut self.actions);
        }
        let deadline = machine.next_deadline();
        self.carry_out(index, observers);
        deadline
    }

    /// Does what a mechanism asked for.
    fn carry_out(&mut self, mechanism: u32, observers: &mut Observers<'_>) {
        let node = self.mechanisms[mechanism as usize].node;
        let source = Source::Node(node);
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain() {
            match action {
                Action::Forward { segment, .. } => self.send_from(node, segment, observers),
                Action::Inject { segment, .. } => {
                    let Segment { flow, seq, ack, .. } = segment;
                    let ack = ack.unwrap_or_default();
                    let mut events = observers.events(source);
                    events.emit(self.now, || Event::Injected { flow, seq, ack });
                    self.send_from(node, segment, observers);
                }
                Action::Drop { segment, reason } => {
                    observers.dropped(self.now, source, reason, &segment);
                }
            }
        }
        self.actions = actions;
    }

    /// Sends a segment from a node on the path of its flow.
    fn send_from(&mut self, node: u32, segment: Segment<Length>, observers: &mut Observers<'_>) {
        match self.hop_from(node, &segment.flow) {
            Some(hop) => self.originate(node, hop, segment, observers),
            None => {
                observers.dropped(self.now, Source::Node(node), DropReason::NoRoute, &segment);
            }
        }
    }

    /// The hop by which a flow's segments leave a node; `None` when the node is not on their path.
    fn hop_from(&self, node: u32, flow: &Flow) -> Option<u32> {
        let from = &self.sockets[(self.socket_of(flow)? ^ 1) as usize];
        let (mut at, mut hop) = (from.node, from.path);
        while at != node {
            let Hop::Link(link) = self.hops[hop as usize] else { return None };
            at = self.links[link as usize].to;
            hop += 1;
        }
        Some(hop)
    }

    /// Sends a packet on to its next hop.
    #[inline]
    fn forward(&mut self, node: u32, packet: PacketId, observers: &mut Observers<'_>) {
        let hop = self.packets.advance(packet);
        match self.hops[hop as usize] {
            Hop::Link(link) => self.send(node, link, packet, observers),
            Hop::Socket(socket) => self.receive(socket, packet, observers),
            Hop::Nowhere => {
                self.discard(packet, DropReason::NoRoute, Source::Node(node), observers);
            }
        }
    }

    /// A packet has reached its socket.
    #[inline]
    fn receive(&mut self, socket: u32, packet: PacketId, observers: &mut Observers<'_>) {
        let segment = self.packets.remove(packet);
        let now = self.now;
        self.call(socket, observers, |socket, io| {
            socket.endpoint.on_segment(now, segment, io);
            socket.app.poll(now, &mut socket.endpoint, io);
            socket.endpoint.reply(now, io);
        });
        self.arm_socket(socket);
    }

    /// Hands a packet to an outgoing link of the node.
    #[inline]
    fn send(&mut self, node: u32, link: u32, packet: PacketId, observers: &mut Observers<'_>) {
        let out = &mut self.links[link as usize].link;
        match out.send(self.now, packet, self.packets.meta(packet)) {
            Ok(()) => {
                self.wakeups.arm(link, out.next_deadline());
                let segment = self.packets.segment(packet);
                observers.packet(self.now, node, Direction::Sent, segment);
            }
            Err(Dropped(packet, reason)) => {
                self.discard(packet, reason, Source::Link(link), observers);
            }
        }
    }

    /// Calls a socket, and sends what it has to say.
    #[inline]
    fn call(
        &mut self,
        index: u32,
        observers: &mut Observers<'_>,
        action: impl FnOnce(&mut Socket, &mut Io<'_, Length>),
    ) {
        let mut out = std::mem::take(&mut self.outbox);
        let socket = &mut self.sockets[index as usize];
        let events = observers.events(socket.source);
        action(socket, &mut Io { out: &mut out, events });
        let Socket { node, path, .. } = *socket;
        for segment in out.drain(..) {
            self.originate(node, path, segment, observers);
        }
        self.outbox = out;
    }

    /// A node sends a segment that did not come in by a link, beginning with hop number `hop`.
    #[inline]
    fn originate(
        &mut self,
        node: u32,
        hop: u32,
        segment: Segment<Length>,
        observers: &mut Observers<'_>,
    ) {
        let source = Source::Node(node);
        if self.nodes[node as usize].drops(self.now, segment.flags) {
            return observers.dropped(self.now, source, DropReason::Outage, &segment);
        }
        // A segment for the node itself would not leave it.
        let Hop::Link(link) = self.hops[hop as usize] else {
            return observers.dropped(self.now, source, DropReason::NoRoute, &segment);
        };
        let packet = self.packets.insert(hop + 1, segment);
        self.send(node, link, packet, observers);
    }

    #[cold]
    fn discard(
        &mut self,
        packet: PacketId,
        reason: DropReason,
        source: Source,
        observers: &mut Observers<'_>,
    ) {
        let segment = self.packets.remove(packet);
        observers.dropped(self.now, source, reason, &segment);
    }

    #[inline]
    fn arm_socket(&mut self, index: u32) {
        let component = self.links.len() as u32 + index;
        self.wakeups.arm(component, self.sockets[index as usize].next_deadline());
    }

    /// The numbers so far; of the whole run once it is over.
    pub fn metrics(&self) -> RunMetrics {
        let sockets = self.sockets.chunks_exact(2);
        RunMetrics {
            scenario: self.scenario.clone(),
            seed: self.seed,
            duration: self.now.as_secs_f64(),
            events: self.events_processed,
            flows: self
                .flows
                .iter()
                .zip(sockets)
                .map(|(flow, ends)| self.flow_metrics(flow, &ends[0], &ends[1]))
                .collect(),
            links: self
                .link_names
                .iter()
                .zip(&self.links)
                .map(|(name, state)| LinkMetrics::new(name, state.link.counters()))
                .collect(),
            middleboxes: self
                .mechanisms
                .iter()
                .map(|m| m.metrics(&self.node_names[m.node as usize]))
                .collect(),
        }
    }

    fn flow_metrics(&self, flow: &FlowInfo, sender: &Socket, receiver: &Socket) -> FlowMetrics {
        let (tx, rx) = (sender.endpoint.stats(), receiver.endpoint.stats());
        let complete = flow.bytes.is_some_and(|bytes| rx.bytes_delivered >= bytes.get());
        let end = match &receiver.app {
            App::Sink(sink) if complete => sink.last_delivery(),
            _ => self.now,
        };
        let active = end.since(flow.start).as_secs_f64();
        let per_active_second = |n: u64| if active > 0.0 { n as f64 / active } else { 0.0 };
        let sent_once = tx.data_segments_sent - tx.segments_retransmitted;
        FlowMetrics {
            name: flow.name.clone(),
            throughput: 8.0 * per_active_second(tx.data_bytes_sent),
            goodput: 8.0 * per_active_second(rx.bytes_delivered),
            download_time: complete.then_some(active),
            delivered_bytes: rx.bytes_delivered,
            sent_bytes: tx.data_bytes_sent,
            data_segments_sent: tx.data_segments_sent,
            retransmission_ratio: tx.segments_retransmitted as f64 / sent_once.max(1) as f64,
            cwnd: sender.endpoint.cwnd(),
            ssthresh: sender.endpoint.ssthresh(),
            rto: sender.endpoint.rto().as_secs_f64(),
            srtt: sender.endpoint.rtt().map(|rtt| rtt.srtt.as_secs_f64()),
            cwnd_reductions: tx.cwnd_reductions,
            timeouts: tx.timeouts,
            fast_retransmits: tx.fast_retransmits,
            spurious_retransmits: rx.duplicate_segments_received,
            acks_sent: rx.acks_sent,
            state: format!("{:?}", sender.endpoint.state()),
            aborted: sender.endpoint.aborted().map(|reason| format!("{reason:?}")),
        }
    }
}

/// The paths of all flows, one after the other, and where those of each flow start: of what its sender
/// sends, and of what its receiver sends.
fn hops(scenario: &Scenario) -> (Vec<Hop>, Vec<[u32; 2]>) {
    let pairs: Vec<_> =
        scenario.flows.iter().flat_map(|f| [(f.from, f.to), (f.to, f.from)]).collect();
    let paths = routing::shortest_paths(scenario.nodes.len(), &scenario.links, &pairs);
    let mut hops = Vec::new();
    let mut starts = Vec::new();
    for (socket, path) in (0u32..).zip(paths) {
        starts.push(hops.len() as u32);
        match path {
            Some(links) => {
                hops.extend(links.iter().map(|&link| Hop::Link(link)));
                // Sockets come in pairs: what one sends, the other receives.
                hops.push(Hop::Socket(socket ^ 1));
            }
            None => hops.push(Hop::Nowhere),
        }
    }
    (hops, starts.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
}
