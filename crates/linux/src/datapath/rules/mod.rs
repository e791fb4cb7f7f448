//! Firewall rules that send the mobiles' TCP packets to the gateway, in separate tables and chains.
//!
//! Read first: `iptables` or `nftables`, the same firewall rules in two languages. [`Rules`]
//! installs them, and removes them on drop; [`Watcher`] changes them without delaying packets, and
//! repairs them after another program removed them (`guard`). Rules left by a crash are harmless
//! (`bypass`: without a listener packets pass), and the next start replaces them.
//!
//! Packets from and to a group's mobiles are queued: all of them, or those of *watched* mobiles
//! ([`Queued`]). A mobile belongs to the first group with its address. Packets of other hosts that
//! cross an uplink are queued likewise, including those of this host's own connections (INPUT,
//! OUTPUT). If a mechanism replays segments, ICMP messages of routers near the mobiles that a
//! packet was too big are queued, too; they have a router's address. While nothing has to be
//! queued, packets bypass the rules. A network namespace has one set of rules, and so one gateway,
//! and optionally the [`AckRules`] of one `airtcp delack`.

mod guard;
mod iptables;
mod nftables;
mod watcher;

use crate::datapath::mirror::MirrorSwitch;
use crate::datapath::nfqueue::{NfqueueError, Reserved};
use crate::kernel::host;
use airtcp_core::Flow;
use airtcp_edge::{InterfaceName, MobileId};
use airtcp_gateway::config::{GatewayConfig, InterfacePattern, Mark, NfqueueConfig, Queued};
use guard::Gaps;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};
pub use watcher::Watcher;

/// Reason why the rules are not in force.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// Neither nftables nor iptables accepts the rules.
    #[error(
        "cannot set rules: {0}; run as root (or with CAP_NET_ADMIN), with nft or iptables installed, on a kernel \
         with CONFIG_NFT_QUEUE or CONFIG_NETFILTER_XT_TARGET_NFQUEUE (`airtcp doctor` says what is missing)"
    )]
    NoBackend(String),
    /// Not a valid name of an interface.
    #[error(
        "\"{0}\" cannot be the name of an interface (1 to 15 bytes, no space, quote, `/`, `*` or `+`)"
    )]
    Interface(String),
    /// A program refused a rule; its message.
    #[error("{0}")]
    Refused(String),
    /// Another gateway has rules here: each would remove the other's.
    #[error(
        "another gateway protects mobiles in this network namespace: stop it, or add these groups to its configuration"
    )]
    Taken,
    /// The check for another gateway failed.
    #[error("cannot determine whether another gateway runs in this network namespace: {0}")]
    Claim(#[from] NfqueueError),
}

/// Program that sets the rules. Kernels support one, the other or both: some distributions no
/// longer build the modules of iptables, and other kernels lack the `queue` statement
/// (CONFIG_NFT_QUEUE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// `nft`, with the `queue` statement.
    Nftables,
    /// `iptables`, with the NFQUEUE target; legacy or nft, as the administrator has chosen.
    Iptables,
}

/// Backends in order of preference: nftables changes all rules in one transaction.
const BACKENDS: [Backend; 2] = [Backend::Nftables, Backend::Iptables];

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nftables => f.write_str("nft"),
            Self::Iptables => f.write_str("iptables"),
        }
    }
}

impl Backend {
    fn text(self, wanted: &RuleSet) -> String {
        match self {
            Self::Nftables => nftables::text(wanted),
            Self::Iptables => iptables::text(wanted),
        }
    }
    /// Checks whether the rules would be accepted; changes nothing.
    fn check(self, wanted: &RuleSet) -> Result<(), String> {
        match self {
            Self::Nftables => nftables::check(wanted),
            Self::Iptables => iptables::check(wanted),
        }
    }
    /// Installs the rules in place of existing ones.
    fn install(self, wanted: &RuleSet) -> Result<(), String> {
        match self {
            Self::Nftables => nftables::install(wanted),
            Self::Iptables => iptables::install(wanted),
        }
    }
    /// Changes the rules from `before` to `after`, which differ in whether `mobiles` are watched.
    fn watch(self, before: &RuleSet, after: &RuleSet, mobiles: &[MobileId]) -> Result<(), String> {
        match self {
            Self::Nftables => nftables::watch(before, after, mobiles),
            Self::Iptables => iptables::watch(before, after, mobiles),
        }
    }
    /// Chains that lack a rule or a jump to them.
    fn gaps(self, wanted: &RuleSet) -> Result<Gaps, String> {
        match self {
            Self::Nftables => nftables::gaps(wanted),
            Self::Iptables => iptables::gaps(wanted),
        }
    }
    /// Names of the tables with the rules.
    fn tables(self) -> &'static [&'static str] {
        match self {
            Self::Nftables => &["airtcp"],
            Self::Iptables => &["raw", "mangle"],
        }
    }
    fn install_acks(self, wanted: &AckSelection) -> Result<(), String> {
        match self {
            Self::Nftables => nftables::install_acks(wanted),
            Self::Iptables => iptables::install_acks(wanted),
        }
    }
    fn remove_acks(self) -> Result<(), String> {
        match self {
            Self::Nftables => nftables::remove_acks(),
            Self::Iptables => iptables::remove_acks(),
        }
    }
    /// Removes all rules of a gateway.
    fn remove(self) -> Result<(), String> {
        match self {
            Self::Nftables => nftables::remove(),
            Self::Iptables => iptables::remove(),
        }
    }
}

/// Content of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RuleSet {
    /// Number of the queue.
    queue: u16,
    groups: Vec<Selection>,
    uplinks: Vec<(InterfaceName, Queued)>,
    /// Interfaces from which routers may report that a replayed segment was too big; `None`: any.
    too_big: BTreeSet<Option<InterfacePattern>>,
    /// Mobiles whose packets are queued now, if their group is [`Queued::Watched`].
    watched: BTreeSet<MobileId>,
    /// Mark of the gateway's own packets, which it must not queue.
    mark: Mark,
    /// Packets with the mark are exempted from connection tracking.
    notrack: bool,
}

/// Pure ACKs that are queued for `airtcp delack`: those with timestamps and no other option, of
/// connections with `peers` and one of `ports` at either end (empty: any).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckSelection {
    /// Number of the queue.
    pub queue: u16,
    /// Interface by which the ACKs leave.
    pub interface: String,
    /// Destinations of the ACKs; empty: any.
    pub peers: Vec<ipnet::IpNet>,
    /// Ports at either end; empty: any.
    pub ports: Vec<u16>,
}

/// Length of a packet with such an ACK, IPv4 and IPv6. Packets of another length have payload or
/// other options. They are never queued, so they never wait behind an ACK, and none is overtaken
/// by another.
const ACK_LENGTHS: [u16; 2] = [20 + 20 + 12, 40 + 20 + 12];

impl AckSelection {
    /// True if packets of this IP version can be selected.
    fn has_family(&self, ipv4: bool) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|peer| peer.addr().is_ipv4() == ipv4)
    }

    /// True if the ACKs for this flow of data are selected.
    pub fn has(&self, data: &Flow) -> bool {
        let is_peer = |peer: &ipnet::IpNet| peer.contains(&data.src.ip);
        let is_port = |port: &u16| [data.src.port, data.dst.port].contains(port);
        (self.peers.is_empty() || self.peers.iter().any(is_peer))
            && (self.ports.is_empty() || self.ports.iter().any(is_port))
    }
}

/// The rules of an [`AckSelection`], in force until this is dropped, in the network namespace of
/// the thread that made it. A namespace has at most one set of them, besides those of a gateway.
#[derive(Debug)]
pub struct AckRules {
    backend: Backend,
}

impl AckRules {
    /// Installs the rules by the first backend that accepts them, in place of those that a
    /// predecessor left.
    ///
    /// # Errors
    /// No backend accepts them; then no rule is left.
    pub fn install(wanted: &AckSelection) -> Result<Self, RulesError> {
        if !is_interface(&wanted.interface) {
            return Err(RulesError::Interface(wanted.interface.clone()));
        }
        // Rules of a predecessor by the other backend would queue packets twice.
        remove_acks();
        let mut errors = Vec::new();
        for backend in BACKENDS {
            match backend.install_acks(wanted) {
                Ok(()) => return Ok(Self { backend }),
                Err(error) => {
                    // Some rules may have been set.
                    let _ = backend.remove_acks();
                    errors.push(error);
                }
            }
        }
        Err(RulesError::NoBackend(errors.join("; ")))
    }

    /// The backend that set the rules.
    pub fn backend(&self) -> Backend {
        self.backend
    }
}

impl Drop for AckRules {
    fn drop(&mut self) {
        // Errors cannot be reported here; rules that stay let packets pass.
        let _ = self.backend.remove_acks();
    }
}

/// Removes the rules that a killed `airtcp delack` has left in this namespace.
pub fn remove_acks() {
    for backend in BACKENDS {
        // Fails if the program is not installed; then it has left nothing.
        let _ = backend.remove_acks();
    }
}

/// Packets of a group: of one IP version, behind one interface (`None`: any).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Selection {
    addresses: ipnet::IpNet,
    interface: Option<InterfacePattern>,
    queued: Queued,
}

impl RuleSet {
    fn new(config: &GatewayConfig) -> Self {
        let (mut groups, mut uplinks, mut too_big) = (Vec::new(), Vec::new(), BTreeSet::new());
        for group in &config.groups {
            let patterns = group.interfaces();
            let interfaces: Vec<_> = if patterns.is_empty() {
                vec![None]
            } else {
                patterns.iter().copied().map(Some).collect()
            };
            let queued = group.queued();
            uplinks.extend(group.uplink().map(|uplink| (uplink, queued)));
            if group.replays() {
                too_big.extend(match group.uplink() {
                    Some(uplink) => vec![Some(InterfacePattern::Exactly(uplink))],
                    None => interfaces.clone(),
                });
            }
            for &addresses in group.addresses() {
                for &interface in &interfaces {
                    groups.push(Selection { addresses, interface, queued });
                }
            }
        }
        let queue = config.nfqueue.queue;
        if too_big.contains(&None) {
            too_big.retain(Option::is_none);
        }
        let (watched, mark) = (BTreeSet::new(), config.mark);
        Self { queue, groups, uplinks, too_big, watched, mark, notrack: true }
    }

    /// True if packets of this IP version may have to be queued.
    fn queues(&self, ipv4: bool) -> bool {
        let is_watched = self.hosts().any(|mobile| mobile.is_ipv4() == ipv4);
        let groups = self.groups.iter().filter(|group| group.addresses.addr().is_ipv4() == ipv4);
        self.queues_uplinks() || queues(groups.map(|group| group.queued), is_watched)
    }

    /// True if packets over an uplink may have to be queued.
    fn queues_uplinks(&self) -> bool {
        let is_watched = self.watched.iter().any(|mobile| mobile.uplink().is_some());
        queues(self.uplinks.iter().map(|&(_, queued)| queued), is_watched)
    }

    /// The uplinks in [`too_big`](Self::too_big).
    fn too_big_uplinks(&self) -> BTreeSet<Option<InterfacePattern>> {
        let uplinks = self.uplinks.iter();
        let names = uplinks.map(|&(uplink, _)| Some(InterfacePattern::Exactly(uplink)));
        names.filter(|name| self.too_big.contains(name)).collect()
    }

    /// Watched mobiles that are hosts.
    fn hosts(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.watched.iter().filter_map(|mobile| mobile.host())
    }
}

/// True if packets of such groups may have to be queued; `is_watched`: some mobile is watched.
fn queues(mut groups: impl Iterator<Item = Queued>, is_watched: bool) -> bool {
    groups.any(|queued| match queued {
        Queued::Always => true,
        Queued::Watched => is_watched,
        Queued::Never => false,
    })
}

/// True for a name that the kernel allows, without characters that have a meaning in rules.
fn is_interface(name: &str) -> bool {
    (1..16).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_graphic() && !"/*+\"'\\".contains(c))
}

/// The right to set the gateway's rules in a network namespace: queue [`NfqueueConfig::CLAIM`], to
/// which no rule sends packets. Only CAP_NET_ADMIN can take it, so nobody else can keep a gateway
/// from starting. It ends with the process, whatever ends that.
#[derive(Debug)]
struct Claim(#[expect(dead_code, reason = "it is held, not used")] Reserved);

impl Claim {
    fn take() -> Result<Self, RulesError> {
        Reserved::take(NfqueueConfig::CLAIM).map(Self).map_err(|error| match error {
            NfqueueError::InUse { .. } => RulesError::Taken,
            _ => RulesError::Claim(error),
        })
    }
}

/// Rules in force until this is dropped, in the network namespace of the thread that made it.
#[derive(Debug)]
pub struct Rules {
    backend: Backend,
    wanted: RuleSet,
    _claim: Claim,
    /// Switches mirroring of packets that are not queued.
    mirror: Option<MirrorSwitch>,
}

impl Rules {
    /// Installs the rules for `config` by the first backend that accepts them, in place of those
    /// that a predecessor left.
    ///
    /// # Errors
    /// No backend accepts them, then no rule is left; or another gateway has rules here.
    pub fn install(config: &GatewayConfig) -> Result<Self, RulesError> {
        let wanted = RuleSet::new(config);
        let _claim = Claim::take()?;
        let (backend, wanted) = first(wanted, |backend, wanted| {
            backend.install(wanted).inspect_err(|_| {
                // Some rules may have been set: the tables of iptables change one by one.
                let _ = backend.remove();
            })
        })?;
        for other in BACKENDS.into_iter().filter(|&other| other != backend) {
            // Fails if the program is not installed; then it has left nothing.
            let _ = other.remove();
        }
        Ok(Self { backend, wanted, _claim, mirror: None })
    }

    /// Replaces the rules by those for another configuration; watched mobiles stay watched.
    ///
    /// # Errors
    /// The rules were refused: the previous ones are in force.
    pub fn replace(&mut self, config: &GatewayConfig) -> Result<(), RulesError> {
        let wanted = RuleSet::new(config);
        let wanted = RuleSet {
            watched: self.wanted.watched.clone(),
            notrack: self.wanted.notrack,
            ..wanted
        };
        self.backend.install(&wanted).map_err(|error| {
            // Some rules may have changed.
            let _ = self.backend.install(&self.wanted);
            RulesError::Refused(error)
        })?;
        self.wanted = wanted;
        Ok(())
    }

    /// Sets the switch by which packets of watched mobiles are not mirrored as long as they are
    /// queued.
    pub fn set_mirror(&mut self, mirror: Option<MirrorSwitch>) {
        self.mirror = mirror;
        self.switch_mirror(self.wanted.watched.iter(), false);
    }

    fn switch_mirror<'a>(&self, mobiles: impl IntoIterator<Item = &'a MobileId>, on: bool) {
        if let Some(mirror) = &self.mirror {
            for mobile in mobiles {
                if let Err(error) = mirror.set(*mobile, on) {
                    tracing::error!(%mobile, "queue and mirror rules out of sync: {error}");
                }
            }
        }
    }

    /// Begins (`on`) or ends to queue the packets of these mobiles, if their group is
    /// [`Queued::Watched`]. One step for all mobiles, which takes some milliseconds. Idempotent.
    /// For a moment a packet may be both queued and mirrored, but none is neither.
    ///
    /// # Errors
    /// The rules were refused: nothing has changed.
    pub fn watch(&mut self, mobiles: &[MobileId], on: bool) -> Result<(), RulesError> {
        let mut news: Vec<_> =
            mobiles.iter().copied().filter(|m| self.wanted.watched.contains(m) != on).collect();
        news.sort_unstable();
        news.dedup();
        if news.is_empty() || !self.needs_watching() {
            return Ok(());
        }
        let mut wanted = self.wanted.clone();
        for mobile in &news {
            if on {
                wanted.watched.insert(*mobile);
            } else {
                wanted.watched.remove(mobile);
            }
        }
        if !on {
            self.switch_mirror(&news, true);
        }
        let changed = self.backend.watch(&self.wanted, &wanted, &news);
        if changed.is_ok() {
            self.wanted = wanted;
        } else {
            // Some rules may have changed.
            let _ = self.backend.install(&self.wanted);
        }
        if changed.is_ok() == on {
            self.switch_mirror(&news, false);
        }
        changed.map_err(RulesError::Refused)
    }

    /// Chains from which another program removed rules.
    ///
    /// # Errors
    /// The rules cannot be read.
    fn gaps(&self) -> Result<Gaps, RulesError> {
        self.backend.gaps(&self.wanted).map_err(RulesError::Refused)
    }

    /// Installs the rules again.
    ///
    /// # Errors
    /// Some rules are still missing, or cannot be read.
    fn repair(&self) -> Result<(), RulesError> {
        self.backend.install(&self.wanted).map_err(RulesError::Refused)?;
        match self.gaps()?.is_empty() {
            true => Ok(()),
            false => Err(RulesError::Refused("another program keeps removing rules".to_owned())),
        }
    }

    /// True if a group is [`Queued::Watched`].
    pub fn needs_watching(&self) -> bool {
        let mobiles = self.wanted.groups.iter().map(|group| group.queued);
        let uplinks = self.wanted.uplinks.iter().map(|&(_, queued)| queued);
        mobiles.chain(uplinks).any(|queued| queued == Queued::Watched)
    }

    /// The backend that set the rules.
    pub fn backend(&self) -> Backend {
        self.backend
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        // Errors cannot be reported here; rules that stay let packets pass.
        let _ = self.backend.remove();
    }
}

/// The rules for `config` as they would be set here, after a dry run; changes nothing.
///
/// # Errors
/// The rules would be refused.
pub fn text(config: &GatewayConfig) -> Result<String, RulesError> {
    let (backend, wanted) = first(RuleSet::new(config), Backend::check)?;
    Ok(format!("# {backend}\n{}", backend.text(&wanted)))
}

/// Removes the rules that a killed gateway has left in this namespace.
pub fn remove() {
    for backend in BACKENDS {
        // Fails if the program is not installed; then it has left nothing.
        let _ = backend.remove();
    }
}

/// The first backend for which `attempt` succeeds. If the kernel has no connection tracking, the
/// rules may be tried without the one that exempts packets from it.
fn first(
    wanted: RuleSet,
    attempt: impl Fn(Backend, &RuleSet) -> Result<(), String>,
) -> Result<(Backend, RuleSet), RulesError> {
    let tracking = Path::new("/proc/sys/net/netfilter/nf_conntrack_max").exists();
    let mut errors = Vec::new();
    for notrack in [true, false].into_iter().take(if tracking { 1 } else { 2 }) {
        let wanted = RuleSet { notrack, ..wanted.clone() };
        for backend in BACKENDS {
            match attempt(backend, &wanted) {
                Ok(()) => return Ok((backend, wanted)),
                Err(error) => errors.push(error),
            }
        }
    }
    errors.sort();
    errors.dedup();
    Err(RulesError::NoBackend(errors.join("; ")))
}

/// Runs a program on `input` and returns what it prints; an error is one line that begins with its
/// name.
fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    // The program is looked up here: if the child were given another PATH, the standard library
    // would fork instead of vfork, and a fork takes longer the more memory the gateway has.
    let file = host::program(program).ok_or_else(|| format!("{program}: not installed"))?;
    let failed = |error: io::Error| format!("{program}: {error}");
    let mut child = Command::new(file)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // Fails if the program ends early; its message is below.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next().map_or_else(|| output.status.to_string(), str::to_owned);
    Err(format!("{program}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules without watched mobiles, and with the only mobile watched that can be.
    pub(super) fn idle_and_not() -> [RuleSet; 2] {
        let mut groups = wanted().groups;
        groups.retain(|group| group.queued != Queued::Always);
        let watching = RuleSet { groups, ..wanted() };
        [RuleSet { watched: BTreeSet::new(), ..watching.clone() }, watching]
    }

    /// A group that is queued when watched within one that is always queued behind an interface,
    /// and an IPv6 group.
    pub(super) fn wanted() -> RuleSet {
        let group = |addresses: &str, interface: Option<&str>, queued| Selection {
            addresses: addresses.parse().unwrap(),
            interface: interface.map(|name| name.parse().unwrap()),
            queued,
        };
        RuleSet {
            queue: 7,
            groups: vec![
                group("10.1.0.0/16", None, Queued::Watched),
                group("10.0.0.0/8", Some("wlan0"), Queued::Always),
                group("fd00:1::/64", None, Queued::Always),
            ],
            uplinks: Vec::new(),
            too_big: [None].into(),
            watched: [mobile("10.1.2.3")].into(),
            mark: Mark::default(),
            notrack: true,
        }
    }

    pub(super) fn mobile(address: &str) -> MobileId {
        MobileId::Host(address.parse().unwrap())
    }

    /// A watched uplink, another one whose packets are all queued, and a mobile behind a third
    /// interface.
    pub(super) fn on_board() -> RuleSet {
        let [wwan0, wwan1] = ["wwan0", "wwan1"].map(|name| name.parse().unwrap());
        let mut wanted = wanted();
        wanted.groups.drain(2..);
        wanted.groups.remove(0);
        let uplinks = vec![(wwan0, Queued::Watched), (wwan1, Queued::Always)];
        let too_big = ["wlan0", "wwan0"].map(|name| Some(name.parse().unwrap())).into();
        RuleSet { uplinks, too_big, watched: [MobileId::Uplink(wwan0)].into(), ..wanted }
    }

    /// Rules with a single uplink: not watched, and watched.
    pub(super) fn uplink_idle_and_not() -> [RuleSet; 2] {
        let mut watching = RuleSet { groups: Vec::new(), ..on_board() };
        watching.uplinks.truncate(1);
        watching.too_big.retain(|from| from.is_some_and(|from| from.matches("wwan0")));
        [RuleSet { watched: BTreeSet::new(), ..watching.clone() }, watching]
    }

    /// ACKs to some peers, on the ports of HTTP and HTTPS.
    pub(super) fn acks() -> AckSelection {
        AckSelection {
            queue: 9,
            interface: "wlan0".to_owned(),
            peers: vec!["10.0.0.0/8".parse().unwrap()],
            ports: vec![80, 443],
        }
    }

    #[test]
    fn a_name_that_would_be_a_rule_is_no_interface() {
        for name in ["", "a b", "x\nCOMMIT", "wlan+", "wlan*", "\"", "sixteen-letters!", "a/b"] {
            assert!(!is_interface(name), "{name}");
        }
        assert!(is_interface("wlp3s0") && is_interface("eth0.100") && is_interface("br-lan"));
    }

    #[test]
    fn a_beginning_of_names_is_a_match_in_either_language() {
        let mut all = wanted();
        all.groups[1].interface = Some("ppp*".parse().unwrap());
        all.too_big = [all.groups[1].interface].into();
        for (backend, both) in [
            (Backend::Nftables, ["iifname \"ppp*\" ip saddr", "iifname \"ppp*\" icmp type"]),
            (Backend::Iptables, ["-s 10.0.0.0/8 -i ppp+ -j", "-i ppp+ -p icmp"]),
        ] {
            let text = backend.text(&all);
            assert!(both.iter().all(|rule| text.contains(rule)), "{text}");
        }
    }

    #[test]
    fn a_program_that_fails_is_named_with_its_first_line() {
        assert_eq!(run("no-such-program", &[], "").unwrap_err(), "no-such-program: not installed");
        let script = "echo; echo why >&2; echo more >&2; exit 3";
        assert_eq!(run("sh", &["-c", script], "").unwrap_err(), "sh: why");
        assert_eq!(run("false", &[], "").unwrap_err(), "false: exit status: 1");
        assert_eq!(run("cat", &[], "input").unwrap(), "input");
    }
}
