//! Where packets of groups pass, and how those that the gateway makes leave.

use crate::config::Group;
use crate::packets::{Egress, Intercepted};
use airtcp_core::Flow;
use airtcp_edge::{InterfaceName, MobileId, Side};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Indices of interfaces by their names.
pub type Interfaces = BTreeMap<InterfaceName, u32>;

/// The interfaces that a group's packets cross, as far as they exist.
pub(crate) enum Place {
    /// Indices of the group's interfaces, behind which the mobiles are, by their names.
    Mobiles(Interfaces),
    /// Index of the uplink's interface.
    Uplink(Option<u32>),
}

impl Place {
    /// The place of a group on a host with these interfaces.
    pub(crate) fn new(group: &Group, interfaces: &Interfaces) -> Self {
        match group.uplink() {
            None => {
                let own = interfaces.iter().filter(|(name, _)| group.is_behind(name.as_str()));
                Self::Mobiles(own.map(|(&name, &index)| (name, index)).collect())
            }
            Some(uplink) => Self::Uplink(interfaces.get(&uplink).copied()),
        }
    }

    /// True if a mobile with this address, behind this interface, belongs to the group.
    fn has(&self, group: &Group, ip: IpAddr, interface: Option<u32>) -> bool {
        let Self::Mobiles(indices) = self else { return false };
        let is_there = |index| indices.values().any(|&known| known == index);
        let is_anywhere = group.interfaces().is_empty();
        group.has(MobileId::Host(ip)) && (is_anywhere || interface.is_none_or(is_there))
    }

    /// This interface, which may be another group's, has this index from now on; `None`: it is
    /// gone.
    pub(crate) fn set_index(&mut self, group: &Group, name: InterfaceName, index: Option<u32>) {
        match (self, index) {
            (Self::Uplink(known), _) => {
                if group.uplink() == Some(name) {
                    *known = index;
                }
            }
            (Self::Mobiles(indices), Some(index)) => {
                if group.is_behind(name.as_str()) {
                    indices.insert(name, index);
                }
            }
            (Self::Mobiles(indices), None) => {
                indices.remove(&name);
            }
        }
    }

    /// True if this is the uplink's interface.
    fn is_uplink(&self, interface: Option<u32>) -> bool {
        matches!(*self, Self::Uplink(index) if index.is_some() && index == interface)
    }

    /// The egress of packets to a side; `None` if the interface does not exist.
    pub(crate) fn egress(&self, to: Side) -> Option<Egress> {
        match (self, to) {
            (Self::Mobiles(_), _) => Some(egress(to)),
            (Self::Uplink(_), Side::Fixed) => Some(Egress::Untracked),
            (Self::Uplink(index), Side::Mobile) => index.map(Egress::Uplink),
        }
    }
}

/// The group that a packet belongs to, and from which side it comes. Nobody on board sends what
/// goes from one uplink to another.
pub(crate) fn classify<'a, G: Iterator<Item = (&'a Group, &'a Place)>>(
    groups: impl Fn() -> G,
    flow: &Flow,
    packet: &Intercepted,
) -> Option<(usize, Side)> {
    let find = |ip: IpAddr, interface: Option<u32>| {
        groups().position(|(group, place)| place.has(group, ip, interface))
    };
    let crosses = |interface| groups().position(|(_, place)| place.is_uplink(interface));
    let to_mobile = find(flow.dst.ip, packet.output).map(|n| (n, Side::Fixed));
    let from_mobile = || find(flow.src.ip, packet.input).map(|n| (n, Side::Mobile));
    to_mobile.or_else(from_mobile).or_else(|| {
        match (crosses(packet.output), crosses(packet.input)) {
            (Some(n), None) => Some((n, Side::Fixed)),
            (None, Some(n)) => Some((n, Side::Mobile)),
            (None, None) | (Some(_), Some(_)) => None,
        }
    })
}

/// The egress of packets on a router at the edge of the network.
pub(crate) fn egress(to: Side) -> Egress {
    match to {
        Side::Fixed => Egress::Tracked,
        Side::Mobile => Egress::Untracked,
    }
}
