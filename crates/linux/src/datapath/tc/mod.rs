//! Programs of tc at the interfaces of this host.
//!
//! Read first: docs/internals/datapath.md; `bpf/mirror_tc.bpf.c`.
//!
//! They are classifiers in the qdisc `clsact`, which let every packet go on (`links` says at which
//! interfaces, `filters` how). No file descriptor owns them: they are removed when this is dropped.
//! Those of a killed process stay until the next start, and do no more than fill a buffer that
//! nobody reads.

mod filters;
mod links;

pub(super) use links::Places;

use crate::kernel::bpf::map;
use crate::kernel::netlink::{Message, Netlink, messages, u32_at};
use filters::{Filters, Hook};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use links::{Device, LinkKey, layout};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Options of the kernel that the programs need.
pub(crate) const KERNEL_OPTIONS: &str =
    "CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF (OpenWrt: kmod-sched-bpf)";

/// Group of notifications about qdiscs and filters (linux/rtnetlink.h, `RTMGRP_TC`).
const CHANGES_OF_TC: i32 = 8;

/// The programs, attached to the interfaces of a network namespace.
#[derive(Debug)]
pub(super) struct Attachments {
    /// New interfaces, and filters that somebody removes.
    changes: Netlink,
    requests: Netlink,
    filters: Filters,
    programs: [(Hook, OwnedFd); 2],
    /// The program's map `links`, and the keys in it.
    links: MapHandle,
    known: BTreeSet<LinkKey>,
    places: Places,
    /// Interfaces with our filters; true: their `clsact` is ours.
    attached: BTreeMap<u32, bool>,
    /// Interfaces where attaching failed, to say so once.
    failed: BTreeSet<u32>,
}

impl Attachments {
    /// Attaches nothing yet, in the calling thread's network namespace.
    ///
    /// # Errors
    /// No more file descriptors.
    pub(super) fn new(object: &Object) -> io::Result<Self> {
        let program = |hook: Hook| -> io::Result<(Hook, OwnedFd)> {
            let mut all = object.progs();
            let found = all.find(|program| program.name() == hook.program());
            Ok((hook, found.expect("the object has it").as_fd().try_clone_to_owned()?))
        };
        Ok(Self {
            changes: Netlink::subscribe(libc::NETLINK_ROUTE, libc::RTMGRP_LINK | CHANGES_OF_TC)?,
            requests: Netlink::open(libc::NETLINK_ROUTE)?,
            filters: Filters::open()?,
            programs: [program(Hook::Ingress)?, program(Hook::Egress)?],
            links: MapHandle::try_from(&map(object, "links")).map_err(io::Error::other)?,
            known: BTreeSet::new(),
            places: Places::default(),
            attached: BTreeMap::new(),
            failed: BTreeSet::new(),
        })
    }

    /// Attaches the programs to one interface, to see whether that is possible.
    ///
    /// # Errors
    /// The kernel cannot, or a privilege is lacking.
    pub(super) fn attach_to(&mut self, index: u32) -> io::Result<()> {
        let has_left = self.filters.remove_left(index);
        let needs = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::EOPNOTSUPP) => {
                io::Error::other(format!("{error}: needs {KERNEL_OPTIONS}"))
            }
            _ => error,
        };
        let has_made = self.filters.make_clsact(index).map_err(needs)? || has_left;
        // Dropped with this from now on, whatever fails.
        self.attached.insert(index, has_made);
        let attach =
            |(hook, program): &(Hook, OwnedFd)| self.filters.attach(index, *hook, program.as_fd());
        self.programs.iter().try_for_each(attach).map_err(needs)
    }

    /// Attaches the programs where packets of these mobiles and uplinks pass.
    ///
    /// # Errors
    /// An interface cannot have them; its name is in the message.
    pub(super) fn configure(&mut self, places: Places) -> io::Result<()> {
        let is_first = self.attached.is_empty();
        self.places = places;
        let failed = self.review()?;
        match failed.into_iter().next() {
            Some((name, error)) if is_first => {
                Err(io::Error::new(error.kind(), format!("interface {name}: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Readable when something may have changed.
    pub(super) fn changes(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    /// Follows the interfaces that have come or gone, and restores filters that somebody removed.
    pub(super) fn follow(&mut self) {
        match self.has_changed() {
            Ok(false) => {}
            Ok(true) => {
                if let Err(error) = self.review() {
                    tracing::error!("cannot look at the interfaces: {error}");
                }
            }
            Err(error) => tracing::error!("cannot follow the interfaces: {error}"),
        }
    }

    /// Reads the notifications; true if the interfaces have to be looked at.
    fn has_changed(&mut self) -> io::Result<bool> {
        let mut has_changed = false;
        // The loop asks often, and a datagram needs a large buffer.
        let mut fds = [PollFd::new(self.changes.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::ZERO)? == 0 {
            return Ok(false);
        }
        loop {
            let datagram = match self.changes.next() {
                Ok(Some(datagram)) => datagram,
                Ok(None) => return Ok(has_changed),
                // Some were lost.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.attached.retain(|&index, _| self.filters.are_attached(index));
                    has_changed = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            for (kind, body) in messages(&datagram) {
                match kind {
                    libc::RTM_NEWLINK | libc::RTM_DELLINK => has_changed = true,
                    libc::RTM_DELQDISC | libc::RTM_DELTFILTER => {
                        let index = u32_at(body, 4).unwrap_or(0);
                        if self.attached.contains_key(&index) && !self.filters.are_attached(index) {
                            self.attached.remove(&index);
                            has_changed = true;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Looks at all interfaces; those to which the programs could not be attached.
    fn review(&mut self) -> io::Result<Vec<(String, io::Error)>> {
        let devices = devices(&self.requests)?;
        let wanted = layout(&devices, &self.places);
        for key in self.known.iter().filter(|key| !wanted.links.contains_key(key)) {
            // It is there: it is known.
            let _ = self.links.delete(&bytes(*key));
        }
        for (key, link) in &wanted.links {
            self.links
                .update(&bytes(*key), &link.bytes(), MapFlags::ANY)
                .map_err(io::Error::other)?;
        }
        self.known = wanted.links.into_keys().collect();
        let gone: Vec<_> = self
            .attached
            .keys()
            .filter(|index| !wanted.attached.contains_key(index))
            .copied()
            .collect();
        for index in gone {
            if let Some(has_made) = self.attached.remove(&index) {
                self.filters.detach(index, has_made);
            }
        }
        self.failed.retain(|index| wanted.attached.contains_key(index));
        let mut failed = Vec::new();
        for (index, name) in wanted.attached {
            if self.attached.contains_key(&index) {
                continue;
            }
            match self.attach_to(index) {
                Ok(()) => {
                    tracing::debug!(interface = %name, "attached the programs of tc");
                    self.failed.remove(&index);
                }
                Err(error) => {
                    if let Some(has_made) = self.attached.remove(&index) {
                        self.filters.detach(index, has_made);
                    }
                    // It may be gone again.
                    if error.raw_os_error() == Some(libc::ENODEV) {
                        continue;
                    }
                    if self.failed.insert(index) {
                        tracing::error!(interface = %name, "its packets are not seen: {error}");
                    }
                    failed.push((name, error));
                }
            }
        }
        Ok(failed)
    }
}

impl Drop for Attachments {
    fn drop(&mut self) {
        for (&index, &has_made) in &self.attached {
            self.filters.detach(index, has_made);
        }
    }
}

/// Removes what a killed gateway has left on the interfaces of the calling thread's namespace.
pub(super) fn remove_left() -> io::Result<()> {
    let filters = Filters::open()?;
    for device in devices(&Netlink::open(libc::NETLINK_ROUTE)?)? {
        filters.remove_left(device.index);
    }
    Ok(())
}

/// True if the uplink's interface sees only a part of its packets, because of flow tables.
pub(super) fn is_behind_flow_tables(uplink: &str) -> bool {
    let devices = Netlink::open(libc::NETLINK_ROUTE).and_then(|netlink| devices(&netlink));
    devices.is_ok_and(|devices| links::is_behind_flow_tables(&devices, uplink))
}

/// All interfaces.
fn devices(netlink: &Netlink) -> io::Result<Vec<Device>> {
    let request = Message::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; 16]);
    let all = netlink.dump(&request.finish())?;
    Ok(all.iter().filter_map(|(_, body)| Device::parse(body)).collect())
}

/// Bytes of a `struct link_key`.
fn bytes((index, vlan): LinkKey) -> Vec<u8> {
    [index, vlan].map(u32::to_ne_bytes).concat()
}
