//! A packet on its way: whose it is, what it tells, and what becomes of it.

use super::Dispatcher;
use super::actions::Fate;
use super::counters::Counters;
use super::effects::Effect;
use super::signal::interrupted;
use crate::groups::{ActiveGroup, classify};
use crate::packets::{Intercepted, Kept, SharedBytes, Verdict};
use crate::signals::SignalSource;
use airtcp_core::{Flags, Flow, Instant, Segment};
use airtcp_edge::{FlowId, Side};
use airtcp_record::Input;
use airtcp_wire::{DecodeError, Decoded, TooBig, decode_with, outline, too_big};

/// Whose a segment is.
#[derive(Clone, Copy)]
struct Whose {
    /// Index of the group.
    n: usize,
    from: Side,
    /// From the fixed to the mobile host.
    flow: Flow,
}

impl Dispatcher {
    /// A packet on its way through this host, or a copy of one that has gone on, for which the
    /// verdict has no effect.
    pub fn on_packet(
        &mut self,
        now: Instant,
        intercepted: &Intercepted,
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        if intercepted.is_copy() && self.on_packet_to_keep(now, intercepted) {
            return self.pass(|c| &mut c.passed);
        }
        let packet = &intercepted.packet;
        let payload = |bytes: &[u8]| SharedBytes(packet.slice_ref(bytes));
        let (segment, foreign_option) = match decode_with(packet, intercepted.checksums, payload) {
            Ok(Decoded { segment, foreign_option }) => (segment, foreign_option),
            Err(DecodeError::NotTcp { .. }) => return self.on_message(intercepted),
            Err(_) => return self.pass(|c| &mut c.undecodable),
        };
        let Some((n, from)) = self.classify(&segment.flow, intercepted) else {
            return self.pass(|c| &mut c.unmatched);
        };
        if intercepted.is_copy() && !self.groups[n].config.is_mirrored() {
            return Verdict::Pass;
        }
        let whose = Whose { n, from, flow: from.to_mobile(segment.flow) };
        if self.refuse(whose, &segment, effects) {
            return Verdict::Drop;
        }
        if self.note_hosts(whose, &segment, foreign_option.is_some(), intercepted.datagram) {
            return self.pass(|c| &mut c.foreign);
        }
        self.note_mobile(now, whose, &segment, effects);
        self.hand_over(now, whose, segment, intercepted, effects)
    }

    /// Hands a copy to wake, if the mobile's group has it; false when it has not.
    fn on_packet_to_keep(&mut self, now: Instant, intercepted: &Intercepted) -> bool {
        let is_wake = |group: &ActiveGroup| group.config.is_of_all_protocols();
        if !self.groups.iter().any(is_wake) {
            return false;
        }
        let Ok((protocol, flow)) = outline(&intercepted.packet) else { return false };
        let Some((n, from)) = self.classify(&flow, intercepted) else { return false };
        let mobile = self.groups[n].config.mobile_of(&from.to_mobile(flow));
        let Some(link) = self.groups[n].config.mechanism.capabilities().all_protocols else {
            return false;
        };
        if from == link {
            self.outages.heard(now, mobile, || interrupted(&self.groups, mobile));
            // Of a malformed one it counts that it came.
            let segment = (protocol == FlowId::TCP)
                .then(|| Kept::new(FlowId { protocol, flow }, intercepted).ok());
            self.groups[n].mechanism.on_heard(now, mobile, segment.flatten().as_ref());
            return true;
        }
        match Kept::new(FlowId { protocol, flow }, intercepted) {
            Ok(kept) if kept.is_too_large() => self.counters.unsendable += 1,
            Ok(kept) => self.groups[n].mechanism.on_sent(now, mobile, &kept),
            Err(_) => self.counters.undecodable += 1,
        }
        true
    }

    /// A packet that is not TCP: perhaps a router says that a segment was too big. It goes on in
    /// any case, for the fixed host.
    fn on_message(&mut self, intercepted: &Intercepted) -> Verdict {
        if intercepted.is_copy() {
            return self.pass(|c| &mut c.unmatched);
        }
        let room = match too_big(&intercepted.packet, intercepted.checksums) {
            Ok(None) => return self.pass(|c| &mut c.unmatched),
            Ok(Some(message)) => self.validated_room(&message, intercepted).zip(Some(message.flow)),
            Err(_) => None,
        };
        match room {
            Some((room, flow)) => {
                self.counters.too_big_accepted += 1;
                self.host_pair(flow).note_room(room);
            }
            None => self.counters.too_big_ignored += 1,
        }
        self.pass(|c| &mut c.passed)
    }

    /// The room on the path to a mobile, from a router's message that can be trusted. RFC 5927
    /// §4.1: the segment that it quotes is in flight. Anybody can send such messages, but not see
    /// which are.
    fn validated_room(&self, message: &TooBig, intercepted: &Intercepted) -> Option<usize> {
        let (n, from) = self.classify(&message.flow.reversed(), intercepted)?;
        let in_flight = self.groups[n].mechanism.in_flight(&message.flow);
        let in_flight = in_flight.filter(|_| from == Side::Mobile)?;
        let is_in_flight =
            message.seq.at_or_after(in_flight.start) && message.seq.before(in_flight.end);
        message.room().filter(|_| is_in_flight)
    }

    /// The group that a packet belongs to, and from which side it comes.
    fn classify(&self, flow: &Flow, packet: &Intercepted) -> Option<(usize, Side)> {
        classify(|| self.groups.iter().map(|group| (&group.config, &group.place)), flow, packet)
    }

    /// Resets a connection that could not be taken over, if this is one; whether it is.
    fn refuse(
        &mut self,
        Whose { n, from, flow }: Whose,
        segment: &Segment<SharedBytes>,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if self.refusals.is_empty() {
            return false;
        }
        let Some((to, reset)) = self.refusals.on_segment(&flow, from, segment) else {
            return false;
        };
        self.counters.inject(to, self.groups[n].place.egress(to), &reset, effects);
        self.counters.dropped += 1;
        true
    }

    /// Takes note of what a segment tells about its hosts; whether only they can send valid
    /// segments of this connection.
    fn note_hosts(
        &mut self,
        Whose { n, from, flow }: Whose,
        segment: &Segment<SharedBytes>,
        has_foreign_option: bool,
        datagram: Option<u16>,
    ) -> bool {
        if segment.flags.contains(Flags::SYN) {
            self.host_pair(flow).note_syn(from, segment);
        } else if has_foreign_option && !self.groups[n].mechanism.is_committed(&flow) {
            // A forged option can make us leave a connection alone, but not one that depends on us.
            self.host_pair(flow).is_foreign = true;
        }
        let hosts = self.hosts.peek(&flow).copied().unwrap_or_default();
        if segment.shows_accecn() && !hosts.has_accecn {
            self.host_pair(flow).has_accecn = true;
        }
        if !hosts.is_foreign && hosts.learns_from(from, segment, datagram) {
            self.host_pair(flow).learn(from, segment, datagram);
        }
        hosts.is_foreign
    }

    /// Takes note that a mobile was heard, or owes an answer.
    fn note_mobile(
        &mut self,
        now: Instant,
        Whose { n, from, flow }: Whose,
        segment: &Segment<SharedBytes>,
        effects: &mut Vec<Effect>,
    ) {
        let mobile = self.groups[n].config.mobile_of(&flow);
        match from {
            Side::Fixed if segment.seq_len() > 0 => {
                let mechanism = &self.groups[n].mechanism;
                self.mobiles.sent(now, mobile, || mechanism.is_mobile_heard(&flow));
            }
            Side::Fixed => {}
            Side::Mobile => {
                self.outages.heard(now, mobile, || interrupted(&self.groups, mobile));
                if let Some(signal) = self.mobiles.seen(mobile) {
                    let cause = (SignalSource::Silence, now);
                    self.on_change(now, mobile, signal, cause, effects);
                }
            }
        }
    }

    /// Hands a segment to the mechanism of its group, and carries out what that wants done.
    fn hand_over(
        &mut self,
        now: Instant,
        Whose { n, from, flow }: Whose,
        segment: Segment<SharedBytes>,
        intercepted: &Intercepted,
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        let (packet, is_copy) = (&intercepted.packet, intercepted.is_copy());
        let mechanism = &mut self.groups[n].mechanism;
        if is_copy {
            mechanism.on_copy(now, from, segment, &mut self.actions);
            self.note_step(now, n, &Input::Copy { from, segment: packet });
        } else {
            mechanism.on_segment(now, from, segment, &mut self.actions);
            self.note_step(now, n, &Input::Segment { from, segment: packet });
        }
        let fate = self.carry_out(n, effects);
        match fate {
            Fate::Passed => self.counters.passed += 1,
            Fate::Dropped | Fate::Held if is_copy => {
                // The packet has gone on, which does no harm: to the mechanism it is as if it had
                // heard later. From now on its verdicts must count.
                self.counters.passed += 1;
                let mobile = self.groups[n].config.mobile_of(&flow);
                self.watch(now, n, mobile, effects);
            }
            Fate::Dropped => self.counters.dropped += 1,
            Fate::Held => self.counters.held += 1,
        }
        match fate {
            Fate::Passed => Verdict::Pass,
            Fate::Dropped | Fate::Held => Verdict::Drop,
        }
    }

    fn pass(&mut self, counter: impl Fn(&mut Counters) -> &mut u64) -> Verdict {
        *counter(&mut self.counters) += 1;
        Verdict::Pass
    }
}
