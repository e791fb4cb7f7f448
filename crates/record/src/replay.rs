//! Runs the inputs of a recording again and compares the actions.
//!
//! Mechanisms are run as the simulator runs them: on payload lengths, with time as an argument.

use crate::reader::{ReadError, Reader};
use crate::setup::Setup;
use crate::step::{Input, RecordEntry, Step};
use crate::writer::{action_name, side_name};
use airtcp_core::{Length, Segment, counted};
use airtcp_edge::{Action, Actions, Mechanism, Middlebox, ReconfigureError, ThresholdTooSmall};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

/// Totals of a group's replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Name of the group.
    pub name: String,
    /// Name of the mechanism.
    pub mechanism: &'static str,
    /// Segments passed to the mechanism.
    pub segments: u64,
    /// Link signals passed to the mechanism.
    pub signals: u64,
    /// Timers that expired.
    pub timers: u64,
    /// Actions that the mechanism requested.
    pub actions: u64,
}

/// A step whose replay gave different actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the step's block in the file, from 1.
    pub block: u64,
    /// Name of the group.
    pub name: String,
    /// Name of the mechanism.
    pub mechanism: &'static str,
    /// The step as recorded.
    pub recorded: Step,
    /// Actions of the replay.
    pub replayed: Vec<Action<Length>>,
}

/// Error that ends a replay early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A mechanism cannot be set up.
    #[error("block {block}: {source}")]
    Setup {
        /// Number of the entry's block, from 1.
        block: u64,
        /// Rejection by the mechanism.
        source: ThresholdTooSmall,
    },
    /// A mechanism cannot change to these settings.
    #[error("block {block}: {source}")]
    Reconfigure {
        /// Number of the entry's block, from 1.
        block: u64,
        /// Rejection by the mechanism.
        source: ReconfigureError,
    },
    /// The recording depends on connections taken over from an earlier process.
    #[error(
        "block {block}: {} taken over from an earlier process, whose state \
         is not in the recording; all steps before gave the same actions",
        counted(*connections, "connection")
    )]
    Restored {
        /// Number of the entry's block, from 1.
        block: u64,
        /// Number of connections taken over.
        connections: u64,
    },
    /// The entry's group has not begun.
    #[error("block {block}: group {group} has not begun")]
    UnknownGroup {
        /// Number of the entry's block, from 1.
        block: u64,
        /// Number of the group.
        group: u32,
    },
    /// Steps are missing from the recording.
    #[error("block {block}: {steps} steps are missing; all steps before gave the same actions")]
    Gap {
        /// Number of the entry's block, from 1.
        block: u64,
        /// Number of missing steps.
        steps: u64,
    },
    /// A step gave different actions in the replay.
    #[error("{0}")]
    Different(Box<Difference>),
}

/// State of a group during the replay.
struct Group {
    mechanism: Mechanism<Length>,
    summary: Summary,
}

/// Replays a recording to its end or to the first step with different actions. Returns totals for
/// each group, by number.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(source: impl Read) -> Result<BTreeMap<u32, Summary>, ReplayError> {
    let mut reader = Reader::new(source)?;
    let mut groups = BTreeMap::new();
    while let Some((block, entry)) = reader.next_entry()? {
        match entry {
            RecordEntry::Begin { group, setup } => {
                let replayed = Group::new(setup);
                let replayed = replayed.map_err(|source| ReplayError::Setup { block, source })?;
                groups.insert(group, replayed);
            }
            RecordEntry::Reconfigure { group, setup } => {
                let Group { mechanism, .. } = known(&mut groups, block, group)?;
                mechanism
                    .reconfigure(&setup.mechanism, setup.table(), setup.memory)
                    .map_err(|source| ReplayError::Reconfigure { block, source })?;
            }
            RecordEntry::Restore { group: _, connections } => {
                return Err(ReplayError::Restored { block, connections });
            }
            RecordEntry::Step(step) => {
                known(&mut groups, block, step.group)?.replay(block, step)?
            }
            RecordEntry::Lost { steps } => return Err(ReplayError::Gap { block, steps }),
        }
    }
    Ok(groups.into_iter().map(|(group, replayed)| (group, replayed.summary)).collect())
}

fn known(
    groups: &mut BTreeMap<u32, Group>,
    block: u64,
    group: u32,
) -> Result<&mut Group, ReplayError> {
    groups.get_mut(&group).ok_or(ReplayError::UnknownGroup { block, group })
}

impl Group {
    fn new(setup: Setup) -> Result<Self, ThresholdTooSmall> {
        let mechanism = Mechanism::new(&setup.mechanism, setup.table(), setup.memory)?;
        let summary = Summary {
            name: setup.name,
            mechanism: setup.mechanism.word(),
            segments: 0,
            signals: 0,
            timers: 0,
            actions: 0,
        };
        Ok(Self { mechanism, summary })
    }

    fn replay(&mut self, block: u64, step: Step) -> Result<(), ReplayError> {
        let Self { mechanism, summary } = self;
        let mut out = Actions::new();
        match &step.input {
            Input::Segment { from, segment } => {
                summary.segments += 1;
                mechanism.on_segment(step.at, *from, segment.clone(), &mut out);
            }
            Input::Copy { from, segment } => {
                summary.segments += 1;
                mechanism.on_copy(step.at, *from, segment.clone(), &mut out);
            }
            Input::Signal { mobile, signal } => {
                summary.signals += 1;
                mechanism.on_link(step.at, *mobile, *signal, &mut out);
            }
            Input::Timer => {
                summary.timers += 1;
                mechanism.on_timer(step.at, &mut out);
            }
        }
        let replayed: Vec<_> = out.drain().collect();
        summary.actions += replayed.len() as u64;
        if replayed == step.actions {
            return Ok(());
        }
        Err(ReplayError::Different(Box::new(Difference {
            block,
            name: summary.name.clone(),
            mechanism: summary.mechanism,
            recorded: step,
            replayed,
        })))
    }
}

/// Formats a difference in the style of packetdrill: the input, then the actual and the expected
/// actions.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, name, mechanism, recorded, replayed } = self;
        let Step { at, group: _, input, actions } = recorded;
        writeln!(f, "block {block}: group {name:?}, {mechanism}: the actions differ")?;
        writeln!(f, "{at} < {}", ShownInput(input))?;
        let same = actions.iter().zip(replayed).take_while(|(a, b)| a == b).count();
        for action in &actions[..same] {
            writeln!(f, "{at} > {}", Shown(action))?;
        }
        let next = |actions: &[Action<Length>]| match actions.get(same) {
            Some(action) => Shown(action).to_string(),
            None => "nothing more".to_owned(),
        };
        writeln!(f, "recorded: {}", next(actions))?;
        write!(f, "replayed: {}", next(replayed))
    }
}

struct ShownInput<'a>(&'a Input<Segment<Length>>);

impl fmt::Display for ShownInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Input::Segment { from, segment } => {
                write!(f, "{} host: {} {segment}", side_name(*from), segment.flow)
            }
            Input::Copy { from, segment } => {
                write!(f, "{} host, a copy: {} {segment}", side_name(*from), segment.flow)
            }
            Input::Signal { mobile, signal } => {
                write!(f, "the link to {mobile} is {}", signal.name())
            }
            Input::Timer => write!(f, "timer"),
        }
    }
}

struct Shown<'a>(&'a Action<Length>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = action_name(self.0);
        match self.0 {
            Action::Forward { to, segment } | Action::Inject { to, segment } => {
                write!(f, "{name} to {} host: {} {segment}", side_name(*to), segment.flow)
            }
            Action::Drop { segment, .. } => write!(f, "{name}: {} {segment}", segment.flow),
        }
    }
}
