//! Packets of the gateway's own making, by raw sockets.
//!
//! Read first: raw(7), and "Connection tracking" in the module above. They leave through the OUTPUT
//! hook, so they never come back to the queue, which is in FORWARD.

use airtcp_edge::Side;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Firewall mark of packets to a mobile, by which the rules exempt them from connection tracking.
pub(super) const MARK: u32 = 0x6169_7274;
/// Room for packets that wait in queues of the link, in bytes.
const SEND_BUFFER: usize = 8 << 20;

/// Sockets for packets with their IP header, one a side and IP version. A kernel without IPv6 has
/// none for it.
#[derive(Debug)]
pub(in crate::gateway) struct Injector {
    to_fixed: Pair,
    to_mobile: Pair,
}

/// Sockets of both IP versions.
#[derive(Debug)]
struct Pair {
    ipv4: Socket,
    ipv6: Option<Socket>,
}

impl Injector {
    pub(in crate::gateway) fn open() -> io::Result<Self> {
        Ok(Self { to_fixed: Pair::open(None)?, to_mobile: Pair::open(Some(MARK))? })
    }

    /// Sends an IP packet to its destination address.
    pub(in crate::gateway) fn send(&self, to: Side, packet: &[u8]) -> io::Result<()> {
        let pair = match to {
            Side::Fixed => &self.to_fixed,
            Side::Mobile => &self.to_mobile,
        };
        let destination = destination(packet)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not an IP packet"))?;
        let socket = match destination {
            IpAddr::V4(_) => &pair.ipv4,
            IpAddr::V6(_) => pair.ipv6.as_ref().ok_or(io::ErrorKind::Unsupported)?,
        };
        // A raw socket wants port zero.
        socket.send_to(packet, &SockAddr::from(SocketAddr::new(destination, 0))).map(drop)
    }
}

impl Pair {
    fn open(mark: Option<u32>) -> io::Result<Self> {
        let ipv6 = match open(Domain::IPV6, mark) {
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            socket => Some(socket?),
        };
        Ok(Self { ipv4: open(Domain::IPV4, mark)?, ipv6 })
    }
}

/// A socket that only sends: of `IPPROTO_RAW` nothing is received, and its packets have their IP
/// header.
fn open(domain: Domain, mark: Option<u32>) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)))?;
    // The loop must not wait for a slow link.
    socket.set_nonblocking(true)?;
    if let Some(mark) = mark {
        socket.set_mark(mark)?;
    }
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::SndBufForce, &SEND_BUFFER)?;
    Ok(socket)
}

/// Where an IP packet goes.
pub(super) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?).into()),
        6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_destination_is_read_from_either_header() {
        let mut ipv4 = [0; 20];
        ipv4[0] = 0x45;
        ipv4[16..].copy_from_slice(&[10, 0, 0, 2]);
        assert_eq!(destination(&ipv4), Some("10.0.0.2".parse().unwrap()));
        let mut ipv6 = [0; 40];
        (ipv6[0], ipv6[39]) = (0x60, 1);
        assert_eq!(destination(&ipv6), Some("::1".parse().unwrap()));
        assert_eq!(destination(&ipv4[..19]), None);
        assert_eq!(destination(&[]), None);
    }
}
