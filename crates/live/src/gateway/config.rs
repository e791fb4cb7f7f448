//! The gateway's configuration, read and checked.

use airtcp_core::{Bytes, Duration};
use airtcp_edge::MechanismConfig;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// What the gateway is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// How packets get here.
    pub data_path: DataPathConfig,
    /// Folder in memory (tmpfs) for what must survive a crash.
    pub state: PathBuf,
    /// Unix socket of `airtcp gateway status` and `signal`.
    pub control: PathBuf,
    /// Bounds on what is kept.
    pub limits: Limits,
    /// Which mobiles, with which mechanism; the first that matches counts.
    pub groups: Vec<Group>,
    /// Who says when a mobile is out of reach, besides the control socket.
    pub signals: Signals,
    /// Where Prometheus' metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Writes what was seen and done to this file (pcapng).
    pub record: Option<PathBuf>,
}

/// How packets get here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPathConfig {
    /// Netfilter queues, for whatever this host forwards.
    Nfqueue {
        /// Number of the queue.
        queue: u16,
        /// Packets that may wait for the gateway.
        length: u32,
    },
    /// A TUN device, for kernels without netfilter queues: slower, and not with address translation.
    Tun,
}

/// Bounds on what is kept; beyond them, new connections are forwarded untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Payload bytes held in all, for each group.
    pub memory: Bytes,
    /// Connections known, for each group.
    pub flows: usize,
    /// A connection without a segment for this long may be forgotten.
    pub idle: Duration,
}

/// Mobiles that are treated alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name in status and metrics.
    pub name: String,
    /// Addresses of the mobiles, behind any translation (as the mobiles know them).
    pub addresses: Vec<IpNet>,
    /// Interfaces behind which they are; empty: any.
    pub interfaces: Vec<String>,
    /// What to do for them.
    pub mechanism: MechanismConfig,
    /// When to take copies.
    pub copy: CopyMode,
}

/// When packets come to the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyMode {
    /// Always: an outage needs no warning.
    #[default]
    Always,
    /// From a fading (or down) signal until the mobile is back: costs nothing while the radio is good, but the warning
    /// must come a round trip before the outage.
    WhenFading,
}

/// Who says when a mobile is out of reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// `airtcp agent` on the mobiles.
    pub agent: Option<AgentConfig>,
    /// Carrier of the groups' interfaces: down for all mobiles behind one.
    pub carrier: bool,
    /// State of the mobiles in the neighbour table.
    pub neighbour: bool,
    /// Outages known beforehand.
    pub timetable: Vec<PlannedOutage>,
    /// A mobile that owes an answer and is not heard for this long is down until it is heard.
    pub silence: Option<Duration>,
}

/// How messages of `airtcp agent` come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// UDP address to listen on.
    pub listen: SocketAddr,
    /// File with the keys of the mobiles.
    pub keys: PathBuf,
}

/// An outage known beforehand (a tunnel, a satellite below the horizon).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedOutage {
    /// Of which mobile.
    pub mobile: IpAddr,
    /// First time it begins, in seconds since 1970 (UTC).
    pub begin: u64,
    /// How long it lasts.
    pub length: Duration,
    /// It comes again after this long, for ever; `None`: once.
    pub every: Option<Duration>,
    /// `Fading` comes this long before.
    pub lead: Duration,
}
