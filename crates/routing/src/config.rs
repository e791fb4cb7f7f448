//! Which protocol, with its settings.

use crate::{NodeId, Router};
use airtcp_core::Stream;
use airtcp_settings::alternatives;

alternatives! {
    /// How packets find their way.
    #[derive(Clone, Debug, PartialEq)]
    #[table("routing", whole)]
    #[choice("protocol", "Which protocol.")]
    #[absent(RoutingConfig::ShortestPath)]
    pub enum RoutingConfig {
        /// static routes with the fewest hops between the places where the nodes are at first; over
        /// equally short paths, the first link in the order of the file
        "shortest-path" => ShortestPath,
    }
}

impl RoutingConfig {
    /// The router of a node, which draws from `stream`; `None` if routes are static.
    pub fn router(&self, _node: NodeId, _stream: Stream) -> Option<Box<dyn Router>> {
        match self {
            Self::ShortestPath => None,
        }
    }
}
