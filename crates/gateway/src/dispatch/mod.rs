//! The gateway without I/O: packets and signals in, verdicts and packets out.
//!
//! Read first: `airtcp_edge::middlebox` (the contract), [`packets`](crate::packets). Then, in this
//! order: `packet` (a packet on its way), `signal` (what sources say), `timer` (what is due),
//! `actions` (what mechanisms want done); `reload`, `take_over` and `status` are about the gateway
//! as a whole.
//!
//! A packet belongs to a group of mobiles by its addresses (and interfaces), or else to the uplink
//! that it crosses, and is handed to that group's mechanism as a [`Segment`](airtcp_core::Segment).
//! What the mechanism forwards passes as it came, byte for byte; what it drops or keeps is dropped;
//! what it makes itself is cut to the receiver's MSS (copies may be super-packets of segmentation
//! offload) and encoded. Whatever is not a TCP segment, is malformed, or belongs to a connection on
//! which only the hosts can send valid segments (MPTCP, TCP-AO, MD5) passes untouched.
//!
//! [`Wake`](airtcp_edge::Wake) is about packets of all protocols: a group with it has its packets
//! copied as [`Kept`](crate::packets::Kept), and none of them ever waits.

mod actions;
mod counters;
mod effects;
mod packet;
mod reload;
mod signal;
mod status;
mod take_over;
#[cfg(test)]
mod tests;
mod timer;

pub use crate::groups::{DispatchError, Interfaces};
pub use effects::{Effect, Keeper, Recorder};

use crate::config::{GatewayConfig, Group, Limits};
use crate::groups::{ActiveGroup, table};
use crate::hosts::HostPair;
use crate::mobiles::Mobiles;
use crate::outages::Outages;
use crate::packets::SharedBytes;
use crate::refusals::Refusals;
use airtcp_core::{Flow, Instant};
use airtcp_edge::{Actions, FlowTableConfig, MobileId};
use counters::Counters;
use hashlink::LruCache;
use std::collections::BTreeSet;
use std::hash::RandomState;
use std::io;

/// All groups at work: hands packets and signals to their mechanisms.
pub struct Dispatcher {
    groups: Vec<ActiveGroup>,
    mobiles: Mobiles,
    outages: Outages,
    /// By the flow from the fixed to the mobile host.
    hosts: LruCache<Flow, HostPair, RandomState>,
    /// Mobiles whose packets are intercepted, of groups that are [`Queued::Watched`], or all
    /// copied, of groups with wake.
    watched: BTreeSet<MobileId>,
    /// Next check for mobiles that no longer need watching.
    unwatch: Option<Instant>,
    counters: Counters,
    table: FlowTableConfig,
    actions: Actions<SharedBytes>,
    keeper: Box<dyn Keeper>,
    /// Connections that could not be taken over.
    refusals: Refusals,
    recorder: Option<Box<dyn Recorder>>,
    /// The next group's.
    next_id: u32,
}

impl Dispatcher {
    /// Without connections, on these interfaces. `hash_key` must not be guessable; `keeper` keeps
    /// promises.
    ///
    /// # Errors
    /// A group cannot be put to work.
    pub fn new(
        config: &GatewayConfig,
        hash_key: (u64, u64),
        interfaces: &Interfaces,
        keeper: Box<dyn Keeper>,
    ) -> Result<Self, DispatchError> {
        let table = table(&config.limits, hash_key);
        let begin = |(id, group)| ActiveGroup::new(id, group, table, config, interfaces);
        let groups: Vec<ActiveGroup> =
            (0..).zip(&config.groups).map(begin).collect::<Result<_, _>>()?;
        Ok(Self {
            next_id: groups.len() as u32,
            groups,
            table,
            keeper,
            refusals: Refusals::default(),
            recorder: None,
            mobiles: Mobiles::new(config.signals.silence),
            outages: Outages::new(config.limits.idle),
            hosts: LruCache::with_hasher(remembered(config), RandomState::new()),
            watched: BTreeSet::new(),
            unwatch: None,
            counters: Counters::default(),
            actions: Actions::new(),
        })
    }

    /// Records what the mechanisms are given and do. Call it before they are given anything.
    pub fn record(&mut self, now: Instant, limits: &Limits, mut recorder: Box<dyn Recorder>) {
        for group in &self.groups {
            recorder.begin(now, group.id, &group.setup(limits));
        }
        self.recorder = Some(recorder);
    }

    /// Ends a recording; how many steps are not in it, if there was one.
    ///
    /// # Errors
    /// The file could not be written to its end.
    pub fn end_recording(&mut self) -> io::Result<Option<u64>> {
        self.recorder.take().map(|recorder| recorder.finish()).transpose()
    }

    /// Configurations of the groups.
    pub(crate) fn group_configs(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(|group| &group.config)
    }

    /// Call it before the loop sleeps.
    pub fn rest(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    pub(super) fn host_pair(&mut self, flow: Flow) -> &mut HostPair {
        self.hosts.entry(flow).or_insert_with(HostPair::default)
    }
}

/// Connections whose hosts are remembered: as many as all groups may have.
pub(super) fn remembered(config: &GatewayConfig) -> usize {
    config.limits.flows.saturating_mul(config.groups.len())
}
