//! TCP sequence numbers (RFC 9293 §3.4): 32 bits, modulo arithmetic.
//!
//! There is deliberately no `PartialOrd`: on a circle "less than" is not an order, and a plain `<`
//! breaks at wraparound. Use [`SeqNum::before`], [`SeqNum::after`] and friends, which compare
//! within half the space.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A position in a TCP sequence space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// Signed distance from `origin` to `self`: positive when `self` is ahead.
    pub const fn offset_from(self, origin: Self) -> i32 {
        self.0.wrapping_sub(origin.0) as i32
    }
    /// Bytes from `origin` up to `self`; zero when `self` is behind.
    pub const fn bytes_after(self, origin: Self) -> u32 {
        let d = self.offset_from(origin);
        if d > 0 { d as u32 } else { 0 }
    }
    /// `self < other` on the circle.
    pub const fn before(self, other: Self) -> bool {
        self.offset_from(other) < 0
    }
    /// `self <= other` on the circle.
    pub const fn at_or_before(self, other: Self) -> bool {
        self.offset_from(other) <= 0
    }
    /// `self > other` on the circle.
    pub const fn after(self, other: Self) -> bool {
        self.offset_from(other) > 0
    }
    /// `self >= other` on the circle.
    pub const fn at_or_after(self, other: Self) -> bool {
        self.offset_from(other) >= 0
    }
    /// The one further ahead.
    pub const fn later(self, other: Self) -> Self {
        if self.after(other) { self } else { other }
    }
    /// The one further behind.
    pub const fn earlier(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }
}

impl Add<u32> for SeqNum {
    type Output = Self;
    fn add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
}
impl AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, n: u32) {
        *self = *self + n;
    }
}
impl Sub<u32> for SeqNum {
    type Output = Self;
    fn sub(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }
}
impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let a = SeqNum(u32::MAX - 1);
        let b = a + 10;
        assert_eq!(b, SeqNum(8));
        assert!(a.before(b) && b.after(a) && a.at_or_before(a) && a.at_or_after(a));
        assert_eq!(b.offset_from(a), 10);
        assert_eq!(a.offset_from(b), -10);
        assert_eq!(a.bytes_after(b), 0);
        assert_eq!(a.later(b), b);
        assert_eq!(a.earlier(b), a);
    }

    proptest! {
        #[test]
        fn adding_less_than_half_the_space_moves_ahead(start: u32, n in 1..u32::MAX / 2) {
            let a = SeqNum(start);
            prop_assert!((a + n).after(a));
            prop_assert_eq!((a + n).bytes_after(a), n);
            prop_assert_eq!((a + n) - n, a);
        }
    }
}
