//! Lateness of released packets: the emulator's measure of its own accuracy.

use airtcp_core::Duration;
use hdrhistogram::Histogram;

/// Distribution of lateness: the time from when a packet is due to when the kernel gets it.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// Lateness in nanoseconds.
    histogram: Histogram<u64>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        // Three significant digits up to a minute; the bounds are constants that the histogram
        // accepts.
        let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3);
        Self { histogram: histogram.expect("the bounds are in range") }
    }

    pub(crate) fn record(&mut self, late: Duration) {
        self.histogram.saturating_record(late.as_nanos());
    }

    /// Number of packets released.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The lateness at `quantile` (0 to 1); zero if there were no packets.
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(quantile))
    }

    /// Largest lateness.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_packets() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.quantile(0.99), Duration::ZERO);
        for n in 1..=100 {
            lateness.record(Duration::from_micros(n));
        }
        let near = |a: Duration, micros| a.abs_diff(Duration::from_micros(micros)).as_nanos() < 100;
        assert_eq!(lateness.count(), 100);
        assert!(near(lateness.quantile(0.5), 50), "{}", lateness.quantile(0.5));
        assert!(near(lateness.quantile(0.99), 99), "{}", lateness.quantile(0.99));
        assert!(near(lateness.max(), 100), "{}", lateness.max());
    }
}
