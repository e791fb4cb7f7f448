//! Messages and source routes of DSR → packets (RFC 4728 §6): a header of IP protocol 48 between
//! the IP header and the rest of the packet.

use crate::encode::{EncodeError, HOP_LIMIT, put_ipv4, set_hop_limit, set_ipv4_checksum};
use airtcp_core::Ecn;
use airtcp_routing::NodeId;
use airtcp_routing::dsr::{Link, Message, SourceRoute};
use std::net::Ipv4Addr;

/// IP protocol number of DSR.
const DSR: u8 = 48;
/// IP protocol number for "nothing follows".
const NO_NEXT_HEADER: u8 = 59;

// Option types.
const ROUTE_REQUEST: u8 = 1;
const ROUTE_REPLY: u8 = 2;
const ROUTE_ERROR: u8 = 3;
const SOURCE_ROUTE: u8 = 96;

/// The error "node unreachable" (§6.4).
const NODE_UNREACHABLE: u8 = 1;

/// Length and protocol fields of an IPv4 header.
const IP_LENGTH: std::ops::Range<usize> = 2..4;
const IP_PROTOCOL: usize = 9;
const IP_HEADER: usize = 20;

/// Appends to `out` the packet in which the node `from` forwards `message`; on an error `out` is
/// unchanged. `address` gives the addresses of nodes.
///
/// The time to live is that of the request; a reply or an error started with 64.
pub fn encode_dsr(
    message: &Message,
    from: NodeId,
    address: impl Fn(NodeId) -> Ipv4Addr,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let ip = |node| address(node).octets();
    let mut options = Vec::new();
    let (source, destination, hop_limit);
    match message {
        Message::Request(request) => {
            let (first, others) = request.route.split_first().unwrap_or((&from, &[]));
            options.extend([ROUTE_REQUEST, length(6, others.len())?]);
            // The identification has 16 bits.
            options.extend((request.id as u16).to_be_bytes());
            options.extend(ip(request.target));
            others.iter().for_each(|&node| options.extend(ip(node)));
            if let Some(broken) = request.broken {
                put_error(&mut options, broken, *first, ip);
            }
            (source, destination) = (address(*first), Ipv4Addr::BROADCAST);
            hop_limit = u8::try_from(request.ttl).unwrap_or(u8::MAX);
        }
        Message::Reply(reply) => {
            let place = reply.route.iter().position(|&node| node == reply.replier);
            let back: Vec<NodeId> =
                reply.route[..=place.unwrap_or(0)].iter().rev().copied().collect();
            let listed = reply.route.get(1..).unwrap_or_default();
            options.extend([ROUTE_REPLY, length(1, listed.len())?, 0]);
            listed.iter().for_each(|&node| options.extend(ip(node)));
            put_source_route(&mut options, (&back, 0), from, ip)?;
            let to = reply.route.first().copied().unwrap_or(reply.replier);
            (source, destination) = (address(reply.replier), address(to));
            hop_limit = HOP_LIMIT.saturating_sub(passed(&back, from));
        }
        Message::Error(error) => {
            let [first, last] = [error.route.first(), error.route.last()];
            let [first, last] = [first, last].map(|node| node.copied().unwrap_or(from));
            put_error(&mut options, error.broken, last, ip);
            put_source_route(&mut options, (&error.route, 0), from, ip)?;
            (source, destination) = (address(first), address(last));
            hop_limit = HOP_LIMIT.saturating_sub(passed(&error.route, from));
        }
    }
    let start = out.len();
    put_ipv4(DSR, Ecn::NotEct, source, destination, header_len(&options), out)?;
    put_header(NO_NEXT_HEADER, &options, out);
    set_hop_limit(&mut out[start..], hop_limit);
    Ok(())
}

/// Inserts the source route of a data packet that the node `from` forwards behind the IP header of
/// `packet`, a whole IPv4 packet without IP options; on an error `packet` is unchanged.
pub fn insert_source_route(
    route: &SourceRoute,
    from: NodeId,
    address: impl Fn(NodeId) -> Ipv4Addr,
    packet: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut options = Vec::new();
    let SourceRoute { route, salvaged } = route;
    put_source_route(&mut options, (route, *salvaged), from, |node| address(node).octets())?;
    let len = packet.len() + header_len(&options);
    let max = usize::from(u16::MAX);
    let total = u16::try_from(len)
        .map_err(|_| EncodeError::TooLong { len: len - IP_HEADER, max: max - IP_HEADER })?;
    let mut header = Vec::with_capacity(header_len(&options));
    put_header(packet[IP_PROTOCOL], &options, &mut header);
    packet.splice(IP_HEADER..IP_HEADER, header);
    packet[IP_PROTOCOL] = DSR;
    packet[IP_LENGTH].copy_from_slice(&total.to_be_bytes());
    set_ipv4_checksum(packet);
    Ok(())
}

/// Length of the fixed part (§6.1) and the options.
fn header_len(options: &[u8]) -> usize {
    4 + options.len()
}

fn put_header(next: u8, options: &[u8], out: &mut Vec<u8>) {
    // Few enough to be counted in 16 bits: each option is shorter than 258 bytes.
    let [high, low] = (options.len() as u16).to_be_bytes();
    out.extend([next, 0, high, low]);
    out.extend(options);
}

/// Length field of an option with `fixed` bytes and this many addresses.
fn length(fixed: usize, addresses: usize) -> Result<u8, EncodeError> {
    let max = (usize::from(u8::MAX) - fixed) / 4;
    let len = u8::try_from(fixed + 4 * addresses);
    len.map_err(|_| EncodeError::TooManyNodes { count: addresses, max })
}

/// Nodes of a route that the packet has passed when `from` sends it.
fn passed(route: &[NodeId], from: NodeId) -> u8 {
    let place = route.iter().position(|&node| node == from);
    u8::try_from(place.unwrap_or(0)).unwrap_or(u8::MAX)
}

/// Appends an error option (§6.4), to be sent to `to`.
fn put_error(options: &mut Vec<u8>, (at, next): Link, to: NodeId, ip: impl Fn(NodeId) -> [u8; 4]) {
    options.extend([ROUTE_ERROR, 14, NODE_UNREACHABLE, 0]);
    for node in [at, to, next] {
        options.extend(ip(node));
    }
}

/// Appends a source route (§6.7). The last node of the route is the destination of the IP packet.
/// The first one is its source, unless the packet was salvaged: then the salvaging node is listed
/// (§8.3.6).
fn put_source_route(
    options: &mut Vec<u8>,
    (route, salvaged): (&[NodeId], u16),
    from: NodeId,
    ip: impl Fn(NodeId) -> [u8; 4],
) -> Result<(), EncodeError> {
    /// Maximum of the 6-bit field "segments left".
    const MAX: usize = 63;
    let last = route.len().saturating_sub(1);
    let listed = route.get(usize::from(salvaged == 0)..last).unwrap_or_default();
    if listed.len() > MAX {
        return Err(EncodeError::TooManyNodes { count: listed.len(), max: MAX });
    }
    let len = length(2, listed.len())?;
    let left = route.len().saturating_sub(2 + usize::from(passed(route, from)));
    // Four bits for how often it was salvaged.
    let [high, low] = (salvaged.min(15) << 6 | left as u16).to_be_bytes();
    options.extend([SOURCE_ROUTE, len, high, low]);
    listed.iter().for_each(|&node| options.extend(ip(node)));
    Ok(())
}
