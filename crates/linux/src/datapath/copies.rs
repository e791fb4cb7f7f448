//! Copies of packets that the kernel forwards by itself, for mechanisms that only watch while a
//! mobile is in reach.
//!
//! Read first: `bpf/copies.bpf.c` (the program),
//! [`Queued::Watched`](airtcp_gateway::config::Queued::Watched).
//!
//! Holding each packet until this process has seen it costs more than everything else that is done
//! for it: in one run, 85 % of the kernel's packet rate with copies against 39 % without
//! (benches/gateway/README.md). While a mobile is in reach M-TCP+ and holdover forward everything
//! as it came, so the packets go on at once, and this process reads copies from ring buffers a
//! little later. When a mobile fades or is down, or a mechanism wants a packet dropped, its packets
//! are queued (`rules`) and no longer copied. For a moment both happen, so that no packet is
//! missed; to a mechanism that is a segment that the network duplicated. For packets that passed
//! until then it is as if the signal had come some milliseconds later.
//!
//! Wake never needs the packets themselves, and while a mobile answers not even copies: the program
//! notes when the mobile was sent something and when it was heard, and copies what is sent once an
//! answer is overdue (docs/internals/wake.md says why that is enough), with what it knows ([`Silence`]).
//! Mobiles that are reported fading or down are copied in full. A gateway that only observes sees
//! the same, and the program counts packets for it.
//!
//! An uplink is to the program what a mobile is, by its interface instead of an address; its
//! packets are also those of this host's own connections.
//!
//! If this process is too slow or stopped, the ring buffers fill up and copies are *missed*: their
//! bytes are not held, and after an outage the fixed host has to send them again. No packet waits.

use super::buffers::Spares;
use crate::kernel::bpf::{self, map, mapped, prefix};
use crate::kernel::host::interface;
use crate::kernel::netlink::u32_at;
use airtcp_core::Instant;
use airtcp_edge::{InterfaceName, MobileId, Side, Silence};
use airtcp_gateway::config::{FastPathMode, GatewayConfig, Group, Mark, Mode};
use airtcp_gateway::observe::{CLASSES, Traffic};
use airtcp_gateway::packets::Intercepted;
use airtcp_wire::Checksums;
use ipnet::IpNet;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, NF_INET_FORWARD, NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT,
    NFPROTO_IPV4, NFPROTO_IPV6, NetfilterOpts, Object, ProgramMut, RingBuffer, RingBufferBuilder,
};
use nix::time::{ClockId, clock_getres};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// `bpf/copies.bpf.c`, compiled.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/copies.bpf.o"));

/// Before table mangle (-150), at whose end packets are queued.
const PRIORITY: i32 = -151;

/// Copies taken at once.
const BATCH: usize = 256;

/// How often to look for more while copies come: a wake-up for each would cost more than the copy.
const INTERVAL: Duration = Duration::from_micros(500);

/// Before the name of an uplink where an address may stand, 16 bytes: no host has a multicast
/// address (RFC 4291 §2.7).
const UPLINK: u8 = 0xff;

/// Bytes of a `struct copy`.
const HEAD: usize = 48;

/// The only key of a map with one element.
const ONLY: [u8; 4] = [0; 4];

/// What is copied of a mobile's packets: the program's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum What {
    OfTcp = 0,
    OfAllProtocols = 1,
    ToSilentMobile = 2,
    FromUnansweredMobile = 3,
}

/// Mobiles that are treated otherwise for now: the program's words.
const QUEUED: [u8; 4] = 0u32.to_ne_bytes();
const COPIED: [u8; 4] = 1u32.to_ne_bytes();

impl What {
    fn of(group: &Group) -> Self {
        match group.mechanism.capabilities().all_protocols {
            None => Self::OfTcp,
            Some(Side::Mobile) => Self::ToSilentMobile,
            Some(Side::Fixed) => Self::FromUnansweredMobile,
        }
    }

    /// For mobiles that are in two groups, behind one interface or another.
    fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::OfAllProtocols }
    }
}

/// The program's `struct treatment`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Treatment {
    what: What,
    /// Index of the first group that has the mobile.
    group: u32,
}

impl Treatment {
    /// For mobiles that are in a later group, too.
    fn or(self, later: Self) -> Self {
        Self { what: self.what.or(later.what), ..self }
    }

    fn bytes(self) -> Vec<u8> {
        [self.what as u32, self.group].map(u32::to_ne_bytes).concat()
    }
}

/// Groups that packets can be counted of, at least: a reload may bring some.
const GROUPS: usize = 64;
/// Places of flows in the program's maps.
const PLACES: u32 = 1 << 18;

/// The [`Copier`], if any group gets copies.
#[derive(Debug, Default)]
pub struct Copies {
    copier: Option<Copier>,
}

/// A program loaded for a configuration that is not in force yet; dropped, it is gone.
#[derive(Debug)]
pub struct Prepared(Option<Copier>);

impl Copies {
    /// Loads the program if a group is to get copies and there are none yet. Returns the
    /// configuration as this machine can do it: where the program does not work, no group
    /// [is copied](Group::is_copied), and the log says why.
    pub fn prepare(&self, mut config: GatewayConfig) -> (GatewayConfig, Prepared) {
        let is_wanted = config.groups.iter().any(Group::is_copied);
        if !is_wanted || self.copier.is_some() {
            return (config, Prepared(None));
        }
        let observes = config.mode == Mode::Observe;
        let counted = observes.then(|| config.groups.len().max(GROUPS));
        match Copier::start(config.mark, counted) {
            Ok(copier) => (config, Prepared(Some(copier))),
            Err(error) => {
                tracing::info!(
                    "all packets wait for the gateway: there are no copies here: {error}"
                );
                for group in &mut config.groups {
                    group.fast_path = FastPathMode::Off;
                }
                (config, Prepared(None))
            }
        }
    }

    /// Goes on with a configuration that came out of [`Copies::prepare`].
    pub fn commit(&mut self, config: &GatewayConfig, Prepared(copier): Prepared) {
        let wanted = wanted(config);
        self.copier = copier.or(self.copier.take()).filter(|_| !wanted.is_empty());
        if let Some(copier) = &mut self.copier
            && let Err(error) = copier.configure(wanted)
        {
            tracing::error!("packets are not copied as they should be: {error}");
        }
    }

    /// Where copies come from, if a group gets any.
    pub fn copier(&self) -> Option<&Copier> {
        self.copier.as_ref()
    }

    /// For whoever decides whose packets are queued, if a group gets copies.
    pub fn switch(&self) -> Option<CopySwitch> {
        let failed = |error: &_| tracing::error!("queued packets are copied too: {error}");
        self.copier.as_ref()?.switch().inspect_err(failed).ok()
    }

    /// An uplink has this index from now on; none: the interface is gone.
    pub fn set_index(&mut self, uplink: InterfaceName, index: Option<u32>) {
        if let Some(copier) = &mut self.copier
            && let Err(error) = copier.set_index(uplink, index)
        {
            tracing::error!(%uplink, "packets are not copied as they should be: {error}");
        }
    }

    /// Copies all packets of a mobile from now on, also if it answers; or no longer.
    pub fn set_full(&self, mobile: MobileId, on: bool) {
        if let Some(copier) = &self.copier
            && let Err(error) = copier.set_full(mobile, on)
        {
            tracing::error!(%mobile, "packets are not copied as they should be: {error}");
        }
    }

    /// What was counted of the packets of each group, in the order of the configuration, TCP, QUIC
    /// and others; nothing unless the gateway observes.
    pub fn traffic(&self) -> Vec<[Traffic; CLASSES]> {
        let failed = |error: &_| tracing::error!("packets are not counted: {error}");
        let counted = self.copier.as_ref().map(|copier| copier.traffic().inspect_err(failed));
        counted.and_then(Result::ok).unwrap_or_default()
    }

    /// Packets of which no copy could be made for want of room; `None` without copies.
    pub fn missed(&self) -> Option<u64> {
        let failed =
            |error: &_| tracing::error!("the counter of missed copies cannot be read: {error}");
        self.copier.as_ref()?.missed().inspect_err(failed).ok()
    }
}

/// The program at work, until this is dropped or the process ends.
pub struct Copier {
    object: Object,
    switch: CopySwitch,
    /// The program's ring buffers, in the order in which they are read.
    rings: [MapHandle; 2],
    /// Reads them into `taken`.
    reader: RingBuffer<'static>,
    taken: Rc<RefCell<Vec<Intercepted>>>,
    wanted: Wanted,
    mark: Mark,
    /// The same across reloads: what the program knows keeps its place.
    secret: u64,
    /// Groups whose packets are counted.
    counted: Option<usize>,
    /// Indices of uplinks that are there.
    indices: BTreeMap<InterfaceName, u32>,
    /// For each IP version, where packets are forwarded; and where this host's own are, if there
    /// are uplinks.
    _forwarded: [Link; 2],
    local: Vec<Link>,
}

/// What is to be copied.
#[derive(Debug, Default)]
struct Wanted {
    mobiles: BTreeMap<IpNet, Treatment>,
    uplinks: BTreeMap<InterfaceName, Treatment>,
}

impl Wanted {
    fn is_empty(&self) -> bool {
        self.mobiles.is_empty() && self.uplinks.is_empty()
    }
}

impl fmt::Debug for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copier").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

/// How many copies there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// None: one can sleep until there are.
    None,
    /// Some: one should look again soon.
    Some,
    /// So many that there may be more.
    Most,
}

impl Taken {
    /// How long to wait before the next look; `None`: until the copier is readable.
    pub fn pause(self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Some => Some(INTERVAL),
            Self::Most => Some(Duration::ZERO),
        }
    }
}

impl Copier {
    /// Puts the program to work in the calling thread's network namespace; it copies nothing yet.
    /// It counts the packets of so many groups, if at all.
    ///
    /// # Errors
    /// The kernel has no BPF programs at netfilter's hooks (Linux 6.4), or a privilege is lacking.
    fn start(mark: Mark, counted: Option<usize>) -> libbpf_rs::Result<Self> {
        let mut object = bpf::open(OBJECT)?;
        for mut map in object.maps_mut() {
            match (map.name().to_str(), counted) {
                (Some("traffic"), Some(groups)) => {
                    map.set_max_entries((groups * CLASSES) as u32)?
                }
                (Some("flows"), Some(_)) => map.set_max_entries(PLACES)?,
                _ => {}
            }
        }
        let object = object.load()?;
        let handle = |name| MapHandle::try_from(&map(&object, name));
        let rings = [handle("copies")?, handle("backlog")?];
        let taken = Rc::<RefCell<Vec<Intercepted>>>::default();
        let spares = Arc::<Spares>::default();
        let mut builder = RingBufferBuilder::new();
        for ring in &rings {
            let (taken, spares) = (taken.clone(), spares.clone());
            builder.add(ring, move |record| {
                taken.borrow_mut().extend(copy(record, &spares));
                0
            })?;
        }
        let reader = builder.build()?;
        let _forwarded = attach(&object, "copy_forwarded", NF_INET_FORWARD)?;
        let (wanted, indices, local) = (Wanted::default(), BTreeMap::new(), Vec::new());
        let switch = CopySwitch::of(&object)?;
        let secret = RandomState::new().build_hasher().finish();
        Ok(Self {
            object,
            switch,
            rings,
            reader,
            taken,
            wanted,
            mark,
            secret,
            counted,
            indices,
            _forwarded,
            local,
        })
    }

    /// Copies the packets of these mobiles and uplinks from now on.
    fn configure(&mut self, wanted: Wanted) -> libbpf_rs::Result<()> {
        let Wanted { mobiles, uplinks } = &wanted;
        let mut all = mobiles.values().chain(uplinks.values());
        let any_protocol = u64::from(all.any(|treatment| treatment.what != What::OfTcp));
        let any_uplink = u64::from(!uplinks.is_empty());
        let Mark { value, mask } = self.mark;
        let secret = self.secret;
        let observes = u64::from(self.counted.is_some());
        let tick = tick().as_nanos() as u64;
        let settings =
            [any_protocol, any_uplink, u64::from(value), u64::from(mask), secret, observes, tick];
        let settings = settings.map(u64::to_ne_bytes).concat();
        map(&self.object, "settings").update(&ONLY, &settings, MapFlags::ANY)?;
        let map = map(&self.object, "mobiles");
        for (net, treatment) in mobiles {
            map.update(&prefix(*net), &treatment.bytes(), MapFlags::ANY)?;
        }
        for net in self.wanted.mobiles.keys().filter(|net| !mobiles.contains_key(net)) {
            map.delete(&prefix(*net))?;
        }
        if uplinks.is_empty() {
            self.local.clear();
        } else if self.local.is_empty() {
            for hook in [NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT] {
                self.local.extend(attach(&self.object, "copy_local", hook)?);
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
        let treatment = self.wanted.uplinks.get(&uplink);
        let index = index.filter(|_| treatment.is_some());
        let uplinks = map(&self.object, "uplinks");
        if let Some(old) = self.indices.remove(&uplink).filter(|old| Some(*old) != index) {
            uplinks.delete(&old.to_ne_bytes())?;
        }
        if let (Some(index), Some(treatment)) = (index, treatment) {
            let value = [&treatment.bytes()[..], &key(MobileId::Uplink(uplink))].concat();
            uplinks.update(&index.to_ne_bytes(), &value, MapFlags::ANY)?;
            self.indices.insert(uplink, index);
        }
        Ok(())
    }

    /// Appends the copies that are there, in their order, a bounded number.
    ///
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn take(&self, batch: &mut Vec<Intercepted>) -> io::Result<Taken> {
        let count = self.reader.consume_raw_n(BATCH);
        batch.append(&mut self.taken.borrow_mut());
        match usize::try_from(count) {
            Ok(0) => Ok(Taken::None),
            Ok(BATCH) => Ok(Taken::Most),
            Ok(_) => Ok(Taken::Some),
            Err(_) => Err(io::Error::from_raw_os_error(-count)),
        }
    }

    /// One of these is readable while there are copies.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        self.rings.each_ref().map(AsFd::as_fd)
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

    fn set_full(&self, mobile: MobileId, on: bool) -> libbpf_rs::Result<()> {
        self.switch.treat(mobile, on.then_some(&COPIED))
    }

    fn switch(&self) -> libbpf_rs::Result<CopySwitch> {
        CopySwitch::of(&self.object)
    }
}

/// Says whose packets are not to be copied.
#[derive(Debug)]
pub struct CopySwitch {
    watched: MapHandle,
    generation: MapHandle,
}

impl CopySwitch {
    fn of(object: &Object) -> libbpf_rs::Result<Self> {
        let handle = |name| MapHandle::try_from(&map(object, name));
        Ok(Self { watched: handle("watched")?, generation: handle("generation")? })
    }

    /// Copies a mobile's packets from now on, or no longer. Repetitions do no harm.
    ///
    /// # Errors
    /// There is no room for so many mobiles.
    pub fn set(&self, mobile: MobileId, on: bool) -> libbpf_rs::Result<()> {
        self.treat(mobile, (!on).then_some(&QUEUED))
    }

    /// Treats a mobile otherwise than the others, or no longer.
    fn treat(&self, mobile: MobileId, how: Option<&[u8]>) -> libbpf_rs::Result<()> {
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

/// What the program knows of mobiles by heart is to be looked up again.
fn renew(generation: &impl MapCore) -> libbpf_rs::Result<()> {
    // Threads that do this at once must not write the same number.
    static LATEST: AtomicU64 = AtomicU64::new(0);
    let number = LATEST.fetch_add(1, Relaxed) + 1;
    generation.update(&ONLY, &number.to_ne_bytes(), MapFlags::ANY)
}

/// How long the kernel's ticks are.
fn tick() -> Duration {
    let longest = Duration::from_millis(10);
    clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(longest, Duration::from)
}

/// What stands for a mobile in the program's maps.
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

/// What is to be copied of each uplink, and of each prefix: a longer one has what the shorter ones
/// around it have too, whose groups may be behind another interface.
fn wanted(config: &GatewayConfig) -> Wanted {
    let copied = || (0..).zip(&config.groups).filter(|(_, group)| group.is_copied());
    let treatment = |group, of: &Group| Treatment { what: What::of(of), group };
    let uplinks = copied().filter_map(|(n, group)| Some((group.uplink()?, treatment(n, group))));
    let all: Vec<(IpNet, Treatment)> = copied()
        .flat_map(|(n, group)| {
            let treatment = treatment(n, group);
            group.addresses().iter().map(move |&net| (net, treatment))
        })
        .collect();
    let of = |net: &IpNet| {
        let around = all.iter().filter(|(other, _)| other.contains(net));
        around.map(|&(_, treatment)| treatment).reduce(Treatment::or)
    };
    let mobiles = all.iter().filter_map(|(net, _)| Some((*net, of(net)?))).collect();
    Wanted { mobiles, uplinks: uplinks.collect() }
}

/// Puts a program at a hook, for both IP versions.
fn attach(object: &Object, name: &str, hooknum: i32) -> libbpf_rs::Result<[Link; 2]> {
    let attach = |protocol_family| {
        let priority = PRIORITY;
        let place = NetfilterOpts { protocol_family, hooknum, priority, ..Default::default() };
        program(object, name).attach_netfilter_with_opts(place)
    };
    Ok([attach(NFPROTO_IPV4)?, attach(NFPROTO_IPV6)?])
}

fn program<'a>(object: &'a Object, name: &str) -> ProgramMut<'a> {
    object.progs_mut().find(|program| program.name() == name).expect("the object has it")
}

/// A record of the ring buffer: `struct copy`, and the packet.
fn copy(record: &[u8], spares: &Arc<Spares>) -> Option<Intercepted> {
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
    Some(Intercepted {
        id: None,
        packet: spares.copy(packet.get(..field(0)? as usize)?),
        input: interface(4),
        output: interface(8),
        checksums: if field(12)? == 0 { Checksums::Ignore } else { Checksums::Verify },
        datagram: field(16).and_then(|size| u16::try_from(size).ok()).filter(|&size| size != 0),
        silence: match field(20)? {
            1 => Some(silence(false)),
            2 => Some(silence(true)),
            _ => None,
        },
    })
}
