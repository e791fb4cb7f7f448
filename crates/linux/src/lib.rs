//! The parts of airtcp that meet a real Linux kernel; empty on other systems.
//!
//! - [`agent`]: a mobile that tells the gateway how its link is.
//! - [`cc`]: congestion control in the kernel.
//! - [`delack`]: this host's own ACKs, delayed as by TCP-DCA.
//! - [`doctor`]: what this machine can do for the live commands, what is missing, how to mend it.
//! - [`gateway`]: the mechanisms of `airtcp-edge` on live traffic.

#![cfg(target_os = "linux")]

pub mod agent;
mod bpf;
pub mod cc;
pub mod delack;
pub mod doctor;
pub mod gateway;
mod netlink;
mod programs;
