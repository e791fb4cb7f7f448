//! HyStart++, a slow start that ends before it loses packets (RFC 9406).
//!
//! When the smallest RTT of a round trip exceeds that of the round before by a threshold, a queue
//! is building up, and cwnd grows four times slower (conservative slow start). If the RTT falls
//! again, it was no queue, and slow start goes on; otherwise congestion avoidance begins after five
//! rounds. It takes eight RTT samples a round, which only timestamps give.
//!
//! The RFC leaves open to which round the RTT of the ACK that ends a round belongs: here to the
//! next.
//!
//! Compared with §4.2 and §4.3 of the RFC as neqo and picoquic quote them beside their code, and
//! with that code.

use super::{Ack, Window};
use airtcp_core::{Duration, SeqNum};

/// Bounds of the rise of the RTT that starts CSS (RFC 9406 §4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// L: growth per ACK for a sender that does not pace, in segments.
const LIMIT: u32 = 8;

/// State of the first slow start of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStartPlusPlus {
    round_ends: Option<SeqNum>,
    samples: u32,
    /// Smallest RTT of this round and of the previous one.
    least: Option<Duration>,
    least_before: Option<Duration>,
    css: Option<Css>,
}

/// Conservative slow start (CSS).
#[derive(Clone, Copy, Debug)]
struct Css {
    baseline: Duration,
    /// Rounds in CSS, the first one included.
    rounds: u32,
}

impl HyStartPlusPlus {
    /// Handles newly acknowledged data in slow start: grows cwnd, or ends slow start.
    pub(super) fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        let is_new_round = self.round_ends.is_none_or(|end| ack.una.at_or_after(end));
        if is_new_round {
            let is_first = self.round_ends.replace(ack.max).is_none();
            if let Some(css) = self.css.as_mut().filter(|_| !is_first) {
                if css.rounds == CSS_ROUNDS {
                    window.set_ssthresh(window.cwnd());
                    return;
                }
                css.rounds += 1;
            }
            self.least_before = self.least.take();
            self.samples = 0;
        }
        let bytes = ack.acked.min(LIMIT.saturating_mul(window.smss()));
        window.grow(if self.css.is_some() { bytes / CSS_GROWTH_DIVISOR } else { bytes });
        if let Some(rtt) = ack.rtt {
            self.samples += 1;
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        }
        if self.samples >= RTT_SAMPLES {
            self.judge();
        }
    }

    /// Once there are enough samples, enters CSS if the RTT has risen since the last round, and
    /// leaves it if the RTT has fallen again.
    fn judge(&mut self) {
        let Some(least) = self.least else { return };
        match (self.css, self.least_before) {
            (Some(css), _) if least < css.baseline => self.css = None,
            (None, Some(before)) => {
                let threshold = (before / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if least >= before + threshold {
                    self.css = Some(Css { baseline: least, rounds: 1 });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SMSS, ack, window};
    use super::*;

    /// A slow start driven by rounds with chosen RTTs, in milliseconds; segments are acknowledged
    /// one at a time.
    struct Slow {
        hystart: HyStartPlusPlus,
        window: Window,
        una: SeqNum,
    }

    impl Slow {
        fn new() -> Self {
            let window = Window::new(SMSS, 10 * SMSS, None, None);
            Self { hystart: HyStartPlusPlus::default(), window, una: SeqNum(0) }
        }

        /// Acknowledges a round; returns the bytes by which cwnd grew for its last segment.
        fn round(&mut self, segments: u32, rtt: u64) -> u32 {
            let max = self.una + segments * SMSS;
            let mut grown = 0;
            for _ in 0..segments {
                let before = self.window.cwnd();
                self.una += SMSS;
                // What is sent now is acknowledged in the next round.
                let (una, max) = (self.una, max + segments * SMSS);
                let rtt = Some(Duration::from_millis(rtt));
                let ack = Ack { una, max, rtt, ..ack(SMSS) };
                if self.window.in_slow_start() {
                    self.hystart.on_growth(&mut self.window, &ack);
                }
                grown = self.window.cwnd() - before;
            }
            grown
        }
    }

    // The round that is over when una reaches what max was at its first ACK.
    fn rounds(rtts: &[u64]) -> (Slow, Vec<u32>) {
        let mut slow = Slow::new();
        let grown = rtts.iter().map(|&rtt| slow.round(20, rtt)).collect();
        (slow, grown)
    }

    // RFC 9406 §4.2: the threshold is an eighth of the RTT, from 4 to 16 ms.
    #[test]
    fn a_rise_of_the_rtt_slows_growth_to_a_quarter() {
        for (base, rise) in [(16, 4), (80, 10), (400, 16)] {
            let (_, grown) = rounds(&[base, base, base, base + rise - 1, base + rise - 1]);
            assert_eq!(grown, [SMSS; 5], "{base} ms and a rise below the threshold");
            let (_, grown) = rounds(&[base, base, base, base + rise, base + rise]);
            assert_eq!(grown.last(), Some(&(SMSS / 4)), "{base} ms and a rise of {rise}");
        }
    }

    #[test]
    fn a_round_with_few_samples_says_nothing() {
        let mut slow = Slow::new();
        let grown: Vec<u32> = [50, 50, 90, 130].map(|rtt| slow.round(7, rtt)).to_vec();
        assert_eq!(grown, [SMSS; 4]);
    }

    #[test]
    fn after_five_rounds_congestion_avoidance_begins() {
        let (slow, grown) = rounds(&[50, 50, 80, 80, 80, 80, 80]);
        assert!(slow.window.in_slow_start(), "{grown:?}");
        // The round in the middle of which CSS began is the first of the five.
        let (slow, _) = rounds(&[50, 50, 80, 80, 80, 80, 80, 80]);
        assert!(!slow.window.in_slow_start());
        assert_eq!(slow.window.ssthresh(), slow.window.cwnd());
    }

    #[test]
    fn slow_start_resumes_when_the_rtt_falls_again() {
        let (_, grown) = rounds(&[50, 50, 80, 80, 50, 50]);
        assert_eq!((grown[3], grown[5]), (SMSS / 4, SMSS));
    }

    #[test]
    fn an_ack_adds_eight_segments_at_most() {
        let (mut hystart, mut w) = (HyStartPlusPlus::default(), window(10, 1000));
        hystart.on_growth(&mut w, &ack(20 * SMSS));
        assert_eq!(w.cwnd(), 18 * SMSS);
    }
}
