//! ARP (RFC 826), with the limits of ns-2.

use airtcp_routing::NodeId;
use airtcp_routing::arp::{Action, Arp, Message, Operation};
use airtcp_routing::router::PacketId;

const ME: NodeId = NodeId(0);
const FRIEND: NodeId = NodeId(1);
const STRANGER: NodeId = NodeId(2);

const fn request(sender: NodeId, target: NodeId) -> Message {
    Message { operation: Operation::Request, sender, target }
}

const fn reply(sender: NodeId, target: NodeId) -> Message {
    Message { operation: Operation::Reply, sender, target }
}

fn sends(arp: &mut Arp, packet: u32) -> Vec<Action> {
    let mut out = Vec::new();
    arp.send(PacketId(packet), FRIEND, &mut out);
    out
}

fn hears(arp: &mut Arp, message: Message) -> Vec<Action> {
    let mut out = Vec::new();
    arp.hears(&message, &mut out);
    out
}

const ASKS: Action = Action::Broadcast(request(ME, FRIEND));

/// RFC 826, "Packet Generation" and "Packet Reception".
#[test]
fn a_packet_waits_for_the_reply_and_later_ones_do_not() {
    let mut arp = Arp::new(ME);
    assert_eq!(sends(&mut arp, 1), [ASKS]);
    assert_eq!(hears(&mut arp, reply(FRIEND, ME)), [Action::Send(PacketId(1), FRIEND)]);
    assert_eq!(sends(&mut arp, 2), [Action::Send(PacketId(2), FRIEND)]);
}

#[test]
fn only_the_target_replies_and_it_does_so_by_unicast() {
    let mut arp = Arp::new(ME);
    assert_eq!(hears(&mut arp, request(FRIEND, ME)), [Action::Tell(FRIEND, reply(ME, FRIEND))]);
    assert_eq!(hears(&mut arp, request(FRIEND, STRANGER)), []);
    assert_eq!(hears(&mut arp, reply(FRIEND, ME)), []);
}

#[test]
fn everyone_who_hears_a_request_learns_its_senders_address() {
    let mut arp = Arp::new(ME);
    hears(&mut arp, request(FRIEND, STRANGER));
    assert_eq!(sends(&mut arp, 1), [Action::Send(PacketId(1), FRIEND)]);
}

#[test]
fn a_request_of_the_neighbour_itself_releases_the_packet() {
    let mut arp = Arp::new(ME);
    sends(&mut arp, 1);
    let did = hears(&mut arp, request(FRIEND, ME));
    assert_eq!(did[0], Action::Send(PacketId(1), FRIEND));
}

/// As in ns-2, `arpresolve`.
#[test]
fn one_packet_waits_and_the_next_takes_its_place_and_asks_again() {
    let mut arp = Arp::new(ME);
    sends(&mut arp, 1);
    assert_eq!(sends(&mut arp, 2), [Action::Drop(PacketId(1)), ASKS]);
    assert_eq!(hears(&mut arp, reply(FRIEND, ME)), [Action::Send(PacketId(2), FRIEND)]);
}

/// ns-2, ARP_MAX_REQUEST_COUNT; then it starts again.
#[test]
fn after_three_requests_in_vain_the_neighbour_is_gone() {
    let mut arp = Arp::new(ME);
    assert!((1..=3).all(|packet| sends(&mut arp, packet).ends_with(&[ASKS])));
    let packets = [Some(PacketId(3)), Some(PacketId(4))];
    assert_eq!(sends(&mut arp, 4), [Action::GiveUp(FRIEND, packets)]);
    assert_eq!(sends(&mut arp, 5), [ASKS]);
}

#[test]
fn other_neighbours_packets_are_not_touched() {
    let mut arp = Arp::new(ME);
    sends(&mut arp, 1);
    let mut out = Vec::new();
    arp.send(PacketId(2), STRANGER, &mut out);
    assert_eq!(out, [Action::Broadcast(request(ME, STRANGER))]);
    assert_eq!(hears(&mut arp, reply(STRANGER, ME)), [Action::Send(PacketId(2), STRANGER)]);
}
