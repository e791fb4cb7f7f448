//! What a recording consists of.

use crate::setup::Setup;
use airtcp_core::{Instant, Length, LinkSignal, Segment};
use airtcp_edge::{Action, MobileId, Side};

/// One call to a mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<S> {
    /// A segment came in.
    Segment {
        /// The side it came from.
        from: Side,
        /// The segment, or its packet.
        segment: S,
    },
    /// A copy of a segment that had already been forwarded, whatever the mechanism would do.
    Copy {
        /// The side it came from.
        from: Side,
        /// The segment, or its packet.
        segment: S,
    },
    /// A link signal.
    Signal {
        /// The mobile.
        mobile: MobileId,
        /// The signal.
        signal: LinkSignal,
    },
    /// A timer went off.
    Timer,
}

/// A call to a mechanism, and the actions it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time, by the mechanism's clock.
    pub at: Instant,
    /// Number of the mechanism's group.
    pub group: u32,
    /// The input.
    pub input: Input<Segment<Length>>,
    /// The actions, in order.
    pub actions: Vec<Action<Length>>,
}

/// One entry of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The mechanism of a group starts, without connections.
    Begin {
        /// Number of the group.
        group: u32,
        /// What runs.
        setup: Setup,
    },
    /// The mechanism of a group continues with other settings and keeps its connections.
    Reconfigure {
        /// Number of the group.
        group: u32,
        /// What runs from now on.
        setup: Setup,
    },
    /// The mechanism of a group took over connections of an earlier process, whose state the
    /// recording does not hold.
    Restore {
        /// Number of the group.
        group: u32,
        /// How many.
        connections: u64,
    },
    /// A mechanism was called.
    Step(Step),
    /// Some steps could not be written here.
    Lost {
        /// How many.
        steps: u64,
    },
}
