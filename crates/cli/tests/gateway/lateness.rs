//! How late this machine runs what is due: a thread that wants to run every 2 ms notes by how much
//! it was late.
//!
//! A machine that is busy with something else delays emulator, gateway and test alike. What such a
//! delay costs is not the gateway's dead time, and is allowed on top of a bar: as much as was seen
//! in that very time.

use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How often the thread wants to run.
const PERIOD: Duration = Duration::from_millis(2);

/// Programs that run one after the other from the link's return to the receiver's byte: the test
/// that tells the gateway, the gateway, the emulator for a segment to the mobile, for its answer
/// and for new data, and the receiver.
const TURNS: u32 = 6;

/// When the thread was late by more than its period, and by how much.
static LATE: LazyLock<Mutex<Vec<(Instant, Duration)>>> = LazyLock::new(|| {
    thread::spawn(|| {
        loop {
            let due = Instant::now() + PERIOD;
            thread::sleep(PERIOD);
            let late = due.elapsed();
            if late > PERIOD {
                LATE.lock().unwrap().push((due, late));
            }
        }
    });
    Mutex::default()
});

/// Begins to watch; what came before is not known.
pub(crate) fn watch() {
    LazyLock::force(&LATE);
}

/// How late this machine was at most from `since` on: not at all if it is idle.
pub(crate) fn worst(since: Instant) -> Duration {
    let late = LATE.lock().unwrap();
    let overlapping = late.iter().filter(|(due, late)| *due + *late >= since);
    overlapping.map(|(_, late)| *late).max().unwrap_or_default()
}

/// What a machine as late as this one was from `since` on adds to a chain of programs.
pub(crate) fn allowance(since: Instant) -> Duration {
    worst(since) * TURNS
}

/// No sender's timer is shorter (Linux, `TCP_RTO_MIN`).
const MIN_RTO: Duration = Duration::from_millis(200);

/// Whether a sender's timer may have expired only because the machine was so late.
pub(crate) fn explains_timeouts(late: Duration) -> bool {
    late >= MIN_RTO
}

/// How many times slower than a real one the processor is, if it is emulated:
/// scripts/kernels/inside says so.
pub(crate) fn slowness() -> u32 {
    std::env::var("AIRTCP_SLOWNESS").map_or(1, |times| times.parse().expect("a number"))
}

/// From the link's return to the receiver's first new byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadTime {
    /// As measured.
    pub(crate) length: Duration,
    /// How much of it may be the machine's.
    pub(crate) allowance: Duration,
}

impl DeadTime {
    /// Whether the gateway keeps to the bar.
    pub(crate) fn is_within(self, bar: Duration) -> bool {
        self.length <= bar * slowness() + self.allowance
    }
}
