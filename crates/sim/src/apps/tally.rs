//! Completion times of transfers: of answers to requests, or of transfers that arrive.

use crate::metrics::{TransferMetrics, percentiles};
use airtcp_core::{Bytes, DataRate, Duration, Event, Events, Histogram, Instant};

/// How long a transfer would take alone on the path of its flow, with no window in its way.
#[derive(Clone, Debug)]
pub(crate) struct Alone {
    /// Least delays on the way, until the first byte sets out and from then on.
    pub(crate) delay: Duration,
    /// Mean rates of the links that the data cross.
    pub(crate) rates: Vec<DataRate>,
    /// Most payload of a segment, and its headers.
    pub(crate) mss: Bytes,
    pub(crate) headers: Bytes,
}

impl Alone {
    fn time(&self, bytes: Bytes) -> Duration {
        let segments = bytes.get().div_ceil(self.mss.get());
        let all = bytes + self.headers * segments;
        let first = bytes.min(self.mss) + self.headers;
        let Some(slowest) = self.rates.iter().min() else { return self.delay };
        // The first segment crosses one link after another; the rest follows as the slowest lets
        // it.
        let crossing: Duration = self.rates.iter().map(|rate| rate.transmission_time(first)).sum();
        self.delay + crossing + slowest.transmission_time(all - first)
    }
}

/// Transfers of these sizes.
#[derive(Clone, Debug, Default)]
struct Class {
    times: Histogram,
    /// Their sum, s.
    total: f64,
    /// Ratios, one to a second.
    slowdowns: Histogram,
    slowdown_total: f64,
}

impl Class {
    fn record(&mut self, time: Duration, slowdown: Option<f64>) {
        self.times.record(time);
        self.total += time.as_secs_f64();
        if let Some(slowdown) = slowdown {
            self.slowdowns.record(Duration::from_secs_f64(slowdown));
            self.slowdown_total += slowdown;
        }
    }

    fn mean(&self) -> Option<f64> {
        mean(self.total, &self.times)
    }

    fn slowdown_mean(&self) -> Option<f64> {
        mean(self.slowdown_total, &self.slowdowns)
    }
}

fn mean(total: f64, of: &Histogram) -> Option<f64> {
    (of.count() > 0).then(|| total / of.count() as f64)
}

/// The classes of sizes of pFabric (Alizadeh et al., SIGCOMM 2013, §5.4): up to 100 kB, up to 10
/// MB, and above.
const CLASSES: [Bytes; 3] = [Bytes(100_000), Bytes(10_000_000), Bytes(u64::MAX)];

/// Counts transfers of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    alone: Option<Alone>,
    started: u64,
    aborted: u64,
    all: Class,
    classes: [Class; 3],
}

impl Tally {
    /// `alone` measures slowdowns; `None`: there are none.
    pub(crate) fn new(alone: Option<Alone>) -> Self {
        let (all, classes) = Default::default();
        Self { alone, started: 0, aborted: 0, all, classes }
    }

    /// Number of transfers that began.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Another transfer begins.
    pub(crate) fn start(&mut self) {
        self.started += 1;
    }

    /// The connection of an incomplete transfer was aborted.
    pub(crate) fn abort(&mut self) {
        self.aborted += 1;
    }

    /// A transfer is complete.
    pub(crate) fn complete(
        &mut self,
        now: Instant,
        number: u64,
        bytes: Bytes,
        time: Duration,
        events: &mut Events<'_>,
    ) {
        let slowdown =
            self.alone.as_ref().map(|alone| time.as_secs_f64() / alone.time(bytes).as_secs_f64());
        let class = CLASSES.iter().position(|&most| bytes <= most);
        self.all.record(time, slowdown);
        self.classes[class.expect("the last one holds all")].record(time, slowdown);
        events.emit(now, || Event::TransferCompleted { number, bytes, time });
    }

    /// The metrics of the flow `name`.
    pub(crate) fn metrics(&self, name: &str) -> TransferMetrics {
        let Self { alone: _, started, aborted, all, classes } = self;
        let [small, medium, large] = classes;
        let at = |of: &Histogram, q: f64| of.quantile(q).map(Duration::as_secs_f64);
        let [completion_p50, completion_p95, completion_p99] = percentiles(&all.times);
        let [slowdown_p50, slowdown_p95, slowdown_p99] = percentiles(&all.slowdowns);
        TransferMetrics {
            name: name.to_owned(),
            started: *started,
            completed: all.times.count(),
            aborted: *aborted,
            completion_mean: all.mean(),
            completion_p50,
            completion_p95,
            completion_p99,
            completion_cdf: (1..=100)
                .filter_map(|n| at(&all.times, f64::from(n) / 100.0))
                .collect(),
            slowdown_mean: all.slowdown_mean(),
            slowdown_p50,
            slowdown_p95,
            slowdown_p99,
            small_completed: small.times.count(),
            small_completion_mean: small.mean(),
            small_completion_p99: at(&small.times, 0.99),
            small_slowdown_mean: small.slowdown_mean(),
            small_slowdown_p99: at(&small.slowdowns, 0.99),
            medium_completed: medium.times.count(),
            medium_completion_mean: medium.mean(),
            medium_completion_p99: at(&medium.times, 0.99),
            medium_slowdown_mean: medium.slowdown_mean(),
            medium_slowdown_p99: at(&medium.slowdowns, 0.99),
            large_completed: large.times.count(),
            large_completion_mean: large.mean(),
            large_completion_p99: at(&large.times, 0.99),
            large_slowdown_mean: large.slowdown_mean(),
            large_slowdown_p99: at(&large.slowdowns, 0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alone_a_transfer_takes_its_delays_and_the_slowest_link() {
        let alone = Alone {
            delay: Duration::from_millis(30),
            rates: vec![DataRate::mbps(8), DataRate::mbps(1)],
            mss: Bytes(960),
            headers: Bytes(40),
        };
        // 1 ms and 8 ms for the first segment, 8 ms for each of two more.
        assert_eq!(alone.time(Bytes(2880)), Duration::from_millis(30 + 1 + 8 + 16));
        assert_eq!(alone.time(Bytes(60)), Duration::from_micros(30_000 + 100 + 800));
    }

    #[test]
    fn transfers_are_counted_by_their_size() {
        let alone = Alone {
            delay: Duration::from_secs(1),
            rates: vec![],
            mss: Bytes(1000),
            headers: Bytes(40),
        };
        let mut tally = Tally::new(Some(alone));
        for (number, (bytes, seconds)) in (0..).zip([(100_000, 2), (100_001, 4), (20_000_000, 6)]) {
            tally.start();
            let time = Duration::from_secs(seconds);
            tally.complete(Instant::ZERO, number, Bytes(bytes), time, &mut Events::none());
        }
        tally.start();
        tally.abort();
        let metrics = tally.metrics("f");
        assert_eq!((metrics.started, metrics.completed, metrics.aborted), (4, 3, 1));
        assert_eq!((metrics.completion_mean, metrics.slowdown_mean), (Some(4.0), Some(4.0)));
        assert_eq!(metrics.small_completion_mean, Some(2.0));
        assert_eq!(metrics.medium_slowdown_mean, Some(4.0));
        assert_eq!(metrics.large_completed, 1);
        assert!((metrics.completion_p50.expect("three") - 4.0).abs() < 0.07);
        assert_eq!(metrics.completion_cdf.len(), 100);
        assert!(metrics.completion_cdf.is_sorted());
    }

    #[test]
    fn without_a_path_there_is_no_slowdown() {
        let mut tally = Tally::new(None);
        tally.start();
        tally.complete(Instant::ZERO, 0, Bytes(1), Duration::from_secs(1), &mut Events::none());
        let metrics = tally.metrics("f");
        assert_eq!((metrics.slowdown_mean, metrics.completion_mean), (None, Some(1.0)));
        assert_eq!(Tally::new(None).metrics("f").completion_cdf, Vec::<f64>::new());
    }
}
