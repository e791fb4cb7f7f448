//! Captures of a run: a pcapng file for each network interface, as `tcpdump -i INTERFACE` on that
//! node would have written it (docs/captures.md).
//!
//! Times are simulated time, counted from 1970 and exact to the nanosecond. Packets are raw IP
//! packets with valid checksums and zeros for user data, each marked as sent or received. Control
//! packets of AODV and DSR, and DSR's source routes, are those of their RFCs. GPSR has no format:
//! its beacons appear as UDP datagrams without ports, and what it writes into data packets does not
//! appear. ARP is not IP, and does not appear either. The section header's comment names scenario
//! and seed.
//!
//! A packet is sent when its link begins to serve it, which is when it leaves the queueing
//! discipline for the driver, where Linux shows it to tcpdump. A radio shows it before its queue, as
//! one of mac80211 does. The time is often known before it comes; then the packet waits here.
//!
//! One interface a file, because analysers of TCP take the second copy of a packet for a
//! retransmission, and libpcap 1.10.3 refuses a second interface of raw IP.
//!
//! A cell may have a sniffer in monitor mode as well, which hears each frame once, also those that
//! collide, at the instant at which it begins ([`radiotap`]).

use super::{AirFrame, Crossing, Direction, PacketTap, radiotap};
use crate::addr;
use crate::packet::{Control, Packet, UDP_OVERHEAD};
use crate::scenario::{NodeId, Scenario, Wlan, WlanId};
use airtcp_core::{Ecn, Instant, Length};
use airtcp_net::wifi::ChannelConfig;
use airtcp_routing::arp;
use airtcp_wire::{
    EncodeError, encode, encode_aodv, encode_dsr, encode_udp, insert_source_route, set_dscp,
    set_ecn, set_hop_limit,
};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;

/// `if_tsresol` of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;
/// `if_snaplen` without a limit.
const WHOLE_PACKETS: u32 = 0;

/// A network interface of a node, or a sniffer in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// `phone`, if it is the node's only one; else `AP.phone` for the link to `phone`, and `AP@cell`
    /// for the radio in `cell`; `@cell` for the sniffer. No two have the same name.
    pub name: String,
    place: Place,
}

/// The place of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Node(NodeId, Port),
    /// In the air of a cell.
    Air(WlanId),
}

/// What is at the other side of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Port {
    /// The link to this node; a pair of nodes has only one.
    Link(NodeId),
    Radio(WlanId),
}

impl Interface {
    /// The interfaces of a scenario's nodes, in the order of the nodes.
    pub fn all(scenario: &Scenario) -> Vec<Self> {
        let links = scenario.links.iter().map(|link| (link.from, Port::Link(link.to)));
        let cells = (0..).map(WlanId).zip(&scenario.wlans);
        let radios = cells.flat_map(|(id, cell)| {
            cell.stations.iter().map(move |station| (station.node, Port::Radio(id)))
        });
        let ports: BTreeSet<(NodeId, Port)> = links.chain(radios).collect();
        let mut per_node: BTreeMap<NodeId, usize> = BTreeMap::new();
        ports.iter().for_each(|(node, _)| *per_node.entry(*node).or_default() += 1);
        let of_port = |(node, port): (NodeId, Port)| {
            let own = &scenario.nodes[node].name;
            let name = match port {
                _ if per_node[&node] == 1 => own.clone(),
                Port::Link(to) => format!("{own}.{}", scenario.nodes[to].name),
                Port::Radio(WlanId(cell)) => {
                    format!("{own}@{}", scenario.wlans[cell as usize].name)
                }
            };
            Self { name, place: Place::Node(node, port) }
        };
        ports.into_iter().map(of_port).collect()
    }

    /// A sniffer for each cell of a scenario.
    pub fn sniffers(scenario: &Scenario) -> Vec<Self> {
        let cells = (0..).map(WlanId).zip(&scenario.wlans);
        let sniffer = |(id, cell): (_, &Wlan)| Self {
            name: format!("@{}", cell.name),
            place: Place::Air(id),
        };
        cells.map(sniffer).collect()
    }

    /// The node that has it; `None`: a sniffer.
    pub fn node(&self) -> Option<NodeId> {
        match self.place {
            Place::Node(node, _) => Some(node),
            Place::Air(_) => None,
        }
    }
}

/// Writes the packets of a run as they happen; holds those that wait in links, and a small write
/// buffer for each interface.
pub struct PcapWriter<W: Write> {
    captures: BTreeMap<Place, Capture<W>>,
    /// How the stations of each cell send, if sniffers listen.
    cells: Vec<ChannelConfig>,
    /// Time of the latest crossing.
    now: Instant,
    packet: Vec<u8>,
    error: Option<io::Error>,
}

/// The file of an interface.
struct Capture<W: Write> {
    file: PcapNgWriter<BufWriter<W>>,
    snaplen: Option<NonZeroU32>,
    /// Packets that will be sent, in order of time.
    ahead: VecDeque<Ahead>,
}

/// A packet that will be sent.
struct Ahead {
    at: Instant,
    /// Up to the snap length.
    packet: Box<[u8]>,
    original_len: usize,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the heads of the files of `interfaces`: what runs (`scenario` with `seed`), and which
    /// interface it is. Only the first `snaplen` bytes of packets are written.
    ///
    /// # Errors
    /// Those of `open` and of the writers; `InvalidInput` for a name too long for the format
    /// (64 KiB).
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        interfaces: &[Interface],
        snaplen: Option<NonZeroU32>,
        mut open: impl FnMut(&Interface) -> io::Result<W>,
    ) -> io::Result<Self> {
        let mut captures = BTreeMap::new();
        for interface in interfaces {
            let file = begin(open(interface)?, scenario, seed, interface, snaplen)?;
            captures.insert(interface.place, Capture { file, snaplen, ahead: VecDeque::new() });
        }
        let sniffs = captures.keys().any(|place| matches!(place, Place::Air(_)));
        let cells = scenario.wlans.iter().filter(|_| sniffs).map(|wlan| wlan.config.clone());
        let cells = cells.collect();
        Ok(Self { captures, cells, now: Instant::ZERO, packet: Vec::new(), error: None })
    }

    /// Completes the files and returns the writers. Packets whose time had not come were not sent.
    ///
    /// # Errors
    /// The first error of the run, after which nothing more was written, or that of a last write.
    pub fn finish(self) -> io::Result<Vec<W>> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let captures = self.captures.into_values();
        let whole = |capture: Capture<W>| capture.file.into_inner().into_inner();
        captures.map(|it| whole(it).map_err(io::IntoInnerError::into_error)).collect()
    }

    /// Writes a packet that crosses an interface, `marked` by its queue or not; keeps one whose time
    /// has not come.
    fn take(&mut self, crossing: &Crossing<'_>, marked: bool) -> io::Result<()> {
        let Crossing { at, direction, .. } = *crossing;
        let Some(capture) = place(crossing).and_then(|place| self.captures.get_mut(&place)) else {
            return Ok(());
        };
        self.packet.clear();
        encode_packet(crossing, &mut self.packet).map_err(io::Error::other)?;
        if marked {
            set_ecn(&mut self.packet, Ecn::Ce);
        }
        let original_len = self.packet.len();
        if at > self.now {
            let packet = capture.kept(&self.packet).into();
            capture.ahead.push_back(Ahead { at, packet, original_len });
            return Ok(());
        }
        capture.write_ahead(at)?;
        capture.write(at, &self.packet, original_len, Some(direction))
    }

    fn write_frame(&mut self, frame: &AirFrame<'_>) -> io::Result<()> {
        let Some(capture) = self.captures.get_mut(&Place::Air(frame.wlan)) else {
            return Ok(());
        };
        let cell = &self.cells[frame.wlan.0 as usize];
        for place in 0..radiotap::count(frame) {
            self.packet.clear();
            let original_len =
                radiotap::encode(cell, frame, place, &mut self.packet).map_err(io::Error::other)?;
            capture.write(frame.at, &self.packet, original_len, None)?;
        }
        Ok(())
    }

    /// Does `task`, unless there was an error before.
    fn attempt(&mut self, task: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = task(self).err();
        }
    }
}

impl<W: Write> Capture<W> {
    /// Writes the packets that have been sent by `now`.
    fn write_ahead(&mut self, now: Instant) -> io::Result<()> {
        while self.ahead.front().is_some_and(|next| next.at <= now)
            && let Some(Ahead { at, packet, original_len }) = self.ahead.pop_front()
        {
            self.write(at, &packet, original_len, Some(Direction::Sent))?;
        }
        Ok(())
    }

    /// The packet up to the snap length.
    fn kept<'p>(&self, packet: &'p [u8]) -> &'p [u8] {
        let limit = self.snaplen.map_or(usize::MAX, |limit| limit.get() as usize);
        &packet[..packet.len().min(limit)]
    }

    /// Writes a packet of `original_len` up to the snap length.
    fn write(
        &mut self,
        at: Instant,
        packet: &[u8],
        original_len: usize,
        direction: Option<Direction>,
    ) -> io::Result<()> {
        let flags = direction.map(|it| EnhancedPacketOption::Flags(epb_flags(it)));
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: std::time::Duration::from_nanos(at.as_nanos()),
            original_len: original_len as u32,
            data: Cow::Borrowed(self.kept(packet)),
            options: flags.into_iter().collect(),
        };
        self.file.write_pcapng_block(block).map_err(into_io_error)?;
        Ok(())
    }
}

/// Writes the head of a file.
fn begin<W: Write>(
    writer: W,
    scenario: &Scenario,
    seed: u64,
    interface: &Interface,
    snaplen: Option<NonZeroU32>,
) -> io::Result<PcapNgWriter<BufWriter<W>>> {
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
    let description = InterfaceDescriptionBlock {
        linktype: match interface.place {
            Place::Node(..) => DataLink::RAW,
            Place::Air(_) => DataLink::IEEE802_11_RADIOTAP,
        },
        snaplen: snaplen.map_or(WHOLE_PACKETS, NonZeroU32::get),
        options: vec![
            InterfaceDescriptionOption::IfName(text(interface.name.clone())?),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    };
    pcapng.write_pcapng_block(description).map_err(into_io_error)?;
    Ok(pcapng)
}

/// The interface at which a packet is captured, if it is one of IP.
fn place(crossing: &Crossing<'_>) -> Option<Place> {
    let Crossing { node, wlan, neighbour, packet, .. } = *crossing;
    if let Packet::Control(control) = packet
        && control.message.downcast_ref::<arp::Message>().is_some()
    {
        return None;
    }
    let port = wlan.map(Port::Radio).or(neighbour.map(Port::Link))?;
    Some(Place::Node(node, port))
}

/// The packet's bytes.
pub(super) fn encode_packet(crossing: &Crossing<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Crossing { node, direction, neighbour, ttl, dscp, packet, header, .. } = *crossing;
    let sender = match direction {
        Direction::Sent => node,
        Direction::Received => neighbour.unwrap_or(node),
    };
    match packet {
        Packet::Tcp(segment) => encode(segment, out)?,
        Packet::Udp(datagram) => encode_udp(&datagram.flow, &datagram.payload, out)?,
        Packet::Quic(datagram) => {
            let payload = Length(datagram.payload.len() as u64);
            encode_udp(&datagram.flow, &payload, out)?;
            set_ecn(out, datagram.ecn);
        }
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
    set_dscp(out, dscp);
    set_hop_limit(out, ttl);
    match header.and_then(|header| header.downcast_ref()) {
        Some(route) => insert_source_route(route, sender, addr::v4_of_node, out),
        None => Ok(()),
    }
}

impl<W: Write> PacketTap for PcapWriter<W> {
    fn on_packet(&mut self, crossing: &Crossing<'_>) {
        self.now = crossing.at;
        // What a link has taken is sent when its service starts.
        if crossing.direction == Direction::Received || crossing.wlan.is_some() {
            self.attempt(|writer| writer.take(crossing, false));
        }
    }

    fn sees_service_starts(&self) -> bool {
        true
    }

    fn on_service_start(&mut self, crossing: &Crossing<'_>, marked: bool) {
        self.attempt(|writer| writer.take(crossing, marked));
    }

    fn on_pause(&mut self, until: Instant) {
        self.attempt(|writer| {
            writer.captures.values_mut().try_for_each(|it| it.write_ahead(until))
        });
    }

    fn sees_frames(&self) -> bool {
        !self.cells.is_empty()
    }

    fn on_frame(&mut self, frame: &AirFrame<'_>) {
        self.attempt(|writer| writer.write_frame(frame));
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
    use airtcp_core::{Dscp, Segment};
    use airtcp_routing::router::PacketId;

    /// A, joined to R, and both in a cell with B.
    const SCENARIO: &str = r#"
        name = "test"
        duration = "1 s"
        node = [{ name = "A" }, { name = "R" }, { name = "B" }]
        link = [{ between = ["A", "R"], rate = "1 Mbit/s", delay = "1 ms" }]
        wlan = [{ name = "cell", stations = ["R", "B"] }]
        flow = [{ from = "A", to = "B" }]"#;

    fn scenario() -> Scenario {
        Scenario::parse("test.toml", SCENARIO, &[]).unwrap()
    }

    /// The capture of A.
    fn writer<W: Write>(file: W) -> PcapWriter<W> {
        let scenario = scenario();
        let interfaces = &Interface::all(&scenario)[..1];
        let mut file = Some(file);
        let open = |_: &Interface| Ok(file.take().unwrap());
        PcapWriter::new(&scenario, 1, interfaces, None, open).unwrap()
    }

    #[test]
    fn only_the_interfaces_of_a_node_with_several_are_told_apart() {
        let all = Interface::all(&scenario());
        let names: Vec<&str> = all.iter().map(|interface| interface.name.as_str()).collect();
        assert_eq!(names, ["A", "R.A", "R@cell", "B"]);
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
            direction: Direction::Received,
            neighbour: Some(NodeId(1)),
            wlan: None,
            ttl: 64,
            dscp: Dscp::DEFAULT,
            id: PacketId(0),
            packet: &Packet::Tcp(segment),
            header: None,
        });
    }

    #[test]
    fn a_full_disk_is_reported_by_finish_and_not_written_to_again() {
        let mut disk = Disk { room: 100_000, failures: 0 };
        let mut pcap = writer(&mut disk);
        for _ in 0..1000 {
            tap(&mut pcap, 1000);
        }
        assert_eq!(pcap.finish().err().unwrap().kind(), io::ErrorKind::StorageFull);
        // Once in the run; once more when the write buffer is dropped.
        assert!(disk.failures <= 2, "{} failures", disk.failures);
    }

    #[test]
    fn a_disk_full_at_the_last_write_is_reported() {
        let mut pcap = writer(Disk { room: 0, failures: 0 });
        tap(&mut pcap, 10);
        assert_eq!(pcap.finish().err().unwrap().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_segment_that_fits_in_no_packet_is_an_error() {
        let mut pcap = writer(io::sink());
        tap(&mut pcap, 65_496);
        tap(&mut pcap, 1);
        let message = pcap.finish().err().unwrap().to_string();
        assert!(message.starts_with("65516 bytes of header and payload exceed"), "{message}");
    }
}
