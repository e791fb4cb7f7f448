//! What the link model asks of a packet.

use airtcp_core::Bytes;
use airtcp_net::PacketMeta;
use etherparse::{SlicedPacket, TransportSlice};

/// Size of the IP packet, and whether it carries payload of its transport.
pub(crate) fn meta(packet: &[u8]) -> PacketMeta {
    let data = match SlicedPacket::from_ip(packet).ok().and_then(|sliced| sliced.transport) {
        Some(TransportSlice::Tcp(tcp)) => !tcp.payload().is_empty(),
        Some(TransportSlice::Udp(udp)) => !udp.payload().is_empty(),
        _ => false,
    };
    PacketMeta { size: Bytes(packet.len() as u64), data }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(meta(&packet(6, 0)), PacketMeta { size: Bytes(40), data: false });
        assert_eq!(meta(&packet(6, 100)), PacketMeta { size: Bytes(140), data: true });
        assert_eq!(meta(&packet(17, 1)), PacketMeta { size: Bytes(29), data: true });
    }

    #[test]
    fn what_is_no_ip_packet_has_a_size_all_the_same() {
        assert_eq!(meta(&[1, 2, 3]), PacketMeta { size: Bytes(3), data: false });
    }
}
