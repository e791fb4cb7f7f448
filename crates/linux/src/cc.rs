//! Congestion control in the kernel: TCP Karak, as a BPF program that Linux calls where it would
//! call its own reno or cubic.
//!
//! Read first: `bpf/karak.bpf.c` (the program); tcp(7) on `TCP_CONGESTION`.
//!
//! Loaded, `karak` is one more word that the whole machine knows: a network namespace makes it its
//! default (`net.ipv4.tcp_congestion_control`), a program chooses it for a socket
//! (`TCP_CONGESTION`). Nobody uses it before. What keeps it loaded is a link, and what keeps the
//! link when this process ends is its name in a folder of the BPF file system. Without the name no
//! new connection can choose Karak; the kernel frees the program when the last connection and the
//! last namespace let go of it.

use crate::doctor::sees_all_maps;
use crate::kernel::bpf::{self, BPF_FILE_SYSTEM, has_file_system};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use serde::Serialize;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The name that the kernel gets to know.
pub const KARAK: &str = "karak";

/// `bpf/karak.bpf.c`, compiled.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/karak.bpf.o"));

/// The only key of the map `state`.
const ONLY: [u8; 4] = [0; 4];

/// Longest wait for what the kernel does a moment after it was asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the kernel has of Karak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CcStatus {
    /// [`KARAK`].
    pub name: &'static str,
    /// What can be chosen now, if anything can.
    pub loaded: Option<Loaded>,
    /// Whether it is the default of the calling thread's network namespace.
    pub default_here: bool,
    /// Programs that were unloaded and are still held by a connection, or by a namespace whose
    /// default they are. `None`: it takes CAP_SYS_ADMIN to see them.
    pub retired: Option<usize>,
}

/// What was loaded and what it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loaded {
    /// Of the airtcp that loaded it.
    pub version: String,
    /// Connections that use it now.
    pub connections: u64,
    /// Connections that ever did.
    pub connections_ever: u64,
    /// Time-outs after no, one, two, and more duplicate ACKs.
    pub timeouts: [u64; 4],
    /// Time-outs after which cwnd was larger than reno's.
    pub raised: u64,
    /// Changes of a connection's state of which the kernel did not tell the program: it ran reno's
    /// part without Karak's, with an undefined ssthresh.
    pub skipped: u64,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CcError {
    /// There is no BPF file system.
    #[error(
        "{BPF_FILE_SYSTEM} is no BPF file system, where what is loaded gets its name (`mount -t bpf bpf \
         {BPF_FILE_SYSTEM}` makes it one; `ip netns exec` hides it)"
    )]
    NoFileSystem,
    /// It is there already.
    #[error("{KARAK} is already loaded (airtcp {0}); `airtcp cc unload` first")]
    AlreadyLoaded(String),
    /// It is not there.
    #[error("{KARAK} is not loaded")]
    NotLoaded,
    /// It is there, but not where this process could find it.
    #[error(
        "the kernel offers {KARAK}, but its name is not in {BPF_FILE_SYSTEM} here: it was loaded \
         in another mount namespace (`ip netns exec` makes one), or not by airtcp"
    )]
    Elsewhere,
    /// The kernel refuses.
    #[error("{what}: {why}; {said} (`airtcp doctor` says what is missing)")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        why: libbpf_rs::Error,
        /// What libbpf said.
        said: String,
    },
    /// A file.
    #[error("{}: {why} (root may do it)", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: io::Error,
    },
    /// It did not go.
    #[error("the kernel still offers {KARAK} after {PATIENCE:?}")]
    Stays,
}

fn refused(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> CcError {
    move |why| CcError::Refused { what, why, said: bpf::last_warning() }
}

/// The names in the BPF file system.
struct Pins {
    folder: PathBuf,
    link: PathBuf,
    state: PathBuf,
}

impl Pins {
    fn new() -> Self {
        let folder: PathBuf = [BPF_FILE_SYSTEM, "airtcp", KARAK].iter().collect();
        Self { link: folder.join("link"), state: folder.join("state"), folder }
    }

    /// Removes them, the link's last: while it is there, so is the state.
    fn remove(&self) -> Result<(), CcError> {
        let absent_is_fine = |path: &Path, result: io::Result<()>| match result {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                Err(CcError::File { path: path.to_owned(), why })
            }
            _ => Ok(()),
        };
        for path in [&self.state, &self.link] {
            absent_is_fine(path, fs::remove_file(path))?;
        }
        absent_is_fine(&self.folder, fs::remove_dir(&self.folder))?;
        // Another program's name may be in there one day.
        let _ = self.folder.parent().map(fs::remove_dir);
        Ok(())
    }
}

/// Makes Karak known to the kernel, until [`unload`] or a restart.
///
/// # Errors
/// It is loaded already; the kernel cannot do it; a privilege is lacking.
pub fn load() -> Result<(), CcError> {
    if !has_file_system() {
        return Err(CcError::NoFileSystem);
    }
    if let Some(state) = state()? {
        return Err(CcError::AlreadyLoaded(read(&state)?.version));
    }
    let mut object = bpf::open(OBJECT)
        .and_then(|object| object.load())
        .map_err(refused("loading the program"))?;
    let mut state =
        MapHandle::try_from(&bpf::map(&object, "state")).map_err(refused("its state"))?;
    state
        .update(&ONLY, &encode_version(env!("CARGO_PKG_VERSION")), MapFlags::ANY)
        .map_err(refused("its state"))?;
    let mut operations = object.maps_mut().find(|map| map.name() == KARAK).expect("it has the map");
    let mut link = operations.attach_struct_ops().map_err(refused("registering it"))?;
    let pins = Pins::new();
    // What a load that was killed has left.
    pins.remove()?;
    fs::create_dir_all(&pins.folder)
        .map_err(|why| CcError::File { path: pins.folder.clone(), why })?;
    let pinned = state.pin(&pins.state).and_then(|()| link.pin(&pins.link));
    pinned.map_err(|why| {
        let _ = pins.remove();
        refused("naming it in the BPF file system")(why)
    })
}

/// What holds a program that was unloaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unloaded {
    /// Connections that still use it.
    pub connections: u64,
    /// Whether it is still the default of the calling thread's network namespace.
    pub default_here: bool,
    /// As in [`CcStatus`].
    pub retired: Option<usize>,
}

/// Takes Karak out of the kernel's choice; what uses it goes on.
///
/// # Errors
/// It is not loaded; a privilege is lacking.
pub fn unload() -> Result<Unloaded, CcError> {
    let state = state()?.ok_or(CcError::NotLoaded)?;
    Pins::new().remove()?;
    if !wait_until(|| !is_offered()) {
        return Err(CcError::Stays);
    }
    // It goes a moment after the last connection.
    let connections = || read(&state).map(|loaded| loaded.connections);
    let mut still = connections()?;
    wait_until(|| {
        still = connections().unwrap_or(still);
        still > 0 || retired(false) != Some(1)
    });
    Ok(Unloaded { connections: still, default_here: is_default(), retired: retired(false) })
}

/// What the kernel has of Karak.
///
/// # Errors
/// A privilege is lacking.
pub fn status() -> Result<CcStatus, CcError> {
    let loaded = state()?.map(|state| read(&state)).transpose()?;
    let retired = retired(loaded.is_some());
    Ok(CcStatus { name: KARAK, loaded, default_here: is_default(), retired })
}

/// The map `state` of what is loaded, if anything is.
fn state() -> Result<Option<MapHandle>, CcError> {
    let pins = Pins::new();
    // Without its link it is a leftover.
    match fs::symlink_metadata(&pins.link) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return if is_offered() { Err(CcError::Elsewhere) } else { Ok(None) };
        }
        Err(why) => return Err(CcError::File { path: pins.link, why }),
        Ok(_) => {}
    }
    let map = MapHandle::from_pinned_path(&pins.state);
    map.map(Some).map_err(refused("what is loaded"))
}

fn read(state: &MapHandle) -> Result<Loaded, CcError> {
    let bytes = state.lookup(&ONLY, MapFlags::ANY).map_err(refused("what is loaded"))?;
    Ok(decode(&bytes.unwrap_or_default()))
}

/// Bytes of the version in `struct state`, and the counters that follow.
const VERSION: usize = 32;
const COUNTERS: usize = 8;

/// `struct state` before anything happened.
fn encode_version(version: &str) -> Vec<u8> {
    let mut bytes = version.as_bytes()[..version.len().min(VERSION - 1)].to_vec();
    bytes.resize(VERSION + COUNTERS * 8, 0);
    bytes
}

fn decode(bytes: &[u8]) -> Loaded {
    let (version, counters) = bytes.split_at(VERSION.min(bytes.len()));
    let version = version.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut counters = counters.chunks_exact(8).map(|n| u64::from_ne_bytes(n.try_into().unwrap()));
    let mut next = || counters.next().unwrap_or(0);
    let (begun, ended) = (next(), next());
    Loaded {
        version: String::from_utf8_lossy(version).into_owned(),
        // Both may change between the reading of one and of the other.
        connections: begun.saturating_sub(ended),
        connections_ever: begun,
        timeouts: [next(), next(), next(), next()],
        raised: next(),
        skipped: next(),
    }
}

/// Whether the kernel offers a congestion control of this name.
fn is_offered() -> bool {
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    offered.is_ok_and(|names| names.split_whitespace().any(|name| name == KARAK))
}

fn is_default() -> bool {
    let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    default.is_ok_and(|name| name.trim() == KARAK)
}

/// How many programs the kernel holds besides what is loaded.
fn retired(loaded: bool) -> Option<usize> {
    let of_karak = |map: &libbpf_rs::query::MapInfo| {
        map.ty == MapType::StructOps && map.name == OsStr::new(KARAK)
    };
    let all = || MapInfoIter::default().filter(of_karak).count();
    sees_all_maps().then(|| all().saturating_sub(usize::from(loaded)))
}

/// Whether it became so in time.
fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_as_the_program_writes_it() {
        let mut bytes = encode_version("1.2.3");
        for (i, at) in (VERSION..bytes.len()).step_by(8).enumerate() {
            bytes[at..at + 8].copy_from_slice(&(10 - i as u64).to_ne_bytes());
        }
        let loaded = Loaded {
            version: "1.2.3".to_owned(),
            connections: 1,
            connections_ever: 10,
            timeouts: [8, 7, 6, 5],
            raised: 4,
            skipped: 3,
        };
        assert_eq!(decode(&bytes), loaded);
    }

    #[test]
    fn a_long_version_is_cut_and_still_ends() {
        let bytes = encode_version(&"9".repeat(50));
        assert_eq!((bytes.len(), decode(&bytes).version.len()), (96, 31));
    }
}
