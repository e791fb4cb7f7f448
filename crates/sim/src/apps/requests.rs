//! Requests one after another, with pauses.

use super::dialogue::{Next, Request};
use super::tally::{Alone, Tally};
use crate::scenario;
use airtcp_core::{Bytes, Duration, Events, Instant, Stream};

/// What a client of `traffic = { kind = "requests" }` asks for.
#[derive(Debug)]
pub(crate) struct Requests {
    spec: scenario::Requests,
    sizes: Stream,
    answers: Stream,
    think: Stream,
    /// Time before which it does not ask.
    not_before: Instant,
    tally: Tally,
}

impl Requests {
    /// Those of the flow `name`, whose answers would take as long as `alone` says.
    pub(crate) fn new(
        spec: scenario::Requests,
        seed: u64,
        name: &str,
        alone: Option<Alone>,
    ) -> Self {
        let stream = |of: &str| Stream::new(seed, &format!("flow/{name}/{of}"));
        Self {
            spec,
            sizes: stream("requests"),
            answers: stream("answers"),
            think: stream("think"),
            not_before: Instant::ZERO,
            tally: Tally::new(alone),
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(super) fn next(&mut self, now: Instant) -> Next {
        if self.spec.number.is_some_and(|number| self.tally.started() >= number) {
            return Next::Done;
        }
        if now < self.not_before {
            return Next::Wait(self.not_before);
        }
        self.tally.start();
        let (size, answer) =
            (self.spec.request.draw(&mut self.sizes), self.spec.answer.draw(&mut self.answers));
        Next::Ask(Request { size, answer })
    }

    pub(super) fn answered(
        &mut self,
        now: Instant,
        answer: Bytes,
        took: Duration,
        events: &mut Events<'_>,
    ) {
        // One after another: the latest that began.
        let number = self.tally.started() - 1;
        self.tally.complete(now, number, answer, took, events);
        self.not_before = now + self.spec.think.draw(&mut self.think);
    }
}
