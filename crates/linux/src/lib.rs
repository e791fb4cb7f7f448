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
