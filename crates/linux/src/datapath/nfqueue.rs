//! NFQUEUE: the kernel holds each packet until its verdict, and accepts it if no process listens.
//!
//! Read first: linux/netfilter/nfnetlink_queue.h; `netlink` (messages). Rules (`rules`) select the
//! packets.
//!
//! [`Nfqueue::receive`] reads a batch of messages in one system call, one packet a message.
//! Verdicts are collected until the next flush: one for each dropped packet, then one batch verdict
//! that accepts all others up to an identifier. The queue is configured with:
//! - GSO: super-packets stay whole, and checksums that are not filled in yet stay so.
//! - FAIL_OPEN and a short queue: packets pass when this process is too slow or stopped.

use super::buffers::{BUFFER, BufferPool, LARGE};
use super::inject::Injector;
use crate::kernel::netlink::{HEADER, Message, Netlink, attributes, u16_at, u32_at};
use crate::kernel::predecessor::when_free;
use airtcp_gateway::config::Mark;
use airtcp_gateway::packets::{Egress, Intercepted, PacketId, Verdict};
use airtcp_wire::Checksums;
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::setsockopt_impl;
use nix::sys::socket::{MsgFlags, MultiHeaders, SetSockOpt, recvmmsg, sockopt::RcvBufForce};
use nix::sys::time::TimeSpec;
use socket2::Socket;
use std::io::{self, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Most messages read in one system call.
const BATCH: usize = 128;
/// Buffers for messages at first; twice as many after a system call that filled all of them.
const FEW: usize = 4;
/// Size of the largest packet in the socket's receive buffer, including the kernel's bookkeeping.
const WAITING: usize = 70 * 1024;
/// Bounds on the size of the receive buffer.
const RECEIVE_BUFFER: std::ops::RangeInclusive<usize> = 1 << 20..=64 << 20;
/// Size of `struct nfgenmsg`.
const FAMILY_HEADER: usize = 4;
// linux/netfilter.h
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;

/// The socket option `NETLINK_NO_ENOBUFS`: a full receive buffer affects only the packet at hand,
/// which passes.
#[derive(Clone, Copy, Debug)]
struct NoEnobufs;
setsockopt_impl!(
    NoEnobufs,
    libc::SOL_NETLINK,
    libc::NETLINK_NO_ENOBUFS,
    bool,
    nix::sys::socket::sockopt::SetBool
);

/// Reason why the queue cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum NfqueueError {
    /// Another process listens to this queue.
    #[error(
        "queue {queue} is in use by another process (netlink port {port}): stop it, or choose another `queue`"
    )]
    InUse {
        /// Number of the queue.
        queue: u16,
        /// The listener's netlink port, usually its process id.
        port: u32,
    },
    /// A privilege is missing.
    #[error("no permission for {what}: run as root, or with CAP_NET_ADMIN and CAP_NET_RAW")]
    Permission {
        /// The operation, as a gerund.
        what: &'static str,
    },
    /// The kernel has no NFQUEUE.
    #[error(
        "this kernel has no NFQUEUE ({error}): load nfnetlink_queue, or use one built with CONFIG_NETFILTER_NETLINK_QUEUE"
    )]
    Absent {
        /// The kernel's error.
        error: io::Error,
    },
    /// Another error of the kernel.
    #[error("{what}: {error}")]
    Other {
        /// The operation, as a gerund.
        what: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
}

impl NfqueueError {
    /// Classifies an error of `what` on a queue that is not in use.
    fn new(what: &'static str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Permission { what },
            Some(libc::EPROTONOSUPPORT | libc::EINVAL) => Self::Absent { error },
            _ => Self::Other { what, error },
        }
    }
}

/// A queue of NFQUEUE for IPv4 and IPv6, and the sockets for injected packets. Waiting packets pass
/// when it is dropped.
#[derive(Debug)]
pub struct Nfqueue {
    netlink: Listener,
    queue: u16,
    buffers: Vec<ReceiveBuffer>,
    injector: Injector,
    /// Verdicts that wait for the flush.
    verdicts: Vec<u8>,
    /// The last packet accepted since the last flush.
    passed: Option<PacketId>,
}

impl Nfqueue {
    /// Listens to queue number `queue` in the calling thread's namespace. At most `length` packets
    /// wait; further ones pass without being seen. Packets injected to mobiles have the default
    /// [`Mark`].
    ///
    /// # Errors
    /// See [`NfqueueError`].
    pub fn open(queue: u16, length: u32) -> Result<Self, NfqueueError> {
        Self::claim(queue, length)?.listen()
    }

    /// As [`Nfqueue::open`], but packets pass without being seen until [`Claimed::listen`].
    ///
    /// # Errors
    /// See [`NfqueueError`].
    pub fn claim(queue: u16, length: u32) -> Result<Claimed, NfqueueError> {
        let netlink = Listener::open(queue, &configuration(queue))?;
        let buffer = (length as usize).saturating_mul(WAITING);
        let buffer = buffer.clamp(*RECEIVE_BUFFER.start(), *RECEIVE_BUFFER.end());
        RcvBufForce
            .set(&netlink.socket(), &buffer)
            .and_then(|()| NoEnobufs.set(&netlink.socket(), &true))
            .map_err(|errno| NfqueueError::new("setting the receive buffer", errno.into()))?;
        let injector = Injector::open()
            .map_err(|error| NfqueueError::new("sending packets (raw sockets)", error))?;
        let pool = Arc::<BufferPool>::default();
        let buffers = (0..FEW).map(|_| ReceiveBuffer::new(pool.clone())).collect();
        let queue = Self { netlink, queue, buffers, injector, verdicts: Vec::new(), passed: None };
        queue.set_mark(Mark::default())?;
        Ok(Claimed { queue, length })
    }

    /// Sets the mark of packets injected to mobiles.
    ///
    /// # Errors
    /// See [`NfqueueError`].
    pub fn set_mark(&self, mark: Mark) -> Result<(), NfqueueError> {
        self.injector
            .set_mark(mark)
            .map_err(|error| NfqueueError::new("marking packets (SO_MARK)", error))
    }

    /// Reads waiting messages without blocking; false if there were none.
    fn read(&mut self, batch: &mut Vec<Intercepted>) -> io::Result<bool> {
        let mut headers = MultiHeaders::<()>::preallocate(self.buffers.len(), None);
        let mut vectors: Vec<_> =
            self.buffers.iter_mut().map(|slot| [IoSliceMut::new(&mut slot.buffer)]).collect();
        let fd = self.netlink.socket().as_raw_fd();
        let read = recvmmsg(fd, &mut headers, vectors.iter_mut(), MsgFlags::MSG_DONTWAIT, None);
        let lengths: Vec<usize> = match read {
            Ok(messages) => messages.map(|message| message.bytes).collect(),
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        for (slot, &length) in self.buffers.iter_mut().zip(&lengths) {
            batch.extend(slot.take(length)?);
        }
        let count = self.buffers.len();
        if lengths.len() == count {
            let pool = self.buffers[0].pool.clone();
            self.buffers.resize_with((2 * count).min(BATCH), || ReceiveBuffer::new(pool.clone()));
        }
        Ok(!lengths.is_empty())
    }

    /// A message with a verdict.
    fn verdict(&self, kind: i32, id: PacketId, verdict: u32) -> Vec<u8> {
        let header = [verdict.to_be_bytes(), id.0.to_be_bytes()].concat();
        Message::netfilter(libc::NFNL_SUBSYS_QUEUE, kind, 0, libc::AF_UNSPEC, self.queue)
            .with(libc::NFQA_VERDICT_HDR as u16, &header)
            .finish()
    }

    /// Waits until there are packets, one of `wakes` is readable, or `timeout` is over (`None`:
    /// never), and appends waiting packets to `batch`, at most [`BATCH`] of them. Returns without
    /// looking at `wakes` while there are packets.
    ///
    /// # Errors
    /// The queue failed; the loop must end.
    pub fn receive(
        &mut self,
        wakes: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
        batch: &mut Vec<Intercepted>,
    ) -> io::Result<()> {
        if self.read(batch)? {
            return Ok(());
        }
        wait(wakes.iter().copied().chain([self.netlink.socket().as_fd()]), timeout)?;
        self.read(batch).map(drop)
    }

    /// Gives memory back that only many packets need.
    pub fn rest(&mut self) {
        self.buffers.truncate(FEW);
        self.buffers.shrink_to_fit();
        self.buffers[0].pool.clear();
    }

    /// Sets the verdict on a packet, in the order of arrival. Takes effect with [`Nfqueue::flush`].
    ///
    /// # Errors
    /// As [`Nfqueue::receive`].
    pub fn decide(&mut self, id: PacketId, verdict: Verdict) -> io::Result<()> {
        match verdict {
            Verdict::Pass => self.passed = Some(id),
            Verdict::Drop => self.decide_alone(id, verdict),
        }
        Ok(())
    }

    /// Sets the verdict on one packet, in any order: other packets keep waiting. Takes effect with
    /// [`Nfqueue::flush`].
    pub fn decide_alone(&mut self, id: PacketId, verdict: Verdict) {
        let verdict = match verdict {
            Verdict::Pass => NF_ACCEPT,
            Verdict::Drop => NF_DROP,
        };
        let message = self.verdict(libc::NFQNL_MSG_VERDICT, id, verdict);
        self.verdicts.extend(message);
    }

    /// Injects an IP packet with correct checksums, after all earlier verdicts.
    ///
    /// # Errors
    /// The packet could not be sent, at once or at all; others may.
    pub fn inject(&mut self, egress: Egress, packet: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.injector.send(egress, packet)
    }

    /// Sends all collected verdicts.
    ///
    /// # Errors
    /// As [`Nfqueue::receive`].
    pub fn flush(&mut self) -> io::Result<()> {
        if let Some(last) = self.passed.take() {
            // Accepts all up to `last` except dropped ones, whose verdicts precede this message.
            let message = self.verdict(libc::NFQNL_MSG_VERDICT_BATCH, last, NF_ACCEPT);
            self.verdicts.extend(message);
        }
        if !self.verdicts.is_empty() {
            let mut socket = self.netlink.socket();
            socket.write_all(&self.verdicts)?;
            self.verdicts.clear();
        }
        Ok(())
    }
}

/// A queue that this process owns, ready but for [`Claimed::listen`]: until then packets do not wait
/// for a process that is still busy with its start, but pass.
#[derive(Debug)]
pub struct Claimed {
    queue: Nfqueue,
    length: u32,
}

impl Claimed {
    /// As [`Nfqueue::set_mark`].
    ///
    /// # Errors
    /// See [`NfqueueError`].
    pub fn set_mark(&self, mark: Mark) -> Result<(), NfqueueError> {
        self.queue.set_mark(mark)
    }

    /// Begins to take packets.
    ///
    /// # Errors
    /// See [`NfqueueError`].
    pub fn listen(self) -> Result<Nfqueue, NfqueueError> {
        let Self { queue, length } = self;
        let set = config(queue.queue, libc::NLM_F_ACK)
            .with(libc::NFQA_CFG_QUEUE_MAXLEN as u16, &length.to_be_bytes())
            .finish();
        let answer = queue.netlink.netlink.ask(&set);
        answer.map_err(|error| NfqueueError::new("setting the length of a queue", error))?;
        Ok(queue)
    }
}

/// Waits until one of `fds` is readable, or `timeout` is over (`None`: never).
pub(crate) fn wait<'a>(
    fds: impl IntoIterator<Item = BorrowedFd<'a>>,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let mut fds: Vec<_> = fds.into_iter().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    match ppoll(&mut fds, timeout.map(TimeSpec::from), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The request that binds and configures the queue, whose length is 0.
fn configuration(queue: u16) -> Vec<u8> {
    // `struct nfqnl_msg_config_params`: bytes to copy of a packet, and the copy mode.
    let mut copy = u32::from(u16::MAX).to_be_bytes().to_vec();
    copy.push(libc::NFQNL_COPY_PACKET as u8);
    let flags = (libc::NFQA_CFG_F_FAIL_OPEN | libc::NFQA_CFG_F_GSO) as u32;
    bind(queue)
        .with(libc::NFQA_CFG_PARAMS as u16, &copy)
        .with(libc::NFQA_CFG_MASK as u16, &flags.to_be_bytes())
        .with(libc::NFQA_CFG_FLAGS as u16, &flags.to_be_bytes())
        .with(libc::NFQA_CFG_QUEUE_MAXLEN as u16, &0_u32.to_be_bytes())
        .finish()
}

/// The request that binds the queue, to be extended with its configuration.
fn bind(queue: u16) -> Message {
    command(libc::NFQNL_CFG_CMD_BIND, queue, libc::NLM_F_ACK)
}

fn command(command: i32, queue: u16, flags: i32) -> Message {
    // `struct nfqnl_msg_config_cmd`: command, padding, no family (a queue serves all).
    let command = [command as u8, 0, 0, 0];
    config(queue, flags).with(libc::NFQA_CFG_CMD as u16, &command)
}

/// A request about the configuration of the queue, to be extended.
fn config(queue: u16, flags: i32) -> Message {
    let kind = libc::NFQNL_MSG_CONFIG;
    Message::netfilter(libc::NFNL_SUBSYS_QUEUE, kind, flags, libc::AF_UNSPEC, queue)
}

/// A socket to which a queue is bound until this is dropped.
#[derive(Debug)]
struct Listener {
    netlink: Netlink,
    queue: u16,
}

impl Listener {
    /// Opens a socket and binds the queue to it with `message`.
    fn open(queue: u16, message: &[u8]) -> Result<Self, NfqueueError> {
        let error = |error| NfqueueError::new("listening to a queue of netfilter", error);
        let netlink = Netlink::open(libc::NETLINK_NETFILTER).map_err(error)?;
        let bind = || {
            netlink.ask(message).map_err(|refused| match listener(queue) {
                Some(port) => NfqueueError::InUse { queue, port },
                None => error(refused),
            })
        };
        when_free(bind, |error| matches!(error, NfqueueError::InUse { .. }))?;
        Ok(Self { netlink, queue })
    }

    fn socket(&self) -> &Socket {
        self.netlink.socket()
    }
}

impl Drop for Listener {
    /// Closing the socket does not suffice: a child that this process is just starting has a copy
    /// of it until it begins its program.
    fn drop(&mut self) {
        let message = command(libc::NFQNL_CFG_CMD_UNBIND, self.queue, 0).finish();
        // The kernel obeys before this returns; if not, the queue ends with the socket.
        let _ = self.socket().write_all(&message);
    }
}

/// A queue that this process owns, but to which no packet is sent; released on drop.
#[derive(Debug)]
pub struct Reserved(#[expect(dead_code, reason = "it is held, not used")] Listener);

impl Reserved {
    /// Reserves queue number `queue` in the calling thread's namespace.
    ///
    /// # Errors
    /// See [`NfqueueError`].
    pub fn take(queue: u16) -> Result<Self, NfqueueError> {
        Listener::open(queue, &bind(queue).finish()).map(Self)
    }
}

/// Reason why queue number `queue` of this thread's namespace could not be opened now: a process
/// listens to it. `None`: there is none that this user can see. Opens nothing.
pub fn in_use(queue: u16) -> Option<NfqueueError> {
    listener(queue).map(|port| NfqueueError::InUse { queue, port })
}

/// The netlink port of the process that listens to `queue`, if one does. The kernel does not say
/// so: it returns EPERM, as without the privilege.
fn listener(queue: u16) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").ok()?;
    listed(&table, queue)
}

/// Finds the listener in the kernel's table. A line has the queue's number, its listener's port,
/// and counters.
fn listed(table: &str, queue: u16) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let number: u16 = fields.next()?.parse().ok()?;
        fields.next()?.parse().ok().filter(|_| number == queue)
    })
}

/// A pooled buffer into which a message is read.
#[derive(Debug)]
struct ReceiveBuffer {
    buffer: Box<[u8]>,
    pool: Arc<BufferPool>,
}

impl ReceiveBuffer {
    fn new(pool: Arc<BufferPool>) -> Self {
        Self { buffer: pool.take(), pool }
    }

    /// The packet in the message of `length` bytes that was read; `None` if it has none.
    fn take(&mut self, length: usize) -> io::Result<Option<Intercepted>> {
        let message = &self.buffer[..length.min(BUFFER)];
        let Some(QueuedPacket { id, payload, input, output, checksums }) = header(message)? else {
            return Ok(None);
        };
        let packet = if payload.len() < LARGE {
            Bytes::copy_from_slice(payload)
        } else {
            let start = payload.as_ptr().addr() - message.as_ptr().addr();
            let range = start..start + payload.len();
            let buffer = std::mem::replace(&mut self.buffer, self.pool.take());
            self.pool.wrap(buffer, range)
        };
        let (id, datagram, silence) = (Some(id), None, None);
        let is_closing = false;
        Ok(Some(Intercepted {
            id,
            packet,
            input,
            output,
            checksums,
            datagram,
            silence,
            is_closing,
        }))
    }
}

/// Fields of a message with a packet.
#[derive(Debug, PartialEq, Eq)]
struct QueuedPacket<'a> {
    id: PacketId,
    payload: &'a [u8],
    input: Option<u32>,
    output: Option<u32>,
    checksums: Checksums,
}

/// Parses a message; `None` if it has no packet.
fn header(message: &[u8]) -> io::Result<Option<QueuedPacket<'_>>> {
    let kind = u16_at(message, 4).map(i32::from);
    if kind == Some(libc::NLMSG_ERROR) {
        let errno = u32_at(message, HEADER).map_or(0, |errno| -(errno as i32));
        // ENOENT: the packets of a verdict no longer wait, for example because their interface
        // went down.
        return match errno {
            0 | libc::ENOENT => Ok(None),
            errno => Err(io::Error::from_raw_os_error(errno)),
        };
    }
    if kind != Some(libc::NFNL_SUBSYS_QUEUE << 8 | libc::NFQNL_MSG_PACKET) {
        return Ok(None);
    }
    let body = message.get(HEADER + FAMILY_HEADER..).unwrap_or_default();
    let word = |value: &[u8]| Some(u32::from_be_bytes(value.get(..4)?.try_into().ok()?));
    let (mut id, mut payload, mut flags) = (None, &[][..], 0);
    let (mut input, mut output) = (None, None);
    for (kind, value) in attributes(body) {
        match i32::from(kind) {
            libc::NFQA_PACKET_HDR => id = word(value).map(PacketId),
            libc::NFQA_PAYLOAD => payload = value,
            libc::NFQA_SKB_INFO => flags = word(value).unwrap_or(0) as i32,
            libc::NFQA_IFINDEX_INDEV => input = word(value),
            libc::NFQA_IFINDEX_OUTDEV => output = word(value),
            _ => {}
        }
    }
    // Without the flag, the card or the kernel has verified them, or they are not filled in yet.
    let verify = flags & libc::NFQA_SKB_CSUM_NOTVERIFIED != 0;
    Ok(id.map(|id| QueuedPacket {
        id,
        payload,
        input,
        output,
        checksums: if verify { Checksums::Verify } else { Checksums::Ignore },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as the kernel sends it.
    fn message(id: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
        let hdr = [&id.to_be_bytes()[..], &[8, 0, 2]].concat();
        Message::netfilter(libc::NFNL_SUBSYS_QUEUE, libc::NFQNL_MSG_PACKET, 0, libc::AF_INET, 7)
            .with(libc::NFQA_PACKET_HDR as u16, &hdr)
            .with(libc::NFQA_IFINDEX_INDEV as u16, &3_u32.to_be_bytes())
            .with(libc::NFQA_IFINDEX_OUTDEV as u16, &4_u32.to_be_bytes())
            .with(libc::NFQA_SKB_INFO as u16, &flags.to_be_bytes())
            .with(libc::NFQA_PAYLOAD as u16, payload)
            .finish()
    }

    fn refusal(errno: i32) -> Vec<u8> {
        Message::new(libc::NLMSG_ERROR as u16, 0, &(-errno).to_ne_bytes()).finish()
    }

    /// A slot into which `message` was read.
    fn slot(message: &[u8]) -> ReceiveBuffer {
        let mut slot = ReceiveBuffer::new(Arc::default());
        slot.buffer[..message.len()].copy_from_slice(message);
        slot
    }

    #[test]
    fn a_packet_has_its_identifier_interfaces_and_bytes() {
        let message = message(9, 0, b"packet");
        let wanted = QueuedPacket {
            id: PacketId(9),
            payload: b"packet",
            input: Some(3),
            output: Some(4),
            checksums: Checksums::Ignore,
        };
        assert_eq!(header(&message).unwrap(), Some(wanted));
    }

    #[test]
    fn checksums_are_verified_only_where_nobody_did_and_they_are_made() {
        let of = |flags| header(&message(1, flags as u32, &[])).unwrap().unwrap().checksums;
        assert_eq!(of(libc::NFQA_SKB_CSUM_NOTVERIFIED), Checksums::Verify);
        assert_eq!(of(libc::NFQA_SKB_CSUMNOTREADY | libc::NFQA_SKB_GSO), Checksums::Ignore);
        assert_eq!(of(0), Checksums::Ignore);
    }

    #[test]
    fn packets_that_are_gone_are_no_error_and_other_refusals_are() {
        assert_eq!(header(&refusal(libc::ENOENT)).unwrap(), None);
        assert_eq!(header(&refusal(0)).unwrap(), None);
        let error = header(&refusal(libc::ENODEV)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn a_message_cut_short_is_no_packet() {
        let whole = message(9, 0, b"a packet");
        for length in 0..whole.len() {
            // Behind the identifier, what is cut is missing.
            let found = header(&whole[..length]).unwrap();
            assert!(found.is_none_or(|found| found.payload.is_empty()), "{length}");
        }
    }

    #[test]
    fn a_large_packet_stays_in_its_buffer_which_comes_back() {
        let message = message(1, 0, &[7; LARGE]);
        let mut slot = slot(&message);
        let before = slot.buffer.as_ptr();
        let packet = slot.take(message.len()).unwrap().unwrap().packet;
        assert_eq!(packet, [7; LARGE].as_slice());
        assert_eq!(packet.as_ptr(), before.wrapping_add(message.len() - LARGE));
        drop(packet);
        let again = slot.pool.take();
        assert_eq!(again.as_ptr(), before);
    }

    #[test]
    fn a_buffer_that_is_kept_is_not_written_again() {
        let message = message(1, 0, &[7; LARGE]);
        let mut slot = slot(&message);
        let packet = slot.take(message.len()).unwrap().unwrap().packet;
        assert_eq!(slot.buffer.len(), BUFFER);
        slot.buffer.fill(1);
        assert!(packet.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn a_small_packet_takes_no_more_than_its_size() {
        let message = message(1, 0, &[7; 100]);
        let mut slot = slot(&message);
        let before = slot.buffer.as_ptr();
        let packet = slot.take(message.len()).unwrap().unwrap().packet;
        assert_eq!(packet, [7; 100].as_slice());
        assert_eq!(slot.buffer.as_ptr(), before);
    }

    #[test]
    fn the_listener_of_a_queue_is_found_in_the_kernels_table() {
        let table =
            "    7  4711     0 2 65531     0     0        0  1\n   17   815 0 2 1 0 0 0 1\n";
        assert_eq!((listed(table, 7), listed(table, 17)), (Some(4711), Some(815)));
        assert_eq!(listed(table, 1), None);
    }
}
