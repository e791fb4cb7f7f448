//! The rules in the language of iptables-restore(8).
//!
//! Chain `AIRTCP` of table `mangle`, entered from the end of FORWARD, asks `AIRTCP-FROM` whether a
//! packet comes from a mobile, then `AIRTCP-TO` whether it goes to one; `AIRTCP-WATCHED` has two
//! rules for each watched mobile. `AIRTCP` is not entered while nothing is queued: rules that queue
//! nothing still cost a sixth of the packet rate. Chain `AIRTCP` of table `raw`, entered from
//! OUTPUT, exempts injected packets from connection tracking. A queued packet leaves `mangle` with
//! its verdict, so ours come after the rules of others. `airtcp delack` has chain `AIRTCP-ACKS` of
//! table `mangle` alone, entered from OUTPUT.

use super::super::inject::MARK;
use super::{ACK_LENGTHS, AckSelection, Queued, Selection, Wanted, run};
use std::fmt::Write;
use std::net::IpAddr;

/// The chain that is entered: the gateway's, and that of `airtcp delack`.
const ENTRY: &str = "AIRTCP";
const ACKS: &str = "AIRTCP-ACKS";
const FROM: &str = "AIRTCP-FROM";
const TO: &str = "AIRTCP-TO";
const WATCHED: &str = "AIRTCP-WATCHED";

/// A table of iptables with chains of ours.
struct Table {
    name: &'static str,
    /// The chain that the first of ours is entered from.
    hook: &'static str,
    chains: &'static [&'static str],
}

impl Table {
    fn entry(&self) -> &'static str {
        self.chains[0]
    }
}

/// In the order in which they come into force: the queue last.
const TABLES: [Table; 2] = [RAW, MANGLE];
const RAW: Table = Table { name: "raw", hook: "OUTPUT", chains: &[ENTRY] };
const MANGLE: Table =
    Table { name: "mangle", hook: "FORWARD", chains: &[ENTRY, FROM, TO, WATCHED] };
/// The one of `airtcp delack`.
const OUTPUT: Table = Table { name: "mangle", hook: "OUTPUT", chains: &[ACKS] };

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
    fn is_in(self, wanted: &Wanted) -> bool {
        wanted.groups.iter().any(|group| self.has(group.addresses.addr()))
    }
    fn is_queued(self, wanted: &Wanted) -> bool {
        wanted.queues(self == Self::Ipv4)
    }
}

/// One of the programs.
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

pub(super) fn check(wanted: &Wanted) -> Result<(), String> {
    for family in FAMILIES.into_iter().filter(|family| family.is_in(wanted)) {
        let all = script(wanted, family, |_| false);
        run(&program(family, "restore"), &["--noflush", "--test"], &all)?;
    }
    Ok(())
}

pub(super) fn install(wanted: &Wanted) -> Result<(), String> {
    for family in FAMILIES {
        if family.is_in(wanted) {
            let present = present(family, &TABLES)?;
            let entered = |table: &Table| present.iter().any(|line| line.enters(table));
            restore(family, &script(wanted, family, entered))?;
        } else {
            // What was wanted before, if this host has that IP version at all.
            let _ = remove_family(family, &TABLES);
        }
    }
    Ok(())
}

pub(super) fn watch(before: &Wanted, after: &Wanted, mobiles: &[IpAddr]) -> Result<(), String> {
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

pub(super) fn install_acks(wanted: &AckSelection) -> Result<(), String> {
    for family in FAMILIES {
        if wanted.has_family(family == Family::Ipv4) {
            let present = present(family, &[OUTPUT])?;
            let entered = present.iter().any(|line| line.enters(&OUTPUT));
            restore(family, &acks_script(wanted, family, entered))?;
        } else {
            let _ = remove_family(family, &[OUTPUT]);
        }
    }
    Ok(())
}

pub(super) fn remove_acks() -> Result<(), String> {
    let results = FAMILIES.map(|family| remove_family(family, &[OUTPUT]));
    results.into_iter().collect()
}

/// What iptables-restore is to do about `airtcp delack`: its chain anew, and entered.
fn acks_script(wanted: &AckSelection, family: Family, entered: bool) -> String {
    let AckSelection { queue: number, interface, peers, ports } = wanted;
    let mut text = format!("*{}\n:{ACKS} - [0:0]\n", OUTPUT.name);
    if !entered {
        let _ = writeln!(text, "{}", enter(&OUTPUT, "-A"));
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

/// What is there of ours: declarations of our chains, and rules of others that enter them.
fn present(family: Family, tables: &[Table]) -> Result<Vec<Line>, String> {
    let mut present = Vec::new();
    let is_legacy = run("iptables", &["--version"], "")?.contains("legacy");
    for table in tables {
        if is_legacy && !legacy_table(family, table.name) {
            // Asking would make it.
            continue;
        }
        let saved = run(&program(family, "save"), &["-t", table.name], "")?;
        present.extend(ours(table, &saved));
    }
    Ok(present)
}
/// A line of iptables-save about us.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    table: &'static str,
    text: String,
}

impl Line {
    /// Whether it is the rule by which our chains of `table` are entered.
    fn enters(&self, table: &Table) -> bool {
        self.table == table.name && self.text == enter(table, "-A")
    }
    /// The chain that it declares.
    fn chain(&self) -> Option<&str> {
        self.text.strip_prefix(':')?.split(' ').next()
    }
}

/// Adds (`-A`) or removes (`-D`) the rule that enters our chains.
fn enter(table: &Table, action: &str) -> String {
    format!("{action} {} -j {}", table.hook, table.entry())
}

/// The lines about us in what iptables-save printed of `table`.
fn ours(table: &Table, saved: &str) -> Vec<Line> {
    let is_ours = |line: &&str| {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("-A"), Some(chain)) => {
                !table.chains.contains(&chain) && line.ends_with(&format!(" -j {}", table.entry()))
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

/// Whether a table of iptables-legacy is there.
fn legacy_table(family: Family, name: &str) -> bool {
    let file = match family {
        Family::Ipv4 => "/proc/thread-self/net/ip_tables_names",
        Family::Ipv6 => "/proc/thread-self/net/ip6_tables_names",
    };
    std::fs::read_to_string(file).is_ok_and(|names| names.lines().any(|line| line == name))
}

/// The rules, for people: those of each IP version that is wanted.
pub(super) fn text(wanted: &Wanted) -> String {
    let mut text = String::new();
    for family in FAMILIES.into_iter().filter(|family| family.is_in(wanted)) {
        let title = match family {
            Family::Ipv4 => "# IPv4\n",
            Family::Ipv6 => "# IPv6\n",
        };
        text += title;
        text += &script(wanted, family, |_| false);
    }
    text
}

/// What iptables-restore is to do: our chains anew, and entered or not; `entered` says where they
/// are now.
fn script(wanted: &Wanted, family: Family, entered: impl Fn(&Table) -> bool) -> String {
    let mut text = String::new();
    for table in TABLES.iter().filter(|table| table.name != "raw" || wanted.notrack) {
        let _ = writeln!(text, "*{}", table.name);
        for chain in table.chains {
            let _ = writeln!(text, ":{chain} - [0:0]");
        }
        let action = match (entered(table), table.name == "raw" || family.is_queued(wanted)) {
            (false, true) => Some("-A"),
            (true, false) => Some("-D"),
            _ => None,
        };
        if let Some(action) = action {
            let _ = writeln!(text, "{}", enter(table, action));
        }
        text += &match table.name {
            "raw" => format!("-A {ENTRY} -m mark --mark {MARK:#x} -j CT --notrack\n"),
            _ => queueing(wanted, family),
        };
        text.push_str("COMMIT\n");
    }
    text
}

/// The rules of table `mangle`.
fn queueing(wanted: &Wanted, family: Family) -> String {
    let mut text = format!("-A {ENTRY} -p tcp -j {FROM}\n-A {ENTRY} -p tcp -j {TO}\n");
    for (chain, address, interface) in [(FROM, "-s", "-i"), (TO, "-d", "-o")] {
        for group in wanted.groups.iter().filter(|group| family.has(group.addresses.addr())) {
            let Selection { addresses, interface: name, queued } = group;
            let behind =
                name.as_ref().map_or_else(String::new, |name| format!(" {interface} {name}"));
            let these = format!("-A {chain} {address} {}{behind}", addresses.trunc());
            let _ = match queued {
                Queued::Always => writeln!(text, "{these} {}", queue(wanted.queue)),
                // The first group that has a mobile counts.
                Queued::Watched => writeln!(text, "{these} -j {WATCHED}\n{these} -j RETURN"),
                Queued::Never => writeln!(text, "{these} -j RETURN"),
            };
        }
    }
    let watched: Vec<_> = wanted.watched.iter().copied().collect();
    text + &watching(wanted.queue, family, &watched, "-A")
}

/// What changes in table `mangle` when these mobiles are watched from now on, or no more.
fn changes(before: &Wanted, after: &Wanted, mobiles: &[IpAddr], family: Family) -> String {
    let (news, olds): (Vec<_>, Vec<_>) = mobiles.iter().partition(|m| after.watched.contains(m));
    let rules =
        watching(after.queue, family, &news, "-A") + &watching(after.queue, family, &olds, "-D");
    match (family.is_queued(before), family.is_queued(after)) {
        (false, true) => format!("{rules}{}\n", enter(&MANGLE, "-A")),
        (true, false) => format!("{}\n{rules}", enter(&MANGLE, "-D")),
        _ => rules,
    }
}

/// Adds (`-A`) or removes (`-D`) the rules of watched mobiles, those of one IP version.
fn watching(number: u16, family: Family, mobiles: &[IpAddr], action: &str) -> String {
    let mut text = String::new();
    for mobile in mobiles.iter().filter(|mobile| family.has(**mobile)) {
        for address in ["-s", "-d"] {
            let _ = writeln!(text, "{action} {WATCHED} {address} {mobile} {}", queue(number));
        }
    }
    text
}

/// The target of packets for the gateway, or none when there is no gateway.
fn queue(number: u16) -> String {
    format!("-j NFQUEUE --queue-num {number} --queue-bypass")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{idle_and_not, wanted};
    use super::*;

    #[test]
    fn packets_from_and_to_each_group_are_queued_in_the_order_of_groups() {
        let text = script(&wanted(), Family::Ipv4, |_| false);
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
    fn packets_meet_no_rule_while_nothing_is_queued() {
        let [idle, watching] = idle_and_not();
        let enter = "-A FORWARD -j AIRTCP\n";
        assert!(!script(&idle, Family::Ipv4, |_| false).contains("FORWARD"));
        assert!(script(&watching, Family::Ipv4, |_| false).contains(enter));
        assert!(script(&idle, Family::Ipv4, |_| true).contains("-D FORWARD -j AIRTCP\n"));
        let mobiles = ["10.1.2.3".parse().unwrap()];
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
    fn chains_that_are_entered_are_not_entered_twice() {
        let text = script(&wanted(), Family::Ipv6, |table| table.name == "mangle");
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
        assert!(lines[2].enters(&TABLES[1]) && !lines[2].enters(&TABLES[0]));
    }
}
