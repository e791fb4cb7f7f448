//! The contract between a mechanism and its driver: whatever carries segments, the simulator or the
//! gateway.
//!
//! The driver hands every segment between the two sides to [`Middlebox::on_segment`], link signals
//! to [`Middlebox::on_link`], and calls [`Middlebox::on_timer`] at [`Middlebox::next_deadline`];
//! after each call it carries out the [`Actions`], in order. A mechanism never sends anything
//! itself.

use crate::interface::InterfaceName;
use airtcp_core::event::DropReason;
use airtcp_core::{Flow, Instant, LinkSignal, Payload, Segment};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// One of the two sides of the edge node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The wired network.
    Fixed,
    /// The wireless link.
    Mobile,
}

impl Side {
    /// The other side.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Fixed => Self::Mobile,
            Self::Mobile => Self::Fixed,
        }
    }

    /// The flow from the fixed to the mobile host of the connection that a segment with this flow
    /// belongs to, which came in this side.
    pub const fn to_mobile(self, flow: Flow) -> Flow {
        match self {
            Self::Fixed => flow,
            Self::Mobile => flow.reversed(),
        }
    }
}

/// A unit of mobility, which goes away as one: a mobile host, or all hosts behind an uplink.
///
/// On board of a vehicle the node's uplink is the wireless link. The network behind it is then the
/// mobile side, and goes away as one; the hosts on board are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MobileId {
    /// A mobile host, by its address.
    Host(IpAddr),
    /// All hosts behind this interface of the node.
    Uplink(InterfaceName),
}

impl MobileId {
    /// The mobility unit of a connection: the `uplink` that it crosses, or else its mobile host.
    /// `flow` is that from the fixed to the mobile host.
    pub fn of(uplink: Option<InterfaceName>, flow: &Flow) -> Self {
        uplink.map_or(Self::Host(flow.dst.ip), Self::Uplink)
    }

    /// The address, if it is a host.
    pub const fn host(self) -> Option<IpAddr> {
        match self {
            Self::Host(ip) => Some(ip),
            Self::Uplink(_) => None,
        }
    }

    /// The interface, if it is an uplink.
    pub const fn uplink(self) -> Option<InterfaceName> {
        match self {
            Self::Host(_) => None,
            Self::Uplink(interface) => Some(interface),
        }
    }
}

impl fmt::Display for MobileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(ip) => ip.fmt(f),
            Self::Uplink(interface) => interface.fmt(f),
        }
    }
}

/// One thing for the driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<P> {
    /// Pass this segment on, unchanged.
    Forward {
        /// Out of this side.
        to: Side,
        /// The segment as it came.
        segment: Segment<P>,
    },
    /// Let this segment go no further.
    Drop {
        /// The segment that ends here.
        segment: Segment<P>,
        /// The reason, for the trace.
        reason: DropReason,
    },
    /// Send a segment of the mechanism's own making.
    Inject {
        /// Out of this side.
        to: Side,
        /// The segment made here.
        segment: Segment<P>,
    },
}

/// A mechanism's actions for the driver, in order. Reusable: draining keeps the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actions<P> {
    list: Vec<Action<P>>,
}

impl<P> Default for Actions<P> {
    fn default() -> Self {
        Self { list: Vec::new() }
    }
}

impl<P> Actions<P> {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a [`Action::Forward`].
    pub fn forward(&mut self, to: Side, segment: Segment<P>) {
        self.list.push(Action::Forward { to, segment });
    }
    /// Adds a [`Action::Drop`] for [`DropReason::Middlebox`].
    pub fn drop(&mut self, segment: Segment<P>) {
        self.list.push(Action::Drop { segment, reason: DropReason::Middlebox });
    }
    /// Adds an [`Action::Inject`].
    pub fn inject(&mut self, to: Side, segment: Segment<P>) {
        self.list.push(Action::Inject { to, segment });
    }
    /// Takes the actions out, first one first.
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = Action<P>> + '_ {
        self.list.drain(..)
    }
    /// Takes back what was to be injected on one side as a segment of this flow.
    pub fn retract(&mut self, side: Side, flow: Flow) {
        self.list.retain(|action| {
            !matches!(action, Action::Inject { to, segment } if *to == side && segment.flow == flow)
        });
    }
    /// The actions that were not taken out yet.
    pub fn as_slice(&self) -> &[Action<P>] {
        &self.list
    }
}

/// A mechanism at the edge of the wireless network.
pub trait Middlebox<P: Payload> {
    /// A segment came in `from` one side, on its way to the other. It must appear once in `out`,
    /// forwarded or dropped, unless the mechanism keeps it for later.
    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>);
    /// The radio reported something about its link to `mobile`. What there is to be done for more
    /// connections than can be served in one call follows at [`Middlebox::next_deadline`], now.
    fn on_link(&mut self, now: Instant, mobile: MobileId, signal: LinkSignal, out: &mut Actions<P>);
    /// The deadline passed (an early or needless call changes nothing). Where much is due some of
    /// it is left, and the next deadline has passed already.
    fn on_timer(&mut self, now: Instant, out: &mut Actions<P>);
    /// Time of the next [`Middlebox::on_timer`]; `None` while no timer runs.
    fn next_deadline(&self) -> Option<Instant>;
}
