//! One end of the link: a TUN device, its addresses, and the `ip` command that sets them.
//!
//! `ip -batch` is used rather than netlink calls of our own: it acts in the namespace of the thread
//! that starts it, takes all settings of an end at once, and its input is readable.

use crate::EmuError;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, Stdio};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Largest packet in bytes, as on Ethernet.
pub(crate) const MTU: u16 = 1500;
/// Packets that the kernel queues in a device while the emulator is busy.
const DEVICE_QUEUE: u32 = 4096;

/// The number of a link: its devices are called `airtcpN` and its addresses are made from N. Unique
/// among the links of a namespace, and larger than those of the links around it, so that nested
/// links differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Outside,
    Inside,
}

impl Slot {
    /// Largest number of links: each takes four addresses of 100.64.0.0/10 (RFC 6598, shared
    /// address space).
    const COUNT: u32 = 1 << 20;

    /// The first number after those of the devices in the calling thread's namespace.
    pub(crate) fn first_free() -> Result<Self, EmuError> {
        let devices = std::fs::read_to_string("/proc/thread-self/net/dev")?;
        Ok(Self(next_number(&devices)))
    }

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub(crate) fn device(self) -> String {
        format!("airtcp{}", self.0)
    }

    pub(crate) fn ipv4(self, end: End) -> Ipv4Addr {
        let host = if end == End::Outside { 1 } else { 2 };
        Ipv4Addr::from_bits(Ipv4Addr::new(100, 64, 0, 0).to_bits() + self.0 * 4 + host)
    }

    /// In a unique local prefix (RFC 4193) whose random part was drawn once.
    pub(crate) fn ipv6(self, end: End) -> Ipv6Addr {
        let host = if end == End::Outside { 1 } else { 2 };
        let [high, low] = [(self.0 >> 16) as u16, self.0 as u16];
        Ipv6Addr::new(0xfd4c, 0x91e7, 0x3b0a, 0, 0, high, low, host)
    }
}

/// The first N after all `airtcpN` in a listing as in /proc/net/dev.
fn next_number(devices: &str) -> u32 {
    let names = devices.lines().filter_map(|line| line.split_once(':'));
    let numbers = names.filter_map(|(name, _)| name.trim().strip_prefix("airtcp")?.parse().ok());
    numbers.max().map_or(0, |n: u32| n.saturating_add(1))
}

/// A non-blocking TUN device.
pub(crate) struct Port {
    device: SyncDevice,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port({:?})", self.device.as_fd())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Port {
    /// Makes the device in the calling thread's namespace; `None` if the name is taken.
    pub(crate) fn make(slot: Slot) -> Result<Option<Self>, EmuError> {
        if slot.0 >= Slot::COUNT {
            return Err(EmuError::Tun(io::Error::other("all numbers of links are taken")));
        }
        // Opened here first: tun-rs would create a missing device file.
        File::options().read(true).write(true).open("/dev/net/tun").map_err(EmuError::Tun)?;
        let builder = DeviceBuilder::new().name(slot.device()).mtu(MTU);
        let device = match builder.tx_queue_len(DEVICE_QUEUE).enable(false).build_sync() {
            Ok(device) => device,
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Ok(None),
            Err(error) => return Err(EmuError::Tun(error)),
        };
        device.set_nonblocking(true)?;
        Ok(Some(Self { device }))
    }

    /// Gives the end its addresses and brings it up. The calling thread must be in the device's
    /// namespace.
    pub(crate) fn configure(slot: Slot, end: End, default_route: bool) -> Result<(), EmuError> {
        ip(&settings(slot, end, default_route, has_ipv6()))
    }

    /// The next packet from the kernel; `None` if none waits.
    pub(crate) fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        match self.device.recv(buffer) {
            Ok(size) => Ok(Some(&buffer[..size])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a packet to the kernel.
    pub(crate) fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(|_| ())
    }
}

/// Packets that the kernel dropped because the device's queue was full. The device is in the
/// calling thread's namespace.
pub(crate) fn dropped_by_kernel(slot: Slot) -> io::Result<u64> {
    let devices = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    Ok(transmit_drops(&devices, &slot.device()).unwrap_or(0))
}

fn transmit_drops(devices: &str, device: &str) -> Option<u64> {
    let mut lines = devices.lines().filter_map(|line| line.split_once(':'));
    let (_, counters) = lines.find(|(name, _)| name.trim() == device)?;
    // Eight columns of reception; then bytes, packets, errors, drops of transmission.
    counters.split_whitespace().nth(11)?.parse().ok()
}

fn has_ipv6() -> bool {
    let disabled = std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    disabled.is_ok_and(|text| text.trim() == "0")
}

/// The batch for `ip`.
fn settings(slot: Slot, end: End, default_route: bool, ipv6: bool) -> String {
    let device = slot.device();
    let other = if end == End::Outside { End::Inside } else { End::Outside };
    let mut batch = format!(
        "address add {} peer {} dev {device}\nlink set {device} up\n",
        slot.ipv4(end),
        slot.ipv4(other)
    );
    if ipv6 {
        let (own, peer) = (slot.ipv6(end), slot.ipv6(other));
        batch += &format!("address add {own} peer {peer} dev {device} nodad\n");
    }
    if default_route {
        batch += &format!("link set lo up\nroute add default dev {device}\n");
        if ipv6 {
            batch += &format!("route add ::/0 dev {device}\n");
        }
    }
    batch
}

fn ip(batch: &str) -> Result<(), EmuError> {
    let failed = |source| EmuError::Program { program: "ip", package: "iproute2", source };
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(batch.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(EmuError::Addresses(stderr.lines().collect::<Vec<_>>().join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: &str = "Inter-|   Receive                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop\n    \
        lo:       0       0    0    0    0     0          0         0        0       0    0    0\n\
        airtcp3:    10       1    0    0    0     0          0         0       90      11    0    7\n\
        airtcp: 1 1 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_link_is_numbered_behind_those_there_are() {
        assert_eq!(next_number(DEVICES), 4);
        assert_eq!(next_number("lo: 0\n"), 0);
    }

    #[test]
    fn drops_of_the_kernel_are_those_of_transmission() {
        assert_eq!(transmit_drops(DEVICES, "airtcp3"), Some(7));
        assert_eq!(transmit_drops(DEVICES, "airtcp4"), None);
    }

    #[test]
    fn addresses_of_links_do_not_meet() {
        let last = Slot(Slot::COUNT - 1);
        assert_eq!(Slot(0).ipv4(End::Outside), Ipv4Addr::new(100, 64, 0, 1));
        assert_eq!(Slot(0).ipv4(End::Inside), Ipv4Addr::new(100, 64, 0, 2));
        assert_eq!(Slot(1).ipv4(End::Outside), Ipv4Addr::new(100, 64, 0, 5));
        assert_eq!(last.ipv4(End::Inside), Ipv4Addr::new(100, 127, 255, 254));
        assert_ne!(last.ipv6(End::Inside), Slot(0).ipv6(End::Inside));
    }

    #[test]
    fn only_the_inside_gets_a_default_route() {
        let inside = settings(Slot(2), End::Inside, true, false);
        assert_eq!(
            inside,
            "address add 100.64.0.10 peer 100.64.0.9 dev airtcp2\nlink set airtcp2 up\n\
             link set lo up\nroute add default dev airtcp2\n"
        );
        assert!(!settings(Slot(2), End::Outside, false, true).contains("default"));
    }
}
