//! The ends of QUIC flows in the world: what they send, what reaches them, and when they wake up.

use super::build::start_of;
use super::components::{Component, MechanismId, QuicEndId};
use super::packets::Journey;
use super::{Observers, World};
use crate::addr;
use crate::apps::OutageWatch;
use crate::packet::{Packet, QuicDatagram};
use crate::quic::{Clock, QuicEnd, QuicFlow, Role, Sent};
use crate::scenario::{End, QuicId, QuicSpec, Scenario};
use airtcp_core::{Addr, Dscp, Duration, Flow, Id, Instant};
use airtcp_edge::Side;
use airtcp_routing::NodeId;
use airtcp_routing::router::PacketId;

/// The ports that a NAT gives. They are below those of flows ([`addr`]).
const FIRST_NAT_PORT: u16 = 1_024;
const NAT_PORTS: u16 = 48_000;
/// From one of a client's ports to its next; a prime, so that it passes through all of them.
const NAT_PORT_STEP: u64 = 4_099;

/// One end of a QUIC flow, and its place.
pub(super) struct QuicSocket {
    pub(super) end: QuicEnd,
    pub(super) node: NodeId,
    /// The node of the other end.
    pub(super) peer: NodeId,
    flow: QuicId,
    is: End,
    /// The DSCP of the packets that it sends.
    dscp: Dscp,
    /// Its address, without a NAT.
    own: Addr,
    /// Of a client behind a NAT: see [`QuicConfig::nat_rebind_interval`].
    nat_rebind_interval: Option<Duration>,
    /// Number of its next datagram.
    next: u32,
}

impl QuicSocket {
    /// A datagram as a packet.
    fn datagram(&mut self, now: Instant, Sent { to, payload, ecn }: Sent) -> QuicDatagram {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let Self { flow: source, is: from, .. } = *self;
        let flow = Flow { src: self.address(now), dst: to };
        QuicDatagram { source, from, number, flow, ecn, payload }
    }

    /// Its address as the other end sees it.
    fn address(&self, now: Instant) -> Addr {
        let times = match self.nat_rebind_interval {
            Some(interval) => now.since_start().as_nanos() / interval.as_nanos(),
            None => 0,
        };
        let Addr { ip, port } = self.own;
        let offset = u64::from(port) + times * NAT_PORT_STEP;
        let port = FIRST_NAT_PORT + (offset % u64::from(NAT_PORTS)) as u16;
        if times == 0 { self.own } else { Addr::new(ip, port) }
    }
}

impl World {
    /// Adds the two ends of each QUIC flow.
    pub(super) fn add_quic(&mut self, scenario: &Scenario) {
        let clock = Clock::new();
        for (id, spec) in (0..).map(QuicId).zip(&scenario.quic) {
            let QuicSpec { name, from, to, start, jitter, bytes, opens, config, marks } = spec;
            let start = start_of(name, *start, *jitter, self.seed);
            // UDP sources have the first numbers.
            let tuple = addr::of_flow((scenario.udp.len() + id.index()) as u32, *from, *to);
            let outages = OutageWatch::new(self.outages_of(scenario, *from, *to), start);
            self.quic_flows.push(QuicFlow { name: name.clone(), start, bytes: *bytes });
            let mut add = |is: End, tuple: Flow, role, [node, peer]: [NodeId; 2]| {
                let own = tuple.src;
                let nat_rebind_interval = config.nat_rebind_interval.filter(|_| *opens == is);
                let streams = (self.seed, &*format!("flow/{name}/quic/{}", is.word()));
                let opens_at = (*opens == is).then_some(start);
                let end = QuicEnd::new(clock, config, &tuple, opens_at, role, streams);
                self.quic.push(QuicSocket {
                    end,
                    node,
                    peer,
                    flow: id,
                    is,
                    dscp: marks.of(is),
                    own,
                    nat_rebind_interval,
                    next: 0,
                });
            };
            add(End::Sender, tuple, Role::Source(*bytes), [*from, *to]);
            add(End::Receiver, tuple.reversed(), Role::Sink(outages), [*to, *from]);
        }
    }

    #[inline(never)]
    pub(super) fn wake_quic(
        &mut self,
        index: QuicEndId,
        observers: &mut Observers<'_>,
    ) -> Option<Instant> {
        self.quic[index].end.on_timer(self.now);
        self.send_outbox_of(index, observers);
        self.quic[index].end.next_deadline()
    }

    /// A datagram of QUIC has reached the node of the end that it is for.
    #[inline(never)]
    pub(super) fn receive_quic(&mut self, packet: PacketId, observers: &mut Observers<'_>) {
        let Packet::Quic(datagram) = self.packets.packet(packet) else { return };
        let QuicDatagram { source, from, flow, ecn, payload, .. } = datagram.clone();
        self.packets.remove(packet);
        let index = QuicEndId::of(source, from.opposite());
        let socket = &mut self.quic[index];
        if flow.dst != socket.address(self.now) {
            // The NAT has forgotten this port.
            return;
        }
        socket.end.on_datagram(self.now, flow.src, payload, ecn);
        self.send_outbox_of(index, observers);
        let deadline = self.quic[index].end.next_deadline();
        self.wakeups.arm(self.components.id(Component::Quic(index)), deadline);
    }

    /// Sends what an end had to say.
    fn send_outbox_of(&mut self, index: QuicEndId, observers: &mut Observers<'_>) {
        // What this causes may call the other end.
        let mut outbox = std::mem::take(&mut self.quic[index].end.outbox);
        let node = self.quic[index].node;
        for sent in outbox.drain(..) {
            let datagram = self.quic[index].datagram(self.now, sent);
            self.send_quic(node, datagram, observers);
        }
        self.quic[index].end.outbox = outbox;
    }

    /// Sends a datagram of QUIC from a node towards its destination.
    pub(super) fn send_quic(
        &mut self,
        node: NodeId,
        datagram: QuicDatagram,
        observers: &mut Observers<'_>,
    ) {
        let &QuicSocket { peer: to, dscp, .. } =
            &self.quic[QuicEndId::of(datagram.source, datagram.from)];
        let packet = self.packets.insert(to, Journey::marked(dscp), Packet::Quic(datagram));
        self.originate(node, packet, observers);
    }

    /// A datagram of QUIC passes a mechanism, which sees it and lets it go on.
    pub(super) fn show_quic(
        &mut self,
        mechanism: MechanismId,
        side: Side,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let machine = &mut self.mechanisms[mechanism];
        machine.on_quic(self.now, side, self.packets.packet(packet));
        let node = machine.node;
        self.originate(node, packet, observers);
        let deadline = self.mechanisms[mechanism].middlebox().next_deadline();
        self.wakeups.arm(self.components.id(Component::Mechanism(mechanism)), deadline);
    }
}
