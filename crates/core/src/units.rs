//! Sizes and rates.

use crate::time::Duration;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// A number of bytes (octets).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);
    /// The number as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The number of bits.
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
}
impl Add for Bytes {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}
impl Sub for Bytes {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}
impl SubAssign for Bytes {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}
impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, rhs: u64) -> Self {
        Self(self.0.saturating_mul(rhs))
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

/// A data rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataRate(u64);

impl DataRate {
    /// `n` bits per second, or `None` for zero: a link without a rate never delivers.
    pub const fn from_bits_per_sec(n: u64) -> Option<Self> {
        if n == 0 { None } else { Some(Self(n)) }
    }
    /// `n` Mbit/s; panics on zero (for constants and tests).
    pub const fn mbps(n: u64) -> Self {
        assert!(n > 0);
        Self(n * 1_000_000)
    }
    /// `n` kbit/s; panics on zero (for constants and tests).
    pub const fn kbps(n: u64) -> Self {
        assert!(n > 0);
        Self(n * 1_000)
    }
    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }
    /// The whole bits that it carries in this time.
    pub const fn bits_in(self, time: Duration) -> u64 {
        match self.0.checked_mul(time.as_nanos()) {
            Some(nanobits) => nanobits / 1_000_000_000,
            None => {
                let bits = self.0 as u128 * time.as_nanos() as u128 / 1_000_000_000;
                if bits > u64::MAX as u128 { u64::MAX } else { bits as u64 }
            }
        }
    }
    /// The time to serialise `size` at this rate, rounded up to a nanosecond.
    pub const fn transmission_time(self, size: Bytes) -> Duration {
        // 64-bit arithmetic covers every real packet (up to 2.3 GB); the wide path covers the rest.
        match size.0.checked_mul(8_000_000_000) {
            Some(bit_nanos) => Duration::from_nanos(bit_nanos.div_ceil(self.0)),
            None => {
                let n = (size.0 as u128 * 8_000_000_000).div_ceil(self.0 as u128);
                if n > u64::MAX as u128 { Duration::MAX } else { Duration::from_nanos(n as u64) }
            }
        }
    }
}
impl fmt::Display for DataRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{} Gbit/s", Decimal { n, digits: 9 }),
            n if n >= 1_000_000 => write!(f, "{} Mbit/s", Decimal { n, digits: 6 }),
            n if n >= 1_000 => write!(f, "{} kbit/s", Decimal { n, digits: 3 }),
            n => write!(f, "{n} bit/s"),
        }
    }
}

/// A number of a larger unit, from a whole number of the base unit, which is smaller by so many
/// decimal digits: exact, as a quotient of floating-point numbers is not beyond 2^53.
pub(crate) struct Decimal {
    pub(crate) n: u64,
    pub(crate) digits: u32,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10u64.pow(self.digits);
        let (whole, mut rest, mut digits) = (self.n / unit, self.n % unit, self.digits as usize);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        while rest.is_multiple_of(10) {
            rest /= 10;
            digits -= 1;
        }
        write!(f, "{whole}.{rest:0digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_time_of_the_packet_control_link() {
        // Packet Control, Fig. 7 and §VII-A: packets of 1040 B on a wireless link of 250 kbit/s.
        assert_eq!(
            DataRate::kbps(250).transmission_time(Bytes(1040)),
            Duration::from_micros(33_280)
        );
    }

    #[test]
    fn what_is_shown_is_exact() {
        let shown = |n| DataRate(n).to_string();
        assert_eq!(shown(8_421_711_082_129_362), "8421711.082129362 Gbit/s");
        assert_eq!(shown(u64::MAX), "18446744073.709551615 Gbit/s");
        assert_eq!(shown(5_500_000), "5.5 Mbit/s");
        assert_eq!(shown(1_000_001), "1.000001 Mbit/s");
        assert_eq!(shown(64_000), "64 kbit/s");
        let shown = |n| Duration::from_nanos(n).to_string();
        assert_eq!(shown(8_506_342_330_904_643), "8506342.330904643 s");
        assert_eq!(shown(1_000_001), "1.000001 ms");
        assert_eq!(shown(10_250), "10.25 us");
        assert_eq!(shown(120_000_000_000), "120 s");
    }

    #[test]
    fn rounds_up_and_never_overflows() {
        assert_eq!(DataRate(3).transmission_time(Bytes(1)), Duration::from_nanos(2_666_666_667));
        assert_eq!(DataRate(1).transmission_time(Bytes(u64::MAX)), Duration::MAX);
        assert_eq!(DataRate::from_bits_per_sec(0), None);
    }
}
