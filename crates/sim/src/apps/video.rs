//! A player of adaptive video: it asks for one segment after another, each in a bitrate of its
//! choice, and shows what it has.
//!
//! Read first: T.-Y. Huang et al., "A Buffer-Based Approach to Rate Adaptation: Evidence from a
//! Large Video Streaming Service", SIGCOMM 2014, §4 and Algorithm 1 ([`by_buffer`]); J. Jiang,
//! V. Sekar, H. Zhang, "Improving Fairness, Efficiency, and Stability in HTTP-based Adaptive Video
//! Streaming with FESTIVE", CoNEXT 2012, §4.3, for the harmonic mean ([`by_throughput`]).

use super::dialogue::{Next, Request};
use crate::metrics::VideoMetrics;
use crate::scenario::{Adaptation, Video};
use airtcp_core::event::PlayerState;
use airtcp_core::{Bytes, DataRate, Duration, Event, Events, Instant, Stream};
use std::collections::VecDeque;

/// Segments whose throughput counts.
const RECENT: usize = 5;
/// The part of the throughput that a bitrate may take.
const SAFETY: f64 = 0.9;

/// A player at work.
#[derive(Debug)]
pub(crate) struct Player {
    spec: Video,
    requests: Stream,
    opened: Instant,
    state: PlayerState,
    /// Time since which it has been in this state.
    since: Instant,
    /// Playing time in the buffer at `at`.
    level: Duration,
    at: Instant,
    /// Playing time asked for so far.
    asked: Duration,
    /// Playing time of the segment under way.
    awaited: Duration,
    /// The step of the ladder chosen last.
    step: Option<usize>,
    /// Throughputs of the latest segments, bit/s.
    throughputs: VecDeque<f64>,
    startup: Option<Duration>,
    stalls: u64,
    /// Total length of the stalls that are over.
    stalled: Duration,
    switches: u64,
    segments: u64,
    /// Playing time received.
    received: Duration,
    /// Integral of the bitrate over it, bits.
    bits: f64,
}

impl Player {
    /// A player that opens its connection at `opened`; `requests` draws the sizes of its requests.
    pub(crate) fn new(spec: Video, opened: Instant, requests: Stream) -> Self {
        Self {
            spec,
            requests,
            opened,
            state: PlayerState::Starting,
            since: opened,
            level: Duration::ZERO,
            at: opened,
            asked: Duration::ZERO,
            awaited: Duration::ZERO,
            step: None,
            throughputs: VecDeque::with_capacity(RECENT),
            startup: None,
            stalls: 0,
            stalled: Duration::ZERO,
            switches: 0,
            segments: 0,
            received: Duration::ZERO,
            bits: 0.0,
        }
    }

    /// Goes on to `now`, at most to the next change.
    pub(super) fn advance(&mut self, now: Instant, events: &mut Events<'_>) {
        if self.state == PlayerState::Playing {
            self.level -= now.since(self.at);
            if self.level.is_zero() {
                let over = self.spec.length.is_some_and(|length| self.received >= length);
                let state = if over { PlayerState::Ended } else { PlayerState::Stalled };
                self.stalls += u64::from(!over);
                self.enter(now, state, events);
            }
        }
        self.at = now;
    }

    fn enter(&mut self, now: Instant, state: PlayerState, events: &mut Events<'_>) {
        (self.state, self.since) = (state, now);
        events.emit(now, || Event::Player { state, buffer: self.level });
    }

    /// The time at which the buffer is empty.
    pub(super) fn next_change(&self) -> Option<Instant> {
        (self.state == PlayerState::Playing).then(|| self.at + self.level)
    }

    /// What to do now that no segment is under way.
    pub(super) fn next(&mut self, now: Instant, events: &mut Events<'_>) -> Next {
        let left = self.spec.length.map(|length| length - self.asked);
        if left.is_some_and(Duration::is_zero) {
            return Next::Done;
        }
        if !self.has_room() {
            return Next::Wait(now + (self.level + self.spec.segment - self.spec.buffer));
        }
        let rates = self.spec.ladder.rates();
        let step = match self.spec.adaptation {
            Adaptation::Buffer => {
                by_buffer(rates, self.step, self.level, self.spec.buffer, self.spec.segment)
            }
            Adaptation::Throughput => by_throughput(rates, &self.throughputs),
        };
        let bitrate = rates[step];
        self.switches += u64::from(self.step.is_some_and(|before| before != step));
        self.step = Some(step);
        self.awaited = left.map_or(self.spec.segment, |left| left.min(self.spec.segment));
        self.asked += self.awaited;
        events.emit(now, || Event::SegmentRequested { bitrate, buffer: self.level });
        let bits = bitrate.bits_per_sec() as f64 * self.awaited.as_secs_f64();
        let answer = Bytes((libm::round(bits / 8.0) as u64).max(1));
        Next::Ask(Request { size: self.spec.request.draw(&mut self.requests), answer })
    }

    /// There is room for another segment.
    fn has_room(&self) -> bool {
        self.level + self.spec.segment <= self.spec.buffer
    }

    /// A segment of this size is there, `took` after its request.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        answer: Bytes,
        took: Duration,
        events: &mut Events<'_>,
    ) {
        self.level += self.awaited;
        self.received += self.awaited;
        self.segments += 1;
        self.bits += answer.bits() as f64;
        if self.throughputs.len() == RECENT {
            self.throughputs.pop_front();
        }
        self.throughputs.push_back(answer.bits() as f64 / took.as_secs_f64().max(1e-9));
        let complete = self.spec.length.is_some_and(|length| self.received >= length);
        let enough = self.level >= self.spec.start_at || !self.has_room() || complete;
        match self.state {
            PlayerState::Starting if enough => {
                self.startup = Some(now.since(self.opened));
                self.enter(now, PlayerState::Playing, events);
            }
            PlayerState::Stalled if enough => {
                self.stalled += now.since(self.since);
                self.enter(now, PlayerState::Playing, events);
            }
            _ => {}
        }
    }

    /// The metrics of the flow `name` as of `now`.
    pub(crate) fn metrics(&self, name: &str, now: Instant) -> VideoMetrics {
        let played = |since: Instant| match self.state {
            PlayerState::Playing => now.since(since),
            _ => Duration::ZERO,
        };
        let buffer = self.level - played(self.at);
        let stalling = match self.state {
            PlayerState::Stalled => now.since(self.since),
            _ => Duration::ZERO,
        };
        VideoMetrics {
            name: name.to_owned(),
            startup_delay: self.startup.map(Duration::as_secs_f64),
            stalls: self.stalls,
            stall_time: (self.stalled + stalling).as_secs_f64(),
            play_time: (self.received - buffer).as_secs_f64(),
            bitrate_mean: (self.segments > 0).then(|| self.bits / self.received.as_secs_f64()),
            bitrate_switches: self.switches,
            segments: self.segments,
            buffer: buffer.as_secs_f64(),
            state: format!("{:?}", self.state),
        }
    }
}

/// BBA-0: the step for a buffer with `level` of its `capacity`, after a segment of the step
/// `before`. The reservoir and the upper end of the cushion are 90 s and 216 s of 240 s in the
/// paper (§4.3); here they are in proportion, except that the cushion leaves room for the segment.
fn by_buffer(
    rates: &[DataRate],
    before: Option<usize>,
    level: Duration,
    capacity: Duration,
    segment: Duration,
) -> usize {
    let top = rates.len() - 1;
    let upper = (capacity * 9 / 10).min(capacity - segment);
    let reservoir = upper * 5 / 12;
    let before = before.unwrap_or(0);
    if level <= reservoir {
        return 0;
    }
    if level >= upper {
        return top;
    }
    let [lowest, highest] = [rates[0], rates[top]].map(|rate| rate.bits_per_sec() as f64);
    let filled = (level - reservoir).as_secs_f64() / (upper - reservoir).as_secs_f64();
    let suggested = lowest + (highest - lowest) * filled;
    let rate = |step: usize| rates[step].bits_per_sec() as f64;
    if suggested >= rate((before + 1).min(top)) {
        // The highest below the suggestion.
        rates.iter().rposition(|rate| (rate.bits_per_sec() as f64) < suggested).unwrap_or(0)
    } else if suggested <= rate(before.saturating_sub(1)) {
        // The lowest above it.
        rates.iter().position(|rate| rate.bits_per_sec() as f64 > suggested).unwrap_or(top)
    } else {
        before
    }
}

/// The highest step below [`SAFETY`] times the harmonic mean of these throughputs.
fn by_throughput(rates: &[DataRate], throughputs: &VecDeque<f64>) -> usize {
    let inverse: f64 = throughputs.iter().map(|throughput| 1.0 / throughput).sum();
    let expected = throughputs.len() as f64 / inverse;
    // Without a segment yet the mean is NaN, and no rate is below it.
    rates.iter().rposition(|rate| rate.bits_per_sec() as f64 <= SAFETY * expected).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Ladder, Sizes};

    fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn at(n: u64) -> Instant {
        Instant::from_secs(n)
    }

    fn ladder() -> Vec<DataRate> {
        [250, 500, 1000, 2000].map(DataRate::kbps).to_vec()
    }

    fn player(length: Option<u64>) -> Player {
        let spec = Video {
            ladder: Ladder::new(ladder()).expect("it ascends"),
            segment: s(4),
            length: length.map(s),
            buffer: s(20),
            start_at: s(8),
            adaptation: Adaptation::Buffer,
            request: Sizes::constant(Bytes(500)),
        };
        Player::new(spec, Instant::ZERO, Stream::new(1, "test"))
    }

    /// Fetches segments that take `each` from `now` on, until the next one has to wait; returns
    /// the time.
    fn fetch(player: &mut Player, mut now: Instant, each: Duration, segments: usize) -> Instant {
        let events = &mut Events::none();
        for _ in 0..segments {
            player.advance(now, events);
            let Next::Ask(request) = player.next(now, events) else { panic!("no request") };
            now += each;
            player.advance(now, events);
            player.answered(now, request.answer, each, events);
        }
        now
    }

    #[test]
    fn it_starts_with_enough_stalls_without_and_goes_on_with_enough() {
        let mut player = player(None);
        let events = &mut Events::none();
        let now = fetch(&mut player, Instant::ZERO, s(1), 2);
        assert_eq!((player.state, player.next_change()), (PlayerState::Playing, Some(at(10))));
        assert_eq!(player.metrics("v", now).startup_delay, Some(2.0));
        // The third takes until 12 s: the buffer is empty at 10 s.
        let Next::Ask(request) = player.next(now, events) else { panic!("no request") };
        player.advance(at(10), events);
        assert_eq!((player.state, player.next_change()), (PlayerState::Stalled, None));
        player.advance(at(12), events);
        player.answered(at(12), request.answer, s(10), events);
        assert_eq!(player.state, PlayerState::Stalled, "4 s are not enough");
        let now = fetch(&mut player, at(12), s(1), 1);
        assert_eq!(player.state, PlayerState::Playing);
        let metrics = player.metrics("v", now);
        assert_eq!((metrics.stalls, metrics.stall_time, metrics.play_time), (1, 3.0, 8.0));
        assert_eq!((metrics.buffer, metrics.segments), (8.0, 4));
    }

    #[test]
    fn it_waits_for_room_in_its_buffer() {
        let mut player = player(None);
        let now = fetch(&mut player, Instant::ZERO, Duration::from_millis(1), 5);
        // 20 s less what was shown since 8 s were there.
        let level = player.level;
        let room = now + (level + s(4) - s(20));
        assert_eq!(player.next(now, &mut Events::none()), Next::Wait(room));
        player.advance(room, &mut Events::none());
        assert!(matches!(player.next(room, &mut Events::none()), Next::Ask(_)));
    }

    #[test]
    fn it_ends_with_the_video() {
        // The last segment is shorter.
        let mut player = player(Some(10));
        let now = fetch(&mut player, Instant::ZERO, s(1), 3);
        let events = &mut Events::none();
        assert_eq!(player.next(now, events), Next::Done);
        assert_eq!(player.next_change(), Some(at(12)));
        player.advance(at(12), events);
        let metrics = player.metrics("v", at(20));
        assert_eq!((metrics.state.as_str(), metrics.stalls, metrics.play_time), ("Ended", 0, 10.0));
        // The last 2 s in 500 kbit/s: 8 s were in the buffer.
        assert_eq!(metrics.bitrate_mean, Some(300_000.0));
    }

    /// Algorithm 1 of the paper, on a buffer of 240 s: f rises from 250 kbit/s at 90 s to 2 Mbit/s
    /// at 216 s.
    #[test]
    fn bba_0_follows_its_map_with_hysteresis() {
        let step = |before, level: u64| by_buffer(&ladder(), Some(before), s(level), s(240), s(4));
        assert_eq!([step(3, 90), step(0, 91), step(0, 216)], [0, 0, 3]);
        // f(153 s) = 1.125 Mbit/s: between 1 and 2 Mbit/s.
        assert_eq!([step(0, 153), step(1, 153), step(2, 153)], [2, 2, 2]);
        // From 2 Mbit/s it falls once f is at most 1 Mbit/s, which it is at 144 s.
        assert_eq!([step(3, 145), step(3, 143)], [3, 2]);
        assert_eq!(by_buffer(&ladder(), None, s(0), s(240), s(4)), 0);
    }

    /// A player asks when there is room for a segment: the top must be within reach then.
    #[test]
    fn bba_0_reaches_the_top_of_a_short_buffer() {
        assert_eq!(by_buffer(&ladder(), Some(2), s(16), s(20), s(4)), 3);
        assert_eq!(by_buffer(&ladder(), Some(0), s(0), s(4), s(4)), 0);
    }

    #[test]
    fn the_throughput_is_a_harmonic_mean_with_a_margin() {
        let step =
            |throughputs: &[f64]| by_throughput(&ladder(), &throughputs.iter().copied().collect());
        assert_eq!(step(&[]), 0);
        // The harmonic mean of 1 and 3 Mbit/s is 1.5 Mbit/s.
        assert_eq!([step(&[1e6, 3e6]), step(&[2.2e6]), step(&[2.3e6])], [2, 2, 3]);
        assert_eq!([step(&[555e3]), step(&[556e3])], [0, 1]);
        assert_eq!(step(&[1.0]), 0);
    }
}
