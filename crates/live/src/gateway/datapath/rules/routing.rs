//! The rules in the language of ip-rule(8), for a TUN device: the mobiles' TCP packets are routed by a table of our own,
//! whose one route goes into the device.
//!
//! Rules of ours are those with the preferences below. Packets that come out of the device, and packets of
//! this host itself, skip them. When the device vanishes its route does, and the table is as if it were not there.

use super::super::tun::DEVICE;
use super::{Queued, Selection, Wanted, run};
use std::fmt::Write;
use std::net::IpAddr;

/// Number of the table.
const TABLE: u32 = 1770;
// Preferences.
const SKIP: u32 = 1770;
const WATCHED: u32 = 1771;
const FROM: u32 = 1772;
const TO: u32 = 1773;
const END: u32 = 1774;

/// The IP versions, by the options of `ip`.
const FAMILIES: [(&str, bool); 2] = [("-4", true), ("-6", false)];

fn is_wanted(wanted: &Wanted, ipv4: bool) -> bool {
    wanted.groups.iter().any(|group| group.addresses.addr().is_ipv4() == ipv4)
}

pub(super) fn check(wanted: &Wanted) -> Result<(), String> {
    // `ip` has no dry run; that it is there, and knows rules of an IP version, is most of what can fail.
    for (option, ipv4) in FAMILIES {
        if is_wanted(wanted, ipv4) {
            run("ip", &[option, "rule", "show"], "")?;
        }
    }
    Ok(())
}

pub(super) fn install(wanted: &Wanted) -> Result<(), String> {
    for (option, ipv4) in FAMILIES {
        let removed = remove_family(option);
        // Of an IP version that is not wanted, this host may have nothing at all.
        if is_wanted(wanted, ipv4) {
            removed?;
            batch(option, &script(wanted, ipv4))?;
        }
    }
    Ok(())
}

pub(super) fn watch(after: &Wanted, mobiles: &[IpAddr]) -> Result<(), String> {
    let action = |mobile| if after.watched.contains(mobile) { "add" } else { "delete" };
    for (option, ipv4) in FAMILIES {
        let these = mobiles.iter().filter(|mobile| mobile.is_ipv4() == ipv4);
        let text: String = these.map(|mobile| watching(*mobile, action(mobile))).collect();
        if !text.is_empty() {
            batch(option, &text)?;
        }
    }
    Ok(())
}

pub(super) fn remove() -> Result<(), String> {
    FAMILIES.map(|(option, _)| remove_family(option)).into_iter().collect()
}

fn remove_family(option: &str) -> Result<(), String> {
    let mut text = String::new();
    // The route first: without it, rules do nothing.
    let routes = run("ip", &[option, "route", "show", "table", "all"], "")?;
    if routes.contains(&format!(" table {TABLE} ")) {
        let _ = writeln!(text, "route flush table {TABLE}");
    }
    let shown = run("ip", &[option, "rule", "show"], "")?;
    for preference in shown.lines().filter_map(preference).filter(|p| (SKIP..=END).contains(p)) {
        let _ = writeln!(text, "rule delete preference {preference}");
    }
    if text.is_empty() { Ok(()) } else { batch(option, &text) }
}

/// The number in front of a rule.
fn preference(line: &str) -> Option<u32> {
    line.split(':').next()?.parse().ok()
}

fn batch(option: &str, text: &str) -> Result<(), String> {
    run("ip", &[option, "-batch", "-"], text).map(drop)
}

/// The rules, for people.
pub(super) fn text(wanted: &Wanted) -> String {
    let mut text = String::new();
    for (option, ipv4) in FAMILIES.into_iter().filter(|(_, ipv4)| is_wanted(wanted, *ipv4)) {
        let _ = write!(text, "# ip {option} -batch -\n{}", script(wanted, ipv4));
    }
    text
}

fn script(wanted: &Wanted, ipv4: bool) -> String {
    let mut text = format!(
        "rule add preference {END} nop
rule add preference {SKIP} iif {DEVICE} goto {END}
rule add preference {SKIP} iif lo goto {END}
"
    );
    for mobile in wanted.watched.iter().filter(|mobile| mobile.is_ipv4() == ipv4) {
        text += &watching(*mobile, "add");
    }
    let groups = || wanted.groups.iter().filter(|group| group.addresses.addr().is_ipv4() == ipv4);
    for (preference, direction, next) in [(FROM, "from", TO), (TO, "to", END)] {
        for Selection { addresses, interface, queued } in groups() {
            // Where a packet will leave is not known before it is routed.
            let interface = interface.as_ref().filter(|_| preference == FROM);
            let behind = interface.map_or_else(String::new, |name| format!(" iif {name}"));
            let action = match queued {
                Queued::Always => format!("ipproto tcp lookup {TABLE}"),
                // The first group that has a mobile counts.
                Queued::Watched => format!("goto {next}"),
            };
            let addresses = addresses.trunc();
            let _ = writeln!(
                text,
                "rule add preference {preference} {direction} {addresses}{behind} {action}"
            );
        }
    }
    // Without it, rules do nothing: they come into force together.
    let _ = writeln!(text, "route add default dev {DEVICE} table {TABLE}");
    text
}

/// Adds or deletes the rules of a watched mobile.
fn watching(mobile: IpAddr, action: &str) -> String {
    ["from", "to"]
        .map(|direction| {
            format!(
                "rule {action} preference {WATCHED} {direction} {mobile} ipproto tcp lookup {TABLE}\n"
            )
        })
        .concat()
}

#[cfg(test)]
mod tests {
    use super::super::tests::wanted;
    use super::*;

    #[test]
    fn packets_from_and_to_each_group_are_routed_in_the_order_of_groups() {
        let wanted_text = "rule add preference 1774 nop
rule add preference 1770 iif airtcp-gw goto 1774
rule add preference 1770 iif lo goto 1774
rule add preference 1771 from 10.1.2.3 ipproto tcp lookup 1770
rule add preference 1771 to 10.1.2.3 ipproto tcp lookup 1770
rule add preference 1772 from 10.1.0.0/16 goto 1773
rule add preference 1772 from 10.0.0.0/8 iif wlan0 ipproto tcp lookup 1770
rule add preference 1773 to 10.1.0.0/16 goto 1774
rule add preference 1773 to 10.0.0.0/8 ipproto tcp lookup 1770
route add default dev airtcp-gw table 1770
";
        assert_eq!(script(&wanted(), true), wanted_text);
    }

    #[test]
    fn a_rule_is_known_by_its_preference() {
        assert_eq!(preference("1770:\tfrom all iif airtcp-gw goto 1774"), Some(1770));
        assert_eq!(preference("no rule"), None);
    }
}
