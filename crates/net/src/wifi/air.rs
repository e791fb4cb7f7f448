//! Frames on the air: what each has yet to do at which station.
//!
//! A frame is sent to its audience as one [`Signal`] for each station that senses it. The signals
//! of a station are a list ordered by what happens next, the first bit or the last. Nothing else
//! happens at a station but its deadline, so each can process its list by itself whenever the
//! result is needed.

use crate::wifi::agenda::Moment;
use crate::wifi::aggregate::Msdu;
use crate::wifi::config::Power;
use crate::wifi::faint::Faint;
use crate::wifi::frame::{Body, Frame, Monitored};
use crate::wifi::station::StationId;
use airtcp_core::{Duration, IdVec, Instant, Stream};
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
    /// The packets of an A-MPDU or A-MSDU.
    pub(crate) msdus: Vec<Msdu<T>>,
    /// Frames are numbered as they are sent.
    pub(crate) number: u32,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// Probability that no bit is in error.
    pub(crate) intact: f64,
    /// For a packet that more than one station may receive.
    pub(crate) shared: bool,
    /// It has reached its receiver.
    pub(crate) delivered: bool,
    /// The latest station to receive a shared packet, not reported yet.
    pub(crate) held: Option<Copied>,
    /// Number of users: signals that refer to it, and the [`Task`](super::agenda::Task) that ends a
    /// shared packet.
    pub(crate) users: u32,
}

impl<T> Flight<T> {
    /// Probability that a part of the frame is intact if the whole is with probability `whole`: of
    /// an A-MPDU one MPDU, else all of it.
    pub(crate) fn readable(&self, whole: f64) -> f64 {
        let mpdus = match self.frame.body {
            Body::Ampdu { mpdus, .. } if mpdus > 1 => mpdus as f64,
            _ => return whole,
        };
        1.0 - libm::pow(1.0 - libm::pow(whole, 1.0 / mpdus), mpdus)
    }

    /// Decides which MPDUs are intact at the receiver. True if any is.
    pub(crate) fn receive_mpdus(&mut self, whole: f64, errors: &mut Stream) -> bool {
        let size = self.frame.size;
        let mut intact = false;
        for msdu in &mut self.msdus {
            if msdu.first {
                intact = whole >= 1.0 || errors.chance(libm::pow(whole, msdu.share(size)));
            }
            msdu.intact = intact;
        }
        self.msdus.iter().any(|msdu| msdu.intact)
    }
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
    /// The next moment of the signal, its beginning or its end.
    at: Instant,
    order: u32,
    /// The slot of the frame, perhaps with [`ASIDE`], or [`FOR_OTHERS`] or [`SPOILT`].
    pub(crate) flight: u32,
    /// End of the signal.
    pub(crate) end: Instant,
    pub(crate) power: Power,
    /// If it is plain: until when the medium is not to be used after it.
    pub(crate) reserved_until: Instant,
}

impl Signal {
    /// In place of a signal: it comes after all others.
    const NONE: Self = Self {
        at: Instant::MAX,
        order: u32::MAX,
        flight: SPOILT,
        end: Instant::MAX,
        power: Power::ZERO,
        reserved_until: Instant::ZERO,
    };

    /// It brings nothing to the station, and reserves the medium at most.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.flight >= ASIDE
    }

    /// The next moment of the signal, its beginning or its end.
    pub(crate) fn moment(&self) -> Moment {
        Moment { at: self.at, order: self.order }
    }

    /// End of the signal, as a place in the order of events.
    pub(crate) fn passes(&self) -> Moment {
        Moment::end(self.end, self.moment().frame())
    }
}

/// In place of a slot: the frame cannot be received here, because it is too weak or its sender's
/// radio changed before it was complete.
pub(crate) const SPOILT: u32 = u32::MAX;
/// In place of a slot: the frame is for another station, and only reserves the medium.
pub(crate) const FOR_OTHERS: u32 = u32::MAX - 1;
/// Added to a slot: as [`FOR_OTHERS`], unless a bit of the frame is in error.
pub(crate) const ASIDE: u32 = 1 << 31;

/// The signals that reach a station, ordered by their next moments. The first is stored here,
/// because there is seldom another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ear {
    first: Signal,
    /// The place of the next signal.
    next: u32,
    /// The radio is down: no signal reaches it.
    pub(crate) down: bool,
    /// It also receives packets for others.
    pub(crate) overhears: bool,
    /// It contends, and neither its own transmission nor a signal processed in part can affect what
    /// it hears next.
    pub(crate) calm: bool,
}

const NONE: u32 = u32::MAX;

impl Ear {
    pub(crate) fn new() -> Self {
        Self { first: Signal::NONE, next: NONE, down: false, overhears: false, calm: true }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.at == Instant::MAX
    }

    /// The signal whose moment is next. Without signals, that moment is behind all others.
    #[inline]
    pub(crate) fn first(&self) -> &Signal {
        &self.first
    }

    /// The first signal, if it is the only one, has yet to begin, and nothing but its end matters.
    #[inline]
    pub(crate) fn only_plain(&self) -> Option<&Signal> {
        let simple = self.first.is_plain() && !self.first.moment().is_end();
        (self.calm && self.next == NONE && simple).then_some(&self.first)
    }

    /// The only signal is over.
    #[inline]
    pub(crate) fn remove_only(&mut self) {
        self.first = Signal::NONE;
    }
}

/// A signal that is not the first of its station.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    signal: Signal,
    next: u32,
}

/// All frames on the air, and their signals.
#[derive(Clone, Debug)]
pub(crate) struct Air<T> {
    flights: Pool<Flight<T>>,
    /// All signals but the first of each station.
    waiting: Pool<Waiting>,
    /// Of each station, the signals too weak to be sensed.
    pub(crate) faint: IdVec<StationId, Faint>,
    /// Frames sent and received, if the caller asked for them.
    pub(crate) monitor: Option<Monitored<T>>,
}

impl<T> Air<T> {
    /// Silence at so many stations.
    pub(crate) fn new(stations: usize) -> Self {
        let faint = vec![Faint::new(); stations].into();
        Self { flights: Pool::new(), waiting: Pool::new(), faint, monitor: None }
    }

    /// Puts a frame on the air and returns its slot.
    pub(crate) fn launch(&mut self, flight: Flight<T>) -> u32 {
        self.flights.insert(flight)
    }

    /// One user fewer of a frame.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        if slot >= FOR_OTHERS {
            return;
        }
        let slot = slot & !ASIDE;
        let flight = &mut self.flights[slot];
        flight.users -= 1;
        if flight.users == 0 {
            self.flights.remove(slot);
        }
    }

    #[inline]
    pub(crate) fn flight(&self, slot: u32) -> &Flight<T> {
        &self.flights[slot & !ASIDE]
    }

    #[inline]
    pub(crate) fn flight_mut(&mut self, slot: u32) -> &mut Flight<T> {
        &mut self.flights[slot]
    }

    /// True if the first signal of a station, which ends at `end`, meets no other.
    #[inline]
    pub(crate) fn first_is_alone(&self, of: &Ear, end: Moment) -> bool {
        of.next == NONE || self.waiting[of.next].signal.moment() > end
    }

    /// The signals of a station, earliest first.
    pub(crate) fn all<'a>(&'a self, of: &'a Ear) -> impl Iterator<Item = &'a Signal> {
        let first = (!of.is_empty()).then_some((&of.first, of.next));
        let behind = |&(_, next): &(&Signal, u32)| {
            (next != NONE).then(|| (&self.waiting[next].signal, self.waiting[next].next))
        };
        std::iter::successors(first, behind).map(|(signal, _)| signal)
    }

    /// Adds a signal that will reach a station: its beginning, end and power, and
    /// [`Signal::flight`] with [`Signal::reserved_until`].
    #[inline]
    pub(crate) fn add(
        &mut self,
        to: &mut Ear,
        (Moment { at, order }, end): (Moment, Instant),
        power: Power,
        (flight, reserved_until): (u32, Instant),
    ) {
        // Built in place: a copy would have to wait until it is complete.
        if to.is_empty() {
            to.first = Signal { at, order, flight, end, power, reserved_until };
        } else {
            self.enter(to, Signal { at, order, flight, end, power, reserved_until });
        }
    }

    /// The first signal of a station has begun; its end comes next.
    #[inline]
    pub(crate) fn begin_first(&mut self, of: &mut Ear, end: Moment) {
        if self.first_is_alone(of, end) {
            Moment { at: of.first.at, order: of.first.order } = end;
            return;
        }
        // The second comes first, and the first takes its place in the pool.
        let place = of.next;
        let begun = Signal { at: end.at, order: end.order, ..of.first };
        Waiting { signal: of.first, next: of.next } = self.waiting[place];
        let before = self.last_before(of, end);
        let next = self.link(of, before, place);
        self.waiting[place] = Waiting { signal: begun, next };
    }

    /// The first signal of a station is over.
    #[inline]
    pub(crate) fn remove_first(&mut self, of: &mut Ear) {
        let place = of.next;
        if place == NONE {
            of.first = Signal::NONE;
        } else {
            Waiting { signal: of.first, next: of.next } = self.waiting[place];
            self.waiting.remove(place);
        }
    }

    /// The end of a frame that has begun no longer matters to a station. Its signal is not the
    /// first.
    #[inline]
    pub(crate) fn forget(&mut self, of: &mut Ear, frame: u32) {
        let (mut place, mut before) = (of.next, NONE);
        while place != NONE {
            let Waiting { signal, next } = self.waiting[place];
            if signal.moment().is_end() && signal.moment().frame() == frame {
                match before {
                    NONE => of.next = next,
                    before => self.waiting[before].next = next,
                }
                self.waiting.remove(place);
                return self.release(signal.flight);
            }
            (place, before) = (next, place);
        }
    }

    /// The rest of the frame `number` is lost to a station that it has not passed by `now`; after
    /// it the medium is not to be used for `reserves`.
    pub(crate) fn spoil(&mut self, of: &mut Ear, number: Moment, now: Instant, reserves: Duration) {
        let spoilt =
            |signal: &Signal| signal.moment().frame() == number.frame() && signal.end > now;
        let spoil = |signal: &mut Signal| {
            signal.reserved_until = signal.end + reserves;
            std::mem::replace(&mut signal.flight, SPOILT)
        };
        if spoilt(&of.first) {
            return self.release(spoil(&mut of.first));
        }
        let mut next = of.next;
        while next != NONE {
            let waiting = &mut self.waiting[next];
            if spoilt(&waiting.signal) {
                let flight = spoil(&mut waiting.signal);
                return self.release(flight);
            }
            next = waiting.next;
        }
    }

    /// Puts a signal among others. Built in place, as by [`Self::add`].
    #[inline(always)]
    fn enter(&mut self, of: &mut Ear, signal: Signal) {
        let moment = signal.moment();
        if moment < of.first.moment() {
            of.next = self.waiting.insert(Waiting { signal: of.first, next: of.next });
            of.first = signal;
            return;
        }
        let before = self.last_before(of, moment);
        let place = self.waiting.insert(Waiting { signal, next: NONE });
        self.waiting[place].next = self.link(of, before, place);
    }

    /// `place` follows the signal at `before`, or the first. Returns what followed.
    #[inline]
    fn link(&mut self, of: &mut Ear, before: u32, place: u32) -> u32 {
        let next = if before == NONE { &mut of.next } else { &mut self.waiting[before].next };
        std::mem::replace(next, place)
    }

    /// The place of the last signal, but for the first, that does not come after `moment`.
    #[inline]
    fn last_before(&self, of: &Ear, moment: Moment) -> u32 {
        let (mut next, mut before) = (of.next, NONE);
        while next != NONE && self.waiting[next].signal.moment() <= moment {
            before = next;
            next = self.waiting[next].next;
        }
        before
    }
}
