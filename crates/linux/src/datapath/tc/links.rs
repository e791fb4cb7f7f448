//! The interfaces of this host, and what the programs have to know of them.
//!
//! The programs are attached to the interfaces by which frames really come and go: ports of bridges
//! and the like, not the bridges, because flow tables lead packets around these. The program learns
//! which interface IP knows: the bridge of a port, the VLAN of a tag.

use crate::kernel::netlink::{attributes, name, u16_at, u32_at, value_of};
use airtcp_gateway::config::InterfacePattern;
use std::collections::{BTreeMap, BTreeSet};

/// Size of `struct ifinfomsg`.
const HEADER: usize = 16;
/// Length of an Ethernet header.
const ETHERNET: u32 = 14;
// linux/if_link.h
const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
// linux/if_arp.h
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_PPP: u16 = 512;
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_TUNNEL: u16 = 768;
const ARPHRD_TUNNEL6: u16 = 769;
const ARPHRD_SIT: u16 = 776;
const ARPHRD_IPGRE: u16 = 778;
const ARPHRD_IP6GRE: u16 = 823;
const ARPHRD_NONE: u16 = 0xfffe;

/// Flags of the program's `struct link`.
const IS_OF_MOBILES: u32 = 1;
const IS_PORT: u32 = 2;

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) index: u32,
    pub(super) name: String,
    hardware: u16,
    kind: String,
    /// What it is a port of.
    master: Option<u32>,
    /// What it is stacked on, in this namespace.
    below: Option<u32>,
    vlan: Option<u16>,
}

impl Device {
    /// Parses the body of an `RTM_NEWLINK`.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let attributes_of = body.get(HEADER..)?;
        let mut device =
            Self { hardware: u16_at(body, 2)?, index: u32_at(body, 4)?, ..Self::default() };
        let mut is_below_elsewhere = false;
        for (kind, value) in attributes(attributes_of) {
            match kind {
                IFLA_IFNAME => device.name = name(value)?.to_owned(),
                IFLA_LINK => device.below = u32_at(value, 0),
                IFLA_MASTER => device.master = u32_at(value, 0),
                IFLA_LINK_NETNSID => is_below_elsewhere = true,
                IFLA_LINKINFO => {
                    device.kind = value_of(value, IFLA_INFO_KIND).and_then(name)?.to_owned();
                    if device.kind == "vlan" {
                        let data = value_of(value, IFLA_INFO_DATA)?;
                        device.vlan = value_of(data, IFLA_VLAN_ID).and_then(|id| u16_at(id, 0));
                    }
                }
                _ => {}
            }
        }
        // The other end of a veth pair is beside it, not below.
        if is_below_elsewhere || device.kind == "veth" || device.below == Some(device.index) {
            device.below = None;
        }
        Some(device)
    }

    /// Length of the header before that of IP; `None`: no frames with IP.
    fn header(&self) -> Option<u32> {
        match self.hardware {
            ARPHRD_ETHER => Some(ETHERNET),
            ARPHRD_PPP | ARPHRD_RAWIP | ARPHRD_NONE | ARPHRD_TUNNEL | ARPHRD_TUNNEL6
            | ARPHRD_SIT | ARPHRD_IPGRE | ARPHRD_IP6GRE => Some(0),
            _ => None,
        }
    }

    fn is_ppp(&self) -> bool {
        self.hardware == ARPHRD_PPP
    }
}

/// Where the packets of mobiles pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::datapath) struct Places {
    /// Interfaces behind which mobiles are; `None`: any.
    pub(in crate::datapath) mobiles: Option<BTreeSet<InterfacePattern>>,
    /// There are uplinks: hosts on board may be behind any interface.
    pub(in crate::datapath) has_uplinks: bool,
}

impl Places {
    fn has_mobiles(&self, interface: &str) -> bool {
        let patterns = self.mobiles.as_ref();
        patterns.is_none_or(|all| all.iter().any(|pattern| pattern.matches(interface)))
    }
}

/// The program's `struct link_key`: an interface, and a VLAN tag or 0.
pub(super) type LinkKey = (u32, u32);

/// The program's `struct link`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Index of the interface that IP knows; 0: unknown.
    interface: u32,
    header: u32,
    flags: u32,
}

impl Link {
    pub(super) fn bytes(self) -> Vec<u8> {
        [self.interface, self.header, self.flags].map(u32::to_ne_bytes).concat()
    }
}

/// What the programs have to know, and where they belong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) links: BTreeMap<LinkKey, Link>,
    /// Interfaces with programs, and their names.
    pub(super) attached: BTreeMap<u32, String>,
}

/// The layout for these interfaces.
pub(super) fn layout(devices: &[Device], places: &Places) -> Layout {
    let by_index: BTreeMap<u32, &Device> = devices.iter().map(|d| (d.index, d)).collect();
    let kind = |index: u32| by_index.get(&index).map_or("", |device| device.kind.as_str());
    // The interface that IP knows: a VRF's own interfaces keep their addresses.
    let top = |mut index: u32| {
        // Longer stacks than the kernel allows would be a loop.
        for _ in 0..8 {
            match by_index.get(&index).and_then(|device| device.master) {
                Some(master) if kind(master) != "vrf" => index = master,
                _ => break,
            }
        }
        index
    };
    let is_port = |device: &Device| device.master.is_some_and(|master| kind(master) == "bridge");
    // Its frames come and go by ports, or as tagged frames of another interface; those of an ifb
    // were seen elsewhere. A switch's conduit carries the frames of its ports.
    let is_upper = |device: &Device| {
        matches!(device.kind.as_str(), "bridge" | "bond" | "team" | "vrf" | "ifb")
            || (device.below.is_some()
                && matches!(device.kind.as_str(), "vlan" | "macvlan" | "ipvlan"))
            || devices.iter().any(|port| port.kind == "dsa" && port.below == Some(device.index))
    };
    let mut layout = Layout::default();
    for device in devices {
        let Some(header) = device.header() else { continue };
        let mut add = |key: LinkKey, interface: u32, is_port: bool| {
            let name = by_index.get(&interface).map_or("", |device| device.name.as_str());
            let mobiles = if places.has_mobiles(name) { IS_OF_MOBILES } else { 0 };
            let port = if is_port { IS_PORT } else { 0 };
            layout.links.insert(key, Link { interface, header, flags: mobiles | port });
            mobiles != 0
        };
        let interface = top(device.index);
        let mut has_mobiles = add((device.index, 0), interface, is_port(device));
        // VLANs on it, or on what it is a port of.
        for vlan in devices.iter().filter(|vlan| {
            vlan.below.is_some_and(|below| below == device.index || below == interface)
        }) {
            let Some(id) = vlan.vlan else { continue };
            let key = (device.index, id.into());
            has_mobiles |= add(key, top(vlan.index), is_port(vlan) || is_port(device));
        }
        if !is_upper(device) && (has_mobiles || places.has_uplinks) {
            layout.attached.insert(device.index, device.name.clone());
        }
    }
    layout
}

/// Uplinks whose packets flow tables lead around them: PPP hands them only those that no flow table
/// forwards.
pub(super) fn is_behind_flow_tables(devices: &[Device], uplink: &str) -> bool {
    devices.iter().any(|device| device.name == uplink && device.is_ppp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::netlink::{one, one_name};

    fn device(index: u32, name: &str, kind: &str) -> Device {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        Device { index, name, kind, hardware: ARPHRD_ETHER, ..Device::default() }
    }

    fn port(index: u32, name: &str, master: u32) -> Device {
        Device { master: Some(master), ..device(index, name, "") }
    }

    fn vlan(index: u32, name: &str, below: u32, id: u16) -> Device {
        Device { below: Some(below), vlan: Some(id), ..device(index, name, "vlan") }
    }

    fn interfaces(layout: &Layout) -> Vec<(LinkKey, u32)> {
        layout.links.iter().map(|(&key, link)| (key, link.interface)).collect()
    }

    #[test]
    fn frames_are_seen_at_ports_and_belong_to_the_bridge() {
        let devices = [
            device(1, "br-lan", "bridge"),
            port(2, "lan1", 1),
            device(3, "wan", ""),
            Device { hardware: ARPHRD_PPP, ..device(4, "pppoe-wan", "ppp") },
            Device { hardware: 772, ..device(5, "lo", "") },
            device(6, "ifb4wan", "ifb"),
        ];
        let layout = layout(&devices, &Places::default());
        assert_eq!(layout.attached.keys().copied().collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(layout.links[&(2, 0)], Link { interface: 1, header: 14, flags: 3 });
        assert_eq!(layout.links[&(4, 0)], Link { interface: 4, header: 0, flags: 1 });
        assert!(!layout.links.contains_key(&(5, 0)));
    }

    #[test]
    fn a_tag_belongs_to_its_vlan_on_the_interface_or_on_its_bridge() {
        let devices = [
            device(1, "br-lan", "bridge"),
            port(2, "lan1", 1),
            device(3, "eth0", ""),
            vlan(4, "eth0.7", 3, 7),
            vlan(5, "br-lan.9", 1, 9),
        ];
        let layout = layout(&devices, &Places::default());
        assert_eq!(layout.attached.keys().copied().collect::<Vec<_>>(), [2, 3]);
        let found = interfaces(&layout);
        assert!(found.contains(&((3, 7), 4)) && found.contains(&((2, 9), 5)), "{found:?}");
        assert!(found.contains(&((4, 0), 4)), "as what a packet came by before");
    }

    #[test]
    fn only_interfaces_with_mobiles_behind_them_have_programs() {
        let pattern: InterfacePattern = "wlan*".parse().unwrap();
        let devices = [
            device(1, "wlan0", ""),
            device(2, "wan", ""),
            device(3, "vrf1", "vrf"),
            port(4, "wlan1", 3),
        ];
        let mut places = Places { mobiles: Some([pattern].into()), has_uplinks: false };
        let attached = |places: &Places| -> Vec<u32> {
            layout(&devices, places).attached.keys().copied().collect()
        };
        assert_eq!(attached(&places), [1, 4]);
        places.has_uplinks = true;
        assert_eq!(attached(&places), [1, 2, 4]);
        assert_eq!(layout(&devices, &places).links[&(2, 0)].flags, 0);
        assert_eq!(layout(&devices, &places).links[&(4, 0)].interface, 4, "it stays its own");
    }

    #[test]
    fn a_switchs_conduit_carries_what_its_ports_show() {
        let dsa = |index, name| Device { below: Some(1), ..device(index, name, "dsa") };
        let devices = [device(1, "eth0", ""), dsa(2, "lan1"), dsa(3, "wan")];
        let layout = layout(&devices, &Places::default());
        assert_eq!(layout.attached.keys().copied().collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn links_are_read_as_the_kernel_writes_them() {
        let mut body = vec![0; HEADER];
        body[2..4].copy_from_slice(&ARPHRD_ETHER.to_ne_bytes());
        body[4..8].copy_from_slice(&9_u32.to_ne_bytes());
        let info = [
            one_name(IFLA_INFO_KIND, "vlan"),
            one(IFLA_INFO_DATA, &one(IFLA_VLAN_ID, &7_u16.to_ne_bytes())),
        ];
        body.extend(one_name(IFLA_IFNAME, "eth0.7"));
        body.extend(one(IFLA_LINK, &3_u32.to_ne_bytes()));
        body.extend(one(IFLA_MASTER, &5_u32.to_ne_bytes()));
        body.extend(one(IFLA_LINKINFO, &info.concat()));
        let wanted = Device { master: Some(5), ..vlan(9, "eth0.7", 3, 7) };
        assert_eq!(Device::parse(&body), Some(wanted.clone()));
        body.extend(one(IFLA_LINK_NETNSID, &[0; 4]));
        assert_eq!(Device::parse(&body), Some(Device { below: None, ..wanted }));
        assert_eq!(Device::parse(&body[..10]), None);
    }
}
