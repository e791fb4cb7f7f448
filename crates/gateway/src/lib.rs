//! The gateway without I/O, on any operating system: a mechanism of `airtcp-edge` between live
//! hosts.
//!
//! Read in this order: [`config`] (what is to be done), [`packets`] (as they come), [`dispatch`]
//! (packets and signals in, verdicts and packets out), [`hosts`] (how large packets may be),
//! [`mobiles`] (which mobiles are away, when sources disagree), [`outages`] (how often and how long), [`signals`] (who says so),
//! [`ledger`] (what outlives the process; [`refusals`]: what cannot be taken over), [`observe`] (a
//! gateway that only looks), [`Role`] (either of them). Around it: [`status`] and [`metrics`] (what it tells), [`control`]
//! (what it is asked). [`delack`] is not about the gateway, but about this host's own ACKs.
//!
//! Time, the indices of interfaces and what is in files are arguments; what is to be sent, written
//! and recorded is returned, or goes to a [`Keeper`](dispatch::Keeper) and a
//! [`Recorder`](dispatch::Recorder). `airtcp-linux` does the rest.

pub mod config;
pub mod control;
pub mod delack;
pub mod dispatch;
mod groups;
pub mod hosts;
pub mod ledger;
mod listing;
pub mod metrics;
pub mod mobiles;
pub mod observe;
pub mod outages;
pub mod packets;
pub mod refusals;
mod role;
pub mod signals;
pub mod status;

pub use listing::listed;
pub use role::Role;
