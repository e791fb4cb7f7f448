//! Which protocol, with its settings.

use crate::aodv::{self, Aodv};
use crate::dsr::{self, Dsr};
use crate::gpsr::{Gpsr, GpsrConfig};
use crate::{NodeId, Router};
use airtcp_core::Stream;
use airtcp_settings::schema::{AS_PRESET, Fallback, Key, PRESET, field};
use airtcp_settings::{Reader, Settings, Value, alternatives};
use std::sync::Arc;

alternatives! {
    /// A routing protocol, or shortest paths.
    #[derive(Clone, Debug, PartialEq)]
    #[table("routing", whole)]
    #[choice("protocol", "The routing protocol.")]
    #[absent(RoutingConfig::ShortestPath)]
    pub enum RoutingConfig {
        /// static routes with the fewest hops between the places where the nodes are at first; over
        /// equally short paths, the first link in the order of the file
        "shortest-path" => ShortestPath,
        /// AODV: routes on demand, hop by hop (RFC 3561)
        "aodv" => Aodv(..ByPreset<aodv::Preset>),
        /// DSR: routes on demand, written into the packets by their source (RFC 4728)
        "dsr" => Dsr(..ByPreset<dsr::Preset>),
        /// GPSR: by the positions of neighbours and destination (Karp and Kung 2000)
        "gpsr" => Gpsr(..GpsrConfig),
    }
}

/// A named set of values for all the settings of a protocol.
pub trait Preset: Value {
    /// The settings of the protocol.
    type Config: Settings;
    /// The preset that applies if none is named.
    const DEFAULT: &'static str;
    /// The values of the preset.
    fn config(self) -> Self::Config;
}

/// The settings of a protocol, which all nodes share, read as a preset with keys that override its
/// values.
#[derive(Clone, Debug, PartialEq)]
pub struct ByPreset<P: Preset>(pub Arc<P::Config>);

impl<P: Preset> Settings for ByPreset<P> {
    const KEYS: &'static [Key] = &[
        Key::Fields(&[field(
            PRESET,
            P::KIND,
            Fallback::Is(P::DEFAULT),
            "Values of the keys that are not set.",
        )]),
        Key::Otherwise(AS_PRESET, P::Config::KEYS),
    ];

    fn read<R: Reader>(from: &R, _: Option<&Self>) -> Option<Self> {
        let preset = from.get::<P>(PRESET)?;
        P::Config::read(from, Some(&preset.config())).map(Arc::new).map(Self)
    }

    fn write(&self, to: &mut Vec<(&'static str, String)>) {
        self.0.write(to);
    }
}

impl RoutingConfig {
    /// The router of a node, which draws from `stream`; `None` if routes are static.
    pub fn router(&self, node: NodeId, stream: Stream) -> Option<Box<dyn Router>> {
        match self {
            Self::ShortestPath => None,
            Self::Aodv(ByPreset(config)) => {
                Some(Box::new(Aodv::new(node, Arc::clone(config), stream)))
            }
            Self::Dsr(ByPreset(config)) => Some(Box::new(Dsr::new(node, config, stream))),
            Self::Gpsr(config) => Some(Box::new(Gpsr::new(node, config, stream))),
        }
    }
}
