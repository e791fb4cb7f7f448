//! A node, a link with a queue, and a mobile that has nothing of what was under way.

use airtcp_core::rng::Stream;
use airtcp_core::{
    Addr, Bytes, DataRate, Duration, Flow, Instant, Length, LinkSignal, Options, SackBlock,
    Segment, SeqNum,
};
use airtcp_edge::{
    Action, Actions, FlowTableConfig, HoldoverConfig, MTcpPlusConfig, Mechanism, MechanismConfig,
    Middlebox, MobileId, Side,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

type Seg = Segment<Length>;

/// The sequence space wraps early in the transfer.
const ISN: SeqNum = SeqNum(u32::MAX - 5000);
/// Segment size of the link, as a gateway cuts for it.
const MSS: u32 = 1448;
/// More than is ever held.
const MEMORY: Bytes = Bytes(1 << 30);
/// Losses end here: then all must arrive soon.
const HOSTILE: Duration = Duration::from_secs(20);
/// Much sooner than a replay can be answered.
const SOON: Duration = Duration::from_millis(5);
/// Longer than any back-off.
const END: Duration = Duration::from_secs(200);

/// The link to the mobile; acknowledgements come back unhindered.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) rate: DataRate,
    /// One-way delay.
    pub(crate) delay: Duration,
    /// Bytes that wait at most.
    pub(crate) queue: u64,
    /// Added uniformly to each delay: reorders.
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    /// Of the segments sent, these are lost.
    pub(crate) first_lost: Range<u64>,
    /// The mobile has this from before the outage, and says so [`SOON`] after the link's return.
    pub(crate) arrived: Range<u32>,
    /// The mobile reports what it holds beyond gaps.
    pub(crate) sack: bool,
    pub(crate) seed: u64,
}

/// 100 Mbit/s, 50 ms one way, and a queue for as much as is on the way then.
pub(crate) const FAST: Path = Path {
    rate: DataRate::mbps(100),
    delay: Duration::from_millis(50),
    queue: 1_250_000,
    jitter: Duration::ZERO,
    loss: 0.0,
    first_lost: 0..0,
    arrived: 0..0,
    sack: true,
    seed: 1,
};

/// M-TCP+ and holdover.
pub(crate) fn nodes() -> [Mechanism<Length>; 2] {
    let m_tcp_plus = MTcpPlusConfig { fifo: MEMORY, ..MTcpPlusConfig::default() };
    let holdover = HoldoverConfig { fifo: MEMORY, ..HoldoverConfig::default() };
    [MechanismConfig::MTcpPlus(m_tcp_plus), MechanismConfig::Holdover(holdover)]
        .map(|config| Mechanism::new(&config, FlowTableConfig::default(), MEMORY).unwrap())
}

/// Outcome of a replay.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The mobile has everything.
    pub(crate) is_whole: bool,
    /// Time to completion, after the link's return.
    pub(crate) time: Duration,
    /// Payload bytes sent to it, again and again, and how many of them were lost.
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// Most payload bytes that one event sent, and that one acknowledged.
    pub(crate) burst: u64,
    pub(crate) acknowledged_at_once: u64,
}

/// The receiver: what it has beyond `next`, in order.
#[derive(Default)]
struct Mobile {
    next: u32,
    held: Vec<Range<u32>>,
}

impl Mobile {
    /// Returns the SACK blocks: a duplicate (RFC 2883), then the newest first.
    fn take(&mut self, new: Range<u32>) -> Vec<Range<u32>> {
        let holds = |old: &Range<u32>| old.start <= new.start && new.end <= old.end;
        if new.end <= self.next || self.held.iter().any(holds) {
            return std::iter::once(new).chain(self.held.clone()).collect();
        }
        let mut new = new.start.max(self.next)..new.end;
        self.held.retain(|old| {
            let is_apart = old.end < new.start || new.end < old.start;
            if !is_apart {
                new = old.start.min(new.start)..old.end.max(new.end);
            }
            is_apart
        });
        self.held.insert(0, new);
        if let Some(place) = self.held.iter().position(|range| range.start <= self.next) {
            self.next = self.held.remove(place).end;
        }
        self.held.clone()
    }
}

enum Arrival {
    Mobile(Range<u32>),
    Node(Seg),
}

struct World<'a> {
    path: &'a Path,
    now: Instant,
    queue: BTreeMap<(Instant, u64), Arrival>,
    inserted: u64,
    /// Time at which the link is free.
    free: Instant,
    random: Stream,
    segments: u64,
    outcome: Outcome,
}

fn flow() -> Flow {
    let addr = |n| Addr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)), 80);
    Flow { src: addr(1), dst: addr(2) }
}

fn data(range: Range<u32>) -> Seg {
    Segment {
        flow: flow(),
        seq: ISN + range.start,
        ack: Some(SeqNum(1)),
        window: 500,
        payload: Length(u64::from(range.end - range.start)),
        ..Segment::default()
    }
}

fn ack(next: u32, blocks: &[Range<u32>]) -> Seg {
    let block = |range: &Range<u32>| SackBlock { left: ISN + range.start, right: ISN + range.end };
    let options =
        Options { sack: blocks.iter().take(3).map(block).collect(), ..Options::default() };
    Segment {
        flow: flow().reversed(),
        seq: SeqNum(1),
        ack: Some(ISN + next),
        window: 60_000,
        options,
        ..Segment::default()
    }
}

/// So many bytes were sent into an outage, in pieces of this size at most; then the link is back.
pub(crate) fn replay<M: Middlebox<Length>>(
    path: &Path,
    mut node: M,
    bytes: u32,
    copy: u32,
) -> Outcome {
    let mut out = Actions::new();
    let start = Instant::ZERO;
    node.on_segment(start, Side::Mobile, ack(0, &[]), &mut out);
    for from in (0..bytes).step_by(copy as usize) {
        node.on_segment(start, Side::Fixed, data(from..(from + copy).min(bytes)), &mut out);
    }
    let mobile = MobileId::Host(flow().dst.ip);
    node.on_link(start, mobile, LinkSignal::Down, &mut out);
    out = Actions::new();
    node.on_link(start, mobile, LinkSignal::Up, &mut out);
    let (time, free) = (Duration::ZERO, start);
    let outcome =
        Outcome { is_whole: false, time, sent: 0, lost: 0, burst: 0, acknowledged_at_once: 0 };
    let mut world = World {
        path,
        now: start,
        queue: BTreeMap::new(),
        inserted: 0,
        free,
        random: Stream::new(path.seed, "path"),
        segments: 0,
        outcome,
    };
    world.run(&mut node, out, bytes);
    world.outcome
}

impl World<'_> {
    fn run<M: Middlebox<Length>>(&mut self, node: &mut M, mut out: Actions<Length>, bytes: u32) {
        let mut mobile = Mobile::default();
        if !self.path.arrived.is_empty() {
            let blocks = mobile.take(self.path.arrived.clone());
            self.schedule(self.now + SOON, Arrival::Node(ack(mobile.next, &blocks)));
        }
        loop {
            self.carry_out(&mut out);
            let timer = node.next_deadline();
            let queued = self.queue.first_key_value().map(|(&(at, _), _)| at);
            let Some(at) = timer.into_iter().chain(queued).min() else { return };
            if at.since_start() > END {
                return;
            }
            self.now = at;
            if queued != Some(at) {
                node.on_timer(at, &mut out);
                continue;
            }
            match self.queue.pop_first().expect("one is due").1 {
                Arrival::Node(segment) => node.on_segment(at, Side::Mobile, segment, &mut out),
                Arrival::Mobile(range) => {
                    let before = mobile.next;
                    let blocks = mobile.take(range);
                    let news = u64::from(mobile.next - before);
                    self.outcome.acknowledged_at_once = self.outcome.acknowledged_at_once.max(news);
                    if mobile.next == bytes && !self.outcome.is_whole {
                        self.outcome.is_whole = true;
                        self.outcome.time = at.since_start();
                    }
                    let blocks = if self.path.sack { blocks } else { Vec::new() };
                    let ack = ack(mobile.next, &blocks);
                    self.schedule(at + self.path.delay, Arrival::Node(ack));
                }
            }
        }
    }

    fn schedule(&mut self, at: Instant, arrival: Arrival) {
        self.inserted += 1;
        self.queue.insert((at, self.inserted), arrival);
    }

    fn carry_out(&mut self, out: &mut Actions<Length>) {
        let mut burst = 0;
        let actions: Vec<_> = out.drain().collect();
        for action in actions {
            if let Action::Inject { to: Side::Mobile, segment } = action {
                burst += segment.payload.0;
                let first = segment.seq.bytes_after(ISN);
                let end = first + segment.payload.0 as u32;
                for from in (first..end).step_by(MSS as usize) {
                    self.transmit(from..(from + MSS).min(end));
                }
            }
        }
        self.outcome.burst = self.outcome.burst.max(burst);
    }

    fn transmit(&mut self, range: Range<u32>) {
        let path = self.path;
        let len = u64::from(range.end - range.start);
        self.outcome.sent += len;
        self.segments += 1;
        let start = self.free.max(self.now);
        let waiting = self.path.rate.transmission_time(Bytes(path.queue));
        let is_hostile = self.now.since_start() < HOSTILE;
        if start.since(self.now) > waiting
            || path.first_lost.contains(&(self.segments - 1))
            || is_hostile && self.random.chance(path.loss)
        {
            self.outcome.lost += len;
            return;
        }
        self.free = start + path.rate.transmission_time(Bytes(len + 52));
        let jitter = if is_hostile { path.jitter } else { Duration::ZERO };
        let extra = self.random.duration(Duration::ZERO, jitter);
        self.schedule(self.free + path.delay + extra, Arrival::Mobile(range));
    }
}
