//! A sender that stands by while the route is broken.

use airtcp_core::{Duration, Instant};
use airtcp_tcp::route::{Resume, RouteFailure, RoutePolicy, Standby, Thaw};

/// Explicit Link Failure Notification (Holland and Vaidya 1999, §5): freezes at the notice, probes
/// at intervals, and goes on at the first ACK. A report that the route is back, which ELFN does not
/// have, makes it probe at once.
#[derive(Clone, Copy, Debug)]
pub struct Elfn {
    every: Duration,
    thaw: Thaw,
    next_probe: Option<Instant>,
}

impl Elfn {
    /// Probes at intervals of `every`; cwnd and RTO afterwards are as `thaw` says.
    pub fn new(every: Duration, thaw: Thaw) -> Self {
        Self { every, thaw, next_probe: None }
    }
}

impl RoutePolicy for Elfn {
    fn on_failure(&mut self, failure: &RouteFailure) -> bool {
        self.next_probe = Some(failure.now + self.every);
        true
    }

    fn on_restored(&mut self, now: Instant) -> Standby {
        self.on_timer(now)
    }

    fn on_ack(&mut self, _: Instant, _: bool) -> Standby {
        Standby::Leave(Resume { window: self.thaw, rto: self.thaw, retransmit: true })
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_probe
    }

    fn on_timer(&mut self, now: Instant) -> Standby {
        self.next_probe = Some(now + self.every);
        Standby::Probe
    }
}
