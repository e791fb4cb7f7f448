//! What radios report about outages, to whom and when.

use super::{MechanismId, SocketId};
use crate::scenario::{SignalSpec, WlanId};
use airtcp_core::{Duration, Instant, LinkSignal, Stream};
use airtcp_edge::MobileId;
use airtcp_net::schedule::Schedules;
use airtcp_net::wifi::StationId;
use std::collections::VecDeque;

/// The receiver of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    /// A mechanism, about one of its mobiles.
    Mechanism(MechanismId, MobileId),
    /// An endpoint, about the node it runs on.
    Socket(SocketId),
    /// A radio, to be switched off or on again.
    Station(WlanId, StationId),
}

/// The signals about outages to one listener.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) listener: Listener,
    schedules: Schedules,
    spec: SignalSpec,
    stream: Stream,
    /// Outages that ended before this have been processed.
    upto: Instant,
    /// Signals about the latest outage, in order of time.
    pending: VecDeque<(Instant, LinkSignal)>,
}

impl Feed {
    /// `stream` decides which signals are lost.
    pub(super) fn new(
        listener: Listener,
        schedules: Schedules,
        spec: SignalSpec,
        stream: Stream,
    ) -> Self {
        let pending = VecDeque::with_capacity(3);
        let mut feed = Self { listener, schedules, spec, stream, upto: Instant::ZERO, pending };
        feed.look_ahead();
        feed
    }

    /// Signals about a level, at the instants at which it crosses thresholds.
    pub(super) fn crossings(
        listener: Listener,
        crossings: Vec<(Instant, LinkSignal)>,
        spec: SignalSpec,
        stream: Stream,
    ) -> Self {
        let reported = |(i, &(at, signal)): (usize, &(Instant, LinkSignal))| {
            let after = match signal {
                LinkSignal::Fading => Duration::ZERO,
                LinkSignal::Down => spec.late,
                LinkSignal::Up => spec.delay,
            };
            let overtaken = crossings.get(i + 1).is_some_and(|&(next, _)| next <= at + after);
            (!overtaken).then_some((at + after, signal))
        };
        let pending = crossings.iter().enumerate().filter_map(reported).collect();
        let (schedules, upto) = (Schedules::default(), Instant::MAX);
        Self { listener, schedules, spec, stream, upto, pending }
    }

    /// `Down` and `Up` at the exact instants.
    pub(super) fn exact(listener: Listener, schedules: Schedules) -> Self {
        Self::warned(listener, schedules, Duration::ZERO)
    }

    /// The same, and `Fading` this long before.
    pub(super) fn warned(listener: Listener, schedules: Schedules, lead: Duration) -> Self {
        let (late, delay, missing, level) = (Duration::ZERO, Duration::ZERO, 0.0, None);
        // No signal is lost, so nothing is drawn.
        let stream = Stream::new(0, "");
        Self::new(listener, schedules, SignalSpec { lead, late, delay, missing, level }, stream)
    }

    /// Due time of the next signal.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.pending.front().map(|&(at, _)| at)
    }

    /// The next signal that is due; call until `None`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<LinkSignal> {
        while let Some(&(at, signal)) = self.pending.front()
            && at <= now
        {
            self.pending.pop_front();
            self.look_ahead();
            let missing = self.spec.missing;
            if missing == 0.0 || !self.stream.chance(missing) {
                return Some(signal);
            }
        }
        None
    }

    /// Computes the signals of the next outage, if none are pending.
    fn look_ahead(&mut self) {
        while self.pending.is_empty()
            && let Some((start, end)) = self.schedules.next_outage(self.upto)
        {
            let SignalSpec { lead, late, delay, .. } = self.spec;
            // Signals before the start of the run are not sent.
            let fading = start - lead;
            if !lead.is_zero() && start > Instant::ZERO {
                // It cannot precede the signal that ends the previous outage.
                self.pending.push_back((fading.max(self.upto), LinkSignal::Fading));
            }
            if end.is_none_or(|end| start + late < end) {
                self.pending.push_back((start + late, LinkSignal::Down));
            }
            let Some(end) = end else {
                self.upto = Instant::MAX;
                break;
            };
            self.upto = end;
            let overtaken =
                |next: Option<(Instant, _)>| next.is_some_and(|(at, _)| at <= end + delay);
            if !overtaken(self.schedules.next_outage(end)) {
                self.pending.push_back((end + delay, LinkSignal::Up));
                self.upto = end + delay;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LinkSignal::{Down, Fading, Up};
    use airtcp_net::config::Schedule;

    fn signals(outages: &[(u64, u64)], spec: SignalSpec) -> Vec<(u64, LinkSignal)> {
        let ms = Instant::from_millis;
        let schedule = Schedule::Listed(outages.iter().map(|&(a, b)| (ms(a), ms(b))).collect());
        let stream = Stream::new(1, "signal");
        let mut feed = Feed::new(
            Listener::Socket(SocketId(0)),
            Schedules::from_iter([schedule]),
            spec,
            stream,
        );
        let mut seen = Vec::new();
        while let Some(at) = feed.next_deadline() {
            while let Some(signal) = feed.poll(at) {
                seen.push((at.as_nanos() / 1_000_000, signal));
            }
        }
        seen
    }

    fn spec(lead: u64, late: u64, delay: u64) -> SignalSpec {
        let [lead, late, delay] = [lead, late, delay].map(Duration::from_millis);
        SignalSpec { lead, late, delay, missing: 0.0, level: None }
    }

    #[test]
    fn an_outage_is_announced_begins_and_ends() {
        let seen = signals(&[(1000, 2000), (5000, 6000)], spec(50, 0, 7));
        let expected =
            [(950, Fading), (1000, Down), (2007, Up), (4950, Fading), (5000, Down), (6007, Up)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn without_a_lead_nothing_is_announced_and_down_may_come_late() {
        assert_eq!(signals(&[(1000, 2000)], spec(0, 30, 0)), [(1030, Down), (2000, Up)]);
    }

    #[test]
    fn a_signal_that_the_next_change_overtakes_is_not_sent() {
        // The first outage ends before it is noticed; the second begins before that end is.
        assert_eq!(signals(&[(100, 120)], spec(0, 30, 0)), [(120, Up)]);
        let close = signals(&[(100, 200), (210, 300)], spec(50, 0, 20));
        assert_eq!(close, [(50, Fading), (100, Down), (200, Fading), (210, Down), (320, Up)]);
    }

    #[test]
    fn an_outage_from_the_start_is_not_announced() {
        assert_eq!(signals(&[(0, 100)], spec(50, 0, 0)), [(0, Down), (100, Up)]);
    }

    #[test]
    fn all_signals_may_be_missing() {
        let spec = SignalSpec { missing: 1.0, ..spec(50, 0, 0) };
        assert_eq!(signals(&[(1000, 2000)], spec), []);
    }
}
