//! What is due.

use super::Dispatcher;
use super::actions::tell_unwritten;
use super::effects::Effect;
use crate::groups::ActiveGroup;
use crate::signals::SignalSource;
use airtcp_core::Instant;
use airtcp_edge::TURN;
use airtcp_edge::{MechanismNote, Side};
use airtcp_record::Input;
use airtcp_wire::checksummed;

impl Dispatcher {
    /// The deadline passed: does a part of what is due, for packets must not wait long. If more is,
    /// the next deadline has passed too.
    pub fn on_timer(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        while effects.len() < TURN
            && let Some((mobile, signal)) = self.mobiles.silent(now)
        {
            let since = self.mobiles.owes_since(mobile).unwrap_or(now);
            self.on_change(now, mobile, signal, (SignalSource::Silence, since), effects);
        }
        let deadlines = self.groups.iter().map(|group| group.mechanism.next_deadline()).zip(0..);
        let first = deadlines.filter_map(|(due, n)| Some((due?, n))).min();
        if let Some((_, n)) = first.filter(|&(due, _)| due <= now) {
            let egresses =
                [Side::Fixed, Side::Mobile].map(|side| self.groups[n].place.egress(side));
            let counters = &mut self.counters;
            let raw = |to: Side, packet: &[u8]| match checksummed(packet) {
                Ok(packet) => counters.send(to, egresses[to as usize], packet, effects),
                Err(_) => counters.unsendable += 1,
            };
            self.groups[n].mechanism.on_timer(now, &mut self.actions, raw);
            self.note_step(now, n, &Input::Timer);
            self.carry_out(n, effects);
            let ActiveGroup { config, mechanism, .. } = &self.groups[n];
            for &(mobile, since) in mechanism.found_silent() {
                let (whose, cause) = ((mobile, &*config.name), (SignalSource::Silence, since));
                self.outages.begin(now, whose, cause, Some(mechanism.interrupted(mobile)));
            }
        }
        if self.refusals.next_deadline().is_some_and(|due| due <= now) {
            let mut over = Vec::new();
            for (to, segment) in self.refusals.on_timer(now, &mut over) {
                let egress = self.egress_of(&to.opposite().to_mobile(segment.flow), to);
                self.counters.inject(to, egress, &segment, effects);
            }
            let notes: Vec<_> = over.into_iter().map(MechanismNote::Released).collect();
            self.keeper.write("", &notes).unwrap_or_else(tell_unwritten);
        }
        if self.unwatch.is_some_and(|due| due <= now) {
            self.unwatch(now, effects);
        }
        if self.outages.next_deadline().is_some_and(|due| due <= now) {
            self.outages.on_timer(now);
        }
    }

    /// Time of the next call of [`Dispatcher::on_timer`].
    pub fn next_deadline(&self) -> Option<Instant> {
        let mechanisms = self.groups.iter().filter_map(|group| group.mechanism.next_deadline());
        let others = [
            self.mobiles.next_deadline(),
            self.refusals.next_deadline(),
            self.unwatch,
            self.outages.next_deadline(),
        ];
        mechanisms.chain(others.into_iter().flatten()).min()
    }
}
