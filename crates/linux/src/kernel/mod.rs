//! Interfaces to the kernel of this host, for all other modules.

pub(crate) mod bpf;
pub(crate) mod clock;
pub(crate) mod host;
pub(crate) mod netlink;
pub(crate) mod predecessor;
