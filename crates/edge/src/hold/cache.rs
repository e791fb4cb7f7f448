//! Copies of the data segments a mobile has not acknowledged: M-TCP's packet queue (M-TCP §3.4.3),
//! M-TCP+'s FIFO (M-TCP+ §3.2), Snoop's cache.

use airtcp_core::{Bytes, Flags, Payload, Segment, SeqNum};
use airtcp_settings::schema::{Fallback, Field, Kind, field};
use serde::{Deserialize, Serialize};
use std::collections::{VecDeque, vec_deque};
use std::ops::Range;

/// `fifo`, for mechanisms that keep copies.
pub(crate) const FIFO: Field = field(
    "fifo",
    Kind::Size { min: 1, max: u64::MAX },
    Fallback::Required,
    "Copies kept for one connection, bytes of user data; at least a segment. What does not fit is \
     forwarded without a copy.",
)
.source("M-TCP+ §3");

/// The largest window without scaling (RFC 7323 §2.2), in whole KiB.
pub(crate) const DEFAULT_FIFO: Bytes = Bytes(64 << 10);

/// Copies in the order of the stream, each with payload or FIN. There may be gaps between them, but
/// no byte is held twice: the first copy of it stays, whatever comes later in its place.
///
/// A copy leaves when it is acknowledged to its end; one that is acknowledged in part stays whole,
/// and the receiver trims it. All sequence numbers in one cache must lie within half the sequence
/// space.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(
    try_from = "Vec<Segment<P>>",
    into = "Vec<Segment<P>>",
    bound(serialize = "P: Payload + Serialize", deserialize = "P: Payload + Deserialize<'de>")
)]
pub struct SegmentCache<P> {
    /// No copy begins before the end of the one in front of it.
    copies: VecDeque<Segment<P>>,
    /// Payload bytes of all copies. They lie within half the sequence space.
    bytes: u32,
    /// Number of copies behind a gap; the first is never counted.
    gaps: u32,
}

/// 1 if there is a gap between the data of two neighbours, else 0. A FIN between them is a gap,
/// too.
fn gap<P: Payload>(before: Option<&Segment<P>>, after: Option<&Segment<P>>) -> u32 {
    let is_gap = before.zip(after).is_some_and(|(before, after)| after.seq.after(data_end(before)));
    u32::from(is_gap)
}

fn data_end<P: Payload>(copy: &Segment<P>) -> SeqNum {
    copy.seq + copy.payload.len() as u32
}

impl<P> Default for SegmentCache<P> {
    fn default() -> Self {
        Self { copies: VecDeque::new(), bytes: 0, gaps: 0 }
    }
}

impl<P: Payload> TryFrom<Vec<Segment<P>>> for SegmentCache<P> {
    type Error = &'static str;
    fn try_from(list: Vec<Segment<P>>) -> Result<Self, Self::Error> {
        let in_order = |pair: &[Segment<P>]| pair[0].seq_end().at_or_before(pair[1].seq);
        if !list.windows(2).all(in_order) {
            return Err("copies that overlap or are out of order");
        }
        let bytes = list.iter().map(|copy| copy.payload.len() as u32).sum();
        let gaps = list.windows(2).map(|pair| gap(pair.first(), pair.last())).sum();
        Ok(Self { copies: list.into(), bytes, gaps })
    }
}

impl<P> From<SegmentCache<P>> for Vec<Segment<P>> {
    fn from(cache: SegmentCache<P>) -> Self {
        cache.copies.into()
    }
}

impl<P: Payload> SegmentCache<P> {
    /// Adds what is not held yet of a copy, at its place in the stream.
    pub fn push(&mut self, copy: Segment<P>) {
        if self.end().is_none_or(|last| last.at_or_before(copy.seq)) {
            return self.insert(self.copies.len(), copy);
        }
        let end = copy.seq_end();
        let mut from = copy.seq;
        let mut place = self.copies.partition_point(|held| held.seq_end().at_or_before(from));
        while from.before(end) {
            let held = self.copies.get(place).map(|held| (held.seq, held.seq_end()));
            let to = held.map_or(end, |(seq, _)| seq.earlier(end));
            if to.after(from) {
                self.insert(place, piece(&copy, from, to));
                place += 1;
            }
            from = held.map_or(end, |(_, end)| end);
            place += 1;
        }
    }

    fn insert(&mut self, place: usize, copy: Segment<P>) {
        let before = place.checked_sub(1).and_then(|before| self.copies.get(before));
        let after = self.copies.get(place);
        self.gaps += gap(before, Some(&copy)) + gap(Some(&copy), after);
        self.gaps -= gap(before, after);
        self.bytes += copy.payload.len() as u32;
        self.copies.insert(place, copy);
    }

    /// All of this segment's data (and its FIN) is held, in whatever pieces.
    pub fn holds(&self, segment: &Segment<P>) -> bool {
        let end = segment.seq_end();
        self.end().is_some_and(|last| last.at_or_after(end))
            && self.walk(segment.seq, Segment::seq_end).at_or_after(end)
    }

    /// Up to where the stream is held without a gap, from `from` on; data only, a FIN does not
    /// count.
    pub fn data_end(&self, from: SeqNum) -> SeqNum {
        self.walk(from, data_end)
    }

    /// Walks from copy to copy as long as there is no gap.
    fn walk(&self, from: SeqNum, end: impl Fn(&Segment<P>) -> SeqNum) -> SeqNum {
        if self.gaps == 0
            && let (Some(first), Some(last)) = (self.copies.front(), self.copies.back())
            && first.seq.at_or_before(from)
        {
            return from.later(end(last));
        }
        let mut reached = from;
        for copy in &self.copies {
            if copy.seq.after(reached) {
                break;
            }
            reached = reached.later(end(copy));
        }
        reached
    }

    /// The copies of what this segment brings again have its timestamps from now on.
    pub fn redate(&mut self, again: &Segment<P>) {
        let Some(timestamps) = again.options.timestamps else { return };
        let (start, end) = (again.seq, again.seq_end());
        let place = self.copies.partition_point(|held| held.seq_end().at_or_before(start));
        let covered = self.copies.range_mut(place..).take_while(|held| held.seq.before(end));
        for dated in covered.filter_map(|held| held.options.timestamps.as_mut()) {
            *dated = timestamps;
        }
    }

    /// Removes what `ack` acknowledges.
    pub fn acknowledge(&mut self, ack: SeqNum) {
        while let Some(first) = self.copies.front()
            && first.seq_end().at_or_before(ack)
        {
            self.bytes -= first.payload.len() as u32;
            self.gaps -= gap(Some(first), self.copies.get(1));
            self.copies.pop_front();
        }
        if self.copies.is_empty() {
            // An idle connection holds no memory.
            self.copies = VecDeque::new();
        }
    }

    /// The first copy: what the mobile waits for.
    pub fn first(&self) -> Option<&Segment<P>> {
        self.copies.front()
    }

    /// The first bytes held in a range: of one copy, and at most `most`.
    pub fn piece(&self, range: Range<SeqNum>, most: u32) -> Option<Segment<P>> {
        let place = self.copies.partition_point(|held| held.seq_end().at_or_before(range.start));
        let copy = self.copies.get(place)?;
        let from = range.start.later(copy.seq);
        let to = copy.seq_end().earlier(range.end);
        to.after(from).then(|| piece(copy, from, from + to.bytes_after(from).min(most)))
    }

    /// All copies, first one first.
    pub fn iter(&self) -> vec_deque::Iter<'_, Segment<P>> {
        self.copies.iter()
    }

    /// The sequence number after the last copy.
    pub fn end(&self) -> Option<SeqNum> {
        self.copies.back().map(Segment::seq_end)
    }

    /// Payload bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Number of copies held.
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// True without copies.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }
}

/// The part of a segment from one number to another, both within it.
fn piece<P: Payload>(segment: &Segment<P>, from: SeqNum, to: SeqNum) -> Segment<P> {
    if from == segment.seq && to == segment.seq_end() {
        return segment.clone();
    }
    let (start, len) = (from.bytes_after(segment.seq) as usize, segment.payload.len());
    let end = (to.bytes_after(segment.seq) as usize).min(len);
    let mut flags = segment.flags;
    if to != segment.seq_end() {
        flags -= Flags::FIN | Flags::PSH;
    }
    Segment {
        seq: from,
        flags,
        payload: segment.payload.slice(start.min(end), end.saturating_sub(start)),
        ..segment.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Flags, Length};
    use proptest::prelude::*;

    fn segment(seq: SeqNum, len: u64) -> Segment<Length> {
        Segment { seq, payload: Length(len), ..Segment::default() }
    }

    /// Pieces `(start, length)` of a stream that begins just before the wraparound.
    const ORIGIN: SeqNum = SeqNum(u32::MAX - 20);

    fn cache(pieces: &[(u32, u64)]) -> SegmentCache<Length> {
        let mut cache = SegmentCache::default();
        for &(start, len) in pieces {
            cache.push(segment(ORIGIN + start, len));
        }
        cache
    }

    fn pieces(cache: &SegmentCache<Length>) -> Vec<(u32, u64)> {
        cache.iter().map(|copy| ((copy.seq.0).wrapping_sub(ORIGIN.0), copy.payload.0)).collect()
    }

    #[test]
    fn copies_stand_in_the_order_of_the_stream() {
        let cache = cache(&[(0, 10), (30, 10), (10, 10)]);
        assert_eq!(pieces(&cache), [(0, 10), (10, 10), (30, 10)]);
        assert_eq!((cache.bytes(), cache.len(), cache.end()), (30, 3, Some(ORIGIN + 40)));
    }

    #[test]
    fn what_is_held_already_is_not_held_twice() {
        let cache = cache(&[(0, 10), (10, 10), (0, 10), (5, 15)]);
        assert_eq!(pieces(&cache), [(0, 10), (10, 10)]);
    }

    #[test]
    fn of_a_copy_that_spans_others_only_what_is_between_them_is_added() {
        let cache = cache(&[(0, 10), (12, 3), (30, 10), (5, 20)]);
        assert_eq!(pieces(&cache), [(0, 10), (10, 2), (12, 3), (15, 10), (30, 10)]);
        assert_eq!(cache.bytes(), 35);
    }

    #[test]
    fn the_first_copy_of_a_byte_stays() {
        let write = |seq: u32, text: &str| Segment {
            seq: ORIGIN + seq,
            payload: text.as_bytes().to_vec(),
            flags: Flags::FIN,
            ..Segment::default()
        };
        let without_fin = |segment| Segment { flags: Flags::empty(), ..segment };
        let mut cache = SegmentCache::default();
        cache.push(without_fin(write(0, "abc")));
        cache.push(without_fin(write(6, "ghi")));
        cache.push(write(0, "FORGED BYTES"));
        let text: Vec<u8> = cache.iter().flat_map(|copy| copy.payload.clone()).collect();
        assert_eq!(String::from_utf8_lossy(&text), "abcGEDghiTES");
        let fins = cache.iter().map(|copy| copy.flags == Flags::FIN).collect::<Vec<_>>();
        assert_eq!(fins, [false, false, false, true]);
        assert_eq!(cache.end(), Some(ORIGIN + 13));
    }

    #[test]
    fn data_ends_at_the_first_gap() {
        let cache = cache(&[(10, 10), (20, 10), (31, 10)]);
        assert_eq!(cache.data_end(ORIGIN + 10), ORIGIN + 30);
        assert_eq!(cache.data_end(ORIGIN + 15), ORIGIN + 30);
        assert_eq!(cache.data_end(ORIGIN + 5), ORIGIN + 5, "the first bytes are missing");
        assert_eq!(cache.data_end(ORIGIN + 31), ORIGIN + 41);
    }

    #[test]
    fn a_fin_is_held_but_is_no_data() {
        let mut cache = cache(&[(0, 10)]);
        let fin = Segment { flags: Flags::FIN, ..segment(ORIGIN + 10, 5) };
        assert!(!cache.holds(&fin));
        cache.push(fin.clone());
        assert!(cache.holds(&fin));
        assert_eq!(cache.data_end(ORIGIN), ORIGIN + 15);
        assert_eq!(cache.end(), Some(ORIGIN + 16));
        cache.acknowledge(ORIGIN + 15);
        assert_eq!(cache.len(), 1);
        cache.acknowledge(ORIGIN + 16);
        assert!(cache.is_empty());
    }

    #[test]
    fn a_copy_leaves_when_it_is_acknowledged_to_its_end() {
        let mut cache = cache(&[(0, 10), (10, 10)]);
        cache.acknowledge(ORIGIN + 9);
        assert_eq!(cache.len(), 2);
        cache.acknowledge(ORIGIN + 10);
        assert_eq!(cache.first().map(|first| first.seq), Some(ORIGIN + 10));
        assert_eq!(cache.bytes(), 10);
    }

    proptest! {
        #[test]
        fn every_byte_pushed_and_not_acknowledged_is_held_once(
            isn: u32,
            steps in proptest::collection::vec((0u32..60, 1u64..20, prop::option::weighted(0.2, 0u32..80)), 1..30),
        ) {
            let origin = SeqNum(isn);
            let mut cache = SegmentCache::default();
            let (mut pushed, mut acked) = ([false; 80], 0usize);
            for (start, len, ack) in steps {
                // As the mechanisms do: what was acknowledged is not copied.
                if start as usize + len as usize > acked {
                    cache.push(segment(origin + start, len));
                    pushed[start as usize..][..len as usize].fill(true);
                }
                if let Some(ack) = ack {
                    acked = acked.max(ack as usize);
                    cache.acknowledge(origin + acked as u32);
                }
                let gap = (acked..80).find(|&i| !pushed[i]).unwrap_or(80);
                prop_assert_eq!(cache.data_end(origin + acked as u32), origin + gap as u32);
                prop_assert_eq!(cache.bytes(), cache.iter().map(|c| c.payload.len()).sum::<usize>());
                let anew = SegmentCache::try_from(cache.iter().cloned().collect::<Vec<_>>());
                prop_assert_eq!(Ok(cache.clone()), anew);
                for (a, b) in cache.iter().zip(cache.iter().skip(1)) {
                    prop_assert!(b.seq.at_or_after(a.seq_end()), "no byte twice");
                }
            }
        }
    }
}
