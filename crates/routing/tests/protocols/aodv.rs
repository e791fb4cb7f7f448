//! AODV (RFC 3561).

use crate::medium::{HOP, Medium, Sent};
use crate::script::{Did, Script, data};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Duration, Instant, SeqNum, Stream};
use airtcp_routing::aodv::{
    AodvConfig, Error, Hello, LinkDetection, LocalRepair, Message, Preset, Reply, Request,
};
use airtcp_routing::config::Preset as _;
use airtcp_routing::router::{Message as _, NextHop, Notice, Packet};
use airtcp_routing::{Aodv, NodeId};
use proptest::prelude::*;
use std::sync::Arc;

type Node = Script<Aodv>;

/// Node 0 in every script; its neighbours are 1, 2 and 3, remote nodes 8 and 9.
const ME: u32 = 0;

fn node_with(config: &AodvConfig) -> Node {
    Script::new(Aodv::new(NodeId(ME), Arc::new(config.clone()), Stream::new(1, "jitter")))
}

fn node() -> Node {
    node_with(&AodvConfig::default())
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A request of node 8 for node 9, with node 8's sequence number 100, three hops on its way.
const REQUEST: Request = Request {
    ttl: 5,
    hop_count: 2,
    id: 1,
    destination: NodeId(9),
    destination_seq: None,
    originator: NodeId(8),
    originator_seq: SeqNum(100),
    destination_only: false,
    gratuitous: false,
    asked: Instant::ZERO,
};

fn request(request: Request) -> Message {
    Message::Request(request)
}

/// A reply: `to` is `hops` hops behind the sender, with this sequence number; `for_node` asked.
fn reply(to: u32, seq: u32, hops: u16, for_node: u32) -> Message {
    Message::Reply(Reply {
        hop_count: hops,
        destination: NodeId(to),
        destination_seq: SeqNum(seq),
        originator: NodeId(for_node),
        lifetime: secs(6),
        asked: Instant::ZERO,
    })
}

fn error(unreachable: &[(u32, u32)]) -> Message {
    let unreachable =
        unreachable.iter().map(|&(to, seq)| (NodeId(to), Some(SeqNum(seq)))).collect();
    Message::Error(Error { no_delete: false, unreachable })
}

/// The error of a node that never had a sequence number.
fn unknown(to: u32) -> Message {
    Message::Error(Error { no_delete: false, unreachable: vec![(NodeId(to), None)] })
}

fn carried(id: u32, source: u32, destination: u32) -> Packet {
    Packet::Data(data(id, source, destination))
}

impl Node {
    fn next_hop(&self, to: u32) -> Option<u32> {
        self.router.next_hop(self.now, NodeId(to)).map(|next| next.0)
    }

    /// The requests among what it does in this time: when, and which.
    fn requests(&mut self, time: Duration) -> Vec<(Instant, Request)> {
        let request = |(at, did)| match did {
            Did::Broadcast(Message::Request(request)) => Some((at, request)),
            _ => None,
        };
        self.waits(time).into_iter().filter_map(request).collect()
    }
}

/// The route request that a node broadcast when asked to send.
fn asked(did: Vec<Did<Message>>) -> Request {
    match did.as_slice() {
        [Did::Broadcast(Message::Request(request))] => *request,
        other => panic!("{other:?}"),
    }
}

/// A node with a route to 9 over 2, three hops, sequence number 50, learnt for node 8, which is
/// three hops away over 1 and has asked.
fn relay_with(config: &AodvConfig) -> Node {
    let mut node = node_with(config);
    node.hears(1, request(Request { destination_seq: Some(SeqNum(49)), ..REQUEST }));
    node.later::<Message>(ms(20));
    let did = node.hears(2, reply(9, 50, 2, 8));
    assert_eq!(did, [Did::Told(1, reply(9, 50, 3, 8))]);
    node
}

fn relay() -> Node {
    relay_with(&AodvConfig::default())
}

// Messages.

/// RFC 3561 §5, with 20 bytes of IP and 8 of UDP.
#[test]
fn messages_are_as_long_as_on_the_air() {
    assert_eq!(request(REQUEST).size(), Bytes(52));
    assert_eq!(reply(1, 2, 3, 4).size(), Bytes(48));
    assert_eq!(error(&[(1, 1)]).size(), Bytes(40));
    assert_eq!(error(&[(1, 1), (2, 2), (3, 3)]).size(), Bytes(56));
    assert_eq!(Message::Hello(Hello { seq: SeqNum(0), lifetime: secs(2) }).size(), Bytes(48));
}

// §6.1: sequence numbers.

#[test]
fn a_newer_sequence_number_wins_across_the_wrap() {
    let mut node = node();
    node.hears(1, reply(9, u32::MAX, 1, ME));
    assert_eq!(node.next_hop(9), Some(1));
    node.hears(2, reply(9, 1, 7, ME));
    assert_eq!(node.next_hop(9), Some(2));
    node.hears(3, reply(9, u32::MAX - 1, 0, ME));
    assert_eq!(node.next_hop(9), Some(2));
}

#[test]
fn a_node_increments_its_sequence_number_before_each_request() {
    let mut node = node();
    let first = asked(node.sends(data(1, ME, 9)));
    let second = asked(node.sends(data(2, ME, 8)));
    assert_eq!(second.originator_seq, first.originator_seq + 1);
    assert_eq!(second.id, first.id + 1);
}

/// As in ns-2, `recvRequest`.
#[test]
fn a_destination_in_ns2_increments_its_sequence_number_before_each_reply() {
    let mut node = node_with(&Preset::Ns2.config());
    let mut seq = |id| {
        let asked = Request { id, destination: NodeId(ME), ..REQUEST };
        match node.hears(1, request(asked)).as_slice() {
            [Did::Told(1, Message::Reply(reply))] => reply.destination_seq,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([seq(1), seq(2)], [SeqNum(1), SeqNum(2)]);
}

#[test]
fn a_destination_raises_its_sequence_number_to_that_of_the_request() {
    let mut node = node();
    let me = Request { destination: NodeId(ME), ..REQUEST };
    let did = node.hears(1, request(Request { destination_seq: Some(SeqNum(77)), ..me }));
    assert_eq!(did, [Did::Told(1, reply(ME, 77, 0, 8))]);
    // An older one does not lower it.
    let old =
        Request { id: 2, destination_seq: Some(SeqNum(3)), originator_seq: SeqNum(101), ..me };
    assert_eq!(node.hears(1, request(old)), [Did::Told(1, reply(ME, 77, 0, 8))]);
}

#[test]
fn a_broken_link_increments_the_sequence_numbers_behind_it() {
    let mut node = node();
    node.hears(1, reply(9, 50, 2, ME));
    node.fails::<Message>(1, vec![]);
    let request = asked(node.sends(data(1, ME, 9)));
    assert_eq!(request.destination_seq, Some(SeqNum(51)));
}

#[test]
fn an_expired_route_increments_the_sequence_number() {
    let mut node = node();
    node.hears(1, reply(9, 50, 2, ME));
    node.later::<Message>(secs(6));
    let request = asked(node.sends(data(1, ME, 9)));
    assert_eq!(request.destination_seq, Some(SeqNum(51)));
}

#[test]
fn a_deleted_route_leaves_no_sequence_number() {
    let mut node = node();
    node.hears(1, reply(9, 50, 2, ME));
    node.later::<Message>(secs(6 + 15) - ms(1));
    assert_eq!(node.table_seq(9), Some(SeqNum(51)));
    node.later::<Message>(ms(1));
    assert_eq!(node.table_seq(9), None);
}

impl Node {
    /// The sequence number of `to` in a request that this node relays.
    fn table_seq(&mut self, to: u32) -> Option<SeqNum> {
        let id = 1000 + self.now.as_nanos() as u32;
        let asked = Request { destination: NodeId(to), id, destination_only: true, ..REQUEST };
        self.hears(3, request(asked));
        let (_, relayed) = self.requests(ms(11)).pop().expect("relayed");
        self.now = self.now - ms(11);
        relayed.destination_seq
    }
}

// §6.2: routes.

#[test]
fn a_shorter_route_of_equal_age_replaces_another_and_a_longer_one_does_not() {
    let mut node = node();
    node.hears(1, reply(9, 50, 4, ME));
    node.hears(2, reply(9, 50, 4, ME));
    assert_eq!(node.next_hop(9), Some(1));
    node.hears(2, reply(9, 50, 3, ME));
    assert_eq!(node.next_hop(9), Some(2));
}

#[test]
fn an_invalid_route_is_replaced_by_any_of_equal_age_and_by_no_older_one() {
    let mut node = node();
    node.hears(1, reply(9, 50, 1, ME));
    node.fails::<Message>(1, vec![]);
    node.hears(2, reply(9, 50, 1, ME));
    assert_eq!(node.next_hop(9), None);
    node.hears(2, reply(9, 51, 8, ME));
    assert_eq!(node.next_hop(9), Some(2));
}

#[test]
fn every_message_makes_its_sender_a_neighbour() {
    for message in [request(REQUEST), reply(9, 1, 1, ME), error(&[(9, 1)])] {
        let mut node = node();
        node.hears(3, message);
        assert_eq!(node.next_hop(3), Some(3));
        node.later::<Message>(secs(3));
        assert_eq!(node.next_hop(3), None);
    }
}

/// ns-2, `recvRequest` and `recvReply`.
#[test]
fn a_message_tells_of_no_neighbour_in_ns2() {
    let mut node = node_with(&Preset::Ns2.config());
    node.hears(3, request(REQUEST));
    node.hears(3, reply(9, 1, 1, ME));
    assert_eq!([3, 8, 9].map(|to| node.next_hop(to)), [None, Some(3), Some(3)]);
}

#[test]
fn a_direct_link_replaces_a_longer_route() {
    let mut node = node();
    node.hears(1, reply(3, 50, 4, ME));
    assert_eq!(node.next_hop(3), Some(1));
    node.hears(3, error(&[]));
    assert_eq!(node.next_hop(3), Some(3));
}

/// Data renews the routes to the destination, the next hop, the source and the previous hop.
#[test]
fn data_renews_the_routes_in_both_directions() {
    let mut node = relay();
    for id in 0..10 {
        node.later::<Message>(secs(2));
        assert_eq!(node.carries::<Message>(1, data(id, 8, 9)), [Did::Sent(id, 2)]);
    }
    let hops = |node: &Node| [1, 2, 8, 9].map(|to| node.next_hop(to));
    assert_eq!(hops(&node), [Some(1), Some(2), Some(1), Some(2)]);
    node.later::<Message>(secs(3) - ms(1));
    assert_eq!(hops(&node), [Some(1), Some(2), Some(1), Some(2)]);
    node.later::<Message>(ms(1));
    assert_eq!(hops(&node), [None; 4]);
}

#[test]
fn data_renews_only_the_route_to_its_destination_in_ns2() {
    let mut node = relay_of_ns2();
    for id in 0..10 {
        node.later::<Message>(secs(2));
        node.carries::<Message>(1, data(id, 8, 9));
    }
    assert_eq!([1, 2, 8, 9].map(|to| node.next_hop(to)), [None, None, None, Some(2)]);
}

#[test]
fn data_from_elsewhere_does_not_renew_the_route_to_its_source() {
    let mut node = relay();
    for id in 0..5 {
        node.later::<Message>(secs(2));
        node.carries::<Message>(3, data(id, 8, 9));
    }
    assert_eq!((node.next_hop(9), node.next_hop(8)), (Some(2), None));
}

// §6.3: searches.

#[test]
fn packets_wait_for_a_route_and_leave_in_order() {
    let mut node = node();
    asked(node.sends(data(1, ME, 9)));
    assert_eq!(node.sends::<Message>(data(2, ME, 9)), []);
    asked(node.sends(data(3, ME, 8)));
    let did = node.hears(1, reply(9, 50, 2, ME));
    assert_eq!(did, [Did::Sent(1, 1), Did::Sent(2, 1)]);
    assert_eq!(node.sends::<Message>(data(4, ME, 9)), [Did::Sent(4, 1)]);
}

#[test]
fn a_full_buffer_drops_the_oldest_packet() {
    let mut node = node_with(&AodvConfig { buffer_packets: 2, ..AodvConfig::default() });
    node.sends::<Message>(data(1, ME, 9));
    node.sends::<Message>(data(2, ME, 9));
    let did = node.sends::<Message>(data(3, ME, 9));
    assert_eq!(did, [Did::Dropped(1, DropReason::Queue)]);
    assert_eq!(node.hears(1, reply(9, 50, 2, ME)), [Did::Sent(2, 1), Did::Sent(3, 1)]);
}

#[test]
fn a_packet_that_waited_too_long_is_dropped() {
    let mut node = node_with(&AodvConfig { buffer_timeout: ms(100), ..AodvConfig::default() });
    node.sends::<Message>(data(1, ME, 9));
    let did = node.waits::<Message>(secs(60));
    assert_eq!(did, [(Instant::from_millis(100), Did::Dropped(1, DropReason::NoRoute))]);
}

#[test]
fn a_node_originates_at_most_ten_requests_a_second() {
    let mut node = node_with(&AodvConfig { ttl_start: 35, ..AodvConfig::default() });
    for id in 0..10 {
        asked(node.sends(data(id, ME, 20 + id)));
        node.now += ms(10);
    }
    assert_eq!(node.sends::<Message>(data(10, ME, 30)), []);
    let next = node.requests(secs(2))[0];
    assert_eq!((next.0, next.1.destination), (Instant::from_secs(1), NodeId(30)));
}

/// Waits of 2.8, 5.6 and 11.2 s for the whole network; packets to other nodes are not touched.
#[test]
fn a_search_is_repeated_with_doubled_waits_and_then_given_up() {
    let mut node = node_with(&AodvConfig { ttl_start: 35, ..AodvConfig::default() });
    asked(node.sends(data(1, ME, 9)));
    node.sends::<Message>(data(2, ME, 9));
    let did = node.waits::<Message>(ms(2800 + 5600 + 11_200));
    let times: Vec<_> = did.iter().map(|(at, _)| at.since_start()).collect();
    assert_eq!(times, [ms(2800), ms(8400), ms(19_600), ms(19_600)]);
    let dropped = |id| Did::Dropped(id, DropReason::NoRoute);
    assert_eq!(
        did[2..].iter().map(|(_, did)| did.clone()).collect::<Vec<_>>(),
        [dropped(1), dropped(2)]
    );
    // The next packet starts a new search.
    asked(node.sends(data(3, ME, 9)));
}

#[test]
fn a_pause_follows_a_search_that_failed() {
    let config = AodvConfig { ttl_start: 35, rreq_pause: secs(10), ..AodvConfig::default() };
    let mut node = node_with(&config);
    asked(node.sends(data(1, ME, 9)));
    node.later::<Message>(ms(19_600));
    assert_eq!(node.sends::<Message>(data(2, ME, 9)), []);
    let next = node.requests(secs(11))[0];
    assert_eq!(next.0.since_start(), ms(29_600));
}

/// §6.4: rings of 1, 3, 5 and 7 hops, then the whole network. Together the rings take 0.24,
/// 0.64, 1.20 and 1.92 s.
#[test]
fn the_ring_expands() {
    let mut node = node();
    let first = asked(node.sends(data(1, ME, 9)));
    assert_eq!((first.ttl, first.hop_count, first.destination_seq), (1, 0, None));
    let rings = node.requests(secs(3)).into_iter().map(|(at, r)| (at.since_start(), r.ttl));
    let expected = [(ms(240), 3), (ms(640), 5), (ms(1200), 7), (ms(1920), 35)];
    assert_eq!(rings.collect::<Vec<_>>(), expected);
}

#[test]
fn the_ring_starts_at_the_last_known_distance() {
    assert_eq!(first_ring(&mut node(), 4), 4 + 2);
}

/// The TTL of the first request for a destination at this distance whose route has broken.
fn first_ring(node: &mut Node, hops: u16) -> u16 {
    node.hears(1, reply(9, 50, hops - 1, ME));
    node.fails::<Message>(1, vec![]);
    asked(node.sends(data(1, ME, 9))).ttl
}

/// ns-2: the whole network at once. The waits of 1.8, 3.6, 5.4 and 7.2 s are over at 1.8, 5.6, 11.4
/// and 18.7 s, which is noticed at the next half second.
#[test]
fn searches_of_ns2_are_looked_after_twice_a_second() {
    let mut node = node_with(&Preset::Ns2.config());
    assert_eq!(asked(node.sends(data(1, ME, 9))).ttl, 30);
    let did = node.waits::<Message>(secs(25));
    let times: Vec<_> = did.iter().map(|(at, _)| at.since_start()).collect();
    assert_eq!(times, [secs(2), secs(6), ms(11_500), secs(19)]);
    assert_eq!(did[3].1, Did::Dropped(1, DropReason::NoRoute));
}

/// The TTLs of the first request and of those that follow it, as in ns-2.
fn rings_of_ns2(hops: u16) -> Vec<u16> {
    let mut node = node_with(&Preset::Ns2.config());
    let first = first_ring(&mut node, hops);
    let later = node.requests(secs(15));
    std::iter::once(first).chain(later.into_iter().map(|(_, request)| request.ttl)).collect()
}

/// ns-2, `sendRequest`: a ring beyond TTL_THRESHOLD only after one within it. RFC 3561 §6.4 tries
/// `hops` + TTL_INCREMENT first, however far that is.
#[test]
fn ns2_asks_the_whole_network_about_a_route_as_long_as_the_threshold() {
    assert_eq!(rings_of_ns2(3)[..4], [5, 7, 30, 30]);
    assert_eq!(rings_of_ns2(6)[..3], [8, 30, 30]);
    assert_eq!(rings_of_ns2(7)[..3], [30, 30, 30]);
    assert_eq!(first_ring(&mut node(), 7), 7 + 2);
}

/// ns-2: `rt_req_last_ttl` is set back by an answer only.
#[test]
fn a_search_of_ns2_goes_on_where_the_one_in_vain_ended() {
    let mut node = node_with(&Preset::Ns2.config());
    assert_eq!(first_ring(&mut node, 3), 5);
    let did = node.waits::<Message>(secs(40));
    assert!(matches!(did.last(), Some((_, Did::Dropped(1, DropReason::NoRoute)))));
    assert_eq!(asked(node.sends(data(2, ME, 9))).ttl, 30);
    node.hears(1, reply(9, 52, 2, ME));
    node.fails::<Message>(1, vec![]);
    assert_eq!(asked(node.sends(data(3, ME, 9))).ttl, 5);
}

/// A reply to this request, over a route of three hops.
fn answer(request: &Request, seq: u32) -> Message {
    let Message::Reply(reply) = reply(request.destination.0, seq, 2, ME) else { unreachable!() };
    Message::Reply(Reply { asked: request.asked, ..reply })
}

/// A node as in ns-2 whose first search, for node 9, found a route of 3 hops in 60 ms: 20 ms a hop.
/// The route has broken.
fn node_that_found_in_60_ms() -> Node {
    let mut node = node_with(&AodvConfig { ttl_start: 30, ..Preset::Ns2.config() });
    node.later::<Message>(secs(1));
    let first = asked(node.sends(data(1, ME, 9)));
    node.later::<Message>(ms(60));
    node.hears(1, answer(&first, 50));
    node.fails::<Message>(1, vec![]);
    node
}

/// The next ring has 5 hops, there and back 200 ms; the next but one, with 7 hops, 280 ms.
#[test]
fn a_measured_wait_follows_the_latency_of_earlier_searches() {
    let mut node = node_that_found_in_60_ms();
    assert_eq!(asked(node.sends(data(2, ME, 9))).ttl, 5);
    node.later::<Message>(ms(199));
    assert_eq!(node.sends::<Message>(data(3, ME, 9)), []);
    node.later::<Message>(ms(1));
    assert_eq!(asked(node.sends(data(4, ME, 9))).ttl, 7);
    let next = node.requests(secs(1))[0];
    assert_eq!((next.0.since_start(), next.1.ttl), (ms(2000), 30));
}

/// ns-2's replies say when their request was sent. One that comes 240 ms after it, when a second
/// request has left, took 80 ms a hop. The mean is 50 ms, and the next ring of 5 hops takes 500 ms.
#[test]
fn the_latency_counts_from_the_request_that_is_answered() {
    let mut node = node_that_found_in_60_ms();
    let second = asked(node.sends(data(2, ME, 9)));
    node.later::<Message>(ms(200));
    asked(node.sends(data(3, ME, 9)));
    node.later::<Message>(ms(40));
    node.hears(1, answer(&second, 60));
    node.fails::<Message>(1, vec![]);
    asked(node.sends(data(4, ME, 9)));
    node.later::<Message>(ms(499));
    assert_eq!(node.sends::<Message>(data(5, ME, 9)), []);
    node.later::<Message>(ms(1));
    assert_eq!(asked(node.sends(data(6, ME, 9))).ttl, 7);
}

// §6.5: requests.

#[test]
fn a_request_is_relayed_once_after_a_jitter() {
    let mut node = node();
    assert_eq!(node.hears(1, request(REQUEST)), []);
    assert_eq!(node.hears(2, request(REQUEST)), []);
    let did = node.waits::<Message>(secs(1));
    let relayed = Request { ttl: 4, hop_count: 3, ..REQUEST };
    let [(at, Did::Broadcast(Message::Request(sent)))] = did.as_slice() else { panic!("{did:?}") };
    assert_eq!(*sent, relayed);
    assert!(at.since_start() > Duration::ZERO && at.since_start() < ms(10), "{at}");
}

#[test]
fn a_request_whose_ttl_is_used_up_is_not_relayed() {
    let mut node = node();
    node.hears(1, request(Request { ttl: 1, ..REQUEST }));
    assert_eq!(node.later::<Message>(secs(1)), []);
}

#[test]
fn a_node_ignores_its_own_request() {
    let mut node = node();
    node.hears(1, request(Request { originator: NodeId(ME), ..REQUEST }));
    assert_eq!(node.later::<Message>(secs(1)), []);
}

/// For PATH_DISCOVERY_TIME, 5.6 s.
#[test]
fn a_request_is_remembered_for_a_while() {
    let mut node = node();
    node.hears(1, request(REQUEST));
    node.later::<Message>(ms(5599));
    node.hears(1, request(REQUEST));
    assert_eq!(node.requests(ms(20)).len(), 0);
    node.hears(1, request(REQUEST));
    assert_eq!(node.requests(ms(20)).len(), 1);
}

/// MinimalLifetime: 2 * 2.8 s - 2 * 3 hops * 40 ms.
#[test]
fn a_request_makes_a_reverse_route() {
    let mut node = node();
    node.hears(1, request(REQUEST));
    assert_eq!(node.next_hop(8), Some(1));
    node.later::<Message>(ms(5600 - 240 - 1));
    assert_eq!(node.next_hop(8), Some(1));
    node.later::<Message>(ms(1));
    assert_eq!(node.next_hop(8), None);
}

#[test]
fn an_old_request_does_not_replace_a_newer_route_to_its_originator() {
    let mut node = node();
    node.hears(1, reply(8, 100, 1, ME));
    node.hears(2, request(Request { originator_seq: SeqNum(99), hop_count: 0, ..REQUEST }));
    assert_eq!(node.next_hop(8), Some(1));
}

#[test]
fn a_relayed_request_carries_the_newest_sequence_number_known() {
    let mut node = node();
    node.hears(1, reply(9, 50, 2, ME));
    node.fails::<Message>(1, vec![]);
    for (id, asked, relayed) in [(1, None, 51), (2, Some(40), 51), (3, Some(60), 60)] {
        let destination_seq = asked.map(SeqNum);
        node.hears(2, request(Request { id, destination_seq, ..REQUEST }));
        let (_, sent) = node.requests(ms(20))[0];
        assert_eq!(sent.destination_seq, Some(SeqNum(relayed)));
    }
}

// §6.6: replies.

#[test]
fn a_node_with_a_fresh_route_replies() {
    let mut node = relay();
    let again = Request { id: 2, originator_seq: SeqNum(101), ..REQUEST };
    let fresh = Request { destination_seq: Some(SeqNum(50)), ..again };
    let lifetime = secs(6) - ms(100);
    node.now += ms(100);
    let answer = Reply {
        hop_count: 3,
        destination: NodeId(9),
        destination_seq: SeqNum(50),
        originator: NodeId(8),
        lifetime,
        asked: Instant::ZERO,
    };
    assert_eq!(node.hears(3, request(fresh)), [Did::Told(3, Message::Reply(answer))]);
    // The neighbour that got the reply is a precursor now, beside the one of before.
    let did = node.fails::<Message>(2, vec![]);
    let [Did::Broadcast(Message::Error(report))] = did.as_slice() else { panic!("{did:?}") };
    assert_eq!(report.unreachable[1], (NodeId(9), Some(SeqNum(51))));
}

#[test]
fn a_node_with_an_older_route_relays() {
    let mut node = relay();
    let newer = Request { id: 2, destination_seq: Some(SeqNum(51)), ..REQUEST };
    assert_eq!(node.hears(3, request(newer)), []);
    assert_eq!(node.requests(ms(20)).len(), 1);
}

#[test]
fn only_the_destination_replies_to_a_request_that_says_so() {
    let mut node = relay();
    assert_eq!(node.hears(3, request(Request { id: 2, destination_only: true, ..REQUEST })), []);
    assert_eq!(node.requests(ms(20)).len(), 1);
    let config = AodvConfig { intermediate_replies: false, ..AodvConfig::default() };
    assert!(asked(node_with(&config).sends(data(1, ME, 9))).destination_only);
}

/// RFC 3561 §6.6.3.
#[test]
fn a_gratuitous_reply_tells_the_destination_of_the_originator() {
    let mut node = relay();
    let asking = Request { id: 2, originator_seq: SeqNum(101), gratuitous: true, ..REQUEST };
    let did = node.hears(3, request(asking));
    let [Did::Told(3, _), Did::Told(2, Message::Reply(reply))] = did.as_slice() else {
        panic!("{did:?}")
    };
    assert_eq!((reply.destination, reply.originator), (NodeId(8), NodeId(9)));
    assert_eq!((reply.hop_count, reply.destination_seq), (3, SeqNum(101)));
    let config = AodvConfig { gratuitous_replies: true, ..AodvConfig::default() };
    assert!(asked(node_with(&config).sends(data(1, ME, 9))).gratuitous);
}

/// RFC 3561 §6.7.
#[test]
fn a_reply_that_is_no_better_is_not_relayed() {
    let mut node = relay();
    assert_eq!(node.hears(3, reply(9, 50, 2, 8)), []);
    assert_eq!(node.hears(3, reply(9, 49, 0, 8)), []);
    assert_eq!(node.hears(3, reply(9, 50, 1, 8)), [Did::Told(1, reply(9, 50, 2, 8))]);
}

/// §6.7: equally new, and better than a route that is not valid, although the route to the
/// neighbour that sent it is valid from then on.
#[test]
fn the_neighbour_of_a_destination_relays_its_reply_after_a_broken_link() {
    let mut node = node_with(&without_repair());
    node.hears(2, reply(2, 50, 0, 8));
    node.fails::<Message>(2, vec![]);
    node.hears(1, request(Request { destination: NodeId(2), ..REQUEST }));
    assert_eq!(node.hears(2, reply(2, 51, 0, 8)), [Did::Told(1, reply(2, 51, 1, 8))]);
}

#[test]
fn a_reply_without_a_way_back_ends() {
    let mut node = node();
    assert_eq!(node.hears(2, reply(9, 50, 2, 8)), []);
    assert_eq!(node.next_hop(9), Some(2));
}

/// §6.7: the route that a reply takes back is used, so it stays for ACTIVE_ROUTE_TIMEOUT.
#[test]
fn a_reply_renews_the_reverse_route() {
    let mut node = node();
    node.hears(1, request(REQUEST));
    node.later::<Message>(secs(5));
    node.hears(2, reply(9, 50, 2, 8));
    node.later::<Message>(secs(3) - ms(1));
    assert_eq!(node.next_hop(8), Some(1));
}

/// §6.8, for BLACKLIST_TIMEOUT = RREQ_RETRIES * NET_TRAVERSAL_TIME.
#[test]
fn requests_of_a_neighbour_that_cannot_be_reached_are_ignored() {
    let mut node = node();
    let me = Request { destination: NodeId(ME), ..REQUEST };
    let lost = Packet::Control(Arc::new(reply(ME, 0, 0, 8)));
    node.hears(1, request(me));
    node.fails::<Message>(1, vec![lost]);
    let again = |id| request(Request { id, originator_seq: SeqNum(100 + id), ..me });
    node.now += ms(5599);
    assert_eq!(node.hears(1, again(2)), []);
    assert_eq!(node.next_hop(1), None);
    assert_eq!(node.hears(2, again(2)).len(), 1);
    node.now += ms(1);
    assert_eq!(node.hears(1, again(3)).len(), 1);
}

// §6.9, §6.10: HELLO.

const HELLO: LinkDetection =
    LinkDetection::Hello { hello_interval: secs(1), allowed_hello_loss: 2 };

fn with_hello() -> AodvConfig {
    AodvConfig { link_detection: HELLO, ..AodvConfig::default() }
}

#[test]
fn a_node_says_hello_while_it_is_part_of_an_active_route() {
    let mut node = node_with(&with_hello());
    assert_eq!(node.later::<Message>(secs(10)), []);
    node.hears(1, reply(9, 50, 2, ME));
    assert_eq!(node.later::<Message>(secs(5)), []);
    node.sends::<Message>(data(1, ME, 9));
    let did = node.waits::<Message>(secs(20));
    let hello = Hello { seq: SeqNum(0), lifetime: secs(2) };
    assert!(did.iter().all(|(_, did)| *did == Did::Broadcast(Message::Hello(hello))), "{did:?}");
    // One in each second that the route is active.
    assert_eq!(did.len(), 3, "{did:?}");
    let relay_without = &mut relay();
    relay_without.carries::<Message>(1, data(1, 8, 9));
    assert_eq!(relay_without.later::<Message>(secs(20)), []);
}

#[test]
fn a_neighbour_that_falls_silent_is_gone() {
    let mut node = relay_with(&with_hello());
    let hello = Message::Hello(Hello { seq: SeqNum(7), lifetime: secs(2) });
    node.hears(2, hello.clone());
    node.hears(1, hello);
    assert_eq!(node.table_seq(2), Some(SeqNum(7)));
    // Data counts as a sign of life.
    node.later::<Message>(secs(1));
    node.carries::<Message>(1, data(1, 8, 9));
    let did = node.waits::<Message>(ms(1500));
    let errors = did.into_iter().filter(|(_, did)| matches!(did, Did::Told(..)));
    assert_eq!(
        errors.collect::<Vec<_>>(),
        [(Instant::from_millis(2020), Did::Told(1, error(&[(2, 8), (9, 51)])))]
    );
    assert_eq!((node.next_hop(9), node.next_hop(8)), (None, Some(1)));
}

#[test]
fn with_hello_the_link_layer_is_not_asked() {
    let mut node = relay_with(&with_hello());
    let did = node.fails::<Message>(2, vec![carried(1, 8, 9)]);
    assert_eq!(did, [Did::Dropped(1, DropReason::Retries)]);
    assert_eq!(node.next_hop(9), Some(2));
}

// §6.11: route errors.

fn without_repair() -> AodvConfig {
    AodvConfig { local_repair: LocalRepair::Off, ..AodvConfig::default() }
}

/// RFC 3561 §6.11, case i.
#[test]
fn a_broken_link_is_reported_to_the_only_precursor() {
    let mut node = relay_with(&without_repair());
    let did = node.fails::<Message>(2, vec![carried(1, 8, 9), carried(2, 8, 9)]);
    let dropped = |id| Did::Dropped(id, DropReason::Retries);
    // The neighbour itself counts: the way back to the originator is its precursor, too.
    let report = Message::Error(Error {
        no_delete: false,
        unreachable: vec![(NodeId(2), None), (NodeId(9), Some(SeqNum(51)))],
    });
    assert_eq!(did, [dropped(1), dropped(2), Did::Told(1, report)]);
}

#[test]
fn a_broken_link_that_nobody_uses_is_not_reported() {
    let mut node = node();
    node.hears(1, reply(9, 50, 2, ME));
    assert_eq!(node.fails::<Message>(1, vec![]), []);
}

#[test]
fn the_way_back_counts_as_used_by_the_other_end() {
    let mut node = relay_with(&without_repair());
    let did = node.fails::<Message>(1, vec![carried(1, 9, 8)]);
    assert_eq!(did, [Did::Dropped(1, DropReason::Retries), Did::Told(2, error(&[(8, 101)]))]);
}

/// RFC 3561 §6.11, case ii.
#[test]
fn data_without_a_route_is_answered_with_an_error() {
    let mut node = node();
    let did = node.carries::<Message>(1, data(1, 8, 9));
    assert_eq!(did, [Did::Told(1, unknown(9)), Did::Dropped(1, DropReason::NoRoute)]);
    let mut node = relay_with(&without_repair());
    node.fails::<Message>(2, vec![]);
    let did = node.carries::<Message>(3, data(1, 8, 9));
    assert_eq!(did, [Did::Told(3, error(&[(9, 51)])), Did::Dropped(1, DropReason::NoRoute)]);
}

#[test]
fn a_route_is_remembered_as_long_as_data_for_it_comes() {
    let mut node = relay_with(&without_repair());
    node.fails::<Message>(2, vec![]);
    for id in 0..4 {
        node.later::<Message>(secs(14));
        node.carries::<Message>(1, data(id, 8, 9));
    }
    assert_eq!(node.table_seq(9), Some(SeqNum(51)));
}

/// RFC 3561 §6.11, case iii.
#[test]
fn an_error_of_the_next_hop_invalidates_the_route_and_is_relayed() {
    let mut node = relay();
    assert_eq!(node.hears(3, error(&[(9, 60)])), []);
    assert_eq!(node.next_hop(9), Some(2));
    assert_eq!(node.hears(2, error(&[(9, 60), (7, 1)])), [Did::Told(1, error(&[(9, 60)]))]);
    assert_eq!(node.next_hop(9), None);
    assert_eq!(node.table_seq(9), Some(SeqNum(60)));
}

/// A node that forgot the route must not make it look older than it is.
#[test]
fn an_error_never_lowers_a_sequence_number() {
    for message in [error(&[(9, 50)]), error(&[(9, 2)]), unknown(9)] {
        let mut node = relay();
        node.hears(2, message);
        assert_eq!(node.table_seq(9), Some(SeqNum(51)));
    }
}

#[test]
fn an_error_for_several_precursors_is_broadcast_after_a_jitter() {
    let mut node = relay();
    node.hears(3, request(Request { id: 2, ..REQUEST }));
    node.hears(3, request(Request { id: 1, originator: NodeId(7), ..REQUEST }));
    assert_eq!(node.hears(2, error(&[(9, 51)])), []);
    assert_eq!(node.later::<Message>(ms(10)), [Did::Broadcast(error(&[(9, 51)]))]);
}

#[test]
fn a_node_sends_at_most_ten_errors_a_second() {
    let mut node = node();
    let mut told = |at: u64, id| {
        node.now = Instant::from_millis(at);
        let did = node.carries::<Message>(1, data(id, 8, 9));
        did.iter().any(|did| matches!(did, Did::Told(..)))
    };
    assert!((0..10).all(|id| told(u64::from(id), id)));
    assert!(!told(999, 10));
    assert!(told(1000, 11));
    assert!(!told(1000, 12));
}

// §6.12: local repair.

/// TTL: the last distance of 3 hops, more than half of the 3 to the source, plus 2.
#[test]
fn the_node_before_the_broken_link_repairs_the_route() {
    let mut node = relay();
    let did = node.fails::<Message>(2, vec![carried(1, 8, 9), carried(2, 8, 9)]);
    let [Did::Broadcast(Message::Request(sent)), Did::Told(1, report)] = did.as_slice() else {
        panic!("{did:?}")
    };
    assert_eq!((sent.ttl, sent.destination, sent.originator), (5, NodeId(9), NodeId(ME)));
    assert_eq!(sent.destination_seq, Some(SeqNum(51)));
    // The lost neighbour is no destination of the data.
    assert_eq!(*report, unknown(2));
    assert_eq!(node.carries::<Message>(1, data(3, 8, 9)), []);
    let did = node.hears(3, reply(9, 51, 2, ME));
    assert_eq!(did, [Did::Sent(1, 3), Did::Sent(2, 3), Did::Sent(3, 3)]);
}

#[test]
fn a_longer_route_after_a_repair_is_announced() {
    let mut node = relay();
    node.fails::<Message>(2, vec![carried(1, 8, 9)]);
    let did = node.hears(3, reply(9, 51, 3, ME));
    let unreachable = vec![(NodeId(9), Some(SeqNum(51)))];
    let detour = Message::Error(Error { no_delete: true, unreachable });
    assert_eq!(did, [Did::Told(1, detour), Did::Sent(1, 3)]);
}

#[test]
fn a_route_that_was_repaired_is_not_deleted_upstream() {
    let mut node = relay();
    let unreachable = vec![(NodeId(9), Some(SeqNum(51)))];
    let detour = Message::Error(Error { no_delete: true, unreachable });
    assert_eq!(node.hears(2, detour.clone()), [Did::Told(1, detour)]);
    assert_eq!(node.next_hop(9), Some(2));
}

/// After RING_TRAVERSAL_TIME for a TTL of 5.
#[test]
fn a_repair_that_fails_is_reported() {
    let mut node = relay();
    node.fails::<Message>(2, vec![carried(1, 8, 9)]);
    let did = node.waits::<Message>(secs(10));
    let times: Vec<_> = did.iter().map(|(at, _)| at.since_start()).collect();
    assert_eq!(times, [ms(20 + 560); 2]);
    assert_eq!(did[0].1, Did::Dropped(1, DropReason::NoRoute));
    assert_eq!(did[1].1, Did::Told(1, error(&[(9, 51)])));
}

#[test]
fn only_a_node_near_the_destination_repairs() {
    let repairs = |local_repair: LocalRepair| {
        let config = AodvConfig { local_repair, ..AodvConfig::default() };
        let did = relay_with(&config).fails::<Message>(2, vec![carried(1, 8, 9)]);
        matches!(did[0], Did::Broadcast(Message::Request(_)))
    };
    assert!(repairs(LocalRepair::NearDestination { max_repair_ttl: 3 }));
    assert!(!repairs(LocalRepair::NearDestination { max_repair_ttl: 2 }));
    assert!(!repairs(LocalRepair::Off));
    // Three hops to either end.
    assert!(!repairs(LocalRepair::SecondHalf));
}

/// A relay as in ns-2 that is two hops from node 9, over 2, and three hops from node 8, over 1.
fn relay_of_ns2() -> Node {
    let mut node = node_with(&Preset::Ns2.config());
    node.hears(1, request(Request { destination_seq: Some(SeqNum(49)), ..REQUEST }));
    node.later::<Message>(ms(20));
    node.hears(2, reply(9, 50, 1, 8));
    node
}

/// ns-2, `local_rt_repair`: the request asks for no newer route than the broken one.
#[test]
fn ns2_repairs_for_the_packet_given_up_and_leaves_the_others_to_the_link() {
    let mut node = relay_of_ns2();
    let did = node.fails::<Message>(2, vec![carried(1, 8, 9), carried(2, 8, 9)]);
    let [Did::Broadcast(Message::Request(sent)), Did::Sent(2, 2)] = did.as_slice() else {
        panic!("{did:?}")
    };
    assert_eq!((sent.destination, sent.destination_seq), (NodeId(9), Some(SeqNum(50))));
    // A route that was never lost counts as infinitely long.
    assert_eq!(sent.ttl, 30);
}

#[test]
fn packets_wait_in_ns2_until_a_better_route_than_the_broken_one_is_known() {
    let mut node = relay_of_ns2();
    node.fails::<Message>(2, vec![carried(1, 8, 9)]);
    assert_eq!(node.carries::<Message>(1, data(2, 8, 9)), []);
    // Node 2 still has the route: as new and as long as the broken one.
    assert_eq!(node.hears(2, reply(9, 50, 1, ME)), []);
    assert_eq!(node.carries::<Message>(1, data(3, 8, 9)), []);
    assert_eq!(node.hears::<Message>(3, reply(9, 51, 4, ME)), [Did::Sent(1, 3)]);
    let did = node.waits::<Message>(ms(20));
    let next = [(10, 2), (20, 3)].map(|(at, id)| (ms(20 + at), Did::Sent(id, 3)));
    assert_eq!(did.into_iter().map(|(at, did)| (at.since_start(), did)).collect::<Vec<_>>(), next);
}

/// As in ns-2, `recvError`.
#[test]
fn an_error_clears_the_queue_in_ns2_if_it_breaks_a_route() {
    let mut node = relay_of_ns2();
    assert_eq!(node.hears(3, error(&[(9, 60)])), []);
    assert_eq!(node.hears(2, error(&[(9, 60)])), [Did::Cleared(2)]);
}

#[test]
fn a_route_under_repair_does_not_expire_in_ns2_and_answers_requests() {
    let mut node = relay_of_ns2();
    node.fails::<Message>(2, vec![carried(1, 8, 9)]);
    node.later::<Message>(secs(60));
    assert_eq!(node.next_hop(9), Some(2));
    let did = node.hears(3, request(Request { id: 2, originator: NodeId(7), ..REQUEST }));
    assert!(matches!(did.as_slice(), [Did::Told(3, Message::Reply(_))]), "{did:?}");
}

/// ns-2, `rt_ll_failed`: in the first half all packets for the neighbour are dropped, and all
/// routes over it reported, whoever uses them.
#[test]
fn ns2_broadcasts_the_loss_of_all_routes_over_a_broken_link() {
    let mut node = node_with(&Preset::Ns2.config());
    node.hears(2, reply(9, 50, 3, ME));
    let did = node.fails::<Message>(2, vec![carried(1, ME, 9), carried(2, 8, 9)]);
    let drops = [1, 2].map(|id| Did::Dropped(id, DropReason::Retries));
    assert_eq!(did[..2], drops);
    assert_eq!(
        did[2..],
        [Did::Broadcast(Message::Error(Error {
            no_delete: false,
            unreachable: vec![(NodeId(9), Some(SeqNum(51)))],
        }))]
    );
}

/// ns-2 sets no failure callback in its own messages.
#[test]
fn a_lost_message_breaks_no_link_in_ns2() {
    let mut node = relay_of_ns2();
    let lost = Packet::Control(Arc::new(reply(9, 50, 1, 8)));
    let waiting = Packet::Control(Arc::new(reply(9, 50, 1, 7)));
    let did = node.fails(2, vec![lost, carried(1, 8, 9), waiting]);
    assert_eq!(did, [Did::Sent(1, 2), Did::Told(2, reply(9, 50, 1, 7))]);
    assert_eq!(node.next_hop(9), Some(2));
}

// Transport.

#[test]
fn a_source_hears_of_its_lost_route_and_of_the_next_one() {
    let mut node = node_with(&AodvConfig { keep_returned: true, ..AodvConfig::default() });
    asked(node.sends(data(1, ME, 9)));
    assert_eq!(node.hears(1, reply(9, 50, 2, ME)), [Did::Sent(1, 1)]);
    let did = node.fails::<Message>(1, vec![carried(1, ME, 9)]);
    assert!(
        matches!(did.as_slice(), [Did::Broadcast(Message::Request(_)), Did::Lost(9)]),
        "{did:?}"
    );
    let did = node.hears(2, reply(9, 51, 4, ME));
    assert_eq!(did, [Did::Found(9), Did::Sent(1, 2)]);
    assert_eq!(node.hears(2, error(&[(9, 52)])), [Did::Lost(9)]);
}

#[test]
fn a_route_that_carries_nothing_of_its_own_is_lost_in_silence() {
    let mut node = relay();
    node.carries::<Message>(1, data(1, 8, 9));
    assert_eq!(node.hears(2, error(&[(9, 51)])), [Did::Told(1, error(&[(9, 51)]))]);
}

#[test]
fn a_source_drops_returned_packets_unless_it_keeps_them() {
    let mut node = node();
    asked(node.sends(data(1, ME, 9)));
    node.hears(1, reply(9, 50, 2, ME));
    let did = node.fails::<Message>(1, vec![carried(1, ME, 9)]);
    assert_eq!(did, [Did::Dropped(1, DropReason::Retries), Did::Lost(9)]);
}

#[test]
fn a_returned_packet_takes_a_route_found_since() {
    let mut node = relay();
    node.hears(3, reply(9, 51, 2, ME));
    let did = node.fails::<Message>(2, vec![carried(1, 8, 9)]);
    assert_eq!(did[0], Did::Sent(1, 3));
}

// Networks.

fn aodv(config: &AodvConfig) -> impl Fn(u32) -> Aodv + use<> {
    let config = Arc::new(config.clone());
    move |n| Aodv::new(NodeId(n), Arc::clone(&config), Stream::new(7, &format!("node/{n}/aodv")))
}

/// The waits of §6.4 for the rings that fail, by distance, and the way of request and reply.
#[test]
fn the_latency_of_a_search_is_that_of_the_rings_that_fail() {
    let config = AodvConfig { broadcast_jitter: Duration::ZERO, ..AodvConfig::default() };
    let failed = [(1, 0), (2, 240), (3, 240), (4, 640), (5, 640), (6, 1200), (7, 1200), (8, 1920)];
    for (hops, wait) in failed {
        let mut net = Medium::chain(hops + 1, aodv(&config));
        let id = net.send(0, hops);
        net.run_for(secs(5));
        let there_and_back = HOP * 3 * u64::from(hops);
        let expected = Instant::ZERO + ms(wait) + there_and_back;
        assert_eq!(net.delivered, [(expected, id)], "{hops} hops");
    }
}

#[test]
fn a_chain_forwards_both_ways_over_one_discovery() {
    let mut net = Medium::chain(6, aodv(&AodvConfig::default()));
    net.send(0, 5);
    net.run_for(secs(2));
    let control = net.control.len();
    for _ in 0..10 {
        net.send(0, 5);
        net.send(5, 0);
        net.run_for(secs(1));
    }
    assert_eq!((net.delivered.len(), net.control.len()), (21, control));
}

#[test]
fn a_detour_is_found_when_a_link_breaks() {
    for local_repair in [LocalRepair::Off, LocalRepair::default()] {
        // 0 - 1 - 2 - 3, and 2 - 4 - 3 beside it.
        let config = AodvConfig { local_repair, ..AodvConfig::default() };
        let mut net = Medium::new(5, aodv(&config));
        for (a, b) in [(0, 1), (1, 2), (2, 3), (2, 4), (4, 3)] {
            net.link(a, b);
        }
        net.send(0, 3);
        net.run_for(secs(2));
        net.unlink(2, 3);
        let held = net.send(0, 3);
        net.run_for(secs(2));
        let after = net.send(0, 3);
        net.run_for(secs(2));
        let arrived = |id: u32| net.delivered.iter().any(|&(_, delivered)| delivered == id);
        assert!(arrived(after), "{local_repair:?}");
        assert_eq!(net.paths[&after], [0, 1, 2, 4]);
        let told = net.notices.contains(&(0, Notice::RouteFailed(NodeId(3))));
        // With repair the packet waits at node 2.
        let repaired = local_repair != LocalRepair::Off;
        assert_eq!((arrived(held), told), (repaired, !repaired));
    }
}

#[test]
fn a_partition_ends_the_search() {
    let mut net = Medium::new(4, aodv(&AodvConfig::default()));
    net.link(0, 1);
    net.link(2, 3);
    let id = net.send(0, 3);
    net.run_for(secs(60));
    assert_eq!(net.dropped, [(0, id, DropReason::NoRoute)]);
    let requests =
        net.control.iter().filter(|sent| sent.from == 0 && sent.to == NextHop::Broadcast);
    // Four rings, and the whole network three times.
    assert_eq!(requests.count(), 7);
}

#[test]
fn with_hello_a_broken_route_is_found_broken() {
    let config = with_hello();
    let mut net = Medium::chain(4, aodv(&config));
    for _ in 0..20 {
        net.send(0, 3);
        net.run_for(ms(250));
    }
    net.unlink(1, 2);
    for _ in 0..20 {
        net.send(0, 3);
        net.run_for(ms(250));
    }
    assert!(net.notices.contains(&(0, Notice::RouteFailed(NodeId(3)))));
    let error = |sent: &&Sent| matches!(sent.message.downcast_ref(), Some(Message::Error(_)));
    let errors = net.control.iter().filter(error);
    assert!(errors.count() >= 1);
}

/// Follows the valid routes to every destination from every node; panics on a loop.
fn no_loops(net: &Medium<Aodv>) {
    let nodes = net.routers.len() as u32;
    for to in 0..nodes {
        for from in 0..nodes {
            let mut at = from;
            for step in 0.. {
                assert!(step <= nodes, "a loop of routes from {from} to {to} at {}", net.now);
                let next = net.routers[at as usize].next_hop(net.now, NodeId(to));
                match next {
                    Some(next) if at != to => at = next.0,
                    _ => break,
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_packet_arrives_if_and_only_if_there_is_a_path(seed in 0..u64::MAX, nodes in 2..20u32) {
        let mut net = Medium::new(nodes, aodv(&AodvConfig::default()));
        net.delivers_wherever_there_is_a_path(&mut Stream::new(seed, "test"));
    }

    /// Nodes move, links lose packets or only acknowledgements, routes expire and are forgotten:
    /// the next hops never form a loop, at any instant.
    #[test]
    fn routes_never_form_loops(
        seed in 0..u64::MAX,
        nodes in 4..12u32,
        loss in 0.0..0.4,
        preset in prop::sample::select(&Preset::ALL[..]),
        keep_returned in any::<bool>(),
        hello in any::<bool>(),
        short in any::<bool>(),
    ) {
        let mut chance = Stream::new(seed, "test");
        let mut config = AodvConfig { keep_returned, ..preset.config() };
        if hello {
            config.link_detection = HELLO;
        }
        if short {
            // Expiry and deletion all the time, in the proportion that the RFC asks for.
            config.active_route_timeout = ms(300);
            config.my_route_timeout = ms(600);
            config.delete_period = ms(1500);
            config.node_traversal_time = ms(3);
            if hello {
                let (hello_interval, allowed_hello_loss) = (ms(100), 2);
                config.link_detection = LinkDetection::Hello { hello_interval, allowed_hello_loss };
            }
        }
        let mut net = Medium::new(nodes, aodv(&config));
        net.loss = loss;
        for _ in 0..60 {
            net.stir(&mut chance);
            net.run_checked(chance.duration(ms(1), ms(1000)), no_loops);
        }
        let accounted = net.delivered.len() + net.dropped.len();
        prop_assert!(accounted > 0);
    }
}
