//! Opening a connection: SYN, SYN-ACK and the options they negotiate (RFC 9293 §3.10.7, RFC 7323,
//! RFC 2018).

use super::receive::Reply;
use super::{Endpoint, Io, TcpState};
use crate::config::TIMESTAMPS_LEN;
use airtcp_core::event::AbortReason;
use airtcp_core::{Ecn, Event, Flags, Instant, Options, Payload, Segment, Timestamps};

/// MSS assumed if the peer's SYN has no MSS option (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Largest window scale shift (RFC 7323 §2.3).
const LARGEST_SHIFT: u8 = 14;

impl<P: Payload> Endpoint<P> {
    /// Sends our SYN, or SYN-ACK in SYN-RECEIVED, for the first time or again.
    pub(super) fn send_syn(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let reply = self.state == TcpState::SynReceived;
        let mut options = Options {
            mss: Some(self.config.announced_mss()),
            window_scale: (self.config.window_scaling && (!reply || self.tx.scaling))
                .then_some(self.rx.shift_offered),
            sack_permitted: self.config.recovery.needs_sack() && (!reply || self.tx.sack_ok),
            timestamps: (self.config.timestamps && (!reply || self.timestamps))
                .then(|| self.stamp(now)),
            ..Options::default()
        };
        let ecn = if reply { self.accept_ecn(&mut options) } else { self.offered_ecn() };
        let syn = Segment {
            flow: self.flow,
            seq: self.tx.iss,
            ack: reply.then_some(self.rx.nxt),
            // The window of a SYN is never scaled (RFC 7323 §2.2).
            window: self.rx.unscaled_window(),
            flags: Flags::SYN | ecn,
            ecn: Ecn::NotEct,
            options,
            payload: P::default(),
        };
        let is_first = self.tx.is_fresh();
        self.tx.nxt = self.tx.iss + 1;
        self.tx.max = self.tx.nxt;
        self.tx.arm_retransmission(now);
        self.tx.timed = is_first.then_some((self.tx.nxt, now));
        if is_first {
            self.tx.syn_stamp = self.clock(now);
        }
        io.out.push(syn);
    }

    /// Our timestamp: milliseconds, offset by the ISN so that it wraps in ordinary runs.
    pub(super) fn stamp(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.clock(now), echo: self.rx.ts_recent }
    }

    pub(super) fn clock(&self, now: Instant) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.tx.iss.0.rotate_left(7))
    }

    pub(super) fn on_segment_in_listen(
        &mut self,
        now: Instant,
        segment: &Segment<P>,
        io: &mut Io<'_, P>,
    ) -> Reply {
        if segment.ack.is_some() {
            return self.refuse(segment, io);
        }
        if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::RST) {
            self.adopt_peer(segment.flow.src);
            self.take_syn(segment);
            self.state = TcpState::SynReceived;
            self.send_syn(now, io);
        }
        Reply::None
    }

    pub(super) fn on_segment_in_syn_sent(
        &mut self,
        now: Instant,
        segment: &Segment<P>,
        io: &mut Io<'_, P>,
    ) -> Reply {
        // RFC 9293 §3.10.7.3: an acknowledgement of anything but our SYN is not of this connection.
        if segment.ack.is_some_and(|ack| ack != self.tx.nxt) {
            return self.refuse(segment, io);
        }
        if segment.flags.contains(Flags::RST) {
            if segment.ack.is_some() {
                self.enter_aborted(now, AbortReason::Reset, io);
            }
            return Reply::None;
        }
        if !segment.flags.contains(Flags::SYN) {
            return Reply::None;
        }
        self.take_syn(segment);
        if segment.ack.is_none() {
            // Simultaneous open (RFC 9293 §3.5, figure 8).
            self.state = TcpState::SynReceived;
            self.send_syn(now, io);
            return Reply::None;
        }
        self.establish(now, segment, io);
        if self.accecn.is_some() {
            // The server learns from a pure ACK how its SYN/ACK arrived (RFC 9768 §3.2.2.1).
            self.send_ack(now, io);
            self.transmit(now, io);
            return Reply::None;
        }
        self.rx.owe_ack();
        self.transmit(now, io);
        Reply::Ack
    }

    /// Takes the peer's initial sequence number and options.
    fn take_syn(&mut self, syn: &Segment<P>) {
        self.rx.start_at(syn.seq + 1);
        self.timestamps = self.config.timestamps && syn.options.timestamps.is_some();
        if let Some(Timestamps { value, .. }) = syn.options.timestamps {
            self.rx.ts_recent = value;
        }
        let shift = syn.options.window_scale.filter(|_| self.config.window_scaling);
        self.negotiate_ecn(syn);
        self.tx.scaling = shift.is_some();
        self.rx.enable_scaling(self.tx.scaling);
        self.tx.shift = shift.unwrap_or(0).min(LARGEST_SHIFT);
        self.tx.sack_ok = self.config.recovery.needs_sack() && syn.options.sack_permitted;
        // The MSS is announced without options, which take their room from the payload (RFC 6691).
        let options = if self.timestamps { TIMESTAMPS_LEN } else { 0 };
        let peer_mss = syn.options.mss.unwrap_or(DEFAULT_MSS).min(self.config.announced_mss());
        let mss = u32::from(peer_mss.saturating_sub(options).max(1));
        self.tx.set_mss(&self.config, mss);
        self.rx.peer_mss = mss;
        self.tx.wnd = u32::from(syn.window);
        self.tx.max_wnd = self.tx.wnd;
        self.tx.wl1 = syn.seq;
        self.tx.wl2 = syn.ack.unwrap_or(self.tx.iss);
    }

    /// True if the echo is of our first SYN: it was late, not lost (Linux:
    /// `tcp_try_undo_spurious_syn`).
    fn answers_first_syn(&self, segment: &Segment<P>) -> bool {
        let echo = segment.options.timestamps.filter(|_| self.timestamps).map(|stamps| stamps.echo);
        self.config.recovery.is_rack() && echo == Some(self.tx.syn_stamp)
    }

    /// Enters ESTABLISHED: our SYN is acknowledged.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment<P>, io: &mut Io<'_, P>) {
        let syn_was_lost = self.tx.expiries > 0;
        if let Some(sample) = self.rtt_sample(now, segment, self.tx.iss + 1) {
            self.tx.rto.sample(sample, self.tx.iss + 1, self.tx.max);
            self.publish_rtt(now, sample, io);
        } else if syn_was_lost {
            self.tx.rto.restart_after_syn_loss();
        }
        if self.tx.expiries > self.config.syn_losses && !self.answers_first_syn(segment) {
            self.tx.recovery.on_syn_loss();
        }
        self.tx.una = self.tx.iss + 1;
        self.start_rack(now);
        let srtt = self.tx.rto.estimate().map(|e| e.srtt);
        self.tx.recovery.on_established(now, srtt);
        self.tx.expiries = 0;
        self.tx.rtx_deadline = None;
        self.tx.last_sent = now;
        self.state = if self.tx.closing { TcpState::FinWait1 } else { TcpState::Established };
        io.events.emit(now, || Event::Established);
    }
}
