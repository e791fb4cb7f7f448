//! Who senses whose frames, how late and how strongly.

use crate::mobility::Mobility;
use crate::mobility::grid::Grid;
use crate::wifi::config::{Power, RadioConfig, Reception};
use crate::wifi::radio::{PathLoss, propagation_nanos};
use airtcp_core::{Duration, Instant, Position};

/// A station that senses another one's frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    /// Its index.
    pub(crate) station: u32,
    /// In nanoseconds, so that a neighbour takes 16 bytes.
    delay: u32,
    pub(crate) power: Power,
}

impl Neighbour {
    /// How long its signal is on the way.
    #[inline]
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_nanos(u64::from(self.delay))
    }
}

/// The kinds of neighbours, in this order, so that the processor foresees which are which: those that
/// can receive a frame, those that sense it, and those at which it is faint.
const CLASSES: usize = 3;

#[inline]
fn class(power: Power, radio: &RadioConfig, faint: Power) -> usize {
    usize::from(power < radio.rx_threshold) + usize::from(power < faint)
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
    kept: Vec<Option<(u32, Box<[Neighbour]>)>>,
    found: Vec<Neighbour>,
    /// Weaker signals are [`faint`](super::faint).
    faint: Power,
    /// Whose neighbours were found, and when, if nothing has changed since.
    found_of: Option<(u32, Instant)>,
    /// The stations that may be in range, and how far away; used while finding.
    near: Vec<u32>,
    distances: Vec<f64>,
    /// The power each receives, watts.
    watts: Vec<f64>,
    /// Room for as many in each class.
    sorted: Vec<Neighbour>,
}

impl Audience {
    pub(crate) fn new(radio: &RadioConfig, positions: &[Position]) -> Self {
        Self {
            radio: radio.clone(),
            loss: radio.path_loss(),
            faint: radio.faint(),
            grid: Grid::new(positions, range(radio, floor(radio))),
            kept: vec![None; positions.len()],
            found: Vec::new(),
            found_of: None,
            near: Vec::new(),
            distances: Vec::new(),
            watts: Vec::new(),
            sorted: Vec::new(),
        }
    }

    pub(crate) fn set_mobility(&mut self, now: Instant, station: u32, mobility: Mobility) {
        self.grid.set_mobility(now, station, mobility);
        self.found_of = None;
    }

    /// Where a station is at any instant.
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
    pub(crate) fn of(&mut self, station: u32, now: Instant) -> &[Neighbour] {
        if self.found_of == Some((station, now)) {
            return &self.found;
        }
        self.grid.advance(now);
        if let Some(near) = self.grid.nearby(station, now) {
            self.near.clear();
            self.near.extend_from_slice(near);
            self.find(station, now);
            self.found_of = Some((station, now));
            return &self.found;
        }
        let generation = self.grid.generation();
        if !matches!(&self.kept[station as usize], Some((of, _)) if *of == generation) {
            self.near.clear();
            self.near.extend(self.grid.around(station));
            self.find(station, now);
            self.found_of = None;
            // In ascending order, as the stations lie in memory.
            let Self { radio, faint, found, .. } = self;
            found.sort_unstable_by_key(|n| (class(n.power, radio, *faint), n.station));
            self.kept[station as usize] = Some((generation, self.found.as_slice().into()));
        }
        self.kept[station as usize].as_ref().map_or(&[], |(_, kept)| kept)
    }

    /// The stations that can receive frames of `station` at `now`, in ascending order.
    pub(crate) fn in_range_of(&self, station: u32, now: Instant) -> Vec<u32> {
        let here = self.position(station, now);
        let received = |&other: &u32| self.radio.in_range(here, self.position(other, now));
        let mut stations: Vec<_> = self.grid.around(station).filter(received).collect();
        stations.sort_unstable();
        stations
    }

    /// Finds those among `near` that sense a frame sent by `station` at `now`.
    #[inline(never)]
    fn find(&mut self, station: u32, now: Instant) {
        let Self { radio, loss, grid, found, faint, near, distances, watts, sorted, .. } = self;
        let floor = floor(radio);
        grid.distances(station, now, near, distances);
        // In a loop of its own, in which the processor takes several at once.
        watts.clear();
        watts.extend(distances.iter().map(|&distance| loss.received(distance)));
        // Sorted without a branch.
        let all = near.len();
        if sorted.len() < CLASSES * all {
            sorted.resize(CLASSES * all, Neighbour { station: 0, delay: 0, power: Power::ZERO });
        }
        let begins: [usize; CLASSES] = std::array::from_fn(|class| class * all);
        let mut ends = begins;
        for ((&station, &distance), &watts) in near.iter().zip(&*distances).zip(&*watts) {
            let power = Power::from_watts(watts);
            // A station further away than a million kilometres (4.3 s) senses nothing.
            let delay = propagation_nanos(distance);
            let end = &mut ends[class(power, radio, *faint)];
            sorted[*end] = Neighbour { station, delay: delay.unwrap_or(0), power };
            *end += usize::from(power >= floor && delay.is_some());
        }
        found.clear();
        for (begin, end) in begins.into_iter().zip(ends) {
            found.extend_from_slice(&sorted[begin..end]);
        }
    }
}

/// Weaker signals have no effect.
fn floor(radio: &RadioConfig) -> Power {
    match radio.reception {
        Reception::FirstLock { .. } => radio.cs_threshold,
        Reception::CumulativeSinr { interference_floor, .. } => {
            interference_floor.min(radio.cs_threshold)
        }
    }
}

/// How far a signal can be sensed, metres; infinite if no distance is too far.
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
