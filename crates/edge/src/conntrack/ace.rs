//! Congestion marks that a host echoes, as its segments showed them last: ECE alone (RFC 3168), or
//! with AccECN the ACE field (RFC 9768 §3.2.2), three flags that count what it received marked.
//! Segments on its behalf repeat them.

use airtcp_core::{Flags, Payload, Segment};
use serde::{Deserialize, Serialize};

/// The flags of the ACE field.
pub(crate) const FIELD: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);

/// The three flags of a host's last segment. They are AccECN's once either host has set AE, as each
/// does with the first value of its counter (RFC 9768 §3.2.1), or has sent the option, which any
/// segment may lack (§3.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ace(u8);

/// The connection has AccECN. In one byte with the field: a gateway has many connections.
const ACCURATE: u8 = Flags::FIN.bits();

impl Ace {
    /// As a segment without SYN shows it.
    pub fn of<P: Payload>(segment: &Segment<P>) -> Self {
        let accurate = if segment.shows_accecn() { ACCURATE } else { 0 };
        Self((segment.flags & FIELD).bits() | accurate)
    }

    /// After a segment of the host that is no older than those before.
    #[must_use]
    pub fn followed_by(self, later: Self) -> Self {
        later.as_accurate_as(self)
    }

    /// AccECN holds for both hosts: what one shows goes for the other.
    #[must_use]
    pub fn as_accurate_as(self, other: Self) -> Self {
        Self(self.0 | (other.0 & ACCURATE))
    }

    /// True if `flags` echo the same marks.
    pub fn is_shown_by(self, flags: Flags) -> bool {
        let echo = if self.is_accurate() { FIELD } else { Flags::ECE };
        (self.field() & echo) == (flags & echo)
    }

    /// Flags of an acknowledgement on the host's behalf. CWR of RFC 3168 is not repeated: it
    /// answers an echo once (§6.1.2).
    pub fn echo(self) -> Flags {
        if self.is_accurate() { self.field() } else { self.field() & Flags::ECE }
    }

    /// `flags` of an earlier segment of the host, with its present count.
    pub fn renew(self, flags: Flags) -> Flags {
        if self.is_accurate() { (flags - FIELD) | self.field() } else { flags }
    }

    fn is_accurate(self) -> bool {
        self.0 & ACCURATE != 0
    }

    fn field(self) -> Flags {
        Flags::from_bits_truncate(self.0) & FIELD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{AccEcnOption, AccEcnOrder, EcnBytes, Length, Options};

    fn shown(flags: Flags) -> Ace {
        Ace::of(&Segment { flags, ..Segment::<Length>::default() })
    }

    fn shown_with_option(flags: Flags) -> Ace {
        let accecn = Some(AccEcnOption::new(AccEcnOrder::Ect1First, &EcnBytes::INITIAL, 3));
        let options = Options { accecn, ..Options::default() };
        Ace::of(&Segment { flags, options, ..Segment::<Length>::default() })
    }

    #[test]
    fn of_rfc_3168_the_echo_is_repeated_alone() {
        let ace = shown(Flags::PSH | Flags::CWR | Flags::ECE);
        assert_eq!((ace.echo(), shown(Flags::CWR).echo()), (Flags::ECE, Flags::empty()));
        assert_eq!(ace.renew(Flags::PSH | Flags::CWR), Flags::PSH | Flags::CWR);
        assert!(ace.is_shown_by(Flags::ECE) && !ace.is_shown_by(Flags::CWR));
    }

    // RFC 9768 §3.2.1: the counter begins with 101, and wraps.
    #[test]
    fn a_counter_is_repeated_in_all_three_bits_once_ae_was_seen() {
        let first = shown(Flags::AE | Flags::ECE);
        assert_eq!(first.echo(), Flags::AE | Flags::ECE);
        for bits in 0..8 {
            let flags = [Flags::ECE, Flags::CWR, Flags::AE];
            let of_bit = |n: usize| if (bits >> n) & 1 == 1 { flags[n] } else { Flags::empty() };
            let field = of_bit(0) | of_bit(1) | of_bit(2);
            let ace = first.followed_by(shown(field | Flags::PSH));
            assert_eq!(
                (ace.echo(), ace.renew(Flags::PSH | Flags::CWR)),
                (field, Flags::PSH | field)
            );
            assert!(ace.is_shown_by(field | Flags::PSH) && !ace.is_shown_by(field ^ Flags::CWR));
        }
    }

    // RFC 9768 §3.2.3: the option may be missing from any segment.
    #[test]
    fn an_option_once_tells_accecn_for_good() {
        let ace = shown_with_option(Flags::CWR).followed_by(shown(Flags::CWR | Flags::ECE));
        assert_eq!(ace.echo(), Flags::CWR | Flags::ECE);
    }

    #[test]
    fn what_one_host_shows_goes_for_the_other() {
        let ace = shown(Flags::CWR).as_accurate_as(shown(Flags::AE | Flags::ECE));
        assert_eq!(ace.echo(), Flags::CWR);
    }
}
