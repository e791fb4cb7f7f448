//! Lines of the log about outages: at most one a second for each group and kind (begun or ended),
//! whatever number of mobiles it happens to.

use crate::signals::SignalSource;
use airtcp_core::{Duration, Instant, counted};
use airtcp_edge::MobileId;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// Least time between two lines of the same kind about a group.
const SPACING: Duration = Duration::from_secs(1);

/// The beginning or the end of an outage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) mobile: MobileId,
    pub(super) cause: SignalSource,
    /// Connections that it interrupts, if their number is known yet.
    pub(super) connections: Option<usize>,
    /// Its length; `None`: it begins.
    pub(super) length: Option<Duration>,
}

/// Lines written lately, and those to be written.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// By group and kind (true: the outage ended).
    latest: BTreeMap<(Arc<str>, bool), Latest>,
}

/// The latest line of a group and kind.
#[derive(Debug)]
struct Latest {
    written: Instant,
    /// Events since then.
    since: Option<Events>,
}

/// Events that share a line.
#[derive(Debug)]
struct Events {
    first: MobileId,
    mobiles: usize,
    causes: BTreeMap<SignalSource, usize>,
    /// Connections that they interrupt, if the number is known of all.
    connections: Option<usize>,
    /// The shortest and the longest, if they are over.
    lengths: Option<[Duration; 2]>,
}

impl Lines {
    /// Writes a line about an event, or keeps it for the next line.
    pub(super) fn note(&mut self, now: Instant, group: &Arc<str>, event: Event) {
        if let Some(line) = self.line(now, group, event) {
            tracing::info!("{line}");
        }
    }

    /// Writes the lines that are due.
    pub(super) fn on_timer(&mut self, now: Instant) {
        for line in self.due(now) {
            tracing::info!("{line}");
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let waiting = self.latest.values().filter(|latest| latest.since.is_some());
        waiting.map(|latest| latest.written + SPACING).min()
    }

    fn line(&mut self, now: Instant, group: &Arc<str>, event: Event) -> Option<String> {
        let key = (group.clone(), event.length.is_some());
        match self.latest.get_mut(&key) {
            Some(Latest { since: Some(events), .. }) => events.add(event),
            Some(Latest { written, since }) if *written + SPACING > now => {
                *since = Some(Events::new(event));
            }
            _ => {
                self.latest.insert(key, Latest { written: now, since: None });
                return Some(Events::new(event).line(group));
            }
        }
        None
    }

    fn due(&mut self, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        self.latest.retain(|(group, _), latest| {
            if latest.written + SPACING > now {
                return true;
            }
            let events = latest.since.take();
            let is_written = events.is_some();
            lines.extend(events.map(|events| events.line(group)));
            latest.written = now;
            is_written
        });
        lines
    }
}

impl Events {
    fn new(event: Event) -> Self {
        let Event { mobile, cause, connections, length } = event;
        let (causes, lengths) = (BTreeMap::from([(cause, 1)]), length.map(|length| [length; 2]));
        Self { first: mobile, mobiles: 1, causes, connections, lengths }
    }

    fn add(&mut self, event: Event) {
        let Event { mobile: _, cause, connections, length } = event;
        self.mobiles += 1;
        *self.causes.entry(cause).or_default() += 1;
        self.connections = self.connections.zip(connections).map(|(all, these)| all + these);
        if let (Some([shortest, longest]), Some(length)) = (&mut self.lengths, length) {
            (*shortest, *longest) = ((*shortest).min(length), (*longest).max(length));
        }
    }

    fn line(&self, group: &str) -> String {
        let Self { first, mobiles, causes, connections, lengths } = self;
        let mut line = match mobiles {
            1 => format!("outage of {first} ({group})"),
            _ => format!("{mobiles} outages ({group})"),
        };
        let seconds = |length: &Duration| format!("{:.1} s", length.as_secs_f64());
        let _ = match lengths.as_ref().map(|lengths| lengths.each_ref().map(seconds)) {
            // It is not the beginning, and nobody reports it now.
            None if causes.keys().all(|cause| *cause == SignalSource::EarlierGateway) => {
                write!(line, " began before this start, ")
            }
            None => write!(line, " began, "),
            Some([shortest, longest]) if shortest == longest => {
                write!(line, " ended after {longest}, ")
            }
            Some([shortest, longest]) => write!(line, " ended after {shortest} to {longest}, "),
        };
        let causes: Vec<String> = match causes.len() {
            1 => causes.keys().map(|cause| format!("cause: {}", cause.name())).collect(),
            _ => causes.iter().map(|(cause, n)| format!("{}: {n}", cause.name())).collect(),
        };
        line.push_str(&causes.join(", "));
        if let Some(connections) = connections {
            let _ = write!(line, ", {} interrupted", counted(*connections, "connection"));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SignalSource::{Agent, Carrier};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn event(n: u8, cause: SignalSource, length: Option<u64>) -> Event {
        let mobile = MobileId::Host([10, 0, 0, n].into());
        Event {
            mobile,
            cause,
            connections: Some(n.into()),
            length: length.map(Duration::from_millis),
        }
    }

    #[test]
    fn an_outage_has_a_line_at_its_beginning_and_one_at_its_end() {
        let (mut lines, phones) = (Lines::default(), "phones".into());
        assert_eq!(
            lines.line(at(0), &phones, event(7, Agent, None)).unwrap(),
            "outage of 10.0.0.7 (phones) began, cause: agent, 7 connections interrupted"
        );
        assert_eq!(
            lines.line(at(300), &phones, event(1, Agent, Some(12_340))).unwrap(),
            "outage of 10.0.0.1 (phones) ended after 12.3 s, cause: agent, 1 connection interrupted"
        );
        assert_eq!(lines.next_deadline(), None);
    }

    #[test]
    fn many_outages_share_one_line_a_second_for_each_group() {
        let (mut lines, phones, cars) = (Lines::default(), "phones".into(), "cars".into());
        assert!(lines.line(at(0), &phones, event(1, Carrier, None)).is_some());
        for n in 2..=9 {
            let cause = if n < 4 { Agent } else { Carrier };
            assert_eq!(lines.line(at(n.into()), &phones, event(n, cause, None)), None);
        }
        assert!(lines.line(at(10), &cars, event(1, Carrier, None)).is_some());
        assert_eq!((lines.next_deadline(), lines.due(at(999)).len()), (Some(at(1000)), 0));
        assert_eq!(
            lines.due(at(1000)),
            ["8 outages (phones) began, agent: 2, carrier: 6, 44 connections interrupted"]
        );
        assert_eq!(lines.line(at(1500), &phones, event(2, Carrier, None)), None, "a second later");
        assert_eq!(lines.due(at(2000)).len(), 1);
        assert_eq!((lines.due(at(3000)).len(), lines.latest.len()), (0, 0), "nothing is kept");
    }

    #[test]
    fn a_number_of_connections_that_is_not_known_of_all_is_left_out() {
        let (mut lines, phones) = (Lines::default(), "phones".into());
        let unknown = |n| Event { connections: None, ..event(n, Agent, None) };
        assert_eq!(
            lines.line(at(0), &phones, unknown(7)).unwrap(),
            "outage of 10.0.0.7 (phones) began, cause: agent"
        );
        for event in [event(1, Carrier, None), unknown(2), event(3, Carrier, None)] {
            lines.line(at(1), &phones, event);
        }
        assert_eq!(lines.due(at(1000)), ["3 outages (phones) began, agent: 1, carrier: 2"]);
    }

    #[test]
    fn the_lengths_of_many_are_a_range() {
        let (mut lines, phones) = (Lines::default(), "phones".into());
        for (n, length) in [(1, 900), (2, 4000), (3, 12_300), (4, 1000)] {
            lines.line(at(0), &phones, event(n, Carrier, Some(length)));
        }
        assert_eq!(
            lines.due(at(1000)),
            [
                "3 outages (phones) ended after 1.0 s to 12.3 s, cause: carrier, 9 connections interrupted"
            ]
        );
    }
}
