//! Memory of what wake keeps of live packets, measured.

use airtcp_core::{Addr, Flow, Instant, LinkSignal, Options, Segment, SeqNum};
use airtcp_edge::{FlowId, FlowTableConfig, MobileId, Wake, WakeConfig};
use airtcp_live::gateway::datapath::Intercepted;
use airtcp_live::gateway::kept::Kept;
use airtcp_wire::{Checksums, encode, encode_udp};
use bytes::Bytes;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::{IpAddr, Ipv4Addr};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const FLOWS: u32 = 100_000;
const TCP: u8 = 6;
const UDP: u8 = 17;

fn flow(n: u32) -> Flow {
    let addr = |ip: u32, port| Addr::new(IpAddr::V4(Ipv4Addr::from(ip)), port);
    Flow { src: addr(0x0a00_0000 + n, 443), dst: addr(0xc0a8_0000 + n / 100, 5001) }
}

/// A full packet of each flow from before an outage, and one in it; how much memory a flow takes.
fn memory_of_a_flow(protocol: u8, packet: impl Fn(Flow, u32) -> Bytes) -> f64 {
    let table = FlowTableConfig { limit: FLOWS as usize, ..FlowTableConfig::default() };
    let region = Region::new(ALLOCATOR);
    let mut wake = Wake::<Kept>::new(WakeConfig::default(), table);
    let mut pass = |now, n, seq| {
        let flow = flow(n);
        let intercepted = Intercepted {
            id: None,
            packet: packet(flow, seq),
            input: None,
            output: None,
            checksums: Checksums::Ignore,
            datagram: None,
            silence: None,
        };
        let kept = Kept::new(FlowId { protocol, flow }, &intercepted).unwrap();
        let mobile = MobileId::Host(flow.dst.ip);
        wake.on_sent(now, mobile, &kept);
        wake.on_signal(now, mobile, LinkSignal::Down);
    };
    (0..FLOWS).for_each(|n| pass(Instant::ZERO, n, 50_000));
    (0..FLOWS).for_each(|n| pass(Instant::from_nanos(1_000_000_000), n, 10_000));
    assert_eq!(wake.flows(), FLOWS as usize);
    let change = region.change();
    (change.bytes_allocated - change.bytes_deallocated) as f64 / f64::from(FLOWS)
}

/// One test, since the allocator is shared by all threads of the process.
#[test]
fn of_a_flow_at_most_4_kb_are_held() {
    let segment = |flow, seq| {
        let mut packet = Vec::new();
        let options = Options { timestamps: Some(Default::default()), ..Options::default() };
        let payload = vec![7; 20_000];
        let segment = Segment { flow, seq: SeqNum(seq), options, payload, ..Segment::default() };
        encode(&segment, &mut packet).unwrap();
        packet.into()
    };
    let datagram = |flow, _| {
        let mut packet = Vec::new();
        encode_udp(&flow, &vec![7; 1_472], &mut packet).unwrap();
        packet.into()
    };
    let of_tcp = memory_of_a_flow(TCP, segment);
    let of_udp = memory_of_a_flow(UDP, datagram);
    println!("{of_tcp} and {of_udp} B a flow");
    let two_packets = 2_900.0..4_096.0;
    assert!(two_packets.contains(&of_tcp) && two_packets.contains(&of_udp));
}
