//! Two endpoints, a node between them, an outage.

use airtcp_core::{
    Addr, Bytes, DataRate, Duration, Events, Flow, Instant, Length, LinkSignal, Segment, SeqNum,
};
use airtcp_edge::{Action, Actions, Middlebox, MobileId, Side};
use airtcp_tcp::config::TcpConfig;
use airtcp_tcp::{Endpoint, Io};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

type Seg = Segment<Length>;

const WIRED: Duration = Duration::from_millis(20);
const WIRELESS: Duration = Duration::from_millis(10);
const RATE: DataRate = DataRate::mbps(8);
/// What waits for the wireless link at most.
const QUEUE: Bytes = Bytes(60_000);
/// The outage begins here: long after slow start.
const OUTAGE: Instant = Instant::from_secs(5);
/// Time to resume in, longer than any back-off.
const REST: Duration = Duration::from_secs(120);

/// State of the sender after the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// From the end of the outage to the first new byte at the mobile; `None` if none came.
    pub(crate) dead_time: Option<Duration>,
    /// The fixed host gave up.
    pub(crate) is_aborted: bool,
    /// cwnd before the outage, and when four windows more than what was under way were
    /// acknowledged.
    pub(crate) cwnd: (u32, u32),
    pub(crate) timeouts: u64,
    /// Times that a loss made cwnd smaller, undone or not.
    pub(crate) reductions: u64,
    pub(crate) retransmitted: u64,
    pub(crate) spurious_detected: u64,
    /// Segments that found no room in front of the wireless link after the outage.
    pub(crate) overflows: u64,
}

enum Arrival {
    Node(Side, Seg),
    End(usize, Seg),
    Signal(LinkSignal),
}

struct World<M> {
    /// The fixed and the mobile host.
    ends: [Endpoint<Length>; 2],
    node: M,
    now: Instant,
    queue: BTreeMap<(Instant, u64), Arrival>,
    inserted: u64,
    outage: (Instant, Instant),
    /// Times at which the wireless link is free, towards the mobile and back.
    free: [Instant; 2],
    overflows: u64,
}

/// A transfer with an outage of so many seconds, of which the node is told `warning` ahead.
pub(crate) fn transfer<M: Middlebox<Length>>(
    config: &TcpConfig,
    node: M,
    seconds: u64,
    warning: Duration,
) -> Outcome {
    let addr = |n| Addr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)), 80);
    let flow = Flow { src: addr(1), dst: addr(2) };
    let up = OUTAGE + Duration::from_secs(seconds);
    let end = |flow| Endpoint::new(config.clone(), flow, SeqNum(u32::MAX - 100_000));
    let mut world = World {
        ends: [end(flow), end(flow.reversed())],
        node,
        now: Instant::ZERO,
        queue: BTreeMap::new(),
        inserted: 0,
        outage: (OUTAGE, up),
        free: [Instant::ZERO; 2],
        overflows: 0,
    };
    let first = if warning.is_zero() { LinkSignal::Down } else { LinkSignal::Fading };
    world.schedule(OUTAGE - warning, Arrival::Signal(first));
    world.schedule(OUTAGE, Arrival::Signal(LinkSignal::Down));
    world.schedule(up, Arrival::Signal(LinkSignal::Up));
    world.ends[1].listen();
    world.call(0, |end, now, io| end.connect(now, io));
    world.run(OUTAGE - warning, |_| false);
    let before = *world.ends[0].stats();
    let cwnd = world.ends[0].cwnd();
    let sent = before.data_bytes_sent;
    world.run(up, |_| false);
    world.overflows = 0;
    let delivered = world.ends[1].stats().bytes_delivered;
    world.run(up + REST, |world| world.ends[1].stats().bytes_delivered > delivered);
    let arrived = world.ends[1].stats().bytes_delivered > delivered;
    let dead_time = arrived.then(|| world.now.since(up));
    // Past all that was under way and what the fixed host may send at once.
    world.run(up + REST, |world| {
        world.ends[0].stats().bytes_acked > sent + 4 * config.receive_buffer.get()
    });
    let stats = *world.ends[0].stats();
    Outcome {
        dead_time,
        is_aborted: world.ends[0].aborted().is_some(),
        cwnd: (cwnd, world.ends[0].cwnd()),
        timeouts: stats.timeouts - before.timeouts,
        reductions: stats.cwnd_reductions - before.cwnd_reductions,
        retransmitted: stats.segments_retransmitted - before.segments_retransmitted,
        spurious_detected: stats.spurious_detected - before.spurious_detected,
        overflows: world.overflows,
    }
}

impl<M: Middlebox<Length>> World<M> {
    fn schedule(&mut self, at: Instant, arrival: Arrival) {
        self.inserted += 1;
        self.queue.insert((at, self.inserted), arrival);
    }

    fn call(
        &mut self,
        i: usize,
        act: impl FnOnce(&mut Endpoint<Length>, Instant, &mut Io<'_, Length>),
    ) {
        let mut out = Vec::new();
        act(&mut self.ends[i], self.now, &mut Io { out: &mut out, events: Events::none() });
        for segment in out {
            match i {
                0 => self.schedule(self.now + WIRED, Arrival::Node(Side::Fixed, segment)),
                _ => self.over_the_air(i, segment),
            }
        }
    }

    /// Loses segments that are on the air or sent while the link is out of order.
    fn over_the_air(&mut self, from: usize, segment: Seg) {
        let start = self.now.max(self.free[from]);
        if from == 0 && start.since(self.now) > RATE.transmission_time(QUEUE) {
            self.overflows += 1;
            return;
        }
        let sent = start + RATE.transmission_time(segment.wire_len());
        self.free[from] = sent;
        let arrival = sent + WIRELESS;
        if arrival < self.outage.0 || start >= self.outage.1 {
            self.schedule(
                arrival,
                match from {
                    0 => Arrival::End(1, segment),
                    _ => Arrival::Node(Side::Mobile, segment),
                },
            );
        } else {
            self.free[from] = start;
        }
    }

    fn carry_out(&mut self, mut out: Actions<Length>) {
        for action in out.drain() {
            match action {
                Action::Forward { to: Side::Fixed, segment }
                | Action::Inject { to: Side::Fixed, segment } => {
                    self.schedule(self.now + WIRED, Arrival::End(0, segment));
                }
                Action::Forward { segment, .. } | Action::Inject { segment, .. } => {
                    self.over_the_air(0, segment);
                }
                Action::Drop { .. } => {}
            }
        }
    }

    /// Until this time or until `done`.
    fn run(&mut self, until: Instant, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let queued = self.queue.first_key_value().map(|(&(at, _), _)| at);
            let timers = [
                self.ends[0].next_deadline(),
                self.ends[1].next_deadline(),
                self.node.next_deadline(),
            ];
            let Some(at) = timers.into_iter().chain([queued]).flatten().min() else { return };
            if at > until {
                return;
            }
            self.now = at;
            if queued == Some(at) {
                let (_, arrival) = self.queue.pop_first().expect("one is due");
                self.arrive(arrival);
            } else if timers[2] == Some(at) {
                let mut out = Actions::new();
                self.node.on_timer(at, &mut out);
                self.carry_out(out);
            } else {
                let i = usize::from(timers[0] != Some(at));
                self.call(i, |end, now, io| end.on_timer(now, io));
            }
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        let now = self.now;
        let mut out = Actions::new();
        match arrival {
            Arrival::Node(side, segment) => self.node.on_segment(now, side, segment, &mut out),
            Arrival::Signal(signal) => {
                let mobile = MobileId::Host(self.ends[1].flow().src.ip);
                self.node.on_link(now, mobile, signal, &mut out);
            }
            Arrival::End(i, segment) => {
                self.call(i, |end, now, io| end.on_segment(now, segment, io));
                self.call(i, |end, now, io| {
                    end.read(now, usize::MAX, io);
                    end.reply(now, io);
                });
                let space = self.ends[0].send_space() as u64;
                self.call(0, |end, now, io| {
                    end.write(now, &Length(space), io);
                });
            }
        }
        self.carry_out(out);
    }
}
