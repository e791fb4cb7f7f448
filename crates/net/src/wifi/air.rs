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
    pub(crate) moment: Moment,
    /// When it will have passed.
    pub(crate) end: Instant,
    pub(crate) power: Power,
    /// The slot of the frame, or [`SENSED_ONLY`].
    pub(crate) flight: u32,
    /// The next signal of the station.
    next: u32,
}

impl Signal {
    /// When it will have passed, as a place in the order of events.
    pub(crate) fn passes(&self) -> Moment {
        Moment::end(self.end, self.moment.frame())
    }
}

/// In place of a slot: the frame is too weak to be received, so its content does not matter.
pub(crate) const SENSED_ONLY: u32 = u32::MAX;

/// The signals of a station, in the order of what comes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals(u32);

const NONE: u32 = u32::MAX;

impl Signals {
    pub(crate) const EMPTY: Self = Self(NONE);

    pub(crate) fn is_empty(self) -> bool {
        self.0 == NONE
    }
}

/// All frames on the air, and their signals.
#[derive(Clone, Debug)]
pub(crate) struct Air<T> {
    flights: Pool<Flight<T>>,
    signals: Pool<Signal>,
}

impl<T> Air<T> {
    pub(crate) const fn new() -> Self {
        Self { flights: Pool::new(), signals: Pool::new() }
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
    pub(crate) fn first_is_alone(&self, of: Signals, end: Moment) -> bool {
        let next = self.signals[of.0].next;
        next == NONE || self.signals[next].moment > end
    }

    /// What happens first at a station.
    #[inline]
    pub(crate) fn first(&self, of: Signals) -> Option<&Signal> {
        if of.is_empty() { None } else { Some(&self.signals[of.0]) }
    }

    /// The signals of a station, earliest first.
    pub(crate) fn all(&self, of: Signals) -> impl Iterator<Item = &Signal> {
        std::iter::successors(self.first(of), |signal| self.first(Signals(signal.next)))
    }

    /// Adds a signal that will reach a station.
    #[inline]
    pub(crate) fn add(
        &mut self,
        to: &mut Signals,
        (beginning, end): (Moment, Instant),
        power: Power,
        flight: u32,
    ) {
        let signal = Signal { moment: beginning, end, power, flight, next: NONE };
        let place = self.signals.insert(signal);
        if to.is_empty() {
            to.0 = place;
        } else {
            self.enter(to, place, beginning);
        }
    }

    /// The first signal of a station has begun; its end comes next.
    #[inline]
    pub(crate) fn begin_first(&mut self, of: &mut Signals, end: Moment) {
        let place = of.0;
        let signal = &mut self.signals[place];
        signal.moment = end;
        let next = signal.next;
        if next != NONE && self.signals[next].moment < end {
            *of = Signals(next);
            self.enter(of, place, end);
        }
    }

    /// The first signal of a station is over.
    #[inline]
    pub(crate) fn remove_first(&mut self, of: &mut Signals) {
        let place = of.0;
        *of = Signals(self.signals[place].next);
        self.signals.remove(place);
    }

    /// Puts a signal among others.
    fn enter(&mut self, of: &mut Signals, place: u32, moment: Moment) {
        if moment < self.signals[of.0].moment {
            self.signals[place].next = of.0;
            of.0 = place;
            return;
        }
        let mut before = of.0;
        loop {
            let next = self.signals[before].next;
            if next == NONE || moment < self.signals[next].moment {
                self.signals[place].next = next;
                self.signals[before].next = place;
                return;
            }
            before = next;
        }
    }
}
