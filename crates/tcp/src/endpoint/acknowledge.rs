//! Effects of an acknowledgement on the sender: window update, RTT sample, spurious
//! retransmissions, loss recovery, growth of cwnd (RFC 5681, 6298, 6582, 6675).

use super::spurious::{FRtoVerdict, Saved};
use super::{Endpoint, Io, TcpState};
use crate::config::{ABC_UNLIMITED, SackPipe};
use crate::congestion::{Ack, Delivery, Loss, Undo};
use crate::recovery::{Progress, RecoveryPhase, Reduction};
use crate::rto::Estimate;
use airtcp_core::event::{Cause, Spurious};
use airtcp_core::{Duration, Event, Flags, Instant, Payload, Segment, SeqNum};

impl<P: Payload> Endpoint<P> {
    /// Processes the acknowledgement `ack <= SND.MAX` of an acceptable segment. The caller
    /// transmits.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: SeqNum,
        segment: &Segment<P>,
        io: &mut Io<'_, P>,
    ) {
        let probes = self.tx.standby && self.on_ack_in_standby(now, ack, io);
        let window_changed = self.update_send_window(ack, segment);
        let tx = &mut self.tx;
        tx.answered = true;
        if let Some(persist) = &mut tx.persist {
            persist.unanswered = 0;
        }
        if tx.rack.is_some() {
            tx.restart_persist(now);
            // An old ACK moves nothing, but its SACK blocks may be news.
            let ack = ack.later(tx.una);
            self.on_rack_ack(now, ack, segment, io);
            if probes {
                self.probe_route(now, io);
            }
            return;
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
        } else if self.is_duplicate(ack, segment, newly_sacked, window_changed) {
            self.stats.duplicate_acks_received += 1;
            io.events.emit(now, || Event::AckReceived { ack, duplicate: true });
            self.on_duplicate_ack(now, originals_arrived, io);
        }
        if probes {
            self.probe_route(now, io);
        }
    }

    /// True for a duplicate ACK (RFC 5681 §2): outstanding data, no data, no SYN or FIN, same
    /// number, same window. With SACK, new SACK information makes one (RFC 6675 §2). Answers to
    /// probes do not count, nor do ACKs with a closed window: they answer data for which the window
    /// had no room, as it would have none for a retransmission.
    fn is_duplicate(
        &self,
        ack: SeqNum,
        segment: &Segment<P>,
        newly_sacked: u32,
        window_changed: bool,
    ) -> bool {
        let tx = &self.tx;
        ack == tx.una
            && tx.una != tx.max
            && tx.persist.is_none()
            && tx.wnd > 0
            && if tx.sack_ok {
                newly_sacked > 0
            } else {
                segment.payload.is_empty()
                    && !segment.flags.intersects(Flags::SYN | Flags::FIN)
                    && !window_changed
            }
    }

    /// Takes the window of a segment that is at least as new as the one that last set SND.WND (RFC
    /// 9293 §3.10.7.4). A segment that acknowledges more is newer whatever its sequence number, as
    /// in Linux: the peer may be retransmitting, and a window kept while SND.UNA moves would reach
    /// too far. Returns true if the advertised window changed.
    fn update_send_window(&mut self, ack: SeqNum, segment: &Segment<P>) -> bool {
        if !self.rx.data_tells_window && !segment.payload.is_empty() {
            return false;
        }
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
            return self.age_of(now, ts.echo);
        }
        let (_, sent) = self.tx.timed.filter(|(end, _)| ack.at_or_after(*end))?;
        self.tx.timed = None;
        Some(now.since(sent))
    }

    /// Time since our timestamp clock showed `echo`.
    pub(super) fn age_of(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ms = self.clock(now).wrapping_sub(echo);
        // Half the clock's range apart: an echo of something we never sent.
        (ms < u32::MAX / 2).then(|| Duration::from_millis(u64::from(ms.max(1))))
    }

    /// Describes an ACK of `acked` bytes to the congestion control, before it takes effect.
    pub(super) fn ack_event(&self, now: Instant, acked: u32, rtt: Option<Duration>) -> Ack {
        let tx = &self.tx;
        let flight = tx.flight();
        Ack {
            now,
            acked,
            rtt,
            srtt: tx.rto.estimate().map(|e| e.srtt),
            flight,
            duplicate_acks: tx.recovery.duplicate_acks(),
            phase: tx.recovery.phase(),
            cwnd_limited: tx.recovery.is_cwnd_limited(),
            una: tx.una + acked,
            max: tx.max,
            hops: self.rx.hops,
            delivery: Delivery::default(),
            rate: None,
        }
    }

    fn on_new_ack(&mut self, now: Instant, ack: SeqNum, segment: &Segment<P>, io: &mut Io<'_, P>) {
        let sample = self.rtt_sample(now, segment, ack);
        if let Some(sample) = sample {
            self.tx.rto.sample(sample, ack, self.tx.max);
            self.publish_rtt(now, sample, io);
        }
        let acked = ack.bytes_after(self.tx.una);
        let mut heard = self.ack_event(now, acked, sample);
        let tx = &mut self.tx;
        tx.recovery.on_ack(&heard);
        tx.una = ack;
        tx.nxt = tx.nxt.later(ack);
        tx.expiries = 0;
        let duplicates = tx.recovery.duplicate_acks();
        tx.recovery.forget_duplicates();
        tx.limited_transmit = 0;
        tx.board.advance(ack);
        self.stats.bytes_acked += u64::from(self.tx.drop_acked(ack));
        self.on_fin_acked(now, io);

        let echo = segment.options.timestamps.filter(|_| self.timestamps).map(|t| t.echo);
        let mut keep_timer = false;
        if let Some((kind, saved)) = self.tx.spurious.eifel(echo) {
            self.undo(now, kind, saved, acked, sample, io);
        } else {
            match self.tx.recovery.phase() {
                // Frozen: neither growth nor recovery.
                _ if self.tx.standby => {}
                // An accepted window probe is no sign of capacity: cwnd is frozen in persist.
                RecoveryPhase::Open if self.tx.persist.is_some() => {}
                RecoveryPhase::Open | RecoveryPhase::Cwr => {
                    heard.acked = self.newly_delivered(acked, duplicates);
                    self.tx.recovery.grow(&heard);
                }
                RecoveryPhase::Loss => self.on_new_ack_in_loss(&heard, io),
                RecoveryPhase::Recovery => keep_timer = self.on_new_ack_in_recovery(&heard, io),
            }
        }
        if self.tx.persist.is_some() && self.tx.una == self.tx.end() {
            self.leave_persist(now, io);
        }
        let tx = &mut self.tx;
        tx.recovery.advance_point(ack);
        // RFC 6298 §5.2, §5.3.
        if tx.standby {
            // The route policy's timer runs on.
        } else if tx.una == tx.max || tx.persist.is_some() {
            tx.rtx_deadline = None;
        } else if !keep_timer {
            tx.arm_retransmission(now);
        }
        self.publish_window(now, io);
    }

    /// Those of `acked` bytes that the duplicate ACKs before did not report (Linux:
    /// `tcp_remove_reno_sacks`). Matters only if growth counts every byte.
    fn newly_delivered(&self, acked: u32, duplicates: u32) -> u32 {
        if self.config.abc != Some(ABC_UNLIMITED) {
            return acked;
        }
        let mss = self.tx.mss;
        acked.saturating_sub(duplicates.saturating_mul(mss)).max(mss.min(acked))
    }

    /// Handles new data acknowledged after a time-out, or in Tahoe's slow start: F-RTO decides
    /// first.
    fn on_new_ack_in_loss(&mut self, heard: &Ack, io: &mut Io<'_, P>) {
        let complete = self.tx.recovery.is_complete(self.tx.una);
        match self.tx.spurious.f_rto_on_new_ack(complete) {
            FRtoVerdict::Spurious(saved) => {
                self.undo(heard.now, Spurious::Timeout, saved, heard.acked, heard.rtt, io);
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
        self.tx.recovery.grow(heard);
        if complete {
            self.tx.recovery.open();
        }
    }

    /// Lets F-RTO send up to two new segments instead of retransmissions (RFC 5682 §2.1 step 2b).
    /// Returns false if there is nothing new to send or the peer's window is full.
    fn probe_with_new_data(&mut self) -> bool {
        let tx = &mut self.tx;
        let flight = tx.flight();
        let new = tx.unsent_data().min(tx.mss);
        if new == 0 || flight + new > tx.wnd {
            return false;
        }
        tx.nxt = tx.max;
        tx.recovery.probe_with_new_data(flight - tx.board.sacked_before(tx.max));
        true
    }

    /// Handles new data acknowledged in fast recovery. Returns true if the retransmission timer
    /// must stay as it is.
    fn on_new_ack_in_recovery(&mut self, heard: &Ack, io: &mut Io<'_, P>) -> bool {
        let tx = &mut self.tx;
        if tx.sack_ok {
            // RFC 6675 §5 (A), (B): the pipe decides what to send.
            if tx.recovery.is_complete(tx.una) {
                tx.recovery.open();
            }
            tx.pipe = tx.pipe.saturating_sub(2 * tx.mss);
            return false;
        }
        match tx.recovery.on_new_ack_in_recovery(heard.acked, tx.una, tx.flight()) {
            Progress::Over => {
                if self.config.grow_on_recovery_exit {
                    tx.recovery.grow(heard);
                }
                false
            }
            Progress::Partial { keep_timer } => {
                self.retransmit_first(heard.now, io);
                keep_timer
            }
        }
    }

    /// Handles a duplicate ACK. `originals_arrived`: it SACKs, for the first time, data sent before
    /// the last reduction.
    fn on_duplicate_ack(&mut self, now: Instant, originals_arrived: bool, io: &mut Io<'_, P>) {
        let duplicates = self.tx.recovery.count_duplicate();
        let heard = self.ack_event(now, 0, None);
        let tx = &mut self.tx;
        tx.recovery.on_ack(&heard);
        match tx.recovery.phase() {
            _ if tx.standby => return,
            RecoveryPhase::Recovery => {
                if tx.sack_ok {
                    tx.pipe = tx.pipe.saturating_sub(tx.mss);
                } else {
                    tx.recovery.inflate(1);
                    self.publish_window(now, io);
                }
                return;
            }
            RecoveryPhase::Loss => {
                match tx.spurious.f_rto_on_duplicate(originals_arrived, tx.sack_ok) {
                    FRtoVerdict::Spurious(saved) => {
                        self.undo(now, Spurious::Timeout, saved, 0, None, io);
                        return;
                    }
                    FRtoVerdict::FellThrough => {
                        tx.recovery.on_probe_failed();
                        tx.nxt = tx.una;
                        return;
                    }
                    FRtoVerdict::Conventional | FRtoVerdict::ProbeWithNewData => {}
                }
            }
            RecoveryPhase::Open | RecoveryPhase::Cwr => {}
        }
        let tx = &self.tx;
        let threshold = self.config.duplicate_ack_threshold;
        let triggered = duplicates == threshold
            || (tx.sack_ok
                && self.config.sack_pipe == SackPipe::Rfc6675
                && tx.board.first_hole_is_lost(tx.una, tx.loss_rule(&self.config)));
        if triggered && tx.recovery.may_fast_retransmit() {
            self.fast_retransmit(now, io);
        }
    }

    /// Retransmits and reduces the window (RFC 5681 §3.2 steps 2 and 3, RFC 6582 §3.2 step 2, RFC
    /// 6675 §5 step 4).
    fn fast_retransmit(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let saved = self.save();
        let clock = self.clock(now);
        let flight = self.loss_window(false);
        let tx = &mut self.tx;
        tx.spurious.on_fast_retransmit(saved, clock);
        tx.limited_transmit = 0;
        let duplicate_acks = tx.recovery.duplicate_acks();
        let loss = Loss { now, flight, duplicate_acks };
        let reduction = tx.recovery.on_fast_retransmit(&loss, tx.max, tx.sack_ok);
        tx.timed = None;
        let seq = tx.una;
        self.stats.fast_retransmits += 1;
        io.events.emit(now, || Event::FastRetransmit { seq });
        self.count_reduction(now, Cause::DuplicateAcks, reduction, io);
        let tx = &mut self.tx;
        tx.board.start_recovery();
        // The retransmission is timed anew (BSD, ns-2); RFC 6298 leaves it open.
        tx.arm_retransmission(now);
        let end = self.retransmit_first(now, io);
        let tx = &mut self.tx;
        if tx.recovery.phase() == RecoveryPhase::Loss {
            tx.nxt = end; // Tahoe: go back
        } else if tx.sack_ok {
            tx.board.on_retransmit(seq, end);
            tx.board.on_first_repaired(seq, tx.max);
            tx.pipe = tx.flight().saturating_sub(duplicate_acks * tx.mss);
        }
        self.publish_window(now, io);
    }

    /// Counts and publishes a reduction, if it was one.
    pub(super) fn count_reduction(
        &mut self,
        now: Instant,
        cause: Cause,
        Reduction { from, to }: Reduction,
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
        let ssthresh = match tx.recovery.window().ssthresh() {
            u32::MAX => 0,
            ssthresh => ssthresh,
        };
        let more = tx.rto.granularity() * 2;
        Saved {
            pipe_prev: tx.flight().max(ssthresh),
            estimate: tx.rto.estimate().map(|e| Estimate { srtt: e.srtt + more, ..e }),
        }
    }

    /// Responds to a needless retransmission (RFC 4015 §3.2 steps 5 to 9).
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
        tx.board.start_recovery();
        let (cause, flight, pipe_prev) = (kind, tx.flight(), saved.pipe_prev);
        tx.recovery.on_spurious(&Undo { now, cause, flight, acked, pipe_prev, restore: None });
        if let (Spurious::Timeout, Some(before)) = (kind, saved.estimate) {
            tx.rto.restore_after_spurious_timeout(before, sample);
        }
        self.stats.spurious_detected += 1;
        io.events.emit(now, || Event::SpuriousDetected { kind });
        self.publish_window(now, io);
    }

    pub(super) fn publish_rtt(&self, now: Instant, sample: Duration, io: &mut Io<'_, P>) {
        let rto = self.tx.rto.rto();
        if let Some(Estimate { srtt, rttvar }) = self.tx.rto.estimate() {
            io.events.emit(now, || Event::Rtt { sample, srtt, rttvar, rto });
        }
    }

    /// Changes the connection's state if our FIN is acknowledged (RFC 9293 §3.10.7.4).
    pub(super) fn on_fin_acked(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let acked = self.tx.closing && self.tx.una == self.tx.end();
        if !acked {
            return;
        }
        match self.state {
            TcpState::FinWait1 => self.state = TcpState::FinWait2,
            TcpState::Closing => self.enter_time_wait(now),
            TcpState::LastAck => {
                self.enter_closed();
                io.events.emit(now, || Event::Closed);
            }
            _ => {}
        }
    }
}
