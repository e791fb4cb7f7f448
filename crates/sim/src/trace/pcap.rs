//! A run as a pcapng file, for Wireshark and tshark.
//!
//! One interface per node, named like the node, in the order of the scenario. Times are simulated
//! time, counted from 1970 and exact to the nanosecond. Packets are raw IP packets with valid
//! checksums and zeros for user data, each marked as sent or received. Control packets of AODV and
//! DSR, and DSR's source routes, are those of their RFCs. GPSR has no format: its beacons appear as
//! UDP datagrams without ports, and what it writes into data packets does not appear. The section
//! header's comment names scenario and seed.
//!
//! A packet appears once for each interface it crosses, so TCP analysis of the whole file takes the
//! later copies for retransmissions. Look at one node at a time:
//! `tshark -r run.pcapng -Y 'frame.interface_name == "MH"' -w mh.pcapng`.

use super::{Crossing, Direction, PacketTap};
use crate::addr;
use crate::packet::{Control, Packet, UDP_OVERHEAD};
use crate::scenario::Scenario;
use airtcp_core::Length;
use airtcp_wire::{
    EncodeError, encode, encode_aodv, encode_dsr, encode_udp, insert_source_route, set_hop_limit,
};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

/// `if_tsresol` of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;
/// `if_snaplen` without a limit.
const WHOLE_PACKETS: u32 = 0;

/// Writes every packet of a run as it happens; holds one packet and a small write buffer.
pub struct PcapWriter<W: Write> {
    pcapng: PcapNgWriter<BufWriter<W>>,
    packet: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file's head: what ran (`scenario` with `seed`) and its nodes.
    ///
    /// # Errors
    /// Those of `writer`; `InvalidInput` for a name too long for the format (64 KiB).
    pub fn new(writer: W, scenario: &Scenario, seed: u64) -> io::Result<Self> {
        let comment = format!("scenario {}, seed {seed}", scenario.name);
        let application = concat!("airtcp ", env!("CARGO_PKG_VERSION"));
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::Comment(text(comment)?),
                SectionHeaderOption::UserApplication(application.into()),
            ],
            ..SectionHeaderBlock::default()
        };
        let mut pcapng = PcapNgWriter::with_section_header(BufWriter::new(writer), section)
            .map_err(into_io_error)?;
        for node in &scenario.nodes {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: WHOLE_PACKETS,
                options: vec![
                    InterfaceDescriptionOption::IfName(text(node.name.clone())?),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            pcapng.write_pcapng_block(interface).map_err(into_io_error)?;
        }
        Ok(Self { pcapng, packet: Vec::new(), error: None })
    }

    /// Completes the file and returns the writer.
    ///
    /// # Errors
    /// The first error of the run, after which nothing more was written, or the error of the last
    /// write.
    pub fn finish(self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.pcapng.into_inner().into_inner().map_err(io::IntoInnerError::into_error),
        }
    }

    fn write(&mut self, crossing: &Crossing<'_>) -> io::Result<()> {
        let Crossing { at, node, direction, .. } = *crossing;
        self.packet.clear();
        encode_crossing(crossing, &mut self.packet).map_err(io::Error::other)?;
        let block = EnhancedPacketBlock {
            interface_id: node.0,
            timestamp: std::time::Duration::from_nanos(at.as_nanos()),
            original_len: self.packet.len() as u32,
            data: Cow::Borrowed(&self.packet),
            options: vec![EnhancedPacketOption::Flags(epb_flags(direction))],
        };
        self.pcapng.write_pcapng_block(block).map_err(into_io_error)?;
        Ok(())
    }
}

/// The packet's bytes.
fn encode_crossing(crossing: &Crossing<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Crossing { node, direction, neighbour, ttl, packet, header, .. } = *crossing;
    let sender = match direction {
        Direction::Sent => node,
        Direction::Received => neighbour.unwrap_or(node),
    };
    match packet {
        Packet::Tcp(segment) => encode(segment, out)?,
        Packet::Udp(datagram) => encode_udp(&datagram.flow, &datagram.payload, out)?,
        Packet::Control(control) => {
            let Control { from, to, message } = control;
            return if let Some(message) = message.downcast_ref() {
                encode_aodv(message, *from, *to, addr::v4_of_node, out)
            } else if let Some(message) = message.downcast_ref() {
                encode_dsr(message, *from, addr::v4_of_node, out)
            } else {
                let payload = message.size().get().saturating_sub(UDP_OVERHEAD.get());
                encode_udp(&control.flow(), &Length(payload), out)
            };
        }
    }
    set_hop_limit(out, ttl);
    match header.and_then(|header| header.downcast_ref()) {
        Some(route) => insert_source_route(route, sender, addr::v4_of_node, out),
        None => Ok(()),
    }
}

impl<W: Write> PacketTap for PcapWriter<W> {
    fn on_packet(&mut self, crossing: &Crossing<'_>) {
        if self.error.is_none() {
            self.error = self.write(crossing).err();
        }
    }
}

/// The direction bits of `epb_flags`.
const fn epb_flags(direction: Direction) -> u32 {
    match direction {
        Direction::Received => 0b01,
        Direction::Sent => 0b10,
    }
}

/// `text` for a pcapng option, whose length field has 16 bits.
fn text(text: String) -> io::Result<Cow<'static, str>> {
    if text.len() > usize::from(u16::MAX) {
        let message = format!("a name of {} bytes is too long for a pcapng file", text.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(text.into())
}

fn into_io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Node, NodeId};
    use airtcp_core::{Duration, Instant, Segment};

    fn scenario(nodes: &[&str]) -> Scenario {
        let node = |name: &&str| Node::new(*name);
        Scenario {
            name: "test".into(),
            duration: Duration::from_secs(1),
            nodes: nodes.iter().map(node).collect(),
            ..Scenario::default()
        }
    }

    /// Accepts `room` bytes, then the disk is full.
    struct Disk {
        room: usize,
        failures: usize,
    }
    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Some(left) = self.room.checked_sub(bytes.len()) else {
                self.failures += 1;
                return Err(io::ErrorKind::StorageFull.into());
            };
            self.room = left;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn tap(pcap: &mut PcapWriter<impl Write>, len: u64) {
        let segment = Segment { payload: Length(len), ..Segment::default() };
        pcap.on_packet(&Crossing {
            at: Instant::ZERO,
            node: NodeId(0),
            direction: Direction::Sent,
            neighbour: None,
            ttl: 64,
            packet: &Packet::Tcp(segment),
            header: None,
        });
    }

    #[test]
    fn a_full_disk_is_reported_by_finish_and_not_written_to_again() {
        let mut disk = Disk { room: 100_000, failures: 0 };
        let mut pcap = PcapWriter::new(&mut disk, &scenario(&["A"]), 1).unwrap();
        for _ in 0..1000 {
            tap(&mut pcap, 1000);
        }
        assert_eq!(pcap.finish().err().unwrap().kind(), io::ErrorKind::StorageFull);
        // Once in the run; once more when the write buffer is dropped.
        assert!(disk.failures <= 2, "{} failures", disk.failures);
    }

    #[test]
    fn a_disk_full_at_the_last_write_is_reported() {
        let mut pcap =
            PcapWriter::new(Disk { room: 0, failures: 0 }, &scenario(&["A"]), 1).unwrap();
        tap(&mut pcap, 10);
        assert_eq!(pcap.finish().err().unwrap().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_segment_that_fits_in_no_packet_is_an_error() {
        let mut pcap = PcapWriter::new(io::sink(), &scenario(&["A"]), 1).unwrap();
        tap(&mut pcap, 65_496);
        tap(&mut pcap, 1);
        let message = pcap.finish().err().unwrap().to_string();
        assert!(message.starts_with("65516 bytes of header and payload exceed"), "{message}");
    }

    #[test]
    fn a_name_longer_than_the_format_allows_is_refused() {
        let long = "x".repeat(65_536);
        let error = PcapWriter::new(io::sink(), &scenario(&[&long]), 1).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
