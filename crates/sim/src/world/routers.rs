//! Nodes whose routes change: drives each node's [`Router`].

use super::{ChannelState, Component, RouterId, World};
use crate::addr;
use crate::packet::Packet;
use crate::scenario::WlanId;
use crate::world::Observers;
use airtcp_core::event::DropReason;
use airtcp_core::{Event, Instant, Source};
use airtcp_net::wifi::{Receiver, StationId};
use airtcp_routing::router::{self, Action, Context, NextHop, Notice, PacketId};
use airtcp_routing::{Actions, LinkFailure, LinkId, NodeId, Router};

/// A node's router and the node's interfaces.
pub(super) struct NodeRouter {
    router: Box<dyn Router>,
    node: NodeId,
    /// The neighbours its links lead to, and the links' numbers.
    links: Vec<(NodeId, LinkId)>,
    /// Its stations, each with its channel.
    stations: Vec<(WlanId, StationId)>,
}

impl NodeRouter {
    /// For a node without interfaces yet.
    pub(super) fn new(node: NodeId, router: Box<dyn Router>) -> Self {
        Self { router, node, links: Vec::new(), stations: Vec::new() }
    }

    /// Adds a link to a neighbour.
    pub(super) fn add_link(&mut self, to: NodeId, link: LinkId) {
        self.links.push((to, link));
    }

    /// Adds a radio.
    pub(super) fn add_station(&mut self, channel: WlanId, station: StationId) {
        self.stations.push((channel, station));
    }

    pub(super) fn overhears(&self) -> bool {
        self.router.overhears()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.router.next_deadline()
    }
}

impl World {
    #[inline(never)]
    pub(super) fn wake_router(
        &mut self,
        index: RouterId,
        observers: &mut Observers<'_>,
    ) -> Option<Instant> {
        if self.routers[index].next_deadline().is_some_and(|due| due <= self.now) {
            self.ask(index, observers, |router, context, out| router.on_timer(context, out));
        }
        self.routers[index].next_deadline()
    }

    /// Gives a node's router a packet, its own node's or a neighbour's.
    #[inline(never)]
    pub(super) fn route(
        &mut self,
        index: RouterId,
        from: Option<NodeId>,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let packet = self.packets.lend(packet);
        self.ask(index, observers, |router, context, out| {
            router.on_packet(context, from, packet, out);
        });
    }

    /// Reports to a node's router that the link layer gave up on a neighbour.
    #[inline(never)]
    pub(super) fn link_failed(
        &mut self,
        index: RouterId,
        neighbour: NodeId,
        observers: &mut Observers<'_>,
    ) {
        let tried = self.tried.take();
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut taken = std::mem::take(&mut self.taken);
        waiting.extend(taken.drain(..).map(|packet| self.give_back(packet)));
        self.taken = taken;
        self.ask(index, observers, |router, context, out| {
            let failure = LinkFailure { neighbour, tried, waiting: waiting.drain(..) };
            router.on_link_failure(context, failure, out);
        });
        self.waiting = waiting;
    }

    /// Lets a node's router overhear a packet.
    pub(super) fn overhear(
        &mut self,
        node: NodeId,
        from: NodeId,
        to: NodeId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let state = &self.nodes[node];
        let Some(router) = state.router else { return };
        if state.drops(self.now, self.packets.packet(packet)) {
            return;
        }
        let packet = self.packets.show(packet);
        self.ask(router, observers, |router, context, out| {
            router.on_overheard(context, from, to, &packet, out);
        });
    }

    /// A packet that a link did not carry, for the router of its node.
    pub(super) fn give_back(&mut self, packet: PacketId) -> router::Packet {
        if self.packets.leaves_first_hop(packet) {
            self.left_first_hop(packet, true);
        }
        self.packets.lend(packet)
    }

    /// True if a packet goes to the head of the interface queue.
    #[inline]
    pub(super) fn is_urgent(&self, node: NodeId, packet: PacketId) -> bool {
        let router = || self.nodes[node].router;
        matches!(self.packets.packet(packet), Packet::Control(_))
            && router().is_some_and(|r| self.routers[r].router.control_first())
    }

    /// Calls a router and does what it asks for.
    fn ask(
        &mut self,
        index: RouterId,
        observers: &mut Observers<'_>,
        question: impl FnOnce(&mut dyn Router, &Context<'_>, &mut Actions),
    ) {
        // Carrying out its actions may call it again before all are done.
        let mut actions = self.routing_actions.pop().unwrap_or_default();
        let NodeRouter { router, node, .. } = &mut self.routers[index];
        let (node, now, channels) = (*node, self.now, &self.channels);
        let position_of = |node: NodeId| {
            let at = |state: &ChannelState| Some(state.channel.position(state.station(node)?, now));
            channels.iter().find_map(at)
        };
        let context = Context { now, position_of: &position_of };
        question(router.as_mut(), &context, &mut actions);
        let deadline = router.next_deadline();
        for action in actions.drain() {
            match action {
                Action::Send { packet, to } => {
                    let packet = self.packets.take_back(packet, node, to);
                    match to {
                        NextHop::Node(to) => self.send_to(index, to, packet, observers),
                        NextHop::Broadcast => self.broadcast(index, packet, observers),
                    }
                }
                Action::Deliver(data) => self.deliver(node, data.id, observers),
                Action::Drop { packet, reason } => {
                    self.discard(packet.id, reason, Source::Node(node.0), observers);
                }
                Action::Clear(neighbour) => self.clear(index, neighbour, observers),
                Action::Notify(notice) => self.notify(node, notice, observers),
            }
        }
        self.routing_actions.push(actions);
        self.wakeups.arm(self.components.id(Component::Router(index)), deadline);
    }

    /// Passes a router's notice to the sockets of its node whose peer is the route's destination.
    fn notify(&mut self, node: NodeId, notice: Notice, observers: &mut Observers<'_>) {
        let (event, peer) = match notice {
            Notice::RouteFailed(to) => (Event::RouteFailed { to: addr::of_node(to) }, to),
            Notice::RouteFound(to) => (Event::RouteFound { to: addr::of_node(to) }, to),
        };
        let now = self.now;
        observers.events(Source::Node(node.0)).emit(now, || event);
        for index in self.sockets.ids() {
            let socket = &self.sockets[index];
            if (socket.node, socket.peer) != (node, peer) {
                continue;
            }
            self.call(index, observers, |socket, _, io| match notice {
                Notice::RouteFailed(_) => socket.endpoint.on_route_failure(now, None, io),
                Notice::RouteFound(_) => socket.endpoint.on_route_restored(now, io),
            });
            self.arm_socket(index);
        }
    }

    /// Drops the packets that wait at the radios of a node to be sent to a neighbour.
    fn clear(&mut self, index: RouterId, neighbour: NodeId, observers: &mut Observers<'_>) {
        let NodeRouter { node, stations, .. } = &self.routers[index];
        let mut taken = std::mem::take(&mut self.taken);
        for &(channel, from) in stations {
            let state = &mut self.channels[channel];
            if let Some(to) = state.station(neighbour) {
                state.channel.take_back(from, to, &mut taken);
            }
        }
        let source = Source::Node(node.0);
        for packet in taken.drain(..) {
            self.discard(packet, DropReason::NoRoute, source, observers);
        }
        self.taken = taken;
    }

    /// Sends a packet to a neighbour, by a wired link if there is one.
    fn send_to(
        &mut self,
        index: RouterId,
        neighbour: NodeId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let NodeRouter { node, links, stations, .. } = &self.routers[index];
        let node = *node;
        if let Some(&(_, link)) = links.iter().find(|(to, _)| *to == neighbour) {
            return self.send(node, link, packet, observers);
        }
        let radio = stations.iter().find_map(|&(channel, from)| {
            let to = self.channels[channel].station(neighbour)?;
            Some((channel, from, to))
        });
        match radio {
            Some((channel, from, to)) => {
                self.transmit(node, channel, from, Receiver::Station(to), packet, observers);
            }
            None => self.discard(packet, DropReason::NoRoute, Source::Node(node.0), observers),
        }
    }

    /// Sends a packet out of every interface of a node.
    fn broadcast(&mut self, index: RouterId, packet: PacketId, observers: &mut Observers<'_>) {
        let NodeRouter { node, ref links, ref stations, .. } = self.routers[index];
        let (wired, interfaces) = (links.len(), links.len() + stations.len());
        if interfaces == 0 {
            return self.packets.remove(packet);
        }
        for n in 0..interfaces {
            let last = n + 1 == interfaces;
            let packet = if last { packet } else { self.packets.copy(packet) };
            let NodeRouter { links, stations, .. } = &self.routers[index];
            match links.get(n) {
                Some(&(to, link)) => {
                    self.packets.reaches(packet, to);
                    self.send(node, link, packet, observers);
                }
                None => {
                    let (channel, from) = stations[n - wired];
                    self.transmit(node, channel, from, Receiver::Broadcast, packet, observers);
                }
            }
        }
    }
}
