//! A complete TCP endpoint without I/O.
//!
//! Read in this order: [`config`], [`rtt`], [`congestion`], [`recovery`], [`ack`], then [`endpoint`], which puts
//! them together.

pub mod ack;
pub mod config;
pub mod congestion;
pub mod endpoint;
pub mod recovery;
pub mod rtt;

pub use config::TcpConfig;
pub use endpoint::{Endpoint, Io, State, Stats};
