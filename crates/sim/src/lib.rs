//! The simulator. A [`Scenario`](scenario::Scenario) and a seed make a [`World`]; running it drives
//! the endpoints, links, wireless channels and middleboxes of the other crates from one event
//! queue.
//!
//! Read in this order: [`scenario`], [`world`], [`engine`], [`metrics`], [`trace`].

pub mod addr;
mod apps;
pub mod document;
pub mod engine;
pub mod metrics;
pub mod packet;
mod quic;
pub mod scenario;
pub mod trace;
pub mod world;

pub use metrics::RunMetrics;
pub use packet::Packet;
pub use world::{Observers, World};
