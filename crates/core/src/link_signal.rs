//! What a radio reports about its link: an input of mechanisms in edge nodes and in mobile hosts.

use serde::{Deserialize, Serialize};

/// What the radio reports about the link between a mobile and its edge node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LinkSignal {
    /// The signal is weakening: an outage is likely.
    Fading,
    /// The mobile is out of reach.
    Down,
    /// The mobile is in reach.
    Up,
}
