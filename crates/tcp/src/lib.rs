//! A complete TCP endpoint without I/O.
//!
//! See [`endpoint::Endpoint`]. Configuration in [`config`].

pub mod config;
pub mod endpoint;

pub use config::TcpConfig;
pub use endpoint::{Endpoint, Io, State, Stats};
