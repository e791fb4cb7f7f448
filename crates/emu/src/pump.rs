//! The loop: packets from the kernel into the links, packets out of the links to the kernel at
//! their time.

use crate::EmuError;
use crate::air::{self, Air, Received};
use crate::control::{
    Change, Control, DirectionSettings, DirectionStatus, LatenessStatus, LinkStatus, Order,
};
use crate::corruption::Corruption;
use crate::filter::{Filter, Way};
use crate::lateness::Lateness;
use crate::log::Log;
use crate::packet;
use crate::port::{MTU, Port};
use airtcp_core::{Duration, Instant, Stream};
use airtcp_net::log::LinkEvent;
use airtcp_net::wifi::StationCounters;
use airtcp_net::{Link, LinkCounters, Output};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Packets read from one device before the loop serves the others again.
const BATCH: usize = 32;
/// Most bytes of a packet that a device hands over; one without offloads keeps to its MTU.
const BUFFER: usize = MTU as usize + 64;

/// Counters and lateness of an emulated link.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the inside to the outside.
    pub up: LinkCounters,
    /// From the outside to the inside.
    pub down: LinkCounters,
    /// Packets in which a bit was flipped, up and down.
    pub corrupted: [u64; 2],
    /// Packets that passed beside the link, up and down.
    pub beside: [u64; 2],
    /// Lateness of the packets released.
    pub lateness: Lateness,
    /// Packets that the kernel dropped before the emulator could read them.
    pub dropped_by_kernel: u64,
    /// Packets that the kernel refused from the emulator (the device is down).
    pub refused_by_kernel: u64,
    /// True if the emulator ran with SCHED_FIFO.
    pub real_time: bool,
    /// Counters of the command's station and the access point, if there is a wireless hop.
    pub air: Option<[StationCounters; 2]>,
}

impl Report {
    /// True if the emulator kept up with the link: the kernel dropped nothing before it, and 99 %
    /// of packets were late by at most `bound`.
    pub fn kept_up(&self, bound: Duration) -> bool {
        self.dropped_by_kernel == 0 && self.lateness.quantile(0.99) <= bound
    }
}

/// One direction's link, and its log.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) link: Link<Vec<u8>>,
    pub(crate) corruption: Corruption,
    /// Packets that passed beside the link so far.
    pub(crate) beside: u64,
    pub(crate) log: Option<Log>,
    pub(crate) settings: DirectionSettings,
    /// Names the random streams of what orders change.
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// Changes so far.
    pub(crate) changes: u64,
}

/// Both directions, and the wireless hop.
pub(crate) struct Lanes {
    pub(crate) up: Lane,
    pub(crate) down: Lane,
    /// The packets that go through the link; `None`: all.
    pub(crate) only: Option<Filter>,
    /// The wireless hop in front of the link.
    pub(crate) air: Option<Air>,
}

/// A link with the devices at its ends.
struct Direction<'a> {
    from: &'a Port,
    to: &'a Port,
    lane: Lane,
}

impl Direction<'_> {
    /// Logs the departures until `now`.
    fn log_until(&mut self, now: Instant) {
        let Some(log) = &self.lane.log else { return };
        while let Some(departure) = self.lane.link.next_departure(now) {
            log.note(LinkEvent::Departure(departure));
        }
    }

    /// Offers a packet to the link, and a copy if the link asks for it.
    fn offer(&mut self, now: Instant, packet: Vec<u8>) {
        if self.lane.link.duplicates() {
            self.offer_one(now, packet.clone());
        }
        self.offer_one(now, packet);
    }

    fn offer_one(&mut self, now: Instant, packet: Vec<u8>) {
        let meta = packet::meta(&packet);
        self.log_until(now);
        if let Some(log) = &self.lane.log {
            log.note(LinkEvent::Arrival(now, meta.size));
        }
        // The link has counted a refused packet.
        let refused = self.lane.link.send(now, packet, meta).is_err();
        if let Some(log) = self.lane.log.as_ref().filter(|_| refused) {
            log.note(LinkEvent::Refusal(now, meta.size));
        }
    }

    /// Changes the link.
    fn change(&mut self, now: Instant, change: Change) {
        self.log_until(now);
        let Lane { link, corruption, log, settings, name, seed, changes, .. } = &mut self.lane;
        settings.change(change);
        let stream =
            |purpose: &str| Stream::new(*seed, &format!("link/{name}/{purpose}/{changes}"));
        let log = log.as_ref();
        let note = |event| {
            if let Some(log) = log {
                log.note(event);
            }
        };
        match change {
            Change::Down => {
                link.take_down(now);
                note(LinkEvent::Steered(now, true));
            }
            Change::Up => {
                link.take_up(now);
                note(LinkEvent::Steered(now, false));
            }
            Change::Rate(rate) => {
                link.set_rate(now, rate);
                note(LinkEvent::Rate(now, rate));
            }
            Change::Delay(delay) => link.set_delay(now, delay),
            Change::Loss(p) => link.set_loss(now, p, stream("loss")),
            Change::Duplicate(p) => link.set_duplicate(p, stream("duplicate")),
            Change::Corrupt(p) => corruption.set(p, stream("corrupt")),
        }
        *changes += 1;
    }

    /// Closes the log and returns the link's counters.
    fn end(mut self, now: Instant) -> Result<LinkCounters, EmuError> {
        self.log_until(now);
        if let Some(log) = self.lane.log {
            log.note(LinkEvent::End(now));
            log.close()?;
        }
        Ok(self.lane.link.counters())
    }
}

/// Path of the packets: uplink packets cross the wireless hop, if there is one, then the link;
/// downlink packets the other way round.
struct Datapath<'a> {
    directions: [Direction<'a>; 2],
    only: Option<Filter>,
    air: Option<Air>,
    lateness: Lateness,
    refused_by_kernel: u64,
}

impl Datapath<'_> {
    /// Time of the next event.
    fn next_deadline(&self) -> Option<Instant> {
        let links = self.directions.iter().filter_map(|d| d.lane.link.next_deadline());
        links.chain(self.air.as_ref().and_then(Air::next_deadline)).min()
    }

    /// Handles all events that are due by `clock`, in order.
    fn carry_out(&mut self, clock: impl Fn() -> Instant) {
        while let Some(due) = self.next_deadline().filter(|&due| due <= clock()) {
            // Events at `due` only: the lateness recorded must be that of this packet.
            while let Some(Received { by, packet }) = self.air.as_mut().and_then(|a| a.poll(due)) {
                match by {
                    air::ACCESS_POINT => self.enter(UP, due, packet, &clock),
                    _ => self.release(DOWN, due, &packet, &clock),
                }
            }
            for direction in [UP, DOWN] {
                let Lane { link, corruption, .. } = &mut self.directions[direction].lane;
                let Some(Output::Deliver(mut packet, passage)) = link.poll(due) else { continue };
                if passage.marked {
                    airtcp_wire::mark_ce(&mut packet);
                }
                corruption.pass(&mut packet);
                self.leave(direction, due, &packet, &clock);
            }
        }
    }

    /// A packet reaches the link, and goes through it or beside it.
    fn enter(
        &mut self,
        direction: usize,
        now: Instant,
        packet: Vec<u8>,
        clock: impl Fn() -> Instant,
    ) {
        let way = if direction == UP { Way::Up } else { Way::Down };
        if self.only.as_ref().is_none_or(|only| only.takes(&packet, way)) {
            return self.directions[direction].offer(now, packet);
        }
        self.directions[direction].lane.beside += 1;
        self.leave(direction, now, &packet, clock);
    }

    /// A packet has passed the link.
    fn leave(
        &mut self,
        direction: usize,
        due: Instant,
        packet: &[u8],
        clock: impl Fn() -> Instant,
    ) {
        match &mut self.air {
            Some(air) if direction == DOWN => air.offer(due, air::ACCESS_POINT, packet),
            _ => self.release(direction, due, packet, clock),
        }
    }

    /// Hands a packet that was due at `due` to the kernel.
    fn release(
        &mut self,
        direction: usize,
        due: Instant,
        packet: &[u8],
        clock: impl Fn() -> Instant,
    ) {
        let sent = self.directions[direction].to.send(packet);
        // A flipped bit may have left neither IPv4 nor IPv6, which a TUN device calls invalid.
        let refused = sent.is_err_and(|error| error.kind() != io::ErrorKind::InvalidInput);
        self.refused_by_kernel += u64::from(refused);
        self.lateness.record(clock().since(due));
    }

    /// Reads a bounded number of packets from the device of `direction`, and offers them.
    fn receive(&mut self, direction: usize, clock: impl Fn() -> Instant) -> Result<(), EmuError> {
        let mut buffer = [0; BUFFER];
        for _ in 0..BATCH {
            let from = self.directions[direction].from;
            let received = from.receive(&mut buffer).map_err(EmuError::Link)?;
            let Some(packet) = received else { break };
            let now = clock();
            if self.air.is_some() {
                // Events must reach the wireless hop, and the link behind it, in order.
                self.carry_out(|| now);
            }
            self.offer(direction, now, packet, &clock);
        }
        Ok(())
    }

    /// Offers a packet from the kernel. Events due earlier must have been handled.
    fn offer(
        &mut self,
        direction: usize,
        now: Instant,
        packet: &[u8],
        clock: impl Fn() -> Instant,
    ) {
        match &mut self.air {
            Some(air) if direction == UP => air.offer(now, air::STATION, packet),
            _ => self.enter(direction, now, packet.to_vec(), clock),
        }
    }

    /// Carries out an order, after all events that are due earlier.
    fn handle(&mut self, order: Order, now: Instant) {
        self.carry_out(|| now);
        let Order::Change(change, which) = order else { return };
        let directions = self.directions.iter_mut().zip(which.include());
        for (direction, _) in directions.filter(|(_, is_included)| *is_included) {
            direction.change(now, change);
        }
    }

    /// State of the link; `origin` is the clock's time at the start, in nanoseconds.
    fn status(&self, now: Instant, origin: u64, real_time: bool) -> LinkStatus {
        let [uplink, downlink] = self.directions.each_ref();
        LinkStatus {
            monotonic_ns: origin + now.as_nanos(),
            uplink: DirectionStatus::of(&uplink.lane, now),
            downlink: DirectionStatus::of(&downlink.lane, now),
            lateness: LatenessStatus::of(&self.lateness),
            real_time,
        }
    }

    /// Closes the logs and reports.
    fn end(self, now: Instant, real_time: bool) -> Result<Report, EmuError> {
        let Self { directions, air, lateness, refused_by_kernel, .. } = self;
        let beside = directions.each_ref().map(|it| it.lane.beside);
        let corrupted = directions.each_ref().map(|it| it.lane.corruption.packets());
        let [up, down] = directions.map(|direction| direction.end(now));
        Ok(Report {
            up: up?,
            down: down?,
            corrupted,
            beside,
            lateness,
            dropped_by_kernel: 0,
            refused_by_kernel,
            real_time,
            air: air.map(|mut air| air.counters(now)),
        })
    }
}

/// Emulates until `stop` is readable. `late` is the bound on lateness. Logical time is the
/// monotonic clock's time since the call.
pub(crate) fn run(
    inside: &Port,
    outside: &Port,
    Lanes { up, down, only, air }: Lanes,
    late: Duration,
    control: Option<&Control>,
    stop: BorrowedFd<'_>,
) -> Result<Report, EmuError> {
    let real_time = be_real_time();
    let origin = monotonic_nanos()?;
    // Reading the clock cannot fail after it has succeeded once.
    let clock = || Instant::from_nanos(monotonic_nanos().unwrap_or(origin) - origin);
    let mut datapath = Datapath {
        directions: [
            Direction { from: inside, to: outside, lane: up },
            Direction { from: outside, to: inside, lane: down },
        ],
        only,
        air,
        lateness: Lateness::new(),
        refused_by_kernel: 0,
    };
    let mut sleep_policy =
        SleepPolicy { needed: late < SleepPolicy::UNNEEDED, ..SleepPolicy::default() };
    let bell = control.and_then(Control::bell);
    let sources = [inside.as_fd(), outside.as_fd(), stop].into_iter().chain(bell);
    let mut sources: Vec<PollFd<'_>> =
        sources.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    loop {
        datapath.carry_out(clock);
        let wait = sleep_policy.wait(clock(), datapath.next_deadline());
        let ready = wait_for(&mut sources, wait).map_err(EmuError::Link)?;
        if ready[STOP] {
            break;
        }
        if let Some(control) = control.filter(|_| ready[BELL]) {
            control.carry_out(|order| {
                let now = clock();
                datapath.handle(order, now);
                datapath.status(now, origin, real_time)
            });
        }
        for direction in [UP, DOWN].into_iter().filter(|direction| ready[*direction]) {
            datapath.receive(direction, clock)?;
        }
    }
    datapath.end(clock(), real_time)
}

/// Decides between sleeping and busy waiting. The kernel wakes a sleeper some tens of microseconds
/// late, so the end of a wait is spent polling. But a real-time thread that never sleeps is stopped
/// by the kernel for tens of milliseconds, so the time awake is limited by a credit.
#[derive(Debug, Default)]
struct SleepPolicy {
    /// True if packets must be that punctual; otherwise the thread sleeps until they are due.
    needed: bool,
    /// Time that the thread may still stay awake.
    credit: Duration,
    awake: bool,
    seen: Instant,
}

impl SleepPolicy {
    /// Sleep ends this early before a packet's time.
    const AWAKE: Duration = Duration::from_micros(150);
    /// Time asleep, divided by this, is added to the credit.
    const RATION: u64 = 5;
    /// Largest credit.
    const MOST: Duration = Duration::from_millis(2);
    /// With a bound on lateness this large or larger, staying awake is not needed.
    const UNNEEDED: Duration = Duration::from_millis(10);

    /// Time to sleep if the next packet is due at `due`; `None`: until a packet arrives.
    fn wait(&mut self, now: Instant, due: Option<Instant>) -> Option<Duration> {
        let wait = due.map(|due| due.since(now));
        if !self.needed {
            return wait;
        }
        let passed = now.since(self.seen);
        self.seen = now;
        self.credit = if self.awake {
            self.credit - passed
        } else {
            (self.credit + passed / Self::RATION).min(Self::MOST)
        };
        self.awake = !self.credit.is_zero() && wait.is_some_and(|wait| wait <= Self::AWAKE);
        // Without credit the thread sleeps until the packet is due.
        if self.credit.is_zero() { wait } else { wait.map(|wait| wait - Self::AWAKE) }
    }
}

/// CLOCK_MONOTONIC in nanoseconds, comparable across processes.
fn monotonic_nanos() -> io::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(std::time::Duration::from(now).as_nanos() as u64)
}

/// Index of the uplink, and of the device that it reads.
const UP: usize = 0;
/// Index of the downlink, and of the device that it reads.
const DOWN: usize = 1;
/// Index of the stop event in the polled sources.
const STOP: usize = 2;
/// Index of the control socket's wake-up, if there is one.
const BELL: usize = 3;
/// Number of sources that the pump polls.
const SOURCES: usize = 4;

/// Waits for at most `wait`; true for each source that is readable.
fn wait_for(sources: &mut [PollFd<'_>], wait: Option<Duration>) -> io::Result<[bool; SOURCES]> {
    let wait =
        wait.map(|wait| TimeSpec::from_duration(std::time::Duration::from_nanos(wait.as_nanos())));
    match ppoll(sources, wait, None) {
        Ok(_) => {}
        Err(nix::errno::Errno::EINTR) => return Ok([false; SOURCES]),
        Err(error) => return Err(error.into()),
    }
    let mut ready = [false; SOURCES];
    for (ready, source) in ready.iter_mut().zip(sources) {
        *ready = source.any().unwrap_or(false);
    }
    Ok(ready)
}

/// Gives this thread the lowest real-time priority and the least timer slack. False if the
/// priority was refused.
fn be_real_time() -> bool {
    use thread_priority::{
        RealtimeThreadSchedulePolicy::Fifo, ThreadPriority, ThreadSchedulePolicy::Realtime,
        set_thread_priority_and_policy, thread_native_id,
    };
    // Without these rights the emulator only gets later, and reports how late.
    let _ = nix::sys::prctl::set_timerslack(1);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, Realtime(Fifo)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn sleep_ends_before_the_packet_is_due() {
        let mut sleep_policy = SleepPolicy { needed: true, ..SleepPolicy::default() };
        let now = Instant::from_secs(1);
        assert_eq!(sleep_policy.wait(now, None), None);
        assert_eq!(sleep_policy.wait(now, Some(now + us(500))), Some(us(350)));
        assert_eq!(sleep_policy.wait(now + us(350), Some(now + us(500))), Some(Duration::ZERO));
    }

    #[test]
    fn it_sleeps_until_packets_are_due_if_they_may_be_late() {
        let mut sleep_policy = SleepPolicy::default();
        let now = Instant::from_secs(1);
        assert_eq!(sleep_policy.wait(now, Some(now + us(500))), Some(us(500)));
        assert_eq!(sleep_policy.wait(now, Some(now + us(100))), Some(us(100)));
    }

    #[test]
    fn time_awake_is_limited() {
        // A packet every 50 us for 1 s: all of it could be spent awake; a sixth is allowed.
        let mut sleep_policy = SleepPolicy { needed: true, ..SleepPolicy::default() };
        let (mut now, mut asleep) = (Instant::ZERO, Duration::ZERO);
        while now < Instant::from_secs(1) {
            let wait = sleep_policy.wait(now, Some(now + us(50))).expect("a packet is due");
            asleep += wait;
            now += wait.max(us(5));
        }
        assert!((us(800_000)..us(860_000)).contains(&asleep), "{asleep}");
    }
}
