//! Simulated (or monotonic) time with nanosecond resolution.
//!
//! Both types are a `u64` of nanoseconds: 584 years, no sign, no allocation. Arithmetic saturates
//! at the ends, so that a hostile or absurd duration can never wrap into the past.

use crate::units::Decimal;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A span of time, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest representable span, about 584 years; also "never" for time-outs.
    pub const MAX: Self = Self(u64::MAX);

    /// A duration of `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }
    /// A duration of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }
    /// A duration of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }
    /// A duration of `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(NANOS_PER_SEC))
    }
    /// `s` seconds, rounded to the nearest nanosecond; negative and NaN become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        // A float-to-integer cast saturates and maps NaN to 0.
        Self(libm::round(s * NANOS_PER_SEC as f64) as u64)
    }
    /// Nanoseconds in total.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds as a float, for reports; never for arithmetic that feeds back into a run.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// True for [`Duration::ZERO`].
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `|self - other|`.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
    /// This span rounded up to a whole multiple of `step` (unchanged when `step` is zero).
    pub const fn round_up_to(self, step: Self) -> Self {
        if step.0 == 0 {
            return self;
        }
        match self.0.checked_next_multiple_of(step.0) {
            Some(n) => Self(n),
            None => Self::MAX,
        }
    }
    /// This span times a non-negative factor, rounded to the nearest nanosecond.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self(libm::round(self.0 as f64 * factor) as u64)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}
impl Sub for Duration {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, rhs: u64) -> Self {
        Self(self.0.saturating_mul(rhs))
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, rhs: u64) -> Self {
        Self(self.0 / rhs)
    }
}
impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0 s"),
            n if n >= NANOS_PER_SEC => write!(f, "{} s", Decimal { n, digits: 9 }),
            n if n >= 1_000_000 => write!(f, "{} ms", Decimal { n, digits: 6 }),
            n if n >= 1_000 => write!(f, "{} us", Decimal { n, digits: 3 }),
            n => write!(f, "{n} ns"),
        }
    }
}

/// A point in time: nanoseconds since the start of the run (or since the origin of the driver's
/// monotonic clock).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event; used where a bound is needed and none is set.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `n` nanoseconds after the start.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }
    /// The instant `n` milliseconds after the start.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }
    /// The instant `n` seconds after the start.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(NANOS_PER_SEC))
    }
    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the start as a float, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// Time since the start.
    pub const fn since_start(self) -> Duration {
        Duration(self.0)
    }
    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / NANOS_PER_SEC, self.0 % NANOS_PER_SEC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant::from_secs(1).since(Instant::from_secs(2)), Duration::ZERO);
        assert_eq!(Duration::MAX + Duration::from_secs(1), Duration::MAX);
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
    }

    #[test]
    fn rounds_up_to_a_clock_tick() {
        let tick = Duration::from_millis(500);
        assert_eq!(Duration::from_millis(1).round_up_to(tick), tick);
        assert_eq!(Duration::from_millis(500).round_up_to(tick), tick);
        assert_eq!(Duration::from_millis(501).round_up_to(tick), Duration::from_secs(1));
        assert_eq!(Duration::from_millis(7).round_up_to(Duration::ZERO), Duration::from_millis(7));
    }

    #[test]
    fn displays_with_a_unit() {
        assert_eq!(Duration::from_millis(170).to_string(), "170 ms");
        assert_eq!(Instant::from_millis(2069).to_string(), "2.069000000");
    }
}
