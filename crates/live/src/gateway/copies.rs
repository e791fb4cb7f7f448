//! Copies of packets that the kernel forwards by itself, for mechanisms that only watch while a
//! mobile is in reach.
//!
//! Read first: `bpf/copies.bpf.c` (the program),
//! [`Queued::Watched`](super::config::Queued::Watched).
//!
//! Holding each packet until this process has seen it costs more than everything else that is done
//! for it: in one run, 85 % of the kernel's packet rate with copies against 39 % without
//! (benches/gateway/README.md). While a mobile is in reach M-TCP+ and holdover forward everything
//! as it came, so the packets go on at once, and this process reads copies from a ring buffer a
//! little later. When a mobile fades or is down, or a mechanism wants a packet dropped, its packets
//! are queued (`rules`) and no longer copied. For a moment both happen, so that no packet is
//! missed; to a mechanism that is a segment that the network duplicated. For packets that passed
//! until then it is as if the signal had come some milliseconds later.
//!
//! Wake never needs the packets themselves, and while a mobile answers not even copies: the program
//! notes when the mobile was sent something and when it was heard, and copies what is sent once an
//! answer is overdue (docs/wake.md says why that is enough), with what it knows ([`Silence`]).
//! Mobiles that are reported fading or down are copied in full.
//!
//! If this process is too slow or stopped, the ring buffer fills up and copies are *missed*: their
//! bytes are not held, and after an outage the fixed host has to send them again. No packet waits.

use super::config::{FastPathMode, GatewayConfig, Group};
use super::datapath::Intercepted;
use super::datapath::buffers::Spares;
use crate::bpf::{self, map, mapped, prefix};
use crate::netlink::u32_at;
use airtcp_core::Instant;
use airtcp_edge::{MechanismConfig, Silence, Towards};
use airtcp_wire::Checksums;
use ipnet::IpNet;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, NF_INET_FORWARD, NFPROTO_IPV4, NFPROTO_IPV6, NetfilterOpts,
    Object, ProgramMut, RingBuffer, RingBufferBuilder,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// `bpf/copies.bpf.c`, compiled.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/copies.bpf.o"));

/// Before table mangle (-150), at whose end packets are queued.
const PRIORITY: i32 = -151;

/// Copies taken at once.
const BATCH: usize = 256;

/// How often to look for more while copies come: a wake-up for each would cost more than the copy.
const INTERVAL: Duration = Duration::from_micros(500);

/// Bytes of a `struct copy`.
const HEAD: usize = 40;

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
        match &group.mechanism {
            MechanismConfig::Wake(wake) => match wake.towards {
                Towards::Mobile => Self::ToSilentMobile,
                Towards::Network => Self::FromUnansweredMobile,
            },
            _ => Self::OfTcp,
        }
    }

    /// For mobiles that are in two groups, behind one interface or another.
    fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::OfAllProtocols }
    }

    const fn bytes(self) -> [u8; 4] {
        (self as u32).to_ne_bytes()
    }
}

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
    /// [is copied](GatewayConfig::is_copied), and the log says why.
    pub fn prepare(&self, mut config: GatewayConfig) -> (GatewayConfig, Prepared) {
        let is_wanted = config.groups.iter().any(Group::is_copied);
        if !is_wanted || self.copier.is_some() {
            return (config, Prepared(None));
        }
        match Copier::start() {
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
        let mobiles = wanted(config);
        self.copier = copier.or(self.copier.take()).filter(|_| !mobiles.is_empty());
        if let Some(copier) = &mut self.copier
            && let Err(error) = copier.configure(mobiles)
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

    /// Copies all packets of a mobile from now on, also if it answers; or no longer.
    pub fn set_full(&self, mobile: IpAddr, on: bool) {
        if let Some(copier) = &self.copier
            && let Err(error) = copier.set_full(mobile, on)
        {
            tracing::error!(%mobile, "packets are not copied as they should be: {error}");
        }
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
    copies: MapHandle,
    /// Reads `copies` into `taken`.
    ring: RingBuffer<'static>,
    taken: Rc<RefCell<Vec<Intercepted>>>,
    mobiles: BTreeMap<IpNet, What>,
    /// One for each IP version.
    _links: [Link; 2],
}

impl fmt::Debug for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copier").field("mobiles", &self.mobiles).finish_non_exhaustive()
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
    ///
    /// # Errors
    /// The kernel has no BPF programs at netfilter's hooks (Linux 6.4), or a privilege is lacking.
    fn start() -> libbpf_rs::Result<Self> {
        let object = bpf::open(OBJECT)?.load()?;
        let copies = MapHandle::try_from(&map(&object, "copies"))?;
        let taken = Rc::<RefCell<Vec<Intercepted>>>::default();
        let spares = Arc::<Spares>::default();
        let mut builder = RingBufferBuilder::new();
        builder.add(&copies, {
            let taken = taken.clone();
            move |record| {
                taken.borrow_mut().extend(copy(record, &spares));
                0
            }
        })?;
        let ring = builder.build()?;
        let attach = |protocol_family| {
            let hooknum = NF_INET_FORWARD;
            let place = NetfilterOpts {
                protocol_family,
                hooknum,
                priority: PRIORITY,
                ..Default::default()
            };
            program(&object, "copy_forwarded").attach_netfilter_with_opts(place)
        };
        let links = [attach(NFPROTO_IPV4)?, attach(NFPROTO_IPV6)?];
        Ok(Self { object, copies, ring, taken, mobiles: BTreeMap::new(), _links: links })
    }

    /// Copies the packets of these mobiles from now on.
    fn configure(&mut self, mobiles: BTreeMap<IpNet, What>) -> libbpf_rs::Result<()> {
        let any_protocol = mobiles.values().any(|&what| what != What::OfTcp);
        let secret = RandomState::new().build_hasher().finish();
        let settings = [u64::from(any_protocol), secret].map(u64::to_ne_bytes).concat();
        map(&self.object, "settings").update(&ONLY, &settings, MapFlags::ANY)?;
        let map = map(&self.object, "mobiles");
        for (net, what) in &mobiles {
            map.update(&prefix(*net), &what.bytes(), MapFlags::ANY)?;
        }
        for net in self.mobiles.keys().filter(|net| !mobiles.contains_key(net)) {
            map.delete(&prefix(*net))?;
        }
        self.mobiles = mobiles;
        Ok(())
    }

    /// Appends the copies that are there, in their order, a bounded number.
    ///
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn take(&self, batch: &mut Vec<Intercepted>) -> io::Result<Taken> {
        let count = self.ring.consume_raw_n(BATCH);
        batch.append(&mut self.taken.borrow_mut());
        match usize::try_from(count) {
            Ok(0) => Ok(Taken::None),
            Ok(BATCH) => Ok(Taken::Most),
            Ok(_) => Ok(Taken::Some),
            Err(_) => Err(io::Error::from_raw_os_error(-count)),
        }
    }

    fn missed(&self) -> libbpf_rs::Result<u64> {
        let of_processors = map(&self.object, "missed").lookup_percpu(&ONLY, MapFlags::ANY)?;
        let count = |bytes: Vec<u8>| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
        Ok(of_processors.into_iter().flatten().map(count).sum())
    }

    fn set_full(&self, mobile: IpAddr, on: bool) -> libbpf_rs::Result<()> {
        treat(&map(&self.object, "watched"), mobile, on.then_some(&COPIED))
    }

    fn switch(&self) -> libbpf_rs::Result<CopySwitch> {
        MapHandle::try_from(&map(&self.object, "watched")).map(CopySwitch)
    }
}

/// Readable while there are copies.
impl AsFd for Copier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.copies.as_fd()
    }
}

/// Says whose packets are not to be copied.
#[derive(Debug)]
pub struct CopySwitch(MapHandle);

impl CopySwitch {
    /// Copies a mobile's packets from now on, or no longer. Repetitions do no harm.
    ///
    /// # Errors
    /// There is no room for so many mobiles.
    pub fn set(&self, mobile: IpAddr, on: bool) -> libbpf_rs::Result<()> {
        treat(&self.0, mobile, (!on).then_some(&QUEUED))
    }
}

/// Treats a mobile otherwise than the others, or no longer.
fn treat(watched: &impl MapCore, mobile: IpAddr, how: Option<&[u8]>) -> libbpf_rs::Result<()> {
    let key = mapped(mobile);
    match how {
        Some(how) => watched.update(&key, how, MapFlags::ANY),
        None => match watched.delete(&key) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
            result => result,
        },
    }
}

/// What is to be copied of each prefix: a longer one has what the shorter ones around it have too,
/// whose groups may be behind another interface.
fn wanted(config: &GatewayConfig) -> BTreeMap<IpNet, What> {
    let copied = config.groups.iter().filter(|group| group.is_copied());
    let all: Vec<(IpNet, What)> = copied
        .flat_map(|group| group.addresses.iter().map(|&net| (net, What::of(group))))
        .collect();
    let of = |net: &IpNet| {
        let around = all.iter().filter(|(other, _)| other.contains(net));
        around.map(|&(_, what)| what).reduce(What::or)
    };
    all.iter().filter_map(|(net, _)| Some((*net, of(net)?))).collect()
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
    let silence = |is_flow_new| Silence {
        since: Instant::from_nanos(nanos(24)),
        response: airtcp_core::Duration::from_nanos(nanos(32)),
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
