//! Routers' reports of packets larger than the next link's MTU.

use crate::checksum::{ICMPV6, TCP, transport_checksum};
use crate::decode::{Checksums, DecodeError};
use airtcp_core::{Addr, Flow, SeqNum};
use etherparse::checksum::Sum16BitWords;
use etherparse::{IpNumber, IpSlice, Ipv6Header, LaxIpSlice, TcpHeader};
use std::net::IpAddr;

/// IP protocol number of ICMP.
const ICMP: u8 = 1;

/// Type and code of "fragmentation needed" (RFC 792), type of "packet too big" (RFC 4443 §3.2).
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
const PACKET_TOO_BIG: u8 = 2;

/// Length of the ICMP header, before the quoted packet.
const ICMP_HEADER: usize = 8;

/// Least part of the IP payload that a router quotes (RFC 792): TCP's ports and sequence number.
const LEAST_QUOTE: usize = 8;

/// Least MTU of an IPv6 link (RFC 8200 §5).
const LEAST_IPV6_MTU: usize = 1280;

/// Common MTUs (RFC 1191 §7.1).
const PLATEAUS: [usize; 10] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296, 68];

/// A router's report that a segment was larger than the MTU of the next link. It may be forged by
/// anybody (RFC 5927).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Destination of the message.
    pub to: IpAddr,
    /// Flow of the segment.
    pub flow: Flow,
    /// Sequence number of the segment.
    pub seq: SeqNum,
    /// Length of the segment's packet, bytes.
    pub size: usize,
    /// MTU of the next link, bytes; 0 if the router does not report it (RFC 1191 §5).
    pub mtu: usize,
    /// Bytes of the segment's headers without TCP's options.
    headers: usize,
}

impl TooBig {
    /// Bytes that payload and options of a segment may have together. `None` if no router would
    /// send this: it goes to a host other than the segment's sender, or the segment would have fit,
    /// or IPv6 allows no such link (RFC 8201 §4).
    pub fn room(&self) -> Option<usize> {
        let mtu = match self.mtu {
            0 if self.to.is_ipv4() => PLATEAUS.into_iter().find(|&mtu| mtu < self.size)?,
            mtu => mtu,
        };
        let is_allowed = self.to.is_ipv4() || mtu >= LEAST_IPV6_MTU;
        (self.to == self.flow.src.ip && mtu < self.size && is_allowed)
            .then(|| mtu.saturating_sub(self.headers))
    }
}

/// Parses an ICMP message "fragmentation needed", or "packet too big" of ICMPv6. `None` for other
/// packets.
///
/// # Errors
/// The message is cut off or has a wrong checksum, or does not quote the first fragment of a TCP
/// segment.
pub fn too_big(packet: &[u8], checksums: Checksums) -> Result<Option<TooBig>, DecodeError> {
    let ip = IpSlice::from_slice(packet)?;
    let (message, IpNumber(protocol)) = (ip.payload().payload, ip.payload_ip_number());
    let (src, to) = (ip.source_addr(), ip.destination_addr());
    let is_it = !ip.is_fragmenting_payload()
        && match (protocol, to) {
            (ICMP, IpAddr::V4(_)) => message.starts_with(&FRAGMENTATION_NEEDED),
            (ICMPV6, IpAddr::V6(_)) => message.starts_with(&[PACKET_TOO_BIG]),
            _ => false,
        };
    if !is_it {
        return Ok(None);
    }
    let Some((header, quote)) = message.split_first_chunk::<ICMP_HEADER>() else {
        return Err(DecodeError::Truncated { needed: ICMP_HEADER, got: message.len() });
    };
    let sum = match to {
        IpAddr::V4(_) => Sum16BitWords::new().add_slice(message).ones_complement(),
        IpAddr::V6(_) => transport_checksum(ICMPV6, src, to, message),
    };
    if checksums == Checksums::Verify && sum != 0 {
        return Err(DecodeError::BadIcmpChecksum);
    }
    let &[_, _, _, _, a, b, c, d] = header;
    let mtu = match to {
        IpAddr::V4(_) => u32::from(u16::from_be_bytes([c, d])),
        IpAddr::V6(_) => u32::from_be_bytes([a, b, c, d]),
    };
    let ip = LaxIpSlice::from_slice(quote).map_err(|_| DecodeError::NotIp)?.0;
    if ip.is_fragmenting_payload() {
        return Err(DecodeError::Fragment);
    }
    let IpNumber(protocol) = ip.payload_ip_number();
    if protocol != TCP {
        return Err(DecodeError::NotTcp { protocol });
    }
    let segment = ip.payload().payload;
    let Some(&[a, b, c, d, ref seq @ ..]) = segment.first_chunk::<LEAST_QUOTE>() else {
        return Err(DecodeError::Truncated { needed: LEAST_QUOTE, got: segment.len() });
    };
    let size = match &ip {
        LaxIpSlice::Ipv4(ip) => usize::from(ip.header().total_len()),
        LaxIpSlice::Ipv6(ip) => Ipv6Header::LEN + usize::from(ip.header().payload_length()),
    };
    let port = |bytes| u16::from_be_bytes(bytes);
    Ok(Some(TooBig {
        to,
        flow: Flow {
            src: Addr::new(ip.source_addr(), port([a, b])),
            dst: Addr::new(ip.destination_addr(), port([c, d])),
        },
        seq: SeqNum(u32::from_be_bytes(*seq)),
        size,
        mtu: usize::try_from(mtu).unwrap_or(usize::MAX),
        headers: segment.as_ptr().addr() - quote.as_ptr().addr() + TcpHeader::MIN_LEN,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::tests::flow;
    use crate::encode;
    use airtcp_core::Segment;
    use proptest::prelude::*;

    /// A packet with 1,000 bytes of payload and the sequence number 7.
    fn segment(ipv6: bool) -> Vec<u8> {
        let mut packet = Vec::new();
        let payload = vec![0; 1000];
        let segment =
            Segment { flow: flow(ipv6), seq: SeqNum(7), payload, ..Segment::<Vec<u8>>::default() };
        encode(&segment, &mut packet).unwrap();
        packet
    }

    /// The message of a router to the sender of `quote`.
    fn message(ipv6: bool, mtu: u32, quote: &[u8]) -> Vec<u8> {
        let length = (ICMP_HEADER + quote.len()) as u16;
        let (mut packet, kind) = match ipv6 {
            true => {
                let mut header = vec![0x60, 0, 0, 0, 0, 0, ICMPV6, 64];
                header[4..6].copy_from_slice(&length.to_be_bytes());
                header.extend([0xfd; 16]);
                header.extend(&segment(true)[8..24]);
                (header, [PACKET_TOO_BIG, 0])
            }
            false => {
                let mut header = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, ICMP, 0, 0, 9, 9, 9, 9];
                header[2..4].copy_from_slice(&(20 + length).to_be_bytes());
                header.extend(&segment(false)[12..16]);
                (header, FRAGMENTATION_NEEDED)
            }
        };
        let start = packet.len();
        packet.extend(kind);
        packet.extend([0; 2]);
        packet.extend(mtu.to_be_bytes());
        packet.extend(quote);
        let sum = match IpSlice::from_slice(&packet).unwrap() {
            IpSlice::Ipv4(_) => Sum16BitWords::new().add_slice(&packet[start..]).ones_complement(),
            IpSlice::Ipv6(ip) => {
                let header = ip.header();
                let ends = [header.source_addr(), header.destination_addr()].map(IpAddr::V6);
                transport_checksum(ICMPV6, ends[0], ends[1], &packet[start..]).to_be()
            }
        };
        packet[start + 2..start + 4].copy_from_slice(&sum.to_ne_bytes());
        packet
    }

    fn read(packet: &[u8]) -> Result<Option<TooBig>, DecodeError> {
        too_big(packet, Checksums::Verify)
    }

    // RFC 792 and RFC 1191 §4; RFC 4443 §3.2.
    #[test]
    fn the_quoted_segment_and_the_next_link_are_read() {
        for (ipv6, mtu, headers) in [(false, 600, 40), (true, 1290, 60)] {
            let whole = segment(ipv6);
            for quoted in [headers - 12, whole.len()] {
                let read = read(&message(ipv6, mtu, &whole[..quoted])).unwrap().unwrap();
                let expected = TooBig {
                    to: flow(ipv6).src.ip,
                    flow: flow(ipv6),
                    seq: SeqNum(7),
                    size: 1000 + headers,
                    mtu: mtu as usize,
                    headers,
                };
                assert_eq!(read, expected);
            }
        }
    }

    #[test]
    fn what_is_no_such_message_is_another_packet() {
        assert_eq!(read(&segment(false)), Ok(None));
        for ipv6 in [false, true] {
            let mut other = message(ipv6, 1290, &segment(ipv6));
            other[if ipv6 { 40 } else { 20 }] = 11;
            assert_eq!(read(&other), Ok(None), "time exceeded, and another of ICMPv6");
        }
        let mut fragment = message(false, 600, &segment(false));
        fragment[6] = 0x20;
        assert_eq!(read(&fragment), Ok(None));
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        for ipv6 in [false, true] {
            let headers = if ipv6 { 40 } else { 20 };
            let whole = segment(ipv6);
            for quoted in [0, 1, headers - 1, headers + 7] {
                assert!(read(&message(ipv6, 1290, &whole[..quoted])).is_err(), "{quoted}");
            }
            let message = message(ipv6, 1290, &whole);
            assert!(read(&message[..headers + 7]).is_err());
        }
    }

    #[test]
    fn a_quote_of_another_protocol_is_refused() {
        for (ipv6, at) in [(false, 9), (true, 6)] {
            let mut quote = segment(ipv6);
            quote[at] = 17;
            let refused = Err(DecodeError::NotTcp { protocol: 17 });
            assert_eq!(read(&message(ipv6, 1290, &quote)), refused);
        }
        let mut fragment = segment(false);
        fragment[7] = 1;
        assert_eq!(read(&message(false, 600, &fragment)), Err(DecodeError::Fragment));
        let nested = message(false, 600, &segment(false));
        let refused = Err(DecodeError::NotTcp { protocol: ICMP });
        assert_eq!(read(&message(false, 600, &nested)), refused);
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        for ipv6 in [false, true] {
            let mut wrong = message(ipv6, 1290, &segment(ipv6));
            *wrong.last_mut().unwrap() ^= 1;
            assert_eq!(read(&wrong), Err(DecodeError::BadIcmpChecksum));
            assert!(too_big(&wrong, Checksums::Ignore).unwrap().is_some());
        }
    }

    #[test]
    fn the_room_is_the_link_less_the_headers() {
        let room = |ipv6, mtu, size| {
            let read = read(&message(ipv6, mtu, &segment(ipv6))).unwrap().unwrap();
            TooBig { size, ..read }.room()
        };
        assert_eq!(room(false, 600, 1040), Some(560));
        assert_eq!(room(false, 30, 1040), Some(0));
        assert_eq!(room(false, 1040, 1040), None, "it would have fit");
        assert_eq!(room(true, 1280, 1400), Some(1220));
        assert_eq!(room(true, 1279, 1400), None, "RFC 8201 §4");
        // RFC 1191 §5.
        assert_eq!(room(false, 0, 1500), Some(1452));
        assert_eq!(room(false, 0, 1492), Some(966));
        assert_eq!(room(false, 0, 68), None);
        assert_eq!(room(true, 0, 1400), None);
    }

    #[test]
    fn a_message_to_another_host_than_the_sender_leaves_no_room() {
        let mut packet = message(false, 600, &segment(false));
        packet[19] ^= 1;
        assert_eq!(read(&packet).unwrap().unwrap().room(), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            ipv6: bool,
            mtu: u32,
            quote in proptest::collection::vec(any::<u8>(), 0..100),
            first in proptest::option::of(prop_oneof![Just(0x45u8), Just(0x60)]),
        ) {
            let mut quote = quote;
            quote.iter_mut().take(1).for_each(|byte| *byte = first.unwrap_or(*byte));
            let read = too_big(&message(ipv6, mtu, &quote), Checksums::Ignore);
            let _ = read.map(|read| read.map(|read| read.room()));
            let _ = too_big(&quote, Checksums::Ignore);
        }
    }
}
