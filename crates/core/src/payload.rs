//! What a segment carries: a length in the simulator, bytes in tests and on live traffic.

use std::fmt;

/// The user data of a segment, or a run of stream data in a buffer.
///
/// Protocol code is generic over it: the same code runs on lengths (simulation, no copying) and on
/// real bytes. Indices are byte offsets into this payload; out-of-range ones panic, as on slices.
pub trait Payload: Clone + Default + fmt::Debug {
    /// Length in bytes.
    fn len(&self) -> usize;
    /// True if it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A copy of `len` bytes from `start`.
    fn slice(&self, start: usize, len: usize) -> Self;
    /// Appends `tail` to the payload.
    fn append(&mut self, tail: &Self);
    /// Removes the first `n` bytes.
    fn drop_front(&mut self, n: usize);
    /// Writes these bytes to `out`; a payload without content (a length) writes zeros.
    fn write_to(&self, out: &mut Vec<u8>);
}

/// A payload that is only a length: what the simulator carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Length(pub u64);

impl Payload for Length {
    fn len(&self) -> usize {
        self.0 as usize
    }
    fn slice(&self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len(), "slice {start}+{len} of {}", self.0);
        Self(len as u64)
    }
    fn append(&mut self, tail: &Self) {
        self.0 += tail.0;
    }
    fn drop_front(&mut self, n: usize) {
        assert!(n <= self.len());
        self.0 -= n as u64;
    }
    fn write_to(&self, out: &mut Vec<u8>) {
        out.resize(out.len() + self.len(), 0);
    }
}

impl Payload for Vec<u8> {
    fn len(&self) -> usize {
        Vec::len(self)
    }
    fn slice(&self, start: usize, len: usize) -> Self {
        self[start..start + len].to_vec()
    }
    fn append(&mut self, tail: &Self) {
        self.extend_from_slice(tail);
    }
    fn drop_front(&mut self, n: usize) {
        self.drain(..n);
    }
    fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}
