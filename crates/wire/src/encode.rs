//! Segment, datagram or echo request → packet.

use crate::checksum::{ICMPV6, TCP, UDP, transport_checksum};
use crate::options::EncodedOptions;
use airtcp_core::{Ecn, Flags, Flow, Payload, Segment, SeqNum};
use etherparse::checksum::Sum16BitWords;
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Hop limit of a new packet (the value RFC 1700 recommends, and Linux's).
pub(crate) const HOP_LIMIT: u8 = 64;
/// Checksum field of the TCP header (RFC 9293 §3.1).
const TCP_CHECKSUM: Range<usize> = 16..18;
/// Checksum field of the UDP header (RFC 768).
const UDP_CHECKSUM: Range<usize> = 6..8;

/// IP protocol number of ICMP (RFC 792).
const ICMP: u8 = 1;
/// Checksum field of the ICMP headers (RFC 792, RFC 4443 §2.1).
const ICMP_CHECKSUM: Range<usize> = 2..4;

/// Checksum field of the IPv4 header (RFC 791 §3.1).
const IPV4_CHECKSUM: Range<usize> = 10..12;

/// Reason why a segment or a datagram cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Source and destination are of different IP versions.
    #[error("{0}: one address is IPv4 and the other IPv6")]
    MixedAddresses(Flow),
    /// TCP or UDP header and payload exceed IP's 16-bit length field.
    #[error("{len} bytes of header and payload exceed the {max} that fit in an IP packet")]
    TooLong {
        /// Bytes of TCP or UDP header and payload.
        len: usize,
        /// Largest encodable length, bytes.
        max: usize,
    },
    /// A routing message lists more nodes than it can.
    #[error("a routing message lists {count} nodes; at most {max} fit")]
    TooManyNodes {
        /// Number of nodes to list.
        count: usize,
        /// Largest number of nodes.
        max: usize,
    },
}

/// Appends `segment` to `out` as an IP packet with valid checksums; on an error `out` is unchanged.
///
/// The length is [`Segment::wire_len`], unless the SACK blocks do not fit in the 40 bytes of
/// options: then the last ones are left out (with timestamps, the fourth). Fields that a segment
/// does not have are fixed: time to live 64; "don't fragment" set; identification, differentiated
/// services, flow label and urgent pointer zero.
pub fn encode<P: Payload>(segment: &Segment<P>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Segment { flow, seq, ack, window, flags, ecn, options, payload } = segment;
    let options = EncodedOptions::new(options);
    let mut tcp = TcpHeader::new(flow.src.port, flow.dst.port, seq.0, *window);
    tcp.set_options_raw(options.as_slice()).expect("at most 40 bytes of options");
    tcp.acknowledgment_number = ack.map_or(0, |SeqNum(ack)| ack);
    tcp.ack = ack.is_some();
    tcp.fin = flags.contains(Flags::FIN);
    tcp.syn = flags.contains(Flags::SYN);
    tcp.rst = flags.contains(Flags::RST);
    tcp.psh = flags.contains(Flags::PSH);
    tcp.urg = flags.contains(Flags::URG);
    tcp.ece = flags.contains(Flags::ECE);
    tcp.cwr = flags.contains(Flags::CWR);
    tcp.ns = flags.contains(Flags::AE);

    put_ip(TCP, *ecn, flow, tcp.header_len() + payload.len(), out)?;
    let start = out.len();
    out.extend_from_slice(&tcp.to_bytes());
    payload.write_to(out);
    let checksum = transport_checksum(TCP, flow.src.ip, flow.dst.ip, &out[start..]);
    out[start..][TCP_CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Appends a UDP datagram to `out` as an IP packet with valid checksums; on an error `out` is
/// unchanged. The IP header is like that of [`encode`].
pub fn encode_udp<P: Payload>(
    flow: &Flow,
    payload: &P,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let len = UdpHeader::LEN + payload.len();
    put_ip(UDP, Ecn::NotEct, flow, len, out)?;
    let header = UdpHeader {
        source_port: flow.src.port,
        destination_port: flow.dst.port,
        // What fits in an IP packet fits here.
        length: len as u16,
        checksum: 0,
    };
    let start = out.len();
    out.extend_from_slice(&header.to_bytes());
    payload.write_to(out);
    // Zero means "no checksum"; all ones is the other zero of ones' complement (RFC 768).
    let checksum = match transport_checksum(UDP, flow.src.ip, flow.dst.ip, &out[start..]) {
        0 => u16::MAX,
        sum => sum,
    };
    out[start..][UDP_CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Appends an echo request without data, sequence number 0, to `out` as an IP packet with valid
/// checksums (RFC 792, RFC 4443 §4.1); on an error `out` is unchanged. The flow's ports are not
/// used. The IP header is like that of [`encode`].
///
/// # Errors
/// [`EncodeError::MixedAddresses`].
pub fn encode_echo_request(
    flow: &Flow,
    identifier: u16,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let (protocol, kind) = if flow.dst.ip.is_ipv4() { (ICMP, 8) } else { (ICMPV6, 128) };
    let [high, low] = identifier.to_be_bytes();
    let mut message = [kind, 0, 0, 0, high, low, 0, 0];
    put_ip(protocol, Ecn::NotEct, flow, message.len(), out)?;
    let checksum = match protocol {
        ICMPV6 => transport_checksum(ICMPV6, flow.src.ip, flow.dst.ip, &message),
        // Without a pseudo-header.
        _ => Sum16BitWords::new().add_slice(&message).ones_complement().to_be(),
    };
    message[ICMP_CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&message);
    Ok(())
}

/// Appends the IP header of a packet with `len` bytes of `protocol`.
fn put_ip(
    protocol: u8,
    ecn: Ecn,
    flow: &Flow,
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    out.reserve(Ipv6Header::LEN + len);
    match (flow.src.ip, flow.dst.ip) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => put_ipv4(protocol, ecn, src, dst, len, out),
        (IpAddr::V6(src), IpAddr::V6(dst)) => put_ipv6(protocol, ecn, src, dst, len, out),
        _ => Err(EncodeError::MixedAddresses(*flow)),
    }
}

pub(crate) fn put_ipv4(
    protocol: u8,
    ecn: Ecn,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let too_long = EncodeError::TooLong { len, max: usize::from(u16::MAX) - Ipv4Header::MIN_LEN };
    let len = u16::try_from(len).map_err(|_| too_long)?;
    let mut header =
        Ipv4Header::new(len, HOP_LIMIT, IpNumber(protocol), src.octets(), dst.octets())
            .map_err(|_| too_long)?;
    header.ecn = match ecn {
        Ecn::NotEct => IpEcn::NotEct,
        Ecn::Ect1 => IpEcn::Ect1,
        Ecn::Ect0 => IpEcn::Ect0,
        Ecn::Ce => IpEcn::CongestionExperienced,
    };
    header.header_checksum = header.calc_header_checksum();
    out.extend_from_slice(&header.to_bytes());
    Ok(())
}

/// Sets the time to live, or hop limit, of a whole packet.
pub fn set_hop_limit(packet: &mut [u8], limit: u8) {
    match packet[0] >> 4 {
        4 => {
            packet[8] = limit;
            set_ipv4_checksum(packet);
        }
        _ => packet[7] = limit,
    }
}

/// Computes the checksum of an IPv4 header anew after a change.
pub(crate) fn set_ipv4_checksum(packet: &mut [u8]) {
    packet[IPV4_CHECKSUM].fill(0);
    let header = Sum16BitWords::new().add_slice(&packet[..Ipv4Header::MIN_LEN]);
    packet[IPV4_CHECKSUM].copy_from_slice(&header.ones_complement().to_be().to_be_bytes());
}

fn put_ipv6(
    protocol: u8,
    ecn: Ecn,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let payload_length =
        u16::try_from(len).map_err(|_| EncodeError::TooLong { len, max: usize::from(u16::MAX) })?;
    let header = Ipv6Header {
        payload_length,
        traffic_class: ecn.bits(),
        next_header: IpNumber(protocol),
        hop_limit: HOP_LIMIT,
        source: src.octets(),
        destination: dst.octets(),
        ..Ipv6Header::default()
    };
    out.extend_from_slice(&header.to_bytes());
    Ok(())
}
