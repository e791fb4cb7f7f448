//! Dynamic delayed acknowledgements (Altman and Jiménez, "Novel Delayed ACK Techniques for
//! Improving TCP Performance in Multihop Wireless Networks", PWC 2003): the longer the connection
//! lasts, the more segments an ACK covers, up to four.
//!
//! The thresholds are from memory, not checked against the paper.

use super::{AckPolicy, Arrival, Decision, LONGEST_DELAY, Order};
use airtcp_core::{Duration, Instant};

/// Acknowledges every one to four segments, by the number of segments received so far.
#[derive(Clone, Debug)]
pub struct Altman {
    timeout: Duration,
    received: u32,
    waiting: u32,
    deadline: Option<Instant>,
}

impl Altman {
    /// A policy that delays an ACK by at most `timeout`, or 500 ms if that is less.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout: timeout.min(LONGEST_DELAY), received: 0, waiting: 0, deadline: None }
    }

    /// Segments per ACK after `received` segments.
    fn delay_window(received: u32) -> u32 {
        match received {
            ..2 => 1,
            2..5 => 2,
            5..9 => 3,
            9.. => 4,
        }
    }
}

impl AckPolicy for Altman {
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision {
        if arrival.order != Order::Duplicate {
            self.received = self.received.saturating_add(arrival.segments());
        }
        if arrival.order != Order::InOrder {
            return Decision::Now;
        }
        self.waiting = self.waiting.saturating_add(arrival.segments());
        if self.waiting >= Self::delay_window(self.received) {
            return Decision::Now;
        }
        self.deadline.get_or_insert(arrival.now + self.timeout);
        Decision::Wait
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn stop(&mut self) {
        self.waiting = 0;
        self.deadline = None;
    }
}
