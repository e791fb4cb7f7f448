//! A rate that follows Rayleigh block fading.
//!
//! Read first: D. Tse, P. Viswanath, "Fundamentals of Wireless Communication", 2005, §5.4 and
//! §6.6. The gain of the channel is constant for a coherence time, a block, and independent from
//! block to block. Without a line of sight its power is exponential.
//!
//! A link that adapts its modulation and coding has a rate that follows the signal-to-noise ratio.
//! [`Efficiency`] has two rules for it: Shannon's bound, and the CQI table of LTE.
//!
//! The gain of a block depends on the seed, the link and the block's number alone, not on the
//! packets.

use crate::wifi::config::FREQUENCY;
use airtcp_core::{Bytes, DataRate, Duration, Instant, Stream};
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::units::Measure;
use airtcp_settings::{Reader, choice, settings};

/// Base unit: 1.
pub static DECIBELS: Measure = Measure {
    what: "a ratio",
    example: "15 dB",
    units: &[("dB", |x| libm::pow(10.0, x / 10.0))],
    show: |x| format!("{} dB", 10.0 * libm::log10(x)),
};

settings! {
    #[partial]
    /// Rayleigh block fading: the gain of the channel is independent from block to block, from link
    /// to link and in the two directions. The rate follows it at once and without errors.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[table("link.rate.fading", whole)]
    #[check(check_fading)]
    pub struct FadingConfig {
        /// Mean signal-to-noise ratio.
        #[kind = Kind::Measure(&DECIBELS)]
        pub snr: f64,
        /// Bandwidth that carries data. LTE of 10 MHz has 6.3 MHz: of 8400 resource elements in a
        /// millisecond, three symbols of control and the reference symbols of an antenna leave 6300.
        #[kind = Kind::Measure(&FREQUENCY)]
        pub bandwidth: f64,
        /// Length of a block.
        #[kind = POSITIVE_TIME]
        pub coherence_time: Duration,
        /// Rate by the signal-to-noise ratio.
        pub efficiency: Efficiency = Efficiency::Cqi,
    }
}

choice! {
    /// Bits per second and hertz by the signal-to-noise ratio.
    #[default(Cqi)]
    pub enum Efficiency {
        /// that of the best CQI (TS 36.213 table 7.2.3-1) that the ratio allows: up to 5.55, and
        /// nothing below -2.1 dB. CQI k with its efficiency e needs a ratio of 5.53 (2^e - 1), for
        /// bit errors of 0.00005 (Piro et al. 2010)
        Cqi = "cqi",
        /// the bound log2(1 + SNR)
        Shannon = "shannon",
    }
}

/// Efficiencies of CQI 1 to 15, bit/s/Hz (TS 36.213 table 7.2.3-1).
const CQI: [f64; 15] = [
    0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023,
    4.5234, 5.1152, 5.5547,
];

impl Efficiency {
    /// Bits per second and hertz.
    fn at(self, snr: f64) -> f64 {
        match self {
            Self::Shannon => libm::log1p(snr) / std::f64::consts::LN_2,
            Self::Cqi => {
                let most = libm::log1p(snr / GAP) / std::f64::consts::LN_2;
                match CQI.partition_point(|&efficiency| efficiency <= most) {
                    0 => 0.0,
                    cqi => CQI[cqi - 1],
                }
            }
        }
    }
}

/// The factor by which uncoded QAM with bit errors of 0.00005 needs a higher ratio than Shannon's
/// bound: -ln(5 · 0.00005) / 1.5 (G. Piro et al., "A two-level scheduling algorithm for QoS support
/// in the downlink of LTE cellular networks", European Wireless 2010).
const GAP: f64 = 5.529_366_426_734_685;

/// Blocks of which the mean is taken, at equal steps of the gain's distribution.
const SAMPLES: u32 = 1000;

impl FadingConfig {
    /// Bit/s while the gain of the channel is so many times the mean.
    fn bits_per_sec(&self, gain: f64) -> u64 {
        (self.bandwidth * self.efficiency.at(self.snr * gain)) as u64
    }

    /// The mean rate, to within 0.1 %.
    pub fn mean(&self) -> DataRate {
        let mean = match self.efficiency {
            Efficiency::Shannon => {
                let gain = |i| -libm::log((f64::from(i) + 0.5) / f64::from(SAMPLES));
                let of_gain = |i| self.efficiency.at(self.snr * gain(i));
                (0..SAMPLES).map(of_gain).sum::<f64>() / f64::from(SAMPLES)
            }
            // Few blocks may carry anything: each step of the table, times the probability that the
            // gain reaches it.
            Efficiency::Cqi => {
                let below = std::iter::once(0.0).chain(CQI);
                let step = |(below, efficiency)| {
                    let least = GAP * (libm::pow(2.0, efficiency) - 1.0);
                    (efficiency - below) * libm::exp(-least / self.snr)
                };
                below.zip(CQI).map(step).sum()
            }
        };
        let mean = (self.bandwidth * mean) as u64;
        DataRate::from_bits_per_sec(mean.max(1)).expect("is not zero")
    }
}

/// The shortest block: each takes time to draw.
const SHORTEST: Duration = Duration::from_micros(10);

fn check_fading<R: Reader>(from: &R, config: &FadingConfig) {
    if let Some((key, message, expected)) = config.mistake() {
        from.refuse(Some(key), message, &expected);
    }
}

impl FadingConfig {
    /// The key that is wrong, why, and what was expected.
    pub(crate) fn mistake(&self) -> Option<(&'static str, String, String)> {
        if self.coherence_time < SHORTEST {
            let message = format!("{} is too short", self.coherence_time);
            return Some(("coherence-time", message, format!("at least {SHORTEST}")));
        }
        if self.bandwidth.is_nan() || self.bandwidth <= 0.0 {
            let message = "is not above 0".to_owned();
            return Some(("bandwidth", message, "more than 0 Hz".to_owned()));
        }
        // A packet would wait for ever if hardly a block carried anything. The gain that one block
        // in a thousand exceeds:
        let best = self.bits_per_sec(-libm::log(0.001));
        (best < 1000).then(|| {
            let message = "fewer than one block in a thousand carry 1 kbit/s".to_owned();
            ("snr", message, "a higher ratio or more bandwidth".to_owned())
        })
    }
}

/// The rates of a link that fades.
#[derive(Clone, Debug)]
pub struct Fading {
    config: FadingConfig,
    /// As at the start.
    first: Stream,
    /// Its next draw is the gain of block `next`.
    stream: Stream,
    next: u64,
    /// Of block `next - 1`.
    bits_per_sec: u64,
}

impl Fading {
    /// A channel at the start of the run. Its stream is
    /// [`LinkStreams::of_fading`](crate::LinkStreams::of_fading).
    pub fn new(config: FadingConfig, stream: Stream) -> Self {
        Self { config, first: stream.clone(), stream, next: 0, bits_per_sec: 0 }
    }

    /// The rate in a block. Blocks in ascending order are fast.
    fn rate(&mut self, block: u64) -> u64 {
        if block + 1 == self.next {
            return self.bits_per_sec;
        }
        if block < self.next {
            (self.stream, self.next) = (self.first.clone(), 0);
        }
        while self.next < block {
            self.stream.bits();
            self.next += 1;
        }
        self.bits_per_sec = self.config.bits_per_sec(self.stream.exponential(1.0));
        self.next += 1;
        self.bits_per_sec
    }

    /// The bits that can be carried from `start` to `end`.
    pub fn bits_between(&mut self, start: Instant, end: Instant) -> u64 {
        u64::try_from(self.nanobits_between(start, end) / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// The same in nanobits.
    pub(crate) fn nanobits_between(&mut self, start: Instant, end: Instant) -> u128 {
        let mut now = start;
        let mut nanobits: u128 = 0;
        while now < end {
            let (rate, until) = self.block(now);
            let until = until.min(end);
            nanobits += u128::from(rate) * u128::from(until.since(now).as_nanos());
            now = until;
        }
        nanobits
    }

    /// The departure of a packet served from `start`.
    pub(crate) fn departure(&mut self, start: Instant, size: Bytes) -> Instant {
        let mut work = u128::from(size.get()) * 8_000_000_000;
        let mut now = start;
        loop {
            let (rate, until) = self.block(now);
            let done = u128::from(rate) * u128::from(until.since(now).as_nanos());
            if done >= work || until == Instant::MAX {
                let rest = work.div_ceil(u128::from(rate.max(1)));
                return now + Duration::from_nanos(u64::try_from(rest).unwrap_or(u64::MAX));
            }
            work -= done;
            now = until;
        }
    }

    /// The rate at `now`, and the end of the block.
    fn block(&mut self, now: Instant) -> (u64, Instant) {
        let block = now.as_nanos() / self.config.coherence_time.as_nanos();
        (self.rate(block), Instant::ZERO + self.config.coherence_time * (block + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(snr: f64, efficiency: Efficiency) -> FadingConfig {
        let coherence_time = Duration::from_millis(1);
        FadingConfig { snr, bandwidth: 10e6, coherence_time, efficiency }
    }

    fn fading(config: FadingConfig) -> Fading {
        Fading::new(config, Stream::new(1, "link/a/fading"))
    }

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    #[test]
    fn the_best_cqi_that_the_ratio_allows_gives_the_rate() {
        // TS 36.213 table 7.2.3-1; 5.53 (2^e - 1) is 0.6156 for CQI 1 and 254.2 for CQI 15.
        for (snr, expected) in
            [(0.615, 0.0), (0.616, 0.1523), (5.53, 0.8770), (254.1, 5.1152), (254.4, 5.5547)]
        {
            assert_eq!(Efficiency::Cqi.at(snr), expected, "{snr}");
        }
        assert_eq!(Efficiency::Shannon.at(1.0), 1.0);
        assert!((GAP + libm::log(5.0 * 0.000_05) / 1.5).abs() < 1e-15);
    }

    #[test]
    fn the_mean_rate_is_that_of_the_distribution() {
        // CQI: the sum of (e_k - e_(k-1)) exp(-threshold_k / snr). Shannon, by Tse and Viswanath
        // §5.4: e^(1/snr) E1(1/snr) / ln 2, of which E1(0.1) is 1.822924.
        let snr = 10.0;
        let mut expected = 0.0;
        let mut before = 0.0;
        for efficiency in CQI {
            let threshold = GAP * (libm::pow(2.0, efficiency) - 1.0);
            expected += (efficiency - before) * libm::exp(-threshold / snr);
            before = efficiency;
        }
        let shannon = libm::exp(0.1) * 1.822_924 / std::f64::consts::LN_2;
        for (efficiency, expected) in [(Efficiency::Cqi, expected), (Efficiency::Shannon, shannon)]
        {
            let config = config(snr, efficiency);
            let mean = config.mean().bits_per_sec() as f64 / 10e6;
            assert!((mean / expected - 1.0).abs() < 0.001, "{mean}, not {expected}");
            // 100 s: the standard error is 0.3 % or less.
            let bits = fading(config).bits_between(ms(0), ms(100_000)) as f64 / 1e9;
            assert!((bits / expected - 1.0).abs() < 0.012, "{bits}, not {expected}");
        }
    }

    #[test]
    fn the_mean_rate_is_right_where_few_blocks_carry_anything() {
        // -10.3 dB: 1 block in 700.
        let config = config(0.0933, Efficiency::Cqi);
        let mean = config.mean().bits_per_sec() as f64;
        let mut fading = fading(config);
        let n = 2_000_000;
        let sum: u64 = (0..n).map(|block| fading.rate(block)).sum();
        // 2700 blocks: the standard error is 2 %.
        let found = sum as f64 / n as f64;
        assert!((mean / found - 1.0).abs() < 0.08, "{mean}, not {found}");
    }

    #[test]
    fn the_power_is_exponential() {
        // With Shannon's bound, the rate exceeds B log2(1 + snr g) with probability e^-g.
        let mut fading = fading(config(10.0, Efficiency::Shannon));
        let n = 40_000;
        let rates: Vec<u64> = (0..n).map(|block| fading.rate(block)).collect();
        for gain in [0.1, 1.0, 3.0] {
            let rate = fading.config.bits_per_sec(gain);
            let found = rates.iter().filter(|&&it| it > rate).count() as f64 / n as f64;
            let expected = libm::exp(-gain);
            let window = 4.0 * libm::sqrt(expected * (1.0 - expected) / n as f64);
            assert!((found - expected).abs() < window, "{gain}: {found}, not {expected}");
        }
    }

    #[test]
    fn a_block_has_its_rate_whenever_it_is_asked_for() {
        let config = config(10.0, Efficiency::Shannon);
        let mut in_order = fading(config);
        let rates: Vec<u64> = (0..50).map(|block| in_order.rate(block)).collect();
        let mut other = fading(config);
        for block in [40, 7, 8, 8, 49, 0] {
            assert_eq!(other.rate(block), rates[block as usize], "block {block}");
        }
    }

    #[test]
    fn a_packet_takes_what_the_blocks_carry() {
        let mut fading = fading(config(10.0, Efficiency::Cqi));
        let start = Instant::from_nanos(300_000);
        for size in [100, 1500, 60_000].map(Bytes) {
            let end = fading.departure(start, size);
            let before = Instant::from_nanos(end.as_nanos() - 1);
            assert!(fading.bits_between(start, end) >= size.bits(), "{size}");
            assert!(fading.bits_between(start, before) < size.bits(), "{size}");
        }
    }
}
