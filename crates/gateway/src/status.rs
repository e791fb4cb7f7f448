//! What the gateway is doing, as its control socket and its metrics tell it.

use crate::config::uplink_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the gateway is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Of each group of mobiles, then of each uplink, in the order of the configuration.
    pub groups: Vec<GroupStatus>,
    /// Connections known, the longest known first; at most as many as [`Status::LISTED`].
    pub flows: Vec<FlowStatus>,
    /// Connections known in all.
    pub flow_count: u64,
    /// Of these, connections with acknowledged bytes held only by the gateway.
    pub committed: u64,
    /// Payload bytes held.
    pub held: u64,
    /// Mobiles that are not in reach, by address, and uplinks, by interface, with the last signal
    /// ("fading", "down").
    pub away: BTreeMap<String, String>,
    /// Counters of the queue and the dispatcher, by the names of their metrics.
    pub counters: BTreeMap<String, u64>,
    /// Signals taken, by source and signal ("control", "down").
    pub signals: BTreeMap<String, BTreeMap<String, u64>>,
    /// What it saw, if it only observes.
    pub report: Option<Report>,
}

impl Status {
    /// Most connections listed.
    pub const LISTED: usize = 1000;

    /// Interfaces of the uplinks.
    pub fn uplinks(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().filter_map(|group| uplink_of(&group.name))
    }
}

/// What the gateway is doing for one group of mobiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// Its mechanism.
    pub mechanism: String,
    /// How its packets reach the mechanism: they wait for it ("nfqueue"), or it gets copies while a
    /// mobile is in reach ("mirror").
    pub path: String,
    /// Connections known.
    pub flows: u64,
    /// Payload bytes held.
    pub held: u64,
    /// Segments forwarded untouched because a limit was reached.
    pub segments_refused: u64,
    /// What the mechanism counted.
    pub counters: BTreeMap<String, u64>,
}

/// What a gateway that only observes has seen, and what it would have been good for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// For how long it has looked.
    pub seconds: f64,
    /// Each group of mobiles, in the order of the configuration.
    pub groups: Vec<GroupReport>,
}

/// What was seen of one group of mobiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Mobiles that are away now.
    pub away: u64,
    /// Outages that a signal told of.
    pub outages_told: u64,
    /// Outages that were noticed because a mobile did not answer.
    pub outages_silent: u64,
    /// Seconds of all outages that are over.
    pub outage_seconds: f64,
    /// Seconds of the longest of them.
    pub longest_outage: f64,
    /// TCP.
    pub tcp: ProtocolReport,
    /// UDP port 443.
    pub quic: ProtocolReport,
    /// All other protocols; whether their flows stall is not known.
    pub other: ProtocolReport,
}

/// What was seen of one protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProtocolReport {
    /// Packets in both directions.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Flows, about.
    pub flows: u64,
    /// Flows that were sent something while their mobile was away, each once an outage.
    pub stalled: u64,
    /// Of these, flows that went on when it was back.
    pub resumed: u64,
    /// Seconds that a gateway would have saved these, all together, at least.
    pub saved_least: f64,
    /// The same, at most.
    pub saved_most: f64,
}

impl GroupReport {
    /// Each protocol with its name.
    pub fn protocols(&self) -> [(&'static str, &ProtocolReport); 3] {
        [("tcp", &self.tcp), ("quic", &self.quic), ("other", &self.other)]
    }

    /// Adds what was seen of another group.
    pub fn add(&mut self, other: &Self) {
        self.away += other.away;
        self.outages_told += other.outages_told;
        self.outages_silent += other.outages_silent;
        self.outage_seconds += other.outage_seconds;
        self.longest_outage = self.longest_outage.max(other.longest_outage);
        self.tcp.add(&other.tcp);
        self.quic.add(&other.quic);
        self.other.add(&other.other);
    }
}

impl ProtocolReport {
    /// Adds what was seen elsewhere.
    pub fn add(&mut self, other: &Self) {
        let Self { packets, bytes, flows, stalled, resumed, saved_least, saved_most } = self;
        *packets += other.packets;
        *bytes += other.bytes;
        *flows += other.flows;
        *stalled += other.stalled;
        *resumed += other.resumed;
        *saved_least += other.saved_least;
        *saved_most += other.saved_most;
    }
}

/// What the gateway is doing for one connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// The fixed host's end.
    pub fixed: String,
    /// The mobile's end.
    pub mobile: String,
    /// Group of mobiles.
    pub group: String,
    /// Mechanism.
    pub mechanism: String,
    /// "connected", "frozen", "resuming" or "reset".
    pub state: String,
    /// Seconds since that began, unless it is connected.
    pub since: Option<f64>,
    /// Payload bytes held.
    pub held: u64,
    /// Acknowledged bytes are held only by the gateway.
    pub committed: bool,
}
