//! Where the bytes of packets are while they are kept.
//!
//! A large packet is in a buffer of its own that is used again and again; a small one takes what it
//! needs. So a packet that is kept takes at most twice its size.

use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Room for the largest packet (64 KiB) and the netlink message around it.
pub(crate) const BUFFER: usize = 66 * 1024;
/// From this size on a packet is large.
pub(crate) const LARGE: usize = BUFFER / 2;
/// Buffers kept for later packets: the window of a fast connection.
const SPARES: usize = 64;

/// Unused buffers of [`BUFFER`] bytes. Making a new one costs as much as copying a packet into it.
#[derive(Debug, Default)]
pub(crate) struct Spares(Mutex<Vec<Box<[u8]>>>);

impl Spares {
    /// A buffer with anything in it.
    pub(crate) fn take(&self) -> Box<[u8]> {
        self.buffers().pop().unwrap_or_else(|| vec![0; BUFFER].into())
    }

    /// The packet at `range` in a buffer, which is spare again when the packet is dropped.
    pub(crate) fn lend(self: &Arc<Self>, buffer: Box<[u8]>, range: Range<usize>) -> Bytes {
        Bytes::from_owner(Lent { buffer, spares: self.clone() }).slice(range)
    }

    /// A packet of its own with these bytes, at most [`BUFFER`].
    pub(crate) fn copy(self: &Arc<Self>, packet: &[u8]) -> Bytes {
        if packet.len() < LARGE {
            return Bytes::copy_from_slice(packet);
        }
        let mut buffer = self.take();
        buffer[..packet.len()].copy_from_slice(packet);
        self.lend(buffer, 0..packet.len())
    }

    fn give(&self, buffer: Box<[u8]>) {
        let mut buffers = self.buffers();
        if buffers.len() < SPARES {
            buffers.push(buffer);
        }
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer handed on in a packet.
struct Lent {
    buffer: Box<[u8]>,
    spares: Arc<Spares>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.spares.give(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_buffers_are_spared_than_one_connection_needs() {
        let spares = Spares::default();
        for _ in 0..SPARES + 9 {
            spares.give(vec![0; BUFFER].into());
        }
        assert_eq!(spares.buffers().len(), SPARES);
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_a_large_one_gives_its_buffer_back() {
        let spares = Arc::<Spares>::default();
        for len in [0, 1, LARGE - 1, LARGE, BUFFER] {
            let packet: Vec<u8> = (0..len).map(|n| n as u8).collect();
            assert_eq!(spares.copy(&packet), packet);
        }
        assert_eq!(spares.buffers().len(), 1, "used for both");
    }
}
