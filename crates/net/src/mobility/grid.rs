//! Spatial index of stations: the plane is divided into square cells as wide as the query range, so
//! that everything within range of a station lies in the 3 x 3 cells around it.
//!
//! A moving station is always entered in the cell where it is. A heap holds the instants at which
//! it crosses into another cell or its leg ends; [`Grid::advance`] processes them before a query. A
//! station that stands still costs nothing.
//!
//! Near moving stations, the first query of a station also notes who else may come into range soon.
//! Later ones look at these alone, until somebody else may have come nearer, or a movement in the
//! 3 x 3 cells has changed.

use super::{Leg, Mobility, Stationary};
use airtcp_core::{Duration, Instant, Position};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The positions of all stations.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    stations: Vec<Entry>,
    /// Movement of each station.
    mobility: Vec<Mobility>,
    /// Query range, metres.
    range: f64,
    /// Width of a cell, metres.
    width: f64,
    /// The corner of the first cell. Points outside all cells belong to the outermost ones.
    corner: Position,
    columns: usize,
    rows: usize,
    cells: Vec<Cell>,
    /// Number of stations that move.
    movers: u32,
    /// Time of the next update of each moving station's entry.
    changes: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Number of times that the movement of any station has changed.
    all_changes: u64,
    /// Changes whenever a station comes to rest for good, or a resting one begins to move.
    generation: u32,
    /// Of the stations that have asked among moving ones.
    nearby: Vec<Nearby>,
}

/// Nanoseconds since the start of the run.
#[inline]
fn nanos(at: Instant) -> f64 {
    at.as_nanos() as f64
}

/// Position of a station, and its cell; one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entry {
    /// Start of its leg, metres, and its velocity, metres per nanosecond.
    from: Position,
    velocity: Position,
    /// Start time of the leg, nanoseconds. (Exact for a hundred days.)
    since: f64,
    /// Time of the next update of this entry; [`Instant::MAX`] for never.
    due: Instant,
    cell: u32,
    /// Its place among the members of the cell.
    place: u32,
}

impl Entry {
    fn new(leg: &Leg, due: Instant) -> Self {
        let Leg { from, since, to, until } = *leg;
        let takes = until.since(since).as_nanos() as f64;
        let velocity = Position { x: (to.x - from.x) / takes, y: (to.y - from.y) / takes };
        Self { from, velocity, since: nanos(since), due, cell: 0, place: 0 }
    }

    /// [`Leg::position`] at these [`nanos`] during the leg, but for rounding; without a branch, which
    /// could not be predicted, and without division, which takes longer than all else.
    #[inline]
    fn position(&self, at: f64) -> Position {
        let passed = at - self.since;
        let Self { from, velocity, .. } = *self;
        Position { x: from.x + velocity.x * passed, y: from.y + velocity.y * passed }
    }

    /// Metres per nanosecond.
    fn speed(&self) -> f64 {
        Position::default().distance(self.velocity)
    }

    /// The station moves, or will move.
    fn is_mover(&self) -> bool {
        self.due < Instant::MAX
    }
}

#[derive(Clone, Debug, Default)]
struct Cell {
    members: Vec<u32>,
    /// Number of moving stations in the cell.
    movers: u32,
    /// Number of times that a movement in the cell has changed.
    changes: u32,
}

/// The stations that may come into range of one.
#[derive(Clone, Debug, Default)]
struct Nearby {
    stations: Vec<u32>,
    /// Before this no other can.
    until: Instant,
    /// [`Grid::changes_around`] it when it asked.
    around: (u32, u64),
    /// Value of `all_changes` at that time.
    changes: u64,
}

impl Grid {
    /// Stations that stand still at `positions`, to be found within `range` metres.
    pub(crate) fn new(positions: &[Position], range: f64) -> Self {
        let extent = |coordinate: fn(&Position) -> f64| {
            let all = || positions.iter().map(coordinate);
            let low = all().fold(f64::INFINITY, f64::min);
            (low, all().fold(low, f64::max) - low)
        };
        let ((x, across), (y, up)) = (extent(|p| p.x), extent(|p| p.y));
        // A little wider than the range, because crossings are rounded to a nanosecond. Where
        // stations are sparse, wide enough that there are not many more cells than stations.
        let stations = positions.len().max(1) as f64;
        let few = (across * up / stations).sqrt().max(across.max(up) / stations);
        let width = (range * (1.0 + 1e-9) + 1e-3).max(few);
        // A float-to-integer cast saturates.
        let count = |extent: f64| (extent / width) as usize + 1;
        let (columns, rows) = (count(across), count(up));
        let stay = |&place| Leg::stay(place, Instant::ZERO, Instant::MAX);
        let entry = |place| Entry::new(&stay(place), Instant::MAX);
        let mut grid = Self {
            stations: positions.iter().map(entry).collect(),
            mobility: positions.iter().map(|&p| Mobility::Stationary(Stationary(p))).collect(),
            range,
            width,
            corner: Position { x, y },
            columns,
            rows,
            cells: vec![Cell::default(); columns * rows],
            movers: 0,
            changes: BinaryHeap::new(),
            all_changes: 0,
            generation: 0,
            nearby: Vec::new(),
        };
        for (station, place) in (0..).zip(positions) {
            grid.enter(station, &stay(place), Instant::ZERO);
        }
        grid
    }

    /// Sets how a station moves from `now` on.
    pub(crate) fn set_mobility(&mut self, now: Instant, station: u32, mobility: Mobility) {
        self.advance(now);
        self.mobility[station as usize] = mobility;
        self.look_after(station, now);
        self.generation += 1;
    }

    /// The movement of a station.
    pub(crate) fn mobility(&self, station: u32) -> &Mobility {
        &self.mobility[station as usize]
    }

    /// Changes whenever the neighbourhood of stations that stand still does; see
    /// [`Grid::nearby`].
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// True if this station moves, or any that may be in its range.
    fn moves_around(&self, station: u32) -> bool {
        self.cells_around(station).any(|cell| cell.movers > 0)
    }

    /// A station's cell, and how often a movement that concerns a station there has changed.
    fn changes_around(&self, station: u32) -> (u32, u64) {
        let changes = self.cells_around(station).map(|cell| u64::from(cell.changes)).sum();
        (self.stations[station as usize].cell, changes)
    }

    /// Updates the entries of all stations to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(&Reverse((at, station))) = self.changes.peek().filter(|c| c.0.0 <= now) {
            self.changes.pop();
            // A change of movement leaves the station's old entry in the heap.
            if self.stations[station as usize].due == at {
                self.look_after(station, at);
            }
        }
    }

    /// The other stations in the 3 x 3 cells around one: all that may be within range now.
    pub(crate) fn around(&self, station: u32) -> impl Iterator<Item = u32> {
        let members = self.cells_around(station).flat_map(|cell| &cell.members).copied();
        members.filter(move |&other| other != station)
    }

    /// The same, with their distances in metres, but not those that are too far away for now.
    /// `None` if nothing moves in the cells around.
    /// [`Grid::advance`] must have been called up to `now`.
    #[inline]
    pub(crate) fn nearby(
        &mut self,
        station: u32,
        now: Instant,
        distances: &mut Vec<f64>,
    ) -> Option<&[u32]> {
        let known = self.nearby.get(station as usize);
        if !known.is_some_and(|known| now < known.until && known.changes == self.all_changes)
            && !self.look_nearby(station, now)
        {
            return None;
        }
        let stations = &self.nearby[station as usize].stations;
        self.distances(station, now, stations, distances);
        Some(stations)
    }

    /// Brings [`Grid::nearby`] up to `now`, if something moves in the cells around.
    #[inline(never)]
    fn look_nearby(&mut self, station: u32, now: Instant) -> bool {
        if self.movers == 0 || !self.moves_around(station) {
            return false;
        }
        let around = self.changes_around(station);
        let at = station as usize;
        if self.nearby.is_empty() {
            self.nearby = vec![Nearby::default(); self.stations.len()];
        }
        let known = &mut self.nearby[at];
        if now >= known.until || known.around != around {
            let mut stations = std::mem::take(&mut known.stations);
            let until = self.look_around(station, now, &mut stations);
            self.nearby[at] = Nearby { stations, until, around, changes: 0 };
        }
        self.nearby[at].changes = self.all_changes;
        true
    }

    /// Sets `near` to the stations in range, or almost, in ascending order. Returns until when no
    /// other can come into range, unless a movement changes.
    fn look_around(&self, station: u32, now: Instant, near: &mut Vec<u32>) -> Instant {
        near.clear();
        let own = &self.stations[station as usize];
        let at = nanos(now);
        let here = own.position(at);
        let mut until = Instant::MAX;
        for other in self.around(station) {
            let entry = &self.stations[other as usize];
            let away = here.distance(entry.position(at)) - self.range;
            if away > ALMOST * self.range {
                let soonest = away / (own.speed() + entry.speed());
                // A float-to-integer cast rounds down and saturates. Rounding errors are smaller by
                // orders of magnitude than what is taken off.
                until = until.min(now + Duration::from_nanos((soonest * 0.999) as u64));
            } else {
                near.push(other);
            }
        }
        near.sort_unstable();
        until
    }

    /// Sets `distances` to those of `others` from a station, metres. [`Grid::advance`] must have
    /// been called up to `now`.
    #[inline]
    pub(crate) fn distances(
        &self,
        station: u32,
        now: Instant,
        others: &[u32],
        distances: &mut Vec<f64>,
    ) {
        let at = nanos(now);
        let here = self.stations[station as usize].position(at);
        let squares = others.iter().map(|&other| {
            let there = self.stations[other as usize].position(at);
            here.distance_squared(there)
        });
        distances.clear();
        distances.extend(squares);
        // In a loop of their own, in which the processor takes several roots at once.
        distances.iter_mut().for_each(|distance| *distance = distance.sqrt());
    }

    /// The 3 x 3 cells around a station's cell.
    fn cells_around(&self, station: u32) -> impl Iterator<Item = &Cell> {
        let (column, row) = self.place(self.stations[station as usize].cell);
        let columns = column.saturating_sub(1)..(column + 2).min(self.columns);
        let rows = row.saturating_sub(1)..(row + 2).min(self.rows);
        let row = move |row: usize| &self.cells[row * self.columns..][columns.start..columns.end];
        rows.flat_map(row)
    }

    /// Column and row of a cell.
    fn place(&self, cell: u32) -> (usize, usize) {
        (cell as usize % self.columns, cell as usize / self.columns)
    }

    /// Sets a station's current leg and cell.
    fn look_after(&mut self, station: u32, now: Instant) {
        let before = self.leave(station);
        let leg = self.mobility[station as usize].leg(now);
        let due = self.enter(station, &leg, now);
        self.generation += u32::from(before.is_mover() && due == Instant::MAX);
        if due < Instant::MAX {
            self.changes.push(Reverse((due, station)));
        }
    }

    /// Enters a station; returns when its entry must next be updated.
    fn enter(&mut self, station: u32, leg: &Leg, now: Instant) -> Instant {
        let Position { x, y } = leg.position(now);
        let index = |offset: f64, count: usize| ((offset / self.width) as usize).min(count - 1);
        let column = index(x - self.corner.x, self.columns);
        let row = index(y - self.corner.y, self.rows);
        let due = self.leaves_cell(leg, (column, row), now);
        let number = row * self.columns + column;
        let cell = &mut self.cells[number];
        let (at, place) = (number as u32, cell.members.len() as u32);
        let entry = Entry { cell: at, place, ..Entry::new(leg, due) };
        cell.members.push(station);
        cell.movers += u32::from(entry.is_mover());
        cell.changes = cell.changes.wrapping_add(1);
        self.all_changes += 1;
        self.movers += u32::from(entry.is_mover());
        self.stations[station as usize] = entry;
        due
    }

    /// Takes a station out; returns its entry.
    fn leave(&mut self, station: u32) -> Entry {
        let entry = self.stations[station as usize];
        let cell = &mut self.cells[entry.cell as usize];
        cell.members.swap_remove(entry.place as usize);
        if let Some(&moved) = cell.members.get(entry.place as usize) {
            self.stations[moved as usize].place = entry.place;
        }
        cell.movers -= u32::from(entry.is_mover());
        cell.changes = cell.changes.wrapping_add(1);
        self.all_changes += 1;
        self.movers -= u32::from(entry.is_mover());
        entry
    }

    /// The time at which a station crosses into another cell, or its leg ends.
    fn leaves_cell(&self, leg: &Leg, (column, row): (usize, usize), now: Instant) -> Instant {
        if !leg.moves() {
            return leg.until;
        }
        let here = leg.position(now);
        let left = leg.until.since(now.max(leg.since)).as_nanos() as f64;
        let crossing = |from: f64, to: f64, corner: f64, index: usize, count: usize| {
            let ahead = if to > from { index + 1 } else { index };
            // The outermost cells have no end.
            if to == from || ahead == 0 || ahead == count {
                return Instant::MAX;
            }
            let border = corner + self.width * ahead as f64;
            let after = left * ((border - from) / (to - from)).max(0.0);
            // At least a nanosecond, so that time advances.
            now.max(leg.since) + Duration::from_nanos((after as u64).saturating_add(1))
        };
        let across = crossing(here.x, leg.to.x, self.corner.x, column, self.columns);
        let up = crossing(here.y, leg.to.y, self.corner.y, row, self.rows);
        leg.until.min(across).min(up)
    }
}

/// Margin beyond the range within which a station counts as nearby, as a fraction of the range. At
/// 15 m/s and a range of 550 m, two stations need a second to come so much closer.
const ALMOST: f64 = 1.0 / 16.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mobility::Path;
    use proptest::prelude::*;

    const RANGE: f64 = 100.0;

    fn seconds(s: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(s)
    }

    /// The stations within range, by brute force.
    fn among_all(mobility: &[Mobility], of: usize, at: Instant) -> Vec<u32> {
        let here = mobility[of].position(at);
        let near = |&(other, m): &(u32, &Mobility)| {
            other != of as u32 && m.position(at).distance(here) <= RANGE
        };
        (0..).zip(mobility).filter(near).map(|(other, _)| other).collect()
    }

    fn within_range(grid: &Grid, of: usize, at: Instant, among: &[u32]) -> Vec<u32> {
        let mut distances = Vec::new();
        grid.distances(of as u32, at, among, &mut distances);
        let near = among.iter().zip(distances).filter(|&(_, distance)| distance <= RANGE);
        let mut all: Vec<_> = near.map(|(&other, _)| other).collect();
        all.sort_unstable();
        all
    }

    proptest! {
        /// Movers leave the area of the first positions, pause, jump, and change their movement.
        #[test]
        fn finds_the_stations_that_brute_force_finds(
            first in prop::collection::vec((0.0..800.0_f64, 0.0..500.0_f64), 2..30),
            paths in prop::collection::vec(
                (
                    0_usize..30,
                    0.0..20.0_f64,
                    prop::collection::vec(
                        (0.0..20.0_f64, -300.0..1100.0_f64, -300.0..800.0_f64),
                        1..6,
                    ),
                ),
                0..30,
            ),
            looks in prop::collection::vec(0.0..5.0_f64, 1..20),
        ) {
            let positions: Vec<_> = first.iter().map(|&(x, y)| Position { x, y }).collect();
            let mut grid = Grid::new(&positions, RANGE);
            let mut mobility: Vec<_> =
                positions.iter().map(|&p| Mobility::Stationary(Stationary(p))).collect();
            let mut paths: Vec<_> = paths
                .into_iter()
                .map(|(station, told, legs)| {
                    let mut at = told;
                    let way = legs.into_iter().map(|(after, x, y)| {
                        at += after;
                        (seconds(at), Position { x, y })
                    });
                    let path = Path::new(way.collect()).expect("a path");
                    (seconds(told), station % first.len(), Mobility::Path(path))
                })
                .collect();
            paths.sort_by_key(|&(told, ..)| Reverse(told));
            let mut at = 0.0;
            for after in looks {
                at += after;
                let now = seconds(at);
                while let Some((told, ..)) = paths.last() && *told <= now {
                    let (told, station, way) = paths.pop().expect("there is one");
                    mobility[station] = way.clone();
                    grid.set_mobility(told, station as u32, way);
                }
                grid.advance(now);
                for of in 0..first.len() {
                    let expected = among_all(&mobility, of, now);
                    let around: Vec<_> = grid.around(of as u32).collect();
                    let nearby = grid.nearby(of as u32, now, &mut Vec::new()).map(<[u32]>::to_vec);
                    prop_assert_eq!(&within_range(&grid, of, now, &around), &expected);
                    if let Some(nearby) = &nearby {
                        prop_assert_eq!(&within_range(&grid, of, now, nearby), &expected);
                    }
                    let still = |m: &Mobility| m.next_change(now).is_none();
                    let near_movers = !still(&mobility[of])
                        || expected.iter().any(|&other| !still(&mobility[other as usize]));
                    prop_assert!(!near_movers || nearby.is_some());
                }
            }
        }
    }

    #[test]
    fn sparse_stations_do_not_need_many_cells() {
        let far = |x: f64| Position { x, y: x };
        let grid = Grid::new(&[far(0.0), far(1e9), far(2e9)], RANGE);
        assert!(grid.cells.len() < 20, "{} cells", grid.cells.len());
    }
}
