//! Routers over an ideal medium with a virtual clock.

use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant, Position, Stream};
use airtcp_routing::router::{Action, Context, Data, Message, NextHop, Notice, Packet, PacketId};
use airtcp_routing::{Actions, LinkFailure, NodeId, Router};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Delay of a packet from node to node.
pub(crate) const HOP: Duration = Duration::from_millis(1);
/// Time for which the link layer tries.
const TRIES: Duration = Duration::from_millis(5);

/// An event under way.
enum Event {
    Arrives { from: u32, to: u32, packet: Packet },
    Overheard { by: u32, from: u32, to: u32, packet: Packet },
    Fails { at: u32, neighbour: u32, tried: Option<Packet> },
}

/// A control packet that was sent.
pub(crate) struct Sent {
    pub(crate) from: u32,
    pub(crate) to: NextHop,
    pub(crate) message: Arc<dyn Message>,
}

/// Nodes 0 to n - 1, each with a router.
pub(crate) struct Medium<R> {
    pub(crate) now: Instant,
    pub(crate) routers: Vec<R>,
    pub(crate) positions: Vec<Position>,
    /// Who hears whom.
    links: BTreeSet<(u32, u32)>,
    queue: BTreeMap<(Instant, u64), Event>,
    events: u64,
    packets: u32,
    /// Of data packets.
    pub(crate) ttl: u8,
    /// Probability that a packet is lost, or only its acknowledgement.
    pub(crate) loss: f64,
    chance: Stream,
    pub(crate) control: Vec<Sent>,
    /// Each node that a data packet was sent by, in order.
    pub(crate) paths: BTreeMap<u32, Vec<u32>>,
    pub(crate) delivered: Vec<(Instant, u32)>,
    pub(crate) dropped: Vec<(u32, u32, DropReason)>,
    pub(crate) notices: Vec<(u32, Notice)>,
}

impl<R: Router> Medium<R> {
    /// Nodes without links.
    pub(crate) fn new(nodes: u32, router: impl FnMut(u32) -> R) -> Self {
        Self {
            now: Instant::ZERO,
            routers: (0..nodes).map(router).collect(),
            positions: vec![Position::default(); nodes as usize],
            links: BTreeSet::new(),
            queue: BTreeMap::new(),
            events: 0,
            packets: 0,
            ttl: 64,
            loss: 0.0,
            chance: Stream::new(1, "medium"),
            control: Vec::new(),
            paths: BTreeMap::new(),
            delivered: Vec::new(),
            dropped: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// A line of nodes, 200 m apart, each with a link to the next.
    pub(crate) fn chain(nodes: u32, router: impl FnMut(u32) -> R) -> Self {
        let mut medium = Self::new(nodes, router);
        for n in 1..nodes {
            medium.positions[n as usize].x = 200.0 * f64::from(n);
            medium.link(n - 1, n);
        }
        medium
    }

    /// Lets two nodes hear each other.
    pub(crate) fn link(&mut self, a: u32, b: u32) {
        self.links.extend([(a, b), (b, a)]);
    }

    /// Breaks the link between two nodes.
    pub(crate) fn unlink(&mut self, a: u32, b: u32) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    /// Lets those nodes hear each other that are at most `range` metres apart.
    pub(crate) fn link_within(&mut self, range: f64) {
        self.links.clear();
        for a in 0..self.positions.len() {
            for b in 0..a {
                if self.positions[a].distance(self.positions[b]) <= range {
                    self.link(a as u32, b as u32);
                }
            }
        }
    }

    /// Puts every node somewhere in an area, for a range of 250 m.
    pub(crate) fn scatter(&mut self, chance: &mut Stream, (width, height): (f64, f64)) {
        for position in &mut self.positions {
            position.x = chance.uniform(0.0, width);
            position.y = chance.uniform(0.0, height);
        }
        self.link_within(250.0);
    }

    /// Moves about three nodes in ten, and sends up to five packets to few destinations; their
    /// number.
    pub(crate) fn stir(&mut self, chance: &mut Stream) -> u64 {
        for position in &mut self.positions {
            if chance.chance(0.3) {
                position.x = chance.uniform(0.0, 800.0);
                position.y = chance.uniform(0.0, 400.0);
            }
        }
        self.link_within(250.0);
        let packets = chance.below(6);
        for _ in 0..packets {
            let from = chance.below(self.routers.len() as u64) as u32;
            self.send(from, chance.below(3) as u32);
        }
        packets
    }

    /// Sends a packet from node 0 to each of the others in turn: it arrives if and only if there is
    /// a path.
    pub(crate) fn delivers_wherever_there_is_a_path(&mut self, chance: &mut Stream) {
        self.scatter(chance, (1000.0, 600.0));
        let nodes = self.routers.len() as u32;
        for to in 1..nodes {
            self.send(0, to);
            self.run_for(Duration::from_secs(40));
        }
        let ids: Vec<u32> =
            (1..nodes).filter(|&to| self.connected(0, to)).map(|to| to - 1).collect();
        assert_eq!(self.delivered.iter().map(|(_, id)| *id).collect::<Vec<_>>(), ids);
    }

    /// True if there is a path.
    pub(crate) fn connected(&self, from: u32, to: u32) -> bool {
        let mut reached = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            let next = self.links.range((node, 0)..=(node, u32::MAX)).map(|&(_, to)| to);
            open.extend(next.filter(|&to| reached.insert(to)));
        }
        reached.contains(&to)
    }

    /// Sends a data packet; its number.
    pub(crate) fn send(&mut self, from: u32, to: u32) -> u32 {
        let id = self.packets;
        self.packets += 1;
        self.paths.insert(id, Vec::new());
        let (source, destination) = (NodeId(from), NodeId(to));
        let data = Data { id: PacketId(id), source, destination, ttl: self.ttl, header: None };
        self.ask(from, |router, context, out| {
            router.on_packet(context, None, Packet::Data(data), out);
        });
        id
    }

    /// Lets time pass.
    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_checked(time, |_| {});
    }

    /// Lets time pass, with a check after each event.
    pub(crate) fn run_checked(&mut self, time: Duration, mut check: impl FnMut(&Self)) {
        let end = self.now + time;
        loop {
            let timers = (0..).zip(&self.routers);
            let timer = timers.filter_map(|(n, r)| Some((r.next_deadline()?, n))).min();
            let event = self.queue.first_key_value().map(|(&(at, _), _)| at);
            let timer_first = timer.is_some_and(|(due, _)| event.is_none_or(|at| due < at));
            let next = if timer_first { timer.map(|(due, _)| due) } else { event };
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            if let Some((_, node)) = timer.filter(|_| timer_first) {
                self.ask(node, |router, context, out| router.on_timer(context, out));
                let due = self.routers[node as usize].next_deadline();
                assert!(
                    due.is_none_or(|due| due >= next),
                    "node {node} is late by its own deadline"
                );
            } else if let Some((_, event)) = self.queue.pop_first() {
                self.happen(event);
            }
            check(self);
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives { from, to, packet } => {
                let mut packet = packet;
                if let Packet::Data(data) = &mut packet
                    && data.destination != NodeId(to)
                {
                    data.ttl -= 1;
                    if data.ttl == 0 {
                        return self.dropped.push((to, data.id.0, DropReason::TtlExpired));
                    }
                }
                self.ask(to, |router, context, out| {
                    router.on_packet(context, Some(NodeId(from)), packet, out);
                });
            }
            Event::Overheard { by, from, to, packet } => self.ask(by, |router, context, out| {
                router.on_overheard(context, NodeId(from), NodeId(to), &packet, out);
            }),
            Event::Fails { at, neighbour, tried } => self.ask(at, |router, context, out| {
                let waiting = &mut Vec::new();
                let waiting = waiting.drain(..);
                let failure = LinkFailure { neighbour: NodeId(neighbour), tried, waiting };
                router.on_link_failure(context, failure, out);
            }),
        }
    }

    fn ask(&mut self, node: u32, question: impl FnOnce(&mut R, &Context<'_>, &mut Actions)) {
        let mut actions = Actions::default();
        let positions = &self.positions;
        let position_of = |node: NodeId| positions.get(node.0 as usize).copied();
        let context = Context { now: self.now, position_of: &position_of };
        question(&mut self.routers[node as usize], &context, &mut actions);
        let actions: Vec<Action> = actions.drain().collect();
        for action in actions {
            match action {
                Action::Send { packet, to } => self.transmit(node, packet, to),
                Action::Deliver(data) => {
                    assert_eq!(data.destination, NodeId(node));
                    self.delivered.push((self.now, data.id.0));
                }
                Action::Drop { packet, reason } => self.dropped.push((node, packet.id.0, reason)),
                // Nothing waits here.
                Action::Clear(_) => {}
                Action::Notify(notice) => self.notices.push((node, notice)),
            }
        }
    }

    fn transmit(&mut self, from: u32, packet: Packet, to: NextHop) {
        match &packet {
            Packet::Data(data) => {
                self.paths.get_mut(&data.id.0).expect("it was sent").push(from);
            }
            Packet::Control(message) => {
                let message = message.clone();
                self.control.push(Sent { from, to, message });
            }
        }
        let hear: Vec<u32> =
            self.links.range((from, 0)..=(from, u32::MAX)).map(|&(_, to)| to).collect();
        let NextHop::Node(NodeId(to)) = to else {
            for to in hear {
                if !self.chance.chance(self.loss) {
                    self.later(HOP, Event::Arrives { from, to, packet: packet.clone() });
                }
            }
            return;
        };
        for &by in hear.iter().filter(|&&by| by != to) {
            if self.routers[by as usize].overhears() && !self.chance.chance(self.loss) {
                self.later(HOP, Event::Overheard { by, from, to, packet: packet.clone() });
            }
        }
        let arrives = hear.contains(&to) && !self.chance.chance(self.loss);
        let fails = !arrives || self.chance.chance(self.loss);
        if arrives {
            self.later(HOP, Event::Arrives { from, to, packet: packet.clone() });
        }
        if fails {
            let tried = Some(packet).filter(|_| !arrives);
            self.later(TRIES, Event::Fails { at: from, neighbour: to, tried });
        }
    }

    fn later(&mut self, delay: Duration, event: Event) {
        self.events += 1;
        self.queue.insert((self.now + delay, self.events), event);
    }
}
