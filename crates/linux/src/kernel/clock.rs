//! The clocks of this host.

use airtcp_core::Instant;
use airtcp_gateway::signals::message::Stamp;
use nix::time::{ClockId, clock_gettime};

/// The gateway's time: nanoseconds of the kernel's monotonic clock since boot, the same before and
/// after a restart of the daemon.
pub(crate) fn now() -> Instant {
    Instant::from_nanos(nanos(ClockId::CLOCK_MONOTONIC))
}

/// The time of day, in seconds since 1970 (UTC).
pub(crate) fn time_of_day() -> f64 {
    nanos(ClockId::CLOCK_REALTIME) as f64 / 1e9
}

/// A clock that starts at the time of day and then counts elapsed time, including suspension:
/// setting the time of day does not turn it back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Time of day less time since boot.
    boot: u64,
}

impl Clock {
    /// Starts at the time of day.
    pub(crate) fn start() -> Self {
        Self { boot: nanos(ClockId::CLOCK_REALTIME).wrapping_sub(nanos(ClockId::CLOCK_BOOTTIME)) }
    }

    /// Starts at the time of day, or at `known` if that is later: then the time of day was set
    /// back.
    pub(crate) fn start_after(known: Stamp) -> Self {
        let clock = Self::start();
        let back = known.since(clock.now()).as_nanos();
        Self { boot: clock.boot.wrapping_add(back) }
    }

    /// The current time.
    pub(crate) fn now(self) -> Stamp {
        Stamp(self.boot.wrapping_add(nanos(ClockId::CLOCK_BOOTTIME)))
    }
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("every kernel that airtcp runs on has this clock");
    (time.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Duration;

    #[test]
    fn the_clock_does_not_stand_still() {
        let clock = Clock::start();
        let begin = clock.now();
        while clock.now() == begin {}
        assert!(clock.now() > begin && clock.now().since(begin) < Duration::from_secs(3600));
    }
}
