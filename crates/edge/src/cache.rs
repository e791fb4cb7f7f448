//! Copies of the data segments a mobile has not acknowledged: M-TCP's packet queue (M-TCP §3.4.3), M-TCP+'s
//! FIFO (M-TCP+ §3.2), Snoop's cache.

use airtcp_core::{Payload, Segment, SeqNum};
use std::collections::{VecDeque, vec_deque};

/// Copies in the order of the stream, each with payload or FIN.
///
/// A copy leaves when it is acknowledged to its end; one that is acknowledged in part stays whole, and the
/// receiver trims it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentCache<P> {
    copies: VecDeque<Segment<P>>,
    /// Payload bytes of all copies.
    bytes: usize,
}

impl<P> Default for SegmentCache<P> {
    fn default() -> Self {
        Self { copies: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Payload> SegmentCache<P> {
    /// Adds a copy behind the others. It must end after the last one does.
    pub fn push(&mut self, copy: Segment<P>) {
        debug_assert!(self.end().is_none_or(|end| copy.seq_end().after(end)));
        self.bytes += copy.payload.len();
        self.copies.push_back(copy);
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
