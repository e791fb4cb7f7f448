//! Scenarios: the file, its diagnostics, and the model it resolves to.
//!
//! There is one file per table, each with its model, its declaration, and the checks that involve
//! several keys: `node`, `middlebox`, `link`, `cell`, `wlan`, `flow`, `application`, `quic`, `udp`. Settings of endpoints,
//! mechanisms, links and channels are declared in the crates whose structs they fill. `names`
//! resolves names of nodes. [`airtcp_config`] reads the file (and `--set` overrides) and collects
//! mistakes as [`Diagnostic`]s. `document` makes the documentation and the JSON Schema.

mod application;
mod cell;
mod distribution;
mod document;
pub mod files;
mod flow;
mod link;
mod middlebox;
mod names;
mod node;
mod parts;
mod quic;
#[cfg(test)]
mod tests;
mod traffic;
mod udp;
mod wlan;

pub use airtcp_config::{ConfigError, Diagnostic, Override};
pub use airtcp_settings::units::duration;
pub use application::{Adaptation, Application, Arrivals, Ladder, OnOffStream, Requests, Video};
pub use cell::{Cell, CellId};
pub use distribution::{Sizes, Times};
pub use document::{json_schema, markdown};
pub use flow::{End, FlowId, FlowSpec, Marks, RandomPairs};
pub use link::{Link, LinkSender};
pub use middlebox::{MechanismSpec, MiddleboxSpec, SignalSpec};
pub use node::{Node, NodeId, NodeOutage, Nodes, OutageLayer};
pub use quic::{QuicConfig, QuicCongestion, QuicId, QuicSpec, Transport};
pub use udp::{Call, Codec, DatagramArrivals, Datagrams, FRAME, OnOff, UdpId, UdpSpec};
pub use wlan::{Station, Wlan, WlanId};

use airtcp_config::{ReadFile, Section, read_with_files};
use airtcp_core::{Duration, IdVec, Instant};
use airtcp_net::config::QueueConfig;
use airtcp_routing::RoutingConfig;
use airtcp_settings::schema::Fallback::{Absent, Required};
use airtcp_settings::schema::{Key, Kind, POSITIVE_TIME, Table, field};
use airtcp_settings::{InTable, Name, Settings};
use airtcp_tcp::congestion::Controls;
use airtcp_tcp::preset;
use cell::Cells;
use flow::Flows;
use middlebox::{Surroundings, Tcp};
use parts::Parts;
use std::borrow::Cow;
use traffic::Network;

/// A complete scenario. Every name is resolved to an index, every default filled in, every value
/// checked; building a world from it cannot fail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Short name: the file's stem unless the file sets one.
    pub name: String,
    /// Simulated time of a run.
    pub duration: Duration,
    /// Nodes, groups expanded.
    pub nodes: Nodes,
    /// Unidirectional links; a duplex link is two, forward first.
    pub links: Vec<Link>,
    /// Cells that links share.
    pub cells: IdVec<CellId, Cell>,
    /// Wireless cells, each a channel of its own.
    pub wlans: Vec<Wlan>,
    /// The way in which nodes find routes.
    pub routing: RoutingConfig,
    /// TCP flows, counts expanded.
    pub flows: Vec<FlowSpec>,
    /// QUIC flows, counts expanded.
    pub quic: Vec<QuicSpec>,
    /// Those of the TCP flows whose ends each run draws.
    pub random_pairs: Vec<RandomPairs>,
    /// UDP cross traffic and calls, groups expanded.
    pub udp: Vec<UdpSpec>,
}

pub(super) static SCENARIO: Table = Table::new(
    "scenario",
    "The top level of the file.",
    &[Key::Fields(&[
        field(
            "name",
            Kind::Name,
            Absent("the file's name without `.toml`"),
            "Short name, shown in results.",
        ),
        field("duration", POSITIVE_TIME, Required, "Simulated time of a run."),
        field("node", Kind::Tables(&node::NODE), Required, "Hosts, routers and edge nodes."),
        field(
            "link",
            Kind::Tables(&link::LINK),
            Absent("none; then there must be a `wlan`"),
            "Duplex links between nodes.",
        )
        .named_by(&["between"]),
        field(
            "cell",
            Kind::Tables(&cell::CELL),
            Absent("none: each link has its rate for itself"),
            "Cells of base stations, whose time links share.",
        ),
        field("wlan", Kind::Tables(&wlan::WLAN), Absent("none"), "Wireless cells (802.11)."),
        field(
            "routing",
            Kind::Table(RoutingConfig::TABLE),
            Absent("static routes with the fewest hops"),
            "Routing of packets.",
        ),
        field(
            "tcp",
            Kind::Table(&preset::TABLE),
            Absent("the preset `linux`"),
            "Both ends of every TCP flow.",
        ),
        field(
            "flow",
            Kind::Tables(&flow::FLOW),
            Absent("none; then there must be a `udp` or a `call`"),
            "TCP or QUIC connections.",
        )
        .named_by(&["from", "to"]),
        field("udp", Kind::Tables(&udp::UDP), Absent("none"), "UDP cross traffic."),
        field("call", Kind::Tables(&udp::CALL), Absent("none"), "Voice calls."),
    ])],
);

impl Scenario {
    /// Reads a scenario from the text of a TOML file.
    ///
    /// `source_name` is what diagnostics call the text (the file's path); the scenario's name
    /// defaults to its stem. Each override is a dotted path (`link.BS-MH.loss.p`, elements of
    /// arrays by name or by index) and a value in TOML syntax or a bare string. Overrides are
    /// applied to the text's tree before anything is resolved; later ones win. Files that the
    /// scenario names are read, relative to the folder in `source_name`.
    ///
    /// # Errors
    /// All errors in the text and the overrides, except those that other errors hide.
    pub fn parse(
        source_name: &str,
        text: &str,
        overrides: &[(String, String)],
    ) -> Result<Self, ConfigError> {
        Self::parse_with(source_name, text, overrides, Some(&Controls::default()))
    }

    /// The same for a simulation with `controls` ([`World::with_controls`](crate::World)), which
    /// must have each congestion control that the scenario names. `None`: they are not known yet.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn parse_with(
        source_name: &str,
        text: &str,
        overrides: &[(String, String)],
        controls: Option<&Controls>,
    ) -> Result<Self, ConfigError> {
        let overrides: Vec<Override> = overrides.iter().map(Override::set).collect();
        Self::parse_with_files(source_name, text, &overrides, controls, &files::beside(source_name))
    }

    /// The same with overrides that name their options, and `files` reads the files that the
    /// scenario names.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn parse_with_files(
        source_name: &str,
        text: &str,
        overrides: &[Override],
        controls: Option<&Controls>,
        files: &ReadFile<'_>,
    ) -> Result<Self, ConfigError> {
        read_with_files(&SCENARIO, source_name, text, overrides, files, |top| {
            scenario(top, source_name, controls)
        })
    }

    /// The scenario with the ends that a run with this seed draws for its flows.
    pub(crate) fn drawn(&self, seed: u64) -> Cow<'_, Self> {
        let mut drawn = Cow::Borrowed(self);
        for pairs in &self.random_pairs {
            pairs.assign(seed, &mut drawn.to_mut().flows);
        }
        drawn
    }

    /// True if a queue asks for the flows of packets, or a source for its own in a queue.
    pub(crate) fn queues_look_at_flows(&self) -> bool {
        let stations =
            self.wlans.iter().filter_map(|wlan| wlan.config.mac.queue_discipline.as_ref());
        let links = self.links.iter().map(|link| &link.config.queue);
        // One of a saturated source is to wait in front of a link, whoever else's do.
        let saturated = |udp: &UdpSpec| matches!(udp.datagrams, Datagrams::Saturated { .. });
        links.chain(stations).any(QueueConfig::looks_at_flows) || self.udp.iter().any(saturated)
    }
}

fn scenario(top: &Section<'_>, source_name: &str, controls: Option<&Controls>) -> Option<Scenario> {
    let name = top.get::<Option<Name>>("name");
    let duration = top.get::<Duration>("duration");
    let node_sections = top.elements("node");
    let has_strange_keys = top.has_strange_keys();
    let is_incomplete = has_strange_keys || top.is_refused("node");
    let tcp = top.merged("tcp");
    let tcp = (!top.is_refused("tcp")).then_some(&tcp);
    let own = Tcp { table: tcp, controls };
    let (nodes, names, positions) = node::nodes(&node_sections, is_incomplete, own);
    let cell_sections = top.elements("cell");
    let shared = Cells::read(&cell_sections, has_strange_keys || top.is_refused("cell"));
    let links = link::links(&top.elements("link"), &nodes, &names, &shared);
    let routing = match top.chosen("routing") {
        None => Some(RoutingConfig::default()),
        Some(table) => RoutingConfig::read(&table, None),
    };
    let static_routes = routing.as_ref().is_none_or(|r| matches!(r, RoutingConfig::ShortestPath));
    let cells = top.elements("wlan");
    let wlans = wlan::wlans(&cells, &nodes, &names, &positions, static_routes);
    // A cell with mistakes is not among them.
    let cells_are_known =
        wlans.len() == cells.len() && !top.is_refused("wlan") && !has_strange_keys;
    for section in node_sections.iter().filter(|_| cells_are_known) {
        let ids = section.get::<Name>("name").and_then(|name| names.get(&name.text));
        wlan::radios(section, &nodes, ids.unwrap_or_default(), &wlans);
    }
    if !top.has("link") && !top.has("wlan") {
        top.missing("link", "at least one [[link]] or [[wlan]] table");
    }
    // A link with mistakes is not among them.
    if top.problems_found() == 0 {
        shared.check(&links, &nodes);
    }
    let before_traffic = top.problems_found();
    if !["flow", "udp", "call"].iter().any(|traffic| top.has(traffic)) {
        top.missing("flow", "at least one [[flow]], [[udp]] or [[call]] table");
    }
    // What is missing because of a mistake may be what connects them.
    let parts = (top.problems_found() == 0).then(|| Parts::of(&nodes, &links, &wlans));
    let parts = parts.as_ref();
    let network =
        Network { nodes: &nodes, links: &links, names: &names, parts, duration, controls };
    let flow_sections = top.elements("flow");
    let Flows { tcp: flows, random_pairs, quic } = flow::flows(&flow_sections, tcp, &network);
    let udp = udp::sources(&top.elements("udp"), &top.elements("call"), &network);
    let surroundings = Surroundings {
        nodes: &nodes,
        links: &links,
        wlans: &wlans,
        cells_are_known,
        traffic_is_known: top.problems_found() == before_traffic,
        end: duration.map(|duration| Instant::ZERO + duration),
        flows: &flows,
        are_flows_drawn: !random_pairs.is_empty(),
        quic: &quic,
        udp: &udp,
    };
    surroundings.check(&node_sections, &names);
    if top.problems_found() == 0 && flows.is_empty() {
        flow::check_tcp(top, &flow_sections);
    }
    Some(Scenario {
        name: name?.map_or_else(|| stem(source_name), |n| n.text),
        duration: duration?,
        nodes,
        links,
        cells: shared.into_cells(),
        wlans,
        routing: routing?,
        flows,
        quic,
        random_pairs,
        udp,
    })
}

/// The file name without folder and extension, turned into a valid name.
fn stem(source_name: &str) -> String {
    let file = source_name.rsplit(['/', '\\']).next().unwrap_or(source_name);
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = stem.chars().take(64).map(fit).collect();
    if name.is_empty() { "scenario".to_owned() } else { name }
}
