//! Congestion controls of the kernel.

use airtcp_testing::skip;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use std::net::TcpStream;

/// True if the kernel has a congestion control; prints a note if not.
pub(crate) fn has_congestion_control(name: &str) -> bool {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let has = known.is_ok_and(|known| known.split_whitespace().any(|known| known == name));
    if !has {
        skip(&format!("the congestion control {name}"));
    }
    has
}

/// Chooses a connection's congestion control.
pub(crate) fn set_congestion_control(socket: &TcpStream, name: &str) {
    setsockopt(socket, TcpCongestion, &name.into())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
}
