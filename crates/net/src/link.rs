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
//! - In a FIFO link nothing comes out before its predecessor, which may be a lost one; so where the
//!   delay falls, packets bunch up.
//! - At equal times a departure comes before an arrival to the queue.
//! - A copy ([`Link::duplicates`]) is a packet of its own: it is offered right behind the first,
//!   takes its place in the queue and its time of the server, and has draws of its own.
//! - A packet whose arrival is known may be taken out ahead of it ([`Link::pass`]), for a caller
//!   that looks after the rest itself.
//! - A link that can be taken down at run time ([`Link::steered`]), or whose queue discipline drops,
//!   marks or reorders waiting packets, is the exception to the second rule: what will happen is not
//!   known beforehand, so a packet is decided when its service starts, which is one more wake-up. So
//!   is one with handovers, where packets may go back from the server to a queue (`handover`).
//!   Where both ways are possible, the times are the same. What such a queue drops is reported at
//!   that instant.
//! - A link of a cell ([`Link::in_cell`]) has no server of its own: its packets wait until the cell's
//!   scheduler lets it send.

use crate::cell::{CellConfig, Grant, Tti};
use crate::config::{
    LinkConfig, LinkRate, LossConfig, LossPlace, OutageConfig, OutageMode, QueueConfig, QueueLimit,
    RlcConfig, Schedule,
};
use crate::delay::Delay;
use crate::fading::Fading;
use crate::handover::{Forwarded, Handover, Way};
use crate::loss::Loss;
use crate::policer::Policer;
use crate::queue::admission::{Admission, Admitted, Arrival, Verdict};
use crate::queue::{Queue, Server, Waiting as Queued};
use crate::rlc::{Repairs, Rlc, Served};
use crate::slots::Slots;
use crate::table::Rates;
use crate::trace::{Opportunities, Trace};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, DataRate, Dscp, Duration, Ecn, Histogram, Instant, Stream};
use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;
use std::sync::Arc;

/// The properties of a packet that a link looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketMeta {
    /// Size on the link.
    pub size: Bytes,
    /// The number of its flow ([`flow_number`](crate::queue::flow::flow_number)), for disciplines
    /// that tell flows apart.
    pub flow: u32,
    /// It carries payload (only such packets have ordinals in [`crate::config::LossConfig::List`]).
    pub data: bool,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The DSCP in its IP header.
    pub dscp: Dscp,
}

impl PacketMeta {
    /// A packet of this size, with payload or not, of flow 0 and a sender without ECN, not marked.
    pub const fn new(size: Bytes, data: bool) -> Self {
        Self { size, flow: 0, data, ecn: Ecn::NotEct, dscp: Dscp::DEFAULT }
    }
}

/// A packet with payload.
impl From<Bytes> for PacketMeta {
    fn from(size: Bytes) -> Self {
        Self::new(size, true)
    }
}

/// The random streams of one link, each made where something draws from it: `link/<name>/loss`,
/// `…/duplicate`, `…/delay`, `…/fading`, `…/red` (every queue discipline's; it was RED's first, and another name would change
/// its draws), `…/slot-loss`, `…/rlc`.
#[derive(Clone, Copy, Debug)]
pub struct LinkStreams<'n> {
    run_seed: u64,
    link: &'n str,
    path: Option<&'n str>,
}

impl<'n> LinkStreams<'n> {
    /// The streams of the link with this name, in the run with seed `run_seed`.
    pub fn named(run_seed: u64, link: &'n str) -> Self {
        Self { run_seed, link, path: None }
    }

    /// The same for a direction of a path, whose slots have the stream `path/<path>`.
    pub fn of_path(self, path: &'n str) -> Self {
        Self { path: Some(path), ..self }
    }

    fn of(&self, purpose: &str) -> Stream {
        Stream::new(self.run_seed, &format!("link/{}/{purpose}", self.link))
    }

    /// For the channel of a link that fades.
    pub fn of_fading(&self) -> Stream {
        self.of("fading")
    }

    /// For the slots of a path that is reconfigured: the same in both directions.
    fn of_slots(&self) -> Stream {
        match self.path {
            Some(path) => Stream::new(self.run_seed, &format!("path/{path}")),
            None => self.of("path"),
        }
    }
}

/// The packet went no further than the entrance: the queue refused it ([`DropReason::Queue`]), or
/// in front of it the policer ([`DropReason::Policer`]) or the loss model ([`DropReason::Loss`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<T>(pub T, pub DropReason);

/// An output of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<T> {
    /// The packet arrived at the far end.
    Deliver(T, Passage),
    /// The packet was lost on the way, or dropped by the queue after it had entered.
    Drop(T, DropReason),
}

/// The part of a packet's passage that was unknown when it was offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Time from its arrival to its service; zero where that was [known](Link::latest_wait).
    pub waited: Duration,
    /// The queue marked it: its ECN field is to become [`Ecn::Ce`].
    pub marked: bool,
}

/// The arrival of a packet taken out of a link ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Arrival of the packet.
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
    /// Packets the queue refused or dropped.
    pub queue_drops: u64,
    /// Packets the queue marked instead ([`Ecn::Ce`]).
    pub ecn_marks: u64,
    /// Packets the loss model took.
    pub loss_drops: u64,
    /// Copies that the link asked for ([`Link::duplicates`]), whatever became of them.
    pub duplicates: u64,
    /// Packets the policer dropped.
    pub policer_drops: u64,
    /// Packets an outage took, or a handover.
    pub outage_drops: u64,
    /// Longest queue in packets, not counting the one in service.
    pub max_queue_packets: u64,
}

/// A unidirectional link that carries items of type `T`: an index in the simulator, a buffer in the
/// real-time emulator. Calls must not go back in time.
#[derive(Clone, Debug)]
pub struct Link<T> {
    /// The server's rate, or the mean rate of its file.
    rate: DataRate,
    /// The latest packet size and its transmission time, cached: packets come in few sizes, and
    /// divisions are slow.
    transmission: (Bytes, Duration),
    /// Replaces the rate.
    service: Option<Service>,
    delay: Delay,
    loss: Option<Box<Loss>>,
    loss_place: LossPlace,
    duplication: Option<Box<Duplication>>,
    policer: Option<Box<Policer>>,
    outage: Option<Box<OutageConfig>>,
    slots: Option<Box<Slots>>,
    /// Decides on packets at their arrival; not used with `deferred`.
    admission: Admission,
    /// The packets whose service starts later than the latest call, unless `deferred`.
    waiting: VecDeque<Waiting>,
    waiting_bytes: Bytes,
    /// Time at which the server becomes, or became, free.
    free_at: Instant,
    /// The latest arrival of a packet so far accepted.
    latest_arrival: Instant,
    /// The latest [`Fate::next_since`].
    latest_since: Instant,
    in_flight: InFlight<T>,
    /// Present if packets are decided when their service starts.
    deferred: Option<Box<Deferred<T>>>,
    /// What the caller asked for.
    reports: Option<Box<Reports<T>>>,
    /// Only a rate, a constant delay and a drop-tail queue.
    is_plain: bool,
    /// Packets and bytes accepted, for RED; a plain link does not count them.
    accepted: (u64, Bytes),
    counters: LinkCounters,
    /// Time that each packet waited for its service.
    waits: Histogram,
    /// The same of the latest packet.
    latest_wait: Duration,
}

/// Reports that the caller has yet to take. Few links keep them.
#[derive(Clone, Debug)]
struct Reports<T> {
    /// Ordered by time.
    departures: Option<VecDeque<Departure>>,
    service_starts: Option<ServiceStarts<T>>,
}

/// Starts of service of a link.
#[derive(Clone, Debug)]
struct ServiceStarts<T> {
    starts: VecDeque<ServiceStart<T>>,
    copy: fn(&T) -> T,
}

impl<T> Default for Reports<T> {
    fn default() -> Self {
        Self { departures: None, service_starts: None }
    }
}

impl<T> Reports<T> {
    fn departure(&mut self, departure: Departure) {
        if let Some(departures) = &mut self.departures {
            // A queue may drop packets while one is in service that departs later.
            let place = departures.partition_point(|earlier| earlier.at <= departure.at);
            departures.insert(place, departure);
        }
    }

    fn service_start(&mut self, at: Instant, item: &T, marked: bool) {
        if let Some(ServiceStarts { starts, copy }) = &mut self.service_starts {
            starts.push_back(ServiceStart { at, item: copy(item), marked });
        }
    }
}

/// Copies of packets: each with probability `p`.
#[derive(Clone, Debug)]
struct Duplication {
    p: f64,
    stream: Stream,
}

impl Duplication {
    /// `None` if nothing is ever copied.
    fn new(p: f64, stream: Stream) -> Option<Box<Self>> {
        (p > 0.0).then(|| Box::new(Self { p, stream }))
    }
}

/// A server that is more than a rate.
#[derive(Clone, Debug)]
enum Service {
    Trace(Box<Opportunities>),
    Table(Arc<Rates>),
    Fading(Box<Fading>),
    Rlc(Box<Rlc>),
}

impl Service {
    fn of(config: &LinkConfig, streams: &LinkStreams<'_>) -> Option<Self> {
        match (&config.rate, config.rlc.as_deref()) {
            (LinkRate::Constant(_), None) => None,
            (&LinkRate::Constant(rate), Some(&config)) => {
                Some(Self::Rlc(Box::new(Rlc::new(config, rate, streams.of("rlc")))))
            }
            (LinkRate::Mahimahi(trace), _) => {
                Some(Self::Trace(Box::new(Opportunities::new(Trace::clone(trace)))))
            }
            (LinkRate::Table(rates), _) => Some(Self::Table(Arc::clone(rates))),
            (LinkRate::Fading(config), _) => {
                Some(Self::Fading(Box::new(Fading::new(**config, streams.of_fading()))))
            }
        }
    }

    /// True if packets leave only at certain times.
    fn is_slotted(&self) -> bool {
        matches!(self, Self::Trace(_) | Self::Rlc(_))
    }

    /// The first of these times for a packet that waits from `now`, whenever the server is free.
    fn start(&self, now: Instant) -> Instant {
        match self {
            Self::Trace(opportunities) => opportunities.start(now),
            Self::Rlc(rlc) => rlc.start(now),
            Self::Table(_) | Self::Fading(_) => now,
        }
    }

    /// A handover ends all that is under way.
    fn restart(&mut self) {
        match self {
            Self::Trace(opportunities) => opportunities.restart(),
            Self::Rlc(rlc) => rlc.reestablish(),
            Self::Table(_) | Self::Fading(_) => {}
        }
    }

    /// Serves a packet from `start`.
    fn serve(&mut self, start: Instant, size: Bytes) -> Served {
        match self {
            Self::Trace(opportunities) => Served::at(opportunities.serve(start, size)),
            Self::Table(rates) => Served::at(rates.departure(start, size)),
            Self::Fading(fading) => Served::at(fading.departure(start, size)),
            Self::Rlc(rlc) => rlc.serve(start, size),
        }
    }
}

/// A packet's place in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Start of its service.
    start: Instant,
    size: Bytes,
}

/// State of a link that decides on packets when their service starts.
#[derive(Clone, Debug)]
struct Deferred<T> {
    queue: Queue<T>,
    /// Time at which the server next takes a packet from the queue; [`Instant::MAX`] while it is
    /// empty or held.
    next_start: Instant,
    /// Packets that the queue drops; empty between calls.
    dropped: Vec<Queued<T>>,
    /// Present in a link that can be taken down at run time.
    steering: Option<Steering>,
    handover: Option<Handover<T>>,
    /// Present in a link of a cell.
    cell: Option<Box<InCell<T>>>,
    /// Departures of the packets in service in such a link: several share a transport block.
    in_service: VecDeque<Instant>,
}

/// The outages by hand of a link.
#[derive(Clone, Copy, Debug)]
struct Steering {
    mode: OutageMode,
    down: bool,
    /// The end of the latest one.
    up_since: Instant,
}

impl Steering {
    /// True if the link is down and its outage has this effect.
    fn does(self, mode: OutageMode) -> bool {
        self.down && self.mode == mode
    }
}

/// The state of a link in a cell.
#[derive(Clone, Debug)]
struct InCell<T> {
    /// The packet of which a part has been sent.
    begun: Option<Begun<T>>,
    repairs: Option<Box<Repairs>>,
    /// Packets that have been sent to their end; empty between calls.
    sent: Vec<Begun<T>>,
}

/// A packet that is being sent.
#[derive(Clone, Debug)]
struct Begun<T> {
    packet: Queued<T>,
    /// Start of its first TTI.
    start: Instant,
    /// Bits still to be sent.
    left: u64,
    /// A part was given up.
    lost: bool,
}

/// A packet has left the server, or was dropped before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time at which the packet was offered.
    pub arrived: Instant,
    /// Departure of its last byte, or the time of the drop.
    pub at: Instant,
    /// Size on the link.
    pub size: Bytes,
    /// It will not arrive: an outage, a loss or the queue took it.
    pub lost: bool,
}

/// The service of a packet starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceStart<T> {
    /// The start. It lies ahead if the link decided on the packet when it was offered;
    /// [`Instant::MAX`]: behind an outage without end.
    pub at: Instant,
    /// The packet.
    pub item: T,
    /// The queue marked it: its ECN field is to become [`Ecn::Ce`].
    pub marked: bool,
}

/// A packet between acceptance and arrival. In a FIFO link it comes out after its predecessors.
#[derive(Clone, Debug)]
struct Flight<T> {
    fate: Fate,
    size: Bytes,
    item: T,
}

/// Arrival or loss of an accepted packet.
#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Since when its arrival has been the link's next one, if packets keep their order; otherwise
    /// when it was offered.
    next_since: Instant,
    arrival: Instant,
    lost: Option<DropReason>,
}

impl<T> Deferred<T> {
    fn new(queue: Queue<T>) -> Self {
        Self {
            queue,
            next_start: Instant::MAX,
            dropped: Vec::new(),
            steering: None,
            handover: None,
            cell: None,
            in_service: VecDeque::new(),
        }
    }

    /// A part of a packet has been sent by a link in a cell.
    fn has_begun(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| cell.begun.is_some())
    }

    /// Packets whose turn it may be: in the queue, and before it after a handover.
    fn waiting(&self) -> usize {
        self.queue.len() + self.handover.as_ref().map_or(0, Handover::first_len)
    }

    /// The next packet to serve; those that the queue drops before it go to `dropped`.
    fn dequeue(&mut self, now: Instant) -> Option<Queued<T>> {
        let first = self.handover.as_mut().and_then(Handover::take_first);
        first.or_else(|| self.queue.dequeue(now, &mut self.dropped))
    }

    /// The next thing to happen, and its time; [`Instant::MAX`]: nothing does.
    fn next_step(&self) -> (Instant, Step) {
        let service = (self.next_start, Step::Service);
        let Some(handover) = &self.handover else { return service };
        let begin = (handover.next(), Step::Handover);
        let forwarded = (handover.next_forwarded(), Step::Forwarded);
        // At one time, a packet comes before a handover begins, and no service starts then.
        let next = if begin.0 <= service.0 { begin } else { service };
        if forwarded.0 < next.0 || (forwarded.0 == begin.0 && next.0 == begin.0) {
            return forwarded;
        }
        next
    }

    /// The time of the next thing to happen, if it is one to wake up for.
    fn next_deadline(&self) -> Instant {
        match &self.handover {
            // Without packets, the next call will do.
            Some(it) if self.queue.len() == 0 && it.len() == 0 => Instant::MAX,
            Some(_) => self.next_step().0,
            None => self.next_start,
        }
    }
}

/// What happens in a link that decides packets later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A service starts.
    Service,
    /// A handover begins.
    Handover,
    /// A forwarded packet comes to the target base station.
    Forwarded,
}

impl<T> Link<T> {
    /// An idle link at the start of the run.
    pub fn new(config: &LinkConfig, streams: LinkStreams<'_>) -> Self {
        let LinkConfig { rate, delay, loss, policer, reconfiguration, queue, .. } = config;
        let outage = config.outages();
        let service = Service::of(config, &streams);
        let delay = Delay::new(delay, streams.of("delay"));
        let loss_model = Loss::new(&loss.model, streams.of("loss"));
        let slots = |it| Slots::new(it, streams.of_slots(), streams.of("slot-loss"));
        let slots = reconfiguration.as_deref().and_then(slots);
        let is_plain = service.is_none()
            && loss_model.is_none()
            && policer.is_none()
            && outage.is_none()
            && slots.is_none()
            && config.handover.is_none()
            && delay.is_constant()
            && matches!(queue, QueueConfig::DropTail { .. });
        // One that decides packets later does so in `deferred`.
        let at_once = queue.decides_on_arrival() && config.handover.is_none();
        let (admission, mut deferred) = match at_once {
            true => (Admission::new(queue, streams.of("red")), None),
            false => {
                let queue = Queue::new(queue, streams.of("red"));
                (Admission::DropTail(QueueLimit::Packets(0)), Some(Box::new(Deferred::new(queue))))
            }
        };
        if let (Some(deferred), Some(handover)) = (&mut deferred, &config.handover) {
            deferred.handover = Some(Handover::new(handover, rate.mean()));
        }
        Self {
            rate: rate.mean(),
            transmission: (Bytes::ZERO, Duration::ZERO),
            service,
            in_flight: InFlight::new(delay.reorders() || deferred.is_some()),
            deferred,
            reports: None,
            delay,
            is_plain,
            loss: loss_model.map(Box::new),
            loss_place: loss.place,
            duplication: Duplication::new(config.duplicate, streams.of("duplicate")),
            policer: policer.map(|config| Box::new(Policer::new(config))),
            outage: outage.map(Box::new),
            slots: slots.map(Box::new),
            admission,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            free_at: Instant::ZERO,
            latest_arrival: Instant::ZERO,
            latest_since: Instant::ZERO,
            accepted: (0, Bytes::ZERO),
            counters: LinkCounters::default(),
            waits: Histogram::default(),
            latest_wait: Duration::ZERO,
        }
    }

    /// The link from the mobile to the base station, if its mobile has handovers; before the first
    /// packet. The mobile keeps what it has not sent.
    pub fn from_mobile(mut self) -> Self {
        let handover = self.deferred.as_mut().and_then(|deferred| deferred.handover.as_mut());
        if let Some(handover) = handover {
            handover.set_from_mobile();
        }
        self
    }

    /// The link with [`Link::take_down`] and [`Link::take_up`]; `mode` says what these outages do
    /// to packets. Call before the first packet.
    pub fn steered(mut self, mode: OutageMode) -> Self {
        self.defer().steering = Some(Steering { mode, down: false, up_since: Instant::ZERO });
        self
    }

    /// The link as one of a cell's, which sends only by [`Link::send_in`]; before the first
    /// packet. Not for one with a trace, RLC of its own or handovers.
    pub fn in_cell(mut self, cell: &CellConfig, streams: &LinkStreams<'_>) -> Self {
        let of_cell = |rlc| RlcConfig { tti: cell.tti, ..rlc };
        let repairs = cell.rlc.map(|rlc| Box::new(Repairs::new(of_cell(rlc), streams.of("rlc"))));
        self.defer().cell = Some(Box::new(InCell { begun: None, repairs, sent: Vec::new() }));
        self
    }

    /// From now on, packets are decided when their service starts.
    fn defer(&mut self) -> &mut Deferred<T> {
        self.is_plain = false;
        let Self { admission, deferred, in_flight, .. } = self;
        deferred.get_or_insert_with(|| {
            *in_flight = InFlight::new(true);
            Box::new(Deferred::new(Queue::Admitted(Admitted::new(admission.clone()))))
        })
    }

    /// Bits that a link in a cell could send in this TTI if it had the cell to itself; none in an
    /// outage that holds packets. `None` if nothing waits.
    pub fn competes(&mut self, tti: Tti) -> Option<u64> {
        let deferred = self.deferred.as_ref()?;
        if deferred.queue.len() == 0 && !deferred.has_begun() {
            return None;
        }
        let Tti { start, end } = tti;
        let holds = |outage: &OutageConfig| {
            outage.mode == OutageMode::Hold && outage.schedule.is_down(start)
        };
        Some(match &mut self.service {
            _ if self.outage.as_deref().is_some_and(holds) => 0,
            Some(Service::Table(rates)) => rates.bits_between(start, end),
            Some(Service::Fading(fading)) => fading.bits_between(start, end),
            _ => self.rate.bits_in(end.since(start)),
        })
    }

    /// A link in a cell sends, as [`Link::competes`] allows. Returns how many bits: fewer than
    /// granted only if nothing is left. Packets sent to their end depart at the end of the TTI.
    pub fn send_in(&mut self, grant: &mut Grant<'_>) -> u64 {
        let &mut Grant { tti, bits, number, .. } = grant;
        let mut left = bits;
        let mut sent = self.in_cell_mut().map(|cell| mem::take(&mut cell.sent)).unwrap_or_default();
        while left > 0
            && let Some(mut begun) = self.begin(tti.start)
        {
            let part = left.min(begun.left);
            left -= part;
            begun.left -= part;
            if begun.left == 0 {
                sent.push(begun);
            } else if let Some(cell) = self.in_cell_mut() {
                cell.begun = Some(begun);
            }
        }
        let sent_bits = bits - left;
        let mut received = tti.end;
        if sent_bits > 0
            && let Some(cell) = self.in_cell_mut()
            && let Some(repairs) = &mut cell.repairs
        {
            let block = repairs.send(number, &mut grant.again(sent_bits));
            received = repairs.deliver(block);
            let parts = sent.iter_mut().chain(&mut cell.begun);
            parts.for_each(|packet| packet.lost |= block.lost);
        }
        for Begun { packet, start, lost, .. } in sent.drain(..) {
            self.finish(start, packet, Served { departure: tti.end, received, lost });
        }
        if let Some(cell) = self.in_cell_mut() {
            cell.sent = sent;
        }
        sent_bits
    }

    fn in_cell_mut(&mut self) -> Option<&mut InCell<T>> {
        self.deferred.as_mut()?.cell.as_deref_mut()
    }

    /// The packet of which a link in a cell sends the next bit, at `start`.
    fn begin(&mut self, start: Instant) -> Option<Begun<T>> {
        let deferred = self.deferred.as_mut()?;
        if let Some(begun) = deferred.cell.as_mut()?.begun.take() {
            return Some(begun);
        }
        let packet = deferred.dequeue(start);
        self.report_dropped(start);
        let packet = packet?;
        self.report_service_start(start, &packet);
        Some(Begun { start, left: packet.meta.size.bits(), packet, lost: false })
    }

    /// From now on the link keeps its departures for [`Link::next_departure`]. Call before the
    /// first packet.
    pub fn report_departures(&mut self) {
        self.reports().departures = Some(VecDeque::new());
    }

    /// From now on the link keeps the starts of services for [`Link::next_service_start`].
    pub fn report_service_starts(&mut self)
    where
        T: Copy,
    {
        let none = || ServiceStarts { starts: VecDeque::new(), copy: |item| *item };
        self.reports().service_starts.get_or_insert_with(none);
    }

    fn reports(&mut self) -> &mut Reports<T> {
        self.reports.get_or_insert_default()
    }

    /// The next start of a service, in the order in which packets are served, if the link reports
    /// them; call until `None`, after each call that offers packets, takes them out or lets a link
    /// in a cell send. A packet that a handover interrupts is reported when it is served to its end.
    #[inline]
    pub fn next_service_start(&mut self) -> Option<ServiceStart<T>> {
        self.reports.as_mut()?.service_starts.as_mut()?.starts.pop_front()
    }

    /// Begins an outage at `now` that lasts until [`Link::take_up`]. It does what a scheduled
    /// outage over the same interval does. Packets in the queue wait or are lost as their turn
    /// comes. The one in service arrives under [`OutageMode::Hold`] and is lost under
    /// [`OutageMode::Drop`]. Packets that have left the server arrive. No effect if the link has
    /// already been taken down or is not steered.
    pub fn take_down(&mut self, now: Instant) {
        self.start_services_before(now);
        let Some(deferred) = &mut self.deferred else { return };
        let Some(steering) = deferred.steering.as_mut().filter(|steering| !steering.down) else {
            return;
        };
        steering.down = true;
        match steering.mode {
            OutageMode::Hold => deferred.next_start = Instant::MAX,
            OutageMode::Drop => {
                deferred.in_service.retain(|departure| *departure > now);
                let lost = deferred.in_service.len();
                let departures = self.reports.iter_mut().filter_map(|it| it.departures.as_mut());
                for departure in departures.flatten() {
                    departure.lost |= departure.at > now;
                }
                self.in_flight.lose_newest(lost);
            }
        }
    }

    /// Ends the outage that [`Link::take_down`] began, if any. A scheduled outage goes on.
    pub fn take_up(&mut self, now: Instant) {
        self.start_services_before(now);
        let Some(deferred) = &mut self.deferred else { return };
        let Some(steering) = deferred.steering.as_mut().filter(|steering| steering.down) else {
            return;
        };
        steering.down = false;
        if steering.mode == OutageMode::Hold {
            steering.up_since = now;
            self.foresee_service(now);
        }
    }

    /// Makes the rate constant from `now` on. The packet in service is done when it would have been.
    /// Only for a steered link.
    pub fn set_rate(&mut self, now: Instant, rate: DataRate) {
        self.start_services_before(now);
        self.change_rate(rate);
        self.foresee_service(now);
    }

    fn change_rate(&mut self, rate: DataRate) {
        self.rate = rate;
        self.transmission = (Bytes::ZERO, Duration::ZERO);
        match &mut self.service {
            Some(Service::Rlc(rlc)) => rlc.set_rate(rate),
            other => *other = None,
        }
    }

    /// Makes the delay constant, for packets whose service starts from `now` on; they keep behind
    /// those before them. Only for a steered link.
    pub fn set_delay(&mut self, now: Instant, delay: Duration) {
        self.start_services_before(now);
        self.delay = Delay::constant(delay);
        if let Some(slots) = &mut self.slots {
            slots.end_delays();
        }
    }

    /// Makes losses independent, with probability `p` and drawn from `stream`, from `now` on. Only
    /// for a steered link.
    pub fn set_loss(&mut self, now: Instant, p: f64, stream: Stream) {
        self.start_services_before(now);
        self.loss = Loss::new(&LossConfig::Bernoulli { p }, stream).map(Box::new);
        if let Some(slots) = &mut self.slots {
            slots.end_losses();
        }
    }

    /// Copies packets with probability `p`, drawn from `stream`, from now on.
    pub fn set_duplicate(&mut self, p: f64, stream: Stream) {
        self.duplication = Duplication::new(p, stream);
    }

    /// True if the link copies some packets.
    pub fn makes_duplicates(&self) -> bool {
        self.duplication.is_some()
    }

    /// True if a copy of the next packet is to be offered right behind it. Call once for each packet
    /// that is not itself a copy, whether the link then takes it or not; the link cannot copy a
    /// packet, so that is left to the caller.
    #[inline]
    pub fn duplicates(&mut self) -> bool {
        let Some(duplication) = &mut self.duplication else { return false };
        let copied = duplication.stream.chance(duplication.p);
        self.counters.duplicates += u64::from(copied);
        copied
    }

    /// True if the link is down at `now`, by hand, by schedule or in a handover.
    pub fn is_down(&self, now: Instant) -> bool {
        self.steering().is_some_and(|steering| steering.down)
            || self.handover().is_some_and(|handover| handover.interrupts(now))
            || self.outage.as_ref().is_some_and(|outage| outage.schedule.is_down(now))
    }

    /// The next packet that has left the server by `now`, if the link reports them; call until
    /// `None`.
    pub fn next_departure(&mut self, now: Instant) -> Option<Departure> {
        if self.deferred.is_some() {
            self.start_services(now);
        }
        let departures = self.reports.as_mut()?.departures.as_mut()?;
        departures.front().filter(|departure| departure.at <= now)?;
        departures.pop_front()
    }

    /// Offers a packet at `now`. The entrance may refuse it: then it comes back.
    #[inline]
    pub fn send(&mut self, now: Instant, item: T, meta: PacketMeta) -> Result<(), Dropped<T>> {
        self.pass(now, item, &meta, None).map(|_| ())
    }

    /// Offers a packet at `now`, like [`Link::send`]. If it will arrive by `until`, the link does
    /// not keep it: it returns the arrival and counts the packet as having come out. A link that
    /// does not [keep order](Link::keeps_order) keeps all packets, and needs no `until`.
    #[inline(always)]
    pub fn pass(
        &mut self,
        now: Instant,
        item: T,
        meta: &PacketMeta,
        until: Option<Instant>,
    ) -> Result<Option<Arrived>, Dropped<T>> {
        if self.deferred.is_some() {
            return self.send_deferred(now, item, *meta).map(|()| None);
        }
        let fate = match self.accept(now, meta) {
            Ok(fate) => fate,
            Err(reason) => return Err(Dropped(item, reason)),
        };
        if let Some(reports) = &mut self.reports {
            let (at, lost) = (self.free_at, fate.lost.is_some());
            reports.departure(Departure { arrived: now, at, size: meta.size, lost });
            reports.service_start(now + self.latest_wait, &item, false);
        }
        if fate.lost.is_none() && until.is_some_and(|until| fate.arrival <= until) {
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

    /// True while a packet is in the queue, being served or in flight.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.in_transit() > 0
    }

    /// True if the link decides on a packet when it is offered, not when its service starts.
    pub fn decides_on_arrival(&self) -> bool {
        self.deferred.is_none()
    }

    /// True if packets arrive in the order in which they are offered, at times known beforehand.
    pub fn keeps_order(&self) -> bool {
        let steps = self.slots.as_ref().is_some_and(|slots| slots.changes_delay());
        self.deferred.is_none() && self.delay.is_constant() && !steps
    }

    /// A constant time above zero that is shorter than any packet takes from its offer to its
    /// arrival; `None` if there is none.
    pub fn lookahead(&self) -> Option<Duration> {
        // A trace may serve a packet in no time.
        let constant = self.keeps_order() && self.service.is_none();
        constant.then(|| self.delay.base()).filter(|delay| !delay.is_zero())
    }

    /// Times and fate of a packet offered to a link that decides at once; an error if it is
    /// refused.
    #[inline(always)]
    fn accept(&mut self, now: Instant, meta: &PacketMeta) -> Result<Fate, DropReason> {
        if self.is_plain {
            return self.accept_plain(now, meta.size);
        }
        let start = self.admit(now, meta)?;
        Ok(self.serve(now, start, meta))
    }

    /// The same for a plain link, as most are, where only a full queue refuses packets.
    #[inline(always)]
    fn accept_plain(&mut self, now: Instant, size: Bytes) -> Result<Fate, DropReason> {
        self.start_foreseen(now);
        let start = self.free_at.max(now);
        if start > now {
            if !self.queue_admits(size, None) {
                return Err(DropReason::Queue);
            }
            self.enqueue(start, size);
        }
        self.latest_wait = start.since(now);
        self.waits.record(self.latest_wait);
        self.free_at = start + self.transmission_time(size);
        // Each packet takes some time, so none arrives with its predecessor.
        let next_since = now.max(self.latest_arrival);
        self.latest_arrival = self.free_at + self.delay.base();
        Ok(Fate { next_since, arrival: self.latest_arrival, lost: None })
    }

    /// Start of the service of a packet, if the entrance takes it.
    #[inline(always)]
    fn admit(&mut self, now: Instant, meta: &PacketMeta) -> Result<Instant, DropReason> {
        let size = meta.size;
        self.start_services(now);
        self.pass_entrance(now, meta)?;
        let start = self.service_start(now);
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

    /// The policer or the loss model in front of the queue, if there are any, may take a packet.
    #[inline(always)]
    fn pass_entrance(&mut self, now: Instant, meta: &PacketMeta) -> Result<(), DropReason> {
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, meta.size)) {
            self.counters.policer_drops += 1;
            return Err(DropReason::Policer);
        }
        if self.loss_place == LossPlace::BeforeQueue && self.loses(now, meta.data) {
            self.counters.loss_drops += 1;
            return Err(DropReason::Loss);
        }
        Ok(())
    }

    /// True if the queue takes a packet. `idle`: the time for which the server has been idle;
    /// `None` if it is busy.
    #[inline(always)]
    fn queue_admits(&mut self, size: Bytes, idle: Option<Duration>) -> bool {
        let (packets, bytes) = (self.waiting.len(), self.waiting_bytes);
        let (rate, accepted) = (self.rate, self.accepted);
        // Where the ECN field matters, packets are decided later.
        let arrival = Arrival { size, ecn: Ecn::NotEct, packets, bytes, idle };
        match self.admission.judge(arrival, || mean_transmission(rate, accepted)) {
            Verdict::Enter => true,
            Verdict::Mark | Verdict::Refuse => {
                self.counters.queue_drops += 1;
                false
            }
        }
    }

    /// A packet waits for its service, which starts at `start`.
    #[inline(always)]
    fn enqueue(&mut self, start: Instant, size: Bytes) {
        self.waiting_bytes += size;
        self.waiting.push_back(Waiting { start, size });
        let queue = self.waiting.len() as u64;
        self.counters.max_queue_packets = self.counters.max_queue_packets.max(queue);
    }

    /// The next time at which [`Link::poll`] has an output; `None` while there is nothing to wait
    /// for.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        let mut next = self.in_flight.next_arrival();
        if let Some(deferred) = &self.deferred {
            // Also when the next packet is to be decided.
            next = next.into_iter().chain([deferred.next_deadline()]).min();
        }
        // A packet behind an outage without end never arrives.
        next.filter(|&next| next < Instant::MAX)
    }

    /// The time from which [`Link::next_deadline`] would have its present value if no packet had
    /// been [passed on](Link::pass) ahead of its arrival; it may lie in the future.
    #[inline]
    pub fn next_since(&self) -> Option<Instant> {
        // A link that decides packets later passes none on.
        if self.deferred.is_some() {
            return None;
        }
        self.in_flight.next_since()
    }

    /// The next packet that has come out by `now`, in the order of logical time; call until `None`.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Output<T>> {
        self.start_services(now);
        self.take_out(now)
    }

    /// Takes out, ahead of time, the next packet if it will arrive by `until`. Only for a link that
    /// [keeps order](Link::keeps_order).
    #[inline]
    pub fn poll_ahead(&mut self, until: Instant) -> Option<(Instant, Output<T>)> {
        let at = self.in_flight.next_arrival()?;
        Some((at, self.take_out(until)?))
    }

    /// The next packet in flight that arrives by `until`.
    #[inline]
    fn take_out(&mut self, until: Instant) -> Option<Output<T>> {
        let (flight, passage) = self.in_flight.pop_due(until)?;
        if let Some(reason @ (DropReason::Queue | DropReason::Handover)) = flight.fate.lost {
            return Some(Output::Drop(flight.item, reason));
        }
        self.counters.packets_sent += 1;
        self.counters.bytes_sent += flight.size;
        let Some(reason) = flight.fate.lost else {
            return Some(Output::Deliver(flight.item, passage));
        };
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

    /// Times from arrival to the start of service, of the packets whose service is foreseen. They
    /// wait for the packets before them, and for the end of an outage that holds packets.
    pub fn waits(&self) -> &Histogram {
        &self.waits
    }

    /// Wait of the packet accepted last, as far as it is known: zero for a link that decides
    /// packets later ([`Passage::waited`]).
    #[inline]
    pub fn latest_wait(&self) -> Duration {
        self.latest_wait
    }

    /// The server's rate, or the mean rate of its file or channel.
    pub fn rate(&self) -> DataRate {
        self.rate
    }

    /// Start of the next service, while a packet of this flow waits in a queue that decides then
    /// what is served. `None`: none waits, or the link decided when the packet arrived
    /// ([`Link::latest_wait`]).
    pub fn next_service(&mut self, now: Instant, flow: u32) -> Option<Instant> {
        self.start_services(now);
        let deferred = self.deferred.as_ref()?;
        let is_first = || deferred.handover.as_ref().is_some_and(|it| it.is_first(flow));
        match deferred.queue.holds(flow) || is_first() {
            true => Some(deferred.next_start),
            false => deferred.handover.as_ref()?.next_of(flow),
        }
    }

    /// Packets waiting for the server, the one in service not counted, as of the latest call.
    pub fn queue_len(&self) -> usize {
        self.deferred.as_ref().map_or(self.waiting.len(), |deferred| deferred.waiting())
    }

    /// Packets accepted and not yet reported by [`Link::poll`].
    pub fn in_transit(&self) -> usize {
        let queued = |it: &Deferred<T>| it.queue.len() + usize::from(it.has_begun());
        let queued = self.deferred.as_deref().map_or(0, queued);
        self.in_flight.len() + queued + self.handover().map_or(0, Handover::len)
    }

    /// Bits that the link could have sent in so long a time from the start, at its rates, or the
    /// mean rate of its trace or channel. A link in a cell: alone.
    pub fn capacity(&self, elapsed: Duration) -> f64 {
        let rates = match &self.service {
            Some(Service::Table(rates)) => Some(&**rates),
            _ => self.handover().and_then(Handover::rates),
        };
        match rates {
            Some(rates) => 8.0 * rates.carried(Instant::ZERO + elapsed).get() as f64,
            None => self.rate.bits_per_sec() as f64 * elapsed.as_secs_f64(),
        }
    }

    fn handover(&self) -> Option<&Handover<T>> {
        self.deferred.as_ref()?.handover.as_ref()
    }

    /// Packets whose service has started by `now` leave the queue.
    #[inline]
    fn start_services(&mut self, now: Instant) {
        self.start_foreseen(now);
        while let Some((at, step)) = self.deferred_step(now) {
            match step {
                Step::Service => self.serve_next(at),
                Step::Handover => self.hand_over(at),
                Step::Forwarded => self.receive_forwarded(at),
            }
        }
    }

    /// The same in a link that decides packets when they arrive.
    #[inline]
    fn start_foreseen(&mut self, now: Instant) {
        while let Some(&Waiting { size, .. }) = self.waiting.front().filter(|w| w.start <= now) {
            self.waiting_bytes -= size;
            self.waiting.pop_front();
        }
    }

    /// The same without those that start at `now`: outages are half-open.
    fn start_services_before(&mut self, now: Instant) {
        self.start_services(Instant::from_nanos(now.as_nanos().saturating_sub(1)));
    }

    /// What happens next in a link that decides later, if it does by `now`.
    #[inline]
    fn deferred_step(&self, now: Instant) -> Option<(Instant, Step)> {
        self.deferred.as_ref().map(|deferred| deferred.next_step()).filter(|&(at, _)| at <= now)
    }

    /// [`Link::send`] for a link that decides packets when their service starts.
    #[inline(never)]
    fn send_deferred(&mut self, now: Instant, item: T, meta: PacketMeta) -> Result<(), Dropped<T>> {
        self.start_services(now);
        if let Err(reason) = self.pass_entrance(now, &meta) {
            return Err(Dropped(item, reason));
        }
        let packet = Queued::new(now, item, meta);
        let handover = self.deferred.as_mut().and_then(|deferred| deferred.handover.as_mut());
        if let Some(handover) = handover {
            match handover.way(now) {
                Way::Queue => {}
                Way::Later(at) => {
                    handover.delay(at, packet);
                    self.latest_wait = Duration::ZERO;
                    return Ok(());
                }
                Way::Discarded => {
                    self.counters.outage_drops += 1;
                    return Err(Dropped(packet.item, DropReason::Handover));
                }
            }
        }
        self.enqueue_deferred(now, packet).map_err(|item| Dropped(item, DropReason::Queue))
    }

    /// A packet comes to the queue of such a link, which may hand it back.
    fn enqueue_deferred(&mut self, now: Instant, packet: Queued<T>) -> Result<(), T> {
        let meta = packet.meta;
        let start = self.service_start(now);
        let empty = self.queue_len() == 0;
        let mut server = Server::default();
        if empty && self.is_idle(now, start) {
            let transmission = mean_transmission(self.rate, self.accepted);
            server = Server { idle: Some(now.since(self.free_at)), transmission };
        }
        let Some(deferred) = &mut self.deferred else { return Ok(()) };
        let Deferred { queue, dropped, next_start, .. } = &mut **deferred;
        if server.idle.is_some() {
            // The server asked for a packet when it became free, and there was none.
            queue.dequeue(now, dropped);
        }
        if let Err(refused) = queue.enqueue(packet, server, dropped) {
            self.counters.queue_drops += 1;
            return Err(refused.item);
        }
        if empty {
            *next_start = start;
        }
        self.accepted.0 += 1;
        self.accepted.1 += meta.size;
        self.report_dropped(now);
        self.start_services(now);
        self.latest_wait = Duration::ZERO;
        let queue = self.queue_len() as u64;
        self.counters.max_queue_packets = self.counters.max_queue_packets.max(queue);
        Ok(())
    }

    /// The server takes the next packet from the queue at `start`.
    #[inline(never)]
    fn serve_next(&mut self, start: Instant) {
        let Some(deferred) = &mut self.deferred else { return };
        let packet = deferred.dequeue(start);
        self.report_dropped(start);
        if let Some(packet) = packet {
            self.serve_packet(start, packet);
        }
        // The packets that wait now came before `start`.
        self.foresee_service(Instant::from_nanos(start.as_nanos().saturating_sub(1)));
    }

    /// The server has taken a packet at `start`.
    fn serve_packet(&mut self, start: Instant, packet: Queued<T>) {
        let served = self.transmit(start, packet.meta.size);
        if let Some(handover) = self.deferred.as_mut().and_then(|it| it.handover.as_mut())
            && served.received > handover.next()
        {
            self.free_at = served.departure;
            handover.interrupt(packet);
            return;
        }
        self.report_service_start(start, &packet);
        self.finish(start, packet, served);
    }

    /// Decides the fate of a packet whose service started at `start`.
    fn finish(&mut self, start: Instant, packet: Queued<T>, served: Served) {
        let Queued { item, meta, arrived, marked } = packet;
        self.counters.ecn_marks += u64::from(marked);
        let mut fate = self.decide(arrived, start, &meta, served);
        if !self.delay.reorders() {
            // It comes out after its predecessors.
            fate.arrival = self.latest_arrival;
        }
        let passage = Passage { waited: start.since(arrived), marked };
        self.in_flight.push_with(Flight { fate, size: meta.size, item }, passage);
        let (at, size, lost) = (self.free_at, meta.size, fate.lost.is_some());
        self.note_service(start);
        self.report_departure(Departure { arrived, at, size, lost });
    }

    /// A handover begins at `now`: the source stops sending, and forwards or discards what it has.
    #[inline(never)]
    fn hand_over(&mut self, now: Instant) {
        let Some(deferred) = &mut self.deferred else { return };
        let Some(handover) = &mut deferred.handover else { return };
        let (cell, discarded) = handover.begin(|| deferred.queue.take());
        self.free_at = handover.until();
        for packet in discarded {
            self.counters.outage_drops += 1;
            self.report_lost(now, packet, DropReason::Handover);
        }
        if let Some(service) = &mut self.service {
            service.restart();
        }
        if let Some(rate) = cell.and_then(|cell| cell.rate) {
            self.change_rate(rate);
        }
        if let Some(delay) = cell.and_then(|cell| cell.delay) {
            self.delay = Delay::constant(delay);
        }
        self.foresee_service(now);
    }

    /// A forwarded packet comes to the target base station at `now`.
    #[inline(never)]
    fn receive_forwarded(&mut self, now: Instant) {
        let Some(handover) = self.deferred.as_mut().and_then(|it| it.handover.as_mut()) else {
            return;
        };
        let Some(Forwarded { held, packet, .. }) = handover.take_forwarded() else { return };
        if held {
            handover.send_first(packet);
            if self.queue_len() == 1 {
                self.foresee_service(now);
            }
            return;
        }
        let (arrived, meta) = (packet.arrived, packet.meta);
        if let Err(item) = self.enqueue_deferred(now, packet) {
            self.report_lost(now, Queued::new(arrived, item, meta), DropReason::Queue);
        }
    }

    /// Sets the time at which the server takes the next of the packets that have been waiting since
    /// `since`.
    fn foresee_service(&mut self, since: Instant) {
        let start = match self.queue_len() {
            0 => Instant::MAX,
            _ => self.service_start(since),
        };
        if let Some(deferred) = &mut self.deferred {
            deferred.next_start = start;
        }
    }

    /// Reports packets that the queue has dropped, at once.
    fn report_dropped(&mut self, now: Instant) {
        let Some(deferred) = &mut self.deferred else { return };
        if deferred.dropped.is_empty() {
            return;
        }
        let mut dropped = std::mem::take(&mut deferred.dropped);
        for packet in dropped.drain(..) {
            self.counters.queue_drops += 1;
            self.report_lost(now, packet, DropReason::Queue);
        }
        if let Some(deferred) = &mut self.deferred {
            deferred.dropped = dropped;
        }
    }

    /// Reports a packet that had been accepted and is not served.
    fn report_lost(&mut self, now: Instant, packet: Queued<T>, reason: DropReason) {
        let Queued { item, meta, arrived, .. } = packet;
        let fate = Fate { next_since: now, arrival: now, lost: Some(reason) };
        self.in_flight.push(Flight { fate, size: meta.size, item });
        self.report_departure(Departure { arrived, at: now, size: meta.size, lost: true });
    }

    /// The latest packet is in service from `start` on.
    fn note_service(&mut self, start: Instant) {
        let Some(deferred) = self.deferred.as_mut().filter(|it| it.steering.is_some()) else {
            return;
        };
        while deferred.in_service.front().is_some_and(|departure| *departure <= start) {
            deferred.in_service.pop_front();
        }
        deferred.in_service.push_back(self.free_at);
    }

    fn report_service_start(&mut self, start: Instant, packet: &Queued<T>) {
        if let Some(reports) = &mut self.reports {
            reports.service_start(start, &packet.item, packet.marked);
        }
    }

    fn report_departure(&mut self, departure: Departure) {
        if let Some(reports) = &mut self.reports {
            reports.departure(departure);
        }
    }

    fn steering(&self) -> Option<Steering> {
        self.deferred.as_ref()?.steering
    }

    /// True if a packet that arrives now, to be served from `start`, finds neither queued packets
    /// nor an outage.
    #[inline]
    fn is_idle(&self, now: Instant, start: Instant) -> bool {
        // A server with slots serves nothing at once, nor does a cell.
        let in_cell = self.deferred.as_ref().filter(|deferred| deferred.cell.is_some());
        if let Some(deferred) = in_cell {
            return deferred.queue.len() == 0 && !deferred.has_begun() && self.free_at <= now;
        }
        let is_slotted = || self.service.as_ref().is_some_and(Service::is_slotted);
        let awaits_slot = || is_slotted() && self.waiting.is_empty();
        start == now || (awaits_slot() && self.free_at <= now)
    }

    /// Start of service of a packet that arrives now: at once, or when the server is free and the
    /// link up.
    #[inline]
    fn service_start(&self, now: Instant) -> Instant {
        if self.deferred.as_ref().is_some_and(|deferred| deferred.cell.is_some()) {
            return Instant::MAX;
        }
        let now = match self.steering() {
            Some(steering) if steering.does(OutageMode::Hold) => return Instant::MAX,
            Some(steering) => now.max(steering.up_since),
            None => now,
        };
        let now = self.handover().map_or(now, |handover| now.max(handover.until()));
        if let Some(service) = self.service.as_ref().filter(|service| service.is_slotted()) {
            return start_in_slot(service, self.outage.as_deref(), now);
        }
        let earliest = self.free_at.max(now);
        match &self.outage {
            Some(outage) => start_beside(outage, earliest),
            None => earliest,
        }
    }

    /// Decides the packet's times and fate.
    #[inline(always)]
    fn serve(&mut self, offered: Instant, start: Instant, meta: &PacketMeta) -> Fate {
        let served = self.transmit(start, meta.size);
        self.decide(offered, start, meta, served)
    }

    /// The server takes a packet at `start`.
    #[inline(always)]
    fn transmit(&mut self, start: Instant, size: Bytes) -> Served {
        match &mut self.service {
            Some(service) => service.serve(start, size),
            None => Served::at(start + self.transmission_time(size)),
        }
    }

    /// Decides the times and fate of a packet that the server takes at `start`.
    #[inline(always)]
    fn decide(
        &mut self,
        offered: Instant,
        start: Instant,
        meta: &PacketMeta,
        Served { departure, received, lost: given_up }: Served,
    ) -> Fate {
        self.latest_wait = start.since(offered);
        // Behind an outage without end there is no service.
        if start < Instant::MAX {
            self.waits.record(self.latest_wait);
        }
        let mut arrival = received + self.delay.draw(departure);
        if let Some(slots) = &mut self.slots {
            arrival += slots.delay(departure);
        }
        let unlucky = self.loss_place == LossPlace::Medium && self.loses(departure, meta.data);
        let lost = if self.outage_takes(start, departure) {
            Some(DropReason::Outage)
        } else {
            (unlucky || given_up).then_some(DropReason::Loss)
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
        let before = self.latest_arrival;
        self.latest_arrival = before.max(arrival);
        match self.in_flight {
            // It comes out after its predecessors.
            InFlight::InOrder(_) => {
                let arrival = self.latest_arrival;
                // One that arrives with its predecessor is the next one as long as that is.
                if arrival > before || offered >= before {
                    self.latest_since = offered.max(before);
                }
                Fate { next_since: self.latest_since, arrival, lost }
            }
            InFlight::Overtaking(_) => Fate { next_since: offered, arrival, lost },
        }
    }

    /// Serialisation time of a packet of this size, on a link without trace.
    #[inline(always)]
    fn transmission_time(&mut self, size: Bytes) -> Duration {
        if self.transmission.0 != size {
            self.transmission = transmission(self.rate, size);
        }
        self.transmission.1
    }

    #[inline]
    fn loses(&mut self, now: Instant, data: bool) -> bool {
        let by_model = self.loss.as_mut().is_some_and(|loss| loss.loses(now, data));
        by_model | self.slots.as_mut().is_some_and(|slots| slots.loses(now))
    }

    #[inline]
    fn outage_takes(&self, start: Instant, departure: Instant) -> bool {
        self.steering().is_some_and(|steering| steering.does(OutageMode::Drop))
            || self.outage.as_ref().is_some_and(|outage| is_taken(outage, start, departure))
    }
}

// Most links have neither outages nor random delays nor RED: what serves these alone is kept out of
// line, so that the common path stays short.

/// Start of a service that could begin at `earliest`, given the link's outages.
#[inline(never)]
fn start_beside(outage: &OutageConfig, earliest: Instant) -> Instant {
    match outage.mode {
        OutageMode::Hold => outage.schedule.next_up(earliest).unwrap_or(Instant::MAX),
        OutageMode::Drop => earliest,
    }
}

/// Slots in a row that periodic outages may cover. If they cover more, the periods of slots and
/// outages fit each other, and they always will.
const MOST_COVERED: usize = 10_000;

/// The first slot for a packet that arrives now in which the link is up, or loses packets;
/// `Instant::MAX`: there is none.
#[inline(never)]
fn start_in_slot(service: &Service, outage: Option<&OutageConfig>, now: Instant) -> Instant {
    let mut start = service.start(now);
    let Some(outage) = outage else { return start };
    let most = match outage.schedule {
        Schedule::Periodic { .. } => MOST_COVERED,
        Schedule::Listed(_) => usize::MAX,
    };
    for _ in 0..most {
        let up = start_beside(outage, start);
        if up == start {
            return start;
        }
        start = service.start(up);
    }
    Instant::MAX
}

/// True if an outage takes a packet serialised from `start` to `departure`.
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
            Self::Overtaking(flights) => flights.push(flight, Passage::default()),
        }
    }

    /// The same, and keeps what was not known of the packet before: only if packets may overtake.
    fn push_with(&mut self, flight: Flight<T>, passage: Passage) {
        match self {
            Self::InOrder(queue) => queue.push_back(flight),
            Self::Overtaking(flights) => flights.push(flight, passage),
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
    fn pop_due(&mut self, now: Instant) -> Option<(Flight<T>, Passage)> {
        match self {
            Self::InOrder(queue) => {
                queue.front().filter(|flight| flight.fate.arrival <= now)?;
                Some((queue.pop_front()?, Passage::default()))
            }
            Self::Overtaking(flights) => flights.pop_due(now),
        }
    }

    /// Marks the packets pushed last, so many of them, as lost to an outage.
    fn lose_newest(&mut self, count: usize) {
        match self {
            Self::InOrder(queue) => {
                let newest = queue.iter_mut().rev().take(count);
                newest.for_each(|flight| flight.fate.lost = Some(DropReason::Outage));
            }
            Self::Overtaking(flights) => flights.lose_newest(count),
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
    fn push(&mut self, flight: Flight<T>, passage: Passage) {
        self.heap.push(Ranked { ordinal: self.accepted, flight, passage });
        self.accepted += 1;
    }

    #[inline(never)]
    fn next_arrival(&self) -> Option<Instant> {
        self.heap.peek().map(|ranked| ranked.flight.fate.arrival)
    }

    fn next_since(&self) -> Option<Instant> {
        self.heap.peek().map(|ranked| ranked.flight.fate.next_since)
    }

    fn lose_newest(&mut self, count: usize) {
        let mut flights = std::mem::take(&mut self.heap).into_vec();
        flights.sort_by_key(|ranked| ranked.ordinal);
        // Not those that never left the queue.
        let unserved = [Some(DropReason::Queue), Some(DropReason::Handover)];
        let left = |ranked: &&mut Ranked<T>| !unserved.contains(&ranked.flight.fate.lost);
        for newest in flights.iter_mut().rev().filter(left).take(count) {
            newest.flight.fate.lost = Some(DropReason::Outage);
        }
        self.heap = flights.into();
    }

    #[inline(never)]
    fn pop_due(&mut self, now: Instant) -> Option<(Flight<T>, Passage)> {
        let first = self.heap.peek_mut().filter(|ranked| ranked.flight.fate.arrival <= now)?;
        let Ranked { flight, passage, .. } = PeekMut::pop(first);
        Some((flight, passage))
    }
}

/// Orders the heap: earliest arrival on top, ties by order of acceptance.
#[derive(Clone, Debug)]
struct Ranked<T> {
    ordinal: u64,
    flight: Flight<T>,
    passage: Passage,
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
