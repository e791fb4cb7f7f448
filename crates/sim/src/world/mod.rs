//! The simulated world: nodes, links, wireless channels, endpoints, applications and middleboxes, driven by
//! one event queue.
//!
//! A packet costs one event a hop: the wake-up of the link that delivers it, in which the next link takes
//! it (or the endpoint, whose answer goes out at once); over a wireless channel a few, for the channel looks
//! ahead to the next thing that shows. Everything a component says ("send this", "wake me then") is carried out
//! here; no component knows another.
//!
//! Addresses: node `i` is 10.0.0.0 + `i` + 1; see [`addr`] for the ports.

pub mod addr;
mod cbr;
mod mechanism;
mod outages;
mod packets;
mod routing;
mod signals;

use crate::apps::{App, BulkSource, Sink};
use crate::engine::Wakeups;
use crate::metrics::{FlowMetrics, LinkMetrics, RunMetrics, StationMetrics};
use crate::packet::Packet;
use crate::scenario::model::{FlowSpec, Node, NodeId, OutageLayer, Scenario, Wlan};
use crate::trace::{Direction, PacketTap};
use addr::Destination;
use airtcp_core::event::DropReason;
use airtcp_core::{
    Bytes, Duration, Event, Events, Flags, Flow, Instant, Length, LinkSignal, Segment, SeqNum,
    Source, Stream, Subscriber,
};
use airtcp_edge::{Action, Actions, Middlebox, MobileId, Side};
use airtcp_net::config::Schedule;
use airtcp_net::wifi::{self, Channel, Receiver, StationId, StationStreams};
use airtcp_net::{AboveMac, Dropped, Link, LinkStreams, Output};
use airtcp_tcp::{Endpoint, Io};
use cbr::Cbr;
use mechanism::EdgeNode;
pub(crate) use outages::OutageWatch;
use packets::{PacketId, Packets};
use routing::Edge;
use signals::{Feed, Listener};

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

    fn dropped(&mut self, at: Instant, source: Source, reason: DropReason, packet: &Packet) {
        let (flow, seq, len) = packet.summary();
        self.events(source).emit(at, || Event::Dropped { reason, flow, seq, len });
    }

    #[inline]
    fn packet(&mut self, at: Instant, node: u32, dir: Direction, packet: &Packet) {
        if let Some(tap) = &mut self.packets {
            tap.on_packet(at, NodeId(node), dir, packet);
        }
    }
}

/// Where a packet goes next. A path is a run of these in [`World::hops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hop {
    /// Over this link.
    Link(u32),
    /// By radio, as [`World::radio_hops`] says.
    Radio(u32),
    /// To this socket, on the node it has reached.
    Socket(u32),
    /// To the receiver of this source of cross traffic, on the node it has reached.
    Sink(u32),
    /// Not yet anywhere: the packet has crossed the first hop of this saturated source, which may send the
    /// next one. Then as the next hop says.
    Crossed(u32),
    /// There is no path.
    Nowhere,
}

/// A unidirectional link and where it leads.
struct LinkState {
    link: Link<PacketId>,
    to: u32,
}

/// A wireless channel, and which nodes its stations are.
struct ChannelState {
    channel: Channel<PacketId>,
    nodes: Vec<u32>,
}

/// From a station to another one in its range.
#[derive(Clone, Copy, Debug)]
struct RadioHop {
    channel: u32,
    from: StationId,
    to: StationId,
    /// The node that has the station `to`.
    node: u32,
}

/// What a node does beyond plain forwarding; most do nothing.
struct NodeState {
    outage: Option<Box<AboveMac>>,
    /// Index into [`World::mechanisms`].
    mechanism: Option<u32>,
}

impl NodeState {
    fn new(node: &Node) -> Self {
        let outage = node.outage.as_ref().filter(|o| o.layer == OutageLayer::AboveMac);
        let outage = outage.map(|o| Box::new(AboveMac::new(o.schedule.clone())));
        Self { outage, mechanism: None }
    }

    #[inline]
    fn drops(&self, now: Instant, packet: &Packet) -> bool {
        let Some(outage) = &self.outage else { return false };
        match packet {
            Packet::Tcp(segment) => outage.drops(now, segment.flags),
            Packet::Udp(_) => outage.drops(now, Flags::empty()),
        }
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
    /// Packets that the MAC of a station gave up.
    mac_drops: u64,
}

/// The numbers of the first component of each kind; the links come first.
#[derive(Clone, Copy, Debug, Default)]
struct Components {
    channels: u32,
    sockets: u32,
    mechanisms: u32,
    cbr: u32,
    feeds: u32,
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
    components: Components,
    links: Vec<LinkState>,
    channels: Vec<ChannelState>,
    radio_hops: Vec<RadioHop>,
    /// Sender and receiver of each flow, in turn.
    sockets: Vec<Socket>,
    /// Of the nodes that have one.
    mechanisms: Vec<EdgeNode>,
    cbr: Vec<Cbr>,
    feeds: Vec<Feed>,
    hops: Vec<Hop>,
    packets: Packets,
    /// What the endpoint being called sends; empty between calls.
    outbox: Vec<Segment<Length>>,
    /// What the mechanism being called wants done; empty between calls.
    actions: Actions<Length>,
    node_names: Vec<String>,
    link_names: Vec<String>,
    flows: Vec<FlowInfo>,
    wlan_names: Vec<String>,
}

impl World {
    /// The state at time zero of this scenario under this seed.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let Scenario { name, duration, nodes, links, wlans, flows, cbr } = scenario;
        let channels: Vec<ChannelState> = wlans.iter().map(|w| channel(w, nodes, seed)).collect();
        let Paths { hops, radio_hops, of_flows, of_cbr } = paths(scenario, &channels);
        let mechanisms: Vec<EdgeNode> = (0..)
            .zip(nodes)
            .filter_map(|(n, node)| Some(EdgeNode::new(n, node.middlebox.as_ref()?)))
            .collect();
        let mut world = Self {
            scenario: name.clone(),
            seed,
            duration: *duration,
            now: Instant::ZERO,
            events_processed: 0,
            wakeups: Wakeups::new(0),
            nodes: nodes.iter().map(NodeState::new).collect(),
            components: Components::default(),
            links: links
                .iter()
                .map(|l| LinkState {
                    link: Link::new(&l.config, LinkStreams::named(seed, &l.name)),
                    to: l.to.0,
                })
                .collect(),
            channels,
            radio_hops,
            sockets: Vec::with_capacity(2 * flows.len()),
            mechanisms,
            cbr: (0..)
                .zip(cbr.iter().zip(of_cbr))
                .map(|(index, (spec, path))| Cbr::new(index, spec, path, seed))
                .collect(),
            feeds: Vec::new(),
            hops,
            packets: Packets::default(),
            outbox: Vec::new(),
            actions: Actions::new(),
            node_names: nodes.iter().map(|n| n.name.clone()).collect(),
            link_names: links.iter().map(|l| l.name.clone()).collect(),
            flows: flows
                .iter()
                .map(|flow| FlowInfo {
                    name: flow.name.clone(),
                    start: start_of(flow, seed),
                    bytes: flow.bytes,
                    mac_drops: 0,
                })
                .collect(),
            wlan_names: wlans.iter().map(|w| w.name.clone()).collect(),
        };
        for (index, mechanism) in (0..).zip(&world.mechanisms) {
            world.nodes[mechanism.node as usize].mechanism = Some(index);
        }
        for (index, (flow, [forward, backward])) in (0..).zip(flows.iter().zip(of_flows)) {
            let FlowSpec { name, from, to, bytes, sender, receiver, .. } = flow;
            let start = world.flows[index as usize].start;
            let mut isn = Stream::new(seed, &format!("flow/{name}/isn"));
            let mut isn = || SeqNum(isn.bits() as u32);
            let tuple = addr::of_flow(index, *from, *to);
            let mut passive = Endpoint::new(receiver.clone(), tuple.reversed(), isn());
            passive.listen();
            world.sockets.push(Socket {
                endpoint: Endpoint::new(sender.clone(), tuple, isn()),
                app: App::Source(BulkSource::new(*bytes, sender.send_buffer)),
                open_at: Some(start),
                node: from.0,
                path: forward,
                source: Source::Sender(index),
            });
            let outages = world.outages_of(scenario, *from, *to, [forward, backward]);
            world.sockets.push(Socket {
                endpoint: passive,
                app: App::Sink(Sink::new(OutageWatch::new(outages, start))),
                open_at: None,
                node: to.0,
                path: backward,
                source: Source::Receiver(index),
            });
        }
        world.feeds = world.feeds_of(scenario);
        world.arm_all();
        world
    }

    /// Numbers the components and lets each sleep to its first deadline.
    fn arm_all(&mut self) {
        let channels = self.links.len() as u32;
        let sockets = channels + self.channels.len() as u32;
        let mechanisms = sockets + self.sockets.len() as u32;
        let cbr = mechanisms + self.mechanisms.len() as u32;
        let feeds = cbr + self.cbr.len() as u32;
        let end = feeds + self.feeds.len() as u32;
        self.components = Components { channels, sockets, mechanisms, cbr, feeds };
        self.wakeups = Wakeups::new(end as usize);
        for (component, socket) in (sockets..).zip(&self.sockets) {
            self.wakeups.arm(component, socket.next_deadline());
        }
        for (component, source) in (cbr..).zip(&self.cbr) {
            self.wakeups.arm(component, source.next_deadline());
        }
        for (component, feed) in (feeds..).zip(&self.feeds) {
            self.wakeups.arm(component, feed.next_deadline());
        }
    }

    /// The outages of a flow's ends, and of the links on its two paths.
    fn outages_of(
        &self,
        scenario: &Scenario,
        from: NodeId,
        to: NodeId,
        paths: [u32; 2],
    ) -> Vec<Schedule> {
        let ends = [from, to].map(|node| scenario.nodes[node.0 as usize].outage.as_ref());
        let ends = ends.into_iter().flatten().map(|outage| outage.schedule.clone());
        let links = paths.into_iter().flat_map(|path| {
            self.hops[path as usize..].iter().map_while(|hop| match hop {
                Hop::Link(link) => Some(scenario.links[*link as usize].config.outage.as_ref()),
                Hop::Radio(_) => Some(None),
                _ => None,
            })
        });
        ends.chain(links.flatten().map(|outage| outage.schedule.clone())).collect()
    }

    /// Who is told of which outages.
    fn feeds_of(&self, scenario: &Scenario) -> Vec<Feed> {
        let outage = |node: u32| scenario.nodes[node as usize].outage.as_ref();
        let mut feeds = Vec::new();
        // At one instant a radio goes before those that are told about it.
        for (c, state) in (0..).zip(&self.channels) {
            for (station, &node) in (0..).map(StationId).zip(&state.nodes) {
                let phy = outage(node).filter(|o| o.layer == OutageLayer::Phy);
                let listener = Listener::Station(c, station);
                feeds.extend(phy.map(|o| Feed::exact(listener, &o.schedule)));
            }
        }
        for (m, mechanism) in (0..).zip(&self.mechanisms) {
            let spec = scenario.nodes[mechanism.node as usize].middlebox.as_ref();
            let Some(signal) = spec.and_then(|spec| spec.signal) else { continue };
            for &mobile in mechanism.mobiles() {
                let Some(outage) = outage(mobile) else { continue };
                let [edge, name] = [mechanism.node, mobile].map(|n| &self.node_names[n as usize]);
                let stream = Stream::new(self.seed, &format!("node/{edge}/signal/{name}"));
                let mobile = MobileId(addr::of_node(NodeId(mobile)));
                let listener = Listener::Mechanism(m, mobile);
                feeds.push(Feed::new(listener, &outage.schedule, signal, stream));
            }
        }
        for (s, socket) in (0..).zip(&self.sockets) {
            let Some(outage) = outage(socket.node) else { continue };
            feeds.push(Feed::warned(Listener::Socket(s), &outage.schedule, outage.warning));
        }
        feeds
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
            let Components { channels, sockets, mechanisms, cbr, feeds } = self.components;
            let deadline = if component < channels {
                self.wake_link(component, observers)
            } else if component < sockets {
                self.wake_channel(component - channels, observers)
            } else if component < mechanisms {
                self.wake_socket(component - sockets, observers)
            } else if component < cbr {
                self.wake_mechanism(component - mechanisms, observers)
            } else if component < feeds {
                self.wake_cbr(component - cbr, observers)
            } else {
                self.wake_feed(component - feeds, observers)
            };
            self.wakeups.sleep(component, deadline);
        }
        self.now = self.now.max(until);
        for state in &mut self.channels {
            state.channel.catch_up(self.now);
        }
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

    #[inline(never)]
    fn wake_channel(&mut self, index: u32, observers: &mut Observers<'_>) -> Option<Instant> {
        while let Some(output) = self.channels[index as usize].channel.poll(self.now) {
            let node = |station: StationId| self.channels[index as usize].nodes[station.0 as usize];
            match output {
                wifi::Output::Deliver { station, packet, .. } => {
                    self.arrive(node(station), packet, observers);
                }
                wifi::Output::Drop { station, packet, reason } => {
                    let source = Source::Node(node(station));
                    if reason == DropReason::Retries {
                        self.count_mac_drop(packet);
                    }
                    self.discard(packet, reason, source, observers);
                }
                // Nobody asks to overhear, and routes are static.
                wifi::Output::Overhear { .. } | wifi::Output::LinkFailure { .. } => {}
            }
        }
        self.channels[index as usize].channel.next_deadline()
    }

    #[cold]
    fn count_mac_drop(&mut self, packet: PacketId) {
        if let Packet::Tcp(segment) = self.packets.packet(packet)
            && let Some(socket) = self.socket_of(&segment.flow)
        {
            self.flows[socket as usize / 2].mac_drops += 1;
        }
    }

    #[inline(never)]
    fn wake_cbr(&mut self, index: u32, observers: &mut Observers<'_>) -> Option<Instant> {
        for _ in 0..self.cbr[index as usize].wake(self.now) {
            let source = &mut self.cbr[index as usize];
            let datagram = source.datagram();
            let (node, path) = (source.node, source.path);
            self.originate(node, path, Packet::Udp(datagram), observers);
        }
        self.cbr[index as usize].next_deadline()
    }

    #[inline(never)]
    fn wake_feed(&mut self, index: u32, observers: &mut Observers<'_>) -> Option<Instant> {
        let listener = self.feeds[index as usize].listener;
        while let Some(signal) = self.feeds[index as usize].poll(self.now) {
            self.tell(listener, signal, observers);
        }
        self.feeds[index as usize].next_deadline()
    }

    fn tell(&mut self, listener: Listener, signal: LinkSignal, observers: &mut Observers<'_>) {
        let now = self.now;
        match listener {
            Listener::Mechanism(mechanism, mobile) => {
                let machine = self.mechanisms[mechanism as usize].middlebox();
                machine.on_link(now, mobile, signal, &mut self.actions);
                self.settle(mechanism, observers);
            }
            Listener::Socket(socket) => {
                self.call(socket, observers, |s, io| s.endpoint.on_link(now, signal, io));
                self.arm_socket(socket);
            }
            Listener::Station(channel, station) => {
                let machine = &mut self.channels[channel as usize].channel;
                machine.set_down(now, station, signal == LinkSignal::Down);
                let deadline = machine.next_deadline();
                self.wakeups.arm(self.components.channels + channel, deadline);
            }
        }
    }

    #[inline(never)]
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
        let seen = self.packets.packet(packet);
        observers.packet(self.now, node, Direction::Received, seen);
        if self.nodes[node as usize].drops(self.now, seen) {
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
    #[inline(never)]
    fn side(&self, mechanism: u32, packet: PacketId) -> Option<Side> {
        if !matches!(self.hops[self.packets.hop(packet) as usize], Hop::Link(_) | Hop::Radio(_)) {
            return None;
        }
        let Packet::Tcp(segment) = self.packets.packet(packet) else { return None };
        let to = self.socket_of(&segment.flow)?;
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
    #[inline(never)]
    fn hand_over(
        &mut self,
        mechanism: u32,
        side: Side,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let Packet::Tcp(segment) = self.packets.remove(packet) else { return };
        let machine = self.mechanisms[mechanism as usize].middlebox();
        machine.on_segment(self.now, side, segment, &mut self.actions);
        self.settle(mechanism, observers);
    }

    /// After a call to a mechanism.
    fn settle(&mut self, mechanism: u32, observers: &mut Observers<'_>) {
        let deadline = self.mechanisms[mechanism as usize].middlebox().next_deadline();
        self.carry_out(mechanism, observers);
        self.wakeups.arm(self.components.mechanisms + mechanism, deadline);
    }

    #[inline(never)]
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
    #[inline(never)]
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
                    observers.dropped(self.now, source, reason, &Packet::Tcp(segment));
                }
            }
        }
        self.actions = actions;
    }

    /// Sends a segment from a node on the path of its flow.
    fn send_from(&mut self, node: u32, segment: Segment<Length>, observers: &mut Observers<'_>) {
        match self.hop_from(node, &segment.flow) {
            Some(hop) => self.originate(node, hop, Packet::Tcp(segment), observers),
            None => {
                let packet = Packet::Tcp(segment);
                observers.dropped(self.now, Source::Node(node), DropReason::NoRoute, &packet);
            }
        }
    }

    /// The hop by which a flow's segments leave a node; `None` when the node is not on their path.
    fn hop_from(&self, node: u32, flow: &Flow) -> Option<u32> {
        let from = &self.sockets[(self.socket_of(flow)? ^ 1) as usize];
        let (mut at, mut hop) = (from.node, from.path);
        while at != node {
            at = match self.hops[hop as usize] {
                Hop::Link(link) => self.links[link as usize].to,
                Hop::Radio(radio) => self.radio_hops[radio as usize].node,
                _ => return None,
            };
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
            Hop::Radio(radio) => self.transmit(node, radio, packet, observers),
            Hop::Socket(socket) => self.receive(socket, packet, observers),
            Hop::Sink(source) => {
                self.packets.remove(packet);
                self.cbr[source as usize].received();
            }
            Hop::Crossed(source) => {
                self.left_first_hop(source, true);
                self.forward(node, packet, observers);
            }
            Hop::Nowhere => {
                self.discard(packet, DropReason::NoRoute, Source::Node(node), observers);
            }
        }
    }

    /// A saturated source has one packet less on its first hop.
    fn left_first_hop(&mut self, source: u32, accepted: bool) {
        let cbr = &mut self.cbr[source as usize];
        cbr.left_first_hop(self.now, accepted);
        self.wakeups.arm(self.components.cbr + source, cbr.next_deadline());
    }

    /// A packet has reached its socket.
    #[inline(never)]
    fn receive(&mut self, socket: u32, packet: PacketId, observers: &mut Observers<'_>) {
        let Packet::Tcp(segment) = self.packets.remove(packet) else { return };
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
                let seen = self.packets.packet(packet);
                observers.packet(self.now, node, Direction::Sent, seen);
            }
            Err(Dropped(packet, reason)) => {
                self.discard(packet, reason, Source::Link(link), observers);
            }
        }
    }

    /// Hands a packet to a radio of the node.
    #[inline]
    fn transmit(&mut self, node: u32, radio: u32, packet: PacketId, observers: &mut Observers<'_>) {
        let RadioHop { channel, from, to, .. } = self.radio_hops[radio as usize];
        let size = self.packets.meta(packet).size;
        let machine = &mut self.channels[channel as usize].channel;
        match machine.send(self.now, from, Receiver::Station(to), packet, size) {
            Ok(()) => {
                let deadline = machine.next_deadline();
                self.wakeups.arm(self.components.channels + channel, deadline);
                let seen = self.packets.packet(packet);
                observers.packet(self.now, node, Direction::Sent, seen);
            }
            Err(Dropped(packet, reason)) => {
                self.discard(packet, reason, Source::Node(node), observers);
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
            self.originate(node, path, Packet::Tcp(segment), observers);
        }
        self.outbox = out;
    }

    /// A node sends a packet that did not come in by a link, beginning with hop number `hop`.
    #[inline]
    fn originate(&mut self, node: u32, hop: u32, packet: Packet, observers: &mut Observers<'_>) {
        let down = self.nodes[node as usize].drops(self.now, &packet);
        let packet = self.packets.insert(hop + 1, packet);
        match self.hops[hop as usize] {
            _ if down => self.discard(packet, DropReason::Outage, Source::Node(node), observers),
            Hop::Link(link) => self.send(node, link, packet, observers),
            Hop::Radio(radio) => self.transmit(node, radio, packet, observers),
            // A packet for the node itself would not leave it.
            _ => self.discard(packet, DropReason::NoRoute, Source::Node(node), observers),
        }
    }

    #[cold]
    fn discard(
        &mut self,
        packet: PacketId,
        reason: DropReason,
        source: Source,
        observers: &mut Observers<'_>,
    ) {
        let next = self.hops.get(self.packets.hop(packet) as usize).copied();
        let packet = self.packets.remove(packet);
        observers.dropped(self.now, source, reason, &packet);
        if let Packet::Udp(datagram) = packet {
            self.cbr[datagram.cbr as usize].dropped();
            if let Some(Hop::Crossed(source)) = next {
                // What the medium took may be replaced at once; what the queue refused, later.
                self.left_first_hop(
                    source,
                    !matches!(reason, DropReason::Queue | DropReason::Outage),
                );
            }
        }
    }

    #[inline]
    fn arm_socket(&mut self, index: u32) {
        let component = self.components.sockets + index;
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
            stations: self.station_metrics(),
            cbr: self.cbr.iter().map(|cbr| cbr.metrics(self.now)).collect(),
            middleboxes: self
                .mechanisms
                .iter()
                .map(|m| m.metrics(&self.node_names[m.node as usize]))
                .collect(),
        }
    }

    fn station_metrics(&self) -> Vec<StationMetrics> {
        let mut metrics = Vec::new();
        for (wlan, ChannelState { channel, nodes }) in self.wlan_names.iter().zip(&self.channels) {
            for (station, &node) in (0..).map(StationId).zip(nodes) {
                let name = format!("{wlan}/{}", self.node_names[node as usize]);
                metrics.push(StationMetrics::new(name, channel.counters(station)));
            }
        }
        metrics
    }

    fn flow_metrics(&self, flow: &FlowInfo, sender: &Socket, receiver: &Socket) -> FlowMetrics {
        let (tx, rx) = (sender.endpoint.stats(), receiver.endpoint.stats());
        let complete = flow.bytes.is_some_and(|bytes| rx.bytes_delivered >= bytes.get());
        let end = match &receiver.app {
            App::Sink(sink) if complete => sink.last_delivery(),
            _ => self.now,
        };
        let outages = match &receiver.app {
            App::Sink(sink) => sink.outages(),
            App::Source(_) => None,
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
            window_probes: tx.window_probes,
            mac_drops: flow.mac_drops,
            outages: outages.map_or(0, OutageWatch::outages),
            outage_dead_time: outages.and_then(OutageWatch::mean_dead_time),
            state: format!("{:?}", sender.endpoint.state()),
            aborted: sender.endpoint.aborted().map(|reason| format!("{reason:?}")),
        }
    }
}

/// When a flow opens its connection.
fn start_of(flow: &FlowSpec, seed: u64) -> Instant {
    if flow.jitter.is_zero() {
        return flow.start;
    }
    let mut stream = Stream::new(seed, &format!("flow/{}/start", flow.name));
    flow.start + stream.duration(Duration::ZERO, flow.jitter)
}

/// A wireless channel at the start of the run.
fn channel(wlan: &Wlan, names: &[Node], seed: u64) -> ChannelState {
    let stations: Vec<_> = wlan.stations.iter().map(|station| station.config).collect();
    let nodes: Vec<u32> = wlan.stations.iter().map(|station| station.node.0).collect();
    let named = |&node: &u32| {
        StationStreams::named(seed, &format!("{}/{}", wlan.name, names[node as usize].name))
    };
    let streams = nodes.iter().map(named);
    ChannelState { channel: Channel::new(&wlan.config, &stations, streams.collect()), nodes }
}

/// The paths of all traffic, one after the other.
struct Paths {
    hops: Vec<Hop>,
    radio_hops: Vec<RadioHop>,
    /// Where those of each flow start: of what its sender sends, and of what its receiver sends.
    of_flows: Vec<[u32; 2]>,
    /// Where those of each source of cross traffic start.
    of_cbr: Vec<u32>,
}

fn paths(scenario: &Scenario, channels: &[ChannelState]) -> Paths {
    let wired = scenario.links.iter().map(|link| Edge { from: link.from, to: link.to });
    let radio_hops: Vec<RadioHop> =
        (0..).zip(channels).flat_map(|(c, s)| neighbours(c, s)).collect();
    let edges: Vec<Edge> = wired
        .chain(radio_hops.iter().map(|hop| {
            let station = &channels[hop.channel as usize].nodes[hop.from.0 as usize];
            Edge { from: NodeId(*station), to: NodeId(hop.node) }
        }))
        .collect();
    let mut pairs: Vec<_> =
        scenario.flows.iter().flat_map(|f| [(f.from, f.to), (f.to, f.from)]).collect();
    pairs.extend(scenario.cbr.iter().map(|cbr| (cbr.from, cbr.to)));
    let paths = routing::shortest_paths(scenario.nodes.len(), &edges, &pairs);

    let links = scenario.links.len() as u32;
    let sockets = 2 * scenario.flows.len() as u32;
    let mut hops = Vec::new();
    let mut starts = Vec::new();
    for (number, path) in (0u32..).zip(paths) {
        starts.push(hops.len() as u32);
        let Some(path) = path else {
            hops.push(Hop::Nowhere);
            continue;
        };
        hops.extend(path.iter().map(|&edge| match edge.checked_sub(links) {
            None => Hop::Link(edge),
            Some(radio) => Hop::Radio(radio),
        }));
        match number.checked_sub(sockets) {
            // Sockets come in pairs: what one sends, the other receives.
            None => hops.push(Hop::Socket(number ^ 1)),
            Some(cbr) => {
                if scenario.cbr[cbr as usize].rate.is_none() {
                    let first = starts[number as usize] as usize;
                    hops.insert(first + 1, Hop::Crossed(cbr));
                }
                hops.push(Hop::Sink(cbr));
            }
        }
    }
    let of_cbr = starts.split_off(sockets as usize);
    let of_flows = starts.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    Paths { hops, radio_hops, of_flows, of_cbr }
}

/// The hops from each station of a channel to those in its range, in the order of the stations.
fn neighbours(channel: u32, state: &ChannelState) -> impl Iterator<Item = RadioHop> + '_ {
    let stations = 0..state.nodes.len() as u32;
    stations.clone().map(StationId).flat_map(move |from| {
        let in_range = move |&to: &StationId| to != from && state.channel.reachable(from, to);
        stations.clone().map(StationId).filter(in_range).map(move |to| RadioHop {
            channel,
            from,
            to,
            node: state.nodes[to.0 as usize],
        })
    })
}
