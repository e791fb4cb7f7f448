//! What the gateway has promised, in files that outlive the process.
//!
//! Read first: [`airtcp_edge::journal`], whose notes are written here.
//!
//! Each committed connection has a file: a head (format and version), then records, each with its
//! length and a checksum: first where it belongs and its [`Snapshot`], then its [`Input`]s. A
//! snapshot is written aside and renamed, an input appended. So a killed process leaves whole
//! records and perhaps the beginning of one whose promise was not sent yet: [`read`] stops before
//! it. Anything else that is wrong is damage, and the file is skipped.
//!
//! - The files survive the process, not the machine: nothing is synchronised to a disk. After a
//!   reboot the recorded times mean nothing, and the files are refused.
//! - When a note cannot be written (no room), its promise must not go out: see [`Ledger::note`].
//! - All files together are bounded. One that is replaced counts once.

use super::payload::SharedBytes;
use airtcp_core::{Bytes, Flow};
use airtcp_edge::Input;
use airtcp_edge::m_tcp_plus::{Note, Snapshot};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How every file begins: the format, and its version. A new one whenever the layout of a record
/// changes, or what M-TCP+ does with an input.
pub const HEAD: [u8; 12] = *b"airtcpLG\x05\0\0\0";

/// Where the format ends and the version begins.
const FORMAT: usize = 8;

/// Length of a record's body, its complement, and the body's CRC-32; each four bytes, the lowest
/// first.
const RECORD_HEAD: usize = 12;

/// Ends the name of a connection's file.
const SUFFIX: &str = ".flow";
/// Ends the name of a snapshot that is being written.
const ASIDE: &str = ".new";
/// Locked by the gateway whose ledger it is.
const LOCK: &str = "lock";

/// Why there is no ledger.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The folder cannot be made or used.
    #[error("state folder {}: {source}", dir.display())]
    Io {
        /// The folder.
        dir: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The name is taken by something else, or by somebody else's folder.
    #[error(
        "state folder {}: it must be a folder of user {user} that nobody else may write to; remove it, mend it \
         (chown, chmod 700), or choose another folder",
        dir.display()
    )]
    NotOurs {
        /// The folder.
        dir: PathBuf,
        /// Whose it should be.
        user: u32,
    },
    /// Another gateway works with it.
    #[error(
        "state folder {}: another gateway uses it; stop that one, or choose another folder",
        .0.display()
    )]
    InUse(PathBuf),
}

/// A note could not be written. What was written before is as it was.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct WriteError {
    /// The connection's file.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// A connection as an earlier process left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Group of mobiles.
    pub group: String,
    /// From the fixed to the mobile host.
    pub flow: Flow,
    /// Its state, and the settings it worked by.
    pub snapshot: Snapshot<SharedBytes>,
}

/// Why a file was skipped.
#[derive(Debug, Error)]
pub enum Skipped {
    /// It is no file of a ledger, or not by the name it should have.
    #[error("not written by airtcp")]
    Foreign,
    /// Another version of airtcp wrote it.
    #[error("written by another version of airtcp")]
    OtherVersion,
    /// Its times are of before a reboot.
    #[error("written before the machine was started")]
    OtherBoot,
    /// What was promised is not known.
    #[error("damaged: byte {0}")]
    Damaged(usize),
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What earlier processes left.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Connections to go on with.
    pub connections: Vec<Saved>,
    /// Files that are left alone.
    pub skipped: Vec<(PathBuf, Skipped)>,
}

/// The files of one gateway.
#[derive(Debug)]
pub struct Ledger {
    dir: PathBuf,
    boot: String,
    /// Length of each connection's file.
    files: HashMap<Flow, u64>,
    /// Of all files.
    bytes: u64,
    limit: u64,
    /// Connections whose files are to be removed.
    released: Vec<Flow>,
    /// What is being written.
    buffer: Vec<u8>,
    /// Held as long as the ledger is in use.
    _lock: Flock<File>,
}

impl Ledger {
    /// The ledger in this folder, which is made (for this user only) unless it is there. Its files
    /// together will not grow beyond `limit`.
    ///
    /// # Errors
    /// The folder cannot be made, is somebody else's, or used by another gateway.
    pub fn open(dir: &Path, limit: Bytes) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { dir: dir.to_owned(), source };
        if let Some(parent) = dir.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
            _ => {}
        }
        let (metadata, user) = (dir.symlink_metadata().map_err(io)?, nix::unistd::geteuid());
        let is_private = metadata.uid() == user.as_raw() && metadata.mode() & 0o022 == 0;
        if !metadata.is_dir() || !is_private {
            return Err(OpenError::NotOurs { dir: dir.to_owned(), user: user.as_raw() });
        }
        let lock = private().open(dir.join(LOCK)).map_err(io)?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, error)| match error {
            Errno::EWOULDBLOCK => OpenError::InUse(dir.to_owned()),
            error => io(error.into()),
        })?;
        Ok(Self {
            dir: dir.to_owned(),
            boot: boot_id().map_err(io)?,
            files: HashMap::new(),
            bytes: 0,
            limit: limit.get(),
            released: Vec::new(),
            buffer: Vec::new(),
            _lock: lock,
        })
    }

    /// What earlier processes left, in the order of the files' names. Call it once, before anything
    /// is noted. A connection that is not taken over must be noted as released; its bytes are lost
    /// then.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn load(&mut self) -> io::Result<Loaded> {
        let mut paths = Vec::new();
        for entry in self.dir.read_dir()? {
            paths.push(entry?.path());
        }
        paths.sort();
        let mut loaded = Loaded::default();
        for path in paths {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if name.ends_with([SUFFIX, ASIDE].concat().as_bytes()) {
                // The promise of an unfinished snapshot was never sent.
                if let Err(error) = fs::remove_file(&path) {
                    loaded.skipped.push((path, error.into()));
                }
                continue;
            }
            if !name.ends_with(SUFFIX.as_bytes()) {
                // The lock, or what else the gateway has in this folder, such as its control
                // socket.
                continue;
            }
            match self.load_file(&path) {
                Ok(saved) => loaded.connections.push(saved),
                Err(reason) => loaded.skipped.push((path, reason)),
            }
        }
        Ok(loaded)
    }

    fn load_file(&mut self, path: &Path) -> Result<Saved, Skipped> {
        if !path.symlink_metadata()?.is_file() {
            return Err(Skipped::Foreign);
        }
        let (saved, end) = read(&fs::read(path)?, &self.boot)?;
        if self.path(&saved.flow) != path {
            return Err(Skipped::Foreign);
        }
        self.account(saved.flow, end as u64);
        Ok(saved)
    }

    /// Writes down a note about a connection of this group of mobiles. What was released stays on
    /// file until [`Ledger::settle`].
    ///
    /// # Errors
    /// There is no room, in the file system or below the limit. The dispatcher must
    /// [withhold](airtcp_edge::Mechanism::withhold) what the call that made the note would tell the
    /// fixed host.
    pub fn note(&mut self, group: &str, note: &Note<SharedBytes>) -> Result<(), WriteError> {
        let (flow, written) = match note {
            Note::Committed(flow, snapshot) => (flow, self.replace(group, flow, snapshot)),
            Note::Input(flow, input) => (flow, self.append(flow, input)),
            Note::Released(flow) => {
                self.released.push(*flow);
                return Ok(());
            }
        };
        written.map_err(|source| WriteError { path: self.path(flow), source })
    }

    /// Removes what was released: after the actions that came with the notes were carried out.
    ///
    /// # Errors
    /// A file cannot be removed; it will be tried again.
    pub fn settle(&mut self) -> Result<(), WriteError> {
        let mut settled = Ok(());
        for flow in std::mem::take(&mut self.released) {
            let path = self.path(&flow);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    self.released.push(flow);
                    settled = Err(WriteError { path, source });
                }
                _ => self.bytes -= self.files.remove(&flow).unwrap_or_default(),
            }
        }
        settled
    }

    /// Size of all files.
    pub fn size(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// Connections on file.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// No connection is on file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A snapshot in the place of all that was written about the connection.
    fn replace(
        &mut self,
        group: &str,
        flow: &Flow,
        snapshot: &Snapshot<SharedBytes>,
    ) -> io::Result<()> {
        self.buffer.clear();
        write_snapshot(&mut self.buffer, &self.boot, group, flow, snapshot)?;
        let len = self.buffer.len() as u64;
        let known = self.files.get(flow).copied().unwrap_or_default();
        self.check_limit(len.saturating_sub(known))?;
        let path = self.path(flow);
        let mut aside = path.clone().into_os_string();
        aside.push(ASIDE);
        let written = private()
            .truncate(true)
            .open(&aside)
            .and_then(|mut file| file.write_all(&self.buffer))
            .and_then(|()| fs::rename(&aside, &path));
        if written.is_err() {
            // It takes up room; if it cannot be removed either, the next start does.
            let _ = fs::remove_file(&aside);
            return written;
        }
        self.account(*flow, len);
        // It was released and has promised again before that was settled.
        self.released.retain(|released| released != flow);
        Ok(())
    }

    /// One more input, behind those that are on file.
    fn append(&mut self, flow: &Flow, input: &Input<SharedBytes>) -> io::Result<()> {
        let Some(&end) = self.files.get(flow) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no snapshot is on file"));
        };
        self.buffer.clear();
        write_record(&mut self.buffer, input)?;
        let len = self.buffer.len() as u64;
        self.check_limit(len)?;
        let file = OpenOptions::new().write(true).open(self.path(flow))?;
        if let Err(error) = file.write_all_at(&self.buffer, end) {
            // Half a record must not stand before the next one.
            file.set_len(end)?;
            return Err(error);
        }
        self.account(*flow, end + len);
        Ok(())
    }

    fn check_limit(&self, more: u64) -> io::Result<()> {
        if self.bytes + more <= self.limit {
            return Ok(());
        }
        let full = format!("the ledger would outgrow its limit of {} B", self.limit);
        Err(io::Error::new(io::ErrorKind::StorageFull, full))
    }

    fn account(&mut self, flow: Flow, len: u64) {
        self.bytes = self.bytes + len - self.files.insert(flow, len).unwrap_or_default();
    }

    fn path(&self, flow: &Flow) -> PathBuf {
        self.dir.join(format!("{}_{}{SUFFIX}", flow.src, flow.dst))
    }
}

/// Another one after each start of the machine.
fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

/// Options to make a file that only this user may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).mode(0o600);
    options
}

/// The content of a file with nothing but a snapshot.
///
/// # Errors
/// The snapshot is larger than 4 GiB.
pub fn write_snapshot(
    out: &mut Vec<u8>,
    boot: &str,
    group: &str,
    flow: &Flow,
    snapshot: &Snapshot<SharedBytes>,
) -> io::Result<()> {
    out.extend_from_slice(&HEAD);
    write_record(out, &(boot, group, flow, snapshot))
}

/// A record to append.
///
/// # Errors
/// It is larger than 4 GiB.
pub fn write_record(out: &mut Vec<u8>, body: &impl Serialize) -> io::Result<()> {
    let head = out.len();
    out.extend_from_slice(&[0; RECORD_HEAD]);
    *out = postcard::to_extend(body, std::mem::take(out)).map_err(io::Error::other)?;
    let body = &out[head + RECORD_HEAD..];
    let (len, sum) = (u32::try_from(body.len()).map_err(io::Error::other)?, crc32fast::hash(body));
    for (field, value) in [len, !len, sum].into_iter().enumerate() {
        out[head + 4 * field..][..4].copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

/// What a file says, and where its last whole record ends.
///
/// # Errors
/// It is not a whole file of this boot of the machine.
pub fn read(file: &[u8], boot: &str) -> Result<(Saved, usize), Skipped> {
    if !file.starts_with(&HEAD[..FORMAT]) {
        return Err(Skipped::Foreign);
    }
    let mut rest = file.strip_prefix(&HEAD).ok_or(Skipped::OtherVersion)?;
    let place = |rest: &[u8]| file.len() - rest.len();
    let first = next_record(&mut rest).map_err(|()| Skipped::Damaged(HEAD.len()))?;
    let first = first.ok_or(Skipped::Damaged(HEAD.len()))?;
    let (written, group, flow, mut snapshot): (String, _, _, Snapshot<SharedBytes>) =
        decode(first).map_err(|()| Skipped::Damaged(HEAD.len()))?;
    if written != boot {
        return Err(Skipped::OtherBoot);
    }
    loop {
        let at = place(rest);
        match next_record(&mut rest).and_then(|body| body.map(decode).transpose()) {
            Ok(Some(input)) => snapshot.apply::<SharedBytes>(input),
            Ok(None) => return Ok((Saved { group, flow, snapshot }, at)),
            Err(()) => return Err(Skipped::Damaged(at)),
        }
    }
}

/// The body of the next record; `None` at the end, or when only the beginning of one is there.
fn next_record<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, ()> {
    let Some((head, tail)) = rest.split_first_chunk::<RECORD_HEAD>() else { return Ok(None) };
    let field =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if field(0) != !field(4) {
        return Err(());
    }
    let Some((body, tail)) = tail.split_at_checked(field(0) as usize) else { return Ok(None) };
    if crc32fast::hash(body) != field(8) {
        return Err(());
    }
    *rest = tail;
    Ok(Some(body))
}

/// A value that takes up all of a record.
fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ()> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        _ => Err(()),
    }
}
