//! A sender that stands by while the route is broken.

use airtcp_core::Instant;
use airtcp_tcp::route::{RouteFailure, RoutePolicy, Standby};

/// Stands by, whatever ACKs arrive, until the route is back or the timer expires.
#[derive(Debug)]
pub struct Snooze {
    /// Expiry of the timer.
    pub until: Option<Instant>,
    /// Next step after standby.
    pub then: Standby,
}

impl RoutePolicy for Snooze {
    fn on_failure(&mut self, _: &RouteFailure) -> bool {
        true
    }
    fn on_restored(&mut self, _: Instant) -> Standby {
        self.then
    }
    fn on_ack(&mut self, _: Instant, _: bool) -> Standby {
        Standby::Stay
    }
    fn deadline(&self) -> Option<Instant> {
        self.until
    }
    fn on_timer(&mut self, _: Instant) -> Standby {
        self.until = None;
        self.then
    }
}
