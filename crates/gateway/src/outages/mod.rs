//! Outages of mobiles and uplinks: how many, how long, by group and by cause.
//!
//! An outage begins when the first source says *down*, or with the first packet that a silent
//! mobile did not answer. Its *cause* is that source. It ends when no source says *down* any more,
//! or when the mobile is heard, since an `up` may be lost. For a second after a signal, packets of
//! the mobile mean nothing: they may have been on their way. An outage that no source has reported
//! ends only when a source says *up* or the mobile is heard.
//!
//! A mobile that went silent without a signal may have left for good. After `patience` its outage
//! is no longer ongoing, and its length does not count.
//!
//! A gateway that is started in an outage knows of it by the connections that an earlier one held
//! for the mobile. Who had reported it is not on record: it may have been silence.

mod lines;

use crate::mobiles::SILENCE_WHEN_DOWN;
use crate::signals::SignalSource;
use crate::status::{OutageCounts, OutageStatus};
use airtcp_core::{Duration, Instant};
use airtcp_edge::{MobileId, TURN};
use lines::{Event, Lines};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Largest number of mobiles away at a time; further outages are not counted.
const MOST: usize = 1 << 17;

/// Outages since the start, and those that are not over.
#[derive(Debug)]
pub struct Outages {
    ongoing: BTreeMap<MobileId, Ongoing>,
    /// Beginnings of the ongoing ones that nobody announced.
    unannounced: BTreeSet<(Instant, MobileId)>,
    /// By group.
    counted: BTreeMap<Arc<str>, Counted>,
    lines: Lines,
    patience: Duration,
}

/// An outage that is not over.
#[derive(Clone, Debug)]
struct Ongoing {
    group: Arc<str>,
    cause: SignalSource,
    since: Instant,
}

/// Outages of a group.
#[derive(Debug, Default)]
struct Counted {
    causes: BTreeMap<SignalSource, OfCause>,
    longest: Duration,
}

/// Outages of a group with the same cause.
#[derive(Clone, Copy, Debug, Default)]
struct OfCause {
    begun: u64,
    ended: u64,
    ongoing: u64,
    /// Of those that ended, together.
    length: Duration,
}

/// An outage known by this cause alone may be a mobile that has left for good.
fn may_have_left(cause: SignalSource) -> bool {
    matches!(cause, SignalSource::Silence | SignalSource::EarlierGateway)
}

impl Outages {
    /// None yet. An outage that nobody announced is given up after `patience`.
    pub fn new(patience: Duration) -> Self {
        Self {
            ongoing: BTreeMap::new(),
            unannounced: BTreeSet::new(),
            counted: BTreeMap::new(),
            lines: Lines::default(),
            patience,
        }
    }

    /// Goes on with another `patience`, and without groups that are gone.
    pub fn reconfigure(&mut self, patience: Duration, is_there: impl Fn(&str) -> bool) {
        self.patience = patience;
        self.counted.retain(|group, _| is_there(group));
        self.ongoing.retain(|_, outage| is_there(&outage.group));
        let ongoing = &self.ongoing;
        self.unannounced.retain(|(_, mobile)| ongoing.contains_key(mobile));
    }

    /// Forgets ongoing outages of all other mobiles.
    pub fn retain(&mut self, is_member: impl Fn(MobileId) -> bool) {
        let others = self.ongoing.keys().copied().filter(|&mobile| !is_member(mobile));
        for mobile in others.collect::<Vec<_>>() {
            self.forget(mobile);
        }
    }

    /// A mobile of this group has been away since `since`, which interrupts so many connections
    /// (`None`: it shows only once they send). If it was away already, this is no other outage.
    pub fn begin(
        &mut self,
        now: Instant,
        (mobile, group): (MobileId, &str),
        (cause, since): (SignalSource, Instant),
        connections: Option<usize>,
    ) {
        if let Some(Ongoing { since, .. }) = self.ongoing.get(&mobile) {
            if !may_have_left(cause) {
                self.unannounced.remove(&(*since, mobile));
            }
            return;
        }
        if self.ongoing.len() >= MOST {
            return;
        }
        let known = self.counted.get_key_value(group).map(|(group, _)| group.clone());
        let group = known.unwrap_or_else(|| group.into());
        let counted = self.counted.entry(group.clone()).or_default();
        let of_cause = counted.causes.entry(cause).or_default();
        of_cause.begun += 1;
        of_cause.ongoing += 1;
        if may_have_left(cause) {
            self.unannounced.insert((since, mobile));
        }
        let event = Event { mobile, cause, connections, length: None };
        self.lines.note(now, &group, event);
        self.ongoing.insert(mobile, Ongoing { group, cause, since });
    }

    /// A mobile is back. Without effect if it was not away; else `connections` is asked how many
    /// were interrupted.
    pub fn end(&mut self, now: Instant, mobile: MobileId, connections: impl FnOnce() -> usize) {
        let Some(Ongoing { group, cause, since }) = self.forget(mobile) else { return };
        let length = now.since(since);
        let counted = self.counted.entry(group.clone()).or_default();
        counted.longest = counted.longest.max(length);
        let of_cause = counted.causes.entry(cause).or_default();
        of_cause.ended += 1;
        of_cause.length += length;
        let (connections, length) = (Some(connections()), Some(length));
        let event = Event { mobile, cause, connections, length };
        self.lines.note(now, &group, event);
    }

    /// A source has reported the mobile's outage.
    pub fn is_announced(&self, mobile: MobileId) -> bool {
        let ongoing = self.ongoing.get(&mobile);
        ongoing.is_some_and(|outage| !self.unannounced.contains(&(outage.since, mobile)))
    }

    /// A mobile is heard, which may [`end`](Self::end) its outage.
    pub fn heard(&mut self, now: Instant, mobile: MobileId, connections: impl FnOnce() -> usize) {
        let Some(Ongoing { cause, since, .. }) = self.ongoing.get(&mobile) else { return };
        if *cause == SignalSource::Silence || now.since(*since) > SILENCE_WHEN_DOWN {
            self.end(now, mobile, connections);
        }
    }

    /// Gives up what has lasted too long, as much as one turn allows, and writes the lines that are
    /// due.
    pub fn on_timer(&mut self, now: Instant) {
        let mut left = TURN;
        while left > 0
            && let Some(&(since, mobile)) = self.unannounced.first()
            && since + self.patience <= now
        {
            self.forget(mobile);
            left -= 1;
        }
        self.lines.on_timer(now);
    }

    /// Time of the next call of [`on_timer`](Self::on_timer).
    pub fn next_deadline(&self) -> Option<Instant> {
        let given_up = self.unannounced.first().map(|&(since, _)| since + self.patience);
        given_up.into_iter().chain(self.lines.next_deadline()).min()
    }

    /// Outages of a group by cause, and the longest that is over.
    pub fn of_group(&self, group: &str) -> (BTreeMap<String, OutageCounts>, f64) {
        let Some(Counted { causes, longest }) = self.counted.get(group) else {
            return Default::default();
        };
        let counts = |&OfCause { begun, ended, ongoing, length }: &OfCause| OutageCounts {
            begun,
            ended,
            ongoing,
            seconds: length.as_secs_f64(),
        };
        let causes = causes.iter().map(|(cause, of)| (cause.name().to_owned(), counts(of)));
        (causes.collect(), longest.as_secs_f64())
    }

    /// Outages that are not over, in the order of the mobiles' addresses.
    pub fn ongoing(&self, now: Instant) -> impl Iterator<Item = OutageStatus> + '_ {
        self.ongoing.iter().map(move |(mobile, Ongoing { group, cause, since })| OutageStatus {
            mobile: mobile.to_string(),
            group: group.as_ref().to_owned(),
            cause: cause.name().to_owned(),
            seconds: now.since(*since).as_secs_f64(),
        })
    }

    fn forget(&mut self, mobile: MobileId) -> Option<Ongoing> {
        let outage = self.ongoing.remove(&mobile)?;
        self.unannounced.remove(&(outage.since, mobile));
        let counted = self.counted.get_mut(&outage.group);
        if let Some(of) = counted.and_then(|counted| counted.causes.get_mut(&outage.cause)) {
            of.ongoing -= 1;
        }
        Some(outage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SignalSource::{Agent, Carrier, Silence};

    const PHONES: &str = "phones";

    fn mobile(n: u8) -> MobileId {
        MobileId::Host([10, 0, 0, n].into())
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn outages() -> Outages {
        Outages::new(Duration::from_secs(600))
    }

    fn begin(outages: &mut Outages, ms: u64, n: u8, cause: SignalSource) {
        outages.begin(at(ms), (mobile(n), PHONES), (cause, at(ms)), Some(1));
    }

    fn counts(outages: &Outages, cause: &str) -> [u64; 3] {
        let (causes, _) = outages.of_group(PHONES);
        let OutageCounts { begun, ended, ongoing, .. } = causes[cause];
        [begun, ended, ongoing]
    }

    #[test]
    fn outages_are_counted_by_cause_with_their_lengths_and_the_longest() {
        let mut outages = outages();
        begin(&mut outages, 0, 1, Agent);
        begin(&mut outages, 1000, 2, Carrier);
        outages.end(at(3000), mobile(1), || 1);
        assert_eq!(
            (counts(&outages, "agent"), counts(&outages, "carrier")),
            ([1, 1, 0], [1, 0, 1])
        );
        begin(&mut outages, 4000, 1, Agent);
        outages.end(at(5500), mobile(1), || 1);
        let (causes, longest) = outages.of_group(PHONES);
        assert_eq!((causes["agent"].seconds, causes["carrier"].seconds, longest), (4.5, 0.0, 3.0));
        assert_eq!(outages.of_group("cars"), Default::default());
        let ongoing: Vec<_> = outages.ongoing(at(6000)).collect();
        let [OutageStatus { mobile, cause, seconds, .. }] = &ongoing[..] else { panic!() };
        assert_eq!((mobile.as_str(), cause.as_str(), *seconds), ("10.0.0.2", "carrier", 5.0));
    }

    #[test]
    fn what_is_said_of_a_mobile_that_is_away_is_no_other_outage() {
        let mut outages = outages();
        begin(&mut outages, 0, 1, Silence);
        begin(&mut outages, 100, 1, Agent);
        assert_eq!(outages.of_group(PHONES).0.len(), 1);
        outages.end(at(200), mobile(1), || 1);
        outages.end(at(300), mobile(1), || 1);
        assert_eq!(counts(&outages, "silence"), [1, 1, 0]);
    }

    #[test]
    fn a_mobile_that_is_heard_is_back_unless_it_was_reported_down_just_now() {
        let mut outages = outages();
        begin(&mut outages, 0, 1, Agent);
        outages.heard(at(1000), mobile(1), || panic!("it may have been on the way"));
        assert_eq!(counts(&outages, "agent"), [1, 0, 1]);
        outages.heard(at(1001), mobile(1), || 1);
        assert_eq!(counts(&outages, "agent"), [1, 1, 0]);
        begin(&mut outages, 2000, 1, Silence);
        outages.heard(at(2001), mobile(1), || 1);
        assert_eq!(counts(&outages, "silence"), [1, 1, 0]);
    }

    #[test]
    fn a_mobile_that_left_without_a_word_is_given_up_and_one_that_was_reported_is_not() {
        let mut outages = outages();
        begin(&mut outages, 0, 1, Silence);
        begin(&mut outages, 0, 2, Agent);
        outages.on_timer(at(599_999));
        assert_eq!(counts(&outages, "silence"), [1, 0, 1]);
        outages.on_timer(at(600_000));
        assert_eq!(
            (counts(&outages, "silence"), counts(&outages, "agent")),
            ([1, 0, 0], [1, 0, 1])
        );
        outages.heard(at(700_000), mobile(1), || panic!("it was given up"));
        assert_eq!((outages.of_group(PHONES).1, outages.next_deadline()), (0.0, None));
    }

    #[test]
    fn many_that_left_at_once_are_given_up_in_turns() {
        let mut outages = outages();
        for n in 0..=TURN as u32 {
            let mobile = MobileId::Host(std::net::Ipv4Addr::from_bits(n).into());
            outages.begin(at(0), (mobile, PHONES), (Silence, at(0)), Some(1));
        }
        outages.on_timer(at(600_000));
        assert_eq!(counts(&outages, "silence"), [TURN as u64 + 1, 0, 1]);
        assert_eq!(outages.next_deadline(), Some(at(600_000)), "the next turn is due at once");
        outages.on_timer(at(600_000));
        assert_eq!(counts(&outages, "silence"), [TURN as u64 + 1, 0, 0]);
    }

    #[test]
    fn a_mobile_that_went_silent_and_was_reported_later_is_not_given_up() {
        let mut outages = outages();
        begin(&mut outages, 0, 1, Silence);
        begin(&mut outages, 1000, 1, Agent);
        outages.on_timer(at(600_000));
        assert_eq!(counts(&outages, "silence"), [1, 0, 1]);
    }

    #[test]
    fn a_reload_keeps_what_was_counted_of_groups_that_stay() {
        let mut outages = outages();
        begin(&mut outages, 0, 1, Silence);
        outages.begin(at(0), (mobile(9), "cars"), (Silence, at(0)), Some(1));
        outages.reconfigure(Duration::from_secs(1), |group| group == PHONES);
        assert_eq!(outages.of_group("cars"), Default::default());
        assert_eq!(outages.ongoing(at(0)).count(), 1);
        outages.on_timer(at(1000));
        assert_eq!(counts(&outages, "silence"), [1, 0, 0]);
    }
}
