//! The rules in the language of nft(8): table `inet airtcp`, which belongs to the gateway alone.
//!
//! Chain `forward` jumps to `from_mobiles` for packets from mobiles, to `to_mobiles` for packets to
//! them, and to `uplinks` for packets that cross an uplink; last, it queues ICMP messages of
//! routers that a packet was too big. It is empty while nothing is queued. Chains `local_in` and
//! `local_out` check this host's own packets for uplinks. Sets contain the watched mobiles and
//! uplinks. Chain `queued` has the `queue` statement. It exists even if nothing is queued, so that
//! a kernel without the statement refuses the whole table. Chain `output` exempts injected packets
//! from connection tracking.
//!
//! Where the kernel lacks the `queue` statement (CONFIG_NFT_QUEUE), tests try only the rest.
//! `make test-kernels` has kernels with it.

use super::guard::{self, Gaps, Uses};
use super::{ACK_LENGTHS, AckSelection, Queued, RuleSet, Selection, run};
use airtcp_edge::MobileId;
use airtcp_gateway::config::{InterfacePattern, Mark};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;

const TABLE: &str = "inet airtcp";

/// The table of `airtcp delack`, with one chain.
const ACKS: &str = "inet airtcp_acks";

/// Deletes the table; creates it first, because deleting a missing table fails.
const DELETE: &str = "table inet airtcp\ndelete table inet airtcp\n";

pub(super) fn check(wanted: &RuleSet) -> Result<(), String> {
    run("nft", &["-c", "-f", "-"], &replacement(wanted)).map(drop)
}

pub(super) fn install(wanted: &RuleSet) -> Result<(), String> {
    // Fails if another version left a table with other hooks.
    nft(&update(wanted)).or_else(|_| nft(&replacement(wanted)))
}

pub(super) fn remove() -> Result<(), String> {
    nft(DELETE)
}

pub(super) fn gaps(wanted: &RuleSet) -> Result<Gaps, String> {
    let found = guard::uses(libc::NFPROTO_INET, "airtcp")
        .map_err(|error| format!("asking for chains: {error}"))?;
    Ok(guard::gaps(&uses(&text(wanted)), &found))
}

/// Use counts of the chains of a table, from its text.
fn uses(text: &str) -> Uses {
    let mut uses = Uses::new();
    let mut chain = None;
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["chain", name, "{"] => {
                uses.entry(name.to_owned()).or_default();
                chain = Some(name);
            }
            ["}"] => chain = None,
            ["type", ..] => {}
            [.., before, last] => {
                let entered = ["jump", "goto"].contains(&before).then_some(last);
                for name in chain.into_iter().chain(entered) {
                    *uses.entry(name.to_owned()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    uses
}

pub(super) fn install_acks(wanted: &AckSelection) -> Result<(), String> {
    nft(&format!("table {ACKS}\ndelete table {ACKS}\n{}", acks_text(wanted)))
}

pub(super) fn remove_acks() -> Result<(), String> {
    nft(&format!("table {ACKS}\ndelete table {ACKS}\n"))
}

fn acks_text(wanted: &AckSelection) -> String {
    let AckSelection { queue, interface, peers, ports } = wanted;
    let mut text = format!(
        "table {ACKS} {{\n  chain output {{\n    type filter hook output priority mangle; policy accept;\n"
    );
    let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
    let ports = match ports.join(", ") {
        ports if ports.is_empty() => vec![String::new()],
        ports => ["sport", "dport"].map(|end| format!(" tcp {end} {{ {ports} }}")).to_vec(),
    };
    for (version, nfproto, ipv4, length) in
        [("ip", "ipv4", true, ACK_LENGTHS[0]), ("ip6", "ipv6", false, ACK_LENGTHS[1])]
    {
        let of_version = peers.iter().filter(|peer| peer.addr().is_ipv4() == ipv4);
        let mut to: Vec<_> =
            of_version.map(|peer| format!(" {version} daddr {}", peer.trunc())).collect();
        if peers.is_empty() {
            to.push(String::new());
        }
        for (to, ports) in to.iter().flat_map(|to| ports.iter().map(move |ports| (to, ports))) {
            let _ = writeln!(
                text,
                "    oifname \"{interface}\" meta nfproto {nfproto} meta length {length}{to} tcp flags & \
                 (fin | syn | rst | psh | ack | urg) == ack{ports} queue num {queue} bypass"
            );
        }
    }
    text + "  }\n}\n"
}

pub(super) fn watch(before: &RuleSet, after: &RuleSet, mobiles: &[MobileId]) -> Result<(), String> {
    nft(&changes(before, after, mobiles))
}

/// One transaction for mobiles that begin or cease to be watched.
fn changes(before: &RuleSet, after: &RuleSet, mobiles: &[MobileId]) -> String {
    let mut text = String::new();
    for mobile in mobiles {
        let action = if after.watched.contains(mobile) { "add" } else { "delete" };
        let (set, element) = match mobile {
            MobileId::Host(ip) => (set(*ip), ip.to_string()),
            MobileId::Uplink(interface) => (UPLINKS, format!("\"{interface}\"")),
        };
        let _ = writeln!(text, "{action} element {TABLE} {set} {{ {element} }}");
    }
    for hook_chain in HOOK_CHAINS.iter().filter(|hook_chain| hook_chain.is_in(after)) {
        let chain = hook_chain.chain;
        match ((hook_chain.is_open)(before), (hook_chain.is_open)(after)) {
            (false, true) => {
                for rule in hook_chain.rules(after) {
                    let _ = writeln!(text, "add rule {TABLE} {chain} {rule}");
                }
            }
            (true, false) => {
                let _ = writeln!(text, "flush chain {TABLE} {chain}");
            }
            _ => {}
        }
    }
    text
}

/// A chain at a hook, which passes packets to the rules of the groups; empty while nothing is
/// queued.
struct HookChain {
    chain: &'static str,
    /// Hook and priority. Ahead of other chains of priority mangle, which may change the mark of
    /// the gateway's own packets.
    place: &'static str,
    is_open: fn(&RuleSet) -> bool,
    rules: &'static [&'static str],
    /// Further rule if there are uplinks; without `rules` the chain exists only for this.
    of_uplinks: &'static str,
    /// The gateway's own packets pass the hook, too, and must not be queued.
    is_for_own: bool,
    /// Interfaces as in [`RuleSet::too_big`] whose router messages pass this hook.
    too_big: fn(&RuleSet) -> BTreeSet<Option<InterfacePattern>>,
}

const HOOK_CHAINS: [HookChain; 3] = [
    HookChain {
        chain: "forward",
        place: "forward priority mangle",
        is_open: queues,
        rules: &["meta l4proto tcp jump from_mobiles", "meta l4proto tcp jump to_mobiles"],
        of_uplinks: "meta l4proto tcp jump uplinks",
        is_for_own: false,
        too_big: |wanted| wanted.too_big.clone(),
    },
    HookChain {
        chain: "local_in",
        place: "input priority mangle - 1",
        is_open: RuleSet::queues_uplinks,
        rules: &[],
        of_uplinks: "meta l4proto tcp jump over_uplinks",
        is_for_own: false,
        too_big: RuleSet::too_big_uplinks,
    },
    HookChain {
        chain: "local_out",
        place: "output priority mangle - 1",
        is_open: RuleSet::queues_uplinks,
        rules: &[],
        of_uplinks: "meta l4proto tcp jump over_uplinks",
        is_for_own: true,
        too_big: |_| BTreeSet::new(),
    },
];

impl HookChain {
    fn is_in(&self, wanted: &RuleSet) -> bool {
        !self.rules.is_empty() || !wanted.uplinks.is_empty()
    }

    fn rules(&self, wanted: &RuleSet) -> Vec<String> {
        let others = match self.is_for_own {
            true => format!("{} ", marked(wanted.mark, false)),
            false => String::new(),
        };
        let of_uplinks =
            (!wanted.uplinks.is_empty()).then(|| format!("{others}{}", self.of_uplinks));
        let rules = self.rules.iter().map(|&rule| rule.to_owned()).chain(of_uplinks);
        let too_big = (self.too_big)(wanted);
        rules.chain(too_big.iter().flat_map(|&from| messages(from))).collect()
    }
}

/// Rules for messages of routers, from an interface (`None`: any), that a packet was too big.
fn messages(interface: Option<InterfacePattern>) -> [String; 2] {
    let from = interface.map_or_else(String::new, |from| format!("iifname \"{from}\" "));
    ["icmp type destination-unreachable icmp code frag-needed", "icmpv6 type packet-too-big"]
        .map(|message| format!("{from}{message} goto queued"))
}

/// Match of packets with this mark, or without it.
fn marked(Mark { value, mask }: Mark, is_marked: bool) -> String {
    match (mask, is_marked) {
        (u32::MAX, true) => format!("meta mark {value:#x}"),
        (u32::MAX, false) => format!("meta mark != {value:#x}"),
        (_, true) => format!("meta mark and {mask:#x} == {value:#x}"),
        (_, false) => format!("meta mark and {mask:#x} != {value:#x}"),
    }
}

/// The set of watched uplinks.
const UPLINKS: &str = "watched_uplinks";

fn queues(wanted: &RuleSet) -> bool {
    wanted.queues(true) || wanted.queues(false)
}

fn nft(text: &str) -> Result<(), String> {
    run("nft", &["-f", "-"], text).map(drop)
}

/// One transaction that deletes the table and creates it again.
fn replacement(wanted: &RuleSet) -> String {
    format!("{DELETE}{}", text(wanted))
}

/// One transaction that replaces the table's content but keeps its hooks: when a hook is deleted,
/// the kernel drops the packets from it that wait in the queue.
fn update(wanted: &RuleSet) -> String {
    let uplinks = (UPLINKS, "ifname", !wanted.uplinks.is_empty());
    let mobiles = [("watched_ipv4", "ipv4_addr", true), ("watched_ipv6", "ipv6_addr", true)];
    let mut update = format!("table {TABLE}\nflush table {TABLE}\n");
    for (name, kind, _) in mobiles.into_iter().chain([uplinks]).filter(|(_, _, is_in)| *is_in) {
        // Created first: flushing a missing set fails.
        let _ = writeln!(update, "add set {TABLE} {name} {{ type {kind}; }}");
        let _ = writeln!(update, "flush set {TABLE} {name}");
    }
    update + &text(wanted)
}

/// The set of watched mobiles for an address.
fn set(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "watched_ipv4" } else { "watched_ipv6" }
}

/// Definition of the table.
pub(super) fn text(wanted: &RuleSet) -> String {
    let mut text = format!("table {TABLE} {{\n");
    for (name, kind, ipv4) in
        [("watched_ipv4", "ipv4_addr", true), ("watched_ipv6", "ipv6_addr", false)]
    {
        let of_kind = wanted.hosts().filter(|mobile| mobile.is_ipv4() == ipv4);
        text += &set_of(name, kind, of_kind.map(|mobile| mobile.to_string()));
    }
    if !wanted.uplinks.is_empty() {
        let watched = wanted.watched.iter().filter_map(|mobile| mobile.uplink());
        text += &set_of(UPLINKS, "ifname", watched.map(|name| format!("\"{name}\"")));
    }
    let _ = writeln!(text, "  chain queued {{\n    queue num {} bypass\n  }}", wanted.queue);
    for (chain, address, interface) in
        [("from_mobiles", "saddr", "iifname"), ("to_mobiles", "daddr", "oifname")]
    {
        let _ = writeln!(text, "  chain {chain} {{");
        for group in &wanted.groups {
            text += &rules(group, address, interface);
        }
        text.push_str("  }\n");
    }
    if !wanted.uplinks.is_empty() {
        text += &over_uplinks(wanted);
    }
    for hook_chain in HOOK_CHAINS.iter().filter(|hook_chain| hook_chain.is_in(wanted)) {
        let HookChain { chain, place, is_open, .. } = hook_chain;
        let _ = writeln!(text, "  chain {chain} {{\n    type filter hook {place}; policy accept;");
        for rule in hook_chain.rules(wanted).iter().filter(|_| is_open(wanted)) {
            let _ = writeln!(text, "    {rule}");
        }
        text.push_str("  }\n");
    }
    if wanted.notrack {
        text += "  chain output {\n    type filter hook output priority raw; policy accept;\n";
        for (uplink, _) in &wanted.uplinks {
            let _ = writeln!(text, "    oifname \"{uplink}\" return");
        }
        let _ = write!(text, "    {} notrack\n  }}\n", marked(wanted.mark, true));
    }
    text.push_str("}\n");
    text
}

fn set_of(name: &str, kind: &str, elements: impl Iterator<Item = String>) -> String {
    let elements: Vec<_> = elements.collect();
    let elements = match elements.join(", ") {
        none if none.is_empty() => none,
        some => format!("    elements = {{ {some} }}\n"),
    };
    format!("  set {name} {{\n    type {kind}\n{elements}  }}\n")
}

/// The chains of uplinks, which leave out the mobiles of groups.
fn over_uplinks(wanted: &RuleSet) -> String {
    let mut text = "  chain over_uplinks {\n".to_owned();
    for (uplink, _) in wanted.uplinks.iter().filter(|(_, queued)| *queued == Queued::Always) {
        for interface in ["iifname", "oifname"] {
            let _ = writeln!(text, "    {interface} \"{uplink}\" goto queued");
        }
    }
    for interface in ["iifname", "oifname"] {
        let _ = writeln!(text, "    {interface} @{UPLINKS} goto queued");
    }
    text += "  }\n  chain uplinks {\n";
    for (address, interface) in [("saddr", "iifname"), ("daddr", "oifname")] {
        for group in &wanted.groups {
            let _ = writeln!(text, "{} return", selector(group, address, interface));
        }
    }
    text + "    jump over_uplinks\n  }\n"
}

/// The rules of one group in one direction.
fn rules(group: &Selection, address: &str, interface: &str) -> String {
    let selector = selector(group, address, interface);
    let Selection { addresses, queued, .. } = group;
    match queued {
        Queued::Always => format!("{selector} goto queued\n"),
        Queued::Never => format!("{selector} return\n"),
        Queued::Watched => {
            // A mobile belongs to the first group that contains it.
            let (set, version) = (set(addresses.addr()), version(addresses));
            format!(
                "{selector} {version} saddr @{set} goto queued\n{selector} {version} daddr @{set} goto queued\n{selector} return\n"
            )
        }
    }
}

/// Match of a rule for packets of one group in one direction.
fn selector(group: &Selection, address: &str, interface: &str) -> String {
    let Selection { addresses, interface: name, .. } = group;
    let behind = name.as_ref().map_or_else(String::new, |name| format!("{interface} \"{name}\" "));
    format!("    {behind}{} {address} {}", version(addresses), addresses.trunc())
}

fn version(net: &IpNet) -> &'static str {
    match net {
        IpNet::V4(_) => "ip",
        IpNet::V6(_) => "ip6",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{idle_and_not, mobile, on_board, uplink_idle_and_not, wanted};
    use super::*;

    #[test]
    fn pure_acks_to_the_chosen_peers_are_queued_on_output() {
        let wanted = super::super::tests::acks();
        let rule = |end: &str| {
            format!(
                "    oifname \"wlan0\" meta nfproto ipv4 meta length 52 ip daddr 10.0.0.0/8 tcp flags & \
                 (fin | syn | rst | psh | ack | urg) == ack tcp {end} {{ 80, 443 }} queue num 9 bypass\n"
            )
        };
        let head = "table inet airtcp_acks {\n  chain output {\n    type filter hook output priority mangle; policy accept;\n";
        let expected = format!("{head}{}{}  }}\n}}\n", rule("sport"), rule("dport"));
        assert_eq!(acks_text(&wanted), expected);
    }

    #[test]
    fn packets_from_and_to_each_group_are_queued_in_the_order_of_groups() {
        let wanted = "table inet airtcp {
  set watched_ipv4 {
    type ipv4_addr
    elements = { 10.1.2.3 }
  }
  set watched_ipv6 {
    type ipv6_addr
  }
  chain queued {
    queue num 7 bypass
  }
  chain from_mobiles {
    ip saddr 10.1.0.0/16 ip saddr @watched_ipv4 goto queued
    ip saddr 10.1.0.0/16 ip daddr @watched_ipv4 goto queued
    ip saddr 10.1.0.0/16 return
    iifname \"wlan0\" ip saddr 10.0.0.0/8 goto queued
    ip6 saddr fd00:1::/64 goto queued
  }
  chain to_mobiles {
    ip daddr 10.1.0.0/16 ip saddr @watched_ipv4 goto queued
    ip daddr 10.1.0.0/16 ip daddr @watched_ipv4 goto queued
    ip daddr 10.1.0.0/16 return
    oifname \"wlan0\" ip daddr 10.0.0.0/8 goto queued
    ip6 daddr fd00:1::/64 goto queued
  }
  chain forward {
    type filter hook forward priority mangle; policy accept;
    meta l4proto tcp jump from_mobiles
    meta l4proto tcp jump to_mobiles
    icmp type destination-unreachable icmp code frag-needed goto queued
    icmpv6 type packet-too-big goto queued
  }
  chain output {
    type filter hook output priority raw; policy accept;
    meta mark 0x61697274 notrack
  }
}
";
        assert_eq!(text(&super::super::tests::wanted()), wanted);
    }

    #[test]
    fn packets_meet_no_rule_while_nothing_is_queued() {
        let [idle, watching] = idle_and_not();
        assert!(!text(&idle).contains("jump"));
        let mobiles = [mobile("10.1.2.3")];
        assert_eq!(
            changes(&idle, &watching, &mobiles),
            "add element inet airtcp watched_ipv4 { 10.1.2.3 }
add rule inet airtcp forward meta l4proto tcp jump from_mobiles
add rule inet airtcp forward meta l4proto tcp jump to_mobiles
add rule inet airtcp forward icmp type destination-unreachable icmp code frag-needed goto queued
add rule inet airtcp forward icmpv6 type packet-too-big goto queued
"
        );
        assert_eq!(
            changes(&watching, &idle, &mobiles),
            "delete element inet airtcp watched_ipv4 { 10.1.2.3 }
flush chain inet airtcp forward
"
        );
    }

    #[test]
    fn a_chain_is_used_by_its_rules_and_by_those_that_enter_it() {
        let found = uses(&text(&super::super::tests::wanted()));
        let wanted = [
            ("forward", 4),
            ("from_mobiles", 5 + 1),
            ("output", 1),
            ("queued", 1 + 8 + 2),
            ("to_mobiles", 5 + 1),
        ];
        assert_eq!(found, wanted.map(|(chain, count)| (chain.to_owned(), count)).into());
    }

    #[test]
    fn a_mark_with_a_mask_leaves_the_other_bits_to_others() {
        let mark = Mark { value: 0x10, mask: 0xf0 };
        let text = text(&RuleSet { mark, ..on_board() });
        assert!(text.contains("    meta mark and 0xf0 == 0x10 notrack\n"), "{text}");
        assert!(text.contains("    meta mark and 0xf0 != 0x10 meta l4proto tcp jump"), "{text}");
    }

    #[test]
    fn packets_over_uplinks_are_queued_unless_they_are_a_mobiles_or_the_gateways_own() {
        let wanted = "table inet airtcp {
  set watched_ipv4 {
    type ipv4_addr
  }
  set watched_ipv6 {
    type ipv6_addr
  }
  set watched_uplinks {
    type ifname
    elements = { \"wwan0\" }
  }
  chain queued {
    queue num 7 bypass
  }
  chain from_mobiles {
    iifname \"wlan0\" ip saddr 10.0.0.0/8 goto queued
  }
  chain to_mobiles {
    oifname \"wlan0\" ip daddr 10.0.0.0/8 goto queued
  }
  chain over_uplinks {
    iifname \"wwan1\" goto queued
    oifname \"wwan1\" goto queued
    iifname @watched_uplinks goto queued
    oifname @watched_uplinks goto queued
  }
  chain uplinks {
    iifname \"wlan0\" ip saddr 10.0.0.0/8 return
    oifname \"wlan0\" ip daddr 10.0.0.0/8 return
    jump over_uplinks
  }
  chain forward {
    type filter hook forward priority mangle; policy accept;
    meta l4proto tcp jump from_mobiles
    meta l4proto tcp jump to_mobiles
    meta l4proto tcp jump uplinks
    iifname \"wlan0\" icmp type destination-unreachable icmp code frag-needed goto queued
    iifname \"wlan0\" icmpv6 type packet-too-big goto queued
    iifname \"wwan0\" icmp type destination-unreachable icmp code frag-needed goto queued
    iifname \"wwan0\" icmpv6 type packet-too-big goto queued
  }
  chain local_in {
    type filter hook input priority mangle - 1; policy accept;
    meta l4proto tcp jump over_uplinks
    iifname \"wwan0\" icmp type destination-unreachable icmp code frag-needed goto queued
    iifname \"wwan0\" icmpv6 type packet-too-big goto queued
  }
  chain local_out {
    type filter hook output priority mangle - 1; policy accept;
    meta mark != 0x61697274 meta l4proto tcp jump over_uplinks
  }
  chain output {
    type filter hook output priority raw; policy accept;
    oifname \"wwan0\" return
    oifname \"wwan1\" return
    meta mark 0x61697274 notrack
  }
}
";
        assert_eq!(text(&on_board()), wanted);
    }

    #[test]
    fn packets_over_an_uplink_meet_no_rule_while_nothing_is_queued() {
        let [idle, watching] = uplink_idle_and_not();
        let uplinks: Vec<_> = watching.watched.iter().copied().collect();
        assert!(!text(&idle).contains("tcp jump"));
        assert_eq!(
            changes(&watching, &idle, &uplinks),
            "delete element inet airtcp watched_uplinks { \"wwan0\" }
flush chain inet airtcp forward
flush chain inet airtcp local_in
flush chain inet airtcp local_out
"
        );
        let begin = changes(&idle, &watching, &uplinks);
        assert_eq!(begin.matches("add rule").count(), 9, "{begin}");
    }

    #[test]
    fn router_messages_are_queued_only_for_mechanisms_that_replay() {
        let deaf = RuleSet { too_big: BTreeSet::new(), ..on_board() };
        assert!(!text(&deaf).contains("icmp") && text(&on_board()).contains("icmp"));
    }

    #[test]
    fn without_the_queue_statement_nft_takes_it() {
        // Kernels without CONFIG_NFT_QUEUE refuse only that: `counter` stands for it.
        let [idle, watching] = idle_and_not();
        let mobiles = [mobile("10.1.2.3")];
        let [uplink_idle, uplink_watched] = uplink_idle_and_not();
        let uplinks: Vec<_> = uplink_watched.watched.iter().copied().collect();
        let all = [
            replacement(&wanted()),
            update(&wanted()),
            update(&idle),
            replacement(&RuleSet { mark: Mark { value: 0x10, mask: 0xf0 }, ..on_board() }),
            replacement(&idle),
            changes(&idle, &watching, &mobiles),
            changes(&watching, &idle, &mobiles),
            replacement(&on_board()),
            replacement(&uplink_idle),
            changes(&uplink_idle, &uplink_watched, &uplinks),
            changes(&uplink_watched, &uplink_idle, &uplinks),
        ];
        let text = all.concat().replace("queue num 7 bypass", "counter");
        let result = run("unshare", &["-n", "nft", "-c", "-f", "-"], &text);
        match result {
            Err(error) if error.contains("unshare") || error.contains("not installed") => {
                airtcp_testing::skip(&format!("root and nft: {error}"));
            }
            other => assert_eq!(other.map(drop), Ok(())),
        }
    }
}
