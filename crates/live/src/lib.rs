//! The parts of airtcp that meet a real Linux kernel.
//!
//! - [`doctor`]: what this machine can do for the live commands, what is missing, how to mend it.

pub mod doctor;
mod netlink;
