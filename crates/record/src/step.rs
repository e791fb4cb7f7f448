//! What a recording consists of.

use crate::setup::Setup;
use airtcp_core::{Instant, Length, LinkSignal, Segment};
use airtcp_edge::{Action, MobileId, Side};

/// One call to a mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<S> {
    /// A segment came in.
    Segment {
        /// From this side.
        from: Side,
        /// The segment, or its packet.
        segment: S,
    },
    /// A copy of a segment that went on whatever was to become of it.
    Copy {
        /// From this side.
        from: Side,
        /// The segment, or its packet.
        segment: S,
    },
    /// A link signal.
    Signal {
        /// About which mobile.
        mobile: MobileId,
        /// Which.
        signal: LinkSignal,
    },
    /// A timer went off.
    Timer,
}

/// A call to a mechanism, and what it wanted done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, by the clock of the mechanism.
    pub at: Instant,
    /// Number of the group whose mechanism it was.
    pub group: u32,
    /// What it was given.
    pub input: Input<Segment<Length>>,
    /// What came of it, in order.
    pub actions: Vec<Action<Length>>,
}

/// One entry of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The mechanism of a group begins, without connections.
    Begin {
        /// Number of the group.
        group: u32,
        /// What runs.
        setup: Setup,
    },
    /// The mechanism of a group goes on with other settings, and keeps its connections.
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
    /// Here some steps could not be written.
    Lost {
        /// How many.
        steps: u64,
    },
}
