//! A bounded table of connections, with soft state for each.
//!
//! - Both directions of a connection meet in one entry.
//! - A connection enters with its first segment that has the ACK flag and neither SYN nor RST: a SYN may be
//!   forged or never answered. A SYN on a known connection opens a new one with other sequence numbers:
//!   what was known is forgotten.
//! - At the limit, closed connections (FIN both ways, or RST) and those idle for longer than
//!   [`FlowTableConfig::idle`] make room, closed ones first. Without such a one the new connection is refused: its
//!   segments get no state, and the mechanism forwards them untouched.
//! - A connection that comes back after that idle time starts afresh. The mobile may have been elsewhere, and
//!   after 2 GiB there its old sequence numbers look new, and new ones old.
//! - No hash order shows: entries form a list in the order of use. The hash is keyed (SipHash-1-3), so that
//!   nobody can choose ports that collide as long as the key is secret.

use crate::middlebox::Side;
use airtcp_core::{Duration, Flags, Flow, Instant, Payload, Segment};
use hashlink::LinkedHashMap;
use hashlink::linked_hash_map::Entry as MapEntry;
use siphasher::sip::SipHasher13;
use std::hash::BuildHasher;

/// Limits of a [`FlowTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTableConfig {
    /// Most connections at a time.
    pub limit: usize,
    /// A connection without a segment for this long may be forgotten.
    pub idle: Duration,
    /// Key of the hash. Has no influence on results; a shell on a live network must choose it at random.
    pub hash_key: (u64, u64),
}

/// 131,072 connections, 5 minutes, a fixed key.
impl Default for FlowTableConfig {
    fn default() -> Self {
        Self { limit: 1 << 17, idle: Duration::from_secs(300), hash_key: (0, 0) }
    }
}

/// Soft state of type `S` for each of a bounded number of connections.
#[derive(Clone, Debug)]
pub struct FlowTable<S> {
    config: FlowTableConfig,
    /// By the flow from the fixed to the mobile host. Front: closed connections, then the longest idle one.
    flows: LinkedHashMap<Flow, Entry<S>, Keyed>,
    refused: u64,
    evicted: u64,
}

#[derive(Clone, Debug)]
struct Entry<S> {
    last_segment: Instant,
    fixed_finished: bool,
    mobile_finished: bool,
    closed: bool,
    state: S,
}

impl<S: Default> FlowTable<S> {
    /// An empty table.
    pub fn new(config: FlowTableConfig) -> Self {
        let flows = LinkedHashMap::with_hasher(Keyed(config.hash_key));
        Self { config, flows, refused: 0, evicted: 0 }
    }

    /// The state of the connection that `segment` belongs to, new or known, with the segment taken into
    /// account. `None` when it has none: see the rules at the top of this file.
    pub fn track<P: Payload>(
        &mut self,
        now: Instant,
        from: Side,
        segment: &Segment<P>,
    ) -> Option<&mut S> {
        let key = match from {
            Side::Fixed => segment.flow,
            Side::Mobile => segment.flow.reversed(),
        };
        let reset = segment.flags.contains(Flags::RST);
        if segment.flags.contains(Flags::SYN) {
            self.flows.remove(&key);
            return None;
        }
        if self.flows.len() >= self.config.limit && !self.flows.contains_key(&key) {
            self.make_room(now);
        }
        let full = self.flows.len() >= self.config.limit;
        let mut entry = match self.flows.entry(key) {
            MapEntry::Occupied(entry) => entry,
            MapEntry::Vacant(_) if reset || segment.ack.is_none() => return None,
            MapEntry::Vacant(_) if full => {
                self.refused += 1;
                return None;
            }
            MapEntry::Vacant(vacant) => {
                return Some(&mut vacant.insert(Entry::starting(now, from, segment)).state);
            }
        };
        let known = entry.get_mut();
        if now.since(known.last_segment) >= self.config.idle {
            *known = Entry::starting(now, from, segment);
        } else {
            known.take_account(now, from, segment);
        }
        if entry.get().closed {
            entry.to_front();
        } else {
            entry.to_back();
        }
        Some(&mut entry.into_mut().state)
    }

    /// Forgets one connection, if there is one that may be forgotten.
    fn make_room(&mut self, now: Instant) {
        let idle = self.config.idle;
        let dispensable = |entry: &Entry<S>| entry.closed || now.since(entry.last_segment) >= idle;
        if self.flows.front().is_some_and(|(_, entry)| dispensable(entry)) {
            self.flows.pop_front();
            self.evicted += 1;
        }
    }
}

impl<S> FlowTable<S> {
    /// Connections in the table.
    pub fn len(&self) -> usize {
        self.flows.len()
    }
    /// True without connections.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }
    /// Segments that got no state because the table was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }
    /// Connections that made room for others.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }
}

impl<S: Default> Entry<S> {
    fn starting<P: Payload>(now: Instant, from: Side, segment: &Segment<P>) -> Self {
        let mut entry = Self {
            last_segment: now,
            fixed_finished: false,
            mobile_finished: false,
            closed: false,
            state: S::default(),
        };
        entry.take_account(now, from, segment);
        entry
    }

    fn take_account<P: Payload>(&mut self, now: Instant, from: Side, segment: &Segment<P>) {
        self.last_segment = now;
        if segment.flags.contains(Flags::FIN) {
            match from {
                Side::Fixed => self.fixed_finished = true,
                Side::Mobile => self.mobile_finished = true,
            }
        }
        self.closed |=
            segment.flags.contains(Flags::RST) || (self.fixed_finished && self.mobile_finished);
    }
}

/// Builds keyed hashers.
#[derive(Clone, Copy, Debug)]
struct Keyed((u64, u64));

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0.0, self.0.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Addr, Length, SeqNum};
    use std::net::{IpAddr, Ipv4Addr};

    fn table(limit: usize) -> FlowTable<u32> {
        FlowTable::new(FlowTableConfig { limit, idle: Duration::from_secs(10), hash_key: (1, 2) })
    }

    /// A segment of connection `port` from the fixed host.
    fn segment(port: u16, flags: Flags) -> Segment<Length> {
        let addr = |last, port| Addr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port);
        let flow = Flow { src: addr(1, port), dst: addr(2, 80) };
        Segment { flow, ack: Some(SeqNum(1)), flags, ..Segment::default() }
    }

    fn answer(port: u16, flags: Flags) -> Segment<Length> {
        let segment = segment(port, flags);
        Segment { flow: segment.flow.reversed(), ..segment }
    }

    fn s(n: u64) -> Instant {
        Instant::from_secs(n)
    }

    const ACK: Flags = Flags::empty();

    #[test]
    fn both_directions_meet() {
        let mut table = table(10);
        *table.track(s(0), Side::Fixed, &segment(1, ACK)).unwrap() = 7;
        assert_eq!(table.track(s(0), Side::Mobile, &answer(1, ACK)), Some(&mut 7));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn connections_start_with_the_ack_flag() {
        let mut table = table(10);
        let without_ack = Segment { ack: None, ..segment(1, ACK) };
        assert_eq!(table.track(s(0), Side::Fixed, &without_ack), None);
        assert_eq!(table.track(s(0), Side::Fixed, &segment(1, Flags::SYN)), None);
        assert_eq!(table.track(s(0), Side::Fixed, &segment(1, Flags::RST)), None);
        assert!(table.is_empty());
        assert!(table.track(s(0), Side::Fixed, &segment(1, ACK)).is_some());
    }

    #[test]
    fn a_syn_forgets_the_old_connection_of_the_same_ports() {
        let mut table = table(10);
        *table.track(s(0), Side::Fixed, &segment(1, ACK)).unwrap() = 7;
        assert_eq!(table.track(s(1), Side::Mobile, &answer(1, Flags::SYN)), None);
        assert_eq!(table.track(s(1), Side::Fixed, &segment(1, ACK)), Some(&mut 0));
    }

    #[test]
    fn at_the_limit_new_connections_are_refused_and_counted() {
        let mut table = table(2);
        assert!(table.track(s(0), Side::Fixed, &segment(1, ACK)).is_some());
        assert!(table.track(s(0), Side::Fixed, &segment(2, ACK)).is_some());
        assert!(table.track(s(0), Side::Fixed, &segment(3, ACK)).is_none());
        assert!(table.track(s(0), Side::Fixed, &segment(1, ACK)).is_some(), "known ones go on");
        assert_eq!((table.len(), table.refused(), table.evicted()), (2, 1, 0));
    }

    #[test]
    fn the_longest_idle_connection_makes_room() {
        let mut table = table(2);
        table.track(s(0), Side::Fixed, &segment(1, ACK));
        table.track(s(1), Side::Fixed, &segment(2, ACK));
        table.track(s(9), Side::Mobile, &answer(1, ACK));
        assert!(table.track(s(10), Side::Fixed, &segment(3, ACK)).is_none());
        assert!(table.track(s(11), Side::Fixed, &segment(3, ACK)).is_some());
        *table.track(s(11), Side::Fixed, &segment(1, ACK)).expect("in use two seconds ago") = 1;
        assert_eq!(table.evicted(), 1);
    }

    #[test]
    fn fin_both_ways_makes_room_at_once() {
        let mut table = table(1);
        table.track(s(0), Side::Fixed, &segment(1, Flags::FIN));
        table.track(s(0), Side::Fixed, &segment(1, Flags::FIN));
        assert!(table.track(s(0), Side::Fixed, &segment(2, ACK)).is_none(), "half closed");
        table.track(s(0), Side::Mobile, &answer(1, Flags::FIN));
        table.track(s(0), Side::Fixed, &segment(1, ACK));
        assert!(table.track(s(0), Side::Fixed, &segment(2, ACK)).is_some());
    }

    #[test]
    fn a_reset_makes_room_at_once() {
        let mut table = table(2);
        table.track(s(0), Side::Fixed, &segment(1, ACK));
        table.track(s(0), Side::Fixed, &segment(2, ACK));
        table.track(s(0), Side::Mobile, &answer(2, Flags::RST));
        assert!(table.track(s(0), Side::Fixed, &segment(3, ACK)).is_some());
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_connection_that_was_idle_too_long_starts_afresh() {
        let mut table = table(10);
        *table.track(s(0), Side::Fixed, &segment(1, ACK)).unwrap() = 7;
        assert_eq!(table.track(s(9), Side::Fixed, &segment(1, ACK)), Some(&mut 7));
        assert_eq!(table.track(s(19), Side::Fixed, &segment(1, ACK)), Some(&mut 0));
    }

    #[test]
    fn the_hash_key_does_not_show() {
        let evictions = |hash_key| {
            let mut table = FlowTable::<u32>::new(FlowTableConfig {
                limit: 20,
                idle: Duration::from_secs(10),
                hash_key,
            });
            (0..500u64)
                .map(|i| {
                    let port = (i * i % 61) as u16;
                    table.track(s(i), Side::Fixed, &segment(port, ACK)).map(|state| {
                        *state += 1;
                        *state
                    })
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(evictions((0, 0)), evictions((3, 4)));
    }
}
