//! Files with the keys of the mobiles' agents.
//!
//! Read first: [`airtcp_gateway::signals::keys`] (their content).

use airtcp_gateway::signals::keys::{Key, KeyName, Keys, KeysError, Secret};
use ipnet::IpNet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a generated key: the length of the hash's output (RFC 2104 §3).
const GENERATED_BYTES: usize = 32;
/// Largest size of a file of keys, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Reason why a file of keys is refused.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("{}: {source} (`airtcp agent keygen` makes keys)", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error on reading it.
        source: io::Error,
    },
    /// Any user can read or change the file.
    #[error("{path}: its mode is {mode:o}, so that every user of this machine can {what} it; fix it with: chmod 600 {path}", path = path.display())]
    Permissions {
        /// Path of the file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
        /// "read" or "change".
        what: &'static str,
    },
    /// The content of the file is invalid.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

/// Generates a key.
///
/// # Errors
/// The kernel provides no random bytes.
pub fn generate(name: KeyName, speaks_for: Vec<IpNet>) -> io::Result<Key> {
    let mut bytes = vec![0; GENERATED_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let secret = Secret::new(bytes).expect("it is long enough");
    Ok(Key { name, secret, speaks_for })
}

/// Writes a key to a new file that only its owner can read.
///
/// # Errors
/// The file exists, or cannot be written.
pub fn write(key: &Key, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(key.line().as_bytes())
}

/// Reads the keys in a file.
///
/// # Errors
/// The file cannot be read, any user can read it, or its content is invalid.
pub fn read(path: &Path) -> Result<Keys, KeyFileError> {
    let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    // Of the open file, so that it cannot be replaced between check and use.
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
    for (bit, what) in [(0o004, "read"), (0o002, "change")] {
        if mode & bit != 0 {
            return Err(KeyFileError::Permissions { path: path.to_owned(), mode, what });
        }
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Keys::parse(path, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_gateway::signals::keys::network;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f";

    #[test]
    fn a_generated_key_is_private_fresh_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let fresh = || generate(KeyName::new("a").unwrap(), vec![network("::1").unwrap()]).unwrap();
        let (key, other) = (fresh(), fresh());
        assert_ne!(key, other);
        write(&key, &path).unwrap();
        assert_eq!(write(&other, &path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap().iter().collect::<Vec<_>>(), [&key]);
    }

    #[test]
    fn a_file_for_everybody_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, format!("a {HEX} ::1\n")).unwrap();
        for (mode, expected) in
            [(0o644, Some("can read it")), (0o662, Some("can change it")), (0o640, None)]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let refusal = read(&path).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(refusal, None),
                Some(expected) => {
                    assert!(refusal.as_deref().is_some_and(|r| r.contains(expected)), "{refusal:?}")
                }
            }
        }
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().contains("keygen"));
    }
}
