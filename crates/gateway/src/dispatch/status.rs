//! What the gateway is doing.

use super::Dispatcher;
use super::counters::owned;
use crate::groups::ActiveGroup;
use crate::status::{FlowStatus, GroupStatus, Status, VERSION};
use airtcp_core::Instant;

impl Dispatcher {
    /// The state of the gateway, its groups and connections.
    pub fn status(&self, now: Instant) -> Status {
        let mut status = Status {
            version: VERSION.to_owned(),
            counters: self.counters.by_name(),
            ..self.mobiles.status()
        };
        status.outages.extend(self.outages.ongoing(now).take(Status::LISTED));
        for ActiveGroup { config, mechanism, .. } in &self.groups {
            let (outages, longest_outage) = self.outages.of_group(&config.name);
            status.groups.push(GroupStatus {
                name: config.name.clone(),
                mechanism: config.mechanism.word().to_owned(),
                path: if config.is_mirrored() { "mirror" } else { "nfqueue" }.to_owned(),
                flows: mechanism.flows() as u64,
                held: mechanism.held(),
                segments_refused: mechanism.segments_refused(),
                counters: owned(mechanism.counters()),
                outages,
                longest_outage,
            });
            status.flow_count += mechanism.flows() as u64;
            status.held += mechanism.held();
            for report in mechanism.reports() {
                status.committed += u64::from(report.committed);
                if status.flows.len() < Status::LISTED {
                    // The hosts on board are the fixed ones there.
                    let (server, device) = match config.uplink() {
                        None => (report.flow.src, report.flow.dst),
                        Some(_) => (report.flow.dst, report.flow.src),
                    };
                    status.flows.push(FlowStatus {
                        server: server.to_string(),
                        device: device.to_string(),
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
