//! Reactions of a sender to the network's report that the route to the peer is broken: one file per
//! policy.
//!
//! Over several wireless hops a route breaks because nodes move, and the routing protocol knows so
//! before any timer does. A notice of it lets the sender stand by, with its retransmission timer
//! and its windows frozen, instead of taking the silence for congestion: ELFN (Holland and Vaidya
//! 1999, §5), TCP-Feedback (Chandran et al. 1998). The endpoint does the freezing; a
//! [`RoutePolicy`] decides when to stand by, when to probe and how to go on.
//!
//! To add a policy: write its file here and add a word for it to [`RouteConfig`] and [`policy`]. To
//! try one from another crate, hand it to
//! [`Endpoint::with_strategies`](crate::Endpoint::with_strategies).

mod elfn;

pub use elfn::Elfn;

use crate::config::RouteConfig;
use airtcp_core::{Instant, SeqNum};
use airtcp_settings::choice;
use std::fmt::Debug;

/// A notice that the route broke under a segment of ours.
#[derive(Clone, Copy, Debug)]
pub struct RouteFailure {
    /// Time of the notice.
    pub now: Instant,
    /// First sequence number of the segment that could not be forwarded, or of all outstanding
    /// data.
    pub seq: SeqNum,
    /// FlightSize, in bytes; never 0.
    pub flight: u32,
}

/// Next step of a sender in standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standby {
    /// Stays in standby.
    Stay,
    /// Stays in standby, and sends the first unacknowledged segment again to test for a route.
    Probe,
    /// Leaves standby and continues sending.
    Leave(Resume),
}

/// State in which a sender continues after standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Treatment of the congestion window.
    pub window: Thaw,
    /// Treatment of the RTT estimate and the back-off.
    pub rto: Thaw,
    /// Send the first unacknowledged segment at once instead of waiting for the timer.
    pub retransmit: bool,
}

choice! {
    /// Treatment of a frozen value (Holland and Vaidya 1999 compare both).
    pub enum Thaw {
        /// as it was before
        AsFrozen = "as-frozen",
        /// as on a new path: the restart window (RFC 5681 §4.1), the initial RTO
        Initial = "initial",
    }
}

/// A reaction to broken routes.
///
/// While the sender stands by, its retransmission timer is off, new data waits, cwnd and ssthresh
/// stay as they are, and acknowledgements only move SND.UNA and the RTT estimate.
pub trait RoutePolicy: Debug + Send {
    /// The route broke under outstanding data. Returns true to enter standby. Not asked again until
    /// the sender has left standby.
    fn on_failure(&mut self, failure: &RouteFailure) -> bool;

    /// In standby: the network reports that there is a route again.
    fn on_restored(&mut self, now: Instant) -> Standby;

    /// In standby: an acknowledgement arrived, of new data or not, before it takes effect.
    fn on_ack(&mut self, now: Instant, advances: bool) -> Standby;

    /// In standby: time at which [`on_timer`](Self::on_timer) is due.
    fn deadline(&self) -> Option<Instant>;

    /// In standby: the deadline has passed. Must move it.
    fn on_timer(&mut self, now: Instant) -> Standby;
}

/// Ignores notices: the retransmission timer handles the failure.
#[derive(Clone, Copy, Debug)]
pub struct Ignore;

impl RoutePolicy for Ignore {
    fn on_failure(&mut self, _: &RouteFailure) -> bool {
        false
    }
    fn on_restored(&mut self, _: Instant) -> Standby {
        Standby::Stay
    }
    fn on_ack(&mut self, _: Instant, _: bool) -> Standby {
        Standby::Stay
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn on_timer(&mut self, _: Instant) -> Standby {
        Standby::Stay
    }
}

/// Creates the policy that `config` selects.
pub fn policy(config: RouteConfig) -> Box<dyn RoutePolicy> {
    match config {
        RouteConfig::Ignore => Box::new(Ignore),
        RouteConfig::Elfn(config) => Box::new(Elfn::new(config)),
    }
}
