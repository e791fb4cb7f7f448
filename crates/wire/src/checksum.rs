//! The Internet checksum of a TCP segment (RFC 9293 §3.1; RFC 8200 §8.1 for IPv6).

use etherparse::checksum::Sum16BitWords;
use std::net::IpAddr;

/// TCP's protocol number.
pub(crate) const TCP: u8 = 6;

/// Checksum over the pseudo-header and `segment`, which is TCP header and payload as they are in the
/// packet: the value for the checksum field when that field is zero, and zero when the field is right.
pub(crate) fn tcp_checksum(src: IpAddr, dst: IpAddr, segment: &[u8]) -> u16 {
    let mut sum = Sum16BitWords::new();
    for ip in [src, dst] {
        sum = match ip {
            IpAddr::V4(ip) => sum.add_4bytes(ip.octets()),
            IpAddr::V6(ip) => sum.add_16bytes(ip.octets()),
        };
    }
    // IPv4's pseudo-header has a 16-bit length, IPv6's a 32-bit one: the sum is the same.
    sum.add_2bytes([0, TCP])
        .add_4bytes((segment.len() as u32).to_be_bytes())
        .add_slice(segment)
        .ones_complement()
        .to_be()
}
