//! Connections of an earlier process.

use super::Dispatcher;
use super::effects::Effect;
use crate::config::uplink_of;
use crate::groups::ActiveGroup;
use crate::ledger::{Refused, Saved};
use crate::signals::SignalSource;
use airtcp_core::Instant;
use airtcp_edge::MobileId;
use std::collections::BTreeMap;

impl Dispatcher {
    /// Takes over connections of an earlier process, and resets, at both ends, those that nobody
    /// can go on with; how many of each.
    pub fn take_over(
        &mut self,
        now: Instant,
        connections: Vec<Saved>,
        refused: Vec<Refused>,
        effects: &mut Vec<Effect>,
    ) -> [usize; 2] {
        let (mut taken, mut failed) = (0, refused);
        // Of mobiles with their groups: since when they are away.
        let mut away: BTreeMap<(MobileId, usize), Instant> = BTreeMap::new();
        for Saved { group, flow, snapshot } in connections {
            let has = |known: &ActiveGroup| known.config.has(known.config.mobile_of(&flow));
            let named = self.groups.iter().position(|own| own.config.name == group && has(own));
            // Of an uplink's connections the other host is fixed.
            let is_mobile = |own: &ActiveGroup| own.config.uplink().is_none() && has(own);
            let found = named.or_else(|| {
                let other = self.groups.iter().position(is_mobile);
                other.filter(|_| uplink_of(&group).is_none())
            });
            let restored =
                found.filter(|&n| self.groups[n].mechanism.restore(now, flow, snapshot.clone()));
            if let Some(n) = restored {
                taken += 1;
                if let Some(since) = snapshot.down_since() {
                    let mobile = self.groups[n].config.mobile_of(&flow);
                    let first = away.entry((mobile, n)).or_insert(since);
                    *first = since.min(*first);
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.restore(now, self.groups[n].id, 1);
                }
                self.watch(now, n, self.groups[n].config.mobile_of(&flow), effects);
            } else {
                let word = snapshot.config().word();
                let why = match found {
                    None if uplink_of(&group).is_some() => format!("{group:?} is gone"),
                    None => format!("no group has the mobile (it was in {group:?})"),
                    Some(n) => {
                        let own = &self.groups[n].config;
                        let (name, has) = (&own.name, own.mechanism.word());
                        format!("group {name:?} has {has}, and it is of {word} (group {group:?})")
                    }
                };
                failed.push(Refused { flow, why, resets: snapshot.resets() });
            }
        }
        for ((mobile, n), since) in away {
            let ActiveGroup { config, mechanism, .. } = &self.groups[n];
            let (whose, cause) = ((mobile, &*config.name), (SignalSource::EarlierGateway, since));
            self.outages.begin(now, whose, cause, Some(mechanism.interrupted(mobile)));
        }
        for n in 0..self.groups.len() {
            self.write_down(n);
        }
        let counts = [taken, failed.len()];
        for Refused { flow, why, resets } in failed {
            tracing::error!(%flow, why, "a connection of an earlier gateway is reset");
            self.counters.refused += 1;
            self.refusals.add(now, flow, resets, self.table.idle);
            let is_mobile = self.group_of_mobile(&flow).is_some();
            for n in 0..self.groups.len() {
                if !is_mobile || self.groups[n].config.uplink().is_none() {
                    self.watch(now, n, self.groups[n].config.mobile_of(&flow), effects);
                }
            }
        }
        counts
    }
}
