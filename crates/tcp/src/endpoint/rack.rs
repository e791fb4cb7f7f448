//! A sender with RACK-TLP ([`crate::recovery::rack`]): the effects of its ACKs, timers and
//! transmissions on the rest of the endpoint.

use super::transmit::Timer;
use super::{Endpoint, Io};
use crate::congestion::{Ack, Delivery, RateSample, Resume};
use crate::recovery::RecoveryPhase;
use crate::recovery::rack::{Arrival, Began, Outcome, Rack};
use airtcp_core::event::Cause;
use airtcp_core::{Duration, Event, Flags, Instant, Payload, Segment, SeqNum};

impl<P: Payload> Endpoint<P> {
    /// Starts RACK if it is configured and the handshake agreed on SACK.
    pub(super) fn start_rack(&mut self, now: Instant) {
        if self.tx.sack_ok && self.config.recovery.is_rack() {
            self.tx.rack = Some(Box::new(Rack::new(now, self.tx.una)));
        }
    }

    /// Processes the acknowledgement `ack <= SND.MAX` of an acceptable segment, at or above
    /// SND.UNA. The caller transmits.
    pub(super) fn on_rack_ack(
        &mut self,
        now: Instant,
        ack: SeqNum,
        segment: &Segment<P>,
        io: &mut Io<'_, P>,
    ) {
        if self.tells_rack_nothing(segment) {
            return self.on_empty_rack_ack(now, io);
        }
        let Some(mut rack) = self.tx.rack.take() else { return };
        let mut arrival = self.rack_arrival(now, ack, segment);
        let (advances, flight) = (ack.after(self.tx.una), self.tx.flight());
        let phase = self.tx.recovery.phase();
        let mut out = rack.on_ack(&mut self.tx.recovery, &arrival);
        self.take_marks(segment, &mut rack, &out, &mut arrival);
        rack.react(&mut self.tx.recovery, &arrival, &mut out);
        let duplicate = !advances && (out.newly_sacked || out.newly_delivered > 0);
        self.count_ack(now, ack, duplicate, io);
        let sample = out.rtt.or_else(|| {
            let may = advances && self.timestamps;
            may.then(|| self.rtt_sample(now, segment, ack)).flatten()
        });
        if let Some(sample) = sample.filter(|_| advances || out.newly_sacked) {
            self.tx.rto.sample(sample, ack, self.tx.max);
            self.publish_rtt(now, sample, io);
        }
        let heard = self.rack_event(&arrival, &rack, &out, flight, phase, sample);
        if advances {
            self.advance(now, ack, io);
        }
        self.publish_outcome(now, &out, io);
        if !self.tx.standby && self.tx.persist.is_none() {
            rack.control(&mut self.tx.recovery, &heard, &out);
        }
        self.tx.rack = Some(rack);
        if self.tx.persist.is_some() && self.tx.una == self.tx.end() {
            self.leave_persist(now, io);
        }
        self.set_timer_after_ack(now, &out);
        self.publish_window(now, io);
        if out.new_first {
            self.transmit_new(now, io);
            if let Some(rack) = &mut self.tx.rack {
                rack.give_up_f_rto_unless_sent(self.tx.max);
            }
        }
    }

    /// True for an ACK that reports neither segments nor marks, to an end that has sent no data,
    /// like nearly all ACKs that come with data (Linux: `tcp_ack`, `no_queue`).
    fn tells_rack_nothing(&self, segment: &Segment<P>) -> bool {
        let echoes_mark = self.tx.ecn_ok && segment.flags.contains(Flags::ECE);
        self.tx.una == self.tx.max
            && self.stats.data_segments_sent == 0
            && self.accecn.is_none()
            && !echoes_mark
            && segment.options.sack.is_empty()
    }

    /// Processes an ACK that [reports nothing](Self::tells_rack_nothing).
    fn on_empty_rack_ack(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let heard = self.ack_event(now, 0, None);
        self.tx.recovery.on_ack(&heard);
        if !self.tx.standby {
            self.tx.rtx_deadline = None;
        }
        self.publish_window(now, io);
    }

    /// The ACK on arrival, with the sender's state before it.
    fn rack_arrival<'a>(&self, now: Instant, ack: SeqNum, segment: &'a Segment<P>) -> Arrival<'a> {
        let tx = &self.tx;
        let waits = tx.unsent_data().min(tx.mss);
        Arrival {
            now,
            ack,
            una: tx.una,
            nxt: tx.max,
            blocks: segment.options.sack.as_slice(),
            echo: segment.options.timestamps.filter(|_| self.timestamps).map(|t| t.echo),
            clock: self.clock(now),
            ece: tx.ecn_ok && segment.flags.contains(Flags::ECE),
            may_send_new: waits > 0 && (ack + tx.wnd).at_or_after(tx.max + waits),
            max_window: tx.max_wnd,
            smss: tx.mss,
            srtt: tx.rto.estimate().map(|e| e.srtt),
        }
    }

    /// With AccECN, notes the marks that the ACK reports.
    fn take_marks(
        &mut self,
        segment: &Segment<P>,
        rack: &mut Rack,
        out: &Outcome,
        arrival: &mut Arrival<'_>,
    ) {
        let progress = arrival.ack.after(arrival.una) || out.newly_sacked;
        let bytes = rack.newly_delivered(out);
        if let Some(marks) = self.read_marks(segment, out.segments_delivered, bytes, progress) {
            arrival.ece = marks.segments > 0;
            rack.on_marks(marks.bytes);
        }
    }

    /// Moves SND.UNA to `ack`.
    fn advance(&mut self, now: Instant, ack: SeqNum, io: &mut Io<'_, P>) {
        let tx = &mut self.tx;
        tx.una = ack;
        tx.nxt = tx.max;
        tx.expiries = 0;
        tx.recovery.forget_duplicates();
        self.stats.bytes_acked += u64::from(self.tx.drop_acked(ack));
        self.on_fin_acked(now, io);
    }

    /// Describes an ACK to the congestion control.
    fn rack_event(
        &self,
        arrival: &Arrival<'_>,
        rack: &Rack,
        out: &Outcome,
        flight: u32,
        phase: RecoveryPhase,
        rtt: Option<Duration>,
    ) -> Ack {
        let delivered = rack.delivered();
        // Linux (`tcp_ack_update_rtt`): a timestamp gives the RTT of a retransmitted segment, for
        // which the time of transmission is ambiguous.
        let rate = out.rate.map(|sample| RateSample { rtt: sample.rtt.or(rtt), ..sample });
        Ack {
            acked: out.newly_delivered,
            flight,
            phase,
            una: arrival.ack,
            delivery: Delivery {
                delivered: delivered.total(),
                delivered_ce: delivered.ce(),
                lost: delivered.lost(),
                newly_delivered: out.newly_delivered,
                newly_ce: out.newly_ce,
                newly_lost: out.newly_lost,
                inflight: rack.inflight(),
                prior_inflight: out.prior_inflight,
            },
            rate,
            ..self.ack_event(arrival.now, 0, rtt)
        }
    }

    fn count_ack(&mut self, now: Instant, ack: SeqNum, duplicate: bool, io: &mut Io<'_, P>) {
        if duplicate {
            self.stats.duplicate_acks_received += 1;
            self.tx.recovery.count_duplicate();
        }
        if duplicate || ack.after(self.tx.una) {
            io.events.emit(now, || Event::AckReceived { ack, duplicate });
        }
    }

    /// Counts and publishes what an ACK did to the windows.
    fn publish_outcome(&mut self, now: Instant, out: &Outcome, io: &mut Io<'_, P>) {
        if let Some(kind) = out.undone {
            self.stats.spurious_detected += 1;
            io.events.emit(now, || Event::SpuriousDetected { kind });
        }
        if let Some((reduction, began)) = out.reduction {
            if began == Began::Loss {
                self.publish_fast_retransmit(now, io);
            }
            self.tx.tell_reduced = true;
            let cause = if began == Began::Mark { Cause::Ecn } else { Cause::DuplicateAcks };
            self.count_reduction(now, cause, reduction, io);
        }
    }

    fn publish_fast_retransmit(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let seq = self.tx.una;
        self.stats.fast_retransmits += 1;
        io.events.emit(now, || Event::FastRetransmit { seq });
    }

    /// Restarts or stops the timer after an ACK (RFC 8985 §7.2, RFC 6298 §5.3).
    fn set_timer_after_ack(&mut self, now: Instant, out: &Outcome) {
        let tx = &mut self.tx;
        if tx.standby {
            return; // the route policy's timer runs on
        }
        if tx.una == tx.max || tx.persist.is_some() {
            tx.rtx_deadline = None;
        } else if let Some(timeout) = out.reorder {
            tx.arm(now, Timer::Reordering, timeout + self.config.timer_floor());
        } else if out.rearm && !self.schedule_probe(now, true) {
            self.tx.rearm_timeout(now);
        }
    }

    /// Schedules a tail loss probe, no later than the time-out (RFC 8985 §7.2). `advancing`: an ACK
    /// has just moved the time-out. Returns true if the timer now runs for a probe.
    fn schedule_probe(&mut self, now: Instant, advancing: bool) -> bool {
        let Some(rack) = self.tx.rack.as_ref() else { return false };
        let Some(config) = self.config.recovery.rack().filter(|c| c.tail_loss_probe) else {
            return false;
        };
        let srtt = self.tx.rto.estimate().map(|e| e.srtt);
        let (phase, floor) = (self.tx.recovery.phase(), self.config.timer_floor());
        let Some(wait) = rack.probe_timeout(phase, srtt, config.max_ack_delay, floor) else {
            return false;
        };
        let timeout = self.tx.rto.rto();
        let timeout =
            if advancing { timeout } else { self.tx.time_to_timeout(now).unwrap_or(timeout) };
        self.tx.arm(now, Timer::Probe, if timeout.is_zero() { wait } else { wait.min(timeout) });
        true
    }

    /// Restarts the time-out after a new segment if the network had been empty or the timer ran for
    /// a probe.
    pub(super) fn after_new_segment(&mut self, now: Instant, was_empty: bool) {
        if was_empty || self.tx.timer == Timer::Probe {
            self.tx.rearm_timeout(now);
        }
    }

    /// Sends what the windows and the pacing rate allow: retransmissions first.
    pub(super) fn transmit_with_rack(&mut self, now: Instant, io: &mut Io<'_, P>) {
        self.retransmit_lost(now, io);
        self.transmit_new(now, io);
    }

    fn transmit_new(&mut self, now: Instant, io: &mut Io<'_, P>) {
        if self.tx.una == self.tx.end() || !self.sends_data() || self.tx.standby {
            return;
        }
        let (max, was_empty) = (self.tx.max, self.tx.una == self.tx.max);
        if was_empty {
            self.resume(now);
        }
        self.transmit_by_window(now, io);
        if self.tx.max != max && !self.tx.standby {
            self.after_new_segment(now, was_empty);
            self.schedule_probe(now, false);
        }
    }

    /// Called before the application writes. If it let the network run dry, data delivered until
    /// then shows the application's rate, not the network's (Linux: `tcp_rate_check_app_limited`);
    /// with a full send buffer it could not have written before.
    pub(super) fn note_application(&mut self) {
        let tx = &mut self.tx;
        let unsent = tx.unsent_left();
        if let Some(rack) = &mut tx.rack {
            let idle = unsent < tx.mss && rack.inflight() < tx.recovery.window().cwnd();
            let waited = tx.buffer_was_full && tx.una != tx.max;
            if idle && !waited && rack.queue().lost().bytes <= rack.queue().resent().bytes {
                rack.on_app_limited();
            }
        }
    }

    /// Reports to the congestion control that data is about to enter an empty network.
    fn resume(&mut self, now: Instant) {
        let tx = &mut self.tx;
        let Some(rack) = &tx.rack else { return };
        let (app_limited, delivered) =
            (rack.delivered().is_app_limited(), rack.delivered().total());
        tx.recovery.on_resume(&Resume { now, app_limited, delivered });
    }

    fn retransmit_lost(&mut self, now: Instant, io: &mut Io<'_, P>) {
        loop {
            let tx = &mut self.tx;
            let phase = tx.recovery.phase();
            let Some(rack) = tx.rack.as_mut().filter(|rack| rack.may_retransmit(phase)) else {
                return;
            };
            let Some((serial, seq, end)) = rack.next_lost() else { return };
            let len = end.bytes_after(seq);
            let room = tx.recovery.window().cwnd().saturating_sub(rack.inflight());
            let fits = seq == tx.una || end.at_or_before(tx.una + tx.wnd);
            if room < len || !fits || !tx.admits(now, len) {
                return;
            }
            self.retransmit_record(now, serial, seq, end, io);
        }
    }

    /// Sends a recorded segment again.
    fn retransmit_record(
        &mut self,
        now: Instant,
        serial: u64,
        seq: SeqNum,
        end: SeqNum,
        io: &mut Io<'_, P>,
    ) {
        self.retransmit(now, seq, end, io);
        let (clock, phase) = (self.clock(now), self.tx.recovery.phase());
        let tx = &mut self.tx;
        let Some(rack) = &mut tx.rack else { return };
        rack.on_retransmitted(now, serial, clock, phase);
        if seq == tx.una && tx.timer != Timer::Reordering {
            tx.arm_retransmission(now);
        }
    }

    /// Handles the expiry of the reordering timer (RFC 8985 §6.3).
    pub(super) fn on_reordering_timeout(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let tx = &mut self.tx;
        tx.timer = Timer::Retransmission;
        tx.rtx_deadline = None;
        let Some(rack) = &mut tx.rack else { return };
        let (una, max) = (tx.una, tx.max);
        let (reduction, again) = rack.on_reordering_timeout(&mut tx.recovery, now, una, max);
        if let Some(reduction) = reduction {
            self.publish_fast_retransmit(now, io);
            self.count_reduction(now, Cause::DuplicateAcks, reduction, io);
        }
        self.publish_window(now, io);
        match again {
            Some(timeout) => {
                self.tx.arm(now, Timer::Reordering, timeout + self.config.timer_floor());
            }
            None => self.tx.rearm_timeout(now),
        }
        self.transmit(now, io);
    }

    /// Probes the tail: with new data if there is any, otherwise with the last segment (RFC 8985
    /// §7.3).
    pub(super) fn on_probe_timeout(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let tx = &mut self.tx;
        let Some(rack) = tx.rack.as_ref() else { return };
        let len = tx.unsent_data().min(tx.mss);
        let last = rack.last();
        let fits = len > 0 && tx.flight() + len <= tx.wnd;
        let idle = !rack.is_probing();
        if idle && fits && self.sends_data() {
            let (seq, fin) =
                (self.tx.max, self.tx.closing && self.tx.max + len == self.tx.fin_seq());
            self.send_data(now, seq, len, fin, io);
            self.tx.nxt = self.tx.max;
            self.note_probe(false);
        } else if let Some((serial, seq, end)) = last.filter(|_| idle) {
            self.retransmit_record(now, serial, seq, end, io);
            self.note_probe(true);
        }
        // The time-out runs from the probe on (RFC 8985 §7.3).
        self.tx.arm_retransmission(now);
    }

    fn note_probe(&mut self, retransmission: bool) {
        self.stats.tail_loss_probes += 1;
        let max = self.tx.max;
        if let Some(rack) = &mut self.tx.rack {
            rack.on_probe_sent(max, retransmission);
        }
    }

    /// Handles a time-out with data outstanding: all of it may be lost, and the first segment is
    /// sent again (RFC 6298 §5.4; RFC 8985 §6.3).
    pub(super) fn on_rack_timeout(
        &mut self,
        now: Instant,
        timeout: &crate::congestion::Timeout,
        io: &mut Io<'_, P>,
    ) {
        let (una, max) = (self.tx.una, self.tx.max);
        let tx = &mut self.tx;
        let Some(rack) = &mut tx.rack else { return };
        let reduction = rack.on_timeout(&mut tx.recovery, timeout, una, max);
        let first = rack.first();
        self.tx.tell_reduced = true;
        self.count_reduction(now, Cause::Rto, reduction, io);
        self.publish_window(now, io);
        if let Some((serial, seq, end)) = first {
            self.retransmit_record(now, serial, seq, end, io);
        }
        self.transmit(now, io);
    }

    /// Sends a segment without data from before SND.UNA, which the peer must answer with its window
    /// (RFC 9293 §3.10.7.4; Linux probes so). A window that was too small to be used is used now
    /// (RFC 9293 §3.8.6.2.1, case 4).
    pub(super) fn send_window_probe(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let len = self.tx.unsent_data().min(self.tx.wnd).min(self.tx.mss);
        if len > 0 {
            self.leave_persist(now, io);
            self.send_data(now, self.tx.max, len, false, io);
            self.tx.nxt = self.tx.max;
            return;
        }
        self.stats.window_probes += 1;
        io.events.emit(now, || Event::WindowProbe);
        let seq = self.tx.una - 1;
        self.send(now, seq, Flags::empty(), P::default(), io);
    }
}
