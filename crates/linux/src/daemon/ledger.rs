//! Promises of the gateway, and the connections that it holds frozen, in files that outlive the
//! process.
//!
//! Read first: [`airtcp_edge::hold::journal`], whose notes are written here;
//! [`format`](mod@airtcp_gateway::ledger::format) (the files).
//!
//! The notes of one call are appended to a *log* together. A log that has grown long is followed by
//! another. A log is *live* while it has the latest snapshot of a connection; other logs are
//! removed, the oldest first. When too few of the bytes on file are live, connections in the oldest
//! log are due for a new snapshot ([`Ledger::settle`]), a bounded number at a time.
//!
//! - The files survive the process, not the machine: nothing is synchronised to a disk. After a
//!   reboot the recorded times mean nothing.
//! - If a note cannot be written (no room), its promise must not be sent: see [`Ledger::write`].
//! - The live bytes of all files are bounded.
//! - Connections that cannot be taken over are not dropped: they are returned as
//!   [`Loaded::refused`], and stay on file until they are noted as released.

use crate::kernel::predecessor::when_free;
use airtcp_core::{Bytes, Flow};
use airtcp_edge::MechanismNote;
use airtcp_gateway::dispatch::Keeper;
use airtcp_gateway::ledger::format::{Entry, HEAD, Known, Log, NewEntry, write_head, write_record};
use airtcp_gateway::ledger::{Refused, Saved, Unreadable, WriteError};
use airtcp_gateway::packets::SharedBytes;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Uid;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Suffix of a log's name, which is a number; later logs have higher numbers.
const SUFFIX: &str = ".log";
/// File that the ledger's gateway locks.
const LOCK: &str = "lock";

/// Length in bytes from which on a log is followed by another.
const LONG: u64 = 4 << 20;
/// Dead bytes allowed on file in addition to as many as there are live ones.
const SLACK: u64 = 4 << 20;
/// Connections that are due for a new snapshot at a time.
const DUE_AT_ONCE: usize = 64;
/// Approximate number of bytes written at once.
const CHUNK: usize = 1 << 20;

/// Reason why the ledger cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The folder cannot be made or used.
    #[error("state folder {}: {source}", dir.display())]
    Io {
        /// Path of the folder.
        dir: PathBuf,
        /// The error on creating, locking or reading it.
        source: io::Error,
    },
    /// The path is not a folder, or another user can write to it.
    #[error(
        "state folder {}: it must be a folder of {} that nobody else may write to; remove it, fix it \
         (chown, chmod 700), or choose another folder",
        dir.display(),
        user.map_or("the gateway's user".to_owned(), |user| format!("user {user}"))
    )]
    NotOurs {
        /// Path of the folder.
        dir: PathBuf,
        /// Id of the user who should own it, if that is known.
        user: Option<u32>,
    },
    /// Another gateway has locked the folder.
    #[error(
        "state folder {}: another gateway uses it; stop that one, or choose another folder",
        .0.display()
    )]
    InUse(PathBuf),
}

/// State that earlier processes left.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Connections to continue.
    pub connections: Vec<Saved>,
    /// Connections that cannot be continued.
    pub refused: Vec<Refused>,
    /// Files that are unreadable or truncated.
    pub unreadable: Vec<(PathBuf, Unreadable)>,
}

/// The files of one gateway, and an index of them.
#[derive(Debug)]
pub struct Ledger {
    dir: PathBuf,
    boot: String,
    /// Logs in the order in which they were written.
    logs: BTreeMap<u64, LogFile>,
    /// Key of the next log in `logs`, and the number in its name.
    next: u64,
    /// The last log, once this process has begun it.
    current: Option<File>,
    places: HashMap<Flow, Place>,
    /// Live bytes.
    live: u64,
    /// Bytes of all files.
    bytes: u64,
    limit: u64,
    /// Connections released since the last [`Ledger::settle`].
    released: HashSet<Flow>,
    /// Held while the ledger is in use.
    _lock: Flock<File>,
}

/// A log of the ledger.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    bytes: u64,
    /// Connections that had a snapshot written here.
    flows: Vec<Flow>,
    /// Number of connections whose latest snapshot is here.
    living: usize,
}

/// Place of a connection on file.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The log with its snapshot.
    log: u64,
    /// Size of the snapshot and of the inputs since.
    bytes: u64,
    inputs: u32,
}

/// Records that are not written yet.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Places of the connections once the chunk is written.
    places: HashMap<Flow, Place>,
}

/// Whether a gateway that is run by this user would take this folder, or could make it. Changes
/// nothing; whether another gateway uses it is not looked at. Somebody who is not root does not run
/// gateways, and the folder may be anybody's.
///
/// # Errors
/// [`Ledger::open`]'s.
pub fn check_folder(dir: &Path) -> Result<(), OpenError> {
    let user = Some(Uid::effective()).filter(|user| user.is_root());
    let io = |source| OpenError::Io { dir: dir.to_owned(), source };
    match refuse_foreign(dir, user) {
        Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    // It is made with the folders above it, below the first that exists.
    let above = dir.ancestors().skip(1).find_map(|above| match above.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        result => Some(result),
    });
    match above {
        Some(Ok(found)) if !found.is_dir() => Err(io(io::ErrorKind::NotADirectory.into())),
        Some(Err(error)) => Err(io(error)),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Refuses what is not a folder of this user (`None`: of any) that nobody else may write to.
fn refuse_foreign(dir: &Path, user: Option<Uid>) -> Result<(), OpenError> {
    let found = dir.symlink_metadata();
    let found = found.map_err(|source| OpenError::Io { dir: dir.to_owned(), source })?;
    let is_ours = user.is_none_or(|user| found.uid() == user.as_raw());
    match found.is_dir() && is_ours && found.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(OpenError::NotOurs { dir: dir.to_owned(), user: user.map(Uid::as_raw) }),
    }
}

impl Ledger {
    /// Opens the ledger in this folder, which is made (for this user only) if it does not exist.
    /// Its live bytes will not grow beyond `limit`.
    ///
    /// # Errors
    /// The folder cannot be made, belongs to another user, or is used by another gateway.
    pub fn open(dir: &Path, limit: Bytes) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { dir: dir.to_owned(), source };
        if let Some(parent) = dir.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
            _ => {}
        }
        refuse_foreign(dir, Some(Uid::effective()))?;
        let lock = || {
            let lock = private().create(true).open(dir.join(LOCK)).map_err(io)?;
            let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock);
            lock.map_err(|(_, error)| match error {
                Errno::EWOULDBLOCK => OpenError::InUse(dir.to_owned()),
                error => io(error.into()),
            })
        };
        let lock = when_free(lock, |error| matches!(error, OpenError::InUse(_)))?;
        Ok(Self {
            dir: dir.to_owned(),
            boot: boot_id().map_err(io)?,
            logs: BTreeMap::new(),
            next: 0,
            current: None,
            places: HashMap::new(),
            live: 0,
            bytes: 0,
            limit: limit.get(),
            released: HashSet::new(),
            _lock: lock,
        })
    }

    /// Loads the state that earlier processes left. Call it once, before anything is noted. All of
    /// its connections count as on file until there is another note on them.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn load(&mut self) -> io::Result<Loaded> {
        let mut loaded = Loaded::default();
        // The first log of each connection: older logs have nothing about it.
        let (mut known, mut first) = (BTreeMap::new(), BTreeMap::new());
        for (number, path) in self.files()? {
            self.next = self.next.max(number + 1);
            let Some(id) = self.load_log(path, &mut known, &mut loaded) else { continue };
            for &flow in known.keys() {
                first.entry(flow).or_insert(id);
            }
        }
        for (flow, known) in known {
            self.put(flow, Place { log: first[&flow], ..Place::default() });
            match known {
                Known::Whole { group, snapshot, .. } => {
                    loaded.connections.push(Saved { group, flow, snapshot: *snapshot });
                }
                Known::Lost => {
                    let why = "its saved state is incomplete".to_owned();
                    loaded.refused.push(Refused { flow, why, resets: None });
                }
            }
        }
        Ok(loaded)
    }

    /// Files of logs in the folder, by number. The folder also has the lock, and possibly other
    /// files of the gateway such as its control socket.
    fn files(&self) -> io::Result<BTreeMap<u64, PathBuf>> {
        let mut files = BTreeMap::new();
        for entry in self.dir.read_dir()? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let number = name.strip_suffix(SUFFIX).and_then(|name| name.parse().ok());
            if let Some(number) = number {
                files.insert(number, path);
            }
        }
        Ok(files)
    }

    /// Loads one log: adds its connections to `known`, or to `loaded` if they are of another boot.
    /// Returns its key in `logs`; `None` if it cannot be read.
    fn load_log(
        &mut self,
        path: PathBuf,
        known: &mut BTreeMap<Flow, Known>,
        loaded: &mut Loaded,
    ) -> Option<u64> {
        let file = match fs::read(&path) {
            Ok(file) => file,
            Err(error) => {
                loaded.unreadable.push((path, error.into()));
                return None;
            }
        };
        let log = match Log::open(&file) {
            Ok(log) => log,
            // The log was created, and nothing was written to it.
            Err(_) if file.len() < HEAD.len() => return Some(self.enter(path)),
            // Kept: another version may be able to read it.
            Err(why) => {
                loaded.unreadable.push((path, why));
                return None;
            }
        };
        let mut of_other_boot = BTreeMap::new();
        let is_ours = log.boot == self.boot;
        let read = log.read(if is_ours { known } else { &mut of_other_boot });
        loaded.unreadable.extend(read.err().map(|why| (path.clone(), why)));
        let id = self.enter(path);
        for (flow, known) in of_other_boot {
            let why = Unreadable::OtherBoot.to_string();
            loaded.refused.push(Refused { flow, why, resets: known.resets() });
            self.put(flow, Place { log: id, ..Place::default() });
        }
        Some(id)
    }

    /// Adds a file of an earlier process to the ledger; returns its key in `logs`.
    fn enter(&mut self, path: PathBuf) -> u64 {
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let id = self.logs.last_key_value().map_or(0, |(last, _)| last + 1);
        self.logs.insert(id, LogFile { path, bytes, flows: Vec::new(), living: 0 });
        self.bytes += bytes;
        self.next = self.next.max(id + 1);
        id
    }

    /// Writes notes on connections of this group of mobiles. Released connections stay on file
    /// until [`Ledger::settle`].
    ///
    /// # Errors
    /// There is no room, in the file system or below the limit. The dispatcher must
    /// [withhold](airtcp_edge::Mechanism::withhold) the segments to the fixed hosts of these
    /// connections that the call that made the notes would send.
    pub fn write(
        &mut self,
        group: &str,
        notes: &[MechanismNote<SharedBytes>],
    ) -> Result<(), WriteError> {
        let (mut chunk, mut failed) = (Chunk::default(), HashSet::new());
        let mut source = None;
        for note in notes {
            let added = match note {
                MechanismNote::Released(flow) => {
                    self.released.insert(*flow);
                    continue;
                }
                note if failed.contains(note.flow()) => continue,
                MechanismNote::Snapshot(flow, snapshot) => {
                    let known = self.place(&chunk, flow);
                    self.add(&mut chunk, known, *flow, &Entry::Snapshot(*flow, group, snapshot))
                }
                MechanismNote::Input(flow, input) => match self.place(&chunk, flow) {
                    Some(known) => {
                        let entry = Entry::Input(*flow, known.inputs + 1, input);
                        self.add(&mut chunk, Some(known), *flow, &entry)
                    }
                    None => Err(io::Error::other("no snapshot is on file")),
                },
            };
            if let Err(error) = added {
                failed.insert(*note.flow());
                source = Some(error);
            }
            if chunk.bytes.len() >= CHUNK
                && let Err(error) = self.append(&mut chunk, &mut failed)
            {
                source = Some(error);
            }
        }
        if let Err(error) = self.append(&mut chunk, &mut failed) {
            source = Some(error);
        }
        match source {
            None => Ok(()),
            Some(source) => {
                let flows = failed.into_iter().collect();
                Err(WriteError { flows, dir: self.dir.clone(), source })
            }
        }
    }

    /// Removes released connections. To be called after the actions that came with the notes were
    /// carried out. Returns the connections that are due for a new snapshot.
    ///
    /// # Errors
    /// A release cannot be written, or a file cannot be removed; the next call tries again.
    pub fn settle(&mut self) -> Result<Vec<Flow>, WriteError> {
        self.forget_released().map_err(|source| WriteError {
            flows: self.released.iter().copied().collect(),
            dir: self.dir.clone(),
            source,
        })?;
        Ok(self.due())
    }

    /// Total size of the files.
    pub fn size(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// Number of connections on file.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if no connection is on file.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Place of a connection once the chunk is written; `None` if it is new.
    fn place(&self, chunk: &Chunk, flow: &Flow) -> Option<Place> {
        chunk.places.get(flow).or_else(|| self.places.get(flow)).copied()
    }

    /// Adds a record to a chunk, if there is room for it below the limit. `known` is its
    /// connection's [place](Self::place).
    fn add(
        &self,
        chunk: &mut Chunk,
        known: Option<Place>,
        flow: Flow,
        entry: &NewEntry<'_>,
    ) -> io::Result<()> {
        let before = chunk.bytes.len();
        write_record(&mut chunk.bytes, entry)?;
        let bytes = (chunk.bytes.len() - before) as u64;
        let replaced = match entry {
            Entry::Snapshot(..) => known.map_or(0, |place| place.bytes),
            Entry::Input(..) | Entry::Released(_) => 0,
        };
        if self.live + chunk.bytes.len() as u64 > self.limit + replaced {
            chunk.bytes.truncate(before);
            let full = format!("the ledger would outgrow its limit of {} B", self.limit);
            return Err(io::Error::new(io::ErrorKind::StorageFull, full));
        }
        let place = match (entry, known) {
            (Entry::Input(_, number, _), Some(place)) => {
                Place { bytes: place.bytes + bytes, inputs: *number, ..place }
            }
            // The log to which the chunk will be appended.
            _ => Place { log: u64::MAX, bytes, inputs: 0 },
        };
        chunk.places.insert(flow, place);
        Ok(())
    }

    /// Writes a chunk, or adds its connections to those that failed.
    fn append(&mut self, chunk: &mut Chunk, failed: &mut HashSet<Flow>) -> io::Result<()> {
        let Chunk { bytes, places } = std::mem::take(chunk);
        if bytes.is_empty() {
            return Ok(());
        }
        let last = match self.append_bytes(&bytes) {
            Ok(last) => last,
            Err(error) => {
                failed.extend(places.into_keys());
                return Err(error);
            }
        };
        for (flow, place) in places {
            if place.log == u64::MAX {
                // The connection was released, and interrupted again before `settle`.
                self.released.remove(&flow);
                self.put(flow, Place { log: last, ..place });
            } else {
                self.put(flow, place);
            }
        }
        Ok(())
    }

    /// Appends to the last log, or begins one; returns its key in `logs`.
    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let last = self.logs.last_entry().filter(|log| log.get().bytes < LONG);
        let (file, mut last) = match (&self.current, last) {
            (Some(file), Some(last)) => (file, last),
            _ => {
                let path = self.dir.join(format!("{}{SUFFIX}", self.next));
                let file = private().create_new(true).open(&path)?;
                let mut head = Vec::new();
                write_head(&mut head, &self.boot);
                if let Err(error) = file.write_all_at(&head, 0) {
                    let _ = fs::remove_file(&path);
                    return Err(error);
                }
                let bytes = head.len() as u64;
                let log = LogFile { path, bytes, flows: Vec::new(), living: 0 };
                self.bytes += log.bytes;
                self.logs.insert(self.next, log);
                self.next += 1;
                let last = self.logs.last_entry().expect("it was inserted");
                (&*self.current.insert(file), last)
            }
        };
        let (id, log) = (*last.key(), last.get_mut());
        if let Err(error) = file.write_all_at(bytes, log.bytes) {
            // A partial record must not precede the next one.
            file.set_len(log.bytes)?;
            return Err(error);
        }
        log.bytes += bytes.len() as u64;
        self.bytes += bytes.len() as u64;
        Ok(id)
    }

    /// Sets the place of a connection.
    fn put(&mut self, flow: Flow, place: Place) {
        let before = self.places.insert(flow, place);
        self.live += place.bytes;
        if before.is_none_or(|before| before.log != place.log || place.inputs == 0) {
            let log = self.logs.get_mut(&place.log).expect("it is there");
            log.flows.push(flow);
            log.living += 1;
            self.leave(before);
        } else if let Some(before) = before {
            self.live -= before.bytes;
        }
    }

    /// Counts the records at a former place as dead.
    fn leave(&mut self, place: Option<Place>) {
        if let Some(place) = place {
            self.live -= place.bytes;
            self.logs.get_mut(&place.log).expect("it is there").living -= 1;
        }
    }

    fn forget_released(&mut self) -> io::Result<()> {
        let Self { released, places, .. } = self;
        released.retain(|flow| places.contains_key(flow));
        if !released.is_empty() {
            let mut tombstones = Vec::new();
            for &flow in &*released {
                write_record(&mut tombstones, &NewEntry::Released(flow))?;
            }
            // The last file is removed as a whole.
            if released.len() < places.len() || self.logs.len() > 1 {
                self.append_bytes(&tombstones)?;
            }
            for flow in std::mem::take(&mut self.released) {
                let place = self.places.remove(&flow);
                self.leave(place);
            }
        }
        self.remove_dead()
    }

    /// Removes logs without live records, the oldest first, because inputs and releases follow
    /// their snapshots.
    fn remove_dead(&mut self) -> io::Result<()> {
        while let Some(oldest) = self.logs.first_entry().filter(|log| log.get().living == 0) {
            match fs::remove_file(&oldest.get().path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => self.bytes -= oldest.remove().bytes,
            }
        }
        if self.logs.is_empty() {
            self.current = None;
        }
        Ok(())
    }

    /// Some connections of the oldest log, if too few of the bytes on file are live.
    fn due(&mut self) -> Vec<Flow> {
        let mut due = Vec::new();
        if self.bytes <= 2 * self.live + SLACK || self.logs.len() < 2 {
            return due;
        }
        let Some((&id, oldest)) = self.logs.iter_mut().next() else { return due };
        while due.len() < DUE_AT_ONCE
            && let Some(flow) = oldest.flows.pop()
        {
            if self.places.get(&flow).is_some_and(|place| place.log == id) {
                due.push(flow);
            }
        }
        due
    }
}

impl Keeper for Ledger {
    fn write(
        &mut self,
        group: &str,
        notes: &[MechanismNote<SharedBytes>],
    ) -> Result<(), WriteError> {
        Self::write(self, group, notes)
    }

    fn settle(&mut self) -> Vec<Flow> {
        Self::settle(self).unwrap_or_else(|error| {
            tracing::warn!("cannot remove the saved state of released connections: {error}");
            Vec::new()
        })
    }
}

/// The kernel's id of this boot.
fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

/// Options that create a file which only this user can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}
