//! Memory of what wake keeps of live packets, measured.

use airtcp_core::{Addr, Flow, Instant, LinkSignal, Options, Segment, SeqNum};
use airtcp_edge::{FlowId, FlowTableConfig, MobileId, Wake, WakeConfig};
use airtcp_gateway::packets::Intercepted;
use airtcp_gateway::packets::Kept;
use airtcp_wire::{Checksums, encode, encode_udp};
use bytes::Bytes;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::{IpAddr, Ipv4Addr};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ESP: u8 = 50;

/// What a flow may take, bytes.
const BAR: f64 = 4_096.0;
/// Packets of a tunnel of each kind, unless it is configured otherwise.
const OF_TUNNEL: u32 = 16;

fn flow(n: u32) -> Flow {
    let addr = |ip: u32, port| Addr::new(IpAddr::V4(Ipv4Addr::from(ip)), port);
    Flow { src: addr(0x0a00_0000 + n, 443), dst: addr(0xc0a8_0000 + n / 100, 5001) }
}

/// A packet of a flow with this sequence number; and the size of its datagrams, if offloads made it
/// of several.
type MakePacket = fn(Flow, u32) -> (Bytes, Option<u16>);

/// As many packets of each flow as are kept from before an outage, and as many in it; how much
/// memory a flow takes.
fn memory_of_a_flow(flows: u32, of_each_kind: u32, protocol: u8, packet: MakePacket) -> f64 {
    let table = FlowTableConfig { limit: flows as usize, ..FlowTableConfig::default() };
    let region = Region::new(ALLOCATOR);
    let mut wake = Wake::<Kept>::new(WakeConfig::default(), table);
    let mut pass = |now, n, seq| {
        let flow = flow(n);
        let (packet, datagram) = packet(flow, seq);
        let intercepted = Intercepted {
            id: None,
            packet,
            input: None,
            output: None,
            checksums: Checksums::Ignore,
            datagram,
            silence: None,
            is_closing: false,
        };
        let kept = Kept::new(FlowId { protocol, flow }, &intercepted).unwrap();
        assert!(!kept.is_too_large());
        let mobile = MobileId::Host(flow.dst.ip);
        wake.on_sent(now, mobile, &kept);
        wake.on_signal(now, mobile, LinkSignal::Down);
    };
    for (seconds, seq) in [(0, 50_000), (1, 10_000)] {
        let now = Instant::from_nanos(seconds * 1_000_000_000);
        for n in 0..flows {
            (0..of_each_kind).for_each(|_| pass(now, n, seq));
        }
    }
    assert_eq!(wake.flows(), flows as usize);
    let change = region.change();
    (change.bytes_allocated - change.bytes_deallocated) as f64 / f64::from(flows)
}

/// A TCP segment with so much payload.
fn segment(flow: Flow, seq: u32, payload: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let options = Options { timestamps: Some(Default::default()), ..Options::default() };
    let payload = vec![7; payload];
    let segment = Segment { flow, seq: SeqNum(seq), options, payload, ..Segment::default() };
    encode(&segment, &mut packet).unwrap();
    packet
}

fn segments_that_offloads_joined(flow: Flow, seq: u32) -> (Bytes, Option<u16>) {
    (segment(flow, seq, 20_000).into(), Some(1_448))
}

/// The largest packet that is kept.
fn segment_with_a_foreign_option(flow: Flow, seq: u32) -> (Bytes, Option<u16>) {
    let mut packet = segment(flow, seq, 1_548);
    // Kind 30 (MPTCP, RFC 8684) in place of the two no-operations before the timestamps.
    assert_eq!((packet.len(), &packet[40..42]), (1_600, &[1, 1][..]));
    packet[40..42].copy_from_slice(&[30, 2]);
    (packet.into(), None)
}

fn datagram(flow: Flow, _: u32) -> (Bytes, Option<u16>) {
    let mut packet = Vec::new();
    encode_udp(&flow, &vec![7; 1_572], &mut packet).unwrap();
    assert_eq!(packet.len(), 1_600);
    (packet.into(), None)
}

fn datagrams_that_offloads_joined(flow: Flow, _: u32) -> (Bytes, Option<u16>) {
    let mut packet = Vec::new();
    encode_udp(&flow, &vec![7; 20_000], &mut packet).unwrap();
    (packet.into(), Some(1_472))
}

fn of_esp(flow: Flow, seq: u32) -> (Bytes, Option<u16>) {
    let (packet, _) = datagram(flow, seq);
    let mut packet = packet.to_vec();
    packet[9] = ESP;
    (packet.into(), None)
}

/// One test, since the allocator is shared by all threads of the process.
#[test]
fn of_a_flow_at_most_4_kb_are_held_and_of_a_tunnel_sixteen_times_as_much() {
    let cases: [(_, _, _, MakePacket); 5] = [
        (100_000, 1, TCP, segments_that_offloads_joined),
        (10_000, 1, TCP, segment_with_a_foreign_option),
        (100_000, 1, UDP, datagram),
        (10_000, 1, UDP, datagrams_that_offloads_joined),
        (1_000, OF_TUNNEL, ESP, of_esp),
    ];
    for (n, (flows, of_each_kind, protocol, packet)) in cases.into_iter().enumerate() {
        let memory = memory_of_a_flow(flows, of_each_kind, protocol, packet);
        println!("case {n}, protocol {protocol}: {memory} B a flow");
        let two_packets = 2_000.0..BAR;
        assert!(two_packets.contains(&(memory / f64::from(of_each_kind))), "case {n}: {memory}");
    }
}
