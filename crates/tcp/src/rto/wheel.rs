//! Timers that expire at ticks, which are coarser for longer timers (Linux: `kernel/time/timer.c`).

use airtcp_core::{Duration, Instant};
use std::num::NonZeroU32;

/// Longest supported uptime. At 250 Hz only the slots of the last two levels are longer.
pub const MAX_UPTIME: Duration = Duration::from_secs(3600);
/// Slots of a level; a timer may lie ahead by all but one.
const SLOTS: u64 = 64;
/// Bits by which each level is coarser than the one below: eight times.
const COARSER: u32 = 3;
const LEVELS: u32 = 9;

/// A timer wheel of some frequency. It takes eight bytes of every endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerWheel {
    /// Length of a tick, in nanoseconds.
    tick: NonZeroU32,
    /// Uptime of the host at the start of time, in microseconds; the ticks begin with the host.
    uptime: u32,
}

impl TimerWheel {
    /// A wheel of a host with this `uptime` at the start of time; at most [`MAX_UPTIME`].
    pub(crate) fn new(hz: u32, uptime: Duration) -> Self {
        let tick = NonZeroU32::new(1_000_000_000 / hz.max(1)).unwrap_or(NonZeroU32::MIN);
        Self { tick, uptime: (uptime.min(MAX_UPTIME).as_nanos() / 1000) as u32 }
    }

    /// Expiry of a timer set at `now` for `wait`: never early, but late by up to a slot of its
    /// level.
    pub(crate) fn due(self, now: Instant, wait: Duration) -> Instant {
        let tick = u64::from(self.tick.get());
        let uptime = u64::from(self.uptime) * 1000;
        let current = (now.as_nanos() + uptime) / tick;
        let ahead = wait.as_nanos().div_ceil(tick);
        let expires = current + ahead;
        let level = (0..LEVELS).find(|level| ahead < (SLOTS - 1) << (COARSER * level));
        let slot = 1u64 << (COARSER * level.unwrap_or(LEVELS - 1));
        Instant::from_nanos((expires / slot + 1) * slot * tick - uptime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Running time at 250 Hz of a timer set for `ms` at 1 s, in milliseconds.
    fn runs_for(ms: u64) -> u64 {
        let now = Instant::from_millis(1000);
        let wheel = TimerWheel::new(250, Duration::ZERO);
        wheel.due(now, Duration::from_millis(ms)).since(now).as_millis()
    }

    #[test]
    fn short_timers_expire_at_the_next_tick() {
        assert_eq!(runs_for(200), 204);
        assert_eq!(runs_for(201), 208);
    }

    // Measured on Linux 6.18 at 250 Hz: 520, 1040, 2080, 4160 and 8320 ms took 544, 1084, 2212, 4351
    // and 8705 ms.
    #[test]
    fn longer_ones_are_late_by_up_to_a_slot_of_their_level() {
        for (wait, measured, slot) in [
            (520, 544, 32),
            (1040, 1084, 32),
            (2080, 2212, 256),
            (4160, 4351, 256),
            (8320, 8705, 256),
        ] {
            let took = runs_for(wait);
            assert!(took > wait && took <= wait + slot + 4, "{wait}: {took}");
            assert!(measured > wait && measured <= wait + 2 * slot, "{wait}: {measured}");
        }
    }

    #[test]
    fn a_long_timer_expires_by_how_long_the_host_has_been_up() {
        // The slots of the third level are 2048 ms.
        let due = |uptime| {
            let wheel = TimerWheel::new(250, Duration::from_millis(uptime));
            wheel.due(Instant::ZERO, Duration::from_secs(20)).since_start().as_millis()
        };
        assert_eq!([0, 500, 2000, 2048].map(due), [20_480, 22_028, 20_528, 20_480]);
    }
}
