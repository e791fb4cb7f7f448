//! Congestion control in the kernel: TCP Karak, as a BPF program that Linux calls like its own reno
//! or cubic.
//!
//! Read first: `bpf/karak.bpf.c` (the program); tcp(7) on `TCP_CONGESTION`.
//!
//! Once loaded, `karak` is available on the whole machine: a network namespace can make it its
//! default (`net.ipv4.tcp_congestion_control`), and a program can choose it for a socket
//! (`TCP_CONGESTION`). A BPF link keeps it loaded, and a pin in a folder of the BPF file system
//! keeps the link when this process ends. Without the pin no new connection can choose Karak; the
//! kernel frees the program after the last connection and the last namespace have released it.

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

/// Name of the congestion control in the kernel.
pub const KARAK: &str = "karak";

/// Object file compiled from `bpf/karak.bpf.c`.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/karak.bpf.o"));

/// The only key of the map `state`.
const ONLY: [u8; 4] = [0; 4];

/// Longest wait for operations that the kernel completes a moment after the request.
const PATIENCE: Duration = Duration::from_secs(5);

/// State of Karak in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CcStatus {
    /// Name of the congestion control: [`KARAK`].
    pub name: &'static str,
    /// The loaded program, if there is one.
    pub loaded: Option<Loaded>,
    /// True if it is the default of the calling thread's network namespace.
    pub default_here: bool,
    /// Unloaded programs that are still held by a connection, or by a namespace whose default they
    /// are. `None` without CAP_SYS_ADMIN, which is needed to list them.
    pub retired: Option<usize>,
}

/// The loaded program, and its counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loaded {
    /// Version of the airtcp that loaded it.
    pub version: String,
    /// Connections that use it now.
    pub connections: u64,
    /// Connections that have used it since it was loaded.
    pub connections_ever: u64,
    /// Time-outs after zero, one, two, and more duplicate ACKs.
    pub timeouts: [u64; 4],
    /// Time-outs after which cwnd was larger than reno's.
    pub raised: u64,
    /// Changes of a connection's congestion state for which the kernel did not call the program. It
    /// then ran reno's part without Karak's, with an undefined ssthresh.
    pub skipped: u64,
}

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CcError {
    /// No BPF file system is mounted.
    #[error(
        "no BPF file system at {BPF_FILE_SYSTEM}, to pin the program in (`mount -t bpf bpf {BPF_FILE_SYSTEM}` \
         mounts it; `ip netns exec` hides it)"
    )]
    NoFileSystem,
    /// Karak is already loaded, by this version.
    #[error("{KARAK} is already loaded (airtcp {0}); `airtcp cc unload` first")]
    AlreadyLoaded(String),
    /// Karak is not loaded.
    #[error("{KARAK} is not loaded")]
    NotLoaded,
    /// Karak is loaded, but its pin cannot be found.
    #[error(
        "the kernel offers {KARAK}, but it is not pinned in {BPF_FILE_SYSTEM} here: it was loaded \
         in another mount namespace (`ip netns exec` makes one), or not by airtcp"
    )]
    Elsewhere,
    /// The kernel refused an operation.
    #[error("{what}: {why}; {said} (`airtcp doctor` says what is missing)")]
    Refused {
        /// The operation that failed.
        what: &'static str,
        /// The kernel's error.
        why: libbpf_rs::Error,
        /// The last warning of libbpf.
        said: String,
    },
    /// A file in the BPF file system cannot be accessed.
    #[error("{}: {why} (requires root)", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error on accessing it.
        why: io::Error,
    },
    /// The kernel did not unregister Karak in time.
    #[error("the kernel still offers {KARAK} after {PATIENCE:?}")]
    Stays,
}

fn refused(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> CcError {
    move |why| CcError::Refused { what, why, said: bpf::last_warning() }
}

/// Paths of the pins in the BPF file system.
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

    /// Removes the pins, that of the link last: while it exists, so must the state.
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
        // Fails if another program is pinned in the folder.
        let _ = self.folder.parent().map(fs::remove_dir);
        Ok(())
    }
}

/// Registers Karak with the kernel, until [`unload`] or a reboot.
///
/// # Errors
/// Karak is already loaded, the kernel does not support it, or a privilege is missing.
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
        MapHandle::try_from(&bpf::map(&object, "state")).map_err(refused("setting its state"))?;
    state
        .update(&ONLY, &encode_version(env!("CARGO_PKG_VERSION")), MapFlags::ANY)
        .map_err(refused("setting its state"))?;
    let mut operations = object.maps_mut().find(|map| map.name() == KARAK).expect("it has the map");
    let mut link = operations.attach_struct_ops().map_err(refused("registering it"))?;
    let pins = Pins::new();
    // Removes pins that a killed process has left.
    pins.remove()?;
    fs::create_dir_all(&pins.folder)
        .map_err(|why| CcError::File { path: pins.folder.clone(), why })?;
    let pinned = state.pin(&pins.state).and_then(|()| link.pin(&pins.link));
    pinned.map_err(|why| {
        let _ = pins.remove();
        refused("pinning it in the BPF file system")(why)
    })
}

/// Remaining users of an unloaded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unloaded {
    /// Connections that still use it.
    pub connections: u64,
    /// True if it is still the default of the calling thread's network namespace.
    pub default_here: bool,
    /// Unloaded programs that are still held, as in [`CcStatus`].
    pub retired: Option<usize>,
}

/// Unregisters Karak; connections that use it continue.
///
/// # Errors
/// Karak is not loaded, or a privilege is missing.
pub fn unload() -> Result<Unloaded, CcError> {
    let state = state()?.ok_or(CcError::NotLoaded)?;
    Pins::new().remove()?;
    if !wait_until(|| !is_offered()) {
        return Err(CcError::Stays);
    }
    // The kernel frees the program a moment after the last connection.
    let connections = || read(&state).map(|loaded| loaded.connections);
    let mut still = connections()?;
    wait_until(|| {
        still = connections().unwrap_or(still);
        still > 0 || retired(false) != Some(1)
    });
    Ok(Unloaded { connections: still, default_here: is_default(), retired: retired(false) })
}

/// State of Karak in the kernel.
///
/// # Errors
/// A privilege is missing.
pub fn status() -> Result<CcStatus, CcError> {
    let loaded = state()?.map(|state| read(&state)).transpose()?;
    let retired = retired(loaded.is_some());
    Ok(CcStatus { name: KARAK, loaded, default_here: is_default(), retired })
}

/// The map `state` of the loaded program, if there is one.
fn state() -> Result<Option<MapHandle>, CcError> {
    let pins = Pins::new();
    // A state without its link is a leftover.
    match fs::symlink_metadata(&pins.link) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return if is_offered() { Err(CcError::Elsewhere) } else { Ok(None) };
        }
        Err(why) => return Err(CcError::File { path: pins.link, why }),
        Ok(_) => {}
    }
    let map = MapHandle::from_pinned_path(&pins.state);
    map.map(Some).map_err(refused("reading its state"))
}

fn read(state: &MapHandle) -> Result<Loaded, CcError> {
    let bytes = state.lookup(&ONLY, MapFlags::ANY).map_err(refused("reading its state"))?;
    Ok(decode(&bytes.unwrap_or_default()))
}

/// Bytes of the version in `struct state`.
const VERSION: usize = 32;
/// Number of counters that follow the version.
const COUNTERS: usize = 8;

/// Initial value of `struct state`.
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
        // The two may be inconsistent, because they are read while they change.
        connections: begun.saturating_sub(ended),
        connections_ever: begun,
        timeouts: [next(), next(), next(), next()],
        raised: next(),
        skipped: next(),
    }
}

/// True if the kernel offers a congestion control named [`KARAK`].
fn is_offered() -> bool {
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    offered.is_ok_and(|names| names.split_whitespace().any(|name| name == KARAK))
}

fn is_default() -> bool {
    let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    default.is_ok_and(|name| name.trim() == KARAK)
}

/// Number of programs that the kernel holds besides the loaded one.
fn retired(loaded: bool) -> Option<usize> {
    let of_karak = |map: &libbpf_rs::query::MapInfo| {
        map.ty == MapType::StructOps && map.name == OsStr::new(KARAK)
    };
    let all = || MapInfoIter::default().filter(of_karak).count();
    sees_all_maps().then(|| all().saturating_sub(usize::from(loaded)))
}

/// Waits until `done` returns true; false if that takes longer than [`PATIENCE`].
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
