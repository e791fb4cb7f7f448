//! The contract between a routing protocol and its shell.
//!
//! A [`Router`] is the protocol on one node. The shell hands it every packet that the node sends, receives
//! or is to forward, says which links failed, and calls [`Router::on_timer`] at
//! [`Router::next_deadline`]; after each call it carries out the [`Actions`], in order. A router never
//! sends anything itself.
//!
//! A data packet is somewhere exactly once. The router that is handed one owns it until it names it in an
//! action, perhaps much later.

use crate::NodeId;
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Instant, Position};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::vec::Drain;

/// A data packet, by a number of the shell's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketId(pub u32);

/// What a protocol writes into a packet. Its own code finds it again by `dyn Any`; the shell needs to know
/// only how long it is.
pub trait Message: Any + fmt::Debug + Send + Sync {
    /// As a control packet: the size of the whole IP packet. As a header: what it adds to the data packet.
    fn size(&self) -> Bytes;
}

/// A data packet in a router's hands.
#[derive(Clone, Debug)]
pub struct Data {
    /// The packet.
    pub id: PacketId,
    /// The node that made it.
    pub source: NodeId,
    /// The node it is for.
    pub destination: NodeId,
    /// How many links it may still cross. The shell counts it down at each node that forwards it.
    pub ttl: u8,
    /// What the protocol wrote into it on its way.
    pub header: Option<Arc<dyn Message>>,
}

/// A packet in a router's hands.
#[derive(Clone, Debug)]
pub enum Packet {
    /// Somebody's: what the network is for.
    Data(Data),
    /// The protocol's own, which goes one hop. To relay it is to send it anew.
    Control(Arc<dyn Message>),
}

/// To whom a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextHop {
    /// To this neighbour.
    Node(NodeId),
    /// To every node in reach, unacknowledged.
    Broadcast,
}

/// What a router tells the transport protocols of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// The route to this destination is gone (Holland and Vaidya, MobiCom 1999, §4: ELFN).
    RouteFailed(NodeId),
    /// A route to this destination was found.
    RouteFound(NodeId),
}

/// One thing for the shell to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send this packet now.
    Send {
        /// The packet; of a data packet also what its TTL and header are from now on.
        packet: Packet,
        /// To whom.
        to: NextHop,
    },
    /// Give this packet to the transport protocol of this node.
    Deliver(Data),
    /// Let this packet go no further.
    Drop {
        /// The packet.
        packet: Data,
        /// Why.
        reason: DropReason,
    },
    /// Tell the transport protocols of this node.
    Notify(Notice),
}

/// What a router wants done, in order. Reusable: draining keeps the memory.
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
    /// Adds an [`Action::Notify`].
    pub fn notify(&mut self, notice: Notice) {
        self.list.push(Action::Notify(notice));
    }
    /// Takes the actions out, first one first.
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = Action> + '_ {
        self.list.drain(..)
    }
}

/// What a router may know without being told by others.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Simulated or real time.
    pub now: Instant,
    /// Where a node is now, if anybody knows: the node's own position, and an ideal location service.
    pub position_of: &'a dyn Fn(NodeId) -> Option<Position>,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("now", &self.now).finish_non_exhaustive()
    }
}

/// A routing protocol on one node.
pub trait Router: Send {
    /// A packet of the node's own (`from` is `None`), or one that came from a neighbour: to be sent on, or
    /// delivered if it is a data packet for this node.
    fn on_packet(
        &mut self,
        context: &Context<'_>,
        from: Option<NodeId>,
        packet: Packet,
        out: &mut Actions,
    );

    /// Whether control packets go to the head of the interface queue, as they do in ns-2 (`PriQueue`) and in
    /// GloMoSim, or wait behind data.
    fn control_first(&self) -> bool {
        true
    }

    /// Whether [`Router::on_overheard`] is to be called; asked once, before the run.
    fn overhears(&self) -> bool {
        false
    }

    /// The node overheard a packet from one neighbour to another one. Its data is not for this node to send.
    fn on_overheard(
        &mut self,
        _context: &Context<'_>,
        _from: NodeId,
        _to: NodeId,
        _packet: &Packet,
        _out: &mut Actions,
    ) {
    }

    /// The link layer gave up on a neighbour. `packets` are those that this node had for it, the oldest
    /// first; the last attempt may have reached it nevertheless, and then that packet is not among them.
    fn on_link_failure(
        &mut self,
        context: &Context<'_>,
        neighbour: NodeId,
        packets: Drain<'_, Packet>,
        out: &mut Actions,
    );

    /// The deadline passed (an early or needless call changes nothing).
    fn on_timer(&mut self, context: &Context<'_>, out: &mut Actions);

    /// When to call [`Router::on_timer`] next; `None` while no timer runs.
    fn next_deadline(&self) -> Option<Instant>;
}
