//! Buffers of the packets that are held.
//!
//! A large packet occupies a pooled buffer, a small one an allocation of its size. So a held packet
//! takes at most twice its size.

use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size of a buffer: the largest packet (64 KiB) and the netlink message around it.
pub(crate) const BUFFER: usize = 66 * 1024;
/// Smallest large packet.
pub(crate) const LARGE: usize = BUFFER / 2;
/// Most unused buffers in the pool: the window of a fast connection.
const POOL_SIZE: usize = 64;

/// Unused buffers of [`BUFFER`] bytes. Allocating one costs as much as copying a packet into it.
#[derive(Debug, Default)]
pub(crate) struct BufferPool(Mutex<Vec<Box<[u8]>>>);

impl BufferPool {
    /// Takes a buffer, with arbitrary content.
    pub(crate) fn take(&self) -> Box<[u8]> {
        self.buffers().pop().unwrap_or_else(|| vec![0; BUFFER].into())
    }

    /// The packet at `range` in a buffer, which returns to the pool when the packet is dropped.
    pub(crate) fn wrap(self: &Arc<Self>, buffer: Box<[u8]>, range: Range<usize>) -> Bytes {
        Bytes::from_owner(PooledBuffer { buffer, pool: self.clone() }).slice(range)
    }

    /// Copies a packet of at most [`BUFFER`] bytes.
    pub(crate) fn copy(self: &Arc<Self>, packet: &[u8]) -> Bytes {
        if packet.len() < LARGE {
            return Bytes::copy_from_slice(packet);
        }
        let mut buffer = self.take();
        buffer[..packet.len()].copy_from_slice(packet);
        self.wrap(buffer, 0..packet.len())
    }

    /// Frees the unused buffers.
    pub(crate) fn clear(&self) {
        self.buffers().clear();
    }

    fn put_back(&self, buffer: Box<[u8]>) {
        let mut buffers = self.buffers();
        if buffers.len() < POOL_SIZE {
            buffers.push(buffer);
        }
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer that returns to the pool on drop.
struct PooledBuffer {
    buffer: Box<[u8]>,
    pool: Arc<BufferPool>,
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.put_back(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_buffers_are_pooled_than_one_connection_needs() {
        let pool = BufferPool::default();
        for _ in 0..POOL_SIZE + 9 {
            pool.put_back(vec![0; BUFFER].into());
        }
        assert_eq!(pool.buffers().len(), POOL_SIZE);
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_a_large_one_gives_its_buffer_back() {
        let pool = Arc::<BufferPool>::default();
        for len in [0, 1, LARGE - 1, LARGE, BUFFER] {
            let packet: Vec<u8> = (0..len).map(|n| n as u8).collect();
            assert_eq!(pool.copy(&packet), packet);
        }
        assert_eq!(pool.buffers().len(), 1, "used for both");
        pool.clear();
        assert_eq!(pool.buffers().len(), 0);
    }
}
