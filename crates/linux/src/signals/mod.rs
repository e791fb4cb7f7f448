//! Sources of link signals, which say that a mobile fades, is down, or is up again.
//!
//! `agent` receives reports of `airtcp agent` on the mobiles (their keys are in a [`key_file`]);
//! `netlink` follows the kernel's carriers, neighbours and uplinks with their `routes`; `modem`
//! follows ModemManager for the modems of uplinks; `wifi` reads the signal levels of their Wi-Fi
//! interfaces; `timetable` has outages that are known in advance. Each is a thread that sends
//! [`Command::Signal`]s to the loop. When it starts it sends its complete view, because an earlier
//! gateway may have ended with another one. Signals of a source that a reload disables are
//! [withdrawn](crate::command::Command::Withdrawn). Sources are independent; the loop resolves
//! contradictions.

pub(crate) mod agent;
pub mod key_file;
mod level;
pub(crate) mod modem;
mod netlink;
mod routes;
mod stop;
mod timetable;
mod wifi;

use crate::command::{Command, Handle};
use crate::kernel::predecessor::when_free;
use agent::Stamps;
use airtcp_gateway::config::{AgentConfig, Group, Signals};
use airtcp_gateway::signals::SignalSource;
use airtcp_gateway::signals::gate::AgentCounters;
use airtcp_gateway::signals::timetable::Timetable;
use key_file::KeyFileError;
use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use stop::Stop;

/// Reason why the sources cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SignalsError {
    /// The file of keys is refused.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The address for agents is not available.
    #[error("cannot listen for agents on {address} (UDP): {source}{}", listen_hint(source))]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The error on binding it.
        source: io::Error,
    },
    /// The kernel's notifications cannot be subscribed to.
    #[error("cannot follow carriers and neighbours (rtnetlink): {0}")]
    Netlink(io::Error),
    /// No more threads or file descriptors.
    #[error("cannot start the sources of link signals: {0}")]
    Resources(#[from] io::Error),
}

impl SignalsError {
    fn is_taken(&self) -> bool {
        matches!(self, Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

fn listen_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another program has this port (`ss -lunp` names it): choose another one in [signals.agent]"
        }
        io::ErrorKind::AddrNotAvailable => "; no interface of this machine has this address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need CAP_NET_BIND_SERVICE",
        _ => "",
    }
}

/// The running sources; they stop when this is dropped.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    agent_counters: Arc<AgentCounters>,
    /// Window of timestamps in which reports of agents are accepted.
    stamps: Arc<Mutex<Stamps>>,
    /// Address and socket of the agents' listener, kept when the configuration changes.
    socket: Option<(SocketAddr, UdpSocket)>,
    /// Sources that the configuration enables.
    enabled: BTreeSet<SignalSource>,
    sources: Sources,
}

/// Starts all sources that the configuration enables. The folder `state` has the state of earlier
/// gateways.
///
/// # Errors
/// One of them cannot start; then none is started.
pub fn start(
    signals: &Signals,
    groups: &[Group],
    state: &Path,
    handle: Handle,
) -> Result<Running, SignalsError> {
    let (sources, agent_counters) = (Sources::new()?, Arc::default());
    let stamps = Arc::new(Mutex::new(Stamps::open(state.join("agents"))));
    let (socket, enabled) = (None, BTreeSet::new());
    let mut running = Running { handle, agent_counters, stamps, socket, enabled, sources };
    when_free(|| running.restart(signals, groups), SignalsError::is_taken)?;
    Ok(running)
}

impl Running {
    /// Switches to another configuration. Counters continue, and no report of an agent is accepted
    /// that was accepted before or was too old.
    ///
    /// # Errors
    /// As [`start`]; then the sources are unchanged.
    pub fn restart(&mut self, signals: &Signals, groups: &[Group]) -> Result<(), SignalsError> {
        let mut sources = Sources::new()?;
        let mut socket = None;
        if let Some(AgentConfig { listen, keys }) = &signals.agent {
            let keys = key_file::read(keys)?;
            let open = match &self.socket {
                Some((address, open)) if address == listen => open.try_clone()?,
                _ => bind(*listen)
                    .map_err(|source| SignalsError::Listen { address: *listen, source })?,
            };
            socket = Some((*listen, open.try_clone()?));
            let (counters, handle) = (self.agent_counters.clone(), self.handle.clone());
            let stamps = self.stamps.clone();
            sources.spawn("agents", move |stop| {
                agent::listen(&open, keys, stamps, &counters, &handle, stop)
            })?;
        }
        // The listener also follows interfaces that come and go.
        let has_interfaces =
            groups.iter().any(|group| group.uplink().is_some() || !group.interfaces().is_empty());
        if signals.carrier || signals.neighbour || has_interfaces {
            let (handle, watch) = (self.handle.clone(), netlink::Watch::new(signals, groups));
            let listener = netlink::Listener::open(watch).map_err(SignalsError::Netlink)?;
            sources.spawn("netlink", move |stop| listener.run(&handle, stop))?;
        }
        if signals.modem_manager {
            let watch = modem::Watch::new(signals.fading_below, groups);
            let handle = self.handle.clone();
            sources.spawn("modem-manager", move |stop| modem::run(watch, &handle, stop))?;
        }
        if let Some(level) = signals.fading_below {
            let (handle, watch) = (self.handle.clone(), wifi::Watch::new(level, groups));
            sources.spawn("wifi", move |stop| {
                wifi::run(watch, Path::new(wifi::LEVELS), &handle, stop)
            })?;
        }
        if !signals.timetable.is_empty() {
            let (handle, timetable) = (self.handle.clone(), Timetable::new(&signals.timetable));
            let timer = timetable::timer()?;
            sources.spawn("timetable", move |stop| {
                timetable::run(&timetable, &timer, &handle, stop)
            })?;
        }
        self.socket = socket;
        // Waits for the end of the previous sources.
        self.sources = sources;
        let before = std::mem::replace(&mut self.enabled, enabled(signals));
        for &source in before.difference(&self.enabled) {
            self.handle.send(Command::Withdrawn(source));
        }
        Ok(())
    }

    /// Counters of the agents' messages; they continue over restarts of the sources.
    pub fn agent_counters(&self) -> Arc<AgentCounters> {
        self.agent_counters.clone()
    }

    /// Address of the agents' listener, with the actual port if port 0 was configured.
    pub fn agent_address(&self) -> Option<SocketAddr> {
        self.socket.as_ref().and_then(|(_, socket)| socket.local_addr().ok())
    }
}

/// The sources that a configuration enables.
fn enabled(signals: &Signals) -> BTreeSet<SignalSource> {
    let Signals { agent, carrier, neighbour, modem_manager, fading_below, timetable, silence: _ } =
        signals;
    let enabled = [
        (SignalSource::Agent, agent.is_some()),
        (SignalSource::Carrier, *carrier),
        (SignalSource::Neighbour, *neighbour),
        (SignalSource::ModemManager, *modem_manager),
        (SignalSource::Wifi, fading_below.is_some()),
        (SignalSource::Timetable, !timetable.is_empty()),
    ];
    enabled.into_iter().filter(|&(_, enabled)| enabled).map(|(source, _)| source).collect()
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Threads, stopped when dropped.
#[derive(Debug)]
struct Sources {
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Sources {
    fn new() -> io::Result<Self> {
        Ok(Self { stop: Stop::new()?, threads: Vec::new() })
    }

    fn spawn(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&Stop) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let stop = self.stop.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            if let Err(error) = work(&stop) {
                tracing::error!(source = name, %error, "source of link signals failed");
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.stop.now();
        for thread in self.threads.drain(..) {
            // The panic of a thread has been logged.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
