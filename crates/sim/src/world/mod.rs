//! The simulated world: nodes, links, wireless channels, endpoints, applications, middleboxes and
//! routers, driven by one event queue.
//!
//! This file holds the state and the event loop. [`components`] names and numbers what wakes up,
//! [`build`] makes a world from a scenario, [`forward`] moves packets hop by hop, [`through`] does
//! so ahead of time where the outcome is the same, [`junction`] keeps packets in order there,
//! [`cells`] lets the schedulers of cells work, [`routers`] calls the routing protocols of nodes,
//! [`transfers`] makes connections that come and go, [`quic`] serves the ends of QUIC flows,
//! [`report`] sums up the run, and [`warnings`] says what makes its numbers doubtful.
//!
//! A packet costs at most one wake-up per hop: that of the link that delivers it, in which the next
//! link accepts it (or the endpoint, whose answer goes out at once). Over a wireless channel it
//! costs one, too, and another when something else wakes up in between. Everything a component asks
//! for ("send this", "wake me then") is carried out here; no component knows another.
//!
//! Addresses: node `i` is 10.0.0.0 + `i` + 1; see [`crate::addr`] for the ports.

mod arp;
mod build;
mod cells;
mod components;
mod forward;
mod junction;
mod mechanism;
mod packets;
mod quic;
mod report;
mod routers;
mod signals;
mod split;
mod through;
mod transfers;
mod warnings;

use crate::apps::App;
use crate::apps::udp::UdpSource;
use crate::engine::Wakeups;
use crate::packet::{Packet, UDP};
use crate::quic::QuicFlow;
use crate::scenario::{End, FlowId, Marks, QuicId, UdpId, WlanId};
use crate::trace::{AirFrame, Crossing, Direction, LinkTap, PacketTap};
use airtcp_core::event::DropReason;
use airtcp_core::{
    Bytes, Connection, Dscp, Duration, Event, Events, Flags, Histogram, Id, IdVec, Instant, Length,
    LinkSignal, Segment, Source, Subscriber,
};
use airtcp_edge::Actions;
use airtcp_net::wifi::{self, Channel, Monitored, ReceivedFrame, Receiver, SentFrame, StationId};
use airtcp_net::{AboveMac, Arrived, Link, Output, ServiceStart};
use airtcp_routing::arp::Arp;
use airtcp_routing::router::PacketId;
use airtcp_routing::{LinkId, NextHops, NodeId};
use airtcp_tcp::congestion::Controls;
use airtcp_tcp::{Endpoint, Io};
use cells::Cells;
use components::{
    ArrivalsId, Component, Components, FeedId, JunctionId, MechanismId, QuicEndId, RouterId,
    SocketId,
};
use junction::Junction;
use mechanism::EdgeNode;
use packets::{Journey, Packets};
use quic::QuicSocket;
use routers::NodeRouter;
use signals::{Feed, Listener};
pub(crate) use split::SplitCounters;
use through::Entrance;
use transfers::{ArrivalProcess, Pool};
use warnings::FirstDisturbance;

/// The observers of a run. Without them the run is the same, and faster.
#[derive(Default)]
pub struct Observers<'a> {
    /// Receives every event.
    pub events: Option<&'a mut dyn Subscriber>,
    /// Sees every packet.
    pub packets: Option<&'a mut dyn PacketTap>,
    /// Sees what links do; of a world whose links [report](World::report_departures) it.
    pub links: Option<&'a mut dyn LinkTap>,
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
        id: Option<PacketId>,
        packet: &Packet,
    ) {
        let (flow, seq, len) = packet.summary();
        self.events(source).emit(at, || Event::Dropped { reason, flow, seq, len });
        if let Some(tap) = &mut self.packets {
            tap.on_drop(at, source, reason, id, packet);
        }
    }

    /// What has left a link by `now`.
    #[inline]
    fn departures(&mut self, now: Instant, id: LinkId, link: &mut Link<PacketId>) {
        if let Some(tap) = &mut self.links {
            while let Some(departure) = link.next_departure(now) {
                tap.on_departure(id, departure);
            }
        }
    }

    /// The tap, if it wants to know when links begin to serve packets.
    #[inline]
    fn service_starts(&mut self) -> Option<&mut dyn PacketTap> {
        match &mut self.packets {
            Some(tap) if tap.sees_service_starts() => Some(&mut **tap),
            _ => None,
        }
    }

    #[inline]
    fn packet<'p>(&mut self, crossing: impl FnOnce() -> Crossing<'p>) {
        if let Some(tap) = &mut self.packets {
            tap.on_packet(&crossing());
        }
    }
}

/// A unidirectional link and its ends.
struct LinkState {
    link: Link<PacketId>,
    from: NodeId,
    to: NodeId,
    /// True if some other link gets all its packets from this one and others like it.
    feeds: bool,
    /// The socket at its end, if that node is a host ([`through`]).
    host: Option<SocketId>,
}

/// A wireless channel, and which nodes its stations are.
struct ChannelState {
    channel: Channel<PacketId>,
    nodes: IdVec<StationId, NodeId>,
    /// The stations in the order of their nodes.
    by_node: Vec<StationId>,
    /// Address resolution at each station; empty in cells without.
    arps: IdVec<StationId, Arp>,
}

impl ChannelState {
    /// The station of a node, if it has one.
    fn station(&self, node: NodeId) -> Option<StationId> {
        let node_of = |&station: &StationId| self.nodes[station];
        // Where the nodes have consecutive numbers, as those of a group, there is nothing to
        // search.
        let first = node_of(self.by_node.first()?);
        let guess = node.0.wrapping_sub(first.0) as usize;
        if let Some(station) = self.by_node.get(guess).filter(|&it| node_of(it) == node) {
            return Some(*station);
        }
        let at = self.by_node.binary_search_by_key(&node, node_of).ok()?;
        Some(self.by_node[at])
    }
}

/// A radio link, from a station to another in its range.
#[derive(Clone, Copy, Debug)]
struct RadioLink {
    channel: WlanId,
    from: StationId,
    to: StationId,
    /// The node that has the station `to`.
    node: NodeId,
}

/// Functions of a node beyond forwarding by static routes; most nodes have none.
struct NodeState {
    outage: Option<Box<AboveMac>>,
    mechanism: Option<MechanismId>,
    router: Option<RouterId>,
}

impl NodeState {
    #[inline]
    fn drops(&self, now: Instant, packet: &Packet) -> bool {
        let Some(outage) = &self.outage else { return false };
        match packet {
            Packet::Tcp(segment) => outage.drops(now, segment.flags),
            Packet::Udp(_) | Packet::Quic(_) | Packet::Control(_) => {
                outage.drops(now, Flags::empty())
            }
        }
    }
}

/// One end of a flow: endpoint and application.
struct Socket {
    endpoint: Endpoint<Length>,
    app: App,
    /// Time at which the application opens the connection; `None` once it has, and for the passive
    /// end.
    open_at: Option<Instant>,
    node: NodeId,
    /// The node of the other end.
    peer: NodeId,
    flow: FlowId,
    /// The end of the flow that it is.
    is: End,
    /// The DSCPs of the flow's packets.
    marks: Marks,
}

impl Socket {
    /// Its name in events, if it serves this transfer or none.
    fn source(&self, transfer: Option<u64>) -> Source {
        let connection = Connection { flow: self.flow.0, transfer };
        match self.is {
            End::Sender => Source::Sender(connection),
            End::Receiver => Source::Receiver(connection),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Instant> {
        if self.open_at.is_some() {
            return self.open_at;
        }
        match (self.endpoint.next_deadline(), self.app.next_deadline()) {
            (Some(endpoint), Some(app)) => Some(endpoint.min(app)),
            (endpoint, app) => endpoint.or(app),
        }
    }
}

/// State of a flow that only the metrics need.
struct FlowInfo {
    name: String,
    start: Instant,
    bytes: Option<Bytes>,
    arrivals: Option<ArrivalsId>,
    /// Packets that the MAC of a station gave up.
    mac_drops: u64,
    /// Packets for which a node had no route.
    no_route_drops: u64,
    /// Packets whose TTL expired.
    ttl_drops: u64,
    /// Time spent in queues by each segment that reached the receiver.
    waits: Histogram,
}

impl FlowInfo {
    fn dropped(&mut self, reason: DropReason) {
        match reason {
            DropReason::NoRoute => self.no_route_drops += 1,
            DropReason::TtlExpired => self.ttl_drops += 1,
            _ => {}
        }
    }
}

/// A run in progress: one scenario, one seed, one trajectory.
pub struct World {
    scenario: String,
    seed: u64,
    duration: Duration,
    now: Instant,
    events_processed: u64,
    wakeups: Wakeups,
    nodes: IdVec<NodeId, NodeState>,
    components: Components,
    links: IdVec<LinkId, LinkState>,
    cells: Cells,
    channels: IdVec<WlanId, ChannelState>,
    /// Forwarding tables of nodes without a router; radio links are numbered after the links.
    next_hops: NextHops,
    radio_links: Vec<RadioLink>,
    /// Sender and receiver of each flow, alternating, and then those of transfers that arrive.
    sockets: IdVec<SocketId, Socket>,
    /// For the flows whose transfers arrive. The sockets of such a flow itself never open.
    arrivals: IdVec<ArrivalsId, ArrivalProcess>,
    pool: Pool,
    /// For endpoints that are yet to be made.
    controls: Controls,
    /// The way in which packets come to each link.
    entrances: IdVec<LinkId, Entrance>,
    junctions: IdVec<JunctionId, Junction>,
    /// The links that feed others, most downstream first.
    feeders: Vec<LinkId>,
    /// The time up to which [`through`] looks ahead.
    horizon: Instant,
    /// True if the queueing delays of flows are measured.
    follows_waits: bool,
    /// The packets that [`through`] is moving, each with its next link; empty between calls.
    going: Vec<(Arrived, PacketId, LinkId)>,
    /// For the nodes that have one.
    mechanisms: IdVec<MechanismId, EdgeNode>,
    udp: IdVec<UdpId, UdpSource>,
    /// Sender and receiver of each QUIC flow, alternating.
    quic: IdVec<QuicEndId, QuicSocket>,
    quic_flows: IdVec<QuicId, QuicFlow>,
    feeds: IdVec<FeedId, Feed>,
    /// For the nodes that have one.
    routers: IdVec<RouterId, NodeRouter>,
    packets: Packets,
    /// Some flow by TCP has a DSCP.
    has_marks: bool,
    /// Segments sent by the endpoint being called; empty between calls.
    outbox: Vec<Segment<Length>>,
    /// Actions requested by the mechanism being called; empty between calls.
    actions: Actions<Length>,
    /// Lists for what routers ask for, one for each nested call.
    routing_actions: Vec<airtcp_routing::Actions>,
    /// Packets being taken back out of an interface queue; empty between calls.
    taken: Vec<PacketId>,
    /// The packet that a MAC gave up, until its channel reports which link failed.
    tried: Option<airtcp_routing::router::Packet>,
    /// Packets that waited for a failed link; empty between calls.
    waiting: Vec<airtcp_routing::router::Packet>,
    node_names: IdVec<NodeId, String>,
    link_names: Vec<String>,
    flows: IdVec<FlowId, FlowInfo>,
    wlan_names: Vec<String>,
    /// Of each node and link that has any.
    first_disturbances: Vec<FirstDisturbance>,
}

impl World {
    /// Measures the queueing delays of flows, too, which takes about 2 % longer in a network of
    /// links alone; call before the run.
    pub fn measure_queueing_delays(&mut self) {
        self.follows_waits = true;
    }

    /// Runs to the end of the scenario.
    pub fn run(&mut self, observers: &mut Observers<'_>) {
        self.run_until(Instant::ZERO + self.duration, observers);
    }

    /// Makes the links report what leaves them ([`Observers::links`]). Call before the run, whose
    /// results stay the same.
    pub fn report_departures(&mut self) {
        for state in &mut self.links {
            state.link.report_departures();
        }
    }

    /// Runs up to and including `until`. A run in slices gives the same results.
    pub fn run_until(&mut self, until: Instant, observers: &mut Observers<'_>) {
        let observed =
            observers.events.is_some() || observers.packets.is_some() || observers.links.is_some();
        self.look_ahead(if observed { Instant::ZERO } else { until });
        if observers.service_starts().is_some() {
            self.links.iter_mut().for_each(|state| state.link.report_service_starts());
        }
        for channel in self.channels.ids() {
            self.show_air(channel, observers);
        }
        while let Some((now, id)) = self.wakeups.next(until) {
            self.now = now;
            let deadline = match self.components.component(id) {
                Component::Link(link) => {
                    self.wake_link(link, observers);
                    self.deliver_rest(link);
                    let link = &self.links[link].link;
                    let known = link.next_since().map_or(now, |since| since.max(now));
                    self.wakeups.sleep_ahead(id, link.next_deadline(), known);
                    continue;
                }
                Component::Junction(junction) => {
                    let deadline = self.wake_junction(junction);
                    self.wakeups.sleep(id, deadline);
                    continue;
                }
                Component::Channel(channel) => self.wake_channel(channel, until, observers),
                Component::Socket(socket) => self.wake_socket(socket, observers),
                Component::Mechanism(mechanism) => self.wake_mechanism(mechanism, observers),
                Component::Udp(source) => self.wake_udp(source, observers),
                Component::Feed(feed) => self.wake_feed(feed, observers),
                Component::Router(router) => self.wake_router(router, observers),
                Component::Arrivals(arrivals) => self.wake_arrivals(arrivals),
                Component::Quic(end) => self.wake_quic(end, observers),
                Component::Cell(cell) => self.wake_cell(cell, observers),
            };
            self.events_processed += 1;
            self.wakeups.sleep(id, deadline);
        }
        self.now = self.now.max(until);
        for id in self.links.ids() {
            observers.departures(self.now, id, &mut self.links[id].link);
        }
        for state in &mut self.channels {
            state.channel.catch_up(self.now);
        }
        for channel in self.channels.ids() {
            self.show_air(channel, observers);
        }
        if let Some(tap) = &mut observers.packets {
            tap.on_pause(self.now);
        }
    }

    /// The simulated time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Events so far: packets that came out of links, and wake-ups of all other components.
    pub fn events_processed(&self) -> u64 {
        self.events_processed
    }

    /// The radio link with this number, if it is one.
    #[inline]
    fn radio_link(&self, link: LinkId) -> Option<&RadioLink> {
        self.radio_links.get(link.index().wrapping_sub(self.links.len()))
    }

    #[inline]
    fn wake_link(&mut self, index: LinkId, observers: &mut Observers<'_>) {
        loop {
            let LinkState { link, from, to, .. } = &mut self.links[index];
            let (output, from, to) = (link.poll(self.now), *from, *to);
            // Nothing that a delivery causes can come out of this link at this instant.
            let more = link.next_deadline().is_some_and(|due| due <= self.now);
            self.show_service_starts(index, observers);
            let Some(output) = output else { return };
            self.events_processed += 1;
            match output {
                Output::Deliver(packet, passage) => {
                    self.packets.note(packet, passage);
                    self.arrive(to, from, None, packet, observers);
                }
                Output::Drop(packet, reason) => {
                    self.discard(packet, reason, Source::Link(index.0), observers);
                }
            }
            if !more {
                return;
            }
        }
    }

    /// Goes on with a channel until another component wakes up, at most to `until`.
    #[inline(never)]
    fn wake_channel(
        &mut self,
        index: WlanId,
        until: Instant,
        observers: &mut Observers<'_>,
    ) -> Option<Instant> {
        while let Some(output) = self.poll_channel(index, until) {
            self.show_air(index, observers);
            let node = |station: StationId| self.channels[index].nodes[station];
            match output {
                wifi::Output::Deliver { station, from, packet, waited, last } => {
                    let (to, from) = (node(station), node(from));
                    let packet = if last { packet } else { self.packets.copy(packet) };
                    self.packets.journey(packet).waited += waited;
                    self.packets.reaches(packet, to);
                    let arp = !self.channels[index].arps.is_empty();
                    if !(arp && self.take_arp(index, station, packet, observers)) {
                        self.arrive(to, from, Some(index), packet, observers);
                    }
                }
                wifi::Output::Overhear { station, from, to, packet, last } => {
                    let [node, from, to] = [station, from, to].map(node);
                    self.overhear(node, from, to, packet, observers);
                    if last {
                        self.packets.remove(packet);
                    }
                }
                wifi::Output::Drop { station, packet, reason } => {
                    let node = node(station);
                    let given_up = reason == DropReason::Retries;
                    if given_up {
                        self.count_mac_drop(packet);
                    }
                    if given_up && self.nodes[node].router.is_some() {
                        self.tried = Some(self.give_back(packet));
                    } else {
                        self.discard(packet, reason, Source::Node(node.0), observers);
                    }
                }
                wifi::Output::Mark { packet } => self.packets.mark(packet),
                wifi::Output::LinkFailure { station, to } => {
                    let (node, neighbour) = (node(station), node(to));
                    if let Some(router) = self.nodes[node].router {
                        let machine = &mut self.channels[index].channel;
                        machine.take_back(station, to, &mut self.taken);
                        self.link_failed(router, neighbour, observers);
                    }
                }
            }
        }
        self.channels[index].channel.next_deadline()
    }

    /// The next output of a channel, if it comes before another component wakes up.
    #[inline]
    fn poll_channel(&mut self, index: WlanId, until: Instant) -> Option<wifi::Output<PacketId>> {
        let others = self.wakeups.next_besides(self.components.id(Component::Channel(index)));
        let before = Instant::from_nanos(others.as_nanos().saturating_sub(1));
        let channel = &mut self.channels[index].channel;
        // As if it had woken at each deadline: the count must not depend on where a run pauses.
        let output =
            channel.poll_ahead(&mut self.now, before.min(until), &mut self.events_processed);
        self.wakeups.advance(self.now);
        output
    }

    /// Shows an observer which services of a link have started since the last call. Whoever handles
    /// an output of the link calls this first: the packets must still be there.
    #[inline]
    fn show_service_starts(&mut self, index: LinkId, observers: &mut Observers<'_>) {
        if let Some(tap) = observers.service_starts() {
            self.show_service_starts_to(index, tap);
        }
    }

    #[inline(never)]
    fn show_service_starts_to(&mut self, index: LinkId, tap: &mut dyn PacketTap) {
        let LinkState { link, from, to, .. } = &mut self.links[index];
        while let Some(ServiceStart { at, item, marked }) = link.next_service_start() {
            let sent = self.packets.crossing(at, *from, Direction::Sent, Some(*to), None, item);
            tap.on_service_start(&sent, marked);
        }
    }

    /// Shows an observer what was on the air since the last call. Whoever handles an output of the
    /// channel calls this first: the packets in the frames must still be there.
    #[inline]
    fn show_air(&mut self, index: WlanId, observers: &mut Observers<'_>) {
        if let Some(tap) = observers.packets.as_deref_mut().filter(|tap| tap.sees_frames()) {
            self.show_air_to(index, tap);
        }
    }

    #[inline(never)]
    fn show_air_to(&mut self, wlan: WlanId, tap: &mut dyn PacketTap) {
        let ChannelState { channel, nodes, .. } = &mut self.channels[wlan];
        let node = |station: StationId| nodes[station];
        let Monitored { sent, received } = channel.monitor();
        for SentFrame { number, at, duration, reserves, from, to, sent_at, content } in sent {
            let from = node(from);
            let to = match to {
                Receiver::Station(to) => Some(node(to)),
                Receiver::Broadcast => None,
            };
            let content = content.map(|packet| {
                self.packets.crossing(at, from, Direction::Sent, to, Some(wlan), packet)
            });
            let frame =
                AirFrame { wlan, number, at, duration, reserves, from, to, sent_at, content };
            tap.on_frame(&frame);
        }
        for ReceivedFrame { frame, station, .. } in received {
            tap.on_reception(wlan, frame, node(station));
        }
    }

    #[inline(never)]
    fn wake_udp(&mut self, index: UdpId, observers: &mut Observers<'_>) -> Option<Instant> {
        match self.udp[index].saturates() {
            Some(link) => self.saturate(link, index, observers),
            None => {
                for _ in 0..self.udp[index].wake(self.now) {
                    self.send_datagram(index, observers);
                }
            }
        }
        self.udp[index].next_deadline()
    }

    /// Sends until a packet of the source waits in front of the link.
    fn saturate(&mut self, link: LinkId, index: UdpId, observers: &mut Observers<'_>) {
        let now = self.now;
        let flow = self.packets.flow_number(&self.udp[index].flow, UDP);
        let next = loop {
            if let Some(next) = self.links[link].link.next_service(now, flow) {
                break next;
            }
            let before = self.udp[index].dropped;
            let size = self.send_datagram(index, observers);
            let link = &self.links[link].link;
            let wait = if self.udp[index].dropped > before {
                // It takes as much of the link's time as a packet that is lost on the way.
                link.rate().transmission_time(size).max(Duration::from_nanos(1))
            } else {
                link.latest_wait()
            };
            if !wait.is_zero() {
                break now + wait;
            }
        };
        self.udp[index].waits_until(next);
    }

    /// The source sends a packet of the size returned.
    fn send_datagram(&mut self, index: UdpId, observers: &mut Observers<'_>) -> Bytes {
        let source = &mut self.udp[index];
        let datagram = Packet::Udp(source.datagram(self.now));
        let size = datagram.wire_len();
        let (node, destination) = (source.node, source.destination);
        let journey = Journey::marked(source.dscp);
        let datagram = self.packets.insert(destination, journey, datagram);
        self.originate(node, datagram, observers);
        size
    }

    #[inline(never)]
    fn wake_feed(&mut self, index: FeedId, observers: &mut Observers<'_>) -> Option<Instant> {
        let listener = self.feeds[index].listener;
        while let Some(signal) = self.feeds[index].poll(self.now) {
            self.tell(listener, signal, observers);
        }
        self.feeds[index].next_deadline()
    }

    fn tell(&mut self, listener: Listener, signal: LinkSignal, observers: &mut Observers<'_>) {
        let now = self.now;
        match listener {
            Listener::Mechanism(mechanism, mobile) => {
                let machine = self.mechanisms[mechanism].middlebox();
                machine.on_link(now, mobile, signal, &mut self.actions);
                self.settle(mechanism, Journey::START, observers);
            }
            Listener::Socket(socket) => {
                self.call(socket, observers, |s, _, io| s.endpoint.on_link(now, signal, io));
                self.arm_socket(socket);
            }
            Listener::Station(channel, station) => {
                let machine = &mut self.channels[channel].channel;
                machine.set_down(now, station, signal == LinkSignal::Down);
                let deadline = machine.next_deadline();
                self.wakeups.arm(self.components.id(Component::Channel(channel)), deadline);
            }
        }
    }

    #[inline(never)]
    fn wake_socket(&mut self, index: SocketId, observers: &mut Observers<'_>) -> Option<Instant> {
        let now = self.now;
        self.call(index, observers, |socket, _, io| match socket.open_at {
            Some(at) if at <= now => {
                socket.open_at = None;
                socket.endpoint.connect(now, io);
            }
            Some(_) => {}
            // If the deadlines have moved later, there is nothing to do yet.
            None => {
                let is_due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
                if is_due(socket.endpoint.next_deadline()) {
                    socket.endpoint.on_timer(now, io);
                }
                if is_due(socket.app.next_deadline()) {
                    socket.app.poll(now, &mut socket.endpoint, io);
                }
            }
        });
        self.check_transfer(index, observers);
        self.sockets[index].next_deadline()
    }

    #[inline(never)]
    fn wake_mechanism(
        &mut self,
        index: MechanismId,
        observers: &mut Observers<'_>,
    ) -> Option<Instant> {
        let machine = self.mechanisms[index].middlebox();
        if machine.next_deadline().is_some_and(|due| due <= self.now) {
            machine.on_timer(self.now, &mut self.actions);
        }
        let deadline = machine.next_deadline();
        self.carry_out(index, Journey::START, observers);
        deadline
    }

    /// Calls a socket, and sends what it has to say.
    #[inline]
    fn call(
        &mut self,
        index: SocketId,
        observers: &mut Observers<'_>,
        action: impl FnOnce(&mut Socket, &mut Packets, &mut Io<'_, Length>),
    ) {
        let socket = &mut self.sockets[index];
        let transfer = observers.events.as_ref().and_then(|_| self.pool.transfer_of(index));
        let events = observers.events(socket.source(transfer));
        action(socket, &mut self.packets, &mut Io { out: &mut self.outbox, events });
        if !self.outbox.is_empty() {
            let Socket { node, peer, is, marks, .. } = *socket;
            self.send_outbox(node, peer, marks.of(is), observers);
        }
    }

    /// Sends what an endpoint on this node had to say to its peer.
    #[inline(never)]
    fn send_outbox(
        &mut self,
        node: NodeId,
        peer: NodeId,
        dscp: Dscp,
        observers: &mut Observers<'_>,
    ) {
        // What this causes may call another endpoint.
        let mut out = std::mem::take(&mut self.outbox);
        for segment in &out {
            let packet = self.packets.insert_segment(peer, Journey::marked(dscp), segment);
            self.originate(node, packet, observers);
        }
        out.clear();
        self.outbox = out;
    }

    #[inline]
    fn arm_socket(&mut self, index: SocketId) {
        let component = self.components.id(Component::Socket(index));
        let deadline = self.sockets[index].next_deadline();
        self.wakeups.arm_ahead(component, deadline, self.now);
    }
}
