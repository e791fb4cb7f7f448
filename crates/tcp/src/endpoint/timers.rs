//! The expiries of an endpoint: retransmission (RFC 6298 §5), persist (RFC 9293 §3.8.6.1), pacing,
//! standby, the ACK policy's, TIME-WAIT.

use super::transmit::{Persist, Timer};
use super::{Endpoint, Io, TcpState};
use crate::ack::Decision;
use crate::config::PersistOnShrink;
use crate::congestion::Timeout;
use crate::recovery::RecoveryPhase;
use crate::rto::Expiry;
use airtcp_core::event::{AbortReason, Cause};
use airtcp_core::{Duration, Event, Instant, Payload};

impl<P: Payload> Endpoint<P> {
    /// Time at which [`Endpoint::on_timer`] is due. Any call may move it: read it again after each.
    pub fn next_deadline(&self) -> Option<Instant> {
        let tx = &self.tx;
        let persist = tx.persist.as_ref().map(|p| p.deadline);
        let all = [
            tx.rtx_deadline,
            persist,
            tx.pacing.deadline,
            self.rx.policy.deadline(),
            self.time_wait,
        ];
        // Not `flatten`: its branches cannot be predicted.
        let next = all.map(|deadline| deadline.unwrap_or(Instant::MAX)).into_iter().min();
        next.filter(|&next| next < Instant::MAX)
    }

    /// Handles expired timers. Call when `next_deadline()` has passed; harmless earlier.
    pub fn on_timer(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|d| d <= now);
        if due(self.time_wait) {
            self.enter_closed();
            io.events.emit(now, || Event::Closed);
        }
        if due(self.tx.rtx_deadline) {
            match self.tx.timer {
                _ if self.tx.standby => self.on_standby_timer(now, io),
                Timer::Retransmission => self.on_retransmission_timeout(now, io),
                Timer::Probe => self.on_probe_timeout(now, io),
                Timer::Reordering => self.on_reordering_timeout(now, io),
            }
        }
        if due(self.tx.persist.as_ref().map(|p| p.deadline)) {
            self.on_persist_timeout(now, io);
        }
        if due(self.tx.pacing.deadline) {
            self.transmit(now, io);
        }
        if due(self.rx.policy.deadline()) && self.rx.policy.on_timer(now) == Decision::Now {
            self.send_ack(now, io);
        }
        if !self.sends_data() {
            self.note_limit(now);
        }
    }

    fn on_retransmission_timeout(&mut self, now: Instant, io: &mut Io<'_, P>) {
        // Linux: a peer that answers with a closed window is alive (tcp_retransmit_timer).
        let alive = self.config.persist.on_shrink == PersistOnShrink::Linux
            && self.tx.wnd == 0
            && self.tx.answered;
        if self.tx.expiries == 0 {
            self.tx.first_expiry = now;
        }
        if let Some(reason) = self.gives_up(now, self.tx.expiries, alive) {
            self.enter_aborted(now, reason, io);
            return;
        }
        self.tx.answered = false;
        if alive {
            // This expiry does not count towards the limit. It is no first expiry either: that
            // would halve ssthresh once more.
            self.tx.expiries = self.tx.expiries.min(1);
        }
        self.tx.expiries += 1;
        let handshake = matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
        let (count, duplicate_acks) = (self.tx.expiries, self.tx.recovery.duplicate_acks());
        self.stats.timeouts += 1;
        self.stats.timeouts_after_duplicates += u64::from(matches!(duplicate_acks, 1 | 2));
        let linear = self.config.rto.linear_syn_timeouts;
        if self.state != TcpState::SynSent || count > linear {
            self.tx.rto.on_expiry(&Expiry { now, count, duplicate_acks, handshake });
        }
        let (seq, rto) = (self.tx.una, self.tx.rto.rto());
        io.events.emit(now, || Event::RtoExpired { seq, count, rto });
        self.tx.arm_retransmission(now);
        self.tx.timed = None;
        if handshake {
            self.send_syn(now, io);
            return;
        }
        let first = count == 1;
        let flight = self.loss_window(true);
        let phase = self.tx.recovery.phase();
        let timeout = Timeout { now, flight, first, duplicate_acks, phase };
        if let Some(cwnd) = self.tx.recovery.larger_restart(&timeout) {
            self.stats.larger_restarts += 1;
            io.events.emit(now, || Event::LargerRestart { cwnd, duplicate_acks });
        }
        match self.tx.rack {
            Some(_) => self.on_rack_timeout(now, &timeout, io),
            None => self.go_back_after_timeout(now, &timeout, io),
        }
    }

    /// Without RACK, reduces the window after a time-out and sends again from SND.UNA on.
    fn go_back_after_timeout(&mut self, now: Instant, timeout: &Timeout, io: &mut Io<'_, P>) {
        let saved = self.save();
        let clock = self.clock(now);
        let tx = &mut self.tx;
        tx.spurious.on_timeout(timeout.first, saved, clock, timeout.phase == RecoveryPhase::Loss);
        let reduction = tx.recovery.on_timeout(timeout, tx.max);
        tx.limited_transmit = 0;
        if tx.board.range_at_or_above(tx.una).is_some_and(|r| r.left.at_or_before(tx.una)) {
            tx.board.clear(); // the receiver reneged (RFC 2018 §8)
        }
        tx.board.start_recovery();
        self.count_reduction(now, Cause::Rto, reduction, io);
        self.publish_window(now, io);
        // Go back to SND.UNA; the first segment leaves even under a closed window.
        self.tx.nxt = self.retransmit_first(now, io);
        self.transmit(now, io);
    }

    fn on_persist_timeout(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let config = self.config.persist;
        let Some(persist) = self.tx.persist else { return };
        if let Some(reason) = self.gives_up(now, persist.unanswered, false) {
            self.enter_aborted(now, reason, io);
            return;
        }
        let unanswered = persist.unanswered + 1;
        let interval = persist.interval.mul_f64(config.backoff).min(config.max);
        self.tx.persist = Some(Persist { unanswered, interval, ..persist });
        self.tx.restart_persist(now);
        self.send_probe(now, io);
    }

    /// Reason to abort after `attempts` expiries without an answer, if there is one. With a peer
    /// that is `alive`, attempts are unlimited within the user timeout.
    fn gives_up(&self, now: Instant, attempts: u32, alive: bool) -> Option<AbortReason> {
        if self.tx.user_timeout < Duration::MAX {
            let overdue = now.since(self.tx.first_expiry) >= self.tx.user_timeout;
            return overdue.then_some(AbortReason::UserTimeout);
        }
        let most = self.config.rto.max_retransmissions;
        (attempts >= most && !alive).then_some(AbortReason::RetransmissionLimit)
    }
}
