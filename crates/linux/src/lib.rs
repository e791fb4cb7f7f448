//! The parts of airtcp that use the Linux kernel; empty on other systems.
//!
//! - [`daemon`]: `airtcp gateway`, the mechanisms of `airtcp-edge` between live hosts. Decisions
//!   are made in `airtcp-gateway`; here are [`datapath`] (packets from the kernel and to it),
//!   [`signals`] (sources of link signals) and [`command`] (requests of both to the loop).
//! - [`agent`]: reports the link state of a mobile to the gateway.
//! - [`cc`]: congestion control in the kernel.
//! - [`delack`]: delays this host's own ACKs as TCP-DCA does.
//! - [`doctor`]: checks whether this machine can run the live commands, and how to fix what is
//!   missing.
//! - `kernel`: netlink, BPF, clocks, interfaces and programs, used by all of them.
//!
//! A program that sees each packet of the mobiles and lets it pass:
//!
//! ```no_run
//! use airtcp_gateway::config::GatewayConfig;
//! use airtcp_gateway::packets::Verdict;
//! use airtcp_linux::datapath::nfqueue::Nfqueue;
//! use airtcp_linux::datapath::rules::Rules;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = std::fs::read_to_string("gateway.toml")?;
//! let config = GatewayConfig::parse("gateway.toml", &text)?;
//! let claimed = Nfqueue::claim(config.nfqueue.queue, config.nfqueue.length)?;
//! let _rules = Rules::install(&config)?;
//! let mut queue = claimed.listen()?;
//! loop {
//!     let mut packets = Vec::new();
//!     queue.receive(&[], None, &mut packets)?;
//!     for packet in &packets {
//!         println!("{} bytes", packet.packet.len());
//!         queue.decide(packet.id.expect("it is queued"), Verdict::Pass)?;
//!     }
//!     queue.flush()?;
//! }
//! # }
//! ```

#![cfg(target_os = "linux")]

pub mod agent;
pub mod cc;
pub mod command;
pub mod daemon;
pub mod datapath;
pub mod delack;
pub mod doctor;
mod kernel;
pub mod signals;
