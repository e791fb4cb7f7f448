//! Copies of packets that the kernel forwards by itself, for mechanisms that only watch while a mobile is in reach.
//!
//! Read first: `bpf/copies.bpf.c` (the program), [`Queued::Watched`](crate::gateway::config::Queued::Watched).
//!
//! To hold each packet until this process has seen it costs more than all else that is done for it. While a mobile is in
//! reach M-TCP+ and holdover forward everything as it came, so the packets go on at once, and this process reads copies from
//! a ring buffer, a little later. When a mobile fades or is down, or a mechanism wants a packet dropped, its packets are
//! queued (`rules`), and no more copied: for a moment both, so that none is missed, which a mechanism takes for what the
//! network might do too (a segment that comes twice). What passed until then is as if the signal had come some
//! milliseconds later.
//!
//! Large copies stay where they are until they are acknowledged (`ring`).
//!
//! If this process is too slow or stopped, the ring buffer is full and copies are *missed*: their bytes are not held, and
//! in an outage the fixed host has to send them again. No packet waits.

use super::layout::{mapped, mapped_prefix, u32_at};
use super::object::{self, ONLY};
use super::ring::{LENT, Ring};
use crate::gateway::datapath::Intercepted;
use airtcp_wire::Checksums;
use bytes::Bytes;
use ipnet::IpNet;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, NF_INET_FORWARD, NFPROTO_IPV4, NFPROTO_IPV6, NetfilterOpts,
    Object,
};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// `bpf/copies.bpf.c`, compiled.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/copies.bpf.o"));

/// In front of table mangle (-150), at whose end packets are queued.
const PRIORITY: i32 = -151;

/// Copies taken at once.
const BATCH: usize = 256;

/// While copies come, one should look for them so often: to be woken for each would cost more than the copy.
const INTERVAL: Duration = Duration::from_micros(500);

/// Bytes of a `struct copy`.
const HEAD: usize = 16;

/// The program at work, until this is dropped or the process ends.
pub struct Copier {
    object: Object,
    copies: MapHandle,
    /// Reads `copies`.
    ring: Ring,
    mobiles: BTreeSet<IpNet>,
    /// One for each IP version.
    _links: [Link; 2],
}

impl fmt::Debug for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copier").field("mobiles", &self.mobiles).finish_non_exhaustive()
    }
}

/// How many copies there were, or may be soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// None: one can sleep until there are.
    None,
    /// Some: one should look again soon.
    Some,
    /// So many that more may be there.
    Most,
}

impl Taken {
    /// How long to wait before the next look; `None`: until one is woken.
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
    pub(super) fn start() -> libbpf_rs::Result<Self> {
        let object = object::open(OBJECT)?.load()?;
        let copies = MapHandle::try_from(&object::map(&object, "copies"))?;
        let ring = Ring::open(&copies, copies.max_entries() as usize)?;
        let attach = |protocol_family| {
            let hooknum = NF_INET_FORWARD;
            let place = NetfilterOpts {
                protocol_family,
                hooknum,
                priority: PRIORITY,
                ..Default::default()
            };
            object::program(&object, "copy_forwarded").attach_netfilter_with_opts(place)
        };
        let links = [attach(NFPROTO_IPV4)?, attach(NFPROTO_IPV6)?];
        Ok(Self { object, copies, ring, mobiles: BTreeSet::new(), _links: links })
    }

    /// Copies the packets of these mobiles from now on.
    pub(super) fn configure(&mut self, mobiles: BTreeSet<IpNet>) -> libbpf_rs::Result<()> {
        let map = object::map(&self.object, "mobiles");
        for net in &mobiles {
            map.update(&prefix(*net), &ONLY, MapFlags::ANY)?;
        }
        for net in self.mobiles.difference(&mobiles) {
            map.delete(&prefix(*net))?;
        }
        self.mobiles = mobiles;
        Ok(())
    }

    /// Appends the copies that are there, in their order, a bounded number. Those of [`LENT`] bytes or more are lent: see
    /// [`wants_back`](Self::wants_back).
    pub fn take(&self, batch: &mut Vec<Intercepted>) -> Taken {
        let mut taken = 0;
        while taken < BATCH
            && let Some(record) = self.ring.next()
        {
            batch.extend(self.copy(&record));
            taken += 1;
        }
        self.ring.give_back();
        match taken {
            // Nobody is woken.
            0 if self.ring.is_lending() => Taken::Some,
            0 => Taken::None,
            BATCH => Taken::Most,
            _ => Taken::Some,
        }
    }

    /// Copies that are kept should be [owned](Self::own) now, or there is no room for others.
    pub fn wants_back(&self) -> bool {
        self.ring.wants_back()
    }

    /// Makes bytes of a copy their keeper's own.
    pub fn own(&self, bytes: &mut Bytes) {
        self.ring.own(bytes);
    }

    /// A record of the ring buffer: `struct copy`, and the packet.
    fn copy(&self, record: &Bytes) -> Option<Intercepted> {
        let (head, packet) = record.split_at_checked(HEAD)?;
        let interface = |at| u32_at(head, at).filter(|&index| index != 0);
        let mut packet = record.slice_ref(packet.get(..u32_at(head, 0)? as usize)?);
        if packet.len() < LENT {
            // In a record that is larger.
            self.ring.own(&mut packet);
        }
        Some(Intercepted {
            id: None,
            packet,
            input: interface(4),
            output: interface(8),
            checksums: if u32_at(head, 12)? == 0 { Checksums::Ignore } else { Checksums::Verify },
        })
    }

    /// Packets of which no copy could be made for want of room.
    ///
    /// # Errors
    /// The counter cannot be read.
    pub fn missed(&self) -> libbpf_rs::Result<u64> {
        let of_processors =
            object::map(&self.object, "missed").lookup_percpu(&ONLY, MapFlags::ANY)?;
        Ok(object::sum(&of_processors.unwrap_or_default(), 0))
    }

    /// For whom changes whose packets are queued.
    pub(super) fn switch(&self) -> libbpf_rs::Result<CopySwitch> {
        MapHandle::try_from(&object::map(&self.object, "queued")).map(CopySwitch)
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
    /// Copies a mobile's packets from now on, or no more. Repetitions do no harm.
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

/// `struct prefix`.
fn prefix(net: IpNet) -> Vec<u8> {
    let (bits, address) = mapped_prefix(net);
    [&bits.to_ne_bytes()[..], &address].concat()
}
