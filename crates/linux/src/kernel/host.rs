//! Interfaces of this host, and programs of other packages.

use airtcp_gateway::dispatch::Interfaces;
use nix::net::if_::Interface;
use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// All interfaces whose names a configuration can have; none if they cannot be read.
pub fn interfaces() -> Interfaces {
    let Ok(all) = nix::net::if_::if_nameindex() else { return Interfaces::new() };
    let named = |interface: &Interface| {
        Some((interface.name().to_str().ok()?.parse().ok()?, interface.index()))
    };
    all.iter().filter_map(named).collect()
}

/// Index of an interface; `None` if it does not exist.
pub(crate) fn interface(name: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(name).ok()
}

/// Path of a program on PATH or in /usr/sbin or /sbin, which users often lack on their PATH.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    folders.map(|folder| folder.join(name)).find(executable)
}
