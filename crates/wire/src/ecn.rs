//! The ECN field and the DSCP of a whole packet (RFC 3168 §5; §23 for their position in IPv4 and
//! IPv6).

use airtcp_core::{Dscp, Ecn};

/// Checksum field of the IPv4 header (RFC 791 §3.1).
const CHECKSUM: std::ops::Range<usize> = 10..12;

/// The ECN field; [`Ecn::NotEct`] if `packet` is not an IP packet.
pub fn ecn(packet: &[u8]) -> Ecn {
    octet(packet).map_or(Ecn::NotEct, Ecn::from_bits)
}

/// Sets the ECN field to [`Ecn::Ce`]. Leaves a packet that is not ECN-capable as it is (RFC 3168
/// §5).
pub fn mark_ce(packet: &mut [u8]) {
    if ecn(packet).is_capable() {
        set_ecn(packet, Ecn::Ce);
    }
}

/// Sets the ECN field and updates IPv4's header checksum, right or wrong, by the change (RFC 1624
/// §3). Leaves what is no IP packet as it is.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    set_octet(packet, |octet| octet & 0xfc | ecn.bits());
}

/// The DSCP of an IP packet; default forwarding for what is none.
pub fn dscp(packet: &[u8]) -> Dscp {
    octet(packet).map_or(Dscp::DEFAULT, Dscp::from_octet)
}

/// Sets the DSCP; otherwise like [`set_ecn`].
pub fn set_dscp(packet: &mut [u8], dscp: Dscp) {
    set_octet(packet, |octet| octet & 0x03 | dscp.bits() << 2);
}

/// The octet of DSCP and ECN field.
fn octet(packet: &[u8]) -> Option<u8> {
    match *packet {
        [version, class, ..] if version >> 4 == 4 => Some(class),
        [version, class, ..] if version >> 4 == 6 => Some(version << 4 | class >> 4),
        _ => None,
    }
}

fn set_octet(packet: &mut [u8], change: impl FnOnce(u8) -> u8) {
    let Some(octet) = octet(packet).map(change) else { return };
    if packet[0] >> 4 == 6 {
        packet[0] = packet[0] & 0xf0 | octet >> 4;
        packet[1] = packet[1] & 0x0f | octet << 4;
        return;
    }
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let before = word(packet, 0);
    packet[1] = octet;
    let after = word(packet, 0);
    if packet.len() >= CHECKSUM.end {
        let sum = [!word(packet, CHECKSUM.start), !before, after];
        let sum: u32 = sum.into_iter().map(u32::from).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        packet[CHECKSUM].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::tests::flow;
    use crate::{Checksums, decode, encode};
    use airtcp_core::{Length, Segment};
    use proptest::prelude::*;

    fn packet(ipv6: bool, ecn: Ecn) -> Vec<u8> {
        let segment = Segment { flow: flow(ipv6), ecn, payload: Length(9), ..Segment::default() };
        let mut packet = Vec::new();
        encode(&segment, &mut packet).unwrap();
        packet
    }

    proptest! {
        #[test]
        fn a_marked_packet_is_the_same_but_for_its_ecn_field(ipv6: bool, bits in 1u8..4) {
            // `decode` checks IPv4's header checksum, too.
            let mut marked = packet(ipv6, Ecn::from_bits(bits));
            prop_assert_eq!(ecn(&marked), Ecn::from_bits(bits));
            mark_ce(&mut marked);
            prop_assert_eq!(&marked, &packet(ipv6, Ecn::Ce));
            prop_assert_eq!(decode(&marked, Checksums::Verify).unwrap().ecn, Ecn::Ce);
        }

        #[test]
        fn any_codepoint_can_be_set(ipv6: bool, bits in 0u8..4, new in 0u8..4) {
            let mut other = packet(ipv6, Ecn::from_bits(bits));
            set_ecn(&mut other, Ecn::from_bits(new));
            prop_assert_eq!(&other, &packet(ipv6, Ecn::from_bits(new)));
        }

        #[test]
        fn a_dscp_can_be_set_and_leaves_ecn_alone(ipv6: bool, bits in 0u8..4, new in 0u8..64) {
            let before = packet(ipv6, Ecn::from_bits(bits));
            let mut marked = before.clone();
            set_dscp(&mut marked, Dscp::new(new).unwrap());
            prop_assert_eq!(dscp(&marked), Dscp::new(new).unwrap());
            // Checks IPv4's header checksum, too.
            prop_assert_eq!(decode(&marked, Checksums::Verify).unwrap().ecn, Ecn::from_bits(bits));
            set_dscp(&mut marked, Dscp::DEFAULT);
            prop_assert_eq!(marked, before);
        }

        #[test]
        fn bytes_that_are_no_packet_do_no_harm(mut bytes: Vec<u8>) {
            let before = ecn(&bytes);
            mark_ce(&mut bytes);
            prop_assert_eq!(ecn(&bytes).is_capable(), before.is_capable());
        }
    }

    #[test]
    fn the_checksum_of_options_stays_right() {
        // RFC 1624 §3: by the change alone, whatever else the header holds.
        let mut with_options = packet(false, Ecn::Ect0);
        with_options[0] = 0x46;
        with_options.splice(20..20, [1, 1, 1, 0]);
        let sum = |packet: &[u8]| {
            let words = packet[..24].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
            let sum: u32 = words.sum();
            (sum & 0xffff) + (sum >> 16)
        };
        let before = sum(&with_options);
        mark_ce(&mut with_options);
        assert_eq!(sum(&with_options), before);
    }

    #[test]
    fn a_packet_of_a_sender_without_ecn_stays_as_it_is() {
        for ipv6 in [false, true] {
            let mut packet = packet(ipv6, Ecn::NotEct);
            let before = packet.clone();
            mark_ce(&mut packet);
            assert_eq!(packet, before);
        }
    }
}
