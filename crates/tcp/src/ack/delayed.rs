//! Delayed acknowledgements (RFC 1122 §4.2.3.2, RFC 5681 §4.2).

use super::{AckPolicy, Arrival, Decision, LONGEST_DELAY, Order};
use airtcp_core::{Duration, Instant};

/// Acknowledges every n-th full-sized segment, or when the timer started by the first
/// unacknowledged one expires.
#[derive(Clone, Debug)]
pub struct Delayed {
    segments: u32,
    timeout: Duration,
    /// Bytes received since the last ACK. Full-sized segments are counted in bytes, as deployed
    /// stacks do: two halves make one.
    pending: u32,
    deadline: Option<Instant>,
}

impl Delayed {
    /// An ACK for every `segments` full-sized segments (at least 1), or after `timeout` (at most
    /// 500 ms).
    pub fn new(segments: u32, timeout: Duration) -> Self {
        let timeout = timeout.min(LONGEST_DELAY);
        Self { segments: segments.max(1), timeout, pending: 0, deadline: None }
    }
}

impl AckPolicy for Delayed {
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision {
        if arrival.order != Order::InOrder {
            return Decision::Now;
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
