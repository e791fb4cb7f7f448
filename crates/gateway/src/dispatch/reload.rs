//! Another configuration while the gateway runs.

use super::effects::Effect;
use super::signal::watches;
use super::{Dispatcher, remembered};
use crate::config::GatewayConfig;
use crate::groups::{ActiveGroup, DispatchError, Interfaces, of_group, table};
use airtcp_core::{Flow, Instant};

impl Dispatcher {
    /// Goes on with another configuration. A group keeps its connections if it keeps its name and
    /// mechanism. Those that it holds up for mobiles that are away, and that are another group's
    /// from now on, are handed over to that.
    ///
    /// # Errors
    /// Nothing was changed: the configuration cannot be put to work, or such a connection has no
    /// group with its mechanism.
    pub fn reload(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        interfaces: &Interfaces,
        effects: &mut Vec<Effect>,
    ) -> Result<(), DispatchError> {
        let table = table(&config.limits, self.table.hash_key);
        let begin = |(id, group)| ActiveGroup::new(id, group, table, config, interfaces);
        let mut groups: Vec<ActiveGroup> =
            (self.next_id..).zip(&config.groups).map(begin).collect::<Result<_, _>>()?;
        let stays: Vec<bool> =
            self.groups.iter().map(|old| stays(old, &groups)).collect::<Result<_, _>>()?;
        self.next_id += groups.len() as u32;
        for new in &mut groups {
            let memory = config.limits.memory;
            let mut old = self.groups.iter_mut().zip(&stays);
            let mut is_kept = false;
            if let Some((old, true)) = old.find(|(old, _)| new.succeeds(old))
                && old
                    .mechanism
                    .reconfigure(&new.config.mechanism, of_group(table, &new.config), memory)
                    .is_ok()
            {
                is_kept = true;
                new.id = old.id;
                std::mem::swap(&mut old.mechanism, &mut new.mechanism);
            }
            if let Some(recorder) = &mut self.recorder {
                let setup = new.setup(&config.limits);
                match is_kept {
                    true => recorder.reconfigure(now, new.id, &setup),
                    false => recorder.begin(now, new.id, &setup),
                }
            }
        }
        let before = std::mem::replace(&mut self.groups, groups);
        self.table = table;
        self.hosts.set_capacity(remembered(config));
        self.mobiles.set_silence(config.signals.silence);
        let groups = &self.groups;
        self.outages.reconfigure(config.limits.idle, |name| {
            groups.iter().any(|group| group.config.name == name)
        });
        self.forget_foreign(&before, effects);
        for (old, _) in before.into_iter().zip(stays).filter(|(_, stays)| !stays) {
            self.hand_over_from(now, old, effects);
        }
        for n in 0..self.groups.len() {
            self.write_down(n);
        }
        Ok(())
    }

    /// Forgets mobiles that no group has any more: signals about them are refused from now on.
    fn forget_foreign(&mut self, before: &[ActiveGroup], effects: &mut Vec<Effect>) {
        let Self { groups, mobiles, outages, watched, refusals, .. } = self;
        let is_member = |mobile| groups.iter().any(|group| group.config.has(mobile));
        mobiles.retain(is_member);
        outages.retain(is_member);
        watched.retain(|&mobile| {
            let is_kept = is_member(mobile) || refusals.concern(mobile);
            if !is_kept {
                effects.extend(before.iter().filter_map(|group| watches(group, mobile, false)));
            }
            is_kept
        });
    }

    /// Hands over the connections that a group of before holds up.
    fn hand_over_from(&mut self, now: Instant, mut old: ActiveGroup, effects: &mut Vec<Effect>) {
        for (flow, snapshot) in old.mechanism.snapshots() {
            let Some(n) = home(&old, &self.groups, &flow) else { continue };
            self.groups[n].mechanism.restore(now, flow, snapshot);
            if let Some(recorder) = &mut self.recorder {
                recorder.restore(now, self.groups[n].id, 1);
            }
            self.watch(now, n, old.config.mobile_of(&flow), effects);
        }
    }
}

/// True if a group stays, with all connections that it holds up for absent mobiles; otherwise they
/// are to be handed over. Wake holds up none.
///
/// # Errors
/// Some of them cannot be.
fn stays(old: &ActiveGroup, new: &[ActiveGroup]) -> Result<bool, DispatchError> {
    let capabilities = old.config.mechanism.capabilities();
    let successor = new.iter().position(|new| new.succeeds(old));
    if capabilities.all_protocols.is_some() {
        return Ok(successor.is_some());
    }
    let interrupted = old.mechanism.reports().filter(|report| report.phase.is_interrupted());
    let homes: Vec<Option<usize>> =
        interrupted.map(|report| home(old, new, &report.flow)).collect();
    if homes.iter().all(|home| home.is_some() && *home == successor) {
        return Ok(successor.is_some());
    }
    let lost = match capabilities.journal {
        true => homes.iter().filter(|home| home.is_none()).count(),
        // There are no snapshots of them.
        false => homes.len(),
    };
    match lost {
        0 => Ok(false),
        connections => Err(DispatchError::Interrupted {
            group: old.config.name.clone(),
            connections,
            mechanism: old.config.mechanism.word(),
        }),
    }
}

/// The group that goes on with a connection of an old one: with the same mechanism, where packets
/// of its mobile come.
fn home(old: &ActiveGroup, groups: &[ActiveGroup], flow: &Flow) -> Option<usize> {
    let mobile = old.config.mobile_of(flow);
    let has = |group: &ActiveGroup| group.config.has(mobile);
    // The first that has the mobile wherever it is; those before it have it behind some interface.
    let is_sure = |group: &ActiveGroup| has(group) && group.config.interfaces().is_empty();
    let end = groups.iter().position(is_sure).map_or(groups.len(), |sure| sure + 1);
    let candidates = || groups[..end].iter().zip(0..).filter(|(group, _)| has(group));
    let own = candidates().find(|(group, _)| group.succeeds(old));
    let other = || candidates().find(|(group, _)| group.has_mechanism_of(old));
    own.or_else(other).map(|(_, n)| n)
}
