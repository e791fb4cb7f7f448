//! What `airtcp agent` and the gateway say to each other, as bytes.
//!
//! Read first: RFC 2104 (HMAC). The agent sends a [`Report`], the gateway an [`Answer`]; each is
//! one UDP datagram, in network order, and ends with HMAC-SHA-256 over all that is before it:
//!
//! | report | bytes | answer | bytes |
//! |---|---|---|---|
//! | "atcp" | 4 | "atcp" | 4 |
//! | version, 1 | 1 | version, 1 | 1 |
//! | kind, 1 | 1 | kind, 2 | 1 |
//! | signal: 1 fading, 2 down, 3 up | 1 | verdict: 1 taken, 2 untimely, 3 not allowed | 1 |
//! | addresses that follow, 1 to 8 | 1 | 0 | 1 |
//! | name of the key, filled up with zeros | 16 | | |
//! | stamp | 8 | stamp of the report | 8 |
//! | | | stamp that would be taken now | 8 |
//! | addresses, IPv4 ones mapped (::ffff:0:0/96) | 16 each | | |
//! | HMAC | 32 | HMAC | 32 |
//!
//! An answer is shorter than any report, so a gateway cannot be used to flood somebody. Who may say
//! what and when is not decided here but in [`gate`](super::gate).

use super::keys::{KeyName, Secret};
use airtcp_core::{Duration, LinkSignal};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::net::{IpAddr, Ipv6Addr};

/// Most addresses in one report.
pub const MOST_MOBILES: usize = 8;
/// No datagram of the protocol is longer.
pub const MOST_BYTES: usize = REPORT_HEAD + 16 * MOST_MOBILES + TAG;

const MAGIC: &[u8; 4] = b"atcp";
const VERSION: u8 = 1;
const REPORT: u8 = 1;
const ANSWER: u8 = 2;
const REPORT_HEAD: usize = 32;
const ANSWER_HEAD: usize = 24;
const TAG: usize = 32;

/// Time at which a message was made, and its sequence number: nanoseconds since 1970. Of two
/// messages the one with the larger stamp is the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Stamp {
    /// That much later.
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
    /// The time from `earlier` to this; zero if that was later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// An agent says how the link to mobiles is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Name of the sender's key.
    pub key: KeyName,
    /// Larger than in any earlier report by that key.
    pub stamp: Stamp,
    /// State of the link.
    pub signal: LinkSignal,
    /// Addresses of the mobiles, 1 to [`MOST_MOBILES`].
    pub mobiles: Vec<IpAddr>,
}

/// The gateway says what became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Stamp of the report.
    pub to: Stamp,
    /// The gateway's verdict.
    pub verdict: Verdict,
    /// A report with this stamp would not be untimely now.
    pub clock: Stamp,
}

/// The verdict on an authentic report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The gateway acts on it.
    Taken,
    /// Too old, from the future, or overtaken by a later one.
    Untimely,
    /// The key does not speak for one of the addresses.
    NotAllowed,
}

/// A datagram that is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not of this protocol and version, or cut.
    Malformed,
    /// Nobody has a key of that name.
    UnknownKey,
    /// It was not made with the key.
    Forged,
}

impl Report {
    /// As bytes that only one who has `secret` can make.
    ///
    /// # Panics
    /// With no or too many mobiles.
    pub fn seal(&self, secret: &Secret) -> Vec<u8> {
        let count = self.mobiles.len();
        assert!((1..=MOST_MOBILES).contains(&count), "{count} mobiles");
        let mut bytes = head(REPORT, signal_code(self.signal), count as u8);
        bytes.extend(self.key.padded());
        bytes.extend(self.stamp.0.to_be_bytes());
        for mobile in &self.mobiles {
            let mapped = match mobile {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => *address,
            };
            bytes.extend(mapped.octets());
        }
        sealed(bytes, secret)
    }

    /// Reads what somebody sent; `secret` knows the keys.
    ///
    /// # Errors
    /// It is not a report, or not by one who has the key.
    pub fn open<'a>(
        bytes: &[u8],
        secret: impl FnOnce(&KeyName) -> Option<&'a Secret>,
    ) -> Result<Self, Refusal> {
        let (code, count) = opened_head(bytes, REPORT).ok_or(Refusal::Malformed)?;
        let count = usize::from(count);
        if !(1..=MOST_MOBILES).contains(&count) || bytes.len() != REPORT_HEAD + 16 * count + TAG {
            return Err(Refusal::Malformed);
        }
        let signal = signal_of(code).ok_or(Refusal::Malformed)?;
        let key = KeyName::from_padded(array(bytes, 8)).ok_or(Refusal::Malformed)?;
        let body = verified(bytes, secret(&key).ok_or(Refusal::UnknownKey)?)?;
        let stamp = Stamp(u64::from_be_bytes(array(body, 24)));
        let address = |i| Ipv6Addr::from(array::<16>(body, REPORT_HEAD + 16 * i)).to_canonical();
        Ok(Self { key, stamp, signal, mobiles: (0..count).map(address).collect() })
    }
}

impl Answer {
    /// As bytes that only one who has `secret` can make.
    pub fn seal(&self, secret: &Secret) -> Vec<u8> {
        let mut bytes = head(ANSWER, verdict_code(self.verdict), 0);
        bytes.extend(self.to.0.to_be_bytes());
        bytes.extend(self.clock.0.to_be_bytes());
        sealed(bytes, secret)
    }

    /// Reads what somebody sent.
    ///
    /// # Errors
    /// It is not an answer, or not by one who has the key.
    pub fn open(bytes: &[u8], secret: &Secret) -> Result<Self, Refusal> {
        let (code, zero) = opened_head(bytes, ANSWER).ok_or(Refusal::Malformed)?;
        if zero != 0 || bytes.len() != ANSWER_HEAD + TAG {
            return Err(Refusal::Malformed);
        }
        let verdict = verdict_of(code).ok_or(Refusal::Malformed)?;
        let body = verified(bytes, secret)?;
        let [to, clock] = [8, 16].map(|at| Stamp(u64::from_be_bytes(array(body, at))));
        Ok(Self { to, verdict, clock })
    }
}

fn head(kind: u8, code: u8, count: u8) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([VERSION, kind, code, count]);
    bytes
}

/// Code and count of a message of this kind that is at least long enough for its tag.
fn opened_head(bytes: &[u8], kind: u8) -> Option<(u8, u8)> {
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&[VERSION, kind])?;
    (rest.len() > TAG).then(|| (rest[0], rest[1]))
}

/// The bytes from `at` on, which the caller knows to be there.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("as long as asked for")
}

fn mac(secret: &Secret, bytes: &[u8]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(secret.bytes()).expect("a key may have any length");
    mac.chain_update(bytes)
}

fn sealed(mut bytes: Vec<u8>, secret: &Secret) -> Vec<u8> {
    let tag = mac(secret, &bytes).finalize().into_bytes();
    bytes.extend(tag);
    bytes
}

/// The bytes before the tag, if the tag is right (compared in constant time).
fn verified<'a>(bytes: &'a [u8], secret: &Secret) -> Result<&'a [u8], Refusal> {
    let (body, tag) = bytes.split_at(bytes.len() - TAG);
    mac(secret, body).verify_slice(tag).map_err(|_| Refusal::Forged)?;
    Ok(body)
}

fn signal_code(signal: LinkSignal) -> u8 {
    match signal {
        LinkSignal::Fading => 1,
        LinkSignal::Down => 2,
        LinkSignal::Up => 3,
    }
}

fn signal_of(code: u8) -> Option<LinkSignal> {
    LinkSignal::ALL.into_iter().find(|&s| signal_code(s) == code)
}

fn verdict_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Taken => 1,
        Verdict::Untimely => 2,
        Verdict::NotAllowed => 3,
    }
}

fn verdict_of(code: u8) -> Option<Verdict> {
    [Verdict::Taken, Verdict::Untimely, Verdict::NotAllowed]
        .into_iter()
        .find(|&v| verdict_code(v) == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secret(byte: u8) -> Secret {
        Secret::new(vec![byte; 16]).unwrap()
    }

    fn report() -> Report {
        Report {
            key: KeyName::new("phone").unwrap(),
            stamp: Stamp(0x0102_0304_0506_0708),
            signal: LinkSignal::Down,
            mobiles: vec!["10.0.0.7".parse().unwrap(), "2001:db8::7".parse().unwrap()],
        }
    }

    fn opened(bytes: &[u8]) -> Result<Report, Refusal> {
        let known = secret(7);
        Report::open(bytes, |name| (name.as_str() == "phone").then_some(&known))
    }

    #[test]
    fn a_report_has_the_documented_layout() {
        let bytes = report().seal(&secret(7));
        let wanted = "61746370_01010202_70686f6e650000000000000000000000_0102030405060708\
            _00000000000000000000ffff0a000007_20010db8000000000000000000000007";
        let (body, tag) = bytes.split_at(bytes.len() - 32);
        assert_eq!(hex::encode(body), wanted.replace('_', ""));
        // By another implementation: Python's `hmac.new(bytes([7]) * 16, body,
        // "sha256").hexdigest()`.
        let wanted_tag = "023271134bc967a20172fa5906a42efc23669640bc94dea14e7c18b8f12efad8";
        assert_eq!(hex::encode(tag), wanted_tag);
    }

    #[test]
    fn a_report_opens_with_its_key_only() {
        let report = report();
        assert_eq!(opened(&report.seal(&secret(7))), Ok(report.clone()));
        assert_eq!(opened(&report.seal(&secret(8))), Err(Refusal::Forged));
        let stranger = Report { key: KeyName::new("laptop").unwrap(), ..report };
        assert_eq!(opened(&stranger.seal(&secret(7))), Err(Refusal::UnknownKey));
    }

    #[test]
    fn an_answer_opens_with_its_key_only() {
        for verdict in [Verdict::Taken, Verdict::Untimely, Verdict::NotAllowed] {
            let answer = Answer { to: Stamp(3), verdict, clock: Stamp(u64::MAX) };
            assert_eq!(Answer::open(&answer.seal(&secret(7)), &secret(7)), Ok(answer));
            assert_eq!(Answer::open(&answer.seal(&secret(8)), &secret(7)), Err(Refusal::Forged));
        }
    }

    #[test]
    fn no_message_passes_for_one_of_the_other_kind() {
        let answer = Answer { to: Stamp(3), verdict: Verdict::Taken, clock: Stamp(4) };
        assert_eq!(opened(&answer.seal(&secret(7))), Err(Refusal::Malformed));
        assert_eq!(Answer::open(&report().seal(&secret(7)), &secret(7)), Err(Refusal::Malformed));
    }

    #[test]
    fn an_answer_is_shorter_than_any_report() {
        let answer = Answer { to: Stamp(3), verdict: Verdict::Taken, clock: Stamp(4) };
        let shortest = Report { mobiles: vec![Ipv6Addr::LOCALHOST.into()], ..report() };
        assert!(answer.seal(&secret(7)).len() < shortest.seal(&secret(7)).len());
    }

    #[test]
    fn a_report_that_is_cut_or_too_long_is_malformed() {
        let bytes = report().seal(&secret(7));
        for length in 0..bytes.len() {
            assert_eq!(opened(&bytes[..length]), Err(Refusal::Malformed), "{length}");
        }
        assert_eq!(opened(&[bytes, vec![0]].concat()), Err(Refusal::Malformed));
    }

    proptest! {
        #[test]
        fn a_changed_bit_is_found(bit in 0..8 * (REPORT_HEAD + 32 + TAG)) {
            let mut bytes = report().seal(&secret(7));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(opened(&bytes).is_err());
        }
    }
}
