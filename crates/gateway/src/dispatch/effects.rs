//! What the dispatcher has done outside: packets sent, promises kept, steps recorded.

use crate::ledger::WriteError;
use crate::packets::{Egress, SharedBytes};
use airtcp_core::{Flow, Instant};
use airtcp_edge::{Action, MechanismNote, MobileId, Side};
use airtcp_record::{Input, Setup};
use std::io;

/// One thing for the loop to do besides the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a packet.
    Inject {
        /// Out of this side.
        to: Side,
        /// Its way out of this host.
        egress: Egress,
        /// From the IP header on.
        packet: Vec<u8>,
    },
    /// Intercept the packets of a mobile of a group that is
    /// [`Queued::Watched`](crate::config::Queued::Watched) from now on, or no longer.
    Watch {
        /// The mobile.
        mobile: MobileId,
        /// Intercept from now on, or stop.
        watched: bool,
    },
    /// Copy all packets of a mobile from now on, also if it answers; or no longer.
    MirrorAll {
        /// The mobile.
        mobile: MobileId,
        /// True to begin, false to end.
        on: bool,
    },
}

/// Keeps what must outlive the process: what mechanisms promised, and what they hold frozen.
pub trait Keeper: Send {
    /// Writes down notes of a group's mechanism, so that they survive the process.
    ///
    /// # Errors
    /// Some were not written; promises of their connections are then not given.
    fn write(
        &mut self,
        group: &str,
        notes: &[MechanismNote<SharedBytes>],
    ) -> Result<(), WriteError>;

    /// Lets the notes about released connections take effect: the actions that came with them were
    /// carried out. Returns the connections that are due for a complete note.
    fn settle(&mut self) -> Vec<Flow>;
}

/// Records what mechanisms are given and do.
pub trait Recorder: Send {
    /// The mechanism of a group begins, without connections.
    fn begin(&mut self, now: Instant, group: u32, setup: &Setup);

    /// The mechanism of a group goes on with other settings, and keeps its connections.
    fn reconfigure(&mut self, now: Instant, group: u32, setup: &Setup);

    /// The mechanism of a group took over this many connections of an earlier process.
    fn restore(&mut self, now: Instant, group: u32, connections: u64);

    /// The mechanism of a group was called, and wants this done. To be called after each call to a
    /// mechanism, before anything else becomes of the actions.
    fn step(
        &mut self,
        now: Instant,
        group: u32,
        input: &Input<&[u8]>,
        actions: &[Action<SharedBytes>],
    );

    /// Hands over what was recorded; to be called before the loop goes to sleep.
    fn flush(&mut self);

    /// Ends the recording; returns how many steps are not in it.
    ///
    /// # Errors
    /// It could not be written to its end.
    fn finish(self: Box<Self>) -> io::Result<u64>;
}
