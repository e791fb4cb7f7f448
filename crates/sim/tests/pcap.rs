//! The pcapng file of a hand-made conversation, read by the `pcap-file` crate and by tshark.

#[path = "common/tshark.rs"]
mod tshark;

use airtcp_core::{
    Addr, Duration, Ecn, Flags, Flow, Instant, Length, Options, SackBlock, Segment, SeqNum,
    Timestamps,
};
use airtcp_sim::packet::{Datagram, Packet};
use airtcp_sim::scenario::{Node, NodeId, Scenario, UdpId};
use airtcp_sim::trace::{Crossing, Direction, PacketTap, PcapWriter};
use airtcp_sim::{Observers, World};
use airtcp_wire::{Checksums, decode};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tshark::tshark;

const FH: NodeId = NodeId(0);
const MH: NodeId = NodeId(1);
/// Two ports that Wireshark assigns to no protocol; otherwise it would take the zeros of the user
/// data for a message.
const SENDER_PORT: u16 = 57_001;
const RECEIVER_PORT: u16 = 49_152;
/// One-way delay: an odd number of nanoseconds, to check that the file keeps each of them.
const DELAY: Duration = Duration::from_nanos(170_000_001);
/// Initial sequence numbers; the sender's wraps within the conversation.
const SENDER_ISN: SeqNum = SeqNum(u32::MAX - 1500);
const RECEIVER_ISN: SeqNum = SeqNum(7000);

fn scenario() -> Scenario {
    let node = |name: &str| Node::new(name);
    Scenario {
        name: "spike".into(),
        duration: Duration::from_secs(10),
        nodes: vec![node("FH"), node("MH")].into(),
        ..Scenario::default()
    }
}

fn from_sender(offset: u32, flags: Flags, len: u64) -> Segment<Length> {
    let addr = |last, port| Addr::new(Ipv4Addr::new(10, 0, 0, last).into(), port);
    let syn = flags.contains(Flags::SYN);
    Segment {
        flow: Flow { src: addr(1, SENDER_PORT), dst: addr(2, RECEIVER_PORT) },
        seq: SENDER_ISN + offset,
        ack: (!syn).then_some(RECEIVER_ISN + 1),
        window: 65_535,
        flags,
        ecn: Ecn::default(),
        options: options(syn),
        payload: Length(len),
    }
}

fn from_receiver(ack: u32, flags: Flags) -> Segment<Length> {
    let syn = flags.contains(Flags::SYN);
    Segment {
        flow: from_sender(0, flags, 0).flow.reversed(),
        seq: RECEIVER_ISN + u32::from(!syn),
        ack: Some(SENDER_ISN + ack),
        window: 65_535,
        flags,
        ecn: Ecn::default(),
        options: options(syn),
        payload: Length(0),
    }
}

fn options(syn: bool) -> Options {
    Options {
        mss: syn.then_some(1460),
        window_scale: syn.then_some(7),
        sack_permitted: syn,
        timestamps: Some(Timestamps { value: 5, echo: if syn { 0 } else { 4 } }),
        ..Options::default()
    }
}

/// Handshake, five data segments of which two are lost and retransmitted, FIN both ways.
fn conversation() -> Vec<Segment<Length>> {
    let block = |from, to| SackBlock { left: SENDER_ISN + from, right: SENDER_ISN + to };
    let sack = |ack, blocks: &[SackBlock]| {
        let mut segment = from_receiver(ack, Flags::empty());
        segment.options.sack = blocks.iter().copied().collect();
        segment
    };
    vec![
        from_sender(0, Flags::SYN, 0),
        from_receiver(1, Flags::SYN),
        from_sender(1, Flags::empty(), 0),
        from_sender(1, Flags::empty(), 1000),
        from_sender(2001, Flags::empty(), 1000),
        sack(1001, &[block(2001, 3001)]),
        from_sender(4001, Flags::PSH, 7),
        sack(1001, &[block(4001, 4008), block(2001, 3001)]),
        from_sender(1001, Flags::empty(), 1000),
        from_sender(3001, Flags::empty(), 1000),
        from_receiver(4008, Flags::empty()),
        from_sender(4008, Flags::FIN, 0),
        from_receiver(4009, Flags::FIN),
        Segment { ack: Some(RECEIVER_ISN + 2), ..from_sender(4009, Flags::empty(), 0) },
    ]
}

/// Time, node, direction, segment.
type Tapped = (Instant, NodeId, Direction, Segment<Length>);

/// The conversation as both ends see it, a segment every 400 ms.
fn tapped() -> Vec<Tapped> {
    let mut packets = Vec::new();
    for (i, segment) in (0..).zip(conversation()) {
        let sent_at = Instant::from_millis(400 * i);
        let (from, to) = if segment.flow.src.port == SENDER_PORT { (FH, MH) } else { (MH, FH) };
        packets.push((sent_at, from, Direction::Sent, segment.clone()));
        packets.push((sent_at + DELAY, to, Direction::Received, segment));
    }
    packets
}

fn crossing(at: Instant, node: NodeId, direction: Direction, packet: &Packet) -> Crossing<'_> {
    Crossing { at, node, direction, neighbour: None, ttl: 64, packet, header: None }
}

fn file() -> Vec<u8> {
    let mut pcap = PcapWriter::new(Vec::new(), &scenario(), 42).unwrap();
    for (at, node, direction, segment) in tapped() {
        pcap.on_packet(&crossing(at, node, direction, &Packet::Tcp(segment)));
    }
    pcap.finish().unwrap()
}

#[test]
fn every_packet_reads_back() {
    let bytes = file();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut expected = tapped().into_iter();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let (at, node, direction, segment) = expected.next().unwrap();
        assert_eq!(packet.timestamp.as_nanos(), u128::from(at.as_nanos()));
        assert_eq!(packet.interface_id, node.0);
        let flags = if direction == Direction::Sent { 2 } else { 1 };
        assert_eq!(packet.options, [EnhancedPacketOption::Flags(flags)]);
        let Segment { flow, seq, ack, window, flags, ecn, options, payload } = segment;
        let payload = vec![0; payload.0 as usize];
        let with_bytes = Segment { flow, seq, ack, window, flags, ecn, options, payload };
        assert_eq!(decode(&packet.data, Checksums::Verify), Ok(with_bytes));
    }
    assert!(expected.next().is_none(), "packets are missing");
}

#[test]
fn tshark_finds_nothing_malformed() {
    let Some(report) = tshark("expert", &file(), &["-q", "-z", "expert"]) else { return };
    assert!(report.contains("Connection finish (FIN)"), "no expert report:\n{report}");
    for fault in ["Malformed", "Errors", "hecksum"] {
        assert!(!report.contains(fault), "{fault} in\n{report}");
    }
}

#[test]
fn tshark_reads_names_times_directions_and_good_checksums() {
    let mut arguments =
        vec!["-T", "fields", "-E", "separator=/s", "-o", "tcp.relative_sequence_numbers:FALSE"];
    for field in [
        "frame.interface_name",
        "frame.time_epoch",
        "frame.packet_flags_direction",
        "ip.checksum.status",
        "tcp.checksum.status",
        "tcp.seq_raw",
        "tcp.len",
        "tcp.options.sack_le",
    ] {
        arguments.extend(["-e", field]);
    }
    let Some(table) = tshark("fields", &file(), &arguments) else { return };
    const GOOD: u8 = 1;
    let expected: String = tapped()
        .iter()
        .map(|(at, node, direction, segment)| {
            let name = &scenario().nodes[*node].name;
            let direction = if *direction == Direction::Sent { 2 } else { 1 };
            let blocks = segment.options.sack.as_slice();
            let sack: Vec<_> = blocks.iter().map(|block| block.left.to_string()).collect();
            let (seq, len, sack) = (segment.seq, segment.payload.0, sack.join(","));
            format!("{name} {at} {direction:#010x} {GOOD} {GOOD} {seq} {len} {sack}\n")
        })
        .collect();
    assert_eq!(table, expected);
}

#[test]
fn tshark_reads_cross_traffic_as_udp() {
    let flow = conversation()[0].flow;
    let mut pcap = PcapWriter::new(Vec::new(), &scenario(), 42).unwrap();
    for number in 0..3 {
        let payload = Length(u64::from(number) * 486);
        let datagram = Packet::Udp(Datagram { source: UdpId(0), number, flow, payload });
        let at = Instant::from_millis(number.into());
        pcap.on_packet(&crossing(at, FH, Direction::Sent, &datagram));
    }
    let file = pcap.finish().unwrap();
    let mut arguments = vec!["-T", "fields", "-E", "separator=/s"];
    for field in ["frame.protocols", "ip.len", "udp.length", "udp.checksum.status"] {
        arguments.extend(["-e", field]);
    }
    let Some(table) = tshark("udp", &file, &arguments) else { return };
    let expected = ["raw:ip:udp 28 8 1", "raw:ip:udp:data 514 494 1", "raw:ip:udp:data 1000 980 1"];
    assert_eq!(table.lines().collect::<Vec<_>>(), expected);
}

/// The capture of a run of thirty moving nodes.
fn moving(protocol: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manet.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let set = [("routing.protocol", protocol), ("routing.preset", "rfc"), ("duration", "8 s")];
    let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let scenario = Scenario::parse("manet.toml", &text, &set).unwrap();
    let mut pcap = PcapWriter::new(Vec::new(), &scenario, 1).unwrap();
    let observers = &mut Observers { packets: Some(&mut pcap), ..Observers::default() };
    World::new(&scenario, 1).run(observers);
    pcap.finish().unwrap()
}

/// Number of occurrences of each line.
fn counts(text: &str) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    text.lines().for_each(|line| *counts.entry(line).or_insert(0) += 1);
    counts
}

/// Faults that tshark finds in the packets, apart from the events of TCP itself.
fn faults(test: &str, file: &[u8]) -> Option<String> {
    let filter = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 \
                  || udp.checksum.status == 0";
    tshark(test, file, &["-Y", filter])
}

#[test]
fn tshark_reads_the_messages_of_aodv() {
    let file = moving("aodv");
    let arguments = ["-Y", "aodv", "-T", "fields", "-e", "aodv.type"];
    let Some(types) = tshark("aodv", &file, &arguments) else { return };
    // RREQ, RREP and RERR.
    let counts = counts(&types);
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), ["1", "2", "3"], "{counts:?}");
    assert_eq!(faults("aodv-faults", &file).as_deref(), Some(""));
    assert_eq!(tshark("aodv-only", &file, &["-Y", "udp && !aodv"]).as_deref(), Some(""));
}

#[test]
fn tshark_reads_the_messages_and_source_routes_of_dsr() {
    let file = moving("dsr");
    let options = ["-Y", "dsr && !tcp", "-T", "fields", "-e", "dsr.option.type"];
    let Some(types) = tshark("dsr", &file, &options) else { return };
    let counts = counts(&types);
    // Request; reply and error, each with the route of its packet.
    for expected in ["1", "2,96", "3,96"] {
        assert!(counts.contains_key(expected), "{counts:?}");
    }
    assert_eq!(faults("dsr-faults", &file).as_deref(), Some(""));
    let data = tshark("dsr-data", &file, &["-Y", "tcp.len > 0 && !dsr"]);
    assert_eq!(data.as_deref(), Some(""), "data without a source route");
}

#[test]
fn the_time_to_live_counts_the_hops() {
    let text = r#"
        duration = "1 s"
        node = [{ name = "A" }, { name = "R" }, { name = "B" }]
        link = [{ between = ["A", "R"], rate = "1 Mbit/s", delay = "1 ms" },
                { between = ["R", "B"], rate = "1 Mbit/s", delay = "1 ms" }]
        flow = [{ from = "A", to = "B", bytes = "1 kB" }]"#;
    let scenario = Scenario::parse("t.toml", text, &[]).unwrap();
    let mut pcap = PcapWriter::new(Vec::new(), &scenario, 1).unwrap();
    let observers = &mut Observers { packets: Some(&mut pcap), ..Observers::default() };
    World::new(&scenario, 1).run(observers);
    let bytes = pcap.finish().unwrap();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut limits = Vec::new();
    // The first segment: A sends it, R receives and sends it, B receives it.
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        limits.push((packet.interface_id, packet.data[8]));
    }
    assert_eq!(limits[..4], [(0, 64), (1, 64), (1, 63), (2, 63)]);
}

#[test]
fn the_head_names_scenario_seed_and_program() {
    let bytes = file();
    let reader = PcapNgReader::new(&bytes[..]).unwrap();
    let options = format!("{:?}", reader.section().options);
    assert!(options.contains("Comment(\"scenario spike, seed 42\")"), "{options}");
    assert!(options.contains("UserApplication(\"airtcp "), "{options}");
}
