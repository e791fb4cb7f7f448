//! What an acknowledgement does to the sender: window update, RTT sample, spurious retransmissions, loss
//! recovery, growth of cwnd (RFC 5681, 6298, 6582, 6675).

use super::spurious::{FRtoVerdict, Saved};
use super::{Endpoint, Io, State};
use crate::config::{NewRenoConfig, Recovery, SackPipe};
use crate::recovery::Phase;
use crate::rtt::Estimate;
use airtcp_core::event::{Cause, Spurious};
use airtcp_core::{Duration, Event, Flags, Instant, Payload, Segment, SeqNum};

impl<P: Payload> Endpoint<P> {
    /// Takes the acknowledgement `ack <= SND.MAX` of an acceptable segment. The caller transmits.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: SeqNum,
        segment: &Segment<P>,
        io: &mut Io<'_, P>,
    ) {
        let window_changed = self.update_send_window(ack, segment);
        let tx = &mut self.tx;
        tx.answered = true;
        if let Some(persist) = &mut tx.persist {
            persist.unanswered = 0;
        }
        let sacked_below_point = tx.sacked_below_point();
        let newly_sacked = if tx.sack_ok {
            tx.board.update(tx.una, tx.max, segment.options.sack.as_slice())
        } else {
            0
        };
        let originals_arrived = tx.sacked_below_point() > sacked_below_point;
        if ack.after(tx.una) {
            io.events.emit(now, || Event::AckReceived { ack, duplicate: false });
            self.on_new_ack(now, ack, segment, io);
            return;
        }
        // RFC 5681 §2: outstanding data, no data, no SYN or FIN, same number, same window. With SACK the
        // new information counts (RFC 6675 §2). Answers to probes are no duplicates.
        let is_duplicate = ack == tx.una
            && tx.una != tx.max
            && tx.persist.is_none()
            && if tx.sack_ok {
                newly_sacked > 0
            } else {
                segment.payload.is_empty()
                    && !segment.flags.intersects(Flags::SYN | Flags::FIN)
                    && !window_changed
            };
        if is_duplicate {
            self.stats.duplicate_acks_received += 1;
            io.events.emit(now, || Event::AckReceived { ack, duplicate: true });
            self.on_duplicate_ack(now, originals_arrived, io);
        }
    }

    /// RFC 9293 §3.10.7.4: only a segment at least as new as the last one that did moves SND.WND. One
    /// that acknowledges more is newer whatever its sequence number (as in Linux): the peer may be
    /// retransmitting, and a window kept while SND.UNA moves would reach too far.
    /// Returns whether the advertised window differs from the one before.
    fn update_send_window(&mut self, ack: SeqNum, segment: &Segment<P>) -> bool {
        let tx = &mut self.tx;
        let is_newer = ack.after(tx.una)
            || tx.wl1.before(segment.seq)
            || (tx.wl1 == segment.seq && tx.wl2.at_or_before(ack));
        if !is_newer || ack.before(tx.una) {
            return false;
        }
        let wnd = u32::from(segment.window) << tx.shift;
        let changed = wnd != tx.wnd;
        tx.wnd = wnd;
        tx.max_wnd = tx.max_wnd.max(wnd);
        tx.wl1 = segment.seq;
        tx.wl2 = ack;
        changed
    }

    /// RTT by timestamp, or by the one timed segment if `ack` covers it.
    pub(super) fn rtt_sample(
        &mut self,
        now: Instant,
        segment: &Segment<P>,
        ack: SeqNum,
    ) -> Option<Duration> {
        if let Some(ts) = segment.options.timestamps.filter(|_| self.timestamps) {
            let ms = self.clock(now).wrapping_sub(ts.echo);
            // Half the clock's range apart: an echo of something we never sent.
            return (ms < u32::MAX / 2).then(|| Duration::from_millis(u64::from(ms.max(1))));
        }
        let (_, sent) = self.tx.timed.filter(|(end, _)| ack.at_or_after(*end))?;
        self.tx.timed = None;
        Some(now.since(sent))
    }

    fn on_new_ack(&mut self, now: Instant, ack: SeqNum, segment: &Segment<P>, io: &mut Io<'_, P>) {
        let sample = self.rtt_sample(now, segment, ack);
        if let Some(sample) = sample {
            self.tx.rto.sample(sample);
            self.publish_rtt(now, sample, io);
        }
        let tx = &mut self.tx;
        let acked = ack.bytes_after(tx.una);
        tx.una = ack;
        tx.nxt = tx.nxt.later(ack);
        tx.expiries = 0;
        tx.dup_acks = 0;
        tx.limited_transmit = 0;
        tx.board.advance(ack);
        self.stats.bytes_acked += u64::from(self.tx.drop_acked(ack));
        self.on_fin_acked(now, io);

        let echo = segment.options.timestamps.filter(|_| self.timestamps).map(|t| t.echo);
        let mut keep_timer = false;
        if let Some((kind, saved)) = self.tx.spurious.eifel(echo) {
            self.undo(now, kind, saved, acked, sample, io);
        } else {
            keep_timer = match self.tx.phase {
                Phase::Open => {
                    // An accepted window probe is no sign of capacity: cwnd is frozen in persist.
                    if self.tx.persist.is_none() {
                        self.grow(acked);
                    }
                    false
                }
                Phase::Loss => {
                    self.on_new_ack_in_loss(now, acked, sample, io);
                    false
                }
                Phase::Recovery { partial_seen } => {
                    self.on_new_ack_in_recovery(now, acked, partial_seen, io)
                }
            };
        }
        if self.tx.persist.is_some() && self.tx.una == self.tx.end() {
            self.leave_persist(now, io);
        }
        let tx = &mut self.tx;
        tx.point.advance(ack);
        // RFC 6298 §5.2, §5.3.
        if tx.una == tx.max || tx.persist.is_some() {
            tx.rtx_deadline = None;
        } else if !keep_timer {
            tx.arm_retransmission(now);
        }
        self.publish_window(now, io);
    }

    fn grow(&mut self, acked: u32) {
        self.tx.congestion.on_ack(&mut self.tx.window, acked);
    }

    /// After a time-out (or in Tahoe's slow start): F-RTO looks first.
    fn on_new_ack_in_loss(
        &mut self,
        now: Instant,
        acked: u32,
        sample: Option<Duration>,
        io: &mut Io<'_, P>,
    ) {
        let complete = self.tx.point.is_reached(self.tx.una);
        match self.tx.spurious.f_rto_on_new_ack(complete) {
            FRtoVerdict::Spurious(saved) => {
                self.undo(now, Spurious::Timeout, saved, acked, sample, io);
                return;
            }
            FRtoVerdict::ProbeWithNewData => {
                if self.probe_with_new_data() {
                    return;
                }
                self.tx.spurious.give_up();
            }
            FRtoVerdict::Conventional | FRtoVerdict::FellThrough => {}
        }
        self.grow(acked);
        if complete {
            self.tx.phase = Phase::Open;
        }
    }

    /// RFC 5682 §2.1 step 2b: up to two new segments instead of retransmissions. Returns false when
    /// there is nothing new to send or the peer's window is full.
    fn probe_with_new_data(&mut self) -> bool {
        let tx = &mut self.tx;
        let flight = tx.flight();
        let new = tx.fin_seq().bytes_after(tx.max).min(tx.mss);
        if new == 0 || flight + new > tx.wnd {
            return false;
        }
        tx.nxt = tx.max;
        // cwnd so that exactly two segments fit; a duplicate or the verdict sets it anew.
        tx.window.cwnd = flight - tx.board.sacked_before(tx.max) + 2 * tx.mss;
        true
    }

    /// Returns whether the retransmission timer is to be left alone.
    fn on_new_ack_in_recovery(
        &mut self,
        now: Instant,
        acked: u32,
        partial_seen: bool,
        io: &mut Io<'_, P>,
    ) -> bool {
        let tx = &mut self.tx;
        let full = tx.point.is_reached(tx.una);
        match self.config.recovery {
            // RFC 6675 §5 (A), (B): the pipe decides what to send; also NewReno's fallback below.
            Recovery::Sack if tx.sack_ok => {
                if full {
                    tx.phase = Phase::Open;
                }
                tx.pipe = tx.pipe.saturating_sub(2 * tx.mss);
                false
            }
            // RFC 6582 §3.2 step 3.
            Recovery::NewReno(_) | Recovery::Sack => {
                let NewRenoConfig { deflate, impatient } = match self.config.recovery {
                    Recovery::NewReno(config) => config,
                    _ => NewRenoConfig::default(),
                };
                if full {
                    let flight = tx.flight().max(tx.mss) + tx.mss;
                    let most = if deflate { flight } else { u32::MAX };
                    tx.window.cwnd = tx.window.ssthresh.min(most);
                    self.finish_recovery(acked);
                    return false;
                }
                tx.phase = Phase::Recovery { partial_seen: true };
                self.retransmit_first(now, io);
                let window = &mut self.tx.window;
                if deflate {
                    self.tx.congestion.on_partial_ack(window, acked);
                } else {
                    window.cwnd = window.ssthresh;
                }
                impatient && partial_seen
            }
            // RFC 5681 §3.2 step 6: any new ACK ends Reno's fast recovery.
            Recovery::Reno { .. } | Recovery::Tahoe { .. } => {
                tx.window.cwnd = tx.window.ssthresh;
                self.finish_recovery(acked);
                false
            }
        }
    }

    /// Fast recovery without SACK ends; cwnd is set.
    fn finish_recovery(&mut self, acked: u32) {
        self.tx.phase = Phase::Open;
        if self.config.grow_on_recovery_exit {
            self.grow(acked);
        }
    }

    /// `originals_arrived`: data sent before the last reduction was SACKed for the first time.
    fn on_duplicate_ack(&mut self, now: Instant, originals_arrived: bool, io: &mut Io<'_, P>) {
        let tx = &mut self.tx;
        tx.dup_acks += 1;
        match tx.phase {
            Phase::Recovery { .. } => {
                if tx.sack_ok {
                    tx.pipe = tx.pipe.saturating_sub(tx.mss);
                } else {
                    // RFC 5681 §3.2 step 4: a segment has left the network.
                    tx.window.cwnd = tx.window.cwnd.saturating_add(tx.mss);
                    self.publish_window(now, io);
                }
                return;
            }
            Phase::Loss => {
                match tx.spurious.f_rto_on_duplicate(originals_arrived, tx.sack_ok) {
                    FRtoVerdict::Spurious(saved) => {
                        self.undo(now, Spurious::Timeout, saved, 0, None, io);
                        return;
                    }
                    FRtoVerdict::FellThrough => {
                        // RFC 5682 §2.1 step 3a.
                        tx.window.cwnd = 3 * tx.mss;
                        tx.nxt = tx.una;
                        return;
                    }
                    FRtoVerdict::Conventional | FRtoVerdict::ProbeWithNewData => {}
                }
            }
            Phase::Open => {}
        }
        let tx = &self.tx;
        let threshold = self.config.duplicate_ack_threshold;
        let triggered = tx.dup_acks == threshold
            || (tx.sack_ok
                && self.config.sack_pipe == SackPipe::Rfc6675
                && tx.board.first_hole_is_lost(tx.una, tx.loss_rule(&self.config)));
        if triggered && self.may_fast_retransmit() {
            self.fast_retransmit(now, io);
        }
    }

    /// RFC 5681 §3.2 steps 2 and 3, RFC 6582 §3.2 step 2, RFC 6675 §5 step 4.
    fn fast_retransmit(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let saved = self.save();
        let clock = self.clock(now);
        let flight = self.loss_window();
        let tx = &mut self.tx;
        tx.spurious.on_fast_retransmit(saved, clock);
        let before = tx.window.cwnd;
        tx.limited_transmit = 0;
        tx.congestion.on_duplicate_acks(&mut tx.window, flight);
        tx.point.set(tx.max);
        tx.timed = None;
        match self.config.recovery {
            Recovery::Tahoe { .. } => {
                tx.window.cwnd = tx.mss;
                tx.phase = Phase::Loss;
            }
            _ => tx.phase = Phase::Recovery { partial_seen: false },
        }
        let after = tx.window.cwnd;
        let seq = tx.una;
        self.stats.fast_retransmits += 1;
        io.events.emit(now, || Event::FastRetransmit { seq });
        self.count_reduction(now, Cause::DuplicateAcks, before, after, io);
        let tx = &mut self.tx;
        if !tx.sack_ok && matches!(tx.phase, Phase::Recovery { .. }) {
            // The duplicates that brought us here have left the network.
            tx.window.cwnd = tx.window.cwnd.saturating_add(tx.dup_acks * tx.mss);
        }
        tx.board.start_recovery();
        // The retransmission is timed anew (BSD, ns-2); RFC 6298 leaves it open.
        tx.arm_retransmission(now);
        let end = self.retransmit_first(now, io);
        if self.tx.phase == Phase::Loss {
            self.tx.nxt = end; // Tahoe: go back
        } else if self.tx.sack_ok {
            self.tx.board.on_retransmit(seq, end);
            self.tx.pipe = self.tx.flight().saturating_sub(self.tx.dup_acks * self.tx.mss);
        }
        self.publish_window(now, io);
    }

    /// Counts and publishes a reduction, if it was one.
    pub(super) fn count_reduction(
        &mut self,
        now: Instant,
        cause: Cause,
        from: u32,
        to: u32,
        io: &mut Io<'_, P>,
    ) {
        if to < from {
            self.stats.cwnd_reductions += 1;
            io.events.emit(now, || Event::CwndReduced { cause, from, to });
        }
    }

    /// State to restore if the coming retransmission proves spurious (RFC 4015 §3.2 steps 1, 2).
    pub(super) fn save(&self) -> Saved {
        let tx = &self.tx;
        let ssthresh = if tx.window.ssthresh == u32::MAX { 0 } else { tx.window.ssthresh };
        let more = tx.rto.granularity() * 2;
        Saved {
            pipe_prev: tx.flight().max(ssthresh),
            estimate: tx.rto.estimate().map(|e| Estimate { srtt: e.srtt + more, ..e }),
        }
    }

    /// RFC 4015 §3.2 steps 5 to 9: the retransmission was needless.
    fn undo(
        &mut self,
        now: Instant,
        kind: Spurious,
        saved: Saved,
        acked: u32,
        sample: Option<Duration>,
        io: &mut Io<'_, P>,
    ) {
        let tx = &mut self.tx;
        tx.nxt = tx.max;
        tx.phase = Phase::Open;
        tx.point.clear();
        tx.dup_acks = 0;
        tx.board.start_recovery();
        let flight = tx.flight();
        tx.congestion.on_spurious(&mut tx.window, flight, acked, saved.pipe_prev);
        tx.window.cwnd = tx.window.cwnd.max(tx.mss);
        if let (Spurious::Timeout, Some(before)) = (kind, saved.estimate) {
            tx.rto.restore_after_spurious_timeout(before, sample);
        }
        self.stats.spurious_detected += 1;
        io.events.emit(now, || Event::SpuriousDetected { kind });
        self.publish_window(now, io);
    }

    fn publish_rtt(&self, now: Instant, sample: Duration, io: &mut Io<'_, P>) {
        let rto = self.tx.rto.rto();
        if let Some(Estimate { srtt, rttvar }) = self.tx.rto.estimate() {
            io.events.emit(now, || Event::Rtt { sample, srtt, rttvar, rto });
        }
    }

    /// Our FIN is acknowledged: RFC 9293 §3.10.7.4.
    fn on_fin_acked(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let acked = self.tx.closing && self.tx.una == self.tx.end();
        if !acked {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => {
                self.enter_closed();
                io.events.emit(now, || Event::Closed);
            }
            _ => {}
        }
    }
}
