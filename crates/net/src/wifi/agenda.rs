//! The order of events: which decision comes next, and until when nothing comes out of the channel.

use crate::wifi::station::StationId;
use airtcp_core::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A place in the order of events: at equal times first the ends of frames, then the deadlines of
/// stations, then the beginnings of frames; ends and beginnings each in the order in which the
/// frames were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    /// What happens (2 bits), and to which frame (30 bits).
    order: u32,
}

const FRAME_BITS: u32 = 30;

impl Moment {
    /// The frame `number` has passed a station.
    pub(crate) fn end(at: Instant, number: u32) -> Self {
        Self::new(at, 0, number)
    }

    /// A station's deadline. Ends at this time come before, beginnings do not.
    pub(crate) fn deadline(at: Instant) -> Self {
        Self::new(at, 1, 0)
    }

    /// The frame `number` has reached a station.
    pub(crate) fn beginning(at: Instant, number: u32) -> Self {
        Self::new(at, 2, number)
    }

    /// After everything that happens at `at`.
    pub(crate) fn after(at: Instant) -> Self {
        Self::new(at, 3, 0)
    }

    /// Just after this one.
    pub(crate) fn next(self) -> Self {
        Self { order: self.order + 1, ..self }
    }

    /// The number of the frame.
    pub(crate) fn frame(self) -> u32 {
        self.order & ((1 << FRAME_BITS) - 1)
    }

    /// Whether it is the end of a frame.
    pub(crate) fn is_end(self) -> bool {
        self.order >> FRAME_BITS == 0
    }

    // Frame numbers wrap at 2^30; two frames so far apart are never on the air together.
    fn new(at: Instant, what: u32, number: u32) -> Self {
        Self { at, order: (what << FRAME_BITS) | (number & ((1 << FRAME_BITS) - 1)) }
    }
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A frame that matters to this station has passed it.
    Passed(StationId),
    /// The frame in this slot has passed every station that may want it.
    PassedAll(u32),
    /// A station's deadline has come, or may have.
    Deadline(StationId),
}

/// Time (64 bits), order (32 bits), station or slot (32 bits): one comparison of integers orders
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

/// Marks a slot. It sorts last, so a frame has passed each station before it counts as having
/// passed all.
const SLOT: u32 = 1 << 31;

impl Entry {
    fn new(moment: Moment, task: Task) -> Self {
        let whom = match task {
            Task::Passed(station) | Task::Deadline(station) => station.0,
            Task::PassedAll(slot) => slot | SLOT,
        };
        let Moment { at, order } = moment;
        let low = (u64::from(order) << 32) | u64::from(whom);
        Self((u128::from(at.as_nanos()) << 64) | u128::from(low))
    }

    fn moment(self) -> Moment {
        Moment { at: self.at(), order: (self.0 >> 32) as u32 }
    }

    fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    fn task(self) -> Task {
        let whom = self.0 as u32;
        match self.moment().is_end() {
            false => Task::Deadline(StationId(whom)),
            true if whom & SLOT != 0 => Task::PassedAll(whom & !SLOT),
            true => Task::Passed(StationId(whom)),
        }
    }
}

/// All pending decisions by time, in two heaps: those that may produce output, and those that
/// cannot produce any at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agenda {
    showing: BinaryHeap<Reverse<Entry>>,
    silent: BinaryHeap<Reverse<Entry>>,
}

impl Agenda {
    /// Adds a task. `shows` says that carrying it out may produce output of the channel. The other
    /// tasks lead to new frames at most.
    #[inline]
    pub(crate) fn add(&mut self, moment: Moment, task: Task, shows: bool) {
        let heap = if shows { &mut self.showing } else { &mut self.silent };
        heap.push(Reverse(Entry::new(moment, task)));
    }

    /// Takes the next task, if it is due by `now`.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Moment, Task)> {
        let showing = self.showing.peek().map(|entry| entry.0);
        let silent = self.silent.peek().map(|entry| entry.0);
        let (heap, next) = match (showing, silent) {
            (Some(showing), Some(silent)) if showing < silent => (&mut self.showing, showing),
            (Some(showing), None) => (&mut self.showing, showing),
            (_, Some(silent)) => (&mut self.silent, silent),
            (None, None) => return None,
        };
        if next.at() > now {
            return None;
        }
        heap.pop();
        Some((next.moment(), next.task()))
    }

    /// The time before which nothing comes out, given that every frame takes at least `frame`.
    #[inline]
    pub(crate) fn shows(&self, frame: Duration) -> Option<Instant> {
        let showing = self.showing.peek().map(|entry| entry.0.at());
        let silent = self.silent.peek().map(|entry| entry.0.at() + frame);
        match (showing, silent) {
            (Some(showing), Some(silent)) => Some(showing.min(silent)),
            (one, other) => one.or(other),
        }
    }
}
