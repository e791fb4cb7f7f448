//! `airtcp gateway`: a mechanism of `airtcp-edge` between live hosts.
//!
//! Read in this order: [`config`] (what is to be done), [`dispatch`] (packets and signals in,
//! verdicts and packets out; no I/O), [`hosts`] (how large packets may be), [`mobiles`] (which
//! mobiles are away, when sources disagree), [`datapath`] (how packets come and go), [`copies`] (of
//! what the kernel forwards by itself; [`kept`]: of any protocol), [`ledger`] (what outlives the
//! process; [`refusals`]: what cannot be taken over), [`driver`] (the loop), [`observe`] (the loop
//! of a gateway that only looks), [`command`] (what the rest of the daemon asks of the loop),
//! [`signals`] (who says when a mobile is out of reach), [`daemon`] (all of it put together).
//! Around it: [`supervisor`] (restarts the daemon), [`server`] (the control socket, whose language
//! is [`control`], and the [`metrics`]), [`notify`] and [`log`] (systemd).
//!
//! How the parts play together: one thread, the *loop*, owns the dispatcher and the queue. All
//! other threads (control socket, metrics, sources of link signals) talk to it by
//! [`Command`](command::Command)s only. Time is the kernel's monotonic clock since boot, so that a
//! daemon that takes over after a crash reads the same time.

pub mod client;
pub mod command;
pub mod copies;
pub mod daemon;
pub mod datapath;
pub mod driver;
pub mod ledger;
pub mod log;
pub mod notify;
pub mod observe;
pub mod record;
pub mod server;
pub mod signals;
pub mod supervisor;
