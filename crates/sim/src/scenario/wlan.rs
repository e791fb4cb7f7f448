//! `[[wlan]]`: wireless cells, each a preset with keys that override its values, and the positions
//! of stations.

use super::Scenario;
use super::names::{NODES, Names, resolve};
use super::node::{Node, NodeId, Nodes, OutageLayer, Positions};
use airtcp_config::Section;
use airtcp_core::{Instant, Stream};
use airtcp_net::mobility::Mobility;
use airtcp_net::wifi::{ChannelConfig, Position, StationConfig, preset};
use airtcp_settings::schema::Fallback::{Is, Required};
use airtcp_settings::schema::{Key, Kind, PRESET, Table, field};
use airtcp_settings::{Name, Reader};
use std::collections::BTreeSet;
use std::ops::Range;

/// An 802.11 channel and its stations. Two stations that can receive each other are neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct Wlan {
    /// Unique name; also names its random streams ("wlan/cell/AP/backoff").
    pub name: String,
    /// Medium, MAC and radios.
    pub config: ChannelConfig,
    /// True if stations ask for the addresses of their neighbours ([`airtcp_routing::arp`]).
    pub arp: bool,
    /// Its stations, in the order of their ids.
    pub stations: Vec<Station>,
}

airtcp_core::ids! {
    /// A cell, by its index in [`Scenario::wlans`].
    pub struct WlanId;
}

/// A node's radio on a [`Wlan`].
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// The node, which may move.
    pub node: NodeId,
    /// Initial position, unless the node's movement sets another.
    pub config: StationConfig,
}

impl Wlan {
    /// The stations of two nodes, if both take part.
    pub fn stations_of(&self, nodes: [NodeId; 2]) -> Option<[&Station; 2]> {
        let [a, b] = nodes.map(|node| self.stations.iter().find(|station| station.node == node));
        Some([a?, b?])
    }
}

impl Station {
    /// Its movement until `end` in the run with this seed.
    pub(super) fn movement(&self, nodes: &Nodes, end: Instant, seed: u64) -> Mobility {
        let Node { name, mobility, .. } = &nodes[self.node];
        let mut stream = Stream::new(seed, &format!("node/{name}/mobility"));
        mobility.movement(self.config.position, end, &mut stream)
    }
}

impl Scenario {
    /// The movement of a station in the run with this seed.
    pub fn movement(&self, station: &Station, seed: u64) -> Mobility {
        station.movement(&self.nodes, Instant::ZERO + self.duration, seed)
    }
}

pub(super) static WLAN: Table = Table::new(
    "wlan",
    "A wireless cell: an 802.11 channel that its stations share. Stations that can receive each other are \
     neighbours; a packet may take several such hops. Every choice in which simulators depart from the \
     standard is a key; a `preset` sets them all.",
    &[
        Key::Fields(&[
            field("name", Kind::Name, Required, "Unique name."),
            field("stations", NODES, Required, "The nodes (or groups) that take part."),
            field(
                "arp",
                Kind::Bool,
                Is("false"),
                "Stations ask for the link addresses of their neighbours before they send to them, as ns-2 \
                 does (RFC 826): one packet waits for each neighbour, the next takes its place and asks again, and \
                 after three requests without a reply the neighbour counts as gone.",
            ),
        ]),
        Key::All(preset::KEYS),
    ],
);

const DISCIPLINE: &str = "queue-discipline";
const CATEGORIES: &str = "access-categories";
const AMPDU: &str = "ampdu-limit";
const AMSDU: &str = "amsdu-limit";

/// Reads the cells and checks them against the nodes.
pub(super) fn wlans(
    sections: &[Section<'_>],
    nodes: &Nodes,
    names: &Names,
    positions: &Positions,
    static_routes: bool,
) -> Vec<Wlan> {
    let mut wlans = Vec::new();
    let mut taken = BTreeSet::new();
    for section in sections {
        let name = section.get::<Name>("name");
        let config = preset::read(section, |key, why| section.push(section.problem(key, why)));
        let stations = stations(section, names);
        let (Some(name), Some(config), Some(stations)) = (name, config, stations) else { continue };
        if !taken.insert(name.text.clone()) {
            section.push(section.problem("name", format!("a second cell {:?}", name.text)));
            continue;
        }
        let Some(stations) = placed(section, nodes, &stations, positions) else { continue };
        let Some(arp) = section.get::<bool>("arp") else { continue };
        if config.mac.queue_discipline.is_some() && !static_routes {
            let problem = section.problem(DISCIPLINE, "with a routing protocol");
            section.push(problem.expected(
                "shortest paths: routing protocols send their packets first and take others back",
            ));
            continue;
        }
        if config.phy.access_categories().is_some() && !static_routes {
            let problem = section.problem(CATEGORIES, "with a routing protocol");
            section.push(problem.expected(
                "shortest paths: routing protocols send their packets first and take others back",
            ));
            continue;
        }
        let shared = match &config.phy {
            phy if phy.makes_ampdus() => Some((AMPDU, "A-MPDUs")),
            phy if phy.makes_amsdus() => Some((AMSDU, "A-MSDUs")),
            _ => None,
        };
        if let Some((limit, what)) = shared.filter(|_| !static_routes) {
            let key = if section.written(limit) { limit } else { PRESET };
            let problem = section.problem(key, format!("{what} with a routing protocol"));
            section.push(problem.expected(format!(
                "shortest paths, or {limit} = \"0 B\": routing protocols take back one packet at a \
                 time"
            )));
            continue;
        }
        if section.written("queue") && section.written(DISCIPLINE) {
            let problem =
                section.problem("queue", "beside queue-discipline, which has its own limit");
            section.push(problem.expected("one of the two"));
            continue;
        }
        wlans.push(Wlan { name: name.text, config, arp, stations });
    }
    wlans
}

/// The nodes of a cell, groups expanded.
fn stations(section: &Section<'_>, names: &Names) -> Option<Vec<NodeId>> {
    let listed = section.get::<Vec<Name>>("stations")?;
    let (mut stations, mut taken) = (Vec::new(), BTreeSet::new());
    let groups: Vec<Option<Range<u32>>> =
        listed.iter().map(|name| resolve(section, "stations", name, names)).collect();
    for (name, group) in listed.iter().zip(groups) {
        for node in group?.map(NodeId) {
            if !taken.insert(node) {
                let message = format!("{:?} takes part twice", name.text);
                section.push(section.problem("stations", message).expected("each node once"));
                return None;
            }
            stations.push(node);
        }
    }
    if stations.len() < 2 {
        let problem = section.problem("stations", "a cell of one station");
        section.push(problem.expected("at least two stations"));
        return None;
    }
    Some(stations)
}

/// Gives every station its position; all of them must have one, or none. `None` also if a position
/// was refused.
fn placed(
    section: &Section<'_>,
    nodes: &Nodes,
    stations: &[NodeId],
    positions: &Positions,
) -> Option<Vec<Station>> {
    if stations.iter().any(|node| positions[*node].is_err()) {
        return None;
    }
    let at = |node: NodeId| positions[node].ok().flatten();
    let unplaced = stations.iter().find(|&&node| at(node).is_none());
    let any = stations.iter().any(|&node| at(node).is_some());
    if let (Some(unplaced), true) = (unplaced, any) {
        let name = &nodes[*unplaced].name;
        let message = format!("{name:?} has no position, but others have one");
        let expected = "a position for each of the nodes, or for none";
        section.push(section.problem("stations", message).expected(expected));
        return None;
    }
    let station = |(i, &node): (usize, &NodeId)| {
        let position = at(node).unwrap_or(Position { x: i as f64, y: 0.0 });
        Station { node, config: StationConfig { position } }
    };
    Some(stations.iter().enumerate().map(station).collect())
}

/// Refuses what concerns the radios of a node (or group) that has none.
pub(super) fn radios(section: &Section<'_>, nodes: &Nodes, mut ids: Range<u32>, wlans: &[Wlan]) {
    let phy =
        |id: u32| nodes[NodeId(id)].outage.as_ref().is_some_and(|o| o.layer == OutageLayer::Phy);
    let has_radio = |id| wlans.iter().flat_map(|wlan| &wlan.stations).any(|s| s.node == NodeId(id));
    if section.has("mobility") && ids.clone().any(|id| !has_radio(id)) {
        let problem = section.problem("mobility", "has no effect: the node is in no cell");
        section.push(problem.expected("a [[wlan]] with this node among its stations"));
    }
    if ids.any(|id| phy(id) && !has_radio(id))
        && let Some(outage) = section.chosen("outage")
    {
        let problem = outage.problem("layer", "the node is in no cell");
        outage.push(problem.expected("\"above-mac\", or a wlan with this node"));
    }
}
