//! Proportional Integral controller Enhanced.
//!
//! Read first: RFC 8033 §4 (the controller), §5.1 (ECN), §5.2 (the delay, here by timestamps: how
//! long the latest packet served had waited), §5.4 (drops spaced more evenly), §5.5 (bounded
//! steps).
//!
//! A packet that arrives is dropped at random, with a probability that follows the queue delay and
//! its trend; a burst after a quiet time is let in.

use super::fifo::Fifo;
use super::{Discipline, LargestPacket, Server, Waiting};
use airtcp_core::{Bytes, Duration, Instant, Stream};
use airtcp_settings::schema::{Kind, POSITIVE_TIME, PROBABILITY};
use airtcp_settings::settings;

settings! {
    /// Proportional Integral controller Enhanced.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PieConfig {
        /// Hard limit, not counting the packet in service.
        #[kind = Kind::WholePackets]
        #[source = "Linux sch_pie"]
        pub limit: u64 = 1000,
        /// The queue delay to keep.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 8033 §4.2 (QDELAY_REF)"]
        pub target: Duration = Duration::from_millis(15),
        /// Time from one update of the drop probability to the next.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 8033 §4.2 (T_UPDATE)"]
        pub t_update: Duration = Duration::from_millis(15),
        /// Change of the probability for each second that the delay is off the target.
        #[kind = GAIN]
        #[source = "RFC 8033 §4.2"]
        pub alpha: f64 = 0.125,
        /// Change of the probability for each second by which the delay has changed.
        #[kind = GAIN]
        #[source = "RFC 8033 §4.2"]
        pub beta: f64 = 1.25,
        /// Length of a burst that is let in after a quiet time.
        #[source = "RFC 8033 §4.4 (MAX_BURST)"]
        pub max_burst: Duration = Duration::from_millis(150),
        /// Mark packets of ECN-capable senders instead of dropping them.
        #[source = "RFC 8033 §5.1"]
        pub ecn: bool = false,
        /// From this drop probability on, drop them nevertheless.
        #[kind = PROBABILITY]
        #[source = "RFC 8033 §5.1 (mark_ecnth)"]
        pub ecn_threshold: f64 = 0.1,
    }
}

const GAIN: Kind = Kind::Number { min: 0.0, max: 1000.0, above: true };

/// One queue under PIE, with the RFC's variables.
#[derive(Clone, Debug)]
pub(crate) struct Pie<T> {
    config: PieConfig,
    fifo: Fifo<T>,
    largest: LargestPacket,
    drop_prob: f64,
    /// Drop probabilities since the last drop, added up (§5.4).
    accu_prob: f64,
    burst_allowance: Duration,
    /// Wait of the latest packet served.
    current_qdelay: Duration,
    /// The delay at the latest update.
    qdelay_old: Duration,
    next_update: Instant,
    stream: Stream,
}

impl<T> Pie<T> {
    pub(crate) fn new(config: &PieConfig, stream: Stream) -> Self {
        Self {
            fifo: Fifo::default(),
            largest: LargestPacket::default(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: config.max_burst,
            current_qdelay: Duration::ZERO,
            qdelay_old: Duration::ZERO,
            next_update: Instant::ZERO + config.t_update,
            config: config.clone(),
            stream,
        }
    }

    /// Makes up for the updates due.
    fn catch_up(&mut self, now: Instant) {
        while self.next_update <= now {
            if self.rests() {
                let step = self.config.t_update;
                let missed = now.since(self.next_update).as_nanos() / step.as_nanos();
                self.next_update += step * missed;
            }
            self.update();
            self.next_update += self.config.t_update;
        }
    }

    /// True if further updates would change nothing.
    fn rests(&self) -> bool {
        self.drop_prob == 0.0
            && self.current_qdelay.is_zero()
            && self.qdelay_old.is_zero()
            && self.burst_allowance == self.config.max_burst
    }

    /// §4.2 and §4.4: the probability and the burst allowance.
    fn update(&mut self) {
        let (delay, old, target) = (self.current_qdelay, self.qdelay_old, self.config.target);
        let PieConfig { alpha, beta, .. } = self.config;
        let p = alpha * (delay.as_secs_f64() - target.as_secs_f64())
            + beta * (delay.as_secs_f64() - old.as_secs_f64());
        let mut p = p * tuning(self.drop_prob);
        // §5.5.
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if delay.is_zero() && old.is_zero() {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = delay;
        self.burst_allowance =
            self.burst_allowance - self.config.t_update.min(self.burst_allowance);
        if self.drop_prob == 0.0 && delay < target / 2 && old < target / 2 {
            self.burst_allowance = self.config.max_burst;
        }
    }

    /// §4.1 and §5.4: whether the packet that arrives is one to drop or mark.
    fn drops_early(&mut self) -> bool {
        if !self.burst_allowance.is_zero() {
            return false;
        }
        let calm = self.qdelay_old < self.config.target / 2 && self.drop_prob < 0.2;
        let short = self.fifo.bytes() <= Bytes(2 * self.largest.get().get());
        if calm || short {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        let drops = self.accu_prob >= 8.5 || self.stream.chance(self.drop_prob);
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }
}

/// §4.2: small probabilities change in smaller steps.
fn tuning(drop_prob: f64) -> f64 {
    const TABLE: [(f64, f64); 6] = [
        (0.000_001, 2048.0),
        (0.000_01, 512.0),
        (0.000_1, 128.0),
        (0.001, 32.0),
        (0.01, 8.0),
        (0.1, 2.0),
    ];
    TABLE.iter().find(|(below, _)| drop_prob < *below).map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

impl<T> Discipline<T> for Pie<T> {
    fn enqueue(
        &mut self,
        mut packet: Waiting<T>,
        _: Server,
        _: &mut Vec<Waiting<T>>,
    ) -> Result<(), Waiting<T>> {
        self.catch_up(packet.arrived);
        self.largest.note(packet.meta.size);
        if self.fifo.len() as u64 >= self.config.limit {
            self.accu_prob = 0.0;
            return Err(packet);
        }
        if self.drops_early() {
            let marks = self.config.ecn && self.drop_prob < self.config.ecn_threshold;
            if !(marks && packet.mark()) {
                return Err(packet);
            }
        }
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<Waiting<T>>) -> Option<Waiting<T>> {
        self.catch_up(now);
        let packet = self.fifo.pop()?;
        let empty = self.fifo.is_empty();
        self.current_qdelay = if empty { Duration::ZERO } else { packet.sojourn(now) };
        Some(packet)
    }

    fn take(&mut self) -> Option<Waiting<T>> {
        self.fifo.pop()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn holds(&self, flow: u32) -> bool {
        self.fifo.holds(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pie() -> Pie<u32> {
        Pie::new(&PieConfig::default(), Stream::new(1, "link/test/red"))
    }

    #[test]
    fn small_probabilities_change_in_smaller_steps() {
        // RFC 8033 §4.2, the table of scale factors.
        let divisors: Vec<f64> = [0.0, 5e-6, 5e-5, 5e-4, 5e-3, 5e-2, 0.1, 0.5]
            .map(|drop_prob| 1.0 / tuning(drop_prob))
            .to_vec();
        assert_eq!(divisors, [2048.0, 512.0, 128.0, 32.0, 8.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn the_probability_follows_the_delay_and_its_trend() {
        // RFC 8033 §4.2: p += alpha (delay - target) + beta (delay - old), here with scale 1/2.
        let mut pie = pie();
        pie.drop_prob = 0.05;
        pie.qdelay_old = Duration::from_millis(20);
        pie.current_qdelay = Duration::from_millis(30);
        pie.update();
        assert!((pie.drop_prob - 0.05 - (0.125 * 0.015 + 1.25 * 0.010) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn large_probabilities_rise_by_two_hundredths_at_most() {
        // RFC 8033 §5.5.
        let mut pie = pie();
        pie.drop_prob = 0.2;
        pie.current_qdelay = Duration::from_millis(500);
        pie.update();
        assert!((pie.drop_prob - 0.22).abs() < 1e-12);
    }

    #[test]
    fn a_burst_after_a_quiet_time_is_let_in_for_150_ms() {
        // RFC 8033 §4.4: ten updates of 15 ms use up the allowance, if there is a queue.
        let mut pie = pie();
        pie.drop_prob = 0.5;
        pie.qdelay_old = Duration::from_millis(50);
        pie.current_qdelay = Duration::from_millis(50);
        for _ in 0..10 {
            assert!(!pie.drops_early());
            pie.update();
        }
        assert!(pie.burst_allowance.is_zero());
        pie.drop_prob = 0.0;
        pie.qdelay_old = Duration::ZERO;
        pie.current_qdelay = Duration::ZERO;
        pie.update();
        assert_eq!(pie.burst_allowance, Duration::from_millis(150));
    }

    #[test]
    fn drops_are_spaced_by_the_accumulated_probability() {
        // RFC 8033 §5.4: none until 0.85 has accumulated, one at 8.5 at the latest.
        let mut pie = pie();
        pie.burst_allowance = Duration::ZERO;
        // A sixteenth: sums are exact.
        pie.drop_prob = 0.0625;
        pie.qdelay_old = Duration::from_millis(50);
        for id in 0..10 {
            pie.fifo.push(Waiting::new(
                Instant::ZERO,
                id,
                crate::PacketMeta::new(Bytes(1000), true),
            ));
        }
        pie.largest.note(Bytes(1000));
        let drops: Vec<usize> = (0..100_000).filter(|_| pie.drops_early()).collect();
        let gaps: Vec<usize> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (14..=136).contains(gap)));
    }

    #[test]
    fn idle_time_in_one_step_equals_idle_time_update_by_update() {
        let (mut once, mut often) = (pie(), pie());
        for pie in [&mut once, &mut often] {
            pie.drop_prob = 0.01;
            pie.qdelay_old = Duration::from_millis(20);
        }
        once.catch_up(Instant::from_secs(100));
        (0..=100_000).for_each(|ms| often.catch_up(Instant::from_millis(ms)));
        assert_eq!(format!("{once:?}"), format!("{often:?}"));
    }
}
