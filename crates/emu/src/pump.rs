//! The loop: packets from the kernel into the links, packets out of the links to the kernel at
//! their time.

use crate::EmuError;
use crate::air::{self, Air, Received};
use crate::control::{Control, DirectionStatus, LatenessStatus, Order, Status};
use crate::lateness::Lateness;
use crate::log::{Event, Log};
use crate::packet;
use crate::port::{MTU, Port};
use airtcp_core::{Duration, Instant};
use airtcp_net::wifi::StationCounters;
use airtcp_net::{Link, LinkCounters, Output};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Packets taken from one device before the loop looks at the clock for the others again.
const BATCH: usize = 32;
/// Most bytes of a packet that a device hands over; one without offloads keeps to its MTU.
const BUFFER: usize = MTU as usize + 64;

/// What happened on an emulated link.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the inside to the outside.
    pub up: LinkCounters,
    /// From the outside to the inside.
    pub down: LinkCounters,
    /// Of the packets released.
    pub lateness: Lateness,
    /// Packets that the kernel threw away before the emulator could read them.
    pub dropped_by_kernel: u64,
    /// Packets that the kernel did not take from the emulator (the device is down).
    pub refused_by_kernel: u64,
    /// The emulator ran with SCHED_FIFO.
    pub real_time: bool,
    /// The command's station and the access point, where there is air between them.
    pub air: Option<[StationCounters; 2]>,
}

impl Report {
    /// The emulator was as fast as the link it emulates: nothing was thrown away before it, and 99
    /// in 100 packets were late by no more than `bound`.
    pub fn kept_up(&self, bound: Duration) -> bool {
        self.dropped_by_kernel == 0 && self.lateness.quantile(0.99) <= bound
    }
}

/// A link to be emulated, and where to log what passes.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) link: Link<Vec<u8>>,
    pub(crate) log: Option<Log>,
}

/// All of what is emulated.
pub(crate) struct Lanes {
    pub(crate) up: Lane,
    pub(crate) down: Lane,
    /// In front of the link.
    pub(crate) air: Option<Air>,
}

/// One direction.
struct Direction<'a> {
    from: &'a Port,
    to: &'a Port,
    lane: Lane,
}

impl Direction<'_> {
    /// Logs what has happened inside the link.
    fn log_until(&mut self, now: Instant) {
        let Some(log) = &self.lane.log else { return };
        while let Some(departure) = self.lane.link.next_departure(now) {
            log.note(Event::Departure(departure));
        }
    }

    /// Offers a packet to the link.
    fn offer(&mut self, now: Instant, packet: Vec<u8>) {
        let meta = packet::meta(&packet);
        self.log_until(now);
        if let Some(log) = &self.lane.log {
            log.note(Event::Arrival(now, meta.size));
        }
        // What the link refuses it has counted.
        let refused = self.lane.link.send(now, packet, meta).is_err();
        if let Some(log) = self.lane.log.as_ref().filter(|_| refused) {
            log.note(Event::Refusal(now, meta.size));
        }
    }

    /// Begins or ends an outage.
    fn steer(&mut self, now: Instant, down: bool) {
        self.log_until(now);
        if down {
            self.lane.link.take_down(now);
        } else {
            self.lane.link.take_up(now);
        }
        if let Some(log) = &self.lane.log {
            log.note(Event::Steered(now, down));
        }
    }

    /// The end: what the link did.
    fn end(mut self, now: Instant) -> Result<LinkCounters, EmuError> {
        self.log_until(now);
        if let Some(log) = self.lane.log {
            log.note(Event::End(now));
            log.close()?;
        }
        Ok(self.lane.link.counters())
    }
}

/// The way of packets: by the air, if there is any, and up the link; down the link and by the air.
struct Way<'a> {
    directions: [Direction<'a>; 2],
    air: Option<Air>,
    lateness: Lateness,
    refused_by_kernel: u64,
}

impl Way<'_> {
    /// When something is next to be carried out.
    fn next_deadline(&self) -> Option<Instant> {
        let links = self.directions.iter().filter_map(|d| d.lane.link.next_deadline());
        links.chain(self.air.as_ref().and_then(Air::next_deadline)).min()
    }

    /// Carries out what is due by `clock`, step by step.
    fn carry_out(&mut self, clock: impl Fn() -> Instant) {
        while let Some(due) = self.next_deadline().filter(|&due| due <= clock()) {
            // All that is due by then, and nothing later: the lateness is that of this packet.
            while let Some(Received { by, packet }) = self.air.as_mut().and_then(|a| a.poll(due)) {
                match by {
                    air::ACCESS_POINT => self.directions[UP].offer(due, packet),
                    _ => self.release(DOWN, due, &packet, &clock),
                }
            }
            for direction in [UP, DOWN] {
                let link = &mut self.directions[direction].lane.link;
                let Some(Output::Deliver(mut packet, passage)) = link.poll(due) else { continue };
                if passage.marked {
                    airtcp_wire::mark_ce(&mut packet);
                }
                match &mut self.air {
                    Some(air) if direction == DOWN => air.offer(due, air::ACCESS_POINT, &packet),
                    _ => self.release(direction, due, &packet, &clock),
                }
            }
        }
    }

    /// Gives a packet that is due to the kernel.
    fn release(
        &mut self,
        direction: usize,
        due: Instant,
        packet: &[u8],
        clock: impl Fn() -> Instant,
    ) {
        if self.directions[direction].to.send(packet).is_err() {
            self.refused_by_kernel += 1;
        }
        self.lateness.record(clock().since(due));
    }

    /// Takes a packet from the kernel. What was due before has been carried out.
    fn offer(&mut self, direction: usize, now: Instant, packet: &[u8]) {
        match &mut self.air {
            Some(air) if direction == UP => air.offer(now, air::STATION, packet),
            _ => self.directions[direction].offer(now, packet.to_vec()),
        }
    }
}

/// Emulates until `stop` is readable. Packets may be `late` by that much. Logical time is the
/// monotonic clock's since the call.
pub(crate) fn run(
    inside: &Port,
    outside: &Port,
    Lanes { up, down, air }: Lanes,
    late: Duration,
    control: Option<&Control>,
    stop: BorrowedFd<'_>,
) -> Result<Report, EmuError> {
    let real_time = be_real_time();
    let origin = monotonic_nanos()?;
    // The clock was read before, so it can be read again.
    let clock = || Instant::from_nanos(monotonic_nanos().unwrap_or(origin) - origin);
    let mut way = Way {
        directions: [
            Direction { from: inside, to: outside, lane: up },
            Direction { from: outside, to: inside, lane: down },
        ],
        air,
        lateness: Lateness::new(),
        refused_by_kernel: 0,
    };
    let mut buffer = [0; BUFFER];
    let mut vigil = Vigil { needed: late < Vigil::UNNEEDED, ..Vigil::default() };
    let bell = control.and_then(Control::bell);
    let sources = [inside.as_fd(), outside.as_fd(), stop].into_iter().chain(bell);
    let mut sources: Vec<PollFd<'_>> =
        sources.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    loop {
        way.carry_out(clock);
        let wait = vigil.wait(clock(), way.next_deadline());
        let ready = wait_for(&mut sources, wait).map_err(EmuError::Link)?;
        if ready[STOP] {
            break;
        }
        if let Some(control) = control.filter(|_| ready[BELL]) {
            control.carry_out(|order| {
                let now = clock();
                way.carry_out(|| now);
                obey(order, &mut way.directions, now);
                let [uplink, downlink] =
                    [0, 1].map(|i| DirectionStatus::of(&way.directions[i].lane.link, now));
                Status {
                    monotonic_ns: origin + now.as_nanos(),
                    uplink,
                    downlink,
                    lateness: LatenessStatus::of(&way.lateness),
                    real_time,
                }
            });
        }
        for direction in [UP, DOWN].into_iter().filter(|direction| ready[*direction]) {
            for _ in 0..BATCH {
                let from = way.directions[direction].from;
                let received = from.receive(&mut buffer).map_err(EmuError::Link)?;
                let Some(packet) = received else { break };
                let now = clock();
                if way.air.is_some() {
                    // A packet of the past must not enter the air, or a link behind it, later.
                    way.carry_out(|| now);
                }
                way.offer(direction, now, packet);
            }
        }
    }
    let now = clock();
    let Way { directions, air, lateness, refused_by_kernel } = way;
    let [up, down] = directions.map(|direction| direction.end(now));
    Ok(Report {
        up: up?,
        down: down?,
        lateness,
        dropped_by_kernel: 0,
        refused_by_kernel,
        real_time,
        air: air.map(|mut air| air.counters(now)),
    })
}

/// When to sleep and when to stay awake. The kernel wakes a sleeper some tens of microseconds late,
/// so the last of the wait is spent asking; but a real-time thread that never sleeps is stopped by
/// the kernel for tens of milliseconds, so staying awake is rationed.
#[derive(Debug, Default)]
struct Vigil {
    /// Whether packets must be that punctual; if not, it sleeps until they are due.
    needed: bool,
    /// How long it may stay awake.
    credit: Duration,
    awake: bool,
    seen: Instant,
}

impl Vigil {
    /// Sleep ends this long before a packet's time.
    const AWAKE: Duration = Duration::from_micros(150);
    /// The time not spent awake, divided by this, is credit.
    const RATION: u64 = 5;
    const MOST: Duration = Duration::from_millis(2);
    /// Whoever allows packets to be that late need not pay for staying awake.
    const UNNEEDED: Duration = Duration::from_millis(10);

    /// How long to sleep when the next packet is due at `due`; `None`: until one comes in.
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
        // Without credit it sleeps to the end.
        if self.credit.is_zero() { wait } else { wait.map(|wait| wait - Self::AWAKE) }
    }
}

/// Carries out an order.
fn obey(order: Order, directions: &mut [Direction<'_>; 2], now: Instant) {
    let (down, which) = match order {
        Order::Down(which) => (true, which),
        Order::Up(which) => (false, which),
        Order::Status => return,
    };
    for (direction, _) in directions.iter_mut().zip(which.include()).filter(|(_, is)| *is) {
        direction.steer(now, down);
    }
}

/// Nanoseconds of CLOCK_MONOTONIC, which other processes can compare with.
fn monotonic_nanos() -> io::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(std::time::Duration::from(now).as_nanos() as u64)
}

/// The directions, and the devices that they read.
const UP: usize = 0;
const DOWN: usize = 1;
/// The devices come first.
const STOP: usize = 2;
/// Where the control socket rings, if there is one.
const BELL: usize = 3;
/// What the pump waits for.
const SOURCES: usize = 4;

/// Which of the sources are readable, at the latest when `wait` is over.
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

/// Takes the lowest real-time priority for this thread, and wakes it without slack.
fn be_real_time() -> bool {
    use thread_priority::{
        RealtimeThreadSchedulePolicy::Fifo, ThreadPriority, ThreadSchedulePolicy::Realtime,
        set_thread_priority_and_policy, thread_native_id,
    };
    // Without the right to either, the emulator is later; it says how late.
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
        let mut vigil = Vigil { needed: true, ..Vigil::default() };
        let now = Instant::from_secs(1);
        assert_eq!(vigil.wait(now, None), None);
        assert_eq!(vigil.wait(now, Some(now + us(500))), Some(us(350)));
        assert_eq!(vigil.wait(now + us(350), Some(now + us(500))), Some(Duration::ZERO));
    }

    #[test]
    fn it_sleeps_to_the_end_if_packets_may_be_late() {
        let mut vigil = Vigil::default();
        let now = Instant::from_secs(1);
        assert_eq!(vigil.wait(now, Some(now + us(500))), Some(us(500)));
        assert_eq!(vigil.wait(now, Some(now + us(100))), Some(us(100)));
    }

    #[test]
    fn staying_awake_is_rationed() {
        // A packet every 50 us for 1 s: all of it could be spent awake; a sixth is allowed.
        let mut vigil = Vigil { needed: true, ..Vigil::default() };
        let (mut now, mut asleep) = (Instant::ZERO, Duration::ZERO);
        while now < Instant::from_secs(1) {
            let wait = vigil.wait(now, Some(now + us(50))).expect("a packet is due");
            asleep += wait;
            now += wait.max(us(5));
        }
        assert!((us(800_000)..us(860_000)).contains(&asleep), "{asleep}");
    }
}
