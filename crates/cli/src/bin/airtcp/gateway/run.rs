//! `airtcp gateway --config`: the daemon, and the parent that restarts it when it dies.

use super::check;
use crate::myself;
use airtcp_cli::{BAD_INPUT, FAILURE, SUCCESS, complain, tell};
use airtcp_linux::daemon::log;
use airtcp_linux::daemon::supervisor::{self, Heartbeat, Timing};
use airtcp_linux::daemon::{self, DaemonError};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Runs a gateway until SIGTERM or SIGINT; returns the exit code.
pub(super) fn supervised() -> i32 {
    if let Err(message) = log::init() {
        complain(&message);
        return BAD_INPUT;
    }
    let daemon = supervisor::supervise(&mut myself("--daemon"), Timing::default());
    daemon.unwrap_or_else(|error| {
        complain(&format!("cannot start the gateway: {error}"));
        FAILURE
    })
}

/// The daemon itself, a child of [`supervised`]; returns the exit code.
pub(super) fn daemon(path: &Path) -> i32 {
    if let Err(message) = log::init() {
        complain(&message);
        return BAD_INPUT;
    }
    let mut heart = match Heartbeat::from_stdin() {
        Ok(heart) => heart,
        Err(error) => {
            complain(&format!("{error}; start `airtcp gateway --config FILE` instead"));
            return FAILURE;
        }
    };
    let path = path.to_owned();
    let read = Arc::new(move || check::read(&path));
    match daemon::run(read, &mut |pace| heart.beat(Instant::now(), pace)) {
        Ok(()) => SUCCESS,
        Err(DaemonError::Config(message)) => {
            // A rendered diagnostic already begins with its file.
            tell(&message);
            BAD_INPUT
        }
        Err(error) => {
            complain(&error.to_string());
            FAILURE
        }
    }
}
