//! Who senses whose frames, how late and how strongly.

use crate::mobility::Mobility;
use crate::mobility::grid::Grid;
use crate::wifi::config::{Power, RadioConfig, Reception};
use crate::wifi::radio::{PathLoss, propagation_nanos};
use airtcp_core::{Duration, Instant, Position};
use std::ops::Range;

/// A station that senses another one's frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    /// Number of the station ([`StationId`](super::StationId)).
    pub(crate) station: u32,
    /// In nanoseconds, so that a neighbour takes 16 bytes.
    delay: u32,
    pub(crate) power: Power,
}

impl Neighbour {
    /// Propagation delay of its signal.
    #[inline]
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_nanos(u64::from(self.delay))
    }
}

/// The kinds of neighbours: those that can receive a frame, those that sense it, and those at which
/// it is faint.
const CLASSES: usize = 3;

/// The neighbours of a station.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    places: Vec<Neighbour>,
    /// The places of each class.
    classes: [Range<u32>; CLASSES],
}

impl Neighbours {
    pub(crate) const NONE: &'static Self =
        &Self { places: Vec::new(), classes: [const { 0..0 }; CLASSES] };

    /// Those that can receive a frame, those that sense it, and those at which it is faint.
    #[inline]
    pub(crate) fn by_class(&self) -> [&[Neighbour]; CLASSES] {
        let [receiving, sensing, faint] = &self.classes;
        [receiving, sensing, faint].map(|of| &self.places[of.start as usize..of.end as usize])
    }

    #[inline]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Neighbour> {
        self.by_class().into_iter().flatten()
    }

    /// The same without gaps and in ascending order, as the stations lie in memory.
    fn sorted(&self) -> Self {
        let mut places = Vec::with_capacity(self.all().count());
        let classes = self.by_class().map(|class| {
            let start = places.len();
            places.extend_from_slice(class);
            places[start..].sort_unstable_by_key(|neighbour| neighbour.station);
            start as u32..places.len() as u32
        });
        Self { places, classes }
    }
}

/// The neighbours of all stations. They are kept for a station near which nothing moves; for others
/// they are found anew at each request, from the positions at that time of the stations nearby.
#[derive(Clone, Debug)]
pub(crate) struct Audience {
    radio: RadioConfig,
    loss: PathLoss,
    grid: Grid,
    /// The neighbours of each station that has asked, with the generation of the grid they belong
    /// to.
    kept: Vec<Option<(u32, Neighbours)>>,
    found: Neighbours,
    least: Least,
    /// Whose neighbours were found, and when, if nothing has changed since.
    found_of: Option<(u32, Instant)>,
    /// Distances of the stations that may be in range, metres, and the power each receives, watts;
    /// used while finding.
    distances: Vec<f64>,
    watts: Vec<f64>,
}

impl Audience {
    pub(crate) fn new(radio: &RadioConfig, positions: &[Position]) -> Self {
        let least = Least::of(radio);
        Self {
            radio: radio.clone(),
            loss: radio.path_loss(),
            least,
            grid: Grid::new(positions, range(radio, least.noticed)),
            kept: vec![None; positions.len()],
            found: Neighbours::default(),
            found_of: None,
            distances: Vec::new(),
            watts: Vec::new(),
        }
    }

    pub(crate) fn set_mobility(&mut self, now: Instant, station: u32, mobility: Mobility) {
        self.grid.set_mobility(now, station, mobility);
        self.found_of = None;
    }

    /// Position of a station at any instant.
    pub(crate) fn position(&self, station: u32, at: Instant) -> Position {
        self.grid.mobility(station).position(at)
    }

    /// Advances time to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) {
        self.grid.advance(now);
    }

    /// The stations that sense a frame sent by `station` at `now`.
    #[inline]
    pub(crate) fn of(&mut self, station: u32, now: Instant) -> &Neighbours {
        if self.found_of == Some((station, now)) {
            return &self.found;
        }
        self.grid.advance(now);
        if self.find_nearby(station, now) {
            self.found_of = Some((station, now));
            return &self.found;
        }
        let generation = self.grid.generation();
        if !matches!(&self.kept[station as usize], Some((of, _)) if *of == generation) {
            self.find_around(station, now);
            self.found_of = None;
            self.kept[station as usize] = Some((generation, self.found.sorted()));
        }
        self.kept[station as usize].as_ref().map_or(Neighbours::NONE, |(_, kept)| kept)
    }

    /// The stations that can receive frames of `station` at `now`, in ascending order.
    pub(crate) fn in_range_of(&self, station: u32, now: Instant) -> Vec<u32> {
        let here = self.position(station, now);
        let received = |&other: &u32| self.radio.in_range(here, self.position(other, now));
        let mut stations: Vec<_> = self.grid.around(station).filter(received).collect();
        stations.sort_unstable();
        stations
    }

    /// Finds those that sense a frame sent by `station` at `now`, if something moves around it.
    #[inline(never)]
    fn find_nearby(&mut self, station: u32, now: Instant) -> bool {
        let Self { grid, distances, .. } = self;
        let Some(near) = grid.nearby(station, now, distances) else { return false };
        self.found.find(near, &self.distances, &self.loss, &self.least, &mut self.watts);
        true
    }

    /// The same if nothing does.
    #[cold]
    fn find_around(&mut self, station: u32, now: Instant) {
        let near: Vec<_> = self.grid.around(station).collect();
        self.grid.distances(station, now, &near, &mut self.distances);
        self.found.find(&near, &self.distances, &self.loss, &self.least, &mut self.watts);
    }
}

/// The least powers of interest.
#[derive(Clone, Copy, Debug)]
struct Least {
    /// Of a frame that can be received.
    received: Power,
    /// Weaker signals are [`faint`](super::faint).
    sensed: Power,
    /// Weaker signals have no effect.
    noticed: Power,
}

impl Least {
    fn of(radio: &RadioConfig) -> Self {
        let noticed = match radio.reception {
            Reception::FirstLock { .. } => radio.cs_threshold,
            Reception::CumulativeSinr { interference_floor, .. } => {
                interference_floor.min(radio.cs_threshold)
            }
        };
        Self { received: radio.rx_threshold, sensed: radio.faint(), noticed }
    }
}

impl Neighbours {
    /// Those of `near`, this far away in metres, that notice a frame. `watts` is room for the
    /// powers.
    #[inline(always)]
    fn find(
        &mut self,
        near: &[u32],
        distances: &[f64],
        loss: &PathLoss,
        least: &Least,
        watts: &mut Vec<f64>,
    ) {
        // Copied: from behind a reference, the compiler loads one of two fields by its address.
        let (loss, least) = (*loss, *least);
        // In a loop of its own, in which the processor takes several at once.
        watts.clear();
        watts.extend(distances.iter().map(|&distance| loss.received(distance)));
        // Sorted without a branch, with room for all in each class.
        let all = near.len();
        if self.places.len() < CLASSES * all {
            let nobody = Neighbour { station: 0, delay: 0, power: Power::ZERO };
            self.places.resize(CLASSES * all, nobody);
        }
        let mut ends: [usize; CLASSES] = std::array::from_fn(|class| class * all);
        for ((&station, &distance), &watts) in near.iter().zip(distances).zip(&*watts) {
            // A station further away than a million kilometres (4.3 s) senses nothing.
            let Some(delay) = propagation_nanos(distance) else { continue };
            let power = Power::from_watts(watts);
            let class = usize::from(power < least.received) + usize::from(power < least.sensed);
            let end = &mut ends[class];
            self.places[*end] = Neighbour { station, delay, power };
            *end += usize::from(power >= least.noticed);
        }
        let range = |class: usize| (class * all) as u32..ends[class] as u32;
        self.classes = std::array::from_fn(range);
    }
}

/// Largest distance at which a signal can be sensed, metres; infinite if no distance is too far.
fn range(radio: &RadioConfig, floor: Power) -> f64 {
    let sensed = |distance: f64| radio.received(distance) >= floor;
    let (mut near, mut far) = (0.0, 1.0);
    while sensed(far) {
        if far > 1e12 {
            return f64::INFINITY;
        }
        (near, far) = (far, 2.0 * far);
    }
    // Until no number lies between them.
    loop {
        let middle = (near + far) / 2.0;
        if middle <= near || middle >= far {
            return far;
        }
        if sensed(middle) { near = middle } else { far = middle }
    }
}
