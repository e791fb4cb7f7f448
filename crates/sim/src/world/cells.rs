//! Cells: when their schedulers work, and for which links.

use super::components::{Component, Components};
use super::{LinkState, Observers, World};
use crate::engine::Wakeups;
use crate::scenario::{self, CellId, Scenario};
use airtcp_core::{IdVec, Instant};
use airtcp_net::Cell;
use airtcp_net::cell::{Grant, Links, Tti};
use airtcp_routing::LinkId;

/// The cells of a world.
pub(super) struct Cells {
    all: IdVec<CellId, CellState>,
    /// The cell of each link; empty if there are no cells.
    of_links: IdVec<LinkId, Option<CellId>>,
}

/// A cell and its links, in the order of the scenario.
struct CellState {
    cell: Cell,
    links: Vec<LinkId>,
}

impl Cells {
    /// Those of a scenario.
    pub(super) fn of(scenario: &Scenario) -> Self {
        let Scenario { cells, links, .. } = scenario;
        let some = !cells.is_empty();
        let of_links = links.iter().filter(|_| some).map(scenario::Link::cell);
        let of_links: IdVec<LinkId, Option<CellId>> = of_links.collect();
        let state = |(id, cell): (CellId, &scenario::Cell)| {
            let links = of_links.enumerated().filter(|(_, cell)| **cell == Some(id));
            let links: Vec<LinkId> = links.map(|(link, _)| link).collect();
            CellState { cell: Cell::new(&cell.config, links.len()), links }
        };
        Self { all: cells.enumerated().map(state).collect(), of_links }
    }

    /// The cell that says when a link sends.
    #[inline]
    pub(super) fn of_link(&self, link: LinkId) -> Option<CellId> {
        self.of_links.get(link).copied().flatten()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = CellId> + use<> {
        self.all.ids()
    }
}

/// The links of a cell that divides an interval.
struct Sharing<'a> {
    of: &'a [LinkId],
    links: &'a mut IdVec<LinkId, LinkState>,
    components: &'a Components,
    wakeups: &'a mut Wakeups,
}

impl Links for Sharing<'_> {
    fn competes(&mut self, link: usize, tti: Tti) -> Option<u64> {
        self.links[self.of[link]].link.competes(tti)
    }

    fn send(&mut self, link: usize, grant: &mut Grant<'_>) -> u64 {
        let id = self.of[link];
        let link = &mut self.links[id].link;
        let sent = link.send_in(grant);
        self.wakeups.arm(self.components.id(Component::Link(id)), link.next_deadline());
        sent
    }
}

impl World {
    /// Divides the interval that begins now, if something waited for it.
    #[inline(never)]
    pub(super) fn wake_cell(
        &mut self,
        id: CellId,
        observers: &mut Observers<'_>,
    ) -> Option<Instant> {
        let Self { cells, links, components, wakeups, now, .. } = self;
        let CellState { cell, links: of } = &mut cells.all[id];
        cell.schedule(*now, &mut Sharing { of, links, components, wakeups });
        let deadline = cell.next_deadline();
        if observers.service_starts().is_some() {
            for place in 0..of.len() {
                self.show_service_starts(self.cells.all[id].links[place], observers);
            }
        }
        deadline
    }

    /// A packet is about to be offered to a link of this cell, too late for an interval that begins
    /// now.
    #[inline(never)]
    pub(super) fn expect(&mut self, id: CellId, observers: &mut Observers<'_>) {
        self.wake_cell(id, observers);
        let cell = &mut self.cells.all[id].cell;
        cell.expect(self.now);
        self.wakeups.arm(self.components.id(Component::Cell(id)), cell.next_deadline());
    }
}
