//! What flows and UDP sources share: the network they are resolved against, and their ends.

use super::names::{Names, pairs, resolve};
use super::node::{Node, NodeId};
use airtcp_config::Section;
use airtcp_core::Duration;
use airtcp_settings::Name;

/// What traffic is resolved against.
pub(super) struct Network<'a> {
    pub(super) nodes: &'a [Node],
    pub(super) names: &'a Names,
    pub(super) duration: Option<Duration>,
}

/// The pairs of nodes between which a flow or a UDP source runs.
pub(super) fn ends(section: &Section<'_>, network: &Network<'_>) -> Option<Vec<(NodeId, NodeId)>> {
    let (from, to) = (section.get::<Name>("from"), section.get::<Name>("to"));
    let from = from.and_then(|name| resolve(section, "from", &name, network.names));
    let to = to.and_then(|name| resolve(section, "to", &name, network.names));
    pairs(section, "to", from?, to?)
}
