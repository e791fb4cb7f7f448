//! `[[link]]`: two unidirectional links between nodes.

use super::cell::{CellId, Cells};
use super::names::{Names, TWO_NODES, pairs, resolve};
use super::node::{NodeId, Nodes};
use airtcp_config::Section;
use airtcp_core::Instant;
use airtcp_net::config::LinkConfig;
use airtcp_net::schedule::Schedules;
use airtcp_settings::schema::Fallback::{Absent, Required};
use airtcp_settings::schema::{Key, Kind, Table, field};
use airtcp_settings::{Name, Settings};
use std::collections::BTreeSet;

/// A unidirectional link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// `"BS>MH"`; also names its random streams ("link/BS>MH/loss").
    pub name: String,
    /// The sending node.
    pub from: NodeId,
    /// The receiving node.
    pub to: NodeId,
    /// Rate, delay, queue, loss and outages.
    pub config: LinkConfig,
    /// What is special about its sending end.
    pub sender: LinkSender,
}

/// What is special about the sending end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkSender {
    /// Nothing.
    #[default]
    Plain,
    /// It is the mobile whose base station changes.
    Mobile,
    /// It sends when the scheduler of this cell says so.
    InCell(CellId),
}

impl Link {
    /// It goes down and comes up again, by itself or in handovers.
    pub(super) fn has_outages(&self) -> bool {
        self.config.interruptions().is_some()
    }

    /// The cell whose scheduler says when it sends.
    pub fn cell(&self) -> Option<CellId> {
        match self.sender {
            LinkSender::InCell(cell) => Some(cell),
            LinkSender::Plain | LinkSender::Mobile => None,
        }
    }

    /// When nothing gets through: from the start of each outage, until its end or `end`.
    pub fn outages_before(&self, end: Instant) -> Vec<(Instant, Instant)> {
        self.config
            .interruptions()
            .into_iter()
            .collect::<Schedules>()
            .outages_in(&(Instant::ZERO..end))
    }

    /// The name of the path that it and its opposite are: `"BS-MH"`.
    pub fn path(&self) -> String {
        match self.name.split_once('>') {
            Some((from, to)) if self.from < self.to => format!("{from}-{to}"),
            Some((from, to)) => format!("{to}-{from}"),
            None => self.name.clone(),
        }
    }
}

pub(super) static LINK: Table = Table::new(
    "link",
    "A duplex link: a link in each direction, which differ only in what `forward` and `backward` override. \
     The one from A to B is called `A>B`.",
    &[
        Key::Fields(&[
            field(
                "between",
                TWO_NODES,
                Required,
                "The two nodes (or groups; two groups of equal size are linked pair by pair).",
            ),
            field(
                "name",
                Kind::Name,
                Absent("`A-B` for `between = [\"A\", \"B\"]`"),
                "Unique name, for `--set link.NAME…`.",
            ),
        ]),
        Key::All(LinkConfig::KEYS),
        Key::Fields(&[
            field(
                "mobile",
                Kind::Name,
                Absent("required with `handover`"),
                "The node of `between` whose base station, the other node, changes.",
            ),
            field(
                "forward",
                Kind::Table(&DIRECTION),
                Absent("as the link"),
                "Keys that differ from the first node of `between` to the second.",
            ),
            field(
                "backward",
                Kind::Table(&DIRECTION),
                Absent("as the link"),
                "Keys that differ from the second node to the first.",
            ),
        ]),
    ],
);

static DIRECTION: Table = Table::new(
    "link.forward, link.backward",
    "Replaces keys of the link in one direction.",
    &[
        Key::Fields(&[field(
            "cell",
            Kind::Name,
            Absent("in no cell"),
            "The [cell](#cell) whose scheduler says when this direction sends. Not together with `rlc` \
             (which the cell may have), `handover` or a Mahimahi trace.",
        )]),
        Key::Otherwise("as the link", LinkConfig::KEYS),
    ],
);

/// Reads the links.
pub(super) fn links(
    sections: &[Section<'_>],
    nodes: &Nodes,
    names: &Names,
    cells: &Cells<'_, '_>,
) -> Vec<Link> {
    let mut links = Vec::new();
    let mut linked = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for section in sections {
        let name = section.get::<Option<Name>>("name");
        let ends = section.get::<Vec<Name>>("between");
        let forward = LinkConfig::read(&section.overridden_by(section, "forward"), None);
        let backward = LinkConfig::read(&section.overridden_by(section, "backward"), None);
        let Some(ends) = ends else { continue };
        let label = match name {
            Some(Some(name)) => name.text,
            Some(None) => format!("{}-{}", ends[0].text, ends[1].text),
            None => continue,
        };
        if !taken.insert(label.clone()) {
            let key = if section.has("name") { "name" } else { "between" };
            section.push(section.problem(key, format!("a second link {label:?}")));
            continue;
        }
        let a = resolve(section, "between", &ends[0], names);
        let b = resolve(section, "between", &ends[1], names);
        let (Some(a), Some(b)) = (a, b) else { continue };
        let Some(pairs) = pairs(section, "between", a, b) else { continue };
        let (Some(forward), Some(backward)) = (forward, backward) else { continue };
        let cell_of = |key, config: &LinkConfig| cells.of(section.chosen(key).as_ref(), config);
        let forward_cell = cell_of("forward", &forward);
        let backward_cell = cell_of("backward", &backward);
        let (Some(forward_cell), Some(backward_cell)) = (forward_cell, backward_cell) else {
            continue;
        };
        let has_handovers = forward.handover.is_some() || backward.handover.is_some();
        let Some(mobile) = mobile(section, &ends, has_handovers) else { continue };
        for (a, b) in pairs {
            let name_of = |id: NodeId| &nodes[id].name;
            if !linked.insert((a.min(b), a.max(b))) {
                let message = format!("{} and {} are linked already", name_of(a), name_of(b));
                section.push(section.problem("between", message));
                break;
            }
            let directions = [(a, b, &forward, forward_cell), (b, a, &backward, backward_cell)];
            for (i, (from, to, config, cell)) in directions.into_iter().enumerate() {
                let name = format!("{}>{}", name_of(from), name_of(to));
                let sender = match cell {
                    Some(cell) => LinkSender::InCell(cell),
                    None if mobile == Some(i) => LinkSender::Mobile,
                    None => LinkSender::Plain,
                };
                links.push(Link { name, from, to, config: config.clone(), sender });
            }
        }
    }
    links
}

/// Index of the end that is the mobile, if the link has handovers; `None`: a mistake.
fn mobile(section: &Section<'_>, ends: &[Name], has_handovers: bool) -> Option<Option<usize>> {
    let refuse = |message: String, expected: &str| {
        section.push(section.problem("mobile", message).expected(expected));
        None
    };
    let either = || format!("{} or {}", ends[0].text, ends[1].text);
    match (section.get::<Option<Name>>("mobile")?, has_handovers) {
        (None, false) => Some(None),
        (None, true) => {
            section.missing("mobile", either());
            None
        }
        (Some(_), false) => {
            refuse("has no effect without handover".to_owned(), "`handover` beside it")
        }
        (Some(mobile), true) => match ends.iter().position(|end| end.text == mobile.text) {
            Some(end) => Some(Some(end)),
            None => refuse(format!("{:?} is not an end of the link", mobile.text), &either()),
        },
    }
}
