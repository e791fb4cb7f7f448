//! An allocator that counts, for tests of memory use.
#![allow(unsafe_code)] // A global allocator cannot be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with counts per thread, so that other tests do not disturb them.
///
/// ```
/// use airtcp_testing::CountingAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let (count, bytes) = (CountingAllocator::allocations(), CountingAllocator::live_bytes());
/// let list = vec![0_u8; 100];
/// assert_eq!(CountingAllocator::allocations() - count, 1);
/// assert_eq!(CountingAllocator::live_bytes() - bytes, 100);
/// drop(list);
/// assert_eq!(CountingAllocator::live_bytes() - bytes, 0);
/// ```
pub struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

impl CountingAllocator {
    /// Allocations and reallocations of this thread so far.
    pub fn allocations() -> u64 {
        ALLOCATIONS.get()
    }

    /// Bytes that this thread has allocated, less those that it has freed.
    pub fn live_bytes() -> i64 {
        LIVE_BYTES.get()
    }
}

fn count(allocations: u64, bytes: i64) {
    ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
    LIVE_BYTES.set(LIVE_BYTES.get() + bytes);
}

// SAFETY: every call goes to the system's allocator unchanged. The counters are thread-local cells
// without destructors, so touching them neither allocates nor fails.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: the caller's obligations are the same.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: the caller's obligations are the same.
        unsafe { System.realloc(ptr, layout, size) }
    }
}
