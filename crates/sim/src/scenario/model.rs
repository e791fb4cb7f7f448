//! The resolved scenario: what the world is built from. Every name is resolved to an index, every default
//! filled in, every value checked; building a world from it cannot fail.

use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_edge::MechanismConfig;
use airtcp_net::config::{LinkConfig, Schedule};
use airtcp_net::wifi::{ChannelConfig, StationConfig};
use airtcp_tcp::TcpConfig;

/// A node, by its index in [`Scenario::nodes`].
pub use airtcp_routing::NodeId;

/// A complete scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Short name: the file's stem unless the file sets one.
    pub name: String,
    /// Simulated time of a run.
    pub duration: Duration,
    /// Nodes, groups expanded.
    pub nodes: Vec<Node>,
    /// Unidirectional links; a duplex link is two, forward first.
    pub links: Vec<Link>,
    /// Wireless cells.
    pub wlans: Vec<Wlan>,
    /// TCP flows, counts expanded.
    pub flows: Vec<FlowSpec>,
    /// UDP cross traffic, groups expanded.
    pub cbr: Vec<CbrSpec>,
}

/// A host, a router, or an edge node with a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// Mechanism running in this node on the segments it forwards.
    pub middlebox: Option<MiddleboxSpec>,
    /// When the node is out of reach.
    pub outage: Option<NodeOutage>,
}

/// When a node is out of reach, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeOutage {
    /// When.
    pub schedule: Schedule,
    /// Where it happens.
    pub layer: OutageLayer,
    /// How long before it the node's own radio reports [`Fading`](airtcp_core::LinkSignal::Fading) to the
    /// endpoints on the node.
    pub warning: Duration,
}

impl NodeOutage {
    /// Above the MAC, unforetold.
    pub fn above_mac(schedule: Schedule) -> Self {
        Self { schedule, layer: OutageLayer::AboveMac, warning: Duration::ZERO }
    }
}

/// Where an outage of a node happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutageLayer {
    /// The node's IP layer drops every packet in both directions except TCP SYN and FIN (M-TCP §3.3); the
    /// radio goes on.
    #[default]
    AboveMac,
    /// The radios of the node neither send nor hear.
    Phy,
}

/// A mechanism of `airtcp-edge` and where its mobile side is.
#[derive(Clone, Debug, PartialEq)]
pub struct MiddleboxSpec {
    /// Which mechanism.
    pub mechanism: MechanismConfig,
    /// Payload bytes held for all connections together; zero for a mechanism that holds none.
    pub memory: Bytes,
    /// Nodes reached over the wireless side: a segment to one of them goes Fixed → Mobile, a segment
    /// from one of them Mobile → Fixed; others pass untouched.
    pub mobiles: Vec<NodeId>,
    /// What the node learns of its mobiles' outages; `None`: nothing.
    pub signal: Option<SignalSpec>,
}

/// The signals an edge node gets about the outages of each of its mobiles: `Fading`, `Down` and `Up`. One
/// that the next change of the link overtakes is not sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalSpec {
    /// `Fading` comes this long before an outage; zero: not at all.
    pub lead: Duration,
    /// `Down` comes this long after the outage began.
    pub late: Duration,
    /// `Up` comes this long after the outage ended.
    pub delay: Duration,
    /// Probability that a signal is lost.
    pub missing: f64,
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

/// The link of the real-time emulator.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedLink {
    /// From the command (or the first namespace) to the network outside.
    pub up: EmulatedDirection,
    /// From the network outside to the command.
    pub down: EmulatedDirection,
}

/// A direction of [`EmulatedLink`].
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedDirection {
    /// The model.
    pub config: LinkConfig,
    /// File with a trace that takes the place of the rate, as it is written: relative to the link file.
    pub trace: Option<String>,
}

/// An 802.11 channel and its stations. Two stations that can receive each other are neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct Wlan {
    /// Unique name; also names its random streams ("wlan/cell/AP/backoff").
    pub name: String,
    /// Medium, MAC and radios.
    pub config: ChannelConfig,
    /// Who takes part.
    pub stations: Vec<Station>,
}

/// A node's radio on a [`Wlan`].
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// The node.
    pub node: NodeId,
    /// Where it is.
    pub config: StationConfig,
}

/// A source of UDP datagrams of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct CbrSpec {
    /// Unique name; also names its random stream ("cbr/noise").
    pub name: String,
    /// Where the datagrams come from.
    pub from: NodeId,
    /// Where they go.
    pub to: NodeId,
    /// When it starts.
    pub start: Instant,
    /// When it stops; `None`: with the run.
    pub stop: Option<Instant>,
    /// Size of the IP packet.
    pub size: Bytes,
    /// How fast; `None`: saturated, there is always a packet waiting in front of the first hop.
    pub rate: Option<DataRate>,
    /// Pauses.
    pub on_off: Option<OnOff>,
}

/// Periods of sending and of silence in turn, beginning with the former.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// Mean length of a period of sending.
    pub on: Duration,
    /// Mean length of a pause.
    pub off: Duration,
    /// Lengths are exponentially distributed; otherwise all are the same.
    pub exponential: bool,
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
    /// When the application opens the connection, at the earliest.
    pub start: Instant,
    /// It does so later by a uniform random time up to this (stream "flow/ftp0/start").
    pub jitter: Duration,
    /// Bytes to transfer (then FIN), or an endless source.
    pub bytes: Option<Bytes>,
    /// Endpoint of `from`.
    pub sender: TcpConfig,
    /// Endpoint of `to`.
    pub receiver: TcpConfig,
}
