//! The ring buffers through which packets are mirrored.
//!
//! Read first: `rings` in `bpf/mirror.h`; benches/gateway/README.md (throughput by their sizes).
//!
//! There is one small ring buffer while little is mirrored. When [`MUCH`] was waiting to be read, two large
//! ones take its place, until that has not happened for [`REST`]. Packets that find no room before they
//! are there are missed, and counted.
//!
//! A ring buffer is memory of the kernel. libbpf maps it twice, so it counts twice for this process.

use super::buffers::BufferPool;
use super::mirror::{Taken, intercepted};
use airtcp_core::{Duration, Instant};
use airtcp_gateway::packets::Intercepted;
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder};
use nix::sys::sysinfo::sysinfo;
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Mirrored packets read at once.
const BATCH: usize = 256;

/// Size of the small ring buffer: 8 ms of 1 Gbit/s.
const SMALL: u64 = 1 << 20;

/// Bytes read at once from which on the large ones are needed: one super-packet, or a millisecond of
/// 500 Mbit/s. A sender that begins slowly brings them before it is fast.
const MUCH: usize = 64 << 10;

/// Largest size of the backlog: nine milliseconds of 30 Gbit/s.
const LONGEST_BACKLOG: u64 = 32 << 20;

/// The backlog takes at most this part of the machine's memory.
const PART: u64 = 32;

/// The large ring buffer before the backlog is this part of its size. With 4 MiB it stays in the
/// processor's caches, which halves the time of a copy, and holds one millisecond of 30 Gbit/s; the daemon
/// reads every half millisecond.
const BEFORE_BACKLOG: u64 = 8;

/// Time without need after which the large ones are given back, and the pause after a failure to make
/// them.
const REST: Duration = Duration::from_secs(60);

/// Places in the program's map.
const FIRST: u32 = 0;
const BACKLOG: u32 = 1;

/// The ring buffers, and what reads them.
pub(super) struct Rings {
    /// The program's map of those in use.
    places: MapHandle,
    small: MapHandle,
    large: Option<Large>,
    /// Large ones are not made before this time.
    not_before: Instant,
    /// Reads all of them, in the order in which they were written.
    reader: RingBuffer<'static>,
    read: Rc<RefCell<Read>>,
    pool: Arc<BufferPool>,
    /// Bytes read since less than a [`BATCH`] was waiting.
    waiting: usize,
}

/// What was read and not taken yet.
#[derive(Default)]
struct Read {
    packets: Vec<Intercepted>,
    bytes: usize,
}

/// The large ring buffers.
struct Large {
    rings: [MapHandle; 2],
    /// Time when they were last needed.
    needed: Instant,
    /// The program writes to them no more once `change` has ended.
    is_leaving: bool,
    /// Puts them into their places, or takes them out.
    change: JoinHandle<()>,
}

impl Rings {
    /// A small ring buffer, in the `places` of a program that is loaded.
    pub(super) fn new(places: MapHandle) -> libbpf_rs::Result<Self> {
        let (read, pool) = (Rc::default(), Arc::default());
        let small = make("mirrored", SMALL)?;
        set(&places, FIRST, Some(&small))?;
        let reader = reader(&[&small], &read, &pool)?;
        let (large, not_before) = (None, Instant::ZERO);
        Ok(Self { places, small, large, not_before, reader, read, pool, waiting: 0 })
    }

    /// Appends the waiting packets in order, at most [`BATCH`] of them.
    ///
    /// # Errors
    /// A ring buffer cannot be read.
    pub(super) fn take(&mut self, now: Instant, batch: &mut Vec<Intercepted>) -> io::Result<Taken> {
        // If so, all that was written to the large ones is read now.
        let has_left = self.large.as_ref().is_some_and(|l| l.is_leaving && l.change.is_finished());
        let count = self.reader.consume_raw_n(BATCH);
        let mut read = self.read.borrow_mut();
        batch.append(&mut read.packets);
        self.waiting += std::mem::take(&mut read.bytes);
        drop(read);
        let taken = match usize::try_from(count) {
            Ok(0) => Taken::None,
            Ok(BATCH) => Taken::Most,
            Ok(_) => Taken::Some,
            Err(_) => return Err(io::Error::from_raw_os_error(-count)),
        };
        let is_needed = self.waiting >= MUCH;
        if taken != Taken::Most {
            self.waiting = 0;
        }
        match &mut self.large {
            None if is_needed && self.not_before <= now => self.try_to_grow(now),
            Some(large) if is_needed => large.needed = now,
            Some(_) if has_left && taken == Taken::None => {
                self.reader =
                    reader(&[&self.small], &self.read, &self.pool).map_err(io::Error::other)?;
                self.large = None;
            }
            Some(large)
                if !large.is_leaving
                    && large.change.is_finished()
                    && now.since(large.needed) > REST =>
            {
                let change = change(&self.places, [(BACKLOG, None), (FIRST, Some(&self.small))]);
                // Without a thread they stay for now.
                if let Ok(change) = change {
                    (large.change, large.is_leaving) = (change, true);
                }
            }
            _ => {}
        }
        Ok(taken)
    }

    /// Gives memory back that only many packets need.
    pub(super) fn rest(&self) {
        self.pool.clear();
    }

    /// Readable while packets wait.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let large = self.large.iter().flat_map(|large| &large.rings);
        std::iter::once(&self.small).chain(large).map(AsFd::as_fd)
    }

    fn try_to_grow(&mut self, now: Instant) {
        if let Err(error) = self.grow(now) {
            tracing::warn!("mirrored packets come fast, but there is no larger buffer: {error}");
            self.not_before = now + REST;
        }
    }

    fn grow(&mut self, now: Instant) -> libbpf_rs::Result<()> {
        let memory = sysinfo().map_or(0, |system| system.ram_total());
        let [first, backlog] = large_sizes(memory);
        let rings = [make("mirrored", first)?, make("backlog", backlog)?];
        let reader = reader(&[&self.small, &rings[0], &rings[1]], &self.read, &self.pool)?;
        let places = [(FIRST, Some(&rings[0])), (BACKLOG, Some(&rings[1]))];
        let change = change(&self.places, places)?;
        self.reader = reader;
        self.large = Some(Large { rings, needed: now, is_leaving: false, change });
        tracing::debug!(first, backlog, "larger ring buffers, as mirrored packets come fast");
        Ok(())
    }
}

/// Sizes of the large ring buffers on a machine with this memory.
fn large_sizes(memory: u64) -> [u64; 2] {
    // The kernel wants powers of two.
    let backlog = 1 << (memory / PART).clamp(SMALL, LONGEST_BACKLOG).ilog2();
    [(backlog / BEFORE_BACKLOG).max(SMALL), backlog]
}

fn make(name: &str, size: u64) -> libbpf_rs::Result<MapHandle> {
    let options =
        bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as _, ..Default::default() };
    MapHandle::create(MapType::RingBuf, Some(name), 0, 0, size as u32, &options)
}

fn reader(
    rings: &[&MapHandle],
    read: &Rc<RefCell<Read>>,
    pool: &Arc<BufferPool>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    for ring in rings {
        let (read, pool) = (read.clone(), pool.clone());
        builder.add(*ring, move |record| {
            let mut read = read.borrow_mut();
            read.packets.extend(intercepted(record, &pool));
            read.bytes += record.len();
            0
        })?;
    }
    builder.build()
}

fn set(places: &MapHandle, place: u32, ring: Option<&MapHandle>) -> libbpf_rs::Result<()> {
    let key = place.to_ne_bytes();
    match ring {
        Some(ring) => places.update(&key, &ring.as_fd().as_raw_fd().to_ne_bytes(), MapFlags::ANY),
        None => places.delete(&key),
    }
}

/// Changes what is in the places. That is done in a thread, because the kernel waits until no program
/// runs with the old ones.
fn change(
    places: &MapHandle,
    to: [(u32, Option<&MapHandle>); 2],
) -> libbpf_rs::Result<JoinHandle<()>> {
    let places = MapHandle::try_from(places)?;
    let mut rings = Vec::new();
    for (place, ring) in to {
        rings.push((place, ring.map(MapHandle::try_from).transpose()?));
    }
    let work = move || {
        for (place, ring) in rings {
            if let Err(error) = set(&places, place, ring.as_ref()) {
                tracing::error!("cannot change the ring buffers: {error}");
            }
        }
    };
    Ok(thread::Builder::new().name("gateway-rings".to_owned()).spawn(work)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map of a program that is not loaded; an error without the right to make one.
    fn places() -> libbpf_rs::Result<MapHandle> {
        let template = make("template", SMALL)?;
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            inner_map_fd: template.as_fd().as_raw_fd() as u32,
            ..Default::default()
        };
        MapHandle::create(MapType::ArrayOfMaps, Some("rings"), 4, 4, 2, &options)
    }

    #[test]
    fn large_ring_buffers_come_when_needed_and_go_after_a_rest() {
        let Ok(places) = places() else { return airtcp_testing::skip("BPF maps") };
        let mut rings = Rings::new(places).unwrap();
        let mut after = |seconds, waiting| {
            while rings.large.as_ref().is_some_and(|large| !large.change.is_finished()) {
                thread::yield_now();
            }
            rings.waiting = waiting;
            rings.take(Instant::ZERO + Duration::from_secs(seconds), &mut Vec::new()).unwrap();
            rings.fds().count()
        };
        assert_eq!(after(0, MUCH - 1), 1);
        assert_eq!(after(1, MUCH), 3);
        assert_eq!(after(50, MUCH), 3);
        assert_eq!(after(110, 0), 3, "for a minute");
        assert_eq!(after(111, 0), 3, "the program may be writing to them");
        assert_eq!(after(111, 0), 1);
        assert_eq!(after(112, MUCH), 3, "again");
    }

    #[test]
    fn ring_buffers_take_a_small_part_of_the_memory() {
        const MIB: u64 = 1 << 20;
        assert_eq!(large_sizes(30 * MIB), [MIB, MIB]);
        assert_eq!(large_sizes(120 * MIB), [MIB, 2 * MIB]);
        assert_eq!(large_sizes(500 * MIB), [MIB, 8 * MIB]);
        assert_eq!(large_sizes(1 << 40), [4 * MIB, 32 * MIB]);
    }
}
