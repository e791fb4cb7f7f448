//! The arena of packets in the network: a slab with a free list, so that steady state allocates nothing.

use crate::packet::Packet;
use airtcp_net::link::PacketMeta;

/// A packet in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketId(u32);

/// What forwarding needs of a packet, apart from the rest: it stays in the cache.
#[derive(Clone, Copy, Debug)]
struct Header {
    /// Where it goes next: index into the world's table of hops.
    hop: u32,
    meta: PacketMeta,
}

/// All packets in the network.
#[derive(Debug, Default)]
pub(super) struct Packets {
    headers: Vec<Header>,
    packets: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Packets {
    /// Takes in a packet whose next hop is number `hop`.
    #[inline]
    pub(super) fn insert(&mut self, hop: u32, packet: Packet) -> PacketId {
        let meta = PacketMeta { size: packet.wire_len(), data: packet.has_data() };
        let header = Header { hop, meta };
        if let Some(id) = self.free.pop() {
            self.headers[id.0 as usize] = header;
            self.packets[id.0 as usize] = packet;
            return id;
        }
        let id = PacketId(self.headers.len() as u32);
        self.headers.push(header);
        self.packets.push(packet);
        id
    }

    /// Removes a packet; its place is free for another.
    #[inline]
    pub(super) fn remove(&mut self, id: PacketId) -> Packet {
        self.free.push(id);
        self.packets[id.0 as usize].clone()
    }

    #[inline]
    pub(super) fn meta(&self, id: PacketId) -> PacketMeta {
        self.headers[id.0 as usize].meta
    }

    #[inline]
    pub(super) fn packet(&self, id: PacketId) -> &Packet {
        &self.packets[id.0 as usize]
    }

    /// The packet's next hop.
    pub(super) fn hop(&self, id: PacketId) -> u32 {
        self.headers[id.0 as usize].hop
    }

    /// The packet's next hop; the one after it is next from now on.
    #[inline]
    pub(super) fn advance(&mut self, id: PacketId) -> u32 {
        let header = &mut self.headers[id.0 as usize];
        header.hop += 1;
        header.hop - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Length, Segment};

    #[test]
    fn places_are_used_again() {
        let mut packets = Packets::default();
        let segment = |n| Packet::Tcp(Segment { payload: Length(n), ..Segment::default() });
        let a = packets.insert(5, segment(1000));
        let b = packets.insert(9, segment(0));
        assert_eq!((packets.advance(a), packets.advance(a), packets.advance(b)), (5, 6, 9));
        assert!(packets.meta(a).data && !packets.meta(b).data);
        assert_eq!(packets.remove(a), segment(1000));
        assert_eq!(packets.insert(0, segment(7)), a);
        assert_eq!(packets.packet(b), &segment(0));
        assert_eq!(packets.headers.len(), 2);
    }
}
