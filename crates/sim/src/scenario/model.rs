//! The resolved scenario: what the world is built from. Every name is resolved to an index, every default
//! filled in, every value checked; building a world from it cannot fail.

use airtcp_core::{Bytes, Duration, Instant};
use airtcp_net::config::{LinkConfig, Schedule};
use airtcp_tcp::TcpConfig;

/// Index into [`Scenario::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A complete scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Short name: the file's stem unless the file sets one.
    pub name: String,
    /// Simulated time of a run.
    pub duration: Duration,
    /// Nodes, groups expanded.
    pub nodes: Vec<Node>,
    /// Unidirectional links; a duplex link is two, forward first.
    pub links: Vec<Link>,
    /// TCP flows, counts expanded.
    pub flows: Vec<FlowSpec>,
}

/// A host, a router, or an edge node with a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// Mechanism running in this node on the segments it forwards.
    pub middlebox: Option<MiddleboxSpec>,
    /// Outage above the MAC (M-TCP §3.3): while down, the node's IP layer drops every TCP packet in both
    /// directions except SYN and FIN.
    pub outage: Option<Schedule>,
}

/// A mechanism of `airtcp-edge` and where its mobile side is.
#[derive(Clone, Debug, PartialEq)]
pub struct MiddleboxSpec {
    /// Which mechanism.
    pub kind: MiddleboxKind,
    /// Nodes reached over the wireless side: a segment to one of them goes Fixed → Mobile, a segment
    /// from one of them Mobile → Fixed; others pass untouched.
    pub mobiles: Vec<NodeId>,
}

/// The mechanisms a node can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MiddleboxKind {
    /// TCP Packet Control (algorithms §1.3).
    PacketControl {
        /// R, the duplicate-ACK threshold at the base station; at least 3.
        threshold: u32,
    },
}

/// A unidirectional link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// `"BS>MH"`; also names its random streams ("link/BS>MH/loss").
    pub name: String,
    /// Sending node.
    pub from: NodeId,
    /// Receiving node.
    pub to: NodeId,
    /// The model.
    pub config: LinkConfig,
}

/// One TCP connection and its application. Data flows `from` → `to`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Unique name; also names its random streams ("flow/ftp0/isn").
    pub name: String,
    /// Data sender; it opens the connection.
    pub from: NodeId,
    /// Data receiver.
    pub to: NodeId,
    /// When the application opens the connection.
    pub start: Instant,
    /// Bytes to transfer (then FIN), or an endless source.
    pub bytes: Option<Bytes>,
    /// Endpoint of `from`.
    pub sender: TcpConfig,
    /// Endpoint of `to`.
    pub receiver: TcpConfig,
}
