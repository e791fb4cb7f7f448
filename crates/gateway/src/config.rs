//! The gateway's configuration, read and checked.
//!
//! Here is the model. `schema` says once which keys the file has; `resolve` makes the model of it;
//! `here` says what of it may not be meant, or does no good on a machine; `document` makes
//! `docs/gateway-config.md` and the JSON Schema.

mod document;
mod here;
mod interface_pattern;
mod resolve;
mod schema;
#[cfg(test)]
mod tests;

pub use document::{json_schema, markdown};
pub use here::{Caution, OwnAddress};
pub use interface_pattern::InterfacePattern;

use airtcp_config::ConfigError;
use airtcp_core::{Bytes, Duration, Flow};
use airtcp_edge::{Capabilities, InterfaceName, MechanismConfig, MobileId};
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::{choice, settings};
use ipnet::IpNet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Settings of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Protect the mobiles, or only observe.
    pub mode: Mode,
    /// How packets are copied beside the kernel's forwarding.
    pub data_path: DataPath,
    /// The queue in which packets wait for the gateway.
    pub nfqueue: NfqueueConfig,
    /// Firewall mark on packets that the gateway makes.
    pub mark: Mark,
    /// Folder in memory (tmpfs) for what must survive a crash.
    pub state: PathBuf,
    /// Unix socket of `airtcp gateway status` and `signal`.
    pub control: PathBuf,
    /// Bounds on what is kept.
    pub limits: Limits,
    /// Groups of mobiles, then the uplinks; the first that matches counts.
    pub groups: Vec<Group>,
    /// Sources of link signals besides the control socket.
    pub signals: Signals,
    /// Address that serves Prometheus metrics.
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

    /// Refuses another configuration in which something changes that cannot while a gateway runs.
    ///
    /// # Errors
    /// Names the key.
    pub fn refuse_fixed(&self, new: &Self) -> Result<(), String> {
        let Self { mode, data_path, nfqueue, mark, state, control, metrics, record, .. } = self;
        let fixed = [
            ("mode", *mode == new.mode),
            ("data-path", *data_path == new.data_path),
            ("nfqueue", *nfqueue == new.nfqueue),
            ("mark", *mark == new.mark),
            ("state", *state == new.state),
            ("control", *control == new.control),
            ("metrics", *metrics == new.metrics),
            ("record", *record == new.record),
        ];
        match fixed.into_iter().find(|(_, is_same)| !is_same) {
            Some((key, _)) => {
                Err(format!("{key} cannot change while the gateway runs: restart it"))
            }
            None => Ok(()),
        }
    }

    /// Differences of a new configuration, in a few words each; at least one.
    pub fn changes(&self, new: &Self) -> Vec<String> {
        let Self { groups, signals, limits, .. } = self;
        let names = |config: &Self| -> Vec<String> {
            config.groups.iter().map(|group| group.name.clone()).collect()
        };
        let (old_names, new_names) = (names(self), names(new));
        let of_group = |old: &Group| {
            let name = &old.name;
            match new.groups.iter().find(|new| new.name == *name) {
                None => Some(format!("group {name:?} removed")),
                Some(new) if new == old => None,
                Some(new) => {
                    let Group { name: _, members, mechanism, copy, fast_path } = old;
                    let keys = [
                        ("members", *members == new.members),
                        ("mechanism", *mechanism == new.mechanism),
                        ("copy", *copy == new.copy),
                        ("fast-path", *fast_path == new.fast_path),
                    ];
                    let changed = keys.into_iter().filter(|(_, is_same)| !is_same);
                    let changed: Vec<&str> = changed.map(|(key, _)| key).collect();
                    Some(format!("{} of group {name:?} changed", changed.join(" and ")))
                }
            }
        };
        let mut changes: Vec<String> = groups.iter().filter_map(of_group).collect();
        let added = new_names.iter().filter(|name| !old_names.contains(name));
        changes.extend(added.map(|name| format!("group {name:?} added")));
        let stay = |names: &[String], others: &[String]| -> Vec<String> {
            names.iter().filter(|name| others.contains(name)).cloned().collect()
        };
        let parts = [
            ("order of groups", stay(&old_names, &new_names) == stay(&new_names, &old_names)),
            ("signals", *signals == new.signals),
            ("limits", *limits == new.limits),
        ];
        let others = parts.into_iter().filter(|(_, is_same)| !is_same);
        changes.extend(others.map(|(part, _)| format!("{part} changed")));
        if changes.is_empty() {
            changes.push("no setting changed".to_owned());
        }
        changes
    }
}

choice! {
    /// Protect the mobiles, or only observe.
    #[default(Protect)]
    pub enum Mode {
        /// does for each group what its mechanism says
        Protect = "protect",
        /// lets everything pass untouched, and says what it would have been good for (`airtcp
        /// gateway report`): mechanisms and their keys wait for the other mode (Linux 5.12)
        Observe = "observe",
    }
}

choice! {
    /// How packets are copied beside the kernel's forwarding.
    #[default(Auto)]
    pub enum DataPath {
        /// by netfilter where the kernel can and has no flow tables, else by tc; `airtcp doctor`
        /// says which and why
        Auto = "auto",
        /// by BPF programs at netfilter's hooks (Linux 6.4 with BTF); they do not see what flow
        /// tables forward
        Netfilter = "netfilter",
        /// by BPF programs at the interfaces (tc, Linux 5.12); of uplinks for `wake` only
        Tc = "tc",
    }
}

settings! {
    /// The netfilter queue that forwarded packets wait in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("nfqueue")]
    pub struct NfqueueConfig {
        /// Its number; no other program of this network namespace may use it. Most take 0.
        #[kind = Kind::Integer { min: 0, max: 65_534 }]
        pub queue: u16 = 77,
        /// Packets that may wait; further ones pass untouched. A long queue delays traffic when the
        /// gateway falls behind.
        #[kind = Kind::Integer { min: 1, max: 65_536 }]
        #[source = "Linux, nfnetlink_queue"]
        pub length: u32 = 1024,
    }
}

impl NfqueueConfig {
    /// The number that the gateway of a network namespace takes to be the only one.
    pub const CLAIM: u16 = 65_535;
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
        /// Most connections of a group, of all mobiles together.
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

/// A firewall mark, and which of a packet's bits it is compared with. Others use the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The packet's bits under the mask.
    pub value: u32,
    /// Bits that are compared.
    pub mask: u32,
}

impl Mark {
    /// The gateway's, unless the file has another: the letters "airt".
    const DEFAULT: &'static str = "0x61697274";
}

impl Default for Mark {
    fn default() -> Self {
        Self::DEFAULT.parse().expect("it is a mark")
    }
}

/// As iptables and `ip rule` write it.
impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mask {
            u32::MAX => write!(f, "{:#x}", self.value),
            mask => write!(f, "{:#x}/{mask:#x}", self.value),
        }
    }
}

/// "VALUE" or "VALUE/MASK", decimal or hexadecimal ("0x10/0xf0"); the error says what is wrong.
impl FromStr for Mark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
        let (Some(value), Some(mask)) = (number(value), number(mask)) else {
            return Err("is not a mark".to_owned());
        };
        match (value, value & !mask) {
            (0, _) => Err("is 0, as the mark of packets that nobody marked".to_owned()),
            (_, 0) => Ok(Self { value, mask }),
            (_, others) => Err(format!("has bits that the mask does not have ({others:#x})")),
        }
    }
}

/// Mobiles that are treated alike, or an uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name in status, metrics and on file. An uplink's is that of [`uplink_name`], which no
    /// group of mobiles can have.
    pub name: String,
    /// Who can go away.
    pub members: Members,
    /// The mechanism that serves them.
    pub mechanism: MechanismConfig,
    /// Time at which copies are taken.
    pub copy: CopyMode,
    /// Path of packets while the mobile is in reach.
    pub fast_path: FastPathMode,
}

/// Who can go away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Mobiles, each on a link of its own.
    Mobiles {
        /// Their addresses, behind any translation (as the mobiles know them).
        addresses: Vec<IpNet>,
        /// Interfaces behind which they are; empty: any.
        interfaces: Vec<InterfacePattern>,
    },
    /// All hosts behind this interface, together: this host is on board.
    Uplink(InterfaceName),
}

/// Name of the group that an uplink is.
pub fn uplink_name(interface: InterfaceName) -> String {
    format!("{UPLINK}{interface}")
}

/// Before the interface in [`uplink_name`].
const UPLINK: &str = "uplink.";

/// The interface, if a group of this name is or was an uplink.
pub fn uplink_of(group: &str) -> Option<&str> {
    group.strip_prefix(UPLINK)
}

impl Group {
    /// Addresses of mobiles.
    pub fn addresses(&self) -> &[IpNet] {
        match &self.members {
            Members::Mobiles { addresses, .. } => addresses,
            Members::Uplink(_) => &[],
        }
    }

    /// Interfaces behind which mobiles are; none: any.
    pub fn interfaces(&self) -> &[InterfacePattern] {
        match &self.members {
            Members::Mobiles { interfaces, .. } => interfaces,
            Members::Uplink(_) => &[],
        }
    }

    /// True if mobiles of the group are behind the interface of this name, as one of
    /// [`interfaces`](Self::interfaces).
    pub fn is_behind(&self, interface: &str) -> bool {
        self.interfaces().iter().any(|pattern| pattern.matches(interface))
    }

    /// The interface, of an uplink.
    pub fn uplink(&self) -> Option<InterfaceName> {
        match self.members {
            Members::Mobiles { .. } => None,
            Members::Uplink(interface) => Some(interface),
        }
    }

    /// The mobile or uplink whose outage interrupts this connection; `flow` runs from the fixed to
    /// the mobile host.
    pub fn mobile_of(&self, flow: &Flow) -> MobileId {
        MobileId::of(self.uplink(), flow)
    }

    /// True if this mobile or uplink belongs to the group, as far as its address tells.
    pub fn has(&self, mobile: MobileId) -> bool {
        match (&self.members, mobile) {
            (Members::Mobiles { addresses, .. }, MobileId::Host(ip)) => {
                addresses.iter().any(|net| net.contains(&ip))
            }
            (Members::Uplink(own), MobileId::Uplink(interface)) => *own == interface,
            (Members::Mobiles { .. }, MobileId::Uplink(_))
            | (Members::Uplink(_), MobileId::Host(_)) => false,
        }
    }

    /// True if packets of a mobile in reach go on at once and the gateway gets copies.
    pub fn is_mirrored(&self) -> bool {
        let Capabilities { passive, all_protocols, .. } = self.mechanism.capabilities();
        let always = all_protocols.is_some() || self.copy == CopyMode::Always;
        passive && always && self.fast_path == FastPathMode::Auto
    }

    /// True if copies made by tc are enough. It sees what hosts behind an uplink are sent with
    /// translated addresses, if at all: enough to notice that the uplink works.
    pub fn is_served_by_tc(&self, mode: Mode) -> bool {
        self.uplink().is_none() || (self.is_of_all_protocols() && mode == Mode::Protect)
    }

    /// True if the mechanism serves packets of all protocols, not TCP alone.
    pub fn is_of_all_protocols(&self) -> bool {
        self.mechanism.capabilities().all_protocols.is_some()
    }

    /// True if the mechanism sends mobiles again what they missed.
    pub fn replays(&self) -> bool {
        self.mechanism.capabilities().fifo.is_some()
    }

    /// The packets of the group that wait for a verdict.
    pub fn queued(&self) -> Queued {
        match self.copy {
            _ if self.is_of_all_protocols() => Queued::Never,
            CopyMode::Always if !self.is_mirrored() => Queued::Always,
            CopyMode::Always | CopyMode::WhenFading => Queued::Watched,
        }
    }
}

choice! {
    /// Path of packets while the mobile is in reach.
    #[default(Off)]
    pub enum FastPathMode {
        /// with `copy = "always"` packets of a mobile in reach go on at once, and the gateway gets
        /// copies, where the kernel can (`data-path`)
        Auto = "auto",
        /// all packets wait for the gateway
        Off = "off",
    }
}

/// The packets of a group that are queued to this process and wait for its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// All packets.
    Always,
    /// Those of watched mobiles: fading, down, or still lacking some of what was held for them.
    Watched,
    /// None: copies are enough, also in an outage.
    Never,
}

choice! {
    /// Time at which copies are taken.
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
    /// Carrier of the groups' interfaces: down for all mobiles behind one, and for uplinks.
    pub carrier: bool,
    /// State of the mobiles in the neighbour table.
    pub neighbour: bool,
    /// Follow the uplinks' modems through ModemManager; false without uplinks.
    pub modem_manager: bool,
    /// An uplink fades while its signal level, in percent, is below this; `None`: the level means
    /// nothing.
    pub fading_below: Option<u8>,
    /// Outages known beforehand.
    pub timetable: Vec<PlannedOutage>,
    /// A mobile that does not answer for this long is down until it is heard.
    pub silence: Option<Duration>,
}

/// Reception of `airtcp agent` messages.
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
    /// Of which mobile or uplink.
    pub mobile: MobileId,
    /// First time it begins, in seconds since 1970 (UTC).
    pub begin: u64,
    /// Its duration.
    pub length: Duration,
    /// It comes again after this long, for ever; `None`: once.
    pub every: Option<Duration>,
    /// `Fading` comes this long before.
    pub lead: Duration,
}
