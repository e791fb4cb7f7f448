//! The Internet checksum of a TCP segment or UDP datagram (RFC 9293 §3.1, RFC 768; RFC 8200 §8.1
//! for IPv6), of an ICMPv6 message (RFC 4443 §2.3), or of an IPv4 header (RFC 791 §3.1).

use etherparse::checksum::Sum16BitWords;
use std::net::IpAddr;

/// IP protocol number of TCP.
pub(crate) const TCP: u8 = 6;
/// IP protocol number of UDP.
pub(crate) const UDP: u8 = 17;
/// Next header value of ICMPv6.
pub(crate) const ICMPV6: u8 = 58;

/// Checksum over the pseudo-header and `message`: the header of `protocol` and the payload, as in
/// the packet. If the checksum field of `message` is zero, this is the right value for it; if the
/// field is right, this is zero.
pub(crate) fn transport_checksum(protocol: u8, src: IpAddr, dst: IpAddr, message: &[u8]) -> u16 {
    pseudo_header(protocol, src, dst, message.len()).add_slice(message).ones_complement().to_be()
}

/// Checksum over the header of an IPv4 packet (RFC 791 §3.1); zero if its field is right.
pub(crate) fn header_checksum(header: &[u8]) -> u16 {
    Sum16BitWords::new().add_slice(header).ones_complement().to_be()
}

/// Sum of the pseudo-header alone, which a sender leaves in the checksum field for a network card
/// to finish.
pub(crate) fn pseudo_header_sum(protocol: u8, src: IpAddr, dst: IpAddr, len: usize) -> u16 {
    !pseudo_header(protocol, src, dst, len).ones_complement().to_be()
}

fn pseudo_header(protocol: u8, src: IpAddr, dst: IpAddr, len: usize) -> Sum16BitWords {
    let mut sum = Sum16BitWords::new();
    for ip in [src, dst] {
        sum = match ip {
            IpAddr::V4(ip) => sum.add_4bytes(ip.octets()),
            IpAddr::V6(ip) => sum.add_16bytes(ip.octets()),
        };
    }
    // IPv4's pseudo-header has a 16-bit length, IPv6's a 32-bit one: the sum is the same.
    sum.add_2bytes([0, protocol]).add_4bytes((len as u32).to_be_bytes())
}
