//! HyStart, a slow start that ends before it loses packets, as Linux has it (`tcp_cubic.c`; Ha and
//! Rhee, "Taming the Elephants: New TCP Slow Start", Computer Networks 55(9), 2011).
//!
//! Two signs that the path is full end slow start, from a window of 16 segments on:
//! - ACKs that follow each other within 2 ms have come for half of the smallest RTT since the round
//!   began: the path holds that many segments in one direction. For a paced sender, which spreads
//!   its segments, the whole RTT counts.
//! - The smallest of more than eight RTTs of a round is above the smallest of all by an eighth, at
//!   least 4 ms and at most 16 ms: a queue is building up.
//!
//! It acts in every slow start until it has found the end of one; a time-out makes it look again.
//!
//! Where this differs from Linux:
//! - Nothing is found in fast recovery, where cwnd can be below ssthresh for a while.
//! - The first round begins with the first RTT sample, not with the connection.

use super::{Ack, Window};
use crate::recovery::RecoveryPhase;
use airtcp_core::{Bytes, Duration, Instant, SeqNum};

/// Linux's `hystart_low_window`: least window at which slow start may end, in segments.
const LOW_WINDOW: u32 = 16;
/// `hystart_ack_delta_us`: the largest gap in a train of ACKs.
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Longest delay that segmentation offload may add to a train.
const OFFLOAD_DELAY: Duration = Duration::from_millis(1);
/// The largest bursts that offload makes: four of 64 kB.
const OFFLOAD_BURST: Bytes = Bytes(4 << 16);
/// `HYSTART_MIN_SAMPLES`; the sample after these decides.
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`.
const LEAST_RISE: Duration = Duration::from_millis(4);
const MOST_RISE: Duration = Duration::from_millis(16);

/// Search for the end of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// The sender is paced.
    paced: bool,
    found: bool,
    min_rtt: Option<Duration>,
    round: Option<Round>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    start: Instant,
    end: SeqNum,
    /// Time of the last ACK of the train.
    last: Instant,
    samples: u32,
    min_rtt: Duration,
}

impl HyStart {
    pub(super) fn new(paced: bool) -> Self {
        Self { paced, ..Self::default() }
    }

    /// Measures an ACK in any phase; ends slow start if it finds its end.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let Some(rtt) = ack.newest_rtt() else { return };
        let min_rtt = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(min_rtt);
        if self.found || !window.in_slow_start() || ack.phase == RecoveryPhase::Recovery {
            return;
        }
        let fresh = Round {
            start: ack.now,
            end: ack.max,
            last: ack.now,
            samples: 0,
            min_rtt: Duration::MAX,
        };
        let round = match &mut self.round {
            Some(round) if !ack.una.after(round.end) => round,
            round => round.insert(fresh),
        };
        if window.cwnd() < LOW_WINDOW * window.smss() {
            return;
        }
        let train = min_rtt + offload_delay(window, ack);
        let train = if self.paced { train } else { train / 2 };
        if round.is_train(ack.now, train) || round.is_delayed(rtt, min_rtt) {
            self.found = true;
            window.set_ssthresh(window.cwnd());
        }
    }

    /// Discards the measurements after a time-out: the path may have changed.
    pub(super) fn on_timeout(&mut self) {
        *self = Self::new(self.paced);
    }
}

impl Round {
    /// True if ACKs without a gap have come for longer than `longest` since the round began.
    fn is_train(&mut self, now: Instant, longest: Duration) -> bool {
        if now.since(self.last) > ACK_DELTA {
            return false;
        }
        self.last = now;
        now.since(self.start) > longest
    }

    /// True if enough samples all exceed the smallest RTT by more than the threshold.
    fn is_delayed(&mut self, rtt: Duration, min_rtt: Duration) -> bool {
        self.min_rtt = self.min_rtt.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.min_rtt > min_rtt + (min_rtt / 8).clamp(LEAST_RISE, MOST_RISE)
    }
}

/// Transmission time of an offload burst at twice the window per RTT, Linux's pacing rate in slow
/// start.
fn offload_delay(window: &Window, ack: &Ack) -> Duration {
    let Some(srtt) = ack.srtt else { return Duration::ZERO };
    let burst = srtt * OFFLOAD_BURST.get() / (2 * u64::from(window.cwnd()));
    burst.min(OFFLOAD_DELAY)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SMSS, ack};
    use super::*;

    /// A slow start driven by ACKs with chosen RTTs and times.
    struct Slow {
        hystart: HyStart,
        window: Window,
        now: Instant,
        una: SeqNum,
    }

    impl Slow {
        fn new(segments: u32) -> Self {
            let window = Window::new(SMSS, segments * SMSS, None, None);
            let una = SeqNum(u32::MAX - 30_000);
            Self { hystart: HyStart::new(false), window, now: Instant::from_millis(1), una }
        }

        /// A round of `acks` ACKs, `gap` apart, that all give `rtt`, both in microseconds.
        fn round(&mut self, acks: u32, gap: u64, rtt: u64) -> bool {
            let max = self.una + 2 * acks * SMSS;
            for _ in 0..acks {
                self.una += SMSS;
                let rtt = Some(Duration::from_micros(rtt));
                let (now, una) = (self.now, self.una);
                let ack = Ack { now, una, max, rtt, srtt: rtt, ..ack(SMSS) };
                self.hystart.on_ack(&mut self.window, &ack);
                self.now += Duration::from_micros(gap);
            }
            // The next round is a pause later.
            self.now += Duration::from_millis(10);
            !self.window.in_slow_start()
        }
    }

    // `hystart_update`: half of 40 ms, and half of what offload may add (1 ms).
    #[test]
    fn a_train_of_acks_for_half_of_the_smallest_rtt_ends_slow_start() {
        assert!(!Slow::new(20).round(21, 1000, 40_000));
        let mut slow = Slow::new(20);
        assert!(slow.round(23, 1000, 40_000));
        assert_eq!(slow.window.ssthresh(), slow.window.cwnd());
    }

    // All of it, where pacing has spread them.
    #[test]
    fn a_paced_train_may_be_twice_as_long() {
        for (acks, ends) in [(41, false), (44, true)] {
            let mut slow = Slow { hystart: HyStart::new(true), ..Slow::new(20) };
            assert_eq!(slow.round(acks, 1000, 40_000), ends, "{acks}");
        }
    }

    // `hystart_ack_delta_us`.
    #[test]
    fn a_gap_of_more_than_two_milliseconds_breaks_a_train() {
        assert!(Slow::new(20).round(30, 2000, 40_000));
        assert!(!Slow::new(20).round(30, 2100, 40_000));
    }

    // `HYSTART_DELAY_THRESH`: an eighth, from 4 to 16 ms, exceeded by the smallest of nine samples.
    #[test]
    fn a_rise_of_the_rtt_ends_slow_start() {
        for (base, rise) in [(16, 4), (80, 10), (400, 16)] {
            for (over, ends) in [(0, false), (1, true)] {
                let mut slow = Slow::new(20);
                slow.round(20, 3000, base * 1000);
                slow.round(20, 3000, base * 1000);
                assert_eq!(slow.round(20, 3000, (base + rise) * 1000 + over), ends, "{base}");
            }
        }
    }

    #[test]
    fn eight_samples_are_too_few() {
        for (acks, ends) in [(8, false), (10, true)] {
            let mut slow = Slow::new(20);
            slow.round(20, 3000, 40_000);
            assert!(!slow.round(20, 3000, 40_000));
            assert_eq!(slow.round(acks, 3000, 90_000), ends, "{acks}");
        }
    }

    // `hystart_low_window`.
    #[test]
    fn a_window_below_16_segments_is_left_alone() {
        assert!(!Slow::new(15).round(40, 1000, 40_000));
        assert!(Slow::new(16).round(40, 1000, 40_000));
    }

    // `found` is cleared by `bictcp_reset` alone.
    #[test]
    fn it_looks_again_after_a_timeout_only() {
        let mut slow = Slow::new(20);
        assert!(slow.round(40, 1000, 40_000));
        slow.window.set_ssthresh(100 * SMSS);
        assert!(!slow.round(40, 1000, 40_000));
        slow.hystart.on_timeout();
        assert!(slow.round(40, 1000, 40_000));
    }
}
