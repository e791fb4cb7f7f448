//! A congestion window bounded by the number of hops (Chen, Xue, Nahrstedt, "On Setting TCP's
//! Congestion Window Limit in Mobile Ad Hoc Networks", ICC 2003).
//!
//! Over several wireless hops only nodes some hops apart send at the same time, so that the path
//! holds at most a segment for every few hops of the round trip. The hops of the ACKs' way are
//! known; the way of the data is taken to be as long. Not checked against the paper: a fifth of the
//! round trip's hops.

use super::{Ack, CongestionControl, Loss, Lost, Restart, Resume, Timeout, Undo, Window};
use airtcp_core::{DataRate, Duration, Ecn, Instant};

/// Hops of the round trip per segment of cwnd.
const HOPS_PER_SEGMENT: u32 = 5;
/// Lowest limit: a single segment would always leave the receiver's delayed ACK to its timer.
const LEAST_SEGMENTS: u32 = 2;

/// Another algorithm with cwnd limited by the path: to a segment per five hops of a round trip,
/// rounded up, but at least two. A configured limit holds as well.
#[derive(Debug)]
pub struct HopLimited {
    inner: Box<dyn CongestionControl>,
    /// Configured limit of cwnd, bytes.
    ceiling: Option<u32>,
}

impl HopLimited {
    /// Limits the cwnd of `inner`.
    pub fn new(inner: Box<dyn CongestionControl>) -> Self {
        Self { inner, ceiling: None }
    }
}

impl CongestionControl for HopLimited {
    fn on_established(&mut self, window: &mut Window, now: Instant, srtt: Option<Duration>) {
        self.inner.on_established(window, now, srtt);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.inner.on_ack(window, ack);
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(hops) = ack.hops {
            let ceiling = *self.ceiling.get_or_insert(window.limit());
            let segments = (2 * u32::from(hops)).div_ceil(HOPS_PER_SEGMENT).max(LEAST_SEGMENTS);
            window.set_limit(ceiling.min(segments.saturating_mul(window.smss())));
        }
        self.inner.on_growth(window, ack);
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        self.inner.on_fast_retransmit(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.inner.on_timeout(window, timeout);
    }

    fn larger_restart(&self, window: &Window, timeout: &Timeout) -> Option<u32> {
        self.inner.larger_restart(window, timeout)
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        self.inner.on_restart(window, cause);
    }

    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.inner.on_spurious(window, undo);
    }

    fn on_ecn(&mut self, window: &mut Window, loss: &Loss) {
        self.inner.on_ecn(window, loss);
    }

    fn on_lost(&mut self, window: &mut Window, lost: &Lost) {
        self.inner.on_lost(window, lost);
    }

    fn on_resume(&mut self, window: &mut Window, resume: &Resume) {
        self.inner.on_resume(window, resume);
    }

    fn on_recovered(&mut self, window: &mut Window, now: Instant) {
        self.inner.on_recovered(window, now);
    }

    fn owns_recovery(&self) -> bool {
        self.inner.owns_recovery()
    }

    fn codepoint(&self) -> Ecn {
        self.inner.codepoint()
    }

    fn pacing_rate(&self, window: &Window) -> Option<DataRate> {
        self.inner.pacing_rate(window)
    }
}
