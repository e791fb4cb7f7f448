//! Notifies the service manager of the gateway's state (sd_notify(3)); does nothing without one.
//!
//! The daemon reports that it is ready, reloading or stopping; the supervisor feeds the service
//! manager's watchdog. Both are one service, so the unit needs `NotifyAccess=all`.

use sd_notify::NotifyState;
use std::time::Duration;

/// Reports that the gateway is ready; `systemctl status` shows `status`.
pub fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the gateway reloads its configuration; [`ready`] must follow.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "cannot notify the service manager of the reload"),
    }
}

/// Reports that the gateway is stopping.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Feeds the service manager's watchdog; due once every [`watchdog_period`].
pub fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// Period of the service manager's watchdog, within which it expects [`alive`]; `None` if it has
/// none.
pub fn watchdog_period() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
