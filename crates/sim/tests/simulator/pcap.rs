//! Captures of a hand-made conversation and of runs, read by the `pcap-file` crate and by tshark.

use crate::common;
use crate::tshark::tshark;
use airtcp_core::{
    Addr, Dscp, Duration, Ecn, Flags, Flow, Instant, Length, Options, SackBlock, Segment, SeqNum,
    Timestamps,
};
use airtcp_routing::router::PacketId;
use airtcp_sim::packet::{Datagram, Packet};
use airtcp_sim::scenario::{NodeId, Scenario, UdpId};
use airtcp_sim::trace::{Crossing, Direction, Interface, PacketTap, PcapWriter};
use airtcp_sim::{Observers, World};
use airtcp_wire::{Checksums, decode};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;

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
    let text = r#"
        name = "spike"
        duration = "10 s"
        node = [{ name = "FH" }, { name = "MH" }]
        link = [{ between = ["FH", "MH"], rate = "1 Mbit/s", delay = "1 ms" }]
        flow = [{ from = "FH", to = "MH" }]"#;
    Scenario::parse("spike.toml", text, &[]).unwrap()
}

/// A writer of the captures of all interfaces into memory.
fn writer(scenario: &Scenario, seed: u64, snaplen: Option<u32>) -> PcapWriter<Vec<u8>> {
    let open = |_: &Interface| -> io::Result<Vec<u8>> { Ok(Vec::new()) };
    let snaplen = snaplen.map(|n| NonZeroU32::new(n).unwrap());
    PcapWriter::new(scenario, seed, &Interface::all(scenario), snaplen, open).unwrap()
}

/// The captures of a run, in the order of the interfaces.
fn captures(scenario: &Scenario, snaplen: Option<u32>) -> Vec<Vec<u8>> {
    captures_in_slices(scenario, snaplen, scenario.duration)
}

/// The same of a run in slices.
fn captures_in_slices(scenario: &Scenario, snaplen: Option<u32>, slice: Duration) -> Vec<Vec<u8>> {
    let mut pcap = writer(scenario, 1, snaplen);
    let observers = &mut Observers { packets: Some(&mut pcap), ..Observers::default() };
    let mut world = World::new(scenario, 1);
    let end = Instant::ZERO + scenario.duration;
    while world.now() < end {
        world.run_until((world.now() + slice).min(end), observers);
    }
    pcap.finish().unwrap()
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
    let neighbour = Some(if node == FH { MH } else { FH });
    let (id, ttl, dscp) = (PacketId(0), 64, Dscp::DEFAULT);
    Crossing { at, node, direction, neighbour, wlan: None, ttl, dscp, id, packet, header: None }
}

/// Shows a packet to a writer as a run does over links without queues.
fn show(pcap: &mut PcapWriter<Vec<u8>>, crossing: &Crossing<'_>) {
    pcap.on_packet(crossing);
    if crossing.direction == Direction::Sent {
        pcap.on_service_start(crossing, false);
    }
    pcap.on_pause(crossing.at);
}

/// The captures of both ends.
fn files() -> Vec<Vec<u8>> {
    let mut pcap = writer(&scenario(), 42, None);
    for (at, node, direction, segment) in tapped() {
        show(&mut pcap, &crossing(at, node, direction, &Packet::Tcp(segment)));
    }
    pcap.finish().unwrap()
}

#[test]
fn every_packet_reads_back_from_the_file_of_its_node() {
    for (node, bytes) in [FH, MH].into_iter().zip(files()) {
        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        let mut expected = tapped().into_iter().filter(|tapped| tapped.1 == node);
        while let Some(block) = reader.next_block() {
            let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
            let (at, _, direction, segment) = expected.next().unwrap();
            assert_eq!(packet.timestamp.as_nanos(), u128::from(at.as_nanos()));
            assert_eq!(packet.interface_id, 0);
            let flags = if direction == Direction::Sent { 2 } else { 1 };
            assert_eq!(packet.options, [EnhancedPacketOption::Flags(flags)]);
            let with_bytes = segment.with_payload(vec![0; segment.payload.0 as usize]);
            assert_eq!(decode(&packet.data, Checksums::Verify), Ok(with_bytes));
        }
        assert!(expected.next().is_none(), "packets are missing");
    }
}

/// Lengths of the packets in a file: as captured, and as they were.
fn lengths(bytes: &[u8]) -> Vec<(usize, u32)> {
    let mut reader = PcapNgReader::new(bytes).unwrap();
    let mut lengths = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        lengths.push((packet.data.len(), packet.original_len));
    }
    lengths
}

#[test]
fn the_snap_length_limits_what_is_kept_of_a_packet() {
    let whole = lengths(&captures(&scenario(), None)[0]);
    let cut = captures(&scenario(), Some(96));
    let expected: Vec<_> = whole.iter().map(|&(len, was)| (len.min(96), was)).collect();
    assert_eq!(lengths(&cut[0]), expected);
    assert!(whole.iter().any(|(len, _)| *len > 96));
    let mut reader = PcapNgReader::new(&cut[0][..]).unwrap();
    reader.next_block().unwrap().unwrap();
    assert!(reader.interfaces().iter().all(|interface| interface.snaplen == 96));
}

#[test]
fn tshark_finds_nothing_malformed() {
    let Some(report) = tshark("expert", &files()[0], &["-q", "-z", "expert"]) else { return };
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
    let Some(table) = tshark("fields", &files()[1], &arguments) else { return };
    const GOOD: u8 = 1;
    let expected: String = tapped()
        .iter()
        .filter(|tapped| tapped.1 == MH)
        .map(|(at, _, direction, segment)| {
            let direction = if *direction == Direction::Sent { 2 } else { 1 };
            let blocks = segment.options.sack.as_slice();
            let sack: Vec<_> = blocks.iter().map(|block| block.left.to_string()).collect();
            let (seq, len, sack) = (segment.seq, segment.payload.0, sack.join(","));
            format!("MH {at} {direction:#010x} {GOOD} {GOOD} {seq} {len} {sack}\n")
        })
        .collect();
    assert_eq!(table, expected);
}

#[test]
fn tshark_reads_cross_traffic_as_udp() {
    let flow = conversation()[0].flow;
    let mut pcap = writer(&scenario(), 42, None);
    for number in 0..3 {
        let payload = Length(u64::from(number) * 486);
        let datagram =
            Packet::Udp(Datagram { source: UdpId(0), number, flow, sent: Instant::ZERO, payload });
        let at = Instant::from_millis(number.into());
        show(&mut pcap, &crossing(at, FH, Direction::Sent, &datagram));
    }
    let file = pcap.finish().unwrap().remove(0);
    let mut arguments = vec!["-T", "fields", "-E", "separator=/s"];
    for field in ["frame.protocols", "ip.len", "udp.length", "udp.checksum.status"] {
        arguments.extend(["-e", field]);
    }
    let Some(table) = tshark("udp", &file, &arguments) else { return };
    let expected = ["raw:ip:udp 28 8 1", "raw:ip:udp:data 514 494 1", "raw:ip:udp:data 1000 980 1"];
    assert_eq!(table.lines().collect::<Vec<_>>(), expected);
}

/// The captures of thirty moving nodes, one after the other.
fn moving(protocol: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manet.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let set = [("routing.protocol", protocol), ("routing.preset", "rfc"), ("duration", "8 s")];
    let scenario = common::parse(&text, &set);
    captures(&scenario, None).concat()
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

const TWO_HOPS: &str = r#"
    duration = "1 s"
    node = [{ name = "A" }, { name = "R" }, { name = "B" }]
    link = [{ between = ["A", "R"], rate = "1 Mbit/s", delay = "1 ms" },
            { between = ["R", "B"], rate = "1 Mbit/s", delay = "1 ms", loss = { kind = "bernoulli", p = 0.1 } }]
    flow = [{ from = "A", to = "B", bytes = "50 kB" }]"#;

/// A packet in a file: when, in which direction, how long, with which ECN field.
type Captured = (Instant, Direction, u64, Ecn);

fn packets(file: &[u8]) -> Vec<Captured> {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let direction = match packet.options[..] {
            [EnhancedPacketOption::Flags(1)] => Direction::Received,
            [EnhancedPacketOption::Flags(2)] => Direction::Sent,
            _ => panic!("{:?}", packet.options),
        };
        let at = Instant::from_nanos(packet.timestamp.as_nanos() as u64);
        let ecn = Ecn::from_bits(packet.data[1]);
        packets.push((at, direction, packet.original_len.into(), ecn));
    }
    packets
}

/// On Linux tcpdump sees a packet as it leaves the queueing discipline, with its mark. R is the
/// bottleneck: what leaves it has the rate of its link, and arrives a constant time later.
#[test]
fn a_packet_is_sent_when_its_link_begins_to_serve_it() {
    const QUEUED: &str = r#"
        duration = "4 s"
        node = [{ name = "A" }, { name = "R" }, { name = "B" }]
        link = [{ between = ["A", "R"], rate = "100 Mbit/s", delay = "1 ms" },
                { between = ["R", "B"], rate = "8 Mbit/s", delay = "20 ms", queue = { kind = "KIND" } }]
        tcp = { ecn = "rfc3168" }
        flow = [{ from = "A", to = "B" }]"#;
    let serialisation = |bytes: u64| Duration::from_micros(bytes);
    for (kind, marks) in
        [("drop-tail", false), ("red", false), ("codel", false), ("fq-codel", true)]
    {
        let text = QUEUED.replace("KIND", kind);
        let scenario = common::parse(&text, &[]);
        let files = captures(&scenario, None);
        let sent = packets(&files[2]).into_iter().filter(|it| it.1 == Direction::Sent);
        let received = packets(&files[3]).into_iter().filter(|it| it.1 == Direction::Received);
        let (sent, received): (Vec<_>, Vec<_>) = (sent.collect(), received.collect());
        assert!(received.len() > 1500, "{kind}: {}", received.len());
        for (&(left, _, len, ecn), &(arrived, .., as_received)) in sent.iter().zip(&received) {
            let way = serialisation(len) + Duration::from_millis(20);
            assert_eq!((left + way, ecn), (arrived, as_received), "{kind}");
        }
        // What has not arrived yet is on its way.
        assert!((sent.len() - received.len()) < 25, "{kind}: {} {}", sent.len(), received.len());
        let busy = sent.windows(2).filter(|pair| pair[1].0 == pair[0].0 + serialisation(pair[0].2));
        assert!(busy.count() > 1000, "{kind}: packets leave one behind the other");
        let ce = sent.iter().filter(|it| it.3 == Ecn::Ce).count();
        assert_eq!(ce > 0, marks, "{kind}: {ce}");
    }
}

/// All that a capture shows is in order of time, and does not depend on how the run is cut.
#[test]
fn a_capture_is_in_order_of_time_and_the_same_in_slices() {
    for name in ["cell", "cellular", "handover", "leo", "outage", "red", "wifi6"] {
        let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let short = [("duration".to_owned(), "6 s".to_owned())];
        let scenario = Scenario::parse(&path, &text, &short).unwrap();
        let files = captures(&scenario, Some(64));
        assert!(
            files == captures_in_slices(&scenario, Some(64), Duration::from_millis(37)),
            "{name}"
        );
        for file in files {
            let times: Vec<Instant> = packets(&file).iter().map(|it| it.0).collect();
            assert!(times.is_sorted() && times.len() > 10, "{name}: {}", times.len());
        }
    }
}

#[test]
fn the_time_to_live_counts_the_hops() {
    let scenario = common::parse(TWO_HOPS, &[]);
    let all = Interface::all(&scenario);
    let names: Vec<&str> = all.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["A", "R.A", "R.B", "B"]);
    let limits: Vec<u8> = captures(&scenario, None)
        .iter()
        .map(|bytes| {
            let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
            // The first packet everywhere is the SYN.
            loop {
                let block = reader.next_block().unwrap().unwrap();
                let Block::EnhancedPacket(packet) = block else { continue };
                return packet.data[8];
            }
        })
        .collect();
    assert_eq!(limits, [64, 64, 63, 63]);
}

#[test]
fn tshark_sees_at_a_router_what_the_sender_sent_twice_and_no_more() {
    let scenario = common::parse(TWO_HOPS, &[]);
    // Wireshark calls a retransmission that follows soon after other data "out of order".
    let filter = "tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.out_of_order)";
    let count = |name: &str, file| {
        let lines = tshark(name, file, &["-Y", filter])?;
        Some(lines.lines().count() as u64)
    };
    let flow = &common::run(&scenario, 1).flows[0];
    // All are full-sized, or the last.
    let retransmitted = flow.data_segments_sent - 50_000_u64.div_ceil(1448);
    assert!(retransmitted > 0);
    for (i, file) in captures(&scenario, None)[..3].iter().enumerate() {
        let Some(found) = count(&format!("hop{i}"), file) else { return };
        assert_eq!(found, retransmitted, "interface {i}");
    }
}

#[test]
fn the_head_names_scenario_seed_program_and_interface() {
    let bytes = files().remove(1);
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let options = format!("{:?}", reader.section().options);
    assert!(options.contains("Comment(\"scenario spike, seed 42\")"), "{options}");
    assert!(options.contains("UserApplication(\"airtcp "), "{options}");
    reader.next_block().unwrap().unwrap();
    let interfaces = format!("{:?}", reader.interfaces());
    assert!(interfaces.contains("IfName(\"MH\")"), "{interfaces}");
}
