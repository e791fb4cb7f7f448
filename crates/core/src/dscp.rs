//! The Differentiated Services field.

use std::fmt;

/// A DSCP: the upper six bits of IPv4's TOS octet and of IPv6's traffic class (RFC 2474 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dscp(u8);

impl Dscp {
    /// Default forwarding, CS0: what a host sends that marks nothing.
    pub const DEFAULT: Self = Self(0);
    /// Expedited forwarding (RFC 3246), for voice (RFC 4594 §4.1).
    pub const EF: Self = Self(46);
    /// The largest value.
    pub const MAX: u8 = 63;

    /// The names of IANA's registry, and what traffic RFC 4594, RFC 5865 and RFC 8622 give them.
    pub const NAMES: &'static [(&'static str, &'static str)] = &[
        ("CS0", "0, default forwarding"),
        ("LE", "1, lower effort"),
        ("CS1", "8"),
        ("AF11", "10, bulk data"),
        ("AF12", "12"),
        ("AF13", "14"),
        ("CS2", "16, management"),
        ("AF21", "18, interactive data"),
        ("AF22", "20"),
        ("AF23", "22"),
        ("CS3", "24, broadcast video"),
        ("AF31", "26, streaming"),
        ("AF32", "28"),
        ("AF33", "30"),
        ("CS4", "32, real-time interactive"),
        ("AF41", "34, video conferences"),
        ("AF42", "36"),
        ("AF43", "38"),
        ("CS5", "40, signalling"),
        ("VOICE-ADMIT", "44, admitted voice"),
        ("EF", "46, voice"),
        ("CS6", "48, routing"),
        ("CS7", "56"),
    ];

    /// From its six bits; `None` for a number above 63.
    pub const fn new(value: u8) -> Option<Self> {
        if value > Self::MAX { None } else { Some(Self(value)) }
    }
    /// From an octet whose lower two bits are the ECN field.
    pub const fn from_octet(octet: u8) -> Self {
        Self(octet >> 2)
    }
    /// The DSCP of this name, one of [`Self::NAMES`].
    pub fn named(name: &str) -> Option<Self> {
        let (_, meaning) = Self::NAMES.iter().find(|(known, _)| *known == name)?;
        let digits = meaning.split(',').next()?;
        digits.parse().ok().and_then(Self::new)
    }
    /// Its six bits.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Its upper three bits: the precedence that the field had before (RFC 2474 §4.2.2).
    pub const fn precedence(self) -> u8 {
        self.0 >> 3
    }
    /// Its name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.iter().map(|(name, _)| *name).find(|name| Self::named(name) == Some(self))
    }
}

/// Its name, or else its number.
impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_the_numbers_of_their_rfcs() {
        // RFC 2474 §4.2.2: CSn is 8n. RFC 2597 §6: AFcd is 8c + 2d.
        for n in 0..8 {
            assert_eq!(Dscp::named(&format!("CS{n}")), Dscp::new(8 * n));
        }
        for (class, drop) in (1..5).flat_map(|class| (1..4).map(move |drop| (class, drop))) {
            assert_eq!(Dscp::named(&format!("AF{class}{drop}")), Dscp::new(8 * class + 2 * drop));
        }
        // RFC 3246, RFC 5865, RFC 8622.
        let numbers = ["EF", "VOICE-ADMIT", "LE"].map(|name| Dscp::named(name).map(Dscp::bits));
        assert_eq!(numbers, [Some(46), Some(44), Some(1)]);
        assert_eq!(Dscp::named("AF44"), None);
    }

    #[test]
    fn a_dscp_has_six_bits_beside_the_two_of_ecn() {
        assert_eq!(Dscp::new(64), None);
        assert_eq!(Dscp::from_octet(0xb9), Dscp::EF);
        assert_eq!(Dscp::EF.precedence(), 5);
        assert_eq!(Dscp::from_octet(0xff).to_string(), "63");
        assert_eq!(Dscp::EF.to_string(), "EF");
    }
}
