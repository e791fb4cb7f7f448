//! Which nodes the links and cells of a scenario connect, whatever the range of radios.

use super::link::Link;
use super::node::{NodeId, Nodes};
use super::wlan::Wlan;
use airtcp_core::IdVec;

/// The parts of a network between which no packet can travel.
#[derive(Debug)]
pub(super) struct Parts(
    /// The node that stands for the part of each; while they are joined, one nearer to it.
    IdVec<NodeId, NodeId>,
);

impl Parts {
    /// The parts of a network. All stations of a cell belong together: they may move.
    pub(super) fn of(nodes: &Nodes, links: &[Link], wlans: &[Wlan]) -> Self {
        let mut parts = Self(nodes.ids().collect());
        for link in links {
            parts.join(link.from, link.to);
        }
        for pair in wlans.iter().flat_map(|wlan| wlan.stations.windows(2)) {
            parts.join(pair[0].node, pair[1].node);
        }
        Self(nodes.ids().map(|node| parts.find(node)).collect())
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a] = b;
    }

    /// The node that stands for the part of this one. Shortens the way there for later calls.
    fn find(&mut self, node: NodeId) -> NodeId {
        let mut at = node;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Some path of links and cells leads from one to the other.
    pub(super) fn connects(&self, a: NodeId, b: NodeId) -> bool {
        self.0[a] == self.0[b]
    }
}
