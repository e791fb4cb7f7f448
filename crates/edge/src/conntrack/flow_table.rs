//! A bounded table of connections, with soft state for each.
//!
//! - Both directions of a connection meet in one entry.
//! - A connection enters with its first segment that has the ACK flag and neither SYN nor RST: a
//!   SYN may be forged or never answered. A SYN on a known connection that the other host answers
//!   with a SYN and an acknowledgement of it opens a new one, so what was known is forgotten. A SYN
//!   alone proves nothing (RFC 5961 §4.2).
//! - Each new connection takes the place of a [closed](FlowState::is_closed) one, or of one idle
//!   for longer than [`FlowTableConfig::idle`], if there is one; closed ones first. At the limit it
//!   takes that of the oldest connection of which only one host has sent anything: it may be a
//!   scan, or forged. If there is none, and if its mobile has as many as one may have, it is
//!   refused: its segments get no state, and the mechanism forwards them untouched.
//! - A connection that comes back after that idle time starts afresh. It may have used another path
//!   meanwhile, and after 2 GiB old sequence numbers look new and new ones old.
//! - A connection whose state [is committed](FlowState::is_committed) is forgotten neither for
//!   idle time nor for lack of room. A handshake removes it if all three segments of it fit each
//!   other: then both hosts have lost the old connection, and nobody can be given its bytes.
//! - A connection whose fixed host [is stopped](FlowPhase::is_stopped) is not forgotten for idle
//!   time: the mechanism has closed the window, and the mobile lacks what is held. At the limit an
//!   idle one makes room after all others.
//! - Hash order has no effect: entries form a list in the order of use. The hash is keyed
//!   (SipHash-1-3), so that nobody can choose colliding ports while the key is secret.

use crate::conntrack::unreplied::Unreplied;
use crate::interface::InterfaceName;
use crate::middlebox::{MobileId, Side};
use airtcp_core::{Duration, Flags, Flow, Instant, Payload, Segment, SeqNum};
use hashlink::LinkedHashMap;
use hashlink::linked_hash_map::Entry as MapEntry;
use siphasher::sip::SipHasher13;
use std::collections::btree_map::{BTreeMap, Entry as BTreeEntry};
use std::hash::BuildHasher;
use std::ops::Range;

/// Limits of a [`FlowTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTableConfig {
    /// Most connections at a time.
    pub limit: usize,
    /// Most connections of one mobile.
    pub per_mobile: usize,
    /// All connections cross this uplink, and its state is that of all; `None`: each mobile host
    /// has a link of its own.
    pub uplink: Option<InterfaceName>,
    /// A connection without a segment for this long may be forgotten.
    pub idle: Duration,
    /// Key of the hash. Has no influence on results; on a live network it must be chosen at random.
    pub hash_key: (u64, u64),
}

/// 131,072 connections, all of one mobile if need be, no uplink, 5 minutes, a fixed key.
impl Default for FlowTableConfig {
    fn default() -> Self {
        let limit = 1 << 17;
        let idle = Duration::from_secs(300);
        Self { limit, per_mobile: limit, uplink: None, idle, hash_key: (0, 0) }
    }
}

impl FlowTableConfig {
    /// The mobile host or the uplink of a connection: see [`MobileId::of`].
    pub fn mobile_of(&self, flow: &Flow) -> MobileId {
        MobileId::of(self.uplink, flow)
    }

    /// For a table that exists: `limits` may change; what places a connection stays.
    #[must_use]
    pub(crate) fn with_limits(self, limits: Self) -> Self {
        Self { hash_key: self.hash_key, uplink: self.uplink, ..limits }
    }
}

/// Most committed or stopped connections passed over at the front of the list in search of one to
/// forget.
const PASSED_OVER: usize = 16;

/// Facts about a connection that follow from its segments, whatever the mechanism.
pub trait Tracking {
    /// The hosts have ended it.
    fn is_closed(&self) -> bool;
    /// The hosts have ended it, and have acknowledged everything.
    fn is_done(&self) -> bool;
    /// Payload bytes held.
    fn held(&self) -> usize;
    /// Sequence numbers that the fixed host has sent and the mobile has not acknowledged; `None`
    /// before the connection is established.
    fn in_flight(&self) -> Option<Range<SeqNum>>;
}

/// A mechanism's state of one connection; soft: without it, segments are merely forwarded.
pub trait FlowState: Default {
    /// What was tracked of the connection; `None` for a mechanism that tracks nothing.
    fn tracking(&self) -> Option<&dyn Tracking> {
        None
    }
    /// Forgetting it now would break the connection: acknowledged bytes exist only here.
    fn is_committed(&self) -> bool {
        false
    }
    /// See [`Tracking::is_closed`].
    fn is_closed(&self) -> bool {
        self.tracking().is_some_and(Tracking::is_closed)
    }
    /// See [`Tracking::is_done`].
    fn is_done(&self) -> bool {
        self.tracking().is_some_and(Tracking::is_done)
    }
    /// See [`Tracking::held`].
    fn held(&self) -> usize {
        self.tracking().map_or(0, Tracking::held)
    }
    /// See [`Tracking::in_flight`].
    fn in_flight(&self) -> Option<Range<SeqNum>> {
        self.tracking()?.in_flight()
    }
    /// Treatment of the connection by the mechanism.
    fn phase(&self) -> FlowPhase {
        FlowPhase::Connected
    }
    /// See [`FlowPhase::is_interrupted`].
    fn is_interrupted(&self) -> bool {
        self.phase().is_interrupted()
    }
}

/// Treatment of a connection by a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowPhase {
    /// The mobile is in reach, and segments are forwarded.
    Connected,
    /// Keeping the fixed host from sending while the mobile is away.
    Frozen,
    /// The mobile is back, and does not yet have everything that it missed.
    Resuming,
    /// Given up: the hosts are being reset.
    Reset,
    /// Ended by the hosts, with nothing left to do: signals pass it by.
    Closed,
}

impl FlowPhase {
    /// The phase of a connection in this state.
    pub(crate) fn of<S: FlowState>(state: &S) -> Self {
        match state.phase() {
            Self::Connected if state.is_done() && state.held() == 0 => Self::Closed,
            phase => phase,
        }
    }

    /// The mechanism does more for the connection than forward its segments.
    pub const fn is_interrupted(self) -> bool {
        match self {
            Self::Frozen | Self::Resuming | Self::Reset => true,
            Self::Connected | Self::Closed => false,
        }
    }

    /// The mechanism keeps the fixed host from sending, or replays what the mobile missed.
    const fn is_stopped(self) -> bool {
        match self {
            Self::Frozen | Self::Resuming => true,
            Self::Connected | Self::Reset | Self::Closed => false,
        }
    }

    /// The phase's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Frozen => "frozen",
            Self::Resuming => "resuming",
            Self::Reset => "reset",
            Self::Closed => "closed",
        }
    }
}

/// Report on a connection in the table, for status output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// From the fixed to the mobile host.
    pub flow: Flow,
    /// Treatment by the mechanism.
    pub phase: FlowPhase,
    /// Beginning of the phase; `None` while connected or closed.
    pub since: Option<Instant>,
    /// Payload bytes held.
    pub held: u64,
    /// Acknowledged bytes exist only here.
    pub committed: bool,
}

/// A connection in the table.
#[derive(Debug)]
pub struct Tracked<'a, S> {
    entry: &'a mut FlowEntry<S>,
    totals: &'a mut Totals,
    mobile: MobileId,
    /// [`FlowTable::track`] was given its first segment (or the first after it was forgotten).
    pub is_new: bool,
}

impl<S: FlowState> Tracked<'_, S> {
    /// Does something with the state, and keeps account of what it holds and which phase it is in.
    pub fn with<R>(&mut self, now: Instant, act: impl FnOnce(&mut S) -> R) -> R {
        let state = &mut self.entry.state;
        let (held, before) = (state.held() as u64, Standing::of(state));
        let phase = state.phase();
        let result = act(state);
        self.totals.held = self.totals.held - held + state.held() as u64;
        if state.phase() != phase {
            self.entry.since = now;
        }
        self.totals.count(self.mobile, before, Standing::of(state));
        result
    }

    /// The mechanism's state of the connection.
    pub fn state(&self) -> &S {
        &self.entry.state
    }

    /// The mobile host, or the uplink, whose link carries the connection.
    pub fn mobile(&self) -> MobileId {
        self.mobile
    }

    /// Payload bytes held by all states of the table.
    pub fn all_held(&self) -> u64 {
        self.totals.held
    }

    /// Number of the mobile's connections that are not [`FlowPhase::Connected`] and hold something.
    pub fn waiting(&self) -> u32 {
        self.totals.of(self.mobile).waiting
    }
}

/// The sums to which a connection contributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    /// It is not [`FlowPhase::Connected`].
    is_interrupted: bool,
    /// And holds something.
    is_waiting: bool,
}

impl Standing {
    fn of<S: FlowState>(state: &S) -> Self {
        let is_interrupted = state.is_interrupted();
        Self { is_interrupted, is_waiting: is_interrupted && state.held() > 0 }
    }
}

/// Sums over the table.
#[derive(Clone, Debug, Default)]
struct Totals {
    /// Payload bytes held by all states.
    held: u64,
    /// Connections of each mobile; none: no entry.
    mobiles: BTreeMap<MobileId, OfMobile>,
}

/// Connections of one mobile.
#[derive(Clone, Copy, Debug, Default)]
struct OfMobile {
    known: u32,
    /// Connections that are not [`FlowPhase::Connected`].
    interrupted: u32,
    /// Those of them that hold something.
    waiting: u32,
}

impl Totals {
    fn enter<S: FlowState>(&mut self, mobile: MobileId, state: &S) {
        self.held += state.held() as u64;
        self.mobiles.entry(mobile).or_default().known += 1;
        self.count(mobile, Standing::default(), Standing::of(state));
    }

    fn leave<S: FlowState>(&mut self, mobile: MobileId, state: &S) {
        self.held -= state.held() as u64;
        self.count(mobile, Standing::of(state), Standing::default());
        if let BTreeEntry::Occupied(mut entry) = self.mobiles.entry(mobile) {
            entry.get_mut().known -= 1;
            if entry.get().known == 0 {
                entry.remove();
            }
        }
    }

    fn count(&mut self, mobile: MobileId, before: Standing, after: Standing) {
        if before != after {
            let changed = |count: u32, before, after| count + u32::from(after) - u32::from(before);
            let of = self.mobiles.entry(mobile).or_default();
            of.interrupted = changed(of.interrupted, before.is_interrupted, after.is_interrupted);
            of.waiting = changed(of.waiting, before.is_waiting, after.is_waiting);
        }
    }

    fn of(&self, mobile: MobileId) -> OfMobile {
        self.mobiles.get(&mobile).copied().unwrap_or_default()
    }
}

/// Soft state of type `S` for each of a bounded number of connections.
#[derive(Clone, Debug)]
pub struct FlowTable<S> {
    config: FlowTableConfig,
    /// By the flow from the fixed to the mobile host. Front: closed connections, then the longest
    /// idle one.
    flows: Flows<S>,
    /// Connections of which only one host has sent anything (`UNREPLIED` in nf_conntrack).
    unreplied: Unreplied<Flow>,
    refused: u64,
    evicted: u64,
    totals: Totals,
    /// Interrupted connections that were forgotten, until the next [`FlowTable::drain_forgotten`].
    forgotten: Vec<Flow>,
}

type Flows<S> = LinkedHashMap<Flow, FlowEntry<S>, Keyed>;

#[derive(Clone, Debug)]
struct FlowEntry<S> {
    last_segment: Instant,
    /// Beginning of the state's phase.
    since: Instant,
    /// The side of the only host that has sent anything; `None`: both have.
    only: Option<Side>,
    opening: Option<Opening>,
    state: S,
}

/// A handshake on a known connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    /// Who sent the SYN.
    from: Side,
    /// The number after it.
    next: SeqNum,
    /// The number after the SYN that answers it.
    answer: Option<SeqNum>,
}

impl<S: FlowState> FlowTable<S> {
    /// An empty table.
    pub fn new(config: FlowTableConfig) -> Self {
        let flows = LinkedHashMap::with_hasher(Keyed(config.hash_key));
        Self {
            config,
            flows,
            unreplied: Unreplied::default(),
            refused: 0,
            evicted: 0,
            totals: Totals::default(),
            forgotten: Vec::new(),
        }
    }

    /// The state of the connection that `segment` belongs to, new or known, with the segment taken
    /// into account. `None` when it has none: see the rules at the top of this file.
    pub fn track<P: Payload>(
        &mut self,
        now: Instant,
        from: Side,
        segment: &Segment<P>,
    ) -> Option<Tracked<'_, S>> {
        let key = from.to_mobile(segment.flow);
        let reset = segment.flags.contains(Flags::RST);
        if segment.flags.contains(Flags::SYN) {
            return self.track_syn(key, from, segment);
        }
        if !self.flows.contains_key(&key) {
            if reset || segment.ack.is_none() {
                return None;
            }
            self.make_room(now);
            let of_mobile = self.totals.of(self.config.mobile_of(&key));
            if self.flows.len() >= self.config.limit
                || of_mobile.known as usize >= self.config.per_mobile
            {
                self.refused += 1;
                return None;
            }
            let is_unreplied = |key: &Flow| is_unreplied(&self.flows, key);
            self.unreplied.push(key, self.config.limit, is_unreplied);
        }
        let mobile = self.config.mobile_of(&key);
        let mut entry = match self.flows.entry(key) {
            MapEntry::Occupied(entry) => entry,
            MapEntry::Vacant(vacant) => {
                let entry = vacant.insert(FlowEntry::new(now, Some(from), S::default()));
                let totals = &mut self.totals;
                totals.enter(mobile, &entry.state);
                return Some(Tracked { entry, totals, mobile, is_new: true });
            }
        };
        let known = entry.get_mut();
        let is_idle = now.since(known.last_segment) >= self.config.idle && !known.outlasts_idle();
        let is_new = is_idle || known.is_opened_anew(from, segment);
        if is_new {
            self.totals.leave(mobile, &known.state);
            self.forgotten.extend(known.state.is_interrupted().then_some(key));
            // A host that completes a handshake has received the other's SYN.
            let only = is_idle.then_some(from);
            *known = FlowEntry::new(now, only, S::default());
            self.totals.enter(mobile, &known.state);
        }
        known.last_segment = now;
        if !reset && known.only == Some(from.opposite()) {
            known.only = None;
        }
        if known.state.is_closed() {
            entry.to_front();
        } else {
            entry.to_back();
        }
        let (entry, totals) = (entry.into_mut(), &mut self.totals);
        Some(Tracked { entry, totals, mobile, is_new })
    }

    /// The known connection that a SYN belongs to, unless the hosts agree on a new one by it.
    fn track_syn<P: Payload>(
        &mut self,
        key: Flow,
        from: Side,
        segment: &Segment<P>,
    ) -> Option<Tracked<'_, S>> {
        let entry = self.flows.get_mut(&key)?;
        match (segment.ack, &mut entry.opening) {
            (None, opening) => {
                *opening = Some(Opening { from, next: segment.seq + 1, answer: None });
            }
            (Some(ack), Some(opening)) if from != opening.from && ack == opening.next => {
                opening.answer = Some(segment.seq + 1);
                if !entry.is_committed() {
                    self.forget(&key);
                    return None;
                }
            }
            (Some(_), _) => {}
        }
        self.get(&key)
    }

    /// A known connection has ended: it is the first to make room.
    pub fn retire(&mut self, key: &Flow) {
        self.flows.to_front(key);
    }

    /// The state of a known connection.
    pub fn state(&self, key: &Flow) -> Option<&S> {
        self.flows.get(key).map(|entry| &entry.state)
    }

    /// A known connection, by its flow from the fixed to the mobile host.
    pub fn get(&mut self, key: &Flow) -> Option<Tracked<'_, S>> {
        let mobile = self.config.mobile_of(key);
        let (entry, totals) = (self.flows.get_mut(key)?, &mut self.totals);
        Some(Tracked { entry, totals, mobile, is_new: false })
    }

    /// This connection is known and [committed](FlowState::is_committed).
    pub fn is_committed(&self, key: &Flow) -> bool {
        self.flows.get(key).is_some_and(FlowEntry::is_committed)
    }

    /// Bytes in flight of a connection: see [`FlowState::in_flight`].
    pub fn in_flight(&self, key: &Flow) -> Option<Range<SeqNum>> {
        self.flows.get(key)?.state.in_flight()
    }

    /// Puts a connection in the table, in the place of what was known of it. Its phase began at
    /// `since`. It enters even beyond
    /// the limit: bytes that were acknowledged early count for more.
    pub fn insert(&mut self, now: Instant, since: Instant, key: Flow, state: S) {
        let mobile = self.config.mobile_of(&key);
        self.totals.enter(mobile, &state);
        let entry = FlowEntry { since, ..FlowEntry::new(now, None, state) };
        if let Some(known) = self.flows.insert(key, entry) {
            self.totals.leave(mobile, &known.state);
        }
    }

    /// Goes on with other limits. The hash keeps its key, and the link stays the same. If the limit
    /// is lower, connections leave when they may be forgotten.
    pub fn reconfigure(&mut self, config: FlowTableConfig) {
        self.config = self.config.with_limits(config);
    }

    /// The mobile host or the uplink of a connection; `key` is its flow from the fixed to the
    /// mobile host.
    pub fn mobile_of(&self, key: &Flow) -> MobileId {
        self.config.mobile_of(key)
    }

    /// Reports on all connections, in the order of the list.
    pub fn reports(&self) -> impl Iterator<Item = FlowReport> + '_ {
        self.flows.iter().map(|(&flow, entry)| {
            let (state, phase) = (&entry.state, FlowPhase::of(&entry.state));
            let since = phase.is_interrupted().then_some(entry.since);
            let (held, committed) = (state.held() as u64, state.is_committed());
            FlowReport { flow, phase, since, held, committed }
        })
    }

    /// Forgets a connection that is not committed.
    fn forget(&mut self, key: &Flow) {
        if let MapEntry::Occupied(entry) = self.flows.entry(*key)
            && !entry.get().is_committed()
        {
            let state = entry.remove().state;
            self.totals.leave(self.config.mobile_of(key), &state);
            self.forgotten.extend(state.is_interrupted().then_some(*key));
        }
    }

    /// Forgets one connection, if one that may be forgotten is near the front; or if the table is
    /// full, one without a reply, or else a stopped one near the front that is idle.
    fn make_room(&mut self, now: Instant) {
        let idle = self.config.idle;
        let mut stopped = Vec::new();
        // Committed and stopped ones move out of the way of those behind them.
        for _ in 0..PASSED_OVER {
            let Some((&key, entry)) = self.flows.front() else { break };
            let is_idle = now.since(entry.last_segment) >= idle;
            if entry.outlasts_idle() {
                if is_idle && !entry.is_committed() {
                    stopped.push(key);
                }
                self.flows.to_back(&key);
            } else if entry.state.is_closed() || is_idle {
                return self.evict(&key);
            } else {
                break;
            }
        }
        if self.flows.len() >= self.config.limit {
            // Idle ones remain in front of those that are not.
            for key in stopped.iter().rev() {
                self.flows.to_front(key);
            }
            let unreplied = self.unreplied.pop(|key| is_unreplied(&self.flows, key));
            if let Some(key) = unreplied.or(stopped.first().copied()) {
                self.evict(&key);
            }
        }
    }

    fn evict(&mut self, key: &Flow) {
        self.forget(key);
        self.evicted += 1;
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
    /// Payload bytes held by all states.
    pub fn held(&self) -> u64 {
        self.totals.held
    }
    /// This connection is known.
    pub fn contains(&self, key: &Flow) -> bool {
        self.flows.contains_key(key)
    }
    /// The mobile host of this connection has sent a segment.
    pub fn is_mobile_heard(&self, key: &Flow) -> bool {
        self.flows.get(key).is_some_and(|entry| entry.only != Some(Side::Fixed))
    }
    /// Connections of this mobile are not [`FlowPhase::Connected`].
    pub fn is_interrupted(&self, mobile: MobileId) -> bool {
        self.interrupted(mobile) > 0
    }
    /// Number of the mobile's connections that are not [`FlowPhase::Connected`].
    pub fn interrupted(&self, mobile: MobileId) -> usize {
        self.totals.of(mobile).interrupted as usize
    }
    /// The states, with the connections' flows from the fixed to the mobile host, in the order of
    /// the list.
    pub fn iter(&self) -> impl Iterator<Item = (&Flow, &S)> {
        self.flows.iter().map(|(flow, entry)| (flow, &entry.state))
    }
    /// The connections, by their flows from the fixed to the mobile host, in the order of the list.
    pub fn keys(&self) -> impl Iterator<Item = &Flow> {
        self.flows.keys()
    }
    /// Takes out the flows of interrupted connections that were forgotten since the last call.
    pub fn drain_forgotten(&mut self) -> impl Iterator<Item = Flow> + '_ {
        self.forgotten.drain(..)
    }
    /// Connections that made room for others.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }
}

impl<S: FlowState> FlowEntry<S> {
    fn new(now: Instant, only: Option<Side>, state: S) -> Self {
        Self { last_segment: now, since: now, only, opening: None, state }
    }

    /// This segment completes a handshake.
    fn is_opened_anew<P: Payload>(&self, from: Side, segment: &Segment<P>) -> bool {
        self.opening.is_some_and(|opening| {
            !segment.flags.contains(Flags::RST)
                && (from, segment.seq) == (opening.from, opening.next)
                && segment.ack.is_some_and(|ack| opening.answer == Some(ack))
        })
    }

    fn is_committed(&self) -> bool {
        self.state.is_committed()
    }

    /// It is not forgotten because its hosts are silent.
    fn outlasts_idle(&self) -> bool {
        self.is_committed() || self.state.phase().is_stopped()
    }
}

/// Only one host of this connection has sent anything, so that it may make room.
fn is_unreplied<S: FlowState>(flows: &Flows<S>, key: &Flow) -> bool {
    flows.get(key).is_some_and(|entry| entry.only.is_some() && !entry.is_committed())
}

/// Builds keyed hashers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed(pub(crate) (u64, u64));

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

    impl FlowState for u32 {}

    fn table(limit: usize) -> FlowTable<u32> {
        FlowTable::new(config(limit))
    }

    fn config(limit: usize) -> FlowTableConfig {
        let idle = Duration::from_secs(10);
        FlowTableConfig { limit, per_mobile: 100, uplink: None, idle, hash_key: (1, 2) }
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

    fn value(tracked: Option<Tracked<'_, u32>>) -> Option<u32> {
        tracked.map(|t| t.entry.state)
    }

    const ACK: Flags = Flags::empty();

    /// Segments of both hosts of a connection.
    fn meet<S: FlowState>(table: &mut FlowTable<S>, now: Instant, port: u16) {
        assert!(table.track(now, Side::Fixed, &segment(port, ACK)).is_some());
        assert!(table.track(now, Side::Mobile, &answer(port, ACK)).is_some());
    }

    fn ports<S: FlowState>(table: &FlowTable<S>) -> Vec<u16> {
        let mut ports: Vec<u16> = table.keys().map(|key| key.src.port).collect();
        ports.sort_unstable();
        ports
    }

    #[test]
    fn both_directions_meet() {
        let mut table = table(10);
        table.track(s(0), Side::Fixed, &segment(1, ACK)).unwrap().entry.state = 7;
        assert_eq!(value(table.track(s(0), Side::Mobile, &answer(1, ACK))), Some(7));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn connections_start_with_the_ack_flag() {
        let mut table = table(10);
        let without_ack = Segment { ack: None, ..segment(1, ACK) };
        assert!(table.track(s(0), Side::Fixed, &without_ack).is_none());
        assert!(table.track(s(0), Side::Fixed, &segment(1, Flags::SYN)).is_none());
        assert!(table.track(s(0), Side::Fixed, &segment(1, Flags::RST)).is_none());
        assert!(table.is_empty());
        assert!(table.track(s(0), Side::Fixed, &segment(1, ACK)).is_some());
    }

    #[test]
    fn a_handshake_forgets_the_old_connection_of_the_same_ports() {
        for from in [Side::Fixed, Side::Mobile] {
            let directed = |from, port, flags| match from {
                Side::Fixed => segment(port, flags),
                Side::Mobile => answer(port, flags),
            };
            let mut table = table(10);
            table.track(s(0), Side::Fixed, &segment(1, ACK)).unwrap().entry.state = 7;
            let syn = directed(from, 1, Flags::SYN);
            let syn = Segment { seq: SeqNum(u32::MAX), ack: None, ..syn };
            assert_eq!(value(table.track(s(1), from, &syn)), Some(7), "RFC 5961 §4.2");
            let answer = directed(from.opposite(), 1, Flags::SYN);
            let wrong = Segment { ack: Some(SeqNum(9)), ..answer.clone() };
            assert_eq!(value(table.track(s(1), from.opposite(), &wrong)), Some(7));
            let own = Segment { ack: Some(SeqNum(0)), ..directed(from, 1, Flags::SYN) };
            assert_eq!(value(table.track(s(1), from, &own)), Some(7));
            let right = Segment { ack: Some(SeqNum(0)), ..answer };
            assert!(table.track(s(1), from.opposite(), &right).is_none());
            assert_eq!(value(table.track(s(1), Side::Fixed, &segment(1, ACK))), Some(0));
        }
    }

    #[test]
    fn at_the_limit_new_connections_are_refused_and_counted() {
        let mut table = table(2);
        meet(&mut table, s(0), 1);
        meet(&mut table, s(0), 2);
        assert!(table.track(s(0), Side::Fixed, &segment(3, ACK)).is_none());
        assert!(table.track(s(0), Side::Fixed, &segment(1, ACK)).is_some(), "known ones go on");
        assert_eq!((table.len(), table.refused(), table.evicted()), (2, 1, 0));
    }

    #[test]
    fn the_longest_idle_connection_makes_room() {
        let mut table = table(2);
        meet(&mut table, s(0), 1);
        meet(&mut table, s(1), 2);
        table.track(s(9), Side::Mobile, &answer(1, ACK));
        assert!(table.track(s(10), Side::Fixed, &segment(3, ACK)).is_none());
        assert!(table.track(s(11), Side::Fixed, &segment(3, ACK)).is_some());
        assert!(
            table.track(s(11), Side::Fixed, &segment(1, ACK)).is_some(),
            "in use two seconds ago"
        );
        assert_eq!(table.evicted(), 1);
    }

    #[test]
    fn what_only_one_host_was_heard_of_makes_room_first_the_oldest_before_others() {
        let mut table = table(3);
        meet(&mut table, s(0), 1);
        table.track(s(0), Side::Fixed, &segment(2, ACK));
        table.track(s(0), Side::Mobile, &answer(2, Flags::RST));
        table.track(s(0), Side::Mobile, &answer(3, ACK));
        for port in 4..100 {
            assert!(table.track(s(1), Side::Fixed, &segment(port, ACK)).is_some());
        }
        assert_eq!(ports(&table), [1, 98, 99]);
        meet(&mut table, s(2), 100);
        meet(&mut table, s(2), 101);
        assert!(table.track(s(2), Side::Fixed, &segment(102, ACK)).is_none());
        assert_eq!(ports(&table), [1, 100, 101]);
    }

    #[test]
    fn of_one_mobile_no_more_are_known_than_it_may_have() {
        let mut table = FlowTable::<u32>::new(FlowTableConfig { per_mobile: 2, ..config(10) });
        meet(&mut table, s(0), 1);
        meet(&mut table, s(5), 2);
        assert!(table.track(s(5), Side::Fixed, &segment(3, ACK)).is_none());
        let mut other = segment(4, ACK);
        other.flow.dst.ip = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
        assert!(table.track(s(5), Side::Fixed, &other).is_some(), "another mobile");
        assert!(table.track(s(10), Side::Fixed, &segment(3, ACK)).is_some(), "1 is idle");
        assert_eq!(table.refused(), 1);
    }

    #[test]
    fn all_hosts_behind_an_uplink_are_one_mobile() {
        let uplink = "wwan0".parse().ok();
        let config = FlowTableConfig { per_mobile: 2, uplink, ..config(10) };
        let mut table = FlowTable::<u32>::new(config);
        for (port, last) in [(1, 2), (2, 3), (3, 4)] {
            let mut segment = segment(port, ACK);
            segment.flow.dst.ip = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
            let tracked = table.track(s(0), Side::Fixed, &segment);
            let mobile = tracked.map(|tracked| tracked.mobile());
            assert_eq!(mobile, uplink.filter(|_| port < 3).map(MobileId::Uplink));
        }
    }

    /// A state that is closed when it says so.
    #[derive(Default)]
    struct Closing(bool);
    impl FlowState for Closing {
        fn is_closed(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn a_closed_connection_makes_room_at_once() {
        let mut table = FlowTable::<Closing>::new(config(2));
        meet(&mut table, s(0), 1);
        meet(&mut table, s(0), 2);
        for flags in [Flags::FIN, Flags::RST] {
            table.track(s(0), Side::Fixed, &segment(2, flags));
            table.track(s(0), Side::Mobile, &answer(2, flags));
            assert!(table.track(s(0), Side::Fixed, &segment(3, ACK)).is_none(), "may be forged");
        }
        table.track(s(0), Side::Fixed, &segment(2, ACK)).unwrap().entry.state.0 = true;
        table.retire(&segment(2, ACK).flow);
        assert!(table.track(s(0), Side::Fixed, &segment(3, ACK)).is_some());
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_connection_that_was_idle_too_long_starts_afresh() {
        let mut table = table(10);
        table.track(s(0), Side::Fixed, &segment(1, ACK)).unwrap().entry.state = 7;
        assert_eq!(value(table.track(s(9), Side::Fixed, &segment(1, ACK))), Some(7));
        assert_eq!(value(table.track(s(19), Side::Fixed, &segment(1, ACK))), Some(0));
    }

    /// A state that holds bytes, and is committed while there are any.
    #[derive(Default)]
    struct Holding(usize);
    impl FlowState for Holding {
        fn is_committed(&self) -> bool {
            self.0 > 0
        }
        fn held(&self) -> usize {
            self.0
        }
    }

    /// A table with room for one connection, which is committed.
    fn committed() -> (FlowTable<Holding>, Flow) {
        let mut table = FlowTable::new(config(1));
        meet(&mut table, s(0), 1);
        let key = segment(1, ACK).flow;
        table.get(&key).unwrap().with(s(0), |state: &mut Holding| state.0 = 1000);
        (table, key)
    }

    #[test]
    fn a_committed_connection_is_never_forgotten() {
        let (mut table, key) = committed();
        assert_eq!(table.held(), 1000);
        let syn = Segment { ack: None, ..segment(1, Flags::SYN) };
        assert!(table.track(s(1), Side::Fixed, &syn).is_some());
        assert!(table.track(s(1), Side::Mobile, &answer(1, Flags::SYN)).is_some(), "kept");
        assert!(table.track(s(99), Side::Fixed, &segment(2, ACK)).is_none(), "no room");
        assert_eq!(table.track(s(99), Side::Fixed, &segment(1, ACK)).unwrap().entry.state.0, 1000);
        table.get(&key).unwrap().with(s(0), |state| state.0 = 0);
        assert!(table.track(s(200), Side::Fixed, &segment(2, ACK)).is_some(), "not committed");
        assert_eq!((table.held(), table.evicted()), (0, 1));
    }

    #[test]
    fn a_whole_handshake_that_fits_forgets_even_a_committed_connection() {
        let (mut table, key) = committed();
        let numbered = |segment: Segment<Length>, seq: u32, ack: Option<u32>| Segment {
            seq: SeqNum(seq),
            ack: ack.map(SeqNum),
            ..segment
        };
        let held = |table: &mut FlowTable<Holding>, from, segment| {
            table.track(s(1), from, &segment).map(|tracked| tracked.state().0)
        };
        let syn = |seq, ack| numbered(segment(1, Flags::SYN), seq, ack);
        let to = |seq, ack| numbered(answer(1, Flags::SYN), seq, ack);
        let last = |flags, seq, ack| numbered(answer(1, flags), seq, Some(ack));
        // The mobile opens it; its host or another has forged the rest, until it fits.
        let steps = [
            (Side::Mobile, to(u32::MAX, None)),
            (Side::Mobile, last(ACK, 0, 501)),
            (Side::Fixed, syn(500, Some(7))),
            (Side::Mobile, last(ACK, 0, 501)),
            (Side::Fixed, syn(500, Some(0))),
            (Side::Mobile, last(ACK, 1, 501)),
            (Side::Mobile, last(ACK, 0, 502)),
            (Side::Mobile, last(Flags::RST, 0, 501)),
            (Side::Fixed, numbered(segment(1, ACK), 0, Some(501))),
        ];
        for (n, (from, segment)) in steps.into_iter().enumerate() {
            assert_eq!(held(&mut table, from, segment), Some(1000), "step {n}");
        }
        let tracked = table.track(s(1), Side::Mobile, &last(ACK, 0, 501)).unwrap();
        assert_eq!((tracked.is_new, tracked.state().0), (true, 0));
        assert_eq!((table.held(), table.is_mobile_heard(&key)), (0, true));
    }

    #[test]
    fn a_committed_connection_does_not_keep_idle_ones_behind_it() {
        let mut table = FlowTable::<Holding>::new(config(2));
        table.track(s(0), Side::Fixed, &segment(1, ACK));
        table.get(&segment(1, ACK).flow).unwrap().with(s(0), |state| state.0 = 1000);
        table.track(s(1), Side::Fixed, &segment(2, ACK));
        assert!(table.track(s(99), Side::Fixed, &segment(3, ACK)).is_some(), "in the place of 2");
        assert_eq!((ports(&table), table.held()), (vec![1, 3], 1000));
    }

    #[test]
    fn a_connection_put_in_the_table_enters_even_beyond_the_limit() {
        let mut table = FlowTable::<Holding>::new(config(1));
        for (port, held) in [(1, 100), (2, 1000), (1, 10)] {
            table.insert(s(0), s(0), segment(port, ACK).flow, Holding(held));
        }
        assert_eq!((table.len(), table.held()), (2, 1010), "the last of one name counts");
    }

    /// A state that is frozen when it says so.
    #[derive(Default)]
    struct Frozen(bool);
    impl FlowState for Frozen {
        fn phase(&self) -> FlowPhase {
            if self.0 { FlowPhase::Frozen } else { FlowPhase::Connected }
        }
    }

    #[test]
    fn a_mobile_is_interrupted_until_its_last_frozen_connection_ends_or_goes_on() {
        let mut table = FlowTable::<Frozen>::new(config(3));
        let mobile = MobileId::Host(segment(1, ACK).flow.dst.ip);
        for port in 1..=3 {
            let mut tracked = table.track(s(0), Side::Fixed, &segment(port, ACK)).unwrap();
            tracked.with(s(u64::from(port)), |state| state.0 = true);
        }
        let since: Vec<_> = table.reports().map(|report| report.since.unwrap()).collect();
        assert_eq!(since, [s(1), s(2), s(3)]);
        // One goes on, one is forgotten for a handshake, one begins afresh after it was idle.
        table.get(&segment(1, ACK).flow).unwrap().with(s(4), |state| state.0 = false);
        let syn = Segment { ack: None, ..segment(2, Flags::SYN) };
        table.track(s(4), Side::Fixed, &syn);
        table.track(s(4), Side::Mobile, &answer(2, Flags::SYN));
        assert!(table.is_interrupted(mobile));
        table.get(&segment(3, ACK).flow).unwrap().with(s(5), |state| state.0 = false);
        assert!(!table.is_interrupted(mobile));
        assert!(table.reports().all(|report| report.since.is_none()));
    }

    /// A table of `limit` connections with the first one frozen.
    fn frozen(limit: usize) -> FlowTable<Frozen> {
        let mut table = FlowTable::new(config(limit));
        meet(&mut table, s(0), 1);
        table.get(&segment(1, ACK).flow).unwrap().with(s(0), |state: &mut Frozen| state.0 = true);
        table
    }

    #[test]
    fn a_frozen_connection_is_not_forgotten_because_its_hosts_are_silent() {
        let mut table = frozen(10);
        meet(&mut table, s(99), 2);
        assert_eq!((ports(&table), table.evicted()), (vec![1, 2], 0));
        let tracked = table.track(s(200), Side::Mobile, &answer(1, ACK)).unwrap();
        assert!(!tracked.is_new && tracked.state().0);
    }

    #[test]
    fn at_the_limit_a_frozen_connection_that_is_idle_makes_room_if_no_other_can() {
        let mut table = frozen(3);
        meet(&mut table, s(1), 2);
        table.track(s(2), Side::Fixed, &segment(3, ACK));
        meet(&mut table, s(99), 4);
        assert_eq!(ports(&table), [1, 3, 4], "2 was idle");
        // 3 is not the first by then, but idle as well.
        meet(&mut table, s(99), 5);
        assert_eq!(ports(&table), [1, 4, 5]);
        // 4, which is in front of 1, goes on.
        meet(&mut table, s(99), 4);
        meet(&mut table, s(99), 6);
        assert_eq!(ports(&table), [4, 5, 6]);
        assert!(table.track(s(99), Side::Fixed, &segment(7, ACK)).is_none(), "none is idle");
    }

    #[test]
    fn a_table_full_of_frozen_connections_takes_new_ones_when_they_are_idle() {
        let mut table = FlowTable::<Frozen>::new(config(100));
        for port in 1..=100 {
            meet(&mut table, s(0), port);
            let key = segment(port, ACK).flow;
            table.get(&key).unwrap().with(s(0), |state| state.0 = true);
        }
        assert!(table.track(s(9), Side::Fixed, &segment(101, ACK)).is_none());
        for port in 101..=200 {
            meet(&mut table, s(10), port);
        }
        let mobile = MobileId::Host(segment(1, ACK).flow.dst.ip);
        assert_eq!((table.len(), table.interrupted(mobile)), (100, 0));
    }

    #[test]
    fn the_hash_key_does_not_show() {
        let evictions = |hash_key| {
            let mut table = FlowTable::<u32>::new(FlowTableConfig { hash_key, ..config(20) });
            (0..500u64)
                .map(|i| {
                    let port = (i * i % 61) as u16;
                    table.track(s(i), Side::Fixed, &segment(port, ACK)).map(|tracked| {
                        tracked.entry.state += 1;
                        tracked.entry.state
                    })
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(evictions((0, 0)), evictions((3, 4)));
    }
}
