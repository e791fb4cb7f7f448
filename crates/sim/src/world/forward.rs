//! Hop by hop: what a node does with a packet that a link brought, and with one that it sends
//! itself.
//!
//! A packet at its destination is delivered. Any other goes on with its TTL reduced by one: to the
//! node's middlebox if the packet concerns it, then to the next hop. The static routes name the
//! next hop, unless the node has a router.

use super::packets::{Journey, TTL};
use super::{
    ChannelState, Component, LinkState, MechanismId, QuicEndId, RadioLink, SocketId, World,
};
use crate::addr::{self, Destination};
use crate::packet::Packet;
use crate::scenario::WlanId;
use crate::trace::Direction;
use crate::world::Observers;
use airtcp_core::event::DropReason;
use airtcp_core::{Dscp, Event, Flow, Length, Segment, Source};
use airtcp_edge::{Action, Side};
use airtcp_net::Dropped;
use airtcp_net::wifi::{Receiver, StationId};
use airtcp_routing::router::PacketId;
use airtcp_routing::{LinkId, NodeId};

impl World {
    /// A link, or the radio in a cell, brought a packet to a node from a neighbour.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        node: NodeId,
        from: NodeId,
        wlan: Option<WlanId>,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let at = self.now;
        observers.packet(|| {
            self.packets.crossing(at, node, Direction::Received, Some(from), wlan, packet)
        });
        let seen = self.packets.packet(packet);
        let state = &self.nodes[node];
        let (mechanism, router) = (state.mechanism, state.router);
        if state.drops(self.now, seen) {
            return self.discard(packet, DropReason::Outage, Source::Node(node.0), observers);
        }
        if self.packets.leaves_first_hop(packet) {
            self.left_first_hop(packet, true);
        }
        let destination = self.packets.destination(packet);
        if destination != node {
            let ttl = self.packets.ttl(packet);
            *ttl -= 1;
            if *ttl == 0 {
                let source = Source::Node(node.0);
                return self.discard(packet, DropReason::TtlExpired, source, observers);
            }
            if let Some(mechanism) = mechanism
                && let Some(side) = self.side(mechanism, packet)
            {
                return self.hand_over(mechanism, side, packet, observers);
            }
        }
        if let Some(router) = router {
            self.route(router, Some(from), packet, observers);
        } else if destination == node {
            self.deliver(node, packet, observers);
        } else {
            self.send_on(node, destination, packet, observers);
        }
    }

    /// Sends a packet by the static route to its destination.
    #[inline(always)]
    fn send_on(
        &mut self,
        node: NodeId,
        destination: NodeId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let Some(link) = self.next_hops.link(node, destination) else {
            return self.discard(packet, DropReason::NoRoute, Source::Node(node.0), observers);
        };
        match self.radio_link(link) {
            None => self.send(node, link, packet, observers),
            Some(&RadioLink { channel, from, to, .. }) => {
                self.transmit(node, channel, from, Receiver::Station(to), packet, observers);
            }
        }
    }

    /// A packet has reached its destination node.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        node: NodeId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        match self.packets.packet(packet) {
            Packet::Tcp(segment) => match self.socket_of(&segment.flow) {
                Some(socket) => self.receive(socket, packet, observers),
                None => self.discard(packet, DropReason::NoRoute, Source::Node(node.0), observers),
            },
            Packet::Udp(datagram) => {
                self.udp[datagram.source].received(self.now, datagram);
                self.packets.remove(packet);
            }
            Packet::Quic(_) => self.receive_quic(packet, observers),
            // The node does not speak the protocol.
            Packet::Control(_) => {
                self.packets.remove(packet);
            }
        }
    }

    /// A packet has reached its socket.
    #[inline(never)]
    pub(super) fn receive(
        &mut self,
        socket: SocketId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        if self.follows_waits && socket.is_receiver() {
            let waited = self.packets.journey(packet).waited;
            self.flows[self.sockets[socket].flow].waits.record(waited);
        }
        let hops = TTL.saturating_sub(self.packets.journey(packet).ttl) + 1;
        let now = self.now;
        self.call(socket, observers, |socket, packets, io| {
            let Packet::Tcp(segment) = packets.packet(packet) else { return };
            socket.endpoint.on_segment_over(now, segment, Some(hops), io);
            packets.remove(packet);
            socket.app.poll(now, &mut socket.endpoint, io);
            socket.endpoint.reply(now, io);
        });
        self.arm_socket(socket);
        self.check_transfer(socket, observers);
    }

    /// The socket a segment is for.
    #[inline]
    fn socket_of(&self, flow: &Flow) -> Option<SocketId> {
        match addr::destination(flow)? {
            Destination::Sender(number) => self.pool.socket(number, false),
            Destination::Receiver(number) => self.pool.socket(number, true),
        }
    }

    /// A node sends a packet that no link brought to it.
    #[inline(always)]
    pub(super) fn originate(
        &mut self,
        node: NodeId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let state = &self.nodes[node];
        let router = state.router;
        if state.drops(self.now, self.packets.packet(packet)) {
            self.discard(packet, DropReason::Outage, Source::Node(node.0), observers);
        } else if let Some(router) = router {
            self.route(router, None, packet, observers);
        } else {
            self.send_on(node, self.packets.destination(packet), packet, observers);
        }
    }

    /// Hands a packet to an outgoing link of the node, which may ask for a copy of it.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        node: NodeId,
        link: LinkId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        if self.links[link].link.duplicates() {
            // Which of the two is the copy does not show.
            let first = self.packets.copy(packet);
            self.offer(node, link, first, observers);
        }
        self.offer(node, link, packet, observers);
    }

    /// Hands a packet to an outgoing link of the node.
    #[inline(always)]
    fn offer(
        &mut self,
        node: NodeId,
        link: LinkId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        if let Some(cell) = self.cells.of_link(link) {
            self.expect(cell, observers);
        }
        if self.horizon > self.now {
            self.send_through(self.now, link, packet, false);
            return;
        }
        let LinkState { link: out, to, .. } = &mut self.links[link];
        observers.departures(self.now, link, out);
        let meta = self.packets.meta(packet);
        let sent = out.send(self.now, packet, meta);
        if let Some(tap) = &mut observers.links {
            tap.on_offer(self.now, link, meta.size, sent.is_ok());
        }
        match sent {
            Ok(()) => {
                self.packets.journey(packet).waited += out.latest_wait();
                let component = self.components.id(Component::Link(link));
                self.wakeups.arm(component, out.next_deadline());
                let (at, to) = (self.now, Some(*to));
                observers
                    .packet(|| self.packets.crossing(at, node, Direction::Sent, to, None, packet));
                self.show_service_starts(link, observers);
            }
            Err(Dropped(packet, reason)) => {
                self.discard(packet, reason, Source::Link(link.0), observers);
            }
        }
    }

    /// Hands a packet to a radio of the node, once the address of the neighbour is known.
    #[inline(never)]
    pub(super) fn transmit(
        &mut self,
        node: NodeId,
        channel: WlanId,
        from: StationId,
        to: Receiver,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        match to {
            Receiver::Station(to) if !self.channels[channel].arps.is_empty() => {
                self.resolve(channel, from, to, packet, observers);
            }
            _ => self.enqueue(node, channel, from, to, packet, observers),
        }
    }

    /// Hands a packet to a radio of the node.
    #[inline]
    pub(super) fn enqueue(
        &mut self,
        node: NodeId,
        channel: WlanId,
        from: StationId,
        to: Receiver,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let meta = self.packets.meta(packet);
        let urgent = self.is_urgent(node, packet);
        let ChannelState { channel: machine, nodes, .. } = &mut self.channels[channel];
        let sent = match urgent {
            true => machine.send_urgent(self.now, from, to, packet, meta),
            false => machine.send(self.now, from, to, packet, meta),
        };
        match sent {
            Ok(()) => {
                let deadline = machine.next_deadline();
                self.wakeups.arm(self.components.id(Component::Channel(channel)), deadline);
                let neighbour = match to {
                    Receiver::Station(to) => Some(nodes[to]),
                    Receiver::Broadcast => None,
                };
                let (at, wlan) = (self.now, Some(channel));
                observers.packet(|| {
                    self.packets.crossing(at, node, Direction::Sent, neighbour, wlan, packet)
                });
            }
            Err(Dropped(packet, reason)) => {
                self.discard(packet, reason, Source::Node(node.0), observers);
            }
        }
    }

    /// A packet is lost.
    #[cold]
    pub(super) fn discard(
        &mut self,
        packet: PacketId,
        reason: DropReason,
        source: Source,
        observers: &mut Observers<'_>,
    ) {
        observers.dropped(self.now, source, reason, Some(packet), self.packets.packet(packet));
        match self.packets.packet(packet) {
            Packet::Tcp(segment) => {
                if let Some(socket) = self.socket_of(&segment.flow) {
                    self.flows[self.sockets[socket].flow].dropped(reason);
                }
            }
            Packet::Udp(datagram) => self.udp[datagram.source].dropped(reason),
            Packet::Quic(_) | Packet::Control(_) => {}
        }
        if self.packets.leaves_first_hop(packet) {
            // A packet that the medium took is replaced at once; one that never reached it, later.
            let refused =
                [DropReason::Queue, DropReason::Outage, DropReason::Handover, DropReason::NoRoute];
            self.left_first_hop(packet, !refused.contains(&reason));
        }
        self.packets.remove(packet);
    }

    /// Counts a packet that a MAC gave up.
    #[cold]
    pub(super) fn count_mac_drop(&mut self, packet: PacketId) {
        if let Packet::Tcp(segment) = self.packets.packet(packet)
            && let Some(socket) = self.socket_of(&segment.flow)
        {
            self.flows[self.sockets[socket].flow].mac_drops += 1;
        }
    }

    /// The source of a datagram has one less on the first hop, which took it (`true`) or refused
    /// it.
    #[inline(never)]
    pub(super) fn left_first_hop(&mut self, packet: PacketId, accepted: bool) {
        let Packet::Udp(datagram) = self.packets.packet(packet) else { return };
        let source = &mut self.udp[datagram.source];
        source.left_first_hop(self.now, accepted);
        let component = self.components.id(Component::Udp(datagram.source));
        self.wakeups.arm(component, source.next_deadline());
    }

    /// The side from which a packet reaches the mechanism that must see it; `None` if neither of
    /// its ends is a mobile of the mechanism.
    #[inline(never)]
    fn side(&self, mechanism: MechanismId, packet: PacketId) -> Option<Side> {
        let machine = &self.mechanisms[mechanism];
        match self.packets.packet(packet) {
            Packet::Tcp(segment) => {
                let to = &self.sockets[self.socket_of(&segment.flow)?];
                machine.side(to.peer, to.node)
            }
            Packet::Quic(datagram) if machine.sees_quic() => {
                let from = &self.quic[QuicEndId::of(datagram.source, datagram.from)];
                machine.side(from.node, from.peer)
            }
            Packet::Quic(_) | Packet::Udp(_) | Packet::Control(_) => None,
        }
    }

    /// Passes a packet in transit to a mechanism.
    #[inline(never)]
    fn hand_over(
        &mut self,
        mechanism: MechanismId,
        side: Side,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let journey = *self.packets.journey(packet);
        let Packet::Tcp(segment) = self.packets.packet(packet) else {
            return self.show_quic(mechanism, side, packet, observers);
        };
        let segment = segment.clone();
        self.packets.remove(packet);
        let machine = self.mechanisms[mechanism].middlebox();
        machine.on_segment(self.now, side, segment, &mut self.actions);
        self.settle(mechanism, journey, observers);
    }

    /// After a call to a mechanism about a packet that came from this journey.
    pub(super) fn settle(
        &mut self,
        mechanism: MechanismId,
        journey: Journey,
        observers: &mut Observers<'_>,
    ) {
        let deadline = self.mechanisms[mechanism].middlebox().next_deadline();
        self.carry_out(mechanism, journey, observers);
        self.wakeups.arm(self.components.id(Component::Mechanism(mechanism)), deadline);
    }

    /// Does what a mechanism asked for. The packets it forwards go on with the journey of the one
    /// that came.
    #[inline(never)]
    pub(super) fn carry_out(
        &mut self,
        mechanism: MechanismId,
        journey: Journey,
        observers: &mut Observers<'_>,
    ) {
        let node = self.mechanisms[mechanism].node;
        let source = Source::Node(node.0);
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain() {
            match action {
                Action::Forward { segment, .. } => {
                    self.send_from(node, journey, segment, observers);
                }
                Action::Inject { segment, .. } => {
                    let Segment { flow, seq, ack, .. } = segment;
                    let ack = ack.unwrap_or_default();
                    let mut events = observers.events(source);
                    events.emit(self.now, || Event::Injected { flow, seq, ack });
                    self.send_from(node, Journey::START, segment, observers);
                }
                Action::Drop { segment, reason } => {
                    observers.dropped(self.now, source, reason, None, &Packet::Tcp(segment));
                }
            }
        }
        self.actions = actions;
        for datagram in self.mechanisms[mechanism].take_again() {
            self.send_quic(node, datagram, observers);
        }
    }

    /// The DSCP of a flow's packets with these addresses.
    fn dscp_of(&self, flow: &Flow) -> Dscp {
        let to = if self.has_marks { self.socket_of(flow) } else { None };
        to.map(|to| &self.sockets[to]).map_or(Dscp::DEFAULT, |to| to.marks.of(to.is.opposite()))
    }

    /// Sends a mechanism's segment towards its destination, marked as those of its end.
    fn send_from(
        &mut self,
        node: NodeId,
        journey: Journey,
        segment: Segment<Length>,
        observers: &mut Observers<'_>,
    ) {
        match addr::node(segment.flow.dst.ip) {
            Some(destination) => {
                let dscp = self.dscp_of(&segment.flow);
                let journey = Journey { dscp, ..journey };
                let packet = self.packets.insert_segment(destination, journey, &segment);
                self.originate(node, packet, observers);
            }
            None => {
                let source = Source::Node(node.0);
                let packet = Packet::Tcp(segment);
                observers.dropped(self.now, source, DropReason::NoRoute, None, &packet);
            }
        }
    }
}
