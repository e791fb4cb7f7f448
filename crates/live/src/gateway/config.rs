//! The gateway's configuration, read and checked.
//!
//! Here is the model. `schema` says once which keys the file has; `resolve` makes the model of it;
//! `document` makes `docs/gateway-config.md` and the JSON Schema.

mod document;
mod resolve;
mod schema;
#[cfg(test)]
mod tests;

pub use document::{json_schema, markdown};

use airtcp_config::ConfigError;
use airtcp_core::{Bytes, Duration};
use airtcp_edge::MechanismConfig;
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::{choice, settings};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// What the gateway is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// The queue in which packets wait for the gateway.
    pub nfqueue: NfqueueConfig,
    /// Folder in memory (tmpfs) for what must survive a crash.
    pub state: PathBuf,
    /// Unix socket of `airtcp gateway status` and `signal`.
    pub control: PathBuf,
    /// Bounds on what is kept.
    pub limits: Limits,
    /// Which mobiles, with which mechanism; the first that matches counts.
    pub groups: Vec<Group>,
    /// Sources of link signals besides the control socket.
    pub signals: Signals,
    /// Where Prometheus' metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Writes what was seen and done to this file (pcapng).
    pub record: Option<PathBuf>,
}

impl GatewayConfig {
    /// Reads the configuration from the text of a TOML file (docs/gateway-config.md); `source_name`
    /// is what diagnostics call it. Files and interfaces that it names are not looked at.
    ///
    /// # Errors
    /// Everything that is wrong with the text, as far as one mistake does not hide another.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, ConfigError> {
        resolve::parse(source_name, text)
    }

    /// Settings that are allowed but perhaps not meant, a line each.
    pub fn cautions(&self) -> Vec<String> {
        let Signals { agent, carrier, neighbour, timetable, silence } = &self.signals;
        let mut cautions = Vec::new();
        for Group { name, addresses, interfaces, mechanism, copy, fast_path: _ } in &self.groups {
            let is_covered =
                |mobile: &IpAddr| addresses.iter().any(|prefix| prefix.contains(mobile));
            let mut planned = timetable.iter().filter(|outage| is_covered(&outage.mobile));
            let reported = agent.is_some()
                || *neighbour
                || silence.is_some()
                || (*carrier && !interfaces.is_empty())
                || planned.clone().next().is_some();
            let announced = agent.is_some() || planned.any(|outage| !outage.lead.is_zero());
            match (mechanism, copy) {
                // They need no signals.
                (
                    MechanismConfig::PacketControl { .. }
                    | MechanismConfig::MTcp(_)
                    | MechanismConfig::Wake(_),
                    _,
                ) => {}
                (_, CopyMode::WhenFading) if !announced => cautions.push(format!(
                    "mobile.{name}: copies are taken when fading, but only `airtcp gateway signal` can announce an outage \
                     (expected signals.agent, or signals.planned with a lead)"
                )),
                (_, CopyMode::WhenFading) if silence.is_some() => cautions.push(format!(
                    "mobile.{name}: signals.silence notices nothing before another signal, as copies are taken when \
                     fading"
                )),
                _ if !reported => cautions.push(format!(
                    "mobile.{name}: only `airtcp gateway signal` says when a mobile is out of reach (expected a source in \
                     [signals], at least silence)"
                )),
                _ => {}
            }
        }
        cautions
    }
}

settings! {
    /// The netfilter queue that forwarded packets wait in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("nfqueue")]
    pub struct NfqueueConfig {
        /// Its number; no other program of this network namespace may use it. Most take 0.
        #[kind = Kind::Integer { min: 0, max: 65_535 }]
        pub queue: u16 = 77,
        /// Packets that may wait; further ones pass untouched. A long queue delays traffic when the
        /// gateway falls behind.
        #[kind = Kind::Integer { min: 1, max: 65_536 }]
        #[source = "Linux, nfnetlink_queue"]
        pub length: u32 = 1024,
    }
}

settings! {
    /// Bounds on what is kept, for each group; beyond them, new connections are forwarded
    /// untouched.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("limits")]
    pub struct Limits {
        /// Copies of all connections together, bytes of user data.
        #[kind = Kind::Size { min: 1 << 16, max: u64::MAX }]
        pub memory: Bytes = Bytes(128 << 20),
        /// Connections known.
        #[kind = Kind::Integer { min: 1, max: 10_000_000 }]
        pub flows: usize = 100_000,
        /// Connections of one mobile: so many it cannot take from the others.
        #[kind = Kind::Integer { min: 1, max: 10_000_000 }]
        pub flows_per_mobile: usize = 25_000,
        /// A connection without a segment for so long may be forgotten.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 5382 §5"]
        pub idle: Duration = Duration::from_secs(124 * 60),
    }
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
    /// Whether packets of a mobile in reach go on at once.
    pub fast_path: FastPathMode,
}

impl Group {
    /// Whether packets of a mobile in reach go on at once, and the gateway gets
    /// [copies](super::copies).
    pub fn is_copied(&self) -> bool {
        match self.mechanism {
            MechanismConfig::MTcpPlus(_) | MechanismConfig::Holdover(_) => {
                self.fast_path == FastPathMode::Auto && self.copy == CopyMode::Always
            }
            MechanismConfig::Wake(_) => self.fast_path == FastPathMode::Auto,
            // They do more than watch while a mobile is in reach.
            MechanismConfig::MTcp(_)
            | MechanismConfig::PacketControl { .. }
            | MechanismConfig::Snoop(_) => false,
        }
    }

    /// Whether it is about packets of all protocols, not of TCP alone.
    pub fn is_of_all_protocols(&self) -> bool {
        matches!(self.mechanism, MechanismConfig::Wake(_))
    }

    /// Which of its packets come to the gateway and wait there.
    pub fn queued(&self) -> Queued {
        match self.copy {
            _ if self.is_of_all_protocols() => Queued::Never,
            CopyMode::Always if !self.is_copied() => Queued::Always,
            CopyMode::Always | CopyMode::WhenFading => Queued::Watched,
        }
    }
}

choice! {
    /// Whether packets go on without waiting for the gateway.
    #[default(Off)]
    pub enum FastPathMode {
        /// with `copy = "always"` packets of a mobile in reach go on at once, and the gateway gets
        /// copies, where the kernel can (Linux 6.4, CAP_BPF and CAP_PERFMON)
        Auto = "auto",
        /// all packets wait for the gateway
        Off = "off",
    }
}

/// Which packets of a group are queued: come to this process and wait for its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// All.
    Always,
    /// Those of watched mobiles: fading, down, or still lacking some of what was held for them.
    Watched,
    /// None: copies are enough, also in an outage.
    Never,
}

choice! {
    /// When to take copies.
    #[default(Always)]
    pub enum CopyMode {
        /// an outage needs no warning
        Always = "always",
        /// from a fading (or down) signal until the mobile is back; costs nothing while the radio
        /// is good, but the warning must come a round trip before the outage
        WhenFading = "when-fading",
    }
}

/// Sources of link signals.
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
    /// A mobile that does not answer for this long is down until it is heard.
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
