//! One connection's share of a mechanism, and the [`Middlebox`] made of many.
//!
//! A mechanism that treats each connection by itself is a [`Connection`]: a small state machine that a test can
//! drive (and a model checker exhaust) alone. [`PerConnection`] keeps one for each connection in a
//! [`FlowTable`], runs their timers, hands link signals to all connections of a mobile, and bounds what they
//! hold in all.

use crate::flow_table::{FlowState, FlowTable, FlowTableConfig, Tracked};
use crate::middlebox::{Actions, Middlebox, MobileId, Side};
use airtcp_core::{Flow, Instant, LinkSignal, Payload, Segment};
use std::collections::{BTreeMap, BTreeSet};

/// What a mechanism does for one connection.
pub trait Connection<P: Payload>: FlowState + Sized {
    /// Settings, the same for all connections.
    type Config;
    /// What was done, summed over all connections.
    type Counters: Copy + Default;
    /// As [`Middlebox::on_segment`].
    fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<P>,
        cx: &mut Context<'_, P, Self>,
    );
    /// As [`Middlebox::on_link`]. Nothing, for a mechanism that looks at segments only.
    fn on_link(&mut self, _now: Instant, _signal: LinkSignal, _cx: &mut Context<'_, P, Self>) {}
    /// As [`Middlebox::on_timer`]; called only when the deadline has passed, and must move it beyond `now`.
    /// Nothing, for a mechanism without timers.
    fn on_timer(&mut self, _now: Instant, _cx: &mut Context<'_, P, Self>) {}
    /// As [`Middlebox::next_deadline`]. `None`, for a mechanism without timers.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// What a [`Connection`] works with.
pub struct Context<'a, P: Payload, C: Connection<P>> {
    /// The mechanism's settings.
    pub config: &'a C::Config,
    /// The mechanism's counters.
    pub counters: &'a mut C::Counters,
    /// What is to be done.
    pub out: &'a mut Actions<P>,
    /// Payload bytes that all connections together may still take up.
    pub room: u64,
}

/// A mechanism for all connections of an edge node.
#[derive(Clone, Debug)]
pub struct PerConnection<P: Payload, C: Connection<P>> {
    connections: FlowTable<C>,
    shared: Shared<C::Config, C::Counters>,
    /// The last signal about each mobile that is not in reach: a connection that begins then must know.
    signals: BTreeMap<MobileId, LinkSignal>,
}

/// What connections have in common.
#[derive(Clone, Debug)]
struct Shared<Config, Counters> {
    config: Config,
    counters: Counters,
    /// Payload bytes that all connections together may hold.
    memory: u64,
    /// When connections want to be woken; entries may be stale, and then wake nobody.
    deadlines: BTreeSet<(Instant, Flow)>,
}

impl<P: Payload, C: Connection<P>> PerConnection<P, C> {
    /// Without connections. They will hold at most `memory` payload bytes in all.
    pub fn new(config: C::Config, table: FlowTableConfig, memory: u64) -> Self {
        let (counters, deadlines) = (C::Counters::default(), BTreeSet::new());
        Self {
            connections: FlowTable::new(table),
            shared: Shared { config, counters, memory, deadlines },
            signals: BTreeMap::new(),
        }
    }

    /// What was done since the start.
    pub fn counters(&self) -> C::Counters {
        self.shared.counters
    }

    /// Connections known.
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
}

impl<Config, Counters> Shared<Config, Counters> {
    /// Calls into a connection, and takes note of a deadline that moved earlier. One that moved later is found by
    /// the earlier entry, as in any lazy timer queue.
    fn call<P: Payload, C: Connection<P, Config = Config, Counters = Counters>>(
        &mut self,
        key: Flow,
        tracked: &mut Tracked<'_, C>,
        out: &mut Actions<P>,
        act: impl FnOnce(&mut C, &mut Context<'_, P, C>),
    ) {
        let room = self.memory.saturating_sub(tracked.all_held());
        let (config, counters) = (&self.config, &mut self.counters);
        let earlier = tracked.with(|connection| {
            let before = connection.next_deadline();
            act(connection, &mut Context { config, counters, out, room });
            connection.next_deadline().filter(|&after| before.is_none_or(|b| after < b))
        });
        self.deadlines.extend(earlier.map(|deadline| (deadline, key)));
    }
}

impl<P: Payload, C: Connection<P>> Middlebox<P> for PerConnection<P, C> {
    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        let key = match from {
            Side::Fixed => segment.flow,
            Side::Mobile => segment.flow.reversed(),
        };
        let Some(mut tracked) = self.connections.track(now, from, &segment) else {
            return out.forward(from.opposite(), segment);
        };
        if tracked.is_new
            && let Some(&signal) = self.signals.get(&MobileId(key.dst.ip))
        {
            let signalled = |c: &mut C, cx: &mut Context<'_, P, C>| c.on_link(now, signal, cx);
            self.shared.call(key, &mut tracked, out, signalled);
        }
        self.shared.call(key, &mut tracked, out, |c, cx| c.on_segment(now, from, segment, cx));
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
        let keys: Vec<Flow> =
            self.connections.keys().filter(|key| key.dst.ip == mobile.0).copied().collect();
        for key in keys {
            if let Some(mut tracked) = self.connections.get(&key) {
                self.shared.call(key, &mut tracked, out, |c, cx| c.on_link(now, signal, cx));
            }
        }
    }

    fn on_timer(&mut self, now: Instant, out: &mut Actions<P>) {
        while let Some(&(deadline, key)) = self.shared.deadlines.first()
            && deadline <= now
        {
            self.shared.deadlines.pop_first();
            let Some(mut tracked) = self.connections.get(&key) else { continue };
            self.shared.call(key, &mut tracked, out, |connection, cx| {
                if connection.next_deadline().is_some_and(|due| due <= now) {
                    connection.on_timer(now, cx);
                }
            });
            // Its entry is gone: a deadline that moved later, or not at all, needs one too.
            let next = tracked.with(|connection| connection.next_deadline());
            self.shared.deadlines.extend(next.map(|deadline| (deadline, key)));
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.shared.deadlines.first().map(|&(deadline, _)| deadline)
    }
}
