//! Receives reports of the mobiles' agents.
//!
//! Read first: [`airtcp_gateway::signals::gate`], which decides which reports are accepted. The
//! latest accepted timestamp is on file, in case the time of day is set back before the next
//! gateway starts.

use super::stop::{Stop, Woken};
use crate::command::{Command, Handle};
use crate::kernel::clock::Clock;
use airtcp_edge::MobileId;
use airtcp_gateway::signals::gate::{AgentCounters, Gate, Window};
use airtcp_gateway::signals::keys::Keys;
use airtcp_gateway::signals::message::{MOST_BYTES, Report, Stamp};
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use nix::poll::PollTimeout;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

/// Window of timestamps in which reports are accepted, its clock, and the file with the latest
/// timestamp. It outlives the listener.
#[derive(Debug)]
pub(super) struct Stamps {
    clock: Clock,
    window: Window,
    /// File with the latest accepted timestamp.
    file: PathBuf,
}

impl Stamps {
    /// Stamps of a gateway that starts after others that used this file.
    pub(super) fn open(file: PathBuf) -> Self {
        let latest = fs::read_to_string(&file).ok().and_then(|text| text.parse().ok());
        let clock = Clock::start_after(Stamp(latest.unwrap_or(0)));
        Self { clock, window: Window::since(clock.now()), file }
    }

    /// Handles a datagram, as [`Gate::receive`].
    fn receive(
        &mut self,
        gate: &Gate<'_>,
        now: Stamp,
        datagram: &[u8],
    ) -> (Option<Report>, Option<Vec<u8>>) {
        let before = self.window.latest();
        let received = gate.receive(&mut self.window, now, datagram);
        let latest = self.window.latest();
        if latest > before {
            self.keep(latest);
        }
        received
    }

    fn keep(&self, latest: Option<Stamp>) {
        let Some(Stamp(latest)) = latest else { return };
        let aside = self.file.with_extension("new");
        if let Err(error) =
            fs::write(&aside, latest.to_string()).and_then(|()| fs::rename(&aside, &self.file))
        {
            tracing::warn!(file = %self.file.display(), %error, "cannot save the time of the latest report");
        }
    }
}

/// Receives reports from the non-blocking socket until stopped.
pub(super) fn listen(
    socket: &UdpSocket,
    keys: Keys,
    stamps: Arc<Mutex<Stamps>>,
    counters: &AgentCounters,
    handle: &Handle,
    stop: &Stop,
) -> io::Result<()> {
    let clock = stamps.lock().unwrap_or_else(PoisonError::into_inner).clock;
    let gate = Gate::new(keys, counters);
    // One byte more than the longest message, to detect longer ones.
    let mut buffer = [0; MOST_BYTES + 1];
    while stop.wait(Some(socket.as_fd()), PollTimeout::NONE)? == Woken::Ready {
        let (length, sender) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            // A datagram with a wrong checksum, or an ICMP error for an answer.
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(error),
        };
        let now = clock.now();
        let mut stamps = stamps.lock().unwrap_or_else(PoisonError::into_inner);
        let (report, answer) = stamps.receive(&gate, now, &buffer[..length]);
        drop(stamps);
        if let Some(Report { key, signal, mobiles, .. }) = report {
            tracing::info!(key = key.as_str(), ?signal, ?mobiles, "report of an agent");
            for mobile in mobiles {
                let mobile = MobileId::Host(mobile);
                let signal = MobileSignal { mobile, signal, source: SignalSource::Agent };
                handle.send(Command::Signal(signal));
            }
        }
        if let Some(answer) = answer {
            // If the answer is lost, the agent repeats its report.
            let _ = socket.send_to(&answer, sender);
        }
    }
    Ok(())
}

/// True for an error of a UDP socket that does not affect the next datagram.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, WouldBlock,
    };
    matches!(
        error.kind(),
        WouldBlock | Interrupted | ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Duration, LinkSignal};
    use airtcp_gateway::signals::gate::MOST_AHEAD;
    use airtcp_gateway::signals::keys::Key;
    use airtcp_gateway::signals::message::{Answer, Verdict};
    use std::path::Path;

    fn keys() -> Keys {
        let text = "phone 000102030405060708090a0b0c0d0e0f 10.0.0.7";
        Keys::parse(Path::new("keys"), text).unwrap()
    }

    /// A report of the phone about itself.
    fn sealed(key: &Key, stamp: Stamp) -> Vec<u8> {
        let (name, mobiles) = (key.name.clone(), vec!["10.0.0.7".parse().unwrap()]);
        Report { key: name, stamp, signal: LinkSignal::Down, mobiles }.seal(&key.secret)
    }

    #[test]
    fn a_time_of_day_that_was_set_back_makes_no_report_new_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agents");
        let (keys, counters) = (keys(), AgentCounters::default());
        let key = keys.iter().next().unwrap().clone();
        let gate = Gate::new(keys, &counters);
        // An earlier gateway whose clock was an hour ahead.
        let later = Clock::start().now().after(Duration::from_secs(3600));
        let mut before = Stamps { window: Window::since(later), ..Stamps::open(file.clone()) };
        let taken = later.after(MOST_AHEAD);
        assert!(before.receive(&gate, later, &sealed(&key, taken)).0.is_some());
        let mut after = Stamps::open(file);
        let now = after.clock.now();
        assert!(now >= taken, "{now:?}, {taken:?}");
        let (report, answer) = after.receive(&gate, now, &sealed(&key, taken));
        let answer = Answer::open(&answer.unwrap(), &key.secret).unwrap();
        assert_eq!((report, answer.verdict), (None, Verdict::Untimely));
        let soon = now.after(MOST_AHEAD);
        assert!(
            after.receive(&gate, soon, &sealed(&key, answer.clock)).0.is_some(),
            "and what the answer offers is taken"
        );
    }
}
