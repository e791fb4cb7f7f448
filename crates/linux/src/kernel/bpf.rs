//! Shared parts of the loaders of BPF programs.

use ipnet::IpNet;
use libbpf_rs::{MapCore, MapImpl, Object, ObjectBuilder, OpenObject, PrintLevel};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::net::IpAddr;
use std::sync::{Mutex, Once, PoisonError};

/// Mount point of the BPF file system (Documentation/filesystems/bpf.rst of Linux).
pub(crate) const BPF_FILE_SYSTEM: &str = "/sys/fs/bpf";

static LAST_WARNING: Mutex<String> = Mutex::new(String::new());

/// The last warning of libbpf, often the reason of a failure; empty if there was none.
pub(crate) fn last_warning() -> String {
    LAST_WARNING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Opens a compiled program. Warnings of libbpf go to the log.
pub(crate) fn open(object: &[u8]) -> libbpf_rs::Result<OpenObject> {
    static QUIET: Once = Once::new();
    // By default libbpf writes to standard error.
    QUIET.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            let text = text.trim_end();
            tracing::debug!("libbpf: {text}");
            text.clone_into(&mut LAST_WARNING.lock().unwrap_or_else(PoisonError::into_inner));
        })));
    });
    ObjectBuilder::default().name("airtcp")?.open_memory(object)
}

/// True if a BPF file system is mounted at [`BPF_FILE_SYSTEM`].
pub(crate) fn has_file_system() -> bool {
    statfs(BPF_FILE_SYSTEM).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC)
}

/// The map of this name in the program.
pub(crate) fn map<'a>(object: &'a Object, name: &str) -> MapImpl<'a> {
    object.maps().find(|map| map.name() == name).expect("the object has this map")
}

/// Bytes of a `struct prefix` of `bpf/ip.h`.
pub(crate) fn prefix(net: IpNet) -> Vec<u8> {
    let bits = match net {
        IpNet::V4(net) => 96 + u32::from(net.prefix_len()),
        IpNet::V6(net) => u32::from(net.prefix_len()),
    };
    [&bits.to_ne_bytes()[..], &mapped(net.addr())].concat()
}

/// Bytes of a `struct address` of `bpf/ip.h`: an IPv4 address is mapped to IPv6 (RFC 4291
/// §2.5.5.2).
pub(crate) fn mapped(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}
