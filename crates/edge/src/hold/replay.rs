//! A replay: a mobile that came back is sent what it missed, at the pace of its acknowledgements.
//!
//! Read first: RFC 5681 §3 (congestion control), RFC 6928 (initial window), RFC 2018 (SACK),
//! RFC 8985 (losses in the order of sending, tail loss probes), RFC 6298 (time-outs).
//!
//! The link may have a short queue, and may not be the link of before the outage. So the node is a
//! TCP sender here, with its own congestion state:
//! - *Pace.* It begins with half of what is held, for the path has carried all of it before
//!   (RFC 7661 §4.4), and the mobile may already have what its last acknowledgements were for, if
//!   they were lost. Of that it sends ten segments at least (RFC 6928 §2) and 64 KiB at most. All
//!   replays to a mobile share this initial window. If all of it arrives, the next window is half
//!   of what was held, sent evenly over a round trip (RFC 9002 §7.7): slow start would take many of
//!   them over a long path, and overflow a short queue. If not, slow start goes on, up to half of
//!   what is missing of what was held, also after losses (RFC 7661 §4.4.3): additive increase after
//!   a few of them would take half a minute. The window is halved once for all that is lost of one
//!   window (RFC 5681 §3.1, in bytes: RFC 3465). A segment sends at most twice what it
//!   acknowledges, as much as it brings, or two segments.
//! - *Answers.* An acknowledgement of more than was sent tells what the mobile had before the
//!   outage. It may be as old itself, so it is no answer unless it reports a duplicate (RFC 2883
//!   §4).
//! - *Repair.* What has just arrived, cumulatively or by the first SACK block (RFC 2018 §4), shows
//!   what was lost of the data sent before it: what more than two segments (RFC 6675 §4, IsLost) or
//!   a quarter of a round trip (RFC 8985 §6.2) lie behind. So repairs that are lost show too. Other
//!   blocks may be older than the outage: they show what need not be sent, and no losses. A mobile
//!   without SACK shows a loss by its third duplicate acknowledgement (RFC 5681 §3.2).
//! - *Tail.* When nothing is heard for two round trips, the first piece under way goes out again
//!   (RFC 8985 §7). Then the retransmission timer sends the first segment, with back-off, until the
//!   mobile is heard and the replay begins anew: it was away rather than the network full.
//! - *End.* When the mobile has what was held on its return, the fixed host's own congestion
//!   control is in charge: copies that came since wait for their turn only, not for a window. They
//!   leave as the mobile acknowledges, twice as fast, and not in the bursts in which they came.
//!
//! Copies are sent in the order of the stream, and what comes until the end takes its turn behind
//! them ([`Replay::takes`]). Ahead of them it would make the mobile report losses where there are
//! none. Beyond the window the queue may drop it, and a fixed host that is recovering from a
//! time-out may notice that by its next time-out only (Linux).

use crate::conntrack::mobile_peer::MobilePeer;
use crate::hold::store::Store;
use crate::middlebox::Actions;
use airtcp_core::{Duration, Instant, Payload, SackBlock, Segment, SeqNum};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::slice;

/// The first time-out (RFC 6298 §2.1: the value without an RTT sample), and the shortest (§2.4).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest time-out (RFC 6298 §2.4).
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest delay of a mobile's acknowledgement of a single segment (RFC 8985 §7.2).
const DELAYED_ACK: Duration = Duration::from_millis(200);
/// No timer is finer (RFC 6298 §2.4 lets G be so long).
const GRANULARITY: Duration = Duration::from_millis(10);
/// Duplicate acknowledgements that mean a loss.
const DUPLICATES: u8 = 3;
/// Segments of the initial window (RFC 6928 §2), if little is held.
pub(crate) const INITIAL_WINDOW: u32 = 10;
/// Bytes of the initial window, if much is held.
pub(crate) const LARGEST_INITIAL_WINDOW: u32 = 64 * 1024;
/// Segments of the smallest window (RFC 5681 §3.1, equation 4).
const LEAST_WINDOW: u32 = 2;
/// Five windows are sent within four round trips (RFC 9002 §7.7: N = 1.25).
const WINDOWS: u128 = 5;
const ROUND_TRIPS: u128 = 4;
/// Data that the pace allows within so long is sent at once: a timer for each segment would cost
/// more, and no two are closer.
const AT_ONCE: Duration = Duration::from_millis(1);
/// The part of a round trip for which a late timer makes up.
const LATE_PART: u64 = 8;
/// With more pieces under way, none is cut where a SACK block ends: a mobile cannot make the node
/// remember each byte.
const MOST_PIECES: usize = 4096;

/// The state of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replay {
    deadline: Instant,
    timeout: Duration,
    duplicates: u8,
    /// The tail was probed, and nothing heard since.
    probed: bool,
    /// `None`: the mobile is not heard, and the first segment goes out now and then. So a process
    /// begins that takes over.
    #[serde(skip)]
    flight: Option<Box<Flight>>,
}

/// Data under way, and the congestion state that bounds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    /// Size of a segment.
    segment: u32,
    /// End of the data held when the replay began.
    until: SeqNum,
    /// Whatever is held before this number was sent, or passed the node.
    next: SeqNum,
    /// Neither acknowledged nor taken for lost.
    sent: UnderWay,
    /// Taken for lost and not sent again yet; in the order of the stream.
    lost: VecDeque<Range<SeqNum>>,
    /// Bytes sent so far, since the first piece under way.
    position: u64,
    /// Losses of what was sent before this position made the window smaller already.
    reduced: u64,
    window: u32,
    /// Slow start ends here.
    threshold: u32,
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    acknowledged: u32,
    rtt: Option<Rtt>,
    /// `None`: none of the initial window is under way any more.
    initial: Option<Initial>,
    /// Since the initial window arrived: by the pace of the window more may be sent from here on.
    next_at: Option<Instant>,
    /// Time at which to send more of what the window has room for.
    paced: Option<Instant>,
}

/// The initial window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Initial {
    /// It ends at this position.
    end: u64,
    /// The window if all of it arrives.
    next: u32,
}

/// Pieces under way, in the order of sending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct UnderWay {
    pieces: VecDeque<Sent>,
    bytes: u32,
    /// Number of pieces that were sent before. Without any, they are in the order of the stream,
    /// too.
    again: usize,
}

/// A piece of a copy under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sent {
    seq: SeqNum,
    end: SeqNum,
    at: Instant,
    /// Bytes sent up to its end.
    position: u64,
    /// It was sent before, so that its acknowledgement may be that of the first time.
    again: bool,
}

/// Round-trip times (RFC 6298 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rtt {
    smoothed: Duration,
    variation: Duration,
    least: Duration,
}

/// Data that an acknowledgement reports.
#[derive(Clone, Copy, Debug)]
struct Arrived<'a> {
    ack: SeqNum,
    blocks: &'a [SackBlock],
}

/// Data that an acknowledgement reports for the first time.
#[derive(Clone, Copy, Debug, Default)]
struct Delivered {
    bytes: u32,
    /// The first sent of it, and the last, up to where it arrived.
    pieces: Option<(Sent, Sent)>,
    /// Some of it was sent again.
    again: bool,
}

impl Replay {
    /// The mobile is away, or may be: the first piece is sent when the timer expires.
    pub fn waiting(now: Instant) -> Self {
        let (deadline, timeout) = (now + FIRST_TIMEOUT, FIRST_TIMEOUT);
        Self { deadline, timeout, duplicates: 0, probed: false, flight: None }
    }

    /// The mobile is back: sends the initial window, which so many replays share.
    pub fn begin<P: Payload>(
        now: Instant,
        replays: u32,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) -> Self {
        let mut flight = Flight::new(replays, store);
        flight.send(now, 0..=u32::MAX, store, out);
        flight.initial = Some(flight.initial(replays));
        Self { flight: Some(Box::new(flight)), ..Self::waiting(now) }
    }

    /// Time of the next [`on_timer`](Self::on_timer).
    pub fn deadline(&self) -> Instant {
        let paced = self.flight.as_ref().and_then(|flight| flight.paced);
        paced.map_or(self.deadline, |due| due.min(self.deadline))
    }

    /// It sends as the mobile's acknowledgements come.
    pub fn has_begun(&self) -> bool {
        self.flight.is_some()
    }

    /// Everything held was sent, and nothing of it is missing.
    pub fn is_done<P: Payload>(&self, store: &Store<P>) -> bool {
        self.flight.as_ref().is_some_and(|flight| {
            flight.sent.pieces.is_empty() && flight.lost.is_empty() && !flight.is_behind(store)
        })
    }

    /// Silence after which what was sent is lost (RFC 8985 §7.2), be it a single segment.
    pub fn patience(&self) -> Duration {
        let rtt = self.flight.as_ref().and_then(|flight| flight.rtt);
        rtt.map_or(FIRST_TIMEOUT, |rtt| rtt.smoothed * 2 + DELAYED_ACK)
    }

    /// The congestion window; `None` while the mobile is not heard.
    pub fn window(&self) -> Option<u32> {
        self.flight.as_ref().map(|flight| flight.window)
    }

    /// This data takes its turn behind the copies; ask before it is kept. Its copy is then what is
    /// sent, and needs [`send`](Self::send).
    pub fn takes<P: Payload>(&self, store: &Store<P>, segment: &Segment<P>) -> bool {
        self.flight.as_ref().is_some_and(|flight| {
            let is_new = segment.seq_len() > 0 && segment.seq_end().after(flight.next);
            is_new && (flight.is_behind(store) || !flight.is_over(store))
        })
    }

    /// A segment of the fixed host goes on as it came.
    pub fn note_passed<P: Payload>(&mut self, segment: &Segment<P>) {
        if let Some(flight) = &mut self.flight {
            flight.next = flight.next.later(segment.seq_end());
        }
    }

    /// A copy of this segment was kept: sends as much, if the window allows.
    pub fn send<P: Payload>(
        &mut self,
        now: Instant,
        segment: &Segment<P>,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) {
        if let Some(flight) = &mut self.flight {
            // From then on data leave when the mobile acknowledges, not when they come.
            let waits = flight.is_over(store) && !flight.sent.pieces.is_empty();
            let most = if waits { 0 } else { segment.seq_len().max(flight.segment) };
            flight.send(now, 0..=most, store, out);
        }
    }

    /// A segment of the mobile, already noted; `before` is its end as known until then, `replays`
    /// as for [`begin`](Self::begin). Returns how many pieces were sent again.
    pub fn on_mobile<P: Payload>(
        &mut self,
        now: Instant,
        replays: u32,
        before: &MobilePeer,
        segment: &Segment<P>,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) -> u64 {
        let mobile = *store.peers.mobile();
        let has_opened = before.window == 0 && mobile.window > 0;
        let Some(flight) = self.flight.as_mut().filter(|_| !has_opened) else {
            // It had no room for what was sent, or a process took over.
            if has_opened || mobile.ack.after(before.ack) {
                *self = Self::begin(now, replays, store, out);
            }
            return 0;
        };
        let blocks = segment.options.sack;
        let is_ahead = mobile.ack.after(before.ack) && mobile.ack.after(flight.next);
        if is_ahead && !store.is_empty() && !flight.is_answered_by(blocks.as_slice()) {
            // It had this before the outage, and may have said so then.
            flight.next = mobile.ack;
            return 0;
        }
        let under_way = flight.sent.bytes;
        // First what has just arrived, then what may have arrived before the outage.
        let latest = match blocks.as_slice() {
            [first, ..] if !mobile.ack.after(before.ack) => slice::from_ref(first),
            _ => &[],
        };
        let delivered = flight.deliver(mobile.ack, latest);
        let earlier = match blocks.as_slice() {
            all if all.len() > latest.len() => flight.deliver(mobile.ack, all).bytes,
            _ => 0,
        };
        let is_news = delivered.bytes + earlier > 0;
        let mut is_lost = false;
        if is_news {
            if let Some((first, last)) = &delivered.pieces {
                if !delivered.again {
                    flight.measure(now, first);
                    self.timeout = flight.timeout();
                }
                is_lost = flight.lose_before(now, last);
            }
            self.duplicates = 0;
            self.probed = false;
        } else if before.is_repeated_by(segment) && blocks.is_empty() {
            let is_third = self.duplicates + 1 == DUPLICATES;
            self.duplicates = (self.duplicates + 1).min(DUPLICATES);
            is_lost = is_third && flight.lose_first();
        }
        if is_lost {
            flight.reduce(under_way, mobile.ack);
        } else {
            flight.grow(under_way, &delivered);
        }
        flight.rebase();
        flight.end_initial_window(now);
        // RFC 6675 §5 (4.3): the first repair does not wait for the window.
        let least = if is_lost { flight.segment } else { 0 };
        let most = 2 * delivered.bytes.max(flight.segment);
        flight.paced = None;
        let repaired = match mobile.window {
            0 => 0,
            _ => flight.send(now, least..=most, store, out),
        };
        if is_news {
            self.deadline = now + flight.patience();
        }
        repaired
    }

    /// The deadline passed. Returns how many pieces were sent again.
    pub fn on_timer<P: Payload>(
        &mut self,
        now: Instant,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) -> u64 {
        if let Some(flight) = &mut self.flight
            && flight.paced.is_some_and(|due| due <= now)
        {
            return flight.send(now, 0..=u32::MAX, store, out);
        }
        let is_tail = self.flight.as_ref().is_some_and(|flight| flight.rtt.is_some());
        if is_tail && !std::mem::replace(&mut self.probed, true) {
            self.deadline = now + self.timeout;
            return self.flight.as_mut().map_or(0, |flight| flight.probe(now, store, out));
        }
        self.postpone(now);
        store.resend_first(out)
    }

    /// The deadline passed, and nothing is to be sent.
    pub fn postpone(&mut self, now: Instant) {
        let timeout = (self.timeout * 2).min(LONGEST_TIMEOUT);
        *self = Self { deadline: now + timeout, timeout, ..Self::waiting(now) };
    }
}

impl Sent {
    fn len(&self) -> u32 {
        self.end.bytes_after(self.seq)
    }

    /// Its beginning, up to `end`.
    fn up_to(&self, end: SeqNum) -> Self {
        let position = self.position - u64::from(self.end.bytes_after(end));
        Self { end, position, ..*self }
    }
}

impl UnderWay {
    fn add(&mut self, piece: Sent) {
        self.bytes += piece.len();
        self.again += usize::from(piece.again);
        let place = self.pieces.partition_point(|other| other.position < piece.position);
        self.pieces.insert(place, piece);
    }

    /// Takes off the piece at `index`, or its beginning up to `end`.
    fn take(&mut self, index: usize, end: SeqNum) {
        let piece = &mut self.pieces[index];
        self.bytes -= end.bytes_after(piece.seq);
        piece.seq = end;
        if piece.end == end {
            self.again -= usize::from(piece.again);
            self.pieces.remove(index);
        }
    }

    /// Takes off what has arrived. A piece of which some has becomes several if it may be cut.
    fn deliver(&mut self, arrived: Arrived<'_>, may_cut: bool) -> Delivered {
        // What is in the order of the stream can be searched.
        let count = match self.again {
            0 => self.pieces.partition_point(|piece| arrived.reaches_beyond(piece.seq)),
            _ => self.pieces.len(),
        };
        let mut delivered = Delivered::default();
        let mut parts = Vec::new();
        let mut kept = 0;
        for index in 0..count {
            let piece = self.pieces[index];
            if !arrived.touches(piece.seq, piece.end) {
                self.pieces[kept] = piece;
                kept += 1;
                continue;
            }
            self.bytes -= piece.len();
            self.again -= usize::from(piece.again);
            let mut rest: Vec<_> = arrived.missing(piece.seq..piece.end).collect();
            if rest.len() > 1 && !may_cut {
                rest = vec![rest[0].start..piece.end];
            }
            delivered.note(&piece, &rest);
            let part = |Range { start, end }| Sent { seq: start, ..piece.up_to(end) };
            parts.extend(rest.into_iter().map(part));
        }
        self.pieces.drain(kept..count);
        parts.into_iter().for_each(|part| self.add(part));
        delivered
    }
}

impl Delivered {
    /// Of this piece all has arrived but the rest.
    fn note(&mut self, piece: &Sent, rest: &[Range<SeqNum>]) {
        let missing: u32 = rest.iter().map(|rest| rest.end.bytes_after(rest.start)).sum();
        let news = piece.len() - missing;
        if news == 0 {
            return;
        }
        // The end of the last byte in it that arrived.
        let end = match rest.last() {
            Some(last) if last.end == piece.end => last.start,
            _ => piece.end,
        };
        let last = piece.up_to(end);
        self.bytes += news;
        self.again |= piece.again;
        self.pieces = Some(self.pieces.map_or((last, last), |(first, _)| (first, last)));
    }
}

impl Arrived<'_> {
    /// True if it reports anything beyond this number.
    fn reaches_beyond(&self, number: SeqNum) -> bool {
        self.ack.after(number) || self.blocks.iter().any(|block| block.right.after(number))
    }

    /// True if it reports any of this range.
    fn touches(&self, start: SeqNum, end: SeqNum) -> bool {
        let is_of = |block: &SackBlock| block.left.before(end) && block.right.after(start);
        self.ack.after(start) || self.blocks.iter().any(is_of)
    }

    /// The parts of a range that the mobile lacks.
    fn missing(&self, range: Range<SeqNum>) -> impl Iterator<Item = Range<SeqNum>> + use<'_> {
        let Self { ack, blocks } = *self;
        let Range { start, end } = range;
        let mut from = start.later(ack);
        let holds = |block: &SackBlock, number| {
            block.left.at_or_before(number) && block.right.after(number)
        };
        std::iter::from_fn(move || {
            while let Some(block) = blocks.iter().find(|block| holds(block, from)) {
                from = block.right;
            }
            if !from.before(end) {
                return None;
            }
            let ahead = blocks.iter().map(|block| block.left).filter(|left| left.after(from));
            let gap = from..ahead.fold(end, SeqNum::earlier);
            from = gap.end;
            Some(gap)
        })
    }
}

impl Flight {
    fn new<P: Payload>(replays: u32, store: &Store<P>) -> Self {
        let (segment, ack) = (store.segment(), store.peers.mobile_ack());
        let until = store.end().unwrap_or(ack);
        let window = (until.bytes_after(ack) / 2).min(LARGEST_INITIAL_WINDOW);
        let window = window.max(INITIAL_WINDOW * segment) / replays.max(1);
        Self {
            segment,
            until,
            next: ack,
            sent: UnderWay::default(),
            lost: VecDeque::new(),
            position: 0,
            reduced: 0,
            window: window.max(LEAST_WINDOW * segment),
            threshold: u32::MAX,
            acknowledged: 0,
            rtt: None,
            initial: None,
            next_at: None,
            paced: None,
        }
    }

    /// All that was held was under way at once: half of that is the next window (which such replays
    /// share) if the initial one, just sent, arrives whole.
    fn initial(&self, replays: u32) -> Initial {
        let first = self.sent.pieces.front().map_or(self.until, |first| first.seq);
        let half = self.lacking(first) / 2 / replays.max(1);
        Initial { end: self.position, next: self.window.max(half) }
    }

    /// If all of the initial window has arrived, the next is sent evenly, and slow start is over.
    fn end_initial_window(&mut self, now: Instant) {
        let Some(Initial { end: 0, next }) = self.initial else { return };
        self.initial = None;
        let is_whole = self.threshold == u32::MAX;
        if is_whole && self.rtt.is_some() {
            self.window = self.window.max(next);
            self.threshold = self.window;
            self.next_at = Some(now);
        }
    }

    /// Bytes that the pace of the window allows to send now.
    fn allowed(&self, now: Instant) -> u32 {
        let Some(next_at) = self.next_at else { return u32::MAX };
        if next_at > now {
            return 0;
        }
        let time = u128::from(self.late(now, next_at).max(AT_ONCE).as_nanos());
        let bytes = u128::from(self.window) * WINDOWS * time / self.round_trips().max(1);
        u32::try_from(bytes).unwrap_or(u32::MAX).max(LEAST_WINDOW * self.segment)
    }

    /// So much was sent.
    fn pace(&mut self, now: Instant, sent: u32) {
        let Some(next_at) = self.next_at else { return };
        let nanos = self.round_trips() * u128::from(sent) / (u128::from(self.window) * WINDOWS);
        let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.next_at = Some(next_at.max(now + time - self.late(now, next_at)));
    }

    /// Nanoseconds of the round trips in which so many [`WINDOWS`] are sent.
    fn round_trips(&self) -> u128 {
        self.rtt.map_or(0, |rtt| u128::from(rtt.smoothed.as_nanos()) * ROUND_TRIPS)
    }

    /// For how long more might have been sent, if that can be made up for.
    fn late(&self, now: Instant, next_at: Instant) -> Duration {
        let longest = self.rtt.map_or(Duration::ZERO, |rtt| rtt.smoothed / LATE_PART);
        now.since(next_at).min(longest)
    }

    /// Bytes that were held when the replay began and the mobile lacks.
    fn lacking(&self, ack: SeqNum) -> u32 {
        self.until.later(ack).bytes_after(ack)
    }

    /// The first block reports a duplicate (RFC 2883 §4) of something under way: it arrived now.
    fn is_answered_by(&self, blocks: &[SackBlock]) -> bool {
        let is_of = |block: &SackBlock, sent: &Sent| {
            block.left.at_or_after(sent.seq) && block.right.at_or_before(sent.end)
        };
        blocks.first().is_some_and(|block| self.sent.pieces.iter().any(|sent| is_of(block, sent)))
    }

    /// Copies wait to be sent for the first time.
    fn is_behind<P: Payload>(&self, store: &Store<P>) -> bool {
        store.end().is_some_and(|end| end.after(self.next))
    }

    /// The mobile has what was held when the replay began.
    fn is_over<P: Payload>(&self, store: &Store<P>) -> bool {
        store.peers.mobile_ack().at_or_after(self.until)
    }

    /// Sends what is lost, then what waits: as the window and its pace allow, but so many bytes at
    /// least and at most. Returns how many pieces were sent again.
    fn send<P: Payload>(
        &mut self,
        now: Instant,
        bounds: RangeInclusive<u32>,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) -> u64 {
        let is_over = self.is_over(store);
        let (window, allowed) =
            if is_over { (u32::MAX, u32::MAX) } else { (self.window, self.allowed(now)) };
        let free = window.saturating_sub(self.sent.bytes);
        let most = free.min(allowed).clamp(*bounds.start(), *bounds.end());
        let (sent, repaired) = self.send_up_to(now, most, store, out);
        self.pace(now, sent);
        let waits = !self.lost.is_empty() || self.is_behind(store);
        let is_paced = waits && free.saturating_sub(sent) >= self.segment && !is_over;
        self.paced = self.next_at.filter(|_| is_paced).map(|next_at| next_at.max(now + AT_ONCE));
        repaired
    }

    /// Sends what is lost, then what waits, so many bytes at most. Returns how many, and how many
    /// pieces were sent again.
    fn send_up_to<P: Payload>(
        &mut self,
        now: Instant,
        most: u32,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) -> (u32, u64) {
        let mut room = most;
        let mut repaired = 0;
        loop {
            let lost = self.lost.front().cloned();
            let is_repair = lost.is_some();
            let wanted = lost.unwrap_or(self.next..store.end().unwrap_or(self.next));
            if !wanted.end.after(wanted.start)
                || room < self.segment.min(wanted.end.bytes_after(wanted.start))
            {
                return (most - room, repaired);
            }
            // What is not held any more, or never was, is not sent.
            let end = match store.send(wanted.clone(), room, out) {
                Some(piece) => {
                    repaired += u64::from(is_repair);
                    room -= piece.end.bytes_after(piece.start);
                    self.note_sent(now, &piece, is_repair);
                    piece.end
                }
                None => wanted.end,
            };
            if !is_repair {
                self.next = end;
            } else if end == wanted.end {
                self.lost.pop_front();
            } else {
                self.lost[0].start = end;
            }
        }
    }

    fn note_sent(&mut self, now: Instant, piece: &Range<SeqNum>, again: bool) {
        let &Range { start: seq, end } = piece;
        self.position += u64::from(end.bytes_after(seq));
        self.sent.add(Sent { seq, end, at: now, position: self.position, again });
    }

    /// Takes off what has arrived.
    fn deliver(&mut self, ack: SeqNum, blocks: &[SackBlock]) -> Delivered {
        let may_cut = self.sent.pieces.len() + self.lost.len() < MOST_PIECES;
        let arrived = Arrived { ack, blocks };
        let delivered = self.sent.deliver(arrived, may_cut);
        if self.lost.iter().any(|range| arrived.touches(range.start, range.end)) {
            let lost = std::mem::take(&mut self.lost);
            self.lost.extend(lost.into_iter().flat_map(|range| arrived.missing(range)));
        }
        self.next = self.next.later(ack);
        delivered
    }

    /// Counts positions from the first piece under way: they stay small.
    fn rebase(&mut self) {
        let pieces = &mut self.sent.pieces;
        let first = pieces.front().map(|first| first.position - u64::from(first.len()));
        let base = first.unwrap_or(self.position);
        pieces.iter_mut().for_each(|piece| piece.position -= base);
        self.position -= base;
        self.reduced = self.reduced.saturating_sub(base);
        if let Some(initial) = &mut self.initial {
            initial.end = initial.end.saturating_sub(base);
        }
    }

    /// A round-trip time, of the first piece that an acknowledgement reports: the others may have
    /// arrived before the outage. If one of them was sent again, it may be that which arrived now,
    /// or the first may have waited for it (Karn's algorithm, RFC 6298 §3). A time of zero measures
    /// the clock, not the path.
    fn measure(&mut self, now: Instant, first: &Sent) {
        let sample = now.since(first.at);
        if sample.is_zero() {
            return;
        }
        self.rtt = Some(match self.rtt {
            None => Rtt { smoothed: sample, variation: sample / 2, least: sample },
            Some(Rtt { smoothed, variation, least }) => Rtt {
                variation: (variation * 3 + smoothed.abs_diff(sample)) / 4,
                smoothed: (smoothed * 7 + sample) / 8,
                least: least.min(sample),
            },
        });
    }

    /// The retransmission time-out (RFC 6298 §2).
    fn timeout(&self) -> Duration {
        let measured = |rtt: Rtt| rtt.smoothed + (rtt.variation * 4).max(GRANULARITY);
        self.rtt.map_or(FIRST_TIMEOUT, measured).clamp(FIRST_TIMEOUT, LONGEST_TIMEOUT)
    }

    /// Time to wait before probing the tail (RFC 8985 §7.2).
    fn patience(&self) -> Duration {
        let delay = if self.sent.bytes <= self.segment { DELAYED_ACK } else { GRANULARITY };
        let measured = |rtt: Rtt| rtt.smoothed * 2 + delay;
        self.rtt.map_or(FIRST_TIMEOUT, measured).min(self.timeout())
    }

    /// Takes for lost what was sent well before something that has arrived. True: some of it was
    /// sent after the window was last made smaller.
    fn lose_before(&mut self, now: Instant, last: &Sent) -> bool {
        // It may be the first time that arrived (RFC 8985 §6.2, step 2).
        if last.again && self.rtt.is_none_or(|rtt| now.since(last.at) < rtt.least) {
            return false;
        }
        let behind = u64::from(2 * self.segment);
        let earlier = self.rtt.map_or(Duration::MAX, |rtt| rtt.smoothed / 4);
        let is_lost = |piece: &Sent| {
            last.position > piece.position
                && (last.position - piece.position > behind || last.at.since(piece.at) > earlier)
        };
        let mut is_news = false;
        // If one piece is not lost, none is that was sent after it.
        while let Some(piece) = self.sent.pieces.front().filter(|piece| is_lost(piece)) {
            let range = piece.seq..piece.end;
            is_news |= piece.position > self.reduced;
            self.sent.take(0, range.end);
            self.note_lost(range);
        }
        is_news
    }

    /// Takes the first segment under way for lost, as [`lose_before`](Self::lose_before) does.
    fn lose_first(&mut self) -> bool {
        let pieces = self.sent.pieces.iter().enumerate();
        let first = pieces.reduce(|a, b| if b.1.seq.before(a.1.seq) { b } else { a });
        let Some((index, &Sent { seq, end, position, .. })) = first else { return false };
        let end = end.earlier(seq + self.segment);
        self.sent.take(index, end);
        self.note_lost(seq..end);
        position > self.reduced
    }

    fn note_lost(&mut self, range: Range<SeqNum>) {
        let place = self.lost.partition_point(|other| other.start.before(range.start));
        self.lost.insert(place, range);
    }

    /// A loss (RFC 5681 §3.1, equation 4); `under_way`: bytes, before it was found. It does not end
    /// slow start below half of what is missing: the path has carried that (RFC 7661 §4.4.3 keeps
    /// more, after an idle time).
    fn reduce(&mut self, under_way: u32, ack: SeqNum) {
        self.window = (under_way / 2).max(LEAST_WINDOW * self.segment);
        self.threshold = self.window.max(self.lacking(ack) / 2);
        self.acknowledged = 0;
        self.reduced = self.position;
    }

    /// Slow start and congestion avoidance in bytes (RFC 3465 §2.1, §2.2), if the window was full.
    fn grow(&mut self, under_way: u32, delivered: &Delivered) {
        let is_recovering = delivered.pieces.is_none_or(|(_, last)| last.position <= self.reduced);
        if is_recovering || under_way.saturating_add(self.segment) <= self.window {
            return;
        }
        if self.window < self.threshold {
            self.window = self.window.saturating_add(delivered.bytes);
            return;
        }
        self.acknowledged += delivered.bytes;
        if self.acknowledged >= self.window {
            self.acknowledged -= self.window;
            self.window += self.segment;
        }
    }

    /// Nothing was heard for a while: sends the first piece under way again. The round trip may be
    /// longer than was measured: the first answers to a replay may be to what was sent before it.
    /// Then each piece would be sent again before its answer comes, and the round trip never be
    /// measured. So it counts twice from now on, but for a second at most (RFC 6298 §5.5).
    fn probe<P: Payload>(
        &mut self,
        now: Instant,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) -> u64 {
        if let Some(rtt) = &mut self.rtt {
            rtt.smoothed = (rtt.smoothed * 2).min(FIRST_TIMEOUT).max(rtt.smoothed);
        }
        self.lose_first();
        self.send(now, self.segment..=self.segment, store, out)
    }
}
