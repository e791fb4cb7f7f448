//! Congestion control, which moves cwnd and ssthresh: one file per algorithm.
//!
//! An algorithm implements [`CongestionControl`]. It keeps its own state and moves the [`Window`]
//! that each hook lends it; nobody else moves it, except fast recovery while it lasts
//! ([`crate::recovery`]), which also decides what to retransmit. The hooks are named by *cause*: a
//! time-out, loss by duplicate ACKs, an idle period and a spurious retransmission are different
//! calls, because algorithms answer them differently. TCP Karak, for one, differs from NewReno on a
//! time-out only.
//!
//! To add an algorithm: write its file here and add a word for it to [`Congestion`] and
//! [`algorithm`]. One from another crate goes into [`Controls`], with which a simulation finds it
//! by its name.

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
mod veno;
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
pub use veno::Veno;
pub use westwood::Westwood;
pub use window::Window;

use crate::config::{Congestion, CubicVariant, TcpConfig};
use crate::recovery::RecoveryPhase;
use airtcp_core::{DataRate, Duration, Ecn, Instant, SeqNum};
use std::fmt::Debug;

pub use airtcp_core::event::Spurious;

/// An acknowledgement that advances SND.UNA, is a duplicate (RFC 5681 §2; with SACK RFC 6675 §2) or
/// reports ECN marks.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Time of arrival.
    pub now: Instant,
    /// Bytes of sequence space acknowledged for the first time; 0 for a duplicate. SACKed bytes
    /// count when SND.UNA passes them.
    pub acked: u32,
    /// RTT sample of the ACK: with timestamps each ACK that advances SND.UNA gives one, otherwise
    /// at most one per window does (Karn's algorithm).
    pub rtt: Option<Duration>,
    /// Smoothed RTT, that sample included (RFC 6298 §2).
    pub srtt: Option<Duration>,
    /// FlightSize on arrival, in bytes: data that the ACK covers still counts.
    pub flight: u32,
    /// Duplicate ACKs counted for SND.UNA, including this one if it is one; on an ACK that advances
    /// SND.UNA, those before it.
    pub duplicate_acks: u32,
    /// Phase of loss recovery on arrival.
    pub phase: RecoveryPhase,
    /// cwnd was fully used in the round trip that the ACK ends, or more than half of it in slow
    /// start. Otherwise the application or the peer's window limits the sender, and cwnd does not
    /// grow (RFC 7661 §4.2; RFC 9438 §5.8).
    pub cwnd_limited: bool,
    /// SND.UNA after the ACK.
    pub una: SeqNum,
    /// SND.MAX: one past the highest sequence number sent so far. A round trip is over when `una`
    /// reaches what `max` was at its beginning.
    pub max: SeqNum,
    /// Hops that the ACK's segment travelled, where known.
    pub hops: Option<u8>,
    /// Data delivered and in the network.
    pub delivery: Delivery,
    /// Delivery rate sample. `None` if the ACK delivers nothing, or without a record of each
    /// segment (RACK keeps one).
    pub rate: Option<RateSample>,
}

impl Ack {
    /// RTT of the newest segment that the ACK delivers, if there is a record of each; otherwise its
    /// RTT sample.
    fn newest_rtt(&self) -> Option<Duration> {
        self.rate.map_or(self.rtt, |sample| sample.rtt)
    }
}

/// Data delivered and in the network after an ACK, in bytes (RFC 8985 §5; draft-ietf-ccwg-bbr §4).
/// A sender without SACK counts acknowledged data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes acknowledged or SACKed since the connection began.
    pub delivered: u64,
    /// Of these, reported as marked by a queue (RFC 3168, RFC 9768).
    pub delivered_ce: u64,
    /// Bytes taken for lost since the connection began.
    pub lost: u64,
    /// Bytes delivered by this ACK.
    pub newly_delivered: u32,
    /// Of these, reported as marked.
    pub newly_ce: u32,
    /// Bytes taken for lost on this ACK.
    pub newly_lost: u32,
    /// Bytes in the network after the ACK: sent, neither delivered nor lost (RFC 6675's pipe).
    pub inflight: u32,
    /// Bytes in the network before the ACK.
    pub prior_inflight: u32,
}

/// Rate at which the network delivered the flight that an ACK ends (draft-ietf-ccwg-bbr §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of two times: that in which these bytes were sent, and that in which they were
    /// acknowledged.
    pub interval: Duration,
    /// [`Delivery::delivered`] when the newest segment that the ACK delivers was sent. A round trip
    /// is over when this reaches the value of `delivered` at its beginning.
    pub prior_delivered: u64,
    /// [`Delivery::delivered_ce`] at that time.
    pub prior_delivered_ce: u64,
    /// [`Delivery::lost`] at that time.
    pub prior_lost: u64,
    /// Bytes in the network right after that segment was sent, itself included.
    pub tx_inflight: u32,
    /// The application, not the network, limited the rate.
    pub app_limited: bool,
    /// That segment had been retransmitted.
    pub retransmitted: bool,
    /// Time from the segment's last transmission to its ACK; if it was retransmitted, the ACK's RTT
    /// sample by timestamp.
    pub rtt: Option<Duration>,
}

impl RateSample {
    /// Bits of payload per second. `None` if the interval is empty, or shorter than `min_rtt` and
    /// so not credible (draft-ietf-ccwg-bbr §4.1.2.4).
    pub fn rate(&self, min_rtt: Duration) -> Option<DataRate> {
        if self.interval.is_zero() || self.interval < min_rtt {
            return None;
        }
        let bits = u128::from(self.delivered) * 8 * 1_000_000_000;
        let rate = bits / u128::from(self.interval.as_nanos());
        DataRate::from_bits_per_sec(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// A segment taken for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time of the detection.
    pub now: Instant,
    /// Sequence number of the segment's first byte.
    pub seq: SeqNum,
    /// Length of the segment in sequence space, bytes.
    pub bytes: u32,
    /// Bytes in the network right after the segment was sent, itself included.
    pub tx_inflight: u32,
    /// [`Delivery::lost`] when the segment was sent.
    pub prior_lost: u64,
    /// [`Delivery::lost`] with this segment.
    pub lost: u64,
    /// [`Delivery::delivered`] so far.
    pub delivered: u64,
    /// The application, not the network, limited the rate at which it was sent.
    pub app_limited: bool,
}

/// Sending resumes after all earlier data had been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Time of the first transmission.
    pub now: Instant,
    /// The application left the network empty; neither cwnd nor the peer's window did.
    pub app_limited: bool,
    /// [`Delivery::delivered`] so far.
    pub delivered: u64,
}

/// A loss reported by duplicate ACKs or SACK.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Time of the detection.
    pub now: Instant,
    /// FlightSize, in bytes (or the window halved in its place, see
    /// [`LossWindow`](crate::config::LossWindow)).
    pub flight: u32,
    /// Duplicate ACKs counted for SND.UNA.
    pub duplicate_acks: u32,
}

/// An expiry of the retransmission timer.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// Time of the expiry.
    pub now: Instant,
    /// FlightSize at the expiry, in bytes (or the window halved in its place, see
    /// [`LossWindow`](crate::config::LossWindow)).
    pub flight: u32,
    /// First expiry for this segment (RFC 5681 §3.1: ssthresh is reduced once).
    pub first: bool,
    /// Duplicate ACKs counted for SND.UNA before the expiry.
    pub duplicate_acks: u32,
    /// Phase of loss recovery at the expiry.
    pub phase: RecoveryPhase,
}

/// A reduction found to be needless.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// Time of the detection.
    pub now: Instant,
    /// Kind of the spurious retransmission that caused the reduction.
    pub cause: Spurious,
    /// FlightSize at the detection, in bytes.
    pub flight: u32,
    /// Bytes acknowledged by the ACK that revealed it.
    pub acked: u32,
    /// max(FlightSize, ssthresh) before the reduction (RFC 4015 §3.2 step 1).
    pub pipe_prev: u32,
    /// Windows to restore, if the response restores them (Linux) instead of following RFC 4015.
    pub restore: Option<Windows>,
}

/// cwnd and ssthresh, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
}

/// Reason for a sender with nothing (useful) in the network to start again from a restart window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The sender was idle for longer than an RTO (RFC 5681 §4.1).
    Idle,
    /// The route was lost and found again, and the [route policy](crate::route::RoutePolicy) treats
    /// the path as new.
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
    /// The handshake is over, with an RTT sample if its segments were sent once. No data has been
    /// sent.
    fn on_established(&mut self, window: &mut Window, now: Instant, srtt: Option<Duration>) {
        let _ = (window, now, srtt);
    }

    /// Handles any acknowledgement, in every phase, before it takes effect: the place to measure
    /// RTT, rate and round trips. Changes of cwnd are best left to the other hooks.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let _ = (window, ack);
    }

    /// New data was acknowledged and cwnd may grow. Called outside fast recovery while cwnd limits
    /// the sender ([`Ack::cwnd_limited`]); not for an accepted window probe (RFC 9293 §3.8.6.1),
    /// nor while F-RTO probes (RFC 5682 §2.1). Also the place to set a bound on cwnd that follows
    /// from the path ([`Window::set_limit`]).
    fn on_growth(&mut self, window: &mut Window, ack: &Ack);

    /// Fast retransmit: sets ssthresh, and cwnd to its value at the end of recovery.
    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss);

    /// The retransmission timer expired: sets ssthresh, and the cwnd from which slow start begins
    /// with the first unacknowledged segment.
    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout);

    /// Returns the restart window in bytes if a rule of the algorithm, in force or not, would begin
    /// slow start after this time-out with more than one segment. Asked before
    /// [`on_timeout`](Self::on_timeout), for the statistics.
    fn larger_restart(&self, window: &Window, timeout: &Timeout) -> Option<u32> {
        let _ = (window, timeout);
        None
    }

    /// The ACK clock is lost: reduces cwnd to at most the initial window (RFC 5681 §4.1).
    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        let _ = cause;
        window.set_cwnd(window.cwnd().min(window.initial()));
    }

    /// Undoes the last reduction, which was needless (RFC 4015 §3.2 step 8, or as Linux does).
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

    /// The receiver reported a queue's mark, for the first time in a round trip (RFC 3168 §6.1.2):
    /// sets ssthresh, and cwnd to its value at the end of the reduction.
    fn on_ecn(&mut self, window: &mut Window, loss: &Loss) {
        self.on_fast_retransmit(window, loss);
    }

    /// A segment is taken for lost; [`on_fast_retransmit`](Self::on_fast_retransmit) may follow.
    /// For algorithms that judge each loss by the data in the network when the segment left.
    fn on_lost(&mut self, window: &mut Window, lost: &Lost) {
        let _ = (window, lost);
    }

    /// Sending resumes after the network was empty.
    fn on_resume(&mut self, window: &mut Window, resume: &Resume) {
        let _ = (window, resume);
    }

    /// Recovery after a loss or a time-out is over.
    fn on_recovered(&mut self, window: &mut Window, now: Instant) {
        let _ = (window, now);
    }

    /// True if the algorithm moves cwnd in recovery, too, in [`on_ack`](Self::on_ack) (BBR).
    /// Otherwise proportional rate reduction does (RFC 9937), if the recovery has it.
    fn owns_recovery(&self) -> bool {
        false
    }

    /// ECN codepoint of data segments, if ECN was negotiated.
    fn codepoint(&self) -> Ecn {
        Ecn::Ect0
    }

    /// Pacing rate, in bits of payload per second; asked before each transmission. `None`: as fast
    /// as the windows allow. Fast retransmits and the retransmission at a time-out are not delayed,
    /// but count for what follows them.
    fn pacing_rate(&self, window: &Window) -> Option<DataRate> {
        let _ = window;
        None
    }
}

/// Creates the algorithm that `config` selects.
///
/// # Panics
/// If `config` names a control that is not in `controls`.
pub fn algorithm(config: &TcpConfig, controls: &Controls) -> Box<dyn CongestionControl> {
    let reno = Reno::new(config.abc).on_repeated_timeout(config.repeated_timeout);
    let algorithm: Box<dyn CongestionControl> = match config.congestion {
        Congestion::Reno => Box::new(reno),
        Congestion::Karak(karak) => Box::new(Karak::new(reno, karak)),
        Congestion::Westwood => Box::new(Westwood::new(reno)),
        Congestion::Veno => Box::new(Veno::new(reno)),
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

    /// A window with cwnd and ssthresh in segments.
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
            phase: RecoveryPhase::Open,
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
        Timeout { now: Instant::ZERO, flight, first, duplicate_acks: 0, phase: RecoveryPhase::Open }
    }
}
