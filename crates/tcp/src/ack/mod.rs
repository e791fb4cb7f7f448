//! When a receiver acknowledges, one file a policy.
//!
//! An [`AckPolicy`] stands alone: it sees arrivals and what leaves as plain values, so that the
//! same code serves the endpoint and whatever else delays acknowledgements.
//!
//! To add a policy: write its file here and a word for it in [`AckConfig`] and [`policy`]. To try
//! one from another crate, hand it to
//! [`Endpoint::with_strategies`](crate::Endpoint::with_strategies).

mod ada;
mod altman;
mod daa;
mod dca;
mod delayed;
mod spacing;

pub use ada::Ada;
pub use altman::Altman;
pub use daa::Daa;
pub use dca::Dca;
pub use delayed::Delayed;

use crate::config::AckConfig;
use airtcp_core::{Duration, Instant, Options};
use spacing::Spacing;
use std::fmt::Debug;

/// RFC 5681 §4.2: an ACK must not be delayed longer.
const LONGEST_DELAY: Duration = Duration::from_millis(500);

/// Where the data of a segment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In order, with nothing waiting behind a gap.
    InOrder,
    /// Above a gap, or in a way that leaves one.
    OutOfOrder,
    /// Filled all or part of a gap.
    FilledGap,
    /// Nothing new in it.
    Duplicate,
}

/// A data segment that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Now.
    pub now: Instant,
    /// Where its data belongs.
    pub order: Order,
    /// Payload bytes.
    pub len: u32,
    /// Payload of the largest segment the peer sends.
    pub mss: u32,
    /// Its window field as it came, unscaled.
    pub window: u16,
    /// Its options.
    pub options: &'a Options,
    /// Hops that it travelled, where known.
    pub hops: Option<u8>,
    /// From an acknowledgement of ours to the first segment that it released, by the timestamp this
    /// segment echoes (RFC 7323 §3.2): too large if the sender had nothing to send. `None` without
    /// timestamps, and for further segments with the same echo.
    pub rtt: Option<Duration>,
    /// The window grows with it (autotuning).
    pub window_grew: bool,
}

impl Arrival<'_> {
    /// How many segments of the sender's it is. A network interface may merge several (GRO).
    fn segments(&self) -> u32 {
        self.len.div_ceil(self.mss.max(1))
    }
}

/// A segment about to leave with an acknowledgement.
#[derive(Debug)]
pub struct Departure<'a> {
    /// Now.
    pub now: Instant,
    /// Payload bytes; 0 for a pure ACK.
    pub len: u32,
    /// Our congestion window, in bytes.
    pub cwnd: u32,
    /// It acknowledges the peer's FIN: no more data comes.
    pub after_fin: bool,
    /// The window field, to be replaced at will.
    pub window: &'a mut u16,
    /// The options, to be added to.
    pub options: &'a mut Options,
}

/// What to do about an arrival or an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Acknowledge at once.
    Now,
    /// Wait; [`AckPolicy::deadline`] says how long.
    Wait,
}

/// An acknowledgement policy.
///
/// RFC 5681 §4.2 asks all of them for an ACK at once for out-of-order data and filled gaps, and for
/// one within 500 ms of any data. What is not data is no business of theirs: FIN and unacceptable
/// segments (RFC 9293 §3.10.7.4) are acknowledged at once.
pub trait AckPolicy: Debug + Send {
    /// A data segment arrived. For an old duplicate, which lies outside of the window, the answer
    /// does not count.
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision;

    /// An acknowledgement leaves, alone or with data, whoever asked for it. Sees (and may replace)
    /// its window field, and its options; not for a SYN. Unless a policy has more to do: nothing
    /// waits any more, so the timers [stop](Self::stop).
    fn on_ack_sent(&mut self, _: &mut Departure<'_>) {
        self.stop();
    }

    /// The earliest of the policy's timers.
    fn deadline(&self) -> Option<Instant>;

    /// The deadline has passed; several timers may have expired. Must move the deadline, or answer
    /// [`Decision::Now`], as policies with one timer do, and move it when the ACK leaves.
    fn on_timer(&mut self, _: Instant) -> Decision {
        Decision::Now
    }

    /// Stops all timers, because an ACK left or the connection is closed.
    fn stop(&mut self);

    /// Whether the peer's window is told by its segments with data, too (RFC 9293 §3.8.6).
    /// TCP-DCA's sender writes its cwnd there instead. Asked once, when the endpoint is made.
    fn data_tells_window(&self) -> bool {
        true
    }
}

/// Acknowledges each segment.
#[derive(Clone, Copy, Debug)]
pub struct Every;

impl AckPolicy for Every {
    fn on_data(&mut self, _: &Arrival<'_>) -> Decision {
        Decision::Now
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn on_timer(&mut self, _: Instant) -> Decision {
        Decision::Wait
    }
    fn stop(&mut self) {}
}

/// The policy that `config` asks for.
pub fn policy(config: AckConfig) -> Box<dyn AckPolicy> {
    match config {
        AckConfig::Every => Box::new(Every),
        AckConfig::Delayed { segments, timeout, quick } => {
            Box::new(Delayed::new(segments, timeout, quick))
        }
        AckConfig::Dca(config) => Box::new(Dca::new(config)),
        AckConfig::Daa(config) => Box::new(Daa::new(config)),
        AckConfig::Ada(config) => Box::new(Ada::new(config)),
        AckConfig::Altman { timeout } => Box::new(Altman::new(timeout)),
    }
}
