//! What the rest of the daemon asks of the loop, and what it answers.

use super::config::{GatewayConfig, uplink_of};
use super::datapath::rules::RulesError;
use airtcp_core::LinkSignal;
use airtcp_edge::{InterfaceName, MobileId};
use nix::sys::eventfd::EventFd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;

/// One thing for the loop to do.
#[derive(Debug)]
pub enum Command {
    /// A source reports something about the link to a mobile.
    Signal(MobileSignal),
    /// Nobody asks this source any more: what it reported counts no longer.
    Withdrawn(SignalSource),
    /// The interface of an uplink has this index from now on; none: it is gone.
    Interface(InterfaceName, Option<u32>),
    /// What the gateway is doing now.
    Status(mpsc::Sender<Status>),
    /// Goes on with another configuration; mechanisms keep the flows that they know. The answer
    /// says why it was refused.
    Reload(Box<GatewayConfig>, mpsc::Sender<Result<(), String>>),
    /// The rules for that configuration are in force, or why they are not.
    Replaced(Result<(), RulesError>),
    /// Answers when all commands before it are done.
    Ping(mpsc::Sender<()>),
    /// Ends the loop. Flows are left to the hosts, except connections with acknowledged bytes held
    /// only by the gateway: see [`Status::committed`].
    Stop,
}

/// What a source says about a mobile, or about an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MobileSignal {
    /// About which mobile.
    pub mobile: MobileId,
    /// What.
    pub signal: LinkSignal,
    /// Which source reports it.
    pub source: SignalSource,
}

/// Where link signals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignalSource {
    /// A person or a program, by the control socket.
    Control,
    /// `airtcp agent` on the mobile.
    Agent,
    /// Carrier of an interface.
    Carrier,
    /// The neighbour table.
    Neighbour,
    /// ModemManager, about the modem of an uplink.
    ModemManager,
    /// The signal level of an uplink's Wi-Fi interface.
    Wifi,
    /// A timetable of outages.
    Timetable,
    /// The mobile is not heard.
    Silence,
}

impl SignalSource {
    /// Its name in status and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Agent => "agent",
            Self::Carrier => "carrier",
            Self::Neighbour => "neighbour",
            Self::ModemManager => "modem-manager",
            Self::Wifi => "wifi",
            Self::Timetable => "timetable",
            Self::Silence => "silence",
        }
    }
}

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
    /// mobile is in reach ("copies").
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

/// The way to the loop, for any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    wake: Arc<EventFd>,
}

/// The loop's end of it.
#[derive(Debug)]
pub struct Inbox {
    /// Commands, first one first.
    pub commands: mpsc::Receiver<Command>,
    /// Readable while there may be commands.
    pub wake: Arc<EventFd>,
}

/// Both ends.
///
/// # Errors
/// No more file descriptors.
pub fn channel() -> io::Result<(Handle, Inbox)> {
    let wake = Arc::new(EventFd::from_flags(
        nix::sys::eventfd::EfdFlags::EFD_NONBLOCK | nix::sys::eventfd::EfdFlags::EFD_CLOEXEC,
    )?);
    let (sender, commands) = mpsc::channel();
    Ok((Handle { commands: sender, wake: wake.clone() }, Inbox { commands, wake }))
}

impl Handle {
    /// Sends a command; false when the loop has ended.
    pub fn send(&self, command: Command) -> bool {
        // A full counter is readable all the same.
        self.commands.send(command).is_ok() && self.wake.write(1).is_ok()
    }

    /// Asks for the status and waits for it; `None` when the loop has ended.
    pub fn status(&self) -> Option<Status> {
        let (answer, status) = mpsc::channel();
        self.send(Command::Status(answer)).then(|| status.recv().ok()).flatten()
    }
}
