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
//! If this process is too slow or stopped, the ring buffer fills up and copies are *missed*: their
//! bytes are not held, and after an outage the fixed host has to send them again. No packet waits.

use super::config::{FastPathMode, GatewayConfig, Group};
use super::datapath::Intercepted;
use super::datapath::buffers::Spares;
use crate::bpf::{self, map, mapped, prefix};
use crate::netlink::u32_at;
use airtcp_wire::Checksums;
use ipnet::IpNet;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, NF_INET_FORWARD, NFPROTO_IPV4, NFPROTO_IPV6, NetfilterOpts,
    Object, ProgramMut, RingBuffer, RingBufferBuilder,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
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
const HEAD: usize = 20;

/// The only key of a map with one element, and the value where only the key counts.
const ONLY: [u8; 4] = [0; 4];

/// What is copied of a mobile's packets.
const OF_TCP: [u8; 4] = 0u32.to_ne_bytes();
const OF_ALL_PROTOCOLS: [u8; 4] = 1u32.to_ne_bytes();

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
        let copied = config.groups.iter().filter(|group| group.is_copied());
        let mobiles: BTreeMap<_, _> = copied
            .flat_map(|group| group.addresses.iter().map(|net| (*net, group.is_of_all_protocols())))
            .collect();
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
    /// And whether packets of all protocols are copied, not of TCP alone.
    mobiles: BTreeMap<IpNet, bool>,
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
    fn configure(&mut self, mobiles: BTreeMap<IpNet, bool>) -> libbpf_rs::Result<()> {
        let which = |all| if all { &OF_ALL_PROTOCOLS } else { &OF_TCP };
        let any = mobiles.values().any(|&all| all);
        map(&self.object, "any_protocol").update(&ONLY, which(any), MapFlags::ANY)?;
        let map = map(&self.object, "mobiles");
        for (net, &all) in &mobiles {
            map.update(&prefix(*net), which(all), MapFlags::ANY)?;
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

    fn switch(&self) -> libbpf_rs::Result<CopySwitch> {
        MapHandle::try_from(&map(&self.object, "queued")).map(CopySwitch)
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
        let key = mapped(mobile);
        match on {
            false => self.0.update(&key, &ONLY, MapFlags::ANY),
            true => match self.0.delete(&key) {
                Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
                result => result,
            },
        }
    }
}

fn program<'a>(object: &'a Object, name: &str) -> ProgramMut<'a> {
    object.progs_mut().find(|program| program.name() == name).expect("the object has it")
}

/// A record of the ring buffer: `struct copy`, and the packet.
fn copy(record: &[u8], spares: &Arc<Spares>) -> Option<Intercepted> {
    let (head, packet) = record.split_at_checked(HEAD)?;
    let field = |at| u32_at(head, at);
    let interface = |at| field(at).filter(|&index| index != 0);
    Some(Intercepted {
        id: None,
        packet: spares.copy(packet.get(..field(0)? as usize)?),
        input: interface(4),
        output: interface(8),
        checksums: if field(12)? == 0 { Checksums::Ignore } else { Checksums::Verify },
        datagram: field(16).and_then(|size| u16::try_from(size).ok()).filter(|&size| size != 0),
    })
}
