//! The real-time link emulator: the simulator's [`Link`](airtcp_net::Link) between two network
//! namespaces.
//!
//! Read in this order: [`config`] (the link file), [`emulator`] (what a run is: around a command,
//! or between two namespaces), then `pump` (the loop: packets in, packets out at their time), `air`
//! (the wireless hop in front of a link), `port` (a TUN device at either end), [`control`] (orders while it runs), `log` (what passed, in
//! Mahimahi's format), [`namespace`], `nat` (the way further than the neighbour), [`lateness`]
//! (what was not on time).
//!
//! How the parts play together: each end of the link is a TUN device in its namespace, both held by
//! this process. What the kernel sends into one is offered to the link of that direction at the
//! time it is read; what comes out of a link is written to the other device when its logical time
//! has come. Logical times do not depend on when the pump wakes up, so lateness does not add up.
//! Nothing outlives the process: devices with their addresses and routes go with their descriptors,
//! a new namespace with its last process, the NAT table with its owner, whatever ends the process.
//! Linux only: empty elsewhere.
#![cfg(target_os = "linux")]

mod air;
pub mod config;
pub mod control;
pub mod emulator;
mod error;
pub mod lateness;
mod log;
pub mod namespace;
mod nat;
mod packet;
mod port;
mod pump;

pub use config::{EmulatedDirection, EmulatedLink};
pub use emulator::{Outcome, Setup, Way, around_command, between};
pub use error::EmuError;
pub use pump::Report;
