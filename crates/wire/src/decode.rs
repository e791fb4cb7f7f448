//! Packet → segment.

use crate::checksum::{TCP, header_checksum, transport_checksum};
use crate::options::decode_options;
use airtcp_core::{Addr, Ecn, Flags, Flow, Length, Segment, SeqNum};
use etherparse::err::{LenError, ip, tcp};
use etherparse::{IpNumber, IpSlice, Ipv6Header, LaxIpSlice, TcpHeaderSlice};
use std::net::IpAddr;

/// Treatment of the checksums of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// Refuse a packet with a wrong checksum.
    Verify,
    /// Ignore them: on a live host a packet can be seen before the network card fills in its
    /// checksum, or after the card has checked it and merged it with others.
    Ignore,
}

/// Reason why a packet is not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The packet is neither IPv4 nor IPv6.
    #[error("neither IPv4 nor IPv6")]
    NotIp,
    /// The IP packet carries another protocol.
    #[error("IP protocol {protocol} is not TCP")]
    NotTcp {
        /// IP protocol number.
        protocol: u8,
    },
    /// The packet is a fragment of an IP packet.
    #[error("fragment of an IP packet")]
    Fragment,
    /// The packet is shorter than its headers state, or they state less than a header takes.
    #[error("truncated: {needed} bytes needed, {got} present")]
    Truncated {
        /// Bytes that the header takes or states.
        needed: usize,
        /// Bytes that are present.
        got: usize,
    },
    /// The length field of the IPv4 or TCP header is less than the fixed part of that header.
    #[error("header length of {words} 32-bit words is below the minimum of 5")]
    BadHeaderLength {
        /// Value of the field.
        words: u8,
    },
    /// An IP extension header has an invalid position or length.
    #[error("invalid IP extension header")]
    BadExtensionHeader,
    /// The length of a TCP option is invalid for its kind or runs past the header.
    #[error("TCP option {kind} has an invalid length")]
    BadOption {
        /// Kind number of the option.
        kind: u8,
    },
    /// The IPv4 header checksum is wrong.
    #[error("wrong IPv4 header checksum")]
    BadIpChecksum,
    /// The TCP checksum is wrong.
    #[error("wrong TCP checksum")]
    BadTcpChecksum,
    /// The checksum of an ICMP message is wrong.
    #[error("wrong ICMP checksum")]
    BadIcmpChecksum,
}

impl From<LenError> for DecodeError {
    fn from(error: LenError) -> Self {
        Self::Truncated { needed: error.required_len, got: error.len }
    }
}
impl From<ip::SliceError> for DecodeError {
    fn from(error: ip::SliceError) -> Self {
        use ip::{HeaderError, HeadersError, SliceError};
        match error {
            SliceError::Len(error) => error.into(),
            SliceError::IpHeaders(HeadersError::Ip(error)) => match error {
                HeaderError::UnsupportedIpVersion { .. } => Self::NotIp,
                HeaderError::Ipv4HeaderLengthSmallerThanHeader { ihl } => {
                    Self::BadHeaderLength { words: ihl }
                }
            },
            SliceError::IpHeaders(HeadersError::Ipv4Ext(_) | HeadersError::Ipv6Ext(_)) => {
                Self::BadExtensionHeader
            }
        }
    }
}
impl From<tcp::HeaderSliceError> for DecodeError {
    fn from(error: tcp::HeaderSliceError) -> Self {
        use tcp::{HeaderError, HeaderSliceError};
        match error {
            HeaderSliceError::Len(error) => error.into(),
            HeaderSliceError::Content(HeaderError::DataOffsetTooSmall { data_offset }) => {
                Self::BadHeaderLength { words: data_offset }
            }
        }
    }
}

/// A segment read by [`decode_with`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded<P> {
    /// The segment with its payload.
    pub segment: Segment<P>,
    /// Kind of an option that the connection depends on and [`encode`](crate::encode) cannot write.
    /// The receiver would refuse a segment without it, or the connection would break; a gateway
    /// leaves such a connection alone.
    ///
    /// This is any option that [`Options`](airtcp_core::Options) does not hold (Multipath TCP, the
    /// signatures MD5 and TCP-AO, unknown ones), except the experimental kinds 253 and 254, which
    /// any segment may lack. AccECN's option (RFC 9768 §3.2.3) may be missing as well, and the ACE
    /// field counts the marks in each segment. `None` on a SYN, whose options are only offers: the
    /// segments that follow show what was agreed.
    pub foreign_option: Option<u8>,
}

/// Reads an IPv4 or IPv6 packet (from its IP header on) that holds one whole TCP segment.
///
/// Bytes beyond the length in the IP header are padding and ignored. IP options and IPv6 extension
/// headers are skipped. An IPv6 payload length of zero means "to the end of `packet`", as in
/// packets above 64 KiB that segmentation offload makes (RFC 2675). Unknown TCP options are
/// skipped; a malformed known one is an error.
///
/// # Errors
/// The packet is not one whole TCP segment, or its header or checksum is wrong.
pub fn decode(packet: &[u8], checksums: Checksums) -> Result<Segment<Vec<u8>>, DecodeError> {
    Ok(decode_with(packet, checksums, <[u8]>::to_vec)?.segment)
}

/// Like [`decode`], but `payload` makes the user data from its slice of `packet`: nothing is copied
/// here.
///
/// # Errors
/// Like [`decode`].
pub fn decode_with<P>(
    packet: &[u8],
    checksums: Checksums,
    payload: impl FnOnce(&[u8]) -> P,
) -> Result<Decoded<P>, DecodeError> {
    let ip = IpSlice::from_slice(packet)?;
    if ip.is_fragmenting_payload() {
        return Err(DecodeError::Fragment);
    }
    let IpNumber(protocol) = ip.payload_ip_number();
    if protocol != TCP {
        return Err(DecodeError::NotTcp { protocol });
    }
    let message = ip.payload().payload;
    let tcp = TcpHeaderSlice::from_slice(message)?;
    let (src, dst) = (ip.source_addr(), ip.destination_addr());
    if checksums == Checksums::Verify {
        if let IpSlice::Ipv4(ipv4) = &ip
            && header_checksum(ipv4.header().slice()) != 0
        {
            return Err(DecodeError::BadIpChecksum);
        }
        if transport_checksum(TCP, src, dst, message) != 0 {
            return Err(DecodeError::BadTcpChecksum);
        }
    }

    let ecn = match &ip {
        IpSlice::Ipv4(ip) => Ecn::from_bits(ip.header().ecn().value()),
        IpSlice::Ipv6(ip) => Ecn::from_bits(ip.header().traffic_class()),
    };
    let data = &message[tcp.slice().len()..];
    segment(src, dst, ecn, &tcp, payload(data))
}

/// The headers of a TCP segment whose packet may have been cut off behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The segment, with the length of its payload as the IP header states it.
    pub segment: Segment<Length>,
    /// Time to live, or hop limit, on arrival.
    pub ttl: u8,
}

/// Reads the headers of an IPv4 or IPv6 packet (from its IP header on) that holds one TCP segment.
/// The payload may be missing, so checksums are ignored. Packets above 64 KiB do not state their
/// length; the bytes present count.
///
/// # Errors
/// Like [`decode`].
pub fn decode_headers(packet: &[u8]) -> Result<Headers, DecodeError> {
    let ip = LaxIpSlice::from_slice(packet).map_err(|_| DecodeError::NotIp)?.0;
    if ip.is_fragmenting_payload() {
        return Err(DecodeError::Fragment);
    }
    let IpNumber(protocol) = ip.payload_ip_number();
    if protocol != TCP {
        return Err(DecodeError::NotTcp { protocol });
    }
    let message = ip.payload().payload;
    let before = message.as_ptr().addr() - packet.as_ptr().addr();
    let (stated, ttl, ecn) = match &ip {
        LaxIpSlice::Ipv4(ip) => {
            let ip = ip.header();
            (usize::from(ip.total_len()), ip.ttl(), Ecn::from_bits(ip.ecn().value()))
        }
        LaxIpSlice::Ipv6(ip) => {
            let ip = ip.header();
            let stated = match ip.payload_length() {
                0 => 0,
                length => Ipv6Header::LEN + usize::from(length),
            };
            (stated, ip.hop_limit(), Ecn::from_bits(ip.traffic_class()))
        }
    };
    let tcp = TcpHeaderSlice::from_slice(message)?;
    let whole = if stated == 0 { packet.len() } else { stated };
    let len = whole.saturating_sub(before + tcp.slice().len());
    let (src, dst) = (ip.source_addr(), ip.destination_addr());
    let segment = segment(src, dst, ecn, &tcp, Length(len as u64))?.segment;
    Ok(Headers { segment, ttl })
}

fn segment<P>(
    src: IpAddr,
    dst: IpAddr,
    ecn: Ecn,
    tcp: &TcpHeaderSlice<'_>,
    payload: P,
) -> Result<Decoded<P>, DecodeError> {
    let mut flags = Flags::empty();
    flags.set(Flags::FIN, tcp.fin());
    flags.set(Flags::SYN, tcp.syn());
    flags.set(Flags::RST, tcp.rst());
    flags.set(Flags::PSH, tcp.psh());
    flags.set(Flags::URG, tcp.urg());
    flags.set(Flags::ECE, tcp.ece());
    flags.set(Flags::CWR, tcp.cwr());
    flags.set(Flags::AE, tcp.ns());
    let (options, foreign) = decode_options(tcp.options())?;
    let segment = Segment {
        flow: Flow {
            src: Addr::new(src, tcp.source_port()),
            dst: Addr::new(dst, tcp.destination_port()),
        },
        seq: SeqNum(tcp.sequence_number()),
        ack: tcp.ack().then(|| SeqNum(tcp.acknowledgment_number())),
        window: tcp.window_size(),
        flags,
        ecn,
        options,
        payload,
    };
    let foreign_option = foreign.filter(|_| !flags.contains(Flags::SYN));
    Ok(Decoded { segment, foreign_option })
}
