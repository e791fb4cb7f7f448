//! Listens to the mobiles' agents: who may say what, and when.
//!
//! [`message`](super::message) is how it is said, `Gate` decides without I/O, `listen` is the
//! thread at the socket.
//!
//! A report is taken if it was made with a known key, for addresses that the key speaks for, and if
//! its stamp is
//! - later than that of any report taken with the same key: it can neither be replayed nor arrive
//!   after a later one;
//! - at most [`MOST_AGE`] old: it cannot be held back for longer;
//! - at most [`MOST_AHEAD`] in the future. A gateway that has just started knows no earlier stamps,
//!   but whatever its predecessor took is older than its start and this; so it takes nothing older.
//!   The latest stamp taken is on file, in case the time of day was set back in between. A reload
//!   changes none of this ([`Window`]).
//!
//! Time is the gateway's. An authentic report that is untimely is answered with a stamp that would
//! do, so that an agent without the right time of day sends once more and is understood. What is
//! not authentic gets no answer at all.

use super::keys::{KeyName, Keys};
use super::message::{Answer, Clock, MOST_BYTES, Refusal, Report, Stamp, Verdict};
use super::{Stop, Woken};
use crate::gateway::command::{Command, Handle, MobileSignal, SignalSource};
use airtcp_core::Duration;
use airtcp_edge::MobileId;
use nix::poll::PollTimeout;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

/// An older report is not taken.
pub const MOST_AGE: Duration = Duration::from_secs(30);
/// A report from further in the future is not taken.
pub const MOST_AHEAD: Duration = Duration::from_secs(1);

/// What became of the datagrams received.
#[derive(Debug, Default)]
pub struct AgentCounters {
    taken: AtomicU64,
    repeated: AtomicU64,
    malformed: AtomicU64,
    unknown_key: AtomicU64,
    forged: AtomicU64,
    untimely: AtomicU64,
    not_allowed: AtomicU64,
}

impl AgentCounters {
    /// The numbers, each with its name.
    pub fn read(&self) -> [(&'static str, u64); 7] {
        [
            ("agent_reports_taken", &self.taken),
            ("agent_reports_repeated", &self.repeated),
            ("agent_reports_refused_malformed", &self.malformed),
            ("agent_reports_refused_unknown_key", &self.unknown_key),
            ("agent_reports_refused_forged", &self.forged),
            ("agent_reports_refused_untimely", &self.untimely),
            ("agent_reports_refused_not_allowed", &self.not_allowed),
        ]
        .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }
}

/// Which stamps are taken. It outlives the listener.
#[derive(Debug)]
pub(crate) struct Window {
    clock: Clock,
    /// Nothing made before is taken.
    since: Stamp,
    /// Stamp of the last report taken, by key.
    last: BTreeMap<KeyName, Stamp>,
    /// Has the latest stamp that was taken.
    file: PathBuf,
}

impl Window {
    /// Of a gateway that starts, after others that used this file.
    pub(crate) fn open(file: PathBuf) -> Self {
        let latest = fs::read_to_string(&file).ok().and_then(|text| text.parse().ok());
        let clock = Clock::start_after(Stamp(latest.unwrap_or(0)));
        Self { clock, since: clock.now().after(MOST_AHEAD), last: BTreeMap::new(), file }
    }

    /// Of a gateway that started then.
    #[cfg(test)]
    pub(crate) fn since(start: Stamp) -> Arc<Mutex<Self>> {
        let since = start.after(MOST_AHEAD);
        Arc::new(Mutex::new(Self { since, ..Self::open("/nowhere/agents".into()) }))
    }

    /// A report with this stamp is taken.
    fn take(&mut self, key: KeyName, stamp: Stamp) {
        let is_latest = self.last.values().all(|&other| other < stamp);
        self.last.insert(key, stamp);
        let aside = self.file.with_extension("new");
        if is_latest
            && let Err(error) =
                fs::write(&aside, stamp.0.to_string()).and_then(|()| fs::rename(&aside, &self.file))
        {
            tracing::warn!(file = %self.file.display(), %error, "the time of the latest report cannot be kept");
        }
    }
}

/// Decides about reports.
#[derive(Debug)]
pub(crate) struct Gate<'a> {
    keys: Keys,
    counters: &'a AgentCounters,
    window: Arc<Mutex<Window>>,
}

impl<'a> Gate<'a> {
    /// Takes reports made with these keys.
    pub(crate) fn new(keys: Keys, window: Arc<Mutex<Window>>, counters: &'a AgentCounters) -> Self {
        Self { keys, counters, window }
    }

    /// Decides about a datagram: the report if it is to be acted on, and what to answer.
    pub(crate) fn receive(
        &mut self,
        now: Stamp,
        datagram: &[u8],
    ) -> (Option<Report>, Option<Vec<u8>>) {
        let keys = &self.keys;
        let report = match Report::open(datagram, |name| keys.get(name).map(|key| &key.secret)) {
            Ok(report) => report,
            Err(refusal) => {
                count(match refusal {
                    Refusal::Malformed => &self.counters.malformed,
                    Refusal::UnknownKey => &self.counters.unknown_key,
                    Refusal::Forged => &self.counters.forged,
                });
                return (None, None);
            }
        };
        let key = keys.get(&report.key).expect("the report was opened with it");
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, since) = (window.last.get(&report.key).copied(), window.since);
        let next = last.map_or(since, |last| last.after(Duration::from_nanos(1)).max(since));
        let (stamp, clock) = (report.stamp, now.max(next));
        let is_timely =
            stamp >= next && stamp.after(MOST_AGE) >= now && stamp <= now.after(MOST_AHEAD);
        let (counter, verdict) = if last == Some(stamp) {
            // Our answer was lost.
            (&self.counters.repeated, Verdict::Taken)
        } else if !is_timely {
            (&self.counters.untimely, Verdict::Untimely)
        } else if !report.mobiles.iter().all(|&mobile| key.is_allowed(mobile)) {
            (&self.counters.not_allowed, Verdict::NotAllowed)
        } else {
            (&self.counters.taken, Verdict::Taken)
        };
        count(counter);
        let answer = Answer { to: stamp, verdict, clock }.seal(&key.secret);
        if verdict != Verdict::Taken || last == Some(stamp) {
            return (None, Some(answer));
        }
        window.take(report.key.clone(), stamp);
        (Some(report), Some(answer))
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Takes reports from the socket (which does not block) until told to stop.
pub(super) fn listen(
    socket: &UdpSocket,
    keys: Keys,
    window: Arc<Mutex<Window>>,
    counters: &AgentCounters,
    handle: &Handle,
    stop: &Stop,
) -> io::Result<()> {
    let clock = window.lock().unwrap_or_else(PoisonError::into_inner).clock;
    let mut gate = Gate::new(keys, window, counters);
    // One byte more than a message has, to see which are longer.
    let mut buffer = [0; MOST_BYTES + 1];
    while stop.wait(Some(socket.as_fd()), PollTimeout::NONE)? == Woken::Ready {
        let (length, sender) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            // The kernel woke us for a datagram with a wrong checksum, or tells of an answer that
            // did not arrive.
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(error),
        };
        let (report, answer) = gate.receive(clock.now(), &buffer[..length]);
        if let Some(Report { key, signal, mobiles, .. }) = report {
            tracing::info!(key = key.as_str(), ?signal, ?mobiles, "an agent reports");
            for mobile in mobiles {
                let mobile = MobileId::Host(mobile);
                let signal = MobileSignal { mobile, signal, source: SignalSource::Agent };
                handle.send(Command::Signal(signal));
            }
        }
        if let Some(answer) = answer {
            // An answer that is lost here is asked for again.
            let _ = socket.send_to(&answer, sender);
        }
    }
    Ok(())
}

/// Whether an error of a UDP socket says nothing about the next datagram.
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
    use crate::gateway::signals::keys::Secret;
    use airtcp_core::LinkSignal;
    use std::path::Path;

    const PHONE: &str = "000102030405060708090a0b0c0d0e0f";
    const TRAIN: &str = "f00102030405060708090a0b0c0d0e0f";

    fn keys() -> Keys {
        let text = format!("phone {PHONE} 10.0.0.7 ::7\ntrain {TRAIN} 10.3.0.0/16");
        Keys::parse(Path::new("keys"), &text).unwrap()
    }

    fn secs(secs: u64) -> Stamp {
        Stamp(1_700_000_000_000_000_000).after(Duration::from_secs(secs))
    }

    fn secret(hexadecimal: &str) -> Secret {
        Secret::new(hex::decode(hexadecimal).unwrap()).unwrap()
    }

    /// A report of the phone about itself, with its own key.
    fn report(stamp: Stamp) -> Report {
        let key = KeyName::new("phone").unwrap();
        Report { key, stamp, signal: LinkSignal::Down, mobiles: vec!["10.0.0.7".parse().unwrap()] }
    }

    fn sealed(stamp: Stamp) -> Vec<u8> {
        report(stamp).seal(&secret(PHONE))
    }

    /// Whether it was acted on, and what the phone was answered.
    fn outcome(
        gate: &mut Gate<'_>,
        now: Stamp,
        datagram: &[u8],
    ) -> (bool, Option<(Verdict, Stamp)>) {
        let (report, answer) = gate.receive(now, datagram);
        let answer = answer.map(|bytes| Answer::open(&bytes, &secret(PHONE)).unwrap());
        (report.is_some(), answer.map(|answer| (answer.verdict, answer.clock)))
    }

    /// The counter that is not zero, and its value; there must be one.
    fn counted(counters: &AgentCounters) -> (&'static str, u64) {
        let counted: Vec<_> = counters.read().into_iter().filter(|&(_, n)| n > 0).collect();
        let [one] = counted[..] else { panic!("{counted:?}") };
        one
    }

    #[test]
    fn a_fresh_report_is_taken_and_answered() {
        let counters = AgentCounters::default();
        let mut gate = Gate::new(keys(), Window::since(secs(0)), &counters);
        let (taken, answer) = gate.receive(secs(10), &sealed(secs(10)));
        assert_eq!(taken, Some(report(secs(10))));
        let answer = Answer::open(&answer.unwrap(), &secret(PHONE)).unwrap();
        assert_eq!((answer.to, answer.verdict), (secs(10), Verdict::Taken));
        assert_eq!(counted(&counters), ("agent_reports_taken", 1));
    }

    #[test]
    fn the_same_report_is_acted_on_once_and_answered_again() {
        let counters = AgentCounters::default();
        let mut gate = Gate::new(keys(), Window::since(secs(0)), &counters);
        assert!(outcome(&mut gate, secs(10), &sealed(secs(10))).0);
        for now in [11, 1000] {
            let (acted, answer) = outcome(&mut gate, secs(now), &sealed(secs(10)));
            assert_eq!((acted, answer.unwrap().0), (false, Verdict::Taken));
        }
    }

    #[test]
    fn what_is_not_authentic_gets_no_answer() {
        let truncated = sealed(secs(10))[..79].to_vec();
        let stranger = Report { key: KeyName::new("nobody").unwrap(), ..report(secs(10)) };
        for (datagram, reason) in [
            (truncated, "agent_reports_refused_malformed"),
            (b"atcp".to_vec(), "agent_reports_refused_malformed"),
            (stranger.seal(&secret(PHONE)), "agent_reports_refused_unknown_key"),
            (report(secs(10)).seal(&secret(TRAIN)), "agent_reports_refused_forged"),
        ] {
            let counters = AgentCounters::default();
            let mut gate = Gate::new(keys(), Window::since(secs(0)), &counters);
            assert_eq!(outcome(&mut gate, secs(10), &datagram), (false, None));
            assert_eq!(counted(&counters), (reason, 1));
        }
    }

    #[test]
    fn a_report_that_was_overtaken_or_replayed_is_untimely() {
        let counters = AgentCounters::default();
        let mut gate = Gate::new(keys(), Window::since(secs(0)), &counters);
        assert!(outcome(&mut gate, secs(10), &sealed(secs(9))).0);
        assert!(outcome(&mut gate, secs(10), &sealed(secs(10))).0);
        assert_eq!(
            outcome(&mut gate, secs(10), &sealed(secs(9))),
            (false, Some((Verdict::Untimely, Stamp(secs(10).0 + 1))))
        );
    }

    #[test]
    fn a_report_that_was_held_back_is_untimely() {
        let counters = AgentCounters::default();
        let mut gate = Gate::new(keys(), Window::since(secs(0)), &counters);
        let untimely = (false, Some((Verdict::Untimely, secs(41))));
        assert_eq!(outcome(&mut gate, secs(41), &sealed(secs(10))), untimely);
        assert_eq!(counted(&counters), ("agent_reports_refused_untimely", 1));
        assert!(outcome(&mut gate, secs(40), &sealed(secs(10))).0, "30 s are allowed");
    }

    #[test]
    fn a_report_from_the_future_is_untimely() {
        let counters = AgentCounters::default();
        let mut gate = Gate::new(keys(), Window::since(secs(0)), &counters);
        let untimely = (false, Some((Verdict::Untimely, secs(10))));
        assert_eq!(outcome(&mut gate, secs(10), &sealed(secs(12))), untimely);
        assert!(outcome(&mut gate, secs(10), &sealed(secs(11))).0, "1 s is allowed");
    }

    #[test]
    fn a_restarted_gateway_takes_nothing_that_was_sent_before() {
        let counters = AgentCounters::default();
        let mut first = Gate::new(keys(), Window::since(secs(0)), &counters);
        assert!(outcome(&mut first, secs(10), &sealed(secs(11))).0, "as far ahead as can be");
        let (start, offered) = (Stamp(secs(10).0 + 1), Stamp(secs(11).0 + 1));
        let mut second = Gate::new(keys(), Window::since(start), &counters);
        let untimely = (false, Some((Verdict::Untimely, offered)));
        assert_eq!(outcome(&mut second, start, &sealed(secs(11))), untimely);
        assert!(outcome(&mut second, start, &sealed(offered)).0);
    }

    #[test]
    fn another_listener_goes_on_with_the_window() {
        let (counters, window) = (AgentCounters::default(), Window::since(secs(0)));
        let mut first = Gate::new(keys(), window.clone(), &counters);
        assert!(outcome(&mut first, secs(10), &sealed(secs(10))).0);
        let mut second = Gate::new(keys(), window, &counters);
        let untimely = (false, Some((Verdict::Untimely, Stamp(secs(10).0 + 1))));
        assert_eq!(outcome(&mut second, secs(10), &sealed(secs(9))), untimely);
        assert!(outcome(&mut second, secs(10), &sealed(Stamp(secs(10).0 + 1))).0);
    }

    #[test]
    fn a_time_of_day_that_was_set_back_makes_no_report_new_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agents");
        // As if it had been an hour later than it is.
        let later = Clock::start().now().after(Duration::from_secs(3600));
        let counters = AgentCounters::default();
        let before = Window { since: later, ..Window::open(file.clone()) };
        let mut gate = Gate::new(keys(), Arc::new(Mutex::new(before)), &counters);
        assert!(outcome(&mut gate, later, &sealed(later)).0);
        let after = Window::open(file);
        let now = after.clock.now();
        assert!(now >= later, "{now:?}, {later:?}");
        let mut gate = Gate::new(keys(), Arc::new(Mutex::new(after)), &counters);
        let (acted, answer) = outcome(&mut gate, now, &sealed(later));
        let (verdict, offered) = answer.unwrap();
        assert_eq!((acted, verdict), (false, Verdict::Untimely));
        let soon = now.after(MOST_AHEAD);
        assert!(
            outcome(&mut gate, soon, &sealed(offered)).0,
            "and what the answer offers is taken"
        );
    }

    #[test]
    fn a_key_speaks_for_its_own_mobiles_only() {
        let counters = AgentCounters::default();
        let mut gate = Gate::new(keys(), Window::since(secs(0)), &counters);
        let of = |mobiles: &[&str]| Report {
            mobiles: mobiles.iter().map(|m| m.parse().unwrap()).collect(),
            ..report(secs(10))
        };
        for mobiles in [&["10.0.0.8"][..], &["10.0.0.7", "10.3.0.1"]] {
            let (acted, answer) = outcome(&mut gate, secs(10), &of(mobiles).seal(&secret(PHONE)));
            assert_eq!((acted, answer.unwrap().0), (false, Verdict::NotAllowed));
        }
        assert_eq!(counted(&counters), ("agent_reports_refused_not_allowed", 2));
        assert!(outcome(&mut gate, secs(10), &of(&["10.0.0.7", "::7"]).seal(&secret(PHONE))).0);
    }

    #[test]
    fn keys_do_not_hinder_each_other() {
        let counters = AgentCounters::default();
        let mut gate = Gate::new(keys(), Window::since(secs(0)), &counters);
        assert!(outcome(&mut gate, secs(10), &sealed(secs(10))).0);
        let train = Report {
            key: KeyName::new("train").unwrap(),
            mobiles: vec!["10.3.9.9".parse().unwrap()],
            ..report(secs(9))
        };
        let (acted, _) = gate.receive(secs(10), &train.seal(&secret(TRAIN)));
        assert_eq!(acted, Some(train));
    }
}
