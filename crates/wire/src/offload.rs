//! Checksums that a sender left to its network card, in a packet that will never pass one.
//!
//! Read first: RFC 1071 (the sum), Linux's `Documentation/networking/checksum-offloads.rst`. A
//! sender that leaves the sum to its card puts the sum of the pseudo-header alone into the checksum
//! field; for SCTP it puts zero. In a tunnel this applies to the innermost packet: the checksums
//! around it are already those for the finished packet.
//!
//! A finished checksum stays, right or wrong, so that the receiver of a packet damaged on its way
//! can see that.

use crate::DecodeError;
use crate::checksum::{ICMPV6, TCP, UDP, header_checksum, pseudo_header_sum, transport_checksum};
use etherparse::{IpNumber, IpSlice};

const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const SCTP: u8 = 132;

/// UDP ports of VXLAN (RFC 7348) and Geneve (RFC 8926).
const VXLAN: u16 = 4789;
const GENEVE: u16 = 6081;

/// EtherTypes, also used by GRE and Geneve.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 2] = [0x8100, 0x88a8];
const ETHERNET: u16 = 0x6558;

/// Deepest nesting of tunnels that is followed.
const DEPTH: usize = 4;

/// The packet with the checksums that offloads would have filled in: IPv4's, and those of the
/// innermost TCP, UDP, ICMPv6 and SCTP of IP in IP, GRE, VXLAN and Geneve.
///
/// # Errors
/// `packet` is not an IP packet, or shorter than its headers.
pub fn checksummed(packet: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut whole = packet.to_vec();
    finish(&mut whole, DEPTH)?;
    Ok(whole)
}

/// True if the checksum of a packet's TCP, UDP or ICMPv6 is the sum of the pseudo-header alone: a
/// network card should have made it.
pub fn is_unfinished(packet: &[u8]) -> bool {
    let Ok(ip) = IpSlice::from_slice(packet) else { return false };
    let (IpNumber(protocol), message) = (ip.payload_ip_number(), ip.payload().payload);
    let sum = || {
        pseudo_header_sum(protocol, ip.source_addr(), ip.destination_addr(), message.len())
            .to_be_bytes()
    };
    let is_left = |at: usize| message.get(at..at + 2).is_some_and(|field| field == sum());
    !ip.is_fragmenting_payload() && place_of_sum(protocol).is_some_and(is_left)
}

/// Offset of the checksum in a header with the sum of RFC 1071.
fn place_of_sum(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        ICMPV6 => Some(2),
        _ => None,
    }
}

/// Payload of an IP packet.
struct Carried {
    protocol: u8,
    /// Offset of the payload in the packet.
    start: usize,
    end: usize,
    /// Sum of the pseudo-header.
    pseudo: u16,
}

/// Fills in the checksums of an IP packet and its payload.
fn finish(packet: &mut [u8], depth: usize) -> Result<(), DecodeError> {
    let ip = IpSlice::from_slice(packet)?;
    let header = match &ip {
        IpSlice::Ipv4(ipv4) => Some(ipv4.header().slice().len()),
        IpSlice::Ipv6(_) => None,
    };
    let (IpNumber(protocol), message) = (ip.payload_ip_number(), ip.payload().payload);
    let start = message.as_ptr() as usize - packet.as_ptr() as usize;
    let (src, dst, end) = (ip.source_addr(), ip.destination_addr(), start + message.len());
    let pseudo = pseudo_header_sum(protocol, src, dst, message.len());
    let is_fragment = ip.is_fragmenting_payload();
    if let Some(len) = header {
        packet[10..12].fill(0);
        let sum = header_checksum(&packet[..len]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    if !is_fragment {
        let carried = Carried { protocol, start, end, pseudo };
        if let Some(inner) = inner(&packet[start..end], protocol).filter(|_| depth > 0) {
            // What it carries may be no IP packet after all.
            let _ = finish(&mut packet[start + inner..end], depth - 1);
        }
        let sum = |message: &[u8]| transport_checksum(protocol, src, dst, message);
        carried.finish(packet, sum);
    }
    Ok(())
}

impl Carried {
    /// Fills in the payload's own checksum. `sum` computes it for a message whose checksum field is
    /// zero.
    fn finish(&self, packet: &mut [u8], sum: impl Fn(&[u8]) -> u16) {
        let message = &mut packet[self.start..self.end];
        if self.protocol == SCTP && message.get(8..12) == Some(&[0; 4]) {
            let sum = crc32c::crc32c(message);
            message[8..12].copy_from_slice(&sum.to_le_bytes());
        }
        let Some(at) = place_of_sum(self.protocol) else { return };
        if message.get(at..at + 2) != Some(&self.pseudo.to_be_bytes()) {
            return;
        }
        message[at..at + 2].fill(0);
        let sum = match sum(message) {
            // Zero means that there is none (RFC 768).
            0 if self.protocol == UDP => u16::MAX,
            sum => sum,
        };
        message[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Offset of the IP packet inside this message of a tunnel; `None` if there is none.
fn inner(message: &[u8], protocol: u8) -> Option<usize> {
    match protocol {
        IP_IN_IP | IPV6_IN_IP => Some(0),
        GRE => {
            let (flags, kind) = (word(message, 0)?, word(message, 2)?);
            // Without source routes (RFC 1701), version 0; a checksum, key and number if the flags
            // say so (RFC 2784, RFC 2890).
            if flags & 0x4007 != 0 {
                return None;
            }
            let fields = [0x8000, 0x2000, 0x1000].into_iter().filter(|flag| flags & flag != 0);
            of_type(message, 4 + 4 * fields.count(), kind)
        }
        UDP => match word(message, 2)? {
            VXLAN => of_type(message, 16, ETHERNET),
            GENEVE => {
                let options = usize::from(*message.get(8)? & 0x3f);
                of_type(message, 16 + 4 * options, word(message, 10)?)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Offset of the IP packet in a payload of EtherType `kind` that begins at `start`.
fn of_type(message: &[u8], start: usize, kind: u16) -> Option<usize> {
    match kind {
        IPV4 | IPV6 => Some(start),
        ETHERNET => {
            let mut at = start + 12;
            while VLAN.contains(&word(message, at)?) {
                at += 4;
            }
            let kind = word(message, at)?;
            (kind != ETHERNET).then(|| of_type(message, at + 2, kind))?
        }
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::tests::flow;
    use crate::{encode, encode_udp};
    use airtcp_core::Segment;
    use proptest::prelude::*;

    fn tcp(ipv6: bool, payload: Vec<u8>) -> Vec<u8> {
        let mut packet = Vec::new();
        encode(&Segment { flow: flow(ipv6), payload, ..Segment::default() }, &mut packet).unwrap();
        packet
    }

    fn udp(ipv6: bool, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        encode_udp(&flow(ipv6), &payload.to_vec(), &mut packet).unwrap();
        packet
    }

    /// An IP packet with this payload of `protocol`.
    fn ip(ipv6: bool, protocol: u8, message: &[u8]) -> Vec<u8> {
        let mut packet = udp(ipv6, &message[8.min(message.len())..]);
        let header = packet.len() - message.len();
        packet[header..].copy_from_slice(message);
        packet[if ipv6 { 6 } else { 9 }] = protocol;
        checksummed(&packet).unwrap()
    }

    /// The packet as a sender leaves it to its network card: with the sum of the pseudo-header in
    /// the checksum field.
    fn unfinished(packet: &[u8]) -> Vec<u8> {
        let ip = IpSlice::from_slice(packet).unwrap();
        let (IpNumber(protocol), message) = (ip.payload_ip_number(), ip.payload().payload);
        let (src, dst) = (ip.source_addr(), ip.destination_addr());
        let pseudo = pseudo_header_sum(protocol, src, dst, message.len());
        let at = packet.len() - message.len() + if protocol == TCP { 16 } else { 6 };
        let mut packet = packet.to_vec();
        packet[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
        packet
    }

    /// The IP packet in tunnels of each kind: VXLAN, Geneve with an option, GRE with a key, GRE
    /// with Ethernet and a VLAN, IP in IP.
    fn tunnels(inner: &[u8]) -> Vec<Vec<u8>> {
        let kind = if inner[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
        let in_ip = if inner[0] >> 4 == 4 { IP_IN_IP } else { IPV6_IN_IP };
        let ethernet = [&[2; 12][..], &kind, inner].concat();
        let vlan = [&[2; 12][..], &[0x81, 0x00, 0, 7], &kind, inner].concat();
        let overlay = |port: u16, payload: &[u8]| {
            let mut packet = udp(false, payload);
            packet[22..24].copy_from_slice(&port.to_be_bytes());
            // As VXLAN over IPv4 is by default: without a checksum.
            packet[26..28].fill(0);
            packet
        };
        vec![
            overlay(VXLAN, &[&[8, 0, 0, 0, 0, 0, 3, 0], &ethernet[..]].concat()),
            overlay(GENEVE, &[&[1, 0, kind[0], kind[1], 0, 0, 3, 0, 1, 2, 3, 0], inner].concat()),
            ip(false, GRE, &[&[0x20, 0, kind[0], kind[1], 0, 0, 0, 9], inner].concat()),
            ip(true, GRE, &[&[0, 0, 0x65, 0x58], &vlan[..]].concat()),
            ip(false, in_ip, inner),
        ]
    }

    proptest! {
        #[test]
        fn what_a_sender_left_to_its_card_is_finished(
            ipv6: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            for right in [tcp(ipv6, payload.clone()), udp(ipv6, &payload)] {
                prop_assert!(is_unfinished(&unfinished(&right)));
                prop_assert!(!is_unfinished(&right));
                prop_assert_eq!(checksummed(&unfinished(&right)).unwrap(), right.clone());
                for (whole, left) in tunnels(&right).iter().zip(tunnels(&unfinished(&right))) {
                    prop_assert_eq!(&checksummed(&left).unwrap(), whole);
                    prop_assert_eq!(&checksummed(whole).unwrap(), whole);
                }
            }
        }

        #[test]
        fn what_was_damaged_on_its_way_stays_so(
            ipv6: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..100),
            noise in 1u16..,
        ) {
            let right = udp(ipv6, &payload);
            let at = if ipv6 { 46 } else { 26 };
            let mut wrong = right.clone();
            let sum = u16::from_be_bytes([right[at], right[at + 1]]) ^ noise;
            wrong[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            prop_assume!(wrong != unfinished(&right));
            prop_assert_eq!(checksummed(&wrong).unwrap(), wrong);
        }

        #[test]
        fn bytes_of_any_kind_do_no_harm(
            kind in prop::sample::select(vec![4u8, 6, 17, 41, 47, 58, 132]),
            bytes in proptest::collection::vec(any::<u8>(), 8..200),
        ) {
            let _ = checksummed(&bytes);
            let _ = checksummed(&ip(false, kind, &bytes));
            for tunnel in tunnels(&ip(true, kind, &bytes)) {
                let _ = checksummed(&tunnel);
            }
        }
    }

    /// A DATA chunk as Linux's `sctp` sends it; the checksum is `crc32c` of RFC 9260, appendix A.
    /// RFC 791 §3.1: the reserved flag, too.
    #[test]
    fn the_sum_of_an_ipv4_header_covers_all_of_its_bits() {
        let mut packet = tcp(false, vec![7; 10]);
        packet[6] |= 0x80;
        let finished = checksummed(&packet).unwrap();
        assert_eq!(header_checksum(&finished[..20]), 0);
    }

    #[test]
    fn of_sctp_a_checksum_of_zero_is_made() {
        let header = [0x13, 0x88, 0x13, 0x89, 0, 0, 0, 1];
        let with = |sum: [u8; 4]| ip(false, SCTP, &[&header[..], &sum, &[10, 0, 0, 4]].concat());
        // ip() has finished it.
        let made = with([0; 4]);
        let sum: [u8; 4] = made[28..32].try_into().unwrap();
        assert_eq!(
            u32::from_le_bytes(sum),
            crc32c::crc32c(&[&header[..], &[0; 4], &[10, 0, 0, 4]].concat())
        );
        assert_eq!(with([1, 2, 3, 4])[28..32], [1, 2, 3, 4]);
    }
}
