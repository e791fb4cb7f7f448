//! What a router allocates, measured with a counting allocator.

use airtcp_core::{Duration, Instant, SeqNum, Stream};
use airtcp_routing::aodv::{self, Aodv};
use airtcp_routing::dsr::{self, Dsr, DsrConfig};
use airtcp_routing::router::{Action, Context, Data, Message, NextHop, Packet, PacketId};
use airtcp_routing::{Actions, NodeId, Router};
use airtcp_testing::CountingAllocator;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Node 0 at this instant.
fn context(now: Instant) -> Context<'static> {
    Context { now, position_of: &|_| None }
}

/// Node 0 relays ten thousand packets from node 8, behind 1, to node 9, behind 2, and back; how
/// often it allocates.
fn relay(router: &mut dyn Router, now: Instant, header: Option<&Arc<dyn Message>>) -> u64 {
    let mut out = Actions::default();
    let mut allocations = 0;
    for n in 0..10_000 {
        let now = now + Duration::from_millis(u64::from(n));
        let there = n % 2 == 0 || header.is_some();
        let (from, source, destination, next) = if there { (1, 8, 9, 2) } else { (2, 9, 8, 1) };
        let (source, destination) = (NodeId(source), NodeId(destination));
        let header = header.cloned();
        let data = Data { id: PacketId(n), source, destination, ttl: 60, header };
        let before = CountingAllocator::allocations();
        router.on_packet(&context(now), Some(NodeId(from)), Packet::Data(data), &mut out);
        let _ = router.next_deadline();
        // The list of actions grows once.
        allocations += if n == 0 { 0 } else { CountingAllocator::allocations() - before };
        let mut sent = out.drain();
        let next = NextHop::Node(NodeId(next));
        assert!(matches!(sent.next(), Some(Action::Send { to, .. }) if to == next));
        assert_eq!(sent.len(), 0);
    }
    allocations
}

fn tell(router: &mut dyn Router, now: Instant, from: u32, message: Arc<dyn Message>) {
    let mut out = Actions::default();
    router.on_packet(&context(now), Some(NodeId(from)), Packet::Control(message), &mut out);
    router.on_timer(&context(now + Duration::from_millis(10)), &mut out);
}

fn request(originator: u32, id: u32, hop_count: u16) -> Arc<dyn Message> {
    Arc::new(aodv::Message::Request(aodv::Request {
        ttl: 5,
        hop_count,
        id,
        destination: NodeId(9),
        destination_seq: None,
        originator: NodeId(originator),
        originator_seq: SeqNum(id),
        destination_only: false,
        gratuitous: false,
        asked: Instant::ZERO,
    }))
}

#[test]
fn aodv_relays_data_without_allocating() {
    let mut router = Aodv::new(NodeId(0), Arc::default(), Stream::new(1, "aodv"));
    tell(&mut router, Instant::ZERO, 1, request(8, 1, 2));
    let reply = aodv::Reply {
        hop_count: 2,
        destination: NodeId(9),
        destination_seq: SeqNum(1),
        originator: NodeId(8),
        lifetime: Duration::from_secs(6),
        asked: Instant::ZERO,
    };
    let now = Instant::from_millis(20);
    tell(&mut router, now, 2, Arc::new(aodv::Message::Reply(reply)));
    assert_eq!(relay(&mut router, now, None), 0);
}

#[test]
fn dsr_relays_data_without_allocating() {
    let mut router = Dsr::new(NodeId(0), &DsrConfig::default(), Stream::new(1, "dsr"));
    let route = [8, 1, 0, 2, 9].map(NodeId).to_vec();
    let reply = dsr::Reply { route: route.clone(), replier: NodeId(9) };
    tell(&mut router, Instant::ZERO, 2, Arc::new(dsr::Message::Reply(reply)));
    let header: Arc<dyn Message> = Arc::new(dsr::SourceRoute { route, salvaged: 0 });
    assert_eq!(relay(&mut router, Instant::ZERO, Some(&header)), 0);
}

/// Requests of ten thousand originators, over a quarter of an hour.
#[test]
fn aodv_forgets_routes_and_requests() {
    let mut router = Aodv::new(NodeId(0), Arc::default(), Stream::new(1, "aodv"));
    let before = CountingAllocator::live_bytes();
    for n in 0..10_000 {
        tell(&mut router, Instant::from_millis(u64::from(n) * 100), 1, request(10 + n, n, 2));
    }
    let live = CountingAllocator::live_bytes() - before;
    // About 200 routes in the 20 s that each is remembered.
    assert!(live < 60_000, "{live} bytes");
}
