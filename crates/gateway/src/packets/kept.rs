//! Packets of any protocol, as [`Wake`](airtcp_edge::Wake) keeps them.
//!
//! Of a TCP segment everything is kept that [`Segment`] has, so that one that offloads left to be
//! segmented can be cut. Other packets are kept as they are, and so are TCP segments with options
//! that only the hosts can make; what of these is to be segmented is cut as the network does it.

use super::{Intercepted, SharedBytes};
use airtcp_core::{Length, Segment, SeqNum};
use airtcp_edge::{FlowId, Packet, Silence};
use airtcp_wire::{DecodeError, Decoded, decode_with, encode_echo_request, piece};
use bytes::Bytes;

/// The largest packet that is kept, if it cannot be cut: larger ones are sent by offloads, which
/// copies do not go through, and would fill the memory of a flow.
const LARGEST: usize = 1_600;

/// Bytes in front of a packet's payload, about: of IPv6 (RFC 8200) and UDP (RFC 768).
const HEADERS: usize = 48;

/// Of the echo requests that a mobile is asked with in the name of a host that it talks to, where
/// its answers go: no program there waits for them.
const ECHO_IDENTIFIER: u16 = 0xa17c;

/// A packet, or what is kept of it.
#[derive(Clone, Debug)]
pub struct Kept {
    id: FlowId,
    /// Of a TCP segment.
    seq_end: Option<SeqNum>,
    is_boundary: bool,
    elicits_reply: bool,
    silence: Option<Silence>,
    is_closing: bool,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Tcp(Box<Segment<SharedBytes>>),
    Other {
        /// Of a TCP segment.
        header: Option<Box<Segment<Length>>>,
        packet: Bytes,
        /// Payload bytes of each packet, if there are several.
        datagram: Option<u16>,
    },
}

impl Kept {
    /// A copy of a packet of this flow, without what need not be kept.
    ///
    /// # Errors
    /// It is no IP packet, or malformed.
    pub fn new(id: FlowId, intercepted: &Intercepted) -> Result<Self, DecodeError> {
        let &Intercepted { ref packet, datagram, silence, is_closing, checksums, .. } = intercepted;
        let payload = |bytes: &[u8]| SharedBytes(packet.slice_ref(bytes));
        Ok(match decode_with(packet, checksums, payload) {
            Ok(Decoded { segment, foreign_option }) => Self {
                id,
                seq_end: Some(segment.seq_end()),
                is_boundary: segment.is_boundary(),
                elicits_reply: segment.elicits_reply(),
                silence,
                is_closing,
                content: match foreign_option {
                    None => Content::Tcp(Box::new(segment)),
                    // What a connection depends on and a segment does not hold would be lost.
                    Some(_) => {
                        let header = segment.header().map(Box::new);
                        Content::Other { header, packet: packet.clone(), datagram }
                    }
                },
            },
            Err(DecodeError::NotTcp { .. } | DecodeError::Fragment) => {
                // Nothing else can be cut (GRE, ESP, VXLAN).
                let datagrams = id.protocol == FlowId::UDP && !id.is_overlay();
                let datagram = datagram.filter(|_| datagrams);
                let content = Content::Other { header: None, packet: packet.clone(), datagram };
                Self {
                    id,
                    seq_end: None,
                    is_boundary: false,
                    elicits_reply: true,
                    silence,
                    is_closing,
                    content,
                }
            }
            Err(error) => return Err(error),
        })
    }

    /// A copy of it would be larger than what is kept of a flow, or than what links take.
    pub fn is_too_large(&self) -> bool {
        let Content::Other { packet, datagram, .. } = &self.content else { return false };
        let one = datagram.map_or(usize::MAX, |payload| HEADERS + usize::from(payload));
        packet.len().min(one) > LARGEST
    }

    /// As it is to be sent: a segment, or the bytes of a packet.
    pub fn sent(&self) -> Sent<'_> {
        match &self.content {
            Content::Tcp(segment) => Sent::Segment(segment),
            Content::Other { packet, .. } => Sent::Packet(packet),
        }
    }

    /// A part of it in memory of its own: what it came in may be much larger.
    fn part(&self, last: bool) -> Self {
        let content = match &self.content {
            Content::Tcp(segment) => {
                let part = if last { segment.end() } else { segment.beginning() };
                let payload = SharedBytes(Bytes::copy_from_slice(&part.payload.0));
                Content::Tcp(Box::new(Segment { payload, ..part }))
            }
            Content::Other { header, packet, datagram } => {
                let size = datagram.map(usize::from);
                let part = size.and_then(|size| piece(packet, size, last));
                let packet = part.map_or_else(|| Bytes::copy_from_slice(packet), Bytes::from);
                Content::Other { header: header.clone(), packet, datagram: None }
            }
        };
        Self { content, ..*self }
    }
}

/// The packet that is sent from a copy.
#[derive(Clone, Copy, Debug)]
pub enum Sent<'a> {
    /// A TCP segment, to be cut to the receiver's MSS.
    Segment(&'a Segment<SharedBytes>),
    /// A packet, to be given its [checksums](airtcp_wire::checksummed).
    Packet(&'a [u8]),
}

impl Packet for Kept {
    fn id(&self) -> FlowId {
        self.id
    }

    fn seq_end(&self) -> Option<SeqNum> {
        self.seq_end
    }

    fn header(&self) -> Option<Segment<Length>> {
        match &self.content {
            Content::Tcp(segment) => segment.header(),
            Content::Other { header, .. } => header.as_deref().cloned(),
        }
    }

    fn is_boundary(&self) -> bool {
        self.is_boundary
    }

    fn elicits_reply(&self) -> bool {
        self.elicits_reply
    }

    fn silence(&self) -> Option<Silence> {
        self.silence
    }

    fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn keep_alive(&self) -> Option<Self> {
        let content = match &self.content {
            Content::Tcp(segment) => Content::Tcp(Box::new(segment.keep_alive()?)),
            Content::Other { .. } => {
                let mut packet = Vec::new();
                encode_echo_request(&self.id.flow, ECHO_IDENTIFIER, &mut packet).ok()?;
                Content::Other { header: None, packet: packet.into(), datagram: None }
            }
        };
        Some(Self { content, ..*self })
    }

    fn end(&self) -> Self {
        self.part(true)
    }

    fn beginning(&self) -> Self {
        self.part(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Addr, Flags, Flow, Payload};
    use airtcp_wire::{Checksums, checksummed, encode, encode_udp, outline};

    fn flow() -> Flow {
        let addr = |last, port| Addr::new(std::net::Ipv4Addr::new(10, 0, 0, last).into(), port);
        Flow { src: addr(1, 443), dst: addr(2, 5001) }
    }

    fn kept(packet: Vec<u8>, datagram: Option<u16>) -> Kept {
        let (protocol, flow) = outline(&packet).unwrap();
        let (packet, checksums) = (packet.into(), Checksums::Ignore);
        let (id, input, output, silence, is_closing) = (None, None, None, None, false);
        let intercepted =
            Intercepted { id, packet, input, output, checksums, datagram, silence, is_closing };
        Kept::new(FlowId { protocol, flow }, &intercepted).unwrap()
    }

    /// The packet to send, of a protocol other than TCP.
    fn bytes(kept: &Kept) -> Option<Vec<u8>> {
        let Sent::Packet(packet) = kept.sent() else { return None };
        checksummed(packet).ok()
    }

    fn udp(payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        encode_udp(&flow(), &payload.to_vec(), &mut packet).unwrap();
        packet
    }

    #[test]
    fn of_a_large_segment_little_memory_is_kept() {
        let segment = Segment { flow: flow(), payload: vec![7; 30_000], ..Segment::default() };
        let mut packet = Vec::new();
        encode(&segment, &mut packet).unwrap();
        let end = kept(packet, None).end();
        let Sent::Segment(segment) = end.sent() else { panic!("{end:?}") };
        assert_eq!((segment.seq, segment.payload.len()), (SeqNum(28_540), 1_460));
        assert!(segment.payload.0.is_unique());
    }

    #[test]
    fn of_a_udp_packet_to_be_segmented_a_datagram_is_kept() {
        let whole = kept(udp(&[[1; 1200], [2; 1200], [3; 1200]].concat()), Some(1200));
        assert_eq!(bytes(&whole.end()), Some(udp(&[3; 1200])));
        assert_eq!(bytes(&whole.beginning()), Some(udp(&[1; 1200])));
    }

    /// A segment with an option that only the hosts can make (MPTCP, RFC 8684).
    fn with_foreign_option(segment: &Segment<Vec<u8>>) -> Kept {
        let mut packet = Vec::new();
        encode(segment, &mut packet).unwrap();
        assert_eq!(packet[32] >> 4, 5, "no other options");
        packet.splice(40..40, [30, 4, 0, 0]);
        packet[32] += 0x10;
        let len = packet.len() as u16;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        kept(packet, None)
    }

    #[test]
    fn a_reset_with_a_foreign_option_is_a_boundary_as_any() {
        let reset = Segment { flow: flow(), flags: Flags::RST, ..Segment::default() };
        assert!(with_foreign_option(&reset).is_boundary());
        let data = Segment { flow: flow(), payload: vec![7; 100], ..Segment::default() };
        assert!(!with_foreign_option(&data).is_boundary());
    }

    #[test]
    fn a_segment_with_a_foreign_option_is_kept_as_it_is_and_in_order() {
        let data = Segment {
            flow: flow(),
            seq: SeqNum(u32::MAX - 9),
            payload: vec![7; 100],
            ..Segment::default()
        };
        let kept = with_foreign_option(&data);
        assert!(matches!(kept.sent(), Sent::Packet(_)));
        assert_eq!((kept.seq_end(), kept.elicits_reply()), (Some(SeqNum(90)), true));
        assert!(!with_foreign_option(&Segment { payload: Vec::new(), ..data }).elicits_reply());
    }

    #[test]
    fn of_a_large_segment_with_a_foreign_option_a_piece_is_kept() {
        let data = Segment { flow: flow(), payload: vec![7; 30_000], ..Segment::default() };
        let whole = Kept {
            content: of_pieces(&with_foreign_option(&data), 1400),
            ..with_foreign_option(&data)
        };
        assert!(!whole.is_too_large());
        let sent = bytes(&whole.end()).unwrap();
        let Decoded { segment, foreign_option } =
            decode_with(&sent, Checksums::Verify, <[u8]>::to_vec).unwrap();
        assert_eq!((segment.seq, segment.payload.len()), (SeqNum(29_400), 600));
        assert!(foreign_option.is_some());
    }

    /// Its packet, which offloads made of several.
    fn of_pieces(kept: &Kept, size: u16) -> Content {
        let Content::Other { packet, .. } = &kept.content else { panic!("{kept:?}") };
        Content::Other { header: None, packet: packet.clone(), datagram: Some(size) }
    }

    #[test]
    fn other_protocols_ask_by_an_echo_request_between_the_hosts() {
        let keep_alive = kept(udp(b"x"), None).keep_alive().unwrap();
        let (protocol, asked) = outline(&bytes(&keep_alive).unwrap()).unwrap();
        let hosts = |flow: Flow| (flow.src.ip, flow.dst.ip);
        assert_eq!((protocol, hosts(asked)), (1, hosts(flow())));
    }

    #[test]
    fn what_cannot_be_cut_and_would_fill_the_memory_of_a_flow_is_too_large() {
        assert!(!kept(udp(&[0; 1472]), None).is_too_large());
        assert!(kept(udp(&[0; 4000]), None).is_too_large());
        assert!(!kept(udp(&[0; 4000]), Some(1000)).is_too_large());
        // Of a host with large frames.
        assert!(kept(udp(&[0; 40_000]), Some(8000)).is_too_large());
    }

    #[test]
    fn what_offloads_joined_of_a_tunnel_is_too_large() {
        let mut gre = udp(&[0; 4000]);
        gre[9] = 47;
        assert!(kept(gre, Some(1400)).is_too_large());
        let mut vxlan = udp(&[0; 4000]);
        vxlan[22..24].copy_from_slice(&4789_u16.to_be_bytes());
        assert!(kept(vxlan, Some(1400)).is_too_large());
    }

    #[test]
    fn other_packets_are_kept_as_they_are() {
        let packet = udp(b"a question");
        assert_eq!(bytes(&kept(packet.clone(), None).end()), Some(packet));
    }
}
