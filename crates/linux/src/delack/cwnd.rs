//! The sender's cwnd in a TCP option of its data, by a BPF program in the kernel.
//!
//! Read first: `bpf/cwnd.bpf.c` (the program: who asks, who tells); `airtcp-wire`'s `options.rs`
//! (the option).
//!
//! The program is attached to the root of the cgroup hierarchy, which needs no mount point here:
//! `ip netns exec` hides /sys/fs/cgroup. It acts on the connections of the calling thread's network
//! namespace that begin from now on. When a [`CwndOption`] is dropped, or the process ends, the
//! kernel detaches the program.

use crate::kernel::bpf::{self, map, prefix};
use ipnet::IpNet;
use libbpf_rs::{Link, MapCore, MapFlags, Object};
use nix::sys::socket::sockopt::GetStruct;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// `bpf/cwnd.bpf.c`, compiled.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cwnd.bpf.o"));

/// The only key of a map with one element, and the value where only the key counts.
const ONLY: [u8; 4] = [0; 4];

/// Which connections take part, and what this host does in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// It asks the peer for its cwnd.
    pub asks: bool,
    /// It tells its own cwnd to a peer that asks.
    pub tells: bool,
    /// With whom; none: with any.
    pub peers: Vec<IpNet>,
    /// With one of these ports at either end; none: any.
    pub ports: Vec<u16>,
}

/// Connections since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CwndCounters {
    /// The peer was asked for its cwnd.
    pub asked: u64,
    /// The peer asked, and is told.
    pub told: u64,
}

/// Why nobody asks or tells.
#[derive(Debug, thiserror::Error)]
pub enum CwndError {
    /// The root of the cgroup hierarchy cannot be had.
    #[error(
        "cannot reach the cgroups, to which the program is attached (it takes CAP_SYS_ADMIN): {0}"
    )]
    Cgroup(io::Error),
    /// The network namespace has no name for programs.
    #[error("the kernel does not identify network namespaces (Linux 5.14 does): {0}")]
    Namespace(io::Error),
    /// The kernel refuses the program.
    #[error("cannot tell cwnd or ask for it: {why}; {said} (`airtcp doctor` says what is missing)")]
    Refused {
        /// The kernel's answer.
        why: libbpf_rs::Error,
        /// What libbpf said.
        said: String,
    },
}

impl From<libbpf_rs::Error> for CwndError {
    fn from(why: libbpf_rs::Error) -> Self {
        Self::Refused { why, said: bpf::last_warning() }
    }
}

/// The program at work, until this is dropped.
pub struct CwndOption {
    object: Object,
    _link: Link,
}

impl fmt::Debug for CwndOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CwndOption").finish_non_exhaustive()
    }
}

impl CwndOption {
    /// Puts the program to work.
    ///
    /// # Errors
    /// A privilege is lacking, or the kernel is too old (Linux 5.14) or has no CONFIG_CGROUP_BPF.
    pub fn attach(role: &Role) -> Result<Self, CwndError> {
        let namespace = namespace().map_err(CwndError::Namespace)?;
        let root = cgroup_root().map_err(CwndError::Cgroup)?;
        let object = bpf::open(OBJECT)?.load()?;
        for peer in &role.peers {
            map(&object, "peers").update(&prefix(*peer), &ONLY, MapFlags::ANY)?;
        }
        for port in &role.ports {
            map(&object, "ports").update(&u32::from(*port).to_ne_bytes(), &ONLY, MapFlags::ANY)?;
        }
        map(&object, "role").update(&ONLY, &encode(role, namespace), MapFlags::ANY)?;
        let program = object.progs_mut().find(|program| program.name() == "tell_cwnd");
        let link = program.expect("the object has it").attach_cgroup(root.as_raw_fd())?;
        Ok(Self { object, _link: link })
    }

    /// Counts since the start.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn counters(&self) -> Result<CwndCounters, CwndError> {
        let bytes = map(&self.object, "counts").lookup(&ONLY, MapFlags::ANY)?.unwrap_or_default();
        let mut counts = bytes.chunks_exact(8).map(|n| u64::from_ne_bytes(n.try_into().unwrap()));
        let mut next = || counts.next().unwrap_or(0);
        Ok(CwndCounters { asked: next(), told: next() })
    }
}

/// `struct role`.
fn encode(role: &Role, namespace: u64) -> Vec<u8> {
    let Role { asks, tells, peers, ports } = role;
    let words = [*asks, *tells, !peers.is_empty(), !ports.is_empty()];
    let words = words.into_iter().flat_map(|yes| u32::from(yes).to_ne_bytes());
    namespace.to_ne_bytes().into_iter().chain(words).collect()
}

/// SO_NETNS_COOKIE (Linux 5.14).
#[derive(Clone, Copy, Debug)]
struct NetnsCookie;
nix::getsockopt_impl!(NetnsCookie, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, u64, GetStruct<u64>);

/// What programs know the calling thread's network namespace by.
fn namespace() -> io::Result<u64> {
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    Ok(getsockopt(&any, NetnsCookie)?)
}

/// The root of the cgroup hierarchy, by a mount that has no place in the file system.
fn cgroup_root() -> io::Result<OwnedFd> {
    let cgroups = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&cgroups)?;
    Ok(fsmount(&cgroups, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_is_written_as_the_program_reads_it() {
        let role = Role { tells: true, ports: vec![80], ..Role::default() };
        let words = [0, 1, 0, 1].map(u32::to_ne_bytes).concat();
        assert_eq!(encode(&role, 7), [&7_u64.to_ne_bytes()[..], &words].concat());
    }
}
