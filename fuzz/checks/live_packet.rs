//! Packets as a data path delivers them, hostile ones included: both families, extension headers,
//! any options, the sizes that offloads produce, bytes changed anywhere. The input describes how to
//! build a packet, so that every input is nearly a segment.

#[path = "segment.rs"]
pub(crate) mod segment;

use airtcp_core::Flags;
use airtcp_wire::{Checksums, decode, decode_with};

/// Panics when the decoder breaks a promise on the packet that this input describes.
pub(crate) fn check(input: &[u8]) {
    let packet = build(input);
    segment::check(&packet);

    let in_place = decode_with(&packet, Checksums::Ignore, <[u8]>::as_ptr_range);
    let (in_place, copied) = match (in_place, decode(&packet, Checksums::Ignore)) {
        (Ok(in_place), Ok(copied)) => (in_place, copied),
        (in_place, copied) => return assert_eq!(in_place.err(), copied.err()),
    };
    let (part, whole) = (in_place.segment.payload, packet.as_ptr_range());
    assert_eq!(part.end.addr() - part.start.addr(), copied.payload.len());
    assert!(whole.start <= part.start && part.end <= whole.end, "the payload is in the packet");

    let Some(kind) = in_place.foreign_option else { return };
    assert!(!copied.flags.contains(Flags::SYN), "options of a SYN are never foreign");
    assert!(
        ![0, 1, 2, 3, 4, 5, 8, 253, 254].contains(&kind),
        "kind {kind} can be written or left out"
    );
}

/// Takes the input from the front; zeros once it is used up.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }
    fn number(&mut self) -> usize {
        usize::from(u16::from_be_bytes([self.byte(), self.byte()]))
    }
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}

/// A packet with correct lengths, except for the bytes that the end of the input changes.
fn build(input: &[u8]) -> Vec<u8> {
    let mut source = Source(input);
    let is_ipv4 = source.byte() & 1 == 0;
    // Up to 128 KiB, as offloads make them in IPv6.
    let payload = 2 * source.number();
    let extensions = source.byte() % 4;

    let mut tcp = source.bytes(20);
    let options = 4 * usize::from(source.byte() % 11);
    tcp[12] = ((20 + options) as u8 / 4) << 4;
    tcp.extend(source.bytes(options));
    tcp.resize(tcp.len() + payload, 0);

    let mut packet =
        if is_ipv4 { ipv4(&mut source, extensions) } else { ipv6(&mut source, extensions) };
    packet.append(&mut tcp);
    let len = packet.len();
    if is_ipv4 {
        packet[2..4].copy_from_slice(&(len.min(0xffff) as u16).to_be_bytes());
    } else {
        // A length that does not fit is written as zero: "to the end".
        let len = u16::try_from(len - 40).unwrap_or(0);
        packet[4..6].copy_from_slice(&len.to_be_bytes());
    }
    while !source.0.is_empty() {
        let at = source.number() % packet.len().min(200);
        packet[at] ^= source.byte();
    }
    packet
}

/// An IPv4 header with this many words of options.
fn ipv4(source: &mut Source<'_>, words: u8) -> Vec<u8> {
    let mut header = vec![0; 20];
    header[0] = 0x45 + words;
    header[9] = 6;
    header.extend(source.bytes(4 * usize::from(words)));
    header
}

/// An IPv6 header with this many extension headers.
fn ipv6(source: &mut Source<'_>, extensions: u8) -> Vec<u8> {
    /// Hop-by-hop, routing, fragment, destination options, mobility.
    const KINDS: [u8; 5] = [0, 43, 44, 60, 135];
    let mut header = vec![0; 40];
    header[0] = 0x60;
    let mut next = 6;
    // From the innermost outwards.
    for _ in 0..extensions {
        let mut extension = source.bytes(8);
        extension[0] = next;
        extension[1] = 0;
        next = KINDS[usize::from(source.byte()) % KINDS.len()];
        header.splice(40..40, extension);
    }
    header[6] = next;
    header
}
