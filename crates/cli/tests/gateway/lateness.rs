//! Lateness of this machine: a thread that should run every 2 ms records its delays.
//!
//! A busy machine delays emulator, gateway and test alike. Such a delay is not the gateway's dead
//! time, so a bar is raised by the lateness that was recorded meanwhile.

use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Period of the thread.
const PERIOD: Duration = Duration::from_millis(2);

/// Programs that run one after the other: from the link's return to the receiver's byte these are
/// the test that signals the gateway, the gateway, the emulator for a segment to the mobile, for its
/// answer and for new data, and the receiver. A round trip has fewer.
const TURNS: u32 = 6;

/// Times at which the thread was late by more than its period, and by how much.
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

/// Largest lateness of this machine from `since` on; zero if it is idle.
fn worst(since: Instant) -> Duration {
    let late = LATE.lock().unwrap();
    let overlapping = late.iter().filter(|(due, late)| *due + *late >= since);
    overlapping.map(|(_, late)| *late).max().unwrap_or_default()
}

/// Delay that a machine as late as this one was from `since` on adds to a chain of programs.
pub(crate) fn allowance(since: Instant) -> Duration {
    worst(since) * TURNS
}

/// No sender's timer is shorter (Linux, `TCP_RTO_MIN`).
const MIN_RTO: Duration = Duration::from_millis(200);

/// True if a sender's timer may have expired only because the machine was late in each of the
/// programs that a segment and its ACK pass.
pub(crate) fn explains_timeouts(allowance: Duration) -> bool {
    allowance >= MIN_RTO
}

/// Factor by which the processor is slower than a real one, if it is emulated:
/// scripts/kernels/inside sets it.
pub(crate) fn slowness() -> u32 {
    std::env::var("AIRTCP_SLOWNESS").map_or(1, |times| times.parse().expect("a number"))
}

/// A time without data, such as that from the link's return to the receiver's first new byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Length as measured, with the machine's part.
    pub(crate) length: Duration,
    /// Part of it that the machine may have caused.
    pub(crate) allowance: Duration,
}

impl Wait {
    /// True if the gateway keeps to the bar.
    pub(crate) fn is_within(self, bar: Duration) -> bool {
        self.length <= bar * slowness() + self.allowance
    }
}
