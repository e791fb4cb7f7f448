//! DCTCP, data center TCP (RFC 8257).
//!
//! Queues longer than a threshold mark arriving packets. The sender estimates the share of its data
//! that is marked, and reduces its window by half of that share once a window: a little if queues
//! are just at the threshold, by half if everything is marked. Otherwise it is Reno.
//!
//! It needs a receiver that reports each mark: classic ECN (RFC 3168) reports one a round trip.
//!
//! - The RFC leaves SACKed bytes out (§3.3, step 1); here, as in Linux, they count when delivered.
//! - DCTCP.Alpha begins at 1, as in Linux.
//! - A window never shrinks below two segments.

use super::marks::MarkedShare;
use super::{Ack, CongestionControl, Loss, Reno, Restart, Timeout, Undo, Window};

/// Reno that reduces its window by the share of marked bytes.
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: Reno,
    marks: MarkedShare,
}

impl Dctcp {
    /// A sender that grows and reacts to losses as `reno` does (§3.4, §3.5).
    pub fn new(reno: Reno) -> Self {
        Self { reno, marks: MarkedShare::default() }
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, _: &mut Window, ack: &Ack) {
        self.marks.count(ack);
        if self.marks.is_window_over(ack) {
            self.marks.update(ack);
        }
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        self.reno.on_growth(window, ack);
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        self.reno.on_fast_retransmit(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.reno.on_timeout(window, timeout);
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        if cause == Restart::Route {
            self.marks = MarkedShare::default();
        }
        self.reno.on_restart(window, cause);
    }

    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.reno.on_spurious(window, undo);
    }

    fn on_ecn(&mut self, window: &mut Window, _: &Loss) {
        let reduced = self.marks.reduced(window.cwnd(), window.smss());
        window.set_ssthresh(reduced);
        window.set_cwnd(reduced);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Delivery;
    use super::super::path::{Path, SMSS};
    use super::super::tests::{ack, loss, window};
    use super::*;
    use airtcp_core::{Duration, Ecn, SeqNum};

    fn dctcp() -> Dctcp {
        Dctcp::new(Reno::new(None))
    }

    /// Acknowledges `windows` windows of ten segments from `una` on; `marked` segments of each are
    /// marked.
    fn acknowledge(cc: &mut Dctcp, una: &mut SeqNum, windows: u32, marked: u32) {
        let mut w = window(10, 10);
        for _ in 0..windows {
            let max = *una + 10 * SMSS;
            for segment in 0..10 {
                *una += SMSS;
                let newly_ce = if segment < marked { SMSS } else { 0 };
                let delivery = Delivery { newly_delivered: SMSS, newly_ce, ..Delivery::default() };
                let max = max + 10 * SMSS;
                cc.on_ack(&mut w, &Ack { una: *una, max, delivery, ..ack(SMSS) });
            }
        }
    }

    // RFC 8257 §3.3, step 6, g = 1/16.
    #[test]
    fn alpha_converges_to_the_share_of_marks() {
        // Across the wrap of sequence numbers.
        let (mut cc, mut una) = (dctcp(), SeqNum(u32::MAX - 5000));
        assert!((cc.marks.alpha - 1.0).abs() < f64::EPSILON);
        for marked in [2, 5, 0, 10] {
            acknowledge(&mut cc, &mut una, 300, marked);
            let (alpha, share) = (cc.marks.alpha, f64::from(marked) / 10.0);
            assert!((alpha - share).abs() < 0.02, "{alpha} and {share}");
        }
    }

    // Step 6: a sixteenth of the difference each window.
    #[test]
    fn a_window_counts_a_sixteenth() {
        let (mut cc, mut una) = (dctcp(), SeqNum(0));
        let mut before = cc.marks.alpha;
        let mut updates = 0;
        for _ in 0..50 {
            acknowledge(&mut cc, &mut una, 1, 0);
            if (cc.marks.alpha - before).abs() > f64::EPSILON {
                assert!((cc.marks.alpha - before * 15.0 / 16.0).abs() < 1e-9);
                before = cc.marks.alpha;
                updates += 1;
            }
        }
        assert!(updates > 20, "{updates}");
    }

    // Step 9: cwnd * (1 - alpha/2).
    #[test]
    fn a_mark_takes_half_of_the_share() {
        for (alpha, cwnd) in [(0.0, 100_000), (0.2, 90_000), (1.0, 50_000)] {
            let (mut cc, mut w) = (dctcp(), window(100, 1000));
            cc.marks.alpha = alpha;
            cc.on_ecn(&mut w, &loss(100 * SMSS));
            assert_eq!((w.cwnd(), w.ssthresh()), (cwnd, cwnd));
        }
    }

    #[test]
    fn two_segments_are_left_and_one_is_not_raised() {
        for (cwnd, left) in [(3, 2), (2, 2), (1, 1)] {
            let (mut cc, mut w) = (dctcp(), window(cwnd, 1000));
            cc.on_ecn(&mut w, &loss(cwnd * SMSS));
            assert_eq!(w.cwnd(), left * SMSS);
        }
    }

    // §3.5.
    #[test]
    fn a_loss_is_answered_as_reno_answers_it() {
        let (mut cc, mut w) = (dctcp(), window(100, 1000));
        cc.marks.alpha = 0.1;
        cc.on_fast_retransmit(&mut w, &loss(100 * SMSS));
        assert_eq!((w.cwnd(), w.ssthresh()), (50 * SMSS, 50 * SMSS));
        assert!((cc.marks.alpha - 0.1).abs() < f64::EPSILON);
    }

    #[test]
    fn data_are_ect_0() {
        assert_eq!(dctcp().codepoint(), Ecn::Ect0);
    }

    /// A path of 50 Mbit/s and 10 ms, 62 segments, that marks above 17 segments (20 in the ns-3
    /// validation are packets of 1500 B) and has room for many.
    fn marked() -> Path<Dctcp> {
        let mut path = Path::new(dctcp(), 50, 10, 4.0);
        path.mark_above = Some(17 * SMSS);
        path
    }

    // Alizadeh et al. 2010, eq. 7 and 8: with the window where marks begin, W = C RTT + K, alpha is
    // about the root of 2/W.
    #[test]
    fn the_queue_stays_near_the_threshold_and_alpha_follows_the_window() {
        let mut path = marked();
        path.run(5.0);
        let rate = path.run(15.0);
        assert!(rate > 0.98 * 50.0, "{rate}");
        assert_eq!(path.dropped, 0);
        let most = path.longest_queue(5.0, 15.0);
        assert!((17 * SMSS..30 * SMSS).contains(&most), "{most}");
        let expected = libm::sqrt(2.0 / f64::from((path.bdp() + 17 * SMSS) / SMSS));
        let alpha = path.cc.marks.alpha;
        assert!((alpha / expected - 1.0).abs() < 0.3, "{alpha} and {expected}");
    }

    #[test]
    fn without_marks_it_fills_the_queue_as_reno_does() {
        let mut path = marked();
        path.mark_above = None;
        path.rtt = Duration::from_millis(10);
        path.run(15.0);
        assert!(path.dropped > 0);
    }

    #[test]
    fn curve() {
        let mut path = marked();
        path.run(3.0);
        insta::assert_snapshot!(path.curve(0.05));
    }
}
