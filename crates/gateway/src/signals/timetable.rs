//! Outages known beforehand.
//!
//! What holds at a time is computed from that time alone ([`Timetable::at`]), never counted from
//! the last change: when somebody sets the clock, the timetable is right again at once.

use crate::config::PlannedOutage;
use airtcp_core::LinkSignal;
use airtcp_edge::MobileId;
use std::collections::BTreeMap;

/// Nanoseconds since 1970, of any year.
pub type Time = u128;

/// A second, in nanoseconds.
pub const SECOND: Time = 1_000_000_000;

/// The links' states at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// State of the link to each mobile of the timetable.
    pub signals: BTreeMap<MobileId, LinkSignal>,
    /// Time of the next change; `None` if nothing will change.
    pub next: Option<Time>,
}

/// All planned outages.
#[derive(Clone, Debug)]
pub struct Timetable(Vec<PlannedOutage>);

impl Timetable {
    /// Of these outages.
    pub fn new(outages: &[PlannedOutage]) -> Self {
        Self(outages.to_vec())
    }

    /// The links' states at `now`. Of several outages of one mobile the worst counts.
    pub fn at(&self, now: Time) -> View {
        let mut view = View { signals: BTreeMap::new(), next: None };
        for outage in &self.0 {
            let (signal, next) = state(outage, now);
            let known = view.signals.entry(outage.mobile).or_insert(signal);
            *known = worse(*known, signal);
            view.next = view.next.into_iter().chain(next).min();
        }
        view
    }
}

/// The signal of one outage at `now`, and the end of its validity.
fn state(outage: &PlannedOutage, now: Time) -> (LinkSignal, Option<Time>) {
    let first = Time::from(outage.begin) * SECOND;
    let (length, lead) = (Time::from(outage.length.as_nanos()), Time::from(outage.lead.as_nanos()));
    let period = outage.every.map(|every| Time::from(every.as_nanos())).filter(|&every| every > 0);
    // The last one that has begun, and the first that has not.
    let last = now.checked_sub(first).map(|since| first + period.map_or(0, |p| since / p * p));
    let next = match (last, period) {
        (None, _) => Some(first),
        (Some(last), Some(period)) => Some(last + period),
        (Some(_), None) => None,
    };
    if let Some(end) = last.map(|last| last + length).filter(|&end| now < end) {
        return (LinkSignal::Down, Some(next.map_or(end, |next| end.min(next))));
    }
    let Some(next) = next else { return (LinkSignal::Up, None) };
    let warning = next.saturating_sub(lead);
    if now < warning { (LinkSignal::Up, Some(warning)) } else { (LinkSignal::Fading, Some(next)) }
}

fn worse(one: LinkSignal, other: LinkSignal) -> LinkSignal {
    let badness = |signal| match signal {
        LinkSignal::Up => 0,
        LinkSignal::Fading => 1,
        LinkSignal::Down => 2,
    };
    std::cmp::max_by_key(one, other, |&signal| badness(signal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use LinkSignal::{Down, Fading, Up};
    use airtcp_core::Duration;
    use proptest::prelude::*;

    const MOBILE: MobileId = MobileId::Host(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn outage(begin: u64, length: u64, every: Option<u64>, lead: u64) -> PlannedOutage {
        PlannedOutage {
            mobile: MOBILE,
            begin,
            length: Duration::from_secs(length),
            every: every.map(Duration::from_secs),
            lead: Duration::from_secs(lead),
        }
    }

    /// The signals of a timetable from `from` to `to`, by second; the first is its view at `from`.
    fn said(outages: &[PlannedOutage], from: u64, to: u64) -> Vec<(u64, LinkSignal)> {
        let timetable = Timetable::new(outages);
        let mut said: Vec<(u64, LinkSignal)> = Vec::new();
        let mut now = Some(Time::from(from) * SECOND);
        while let Some(time) = now.filter(|&time| time <= Time::from(to) * SECOND) {
            let view = timetable.at(time);
            let signal = view.signals[&MOBILE];
            if said.last().is_none_or(|&(_, last)| last != signal) {
                said.push(((time / SECOND) as u64, signal));
            }
            assert!(view.next.is_none_or(|next| next > time), "it would ring for ever");
            now = view.next;
        }
        said
    }

    #[test]
    fn an_outage_is_announced_begins_and_ends() {
        let wanted = [(900, Up), (970, Fading), (1000, Down), (1060, Up)];
        assert_eq!(said(&[outage(1000, 60, None, 30)], 900, 1_000_000), wanted);
    }

    #[test]
    fn without_a_lead_nothing_fades() {
        assert_eq!(
            said(&[outage(1000, 60, None, 0)], 0, 5000),
            [(0, Up), (1000, Down), (1060, Up)]
        );
    }

    #[test]
    fn an_outage_comes_again() {
        let wanted =
            [(1030, Down), (1060, Up), (1090, Fading), (1100, Down), (1160, Up), (1190, Fading)];
        assert_eq!(said(&[outage(1000, 60, Some(100), 10)], 1030, 1199), wanted);
    }

    #[test]
    fn of_overlapping_outages_the_worst_counts() {
        let outages = [outage(1000, 60, None, 30), outage(1050, 60, None, 30)];
        assert_eq!(said(&outages, 1000, 5000), [(1000, Down), (1110, Up)]);
    }

    #[test]
    fn one_longer_than_its_period_never_ends() {
        assert_eq!(
            said(&[outage(1000, 60, Some(50), 30)], 0, 9000),
            [(0, Up), (970, Fading), (1000, Down)]
        );
    }

    #[test]
    fn the_end_of_time_is_no_special_case() {
        let view = Timetable::new(&[outage(u64::MAX, u64::MAX, Some(0), u64::MAX)]).at(0);
        assert!(view.next.is_some_and(|next| next > Time::from(i64::MAX as u64)));
    }

    proptest! {
        #[test]
        fn between_two_looks_nothing_changes(
            begin in 0_u64..200, length in 0_u64..50, every in proptest::option::of(0_u64..60),
            lead in 0_u64..60, now in 0_u64..400, fraction in 0.0..1.0_f64,
        ) {
            let timetable = Timetable::new(&[outage(begin, length, every, lead)]);
            let now = Time::from(now) * SECOND;
            let view = timetable.at(now);
            let next = view.next.unwrap_or(now + 1000 * SECOND);
            prop_assert!(next > now);
            let between = now + ((next - now - 1) as f64 * fraction) as Time;
            prop_assert_eq!(timetable.at(between).signals, view.signals);
        }

        #[test]
        fn it_is_down_within_an_outage_and_only_then(
            begin in 0_u64..200, length in 0_u64..50, every in 50_u64..90, lead in 0_u64..60,
            round in 0_u64..5, offset in 0_u64..90,
        ) {
            let offset = offset % every;
            let timetable = Timetable::new(&[outage(begin, length, Some(every), lead)]);
            let view = timetable.at(Time::from(begin + round * every + offset) * SECOND);
            prop_assert_eq!(view.signals[&MOBILE] == Down, offset < length);
            let fades = offset >= length && offset + lead >= every;
            prop_assert_eq!(view.signals[&MOBILE] == Fading, fades);
        }
    }
}
