//! A middlebox on a node, and the traffic that concerns it.

use crate::metrics::MiddleboxMetrics;
use crate::packet::{Packet, QuicDatagram};
use crate::scenario::MiddleboxSpec;
use airtcp_core::{Instant, Length, LinkSignal, Segment};
use airtcp_edge::{
    Actions, FlowTableConfig, Mechanism, MechanismConfig, Middlebox, MobileId, Side, Wake,
    WakeConfig,
};
use airtcp_routing::NodeId;
use std::collections::BTreeMap;

/// A mechanism of `airtcp-edge` at work on a node.
pub(super) struct EdgeNode {
    pub(super) node: NodeId,
    /// Nodes of the mobile side, ascending.
    mobiles: Vec<NodeId>,
    config: MechanismConfig,
    at_work: AtWork,
}

/// What works on a node.
enum AtWork {
    /// A mechanism about TCP.
    Tcp(Mechanism<Length>),
    /// Wake, which is about all protocols.
    Wake(WakeNode),
    /// Another middlebox in place of the mechanism, which has nothing to count.
    Other(Box<dyn Middlebox<Length> + Send>, Mechanism<Length>),
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
            self.wake.on_heard(now, mobile);
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

impl EdgeNode {
    /// On a node; `other` works in the place of its mechanism.
    pub(super) fn new(
        node: NodeId,
        spec: &MiddleboxSpec,
        other: Option<Box<dyn Middlebox<Length> + Send>>,
    ) -> Self {
        let mechanism = || {
            Mechanism::new(&spec.mechanism, FlowTableConfig::default(), spec.memory)
                .expect("a resolved scenario has a threshold of at least 3")
        };
        let at_work = match (other, spec.mechanism.wake()) {
            (Some(other), _) => AtWork::Other(other, mechanism()),
            (None, Some(config)) => AtWork::Wake(WakeNode::new(config)),
            (None, None) => AtWork::Tcp(mechanism()),
        };
        let mut mobiles = spec.mobiles.clone();
        mobiles.sort_unstable();
        Self { node, mobiles, config: spec.mechanism, at_work }
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
        match &mut self.at_work {
            AtWork::Tcp(mechanism) => mechanism,
            AtWork::Wake(wake) => wake,
            AtWork::Other(other, _) => &mut **other,
        }
    }

    /// The datagrams of QUIC concern it.
    pub(super) fn sees_quic(&self) -> bool {
        matches!(self.at_work, AtWork::Wake(_))
    }

    /// A datagram of QUIC passes.
    pub(super) fn on_quic(&mut self, now: Instant, from: Side, packet: &Packet) {
        if let AtWork::Wake(wake) = &mut self.at_work {
            wake.on_packet(now, from, packet);
        }
    }

    /// The datagrams of QUIC that it sends again.
    pub(super) fn take_again(&mut self) -> Vec<QuicDatagram> {
        match &mut self.at_work {
            AtWork::Wake(wake) => std::mem::take(&mut wake.again),
            AtWork::Tcp(_) | AtWork::Other(..) => Vec::new(),
        }
    }

    pub(super) fn metrics(&self, name: &str) -> MiddleboxMetrics {
        let (mut counters, refused) = match &self.at_work {
            AtWork::Tcp(mechanism) | AtWork::Other(_, mechanism) => {
                (mechanism.counters(), mechanism.segments_refused())
            }
            AtWork::Wake(node) => (node.counters(), node.wake.segments_refused()),
        };
        counters.insert("segments_refused", refused);
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
