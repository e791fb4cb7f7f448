//! Which data arrive: their headers, by packet sockets.
//!
//! Read first: packet(7), bpf(4). The kernel gives a copy of each packet that a filter takes, cut
//! off behind its headers, before TCP sees the packet. So data reach the tap before the ACKs that
//! they cause reach the queue. That holds for sockets of all protocols: those of one have got
//! packets after TCP (seen on Linux 6.18). The filter takes what is addressed to this host, came in
//! by one interface, is no fragment, and has payload or ends or begins a connection; pure ACKs it
//! leaves out.

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

/// Bytes that are enough for the headers of IPv6 and TCP with all their options.
const HEADERS: u32 = 128;
/// Room for packets to be read. Each takes what its data take, as long as it waits.
const BUFFER: usize = 16 << 20;
/// Packets read at most before the ACKs get their turn.
const MOST: usize = 4096;

/// A tap on one interface.
#[derive(Debug)]
pub struct Tap {
    /// IPv4 and IPv6.
    sockets: [Socket; 2],
    mtu: u32,
}

impl Tap {
    /// Listens on the interface with this index, in the calling thread's namespace.
    ///
    /// # Errors
    /// There is no such interface, or no right to packet sockets (CAP_NET_RAW).
    pub fn open(interface: u32) -> io::Result<Self> {
        let ipv4 = open(&filter(libc::ETH_P_IP, interface, &IPV4))?;
        let ipv6 = open(&filter(libc::ETH_P_IPV6, interface, &IPV6))?;
        Ok(Self { sockets: [ipv4, ipv6], mtu: mtu(interface)? })
    }

    /// What becomes readable when data have arrived.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        self.sockets.each_ref().map(AsFd::as_fd)
    }

    /// Reads what is there. `each` gets the headers, when they arrived, and the largest payload of
    /// a segment that is not merged with others.
    ///
    /// # Errors
    /// The sockets are broken.
    pub fn read(&self, mut each: impl FnMut(Instant, &Headers, u32)) -> io::Result<()> {
        let mut buffer = [0; HEADERS as usize];
        let mut control = cmsg_space!(TimeSpec);
        // What is read together need not have arrived together. The kernel stamps packets by the
        // clock that is set.
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

/// linux/if_packet.h
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// What this host sends is not taken (Linux 4.20).
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
    // What came before the filter.
    while recv(socket.as_raw_fd(), &mut [0], MsgFlags::MSG_DONTWAIT).is_ok() {}
    Ok(socket)
}

/// The largest packet of an interface.
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
/// Where the kernel's own fields begin, as a negative offset.
const KERNEL: u32 = (-0x1000_i32).cast_unsigned();
const PROTOCOL: u32 = KERNEL;
const PACKET_TYPE: u32 = KERNEL + 4;
const INTERFACE: u32 = KERNEL + 8;

const TCP: u32 = 6;
/// FIN, SYN and RST.
const ENDS: u32 = 0x07;

/// An instruction, and where it leads if it is a question.
#[derive(Clone, Copy)]
enum Step {
    Do(u16, u32),
    /// Refused unless it holds.
    Need(u16, u32),
    /// Refused if it holds.
    Refuse(u16, u32),
    /// Taken if it holds.
    Take(u16, u32),
}
use Step::{Do, Need, Refuse, Take};

const IPV4: [Step; 13] = [
    Do(LD_BYTE, 9),
    Need(IF_EQUAL, TCP),
    // More fragments, or an offset.
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

/// The filter: the packet is of this version of IP, for this host, and came in there; then the
/// steps of its version, which leave its length, and in X the length of its headers.
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
            // Behind the steps come "take" and "refuse".
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
