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
//!
//! # Example
//!
//! Two packets at once: the second waits for the first.
//!
//! ```
//! use airtcp_core::{Bytes, DataRate, Duration, Instant};
//! use airtcp_net::config::{DelayConfig, LinkConfig, LinkLoss, QueueConfig};
//! use airtcp_net::{Link, LinkStreams, Output};
//!
//! let config = LinkConfig {
//!     rate: DataRate::mbps(8).into(),
//!     delay: DelayConfig { base: Duration::from_millis(5), variation: None },
//!     loss: LinkLoss::default(),
//!     duplicate: 0.0,
//!     policer: None,
//!     outage: None,
//!     reconfiguration: None,
//!     handover: None,
//!     rlc: None,
//!     queue: QueueConfig::default(),
//! };
//! let mut link = Link::new(&config, LinkStreams::named(1, "AP-phone"));
//! link.send(Instant::ZERO, "first", Bytes(1000).into()).expect("an empty queue");
//! link.send(Instant::ZERO, "second", Bytes(1000).into()).expect("room for 50 packets");
//! // Each takes 1 ms at 8 Mbit/s, then 5 ms to the far end.
//! for (packet, arrival) in [("first", 6), ("second", 7)] {
//!     assert_eq!(link.next_deadline(), Some(Instant::from_millis(arrival)));
//!     let output = link.poll(Instant::from_millis(arrival));
//!     assert!(matches!(output, Some(Output::Deliver(arrived, _)) if arrived == packet));
//! }
//! ```

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
