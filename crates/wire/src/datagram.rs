//! Packets of any protocol: whose they are, and how one is sent once more.

use crate::DecodeError;
use crate::checksum::{UDP, pseudo_header_sum};
use crate::offload::checksummed;
use airtcp_core::{Addr, Flow};
use etherparse::{IpNumber, IpSlice};

/// Protocols whose header begins with the two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, UDP, 33, 132, 136];

/// Bytes of the UDP header (RFC 768).
const UDP_HEADER: usize = 8;

/// Protocol number and flow of an IPv4 or IPv6 packet; ports are 0 where there are none, as in
/// fragments.
///
/// # Errors
/// It is no IP packet, or shorter than its headers.
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

/// One of the datagrams in a UDP packet that was left to the network to cut into payloads of `size`
/// bytes: the last one, or the first. `None`: it is no such packet.
pub fn piece(packet: &[u8], size: usize, last: bool) -> Option<Vec<u8>> {
    let ip = IpSlice::from_slice(packet).ok()?;
    let (src, dst) = (ip.source_addr(), ip.destination_addr());
    let message = ip.payload().payload;
    if ip.payload_ip_number() != IpNumber(UDP) || ip.is_fragmenting_payload() || size == 0 {
        return None;
    }
    let payload = message.get(UDP_HEADER..)?;
    let payload = match last {
        true => payload.chunks(size).last()?,
        false => payload.chunks(size).next()?,
    };
    let headers = message.as_ptr() as usize - packet.as_ptr() as usize + UDP_HEADER;
    let mut piece = packet.get(..headers)?.to_vec();
    piece.extend_from_slice(payload);
    let len = |from: usize| u16::try_from(piece.len() - from).map(u16::to_be_bytes).ok();
    let (udp, ip) = (headers - UDP_HEADER, packet[0] >> 4);
    let (udp_len, ip_len) = (len(udp)?, len(if ip == 4 { 0 } else { 40 })?);
    piece[udp + 4..udp + 6].copy_from_slice(&udp_len);
    let at = if ip == 4 { 2 } else { 4 };
    piece[at..at + 2].copy_from_slice(&ip_len);
    // The whole packet's checksum is none of the piece's: from here on the sender's is missing.
    let unfinished = pseudo_header_sum(UDP, src, dst, piece.len() - udp);
    piece[udp + 6..udp + 8].copy_from_slice(&unfinished.to_be_bytes());
    checksummed(&piece).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::encode_udp;
    use proptest::prelude::*;

    /// Between two hosts, for unit tests.
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
        fn bytes_of_any_kind_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = outline(&bytes);
            let _ = piece(&bytes, 10, true);
        }
    }
}
