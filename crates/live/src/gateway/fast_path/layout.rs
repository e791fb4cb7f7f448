//! The bytes of keys and values in the maps, as `bpf/packet_control.bpf.c` lays them out; what `copies` has too.
//!
//! Numbers are in the machine's byte order but for addresses and ports, which are as in packets.

use super::object;
use airtcp_core::{Addr, Duration, Flow, Instant, SeqNum, Timestamps};
use airtcp_edge::MobileEnd;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};

/// `struct settings`.
pub(super) fn settings(idle: Duration, threshold: u32, generation: u32) -> Vec<u8> {
    [&idle.as_nanos().to_ne_bytes()[..], &threshold.to_ne_bytes(), &generation.to_ne_bytes()]
        .concat()
}

/// `struct prefix`: whose packets, behind the interface with this index.
pub(super) fn prefix(interface: u32, net: IpNet) -> Vec<u8> {
    /// Bits in front of the address: interface and IP version.
    const HEAD: u32 = 64;
    let version = if net.addr().is_ipv4() { 4_u32 } else { 6 };
    let (bits, address) = mapped_prefix(net);
    let mut bytes = Vec::with_capacity(28);
    for number in [HEAD + bits, interface, version] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(address);
    bytes
}

/// How many bits of a `struct address` count, and these.
pub(super) fn mapped_prefix(net: IpNet) -> (u32, [u8; 16]) {
    let bits = match net {
        IpNet::V4(net) => 96 + u32::from(net.prefix_len()),
        IpNet::V6(net) => u32::from(net.prefix_len()),
    };
    (bits, mapped(net.addr()))
}

/// `struct address`.
pub(super) fn mapped(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// Bytes of a `struct flow_key`.
const FLOW_KEY: usize = 36;

/// From a `struct flow_key`: the flow from the fixed to the mobile host.
pub(super) fn flow(key: &[u8]) -> Option<Flow> {
    let address = |at: usize, port: usize| {
        let ip = Ipv6Addr::from(<[u8; 16]>::try_from(key.get(at..at + 16)?).ok()?);
        let port = u16::from_be_bytes(key.get(port..port + 2)?.try_into().ok()?);
        Some(Addr::new(ip.to_canonical(), port))
    };
    Some(Flow { src: address(0, 32)?, dst: address(16, 34)? })
}

/// What is in a `struct flow`, as far as the daemon looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// `last_segment_ns`.
    pub(super) last_segment: Instant,
    /// `CLOSED`.
    pub(super) is_closed: bool,
}

/// Where `last_segment_ns` is in a `struct flow`.
const LAST_SEGMENT: usize = 16;

/// From a `struct flow`.
pub(super) fn entry(value: &[u8]) -> Option<Entry> {
    const CLOSED: u32 = 1 << 7;
    let at = value.get(LAST_SEGMENT..LAST_SEGMENT + 8)?;
    let last_segment = Instant::from_nanos(u64::from_ne_bytes(at.try_into().ok()?));
    Some(Entry { last_segment, is_closed: u32_at(value, 4)? & CLOSED != 0 })
}

/// From a `struct answer`: the flow from the fixed to the mobile host, and what the mobile acknowledged last.
pub(super) fn answer(event: &[u8]) -> Option<(Flow, MobileEnd)> {
    const TIMESTAMPS: u32 = 1 << 3;
    const ECHO: u32 = 1 << 4;
    let flow = flow(event.get(..FLOW_KEY)?)?;
    let rest = event.get(FLOW_KEY..)?;
    let flags = u32_at(rest, 0)?;
    let timestamps = Timestamps { value: u32_at(rest, 12)?, echo: u32_at(rest, 16)? };
    let end = MobileEnd {
        ack: SeqNum(u32_at(rest, 4)?),
        next_seq: SeqNum(u32_at(rest, 8)?),
        timestamps: (flags & TIMESTAMPS != 0).then_some(timestamps),
        window: u16::from_ne_bytes(rest.get(20..22)?.try_into().ok()?),
        ece: flags & ECHO != 0,
    };
    Some((flow, end))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// `struct counters`, of one processor or summed over all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Of the mechanism, by the names that [`PacketControlCounters`](airtcp_edge::PacketControlCounters) has.
    pub(super) mechanism: airtcp_edge::PacketControlCounters,
    /// Segments of connections that found the table full.
    pub(super) segments_refused: u64,
    pub(super) packets_passed: u64,
    pub(super) packets_dropped: u64,
    pub(super) packets_undecodable: u64,
    pub(super) packets_foreign: u64,
    /// Connections that the programs entered into the table.
    pub(super) flows_added: u64,
    /// Connections that they removed.
    pub(super) flows_removed: u64,
}

impl Counters {
    /// What the programs did with packets, by the names that the shell has for it.
    pub(super) fn packets(&self) -> [(&'static str, u64); 4] {
        [
            ("packets_passed", self.packets_passed),
            ("packets_dropped", self.packets_dropped),
            ("packets_undecodable", self.packets_undecodable),
            ("packets_foreign", self.packets_foreign),
        ]
    }
}

/// Sums the values of all processors.
pub(super) fn counters(of_processors: &[Vec<u8>]) -> Counters {
    let sum = |n| object::sum(of_processors, n);
    Counters {
        mechanism: airtcp_edge::PacketControlCounters {
            acks_old_dropped: sum(0),
            acks_duplicate_dropped: sum(1),
            acks_forwarded: sum(2),
            data_dropped: sum(3),
            acks_generated: sum(4),
        },
        segments_refused: sum(5),
        packets_passed: sum(6),
        packets_dropped: sum(7),
        packets_undecodable: sum(8),
        packets_foreign: sum(9),
        flows_added: sum(10),
        flows_removed: sum(11),
    }
}
