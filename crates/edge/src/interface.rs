//! The name of a network interface.

use std::fmt;
use std::str::FromStr;

/// The longest name of an interface (Linux: `IFNAMSIZ`, less the zero at its end).
const LONGEST: usize = 15;

/// Name of a network interface: 1 to 15 letters, digits, `-`, `_` or `.`. Some of what the kernel
/// would allow beyond that means something else to iptables or nftables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName {
    /// Followed by zeros.
    bytes: [u8; LONGEST],
}

/// A text is not the name of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an interface")]
pub struct NotAnInterface;

impl FromStr for InterfaceName {
    type Err = NotAnInterface;

    fn from_str(text: &str) -> Result<Self, NotAnInterface> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let fits = (1..=LONGEST).contains(&text.len()) && text.chars().all(allowed);
        if !fits || text == "." || text == ".." || text.starts_with('-') {
            return Err(NotAnInterface);
        }
        let mut bytes = [0; LONGEST];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { bytes })
    }
}

impl InterfaceName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        let len = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(LONGEST);
        std::str::from_utf8(&self.bytes[..len]).expect("ASCII")
    }

    /// The name, followed by zeros.
    pub const fn padded(&self) -> [u8; LONGEST] {
        self.bytes
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_out_as_it_went_in() {
        for name in ["a", "wwan0", "br-lan.7", "enx0123456789ab"] {
            assert_eq!(name.parse::<InterfaceName>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn what_means_something_else_in_a_rule_is_no_name() {
        for name in
            ["", ".", "..", "-i", "a b", "wlan+", "wlan*", "a/b", "wwan0\n", "sixteen-letters!"]
        {
            assert_eq!(name.parse::<InterfaceName>(), Err(NotAnInterface), "{name:?}");
        }
    }
}
