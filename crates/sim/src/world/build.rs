//! From a scenario to the world at time zero.

use super::cells::Cells;
use super::mechanism::EdgeNode;
use super::packets::Packets;
use super::routers::NodeRouter;
use super::signals::{Feed, Listener};
use super::transfers::{ArrivalProcess, Pool};
use super::warnings::FirstDisturbance;
use super::{
    ChannelState, Component, Components, FeedId, FlowInfo, LinkState, NodeState, QuicEndId,
    RadioLink, Socket, World,
};
use crate::addr;
use crate::apps::dialogue::{Client, Wants};
use crate::apps::tally::Alone;
use crate::apps::udp::UdpSource;
use crate::apps::video::Player;
use crate::apps::{App, BulkSource, Inbox, OnOffSource, OutageWatch, Requests, Sink};
use crate::engine::Wakeups;
use crate::scenario::{
    self, Application, CellId, End, FlowId, FlowSpec, LinkSender, Marks, Node, NodeOutage,
    OutageLayer, Scenario, Station, UdpId, Wlan, WlanId,
};
use airtcp_core::{
    Bytes, Duration, Flow, Histogram, Id, IdVec, Instant, Length, LinkSignal, SeqNum, Stream,
};
use airtcp_edge::{Actions, Middlebox, MobileId};
use airtcp_net::config::Schedule;
use airtcp_net::mobility::Mobility;
use airtcp_net::schedule::Schedules;
use airtcp_net::wifi::level::LevelThresholds;
use airtcp_net::wifi::{Channel, StationConfig, StationId, StationStreams};
use airtcp_net::{AboveMac, Link, LinkStreams};
use airtcp_routing::arp::Arp;
use airtcp_routing::{LinkId, NextHops, NodeId, Router, shortest_path};
use airtcp_tcp::congestion::Controls;
use airtcp_tcp::rto::MAX_UPTIME;
use airtcp_tcp::{Endpoint, Strategies, TcpConfig};
use std::collections::HashMap;
use std::sync::Arc;

impl World {
    /// The state at time zero of this scenario under this seed.
    ///
    /// # Panics
    /// The scenario names a congestion control from outside airtcp
    /// ([`with_controls`](Self::with_controls)).
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        Self::with_controls(scenario, seed, &Controls::default())
    }

    /// The same with congestion controls from outside.
    ///
    /// # Panics
    /// The scenario names one that is not among them: [`Scenario::parse_with`] sees to it.
    pub fn with_controls(scenario: &Scenario, seed: u64, controls: &Controls) -> Self {
        let router = |node: NodeId| {
            let name = &scenario.nodes[node].name;
            scenario.routing.router(node, Stream::new(seed, &format!("node/{name}/routing")))
        };
        Self::build(scenario, seed, controls, router, |_| None)
    }

    /// The same, but each node for which `router` returns a router forwards by it, and the others
    /// by static routes.
    pub fn with_routers(
        scenario: &Scenario,
        seed: u64,
        router: impl FnMut(NodeId) -> Option<Box<dyn Router>>,
    ) -> Self {
        Self::build(scenario, seed, &Controls::default(), router, |_| None)
    }

    /// The same with static routes, but on each node with a middlebox for which `middlebox` returns
    /// another, that one works in its place: on the same segments, with the same signals. Its
    /// counters are not among the metrics.
    pub fn with_middleboxes(
        scenario: &Scenario,
        seed: u64,
        middlebox: impl FnMut(NodeId) -> Option<Box<dyn Middlebox<Length> + Send>>,
    ) -> Self {
        Self::build(scenario, seed, &Controls::default(), |_| None, middlebox)
    }

    fn build(
        scenario: &Scenario,
        seed: u64,
        controls: &Controls,
        router: impl FnMut(NodeId) -> Option<Box<dyn Router>>,
        middlebox: impl FnMut(NodeId) -> Option<Box<dyn Middlebox<Length> + Send>>,
    ) -> Self {
        let scenario = &*scenario.drawn(seed);
        let mut world = Self::network(scenario, seed, controls);
        world.add_mechanisms(scenario, middlebox);
        for (id, flow) in (0..).map(FlowId).zip(&scenario.flows) {
            world.open(scenario, id, flow);
        }
        world.add_quic(scenario);
        world.feeds = world.feeds_of(scenario);
        world.add_routers(scenario, router);
        world.start_on_links();
        if world.routers.is_empty() {
            world.join_links();
        } else {
            world.connect_routers(scenario);
        }
        world.arm_all();
        if world.routers.is_empty() {
            world.find_hosts();
        }
        world
    }

    /// Nodes, links, channels and UDP sources. Mechanisms, sockets and routers are yet to be added.
    fn network(scenario: &Scenario, seed: u64, controls: &Controls) -> Self {
        let Scenario { name, duration, nodes, links, wlans, flows, udp, .. } = scenario;
        let channel = |wlan: &Wlan| channel(scenario, wlan, seed);
        let channels: IdVec<WlanId, ChannelState> = wlans.iter().map(channel).collect();
        let (next_hops, radio_links) = static_routes(scenario, &channels);
        let udp = (0..).map(UdpId).zip(udp).map(|(id, spec)| UdpSource::new(id, spec, seed));
        Self {
            scenario: name.clone(),
            seed,
            duration: *duration,
            now: Instant::ZERO,
            events_processed: 0,
            wakeups: Wakeups::new(0),
            nodes: nodes.iter().map(NodeState::new).collect(),
            components: Components::default(),
            links: links.iter().map(|link| LinkState::new(link, &scenario.cells, seed)).collect(),
            cells: Cells::of(scenario),
            channels,
            next_hops,
            radio_links,
            sockets: IdVec::with_capacity(2 * flows.len()),
            arrivals: IdVec::new(),
            pool: Pool::beside(2 * flows.len()),
            controls: controls.clone(),
            entrances: IdVec::with_capacity(links.len()),
            junctions: IdVec::new(),
            feeders: Vec::new(),
            horizon: Instant::ZERO,
            follows_waits: false,
            going: Vec::new(),
            mechanisms: IdVec::new(),
            udp: udp.collect(),
            quic: IdVec::new(),
            quic_flows: IdVec::new(),
            feeds: IdVec::new(),
            routers: IdVec::new(),
            packets: Packets::new(scenario.queues_look_at_flows()),
            has_marks: flows.iter().any(|flow| flow.marks != Marks::default()),
            outbox: Vec::new(),
            actions: Actions::new(),
            routing_actions: Vec::new(),
            taken: Vec::new(),
            tried: None,
            waiting: Vec::new(),
            node_names: nodes.iter().map(|n| n.name.clone()).collect(),
            link_names: links.iter().map(|l| l.name.clone()).collect(),
            flows: flows.iter().map(|flow| FlowInfo::new(flow, seed)).collect(),
            wlan_names: wlans.iter().map(|w| w.name.clone()).collect(),
            first_disturbances: first_disturbances(scenario),
        }
    }

    /// Tells the sources of datagrams whose first hop is a link which one it is.
    fn start_on_links(&mut self) {
        let Self { nodes, links, next_hops, udp, .. } = self;
        for source in udp.iter_mut().filter(|source| nodes[source.node].router.is_none()) {
            let first = next_hops.link(source.node, source.destination);
            if let Some(link) = first.filter(|link| link.index() < links.len()) {
                source.starts_on(link);
            }
        }
    }

    fn add_mechanisms(
        &mut self,
        scenario: &Scenario,
        mut middlebox: impl FnMut(NodeId) -> Option<Box<dyn Middlebox<Length> + Send>>,
    ) {
        for (id, node) in scenario.nodes.enumerated() {
            let Some(spec) = node.middlebox.as_deref() else { continue };
            let mechanism = EdgeNode::new(id, node, spec, self.seed, &self.controls);
            let mechanism = mechanism.replaced_by(middlebox(id));
            self.nodes[id].mechanism = Some(self.mechanisms.push(mechanism));
        }
    }

    fn add_routers(
        &mut self,
        scenario: &Scenario,
        mut router: impl FnMut(NodeId) -> Option<Box<dyn Router>>,
    ) {
        for node in scenario.nodes.ids() {
            let Some(router) = router(node) else { continue };
            self.nodes[node].router = Some(self.routers.push(NodeRouter::new(node, router)));
        }
    }

    /// Adds the two ends of a flow.
    fn open(&mut self, scenario: &Scenario, id: FlowId, flow: &FlowSpec) {
        let &FlowSpec { marks, .. } = flow;
        let FlowSpec { name, from, to, application, opens, sender, receiver, .. } = flow;
        let start = self.flows[id].start;
        let mut isn = Stream::new(self.seed, &format!("flow/{name}/isn"));
        let mut isn = || SeqNum(isn.bits() as u32);
        let spec =
            |config, node: NodeId| EndpointSpec::new(config, &scenario.nodes[node], self.seed);
        let (sender, receiver) = (spec(sender, *from), spec(receiver, *to));
        let tuple = addr::of_flow(id.0, *from, *to);
        let mut receiving = receiver.endpoint(tuple.reversed(), isn(), &self.controls);
        let mut sending = sender.endpoint(tuple, isn(), &self.controls);
        let outages = self.outages_of(scenario, *from, *to);
        let inbox = Inbox::new(OutageWatch::new(outages, start));
        let buffer = sender.config.send_buffer;
        let stream = |of: &str| Stream::new(self.seed, &format!("flow/{name}/{of}"));
        let dialogue = |wants, inbox| {
            let (client, server) = Client::with_server(wants, inbox, start, buffer);
            [App::Server(Box::new(server)), App::Client(Box::new(client))]
        };
        let sink = |inbox| App::Sink(Sink::new(inbox));
        let apps = match &**application {
            Application::Bulk(bytes) => {
                let source = BulkSource::new(*bytes, buffer);
                [App::Source(source), sink(inbox)]
            }
            Application::OnOff(spec) => {
                let source = OnOffSource::new(spec, start, stream("periods"));
                [App::OnOff(Box::new(source)), sink(inbox)]
            }
            Application::Requests(spec) => {
                let alone = self.alone(scenario, flow, Duration::ZERO);
                let requests = Requests::new(spec.clone(), self.seed, name, alone);
                dialogue(Wants::Requests(Box::new(requests)), inbox)
            }
            Application::Video(spec) => {
                let player = Player::new(spec.clone(), start, stream("requests"));
                dialogue(Wants::Video(Box::new(player)), inbox)
            }
            // Its transfers have connections of their own.
            Application::Arrivals(spec) => {
                let ends = [sender, receiver];
                let way = self.least_delay(scenario, *from, *to);
                let alone = way.and_then(|way| self.alone(scenario, flow, way));
                let process =
                    ArrivalProcess::new(id, flow, spec.clone(), ends, start, self.seed, alone);
                self.flows[id].arrivals = Some(self.arrivals.push(process));
                let idle = BulkSource::new(None, buffer);
                [App::Source(idle), sink(inbox)]
            }
        };
        let is_idle = matches!(**application, Application::Arrivals(_));
        match opens {
            _ if is_idle => {}
            End::Sender => receiving.listen(),
            End::Receiver => sending.listen(),
        }
        let [source, sink] = apps;
        let opens_at = |end| (!is_idle && *opens == end).then_some(start);
        self.sockets.push(Socket {
            endpoint: sending,
            app: source,
            open_at: opens_at(End::Sender),
            node: *from,
            peer: *to,
            flow: id,
            is: End::Sender,
            marks,
        });
        self.sockets.push(Socket {
            endpoint: receiving,
            app: sink,
            open_at: opens_at(End::Receiver),
            node: *to,
            peer: *from,
            flow: id,
            is: End::Receiver,
            marks,
        });
    }

    /// What a transfer of a flow would take alone, after `opening`; `None` if radio is on the way.
    fn alone(&self, scenario: &Scenario, flow: &FlowSpec, opening: Duration) -> Option<Alone> {
        let FlowSpec { from, to, sender, receiver, .. } = flow;
        let way = self.way(scenario, *from, *to)?;
        let there = self.least_delay(scenario, *from, *to)?;
        let back = self.least_delay(scenario, *to, *from)?;
        let options = if sender.timestamps && receiver.timestamps { 12 } else { 0 };
        let end = Instant::ZERO + scenario.duration;
        Some(Alone {
            delay: opening + back + there,
            rates: way.iter().map(|link| link.config.mean_rate(end)).collect(),
            mss: Bytes(sender.mss.into()),
            headers: Bytes(40 + options),
        })
    }

    /// The least delays from one node to another.
    fn least_delay(&self, scenario: &Scenario, from: NodeId, to: NodeId) -> Option<Duration> {
        let way = self.way(scenario, from, to)?;
        Some(way.iter().map(|link| link.config.least_delay()).sum())
    }

    /// The links on the static route from one node to another; `None` if radio is among them, or
    /// there is no route.
    fn way<'a>(
        &self,
        scenario: &'a Scenario,
        from: NodeId,
        to: NodeId,
    ) -> Option<Vec<&'a scenario::Link>> {
        let mut links = Vec::new();
        let mut at = from;
        while at != to {
            let link = scenario.links.get(self.next_hops.link(at, to)?.index())?;
            at = link.to;
            links.push(link);
        }
        Some(links)
    }

    /// Gives routers the interfaces of their nodes.
    fn connect_routers(&mut self, scenario: &Scenario) {
        let Self { nodes, routers, channels, .. } = self;
        let router = |node: NodeId| nodes[node].router;
        for (id, link) in (0..).map(LinkId).zip(&scenario.links) {
            if let Some(router) = router(link.from) {
                routers[router].add_link(link.to, id);
            }
        }
        for (channel, state) in (0..).map(WlanId).zip(channels) {
            for (station, &node) in state.nodes.enumerated() {
                if let Some(router) = router(node) {
                    let router = &mut routers[router];
                    router.add_station(channel, station);
                    state.channel.set_overhearing(station, router.overhears());
                }
            }
        }
    }

    /// Numbers the components and lets each sleep until its first deadline.
    fn arm_all(&mut self) {
        self.components = Components::of(self);
        self.wakeups = Wakeups::new(self.components.len());
        let Self { components, wakeups, .. } = self;
        let mut arm = |component, deadline| wakeups.arm(components.id(component), deadline);
        for (id, socket) in self.sockets.enumerated() {
            arm(Component::Socket(id), socket.next_deadline());
        }
        for (id, source) in self.udp.enumerated() {
            arm(Component::Udp(id), source.next_deadline());
        }
        for (id, feed) in self.feeds.enumerated() {
            arm(Component::Feed(id), feed.next_deadline());
        }
        for (id, router) in self.routers.enumerated() {
            arm(Component::Router(id), router.next_deadline());
        }
        for (id, process) in self.arrivals.enumerated() {
            arm(Component::Arrivals(id), process.next_deadline());
        }
        for (id, socket) in (0..).map(QuicEndId).zip(&mut self.quic) {
            arm(Component::Quic(id), socket.end.next_deadline());
        }
    }

    /// The outages of a flow's ends, and of the links on the static routes between them.
    pub(super) fn outages_of(&self, scenario: &Scenario, from: NodeId, to: NodeId) -> Schedules {
        let ends = [from, to].into_iter().filter_map(|node| scenario.nodes[node].outage.as_ref());
        let of_ends = ends.map(|outage| outage.schedule.clone());
        of_ends.chain(self.link_outages(scenario, from, to)).collect()
    }

    /// When nothing gets through on the path of each TCP flow: from the start of each outage, until
    /// its end or that of the run.
    pub fn outages(&self, scenario: &Scenario) -> Vec<Vec<(Instant, Instant)>> {
        let run = Instant::ZERO..Instant::ZERO + self.duration;
        let of_flow = |flow: &FlowSpec| self.outages_of(scenario, flow.from, flow.to);
        scenario.flows.iter().map(|flow| of_flow(flow).outages_in(&run)).collect()
    }

    /// The outages of the links on the static routes between two nodes.
    fn link_outages(&self, scenario: &Scenario, a: NodeId, b: NodeId) -> Vec<Schedule> {
        let mut outages = Vec::new();
        for (mut at, end) in [(a, b), (b, a)] {
            while at != end
                && let Some(link) = self.next_hops.link(at, end)
            {
                at = match self.radio_link(link) {
                    None => {
                        let link = &scenario.links[link.index()];
                        outages.extend(link.config.interruptions());
                        link.to
                    }
                    Some(radio) => radio.node,
                };
            }
        }
        outages
    }

    /// The signals about a mobile that hears an edge node in its cell at levels below and above the
    /// thresholds.
    fn crossings(
        &self,
        scenario: &Scenario,
        ends: [NodeId; 2],
        level: &LevelThresholds,
    ) -> Vec<(Instant, LinkSignal)> {
        let end = Instant::ZERO + scenario.duration;
        let in_cell = |wlan: &Wlan| {
            let [a, b] = wlan.stations_of(ends)?.map(|it| scenario.movement(it, self.seed));
            Some(level.signals(&wlan.config.radio, [&a, &b], end))
        };
        scenario.wlans.iter().find_map(in_cell).unwrap_or_default()
    }

    /// Who is notified of which outages.
    fn feeds_of(&self, scenario: &Scenario) -> IdVec<FeedId, Feed> {
        let outage = |node: NodeId| scenario.nodes[node].outage.as_ref();
        let schedule_of = |outage: &NodeOutage| Schedules::from_iter([outage.schedule.clone()]);
        let mut feeds = Vec::new();
        // At the same instant, a radio changes before its listeners are notified.
        for (channel, state) in self.channels.enumerated() {
            for (station, &node) in state.nodes.enumerated() {
                let phy = outage(node).filter(|o| o.layer == OutageLayer::Phy);
                let listener = Listener::Station(channel, station);
                feeds.extend(phy.map(|o| Feed::exact(listener, schedule_of(o))));
            }
        }
        for (id, mechanism) in self.mechanisms.enumerated() {
            let spec = scenario.nodes[mechanism.node].middlebox.as_deref();
            let Some(signal) = spec.and_then(|spec| spec.signal) else { continue };
            for &mobile in mechanism.mobiles() {
                let [edge, name] = [mechanism.node, mobile].map(|n| &self.node_names[n]);
                let stream = Stream::new(self.seed, &format!("node/{edge}/signal/{name}"));
                let listener = Listener::Mechanism(id, MobileId::Host(addr::of_node(mobile)));
                if let Some(level) = &signal.level {
                    let crossings = self.crossings(scenario, [mechanism.node, mobile], level);
                    feeds.push(Feed::crossings(listener, crossings, signal, stream));
                    continue;
                }
                let of_links = || self.link_outages(scenario, mechanism.node, mobile);
                let outages =
                    outage(mobile).map_or_else(|| of_links().into_iter().collect(), schedule_of);
                if outages.is_empty() {
                    continue;
                }
                feeds.push(Feed::new(listener, outages, signal, stream));
            }
        }
        for (id, socket) in self.sockets.enumerated() {
            let Some(outage) = outage(socket.node) else { continue };
            feeds.push(Feed::warned(Listener::Socket(id), schedule_of(outage), outage.warning));
        }
        feeds.into()
    }
}

/// What the endpoints of one end of a flow, or of a node that splits flows, have in common.
pub(super) struct EndpointSpec {
    pub(super) config: Arc<TcpConfig>,
    /// If its timers tick and the configuration does not say since when.
    uptime: Option<Duration>,
}

impl EndpointSpec {
    /// On a node, in a run with this seed.
    pub(super) fn new(config: &Arc<TcpConfig>, node: &Node, seed: u64) -> Self {
        let draws_uptime = config.timer_hz.is_some() && config.uptime.is_none();
        let uptime = draws_uptime.then(|| uptime(node, seed));
        Self { config: Arc::clone(config), uptime }
    }

    /// A closed endpoint.
    pub(super) fn endpoint(
        &self,
        flow: Flow,
        isn: SeqNum,
        controls: &Controls,
    ) -> Endpoint<Length> {
        let strategies = Strategies::with_controls(&self.config, controls);
        let mut endpoint =
            Endpoint::with_strategies(Arc::clone(&self.config), flow, isn, strategies);
        if let Some(uptime) = self.uptime {
            endpoint.set_uptime(uptime);
        }
        endpoint
    }
}

impl LinkState {
    fn new(link: &scenario::Link, cells: &IdVec<CellId, scenario::Cell>, seed: u64) -> Self {
        let scenario::Link { name, from, to, config, sender } = link;
        let path = config.reconfiguration.as_ref().map(|_| link.path());
        let mut streams = LinkStreams::named(seed, name);
        if let Some(path) = &path {
            streams = streams.of_path(path);
        }
        let link = Link::new(config, streams);
        let link = match sender {
            LinkSender::Plain => link,
            LinkSender::Mobile => link.from_mobile(),
            LinkSender::InCell(cell) => link.in_cell(&cells[*cell].config, &streams),
        };
        Self { link, from: *from, to: *to, feeds: false, host: None }
    }
}

impl FlowInfo {
    fn new(flow: &FlowSpec, seed: u64) -> Self {
        Self {
            name: flow.name.clone(),
            start: start_of(&flow.name, flow.start, flow.jitter, seed),
            bytes: match *flow.application {
                Application::Bulk(bytes) => bytes,
                _ => None,
            },
            arrivals: None,
            mac_drops: 0,
            no_route_drops: 0,
            ttl_drops: 0,
            waits: Histogram::default(),
        }
    }
}

impl NodeState {
    fn new(node: &Node) -> Self {
        let outage = node.outage.as_ref().filter(|o| o.layer == OutageLayer::AboveMac);
        let outage = outage.map(|o| Box::new(AboveMac::new(o.schedule.clone())));
        Self { outage, mechanism: None, router: None }
    }
}

/// The time at which a flow opens its connection.
pub(super) fn start_of(name: &str, start: Instant, jitter: Duration, seed: u64) -> Instant {
    if jitter.is_zero() {
        return start;
    }
    let mut stream = Stream::new(seed, &format!("flow/{name}/start"));
    start + stream.duration(Duration::ZERO, jitter)
}

/// Uptime of a node at the start of the run.
fn uptime(node: &Node, seed: u64) -> Duration {
    Stream::new(seed, &format!("node/{}/uptime", node.name)).duration(Duration::ZERO, MAX_UPTIME)
}

/// A wireless channel at the start of the run.
fn channel(scenario: &Scenario, wlan: &Wlan, seed: u64) -> ChannelState {
    let nodes = &scenario.nodes;
    let movement = |station: &Station| scenario.movement(station, seed);
    let movements: Vec<Mobility> = wlan.stations.iter().map(movement).collect();
    let position = |m: &Mobility| StationConfig { position: m.position(Instant::ZERO) };
    let stations: Vec<_> = movements.iter().map(position).collect();
    let station_nodes: IdVec<StationId, NodeId> =
        wlan.stations.iter().map(|station| station.node).collect();
    let streams = station_nodes
        .iter()
        .map(|&node| StationStreams::named(seed, &format!("{}/{}", wlan.name, nodes[node].name)));
    let mut channel = Channel::new(&wlan.config, &stations, streams.collect());
    for (station, movement) in (0..).map(StationId).zip(movements) {
        if movement.next_change(Instant::ZERO).is_some() {
            channel.set_mobility(Instant::ZERO, station, movement);
        }
    }
    let mut by_node: Vec<StationId> = station_nodes.ids().collect();
    by_node.sort_by_key(|&station| station_nodes[station]);
    let arps = station_nodes.iter().filter(|_| wlan.arp).map(|&node| Arp::new(node)).collect();
    ChannelState { channel, nodes: station_nodes, by_node, arps }
}

/// The shortest paths of all traffic. A number below the number of links is a link; the others
/// number the radio links in use.
fn static_routes(
    scenario: &Scenario,
    channels: &IdVec<WlanId, ChannelState>,
) -> (NextHops, Vec<RadioLink>) {
    let Scenario { nodes, links, flows, quic, udp, .. } = scenario;
    let wired = links.iter().map(|link| shortest_path::Link { from: link.from, to: link.to });
    let radio_links: Vec<RadioLink> =
        channels.enumerated().flat_map(|(id, state)| in_range(id, state)).collect();
    let radio = radio_links.iter().map(|link| {
        let from = channels[link.channel].nodes[link.from];
        shortest_path::Link { from, to: link.node }
    });
    let all: Vec<_> = wired.chain(radio).collect();
    let flows = flows.iter().map(|flow| (flow.from, flow.to));
    let both_ways = flows.chain(quic.iter().map(|flow| (flow.from, flow.to)));
    let both_ways = both_ways.flat_map(|(from, to)| [(from, to), (to, from)]);
    let pairs: Vec<_> = both_ways.chain(udp.iter().map(|udp| (udp.from, udp.to))).collect();
    let mut next_hops = shortest_path::shortest_paths(nodes.len(), &all, &pairs);

    // Most pairs of stations in range of each other carry no traffic.
    let mut used = Vec::new();
    let mut numbers = HashMap::new();
    next_hops.renumber(|link| {
        let Some(radio) = link.index().checked_sub(links.len()) else { return link };
        *numbers.entry(radio).or_insert_with(|| {
            used.push(radio_links[radio]);
            LinkId::new(links.len() + used.len() - 1)
        })
    });
    (next_hops, used)
}

/// The links from each station of a channel to those in its range, in the order of the stations.
fn in_range(channel: WlanId, state: &ChannelState) -> impl Iterator<Item = RadioLink> + '_ {
    state.nodes.ids().flat_map(move |from| {
        state.channel.in_range_of(from).map(move |to| RadioLink {
            channel,
            from,
            to,
            node: state.nodes[to],
        })
    })
}

/// The first disturbance of each node, link and NAT that has any.
fn first_disturbances(scenario: &Scenario) -> Vec<FirstDisturbance> {
    let of_nodes = scenario.nodes.iter().filter_map(|node| {
        let outage = node.outage.as_ref()?;
        Some((format!("node {}", node.name), outage.schedule.clone()))
    });
    let of_links = scenario
        .links
        .iter()
        .filter_map(|link| Some((format!("link {}", link.name), link.config.interruptions()?)));
    let first = |(whose, schedule): (String, Schedule)| {
        let (start, _) = schedule.next_outage(Instant::ZERO)?;
        Some(FirstDisturbance { whose, start })
    };
    let of_nats = scenario.quic.iter().filter_map(|flow| {
        let start = Instant::ZERO + flow.config.nat_rebind_interval?;
        Some(FirstDisturbance { whose: format!("NAT of flow {}", flow.name), start })
    });
    of_nodes.chain(of_links).filter_map(first).chain(of_nats).collect()
}
