//! Explicit Link Failure Notification (Holland and Vaidya, "Analysis of TCP Performance over Mobile
//! Ad Hoc Networks", MobiCom 1999, §5).
//!
//! The node whose link fails notifies the sender. The sender turns its retransmission timer off and
//! sends its first unacknowledged segment again at intervals, to find out whether there is a route.
//! Any acknowledgement ends that; the sender then restores its timer and goes on.
//!
//! Decisions where the paper is silent:
//! - The first probe leaves one interval after the notice.
//! - An acknowledgement that was on its way when the route broke ends standby as well. A further
//!   notice then starts it again.
//! - On leaving, the first unacknowledged segment is sent at once: what was outstanding at the
//!   notice is likely to be lost.
//!
//! Checked only against summaries of the paper, which was not at hand.

use super::{Resume, RouteFailure, RoutePolicy, Standby};
use crate::config::ElfnConfig;
use airtcp_core::Instant;

/// Enters standby at a notice and probes until an acknowledgement arrives.
#[derive(Clone, Copy, Debug)]
pub struct Elfn {
    config: ElfnConfig,
    next_probe: Option<Instant>,
}

impl Elfn {
    /// A policy with these settings.
    pub fn new(config: ElfnConfig) -> Self {
        Self { config, next_probe: None }
    }

    fn leave(&self) -> Standby {
        let ElfnConfig { window, rto, .. } = self.config;
        Standby::Leave(Resume { window, rto, retransmit: true })
    }
}

impl RoutePolicy for Elfn {
    fn on_failure(&mut self, failure: &RouteFailure) -> bool {
        self.next_probe = Some(failure.now + self.config.probe_interval);
        true
    }

    fn on_restored(&mut self, _: Instant) -> Standby {
        if self.config.resume_on_route { self.leave() } else { Standby::Stay }
    }

    fn on_ack(&mut self, _: Instant, _: bool) -> Standby {
        self.leave()
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_probe
    }

    fn on_timer(&mut self, now: Instant) -> Standby {
        self.next_probe = Some(now + self.config.probe_interval);
        Standby::Probe
    }
}
