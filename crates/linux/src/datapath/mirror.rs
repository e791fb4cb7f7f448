//! Mirrors packets that the kernel forwards by itself, for mechanisms that only watch while a
//! mobile is in reach.
//!
//! Read first: `bpf/mirror.h` (the program), [`Queued::Watched`](airtcp_gateway::config::Queued::Watched),
//! docs/internals/datapath.md (the two places where the program is attached: [`MirrorPath`]).
//!
//! Holding each packet until this process has seen it costs more than everything else done for it:
//! in one run the gateway reached 85 % of the kernel's packet rate with mirrored packets, and 39 %
//! with queued ones (benches/gateway/README.md). While a mobile is in reach, M-TCP+ and holdover
//! forward every packet unchanged, so the kernel forwards it at once, and this process reads a copy
//! from a ring buffer a little later. When a mobile fades or is down, or a mechanism wants a packet
//! dropped, the mobile's packets are queued (`rules`) and no longer mirrored. For a moment both
//! happen, so that no packet is missed; a mechanism takes the second one for a duplicate. For
//! packets that passed before, it is as if the signal had come some milliseconds later.
//!
//! Wake needs no packets while a mobile answers: the program records when the mobile was last sent
//! something and when it last answered, and mirrors packets once an answer is overdue
//! (docs/internals/wake.md says why that is enough), with the state of the silence ([`Silence`]).
//! Packets of mobiles that are reported fading or down are all mirrored. A gateway that only
//! observes sees the same packets, and the program counts packets for it. Of connections that were
//! mirrored, wake also sees the end ([`Intercepted::is_closing`]).
//!
//! The program treats an uplink like a mobile, identified by its interface instead of an address.
//! Packets of this host's own connections are part of an uplink's traffic.
//!
//! If this process is too slow or stopped, the ring buffers fill up and packets are *missed*: their
//! bytes are not held, and after an outage the fixed host has to send them again. No packet waits.

use super::buffers::BufferPool;
use super::flow_tables::{self, FlowTable};
use super::rings::Rings;
use super::tc::{self, Attachments, Places};
use crate::kernel::bpf::{self, map, mapped, prefix};
use crate::kernel::host::interface;
use crate::kernel::netlink::u32_at;
use airtcp_core::Instant;
use airtcp_edge::{InterfaceName, MobileId, Side, Silence};
use airtcp_gateway::config::{
    DataPath, FastPathMode, GatewayConfig, Group, InterfacePattern, Mark, Mode,
};
use airtcp_gateway::observe::{CLASSES, Traffic};
use airtcp_gateway::packets::Intercepted;
use airtcp_wire::{Checksums, is_unfinished};
use ipnet::IpNet;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, NF_INET_FORWARD, NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT,
    NFPROTO_IPV4, NFPROTO_IPV6, NetfilterOpts, Object, ProgramMut,
};
use nix::time::{ClockId, clock_getres};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Object files compiled from `bpf/mirror.bpf.c` and `bpf/mirror_tc.bpf.c`.
static NETFILTER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mirror.bpf.o"));
static TC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mirror_tc.bpf.o"));

/// Priority at the hook: before table mangle (-150), at whose end packets are queued.
const PRIORITY: i32 = -151;

/// Polling interval while packets arrive: a wake-up for each would cost more than its copy.
const INTERVAL: Duration = Duration::from_micros(500);

/// First of the 16 bytes that stand for an uplink where an address may stand; its name follows. No
/// host has a multicast address (RFC 4291 §2.7).
const UPLINK: u8 = 0xff;

/// Size of the program's `struct mirror_header`.
const HEAD: usize = 48;

/// The only key of a map with one element.
const ONLY: [u8; 4] = [0; 4];

/// Packets of a mobile that are mirrored; values as in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Selection {
    Tcp = 0,
    AllProtocols = 1,
    ToSilentMobile = 2,
    FromUnansweredMobile = 3,
}

/// Override of a mobile's policy while its packets are queued: none is mirrored. The value is the
/// program's.
const QUEUED: [u8; 4] = 0u32.to_ne_bytes();
/// Override of a mobile's policy while all of its packets are mirrored.
const MIRRORED: [u8; 4] = 1u32.to_ne_bytes();

impl Selection {
    fn of(group: &Group) -> Self {
        match group.mechanism.capabilities().all_protocols {
            None => Self::Tcp,
            Some(Side::Mobile) => Self::ToSilentMobile,
            Some(Side::Fixed) => Self::FromUnansweredMobile,
        }
    }

    /// Selection for mobiles in two groups, behind one interface or another.
    fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::AllProtocols }
    }
}

/// Packets of a mobile that are mirrored, and its group: the program's `struct policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MirrorPolicy {
    selection: Selection,
    /// Index of the first group that contains the mobile.
    group: u32,
}

impl MirrorPolicy {
    /// Policy for mobiles that are also in a later group.
    fn or(self, later: Self) -> Self {
        Self { selection: self.selection.or(later.selection), ..self }
    }

    fn bytes(self) -> Vec<u8> {
        [self.selection as u32, self.group].map(u32::to_ne_bytes).concat()
    }
}

/// There are counters for at least this many groups, because a reload may add some.
const GROUPS: usize = 64;
/// Entries of the program's map of flows.
const PLACES: u32 = 1 << 18;

/// Where the program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorPath {
    /// At netfilter's hooks.
    Netfilter,
    /// At the interfaces.
    Tc,
}

impl fmt::Display for MirrorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Netfilter => DataPath::Netfilter.word(),
            Self::Tc => DataPath::Tc.word(),
        })
    }
}

/// A path that works here, and why it is taken.
#[derive(Debug)]
pub struct Chosen<T> {
    /// The path.
    pub path: MirrorPath,
    /// The result of trying it.
    pub found: T,
    /// The reason, as a clause.
    pub why: String,
}

/// Reason why packets cannot be mirrored.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// No path of those that may be taken works here.
    #[error("{0}")]
    NoPath(String),
    /// The path does not serve this group.
    #[error(
        "{group}: copies made by tc cannot serve it ({why}); expected `wake` and `mode = \"protect\"` for uplinks, or \
         data-path = \"netfilter\" where the kernel can"
    )]
    Unserved {
        /// Its name.
        group: String,
        /// The reason.
        why: &'static str,
    },
}

/// Chooses a path: the one that is wanted, or the first that works.
///
/// # Errors
/// None works; the reasons.
pub fn choose<T, E: fmt::Display>(
    wanted: DataPath,
    tables: &[FlowTable],
    mut attempt: impl FnMut(MirrorPath) -> Result<T, E>,
) -> Result<Chosen<T>, MirrorError> {
    use MirrorPath::{Netfilter, Tc};
    let (paths, mut why) = match wanted {
        DataPath::Netfilter => (vec![Netfilter], "the configuration wants it".to_owned()),
        DataPath::Tc => (vec![Tc], "the configuration wants it".to_owned()),
        DataPath::Auto => match tables.first() {
            Some(table) => {
                (vec![Tc, Netfilter], format!("{table} leads packets around netfilter's hooks"))
            }
            None => (vec![Netfilter, Tc], "it costs the least".to_owned()),
        },
    };
    let mut reasons = Vec::new();
    for path in paths {
        match attempt(path) {
            Ok(found) => return Ok(Chosen { path, found, why }),
            Err(error) => {
                why = format!("not by {path}: {error}");
                reasons.push(format!("{path}: {error}"));
            }
        }
    }
    Err(MirrorError::NoPath(reasons.join("; ")))
}

/// Connections that a path does not see because of these flow tables, a line each.
pub fn unseen(path: MirrorPath, tables: &[FlowTable]) -> Vec<String> {
    let of_table = |table: &FlowTable| match (table.is_by_hardware, path) {
        (true, _) => Some(format!(
            "{table} has `flags offload`: what the network card forwards is not seen, and not protected"
        )),
        (false, MirrorPath::Netfilter) => Some(format!(
            "{table} leads established connections around netfilter's hooks: they are not seen, and not protected"
        )),
        (false, MirrorPath::Tc) => None,
    };
    tables.iter().filter_map(of_table).collect()
}

/// Loads the program for a path, which changes nothing.
///
/// # Errors
/// The kernel has no such path, or a privilege is lacking.
pub fn attempt_to_load(path: MirrorPath) -> io::Result<()> {
    MirrorProgram::load(path, None).map(drop)
}

/// Attaches the program in the calling thread's network namespace and detaches it: shows whether a
/// path works.
///
/// # Errors
/// It does not.
pub fn attempt(path: MirrorPath) -> io::Result<()> {
    let mut program = MirrorProgram::start(path, Mark::default(), None)?;
    match &mut program.attached {
        Attached::Netfilter { .. } => Ok(()),
        Attached::Tc(attachments) => {
            let loopback = interface("lo").ok_or(io::ErrorKind::NotFound)?;
            attachments.attach_to(loopback)
        }
    }
}

/// The [`MirrorProgram`], if packets of any group are mirrored.
#[derive(Debug, Default)]
pub struct Mirror {
    program: Option<MirrorProgram>,
}

/// A program loaded for a configuration that is not in force yet; unloaded when dropped.
#[derive(Debug)]
pub struct Prepared(Option<MirrorProgram>);

impl Mirror {
    /// Loads the program if a group needs it and it is not loaded. Returns the configuration that
    /// this machine supports: if the program does not load, no group
    /// [is mirrored](Group::is_mirrored), and the log says why.
    ///
    /// # Errors
    /// The configuration wants a path that does not work here, or that cannot serve a group.
    pub fn prepare(
        &self,
        mut config: GatewayConfig,
    ) -> Result<(GatewayConfig, Prepared), MirrorError> {
        if !config.groups.iter().any(Group::is_mirrored) {
            return Ok((config, Prepared(None)));
        }
        let mut prepared = Prepared(None);
        if self.program.is_none() {
            let counted = (config.mode == Mode::Observe).then(|| config.groups.len().max(GROUPS));
            let tables = flow_tables::all();
            let start = |path| {
                let mut program = MirrorProgram::start(path, config.mark, counted)?;
                // Nothing is mirrored before `commit`.
                if let Attached::Tc(attachments) = &mut program.attached {
                    attachments.configure(wanted(&config).places())?;
                }
                Ok::<_, io::Error>(program)
            };
            match choose(config.data_path, &tables, start) {
                Ok(Chosen { path, found, why }) => {
                    tracing::info!(data_path = %path, "packets are mirrored: {why}");
                    for caution in unseen(path, &tables) {
                        tracing::warn!("{caution}");
                    }
                    prepared = Prepared(Some(found));
                }
                Err(error) if config.data_path != DataPath::Auto => return Err(error),
                Err(error) => {
                    tracing::info!(
                        "cannot mirror packets; all packets are queued instead: {error}"
                    );
                    config.groups.iter_mut().for_each(|group| group.fast_path = FastPathMode::Off);
                }
            }
        }
        let program = prepared.0.as_ref().or(self.program.as_ref());
        if program.is_some_and(|program| matches!(program.attached, Attached::Tc(_))) {
            for group in config.groups.iter_mut().filter(|group| group.is_mirrored()) {
                serve_by_tc(group, config.mode)?;
            }
        }
        Ok((config, prepared))
    }

    /// Puts a configuration from [`Mirror::prepare`] in force.
    pub fn commit(&mut self, config: &GatewayConfig, Prepared(program): Prepared) {
        let wanted = wanted(config);
        self.program = program.or(self.program.take()).filter(|_| !wanted.is_empty());
        if let Some(program) = &mut self.program
            && let Err(error) = program.configure(wanted)
        {
            tracing::error!("cannot update the mirrored packets: {error}");
        }
    }

    /// Follows changes of the interfaces, where the program is attached to them.
    pub fn follow(&mut self) {
        if let Some(MirrorProgram { attached: Attached::Tc(attachments), .. }) = &mut self.program {
            attachments.follow();
        }
    }

    /// Appends the mirrored packets that wait, in order; not more than a batch of them.
    ///
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn take(&mut self, now: Instant, batch: &mut Vec<Intercepted>) -> io::Result<Taken> {
        match &mut self.program {
            Some(program) => program.rings.take(now, batch),
            None => Ok(Taken::None),
        }
    }

    /// Gives memory back that only many packets need.
    pub fn rest(&self) {
        if let Some(program) = &self.program {
            program.rings.rest();
        }
    }

    /// The source of mirrored packets, if any are mirrored.
    pub fn program(&self) -> Option<&MirrorProgram> {
        self.program.as_ref()
    }

    /// A switch for the owner of the queue rules, if any packets are mirrored.
    pub fn switch(&self) -> Option<MirrorSwitch> {
        let failed =
            |error: &_| tracing::error!("cannot stop mirroring of queued packets: {error}");
        self.program.as_ref()?.switch().inspect_err(failed).ok()
    }

    /// Sets the interface index of an uplink; `None`: the interface is gone.
    pub fn set_index(&mut self, uplink: InterfaceName, index: Option<u32>) {
        if let Some(program) = &mut self.program
            && let Err(error) = program.set_index(uplink, index)
        {
            tracing::error!(%uplink, "cannot update the mirrored packets: {error}");
        }
    }

    /// Begins or ends to mirror all packets of a mobile, even while it answers.
    pub fn mirror_all(&self, mobile: MobileId, on: bool) {
        if let Some(program) = &self.program
            && let Err(error) = program.mirror_all(mobile, on)
        {
            tracing::error!(%mobile, "cannot update the mirrored packets: {error}");
        }
    }

    /// Traffic of each group, in the order of the configuration, as TCP, QUIC and others; empty
    /// unless the gateway observes.
    pub fn traffic(&self) -> Vec<[Traffic; CLASSES]> {
        let failed = |error: &_| tracing::error!("cannot read the packet counters: {error}");
        let counted = self.program.as_ref().map(|program| program.traffic().inspect_err(failed));
        counted.and_then(Result::ok).unwrap_or_default()
    }

    /// Packets that could not be mirrored because the ring buffers were full; `None` if packets are
    /// not mirrored.
    pub fn missed(&self) -> Option<u64> {
        let failed =
            |error: &_| tracing::error!("cannot read the counter of missed packets: {error}");
        self.program.as_ref()?.missed().inspect_err(failed).ok()
    }
}

/// Queues the packets of a group that tc cannot serve, if its mechanism can work so.
fn serve_by_tc(group: &mut Group, mode: Mode) -> Result<(), MirrorError> {
    let unserved = |why| MirrorError::Unserved { group: group.name.clone(), why };
    if !group.is_served_by_tc(mode) {
        if mode == Mode::Observe {
            return Err(unserved("it sees translated addresses of packets to hosts on board"));
        }
        tracing::info!("{}: all packets are queued: tc cannot mirror them", group.name);
        group.fast_path = FastPathMode::Off;
    } else if let Some(uplink) = group.uplink()
        && !flow_tables::all().is_empty()
        && tc::is_behind_flow_tables(uplink.as_str())
    {
        return Err(unserved("a flow table leads its packets around its PPP interface"));
    }
    Ok(())
}

/// The places of the program.
enum Attached {
    /// The kernel detaches them when this is dropped or the process ends.
    Netfilter {
        /// Attachments to FORWARD, one for each IP version.
        _forwarded: [Link; 2],
        /// Attachments to LOCAL_IN and LOCAL_OUT; empty without uplinks.
        local: Vec<Link>,
    },
    Tc(Attachments),
}

/// The loaded program; detached when this is dropped.
pub struct MirrorProgram {
    object: Object,
    switch: MirrorSwitch,
    rings: Rings,
    wanted: MirrorTargets,
    mark: Mark,
    /// Key of the program's hashes. Kept across reloads, so that entries keep their places.
    secret: u64,
    /// Number of groups whose packets are counted, if any are.
    counted: Option<usize>,
    /// Indices of the uplinks that exist.
    indices: BTreeMap<InterfaceName, u32>,
    attached: Attached,
}

/// Mobiles and uplinks whose packets are mirrored.
#[derive(Debug, Default)]
struct MirrorTargets {
    mobiles: BTreeMap<IpNet, MirrorPolicy>,
    uplinks: BTreeMap<InterfaceName, MirrorPolicy>,
    /// Interfaces behind which the mobiles are; `None`: any.
    interfaces: Option<BTreeSet<InterfacePattern>>,
}

impl MirrorTargets {
    fn is_empty(&self) -> bool {
        self.mobiles.is_empty() && self.uplinks.is_empty()
    }

    fn places(&self) -> Places {
        Places { mobiles: self.interfaces.clone(), has_uplinks: !self.uplinks.is_empty() }
    }
}

impl fmt::Debug for MirrorProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MirrorProgram").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

/// Result of [`Mirror::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// No packets: the caller can sleep until the program is readable.
    None,
    /// Some packets: the caller should look again soon.
    Some,
    /// A full batch: there may be more packets.
    Most,
}

impl Taken {
    /// Time to wait before the next look; `None`: until the program is readable.
    pub fn pause(self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Some => Some(INTERVAL),
            Self::Most => Some(Duration::ZERO),
        }
    }
}

impl MirrorProgram {
    /// Prepares the program for a path in the calling thread's network namespace; it mirrors nothing
    /// yet. It counts the packets of `counted` groups, if given.
    ///
    /// # Errors
    /// The kernel has no such path, or a privilege is lacking.
    fn start(path: MirrorPath, mark: Mark, counted: Option<usize>) -> io::Result<Self> {
        let object = Self::load(path, counted)?;
        Self::attach(object, path, mark, counted).map_err(explained)
    }

    /// Loads the program.
    fn load(path: MirrorPath, counted: Option<usize>) -> io::Result<Object> {
        let load = || -> libbpf_rs::Result<Object> {
            let mut object = bpf::open(match path {
                MirrorPath::Netfilter => NETFILTER,
                MirrorPath::Tc => TC,
            })?;
            for mut map in object.maps_mut() {
                match (map.name().to_str(), counted) {
                    (Some("traffic"), Some(groups)) => {
                        map.set_max_entries((groups * CLASSES) as u32)?
                    }
                    (Some("flows"), Some(_)) => map.set_max_entries(PLACES)?,
                    _ => {}
                }
            }
            object.load()
        };
        load().map_err(explained)
    }

    fn attach(
        object: Object,
        path: MirrorPath,
        mark: Mark,
        counted: Option<usize>,
    ) -> libbpf_rs::Result<Self> {
        let rings = Rings::new(MapHandle::try_from(&map(&object, "rings"))?)?;
        let attached = match path {
            MirrorPath::Netfilter => {
                let _forwarded = attach(&object, "mirror_forwarded", NF_INET_FORWARD)?;
                Attached::Netfilter { _forwarded, local: Vec::new() }
            }
            MirrorPath::Tc => {
                tc::remove_left()?;
                Attached::Tc(Attachments::new(&object)?)
            }
        };
        let (wanted, indices) = (MirrorTargets::default(), BTreeMap::new());
        let switch = MirrorSwitch::of(&object)?;
        let secret = RandomState::new().build_hasher().finish();
        Ok(Self { object, switch, rings, wanted, mark, secret, counted, indices, attached })
    }

    /// Mirrors the packets of these mobiles and uplinks from now on.
    fn configure(&mut self, wanted: MirrorTargets) -> libbpf_rs::Result<()> {
        let MirrorTargets { mobiles, uplinks, .. } = &wanted;
        let mut all = mobiles.values().chain(uplinks.values());
        let any_protocol = u64::from(all.any(|policy| policy.selection != Selection::Tcp));
        let any_uplink = u64::from(!uplinks.is_empty());
        let Mark { value, mask } = self.mark;
        let secret = self.secret;
        let observes = u64::from(self.counted.is_some());
        let tick = tick().as_nanos() as u64;
        let (value, mask) = (u64::from(value), u64::from(mask));
        let bridged = u64::from(is_bridge_filtered());
        let settings = [any_protocol, any_uplink, value, mask, secret, observes, tick, bridged];
        let settings = settings.map(u64::to_ne_bytes).concat();
        map(&self.object, "settings").update(&ONLY, &settings, MapFlags::ANY)?;
        let map = map(&self.object, "mobiles");
        for (net, policy) in mobiles {
            map.update(&prefix(*net), &policy.bytes(), MapFlags::ANY)?;
        }
        for net in self.wanted.mobiles.keys().filter(|net| !mobiles.contains_key(net)) {
            map.delete(&prefix(*net))?;
        }
        match &mut self.attached {
            Attached::Netfilter { local, .. } if uplinks.is_empty() => local.clear(),
            Attached::Netfilter { local, .. } if local.is_empty() => {
                for hook in [NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT] {
                    local.extend(attach(&self.object, "mirror_local", hook)?);
                }
            }
            Attached::Netfilter { .. } => {}
            Attached::Tc(attachments) => {
                attachments.configure(wanted.places())?;
            }
        }
        renew(&self.switch.generation)?;
        let before = std::mem::replace(&mut self.wanted, wanted).uplinks;
        let all: BTreeSet<_> = before.keys().chain(self.wanted.uplinks.keys()).copied().collect();
        for uplink in all {
            self.set_index(uplink, interface(uplink.as_str()))?;
        }
        Ok(())
    }

    fn set_index(&mut self, uplink: InterfaceName, index: Option<u32>) -> libbpf_rs::Result<()> {
        let policy = self.wanted.uplinks.get(&uplink);
        let index = index.filter(|_| policy.is_some());
        let uplinks = map(&self.object, "uplinks");
        if let Some(old) = self.indices.remove(&uplink).filter(|old| Some(*old) != index) {
            uplinks.delete(&old.to_ne_bytes())?;
        }
        if let (Some(index), Some(policy)) = (index, policy) {
            let value = [&policy.bytes()[..], &key(MobileId::Uplink(uplink))].concat();
            uplinks.update(&index.to_ne_bytes(), &value, MapFlags::ANY)?;
            self.indices.insert(uplink, index);
        }
        Ok(())
    }

    /// Descriptors of which one is readable while packets wait, or interfaces may have changed
    /// ([`Mirror::follow`]).
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let mut fds: Vec<_> = self.rings.fds().collect();
        if let Attached::Tc(attachments) = &self.attached {
            fds.push(attachments.changes());
        }
        fds
    }

    /// Where the program is attached.
    pub fn path(&self) -> MirrorPath {
        match self.attached {
            Attached::Netfilter { .. } => MirrorPath::Netfilter,
            Attached::Tc(_) => MirrorPath::Tc,
        }
    }

    fn missed(&self) -> libbpf_rs::Result<u64> {
        let of_processors = map(&self.object, "missed").lookup_percpu(&ONLY, MapFlags::ANY)?;
        let count = |bytes: Vec<u8>| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
        Ok(of_processors.into_iter().flatten().map(count).sum())
    }

    fn traffic(&self) -> libbpf_rs::Result<Vec<[Traffic; CLASSES]>> {
        let map = map(&self.object, "traffic");
        let of_place = |place: usize| -> libbpf_rs::Result<Traffic> {
            let of_processors = map.lookup_percpu(&(place as u32).to_ne_bytes(), MapFlags::ANY)?;
            let read = |bytes: Vec<u8>| {
                let number = |at: usize| {
                    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                    bytes.map_or(0, u64::from_ne_bytes)
                };
                Traffic { packets: number(0), bytes: number(8), flows: number(16) }
            };
            Ok(of_processors
                .into_iter()
                .flatten()
                .map(read)
                .fold(Traffic::default(), Traffic::plus))
        };
        let of_group = |group: usize| -> libbpf_rs::Result<[Traffic; CLASSES]> {
            let of_class = |class| of_place(group * CLASSES + class);
            Ok([of_class(0)?, of_class(1)?, of_class(2)?])
        };
        (0..self.counted.unwrap_or(0)).map(of_group).collect()
    }

    fn mirror_all(&self, mobile: MobileId, on: bool) -> libbpf_rs::Result<()> {
        self.switch.override_policy(mobile, on.then_some(&MIRRORED))
    }

    fn switch(&self) -> libbpf_rs::Result<MirrorSwitch> {
        MirrorSwitch::of(&self.object)
    }
}

/// Switches the mirroring of a mobile's packets off and on.
#[derive(Debug)]
pub struct MirrorSwitch {
    watched: MapHandle,
    generation: MapHandle,
}

impl MirrorSwitch {
    fn of(object: &Object) -> libbpf_rs::Result<Self> {
        let handle = |name| MapHandle::try_from(&map(object, name));
        Ok(Self { watched: handle("watched")?, generation: handle("generation")? })
    }

    /// Begins or ends to mirror a mobile's packets. Idempotent.
    ///
    /// # Errors
    /// The program's map is full.
    pub fn set(&self, mobile: MobileId, on: bool) -> libbpf_rs::Result<()> {
        self.override_policy(mobile, (!on).then_some(&QUEUED))
    }

    /// Sets or removes the override of a mobile's policy.
    fn override_policy(&self, mobile: MobileId, how: Option<&[u8]>) -> libbpf_rs::Result<()> {
        let key = key(mobile);
        match how {
            Some(how) => self.watched.update(&key, how, MapFlags::ANY)?,
            None => match self.watched.delete(&key) {
                Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => {}
                result => result?,
            },
        }
        renew(&self.generation)
    }
}

/// Invalidates the cache of mobiles in the program.
fn renew(generation: &impl MapCore) -> libbpf_rs::Result<()> {
    // Threads that do this at once must not write the same number.
    static LATEST: AtomicU64 = AtomicU64::new(0);
    let number = LATEST.fetch_add(1, Relaxed) + 1;
    generation.update(&ONLY, &number.to_ne_bytes(), MapFlags::ANY)
}

/// True if netfilter sees packets that bridges forward (Documentation/networking/bridge.rst of Linux).
fn is_bridge_filtered() -> bool {
    let is_on = |name| {
        let path = format!("/proc/sys/net/bridge/bridge-nf-call-{name}");
        std::fs::read_to_string(path).is_ok_and(|value| value.trim() != "0")
    };
    is_on("iptables") || is_on("ip6tables")
}

/// Length of the kernel's tick.
fn tick() -> Duration {
    let longest = Duration::from_millis(10);
    clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(longest, Duration::from)
}

/// Key of a mobile in the program's maps.
fn key(mobile: MobileId) -> [u8; 16] {
    match mobile {
        MobileId::Host(ip) => mapped(ip),
        MobileId::Uplink(interface) => {
            let mut key = [UPLINK; 16];
            key[1..].copy_from_slice(&interface.padded());
            key
        }
    }
}

/// Policy of each uplink and prefix. A longer prefix includes the policies of the shorter ones
/// around it, whose groups may be behind another interface.
fn wanted(config: &GatewayConfig) -> MirrorTargets {
    let copied = || (0..).zip(&config.groups).filter(|(_, group)| group.is_mirrored());
    let policy = |group, of: &Group| MirrorPolicy { selection: Selection::of(of), group };
    let uplinks = copied().filter_map(|(n, group)| Some((group.uplink()?, policy(n, group))));
    let all: Vec<(IpNet, MirrorPolicy)> = copied()
        .flat_map(|(n, group)| {
            let policy = policy(n, group);
            group.addresses().iter().map(move |&net| (net, policy))
        })
        .collect();
    let of = |net: &IpNet| {
        let around = all.iter().filter(|(other, _)| other.contains(net));
        around.map(|&(_, policy)| policy).reduce(MirrorPolicy::or)
    };
    let mobiles = all.iter().filter_map(|(net, _)| Some((*net, of(net)?))).collect();
    let mut interfaces = Some(BTreeSet::new());
    for (_, group) in copied().filter(|(_, group)| group.uplink().is_none()) {
        interfaces = match (interfaces, group.interfaces()) {
            (None, _) | (_, []) => None,
            (Some(mut all), more) => {
                all.extend(more.iter().copied());
                Some(all)
            }
        };
    }
    MirrorTargets { mobiles, uplinks: uplinks.collect(), interfaces }
}

/// Attaches a program to a hook, for both IP versions.
fn attach(object: &Object, name: &str, hooknum: i32) -> libbpf_rs::Result<[Link; 2]> {
    let attach = |protocol_family| {
        let priority = PRIORITY;
        let place = NetfilterOpts { protocol_family, hooknum, priority, ..Default::default() };
        program(object, name).attach_netfilter_with_opts(place)
    };
    Ok([attach(NFPROTO_IPV4)?, attach(NFPROTO_IPV6)?])
}

/// The error of libbpf, with the reason that it gave.
fn explained(error: libbpf_rs::Error) -> io::Error {
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
        // The error keeps its number only as text. EACCES is the verifier's.
        return if format!("{error:#}").ends_with("(os error 13)") {
            io::Error::other(
                "the kernel's verifier refuses the program (without CAP_PERFMON it is stricter)",
            )
        } else {
            let message =
                "no permission to load BPF programs (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN)";
            io::Error::new(io::ErrorKind::PermissionDenied, message)
        };
    }
    let warning = bpf::last_warning();
    let hint = if warning.is_empty() { warning } else { format!(" ({warning})") };
    io::Error::other(format!("{error:#}{hint}"))
}

fn program<'a>(object: &'a Object, name: &str) -> ProgramMut<'a> {
    object.progs_mut().find(|program| program.name() == name).expect("the object has it")
}

/// Parses a record of the ring buffer: `struct mirror_header`, then the packet.
pub(super) fn intercepted(record: &[u8], pool: &Arc<BufferPool>) -> Option<Intercepted> {
    let (head, packet) = record.split_at_checked(HEAD)?;
    let field = |at| u32_at(head, at);
    let nanos = |at| u64::from_ne_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    let interface = |at| field(at).filter(|&index| index != 0);
    let duration = |at| airtcp_core::Duration::from_nanos(nanos(at));
    let silence = |is_flow_new| Silence {
        since: Instant::from_nanos(nanos(24)),
        response: duration(32),
        round_trip: duration(40),
        is_flow_new,
    };
    let packet = packet.get(..field(0)? as usize)?;
    Some(Intercepted {
        id: None,
        packet: pool.copy(packet),
        input: interface(4),
        output: interface(8),
        checksums: match field(12)? {
            0 => Checksums::Ignore,
            2 if is_unfinished(packet) => Checksums::Ignore,
            _ => Checksums::Verify,
        },
        datagram: field(16).and_then(|size| u16::try_from(size).ok()).filter(|&size| size != 0),
        silence: match field(20)? {
            1 => Some(silence(false)),
            2 => Some(silence(true)),
            _ => None,
        },
        is_closing: field(20)? == 3,
    })
}
