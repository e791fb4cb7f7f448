//! The kernel's state of a connection.

use nix::sys::socket::sockopt::GetStruct;

/// The fields of TCP_INFO (tcp(7)) that the tests read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpInfo;
nix::getsockopt_impl!(TcpInfo, libc::IPPROTO_TCP, libc::TCP_INFO, Info, GetStruct<Info>);

/// The beginning of `struct tcp_info` (linux/tcp.h), which is the same in all kernels: `libc`'s is
/// longer than that of Linux 6.12, and `nix` wants to be given as much as it has room for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Info {
    _state: u8,
    pub(crate) ca_state: u8,
    _retransmits_to_app_limited: [u8; 6],
    _rto_to_snd_mss: [u32; 3],
    pub(crate) rcv_mss: u32,
    pub(crate) unacked: u32,
    _sacked_to_rttvar: [u32; 12],
    pub(crate) snd_ssthresh: u32,
    pub(crate) snd_cwnd: u32,
}
