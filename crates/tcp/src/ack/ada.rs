//! TCP-ADA, adaptive delayed acknowledgement (Singh and Kankipati, WCNC 2004): one ACK for each
//! burst of the sender, which is a congestion window.
//!
//! The ACK leaves when no further segment has come for some inter-arrival times, and after 500 ms
//! at the latest. TCP-DCA §II notes that the paper says nothing of loss and reordering; here, as
//! RFC 5681 §4.2 asks, out-of-order data and filled gaps are acknowledged at once. Not checked
//! against the paper: how many inter-arrival times, and the weight of their average.

use super::{AckPolicy, Arrival, Decision, LONGEST_DELAY, Order, Spacing};
use crate::config::AdaConfig;
use airtcp_core::Instant;

/// Weight of the average so far; as TCP-DCA's, β = 0.8.
const MEMORY: u64 = 4;

/// Acknowledges once a burst has ended.
#[derive(Clone, Debug)]
pub struct Ada {
    config: AdaConfig,
    spacing: Spacing,
    /// Arrival of the first unacknowledged segment.
    first: Option<Instant>,
    deadline: Option<Instant>,
}

impl Ada {
    /// A policy with these settings.
    pub fn new(config: AdaConfig) -> Self {
        Self { config, spacing: Spacing::new(MEMORY), first: None, deadline: None }
    }
}

impl AckPolicy for Ada {
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision {
        let now = arrival.now;
        self.spacing.on_arrival(now, arrival.segments());
        if arrival.order != Order::InOrder {
            return Decision::Now;
        }
        let first = *self.first.get_or_insert(now);
        let over = now + self.spacing.expected(self.config.spacing_factor);
        self.deadline = Some(over.min(first + LONGEST_DELAY));
        Decision::Wait
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn stop(&mut self) {
        self.first = None;
        self.deadline = None;
    }
}
