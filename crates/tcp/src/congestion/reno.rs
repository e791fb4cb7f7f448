//! The standard algorithm: slow start, congestion avoidance and halving (RFC 5681), optionally with
//! Appropriate Byte Counting (RFC 3465).

use super::{Ack, CongestionControl, Loss, Timeout, Window};
use crate::config::{ABC_UNLIMITED, RepeatedTimeout};

/// RFC 5681 congestion control, shared by Tahoe, Reno, NewReno and SACK.
#[derive(Clone, Debug)]
pub struct Reno {
    /// RFC 3465's L, in segments.
    abc: Option<u32>,
    /// In congestion avoidance: growth of less than a byte (numerator over cwnd), or bytes counted
    /// by ABC.
    credit: u64,
    /// In slow start after a time-out: ABC uses L = 1 (RFC 3465 §2.3).
    after_timeout: bool,
    repeated_timeout: RepeatedTimeout,
}

impl Reno {
    /// A sender with RFC 3465's L of `abc` segments; `None`: one SMSS per ACK.
    pub fn new(abc: Option<u32>) -> Self {
        Self { abc, credit: 0, after_timeout: false, repeated_timeout: RepeatedTimeout::Keep }
    }

    /// Sets the reaction to the second and every further time-out of a segment.
    pub fn on_repeated_timeout(self, repeated_timeout: RepeatedTimeout) -> Self {
        Self { repeated_timeout, ..self }
    }
}

impl Reno {
    /// Grows by every acknowledged byte (Linux: `tcp_slow_start`, `tcp_cong_avoid_ai`).
    fn count_all(&mut self, window: &mut Window, acked: u32) {
        let mut left = acked;
        if window.in_slow_start() {
            let bytes = acked.min(window.ssthresh() - window.cwnd());
            window.grow(bytes);
            left -= bytes;
        }
        self.credit += u64::from(left);
        while left > 0 && self.credit >= u64::from(window.cwnd()) {
            self.credit -= u64::from(window.cwnd());
            window.grow(window.smss());
            left = left.saturating_sub(window.cwnd());
        }
    }
}

impl CongestionControl for Reno {
    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        let smss = window.smss();
        if self.abc == Some(ABC_UNLIMITED) {
            return self.count_all(window, ack.acked);
        }
        if window.in_slow_start() {
            let most = match self.abc {
                Some(limit) if !self.after_timeout => limit.saturating_mul(smss),
                _ => smss,
            };
            window.grow(ack.acked.min(most));
            return;
        }
        self.after_timeout = false;
        let cwnd = u64::from(window.cwnd());
        if self.abc.is_some() {
            // RFC 3465 §2.1: one SMSS for each full cwnd of bytes acknowledged.
            self.credit += u64::from(ack.acked);
            if self.credit >= cwnd {
                self.credit -= cwnd;
                window.grow(smss);
            }
        } else {
            // RFC 5681 eq. 3, SMSS²/cwnd per ACK, the remainder carried so that no growth is lost
            // to integer division.
            self.credit += u64::from(smss) * u64::from(smss);
            window.grow((self.credit / cwnd) as u32);
            self.credit %= cwnd;
        }
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        if timeout.first {
            window.halve_ssthresh(timeout.flight);
        } else if self.repeated_timeout == RepeatedTimeout::Cut {
            window.set_ssthresh(2 * window.smss());
        }
        window.set_cwnd(window.smss());
        self.credit = 0;
        self.after_timeout = true;
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        window.halve_ssthresh(loss.flight);
        window.set_cwnd(window.ssthresh());
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SMSS, ack, timeout, window};
    use super::*;

    #[test]
    fn slow_start_adds_at_most_one_segment_an_ack() {
        // RFC 5681 eq. 2.
        let (mut cc, mut w) = (Reno::new(None), window(10, 100));
        cc.on_growth(&mut w, &ack(400));
        assert_eq!(w.cwnd(), 10_400);
        cc.on_growth(&mut w, &ack(4 * SMSS));
        assert_eq!(w.cwnd(), 11_400);
    }

    #[test]
    fn abc_counts_bytes_up_to_its_limit() {
        // RFC 3465 §2.2, L = 2.
        let (mut cc, mut w) = (Reno::new(Some(2)), window(10, 100));
        cc.on_growth(&mut w, &ack(2 * SMSS));
        assert_eq!(w.cwnd(), 12 * SMSS);
        cc.on_growth(&mut w, &ack(4 * SMSS));
        assert_eq!(w.cwnd(), 14 * SMSS);
    }

    // Linux: tcp_slow_start returns what exceeds ssthresh, also after a time-out.
    #[test]
    fn without_a_limit_a_stretched_ack_goes_on_in_congestion_avoidance() {
        let (mut cc, mut w) = (Reno::new(Some(ABC_UNLIMITED)), window(10, 100));
        cc.on_timeout(&mut w, &timeout(20 * SMSS, true));
        cc.on_growth(&mut w, &ack(19 * SMSS));
        assert_eq!(w.cwnd(), 11 * SMSS, "to 10 segments, and 10 more are worth one");
    }

    #[test]
    fn abc_is_careful_after_a_timeout() {
        // RFC 3465 §2.3: L = 1.
        let (mut cc, mut w) = (Reno::new(Some(2)), window(10, 100));
        cc.on_timeout(&mut w, &timeout(10 * SMSS, true));
        cc.on_growth(&mut w, &ack(2 * SMSS));
        assert_eq!(w.cwnd(), 2 * SMSS);
    }

    #[test]
    fn avoidance_adds_one_segment_a_window_without_rounding_loss() {
        // RFC 5681 eq. 3: with cwnd = 1000 segments of 1000 B each ACK is worth one byte.
        for abc in [None, Some(2)] {
            let (mut cc, mut w) = (Reno::new(abc), window(1000, 1));
            for _ in 0..1000 {
                cc.on_growth(&mut w, &ack(SMSS));
            }
            let grown = w.cwnd() - 1000 * SMSS;
            assert!((SMSS - 2..=SMSS).contains(&grown), "{abc:?}: {grown}");
        }
    }

    #[test]
    fn only_the_first_timeout_of_a_segment_halves_ssthresh() {
        let (mut cc, mut w) = (Reno::new(None), window(20, 100));
        cc.on_timeout(&mut w, &timeout(20 * SMSS, true));
        assert_eq!((w.cwnd(), w.ssthresh()), (SMSS, 10 * SMSS));
        cc.on_timeout(&mut w, &timeout(20 * SMSS, false));
        assert_eq!(w.ssthresh(), 10 * SMSS);
        cc.on_timeout(&mut w, &timeout(SMSS, true));
        assert_eq!(w.ssthresh(), 2 * SMSS);
    }
}
