//! Tells the service manager how the gateway is (sd_notify(3)); without one, nothing happens.
//!
//! The daemon tells when it is ready, reloads and stops; the supervisor answers the service
//! manager's watchdog. Both are one service, so the unit needs `NotifyAccess=all`.

use sd_notify::NotifyState;
use std::time::Duration;

/// It serves; `status` is shown by `systemctl status`.
pub fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It reads its configuration again; [`ready`] must follow.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "cannot tell the service manager of the reload"),
    }
}

/// It is about to end.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// It is alive; to be said within [`watchdog_period`].
pub fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// How often the service manager wants to hear [`alive`]; `None`: not at all.
pub fn watchdog_period() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot tell the service manager");
    }
}
