//! Entries of a recording.

use crate::setup::Setup;
use airtcp_core::{Instant, Length, LinkSignal, Segment};
use airtcp_edge::{Action, MobileId, Side};

/// Input of a call to a mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<S> {
    /// A segment came in; the mechanism decides whether it is forwarded.
    Segment {
        /// Side from which it came.
        from: Side,
        /// The segment, or its packet.
        segment: S,
    },
    /// A copy of a segment that was already forwarded, whatever the mechanism does.
    Copy {
        /// Side from which it came.
        from: Side,
        /// The segment, or its packet.
        segment: S,
    },
    /// A link signal.
    Signal {
        /// Mobile that the signal is about.
        mobile: MobileId,
        /// The report of the mobile's link.
        signal: LinkSignal,
    },
    /// A timer of the mechanism expired.
    Timer,
}

/// A call to a mechanism, and the actions that it requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time of the call on the mechanism's clock.
    pub at: Instant,
    /// Number of the mechanism's group.
    pub group: u32,
    /// Input of the call.
    pub input: Input<Segment<Length>>,
    /// Requested actions, in order.
    pub actions: Vec<Action<Length>>,
}

/// An entry of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordEntry {
    /// A group's mechanism starts, without connections.
    Begin {
        /// Number of the group.
        group: u32,
        /// Name, mechanism and settings.
        setup: Setup,
    },
    /// A group's mechanism continues with other settings and keeps its connections.
    Reconfigure {
        /// Number of the group.
        group: u32,
        /// New settings.
        setup: Setup,
    },
    /// A group's mechanism took over connections of an earlier process, whose state is not in the
    /// recording.
    Restore {
        /// Number of the group.
        group: u32,
        /// Number of connections taken over.
        connections: u64,
    },
    /// A call to a mechanism.
    Step(Step),
    /// Some steps could not be written here.
    Lost {
        /// Number of missing steps.
        steps: u64,
    },
}
