//! Acknowledgement policies of a receiver: one file per policy.
//!
//! An [`AckPolicy`] stands alone: it sees arriving and departing segments as plain values, so that
//! the same code serves the endpoint and anything else that delays acknowledgements.
//!
//! To add a policy: write its file here and add a word for it to [`AckConfig`] and [`policy`]. To
//! try one from another crate, hand it to
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

/// RFC 5681 §4.2: the longest delay of an ACK.
const LONGEST_DELAY: Duration = Duration::from_millis(500);

/// Position of a segment's data relative to the data received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In order, with nothing waiting behind a gap.
    InOrder,
    /// Above a gap, or leaving one.
    OutOfOrder,
    /// Filled all or part of a gap.
    FilledGap,
    /// No new data.
    Duplicate,
}

/// A data segment that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Time of arrival.
    pub now: Instant,
    /// Position of its data in the stream.
    pub order: Order,
    /// Payload length, bytes.
    pub len: u32,
    /// The peer's MSS: payload of its largest segments, bytes.
    pub mss: u32,
    /// Its window field as it came, unscaled.
    pub window: u16,
    /// TCP options of the segment.
    pub options: &'a Options,
    /// Hops that the segment travelled, where known.
    pub hops: Option<u8>,
    /// Time from our ACK to the first segment that it released, measured by the timestamp that this
    /// segment echoes (RFC 7323 §3.2). Too large if the sender had nothing to send. `None` without
    /// timestamps, and for further segments with the same echo.
    pub rtt: Option<Duration>,
    /// The segment makes the advertised window grow (autotuning).
    pub window_grew: bool,
    /// The receiver's own RTO, where known.
    pub rto: Option<Duration>,
}

impl Arrival<'_> {
    /// Segments that the sender sent for this data: a network interface may merge several (GRO).
    fn segments(&self) -> u32 {
        self.len.div_ceil(self.mss.max(1))
    }
}

/// A segment about to leave with an acknowledgement.
#[derive(Debug)]
pub struct Departure<'a> {
    /// Time of departure.
    pub now: Instant,
    /// Payload bytes; 0 for a pure ACK.
    pub len: u32,
    /// Our congestion window, bytes.
    pub cwnd: u32,
    /// The segment acknowledges the peer's FIN: no more data comes.
    pub after_fin: bool,
    /// Window field, which the policy may overwrite.
    pub window: &'a mut u16,
    /// Options, to which the policy may add.
    pub options: &'a mut Options,
}

/// A policy's decision on an arrival or an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Acknowledge at once.
    Now,
    /// Delay the ACK until [`AckPolicy::deadline`].
    Wait,
}

/// An acknowledgement policy.
///
/// RFC 5681 §4.2 requires an ACK at once for out-of-order data and filled gaps, and within 500 ms
/// for any data. Policies see data segments only; FIN and unacceptable segments (RFC 9293
/// §3.10.7.4) are acknowledged at once without asking them.
pub trait AckPolicy: Debug + Send {
    /// Decides about a data segment. The decision is ignored for an old duplicate outside the
    /// window.
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision;

    /// An acknowledgement leaves, alone or with data, whatever caused it; not called for a SYN. The
    /// policy may replace the window field and add options. By default it [stops](Self::stop) its
    /// timers, since nothing is left to acknowledge.
    fn on_ack_sent(&mut self, _: &mut Departure<'_>) {
        self.stop();
    }

    /// Earliest expiry of the policy's timers.
    fn deadline(&self) -> Option<Instant>;

    /// Handles the deadline; several timers may have expired. Must either move the deadline, or
    /// return [`Decision::Now`] and move it when the ACK leaves, as policies with one timer do.
    fn on_timer(&mut self, _: Instant) -> Decision {
        Decision::Now
    }

    /// Stops all timers, because an ACK left or the connection is closed.
    fn stop(&mut self);

    /// True if the peer's data segments advertise its receive window, as usual (RFC 9293 §3.8.6);
    /// false if they carry its cwnd there, as with TCP-DCA. Asked once, when the endpoint is
    /// created.
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

/// Creates the policy that `config` selects.
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
