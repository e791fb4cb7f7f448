//! Segment → packet.

use crate::checksum::{TCP, tcp_checksum};
use crate::options::EncodedOptions;
use airtcp_core::{Flags, Flow, Payload, Segment, SeqNum};
use etherparse::{IpNumber, Ipv4Header, Ipv6Header, TcpHeader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hop limit of a new packet (the value RFC 1700 recommends, and Linux's).
const HOP_LIMIT: u8 = 64;
/// Where the checksum is in the TCP header (RFC 9293 §3.1).
const CHECKSUM_FIELD: std::ops::Range<usize> = 16..18;

/// Why a segment cannot be a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Source and destination are of different IP versions.
    #[error("{0}: one address is IPv4 and the other IPv6")]
    MixedAddresses(Flow),
    /// TCP header and payload exceed what IP's 16-bit length field can say.
    #[error("{len} bytes of TCP header and payload exceed the {max} that fit in an IP packet")]
    TooLong {
        /// Bytes of TCP header and payload.
        len: usize,
        /// The limit.
        max: usize,
    },
}

/// Appends `segment` to `out` as an IP packet with valid checksums; on an error `out` is unchanged.
///
/// The length is [`Segment::wire_len`], except that SACK blocks without room in the 40 bytes of options
/// are left out from the end (the fourth beside timestamps). Fields a segment does not have: time to live
/// 64, "don't fragment", identification, traffic class, flow label and urgent pointer zero.
pub fn encode<P: Payload>(segment: &Segment<P>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Segment { flow, seq, ack, window, flags, options, payload } = segment;
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

    let tcp_len = tcp.header_len() + payload.len();
    match (flow.src.ip, flow.dst.ip) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => put_ipv4(src, dst, tcp_len, out)?,
        (IpAddr::V6(src), IpAddr::V6(dst)) => put_ipv6(src, dst, tcp_len, out)?,
        _ => return Err(EncodeError::MixedAddresses(*flow)),
    }
    let start = out.len();
    out.extend_from_slice(&tcp.to_bytes());
    payload.write_to(out);
    let checksum = tcp_checksum(flow.src.ip, flow.dst.ip, &out[start..]);
    out[start..][CHECKSUM_FIELD].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

fn put_ipv4(
    src: Ipv4Addr,
    dst: Ipv4Addr,
    tcp_len: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let too_long =
        EncodeError::TooLong { len: tcp_len, max: usize::from(u16::MAX) - Ipv4Header::MIN_LEN };
    let len = u16::try_from(tcp_len).map_err(|_| too_long)?;
    let mut header = Ipv4Header::new(len, HOP_LIMIT, IpNumber(TCP), src.octets(), dst.octets())
        .map_err(|_| too_long)?;
    header.header_checksum = header.calc_header_checksum();
    out.extend_from_slice(&header.to_bytes());
    Ok(())
}

fn put_ipv6(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    tcp_len: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let payload_length = u16::try_from(tcp_len)
        .map_err(|_| EncodeError::TooLong { len: tcp_len, max: usize::from(u16::MAX) })?;
    let header = Ipv6Header {
        payload_length,
        next_header: IpNumber(TCP),
        hop_limit: HOP_LIMIT,
        source: src.octets(),
        destination: dst.octets(),
        ..Ipv6Header::default()
    };
    out.extend_from_slice(&header.to_bytes());
    Ok(())
}
