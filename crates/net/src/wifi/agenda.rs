//! The order of events: which decision comes next, and until when nothing comes out of the channel.

use crate::wifi::station::StationId;
use airtcp_core::{Duration, Id, IdVec, Instant};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A place in the order of events: at equal times first the ends of frames, then the deadlines of
/// stations, then the beginnings of frames; ends and beginnings each in the order in which the
/// frames were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    /// Kind of event (2 bits), and number of its frame (30 bits).
    pub(crate) order: u32,
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

    /// True if it is the end of a frame.
    pub(crate) fn is_end(self) -> bool {
        self.order >> FRAME_BITS == 0
    }

    // Frame numbers wrap at 2^30; two frames so far apart are never on the air together.
    fn new(at: Instant, what: u32, number: u32) -> Self {
        Self { at, order: (what << FRAME_BITS) | (number & ((1 << FRAME_BITS) - 1)) }
    }
}

impl Moment {
    /// One number that orders moments as their fields would, without a branch, which could not be
    /// predicted.
    #[inline]
    fn key(self) -> u128 {
        (u128::from(self.at.as_nanos()) << 64) | u128::from(self.order)
    }
}

impl Ord for Moment {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }

    #[inline]
    fn min(self, other: Self) -> Self {
        if other.key() < self.key() { other } else { self }
    }
}

impl PartialOrd for Moment {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.key() < other.key()
    }

    #[inline]
    fn le(&self, other: &Self) -> bool {
        self.key() <= other.key()
    }

    #[inline]
    fn gt(&self, other: &Self) -> bool {
        other < self
    }

    #[inline]
    fn ge(&self, other: &Self) -> bool {
        other <= self
    }
}

/// Work that is due at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A frame that matters to this station has passed it.
    Passed(StationId),
    /// The frame in this slot has passed every station that may want it.
    PassedAll(u32),
    /// A station's deadline has come, or may have. The lowest station comes first.
    Deadline(StationId),
}

/// Time (64 bits), order (32 bits), station or slot (32 bits): one comparison of integers orders
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

/// Behind all others.
const NONE: Entry = Entry(u128::MAX);

/// Marks a slot. So a frame has passed everyone after it has passed each one.
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

    /// The task of the end of a frame.
    fn passed(self) -> Task {
        let whom = self.0 as u32;
        if whom & SLOT != 0 { Task::PassedAll(whom & !SLOT) } else { Task::Passed(StationId(whom)) }
    }
}

/// The deadline of each station, and which is the earliest: a tournament in groups of eight, in
/// which the lower station wins a draw.
#[derive(Clone, Debug)]
struct Deadlines {
    /// The final at 0. The winners of the groups from `8n + 1` on meet in group `n`; the stations
    /// meet in the last groups.
    groups: Vec<Group>,
    /// The first group of stations.
    leaves: usize,
    earliest: Instant,
    /// A group whose winner has yet to meet the others.
    unsettled: Option<usize>,
}

/// Eight that meet, on one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([Instant; 8]);

impl Group {
    #[inline]
    fn earliest(&self) -> Instant {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
    }

    /// The place of the first one that is `at`.
    #[inline]
    fn first(&self, at: Instant) -> usize {
        let bit = |place: usize| u32::from(self.0[place] == at) << place;
        (0..8).map(bit).sum::<u32>().trailing_zeros() as usize % 8
    }
}

impl Deadlines {
    fn new(stations: usize) -> Self {
        let (mut leaves, mut room) = (0, 1);
        while 8 * room < stations {
            leaves = 8 * leaves + 1;
            room *= 8;
        }
        let groups = leaves + stations.div_ceil(8).max(1);
        let none = Group([Instant::MAX; 8]);
        Self { groups: vec![none; groups], leaves, earliest: Instant::MAX, unsettled: None }
    }

    #[inline]
    fn of(&self, station: StationId) -> Instant {
        let station = station.index();
        self.groups[self.leaves + station / 8].0[station % 8]
    }

    #[inline]
    fn set(&mut self, station: StationId, at: Instant) {
        let station = station.index();
        let group = self.leaves + station / 8;
        self.groups[group].0[station % 8] = at;
        self.settle(group);
    }

    /// A later deadline, one of several: [`Self::settle_all`] must follow.
    #[inline]
    fn put_off(&mut self, station: StationId, at: Instant) {
        let station = station.index();
        let group = self.leaves + station / 8;
        let deadline = &mut self.groups[group].0[station % 8];
        if *deadline >= at {
            return;
        }
        *deadline = at;
        // Stations that sense the same frame are often in the same group.
        if self.unsettled != Some(group) {
            self.settle_all();
            self.unsettled = Some(group);
        }
    }

    #[inline]
    fn settle_all(&mut self) {
        if let Some(group) = self.unsettled.take() {
            self.settle(group);
        }
    }

    /// The winner of a group meets the others.
    #[inline]
    fn settle(&mut self, mut group: usize) {
        // Up to the final, without asking whether anything changes: that cannot be foreseen.
        while group > 0 {
            let earliest = self.groups[group].earliest();
            let place = (group - 1) % 8;
            group = (group - 1) / 8;
            self.groups[group].0[place] = earliest;
        }
        self.earliest = self.groups[0].earliest();
    }

    #[inline]
    fn earliest(&self) -> Instant {
        self.earliest
    }

    #[inline]
    fn first(&self) -> StationId {
        let mut group = 0;
        loop {
            let place = self.groups[group].first(self.earliest);
            if group >= self.leaves {
                return StationId((8 * (group - self.leaves) + place) as u32);
            }
            group = 8 * group + 1 + place;
        }
    }
}

/// All tasks, by time.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// Tasks whose outcome may be visible outside the channel. Deadlines that may are here, too,
    /// but carried out by [`Self::deadlines`].
    showing: BinaryHeap<Reverse<Entry>>,
    /// Tasks whose outcome is not visible at once.
    silent: BinaryHeap<Reverse<Entry>>,
    deadlines: Deadlines,
    /// Of each station, the deadline that was last entered among what may show.
    shown: IdVec<StationId, Instant>,
}

impl Agenda {
    pub(crate) fn new(stations: usize) -> Self {
        // Never empty: the processor could not predict whether they are.
        let heap = || BinaryHeap::from([Reverse(NONE)]);
        Self {
            showing: heap(),
            silent: heap(),
            deadlines: Deadlines::new(stations),
            shown: vec![Instant::MAX; stations].into(),
        }
    }

    /// Adds the passing of a frame. `shows`: something may come out of the channel when it is
    /// carried out. What does not show leads to frames at most.
    #[inline]
    pub(crate) fn add(&mut self, moment: Moment, task: Task, shows: bool) {
        let heap = if shows { &mut self.showing } else { &mut self.silent };
        heap.push(Reverse(Entry::new(moment, task)));
    }

    /// The station has no deadline before `at`. [`Self::settle`] must follow.
    #[inline]
    pub(crate) fn put_off(&mut self, station: StationId, at: Instant) {
        self.deadlines.put_off(station, at);
    }

    /// Deadlines have been put off.
    #[inline]
    pub(crate) fn settle(&mut self) {
        self.deadlines.settle_all();
    }

    /// From now on this is the station's deadline, and its only one.
    #[inline]
    pub(crate) fn set_deadline(&mut self, station: StationId, at: Instant) {
        if self.deadlines.of(station) != at {
            self.deadlines.set(station, at);
        }
    }

    /// Something may come out at this deadline.
    pub(crate) fn show_deadline(&mut self, station: StationId, at: Instant) {
        if self.shown[station] != at {
            self.shown[station] = at;
            self.add(Moment::deadline(at), Task::Deadline(station), true);
        }
    }

    /// Takes the next task, if it is due by `now`. A deadline stays until another one is set.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Moment, Task)> {
        let due = self.deadlines.earliest();
        loop {
            let showing = self.showing.peek().map_or(NONE, |entry| entry.0);
            let silent = self.silent.peek().map_or(NONE, |entry| entry.0);
            let next = showing.min(silent);
            if next == NONE || next.at() > due {
                break;
            }
            if next.at() > now {
                return None;
            }
            if showing < silent {
                self.showing.pop()
            } else {
                self.silent.pop()
            };
            if next.moment().is_end() {
                return Some((next.moment(), next.passed()));
            }
        }
        let first = || (Moment::deadline(due), Task::Deadline(self.deadlines.first()));
        (due <= now && due < Instant::MAX).then(first)
    }

    /// The time before which nothing comes out, given that every frame takes at least `frame`.
    #[inline]
    pub(crate) fn shows(&self, frame: Duration) -> Option<Instant> {
        let showing = self.showing.peek().map_or(Instant::MAX, |entry| entry.0.at());
        let silent = self.silent.peek().map_or(Instant::MAX, |entry| entry.0.at());
        let silent = silent.min(self.deadlines.earliest());
        let silent = if silent == Instant::MAX { silent } else { silent + frame };
        let next = showing.min(silent);
        (next < Instant::MAX).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Stream;

    #[test]
    fn the_lowest_station_with_the_earliest_deadline_comes_first() {
        for stations in [1_u32, 2, 8, 9, 64, 65, 512, 600] {
            let mut deadlines = Deadlines::new(stations as usize);
            let mut all = vec![Instant::MAX; stations as usize];
            let mut stream = Stream::new(1, "deadlines");
            for _ in 0..2_000 {
                let station = stream.below(u64::from(stations)) as u32;
                // Few values, so that there are draws.
                let at = match stream.below(8) {
                    7 => Instant::MAX,
                    at => Instant::from_nanos(at),
                };
                if stream.chance(0.5) {
                    deadlines.set(StationId(station), at);
                    all[station as usize] = at;
                } else {
                    for station in (station..stations).step_by(5).take(10) {
                        deadlines.put_off(StationId(station), at);
                        all[station as usize] = at.max(all[station as usize]);
                    }
                    deadlines.settle_all();
                }
                let earliest = all.iter().copied().min().expect("there are stations");
                let first = all.iter().position(|&at| at == earliest).expect("it is there");
                assert_eq!(deadlines.of(StationId(station)), all[station as usize]);
                assert_eq!(deadlines.earliest(), earliest, "{stations} stations");
                assert_eq!(deadlines.first(), StationId(first as u32), "{stations} stations");
            }
        }
    }
}
