//! The contract between a routing protocol and its host.
//!
//! A [`Router`] is the protocol on one node. Its host, a simulator or a live node, hands it every
//! packet that the node sends, receives or forwards, reports failed links, and calls
//! [`Router::on_timer`] at [`Router::next_deadline`]. After each call the host carries out the
//! [`Actions`], in order. A router never sends anything itself.
//!
//! Each data packet is in exactly one place. A router that is given one owns it until it names it
//! in an action, perhaps much later.

use crate::NodeId;
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Instant, Position};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::vec::Drain;

airtcp_core::ids! {
    /// A data packet, by a number that the host assigns.
    pub struct PacketId;
}

/// A header that a protocol writes into a packet, or a message of its own. The protocol's own code
/// [recovers](trait.Message.html#method.downcast_ref) it; the host needs to know only its length.
pub trait Message: Any + fmt::Debug + Send + Sync {
    /// In a control packet: the size of the whole IP packet. In a header: what it adds to the data
    /// packet.
    fn size(&self) -> Bytes;
}

impl dyn Message {
    /// The message as its protocol's type; `None` if it is another protocol's.
    pub fn downcast_ref<T: Message>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// A data packet in a router's hands.
#[derive(Clone, Debug)]
pub struct Data {
    /// The number of the packet at the host.
    pub id: PacketId,
    /// The node that sent it first.
    pub source: NodeId,
    /// Its destination node.
    pub destination: NodeId,
    /// Number of links it may still cross. The host decrements it at each node that forwards the
    /// packet.
    pub ttl: u8,
    /// The header that the protocol wrote into it on the way.
    pub header: Option<Arc<dyn Message>>,
}

/// A packet in a router's hands.
#[derive(Clone, Debug)]
pub enum Packet {
    /// Data, of a transport protocol.
    Data(Data),
    /// The protocol's own packet, which goes one hop. A relay sends it as a packet of its own.
    Control(Arc<dyn Message>),
}

/// The next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextHop {
    /// To this neighbour.
    Node(NodeId),
    /// Every node in range, unacknowledged.
    Broadcast,
}

/// A router's notice to the transport protocols of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// The route to this destination is gone (Holland and Vaidya, MobiCom 1999, §4: ELFN).
    RouteFailed(NodeId),
    /// A route to this destination was found.
    RouteFound(NodeId),
}

/// One action for the host to carry out.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send this packet now.
    Send {
        /// The packet; for a data packet, also its TTL and header from now on.
        packet: Packet,
        /// The next hop.
        to: NextHop,
    },
    /// Give this packet to the transport protocol of this node.
    Deliver(Data),
    /// Drop this packet.
    Drop {
        /// The packet to drop.
        packet: Data,
        /// The reason for the drop.
        reason: DropReason,
    },
    /// Drop the packets that wait to be sent to this neighbour.
    Clear(NodeId),
    /// Notify the transport protocols of this node.
    Notify(Notice),
}

/// The actions that a router asks for, in order. Reusable: draining keeps the memory.
#[derive(Debug, Default)]
pub struct Actions {
    list: Vec<Action>,
}

impl Actions {
    /// Adds an [`Action::Send`] of a data packet.
    pub fn send(&mut self, packet: Data, to: NextHop) {
        self.list.push(Action::Send { packet: Packet::Data(packet), to });
    }
    /// Adds an [`Action::Send`] of a control packet.
    pub fn control(&mut self, message: Arc<dyn Message>, to: NextHop) {
        self.list.push(Action::Send { packet: Packet::Control(message), to });
    }
    /// Adds an [`Action::Deliver`].
    pub fn deliver(&mut self, packet: Data) {
        self.list.push(Action::Deliver(packet));
    }
    /// Adds an [`Action::Drop`].
    pub fn drop(&mut self, packet: Data, reason: DropReason) {
        self.list.push(Action::Drop { packet, reason });
    }
    /// Adds an [`Action::Clear`].
    pub fn clear(&mut self, neighbour: NodeId) {
        self.list.push(Action::Clear(neighbour));
    }
    /// Adds an [`Action::Notify`].
    pub fn notify(&mut self, notice: Notice) {
        self.list.push(Action::Notify(notice));
    }
    /// Takes the actions out, in order.
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = Action> + '_ {
        self.list.drain(..)
    }
}

/// What a router may know without exchanging messages.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Simulated or real time.
    pub now: Instant,
    /// The position of a node now, if known: the node's own, or through an ideal location service.
    pub position_of: &'a dyn Fn(NodeId) -> Option<Position>,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("now", &self.now).finish_non_exhaustive()
    }
}

/// The link layer's report that it gave up on a neighbour, with the packets that it returns.
#[derive(Debug)]
pub struct LinkFailure<'a> {
    /// The neighbour that did not answer.
    pub neighbour: NodeId,
    /// The packet that was tried too often; `None` if its last attempt did reach the neighbour,
    /// and only the acknowledgement was lost.
    pub tried: Option<Packet>,
    /// The packets that waited for the same neighbour, oldest first.
    pub waiting: Drain<'a, Packet>,
}

impl LinkFailure<'_> {
    /// The data packets, oldest first. Control packets are lost.
    pub fn data(self) -> impl Iterator<Item = Data> {
        self.tried.into_iter().chain(self.waiting).filter_map(|packet| match packet {
            Packet::Data(data) => Some(data),
            Packet::Control(_) => None,
        })
    }
}

/// A routing protocol on one node.
pub trait Router: Send {
    /// A packet of the node's own (`from` is `None`), or one that came from a neighbour: to be
    /// forwarded, or delivered if it is a data packet for this node.
    fn on_packet(
        &mut self,
        context: &Context<'_>,
        from: Option<NodeId>,
        packet: Packet,
        out: &mut Actions,
    );

    /// True if control packets go to the head of the interface queue, as in ns-2 (`PriQueue`) and
    /// GloMoSim; false if they wait behind data.
    fn control_first(&self) -> bool {
        true
    }

    /// True to receive calls of [`Router::on_overheard`]; asked once, before the run.
    fn overhears(&self) -> bool {
        false
    }

    /// The node overheard a packet from one neighbour to another. Its data is not this node's to
    /// send.
    fn on_overheard(
        &mut self,
        _context: &Context<'_>,
        _from: NodeId,
        _to: NodeId,
        _packet: &Packet,
        _out: &mut Actions,
    ) {
    }

    /// The link layer gave up on a neighbour.
    fn on_link_failure(
        &mut self,
        context: &Context<'_>,
        failure: LinkFailure<'_>,
        out: &mut Actions,
    );

    /// The deadline passed (an early or unnecessary call changes nothing).
    fn on_timer(&mut self, context: &Context<'_>, out: &mut Actions);

    /// The next time at which to call [`Router::on_timer`]; `None` while no timer runs.
    fn next_deadline(&self) -> Option<Instant>;
}
