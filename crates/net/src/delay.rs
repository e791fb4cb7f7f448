//! Delay distributions, and the part of a link that turns a departure into an arrival.

use crate::config::{DelayConfig, Distribution};
use airtcp_core::{Duration, Instant, Stream};

impl Distribution {
    /// Draws the delay of a packet that leaves at `at`.
    pub fn sample(&self, at: Instant, stream: &mut Stream) -> Duration {
        match self {
            Self::Constant(delay) => *delay,
            Self::Uniform { low, high } => stream.duration(*low, *high),
            // Negative draws become zero in the conversion.
            Self::Normal { mean, deviation } => {
                Duration::from_secs_f64(stream.normal(mean.as_secs_f64(), deviation.as_secs_f64()))
            }
            Self::Exponential { offset, mean } => {
                *offset + Duration::from_secs_f64(stream.exponential(mean.as_secs_f64()))
            }
            Self::Mixture(parts) => {
                let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
                let mut rest = stream.uniform(0.0, total);
                for (weight, part) in parts {
                    if rest < *weight {
                        return part.sample(at, stream);
                    }
                    rest -= weight;
                }
                // Reached only through rounding in the sums.
                parts.last().map_or(Duration::ZERO, |(_, part)| part.sample(at, stream))
            }
            Self::Table(delays) => delays.at(at),
        }
    }

    /// The lower bound of all draws.
    pub fn lower_bound(&self) -> Duration {
        match self {
            Self::Constant(delay) => *delay,
            Self::Uniform { low, .. } => *low,
            Self::Normal { .. } => Duration::ZERO,
            Self::Exponential { offset, .. } => *offset,
            Self::Mixture(parts) => {
                parts.iter().map(|(_, part)| part.lower_bound()).min().unwrap_or(Duration::ZERO)
            }
            Self::Table(delays) => delays.values().min().unwrap_or(Duration::ZERO),
        }
    }

    /// The expectation. For [`Distribution::Normal`] it is that of max(X, 0), which exceeds `mean`
    /// if negative draws matter; for a table, the mean of its lines.
    pub fn mean(&self) -> Duration {
        match self {
            Self::Constant(delay) => *delay,
            Self::Uniform { low, high } => *low + (*high - *low) / 2,
            Self::Normal { mean, deviation } => {
                let (mu, sigma) = (mean.as_secs_f64(), deviation.as_secs_f64());
                if sigma == 0.0 {
                    return *mean;
                }
                // E max(X, 0) = mu Phi(mu/sigma) + sigma phi(mu/sigma).
                let z = mu / sigma;
                let cdf = 0.5 * (1.0 + libm::erf(z * std::f64::consts::FRAC_1_SQRT_2));
                let pdf = libm::exp(-0.5 * z * z) / libm::sqrt(std::f64::consts::TAU);
                Duration::from_secs_f64(mu * cdf + sigma * pdf)
            }
            Self::Exponential { offset, mean } => *offset + *mean,
            Self::Mixture(parts) => {
                let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
                let sum: f64 = parts.iter().map(|(w, part)| w * part.mean().as_secs_f64()).sum();
                Duration::from_secs_f64(sum / total)
            }
            Self::Table(delays) => {
                let sum: f64 = delays.values().map(Duration::as_secs_f64).sum();
                Duration::from_secs_f64(sum / delays.values().count() as f64)
            }
        }
    }
}

/// The propagation delay of a link, with the random stream of its variation.
#[derive(Clone, Debug)]
pub(crate) struct Delay {
    base: Duration,
    variation: Option<Box<Varying>>,
}

#[derive(Clone, Debug)]
struct Varying {
    from: Instant,
    distribution: Distribution,
    fifo: bool,
    stream: Stream,
}

impl Varying {
    #[inline(never)]
    fn draw(&mut self, departure: Instant) -> Duration {
        self.distribution.sample(departure, &mut self.stream)
    }
}

impl Delay {
    pub(crate) fn new(config: &DelayConfig, stream: Stream) -> Self {
        let variation = config.variation.as_ref().map(|v| {
            let (from, fifo, distribution) = (v.from, v.fifo, v.distribution.clone());
            Box::new(Varying { from, distribution, fifo, stream })
        });
        Self { base: config.base, variation }
    }

    /// The same for all packets.
    pub(crate) fn constant(delay: Duration) -> Self {
        Self { base: delay, variation: None }
    }

    /// The delay of the packet that departs at `departure`. Call once per packet, in order of
    /// departure.
    #[inline]
    pub(crate) fn draw(&mut self, departure: Instant) -> Duration {
        match &mut self.variation {
            Some(v) if departure >= v.from => v.draw(departure),
            _ => self.base,
        }
    }

    /// The delay without its variation.
    pub(crate) fn base(&self) -> Duration {
        self.base
    }

    /// True if all packets have the same delay.
    pub(crate) fn is_constant(&self) -> bool {
        self.variation.is_none()
    }

    /// True if packets may overtake each other.
    pub(crate) fn reorders(&self) -> bool {
        self.variation.as_ref().is_some_and(|v| !v.fifo)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::Variation;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Packet Control, Table I: the one-way delay of the wireless link.
    pub(crate) fn packet_control_delay() -> Distribution {
        let part =
            |weight, low, high| (weight, Distribution::Uniform { low: ms(low), high: ms(high) });
        Distribution::Mixture(vec![
            part(80.0, 153, 195),
            part(10.0, 195, 225),
            part(8.0, 225, 297),
            part(2.0, 297, 621),
        ])
    }

    #[test]
    fn sample_means_agree_with_the_analytic_means() {
        let distributions = [
            Distribution::Constant(ms(10)),
            Distribution::Uniform { low: ms(10), high: ms(30) },
            Distribution::Normal { mean: ms(50), deviation: ms(5) },
            // A third of the draws would be negative without the cut.
            Distribution::Normal { mean: ms(10), deviation: ms(20) },
            Distribution::Exponential { offset: ms(7), mean: ms(20) },
            packet_control_delay(),
        ];
        let n = 40_000;
        for (i, distribution) in distributions.iter().enumerate() {
            let mut stream = Stream::new(1, &format!("test/{i}"));
            let draws: Vec<_> =
                (0..n).map(|_| distribution.sample(Instant::ZERO, &mut stream)).collect();
            let mean = draws.iter().copied().sum::<Duration>() / n;
            let expected = distribution.mean();
            // 2 %: four standard errors of the widest distribution (20 ms / sqrt(n) = 0.1 ms).
            assert!(mean.abs_diff(expected) <= expected / 50, "{distribution:?}: {mean}");
            assert!(draws.iter().all(|&d| d >= distribution.lower_bound()));
        }
    }

    #[test]
    fn the_packet_control_mixture_has_mean_190_3_ms() {
        // 0.8·174 + 0.1·210 + 0.08·261 + 0.02·459 = 190.26 ms.
        assert_eq!(packet_control_delay().mean(), Duration::from_micros(190_260));
        assert_eq!(packet_control_delay().lower_bound(), ms(153));
    }

    #[test]
    fn a_normal_far_from_zero_keeps_its_mean() {
        let normal = Distribution::Normal { mean: ms(50), deviation: ms(5) };
        assert!(normal.mean().abs_diff(ms(50)) < Duration::from_nanos(10));
        let constant = Distribution::Normal { mean: ms(50), deviation: ms(0) };
        assert_eq!(constant.mean(), ms(50));
    }

    #[test]
    fn variation_starts_with_the_first_departure_at_its_time() {
        let config = DelayConfig {
            base: ms(170),
            variation: Some(Variation {
                from: Instant::from_millis(500),
                distribution: Distribution::Constant(ms(200)),
                fifo: false,
            }),
        };
        let mut delay = Delay::new(&config, Stream::new(1, "test"));
        assert_eq!(delay.draw(Instant::from_millis(499)), ms(170));
        assert_eq!(delay.draw(Instant::from_millis(500)), ms(200));
    }
}
