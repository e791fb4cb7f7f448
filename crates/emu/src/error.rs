//! Errors of the emulator.

use ipnet::Ipv4Net;
use std::io;
use std::path::PathBuf;

/// An error that keeps the emulator from starting or continuing. The message says what is missing
/// and how to fix it.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// No right to make or enter network namespaces.
    #[error("cannot {what}: {source} (network namespaces need CAP_SYS_ADMIN: run as root)")]
    Namespace {
        /// The operation that failed, as a verb phrase.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// There is no namespace of that name.
    #[error("no network namespace {name:?} in /run/netns{}", nearest(.known))]
    NoSuchNamespace {
        /// The name asked for.
        name: String,
        /// The names in /run/netns.
        known: Vec<String>,
    },
    /// The TUN device could not be made.
    #[error(
        "cannot make a TUN device: {0} (needs /dev/net/tun and CAP_NET_ADMIN: run as root, \
         `modprobe tun`)"
    )]
    Tun(io::Error),
    /// A program the emulator needs could not be started.
    #[error("cannot run `{program}`: {source} (package {package})")]
    Program {
        /// Name of the executable.
        program: &'static str,
        /// The Debian package that provides it.
        package: &'static str,
        /// The error on starting it.
        source: io::Error,
    },
    /// The block of addresses asked for has others' addresses in it.
    #[error("--prefix {prefix}: {by} is in use on this machine (expected a free block)")]
    PrefixInUse {
        /// The block asked for.
        prefix: Ipv4Net,
        /// A network that is routed, or a gateway.
        by: Ipv4Net,
    },
    /// The block has no addresses for a link of this number.
    #[error("{prefix} has no room for {links} links: each takes four addresses (see --prefix)")]
    PrefixTooSmall {
        /// The block.
        prefix: Ipv4Net,
        /// Number of links, those with lower numbers among them.
        links: u32,
    },
    /// All blocks that links usually take their addresses from are in use.
    #[error("{0} are all in use on this machine: name a free block with --prefix")]
    NoFreePrefix(String),
    /// `ip` failed.
    #[error("`ip`: {0}")]
    Ip(String),
    /// A device of the link cannot be read any more.
    #[error("the link broke: {0} (was one of its devices deleted?)")]
    Link(io::Error),
    /// The control socket could not be made.
    #[error("cannot listen at {}: {source}", .path.display())]
    Control {
        /// Path of the socket.
        path: PathBuf,
        /// The error on binding it.
        source: io::Error,
    },
    /// A log could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Log {
        /// Path of the log file.
        path: PathBuf,
        /// The error on creating or writing it.
        source: io::Error,
    },
    /// Unexpected failure of a system call.
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn nearest(known: &[String]) -> String {
    if known.is_empty() {
        " (there are none: `ip netns add NAME`)".to_owned()
    } else {
        format!(" (there are {})", known.join(", "))
    }
}
