//! The loop: packets from the kernel into the links, packets out of the links to the kernel at their time.

use crate::lateness::Lateness;
use crate::packet;
use crate::port::{MTU, Port};
use airtcp_core::{Duration, Instant};
use airtcp_net::config::LinkConfig;
use airtcp_net::{Link, LinkCounters, LinkStreams, Output};
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
    configs: [&LinkConfig; 2],
    seed: u64,
    stop: BorrowedFd<'_>,
) -> io::Result<Report> {
    let real_time = be_real_time();
    let origin = std::time::Instant::now();
    let clock = || Instant::from_nanos(origin.elapsed().as_nanos() as u64);
    let [up, down] = configs;
    let mut directions = [
        Direction {
            from: inside,
            to: outside,
            link: Link::new(up, LinkStreams::named(seed, "up")),
        },
        Direction {
            from: outside,
            to: inside,
            link: Link::new(down, LinkStreams::named(seed, "down")),
        },
    ];
    let mut lateness = Lateness::new();
    let mut refused_by_kernel = 0;
    let mut buffer = [0; BUFFER];
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
        let wait = next.map(|next| next.since(clock()));
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
