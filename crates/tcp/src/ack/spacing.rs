//! The smoothed time between data segments, which times the ACKs of several policies.

use super::LONGEST_DELAY;
use airtcp_core::{Duration, Instant};

/// Smoothed time between consecutive arrivals.
///
/// Gaps longer than 500 ms are left out: they are pauses, and no ACK waits that long.
#[derive(Clone, Debug)]
pub(super) struct Spacing {
    memory: u64,
    average: Option<Duration>,
    last: Option<Instant>,
}

impl Spacing {
    /// A new sample counts once, the average so far `memory` times. The first sample counts alone.
    pub(super) fn new(memory: u64) -> Self {
        Self { memory, average: None, last: None }
    }

    /// Takes an arrival of `segments` segments, merged if more than one.
    pub(super) fn on_arrival(&mut self, now: Instant, segments: u32) {
        let Some(last) = self.last.replace(now) else { return };
        let gap = now.since(last);
        if gap <= LONGEST_DELAY {
            let sample = gap / u64::from(segments.max(1));
            let memory = self.memory;
            self.average =
                Some(self.average.map_or(sample, |a| (a * memory + sample) / (memory + 1)));
        }
    }

    /// Excludes the gap that the next arrival ends.
    pub(super) fn interrupt(&mut self) {
        self.last = None;
    }

    /// Expected time for `segments` arrivals: as many average gaps, at most 500 ms; 500 ms without
    /// a sample.
    pub(super) fn expected(&self, segments: f64) -> Duration {
        self.average.map_or(LONGEST_DELAY, |average| average.mul_f64(segments).min(LONGEST_DELAY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(arrivals: &[u64]) -> Spacing {
        let mut spacing = Spacing::new(4);
        arrivals.iter().for_each(|ms| spacing.on_arrival(Instant::from_millis(*ms), 1));
        spacing
    }

    #[test]
    fn the_first_sample_is_the_average_and_later_ones_are_smoothed() {
        // TCP-DCA eq. 1 with β = 0.8: 10, then 0.8 · 10 + 0.2 · 20, then 0.8 · 12 + 0.2 · 2.
        assert_eq!(after(&[0, 10]).expected(1.0), Duration::from_millis(10));
        assert_eq!(after(&[0, 10, 30]).expected(1.0), Duration::from_millis(12));
        assert_eq!(after(&[0, 10, 30, 32]).expected(1.0), Duration::from_millis(10));
    }

    #[test]
    fn segments_that_were_merged_share_the_time_since_those_before() {
        let mut spacing = after(&[0, 10]);
        spacing.on_arrival(Instant::from_millis(50), 4);
        assert_eq!(spacing.expected(1.0), Duration::from_millis(10));
    }

    #[test]
    fn a_pause_is_no_spacing() {
        assert_eq!(after(&[0, 10, 511]).expected(1.0), Duration::from_millis(10));
        assert_eq!(after(&[0, 10, 510]).expected(1.0), Duration::from_millis(108));
    }

    #[test]
    fn nothing_is_expected_later_than_half_a_second() {
        assert_eq!(after(&[]).expected(1.0), Duration::from_millis(500));
        assert_eq!(after(&[0, 100]).expected(6.0), Duration::from_millis(500));
    }
}
