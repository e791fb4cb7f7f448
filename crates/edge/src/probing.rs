//! When each mobile that is away is probed next: its connections take turns.

use crate::middlebox::MobileId;
use airtcp_core::{Duration, Flow, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// From one keep-alive to the next, to all mobiles: at most 10,000 a second.
const SPACING: Duration = Duration::from_micros(100);

/// A shorter interval would take all of the node's time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// The mobiles to probe.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probers {
    of: BTreeMap<MobileId, Prober>,
    /// Entries may be stale, and then do nothing.
    deadlines: BTreeSet<(Instant, MobileId)>,
}

#[derive(Clone, Copy, Debug)]
struct Prober {
    next: Instant,
    /// The last keep-alive: when, and on which connection.
    last: Option<(Instant, Flow)>,
}

impl Probers {
    /// A connection of this mobile may send a keep-alive from `due` on.
    pub(crate) fn want(&mut self, mobile: MobileId, due: Instant, interval: Duration) {
        let spacing = self.spacing(interval);
        let prober = self.of.entry(mobile).or_insert(Prober { next: Instant::MAX, last: None });
        let due = prober.last.map_or(due, |(last, _)| due.max(last + spacing));
        if due < prober.next {
            prober.next = due;
            self.deadlines.insert((due, mobile));
        }
    }

    /// From one keep-alive of a mobile to the next.
    fn spacing(&self, interval: Duration) -> Duration {
        interval.max(SHORTEST_INTERVAL).max(SPACING * self.of.len() as u64)
    }

    /// A mobile whose turn it is, and the connection that was the last to send it a keep-alive.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(MobileId, Option<Flow>)> {
        while let Some(&(due, mobile)) = self.deadlines.first().filter(|(due, _)| *due <= now) {
            self.deadlines.pop_first();
            if let Some(prober) = self.of.get_mut(&mobile).filter(|prober| prober.next == due) {
                prober.next = Instant::MAX;
                return Some((mobile, prober.last.map(|(_, flow)| flow)));
            }
        }
        None
    }

    /// The mobile was sent a keep-alive on this connection.
    pub(crate) fn sent(&mut self, now: Instant, mobile: MobileId, flow: Flow, interval: Duration) {
        if let Some(prober) = self.of.get_mut(&mobile) {
            prober.last = Some((now, flow));
        }
        self.want(mobile, now, interval);
    }

    /// None of the mobile's connections wants to send any.
    pub(crate) fn forget(&mut self, mobile: MobileId) {
        self.of.remove(&mobile);
    }

    /// Time of the next [`Probers::pop`].
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(due, _)| due)
    }
}
