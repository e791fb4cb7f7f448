//! `[[node]]`: hosts, routers and edge nodes, and when each is out of reach.

use super::middlebox::{self, MiddleboxSpec, Tcp};
use super::names::{COUNT, Names, fits};
use airtcp_config::Section;
use airtcp_core::{Duration, IdVec, Position, counted};
use airtcp_net::config::Schedule;
use airtcp_net::mobility::MobilityConfig;
use airtcp_settings::schema::Fallback::{Absent, Required};
use airtcp_settings::schema::{Key, Kind, Table, field};
use airtcp_settings::{InTable, Name, Settings, choice, settings};

/// A node, by its index in [`Scenario::nodes`](super::Scenario::nodes).
pub use airtcp_routing::NodeId;

/// The nodes of a scenario.
pub type Nodes = IdVec<NodeId, Node>;

/// A host, a router, or an edge node with a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name; also names the node's random streams.
    pub name: String,
    /// Mechanism running in this node on the segments it forwards.
    pub middlebox: Option<Box<MiddleboxSpec>>,
    /// Outages of the node.
    pub outage: Option<NodeOutage>,
    /// Movement of the node's radios.
    pub mobility: MobilityConfig,
}

impl Node {
    /// A host or router that stays in reach and where it is.
    pub fn new(name: impl Into<String>) -> Self {
        let mobility = MobilityConfig::Stationary;
        Self { name: name.into(), middlebox: None, outage: None, mobility }
    }
}

settings! {
    #[partial]
    /// Outages of a node: either `listed`, or `period` with `end`.
    #[derive(Clone, Debug, PartialEq)]
    #[table("node.outage", whole)]
    pub struct NodeOutage {
        /// Start and end of each outage.
        #[keys_of(Schedule)]
        pub schedule: Schedule,
        /// The layer at which packets are lost.
        #[source = "M-TCP §3.3"]
        pub layer: OutageLayer = OutageLayer::AboveMac,
        /// Time before an outage at which the node's own radio announces it to the endpoints on the
        /// node; 0: not at all. See `tcp.on-link`.
        #[source = "Freeze-TCP (Goff et al. 2000)"]
        pub warning: Duration = Duration::from_millis(50),
    }
}

impl NodeOutage {
    /// Above the MAC, unannounced.
    pub fn above_mac(schedule: Schedule) -> Self {
        Self { schedule, layer: OutageLayer::AboveMac, warning: Duration::ZERO }
    }
}

choice! {
    /// The layer at which an outage of a node loses packets.
    #[default(AboveMac)]
    pub enum OutageLayer {
        /// the node's IP layer drops every packet in both directions except TCP SYN and FIN; its
        /// radio goes on acknowledging frames
        AboveMac = "above-mac",
        /// the node's radios neither send nor hear, so other stations' MACs retry and give up, and
        /// their queues build
        Phy = "phy",
    }
}

pub(super) static NODE: Table = Table::new(
    "node",
    "A host, a router, or an edge node with a mechanism. Packets take a path with the \
            fewest hops.",
    &[Key::Fields(&[
        field("name", Kind::Name, Required, "Unique name."),
        field(
            "count",
            COUNT,
            Absent("one node"),
            "Makes a group: `name = \"s\"`, `count = 3` are the nodes s0, s1 and s2. A \
             link or flow that names the group is made once for each member.",
        ),
        field(
            "middlebox",
            Kind::Table(&middlebox::MIDDLEBOX),
            Absent("plain forwarding"),
            "Mechanism this node runs on the segments it forwards.",
        ),
        field("outage", Kind::Table(NodeOutage::TABLE), Absent("none"), "Outages of the node."),
        field(
            "position",
            Kind::Point,
            Absent("if no station of a cell has a position, they are on a line, 1 m apart"),
            "Position of the node's radios, `[x, y]`.",
        ),
        field(
            "spacing",
            Kind::Point,
            Absent("all nodes of a group are at one position"),
            "Offset from each node of a group to the next.",
        ),
        field(
            "mobility",
            Kind::Table(MobilityConfig::TABLE),
            Absent("the node stays where it is"),
            "Movement of the node's radios.",
        ),
    ])],
);

/// The position of each node at first, if the file sets one; `Err`: it was refused.
pub(super) type Positions = IdVec<NodeId, Result<Option<Position>, ()>>;

/// Reads the nodes. `is_incomplete`: the file may have others, which cannot be read.
pub(super) fn nodes<'b>(
    sections: &[Section<'b>],
    is_incomplete: bool,
    tcp: Tcp<'_, 'b>,
) -> (Nodes, Names, Positions) {
    let mut nodes = Nodes::new();
    let mut positions = Positions::new();
    let mut names = Names::new(is_incomplete);
    for section in sections {
        let name = section.get::<Name>("name");
        let count = section.get::<Option<u64>>("count");
        let outage = section.chosen("outage").and_then(|table| outage(&table));
        let position = section.get::<Option<(f64, f64)>>("position");
        let spacing = section.get::<Option<(f64, f64)>>("spacing");
        let mobility = match section.chosen("mobility") {
            None => Some(MobilityConfig::Stationary),
            Some(table) => MobilityConfig::read(&table, None)
                .filter(|mobility| suits(&table, mobility, count.flatten())),
        };
        check_position(section, mobility.as_ref());
        let unplaced = mobility.as_ref().is_none_or(MobilityConfig::places);
        let (Some(name), Some(count)) = (&name, count) else {
            names.refuse(name.as_ref());
            continue;
        };
        if !fits(section, "count", "nodes", nodes.len() as u64 + count.unwrap_or(1)) {
            names.refuse(Some(name));
            continue;
        }
        let first = nodes.len() as u32;
        let members = match count {
            None => vec![name.text.clone()],
            Some(n) => (0..n).map(|i| format!("{}{i}", name.text)).collect(),
        };
        for (id, member) in (first..).zip(members) {
            if !names.add(&member, id..id + 1) {
                section.push(section.problem("name", format!("a second node {member:?}")));
            }
            let (dx, dy) = spacing.flatten().unwrap_or_default();
            let i = f64::from(id - first);
            let shift = |x: f64, y: f64| Position { x: x + i * dx, y: y + i * dy };
            let mobility = match mobility.clone().unwrap_or(MobilityConfig::Stationary) {
                MobilityConfig::Path(way) => {
                    let shifted = way.into_iter().map(|(at, p)| (at, shift(p.x, p.y)));
                    MobilityConfig::Path(shifted.collect())
                }
                MobilityConfig::Trace(trace) => {
                    let further = trace.further(id - first);
                    MobilityConfig::Trace(further.expect("a group fits its trace"))
                }
                other => other,
            };
            // Where the model chooses the place, any will do.
            let unplaced = unplaced.then_some((0.0, 0.0));
            let place = position.map(|at| at.or(unplaced).map(|(x, y)| shift(x, y)));
            positions.push(place.ok_or(()));
            nodes.push(Node { outage: outage.clone(), mobility, ..Node::new(member) });
        }
        if count.is_some() && !names.add(&name.text, first..nodes.len() as u32) {
            section.push(section.problem("name", format!("a second node {:?}", name.text)));
        }
    }
    // Mobiles may be named before they are defined.
    place_middleboxes(sections, &names, tcp, &mut nodes);
    (nodes, names, positions)
}

/// True if a trace of movement has a node for each of the group's, or for the single node;
/// otherwise reports the table.
fn suits(table: &Section<'_>, mobility: &MobilityConfig, count: Option<u64>) -> bool {
    let MobilityConfig::Trace(trace) = mobility else { return true };
    let problem = match count {
        None if trace.is_certain() => return true,
        None => table.problem("node", "missing: the trace has several nodes"),
        Some(count) => match (0..count as u32).find(|&i| trace.further(i).is_none()) {
            None => return true,
            Some(nodes) => {
                let nodes = counted(nodes, "node");
                table.problem("file", format!("the trace has {nodes} for a group of {count}"))
            }
        },
    };
    table.push(problem.expected(trace.choice()));
    false
}

/// Reports keys about positions that have no effect.
fn check_position(section: &Section<'_>, mobility: Option<&MobilityConfig>) {
    if section.has("position") && mobility.is_some_and(MobilityConfig::places) {
        let expected = match mobility {
            Some(MobilityConfig::RandomWaypoint(_)) => "start = \"position\", or no position",
            _ => "no position",
        };
        let problem = section.problem("position", "has no effect: `mobility` says where");
        section.push(problem.expected(expected));
    }
    if section.has("spacing") && !(section.has("count") && section.has("position")) {
        let problem = section.problem("spacing", "has no effect without count and position");
        section.push(problem.expected("a group with a position"));
    }
}

/// Reads the middleboxes and puts them on their nodes.
fn place_middleboxes<'b>(
    sections: &[Section<'b>],
    names: &Names,
    tcp: Tcp<'_, 'b>,
    nodes: &mut Nodes,
) {
    for section in sections {
        let Some(spec) = section.chosen("middlebox") else { continue };
        let Some(spec) = middlebox::read(&spec, names, tcp) else { continue };
        let name = section.get::<Name>("name").and_then(|n| names.get(&n.text));
        for id in name.into_iter().flatten().map(NodeId) {
            if spec.mobiles.contains(&id) {
                section.push(section.problem("middlebox", "a node cannot be its own mobile"));
            }
            nodes[id].middlebox = Some(Box::new(spec.clone()));
        }
    }
}

/// `None` if there is no outage or it is wrong.
fn outage(section: &Section<'_>) -> Option<NodeOutage> {
    let outage = NodeOutage::read(section, None)?;
    (outage.schedule != Schedule::Listed(Vec::new())).then_some(outage)
}
