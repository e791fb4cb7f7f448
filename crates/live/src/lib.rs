//! The parts of airtcp that meet a real Linux kernel; empty on other systems.
//!
//! - [`doctor`]: what this machine can do for the live commands, what is missing, how to mend it.

#![cfg(target_os = "linux")]

pub mod doctor;
mod netlink;
