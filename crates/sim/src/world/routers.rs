//! Nodes whose routes change: drives each node's [`Router`].

use super::World;
use crate::addr;
use crate::packet::Packet;
use crate::world::Observers;
use airtcp_core::event::DropReason;
use airtcp_core::{Event, Instant, Source};
use airtcp_net::wifi::{Receiver, StationId};
use airtcp_routing::router::{Action, Context, NextHop, Notice, PacketId};
use airtcp_routing::{Actions, NodeId, Router};

/// A node's router and the node's interfaces.
pub(super) struct NodeRouter {
    router: Box<dyn Router>,
    node: NodeId,
    /// The neighbours its links lead to, and the links' numbers.
    links: Vec<(NodeId, u32)>,
    /// Its stations, each with its channel.
    stations: Vec<(u32, StationId)>,
}

impl NodeRouter {
    /// For a node without interfaces yet.
    pub(super) fn new(node: NodeId, router: Box<dyn Router>) -> Self {
        Self { router, node, links: Vec::new(), stations: Vec::new() }
    }

    /// Adds a link to a neighbour.
    pub(super) fn add_link(&mut self, to: NodeId, link: u32) {
        self.links.push((to, link));
    }

    /// Adds a radio.
    pub(super) fn add_station(&mut self, channel: u32, station: StationId) {
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
        index: u32,
        observers: &mut Observers<'_>,
    ) -> Option<Instant> {
        if self.routers[index as usize].next_deadline().is_some_and(|due| due <= self.now) {
            self.ask(index, observers, |router, context, out| router.on_timer(context, out));
        }
        self.routers[index as usize].next_deadline()
    }

    /// Gives a node's router a packet, its own node's or a neighbour's.
    #[inline(never)]
    pub(super) fn route(
        &mut self,
        index: u32,
        from: Option<NodeId>,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let packet = self.packets.lend(packet);
        self.ask(index, observers, |router, context, out| {
            router.on_packet(context, from, packet, out);
        });
    }

    /// Tells a node's router that the link layer gave up on a neighbour.
    #[inline(never)]
    pub(super) fn link_failed(
        &mut self,
        index: u32,
        neighbour: NodeId,
        observers: &mut Observers<'_>,
    ) {
        let mut taken = std::mem::take(&mut self.taken);
        taken.drain(..).for_each(|packet| self.give_back(packet));
        self.taken = taken;
        let mut failed = std::mem::take(&mut self.failed);
        self.ask(index, observers, |router, context, out| {
            router.on_link_failure(context, neighbour, failed.drain(..), out);
        });
        self.failed = failed;
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
        let state = &self.nodes[node.0 as usize];
        let Some(router) = state.router else { return };
        if state.drops(self.now, self.packets.packet(packet)) {
            return;
        }
        let packet = self.packets.show(packet);
        self.ask(router, observers, |router, context, out| {
            router.on_overheard(context, from, to, &packet, out);
        });
    }

    /// Takes a packet that a link did not carry out of the network, until the router is told of the
    /// failure.
    pub(super) fn give_back(&mut self, packet: PacketId) {
        if self.packets.leaves_first_hop(packet) {
            self.left_first_hop(packet, true);
        }
        let packet = self.packets.lend(packet);
        self.failed.push(packet);
    }

    /// Whether a packet goes to the head of the interface queue.
    #[inline]
    pub(super) fn is_urgent(&self, node: NodeId, packet: PacketId) -> bool {
        let router = || self.nodes[node.0 as usize].router;
        matches!(self.packets.packet(packet), Packet::Control(_))
            && router().is_some_and(|r| self.routers[r as usize].router.control_first())
    }

    /// Calls a router and does what it asks for.
    fn ask(
        &mut self,
        index: u32,
        observers: &mut Observers<'_>,
        question: impl FnOnce(&mut dyn Router, &Context<'_>, &mut Actions),
    ) {
        // Carrying out its actions may call it again before all are done.
        let mut actions = self.routing_actions.pop().unwrap_or_default();
        let NodeRouter { router, node, .. } = &mut self.routers[index as usize];
        let (node, channels) = (*node, &self.channels);
        let position_of = |node: NodeId| {
            channels.iter().find_map(|state| Some(state.channel.position(state.station(node)?)))
        };
        let context = Context { now: self.now, position_of: &position_of };
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
                Action::Notify(notice) => {
                    let event = match notice {
                        Notice::RouteFailed(to) => Event::RouteFailed { to: addr::of_node(to) },
                        Notice::RouteFound(to) => Event::RouteFound { to: addr::of_node(to) },
                    };
                    observers.events(Source::Node(node.0)).emit(self.now, || event);
                }
            }
        }
        self.routing_actions.push(actions);
        self.wakeups.arm(self.components.routers + index, deadline);
    }

    /// Sends a packet to a neighbour, by a wired link if there is one.
    fn send_to(
        &mut self,
        index: u32,
        neighbour: NodeId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let NodeRouter { node, links, stations, .. } = &self.routers[index as usize];
        let node = *node;
        if let Some(&(_, link)) = links.iter().find(|(to, _)| *to == neighbour) {
            return self.send(node, link, packet, observers);
        }
        let radio = stations.iter().find_map(|&(channel, from)| {
            let to = self.channels[channel as usize].station(neighbour)?;
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
    fn broadcast(&mut self, index: u32, packet: PacketId, observers: &mut Observers<'_>) {
        let node = self.routers[index as usize].node;
        for n in 0.. {
            let Some(&(to, link)) = self.routers[index as usize].links.get(n) else { break };
            let copy = self.packets.copy(packet);
            self.packets.reaches(copy, to);
            self.send(node, link, copy, observers);
        }
        for n in 0.. {
            let stations = &self.routers[index as usize].stations;
            let Some(&(channel, from)) = stations.get(n) else { break };
            let copy = self.packets.copy(packet);
            self.transmit(node, channel, from, Receiver::Broadcast, copy, observers);
        }
        self.packets.remove(packet);
    }
}
