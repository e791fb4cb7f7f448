//! The ticks of this kernel's clock. Its timers expire in slots of so many ticks, the longer ones in
//! coarser slots, so when a retransmission leaves depends on where in a slot its timer was set.

use crate::outages::sleep_until;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The frequency that `tcp.preset = "linux"` takes for Linux's.
const HZ: u64 = 250;
/// A slot of the timers from 16 to 129 s, in ticks: a multiple of the slots of all shorter ones.
const SLOT: u64 = 512;
/// Milliseconds a tick.
const TICK: u64 = 1000 / HZ;

/// Waits until `before` ahead of the time when the kernel is at `phase` in a slot of 2048 ms.
pub(crate) fn wait_for(phase: Duration, before: Duration) {
    let (first, begin) = (count(), Instant::now());
    thread::sleep(Duration::from_millis(400));
    let (now, end) = (count(), Instant::now());
    let ticked = Duration::from_millis((now - first) * TICK);
    let is_right = ticked.abs_diff(end - begin) < Duration::from_millis(100);
    assert!(
        is_right,
        "the kernel has ticks for {ticked:?}, of {:?}: not {HZ} a second",
        end - begin
    );
    let slot = Duration::from_millis(SLOT * TICK);
    let since = Duration::from_millis(now % SLOT * TICK);
    let wait = (slot + phase - before).saturating_sub(since).as_millis() % slot.as_millis();
    sleep_until(end + Duration::from_millis(wait as u64));
}

/// Number of ticks that the kernel has counted.
fn count() -> u64 {
    let text =
        fs::read_to_string("/proc/timer_list").expect("/proc/timer_list, which root may read");
    let count = text.lines().find_map(|line| line.strip_prefix("jiffies: ")?.trim().parse().ok());
    count.expect("a line \"jiffies: N\" in /proc/timer_list")
}
