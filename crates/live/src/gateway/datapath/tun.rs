//! Packets by a TUN device, for kernels without NFQUEUE: they are routed into it, and what goes on is written back.
//!
//! Read first: the kernel's networking/tuntap (packets with `struct virtio_net_hdr`); `rules` (which packets are routed here).
//!
//! The header in front of each packet says what offloads still have to do, so packets of several segments stay
//! whole and go on with the header they came with. The device vanishes with the process, and with it its routes: then
//! packets take their way as before. What NFQUEUE does better: a stopped process stalls the mobiles' flows until
//! it is killed; forwarded packets lose two hops of their time to live, and pass a firewall's FORWARD rules twice; and
//! a translating router (NAT) does not work, because it would see every connection's packets twice.

use super::inject::{Injector, destination};
use super::{DataPath, Intercepted, PacketId, Verdict, wait};
use airtcp_edge::Side;
use airtcp_wire::Checksums;
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

/// The device's name.
pub(super) const DEVICE: &str = "airtcp-gw";
/// Larger than any real interface's: it must not be the narrowest on the path.
const MTU: u16 = 65_535;
/// Packets that may wait for the gateway.
const QUEUE: u32 = 1000;
/// Packets read without looking at anything else at most.
const BATCH: usize = 32;
/// Room for a packet with its header.
const BUFFER: usize = VIRTIO_NET_HDR_LEN + 65_536;
/// In the header's first byte: the checksum is not made yet (`VIRTIO_NET_HDR_F_NEEDS_CSUM`), or has been verified
/// (`VIRTIO_NET_HDR_F_DATA_VALID`).
const CHECKSUM_TRUSTED: u8 = 1 | 2;

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// Another process has it.
    #[error("device {DEVICE} is in use: another gateway runs in this network namespace")]
    InUse,
    /// Privileges are lacking.
    #[error(
        "no permission for TUN devices or raw sockets: run as root, or with CAP_NET_ADMIN and CAP_NET_RAW"
    )]
    Permission,
    /// The kernel lacks it, or anything else.
    #[error("cannot make TUN device {DEVICE}: {0} (it needs /dev/net/tun: load module tun)")]
    Other(io::Error),
}

impl From<io::Error> for TunError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EBUSY) => Self::InUse,
            Some(libc::EPERM | libc::EACCES) => Self::Permission,
            _ => Self::Other(error),
        }
    }
}

/// The device, with the sockets for injected packets. Dropped, it vanishes with its routes.
pub struct Tun {
    device: SyncDevice,
    injector: Injector,
    /// Packets without a verdict, with their headers.
    waiting: VecDeque<(PacketId, Bytes)>,
    next: PacketId,
    buffer: Vec<u8>,
}

impl fmt::Debug for Tun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tun({:?}, {} waiting)", self.device.as_fd(), self.waiting.len())
    }
}

impl Tun {
    /// Makes the device in the calling thread's namespace. No packets come before there are rules.
    ///
    /// # Errors
    /// See [`TunError`].
    pub fn open() -> Result<Self, TunError> {
        let builder = DeviceBuilder::new().name(DEVICE).mtu(MTU).offload(true);
        let device = builder.tx_queue_len(QUEUE).enable(false).build_sync()?;
        device.set_nonblocking(true)?;
        for (setting, value) in [
            ("ipv4", "forwarding", "1"),
            // Packets come from where they would not be sent to.
            ("ipv4", "rp_filter", "2"),
        ]
        .map(|(version, name, value)| {
            (format!("/proc/sys/net/{version}/conf/{DEVICE}/{name}"), value)
        }) {
            // In a service that may not write there, what the device inherits mostly serves.
            let _ = std::fs::write(setting, value);
        }
        device.enabled(true)?;
        Ok(Self {
            device,
            injector: Injector::open()?,
            waiting: VecDeque::new(),
            next: PacketId(0),
            buffer: vec![0; BUFFER],
        })
    }

    /// Reads what is there without waiting; whether anything was.
    fn read(&mut self, batch: &mut Vec<Intercepted>) -> io::Result<bool> {
        for count in 0..BATCH {
            let length = match self.device.recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count > 0),
                Err(error) => return Err(error),
            };
            let packet = self.buffer[..length].get(VIRTIO_NET_HDR_LEN..).unwrap_or_default();
            if destination(packet).is_none_or(|destination| destination.is_multicast()) {
                // Nobody's but the kernel's own (MLD, router solicitations), sent because the device is there.
                continue;
            }
            let whole = Bytes::copy_from_slice(&self.buffer[..length]);
            let id = self.next;
            self.next = PacketId(id.0.wrapping_add(1));
            batch.push(Intercepted {
                id: Some(id),
                packet: whole.slice(VIRTIO_NET_HDR_LEN..),
                input: None,
                output: None,
                checksums: match whole[0] & CHECKSUM_TRUSTED {
                    0 => Checksums::Verify,
                    _ => Checksums::Ignore,
                },
            });
            self.waiting.push_back((id, whole));
        }
        Ok(true)
    }
}

impl DataPath for Tun {
    fn receive(
        &mut self,
        wakes: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
        batch: &mut Vec<Intercepted>,
    ) -> io::Result<()> {
        if self.read(batch)? {
            return Ok(());
        }
        wait(wakes.iter().copied().chain([self.device.as_fd()]), timeout)?;
        self.read(batch).map(drop)
    }

    fn decide(&mut self, id: PacketId, verdict: Verdict) -> io::Result<()> {
        // In order, so it is the first.
        let Some(index) = self.waiting.iter().position(|(waiting, _)| *waiting == id) else {
            return Ok(());
        };
        let whole = self.waiting.remove(index).map(|(_, whole)| whole);
        match (verdict, whole) {
            (Verdict::Pass, Some(whole)) => self.device.send(&whole).map(drop),
            _ => Ok(()),
        }
    }

    fn inject(&mut self, to: Side, packet: &[u8]) -> io::Result<()> {
        self.injector.send(to, packet)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
