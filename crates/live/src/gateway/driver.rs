//! The loop: feeds the dispatcher with packets and commands, and carries out what it wants done.
//!
//! The order keeps promises: what a mechanism noted in its journal is in the
//! [`Keeper`](super::dispatch::Keeper) before any of its actions is carried out.

use super::command::{Command, Inbox};
use super::config::GatewayConfig;
use super::copies::{Copies, Taken};
use super::datapath::Intercepted;
use super::datapath::nfqueue::Nfqueue;
use super::datapath::rules::Watcher;
use super::dispatch::{Dispatcher, Effect};
use super::signals::agent::AgentCounters;
use airtcp_core::Instant;
use airtcp_edge::Side;
use nix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// The loop shows at least this often that it is alive.
const HEARTBEAT: Duration = Duration::from_millis(50);
/// The gateway's time: nanoseconds of the kernel's monotonic clock since boot, the same before and
/// after a restart of the daemon.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Instant::from_nanos(Duration::from(time).as_nanos() as u64)
}

/// Index of an interface.
pub fn interface(name: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(name).ok()
}

/// A dispatcher and what connects it to the network.
pub struct Driver {
    dispatcher: Dispatcher,
    /// Goes first: packets must not be sent to a queue that is gone.
    rules: Watcher,
    copies: Copies,
    queue: Nfqueue,
    agents: Arc<AgentCounters>,
    config: GatewayConfig,
    injections_failed: u64,
}

impl Driver {
    /// Ready to run with this configuration, which came out of [`Copies::prepare`]. `agents` are
    /// shown in the status.
    pub fn new(
        dispatcher: Dispatcher,
        queue: Nfqueue,
        rules: Watcher,
        copies: Copies,
        agents: Arc<AgentCounters>,
        config: GatewayConfig,
    ) -> Self {
        Self { dispatcher, rules, copies, queue, agents, config, injections_failed: 0 }
    }

    /// Runs until it is asked to [stop](Command::Stop). Calls `beat` often as long as it is alive.
    ///
    /// # Errors
    /// The queue is broken.
    pub fn run(&mut self, inbox: &Inbox, beat: &mut dyn FnMut()) -> io::Result<()> {
        let (mut batch, mut copies, mut effects) = (Vec::new(), Vec::new(), Vec::new());
        let mut taken = Taken::None;
        loop {
            beat();
            let timeout = self.dispatcher.next_deadline().map_or(HEARTBEAT, |due| {
                Duration::from_nanos(due.since(now()).as_nanos()).min(HEARTBEAT)
            });
            let wake = inbox.wake.as_fd();
            match (self.copies.copier(), taken) {
                (Some(copier), Taken::None) => {
                    self.queue.receive(&[wake, copier.as_fd()], Some(timeout), &mut batch)?;
                }
                (_, taken) => {
                    let timeout = timeout.min(taken.pause().unwrap_or(timeout));
                    self.queue.receive(&[wake], Some(timeout), &mut batch)?;
                }
            }
            let is_woken = batch.is_empty();
            // Copies were made before the packets behind them were queued.
            taken = self.take_copies(&mut copies, &mut effects)?;
            for intercepted in batch.drain(..) {
                let verdict = self.dispatcher.on_packet(now(), &intercepted, &mut effects);
                if let Some(id) = intercepted.id {
                    self.queue.decide(id, verdict)?;
                }
                self.carry_out(&mut effects);
            }
            let time = now();
            if self.dispatcher.next_deadline().is_some_and(|due| due <= time) {
                self.dispatcher.on_timer(time, &mut effects);
                self.carry_out(&mut effects);
            }
            self.queue.flush()?;
            if is_woken {
                // Before looking at the commands: one that comes later must wake the loop again.
                let _ = inbox.wake.read();
            }
            while let Ok(command) = inbox.commands.try_recv() {
                match command {
                    Command::Stop => return self.queue.flush(),
                    // Packets that passed before the signal count before it.
                    Command::Signal(_) => {
                        self.take_copies(&mut copies, &mut effects)?;
                    }
                    _ => {}
                }
                self.obey(command, &mut effects);
            }
            self.queue.flush()?;
            self.dispatcher.rest();
        }
    }

    /// Handles the copies that are there; `copies` is room for them.
    fn take_copies(
        &mut self,
        copies: &mut Vec<Intercepted>,
        effects: &mut Vec<Effect>,
    ) -> io::Result<Taken> {
        let Some(copier) = self.copies.copier() else { return Ok(Taken::None) };
        let taken = copier.take(copies)?;
        for copy in copies.drain(..) {
            self.dispatcher.on_packet(now(), &copy, effects);
            self.carry_out(effects);
        }
        Ok(taken)
    }

    fn obey(&mut self, command: Command, effects: &mut Vec<Effect>) {
        match command {
            Command::Signal(signal) => {
                self.dispatcher.on_signal(now(), signal, effects);
                self.carry_out(effects);
            }
            Command::Status(answer) => {
                let mut status = self.dispatcher.status(now());
                let own = [("injections_failed", self.injections_failed)];
                for (name, count) in own.into_iter().chain(self.agents.read()) {
                    status.counters.insert(name.to_owned(), count);
                }
                if let Some(missed) = self.copies.missed() {
                    status.counters.insert("copies_missed".to_owned(), missed);
                }
                // Whoever asked may have gone.
                let _ = answer.send(status);
            }
            Command::Reload(config, answer) => {
                let _ = answer.send(self.reload(*config));
            }
            Command::Ping(answer) => {
                let _ = answer.send(());
            }
            Command::Stop => {}
        }
    }

    fn reload(&mut self, config: GatewayConfig) -> Result<(), String> {
        let GatewayConfig { nfqueue, state, control, metrics, record, .. } = &self.config;
        let fixed = [
            ("nfqueue", *nfqueue == config.nfqueue),
            ("state", *state == config.state),
            ("control", *control == config.control),
            ("metrics", *metrics == config.metrics),
            ("record", *record == config.record),
        ];
        if let Some((key, _)) = fixed.into_iter().find(|(_, is_same)| !is_same) {
            return Err(format!("{key} cannot change while the gateway runs: restart it"));
        }
        let (config, prepared) = self.copies.prepare(config);
        self.rules.replace(&config).map_err(|error| error.to_string())?;
        if let Err(error) = self.dispatcher.reload(now(), &config, &interface) {
            self.rules.replace(&self.config).map_err(|error| error.to_string())?;
            return Err(error.to_string());
        }
        self.copies.commit(&config, prepared);
        self.rules.set_copies(self.copies.switch());
        self.config = config;
        Ok(())
    }

    /// Ends what is not about traffic. Dropping this puts the traffic's way back as it was.
    pub fn finish(&mut self) {
        match self.dispatcher.end_recording() {
            Ok(None | Some(0)) => {}
            Ok(Some(lost)) => tracing::warn!(lost, "steps are missing in the recording"),
            Err(error) => tracing::error!("the recording is not complete: {error}"),
        }
        let missed = self.copies.missed().unwrap_or(0);
        if missed > 0 {
            tracing::warn!(
                missed,
                "packets went on without a copy: the gateway was too slow for them"
            );
        }
        let committed = self.dispatcher.status(now()).committed;
        if committed > 0 {
            tracing::warn!(
                committed,
                "connections have acknowledged bytes held only by the gateway: start it again"
            );
        }
    }

    /// Sends a packet. Like any other it may be lost; the mechanisms repeat what matters.
    fn inject(&mut self, to: Side, packet: &[u8]) {
        let Err(error) = self.queue.inject(to, packet) else { return };
        let smaller = match error.raw_os_error() {
            Some(libc::EMSGSIZE) => self.dispatcher.cut_smaller(to, packet),
            _ => Vec::new(),
        };
        self.injections_failed += u64::from(smaller.is_empty());
        for packet in smaller {
            self.inject(to, &packet);
        }
    }

    /// Does what the dispatcher wants done.
    pub fn carry_out(&mut self, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Inject { to, packet } => self.inject(to, &packet),
                Effect::Watch { mobile, watched } => self.rules.watch(mobile.0, watched),
                Effect::CopyAll { mobile, on } => self.copies.set_full(mobile.0, on),
            }
        }
        self.dispatcher.settle();
    }
}
