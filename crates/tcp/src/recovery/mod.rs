//! Loss recovery: the phase of a sender, cwnd in each phase, and the SACK scoreboard, which selects
//! the segments to retransmit.
//!
//! `LossRecovery` owns the congestion window together with the [`CongestionControl`] algorithm. The
//! endpoint reports events to it and carries out the results; it cannot write cwnd itself.

pub(crate) mod rack;
pub mod scoreboard;

use crate::config::{
    CwndValidation, LossWindow, NewRenoConfig, Recovery, RepeatedTimeout, TcpConfig, window_bytes,
};
use crate::congestion::{
    Ack, CongestionControl, Loss, Lost, Restart, Resume, Timeout, Undo, Window, Windows,
};
use airtcp_core::{DataRate, Duration, Ecn, Instant, SeqNum};

/// Phase of a sender's loss recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// No loss is known.
    #[default]
    Open,
    /// cwnd is being reduced because a queue marked a packet (RFC 3168); nothing is lost.
    Cwr,
    /// Fast recovery after a fast retransmit.
    Recovery,
    /// After a time-out, or Tahoe's fast retransmit: slow start from SND.UNA until SND.UNA passes
    /// the recovery point.
    Loss,
}

/// The guard against a second reduction for one window of data: RFC 6582's `recover`, ns-2's
/// `bugFix_`, RFC 6675's RecoveryPoint.
///
/// Holds SND.MAX at the last reduction until SND.UNA has passed it, then nothing. A stale mark
/// would lie ahead again half the sequence space later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryPoint(Option<SeqNum>);

impl RecoveryPoint {
    /// Marks the highest sequence number sent so far (exclusive).
    pub fn set(&mut self, max: SeqNum) {
        self.0 = Some(max);
    }
    /// Clears the mark: the retransmission was spurious.
    pub fn clear(&mut self) {
        self.0 = None;
    }
    /// Drops the mark once SND.UNA has passed it (RFC 6582 §3.2 step 2 wants *more* than `recover`
    /// acknowledged).
    pub fn advance(&mut self, una: SeqNum) {
        if self.0.is_some_and(|mark| una.after(mark)) {
            self.0 = None;
        }
    }
    /// True if a new reduction is allowed.
    pub fn is_clear(&self) -> bool {
        self.0.is_none()
    }
    /// True if all data up to the mark is acknowledged: a full, not a partial ACK.
    pub fn is_reached(&self, una: SeqNum) -> bool {
        self.0.is_none_or(|mark| una.at_or_after(mark))
    }
    /// SND.MAX at the last reduction; `None` once SND.UNA has passed it.
    pub fn mark(&self) -> Option<SeqNum> {
        self.0
    }
}

/// A change of cwnd in bytes, before fast recovery inflates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// How much of cwnd a sender uses (RFC 7661 §4.2; Linux: `tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// cwnd was fully used.
    limited: bool,
    /// Most bytes in flight while it was not.
    most: u32,
    /// End of the round trip under observation: SND.UNA reaches it.
    until: Option<SeqNum>,
    /// Time at which cwnd was last fully used or reduced for lack of use, and the most bytes in
    /// flight since.
    since: Instant,
    most_since: u32,
}

/// Effect of an ACK that advances SND.UNA in fast recovery without SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Recovery is over.
    Over,
    /// A partial ACK (RFC 6582 §3.2 step 3): the next hole must be retransmitted.
    Partial {
        /// The retransmission timer is left alone: impatient, and not the first partial ACK.
        keep_timer: bool,
    },
}

/// The phase of one sender and its congestion window.
#[derive(Debug)]
pub(crate) struct LossRecovery {
    /// Private, like the algorithm: all code that writes cwnd is in this file or in
    /// [`crate::congestion`].
    window: Window,
    congestion: Box<dyn CongestionControl>,
    config: Recovery,
    newreno: NewRenoConfig,
    loss_window: LossWindow,
    /// A loss during the repair of an earlier one must not raise ssthresh. False with ns-2's rules,
    /// of which one raises ssthresh again and the others halve a bounded window, and without
    /// validation, where RFC 5681 applies as it stands.
    bounds_ssthresh: bool,
    validation: CwndValidation,
    usage: Usage,
    phase: RecoveryPhase,
    /// A partial ACK has already reset the timer in this recovery (RFC 6582 §4).
    partial_seen: bool,
    point: RecoveryPoint,
    /// Duplicate ACKs counted for SND.UNA.
    duplicate_acks: u32,
}

impl LossRecovery {
    pub(crate) fn new(config: &TcpConfig, congestion: Box<dyn CongestionControl>) -> Self {
        Self {
            window: Window::new(1, 1, None, None),
            congestion,
            config: config.recovery,
            newreno: config.newreno,
            loss_window: config.loss_window,
            bounds_ssthresh: config.cwnd_validation != CwndValidation::Off
                && config.loss_window != LossWindow::SendWindow
                && config.repeated_timeout == RepeatedTimeout::Keep,
            validation: config.cwnd_validation,
            usage: Usage::default(),
            phase: RecoveryPhase::Open,
            partial_seen: false,
            point: RecoveryPoint::default(),
            duplicate_acks: 0,
        }
    }

    /// Sets SMSS, and with it the initial window.
    pub(crate) fn set_smss(&mut self, config: &TcpConfig, smss: u32) {
        let initial = config.initial_window.bytes(smss);
        let ssthresh = config.initial_ssthresh.map(window_bytes);
        let window = Window::new(smss, initial, ssthresh, config.cwnd_limit.map(window_bytes));
        self.window = match config.loss_window {
            LossWindow::FlightSize | LossWindow::Cwnd => window,
            LossWindow::SendWindow => window.in_whole_segments(),
        };
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    pub(crate) fn phase(&self) -> RecoveryPhase {
        self.phase
    }

    pub(crate) fn point(&self) -> &RecoveryPoint {
        &self.point
    }

    pub(crate) fn duplicate_acks(&self) -> u32 {
        self.duplicate_acks
    }

    pub(crate) fn pacing_rate(&self) -> Option<DataRate> {
        self.congestion.pacing_rate(&self.window)
    }

    /// True if a fast retransmit would answer a loss event not yet dealt with.
    pub(crate) fn may_fast_retransmit(&self) -> bool {
        match self.config {
            Recovery::Tahoe { avoid_multi_fr } | Recovery::Reno { avoid_multi_fr } => {
                !avoid_multi_fr || self.point.is_clear()
            }
            Recovery::NewReno | Recovery::Sack | Recovery::Rack(_) => self.point.is_clear(),
        }
    }

    /// Starts with one segment: the SYN or SYN-ACK was lost (RFC 5681 §3.1).
    pub(crate) fn on_syn_loss(&mut self) {
        self.window.set_cwnd(self.window.smss());
    }

    pub(crate) fn on_restart(&mut self, cause: Restart) {
        self.congestion.on_restart(&mut self.window, cause);
    }

    /// Counts a duplicate ACK; returns the count.
    pub(crate) fn count_duplicate(&mut self) -> u32 {
        self.duplicate_acks += 1;
        self.duplicate_acks
    }

    /// Resets the count of duplicate ACKs: SND.UNA advanced.
    pub(crate) fn forget_duplicates(&mut self) {
        self.duplicate_acks = 0;
    }

    /// Drops the recovery point once everything below it is acknowledged.
    pub(crate) fn advance_point(&mut self, una: SeqNum) {
        self.point.advance(una);
    }

    /// Shows an ACK to the algorithm, whatever the phase.
    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        self.congestion.on_ack(&mut self.window, ack);
    }

    /// Handles new data acknowledged outside fast recovery.
    pub(crate) fn grow(&mut self, ack: &Ack) {
        if ack.cwnd_limited {
            self.congestion.on_growth(&mut self.window, ack);
        }
    }

    /// Notes the bytes in the network and in flight after the sender has sent all it may.
    pub(crate) fn note_usage(
        &mut self,
        now: Instant,
        rto: Duration,
        inflight: u32,
        (una, nxt): (SeqNum, SeqNum),
    ) {
        let flight = nxt.bytes_after(una);
        let limited = inflight.saturating_add(self.window.smss()) > self.window.cwnd();
        let usage = &mut self.usage;
        let round_is_over = usage.until.is_none_or(|until| una.at_or_after(until));
        if round_is_over || limited || (!usage.limited && flight > usage.most) {
            *usage = Usage { limited, most: flight, until: Some(nxt), ..*usage };
        }
        if self.validation == CwndValidation::Decay && !self.owns_recovery() {
            self.decay_if_unused(now, rto, flight);
        }
    }

    /// Reduces cwnd by half of its unused part after an RTO in which it was not fully used (RFC
    /// 2861 §3.2; Linux: `tcp_cwnd_application_limited`).
    fn decay_if_unused(&mut self, now: Instant, rto: Duration, flight: u32) {
        if self.is_cwnd_limited() {
            (self.usage.since, self.usage.most_since) = (now, 0);
            return;
        }
        self.usage.most_since = self.usage.most_since.max(flight);
        if now.since(self.usage.since) < rto {
            return;
        }
        let used = self.usage.most_since.max(self.window.initial());
        if self.phase == RecoveryPhase::Open && used < self.window.cwnd() {
            let ssthresh = self.windows_before().ssthresh;
            self.window.set_ssthresh(ssthresh);
            self.window.set_cwnd(self.window.cwnd().midpoint(used));
        }
        (self.usage.since, self.usage.most_since) = (now, 0);
    }

    /// Reduces cwnd after `idle`, more than an RTO without data sent (RFC 2861 §3.1; Linux:
    /// `tcp_cwnd_restart`).
    pub(crate) fn decay_after_idle(&mut self, idle: Duration, rto: Duration) {
        let Windows { mut cwnd, ssthresh } = self.windows_before();
        let least = self.window.initial().min(cwnd);
        let mut rest = idle;
        while rest > rto && cwnd > least {
            rest -= rto;
            cwnd /= 2;
        }
        self.congestion.on_restart(&mut self.window, Restart::Idle);
        self.window.set_ssthresh(ssthresh);
        self.window.set_cwnd(cwnd.max(least));
    }

    /// True if cwnd limits the sender, or nearly so in slow start, where it may double before the
    /// next check.
    pub(crate) fn is_cwnd_limited(&self) -> bool {
        self.validation == CwndValidation::Off
            || self.usage.limited
            || (self.window.in_slow_start() && self.window.cwnd() < 2 * self.usage.most)
    }

    /// True if all data sent before the reduction is acknowledged.
    pub(crate) fn is_complete(&self, una: SeqNum) -> bool {
        self.point.is_reached(una)
    }

    /// Sets the phase, for RACK.
    pub(crate) fn set_phase(&mut self, phase: RecoveryPhase) {
        self.phase = phase;
    }

    /// See [`CongestionControl::codepoint`].
    pub(crate) fn codepoint(&self) -> Ecn {
        self.congestion.codepoint()
    }

    /// See [`CongestionControl::owns_recovery`].
    pub(crate) fn owns_recovery(&self) -> bool {
        self.congestion.owns_recovery()
    }

    /// Sets cwnd in a proportional rate reduction.
    pub(crate) fn set_cwnd(&mut self, bytes: u32) {
        self.window.set_cwnd(bytes);
    }

    /// Window that a loss halves, with `flight` bytes sent and not SACKed.
    pub(crate) fn loss_window(&self, flight: u32) -> u32 {
        match self.loss_window {
            LossWindow::FlightSize => flight.min(self.window.cwnd()),
            LossWindow::SendWindow | LossWindow::Cwnd => self.window.cwnd(),
        }
    }

    /// Windows to which an undo returns. In a reduction ssthresh is the new one; otherwise it
    /// remembers most of cwnd (Linux: `tcp_current_ssthresh`).
    pub(crate) fn windows_before(&self) -> Windows {
        let (cwnd, ssthresh) = (self.window.cwnd(), self.window.ssthresh());
        let reducing = matches!(self.phase, RecoveryPhase::Cwr | RecoveryPhase::Recovery);
        let ssthresh = if reducing { ssthresh } else { ssthresh.max(cwnd / 2 + cwnd / 4) };
        Windows { cwnd, ssthresh }
    }

    /// Begins a reduction: the algorithm sets ssthresh, and cwnd follows in proportion to the data
    /// delivered.
    pub(crate) fn begin_reduction(&mut self, loss: &Loss, marked: bool) -> Reduction {
        let from = self.window.cwnd();
        if marked {
            self.congestion.on_ecn(&mut self.window, loss);
        } else {
            self.congestion.on_fast_retransmit(&mut self.window, loss);
        }
        let to = self.window.cwnd().min(self.window.ssthresh());
        if !self.congestion.owns_recovery() {
            self.window.set_cwnd(from);
        }
        Reduction { from, to }
    }

    /// Ends a reduction: sets cwnd to ssthresh.
    pub(crate) fn end_reduction(&mut self) {
        if self.window.ssthresh() < u32::MAX {
            self.window.set_cwnd(self.window.ssthresh());
        }
    }

    /// See [`CongestionControl::on_established`].
    pub(crate) fn on_established(&mut self, now: Instant, srtt: Option<Duration>) {
        self.congestion.on_established(&mut self.window, now, srtt);
    }

    /// See [`CongestionControl::on_recovered`].
    pub(crate) fn on_recovered(&mut self, now: Instant) {
        self.congestion.on_recovered(&mut self.window, now);
    }

    /// See [`CongestionControl::on_lost`].
    pub(crate) fn on_lost(&mut self, lost: &Lost) {
        self.congestion.on_lost(&mut self.window, lost);
    }

    /// See [`CongestionControl::on_resume`].
    pub(crate) fn on_resume(&mut self, resume: &Resume) {
        self.congestion.on_resume(&mut self.window, resume);
    }

    /// Handles a time-out with RACK, which leaves `inflight` bytes in the network: cwnd makes room
    /// for the algorithm's restart window beside them.
    pub(crate) fn on_rack_timeout(&mut self, timeout: &Timeout, inflight: u32) -> Reduction {
        let from = self.window.cwnd();
        let before = self.window.ssthresh();
        self.congestion.on_timeout(&mut self.window, timeout);
        self.bound_ssthresh(before);
        let cwnd = self.window.cwnd().saturating_add(inflight);
        self.window.set_cwnd(cwnd);
        self.phase = RecoveryPhase::Loss;
        self.duplicate_acks = 0;
        Reduction { from, to: cwnd }
    }

    /// Restores the windows after a needless reduction; the phase is the caller's.
    pub(crate) fn restore(&mut self, undo: &Undo) {
        self.congestion.on_spurious(&mut self.window, undo);
    }

    /// Returns to the open phase; cwnd is already set.
    pub(crate) fn open(&mut self) {
        self.phase = RecoveryPhase::Open;
    }

    /// See [`CongestionControl::larger_restart`].
    pub(crate) fn larger_restart(&self, timeout: &Timeout) -> Option<u32> {
        self.congestion.larger_restart(&self.window, timeout)
    }

    /// Handles a time-out, with `max` = SND.MAX.
    pub(crate) fn on_timeout(&mut self, timeout: &Timeout, max: SeqNum) -> Reduction {
        let from = self.window.cwnd();
        let before = self.window.ssthresh();
        self.congestion.on_timeout(&mut self.window, timeout);
        self.bound_ssthresh(before);
        self.phase = RecoveryPhase::Loss;
        self.point.set(max);
        self.duplicate_acks = 0;
        Reduction { from, to: self.window.cwnd() }
    }

    /// Fast retransmit with `max` = SND.MAX (RFC 5681 §3.2 steps 2 and 3, RFC 6582 §3.2 step 2, RFC
    /// 6675 §5 step 4). With SACK the pipe replaces inflation.
    pub(crate) fn on_fast_retransmit(
        &mut self,
        loss: &Loss,
        max: SeqNum,
        with_sack: bool,
    ) -> Reduction {
        let from = self.window.cwnd();
        let before = self.window.ssthresh();
        self.congestion.on_fast_retransmit(&mut self.window, loss);
        self.bound_ssthresh(before);
        self.point.set(max);
        if let Recovery::Tahoe { .. } = self.config {
            self.window.set_cwnd(self.window.smss());
            self.phase = RecoveryPhase::Loss;
            return Reduction { from, to: self.window.cwnd() };
        }
        self.phase = RecoveryPhase::Recovery;
        self.partial_seen = false;
        let to = self.window.cwnd();
        if !with_sack {
            // The duplicates that brought us here have left the network.
            self.inflate(self.duplicate_acks);
        }
        Reduction { from, to }
    }

    /// Keeps a loss during the repair of an earlier one from raising ssthresh: neither the data in
    /// flight nor a cwnd inflated by duplicates measures the path.
    fn bound_ssthresh(&mut self, before: u32) {
        if self.phase != RecoveryPhase::Open && self.bounds_ssthresh {
            self.window.set_ssthresh(self.window.ssthresh().min(before));
        }
    }

    /// Inflates cwnd by `segments` that have left the network (RFC 5681 §3.2 steps 3 and 4).
    pub(crate) fn inflate(&mut self, segments: u32) {
        let left = segments * self.window.smss();
        self.window.set_cwnd(self.window.cwnd().saturating_add(left));
    }

    /// Handles new data acknowledged in fast recovery without SACK, with `flight` bytes still out.
    pub(crate) fn on_new_ack_in_recovery(
        &mut self,
        acked: u32,
        una: SeqNum,
        flight: u32,
    ) -> Progress {
        let (smss, ssthresh) = (self.window.smss(), self.window.ssthresh());
        // RFC 5681 §3.2 step 6: any new ACK ends Reno's fast recovery.
        if let Recovery::Reno { .. } | Recovery::Tahoe { .. } = self.config {
            self.window.set_cwnd(ssthresh);
            self.phase = RecoveryPhase::Open;
            return Progress::Over;
        }
        // Also for SACK's and RACK's senders, if the peer does without SACK.
        let NewRenoConfig { deflate, impatient } = self.newreno;
        // RFC 6582 §3.2 step 3.
        if self.point.is_reached(una) {
            let most = if deflate { flight.max(smss) + smss } else { u32::MAX };
            self.window.set_cwnd(ssthresh.min(most));
            self.phase = RecoveryPhase::Open;
            return Progress::Over;
        }
        let cwnd = if deflate {
            // Deflate by what left, add back one SMSS if that was at least one.
            let back = if acked >= smss { smss } else { 0 };
            self.window.cwnd().saturating_sub(acked).saturating_add(back)
        } else {
            ssthresh
        };
        self.window.set_cwnd(cwnd);
        let keep_timer = impatient && self.partial_seen;
        self.partial_seen = true;
        Progress::Partial { keep_timer }
    }

    /// Lets F-RTO send two new segments beside the `in_network` bytes (RFC 5682 §2.1 step 2b); a
    /// duplicate or the verdict sets cwnd anew.
    pub(crate) fn probe_with_new_data(&mut self, in_network: u32) {
        self.window.set_cwnd(in_network + 2 * self.window.smss());
    }

    /// Handles a duplicate as F-RTO's second ACK (RFC 5682 §2.1 step 3a).
    pub(crate) fn on_probe_failed(&mut self) {
        self.window.set_cwnd(3 * self.window.smss());
    }

    /// Undoes the last reduction, which was needless.
    pub(crate) fn on_spurious(&mut self, undo: &Undo) {
        if self.phase == RecoveryPhase::Recovery {
            // The algorithm sees cwnd without what duplicates added.
            self.window.set_cwnd(self.window.ssthresh());
        }
        self.phase = RecoveryPhase::Open;
        self.point.clear();
        self.duplicate_acks = 0;
        self.congestion.on_spurious(&mut self.window, undo);
    }

    /// Switches to sending again from SND.NXT on, instead of as the pipe allows.
    pub(crate) fn go_back(&mut self) {
        self.phase = RecoveryPhase::Loss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Congestion, CubicConfig};
    use crate::congestion::Spurious;
    use airtcp_core::Instant;

    #[test]
    fn a_passed_mark_does_not_return_half_the_sequence_space_later() {
        let mut point = RecoveryPoint::default();
        point.set(SeqNum(1000));
        point.advance(SeqNum(1000));
        assert!(!point.is_clear() && point.is_reached(SeqNum(1000)));
        point.advance(SeqNum(1001));
        point.advance(SeqNum(1001) + (1 << 31));
        assert!(point.is_clear());
    }
    // RFC 9438 §4.9.2 compares cwnd with what it was before the loss.
    #[test]
    fn inflation_is_no_growth_beyond_the_window_of_a_needless_reduction() {
        let cubic = Congestion::Cubic(CubicConfig::default());
        let config = TcpConfig { congestion: cubic, ..TcpConfig::default() };
        let mut recovery = LossRecovery::new(&config, crate::Strategies::new(&config).congestion);
        recovery.window = Window::new(1000, 100_000, None, None);
        let now = Instant::ZERO;
        let loss = Loss { now, flight: 100_000, duplicate_acks: 3 };
        recovery.on_fast_retransmit(&loss, SeqNum(100_000), false);
        recovery.inflate(90);
        assert!(recovery.window().cwnd() > 100_000);
        let (flight, acked, pipe_prev) = (98_000, 2000, 100_000);
        let cause = Spurious::FastRetransmit;
        recovery.on_spurious(&Undo { now, cause, flight, acked, pipe_prev, restore: None });
        let window = recovery.window();
        assert_eq!((window.cwnd(), window.ssthresh()), (100_000, 100_000));
    }
    #[test]
    fn a_partial_ack_deflates_by_what_left() {
        // RFC 6582 §3.2 step 3.
        let config = TcpConfig::default();
        let mut recovery = LossRecovery::new(&config, crate::Strategies::new(&config).congestion);
        let start = Window::new(1000, 10_000, None, None);
        recovery.point.set(SeqNum(50_000));
        for (acked, cwnd) in [(3000, 8000), (500, 9500), (20_000, 1000)] {
            recovery.window = start;
            recovery.on_new_ack_in_recovery(acked, SeqNum(acked), 50_000 - acked);
            assert_eq!(recovery.window().cwnd(), cwnd);
        }
    }
}
