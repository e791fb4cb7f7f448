//! One router, told what happens and asked what it does.

use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant, Position};
use airtcp_routing::router::{Action, Context, Data, Message, NextHop, Notice, Packet, PacketId};
use airtcp_routing::{Actions, LinkFailure, NodeId, Router};
use std::sync::Arc;

/// An action of a router, with its protocol's messages as `M`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Did<M> {
    /// Sent a message to a neighbour.
    Told(u32, M),
    /// Broadcast a message.
    Broadcast(M),
    /// Sent a data packet to a neighbour.
    Sent(u32, u32),
    /// Delivered a data packet.
    Delivered(u32),
    /// Dropped a data packet.
    Dropped(u32, DropReason),
    /// Dropped what waits for a neighbour.
    Cleared(u32),
    /// Reported to transport: no route to this node.
    Lost(u32),
    /// Reported to transport: a route to this node.
    Found(u32),
}

/// A router and its clock.
pub(crate) struct Script<R> {
    pub(crate) router: R,
    pub(crate) now: Instant,
    /// The data packets it sent, for their headers.
    pub(crate) sent: Vec<Data>,
    pub(crate) positions: Vec<Position>,
}

/// A data packet as its source makes it.
pub(crate) fn data(id: u32, source: u32, destination: u32) -> Data {
    let (source, destination) = (NodeId(source), NodeId(destination));
    Data { id: PacketId(id), source, destination, ttl: 64, header: None }
}

impl<R: Router> Script<R> {
    pub(crate) fn new(router: R) -> Self {
        Self { router, now: Instant::ZERO, sent: Vec::new(), positions: Vec::new() }
    }

    fn ask<M: Message + Clone>(
        &mut self,
        question: impl FnOnce(&mut R, &Context<'_>, &mut Actions),
    ) -> Vec<Did<M>> {
        let mut out = Actions::default();
        let positions = &self.positions;
        let position_of = |node: NodeId| positions.get(node.0 as usize).copied();
        question(&mut self.router, &Context { now: self.now, position_of: &position_of }, &mut out);
        let mut did = Vec::new();
        for action in out.drain() {
            did.push(match action {
                Action::Send { packet: Packet::Data(data), to: NextHop::Node(to) } => {
                    let id = data.id.0;
                    self.sent.push(data);
                    Did::Sent(id, to.0)
                }
                Action::Send { packet: Packet::Data(data), .. } => panic!("broadcast {data:?}"),
                Action::Send { packet: Packet::Control(message), to } => {
                    let message: &M = message.downcast_ref().expect("of this protocol");
                    match to {
                        NextHop::Node(to) => Did::Told(to.0, message.clone()),
                        NextHop::Broadcast => Did::Broadcast(message.clone()),
                    }
                }
                Action::Deliver(data) => Did::Delivered(data.id.0),
                Action::Drop { packet, reason } => Did::Dropped(packet.id.0, reason),
                Action::Clear(to) => Did::Cleared(to.0),
                Action::Notify(Notice::RouteFailed(to)) => Did::Lost(to.0),
                Action::Notify(Notice::RouteFound(to)) => Did::Found(to.0),
            });
        }
        did
    }

    /// A message comes from a neighbour.
    pub(crate) fn hears<M: Message + Clone>(&mut self, from: u32, message: M) -> Vec<Did<M>> {
        let packet = Packet::Control(Arc::new(message));
        self.ask(|router, context, out| {
            router.on_packet(context, Some(NodeId(from)), packet, out);
        })
    }

    /// A data packet of its own.
    pub(crate) fn sends<M: Message + Clone>(&mut self, data: Data) -> Vec<Did<M>> {
        self.ask(|router, context, out| router.on_packet(context, None, Packet::Data(data), out))
    }

    /// A data packet comes from a neighbour.
    pub(crate) fn carries<M: Message + Clone>(&mut self, from: u32, data: Data) -> Vec<Did<M>> {
        self.ask(|router, context, out| {
            router.on_packet(context, Some(NodeId(from)), Packet::Data(data), out);
        })
    }

    /// A packet between two others.
    pub(crate) fn overhears<M: Message + Clone>(
        &mut self,
        from: u32,
        to: u32,
        packet: Packet,
    ) -> Vec<Did<M>> {
        self.ask(|router, context, out| {
            router.on_overheard(context, NodeId(from), NodeId(to), &packet, out);
        })
    }

    /// The link layer gives up on a neighbour: on the first packet after many tries, on the others
    /// because they waited for the same neighbour.
    pub(crate) fn fails<M: Message + Clone>(
        &mut self,
        neighbour: u32,
        mut packets: Vec<Packet>,
    ) -> Vec<Did<M>> {
        let waiting = &mut packets.split_off(packets.len().min(1));
        let tried = packets.pop();
        self.ask(|router, context, out| {
            let waiting = waiting.drain(..);
            let failure = LinkFailure { neighbour: NodeId(neighbour), tried, waiting };
            router.on_link_failure(context, failure, out);
        })
    }

    /// Time passes; what the router did, and when.
    pub(crate) fn waits<M: Message + Clone>(&mut self, time: Duration) -> Vec<(Instant, Did<M>)> {
        let end = self.now + time;
        let mut did = Vec::new();
        while let Some(due) = self.router.next_deadline().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            let now = self.now;
            let done = self.ask(|router, context, out| router.on_timer(context, out));
            did.extend(done.into_iter().map(|done| (now, done)));
        }
        self.now = end;
        did
    }

    /// Time passes; what the router did.
    pub(crate) fn later<M: Message + Clone>(&mut self, time: Duration) -> Vec<Did<M>> {
        self.waits(time).into_iter().map(|(_, did)| did).collect()
    }
}
