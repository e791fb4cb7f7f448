//! TCP Veno (Fu and Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access
//! Networks", IEEE JSAC 21(2), 2003).
//!
//! The sender estimates the segments that it keeps in queues, N = cwnd (RTT − BaseRTT) / RTT, as
//! TCP Vegas does. Below [`BACKLOG`] segments a loss is taken for random, and cuts the window to
//! four fifths instead of half. From there on the path is full: a loss halves, and until then the
//! window grows half as fast.
//!
//! The paper was not at hand. These rules, BACKLOG and the fifth are those of Linux's
//! `tcp_veno.c`, which the authors wrote. Decisions:
//! - N is that of the latest RTT sample. BaseRTT is the smallest one since the connection began,
//!   and is forgotten when sending starts anew ([`Restart`]); the paper, as remembered, forgets it
//!   at each loss.
//! - Before the third sample N is unknown, and the sender is Reno. Linux cuts to four fifths.
//! - A time-out halves, as in Reno; Linux cuts to four fifths where N is small. So does the mark of
//!   a queue, which is never random.
//! - Growth half as fast is Reno's on every other ACK.

use super::{Ack, CongestionControl, Loss, Reno, Restart, Timeout, Window};
use airtcp_core::Duration;

/// Segments in queues from which on the path counts as full (β).
const BACKLOG: u32 = 3;

/// Samples without which N is unknown.
const SAMPLES: u32 = 3;

/// Reno that tells random losses from those of full queues.
#[derive(Clone, Debug)]
pub struct Veno {
    reno: Reno,
    /// The smallest RTT.
    base: Duration,
    /// The latest RTT.
    rtt: Duration,
    samples: u32,
    /// On a full path: the last ACK did not grow the window, so the next one does.
    grows: bool,
}

impl Veno {
    /// A sender that otherwise grows as `reno` does.
    pub fn new(reno: Reno) -> Self {
        let (base, rtt) = (Duration::MAX, Duration::ZERO);
        Self { reno, base, rtt, samples: 0, grows: true }
    }

    /// N is known and at least [`BACKLOG`].
    fn is_full(&self, window: &Window) -> Option<bool> {
        if self.samples < SAMPLES {
            return None;
        }
        let queued = u128::from(window.cwnd()) * u128::from((self.rtt - self.base).as_nanos());
        let backlog = u128::from(BACKLOG * window.smss()) * u128::from(self.rtt.as_nanos());
        Some(queued >= backlog)
    }
}

impl CongestionControl for Veno {
    fn on_ack(&mut self, _: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt;
            self.base = self.base.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() || self.is_full(window) != Some(true) {
            self.grows = true;
            return self.reno.on_growth(window, ack);
        }
        if self.grows {
            self.reno.on_growth(window, ack);
        }
        self.grows = !self.grows;
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        let is_random = self.is_full(window) == Some(false);
        self.reno.on_fast_retransmit(window, loss);
        if is_random {
            let four_fifths = (u64::from(loss.flight) * 4 / 5) as u32;
            window.set_ssthresh(four_fifths.max(2 * window.smss()));
            window.set_cwnd(window.ssthresh());
        }
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.reno.on_timeout(window, timeout);
    }

    fn on_ecn(&mut self, window: &mut Window, loss: &Loss) {
        self.reno.on_fast_retransmit(window, loss);
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        *self = Self::new(self.reno.clone());
        self.reno.on_restart(window, cause);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SMSS, ack, loss, timeout, window};
    use super::*;

    /// cwnd and ssthresh of `cwnd` segments, after RTTs of 100 ms and one of `rtt`.
    fn measured(cwnd: u32, rtt: u64) -> (Veno, Window) {
        let (mut cc, mut w) = (Veno::new(Reno::new(None)), window(cwnd, cwnd));
        for ms in [100, 100, rtt] {
            let rtt = Some(Duration::from_millis(ms));
            cc.on_ack(&mut w, &Ack { rtt, ..ack(SMSS) });
        }
        (cc, w)
    }

    #[test]
    fn below_three_segments_in_queues_a_loss_takes_a_fifth() {
        // N = 20 (117 - 100) / 117 = 2.9.
        let (mut cc, mut w) = measured(20, 117);
        cc.on_fast_retransmit(&mut w, &loss(20 * SMSS));
        assert_eq!((w.cwnd(), w.ssthresh()), (16 * SMSS, 16 * SMSS));
    }

    #[test]
    fn from_three_segments_in_queues_on_a_loss_takes_half() {
        // N = 30 (112 - 100) / 112 = 3.2; and exactly 3 of 12 with 133 1/3 ms.
        let (mut cc, mut w) = measured(30, 112);
        cc.on_fast_retransmit(&mut w, &loss(30 * SMSS));
        assert_eq!((w.cwnd(), w.ssthresh()), (15 * SMSS, 15 * SMSS));
        let (mut cc, mut w) = measured(12, 134);
        cc.on_fast_retransmit(&mut w, &loss(12 * SMSS));
        assert_eq!(w.ssthresh(), 6 * SMSS);
    }

    #[test]
    fn a_full_path_halves_the_growth() {
        for (rtt, growth) in [(100, SMSS), (150, SMSS / 2)] {
            let (mut cc, mut w) = measured(100, rtt);
            for _ in 0..100 {
                cc.on_growth(&mut w, &ack(SMSS));
            }
            let grown = w.cwnd() - 100 * SMSS;
            assert!(grown.abs_diff(growth) < 10, "{rtt} ms: {grown}");
        }
    }

    #[test]
    fn slow_start_is_renos_on_a_full_path_too() {
        let (mut cc, _) = measured(100, 200);
        let mut w = window(10, 100);
        cc.on_growth(&mut w, &ack(SMSS));
        cc.on_growth(&mut w, &ack(SMSS));
        assert_eq!(w.cwnd(), 12 * SMSS);
    }

    #[test]
    fn timeouts_and_marks_halve_though_queues_are_empty() {
        let (mut cc, mut w) = measured(20, 100);
        cc.on_ecn(&mut w, &loss(20 * SMSS));
        assert_eq!((w.cwnd(), w.ssthresh()), (10 * SMSS, 10 * SMSS));
        let (mut cc, mut w) = measured(20, 100);
        cc.on_timeout(&mut w, &timeout(20 * SMSS, true));
        assert_eq!((w.cwnd(), w.ssthresh()), (SMSS, 10 * SMSS));
    }

    #[test]
    fn a_loss_takes_half_before_the_queues_are_known() {
        let (mut cc, mut w) = (Veno::new(Reno::new(None)), window(20, 20));
        cc.on_fast_retransmit(&mut w, &loss(20 * SMSS));
        assert_eq!(w.cwnd(), 10 * SMSS);
        // So it is after a pause: the path may be another.
        let (mut cc, mut w) = measured(20, 100);
        cc.on_restart(&mut w, Restart::Idle);
        cc.on_fast_retransmit(&mut w, &loss(20 * SMSS));
        assert_eq!(w.cwnd(), 10 * SMSS);
    }

    #[test]
    fn two_segments_are_the_least() {
        let (mut cc, mut w) = measured(2, 100);
        cc.on_fast_retransmit(&mut w, &loss(2 * SMSS));
        assert_eq!(w.ssthresh(), 2 * SMSS);
    }
}
