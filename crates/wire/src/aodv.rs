//! Messages of AODV → packets (RFC 3561 §5): UDP datagrams from and to port 654 (§7).

use crate::encode::{EncodeError, encode_udp, set_hop_limit};
use airtcp_core::{Addr, Flow, Instant};
use airtcp_routing::NodeId;
use airtcp_routing::aodv::{Error, Hello, Message, Reply, Request};
use std::net::Ipv4Addr;

/// AODV's UDP port.
const PORT: u16 = 654;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ERROR: u8 = 3;

/// Flags of a request, behind its type.
const GRATUITOUS: u8 = 1 << 5;
const DESTINATION_ONLY: u8 = 1 << 4;
const UNKNOWN_SEQ: u8 = 1 << 3;
/// Flag of an error.
const NO_DELETE: u8 = 1 << 7;

/// Appends to `out` the packet in which the node `from` sends `message` to the neighbour `to`, or
/// to all (`None`); on an error `out` is unchanged. `address` gives the addresses of nodes.
///
/// A hop count above 255 is written as 255. The time to live is that of the request; 1 for a HELLO
/// (§6.9) and an error (§6.11); 64 for a reply, for which the RFC states none.
pub fn encode_aodv(
    message: &Message,
    from: NodeId,
    to: Option<NodeId>,
    address: impl Fn(NodeId) -> Ipv4Addr,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut body = Vec::new();
    let ip = |node| address(node).octets();
    let hop_limit = match message {
        Message::Request(request) => {
            put_request(&mut body, request, ip);
            hops(request.ttl)
        }
        Message::Reply(reply) => {
            body.extend([REPLY, 0, 0, hops(reply.hop_count)]);
            put_route(&mut body, reply, ip);
            crate::encode::HOP_LIMIT
        }
        &Message::Hello(Hello { seq, lifetime }) => {
            let reply = Reply {
                hop_count: 0,
                destination: from,
                destination_seq: seq,
                originator: from,
                lifetime,
                asked: Instant::ZERO,
            };
            body.extend([REPLY, 0, 0, 0]);
            put_route(&mut body, &reply, ip);
            1
        }
        Message::Error(Error { no_delete, unreachable }) => {
            let count = u8::try_from(unreachable.len())
                .map_err(|_| EncodeError::TooManyNodes { count: unreachable.len(), max: 255 })?;
            body.extend([ERROR, if *no_delete { NO_DELETE } else { 0 }, 0, count]);
            for &(node, seq) in unreachable {
                body.extend(ip(node));
                body.extend(seq.unwrap_or_default().0.to_be_bytes());
            }
            1
        }
    };
    let to = to.map_or(Ipv4Addr::BROADCAST, &address);
    let flow = Flow { src: Addr::new(address(from).into(), PORT), dst: Addr::new(to.into(), PORT) };
    let start = out.len();
    encode_udp(&flow, &body, out)?;
    set_hop_limit(&mut out[start..], hop_limit);
    Ok(())
}

/// A hop count, or a time to live, as far as a byte can express it.
fn hops(count: u16) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

/// Appends a request (§5.1).
fn put_request(body: &mut Vec<u8>, request: &Request, ip: impl Fn(NodeId) -> [u8; 4]) {
    let Request { hop_count, id, destination, destination_seq, .. } = *request;
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    let flags = flag(request.gratuitous, GRATUITOUS)
        | flag(request.destination_only, DESTINATION_ONLY)
        | flag(destination_seq.is_none(), UNKNOWN_SEQ);
    body.extend([REQUEST, flags, 0, hops(hop_count)]);
    body.extend(id.to_be_bytes());
    body.extend(ip(destination));
    body.extend(destination_seq.unwrap_or_default().0.to_be_bytes());
    body.extend(ip(request.originator));
    body.extend(request.originator_seq.0.to_be_bytes());
}

/// Appends the part of a reply behind its hop count (§5.2).
fn put_route(body: &mut Vec<u8>, reply: &Reply, ip: impl Fn(NodeId) -> [u8; 4]) {
    body.extend(ip(reply.destination));
    body.extend(reply.destination_seq.0.to_be_bytes());
    body.extend(ip(reply.originator));
    let millis = u32::try_from(reply.lifetime.as_millis()).unwrap_or(u32::MAX);
    body.extend(millis.to_be_bytes());
}
