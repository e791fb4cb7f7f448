//! Bit errors: some of the packets that leave a link have one bit flipped, anywhere in the packet.
//! The checksums of those who receive it decide what follows.

use airtcp_core::Stream;

/// Flips bits of one direction's packets.
#[derive(Clone, Debug)]
pub(crate) struct Corruption {
    p: f64,
    stream: Stream,
    packets: u64,
}

impl Corruption {
    /// Each packet has a bit flipped with probability `p`.
    pub(crate) fn new(p: f64, stream: Stream) -> Self {
        Self { p, stream, packets: 0 }
    }

    /// The same with another probability, and draws of its own, from now on.
    pub(crate) fn set(&mut self, p: f64, stream: Stream) {
        *self = Self { packets: self.packets, ..Self::new(p, stream) };
    }

    /// A packet leaves the link.
    pub(crate) fn pass(&mut self, packet: &mut [u8]) {
        let bits = 8 * packet.len() as u64;
        if self.p > 0.0 && bits > 0 && self.stream.chance(self.p) {
            let bit = self.stream.below(bits) as usize;
            packet[bit / 8] ^= 1 << (bit % 8);
            self.packets += 1;
        }
    }

    /// Packets with a flipped bit so far.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Addr, Flow, Segment};
    use airtcp_wire::{Checksums, decode, encode};
    use etherparse::checksum::Sum16BitWords;
    use std::net::{IpAddr, Ipv4Addr};

    fn corruption(p: f64) -> Corruption {
        Corruption::new(p, Stream::new(1, "link/up/corrupt"))
    }

    #[test]
    fn one_bit_of_a_share_of_the_packets_is_flipped_each_as_often() {
        let (packets, mut corruption) = (100_000, corruption(0.4));
        let (mut flipped, mut of_bit) = (0, [0; 16]);
        for _ in 0..packets {
            let mut packet = [0, 0];
            corruption.pass(&mut packet);
            let bits = u16::from_le_bytes(packet);
            assert!(bits.count_ones() <= 1);
            if bits > 0 {
                flipped += 1;
                of_bit[bits.trailing_zeros() as usize] += 1;
            }
        }
        assert_eq!(corruption.packets(), flipped);
        // 40 000 expected, standard deviation 155; 2500 of each bit, 49.4. Windows of four of them.
        assert!(flipped.abs_diff(40_000) < 620, "{flipped}");
        assert!(of_bit.iter().all(|n: &u64| n.abs_diff(2500) < 198), "{of_bit:?}");
    }

    #[test]
    fn nothing_is_flipped_without_a_share_or_in_an_empty_packet() {
        let mut packet = [7; 40];
        corruption(0.0).pass(&mut packet);
        assert_eq!(packet, [7; 40]);
        let mut corruption = corruption(1.0);
        corruption.pass(&mut []);
        assert_eq!(corruption.packets(), 0);
        corruption.pass(&mut packet);
        corruption.set(0.0, Stream::new(1, "link/up/corrupt/0"));
        corruption.pass(&mut packet);
        assert_eq!(corruption.packets(), 1);
    }

    /// The Internet checksum is a sum modulo 2^16 - 1 (RFC 1071), and no power of two up to 2^15 is
    /// 0 there. All of an IPv4 packet is under a checksum.
    #[test]
    fn no_flipped_bit_of_an_ipv4_segment_passes_its_checksums() {
        let end = |host| Addr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, host)), 443);
        let flow = Flow { src: end(1), dst: end(2) };
        let mut whole = Vec::new();
        let segment = Segment { flow, payload: vec![0x5a; 33], ..Segment::default() };
        encode(&segment, &mut whole).unwrap();
        assert!(decode(&whole, Checksums::Verify).is_ok());
        for bit in 0..8 * whole.len() {
            let mut packet = whole.clone();
            packet[bit / 8] ^= 1 << (bit % 8);
            let header_is_right =
                Sum16BitWords::new().add_slice(&packet[..20]).ones_complement() == 0;
            let passes = header_is_right && decode(&packet, Checksums::Verify).is_ok();
            assert!(!passes, "bit {bit} of the packet");
        }
    }
}
