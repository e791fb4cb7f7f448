//! Delayed acknowledgements (RFC 1122 §4.2.3.2, RFC 5681 §4.2).

use super::{AckPolicy, Arrival, Decision, LONGEST_DELAY, Order};
use airtcp_core::{Duration, Instant};

/// Acknowledges every n-th full-sized segment, or when the timer started by the first
/// unacknowledged one expires.
#[derive(Clone, Debug)]
pub struct Delayed {
    segments: u32,
    timeout: Duration,
    /// Segments still to be acknowledged at once: the number that each such phase begins with, and
    /// the number left now.
    quick: u32,
    quick_left: u32,
    /// Bytes received since the last ACK. Full-sized segments are counted in bytes, as deployed
    /// stacks do: two halves make one.
    pending: u32,
    deadline: Option<Instant>,
}

impl Delayed {
    /// A policy that acknowledges every `segments` full-sized segments (at least 1), or after
    /// `timeout` (at most 500 ms). The first `quick` segments, and as many after one with nothing
    /// new, are acknowledged at once.
    pub fn new(segments: u32, timeout: Duration, quick: u32) -> Self {
        let timeout = timeout.min(LONGEST_DELAY);
        let segments = segments.max(1);
        Self { segments, timeout, quick, quick_left: quick, pending: 0, deadline: None }
    }
}

impl AckPolicy for Delayed {
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision {
        if arrival.order == Order::Duplicate {
            // The peer may have lost an ACK, and has a small window.
            self.quick_left = self.quick;
        }
        if arrival.order != Order::InOrder {
            return Decision::Now;
        }
        if self.quick_left > 0 {
            self.quick_left -= 1;
            return Decision::Now;
        }
        if self.quick > 0 && arrival.window_grew {
            return Decision::Now; // the sender learns of it (Linux: tcp_grow_window)
        }
        self.pending = self.pending.saturating_add(arrival.len);
        if self.pending >= self.segments.saturating_mul(arrival.mss) {
            return Decision::Now;
        }
        self.deadline.get_or_insert(arrival.now + self.timeout);
        Decision::Wait
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn stop(&mut self) {
        self.pending = 0;
        self.deadline = None;
    }
}
