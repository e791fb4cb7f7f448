//! A log for each link, in the format of Mahimahi's `mm-link` ([`airtcp_net::log`]).

use super::LinkTap;
use crate::scenario::Scenario;
use airtcp_core::{Bytes, Id, Instant};
use airtcp_net::log::{Header, LinkEvent, LinkLog};
use airtcp_net::{Departure, LinkStreams};
use airtcp_routing::LinkId;
use std::io::{self, Write};

/// The logs of all links of a scenario.
#[derive(Debug)]
pub struct LinkLogs<W> {
    logs: Vec<LinkLog<W>>,
    error: Option<io::Error>,
}

/// Name of the file for the log of a link: of `BS>phone`, `BS.phone.log`. Names of nodes have no
/// dots, so each link has its own.
pub fn file_name(link: &str) -> String {
    format!("{}.log", link.replace('>', "."))
}

impl<W: Write> LinkLogs<W> {
    /// Opens a log for each link of the scenario by its [file's name](file_name), and writes its
    /// head.
    ///
    /// # Errors
    /// Those of `open` and of the writers.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        mut open: impl FnMut(&str) -> io::Result<W>,
    ) -> io::Result<Self> {
        let command_line = format!("airtcp run, seed {seed}");
        let log = |link: &crate::scenario::Link| {
            let file = file_name(&link.name);
            let streams = LinkStreams::named(seed, &link.name);
            let mut log = LinkLog::new(open(&file)?, &link.config, streams);
            // Simulated time begins at 0.
            let (name, command_line) = (&*link.name, &*command_line);
            let header = Header { name, file: &file, command_line, started: 0 };
            log.write_header(&header, &link.config).map(|()| log)
        };
        let logs = scenario.links.iter().map(log).collect::<io::Result<_>>()?;
        Ok(Self { logs, error: None })
    }

    /// Completes the logs of a run that ended at `end`.
    ///
    /// # Errors
    /// The first error of the run, after which nothing more was written, or of the last writes.
    pub fn finish(mut self, end: Instant) -> io::Result<Vec<W>> {
        for log in &mut self.logs {
            if self.error.is_none() {
                self.error = log.write(LinkEvent::End(end)).err();
            }
        }
        match self.error {
            Some(error) => Err(error),
            None => self.logs.into_iter().map(LinkLog::finish).collect(),
        }
    }

    fn write(&mut self, link: LinkId, event: LinkEvent) {
        if self.error.is_none() {
            self.error = self.logs[link.index()].write(event).err();
        }
    }
}

impl<W: Write> LinkTap for LinkLogs<W> {
    fn on_offer(&mut self, at: Instant, link: LinkId, size: Bytes, taken: bool) {
        self.write(link, LinkEvent::Arrival(at, size));
        if !taken {
            self.write(link, LinkEvent::Refusal(at, size));
        }
    }

    fn on_departure(&mut self, link: LinkId, departure: Departure) {
        self.write(link, LinkEvent::Departure(departure));
    }
}
