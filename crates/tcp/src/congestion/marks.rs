//! The share of data that queues mark, as DCTCP and Prague estimate it (RFC 8257 §3.3).

use super::Ack;
use airtcp_core::SeqNum;

/// g: weight of the latest window (RFC 8257 §4.2).
const GAIN: f64 = 1.0 / 16.0;

/// Moving average of the share of marked bytes, over windows of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MarkedShare {
    /// DCTCP.Alpha, from 0 to 1.
    pub(super) alpha: f64,
    /// Bytes delivered and marked in this window.
    delivered: u64,
    marked: u64,
    /// DCTCP.WindowEnd: the window ends when SND.UNA is past it.
    window_end: Option<SeqNum>,
}

impl Default for MarkedShare {
    /// Starts at 1: at first a mark halves the window, as with any other sender.
    fn default() -> Self {
        Self { alpha: 1.0, delivered: 0, marked: 0, window_end: None }
    }
}

impl MarkedShare {
    /// Counts what an ACK delivers (steps 1 to 3).
    pub(super) fn count(&mut self, ack: &Ack) {
        self.delivered += u64::from(ack.delivery.newly_delivered);
        self.marked += u64::from(ack.delivery.newly_ce);
        self.window_end.get_or_insert(ack.max);
    }

    /// True if all data sent before the window began is acknowledged (step 4).
    pub(super) fn is_window_over(&self, ack: &Ack) -> bool {
        self.window_end.is_some_and(|end| ack.una.after(end))
    }

    /// Adds the window to the average (steps 5 to 8).
    pub(super) fn update(&mut self, ack: &Ack) {
        if self.delivered > 0 {
            let share = self.marked.min(self.delivered) as f64 / self.delivered as f64;
            self.alpha += GAIN * (share - self.alpha);
        }
        self.begin_window(ack);
    }

    /// Begins a window without counts.
    pub(super) fn begin_window(&mut self, ack: &Ack) {
        *self = Self { alpha: self.alpha, delivered: 0, marked: 0, window_end: Some(ack.max) };
    }

    /// Window after the reduction of `cwnd` by half the share (§3.3, step 9), at least two
    /// segments.
    pub(super) fn reduced(&self, cwnd: u32, smss: u32) -> u32 {
        let cut = (f64::from(cwnd) * self.alpha / 2.0) as u32;
        (cwnd - cut).max(2 * smss).min(cwnd)
    }
}
