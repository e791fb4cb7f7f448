//! Packets of any protocol: their flow, and the pieces to send again.

use crate::DecodeError;
use crate::checksum::{TCP, UDP, pseudo_header_sum};
use crate::offload::checksummed;
use airtcp_core::{Addr, Flow};
use etherparse::{IpNumber, IpSlice};

/// Protocols whose header begins with the ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, UDP, 33, 132, 136];

/// Bytes of the UDP header (RFC 768).
const UDP_HEADER: usize = 8;

/// TCP flags that only one piece of a cut segment carries (RFC 9293 §3.1).
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;
/// AE, in the byte before.
const AE: u8 = 0x01;

/// Protocol number and flow of an IPv4 or IPv6 packet; ports are 0 if there are none, as in
/// fragments.
///
/// # Errors
/// `packet` is not an IP packet, or shorter than its headers.
pub fn outline(packet: &[u8]) -> Result<(u8, Flow), DecodeError> {
    let ip = IpSlice::from_slice(packet)?;
    let IpNumber(protocol) = ip.payload_ip_number();
    let ports = match ip.payload().payload {
        &[a, b, c, d, ..] if WITH_PORTS.contains(&protocol) && !ip.is_fragmenting_payload() => {
            [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
        }
        _ => [0; 2],
    };
    let [src, dst] = [(ip.source_addr(), ports[0]), (ip.destination_addr(), ports[1])]
        .map(|(ip, port)| Addr::new(ip, port));
    Ok((protocol, Flow { src, dst }))
}

/// The first or last of the packets that the network makes, with payloads of `size` bytes, of a UDP
/// or TCP packet whose segmentation was left to it. As the network does it, each piece has all TCP
/// options (an MPTCP mapping, RFC 8684 §3.3.1, covers the whole payload). `None` if `packet` is not
/// such a packet.
pub fn piece(packet: &[u8], size: usize, last: bool) -> Option<Vec<u8>> {
    let ip = IpSlice::from_slice(packet).ok()?;
    let (src, dst) = (ip.source_addr(), ip.destination_addr());
    let (IpNumber(protocol), message) = (ip.payload_ip_number(), ip.payload().payload);
    if ip.is_fragmenting_payload() || size == 0 {
        return None;
    }
    let header = match protocol {
        UDP => UDP_HEADER,
        TCP => 4 * usize::from(message.get(12)? >> 4),
        _ => return None,
    };
    let payload = message.get(header..)?;
    let offset = if last { payload.len().saturating_sub(1) / size * size } else { 0 };
    let part = &payload[offset..payload.len().min(offset + size)];
    let start = message.as_ptr() as usize - packet.as_ptr() as usize;
    let mut piece = packet.get(..start + header)?.to_vec();
    piece.extend_from_slice(part);
    let len = |from: usize| u16::try_from(piece.len() - from).map(u16::to_be_bytes).ok();
    let is_ipv4 = packet[0] >> 4 == 4;
    let (message_len, ip_len) = (len(start)?, len(if is_ipv4 { 0 } else { 40 })?);
    let at = if is_ipv4 { 2 } else { 4 };
    piece[at..at + 2].copy_from_slice(&ip_len);
    let message = &mut piece[start..];
    // From here on the piece is as its sender would have left it: with the sum of its pseudo-header.
    let unfinished = pseudo_header_sum(protocol, src, dst, message.len()).to_be_bytes();
    if protocol == UDP {
        message[4..6].copy_from_slice(&message_len);
        message[6..8].copy_from_slice(&unfinished);
    } else {
        let seq = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
        message[4..8].copy_from_slice(&seq.wrapping_add(offset as u32).to_be_bytes());
        // With AccECN, CWR is a part of the counter that every segment shows (RFC 9768 §3.2.2).
        if offset > 0 && message[12] & AE == 0 {
            message[13] &= !CWR;
        }
        if offset + part.len() < payload.len() {
            message[13] &= !(FIN | PSH);
        }
        message[16..18].copy_from_slice(&unfinished);
    }
    checksummed(&piece).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{encode, encode_udp};
    use airtcp_core::{Flags, Segment, SeqNum};
    use proptest::prelude::*;

    /// A flow between two hosts, for unit tests.
    pub(crate) fn flow(ipv6: bool) -> Flow {
        let ip = |last: u8| match ipv6 {
            true => format!("fd00::{last}").parse().unwrap(),
            false => format!("10.0.0.{last}").parse().unwrap(),
        };
        Flow { src: Addr::new(ip(1), 443), dst: Addr::new(ip(2), 5001) }
    }

    fn udp(ipv6: bool, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        encode_udp(&flow(ipv6), &payload.to_vec(), &mut packet).unwrap();
        packet
    }

    #[test]
    fn a_flow_has_the_ports_where_there_are_any() {
        assert_eq!(outline(&udp(false, b"x")).unwrap(), (UDP, flow(false)));
        assert_eq!(outline(&udp(true, b"x")).unwrap(), (UDP, flow(true)));
        let mut esp = udp(false, b"xyz");
        esp[9] = 50;
        let without = |addr: Addr| Addr { port: 0, ..addr };
        let Flow { src, dst } = flow(false);
        let flow = Flow { src: without(src), dst: without(dst) };
        assert_eq!(outline(&esp).unwrap(), (50, flow));
        assert!(outline(&[]).is_err() && outline(&[0x45; 19]).is_err());
    }

    proptest! {
        #[test]
        fn pieces_are_the_datagrams_that_the_network_would_make(
            ipv6: bool,
            payload in proptest::collection::vec(any::<u8>(), 1..5_000),
            size in 1usize..1_500,
        ) {
            let whole = udp(ipv6, &payload);
            let made = |last| piece(&whole, size, last).unwrap();
            let mut sent = payload.chunks(size).map(|chunk| udp(ipv6, chunk));
            let first = sent.next().unwrap();
            prop_assert_eq!(made(false), first.clone());
            prop_assert_eq!(made(true), sent.next_back().unwrap_or(first));
        }

        #[test]
        fn pieces_of_a_segment_are_those_that_the_network_would_make(
            ipv6: bool,
            payload in proptest::collection::vec(any::<u8>(), 1..5_000),
            size in 1usize..1_500,
            has_accecn: bool,
        ) {
            let mut flags = Flags::FIN | Flags::PSH | Flags::CWR;
            flags.set(Flags::AE, has_accecn);
            let whole = Segment { flow: flow(ipv6), seq: SeqNum(u32::MAX - 99), payload, flags, ..Segment::default() };
            let encoded = |segment: &Segment<Vec<u8>>| {
                let mut packet = Vec::new();
                encode(segment, &mut packet).unwrap();
                packet
            };
            let made = |last| piece(&encoded(&whole), size, last).unwrap();
            let count = whole.payload.len().div_ceil(size);
            let of = |n: usize| {
                let payload = whole.payload[n * size..].iter().copied().take(size).collect();
                let mut flags = flags;
                flags.set(Flags::CWR, n == 0 || has_accecn);
                flags.set(Flags::FIN | Flags::PSH, n == count - 1);
                encoded(&Segment { seq: whole.seq + (n * size) as u32, payload, flags, ..whole.clone() })
            };
            prop_assert_eq!(made(false), of(0));
            prop_assert_eq!(made(true), of(count - 1));
        }

        #[test]
        fn bytes_of_any_kind_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = outline(&bytes);
            let _ = piece(&bytes, 10, true);
        }
    }
}
