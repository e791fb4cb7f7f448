//! What mechanisms that send data again keep of a connection: copies of the data under way to the
//! mobile, and both ends.

use crate::conntrack::peers::Peers;
use crate::conntrack::validate::{Conntracked, Established, Holding, ValidPacket, Windows, close};
use crate::hold::cache::SegmentCache;
use crate::middlebox::{Actions, Side};
use airtcp_core::{Bytes, Duration, Flags, Flow, Instant, Payload, Segment, SeqNum};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A copy may hold several segments, as a live gateway sees them, which cuts them to the mobile's
/// MSS. Whatever counts segments takes each to have this much data and options (RFC 6928 §2:
/// Ethernet's).
pub(crate) const LONGEST_SEGMENT: u32 = 1460;

/// Bytes of a copy's data that fit into one segment. Options take room in each (RFC 6691 §2), but
/// what came in one segment goes out in one.
fn room<P: Payload>(copy: &Segment<P>) -> u32 {
    let is_one = copy.payload.len() <= LONGEST_SEGMENT as usize;
    let options = if is_one { 0 } else { copy.options.encoded_len() as u32 };
    LONGEST_SEGMENT - options
}

/// Copies with what is needed to send them again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound(
    serialize = "P: Payload + Serialize",
    deserialize = "P: Payload + Deserialize<'de>"
))]
pub struct Store<P> {
    /// Both peers of the connection.
    pub peers: Peers,
    copies: SegmentCache<P>,
}

/// Outcome of [`Store::keep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was copied.
    New,
    /// There is nothing new in it: the mobile has it, it is held, or it is not data.
    Old,
    /// There is no room for it.
    NoRoom,
}

impl<P: Payload> Established<P> for Store<P> {
    fn new(flow: Flow, windows: Windows) -> Self {
        Self { peers: Peers::new(flow, windows), copies: SegmentCache::default() }
    }

    fn challenge(
        &mut self,
        now: Instant,
        ack_sent: SeqNum,
        interval: Duration,
    ) -> Option<Segment<P>> {
        self.peers.challenge(now, ack_sent, interval)
    }
}

impl<P> AsRef<Windows> for Store<P> {
    fn as_ref(&self) -> &Windows {
        self.peers.windows()
    }
}

impl<P: Payload> Holding for Store<P> {
    fn held(&self) -> usize {
        self.copies.bytes()
    }
}

/// Ends a connection that the fixed host has reset, and tells the mobile, as soon as that has all
/// that was held for it.
pub(crate) fn close_if_reset<P: Payload, C: Conntracked<P, Established = Store<P>>>(
    connection: &mut C,
    has_all: impl FnOnce(&C) -> bool,
    out: &mut Actions<P>,
) {
    if connection.conntrack().is_reset()
        && has_all(connection)
        && let Some(store) = &connection.conntrack().established
    {
        out.inject(Side::Mobile, store.peers.reset_mobile());
        close(connection);
    }
}

impl<P: Payload> Store<P> {
    /// Keeps a copy of new data and FIN, if this connection then holds `fifo` at most and all
    /// together at most `room` more.
    pub fn keep(&mut self, segment: &ValidPacket<P>, fifo: Bytes, room: u64) -> Kept {
        let has_data = !segment.payload.is_empty() || segment.flags.contains(Flags::FIN);
        let (end, ack) = (segment.seq_end(), self.peers.mobile_ack());
        // A retransmission may begin before what the mobile lacks (M-TCP acknowledges one byte
        // less).
        let rest_is_held = || segment.seq.before(ack) && self.data_end().at_or_after(end);
        if !has_data || end.at_or_before(ack) || self.copies.holds(segment) || rest_is_held() {
            return Kept::Old;
        }
        let len = segment.payload.len() as u64;
        if self.held() as u64 + len > fifo.get() || len > room {
            return Kept::NoRoom;
        }
        self.copies.push(Segment::clone(segment));
        Kept::New
    }

    /// The mobile has not acknowledged all of this data.
    pub fn lacks(&self, segment: &Segment<P>) -> bool {
        segment.seq_len() > 0 && segment.seq_end().after(self.peers.mobile_ack())
    }

    /// Takes note of a segment, and frees what the mobile acknowledges.
    pub fn note(&mut self, from: Side, segment: &ValidPacket<P>) {
        self.peers.note(from, segment);
        if from == Side::Mobile {
            self.copies.acknowledge(self.peers.mobile_ack());
        }
    }

    /// Sends a segment of the fixed host on to the mobile.
    pub fn forward(&mut self, segment: ValidPacket<P>, out: &mut Actions<P>) {
        self.peers.note_passed(segment.options.timestamps);
        out.forward(Side::Mobile, segment.into_segment());
    }

    /// The end of the data that the mobile has acknowledged or the node holds, without a gap and
    /// without FIN.
    pub fn data_end(&self) -> SeqNum {
        self.copies.data_end(self.peers.mobile_ack())
    }

    /// True if the next byte that the mobile expects is held.
    pub fn holds_next(&self) -> bool {
        self.copies.first().is_some_and(|first| first.seq.at_or_before(self.peers.mobile_ack()))
    }

    /// The end of the last copy.
    pub fn end(&self) -> Option<SeqNum> {
        self.copies.end()
    }

    /// The fixed host has sent again what the mobile had reported missing. If that is ever
    /// acknowledged, it is the retransmission that arrived: with the first one's TSval the sender
    /// would take its retransmission for needless (RFC 3522), and undo a reduction that was right.
    pub fn note_repair(&mut self, again: &Segment<P>) {
        self.copies.redate(again);
    }

    /// The TSval to echo with an ACK of all that is held, as a receiver does that delays its ACK:
    /// that of the first segment acknowledged (RFC 7323 §4.3).
    pub fn first_tsval(&self) -> Option<u32> {
        self.copies.first()?.options.timestamps.map(|timestamps| timestamps.value)
    }

    /// Sends the mobile all copies; how many.
    pub fn replay(&mut self, out: &mut Actions<P>) -> u64 {
        for copy in self.copies.iter() {
            out.inject(Side::Mobile, self.peers.renewed(copy));
        }
        self.copies.len() as u64
    }

    /// Sends the mobile the first segment that is held and that it lacks; how many (none without
    /// copies).
    pub fn resend_first(&mut self, out: &mut Actions<P>) -> u64 {
        let Some(end) = self.end() else { return 0 };
        let most = self.copies.first().map_or(LONGEST_SEGMENT, room);
        let lacking = self.peers.mobile_ack()..end;
        u64::from(self.send(lacking, most, out).is_some())
    }

    /// Sends the mobile what is held first in a range, of one copy and at most so many bytes; what
    /// that was.
    pub fn send(
        &mut self,
        range: Range<SeqNum>,
        most: u32,
        out: &mut Actions<P>,
    ) -> Option<Range<SeqNum>> {
        let piece = self.copies.piece(range, most)?;
        let sent = piece.seq..piece.seq_end();
        out.inject(Side::Mobile, self.peers.renewed(&piece));
        Some(sent)
    }

    /// Payload bytes of a segment: as many as the longest copy has, or as fit into one.
    pub fn segment(&self) -> u32 {
        let longest =
            self.copies.iter().map(|copy| room(copy).min(copy.payload.len() as u32)).max();
        longest.unwrap_or_default().max(1)
    }

    /// Nothing is held.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Number of copies held.
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// Gives up the copies.
    pub fn clear(&mut self) {
        self.copies = SegmentCache::default();
    }
}
