//! The reading end of a BPF ring buffer whose records can be kept where they are.
//!
//! Read first: Documentation/bpf/ringbuf.rst of Linux.
//!
//! libbpf's reader gives a record back to the kernel when its callback returns, so what is to be kept must be copied. Most of
//! what M-TCP+ and holdover keep is acknowledged within a round trip, and to copy it costs more than all else that is done
//! for it. So large records are *lent*: they stay in the ring buffer, and it has no room for others at their place and behind
//! it, until nobody keeps them. Who keeps one for long should copy it ([`Ring::own`]): [`Ring::wants_back`] says when.

#![allow(unsafe_code)]

use crate::gateway::datapath::buffers::Spares;
use bytes::Bytes;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smaller records are copied: that costs less than to keep account of them.
pub const LENT: usize = 4096;

/// In front of each record: its length with the flags of its state, and something of the kernel's.
const HEAD: usize = 8;
/// The length's flags: not written to its end yet; to be passed over.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// Who asks so often in vain should give back what is lent, and wait to be woken.
const QUIET: u32 = 100;

/// Reads the records in their order.
#[derive(Debug)]
pub(super) struct Ring {
    shared: Arc<Shared>,
    spares: Arc<Spares>,
}

/// The ring buffer, as long as any of its records is kept.
#[derive(Debug)]
struct Shared {
    /// A page with the reader's position, which is ours to write.
    reader: Mapping,
    /// A page with the writer's position, and the records: twice, one behind the other, so that none is in two pieces.
    writer: Mapping,
    page: usize,
    /// Bytes of all records, a power of two.
    size: usize,
    state: Mutex<State>,
}

/// Positions count bytes since the ring buffer was made, and wrap.
#[derive(Debug, Default)]
struct State {
    /// Of the next record to read.
    next: usize,
    /// How often there was nothing new since there was something.
    quiet: u32,
    /// Lent records from the first one on that is kept.
    lent: VecDeque<Loan>,
    /// Number of the first.
    first: u64,
}

#[derive(Debug)]
struct Loan {
    start: usize,
    is_back: bool,
}

impl Ring {
    /// Reads the map of type `BPF_MAP_TYPE_RINGBUF` behind this descriptor, of `size` bytes, that nobody else reads.
    ///
    /// # Errors
    /// It cannot be mapped into memory.
    pub(super) fn open(map: impl AsFd, size: usize) -> io::Result<Self> {
        assert!(size.is_power_of_two(), "as the kernel has it");
        let page = page_size();
        let reader = Mapping::new(&map, 0, page, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE)?;
        let writer = Mapping::new(&map, page, page + 2 * size, ProtFlags::PROT_READ)?;
        let shared = Shared { reader, writer, page, size, state: Mutex::default() };
        shared.state().next = shared.reader.number(0).load(Ordering::Acquire);
        Ok(Self { shared: Arc::new(shared), spares: Arc::default() })
    }

    /// The next record, if one is there. A large one is lent.
    pub(super) fn next(&self) -> Option<Bytes> {
        let shared = &self.shared;
        let mut state = shared.state();
        while state.next != shared.writer.number(0).load(Ordering::Acquire) {
            let start = state.next;
            let at = shared.page + (start & (shared.size - 1));
            let head = shared.writer.half(at).load(Ordering::Acquire);
            if head & BUSY != 0 {
                break;
            }
            let len = (head & !DISCARDED) as usize;
            state.next = start.wrapping_add((HEAD + len).next_multiple_of(HEAD));
            if head & DISCARDED != 0 {
                continue;
            }
            state.quiet = 0;
            if len < LENT {
                // SAFETY: the record is behind the reader's position, which no one else moves.
                let bytes = unsafe { shared.writer.bytes(at + HEAD, len) };
                return Some(Bytes::copy_from_slice(bytes));
            }
            let number = state.first + state.lent.len() as u64;
            state.lent.push_back(Loan { start, is_back: false });
            let record = Record { shared: shared.clone(), number, at: at + HEAD, len };
            return Some(Bytes::from_owner(record));
        }
        state.quiet = state.quiet.saturating_add(1);
        None
    }

    /// Gives the kernel back what was read and is not lent: there is room for more.
    pub(super) fn give_back(&self) {
        self.shared.give_back(&self.shared.state());
    }

    /// Records are lent: nobody is woken when there are new ones.
    pub(super) fn is_lending(&self) -> bool {
        !self.shared.state().lent.is_empty()
    }

    /// What is lent should be given back, because it takes up half of the room or nothing new has come for a while.
    pub(super) fn wants_back(&self) -> bool {
        let state = self.shared.state();
        let taken = state.lent.front().map_or(0, |loan| state.next.wrapping_sub(loan.start));
        taken > self.shared.size / 2 || taken > 0 && state.quiet >= QUIET
    }

    /// Copies `bytes` if they are a part of a lent record.
    pub(super) fn own(&self, bytes: &mut Bytes) {
        if self.shared.writer.has(bytes.as_ptr()) {
            *bytes = self.spares.copy(bytes);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, state: &State) {
        let position = state.lent.front().map_or(state.next, |loan| loan.start);
        self.reader.number(0).store(position, Ordering::Release);
    }
}

/// A lent record.
struct Record {
    shared: Arc<Shared>,
    number: u64,
    at: usize,
    len: usize,
}

impl AsRef<[u8]> for Record {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the record is behind the reader's position as long as this is.
        unsafe { self.shared.writer.bytes(self.at, self.len) }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let place = (self.number - state.first) as usize;
        state.lent[place].is_back = true;
        if place > 0 {
            return;
        }
        while state.lent.front().is_some_and(|loan| loan.is_back) {
            state.lent.pop_front();
            state.first += 1;
        }
        self.shared.give_back(&state);
    }
}

/// Memory shared with the kernel.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: what both sides write is read and written by atomic operations only; the rest is only read.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: impl AsFd, offset: usize, len: usize, access: ProtFlags) -> io::Result<Self> {
        let size = NonZeroUsize::new(len).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping, where the kernel wants it, takes nobody's memory.
        let start =
            unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, file, offset as libc::off_t) };
        Ok(Self { start: start?, len })
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "not mapped");
        // SAFETY: within the mapping.
        unsafe { self.start.as_ptr().cast::<u8>().add(offset) }
    }

    /// An `unsigned long`.
    fn number(&self, offset: usize) -> &AtomicUsize {
        // SAFETY: mapped and aligned (callers give multiples of eight), and only read or written by atomic operations.
        unsafe { AtomicUsize::from_ptr(self.at(offset, size_of::<usize>()).cast()) }
    }

    /// A `__u32`.
    fn half(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as above; nobody stores to it, as the memory may not be written.
        unsafe { AtomicU32::from_ptr(self.at(offset, size_of::<u32>()).cast()) }
    }

    /// # Safety
    /// Nobody may write there while the result is used.
    unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: mapped; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.at(offset, len), len) }
    }

    fn has(&self, address: *const u8) -> bool {
        (self.start.addr().get()..self.start.addr().get() + self.len).contains(&address.addr())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody has a reference into it any more: those borrow it.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    const SIZE: usize = 1 << 16;

    /// The kernel's part, in a file that is as a ring buffer's map.
    struct Writer {
        file: File,
        page: usize,
        position: usize,
    }

    impl Writer {
        /// Positions begin at `from`.
        fn new(from: usize) -> (Self, Ring) {
            let file = tempfile::tempfile().unwrap();
            let page = page_size();
            file.set_len((2 * page + 2 * SIZE) as u64).unwrap();
            file.write_all_at(&from.to_ne_bytes(), 0).unwrap();
            let mut writer = Self { file, page, position: from };
            writer.announce();
            let ring = Ring::open(&writer.file, SIZE).unwrap();
            (writer, ring)
        }

        fn announce(&mut self) {
            self.file.write_all_at(&self.position.to_ne_bytes(), self.page as u64).unwrap();
        }

        fn put(&self, position: usize, bytes: &[u8]) {
            let at = position & (SIZE - 1);
            let (before, after) = bytes.split_at(bytes.len().min(SIZE - at));
            for (bytes, at) in [(before, at), (after, 0)] {
                for place in [at, at + SIZE] {
                    self.file.write_all_at(bytes, (2 * self.page + place) as u64).unwrap();
                }
            }
        }

        fn room(&self) -> usize {
            let mut position = [0; 8];
            self.file.read_exact_at(&mut position, 0).unwrap();
            SIZE - self.position.wrapping_sub(usize::from_ne_bytes(position))
        }

        /// Whether there was room.
        fn write(&mut self, record: &[u8], flags: u32) -> bool {
            let whole = (HEAD + record.len()).next_multiple_of(HEAD);
            if whole > self.room() {
                return false;
            }
            self.put(self.position, &(record.len() as u32 | flags).to_ne_bytes());
            self.put(self.position + HEAD, record);
            self.position = self.position.wrapping_add(whole);
            self.announce();
            true
        }

        /// A record is ready.
        fn finish(&self, start: usize, len: usize) {
            self.put(start, &(len as u32).to_ne_bytes());
        }
    }

    /// A record of these bytes, which no other has.
    fn record(seed: u8, len: usize) -> Vec<u8> {
        (0..len).map(|n| seed.wrapping_mul(31).wrapping_add(n as u8)).collect()
    }

    fn read(ring: &Ring) -> Option<Bytes> {
        let record = ring.next();
        ring.give_back();
        record
    }

    #[test]
    fn a_record_is_read_when_it_is_ready_and_a_discarded_one_never() {
        let (mut writer, ring) = Writer::new(0);
        assert_eq!(read(&ring), None);
        assert!(writer.write(&record(1, 100), DISCARDED));
        let start = writer.position;
        assert!(writer.write(&record(2, 5000), BUSY) && writer.write(&record(3, 7), 0));
        assert_eq!(read(&ring), None);
        writer.finish(start, 5000);
        assert_eq!(read(&ring).unwrap(), record(2, 5000));
        assert_eq!(read(&ring).unwrap(), record(3, 7));
        assert_eq!(read(&ring), None);
    }

    #[test]
    fn what_is_lent_stays_as_it_is_until_nobody_keeps_it() {
        let (mut writer, ring) = Writer::new(0);
        assert!(writer.write(&record(1, 30_000), 0) && writer.write(&record(2, 20_000), 0));
        let [first, second] = [(); 2].map(|()| read(&ring).unwrap());
        assert!(ring.is_lending());
        let kept = first.slice(100..200);
        drop(first);
        assert!(!writer.write(&record(3, 30_000), 0), "no room");
        drop(second);
        assert!(!writer.write(&record(3, 30_000), 0), "it is behind the first");
        assert_eq!(kept, record(1, 30_000)[100..200]);
        drop(kept);
        assert!(!ring.is_lending());
        assert!(writer.write(&record(3, 60_000), 0));
        assert_eq!(read(&ring).unwrap(), record(3, 60_000));
    }

    #[test]
    fn what_is_lent_is_wanted_back_when_it_takes_up_half_or_nothing_comes() {
        let (mut writer, ring) = Writer::new(0);
        assert!(writer.write(&record(1, 5000), 0));
        let mut kept = read(&ring).unwrap().slice(1..);
        assert!(!ring.wants_back());
        for _ in 0..QUIET {
            assert_eq!(read(&ring), None);
        }
        assert!(ring.wants_back());
        ring.own(&mut kept);
        assert!(!ring.wants_back() && !ring.is_lending());
        assert_eq!(writer.room(), SIZE);
        assert_eq!(kept, record(1, 5000)[1..]);
        let before = kept.as_ptr();
        ring.own(&mut kept);
        assert_eq!(kept.as_ptr(), before, "it is no part of the ring buffer any more");

        let mut kept = Vec::new();
        while !ring.wants_back() {
            assert!(writer.write(&record(2, 5000), 0));
            kept.push(read(&ring).unwrap());
        }
        assert_eq!(kept.len(), SIZE / 2 / 5008 + 1);
    }

    #[test]
    fn the_ring_outlives_its_reader_while_a_record_is_kept() {
        let (mut writer, ring) = Writer::new(0);
        assert!(writer.write(&record(1, 5000), 0));
        let kept = read(&ring).unwrap();
        drop((writer, ring));
        assert_eq!(kept, record(1, 5000));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(usize, u32),
        Read,
        Drop(prop::sample::Index),
        Own,
    }

    fn step() -> impl Strategy<Value = Step> {
        let len = prop_oneof![0..200_usize, LENT..20_000];
        prop_oneof![
            3 => (len, prop_oneof![4 => Just(0), 1 => Just(DISCARDED)])
                .prop_map(|(len, flags)| Step::Write(len, flags)),
            3 => Just(Step::Read),
            2 => any::<prop::sample::Index>().prop_map(Step::Drop),
            1 => Just(Step::Own),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Whatever is kept for however long, records come in order and stay as they were written; and positions wrap.
        #[test]
        fn records_come_in_order_and_stay_as_they_are(
            from in prop_oneof![Just(0), Just(usize::MAX - 39_999)],
            steps in prop::collection::vec(step(), 1..100),
        ) {
            let (mut writer, ring) = Writer::new(from & !7);
            let (mut written, mut kept) = (VecDeque::new(), Vec::new());
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Write(len, flags) => {
                        let bytes = record(n as u8, len);
                        if writer.write(&bytes, flags) && flags == 0 {
                            written.push_back(bytes);
                        }
                    }
                    Step::Read => {
                        let record = read(&ring);
                        let expected = written.pop_front();
                        prop_assert_eq!(record.as_deref(), expected.as_deref());
                        kept.extend(record.zip(expected));
                    }
                    Step::Drop(index) if !kept.is_empty() => {
                        kept.swap_remove(index.index(kept.len()));
                    }
                    Step::Drop(_) => {}
                    Step::Own => kept.iter_mut().for_each(|(bytes, _)| ring.own(bytes)),
                }
                for (bytes, expected) in &kept {
                    prop_assert_eq!(bytes, expected);
                }
            }
            while let Some(record) = read(&ring) {
                prop_assert_eq!(Some(record.to_vec()), written.pop_front());
            }
            kept.clear();
            prop_assert!(written.is_empty() && !ring.is_lending());
            prop_assert_eq!(writer.room(), SIZE);
        }
    }
}
