//! A middlebox on a node, and which traffic is its business.

use crate::metrics::MiddleboxMetrics;
use crate::scenario::model::{MiddleboxKind, MiddleboxSpec};
use airtcp_core::Length;
use airtcp_edge::{
    FlowTableConfig, Holdover, HoldoverCounters, MTcp, MTcpCounters, MTcpPlus, MTcpPlusCounters,
    Middlebox, PacketControl, PacketControlCounters, Side, Snoop, SnoopCounters,
};

/// A mechanism of `airtcp-edge` at work.
pub(super) struct Mechanism {
    pub(super) node: u32,
    /// Nodes of the mobile side, ascending.
    mobiles: Vec<u32>,
    machine: Machine,
}

enum Machine {
    PacketControl(PacketControl),
    MTcp(MTcp<Length>),
    MTcpPlus(MTcpPlus<Length>),
    Holdover(Holdover<Length>),
    Snoop(Snoop<Length>),
}

/// All counters of a mechanism by name, and what its flow table refused.
macro_rules! counters {
    ($machine:expr, $counters:ident { $($field:ident),* $(,)? }) => {{
        let $counters { $($field),* } = $machine.counters();
        [$((stringify!($field), $field),)* ("segments_refused", $machine.segments_refused())]
            .into_iter()
            .collect()
    }};
}

impl Mechanism {
    /// On node number `node`.
    pub(super) fn new(node: u32, spec: &MiddleboxSpec) -> Self {
        let table = FlowTableConfig::default();
        let machine = match spec.kind {
            MiddleboxKind::PacketControl { threshold } => Machine::PacketControl(
                PacketControl::new(threshold, table)
                    .expect("a resolved scenario has a threshold of at least 3"),
            ),
            MiddleboxKind::MTcp { config, memory } => {
                Machine::MTcp(MTcp::new(config, table, memory.get()))
            }
            MiddleboxKind::MTcpPlus { config, memory } => {
                Machine::MTcpPlus(MTcpPlus::new(config, table, memory.get()))
            }
            MiddleboxKind::Holdover { config, memory } => {
                Machine::Holdover(Holdover::new(config, table, memory.get()))
            }
            MiddleboxKind::Snoop { config, memory } => {
                Machine::Snoop(Snoop::new(config, table, memory.get()))
            }
        };
        let mut mobiles: Vec<u32> = spec.mobiles.iter().map(|mobile| mobile.0).collect();
        mobiles.sort_unstable();
        Self { node, mobiles, machine }
    }

    /// The nodes of the mobile side.
    pub(super) fn mobiles(&self) -> &[u32] {
        &self.mobiles
    }

    /// The side from which a segment comes that goes from one node to another; `None` when neither is a
    /// mobile.
    pub(super) fn side(&self, from: u32, to: u32) -> Option<Side> {
        let is_mobile = |node: u32| self.mobiles.binary_search(&node).is_ok();
        if is_mobile(to) { Some(Side::Fixed) } else { is_mobile(from).then_some(Side::Mobile) }
    }

    pub(super) fn middlebox(&mut self) -> &mut dyn Middlebox<Length> {
        match &mut self.machine {
            Machine::PacketControl(machine) => machine,
            Machine::MTcp(machine) => machine,
            Machine::MTcpPlus(machine) => machine,
            Machine::Holdover(machine) => machine,
            Machine::Snoop(machine) => machine,
        }
    }

    pub(super) fn metrics(&self, name: &str) -> MiddleboxMetrics {
        let (kind, counters) = match &self.machine {
            Machine::PacketControl(machine) => (
                "packet-control",
                counters!(
                    machine,
                    PacketControlCounters {
                        acks_old_dropped,
                        acks_duplicate_dropped,
                        acks_forwarded,
                        data_dropped,
                        acks_generated,
                    }
                ),
            ),
            Machine::MTcp(machine) => (
                "m-tcp",
                counters!(
                    machine,
                    MTcpCounters {
                        segments_copied,
                        overflows,
                        acks_reduced,
                        releases,
                        duplicates_suppressed,
                        local_retransmissions,
                        persist_packets,
                        reconnections,
                        probes_answered,
                        old_segments_answered,
                        resets
                    }
                ),
            ),
            Machine::MTcpPlus(machine) => (
                "m-tcp-plus",
                counters!(
                    machine,
                    MTcpPlusCounters {
                        segments_copied,
                        overflows,
                        held_peak,
                        freezes,
                        bytes_promised,
                        answers,
                        replays,
                        copies_resent,
                        acks_suppressed,
                        resumes,
                        resets
                    }
                ),
            ),
            Machine::Holdover(machine) => (
                "holdover",
                counters!(
                    machine,
                    HoldoverCounters {
                        segments_copied,
                        overflows,
                        held_peak,
                        freezes,
                        answers,
                        replays,
                        copies_resent,
                        data_dropped,
                        acks_suppressed,
                        resumes,
                        resets
                    }
                ),
            ),
            Machine::Snoop(machine) => (
                "snoop",
                counters!(
                    machine,
                    SnoopCounters {
                        segments_copied,
                        overflows,
                        local_retransmissions,
                        timeouts,
                        duplicates_suppressed,
                    }
                ),
            ),
        };
        MiddleboxMetrics { name: name.to_owned(), kind, counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::model::NodeId;

    #[test]
    fn sides_are_told_by_the_mobiles() {
        let mobiles = vec![NodeId(7), NodeId(3)];
        let kind = MiddleboxKind::PacketControl { threshold: 6 };
        let mechanism = Mechanism::new(1, &MiddleboxSpec { kind, mobiles, signal: None });
        assert_eq!(mechanism.side(0, 3), Some(Side::Fixed));
        assert_eq!(mechanism.side(3, 0), Some(Side::Mobile));
        assert_eq!(mechanism.side(3, 7), Some(Side::Fixed));
        assert_eq!(mechanism.side(0, 2), None);
    }
}
