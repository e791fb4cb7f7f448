//! Two endpoints and a path with a fixed delay between them, which loses the segments that a test
//! selects.

use airtcp_core::{Addr, Duration, Events, Flow, Instant, Length, Segment, SeqNum};
use airtcp_tcp::{Endpoint, Io, Strategies, TcpConfig, TcpState};
use std::collections::VecDeque;

/// The initial sequence number of both ends. Sequence numbers wrap soon after the start.
pub const ISN: SeqNum = SeqNum(u32::MAX - 10_000);
/// Upper bound on the steps of a test, against endless loops.
const MOST_STEPS: u32 = 1_000_000;

/// A segment that an endpoint sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Time of the transmission.
    pub at: Instant,
    /// Index of the sending end.
    pub from: usize,
    /// Offset from the end's first byte of data.
    pub offset: u32,
    /// Segment as it was sent.
    pub segment: Segment<Length>,
    /// True if the path lost it.
    pub lost: bool,
}

/// Decides whether the path loses a segment.
type Loses = Box<dyn FnMut(&Sent) -> bool>;

/// Two endpoints, 0 and 1, each with its bytes to send. Both read whatever arrives and close once
/// their own data is written and, for end 1, the peer has closed.
pub struct Network {
    /// Current simulated time.
    pub now: Instant,
    /// The two endpoints.
    pub ends: [Endpoint<Length>; 2],
    /// All segments sent so far.
    pub sent: Vec<Sent>,
    remaining: [u64; 2],
    delay: Duration,
    hops: u8,
    loses: Loses,
    travelling: VecDeque<(Instant, usize, Segment<Length>)>,
}

impl Network {
    /// A path of `hops` hops with a one-way delay of `delay`, and `bytes` to send from each end.
    /// The connection is not open yet.
    pub fn new(
        config: &TcpConfig,
        strategies: [Strategies; 2],
        delay: Duration,
        hops: u8,
        bytes: [u64; 2],
    ) -> Self {
        let addr = |n| Addr::new([10, 0, 0, n].into(), 1);
        let flow = Flow { src: addr(1), dst: addr(2) };
        let [a, b] = strategies;
        let end =
            |flow, strategies| Endpoint::with_strategies(config.clone(), flow, ISN, strategies);
        let mut network = Self {
            now: Instant::ZERO,
            ends: [end(flow, a), end(flow.reversed(), b)],
            sent: Vec::new(),
            remaining: bytes,
            delay,
            hops,
            loses: Box::new(|_| false),
            travelling: VecDeque::new(),
        };
        network.ends[1].listen();
        network.call(0, |end, now, io| end.connect(now, io));
        network
    }

    /// Sets the loss rule of the path from now on.
    pub fn lose(&mut self, loses: impl FnMut(&Sent) -> bool + 'static) {
        self.loses = Box::new(loses);
    }

    /// Calls an endpoint and puts what it sends on the path.
    pub fn call(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Endpoint<Length>, Instant, &mut Io<'_, Length>),
    ) {
        let mut out = Vec::new();
        act(&mut self.ends[index], self.now, &mut Io { out: &mut out, events: Events::none() });
        for segment in out {
            let offset = segment.seq.bytes_after(ISN + 1);
            let mut sent =
                Sent { at: self.now, from: index, offset, segment: segment.clone(), lost: false };
            sent.lost = (self.loses)(&sent);
            if !sent.lost {
                self.travelling.push_back((self.now + self.delay, 1 - index, segment));
            }
            self.sent.push(sent);
        }
    }

    /// Runs the application at `index`: reads, writes, closes.
    fn poll(&mut self, index: usize) {
        let remaining = self.remaining[index];
        let mut left = remaining;
        self.call(index, |end, now, io| {
            if end.readable() > 0 {
                end.read(now, usize::MAX, io);
            }
            if !matches!(end.state(), TcpState::Established | TcpState::CloseWait) {
                return;
            }
            if left > 0 {
                left -= end.write(now, &Length(left), io) as u64;
            }
            if left == 0 && (index == 0 || end.is_eof()) {
                end.close(now, io);
            }
        });
        self.remaining[index] = left;
    }

    /// Runs until `until`, or until nothing is left to happen.
    pub fn run_until(&mut self, until: Instant) {
        for _ in 0..MOST_STEPS {
            let arrival = self.travelling.front().map(|(at, ..)| *at);
            let timers = [0, 1].map(|i| self.ends[i].next_deadline());
            let next = timers.into_iter().flatten().chain(arrival).min();
            let Some(next) = next.filter(|at| *at <= until) else {
                self.now = self.now.max(until);
                return;
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, to, segment) = self.travelling.pop_front().expect("something arrives");
                let hops = Some(self.hops);
                self.call(to, |end, now, io| end.on_segment_over(now, &segment, hops, io));
                self.poll(to);
                self.call(to, |end, now, io| end.reply(now, io));
            } else {
                for index in 0..2 {
                    self.call(index, |end, now, io| end.on_timer(now, io));
                    self.poll(index);
                }
            }
        }
        panic!("no end: {:?}", self.ends);
    }

    /// Runs until both ends have closed, which they must within an hour.
    pub fn run(&mut self) {
        self.run_until(Instant::from_secs(3600));
        assert_eq!(self.ends.each_ref().map(Endpoint::aborted), [None, None]);
        assert_eq!(self.ends.each_ref().map(Endpoint::state), [TcpState::Closed, TcpState::Closed]);
    }

    /// The data segments that an end sent for the first time or again.
    pub fn data(&self, from: usize) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |s| s.from == from && s.segment.payload.0 > 0)
    }

    /// The segments without data that an end sent after the handshake.
    pub fn pure_acks(&self, from: usize) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |s| {
            s.from == from && s.segment.payload.0 == 0 && s.segment.flags.is_empty()
        })
    }
}
