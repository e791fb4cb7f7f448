//! Signals about links, and whose packets are watched because of them.

use super::Dispatcher;
use super::effects::Effect;
use crate::config::Queued;
use crate::groups::ActiveGroup;
use crate::signals::{MobileSignal, SignalSource};
use airtcp_core::{Duration, Instant, LinkSignal};
use airtcp_edge::{InterfaceName, MobileId};
use airtcp_record::Input;
use std::collections::BTreeSet;

/// Interval between checks whether a mobile that is back still needs its packets intercepted.
/// Whatever a mechanism drops in the first round trips after an outage should be intercepted.
pub(super) const SETTLING: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// A source says something about a mobile.
    pub fn on_signal(&mut self, now: Instant, signal: MobileSignal, effects: &mut Vec<Effect>) {
        let MobileSignal { mobile, source, .. } = signal;
        tracing::debug!("signal from {}: {mobile} is {}", source.name(), signal.signal.name());
        let change = self.mobiles.note(signal).or_else(|| {
            // Connections may wait because of a signal that an earlier process was given.
            let waits = || self.groups.iter().any(|group| group.mechanism.is_interrupted(mobile));
            let is_back = signal.signal == LinkSignal::Up && !self.mobiles.is_away(mobile);
            (is_back && waits()).then_some(LinkSignal::Up)
        });
        if let Some(change) = change {
            if signal.signal == LinkSignal::Up {
                self.end_outage(now, mobile);
            }
            self.on_change(now, mobile, change, (source, now), effects);
        } else if signal.signal == LinkSignal::Down {
            // The outage may have begun with silence, or be over because the mobile was heard.
            self.begin_outage(now, mobile, (source, now));
        }
    }

    /// A source is not asked any more.
    pub fn on_withdrawn(&mut self, now: Instant, source: SignalSource, effects: &mut Vec<Effect>) {
        for (mobile, signal) in self.mobiles.withdraw(source) {
            self.on_change(now, mobile, signal, (source, now), effects);
        }
    }

    /// The interface of an uplink has this index from now on; none: it is gone.
    pub fn set_index(&mut self, uplink: InterfaceName, index: Option<u32>) {
        self.groups
            .iter_mut()
            .for_each(|group| group.place.set_index(&group.config, uplink, index));
    }

    /// The state of a mobile, by all sources together, has changed. `cause`: the source that changed
    /// it, and the time since which the mobile is down, if it is.
    pub(super) fn on_change(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        cause: (SignalSource, Instant),
        effects: &mut Vec<Effect>,
    ) {
        let is_down = signal == LinkSignal::Down;
        // A report that the link is fading, or no longer is, does not end an outage that only
        // silence has shown.
        if !is_down && self.outages.is_announced(mobile) {
            self.end_outage(now, mobile);
        }
        self.notify(now, mobile, signal, effects);
        if is_down {
            self.begin_outage(now, mobile, cause);
        }
    }

    fn begin_outage(&mut self, now: Instant, mobile: MobileId, cause: (SignalSource, Instant)) {
        if let Some(group) = self.groups.iter().find(|group| group.config.has(mobile)) {
            // While a mobile answers, wake is shown next to nothing: it learns of its connections as
            // they send into the outage.
            let is_known = !group.config.is_of_all_protocols();
            let connections = is_known.then(|| interrupted(&self.groups, mobile));
            self.outages.begin(now, (mobile, &group.config.name), cause, connections);
        }
    }

    fn end_outage(&mut self, now: Instant, mobile: MobileId) {
        self.outages.end(now, mobile, || interrupted(&self.groups, mobile));
    }

    /// Passes a mobile's signal to the mechanisms of its groups.
    fn notify(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        effects: &mut Vec<Effect>,
    ) {
        for n in 0..self.groups.len() {
            if !self.groups[n].config.has(mobile) {
                continue;
            }
            if signal != LinkSignal::Up {
                self.watch(now, n, mobile, effects);
            } else if !self.watched.is_empty() {
                self.unwatch = Some(now + SETTLING);
            }
            self.groups[n].mechanism.on_signal(now, mobile, signal, &mut self.actions);
            self.note_step(now, n, &Input::Signal { mobile, signal });
            self.carry_out(n, effects);
        }
    }

    /// From now on the packets of a mobile of this group are intercepted, or all copied.
    pub(super) fn watch(
        &mut self,
        now: Instant,
        n: usize,
        mobile: MobileId,
        effects: &mut Vec<Effect>,
    ) {
        if watches(&self.groups[n], mobile, true).is_some() && self.watched.insert(mobile) {
            let of_group = |group: &ActiveGroup| watches(group, mobile, true);
            effects.extend(self.groups.iter().filter_map(of_group));
            self.unwatch.get_or_insert(now + SETTLING);
        }
    }

    /// Stops intercepting packets of mobiles that are back and have everything that was held for
    /// them, and copying all of theirs.
    pub(super) fn unwatch(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let away: BTreeSet<MobileId> = self.mobiles.away().map(|(mobile, _)| mobile).collect();
        let groups = &self.groups;
        self.watched.retain(|&mobile| {
            let is_settled = !away.contains(&mobile)
                && !self.refusals.concern(mobile)
                && groups.iter().all(|group| !group.mechanism.is_interrupted(mobile));
            if is_settled {
                effects.extend(groups.iter().filter_map(|group| watches(group, mobile, false)));
            }
            !is_settled
        });
        let is_unsettled = self.watched.iter().any(|mobile| !away.contains(mobile));
        self.unwatch = is_unsettled.then(|| now + SETTLING);
    }
}

/// Connections of a mobile that an outage interrupts.
pub(super) fn interrupted(groups: &[ActiveGroup], mobile: MobileId) -> usize {
    let having = groups.iter().filter(|group| group.config.has(mobile));
    having.map(|group| group.mechanism.interrupted(mobile)).sum()
}

/// The effect that starts, or ends, showing a mechanism everything about a mobile in an outage.
pub(super) fn watches(group: &ActiveGroup, mobile: MobileId, on: bool) -> Option<Effect> {
    if !group.config.has(mobile) {
        return None;
    }
    match group.config.queued() {
        _ if group.config.is_of_all_protocols() => Some(Effect::MirrorAll { mobile, on }),
        Queued::Watched => Some(Effect::Watch { mobile, watched: on }),
        Queued::Always | Queued::Never => None,
    }
}
