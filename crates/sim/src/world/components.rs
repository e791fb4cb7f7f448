//! The ids of the world's parts, and the numbers under which they wake up.

use super::World;
use crate::engine::ComponentId;
use crate::scenario::{CellId, End, FlowId, QuicId, UdpId, WlanId};
use airtcp_core::IdVec;
use airtcp_routing::LinkId;

airtcp_core::ids! {
    /// One end of a flow.
    pub(super) struct SocketId;
    /// A mechanism at work on a node.
    pub(super) struct MechanismId;
    /// The signals about one node's outages to one listener.
    pub(super) struct FeedId;
    /// A router at work on a node.
    pub(super) struct RouterId;
    /// A junction of links.
    pub(super) struct JunctionId;
    /// The arriving transfers of a flow.
    pub(super) struct ArrivalsId;
    /// One end of a QUIC flow.
    pub(super) struct QuicEndId;
}

impl QuicEndId {
    /// This end of a flow.
    pub(super) fn of(QuicId(flow): QuicId, end: End) -> Self {
        match end {
            End::Sender => Self(2 * flow),
            End::Receiver => Self(2 * flow + 1),
        }
    }
}

impl SocketId {
    /// The data sender of a flow.
    pub(super) fn sender(FlowId(flow): FlowId) -> Self {
        Self(2 * flow)
    }

    /// The data receiver of a flow.
    pub(super) fn receiver(FlowId(flow): FlowId) -> Self {
        Self(2 * flow + 1)
    }

    pub(super) fn is_receiver(self) -> bool {
        !self.0.is_multiple_of(2)
    }
}

/// A part of the world that wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component {
    Link(LinkId),
    Channel(WlanId),
    Socket(SocketId),
    Mechanism(MechanismId),
    Udp(UdpId),
    Feed(FeedId),
    Router(RouterId),
    Junction(JunctionId),
    Arrivals(ArrivalsId),
    Quic(QuicEndId),
    Cell(CellId),
}

const KINDS: usize = 11;

impl Component {
    /// Its kind, and its number within the kind.
    #[inline]
    fn kind_and_number(self) -> (usize, u32) {
        match self {
            Self::Link(LinkId(number)) => (0, number),
            Self::Channel(WlanId(number)) => (1, number),
            Self::Socket(SocketId(number)) => (2, number),
            Self::Mechanism(MechanismId(number)) => (3, number),
            Self::Udp(UdpId(number)) => (4, number),
            Self::Feed(FeedId(number)) => (5, number),
            Self::Router(RouterId(number)) => (6, number),
            Self::Junction(JunctionId(number)) => (7, number),
            Self::Arrivals(ArrivalsId(number)) => (8, number),
            Self::Quic(QuicEndId(number)) => (9, number),
            Self::Cell(CellId(number)) => (10, number),
        }
    }
}

/// All components, numbered for [`Wakeups`](crate::engine::Wakeups), kind by kind, and then the
/// sockets that were added later.
#[derive(Debug, Default)]
pub(super) struct Components {
    all: IdVec<ComponentId, Component>,
    /// The first component of each kind.
    first: [u32; KINDS],
    /// Number of sockets in their place among the kinds.
    sockets: u32,
    /// The first of those added.
    added: u32,
}

impl Components {
    /// The components of a complete world. Of simultaneous wake-ups known for equally long, the
    /// earlier in this order comes first.
    pub(super) fn of(world: &World) -> Self {
        let links = world.links.ids().map(Component::Link);
        let all = links
            .chain(world.channels.ids().map(Component::Channel))
            .chain(world.sockets.ids().map(Component::Socket))
            .chain(world.mechanisms.ids().map(Component::Mechanism))
            .chain(world.udp.ids().map(Component::Udp))
            .chain(world.feeds.ids().map(Component::Feed))
            .chain(world.routers.ids().map(Component::Router))
            .chain(world.junctions.ids().map(Component::Junction))
            .chain(world.arrivals.ids().map(Component::Arrivals))
            .chain(world.quic.ids().map(Component::Quic))
            .chain(world.cells.ids().map(Component::Cell));
        let all: IdVec<ComponentId, Component> = all.collect();
        let mut first = [0; KINDS];
        for (id, component) in all.enumerated() {
            if let (kind, 0) = component.kind_and_number() {
                first[kind] = id.0;
            }
        }
        Self { first, sockets: world.sockets.len() as u32, added: all.len() as u32, all }
    }

    /// Adds the next socket.
    pub(super) fn add_socket(&mut self, socket: SocketId) {
        self.all.push(Component::Socket(socket));
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The component that [`Wakeups`](crate::engine::Wakeups) knows by this number.
    #[inline]
    pub(super) fn component(&self, id: ComponentId) -> Component {
        self.all[id]
    }

    /// The number by which [`Wakeups`](crate::engine::Wakeups) knows a component.
    #[inline]
    pub(super) fn id(&self, component: Component) -> ComponentId {
        if let Component::Socket(SocketId(number)) = component
            && number >= self.sockets
        {
            return ComponentId(self.added + (number - self.sockets));
        }
        let (kind, number) = component.kind_and_number();
        ComponentId(self.first[kind] + number)
    }
}
