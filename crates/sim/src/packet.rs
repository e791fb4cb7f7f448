//! What travels through the simulated network: TCP segments, the datagrams of QUIC and of cross
//! traffic, and the control packets of routing protocols.

use crate::addr;
use crate::scenario::{End, QuicId, UdpId};
use airtcp_core::{Addr, Bytes, Ecn, Flow, Instant, Length, Payload, Segment, SeqNum};
use airtcp_edge::mechanisms::wake;
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
    /// A datagram of QUIC.
    Quic(QuicDatagram),
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

/// A UDP datagram of a [`QuicSpec`](crate::scenario::QuicSpec).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicDatagram {
    /// Its flow in the scenario.
    pub source: QuicId,
    /// The end that sent it.
    pub from: End,
    /// Its number among the datagrams of this end, from 0, modulo 2^32.
    pub number: u32,
    /// Addresses and ports.
    pub flow: Flow,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// QUIC packets, with the sizes of encrypted ones, unencrypted.
    pub payload: bytes::Bytes,
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
pub(crate) const UDP: u8 = 17;

/// IPv4 and UDP header.
pub const UDP_OVERHEAD: Bytes = Bytes(28);

impl Packet {
    /// Size as an IP packet without link framing.
    pub fn wire_len(&self) -> Bytes {
        match self {
            Self::Tcp(segment) => segment.wire_len(),
            Self::Udp(datagram) => UDP_OVERHEAD + Bytes(datagram.payload.0),
            Self::Quic(datagram) => UDP_OVERHEAD + Bytes(datagram.payload.len() as u64),
            Self::Control(control) => control.message.size(),
        }
    }

    /// It carries user data.
    pub fn has_data(&self) -> bool {
        match self {
            Self::Tcp(segment) => !segment.payload.is_empty(),
            Self::Udp(_) | Self::Quic(_) => true,
            Self::Control(_) => false,
        }
    }

    /// The protocol number in its IP header.
    pub(crate) fn protocol(&self) -> u8 {
        match self {
            Self::Tcp(_) => TCP,
            Self::Udp(_) | Self::Quic(_) | Self::Control(_) => UDP,
        }
    }

    /// The ECN field of its IP header: cross traffic and control packets do not take part.
    pub(crate) fn ecn(&self) -> Ecn {
        match self {
            Self::Tcp(segment) => segment.ecn,
            Self::Quic(datagram) => datagram.ecn,
            Self::Udp(_) | Self::Control(_) => Ecn::NotEct,
        }
    }

    /// A queue has marked it: what takes no part in ECN stays as it is.
    pub(crate) fn mark(&mut self) {
        match self {
            Self::Tcp(segment) => segment.ecn = Ecn::Ce,
            Self::Quic(datagram) => datagram.ecn = Ecn::Ce,
            Self::Udp(_) | Self::Control(_) => {}
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
            Self::Quic(QuicDatagram { flow, number, payload, .. }) => {
                (*flow, SeqNum(*number), payload.len() as u32)
            }
            Self::Control(control) => (control.flow(), SeqNum(0), 0),
        }
    }
}

/// As wake sees it: of other protocols than TCP, any packet may be answered.
impl wake::Packet for Packet {
    fn id(&self) -> wake::FlowId {
        let (flow, ..) = self.summary();
        wake::FlowId { protocol: self.protocol(), flow }
    }

    fn seq_end(&self) -> Option<SeqNum> {
        match self {
            Self::Tcp(segment) => wake::Packet::seq_end(segment),
            Self::Udp(_) | Self::Quic(_) | Self::Control(_) => None,
        }
    }

    fn header(&self) -> Option<Segment<Length>> {
        match self {
            Self::Tcp(segment) => Some(segment.clone()),
            Self::Udp(_) | Self::Quic(_) | Self::Control(_) => None,
        }
    }

    fn is_boundary(&self) -> bool {
        matches!(self, Self::Tcp(segment) if segment.is_boundary())
    }

    fn elicits_reply(&self) -> bool {
        match self {
            Self::Tcp(segment) => segment.elicits_reply(),
            Self::Udp(_) | Self::Quic(_) | Self::Control(_) => true,
        }
    }

    /// Hosts here answer no echo requests, so flows other than TCP's have none.
    fn keep_alive(&self) -> Option<Self> {
        match self {
            Self::Tcp(segment) => segment.keep_alive().map(Self::Tcp),
            Self::Udp(_) | Self::Quic(_) | Self::Control(_) => None,
        }
    }

    fn end(&self) -> Self {
        match self {
            Self::Tcp(segment) => Self::Tcp(segment.end()),
            Self::Udp(_) | Self::Quic(_) | Self::Control(_) => self.clone(),
        }
    }

    fn beginning(&self) -> Self {
        match self {
            Self::Tcp(segment) => Self::Tcp(segment.beginning()),
            Self::Udp(_) | Self::Quic(_) | Self::Control(_) => self.clone(),
        }
    }
}
