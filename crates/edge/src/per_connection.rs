//! A [`Middlebox`] made of one [`Connection`] for each connection.
//!
//! [`PerConnection`] keeps them in a [`FlowTable`], runs their timers, hands link signals to all
//! connections of a mobile, bounds what they hold in all, and takes the notes of their [`Journal`].
//!
//! No call takes long, however many mobiles go away and come back at one instant: what is to be
//! done for many connections is done in *turns* ([`TURN`]), and what is left is due at once. In
//! between, the driver attends to packets. For a connection that gets a signal in a later
//! turn it is as if the signal had come that much later.

use crate::connection::{Connection, Context};
use crate::conntrack::flow_table::{
    FlowPhase, FlowReport, FlowTable, FlowTableConfig, Keyed, Tracked,
};
use crate::conntrack::validate::InvalidPackets;
use crate::hold::journal::{Call, ConnectionSnapshot, Input, Journal, JournalNote};
use crate::mechanisms::away::FIRST_PROBE_DELAY;
use crate::middlebox::{Action, Actions, Middlebox, MobileId, Side};
use crate::probing::Probers;
use airtcp_core::{Addr, Flow, Instant, LinkSignal, Payload, Segment, SeqNum};
use hashlink::LinkedHashMap;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::{Bound, Range};

/// Connections called in one turn, or a few more. Calling one takes some microseconds, and sending
/// a packet about as long, so a full packet counts as one more.
pub const TURN: usize = 256;

/// Payload bytes of a full packet (Ethernet).
const FULL_PACKET: usize = 1460;

/// Connections that are looked at for each that begins, to find those that are no longer known: as
/// many again can never pile up.
const LOOKED_AT: usize = 2;

/// A mechanism for all connections of an edge node.
#[derive(Clone, Debug)]
pub struct PerConnection<P: Payload, C: Connection<P>> {
    connections: FlowTable<C>,
    /// To find those of a mobile; some may have been forgotten since.
    of_mobiles: BTreeSet<OfMobile>,
    /// Position of the search for those.
    looked_at: OfMobile,
    /// Mobiles with a signal that not all of their connections have been given yet, first come
    /// first served.
    pending: LinkedHashMap<MobileId, PendingSignal, Keyed>,
    /// Cost that signals may still have at this instant: all of one instant share a turn.
    left: (Instant, usize),
    shared: Shared<P, C>,
    /// The last signal about each mobile that is out of reach, for connections that begin then.
    signals: BTreeMap<MobileId, LinkSignal>,
}

/// Progress of a signal through a mobile's connections, in the order of [`OfMobile`].
#[derive(Clone, Copy, Debug)]
struct PendingSignal {
    news: News,
    since: Instant,
    /// The last connection that was given the signal, or passed over.
    last: Option<OfMobile>,
}

/// What the connections of a mobile are told.
#[derive(Clone, Copy, Debug)]
enum News {
    Signal(LinkSignal),
    /// It was heard on one of them. To those that are frozen, the link is up.
    Heard,
}

impl News {
    fn signal(self) -> LinkSignal {
        match self {
            Self::Signal(signal) => signal,
            Self::Heard => LinkSignal::Up,
        }
    }

    /// True if a connection in this phase is told.
    fn is_for(self, phase: FlowPhase) -> bool {
        match self {
            Self::Signal(_) => phase != FlowPhase::Closed,
            Self::Heard => phase == FlowPhase::Frozen,
        }
    }
}

/// A flow from the fixed to the mobile host, in the order of the mobiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OfMobile(Flow);

impl OfMobile {
    /// Before all connections of this mobile.
    fn first(mobile: MobileId) -> Self {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let dst = match mobile {
            MobileId::Host(ip) => ip,
            MobileId::Uplink(_) => any,
        };
        Self(Flow { src: Addr::new(any, 0), dst: Addr::new(dst, 0) })
    }
}

impl Ord for OfMobile {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |flow: Flow| (flow.dst, flow.src);
        rank(self.0).cmp(&rank(other.0))
    }
}

impl PartialOrd for OfMobile {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// State that all connections share.
#[derive(Clone, Debug)]
struct Shared<P: Payload, C: Connection<P>> {
    config: C::Config,
    counters: C::Counters,
    invalid_packets: InvalidPackets,
    /// Payload bytes that all connections together may hold.
    memory: u64,
    /// Deadlines of connections; entries may be stale, and then do nothing.
    deadlines: BTreeSet<(Instant, Flow)>,
    probers: Probers,
    journal: Option<Journal<P, C, C::Config>>,
}

impl<P: Payload, C: Connection<P>> PerConnection<P, C> {
    /// Without connections. They will hold at most `memory` payload bytes in all.
    pub fn new(config: C::Config, table: FlowTableConfig, memory: u64) -> Self {
        let (counters, invalid_packets) = (C::Counters::default(), InvalidPackets::default());
        let (deadlines, probers) = (BTreeSet::new(), Probers::default());
        Self {
            connections: FlowTable::new(table),
            of_mobiles: BTreeSet::new(),
            looked_at: OfMobile(Flow::default()),
            pending: LinkedHashMap::with_hasher(Keyed(table.hash_key)),
            left: (Instant::ZERO, TURN),
            shared: Shared {
                config,
                counters,
                invalid_packets,
                memory,
                deadlines,
                probers,
                journal: None,
            },
            signals: BTreeMap::new(),
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> C::Counters {
        self.shared.counters
    }

    /// Counters of invalid packets since the start.
    pub fn invalid_packets(&self) -> InvalidPackets {
        self.shared.invalid_packets
    }

    /// Number of connections known.
    pub fn flows(&self) -> usize {
        self.connections.len()
    }

    /// Segments forwarded untouched because the flow table was full.
    pub fn segments_refused(&self) -> u64 {
        self.connections.refused()
    }

    /// Payload bytes held for all connections.
    pub fn held(&self) -> u64 {
        self.connections.held()
    }

    /// Reports on all connections.
    pub fn reports(&self) -> impl Iterator<Item = FlowReport> + '_ {
        self.connections.reports()
    }

    /// Connections of this mobile are not [`FlowPhase::Connected`].
    pub fn is_interrupted(&self, mobile: MobileId) -> bool {
        self.connections.is_interrupted(mobile)
    }

    /// Number of its connections that are not [`FlowPhase::Connected`].
    pub fn interrupted(&self, mobile: MobileId) -> usize {
        self.connections.interrupted(mobile)
    }

    /// The mobile host of this connection has sent a segment.
    pub fn is_mobile_heard(&self, flow: &Flow) -> bool {
        self.connections.is_mobile_heard(flow)
    }

    /// Sequence numbers that the fixed host of this connection has sent and the mobile has not
    /// acknowledged; `None` before the connection is established.
    pub fn in_flight(&self, flow: &Flow) -> Option<Range<SeqNum>> {
        self.connections.in_flight(flow)
    }

    /// Acknowledged bytes of this connection exist only here.
    pub fn is_committed(&self, flow: &Flow) -> bool {
        self.connections.is_committed(flow)
    }

    /// As [`Middlebox::on_segment`], for a copy of a segment that goes on in any case. `out` must
    /// be empty.
    pub fn on_copy(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        let (key, timestamps) = (from.to_mobile(segment.flow), segment.options.timestamps);
        self.on_segment(now, from, segment, out);
        let is_forward = |action: &Action<P>| matches!(action, Action::Forward { .. });
        if from == Side::Fixed
            && !out.as_slice().iter().any(is_forward)
            && let Some(timestamps) = timestamps
            && let Some(mut tracked) = self.connections.get(&key)
        {
            self.shared.call(now, key, &mut tracked, Call::Passed(timestamps), out);
        }
    }

    /// Goes on with other settings; connections stay.
    pub fn reconfigure(&mut self, config: C::Config, table: FlowTableConfig, memory: u64) {
        self.connections.reconfigure(table);
        self.shared.config = config;
        self.shared.memory = memory;
        if let Some(journal) = &mut self.shared.journal {
            journal.are_behind();
        }
        self.shared.probers = Probers::default();
        for (flow, connection) in self.connections.iter() {
            self.shared.queue_for_turn(self.connections.mobile_of(flow), connection);
        }
    }

    /// Takes notes from now on: see [`journal`](crate::hold::journal). Take them out after each
    /// call.
    pub fn keep_journal(&mut self) {
        let mut journal = Journal::default();
        for (&flow, connection) in self.connections.iter() {
            journal.note(flow, &self.shared.config, connection, None);
        }
        self.shared.journal = Some(journal);
    }

    /// Takes out the notes, first one first.
    pub fn drain_journal(
        &mut self,
    ) -> impl Iterator<Item = JournalNote<P, ConnectionSnapshot<C, C::Config>>> + '_ {
        self.shared.journal.iter_mut().flat_map(Journal::drain)
    }

    /// A note about this connection could not be written down; the next one will be complete. If
    /// the connection is committed, takes back the actions towards its fixed host, as
    /// if it were lost on the way; true then.
    pub fn withhold(&mut self, flow: &Flow, out: &mut Actions<P>) -> bool {
        if let Some(journal) = &mut self.shared.journal {
            journal.is_behind(flow);
        }
        let is_committed = self.is_committed(flow);
        if is_committed {
            out.retract(Side::Fixed, flow.reversed());
        }
        is_committed
    }

    /// Notes all there is to know about a connection, if it is interrupted.
    pub fn note_anew(&mut self, flow: &Flow) {
        if let (Some(journal), Some(tracked)) =
            (&mut self.shared.journal, self.connections.get(flow))
        {
            journal.note(*flow, &self.shared.config, tracked.state(), None);
        }
    }

    /// Puts a connection back that an earlier process wrote down. From now on it works by the
    /// present settings.
    pub fn restore(&mut self, now: Instant, flow: Flow, connection: C) {
        if let Some(journal) = &mut self.shared.journal {
            journal.note(flow, &self.shared.config, &connection, None);
        }
        let deadline = connection.next_deadline();
        self.shared.queue_for_turn(self.connections.mobile_of(&flow), &connection);
        let since = connection.down_since().unwrap_or(now);
        self.connections.insert(now, since, flow, connection);
        self.enlist(flow);
        self.shared.deadlines.extend(deadline.map(|deadline| (deadline, flow)));
    }

    /// A connection entered the table.
    fn enlist(&mut self, key: Flow) {
        self.of_mobiles.insert(OfMobile(key));
        for _ in 0..LOOKED_AT {
            let after = (Bound::Excluded(self.looked_at), Bound::Unbounded);
            let next = self.of_mobiles.range(after).next().or(self.of_mobiles.first());
            let Some(&next) = next else { return };
            self.looked_at = next;
            if !self.connections.contains(&next.0) {
                self.of_mobiles.remove(&next);
            }
        }
    }

    /// Hands pending signals to connections, at the cost of `left` at most;
    /// what is left of that.
    fn deliver_signals(&mut self, now: Instant, mut left: usize, out: &mut Actions<P>) -> usize {
        while left > 0
            && let Some((&mobile, pending)) = self.pending.iter_mut().next()
        {
            let begin = match pending.last {
                Some(last) => Bound::Excluded(last),
                None => Bound::Included(OfMobile::first(mobile)),
            };
            let mut others = self.of_mobiles.range((begin, Bound::Unbounded));
            while left > 0 {
                let is_its = |next: &&OfMobile| self.connections.mobile_of(&next.0) == mobile;
                let Some(&next) = others.next().filter(is_its) else {
                    self.pending.pop_front();
                    left -= 1;
                    break;
                };
                pending.last = Some(next);
                let news = pending.news;
                let is_meant =
                    |tracked: &Tracked<'_, C>| news.is_for(FlowPhase::of(tracked.state()));
                let known = self.connections.get(&next.0).filter(is_meant);
                let call = Call::Link(news.signal());
                let cost = known.map_or(1, |mut tracked| {
                    self.shared.call_in_turn(now, next.0, &mut tracked, call, out)
                });
                left = left.saturating_sub(cost);
            }
        }
        left
    }
}

impl<P: Payload, C: Connection<P>> Shared<P, C> {
    /// The connection may want to send its mobile a keep-alive.
    fn queue_for_turn(&mut self, mobile: MobileId, connection: &C) {
        if let Some(interval) = C::probe_interval(&self.config)
            && let Some(due) = connection.keep_alive_due(interval)
        {
            self.probers.want(mobile, due, interval);
        }
    }

    /// Calls a connection as a part of a turn; what that cost, as [`TURN`] counts.
    fn call_in_turn(
        &mut self,
        now: Instant,
        key: Flow,
        tracked: &mut Tracked<'_, C>,
        call: Call<P>,
        out: &mut Actions<P>,
    ) -> usize {
        let before = out.as_slice().len();
        self.call(now, key, tracked, call, out);
        let packets = |action: &Action<P>| match action {
            Action::Inject { segment, .. } => segment.payload.len() / FULL_PACKET,
            Action::Forward { .. } | Action::Drop { .. } => 0,
        };
        1 + out.as_slice()[before..].iter().map(packets).sum::<usize>()
    }

    /// Calls a connection, and takes note of a deadline that moved earlier. One that moved
    /// later is found by the earlier entry, as in any lazy timer queue.
    fn call(
        &mut self,
        now: Instant,
        key: Flow,
        tracked: &mut Tracked<'_, C>,
        call: Call<P>,
        out: &mut Actions<P>,
    ) {
        let room = self.memory.saturating_sub(tracked.all_held());
        let waiting = tracked.waiting();
        let config = &self.config;
        let (counters, invalid_packets) = (&mut self.counters, &mut self.invalid_packets);
        let is_noted = self.journal.is_some() && tracked.state().is_interrupted();
        let input = is_noted.then(|| Input { now, room, waiting, call: call.clone() });
        let earlier = tracked.with(now, |connection| {
            let before = connection.next_deadline();
            let mut cx = Context { config, counters, invalid_packets, out, room, waiting };
            call.make(now, connection, &mut cx);
            connection.next_deadline().filter(|&after| before.is_none_or(|b| after < b))
        });
        self.deadlines.extend(earlier.map(|deadline| (deadline, key)));
        self.queue_for_turn(tracked.mobile(), tracked.state());
        if let Some(journal) = &mut self.journal {
            journal.note(key, &self.config, tracked.state(), input);
        }
    }
}

impl<P: Payload, C: Connection<P>> PerConnection<P, C> {
    fn hand_over(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        let key = from.to_mobile(segment.flow);
        let Some(mut tracked) = self.connections.track(now, from, &segment) else {
            return out.forward(from.opposite(), segment);
        };
        let (is_new, mobile) = (tracked.is_new, tracked.mobile());
        if is_new && let Some(&signal) = self.signals.get(&mobile) {
            self.shared.call(now, key, &mut tracked, Call::Link(signal), out);
        }
        let probed = tracked.state().probed_since();
        self.shared.call(now, key, &mut tracked, Call::Segment(from, segment), out);
        let is_closed = tracked.state().is_closed();
        // It answered the probe, or reset the connection.
        let is_heard = from == Side::Mobile
            && probed.is_some_and(|signal| now.since(signal) >= FIRST_PROBE_DELAY)
            && (is_closed || tracked.state().probed_since().is_none());
        if is_closed {
            self.connections.retire(&key);
        }
        if is_heard {
            self.on_heard(now, mobile);
        }
        if is_new {
            self.enlist(key);
        }
    }

    /// The mobile has answered a probe on one of its connections: the others, whose turn to probe
    /// it may be far off, are told.
    fn on_heard(&mut self, now: Instant, mobile: MobileId) {
        // A signal that not all of them have been given yet may be later than the answer.
        if self.pending.contains_key(&mobile) {
            return;
        }
        self.signals.remove(&mobile);
        if self.connections.is_interrupted(mobile) {
            let heard = PendingSignal { news: News::Heard, since: now, last: None };
            self.pending.insert(mobile, heard);
        }
    }

    /// The mobile's connections, from the one after `last` on, each once.
    fn in_turn(&self, mobile: MobileId, last: Option<OfMobile>) -> impl Iterator<Item = OfMobile> {
        let from = move |begin| {
            let others = self.of_mobiles.range((begin, Bound::Unbounded)).copied();
            others.take_while(move |next| self.connections.mobile_of(&next.0) == mobile)
        };
        let first = Bound::Included(OfMobile::first(mobile));
        let up_to_last = from(first).take_while(move |&next| last.is_some_and(|last| next <= last));
        from(last.map_or(first, Bound::Excluded)).chain(up_to_last)
    }

    /// Probes mobiles whose turn it is, at the cost of `left` at most; what is left of that.
    fn probe(&mut self, now: Instant, mut left: usize, out: &mut Actions<P>) -> usize {
        let Some(interval) = C::probe_interval(&self.shared.config) else { return left };
        while left > 0
            && let Some((mobile, last)) = self.shared.probers.pop(now)
        {
            left -= 1;
            let mut earliest: Option<Instant> = None;
            let mut found = None;
            for candidate in self.in_turn(mobile, last.map(OfMobile)) {
                let Some(state) = self.connections.state(&candidate.0) else { continue };
                match state.keep_alive_due(interval) {
                    Some(due) if due <= now => {
                        found = Some(candidate.0);
                        break;
                    }
                    due => earliest = earliest.into_iter().chain(due).min(),
                }
            }
            if let Some(key) = found
                && let Some(mut tracked) = self.connections.get(&key)
            {
                self.shared.call(now, key, &mut tracked, Call::Turn, out);
                self.shared.probers.sent(now, mobile, key, interval);
            } else if let Some(due) = earliest {
                self.shared.probers.want(mobile, due, interval);
            } else {
                self.shared.probers.forget(mobile);
            }
        }
        left
    }
}

impl<P: Payload, C: Connection<P>> Middlebox<P> for PerConnection<P, C> {
    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        self.hand_over(now, from, segment, out);
        for flow in self.connections.drain_forgotten() {
            if let Some(journal) = &mut self.shared.journal {
                journal.forget(flow);
            }
        }
    }

    fn on_link(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        out: &mut Actions<P>,
    ) {
        match signal {
            LinkSignal::Up => self.signals.remove(&mobile),
            LinkSignal::Fading | LinkSignal::Down => self.signals.insert(mobile, signal),
        };
        // The last signal counts, also for connections that were not given the one before.
        let is_first = self.pending.is_empty();
        let pending = PendingSignal { news: News::Signal(signal), since: now, last: None };
        self.pending.replace(mobile, pending);
        if self.left.0 != now {
            self.left = (now, TURN);
        }
        if is_first {
            self.left.1 = self.deliver_signals(now, self.left.1, out);
        }
    }

    fn on_timer(&mut self, now: Instant, out: &mut Actions<P>) {
        let left = self.deliver_signals(now, TURN, out);
        let mut left = self.probe(now, left, out);
        while left > 0
            && let Some(&(deadline, key)) = self.shared.deadlines.first()
            && deadline <= now
        {
            self.shared.deadlines.pop_first();
            let Some(mut tracked) = self.connections.get(&key) else {
                left -= 1;
                continue;
            };
            let cost = self.shared.call_in_turn(now, key, &mut tracked, Call::Timer, out);
            left = left.saturating_sub(cost);
            // Its entry is gone: a deadline that moved later, or not at all, needs one too.
            let next = tracked.state().next_deadline();
            self.shared.deadlines.extend(next.map(|deadline| (deadline, key)));
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let pending = self.pending.front().map(|(_, pending)| pending.since);
        let timer = self.shared.deadlines.first().map(|&(deadline, _)| deadline);
        let probe = self.shared.probers.next_deadline();
        pending.into_iter().chain(timer).chain(probe).min()
    }
}
