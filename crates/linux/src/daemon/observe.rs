//! The loop of `mode = "observe"`.
//!
//! Read first: [`airtcp_gateway::observe`] (what is seen), [`copies`](crate::datapath::copies)
//! (how). There is no queue in which packets could wait, no rules that would lead them there and no
//! socket to send by: nothing else of [`datapath`](crate::datapath). So it cannot change what
//! passes.

use super::driver::HEARTBEAT;
use crate::command::{Command, Inbox};
use crate::datapath::copies::{Copier, Copies, Taken};
use crate::kernel::clock::now;
use crate::kernel::host::interface;
use airtcp_gateway::config::{GatewayConfig, Group};
use airtcp_gateway::dispatch::DispatchError;
use airtcp_gateway::observe::{Observation, looked_at};
use airtcp_gateway::packets::Intercepted;
use airtcp_gateway::signals::gate::AgentCounters;
use airtcp_gateway::status::Status;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// An observation and what connects it to the network.
pub struct ObserveDriver {
    observation: Observation,
    copies: Copies,
    agents: Arc<AgentCounters>,
}

impl ObserveDriver {
    /// Begins to look. `hash_key` must not be guessable.
    ///
    /// # Errors
    /// An interface does not exist, or this machine makes no copies.
    pub fn start(
        config: GatewayConfig,
        hash_key: (u64, u64),
        agents: Arc<AgentCounters>,
    ) -> Result<Self, DispatchError> {
        let mut copies = Copies::default();
        let (looked_at, prepared) = copies.prepare(looked_at(config.clone()));
        if !looked_at.groups.iter().all(Group::is_copied) {
            return Err(DispatchError::NothingToSee);
        }
        let observation = Observation::new(now(), config, hash_key, &interface)?;
        copies.commit(&looked_at, prepared);
        Ok(Self { observation, copies, agents })
    }

    /// Runs until it is asked to [stop](Command::Stop). Calls `beat` often as long as it is alive.
    ///
    /// # Errors
    /// The copies cannot be read.
    pub fn run(&mut self, inbox: &Inbox, beat: &mut dyn FnMut()) -> io::Result<()> {
        let mut batch = Vec::new();
        let mut taken = Taken::None;
        loop {
            beat();
            self.wait(inbox, taken)?;
            let _ = inbox.wake.read();
            taken = self.take(&mut batch)?;
            self.observation.on_timer(now());
            self.attend();
            while let Ok(command) = inbox.commands.try_recv() {
                match command {
                    Command::Stop => return Ok(()),
                    // Packets that passed before the signal count before it.
                    Command::Signal(_) | Command::Withdrawn(_) => drop(self.take(&mut batch)?),
                    _ => {}
                }
                self.obey(command);
            }
        }
    }

    fn wait(&self, inbox: &Inbox, taken: Taken) -> io::Result<()> {
        let timeout = self.observation.next_deadline().map_or(HEARTBEAT, |due| {
            Duration::from_nanos(due.since(now()).as_nanos()).min(HEARTBEAT)
        });
        let timeout = timeout.min(taken.pause().unwrap_or(timeout));
        let copier = self.copies.copier().filter(|_| taken == Taken::None);
        let mut fds: Vec<_> = std::iter::once(inbox.wake.as_fd())
            .chain(copier.map(Copier::fds).into_iter().flatten())
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        match ppoll(&mut fds, Some(TimeSpec::from(timeout)), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks at the copies that are there; `batch` is room for them.
    fn take(&mut self, batch: &mut Vec<Intercepted>) -> io::Result<Taken> {
        let Some(copier) = self.copies.copier() else { return Ok(Taken::None) };
        let taken = copier.take(batch)?;
        let time = now();
        for copy in batch.drain(..) {
            self.observation.on_copy(time, &copy);
        }
        self.attend();
        Ok(taken)
    }

    /// Sees to it that all is shown of the mobiles that observers want to see all of.
    fn attend(&mut self) {
        for (mobile, on) in self.observation.drain_attention() {
            self.copies.set_full(mobile, on);
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Signal(signal) => {
                self.observation.on_signal(now(), signal);
                self.attend();
            }
            Command::Withdrawn(source) => {
                self.observation.on_withdrawn(now(), source);
                self.attend();
            }
            Command::Interface(uplink, index) => {
                self.observation.set_index(uplink, index);
                self.copies.set_index(uplink, index);
            }
            // Whoever asked may have gone.
            Command::Status(answer) => drop(answer.send(self.status())),
            Command::Reload(config, answer) => drop(answer.send(self.reload(*config))),
            Command::Ping(answer) => drop(answer.send(())),
            Command::Replaced(_) | Command::Stop => {}
        }
    }

    fn reload(&mut self, config: GatewayConfig) -> Result<(), String> {
        self.observation.reload(config.clone(), &self.copies.traffic(), &interface)?;
        let (looked_at, prepared) = self.copies.prepare(looked_at(config));
        self.copies.commit(&looked_at, prepared);
        Ok(())
    }

    /// What was seen.
    fn status(&self) -> Status {
        let mut status = self.observation.status(now(), &self.copies.traffic());
        let missed = [("copies_missed", self.copies.missed().unwrap_or(0))];
        for (name, count) in missed.into_iter().chain(self.agents.read()) {
            status.counters.insert(name.to_owned(), count);
        }
        status
    }
}
