//! The retransmission time-out (RFC 6298, with Karn's algorithm and optional coarse ticks).

use super::deviation::Deviation;
use super::{Backoff, Expiry, RtoPolicy};
use crate::config::{RtoConfig, RttVariation, TcpConfig};
use airtcp_core::{Duration, Histogram, SeqNum};
use std::sync::Arc;

/// RTT estimate and retransmission time-out.
///
/// Karn's algorithm (RFC 6298 §3) is up to the caller: it passes no sample of a retransmitted
/// segment unless timestamps resolve the ambiguity. The back-off stays until the next valid sample
/// (§5.7).
#[derive(Debug)]
pub struct RtoEstimator {
    /// Shared, as an endpoint's is.
    config: Arc<TcpConfig>,
    policy: Box<dyn RtoPolicy>,
    estimate: Option<Estimate>,
    /// Set with [`RttVariation::Linux`] once there is a sample.
    deviation: Option<Box<Deviation>>,
    samples: RttSamples,
    /// The SYN was sent again: data starts with the time-out for this case.
    syn_lost: bool,
    backoff: u32,
    /// The time-out in force, from all of the above.
    rto: Duration,
}

/// All RTT samples of a connection, as measured: a coarse clock's ticks are not in them.
#[derive(Clone, Debug, Default)]
pub struct RttSamples {
    histogram: Histogram,
    least: Option<Duration>,
    latest: Option<Duration>,
    /// Sum of the differences between consecutive samples.
    variation: Duration,
}

impl RttSamples {
    fn record(&mut self, rtt: Duration) {
        self.histogram.record(rtt);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.variation += self.latest.map_or(Duration::ZERO, |latest| latest.abs_diff(rtt));
        self.latest = Some(rtt);
    }

    /// Distribution of the samples.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Smallest sample; `None` before the first one.
    pub fn least(&self) -> Option<Duration> {
        self.least
    }

    /// Mean difference between a sample and the one before it; `None` before the second sample.
    pub fn jitter(&self) -> Option<Duration> {
        let differences = self.histogram.count().checked_sub(1).filter(|&n| n > 0)?;
        Some(self.variation / differences)
    }
}

/// A smoothed RTT and its variation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// SRTT, as RFC 6298 defines it.
    pub srtt: Duration,
    /// RTTVAR, as RFC 6298 defines it.
    pub rttvar: Duration,
}

impl RtoEstimator {
    /// An estimator without samples: the initial RTO is in force.
    pub fn new(config: Arc<TcpConfig>, policy: Box<dyn RtoPolicy>) -> Self {
        let mut estimator = Self {
            config,
            policy,
            estimate: None,
            deviation: None,
            samples: RttSamples::default(),
            syn_lost: false,
            backoff: 0,
            rto: Duration::ZERO,
        };
        estimator.update();
        estimator
    }

    /// Takes a sample (RFC 6298 §2.2, §2.3) and clears the back-off. `una` and `nxt` are SND.UNA
    /// and SND.NXT after the ACK that brought it.
    pub fn sample(&mut self, rtt: Duration, una: SeqNum, nxt: SeqNum) {
        self.samples.record(rtt);
        let rtt = self.in_ticks(rtt);
        let RtoConfig { variation, min, .. } = self.config.rto;
        self.estimate = Some(match self.estimate {
            None => {
                let linux = variation == RttVariation::Linux;
                self.deviation = linux.then(|| Box::new(Deviation::new(rtt, nxt, min)));
                Estimate { srtt: rtt, rttvar: rtt / 2 }
            }
            Some(Estimate { srtt, rttvar }) => Estimate {
                // RTTVAR first: it uses the SRTT of before this sample.
                rttvar: match &mut self.deviation {
                    Some(deviation) => deviation.sample(rtt, srtt, una, nxt),
                    None => (rttvar * 3 + srtt.abs_diff(rtt)) / 4,
                },
                srtt: (srtt * 7 + rtt) / 8,
            },
        });
        self.backoff = 0;
        self.update();
    }

    /// After a spurious time-out, makes the estimates at least as large as before it and as the
    /// sample that revealed it (RFC 4015 §3.2 step 9).
    pub fn restore_after_spurious_timeout(&mut self, before: Estimate, sample: Option<Duration>) {
        let sample = sample.unwrap_or(Duration::ZERO);
        let rttvar = before.rttvar.max(sample / 2);
        self.estimate = Some(Estimate { srtt: before.srtt.max(sample), rttvar });
        if let Some(deviation) = &mut self.deviation {
            deviation.rise_to(rttvar);
        }
        self.backoff = 0;
        self.update();
    }

    /// The time-out in force: `SRTT + max(G, 4·RTTVAR)`, or SRTT and Linux's bound, within its
    /// limits, adjusted by the policy, times the configured factor, doubled for each back-off (RFC
    /// 6298 §2, §5.5).
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// Handles an expiry: the policy decides whether the time-out doubles (RFC 6298 §5.5).
    pub fn on_expiry(&mut self, expiry: &Expiry) {
        if self.policy.on_expiry(expiry) == Backoff::Double {
            self.backoff = self.backoff.saturating_add(1);
        }
        self.update();
    }

    /// Notes the loss of the SYN: data starts with the larger RTO, without back-off (RFC 6298
    /// §5.7).
    pub fn restart_after_syn_loss(&mut self) {
        self.syn_lost = true;
        self.backoff = 0;
        self.update();
    }

    /// Forgets all samples and the back-off: the path may be a new one.
    pub fn restart(&mut self) {
        self.estimate = None;
        self.backoff = 0;
        self.update();
    }

    fn update(&mut self) {
        let RtoConfig { initial, after_syn_loss, min, max, granularity, tick, factor, .. } =
            self.config.rto;
        let base = match self.estimate {
            None if self.syn_lost => after_syn_loss,
            None => initial,
            Some(Estimate { srtt, rttvar }) => {
                let variation = match &self.deviation {
                    Some(deviation) => deviation.bound(),
                    None => (rttvar * 4).max(granularity),
                };
                (srtt + variation).round_up_to(tick).max(min)
            }
        };
        let base = self.policy.time_out(base) * u64::from(factor);
        self.rto = (base * (1u64 << self.backoff.min(32))).min(max);
    }

    /// The estimate, once there is a sample.
    pub fn estimate(&self) -> Option<Estimate> {
        self.estimate
    }

    /// All samples so far, including those before a [restart](Self::restart).
    pub fn samples(&self) -> &RttSamples {
        &self.samples
    }

    /// Clock granularity G of RFC 6298.
    pub fn granularity(&self) -> Duration {
        self.config.rto.granularity
    }

    /// Rounds to whole ticks of a coarse clock: to the nearest number, at least one.
    fn in_ticks(&self, rtt: Duration) -> Duration {
        let tick = self.config.rto.tick;
        if tick.is_zero() {
            return rtt;
        }
        let ticks = (rtt + tick / 2).as_nanos() / tick.as_nanos();
        tick * ticks.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Exponential;
    use super::*;
    use airtcp_core::Instant;

    fn estimator(rto: RtoConfig) -> RtoEstimator {
        let config = Arc::new(TcpConfig { rto, ..TcpConfig::default() });
        RtoEstimator::new(config, Box::new(Exponential))
    }

    impl RtoEstimator {
        fn sample_of(&mut self, rtt: Duration) {
            self.sample(rtt, SeqNum(0), SeqNum(0));
        }
    }

    fn expire(estimator: &mut RtoEstimator) {
        let now = Instant::ZERO;
        estimator.on_expiry(&Expiry { now, count: 1, duplicate_acks: 0, handshake: false });
    }

    fn config(min: Duration, granularity: Duration) -> RtoConfig {
        RtoConfig { min, granularity, ..RtoConfig::default() }
    }

    /// RFC 6298 §2 by hand, G = 0: (sample, SRTT, RTTVAR, SRTT + 4·RTTVAR).
    const WORKED: [(f64, f64, f64, f64); 10] = [
        (0.200, 0.200000, 0.100000, 0.600000),
        (0.240, 0.205000, 0.085000, 0.545000),
        (0.180, 0.201875, 0.070000, 0.481875),
        (0.600, 0.251641, 0.152031, 0.859766),
        (0.200, 0.245186, 0.126934, 0.752920),
        (0.200, 0.239537, 0.106497, 0.665524),
        (0.190, 0.233345, 0.092257, 0.602372),
        (1.500, 0.391677, 0.385856, 1.935102),
        (0.200, 0.367717, 0.337311, 1.716963),
        (0.200, 0.346753, 0.294913, 1.526405),
    ];

    fn close(d: Duration, expected: f64) -> bool {
        (d.as_secs_f64() - expected).abs() <= 0.51e-6
    }

    #[test]
    fn worked_example_to_six_digits() {
        let mut free = estimator(config(Duration::ZERO, Duration::ZERO));
        let mut bounded = estimator(config(Duration::from_secs(1), Duration::ZERO));
        assert_eq!(bounded.rto(), Duration::from_secs(1));
        for (sample, srtt, rttvar, rto) in WORKED {
            for e in [&mut free, &mut bounded] {
                e.sample_of(Duration::from_secs_f64(sample));
            }
            let e = free.estimate().unwrap();
            assert!(close(e.srtt, srtt) && close(e.rttvar, rttvar), "{sample}: {e:?}");
            assert!(close(free.rto(), rto), "{sample}: {}", free.rto());
            assert!(close(bounded.rto(), rto.max(1.0)));
        }
    }

    #[test]
    fn granularity_is_a_floor_of_the_variation_term() {
        // RFC 6298 §2 by hand, G = 0.5 s.
        let mut e = estimator(config(Duration::ZERO, Duration::from_millis(500)));
        for (ms, rto) in
            [(22.9, 0.5229), (25.0, 0.5232), (23.0, 0.5231), (22.0, 0.5230), (200.0, 0.5451)]
        {
            e.sample_of(Duration::from_secs_f64(ms / 1000.0));
            assert!((e.rto().as_secs_f64() - rto).abs() < 5.1e-5, "{ms}: {}", e.rto());
        }
    }

    #[test]
    fn backs_off_to_the_maximum_and_forgets_on_a_sample() {
        let max = Duration::from_secs(64);
        let mut e = estimator(RtoConfig { max, ..RtoConfig::default() });
        let mut expiry = 0;
        let expiries: Vec<u64> = (0..7)
            .map(|_| {
                expiry += e.rto().as_millis() / 1000;
                expire(&mut e);
                expiry
            })
            .collect();
        assert_eq!(expiries, [1, 3, 7, 15, 31, 63, 127]);
        for _ in 0..100 {
            expire(&mut e);
        }
        assert_eq!(e.rto(), max);
        e.sample_of(Duration::from_millis(10));
        assert_eq!(e.rto(), Duration::from_secs(1));
    }

    #[test]
    fn a_factor_stretches_the_bounded_time_out_and_its_back_off() {
        // TCP-DCA Table II: the retransmission timer of TCP-DAA is increased fivefold.
        let mut e = estimator(RtoConfig { factor: 5, ..RtoConfig::default() });
        e.sample_of(Duration::from_millis(10));
        assert_eq!(e.rto(), Duration::from_secs(5));
        expire(&mut e);
        assert_eq!(e.rto(), Duration::from_secs(10));
        e.sample_of(Duration::from_millis(400)); // RTTVAR 101.25 ms, SRTT 58.75 ms
        assert_eq!(e.rto(), Duration::from_secs(5));
    }

    #[test]
    fn coarse_clock_counts_whole_ticks() {
        let tick = Duration::from_millis(10);
        let mut e = estimator(RtoConfig { tick, min: Duration::ZERO, ..RtoConfig::default() });
        e.sample_of(Duration::from_millis(214));
        assert_eq!(e.estimate().unwrap().srtt, Duration::from_millis(210));
        e.sample_of(Duration::from_millis(1));
        assert_eq!(e.rto().as_nanos() % tick.as_nanos(), 0);
    }
}
