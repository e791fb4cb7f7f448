//! ARP, the address resolution protocol (RFC 826), at one interface.
//!
//! A packet for a neighbour whose address is not known waits, and a request is broadcast. RFC 826
//! says what the messages mean and leaves the rest to the host; this host is that of ns-2
//! (`mac/arp.cc`): one packet waits for each neighbour, a new one takes its place and asks again;
//! nothing is repeated by itself; after three requests without a reply the next packet finds the
//! neighbour gone; an address once known stays known.

use crate::NodeId;
use crate::node_map::NodeMap;
use crate::router;
use crate::router::PacketId;
use airtcp_core::Bytes;

/// A message of ARP (RFC 826, "Packet format").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Request or reply.
    pub operation: Operation,
    /// Who sends it, with its address.
    pub sender: NodeId,
    /// Whose address is asked for, or who asked.
    pub target: NodeId,
}

/// A question or an answer (RFC 826, ar$op).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Asks for the address of the target.
    Request,
    /// Says that the address is the sender's.
    Reply,
}

impl router::Message for Message {
    /// For IPv4 over 6-byte addresses.
    fn size(&self) -> Bytes {
        Bytes(28)
    }
}

/// An action requested of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a packet to a neighbour: its address is known.
    Send(PacketId, NodeId),
    /// Broadcast a message.
    Broadcast(Message),
    /// Send a message to a neighbour.
    Tell(NodeId, Message),
    /// Drop a packet: another has taken its place.
    Drop(PacketId),
    /// The neighbour does not answer. These packets, oldest first, were for it.
    GiveUp(NodeId, [Option<PacketId>; 2]),
}

/// Unanswered requests after which a neighbour counts as gone (ns-2, ARP_MAX_REQUEST_COUNT).
const MAX_REQUESTS: u32 = 3;

/// ARP at one interface.
#[derive(Debug)]
pub struct Arp {
    node: NodeId,
    neighbours: NodeMap<Entry>,
}

#[derive(Debug)]
enum Entry {
    Known,
    Asked { waiting: Option<PacketId>, requests: u32 },
}

impl Arp {
    /// At an interface of `node`, which knows no address.
    pub fn new(node: NodeId) -> Self {
        Self { node, neighbours: NodeMap::new() }
    }

    /// True if the address of a neighbour is known. Packets for it need no [`Arp::send`].
    #[inline]
    pub fn knows(&self, neighbour: NodeId) -> bool {
        matches!(self.neighbours.get(neighbour), Some(Entry::Known))
    }

    /// The node sends a packet to a neighbour.
    pub fn send(&mut self, packet: PacketId, to: NodeId, out: &mut Vec<Action>) {
        let unknown = || Entry::Asked { waiting: None, requests: 0 };
        match self.neighbours.get_or_insert_with(to, unknown) {
            Entry::Known => out.push(Action::Send(packet, to)),
            Entry::Asked { waiting, requests } if *requests == MAX_REQUESTS => {
                *requests = 0;
                out.push(Action::GiveUp(to, [waiting.take(), Some(packet)]));
            }
            Entry::Asked { waiting, requests } => {
                *requests += 1;
                out.extend(waiting.replace(packet).map(Action::Drop));
                let (operation, sender) = (Operation::Request, self.node);
                out.push(Action::Broadcast(Message { operation, sender, target: to }));
            }
        }
    }

    /// A message reaches the interface. Everyone who hears one learns the sender's address; RFC 826
    /// lets a node that is not its target only update what it knows.
    pub fn hears(&mut self, message: &Message, out: &mut Vec<Action>) {
        let Message { operation, sender, target } = *message;
        let entry = self.neighbours.get_or_insert_with(sender, || Entry::Known);
        if let Entry::Asked { waiting: Some(packet), .. } = std::mem::replace(entry, Entry::Known) {
            out.push(Action::Send(packet, sender));
        }
        if operation == Operation::Request && target == self.node {
            let (operation, sender, target) = (Operation::Reply, target, sender);
            out.push(Action::Tell(target, Message { operation, sender, target }));
        }
    }
}
