//! The keys of the mobiles' agents: a text file, one key a line.
//!
//! ```text
//! # name   key, 16 to 64 bytes in hexadecimal                                         speaks for
//! phone    b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7   10.0.0.7 2001:db8::7
//! train-3  4e1bd5f7f5a2a5b0e40b5bd6f3a1c9d2                                   10.3.0.0/16
//! ```
//!
//! The gateway has the keys of all agents, an agent has a file with its own line only.

use ipnet::IpNet;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Fewest and most bytes of a key. HMAC-SHA-256 would take any number; fewer can be guessed, more
/// gain nothing.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 16..=64;

/// The name of a key: 1 to 16 of a-z, A-Z, 0-9, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyName(String);

impl KeyName {
    /// Bytes of the longest one.
    const MOST: usize = 16;

    /// `None` unless `text` is a name.
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let is_name = (1..=Self::MOST).contains(&text.len()) && text.bytes().all(allowed);
        is_name.then(|| Self(text.to_owned()))
    }
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Filled up with zeros.
    pub(super) fn padded(&self) -> [u8; Self::MOST] {
        let mut bytes = [0; Self::MOST];
        bytes[..self.0.len()].copy_from_slice(self.0.as_bytes());
        bytes
    }
    /// `None` unless it is a name filled up with zeros.
    pub(super) fn from_padded(bytes: [u8; Self::MOST]) -> Option<Self> {
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(Self::MOST);
        let (name, zeros) = bytes.split_at(end);
        let is_padded = zeros.iter().all(|&b| b == 0);
        Self::new(std::str::from_utf8(name).ok()?).filter(|_| is_padded)
    }
}

/// The secret that an agent shares with the gateway. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// `None` unless there are 16 to 64 bytes.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        SECRET_BYTES.contains(&bytes.len()).then_some(Self(bytes))
    }
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name in messages.
    pub name: KeyName,
    /// The secret that authenticates messages.
    pub secret: Secret,
    /// Addresses of the mobiles that it speaks for; at least one.
    pub speaks_for: Vec<IpNet>,
}

impl Key {
    /// True if this key may report on the mobile.
    pub fn is_allowed(&self, mobile: IpAddr) -> bool {
        self.speaks_for.iter().any(|net| net.contains(&mobile))
    }

    /// Its line of the file, secret included.
    pub fn line(&self) -> String {
        let nets = self.speaks_for.iter().map(|net| match is_single(net) {
            true => format!(" {}", net.addr()),
            false => format!(" {net}"),
        });
        let name = self.name.as_str();
        format!("{name} {}{}\n", hex::encode(&self.secret.0), nets.collect::<String>())
    }

    /// A line of the file; the error says what is wrong with it, and shows nothing that might be
    /// the secret: errors end in logs.
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let name = KeyName::new(name)
            .ok_or("the first word is not a name of 1 to 16 of a-z A-Z 0-9 - _ .")?;
        let wanted = "expected NAME KEY ADDRESS…, the key being 16 to 64 bytes in hexadecimal";
        let secret = words.next().ok_or(wanted)?;
        let bytes =
            hex::decode(secret).map_err(|_| format!("the key is not hexadecimal; {wanted}"))?;
        let length = bytes.len();
        let secret =
            Secret::new(bytes).ok_or_else(|| format!("the key has {length} bytes; {wanted}"))?;
        let speaks_for = words.map(network).collect::<Result<Vec<_>, _>>()?;
        if speaks_for.is_empty() {
            return Err(format!("key {:?} speaks for no address; {wanted}", name.as_str()));
        }
        Ok(Self { name, secret, speaks_for })
    }
}

/// True if the network is a single address.
pub fn is_single(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}

/// An address or a prefix, such as `10.0.0.7` or `2001:db8::/64`.
///
/// # Errors
/// Says what is wrong.
pub fn network(text: &str) -> Result<IpNet, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.into());
    }
    let net: IpNet = text
        .parse()
        .map_err(|_| format!("{text:?} is neither an address nor a prefix, such as 10.3.0.0/16"))?;
    let trunc = net.trunc();
    if net == trunc {
        Ok(net)
    } else {
        Err(format!("{text} has host bits set; the prefix is {trunc}"))
    }
}

/// The keys of a file, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<KeyName, Key>);

/// A file of keys that is refused.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A line is wrong.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Its number, from 1 on.
        line: usize,
        /// The mistake, and what was expected.
        problem: String,
    },
    /// There is no key in it.
    #[error("{}: no key in it (`airtcp agent keygen` makes one)", .0.display())]
    Empty(PathBuf),
}

impl Keys {
    /// The keys in the text of a file; `path` is for messages.
    ///
    /// # Errors
    /// Something is wrong in it.
    pub fn parse(path: &Path, text: &str) -> Result<Self, KeysError> {
        let mut keys = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |problem| KeysError::Line { path: path.to_owned(), line: number, problem };
            let content = line.split('#').next().unwrap_or_default();
            if content.trim().is_empty() {
                continue;
            }
            let key = Key::parse(content).map_err(wrong)?;
            let name = key.name.clone();
            if keys.insert(name.clone(), key).is_some() {
                return Err(wrong(format!("there is another key {:?} above", name.as_str())));
            }
        }
        if keys.is_empty() { Err(KeysError::Empty(path.to_owned())) } else { Ok(Self(keys)) }
    }

    /// The key of that name.
    pub fn get(&self, name: &KeyName) -> Option<&Key> {
        self.0.get(name)
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f";

    fn parsed(text: &str) -> Result<Keys, String> {
        Keys::parse(Path::new("keys"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_has_a_name_a_key_and_addresses() {
        let text = format!("# all\n\nphone {HEX} 10.0.0.7 2001:db8::/64 # mine\n");
        let keys = parsed(&text).unwrap();
        let key = keys.get(&KeyName::new("phone").unwrap()).unwrap();
        assert_eq!(key.line(), format!("phone {HEX} 10.0.0.7 2001:db8::/64\n"));
        let allowed = ["10.0.0.7", "10.0.0.8", "2001:db8::9", "2001:db8:1::", "::ffff:10.0.0.7"]
            .map(|a| key.is_allowed(a.parse().unwrap()));
        assert_eq!(allowed, [true, false, true, false, false]);
        assert_eq!(format!("{:?}", key.secret), "Secret");
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let wanted = "expected NAME KEY ADDRESS…, the key being 16 to 64 bytes in hexadecimal";
        let cases = [
            (
                "phöne",
                "keys:2: the first word is not a name of 1 to 16 of a-z A-Z 0-9 - _ .".to_owned(),
            ),
            ("phone", format!("keys:2: {wanted}")),
            ("phone 0102", format!("keys:2: the key has 2 bytes; {wanted}")),
            ("phone 01020", format!("keys:2: the key is not hexadecimal; {wanted}")),
            (
                &format!("phone {HEX}"),
                format!("keys:2: key \"phone\" speaks for no address; {wanted}"),
            ),
            (
                &format!("phone {HEX} 10.0.0"),
                "keys:2: \"10.0.0\" is neither an address nor a prefix, such as 10.3.0.0/16"
                    .to_owned(),
            ),
            (
                &format!("phone {HEX} 10.0.0.7/24"),
                "keys:2: 10.0.0.7/24 has host bits set; the prefix is 10.0.0.0/24".to_owned(),
            ),
            (
                &format!("a {HEX} ::1\na {HEX} ::2"),
                "keys:3: there is another key \"a\" above".to_owned(),
            ),
        ];
        for (line, told) in cases {
            assert_eq!(parsed(&format!("\n{line}\n")), Err(told));
        }
        assert_eq!(
            parsed("# none\n"),
            Err("keys: no key in it (`airtcp agent keygen` makes one)".into())
        );
    }
}
