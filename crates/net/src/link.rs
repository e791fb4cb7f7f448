//! A unidirectional link as a state machine: queue, server, flight.
//!
//! A packet offered with [`Link::send`] passes the queue discipline or is handed back, waits for the server,
//! is serialised at the link's rate, and after the propagation delay comes out of [`Link::poll`]: delivered,
//! or dropped with the reason. Rules:
//!
//! - Time is logical. Service starts at the later of arrival and previous departure, departure is start plus
//!   transmission time, arrival at the far end is departure plus delay; none of them depends on when the
//!   machine is called. A caller that polls late, or more often, sees the same packets with the same times.
//! - There is no "transmission complete" event. The machine catches up with the server on each call, so a
//!   caller needs one wake-up a packet, at [`Link::next_deadline`].
//! - Loss and delay are drawn once a packet, in the order of departure, each from its own stream. A packet
//!   that meets an outage has its draws too, so that an outage does not shift those of the packets behind it.
//!   (A loss model in front of the queue draws at each arrival instead, and hands the lost packet back.)
//! - A lost packet is reported at the instant it would have arrived; in a FIFO link it holds its place.
//! - At equal times a departure comes before an arrival to the queue.

use crate::config::{LinkConfig, LossPlace, OutageConfig, OutageMode};
use crate::delay::Delay;
use crate::loss::Loss;
use crate::queue::{Admission, Arrival};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, DataRate, Duration, Instant, Stream};
use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// What a link needs to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketMeta {
    /// Size on the link.
    pub size: Bytes,
    /// It carries payload (only such packets have ordinals in [`crate::config::LossConfig::List`]).
    pub data: bool,
}

/// The random streams of one link.
#[derive(Clone, Debug)]
pub struct LinkStreams {
    /// Of the loss model.
    pub loss: Stream,
    /// Of the delay variation.
    pub delay: Stream,
    /// Of RED.
    pub red: Stream,
}

impl LinkStreams {
    /// The streams `link/<link_name>/loss`, `…/delay` and `…/red` of the run with seed `run_seed`.
    pub fn named(run_seed: u64, link_name: &str) -> Self {
        let stream = |purpose| Stream::new(run_seed, &format!("link/{link_name}/{purpose}"));
        Self { loss: stream("loss"), delay: stream("delay"), red: stream("red") }
    }
}

/// The packet went no further than the entrance: the queue refused it (drop-tail or RED;
/// [`DropReason::Queue`]) or a loss model in front of it took it ([`DropReason::Loss`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<T>(pub T, pub DropReason);

/// What comes out of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<T> {
    /// The packet arrived at the far end.
    Deliver(T),
    /// The packet was lost on the way.
    Drop(T, DropReason),
}

/// Counts since the start, as of the latest call of [`Link::send`] or [`Link::poll`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets whose serialisation has started, lost ones included.
    pub packets_sent: u64,
    /// Bytes of these.
    pub bytes_sent: Bytes,
    /// Packets the queue refused.
    pub queue_drops: u64,
    /// Packets the loss model took.
    pub loss_drops: u64,
    /// Packets an outage took.
    pub outage_drops: u64,
    /// Longest queue, packets, the one in service not counted.
    pub max_queue_packets: u64,
}

/// A unidirectional link that carries items of type `T`: an index in the simulator, a buffer in the
/// real-time emulator. Calls must not go back in time.
#[derive(Clone, Debug)]
pub struct Link<T> {
    rate: DataRate,
    /// The latest packet size and its transmission time: packets come in few sizes, divisions are slow.
    transmission: (Bytes, Duration),
    delay: Delay,
    loss: Option<Box<Loss>>,
    loss_place: LossPlace,
    outage: Option<Box<OutageConfig>>,
    /// An outage switched on at run time.
    down: Option<OutageMode>,
    admission: Admission,
    waiting: VecDeque<Waiting<T>>,
    waiting_bytes: Bytes,
    /// When the server becomes, or became, free: the departure of the packet it started last.
    free_at: Instant,
    /// The packet in service and those that left the server: the fate of all of them is known.
    in_flight: InFlight<T>,
    /// Arrival of the latest packet of a FIFO link.
    last_arrival: Instant,
    counters: LinkCounters,
}

/// A packet in the queue.
#[derive(Clone, Debug)]
struct Waiting<T> {
    item: T,
    arrived: Instant,
    meta: PacketMeta,
}

/// A packet whose service has started. Its fate is drawn then: that is also the order of departure.
#[derive(Clone, Debug)]
struct Flight<T> {
    arrival: Instant,
    item: T,
    lost: Option<DropReason>,
}

impl<T> Link<T> {
    /// An idle link at the start of the run.
    pub fn new(config: &LinkConfig, streams: LinkStreams) -> Self {
        let LinkConfig { rate, delay, loss, loss_place, outage, queue } = config;
        let delay = Delay::new(delay, streams.delay);
        Self {
            rate: *rate,
            transmission: (Bytes::ZERO, Duration::ZERO),
            in_flight: InFlight::new(delay.reorders()),
            delay,
            loss: Loss::new(loss, streams.loss).map(Box::new),
            loss_place: *loss_place,
            outage: outage.clone().map(Box::new),
            down: None,
            admission: Admission::new(queue, streams.red),
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            free_at: Instant::ZERO,
            last_arrival: Instant::ZERO,
            counters: LinkCounters::default(),
        }
    }

    /// Offers a packet at `now`. The entrance may refuse it: then it comes back.
    #[inline]
    pub fn send(&mut self, now: Instant, item: T, meta: PacketMeta) -> Result<(), Dropped<T>> {
        self.advance(now);
        if self.loss_place == LossPlace::BeforeQueue && self.loses(meta.data) {
            self.counters.loss_drops += 1;
            return Err(Dropped(item, DropReason::Loss));
        }
        let packet = Waiting { item, arrived: now, meta };
        let free = self.waiting.is_empty() && self.service_start(now) == Some(now);
        let arrival = Arrival {
            size: meta.size,
            packets: self.waiting.len(),
            bytes: self.waiting_bytes,
            idle: free.then(|| now.since(self.free_at)),
        };
        let (rate, counters) = (self.rate, &self.counters);
        if !self.admission.admits(arrival, || mean_transmission(rate, counters)) {
            self.counters.queue_drops += 1;
            return Err(Dropped(packet.item, DropReason::Queue));
        }
        if free {
            self.serve(now, packet);
        } else {
            self.waiting_bytes += meta.size;
            self.waiting.push_back(packet);
            let queue = self.waiting.len() as u64;
            self.counters.max_queue_packets = self.counters.max_queue_packets.max(queue);
        }
        Ok(())
    }

    /// When [`Link::poll`] next has something; `None` while there is nothing to wait for.
    ///
    /// Exact as long as nothing can come out before the packet in service, that is, always with a constant
    /// delay. With random delays a packet still waiting counts with the smallest one: a poll may then find
    /// nothing, and the deadline moves on.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        let arrival = self.in_flight.next_arrival();
        match self.waiting.front() {
            // In order, nobody still waiting comes out before those that have started.
            Some(next) if arrival.is_none() || self.delay.reorders() => {
                let earliest = self.service_start(next.arrived).map(|start| {
                    let departure = start + self.rate.transmission_time(next.meta.size);
                    (departure + self.delay.lower_bound()).max(self.last_arrival)
                });
                arrival.into_iter().chain(earliest).min()
            }
            _ => arrival,
        }
    }

    /// The next packet that has come out by `now`, in the order of logical time; call until `None`.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Output<T>> {
        self.advance(now);
        let flight = self.in_flight.pop_due(now)?;
        let Some(reason) = flight.lost else { return Some(Output::Deliver(flight.item)) };
        if reason == DropReason::Outage {
            self.counters.outage_drops += 1;
        } else {
            self.counters.loss_drops += 1;
        }
        Some(Output::Drop(flight.item, reason))
    }

    /// Changes the rate for every packet whose service starts after `now`.
    pub fn set_rate(&mut self, now: Instant, rate: DataRate) {
        self.advance(now);
        self.rate = rate;
        self.transmission = (Bytes::ZERO, Duration::ZERO);
    }

    /// Takes the link down from `now` on, or up again with `None`, beside its scheduled outages. Going down
    /// with [`OutageMode::Drop`] loses the packet in service; with [`OutageMode::Hold`] it still departs.
    pub fn set_down(&mut self, now: Instant, mode: Option<OutageMode>) {
        self.advance(now);
        if self.down == Some(OutageMode::Hold) {
            self.free_at = self.free_at.max(now);
        }
        self.down = mode;
        if mode == Some(OutageMode::Drop) && self.free_at > now {
            self.in_flight.lose_latest(DropReason::Outage);
        }
        self.advance(now);
    }

    /// Counts since the start.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// Packets waiting for the server, the one in service not counted, as of the latest call.
    pub fn queue_len(&self) -> usize {
        self.waiting.len()
    }

    /// Packets accepted and not yet reported by [`Link::poll`].
    pub fn in_transit(&self) -> usize {
        self.waiting.len() + self.in_flight.len()
    }

    /// Brings the server up to `now`: every service that was due has started.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.free_at <= now && !self.waiting.is_empty() {
            self.start_waiting(now);
        }
    }

    fn start_waiting(&mut self, now: Instant) {
        while let Some(next) = self.waiting.front() {
            let Some(start) = self.service_start(next.arrived).filter(|&at| at <= now) else {
                return;
            };
            let Some(packet) = self.waiting.pop_front() else { return };
            self.waiting_bytes -= packet.meta.size;
            self.serve(start, packet);
        }
    }

    /// When the server starts on a packet that came at `arrived` and is the next in turn; `None` while it
    /// is not known.
    #[inline]
    fn service_start(&self, arrived: Instant) -> Option<Instant> {
        let earliest = self.free_at.max(arrived);
        if self.down == Some(OutageMode::Hold) {
            return None;
        }
        match &self.outage {
            Some(outage) if outage.mode == OutageMode::Hold => outage.schedule.next_up(earliest),
            _ => Some(earliest),
        }
    }

    /// Starts service and decides the packet's fate.
    #[inline]
    fn serve(&mut self, start: Instant, packet: Waiting<T>) {
        let Waiting { item, meta: PacketMeta { size, data }, .. } = packet;
        if self.transmission.0 != size {
            self.transmission = (size, self.rate.transmission_time(size));
        }
        let departure = start + self.transmission.1;
        let mut arrival = departure + self.delay.draw(departure);
        if !self.delay.reorders() {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        let unlucky = self.loss_place == LossPlace::Medium && self.loses(data);
        let lost = if self.outage_takes(start, departure) {
            Some(DropReason::Outage)
        } else {
            unlucky.then_some(DropReason::Loss)
        };
        self.free_at = departure;
        self.counters.packets_sent += 1;
        self.counters.bytes_sent += size;
        self.in_flight.push(Flight { arrival, item, lost });
    }

    fn loses(&mut self, data: bool) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses(data))
    }

    fn outage_takes(&self, start: Instant, departure: Instant) -> bool {
        self.down == Some(OutageMode::Drop)
            || self.outage.as_ref().is_some_and(|outage| {
                outage.mode == OutageMode::Drop && outage.schedule.overlaps(start, departure)
            })
    }
}

/// Mean transmission time of the packets sent so far, for RED's idle-time correction.
fn mean_transmission(rate: DataRate, counters: &LinkCounters) -> Duration {
    match counters.bytes_sent.get().checked_div(counters.packets_sent) {
        Some(mean_size) => rate.transmission_time(Bytes(mean_size)),
        None => Duration::ZERO,
    }
}

/// Packets that have started: a queue while they keep their order, else a heap.
#[derive(Clone, Debug)]
enum InFlight<T> {
    InOrder(VecDeque<Flight<T>>),
    Overtaking { heap: BinaryHeap<Ranked<T>>, started: u64 },
}

impl<T> InFlight<T> {
    fn new(overtaking: bool) -> Self {
        if overtaking {
            Self::Overtaking { heap: BinaryHeap::new(), started: 0 }
        } else {
            Self::InOrder(VecDeque::new())
        }
    }

    #[inline]
    fn push(&mut self, flight: Flight<T>) {
        match self {
            Self::InOrder(queue) => queue.push_back(flight),
            Self::Overtaking { heap, started } => {
                heap.push(Ranked { ordinal: *started, flight });
                *started += 1;
            }
        }
    }

    /// The packet that started last is lost.
    fn lose_latest(&mut self, reason: DropReason) {
        match self {
            Self::InOrder(queue) => {
                if let Some(latest) = queue.back_mut() {
                    latest.lost = Some(reason);
                }
            }
            Self::Overtaking { heap, .. } => {
                let mut ranked = std::mem::take(heap).into_vec();
                if let Some(latest) = ranked.iter_mut().max_by_key(|ranked| ranked.ordinal) {
                    latest.flight.lost = Some(reason);
                }
                *heap = ranked.into();
            }
        }
    }

    #[inline]
    fn next_arrival(&self) -> Option<Instant> {
        match self {
            Self::InOrder(queue) => queue.front().map(|flight| flight.arrival),
            Self::Overtaking { heap, .. } => heap.peek().map(|ranked| ranked.flight.arrival),
        }
    }

    #[inline]
    fn pop_due(&mut self, now: Instant) -> Option<Flight<T>> {
        match self {
            Self::InOrder(queue) => {
                queue.front().filter(|flight| flight.arrival <= now)?;
                queue.pop_front()
            }
            Self::Overtaking { heap, .. } => {
                let first = heap.peek_mut().filter(|ranked| ranked.flight.arrival <= now)?;
                Some(PeekMut::pop(first).flight)
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::InOrder(queue) => queue.len(),
            Self::Overtaking { heap, .. } => heap.len(),
        }
    }
}

/// Orders the heap: earliest arrival on top, ties by departure.
#[derive(Clone, Debug)]
struct Ranked<T> {
    ordinal: u64,
    flight: Flight<T>,
}

impl<T> Ranked<T> {
    fn key(&self) -> (Instant, u64) {
        (self.flight.arrival, self.ordinal)
    }
}
impl<T> Ord for Ranked<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
impl<T> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<T> Eq for Ranked<T> {}
