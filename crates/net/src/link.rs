//! A unidirectional link as a state machine: queue, server, flight.
//!
//! A packet offered with [`Link::send`] passes the queue discipline or is handed back, waits for
//! the server, is serialised at the link's rate, and after the propagation delay comes out of
//! [`Link::poll`]: delivered, or dropped with the reason. Rules:
//!
//! - Time is logical. Service starts at the later of arrival and previous departure, departure is
//!   start plus transmission time, arrival at the far end is departure plus delay; none of them
//!   depends on when the machine is called. A caller that polls late, or more often, sees the same
//!   packets with the same times.
//! - The server is first in, first out, and everything about it is known beforehand. So a packet's
//!   times and fate are decided when it is accepted; there is no "transmission complete" event, and
//!   a caller needs one wake-up per packet, at [`Link::next_deadline`].
//! - Loss and delay are drawn once per packet, in order of departure, each from its own stream. A
//!   packet that meets an outage has its draws too, so that an outage does not shift those of the
//!   packets behind it.
//! - A lost packet is reported at the instant it would have arrived.
//! - In a FIFO link nothing comes out before its predecessor, which may be a lost one.
//! - At equal times a departure comes before an arrival to the queue.
//! - A packet whose arrival is known may be taken out ahead of it ([`Link::pass`]), for a caller
//!   that looks after the rest itself.
//! - A link that can be taken down at run time ([`Link::steered`]) is the exception to the third
//!   rule: what will happen is not known beforehand, so a packet is decided when its service
//!   starts, which is one more wake-up. Its times are the same.

use crate::config::{LinkConfig, LossPlace, OutageConfig, OutageMode, QueueConfig};
use crate::delay::Delay;
use crate::loss::Loss;
use crate::queue::{Admission, Arrival};
use crate::trace::{Opportunities, Trace};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, DataRate, Duration, Histogram, Instant, Stream};
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
    /// For the loss model.
    pub loss: Stream,
    /// For the delay variation.
    pub delay: Stream,
    /// For RED.
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

/// The arrival of a packet taken out of a link ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// When the packet arrives.
    pub at: Instant,
    /// Since when its arrival has been the link's next one.
    pub next_since: Instant,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that have come out of the link, lost ones included.
    pub packets_sent: u64,
    /// Total size of these packets, bytes.
    pub bytes_sent: Bytes,
    /// Packets the queue refused.
    pub queue_drops: u64,
    /// Packets the loss model took.
    pub loss_drops: u64,
    /// Packets an outage took.
    pub outage_drops: u64,
    /// Longest queue in packets, not counting the one in service.
    pub max_queue_packets: u64,
}

/// A unidirectional link that carries items of type `T`: an index in the simulator, a buffer in the
/// real-time emulator. Calls must not go back in time.
#[derive(Clone, Debug)]
pub struct Link<T> {
    /// The server's rate, or the mean rate of its trace.
    rate: DataRate,
    /// The latest packet size and its transmission time, cached: packets come in few sizes, and
    /// divisions are slow.
    transmission: (Bytes, Duration),
    /// Replaces the rate.
    opportunities: Option<Box<Opportunities>>,
    delay: Delay,
    loss: Option<Box<Loss>>,
    loss_place: LossPlace,
    outage: Option<Box<OutageConfig>>,
    admission: Admission,
    /// The packets whose service starts later than the latest call.
    waiting: VecDeque<Waiting>,
    waiting_bytes: Bytes,
    /// When the server becomes, or became, free.
    free_at: Instant,
    /// The latest arrival of a packet so far accepted.
    latest_arrival: Instant,
    in_flight: InFlight<T>,
    /// Present in a link that can be taken down at run time.
    steering: Option<Box<Steering<T>>>,
    /// Only a rate, a constant delay and a drop-tail queue.
    is_plain: bool,
    /// Packets and bytes accepted, for RED; a plain link does not count them.
    accepted: (u64, Bytes),
    counters: LinkCounters,
    /// How long each packet waited for its service.
    waits: Histogram,
    /// The same of the latest packet.
    latest_wait: Duration,
}

/// A packet's place in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When its service starts. In a steered link only the first packet's is known; for the others
    /// it is [`Instant::MAX`].
    start: Instant,
    size: Bytes,
}

/// What a link that can be taken down at run time needs.
#[derive(Clone, Debug)]
struct Steering<T> {
    mode: OutageMode,
    down: bool,
    /// The end of the latest outage by hand.
    up_since: Instant,
    /// The packets in the queue, not yet decided.
    undecided: VecDeque<Undecided<T>>,
    /// Departures not yet reported, if the caller asked for them.
    departures: Option<VecDeque<Departure>>,
}

/// A packet whose service has not begun.
#[derive(Clone, Debug)]
struct Undecided<T> {
    arrived: Instant,
    item: T,
    meta: PacketMeta,
}

/// A packet has left the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When the packet was offered.
    pub arrived: Instant,
    /// When its last byte left.
    pub at: Instant,
    /// Size on the link.
    pub size: Bytes,
    /// It will not arrive: an outage or a loss took it.
    pub lost: bool,
}

/// A packet between acceptance and arrival. In a FIFO link it comes out after its predecessors.
#[derive(Clone, Debug)]
struct Flight<T> {
    fate: Fate,
    size: Bytes,
    item: T,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Since when its arrival has been the link's next one, if packets keep their order; otherwise
    /// when it was offered.
    next_since: Instant,
    arrival: Instant,
    lost: Option<DropReason>,
}

impl<T> Link<T> {
    /// An idle link at the start of the run.
    pub fn new(config: &LinkConfig, streams: LinkStreams) -> Self {
        let LinkConfig { rate, delay, loss, outage, queue } = config;
        let delay = Delay::new(delay, streams.delay);
        let loss_model = Loss::new(&loss.model, streams.loss);
        let is_plain = loss_model.is_none()
            && outage.is_none()
            && delay.is_constant()
            && matches!(queue, QueueConfig::DropTail { .. });
        Self {
            rate: *rate,
            transmission: (Bytes::ZERO, Duration::ZERO),
            opportunities: None,
            in_flight: InFlight::new(delay.reorders()),
            steering: None,
            delay,
            is_plain,
            loss: loss_model.map(Box::new),
            loss_place: loss.place,
            outage: outage.clone().map(Box::new),
            admission: Admission::new(queue, streams.red),
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            free_at: Instant::ZERO,
            latest_arrival: Instant::ZERO,
            accepted: (0, Bytes::ZERO),
            counters: LinkCounters::default(),
            waits: Histogram::default(),
            latest_wait: Duration::ZERO,
        }
    }

    /// The link with the recorded rate of `trace` instead of its constant one; before the first
    /// packet. RED counts its idle time in packets of the trace's mean rate.
    pub fn with_trace(mut self, trace: Trace) -> Self {
        self.is_plain = false;
        self.rate = trace.mean_rate();
        self.opportunities = Some(Box::new(Opportunities::new(trace)));
        self
    }

    /// The link with [`Link::take_down`] and [`Link::take_up`]; `mode` says what these outages do
    /// to packets. Call before the first packet.
    pub fn steered(mut self, mode: OutageMode) -> Self {
        self.is_plain = false;
        self.steering = Some(Box::new(Steering {
            mode,
            down: false,
            up_since: Instant::ZERO,
            undecided: VecDeque::new(),
            departures: None,
        }));
        self
    }

    /// A steered link that keeps its departures for [`Link::next_departure`]. Call before the first
    /// packet. No effect on a link that is not steered.
    pub fn reporting_departures(mut self) -> Self {
        if let Some(steering) = &mut self.steering {
            steering.departures = Some(VecDeque::new());
        }
        self
    }

    /// Begins an outage at `now` that lasts until [`Link::take_up`]. It does what a scheduled
    /// outage over the same interval does. Packets in the queue wait or are lost as their turn
    /// comes. The one in service arrives under [`OutageMode::Hold`] and is lost under
    /// [`OutageMode::Drop`]. Packets that have left the server arrive. No effect if the link has
    /// already been taken down or is not steered.
    pub fn take_down(&mut self, now: Instant) {
        self.start_services_before(now);
        let Some(steering) = self.steering.as_mut().filter(|steering| !steering.down) else {
            return;
        };
        steering.down = true;
        match steering.mode {
            OutageMode::Hold => {
                if let Some(first) = self.waiting.front_mut() {
                    first.start = Instant::MAX;
                }
            }
            OutageMode::Drop if self.free_at > now => {
                if let Some(newest) = steering.departures.as_mut().and_then(VecDeque::back_mut) {
                    newest.lost = true;
                }
                self.in_flight.lose_newest();
            }
            OutageMode::Drop => {}
        }
    }

    /// Ends the outage that [`Link::take_down`] began, if any. A scheduled outage goes on.
    pub fn take_up(&mut self, now: Instant) {
        self.start_services_before(now);
        let Some(steering) = self.steering.as_mut().filter(|steering| steering.down) else {
            return;
        };
        steering.down = false;
        if steering.mode == OutageMode::Hold {
            steering.up_since = now;
            self.foresee_first();
        }
    }

    /// Whether the link is down at `now`, by hand or by schedule.
    pub fn is_down(&self, now: Instant) -> bool {
        self.steering.as_ref().is_some_and(|steering| steering.down)
            || self.outage.as_ref().is_some_and(|outage| outage.schedule.is_down(now))
    }

    /// The next packet that has left the server by `now`, if the link reports them; call until
    /// `None`.
    pub fn next_departure(&mut self, now: Instant) -> Option<Departure> {
        self.start_services(now);
        let departures = self.steering.as_mut()?.departures.as_mut()?;
        departures.front().filter(|departure| departure.at <= now)?;
        departures.pop_front()
    }

    /// Offers a packet at `now`. The entrance may refuse it: then it comes back.
    #[inline]
    pub fn send(&mut self, now: Instant, item: T, meta: PacketMeta) -> Result<(), Dropped<T>> {
        if self.steering.is_some() {
            return match self.admit(now, meta) {
                Ok(start) => {
                    self.accept_steered(now, start, item, meta);
                    Ok(())
                }
                Err(reason) => Err(Dropped(item, reason)),
            };
        }
        let fate = match self.accept(now, meta) {
            Ok(fate) => fate,
            Err(reason) => return Err(Dropped(item, reason)),
        };
        self.in_flight.push(Flight { fate, size: meta.size, item });
        Ok(())
    }

    /// Offers a packet at `now`, like [`Link::send`]. If it will arrive by `until`, the link does
    /// not keep it: it returns the arrival and counts the packet as having come out. Only for a
    /// link that [keeps order](Link::keeps_order).
    #[inline]
    pub fn pass(
        &mut self,
        now: Instant,
        item: T,
        meta: PacketMeta,
        until: Instant,
    ) -> Result<Option<Arrived>, Dropped<T>> {
        let fate = match self.accept(now, meta) {
            Ok(fate) => fate,
            Err(reason) => return Err(Dropped(item, reason)),
        };
        if fate.lost.is_none() && fate.arrival <= until {
            self.counters.packets_sent += 1;
            self.counters.bytes_sent += meta.size;
            return Ok(Some(Arrived { at: fate.arrival, next_since: fate.next_since }));
        }
        self.in_flight.push(Flight { fate, size: meta.size, item });
        Ok(None)
    }

    /// Takes out, ahead of time, the wanted packets that will arrive by `until`. `take` gets the
    /// arrival of each, in order. Only for a link that [keeps order](Link::keeps_order).
    pub fn pass_on(&mut self, until: Instant, mut take: impl FnMut(Arrived, &T) -> bool) {
        let InFlight::InOrder(queue) = &mut self.in_flight else { return };
        let counters = &mut self.counters;
        queue.retain(|flight| {
            let Fate { arrival: at, next_since, lost } = flight.fate;
            let goes = lost.is_none() && at <= until;
            let taken = goes && take(Arrived { at, next_since }, &flight.item);
            counters.packets_sent += u64::from(taken);
            counters.bytes_sent += if taken { flight.size } else { Bytes::ZERO };
            !taken
        });
    }

    /// Whether a packet is in the queue, being served or in flight.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.in_transit() > 0
    }

    /// Whether packets arrive in the order in which they are offered, at times known beforehand.
    pub fn keeps_order(&self) -> bool {
        self.steering.is_none() && self.delay.is_constant()
    }

    /// A time that every packet takes longer than from its offer to its arrival, which stays the same;
    /// `None` if there is no such time above zero.
    pub fn lookahead(&self) -> Option<Duration> {
        // A trace may serve a packet in no time.
        let constant = self.keeps_order() && self.opportunities.is_none();
        constant.then(|| self.delay.base()).filter(|delay| !delay.is_zero())
    }

    /// Whether a link that is not steered takes a packet; if so, its times and fate.
    #[inline(always)]
    fn accept(&mut self, now: Instant, meta: PacketMeta) -> Result<Fate, DropReason> {
        if self.is_plain {
            return self.accept_plain(now, meta.size);
        }
        let start = self.admit(now, meta)?;
        Ok(self.serve(now, start, meta))
    }

    /// The same for a plain link, as most are, where only a full queue refuses packets.
    #[inline(always)]
    fn accept_plain(&mut self, now: Instant, size: Bytes) -> Result<Fate, DropReason> {
        self.start_services(now);
        let start = self.free_at.max(now);
        if start > now {
            if !self.queue_admits(size, None) {
                return Err(DropReason::Queue);
            }
            self.enqueue(start, size);
        }
        self.latest_wait = start.since(now);
        self.waits.record(self.latest_wait);
        let departure = start + self.transmission_time(size);
        Ok(self.depart(now, departure, departure + self.delay.base(), None))
    }

    /// Whether the entrance takes a packet, and when its service starts, as far as that is known.
    #[inline(always)]
    fn admit(&mut self, now: Instant, meta: PacketMeta) -> Result<Instant, DropReason> {
        let PacketMeta { size, data } = meta;
        self.start_services(now);
        if self.loss_place == LossPlace::BeforeQueue && self.loses(data) {
            self.counters.loss_drops += 1;
            return Err(DropReason::Loss);
        }
        let start = self.service_start_of_new(now);
        let idle = self.is_idle(now, start).then(|| now.since(self.free_at));
        if !self.queue_admits(size, idle) {
            return Err(DropReason::Queue);
        }
        if start > now {
            self.enqueue(start, size);
        }
        self.accepted.0 += 1;
        self.accepted.1 += size;
        Ok(start)
    }

    /// Whether the queue takes a packet that finds the server idle for so long, or busy.
    #[inline(always)]
    fn queue_admits(&mut self, size: Bytes, idle: Option<Duration>) -> bool {
        let (packets, bytes) = (self.waiting.len(), self.waiting_bytes);
        let (rate, accepted) = (self.rate, self.accepted);
        let arrival = Arrival { size, packets, bytes, idle };
        let admitted = self.admission.admits(arrival, || mean_transmission(rate, accepted));
        self.counters.queue_drops += u64::from(!admitted);
        admitted
    }

    /// A packet waits for its service, which starts at `start`.
    #[inline(always)]
    fn enqueue(&mut self, start: Instant, size: Bytes) {
        self.waiting_bytes += size;
        self.waiting.push_back(Waiting { start, size });
        let queue = self.waiting.len() as u64;
        self.counters.max_queue_packets = self.counters.max_queue_packets.max(queue);
    }

    /// When [`Link::poll`] next has something; `None` while there is nothing to wait for.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        let mut next = self.in_flight.next_arrival();
        if self.steering.is_some() {
            // Also when the next packet is to be decided.
            let start = self.waiting.front().map(|waiting| waiting.start);
            next = next.into_iter().chain(start).min();
        }
        // A packet behind an outage without end never arrives.
        next.filter(|&next| next < Instant::MAX)
    }

    /// The time from which [`Link::next_deadline`] would have its present value if no packet had
    /// been [passed on](Link::pass) ahead of its arrival; it may lie in the future.
    #[inline]
    pub fn next_since(&self) -> Option<Instant> {
        self.in_flight.next_since()
    }

    /// The next packet that has come out by `now`, in the order of logical time; call until `None`.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Output<T>> {
        self.start_services(now);
        let flight = self.in_flight.pop_due(now)?;
        self.counters.packets_sent += 1;
        self.counters.bytes_sent += flight.size;
        let Some(reason) = flight.fate.lost else { return Some(Output::Deliver(flight.item)) };
        if reason == DropReason::Outage {
            self.counters.outage_drops += 1;
        } else {
            self.counters.loss_drops += 1;
        }
        Some(Output::Drop(flight.item, reason))
    }

    /// Counts since the start.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// How long each packet whose service is foreseen waited, or will wait, from its arrival to the
    /// start of its service: for those before it, and for the end of an outage that holds packets.
    pub fn waits(&self) -> &Histogram {
        &self.waits
    }

    /// How long the packet accepted last waits. Not for a steered link, which does not foresee it.
    #[inline]
    pub fn latest_wait(&self) -> Duration {
        self.latest_wait
    }

    /// The server's rate, or the mean rate of its trace.
    pub fn rate(&self) -> DataRate {
        self.rate
    }

    /// Packets waiting for the server, the one in service not counted, as of the latest call.
    pub fn queue_len(&self) -> usize {
        self.waiting.len()
    }

    /// Packets accepted and not yet reported by [`Link::poll`].
    pub fn in_transit(&self) -> usize {
        self.in_flight.len() + self.steering.as_ref().map_or(0, |s| s.undecided.len())
    }

    /// Packets whose service has started by `now` leave the queue.
    #[inline]
    fn start_services(&mut self, now: Instant) {
        while let Some(&Waiting { start, size }) = self.waiting.front() {
            if start > now {
                return;
            }
            self.waiting_bytes -= size;
            self.waiting.pop_front();
            if self.steering.is_some() {
                self.decide_first(start);
            }
        }
    }

    /// The same without those that start at `now`: outages are half-open.
    fn start_services_before(&mut self, now: Instant) {
        self.start_services(Instant::from_nanos(now.as_nanos().saturating_sub(1)));
    }

    /// When the service of a packet that arrives now starts, as far as that is known.
    #[inline]
    fn service_start_of_new(&self, now: Instant) -> Instant {
        // In a steered link that depends on those before it.
        if self.steering.is_some() && !self.waiting.is_empty() {
            return Instant::MAX;
        }
        self.service_start(now)
    }

    /// A steered link puts a packet into its queue, or serves it at once.
    #[inline(never)]
    fn accept_steered(&mut self, now: Instant, start: Instant, item: T, meta: PacketMeta) {
        let Some(steering) = &mut self.steering else { return };
        steering.undecided.push_back(Undecided { arrived: now, item, meta });
        if start == now {
            self.decide_first(start);
        }
    }

    /// Serves the first undecided packet of a steered link from `start` on.
    #[inline(never)]
    fn decide_first(&mut self, start: Instant) {
        let Some(steering) = &mut self.steering else { return };
        let Some(Undecided { arrived, item, meta }) = steering.undecided.pop_front() else {
            return;
        };
        let fate = self.serve(arrived, start, meta);
        let lost = fate.lost.is_some();
        self.in_flight.push(Flight { fate, size: meta.size, item });
        let departure = Departure { arrived, at: self.free_at, size: meta.size, lost };
        if let Some(departures) = self.steering.as_mut().and_then(|s| s.departures.as_mut()) {
            departures.push_back(departure);
        }
        self.foresee_first();
    }

    /// When the service of the first undecided packet of a steered link starts.
    fn foresee_first(&mut self) {
        let undecided = self.steering.as_ref().and_then(|s| s.undecided.front());
        let Some(arrived) = undecided.map(|packet| packet.arrived) else { return };
        let start = self.service_start(arrived);
        if let Some(first) = self.waiting.front_mut() {
            first.start = start;
        }
    }

    /// Whether a packet that arrives now, to be served from `start`, finds neither queued packets
    /// nor an outage.
    #[inline]
    fn is_idle(&self, now: Instant, start: Instant) -> bool {
        // A server with a trace serves nothing at once.
        let awaits_trace = || self.opportunities.is_some() && self.waiting.is_empty();
        start == now || (awaits_trace() && self.free_at <= now)
    }

    /// When the server starts on a packet that arrives now: at once, or when the server is free and
    /// the link up.
    #[inline]
    fn service_start(&self, now: Instant) -> Instant {
        let now = match &self.steering {
            Some(steering) if steering.down && steering.mode == OutageMode::Hold => {
                return Instant::MAX;
            }
            Some(steering) => now.max(steering.up_since),
            None => now,
        };
        if let Some(opportunities) = &self.opportunities {
            return start_by_trace(opportunities, self.outage.as_deref(), now);
        }
        let earliest = self.free_at.max(now);
        match &self.outage {
            Some(outage) => start_beside(outage, earliest),
            None => earliest,
        }
    }

    /// Decides the packet's times and fate.
    #[inline(always)]
    fn serve(
        &mut self,
        offered: Instant,
        start: Instant,
        PacketMeta { size, data }: PacketMeta,
    ) -> Fate {
        self.latest_wait = start.since(offered);
        // Behind an outage without end there is no service.
        if start < Instant::MAX {
            self.waits.record(self.latest_wait);
        }
        let departure = match &mut self.opportunities {
            Some(opportunities) => opportunities.serve(start, size),
            None => start + self.transmission_time(size),
        };
        let arrival = departure + self.delay.draw(departure);
        let unlucky = self.loss_place == LossPlace::Medium && self.loses(data);
        let lost = if self.outage_takes(start, departure) {
            Some(DropReason::Outage)
        } else {
            unlucky.then_some(DropReason::Loss)
        };
        self.depart(offered, departure, arrival, lost)
    }

    /// The server is done with a packet at `departure`.
    #[inline(always)]
    fn depart(
        &mut self,
        offered: Instant,
        departure: Instant,
        arrival: Instant,
        lost: Option<DropReason>,
    ) -> Fate {
        self.free_at = departure;
        let next_since = match self.in_flight {
            InFlight::InOrder(_) => offered.max(self.latest_arrival),
            InFlight::Overtaking(_) => offered,
        };
        self.latest_arrival = self.latest_arrival.max(arrival);
        Fate { next_since, arrival, lost }
    }

    /// How long a link without trace serves a packet of this size.
    #[inline(always)]
    fn transmission_time(&mut self, size: Bytes) -> Duration {
        if self.transmission.0 != size {
            self.transmission = transmission(self.rate, size);
        }
        self.transmission.1
    }

    #[inline]
    fn loses(&mut self, data: bool) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses(data))
    }

    #[inline]
    fn outage_takes(&self, start: Instant, departure: Instant) -> bool {
        self.steering.as_ref().is_some_and(|s| s.down && s.mode == OutageMode::Drop)
            || self.outage.as_ref().is_some_and(|outage| is_taken(outage, start, departure))
    }
}

// Most links have neither outages nor random delays nor RED: what serves these alone is kept out of
// line, so that the common path stays short.

/// When a server that could start at `earliest` does start, given the link's outages.
#[inline(never)]
fn start_beside(outage: &OutageConfig, earliest: Instant) -> Instant {
    match outage.mode {
        OutageMode::Hold => outage.schedule.next_up(earliest).unwrap_or(Instant::MAX),
        OutageMode::Drop => earliest,
    }
}

/// The first opportunity for a packet that arrives now at which the link is up, or loses packets.
#[inline(never)]
fn start_by_trace(
    opportunities: &Opportunities,
    outage: Option<&OutageConfig>,
    now: Instant,
) -> Instant {
    let mut start = opportunities.start(now);
    while let Some(outage) = outage {
        let up = start_beside(outage, start);
        if up == start {
            break;
        }
        start = opportunities.start(up);
    }
    start
}

/// Whether an outage takes a packet serialised from `start` to `departure`.
#[inline(never)]
fn is_taken(outage: &OutageConfig, start: Instant, departure: Instant) -> bool {
    outage.mode == OutageMode::Drop && outage.schedule.overlaps(start, departure)
}

/// The entry of [`Link::transmission`] for packets of this size.
#[inline(never)]
fn transmission(rate: DataRate, size: Bytes) -> (Bytes, Duration) {
    (size, rate.transmission_time(size))
}

/// Mean transmission time of the packets accepted so far, for RED's idle-time correction.
fn mean_transmission(rate: DataRate, (packets, bytes): (u64, Bytes)) -> Duration {
    match bytes.get().checked_div(packets) {
        Some(mean_size) => rate.transmission_time(Bytes(mean_size)),
        None => Duration::ZERO,
    }
}

/// Packets in flight: a queue while they keep their order, else a heap.
#[derive(Clone, Debug)]
enum InFlight<T> {
    InOrder(VecDeque<Flight<T>>),
    Overtaking(Overtaking<T>),
}

impl<T> InFlight<T> {
    fn new(overtaking: bool) -> Self {
        if overtaking {
            Self::Overtaking(Overtaking { heap: BinaryHeap::new(), accepted: 0 })
        } else {
            Self::InOrder(VecDeque::new())
        }
    }

    #[inline]
    fn push(&mut self, flight: Flight<T>) {
        match self {
            Self::InOrder(queue) => queue.push_back(flight),
            Self::Overtaking(flights) => flights.push(flight),
        }
    }

    #[inline]
    fn next_arrival(&self) -> Option<Instant> {
        match self {
            Self::InOrder(queue) => queue.front().map(|flight| flight.fate.arrival),
            Self::Overtaking(flights) => flights.next_arrival(),
        }
    }

    #[inline]
    fn next_since(&self) -> Option<Instant> {
        match self {
            Self::InOrder(queue) => queue.front().map(|flight| flight.fate.next_since),
            Self::Overtaking(flights) => flights.next_since(),
        }
    }

    #[inline]
    fn pop_due(&mut self, now: Instant) -> Option<Flight<T>> {
        match self {
            Self::InOrder(queue) => {
                queue.front().filter(|flight| flight.fate.arrival <= now)?;
                queue.pop_front()
            }
            Self::Overtaking(flights) => flights.pop_due(now),
        }
    }

    /// Marks the packet pushed last as lost to an outage.
    fn lose_newest(&mut self) {
        match self {
            Self::InOrder(queue) => {
                if let Some(newest) = queue.back_mut() {
                    newest.fate.lost = Some(DropReason::Outage);
                }
            }
            Self::Overtaking(flights) => flights.lose_newest(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::InOrder(queue) => queue.len(),
            Self::Overtaking(flights) => flights.heap.len(),
        }
    }
}

/// Packets in flight by arrival.
#[derive(Clone, Debug)]
struct Overtaking<T> {
    heap: BinaryHeap<Ranked<T>>,
    /// Packets so far.
    accepted: u64,
}

impl<T> Overtaking<T> {
    #[inline(never)]
    fn push(&mut self, flight: Flight<T>) {
        self.heap.push(Ranked { ordinal: self.accepted, flight });
        self.accepted += 1;
    }

    #[inline(never)]
    fn next_arrival(&self) -> Option<Instant> {
        self.heap.peek().map(|ranked| ranked.flight.fate.arrival)
    }

    fn next_since(&self) -> Option<Instant> {
        self.heap.peek().map(|ranked| ranked.flight.fate.next_since)
    }

    fn lose_newest(&mut self) {
        let mut flights = std::mem::take(&mut self.heap).into_vec();
        if let Some(newest) = flights.iter_mut().max_by_key(|ranked| ranked.ordinal) {
            newest.flight.fate.lost = Some(DropReason::Outage);
        }
        self.heap = flights.into();
    }

    #[inline(never)]
    fn pop_due(&mut self, now: Instant) -> Option<Flight<T>> {
        let first = self.heap.peek_mut().filter(|ranked| ranked.flight.fate.arrival <= now)?;
        Some(PeekMut::pop(first).flight)
    }
}

/// Orders the heap: earliest arrival on top, ties by order of acceptance.
#[derive(Clone, Debug)]
struct Ranked<T> {
    ordinal: u64,
    flight: Flight<T>,
}

impl<T> Ranked<T> {
    fn key(&self) -> (Instant, u64) {
        (self.flight.fate.arrival, self.ordinal)
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
