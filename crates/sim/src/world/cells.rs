//! Cells: when their schedulers work, and for which links.

use super::components::{Component, Components};
use super::{LinkState, World};
use crate::engine::Wakeups;
use crate::scenario::{CellId, Scenario};
use airtcp_core::{Id, IdVec, Instant};
use airtcp_net::Cell;
use airtcp_net::cell::{Links, Tti};
use airtcp_routing::LinkId;

/// A cell and its links, in the order of the scenario.
pub(super) struct CellState {
    cell: Cell,
    links: Vec<LinkId>,
}

impl CellState {
    /// The cells of a scenario.
    pub(super) fn all(scenario: &Scenario) -> IdVec<CellId, Self> {
        let cell = |(id, cell): (CellId, &crate::scenario::Cell)| {
            let links = scenario.links.iter().enumerate();
            let links = links.filter(|(_, link)| link.cell == Some(id));
            let links: Vec<LinkId> = links.map(|(index, _)| LinkId::new(index)).collect();
            Self { cell: Cell::new(&cell.config, links.len()), links }
        };
        scenario.cells.enumerated().map(cell).collect()
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

    fn send(&mut self, link: usize, tti: Tti, bits: u64) -> u64 {
        let id = self.of[link];
        let link = &mut self.links[id].link;
        let sent = link.send_in(tti, bits);
        self.wakeups.arm(self.components.id(Component::Link(id)), link.next_deadline());
        sent
    }
}

impl World {
    /// Divides the interval that begins now, if something waited for it.
    #[inline(never)]
    pub(super) fn wake_cell(&mut self, id: CellId) -> Option<Instant> {
        let Self { cells, links, components, wakeups, now, .. } = self;
        let CellState { cell, links: of } = &mut cells[id];
        cell.schedule(*now, &mut Sharing { of, links, components, wakeups });
        cell.next_deadline()
    }

    /// A packet is about to be offered to a link of this cell, too late for an interval that begins
    /// now.
    #[inline(never)]
    pub(super) fn expect(&mut self, id: CellId) {
        self.wake_cell(id);
        let cell = &mut self.cells[id].cell;
        cell.expect(self.now);
        self.wakeups.arm(self.components.id(Component::Cell(id)), cell.next_deadline());
    }
}
