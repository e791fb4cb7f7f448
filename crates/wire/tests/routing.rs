//! Messages of AODV and DSR byte by byte, beside the figures of their RFCs.

use airtcp_core::{Addr, Duration, Flow, Instant, Length, Segment, SeqNum};
use airtcp_routing::router::Message as _;
use airtcp_routing::{NodeId, aodv, dsr};
use airtcp_wire::{EncodeError, encode, encode_aodv, encode_dsr, insert_source_route};
use proptest::prelude::*;
use std::net::Ipv4Addr;

const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const C: NodeId = NodeId(3);
const D: NodeId = NodeId(4);

fn address(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, (node.0 >> 8) as u8, node.0 as u8)
}

/// The packet in hexadecimal, four bytes a word.
fn hex(packet: &[u8]) -> String {
    let word = |word: &[u8]| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    packet.chunks(4).map(word).collect::<Vec<_>>().join(" ")
}

/// Source, destination, protocol and TTL of an IPv4 packet, whose length and checksum are right.
fn ip(packet: &[u8]) -> (u8, u8, u8, u8) {
    assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
    let sum = packet[..20]
        .chunks(2)
        .fold(0_u32, |sum, word| sum + u32::from(u16::from_be_bytes([word[0], word[1]])));
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the checksum of the IP header");
    (packet[15], packet[19], packet[9], packet[8])
}

fn aodv(message: &aodv::Message, to: Option<NodeId>) -> Vec<u8> {
    let mut packet = Vec::new();
    encode_aodv(message, A, to, address, &mut packet).unwrap();
    packet
}

fn dsr(message: &dsr::Message, from: NodeId) -> Vec<u8> {
    let mut packet = Vec::new();
    encode_dsr(message, from, address, &mut packet).unwrap();
    packet
}

fn request() -> aodv::Request {
    aodv::Request {
        ttl: 5,
        hop_count: 3,
        id: 0x0102_0304,
        destination: D,
        destination_seq: Some(SeqNum(0x0506_0708)),
        originator: B,
        originator_seq: SeqNum(0x090a_0b0c),
        destination_only: false,
        gratuitous: false,
        asked: Instant::ZERO,
    }
}

/// RFC 3561 §5.1, §6.4.
#[test]
fn an_aodv_request_is_broadcast_from_port_654_with_its_ttl() {
    let packet = aodv(&aodv::Message::Request(request()), None);
    assert_eq!(ip(&packet), (1, 255, 17, 5));
    assert_eq!(hex(&packet[20..24]), "028e028e");
    assert_eq!(hex(&packet[28..]), "01000003 01020304 0a000004 05060708 0a000002 090a0b0c");
}

/// RFC 3561 §5.1: J R G D U.
#[test]
fn the_flags_of_an_aodv_request_stand_behind_its_type() {
    let flags = |request| aodv(&aodv::Message::Request(request), None)[29];
    assert_eq!(flags(aodv::Request { gratuitous: true, ..request() }), 0b0010_0000);
    assert_eq!(flags(aodv::Request { destination_only: true, ..request() }), 0b0001_0000);
    assert_eq!(flags(aodv::Request { destination_seq: None, ..request() }), 0b0000_1000);
}

/// RFC 3561 §5.2: the lifetime is in milliseconds.
#[test]
fn an_aodv_reply_goes_to_the_next_hop() {
    let reply = aodv::Reply {
        hop_count: 2,
        destination: D,
        destination_seq: SeqNum(7),
        originator: C,
        lifetime: Duration::from_secs(6),
        asked: Instant::ZERO,
    };
    let packet = aodv(&aodv::Message::Reply(reply), Some(B));
    assert_eq!(ip(&packet), (1, 2, 17, 64));
    assert_eq!(hex(&packet[28..]), "02000002 0a000004 00000007 0a000003 00001770");
}

/// RFC 3561 §6.9.
#[test]
fn an_aodv_hello_is_a_reply_about_its_sender_with_ttl_1() {
    let hello = aodv::Hello { seq: SeqNum(9), lifetime: Duration::from_secs(2) };
    let packet = aodv(&aodv::Message::Hello(hello), None);
    assert_eq!(ip(&packet), (1, 255, 17, 1));
    assert_eq!(hex(&packet[28..]), "02000000 0a000001 00000009 0a000001 000007d0");
}

/// RFC 3561 §5.3.
#[test]
fn an_aodv_error_lists_what_cannot_be_reached() {
    let unreachable = vec![(D, Some(SeqNum(8))), (C, None)];
    let packet = aodv(&aodv::Message::Error(aodv::Error { no_delete: true, unreachable }), None);
    assert_eq!(ip(&packet), (1, 255, 17, 1));
    assert_eq!(hex(&packet[28..]), "03800002 0a000004 00000008 0a000003 00000000");
}

/// RFC 4728 §6.2: the originator is the source of the IP packet and not listed.
#[test]
fn a_dsr_request_lists_the_nodes_behind_its_originator() {
    let request =
        dsr::Request { ttl: 9, id: 0x0001_0203, target: D, route: vec![A, B, C], broken: None };
    let packet = dsr(&dsr::Message::Request(request), C);
    assert_eq!(ip(&packet), (1, 255, 48, 9));
    assert_eq!(hex(&packet[20..]), "3b000010 010e0203 0a000004 0a000002 0a000003");
}

/// RFC 4728 §3.4.4.
#[test]
fn a_dsr_request_may_carry_an_error() {
    let request = dsr::Request { ttl: 1, id: 7, target: D, route: vec![A], broken: Some((B, C)) };
    let packet = dsr(&dsr::Message::Request(request), A);
    let error = "030e0100 0a000002 0a000001 0a000003";
    assert_eq!(hex(&packet[20..]), format!("3b000018 01060007 0a000004 {error}"));
}

/// RFC 4728 §6.3: without the node that it is for. It goes back by a source route.
#[test]
fn a_dsr_reply_lists_the_route_and_its_way_back() {
    let reply = dsr::Reply { route: vec![A, B, C, D], replier: D };
    // On the way from C to B, one node is left in front of the destination.
    let packet = dsr(&dsr::Message::Reply(reply), C);
    assert_eq!(ip(&packet), (4, 1, 48, 63));
    let mut expected = vec![59, 0, 0, 27];
    expected.extend([2, 13, 0, 10, 0, 0, 2, 10, 0, 0, 3, 10, 0, 0, 4]);
    expected.extend([96, 10, 0, 1, 10, 0, 0, 3, 10, 0, 0, 2]);
    assert_eq!(packet[20..], expected);
}

/// RFC 4728 §6.4.
#[test]
fn a_dsr_error_names_the_unreachable_node() {
    let error = dsr::Error { broken: (C, D), route: vec![C, B, A] };
    let packet = dsr(&dsr::Message::Error(error), C);
    assert_eq!(ip(&packet), (3, 1, 48, 64));
    let route = "60060001 0a000002";
    let error = "030e0100 0a000003 0a000001 0a000004";
    assert_eq!(hex(&packet[20..]), format!("3b000018 {error} {route}"));
}

fn data() -> Vec<u8> {
    let addr = |node| Addr::new(address(node).into(), 5000);
    let flow = Flow { src: addr(A), dst: addr(D) };
    let mut packet = Vec::new();
    encode(&Segment { flow, payload: Length(100), ..Segment::default() }, &mut packet).unwrap();
    packet
}

/// RFC 4728 §6.1, §6.7.
#[test]
fn a_source_route_stands_between_ip_and_tcp() {
    let plain = data();
    let route = dsr::SourceRoute { route: vec![A, B, C, D], salvaged: 0 };
    let mut packet = plain.clone();
    insert_source_route(&route, A, address, &mut packet).unwrap();
    assert_eq!(ip(&packet), (1, 4, 48, 64));
    assert_eq!(hex(&packet[20..36]), "0600000c 600a0002 0a000002 0a000003");
    assert_eq!(packet[36..], plain[20..]);
}

/// RFC 4728 §8.3.6.
#[test]
fn a_salvaged_packet_lists_the_node_that_salvaged_it() {
    let route = dsr::SourceRoute { route: vec![B, C, D], salvaged: 2 };
    let mut packet = data();
    insert_source_route(&route, B, address, &mut packet).unwrap();
    assert_eq!(hex(&packet[20..36]), "0600000c 600a0081 0a000002 0a000003");
}

#[test]
fn a_route_too_long_for_the_header_is_an_error() {
    let route: Vec<NodeId> = (0..66).map(NodeId).collect();
    let mut packet = data();
    let error = insert_source_route(
        &dsr::SourceRoute { route, salvaged: 0 },
        NodeId(0),
        address,
        &mut packet,
    );
    assert_eq!(error, Err(EncodeError::TooManyNodes { count: 64, max: 63 }));
    assert_eq!(packet, data());
}

fn nodes(count: usize) -> impl Strategy<Value = Vec<NodeId>> {
    (1..=count).prop_map(|count| (1..=count as u32).map(NodeId).collect())
}

proptest! {
    /// The simulator sends what the capture shows.
    #[test]
    fn a_message_is_as_long_as_its_protocol_says(
        route in nodes(40),
        at in any::<prop::sample::Index>(),
        broken in any::<bool>(),
        salvaged in 0_u16..5,
    ) {
        let at = route[at.index(route.len())];
        let broken = broken.then_some((A, B));
        let unreachable = route.iter().map(|&node| (node, None)).collect();
        let aodvs = [
            aodv::Message::Request(request()),
            aodv::Message::Error(aodv::Error { no_delete: false, unreachable }),
        ];
        for message in aodvs {
            prop_assert_eq!(aodv(&message, None).len() as u64, message.size().get());
        }
        let dsrs = [
            dsr::Message::Request(dsr::Request {
                ttl: 1, id: 1, target: D, route: route.clone(), broken,
            }),
            dsr::Message::Reply(dsr::Reply { route: route.clone(), replier: at }),
            dsr::Message::Error(dsr::Error { broken: (A, B), route: route.clone() }),
        ];
        for message in dsrs {
            prop_assert_eq!(dsr(&message, at).len() as u64, message.size().get());
        }
        if route.len() > 1 {
            let mut packet = data();
            let route = dsr::SourceRoute { route, salvaged };
            insert_source_route(&route, at, address, &mut packet).unwrap();
            prop_assert_eq!((packet.len() - data().len()) as u64, route.size().get());
        }
    }
}
