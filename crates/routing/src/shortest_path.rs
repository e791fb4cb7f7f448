//! Static routes by hop count, over wired and wireless links alike.
//!
//! A link here is anything that leads from one node to another. Among equally short paths a node
//! takes its first link in the order given, so it has one next hop per destination. Only the routes
//! that the given pairs of nodes use are kept: memory is linear in the length of their paths, not
//! quadratic in the number of nodes. Leaf nodes (one neighbour) send by their only link and take no
//! part in the search.

use crate::{LinkId, NextHops, NodeId};
use std::collections::VecDeque;

/// A link from a node to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node it starts at.
    pub from: NodeId,
    /// The node it leads to.
    pub to: NodeId,
}

/// The routes from the first to the second node of each pair, in a network of nodes 0 to `nodes` -
/// 1. A pair without a path has no route, and neither has a node to itself.
pub fn shortest_paths(nodes: usize, links: &[Link], pairs: &[(NodeId, NodeId)]) -> NextHops {
    let graph = Graph::new(nodes, links);
    let mut legs: Vec<Leg> = pairs.iter().filter_map(|&(from, to)| graph.leg(from, to)).collect();
    // Destination by destination, so that one distance table is enough.
    legs.sort_by_key(|leg| leg.to);
    let mut search = Search::default();
    let mut routes = Vec::new();
    let mut path = Vec::new();
    for Leg { destination, first, from, to, last } in legs {
        path.clear();
        path.extend(first);
        if from == to || search.walk(&graph, from, to, &mut path) {
            path.extend(last);
            let route = |&link: &u32| (graph.link(link).from, destination, LinkId(link));
            routes.extend(path.iter().map(route));
        }
    }
    NextHops::new(nodes, routes)
}

/// A path without the links of leaf nodes at its ends.
struct Leg {
    destination: NodeId,
    first: Option<u32>,
    from: NodeId,
    to: NodeId,
    last: Option<u32>,
}

/// Links grouped by node: those of node `n` are `links[start[n]..start[n + 1]]`, ascending.
struct Adjacency {
    start: Vec<u32>,
    links: Vec<u32>,
}

impl Adjacency {
    fn new(nodes: usize, links: impl Iterator<Item = (u32, NodeId)> + Clone) -> Self {
        let mut start = vec![0; nodes + 1];
        for (_, node) in links.clone() {
            start[node.0 as usize + 1] += 1;
        }
        for n in 0..nodes {
            start[n + 1] += start[n];
        }
        let mut free = start.clone();
        let mut grouped = vec![0; start[nodes] as usize];
        for (link, node) in links {
            grouped[free[node.0 as usize] as usize] = link;
            free[node.0 as usize] += 1;
        }
        Self { start, links: grouped }
    }
    fn of(&self, node: NodeId) -> &[u32] {
        let n = node.0 as usize;
        &self.links[self.start[n] as usize..self.start[n + 1] as usize]
    }
}

/// The network: which nodes are leaves, and the links between the others.
struct Graph<'a> {
    links: &'a [Link],
    /// For each leaf, its only outgoing and its only incoming link.
    leaves: Vec<Option<(u32, u32)>>,
    outgoing: Adjacency,
    incoming: Adjacency,
}

impl<'a> Graph<'a> {
    fn new(nodes: usize, links: &'a [Link]) -> Self {
        let all = || (0..).zip(links);
        let outgoing = Adjacency::new(nodes, all().map(|(i, l)| (i, l.from)));
        let incoming = Adjacency::new(nodes, all().map(|(i, l)| (i, l.to)));
        let leaf = |n| match (outgoing.of(NodeId(n)), incoming.of(NodeId(n))) {
            (&[o], &[i]) if links[o as usize].to == links[i as usize].from => Some((o, i)),
            _ => None,
        };
        let leaves: Vec<Option<(u32, u32)>> = (0..nodes as u32).map(leaf).collect();
        let inner = |n: NodeId| leaves[n.0 as usize].is_none();
        let between = || all().filter(|(_, l)| inner(l.from) && inner(l.to));
        let outgoing = Adjacency::new(nodes, between().map(|(i, l)| (i, l.from)));
        let incoming = Adjacency::new(nodes, between().map(|(i, l)| (i, l.to)));
        Self { links, leaves, outgoing, incoming }
    }

    fn link(&self, index: u32) -> &Link {
        &self.links[index as usize]
    }

    fn leg(&self, from: NodeId, to: NodeId) -> Option<Leg> {
        if from == to {
            return None;
        }
        let first = self.leaves[from.0 as usize].map(|(out, _)| out);
        let from = first.map_or(from, |link| self.link(link).to);
        if from == to {
            return Some(Leg { destination: to, first, from, to, last: None });
        }
        let destination = to;
        let last = self.leaves[to.0 as usize].map(|(_, incoming)| incoming);
        let to = last.map_or(to, |link| self.link(link).from);
        Some(Leg { destination, first, from, to, last })
    }
}

/// Hop counts to one destination, kept between searches.
#[derive(Default)]
struct Search {
    to: Option<NodeId>,
    hops: Vec<u32>,
    queue: VecDeque<NodeId>,
}

const UNREACHED: u32 = u32::MAX;

impl Search {
    /// Appends the links from one node to another to `path`; false if there is no path.
    fn walk(&mut self, graph: &Graph<'_>, from: NodeId, to: NodeId, path: &mut Vec<u32>) -> bool {
        if self.to != Some(to) {
            self.count_hops(graph, to);
        }
        let mut at = from;
        if self.hops[at.0 as usize] == UNREACHED {
            return false;
        }
        while at != to {
            let nearer = self.hops[at.0 as usize] - 1;
            let next = |&&link: &&u32| self.hops[graph.link(link).to.0 as usize] == nearer;
            let Some(&link) = graph.outgoing.of(at).iter().find(next) else { return false };
            path.push(link);
            at = graph.link(link).to;
        }
        true
    }

    /// Breadth-first from the destination, against the direction of the links.
    fn count_hops(&mut self, graph: &Graph<'_>, to: NodeId) {
        self.to = Some(to);
        self.hops.clear();
        self.hops.resize(graph.leaves.len(), UNREACHED);
        self.hops[to.0 as usize] = 0;
        self.queue.push_back(to);
        while let Some(node) = self.queue.pop_front() {
            let further = self.hops[node.0 as usize] + 1;
            for &link in graph.incoming.of(node) {
                let from = graph.link(link).from;
                if self.hops[from.0 as usize] == UNREACHED {
                    self.hops[from.0 as usize] = further;
                    self.queue.push_back(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Unidirectional links between the given nodes.
    fn links(ends: &[(u32, u32)]) -> Vec<Link> {
        let link = |&(from, to): &(u32, u32)| Link { from: NodeId(from), to: NodeId(to) };
        ends.iter().map(link).collect()
    }

    /// Both directions of each link, forward first.
    fn duplex(ends: &[(u32, u32)]) -> Vec<Link> {
        links(&ends.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect::<Vec<_>>())
    }

    /// The links that a packet takes; `None` if a node on its path has no route.
    fn follow(next_hops: &NextHops, links: &[Link], from: u32, to: u32) -> Option<Vec<u32>> {
        let mut at = NodeId(from);
        let mut path = Vec::new();
        while at != NodeId(to) {
            assert!(path.len() <= links.len(), "a loop: {path:?}");
            let LinkId(link) = next_hops.link(at, NodeId(to))?;
            assert_eq!(links[link as usize].from, at);
            at = links[link as usize].to;
            path.push(link);
        }
        Some(path)
    }

    fn path(nodes: usize, links: &[Link], from: u32, to: u32) -> Option<Vec<u32>> {
        let next_hops = shortest_paths(nodes, links, &[(NodeId(from), NodeId(to))]);
        follow(&next_hops, links, from, to)
    }

    #[test]
    fn two_leaves_side_by_side() {
        let l = duplex(&[(0, 1)]);
        assert_eq!(path(2, &l, 0, 1), Some(vec![0]));
        assert_eq!(path(2, &l, 1, 0), Some(vec![1]));
        assert_eq!(
            shortest_paths(2, &l, &[(NodeId(0), NodeId(0))]).link(NodeId(0), NodeId(0)),
            None
        );
    }

    #[test]
    fn from_leaf_to_leaf_over_routers() {
        // 0 - 1 - 2 - 3
        let l = duplex(&[(0, 1), (1, 2), (2, 3)]);
        assert_eq!(path(4, &l, 0, 3), Some(vec![0, 2, 4]));
        assert_eq!(path(4, &l, 3, 0), Some(vec![5, 3, 1]));
        assert_eq!(path(4, &l, 1, 2), Some(vec![2]));
        assert_eq!(path(4, &l, 2, 0), Some(vec![3, 1]));
    }

    #[test]
    fn the_shorter_path_and_the_first_of_two_links_win() {
        // A square 0-1-2-3 with a diagonal 0-2 named last, and the link 0-1 twice.
        let l = duplex(&[(0, 1), (0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]);
        assert_eq!(path(4, &l, 0, 2), Some(vec![10]));
        assert_eq!(path(4, &l, 0, 1), Some(vec![0]));
        assert_eq!(path(4, &l, 1, 3), Some(vec![1, 9]));
    }

    #[test]
    fn a_one_way_link_is_not_taken_backwards() {
        let l = links(&[(0, 1), (1, 2), (2, 0)]);
        assert_eq!(path(3, &l, 0, 2), Some(vec![0, 1]));
        assert_eq!(path(3, &l, 1, 0), Some(vec![1, 2]));
    }

    #[test]
    fn no_path_is_said() {
        let l = duplex(&[(0, 1), (2, 3)]);
        assert_eq!(path(4, &l, 0, 3), None);
        assert_eq!(path(4, &l, 0, 2), None);
        assert_eq!(path(5, &l, 4, 0), None);
    }

    proptest! {
        /// Every path is connected and as long as the Floyd-Warshall algorithm says.
        #[test]
        fn shortest_in_random_networks(
            ends in proptest::collection::vec((0..7u32, 0..7u32), 0..16)
        ) {
            let ends: Vec<_> = ends.into_iter().filter(|(a, b)| a != b).collect();
            let l = duplex(&ends);
            let mut d = [[100u32; 7]; 7];
            for link in &l {
                d[link.from.0 as usize][link.to.0 as usize] = 1;
            }
            for k in 0..7 {
                for i in 0..7 {
                    for j in 0..7 {
                        d[i][j] = d[i][j].min(d[i][k] + d[k][j]);
                    }
                }
            }
            let pairs: Vec<_> = (0..49).map(|i| (NodeId(i / 7), NodeId(i % 7))).collect();
            let next_hops = shortest_paths(7, &l, &pairs);
            for (from, to) in pairs {
                let expected = Some(d[from.0 as usize][to.0 as usize]).filter(|&hops| hops < 100);
                let path = follow(&next_hops, &l, from.0, to.0);
                let hops = path.map(|path| path.len() as u32);
                prop_assert_eq!(hops, if from == to { Some(0) } else { expected });
            }
        }
    }
}
