//! The properties of a packet that the link model uses.

use airtcp_core::Bytes;
use airtcp_net::PacketMeta;
use airtcp_net::queue::flow::flow_number;
use etherparse::{SlicedPacket, TransportSlice};

/// Size, flow, ECN field and DSCP of an IP packet, and whether its TCP or UDP payload is not empty.
pub(crate) fn meta(packet: &[u8]) -> PacketMeta {
    let data = match SlicedPacket::from_ip(packet).ok().and_then(|sliced| sliced.transport) {
        Some(TransportSlice::Tcp(tcp)) => !tcp.payload().is_empty(),
        Some(TransportSlice::Udp(udp)) => !udp.payload().is_empty(),
        _ => false,
    };
    let size = Bytes(packet.len() as u64);
    let flow = match airtcp_wire::outline(packet) {
        Ok((protocol, flow)) => flow_number(&flow, protocol),
        Err(_) => 0,
    };
    let (ecn, dscp) = (airtcp_wire::ecn(packet), airtcp_wire::dscp(packet));
    PacketMeta { size, flow, data, ecn, dscp }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Dscp, Ecn};

    /// An IPv4 packet of TCP or UDP with this many bytes of payload.
    fn packet(protocol: u8, payload: usize) -> Vec<u8> {
        let transport = if protocol == 6 { 20 } else { 8 };
        let mut bytes = vec![0; 20 + transport + payload];
        let total = (bytes.len() as u16).to_be_bytes();
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&total);
        bytes[9] = protocol;
        if protocol == 6 {
            bytes[32] = 0x50;
        } else {
            bytes[24..26].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
        }
        bytes
    }

    #[test]
    fn a_pure_ack_is_no_data() {
        let of = |packet: &[u8]| (meta(packet).size, meta(packet).data);
        assert_eq!(of(&packet(6, 0)), (Bytes(40), false));
        assert_eq!(of(&packet(6, 100)), (Bytes(140), true));
        assert_eq!(of(&packet(17, 1)), (Bytes(29), true));
    }

    #[test]
    fn flows_and_ecn_fields_are_told_apart() {
        let mut other = packet(6, 100);
        assert_eq!(meta(&other), meta(&packet(6, 100)));
        other[21] = 9;
        assert_ne!(meta(&other).flow, meta(&packet(6, 100)).flow);
        other[1] = 0b10;
        assert_eq!(meta(&other).ecn, Ecn::Ect0);
        other[1] = 46 << 2;
        assert_eq!((meta(&other).ecn, meta(&other).dscp), (Ecn::NotEct, Dscp::EF));
    }

    #[test]
    fn what_is_no_ip_packet_has_a_size_all_the_same() {
        assert_eq!(meta(&[1, 2, 3]), PacketMeta::new(Bytes(3), false));
    }
}
