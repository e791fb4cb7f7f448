//! What a driver has of a mechanism besides actions: the journal ([`properties`], [`rules`]: what
//! is written down is what the connection is, at every moment, and enough to keep every promise),
//! reports, other settings ([`mechanism`]).

mod mechanism;
mod properties;
mod rules;

use crate::segments::{Hosts, Seg};
use airtcp_core::{Bytes, Duration, Flow, Instant, Length, LinkSignal};
use airtcp_edge::{Actions, FlowTableConfig, MTcpPlus, MTcpPlusConfig, Middlebox, MobileId, Side};
use airtcp_edge::{MTcpPlusNote, MTcpPlusSnapshot};
use std::collections::BTreeMap;

/// A node that keeps a journal, and what a driver has on file of it.
pub(crate) struct Driver {
    pub(crate) node: MTcpPlus<Length>,
    pub(crate) now: Instant,
    pub(crate) file: BTreeMap<Flow, MTcpPlusSnapshot<Length>>,
    /// Nothing can be written.
    pub(crate) is_full: bool,
}

pub(crate) fn config(fifo: u64) -> MTcpPlusConfig {
    MTcpPlusConfig { fifo: Bytes(fifo), ..MTcpPlusConfig::default() }
}

impl Driver {
    pub(crate) fn new(config: MTcpPlusConfig, memory: u64) -> Self {
        let mut node = MTcpPlus::new(config, FlowTableConfig::default(), memory);
        node.keep_journal();
        Self { node, now: Instant::ZERO, file: BTreeMap::new(), is_full: false }
    }

    pub(crate) fn pass(&mut self, from: Side, segment: Seg) -> Actions<Length> {
        self.call(|node, now, out| node.on_segment(now, from, segment, out))
    }

    pub(crate) fn copy(&mut self, from: Side, segment: Seg) -> Actions<Length> {
        self.call(|node, now, out| node.on_copy(now, from, segment, out))
    }

    pub(crate) fn signal(&mut self, hosts: &Hosts, signal: LinkSignal) -> Actions<Length> {
        let mobile = MobileId::Host(hosts.flow.dst.ip);
        self.call(|node, now, out| node.on_link(now, mobile, signal, out))
    }

    /// Lets time pass; what the timers did.
    pub(crate) fn wait(&mut self, time: Duration) -> Vec<Actions<Length>> {
        let end = self.now + time;
        let mut all = Vec::new();
        while let Some(deadline) = self.node.next_deadline().filter(|&due| due <= end) {
            self.now = self.now.max(deadline);
            all.push(self.call(|node, now, out| node.on_timer(now, out)));
        }
        self.now = end;
        all
    }

    /// A call into the node, and what a driver does with the notes.
    fn call(
        &mut self,
        act: impl FnOnce(&mut MTcpPlus<Length>, Instant, &mut Actions<Length>),
    ) -> Actions<Length> {
        let mut out = Actions::new();
        act(&mut self.node, self.now, &mut out);
        let notes: Vec<_> = self.node.drain_journal().collect();
        for note in notes {
            match note {
                // There is no file if it could never be written.
                MTcpPlusNote::Released(flow) => drop(self.file.remove(&flow)),
                MTcpPlusNote::Snapshot(flow, _) | MTcpPlusNote::Input(flow, _) if self.is_full => {
                    self.node.withhold(&flow, &mut out);
                }
                MTcpPlusNote::Snapshot(flow, snapshot) => {
                    self.file.insert(flow, *snapshot);
                }
                MTcpPlusNote::Input(flow, input) => {
                    self.file.get_mut(&flow).expect("a snapshot comes first").apply(input);
                }
            }
        }
        out
    }

    /// The interrupted connections as they are now: what a journal begins with.
    pub(crate) fn live(&self) -> BTreeMap<Flow, MTcpPlusSnapshot<Length>> {
        let mut node = self.node.clone();
        node.keep_journal();
        let snapshots = node.drain_journal().map(|note| match note {
            MTcpPlusNote::Snapshot(flow, snapshot) => (flow, *snapshot),
            other => panic!("{other:?}"),
        });
        snapshots.collect()
    }

    /// A node that takes over from what is on file.
    pub(crate) fn successor(&self) -> Self {
        let mut driver = Self { now: self.now, ..Self::new(config(1 << 20), 1 << 30) };
        for (&flow, snapshot) in &self.file {
            driver.node.restore(self.now, flow, snapshot.connection.clone());
        }
        driver
    }
}
