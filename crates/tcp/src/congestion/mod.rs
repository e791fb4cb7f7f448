//! Congestion control: how cwnd and ssthresh move, one file an algorithm.
//!
//! The hooks are named by *cause*: a time-out, loss by duplicate ACKs, a partial ACK, a spurious
//! time-out and an ECN echo are different calls, because algorithms answer them differently (TCP Karak,
//! for one, only differs on a time-out). What to retransmit is not decided here but in
//! [`crate::recovery`].

mod reno;

pub use reno::Reno;

use crate::config::LARGEST_WINDOW;
use std::fmt::Debug;

/// The congestion window and slow-start threshold of one sender, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// cwnd; at least one SMSS once set up.
    pub cwnd: u32,
    /// ssthresh; `u32::MAX` until the first reduction unless configured.
    pub ssthresh: u32,
    /// SMSS.
    pub smss: u32,
    /// Initial window, in bytes (RFC 5681 §3.1).
    pub initial: u32,
    /// Upper bound of cwnd.
    pub limit: u32,
    /// ssthresh is rounded down to whole segments (RFC 2001, ns-2).
    pub whole_segments: bool,
}

impl Window {
    /// A fresh window.
    pub fn new(smss: u32, initial: u32, ssthresh: Option<u32>, limit: Option<u32>) -> Self {
        let limit = limit.unwrap_or(LARGEST_WINDOW).clamp(smss, LARGEST_WINDOW);
        let ssthresh = ssthresh.unwrap_or(u32::MAX);
        Self { cwnd: initial.min(limit), ssthresh, smss, initial, limit, whole_segments: false }
    }

    /// cwnd < ssthresh (RFC 5681 §3.1; equality counts as congestion avoidance).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows cwnd by `bytes`, within the limit.
    pub fn grow(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(self.limit);
    }

    /// Sets ssthresh to half of `flight`, at least two segments (RFC 5681 eq. 4).
    pub fn halve_ssthresh(&mut self, flight: u32) {
        let half = flight / 2;
        let rounded = if self.whole_segments { half - half % self.smss } else { half };
        self.ssthresh = rounded.max(2 * self.smss);
    }
}

/// What a time-out looked like.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// FlightSize at the expiry (or the window that is halved instead, see
    /// [`LossWindow`](crate::config::LossWindow)).
    pub flight: u32,
    /// First expiry for this segment (RFC 5681 §3.1: ssthresh is reduced once).
    pub first: bool,
    /// Duplicate ACKs counted for SND.UNA before it.
    pub duplicate_acks: u32,
}

/// A congestion control algorithm.
pub trait CongestionControl: Debug + Send {
    /// New data was acknowledged outside fast recovery.
    fn on_ack(&mut self, window: &mut Window, acked: u32);
    /// The retransmission timer expired.
    fn on_timeout(&mut self, window: &mut Window, timeout: Timeout);
    /// Fast retransmit: sets ssthresh, and cwnd to what it will be when recovery ends.
    fn on_duplicate_acks(&mut self, window: &mut Window, flight: u32);
    /// A partial ACK of `acked` bytes in fast recovery (RFC 6582 §3.2).
    fn on_partial_ack(&mut self, window: &mut Window, acked: u32);
    /// The sender was idle for longer than an RTO (RFC 5681 §4.1).
    fn on_idle(&mut self, window: &mut Window);
    /// A retransmission was spurious: undo (RFC 4015 §3.2 steps 8). `flight` now, `acked` by the ACK
    /// that told, `pipe_prev` as saved before the reduction.
    fn on_spurious(&mut self, window: &mut Window, flight: u32, acked: u32, pipe_prev: u32) {
        window.cwnd = flight.saturating_add(acked.min(window.initial)).min(window.limit);
        window.ssthresh = pipe_prev;
    }
    /// An ECN echo (RFC 3168 §6.1.2), at most once a window. Not called and not validated yet: the
    /// endpoint does not negotiate ECN.
    fn on_ecn(&mut self, window: &mut Window, flight: u32) {
        window.halve_ssthresh(flight);
        window.cwnd = window.ssthresh;
    }
}
