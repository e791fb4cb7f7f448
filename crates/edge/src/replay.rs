//! When to send a copy once more: to a mobile that came back, of data that the fixed host will not
//! send again (soon).
//!
//! The copies were sent once, in order. From then on it is a TCP sender's loss recovery in its
//! simplest form: the first copy goes out again after a time-out that doubles (RFC 6298 §5.5), and
//! on the third duplicate acknowledgement (RFC 5681 §3.2); after that each acknowledgement that
//! does not cover the loss to its end sends the next (RFC 6582 §3.2 step 3).

use airtcp_core::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// The first time-out (RFC 6298 §2.1: the value without an RTT sample).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest time-out (RFC 6298 §2.4).
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Duplicate acknowledgements that mean a loss.
const DUPLICATES: u8 = 3;

/// The state of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replay {
    deadline: Instant,
    timeout: Duration,
    duplicates: u8,
    /// The first copy was sent again: what it does not repair follows at once.
    recovering: bool,
}

impl Replay {
    /// All copies were sent now.
    pub fn new(now: Instant) -> Self {
        let (deadline, timeout) = (now + FIRST_TIMEOUT, FIRST_TIMEOUT);
        Self { deadline, timeout, duplicates: 0, recovering: false }
    }

    /// When the first copy is due again.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The deadline passed: the first copy is sent again.
    pub fn on_timeout(&mut self, now: Instant) {
        self.timeout = (self.timeout * 2).min(LONGEST_TIMEOUT);
        self.deadline = now + self.timeout;
        self.duplicates = 0;
        self.recovering = true;
    }

    /// The mobile acknowledged more, but not all. True: send the first copy again.
    pub fn on_progress(&mut self, now: Instant) -> bool {
        self.timeout = FIRST_TIMEOUT;
        self.deadline = now + self.timeout;
        self.duplicates = 0;
        self.recovering
    }

    /// The mobile repeated its acknowledgement. True: send the first copy again.
    pub fn on_duplicate(&mut self) -> bool {
        self.duplicates = (self.duplicates + 1).min(DUPLICATES + 1);
        let lost = self.duplicates == DUPLICATES && !self.recovering;
        self.recovering |= lost;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u64) -> Instant {
        Instant::from_secs(n)
    }

    #[test]
    fn the_timeout_doubles_up_to_a_minute_and_starts_anew_with_progress() {
        let mut replay = Replay::new(s(0));
        let mut waits = Vec::new();
        let mut now = s(0);
        for _ in 0..8 {
            waits.push(replay.deadline().since(now).as_millis() / 1000);
            now = replay.deadline();
            replay.on_timeout(now);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        replay.on_progress(now);
        assert_eq!(replay.deadline(), now + FIRST_TIMEOUT);
    }

    #[test]
    fn the_third_duplicate_means_a_loss_once() {
        let mut replay = Replay::new(s(0));
        let lost: Vec<bool> = (0..6).map(|_| replay.on_duplicate()).collect();
        assert_eq!(lost, [false, false, true, false, false, false]);
    }

    #[test]
    fn progress_that_does_not_repair_all_sends_the_next_copy() {
        let mut replay = Replay::new(s(0));
        assert!(!replay.on_progress(s(0)), "nothing was lost so far");
        replay.on_timeout(s(1));
        assert!(replay.on_progress(s(1)));
        assert!(replay.on_progress(s(1)));
    }
}
