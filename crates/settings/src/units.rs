//! Quantities with units: `"170 ms"`, `"250 kbit/s"`, `"64 kB"`, `"50 packets"`.
//!
//! Numbers are decimal and exact: `"0.1 s"` is 100,000,000 ns, and a value that is not a whole
//! number of base units (`"0.5 ns"`) is refused rather than rounded.

use airtcp_core::{DataRate, Duration};

/// A unit and its size in base units.
pub type Unit = (&'static str, u64);

/// Base unit: nanosecond. The two µ are the micro sign and the Greek letter.
pub const DURATION: &[Unit] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Base unit: bit per second. The last three are those of `tc`.
pub const RATE: &[Unit] = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
];
/// Base unit: byte.
pub const SIZE: &[Unit] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
/// Base unit: packet.
pub const PACKETS: &[Unit] = &[("packets", 1), ("packet", 1)];
/// Base unit: segment.
pub const SEGMENTS: &[Unit] = &[("segments", 1), ("segment", 1)];

/// A physical quantity that need not be exact: metres, watts, hertz.
#[derive(Debug)]
pub struct Measure {
    /// Its name with the article, for messages: "a length".
    pub what: &'static str,
    /// An example for messages: "250 m".
    pub example: &'static str,
    /// Its units, each with its conversion to the base unit.
    pub units: &'static [MeasureUnit],
    /// A value in the base unit, as files write it.
    pub show: fn(f64) -> String,
}

/// A unit and its size in the base unit.
pub type MeasureUnit = (&'static str, fn(f64) -> f64);

/// Base unit: metre.
pub static LENGTH: Measure = Measure {
    what: "a length",
    example: "250 m",
    units: &[("m", |x| x), ("km", |x| x * 1e3)],
    show: |x| format!("{x} m"),
};

/// Speeds, in metres per second.
pub static SPEED: Measure = Measure {
    what: "a speed",
    example: "10 m/s",
    units: &[("m/s", |x| x), ("km/h", |x| x / 3.6)],
    show: |x| format!("{x} m/s"),
};

impl Measure {
    /// The names of its units.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().map(|(name, _)| *name)
    }

    /// Reads a number, optionally with sign and exponent, and its unit; returns the value in the
    /// base unit.
    pub fn parse<'a>(&self, text: &'a str) -> Result<f64, QuantityError<'a>> {
        let text = text.trim();
        // An `e` belongs to the number if digits follow it.
        let bytes = text.as_bytes();
        let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
        let of_number = |i: usize| match bytes[i] {
            b'0'..=b'9' | b'.' => true,
            b'-' | b'+' => i == 0 || bytes[i - 1] == b'e',
            b'e' => digit(i + 1) || (matches!(bytes.get(i + 1), Some(b'-' | b'+')) && digit(i + 2)),
            _ => false,
        };
        let end = (0..bytes.len()).find(|&i| !of_number(i)).unwrap_or(text.len());
        let number: f64 = text[..end].parse().map_err(|_| QuantityError::NotANumber)?;
        let unit = match text[end..].trim_start() {
            "" => return Err(QuantityError::NoUnit),
            unit => unit,
        };
        let known = self.units.iter().find(|(name, _)| *name == unit);
        let value = known.ok_or(QuantityError::UnknownUnit(unit))?.1(number);
        if value.is_finite() { Ok(value) } else { Err(QuantityError::TooLarge) }
    }
}

/// The reason that a quantity could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError<'a> {
    /// It does not begin with a decimal number.
    NotANumber,
    /// The number is negative.
    Negative,
    /// A number without a unit.
    NoUnit,
    /// A number with an unknown unit.
    UnknownUnit(&'a str),
    /// Finer than the base unit.
    TooFine,
    /// Beyond the type that holds it: `u64`, or a finite `f64`.
    TooLarge,
}

/// Splits `"1.5 Mbit/s"` into number and unit.
fn split(text: &str) -> Result<(&str, &str), QuantityError<'_>> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('-') {
        let negative = rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
        return Err(if negative { QuantityError::Negative } else { QuantityError::NotANumber });
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let mut parts = number.split('.');
    let digits = parts.next().is_some_and(|p| !p.is_empty())
        && parts.next().is_none_or(|p| !p.is_empty())
        && parts.next().is_none();
    match (digits, unit) {
        (false, _) => Err(QuantityError::NotANumber),
        (true, "") => Err(QuantityError::NoUnit),
        (true, unit) => Ok((number, unit)),
    }
}

/// Reads a quantity as a whole number of base units.
pub fn parse<'a>(text: &'a str, units: &[Unit]) -> Result<u64, QuantityError<'a>> {
    let (number, unit) = split(text)?;
    let factor = units.iter().find(|(name, _)| *name == unit);
    let factor = factor.ok_or(QuantityError::UnknownUnit(unit))?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    // Every base unit divides 10^10 of the largest unit, so a number with more decimals cannot be
    // whole.
    if fraction.len() > 20 {
        return Err(QuantityError::TooFine);
    }
    let too_large = |_| QuantityError::TooLarge;
    let whole: u128 = whole.parse().map_err(too_large)?;
    let scale = 10u128.pow(fraction.len() as u32);
    let fraction: u128 =
        if fraction.is_empty() { 0 } else { fraction.parse().map_err(too_large)? };
    let mantissa = whole.checked_mul(scale).and_then(|w| w.checked_add(fraction));
    let product = mantissa.and_then(|m| m.checked_mul(u128::from(factor)));
    let product = product.ok_or(QuantityError::TooLarge)?;
    if product % scale != 0 {
        return Err(QuantityError::TooFine);
    }
    u64::try_from(product / scale).map_err(|_| QuantityError::TooLarge)
}

/// Reads a quantity that may be fractional (RED's thresholds, in packets).
pub fn parse_fractional<'a>(text: &'a str, units: &[Unit]) -> Result<f64, QuantityError<'a>> {
    let (number, unit) = split(text)?;
    let factor = units.iter().find(|(name, _)| *name == unit);
    let factor = factor.ok_or(QuantityError::UnknownUnit(unit))?.1;
    let number: f64 = number.parse().map_err(|_| QuantityError::NotANumber)?;
    let value = number * factor as f64;
    if value.is_finite() { Ok(value) } else { Err(QuantityError::TooLarge) }
}

/// Reads a rate in bytes per second (`8 MB/s`, `8 MBps`): a likely slip where bits are expected.
/// `None`: it is none.
pub(crate) fn rate_in_bytes(text: &str) -> Option<DataRate> {
    let (number, unit) = split(text).ok()?;
    let size = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps"))?;
    // A small b is a bit.
    let known = |(name, _): &&Unit| size.ends_with('B') && name.eq_ignore_ascii_case(size);
    let (name, _) = SIZE.iter().find(known)?;
    let bytes = parse(&format!("{number} {name}"), SIZE).ok()?;
    DataRate::from_bits_per_sec(bytes.checked_mul(8)?)
}

/// Reads a size in bits (`8 Mbit`): a likely slip where bytes are expected. The text for the same
/// size in bytes (`1 MB`); `None`: it is none, or not whole bytes.
pub(crate) fn size_in_bits(text: &str) -> Option<String> {
    const BITS: &[Unit] =
        &[("bit", 1), ("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000)];
    let bits = parse(text, BITS).ok().filter(|bits| *bits > 0 && bits.is_multiple_of(8))?;
    let bytes = bits / 8;
    let decimal = SIZE.iter().filter(|(name, _)| !name.contains('i'));
    let (name, unit) = decimal.rev().find(|(_, unit)| bytes.is_multiple_of(*unit))?;
    Some(format!("{} {name}", bytes / unit))
}

/// Reads a duration as files write it (`20 ms`).
///
/// # Errors
/// Says what was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let nanos = parse(text, DURATION).map(Duration::from_nanos);
    nanos.map_err(|_| "expected a duration, such as 20 ms".to_owned())
}

/// Reads a rate as files write it (`8 Mbit/s`, `8mbit`).
///
/// # Errors
/// Says what was expected.
pub fn rate(text: &str) -> Result<DataRate, String> {
    let rate = parse(text, RATE).ok().and_then(DataRate::from_bits_per_sec);
    rate.ok_or_else(|| match rate_in_bytes(text) {
        Some(rate) => format!("expected bits per second, not bytes: {rate}"),
        None => "expected a rate above 0, such as 8 Mbit/s".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(parse("170 ms", DURATION), Ok(170_000_000));
        assert_eq!(parse("0.1 s", DURATION), Ok(100_000_000));
        assert_eq!(parse("5µs", DURATION), Ok(5_000));
        assert_eq!(parse("2 min", DURATION), Ok(120_000_000_000));
        assert_eq!(parse("1.000 ns", DURATION), Ok(1));
        assert_eq!(parse("5.5 Mbit/s", RATE), Ok(5_500_000));
        assert_eq!(parse("1 KiB", SIZE), Ok(1024));
        assert_eq!(parse("64 kB", SIZE), Ok(64_000));
        assert_eq!(parse("18446744073709551615 ns", DURATION), Ok(u64::MAX));
        assert_eq!(parse_fractional("7.5 packets", PACKETS), Ok(7.5));
    }

    #[test]
    fn bytes_for_bits_and_bits_for_bytes_are_known() {
        let rate = |text| rate_in_bytes(text).map(|rate| rate.to_string());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(rate("8 MB/s"), some("64 Mbit/s"));
        assert_eq!(rate("1.5KBps"), some("12 kbit/s"));
        assert_eq!(rate("1 MiB/s"), some("8.388608 Mbit/s"));
        for text in ["8 Mb/s", "8 Mbps", "8 MB", "MB/s", "0 B/s", "-1 B/s"] {
            assert_eq!(rate(text), None, "{text}");
        }
        assert_eq!(size_in_bits("8 Mbit"), some("1 MB"));
        assert_eq!(size_in_bits("100 kbit"), some("12500 B"));
        for text in ["4 bit", "0 bit", "8 Mb", "8 MB"] {
            assert_eq!(size_in_bits(text), None, "{text}");
        }
        assert_eq!(
            super::rate("8 MB/s"),
            Err("expected bits per second, not bytes: 64 Mbit/s".into())
        );
    }

    #[test]
    fn measures_have_signs_and_exponents() {
        assert_eq!(LENGTH.parse("0.25 km"), Ok(250.0));
        assert_eq!(LENGTH.parse("-5m"), Ok(-5.0));
        assert_eq!(LENGTH.parse("3.652e-10 m"), Ok(3.652e-10));
        assert_eq!(LENGTH.parse("250"), Err(QuantityError::NoUnit));
        assert_eq!(LENGTH.parse("250 mm"), Err(QuantityError::UnknownUnit("mm")));
        for text in ["", "m", "e5 m", "1.2.3 m", "far"] {
            assert_eq!(LENGTH.parse(text), Err(QuantityError::NotANumber), "{text}");
        }
    }

    #[test]
    fn each_kind_of_malformed_quantity_has_its_own_error() {
        assert_eq!(parse("20", DURATION), Err(QuantityError::NoUnit));
        assert_eq!(parse("20 sec", DURATION), Err(QuantityError::UnknownUnit("sec")));
        assert_eq!(parse("-5 ms", DURATION), Err(QuantityError::Negative));
        assert_eq!(parse("-inf", DURATION), Err(QuantityError::NotANumber));
        for text in ["", "ms", ".5 s", "1. s", "1.2.3 s", "soon"] {
            assert_eq!(parse(text, DURATION), Err(QuantityError::NotANumber), "{text}");
        }
        assert_eq!(parse("0.5 ns", DURATION), Err(QuantityError::TooFine));
        assert_eq!(parse("0.0001 kbit/s", RATE), Err(QuantityError::TooFine));
        assert_eq!(parse("18446744073709551616 ns", DURATION), Err(QuantityError::TooLarge));
        assert_eq!(parse(&"9".repeat(60), DURATION), Err(QuantityError::NoUnit));
        assert_eq!(parse(&format!("{} s", "9".repeat(60)), DURATION), Err(QuantityError::TooLarge));
        assert_eq!(
            parse(&format!("0.{}1 s", "0".repeat(60)), DURATION),
            Err(QuantityError::TooFine)
        );
    }
}
