//! A run as a moving map: one HTML file that needs nothing else.
//!
//! Shown are nodes and how they move, the ranges of radios, frames on the air with what became of
//! them, packets on wires, where packets are dropped, the path of each flow, and its congestion
//! window. `page.html` draws them. This file collects them, `layout` places nodes without a
//! position, and `file` writes it all compactly: a transmission takes about 10 bytes.
//!
//! [`Animation::observers`] are the collectors. They keep 40 bytes a transmission until
//! [`Animation::write`].

mod file;
mod layout;
#[cfg(test)]
mod tests;

use super::{AirFrame, Crossing, Direction, PacketTap};
use crate::addr::{self, Destination};
use crate::packet::Packet;
use crate::scenario::{FlowId, NodeId, Scenario, WlanId};
use airtcp_core::event::DropReason;
use airtcp_core::{Connection, Duration, Event, Id, IdVec, Instant, Source, Subscriber};
use airtcp_net::mobility::Mobility;
use airtcp_net::wifi::FrameKind;
use airtcp_routing::router::PacketId;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

/// Default limit on the transmissions in an animation: a file of about 40 MB.
pub const MAX_TRANSMISSIONS: usize = 4_000_000;

/// The part of a run that an animation shows.
#[derive(Debug)]
pub struct Animation<'a> {
    scenario: &'a Scenario,
    seed: u64,
    span: Range<Instant>,
    windows: Windows,
    traffic: Traffic<'a>,
}

impl<'a> Animation<'a> {
    /// Of the run of `scenario` with `seed`, the part within `span`, and of that no more than the
    /// first `limit` transmissions.
    pub fn new(scenario: &'a Scenario, seed: u64, span: Range<Instant>, limit: usize) -> Self {
        let span = span.start..span.end.min(Instant::ZERO + scenario.duration);
        Self {
            windows: Windows::new(scenario, &span),
            traffic: Traffic::new(scenario, &span, limit),
            scenario,
            seed,
            span,
        }
    }

    /// The observers that collect it.
    pub fn observers(&mut self) -> (&mut dyn Subscriber, &mut dyn PacketTap) {
        (&mut self.windows, &mut self.traffic)
    }

    /// The time from which on nothing is shown, because the limit was reached.
    pub fn cut_at(&self) -> Option<Instant> {
        self.traffic.cut_at
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Those of `writer`.
    pub fn write(self, writer: impl Write) -> io::Result<()> {
        file::write(self, writer)
    }
}

/// The congestion windows of a flow's sender, and its time-outs.
#[derive(Clone, Debug, Default)]
struct FlowHistory {
    /// By interval: its number, the largest window and the last, in bytes. Intervals without a
    /// change are left out.
    windows: Vec<(u32, u32, u32)>,
    /// Of transfers with connections of their own, the one whose windows these are: the latest.
    latest: Option<u64>,
    timeouts: Vec<Instant>,
}

/// Collects what senders say of themselves.
#[derive(Debug)]
struct Windows {
    span: Range<Instant>,
    /// Windows are kept by intervals of this length.
    interval: Duration,
    flows: Vec<FlowHistory>,
}

impl Windows {
    /// No screen shows more.
    const INTERVALS: u64 = 2000;

    fn new(scenario: &Scenario, span: &Range<Instant>) -> Self {
        let interval = span.end.since(span.start) / Self::INTERVALS;
        Self {
            span: span.clone(),
            interval: interval.max(Duration::from_millis(1)).round_up_to(Duration::from_micros(1)),
            flows: vec![FlowHistory::default(); scenario.flows.len()],
        }
    }
}

impl Subscriber for Windows {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        let Source::Sender(Connection { flow, transfer }) = source else { return };
        if at > self.span.end {
            return;
        }
        let Some(history) = self.flows.get_mut(flow as usize) else { return };
        let shown = at >= self.span.start;
        match *event {
            Event::Window { .. } if transfer < history.latest => {}
            Event::Window { cwnd, .. } => {
                history.latest = transfer;
                let since = at.max(self.span.start).since(self.span.start);
                let interval = (since.as_nanos() / self.interval.as_nanos()) as u32;
                match history.windows.last_mut() {
                    // What was before counts only by its last value.
                    Some(window) if !shown => *window = (0, cwnd, cwnd),
                    Some((last, most, now)) if *last == interval => {
                        *most = cwnd.max(*most);
                        *now = cwnd;
                    }
                    Some((_, _, now)) if *now == cwnd => {}
                    _ => history.windows.push((interval, cwnd, cwnd)),
                }
            }
            Event::RtoExpired { .. } if shown => history.timeouts.push(at),
            _ => {}
        }
    }
}

/// The content of a transmission. The page knows the codes: 0 nothing of a network packet, 1
/// routing, 2 UDP; of flow k, 3 + 2k to the receiver and 4 + 2k to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content(u32);

impl Content {
    const NONE: Self = Self(0);

    fn of(packet: &Packet) -> Self {
        Self(match packet {
            Packet::Control(_) => 1,
            Packet::Udp(_) | Packet::Quic(_) => 2,
            Packet::Tcp(segment) => match addr::destination(&segment.flow) {
                Some(Destination::Receiver(flow)) => 3 + 2 * flow,
                Some(Destination::Sender(flow)) => 4 + 2 * flow,
                None => 0,
            },
        })
    }
}

/// The medium that carries a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Rts = 0,
    Cts = 1,
    Ack = 2,
    Data = 3,
    Wire = 4,
}

impl From<FrameKind> for Carrier {
    fn from(kind: FrameKind) -> Self {
        match kind {
            FrameKind::Rts => Self::Rts,
            FrameKind::Cts => Self::Cts,
            FrameKind::Ack => Self::Ack,
            FrameKind::Data => Self::Data,
        }
    }
}

/// The outcome of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It was received, a broadcast by at least one node; or the run ended before.
    Received = 0,
    /// Lost while its receiver sensed another frame.
    Collision = 1,
    /// Lost while its receiver was sending.
    Deaf = 2,
    /// Its receiver was out of range.
    OutOfRange = 3,
    /// Lost for other reasons: bit errors, a radio that was down, the loss model of a link.
    Lost = 4,
}

/// A frame on the air, or a packet on a link.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    start: Instant,
    /// Until it had left, or arrived at the end of the link.
    duration: Duration,
    from: NodeId,
    /// `None`: all in range.
    to: Option<NodeId>,
    carrier: Carrier,
    content: Content,
    fate: Fate,
}

impl Transmission {
    fn end(&self) -> Instant {
        self.start + self.duration
    }
}

/// The frames of a cell.
#[derive(Clone, Debug, Default)]
struct CellFrames {
    /// The number of the first.
    first: Option<u32>,
    frames: Vec<Transmission>,
}

/// A dropped packet.
#[derive(Clone, Copy, Debug)]
struct Drop {
    at: Instant,
    node: NodeId,
    reason: DropReason,
    content: Content,
}

/// A flow's path, from some time on.
#[derive(Clone, Debug)]
struct NewPath {
    at: Instant,
    flow: FlowId,
    nodes: Vec<NodeId>,
}

/// Collects what nodes send each other.
#[derive(Debug)]
struct Traffic<'a> {
    scenario: &'a Scenario,
    span: Range<Instant>,
    limit: usize,
    /// Time that the run has reached, as far as is known.
    now: Instant,
    /// The limit was reached: what begins from here on is not shown.
    cut_at: Option<Instant>,
    count: usize,
    cells: IdVec<WlanId, CellFrames>,
    /// Content of the latest data frame of each node, which a retry repeats.
    latest: IdVec<NodeId, Content>,
    wires: Vec<Transmission>,
    /// The packets shown that links serve, or will serve, until their ends: indices in `wires`.
    on_wires: BTreeMap<PacketId, usize>,
    drops: Vec<Drop>,
    /// The nodes that the data packets under way have passed, by flow and sequence number.
    under_way: BTreeMap<(FlowId, u32), Vec<NodeId>>,
    /// The latest path of each flow.
    current: IdVec<FlowId, Vec<NodeId>>,
    paths: Vec<NewPath>,
}

impl<'a> Traffic<'a> {
    fn new(scenario: &'a Scenario, span: &Range<Instant>, limit: usize) -> Self {
        Self {
            scenario,
            span: span.clone(),
            limit,
            now: Instant::ZERO,
            cut_at: None,
            count: 0,
            cells: vec![CellFrames::default(); scenario.wlans.len()].into(),
            latest: vec![Content::NONE; scenario.nodes.len()].into(),
            wires: Vec::new(),
            on_wires: BTreeMap::new(),
            drops: Vec::new(),
            under_way: BTreeMap::new(),
            current: vec![Vec::new(); scenario.flows.len()].into(),
            paths: Vec::new(),
        }
    }

    fn shows(&self, at: Instant) -> bool {
        let cut = self.cut_at.is_some_and(|cut| at >= cut);
        at >= self.span.start && at <= self.span.end && !cut
    }

    /// The same of a transmission, which then counts. Without room for it, the part ends.
    fn has_room(&mut self, at: Instant) -> bool {
        if !self.shows(at) {
            return false;
        }
        // Frames from before the cut may be told after it.
        if self.count >= self.limit && self.cut_at.is_none() {
            // Links say ahead when they will serve packets.
            self.cut_at = Some(at.min(self.now));
            return false;
        }
        self.count += 1;
        true
    }

    /// The transmission of a packet that comes out of a link at `at`; `None`: it is not shown, or
    /// the link did not serve the packet.
    fn off_the_wire(&mut self, at: Instant, id: PacketId) -> Option<&mut Transmission> {
        let index = self.on_wires.remove(&id)?;
        let sent = &mut self.wires[index];
        sent.duration = at.since(sent.start);
        Some(sent)
    }

    /// A data packet of a flow is at a node.
    fn follow(&mut self, crossing: &Crossing<'_>) {
        let Some((flow, seq)) = data_of(crossing.packet) else { return };
        let Some(spec) = self.scenario.flows.get(flow.index()) else { return };
        let Crossing { at, node, direction, neighbour, .. } = *crossing;
        match (direction, neighbour) {
            (Direction::Sent, _) if node == spec.from => {
                self.under_way.insert((flow, seq), vec![node]);
            }
            (Direction::Received, Some(before)) => {
                let Some(passed) = self.under_way.get_mut(&(flow, seq)) else { return };
                let Some(place) = passed.iter().position(|&node| node == before) else { return };
                passed.truncate(place + 1);
                passed.push(node);
                if node != spec.to {
                    return;
                }
                let Some(nodes) = self.under_way.remove(&(flow, seq)) else { return };
                if self.current[flow] != nodes {
                    self.current[flow].clone_from(&nodes);
                    self.paths.push(NewPath { at, flow, nodes });
                }
            }
            _ => {}
        }
    }
}

/// The flow and the sequence number of a segment with data.
fn data_of(packet: &Packet) -> Option<(FlowId, u32)> {
    let Packet::Tcp(segment) = packet else { return None };
    match addr::destination(&segment.flow) {
        Some(Destination::Receiver(flow)) if packet.has_data() => {
            Some((FlowId(flow), segment.seq.0))
        }
        _ => None,
    }
}

impl PacketTap for Traffic<'_> {
    fn on_packet(&mut self, crossing: &Crossing<'_>) {
        let Crossing { at, direction, id, .. } = *crossing;
        self.now = at;
        if at <= self.span.end && self.cut_at.is_none() {
            self.follow(crossing);
        }
        if direction == Direction::Received {
            self.off_the_wire(at, id);
        }
    }

    fn sees_service_starts(&self) -> bool {
        true
    }

    fn on_service_start(&mut self, crossing: &Crossing<'_>, _marked: bool) {
        let Crossing { at, node, neighbour, id, packet, .. } = *crossing;
        if self.has_room(at) {
            self.on_wires.insert(id, self.wires.len());
            self.wires.push(Transmission {
                start: at,
                duration: self.span.end.since(at),
                from: node,
                to: neighbour,
                carrier: Carrier::Wire,
                content: Content::of(packet),
                fate: Fate::Received,
            });
        }
    }

    fn on_drop(
        &mut self,
        at: Instant,
        place: Source,
        reason: DropReason,
        id: Option<PacketId>,
        packet: &Packet,
    ) {
        self.now = at;
        if let Some(flow_and_seq) = data_of(packet) {
            self.under_way.remove(&flow_and_seq);
        }
        let node = match place {
            Source::Node(node) => NodeId(node),
            Source::Link(link) => {
                if let Some(sent) = id.and_then(|id| self.off_the_wire(at, id)) {
                    sent.fate = Fate::Lost;
                    return;
                }
                let Some(link) = self.scenario.links.get(link as usize) else { return };
                link.from
            }
            Source::Sender(_) | Source::Receiver(_) => return,
        };
        if self.shows(at) {
            self.drops.push(Drop { at, node, reason, content: Content::of(packet) });
        }
    }

    fn sees_frames(&self) -> bool {
        true
    }

    fn on_frame(&mut self, frame: &AirFrame<'_>) {
        let AirFrame { wlan, number, at, duration, from, to, .. } = *frame;
        self.now = self.now.max(at);
        let kind = frame.content.kind();
        let content = match (kind, frame.content.packet()) {
            (FrameKind::Data, Some(crossing)) => {
                self.latest[from] = Content::of(crossing.packet);
                self.latest[from]
            }
            (FrameKind::Data, None) => self.latest[from],
            _ => Content::NONE,
        };
        if !self.has_room(at) {
            return;
        }
        let cell = &mut self.cells[wlan];
        cell.first.get_or_insert(number);
        let carrier = Carrier::from(kind);
        let fate = Fate::Lost;
        cell.frames.push(Transmission { start: at, duration, from, to, carrier, content, fate });
    }

    fn on_reception(&mut self, wlan: WlanId, number: u32, _: NodeId) {
        /// Frames are numbered modulo 2^30.
        const NUMBERS: u32 = (1 << 30) - 1;
        let CellFrames { first: Some(first), frames } = &mut self.cells[wlan] else {
            return;
        };
        let index = number.wrapping_sub(*first) & NUMBERS;
        if let Some(frame) = frames.get_mut(index as usize) {
            frame.fate = Fate::Received;
        }
    }
}

impl Traffic<'_> {
    /// Forgets what was collected beyond the cut.
    fn cut(&mut self) {
        let Some(end) = self.cut_at else { return };
        self.wires.retain(|transmission| transmission.start < end);
        for cell in &mut self.cells {
            cell.frames.retain(|frame| frame.start < end);
        }
        self.drops.retain(|drop| drop.at < end);
        self.paths.retain(|path| path.at < end);
    }

    /// All transmissions in order of time, those lost in cells with the reason.
    fn transmissions(&mut self, movement: &IdVec<NodeId, Option<Mobility>>) -> Vec<Transmission> {
        self.cut();
        let mut all = std::mem::take(&mut self.wires);
        let run_end = Instant::ZERO + self.scenario.duration;
        for (cell, wlan) in self.cells.iter_mut().zip(&self.scenario.wlans) {
            let ranges = wlan.config.radio.ranges();
            for frame in cell.frames.iter_mut().filter(|frame| frame.end() >= run_end) {
                frame.fate = Fate::Received;
            }
            give_reasons(&mut cell.frames, ranges, |node, at| {
                movement[node].as_ref().map(|movement| movement.position(at))
            });
            all.append(&mut cell.frames);
        }
        all.sort_by_key(|transmission| transmission.start);
        all
    }
}

/// Says of each lost unicast frame of a cell why it was lost.
fn give_reasons(
    frames: &mut [Transmission],
    (decode, sense): (f64, f64),
    position: impl Fn(NodeId, Instant) -> Option<airtcp_core::Position>,
) {
    let longest = frames.iter().map(|frame| frame.duration).max().unwrap_or_default();
    for index in 0..frames.len() {
        let frame = frames[index];
        let (Fate::Lost, Some(to)) = (frame.fate, frame.to) else { continue };
        let distance = |from: NodeId| {
            let places = position(from, frame.start).zip(position(to, frame.start));
            places.map_or(f64::INFINITY, |(from, to)| from.distance(to))
        };
        let earlier = frames[..index].iter().rev();
        let earlier = earlier.take_while(|other| other.start + longest > frame.start);
        let later = frames[index + 1..].iter().take_while(|other| other.start < frame.end());
        let overlap = || earlier.clone().chain(later.clone()).filter(|o| o.end() > frame.start);
        let fate = if distance(frame.from) > decode {
            Fate::OutOfRange
        } else if overlap().any(|other| other.from == to) {
            Fate::Deaf
        } else if overlap().any(|other| distance(other.from) <= sense) {
            Fate::Collision
        } else {
            Fate::Lost
        };
        frames[index].fate = fate;
    }
}
