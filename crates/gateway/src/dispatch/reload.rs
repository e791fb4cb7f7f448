//! Another configuration while the gateway runs.

use super::actions::tell_unwritten;
use super::{Dispatcher, remembered};
use crate::config::GatewayConfig;
use crate::groups::{ActiveGroup, DispatchError, of_group, table};
use airtcp_core::Instant;
use airtcp_edge::{FlowPhase, FlowReport, Note};

impl Dispatcher {
    /// Goes on with another configuration. A group keeps its connections if it keeps its name and
    /// mechanism.
    ///
    /// # Errors
    /// Nothing was changed: the configuration cannot be put to work, or a group that is to go, or
    /// to change its mechanism, has promised bytes.
    pub fn reload(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        index: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<(), DispatchError> {
        let table = table(&config.limits, self.table.hash_key);
        let begin = |(id, group)| ActiveGroup::new(id, group, table, config, index);
        let mut groups: Vec<ActiveGroup> =
            (self.next_id..).zip(&config.groups).map(begin).collect::<Result<_, _>>()?;
        for old in self.groups.iter().filter(|old| !groups.iter().any(|new| new.succeeds(old))) {
            let committed = old.mechanism.reports().filter(|report| report.committed).count();
            if committed > 0 {
                let group = old.config.name.clone();
                return Err(DispatchError::Committed { group, committed });
            }
        }
        self.next_id += groups.len() as u32;
        for new in &mut groups {
            let memory = config.limits.memory;
            let mut is_kept = false;
            if let Some(old) = self.groups.iter_mut().find(|old| new.succeeds(old))
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
        for old in std::mem::replace(&mut self.groups, groups) {
            // Those that go on have left an empty one in their place.
            let is_kept = |report: &FlowReport| report.phase != FlowPhase::Connected;
            let gone = old.mechanism.reports().filter(is_kept);
            let notes: Vec<_> = gone.map(|report| Note::Released(report.flow)).collect();
            self.keeper.write(&old.config.name, &notes).unwrap_or_else(tell_unwritten);
        }
        self.table = table;
        self.hosts.set_capacity(remembered(config));
        self.mobiles.set_silence(config.signals.silence);
        for n in 0..self.groups.len() {
            self.write_down(n);
        }
        Ok(())
    }
}
