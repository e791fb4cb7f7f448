//! Spatial index of stations: the plane is divided into square cells as wide as the query range, so
//! that everything within range of a station lies in the 3 x 3 cells around it.
//!
//! A moving station is always entered in the cell where it is. A heap holds the instants at which
//! it crosses into another cell or its leg ends; [`Grid::advance`] processes them before a query. A
//! station that stands still costs nothing.

use super::{Leg, Mobility, Stationary};
use airtcp_core::{Duration, Instant, Position};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No station.
const NONE: u32 = u32::MAX;

/// The positions of all stations.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    stations: Vec<Entry>,
    /// How each station moves.
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
    /// How many stations move.
    movers: u32,
    /// When the entry of each moving station must next be updated.
    changes: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Changes whenever a station comes to rest for good, or a resting one begins to move.
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The leg the station is on.
    leg: Leg,
    /// When this entry must next be updated; [`Instant::MAX`] for never.
    due: Instant,
    cell: u32,
    /// The next station in the same cell.
    next: u32,
}

impl Entry {
    /// The station moves, or will move.
    fn is_mover(&self) -> bool {
        self.leg.until < Instant::MAX
    }
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The first station in the cell.
    first: u32,
    /// How many of its stations move.
    movers: u32,
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
        let still = |&position: &Position| Entry {
            leg: Leg::stay(position, Instant::ZERO, Instant::MAX),
            due: Instant::MAX,
            cell: 0,
            next: NONE,
        };
        let mut grid = Self {
            stations: positions.iter().map(still).collect(),
            mobility: positions.iter().map(|&p| Mobility::Stationary(Stationary(p))).collect(),
            range,
            width,
            corner: Position { x, y },
            columns,
            rows,
            cells: vec![Cell { first: NONE, movers: 0 }; columns * rows],
            movers: 0,
            changes: BinaryHeap::new(),
            generation: 0,
        };
        // In reverse, so that each cell lists its stations in ascending order.
        for station in (0..positions.len() as u32).rev() {
            grid.enter(station, Instant::ZERO);
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

    /// How a station moves.
    pub(crate) fn mobility(&self, station: u32) -> &Mobility {
        &self.mobility[station as usize]
    }

    /// Where a station is at `at`. [`Grid::advance`] must have been called up to that time.
    fn position(&self, station: u32, at: Instant) -> Position {
        self.stations[station as usize].leg.position(at)
    }

    /// Changes whenever the neighbourhood of stations that stand still does; see
    /// [`Grid::moves_around`].
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether this station moves, or any that may be in its range.
    #[inline]
    pub(crate) fn moves_around(&self, station: u32) -> bool {
        self.movers > 0 && self.around(station).any(|cell| self.cells[cell].movers > 0)
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

    /// Sets `found` to the stations within range of `station` at `at`, each with its distance in
    /// metres. [`Grid::advance`] must have been called up to that time.
    pub(crate) fn within_range(&self, station: u32, at: Instant, found: &mut Vec<(u32, f64)>) {
        found.clear();
        let here = self.position(station, at);
        for cell in self.around(station) {
            let mut other = self.cells[cell].first;
            while other != NONE {
                let entry = &self.stations[other as usize];
                let distance = here.distance(entry.leg.position(at));
                // Entered, and taken out again without a branch, which could not be predicted.
                found.push((other, distance));
                let outside = other == station || distance > self.range;
                found.truncate(found.len() - usize::from(outside));
                other = entry.next;
            }
        }
    }

    /// The 3 x 3 cells around a station's cell.
    fn around(&self, station: u32) -> impl Iterator<Item = usize> + use<> {
        let (column, row) = self.place(self.stations[station as usize].cell);
        let columns = self.columns;
        let near = |at: usize, count: usize| at.saturating_sub(1)..(at + 2).min(count);
        let in_row = near(column, columns);
        near(row, self.rows).flat_map(move |row| in_row.clone().map(move |c| row * columns + c))
    }

    /// Column and row of a cell.
    fn place(&self, cell: u32) -> (usize, usize) {
        (cell as usize % self.columns, cell as usize / self.columns)
    }

    /// Sets a station's current leg and cell.
    fn look_after(&mut self, station: u32, now: Instant) {
        self.leave(station);
        let entry = &mut self.stations[station as usize];
        let moved = entry.is_mover();
        entry.leg = self.mobility[station as usize].leg(now);
        self.generation += u32::from(moved && !entry.is_mover());
        self.enter(station, now);
        let due = self.leaves_cell(station, now);
        self.stations[station as usize].due = due;
        if due < Instant::MAX {
            self.changes.push(Reverse((due, station)));
        }
    }

    fn enter(&mut self, station: u32, now: Instant) {
        let entry = &mut self.stations[station as usize];
        let Position { x, y } = entry.leg.position(now);
        let index = |offset: f64, count: usize| ((offset / self.width) as usize).min(count - 1);
        let column = index(x - self.corner.x, self.columns);
        let row = index(y - self.corner.y, self.rows);
        entry.cell = (row * self.columns + column) as u32;
        let cell = &mut self.cells[entry.cell as usize];
        entry.next = cell.first;
        cell.first = station;
        cell.movers += u32::from(entry.is_mover());
        self.movers += u32::from(entry.is_mover());
    }

    fn leave(&mut self, station: u32) {
        let Entry { cell, next, .. } = self.stations[station as usize];
        let moves = u32::from(self.stations[station as usize].is_mover());
        let cell = &mut self.cells[cell as usize];
        cell.movers -= moves;
        self.movers -= moves;
        if cell.first == station {
            cell.first = next;
            return;
        }
        let mut before = cell.first;
        while self.stations[before as usize].next != station {
            before = self.stations[before as usize].next;
        }
        self.stations[before as usize].next = next;
    }

    /// When a station crosses into another cell, or its leg ends.
    fn leaves_cell(&self, station: u32, now: Instant) -> Instant {
        let Entry { leg, cell, .. } = self.stations[station as usize];
        if !leg.moves() {
            return leg.until;
        }
        let here = leg.position(now);
        let left = leg.until.since(now.max(leg.since)).as_nanos() as f64;
        let (column, row) = self.place(cell);
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

    fn found(grid: &Grid, of: usize, at: Instant) -> Vec<u32> {
        let mut found = Vec::new();
        grid.within_range(of as u32, at, &mut found);
        let mut all: Vec<_> = found.into_iter().map(|(other, _)| other).collect();
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
                    prop_assert_eq!(found(&grid, of, now), among_all(&mobility, of, now));
                    let still = |m: &Mobility| m.next_change(now).is_none();
                    let near_movers = !still(&mobility[of])
                        || found(&grid, of, now).iter().any(|&o| !still(&mobility[o as usize]));
                    prop_assert!(!near_movers || grid.moves_around(of as u32));
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
