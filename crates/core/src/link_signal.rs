//! What a radio reports about its link: an input to mechanisms in edge nodes and in mobile hosts.

use serde::{Deserialize, Serialize};

/// A report by the radio about the link between a mobile and its edge node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LinkSignal {
    /// The signal is weakening: an outage is likely.
    Fading,
    /// The mobile is out of reach.
    Down,
    /// The mobile is in reach.
    Up,
}

impl LinkSignal {
    /// All of them, from the first sign of an outage to its end.
    pub const ALL: [Self; 3] = [Self::Fading, Self::Down, Self::Up];

    /// Its name in files, commands and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fading => "fading",
            Self::Down => "down",
            Self::Up => "up",
        }
    }

    /// The signal with this [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.name() == name)
    }
}
