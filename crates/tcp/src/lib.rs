//! A complete TCP endpoint without I/O.
//!
//! Read in this order: [`config`] with its [`preset`]s, then the exchangeable parts [`congestion`],
//! [`rto`], [`ack`] and [`route`] (each a trait, with one file per strategy), [`recovery`], and
//! [`endpoint`], which puts them together.

mod accecn;
pub mod ack;
pub mod config;
pub mod congestion;
pub mod endpoint;
pub mod preset;
pub mod recovery;
pub mod route;
pub mod rto;
mod strategies;

pub use config::TcpConfig;
pub use endpoint::{EcnCounts, Endpoint, Io, Limit, Limits, Stats, TcpState};
pub use preset::Preset;
pub use strategies::Strategies;
