//! The messages of AODV (RFC 3561 §5).

use crate::NodeId;
use crate::router;
use airtcp_core::{Bytes, Duration, Instant, SeqNum};

/// A message of AODV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who knows a route?
    Request(Request),
    /// Here is a route.
    Reply(Reply),
    /// These routes are gone.
    Error(Error),
    /// A neighbour is there.
    Hello(Hello),
}

/// RREQ, the route request (RFC 3561 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The TTL of its IP packet: how many more hops it may go, this one included.
    pub ttl: u16,
    /// Hops from the originator to the sender.
    pub hop_count: u16,
    /// With the originator, names the request.
    pub id: u32,
    /// The node that is looked for.
    pub destination: NodeId,
    /// The newest sequence number known of the destination; `None` is the U flag.
    pub destination_seq: Option<SeqNum>,
    /// The node that asks.
    pub originator: NodeId,
    /// The originator's own sequence number.
    pub originator_seq: SeqNum,
    /// The D flag: only the destination may answer.
    pub destination_only: bool,
    /// The G flag: a node that answers also informs the destination.
    pub gratuitous: bool,
    /// Time at which the originator sent it. Part of ns-2's messages but not of the RFC's, so it
    /// takes no bytes.
    pub asked: Instant,
}

/// RREP, the route reply (RFC 3561 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Hops from the sender to the destination.
    pub hop_count: u16,
    /// The node that the route leads to.
    pub destination: NodeId,
    /// The destination's sequence number.
    pub destination_seq: SeqNum,
    /// The node that asked.
    pub originator: NodeId,
    /// Time for which the route is valid.
    pub lifetime: Duration,
    /// [`Request::asked`] of the request that it answers.
    pub asked: Instant,
}

/// RERR, the route error (RFC 3561 §5.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The N flag: the sender has repaired the route, which is not to be deleted.
    pub no_delete: bool,
    /// The destinations that cannot be reached through the sender, each with the sequence number
    /// that the route had, plus one; `None` if it is not known.
    pub unreachable: Vec<(NodeId, Option<SeqNum>)>,
}

/// HELLO: an RREP with TTL 1 by which a node announces itself (RFC 3561 §6.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The sender's sequence number.
    pub seq: SeqNum,
    /// Time for which the sender counts as a neighbour.
    pub lifetime: Duration,
}

impl router::Message for Message {
    /// With the headers of IP and UDP.
    fn size(&self) -> Bytes {
        const IP_AND_UDP: u64 = 28;
        Bytes(match self {
            Self::Request(_) => IP_AND_UDP + 24,
            Self::Reply(_) | Self::Hello(_) => IP_AND_UDP + 20,
            Self::Error(error) => IP_AND_UDP + 4 + 8 * error.unreachable.len() as u64,
        })
    }
}
