//! What limits a sender, and for how long (Linux: `tcp_chrono`).

use super::Endpoint;
use crate::recovery::RecoveryPhase;
use airtcp_core::{Duration, Instant, Payload};
use std::ops::AddAssign;

/// The limit that keeps an established connection from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing is unacknowledged, and nothing is left to send.
    Idle,
    /// Everything written has been sent, or a small segment waits for more data (Nagle).
    Application,
    /// Everything written has been sent, and the application cannot write until data is
    /// acknowledged.
    SendBuffer,
    /// The window that the peer advertises.
    ReceiveWindow,
    /// The path's capacity as far as the sender knows: cwnd, pacing or loss recovery.
    Path,
}

/// Total time for which each [`Limit`] applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Time with neither data to send nor data unacknowledged.
    pub idle: Duration,
    /// Time limited by the application ([`Limit::Application`]).
    pub application: Duration,
    /// Time limited by the send buffer ([`Limit::SendBuffer`]).
    pub send_buffer: Duration,
    /// Time limited by the peer's window ([`Limit::ReceiveWindow`]).
    pub receive_window: Duration,
    /// Time limited by the path ([`Limit::Path`]).
    pub path: Duration,
}

impl Limits {
    /// Time with data to send or unacknowledged (`tcpi_busy_time`).
    pub fn busy(&self) -> Duration {
        self.application + self.send_buffer + self.receive_window + self.path
    }

    fn add(&mut self, limit: Limit, time: Duration) {
        let total = match limit {
            Limit::Idle => &mut self.idle,
            Limit::Application => &mut self.application,
            Limit::SendBuffer => &mut self.send_buffer,
            Limit::ReceiveWindow => &mut self.receive_window,
            Limit::Path => &mut self.path,
        };
        *total += time;
    }
}

impl AddAssign for Limits {
    fn add_assign(&mut self, other: Self) {
        let Self { idle, application, send_buffer, receive_window, path } = other;
        self.idle += idle;
        self.application += application;
        self.send_buffer += send_buffer;
        self.receive_window += receive_window;
        self.path += path;
    }
}

/// The current limit and the totals so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LimitClock {
    /// `None` once our FIN is acknowledged.
    current: Option<Limit>,
    since: Instant,
    until_then: Limits,
}

impl LimitClock {
    fn turn(&mut self, now: Instant, limit: Option<Limit>) {
        if self.current != limit {
            self.until_then = self.at(now);
            self.current = limit;
            self.since = now;
        }
    }

    fn at(&self, now: Instant) -> Limits {
        let mut limits = self.until_then;
        if let Some(current) = self.current {
            limits.add(current, now.since(self.since));
        }
        limits
    }
}

impl<P: Payload> Endpoint<P> {
    /// Total time for which each limit applied, from the sender's first data until `now`.
    pub fn limits(&self, now: Instant) -> Limits {
        self.tx.limits.as_ref().map_or_else(Limits::default, |clock| clock.at(now))
    }

    /// Updates the current limit. Call after every event that may change it.
    pub(super) fn note_limit(&mut self, now: Instant) {
        let limit = self.sends_data().then(|| self.limit());
        match &mut self.tx.limits {
            Some(clock) => clock.turn(now, limit),
            None if limit.is_none_or(|limit| limit == Limit::Idle) => {}
            none => none.insert(Box::default()).turn(now, limit),
        }
    }

    fn limit(&self) -> Limit {
        let tx = &self.tx;
        if tx.una == tx.end() {
            return Limit::Idle;
        }
        if tx.persist.is_some() {
            return Limit::ReceiveWindow;
        }
        let next = tx.unsent_data().min(tx.mss);
        if matches!(tx.recovery.phase(), RecoveryPhase::Recovery | RecoveryPhase::Loss) {
            return Limit::Path;
        }
        if next == 0 {
            let full = !tx.closing && self.send_space() < tx.mss as usize;
            return if full { Limit::SendBuffer } else { Limit::Application };
        }
        let inflight = tx.rack.as_ref().map_or_else(|| tx.flight(), |rack| rack.inflight());
        if tx.sendable_cwnd(&self.config).saturating_sub(inflight) < next {
            Limit::Path
        } else if tx.wnd.saturating_sub(tx.flight()) < next {
            Limit::ReceiveWindow
        } else if tx.pacing.deadline.is_some() {
            Limit::Path
        } else {
            Limit::Application
        }
    }
}
