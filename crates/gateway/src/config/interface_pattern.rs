//! Interfaces of a group, by name.

use airtcp_edge::{InterfaceName, NotAnInterface};
use std::fmt;
use std::str::FromStr;

/// One interface by its name, or all whose names begin alike (`ppp*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterfacePattern {
    /// The interface of this name.
    Exactly(InterfaceName),
    /// All interfaces whose names begin so.
    Beginning(InterfaceName),
}

impl InterfacePattern {
    /// The name, if it matches only one.
    pub const fn name(&self) -> Option<InterfaceName> {
        match *self {
            Self::Exactly(name) => Some(name),
            Self::Beginning(_) => None,
        }
    }

    /// True for an interface of this name.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exactly(known) => known.as_str() == name,
            Self::Beginning(prefix) => name.starts_with(prefix.as_str()),
        }
    }

    /// True if every interface that `other` matches is matched.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exactly(_), Self::Beginning(_)) => false,
            (_, Self::Exactly(name) | Self::Beginning(name)) => self.matches(name.as_str()),
        }
    }
}

/// A `*` at the end stands for any ending.
impl FromStr for InterfacePattern {
    type Err = NotAnInterface;

    fn from_str(text: &str) -> Result<Self, NotAnInterface> {
        match text.strip_suffix('*') {
            None => text.parse().map(Self::Exactly),
            Some(prefix) => prefix.parse().map(Self::Beginning),
        }
    }
}

/// As in a file, and in nftables.
impl fmt::Display for InterfacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(name) => name.fmt(f),
            Self::Beginning(prefix) => write!(f, "{prefix}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> InterfacePattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_star_at_the_end_stands_for_any_ending() {
        let cases = [
            ("ppp0", "ppp0", true),
            ("ppp0", "ppp01", false),
            ("ppp*", "ppp0", true),
            ("ppp*", "ppp", true),
            ("ppp*", "wwan0", false),
        ];
        for (text, name, expected) in cases {
            assert_eq!(pattern(text).matches(name), expected, "{text} {name}");
            assert_eq!(pattern(text).to_string(), text);
        }
        for text in ["*", "p*p", "ppp**", "", "ppp+"] {
            assert!(text.parse::<InterfacePattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_covers_what_it_matches_in_any_case() {
        let cases = [
            ("ppp*", "ppp0", true),
            ("ppp*", "ppp1*", true),
            ("ppp1*", "ppp*", false),
            ("ppp0", "ppp0*", false),
            ("ppp0", "ppp0", true),
        ];
        for (one, other, expected) in cases {
            assert_eq!(pattern(one).covers(&pattern(other)), expected, "{one} {other}");
        }
    }
}
