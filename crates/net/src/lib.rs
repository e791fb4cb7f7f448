//! Links and queues without I/O. Configuration in [`config`]; the machine in [`link`].

pub mod config;
