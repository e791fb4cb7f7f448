//! The rules in the language of iptables-restore(8).
//!
//! Chain `AIRTCP` of table `mangle` is entered from the end of FORWARD. It jumps to `AIRTCP-FROM`
//! for packets from mobiles, to `AIRTCP-TO` for packets to them, and queues ICMP messages of
//! routers that a packet was too big. `AIRTCP-WATCHED` has two rules for each watched mobile. With
//! uplinks, `AIRTCP-UPLINK` returns packets of mobiles and passes the others to `AIRTCP-OVER`,
//! which has the rules of each uplink; `AIRTCP-IN` and `AIRTCP-OUT` pass this host's own packets to
//! it. `AIRTCP` is not entered while nothing is queued: rules that queue nothing still cost a sixth
//! of the packet rate. Chain `AIRTCP` of table `raw`, entered from OUTPUT, exempts injected packets
//! from connection tracking. The verdict on a queued packet ends its traversal of `mangle`, so our
//! rules come after those of others. `airtcp delack` has only chain `AIRTCP-ACKS` of table
//! `mangle`, entered from OUTPUT.

use super::guard::{self, Gaps, Uses};
use super::{ACK_LENGTHS, AckSelection, Queued, RuleSet, Selection, run};
use airtcp_edge::{InterfaceName, MobileId};
use airtcp_gateway::config::InterfacePattern;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::OnceLock;

/// First chain of the gateway.
const ENTRY: &str = "AIRTCP";
/// Chain of `airtcp delack`.
const ACKS: &str = "AIRTCP-ACKS";
const FROM: &str = "AIRTCP-FROM";
const TO: &str = "AIRTCP-TO";
const WATCHED: &str = "AIRTCP-WATCHED";
const UPLINK: &str = "AIRTCP-UPLINK";
const OVER: &str = "AIRTCP-OVER";
const IN: &str = "AIRTCP-IN";
const OUT: &str = "AIRTCP-OUT";

/// A table of iptables with our chains.
struct Table {
    name: &'static str,
    entries: &'static [HookRule],
    chains: &'static [&'static str],
}

/// Rule in a built-in chain that jumps to one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HookRule {
    hook: &'static str,
    chain: &'static str,
    /// Appends (`-A`) or inserts (`-I`) the rule. In OUTPUT it comes first, because later rules may
    /// change the mark of the gateway's own packets.
    add: &'static str,
}

/// Tables in the order in which they are installed: the queue last.
const TABLES: [Table; 2] = [RAW, MANGLE];
const RAW: Table = Table {
    name: "raw",
    entries: &[HookRule { hook: "OUTPUT", chain: ENTRY, add: "-A" }],
    chains: &[ENTRY],
};
const MANGLE: Table = Table {
    name: "mangle",
    entries: &[FORWARD, INPUT, OUTPUT],
    chains: &[ENTRY, FROM, TO, WATCHED, UPLINK, OVER, IN, OUT],
};
const FORWARD: HookRule = HookRule { hook: "FORWARD", chain: ENTRY, add: "-A" };
const INPUT: HookRule = HookRule { hook: "INPUT", chain: IN, add: "-I" };
const OUTPUT: HookRule = HookRule { hook: "OUTPUT", chain: OUT, add: "-I" };
/// Number of chains in table mangle without uplinks.
const OF_MOBILES: usize = 4;
/// The table of `airtcp delack`.
const DELACK: Table = Table {
    name: "mangle",
    entries: &[HookRule { hook: "OUTPUT", chain: ACKS, add: "-A" }],
    chains: &[ACKS],
};

impl HookRule {
    /// The rule with an action: `-A` (also as printed by iptables-save), `-I` or `-D`.
    fn rule(&self, action: &str) -> String {
        format!("{action} {} -j {}", self.hook, self.chain)
    }

    fn is_wanted(&self, wanted: &RuleSet, family: Family) -> bool {
        match self.hook {
            "FORWARD" => family.is_queued(wanted),
            _ => wanted.queues_uplinks(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Ipv4,
    Ipv6,
}

const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

impl Family {
    fn has(self, address: IpAddr) -> bool {
        address.is_ipv4() == (self == Self::Ipv4)
    }
    /// Number of the family in nftables.
    fn protocol(self) -> i32 {
        match self {
            Self::Ipv4 => libc::NFPROTO_IPV4,
            Self::Ipv6 => libc::NFPROTO_IPV6,
        }
    }
    fn is_in(self, wanted: &RuleSet) -> bool {
        let has_mobiles = wanted.groups.iter().any(|group| self.has(group.addresses.addr()));
        has_mobiles || !wanted.uplinks.is_empty()
    }
    fn is_queued(self, wanted: &RuleSet) -> bool {
        wanted.queues(self == Self::Ipv4)
    }
}

/// Name of a program of the iptables family.
fn program(family: Family, suffix: &str) -> String {
    match family {
        Family::Ipv4 => format!("iptables-{suffix}"),
        Family::Ipv6 => format!("ip6tables-{suffix}"),
    }
}

fn restore(family: Family, text: &str) -> Result<(), String> {
    // Another program may hold the lock of the tables for a moment.
    run(&program(family, "restore"), &["--noflush", "--wait", "5"], text).map(drop)
}

pub(super) fn check(wanted: &RuleSet) -> Result<(), String> {
    for family in FAMILIES.into_iter().filter(|family| family.is_in(wanted)) {
        let all = script(wanted, family, |_, _| false);
        run(&program(family, "restore"), &["--noflush", "--test"], &all)?;
    }
    Ok(())
}

pub(super) fn install(wanted: &RuleSet) -> Result<(), String> {
    for family in FAMILIES {
        if family.is_in(wanted) {
            let present = present(family, &TABLES)?;
            let entered = |table: &Table, entry: &HookRule| {
                present.iter().any(|line| line.enters(table, entry))
            };
            restore(family, &script(wanted, family, entered))?;
        } else {
            // Removes earlier rules; fails if this host lacks the IP version.
            let _ = remove_family(family, &TABLES);
        }
    }
    Ok(())
}

pub(super) fn watch(before: &RuleSet, after: &RuleSet, mobiles: &[MobileId]) -> Result<(), String> {
    for family in FAMILIES.into_iter().filter(|family| family.is_in(after)) {
        let rules = changes(before, after, mobiles, family);
        if !rules.is_empty() {
            restore(family, &format!("*mangle\n{rules}COMMIT\n"))?;
        }
    }
    Ok(())
}

pub(super) fn remove() -> Result<(), String> {
    let results = FAMILIES.map(|family| remove_family(family, &TABLES));
    results.into_iter().collect()
}

/// True if the program is iptables-legacy, which has its own tables in the kernel.
pub(super) fn is_legacy() -> Result<bool, String> {
    static IS_LEGACY: OnceLock<bool> = OnceLock::new();
    if let Some(&known) = IS_LEGACY.get() {
        return Ok(known);
    }
    let is_legacy = run("iptables", &["--version"], "")?.contains("legacy");
    Ok(*IS_LEGACY.get_or_init(|| is_legacy))
}

pub(super) fn gaps(wanted: &RuleSet) -> Result<Gaps, String> {
    let is_legacy = is_legacy()?;
    let mut gaps = Gaps::new();
    for family in FAMILIES.into_iter().filter(|family| family.is_in(wanted)) {
        let all = script(wanted, family, |_, _| false);
        for table in &TABLES {
            let found = match is_legacy {
                true => uses(table, &saved(family, table)?),
                false => guard::uses(family.protocol(), table.name)
                    .map_err(|error| format!("asking for chains: {error}"))?,
            };
            gaps.extend(guard::gaps(&uses(table, &all), &found));
        }
    }
    Ok(gaps)
}

/// Use counts of our chains in a table, from the text of iptables-save or for iptables-restore.
fn uses(table: &Table, text: &str) -> Uses {
    let mut uses = Uses::new();
    let lines = text.lines().skip_while(|line| line.strip_prefix('*') != Some(table.name));
    for line in lines.take_while(|line| *line != "COMMIT") {
        let words: Vec<&str> = line.split(' ').collect();
        let declared = words[0].strip_prefix(':');
        let has_rule = ["-A", "-I"].contains(&words[0]).then(|| words[1]);
        let entered = words.windows(2).find(|pair| pair[0] == "-j").map(|pair| pair[1]);
        for (chain, count) in [(declared, 0), (has_rule, 1), (entered, 1)] {
            if let Some(chain) = chain.filter(|chain| table.chains.contains(chain)) {
                *uses.entry(chain.to_owned()).or_default() += count;
            }
        }
    }
    uses
}

pub(super) fn install_acks(wanted: &AckSelection) -> Result<(), String> {
    for family in FAMILIES {
        if wanted.has_family(family == Family::Ipv4) {
            let present = present(family, &[DELACK])?;
            let entered = present.iter().any(|line| line.enters(&DELACK, &DELACK.entries[0]));
            restore(family, &acks_script(wanted, family, entered))?;
        } else {
            let _ = remove_family(family, &[DELACK]);
        }
    }
    Ok(())
}

pub(super) fn remove_acks() -> Result<(), String> {
    let results = FAMILIES.map(|family| remove_family(family, &[DELACK]));
    results.into_iter().collect()
}

/// Input of iptables-restore for `airtcp delack`: replaces its chain, and enters it.
fn acks_script(wanted: &AckSelection, family: Family, entered: bool) -> String {
    let AckSelection { queue: number, interface, peers, ports } = wanted;
    let mut text = format!("*{}\n:{ACKS} - [0:0]\n", DELACK.name);
    if !entered {
        let _ = writeln!(text, "{}", DELACK.entries[0].rule("-A"));
    }
    let (any, length) = match family {
        Family::Ipv4 => ("0.0.0.0/0", ACK_LENGTHS[0]),
        Family::Ipv6 => ("::/0", ACK_LENGTHS[1]),
    };
    let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
    let ports = match ports.is_empty() {
        true => String::new(),
        false => format!(" -m multiport --ports {}", ports.join(",")),
    };
    let of_family = peers.iter().filter(|peer| family.has(peer.addr()));
    let mut destinations: Vec<_> = of_family.map(|peer| peer.trunc().to_string()).collect();
    if peers.is_empty() {
        destinations.push(any.to_owned());
    }
    for to in destinations {
        let _ = writeln!(
            text,
            "-A {ACKS} -d {to} -o {interface} -p tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG ACK \
             -m length --length {length}{ports} {}",
            queue(*number)
        );
    }
    text + "COMMIT\n"
}

fn remove_family(family: Family, tables: &[Table]) -> Result<(), String> {
    let present = present(family, tables)?;
    // The queue first.
    for table in tables.iter().rev() {
        let lines: Vec<_> = present.iter().filter(|line| line.table == table.name).collect();
        if lines.is_empty() {
            continue;
        }
        let mut text = format!("*{}\n", table.name);
        for line in &lines {
            if let Some(rule) = line.text.strip_prefix("-A ") {
                let _ = writeln!(text, "-D {rule}");
            }
        }
        for action in ["-F", "-X"] {
            for line in &lines {
                if let Some(chain) = line.chain() {
                    let _ = writeln!(text, "{action} {chain}");
                }
            }
        }
        text.push_str("COMMIT\n");
        restore(family, &text)?;
    }
    Ok(())
}

/// Existing lines about our chains: their declarations, and rules in other chains that enter them.
fn present(family: Family, tables: &[Table]) -> Result<Vec<Line>, String> {
    let mut present = Vec::new();
    for table in tables {
        present.extend(ours(table, &saved(family, table)?));
    }
    Ok(present)
}

/// Output of iptables-save for a table.
fn saved(family: Family, table: &Table) -> Result<String, String> {
    if is_legacy()? && !legacy_table(family, table.name) {
        // iptables-save would create the table.
        return Ok(String::new());
    }
    run(&program(family, "save"), &["-t", table.name], "")
}

/// A line of iptables-save about our chains.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    table: &'static str,
    text: String,
}

impl Line {
    /// True if the line is this rule in `table`.
    fn enters(&self, table: &Table, entry: &HookRule) -> bool {
        self.table == table.name && self.text == entry.rule("-A")
    }
    /// The chain that the line declares.
    fn chain(&self) -> Option<&str> {
        self.text.strip_prefix(':')?.split(' ').next()
    }
}

/// Lines about our chains in the output of iptables-save for `table`.
fn ours(table: &Table, saved: &str) -> Vec<Line> {
    let is_ours = |line: &&str| {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("-A"), Some(chain)) => {
                let enters = |entry: &HookRule| line.ends_with(&format!(" -j {}", entry.chain));
                !table.chains.contains(&chain) && table.entries.iter().any(enters)
            }
            (Some(first), _) => {
                first.strip_prefix(':').is_some_and(|chain| table.chains.contains(&chain))
            }
            _ => false,
        }
    };
    let line = |text: &str| Line { table: table.name, text: text.to_owned() };
    saved.lines().filter(is_ours).map(line).collect()
}

/// True if a table of iptables-legacy exists.
fn legacy_table(family: Family, name: &str) -> bool {
    let file = match family {
        Family::Ipv4 => "/proc/thread-self/net/ip_tables_names",
        Family::Ipv6 => "/proc/thread-self/net/ip6_tables_names",
    };
    std::fs::read_to_string(file).is_ok_and(|names| names.lines().any(|line| line == name))
}

/// The rules as shown to users, for each IP version in use.
pub(super) fn text(wanted: &RuleSet) -> String {
    let mut text = String::new();
    for family in FAMILIES.into_iter().filter(|family| family.is_in(wanted)) {
        let title = match family {
            Family::Ipv4 => "# IPv4\n",
            Family::Ipv6 => "# IPv6\n",
        };
        text += title;
        text += &script(wanted, family, |_, _| false);
    }
    text
}

/// Input of iptables-restore: replaces our chains, and enters them or not. `entered` is true for
/// hook rules that exist.
fn script(wanted: &RuleSet, family: Family, entered: impl Fn(&Table, &HookRule) -> bool) -> String {
    let mut text = String::new();
    for table in TABLES.iter().filter(|table| table.name != "raw" || wanted.notrack) {
        let _ = writeln!(text, "*{}", table.name);
        let count = if wanted.uplinks.is_empty() { OF_MOBILES } else { table.chains.len() };
        for chain in table.chains.iter().take(count) {
            let _ = writeln!(text, ":{chain} - [0:0]");
        }
        for entry in table.entries {
            let is_wanted = table.name == "raw" || entry.is_wanted(wanted, family);
            match (entered(table, entry), is_wanted) {
                (false, true) => text += &format!("{}\n", entry.rule(entry.add)),
                (true, false) => text += &format!("{}\n", entry.rule("-D")),
                _ => {}
            }
        }
        if table.name == "raw" {
            for (uplink, _) in &wanted.uplinks {
                let _ = writeln!(text, "-A {ENTRY} -o {uplink} -j RETURN");
            }
            let _ = writeln!(text, "-A {ENTRY} -m mark --mark {} -j CT --notrack", wanted.mark);
        } else {
            text += &queueing(wanted, family);
        }
        text.push_str("COMMIT\n");
    }
    text
}

/// The rules of table `mangle`.
fn queueing(wanted: &RuleSet, family: Family) -> String {
    let mut text = format!("-A {ENTRY} -p tcp -j {FROM}\n-A {ENTRY} -p tcp -j {TO}\n");
    if !wanted.uplinks.is_empty() {
        let _ = writeln!(text, "-A {ENTRY} -p tcp -j {UPLINK}");
    }
    text += &messages(wanted.queue, family, ENTRY, &wanted.too_big);
    let groups = || wanted.groups.iter().filter(|group| family.has(group.addresses.addr()));
    for (chain, address, interface) in [(FROM, "-s", "-i"), (TO, "-d", "-o")] {
        for group in groups() {
            let selector = format!("-A {chain} {}", selector(group, address, interface));
            let queued = &group.queued;
            let _ = match queued {
                Queued::Always => writeln!(text, "{selector} {}", queue(wanted.queue)),
                // A mobile belongs to the first group that contains it.
                Queued::Watched => writeln!(text, "{selector} -j {WATCHED}\n{selector} -j RETURN"),
                Queued::Never => writeln!(text, "{selector} -j RETURN"),
            };
        }
    }
    if !wanted.uplinks.is_empty() {
        for (address, interface) in [("-s", "-i"), ("-d", "-o")] {
            for group in groups() {
                let selector = selector(group, address, interface);
                let _ = writeln!(text, "-A {UPLINK} {selector} -j RETURN");
            }
        }
        let _ = writeln!(text, "-A {UPLINK} -j {OVER}");
        let _ = writeln!(text, "-A {IN} -p tcp -j {OVER}");
        text += &messages(wanted.queue, family, IN, &wanted.too_big_uplinks());
        let _ = writeln!(text, "-A {OUT} -m mark --mark {} -j RETURN", wanted.mark);
        let _ = writeln!(text, "-A {OUT} -p tcp -j {OVER}");
    }
    for (uplink, _) in wanted.uplinks.iter().filter(|(_, queued)| *queued == Queued::Always) {
        text += &over(wanted.queue, *uplink, "-A");
    }
    let watched: Vec<_> = wanted.watched.iter().copied().collect();
    text + &watching(wanted.queue, family, &watched, "-A")
}

/// Rules for messages of routers, from these interfaces (`None`: any), that a packet was too big.
fn messages(
    number: u16,
    family: Family,
    chain: &str,
    interfaces: &BTreeSet<Option<InterfacePattern>>,
) -> String {
    let message = match family {
        Family::Ipv4 => "-p icmp -m icmp --icmp-type 3/4",
        Family::Ipv6 => "-p ipv6-icmp -m icmp6 --icmpv6-type 2",
    };
    let rule = |from: &Option<InterfacePattern>| {
        let from = from.map_or_else(String::new, |from| format!(" -i {}", name(from)));
        format!("-A {chain}{from} {message} {}\n", queue(number))
    };
    interfaces.iter().map(rule).collect()
}

/// An interface in a rule.
fn name(interface: InterfacePattern) -> String {
    match interface {
        InterfacePattern::Exactly(name) => name.to_string(),
        InterfacePattern::Beginning(prefix) => format!("{prefix}+"),
    }
}

/// Match of a rule for packets of one group in one direction.
fn selector(group: &Selection, address: &str, interface: &str) -> String {
    let Selection { addresses, interface: its, .. } = group;
    let behind = its.map_or_else(String::new, |its| format!(" {interface} {}", name(its)));
    format!("{address} {}{behind}", addresses.trunc())
}

/// Adds (`-A`) or removes (`-D`) the rules of an uplink.
fn over(number: u16, uplink: InterfaceName, action: &str) -> String {
    let rule = |interface| format!("{action} {OVER} {interface} {uplink} {}\n", queue(number));
    rule("-i") + &rule("-o")
}

/// Changes in table `mangle` when these mobiles begin or cease to be watched.
fn changes(before: &RuleSet, after: &RuleSet, mobiles: &[MobileId], family: Family) -> String {
    let (news, olds): (Vec<_>, Vec<_>) = mobiles.iter().partition(|m| after.watched.contains(m));
    let rules =
        watching(after.queue, family, &news, "-A") + &watching(after.queue, family, &olds, "-D");
    let (mut begin, mut end) = (String::new(), String::new());
    for entry in MANGLE.entries {
        match (entry.is_wanted(before, family), entry.is_wanted(after, family)) {
            (false, true) => end += &format!("{}\n", entry.rule(entry.add)),
            (true, false) => begin += &format!("{}\n", entry.rule("-D")),
            _ => {}
        }
    }
    begin + &rules + &end
}

/// Adds (`-A`) or removes (`-D`) the rules of watched mobiles of one IP version.
fn watching(number: u16, family: Family, mobiles: &[MobileId], action: &str) -> String {
    let mut text = String::new();
    for mobile in
        mobiles.iter().filter_map(|mobile| mobile.host()).filter(|mobile| family.has(*mobile))
    {
        for address in ["-s", "-d"] {
            let _ = writeln!(text, "{action} {WATCHED} {address} {mobile} {}", queue(number));
        }
    }
    for uplink in mobiles.iter().filter_map(|mobile| mobile.uplink()) {
        text += &over(number, uplink, action);
    }
    text
}

/// Target that queues packets for the gateway; without a gateway they pass.
fn queue(number: u16) -> String {
    format!("-j NFQUEUE --queue-num {number} --queue-bypass")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{idle_and_not, mobile, on_board, uplink_idle_and_not, wanted};
    use super::*;
    use airtcp_gateway::config::Mark;

    #[test]
    fn packets_from_and_to_each_group_are_queued_in_the_order_of_groups() {
        let text = script(&wanted(), Family::Ipv4, |_, _| false);
        let wanted = "*raw
:AIRTCP - [0:0]
-A OUTPUT -j AIRTCP
-A AIRTCP -m mark --mark 0x61697274 -j CT --notrack
COMMIT
*mangle
:AIRTCP - [0:0]
:AIRTCP-FROM - [0:0]
:AIRTCP-TO - [0:0]
:AIRTCP-WATCHED - [0:0]
-A FORWARD -j AIRTCP
-A AIRTCP -p tcp -j AIRTCP-FROM
-A AIRTCP -p tcp -j AIRTCP-TO
-A AIRTCP -p icmp -m icmp --icmp-type 3/4 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-FROM -s 10.1.0.0/16 -j AIRTCP-WATCHED
-A AIRTCP-FROM -s 10.1.0.0/16 -j RETURN
-A AIRTCP-FROM -s 10.0.0.0/8 -i wlan0 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-TO -d 10.1.0.0/16 -j AIRTCP-WATCHED
-A AIRTCP-TO -d 10.1.0.0/16 -j RETURN
-A AIRTCP-TO -d 10.0.0.0/8 -o wlan0 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-WATCHED -s 10.1.2.3 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-WATCHED -d 10.1.2.3 -j NFQUEUE --queue-num 7 --queue-bypass
COMMIT
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn router_messages_are_queued_only_for_mechanisms_that_replay() {
        let rule = |text: &str| text.lines().filter(|line| line.contains("icmp")).count();
        let ipv6 = script(&wanted(), Family::Ipv6, |_, _| false);
        assert!(ipv6.contains("-A AIRTCP -p ipv6-icmp -m icmp6 --icmpv6-type 2 -j NFQUEUE"));
        let deaf = RuleSet { too_big: BTreeSet::new(), ..on_board() };
        let texts = FAMILIES.map(|family| script(&deaf, family, |_, _| false));
        assert_eq!(texts.map(|text| rule(&text)), [0; 2]);
    }

    #[test]
    fn packets_meet_no_rule_while_nothing_is_queued() {
        let [idle, watching] = idle_and_not();
        let enter = "-A FORWARD -j AIRTCP\n";
        assert!(!script(&idle, Family::Ipv4, |_, _| false).contains("FORWARD"));
        assert!(script(&watching, Family::Ipv4, |_, _| false).contains(enter));
        assert!(script(&idle, Family::Ipv4, |_, _| true).contains("-D FORWARD -j AIRTCP\n"));
        let mobiles = [mobile("10.1.2.3")];
        assert_eq!(
            changes(&idle, &watching, &mobiles, Family::Ipv4),
            "\
-A AIRTCP-WATCHED -s 10.1.2.3 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-WATCHED -d 10.1.2.3 -j NFQUEUE --queue-num 7 --queue-bypass
-A FORWARD -j AIRTCP
"
        );
        assert_eq!(
            changes(&watching, &idle, &mobiles, Family::Ipv4),
            "\
-D FORWARD -j AIRTCP
-D AIRTCP-WATCHED -s 10.1.2.3 -j NFQUEUE --queue-num 7 --queue-bypass
-D AIRTCP-WATCHED -d 10.1.2.3 -j NFQUEUE --queue-num 7 --queue-bypass
"
        );
        assert_eq!(changes(&idle, &watching, &mobiles, Family::Ipv6), "");
    }

    #[test]
    fn packets_over_uplinks_are_queued_unless_they_are_a_mobiles_or_the_gateways_own() {
        let text = script(&on_board(), Family::Ipv4, |_, _| false);
        let wanted = "*raw
:AIRTCP - [0:0]
-A OUTPUT -j AIRTCP
-A AIRTCP -o wwan0 -j RETURN
-A AIRTCP -o wwan1 -j RETURN
-A AIRTCP -m mark --mark 0x61697274 -j CT --notrack
COMMIT
*mangle
:AIRTCP - [0:0]
:AIRTCP-FROM - [0:0]
:AIRTCP-TO - [0:0]
:AIRTCP-WATCHED - [0:0]
:AIRTCP-UPLINK - [0:0]
:AIRTCP-OVER - [0:0]
:AIRTCP-IN - [0:0]
:AIRTCP-OUT - [0:0]
-A FORWARD -j AIRTCP
-I INPUT -j AIRTCP-IN
-I OUTPUT -j AIRTCP-OUT
-A AIRTCP -p tcp -j AIRTCP-FROM
-A AIRTCP -p tcp -j AIRTCP-TO
-A AIRTCP -p tcp -j AIRTCP-UPLINK
-A AIRTCP -i wlan0 -p icmp -m icmp --icmp-type 3/4 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP -i wwan0 -p icmp -m icmp --icmp-type 3/4 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-FROM -s 10.0.0.0/8 -i wlan0 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-TO -d 10.0.0.0/8 -o wlan0 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-UPLINK -s 10.0.0.0/8 -i wlan0 -j RETURN
-A AIRTCP-UPLINK -d 10.0.0.0/8 -o wlan0 -j RETURN
-A AIRTCP-UPLINK -j AIRTCP-OVER
-A AIRTCP-IN -p tcp -j AIRTCP-OVER
-A AIRTCP-IN -i wwan0 -p icmp -m icmp --icmp-type 3/4 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-OUT -m mark --mark 0x61697274 -j RETURN
-A AIRTCP-OUT -p tcp -j AIRTCP-OVER
-A AIRTCP-OVER -i wwan1 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-OVER -o wwan1 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-OVER -i wwan0 -j NFQUEUE --queue-num 7 --queue-bypass
-A AIRTCP-OVER -o wwan0 -j NFQUEUE --queue-num 7 --queue-bypass
COMMIT
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn packets_over_an_uplink_meet_no_rule_while_nothing_is_queued() {
        let [idle, watching] = uplink_idle_and_not();
        let uplinks: Vec<_> = watching.watched.iter().copied().collect();
        let text = script(&idle, Family::Ipv6, |_, _| false);
        assert!(
            !["FORWARD", "INPUT", "-I OUTPUT"].iter().any(|hook| text.contains(hook)),
            "{text}"
        );
        assert_eq!(
            changes(&watching, &idle, &uplinks, Family::Ipv6),
            "\
-D FORWARD -j AIRTCP
-D INPUT -j AIRTCP-IN
-D OUTPUT -j AIRTCP-OUT
-D AIRTCP-OVER -i wwan0 -j NFQUEUE --queue-num 7 --queue-bypass
-D AIRTCP-OVER -o wwan0 -j NFQUEUE --queue-num 7 --queue-bypass
"
        );
        assert_eq!(changes(&idle, &watching, &uplinks, Family::Ipv4).lines().count(), 5);
    }

    #[test]
    fn pure_acks_to_the_chosen_peers_are_queued_on_output() {
        let wanted = super::super::tests::acks();
        let expected = "*mangle
:AIRTCP-ACKS - [0:0]
-A OUTPUT -j AIRTCP-ACKS
-A AIRTCP-ACKS -d 10.0.0.0/8 -o wlan0 -p tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG ACK -m length --length 52 -m multiport --ports 80,443 -j NFQUEUE --queue-num 9 --queue-bypass
COMMIT
";
        assert_eq!(acks_script(&wanted, Family::Ipv4, false), expected);
        assert!(!acks_script(&wanted, Family::Ipv4, true).contains("OUTPUT"));
        let anywhere = AckSelection { peers: Vec::new(), ports: Vec::new(), ..wanted };
        let text = acks_script(&anywhere, Family::Ipv6, false);
        assert!(text.contains("-d ::/0 -o wlan0") && text.contains("--length 72 -j"), "{text}");
    }

    #[test]
    fn a_chain_is_used_by_its_rules_and_by_those_that_enter_it() {
        let text = script(&wanted(), Family::Ipv4, |_, _| false);
        let of = |table, found: &[(&str, u32)]| {
            let wanted = found.iter().map(|&(chain, count)| (chain.to_owned(), count)).collect();
            assert_eq!(uses(table, &text), wanted);
        };
        of(&RAW, &[(ENTRY, 1 + 1)]);
        of(&MANGLE, &[(ENTRY, 3 + 1), (FROM, 3 + 1), (TO, 3 + 1), (WATCHED, 2 + 2)]);
        let text = script(&on_board(), Family::Ipv4, |_, _| false);
        assert_eq!(uses(&MANGLE, &text)[OVER], 4 + 3);
        assert_eq!([IN, OUT].map(|chain| uses(&MANGLE, &text)[chain]), [2 + 1, 2 + 1]);
    }

    #[test]
    fn a_mark_with_a_mask_leaves_the_other_bits_to_others() {
        let mark = Mark { value: 0x10, mask: 0xf0 };
        let text = script(&RuleSet { mark, ..on_board() }, Family::Ipv4, |_, _| false);
        assert!(text.contains("-m mark --mark 0x10/0xf0 -j CT"), "{text}");
        assert!(text.contains("-A AIRTCP-OUT -m mark --mark 0x10/0xf0 -j RETURN"), "{text}");
    }

    #[test]
    fn a_chain_that_is_entered_is_not_entered_twice() {
        let text = script(&wanted(), Family::Ipv6, |table, entry| {
            table.name == "mangle" && *entry == FORWARD
        });
        assert!(text.contains("-A OUTPUT") && !text.contains("FORWARD"), "{text}");
    }

    #[test]
    fn only_what_is_ours_is_found() {
        let saved = "*mangle
:PREROUTING ACCEPT [0:0]
:FORWARD ACCEPT [3:180]
:AIRTCP - [0:0]
:AIRTCP-FROM - [0:0]
:AIRTCPX - [0:0]
-A FORWARD -o eth0 -j TCPMSS --clamp-mss-to-pmtu
-A FORWARD -j AIRTCP
-A AIRTCP -p tcp -j AIRTCP-FROM
-A AIRTCPX -j ACCEPT
COMMIT
";
        let lines = ours(&TABLES[1], saved);
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        let wanted = [":AIRTCP - [0:0]", ":AIRTCP-FROM - [0:0]", "-A FORWARD -j AIRTCP"];
        assert_eq!(texts, wanted);
        let enters = |table: &Table, entry: &HookRule| lines[2].enters(table, entry);
        assert!(enters(&MANGLE, &FORWARD) && !enters(&MANGLE, &INPUT) && !enters(&RAW, &FORWARD));
    }
}
