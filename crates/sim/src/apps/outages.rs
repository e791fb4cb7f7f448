//! How soon a flow resumes after an outage.

use airtcp_core::{Duration, Event, Events, Instant};
use airtcp_net::schedule::Schedules;

/// Watches the deliveries of one flow whose path has outages.
///
/// The dead time of an outage runs from its end to the next new byte at the receiver, or to the
/// start of the next outage if that comes first.
#[derive(Clone, Debug)]
pub(crate) struct OutageWatch {
    /// The schedules of everything the flow depends on.
    schedules: Schedules,
    /// The end of the first outage after the latest delivery.
    up: Instant,
    outages: u64,
    dead: Duration,
}

impl OutageWatch {
    /// From `start` on; `None` if there are no outages.
    pub(crate) fn new(schedules: Schedules, start: Instant) -> Option<Self> {
        let mut watch = Self { schedules, up: Instant::MAX, outages: 0, dead: Duration::ZERO };
        let (_, up) = watch.schedules.next_outage(start)?;
        watch.up = up.unwrap_or(Instant::MAX);
        Some(watch)
    }

    /// New bytes were delivered.
    #[inline]
    pub(crate) fn delivered(&mut self, now: Instant, events: &mut Events<'_>) {
        if now >= self.up {
            self.resumed(now, events);
        }
    }

    #[cold]
    fn resumed(&mut self, now: Instant, events: &mut Events<'_>) {
        while now >= self.up {
            let next = self.schedules.next_outage(self.up);
            let (down, up) = next.unwrap_or((Instant::MAX, None));
            let dead = now.min(down).since(self.up);
            self.outages += 1;
            self.dead += dead;
            events.emit(now, || Event::OutageOver { dead });
            self.up = up.unwrap_or(Instant::MAX);
        }
    }

    /// Outages so far that ended, and after which the flow went on.
    pub(crate) fn outages(&self) -> u64 {
        self.outages
    }

    /// Their mean dead time, seconds; `None` before the first.
    pub(crate) fn mean_dead_time(&self) -> Option<f64> {
        (self.outages > 0).then(|| self.dead.as_secs_f64() / self.outages as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_net::config::Schedule;

    fn watch(outages: &[&[(u64, u64)]]) -> OutageWatch {
        let s = Instant::from_secs;
        let listed =
            |o: &&[(u64, u64)]| Schedule::Listed(o.iter().map(|&(a, b)| (s(a), s(b))).collect());
        OutageWatch::new(outages.iter().map(listed).collect(), Instant::ZERO).expect("outages")
    }

    /// The number of outages and their mean dead time after deliveries at these instants, ms.
    fn after(mut watch: OutageWatch, deliveries: &[u64]) -> (u64, Option<f64>) {
        for &ms in deliveries {
            watch.delivered(Instant::from_millis(ms), &mut Events::none());
        }
        (watch.outages(), watch.mean_dead_time())
    }

    #[test]
    fn dead_time_runs_from_up_to_the_first_new_byte() {
        assert_eq!(after(watch(&[&[(10, 20)]]), &[9_000, 22_000, 23_000]), (1, Some(2.0)));
        assert_eq!(after(watch(&[&[(10, 20)]]), &[9_000]), (0, None));
        assert_eq!(after(watch(&[&[(10, 20), (30, 40)]]), &[21_000, 43_000]), (2, Some(2.0)));
    }

    #[test]
    fn an_interval_between_outages_without_deliveries_is_all_dead() {
        assert_eq!(after(watch(&[&[(10, 20), (26, 30)]]), &[9_000, 32_000]), (2, Some(4.0)));
    }

    #[test]
    fn overlapping_outages_of_several_links_are_one() {
        assert_eq!(after(watch(&[&[(10, 20)], &[(15, 25)]]), &[22_000, 26_000]), (1, Some(1.0)));
    }

    #[test]
    fn an_outage_without_end_is_never_over() {
        let schedule = Schedule::Listed(vec![(Instant::from_secs(1), Instant::MAX)]);
        let watch =
            OutageWatch::new(Schedules::from_iter([schedule]), Instant::ZERO).expect("an outage");
        assert_eq!(after(watch, &[500, 100_000]), (0, None));
    }
}
