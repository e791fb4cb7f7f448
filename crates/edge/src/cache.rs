//! Copies of the data segments a mobile has not acknowledged: M-TCP's packet queue (M-TCP §3.4.3),
//! M-TCP+'s FIFO (M-TCP+ §3.2), Snoop's cache.

use airtcp_core::{Bytes, Payload, Segment, SeqNum};
use airtcp_settings::schema::{Fallback, Field, Kind, field};
use serde::{Deserialize, Serialize};
use std::collections::{VecDeque, vec_deque};

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

/// Copies in the order of the stream, each with payload or FIN. There may be gaps between them.
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
    /// Sequence numbers and ends both increase: no copy lies inside another.
    copies: VecDeque<Segment<P>>,
    /// Payload bytes of all copies.
    bytes: usize,
}

impl<P> Default for SegmentCache<P> {
    fn default() -> Self {
        Self { copies: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Payload> TryFrom<Vec<Segment<P>>> for SegmentCache<P> {
    type Error = &'static str;
    fn try_from(list: Vec<Segment<P>>) -> Result<Self, Self::Error> {
        let (len, mut cache) = (list.len(), Self::default());
        list.into_iter().for_each(|copy| cache.push(copy));
        (cache.len() == len).then_some(cache).ok_or("copies that lie inside others")
    }
}

impl<P> From<SegmentCache<P>> for Vec<Segment<P>> {
    fn from(cache: SegmentCache<P>) -> Self {
        cache.copies.into()
    }
}

impl<P: Payload> SegmentCache<P> {
    /// Adds a copy at its place in the stream, unless [all of it is held](Self::holds) already.
    pub fn push(&mut self, copy: Segment<P>) {
        if self.holds(&copy) {
            return;
        }
        self.bytes += copy.payload.len();
        let place = self.copies.iter().rposition(|held| held.seq.before(copy.seq));
        let place = place.map_or(0, |before| before + 1);
        // Copies that lie inside the new one would break the order of ends.
        while let Some(inside) = self.copies.get(place)
            && inside.seq_end().at_or_before(copy.seq_end())
        {
            self.bytes -= inside.payload.len();
            self.copies.remove(place);
        }
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
        self.walk(from, |copy| copy.seq + copy.payload.len() as u32)
    }

    /// Walks from copy to copy as long as there is no gap.
    fn walk(&self, from: SeqNum, end: impl Fn(&Segment<P>) -> SeqNum) -> SeqNum {
        let mut reached = from;
        for copy in &self.copies {
            if copy.seq.after(reached) {
                break;
            }
            reached = reached.later(end(copy));
        }
        reached
    }

    /// Removes what `ack` acknowledges.
    pub fn acknowledge(&mut self, ack: SeqNum) {
        while let Some(first) = self.copies.front()
            && first.seq_end().at_or_before(ack)
        {
            self.bytes -= first.payload.len();
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
        self.bytes
    }

    /// Copies held.
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// True without copies.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
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
    fn a_copy_that_spans_others_takes_their_place() {
        let cache = cache(&[(0, 10), (12, 3), (30, 10), (5, 20)]);
        assert_eq!(pieces(&cache), [(0, 10), (5, 20), (30, 10)]);
        assert_eq!(cache.bytes(), 40);
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
        fn every_byte_pushed_and_not_acknowledged_is_held_once_or_more(
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
                for (a, b) in cache.iter().zip(cache.iter().skip(1)) {
                    prop_assert!(b.seq.after(a.seq) && b.seq_end().after(a.seq_end()));
                }
            }
        }
    }
}
