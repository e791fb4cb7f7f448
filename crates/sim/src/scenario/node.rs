//! `[[node]]`: hosts, routers and edge nodes, and when each is out of reach.

use super::middlebox::{self, MiddleboxSpec};
use super::names::{COUNT, MAX_ELEMENTS, Names};
use airtcp_config::Section;
use airtcp_core::{Duration, Position};
use airtcp_net::config::Schedule;
use airtcp_net::mobility::MobilityConfig;
use airtcp_settings::schema::Fallback::{Absent, Required};
use airtcp_settings::schema::{Key, Kind, Table, field};
use airtcp_settings::{InTable, Name, Settings, choice, settings};

/// A node, by its index in [`Scenario::nodes`](super::Scenario::nodes).
pub use airtcp_routing::NodeId;

/// A host, a router, or an edge node with a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// Mechanism running in this node on the segments it forwards.
    pub middlebox: Option<MiddleboxSpec>,
    /// When the node is out of reach.
    pub outage: Option<NodeOutage>,
    /// How its radios move.
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
    /// When a node is out of reach: either `listed`, or `period` with `end`.
    #[derive(Clone, Debug, PartialEq)]
    #[table("node.outage", whole)]
    pub struct NodeOutage {
        /// When.
        #[keys_of(Schedule)]
        pub schedule: Schedule,
        /// Where it happens.
        #[source = "M-TCP §3.3"]
        pub layer: OutageLayer = OutageLayer::AboveMac,
        /// How long before an outage the node's own radio announces it to the endpoints on the
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
    /// Where an outage of a node happens.
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
        field(
            "outage",
            Kind::Table(NodeOutage::TABLE),
            Absent("none"),
            "When the node is out of reach.",
        ),
        field(
            "position",
            Kind::Point,
            Absent("if no station of a cell has a position, they are on a line, 1 m apart"),
            "Where the node's radios are, `[x, y]`.",
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
            "How the node's radios move.",
        ),
    ])],
);

/// The position of each node at first, if the file sets one; `Err`: it was refused.
pub(super) type Positions = Vec<Result<Option<Position>, ()>>;

/// Reads the nodes. `is_incomplete`: the file may have others, which cannot be read.
pub(super) fn nodes(
    sections: &[Section<'_>],
    is_incomplete: bool,
) -> (Vec<Node>, Names, Positions) {
    let mut nodes = Vec::new();
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
            Some(table) => MobilityConfig::read(&table, None),
        };
        if section.has("position") && mobility.as_ref().is_some_and(MobilityConfig::places) {
            let problem = section.problem("position", "has no effect: `mobility` says where");
            section.push(problem.expected("start = \"position\", or no position"));
        }
        let unplaced = mobility.as_ref().is_none_or(MobilityConfig::places);
        if section.has("spacing") && !(section.has("count") && section.has("position")) {
            let problem = section.problem("spacing", "has no effect without count and position");
            section.push(problem.expected("a group with a position"));
        }
        let (Some(name), Some(count)) = (&name, count) else {
            names.refuse(name.as_ref());
            continue;
        };
        if nodes.len() as u64 + count.unwrap_or(1) > MAX_ELEMENTS {
            let most = format!("at most {MAX_ELEMENTS} nodes");
            section.push(section.problem("count", "makes too many nodes").expected(most));
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
    for section in sections {
        let Some(spec) = section.chosen("middlebox") else { continue };
        let Some(spec) = middlebox::read(&spec, &names) else { continue };
        let name = section.get::<Name>("name").and_then(|n| names.get(&n.text));
        for id in name.into_iter().flatten() {
            if spec.mobiles.contains(&NodeId(id)) {
                section.push(section.problem("middlebox", "a node cannot be its own mobile"));
            }
            nodes[id as usize].middlebox = Some(spec.clone());
        }
    }
    (nodes, names, positions)
}

/// `None` if there is no outage or it is wrong.
fn outage(section: &Section<'_>) -> Option<NodeOutage> {
    let outage = NodeOutage::read(section, None)?;
    (outage.schedule != Schedule::Listed(Vec::new())).then_some(outage)
}
