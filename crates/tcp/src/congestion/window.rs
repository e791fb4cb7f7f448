//! cwnd and ssthresh of one sender.

use crate::config::LARGEST_WINDOW;

/// The congestion window and slow-start threshold of one sender, in bytes.
///
/// [Loss recovery](crate::recovery) owns it: it moves the window during fast recovery and otherwise
/// lends it to the hooks of [`CongestionControl`](super::CongestionControl). All others only read
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    cwnd: u32,
    ssthresh: u32,
    smss: u32,
    initial: u32,
    limit: u32,
    whole_segments: bool,
}

impl Window {
    /// A window with cwnd at `initial`, and ssthresh arbitrarily high unless given. cwnd grows up
    /// to `limit` (at least one SMSS), if there is one.
    pub fn new(smss: u32, initial: u32, ssthresh: Option<u32>, limit: Option<u32>) -> Self {
        let limit = limit.unwrap_or(LARGEST_WINDOW).clamp(smss, LARGEST_WINDOW);
        let ssthresh = ssthresh.unwrap_or(u32::MAX);
        Self { cwnd: initial.min(limit), ssthresh, smss, initial, limit, whole_segments: false }
    }

    /// Makes [`Window::halve_ssthresh`] round down to whole segments (RFC 2001, ns-2).
    pub fn in_whole_segments(self) -> Self {
        Self { whole_segments: true, ..self }
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Slow-start threshold, bytes; `u32::MAX` until the first reduction unless configured.
    pub fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// SMSS: largest payload of a segment, bytes.
    pub fn smss(&self) -> u32 {
        self.smss
    }

    /// Initial window, bytes (RFC 5681 §3.1).
    pub fn initial(&self) -> u32 {
        self.initial
    }

    /// Bound on the growth of cwnd, bytes.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// True in slow start: cwnd < ssthresh (RFC 5681 §3.1; equality counts as congestion
    /// avoidance).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows cwnd by `bytes`, within the limit.
    pub fn grow(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(self.limit);
    }

    /// Sets cwnd, to at least one SMSS. The limit does not apply: fast recovery inflates cwnd
    /// beyond it by the data that has left the network (RFC 5681 §3.2).
    pub fn set_cwnd(&mut self, bytes: u32) {
        self.cwnd = bytes.max(self.smss);
    }

    /// Sets the slow-start threshold.
    pub fn set_ssthresh(&mut self, bytes: u32) {
        self.ssthresh = bytes;
    }

    /// Sets ssthresh to half of `flight`, at least two segments (RFC 5681 eq. 4).
    pub fn halve_ssthresh(&mut self, flight: u32) {
        let half = flight / 2;
        let rounded = if self.whole_segments { half - half % self.smss } else { half };
        self.ssthresh = rounded.max(2 * self.smss);
    }

    /// Sets the bound on the growth of cwnd (at least one SMSS) and reduces cwnd to it. For
    /// algorithms that derive the bound from the path, such as from its number of hops.
    pub fn set_limit(&mut self, bytes: u32) {
        self.limit = bytes.clamp(self.smss, LARGEST_WINDOW);
        self.cwnd = self.cwnd.min(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u32 = 1000;

    #[test]
    fn growth_stops_at_the_limit() {
        let mut window = Window::new(SMSS, SMSS, None, Some(4 * SMSS));
        window.grow(10 * SMSS);
        assert_eq!(window.cwnd(), 4 * SMSS);
    }

    #[test]
    fn a_lower_limit_cuts_cwnd() {
        let mut window = Window::new(SMSS, 10 * SMSS, None, None);
        window.set_limit(3 * SMSS);
        assert_eq!(window.cwnd(), 3 * SMSS);
        window.set_limit(0);
        assert_eq!((window.cwnd(), window.limit()), (SMSS, SMSS));
    }

    #[test]
    fn cwnd_never_falls_below_a_segment() {
        let mut window = Window::new(SMSS, 10 * SMSS, None, None);
        window.set_cwnd(0);
        assert_eq!(window.cwnd(), SMSS);
    }

    #[test]
    fn ns2_halves_in_whole_segments() {
        let window = Window::new(SMSS, 10 * SMSS, None, None);
        for (mut window, half) in [(window, 4_500), (window.in_whole_segments(), 4_000)] {
            window.halve_ssthresh(9 * SMSS);
            assert_eq!(window.ssthresh(), half);
        }
    }
}
