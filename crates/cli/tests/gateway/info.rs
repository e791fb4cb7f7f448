//! What the kernel tells about a connection.

use nix::sys::socket::sockopt::GetStruct;

/// TCP_INFO (tcp(7)).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpInfo;
nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    libc::tcp_info,
    GetStruct<libc::tcp_info>
);
