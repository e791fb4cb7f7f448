//! A log of the packets in one direction of a link ([`airtcp_net::log`]). The pump reports events; a
//! thread formats and writes them.

use crate::EmuError;
use airtcp_net::LinkStreams;
use airtcp_net::config::LinkConfig;
use airtcp_net::log::{Header, LinkEvent, LinkLog};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// Most events that may wait to be written; beyond that the pump waits, which shows in its
/// lateness.
const BACKLOG: usize = 1 << 16;

/// A log file that is being written.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    events: SyncSender<LinkEvent>,
    writer: JoinHandle<io::Result<()>>,
}

impl Log {
    /// Creates the file; `name` of the direction and `command_line` go to its header.
    pub(crate) fn create(
        path: &Path,
        name: &str,
        command_line: &str,
        config: &LinkConfig,
        streams: LinkStreams<'_>,
    ) -> Result<Self, EmuError> {
        let failed = |source| EmuError::Log { path: path.to_owned(), source };
        let file = BufWriter::new(File::create(path).map_err(failed)?);
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let started = started.map_or(0, |since| since.as_millis());
        let header = Header { name, file: &path.to_string_lossy(), command_line, started };
        let mut log = LinkLog::new(file, config, streams);
        log.write_header(&header, config).map_err(failed)?;
        let (events, received) = sync_channel(BACKLOG);
        let writer = std::thread::spawn(move || {
            for event in received {
                log.write(event)?;
            }
            log.finish().map(|_| ())
        });
        Ok(Self { path: path.to_owned(), events, writer })
    }

    /// Queues an event for the writer.
    pub(crate) fn note(&self, event: LinkEvent) {
        // Fails only if the writer has ended with an error, which `Log::close` returns.
        let _ = self.events.send(event);
    }

    /// Waits until all events are written.
    pub(crate) fn close(self) -> Result<(), EmuError> {
        let Self { path, events, writer } = self;
        drop(events);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.map_err(|source| EmuError::Log { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Bytes, DataRate, Duration, Instant};
    use airtcp_net::config::{DelayConfig, LossConfig, QueueConfig, QueueLimit};

    fn us(n: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(n)
    }

    fn config() -> LinkConfig {
        LinkConfig {
            rate: DataRate::mbps(1).into(),
            delay: DelayConfig { base: Duration::from_millis(20), variation: None },
            loss: LossConfig::None.into(),
            duplicate: 0.0,
            policer: None,
            outage: None,
            reconfiguration: None,
            handover: None,
            rlc: None,
            queue: QueueConfig::DropTail { limit: QueueLimit::Packets(2) },
        }
    }

    #[test]
    fn a_file_begins_with_the_header_of_mahimahi() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("up.log");
        let (command, streams) = ("airtcp link -- sh -c 'ls\nls'", LinkStreams::named(1, "up"));
        let log = Log::create(&path, "Uplink", command, &config(), streams).unwrap();
        log.note(LinkEvent::Arrival(us(500), Bytes(40)));
        log.note(LinkEvent::Steered(us(800), true));
        log.note(LinkEvent::End(us(1_700)));
        log.close().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let title = format!("# mahimahi mm-link (Uplink) [1 Mbit/s] > {}", path.display());
        let [first, command, queue, init, rest @ ..] = &lines[..] else { panic!("{text}") };
        assert_eq!(
            (*first, *command, *queue),
            (
                &title[..],
                "# command line: airtcp link -- sh -c 'ls ls'",
                "# queue: droptail [packets=2]"
            )
        );
        assert!(init.strip_prefix("# init timestamp: ").unwrap().parse::<u64>().is_ok());
        assert_eq!(rest, ["# base timestamp: 0", "0 + 40"]);
    }
}
