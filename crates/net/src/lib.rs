//! Links, queues and wireless channels without I/O.
//!
//! Read in this order: [`config`] (what a link is made of), [`link`] (the machine: queue, server,
//! flight), then its parts, each readable alone: [`queue`] (a file a discipline), [`loss`],
//! `policer`, [`delay`], `slots` (a path through satellites), [`schedule`] (outages, of the link and
//! above the MAC), `handover` (a mobile that changes its base station), [`trace`] (a recorded rate),
//! [`fading`] (a rate that follows a radio channel), `rlc` (a cellular link that repairs its own
//! losses). [`cell`] shares the time of a base station
//! between links.
//! [`wifi`] is the other medium: 802.11, shared by many stations, with its own narration;
//! [`mobility`] says where the stations are.
//!
//! Time and randomness are arguments: a simulator calls [`Link::poll`] at the instants
//! [`Link::next_deadline`] names, a real-time emulator whenever it wakes up, and both see the same
//! packets at the same logical times.

pub mod cell;
pub mod config;
pub mod delay;
pub mod fading;
mod handover;
pub mod link;
pub mod log;
pub mod loss;
pub mod mobility;
mod policer;
pub mod queue;
mod rlc;
pub mod schedule;
mod slots;
pub mod table;
pub mod trace;
pub mod wifi;

pub use cell::{Cell, CellConfig};
pub use link::{
    Arrived, Departure, Dropped, Link, LinkCounters, LinkStreams, Output, PacketMeta, Passage,
    ServiceStart,
};
pub use schedule::AboveMac;
pub use trace::{Trace, TraceError};
