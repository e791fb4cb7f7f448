//! Path of the packets to the loop and from it.
use crate::datapath::nfqueue::{self, Nfqueue};
use crate::datapath::rules::{RulesError, Watcher};
use airtcp_edge::MobileId;
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::packets::{Egress, Intercepted, PacketId, Verdict};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Path of packets to the loop and from it, besides mirrored packets.
pub enum Path {
    /// Packets wait in a queue for a verdict.
    Queue {
        /// Rules that send packets to the queue. Dropped first: packets must not be sent to a queue
        /// that no longer exists.
        rules: Watcher,
        /// The queue in which packets wait.
        queue: Nfqueue,
    },
    /// No queue, no rules that send packets to it, and no socket to send by: the gateway cannot
    /// change traffic.
    Beside,
}

impl Path {
    /// Takes the waiting packets. If there are none, waits until one arrives, one of `wakes` is
    /// readable, or `timeout` is over.
    ///
    /// # Errors
    /// The queue failed.
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

    /// Gives memory back that only many packets need.
    pub fn rest(&mut self) {
        match self {
            Self::Queue { queue, .. } => queue.rest(),
            Self::Beside => {}
        }
    }

    /// Sets the verdict on a packet in the queue; see [`Nfqueue::decide`].
    ///
    /// # Errors
    /// The queue failed.
    pub fn decide(&mut self, id: PacketId, verdict: Verdict) -> io::Result<()> {
        match self {
            Self::Queue { queue, .. } => queue.decide(id, verdict),
            Self::Beside => Ok(()),
        }
    }

    /// Sends pending verdicts; see [`Nfqueue::flush`].
    ///
    /// # Errors
    /// The queue failed.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Queue { queue, .. } => queue.flush(),
            Self::Beside => Ok(()),
        }
    }

    /// Sends a packet that the gateway made.
    ///
    /// # Errors
    /// The packet cannot be sent.
    pub fn inject(&mut self, egress: Egress, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Queue { queue, .. } => queue.inject(egress, packet),
            Self::Beside => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Begins or ends to queue a mobile's packets; returns before the rules have changed.
    pub fn watch(&self, mobile: MobileId, on: bool) {
        match self {
            Self::Queue { rules, .. } => rules.watch(mobile, on),
            Self::Beside => {}
        }
    }

    /// Begins to install the rules of another configuration; calls `done` with the result.
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
