//! When the mobile would acknowledge what is on its way to it.
//!
//! A sender takes the time from a segment to its acknowledgement for the round trip. One that is
//! acknowledged on the mobile's behalf as soon as it comes makes that time too short, and the
//! sender keeps the shortest: CUBIC then takes the true round trip for a queue and leaves slow
//! start (HyStart++, RFC 9406 §4.2, and its forerunner in Linux), and BBR makes its window too
//! small.

use airtcp_core::{Duration, Instant, SeqNum};
use std::collections::VecDeque;

/// A part of the round trip: data that come within it are acknowledged together.
const PARTS: u64 = 8;

/// The longest such part. What is acknowledged later than that may come after the sender's time-out
/// (Linux: 0.2 s after the round trip).
const LONGEST_PART: Duration = Duration::from_millis(100);

/// There are no more marks; data that come then belong to the last.
const MOST_MARKS: usize = 64;

/// The round trip to the mobile, and when the data under way came. Without data under way it holds
/// no memory of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AckTiming {
    /// The shortest time from a segment to its acknowledgement.
    least: Option<Duration>,
    /// End of the segment whose acknowledgement gives the next sample, and its time of arrival.
    timed: Option<(SeqNum, Instant)>,
    /// In the order of the stream.
    marks: VecDeque<Mark>,
}

/// The data from here to the next mark came within a part of the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Mark {
    start: SeqNum,
    /// Arrival of the first of it.
    at: Instant,
}

impl AckTiming {
    /// New data went on to the mobile, which is in reach, up to `end`.
    pub fn note_passed(&mut self, now: Instant, end: SeqNum) {
        self.timed.get_or_insert((end, now));
    }

    /// New data came that begin at `start`.
    pub fn note_data(&mut self, now: Instant, start: SeqNum) {
        let part = self.part();
        let belongs_to = |last: &Mark| !start.after(last.start) || now.since(last.at) <= part;
        if !self.marks.back().is_some_and(belongs_to) && self.marks.len() < MOST_MARKS {
            self.marks.push_back(Mark { start, at: now });
        }
    }

    /// Cancels the round-trip sample: the mobile is away, or data was retransmitted (Karn's
    /// algorithm, RFC 6298 §3).
    pub fn cancel_sample(&mut self) {
        self.timed = None;
    }

    /// The mobile has acknowledged everything before `ack`; `is_all`: nothing else
    /// is under way.
    pub fn note_ack(&mut self, now: Instant, ack: SeqNum, is_all: bool) {
        if let Some((end, at)) = self.timed
            && ack.at_or_after(end)
        {
            let sample = now.since(at);
            self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
            self.timed = None;
        }
        if is_all {
            self.marks = VecDeque::new();
        }
        while self.marks.get(1).is_some_and(|next| next.start.at_or_before(ack)) {
            self.marks.pop_front();
        }
    }

    /// Start of the data that it is too early to acknowledge; `None`: there are none.
    pub fn early(&self, now: Instant) -> Option<SeqNum> {
        let round_trip = self.round_trip()?;
        self.marks.iter().find(|mark| mark.at + round_trip > now).map(|mark| mark.start)
    }

    /// Time at which to acknowledge the byte at `seq`; `None`: at once.
    pub fn due(&self, seq: SeqNum) -> Option<Instant> {
        let mark = self.marks.iter().rev().find(|mark| mark.start.at_or_before(seq))?;
        Some(mark.at + self.round_trip()?)
    }

    fn part(&self) -> Duration {
        (self.least.unwrap_or_default() / PARTS).min(LONGEST_PART)
    }

    /// From a mark to when all before the next is acknowledged: the last of it is a round trip old.
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.least? + self.part())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    /// Data went on to the mobile that are acknowledged later.
    fn pass(clock: &mut AckTiming, from: u64, to: u64, end: u32) {
        clock.note_passed(ms(from), SeqNum(end));
        clock.note_ack(ms(to), SeqNum(end), true);
    }

    /// Of a mobile 80 ms away.
    fn clock() -> AckTiming {
        let mut clock = AckTiming::default();
        pass(&mut clock, 0, 80, 9);
        clock
    }

    #[test]
    fn without_a_round_trip_nothing_is_too_early() {
        let mut clock = AckTiming::default();
        clock.note_data(ms(5), SeqNum(0));
        assert_eq!((clock.early(ms(5)), clock.due(SeqNum(0))), (None, None));
    }

    #[test]
    fn data_are_due_when_the_last_that_came_with_them_is_a_round_trip_old() {
        let mut clock = clock();
        for (at, start) in [(100, 9), (110, 19), (111, 29)] {
            clock.note_data(ms(at), SeqNum(start));
        }
        assert_eq!(clock.early(ms(189)), Some(SeqNum(9)));
        assert_eq!(clock.due(SeqNum(20)), Some(ms(190)));
        assert_eq!(clock.early(ms(190)), Some(SeqNum(29)));
        assert_eq!(clock.due(SeqNum(29)), Some(ms(201)));
        assert_eq!(clock.early(ms(201)), None);
    }

    #[test]
    fn the_shortest_time_counts_and_none_of_data_that_came_again() {
        let mut clock = clock();
        pass(&mut clock, 100, 300, 19);
        clock.note_passed(ms(400), SeqNum(29));
        clock.cancel_sample();
        clock.note_ack(ms(401), SeqNum(29), true);
        clock.note_data(ms(500), SeqNum(29));
        assert_eq!(clock.due(SeqNum(30)), Some(ms(590)));
    }

    #[test]
    fn marks_are_bounded_and_go_with_the_data() {
        let mut clock = clock();
        for n in 0..200 {
            clock.note_data(ms(1000 + 20 * u64::from(n)), SeqNum(n));
        }
        assert_eq!(clock.marks.len(), MOST_MARKS);
        clock.note_ack(ms(5000), SeqNum(50), false);
        assert_eq!(clock.marks.front().unwrap().start, SeqNum(50));
        clock.note_ack(ms(5000), SeqNum(200), true);
        assert_eq!(clock.marks.capacity(), 0);
    }
}
