//! What the kernel of this host tells and does, for all other modules.

pub(crate) mod bpf;
pub(crate) mod clock;
pub(crate) mod host;
pub(crate) mod netlink;
