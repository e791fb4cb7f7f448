//! `[[cell]]`: cells of a base station, whose scheduler divides their time between links.

use super::link::Link;
use super::node::{NodeId, Nodes};
use airtcp_config::Section;
use airtcp_core::{DataRate, IdVec};
use airtcp_net::CellConfig;
use airtcp_net::config::{LinkConfig, LinkRate};
use airtcp_settings::schema::Fallback::Required;
use airtcp_settings::schema::{Key, Kind, Table, field};
use airtcp_settings::{Name, Settings};
use std::collections::BTreeMap;

airtcp_core::ids! {
    /// A cell, by its index in [`Scenario::cells`](super::Scenario::cells).
    pub struct CellId;
}

/// A cell, which links name.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Unique name.
    pub name: String,
    /// Scheduler and interval.
    pub config: CellConfig,
}

pub(super) static CELL: Table = Table::new(
    "cell",
    "A cell of a base station, in one direction or both: a scheduler divides its time between the links that \
     name it (`forward.cell`, `backward.cell`). Each has its own queue, and the rate that it would have alone. \
     What is sent in an interval has left at its end.",
    &[
        Key::Fields(&[field("name", Kind::Name, Required, "Unique name.")]),
        Key::All(CellConfig::KEYS),
    ],
);

/// The cells of a scenario, while it is read.
pub(super) struct Cells<'s, 'a> {
    /// Of each cell.
    sections: Vec<&'s Section<'a>>,
    cells: IdVec<CellId, Cell>,
    /// `None`: the cell has mistakes.
    by_name: BTreeMap<String, Option<CellId>>,
    /// There may be others, with mistakes in their names.
    is_incomplete: bool,
}

impl<'s, 'a> Cells<'s, 'a> {
    /// Reads the cells. `is_incomplete`: the file may have others, which cannot be read.
    pub(super) fn read(sections: &'s [Section<'a>], is_incomplete: bool) -> Self {
        let (cells, by_name) = (IdVec::new(), BTreeMap::new());
        let mut read = Self { sections: Vec::new(), cells, by_name, is_incomplete };
        for section in sections {
            let name = section.get::<Name>("name");
            let config = CellConfig::read(section, None);
            let Some(Name { text: name, .. }) = name else {
                read.is_incomplete = true;
                continue;
            };
            if read.by_name.contains_key(&name) {
                section.push(section.problem("name", format!("a second cell {name:?}")));
                continue;
            }
            let id = config.map(|config| {
                read.sections.push(section);
                read.cells.push(Cell { name: name.clone(), config })
            });
            read.by_name.insert(name, id);
        }
        read
    }

    /// The cell that a direction of a link names, if it names one; `None`: there is no such cell, or
    /// the link cannot be in one.
    pub(super) fn of(
        &self,
        direction: Option<&Section<'_>>,
        link: &LinkConfig,
    ) -> Option<Option<CellId>> {
        let Some(table) = direction else { return Some(None) };
        let Some(name) = table.get::<Option<Name>>("cell")? else { return Some(None) };
        let Some(&id) = self.by_name.get(&name.text) else {
            let message = format!("no cell is called {:?}", name.text);
            let known = self.by_name.keys().map(String::as_str);
            let problem = table.problem_at(name.spot, "cell", message).nearest(&name.text, known);
            let problem = match self.by_name.is_empty() {
                true => problem.expected(format!("a [[cell]] called {:?}", name.text)),
                false => problem,
            };
            table.push(if self.is_incomplete { problem.may_follow() } else { problem });
            return None;
        };
        if let Some((message, expected)) = contradiction(&self.cells[id?].config, link) {
            table.push(table.problem("cell", message).expected(expected));
            return None;
        }
        Some(id)
    }

    /// Refuses cells in which there is nothing to schedule, and those without a base station.
    pub(super) fn check(&self, links: &[Link], nodes: &Nodes) {
        for (id, section) in self.cells.ids().zip(&self.sections) {
            let mut members = links.iter().filter(|link| link.cell() == Some(id));
            let (first, second) = match (members.next(), members.next()) {
                (Some(first), Some(second)) => (first, second),
                // It has all turns, but its losses are repaired.
                (Some(_), None) if self.cells[id].config.rlc.is_some() => continue,
                (alone, _) => {
                    let none = || "has no effect: no link names it".to_owned();
                    let only =
                        |link: &Link| format!("has no effect with the link {} alone", link.name);
                    let problem = section.problem("name", alone.map_or_else(none, only));
                    section.push(problem.expected(
                        "`forward.cell` or `backward.cell` of two links, or of one and `rlc`",
                    ));
                    continue;
                }
            };
            let ends = |link: &Link| [link.from, link.to];
            let at = |node: NodeId| move |link: &Link| ends(link).contains(&node);
            let all =
                |node: &NodeId| at(*node)(second) && members.clone().all(|link| at(*node)(link));
            if !ends(first).iter().any(all) {
                let named = ends(first).map(|node| &*nodes[node].name);
                let message = format!(
                    "its links have no node in common: not all of them end at {} or {}",
                    named[0], named[1]
                );
                let problem = section.problem("name", message);
                section.push(problem.expected("links of one base station"));
            }
        }
    }

    /// The cells that are read.
    pub(super) fn into_cells(self) -> IdVec<CellId, Cell> {
        self.cells
    }
}

/// What of a link contradicts its being in a cell, and what was expected.
fn contradiction(cell: &CellConfig, link: &LinkConfig) -> Option<(String, &'static str)> {
    if link.rlc.is_some() {
        let message = "contradicts the link's `rlc`, whose blocks have times of their own";
        return Some((message.to_owned(), "rlc of the cell"));
    }
    if link.handover.is_some() {
        let message = "contradicts `handover`, which leaves the cell".to_owned();
        return Some((message, "either a cell or handovers"));
    }
    let least = match &link.rate {
        LinkRate::Constant(rate) => *rate,
        LinkRate::Table(rates) => rates.least(),
        LinkRate::Fading(fading) => fading.mean(),
        LinkRate::Mahimahi(_) => {
            let message = "contradicts the link's Mahimahi trace, which says when packets leave";
            return Some((message.to_owned(), "a constant rate, steps, a table or fading"));
        }
    };
    (least.bits_in(cell.tti) == 0).then(|| less_than_a_bit(cell, least))
}

fn less_than_a_bit(cell: &CellConfig, rate: DataRate) -> (String, &'static str) {
    let message = format!("at {rate}, an interval of {} has less than a bit", cell.tti);
    (message, "a longer tti or a higher rate")
}
