//! What the gateway is doing.

use super::Dispatcher;
use super::counters::owned;
use crate::groups::ActiveGroup;
use crate::status::{FlowStatus, GroupStatus, Status};
use airtcp_core::Instant;

impl Dispatcher {
    /// The state of the gateway, its groups and connections.
    pub fn status(&self, now: Instant) -> Status {
        let mut status = Status { counters: self.counters.by_name(), ..self.mobiles.status() };
        for ActiveGroup { config, mechanism, .. } in &self.groups {
            status.groups.push(GroupStatus {
                name: config.name.clone(),
                mechanism: config.mechanism.word().to_owned(),
                path: if config.is_mirrored() { "mirror" } else { "nfqueue" }.to_owned(),
                flows: mechanism.flows() as u64,
                held: mechanism.held(),
                segments_refused: mechanism.segments_refused(),
                counters: owned(mechanism.counters()),
            });
            status.flow_count += mechanism.flows() as u64;
            status.held += mechanism.held();
            for report in mechanism.reports() {
                status.committed += u64::from(report.committed);
                if status.flows.len() < Status::LISTED {
                    status.flows.push(FlowStatus {
                        fixed: report.flow.src.to_string(),
                        mobile: report.flow.dst.to_string(),
                        group: config.name.clone(),
                        mechanism: config.mechanism.word().to_owned(),
                        state: report.phase.name().to_owned(),
                        since: report.since.map(|since| now.since(since).as_secs_f64()),
                        held: report.held,
                        committed: report.committed,
                    });
                }
            }
        }
        status
    }
}
