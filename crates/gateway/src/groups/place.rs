//! Where packets of groups pass, and how those that the gateway makes leave.

use super::error::DispatchError;
use crate::config::{Group, Members};
use crate::packets::{Egress, Intercepted};
use airtcp_core::Flow;
use airtcp_edge::{InterfaceName, MobileId, Side};
use std::net::IpAddr;

/// The interfaces that a group's packets cross.
pub(crate) enum Place {
    /// Indices of the interfaces behind which the mobiles are; empty: any.
    Mobiles(Vec<u32>),
    /// Index of the uplink's interface, while there is one.
    Uplink(Option<u32>),
}

impl Place {
    /// `index` finds interfaces by name.
    pub(crate) fn new(
        group: &Group,
        index: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<Self, DispatchError> {
        let find = |interface: &String| {
            index(interface).ok_or_else(|| DispatchError::Interface {
                group: group.name.clone(),
                interface: interface.clone(),
            })
        };
        Ok(match &group.members {
            Members::Mobiles { interfaces, .. } => {
                Self::Mobiles(interfaces.iter().map(find).collect::<Result<_, _>>()?)
            }
            Members::Uplink(interface) => Self::Uplink(index(interface.as_str())),
        })
    }

    /// True if a mobile with this address, behind this interface, belongs to the group.
    fn has(&self, group: &Group, ip: IpAddr, interface: Option<u32>) -> bool {
        let Self::Mobiles(interfaces) = self else { return false };
        let is_there = |index| interfaces.contains(&index);
        group.has(MobileId::Host(ip)) && (interfaces.is_empty() || interface.is_none_or(is_there))
    }

    /// The interface of this uplink, which may be another group's, has this index from now on;
    /// none: it is gone.
    pub(crate) fn set_index(&mut self, group: &Group, uplink: InterfaceName, index: Option<u32>) {
        if group.uplink() == Some(uplink) {
            *self = Self::Uplink(index);
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
