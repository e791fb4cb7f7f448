//! Entries of a table without a reply (`UNREPLIED` in nf_conntrack). A scan, or a forger, makes
//! many of them, so they make room for others, the oldest first (as by `early_drop`).

use std::collections::VecDeque;

/// Keys of a table's entries, in the order in which they entered. Some may have been answered, or
/// have left, since: each call takes a predicate for those that still count.
#[derive(Clone, Debug)]
pub(crate) struct Unreplied<K>(VecDeque<K>);

impl<K> Default for Unreplied<K> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K> Unreplied<K> {
    /// Another entry, in a table of `limit` at most. Those that no longer count leave.
    pub(crate) fn push(&mut self, key: K, limit: usize, counts: impl Fn(&K) -> bool) {
        self.drop_first(&counts);
        if self.0.len() > limit {
            self.0.retain(counts);
        }
        self.0.push_back(key);
    }

    /// Takes out the oldest that counts.
    pub(crate) fn pop(&mut self, counts: impl Fn(&K) -> bool) -> Option<K> {
        self.drop_first(&counts);
        self.0.pop_front()
    }

    /// The first one counts then.
    fn drop_first(&mut self, counts: &impl Fn(&K) -> bool) {
        while self.0.front().is_some_and(|key| !counts(key)) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_counts_is_first() {
        let mut unreplied = Unreplied::default();
        (1..=4).for_each(|key| unreplied.push(key, 10, |_| true));
        let is_even = |key: &i32| key % 2 == 0;
        assert_eq!([(); 3].map(|()| unreplied.pop(is_even)), [Some(2), Some(4), None]);
    }

    #[test]
    fn those_that_no_longer_count_do_not_pile_up() {
        let mut unreplied = Unreplied::default();
        (0..1000).for_each(|key| unreplied.push(key, 10, |_| false));
        assert_eq!(unreplied.0.len(), 1);
        // Behind one that stays.
        let mut unreplied = Unreplied::default();
        (0..1000).for_each(|key| unreplied.push(key, 10, |&key| key == 0));
        assert!(unreplied.0.len() <= 12);
    }
}
