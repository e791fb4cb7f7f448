//! A policer: a token bucket that drops what exceeds a rate, where a shaper would delay it.
//!
//! Kept as the instant at which the bucket would be full again, which has to be no further ahead
//! than the bucket takes to fill (the virtual scheduling form of the generic cell rate algorithm,
//! ITU-T I.371 Annex A).

use crate::config::PolicerConfig;
use airtcp_core::{Bytes, Duration, Instant};

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policer {
    config: PolicerConfig,
    /// Time in which an empty bucket fills.
    depth: Duration,
    full_at: Instant,
}

impl Policer {
    /// With a full bucket.
    pub(crate) fn new(config: PolicerConfig) -> Self {
        let depth = config.rate.transmission_time(config.burst);
        Self { config, depth, full_at: Instant::ZERO }
    }

    /// True if a packet passes; it takes its tokens only then.
    pub(crate) fn passes(&mut self, now: Instant, size: Bytes) -> bool {
        let full_at = self.full_at.max(now) + self.config.rate.transmission_time(size);
        let passes = full_at.since(now) <= self.depth;
        if passes {
            self.full_at = full_at;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::DataRate;

    const PACKET: Bytes = Bytes(1000);

    /// A packet takes 1 ms of tokens.
    fn policer(packets: u64) -> Policer {
        Policer::new(PolicerConfig { rate: DataRate::mbps(8), burst: Bytes(1000 * packets) })
    }

    fn passed(policer: &mut Policer, micros: u64, packets: u32) -> u32 {
        let now = Instant::from_nanos(micros * 1000);
        (0..packets).map(|_| u32::from(policer.passes(now, PACKET))).sum()
    }

    #[test]
    fn a_full_bucket_lets_a_burst_pass_and_then_the_rate() {
        let mut policer = policer(3);
        assert_eq!(passed(&mut policer, 0, 5), 3);
        assert_eq!(passed(&mut policer, 999, 1), 0);
        assert_eq!(passed(&mut policer, 1000, 5), 1);
        assert_eq!(passed(&mut policer, 3000, 5), 2);
        // It fills no further than its size.
        assert_eq!(passed(&mut policer, 1_000_000, 5), 3);
    }

    #[test]
    fn a_packet_that_is_dropped_takes_no_tokens() {
        let mut policer = policer(2);
        assert_eq!(passed(&mut policer, 0, 2), 2);
        assert!(!policer.passes(Instant::from_nanos(1_500_000), Bytes(2000)));
        assert_eq!(passed(&mut policer, 1500, 2), 1);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_never_passes() {
        assert!(!policer(1).passes(Instant::from_secs(1), Bytes(1001)));
    }
}
