//! What BPF programs in the kernel do for groups of mobiles ([`FastPath`]): Packet Control as a whole, copies for the others.
//!
//! [`copies`], with `ring`, stands by itself. For Packet Control read in this order: `bpf/packet_control.bpf.c` (the programs), `program` (loaded
//! ones and their maps), [`FastPaths`] (the groups that have them). `prefixes` says whose packets a group's programs look at,
//! `layout` what is in the maps, `tcx` attaches.
//!
//! For groups of mobiles behind known interfaces, TCX programs decide about each packet where it passes, and none comes to this
//! process. Each group has programs, maps and a thread of its own. The thread sends the answers that the programs ask for, forgets
//! connections that are over, and attaches the programs again when an interface came back. The programs belong to the
//! process: however it ends, they are gone. Programs of others stay, and run before ours.

mod copies;
mod layout;
mod object;
mod prefixes;
mod program;
mod ring;
mod tcx;
#[cfg(test)]
mod tests;

use super::command::{FlowStatus, GroupStatus, Status};
use super::config::{FastPath, FastPathMode, GatewayConfig, Group, Queued};
use super::datapath::inject::Injector;
use super::driver::{interface, now};
use airtcp_core::Flow;
use airtcp_edge::{FlowPhase, MechanismConfig, MobileEnd, Side};
use airtcp_wire::{EncodeError, encode};
pub use copies::{Copier, CopySwitch, Taken};
use libbpf_rs::Link;
use program::Program;
pub use ring::LENT;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the thread waits for something to answer before it looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(50);
/// How often it looks at the interfaces.
const LOOK: Duration = Duration::from_secs(1);
/// How often it looks at every connection.
const SWEEP: Duration = Duration::from_secs(10);

/// The programs at work.
#[derive(Debug, Default)]
pub struct FastPaths {
    /// For groups whose packets are filtered in the kernel.
    groups: Vec<GroupPath>,
    /// For all groups that get copies.
    copier: Option<Copier>,
}

/// Programs for groups that had none, at work; they go when this is dropped.
#[derive(Debug)]
pub struct Prepared {
    groups: Vec<GroupPath>,
    copier: Option<Copier>,
}

impl FastPaths {
    /// Puts programs to work for the groups of a configuration that are to have them and have none yet. Returned is that
    /// configuration as it can be: a group whose programs do not work here is without
    /// [`fast_path`](Group::fast_path), which the log says with the reason.
    pub fn prepare(&self, mut config: GatewayConfig) -> (GatewayConfig, Prepared) {
        let mut prepared = Prepared { groups: Vec::new(), copier: None };
        let all = config.clone();
        for group in &mut config.groups {
            let started = match all.fast_path(group) {
                Ok(FastPath::Filter) if self.find(group, &all).is_some() => Ok(()),
                Ok(FastPath::Filter) => {
                    GroupPath::start(group, &all).map(|path| prepared.groups.push(path))
                }
                Ok(FastPath::Copies) if self.copier.is_some() || prepared.copier.is_some() => {
                    Ok(())
                }
                Ok(FastPath::Copies) => {
                    Copier::start().map(|copier| prepared.copier = Some(copier))
                }
                Err(why)
                    if group.fast_path == FastPathMode::Auto
                        && all.queued(group) == Queued::Always =>
                {
                    tracing::info!(group = %group.name, "packets come to the gateway: no fast path {why}");
                    continue;
                }
                Err(_) => continue,
            };
            if let Err(error) = started {
                let group_name = &group.name;
                tracing::info!(group = %group_name, "packets come to the gateway, as the fast path does not work here: {error}");
                group.fast_path = FastPathMode::Off;
            }
        }
        (config, prepared)
    }

    /// Goes on with a configuration that came out of [`FastPaths::prepare`]; groups keep their connections.
    pub fn commit(&mut self, config: &GatewayConfig, prepared: Prepared) {
        let old = std::mem::replace(&mut self.groups, prepared.groups);
        for path in old {
            let mut groups = config.groups.iter();
            let goes_on = |group: &&Group| {
                path.serves(group, config) && config.fast_path(group) == Ok(FastPath::Filter)
            };
            let Some(group) = groups.find(goes_on) else { continue };
            if let Err(error) = path.state().adjust(group, config) {
                tracing::error!(group = %path.name, "the fast path is not as it should be: {error}");
            }
            self.groups.push(path);
        }
        let is_copied = |group: &&Group| config.fast_path(group) == Ok(FastPath::Copies);
        let mobiles: BTreeSet<_> =
            config.groups.iter().filter(is_copied).flat_map(|g| g.addresses.clone()).collect();
        self.copier = prepared.copier.or(self.copier.take()).filter(|_| !mobiles.is_empty());
        if let Some(copier) = &mut self.copier
            && let Err(error) = copier.configure(mobiles)
        {
            tracing::error!("packets are not copied as they should be: {error}");
        }
    }

    /// Where copies are, if a group gets any.
    pub fn copier(&self) -> Option<&Copier> {
        self.copier.as_ref()
    }

    /// For whom decides whose packets are queued, if a group gets copies.
    pub fn copy_switch(&self) -> Option<CopySwitch> {
        let switch = self.copier.as_ref()?.switch();
        let failed = |error: &_| tracing::error!("what is queued is copied, too: {error}");
        switch.inspect_err(failed).ok()
    }

    fn find(&self, group: &Group, config: &GatewayConfig) -> Option<&GroupPath> {
        self.groups.iter().find(|path| path.serves(group, config))
    }

    /// Adds what the programs do to what the rest of the gateway does.
    pub fn report(&self, status: &mut Status) {
        if let Some(copier) = &self.copier {
            match copier.missed() {
                Ok(missed) => drop(status.counters.insert("copies_missed".to_owned(), missed)),
                Err(error) => tracing::error!("the counter of copies cannot be read: {error}"),
            }
        }
        for path in &self.groups {
            match path.report(Status::LISTED.saturating_sub(status.flows.len())) {
                Ok(report) => {
                    status.flow_count += report.group.flows;
                    status.groups.push(report.group);
                    status.flows.extend(report.flows);
                    for (name, count) in report.packets {
                        *status.counters.entry(name.to_owned()).or_default() += count;
                    }
                }
                Err(error) => {
                    let group = &path.name;
                    tracing::error!(%group, "the counters of the fast path cannot be read: {error}");
                }
            }
        }
    }
}

/// What there is to say about a group.
struct Report {
    group: GroupStatus,
    flows: Vec<FlowStatus>,
    packets: Vec<(&'static str, u64)>,
}

/// A group with programs of its own, until it is dropped.
#[derive(Debug)]
struct GroupPath {
    name: String,
    /// Most connections, which cannot change.
    flows: usize,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works with, too.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    stop: AtomicBool,
    injected: AtomicU64,
    injections_failed: AtomicU64,
}

/// Programs and where they are attached.
struct State {
    program: Program,
    group: Group,
    /// All groups: which addresses this one has depends on those before it.
    groups: Vec<Group>,
    idle: airtcp_core::Duration,
    /// By interface, its index and the links there.
    links: BTreeMap<String, (u32, [Link; 2])>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("links", &self.links).finish_non_exhaustive()
    }
}

impl GroupPath {
    fn start(group: &Group, config: &GatewayConfig) -> libbpf_rs::Result<Self> {
        let (name, flows) = (group.name.clone(), config.limits.flows);
        let program = Program::load(flows)?;
        let injector = Injector::open()?;
        let mut state = State {
            program,
            group: group.clone(),
            groups: config.groups.clone(),
            idle: config.limits.idle,
            links: BTreeMap::new(),
        };
        state.attach()?;
        if let Some(missing) = group.interfaces.iter().find(|name| !state.links.contains_key(*name))
        {
            let why = format!("there is no interface {missing:?}");
            return Err(io::Error::new(io::ErrorKind::NotFound, why).into());
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            stop: AtomicBool::new(false),
            injected: AtomicU64::new(0),
            injections_failed: AtomicU64::new(0),
        });
        let answers = shared.state().program.answers({
            let shared = shared.clone();
            move |flow, mobile| shared.answer(&injector, flow, &mobile)
        })?;
        let thread = thread::Builder::new().name("gateway-tcx".to_owned()).spawn({
            let shared = shared.clone();
            move || shared.work(&answers)
        })?;
        Ok(Self { name, flows, shared, thread: Some(thread) })
    }

    /// Whether this can go on as that group of a configuration.
    fn serves(&self, group: &Group, config: &GatewayConfig) -> bool {
        self.name == group.name && self.flows == config.limits.flows
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// `listed`: most connections to be told of.
    fn report(&self, listed: usize) -> libbpf_rs::Result<Report> {
        let state = self.state();
        let mechanism = state.group.mechanism.name().to_owned();
        let counters = state.program.counters()?;
        let named = counters.mechanism.by_name();
        let group = GroupStatus {
            name: self.name.clone(),
            mechanism: mechanism.clone(),
            path: "tcx".to_owned(),
            flows: state.program.flow_count(&counters),
            held: 0,
            segments_refused: counters.segments_refused,
            counters: named.into_iter().map(|(name, n)| (name.to_owned(), n)).collect(),
        };
        let flow = |flow: Flow| FlowStatus {
            fixed: flow.src.to_string(),
            mobile: flow.dst.to_string(),
            group: self.name.clone(),
            mechanism: mechanism.clone(),
            state: FlowPhase::Connected.name().to_owned(),
            since: None,
            held: 0,
            committed: false,
        };
        let flows = state.program.flows(listed).into_iter().map(flow).collect();
        let [injected, failed] = [&self.shared.injected, &self.shared.injections_failed]
            .map(|count| count.load(Ordering::Relaxed));
        let own = [("packets_injected", injected), ("injections_failed", failed)];
        Ok(Report { group, flows, packets: counters.packets().into_iter().chain(own).collect() })
    }
}

impl Drop for GroupPath {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    fn work(&self, answers: &libbpf_rs::RingBuffer<'_>) {
        let (mut looked, mut swept) = (Instant::now(), Instant::now());
        while !self.stop.load(Ordering::Relaxed) {
            if answers.poll(PATIENCE).is_err() {
                // Interrupted, or worse; then what is to be answered passes.
                thread::sleep(PATIENCE);
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                let mut state = self.state();
                let mut result = state.attach();
                if result.is_ok() && swept.elapsed() >= SWEEP {
                    swept = Instant::now();
                    let idle = state.idle;
                    result = state.program.sweep(now(), idle);
                }
                if let Err(error) = result {
                    tracing::warn!(group = %state.group.name, "the fast path is not as it should be: {error}");
                }
            }
        }
    }

    /// Repeats the mobile's latest acknowledgement to the fixed host; `flow` is from the fixed to the mobile host.
    fn answer(&self, injector: &Injector, flow: Flow, mobile: &MobileEnd) {
        // As any packet it may be lost; the next retransmission but one is answered again.
        let sent = segment(flow, mobile).is_ok_and(|p| injector.send(Side::Fixed, &p).is_ok());
        let count = if sent { &self.injected } else { &self.injections_failed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl State {
    /// Goes on with this configuration.
    fn adjust(&mut self, group: &Group, config: &GatewayConfig) -> libbpf_rs::Result<()> {
        self.group = group.clone();
        self.groups = config.groups.clone();
        self.idle = config.limits.idle;
        self.links.retain(|name, _| group.interfaces.contains(name));
        self.configure()?;
        self.attach()
    }

    /// Attaches the programs to the group's interfaces where they are not, if an interface is there.
    fn attach(&mut self) -> libbpf_rs::Result<()> {
        let mut is_changed = false;
        for name in &self.group.interfaces {
            let (index, known) = (interface(name), self.links.get(name).map(|(index, _)| *index));
            if index == known {
                continue;
            }
            is_changed = true;
            self.links.remove(name);
            if let Some(index) = index {
                self.links.insert(name.clone(), (index, self.program.attach(index)?));
            }
        }
        if is_changed { self.configure() } else { Ok(()) }
    }

    /// Tells the programs what to do, and with whose packets.
    fn configure(&mut self) -> libbpf_rs::Result<()> {
        let indices = self.links.iter().map(|(name, (index, _))| (name.clone(), *index)).collect();
        let prefixes = prefixes::prefixes(&self.groups, &self.group.name, &indices);
        let MechanismConfig::PacketControl { threshold } = self.group.mechanism else {
            let why = "the group has another mechanism than Packet Control";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        };
        self.program.configure(threshold, self.idle, prefixes)
    }
}

/// The packet that repeats the mobile's latest acknowledgement; `flow` is from the fixed to the mobile host.
fn segment(flow: Flow, mobile: &MobileEnd) -> Result<Vec<u8>, EncodeError> {
    let mut packet = Vec::new();
    encode(&mobile.latest_ack::<Vec<u8>>(flow.reversed()), &mut packet)?;
    Ok(packet)
}
