//! Offloads of the interfaces, from the kernel's `ethtool` netlink family (Linux 5.6 or newer).
//!
//! Read first: Documentation/networking/ethtool-netlink.rst of Linux, "Bit sets" and
//! "FEATURES_GET".

use super::Finding;
use crate::kernel::netlink::{Message, Netlink, attributes, name, one_name, u16_at, value_of};
use std::io;

/// Kernel names of GRO, GSO and TSO, with the names in `ethtool -k`.
const WANTED: [(&str, &str); 3] =
    [("rx-gro", "GRO"), ("tx-generic-segmentation", "GSO"), ("tx-tcp-segmentation", "TSO")];

// linux/genetlink.h, linux/ethtool_netlink.h.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;
/// Size of `struct genlmsghdr`.
const HEADER: usize = 4;

/// Finding on the offloads of physical and paravirtual interfaces.
pub(super) fn finding() -> Finding {
    match interfaces().and_then(|names| {
        let kernel = Ethtool::open()?;
        names.into_iter().map(|name| Ok((kernel.active(&name)?, name))).collect()
    }) {
        Ok(found) => judge(found),
        Err(error) => Finding::unknown(error.to_string(), "look with `ethtool -k INTERFACE`"),
    }
}

/// Interfaces with a device; purely virtual ones always have these offloads.
fn interfaces() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir("/sys/class/net")? {
        let entry = entry?;
        if entry.path().join("device").exists() {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    Ok(names)
}

fn judge(interfaces: Vec<(Vec<String>, String)>) -> Finding {
    let mut found = Vec::new();
    let mut fixes = Vec::new();
    for (active, interface) in interfaces {
        let (on, off): (Vec<_>, Vec<_>) =
            WANTED.iter().partition(|(feature, _)| active.iter().any(|a| a == feature));
        let short =
            |list: &[&(&str, &'static str)]| list.iter().map(|(_, s)| *s).collect::<Vec<_>>();
        let on = short(&on).join(" ");
        found.push(format!("{interface}: {}", if on.is_empty() { "none" } else { &on }));
        if !off.is_empty() {
            let switches =
                short(&off).iter().map(|s| format!(" {} on", s.to_lowercase())).collect::<String>();
            fixes.push(format!("ethtool -K {interface}{switches}"));
        }
    }
    match (found.is_empty(), fixes.is_empty()) {
        (true, _) => Finding::ok("no interface with a device"),
        (false, true) => Finding::ok(found.join("; ")),
        (false, false) => Finding::degraded(found.join("; "), fixes.join("; ")),
    }
}

/// Client of the kernel's `ethtool` netlink family.
struct Ethtool {
    netlink: Netlink,
    family: u16,
}

impl Ethtool {
    fn open() -> io::Result<Self> {
        let netlink = Netlink::open(libc::NETLINK_GENERIC)?;
        let request = Message::new(GENL_ID_CTRL, 0, &[CTRL_CMD_GETFAMILY, 1, 0, 0])
            .with_name(CTRL_ATTR_FAMILY_NAME, "ethtool");
        let answer = netlink.ask(&request.finish())?;
        let family = value_of(answer.get(HEADER..).unwrap_or_default(), CTRL_ATTR_FAMILY_ID)
            .and_then(|family| u16_at(family, 0));
        let family = family.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { netlink, family })
    }
    fn active(&self, interface: &str) -> io::Result<Vec<String>> {
        let header = one_name(ETHTOOL_A_HEADER_DEV_NAME, interface);
        let request = Message::new(self.family, 0, &[ETHTOOL_MSG_FEATURES_GET, 1, 0, 0])
            .with_nested(ETHTOOL_A_FEATURES_HEADER, &header);
        Ok(active(&self.netlink.ask(&request.finish())?))
    }
}

/// Active features in an answer to FEATURES_GET: its bit set has no mask, so it lists only those.
fn active(answer: &[u8]) -> Vec<String> {
    let inside = |bytes, wanted| value_of(bytes, wanted).unwrap_or_default();
    let set = inside(answer.get(HEADER..).unwrap_or_default(), ETHTOOL_A_FEATURES_ACTIVE);
    attributes(inside(set, ETHTOOL_A_BITSET_BITS))
        .filter_map(|(_, bit)| name(inside(bit, ETHTOOL_A_BITSET_BIT_NAME)).map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::CheckState;
    use super::*;
    use crate::kernel::netlink::one;

    #[test]
    fn the_features_that_are_on_are_read_from_an_answer() {
        let bit = |name| one(1, &[one(1, &7_u32.to_ne_bytes()), one_name(2, name)].concat());
        let set =
            [one(1, &[]), one(3, &[bit("rx-gro"), bit("tx-tcp-segmentation")].concat())].concat();
        let answer = [vec![11, 1, 0, 0], one(1, &[]), one(2, &[]), one(4, &set)].concat();
        assert_eq!(active(&answer), ["rx-gro", "tx-tcp-segmentation"]);
        assert!(active(&answer[..10]).is_empty());
        assert!(active(&[]).is_empty());
    }

    #[test]
    fn offloads_that_are_off_are_reported_with_the_command_to_enable_them() {
        let all = WANTED.map(|(feature, _)| feature.to_owned()).to_vec();
        let finding = judge(vec![(all.clone(), "eth0".into())]);
        assert_eq!(finding, Finding::ok("eth0: GRO GSO TSO"));
        let finding = judge(vec![(all, "eth0".into()), (vec![], "eth1".into())]);
        assert_eq!(finding.state, CheckState::Degraded);
        assert_eq!(finding.found, "eth0: GRO GSO TSO; eth1: none");
        assert_eq!(finding.fix, "ethtool -K eth1 gro on gso on tso on");
    }
}
