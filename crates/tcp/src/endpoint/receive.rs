//! The receiving half: acceptance, reassembly, the advertised window, FIN and RST (RFC 9293
//! §3.10.7.4).

use super::autotuning::Autotuning;
use super::{Endpoint, Io, TcpState};
use crate::ack::{AckPolicy, Arrival, Decision, Departure, Order};
use crate::config::{EcnConfig, FIRST_WINDOW, TcpConfig, window_bytes};
use airtcp_core::Bytes;
use airtcp_core::event::AbortReason;
use airtcp_core::{
    Duration, Ecn, Event, Flags, Instant, Payload, SackBlock, SackBlocks, Segment, SeqNum,
};

/// Least time between two answers to unacceptable segments without data.
const EMPTY_ANSWERS: Duration = Duration::from_millis(500);

/// The reply that a received segment requires once everything else is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reply {
    /// No reply is due.
    None,
    /// An acknowledgement, unless data that left meanwhile carried it.
    Ack,
    /// An acknowledgement of its own: a duplicate ACK must carry no data to count as one.
    PureAck,
}

/// Received data above a gap.
#[derive(Debug)]
struct Island<P> {
    left: SeqNum,
    data: P,
    /// Arrival count when it last grew: SACK reports the most recent island first.
    touched: u64,
}

impl<P: Payload> Island<P> {
    fn right(&self) -> SeqNum {
        self.left + self.data.len() as u32
    }
}

/// State of the receiving half.
#[derive(Debug)]
pub(super) struct Receiver<P> {
    /// RCV.NXT: next sequence number expected.
    pub(super) nxt: SeqNum,
    /// Right edge of the window advertised so far; never moves left.
    edge: SeqNum,
    /// Current size of the buffer, bytes.
    capacity: u32,
    tuning: Option<Box<Autotuning>>,
    /// When the connection was established.
    pub(super) established: Instant,
    mss: u16,
    /// Largest segment that the peer sends, bytes.
    pub(super) peer_mss: u32,
    /// Shift we offer in our SYN; in force once negotiated.
    pub(super) shift_offered: u8,
    shift: u8,
    pub(super) readable: P,
    /// Ascending, disjoint, not adjacent.
    islands: Vec<Island<P>>,
    arrivals: u64,
    fin: Option<SeqNum>,
    pub(super) fin_taken: bool,
    pub(super) policy: Box<dyn AckPolicy>,
    /// Answer of [`AckPolicy::data_tells_window`].
    pub(super) data_tells_window: bool,
    owed: bool,
    /// Time of the last answer to an unacceptable segment without data.
    empty_answered: Option<Instant>,
    /// Data received twice, for the next SACK option to report (RFC 2883).
    pub(super) duplicate: Option<SackBlock>,
    /// ACKs echo a congestion mark (RFC 3168 §6.1.3; RFC 8257 §3.2).
    pub(super) echoes_mark: bool,
    /// Every segment advertises a closed window (Freeze-TCP).
    pub(super) frozen: bool,
    /// TS.Recent and Last.ACK.sent (RFC 7323 §4.3).
    pub(super) ts_recent: u32,
    last_ack_sent: SeqNum,
    /// TSecr of the last data segment: another one with the same TSecr gives no RTT sample.
    ts_echoed: Option<u32>,
    /// Hops that the current segment travelled.
    pub(super) hops: Option<u8>,
}

impl<P: Payload> Receiver<P> {
    pub(super) fn new(config: &TcpConfig, policy: Box<dyn AckPolicy>) -> Self {
        let most = window_bytes(config.receive_buffer);
        let shift_offered = (0..14).find(|s| most >> s <= 0xffff).unwrap_or(14);
        let capacity = if config.autotunes() { window_bytes(FIRST_WINDOW) } else { most };
        Self {
            nxt: SeqNum(0),
            edge: SeqNum(0),
            capacity,
            tuning: None,
            established: Instant::ZERO,
            mss: config.mss,
            peer_mss: u32::from(config.mss),
            shift_offered,
            shift: 0,
            readable: P::default(),
            islands: Vec::new(),
            arrivals: 0,
            fin: None,
            fin_taken: false,
            data_tells_window: policy.data_tells_window(),
            policy,
            owed: false,
            empty_answered: None,
            duplicate: None,
            echoes_mark: false,
            frozen: false,
            ts_recent: 0,
            last_ack_sent: SeqNum(0),
            ts_echoed: None,
            hops: None,
        }
    }

    pub(super) fn start_at(&mut self, seq: SeqNum) {
        self.nxt = seq;
        self.edge = seq + u32::from(self.unscaled_window());
        self.last_ack_sent = seq;
    }

    pub(super) fn enable_scaling(&mut self, on: bool) {
        self.shift = if on { self.shift_offered } else { 0 };
    }

    fn mss(&self) -> u32 {
        self.mss.into()
    }

    fn free(&self) -> u32 {
        self.capacity.saturating_sub(self.readable.len() as u32)
    }

    /// Largest possible window, with nothing to read.
    fn largest_window(&self) -> u32 {
        self.tuning.as_ref().map_or(self.capacity, |tuning| tuning.window())
    }

    pub(super) fn unscaled_window(&self) -> u16 {
        self.free().min(0xffff) as u16
    }

    /// RCV.WND: bytes left of the advertised window.
    fn wnd(&self) -> u32 {
        self.edge.bytes_after(self.nxt)
    }

    /// Receiver's silly-window avoidance (RFC 9293 §3.8.6.2.2): the right edge moves by at least a
    /// segment or half the buffer.
    fn next_edge(&self) -> SeqNum {
        let most = 0xffff_u32 << self.shift;
        let edge = self.nxt + self.free().min(self.largest_window()).min(most);
        if edge.bytes_after(self.edge) >= self.mss().min(self.capacity / 2).max(1) {
            edge
        } else {
            self.edge
        }
    }

    pub(super) fn window_update_is_due(&self) -> bool {
        // Worth a segment of its own only when the peer may be waiting for it. Otherwise the next
        // acknowledgement carries it.
        let gain = self.next_edge().bytes_after(self.edge);
        !self.frozen
            && self.wnd() <= self.largest_window() / 2
            && gain >= (2 * self.mss()).min(self.capacity / 2).max(1)
    }

    /// Window field of a segment; moves the edge. A frozen window stays open as far as it was
    /// promised.
    pub(super) fn window_field(&mut self) -> u16 {
        if self.frozen {
            return 0;
        }
        self.edge = self.next_edge();
        (self.wnd() >> self.shift).min(0xffff) as u16
    }

    /// Limits answers to unacceptable segments without data to two per second. Two hosts that find
    /// each other's ACKs unacceptable would otherwise answer each other forever, and a network that
    /// duplicates packets would multiply the answers (Linux: `tcp_invalid_ratelimit`).
    fn may_answer_empty(&mut self, now: Instant) -> bool {
        let limited = self.empty_answered.is_some_and(|at| now.since(at) < EMPTY_ANSWERS);
        if !limited {
            self.empty_answered = Some(now);
        }
        !limited
    }

    pub(super) fn owe_ack(&mut self) {
        self.owed = true;
    }

    pub(super) fn ack_is_owed(&self) -> bool {
        self.owed
    }

    pub(super) fn on_ack_sent(&mut self, departure: &mut Departure<'_>) {
        self.owed = false;
        self.last_ack_sent = self.nxt;
        self.policy.on_ack_sent(departure);
    }

    /// Up to `most` blocks: a duplicate first (RFC 2883 §4), then the most recently touched island
    /// (RFC 2018 §4).
    pub(super) fn sack_blocks(&mut self, most: usize) -> SackBlocks {
        let mut blocks: SackBlocks = self.duplicate.take().into_iter().collect();
        let mut before = u64::MAX;
        while blocks.as_slice().len() < most {
            let next = self.islands.iter().filter(|i| i.touched < before).max_by_key(|i| i.touched);
            let Some(island) = next else { break };
            before = island.touched;
            blocks.push(SackBlock { left: island.left, right: island.right() });
        }
        blocks
    }

    /// RFC 9293 §3.10.7.4, first check.
    fn is_acceptable(&self, segment: &Segment<P>) -> bool {
        let wnd = self.wnd();
        let in_window = |seq: SeqNum| seq.at_or_after(self.nxt) && seq.before(self.nxt + wnd);
        match (segment.seq_len(), wnd) {
            (0, 0) => segment.seq == self.nxt,
            (0, _) => in_window(segment.seq),
            (_, 0) => false,
            (len, _) => in_window(segment.seq) || in_window(segment.seq + (len - 1)),
        }
    }

    /// The first contiguous part of the data from `left` to `right` that was received before.
    fn held(&self, left: SeqNum, right: SeqNum) -> Option<SackBlock> {
        if left.before(self.nxt) {
            return Some(SackBlock { left, right: right.earlier(self.nxt) });
        }
        let island = self.islands.iter().find(|island| island.right().after(left))?;
        let (left, right) = (left.later(island.left), right.earlier(island.right()));
        left.before(right).then_some(SackBlock { left, right })
    }

    /// Takes data in, trimmed to the window. Returns its position in the stream.
    fn take_data(&mut self, seq: SeqNum, data: &P) -> Order {
        self.arrivals += 1;
        let skip = self.nxt.bytes_after(seq) as usize;
        let room = self.edge.bytes_after(seq) as usize;
        let end = data.len().min(room);
        if skip >= end {
            return Order::Duplicate;
        }
        if seq.at_or_before(self.nxt) {
            let had_islands = !self.islands.is_empty();
            if skip == 0 && end == data.len() {
                self.readable.append(data);
            } else {
                self.readable.append(&data.slice(skip, end - skip));
            }
            self.nxt += (end - skip) as u32;
            self.drain_islands();
            return if had_islands { Order::FilledGap } else { Order::InOrder };
        }
        if self.insert_island(seq, data.slice(0, end)) {
            Order::OutOfOrder
        } else {
            Order::Duplicate
        }
    }

    /// Moves islands that RCV.NXT has reached to the readable data.
    fn drain_islands(&mut self) {
        let mut drained = 0;
        while let Some(island) = self.islands.get(drained) {
            if island.left.after(self.nxt) {
                break;
            }
            let overlap = self.nxt.bytes_after(island.left) as usize;
            if overlap < island.data.len() {
                let fresh = island.data.slice(overlap, island.data.len() - overlap);
                self.nxt += fresh.len() as u32;
                self.readable.append(&fresh);
            }
            drained += 1;
        }
        self.islands.drain(..drained);
    }

    /// Bytes from RCV.NXT to the end of the furthest data above a gap.
    fn beyond(&self) -> u32 {
        self.islands.last().map_or(0, |island| island.right().bytes_after(self.nxt))
    }

    /// Updates autotuning before data is taken in; `rtt` is for [`Autotuning::on_echo`].
    fn tune_before(&mut self, now: Instant, most: u32, rtt: Option<Duration>) {
        if self.tuning.is_none() {
            let (window, mss) = (self.capacity, self.mss());
            let tuning = Autotuning::new(self.established, now, self.nxt, self.edge, window, mss);
            self.tuning = Some(Box::new(tuning));
            self.capacity = Autotuning::first_buffer(most);
        }
        if let (Some(tuning), Some(rtt)) = (&mut self.tuning, rtt) {
            tuning.on_echo(rtt, !self.readable.is_empty());
        }
    }

    /// Updates autotuning after `len` bytes were taken in. Returns true if the window grows.
    fn tune_after(&mut self, now: Instant, most: u32, len: u32, order: Order, sack: bool) -> bool {
        let Some(mut tuning) = self.tuning.take() else { return false };
        tuning.on_data(now, self.nxt, self.edge);
        if order == Order::OutOfOrder {
            let wanted = tuning.on_out_of_order(self.beyond()).min(most);
            self.capacity = self.capacity.max(wanted);
        }
        // Without SACK, a duplicate ACK has the window of the ACK before (RFC 5681 §2).
        let may_grow = match order {
            Order::InOrder | Order::FilledGap => true,
            Order::OutOfOrder => sack,
            Order::Duplicate => false,
        };
        let grows = may_grow && tuning.grow_window(len, self.mss(), self.free());
        self.tuning = Some(tuning);
        grows
    }

    /// See [`Endpoint::receive_space`].
    pub(super) fn space(&self) -> u32 {
        match &self.tuning {
            Some(tuning) => tuning.most_read(),
            None => Autotuning::first_read(self.capacity, self.mss()),
        }
    }

    /// Updates autotuning after a read by the application.
    pub(super) fn tune_on_read(&mut self, now: Instant, most: u32) {
        let Some(mut tuning) = self.tuning.take() else { return };
        let unread = self.readable.len() as u32;
        let wanted = tuning.on_read(now, self.nxt - unread, unread, self.beyond());
        self.tuning = Some(tuning);
        self.capacity = self.capacity.max(wanted.unwrap_or(0).min(most));
    }

    /// Inserts data above a gap; returns false if none of it was new.
    fn insert_island(&mut self, seq: SeqNum, data: P) -> bool {
        let touched = self.arrivals;
        let mut new = Island { left: seq, data, touched };
        // The first island that reaches to `seq` or beyond, and those the new data touches.
        let first = self.islands.partition_point(|i| i.right().before(seq));
        let mut last = first;
        while let Some(old) = self.islands.get_mut(last) {
            if old.left.after(new.right()) {
                break;
            }
            if old.left.at_or_before(new.left) && old.right().at_or_after(new.right()) {
                old.touched = touched;
                return false;
            }
            if old.left.before(new.left) {
                // Old first, then the part of the new behind it.
                let mut joined = std::mem::take(&mut old.data);
                let overlap = joined.len() - new.left.bytes_after(old.left) as usize;
                joined.append(&new.data.slice(overlap, new.data.len() - overlap));
                new = Island { left: old.left, data: joined, touched };
            } else if old.right().after(new.right()) {
                let overlap = new.right().bytes_after(old.left) as usize;
                let tail = old.data.slice(overlap, old.data.len() - overlap);
                new.data.append(&tail);
            }
            last += 1;
        }
        if last == first {
            self.islands.insert(first, new);
        } else {
            self.islands[first] = new;
            self.islands.drain(first + 1..last);
        }
        true
    }
}

/// Sequence number after the data of a segment without SYN.
pub(super) fn data_end<P: Payload>(segment: &Segment<P>) -> SeqNum {
    segment.seq + segment.payload.len() as u32
}

impl<P: Payload> Endpoint<P> {
    pub(super) fn on_segment_synchronised(
        &mut self,
        now: Instant,
        segment: &Segment<P>,
        io: &mut Io<'_, P>,
    ) -> Reply {
        let flags = segment.flags;
        // PAWS (RFC 7323 §5.3): an old timestamp is an old duplicate.
        if let Some(ts) = segment.options.timestamps.filter(|_| self.timestamps) {
            let is_old = (ts.value.wrapping_sub(self.rx.ts_recent) as i32) < 0;
            if is_old && !flags.intersects(Flags::RST | Flags::SYN) {
                self.count_data(segment, Order::Duplicate);
                // An ACK that answers an old ACK serves nobody. Where the network reorders, it may
                // be old itself, and two hosts would answer each other forever.
                return if segment.seq_len() > 0 { Reply::PureAck } else { Reply::None };
            }
        }
        if !self.rx.is_acceptable(segment) {
            return self.on_unacceptable(now, segment, io);
        }
        if flags.contains(Flags::RST) {
            return self.on_reset(now, segment, io);
        }
        if flags.contains(Flags::SYN) {
            return Reply::PureAck; // RFC 5961 §4.2
        }
        let Some(ack) = segment.ack else { return Reply::None };
        let opens = self.state == TcpState::SynReceived;
        if opens && !(ack.after(self.tx.una) && ack.at_or_before(self.tx.max)) {
            return self.refuse(segment, io);
        }
        if ack.after(self.tx.max) {
            return Reply::PureAck; // acknowledges what we never sent (RFC 9293 §3.10.7.4)
        }
        if self.accecn.is_some() {
            self.hear_ecn(segment);
        }
        // Only now is the segment the peer's: PAWS would drop all the rest after a forged one.
        if let Some(ts) = segment.options.timestamps.filter(|_| self.timestamps)
            && segment.seq.at_or_before(self.rx.last_ack_sent)
        {
            self.rx.ts_recent = ts.value; // PAWS has already made sure that it is not older
        }
        if opens {
            self.establish(now, segment, io);
        }
        self.on_ack(now, ack, segment, io);
        if self.state == TcpState::Closed {
            return Reply::None;
        }
        let marked = self.accecn.is_some() && self.count_ecn(segment);
        let reply = self.on_data(now, segment, io).max(self.answer_marks(marked, segment));
        self.transmit(now, io);
        reply
    }

    /// Handles a RST in the window: an exact match resets, any other is challenged (RFC 5961 §3.2).
    fn on_reset(&mut self, now: Instant, segment: &Segment<P>, io: &mut Io<'_, P>) -> Reply {
        if self.state == TcpState::TimeWait {
            self.enter_closed(); // everything is done (RFC 9293 §3.10.7.4)
            return Reply::None;
        }
        if segment.seq == self.rx.nxt {
            self.enter_aborted(now, AbortReason::Reset, io);
            return Reply::None;
        }
        Reply::PureAck
    }

    /// Answers a segment outside the window (an old duplicate, a probe of our closed window, or
    /// garbage) with an ACK, unless it is a RST. The acknowledgement that a duplicate or probe
    /// carries counts, as in 4.4BSD: two hosts whose peers shrank the window number their ACKs
    /// below what the other expects, and would otherwise answer each other forever.
    fn on_unacceptable(&mut self, now: Instant, segment: &Segment<P>, io: &mut Io<'_, P>) -> Reply {
        if segment.flags.contains(Flags::RST) {
            return Reply::None;
        }
        self.count_data(segment, Order::Duplicate);
        let probe = segment.seq == self.rx.nxt && self.rx.wnd() == 0;
        let duplicate = segment.seq_end().at_or_before(self.rx.nxt)
            && self.rx.nxt.bytes_after(segment.seq) <= self.rx.capacity;
        self.note_ecn_of_duplicate(segment, duplicate);
        if duplicate && !segment.payload.is_empty() {
            self.report_duplicate(SackBlock { left: segment.seq, right: data_end(segment) });
            self.note_repetition(segment);
            let rtt = self.rtt_of_release(now, segment);
            self.ask_policy(now, segment, Order::Duplicate, rtt, false);
        }
        if let Some(ack) = segment.ack
            && (probe || duplicate)
            && self.is_synchronised()
            && ack.at_or_before(self.tx.max)
        {
            self.on_ack(now, ack, segment, io);
            self.transmit(now, io);
        }
        let is_syn = segment.flags.contains(Flags::SYN) && segment.ack.is_none();
        if self.state == TcpState::SynReceived && is_syn {
            if self.offers_conflict(segment) {
                self.accecn = None;
                self.send(now, self.tx.max, Flags::RST, P::default(), io);
                self.enter_aborted(now, AbortReason::Reset, io);
                return Reply::None;
            }
            if let Some(accecn) = &mut self.accecn {
                accecn.on_syn_again(segment);
            }
            self.send_syn(now, io); // the peer lost our SYN-ACK
            return Reply::None;
        }
        if self.state == TcpState::TimeWait && segment.flags.contains(Flags::FIN) {
            self.time_wait = Some(now + self.config.time_wait);
        }
        if segment.seq_len() == 0 && !self.rx.may_answer_empty(now) {
            return Reply::None;
        }
        Reply::PureAck
    }

    /// Reads the ECN feedback of a segment outside the window: old data counts (RFC 9768 §3.2), and
    /// a SYN/ACK is answered like the first one (§3.2.2.1).
    fn note_ecn_of_duplicate(&mut self, segment: &Segment<P>, duplicate: bool) {
        let Some(accecn) = &mut self.accecn else { return };
        accecn.newer_timestamp = false;
        if segment.flags.contains(Flags::SYN) {
            if segment.ack.is_some() {
                accecn.on_syn_ack_again(segment.ecn);
            }
        } else if duplicate {
            self.count_ecn(segment);
        }
    }

    /// Shows a data segment to the ACK policy.
    fn ask_policy(
        &mut self,
        now: Instant,
        segment: &Segment<P>,
        order: Order,
        rtt: Option<Duration>,
        window_grew: bool,
    ) -> Decision {
        self.rx.policy.on_data(&Arrival {
            now,
            order,
            len: segment.payload.len() as u32,
            mss: self.rx.peer_mss,
            window: segment.window,
            options: &segment.options,
            hops: self.rx.hops,
            rtt,
            window_grew,
            rto: Some(self.tx.rto.rto()),
        })
    }

    /// Time from our ACK to the first segment that echoes its timestamp.
    fn rtt_of_release(&mut self, now: Instant, segment: &Segment<P>) -> Option<Duration> {
        let echo = segment.options.timestamps.filter(|_| self.timestamps)?.echo;
        if self.rx.ts_echoed.replace(echo) == Some(echo) {
            return None;
        }
        self.age_of(now, echo)
    }

    /// Schedules the report of data received twice (RFC 2883), as Linux does and as AccECN requires
    /// (RFC 9768 §3.1.1).
    fn report_duplicate(&mut self, block: SackBlock) {
        let tells = self.accecn.is_some() || self.config.recovery.is_rack();
        if tells && self.tx.sack_ok {
            self.rx.duplicate = Some(block);
        }
    }

    fn count_data(&mut self, segment: &Segment<P>, order: Order) {
        if !segment.payload.is_empty() {
            self.stats.data_segments_received += 1;
            self.stats.duplicate_segments_received += u64::from(order == Order::Duplicate);
        }
    }

    fn on_data(&mut self, now: Instant, segment: &Segment<P>, io: &mut Io<'_, P>) -> Reply {
        let takes_data =
            matches!(self.state, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2);
        if !takes_data {
            return if segment.seq_len() > 0 { Reply::PureAck } else { Reply::None };
        }
        let mut reply = Reply::None;
        if !segment.payload.is_empty() {
            self.note_mark(now, segment, io);
            reply = self.on_payload(now, segment, io);
        }
        if segment.flags.contains(Flags::FIN) {
            let fin = data_end(segment);
            if fin.before(self.rx.edge) || fin == self.rx.nxt {
                self.rx.fin = Some(fin);
            }
            self.rx.owe_ack();
            reply = Reply::PureAck;
        }
        if self.rx.fin == Some(self.rx.nxt) {
            self.take_fin(now);
            self.rx.owe_ack();
            reply = Reply::Ack;
        }
        reply
    }

    fn on_payload(&mut self, now: Instant, segment: &Segment<P>, io: &mut Io<'_, P>) -> Reply {
        let rtt = self.rtt_of_release(now, segment);
        let most = window_bytes(self.config.receive_buffer);
        if self.config.autotunes() {
            let rtt = rtt.filter(|_| self.tells_rtt(now, segment));
            self.rx.tune_before(now, most, rtt);
        }
        let before = self.rx.nxt;
        let held = self.rx.held(segment.seq, data_end(segment));
        let order = self.rx.take_data(segment.seq, &segment.payload);
        self.count_data(segment, order);
        if let Some(held) = held {
            self.report_duplicate(held);
        }
        if order == Order::Duplicate {
            self.note_repetition(segment);
        }
        let delivered = u64::from(self.rx.nxt.bytes_after(before));
        if delivered > 0 {
            self.stats.bytes_delivered += delivered;
            let total = Bytes(self.stats.bytes_delivered);
            io.events.emit(now, || Event::Delivered { total });
        }
        let len = segment.payload.len() as u32;
        let window_grew = self.rx.tune_after(now, most, len, order, self.tx.sack_ok);
        if self.ask_policy(now, segment, order, rtt, window_grew) == Decision::Wait {
            return Reply::None;
        }
        self.rx.owe_ack();
        match order {
            Order::InOrder | Order::FilledGap => Reply::Ack,
            Order::OutOfOrder | Order::Duplicate => Reply::PureAck,
        }
    }

    /// True if the segment's echo is an RTT for autotuning. Small segments may have waited for more
    /// data, and an echo of the current millisecond is too coarse.
    fn tells_rtt(&self, now: Instant, segment: &Segment<P>) -> bool {
        let echo = segment.options.timestamps.map(|stamps| stamps.echo);
        segment.payload.len() as u32 >= self.rx.peer_mss && echo != Some(self.clock(now))
    }

    /// Notes whether data came marked, for the next ACK to echo.
    fn note_mark(&mut self, now: Instant, segment: &Segment<P>, io: &mut Io<'_, P>) {
        let marked = segment.ecn == Ecn::Ce;
        match self.config.ecn {
            _ if !self.tx.ecn_ok => {}
            EcnConfig::Off => {}
            // RFC 3168 §6.1.3: until the sender says that it has reduced.
            EcnConfig::Rfc3168 | EcnConfig::AccEcn => {
                let answered = segment.flags.contains(Flags::CWR);
                self.rx.echoes_mark = marked || (self.rx.echoes_mark && !answered);
            }
            // RFC 8257 §3.2: an ACK is for data that were all marked, or none of them.
            EcnConfig::Dctcp => {
                if marked != self.rx.echoes_mark && self.rx.policy.deadline().is_some() {
                    self.send_ack(now, io);
                }
                self.rx.echoes_mark = marked;
            }
        }
    }

    fn take_fin(&mut self, now: Instant) {
        self.rx.fin = None;
        self.rx.fin_taken = true;
        self.rx.nxt += 1;
        match self.state {
            TcpState::Established => self.state = TcpState::CloseWait,
            TcpState::FinWait1 => self.state = TcpState::Closing,
            TcpState::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.tx.stop_timers();
        self.state = TcpState::TimeWait;
        self.time_wait = Some(now + self.config.time_wait);
    }
}
