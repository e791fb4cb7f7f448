//! The loop: feeds packets and commands to the gateway, and carries out its effects.
//!
//! The order preserves promises: notes of a mechanism are in the
//! [`Keeper`](airtcp_gateway::dispatch::Keeper) before any of its actions is carried out.
//!
//! A round of the loop is short, so that no packet waits long and the supervisor gets its
//! heartbeat: it handles a bounded number of queued packets, mirrored packets and commands, and one
//! turn of timers (see [`Role::on_timer`]). Signals of one round have the same time, so that they
//! share a turn.

use super::path::Path;
use super::supervisor::{LONGEST_REST, Pace};
use crate::command::{Command, Handle, Inbox};
use crate::datapath::mirror::{Mirror, Prepared, Taken};
use crate::kernel::clock::now;
use crate::kernel::host::interfaces;
use airtcp_core::Instant;
use airtcp_edge::Side;
use airtcp_gateway::Role;
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::dispatch::Effect;
use airtcp_gateway::packets::{Egress, Intercepted};
use airtcp_gateway::signals::gate::AgentCounters;
use airtcp_gateway::status::LastReload;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Longest time between two heartbeats of the loop while it works, and the time without work after which
/// it rests.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// Commands handled in one round.
const COMMANDS: usize = 256;

/// A gateway and what connects it to the network.
pub struct Driver {
    role: Role,
    path: Path,
    mirror: Mirror,
    agents: Arc<AgentCounters>,
    config: GatewayConfig,
    reload: Option<Reload>,
    /// Handle of this loop, for threads that must answer it.
    handle: Handle,
    injections_failed: u64,
    last_reload: LastReload,
}

/// A new configuration whose rules are being installed.
struct Reload {
    config: GatewayConfig,
    prepared: Prepared,
    answer: mpsc::Sender<Result<(), String>>,
}

impl Driver {
    /// A driver for this configuration, which must come from [`Mirror::prepare`]. `handle` belongs
    /// to the inbox of [`Driver::run`]; the status includes `agents`. The configuration was read at
    /// `read_at`, in seconds since 1970.
    pub fn new(
        role: Role,
        path: Path,
        mirror: Mirror,
        handle: Handle,
        agents: Arc<AgentCounters>,
        config: GatewayConfig,
        read_at: f64,
    ) -> Self {
        Self {
            role,
            path,
            mirror,
            agents,
            config,
            reload: None,
            handle,
            injections_failed: 0,
            last_reload: LastReload { successful: true, succeeded_at: read_at },
        }
    }

    /// Runs until [`Command::Stop`]. Calls `beat` in time for the next heartbeat of the [`Pace`] that it
    /// passes.
    ///
    /// # Errors
    /// The queue failed.
    pub fn run(&mut self, inbox: &Inbox, beat: &mut dyn FnMut(Pace)) -> io::Result<()> {
        let (mut batch, mut mirrored, mut effects) = (Vec::new(), Vec::new(), Vec::new());
        let (mut commands, mut taken) = (Vec::new(), Taken::None);
        let (mut is_behind, mut last_work) = (false, now());
        loop {
            let quiet = Duration::from_nanos(now().since(last_work).as_nanos());
            let pace = if quiet < HEARTBEAT { Pace::Working } else { Pace::Resting };
            beat(pace);
            if pace == Pace::Resting {
                self.path.rest();
                self.mirror.rest();
            }
            self.receive(inbox, pace, is_behind, taken, &mut batch)?;
            if pace == Pace::Resting {
                // What comes now must not hang for as long as a rest.
                beat(Pace::Working);
            }
            let is_woken = batch.is_empty();
            self.mirror.follow();
            // First the packets that were mirrored before those behind them were queued.
            taken = self.take_mirrored(&mut mirrored, &mut effects)?;
            for intercepted in batch.drain(..) {
                let verdict = self.role.on_packet(now(), &intercepted, &mut effects);
                if let Some(id) = intercepted.id {
                    self.path.decide(id, verdict)?;
                }
                self.carry_out(&mut effects);
            }
            let time = now();
            let is_due = self.role.next_deadline().is_some_and(|due| due <= time);
            if is_due {
                self.role.on_timer(time, &mut effects);
                self.carry_out(&mut effects);
            }
            self.path.flush()?;
            if is_woken {
                // Cleared before the commands are read: a later one must wake the loop again.
                let _ = inbox.wake.read();
            }
            commands.extend(inbox.commands.try_iter().take(COMMANDS));
            is_behind = commands.len() == COMMANDS;
            if is_due || !is_woken || taken != Taken::None || !commands.is_empty() {
                last_work = time;
            }
            let is_signal =
                |command: &Command| matches!(command, Command::Signal(_) | Command::Withdrawn(_));
            if commands.iter().any(is_signal) {
                // Packets that passed before the signal are handled before it.
                self.take_mirrored(&mut mirrored, &mut effects)?;
            }
            let time = now();
            for command in commands.drain(..) {
                if matches!(command, Command::Stop) {
                    return self.path.flush();
                }
                self.handle(time, command, &mut effects);
            }
            self.path.flush()?;
            self.role.rest();
        }
    }

    /// Waits for a packet, a command, the next deadline or the next heartbeat, and takes the queued
    /// packets. `taken` is the result of the last look at mirrored packets.
    fn receive(
        &mut self,
        inbox: &Inbox,
        pace: Pace,
        is_behind: bool,
        taken: Taken,
        batch: &mut Vec<Intercepted>,
    ) -> io::Result<()> {
        let longest = match pace {
            Pace::Working => HEARTBEAT,
            Pace::Resting => LONGEST_REST,
        };
        let timeout = match self.role.next_deadline() {
            _ if is_behind => Duration::ZERO,
            Some(due) => Duration::from_nanos(due.since(now()).as_nanos()).min(longest),
            None => longest,
        };
        let wake = inbox.wake.as_fd();
        match (self.mirror.program(), taken) {
            (Some(program), Taken::None) => {
                let mut wakes = program.fds();
                wakes.push(wake);
                self.path.receive(&wakes, timeout, batch)
            }
            (_, taken) => {
                let timeout = timeout.min(taken.pause().unwrap_or(timeout));
                self.path.receive(&[wake], timeout, batch)
            }
        }
    }

    /// Handles the mirrored packets that wait; `mirrored` is a buffer for them.
    fn take_mirrored(
        &mut self,
        mirrored: &mut Vec<Intercepted>,
        effects: &mut Vec<Effect>,
    ) -> io::Result<Taken> {
        let taken = self.mirror.take(now(), mirrored)?;
        for packet in mirrored.drain(..) {
            self.role.on_packet(now(), &packet, effects);
            self.carry_out(effects);
        }
        Ok(taken)
    }

    fn handle(&mut self, now: Instant, command: Command, effects: &mut Vec<Effect>) {
        match command {
            Command::Signal(signal) => {
                self.role.on_signal(now, signal, effects);
                self.carry_out(effects);
            }
            Command::Withdrawn(source) => {
                self.role.on_withdrawn(now, source, effects);
                self.carry_out(effects);
            }
            Command::Interface(uplink, index) => {
                self.role.set_index(uplink, index);
                self.mirror.set_index(uplink, index);
            }
            Command::Members(whose, answer) => {
                let _ = answer.send(self.role.members(&whose));
            }
            Command::Status(answer) => {
                let mut status = self.role.status(now, &self.mirror.traffic());
                let of_rules = self.path.rules().into_iter().flat_map(|rules| {
                    [
                        ("injections_failed", self.injections_failed),
                        ("rules_repaired", rules.repaired()),
                    ]
                });
                let missed = self.mirror.missed().map(|missed| ("mirror_missed_packets", missed));
                status.reload = Some(self.last_reload);
                for (name, count) in of_rules.chain(missed).chain(self.agents.read()) {
                    status.counters.insert(name.to_owned(), count);
                }
                // The client may have left.
                let _ = answer.send(status);
            }
            Command::Reload(config, answer) => self.begin_reload(*config, answer),
            Command::Replaced(result) => {
                if let Some(reload) = self.reload.take() {
                    let answer = reload.answer.clone();
                    let _ = answer.send(match result {
                        Ok(()) => self.end_reload(now, reload, effects),
                        Err(error) => Err(error.to_string()),
                    });
                }
            }
            Command::Reloaded { successful, at } => {
                self.last_reload.successful = successful;
                if successful {
                    self.last_reload.succeeded_at = at;
                }
            }
            Command::Ping(answer) => {
                let _ = answer.send(());
            }
            Command::Stop => {}
        }
    }

    /// Begins to install the rules of a new configuration. Traffic continues meanwhile.
    fn begin_reload(&mut self, config: GatewayConfig, answer: mpsc::Sender<Result<(), String>>) {
        let refused =
            self.config.refuse_fixed(&config).err().or_else(|| {
                self.reload.is_some().then(|| "another reload is in progress".to_owned())
            });
        if let Some(why) = refused {
            let _ = answer.send(Err(why));
            return;
        }
        let (config, prepared) = match self.mirror.prepare(self.role.looked_at(config)) {
            Ok(prepared) => prepared,
            Err(error) => {
                let _ = answer.send(Err(error.to_string()));
                return;
            }
        };
        let handle = self.handle.clone();
        self.path.replace(&config, move |result| {
            // The loop may have ended.
            let _ = handle.send(Command::Replaced(result));
        });
        self.reload = Some(Reload { config, prepared, answer });
    }

    /// Puts a new configuration in force whose rules are installed.
    fn end_reload(
        &mut self,
        now: Instant,
        reload: Reload,
        effects: &mut Vec<Effect>,
    ) -> Result<(), String> {
        let Reload { config, prepared, .. } = reload;
        let counted = self.mirror.traffic();
        if let Err(error) = self.role.reload(now, &config, &counted, &interfaces(), effects) {
            self.path.replace(&self.config, |result| {
                if let Err(error) = result {
                    tracing::error!("cannot restore the previous rules: {error}");
                }
            });
            return Err(error);
        }
        self.mirror.commit(&config, prepared);
        if let Some(rules) = self.path.rules() {
            rules.set_mirror(self.mirror.switch());
        }
        self.config = config;
        self.carry_out(effects);
        Ok(())
    }

    /// Ends the recording and logs what is left. Traffic is restored when this is dropped.
    pub fn finish(&mut self) {
        match self.role.end_recording() {
            Ok(None | Some(0)) => {}
            Ok(Some(lost)) => tracing::warn!(lost, "steps are missing in the recording"),
            Err(error) => tracing::error!("recording incomplete: {error}"),
        }
        let missed = self.mirror.missed().unwrap_or(0);
        if missed > 0 {
            tracing::warn!(
                missed,
                "packets were forwarded but not mirrored: the gateway was too slow"
            );
        }
        let committed = self.role.status(now(), &[]).committed;
        if committed > 0 {
            tracing::warn!(
                committed,
                "connections have acknowledged bytes held only by the gateway: restart it"
            );
        }
    }

    /// Sends a packet. It may be lost like any other; mechanisms retransmit what matters.
    fn inject(&mut self, to: Side, egress: Egress, packet: &[u8]) {
        let Err(error) = self.path.inject(egress, packet) else { return };
        let smaller = match error.raw_os_error() {
            Some(libc::EMSGSIZE) => self.role.cut_smaller(to, packet),
            _ => Vec::new(),
        };
        self.injections_failed += u64::from(smaller.is_empty());
        for packet in smaller {
            self.inject(to, egress, &packet);
        }
    }

    /// Carries out the gateway's effects.
    pub fn carry_out(&mut self, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Inject { to, egress, packet } => self.inject(to, egress, &packet),
                Effect::Watch { mobile, watched } => self.path.watch(mobile, watched),
                Effect::MirrorAll { mobile, on } => self.mirror.mirror_all(mobile, on),
            }
        }
        self.role.settle();
    }
}
