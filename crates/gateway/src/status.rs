//! What the gateway is doing, as its control socket and its metrics tell it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this gateway.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// State of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The gateway's version.
    pub version: String,
    /// The last time that it read its configuration; none in the simulator.
    pub reload: Option<LastReload>,
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
    /// Outages that are not over, also those that nobody announced; at most as many as
    /// [`Status::LISTED`].
    pub outages: Vec<OutageStatus>,
    /// Counters of the queue and the dispatcher, by the names of their metrics.
    pub counters: BTreeMap<String, u64>,
    /// Signals taken, by source and signal ("control", "down").
    pub signals: BTreeMap<String, BTreeMap<String, u64>>,
    /// Observations, in observe mode.
    pub report: Option<Report>,
}

impl Status {
    /// Most connections, and most outages, listed.
    pub const LISTED: usize = 1000;
}

/// The last start or reload of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastReload {
    /// False if the last attempt was rejected, and an earlier configuration stays in force.
    pub successful: bool,
    /// Time of the last successful one, in seconds since 1970 (UTC).
    pub succeeded_at: f64,
}

/// State of one group of mobiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Name in the configuration.
    pub name: String,
    /// The mechanism's word in the configuration.
    pub mechanism: String,
    /// Path of its packets to the mechanism: they wait for it ("nfqueue"), or it gets copies while
    /// a mobile is in reach ("mirror").
    pub path: String,
    /// Number of connections known.
    pub flows: u64,
    /// Payload bytes held.
    pub held: u64,
    /// Segments forwarded untouched because a limit was reached.
    pub segments_refused: u64,
    /// Counters of the mechanism.
    pub counters: BTreeMap<String, u64>,
    /// Outages since the start, by cause: the source that was the first to report them.
    pub outages: BTreeMap<String, OutageCounts>,
    /// Seconds of the longest of them that is over.
    pub longest_outage: f64,
}

/// Outages of a group with the same cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutageCounts {
    /// Outages that began.
    pub begun: u64,
    /// Of these, outages that ended with the mobile's return.
    pub ended: u64,
    /// Of these, outages that are not over: mobiles that are away.
    pub ongoing: u64,
    /// Seconds of those that ended, together.
    pub seconds: f64,
}

/// An outage that is not over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutageStatus {
    /// Address of the mobile, or interface of the uplink.
    pub mobile: String,
    /// Its group.
    pub group: String,
    /// The source that was the first to report it ("agent"; "silence": nobody announced it).
    pub cause: String,
    /// Seconds since it began.
    pub seconds: f64,
}

/// Observations of a gateway in observe mode, and the time it would have saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// For how long it has looked.
    pub seconds: f64,
    /// Each group of mobiles, in the order of the configuration.
    pub groups: Vec<GroupReport>,
}

/// Observations of one group of mobiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Name in the configuration.
    pub name: String,
    /// Mobiles that are away now.
    pub away: u64,
    /// Outages that began with a signal.
    pub outages_signalled: u64,
    /// Outages that were noticed because a mobile did not answer.
    pub outages_silent: u64,
    /// Seconds of all outages that are over.
    pub outage_seconds: f64,
    /// Seconds of the longest of them.
    pub longest_outage: f64,
    /// Seconds so far of all outages that are not over.
    pub ongoing_seconds: f64,
    /// Seconds so far of the longest of those.
    pub longest_ongoing: f64,
    /// Observations of TCP.
    pub tcp: ProtocolReport,
    /// UDP port 443.
    pub quic: ProtocolReport,
    /// All other protocols; whether their flows stall is not known.
    pub other: ProtocolReport,
}

/// Observations of one protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProtocolReport {
    /// Packets in both directions.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Number of flows, estimated.
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
        self.outages_signalled += other.outages_signalled;
        self.outages_silent += other.outages_silent;
        self.outage_seconds += other.outage_seconds;
        self.longest_outage = self.longest_outage.max(other.longest_outage);
        self.ongoing_seconds += other.ongoing_seconds;
        self.longest_ongoing = self.longest_ongoing.max(other.longest_ongoing);
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

/// State of one connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// The end in the network.
    pub server: String,
    /// The end behind the wireless link, or on board.
    pub device: String,
    /// Group of mobiles.
    pub group: String,
    /// The mechanism's word in the configuration.
    pub mechanism: String,
    /// "connected", "frozen", "resuming", "reset" or "closed".
    pub state: String,
    /// Seconds since that began, unless it is connected.
    pub since: Option<f64>,
    /// Payload bytes held.
    pub held: u64,
    /// Acknowledged bytes are held only by the gateway.
    pub committed: bool,
}
