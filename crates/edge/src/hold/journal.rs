//! The journal that a mechanism's driver writes, so that neither early acknowledgements nor frozen
//! connections die with its process.
//!
//! A connection is a deterministic state machine. So one that [is
//! interrupted](FlowState::is_interrupted) survives as a [`ConnectionSnapshot`] and the [`Input`]s
//! since: [`ConnectionSnapshot::apply`] does once more what the connection did with each.
//! [`keep_journal`](crate::PerConnection::keep_journal) makes a mechanism take the
//! [`JournalNote`]s. After each call the driver
//! 1. takes them out, and writes them down,
//! 2. calls [`withhold`](crate::PerConnection::withhold) for each connection whose note could not
//!    be written,
//! 3. carries out the actions,
//! 4. forgets what it wrote about those that were released, once their actions are carried out.
//!
//! A process that dies in between has acknowledged nothing that is not written down. Its
//! successor may find an input whose actions were never carried out: to the hosts, segments were
//! lost on the way.

use crate::connection::{Connection, Context};
use crate::conntrack::flow_table::FlowState;
use crate::conntrack::validate::InvalidPackets;
use crate::middlebox::{Actions, Side};
use airtcp_core::{Flow, Instant, LinkSignal, Payload, Segment, Timestamps};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A snapshot replaces the notes when they take up three times what the connection holds, and this
/// many bytes more.
const SLACK: u64 = 4 * 1024;

/// Bytes that an input takes up besides its payload: an estimate.
const INPUT_SIZE: u64 = 128;

/// A call into a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call<P> {
    /// A call of [`Connection::on_segment`].
    Segment(Side, Segment<P>),
    /// A call of [`Connection::on_link`].
    Link(LinkSignal),
    /// [`Connection::on_timer`], if the deadline has passed.
    Timer,
    /// A call of [`Connection::on_passed`].
    Passed(Timestamps),
    /// A call of [`Connection::on_turn`].
    Turn,
}

impl<P: Payload> Call<P> {
    /// Makes the call.
    pub(crate) fn make<C: Connection<P>>(
        self,
        now: Instant,
        connection: &mut C,
        cx: &mut Context<'_, P, C>,
    ) {
        match self {
            Self::Segment(from, segment) => connection.on_segment(now, from, segment, cx),
            Self::Link(signal) => connection.on_link(now, signal, cx),
            Self::Timer => {
                if connection.next_deadline().is_some_and(|due| due <= now) {
                    connection.on_timer(now, cx);
                }
            }
            Self::Passed(timestamps) => connection.on_passed(timestamps),
            Self::Turn => connection.on_turn(now, cx),
        }
    }
}

/// All that a connection's next state depends on, besides the state and the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input<P> {
    /// Time of the call.
    pub now: Instant,
    /// Memory left for all connections: see [`Context::room`].
    pub room: u64,
    /// As [`Context::waiting`]. Not written down, as the pace of a replay is not.
    #[serde(skip)]
    pub waiting: u32,
    /// The call itself.
    pub call: Call<P>,
}

impl<P: Payload> Input<P> {
    fn size(&self) -> u64 {
        let payload = match &self.call {
            Call::Segment(_, segment) => segment.payload.len() as u64,
            Call::Link(_) | Call::Timer | Call::Passed(_) | Call::Turn => 0,
        };
        payload + INPUT_SIZE
    }
}

/// A connection at one moment, and the settings it works by from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSnapshot<C, Config> {
    /// Settings of the mechanism.
    pub config: Config,
    /// State of the connection.
    pub connection: C,
}

impl<C, Config> ConnectionSnapshot<C, Config> {
    /// Moves on by one input, as the connection itself did.
    pub fn apply<P: Payload>(&mut self, input: Input<P>)
    where
        C: Connection<P, Config = Config>,
    {
        let Input { now, room, waiting, call } = input;
        let (counters, invalid_packets) =
            (&mut C::Counters::default(), &mut InvalidPackets::default());
        let out = &mut Actions::new();
        let config = &self.config;
        let mut cx = Context { config, counters, invalid_packets, out, room, waiting };
        call.make(now, &mut self.connection, &mut cx);
    }
}

/// One thing for the driver to write down, about the connection with this flow from the fixed to
/// the mobile host; `S` is its snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalNote<P, S> {
    /// The connection is interrupted, and this is all there is to know. Replaces what was noted of
    /// it before.
    Snapshot(Flow, Box<S>),
    /// An input to an interrupted connection, which still is. Comes after all that was noted of it
    /// before.
    Input(Flow, Input<P>),
    /// The connection is merely forwarded again, or forgotten. What was noted of it is to be
    /// forgotten, when the actions that came with this note have been carried out.
    Released(Flow),
}

impl<P, S> JournalNote<P, S> {
    /// The connection's flow from the fixed to the mobile host.
    pub fn flow(&self) -> &Flow {
        match self {
            Self::Snapshot(flow, _) | Self::Input(flow, _) | Self::Released(flow) => flow,
        }
    }

    /// The same with another kind of snapshot.
    pub(crate) fn map<T>(self, snapshot: impl FnOnce(S) -> T) -> JournalNote<P, T> {
        match self {
            Self::Snapshot(flow, known) => JournalNote::Snapshot(flow, Box::new(snapshot(*known))),
            Self::Input(flow, input) => JournalNote::Input(flow, input),
            Self::Released(flow) => JournalNote::Released(flow),
        }
    }
}

/// Takes the notes.
#[derive(Clone, Debug)]
pub(crate) struct Journal<P, C, Config> {
    notes: Vec<JournalNote<P, ConnectionSnapshot<C, Config>>>,
    /// Of each interrupted connection, what its snapshot and the inputs since take up.
    /// [`u64::MAX`]: they could not be written.
    logged: BTreeMap<Flow, u64>,
}

impl<P, C, Config> Default for Journal<P, C, Config> {
    fn default() -> Self {
        Self { notes: Vec::new(), logged: BTreeMap::new() }
    }
}

impl<P: Payload, C: FlowState + Clone, Config: Clone> Journal<P, C, Config> {
    /// A connection took an input; `None` when it was not interrupted before.
    pub(crate) fn note(
        &mut self,
        flow: Flow,
        config: &Config,
        connection: &C,
        input: Option<Input<P>>,
    ) {
        match input {
            None if !connection.is_interrupted() => {}
            None => self.note_snapshot(flow, config, connection),
            Some(_) if !connection.is_interrupted() => self.forget(flow),
            Some(input) => {
                let logged = self.logged.entry(flow).or_default();
                *logged = logged.saturating_add(input.size());
                if *logged > 3 * connection.held() as u64 + SLACK {
                    self.note_snapshot(flow, config, connection);
                } else {
                    self.notes.push(JournalNote::Input(flow, input));
                }
            }
        }
    }

    /// The next note of this connection will be a snapshot.
    pub(crate) fn is_behind(&mut self, flow: &Flow) {
        if let Some(logged) = self.logged.get_mut(flow) {
            *logged = u64::MAX;
        }
    }

    /// The next note of each connection will be a snapshot: the settings are others.
    pub(crate) fn are_behind(&mut self) {
        self.logged.values_mut().for_each(|logged| *logged = u64::MAX);
    }

    /// All of an interrupted connection.
    pub(crate) fn note_snapshot(&mut self, flow: Flow, config: &Config, connection: &C) {
        self.logged.insert(flow, connection.held() as u64);
        let snapshot =
            ConnectionSnapshot { config: config.clone(), connection: connection.clone() };
        self.notes.push(JournalNote::Snapshot(flow, Box::new(snapshot)));
    }

    /// There is nothing to know about a connection any more.
    pub(crate) fn forget(&mut self, flow: Flow) {
        if self.logged.remove(&flow).is_some() {
            self.notes.push(JournalNote::Released(flow));
        }
    }
}

impl<P, C, Config> Journal<P, C, Config> {
    pub(crate) fn drain(
        &mut self,
    ) -> impl Iterator<Item = JournalNote<P, ConnectionSnapshot<C, Config>>> + '_ {
        self.notes.drain(..)
    }
}
