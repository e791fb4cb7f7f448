//! Checks whether this machine can run the live commands, what is missing, and how to fix it.
//!
//! Checks change nothing: they read the kernel's files (`host`), try features in a private
//! namespace (`sandbox`), and look for installed programs (`tools`). Each gives a [`Check`]; the
//! checks that a command needs decide its [`Verdict`]. No privileges are required: what cannot be
//! determined without them is [`CheckState::Unknown`].

mod host;
mod offload;
mod parse;
mod sandbox;
mod tools;

pub use crate::kernel::host::{addresses, interfaces};
pub(crate) use host::sees_all_maps;
pub use sandbox::probe;

use crate::datapath::flow_tables::{self, FlowTable};
use crate::datapath::mirror::{Chosen, MirrorPath, choose, unseen};
use crate::datapath::tc::KERNEL_OPTIONS;
use airtcp_gateway::config::DataPath;
use sandbox::{Feature, Features, Outcome};
use serde::Serialize;
use std::fmt;
use std::process::Command;

/// A command of airtcp that uses the kernel, or a mode of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LiveCommand {
    /// `airtcp link`: a command behind an emulated link.
    Link,
    /// `airtcp gateway` with at least one of its mechanisms.
    Gateway,
    /// `airtcp gateway` with wake, its default mechanism.
    Wake,
    /// `airtcp delack`: delays this host's own acknowledgements.
    Delack,
    /// `airtcp cc`: congestion control in the kernel.
    Cc,
}

impl LiveCommand {
    /// All commands, in the order of a report.
    pub const ALL: [Self; 5] = [Self::Link, Self::Gateway, Self::Wake, Self::Delack, Self::Cc];
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Gateway => "gateway",
            Self::Wake => "wake",
            Self::Delack => "delack",
            Self::Cc => "cc",
        }
    }
}

impl fmt::Display for LiveCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Result of a check, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// Works.
    Ok,
    /// Works, but less well than it could.
    Degraded,
    /// Could not be determined, mostly for lack of a privilege.
    Unknown,
    /// Missing, or not available to this user.
    Missing,
}

impl CheckState {
    /// Name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Unknown => "unknown",
            Self::Missing => "missing",
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name, stable from release to release.
    pub name: &'static str,
    /// Result of the check.
    pub state: CheckState,
    /// Description of the finding.
    pub found: String,
    /// Commands that cannot work without it.
    pub needed_for: &'static [LiveCommand],
    /// Commands that work better with it.
    pub helps: &'static [LiveCommand],
    /// Reason why airtcp needs it.
    pub purpose: &'static str,
    /// Instructions to fix it; empty exactly if the state is [`CheckState::Ok`].
    pub fix: String,
}

/// Finding of a check, apart from the commands that need it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    state: CheckState,
    found: String,
    fix: String,
}

impl Finding {
    fn ok(found: impl Into<String>) -> Self {
        Self { state: CheckState::Ok, found: found.into(), fix: String::new() }
    }
    fn degraded(found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: CheckState::Degraded, found: found.into(), fix: fix.into() }
    }
    fn unknown(found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: CheckState::Unknown, found: found.into(), fix: fix.into() }
    }
    fn missing(found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: CheckState::Missing, found: found.into(), fix: fix.into() }
    }
    /// Makes a check of the finding.
    fn named(
        self,
        name: &'static str,
        needed_for: &'static [LiveCommand],
        helps: &'static [LiveCommand],
        purpose: &'static str,
    ) -> Check {
        let Self { state, found, fix } = self;
        Check { name, state, found, needed_for, helps, purpose, fix }
    }
}

/// Conclusion of the checks for one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Command that the verdict is about.
    pub command: LiveCommand,
    /// Worst state of the checks that the command needs; [`CheckState::Degraded`] if only a check
    /// that helps failed.
    pub state: CheckState,
    /// Needed checks that are missing or unknown.
    pub lacks: Vec<&'static str>,
}

/// All checks, and the verdict on each command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Checks in a fixed order.
    pub checks: Vec<Check>,
    /// One verdict for each of [`LiveCommand::ALL`].
    pub verdicts: Vec<Verdict>,
}

impl Report {
    fn of(checks: Vec<Check>) -> Self {
        let verdicts = LiveCommand::ALL.map(|command| verdict(command, &checks)).into();
        Self { checks, verdicts }
    }
}

fn verdict(command: LiveCommand, checks: &[Check]) -> Verdict {
    let needed = || checks.iter().filter(|check| check.needed_for.contains(&command));
    let worst = needed().map(|check| check.state).max().unwrap_or(CheckState::Ok);
    let helped = |check: &Check| check.helps.contains(&command) && check.state != CheckState::Ok;
    let state = match worst {
        CheckState::Ok if checks.iter().any(helped) => CheckState::Degraded,
        other => other,
    };
    let lacks = needed().filter(|c| c.state >= CheckState::Unknown).map(|c| c.name).collect();
    Verdict { command, state, lacks }
}

/// Runs all checks. `child` must start this program so that it calls [`probe`] and prints the
/// result.
pub fn examine(child: &mut Command) -> Report {
    let features = sandbox::features_from(child);
    let mut checks = tried(&features);
    checks.extend(host::checks());
    checks.extend(tools::checks());
    Report::of(checks)
}

const LINK: &[LiveCommand] = &[LiveCommand::Link];
const GATEWAY: &[LiveCommand] = &[LiveCommand::Gateway];
const WAKE: &[LiveCommand] = &[LiveCommand::Wake];
const GATEWAY_AND_WAKE: &[LiveCommand] = &[LiveCommand::Gateway, LiveCommand::Wake];
const DELACK: &[LiveCommand] = &[LiveCommand::Delack];
/// Commands that queue packets.
const QUEUES: &[LiveCommand] = &[LiveCommand::Gateway, LiveCommand::Wake, LiveCommand::Delack];
/// Commands that work better with BPF programs.
const HELPED_BY_BPF: &[LiveCommand] =
    &[LiveCommand::Gateway, LiveCommand::Wake, LiveCommand::Delack];
const CC: &[LiveCommand] = &[LiveCommand::Cc];
const NOBODY: &[LiveCommand] = &[];

/// Checks of the features tried in the sandbox.
fn tried(features: &Result<Features, String>) -> Vec<Check> {
    let of = |feature: Feature, fix: &str| tried_one(features, feature, fix);
    let kernel = |option: &str| format!("needs a kernel with {option} (or its module)");
    let nft = of(Feature::NftQueue, &kernel("CONFIG_NFT_QUEUE"));
    let xt = of(Feature::XtQueue, &kernel("CONFIG_NETFILTER_XT_TARGET_NFQUEUE"));
    vec![
        namespace(features).named(
            "namespaces",
            LINK,
            NOBODY,
            "the command behind the link runs in a network namespace",
        ),
        tun(of(
            Feature::Tun,
            &(kernel("CONFIG_TUN") + ": modprobe tun; in a container, the device /dev/net/tun"),
        ))
        .named(
            "tun",
            LINK,
            NOBODY,
            "packets reach the emulated link through a TUN device",
        ),
        fifo(of(Feature::SchedFifo, "")).named(
            "sched-fifo",
            NOBODY,
            LINK,
            "packets are released on time when the machine is busy",
        ),
        of(Feature::Nfqueue, &kernel("CONFIG_NETFILTER_NETLINK_QUEUE")).named(
            "nfqueue",
            QUEUES,
            NOBODY,
            "the kernel hands packets to the daemon",
        ),
        queue_rule(nft, xt, tools::installed("nft"), tools::installed("iptables")).named(
            "queue-rule",
            QUEUES,
            NOBODY,
            "the rules that select packets for the daemon",
        ),
        of(Feature::AfPacket, &kernel("CONFIG_PACKET")).named(
            "af-packet",
            DELACK,
            GATEWAY,
            "delack captures arriving data; tcpdump and tshark capture packets",
        ),
        bpf(of(
            Feature::NetfilterMirror,
            "needs Linux 6.4 or newer with CONFIG_NETFILTER_BPF_LINK and CONFIG_DEBUG_INFO_BTF",
        ))
        .named(
            "netfilter-bpf",
            NOBODY,
            GATEWAY_AND_WAKE,
            "the kernel forwards packets at once and mirrors them to the gateway, at netfilter's hooks",
        ),
        bpf(of(Feature::TcMirror, &format!("needs Linux 5.12 or newer with {KERNEL_OPTIONS}"))).named(
            "tc-bpf",
            NOBODY,
            GATEWAY_AND_WAKE,
            "the same at the interfaces, where netfilter cannot or flow tables lead packets around it",
        ),
        data_path(DataPath::Auto, features, &flow_tables::all()).named(
            "data-path",
            WAKE,
            GATEWAY,
            "one of the two: wake, observing and `fast-path` need mirrored packets",
        ),
    ]
}

const AS_ROOT_WITH_BPF: &str = "run as root, or give CAP_BPF and CAP_PERFMON; the kernel refuses BPF in containers with a user \
                                namespace";

/// Turns a refusal into a missing feature: the daemon would be refused, too.
fn bpf(finding: Finding) -> Finding {
    match finding.state {
        CheckState::Unknown => Finding::missing(finding.found, AS_ROOT_WITH_BPF),
        _ => finding,
    }
}

/// Finding on the path that the gateway would take, by the daemon's own choice.
fn data_path(
    wanted: DataPath,
    features: &Result<Features, String>,
    tables: &[FlowTable],
) -> Finding {
    let attempt = |path| {
        let feature = match path {
            MirrorPath::Netfilter => Feature::NetfilterMirror,
            MirrorPath::Tc => Feature::TcMirror,
        };
        let found = bpf(tried_one(features, feature, "fix"));
        if found.state == CheckState::Ok { Ok(()) } else { Err(found.found) }
    };
    match choose(wanted, tables, attempt) {
        Ok(Chosen { path, why, .. }) => {
            let found = format!("{path}: {why}");
            let unseen = unseen(path, tables);
            if unseen.is_empty() {
                Finding::ok(found)
            } else {
                Finding::degraded(found, format!("remove the flow table: {}", unseen.join("; ")))
            }
        }
        Err(error) => Finding::missing(
            error.to_string(),
            format!("Linux 5.12 or newer with {KERNEL_OPTIONS}; {AS_ROOT_WITH_BPF}"),
        ),
    }
}

/// The path that the gateway would take with this setting, and why; then what it would not see.
/// `child` as for [`examine`].
///
/// # Errors
/// None works here; the reasons.
pub fn mirror_path(wanted: DataPath, child: &mut Command) -> Result<Vec<String>, String> {
    let found = data_path(wanted, &sandbox::features_from(child), &flow_tables::all());
    match found.state {
        CheckState::Ok => Ok(vec![found.found]),
        CheckState::Degraded => Ok(vec![found.found, found.fix]),
        CheckState::Unknown | CheckState::Missing => Err(found.found),
    }
}

const AS_ROOT: &str = "run `airtcp doctor` as root";

/// Finding of one feature; `fix` names the kernel option that it needs.
fn tried_one(features: &Result<Features, String>, feature: Feature, fix: &str) -> Finding {
    match features {
        Err(why) => Finding::unknown(why.clone(), AS_ROOT),
        Ok(features) => match features.get(&feature) {
            Some(Outcome::Works(_)) => Finding::ok("works"),
            Some(Outcome::Absent(why)) => Finding::missing(why.clone(), fix),
            Some(Outcome::Refused(why)) => Finding::unknown(why.clone(), AS_ROOT),
            None => Finding::unknown("not tried: no private namespace", AS_ROOT),
        },
    }
}

fn namespace(features: &Result<Features, String>) -> Finding {
    match features.as_ref().map(|features| features.get(&Feature::Namespace)) {
        Ok(Some(Outcome::Works(how))) => Finding::ok(how.clone()),
        Ok(Some(Outcome::Absent(why) | Outcome::Refused(why))) => Finding::missing(
            why.clone(),
            "run as root, or allow user namespaces (user.max_user_namespaces > 0, \
             kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)",
        ),
        Ok(None) => Finding::unknown(
            "not tried: a process with threads cannot enter a user namespace",
            "run the native `airtcp doctor` instead of the Python package's, or run it as root",
        ),
        Err(why) => Finding::unknown(why.clone(), AS_ROOT),
    }
}

/// Turns an unknown finding into a missing one if the device's permissions are the reason: a user
/// who may make namespaces lacks nothing else.
fn tun(finding: Finding) -> Finding {
    let denied = finding.state == CheckState::Unknown
        && std::fs::File::options().read(true).write(true).open("/dev/net/tun").is_err();
    if denied {
        let fix = "run as root, or let users open /dev/net/tun (chmod 0666 /dev/net/tun is safe: making a \
                    device needs CAP_NET_ADMIN)";
        return Finding::missing("no permission to open /dev/net/tun", fix);
    }
    finding
}

/// Turns a refusal into a missing feature: a lacking permission is the finding here.
fn fifo(finding: Finding) -> Finding {
    match finding.state {
        CheckState::Unknown | CheckState::Missing => Finding::missing(
            finding.found,
            "run as root, or give CAP_SYS_NICE or a real-time limit (rtprio in /etc/security/limits.conf)",
        ),
        _ => finding,
    }
}

/// Finding of the queue rule: either kind of rule is enough, together with its program.
fn queue_rule(nft: Finding, xt: Finding, nft_tool: bool, iptables_tool: bool) -> Finding {
    let ok = |finding: &Finding| finding.state == CheckState::Ok;
    match (ok(&nft), ok(&xt)) {
        (true, _) if nft_tool => Finding::ok("queue statement of nftables"),
        (_, true) if iptables_tool => Finding::ok("NFQUEUE target of iptables"),
        (true, true) => Finding::missing(
            "the kernel has it; neither nft nor iptables is installed",
            "install nft (Debian: apt install nftables)",
        ),
        (true, false) => Finding::missing(
            "the kernel has the queue statement of nftables; nft is not installed",
            "install nft (Debian: apt install nftables)",
        ),
        (false, true) => Finding::missing(
            "the kernel has the NFQUEUE target of iptables; iptables is not installed",
            "install iptables (Debian: apt install iptables)",
        ),
        (false, false) if nft.state == CheckState::Unknown || xt.state == CheckState::Unknown => {
            Finding::unknown(nft.found, AS_ROOT)
        }
        (false, false) => Finding::missing(
            format!("nftables: {}; iptables: {}", nft.found, xt.found),
            format!("{} or CONFIG_NETFILTER_XT_TARGET_NFQUEUE", nft.fix),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        name: &'static str,
        state: CheckState,
        needs: &'static [LiveCommand],
        helps: &'static [LiveCommand],
    ) -> Check {
        Finding { state, found: String::new(), fix: "fix".into() }.named(name, needs, helps, "")
    }

    fn outcomes(outcome: &Outcome) -> Result<Features, String> {
        use Feature::{
            AfPacket, Namespace, NetfilterMirror, Nfqueue, NftQueue, SchedFifo, TcMirror, Tun,
            XtQueue,
        };
        let all = [
            Namespace,
            Tun,
            Nfqueue,
            NftQueue,
            XtQueue,
            AfPacket,
            SchedFifo,
            NetfilterMirror,
            TcMirror,
        ];
        Ok(all.map(|feature| (feature, outcome.clone())).into())
    }

    #[test]
    fn a_command_is_as_good_as_the_worst_it_needs() {
        let checks = [
            check("a", CheckState::Unknown, LINK, NOBODY),
            check("b", CheckState::Missing, LINK, NOBODY),
            check("c", CheckState::Missing, GATEWAY, LINK),
        ];
        let verdict = verdict(LiveCommand::Link, &checks);
        assert_eq!(verdict.state, CheckState::Missing);
        assert_eq!(verdict.lacks, ["a", "b"]);
    }

    #[test]
    fn what_only_helps_cannot_make_a_command_fail() {
        let checks = [
            check("a", CheckState::Ok, LINK, NOBODY),
            check("b", CheckState::Missing, NOBODY, LINK),
        ];
        let verdict = verdict(LiveCommand::Link, &checks);
        assert_eq!((verdict.state, verdict.lacks), (CheckState::Degraded, vec![]));
    }

    #[test]
    fn whatever_happened_all_that_is_not_ok_has_a_fix_and_only_that() {
        let why = || "why".to_owned();
        for features in [
            outcomes(&Outcome::Works(why())),
            outcomes(&Outcome::Absent(why())),
            outcomes(&Outcome::Refused(why())),
            Ok(Features::new()),
            Err(why()),
        ] {
            for check in tried(&features) {
                assert_eq!(check.fix.is_empty(), check.state == CheckState::Ok, "{check:?}");
            }
        }
    }

    #[test]
    fn without_a_privilege_the_kernel_is_not_blamed() {
        let refused = tried(&outcomes(&Outcome::Refused("no".into())));
        let state = |name| refused.iter().find(|check| check.name == name).unwrap().state;
        assert_eq!(state("nfqueue"), CheckState::Unknown);
        assert_eq!(state("queue-rule"), CheckState::Unknown);
        assert_eq!(state("sched-fifo"), CheckState::Missing);
        assert_eq!(state("data-path"), CheckState::Missing);
    }

    #[test]
    fn the_path_is_the_one_that_the_daemon_would_take() {
        use Feature::{NetfilterMirror, TcMirror};
        let with = |netfilter: Outcome, tc: Outcome| {
            Ok(Features::from([(NetfilterMirror, netfilter), (TcMirror, tc)]))
        };
        let works = || Outcome::Works(String::new());
        let absent = || Outcome::Absent("no BTF".to_owned());
        let of = |wanted, features: &_| data_path(wanted, features, &[]);
        let both = with(works(), works());
        assert!(of(DataPath::Auto, &both).found.starts_with("netfilter: "));
        assert!(of(DataPath::Tc, &both).found.starts_with("tc: "));
        let tc = with(absent(), works());
        assert_eq!(of(DataPath::Auto, &tc), Finding::ok("tc: not by netfilter: no BTF"));
        assert_eq!(of(DataPath::Netfilter, &tc).state, CheckState::Missing);
        let table = [FlowTable::default()];
        assert!(data_path(DataPath::Auto, &both, &table).found.starts_with("tc: "));
        assert_eq!(data_path(DataPath::Netfilter, &both, &table).state, CheckState::Degraded);
        let hardware = [FlowTable { is_by_hardware: true, ..FlowTable::default() }];
        assert_eq!(data_path(DataPath::Auto, &both, &hardware).state, CheckState::Degraded);
    }

    #[test]
    fn either_rule_serves_with_its_own_program() {
        let (yes, no) = (|| Finding::ok(""), || Finding::missing("no", "fix"));
        assert_eq!(queue_rule(yes(), no(), true, false).state, CheckState::Ok);
        assert_eq!(queue_rule(no(), yes(), false, true).state, CheckState::Ok);
        assert_eq!(
            queue_rule(yes(), no(), false, true).fix,
            "install nft (Debian: apt install nftables)"
        );
        assert_eq!(
            queue_rule(no(), yes(), true, false).fix,
            "install iptables (Debian: apt install iptables)"
        );
        assert_eq!(queue_rule(no(), no(), true, true).state, CheckState::Missing);
    }
}
