//! The forwarding tables of all nodes of a network whose routes do not change.

use crate::{LinkId, NodeId};
use airtcp_core::IdVec;

/// The number of the link to take, for each node and each destination in use.
///
/// Memory is linear in the number of these entries: a host with one peer has one, whatever the size
/// of the network. Each node has a hash table with open addressing, hashed by the destination's
/// number. So consecutively numbered destinations, such as the hosts of a group, do not collide,
/// and a lookup is one read.
#[derive(Clone, Debug)]
pub struct NextHops {
    tables: IdVec<NodeId, Table>,
    entries: Vec<Entry>,
}

/// The entries `start` to `start + mask` of a node; `mask + 1` is a power of two.
#[derive(Clone, Copy, Debug)]
struct Table {
    start: u32,
    mask: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    destination: u32,
    link: LinkId,
}

impl Entry {
    /// No node has this number.
    const EMPTY: Self = Self { destination: u32::MAX, link: LinkId(u32::MAX) };
}

impl NextHops {
    /// Builds the tables of nodes 0 to `nodes` - 1 from triples of node, destination and link.
    /// Several triples for the same node and destination should name the same link, because any of
    /// them may be used.
    pub fn new(nodes: usize, mut routes: Vec<(NodeId, NodeId, LinkId)>) -> Self {
        routes.sort_unstable();
        routes.dedup();
        // The table of a node without routes.
        let mut entries = vec![Entry::EMPTY];
        let mut tables = IdVec::from(vec![Table { start: 0, mask: 0 }; nodes]);
        for routes in routes.chunk_by(|a, b| a.0 == b.0) {
            // At least a third stays empty, which ends a search.
            let size = (routes.len() * 3 / 2 + 1).next_power_of_two();
            let start = entries.len();
            entries.resize(start + size, Entry::EMPTY);
            for &(_, NodeId(destination), link) in routes {
                let mut at = destination as usize & (size - 1);
                while entries[start + at].destination != Entry::EMPTY.destination {
                    at = (at + 1) & (size - 1);
                }
                entries[start + at] = Entry { destination, link };
            }
            let table = Table { start: start as u32, mask: size as u32 - 1 };
            tables[routes[0].0] = table;
        }
        Self { tables, entries }
    }

    /// The link by which `node` sends packets for `destination`; `None` if there is no route, and
    /// for a node's packets to itself.
    #[inline]
    pub fn link(&self, node: NodeId, destination: NodeId) -> Option<LinkId> {
        let Table { start, mask } = self.tables[node];
        let mut at = destination.0 & mask;
        loop {
            let entry = self.entries[(start + at) as usize];
            if entry.destination == destination.0 {
                return Some(entry.link);
            }
            if entry.destination == Entry::EMPTY.destination {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// All routes: node, destination and link.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, NodeId, LinkId)> + '_ {
        self.tables.enumerated().flat_map(|(node, &Table { start, mask })| {
            let entries = &self.entries[start as usize..=(start + mask) as usize];
            let used = entries.iter().filter(|e| e.destination != Entry::EMPTY.destination);
            used.map(move |entry| (node, NodeId(entry.destination), entry.link))
        })
    }

    /// Renumbers the links.
    pub fn renumber(&mut self, mut number: impl FnMut(LinkId) -> LinkId) {
        let used = |entry: &&mut Entry| entry.destination != Entry::EMPTY.destination;
        self.entries.iter_mut().filter(used).for_each(|entry| entry.link = number(entry.link));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn finds_only_what_was_put_in(
            routes in proptest::collection::btree_map((0..5u32, 0..300u32), 0..9u32, 0..200)
        ) {
            let triple = |(&(node, to), &link): (&(u32, u32), &u32)| (NodeId(node), NodeId(to), LinkId(link));
            let next_hops = NextHops::new(5, routes.iter().map(triple).collect());
            let all: BTreeMap<_, _> = next_hops.iter().map(|(n, to, link)| ((n.0, to.0), link.0)).collect();
            prop_assert_eq!(&all, &routes);
            for (node, to) in (0..5).flat_map(|node| (0..300).map(move |to| (node, to))) {
                let found = next_hops.link(NodeId(node), NodeId(to));
                prop_assert_eq!(found.map(|link| link.0), routes.get(&(node, to)).copied());
            }
        }
    }

    #[test]
    fn hosts_that_talk_to_one_peer_cost_two_entries_each() {
        let hosts = 20_000;
        let routes =
            (0..hosts).map(|host| (NodeId(host), NodeId(hosts - 1 - host), LinkId(0))).collect();
        let next_hops = NextHops::new(hosts as usize, routes);
        assert_eq!(next_hops.entries.len(), 1 + 2 * hosts as usize);
    }

    #[test]
    fn links_get_other_numbers() {
        let routes = vec![(NodeId(0), NodeId(1), LinkId(7)), (NodeId(0), NodeId(2), LinkId(9))];
        let mut next_hops = NextHops::new(3, routes);
        let numbers = BTreeMap::from([(LinkId(7), LinkId(0)), (LinkId(9), LinkId(1))]);
        next_hops.renumber(|link| numbers[&link]);
        assert_eq!(next_hops.link(NodeId(0), NodeId(2)), Some(LinkId(1)));
    }
}
