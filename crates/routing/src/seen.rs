//! Requests that come again by another way.

use crate::NodeId;
use crate::node_map::hash;
use airtcp_core::Instant;

/// The requests that a node has seen, each for a while. Looking for one takes one cache line.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// A hash table with open addressing, at most half full; a power of two, or none.
    slots: Vec<Slot>,
    /// Number of slots taken, some by requests that have been forgotten since.
    taken: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    request: (NodeId, u32),
    /// Time at which it is forgotten; zero if the slot is empty.
    until: Instant,
}

impl Slot {
    const EMPTY: Self = Self { request: (NodeId(0), 0), until: Instant::ZERO };
}

impl Seen {
    /// Remembers a request until some time to come; false if it is known already.
    pub(crate) fn insert(&mut self, now: Instant, request: (NodeId, u32), until: Instant) -> bool {
        if 2 * (self.taken + 1) > self.slots.len() {
            self.forget(now);
        }
        let at = self.find(request);
        let slot = &mut self.slots[at];
        if slot.until > now {
            return false;
        }
        self.taken += usize::from(slot.until == Instant::ZERO);
        *slot = Slot { request, until };
        true
    }

    /// The slot of a request, or the one that it is to take.
    #[inline]
    fn find(&self, request: (NodeId, u32)) -> usize {
        let (NodeId(originator), id) = request;
        let mut at = hash((u64::from(originator) << 32) + u64::from(id), self.slots.len());
        loop {
            let slot = self.slots[at];
            if slot.request == request || slot.until == Instant::ZERO {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Makes room: removes what is no longer to be remembered.
    fn forget(&mut self, now: Instant) {
        let mut known = std::mem::take(&mut self.slots);
        known.retain(|slot| slot.until > now);
        self.taken = known.len();
        // So that as many can come as are there.
        self.slots = vec![Slot::EMPTY; (4 * known.len()).next_power_of_two().max(8)];
        for slot in known {
            let at = self.find(slot.request);
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Duration;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_request_is_known_until_it_is_forgotten(
            steps in proptest::collection::vec((0..20_u64, 0..9_u32, 0..9_u32), 0..500)
        ) {
            let mut seen = Seen::default();
            let mut known = BTreeMap::new();
            let mut now = Instant::ZERO;
            for (after, originator, id) in steps {
                now += Duration::from_millis(after);
                let until = now + Duration::from_millis(300);
                let new = known.get(&(originator, id)).is_none_or(|&until| until <= now);
                prop_assert_eq!(seen.insert(now, (NodeId(originator), id), until), new);
                if new {
                    known.insert((originator, id), until);
                }
            }
        }
    }
}
