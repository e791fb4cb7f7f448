//! Congestion control: how cwnd and ssthresh move, one file an algorithm.
//!
//! An algorithm implements [`CongestionControl`]. It keeps its own state and moves the [`Window`]
//! that each hook lends it; nobody else moves it, except fast recovery while it lasts
//! ([`crate::recovery`]), which also decides what to retransmit. The hooks are named by *cause*: a
//! time-out, loss by duplicate ACKs, an idle period and a spurious retransmission are different
//! calls, because algorithms answer them differently. TCP Karak, for one, differs from NewReno on a
//! time-out only.
//!
//! To add an algorithm: write its file here and a word for it in [`Congestion`] and [`algorithm`].
//! To try one from another crate, hand it to
//! [`Endpoint::with_strategies`](crate::Endpoint::with_strategies).

mod adaptive_pacing;
mod cubic;
mod hop_limit;
mod hystart;
mod karak;
mod reno;
mod westwood;
mod window;

pub use adaptive_pacing::AdaptivePacing;
pub use cubic::Cubic;
pub use hop_limit::HopLimited;
pub use karak::Karak;
pub use reno::Reno;
pub use westwood::Westwood;
pub use window::Window;

use crate::config::{Congestion, TcpConfig};
use crate::recovery::Phase;
use airtcp_core::{DataRate, Duration, Instant, SeqNum};
use std::fmt::Debug;

pub use airtcp_core::event::Spurious;

/// An acknowledgement that advances SND.UNA or is a duplicate (RFC 5681 §2; with SACK RFC 6675 §2).
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Now.
    pub now: Instant,
    /// Bytes of sequence space that it acknowledges for the first time; 0 for a duplicate. SACKed
    /// bytes count when SND.UNA passes them.
    pub acked: u32,
    /// The RTT sample it gave: with timestamps each ACK that advances SND.UNA gives one, otherwise
    /// at most one per window does (Karn's algorithm).
    pub rtt: Option<Duration>,
    /// The smoothed RTT, that sample included (RFC 6298 §2).
    pub srtt: Option<Duration>,
    /// FlightSize when it arrived, in bytes: what it acknowledges still counts.
    pub flight: u32,
    /// Duplicate ACKs counted for SND.UNA, this one included if it is one; on an ACK that advances
    /// SND.UNA, those before it.
    pub duplicate_acks: u32,
    /// Where the sender stood when it arrived.
    pub phase: Phase,
    /// The application left room: everything it wrote had been sent, and cwnd had room for one more
    /// segment. With the peer's window in the way, `flight` alone shows that cwnd was not used.
    pub application_limited: bool,
    /// SND.UNA after it.
    pub una: SeqNum,
    /// SND.MAX: one past the highest sequence number sent so far. A round trip is over when `una`
    /// reaches what `max` was at its beginning.
    pub max: SeqNum,
    /// Hops that the segment with the ACK travelled, where known.
    pub hops: Option<u8>,
}

/// A loss that duplicate ACKs (or SACK) reported.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Now.
    pub now: Instant,
    /// FlightSize, in bytes (or the window that is halved instead, see
    /// [`LossWindow`](crate::config::LossWindow)).
    pub flight: u32,
    /// Duplicate ACKs counted for SND.UNA.
    pub duplicate_acks: u32,
}

/// What a time-out looked like.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// Now.
    pub now: Instant,
    /// FlightSize at the expiry, in bytes (or the window that is halved instead, see
    /// [`LossWindow`](crate::config::LossWindow)).
    pub flight: u32,
    /// First expiry for this segment (RFC 5681 §3.1: ssthresh is reduced once).
    pub first: bool,
    /// Duplicate ACKs counted for SND.UNA before it.
    pub duplicate_acks: u32,
    /// Where the sender stood when it expired.
    pub phase: Phase,
}

/// A reduction that turned out to be needless.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// Now.
    pub now: Instant,
    /// What had caused it.
    pub cause: Spurious,
    /// FlightSize now, in bytes.
    pub flight: u32,
    /// Bytes acknowledged by the ACK that told.
    pub acked: u32,
    /// max(FlightSize, ssthresh) before the reduction (RFC 4015 §3.2 step 1).
    pub pipe_prev: u32,
}

/// Why a sender with nothing (useful) in the network starts again from a restart window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// It was idle for longer than an RTO (RFC 5681 §4.1).
    Idle,
    /// A route was lost and found, and the [route policy](crate::route::RoutePolicy) takes the path
    /// for a new one.
    Route,
}

/// A congestion control algorithm.
///
/// In a connection without loss the calls for each ACK are [`on_ack`](Self::on_ack), then
/// [`on_growth`](Self::on_growth), then [`pacing_rate`](Self::pacing_rate). Between
/// [`on_fast_retransmit`](Self::on_fast_retransmit) and the end of fast recovery cwnd belongs to
/// the recovery (RFC 5681 §3.2, RFC 6582, RFC 6675): it inflates and deflates cwnd around ssthresh,
/// and leaves it at ssthresh or below. Tahoe has no fast recovery: it starts from one segment.
pub trait CongestionControl: Debug + Send {
    /// Any acknowledgement, in every phase, before it takes effect: the place to measure RTT, rate
    /// and round trips. What follows for cwnd is best left to the other hooks.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let _ = (window, ack);
    }

    /// New data was acknowledged and cwnd may grow: outside fast recovery, and not for an accepted
    /// window probe (RFC 9293 §3.8.6.1), nor while F-RTO probes (RFC 5682 §2.1). A bound on cwnd
    /// that follows from the path is set here too ([`Window::set_limit`]).
    fn on_growth(&mut self, window: &mut Window, ack: &Ack);

    /// Fast retransmit: sets ssthresh, and cwnd to what it is to be when recovery ends.
    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss);

    /// The retransmission timer expired: sets ssthresh, and cwnd from which slow start begins with
    /// the first unacknowledged segment.
    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout);

    /// More than one segment, if that is where a rule of the algorithm begins slow start after this
    /// time-out, in force or not; asked before [`on_timeout`](Self::on_timeout), to be counted.
    fn larger_restart(&self, window: &Window, timeout: &Timeout) -> Option<u32> {
        let _ = (window, timeout);
        None
    }

    /// The ACK clock is gone; cwnd is at most the initial window (RFC 5681 §4.1).
    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        let _ = cause;
        window.set_cwnd(window.cwnd().min(window.initial()));
    }

    /// The last reduction was needless: undoes it (RFC 4015 §3.2 step 8).
    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        let cwnd = undo.flight.saturating_add(undo.acked.min(window.initial()));
        window.set_cwnd(cwnd.min(window.limit()));
        window.set_ssthresh(undo.pipe_prev);
    }

    /// At what rate data may leave now, in bits of payload per second; asked before each
    /// transmission. `None`: as fast as the windows allow. Fast retransmits and the retransmission
    /// at a time-out do not wait, but what follows them does.
    fn pacing_rate(&self, window: &Window) -> Option<DataRate> {
        let _ = window;
        None
    }
}

/// The algorithm that `config` asks for.
pub fn algorithm(config: &TcpConfig) -> Box<dyn CongestionControl> {
    let reno = Reno::new(config.abc).on_repeated_timeout(config.repeated_timeout);
    let algorithm: Box<dyn CongestionControl> = match config.congestion {
        Congestion::Reno => Box::new(reno),
        Congestion::Karak(karak) => Box::new(Karak::new(reno, karak)),
        Congestion::Westwood => Box::new(Westwood::new(reno)),
        Congestion::Cubic(cubic) => Box::new(Cubic::new(reno, cubic)),
        Congestion::AdaptivePacing(pacing) => Box::new(AdaptivePacing::new(reno, pacing)),
    };
    if config.cwnd_limit_by_hops { Box::new(HopLimited::new(algorithm)) } else { algorithm }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SMSS: u32 = 1000;

    /// cwnd and ssthresh in segments.
    pub(super) fn window(cwnd: u32, ssthresh: u32) -> Window {
        Window::new(SMSS, cwnd * SMSS, Some(ssthresh * SMSS), None)
    }

    pub(super) fn ack(acked: u32) -> Ack {
        Ack {
            now: Instant::ZERO,
            acked,
            rtt: None,
            srtt: None,
            flight: acked,
            duplicate_acks: 0,
            phase: Phase::Open,
            application_limited: false,
            una: SeqNum(acked),
            max: SeqNum(acked),
            hops: None,
        }
    }

    pub(super) fn loss(flight: u32) -> Loss {
        Loss { now: Instant::ZERO, flight, duplicate_acks: 3 }
    }

    pub(super) fn timeout(flight: u32, first: bool) -> Timeout {
        Timeout { now: Instant::ZERO, flight, first, duplicate_acks: 0, phase: Phase::Open }
    }
}
