//! What the rest of the daemon asks of the loop, and what it answers.

use crate::datapath::rules::RulesError;
use airtcp_edge::InterfaceName;
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use airtcp_gateway::status::Status;
use nix::sys::eventfd::EventFd;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;

/// One thing for the loop to do.
#[derive(Debug)]
pub enum Command {
    /// A source reports something about the link to a mobile.
    Signal(MobileSignal),
    /// Nobody asks this source any more: what it reported counts no longer.
    Withdrawn(SignalSource),
    /// The interface of an uplink has this index from now on; none: it is gone.
    Interface(InterfaceName, Option<u32>),
    /// What the gateway is doing now.
    Status(mpsc::Sender<Status>),
    /// Goes on with another configuration; mechanisms keep the flows that they know. The answer
    /// says why it was refused.
    Reload(Box<GatewayConfig>, mpsc::Sender<Result<(), String>>),
    /// The rules for that configuration are in force, or why they are not.
    Replaced(Result<(), RulesError>),
    /// Answers when all commands before it are done.
    Ping(mpsc::Sender<()>),
    /// Ends the loop. Flows are left to the hosts, except connections with acknowledged bytes held
    /// only by the gateway: see [`Status::committed`].
    Stop,
}

/// The way to the loop, for any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    wake: Arc<EventFd>,
}

/// The loop's end of it.
#[derive(Debug)]
pub struct Inbox {
    /// Commands, first one first.
    pub commands: mpsc::Receiver<Command>,
    /// Readable while there may be commands.
    pub wake: Arc<EventFd>,
}

/// Both ends.
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
    /// Sends a command; false when the loop has ended.
    pub fn send(&self, command: Command) -> bool {
        // A full counter is readable all the same.
        self.commands.send(command).is_ok() && self.wake.write(1).is_ok()
    }

    /// Asks for the status and waits for it; `None` when the loop has ended.
    pub fn status(&self) -> Option<Status> {
        let (answer, status) = mpsc::channel();
        self.send(Command::Status(answer)).then(|| status.recv().ok()).flatten()
    }
}
