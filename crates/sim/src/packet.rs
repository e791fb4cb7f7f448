//! What travels through the simulated network: TCP segments, the datagrams of cross traffic, and
//! the control packets of routing protocols.

use crate::addr;
use crate::scenario::UdpId;
use airtcp_core::{Addr, Bytes, Ecn, Flow, Instant, Length, Payload, Segment, SeqNum};
use airtcp_routing::NodeId;
use airtcp_routing::router::Message;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A TCP segment.
    Tcp(Segment<Length>),
    /// A UDP datagram.
    Udp(Datagram),
    /// A control packet of a routing protocol.
    Control(Control),
}

/// A UDP datagram of a [`UdpSpec`](crate::scenario::UdpSpec).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its source in the scenario.
    pub source: UdpId,
    /// Its number among the datagrams of its source, from 0, modulo 2^32.
    pub number: u32,
    /// Addresses and ports.
    pub flow: Flow,
    /// Time at which it was sent.
    pub sent: Instant,
    /// User data, as a length only.
    pub payload: Length,
}

/// A control packet from a router to one neighbour, or to all.
#[derive(Clone, Debug)]
pub struct Control {
    /// The sending node.
    pub from: NodeId,
    /// The receiver; `None`: all.
    pub to: Option<NodeId>,
    /// The protocol's message.
    pub message: Arc<dyn Message>,
}

impl Control {
    /// The addresses; control packets have no ports.
    pub fn flow(&self) -> Flow {
        let to = self.to.map_or(Ipv4Addr::BROADCAST.into(), addr::of_node);
        Flow { src: Addr::new(addr::of_node(self.from), 0), dst: Addr::new(to, 0) }
    }
}

/// Equal only if both carry the same message object; equal contents are not compared.
impl PartialEq for Control {
    fn eq(&self, other: &Self) -> bool {
        (self.from, self.to) == (other.from, other.to) && Arc::ptr_eq(&self.message, &other.message)
    }
}
impl Eq for Control {}

/// TCP's protocol number.
pub(crate) const TCP: u8 = 6;
/// UDP's protocol number, also of the routing protocols' messages.
const UDP: u8 = 17;

/// IPv4 and UDP header.
pub const UDP_OVERHEAD: Bytes = Bytes(28);

impl Packet {
    /// Size as an IP packet without link framing.
    pub fn wire_len(&self) -> Bytes {
        match self {
            Self::Tcp(segment) => segment.wire_len(),
            Self::Udp(datagram) => UDP_OVERHEAD + Bytes(datagram.payload.0),
            Self::Control(control) => control.message.size(),
        }
    }

    /// It carries user data.
    pub fn has_data(&self) -> bool {
        match self {
            Self::Tcp(segment) => !segment.payload.is_empty(),
            Self::Udp(_) => true,
            Self::Control(_) => false,
        }
    }

    /// The protocol number in its IP header.
    pub(crate) fn protocol(&self) -> u8 {
        match self {
            Self::Tcp(_) => TCP,
            Self::Udp(_) | Self::Control(_) => UDP,
        }
    }

    /// The ECN field of its IP header: datagrams and control packets do not take part.
    pub(crate) fn ecn(&self) -> Ecn {
        match self {
            Self::Tcp(segment) => segment.ecn,
            Self::Udp(_) | Self::Control(_) => Ecn::NotEct,
        }
    }

    /// Addresses and ports, first sequence number (for a datagram its number) and bytes of user
    /// data.
    pub(crate) fn summary(&self) -> (Flow, SeqNum, u32) {
        match self {
            Self::Tcp(Segment { flow, seq, payload, .. }) => (*flow, *seq, payload.0 as u32),
            Self::Udp(Datagram { flow, number, payload, .. }) => {
                (*flow, SeqNum(*number), payload.0 as u32)
            }
            Self::Control(control) => (control.flow(), SeqNum(0), 0),
        }
    }
}
