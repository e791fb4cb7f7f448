//! Counts of durations in buckets of nearly equal relative width, for percentiles in constant time
//! per value and little memory.
//!
//! Below 66 µs the buckets are 1.024 µs wide; above, every doubling is divided into 32 buckets. A
//! [quantile](Histogram::quantile) is the middle of a bucket and so wrong by at most 1.6 %, or by
//! 0.5 µs if it is below 33 µs. The array reaches from the doubling of the least value to that of
//! the greatest: 128 B for each.

use crate::time::Duration;

/// Bits that a value loses: the smallest buckets are 2¹⁰ ns wide.
const UNIT: u32 = 10;
/// Every doubling is divided into 2⁵ buckets.
const SUBDIVISION: u32 = 5;

/// Counts of durations.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Number of zeros, the common value in an idle queue.
    zeros: u64,
    /// Number of positive values.
    positive: u64,
    /// The bucket of the first count, a multiple of the buckets of a doubling.
    first: usize,
    counts: Vec<u32>,
}

impl Histogram {
    /// Counts a value. Allocates only if it is in a doubling below or above those of all others.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        if value.is_zero() {
            self.zeros += 1;
            return;
        }
        self.positive += 1;
        let bucket = bucket(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.grow(bucket),
        }
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.make_room(bucket);
        self.counts[bucket - self.first] = 1;
    }

    /// Extends the array to a bucket outside of it.
    fn make_room(&mut self, bucket: usize) {
        let doubling = 1 << SUBDIVISION;
        let start = bucket - bucket % doubling;
        if self.counts.is_empty() {
            self.first = start;
        }
        let below = self.first.saturating_sub(start);
        self.counts.splice(0..0, std::iter::repeat_n(0, below));
        self.first -= below;
        let needed = start + doubling - self.first;
        self.counts.resize(needed.max(self.counts.len()), 0);
    }

    /// Counts the values of another, too.
    pub fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        self.positive += other.positive;
        for (bucket, &count) in (other.first..).zip(&other.counts).filter(|(_, count)| **count > 0)
        {
            if self.counts.get(bucket.wrapping_sub(self.first)).is_none() {
                self.make_room(bucket);
            }
            let own = &mut self.counts[bucket - self.first];
            *own = own.saturating_add(count);
        }
    }

    /// Number of values recorded, zeros included.
    pub fn count(&self) -> u64 {
        self.zeros + self.positive
    }

    /// The least duration that at least the fraction `q` of the values do not exceed (the nearest
    /// rank), to the precision of a bucket; `None` without values.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = ((self.count() as f64 * q).ceil() as u64).clamp(1, self.count().max(1));
        let mut below = self.zeros;
        if rank <= below {
            return Some(Duration::ZERO);
        }
        for (bucket, &count) in (self.first..).zip(&self.counts) {
            below += u64::from(count);
            if rank <= below {
                return Some(middle(bucket));
            }
        }
        None
    }
}

/// The bucket of a value.
#[inline]
fn bucket(value: Duration) -> usize {
    let units = value.as_nanos() >> UNIT;
    // How often a value must be halved to have no more than SUBDIVISION + 1 bits.
    let halvings = (u64::BITS - units.leading_zeros()).saturating_sub(SUBDIVISION + 1);
    (u64::from(halvings << SUBDIVISION) + (units >> halvings)) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> Duration {
    let bucket = bucket as u64;
    let halvings = (bucket >> SUBDIVISION).saturating_sub(1);
    let units = bucket - (halvings << SUBDIVISION);
    let width = 1 << (UNIT as u64 + halvings);
    Duration::from_nanos(units * width + width / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_middle_and_is_narrow() {
        let mut value = 1;
        while value < 1 << 60 {
            let there = middle(bucket(Duration::from_nanos(value)));
            assert_eq!(bucket(there), bucket(Duration::from_nanos(value)), "{value} ns");
            let error = (there.as_nanos() as f64 - value as f64).abs();
            assert!(error <= (0.016 * value as f64).max(513.0), "{value} ns: {there:?}");
            value += 1 + value / 7;
        }
    }

    #[test]
    fn buckets_are_in_the_order_of_values_and_none_is_left_out() {
        let of = |units: u64| bucket(Duration::from_nanos(units << UNIT));
        let buckets: Vec<usize> = (0..5000).map(of).collect();
        assert!(buckets.windows(2).all(|pair| pair[1] - pair[0] <= 1), "{buckets:?}");
    }

    #[test]
    fn merged_counts_are_those_of_all_values() {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&ns| histogram.record(Duration::from_nanos(ns)));
            histogram
        };
        let parts: [&[u64]; 4] = [&[0, 5_000_000], &[2_000, 900_000_000], &[], &[40_000_000, 0]];
        let mut merged = Histogram::default();
        parts.iter().for_each(|part| merged.merge(&of(part)));
        let whole = of(&parts.concat());
        assert_eq!(merged.count(), whole.count());
        for q in 0..=20 {
            let q = f64::from(q) / 20.0;
            assert_eq!(merged.quantile(q), whole.quantile(q), "{q}");
        }
    }

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        for (q, ms) in
            [(0.0, 1.0), (0.01, 1.0), (0.5, 50.0), (0.95, 95.0), (0.99, 99.0), (1.0, 100.0)]
        {
            let there = histogram.quantile(q).unwrap().as_secs_f64() * 1e3;
            assert!((there / ms - 1.0).abs() < 0.016, "{q}: {there} ms");
        }
    }

    #[test]
    fn values_may_come_in_any_order() {
        let mut histogram = Histogram::default();
        for ms in [40, 3, 700, 0, 5_000, 1] {
            histogram.record(Duration::from_millis(ms));
        }
        for (rank, ms) in [(2, 1.0), (3, 3.0), (4, 40.0), (5, 700.0), (6, 5000.0)] {
            let there = histogram.quantile(f64::from(rank) / 6.0).unwrap().as_secs_f64() * 1e3;
            assert!((there / ms - 1.0).abs() < 0.016, "{rank}: {there} ms");
        }
    }

    #[test]
    fn zeros_count() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for ms in [0, 0, 0, 40] {
            histogram.record(Duration::from_millis(ms));
        }
        assert_eq!(histogram.count(), 4);
        assert_eq!(histogram.quantile(0.75), Some(Duration::ZERO));
        assert!(histogram.quantile(0.76) > Some(Duration::from_millis(39)));
    }
}
