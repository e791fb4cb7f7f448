//! The user data of a live segment.

use airtcp_core::Payload;
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

/// Bytes shared with the packet they came in: a copy costs a reference count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SharedBytes(pub Bytes);

impl Payload for SharedBytes {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn slice(&self, start: usize, len: usize) -> Self {
        Self(self.0.slice(start..start + len))
    }
    fn append(&mut self, tail: &Self) {
        let mut joined = BytesMut::with_capacity(self.0.len() + tail.0.len());
        joined.extend_from_slice(&self.0);
        joined.extend_from_slice(&tail.0);
        self.0 = joined.freeze();
    }
    fn drop_front(&mut self, n: usize) {
        let _ = self.0.split_to(n);
    }
    fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_cut_and_joined_like_a_slice() {
        let mut payload = SharedBytes(Bytes::from_static(b"abcdef")).slice(1, 4);
        payload.drop_front(1);
        payload.append(&SharedBytes(Bytes::from_static(b"xy")));
        let mut out = b">".to_vec();
        payload.write_to(&mut out);
        assert_eq!((out.as_slice(), payload.len()), (&b">cdexy"[..], 5));
    }
}
