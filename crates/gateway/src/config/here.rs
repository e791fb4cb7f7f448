//! What of a valid configuration may not be meant, or does no good on this machine at this time.
//!
//! Nothing here looks: the machine's interfaces and addresses, and the time, are given.

use super::{
    CopyMode, GatewayConfig, Group, InterfacePattern, Mark, Members, Mode, NfqueueConfig,
    PlannedOutage, Signals, schema,
};
use crate::groups::Interfaces;
use airtcp_config::{Diagnostic, Moment};
use airtcp_edge::{InterfaceName, MobileId, SignalUse};
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// Something that is allowed, but perhaps not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// Path of the key, with elements of arrays by their names or numbers.
    pub key: Vec<String>,
    /// The complaint, with the key as its subject.
    pub text: String,
}

impl Caution {
    fn new(key: &[&str], text: impl Into<String>) -> Self {
        Self { key: key.iter().map(|&step| step.to_owned()).collect(), text: text.into() }
    }

    /// The complaint at its place in the file that was read.
    pub fn locate(&self, source_name: &str, text: &str) -> Diagnostic {
        let key: Vec<&str> = self.key.iter().map(String::as_str).collect();
        GatewayConfig::locate(source_name, text, &key, &self.text)
    }
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key.join("."), self.text)
    }
}

/// An address of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAddress {
    /// The address.
    pub ip: IpAddr,
    /// Interface that has it.
    pub interface: String,
    /// A default route leads over this interface.
    pub has_default_route: bool,
}

impl GatewayConfig {
    /// A complaint about a key of a file that [`parse`](Self::parse) takes. `key` is its path, with
    /// elements of arrays by their names or numbers.
    pub fn locate(
        source_name: &str,
        text: &str,
        key: &[&str],
        message: impl Into<String>,
    ) -> Diagnostic {
        airtcp_config::locate(&schema::GATEWAY, source_name, text, key, message)
    }

    /// Settings that are allowed but perhaps not meant.
    pub fn cautions(&self) -> Vec<Caution> {
        if self.mode == Mode::Observe {
            return self.without_effect();
        }
        let Signals { agent, carrier, neighbour, modem_manager, fading_below, timetable, silence } =
            &self.signals;
        // Whoever names a level counts on one being told. ModemManager tells of outages, too.
        let has_level = fading_below.is_some();
        let mut cautions = Vec::new();
        if self.record.is_some() && self.groups.iter().all(Group::is_of_all_protocols) {
            let text = "it has no packets of wake, the mechanism of every group".to_owned();
            cautions.push(Caution::new(&["record"], text));
        }
        for group in &self.groups {
            let is_uplink = group.uplink().is_some();
            let mut planned = timetable.iter().filter(|outage| group.has(outage.mobile));
            let by_agent = agent.is_some() && !is_uplink;
            let reported = by_agent
                || (*neighbour && !is_uplink)
                || silence.is_some()
                || (*carrier && (is_uplink || !group.interfaces().is_empty()))
                || (has_level && *modem_manager && is_uplink)
                || planned.clone().next().is_some();
            let announced = by_agent
                || (has_level && is_uplink)
                || planned.any(|outage| !outage.lead.is_zero());
            let who = match modem_manager {
                true if is_uplink => {
                    "only `airtcp gateway signal`, and ModemManager if it has the modem, say when the uplink is down"
                }
                _ => "only `airtcp gateway signal` says when a mobile is out of reach",
            };
            if group.mechanism.capabilities().signals != SignalUse::Needed {
                continue;
            }
            let text = match group.copy {
                CopyMode::WhenFading if !announced => format!(
                    "copies are taken when fading, but only `airtcp gateway signal` can announce an outage \
                     (expected {}, or signals.planned with a lead)",
                    if is_uplink { "signals.fading-below" } else { "signals.agent" }
                ),
                CopyMode::WhenFading if silence.is_some() => {
                    "signals.silence notices nothing before another signal, as copies are taken when fading"
                        .to_owned()
                }
                _ if !reported => {
                    format!("{who} (expected a source in [signals], at least silence)")
                }
                _ => continue,
            };
            cautions.push(Caution::new(&group.table(), text));
        }
        cautions
    }

    /// Settings that have no effect on a gateway that only observes.
    fn without_effect(&self) -> Vec<Caution> {
        let observing = "while mode = \"observe\"";
        let of_group = |group: &Group| {
            let word = group.mechanism.word();
            let text = || format!("{word} has no effect {observing}");
            (!group.is_of_all_protocols()).then(|| Caution::new(&group.table(), text()))
        };
        let keys = [
            ("record", self.record.is_some()),
            ("nfqueue", self.nfqueue != NfqueueConfig::default()),
            ("mark", self.mark != Mark::default()),
        ];
        let of_keys = keys.into_iter().filter(|(_, is_set)| *is_set);
        let of_keys =
            of_keys.map(|(key, _)| Caution::new(&[key], format!("it has no effect {observing}")));
        self.groups.iter().filter_map(of_group).chain(of_keys).collect()
    }

    /// Says of each interface that is not among those of this machine what does not work without
    /// it; nothing if those of this machine are not known.
    pub fn missing_interfaces(&self, here: &Interfaces) -> Vec<Caution> {
        if here.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = here.keys().map(InterfaceName::as_str).collect();
        let near = |name: Option<InterfaceName>| {
            let near = name.and_then(|name| airtcp_config::nearest(name.as_str(), &names));
            near.map_or_else(String::new, |near| format!("; did you mean {near}?"))
        };
        let mut missing = Vec::new();
        for group in &self.groups {
            let absent =
                |pattern: &&InterfacePattern| !names.iter().any(|name| pattern.matches(name));
            missing.extend(group.interfaces().iter().filter(absent).map(|pattern| {
                let text = format!(
                    "no interface {pattern} here; mobiles behind it are not protected until it appears{}",
                    near(pattern.name())
                );
                Caution::new(&group.table(), text)
            }));
            if let Some(uplink) = group.uplink().filter(|uplink| !here.contains_key(uplink)) {
                let text = format!(
                    "no interface {uplink} here; the uplink is not protected until it appears{}",
                    near(Some(uplink))
                );
                missing.push(Caution::new(&group.table(), text));
            }
        }
        missing
    }

    /// Planned outages that are over at `now`, in seconds since 1970 (UTC), and do not come again.
    pub fn past_outages(&self, now: u64) -> Vec<Caution> {
        let past = |(n, outage): (usize, &PlannedOutage)| {
            let end = outage.begin.saturating_add(outage.length.as_nanos().div_ceil(1_000_000_000));
            (outage.every.is_none() && end <= now).then(|| {
                let text = format!(
                    "the outage is over since {}, and has no effect any more (expected one to come, or `every`)",
                    Moment(end)
                );
                Caution::new(&["signals", "planned", &n.to_string(), "begin"], text)
            })
        };
        self.signals.timetable.iter().enumerate().filter_map(past).collect()
    }

    /// Prefixes of mobiles with addresses of this host that show them to be wrong: nothing goes
    /// through a router to its own address, and behind a default route are the fixed hosts. The
    /// router's address in the network of its mobiles is as it should be.
    pub fn own_addresses(&self, own: &[OwnAddress]) -> Vec<Caution> {
        let mut cautions = Vec::new();
        for group in &self.groups {
            for (n, prefix) in group.addresses().iter().enumerate() {
                let n = n.to_string();
                let key = [&group.table()[..], &["addresses", &n]].concat();
                cautions.extend(
                    own.iter()
                        .find_map(|own| of_own(group, prefix, own))
                        .map(|text| Caution::new(&key, text)),
                );
            }
        }
        cautions
    }
}

/// What is wrong with a prefix of a group that contains an address of this host, if anything is.
fn of_own(group: &Group, prefix: &IpNet, own: &OwnAddress) -> Option<String> {
    let OwnAddress { ip, interface, has_default_route } = own;
    if !prefix.contains(ip) {
        return None;
    }
    if prefix.prefix_len() == prefix.max_prefix_len() {
        return Some(format!(
            "{ip} is this router's own address, on {interface}: what it forwards has others \
             (expected the mobiles' own addresses, behind any translation)"
        ));
    }
    (*has_default_route && group.interfaces().is_empty()).then(|| {
        format!(
            "{prefix} contains {ip}, this router's address on {interface}, over which the default route leads: \
             fixed hosts there are taken for mobiles (expected the mobiles' addresses alone, or their `interfaces`)"
        )
    })
}

impl Group {
    /// Path of its table in the file.
    fn table(&self) -> [&str; 2] {
        match &self.members {
            Members::Mobiles { .. } => ["mobile", &self.name],
            Members::Uplink(interface) => ["uplink", interface.as_str()],
        }
    }

    /// Those of the addresses that belong to it, although nothing is forwarded to them.
    pub fn own<'a>(&self, own: &'a [OwnAddress]) -> impl Iterator<Item = IpAddr> + use<'a, '_> {
        own.iter().map(|own| own.ip).filter(|&ip| self.has(MobileId::Host(ip)))
    }
}
