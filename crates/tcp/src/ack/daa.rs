//! The receiver of TCP-DAA, dynamic adaptive acknowledgement (de Oliveira and Braun, INFOCOM 2005).
//!
//! The delay window grows with each segment that arrives in order, to four segments, and falls to
//! two when a segment is missing or late. The next ACK covers as many segments as the window held
//! when the first of them arrived. The sender's part is in the settings of an endpoint:
//! `duplicate-ack-threshold = 2`, a `cwnd-limit` of four segments and `rto.factor = 5` (TCP-DCA,
//! Table II).
//!
//! Not checked against the paper: the step of 0.3 and that start-up lasts until the first loss; the
//! weight of the inter-arrival average. The paper's timer, from memory, is 2.2 inter-arrival times;
//! TCP-DCA §II, which compares itself with TCP-DAA, says one.

use super::{AckPolicy, Arrival, Decision, LONGEST_DELAY, Order, Spacing};
use crate::config::DaaConfig;
use airtcp_core::Instant;

/// Weight of the average so far: α = 0.75.
const MEMORY: u64 = 3;
/// The delay window in tenths of a segment: at first, after a loss, at most.
const FIRST: u32 = 10;
const AFTER_LOSS: u32 = 20;
const MOST: u32 = 40;
/// Its growth with each segment, during start-up and later.
const STEP_AT_START: u32 = 3;
const STEP: u32 = 10;

/// Acknowledges every one to four segments, fewer after a loss.
#[derive(Clone, Debug)]
pub struct Daa {
    config: DaaConfig,
    /// Delay window, in tenths of a segment.
    window: u32,
    starting: bool,
    waiting: u32,
    /// Segments that the next ACK should cover.
    wanted: u32,
    /// Spacing of the in-order segments.
    spacing: Spacing,
    /// Arrival of the first unacknowledged segment.
    first: Option<Instant>,
    deadline: Option<Instant>,
}

impl Daa {
    /// A policy with these settings.
    pub fn new(config: DaaConfig) -> Self {
        Self {
            config,
            window: FIRST,
            starting: true,
            waiting: 0,
            wanted: 0,
            spacing: Spacing::new(MEMORY),
            first: None,
            deadline: None,
        }
    }

    fn grow(&mut self) {
        let step = if self.starting { STEP_AT_START } else { STEP };
        self.window = (self.window + step).min(MOST);
    }

    /// Shrinks the delay window: a segment is missing or late.
    fn shrink(&mut self) {
        self.window = AFTER_LOSS;
        self.starting = false;
    }
}

impl AckPolicy for Daa {
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision {
        if arrival.order != Order::InOrder {
            self.spacing.interrupt();
            if arrival.order != Order::Duplicate {
                self.shrink();
            }
            return Decision::Now;
        }
        let now = arrival.now;
        self.spacing.on_arrival(now, arrival.segments());
        if self.waiting == 0 {
            self.wanted = self.window / 10;
        }
        self.waiting = self.waiting.saturating_add(arrival.segments());
        self.grow();
        if self.waiting >= self.wanted {
            return Decision::Now;
        }
        let first = *self.first.get_or_insert(now);
        let late = now + self.spacing.expected(self.config.spacing_factor);
        self.deadline = Some(late.min(first + LONGEST_DELAY));
        Decision::Wait
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn on_timer(&mut self, _: Instant) -> Decision {
        self.shrink();
        Decision::Now
    }

    fn stop(&mut self) {
        self.waiting = 0;
        self.first = None;
        self.deadline = None;
    }
}
