//! A middlebox on a node, and the traffic that concerns it.

use super::build::EndpointSpec;
use super::split::Split;
use crate::metrics::MiddleboxMetrics;
use crate::scenario::{MechanismSpec, MiddleboxSpec, Node};
use airtcp_core::{Length, Stream};
use airtcp_edge::{FlowTableConfig, Mechanism, Middlebox, Side};
use airtcp_routing::NodeId;
use airtcp_tcp::congestion::Controls;

/// A mechanism at work.
enum Machine {
    /// One of `airtcp-edge`.
    Edge(Box<Mechanism<Length>>),
    Split(Box<Split>),
}

/// A mechanism at work on a node.
pub(super) struct EdgeNode {
    pub(super) node: NodeId,
    /// Nodes of the mobile side, ascending.
    mobiles: Vec<NodeId>,
    /// Its mechanism, as scenarios call it.
    kind: &'static str,
    machine: Machine,
    /// Works in its place.
    other: Option<Box<dyn Middlebox<Length> + Send>>,
}

impl EdgeNode {
    /// The mechanism of a node in a run with this seed.
    pub(super) fn new(
        id: NodeId,
        node: &Node,
        spec: &MiddleboxSpec,
        seed: u64,
        controls: &Controls,
    ) -> Self {
        let machine = match &spec.mechanism {
            MechanismSpec::Edge(config) => {
                let mechanism = Mechanism::new(config, FlowTableConfig::default(), spec.memory)
                    .expect("a resolved scenario has a threshold of at least 3");
                Machine::Edge(Box::new(mechanism))
            }
            MechanismSpec::Split(tcp) => {
                let endpoints = EndpointSpec::new(tcp, node, seed);
                let isns = Stream::new(seed, &format!("node/{}/isn", node.name));
                Machine::Split(Box::new(Split::new(endpoints, controls.clone(), isns)))
            }
        };
        let mut mobiles = spec.mobiles.clone();
        mobiles.sort_unstable();
        Self { node: id, mobiles, kind: spec.mechanism.word(), machine, other: None }
    }

    /// `other`, if there is one, works in the place of its mechanism.
    pub(super) fn replaced_by(self, other: Option<Box<dyn Middlebox<Length> + Send>>) -> Self {
        Self { other, ..self }
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
        match (&mut self.other, &mut self.machine) {
            (Some(other), _) => &mut **other,
            (None, Machine::Edge(mechanism)) => &mut **mechanism,
            (None, Machine::Split(split)) => &mut **split,
        }
    }

    pub(super) fn metrics(&self, name: &str) -> MiddleboxMetrics {
        let counters = match &self.machine {
            Machine::Edge(mechanism) => {
                let mut counters = mechanism.counters();
                counters.insert("segments_refused", mechanism.segments_refused());
                counters
            }
            Machine::Split(split) => split.counters().by_name(),
        };
        MiddleboxMetrics { name: name.to_owned(), kind: self.kind, counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Bytes;
    use airtcp_edge::MechanismConfig;

    #[test]
    fn the_mobile_end_determines_the_side() {
        let mobiles = vec![NodeId(7), NodeId(3)];
        let mechanism = MechanismSpec::Edge(MechanismConfig::PacketControl { threshold: 6 });
        let spec = MiddleboxSpec { mechanism, memory: Bytes(0), mobiles, signal: None };
        let edge = EdgeNode::new(NodeId(1), &Node::new("edge"), &spec, 1, &Controls::default());
        let side = |from, to| edge.side(NodeId(from), NodeId(to));
        assert_eq!(side(0, 3), Some(Side::Fixed));
        assert_eq!(side(3, 0), Some(Side::Mobile));
        assert_eq!(side(3, 7), Some(Side::Fixed));
        assert_eq!(side(0, 2), None);
    }
}
