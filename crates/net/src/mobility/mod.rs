//! Where stations are and how they move; one file per model.
//!
//! A model describes movement as a sequence of [`Leg`]s. On each, a station stands still or moves
//! in a straight line at constant speed. The channel needs no more: within a leg it computes by
//! itself when stations come into range. Models with curved paths approximate them by short legs.

pub(crate) mod grid;
pub mod import;
mod path;
mod random_waypoint;
mod stationary;
mod trace;

pub use path::{Path, PathError};
pub use random_waypoint::{RandomStart, RandomWaypoint};
pub use stationary::Stationary;
pub use trace::TraceNode;

use airtcp_core::{Instant, Position, Stream};
use airtcp_settings::alternatives;

alternatives! {
    /// Movement of a node with radios.
    #[derive(Clone, Debug, PartialEq)]
    #[table("node.mobility", whole)]
    #[choice("model", "The model of movement.")]
    #[absent_word("trace")]
    pub enum MobilityConfig {
        /// not at all
        "stationary" => Stationary,
        /// from the node's `position` in straight lines from one waypoint to the next
        "path" => Path(
            /// `[[time, x, y], …]`: where it is at each time, in ascending order. Two at one place
            /// are a pause; two at one time, a jump. For a group, each node's `spacing` is added.
            waypoints: Vec<(Instant, Position)>
        ),
        /// to random places, one after another
        "random-waypoint" => RandomWaypoint(..RandomWaypoint),
        /// as in a file of ns-2's `setdest`, of BonnMotion or of SUMO
        "trace" => Trace(..TraceNode),
    }
}

impl MobilityConfig {
    /// True if the model chooses the initial position.
    pub fn places(&self) -> bool {
        match self {
            Self::Stationary | Self::Path(_) => false,
            Self::RandomWaypoint(model) => model.start != RandomStart::Position,
            Self::Trace(_) => true,
        }
    }

    /// True if the movement differs from run to run.
    pub fn is_random(&self) -> bool {
        matches!(self, Self::RandomWaypoint(_))
    }

    /// The movement until `end` of a station at `position`, with the draws of `stream`.
    pub fn movement(&self, position: Position, end: Instant, stream: &mut Stream) -> Mobility {
        let path = match self {
            Self::Stationary => return Mobility::Stationary(Stationary(position)),
            Self::Path(waypoints) => {
                Path::new([&[(Instant::ZERO, position)], waypoints.as_slice()].concat())
            }
            Self::RandomWaypoint(model) => model.path(position, end, stream),
            Self::Trace(trace) => Ok(trace.path().clone()),
        };
        Mobility::Path(path.expect("readers and models give finite places in ascending order"))
    }
}

/// A pause at one place, or a straight line at constant speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg {
    /// Position at its start.
    pub from: Position,
    /// Start of the leg.
    pub since: Instant,
    /// Position at its end.
    pub to: Position,
    /// End of the leg and start of the next one; [`Instant::MAX`] for never.
    pub until: Instant,
}

impl Leg {
    /// A pause at `place` from `since` to `until`.
    pub const fn stay(place: Position, since: Instant, until: Instant) -> Self {
        Self { from: place, since, to: place, until }
    }

    /// True if the position changes.
    pub fn moves(&self) -> bool {
        self.from != self.to
    }

    /// The position at an instant: the start before the leg begins, the end after it ends.
    pub fn position(&self, at: Instant) -> Position {
        if at <= self.since || !self.moves() {
            self.from
        } else if at >= self.until {
            self.to
        } else {
            let part = at.since(self.since).as_nanos() as f64;
            let done = part / self.until.since(self.since).as_nanos() as f64;
            let between = |from: f64, to: f64| from + (to - from) * done;
            Position { x: between(self.from.x, self.to.x), y: between(self.from.y, self.to.y) }
        }
    }
}

/// Movement of a station.
#[derive(Clone, Debug, PartialEq)]
pub enum Mobility {
    /// Not at all.
    Stationary(Stationary),
    /// From one place to the next.
    Path(Path),
}

impl Mobility {
    /// The leg at `at`; where one ends and another begins, the later one.
    pub fn leg(&self, at: Instant) -> Leg {
        match self {
            Self::Stationary(stationary) => stationary.leg(),
            Self::Path(path) => path.leg(at),
        }
    }

    /// Position of the station at this time.
    pub fn position(&self, at: Instant) -> Position {
        self.leg(at).position(at)
    }

    /// The same movement as a path.
    pub fn path(&self) -> Path {
        match self {
            Self::Stationary(Stationary(place)) => Path::at(*place),
            Self::Path(path) => path.clone(),
        }
    }

    /// Next change of speed or direction after `at`; `None` for never.
    pub fn next_change(&self, at: Instant) -> Option<Instant> {
        Some(self.leg(at).until).filter(|&until| until < Instant::MAX)
    }
}
