//! `airtcp delack`: which acknowledgements wait, and until when.
//!
//! [`Holder`] has the connections. Of each it is told what data arrive ([`Holder::on_data`]) and
//! which pure ACKs the host is about to send ([`Holder::on_ack`]). At most one ACK of a connection
//! waits, the newest: an older one says nothing that it does not say (RFC 9293 §3.4). The policy,
//! an [`AckPolicy`] as in the simulator, sees the data and says when an ACK is due. Then the newest
//! one leaves; if the host has none yet that covers the data, its next one does.
//!
//! An ACK waits only if it is of a kind whose delay costs nothing: it acknowledges more than the
//! one before, all data that arrived are in order, and its window is much as before. Whatever the
//! holder does not understand passes at once.

use crate::packets::{PacketId, Verdict};
use airtcp_core::{Duration, Flags, Flow, Instant, Length, Options, Segment, SeqNum};
use airtcp_tcp::ack::{AckPolicy, Arrival, Decision, Departure, Order, policy};
use airtcp_tcp::config::AckConfig;
use hashlink::LinkedHashMap;

/// Wait for the host's own ACK when one is due and the latest does not cover the data yet: it is
/// usually on its way from the kernel.
const GRACE: Duration = Duration::from_millis(1);
/// A connection without data for so long is forgotten.
const IDLE: Duration = Duration::from_secs(60);
/// An unanswered probe of the flight is given up: the sender had nothing to send.
const PROBE: Duration = Duration::from_secs(2);

/// Without the sender's cwnd, a delay window is this part of the flight. A sender that its window
/// holds back, not the path, sends a window in a round trip and the wait for an ACK.
const PARTS: u32 = 4;

/// The verdict on a packet that waited.
pub type Decided = (PacketId, Verdict);

/// Counts of ACKs and data since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments with data that arrived; merged ones count by their size.
    pub data_segments: u64,
    /// Of these, segments that told the sender's cwnd.
    pub segments_with_cwnd: u64,
    /// Pure ACKs that the host sent.
    pub acks: u64,
    /// Of these, ACKs that did not leave, as a newer one said the same.
    pub acks_dropped: u64,
    /// ACKs that waited and left.
    pub acks_delayed: u64,
    /// Connections that were left alone because there were too many.
    pub connections_refused: u64,
}

/// A pure ACK that the host is about to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    id: PacketId,
    number: SeqNum,
    window: u16,
    /// Its timestamp (RFC 7323 §3).
    stamp: u32,
}

/// An ACK on its way: the first data that echo its timestamp tell what was in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    stamp: u32,
    /// Acknowledgement number of the ACK before it.
    before: SeqNum,
    left: Instant,
}

/// One direction of data of a connection.
#[derive(Debug)]
struct Connection {
    policy: Box<dyn AckPolicy>,
    /// End of the data in order, as far as known; the host's ACKs know best.
    next: SeqNum,
    /// End of the data that arrived.
    high: SeqNum,
    held: Option<Held>,
    /// The last ACK that left.
    sent: Option<Held>,
    /// The policy wants an ACK: the next one of the host leaves.
    is_due: bool,
    /// Departure of the held ACK if no newer one comes.
    due: Option<Instant>,
    probe: Option<Probe>,
    /// Bytes in flight when the sender got the latest ACK that it answered.
    flight: u32,
    /// The peer has ended its data, or there is trouble.
    is_over: bool,
    last_active: Instant,
}

/// Hops that a packet has travelled, from its remaining time to live; senders begin with 64, 128 or
/// 255.
pub fn hops(ttl: u8) -> u8 {
    let initial = [64, 128, 255].into_iter().find(|initial| ttl <= *initial).unwrap_or(255);
    initial - ttl + 1
}

impl Connection {
    fn new(now: Instant, config: AckConfig, first: SeqNum) -> Self {
        Self {
            policy: policy(config),
            next: first,
            high: first,
            held: None,
            sent: None,
            is_due: false,
            due: None,
            probe: None,
            flight: 0,
            is_over: false,
            last_active: now,
        }
    }

    fn order(&self, seq: SeqNum, end: SeqNum) -> Order {
        if end.at_or_before(self.next) {
            Order::Duplicate
        } else if seq.after(self.next) {
            Order::OutOfOrder
        } else if self.high.after(self.next) {
            Order::FilledGap
        } else {
            Order::InOrder
        }
    }

    fn on_data(&mut self, now: Instant, data: &Data<'_>, decided: &mut Vec<Decided>) {
        let Data { arrived, segment, mss, hops } = *data;
        self.last_active = now;
        let end = segment.seq + segment.payload.0 as u32;
        let order = self.order(segment.seq, end);
        if order == Order::OutOfOrder && self.high == self.next {
            // Something was lost: the sender will halve its window (RFC 5681 §3.2).
            (self.flight, self.probe) = (self.flight / 2, None);
        }
        if order != Order::OutOfOrder {
            self.next = self.next.later(end);
        }
        self.high = self.high.later(end);
        let rtt = self.answer(arrived, segment);
        let mut options = segment.options;
        options.cwnd = Some(options.cwnd.unwrap_or(self.flight / PARTS));
        let arrival = Arrival {
            now: arrived,
            order,
            len: segment.payload.0 as u32,
            mss,
            window: segment.window,
            options: &options,
            hops: Some(hops),
            rtt,
            window_grew: false,
            rto: None,
        };
        let decision = self.policy.on_data(&arrival);
        let ends = segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST | Flags::URG);
        self.is_over |= ends;
        if ends || order != Order::InOrder {
            self.is_due = true;
            self.release(now, decided);
        } else if decision == Decision::Now {
            self.want(now, decided);
        }
    }

    /// An ACK is due.
    fn want(&mut self, now: Instant, decided: &mut Vec<Decided>) {
        self.is_due = true;
        match self.held {
            Some(held) if held.number.before(self.high) => {
                self.due.get_or_insert(now + GRACE);
            }
            Some(_) => self.release(now, decided),
            None => {}
        }
    }

    /// The round trip that an echoed timestamp measures, if it answers the probe.
    fn answer(&mut self, now: Instant, segment: &Segment<Length>) -> Option<Duration> {
        let echo = segment.options.timestamps?.echo;
        let probe = self.probe?;
        let later = echo.wrapping_sub(probe.stamp);
        if later >= u32::MAX / 2 {
            if now.since(probe.left) > PROBE {
                self.probe = None;
            }
            return None;
        }
        self.probe = None;
        if later > 0 {
            return None; // of an ACK after it
        }
        if segment.seq.after(probe.before) {
            self.flight = segment.seq.bytes_after(probe.before);
        }
        Some(now.since(probe.left))
    }

    fn on_ack(&mut self, now: Instant, ack: Held, plain: bool, decided: &mut Vec<Decided>) {
        let unseen = ack.number.after(self.high);
        self.next = self.next.later(ack.number);
        self.high = self.high.later(ack.number);
        let before = self.held.or(self.sent);
        let news = before.is_none_or(|before| ack.number.after(before.number));
        let in_order = self.high == self.next;
        let much_as_before = self.sent.is_some_and(|sent| {
            let (small, large) = (sent.window.min(ack.window), sent.window.max(ack.window));
            large / 2 <= small
        });
        let may_wait = plain && news && in_order && much_as_before && !unseen && !self.is_over;
        let waits = may_wait
            && match self.is_due {
                // The data behind it are here already: their ACK says more.
                true => ack.number.before(self.high),
                false => self.policy.deadline().is_some(),
            };
        match self.held.take() {
            // The same number twice is a signal, and an older one must not come later.
            Some(held) if !news => self.pass(now, held, decided),
            Some(held) => decided.push((held.id, Verdict::Drop)),
            None => {}
        }
        if waits {
            self.held = Some(ack);
            if self.is_due {
                self.due.get_or_insert(now + GRACE);
            }
        } else {
            self.pass(now, ack, decided);
        }
    }

    /// Lets the held ACK go.
    fn release(&mut self, now: Instant, decided: &mut Vec<Decided>) {
        if let Some(held) = self.held.take() {
            self.pass(now, held, decided);
        }
    }

    fn pass(&mut self, now: Instant, ack: Held, decided: &mut Vec<Decided>) {
        decided.push((ack.id, Verdict::Pass));
        let (mut window, mut options) = (ack.window, Options::default());
        self.policy.on_ack_sent(&mut Departure {
            now,
            len: 0,
            cwnd: 0,
            after_fin: self.is_over,
            window: &mut window,
            options: &mut options,
        });
        (self.is_due, self.due) = (false, None);
        if let (None, Some(sent)) = (self.probe, self.sent) {
            let later = ack.stamp.wrapping_sub(sent.stamp);
            if later > 0 && later < u32::MAX / 2 && ack.number.after(sent.number) {
                self.probe = Some(Probe { stamp: ack.stamp, before: sent.number, left: now });
            }
        }
        self.sent = Some(ack);
    }

    fn deadline(&self) -> Option<Instant> {
        let of_policy = self.policy.deadline().filter(|_| !self.is_due);
        self.due.into_iter().chain(of_policy).min()
    }

    fn on_timer(&mut self, now: Instant, decided: &mut Vec<Decided>) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.release(now, decided);
        }
        if self.policy.deadline().is_some_and(|at| at <= now)
            && self.policy.on_timer(now) == Decision::Now
        {
            self.is_due = true;
            self.release(now, decided);
        }
    }
}

/// Data that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Its arrival, perhaps some time ago: this process may not have run.
    pub arrived: Instant,
    /// The segment, or several in one.
    pub segment: &'a Segment<Length>,
    /// Largest payload of one.
    pub mss: u32,
    /// Hops it has travelled.
    pub hops: u8,
}

/// The connections whose ACKs may wait.
#[derive(Debug)]
pub struct Holder {
    config: AckConfig,
    /// By the flow of their data; the one with the latest data last.
    connections: LinkedHashMap<Flow, Connection>,
    most: usize,
    counters: Counters,
}

impl Holder {
    /// None yet, and never more than `most`, each under the policy that `config` says.
    pub fn new(config: AckConfig, most: usize) -> Self {
        let counters = Counters::default();
        Self { config, connections: LinkedHashMap::new(), most, counters }
    }

    /// A segment with data, SYN, FIN or RST arrived. What is `decided` has waited.
    pub fn on_data(&mut self, now: Instant, data: &Data<'_>, decided: &mut Vec<Decided>) {
        let Data { segment, mss, .. } = *data;
        let segments = segment.payload.0.div_ceil(u64::from(mss.max(1)));
        self.counters.data_segments += segments;
        if segment.options.cwnd.is_some() {
            self.counters.segments_with_cwnd += segments;
        }
        let flow = segment.flow;
        if segment.flags.intersects(Flags::SYN | Flags::RST) {
            // A new connection, or none any more.
            if let Some(mut old) = self.connections.remove(&flow) {
                old.release(now, decided);
            }
            return;
        }
        if !self.connections.contains_key(&flow) {
            // Without timestamps the flight is not known, and the ACKs do not come here.
            if segment.options.timestamps.is_none() || segment.payload.0 == 0 {
                return;
            }
            self.forget(now, decided);
            if self.connections.len() >= self.most {
                self.counters.connections_refused += 1;
                return;
            }
            self.connections.insert(flow, Connection::new(now, self.config, segment.seq));
        }
        if let Some(connection) = self.connections.to_back(&flow) {
            let before = decided.len();
            connection.on_data(now, data, decided);
            count(&mut self.counters, &decided[before..], None);
        }
    }

    /// The host is about to send a segment. It is decided about at once, unless it waits; what
    /// waited before may be decided about, too.
    pub fn on_ack(
        &mut self,
        now: Instant,
        id: PacketId,
        segment: &Segment<Length>,
        decided: &mut Vec<Decided>,
    ) {
        self.counters.acks += 1;
        let connection = self.connections.get_mut(&segment.flow.reversed());
        let (Some(connection), Some(number), Some(stamps)) =
            (connection, segment.ack, segment.options.timestamps)
        else {
            decided.push((id, Verdict::Pass));
            return;
        };
        // Congestion is told at once (RFC 3168 §6.1.3).
        let plain = segment.payload.0 == 0
            && segment.flags.is_empty()
            && segment.options.sack.as_slice().is_empty();
        let ack = Held { id, number, window: segment.window, stamp: stamps.value };
        let before = decided.len();
        connection.on_ack(now, ack, plain, decided);
        count(&mut self.counters, &decided[before..], Some(id));
    }

    /// Time of the next call of [`Holder::on_timer`].
    pub fn next_deadline(&self) -> Option<Instant> {
        self.connections.values().filter_map(Connection::deadline).min()
    }

    /// Time has passed.
    pub fn on_timer(&mut self, now: Instant, decided: &mut Vec<Decided>) {
        let before = decided.len();
        for connection in self.connections.values_mut() {
            if connection.deadline().is_some_and(|due| due <= now) {
                connection.on_timer(now, decided);
            }
        }
        count(&mut self.counters, &decided[before..], None);
        self.forget(now, decided);
    }

    /// All that waits leaves.
    pub fn release_all(&mut self, now: Instant, decided: &mut Vec<Decided>) {
        let before = decided.len();
        self.connections.values_mut().for_each(|connection| connection.release(now, decided));
        count(&mut self.counters, &decided[before..], None);
    }

    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Connections that have been silent too long are forgotten; what waits of them leaves.
    fn forget(&mut self, now: Instant, decided: &mut Vec<Decided>) {
        while let Some((_, oldest)) = self.connections.front()
            && now.since(oldest.last_active) > IDLE
        {
            if let Some((_, mut oldest)) = self.connections.pop_front() {
                oldest.release(now, decided);
            }
        }
    }
}

/// Counts what was decided; `now` is the packet that did not wait.
fn count(counters: &mut Counters, decided: &[Decided], now: Option<PacketId>) {
    for (id, verdict) in decided {
        match verdict {
            Verdict::Drop => counters.acks_dropped += 1,
            Verdict::Pass if Some(*id) != now => counters.acks_delayed += 1,
            Verdict::Pass => {}
        }
    }
}

#[cfg(test)]
mod tests;
