//! What mechanisms want done: written down, recorded, cut to size and sent.

use super::Dispatcher;
use super::counters::Counters;
use super::effects::Effect;
use crate::groups::{ActiveGroup, egress};
use crate::hosts::HostPair;
use crate::ledger::WriteError;
use crate::packets::{Egress, SharedBytes};
use airtcp_core::{Flags, Flow, Instant, Payload, Segment};
use airtcp_edge::{Action, MobileId, Side};
use airtcp_record::Input;
use airtcp_wire::{Checksums, Decoded, decode_with, encode};

/// Fate of a packet that a mechanism was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes on as it came.
    Passed,
    /// It goes no further: the mechanism has answered it, or it was not needed.
    Dropped,
    /// The mechanism keeps its data, to send them when the mobile is back.
    Held,
}

impl Dispatcher {
    /// Turns the actions of a group's mechanism into effects, and into the fate of the packet that
    /// led to them, if one did.
    pub(super) fn carry_out(&mut self, n: usize, effects: &mut Vec<Effect>) -> Fate {
        self.write_down(n);
        let mut fate = Fate::Held;
        for action in self.actions.drain() {
            match action {
                Action::Forward { .. } => fate = Fate::Passed,
                Action::Drop { .. } => fate = Fate::Dropped,
                Action::Inject { to, segment } => {
                    let flow = to.opposite().to_mobile(segment.flow);
                    let hosts = self.hosts.entry(flow).or_insert_with(HostPair::default);
                    let group = &self.groups[n];
                    // Wake sends the same packet again to a mobile that may be away.
                    let is_replay = !group.config.is_of_all_protocols();
                    if to == Side::Mobile && is_replay && !segment.payload.is_empty() {
                        let is_in_reach = !self.mobiles.is_away(group.config.mobile_of(&flow));
                        hosts.note_replayed(segment.seq, is_in_reach);
                    }
                    for piece in pieces(segment, hosts.largest(to), hosts.has_accecn) {
                        self.counters.inject(to, group.place.egress(to), &piece, effects);
                    }
                }
            }
        }
        fate
    }

    /// Writes down what a group's mechanism noted, and takes back promises that could not be
    /// written down.
    pub(super) fn write_down(&mut self, n: usize) {
        let ActiveGroup { config, mechanism, .. } = &mut self.groups[n];
        let notes = mechanism.drain_journal();
        if notes.is_empty() {
            return;
        }
        if let Err(error) = self.keeper.write(&config.name, &notes) {
            for flow in &error.flows {
                self.counters.unkept += u64::from(mechanism.withhold(flow, &mut self.actions));
            }
            tell_unwritten(error);
        }
    }

    /// Call it when the effects of the last call were carried out.
    pub fn settle(&mut self) {
        let due = self.keeper.settle();
        if due.is_empty() {
            return;
        }
        for n in 0..self.groups.len() {
            due.iter().for_each(|flow| self.groups[n].mechanism.note_anew(flow));
            self.write_down(n);
        }
    }

    /// Records a call to the mechanism of a group, if that is about segments: other packets are not
    /// recorded.
    pub(super) fn note_step(&mut self, now: Instant, n: usize, input: &Input<&[u8]>) {
        if let Some(recorder) = &mut self.recorder
            && !self.groups[n].config.is_of_all_protocols()
        {
            recorder.step(now, self.groups[n].id, input, self.actions.as_slice());
        }
    }

    /// A packet is larger than the first link takes. Returns smaller ones in its place; none if
    /// there can be none.
    pub fn cut_smaller(&mut self, to: Side, packet: &[u8]) -> Vec<Vec<u8>> {
        let payload = |bytes: &[u8]| SharedBytes(bytes::Bytes::copy_from_slice(bytes));
        let Ok(Decoded { segment, .. }) = decode_with(packet, Checksums::Ignore, payload) else {
            return Vec::new();
        };
        let size = segment.payload.len() + segment.options.encoded_len();
        let hosts = self.host_pair(to.opposite().to_mobile(segment.flow));
        hosts.note_too_large(to, size);
        let (largest, has_accecn) = (hosts.largest(to), hosts.has_accecn);
        if size <= usize::from(largest) {
            return Vec::new();
        }
        let mut effects = Vec::new();
        for piece in pieces(segment, largest, has_accecn) {
            self.counters.inject(to, Some(egress(to)), &piece, &mut effects);
        }
        let packet = |effect| match effect {
            Effect::Inject { packet, .. } => Some(packet),
            _ => None,
        };
        effects.into_iter().filter_map(packet).collect()
    }

    /// The egress of packets of a connection that no group has, as far as its addresses tell.
    pub(super) fn egress_of(&self, flow: &Flow, to: Side) -> Option<Egress> {
        let uplink = || self.groups.iter().find(|group| group.config.uplink().is_some());
        let group = self.group_of_mobile(flow).or_else(uplink);
        group.map_or(Some(egress(to)), |group| group.place.egress(to))
    }

    /// The group that has the mobile, if that is what the flow goes to.
    pub(super) fn group_of_mobile(&self, flow: &Flow) -> Option<&ActiveGroup> {
        self.groups.iter().find(|group| group.config.has(MobileId::Host(flow.dst.ip)))
    }
}

/// Says that a keeper could not write something down.
pub(super) fn tell_unwritten(error: WriteError) {
    let (connections, first) = (error.flows.len(), error.flows.first().map(Flow::to_string));
    tracing::error!(
        connections,
        first,
        %error,
        "what must survive a crash cannot be written down: bytes of these connections are not acknowledged"
    );
}

impl Counters {
    /// Has a segment sent, as one packet.
    pub(super) fn inject(
        &mut self,
        to: Side,
        egress: Option<Egress>,
        segment: &Segment<SharedBytes>,
        effects: &mut Vec<Effect>,
    ) {
        let mut packet = Vec::new();
        match encode(segment, &mut packet) {
            Ok(()) => self.send(to, egress, packet, effects),
            Err(_) => self.unsendable += 1,
        }
    }

    /// Has a packet sent. Without a way it is lost, as on a link that is down.
    pub(super) fn send(
        &mut self,
        to: Side,
        egress: Option<Egress>,
        packet: Vec<u8>,
        effects: &mut Vec<Effect>,
    ) {
        effects.extend(egress.map(|egress| Effect::Inject { to, egress, packet }));
        self.injected += u64::from(egress.is_some());
    }
}

/// Cuts a segment so that payload and options of each piece fit in `mss` (RFC 6691). FIN and PSH
/// are the last one's, CWR is the first one's; with AccECN all have it, as a part of the counter
/// (RFC 9768 §3.2.2).
pub(super) fn pieces<P: Payload>(
    segment: Segment<P>,
    mss: u16,
    has_accecn: bool,
) -> impl Iterator<Item = Segment<P>> {
    let most = usize::from(mss).saturating_sub(segment.options.encoded_len()).max(1);
    let first = if has_accecn || segment.shows_accecn() { Flags::empty() } else { Flags::CWR };
    let last = Flags::FIN | Flags::PSH;
    let len = segment.payload.len();
    let count = len.div_ceil(most).max(1);
    (0..count).map(move |n| {
        if count == 1 {
            return segment.clone();
        }
        let start = n * most;
        let mut flags = segment.flags;
        if n + 1 < count {
            flags -= last;
        }
        if n > 0 {
            flags -= first;
        }
        Segment {
            seq: segment.seq + start as u32,
            flags,
            payload: segment.payload.slice(start, most.min(len - start)),
            ..segment.clone()
        }
    })
}
