//! Requests that come again by another way.

use crate::NodeId;
use airtcp_core::Instant;
use std::collections::{BTreeSet, VecDeque};

/// The requests that a node has seen, each for a while.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    known: BTreeSet<(NodeId, u32)>,
    oldest_first: VecDeque<(Instant, (NodeId, u32))>,
}

impl Seen {
    /// Remembers a request; false if it is known already.
    pub(crate) fn insert(&mut self, now: Instant, request: (NodeId, u32), until: Instant) -> bool {
        while let Some((_, old)) = self.oldest_first.front().filter(|(until, _)| *until <= now) {
            self.known.remove(old);
            self.oldest_first.pop_front();
        }
        let new = self.known.insert(request);
        if new {
            self.oldest_first.push_back((until, request));
        }
        new
    }
}
