//! Proportional rate reduction (RFC 9937): cwnd falls to ssthresh over the round trip of recovery,
//! in proportion to what is delivered, and never bursts.
//!
//! As in Linux, the proportion refers to cwnd at the beginning of recovery; RFC 9937 §6.2 takes the
//! data in the network then (RecoverFS). They differ if cwnd was not fully used.

/// State of one reduction, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// cwnd before the reduction.
    prior_cwnd: u32,
    /// Bytes delivered since then (prr_delivered).
    delivered: u64,
    /// Bytes sent since then (prr_out).
    out: u64,
}

/// Effect of an ACK on the reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) smss: u32,
    pub(crate) ssthresh: u32,
    pub(crate) inflight: u32,
    pub(crate) newly_delivered: u32,
    /// The ACK advanced SND.UNA and showed no further loss (SafeACK).
    pub(crate) safe: bool,
}

impl Prr {
    pub(crate) fn new(cwnd: u32) -> Self {
        Self { prior_cwnd: cwnd.max(1), delivered: 0, out: 0 }
    }

    pub(crate) fn on_sent(&mut self, bytes: u32) {
        self.out += u64::from(bytes);
    }

    /// cwnd after an ACK (RFC 9937 §6.2); `None` if it delivered nothing.
    pub(crate) fn cwnd(&mut self, progress: &Progress) -> Option<u32> {
        let Progress { smss, ssthresh, inflight, newly_delivered, safe } = *progress;
        if newly_delivered == 0 {
            return None;
        }
        self.delivered += u64::from(newly_delivered);
        let to_send = if inflight > ssthresh {
            let share = u64::from(ssthresh) * self.delivered;
            let whole = share.div_ceil(u64::from(self.prior_cwnd)).div_ceil(u64::from(smss));
            (whole * u64::from(smss)).saturating_sub(self.out)
        } else {
            // PRR-CRB (packet conservation), or PRR-SSRB (slow start) on a safe ACK.
            let conserved = self.delivered.saturating_sub(self.out).max(newly_delivered.into());
            let grown = conserved + if safe { u64::from(smss) } else { 0 };
            grown.min(u64::from(ssthresh - inflight))
        };
        // The first retransmission leaves at once.
        let least = if self.out == 0 { smss } else { 0 };
        Some(inflight.saturating_add((to_send as u32).max(least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u32 = 1000;

    /// Recovery from 20 segments to 10, the first lost; each ACK delivers one.
    fn reduction(acks: u32, safe: bool) -> (Vec<u32>, u32) {
        let mut prr = Prr::new(20 * SMSS);
        let (mut inflight, mut sent) = (19 * SMSS, Vec::new());
        for _ in 0..acks {
            inflight -= SMSS;
            let (ssthresh, newly_delivered) = (10 * SMSS, SMSS);
            let progress = Progress { smss: SMSS, ssthresh, inflight, newly_delivered, safe };
            let cwnd = prr.cwnd(&progress).expect("something was delivered");
            let room = (cwnd - inflight) / SMSS;
            prr.on_sent(room * SMSS);
            inflight += room * SMSS;
            sent.push(room);
        }
        (sent, inflight)
    }

    // RFC 9937 §6.2: ssthresh/RecoverFS of a segment for each delivered.
    #[test]
    fn every_other_ack_releases_a_segment() {
        let (sent, inflight) = reduction(18, false);
        assert_eq!(&sent[..6], [1, 0, 1, 0, 1, 0]);
        assert_eq!(inflight, 10 * SMSS);
    }

    #[test]
    fn after_heavy_loss_each_delivered_segment_releases_one() {
        let mut prr = Prr::new(20 * SMSS);
        let (ssthresh, newly_delivered, safe) = (10 * SMSS, SMSS, false);
        let inflight = 4 * SMSS;
        let progress = Progress { smss: SMSS, ssthresh, inflight, newly_delivered, safe };
        assert_eq!(prr.cwnd(&progress), Some(5 * SMSS));
        prr.on_sent(SMSS);
        // PRR-SSRB: one more on an ACK that shows progress without loss.
        assert_eq!(prr.cwnd(&Progress { safe: true, ..progress }), Some(6 * SMSS));
    }

    #[test]
    fn nothing_delivered_changes_nothing() {
        let mut prr = Prr::new(20 * SMSS);
        let (smss, ssthresh, inflight) = (SMSS, 10 * SMSS, 15 * SMSS);
        let progress = Progress { smss, ssthresh, inflight, newly_delivered: 0, safe: false };
        assert_eq!(prr.cwnd(&progress), None);
    }

    #[test]
    fn it_never_grows_beyond_ssthresh() {
        let mut prr = Prr::new(20 * SMSS);
        let (smss, ssthresh, inflight) = (SMSS, 10 * SMSS, 9_500);
        let newly_delivered = 5 * SMSS;
        let progress = Progress { smss, ssthresh, inflight, newly_delivered, safe: true };
        prr.on_sent(SMSS);
        assert_eq!(prr.cwnd(&progress), Some(10 * SMSS));
    }
}
