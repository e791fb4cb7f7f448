//! Frames on the air: what each has yet to do at which station.
//!
//! A frame is sent to its audience as one [`Signal`] for each station that senses it. The signals
//! of a station are a list ordered by what happens next, the first bit or the last. Nothing else
//! happens at a station but its deadline, so each can process its list by itself whenever the
//! result is needed.

use crate::wifi::agenda::Moment;
use crate::wifi::config::Power;
use crate::wifi::frame::Frame;
use airtcp_core::Instant;
use std::ops::{Index, IndexMut};

/// A slab whose places are reused, so that steady state allocates nothing.
#[derive(Clone, Debug)]
struct Pool<V> {
    places: Vec<V>,
    free: Vec<u32>,
}

impl<V> Pool<V> {
    const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    #[inline]
    fn insert(&mut self, value: V) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = value;
            return place;
        }
        self.places.push(value);
        self.places.len() as u32 - 1
    }

    #[inline]
    fn remove(&mut self, place: u32) {
        self.free.push(place);
    }
}

impl<V> Index<u32> for Pool<V> {
    type Output = V;
    #[inline]
    fn index(&self, place: u32) -> &V {
        &self.places[place as usize]
    }
}

impl<V> IndexMut<u32> for Pool<V> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut V {
        &mut self.places[place as usize]
    }
}

/// A frame on the air.
#[derive(Clone, Debug)]
pub(crate) struct Flight<T> {
    pub(crate) frame: Frame<T>,
    /// Frames are numbered as they are sent.
    pub(crate) number: u32,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// When its sender's radio changed before the frame was complete; stations that it passes later
    /// receive it in error.
    pub(crate) cut: Instant,
    /// Probability that no bit is in error.
    pub(crate) intact: f64,
    /// For a packet that more than one station may receive.
    pub(crate) shared: bool,
    /// It has reached its receiver.
    pub(crate) delivered: bool,
    /// The latest station to receive a shared packet, not yet told.
    pub(crate) held: Option<Copied>,
    /// How many still need it: its signals, and the [`Task`](super::agenda::Task) that ends a
    /// shared packet.
    pub(crate) users: u32,
}

/// A copy of a shared packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) station: crate::wifi::station::StationId,
    /// It was for another station.
    pub(crate) overheard: bool,
}

/// A frame at one station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    /// What comes next, its beginning or its end.
    at: Instant,
    order: u32,
    /// The slot of the frame, or [`SENSED_ONLY`].
    pub(crate) flight: u32,
    /// When it will have passed.
    pub(crate) end: Instant,
    pub(crate) power: Power,
}

impl Signal {
    /// In place of a signal: it comes after all others.
    const NONE: Self = Self {
        at: Instant::MAX,
        order: u32::MAX,
        flight: SENSED_ONLY,
        end: Instant::MAX,
        power: Power::ZERO,
    };

    /// A signal that has not begun.
    pub(crate) fn new(beginning: Moment, end: Instant, power: Power, flight: u32) -> Self {
        let Moment { at, order } = beginning;
        Self { at, order, flight, end, power }
    }

    /// What comes next, its beginning or its end.
    pub(crate) fn moment(&self) -> Moment {
        Moment { at: self.at, order: self.order }
    }

    /// When it will have passed, as a place in the order of events.
    pub(crate) fn passes(&self) -> Moment {
        Moment::end(self.end, self.moment().frame())
    }
}

/// In place of a slot: the frame is too weak to be received, so its content does not matter.
pub(crate) const SENSED_ONLY: u32 = u32::MAX;

/// The signals of a station, in the order of what comes first. The first is at hand: there is
/// seldom another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals {
    first: Signal,
    next: u32,
}

const NONE: u32 = u32::MAX;

impl Signals {
    pub(crate) const EMPTY: Self = Self { first: Signal::NONE, next: NONE };

    pub(crate) fn is_empty(&self) -> bool {
        self.first.at == Instant::MAX
    }

    /// What happens first at the station. If nothing does, it is behind all moments.
    pub(crate) fn first(&self) -> &Signal {
        &self.first
    }
}

/// All frames on the air, and their signals.
#[derive(Clone, Debug)]
pub(crate) struct Air<T> {
    flights: Pool<Flight<T>>,
    /// All signals but the first of each station.
    waiting: Pool<Signals>,
}

impl<T> Air<T> {
    pub(crate) const fn new() -> Self {
        Self { flights: Pool::new(), waiting: Pool::new() }
    }

    /// Puts a frame on the air and returns its slot.
    pub(crate) fn launch(&mut self, flight: Flight<T>) -> u32 {
        self.flights.insert(flight)
    }

    /// One user fewer of a frame.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        if slot == SENSED_ONLY {
            return;
        }
        let flight = &mut self.flights[slot];
        flight.users -= 1;
        if flight.users == 0 {
            self.flights.remove(slot);
        }
    }

    #[inline]
    pub(crate) fn flight(&self, slot: u32) -> &Flight<T> {
        &self.flights[slot]
    }

    #[inline]
    pub(crate) fn flight_mut(&mut self, slot: u32) -> &mut Flight<T> {
        &mut self.flights[slot]
    }

    /// Whether the first signal of a station, which ends at `end`, meets no other.
    #[inline]
    pub(crate) fn first_is_alone(&self, of: &Signals, end: Moment) -> bool {
        of.next == NONE || self.waiting[of.next].first.moment() > end
    }

    /// The signals of a station, earliest first.
    pub(crate) fn all<'a>(&'a self, of: &'a Signals) -> impl Iterator<Item = &'a Signal> {
        let behind = |of: &&Signals| (of.next != NONE).then(|| &self.waiting[of.next]);
        let first = (!of.is_empty()).then_some(of);
        std::iter::successors(first, behind).map(|signals| &signals.first)
    }

    /// Adds a signal that will reach a station.
    #[inline]
    pub(crate) fn add(&mut self, to: &mut Signals, signal: Signal) {
        if to.is_empty() {
            to.first = signal;
        } else {
            self.enter(to, signal);
        }
    }

    /// The first signal of a station has begun; its end comes next.
    #[inline]
    pub(crate) fn begin_first(&mut self, of: &mut Signals, end: Moment) {
        let Moment { at, order } = end;
        let begun = Signal { at, order, ..of.first };
        if self.first_is_alone(of, end) {
            of.first = begun;
        } else {
            self.remove_first(of);
            self.enter(of, begun);
        }
    }

    /// The first signal of a station is over.
    #[inline]
    pub(crate) fn remove_first(&mut self, of: &mut Signals) {
        let next = of.next;
        if next == NONE {
            of.first = Signal::NONE;
        } else {
            *of = self.waiting[next];
            self.waiting.remove(next);
        }
    }

    /// Puts a signal among others.
    #[inline(never)]
    fn enter(&mut self, of: &mut Signals, signal: Signal) {
        let moment = signal.moment();
        if moment < of.first.moment() {
            of.next = self.waiting.insert(*of);
            of.first = signal;
            return;
        }
        let mut next = of.next;
        let mut before = NONE;
        while next != NONE && self.waiting[next].first.moment() <= moment {
            before = next;
            next = self.waiting[next].next;
        }
        let place = self.waiting.insert(Signals { first: signal, next });
        if before == NONE {
            of.next = place;
        } else {
            self.waiting[before].next = place;
        }
    }
}
