//! Files with the keys of the mobiles' agents.
//!
//! Read first: [`airtcp_gateway::signals::keys`], what is in them.

use airtcp_gateway::signals::keys::{Key, KeyName, Keys, KeysError, Secret};
use ipnet::IpNet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a key that is generated: as many as the hash has (RFC 2104 §3).
const GENERATED_BYTES: usize = 32;
/// A larger file is not one of keys.
const MOST_BYTES: u64 = 16 << 20;

/// Why a file of keys is refused.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("{}: {source} (`airtcp agent keygen` makes keys)", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Everybody can read or change it.
    #[error("{path}: its mode is {mode:o}, so that every user of this machine can {what} it; mend it by: chmod 600 {path}", path = path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// "read" or "change".
        what: &'static str,
    },
    /// What is in it is wrong.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

/// A fresh key.
///
/// # Errors
/// The kernel has no randomness.
pub fn generate(name: KeyName, speaks_for: Vec<IpNet>) -> io::Result<Key> {
    let mut bytes = vec![0; GENERATED_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let secret = Secret::new(bytes).expect("it is long enough");
    Ok(Key { name, secret, speaks_for })
}

/// Makes a file with this line that only its owner can read.
///
/// # Errors
/// There is such a file already, or it cannot be written.
pub fn write(key: &Key, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(key.line().as_bytes())
}

/// The keys in a file.
///
/// # Errors
/// It cannot be read, everybody can read it, or something is wrong in it.
pub fn read(path: &Path) -> Result<Keys, KeyFileError> {
    let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    // Of the open file: nobody can put another in its place in between.
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
        for (mode, told) in
            [(0o644, Some("can read it")), (0o662, Some("can change it")), (0o640, None)]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let refusal = read(&path).err().map(|error| error.to_string());
            match told {
                None => assert_eq!(refusal, None),
                Some(told) => {
                    assert!(refusal.as_deref().is_some_and(|r| r.contains(told)), "{refusal:?}")
                }
            }
        }
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().contains("keygen"));
    }
}
