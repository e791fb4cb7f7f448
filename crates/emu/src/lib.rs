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
//!
//! # Example
//!
//! As `airtcp link --config link.toml -- curl http://192.0.2.1/`, which needs root.
//!
//! ```no_run
//! use airtcp_core::Duration;
//! use airtcp_emu::{DirectionSetup, EmulatedLink, Setup, around_command};
//!
//! let text = "rate = '5 Mbit/s'\ndelay = '20 ms'\ndown.rate = '20 Mbit/s'";
//! let link = EmulatedLink::parse("link.toml", text, &[], &|_| Err("no files".to_owned()))?;
//! let late = Duration::from_millis(1);
//! let setup = Setup {
//!     up: DirectionSetup { config: &link.up.config, corrupt: link.up.corrupt, log: None },
//!     down: DirectionSetup { config: &link.down.config, corrupt: link.down.corrupt, log: None },
//!     only: None,
//!     air: None,
//!     seed: 1,
//!     late,
//!     control: None,
//!     prefix: None,
//!     command_line: "",
//! };
//! let command = ["curl", "http://192.0.2.1/"].map(Into::into);
//! let outcome = around_command(setup, &command, &mut |line| eprintln!("{line}"))?;
//! assert!(outcome.report.kept_up(late));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
