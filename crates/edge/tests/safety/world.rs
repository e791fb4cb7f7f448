//! A fixed host, the node with its mechanism, a mobile, and the two paths between them.

use crate::case::{App, Case, Forgery, HOSTILE_UNTIL, Number};
use crate::observer::{Observer, Violation, ensure, index, pattern};
use crate::subjects::Promise;
use airtcp_core::rng::Stream;
use airtcp_core::{Addr, Duration, Events, Flow, Instant, LinkSignal, Segment, SeqNum, Timestamps};
use airtcp_edge::{Action, Actions, Middlebox, MobileId, Side};
use airtcp_tcp::{Endpoint, Io, TcpState};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

type Seg = Segment<Vec<u8>>;

/// Far above what any case needs: a livelock.
const MOST_EVENTS: usize = 200_000;
/// Interval at which an application tries again when nothing could be written.
const RETRY_WRITE: Duration = Duration::from_millis(100);

/// A transfer that nobody gives up ends within this after [`HOSTILE_UNTIL`]. A plain sender may
/// have backed off to its longest interval (60 s) just before, and its peer's stream may wait for
/// the end of that; the rest is room for the transfer itself, with applications that read and write
/// slowly.
pub(crate) const BOUND: Duration = Duration::from_secs(180);

const SIDES: [Side; 2] = [Side::Fixed, Side::Mobile];

fn addr(n: u8) -> Addr {
    Addr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)), 1000)
}

/// From the fixed to the mobile host.
pub(crate) fn flow() -> Flow {
    Flow { src: addr(1), dst: addr(2) }
}

#[derive(Debug)]
enum Arrival {
    Node(Side, Seg),
    End(usize, Seg),
    Write(usize),
    Read(usize),
    Signal(LinkSignal),
    MobileSignal(LinkSignal),
    Crash,
    Forged(Forgery),
}

/// An application's progress.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    written: u32,
    read: u32,
    closed: bool,
    /// A read is scheduled.
    reading: bool,
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Everything that left an end or the node, with its time: `0 > ` from the fixed host, and so
    /// on.
    pub(crate) trace: Vec<String>,
    /// Segments that the mechanism made, to the fixed and to the mobile host.
    pub(crate) injected: [u64; 2],
    /// Both streams arrived whole.
    pub(crate) is_whole: bool,
    /// Time at which the last byte that arrived was read.
    pub(crate) last_read: Instant,
}

/// A run in progress.
pub(crate) struct World<'a, M> {
    case: &'a Case,
    ends: [Endpoint<Vec<u8>>; 2],
    node: M,
    /// As the node was at the start.
    fresh: M,
    observer: Observer,
    progress: [Progress; 2],
    now: Instant,
    queue: BTreeMap<(Instant, u64), Arrival>,
    inserted: u64,
    /// One for each path and direction, so that what one loses does not change another.
    random: [[Stream; 2]; 2],
    trace: Vec<String>,
    last_read: Instant,
    /// The node crashed and took with it what it had acknowledged. Then the transfer never ends, or
    /// by an abort; but it does not look as if it had ended well.
    lost_custody: bool,
}

/// Runs `case` with `node` until nothing is left to happen.
pub(crate) fn run<M: Middlebox<Vec<u8>> + Clone>(
    case: &Case,
    node: M,
    promise: Promise,
) -> Result<Outcome, Violation> {
    let mut world = World::new(case, node, promise);
    world.run().and_then(|()| world.judge()).map_err(|violation| {
        let recent = world.trace.len().saturating_sub(60);
        format!("at {}: {violation}\nlast:\n{}", world.now, world.trace[recent..].join("\n"))
    })?;
    Ok(Outcome {
        is_whole: world.is_whole(),
        injected: world.observer.injected,
        last_read: world.last_read,
        trace: world.trace,
    })
}

impl<'a, M: Middlebox<Vec<u8>> + Clone> World<'a, M> {
    fn new(case: &'a Case, node: M, promise: Promise) -> Self {
        let end =
            |i: usize, flow| Endpoint::new(case.configs[i].clone(), flow, SeqNum(case.isns[i]));
        let streams =
            |path: &str| [0, 1].map(|from| Stream::new(case.seed, &format!("{path}/from-{from}")));
        Self {
            case,
            ends: [end(0, flow()), end(1, flow().reversed())],
            fresh: node.clone(),
            node,
            observer: Observer::new(promise, flow(), case.isns),
            progress: [Progress::default(); 2],
            now: Instant::ZERO,
            queue: BTreeMap::new(),
            inserted: 0,
            random: ["wired", "wireless"].map(streams),
            trace: Vec::new(),
            last_read: Instant::ZERO,
            lost_custody: false,
        }
    }

    fn schedule(&mut self, at: Instant, arrival: Arrival) {
        self.inserted += 1;
        self.queue.insert((at, self.inserted), arrival);
    }

    fn call<T>(
        &mut self,
        i: usize,
        act: impl FnOnce(&mut Endpoint<Vec<u8>>, Instant, &mut Io<'_, Vec<u8>>) -> T,
    ) -> T {
        let mut out = Vec::new();
        let mut io = Io { out: &mut out, events: Events::none() };
        let result = act(&mut self.ends[i], self.now, &mut io);
        for segment in out {
            self.trace.push(format!("{} {} {segment}", self.now, ["F->", "M->"][i]));
            let side = SIDES[i];
            self.transmit(i, i, || Arrival::Node(side, segment.clone()));
        }
        result
    }

    /// Over `path` (0: wired, 1: wireless), in the direction of what `from` sends.
    fn transmit(&mut self, path: usize, from: usize, arrival: impl Fn() -> Arrival) {
        let network = &self.case.paths[path];
        let hostile = self.now < HOSTILE_UNTIL;
        let random = &mut self.random[path][from];
        let mut copies = 1;
        if hostile {
            let down = |&(from, to): &(Instant, Instant)| from <= self.now && self.now < to;
            let out = path == 1 && self.case.outages.iter().any(down);
            if random.chance(network.loss) || out {
                return;
            }
            copies += usize::from(random.chance(network.duplication));
        }
        for _ in 0..copies {
            let jitter = if hostile { network.jitter } else { Duration::ZERO };
            let extra = self.random[path][from].duration(Duration::ZERO, jitter);
            self.schedule(self.now + network.delay + extra, arrival());
        }
    }

    /// The node at work, under the eyes of the observer.
    fn node(
        &mut self,
        input: Option<(Side, Seg)>,
        act: impl FnOnce(&mut M, Instant, &mut Actions<Vec<u8>>),
    ) -> Result<(), Violation> {
        if let Some((side, segment)) = &input {
            self.observer.on_input(*side, segment);
        }
        let (told, acked) = (self.observer.told, self.observer.hosts[1].acked);
        let mut out = Actions::new();
        act(&mut self.node, self.now, &mut out);
        for action in out.as_slice() {
            match action {
                Action::Forward { .. } => {}
                Action::Drop { segment, .. } => {
                    self.trace.push(format!("{} dropped {segment}", self.now));
                }
                Action::Inject { to, segment } => {
                    let arrow = ["<-N", "N->"][index(*to)];
                    self.trace.push(format!("{} {arrow} {segment}", self.now));
                }
            }
        }
        let judged = input.as_ref().map(|(side, segment)| (*side, segment));
        self.observer.on_output(judged, out.as_slice())?;
        let more_custody = self.observer.told > told;
        if self.observer.custody() > 0 && (more_custody || self.observer.hosts[1].acked > acked) {
            can_deliver_custody(&self.node, &self.observer, self.now)?;
        }
        self.carry(out);
        Ok(())
    }

    /// Puts what the node sends on its way.
    fn carry(&mut self, mut out: Actions<Vec<u8>>) {
        for action in out.drain() {
            if let Action::Forward { to, segment } | Action::Inject { to, segment } = action {
                let to = index(to);
                self.transmit(to, 1 - to, || Arrival::End(to, segment.clone()));
            }
        }
    }

    fn on_segment(&mut self, i: usize, segment: Seg) -> Result<(), Violation> {
        self.call(i, |end, now, io| end.on_segment(now, segment, io));
        match self.case.apps[i].slow_read {
            None => self.read(i, usize::MAX)?,
            Some((_, every)) => self.schedule_read(i, every),
        }
        self.call(i, |end, now, io| end.reply(now, io));
        Ok(())
    }

    fn schedule_read(&mut self, i: usize, every: Duration) {
        let eof = self.ends[i].is_eof() && !self.progress[i].closed && !self.is_over();
        let waiting = self.ends[i].readable() > 0 || eof;
        if waiting && !self.progress[i].reading {
            self.progress[i].reading = true;
            self.schedule(self.now + every, Arrival::Read(i));
        }
    }

    fn read(&mut self, i: usize, max: usize) -> Result<(), Violation> {
        let data = self.call(i, |end, now, io| end.read(now, max, io));
        for (n, byte) in (self.progress[i].read..).zip(&data) {
            ensure!(*byte == pattern(1 - i, n), "host {i} read a wrong byte {n}");
        }
        if !data.is_empty() {
            self.last_read = self.now;
        }
        self.progress[i].read += data.len() as u32;
        ensure!(
            self.progress[i].read <= self.progress[1 - i].written,
            "host {i} read bytes from nowhere"
        );
        self.close_if_done(i);
        Ok(())
    }

    fn close_if_done(&mut self, i: usize) {
        let App { bytes, closes_first, .. } = self.case.apps[i];
        let Progress { written, closed, .. } = self.progress[i];
        // Closing before the handshake would delete the connection (RFC 9293 §3.10.4).
        let opening = matches!(self.ends[i].state(), TcpState::Listen | TcpState::SynSent);
        if written == bytes && !opening && !closed && (closes_first || self.ends[i].is_eof()) {
            self.progress[i].closed = true;
            self.call(i, |end, now, io| end.close(now, io));
        }
    }

    fn write(&mut self, i: usize) {
        let App { bytes, piece, write_every, .. } = self.case.apps[i];
        let from = self.progress[i].written;
        let len = piece.min(bytes - from).min(self.ends[i].send_space() as u32);
        let data: Vec<u8> = (from..from + len).map(|n| pattern(i, n)).collect();
        self.progress[i].written += len;
        self.call(i, |end, now, io| end.write(now, &data, io));
        self.close_if_done(i);
        let opening = matches!(self.ends[i].state(), TcpState::Listen | TcpState::SynSent);
        if (self.progress[i].written < bytes || opening) && !self.is_over() {
            let pause = if len == 0 { write_every.max(RETRY_WRITE) } else { write_every };
            self.schedule(self.now + pause, Arrival::Write(i));
        }
    }

    fn is_over(&self) -> bool {
        self.ends.iter().any(|end| end.aborted().is_some())
    }

    fn run(&mut self) -> Result<(), Violation> {
        self.ends[1].listen();
        self.call(0, |end, now, io| end.connect(now, io));
        self.schedule(Instant::from_millis(1), Arrival::Write(0));
        self.schedule(Instant::from_millis(300), Arrival::Write(1));
        for &(at, signal) in &self.case.signals {
            self.schedule(at, Arrival::Signal(signal));
        }
        for &(at, signal) in &self.case.mobile_signals {
            self.schedule(at, Arrival::MobileSignal(signal));
        }
        if let Some(at) = self.case.crash {
            self.schedule(at, Arrival::Crash);
        }
        for &(at, forgery) in &self.case.forgeries {
            self.schedule(at, Arrival::Forged(forgery));
        }
        for _ in 0..MOST_EVENTS {
            let timers = [
                self.ends[0].next_deadline(),
                self.ends[1].next_deadline(),
                self.node.next_deadline(),
            ];
            let next = timers.into_iter().zip(0..).filter_map(|(d, i)| Some((d?, i))).min();
            let queued = self.queue.first_key_value().map(|(&(at, _), _)| at);
            let Some(at) = [next.map(|(at, _)| at), queued].into_iter().flatten().min() else {
                return Ok(());
            };
            self.now = self.now.max(at);
            if self.now > HOSTILE_UNTIL + BOUND && !self.is_over() {
                if self.lost_custody {
                    return Ok(());
                }
                ensure!(self.is_whole(), "not done {BOUND} after the last disturbance");
            }
            match next {
                Some((at, i)) if queued.is_none_or(|queued| at < queued) => match i {
                    0 | 1 => self.call(i, |end, now, io| end.on_timer(now, io)),
                    _ => self.node(None, |node, now, out| node.on_timer(now, out))?,
                },
                _ => {
                    if let Some((_, arrival)) = self.queue.pop_first() {
                        self.arrive(arrival)?;
                    }
                }
            }
        }
        Err(format!("livelock: {:?}", self.ends.each_ref().map(Endpoint::state)))
    }

    fn arrive(&mut self, arrival: Arrival) -> Result<(), Violation> {
        match arrival {
            Arrival::Node(side, segment) => {
                let input = Some((side, segment.clone()));
                self.node(input, |node, now, out| node.on_segment(now, side, segment, out))
            }
            Arrival::End(i, segment) => self.on_segment(i, segment),
            Arrival::Write(i) => {
                self.write(i);
                Ok(())
            }
            Arrival::Read(i) => {
                self.progress[i].reading = false;
                let (most, every) = self.case.apps[i].slow_read.unwrap_or_default();
                self.read(i, most as usize)?;
                self.schedule_read(i, every);
                Ok(())
            }
            Arrival::Signal(signal) => {
                self.trace.push(format!("{} {signal:?}", self.now));
                let mobile = MobileId::Host(flow().dst.ip);
                self.node(None, |node, now, out| node.on_link(now, mobile, signal, out))
            }
            Arrival::MobileSignal(signal) => {
                self.call(1, |end, now, io| end.on_link(now, signal, io));
                Ok(())
            }
            Arrival::Crash => {
                self.trace.push(format!("{} crash", self.now));
                self.lost_custody |= self.observer.custody() > 0;
                self.node = self.fresh.clone();
                self.observer.crash();
                Ok(())
            }
            Arrival::Forged(forgery) => self.forge(forgery),
        }
    }

    /// A forged segment reaches the node, once both hosts defend themselves against such (RFC
    /// 5961).
    fn forge(&mut self, forgery: Forgery) -> Result<(), Violation> {
        if self.ends.iter().any(|end| end.state() != TcpState::Established) {
            return Ok(());
        }
        let (side, segment) = (SIDES[forgery.from], self.forged(forgery));
        self.trace.push(format!("{} forged from {side:?}: {segment}", self.now));
        self.observer.on_forgery(side, &segment);
        let mut out = Actions::new();
        self.node.on_segment(self.now, side, segment.clone(), &mut out);
        self.observer.on_output_of_forgery((side, &segment), out.as_slice())?;
        // Once it has given up, it has said so to both hosts.
        if self.observer.custody() > 0 && !self.observer.is_reset {
            can_deliver_custody(&self.node, &self.observer, self.now)?;
        }
        self.carry(out);
        Ok(())
    }

    fn forged(&self, forgery: Forgery) -> Seg {
        let Forgery { from, seq, ack, flags, len } = forgery;
        let isns = self.observer.isns();
        let number = |of: usize, number: Number| match number {
            Number::Far(distance) => isns[of] + self.observer.hosts[1 - of].acked + distance,
            Number::Beyond(distance) => isns[of] + self.case.apps[of].bytes + 2 + distance,
            Number::Next => isns[of] + self.observer.hosts[1 - of].acked,
        };
        Segment {
            flow: if from == 0 { flow() } else { flow().reversed() },
            seq: number(from, seq),
            ack: ack.map(|ack| number(1 - from, ack)),
            flags,
            window: 1_000,
            payload: vec![b'!'; len],
            ..Segment::default()
        }
    }

    fn is_whole(&self) -> bool {
        (0..2).all(|i| self.progress[i].read == self.case.apps[1 - i].bytes)
    }

    /// Of a run in which nothing is left to happen.
    fn judge(&self) -> Result<(), Violation> {
        let aborted = self.ends.each_ref().map(Endpoint::aborted);
        let states = self.ends.each_ref().map(Endpoint::state);
        let read = self.progress.map(|p| p.read);
        for i in 0..2 {
            // Its FIN was acknowledged: whatever else happened, its data must be there.
            if self.progress[i].closed && states[i] == TcpState::Closed && aborted[i].is_none() {
                let whole = read[1 - i] == self.case.apps[i].bytes;
                let reader_gave_up = aborted[1 - i].is_some() && self.ends[1 - i].readable() > 0;
                ensure!(whole || reader_gave_up, "host {i} closed in order, and {read:?} arrived");
            }
        }
        if self.is_whole() || self.lost_custody {
            return Ok(());
        }
        ensure!(
            aborted != [None; 2] && (!self.case.is_patient() || self.observer.is_reset),
            "stalled: read {read:?}, aborted {aborted:?}, {states:?}"
        );
        Ok(())
    }
}

/// If the wired path went away now and the mobile came back, the node would still deliver what it
/// has acknowledged: to a mobile with all the buffer in the world, over a perfect link.
fn can_deliver_custody<M: Middlebox<Vec<u8>> + Clone>(
    node: &M,
    observer: &Observer,
    now: Instant,
) -> Result<(), Violation> {
    let mut node = node.clone();
    let mut observer = observer.clone();
    let mut now = now;
    let mut out = Actions::new();
    let mut received = Replayed::new(&observer);
    node.on_link(now, MobileId::Host(flow().dst.ip), LinkSignal::Up, &mut out);
    for _ in 0..1_000 {
        if received.next >= observer.told {
            return Ok(());
        }
        let actions: Vec<Action<Vec<u8>>> = out.drain().collect();
        observer.on_output(None, &actions)?;
        let to_mobile = actions.into_iter().filter_map(|action| match action {
            Action::Forward { to: Side::Mobile, segment }
            | Action::Inject { to: Side::Mobile, segment } => Some(segment),
            _ => None,
        });
        let acks: Vec<Seg> = to_mobile.filter_map(|segment| received.take(&segment)).collect();
        for ack in acks {
            observer.on_input(Side::Mobile, &ack);
            let mut reply = Actions::new();
            node.on_segment(now, Side::Mobile, ack.clone(), &mut reply);
            observer.on_output(Some((Side::Mobile, &ack)), reply.as_slice())?;
            reply.drain().for_each(|action| match action {
                Action::Forward { to, segment } => out.forward(to, segment),
                Action::Drop { .. } => {}
                Action::Inject { to, segment } => out.inject(to, segment),
            });
        }
        if out.as_slice().iter().all(|a| !is_to_mobile(a)) {
            let Some(deadline) = node.next_deadline() else { break };
            now = now.max(deadline);
            node.on_timer(now, &mut out);
        }
    }
    Err(format!(
        "cannot deliver what it acknowledged: the mobile has {}, the fixed host was told {}",
        received.next, observer.told
    ))
}

fn is_to_mobile(action: &Action<Vec<u8>>) -> bool {
    matches!(
        action,
        Action::Forward { to: Side::Mobile, .. } | Action::Inject { to: Side::Mobile, .. }
    )
}

/// A mobile that has received nothing beyond what it has acknowledged.
struct Replayed {
    isns: [SeqNum; 2],
    /// Position it expects.
    next: u32,
    /// Positions held beyond.
    held: Vec<bool>,
    seq: u32,
    window: u16,
    timestamp: Option<u32>,
    /// TS.Recent.
    recent: Option<u32>,
}

impl Replayed {
    fn new(observer: &Observer) -> Self {
        let [_, mobile] = &observer.hosts;
        Self {
            isns: observer.isns(),
            next: mobile.acked,
            held: Vec::new(),
            seq: mobile.end,
            window: mobile.window,
            timestamp: mobile.timestamp,
            recent: observer.shown_to_mobile,
        }
    }

    /// Takes a segment in and acknowledges it.
    fn take(&mut self, segment: &Seg) -> Option<Seg> {
        let ts = segment.options.timestamps.map(|t| t.value);
        let is_old = match (ts, self.recent) {
            (Some(ts), Some(recent)) => SeqNum(ts).before(SeqNum(recent)),
            _ => false,
        };
        let from = segment.seq.bytes_after(self.isns[0]);
        let to = segment.seq_end().bytes_after(self.isns[0]);
        if !is_old {
            if from <= self.next {
                self.recent = ts; // RFC 7323 §4.3
            }
            self.held.resize(self.held.len().max(to as usize), false);
            self.held[from as usize..to as usize].fill(true);
            while self.held.get(self.next as usize) == Some(&true) {
                self.next += 1;
            }
        }
        let echo = self.recent.or(ts).unwrap_or(0);
        let timestamps = self.timestamp.map(|value| Timestamps { value, echo });
        let mut ack = Segment {
            flow: flow().reversed(),
            seq: self.isns[1] + self.seq,
            ack: Some(self.isns[0] + self.next),
            window: self.window,
            ..Segment::default()
        };
        ack.options.timestamps = timestamps;
        (segment.seq_len() > 0).then_some(ack)
    }
}
