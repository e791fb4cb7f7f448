//! Headers of arriving data, by packet sockets.
//!
//! Read first: packet(7), bpf(4). The kernel copies the headers of each packet that a filter
//! accepts, before TCP sees the packet. So data reach the tap before the ACKs that they cause reach
//! the queue. That holds for sockets of all protocols (`ETH_P_ALL`); a socket of one protocol gets
//! packets after TCP (seen on Linux 6.18). The filter accepts packets that are addressed to this
//! host, arrived by one interface, are not fragments, and have payload or begin or end a
//! connection. It rejects pure ACKs.

use crate::kernel::clock::now;
use crate::kernel::netlink::{Message, Netlink, u32_at, value_of};
use airtcp_core::Instant;
use airtcp_wire::{Headers, decode_headers};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns, SetBool};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg, setsockopt};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Bytes copied of a packet: enough for the headers of IPv6 and TCP with all options.
const HEADERS: u32 = 128;
/// Receive buffer in bytes. A waiting packet takes its full size.
const BUFFER: usize = 16 << 20;
/// Most packets read before ACKs are handled.
const MOST: usize = 4096;

/// A tap on one interface.
#[derive(Debug)]
pub struct Tap {
    /// Sockets for IPv4 and IPv6.
    sockets: [Socket; 2],
    mtu: u32,
}

impl Tap {
    /// Listens on the interface with this index, in the calling thread's namespace.
    ///
    /// # Errors
    /// The interface does not exist, or CAP_NET_RAW is missing.
    pub fn open(interface: u32) -> io::Result<Self> {
        let ipv4 = open(&filter(libc::ETH_P_IP, interface, &IPV4))?;
        let ipv6 = open(&filter(libc::ETH_P_IPV6, interface, &IPV6))?;
        Ok(Self { sockets: [ipv4, ipv6], mtu: mtu(interface)? })
    }

    /// Descriptors of which one is readable when data have arrived.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        self.sockets.each_ref().map(AsFd::as_fd)
    }

    /// Reads the waiting packets. `each` gets the time of arrival, the headers, and the largest
    /// payload of a segment that is not merged with others.
    ///
    /// # Errors
    /// The sockets failed.
    pub fn read(&self, mut each: impl FnMut(Instant, &Headers, u32)) -> io::Result<()> {
        let mut buffer = [0; HEADERS as usize];
        let mut control = cmsg_space!(TimeSpec);
        // Packets read together need not have arrived together. The kernel timestamps them with
        // CLOCK_REALTIME.
        let (now, set) = (now(), clock_gettime(ClockId::CLOCK_REALTIME)?);
        for socket in &self.sockets {
            for _ in 0..MOST {
                let mut bytes = [IoSliceMut::new(&mut buffer)];
                let (fd, control) = (socket.as_raw_fd(), Some(control.as_mut_slice()));
                let message = match recvmsg::<()>(fd, &mut bytes, control, MsgFlags::MSG_DONTWAIT) {
                    Ok(message) => message,
                    Err(Errno::EAGAIN) => break,
                    // The interface was taken down, and may come back.
                    Err(Errno::EINTR | Errno::ENETDOWN) => continue,
                    Err(errno) => return Err(errno.into()),
                };
                let stamp = message.cmsgs()?.find_map(|message| match message {
                    ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
                    _ => None,
                });
                let age = stamp.map_or(0, |stamp| (set - stamp).num_nanoseconds().max(0));
                let arrived = Instant::from_nanos(now.as_nanos().saturating_sub(age as u64));
                let length = message.bytes;
                if let Ok(headers) = decode_headers(&buffer[..length]) {
                    each(arrived, &headers, self.largest_payload(&headers));
                }
            }
        }
        Ok(())
    }

    fn largest_payload(&self, headers: &Headers) -> u32 {
        let segment = &headers.segment;
        let ip = if segment.flow.src.ip.is_ipv4() { 20 } else { 40 };
        let options = segment.options.encoded_len() as u32;
        self.mtu.saturating_sub(ip + 20 + options).max(1)
    }
}

/// Number of the socket option in linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Socket option that leaves out packets sent by this host (Linux 4.20).
#[derive(Clone, Copy, Debug)]
struct IgnoreOutgoing;
nix::setsockopt_impl!(IgnoreOutgoing, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, bool, SetBool);

fn open(filter: &[SockFilter]) -> io::Result<Socket> {
    let protocol = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol))?;
    socket.attach_filter(filter)?;
    setsockopt(&socket, IgnoreOutgoing, &true)?;
    setsockopt(&socket, RcvBufForce, &BUFFER)?;
    setsockopt(&socket, ReceiveTimestampns, &true)?;
    // Discards packets that arrived before the filter was attached.
    while recv(socket.as_raw_fd(), &mut [0], MsgFlags::MSG_DONTWAIT).is_ok() {}
    Ok(socket)
}

/// MTU of an interface.
fn mtu(interface: u32) -> io::Result<u32> {
    /// Size of `struct ifinfomsg`, whose third word is the index.
    const LENGTH: usize = 16;
    let mut header = [0; LENGTH];
    header[4..8].copy_from_slice(&interface.to_ne_bytes());
    let request = Message::new(libc::RTM_GETLINK, 0, &header).finish();
    let body = Netlink::open(libc::NETLINK_ROUTE)?.ask(&request)?;
    value_of(body.get(LENGTH..).unwrap_or_default(), libc::IFLA_MTU)
        .and_then(|mtu| u32_at(mtu, 0))
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

// linux/filter.h, linux/bpf_common.h
const LD_WORD: u16 = 0x20;
const LD_HALF: u16 = 0x28;
const LD_BYTE: u16 = 0x30;
const LD_BYTE_AT_X: u16 = 0x50;
const LDX_HEADER_LENGTH: u16 = 0xb1;
const AND: u16 = 0x54;
const SHIFT_RIGHT: u16 = 0x74;
const ADD_X: u16 = 0x0c;
const TO_X: u16 = 0x07;
const IF_EQUAL: u16 = 0x15;
const IF_GREATER_X: u16 = 0x2d;
const IF_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
/// Negative offset of the kernel's ancillary data (`SKF_AD_OFF`).
const KERNEL: u32 = (-0x1000_i32).cast_unsigned();
const PROTOCOL: u32 = KERNEL;
const PACKET_TYPE: u32 = KERNEL + 4;
const INTERFACE: u32 = KERNEL + 8;

const TCP: u32 = 6;
/// The flags FIN, SYN and RST.
const ENDS: u32 = 0x07;

/// An instruction of the filter.
#[derive(Clone, Copy)]
enum Step {
    Do(u16, u32),
    /// Rejects the packet unless the condition holds.
    Need(u16, u32),
    /// Rejects the packet if the condition holds.
    Refuse(u16, u32),
    /// Accepts the packet if the condition holds.
    Take(u16, u32),
}
use Step::{Do, Need, Refuse, Take};

const IPV4: [Step; 13] = [
    Do(LD_BYTE, 9),
    Need(IF_EQUAL, TCP),
    // The flag "more fragments", or an offset.
    Do(LD_HALF, 6),
    Refuse(IF_SET, 0x3fff),
    Do(LDX_HEADER_LENGTH, 0),
    Do(LD_BYTE_AT_X, 13),
    Take(IF_SET, ENDS),
    Do(LD_BYTE_AT_X, 12),
    Do(AND, 0xf0),
    Do(SHIFT_RIGHT, 2),
    Do(ADD_X, 0),
    Do(TO_X, 0),
    Do(LD_HALF, 2),
];

const IPV6: [Step; 9] = [
    Do(LD_BYTE, 6),
    Need(IF_EQUAL, TCP),
    Do(LD_BYTE, 40 + 13),
    Take(IF_SET, ENDS),
    Do(LD_BYTE, 40 + 12),
    Do(AND, 0xf0),
    Do(SHIFT_RIGHT, 2),
    Do(TO_X, 0),
    Do(LD_HALF, 4),
];

/// The filter. It first checks the IP version, the destination and the interface. Then follow the
/// steps of the IP version, which load the packet's length into A and that of its headers into X.
fn filter(version: i32, interface: u32, steps: &[Step]) -> Vec<SockFilter> {
    let here = [
        Do(LD_WORD, PROTOCOL),
        Need(IF_EQUAL, version as u32),
        Do(LD_WORD, PACKET_TYPE),
        Need(IF_EQUAL, u32::from(libc::PACKET_HOST)),
        Do(LD_WORD, INTERFACE),
        Need(IF_EQUAL, interface),
    ];
    let all = [&here, steps, &[Need(IF_GREATER_X, 0)]].concat();
    let mut program: Vec<_> = (0..)
        .zip(&all)
        .map(|(at, step)| {
            // The steps are followed by "accept" and "reject".
            let take = (all.len() - at - 1) as u8;
            let refuse = take + 1;
            match *step {
                Do(code, k) => SockFilter::new(code, 0, 0, k),
                Need(code, k) => SockFilter::new(code, 0, refuse, k),
                Refuse(code, k) => SockFilter::new(code, refuse, 0, k),
                Take(code, k) => SockFilter::new(code, take, 0, k),
            }
        })
        .collect();
    program.push(SockFilter::new(RETURN, 0, 0, HEADERS));
    program.push(SockFilter::new(RETURN, 0, 0, 0));
    program
}
