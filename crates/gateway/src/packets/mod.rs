//! Packets as they come to the gateway, and what becomes of them.
//!
//! [`Intercepted`] is one on its way, [`Kept`] one that is kept whatever its protocol,
//! [`SharedBytes`] the user data of a segment.

mod kept;
mod payload;

pub use kept::{Kept, Sent};
pub use payload::SharedBytes;

use airtcp_edge::Silence;
use airtcp_wire::Checksums;
use bytes::Bytes;

/// Number of a packet that waits for a [`Verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u32);

/// A packet on its way through this host, held until its verdict; or a copy of one.
#[derive(Clone, Debug)]
pub struct Intercepted {
    /// For the verdict. `None`: a copy; the packet itself has gone on.
    pub id: Option<PacketId>,
    /// From the IP header on; up to 64 KiB and several segments in one where offloads are on.
    pub packet: Bytes,
    /// Index of the interface it came in by; `None` when the kernel did not say.
    pub input: Option<u32>,
    /// Index of the interface it is about to leave by.
    pub output: Option<u32>,
    /// The checksums that can be verified: offloads fill them in later, or have verified them.
    pub checksums: Checksums,
    /// Payload bytes of each packet, of one that offloads made of several (known of copies).
    pub datagram: Option<u16>,
    /// The mobile's silence as the kernel knew it, where it copies only packets sent into a
    /// silence.
    pub silence: Option<Silence>,
    /// A copy that the kernel made for one reason: its connection may end with it.
    pub is_closing: bool,
}

impl Intercepted {
    /// The packet itself has gone on, and a verdict has no effect.
    pub fn is_copy(&self) -> bool {
        self.id.is_none()
    }
}

/// The way of the gateway's own packets out of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// By the routes, as a part of its connection.
    Tracked,
    /// By the routes, unseen by connection tracking.
    Untracked,
    /// By an uplink with this index, as a part of its connection.
    Uplink(u32),
}

/// The decision on an intercepted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it came.
    Pass,
    /// It goes no further.
    Drop,
}
