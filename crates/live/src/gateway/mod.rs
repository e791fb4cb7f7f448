//! `airtcp gateway`: a mechanism of `airtcp-edge` between live hosts.
//!
//! Read in this order: [`config`] (what is to be done), `shell` (packets and signals in, verdicts and packets
//! out; no I/O), [`datapath`] (how packets get here and go on), [`command`] (what the rest of the
//! daemon asks of the loop), `daemon` (the loop). Around it: [`supervisor`] (restarts the daemon), [`server`] (the
//! control socket, whose language is [`control`], and the [`metrics`]), [`notify`] and [`log`] (systemd).
//!
//! How the parts play together: one thread, the *loop*, owns the shell and the data path. All other threads
//! (control socket, metrics, sources of link signals) talk to it by [`Command`](command::Command)s only. Time is the
//! kernel's monotonic clock since boot, so that a daemon that takes over after a crash reads the same time.

pub mod command;
pub mod config;
pub mod control;
pub mod datapath;
pub mod log;
pub mod metrics;
pub mod notify;
pub mod payload;
pub mod server;
pub mod supervisor;
