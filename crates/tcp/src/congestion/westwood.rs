//! TCP Westwood+ (Grieco and Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno
//! and Vegas TCP Congestion Control", CCR 2004; Mascolo et al., MobiCom 2001, for the counting of
//! duplicate and delayed ACKs).
//!
//! The sender estimates the bandwidth that the path gives it, from the bytes that ACKs report in a
//! round trip. A loss sets ssthresh to what the path holds at that bandwidth without queues, the
//! bandwidth times the smallest RTT, instead of half of what is in flight.
//!
//! Decisions where the papers are silent:
//! - A sample covers at least the last measured RTT, and the first one is the estimate.
//! - Before the first sample a loss halves, as in RFC 5681.
//! - On a new route ([`Restart::Route`]) estimate and smallest RTT are forgotten.
//!
//! Compared with Linux's `tcp_westwood.c`, by the authors of Westwood+ among others, as the papers
//! were not at hand. The counting of bytes, the first sample, the weights 7/8 and 1/8, and the
//! window of at least two segments after a loss are the same. Linux smooths twice, samples over
//! 50 ms at least, and measures the smallest RTT anew after a time-out.

use super::{Ack, CongestionControl, Loss, Reno, Restart, Timeout, Window};
use airtcp_core::{Duration, Instant};

/// Reno's growth, with losses answered by the bandwidth estimate.
#[derive(Clone, Debug)]
pub struct Westwood {
    reno: Reno,
    /// Estimated bandwidth, in bytes per second.
    estimate: Option<f64>,
    sample: Option<Sample>,
    rtt: Option<Duration>,
    least_rtt: Option<Duration>,
    /// Bytes already reported by duplicate ACKs.
    reported: u32,
}

/// An unfinished bandwidth sample.
#[derive(Clone, Copy, Debug)]
struct Sample {
    since: Instant,
    bytes: u64,
}

impl Westwood {
    /// A sender that grows as `reno` does.
    pub fn new(reno: Reno) -> Self {
        Self { reno, estimate: None, sample: None, rtt: None, least_rtt: None, reported: 0 }
    }

    /// Bytes that this ACK reports as arrived: one segment for a duplicate; for a cumulative ACK,
    /// those that the duplicates before it did not report (Mascolo et al. 2001 §3.2, AckedCount).
    fn arrived(&mut self, ack: &Ack, smss: u32) -> u32 {
        if ack.delivery.newly_delivered > 0 {
            return ack.delivery.newly_delivered; // RACK counts for us
        }
        if ack.acked == 0 {
            self.reported = self.reported.saturating_add(smss);
            return smss;
        }
        if ack.acked <= smss {
            return ack.acked;
        }
        let unreported = ack.acked.saturating_sub(self.reported);
        self.reported = self.reported.saturating_sub(ack.acked);
        if unreported == 0 { smss } else { unreported }
    }

    fn measure(&mut self, ack: &Ack, bytes: u32) {
        let Some(sample) = &mut self.sample else {
            self.sample = Some(Sample { since: ack.now, bytes: 0 });
            return;
        };
        sample.bytes += u64::from(bytes);
        let interval = ack.now.since(sample.since);
        if self.rtt.is_none_or(|rtt| interval < rtt) || interval.is_zero() {
            return;
        }
        let rate = sample.bytes as f64 / interval.as_secs_f64();
        self.estimate = Some(self.estimate.map_or(rate, |estimate| (7.0 * estimate + rate) / 8.0));
        self.sample = Some(Sample { since: ack.now, bytes: 0 });
    }

    /// Bandwidth-delay product of the path without queues, at least two segments.
    fn path_holds(&self, smss: u32) -> Option<u32> {
        let bytes = self.estimate? * self.least_rtt?.as_secs_f64();
        Some((bytes as u32).max(2 * smss))
    }
}

impl CongestionControl for Westwood {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(rtt);
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        let bytes = self.arrived(ack, window.smss());
        self.measure(ack, bytes);
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        self.reno.on_growth(window, ack);
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        let cwnd = window.cwnd();
        self.reno.on_fast_retransmit(window, loss);
        if let Some(bytes) = self.path_holds(window.smss()) {
            window.set_ssthresh(bytes);
            window.set_cwnd(cwnd.min(bytes));
        }
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.reno.on_timeout(window, timeout);
        if let Some(bytes) = self.path_holds(window.smss()).filter(|_| timeout.first) {
            window.set_ssthresh(bytes);
        }
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        if cause == Restart::Route {
            *self = Self::new(self.reno.clone());
        }
        self.reno.on_restart(window, cause);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SMSS, ack, loss, timeout, window};
    use super::*;

    /// One segment acknowledged every 10 ms (100 kB/s), with one RTT of 200 ms and one of 100 ms.
    fn steady() -> (Westwood, Window) {
        let (mut cc, mut w) = (Westwood::new(Reno::new(None)), window(40, 40));
        for n in 0..200 {
            let rtt = Some(Duration::from_millis(if n == 50 { 100 } else { 200 }));
            let now = Instant::from_millis(10 * n);
            cc.on_ack(&mut w, &Ack { now, rtt, ..ack(SMSS) });
        }
        (cc, w)
    }

    /// The estimate in segments of 1000 bytes per second.
    fn estimate(cc: &Westwood) -> f64 {
        cc.estimate.unwrap() / 1000.0
    }

    #[test]
    fn the_estimate_is_the_rate_of_the_acks() {
        assert!((estimate(&steady().0) - 100.0).abs() < 1.0, "{}", estimate(&steady().0));
    }

    #[test]
    fn three_duplicates_set_the_windows_to_bandwidth_times_the_smallest_rtt() {
        let (mut cc, mut w) = steady();
        cc.on_fast_retransmit(&mut w, &loss(40 * SMSS));
        assert!((9_900..=10_100).contains(&w.ssthresh()), "{}", w.ssthresh());
        assert_eq!(w.cwnd(), w.ssthresh());
    }

    #[test]
    fn a_cwnd_below_the_estimate_stays() {
        let (mut cc, _) = steady();
        let mut w = window(5, 40);
        cc.on_fast_retransmit(&mut w, &loss(5 * SMSS));
        assert_eq!(w.cwnd(), 5 * SMSS);
        assert!(w.ssthresh() > 9 * SMSS);
    }

    #[test]
    fn a_timeout_starts_from_one_segment_up_to_the_estimate() {
        let (mut cc, mut w) = steady();
        cc.on_timeout(&mut w, &timeout(40 * SMSS, true));
        assert_eq!(w.cwnd(), SMSS);
        assert!((9_900..=10_100).contains(&w.ssthresh()), "{}", w.ssthresh());
    }

    #[test]
    fn ssthresh_is_two_segments_at_least() {
        let (mut cc, mut w) = (Westwood::new(Reno::new(None)), window(40, 40));
        for n in 0..20 {
            let now = Instant::from_millis(500 * n);
            cc.on_ack(&mut w, &Ack { now, rtt: Some(Duration::from_millis(100)), ..ack(100) });
        }
        cc.on_fast_retransmit(&mut w, &loss(40 * SMSS));
        assert_eq!(w.ssthresh(), 2 * SMSS);
    }

    #[test]
    fn a_loss_before_the_first_sample_halves() {
        let (mut cc, mut w) = (Westwood::new(Reno::new(None)), window(40, 40));
        cc.on_fast_retransmit(&mut w, &loss(40 * SMSS));
        assert_eq!((w.cwnd(), w.ssthresh()), (20 * SMSS, 20 * SMSS));
    }

    // Grieco and Mascolo 2004: one sample a round trip, of which an eighth counts.
    #[test]
    fn a_round_trip_counts_an_eighth() {
        let (mut cc, mut w) = (Westwood::new(Reno::new(None)), window(40, 40));
        let rtt = Some(Duration::from_millis(100));
        for (ms, segments) in [(0, 5), (100, 10), (150, 9), (200, 9)] {
            let now = Instant::from_millis(ms);
            cc.on_ack(&mut w, &Ack { now, rtt, ..ack(segments * SMSS) });
        }
        // 10 segments after the first ACK, then 18.
        assert!((estimate(&cc) - (7.0 * 100.0 + 180.0) / 8.0).abs() < 1e-9, "{}", estimate(&cc));
    }

    // Mascolo et al. 2001: duplicates count a segment each, and the ACK after them the rest.
    #[test]
    fn what_duplicates_reported_does_not_count_twice() {
        let mut cc = Westwood::new(Reno::new(None));
        let arrived: Vec<u32> = [0, 0, 0, 5, 1, 3]
            .map(|segments| cc.arrived(&ack(segments * SMSS), SMSS) / SMSS)
            .to_vec();
        assert_eq!(arrived, [1, 1, 1, 2, 1, 3]);
    }

    // Reported by more duplicates than one partial ACK covers.
    #[test]
    fn a_partial_ack_counts_one_segment_and_leaves_the_rest_for_the_next() {
        let mut cc = Westwood::new(Reno::new(None));
        let arrived: Vec<u32> = [0, 0, 0, 0, 2, 6]
            .map(|segments| cc.arrived(&ack(segments * SMSS), SMSS) / SMSS)
            .to_vec();
        assert_eq!(arrived, [1, 1, 1, 1, 1, 4]);
    }

    #[test]
    fn a_new_route_forgets_the_old_one() {
        let (mut cc, mut w) = steady();
        cc.on_restart(&mut w, Restart::Route);
        assert!(cc.estimate.is_none() && cc.least_rtt.is_none());
        let (mut cc, mut w) = steady();
        cc.on_restart(&mut w, Restart::Idle);
        assert!(cc.estimate.is_some());
    }
}
