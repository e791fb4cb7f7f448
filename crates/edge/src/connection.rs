//! One connection's share of a mechanism, and the [`Middlebox`] made of many.
//!
//! A mechanism that treats each connection by itself is a [`Connection`]: a small state machine that a test can
//! drive (and a model checker exhaust) alone. [`PerConnection`] keeps one for each connection in a
//! [`FlowTable`], runs their timers, hands link signals to all connections of a mobile, and bounds what they
//! hold in all.

use crate::flow_table::{FlowState, FlowTable, FlowTableConfig};
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
    /// As [`Middlebox::on_link`].
    fn on_link(&mut self, now: Instant, signal: LinkSignal, cx: &mut Context<'_, P, Self>);
    /// As [`Middlebox::on_timer`]; called only when the deadline has passed, and must move it beyond `now`.
    fn on_timer(&mut self, now: Instant, cx: &mut Context<'_, P, Self>);
    /// As [`Middlebox::next_deadline`].
    fn next_deadline(&self) -> Option<Instant>;
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
    config: C::Config,
    counters: C::Counters,
    connections: FlowTable<C>,
    /// Payload bytes that all connections together may hold.
    memory: u64,
    /// When connections want to be woken; entries may be stale, and then wake nobody.
    deadlines: BTreeSet<(Instant, Flow)>,
    /// The last signal about each mobile that is not in reach: a connection that begins then must know.
    signals: BTreeMap<MobileId, LinkSignal>,
}

impl<P: Payload, C: Connection<P>> PerConnection<P, C> {
    /// Without connections. They will hold at most `memory` payload bytes in all.
    pub fn new(config: C::Config, table: FlowTableConfig, memory: u64) -> Self {
        Self {
            config,
            counters: C::Counters::default(),
            connections: FlowTable::new(table),
            memory,
            deadlines: BTreeSet::new(),
            signals: BTreeMap::new(),
        }
    }

    /// What was done since the start.
    pub fn counters(&self) -> C::Counters {
        self.counters
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

    /// Calls into one connection, then keeps account of its deadline and of what it holds.
    fn call(
        &mut self,
        key: Flow,
        out: &mut Actions<P>,
        act: impl FnOnce(&mut C, &mut Context<'_, P, C>),
    ) {
        let room = self.memory.saturating_sub(self.connections.held());
        let (config, counters) = (&self.config, &mut self.counters);
        let deadline = self.connections.with(&key, |connection| {
            let before = connection.next_deadline();
            act(connection, &mut Context { config, counters, out, room });
            connection.next_deadline().filter(|&after| before.is_none_or(|b| after < b))
        });
        // A deadline that moved later is found by the earlier entry, as in any lazy timer queue.
        if let Some(Some(deadline)) = deadline {
            self.deadlines.insert((deadline, key));
        }
    }
}

impl<P: Payload, C: Connection<P>> Middlebox<P> for PerConnection<P, C> {
    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        let key = match from {
            Side::Fixed => segment.flow,
            Side::Mobile => segment.flow.reversed(),
        };
        let Some(tracked) = self.connections.track(now, from, &segment) else {
            return out.forward(from.opposite(), segment);
        };
        if tracked.is_new
            && let Some(&signal) = self.signals.get(&MobileId(key.dst.ip))
        {
            self.call(key, out, |connection, cx| connection.on_link(now, signal, cx));
        }
        self.call(key, out, |connection, cx| connection.on_segment(now, from, segment, cx));
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
            self.call(key, out, |connection, cx| connection.on_link(now, signal, cx));
        }
    }

    fn on_timer(&mut self, now: Instant, out: &mut Actions<P>) {
        while let Some(&(deadline, key)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            self.call(key, out, |connection, cx| {
                if connection.next_deadline().is_some_and(|due| due <= now) {
                    connection.on_timer(now, cx);
                }
            });
            // `call` enters a deadline that moved earlier; here the old entry is gone.
            if let Some(Some(next)) = self.connections.with(&key, |c| c.next_deadline()) {
                self.deadlines.insert((next, key));
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }
}
