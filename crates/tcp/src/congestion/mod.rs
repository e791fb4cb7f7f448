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
//! One from another crate goes into [`Controls`], with which a simulation finds it by its name.

mod adaptive_pacing;
mod bbr;
mod bbr3;
mod controls;
mod cubic;
mod dctcp;
mod hop_limit;
mod hystart;
mod hystart_plus_plus;
mod karak;
mod linux_cubic;
mod marks;
#[cfg(test)]
mod path;
mod path_model;
mod prague;
mod reno;
mod slow_start;
mod westwood;
mod window;

pub use adaptive_pacing::AdaptivePacing;
pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use controls::Controls;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use hop_limit::HopLimited;
pub use karak::Karak;
pub use linux_cubic::LinuxCubic;
pub use prague::Prague;
pub use reno::Reno;
pub use westwood::Westwood;
pub use window::Window;

use crate::config::{Congestion, CubicVariant, TcpConfig};
use crate::recovery::Phase;
use airtcp_core::{DataRate, Duration, Ecn, Instant, SeqNum};
use std::fmt::Debug;

pub use airtcp_core::event::Spurious;

/// An acknowledgement that advances SND.UNA, is a duplicate (RFC 5681 §2; with SACK RFC 6675 §2) or
/// reports ECN marks.
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
    /// cwnd was used up in the round trip that the ACK ends, or more than half of it in slow start.
    /// Otherwise the application or the peer's window was in the way, and cwnd does not grow (RFC
    /// 7661 §4.2; RFC 9438 §5.8).
    pub cwnd_limited: bool,
    /// SND.UNA after it.
    pub una: SeqNum,
    /// SND.MAX: one past the highest sequence number sent so far. A round trip is over when `una`
    /// reaches what `max` was at its beginning.
    pub max: SeqNum,
    /// Hops that the segment with the ACK travelled, where known.
    pub hops: Option<u8>,
    /// What the flow has delivered and what is in the network, in bytes.
    pub delivery: Delivery,
    /// The delivery rate that it shows. `None` if it delivers nothing, or without a record of each
    /// segment (RACK keeps one).
    pub rate: Option<RateSample>,
}

impl Ack {
    /// The RTT of the newest segment that it delivers, where there is a record of each; otherwise
    /// its RTT sample.
    fn newest_rtt(&self) -> Option<Duration> {
        self.rate.map_or(self.rtt, |sample| sample.rtt)
    }
}

/// What a flow has delivered and what is in the network after an ACK, in bytes (RFC 8985 §5;
/// draft-ietf-ccwg-bbr §4). A sender without SACK counts what is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Delivered since the connection began: acknowledged or SACKed.
    pub delivered: u64,
    /// Of these, reported as marked by a queue (RFC 3168, RFC 9768).
    pub delivered_ce: u64,
    /// Taken for lost since the connection began.
    pub lost: u64,
    /// Delivered by this ACK.
    pub newly_delivered: u32,
    /// Of these, marked.
    pub newly_ce: u32,
    /// Taken for lost on this ACK.
    pub newly_lost: u32,
    /// In the network after it: sent, neither delivered nor lost (RFC 6675's pipe).
    pub inflight: u32,
    /// In the network before it.
    pub prior_inflight: u32,
}

/// The rate at which the network delivered the flight that an ACK ends (draft-ietf-ccwg-bbr §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the times in which they were sent and acknowledged.
    pub interval: Duration,
    /// [`Delivery::delivered`] when the newest segment that the ACK delivers was sent: a round trip
    /// is over when this reaches what `delivered` was at its beginning.
    pub prior_delivered: u64,
    /// [`Delivery::delivered_ce`] at that time.
    pub prior_delivered_ce: u64,
    /// [`Delivery::lost`] at that time.
    pub prior_lost: u64,
    /// Bytes in the network right after that segment was sent, itself included.
    pub tx_inflight: u32,
    /// The application, not the network, set the rate.
    pub app_limited: bool,
    /// That segment had been retransmitted.
    pub retransmitted: bool,
    /// From its (last) transmission to its ACK; if it was retransmitted, the ACK's RTT sample, by a
    /// timestamp.
    pub rtt: Option<Duration>,
}

impl RateSample {
    /// Bits of payload per second; `None` if the interval is shorter than `min_rtt`, which such a
    /// sample cannot be trusted to be (draft-ietf-ccwg-bbr §4.1.2.4), or empty.
    pub fn rate(&self, min_rtt: Duration) -> Option<DataRate> {
        if self.interval.is_zero() || self.interval < min_rtt {
            return None;
        }
        let bits = u128::from(self.delivered) * 8 * 1_000_000_000;
        let rate = bits / u128::from(self.interval.as_nanos());
        DataRate::from_bits_per_sec(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// A segment that the sender takes for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Now.
    pub now: Instant,
    /// Its first byte.
    pub seq: SeqNum,
    /// Its bytes.
    pub bytes: u32,
    /// Bytes in the network right after it was sent, itself included.
    pub tx_inflight: u32,
    /// [`Delivery::lost`] when it was sent.
    pub prior_lost: u64,
    /// [`Delivery::lost`] with it.
    pub lost: u64,
    /// [`Delivery::delivered`] so far.
    pub delivered: u64,
    /// The application, not the network, set the rate at which it was sent.
    pub app_limited: bool,
}

/// Data leave after all that was sent before had been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Now.
    pub now: Instant,
    /// The application left the network empty, not cwnd or the peer's window.
    pub app_limited: bool,
    /// [`Delivery::delivered`] so far.
    pub delivered: u64,
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
    /// The windows to go back to, if the response is to restore them (Linux) and not RFC 4015's.
    pub restore: Option<Windows>,
}

/// cwnd and ssthresh, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// cwnd.
    pub cwnd: u32,
    /// ssthresh.
    pub ssthresh: u32,
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
    /// The handshake is over, with an RTT sample if its segments were sent once. Data has not been
    /// sent.
    fn on_established(&mut self, window: &mut Window, now: Instant, srtt: Option<Duration>) {
        let _ = (window, now, srtt);
    }

    /// Any acknowledgement, in every phase, before it takes effect: the place to measure RTT, rate
    /// and round trips. What follows for cwnd is best left to the other hooks.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let _ = (window, ack);
    }

    /// New data was acknowledged and cwnd may grow: outside fast recovery, while cwnd is what limits
    /// the sender ([`Ack::cwnd_limited`]), and not for an accepted window probe (RFC 9293 §3.8.6.1),
    /// nor while F-RTO probes (RFC 5682 §2.1). A bound on cwnd that follows from the path is set here
    /// too ([`Window::set_limit`]).
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

    /// The last reduction was needless: undoes it (RFC 4015 §3.2 step 8, or as Linux does).
    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        if let Some(before) = undo.restore {
            window.set_cwnd(window.cwnd().max(before.cwnd));
            window.set_ssthresh(window.ssthresh().max(before.ssthresh));
            return;
        }
        let cwnd = undo.flight.saturating_add(undo.acked.min(window.initial()));
        window.set_cwnd(cwnd.min(window.limit()));
        window.set_ssthresh(undo.pipe_prev);
    }

    /// The receiver reported a mark by a queue, for the first time in a round trip (RFC 3168 §6.1.2):
    /// sets ssthresh, and cwnd to what it is to be when the reduction is complete.
    fn on_ecn(&mut self, window: &mut Window, loss: &Loss) {
        self.on_fast_retransmit(window, loss);
    }

    /// A segment is taken for lost; [`on_fast_retransmit`](Self::on_fast_retransmit) may follow. For
    /// algorithms that judge each loss by what was in the network when the segment left.
    fn on_lost(&mut self, window: &mut Window, lost: &Lost) {
        let _ = (window, lost);
    }

    /// Data leave again after the network was empty.
    fn on_resume(&mut self, window: &mut Window, resume: &Resume) {
        let _ = (window, resume);
    }

    /// Recovery, after a loss or a time-out, is over.
    fn on_recovered(&mut self, window: &mut Window, now: Instant) {
        let _ = (window, now);
    }

    /// The algorithm moves cwnd in recovery, too, in [`on_ack`](Self::on_ack): nobody else does
    /// (BBR). Otherwise proportional rate reduction does (RFC 9937), where recovery has it.
    fn owns_recovery(&self) -> bool {
        false
    }

    /// Data are sent as ECN-capable with this codepoint, if ECN was negotiated.
    fn codepoint(&self) -> Ecn {
        Ecn::Ect0
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
///
/// # Panics
/// `config` names a control that is not among `controls`.
pub fn algorithm(config: &TcpConfig, controls: &Controls) -> Box<dyn CongestionControl> {
    let reno = Reno::new(config.abc).on_repeated_timeout(config.repeated_timeout);
    let algorithm: Box<dyn CongestionControl> = match config.congestion {
        Congestion::Reno => Box::new(reno),
        Congestion::Karak(karak) => Box::new(Karak::new(reno, karak)),
        Congestion::Westwood => Box::new(Westwood::new(reno)),
        Congestion::Cubic(cubic) => match cubic.variant {
            CubicVariant::Rfc9438 => Box::new(Cubic::new(reno, cubic, config.pacing)),
            CubicVariant::Linux => Box::new(LinuxCubic::new(reno, cubic, config.pacing)),
        },
        Congestion::Bbr => Box::<Bbr>::default(),
        Congestion::Bbr3 => Box::<Bbr3>::default(),
        Congestion::Dctcp => Box::new(Dctcp::new(reno)),
        Congestion::Prague => Box::new(Prague::new(reno)),
        Congestion::AdaptivePacing(pacing) => Box::new(AdaptivePacing::new(reno, pacing)),
        Congestion::Custom => controls.control(config),
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
            cwnd_limited: true,
            una: SeqNum(acked),
            max: SeqNum(acked),
            hops: None,
            delivery: Delivery::default(),
            rate: None,
        }
    }

    pub(super) fn loss(flight: u32) -> Loss {
        Loss { now: Instant::ZERO, flight, duplicate_acks: 3 }
    }

    pub(super) fn timeout(flight: u32, first: bool) -> Timeout {
        Timeout { now: Instant::ZERO, flight, first, duplicate_acks: 0, phase: Phase::Open }
    }
}
