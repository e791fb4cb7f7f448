//! The arena of packets in the network: a slab with a free list, so that steady state allocates
//! nothing.

use crate::addr;
use crate::packet::{Control, Packet, TCP};
use crate::scenario::WlanId;
use crate::trace::{Crossing, Direction};
use airtcp_core::{Dscp, Duration, Ecn, Flow, IdVec, Instant, Length, Payload, Segment};
use airtcp_net::link::{PacketMeta, Passage};
use airtcp_net::queue::flow::flow_number;
use airtcp_routing::NodeId;
use airtcp_routing::router::{self, Data, Message, NextHop, PacketId};
use std::sync::Arc;

/// The TTL of a new packet (the value RFC 1700 recommends, and Linux's).
pub(super) const TTL: u8 = 64;

/// The part of a packet's state that it carries from node to node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Journey {
    /// Number of links it may still cross.
    pub(super) ttl: u8,
    /// The DSCP in its IP header.
    pub(super) dscp: Dscp,
    /// Total time spent in queues.
    pub(super) waited: Duration,
}

impl Journey {
    /// That of a new packet, which is not marked.
    pub(super) const START: Self = Self { ttl: TTL, dscp: Dscp::DEFAULT, waited: Duration::ZERO };

    /// That of a new packet with this DSCP.
    pub(super) const fn marked(dscp: Dscp) -> Self {
        Self { dscp, ..Self::START }
    }
}

/// The destination of a broadcast meant for everyone it reaches.
const ANYBODY: NodeId = NodeId(u32::MAX);

/// The part of a packet that forwarding reads, kept apart from the rest to stay in the cache.
#[derive(Clone, Copy, Debug)]
struct Header {
    /// Its destination node.
    destination: NodeId,
    /// A datagram that its source counts among those on the first hop.
    first_hop: bool,
    journey: Journey,
    meta: PacketMeta,
}

/// All packets in the network.
#[derive(Debug, Default)]
pub(super) struct Packets {
    headers: IdVec<PacketId, Header>,
    packets: IdVec<PacketId, Packet>,
    /// Headers that routers wrote into packets; as long as the last packet with a header requires.
    written: IdVec<PacketId, Option<Arc<dyn Message>>>,
    free: Vec<PacketId>,
    /// Some queue asks for the flows of packets.
    numbers_flows: bool,
}

impl Packets {
    /// No packets yet; `numbers_flows` if some queue asks for the flows of packets.
    pub(super) fn new(numbers_flows: bool) -> Self {
        Self { numbers_flows, ..Self::default() }
    }

    /// The number of a flow for queues ([`PacketMeta::flow`]).
    pub(super) fn flow_number(&self, flow: &Flow, protocol: u8) -> u32 {
        if self.numbers_flows { flow_number(flow, protocol) } else { 0 }
    }

    /// Adds a packet to a node.
    pub(super) fn insert(
        &mut self,
        destination: NodeId,
        journey: Journey,
        packet: Packet,
    ) -> PacketId {
        let (flow, ..) = packet.summary();
        let meta = PacketMeta {
            size: packet.wire_len(),
            flow: self.flow_number(&flow, packet.protocol()),
            data: packet.has_data(),
            ecn: packet.ecn(),
            dscp: journey.dscp,
        };
        let first_hop = matches!(packet, Packet::Udp(_));
        let id = self.place(Header { destination, first_hop, journey, meta });
        self.packets[id] = packet;
        id
    }

    /// Adds a copy of a segment: the same, without a detour over the stack.
    #[inline]
    pub(super) fn insert_segment(
        &mut self,
        destination: NodeId,
        journey: Journey,
        segment: &Segment<Length>,
    ) -> PacketId {
        let meta = PacketMeta {
            size: segment.wire_len(),
            flow: self.flow_number(&segment.flow, TCP),
            data: !segment.payload.is_empty(),
            ecn: segment.ecn,
            dscp: journey.dscp,
        };
        let id = self.place(Header { destination, first_hop: false, journey, meta });
        match &mut self.packets[id] {
            Packet::Tcp(place) => place.clone_from(segment),
            place => *place = Packet::Tcp(segment.clone()),
        }
        id
    }

    /// A place for a packet.
    #[inline]
    fn place(&mut self, header: Header) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.headers[id] = header;
            return id;
        }
        self.packets.push(Packet::Tcp(Segment::default()));
        self.headers.push(header)
    }

    /// A copy of a packet.
    pub(super) fn copy(&mut self, id: PacketId) -> PacketId {
        let written = self.take_written(id);
        let destination = self.destination(id);
        let journey = *self.journey(id);
        let copy = self.insert(destination, journey, self.packets[id].clone());
        // The source counts one packet: the first copy.
        self.headers[copy].first_hop = self.leaves_first_hop(id);
        self.write(copy, written.clone());
        self.write(id, written);
        copy
    }

    /// Removes a packet and frees its place.
    #[inline]
    pub(super) fn remove(&mut self, id: PacketId) {
        self.free.push(id);
        if let Some(written) = self.written.get_mut(id) {
            *written = None;
        }
    }

    #[inline]
    pub(super) fn meta(&self, id: PacketId) -> PacketMeta {
        self.headers[id].meta
    }

    #[inline]
    pub(super) fn packet(&self, id: PacketId) -> &Packet {
        &self.packets[id]
    }

    /// A packet comes out of a queue: adds how long it waited there, and its mark.
    #[inline]
    pub(super) fn note(&mut self, id: PacketId, Passage { waited, marked }: Passage) {
        self.headers[id].journey.waited += waited;
        if marked {
            self.mark(id);
        }
    }

    /// A queue has marked a packet.
    pub(super) fn mark(&mut self, id: PacketId) {
        self.headers[id].meta.ecn = Ecn::Ce;
        self.packets[id].mark();
    }

    /// The view of a packet that an observer gets.
    pub(super) fn crossing(
        &self,
        at: Instant,
        node: NodeId,
        direction: Direction,
        neighbour: Option<NodeId>,
        wlan: Option<WlanId>,
        id: PacketId,
    ) -> Crossing<'_> {
        let Journey { ttl, dscp, .. } = self.headers[id].journey;
        let header = self.written.get(id).and_then(Option::as_deref);
        let packet = self.packet(id);
        Crossing { at, node, direction, neighbour, wlan, ttl, dscp, id, packet, header }
    }

    /// Its destination node.
    #[inline]
    pub(super) fn destination(&self, id: PacketId) -> NodeId {
        self.headers[id].destination
    }

    /// Number of links the packet may still cross.
    #[inline]
    pub(super) fn ttl(&mut self, id: PacketId) -> &mut u8 {
        &mut self.headers[id].journey.ttl
    }

    /// Its journey, and its properties that links look at.
    #[inline]
    pub(super) fn passing(&mut self, id: PacketId) -> (&mut Journey, &PacketMeta) {
        let Header { journey, meta, .. } = &mut self.headers[id];
        (journey, meta)
    }

    /// Its journey so far.
    #[inline]
    pub(super) fn journey(&mut self, id: PacketId) -> &mut Journey {
        &mut self.headers[id].journey
    }

    /// True if it is a datagram that has been on its first hop until now; false from then on.
    #[inline]
    pub(super) fn leaves_first_hop(&mut self, id: PacketId) -> bool {
        let first_hop = &mut self.headers[id].first_hop;
        *first_hop && std::mem::take(first_hop)
    }

    /// Takes what routers wrote into it.
    fn take_written(&mut self, id: PacketId) -> Option<Arc<dyn Message>> {
        let written = self.written.get_mut(id)?.take()?;
        self.headers[id].meta.size -= written.size();
        Some(written)
    }

    /// Writes into a packet that holds nothing yet.
    fn write(&mut self, id: PacketId, message: Option<Arc<dyn Message>>) {
        let Some(message) = message else { return };
        self.headers[id].meta.size += message.size();
        *self.written.reach(id, None) = Some(message);
    }

    /// A broadcast reaches a node, which is where a control packet was to go.
    pub(super) fn reaches(&mut self, id: PacketId, node: NodeId) {
        let header = &mut self.headers[id];
        if header.destination == ANYBODY {
            header.destination = node;
        }
    }

    /// A packet in the hands of a router. Data keeps its place here.
    pub(super) fn lend(&mut self, id: PacketId) -> router::Packet {
        if let Packet::Control(_) = &self.packets[id] {
            let packet = self.show(id);
            self.remove(id);
            return packet;
        }
        let packet = self.show(id);
        self.take_written(id);
        packet
    }

    /// A packet as a router sees it.
    pub(super) fn show(&self, id: PacketId) -> router::Packet {
        let packet = &self.packets[id];
        if let Packet::Control(Control { message, .. }) = packet {
            return router::Packet::Control(Arc::clone(message));
        }
        let Header { destination, journey: Journey { ttl, .. }, .. } = self.headers[id];
        let (flow, ..) = packet.summary();
        // Segments and datagrams are made with the addresses of nodes.
        let source = addr::node(flow.src.ip).unwrap_or(destination);
        let header = self.written.get(id).cloned().flatten();
        router::Packet::Data(Data { id, source, destination, ttl, header })
    }

    /// A packet that the router of node `from` sends.
    pub(super) fn take_back(
        &mut self,
        packet: router::Packet,
        from: NodeId,
        to: NextHop,
    ) -> PacketId {
        match packet {
            router::Packet::Data(Data { id, ttl, header, .. }) => {
                *self.ttl(id) = ttl;
                self.write(id, header);
                id
            }
            router::Packet::Control(message) => {
                let to = match to {
                    NextHop::Node(to) => Some(to),
                    NextHop::Broadcast => None,
                };
                let packet = Packet::Control(Control { from, to, message });
                let journey = Journey { ttl: 1, ..Journey::START };
                self.insert(to.unwrap_or(ANYBODY), journey, packet)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Bytes;

    fn segment(payload: u64) -> Packet {
        Packet::Tcp(Segment { payload: Length(payload), ..Segment::default() })
    }

    #[derive(Debug)]
    struct Route;

    impl Message for Route {
        fn size(&self) -> Bytes {
            Bytes(12)
        }
    }

    #[test]
    fn a_mark_reaches_the_segment() {
        let mut packets = Packets::default();
        let id = packets.insert(NodeId(5), Journey::START, segment(1000));
        let waited = Duration::from_millis(3);
        packets.note(id, Passage { waited, marked: false });
        assert_eq!(packets.meta(id).ecn, Ecn::NotEct);
        packets.note(id, Passage { waited, marked: true });
        let Packet::Tcp(segment) = packets.packet(id) else { unreachable!() };
        assert_eq!((segment.ecn, packets.meta(id).ecn), (Ecn::Ce, Ecn::Ce));
        assert_eq!(packets.journey(id).waited, waited * 2);
    }

    #[test]
    fn flows_are_numbered_if_a_queue_asks() {
        let number = |asked| {
            let mut packets = Packets::new(asked);
            let id = packets.insert(NodeId(5), Journey::START, segment(1000));
            packets.meta(id).flow
        };
        assert_eq!(number(false), 0);
        assert_ne!(number(true), 0);
    }

    #[test]
    fn places_are_used_again() {
        let mut packets = Packets::default();
        let a = packets.insert(NodeId(5), Journey::START, segment(1000));
        let b = packets.insert(NodeId(9), Journey::START, segment(0));
        assert_eq!((packets.destination(a), packets.destination(b)), (NodeId(5), NodeId(9)));
        assert!(packets.meta(a).data && !packets.meta(b).data);
        assert_eq!(packets.packet(a), &segment(1000));
        packets.remove(a);
        assert_eq!(packets.insert(NodeId(0), Journey::START, segment(7)), a);
        assert_eq!(packets.packet(b), &segment(0));
        assert_eq!(packets.headers.len(), 2);
    }

    #[test]
    fn what_routers_write_makes_a_packet_longer_and_goes_with_it() {
        let mut packets = Packets::default();
        let a = packets.insert(NodeId(5), Journey::START, segment(1000));
        packets.write(a, Some(Arc::new(Route)));
        assert_eq!(packets.meta(a).size, Bytes(1052));
        let b = packets.copy(a);
        packets.remove(a);
        assert_eq!(packets.insert(NodeId(5), Journey::START, segment(1000)), a);
        assert_eq!(packets.meta(a).size, Bytes(1040));
        assert!(packets.take_written(a).is_none());
        assert_eq!(packets.meta(b).size, Bytes(1052));
        assert!(packets.take_written(b).is_some());
        assert_eq!(packets.meta(b).size, Bytes(1040));
    }
}
