//! A map whose keys are nodes.

use crate::NodeId;

/// Values of nodes, in the order in which they came. In a large network it lies in memory that the
/// processor has to wait for: finding a value takes two cache lines, a slot's and the value's.
#[derive(Debug)]
pub(crate) struct NodeMap<V> {
    entries: Vec<Entry<V>>,
    /// Places of the entries: a hash table with open addressing, at most half full; its size is a
    /// power of two, or zero.
    slots: Vec<Slot>,
}

#[derive(Debug)]
#[repr(align(64))]
struct Entry<V> {
    node: NodeId,
    value: V,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    node: NodeId,
    /// Its place among the entries, or [`Slot::EMPTY`]'s.
    place: u32,
}

impl Slot {
    const EMPTY: Self = Self { node: NodeId(u32::MAX), place: u32::MAX };
}

impl<V> NodeMap<V> {
    /// An empty map.
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), slots: Vec::new() }
    }

    pub(crate) fn get(&self, node: NodeId) -> Option<&V> {
        let place = self.place(node)?;
        Some(&self.entries[place].value)
    }

    pub(crate) fn get_mut(&mut self, node: NodeId) -> Option<&mut V> {
        let place = self.place(node)?;
        Some(&mut self.entries[place].value)
    }

    /// Sets the value of a node.
    pub(crate) fn insert(&mut self, node: NodeId, value: V) {
        match self.place(node) {
            Some(place) => self.entries[place].value = value,
            None => {
                self.push(node, value);
            }
        }
    }

    /// The value of a node, which becomes `value()` if it has none.
    pub(crate) fn get_or_insert_with(&mut self, node: NodeId, value: impl FnOnce() -> V) -> &mut V {
        let place = self.place(node).unwrap_or_else(|| self.push(node, value()));
        &mut self.entries[place].value
    }

    /// All values, each with its node.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut V)> {
        self.entries.iter_mut().map(|entry| (entry.node, &mut entry.value))
    }

    /// Removes the values for which `keep` returns false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        let before = self.entries.len();
        self.entries.retain(|entry| keep(&entry.value));
        if self.entries.len() < before {
            self.enter_all();
        }
    }

    /// Adds the value of a node that has none, and returns its place.
    fn push(&mut self, node: NodeId, value: V) -> usize {
        let place = self.entries.len();
        self.entries.push(Entry { node, value });
        if 2 * self.entries.len() > self.slots.len() {
            self.enter_all();
        } else {
            self.enter(place);
        }
        place
    }

    #[inline]
    fn place(&self, node: NodeId) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = hash(u64::from(node.0), self.slots.len());
        loop {
            let slot = self.slots[at];
            if slot.place == Slot::EMPTY.place {
                return None;
            }
            if slot.node == node {
                return Some(slot.place as usize);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Enters all entries into slots, of which there are then enough.
    fn enter_all(&mut self) {
        let size = (2 * self.entries.len()).next_power_of_two().max(self.slots.len());
        self.slots.clear();
        self.slots.resize(size, Slot::EMPTY);
        (0..self.entries.len()).for_each(|place| self.enter(place));
    }

    fn enter(&mut self, place: usize) {
        let node = self.entries[place].node;
        let mut at = hash(u64::from(node.0), self.slots.len());
        while self.slots[at].place != Slot::EMPTY.place {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = Slot { node, place: place as u32 };
    }
}

/// The slot at which the search for a key begins, one of `slots`, a power of two: the upper bits of
/// the key's product with the golden ratio (Knuth, The Art of Computer Programming 3, §6.4).
#[inline]
pub(crate) fn hash(key: u64, slots: usize) -> usize {
    let product = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> 32) as usize & (slots - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn finds_what_was_put_in_and_kept(
            steps in proptest::collection::vec((0..200_u32, 0..100_u32), 0..200)
        ) {
            let mut map = NodeMap::new();
            let mut expected = BTreeMap::new();
            for (node, value) in steps {
                if value > 50 {
                    let value = *map.get_or_insert_with(NodeId(node), || value);
                    prop_assert_eq!(value, *expected.entry(node).or_insert(value));
                } else if value < 3 {
                    map.retain(|kept| kept % 3 == value);
                    expected.retain(|_, kept| *kept % 3 == value);
                } else {
                    map.insert(NodeId(node), value);
                    expected.insert(node, value);
                }
                for node in 0..200 {
                    prop_assert_eq!(map.get(NodeId(node)), expected.get(&node));
                }
                let mut all: Vec<_> = map.iter_mut().map(|(node, value)| (node.0, *value)).collect();
                all.sort_unstable();
                prop_assert_eq!(all, expected.clone().into_iter().collect::<Vec<_>>());
            }
        }
    }
}
