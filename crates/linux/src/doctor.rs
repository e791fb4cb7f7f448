//! What this machine can do for the live commands, what is missing, how to fix it.
//!
//! Everything is looked at without changing it: what the kernel tells (`host`), what can be tried
//! in a namespace that nobody else sees (`sandbox`), which programs are installed (`tools`). Each
//! look gives a [`Check`]; the checks that a command needs decide its [`Verdict`]. Privileges are
//! not required: what cannot be seen without them is [`CheckState::Unknown`].

mod host;
mod offload;
mod parse;
mod sandbox;
mod tools;

pub(crate) use host::sees_all_maps;
pub use sandbox::probe;

use sandbox::{Feature, Features, Outcome};
use serde::Serialize;
use std::fmt;
use std::process::Command;

/// A command of airtcp that meets the kernel, or what it does by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LiveCommand {
    /// `airtcp link`: a command behind an emulated link.
    Link,
    /// `airtcp gateway`: the edge mechanisms on live traffic, some of them.
    Gateway,
    /// `airtcp gateway` with wake, its default mechanism.
    Wake,
    /// `airtcp delack`: this host's own acknowledgements, delayed.
    Delack,
    /// `airtcp cc`: congestion control in the kernel.
    Cc,
}

impl LiveCommand {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 5] = [Self::Link, Self::Gateway, Self::Wake, Self::Delack, Self::Cc];
    /// The name on the command line.
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

/// How a check ended, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// As airtcp wants it.
    Ok,
    /// It works, but less well than it could.
    Degraded,
    /// It could not be found out, mostly for want of a privilege.
    Unknown,
    /// It is not there, or not for this user.
    Missing,
}

impl CheckState {
    /// The name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Unknown => "unknown",
            Self::Missing => "missing",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, stable from release to release.
    pub name: &'static str,
    /// How it ended.
    pub state: CheckState,
    /// What was found, for people.
    pub found: String,
    /// The commands that cannot work without it.
    pub needed_for: &'static [LiveCommand],
    /// The commands that work better with it.
    pub helps: &'static [LiveCommand],
    /// What airtcp wants it for.
    pub purpose: &'static str,
    /// How to fix it; empty exactly if the state is [`CheckState::Ok`].
    pub fix: String,
}

/// What a look found, before it is known which commands need it.
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
    /// `name`, wanted for `purpose`, without which `needed_for` cannot work.
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

/// What the checks mean for one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The command.
    pub command: LiveCommand,
    /// The worst state among what it needs; [`CheckState::Degraded`] if only something that helps is not
    /// there.
    pub state: CheckState,
    /// The checks it needs that are missing or unknown.
    pub lacks: Vec<&'static str>,
}

/// Everything that was looked at, and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The checks, in a fixed order.
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

/// Looks at everything. `child` starts this program so that it calls [`probe`] and prints what that
/// returns.
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
const DELACK: &[LiveCommand] = &[LiveCommand::Delack];
/// They have packets wait in a queue.
const QUEUES: &[LiveCommand] = &[LiveCommand::Gateway, LiveCommand::Wake, LiveCommand::Delack];
/// They are better off with BPF programs of their own.
const HELPED_BY_BPF: &[LiveCommand] = &[LiveCommand::Gateway, LiveCommand::Delack];
const CC: &[LiveCommand] = &[LiveCommand::Cc];
/// They are BPF programs.
const BPF: &[LiveCommand] = &[LiveCommand::Wake, LiveCommand::Cc];
const NOBODY: &[LiveCommand] = &[];

/// The checks of what was tried in the sandbox.
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
            "the rules that choose the packets for the daemon",
        ),
        of(Feature::AfPacket, &kernel("CONFIG_PACKET")).named(
            "af-packet",
            DELACK,
            GATEWAY,
            "delack sees the data that arrive; captures by tcpdump and tshark",
        ),
    ]
}

const AS_ROOT: &str = "run `airtcp doctor` as root";

/// One feature: `fix` says what the kernel would need.
fn tried_one(features: &Result<Features, String>, feature: Feature, fix: &str) -> Finding {
    match features {
        Err(why) => Finding::unknown(why.clone(), AS_ROOT),
        Ok(features) => match features.get(&feature) {
            Some(Outcome::Works(_)) => Finding::ok("works"),
            Some(Outcome::Absent(why)) => Finding::missing(why.clone(), fix),
            Some(Outcome::Refused(why)) => Finding::unknown(why.clone(), AS_ROOT),
            None => Finding::unknown("not tried: no namespace of its own", AS_ROOT),
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

/// Nothing but the permissions of the device stands in the way of a user who may make namespaces.
fn tun(finding: Finding) -> Finding {
    let denied = finding.state == CheckState::Unknown
        && std::fs::File::options().read(true).write(true).open("/dev/net/tun").is_err();
    if denied {
        let fix = "run as root, or let users open /dev/net/tun (chmod 0666 /dev/net/tun is safe: making a \
                    device needs CAP_NET_ADMIN)";
        return Finding::missing("/dev/net/tun may not be opened", fix);
    }
    finding
}

/// That it is not permitted is a plain fact here.
fn fifo(finding: Finding) -> Finding {
    match finding.state {
        CheckState::Unknown | CheckState::Missing => Finding::missing(
            finding.found,
            "run as root, or give CAP_SYS_NICE or a real-time limit (rtprio in /etc/security/limits.conf)",
        ),
        _ => finding,
    }
}

/// Either rule serves, with the program that sets it.
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
        use Feature::{AfPacket, Namespace, Nfqueue, NftQueue, SchedFifo, Tun, XtQueue};
        let all = [Namespace, Tun, Nfqueue, NftQueue, XtQueue, AfPacket, SchedFifo];
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
