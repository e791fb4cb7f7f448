//! DSR (RFC 4728).

use crate::medium::Medium;
use crate::script::{Did, Script, data};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Duration, Instant, Stream};
use airtcp_routing::config::Preset as _;
use airtcp_routing::dsr::{DsrConfig, Error, Message, Preset, Reply, Request, SourceRoute};
use airtcp_routing::router::{Data, Message as _, NextHop, Notice, Packet};
use airtcp_routing::{Dsr, NodeId};
use proptest::prelude::*;
use std::sync::Arc;

type Node = Script<Dsr>;

/// Node 0 in every script.
const ME: u32 = 0;

fn node_with(config: &DsrConfig) -> Node {
    Script::new(Dsr::new(NodeId(ME), config, Stream::new(1, "jitter")))
}

fn node() -> Node {
    node_with(&DsrConfig::default())
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn nodes(route: &[u32]) -> Vec<NodeId> {
    route.iter().map(|&node| NodeId(node)).collect()
}

/// The request of the first node on the route for `target`.
fn request(route: &[u32], target: u32) -> Message {
    let (target, route) = (NodeId(target), nodes(route));
    Message::Request(Request { ttl: 10, id: 1, target, route, broken: None })
}

fn reply(route: &[u32], replier: u32) -> Message {
    Message::Reply(Reply { route: nodes(route), replier: NodeId(replier) })
}

fn error(broken: (u32, u32), route: &[u32]) -> Message {
    Message::Error(Error { broken: (NodeId(broken.0), NodeId(broken.1)), route: nodes(route) })
}

/// A data packet on its way, from the first to the last node.
fn routed(id: u32, route: &[u32]) -> Data {
    salvaged(id, route[0], route, 0)
}

fn salvaged(id: u32, source: u32, route: &[u32], salvaged: u16) -> Data {
    let header = SourceRoute { route: nodes(route), salvaged };
    Data { header: Some(Arc::new(header)), ..data(id, source, route[route.len() - 1]) }
}

fn header(data: &Data) -> &SourceRoute {
    data.header.as_deref().expect("it has one").downcast_ref().expect("of DSR")
}

impl Node {
    /// The route that a packet of its own takes to a node; `None` if it has to search.
    fn route_to(&mut self, to: u32) -> Option<Vec<u32>> {
        match self.sends::<Message>(data(99, ME, to)).as_slice() {
            [Did::Sent(99, next)] => {
                let sent = self.sent.pop().expect("sent");
                let route: Vec<u32> = header(&sent).route.iter().map(|node| node.0).collect();
                assert_eq!((route[0], route[1]), (ME, *next));
                Some(route)
            }
            [] | [Did::Broadcast(_)] => None,
            other => panic!("{other:?}"),
        }
    }
}

/// RFC 4728 §6, with 20 bytes of IP.
#[test]
fn messages_are_as_long_as_on_the_air() {
    assert_eq!(request(&[8], 9).size(), Bytes(20 + 4 + 8));
    assert_eq!(request(&[8, 1, 2], 9).size(), Bytes(20 + 4 + 16));
    // Four addresses, back over two nodes between.
    assert_eq!(reply(&[8, 1, 2, 3, 9], 3).size(), Bytes(20 + 4 + 3 + 16 + 4 + 8));
    assert_eq!(error((1, 2), &[1, 7, 8]).size(), Bytes(20 + 4 + 16 + 4 + 4));
    let header = |route: &[u32]| SourceRoute { route: nodes(route), salvaged: 0 }.size();
    assert_eq!((header(&[1, 2]), header(&[1, 2, 3, 4])), (Bytes(8), Bytes(16)));
}

// §3.1, §3.3: searches.

/// After 30 ms without an answer of the neighbours, with waits of 0.5, 1, 2, ... 10 s.
#[test]
fn a_search_asks_the_neighbours_and_then_everybody() {
    let mut node = node();
    let did = node.sends::<Message>(data(1, ME, 9));
    let [Did::Broadcast(Message::Request(first))] = did.as_slice() else { panic!("{did:?}") };
    assert_eq!((first.ttl, first.route.as_slice()), (1, nodes(&[ME]).as_slice()));
    let mut requests = Vec::new();
    for (at, did) in node.waits::<Message>(secs(29)) {
        let Did::Broadcast(Message::Request(request)) = did else { panic!("{did:?}") };
        assert_eq!(request.ttl, 255);
        requests.push(at.since_start());
    }
    assert_eq!(requests, [30, 530, 1530, 3530, 7530, 15_530, 25_530].map(ms));
}

#[test]
fn the_requests_of_ns2_reach_sixteen_hops() {
    let mut node = node_with(&Preset::Ns2.config());
    node.sends::<Message>(data(1, ME, 9));
    let did = node.later::<Message>(ms(100));
    let [Did::Broadcast(Message::Request(request))] = did.as_slice() else { panic!("{did:?}") };
    assert_eq!(request.ttl, 16);
}

#[test]
fn a_search_is_given_up() {
    let config = DsrConfig { max_request_rexmt: 1, ..DsrConfig::default() };
    let mut node = node_with(&config);
    node.sends::<Message>(data(1, ME, 9));
    let did = node.waits::<Message>(secs(60));
    assert_eq!(did.len(), 3);
    let dropped = (Instant::from_millis(1530), Did::Dropped(1, DropReason::NoRoute));
    assert_eq!(did[2], dropped);
}

#[test]
fn a_packet_waits_thirty_seconds_for_a_route() {
    let mut node = node();
    node.sends::<Message>(data(1, ME, 9));
    let did = node.waits::<Message>(secs(100));
    let dropped = (Instant::from_secs(30), Did::Dropped(1, DropReason::NoRoute));
    assert_eq!(did.last(), Some(&dropped));
}

#[test]
fn packets_leave_with_the_route_of_the_reply() {
    let mut node = node();
    node.sends::<Message>(data(1, ME, 9));
    node.sends::<Message>(data(2, ME, 9));
    let did = node.hears(1, reply(&[ME, 1, 2, 9], 9));
    assert_eq!(did, [Did::Sent(1, 1), Did::Sent(2, 1)]);
    assert_eq!(header(&node.sent[1]).route, nodes(&[ME, 1, 2, 9]));
}

// §8.2.2: requests.

#[test]
fn a_request_is_relayed_once_with_this_node_on_its_route() {
    let mut node = node();
    assert_eq!(node.hears(1, request(&[8, 1], 9)), []);
    assert_eq!(node.hears(2, request(&[8, 2], 9)), []);
    let did = node.waits::<Message>(secs(1));
    let [(at, Did::Broadcast(Message::Request(relayed)))] = did.as_slice() else {
        panic!("{did:?}")
    };
    assert_eq!((relayed.ttl, relayed.route.as_slice()), (9, nodes(&[8, 1, ME]).as_slice()));
    assert!(at.since_start() < ms(10));
}

#[test]
fn a_request_that_was_here_is_not_relayed() {
    let mut node = node();
    assert_eq!(node.hears(1, request(&[8, ME, 1], 9)), []);
    assert_eq!(node.hears(1, request(&[ME, 1], 9)), []);
    assert_eq!(node.later::<Message>(secs(1)), []);
}

#[test]
fn a_request_whose_ttl_is_used_up_is_not_relayed() {
    let mut node = node();
    let (target, route) = (NodeId(9), nodes(&[8, 1]));
    node.hears(1, Message::Request(Request { ttl: 1, id: 1, target, route, broken: None }));
    assert_eq!(node.later::<Message>(secs(1)), []);
}

#[test]
fn the_target_replies_along_the_route() {
    let mut node = node();
    let did = node.hears(2, request(&[8, 1, 2], ME));
    assert_eq!(did, [Did::Told(2, reply(&[8, 1, 2, ME], ME))]);
}

/// §3.3.2 and §3.3.3: after H for each hop but one, and a random part of H.
#[test]
fn a_node_with_a_route_replies_after_a_while() {
    let mut node = node();
    node.hears(3, reply(&[ME, 3, 9], 9));
    assert_eq!(node.hears(2, request(&[8, 1, 2], 9)), []);
    let did = node.waits::<Message>(secs(1));
    let [(at, did)] = did.as_slice() else { panic!("{did:?}") };
    assert_eq!(*did, Did::Told(2, reply(&[8, 1, 2, ME, 3, 9], ME)));
    assert!(at.since_start() >= ms(8) && at.since_start() < ms(10), "{at}");
}

/// RFC 4728 §3.3.3.
#[test]
fn a_reply_from_the_cache_is_spared_if_the_source_uses_as_short_a_route() {
    for (overheard, replies) in [(&[8, 5, 6, 7, 4, 9], 0), (&[8, 5, 6, 7, 9, 4], 1)] {
        let mut node = node();
        node.hears(3, reply(&[ME, 3, 9], 9));
        node.hears(2, request(&[8, 1, 2], 9));
        let packet = Packet::Data(routed(1, overheard));
        node.overhears::<Message>(5, 6, packet);
        assert_eq!(node.later::<Message>(secs(1)).len(), replies);
    }
}

/// §3.3.2: route 8 - 1 - 0 - 1 - 9 is none.
#[test]
fn a_reply_from_the_cache_has_no_node_twice() {
    let mut node = node();
    node.hears(1, reply(&[ME, 1, 9], 9));
    node.hears(1, request(&[8, 1], 9));
    let did = node.later::<Message>(secs(1));
    assert!(matches!(did.as_slice(), [Did::Broadcast(Message::Request(_))]), "{did:?}");
}

#[test]
fn without_cached_replies_the_request_goes_on() {
    let mut node = node_with(&DsrConfig { cached_replies: false, ..DsrConfig::default() });
    node.hears(3, reply(&[ME, 3, 9], 9));
    node.hears(2, request(&[8, 1, 2], 9));
    let did = node.later::<Message>(secs(1));
    assert!(matches!(did.as_slice(), [Did::Broadcast(Message::Request(_))]), "{did:?}");
}

#[test]
fn a_reply_is_relayed_towards_its_originator() {
    let mut node = node();
    let whole = reply(&[8, 1, ME, 2, 9], 9);
    assert_eq!(node.hears(2, whole.clone()), [Did::Told(1, whole)]);
}

// §3.3.1: what a node learns.

#[test]
fn a_node_learns_from_what_it_relays() {
    let mut node = node();
    node.hears(1, request(&[8, 1], 9));
    assert_eq!(node.route_to(8), Some(vec![ME, 1, 8]));
    node.hears(2, reply(&[7, 3, ME, 2, 6], 6));
    assert_eq!(node.route_to(6), Some(vec![ME, 2, 6]));
    assert_eq!(node.route_to(7), Some(vec![ME, 3, 7]));
    assert_eq!(node.carries::<Message>(4, routed(1, &[5, 4, ME, 11, 12])), [Did::Sent(1, 11)]);
    assert_eq!(node.route_to(5), Some(vec![ME, 4, 5]));
    assert_eq!(node.route_to(12), Some(vec![ME, 11, 12]));
}

#[test]
fn a_destination_learns_the_way_back() {
    let mut node = node();
    assert_eq!(node.carries::<Message>(2, routed(1, &[8, 1, 2, ME])), [Did::Delivered(1)]);
    assert_eq!(node.route_to(8), Some(vec![ME, 2, 1, 8]));
}

#[test]
fn a_node_learns_from_what_it_overhears() {
    let mut node = node();
    node.overhears::<Message>(2, 3, Packet::Data(routed(1, &[1, 2, 3, 4])));
    assert_eq!(node.route_to(4), Some(vec![ME, 2, 3, 4]));
    assert_eq!(node.route_to(1), Some(vec![ME, 2, 1]));
    node.overhears::<Message>(7, 6, Packet::Control(Arc::new(reply(&[5, 6, 7, 8], 8))));
    assert_eq!(node.route_to(8), Some(vec![ME, 7, 8]));
    assert_eq!(node.route_to(5), Some(vec![ME, 7, 6, 5]));
    node.overhears::<Message>(7, 6, Packet::Control(Arc::new(error((7, 8), &[7, 6, 5]))));
    assert_eq!(node.route_to(8), None);
}

#[test]
fn the_shortest_known_route_is_taken() {
    let mut node = node();
    node.hears(1, reply(&[ME, 1, 2, 9], 9));
    assert_eq!(node.route_to(9), Some(vec![ME, 1, 2, 9]));
    node.hears(3, reply(&[ME, 3, 9], 9));
    assert_eq!(node.route_to(9), Some(vec![ME, 3, 9]));
}

#[test]
fn a_route_that_is_not_used_expires() {
    let mut node = node();
    node.hears(1, reply(&[ME, 1, 9], 9));
    node.later::<Message>(secs(299));
    assert!(node.route_to(9).is_some());
    node.later::<Message>(secs(299));
    assert!(node.route_to(9).is_some());
    node.later::<Message>(secs(300));
    assert_eq!(node.route_to(9), None);
    // It may come again.
    let did = node.hears(1, reply(&[ME, 1, 9], 9));
    assert_eq!(did, [Did::Sent(99, 1)]);
    let mut node = node_with(&Preset::Ns2.config());
    node.hears(1, reply(&[ME, 1, 9], 9));
    node.later::<Message>(secs(100_000));
    assert!(node.route_to(9).is_some());
}

#[test]
fn a_full_cache_forgets_the_route_unused_for_longest() {
    let mut node = node_with(&DsrConfig { route_cache_paths: 2, ..DsrConfig::default() });
    node.hears(1, reply(&[ME, 1, 7], 7));
    node.now += ms(1);
    node.hears(1, reply(&[ME, 1, 8], 8));
    node.now += ms(1);
    assert!(node.route_to(7).is_some());
    node.now += ms(1);
    node.hears(1, reply(&[ME, 1, 9], 9));
    assert_eq!([7, 8, 9].map(|to| node.route_to(to).is_some()), [true, false, true]);
}

// §3.4: broken links.

#[test]
fn a_broken_link_is_reported_and_the_packet_salvaged() {
    let mut node = node();
    node.hears(3, reply(&[ME, 3, 4, 9], 9));
    let route = [8, 1, ME, 2, 9];
    let packets = (1..3).map(|id| Packet::Data(routed(id, &route))).collect();
    let did = node.fails::<Message>(2, packets);
    let told = Did::Told(1, error((ME, 2), &[ME, 1, 8]));
    assert_eq!(did, [told, Did::Sent(1, 3), Did::Sent(2, 3)]);
    let salvaged = SourceRoute { route: nodes(&[ME, 3, 4, 9]), salvaged: 1 };
    assert_eq!(*header(&node.sent[0]), salvaged);
}

#[test]
fn a_packet_without_another_route_is_dropped() {
    let mut node = node();
    let did = node.fails::<Message>(2, vec![Packet::Data(routed(1, &[8, ME, 2, 9]))]);
    let told = Did::Told(8, error((ME, 2), &[ME, 8]));
    assert_eq!(did, [told, Did::Dropped(1, DropReason::Retries)]);
}

/// §3.4.1; the error goes to the node that salvaged the packet last.
#[test]
fn a_packet_is_salvaged_at_most_fifteen_times() {
    for (times, outcome) in [(14, Did::Sent(1, 3)), (15, Did::Dropped(1, DropReason::Retries))] {
        let mut node = node();
        node.hears(3, reply(&[ME, 3, 9], 9));
        let packet = Packet::Data(salvaged(1, 8, &[7, 6, ME, 2, 9], times));
        let did = node.fails::<Message>(2, vec![packet]);
        assert_eq!(did, [Did::Told(6, error((ME, 2), &[ME, 6, 7])), outcome]);
    }
}

#[test]
fn a_source_sends_a_returned_packet_by_its_next_route() {
    let mut node = node();
    node.hears(1, reply(&[ME, 1, 9], 9));
    node.hears(3, reply(&[ME, 3, 4, 9], 9));
    node.sends::<Message>(data(1, ME, 9));
    let returned = Packet::Data(node.sent[0].clone());
    assert_eq!(node.fails::<Message>(1, vec![returned]), [Did::Sent(1, 3)]);
    let header = header(&node.sent[1]);
    assert_eq!((header.route.clone(), header.salvaged), (nodes(&[ME, 3, 4, 9]), 0));
}

#[test]
fn an_error_is_relayed_and_cuts_all_routes_at_the_link() {
    let mut node = node();
    node.hears(1, reply(&[ME, 1, 2, 3, 9], 9));
    node.hears(1, reply(&[ME, 1, 2, 7], 7));
    let report = error((2, 3), &[2, 1, ME, 8]);
    assert_eq!(node.hears(1, report.clone()), [Did::Told(8, report)]);
    assert_eq!([2, 3, 7, 9].map(|to| node.route_to(to).is_some()), [true, false, true, false]);
}

/// Links work in both directions or in none.
#[test]
fn a_link_broken_in_one_direction_is_not_used_in_the_other() {
    let mut node = node();
    node.hears(1, reply(&[ME, 1, 2, 3], 3));
    node.hears(1, error((2, 1), &[2, ME]));
    assert_eq!([1, 2, 3].map(|to| node.route_to(to).is_some()), [true, false, false]);
}

/// RFC 4728 §3.4.4.
#[test]
fn the_next_request_tells_of_the_error() {
    let mut node = node();
    node.hears(1, reply(&[ME, 1, 2, 9], 9));
    node.sends::<Message>(data(1, ME, 9));
    node.hears(1, error((2, 9), &[2, 1, ME]));
    let did = node.sends::<Message>(data(2, ME, 9));
    let [Did::Broadcast(Message::Request(request))] = did.as_slice() else { panic!("{did:?}") };
    assert_eq!(request.broken, Some((NodeId(2), NodeId(9))));
    // A node that hears of it forgets the link, and does not answer with it.
    let mut other = Script::new(Dsr::new(NodeId(5), &DsrConfig::default(), Stream::new(1, "j")));
    other.hears(2, reply(&[5, 2, 9], 9));
    other.hears(ME, Message::Request(Request { ttl: 255, ..request.clone() }));
    let did = other.later::<Message>(ms(100));
    let [Did::Broadcast(Message::Request(relayed))] = did.as_slice() else { panic!("{did:?}") };
    assert_eq!(relayed.broken, request.broken);
}

/// §3.4.3: node 0 heard node 1 send to node 2, and is two places further itself.
#[test]
fn a_source_is_offered_the_route_without_detour() {
    let mut node = node();
    let packet = || Packet::Data(routed(1, &[8, 1, 2, ME, 9]));
    let did = node.overhears(1, 2, packet());
    assert_eq!(did, [Did::Told(1, reply(&[8, 1, ME, 9], ME))]);
    // Once a second.
    node.now += ms(999);
    assert_eq!(node.overhears::<Message>(1, 2, packet()), []);
    node.now += ms(1);
    assert_eq!(node.overhears::<Message>(1, 2, packet()).len(), 1);
    // The next hop is no detour.
    assert_eq!(node.overhears::<Message>(2, ME, packet()), []);
}

// Transport.

#[test]
fn a_source_hears_of_its_last_route_lost_and_of_the_next_one() {
    let mut node = node();
    node.hears(1, reply(&[ME, 1, 9], 9));
    node.hears(3, reply(&[ME, 3, 4, 9], 9));
    node.sends::<Message>(data(1, ME, 9));
    // Another one is known.
    assert_eq!(node.hears(1, error((1, 9), &[1, ME])), []);
    node.sends::<Message>(data(2, ME, 9));
    let did = node.hears(3, error((4, 9), &[4, 3, ME]));
    assert_eq!(did, [Did::Lost(9)]);
    assert_eq!(node.hears(5, reply(&[ME, 5, 9], 9)), [Did::Found(9)]);
}

// Networks.

fn dsr(config: &DsrConfig) -> impl Fn(u32) -> Dsr {
    move |n| Dsr::new(NodeId(n), config, Stream::new(3, &format!("node/{n}/dsr")))
}

#[test]
fn a_chain_forwards_both_ways_over_one_search() {
    let mut net = Medium::chain(6, dsr(&DsrConfig::default()));
    net.send(0, 5);
    net.run_for(secs(2));
    let control = net.control.len();
    for _ in 0..10 {
        net.send(0, 5);
        net.send(5, 0);
        net.run_for(secs(30));
    }
    assert_eq!((net.delivered.len(), net.control.len()), (21, control));
}

#[test]
fn a_neighbour_is_found_by_one_request() {
    let mut net = Medium::chain(4, dsr(&DsrConfig::default()));
    net.send(1, 2);
    net.run_for(secs(2));
    let broadcasts = net.control.iter().filter(|sent| sent.to == NextHop::Broadcast);
    assert_eq!((net.delivered.len(), broadcasts.count()), (1, 1));
}

/// 0 - 1 - 2 - 3, and 2 - 4 - 3 beside it.
#[test]
fn a_detour_is_found_when_a_link_breaks() {
    let mut net = Medium::new(5, dsr(&DsrConfig::default()));
    for (a, b) in [(0, 1), (1, 2), (2, 3), (2, 4), (4, 3)] {
        net.link(a, b);
    }
    net.send(0, 3);
    net.run_for(secs(2));
    net.unlink(2, 3);
    net.send(0, 3);
    net.run_for(secs(2));
    assert!(net.notices.contains(&(0, Notice::RouteFailed(NodeId(3)))) || net.delivered.len() == 2);
    let id = net.send(0, 3);
    net.run_for(secs(2));
    assert_eq!(net.paths[&id], [0, 1, 2, 4]);
    assert!(net.delivered.iter().any(|&(_, delivered)| delivered == id));
}

/// Every source route, on every packet: no node twice.
fn no_repeats(net: &Medium<Dsr>) {
    for sent in &net.control {
        let route = match sent.message.downcast_ref().expect("of DSR") {
            Message::Request(request) => &request.route,
            Message::Reply(reply) => &reply.route,
            Message::Error(error) => &error.route,
        };
        let mut sorted = route.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), route.len(), "{:?}", sent.message);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_packet_arrives_if_and_only_if_there_is_a_path(seed in 0..u64::MAX, nodes in 2..20u32) {
        let mut net = Medium::new(nodes, dsr(&DsrConfig::default()));
        net.delivers_wherever_there_is_a_path(&mut Stream::new(seed, "test"));
    }

    /// Nodes move and links lose packets or acknowledgements: no route has a node twice, and every
    /// packet ends, at its destination or dropped.
    #[test]
    fn routes_never_form_loops(
        seed in 0..u64::MAX,
        nodes in 4..12u32,
        loss in 0.0..0.4,
        preset in prop::sample::select(&Preset::ALL[..]),
    ) {
        let mut chance = Stream::new(seed, "test");
        let mut net = Medium::new(nodes, dsr(&preset.config()));
        net.loss = loss;
        let mut packets = 0;
        for _ in 0..40 {
            packets += net.stir(&mut chance);
            net.run_for(chance.duration(ms(1), ms(1000)));
        }
        // A packet that comes back waits anew.
        net.loss = 0.0;
        net.run_for(secs(100));
        no_repeats(&net);
        prop_assert_eq!((net.delivered.len() + net.dropped.len()) as u64, packets);
    }
}
