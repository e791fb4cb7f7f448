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

/// Where a station is entered.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// When this entry must next be updated; [`Instant::MAX`] for never.
    due: Instant,
    cell: u32,
    /// Its place among the members of the cell.
    place: u32,
}

/// The stations in a cell lie together in memory, because they are looked through together.
#[derive(Clone, Debug, Default)]
struct Cell {
    members: Vec<Member>,
    /// How many of them move.
    movers: u32,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    station: u32,
    /// The leg it is on.
    leg: Leg,
}

impl Member {
    /// The station moves, or will move.
    fn is_mover(&self) -> bool {
        self.leg.until < Instant::MAX
    }
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
        let mut grid = Self {
            stations: vec![Entry { due: Instant::MAX, cell: 0, place: 0 }; positions.len()],
            mobility: positions.iter().map(|&p| Mobility::Stationary(Stationary(p))).collect(),
            range,
            width,
            corner: Position { x, y },
            columns,
            rows,
            cells: vec![Cell::default(); columns * rows],
            movers: 0,
            changes: BinaryHeap::new(),
            generation: 0,
        };
        for (station, &place) in (0..).zip(positions) {
            let leg = Leg::stay(place, Instant::ZERO, Instant::MAX);
            grid.enter(Member { station, leg }, Instant::ZERO);
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
        self.member(station).leg.position(at)
    }

    fn member(&self, station: u32) -> &Member {
        let Entry { cell, place, .. } = self.stations[station as usize];
        &self.cells[cell as usize].members[place as usize]
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
            for other in &self.cells[cell].members {
                let distance = here.distance(other.leg.position(at));
                // Entered, and taken out again without a branch, which could not be predicted.
                found.push((other.station, distance));
                let outside = other.station == station || distance > self.range;
                found.truncate(found.len() - usize::from(outside));
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
        let before = self.leave(station);
        let leg = self.mobility[station as usize].leg(now);
        let member = Member { station, leg };
        self.generation += u32::from(before.is_mover() && !member.is_mover());
        self.enter(member, now);
        let due = self.leaves_cell(station, now);
        self.stations[station as usize].due = due;
        if due < Instant::MAX {
            self.changes.push(Reverse((due, station)));
        }
    }

    fn enter(&mut self, member: Member, now: Instant) {
        let Position { x, y } = member.leg.position(now);
        let index = |offset: f64, count: usize| ((offset / self.width) as usize).min(count - 1);
        let column = index(x - self.corner.x, self.columns);
        let row = index(y - self.corner.y, self.rows);
        let number = row * self.columns + column;
        let cell = &mut self.cells[number];
        let entry = &mut self.stations[member.station as usize];
        (entry.cell, entry.place) = (number as u32, cell.members.len() as u32);
        cell.members.push(member);
        cell.movers += u32::from(member.is_mover());
        self.movers += u32::from(member.is_mover());
    }

    fn leave(&mut self, station: u32) -> Member {
        let Entry { cell, place, .. } = self.stations[station as usize];
        let cell = &mut self.cells[cell as usize];
        let member = cell.members.swap_remove(place as usize);
        if let Some(moved) = cell.members.get(place as usize) {
            self.stations[moved.station as usize].place = place;
        }
        cell.movers -= u32::from(member.is_mover());
        self.movers -= u32::from(member.is_mover());
        member
    }

    /// When a station crosses into another cell, or its leg ends.
    fn leaves_cell(&self, station: u32, now: Instant) -> Instant {
        let cell = self.stations[station as usize].cell;
        let leg = self.member(station).leg;
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
