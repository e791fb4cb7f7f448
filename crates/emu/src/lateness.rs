//! How late packets were released, and whether that still is emulation.

use airtcp_core::Duration;
use hdrhistogram::Histogram;

/// Time between the instant the model says and the instant a packet was handed to the kernel.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// Nanoseconds.
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

    /// Packets released.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The lateness that a part `quantile` (0 to 1) of the packets does not exceed; zero without
    /// packets.
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(quantile))
    }

    /// The largest.
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
