//! `airtcp gateway`: a mechanism of `airtcp-edge` between live hosts.
//!
//! Read in this order: [`airtcp_gateway`] (the decisions, without I/O),
//! [`datapath`](crate::datapath) (the kernel's side), [`driver`] (the loop), [`path`] (packets to
//! and from it), [`command`] (requests of other threads to the loop), [`signals`] (sources of link
//! signals), [`ledger`] and [`record`] (files). Around it: [`supervisor`] (restarts the daemon),
//! [`server`] and [`client`] (of the control socket), [`notify`] and [`log`] (systemd).
//!
//! One thread, the *loop*, owns the dispatcher and the queue. All other threads (control socket,
//! metrics, sources of link signals) reach it only through [`Command`]s. Time is the kernel's
//! monotonic clock since boot, so that a daemon that takes over after a crash reads the same time.
//!
//! [`run`] assembles the parts so that the network is left unchanged if any of them is missing:
//! everything that may fail for lack of a privilege or a kernel feature comes before any change.
//! The rules, which alone change the path of packets, are installed last and removed first.

pub mod client;
pub mod driver;
pub mod ledger;
pub mod log;
pub mod notify;
pub mod path;
pub mod record;
pub mod server;
pub mod supervisor;

use crate::command::{self, Command, Handle, Inbox};
use crate::datapath::mirror::{Mirror, MirrorError};
use crate::datapath::nfqueue::{Nfqueue, NfqueueError};
use crate::datapath::rules::{Rules, RulesError, Watcher};
use crate::kernel::clock::{now, time_of_day};
use crate::kernel::host::interfaces;
use crate::signals::{self, Running, SignalsError};
use airtcp_core::{Bytes, counted};
use airtcp_gateway::config::{GatewayConfig, Group, Limits, Mode, NfqueueConfig};
use airtcp_gateway::dispatch::{DispatchError, Dispatcher, Effect};
use airtcp_gateway::observe::{Observation, looked_at};
use airtcp_gateway::signals::gate::AgentCounters;
use airtcp_gateway::{Role, listed};
use airtcp_record::Contents;
use driver::Driver;
use ledger::{Ledger, OpenError};
use path::Path;
use record::Recording;
use server::{Listeners, Server, ServerError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle as OsHandle, Signals as OsSignals};
use signal_hook::low_level::signal_name;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use supervisor::Pace;

/// Reason why the gateway cannot run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is invalid; the diagnostics as they are shown.
    #[error("{0}")]
    Config(String),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Ledger(#[from] OpenError),
    /// The configuration cannot be run here.
    #[error(transparent)]
    Dispatcher(#[from] DispatchError),
    /// The queue cannot be opened or used.
    #[error(transparent)]
    Queue(#[from] NfqueueError),
    /// Packets cannot be mirrored as the configuration wants.
    #[error("data path: {0}")]
    Mirror(#[from] MirrorError),
    /// The firewall rules cannot be set.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The control socket or the metrics' address cannot be opened.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A source of link signals cannot start.
    #[error(transparent)]
    Signals(#[from] SignalsError),
    /// An earlier gateway left connections, which one that only observes cannot continue.
    #[error(
        "an earlier gateway left {} that it held for mobiles out of reach: run it with mode = \"protect\" until \
         `airtcp gateway status` shows none, then observe",
        counted(*.0, "connection")
    )]
    Held(usize),
    /// No more threads or file descriptors, or the queue failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Approximate size of a connection in the ledger besides the data held for it, in bytes.
const ON_FILE: u64 = 4096;

/// State of the gateway that the service manager shows.
const fn serving(mode: Mode) -> &'static str {
    match mode {
        Mode::Protect => "gateway active",
        Mode::Observe => "gateway observing; packets are forwarded unchanged",
    }
}

/// Reads the configuration, at the start and for each reload.
pub type Read = dyn Fn() -> Result<GatewayConfig, String> + Send + Sync;

/// Runs a gateway until SIGTERM, SIGINT or an error. SIGHUP reloads the configuration. Calls `beat`
/// in time for the next heartbeat of the pace that it passes.
///
/// # Errors
/// Something required is missing, and nothing was changed; or the queue failed, and its rules are
/// removed.
pub fn run(read: Arc<Read>, beat: &mut dyn FnMut(Pace)) -> Result<(), DaemonError> {
    let config = read().map_err(DaemonError::Config)?;
    let past = config.past_outages(time_of_day() as u64);
    for caution in config.cautions().into_iter().chain(past) {
        tracing::warn!("{caution}");
    }
    // First: if the two share more, this says best that another gateway runs.
    let listeners = Listeners::open(&config.control, config.metrics)?;
    // All data held are on file as a snapshot and the inputs since, plus a little for each
    // connection. A new snapshot exists beside the old one until it replaces it.
    let Limits { memory, flows, .. } = config.limits;
    let of_group =
        memory.get().saturating_mul(4).saturating_add(ON_FILE.saturating_mul(flows as u64));
    let limit = of_group.saturating_mul(config.groups.len() as u64);
    let mut ledger = Ledger::open(&config.state, Bytes(limit))?;
    let saved = ledger.load()?;
    for (path, why) in saved.unreadable {
        tracing::error!(path = %path.display(), why = %why, "saved state unreadable or truncated");
    }
    if config.mode == Mode::Observe {
        let held = saved.connections.len() + saved.refused.len();
        return match held {
            0 => observe(config, read, listeners, beat),
            held => Err(DaemonError::Held(held)),
        };
    }
    let mut mirror = Mirror::default();
    // Reloads compare with the configuration as read, not with what this machine supports of it.
    let as_read = config.clone();
    let (config, prepared) = mirror.prepare(config)?;
    let mut dispatcher = Dispatcher::new(&config, hash_key(), &interfaces(), Box::new(ledger))?;
    let NfqueueConfig { queue, length } = config.nfqueue;
    let queue = Nfqueue::claim(queue, length)?;
    queue.set_mark(config.mark)?;
    let threads = Threads::start(read, listeners, &as_read)?;
    mirror.commit(&config, prepared);
    let mut rules = Rules::install(&config)?;
    rules.set_mirror(mirror.switch());
    // Not before: it renames an earlier recording, which may be that of a gateway that refuses this one.
    if let Some(file) = &config.record {
        let recording = Recording::create(file, Contents::Headers, now())?;
        dispatcher.record(now(), &config.limits, Box::new(recording));
    }
    tracing::info!(backend = %rules.backend(), groups = config.groups.len(), "gateway active");
    let rules = Watcher::new(rules, |error| {
        tracing::error!("cannot update per-mobile queue rules: {error}")
    })?;
    let mut effects = Vec::new();
    let [taken, refused] =
        dispatcher.take_over(now(), saved.connections, saved.refused, &mut effects);
    if taken + refused > 0 {
        tracing::info!(taken, refused, "took over connections of an earlier gateway");
    }
    let queue = queue.listen()?;
    let (role, path) = (Role::Protect(Box::new(dispatcher)), Path::Queue { rules, queue });
    serve(role, path, mirror, config, threads, effects, beat)
}

/// Runs a gateway that only observes.
fn observe(
    config: GatewayConfig,
    read: Arc<Read>,
    listeners: Listeners,
    beat: &mut dyn FnMut(Pace),
) -> Result<(), DaemonError> {
    let threads = Threads::start(read, listeners, &config)?;
    let mut mirror = Mirror::default();
    let (config, prepared) = mirror.prepare(looked_at(config))?;
    if !config.groups.iter().all(Group::is_mirrored) {
        return Err(DispatchError::NothingToSee.into());
    }
    let observation = Observation::new(now(), &config, hash_key(), &interfaces());
    mirror.commit(&config, prepared);
    tracing::info!("gateway observing; packets are forwarded unchanged");
    let role = Role::Observe(Box::new(observation));
    serve(role, Path::Beside, mirror, config, threads, Vec::new(), beat)
}

/// Runs the loop until it is asked to stop; `effects` are carried out first.
fn serve(
    role: Role,
    path: Path,
    mirror: Mirror,
    config: GatewayConfig,
    threads: Threads,
    mut effects: Vec<Effect>,
    beat: &mut dyn FnMut(Pace),
) -> Result<(), DaemonError> {
    let (state, agents) = (serving(config.mode), threads.agents.clone());
    let handle = threads.handle.clone();
    let mut driver = Driver::new(role, path, mirror, handle, agents, config, time_of_day());
    driver.carry_out(&mut effects);
    notify::ready(state);
    let ended = driver.run(&threads.inbox, beat);
    notify::stopping();
    driver.finish();
    drop(driver);
    threads.end();
    ended?;
    tracing::info!("gateway stopped; packets are forwarded as without it");
    Ok(())
}

/// Threads beside the loop: sources of signals, the control socket, the metrics.
struct Threads {
    inbox: Inbox,
    handle: Handle,
    agents: Arc<AgentCounters>,
    _server: Server,
    watch: OsHandle,
    attendant: JoinHandle<()>,
}

impl Threads {
    fn start(
        read: Arc<Read>,
        listeners: Listeners,
        config: &GatewayConfig,
    ) -> Result<Self, DaemonError> {
        let (handle, inbox) = command::channel()?;
        let mut os_signals = OsSignals::new([SIGTERM, SIGINT, SIGHUP])?;
        let sources =
            signals::start(&config.signals, &config.groups, &config.state, handle.clone())?;
        let agents = sources.agent_counters();
        let reload = Arc::new(reloader(read, handle.clone(), sources, config.clone()));
        let _server = Server::start(listeners, handle.clone(), {
            let reload = reload.clone();
            move || reload()
        })?;
        let (watch, own) = (os_signals.handle(), handle.clone());
        let attendant =
            thread::Builder::new().name("gateway-signals".to_owned()).spawn(move || {
                for signal in os_signals.forever() {
                    if signal == SIGHUP {
                        // The outcome is in the log.
                        let _ = reload();
                    } else {
                        tracing::info!("stopping: {}", signal_name(signal).unwrap_or("a signal"));
                        handle.send(Command::Stop);
                    }
                }
            })?;
        Ok(Self { inbox, handle: own, agents, _server, watch, attendant })
    }

    fn end(self) {
        self.watch.close();
        let _ = self.attendant.join();
    }
}

/// Reloads the configuration: reads it, restarts the sources of signals, and hands it to the loop.
/// If any step fails, nothing changes.
fn reloader(
    read: Arc<Read>,
    handle: Handle,
    sources: Running,
    config: GatewayConfig,
) -> impl Fn() -> Result<(), String> + Send + Sync {
    let running = Mutex::new((sources, config));
    move || {
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        let (sources, old) = &mut *running;
        notify::reloading();
        let result = read().and_then(|new| {
            sources.restart(&new.signals, &new.groups).map_err(|error| error.to_string())?;
            let (answer, answered) = mpsc::channel();
            handle.send(Command::Reload(Box::new(new.clone()), answer));
            let taken =
                answered.recv().unwrap_or_else(|_| Err("the gateway has stopped".to_owned()));
            match taken {
                Ok(()) => {
                    tracing::info!("configuration reloaded: {}", listed(&old.changes(&new)));
                    *old = new;
                }
                Err(_) => {
                    let again = sources.restart(&old.signals, &old.groups);
                    again.map_err(|error| error.to_string())?;
                }
            }
            taken
        });
        if let Err(error) = &result {
            tracing::error!("reload failed, configuration unchanged: {error}");
        }
        handle.send(Command::Reloaded { successful: result.is_ok(), at: time_of_day() });
        notify::ready(serving(old.mode));
        result
    }
}

/// Random key of hashes, so that nobody can choose colliding flows.
fn hash_key() -> (u64, u64) {
    (RandomState::new().hash_one(0), RandomState::new().hash_one(1))
}
