//! Delayed acknowledgements (RFC 1122 §4.2.3.2, RFC 5681 §4.2).

use super::{AckPolicy, Arrival, Decision, LONGEST_DELAY, Order};
use airtcp_core::{Duration, Instant};

/// Acknowledges every n-th full-sized segment, or when the timer started by the first
/// unacknowledged one expires.
#[derive(Clone, Debug)]
pub struct Delayed {
    segments: u32,
    timeout: Duration,
    /// ACKs that do not wait: the number that each such phase begins with, and the number left now.
    quick: u32,
    quick_left: u32,
    /// Arrival of the last data in order.
    last: Option<Instant>,
    /// Bytes received since the last ACK. Full-sized segments are counted in bytes, as deployed
    /// stacks do: two halves make one.
    pending: u32,
    deadline: Option<Instant>,
}

impl Delayed {
    /// A policy that acknowledges every `segments` full-sized segments (at least 1), or after
    /// `timeout` (at most 500 ms).
    ///
    /// The first `quick` segments are acknowledged at once, as in Linux (net/ipv4/tcp_input.c):
    /// the sender's window is small. So are as many after one with nothing new, because an ACK may
    /// have been lost (`tcp_enter_quickack_mode`), and after a silence of more than an RTO
    /// (`tcp_event_data_recv`). A segment that makes the window grow uses up none of them
    /// (`tcp_grow_window`).
    pub fn new(segments: u32, timeout: Duration, quick: u32) -> Self {
        let timeout = timeout.min(LONGEST_DELAY);
        let segments = segments.max(1);
        Self { segments, timeout, quick, quick_left: quick, last: None, pending: 0, deadline: None }
    }

    /// True if the sender's window is likely to be small.
    fn begins_quick_phase(&mut self, arrival: &Arrival<'_>) -> bool {
        match arrival.order {
            Order::Duplicate => true,
            Order::OutOfOrder => false,
            Order::InOrder | Order::FilledGap => {
                let last = self.last.replace(arrival.now);
                last.zip(arrival.rto).is_some_and(|(last, rto)| arrival.now.since(last) > rto)
            }
        }
    }
}

impl AckPolicy for Delayed {
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision {
        if self.begins_quick_phase(arrival) {
            self.quick_left = self.quick;
        }
        if self.quick > 0 && arrival.window_grew {
            self.quick_left |= 1;
        }
        let quick = self.quick_left > 0;
        self.quick_left = self.quick_left.saturating_sub(1);
        if quick || arrival.order != Order::InOrder {
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
