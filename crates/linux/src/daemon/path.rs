//! How packets come to the loop and leave it.

use crate::datapath::nfqueue::{self, Nfqueue};
use crate::datapath::rules::{RulesError, Watcher};
use airtcp_edge::MobileId;
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::packets::{Egress, Intercepted, PacketId, Verdict};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// How packets come to the loop and leave it, beside copies.
pub enum Path {
    /// Through a queue, in which they wait for a verdict.
    Queue {
        /// They lead packets to the queue. They go first: packets must not be sent to a queue that
        /// is gone.
        rules: Watcher,
        /// Where packets wait.
        queue: Nfqueue,
    },
    /// Past it. There is no queue in which packets could wait, there are no rules that would lead
    /// them there, and there is no socket to send by: so what passes cannot be changed.
    Beside,
}

impl Path {
    /// Takes the packets that are there, or waits until there are some, one of the `wakes` is
    /// readable, or the time is over.
    ///
    /// # Errors
    /// The queue is broken.
    pub fn receive(
        &mut self,
        wakes: &[BorrowedFd<'_>],
        timeout: Duration,
        batch: &mut Vec<Intercepted>,
    ) -> io::Result<()> {
        match self {
            Self::Queue { queue, .. } => queue.receive(wakes, Some(timeout), batch),
            Self::Beside => nfqueue::wait(wakes.iter().copied(), Some(timeout)),
        }
    }

    /// What becomes of a packet in the queue; see [`Nfqueue::decide`].
    ///
    /// # Errors
    /// The queue is broken.
    pub fn decide(&mut self, id: PacketId, verdict: Verdict) -> io::Result<()> {
        match self {
            Self::Queue { queue, .. } => queue.decide(id, verdict),
            Self::Beside => Ok(()),
        }
    }

    /// See [`Nfqueue::flush`].
    ///
    /// # Errors
    /// The queue is broken.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Queue { queue, .. } => queue.flush(),
            Self::Beside => Ok(()),
        }
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// It cannot be sent.
    pub fn inject(&mut self, egress: Egress, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Queue { queue, .. } => queue.inject(egress, packet),
            Self::Beside => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Begins or ends to queue a mobile's packets, soon.
    pub fn watch(&self, mobile: MobileId, on: bool) {
        match self {
            Self::Queue { rules, .. } => rules.watch(mobile, on),
            Self::Beside => {}
        }
    }

    /// Has the rules for another configuration put in force, soon; `done` hears whether they are.
    pub fn replace(
        &self,
        config: &GatewayConfig,
        done: impl FnOnce(Result<(), RulesError>) + Send + 'static,
    ) {
        match self {
            Self::Queue { rules, .. } => rules.replace(config, done),
            Self::Beside => done(Ok(())),
        }
    }

    /// The rules, if there are any.
    pub fn rules(&self) -> Option<&Watcher> {
        match self {
            Self::Queue { rules, .. } => Some(rules),
            Self::Beside => None,
        }
    }
}
