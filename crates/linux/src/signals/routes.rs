//! Routes over an interface to networks beyond its own.
//!
//! Read first: rtnetlink(7) (`RTM_GETROUTE`). When an interface goes down, the kernel removes its
//! IPv4 routes without a message for each, so routes must be queried.

use crate::kernel::netlink::{Message, Netlink, u32_at, value_of};
use nix::sys::socket::SetSockOpt;
use std::io;
use std::ops::BitOr;

/// The socket option NETLINK_GET_STRICT_CHK: the kernel filters a dump by the request's attributes.
#[derive(Clone, Copy, Debug)]
struct StrictCheck;

nix::setsockopt_impl!(
    StrictCheck,
    libc::SOL_NETLINK,
    libc::NETLINK_GET_STRICT_CHK,
    bool,
    nix::sys::socket::sockopt::SetBool
);

/// IP versions for which there are routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Routed {
    pub(super) ipv4: bool,
    pub(super) ipv6: bool,
}

impl Routed {
    /// No routes.
    pub(super) const NONE: Self = Self { ipv4: false, ipv6: false };

    /// True if it includes all of `other`.
    pub(super) fn covers(self, other: Self) -> bool {
        self | other == self
    }
}

impl BitOr for Routed {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self { ipv4: self.ipv4 || other.ipv4, ipv6: self.ipv6 || other.ipv6 }
    }
}

/// The interface of the route in a message of rtnetlink; `None` if it has none or several.
///
/// The attributes follow `struct rtmsg`: family (1), lengths of destination and source (2), TOS
/// (1), table (1), protocol (1), scope (1), type (1), flags (4).
pub(super) fn interface(body: &[u8]) -> Option<u32> {
    u32_at(value_of(body.get(12..)?, libc::RTA_OIF)?, 0)
}

/// Queries the kernel's routes.
#[derive(Debug)]
pub(super) struct Routes(Netlink);

impl Routes {
    pub(super) fn open() -> io::Result<Self> {
        let netlink = Netlink::open(libc::NETLINK_ROUTE)?;
        // Without it the kernel ignores the interface and returns all routes.
        StrictCheck.set(&netlink.socket(), &true)?;
        Ok(Self(netlink))
    }

    /// Unicast routes over the interface with this index, in any table. Excludes routes that the
    /// kernel sets for the networks of its addresses, which come back with the interface.
    pub(super) fn over(&self, index: u32) -> io::Result<Routed> {
        let mut header = [0; 12];
        header[7] = libc::RTN_UNICAST;
        let request = Message::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP, &header)
            .with(libc::RTA_OIF, &index.to_ne_bytes());
        let routes = self.0.dump(&request.finish())?;
        Ok(routes.iter().map(|(_, body)| routed(body)).fold(Routed::NONE, BitOr::bitor))
    }
}

fn routed(body: &[u8]) -> Routed {
    let family = body.first().map(|&family| i32::from(family));
    let is_set = body.get(5).is_some_and(|&protocol| protocol != libc::RTPROT_KERNEL);
    Routed {
        ipv4: is_set && family == Some(libc::AF_INET),
        ipv6: is_set && family == Some(libc::AF_INET6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(family: i32, protocol: u8) -> Vec<u8> {
        let header = [family as u8, 0, 0, 0, 254, protocol, 0, libc::RTN_UNICAST, 0, 0, 0, 0];
        let message =
            Message::new(libc::RTM_NEWROUTE, 0, &header).with(libc::RTA_OIF, &7_u32.to_ne_bytes());
        message.finish()[crate::kernel::netlink::HEADER..].to_vec()
    }

    #[test]
    fn routes_are_read_as_the_kernel_writes_them() {
        let dhcp = body(libc::AF_INET, 16);
        assert_eq!(interface(&dhcp), Some(7));
        for length in 0..dhcp.len() {
            assert_eq!(interface(&dhcp[..length]), None);
        }
        assert_eq!(routed(&dhcp), Routed { ipv4: true, ipv6: false });
        assert_eq!(routed(&body(libc::AF_INET6, 9)), Routed { ipv4: false, ipv6: true });
        let own = body(libc::AF_INET, libc::RTPROT_KERNEL);
        assert_eq!(routed(&own), Routed::NONE, "that to its own network");
        assert_eq!(routed(&[]), Routed::NONE);
    }
}
