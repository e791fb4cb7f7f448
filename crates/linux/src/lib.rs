//! The parts of airtcp that meet a real Linux kernel; empty on other systems.
//!
//! - [`daemon`]: `airtcp gateway`, the mechanisms of `airtcp-edge` between live hosts. What it
//!   decides is in `airtcp-gateway`; here are [`datapath`] (how packets come and go), [`signals`]
//!   (who says when a mobile is out of reach) and [`command`] (what both ask of the loop).
//! - [`agent`]: a mobile that tells the gateway how its link is.
//! - [`cc`]: congestion control in the kernel.
//! - [`delack`]: this host's own ACKs, delayed as by TCP-DCA.
//! - [`doctor`]: what this machine can do for the live commands, what is missing, how to mend it.
//! - `kernel`: netlink, BPF, clocks, interfaces and programs, for all of them.

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
