//! A sender with pauses.

use super::is_open;
use crate::scenario::{OnOffStream, Times};
use airtcp_core::{Bytes, Duration, Instant, Length, Stream};
use airtcp_tcp::{Endpoint, Io};

/// Alternating periods of sending and of silence, sending first.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    on: Times,
    off: Times,
    /// End of the present period of sending.
    until: Instant,
    stream: Stream,
}

impl Periods {
    /// The first one begins at `start`.
    pub(crate) fn new(on: Times, off: Times, start: Instant, mut stream: Stream) -> Self {
        let until = start + on.draw(&mut stream);
        Self { on, off, until, stream }
    }

    /// `at`, or the start of the next period of sending if this one is over by then.
    pub(crate) fn next_on(&mut self, at: Instant) -> Instant {
        if at < self.until {
            return at;
        }
        loop {
            let start = self.until + self.off.draw(&mut self.stream);
            self.until = start + self.on.draw(&mut self.stream);
            if self.until > start {
                return start;
            }
        }
    }
}

/// Writes at a rate, with pauses.
#[derive(Debug)]
pub(crate) struct OnOffSource {
    write: Bytes,
    gap: Duration,
    periods: Periods,
    /// Time of the next write.
    next: Instant,
    /// Bytes that the send buffer has yet to take.
    unwritten: u64,
}

impl OnOffSource {
    /// The first period begins at `start`.
    pub(crate) fn new(spec: &OnOffStream, start: Instant, stream: Stream) -> Self {
        let OnOffStream { rate, on, off, write } = spec;
        Self {
            write: *write,
            gap: rate.transmission_time(*write).max(Duration::from_nanos(1)),
            periods: Periods::new(on.clone(), off.clone(), start, stream),
            next: start,
            unwritten: 0,
        }
    }

    pub(super) fn poll(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint<Length>,
        io: &mut Io<'_, Length>,
    ) {
        if endpoint.aborted().is_some() {
            self.next = Instant::MAX;
            return;
        }
        while self.next <= now {
            self.unwritten += self.write.get();
            self.next = self.periods.next_on(self.next + self.gap);
        }
        if self.unwritten > 0 && is_open(endpoint) {
            self.unwritten -= endpoint.write(now, &Length(self.unwritten), io) as u64;
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        Some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_and_silence_alternate() {
        let [on, off] = [2, 3].map(|s| Times::constant(Duration::from_secs(s)));
        let stream = Stream::new(1, "test");
        let mut periods = Periods::new(on, off, Instant::from_secs(1), stream);
        let next = |periods: &mut Periods, s| periods.next_on(Instant::from_secs(s));
        assert_eq!(next(&mut periods, 2), Instant::from_secs(2));
        assert_eq!(next(&mut periods, 3), Instant::from_secs(6));
        assert_eq!(next(&mut periods, 7), Instant::from_secs(7));
        assert_eq!(next(&mut periods, 8), Instant::from_secs(11));
    }
}
