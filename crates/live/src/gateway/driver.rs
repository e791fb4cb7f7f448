//! The loop: what comes from the data path and the rest of the daemon goes into the shell, and what comes out of
//! the shell is done.
//!
//! The order that keeps promises: what a mechanism noted in its journal is in the [`Ledger`] before anything it wants
//! done is done.

use super::command::{Command, Inbox};
use super::datapath::{DataPath, Intercepted};
use super::shell::{Effect, Shell};
use airtcp_core::Instant;
use airtcp_edge::MobileId;
use nix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// The loop shows at least so often that it is alive.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// Decides which packets are intercepted.
pub trait Interception {
    /// Intercepts the packets of this mobile from now on, or no longer.
    ///
    /// # Errors
    /// It stays as it was.
    fn watch(&mut self, mobile: MobileId, watched: bool) -> io::Result<()>;
}

/// The time that everything in the gateway goes by: nanoseconds of the kernel's monotonic clock since boot, the
/// same before and after a restart of the daemon.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Instant::from_nanos(Duration::from(time).as_nanos() as u64)
}

/// Index of an interface.
pub fn interface(name: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(name).ok()
}

/// A shell and what connects it with the world.
pub struct Driver<D, I> {
    shell: Shell,
    path: D,
    interception: I,
    /// Reused.
    batch: Vec<Intercepted>,
    effects: Vec<Effect>,
    injections_failed: u64,
}

impl<D: DataPath, I: Interception> Driver<D, I> {
    /// Ready to run.
    pub fn new(shell: Shell, path: D, interception: I) -> Self {
        let (batch, effects) = (Vec::new(), Vec::new());
        Self { shell, path, interception, batch, effects, injections_failed: 0 }
    }

    /// Runs until it is asked to [stop](Command::Stop). Calls `beat` often as long as it is alive.
    ///
    /// # Errors
    /// The data path is broken.
    pub fn run(&mut self, inbox: &Inbox, beat: &mut dyn FnMut()) -> io::Result<()> {
        loop {
            beat();
            let timeout = self.shell.next_deadline().map_or(HEARTBEAT, |due| {
                Duration::from_nanos(due.since(now()).as_nanos()).min(HEARTBEAT)
            });
            self.path.receive(inbox.wake.as_fd(), Some(timeout), &mut self.batch)?;
            let mut batch = std::mem::take(&mut self.batch);
            for intercepted in batch.drain(..) {
                let verdict = self.shell.on_packet(now(), &intercepted, &mut self.effects);
                self.path.decide(intercepted.id, verdict)?;
                self.carry_out();
            }
            self.batch = batch;
            let time = now();
            if self.shell.next_deadline().is_some_and(|due| due <= time) {
                self.shell.on_timer(time, &mut self.effects);
                self.carry_out();
            }
            // Before the commands are looked at: none may come in between and be slept over.
            let _ = inbox.wake.read();
            while let Ok(command) = inbox.commands.try_recv() {
                if !self.obey(command) {
                    return self.path.flush();
                }
            }
            self.path.flush()?;
        }
    }

    /// False: it is to stop.
    fn obey(&mut self, command: Command) -> bool {
        match command {
            Command::Signal(signal) => {
                self.shell.on_signal(now(), signal, &mut self.effects);
                self.carry_out();
            }
            Command::Status(answer) => {
                let mut status = self.shell.status(now());
                status.counters.insert("injections_failed".to_owned(), self.injections_failed);
                // Who asked may have gone.
                let _ = answer.send(status);
            }
            Command::Reload(config, answer) => {
                let _ = answer.send(
                    self.shell.reload(&config, &interface).map_err(|error| error.to_string()),
                );
            }
            Command::Stop => return false,
        }
        true
    }

    fn carry_out(&mut self) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Inject { to, packet } => {
                    // As any packet it may be lost; the mechanisms repeat what matters.
                    if self.path.inject(to, &packet).is_err() {
                        self.injections_failed += 1;
                    }
                }
                Effect::Watch { mobile, watched } => {
                    if let Err(error) = self.interception.watch(mobile, watched) {
                        tracing::warn!(mobile = %mobile.0, %error, "cannot change what is intercepted");
                    }
                }
            }
        }
        self.shell.settle();
    }
}
