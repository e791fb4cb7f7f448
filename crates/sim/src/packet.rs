//! What travels through the simulated network: TCP segments, and the datagrams of cross traffic.

use airtcp_core::{Bytes, Flow, Length, Payload, Segment, SeqNum};

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A TCP segment.
    Tcp(Segment<Length>),
    /// A UDP datagram.
    Udp(Datagram),
}

/// A UDP datagram of a [`CbrSpec`](crate::scenario::model::CbrSpec).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Index of its source in the scenario.
    pub cbr: u32,
    /// Its number among the datagrams of its source, from 0, modulo 2^32.
    pub number: u32,
    /// Addresses and ports.
    pub flow: Flow,
    /// User data.
    pub payload: Length,
}

/// IPv4 and UDP header.
pub const UDP_OVERHEAD: Bytes = Bytes(28);

impl Packet {
    /// Size as an IP packet without link framing.
    pub fn wire_len(&self) -> Bytes {
        match self {
            Self::Tcp(segment) => segment.wire_len(),
            Self::Udp(datagram) => UDP_OVERHEAD + Bytes(datagram.payload.0),
        }
    }

    /// It carries user data.
    pub fn has_data(&self) -> bool {
        match self {
            Self::Tcp(segment) => !segment.payload.is_empty(),
            Self::Udp(_) => true,
        }
    }

    /// Addresses and ports, first sequence number (of a datagram: its number) and bytes of user data.
    pub(crate) fn summary(&self) -> (Flow, SeqNum, u32) {
        match self {
            Self::Tcp(Segment { flow, seq, payload, .. }) => (*flow, *seq, payload.0 as u32),
            Self::Udp(Datagram { flow, number, payload, .. }) => {
                (*flow, SeqNum(*number), payload.0 as u32)
            }
        }
    }
}
