//! The ACE field of a host with AccECN (RFC 9768 §3.2.2): three flags that count what it received
//! marked, and that segments on its behalf repeat.

use airtcp_core::Flags;

/// AE, CWR and ECE.
const FIELD: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);

/// The field as the host showed it last; unknown until AE tells it from the flags of RFC 3168,
/// which the first counters do. Not saved: gateways leave connections with AccECN alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ace(u8);

/// The field is known. In one byte with it: a gateway has many connections.
const KNOWN: u8 = Flags::FIN.bits();

impl Ace {
    /// Takes note of the flags of a segment without SYN, no older than those before.
    pub fn note(&mut self, flags: Flags) {
        if self.is_known() || flags.contains(Flags::AE) {
            self.0 = KNOWN | (flags & FIELD).bits();
        }
    }

    /// True if `flags` show the same count, or none is known.
    pub fn is_shown_by(self, flags: Flags) -> bool {
        !self.is_known() || self.field() == flags & FIELD
    }

    /// `flags` with the host's count.
    pub fn put(self, flags: Flags) -> Flags {
        if self.is_known() { (flags - FIELD) | self.field() } else { flags }
    }

    fn is_known(self) -> bool {
        self.0 & KNOWN != 0
    }

    fn field(self) -> Flags {
        Flags::from_bits_truncate(self.0) & FIELD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_rfc_3168_are_no_counter() {
        let mut ace = Ace::default();
        ace.note(Flags::CWR);
        assert_eq!(ace.put(Flags::ECE), Flags::ECE);
    }

    // RFC 9768 §3.2.1: the counter begins with 101, and wraps.
    #[test]
    fn a_counter_is_repeated_once_it_is_known() {
        let mut ace = Ace::default();
        ace.note(Flags::AE | Flags::ECE);
        assert_eq!(ace.put(Flags::PSH | Flags::CWR), Flags::PSH | Flags::AE | Flags::ECE);
        ace.note(Flags::CWR);
        assert_eq!(ace.put(Flags::empty()), Flags::CWR);
        assert!(ace.is_shown_by(Flags::CWR | Flags::PSH) && !ace.is_shown_by(Flags::empty()));
    }
}
