//! Packets that wait for a route.

use crate::NodeId;
use crate::router::{Actions, Data};
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant};

/// Packets of all destinations, oldest first. When it is full, the oldest makes room.
#[derive(Debug)]
pub(crate) struct Buffer {
    limit: usize,
    timeout: Duration,
    held: Vec<(Instant, Data)>,
}

impl Buffer {
    /// For at most `limit` packets, each for at most `timeout`.
    pub(crate) fn new(limit: usize, timeout: Duration) -> Self {
        Self { limit, timeout, held: Vec::new() }
    }

    /// Adds a packet.
    pub(crate) fn push(&mut self, now: Instant, data: Data, out: &mut Actions) {
        if self.held.len() >= self.limit {
            out.drop(self.held.remove(0).1, DropReason::Queue);
        }
        self.held.push((now + self.timeout, data));
    }

    /// True if a packet waits for a route to this destination.
    pub(crate) fn holds(&self, destination: NodeId) -> bool {
        self.held.iter().any(|(_, data)| data.destination == destination)
    }

    /// Takes the packets that match, oldest first.
    pub(crate) fn take(&mut self, matches: impl Fn(&Data) -> bool) -> impl Iterator<Item = Data> {
        self.held.extract_if(.., move |(_, data)| matches(data)).map(|(_, data)| data)
    }

    /// Drops the packets that have waited too long.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Actions) {
        for (_, data) in self.held.extract_if(.., |(until, _)| *until <= now) {
            out.drop(data, DropReason::NoRoute);
        }
    }

    /// The next time at which to call [`Buffer::expire`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.held.first().map(|(until, _)| *until)
    }
}
