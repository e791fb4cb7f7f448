//! A middlebox on a node, and the traffic that concerns it.

use super::build::EndpointSpec;
use super::split::Split;
use crate::metrics::MiddleboxMetrics;
use crate::packet::{Packet, QuicDatagram};
use crate::scenario::{MechanismSpec, MiddleboxSpec, Node};
use airtcp_core::{Instant, Length, LinkSignal, Segment, Stream};
use airtcp_edge::{
    Actions, FlowTableConfig, Mechanism, MechanismConfig, Middlebox, MobileId, Side, Wake,
    WakeConfig,
};
use airtcp_routing::NodeId;
use airtcp_tcp::congestion::Controls;
use std::collections::BTreeMap;

/// A mechanism at work.
enum Machine {
    /// One of `airtcp-edge` about TCP.
    Tcp(Box<Mechanism<Length>>),
    /// Wake, which is about all protocols.
    Wake(Box<WakeNode>),
    Split(Box<Split>),
}

/// Wake on TCP segments and the datagrams of QUIC.
struct WakeNode {
    wake: Wake<Packet>,
    config: WakeConfig,
    table: FlowTableConfig,
    /// Datagrams to be sent again.
    again: Vec<QuicDatagram>,
}

impl WakeNode {
    fn new(config: WakeConfig) -> Self {
        let table = FlowTableConfig::default();
        Self { wake: Wake::new(config, table), config, table, again: Vec::new() }
    }

    /// A packet passes.
    fn on_packet(&mut self, now: Instant, from: Side, packet: &Packet) {
        let (flow, ..) = packet.summary();
        let mobile = self.table.mobile_of(&from.to_mobile(flow));
        if from == self.config.towards.side() {
            self.wake.on_heard(now, mobile, Some(packet));
        } else {
            self.wake.on_sent(now, mobile, packet);
        }
    }

    fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.wake.counters().by_name()
    }
}

impl Middlebox<Length> for WakeNode {
    fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<Length>,
        out: &mut Actions<Length>,
    ) {
        let packet = Packet::Tcp(segment);
        self.on_packet(now, from, &packet);
        if let Packet::Tcp(segment) = packet {
            out.forward(from.opposite(), segment);
        }
    }

    fn on_link(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        _: &mut Actions<Length>,
    ) {
        self.wake.on_signal(now, mobile, signal);
    }

    fn on_timer(&mut self, now: Instant, out: &mut Actions<Length>) {
        let Self { wake, config, again, .. } = self;
        wake.on_deadline(now, |packet| match packet {
            Packet::Tcp(segment) => out.inject(config.towards.side(), segment.clone()),
            Packet::Quic(datagram) => again.push(datagram.clone()),
            Packet::Udp(_) | Packet::Control(_) => {}
        });
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.wake.deadline()
    }
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
            MechanismSpec::Edge(MechanismConfig::Wake(config)) => {
                Machine::Wake(Box::new(WakeNode::new(*config)))
            }
            MechanismSpec::Edge(config) => {
                let mechanism = Mechanism::new(config, FlowTableConfig::default(), spec.memory)
                    .expect("a resolved scenario has a threshold of at least 3");
                Machine::Tcp(Box::new(mechanism))
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
            (None, Machine::Tcp(mechanism)) => &mut **mechanism,
            (None, Machine::Wake(wake)) => &mut **wake,
            (None, Machine::Split(split)) => &mut **split,
        }
    }

    /// What sees the datagrams of QUIC, if it is at work here.
    fn wake(&mut self) -> Option<&mut WakeNode> {
        match (&self.other, &mut self.machine) {
            (None, Machine::Wake(wake)) => Some(wake),
            _ => None,
        }
    }

    /// The datagrams of QUIC concern it.
    pub(super) fn sees_quic(&self) -> bool {
        self.other.is_none() && matches!(self.machine, Machine::Wake(_))
    }

    /// A datagram of QUIC passes.
    pub(super) fn on_quic(&mut self, now: Instant, from: Side, packet: &Packet) {
        if let Some(wake) = self.wake() {
            wake.on_packet(now, from, packet);
        }
    }

    /// The datagrams of QUIC that it sends again.
    pub(super) fn take_again(&mut self) -> Vec<QuicDatagram> {
        self.wake().map(|wake| std::mem::take(&mut wake.again)).unwrap_or_default()
    }

    pub(super) fn metrics(&self, name: &str) -> MiddleboxMetrics {
        let counters = match &self.machine {
            Machine::Tcp(mechanism) => {
                with_refused(mechanism.counters(), mechanism.segments_refused())
            }
            Machine::Wake(node) => with_refused(node.counters(), node.wake.segments_refused()),
            Machine::Split(split) => split.counters().by_name(),
        };
        MiddleboxMetrics { name: name.to_owned(), kind: self.kind, counters }
    }
}

/// Counters with those of segments that were not tracked.
fn with_refused(
    mut counters: BTreeMap<&'static str, u64>,
    segments_refused: u64,
) -> BTreeMap<&'static str, u64> {
    counters.insert("segments_refused", segments_refused);
    counters
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Bytes;

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
