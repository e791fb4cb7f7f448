//! The standard algorithm: slow start, congestion avoidance and halving (RFC 5681), optionally with
//! Appropriate Byte Counting (RFC 3465).

use super::{CongestionControl, Timeout, Window};

/// RFC 5681 congestion control, shared by Tahoe, Reno, NewReno and SACK.
#[derive(Clone, Debug)]
pub struct Reno {
    /// RFC 3465's L in segments.
    abc: Option<u32>,
    /// Congestion avoidance: growth not yet worth a byte (numerator over cwnd), or bytes counted by ABC.
    credit: u64,
    /// Slow start after a time-out: ABC uses L = 1 (RFC 3465 §2.3).
    after_timeout: bool,
}

impl Reno {
    /// `abc`: RFC 3465's L, or one SMSS an ACK.
    pub fn new(abc: Option<u32>) -> Self {
        Self { abc, credit: 0, after_timeout: false }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut Window, acked: u32) {
        let smss = window.smss;
        if window.in_slow_start() {
            let most = match self.abc {
                Some(limit) if !self.after_timeout => limit.saturating_mul(smss),
                _ => smss,
            };
            window.grow(acked.min(most));
            return;
        }
        self.after_timeout = false;
        let cwnd = u64::from(window.cwnd);
        if self.abc.is_some() {
            // RFC 3465 §2.1: one SMSS for each full cwnd of bytes acknowledged.
            self.credit += u64::from(acked);
            if self.credit >= cwnd {
                self.credit -= cwnd;
                window.grow(smss);
            }
        } else {
            // RFC 5681 eq. 3, SMSS²/cwnd per ACK, the remainder carried so that no growth is lost to
            // integer division.
            self.credit += u64::from(smss) * u64::from(smss);
            window.grow((self.credit / cwnd) as u32);
            self.credit %= cwnd;
        }
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: Timeout) {
        if timeout.first {
            window.halve_ssthresh(timeout.flight);
        }
        window.cwnd = window.smss;
        self.credit = 0;
        self.after_timeout = true;
    }

    fn on_duplicate_acks(&mut self, window: &mut Window, flight: u32) {
        window.halve_ssthresh(flight);
        window.cwnd = window.ssthresh;
        self.credit = 0;
    }

    fn on_partial_ack(&mut self, window: &mut Window, acked: u32) {
        // RFC 6582 §3.2 step 5: deflate by what left, add back one SMSS if that was at least one.
        let back = if acked >= window.smss { window.smss } else { 0 };
        window.cwnd = window.cwnd.saturating_sub(acked).saturating_add(back).max(window.smss);
    }

    fn on_idle(&mut self, window: &mut Window) {
        window.cwnd = window.cwnd.min(window.initial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u32 = 1000;

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        Window { cwnd: cwnd * SMSS, ..Window::new(SMSS, 2 * SMSS, Some(ssthresh * SMSS), None) }
    }

    #[test]
    fn slow_start_adds_at_most_one_segment_an_ack() {
        // RFC 5681 eq. 2.
        let (mut cc, mut w) = (Reno::new(None), window(10, 100));
        cc.on_ack(&mut w, 400);
        assert_eq!(w.cwnd, 10_400);
        cc.on_ack(&mut w, 4 * SMSS);
        assert_eq!(w.cwnd, 11_400);
    }

    #[test]
    fn abc_counts_bytes_up_to_its_limit() {
        // RFC 3465 §2.2, L = 2; oracles §10 ack-per-2pkt and ack-per-4pkt.
        let (mut cc, mut w) = (Reno::new(Some(2)), window(10, 100));
        cc.on_ack(&mut w, 2 * SMSS);
        assert_eq!(w.cwnd, 12 * SMSS);
        cc.on_ack(&mut w, 4 * SMSS);
        assert_eq!(w.cwnd, 14 * SMSS);
    }

    #[test]
    fn abc_is_careful_after_a_timeout() {
        // RFC 3465 §2.3: L = 1.
        let (mut cc, mut w) = (Reno::new(Some(2)), window(10, 100));
        cc.on_timeout(&mut w, Timeout { flight: 10 * SMSS, first: true, duplicate_acks: 0 });
        cc.on_ack(&mut w, 2 * SMSS);
        assert_eq!(w.cwnd, 2 * SMSS);
    }

    #[test]
    fn avoidance_adds_one_segment_a_window_without_rounding_loss() {
        // RFC 5681 eq. 3: with cwnd = 1000 segments of 1000 B each ACK is worth one byte.
        for abc in [None, Some(2)] {
            let (mut cc, mut w) = (Reno::new(abc), window(1000, 1));
            for _ in 0..1000 {
                cc.on_ack(&mut w, SMSS);
            }
            let grown = w.cwnd - 1000 * SMSS;
            assert!((SMSS - 2..=SMSS).contains(&grown), "{abc:?}: {grown}");
        }
    }

    #[test]
    fn only_the_first_timeout_of_a_segment_halves_ssthresh() {
        let (mut cc, mut w) = (Reno::new(None), window(20, 100));
        cc.on_timeout(&mut w, Timeout { flight: 20 * SMSS, first: true, duplicate_acks: 0 });
        assert_eq!((w.cwnd, w.ssthresh), (SMSS, 10 * SMSS));
        cc.on_timeout(&mut w, Timeout { flight: 20 * SMSS, first: false, duplicate_acks: 0 });
        assert_eq!(w.ssthresh, 10 * SMSS);
        cc.on_timeout(&mut w, Timeout { flight: SMSS, first: true, duplicate_acks: 0 });
        assert_eq!(w.ssthresh, 2 * SMSS);
    }

    #[test]
    fn partial_ack_deflates_by_what_left() {
        let (mut cc, mut w) = (Reno::new(None), window(10, 5));
        cc.on_partial_ack(&mut w, 3 * SMSS);
        assert_eq!(w.cwnd, 8 * SMSS);
        cc.on_partial_ack(&mut w, 500);
        assert_eq!(w.cwnd, 7_500);
        cc.on_partial_ack(&mut w, 20 * SMSS);
        assert_eq!(w.cwnd, SMSS);
    }

    #[test]
    fn growth_stops_at_the_limit() {
        let mut w = Window::new(SMSS, SMSS, None, Some(4 * SMSS));
        let mut cc = Reno::new(None);
        for _ in 0..10 {
            cc.on_ack(&mut w, SMSS);
        }
        assert_eq!(w.cwnd, 4 * SMSS);
    }
}
