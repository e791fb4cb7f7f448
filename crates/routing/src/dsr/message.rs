//! The messages and the header of DSR (RFC 4728 §6).
//!
//! Routes are written from the first to the last node, without repeats; a node finds its place in
//! them by its own number. So they stay as they are from hop to hop.

use crate::{NodeId, router};
use airtcp_core::Bytes;

/// A packet of DSR's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who knows a route?
    Request(Request),
    /// Here is a route.
    Reply(Reply),
    /// This link is gone.
    Error(Error),
}

/// A link from the first to the second node.
pub type Link = (NodeId, NodeId);

/// Route Request (RFC 4728 §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The TTL of its IP packet: how many more hops it may go, this one included.
    pub ttl: u16,
    /// With the originator, names the request.
    pub id: u32,
    /// The node that is looked for.
    pub target: NodeId,
    /// The nodes that it has passed: the originator and those who relayed it.
    pub route: Vec<NodeId>,
    /// A link that the originator knows to be broken (RFC 4728 §3.4.4).
    pub broken: Option<Link>,
}

/// Route Reply (RFC 4728 §6.3). It goes back along the route that it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The route, from the node that the reply is for to the target.
    pub route: Vec<NodeId>,
    /// The node on the route that replied.
    pub replier: NodeId,
}

/// Route Error of type "node unreachable" (RFC 4728 §6.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The broken link; its first node reports it.
    pub broken: Link,
    /// The way of this error, from there to the node whose route it was.
    pub route: Vec<NodeId>,
}

/// The source route of a data packet (RFC 4728 §6.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    /// From the source, or the node that salvaged the packet, to the destination.
    pub route: Vec<NodeId>,
    /// Number of times that the packet was salvaged.
    pub salvaged: u16,
}

const IP: u64 = 20;
/// The fixed part of the DSR header (RFC 4728 §6.1).
const FIXED: u64 = 4;
const ADDRESS: u64 = 4;

/// The option that carries a packet along a route of so many nodes: the first and the last are the
/// addresses of the IP packet.
fn source_route(nodes: usize) -> u64 {
    4 + ADDRESS * nodes.saturating_sub(2) as u64
}

impl router::Message for Message {
    fn size(&self) -> Bytes {
        const ERROR: u64 = 16;
        let options = match self {
            // The originator is the source of the IP packet, and the target has a field.
            Self::Request(request) => {
                let error = request.broken.map_or(0, |_| ERROR);
                8 + ADDRESS * (request.route.len() as u64 - 1) + error
            }
            Self::Reply(reply) => {
                let back = reply.route.iter().position(|&node| node == reply.replier);
                let listed = ADDRESS * (reply.route.len() as u64 - 1);
                3 + listed + source_route(back.map_or(0, |at| at + 1))
            }
            Self::Error(error) => ERROR + source_route(error.route.len()),
        };
        Bytes(IP + FIXED + options)
    }
}

impl router::Message for SourceRoute {
    fn size(&self) -> Bytes {
        // The node that salvaged the packet is listed (RFC 4728 §8.3.6).
        let salvager = if self.salvaged > 0 { ADDRESS } else { 0 };
        Bytes(FIXED + source_route(self.route.len()) + salvager)
    }
}
