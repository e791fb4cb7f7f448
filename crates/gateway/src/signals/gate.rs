//! Which reports of the mobiles' agents are acted on.
//!
//! [`message`](super::message) is how they are said.
//!
//! A report is taken if it was made with a known key, for addresses that the key speaks for, and if
//! its stamp is
//! - later than that of any report taken with the same key: it can neither be replayed nor arrive
//!   after a later one;
//! - at most [`MOST_AGE`] old: it cannot be held back for longer;
//! - at most [`MOST_AHEAD`] in the future. A gateway that has just started knows no earlier stamps,
//!   but whatever its predecessor took is older than its start and this; so it takes nothing older.
//!   A reload changes none of this ([`Window`]).
//!
//! Time is the gateway's. An authentic report that is untimely is answered with a stamp that would
//! do, so that an agent without the right time of day sends once more and is understood. What is
//! not authentic gets no answer at all.

use super::keys::{KeyName, Keys};
use super::message::{Answer, Refusal, Report, Stamp, Verdict};
use airtcp_core::Duration;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// An older report is not taken.
pub const MOST_AGE: Duration = Duration::from_secs(30);
/// A report from further in the future is not taken.
pub const MOST_AHEAD: Duration = Duration::from_secs(1);

/// Counts of received datagrams, by outcome.
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

/// The stamps still acceptable. It outlives those who listen.
#[derive(Debug)]
pub struct Window {
    /// Nothing made before is taken.
    since: Stamp,
    /// Stamp of the last report taken, by key.
    last: BTreeMap<KeyName, Stamp>,
}

impl Window {
    /// Of a gateway that starts now.
    pub fn since(start: Stamp) -> Self {
        Self { since: start.after(MOST_AHEAD), last: BTreeMap::new() }
    }

    /// The latest stamp that was taken.
    pub fn latest(&self) -> Option<Stamp> {
        self.last.values().max().copied()
    }
}

/// Decides about reports.
#[derive(Debug)]
pub struct Gate<'a> {
    keys: Keys,
    counters: &'a AgentCounters,
}

impl<'a> Gate<'a> {
    /// Takes reports made with these keys.
    pub fn new(keys: Keys, counters: &'a AgentCounters) -> Self {
        Self { keys, counters }
    }

    /// Decides about a datagram: the report if it is to be acted on, and what to answer.
    pub fn receive(
        &self,
        window: &mut Window,
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
        window.last.insert(report.key.clone(), stamp);
        (Some(report), Some(answer))
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::signals::keys::Secret;
    use airtcp_core::LinkSignal;
    use std::path::Path;

    const PHONE: &str = "000102030405060708090a0b0c0d0e0f";
    const TRAIN: &str = "f00102030405060708090a0b0c0d0e0f";

    /// A gate with its window.
    pub(in crate::signals) struct Listener<'a> {
        gate: Gate<'a>,
        window: Window,
    }

    impl<'a> Listener<'a> {
        /// Of a gateway that was started then.
        pub(in crate::signals) fn new(
            keys: Keys,
            start: Stamp,
            counters: &'a AgentCounters,
        ) -> Self {
            Self { gate: Gate::new(keys, counters), window: Window::since(start) }
        }

        pub(in crate::signals) fn receive(
            &mut self,
            now: Stamp,
            datagram: &[u8],
        ) -> (Option<Report>, Option<Vec<u8>>) {
            self.gate.receive(&mut self.window, now, datagram)
        }
    }

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

    /// The action taken on a message, and the reply to the phone.
    fn outcome(
        gate: &mut Listener<'_>,
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
        let mut gate = Listener::new(keys(), secs(0), &counters);
        let (taken, answer) = gate.receive(secs(10), &sealed(secs(10)));
        assert_eq!(taken, Some(report(secs(10))));
        let answer = Answer::open(&answer.unwrap(), &secret(PHONE)).unwrap();
        assert_eq!((answer.to, answer.verdict), (secs(10), Verdict::Taken));
        assert_eq!(counted(&counters), ("agent_reports_taken", 1));
    }

    #[test]
    fn the_same_report_is_acted_on_once_and_answered_again() {
        let counters = AgentCounters::default();
        let mut gate = Listener::new(keys(), secs(0), &counters);
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
            let mut gate = Listener::new(keys(), secs(0), &counters);
            assert_eq!(outcome(&mut gate, secs(10), &datagram), (false, None));
            assert_eq!(counted(&counters), (reason, 1));
        }
    }

    #[test]
    fn a_report_that_was_overtaken_or_replayed_is_untimely() {
        let counters = AgentCounters::default();
        let mut gate = Listener::new(keys(), secs(0), &counters);
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
        let mut gate = Listener::new(keys(), secs(0), &counters);
        let untimely = (false, Some((Verdict::Untimely, secs(41))));
        assert_eq!(outcome(&mut gate, secs(41), &sealed(secs(10))), untimely);
        assert_eq!(counted(&counters), ("agent_reports_refused_untimely", 1));
        assert!(outcome(&mut gate, secs(40), &sealed(secs(10))).0, "30 s are allowed");
    }

    #[test]
    fn a_report_from_the_future_is_untimely() {
        let counters = AgentCounters::default();
        let mut gate = Listener::new(keys(), secs(0), &counters);
        let untimely = (false, Some((Verdict::Untimely, secs(10))));
        assert_eq!(outcome(&mut gate, secs(10), &sealed(secs(12))), untimely);
        assert!(outcome(&mut gate, secs(10), &sealed(secs(11))).0, "1 s is allowed");
    }

    #[test]
    fn a_restarted_gateway_takes_nothing_that_was_sent_before() {
        let counters = AgentCounters::default();
        let mut first = Listener::new(keys(), secs(0), &counters);
        assert!(outcome(&mut first, secs(10), &sealed(secs(11))).0, "as far ahead as can be");
        let (start, offered) = (Stamp(secs(10).0 + 1), Stamp(secs(11).0 + 1));
        let mut second = Listener::new(keys(), start, &counters);
        let untimely = (false, Some((Verdict::Untimely, offered)));
        assert_eq!(outcome(&mut second, start, &sealed(secs(11))), untimely);
        assert!(outcome(&mut second, start, &sealed(offered)).0);
    }

    #[test]
    fn another_listener_goes_on_with_the_window() {
        let counters = AgentCounters::default();
        let mut first = Listener::new(keys(), secs(0), &counters);
        assert!(outcome(&mut first, secs(10), &sealed(secs(10))).0);
        let mut second = Listener { gate: Gate::new(keys(), &counters), window: first.window };
        let untimely = (false, Some((Verdict::Untimely, Stamp(secs(10).0 + 1))));
        assert_eq!(outcome(&mut second, secs(10), &sealed(secs(9))), untimely);
        assert!(outcome(&mut second, secs(10), &sealed(Stamp(secs(10).0 + 1))).0);
    }

    #[test]
    fn a_key_speaks_for_its_own_mobiles_only() {
        let counters = AgentCounters::default();
        let mut gate = Listener::new(keys(), secs(0), &counters);
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
        let mut gate = Listener::new(keys(), secs(0), &counters);
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
