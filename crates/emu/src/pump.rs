//! The loop: packets from the kernel into the links, packets out of the links to the kernel at their time.

use crate::lateness::Lateness;
use crate::packet;
use crate::port::{MTU, Port};
use airtcp_core::{Duration, Instant};
use airtcp_net::{Link, LinkCounters, Output};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Packets taken from one device before the loop looks at the clock for the others again.
const BATCH: usize = 32;
/// Packets one device hands over are at most so large; a device without offloads keeps to its MTU.
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
}

impl Report {
    /// The emulator was as fast as the link it emulates: nothing was thrown away in front of it, and 99 in
    /// 100 packets were late by no more than `bound`.
    pub fn kept_up(&self, bound: Duration) -> bool {
        self.dropped_by_kernel == 0 && self.lateness.quantile(0.99) <= bound
    }
}

/// One direction.
struct Direction<'a> {
    from: &'a Port,
    to: &'a Port,
    link: Link<Vec<u8>>,
}

/// Emulates until `stop` is readable. Logical time is the monotonic clock's since the call.
pub(crate) fn run(
    inside: &Port,
    outside: &Port,
    [up, down]: [Link<Vec<u8>>; 2],
    stop: BorrowedFd<'_>,
) -> io::Result<Report> {
    let real_time = be_real_time();
    let origin = std::time::Instant::now();
    let clock = || Instant::from_nanos(origin.elapsed().as_nanos() as u64);
    let mut directions = [
        Direction { from: inside, to: outside, link: up },
        Direction { from: outside, to: inside, link: down },
    ];
    let mut lateness = Lateness::new();
    let mut refused_by_kernel = 0;
    let mut buffer = [0; BUFFER];
    let mut vigil = Vigil::default();
    loop {
        for Direction { to, link, .. } in &mut directions {
            while let Some(due) = link.next_deadline().filter(|&due| due <= clock()) {
                // All that is due by then, and nothing later: the lateness is that of this packet.
                let Some(Output::Deliver(packet)) = link.poll(due) else { continue };
                if to.send(&packet).is_err() {
                    refused_by_kernel += 1;
                }
                lateness.record(clock().since(due));
            }
        }
        let next = directions.iter().filter_map(|d| d.link.next_deadline()).min();
        let wait = vigil.wait(clock(), next);
        let ready = wait_for([inside.as_fd(), outside.as_fd(), stop], wait)?;
        if ready[2] {
            break;
        }
        for (Direction { from, link, .. }, _) in
            directions.iter_mut().zip(ready).filter(|(_, ready)| *ready)
        {
            for _ in 0..BATCH {
                let Some(packet) = from.receive(&mut buffer)? else { break };
                // What the link refuses it has counted.
                let _ = link.send(clock(), packet.to_vec(), packet::meta(packet));
            }
        }
    }
    let [up, down] = directions.map(|direction| direction.link.counters());
    Ok(Report { up, down, lateness, dropped_by_kernel: 0, refused_by_kernel, real_time })
}

/// When to sleep and when to stay awake. The kernel wakes a sleeper some tens of microseconds late, so the
/// last of the wait is spent asking; but a real-time thread that never sleeps is stopped by the kernel for
/// tens of milliseconds, so staying awake is rationed.
#[derive(Debug, Default)]
struct Vigil {
    /// How long it may stay awake.
    credit: Duration,
    awake: bool,
    seen: Instant,
}

impl Vigil {
    /// This long before a packet's time sleep ends.
    const AWAKE: Duration = Duration::from_micros(80);
    /// One part in so many of the time not spent awake is credit.
    const RATION: u64 = 5;
    const MOST: Duration = Duration::from_millis(2);

    /// How long to sleep when the next packet is due at `due`; `None`: until one comes in.
    fn wait(&mut self, now: Instant, due: Option<Instant>) -> Option<Duration> {
        let passed = now.since(self.seen);
        self.seen = now;
        self.credit = if self.awake {
            self.credit - passed
        } else {
            (self.credit + passed / Self::RATION).min(Self::MOST)
        };
        let wait = due.map(|due| due.since(now));
        self.awake = !self.credit.is_zero() && wait.is_some_and(|wait| wait <= Self::AWAKE);
        // Without credit it sleeps to the end.
        if self.credit.is_zero() { wait } else { wait.map(|wait| wait - Self::AWAKE) }
    }
}

/// Which of the three are readable, at the latest when `wait` is over.
fn wait_for(fds: [BorrowedFd<'_>; 3], wait: Option<Duration>) -> io::Result<[bool; 3]> {
    let mut polled = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    let wait =
        wait.map(|wait| TimeSpec::from_duration(std::time::Duration::from_nanos(wait.as_nanos())));
    match ppoll(&mut polled, wait, None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(polled.map(|fd| fd.any().unwrap_or(false)))
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
        let mut vigil = Vigil::default();
        let now = Instant::from_secs(1);
        assert_eq!(vigil.wait(now, None), None);
        assert_eq!(vigil.wait(now, Some(now + us(500))), Some(us(420)));
        assert_eq!(vigil.wait(now + us(420), Some(now + us(500))), Some(Duration::ZERO));
    }

    #[test]
    fn staying_awake_is_rationed() {
        // A packet every 50 us for 1 s: all of it could be spent awake; a sixth is allowed.
        let mut vigil = Vigil::default();
        let (mut now, mut asleep) = (Instant::ZERO, Duration::ZERO);
        while now < Instant::from_secs(1) {
            let wait = vigil.wait(now, Some(now + us(50))).expect("a packet is due");
            asleep += wait;
            now += wait.max(us(5));
        }
        assert!((us(800_000)..us(860_000)).contains(&asleep), "{asleep}");
    }
}
