//! Probes that try features in a private network namespace.
//!
//! Read first: network_namespaces(7), user_namespaces(7). The program starts itself as a child
//! ([`features_from`]). The child moves into a new network namespace (and a user namespace if it is
//! not root), tries each [`Feature`] there, prints the results ([`probe`]) and ends. Everything it
//! made was in that namespace and ends with it. At most a module stays that the kernel loaded
//! automatically, as it would for any user of the feature.

use crate::datapath::mirror::{self, MirrorPath};
use crate::kernel::netlink::{Message, Netlink, one, one_name};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// A feature that can be tried without side effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Feature {
    /// A new network namespace.
    Namespace,
    /// A TUN device.
    Tun,
    /// Binding a queue of NFQUEUE.
    Nfqueue,
    /// The `queue` statement of nftables.
    NftQueue,
    /// The NFQUEUE target of iptables.
    XtQueue,
    /// A packet socket.
    AfPacket,
    /// BPF programs at netfilter's hooks that mirror packets.
    NetfilterMirror,
    /// BPF programs of tc that mirror packets.
    TcMirror,
    /// Real-time scheduling (tried outside the namespace, on the child only).
    SchedFifo,
}

/// Result of trying a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// The feature works; the text says in which way, if there are several.
    Works(String),
    /// The kernel does not have the feature.
    Absent(String),
    /// The feature was not permitted, or could not be tried.
    Refused(String),
}

/// A function that uses a feature once.
type Try = fn() -> io::Result<()>;

/// Results of the features that were tried.
pub(super) type Features = BTreeMap<Feature, Outcome>;

/// Starts `child`, which must call [`probe`], and reads its results; the error says why this
/// failed.
pub(super) fn features_from(child: &mut Command) -> Result<Features, String> {
    let output = child
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("cannot re-execute airtcp: {error}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("the probe failed: {}", output.status))
}

/// Moves this process into private namespaces, tries every feature and returns the results as one
/// line of JSON. Only for a process that does nothing else and then ends.
pub fn probe() -> String {
    let mut found = Features::from([(Feature::SchedFifo, outcome(sched_fifo()))]);
    let is_root = unshare(CloneFlags::CLONE_NEWNET).is_ok();
    // The kernel refuses BPF in a user namespace, and elsewhere nothing must be attached.
    let mirror = if is_root { mirror::attempt } else { mirror::attempt_to_load };
    for (feature, path) in
        [(Feature::NetfilterMirror, MirrorPath::Netfilter), (Feature::TcMirror, MirrorPath::Tc)]
    {
        found.insert(feature, outcome(mirror(path)));
    }
    let entered = if is_root { Ok("as root") } else { enter_user_namespace() };
    match entered {
        Ok(how) => {
            found.insert(Feature::Namespace, Outcome::Works(how.to_owned()));
            let tries: [(Feature, Try); 5] = [
                (Feature::Tun, tun),
                (Feature::Nfqueue, nfqueue),
                (Feature::NftQueue, nft_queue),
                (Feature::XtQueue, xt_queue),
                (Feature::AfPacket, || socket(libc::AF_PACKET)),
            ];
            found.extend(tries.map(|(feature, attempt)| (feature, outcome(attempt()))));
        }
        // unshare(2): this process has threads (Python libraries start some). That says nothing
        // about the machine, and the features stay untried.
        Err(Errno::EINVAL) => {}
        Err(error) => {
            found.insert(Feature::Namespace, Outcome::Refused(error.to_string()));
        }
    }
    serde_json::to_string(&found).expect("names and strings")
}

/// Classifies a result: a lacking permission says nothing about the kernel, any other error does.
fn outcome(result: io::Result<()>) -> Outcome {
    match result {
        Ok(()) => Outcome::Works(String::new()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Outcome::Refused(error.to_string())
        }
        Err(error) => Outcome::Absent(error.to_string()),
    }
}

fn enter_user_namespace() -> nix::Result<&'static str> {
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    Ok("in a user namespace")
}

fn sched_fifo() -> io::Result<()> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).map_err(
        |error| match error {
            thread_priority::Error::OS(errno) => io::Error::from_raw_os_error(errno),
            other => io::Error::other(format!("{other:?}")),
        },
    )
}

fn tun() -> io::Result<()> {
    // Opened here first: tun-rs would create a missing device file.
    std::fs::File::options().read(true).write(true).open("/dev/net/tun")?;
    tun_rs::DeviceBuilder::new().name("airtcp-probe").build_sync().map(drop)
}

fn socket(family: i32) -> io::Result<()> {
    Socket::new(Domain::from(family), Type::RAW, None).map(drop)
}

fn nfqueue() -> io::Result<()> {
    // NFQNL_MSG_CONFIG with an NFQA_CFG_CMD of `struct nfqnl_msg_config_cmd`: bind, padding, no
    // family.
    let bind = [libc::NFQNL_CFG_CMD_BIND as u8, 0, 0, 0];
    let request = Message::netfilter(
        libc::NFNL_SUBSYS_QUEUE,
        libc::NFQNL_MSG_CONFIG,
        libc::NLM_F_ACK,
        libc::AF_UNSPEC,
        0,
    )
    .with(libc::NFQA_CFG_CMD as u16, &bind);
    Netlink::open(libc::NETLINK_NETFILTER)?.ask(&request.finish()).map(drop)
}

fn nft_queue() -> io::Result<()> {
    const TABLE: &str = "airtcp-probe";
    let [begin, end] = [libc::NFNL_MSG_BATCH_BEGIN, libc::NFNL_MSG_BATCH_END].map(|kind| {
        let subsystem = (libc::NFNL_SUBSYS_NFTABLES as u16).to_be_bytes();
        Message::new(kind as u16, 0, &[libc::AF_UNSPEC as u8, 0, subsystem[0], subsystem[1]])
            .finish()
    });
    let change = |kind, flags| {
        let flags = flags | libc::NLM_F_CREATE;
        Message::netfilter(libc::NFNL_SUBSYS_NFTABLES, kind, flags, libc::NFPROTO_IPV4, 0)
            .with_name(NFTA_TABLE, TABLE)
    };
    let table = change(libc::NFT_MSG_NEWTABLE, 0).finish();
    let chain = change(libc::NFT_MSG_NEWCHAIN, 0).with_name(NFTA_CHAIN_NAME, "probe").finish();
    let number = one(NFTA_QUEUE_NUM, &0_u16.to_be_bytes());
    let queue = [one_name(NFTA_EXPR_NAME, "queue"), one(NFTA_EXPR_DATA | NESTED, &number)].concat();
    let rule = change(libc::NFT_MSG_NEWRULE, libc::NLM_F_ACK)
        .with_name(NFTA_RULE_CHAIN, "probe")
        .with_nested(NFTA_RULE_EXPRESSIONS, &one(NFTA_LIST_ELEM | NESTED, &queue))
        .finish();
    let batch = [begin, table, chain, rule, end].concat();
    Netlink::open(libc::NETLINK_NETFILTER)?.ask(&batch).map(drop)
}

/// The flag `NLA_F_NESTED` of linux/netlink.h.
const NESTED: u16 = 0x8000;
// linux/netfilter/nf_tables.h; the table's name is attribute 1 of tables, chains and rules.
const NFTA_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_QUEUE_NUM: u16 = 1;

fn xt_queue() -> io::Result<()> {
    // linux/netfilter/nf_tables_compat.h: looks up a target (1) by name and revision.
    const GET: i32 = 0;
    let request = Message::netfilter(
        libc::NFNL_SUBSYS_NFT_COMPAT,
        GET,
        libc::NLM_F_ACK,
        libc::NFPROTO_IPV4,
        0,
    )
    .with_name(1, "NFQUEUE")
    .with(2, &0_u32.to_be_bytes())
    .with(3, &1_u32.to_be_bytes());
    let asked = Netlink::open(libc::NETLINK_NETFILTER)?.ask(&request.finish());
    // Kernels without nft_compat list the targets of iptables-legacy.
    let listed = || std::fs::read_to_string("/proc/self/net/ip_tables_targets");
    match asked {
        Err(_) if listed().is_ok_and(|targets| targets.lines().any(|t| t == "NFQUEUE")) => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lacking_permission_says_nothing_about_the_kernel() {
        let of = |errno| outcome(Err(io::Error::from_raw_os_error(errno)));
        assert!(matches!(of(libc::EPERM), Outcome::Refused(_)));
        assert!(matches!(of(libc::EACCES), Outcome::Refused(_)));
        assert!(matches!(of(libc::ENOENT), Outcome::Absent(_)));
        assert_eq!(outcome(Ok(())), Outcome::Works(String::new()));
    }

    #[test]
    fn a_child_that_does_not_probe_is_reported() {
        let error = features_from(&mut Command::new("true")).unwrap_err();
        assert_eq!(error, "the probe failed: exit status: 0");
        let error = features_from(&mut Command::new("/no/such/program")).unwrap_err();
        assert!(error.starts_with("cannot re-execute airtcp: "), "{error}");
    }
}
