//! The retransmission time-out: estimated by RFC 6298 (`estimator.rs`) and modified by a policy,
//! which also decides about the back-off: one file per policy.
//!
//! To add a policy: write its file here and add a word for it to [`RtoPolicyConfig`] and
//! [`policy`]. To try one from another crate, hand it to
//! [`Endpoint::with_strategies`](crate::Endpoint::with_strategies).

mod constant;
mod deviation;
mod estimator;
mod fixed;
mod wheel;

pub use constant::Constant;
pub use estimator::{Estimate, RtoEstimator, RttSamples};
pub use fixed::FixedRto;
pub use wheel::MAX_UPTIME;
pub(crate) use wheel::TimerWheel;

use crate::config::{RtoConfig, RtoPolicyConfig};
use airtcp_core::{Duration, Instant};
use std::fmt::Debug;

/// An expiry of the retransmission timer.
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    /// Time of the expiry.
    pub now: Instant,
    /// Expiries in a row since the last ACK that advanced SND.UNA, this one included.
    pub count: u32,
    /// Duplicate ACKs counted for SND.UNA before the expiry.
    pub duplicate_acks: u32,
    /// The SYN or SYN-ACK was unacknowledged.
    pub handshake: bool,
}

/// Effect of an expiry on the time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// The time-out doubles (RFC 6298 §5.5).
    Double,
    /// The time-out stays as it is.
    Keep,
}

/// Decides how the time-out changes, apart from the RTT estimate.
///
/// The back-off built up by expiries stays until the next valid RTT sample (RFC 6298 §5.7), and the
/// time-out never exceeds [`RtoConfig::max`].
pub trait RtoPolicy: Debug + Send {
    /// Decides about the back-off when the timer expires.
    fn on_expiry(&mut self, expiry: &Expiry) -> Backoff;

    /// The time-out before back-off, derived from that of RFC 6298 §2 (its lower bound included).
    /// Asked after each RTT sample and each expiry.
    fn time_out(&mut self, rfc6298: Duration) -> Duration {
        rfc6298
    }
}

/// Doubles at each expiry (RFC 6298 §5.5).
#[derive(Clone, Copy, Debug)]
pub struct Exponential;

impl RtoPolicy for Exponential {
    fn on_expiry(&mut self, _: &Expiry) -> Backoff {
        Backoff::Double
    }
}

/// Creates the policy that `config` selects.
pub fn policy(config: &RtoConfig) -> Box<dyn RtoPolicy> {
    match config.policy {
        RtoPolicyConfig::Exponential => Box::new(Exponential),
        RtoPolicyConfig::Fixed => Box::new(FixedRto),
        RtoPolicyConfig::Constant => Box::new(Constant),
    }
}
