//! The rules in the language of nft(8): table `inet airtcp`, which belongs to the gateway alone.
//!
//! Chain `forward` asks `from_mobiles` whether a packet comes from a mobile, then `to_mobiles`
//! whether it goes to one, unless nothing is queued: then it is empty. Two sets have the watched
//! mobiles. Chain `queued` has the `queue` statement. It is there even if nothing is queued, so
//! that a kernel without the statement refuses the whole table. Chain `output` exempts injected
//! packets from connection tracking.
//!
//! The tests' kernels lack the `queue` statement (CONFIG_NFT_QUEUE), so tests try only the rest.
//! The statement itself was tried by hand on Linux 6.1.

use super::super::inject::MARK;
use super::{ACK_LENGTHS, AckSelection, Queued, Selection, Wanted, run};
use ipnet::IpNet;
use std::fmt::Write;
use std::net::IpAddr;

const TABLE: &str = "inet airtcp";

/// The table of `airtcp delack`, with one chain.
const ACKS: &str = "inet airtcp_acks";

/// The table is made, so that it can be deleted, whether it was there or not.
const DELETE: &str = "table inet airtcp\ndelete table inet airtcp\n";

pub(super) fn check(wanted: &Wanted) -> Result<(), String> {
    run("nft", &["-c", "-f", "-"], &replacement(wanted)).map(drop)
}

pub(super) fn install(wanted: &Wanted) -> Result<(), String> {
    nft(&replacement(wanted))
}

pub(super) fn remove() -> Result<(), String> {
    nft(DELETE)
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

pub(super) fn watch(before: &Wanted, after: &Wanted, mobiles: &[IpAddr]) -> Result<(), String> {
    nft(&changes(before, after, mobiles))
}

/// One transaction for mobiles that are watched from now on, or no more.
fn changes(before: &Wanted, after: &Wanted, mobiles: &[IpAddr]) -> String {
    let mut text = String::new();
    for mobile in mobiles {
        let action = if after.watched.contains(mobile) { "add" } else { "delete" };
        let _ = writeln!(text, "{action} element {TABLE} {} {{ {mobile} }}", set(*mobile));
    }
    match (queues(before), queues(after)) {
        (false, true) => {
            for rule in GATE {
                let _ = writeln!(text, "add rule {TABLE} forward {rule}");
            }
        }
        (true, false) => {
            let _ = writeln!(text, "flush chain {TABLE} forward");
        }
        _ => {}
    }
    text
}

/// What sends packets through the rules of the groups.
const GATE: [&str; 2] = ["meta l4proto tcp jump from_mobiles", "meta l4proto tcp jump to_mobiles"];

fn queues(wanted: &Wanted) -> bool {
    wanted.queues(true) || wanted.queues(false)
}

fn nft(text: &str) -> Result<(), String> {
    run("nft", &["-f", "-"], text).map(drop)
}

/// One transaction: what was there goes, what is wanted comes.
fn replacement(wanted: &Wanted) -> String {
    format!("{DELETE}{}", text(wanted))
}

/// The set of watched mobiles that has such addresses.
fn set(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "watched_ipv4" } else { "watched_ipv6" }
}

/// The table.
pub(super) fn text(wanted: &Wanted) -> String {
    let mut text = format!("table {TABLE} {{\n");
    for (name, kind, ipv4) in
        [("watched_ipv4", "ipv4_addr", true), ("watched_ipv6", "ipv6_addr", false)]
    {
        let of_kind = wanted.watched.iter().filter(|mobile| mobile.is_ipv4() == ipv4);
        let mobiles: Vec<_> = of_kind.map(IpAddr::to_string).collect();
        let _ = write!(text, "  set {name} {{\n    type {kind}\n");
        if !mobiles.is_empty() {
            let _ = writeln!(text, "    elements = {{ {} }}", mobiles.join(", "));
        }
        text.push_str("  }\n");
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
    text.push_str(
        "  chain forward {\n    type filter hook forward priority mangle; policy accept;\n",
    );
    for rule in GATE.iter().filter(|_| queues(wanted)) {
        let _ = writeln!(text, "    {rule}");
    }
    text.push_str("  }\n");
    if wanted.notrack {
        let _ = write!(
            text,
            "  chain output {{
    type filter hook output priority raw; policy accept;
    meta mark {MARK:#x} notrack
  }}
"
        );
    }
    text.push_str("}\n");
    text
}

/// The rules of one group in one direction.
fn rules(group: &Selection, address: &str, interface: &str) -> String {
    let Selection { addresses, interface: name, queued } = group;
    let version = match addresses {
        IpNet::V4(_) => "ip",
        IpNet::V6(_) => "ip6",
    };
    let behind = name.as_ref().map_or_else(String::new, |name| format!("{interface} \"{name}\" "));
    let these = format!("    {behind}{version} {address} {}", addresses.trunc());
    match queued {
        Queued::Always => format!("{these} goto queued\n"),
        Queued::Never => format!("{these} return\n"),
        Queued::Watched => {
            // The first group that has a mobile counts.
            let set = set(addresses.addr());
            format!(
                "{these} {version} saddr @{set} goto queued\n{these} {version} daddr @{set} goto queued\n{these} return\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{idle_and_not, wanted};
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
        let mobiles = ["10.1.2.3".parse().unwrap()];
        assert_eq!(
            changes(&idle, &watching, &mobiles),
            "add element inet airtcp watched_ipv4 { 10.1.2.3 }
add rule inet airtcp forward meta l4proto tcp jump from_mobiles
add rule inet airtcp forward meta l4proto tcp jump to_mobiles
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
    fn without_the_queue_statement_nft_takes_it() {
        // Kernels without CONFIG_NFT_QUEUE refuse only that: `counter` stands for it.
        let [idle, watching] = idle_and_not();
        let mobiles = ["10.1.2.3".parse().unwrap()];
        let all = [
            replacement(&wanted()),
            replacement(&idle),
            changes(&idle, &watching, &mobiles),
            changes(&watching, &idle, &mobiles),
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
