//! Which mobiles are out of reach, and which source said so.
//!
//! Sources contradict each other: a carrier comes back while the modem behind it is still
//! searching. So a mobile is away while any source says so, and a source's `Up` takes back only its
//! own report. Two sources overrule the others: the mobile itself ([`Agent`](SignalSource::Agent))
//! and the operator ([`Control`](SignalSource::Control)). Their `Up` takes back all reports.
//!
//! *Silence* is a source of its own (M-TCP's timer, for any mechanism): a mobile that was sent data
//! and is not heard for a while is down, until it is heard.
//!
//! A report may come too early. The mobile is then heard once more, and mechanisms take it to be
//! back; when it goes away after all, nobody reports that again. So a mobile that was heard since
//! it was reported down, and then owes an answer for too long, is told to be down once more.

use crate::signals::{MobileSignal, SignalSource};
use crate::status::Status;
use airtcp_core::{Duration, Instant, LinkSignal};
use airtcp_edge::MobileId;
use std::collections::{BTreeMap, BTreeSet};

/// Mobiles that are away, or that an answer is due from.
#[derive(Debug, Default)]
pub struct Mobiles {
    known: BTreeMap<MobileId, Mobile>,
    /// A mobile that has not answered for this long is down.
    silence: Option<Duration>,
    /// Deadlines of mobiles that owe an answer, one entry each.
    deadlines: BTreeSet<(Instant, MobileId)>,
    /// Number of times each source gave each signal.
    signals: BTreeMap<(SignalSource, &'static str), u64>,
}

/// Silence of a mobile that is reported down, if silence means nothing otherwise.
pub(crate) const SILENCE_WHEN_DOWN: Duration = Duration::from_secs(1);

/// Most mobiles tracked for an answer that is due; more may be away.
const MOST_OWING: usize = 1 << 17;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Mobile {
    /// Sources that say it is away, each with its last report.
    away: BTreeMap<SignalSource, Away>,
    /// A packet came from it after a signal that it is down.
    is_seen: bool,
    /// Time of the first data sent to it since it was last heard.
    owes_since: Option<Instant>,
    /// It has a deadline.
    is_watched: bool,
}

/// Severity of an absence. Ordered: the worst report counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Away {
    Fading,
    Down,
}

impl Mobile {
    fn signal(&self) -> LinkSignal {
        match self.away.values().max() {
            None => LinkSignal::Up,
            Some(Away::Fading) => LinkSignal::Fading,
            Some(Away::Down) => LinkSignal::Down,
        }
    }
}

impl Mobiles {
    /// None known; a mobile that has not answered for `silence` counts as down (`None`: never).
    pub fn new(silence: Option<Duration>) -> Self {
        Self { silence, ..Self::default() }
    }

    /// Uses another time of silence from now on.
    pub fn set_silence(&mut self, silence: Option<Duration>) {
        self.silence = silence;
    }

    /// Forgets all other mobiles.
    pub fn retain(&mut self, is_member: impl Fn(MobileId) -> bool) {
        self.known.retain(|&mobile, _| is_member(mobile));
        self.deadlines.retain(|&(_, mobile)| is_member(mobile));
    }

    /// Takes a source's report; returns the signal that mechanisms must get, if any.
    pub fn note(&mut self, signal: MobileSignal) -> Option<LinkSignal> {
        self.count(signal.source, signal.signal);
        self.take(signal)
    }

    /// Drops the reports of a source; returns the signals that mechanisms must get because of that.
    pub fn withdraw(&mut self, source: SignalSource) -> Vec<(MobileId, LinkSignal)> {
        let of_source = self.known.iter().filter(|(_, known)| known.away.contains_key(&source));
        let mobiles: Vec<MobileId> = of_source.map(|(&mobile, _)| mobile).collect();
        let withdraw = |mobile| {
            let [before, after] = self.change(mobile, |away| {
                away.remove(&source);
            });
            (after != before).then_some((mobile, after))
        };
        mobiles.into_iter().filter_map(withdraw).collect()
    }

    fn count(&mut self, source: SignalSource, signal: LinkSignal) {
        *self.signals.entry((source, signal.name())).or_default() += 1;
    }

    fn take(
        &mut self,
        MobileSignal { mobile, signal, source }: MobileSignal,
    ) -> Option<LinkSignal> {
        let knows_best = matches!(source, SignalSource::Agent | SignalSource::Control);
        let [before, after] = self.change(mobile, |away| match signal {
            LinkSignal::Up if knows_best => away.clear(),
            LinkSignal::Up => drop(away.remove(&source)),
            LinkSignal::Fading => drop(away.insert(source, Away::Fading)),
            LinkSignal::Down => drop(away.insert(source, Away::Down)),
        });
        // A mechanism may have been told otherwise by an earlier process; a repeated `Up` does no
        // harm.
        (after != before || after == LinkSignal::Up && knows_best).then_some(after)
    }

    /// Changes what sources say of a mobile; how far away it was, and is now.
    fn change(
        &mut self,
        mobile: MobileId,
        change: impl FnOnce(&mut BTreeMap<SignalSource, Away>),
    ) -> [LinkSignal; 2] {
        let known = self.known.entry(mobile).or_default();
        let before = known.signal();
        change(&mut known.away);
        let after = known.signal();
        known.is_seen &= after == before;
        self.forget_if_idle(mobile);
        [before, after]
    }

    /// Data was sent to a mobile. `answers` is asked, if it matters, whether the mobile has ever
    /// answered: one that has not may not exist.
    pub fn sent(&mut self, now: Instant, mobile: MobileId, answers: impl FnOnce() -> bool) {
        let known = self.known.get(&mobile);
        let counts = self.silence.is_some() || known.is_some_and(|known| known.is_seen);
        let is_noted = known.is_some_and(|known| known.owes_since.is_some() && known.is_watched);
        if !counts || is_noted || self.deadlines.len() >= MOST_OWING || !answers() {
            return;
        }
        let silence = self.silence.unwrap_or(SILENCE_WHEN_DOWN);
        let known = self.known.entry(mobile).or_default();
        known.owes_since.get_or_insert(now);
        if !known.is_watched {
            known.is_watched = true;
            self.deadlines.insert((now + silence, mobile));
        }
    }

    /// A packet came from a mobile; returns the signal that mechanisms must get first.
    pub fn seen(&mut self, mobile: MobileId) -> Option<LinkSignal> {
        let known = self.known.get_mut(&mobile)?;
        known.owes_since = None;
        known.is_seen = known.signal() == LinkSignal::Down;
        if !known.away.contains_key(&SignalSource::Silence) {
            self.forget_if_idle(mobile);
            return None;
        }
        self.take(MobileSignal { mobile, signal: LinkSignal::Up, source: SignalSource::Silence })
    }

    /// Time of the next call of [`Mobiles::silent`].
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// A mobile that has not answered for too long at `now`, with the signal that mechanisms must get;
    /// `None`: there is no further one.
    pub fn silent(&mut self, now: Instant) -> Option<(MobileId, LinkSignal)> {
        let change = self.next_silent(now);
        if let Some((_, signal)) = change {
            self.count(SignalSource::Silence, signal);
        }
        change
    }

    fn next_silent(&mut self, now: Instant) -> Option<(MobileId, LinkSignal)> {
        while let Some(&(deadline, mobile)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            let Some(known) = self.known.get_mut(&mobile) else { continue };
            known.is_watched = false;
            let silence = self.silence.unwrap_or(SILENCE_WHEN_DOWN);
            let owing = known.owes_since.map(|since| since + silence);
            if let Some(due) = owing.filter(|&due| due > now) {
                // It has answered since, and owes another answer.
                known.is_watched = true;
                self.deadlines.insert((due, mobile));
                continue;
            }
            if owing.is_none() {
                self.forget_if_idle(mobile);
                continue;
            }
            if known.is_seen {
                known.is_seen = false;
                return Some((mobile, LinkSignal::Down));
            }
            if self.silence.is_none() {
                self.forget_if_idle(mobile);
                continue;
            }
            let (signal, source) = (LinkSignal::Down, SignalSource::Silence);
            if let Some(signal) = self.take(MobileSignal { mobile, signal, source }) {
                return Some((mobile, signal));
            }
        }
        None
    }

    /// Time of the first data that a mobile was sent since it was last heard.
    pub fn owes_since(&self, mobile: MobileId) -> Option<Instant> {
        self.known.get(&mobile)?.owes_since
    }

    /// Any source says that this mobile is away.
    pub fn is_away(&self, mobile: MobileId) -> bool {
        self.known.get(&mobile).is_some_and(|known| !known.away.is_empty())
    }

    /// Mobiles that are away, in the order of their addresses.
    pub fn away(&self) -> impl Iterator<Item = (MobileId, LinkSignal)> + '_ {
        self.known
            .iter()
            .map(|(&mobile, known)| (mobile, known.signal()))
            .filter(|&(_, signal)| signal != LinkSignal::Up)
    }

    /// The part of a status that tells of mobiles and signals.
    pub fn status(&self) -> Status {
        let away = self.away().map(|(id, signal)| (id.to_string(), signal.name().to_owned()));
        let mut status = Status { away: away.collect(), ..Status::default() };
        for (&(source, signal), &count) in &self.signals {
            let of_source = status.signals.entry(source.name().to_owned()).or_default();
            of_source.insert(signal.to_owned(), count);
        }
        status
    }

    fn forget_if_idle(&mut self, mobile: MobileId) {
        if self.known.get(&mobile) == Some(&Mobile::default()) {
            self.known.remove(&mobile);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LinkSignal::{Down, Fading, Up};
    use SignalSource::{Agent, Carrier, Control, Neighbour};

    const MOBILE: MobileId = MobileId::Host(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn says(mobiles: &mut Mobiles, source: SignalSource, signal: LinkSignal) -> Option<LinkSignal> {
        mobiles.note(MobileSignal { mobile: MOBILE, signal, source })
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_change_is_told_once() {
        let mut mobiles = Mobiles::new(None);
        assert_eq!(says(&mut mobiles, Carrier, Down), Some(Down));
        assert_eq!(says(&mut mobiles, Carrier, Down), None);
        assert_eq!(says(&mut mobiles, Carrier, Up), Some(Up));
        assert_eq!(says(&mut mobiles, Carrier, Up), None);
        assert_eq!(mobiles.known.len(), 0, "nothing is kept of a mobile in reach");
    }

    #[test]
    fn a_mobile_is_away_while_any_source_says_so() {
        let mut mobiles = Mobiles::new(None);
        assert_eq!(says(&mut mobiles, Neighbour, Down), Some(Down));
        assert_eq!(says(&mut mobiles, Carrier, Down), None);
        assert_eq!(says(&mut mobiles, Carrier, Up), None);
        assert_eq!(mobiles.away().collect::<Vec<_>>(), [(MOBILE, Down)]);
        assert_eq!(says(&mut mobiles, Neighbour, Up), Some(Up));
    }

    #[test]
    fn what_a_withdrawn_source_said_counts_no_longer() {
        let mut mobiles = Mobiles::new(None);
        says(&mut mobiles, Carrier, Down);
        assert_eq!(mobiles.withdraw(Neighbour), []);
        assert_eq!(mobiles.withdraw(Carrier), [(MOBILE, Up)]);
        says(&mut mobiles, Carrier, Down);
        says(&mut mobiles, Agent, Fading);
        assert_eq!(mobiles.withdraw(Carrier), [(MOBILE, Fading)]);
        says(&mut mobiles, Carrier, Down);
        assert_eq!(mobiles.withdraw(Agent), [], "the carrier's word counts on");
        assert_eq!(mobiles.withdraw(Carrier), [(MOBILE, Up)]);
        assert_eq!(mobiles.known.len(), 0);
    }

    #[test]
    fn the_worst_word_counts() {
        let mut mobiles = Mobiles::new(None);
        assert_eq!(says(&mut mobiles, Agent, Fading), Some(Fading));
        assert_eq!(says(&mut mobiles, Carrier, Down), Some(Down));
        assert_eq!(says(&mut mobiles, Carrier, Up), Some(Fading));
    }

    #[test]
    fn the_mobile_and_the_operator_know_best() {
        for source in [Agent, Control] {
            let mut mobiles = Mobiles::new(None);
            says(&mut mobiles, Neighbour, Down);
            assert_eq!(says(&mut mobiles, source, Up), Some(Up));
            assert_eq!(
                says(&mut mobiles, source, Up),
                Some(Up),
                "told again: it may have been missed"
            );
        }
    }

    #[test]
    fn a_mobile_that_owes_an_answer_for_too_long_is_down_until_it_is_seen() {
        let mut mobiles = Mobiles::new(Some(Duration::from_millis(500)));
        mobiles.sent(ms(0), MOBILE, || true);
        assert_eq!(mobiles.seen(MOBILE), None);
        mobiles.sent(ms(300), MOBILE, || true);
        mobiles.sent(ms(400), MOBILE, || true);
        assert_eq!(mobiles.silent(ms(700)), None, "it was heard after the first");
        assert_eq!(mobiles.next_deadline(), Some(ms(800)));
        assert_eq!(mobiles.silent(ms(800)), Some((MOBILE, Down)));
        assert_eq!(mobiles.silent(ms(800)), None);
        assert_eq!(mobiles.seen(MOBILE), Some(Up));
        assert_eq!(mobiles.seen(MOBILE), None);
    }

    #[test]
    fn a_mobile_reported_too_early_is_down_again_when_it_goes_away_after_all() {
        for silence in [None, Some(Duration::from_secs(1))] {
            let mut mobiles = Mobiles::new(silence);
            assert_eq!(says(&mut mobiles, Agent, Down), Some(Down));
            mobiles.sent(ms(100), MOBILE, || true);
            assert_eq!(mobiles.seen(MOBILE), None, "an answer");
            mobiles.sent(ms(500), MOBILE, || true);
            assert_eq!(mobiles.silent(ms(1400)), None);
            assert_eq!(mobiles.silent(ms(1500)), Some((MOBILE, Down)));
            mobiles.sent(ms(1600), MOBILE, || true);
            assert_eq!(mobiles.silent(ms(9000)), None, "told once");
            assert_eq!(says(&mut mobiles, Agent, Up), Some(Up));
            mobiles.seen(MOBILE);
            mobiles.sent(ms(9000), MOBILE, || true);
            let when_up = silence.map(|_| (MOBILE, Down));
            assert_eq!(mobiles.silent(ms(10_000)), when_up);
        }
    }

    #[test]
    fn who_never_answered_owes_nothing() {
        let mut mobiles = Mobiles::new(Some(Duration::from_millis(500)));
        mobiles.sent(ms(0), MOBILE, || false);
        assert_eq!((mobiles.next_deadline(), mobiles.known.len()), (None, 0));
    }

    #[test]
    fn who_owes_nothing_may_be_silent() {
        let mut mobiles = Mobiles::new(Some(Duration::from_millis(500)));
        mobiles.sent(ms(0), MOBILE, || true);
        mobiles.seen(MOBILE);
        assert_eq!(mobiles.silent(ms(10_000)), None);
        assert_eq!((mobiles.next_deadline(), mobiles.known.len()), (None, 0));
    }
}
