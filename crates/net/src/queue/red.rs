//! Random Early Detection.
//!
//! RED follows S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM ToN 1(4), 1993: figure 2 for the average (with its correction for idle time) and for
//! the drops, spaced by the count since the last one; "gentle" is Floyd's later recommendation of a
//! slope instead of a jump at the maximum threshold. With `ecn` it marks instead, as RFC 3168 §7
//! says: while the average is below the maximum threshold; above it, it drops.

use super::admission::{Arrival, Verdict};
use airtcp_core::{Duration, Stream};
use airtcp_settings::schema::{Kind, PROBABILITY};
use airtcp_settings::{Reader, settings};

settings! {
    /// Random Early Detection.
    #[derive(Clone, Debug, PartialEq)]
    #[check(consistent)]
    pub struct RedConfig {
        /// Hard limit, not counting the packet in service.
        #[kind = Kind::WholePackets]
        pub limit: u64 = 50,
        /// Average queue, in packets, at which dropping begins.
        #[kind = Kind::Packets]
        #[source = "Floyd, Jacobson 1993"]
        pub min_threshold: f64 = 5.0,
        /// Average queue, in packets, at which every packet is dropped.
        #[kind = Kind::Packets]
        #[source = "Floyd, Jacobson 1993"]
        pub max_threshold: f64 = 15.0,
        /// Drop probability when the average reaches `max-threshold`.
        #[kind = PROBABILITY]
        #[source = "Floyd, Jacobson 1993"]
        pub max_p: f64 = 0.02,
        /// Weight of a sample in the moving average.
        #[kind = Kind::Number { min: 0.0, max: 1.0, above: true }]
        #[source = "Floyd, Jacobson 1993"]
        pub weight: f64 = 0.002,
        /// Raise the probability from `max-p` to 1 between `max-threshold` and twice that,
        /// instead of jumping to 1.
        pub gentle: bool = false,
        /// Mark packets of ECN-capable senders instead of dropping them.
        #[source = "RFC 3168 §7"]
        pub ecn: bool = false,
        /// With `ecn`, drop where the average is not below `max-threshold`; `false` marks there
        /// too, so that only the limit drops.
        #[source = "RFC 3168 §7"]
        pub hard_drop: bool = true,
    }
}

fn consistent<R: Reader>(from: &R, queue: &RedConfig) {
    let RedConfig { min_threshold: min, max_threshold: max, .. } = queue;
    if min >= max {
        let message = format!("{min} packets is not below max-threshold");
        from.refuse(Some("min-threshold"), message, &format!("less than {max} packets"));
    }
    if from.written("hard-drop") && !queue.ecn {
        let message = "has no effect without ecn".to_owned();
        from.refuse(Some("hard-drop"), message, "`ecn = true` beside it");
    }
}

/// RED's parameters and variables, named as in the paper.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    /// The average queue, `avg`, packets.
    average: f64,
    /// Packets since the last drop or mark while above the minimum threshold (the paper's -1 is
    /// `None`).
    count: Option<u32>,
    stream: Stream,
}

impl Red {
    pub(crate) fn new(config: &RedConfig, stream: Stream) -> Self {
        Self { config: config.clone(), average: 0.0, count: None, stream }
    }

    #[inline(never)]
    pub(crate) fn judge(
        &mut self,
        arrival: Arrival,
        mean_transmission: impl FnOnce() -> Duration,
    ) -> Verdict {
        self.update_average(arrival, mean_transmission);
        let early = self.notifies_early();
        let marks = early && self.config.ecn && arrival.ecn.is_capable() && !self.drops_all();
        let room = arrival.idle.is_some() || (arrival.packets as u64) < self.config.limit;
        match (early, room) {
            (_, false) => Verdict::Refuse,
            (false, true) => Verdict::Enter,
            (true, true) if marks => Verdict::Mark,
            (true, true) => Verdict::Refuse,
        }
    }

    /// Congestion is so heavy that capable packets are dropped, too (RFC 3168 §7).
    fn drops_all(&self) -> bool {
        self.config.hard_drop && self.average >= self.config.max_threshold
    }

    fn update_average(&mut self, arrival: Arrival, mean_transmission: impl FnOnce() -> Duration) {
        match arrival.idle {
            None => self.average += self.config.weight * (arrival.packets as f64 - self.average),
            // As if m small packets had arrived at an empty queue while the server was idle.
            Some(idle) => {
                let transmission = mean_transmission();
                if !transmission.is_zero() {
                    let m = idle.as_nanos() as f64 / transmission.as_nanos() as f64;
                    self.average *= libm::pow(1.0 - self.config.weight, m);
                }
            }
        }
    }

    /// The paper's p_b at the current average; `None` below the minimum threshold.
    fn probability(&self) -> Option<f64> {
        let RedConfig { min_threshold, max_threshold, max_p, gentle, .. } = self.config;
        let average = self.average;
        if average < min_threshold {
            None
        } else if average < max_threshold {
            Some(max_p * (average - min_threshold) / (max_threshold - min_threshold))
        } else if gentle && average < 2.0 * max_threshold {
            Some(max_p + (1.0 - max_p) * (average - max_threshold) / max_threshold)
        } else {
            Some(1.0)
        }
    }

    /// True if this packet is dropped or marked early, to notify its sender of congestion.
    fn notifies_early(&mut self) -> bool {
        let Some(p) = self.probability() else {
            self.count = None;
            return false;
        };
        let count = self.count.map_or(0, |c| c.saturating_add(1));
        // p_a = p_b / (1 - count p_b): drops are spaced uniformly instead of geometrically.
        let room = 1.0 - f64::from(count) * p;
        let drop = p >= 1.0 || room <= 0.0 || self.stream.chance(p / room);
        self.count = Some(if drop { 0 } else { count });
        drop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Bytes, Ecn};

    const TRANSMISSION: Duration = Duration::from_millis(10);

    fn busy(packets: usize) -> Arrival {
        let bytes = Bytes(packets as u64 * 1000);
        Arrival { size: Bytes(1000), ecn: Ecn::NotEct, packets, bytes, idle: None }
    }

    fn idle(idle: Duration) -> Arrival {
        Arrival { idle: Some(idle), ..busy(0) }
    }

    fn red(max_p: f64, weight: f64, gentle: bool) -> Red {
        let (min_threshold, max_threshold) = (5.0, 15.0);
        let config = RedConfig {
            min_threshold,
            max_threshold,
            max_p,
            weight,
            gentle,
            limit: 100,
            ..RedConfig::default()
        };
        Red::new(&config, Stream::new(5, "link/test/red"))
    }

    fn marking(max_p: f64, hard_drop: bool) -> Red {
        let mut red = red(max_p, 1.0, false);
        red.config.ecn = true;
        red.config.hard_drop = hard_drop;
        red
    }

    fn verdict(red: &mut Red, packets: usize, ecn: Ecn) -> Verdict {
        red.judge(Arrival { ecn, ..busy(packets) }, || TRANSMISSION)
    }

    /// Admits `n` packets at a fixed queue length with weight 1, and so at a fixed average.
    fn run(red: &mut Red, packets: usize, n: u32) -> Vec<bool> {
        (0..n).map(|_| verdict(red, packets, Ecn::NotEct) == Verdict::Refuse).collect()
    }

    fn rate(drops: &[bool]) -> f64 {
        drops.iter().filter(|&&d| d).count() as f64 / drops.len() as f64
    }

    #[test]
    fn red_average_is_a_moving_average_at_arrivals() {
        // Floyd, Jacobson 1993, figure 2: avg <- (1 - w) avg + w q.
        let mut red = red(0.02, 0.25, false);
        red.update_average(busy(4), || TRANSMISSION);
        assert_eq!(red.average, 1.0);
        red.update_average(busy(4), || TRANSMISSION);
        assert_eq!(red.average, 1.75);
    }

    #[test]
    fn red_average_decays_over_idle_time() {
        // Floyd, Jacobson 1993, figure 2: avg <- (1 - w)^m avg, m = idle time / transmission time.
        let mut red = red(0.02, 0.5, false);
        red.average = 8.0;
        red.update_average(idle(TRANSMISSION * 3), || TRANSMISSION);
        assert_eq!(red.average, 1.0);
        red.update_average(idle(Duration::ZERO), || TRANSMISSION);
        assert_eq!(red.average, 1.0);
    }

    #[test]
    fn red_never_drops_below_the_minimum_threshold() {
        assert_eq!(rate(&run(&mut red(1.0, 1.0, false), 4, 1000)), 0.0);
    }

    #[test]
    fn red_drops_everything_at_the_maximum_threshold() {
        assert_eq!(rate(&run(&mut red(0.1, 1.0, false), 15, 1000)), 1.0);
    }

    #[test]
    fn red_spaces_drops_uniformly() {
        // Average 10 is half way: p_b = 0.5 max_p = 0.05. After a drop the count runs 1, 2, … and
        // p_b / (1 - count p_b) makes the gap uniform on 1 ..= 1/p_b - 1 = 19, with mean 1 / (2
        // p_b) = 10.
        let drops = run(&mut red(0.1, 1.0, false), 10, 100_000);
        let at: Vec<usize> = (0..drops.len()).filter(|&i| drops[i]).collect();
        let gaps: Vec<usize> = at.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.iter().all(|&g| (1..=19).contains(&g)));
        // The standard deviation of a gap is 5.5; over about 10,000 gaps, 4 standard errors are
        // 2.2 %.
        assert!((rate(&drops) / 0.1 - 1.0).abs() < 0.022, "{}", rate(&drops));
        let short = gaps.iter().filter(|&&g| g <= 5).count() as f64 / gaps.len() as f64;
        assert!((short - 5.0 / 19.0).abs() < 0.018, "{short}");
    }

    #[test]
    fn gentle_red_rises_to_one_at_twice_the_maximum_threshold() {
        let mut gentle = red(0.1, 1.0, true);
        gentle.average = 15.0;
        assert_eq!(gentle.probability(), Some(0.1));
        gentle.average = 22.5;
        assert_eq!(gentle.probability(), Some(0.55));
        gentle.average = 30.0;
        assert_eq!(gentle.probability(), Some(1.0));
    }

    #[test]
    fn red_keeps_its_hard_limit() {
        let mut slow = red(0.1, 0.0, false);
        assert_eq!(verdict(&mut slow, 99, Ecn::NotEct), Verdict::Enter);
        assert_eq!(verdict(&mut slow, 100, Ecn::NotEct), Verdict::Refuse);
    }

    #[test]
    fn red_marks_capable_packets_where_it_would_drop_others() {
        // RFC 3168 §7: the same packets, by the same draws.
        let plain = run(&mut red(0.1, 1.0, false), 10, 1000);
        let mut red = marking(0.1, true);
        let marks: Vec<bool> =
            (0..1000).map(|_| verdict(&mut red, 10, Ecn::Ect0) == Verdict::Mark).collect();
        assert_eq!(marks, plain);
        assert!(marks.contains(&true));
    }

    #[test]
    fn red_drops_packets_of_senders_without_ecn() {
        // RFC 3168 §5: a packet that is not ECN-capable is dropped.
        let drops = run(&mut marking(0.1, true), 10, 1000);
        assert_eq!(drops, run(&mut red(0.1, 1.0, false), 10, 1000));
    }

    #[test]
    fn marking_red_drops_at_the_maximum_threshold_and_beyond_the_limit() {
        // RFC 3168 §7: under heavy congestion it drops.
        assert_eq!(verdict(&mut marking(0.1, true), 15, Ecn::Ect0), Verdict::Refuse);
        assert_eq!(verdict(&mut marking(0.1, false), 15, Ecn::Ect0), Verdict::Mark);
        assert_eq!(verdict(&mut marking(0.1, false), 100, Ecn::Ect0), Verdict::Refuse);
    }
}
