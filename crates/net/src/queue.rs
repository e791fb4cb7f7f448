//! Admission to the queue in front of a link's server: drop-tail, and Random Early Detection.
//!
//! RED follows S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM ToN 1(4), 1993: figure 2 for the average (with its correction for idle time) and for
//! the drops, spaced by the count since the last one; "gentle" is Floyd's later recommendation of a
//! slope instead of a jump at the maximum threshold.

use crate::config::{QueueConfig, QueueLimit};
use airtcp_core::{Bytes, Duration, Stream};

/// What admission needs to know when a packet arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Size of the packet.
    pub(crate) size: Bytes,
    /// Packets waiting, not counting the one in service.
    pub(crate) packets: usize,
    /// Bytes waiting.
    pub(crate) bytes: Bytes,
    /// How long the server has been idle; `None` if it is busy or packets are waiting.
    pub(crate) idle: Option<Duration>,
}

/// A queue discipline and its state.
#[derive(Clone, Debug)]
pub(crate) enum Admission {
    DropTail(QueueLimit),
    Red(Box<Red>),
}

impl Admission {
    pub(crate) fn new(config: &QueueConfig, stream: Stream) -> Self {
        match *config {
            QueueConfig::DropTail { limit } => Self::DropTail(limit),
            QueueConfig::Red { min_threshold, max_threshold, max_p, weight, gentle, limit } => {
                Self::Red(Box::new(Red {
                    min_threshold,
                    max_threshold,
                    max_p,
                    weight,
                    gentle,
                    limit,
                    average: 0.0,
                    count: None,
                    stream,
                }))
            }
        }
    }

    /// Whether the packet may enter. `mean_transmission` returns the mean transmission time of a
    /// packet; it is called only if the discipline needs it.
    #[inline]
    pub(crate) fn admits(
        &mut self,
        arrival: Arrival,
        mean_transmission: impl FnOnce() -> Duration,
    ) -> bool {
        match self {
            // A packet that finds the server free does not enter the queue.
            Self::DropTail(_) if arrival.idle.is_some() => true,
            Self::DropTail(QueueLimit::Packets(limit)) => (arrival.packets as u64) < *limit,
            Self::DropTail(QueueLimit::Bytes(limit)) => arrival.bytes + arrival.size <= *limit,
            Self::Red(red) => red.admits(arrival, mean_transmission),
        }
    }
}

/// RED's parameters and variables, named as in the paper.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    min_threshold: f64,
    max_threshold: f64,
    max_p: f64,
    weight: f64,
    gentle: bool,
    limit: u64,
    /// avg, packets.
    average: f64,
    /// Packets since the last drop while above the minimum threshold (the paper's -1 is `None`).
    count: Option<u32>,
    stream: Stream,
}

impl Red {
    #[inline(never)]
    fn admits(&mut self, arrival: Arrival, mean_transmission: impl FnOnce() -> Duration) -> bool {
        self.update_average(arrival, mean_transmission);
        let early = self.drops_early();
        !early && (arrival.idle.is_some() || (arrival.packets as u64) < self.limit)
    }

    fn update_average(&mut self, arrival: Arrival, mean_transmission: impl FnOnce() -> Duration) {
        match arrival.idle {
            None => self.average += self.weight * (arrival.packets as f64 - self.average),
            // As if m small packets had arrived at an empty queue while the server was idle.
            Some(idle) => {
                let transmission = mean_transmission();
                if !transmission.is_zero() {
                    let m = idle.as_nanos() as f64 / transmission.as_nanos() as f64;
                    self.average *= libm::pow(1.0 - self.weight, m);
                }
            }
        }
    }

    /// The paper's p_b at the current average; `None` below the minimum threshold.
    fn probability(&self) -> Option<f64> {
        let Self { min_threshold, max_threshold, max_p, gentle, average, .. } = *self;
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

    fn drops_early(&mut self) -> bool {
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

    const TRANSMISSION: Duration = Duration::from_millis(10);

    fn busy(packets: usize) -> Arrival {
        Arrival { size: Bytes(1000), packets, bytes: Bytes(packets as u64 * 1000), idle: None }
    }

    fn idle(idle: Duration) -> Arrival {
        Arrival { idle: Some(idle), ..busy(0) }
    }

    fn red(max_p: f64, weight: f64, gentle: bool) -> Red {
        let (min_threshold, max_threshold) = (5.0, 15.0);
        let config =
            QueueConfig::Red { min_threshold, max_threshold, max_p, weight, gentle, limit: 100 };
        match Admission::new(&config, Stream::new(5, "link/test/red")) {
            Admission::Red(red) => *red,
            Admission::DropTail(_) => unreachable!(),
        }
    }

    /// Admits `n` packets at a fixed queue length with weight 1, and so at a fixed average.
    fn run(red: &mut Red, packets: usize, n: u32) -> Vec<bool> {
        (0..n).map(|_| !red.admits(busy(packets), || TRANSMISSION)).collect()
    }

    fn rate(drops: &[bool]) -> f64 {
        drops.iter().filter(|&&d| d).count() as f64 / drops.len() as f64
    }

    #[test]
    fn drop_tail_counts_the_waiting_packets() {
        let config = QueueConfig::DropTail { limit: QueueLimit::Packets(2) };
        let mut queue = Admission::new(&config, Stream::new(1, "x"));
        assert!(queue.admits(busy(1), || TRANSMISSION));
        assert!(!queue.admits(busy(2), || TRANSMISSION));
        assert!(queue.admits(idle(Duration::ZERO), || TRANSMISSION));
    }

    #[test]
    fn drop_tail_in_bytes_takes_what_fits() {
        let config = QueueConfig::DropTail { limit: QueueLimit::Bytes(Bytes(2500)) };
        let mut queue = Admission::new(&config, Stream::new(1, "x"));
        assert!(queue.admits(busy(1), || TRANSMISSION));
        assert!(!queue.admits(busy(2), || TRANSMISSION));
        assert!(queue.admits(Arrival { size: Bytes(500), ..busy(2) }, || TRANSMISSION));
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
        assert!(slow.admits(busy(99), || TRANSMISSION));
        assert!(!slow.admits(busy(100), || TRANSMISSION));
    }
}
