//! Memory of the mechanisms, measured: bounded for a flow and in all.

use airtcp_core::{Addr, Flow, Instant, Length, Segment, SeqNum};
use airtcp_edge::{Actions, FlowTableConfig, MTcpPlus, Middlebox, PacketControl, Side};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::{IpAddr, Ipv4Addr};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn live_bytes(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated - change.bytes_deallocated
}

/// Segment from the fixed host of flow `i`, acknowledging nothing new.
fn data(i: u32, seq: u32, len: u64) -> Segment<Length> {
    let addr = |ip: u32, port| Addr::new(IpAddr::V4(Ipv4Addr::from(ip)), port);
    let flow = Flow { src: addr(0x0a00_0000 + i, 80), dst: addr(0xc0a8_0001, 5001) };
    let (seq, ack) = (SeqNum(seq), Some(SeqNum(0)));
    Segment { flow, seq, ack, window: 500, payload: Length(len), ..Segment::default() }
}

fn ack(i: u32, ack: u32) -> Segment<Length> {
    let Segment { flow, window, .. } = data(i, 0, 0);
    Segment { flow: flow.reversed(), ack: Some(SeqNum(ack)), window, ..Segment::default() }
}

/// One test, since the allocator is shared by all threads of the process.
#[test]
fn memory_is_bounded_for_a_flow_and_in_all_and_still_in_steady_state() {
    packet_control();
    m_tcp_plus();
}

/// Idle flows: some data went by, and the mobile has it.
fn m_tcp_plus() {
    let limit = 100_000;
    let config = FlowTableConfig { limit, ..FlowTableConfig::default() };
    let region = Region::new(ALLOCATOR);
    let mut node = MTcpPlus::new(Default::default(), config, 1 << 30);
    node.keep_journal();
    let mut out = Actions::new();
    let mut pass = |from, segment| {
        node.on_segment(Instant::ZERO, from, segment, &mut out);
        out.drain().for_each(drop);
    };
    for i in 0..limit as u32 {
        pass(Side::Mobile, ack(i, 0));
        pass(Side::Fixed, data(i, 0, 1000));
        pass(Side::Mobile, ack(i, 1000));
    }
    let idle_flow = live_bytes(&region) as f64 / limit as f64;
    println!("{idle_flow} B an idle flow");
    assert!(idle_flow <= 512.0, "{idle_flow} B an idle flow");
    assert_eq!((node.flows(), node.held()), (limit, 0));
}

fn packet_control() {
    let limit = 100_000;
    let config = FlowTableConfig { limit, ..FlowTableConfig::default() };
    let mut filter = PacketControl::new(6, config).unwrap();
    let mut out = Actions::new();
    let mut pass = |from, segment| {
        filter.on_segment(Instant::ZERO, from, segment, &mut out);
        out.drain().for_each(drop);
    };
    let region = Region::new(ALLOCATOR);

    for i in 0..limit as u32 {
        pass(Side::Fixed, data(i, 0, 10_000));
        pass(Side::Mobile, ack(i, 1000));
    }
    let idle_flow = live_bytes(&region) as f64 / limit as f64;
    println!("{idle_flow} B an idle flow");
    assert!(idle_flow <= 256.0, "{idle_flow} B an idle flow");

    for i in 0..1000 {
        pass(Side::Fixed, data(limit as u32 + i, 0, 10_000));
    }
    assert!(live_bytes(&region) as f64 / limit as f64 <= 256.0, "refused flows take no memory");

    // A hostile fixed host: a different old segment each time.
    let before = live_bytes(&region);
    pass(Side::Mobile, ack(0, 10_000));
    for seq in 0..9000 {
        pass(Side::Fixed, data(0, seq, 2));
    }
    let list = live_bytes(&region) - before;
    assert!(list <= 2048, "{list} B of retransmissions");

    let before = region.change().allocations;
    for round in 0..100 {
        for i in 1..1000 {
            pass(Side::Fixed, data(i, 10_000 + round * 1000, 1000));
            pass(Side::Mobile, ack(i, 2000 + round * 1000));
            pass(Side::Mobile, ack(i, 2000 + round * 1000));
        }
    }
    assert_eq!(region.change().allocations, before, "no allocation per packet in steady state");
}
