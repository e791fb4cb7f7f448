//! Loader of the BPF program that reports the sender's cwnd in a TCP option.
//!
//! Read first: `bpf/cwnd.bpf.c` (the program: requests and reports); `airtcp-wire`'s `options.rs`
//! (the option).
//!
//! The program is attached to the root of the cgroup hierarchy. That needs no mount point:
//! `ip netns exec` hides /sys/fs/cgroup. It acts on connections of the calling thread's network
//! namespace that begin afterwards. When a [`CwndOption`] is dropped, or the process ends, the
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

/// Object file compiled from `bpf/cwnd.bpf.c`.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cwnd.bpf.o"));

/// The only key of a map with one element, and the value where only the key counts.
const ONLY: [u8; 4] = [0; 4];

/// Part of this host in the exchange of cwnd, and the connections that take part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CwndRole {
    /// This host requests the peer's cwnd.
    pub requests: bool,
    /// This host reports its cwnd to a peer that requests it.
    pub reports: bool,
    /// Only connections with these peers; empty: with any.
    pub peers: Vec<IpNet>,
    /// Only connections with one of these ports at either end; empty: with any.
    pub ports: Vec<u16>,
}

/// Connections that took part since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CwndCounters {
    /// Connections in which this host requested the peer's cwnd.
    pub requested: u64,
    /// Connections in which the peer requested this host's cwnd.
    pub reported: u64,
}

/// Reason why cwnd is neither requested nor reported.
#[derive(Debug, thiserror::Error)]
pub enum CwndError {
    /// The root of the cgroup hierarchy cannot be opened.
    #[error("cannot open the root cgroup, to attach the program (needs CAP_SYS_ADMIN): {0}")]
    Cgroup(io::Error),
    /// The cookie of the network namespace cannot be read.
    #[error("cannot identify the network namespace (needs Linux 5.14): {0}")]
    Namespace(io::Error),
    /// The kernel refuses the program.
    #[error(
        "cannot load the program that exchanges cwnd: {why}; {said} (`airtcp doctor` says what is missing)"
    )]
    Refused {
        /// The kernel's error.
        why: libbpf_rs::Error,
        /// The last warning of libbpf.
        said: String,
    },
}

impl From<libbpf_rs::Error> for CwndError {
    fn from(why: libbpf_rs::Error) -> Self {
        Self::Refused { why, said: bpf::last_warning() }
    }
}

/// The attached program; detached when dropped.
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
    /// Loads and attaches the program.
    ///
    /// # Errors
    /// A privilege is missing, or the kernel is older than Linux 5.14 or has no CONFIG_CGROUP_BPF.
    pub fn attach(role: &CwndRole) -> Result<Self, CwndError> {
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
        let program = object.progs_mut().find(|program| program.name() == "report_cwnd");
        let link = program.expect("the object has it").attach_cgroup(root.as_raw_fd())?;
        Ok(Self { object, _link: link })
    }

    /// Connections counted since the start.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counters(&self) -> Result<CwndCounters, CwndError> {
        let bytes = map(&self.object, "counts").lookup(&ONLY, MapFlags::ANY)?.unwrap_or_default();
        let mut counts = bytes.chunks_exact(8).map(|n| u64::from_ne_bytes(n.try_into().unwrap()));
        let mut next = || counts.next().unwrap_or(0);
        Ok(CwndCounters { requested: next(), reported: next() })
    }
}

/// Bytes of the program's `struct role`.
fn encode(role: &CwndRole, namespace: u64) -> Vec<u8> {
    let CwndRole { requests, reports, peers, ports } = role;
    let words = [*requests, *reports, !peers.is_empty(), !ports.is_empty()];
    let words = words.into_iter().flat_map(|yes| u32::from(yes).to_ne_bytes());
    namespace.to_ne_bytes().into_iter().chain(words).collect()
}

/// The socket option SO_NETNS_COOKIE (Linux 5.14).
#[derive(Clone, Copy, Debug)]
struct NetnsCookie;
nix::getsockopt_impl!(NetnsCookie, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, u64, GetStruct<u64>);

/// Cookie by which programs identify the calling thread's network namespace.
fn namespace() -> io::Result<u64> {
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    Ok(getsockopt(&any, NetnsCookie)?)
}

/// The root of the cgroup hierarchy, through a detached mount.
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
        let role = CwndRole { reports: true, ports: vec![80], ..CwndRole::default() };
        let words = [0, 1, 0, 1].map(u32::to_ne_bytes).concat();
        assert_eq!(encode(&role, 7), [&7_u64.to_ne_bytes()[..], &words].concat());
    }
}
