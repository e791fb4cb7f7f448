//! Commands of other threads to the loop, and its answers.

use crate::datapath::rules::RulesError;
use airtcp_edge::{InterfaceName, MobileId};
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::control::Whose;
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use airtcp_gateway::status::Status;
use nix::sys::eventfd::EventFd;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;

/// A command to the loop.
#[derive(Debug)]
pub enum Command {
    /// A source signals a change of the link to a mobile.
    Signal(MobileSignal),
    /// A source was disabled: its signals are discarded.
    Withdrawn(SignalSource),
    /// The interface of an uplink has this index from now on; `None`: the interface is gone.
    Interface(InterfaceName, Option<u32>),
    /// Requests the mobiles that a signal is for; the error of the answer is the reason for a
    /// rejection.
    Members(Whose, mpsc::Sender<Result<Vec<MobileId>, String>>),
    /// Requests the status.
    Status(mpsc::Sender<Status>),
    /// Switches to another configuration; mechanisms keep their flows. The error of the answer is
    /// the reason for a rejection.
    Reload(Box<GatewayConfig>, mpsc::Sender<Result<(), String>>),
    /// Result of installing the rules of that configuration.
    Replaced(Result<(), RulesError>),
    /// Outcome of a reload, for the status, and the time of day.
    Reloaded {
        /// The new configuration is in force.
        successful: bool,
        /// Seconds since 1970 (UTC).
        at: f64,
    },
    /// Answers once all earlier commands are done.
    Ping(mpsc::Sender<()>),
    /// Ends the loop. Flows are left to the hosts, except connections with acknowledged bytes held
    /// only by the gateway: see [`Status::committed`].
    Stop,
}

/// Sending end of the loop's commands, for any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    wake: Arc<EventFd>,
}

/// Receiving end of the loop's commands.
#[derive(Debug)]
pub struct Inbox {
    /// Commands in the order in which they were sent.
    pub commands: mpsc::Receiver<Command>,
    /// Readable while there may be commands.
    pub wake: Arc<EventFd>,
}

/// A channel of commands: its sending and its receiving end.
///
/// # Errors
/// No more file descriptors.
pub fn channel() -> io::Result<(Handle, Inbox)> {
    let wake = Arc::new(EventFd::from_flags(
        nix::sys::eventfd::EfdFlags::EFD_NONBLOCK | nix::sys::eventfd::EfdFlags::EFD_CLOEXEC,
    )?);
    let (sender, commands) = mpsc::channel();
    Ok((Handle { commands: sender, wake: wake.clone() }, Inbox { commands, wake }))
}

impl Handle {
    /// Sends a command; false if the loop has ended.
    pub fn send(&self, command: Command) -> bool {
        // The write fails only if the counter is full, and then it is readable.
        self.commands.send(command).is_ok() && self.wake.write(1).is_ok()
    }

    /// Requests the status and waits for it; `None` if the loop has ended.
    pub fn status(&self) -> Option<Status> {
        let (answer, status) = mpsc::channel();
        self.send(Command::Status(answer)).then(|| status.recv().ok()).flatten()
    }
}
