//! When a link or a mobile is down: [`Schedule`], and the outage above the MAC of the M-TCP paper.

use crate::config::Schedule;
use airtcp_core::{Flags, Instant};
use std::ops::Range;

impl Schedule {
    /// True if `at` is in an outage.
    pub fn is_down(&self, at: Instant) -> bool {
        self.outage_around(at).is_some()
    }

    /// The first instant at or after `at` that is up; `None` if the outage never ends.
    pub fn next_up(&self, at: Instant) -> Option<Instant> {
        match self {
            Self::Listed(outages) => {
                // Adjacent intervals form one outage, so the end of one may be the start of the
                // next.
                let mut up = at;
                for &(start, end) in &outages[first_ending_after(outages, at)..] {
                    if start > up {
                        break;
                    }
                    up = end;
                }
                Some(up)
            }
            Self::Periodic { period, start, end, .. } => match self.outage_around(at) {
                None => Some(at),
                Some(_) if start.is_zero() && end >= period => None,
                Some((_, up)) => Some(up),
            },
        }
    }

    /// The first change between up and down after `at`; `None` if there is none.
    pub fn next_change(&self, at: Instant) -> Option<Instant> {
        if self.is_down(at) {
            return self.next_up(at);
        }
        match self {
            Self::Listed(outages) => {
                outages.get(first_ending_after(outages, at)).map(|&(start, _)| start)
            }
            Self::Periodic { origin, period, start, end } => {
                if period.is_zero() || start >= end {
                    return None;
                }
                if at < *origin + *start {
                    return Some(*origin + *start);
                }
                let since = at.since(*origin + *start).as_nanos();
                let cycles = since / period.as_nanos() + 1;
                Some(*origin + *start + *period * cycles)
            }
        }
    }

    /// The first outage that ends after `at`: its start, or `at` if that is later, and its end
    /// (`None`: never).
    pub fn next_outage(&self, at: Instant) -> Option<(Instant, Option<Instant>)> {
        let start = if self.is_down(at) { at } else { self.next_change(at)? };
        Some((start, self.next_up(start)))
    }

    /// True if any instant of [start, end), or `start` itself, is down.
    pub fn overlaps(&self, start: Instant, end: Instant) -> bool {
        self.is_down(start) || self.next_change(start).is_some_and(|down| down < end)
    }

    /// The single configured interval that covers `at`.
    fn outage_around(&self, at: Instant) -> Option<(Instant, Instant)> {
        match self {
            Self::Listed(outages) => outages
                .get(first_ending_after(outages, at))
                .copied()
                .filter(|&(start, _)| start <= at),
            Self::Periodic { origin, period, start, end } => {
                if at < *origin {
                    return None;
                }
                let phase = at.since(*origin).as_nanos().checked_rem(period.as_nanos())?;
                let cycle = Instant::from_nanos(at.as_nanos() - phase);
                (start.as_nanos() <= phase && phase < end.as_nanos())
                    .then(|| (cycle + *start, cycle + *end))
            }
        }
    }
}

/// Several schedules at once: down while any of them is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedules(Vec<Schedule>);

impl Schedules {
    /// The first instant from `at` on that is down.
    pub fn next_down(&self, at: Instant) -> Option<Instant> {
        self.0.iter().filter_map(|s| s.next_outage(at)).map(|(start, _)| start).min()
    }

    /// The first instant from `at` on that is up; `None` if the outage never ends.
    pub fn next_up(&self, mut at: Instant) -> Option<Instant> {
        while let Some(down) = self.0.iter().find(|s| s.is_down(at)) {
            at = down.next_up(at)?;
        }
        Some(at)
    }

    /// The first outage that ends after `at`: its start, or `at` if that is later, and its end
    /// (`None`: never).
    pub fn next_outage(&self, at: Instant) -> Option<(Instant, Option<Instant>)> {
        let start = self.next_down(at)?;
        Some((start, self.next_up(start)))
    }

    /// The outages within a span, as far as they are in it; overlapping ones are one.
    pub fn outages_in(&self, span: &Range<Instant>) -> Vec<(Instant, Instant)> {
        let mut outages = Vec::new();
        let mut at = span.start;
        while let Some((start, up)) = self.next_outage(at).filter(|&(start, _)| start < span.end) {
            at = up.map_or(span.end, |up| up.min(span.end));
            outages.push((start, at));
        }
        outages
    }

    /// True if nothing is ever down.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Schedule> for Schedules {
    fn from_iter<I: IntoIterator<Item = Schedule>>(schedules: I) -> Self {
        Self(schedules.into_iter().collect())
    }
}

/// Index of the first interval that ends after `at` (the intervals are ascending and disjoint).
fn first_ending_after(outages: &[(Instant, Instant)], at: Instant) -> usize {
    outages.partition_point(|&(_, end)| end <= at)
}

/// Disconnection emulated above the MAC (M-TCP §3.3): the mobile's IP layer drops TCP packets in
/// both directions while the radio goes on acknowledging frames, so that the access point sees no
/// failure.
#[derive(Clone, Debug, PartialEq)]
pub struct AboveMac {
    schedule: Schedule,
}

impl AboveMac {
    /// Drops during `schedule`.
    pub fn new(schedule: Schedule) -> Self {
        Self { schedule }
    }

    /// True if a TCP segment with these flags is dropped at `now`. During an outage all are, except
    /// SYN and FIN.
    pub fn drops(&self, now: Instant, flags: Flags) -> bool {
        !flags.intersects(Flags::SYN | Flags::FIN) && self.schedule.is_down(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Duration;
    use proptest::prelude::*;

    fn s(n: u64) -> Instant {
        Instant::from_secs(n)
    }

    fn listed(outages: &[(u64, u64)]) -> Schedule {
        Schedule::Listed(outages.iter().map(|&(a, b)| (s(a), s(b))).collect())
    }

    fn periodic(origin: u64, period: u64, start: u64, end: u64) -> Schedule {
        let d = Duration::from_secs;
        Schedule::Periodic { origin: s(origin), period: d(period), start: d(start), end: d(end) }
    }

    #[test]
    fn a_listed_outage_is_half_open() {
        let spike = listed(&[(5, 11)]);
        let just_before = |t| Instant::from_nanos(s(t).as_nanos() - 1);
        assert!(!spike.is_down(just_before(5)));
        assert!(spike.is_down(s(5)));
        assert!(spike.is_down(just_before(11)));
        assert!(!spike.is_down(s(11)));
    }

    #[test]
    fn next_up_is_now_when_up_and_the_end_of_the_outage_when_down() {
        let two = listed(&[(5, 11), (20, 21)]);
        assert_eq!(two.next_up(s(4)), Some(s(4)));
        assert_eq!(two.next_up(s(6)), Some(s(11)));
        assert_eq!(two.next_up(s(20)), Some(s(21)));
        assert_eq!(two.next_up(s(30)), Some(s(30)));
    }

    #[test]
    fn adjacent_listed_outages_are_one() {
        let joined = listed(&[(1, 2), (2, 3), (5, 6)]);
        assert_eq!(joined.next_up(s(1)), Some(s(3)));
        assert_eq!(joined.next_change(s(1)), Some(s(3)));
        assert_eq!(joined.next_change(s(3)), Some(s(5)));
        assert_eq!(joined.next_change(s(6)), None);
    }

    #[test]
    fn a_periodic_outage_follows_the_cycle_time() {
        // M-TCP+ §4: 10 s down in every 60 s.
        let cycle = periodic(105, 60, 0, 10);
        assert!(!cycle.is_down(s(104)));
        assert!(cycle.is_down(s(105)));
        assert!(!cycle.is_down(s(115)));
        assert!(cycle.is_down(s(165)));
        assert_eq!(cycle.next_up(s(170)), Some(s(175)));
        assert_eq!(cycle.next_change(s(0)), Some(s(105)));
        assert_eq!(cycle.next_change(s(120)), Some(s(165)));
    }

    #[test]
    fn periodic_outages_may_end_with_or_fill_the_cycle() {
        // The half-open interval ends with the cycle; the link is up at the start of the next.
        assert_eq!(periodic(0, 10, 8, 10).next_up(s(9)), Some(s(10)));
        assert_eq!(periodic(0, 10, 0, 10).next_up(s(3)), None);
        assert_eq!(periodic(0, 10, 0, 10).next_change(s(3)), None);
        assert_eq!(periodic(0, 10, 4, 4).next_change(s(3)), None);
        assert!(!periodic(0, 0, 0, 0).is_down(s(3)));
    }

    #[test]
    fn above_the_mac_syn_and_fin_pass_during_an_outage() {
        // M-TCP §3.3.
        let filter = AboveMac::new(listed(&[(5, 11)]));
        assert!(filter.drops(s(6), Flags::empty()));
        assert!(filter.drops(s(6), Flags::RST));
        assert!(!filter.drops(s(6), Flags::SYN));
        assert!(!filter.drops(s(6), Flags::FIN | Flags::PSH));
        assert!(!filter.drops(s(12), Flags::empty()));
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        let gaps = proptest::collection::vec((0u64..5, 1u64..5), 0..6);
        prop_oneof![
            gaps.prop_map(|gaps| {
                let mut at = 0;
                let outages = gaps.iter().map(|&(gap, len)| {
                    let start = at + gap;
                    at = start + len;
                    (Instant::from_nanos(start), Instant::from_nanos(at))
                });
                Schedule::Listed(outages.collect())
            }),
            (0u64..8, 1u64..8).prop_flat_map(|(origin, period)| {
                (0..=period, 0..=period).prop_map(move |(a, b)| Schedule::Periodic {
                    origin: Instant::from_nanos(origin),
                    period: Duration::from_nanos(period),
                    start: Duration::from_nanos(a.min(b)),
                    end: Duration::from_nanos(a.max(b)),
                })
            }),
        ]
    }

    proptest! {
        #[test]
        fn next_up_and_next_change_agree_with_is_down(schedule in schedules(), at in 0u64..40) {
            // A brute-force walk over every nanosecond; all intervals are shorter than the horizon.
            let walk = || (at..at + 100).map(Instant::from_nanos);
            let at = Instant::from_nanos(at);
            prop_assert_eq!(schedule.next_up(at), walk().find(|&t| !schedule.is_down(t)));
            let state = schedule.is_down(at);
            prop_assert_eq!(schedule.next_change(at), walk().find(|&t| schedule.is_down(t) != state));
        }

        #[test]
        fn the_next_outage_is_the_next_run_of_down_instants(schedule in schedules(), at in 0u64..40) {
            let walk = || (at..at + 100).map(Instant::from_nanos);
            let start = walk().find(|&t| schedule.is_down(t));
            let end = |start| walk().find(|&t| t > start && !schedule.is_down(t));
            let expected = start.map(|start| (start, end(start)));
            prop_assert_eq!(schedule.next_outage(Instant::from_nanos(at)), expected);
        }

        #[test]
        fn overlap_is_some_instant_down(schedule in schedules(), at in 0u64..40, len in 1u64..9) {
            let down = (at..at + len).any(|t| schedule.is_down(Instant::from_nanos(t)));
            let (start, end) = (Instant::from_nanos(at), Instant::from_nanos(at + len));
            prop_assert_eq!(schedule.overlaps(start, end), down);
        }
    }
}
