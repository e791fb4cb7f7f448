//! `middlebox` of a `[[node]]`: the mechanism of an edge node, and the signals it gets about its
//! mobiles' outages.

use super::application::Application;
use super::flow::{self, FlowSpec};
use super::link::Link;
use super::names::{NODES, Names, resolve};
use super::node::{NodeId, Nodes};
use super::quic::QuicSpec;
use super::udp::UdpSpec;
use super::wlan::{Station, Wlan};
use airtcp_config::Section;
use airtcp_core::{Bytes, Duration, Instant};
use airtcp_edge::{MechanismConfig, SignalUse};
use airtcp_net::wifi::level::{self, LevelThresholds};
use airtcp_net::wifi::{Power, RadioConfig};
use airtcp_settings::schema::Fallback::{Absent, Is, Required};
use airtcp_settings::schema::{Field, Key, Kind, PROBABILITY, TIME, Table, Word, field, words};
use airtcp_settings::{InTable, Name, Reader, Settings};
use airtcp_tcp::congestion::Controls;
use airtcp_tcp::{TcpConfig, preset};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A mechanism and where its mobile side is.
#[derive(Clone, Debug, PartialEq)]
pub struct MiddleboxSpec {
    /// The mechanism and its settings.
    pub mechanism: MechanismSpec,
    /// Payload bytes held for all connections together; zero for a mechanism that holds none.
    pub memory: Bytes,
    /// Nodes reached over the wireless side. A segment to one of them goes Fixed → Mobile, a
    /// segment from one of them Mobile → Fixed; other segments pass untouched. Ascending.
    pub mobiles: Vec<NodeId>,
    /// The signals about its mobiles' outages; `None`: no signals.
    pub signal: Option<SignalSpec>,
}

impl MiddleboxSpec {
    /// True if the node is one of its mobiles.
    fn serves(&self, node: NodeId) -> bool {
        self.mobiles.binary_search(&node).is_ok()
    }
}

/// The signals an edge node gets about each of its mobiles: `Fading`, `Down` and `Up`. They are about
/// the mobile's outages or, if it has none, those of the links on the static routes between the
/// two; with a `level`, about the times at which the mobile hears the node too faintly. A signal that
/// would come after the next change of the link is not sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalSpec {
    /// Time by which `Fading` precedes an outage; zero: no `Fading`.
    pub lead: Duration,
    /// Time from the start of an outage to `Down`.
    pub late: Duration,
    /// Time from the end of an outage to `Up`.
    pub delay: Duration,
    /// Probability that a signal is lost.
    pub missing: f64,
    /// Thresholds of the level at which the node's frames reach a mobile; `None`: the outages count.
    pub level: Option<LevelThresholds>,
}

/// A mechanism with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum MechanismSpec {
    /// One of `airtcp-edge`, which gateways have, too.
    Edge(MechanismConfig),
    /// Split TCP, whose halves are endpoints with these settings; their buffers are `buffer`.
    Split(Arc<TcpConfig>),
}

impl MechanismSpec {
    /// The words, each with its meaning.
    pub const WORDS: &'static [Word] = &with_split();

    /// The word that chooses this mechanism.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Edge(config) => config.word(),
            Self::Split(_) => SPLIT,
        }
    }

    /// Payload bytes that one connection may hold; `None`: it holds no copies.
    fn fifo(&self) -> Option<Bytes> {
        match self {
            Self::Edge(config) => config.capabilities().fifo,
            Self::Split(_) => None,
        }
    }

    /// It is about packets of all protocols, not TCP alone.
    fn is_for_all_protocols(&self) -> bool {
        match self {
            Self::Edge(config) => config.capabilities().all_protocols.is_some(),
            Self::Split(_) => false,
        }
    }

    fn hears_signals(&self) -> bool {
        match self {
            Self::Edge(config) => config.capabilities().signals != SignalUse::Ignored,
            Self::Split(_) => false,
        }
    }
}

/// `mechanism = "none"`.
const NONE: &str = "none";
/// `mechanism = "split"`.
const SPLIT: &str = "split";
/// All mechanisms but `none`.
const ANY: [&str; MechanismSpec::WORDS.len()] = words(MechanismSpec::WORDS);

/// The mechanisms of `airtcp-edge`, and split TCP.
const fn with_split() -> [Word; MechanismConfig::WORDS.len() + 1] {
    let meaning = "split TCP, as in I-TCP: ends the connection of each host and opens one of its \
                   own to the other; acknowledges what only it has (docs/mechanisms/split.md)";
    let mut all = [(SPLIT, meaning); MechanismConfig::WORDS.len() + 1];
    let mut i = 0;
    while i < MechanismConfig::WORDS.len() {
        all[i] = MechanismConfig::WORDS[i];
        i += 1;
    }
    all
}

pub(super) static MIDDLEBOX: Table = Table::new(
    "middlebox",
    "A mechanism of an edge node.",
    &[
        Key::Instead {
            fields: &[field(
                "mechanism",
                Kind::WordOr(NONE, &Kind::Choice(MechanismSpec::WORDS)),
                Required,
                "The mechanism; `none`: plain forwarding.",
            )],
            keys: MechanismConfig::KEYS,
        },
        Key::Fields(&[
            field(
                "buffer",
                Kind::Size { min: 1, max: 1 << 30 },
                Is("64 kB"),
                "Bytes that the node takes from one host of a connection, at most, before the \
                 other has acknowledged them; what is left of it is the window that the host \
                 sees. At least a segment.",
            )
            .only("mechanism", &[SPLIT]),
            field(
                "tcp",
                Kind::Table(&preset::TABLE),
                Absent("as `[tcp]`"),
                "Keys that differ from `[tcp]` at the node's ends of connections.",
            )
            .only("mechanism", &[SPLIT]),
            field(
                "mobiles",
                NODES,
                Required,
                "Nodes on the wireless side; the mechanism works on segments from and to them.",
            )
            .only("mechanism", &ANY),
            MEMORY.under(MechanismConfig::WITH_COPIES[0]),
            MEMORY.under(MechanismConfig::WITH_COPIES[1]),
            FEEDBACK.under(MechanismConfig::WITH_SIGNALS[0]),
            FEEDBACK.under(MechanismConfig::WITH_SIGNALS[1]),
        ]),
    ],
);

const MEMORY: Field = field(
    "memory",
    Kind::Size { min: 1, max: u64::MAX },
    Is("64 MiB"),
    "Memory for the copies of all connections together.",
);

const FEEDBACK: Field = field(
    "signal",
    Kind::WordOrTable(NONE, &SIGNAL),
    Absent("its defaults"),
    "Signals about its mobiles' outages; `none`: no signals.",
);

static SIGNAL: Table = Table::new(
    "middlebox.signal",
    "The disconnection feedback about each mobile, made from its `outage` or, if it has none, from those of the \
            links on the static routes between the node and it: *fading* ahead \
            of an outage, *down* at its beginning, *up* at its end. With `level`, from the level at \
            which it receives the node's frames. A signal that the link's next change overtakes is \
            not sent.",
    &[Key::Fields(&[
        field(
            "lead",
            TIME,
            Absent("50 ms; without `late` and `level` only"),
            "Time before an outage at which the mobile is reported as fading; 0: not at all.",
        )
        .source("M-TCP+ §3"),
        field(
            "late",
            TIME,
            Is("0 s"),
            "Time from the start of an outage to its report. Not together with `lead`.",
        ),
        field("delay", TIME, Is("0 s"), "Time from the end of an outage to its report."),
        field("missing", PROBABILITY, Is("0"), "Probability that a signal is lost."),
        field(
            "level",
            Kind::Table(LevelThresholds::TABLE),
            Absent("the outages count"),
            "Makes the signals from the level at which the mobile receives the node's frames. Both are \
             in one cell.",
        )
        .source("M-TCP+ §3"),
    ])],
);

/// The TCP of a scenario, which a node's own may override.
#[derive(Clone, Copy)]
pub(super) struct Tcp<'a, 'b> {
    /// `[tcp]`; `None` if it was refused.
    pub(super) table: Option<&'a Section<'b>>,
    /// Congestion controls from outside; `None` if any name will do.
    pub(super) controls: Option<&'a Controls>,
}

/// Reads a mechanism and where its mobiles are; `None` if there is none or it is wrong.
pub(super) fn read<'b>(
    section: &Section<'b>,
    names: &Names,
    tcp: Tcp<'_, 'b>,
) -> Option<MiddleboxSpec> {
    let mechanism = match section.get::<Option<&str>>("mechanism")? {
        None => {
            Reader::chosen(section, "mechanism", NONE);
            return None;
        }
        Some(SPLIT) => {
            Reader::chosen(section, "mechanism", SPLIT);
            split(section, tcp).map(MechanismSpec::Split)
        }
        Some(_) => MechanismConfig::read(section, None).map(MechanismSpec::Edge),
    };
    // A mechanism that holds no copies has no `memory` key.
    let memory = match &mechanism {
        Some(mechanism) if mechanism.fifo().is_none() => Some(Bytes(0)),
        _ => section.get("memory"),
    };
    let mobiles = section.get::<Vec<Name>>("mobiles");
    let signal = signal(section);
    let mobiles = mobiles?;
    let ids: Vec<Option<Range<u32>>> =
        mobiles.iter().map(|name| resolve(section, "mobiles", name, names)).collect();
    let ids = ids.into_iter().collect::<Option<Vec<_>>>()?;
    let ids: BTreeSet<NodeId> = ids.into_iter().flatten().map(NodeId).collect();
    let (mechanism, memory, signal) = (mechanism?, memory?, signal?);
    let signal = signal.filter(|_| mechanism.hears_signals());
    Some(MiddleboxSpec { mechanism, memory, mobiles: ids.into_iter().collect(), signal })
}

/// Keys of `[tcp]` that are not those of a node between the hosts, and what takes their place.
const NOT_IN_BETWEEN: [(&str, &str); 5] = [
    ("receive-buffer", "buffer"),
    ("send-buffer", "buffer"),
    ("autotuning", "buffer"),
    ("on-link", "it at the mobile: in [tcp] or at a flow's end"),
    ("on-route-failure", "it at the sender: in [tcp] or at a flow's end"),
];

/// Reads the settings of a node's own ends of connections; `None` if they are wrong.
fn split<'b>(section: &Section<'b>, tcp: Tcp<'_, 'b>) -> Option<Arc<TcpConfig>> {
    let buffer = section.get::<Bytes>("buffer");
    let table = section.merged("tcp");
    for (field, spot) in table.own_keys() {
        let instead = NOT_IN_BETWEEN.iter().find(|(key, _)| *key == field.key);
        if let Some((key, instead)) = instead {
            let problem = table.problem_at(spot, key, "has no effect at a node that splits");
            table.push(problem.expected(*instead));
        }
    }
    let own = tcp.table?.overridden_by(section, "tcp");
    let config = preset::read(&own)?;
    flow::agree(&own, &config, &own, &mut config.clone(), tcp.controls)?;
    let buffer = buffer?;
    let (mss, size) = (u64::from(config.mss), buffer.get());
    if size < mss {
        let problem = section.problem("buffer", format!("{buffer} hold no segment of {mss} B"));
        section.push(problem.expected("at least the node's mss"));
    }
    if buffer > flow::UNSCALED && !config.window_scaling {
        let message = format!("a window of {buffer} needs window scaling");
        let problem = section.problem("buffer", message);
        section.push(problem.expected("at most 65535 B, or tcp.window-scaling = true"));
    }
    let (receive_buffer, send_buffer) = (buffer, buffer);
    Some(Arc::new(TcpConfig { receive_buffer, send_buffer, autotuning: false, ..config }))
}

/// Reads the signals of a middlebox; `None` if they are wrong.
fn signal(section: &Section<'_>) -> Option<Option<SignalSpec>> {
    const LEAD: Duration = Duration::from_millis(50);
    let (late, delay, missing) = (Duration::ZERO, Duration::ZERO, 0.0);
    let Some(table) = section.chosen("signal") else {
        if section.has("signal") {
            // "none", or an invalid value.
            return section.get::<Option<&str>>("signal").map(|_| None);
        }
        return Some(Some(SignalSpec { lead: LEAD, late, delay, missing, level: None }));
    };
    let lead = table.get::<Option<Duration>>("lead");
    let late = table.get::<Duration>("late");
    let (delay, missing) = (table.get("delay"), table.get("missing"));
    if table.has("lead") && table.has("late") {
        let problem = table.problem("late", "contradicts lead");
        table.push(problem.expected("either lead or late"));
    }
    if table.has("lead") && table.has("level") {
        let problem = table.problem("lead", "contradicts level, whose key `fading` comes instead");
        table.push(problem.expected("either lead or level"));
    }
    let level = match table.chosen("level") {
        None => None,
        Some(level) => Some(LevelThresholds::read(&level, None)?),
    };
    let has_lead = !table.has("late") && !table.has("level");
    let lead = lead?.unwrap_or(if has_lead { LEAD } else { Duration::ZERO });
    Some(Some(SignalSpec { lead, late: late?, delay: delay?, missing: missing?, level }))
}

/// The parts of a scenario that decide if a mechanism can have an effect.
pub(super) struct Surroundings<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) links: &'a [Link],
    pub(super) wlans: &'a [Wlan],
    /// No cell of the file is missing among them.
    pub(super) cells_are_known: bool,
    /// No flow or other source of the file is missing among them.
    pub(super) traffic_is_known: bool,
    /// End of the run, if it is known.
    pub(super) end: Option<Instant>,
    pub(super) flows: &'a [FlowSpec],
    /// Each run draws the ends of some flows: those here are an example.
    pub(super) are_flows_drawn: bool,
    pub(super) quic: &'a [QuicSpec],
    pub(super) udp: &'a [UdpSpec],
}

impl<'a> Surroundings<'a> {
    /// Refuses mechanisms that can have no effect.
    pub(super) fn check(&self, sections: &[Section<'_>], names: &Names) {
        let mut deaf = Vec::new();
        let mut some_hear = false;
        for section in sections {
            let node = section.get::<Name>("name").and_then(|n| names.get(&n.text));
            let Some(edge) = node.map(|node| NodeId(node.start)) else { continue };
            let spec = self.nodes.get(edge).and_then(|node| node.middlebox.as_deref());
            let (Some(spec), Some(table)) = (spec, section.chosen("middlebox")) else { continue };
            self.check_fifo(spec, &table);
            if self.traffic_is_known
                && !self.are_flows_drawn
                && let Some((message, expected)) = self.idle(edge, spec)
            {
                table.push(table.problem("mobiles", message).expected(expected).may_follow());
                continue;
            }
            if let MechanismSpec::Split(_) = spec.mechanism {
                self.check_split(spec, &table);
            }
            let Some(signal) = &spec.signal else { continue };
            if let Some(level) = &signal.level {
                self.check_level(edge, &spec.mobiles, level, &table);
                continue;
            }
            let hears = self.hears(edge, &spec.mobiles);
            some_hear |= hears;
            deaf.extend((!hears).then_some(table));
        }
        // With several edge nodes, each outage concerns one of them.
        if let Some(outage) = self.an_outage().filter(|_| !some_hear) {
            for table in deaf {
                let message = format!("none of the outages, as of {outage}, is on their side");
                let expected = "nodes that an outage cuts off from this one";
                table.push(table.problem("mobiles", message).expected(expected).may_follow());
            }
        }
    }

    /// A FIFO smaller than a segment would never hold a copy.
    fn check_fifo(&self, spec: &MiddleboxSpec, table: &Section<'_>) {
        let Some(fifo) = spec.mechanism.fifo() else { return };
        let to_mobile = self.flows.iter().filter(|flow| spec.serves(flow.to));
        let Some(mss) = to_mobile.map(|flow| u64::from(flow.sender.mss)).max() else { return };
        if fifo.get() < mss {
            let problem = table.problem("fifo", format!("{fifo} hold no segment of {mss} B"));
            table.push(problem.expected("at least the largest mss of a flow to a mobile"));
        }
    }

    /// Refuses flows that split TCP cannot serve.
    fn check_split(&self, spec: &MiddleboxSpec, table: &Section<'_>) {
        for flow in self.flows {
            let comes_and_goes = matches!(*flow.application, Application::Arrivals(_));
            match (spec.serves(flow.from), spec.serves(flow.to)) {
                (true, true) => {
                    let message =
                        format!("flow {} begins and ends at mobiles of the node", flow.name);
                    let problem = table.problem("mobiles", message);
                    let expected = "flows with one end beyond it: it splits no others";
                    table.push(problem.expected(expected));
                }
                (true, false) | (false, true) if comes_and_goes => {
                    let message = format!("transfers of flow {} come and go", flow.name);
                    let problem = table.problem("mechanism", message);
                    let expected = "flows that last: split TCP needs both hosts until the end";
                    table.push(problem.expected(expected));
                }
                _ => {}
            }
        }
    }

    /// Refuses thresholds of a level that does not exist, or never crosses them.
    fn check_level(
        &self,
        edge: NodeId,
        mobiles: &[NodeId],
        level: &LevelThresholds,
        table: &Section<'_>,
    ) {
        let Some(table) = table.chosen("signal").filter(|_| self.cells_are_known) else { return };
        let in_cell = |mobile: NodeId, wlan: &'a Wlan| {
            Some((&wlan.config.radio, wlan.stations_of([edge, mobile])?))
        };
        let of_mobile = |&mobile| self.wlans.iter().find_map(|wlan| in_cell(mobile, wlan));
        let pairs: Vec<(&RadioConfig, [&Station; 2])> =
            mobiles.iter().filter_map(of_mobile).collect();
        if pairs.is_empty() {
            let problem = table.problem("level", "no mobile is in a cell with the node");
            table.push(problem.expected("a [[wlan]] with both among its stations"));
            return;
        }
        let is_random = |station: &&Station| self.nodes[station.node].mobility.is_random();
        let (Some(end), Some(table)) = (self.end, table.chosen("level")) else { return };
        if pairs.iter().any(|(_, both)| both.iter().any(is_random)) {
            return;
        }
        let extremes = pairs.iter().map(|(radio, both)| {
            let [a, b] = both.map(|station| station.movement(self.nodes, end, 0));
            level::extremes(radio, [&a, &b], end)
        });
        let extremes: Vec<[Power; 2]> = extremes.collect();
        let lowest = extremes.iter().map(|[lowest, _]| *lowest).min().unwrap_or_default();
        let highest = extremes.iter().map(|[_, highest]| *highest).max().unwrap_or_default();
        if lowest >= level.down {
            let message =
                format!("the level is never below it, {:.1} dBm at least", lowest.as_dbm());
            table.push(table.problem("down", message).expected("a level that a mobile leaves"));
        } else if highest < level.up {
            let message =
                format!("the level never reaches it, {:.1} dBm at most", highest.as_dbm());
            table.push(table.problem("up", message).expected("a level that a mobile reaches"));
        }
    }

    /// Why a mechanism has nothing to do, and what was expected; `None`: it has.
    fn idle(&self, edge: NodeId, spec: &MiddleboxSpec) -> Option<(&'static str, &'static str)> {
        let for_all = spec.mechanism.is_for_all_protocols();
        let of_flows = self.flows.iter().map(|flow| [flow.from, flow.to]);
        let of_quic = self.quic.iter().map(|flow| [flow.from, flow.to]);
        let of_udp = self.udp.iter().map(|source| [source.from, source.to]);
        let others = of_quic.chain(of_udp);
        let is_tcp_alone = !for_all && others.clone().next().is_some();
        let mut ends = of_flows.chain(others.filter(|_| for_all));
        if !ends.clone().flatten().any(|end| spec.serves(end)) {
            let expected = if is_tcp_alone { "an end of a TCP flow" } else { "an end of a flow" };
            return Some(("no flow begins or ends at them", expected));
        }
        if let MechanismSpec::Split(_) = spec.mechanism {
            return None;
        }
        let passes = |ends: [NodeId; 2]| {
            let [from, to] = ends.map(|end| spec.serves(end));
            from != to && !ends.contains(&edge)
        };
        if !ends.any(passes) {
            let message = "no flow has one end among them and the other beyond the node";
            return Some((message, "nodes on one side of this one"));
        }
        // Mechanisms for TCP alone act on data that go to a mobile.
        let brings_data = |flow: &FlowSpec| {
            let asks =
                matches!(*flow.application, Application::Requests(_) | Application::Video(_));
            passes([flow.from, flow.to]) && (asks || spec.serves(flow.to))
        };
        (!for_all && !self.flows.iter().any(brings_data))
            .then_some(("no flow brings them data", "nodes to which flows send"))
    }

    /// The name of a node or link that has an outage.
    fn an_outage(&self) -> Option<&str> {
        let of_node = self.nodes.iter().find(|node| node.outage.is_some()).map(|node| &node.name);
        let of_link = || self.links.iter().find(|link| link.has_outages());
        of_node.or_else(|| of_link().map(|link| &link.name)).map(String::as_str)
    }

    /// A mobile has outages, or a link that packets may take between it and the edge node.
    fn hears(&self, edge: NodeId, mobiles: &[NodeId]) -> bool {
        let mut with_outage = self.links.iter().filter(|link| link.has_outages());
        mobiles.iter().any(|&mobile| self.nodes[mobile].outage.is_some())
            || with_outage.clone().next().is_some() && {
                let beyond = self.beyond(edge, mobiles);
                with_outage.any(|link| [link.from, link.to].iter().any(|end| beyond.contains(end)))
            }
    }

    /// The nodes that the mobiles reach without the edge node.
    fn beyond(&self, edge: NodeId, mobiles: &[NodeId]) -> BTreeSet<NodeId> {
        let mut neighbours: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for link in self.links {
            neighbours.entry(link.from).or_default().push(link.to);
        }
        let mut found: BTreeSet<NodeId> = mobiles.iter().copied().collect();
        let mut unseen: Vec<NodeId> = mobiles.to_vec();
        while let Some(node) = unseen.pop() {
            let linked = neighbours.get(&node).into_iter().flatten().copied();
            let has_it = |cell: &&Wlan| cell.stations.iter().any(|station| station.node == node);
            let cells = self.wlans.iter().filter(has_it).flat_map(|cell| &cell.stations);
            let next = linked.chain(cells.map(|station| station.node));
            unseen.extend(next.filter(|&node| node != edge && found.insert(node)));
        }
        found
    }
}
