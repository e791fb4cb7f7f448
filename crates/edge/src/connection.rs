//! One connection's share of a mechanism.
//!
//! A mechanism that treats each connection by itself is a [`Connection`]: a small state machine
//! that a test can drive (and a model checker exhaust) alone.
//! [`PerConnection`](crate::PerConnection) makes a [`Middlebox`](crate::Middlebox) of many.

use crate::conntrack::flow_table::FlowState;
use crate::conntrack::validate::InvalidPackets;
use crate::middlebox::{Actions, Side};
use airtcp_core::{Duration, Instant, LinkSignal, Payload, Segment, Timestamps};
use std::fmt::Debug;

/// A mechanism's state machine for one connection.
pub trait Connection<P: Payload>: FlowState + Clone {
    /// Settings, the same for all connections.
    type Config: Clone + Debug;
    /// Counters, summed over all connections.
    type Counters: Copy + Default + Debug;
    /// As [`Middlebox::on_segment`](crate::Middlebox::on_segment).
    fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<P>,
        cx: &mut Context<'_, P, Self>,
    );
    /// As [`Middlebox::on_link`](crate::Middlebox::on_link). Nothing, for a mechanism that looks at
    /// segments only.
    fn on_link(&mut self, _now: Instant, _signal: LinkSignal, _cx: &mut Context<'_, P, Self>) {}
    /// As [`Middlebox::on_timer`](crate::Middlebox::on_timer); called only when the deadline has
    /// passed, and must move it beyond `now`. Nothing, for a mechanism without timers.
    fn on_timer(&mut self, _now: Instant, _cx: &mut Context<'_, P, Self>) {}
    /// The fixed host's last segment went on to the mobile although it was not forwarded (see
    /// [`PerConnection::on_copy`](crate::PerConnection::on_copy)): it had these timestamps, and
    /// copies sent later must not seem older (RFC 7323 §5). Nothing, for a mechanism that sends no
    /// copies.
    fn on_passed(&mut self, _timestamps: Timestamps) {}
    /// Interval of the keep-alives that a mobile gets while it is away; `None`: none.
    fn probe_interval(_config: &Self::Config) -> Option<Duration> {
        None
    }
    /// Time from which on this connection may send its mobile the next of them; `None`: the mobile
    /// is not away. The connections of a mobile take turns.
    fn keep_alive_due(&self, _interval: Duration) -> Option<Instant> {
        None
    }
    /// It is its turn: sends the keep-alive.
    fn on_turn(&mut self, _now: Instant, _cx: &mut Context<'_, P, Self>) {}
    /// Time of the last signal that its mobile is down, if a segment of the mobile would now prove
    /// that it is back: to all of its connections.
    fn probed_since(&self) -> Option<Instant> {
        None
    }
    /// Time since which the mobile's link is down, as signals said; `None`: it is not.
    fn down_since(&self) -> Option<Instant> {
        None
    }
    /// As [`Middlebox::next_deadline`](crate::Middlebox::next_deadline). `None`, for a mechanism
    /// without timers.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// Everything that a [`Connection`] may use during a call.
pub struct Context<'a, P: Payload, C: Connection<P>> {
    /// The mechanism's settings.
    pub config: &'a C::Config,
    /// The mechanism's counters.
    pub counters: &'a mut C::Counters,
    /// Counters of invalid packets.
    pub invalid_packets: &'a mut InvalidPackets,
    /// The actions for the driver, in order.
    pub out: &'a mut Actions<P>,
    /// Payload bytes that all connections together may still take up.
    pub room: u64,
    /// Connections of the mobile that are not [`FlowPhase::Connected`](crate::FlowPhase::Connected),
    /// and hold something: all of these may send it copies.
    pub waiting: u32,
}
