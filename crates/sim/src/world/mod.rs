//! The simulated world: nodes, links, endpoints, applications and middleboxes, driven by one event queue.
//!
//! A packet costs one event a hop: the wake-up of the link that delivers it, in which the next link takes
//! it (or the endpoint, whose answer goes out at once). Everything a component says ("send this", "wake me
//! then") is carried out here; no component knows another.
//!
//! Addresses: node `i` is 10.0.0.0 + `i` + 1; see [`addr`] for the ports.

pub mod addr;
mod packets;
mod routing;

use crate::apps::{App, BulkSource, Sink};
use crate::engine::Wakeups;
use crate::metrics::{FlowMetrics, LinkMetrics, MiddleboxMetrics, RunMetrics};
use crate::scenario::model::{FlowSpec, NodeId, Scenario};
use crate::trace::{Direction, PacketTap};
use airtcp_core::event::DropReason;
use airtcp_core::{
    Bytes, Duration, Event, Events, Flags, Instant, Length, Payload, Segment, SeqNum, Source,
    Stream, Subscriber,
};
use airtcp_net::{AboveMac, Dropped, Link, LinkStreams, Output};
use airtcp_tcp::{Endpoint, Io};
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
        let subscriber = match &mut self.events {
            Some(subscriber) => Some(&mut **subscriber as &mut dyn Subscriber),
            None => None,
        };
        Events::new(subscriber, source)
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
#[derive(Default)]
struct NodeState {
    outage: Option<AboveMac>,
}

impl NodeState {
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
    /// Sender and receiver of each flow, in turn. Component numbers: links first, then sockets.
    sockets: Vec<Socket>,
    hops: Vec<Hop>,
    packets: Packets,
    /// What the endpoint being called sends; empty between calls.
    outbox: Vec<Segment<Length>>,
    link_names: Vec<String>,
    flows: Vec<FlowInfo>,
}

impl World {
    /// The state at time zero of this scenario under this seed.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let Scenario { name, duration, nodes, links, flows } = scenario;
        let (hops, paths) = hops(scenario);
        let mut world = Self {
            scenario: name.clone(),
            seed,
            duration: *duration,
            now: Instant::ZERO,
            events_processed: 0,
            wakeups: Wakeups::new(links.len() + 2 * flows.len()),
            nodes: nodes
                .iter()
                .map(|n| NodeState { outage: n.outage.clone().map(AboveMac::new) })
                .collect(),
            links: links
                .iter()
                .map(|l| LinkState {
                    link: Link::new(&l.config, LinkStreams::named(seed, &l.name)),
                    to: l.to.0,
                })
                .collect(),
            sockets: Vec::with_capacity(2 * flows.len()),
            hops,
            packets: Packets::default(),
            outbox: Vec::new(),
            link_names: links.iter().map(|l| l.name.clone()).collect(),
            flows: flows
                .iter()
                .map(|f| FlowInfo { name: f.name.clone(), start: f.start, bytes: f.bytes })
                .collect(),
        };
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
            let links = self.links.len() as u32;
            let deadline = match component.checked_sub(links) {
                None => self.wake_link(component, observers),
                Some(socket) => self.wake_socket(socket, observers),
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
        self.forward(node, packet, observers);
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
        let stopped = self.nodes[node as usize].drops(self.now, segment.flags);
        let packet = self.packets.insert(hop, segment);
        if stopped {
            return self.discard(packet, DropReason::Outage, Source::Node(node), observers);
        }
        self.forward(node, packet, observers);
    }

    #[cold]
    fn discard(
        &mut self,
        packet: PacketId,
        reason: DropReason,
        source: Source,
        observers: &mut Observers<'_>,
    ) {
        let Segment { flow, seq, payload, .. } = self.packets.remove(packet);
        let len = payload.len() as u32;
        observers.events(source).emit(self.now, || Event::Dropped { reason, flow, seq, len });
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
            middleboxes: Vec::new(),
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
