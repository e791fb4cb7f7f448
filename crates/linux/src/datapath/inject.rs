//! Injection of packets that the gateway makes, by raw sockets.
//!
//! Read first: raw(7), and "Connection tracking" in the module above. Injected packets leave
//! through the OUTPUT hook, so they never come back to the queue, which is in FORWARD.
//!
//! They are routed as packets of this host, but by their source address, which is another host's.
//! So policy routing rules that match the source treat them like forwarded packets; rules that
//! match the input interface do not.

use airtcp_gateway::config::Mark;
use airtcp_gateway::packets::Egress;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

/// Send buffer in bytes: room for packets that wait in queues of the link.
const SEND_BUFFER: usize = 8 << 20;

/// The socket option `IPV6_FREEBIND`: allows source addresses that no interface of this host has.
#[derive(Clone, Copy, Debug)]
struct Ipv6Freebind;
nix::setsockopt_impl!(
    Ipv6Freebind,
    libc::IPPROTO_IPV6,
    libc::IPV6_FREEBIND,
    bool,
    nix::sys::socket::sockopt::SetBool
);

/// Raw sockets for packets with and without the mark.
#[derive(Debug)]
pub(crate) struct Injector {
    plain: Pair,
    marked: Pair,
}

/// Sockets of both IP versions; none for IPv6 if the kernel lacks it.
#[derive(Debug)]
struct Pair {
    ipv4: Socket,
    ipv6: Option<Socket>,
}

impl Injector {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { plain: Pair::open()?, marked: Pair::open()? })
    }

    /// Sets the mark of packets that connection tracking or the gateway itself must ignore.
    pub(crate) fn set_mark(&self, mark: Mark) -> io::Result<()> {
        let Pair { ipv4, ipv6 } = &self.marked;
        let mut all = [Some(ipv4), ipv6.as_ref()].into_iter().flatten();
        all.try_for_each(|socket| socket.set_mark(mark.value))
    }

    /// Sends an IP packet to its destination address.
    pub(crate) fn send(&self, egress: Egress, packet: &[u8]) -> io::Result<()> {
        let (pair, index) = match egress {
            Egress::Tracked => (&self.plain, 0),
            Egress::Untracked => (&self.marked, 0),
            Egress::Uplink(index) => (&self.marked, index),
        };
        let [source, destination] = addresses(packet)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not an IP packet"))?;
        match source {
            IpAddr::V4(source) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: index as libc::c_int,
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from(source).to_be() },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                send(&pair.ipv4, packet, destination, ControlMessage::Ipv4PacketInfo(&info))
            }
            IpAddr::V6(source) => {
                let ipi6_addr = libc::in6_addr { s6_addr: source.octets() };
                let info = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: index };
                let socket = pair.ipv6.as_ref().ok_or(io::ErrorKind::Unsupported)?;
                send(socket, packet, destination, ControlMessage::Ipv6PacketInfo(&info))
            }
        }
    }
}

impl Pair {
    fn open() -> io::Result<Self> {
        let ipv6 = match open(Domain::IPV6) {
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            socket => Some(socket?),
        };
        if let Some(ipv6) = &ipv6 {
            // Allows any source address, as `IP_HDRINCL` does for IPv4.
            nix::sys::socket::setsockopt(ipv6, Ipv6Freebind, &true)?;
        }
        Ok(Self { ipv4: open(Domain::IPV4)?, ipv6 })
    }
}

/// A socket that only sends: one of `IPPROTO_RAW` receives nothing, and packets to it include their
/// IP header.
fn open(domain: Domain) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)))?;
    // The loop must not wait for a slow link.
    socket.set_nonblocking(true)?;
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::SndBufForce, &SEND_BUFFER)?;
    Ok(socket)
}

/// Sends a packet routed by the source address in `routed_by`, and by its interface if it names one
/// (ip(7), ipv6(7): `IP_PKTINFO`, `IPV6_PKTINFO`).
fn send(
    socket: &Socket,
    packet: &[u8],
    destination: IpAddr,
    routed_by: ControlMessage<'_>,
) -> io::Result<()> {
    // A raw socket requires port zero.
    let to = SockaddrStorage::from(SocketAddr::new(destination, 0));
    let bytes = [IoSlice::new(packet)];
    sendmsg(socket.as_raw_fd(), &bytes, &[routed_by], MsgFlags::empty(), Some(&to))?;
    Ok(())
}

/// Source and destination address of an IP packet.
fn addresses(packet: &[u8]) -> Option<[IpAddr; 2]> {
    let ipv4 = |at| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    let ipv6 = |at| Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
    match packet.first()? >> 4 {
        4 => Some([ipv4(12)?.into(), ipv4(16)?.into()]),
        6 => Some([ipv6(8)?.into(), ipv6(24)?.into()]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_addresses_are_read_from_either_header() {
        let both = |texts: [&str; 2]| Some(texts.map(|text| text.parse().unwrap()));
        let mut ipv4 = [0; 20];
        ipv4[0] = 0x45;
        ipv4[12..].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(addresses(&ipv4), both(["10.0.0.1", "10.0.0.2"]));
        let mut ipv6 = [0; 40];
        (ipv6[0], ipv6[23], ipv6[39]) = (0x60, 2, 1);
        assert_eq!(addresses(&ipv6), both(["::2", "::1"]));
        assert_eq!(addresses(&ipv4[..19]), None);
        assert_eq!(addresses(&[]), None);
    }
}
