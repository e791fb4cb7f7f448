//! The mechanism of a group at work.

use super::error::DispatchError;
use crate::config::{GatewayConfig, Group};
use crate::packets::{Kept, Sent, SharedBytes};
use airtcp_core::{Bytes, Flow, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::{
    Actions, FlowReport, FlowTableConfig, Mechanism, MechanismConfig, MechanismNote,
    MechanismSnapshot, Middlebox, MobileId, ReconfigureError, Side, Wake,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// The mechanism of a group at work. What one kind of them is not concerned with does nothing.
pub(crate) enum GroupMechanism {
    /// One for TCP: it decides what becomes of segments.
    Segments(Box<Mechanism<SharedBytes>>),
    /// Wake, for all protocols: it is shown packets that go on in any case. It sends out of this
    /// side.
    Packets(Box<Wake<Kept>>, Side),
}

impl GroupMechanism {
    pub(crate) fn new(
        group: &Group,
        table: FlowTableConfig,
        config: &GatewayConfig,
    ) -> Result<Self, DispatchError> {
        if let Some(wake) = group.mechanism.wake() {
            if !group.is_mirrored() {
                return Err(DispatchError::NoMirror { group: group.name.clone() });
            }
            return Ok(Self::Packets(Box::new(Wake::new(wake, table)), wake.towards.side()));
        }
        let mut mechanism = Mechanism::new(&group.mechanism, table, config.limits.memory)
            .map_err(|source| DispatchError::Threshold { group: group.name.clone(), source })?;
        mechanism.keep_journal();
        Ok(Self::Segments(Box::new(mechanism)))
    }

    pub(crate) fn reconfigure(
        &mut self,
        config: &MechanismConfig,
        table: FlowTableConfig,
        memory: Bytes,
    ) -> Result<(), ReconfigureError> {
        match self {
            Self::Segments(mechanism) => mechanism.reconfigure(config, table, memory),
            Self::Packets(wake, to) => {
                let config = config.wake().ok_or(ReconfigureError::OtherMechanism)?;
                *to = config.towards.side();
                wake.reconfigure(config, table);
                Ok(())
            }
        }
    }

    /// A segment that waits for its verdict. It passes a mechanism that decides nothing.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<SharedBytes>,
        out: &mut Actions<SharedBytes>,
    ) {
        match self {
            Self::Segments(mechanism) => mechanism.on_segment(now, from, segment, out),
            Self::Packets(..) => out.forward(from.opposite(), segment),
        }
    }

    /// A copy of a segment that has gone on.
    pub(crate) fn on_copy(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<SharedBytes>,
        out: &mut Actions<SharedBytes>,
    ) {
        match self {
            Self::Segments(mechanism) => mechanism.on_copy(now, from, segment, out),
            Self::Packets(..) => out.forward(from.opposite(), segment),
        }
    }

    /// A packet that has gone on over the link, to the mobile or to the network behind it.
    pub(crate) fn on_sent(&mut self, now: Instant, mobile: MobileId, packet: &Kept) {
        match self {
            Self::Segments(_) => {}
            Self::Packets(wake, _) => wake.on_sent(now, mobile, packet),
        }
    }

    /// A packet came over the link; `None`: one that is of no interest but for that.
    pub(crate) fn on_heard(&mut self, now: Instant, mobile: MobileId, packet: Option<&Kept>) {
        match self {
            Self::Segments(_) => {}
            Self::Packets(wake, _) => wake.on_heard(now, mobile, packet),
        }
    }

    pub(crate) fn on_signal(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        out: &mut Actions<SharedBytes>,
    ) {
        match self {
            Self::Segments(mechanism) => mechanism.on_link(now, mobile, signal, out),
            Self::Packets(wake, _) => wake.on_signal(now, mobile, signal),
        }
    }

    /// What it sends that is no TCP segment of its own making goes to `raw`: as it was kept, out of
    /// this side.
    pub(crate) fn on_timer(
        &mut self,
        now: Instant,
        out: &mut Actions<SharedBytes>,
        mut raw: impl FnMut(Side, &[u8]),
    ) {
        match self {
            Self::Segments(mechanism) => mechanism.on_timer(now, out),
            Self::Packets(wake, to) => wake.on_deadline(now, |kept| match kept.sent() {
                Sent::Segment(segment) => out.inject(*to, segment.clone()),
                Sent::Packet(packet) => raw(*to, packet),
            }),
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Segments(mechanism) => mechanism.next_deadline(),
            Self::Packets(wake, _) => wake.deadline(),
        }
    }

    pub(crate) fn drain_journal(&mut self) -> Vec<MechanismNote<SharedBytes>> {
        match self {
            Self::Segments(mechanism) => mechanism.drain_journal().collect(),
            Self::Packets(..) => Vec::new(),
        }
    }

    /// All there is to know of each connection that it holds up.
    pub(crate) fn snapshots(&mut self) -> Vec<(Flow, MechanismSnapshot<SharedBytes>)> {
        match self {
            Self::Segments(mechanism) => {
                mechanism.keep_journal();
                let of_note = |note| match note {
                    MechanismNote::Snapshot(flow, snapshot) => Some((flow, *snapshot)),
                    MechanismNote::Input(..) | MechanismNote::Released(_) => None,
                };
                mechanism.drain_journal().filter_map(of_note).collect()
            }
            Self::Packets(..) => Vec::new(),
        }
    }

    pub(crate) fn withhold(&mut self, flow: &Flow, out: &mut Actions<SharedBytes>) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.withhold(flow, out),
            Self::Packets(..) => false,
        }
    }

    pub(crate) fn note_anew(&mut self, flow: &Flow) {
        match self {
            Self::Segments(mechanism) => mechanism.note_anew(flow),
            Self::Packets(..) => {}
        }
    }

    pub(crate) fn restore(
        &mut self,
        now: Instant,
        flow: Flow,
        snapshot: MechanismSnapshot<SharedBytes>,
    ) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.restore(now, flow, snapshot),
            Self::Packets(..) => false,
        }
    }

    pub(crate) fn flows(&self) -> usize {
        match self {
            Self::Segments(mechanism) => mechanism.flows(),
            Self::Packets(wake, _) => wake.flows(),
        }
    }

    pub(crate) fn held(&self) -> u64 {
        match self {
            Self::Segments(mechanism) => mechanism.held(),
            Self::Packets(wake, _) => wake.held(),
        }
    }

    pub(crate) fn segments_refused(&self) -> u64 {
        match self {
            Self::Segments(mechanism) => mechanism.segments_refused(),
            Self::Packets(wake, _) => wake.segments_refused(),
        }
    }

    pub(crate) fn counters(&self) -> BTreeMap<&'static str, u64> {
        match self {
            Self::Segments(mechanism) => mechanism.counters(),
            Self::Packets(wake, _) => wake.counters().by_name(),
        }
    }

    pub(crate) fn reports(&self) -> Box<dyn Iterator<Item = FlowReport> + '_> {
        match self {
            Self::Segments(mechanism) => mechanism.reports(),
            // Its flows are those of packets that go to the link.
            Self::Packets(wake, to) => {
                Box::new(wake.reports().map(|report| FlowReport {
                    flow: to.opposite().to_mobile(report.flow),
                    ..report
                }))
            }
        }
    }

    pub(crate) fn is_mobile_heard(&self, flow: &Flow) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.is_mobile_heard(flow),
            Self::Packets(..) => false,
        }
    }

    pub(crate) fn is_interrupted(&self, mobile: MobileId) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.is_interrupted(mobile),
            Self::Packets(wake, _) => wake.is_interrupted(mobile),
        }
    }

    /// Number of the mobile's connections that an outage interrupts.
    pub(crate) fn interrupted(&self, mobile: MobileId) -> usize {
        match self {
            Self::Segments(mechanism) => mechanism.interrupted(mobile),
            Self::Packets(wake, _) => wake.interrupted(mobile),
        }
    }

    /// Mobiles that [`on_timer`](Self::on_timer) just found silent without a signal, and since when
    /// they were.
    pub(crate) fn found_silent(&self) -> &[(MobileId, Instant)] {
        match self {
            Self::Segments(_) => &[],
            Self::Packets(wake, _) => wake.found_silent(),
        }
    }

    pub(crate) fn is_committed(&self, flow: &Flow) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.is_committed(flow),
            Self::Packets(..) => false,
        }
    }

    pub(crate) fn in_flight(&self, flow: &Flow) -> Option<Range<SeqNum>> {
        match self {
            Self::Segments(mechanism) => mechanism.in_flight(flow),
            Self::Packets(..) => None,
        }
    }
}
