//! GPSR, greedy perimeter stateless routing (Karp and Kung, MobiCom 2000).
//!
//! Read §2 of the paper first. Nodes know their own position and, by beacons, those of their
//! neighbours; a source knows its destination's from an ideal location service
//! ([`Context::position_of`]). A packet goes to the neighbour nearest to the destination (§2.1).
//! Where none is nearer than the node itself, it follows the faces of a planar graph by the
//! right-hand rule, from face to face towards the destination, until a node is nearer than the one
//! where that began (§2.2 and §2.3). On Gabriel and relative neighbourhood graphs of unit disks
//! this delivers wherever there is a path (Frey and Stojmenovic, MobiCom 2006).
//!
//! A neighbour that is the destination gets the packet, wherever it was when the packet left.

use crate::NodeId;
use crate::router::{self, Actions, Context, Data, LinkFailure, NextHop, Packet, Router};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Duration, Instant, Position, Stream};
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::{choice, settings};
use std::collections::BTreeMap;
use std::sync::Arc;

settings! {
    /// The settings of GPSR.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GpsrConfig {
        /// Mean time between the beacons of a node, B.
        #[kind = POSITIVE_TIME]
        #[source = "Karp and Kung 2000 §3.1"]
        pub beacon_interval: Duration = Duration::from_millis(1500),
        /// The interval is drawn uniformly from as much of `beacon-interval` below it and above it.
        #[kind = Kind::Number { min: 0.0, max: 1.0, above: false }]
        #[source = "Karp and Kung 2000 §2.1"]
        pub beacon_jitter: f64 = 0.5,
        /// After how many times `beacon-interval` a silent neighbour is forgotten.
        #[kind = Kind::Number { min: 1.0, max: 1e6, above: false }]
        #[source = "Karp and Kung 2000 §2.1"]
        pub neighbour_timeout: f64 = 4.5,
        /// Data packets carry their sender's position and all neighbours learn from them, so that a
        /// node that sends needs no beacons.
        #[source = "Karp and Kung 2000 §2.3"]
        pub overhear: bool = true,
        /// The planar graph around which packets go.
        #[source = "Karp and Kung 2000 §2.2.2"]
        pub planar_graph: PlanarGraph = PlanarGraph::Gabriel,
        /// A neighbour is forgotten, and packets that wait for it are returned, when the link layer
        /// gives up on a packet for it; otherwise that packet is lost, and nothing else happens.
        #[source = "Karp and Kung 2000 §2.3"]
        pub link_feedback: bool = true,
        /// Packets that a broken link returned are sent to another neighbour; otherwise they are
        /// dropped.
        #[source = "Karp and Kung 2000 §2.3"]
        pub resend_returned: bool = true,
    }
}

choice! {
    /// The edges between neighbours that a planar graph keeps.
    pub enum PlanarGraph {
        /// those without a neighbour in the circle whose diameter they are
        Gabriel = "gabriel",
        /// those whose ends have no neighbour that is nearer to both: the relative neighbourhood
        /// graph
        RelativeNeighbourhood = "relative-neighbourhood",
    }
}

/// A beacon: its sender's position. Its address is that of the IP packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beacon {
    /// The sender's position.
    pub position: Position,
}

/// Two coordinates of four bytes (Karp and Kung 2000 §2.1).
const POSITION: Bytes = Bytes(8);

impl router::Message for Beacon {
    fn size(&self) -> Bytes {
        const IP: Bytes = Bytes(20);
        IP + POSITION
    }
}

/// The header of a data packet (Karp and Kung 2000, table 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// The destination's position when the packet left, D.
    pub destination: Position,
    /// State of the packet in perimeter mode; `None` in greedy mode.
    pub perimeter: Option<Perimeter>,
    /// The position of the node that sent it on, if neighbours learn from data.
    pub sender: Option<Position>,
}

/// The state of a packet in perimeter mode (Karp and Kung 2000, table 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perimeter {
    /// Position at which it entered the mode, Lp.
    pub entered: Position,
    /// Point at which the line from there to the destination enters the present face, Lf.
    pub face: Position,
    /// The first edge on that face, e0; `None` after it broke: the one taken next.
    pub first_edge: Option<(NodeId, NodeId)>,
}

impl router::Message for Header {
    fn size(&self) -> Bytes {
        const MODE: Bytes = Bytes(1);
        const EDGE: Bytes = Bytes(8);
        let perimeter = self.perimeter.map_or(Bytes::ZERO, |_| POSITION + POSITION + EDGE);
        let sender = self.sender.map_or(Bytes::ZERO, |_| POSITION);
        POSITION + MODE + perimeter + sender
    }
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    position: Position,
    until: Instant,
}

/// GPSR on one node.
#[derive(Debug)]
pub struct Gpsr {
    node: NodeId,
    config: GpsrConfig,
    jitter: Stream,
    next_beacon: Instant,
    neighbours: BTreeMap<NodeId, Neighbour>,
}

impl Gpsr {
    /// GPSR on `node`. `jitter` draws the times of the beacons.
    pub fn new(node: NodeId, config: &GpsrConfig, mut jitter: Stream) -> Self {
        let next_beacon = Instant::ZERO + jitter.duration(Duration::ZERO, config.beacon_interval);
        let neighbours = BTreeMap::new();
        Self { node, config: config.clone(), jitter, next_beacon, neighbours }
    }

    fn plan_beacon(&mut self, now: Instant) {
        let spread = self.config.beacon_interval.mul_f64(self.config.beacon_jitter);
        let interval = self.config.beacon_interval;
        self.next_beacon = now + self.jitter.duration(interval - spread, interval + spread);
    }

    fn learn(&mut self, now: Instant, node: NodeId, position: Position) {
        let lifetime = self.config.beacon_interval.mul_f64(self.config.neighbour_timeout);
        self.neighbours.insert(node, Neighbour { position, until: now + lifetime });
    }

    /// Sends a packet on. In perimeter mode it came from `reference`, or a neighbour there is gone.
    fn forward(
        &mut self,
        context: &Context<'_>,
        reference: Option<Position>,
        mut data: Data,
        out: &mut Actions,
    ) {
        let here = (context.position_of)(self.node);
        let known = header(&data);
        let destination =
            known.map_or_else(|| (context.position_of)(data.destination), |h| Some(h.destination));
        let (Some(here), Some(destination)) = (here, destination) else {
            return out.drop(data, DropReason::NoRoute);
        };
        self.neighbours.retain(|_, neighbour| neighbour.until > context.now);
        let mut perimeter = known.and_then(|header| header.perimeter);
        let next = if self.neighbours.contains_key(&data.destination) {
            Some(data.destination)
        } else {
            self.next_hop(here, destination, &mut perimeter, reference)
        };
        let Some(next) = next else { return out.drop(data, DropReason::NoRoute) };
        let sender = self.config.overhear.then_some(here);
        let header = Header { destination, perimeter, sender };
        if known != Some(header) {
            data.header = Some(Arc::new(header));
        }
        if self.config.overhear {
            self.plan_beacon(context.now);
        }
        out.send(data, NextHop::Node(next));
    }

    /// The next hop, and the mode from here on; `None` if there is none.
    fn next_hop(
        &self,
        here: Position,
        destination: Position,
        perimeter: &mut Option<Perimeter>,
        reference: Option<Position>,
    ) -> Option<NodeId> {
        let mine = here.distance(destination);
        perimeter.take_if(|p| mine < p.entered.distance(destination));
        let Some(mode) = perimeter else {
            if let Some(next) = self.greedy(mine, destination) {
                return Some(next);
            }
            let (first, _) = self.next_edge(here, destination)?;
            let first_edge = Some((self.node, first));
            *perimeter = Some(Perimeter { entered: here, face: here, first_edge });
            return Some(first);
        };
        let (mut next, mut end) = self.next_edge(here, reference?)?;
        // The face has been toured: no edge of it leads nearer.
        match mode.first_edge {
            Some(first) if first == (self.node, next) => return None,
            Some(_) => {}
            None => mode.first_edge = Some((self.node, next)),
        }
        // The edge crosses the line to the destination: on to the next face, behind the edge.
        while let Some(crossing) = crossing((here, end), (mode.entered, destination))
            && is_nearer(crossing, mode.face, destination)
        {
            mode.face = crossing;
            (next, end) = self.next_edge(here, end)?;
            mode.first_edge = Some((self.node, next));
        }
        Some(next)
    }

    /// The neighbour nearest to the destination, if nearer than this node.
    fn greedy(&self, mine: f64, destination: Position) -> Option<NodeId> {
        let distance = |(&node, n): (&NodeId, &Neighbour)| (n.position.distance(destination), node);
        let nearest = self.neighbours.iter().map(distance).min_by(|a, b| a.0.total_cmp(&b.0));
        nearest.filter(|&(distance, _)| distance < mine).map(|(_, node)| node)
    }

    /// The first edge of the planar graph counterclockwise about this node from the direction of
    /// `reference`, which comes last itself (right-hand rule).
    fn next_edge(&self, here: Position, reference: Position) -> Option<(NodeId, Position)> {
        let edges = self.neighbours.iter().filter(|(node, n)| self.is_planar(here, **node, n));
        let turn = |(&node, n): (&NodeId, &Neighbour)| {
            (counterclockwise(here, reference, n.position), node, n.position)
        };
        let first = edges.map(turn).min_by(|a, b| a.0.total_cmp(&b.0));
        first.map(|(_, node, position)| (node, position))
    }

    /// True if the planar graph keeps the edge to a neighbour.
    fn is_planar(&self, here: Position, node: NodeId, neighbour: &Neighbour) -> bool {
        let there = neighbour.position;
        let witness = |position: Position| match self.config.planar_graph {
            PlanarGraph::Gabriel => {
                let middle = Position { x: (here.x + there.x) / 2.0, y: (here.y + there.y) / 2.0 };
                middle.distance(position) < here.distance(there) / 2.0
            }
            PlanarGraph::RelativeNeighbourhood => {
                here.distance(position).max(there.distance(position)) < here.distance(there)
            }
        };
        !self.neighbours.iter().any(|(&other, n)| other != node && witness(n.position))
    }
}

/// The protocol's header of a packet.
fn header(data: &Data) -> Option<Header> {
    data.header.as_deref()?.downcast_ref().copied()
}

/// Grows with the angle by which to turn counterclockwise about `at` from the direction of `from`
/// to that of `to`: in (0, 4] for a turn in (0, 360°].
fn counterclockwise(at: Position, from: Position, to: Position) -> f64 {
    let (ax, ay, bx, by) = (from.x - at.x, from.y - at.y, to.x - at.x, to.y - at.y);
    let (dot, cross) = (ax * bx + ay * by, ax * by - ay * bx);
    let turn = match (dot >= 0.0, cross >= 0.0) {
        (true, true) => cross / (dot + cross),
        (false, true) => 1.0 - dot / (cross - dot),
        (false, false) => 2.0 + cross / (dot + cross),
        (true, false) => 3.0 + dot / (dot - cross),
    };
    if turn > 0.0 { turn } else { 4.0 }
}

/// The intersection of two lines between points; `None` if they do not cross, or are parallel.
fn crossing(a: (Position, Position), b: (Position, Position)) -> Option<Position> {
    let (ax, ay) = (a.1.x - a.0.x, a.1.y - a.0.y);
    let (bx, by) = (b.1.x - b.0.x, b.1.y - b.0.y);
    let (x, y) = (b.0.x - a.0.x, b.0.y - a.0.y);
    let cross = ax * by - ay * bx;
    let (on_a, on_b) = ((x * by - y * bx) / cross, (x * ay - y * ax) / cross);
    let both = (0.0..=1.0).contains(&on_a) && (0.0..=1.0).contains(&on_b);
    both.then_some(Position { x: a.0.x + on_a * ax, y: a.0.y + on_a * ay })
}

/// True if `a` is nearer to the destination than `b`, by more than rounding.
fn is_nearer(a: Position, b: Position, destination: Position) -> bool {
    const ROUNDING: f64 = 1e-9;
    a.distance(destination) < b.distance(destination) * (1.0 - ROUNDING)
}

impl Router for Gpsr {
    fn on_packet(
        &mut self,
        context: &Context<'_>,
        from: Option<NodeId>,
        packet: Packet,
        out: &mut Actions,
    ) {
        match packet {
            Packet::Control(message) => {
                if let (Some(&Beacon { position }), Some(from)) = (message.downcast_ref(), from) {
                    self.learn(context.now, from, position);
                }
            }
            Packet::Data(data) => {
                let sender = header(&data).and_then(|header| header.sender);
                if let (Some(from), Some(position)) = (from, sender) {
                    self.learn(context.now, from, position);
                }
                if data.destination == self.node {
                    return out.deliver(data);
                }
                let reference = from.and_then(|from| {
                    let known = self.neighbours.get(&from).map(|neighbour| neighbour.position);
                    known.or_else(|| (context.position_of)(from))
                });
                self.forward(context, reference, data, out);
            }
        }
    }

    fn overhears(&self) -> bool {
        self.config.overhear
    }

    fn on_overheard(
        &mut self,
        context: &Context<'_>,
        from: NodeId,
        _: NodeId,
        packet: &Packet,
        _: &mut Actions,
    ) {
        let Packet::Data(data) = packet else { return };
        if let Some(position) = header(data).and_then(|header| header.sender) {
            self.learn(context.now, from, position);
        }
    }

    fn on_link_failure(
        &mut self,
        context: &Context<'_>,
        failure: LinkFailure<'_>,
        out: &mut Actions,
    ) {
        let gone = failure.neighbour;
        if !self.config.link_feedback {
            if let Some(Packet::Data(data)) = failure.tried {
                out.drop(data, DropReason::Retries);
            }
            for packet in failure.waiting {
                let Packet::Data(data) = packet else { continue };
                out.send(data, NextHop::Node(gone));
            }
            return;
        }
        let known = self.neighbours.remove(&gone).map(|neighbour| neighbour.position);
        let reference = known.or_else(|| (context.position_of)(gone));
        for mut data in failure.data() {
            if !self.config.resend_returned {
                out.drop(data, DropReason::Retries);
                continue;
            }
            if let Some(header @ Header { perimeter: Some(perimeter), .. }) = header(&data)
                && perimeter.first_edge == Some((self.node, gone))
            {
                let perimeter = Some(Perimeter { first_edge: None, ..perimeter });
                data.header = Some(Arc::new(Header { perimeter, ..header }));
            }
            self.forward(context, reference, data, out);
        }
    }

    fn on_timer(&mut self, context: &Context<'_>, out: &mut Actions) {
        if self.next_beacon > context.now {
            return;
        }
        self.plan_beacon(context.now);
        self.neighbours.retain(|_, neighbour| neighbour.until > context.now);
        if let Some(position) = (context.position_of)(self.node) {
            out.control(Arc::new(Beacon { position }), NextHop::Broadcast);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.next_beacon)
    }
}
