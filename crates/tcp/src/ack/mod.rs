//! When a receiver acknowledges: one file a policy (algorithms §3).

mod delayed;

use crate::config::AckConfig;
use airtcp_core::Instant;
pub use delayed::Delayed;
use std::fmt::Debug;

/// How a data segment arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In order, with nothing waiting behind a gap.
    InOrder,
    /// Above a gap, or in a way that leaves one.
    OutOfOrder,
    /// Filled all or part of a gap.
    FilledGap,
    /// Nothing new in it.
    Duplicate,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Acknowledge at once.
    Now,
    /// Wait; [`AckPolicy::deadline`] says how long.
    Wait,
}

/// An acknowledgement policy. RFC 5681 §4.2 binds all: out-of-order data and filled gaps are
/// acknowledged at once.
pub trait AckPolicy: Debug + Send {
    /// A data segment of `len` bytes arrived; `mss` is the largest the peer sends.
    fn on_data(&mut self, now: Instant, arrival: Arrival, len: u32, mss: u32) -> Decision;
    /// An acknowledgement left, alone or with data.
    fn on_ack_sent(&mut self);
    /// When an acknowledgement is due at the latest.
    fn deadline(&self) -> Option<Instant>;
}

/// Acknowledges each segment.
#[derive(Clone, Copy, Debug)]
pub struct Every;

impl AckPolicy for Every {
    fn on_data(&mut self, _: Instant, _: Arrival, _: u32, _: u32) -> Decision {
        Decision::Now
    }
    fn on_ack_sent(&mut self) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The policy that `config` asks for.
pub fn policy(config: AckConfig) -> Box<dyn AckPolicy> {
    match config {
        AckConfig::Every => Box::new(Every),
        AckConfig::Delayed { segments, timeout } => Box::new(Delayed::new(segments, timeout)),
    }
}
