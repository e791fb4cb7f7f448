//! One end of the link: a TUN device, its addresses, and the `ip` command that sets them.
//!
//! `ip -batch` is used rather than netlink calls of our own: it acts in the namespace of the thread
//! that starts it, takes all settings of an end at once, and its input is readable.

use crate::EmuError;
use ipnet::Ipv4Net;
use serde_json::Value;
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

/// The blocks that links take their addresses from, in order of preference: shared address space
/// (RFC 6598), benchmarks (RFC 2544), and a part of private address space (RFC 1918).
const BLOCKS: [Ipv4Net; 3] =
    [block([100, 64, 0, 0], 10), block([198, 18, 0, 0], 15), block([10, 213, 0, 0], 16)];

const fn block([a, b, c, d]: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

/// The number of a link: its devices are called `airtcpN` and its addresses are made from N. Unique
/// among the links of a namespace, and larger than those of the links around it, so that nested
/// links differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    number: u32,
    /// The link has four addresses of it.
    block: Ipv4Net,
}

/// What a namespace has before it gets an end of the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The first N after all `airtcpN` there.
    next_number: u32,
    /// Destinations and gateways of its routes, its own addresses among them.
    used: Vec<Ipv4Net>,
}

impl Surroundings {
    /// Those of the calling thread's namespace.
    pub(crate) fn read() -> Result<Self, EmuError> {
        let devices = std::fs::read_to_string("/proc/thread-self/net/dev")?;
        let routes = ip(&["-json", "-4", "route", "show", "table", "all"], "")?;
        Ok(Self { next_number: next_number(&devices), used: used(&routes) })
    }
}

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Outside,
    Inside,
}

impl Slot {
    /// The first free number, with addresses of `wanted`, or else of a block that nobody uses: an
    /// uplink may have its gateway in one (Starlink in 100.64.0.0/10), or a tunnel its peers.
    pub(crate) fn choose(
        around: &[Surroundings],
        wanted: Option<Ipv4Net>,
    ) -> Result<Self, EmuError> {
        let number = around.iter().map(|namespace| namespace.next_number).max().unwrap_or(0);
        let used = || around.iter().flat_map(|namespace| &namespace.used);
        let overlaps =
            |block: &Ipv4Net| used().any(|used| used.contains(block) || block.contains(used));
        let block = match wanted {
            // A part of a larger network may be free.
            Some(wanted) => match used().find(|&used| wanted.contains(used)) {
                Some(used) => return Err(EmuError::PrefixInUse { prefix: wanted, by: *used }),
                None => wanted,
            },
            None => BLOCKS.into_iter().find(|block| !overlaps(block)).ok_or_else(|| {
                EmuError::NoFreePrefix(BLOCKS.map(|block| block.to_string()).join(", "))
            })?,
        };
        Ok(Self { number, block })
    }

    pub(crate) fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }

    pub(crate) fn device(self) -> String {
        format!("airtcp{}", self.number)
    }

    /// True if the block has addresses for this number.
    fn fits(self) -> bool {
        self.number.checked_mul(4).is_some_and(|first| {
            first <= self.block.hostmask().to_bits() && self.block.prefix_len() <= 30
        })
    }

    pub(crate) fn ipv4(self, end: End) -> Ipv4Addr {
        let host = if end == End::Outside { 1 } else { 2 };
        Ipv4Addr::from_bits(self.block.network().to_bits() + self.number * 4 + host)
    }

    /// In a unique local prefix (RFC 4193) whose random part was drawn once.
    pub(crate) fn ipv6(self, end: End) -> Ipv6Addr {
        let host = if end == End::Outside { 1 } else { 2 };
        let [high, low] = [(self.number >> 16) as u16, self.number as u16];
        Ipv6Addr::new(0xfd4c, 0x91e7, 0x3b0a, 0, 0, high, low, host)
    }
}

/// The networks in a listing of routes by `ip -json`: destinations and gateways, but for those of
/// links and what stands for a default route (0.0.0.0/1 of a tunnel).
fn used(routes: &str) -> Vec<Ipv4Net> {
    let routes: Vec<Value> = serde_json::from_str(routes).unwrap_or_default();
    let is_link = |route: &Value| {
        let number = route["dev"].as_str().and_then(|device| device.strip_prefix("airtcp"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    routes
        .iter()
        .filter(|route| !is_link(route))
        .flat_map(|route| [&route["dst"], &route["gateway"]])
        .filter_map(|text| {
            let text = text.as_str()?;
            text.parse().or_else(|_| text.parse().map(|host: Ipv4Addr| host.into())).ok()
        })
        .filter(|network: &Ipv4Net| network.prefix_len() >= 8)
        .collect()
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
        if !slot.fits() {
            return Err(EmuError::PrefixTooSmall { prefix: slot.block, links: slot.number + 1 });
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
        ip(&["-batch", "-"], &settings(slot, end, default_route, has_ipv6())).map(|_| ())
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

/// Runs `ip`; returns what it prints.
fn ip(arguments: &[&str], input: &str) -> Result<String, EmuError> {
    let failed = |source| EmuError::Program { program: "ip", package: "iproute2", source };
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(EmuError::Ip(stderr.lines().collect::<Vec<_>>().join("; ")))
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

    fn slot(number: u32) -> Slot {
        Slot { number, block: BLOCKS[0] }
    }

    #[test]
    fn addresses_of_links_do_not_meet() {
        let [first, second, last, none] = [0, 1, (1 << 20) - 1, 1 << 20].map(slot);
        assert_eq!(first.ipv4(End::Outside), Ipv4Addr::new(100, 64, 0, 1));
        assert_eq!(first.ipv4(End::Inside), Ipv4Addr::new(100, 64, 0, 2));
        assert_eq!(second.ipv4(End::Outside), Ipv4Addr::new(100, 64, 0, 5));
        assert_eq!(last.ipv4(End::Inside), Ipv4Addr::new(100, 127, 255, 254));
        assert_ne!(last.ipv6(End::Inside), first.ipv6(End::Inside));
        assert!(last.fits() && !none.fits());
    }

    /// As `ip -json -4 route show table all` prints them.
    const ROUTES: &str = r#"[
        {"dst":"default","gateway":"100.64.0.1","dev":"wan","flags":["onlink"]},
        {"dst":"0.0.0.0/1","dev":"tun0"},
        {"dst":"10.20.0.0/16","dev":"lan","prefsrc":"10.20.0.1"},
        {"type":"local","dst":"10.20.0.1","dev":"lan","table":"local"},
        {"dst":"198.18.0.2","dev":"airtcp3"}
    ]"#;

    #[test]
    fn a_link_takes_no_addresses_that_others_use() {
        let around = |routes| [Surroundings { next_number: 4, used: used(routes) }];
        let chosen = |routes, wanted| Slot::choose(&around(routes), wanted);
        assert_eq!(used(ROUTES).len(), 3);
        assert_eq!(chosen("", None).unwrap().block, BLOCKS[0]);
        let slot = chosen(ROUTES, None).unwrap();
        assert_eq!((slot.device().as_str(), slot.block), ("airtcp4", BLOCKS[1]));
        let wanted = |text: &str| Some(text.parse().unwrap());
        assert!(chosen(ROUTES, wanted("10.20.128.0/17")).is_ok());
        let refusal = chosen(ROUTES, wanted("10.0.0.0/8")).unwrap_err().to_string();
        assert!(refusal.contains("10.20.0.0/16"), "{refusal}");
        let all = r#"[{"dst":"100.96.0.0/12"},{"dst":"198.0.0.0/8"},{"dst":"10.0.0.0/8"}]"#;
        assert!(chosen(all, None).unwrap_err().to_string().contains("--prefix"));
    }

    #[test]
    fn only_the_inside_gets_a_default_route() {
        let inside = settings(slot(2), End::Inside, true, false);
        assert_eq!(
            inside,
            "address add 100.64.0.10 peer 100.64.0.9 dev airtcp2\nlink set airtcp2 up\n\
             link set lo up\nroute add default dev airtcp2\n"
        );
        assert!(!settings(slot(2), End::Outside, false, true).contains("default"));
    }
}
