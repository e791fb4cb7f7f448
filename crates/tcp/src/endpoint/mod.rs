//! One end of a TCP connection, without I/O.
//!
//! Read first: RFC 9293 §3 (the state machine), RFC 5681, 6582, 6675 (congestion control and
//! recovery), RFC 6298 (the timer), RFC 7323 (timestamps, window scaling).
//!
//! How one segment travels: [`Endpoint::on_segment`] dispatches by state. `handshake.rs` opens the
//! connection. In the synchronised states `receive.rs` checks the segment and takes its data; its
//! acknowledgement goes to `acknowledge.rs`, which moves SND.UNA, feeds the RTT estimator, the
//! spurious retransmission detector and the congestion control, and enters or leaves recovery; then
//! `transmit.rs` sends what the windows and the pacing rate allow, and what is left is a pure ACK
//! if one is due. `timers.rs` handles the expiries, `mobility.rs` the signals of a mobile host's
//! radio, `standby.rs` broken routes; `accecn.rs` ECN feedback (RFC 9768). The caller
//! passes in time, segments, signals and application calls, and sends what lands in [`Io::out`].

mod accecn;
mod acknowledge;
mod autotuning;
mod handshake;
mod inspect;
mod limit;
mod mobility;
mod rack;
mod receive;
mod spurious;
mod standby;
mod timers;
mod transmit;

pub use accecn::EcnCounts;

use crate::accecn::AccEcn;
use crate::ack::Departure;
use crate::config::{AccEcnOptions, TcpConfig, window_bytes};
use crate::rto::{Estimate, RttSamples};
use crate::strategies::Strategies;
use airtcp_core::event::AbortReason;
use airtcp_core::{
    Addr, Duration, Ecn, Event, Events, Flags, Flow, Instant, Options, Payload, Segment, SeqNum,
};
pub use limit::{Limit, Limits};
use receive::{Receiver, Reply};
use std::ops::AddAssign;
use std::sync::Arc;
use transmit::Sender;

/// Outputs of a call to an endpoint.
pub struct Io<'a, P> {
    /// Segments to transmit, in order; the endpoint only appends.
    pub out: &'a mut Vec<Segment<P>>,
    /// Subscriber to the endpoint's events.
    pub events: Events<'a>,
}

/// State of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// No connection exists.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent; waiting for the peer's.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open: both sides may send data.
    Established,
    /// We closed first; FIN not yet acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer still sends.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at once.
    Closing,
    /// The peer closed first, and our FIN awaits its ACK.
    LastAck,
    /// Waiting for old duplicates to die.
    TimeWait,
}

/// Counters since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent that carry data, window probes apart.
    pub data_segments_sent: u64,
    /// Payload bytes sent, retransmissions included, window probes apart.
    pub data_bytes_sent: u64,
    /// Data segments with nothing but bytes sent before.
    pub segments_retransmitted: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Segments sent that only acknowledge (window updates and duplicate ACKs included).
    pub acks_sent: u64,
    /// Duplicate ACKs received (RFC 5681 §2; with SACK RFC 6675 §2).
    pub duplicate_acks_received: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Time-outs after exactly one or two duplicate ACKs for the oldest segment.
    pub timeouts_after_duplicates: u64,
    /// Time-outs after which a rule of the congestion control, in force or not, starts from more
    /// than one segment (TCP Karak).
    pub larger_restarts: u64,
    /// Fast retransmits performed.
    pub fast_retransmits: u64,
    /// Time-outs and fast retransmits that made cwnd smaller.
    pub cwnd_reductions: u64,
    /// Spurious retransmissions detected and undone (Eifel, F-RTO).
    pub spurious_detected: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Tail loss probes sent (RFC 8985 §7); those that carry old data are retransmissions, too.
    pub tail_loss_probes: u64,
    /// Bytes of our data that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_delivered: u64,
    /// Data segments received.
    pub data_segments_received: u64,
    /// Data segments received that held nothing new (needless retransmissions).
    pub duplicate_segments_received: u64,
}

impl AddAssign<&Self> for Stats {
    fn add_assign(&mut self, other: &Self) {
        let Stats {
            data_segments_sent,
            data_bytes_sent,
            segments_retransmitted,
            bytes_retransmitted,
            acks_sent,
            duplicate_acks_received,
            timeouts,
            timeouts_after_duplicates,
            larger_restarts,
            fast_retransmits,
            cwnd_reductions,
            spurious_detected,
            window_probes,
            tail_loss_probes,
            bytes_acked,
            bytes_delivered,
            data_segments_received,
            duplicate_segments_received,
        } = other;
        self.data_segments_sent += data_segments_sent;
        self.data_bytes_sent += data_bytes_sent;
        self.segments_retransmitted += segments_retransmitted;
        self.bytes_retransmitted += bytes_retransmitted;
        self.acks_sent += acks_sent;
        self.duplicate_acks_received += duplicate_acks_received;
        self.timeouts += timeouts;
        self.timeouts_after_duplicates += timeouts_after_duplicates;
        self.larger_restarts += larger_restarts;
        self.fast_retransmits += fast_retransmits;
        self.cwnd_reductions += cwnd_reductions;
        self.spurious_detected += spurious_detected;
        self.window_probes += window_probes;
        self.tail_loss_probes += tail_loss_probes;
        self.bytes_acked += bytes_acked;
        self.bytes_delivered += bytes_delivered;
        self.data_segments_received += data_segments_received;
        self.duplicate_segments_received += duplicate_segments_received;
    }
}

/// One end of a TCP connection: a state machine driven by segments, timers and application calls.
#[derive(Debug)]
pub struct Endpoint<P> {
    /// Shared: in a simulation many endpoints have the same configuration.
    config: Arc<TcpConfig>,
    flow: Flow,
    state: TcpState,
    tx: Sender<P>,
    rx: Receiver<P>,
    /// Timestamps were negotiated (RFC 7323 §3.2).
    timestamps: bool,
    /// AccECN was negotiated.
    accecn: Option<Box<AccEcn>>,
    accecn_option: AccEcnOptions,
    time_wait: Option<Instant>,
    aborted: Option<AbortReason>,
    reply: Reply,
    stats: Stats,
}

impl<P: Payload> Endpoint<P> {
    /// Creates a closed endpoint. `flow.src` is the local address, `isn` our initial sequence
    /// number (drawn from a named random stream, so that wraparound happens in ordinary runs).
    pub fn new(config: impl Into<Arc<TcpConfig>>, flow: Flow, isn: SeqNum) -> Self {
        let config = config.into();
        let strategies = Strategies::new(&config);
        Self::with_strategies(config, flow, isn, strategies)
    }

    /// Creates a closed endpoint with strategies of the caller's choice instead of those that
    /// `config` selects.
    pub fn with_strategies(
        config: impl Into<Arc<TcpConfig>>,
        flow: Flow,
        isn: SeqNum,
        strategies: Strategies,
    ) -> Self {
        let config = config.into();
        let Strategies { congestion, rto, ack, route } = strategies;
        Self {
            tx: Sender::new(&config, isn, congestion, rto, route),
            rx: Receiver::new(&config, ack),
            accecn_option: config.accecn_option,
            config,
            flow,
            state: TcpState::Closed,
            timestamps: false,
            accecn: None,
            time_wait: None,
            aborted: None,
            reply: Reply::None,
            stats: Stats::default(),
        }
    }

    /// Sets the host's uptime at the start of time, at most [`MAX_UPTIME`](crate::rto::MAX_UPTIME),
    /// which fixes the phase of its timer ticks, if it has any. Call before the connection opens.
    pub fn set_uptime(&mut self, uptime: Duration) {
        self.tx.wheel = self.config.timer_wheel(uptime);
    }

    /// Active open: sends SYN. Does nothing unless closed and never opened.
    pub fn connect(&mut self, now: Instant, io: &mut Io<'_, P>) {
        if self.state == TcpState::Closed && self.tx.is_fresh() {
            self.state = TcpState::SynSent;
            self.send_syn(now, io);
        }
    }

    /// Passive open: waits for a SYN.
    pub fn listen(&mut self) {
        if self.state == TcpState::Closed && self.tx.is_fresh() {
            self.state = TcpState::Listen;
        }
    }

    /// Queues data for sending; returns how many bytes (a prefix) the send buffer took.
    pub fn write(&mut self, now: Instant, data: &P, io: &mut Io<'_, P>) -> usize {
        let taken = data.len().min(self.send_space());
        // While a full segment waits for the windows or for its pace, more data changes nothing.
        let waits = self.tx.unsent_data() >= self.tx.mss && self.tx.persist.is_none();
        if taken > 0 {
            self.note_application();
        }
        if taken == data.len() {
            self.tx.buffer.append(data);
        } else if taken > 0 {
            self.tx.buffer.append(&data.slice(0, taken));
        }
        self.tx.buffer_was_full = self.send_space() < self.tx.mss as usize;
        if taken > 0 && !waits {
            self.transmit(now, io);
        }
        taken
    }

    /// Free bytes in the send buffer; 0 before connect or listen and after close.
    pub fn send_space(&self) -> usize {
        let open = matches!(
            self.state,
            TcpState::Listen
                | TcpState::SynSent
                | TcpState::SynReceived
                | TcpState::Established
                | TcpState::CloseWait
        );
        if open && !self.tx.closing {
            (self.config.send_buffer.get() as usize).saturating_sub(self.tx.buffer.len())
        } else {
            0
        }
    }

    /// In-order bytes waiting for the application.
    pub fn readable(&self) -> usize {
        self.rx.readable.len()
    }

    /// Takes up to `max` in-order bytes. Sends a window update when that opens the window by a full
    /// segment or half the buffer (RFC 9293 §3.8.6.2.2).
    pub fn read(&mut self, now: Instant, max: usize, io: &mut Io<'_, P>) -> P {
        let len = max.min(self.rx.readable.len());
        let data = self.rx.readable.slice(0, len);
        self.rx.readable.drop_front(len);
        if len > 0 {
            self.rx.tune_on_read(now, window_bytes(self.config.receive_buffer));
        }
        let reply_follows = self.reply != Reply::None;
        if len > 0 && !reply_follows && self.is_synchronised() && self.rx.window_update_is_due() {
            self.send_ack(now, io);
        }
        data
    }

    /// Replaces [`TcpConfig::user_timeout`](crate::TcpConfig::user_timeout) from the next expiry of
    /// a timer on (RFC 9293 §3.9.1.1: the timeout of a connection can be changed).
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.tx.user_timeout = timeout.unwrap_or(Duration::MAX);
    }

    /// Ends our side of the stream (half close): a FIN follows the queued data.
    pub fn close(&mut self, now: Instant, io: &mut Io<'_, P>) {
        match self.state {
            TcpState::Listen | TcpState::SynSent => self.enter_closed(),
            TcpState::SynReceived | TcpState::Established => {
                self.start_closing(now, TcpState::FinWait1, io)
            }
            TcpState::CloseWait => self.start_closing(now, TcpState::LastAck, io),
            _ => {}
        }
    }

    fn start_closing(&mut self, now: Instant, next: TcpState, io: &mut Io<'_, P>) {
        self.tx.closing = true;
        // In SYN-RECEIVED the FIN waits for the handshake to end.
        if self.state != TcpState::SynReceived {
            self.state = next;
            self.transmit(now, io);
        }
    }

    /// Aborts the connection with a RST to the peer.
    pub fn abort(&mut self, now: Instant, io: &mut Io<'_, P>) {
        if self.is_synchronised() && self.state != TcpState::TimeWait {
            let seq = self.tx.max;
            self.send(now, seq, Flags::RST, P::default(), io);
        }
        self.enter_aborted(now, AbortReason::User, io);
    }

    /// Processes a segment of this flow. Let the application read and write, then call
    /// [`Endpoint::reply`]: the acknowledgement then shows the window that the application leaves,
    /// and may travel with its data.
    #[inline]
    pub fn on_segment(&mut self, now: Instant, segment: Segment<P>, io: &mut Io<'_, P>) {
        self.on_segment_over(now, &segment, None, io);
    }

    /// [`Endpoint::on_segment`] with the number of hops that the segment travelled, for strategies
    /// that depend on the path's length. A simulator knows it; a host infers it from the TTL.
    #[inline]
    pub fn on_segment_over(
        &mut self,
        now: Instant,
        segment: &Segment<P>,
        hops: Option<u8>,
        io: &mut Io<'_, P>,
    ) {
        self.rx.hops = hops;
        let reply = match self.state {
            TcpState::Closed => self.refuse(segment, io),
            TcpState::Listen => self.on_segment_in_listen(now, segment, io),
            TcpState::SynSent => self.on_segment_in_syn_sent(now, segment, io),
            _ => self.on_segment_synchronised(now, segment, io),
        };
        self.reply = self.reply.max(reply);
        if !self.sends_data() {
            self.note_limit(now);
        }
    }

    /// Sends the acknowledgement that the last segment asked for, if it is still owed. Call after
    /// every [`Endpoint::on_segment`].
    pub fn reply(&mut self, now: Instant, io: &mut Io<'_, P>) {
        match std::mem::replace(&mut self.reply, Reply::None) {
            Reply::PureAck => self.send_ack(now, io),
            Reply::Ack if self.rx.ack_is_owed() => self.send_ack(now, io),
            Reply::Ack | Reply::None => {}
        }
    }

    /// State of the connection (RFC 9293 §3.3.2).
    pub fn state(&self) -> TcpState {
        self.state
    }

    /// Reason for the abort, if the connection was aborted.
    pub fn aborted(&self) -> Option<AbortReason> {
        self.aborted
    }

    /// True once the peer has sent FIN and everything before it has been read.
    pub fn is_eof(&self) -> bool {
        self.rx.fin_taken && self.rx.readable.is_empty()
    }

    /// True once everything written, and our FIN if we closed, is acknowledged.
    pub fn is_all_acked(&self) -> bool {
        self.tx.una == self.tx.end() && self.tx.buffer.is_empty()
    }

    /// Counters since the start of the connection.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> u32 {
        self.tx.recovery.window().cwnd()
    }

    /// Slow-start threshold, bytes; `u32::MAX` before the first reduction.
    pub fn ssthresh(&self) -> u32 {
        self.tx.recovery.window().ssthresh()
    }

    /// The window the peer advertised last, bytes.
    pub fn send_window(&self) -> u32 {
        self.tx.wnd
    }

    /// FlightSize: bytes of sequence space sent and not acknowledged.
    pub fn flight(&self) -> u32 {
        self.tx.flight()
    }

    /// The retransmission time-out in force.
    pub fn rto(&self) -> airtcp_core::Duration {
        self.tx.rto.rto()
    }

    /// The RTT estimate, once there is one.
    pub fn rtt(&self) -> Option<Estimate> {
        self.tx.rto.estimate()
    }

    /// All RTT samples so far.
    pub fn rtt_samples(&self) -> &RttSamples {
        self.tx.rto.samples()
    }

    /// True in standby: the route to the peer is broken ([`Endpoint::on_route_failure`]).
    pub fn is_standing_by(&self) -> bool {
        self.tx.standby
    }

    /// True in persist: waiting for a closed window to open (RFC 9293 §3.8.6.1).
    pub fn is_persisting(&self) -> bool {
        self.tx.persist.is_some()
    }

    /// Local and remote address.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// True past the handshake, TIME-WAIT included.
    fn is_synchronised(&self) -> bool {
        !matches!(
            self.state,
            TcpState::Closed | TcpState::Listen | TcpState::SynSent | TcpState::SynReceived
        )
    }

    fn enter_aborted(&mut self, now: Instant, reason: AbortReason, io: &mut Io<'_, P>) {
        if self.state == TcpState::Closed {
            return;
        }
        self.aborted = Some(reason);
        io.events.emit(now, || Event::Aborted { reason });
        self.enter_closed();
    }

    /// Stops every timer; counters and received data stay readable.
    fn enter_closed(&mut self) {
        self.state = TcpState::Closed;
        self.time_wait = None;
        self.tx.stop_timers();
        self.rx.policy.stop();
    }

    /// Sends a segment with the acknowledgement, window and options that every segment carries.
    fn send(&mut self, now: Instant, seq: SeqNum, flags: Flags, payload: P, io: &mut Io<'_, P>) {
        let answers = self.state != TcpState::SynSent;
        let len = payload.len() as u32;
        // Written in its place: copying a segment costs more than all else here.
        io.out.push(Segment {
            flow: self.flow,
            seq,
            ack: answers.then_some(self.rx.nxt),
            window: self.rx.window_field(),
            flags,
            ecn: Ecn::NotEct,
            options: Options::NONE,
            payload,
        });
        let Some(segment) = io.out.last_mut() else { return };
        segment.flags.set(Flags::ECE, answers && self.rx.echoes_mark);
        if self.timestamps {
            segment.options.timestamps = Some(self.stamp(now));
        }
        let answers_acks =
            self.accecn.as_mut().is_some_and(|accecn| std::mem::take(&mut accecn.answers_acks));
        if self.tx.sack_ok && !answers_acks {
            segment.options.sack = self.rx.sack_blocks(if self.timestamps { 3 } else { 4 });
        }
        if let Some(accecn) = &mut self.accecn {
            let pure = len == 0 && segment.options.sack.is_empty();
            segment.flags |= accecn.flags(pure);
            // Only RACK answers marks.
            if accecn.is_capable() && self.tx.rack.is_some() {
                segment.ecn = self.tx.recovery.codepoint();
            }
            let rtt = self.tx.rto.estimate().map(|e| e.srtt);
            accecn.add_option(self.accecn_option, now, rtt, &mut segment.options);
        }
        self.rx.on_ack_sent(&mut Departure {
            now,
            len,
            cwnd: self.tx.recovery.window().cwnd(),
            after_fin: self.rx.fin_taken,
            window: &mut segment.window,
            options: &mut segment.options,
        });
    }

    /// Sends a segment that only acknowledges.
    fn send_ack(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let seq = self.tx.ack_seq();
        self.send(now, seq, Flags::empty(), P::default(), io);
        self.stats.acks_sent += 1;
    }

    /// Answers a segment that belongs to no connection of ours with RST, unless it is a RST itself
    /// (RFC 9293 §3.5.2).
    fn refuse(&self, segment: &Segment<P>, io: &mut Io<'_, P>) -> Reply {
        if !segment.flags.contains(Flags::RST) {
            io.out.push(Segment {
                flow: segment.flow.reversed(),
                seq: segment.ack.unwrap_or(SeqNum(0)),
                ack: segment.ack.is_none().then(|| segment.seq_end()),
                flags: Flags::RST,
                ..Segment::default()
            });
        }
        Reply::None
    }

    /// Takes the peer's address from a SYN received in LISTEN.
    fn adopt_peer(&mut self, peer: Addr) {
        self.flow.dst = peer;
    }
}
