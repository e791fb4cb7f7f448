//! The sending half: what may be sent, in which order, and how (RFC 9293 §3.8.6, RFC 5681 §3.1, RFC
//! 6675 §5).

use super::limit::LimitClock;
use super::spurious::Detector;
use super::{Endpoint, Io, TcpState};
use crate::config::{CwndValidation, LossWindow, Nagle, PersistOnShrink, SackPipe, TcpConfig};
use crate::congestion::{CongestionControl, Restart};
use crate::recovery::rack::Rack;
use crate::recovery::scoreboard::{LossRule, NextSeg, Scoreboard};
use crate::recovery::{LossRecovery, RecoveryPhase};
use crate::route::RoutePolicy;
use crate::rto::{RtoEstimator, RtoPolicy, TimerWheel};
use airtcp_core::{Bytes, DataRate, Duration, Event, Flags, Instant, Payload, SeqNum};
use std::sync::Arc;

/// State while waiting for a closed window to open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persist {
    pub(super) deadline: Instant,
    pub(super) interval: Duration,
    /// Probes in a row without any answer.
    pub(super) unanswered: u32,
}

/// Segments that are never paced (Linux: `tcp_update_skb_after_send`).
const FIRST_UNPACED: u32 = 10;

/// Spaces the segments of a sender with a pacing rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    /// Time at which the segments sent so far have left at the pacing rate.
    free_at: Instant,
    /// Set while a segment waits for `free_at`.
    pub(super) deadline: Option<Instant>,
}

impl Pacing {
    /// Returns true if `len` bytes may leave now, and accounts for them; otherwise sets the
    /// deadline.
    pub(super) fn admits(&mut self, now: Instant, len: u32, rate: Option<DataRate>) -> bool {
        let Some(rate) = rate else { return true };
        if now < self.free_at {
            self.deadline = Some(self.free_at);
            return false;
        }
        self.free_at = now + rate.transmission_time(Bytes(u64::from(len)));
        true
    }

    /// Clears the deadline: no segment waits.
    pub(super) fn stop(&mut self) {
        self.deadline = None;
    }
}

/// Purpose of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The retransmission time-out (RFC 6298).
    Retransmission,
    /// A tail loss probe (RFC 8985 §7).
    Probe,
    /// Detection of losses among segments that may be reordered (RFC 8985 §6.3).
    Reordering,
}

/// State of the sending half.
#[derive(Debug)]
pub(super) struct Sender<P> {
    pub(super) iss: SeqNum,
    /// SND.UNA: first unacknowledged sequence number.
    pub(super) una: SeqNum,
    /// SND.NXT; behind `max` after a time-out (go-back-N).
    pub(super) nxt: SeqNum,
    /// SND.MAX: one past the highest sequence number ever sent.
    pub(super) max: SeqNum,
    /// Stream data from `buffer_start` on: unacknowledged, then unsent.
    pub(super) buffer: P,
    buffer_start: SeqNum,
    /// FIN follows the buffered data.
    pub(super) closing: bool,
    /// SND.WND in bytes, its largest value, and the segment that set it (SND.WL1, SND.WL2).
    pub(super) wnd: u32,
    pub(super) max_wnd: u32,
    pub(super) wl1: SeqNum,
    pub(super) wl2: SeqNum,
    pub(super) shift: u8,
    /// Window scaling was negotiated.
    pub(super) scaling: bool,
    /// SMSS: largest payload of a segment, bytes.
    pub(super) mss: u32,
    pub(super) recovery: LossRecovery,
    /// Bytes sent beyond cwnd by Limited Transmit; not part of FlightSize for ssthresh (RFC 5681
    /// §3.2).
    pub(super) limited_transmit: u32,
    pub(super) board: Scoreboard,
    /// [`SackPipe::FallFloyd`]'s counter of bytes in the network, during recovery.
    pub(super) pipe: u32,
    /// SACK was negotiated.
    pub(super) sack_ok: bool,
    /// ECN was negotiated.
    pub(super) ecn_ok: bool,
    /// The next new data segment carries CWR (RFC 3168 §6.1.2).
    pub(super) tell_reduced: bool,
    pub(super) rto: RtoEstimator,
    /// Expiry of the retransmission timer; in standby, of the route policy's.
    pub(super) rtx_deadline: Option<Instant>,
    pub(super) timer: Timer,
    /// Time of the first of `expiries`, or of persist's first probe.
    pub(super) first_expiry: Instant,
    /// [`Duration::MAX`] if there is none.
    pub(super) user_timeout: Duration,
    /// RACK-TLP, once negotiated; replaces `board`, `pipe` and `spurious`.
    pub(super) rack: Option<Box<Rack>>,
    /// Rounding of the host's timers, if they are coarse.
    pub(super) wheel: Option<TimerWheel>,
    /// Expiries of the retransmission timer since the last new ACK.
    pub(super) expiries: u32,
    /// True if any ACK has come since the last expiry (Linux's rule for shrunk windows).
    pub(super) answered: bool,
    /// The segment being timed when timestamps are off: its end, and its departure (Karn).
    pub(super) timed: Option<(SeqNum, Instant)>,
    pub(super) persist: Option<Persist>,
    pub(super) pacing: Pacing,
    /// Segments still to be sent without pacing, if the window paces the sender.
    unpaced: Option<u32>,
    pub(super) route: Box<dyn RoutePolicy>,
    /// In standby because the route is broken.
    pub(super) standby: bool,
    pub(super) spurious: Detector,
    pub(super) last_sent: Instant,
    /// End of the last segment smaller than the MSS, for Minshall's variant of Nagle.
    small_end: SeqNum,
    /// Timestamp of our first SYN or SYN-ACK.
    pub(super) syn_stamp: u32,
    /// The last write left no room for a segment in the send buffer.
    pub(super) buffer_was_full: bool,
    /// Allocated at the first data: a pure receiver has none.
    pub(super) limits: Option<Box<LimitClock>>,
}

impl<P: Payload> Sender<P> {
    pub(super) fn new(
        config: &Arc<TcpConfig>,
        iss: SeqNum,
        congestion: Box<dyn CongestionControl>,
        rto: Box<dyn RtoPolicy>,
        route: Box<dyn RoutePolicy>,
    ) -> Self {
        let mut sender = Self {
            iss,
            una: iss,
            nxt: iss,
            max: iss,
            buffer: P::default(),
            buffer_start: iss + 1,
            closing: false,
            wnd: 0,
            max_wnd: 0,
            wl1: SeqNum(0),
            wl2: SeqNum(0),
            shift: 0,
            scaling: false,
            mss: 0,
            recovery: LossRecovery::new(config, congestion),
            limited_transmit: 0,
            board: Scoreboard::default(),
            pipe: 0,
            sack_ok: false,
            ecn_ok: false,
            tell_reduced: false,
            rto: RtoEstimator::new(Arc::clone(config), rto),
            rtx_deadline: None,
            timer: Timer::Retransmission,
            first_expiry: Instant::ZERO,
            user_timeout: config.user_timeout.unwrap_or(Duration::MAX),
            rack: None,
            wheel: config.timer_wheel(config.uptime.unwrap_or_default()),
            expiries: 0,
            answered: false,
            timed: None,
            persist: None,
            pacing: Pacing::default(),
            unpaced: config.pacing.then_some(FIRST_UNPACED),
            route,
            standby: false,
            spurious: Detector::new(config.spurious),
            last_sent: Instant::ZERO,
            small_end: iss,
            syn_stamp: 0,
            buffer_was_full: false,
            limits: None,
        };
        sender.set_mss(config, u32::from(config.mss));
        sender
    }

    /// Sets SMSS and the windows that depend on it.
    pub(super) fn set_mss(&mut self, config: &TcpConfig, mss: u32) {
        self.mss = mss;
        self.recovery.set_smss(config, mss);
    }

    /// Sender's silly-window avoidance (RFC 9293 §3.8.6.2.1): a piece of a segment only when it is
    /// at least half the largest window the peer ever had.
    fn may_send_piece(&self, room: u32) -> bool {
        room > 0 && room >= self.max_wnd / 2
    }

    /// True if, with nothing outstanding, the window has room for the next segment or a piece of
    /// it.
    fn window_is_usable(&self) -> bool {
        let next = self.fin_seq().bytes_after(self.nxt).min(self.mss);
        self.wnd > 0 && (self.wnd >= next || self.may_send_piece(self.wnd))
    }

    /// Returns true if pacing allows `len` bytes now.
    pub(super) fn admits(&mut self, now: Instant, len: u32) -> bool {
        if let Some(left @ 1..) = &mut self.unpaced {
            *left -= 1;
            return true;
        }
        let rate = self.recovery.pacing_rate().or_else(|| self.rate_of_window());
        self.pacing.admits(now, len, rate)
    }

    /// 1.2 windows per round trip, or 2 while cwnd is to double (Linux: `tcp_update_pacing_rate`);
    /// `None` for a sender that is not paced, and before an RTT is known.
    fn rate_of_window(&self) -> Option<DataRate> {
        self.unpaced?;
        let srtt = self.rto.estimate()?.srtt.max(Duration::from_nanos(1));
        let (cwnd, ssthresh) = (self.recovery.window().cwnd(), self.recovery.window().ssthresh());
        let share = if cwnd < ssthresh / 2 { 200 } else { 120 };
        let bits = u128::from(cwnd.max(self.flight())) * 8 * share / 100;
        let rate = bits * 1_000_000_000 / u128::from(srtt.as_nanos());
        DataRate::from_bits_per_sec(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
    }

    /// True if Nagle's algorithm makes a small segment wait.
    fn holds_small(&self, nagle: Nagle) -> bool {
        match nagle {
            Nagle::Off => false,
            Nagle::On => self.una != self.max,
            Nagle::Minshall => self.small_end.after(self.una) && self.una != self.max,
        }
    }

    /// True if the connection was never opened.
    pub(super) fn is_fresh(&self) -> bool {
        self.max == self.iss
    }

    /// Sequence number of our FIN, sent or not.
    pub(super) fn fin_seq(&self) -> SeqNum {
        self.buffer_start + self.buffer.len() as u32
    }

    /// Bytes written and never sent.
    pub(super) fn unsent_data(&self) -> u32 {
        self.fin_seq().bytes_after(self.max)
    }

    /// One past the last sequence number to send, FIN included.
    pub(super) fn end(&self) -> SeqNum {
        self.fin_seq() + u32::from(self.closing)
    }

    /// FlightSize, bytes.
    pub(super) fn flight(&self) -> u32 {
        self.max.bytes_after(self.una)
    }

    /// Drops the data acknowledged up to `ack` from the buffer; returns its length in bytes.
    pub(super) fn drop_acked(&mut self, ack: SeqNum) -> u32 {
        let acked = (ack.bytes_after(self.buffer_start) as usize).min(self.buffer.len());
        self.buffer.drop_front(acked);
        self.buffer_start += acked as u32;
        acked as u32
    }

    /// Sequence number of a segment without data: SND.MAX, but inside the peer's window.
    pub(super) fn ack_seq(&self) -> SeqNum {
        self.max.earlier(self.una + self.wnd).later(self.una)
    }

    /// Bytes SACKed that had been sent before the last reduction.
    pub(super) fn sacked_below_point(&self) -> u32 {
        self.recovery.point().mark().map_or(0, |mark| self.board.sacked_before(mark))
    }

    pub(super) fn loss_rule(&self, config: &TcpConfig) -> LossRule {
        match config.sack_pipe {
            SackPipe::Rfc6675 => {
                LossRule { dup_thresh: config.duplicate_ack_threshold, smss: self.mss }
            }
            // Any hole with something SACKed above it.
            SackPipe::FallFloyd => LossRule { dup_thresh: 1, smss: self.mss },
        }
    }

    pub(super) fn arm_retransmission(&mut self, now: Instant) {
        let rto = self.rto.rto();
        let wait = match self.expiries {
            0 => rto,
            _ => self.within_user_timeout(now, rto),
        };
        self.arm(now, Timer::Retransmission, wait);
    }

    /// Starts the interval to the next probe of persist: a probe was sent, or an ACK left the
    /// window closed (Linux: `tcp_ack_probe`).
    pub(super) fn restart_persist(&mut self, now: Instant) {
        if let Some(mut persist) = self.persist {
            persist.deadline = self.due(now, self.within_user_timeout(now, persist.interval));
            self.persist = Some(persist);
        }
    }

    /// `wait`, or what is left of the user timeout (Linux: `tcp_clamp_rto_to_user_timeout`).
    fn within_user_timeout(&self, now: Instant, wait: Duration) -> Duration {
        let (limit, waited) = (self.user_timeout, now.since(self.first_expiry));
        let rest = if waited < limit { limit - waited } else { Duration::ZERO };
        wait.min(rest.max(Duration::from_nanos(1)))
    }

    /// Sets the timer to expire after `wait`.
    pub(super) fn arm(&mut self, now: Instant, timer: Timer, wait: Duration) {
        if !self.standby {
            self.timer = timer;
            self.rtx_deadline = Some(self.due(now, wait));
        }
    }

    /// Expiry of a timer of this host that is set for `wait`.
    pub(super) fn due(&self, now: Instant, wait: Duration) -> Instant {
        self.wheel.map_or(now + wait, |wheel| wheel.due(now, wait))
    }

    /// Time left until the time-out of the first unacknowledged segment, counted from its
    /// transmission; zero if it has passed.
    pub(super) fn time_to_timeout(&self, now: Instant) -> Option<Duration> {
        let sent = self.rack.as_ref()?.first_sent_at()?;
        let (rto, age) = (self.rto.rto(), now.since(sent));
        Some(if age < rto { rto - age } else { Duration::ZERO })
    }

    /// Sets the time-out after a probe or the reordering timer to the time left since the first
    /// segment was sent (Linux: `tcp_rearm_rto`).
    pub(super) fn rearm_timeout(&mut self, now: Instant) {
        if self.una == self.max {
            self.rtx_deadline = None;
            self.timer = Timer::Retransmission;
            return;
        }
        let rest = match self.timer {
            Timer::Retransmission => None,
            Timer::Probe | Timer::Reordering => self.time_to_timeout(now),
        };
        let wait = rest.unwrap_or_else(|| self.rto.rto()).max(Duration::from_nanos(1));
        self.arm(now, Timer::Retransmission, wait);
    }

    /// Bytes and FIN not yet sent.
    pub(super) fn unsent_left(&self) -> u32 {
        self.end().bytes_after(self.max)
    }

    /// Restarts the timer as standby begins, continues or ends.
    pub(super) fn restart_timer(&mut self, now: Instant) {
        self.rtx_deadline = if self.standby {
            self.route.deadline()
        } else {
            (self.una != self.max).then(|| self.due(now, self.rto.rto()))
        };
    }

    pub(super) fn stop_timers(&mut self) {
        self.rtx_deadline = None;
        self.persist = None;
        self.pacing.stop();
        self.standby = false;
    }

    /// The congestion window for new data: Limited Transmit adds a segment for each of the first
    /// two duplicate ACKs (RFC 3042).
    pub(super) fn sendable_cwnd(&self, config: &TcpConfig) -> u32 {
        let (cwnd, duplicates) = (self.recovery.window().cwnd(), self.recovery.duplicate_acks());
        // With RACK each SACKed segment has left room already.
        let before_threshold = duplicates < config.duplicate_ack_threshold && self.rack.is_none();
        if config.limited_transmit
            && self.recovery.phase() == RecoveryPhase::Open
            && before_threshold
        {
            cwnd.saturating_add(duplicates.min(2) * self.mss)
        } else {
            cwnd
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// True in the states in which data (or FIN) is sent.
    pub(super) fn sends_data(&self) -> bool {
        matches!(
            self.state,
            TcpState::Established
                | TcpState::CloseWait
                | TcpState::FinWait1
                | TcpState::Closing
                | TcpState::LastAck
        )
    }

    /// Sends everything that the windows and the pacing rate allow now.
    #[inline]
    pub(super) fn transmit(&mut self, now: Instant, io: &mut Io<'_, P>) {
        self.tx.pacing.stop();
        // A pure receiver has nothing outstanding and nothing to send.
        let idle = self.tx.una == self.tx.end() && self.tx.persist.is_none();
        if idle && self.tx.limits.is_none() {
            return;
        }
        if !idle && self.sends_data() && !self.tx.standby {
            self.send_what_may(now, io);
        }
        self.note_limit(now);
    }

    fn send_what_may(&mut self, now: Instant, io: &mut Io<'_, P>) {
        // A window too small to be used does not end it: a peer that repeats itself more often than
        // the interval would put the probe off forever.
        if self.tx.persist.is_some() && self.tx.window_is_usable() {
            self.leave_persist(now, io);
        }
        self.restart_after_idle(now, io);
        if self.tx.rack.is_some() {
            self.transmit_with_rack(now, io);
        } else if self.tx.sack_ok && self.tx.recovery.phase() == RecoveryPhase::Recovery {
            self.transmit_by_pipe(now, io);
        } else {
            self.transmit_by_window(now, io);
        }
        self.validate_cwnd(now);
        self.enter_persist_if_stalled(now, io);
    }

    /// Sends from SND.NXT while the usable window has room (RFC 5681 §3.1).
    pub(super) fn transmit_by_window(&mut self, now: Instant, io: &mut Io<'_, P>) {
        loop {
            let tx = &mut self.tx;
            let mut most = tx.mss;
            let mut in_network = tx.nxt.bytes_after(tx.una);
            let used = in_network;
            if let Some(rack) = &tx.rack {
                in_network = rack.inflight();
            }
            if tx.recovery.phase() == RecoveryPhase::Loss && !tx.board.is_empty() {
                // Slow start after a time-out skips what the receiver holds (RFC 6675 §5.1).
                if let Some(held) = tx.board.range_at_or_above(tx.nxt) {
                    if held.left.at_or_before(tx.nxt) {
                        tx.nxt = held.right;
                        continue;
                    }
                    most = most.min(held.left.bytes_after(tx.nxt));
                }
                in_network -= tx.board.sacked_before(tx.nxt);
            }
            let unsent = tx.fin_seq().bytes_after(tx.nxt);
            let fin_is_due = tx.closing && tx.nxt.at_or_before(tx.fin_seq());
            if unsent == 0 && !fin_is_due {
                return;
            }
            let mut len = unsent.min(most);
            let cwnd_room = tx.sendable_cwnd(&self.config).saturating_sub(in_network);
            let wnd_room = tx.wnd.saturating_sub(used);
            if len > cwnd_room {
                return;
            }
            if len > wnd_room {
                if !tx.may_send_piece(wnd_room) {
                    return;
                }
                len = wnd_room;
            }
            let fin = fin_is_due && len == unsent && wnd_room > len;
            if len == 0 && !fin {
                return;
            }
            let is_new = tx.nxt == tx.max;
            let is_small = len < tx.mss && !fin && len == unsent;
            if is_small && is_new && tx.holds_small(self.config.nagle) {
                return;
            }
            if !tx.admits(now, len) {
                return;
            }
            let beyond_cwnd = used + len > tx.recovery.window().cwnd();
            if is_new && beyond_cwnd && tx.recovery.phase() == RecoveryPhase::Open {
                tx.limited_transmit += len;
            }
            let seq = tx.nxt;
            self.send_data(now, seq, len, fin, io);
            self.tx.nxt = seq + len + u32::from(fin);
        }
    }

    /// Fast recovery with SACK: keeps the pipe full (RFC 6675 §5, step C).
    fn transmit_by_pipe(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let rule = self.tx.loss_rule(&self.config);
        loop {
            let tx = &mut self.tx;
            let Some(point) = tx.recovery.point().mark() else { return };
            let pipe = match self.config.sack_pipe {
                SackPipe::Rfc6675 => tx.board.pipe(tx.una, tx.max, rule),
                SackPipe::FallFloyd => tx.pipe,
            };
            if tx.recovery.window().cwnd().saturating_sub(pipe) < tx.mss {
                return;
            }
            let finds_again = self.config.sack_pipe == SackPipe::Rfc6675;
            if finds_again && tx.board.retransmission_is_lost(tx.una, rule) {
                if !tx.admits(now, tx.mss) {
                    return;
                }
                self.retransmit_first(now, io);
                let (una, max) = (self.tx.una, self.tx.max);
                self.tx.board.on_first_repaired(una, max);
                continue;
            }
            let unsent = tx.end().bytes_after(tx.max);
            let new_len = tx.unsent_data().min(tx.mss);
            let fits = tx.flight() + new_len.max(1) <= tx.wnd;
            match tx.board.next_seg(tx.una, tx.max, point, rule, unsent > 0 && fits) {
                NextSeg::Retransmit { seq, end } => {
                    let len = end.bytes_after(seq).min(tx.mss);
                    if !tx.admits(now, len) {
                        return;
                    }
                    let end = self.retransmit(now, seq, end, io);
                    let (una, max) = (self.tx.una, self.tx.max);
                    self.tx.board.on_retransmit(seq, end);
                    if seq == una {
                        self.tx.board.on_first_repaired(una, max);
                    }
                }
                NextSeg::New => {
                    let fin = tx.closing && tx.max + new_len == tx.fin_seq();
                    let fin = fin && tx.flight() + new_len < tx.wnd;
                    let seq = tx.max;
                    if new_len == 0 && !fin {
                        return;
                    }
                    if !tx.admits(now, new_len) {
                        return;
                    }
                    self.send_data(now, seq, new_len, fin, io);
                    self.tx.nxt = self.tx.max;
                }
                NextSeg::None => return,
            }
        }
    }

    /// Retransmits one segment from `seq`, at most to `end`; returns its end.
    pub(super) fn retransmit(
        &mut self,
        now: Instant,
        seq: SeqNum,
        end: SeqNum,
        io: &mut Io<'_, P>,
    ) -> SeqNum {
        let fin_seq = self.tx.fin_seq();
        let len = fin_seq.earlier(end).bytes_after(seq).min(self.tx.mss);
        let fin = seq + len == fin_seq && end.after(fin_seq);
        self.send_data(now, seq, len, fin, io);
        seq + len + u32::from(fin)
    }

    /// Retransmits the first unacknowledged segment, whatever the windows say; returns its end.
    pub(super) fn retransmit_first(&mut self, now: Instant, io: &mut Io<'_, P>) -> SeqNum {
        let (una, max) = (self.tx.una, self.tx.max);
        let end = match self.tx.board.range_at_or_above(una) {
            Some(held) if held.left.after(una) => held.left,
            _ => max,
        };
        self.retransmit(now, una, end, io)
    }

    /// Sends `len` bytes from `seq` (and FIN), for the first time or again.
    pub(super) fn send_data(
        &mut self,
        now: Instant,
        seq: SeqNum,
        len: u32,
        fin: bool,
        io: &mut Io<'_, P>,
    ) {
        let tx = &mut self.tx;
        let end = seq + len + u32::from(fin);
        let overlap = tx.max.earlier(end).bytes_after(seq).min(len);
        let retransmission = overlap == len && end.at_or_before(tx.max);
        let start = seq.bytes_after(tx.buffer_start) as usize;
        let payload = tx.buffer.slice(start, len as usize);
        let mut flags = Flags::empty();
        flags.set(Flags::FIN, fin);
        flags.set(Flags::PSH, len > 0 && start + len as usize == tx.buffer.len());
        if overlap > 0 || retransmission {
            // Karn: a segment sent twice is not timed.
            if tx.timed.is_some_and(|(timed, _)| timed.after(seq)) {
                tx.timed = None;
            }
        } else if tx.timed.is_none() {
            tx.timed = Some((end, now));
        }
        if let Some(rack) = tx.rack.as_mut().filter(|_| !retransmission) {
            rack.on_sent(now, seq, end, tx.recovery.phase());
        }
        tx.max = tx.max.later(end);
        tx.pipe = tx.pipe.saturating_add(len);
        tx.last_sent = now;
        if (1..tx.mss).contains(&len) && !retransmission {
            tx.small_end = end;
        }
        if tx.rtx_deadline.is_none() {
            tx.arm_retransmission(now);
        }
        if len > 0 {
            self.stats.data_segments_sent += 1;
            self.stats.data_bytes_sent += u64::from(len);
            self.stats.segments_retransmitted += u64::from(retransmission);
            self.stats.bytes_retransmitted += u64::from(overlap);
            io.events.emit(now, || Event::SegmentSent { seq, len, retransmission });
        }
        let is_capable = self.tx.ecn_ok && len > 0 && overlap == 0;
        if is_capable {
            flags.set(Flags::CWR, std::mem::take(&mut self.tx.tell_reduced));
        }
        self.send(now, seq, flags, payload, io);
        // RFC 3168 §6.1.5: retransmissions are not ECN-capable.
        if let Some(segment) = io.out.last_mut().filter(|_| is_capable) {
            segment.ecn = self.tx.recovery.codepoint();
        }
    }

    /// Notes how much of cwnd is used (RFC 7661 §4.2).
    fn validate_cwnd(&mut self, now: Instant) {
        let tx = &mut self.tx;
        let inflight = match &tx.rack {
            Some(rack) => rack.inflight(),
            None => tx.nxt.bytes_after(tx.una),
        };
        tx.recovery.note_usage(now, tx.rto.rto(), inflight, (tx.una, tx.max));
    }

    /// Restarts from the restart window after an idle RTO: the ACK clock is lost (RFC 5681 §4.1).
    fn restart_after_idle(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let tx = &mut self.tx;
        let idle =
            tx.una == tx.max && tx.persist.is_none() && now.since(tx.last_sent) > tx.rto.rto();
        if self.config.slow_start_after_idle && idle && tx.nxt.before(tx.end()) {
            let before = tx.recovery.window().cwnd();
            match self.config.cwnd_validation {
                // As in Linux, an algorithm that owns cwnd handles idle times itself.
                CwndValidation::Decay if tx.recovery.owns_recovery() => {}
                CwndValidation::Decay => {
                    tx.recovery.decay_after_idle(now.since(tx.last_sent), tx.rto.rto());
                }
                CwndValidation::Off | CwndValidation::Growth => {
                    tx.recovery.on_restart(Restart::Idle);
                }
            }
            tx.last_sent = now;
            if tx.recovery.window().cwnd() != before {
                self.publish_window(now, io);
            }
        }
    }

    /// Enters persist if nothing is outstanding and the window has no room for the data to send:
    /// only a probe can find out when it opens (RFC 9293 §3.8.6.1). With data outstanding under a
    /// closed window, the configured rule decides.
    fn enter_persist_if_stalled(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let tx = &mut self.tx;
        if tx.persist.is_some() {
            return;
        }
        // RACK never goes back: it keeps its timer, as Linux does.
        let closed_on_outstanding = tx.wnd == 0 && tx.una != tx.max && tx.rack.is_none();
        if closed_on_outstanding && self.config.persist.on_shrink == PersistOnShrink::Bsd {
            // 4.4BSD tcp_output: cancel the timer, forget the back-off, pull SND.NXT back.
            tx.nxt = tx.una;
            tx.rtx_deadline = None;
            tx.expiries = 0;
            tx.timed = None;
            // Everything is sent again. An undo would go on with new data and leave it without a
            // timer.
            tx.spurious.give_up();
            if tx.sack_ok && tx.recovery.phase() == RecoveryPhase::Recovery {
                tx.recovery.go_back();
            }
        }
        let is_stalled = tx.rtx_deadline.is_none() && tx.pacing.deadline.is_none();
        if is_stalled && tx.nxt.before(tx.end()) {
            let interval = self.config.persist.initial.unwrap_or_else(|| tx.rto.rto());
            let deadline = tx.due(now, interval);
            tx.first_expiry = deadline;
            tx.persist = Some(Persist { deadline, interval, unanswered: 0 });
            io.events.emit(now, || Event::Persist { active: true });
        }
    }

    pub(super) fn leave_persist(&mut self, now: Instant, io: &mut Io<'_, P>) {
        self.tx.persist = None;
        // Time spent in persist is not idleness: cwnd survives it (as in Linux; packetdrill's
        // slow_start-after-win-update).
        self.tx.last_sent = now;
        io.events.emit(now, || Event::Persist { active: false });
    }

    /// Sends a window probe: one byte beyond the window, or what room there is, or the FIN. SND.NXT
    /// stays, so that the byte is sent again with its segment.
    pub(super) fn send_probe(&mut self, now: Instant, io: &mut Io<'_, P>) {
        if self.tx.rack.is_some() {
            return self.send_window_probe(now, io);
        }
        let tx = &mut self.tx;
        let waiting = tx.fin_seq().bytes_after(tx.nxt);
        let room = tx.wnd.saturating_sub(tx.nxt.bytes_after(tx.una)).max(1);
        let len = waiting.min(room).min(tx.mss);
        let seq = tx.nxt;
        let fin = len == 0;
        let start = seq.bytes_after(tx.buffer_start) as usize;
        let payload = tx.buffer.slice(start, len as usize);
        tx.max = tx.max.later(seq + len + u32::from(fin));
        self.stats.window_probes += 1;
        io.events.emit(now, || Event::WindowProbe);
        let flags = if fin { Flags::FIN } else { Flags::empty() };
        self.send(now, seq, flags, payload, io);
    }

    pub(super) fn publish_window(&self, now: Instant, io: &mut Io<'_, P>) {
        let (cwnd, ssthresh) = (self.cwnd(), self.ssthresh());
        let flight = self.tx.flight();
        io.events.emit(now, || Event::Window { cwnd, ssthresh, flight });
    }

    /// Window that a loss detected now halves, bytes. Segments sent by Limited Transmit are not
    /// part of FlightSize here (RFC 5681 §3.2 step 2). At a time-out, cwnd is an upper bound: after
    /// a long recovery, FlightSize may be several windows with what the receiver holds already.
    pub(super) fn loss_window(&self, at_timeout: bool) -> u32 {
        match self.config.loss_window {
            LossWindow::FlightSize => {
                let tx = &self.tx;
                let flight = tx.flight().saturating_sub(tx.limited_transmit);
                if at_timeout && !tx.board.is_empty() { flight.min(self.cwnd()) } else { flight }
            }
            LossWindow::SendWindow => self.cwnd().min(self.tx.wnd),
            LossWindow::Cwnd => self.cwnd(),
        }
    }
}
