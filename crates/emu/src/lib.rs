//! The real-time link emulator: the simulator's [`Link`](airtcp_net::Link) between two network
//! namespaces.
//!
//! Read in this order: [`config`] (the link file), [`emulator`] (a run: around a command, or
//! between two namespaces), then `pump` (the loop: packets in, packets out at their time), `air`
//! (the wireless hop in front of a link), `corruption` (bit errors behind it), `filter` (packets that pass beside it), `port` (a TUN device at either end), [`control`] (orders
//! to a running link), `log` (packets passed, in Mahimahi's format), [`namespace`], `nat` (access
//! to networks beyond this host), [`lateness`] (how late packets were released).
//!
//! Each end of the link is a TUN device in its namespace; this process holds both. A packet that
//! the kernel sends into one device is offered to the link of that direction at the time it is
//! read. A packet that leaves a link is written to the other device at its logical time. Logical
//! times do not depend on when the pump wakes up, so lateness does not accumulate. Nothing outlives
//! the process, however it ends: the devices, their addresses and routes disappear with their
//! descriptors, a new namespace with its last process, and the NAT table with its owner.
//! Linux only: empty elsewhere.
#![cfg(target_os = "linux")]

mod air;
pub mod config;
pub mod control;
mod corruption;
pub mod emulator;
mod error;
mod filter;
pub mod lateness;
mod log;
pub mod namespace;
mod nat;
mod packet;
mod port;
mod pump;

pub use config::{EmulatedDirection, EmulatedLink};
pub use emulator::{DirectionSetup, Outcome, Setup, around_command, between};
pub use error::EmuError;
pub use filter::Filter;
pub use pump::Report;
