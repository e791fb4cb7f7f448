//! The route cache of DSR: whole paths from this node (RFC 4728 §4.1, a path cache).

use super::message::Link;
use crate::NodeId;
use airtcp_core::{Duration, Instant};

#[derive(Debug)]
struct Path {
    nodes: Vec<NodeId>,
    used: Instant,
}

/// Paths that begin at this node, without repeats.
#[derive(Debug)]
pub(super) struct Cache {
    limit: usize,
    timeout: Duration,
    paths: Vec<Path>,
}

impl Cache {
    /// For at most `limit` paths, each for `timeout` after its last use.
    pub(super) fn new(limit: usize, timeout: Duration) -> Self {
        Self { limit, timeout, paths: Vec::new() }
    }

    /// Adds a path; says whether it was unknown or expired. A path without a link is ignored.
    pub(super) fn add(&mut self, now: Instant, path: &[NodeId]) -> bool {
        if path.len() < 2 {
            return false;
        }
        let timeout = self.timeout;
        if let Some(known) = self.paths.iter_mut().find(|known| known.nodes.starts_with(path)) {
            let expired = known.used + timeout <= now;
            known.used = now;
            return expired;
        }
        self.paths.retain(|known| known.used + timeout > now && !path.starts_with(&known.nodes));
        if self.paths.len() >= self.limit {
            let oldest = (0..self.paths.len()).min_by_key(|&at| self.paths[at].used);
            self.paths.remove(oldest.unwrap_or(0));
        }
        self.paths.push(Path { nodes: path.to_vec(), used: now });
        true
    }

    /// The shortest path to a node; of several, the one known for longest.
    pub(super) fn find(&mut self, now: Instant, to: NodeId) -> Option<&[NodeId]> {
        let timeout = self.timeout;
        let mut best: Option<(usize, usize)> = None;
        for (index, path) in self.paths.iter().enumerate() {
            if path.used + timeout <= now {
                continue;
            }
            let end = path.nodes.iter().position(|&node| node == to);
            if let Some(end) = end.filter(|&end| best.is_none_or(|(_, shortest)| end < shortest)) {
                best = Some((index, end));
            }
        }
        let (index, end) = best?;
        let path = &mut self.paths[index];
        path.used = now;
        Some(&path.nodes[..=end])
    }

    /// Cuts the paths at a broken link, in either direction.
    pub(super) fn cut(&mut self, link: Link) {
        for path in &mut self.paths {
            if let Some(at) = position(&path.nodes, link) {
                path.nodes.truncate(at + 1);
            }
        }
        self.paths.retain(|path| path.nodes.len() > 1);
    }
}

/// The place at which a path takes a link, in either direction.
pub(super) fn position(path: &[NodeId], (a, b): Link) -> Option<usize> {
    path.windows(2).position(|pair| pair == [a, b] || pair == [b, a])
}
