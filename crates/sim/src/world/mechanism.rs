//! A middlebox on a node, and the traffic that concerns it.

use crate::metrics::MiddleboxMetrics;
use crate::scenario::MiddleboxSpec;
use airtcp_core::Length;
use airtcp_edge::{FlowTableConfig, Mechanism, MechanismConfig, Middlebox, Side};
use airtcp_routing::NodeId;

/// A mechanism of `airtcp-edge` at work on a node.
pub(super) struct EdgeNode {
    pub(super) node: NodeId,
    /// Nodes of the mobile side, ascending.
    mobiles: Vec<NodeId>,
    config: MechanismConfig,
    mechanism: Mechanism<Length>,
    /// Works in its place.
    other: Option<Box<dyn Middlebox<Length> + Send>>,
}

impl EdgeNode {
    /// On a node; `other` works in the place of its mechanism.
    pub(super) fn new(
        node: NodeId,
        spec: &MiddleboxSpec,
        other: Option<Box<dyn Middlebox<Length> + Send>>,
    ) -> Self {
        let mechanism = Mechanism::new(&spec.mechanism, FlowTableConfig::default(), spec.memory)
            .expect("a resolved scenario has a threshold of at least 3");
        let mut mobiles = spec.mobiles.clone();
        mobiles.sort_unstable();
        Self { node, mobiles, config: spec.mechanism, mechanism, other }
    }

    /// The nodes of the mobile side.
    pub(super) fn mobiles(&self) -> &[NodeId] {
        &self.mobiles
    }

    /// The side from which a segment between two nodes comes; `None` if neither is a mobile.
    pub(super) fn side(&self, from: NodeId, to: NodeId) -> Option<Side> {
        let is_mobile = |node: NodeId| self.mobiles.binary_search(&node).is_ok();
        if is_mobile(to) { Some(Side::Fixed) } else { is_mobile(from).then_some(Side::Mobile) }
    }

    pub(super) fn middlebox(&mut self) -> &mut dyn Middlebox<Length> {
        match &mut self.other {
            Some(other) => &mut **other,
            None => &mut self.mechanism,
        }
    }

    pub(super) fn metrics(&self, name: &str) -> MiddleboxMetrics {
        let mut counters = self.mechanism.counters();
        counters.insert("segments_refused", self.mechanism.segments_refused());
        MiddleboxMetrics { name: name.to_owned(), kind: self.config.word(), counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Bytes;

    #[test]
    fn the_mobile_end_determines_the_side() {
        let mobiles = vec![NodeId(7), NodeId(3)];
        let mechanism = MechanismConfig::PacketControl { threshold: 6 };
        let spec = MiddleboxSpec { mechanism, memory: Bytes(0), mobiles, signal: None };
        let edge = EdgeNode::new(NodeId(1), &spec, None);
        let side = |from, to| edge.side(NodeId(from), NodeId(to));
        assert_eq!(side(0, 3), Some(Side::Fixed));
        assert_eq!(side(3, 0), Some(Side::Mobile));
        assert_eq!(side(3, 7), Some(Side::Fixed));
        assert_eq!(side(0, 2), None);
    }
}
