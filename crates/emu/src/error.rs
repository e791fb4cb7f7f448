//! What can keep a link from coming up.

use std::io;
use std::path::PathBuf;

/// The emulator could not start or go on; the message says what is missing and how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// No right to make or enter network namespaces.
    #[error("cannot {what}: {source} (network namespaces need CAP_SYS_ADMIN: run as root)")]
    Namespace {
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// There is no namespace of that name.
    #[error("no network namespace {name:?} in /run/netns{}", nearest(.known))]
    NoSuchNamespace {
        /// As given.
        name: String,
        /// Those there are.
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
        /// Its name.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The addresses could not be set.
    #[error("`ip` refused the addresses of the link: {0}")]
    Addresses(String),
    /// A device of the link cannot be read any more.
    #[error("the link broke: {0} (was one of its devices deleted?)")]
    Link(io::Error),
    /// The control socket could not be made.
    #[error("cannot listen at {}: {source}", .path.display())]
    Control {
        /// As given.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A log could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Log {
        /// As given.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A system call failed that normally does not.
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
