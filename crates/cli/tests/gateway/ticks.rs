//! The ticks of this kernel's clock. Its timers expire in slots of so many ticks, the longer ones in
//! coarser slots, so when a retransmission leaves depends on where in a slot its timer was set.

use crate::outages::sleep_until;
use std::fs;
use std::time::{Duration, Instant};

/// The frequency that `tcp.preset = "linux"` takes for Linux's.
const HZ: u64 = 250;
/// A slot of the timers from 16 to 129 s, in ticks: a multiple of the slots of all shorter ones.
const SLOT: u64 = 512;
/// Milliseconds a tick.
const TICK: u64 = 1000 / HZ;

/// Waits until so long before the kernel is at this place in a slot of 2048 ms.
pub(crate) fn wait_for(phase: Duration, before: Duration) {
    let begin = Instant::now();
    let first = count();
    sleep_until(begin + Duration::from_millis(100 * TICK));
    let now = count();
    let passed = now - first;
    assert!((80..120).contains(&passed), "the kernel ticks {passed} times while 100 are expected");
    let slot = Duration::from_millis(SLOT * TICK);
    let since = Duration::from_millis(now % SLOT * TICK);
    let wait = (slot + phase - before).saturating_sub(since).as_millis() % slot.as_millis();
    sleep_until(begin + Duration::from_millis(100 * TICK + wait as u64));
}

/// How many ticks the kernel has counted.
fn count() -> u64 {
    let text =
        fs::read_to_string("/proc/timer_list").expect("/proc/timer_list, which root may read");
    let count = text.lines().find_map(|line| line.strip_prefix("jiffies: ")?.trim().parse().ok());
    count.expect("a line \"jiffies: N\" in /proc/timer_list")
}
