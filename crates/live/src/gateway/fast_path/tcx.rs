//! Attaching a program by TCX (Linux 6.6), for which libbpf-rs has no wrapper.

#![allow(unsafe_code)]

use libbpf_rs::{AsRawLibbpf, Link, ProgramMut};
use nix::errno::Errno;
use std::io;
use std::ptr::{NonNull, null};

/// Attaches a program of section `tcx/…` to the interface with this index, behind those that are there; until the link is
/// dropped or the process ends.
///
/// # Errors
/// What the system says: the kernel has no TCX, the interface is gone, a privilege is lacking.
pub(super) fn attach(program: &ProgramMut<'_>, interface: u32) -> io::Result<Link> {
    let index = i32::try_from(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = program.as_libbpf_object();
    // SAFETY: the pointer is that of a loaded program, which the borrow keeps alive for the call; without options libbpf
    // takes its defaults.
    let link = unsafe { libbpf_sys::bpf_program__attach_tcx(program.as_ptr(), index, null()) };
    // libbpf returns null and sets errno (its strict mode, the only one since 1.0).
    let link = NonNull::new(link).ok_or_else(|| io::Error::from(Errno::last()))?;
    // SAFETY: the link is new and nobody else has it.
    Ok(unsafe { Link::from_ptr(link) })
}
