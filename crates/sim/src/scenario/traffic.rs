//! What flows and UDP sources share: the network they are resolved against, and their ends.

use super::link::Link;
use super::names::{Names, pairs, resolve};
use super::node::{NodeId, Nodes};
use super::parts::Parts;
use airtcp_config::Section;
use airtcp_core::Duration;
use airtcp_settings::Name;
use airtcp_tcp::congestion::Controls;
use std::collections::BTreeSet;
use std::ops::Range;

/// The network that traffic is resolved against.
pub(super) struct Network<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) links: &'a [Link],
    pub(super) names: &'a Names,
    /// `None` if some of the network is unknown.
    pub(super) parts: Option<&'a Parts>,
    pub(super) duration: Option<Duration>,
    /// Congestion controls from outside; `None` if any name will do.
    pub(super) controls: Option<&'a Controls>,
}

impl Network<'_> {
    /// True if there may be a link of this name, for all that is known.
    pub(super) fn may_link(&self, name: &str) -> bool {
        let is_node = |name: &str| self.nodes.iter().any(|node| node.name == name);
        self.parts.is_none() && name.split_once('>').is_some_and(|(a, b)| is_node(a) && is_node(b))
    }
}

/// The nodes that `from` and `to` stand for.
pub(super) fn groups(
    section: &Section<'_>,
    network: &Network<'_>,
) -> Option<(Range<u32>, Range<u32>)> {
    let (from, to) = (section.get::<Name>("from"), section.get::<Name>("to"));
    let from = from.and_then(|name| resolve(section, "from", &name, network.names));
    let to = to.and_then(|name| resolve(section, "to", &name, network.names));
    Some((from?, to?))
}

/// The pairs of nodes between which a flow or a UDP source runs. Those that nothing connects are
/// reported.
pub(super) fn ends(section: &Section<'_>, network: &Network<'_>) -> Option<Vec<(NodeId, NodeId)>> {
    let (from, to) = groups(section, network)?;
    let pairs = pairs(section, "to", from, to)?;
    let apart = |(from, to): &&(NodeId, NodeId)| {
        network.parts.is_some_and(|parts| !parts.connects(*from, *to))
    };
    if let Some(&(from, to)) = pairs.iter().find(apart) {
        let [from, to] = [from, to].map(|node| &network.nodes[node].name);
        let message = format!("no links or cells lead from {from:?} to {to:?}");
        section.push(section.problem("to", message).expected("a node that they connect"));
    }
    Some(pairs)
}

/// The name of unnamed traffic, with its number among that of the same pair if there is a `count`.
pub(super) fn name_by_ends(nodes: &Nodes, from: NodeId, to: NodeId, number: Option<u64>) -> String {
    let [a, b] = [from, to].map(|id| &nodes[id].name);
    match number {
        Some(number) => format!("{a}-{b}-{number}"),
        None => format!("{a}-{b}"),
    }
}

/// Enters a name among those `taken`; reports it if it is there already.
pub(super) fn is_new(
    section: &Section<'_>,
    kind: &str,
    name: &str,
    taken: &mut BTreeSet<String>,
) -> bool {
    let is_new = taken.insert(name.to_owned());
    if !is_new {
        let key = if section.has("name") { "name" } else { "from" };
        let problem = section.problem(key, format!("a second {kind} {name:?}"));
        section.push(problem.expected(format!("a unique name for each {kind}")));
    }
    is_new
}
