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
//!
//! # Example
//!
//! A mobile is reported to be down. Wake, the default mechanism, wants to see all packets to it.
//!
//! ```
//! use airtcp_core::{Flow, Instant, LinkSignal};
//! use airtcp_edge::{MechanismNote, MobileId};
//! use airtcp_gateway::config::GatewayConfig;
//! use airtcp_gateway::dispatch::{Dispatcher, Effect, Interfaces, Keeper};
//! use airtcp_gateway::ledger::WriteError;
//! use airtcp_gateway::packets::SharedBytes;
//! use airtcp_gateway::signals::{MobileSignal, SignalSource};
//!
//! /// Wake makes no promises, so there is nothing to keep.
//! struct Nothing;
//! impl Keeper for Nothing {
//!     fn write(&mut self, _: &str, _: &[MechanismNote<SharedBytes>]) -> Result<(), WriteError> {
//!         Ok(())
//!     }
//!     fn settle(&mut self) -> Vec<Flow> { Vec::new() }
//! }
//! let text = "[[mobile]]\nname = 'cabs'\naddresses = ['10.8.0.0/24']";
//! let config = GatewayConfig::parse("gateway.toml", text)?;
//! let mut gateway = Dispatcher::new(&config, (1, 2), &Interfaces::new(), Box::new(Nothing))?;
//! let mobile = MobileId::Host([10, 8, 0, 7].into());
//! let down = MobileSignal { mobile, signal: LinkSignal::Down, source: SignalSource::Control };
//! let mut effects = Vec::new();
//! gateway.on_signal(Instant::ZERO, down, &mut effects);
//! assert_eq!(effects, [Effect::MirrorAll { mobile, on: true }]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
