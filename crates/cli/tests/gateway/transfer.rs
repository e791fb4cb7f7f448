//! A transfer over kernel TCP: one host sends, the other checks what comes and notes when.

use crate::congestion::set_congestion_control;
use crate::host::Host;
use crate::info::{Info, TcpInfo};
use crate::lateness::{self, Wait};
use airtcp_core::{Addr, Flow};
use nix::sys::socket::sockopt::{SetStruct, TcpRepair};
use nix::sys::socket::{getsockopt, setsockopt};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest wait for anything that must happen, unless another bound is said.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest time a transfer may take to end.
const END: Duration = Duration::from_secs(120);

/// TCP_REPAIR_QUEUE: which queue [`TcpQueueSeq`] is about.
#[derive(Clone, Copy, Debug)]
struct TcpRepairQueue;
nix::setsockopt_impl!(
    TcpRepairQueue,
    libc::IPPROTO_TCP,
    libc::TCP_REPAIR_QUEUE,
    u32,
    SetStruct<u32>
);
/// The queue of what is sent, for [`TcpRepairQueue`] (linux/tcp.h, TCP_SEND_QUEUE).
const SEND_QUEUE: u32 = 2;

/// TCP_QUEUE_SEQ: the next sequence number.
#[derive(Clone, Copy, Debug)]
struct TcpQueueSeq;
nix::setsockopt_impl!(TcpQueueSeq, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, u32, SetStruct<u32>);

/// The data to be sent, and the way they are sent.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Congestion control of the sender.
    pub(crate) congestion: &'static str,
    /// Bytes to send; `None`: until the transfer is finished.
    pub(crate) bytes: Option<u64>,
    /// The sender opens the connection, with this sequence number on its SYN. Otherwise the
    /// receiver opens it.
    pub(crate) first_sequence: Option<u32>,
    /// Bytes that may be sent before [`Transfer::allow`] permits more; `None`: all.
    pub(crate) allowed: Option<u64>,
    /// By Multipath TCP (RFC 8684).
    pub(crate) is_multipath: bool,
}

impl Load {
    /// Without end, under this congestion control.
    pub(crate) fn endless(congestion: &'static str) -> Self {
        Self { congestion, bytes: None, first_sequence: None, allowed: None, is_multipath: false }
    }

    /// So much, under the kernel's default for namespaces.
    pub(crate) fn of(bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..Self::endless("cubic") }
    }
}

/// Bytes that the receiver has received, with their times.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Times, each with the total of bytes received by then.
    log: Mutex<Vec<(Instant, u64)>>,
    changed: Condvar,
}

impl Arrivals {
    pub(crate) fn note(&self, bytes: u64) {
        self.note_at(Instant::now(), self.last().map_or(0, |(_, total)| total) + bytes);
    }

    /// So many bytes in all were there then.
    pub(crate) fn note_at(&self, at: Instant, total: u64) {
        self.log.lock().unwrap().push((at, total));
        self.changed.notify_all();
    }

    /// Arrival of the first byte.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.log.lock().unwrap().first().map(|&(at, _)| at)
    }

    /// The newest entry.
    pub(crate) fn last(&self) -> Option<(Instant, u64)> {
        self.log.lock().unwrap().last().copied()
    }

    /// Time at which so many bytes had arrived, if they have.
    pub(crate) fn when(&self, bytes: u64) -> Option<Instant> {
        let log = self.log.lock().unwrap();
        log.iter().find(|&&(_, total)| total >= bytes).map(|&(at, _)| at)
    }

    /// From `up` to the first second that brought nine tenths of what a second did in the last two
    /// before `down`; `None` if there was none.
    pub(crate) fn recovery(&self, down: Instant, up: Instant) -> Option<Duration> {
        const SECOND: Duration = Duration::from_secs(1);
        const BASE: Duration = Duration::from_secs(2);
        let log = self.log.lock().unwrap();
        // Bytes that had arrived by a time.
        let at = |time| match log.partition_point(|&(at, _)| at <= time) {
            0 => 0,
            entries => log[entries - 1].1,
        };
        let before = (at(down) - at(down - BASE)) / BASE.as_secs();
        let later = log.iter().map(|&(at, _)| at).filter(|&at| at > up);
        let mut begins = std::iter::once(up).chain(later);
        let is_as_before = |&begin: &Instant| 10 * (at(begin + SECOND) - at(begin)) >= 9 * before;
        // Without a rate before, there is none to return to.
        (before > 0).then(|| begins.find(is_as_before)).flatten().map(|begin| begin - up)
    }

    /// From `up` to the first new byte; `None` when none comes within `patience`.
    pub(crate) fn dead_time(&self, up: Instant, patience: Duration) -> Option<Wait> {
        let at = self.wait(patience, |at, _| at > up)?;
        Some(Wait { length: at - up, allowance: lateness::allowance(up) })
    }

    /// Waits until so many bytes are there.
    pub(crate) fn wait_for(&self, bytes: u64) {
        let there = self.wait(PATIENCE, |_, total| total >= bytes);
        assert!(there.is_some(), "{bytes} bytes did not come in {PATIENCE:?}");
    }

    /// Waits for the first entry that `wanted` takes.
    fn wait(
        &self,
        patience: Duration,
        mut wanted: impl FnMut(Instant, u64) -> bool,
    ) -> Option<Instant> {
        let mut log = self.log.lock().unwrap();
        let until = Instant::now() + patience;
        let mut seen = 0;
        loop {
            if let Some(&(at, _)) = log[seen..].iter().find(|&&(at, total)| wanted(at, total)) {
                return Some(at);
            }
            seen = log.len();
            let left = until.checked_duration_since(Instant::now())?;
            log = self.changed.wait_timeout(log, left).unwrap().0;
        }
    }
}

/// Limit on the bytes that the sender may send.
#[derive(Debug)]
struct Allowance {
    /// Bytes in all.
    bytes: Mutex<u64>,
    changed: Condvar,
}

impl Allowance {
    /// Waits until more than `sent` is allowed; how much then.
    fn beyond(&self, sent: u64) -> u64 {
        *self.changed.wait_while(self.bytes.lock().unwrap(), |bytes| *bytes <= sent).unwrap()
    }
}

/// One connection with its two ends, each driven by a thread.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The sender's end.
    socket: TcpStream,
    /// The receiver's end of the connection.
    far: TcpStream,
    arrivals: Arc<Arrivals>,
    allowance: Arc<Allowance>,
    stop: Arc<AtomicBool>,
    sender: JoinHandle<io::Result<u64>>,
    receiver: JoinHandle<io::Result<u64>>,
}

impl Transfer {
    /// From `from` to `to`, whose addresses these are. The connection is open when this returns.
    pub(crate) fn start(from: (&Host, IpAddr), to: (&Host, IpAddr), load: &Load) -> Self {
        lateness::watch();
        let (sending, receiving) = match load.first_sequence {
            Some(sequence) => {
                let listener = listen(to);
                let address = listener.local_addr().unwrap();
                let active = from.0.within(|| connect_from(sequence, address));
                (active, listener.accept().unwrap().0)
            }
            None if load.is_multipath => open_by(Some(Protocol::MPTCP), from, to.0),
            None => open(from, to.0),
        };
        set_congestion_control(&sending, load.congestion);
        Self::over(sending, receiving, load)
    }

    fn over(sending: TcpStream, receiving: TcpStream, load: &Load) -> Self {
        let arrivals = Arc::new(Arrivals::default());
        let allowed = load.allowed.unwrap_or(u64::MAX).into();
        let allowance = Arc::new(Allowance { bytes: allowed, changed: Condvar::new() });
        let stop = Arc::new(AtomicBool::new(false));
        // The sender's port tells flows apart.
        let seed = u64::from(sending.local_addr().unwrap().port());
        let [socket, far] = [&sending, &receiving].map(|socket| socket.try_clone().unwrap());
        let sender = {
            let (bytes, allowance, stop) = (load.bytes, allowance.clone(), stop.clone());
            thread::spawn(move || send(sending, seed, bytes, &allowance, &stop))
        };
        let receiver = {
            let arrivals = arrivals.clone();
            thread::spawn(move || receive(receiving, seed, &arrivals))
        };
        Self { socket, far, arrivals, allowance, stop, sender, receiver }
    }

    /// Lets the sender go on until it has sent so many bytes.
    pub(crate) fn allow(&self, bytes: u64) {
        *self.allowance.bytes.lock().unwrap() = bytes;
        self.allowance.changed.notify_all();
    }

    /// Waits until the receiver has so many bytes.
    pub(crate) fn wait_for(&self, bytes: u64) {
        self.arrivals.wait_for(bytes);
    }

    /// Bytes that the receiver has received, with their times.
    pub(crate) fn arrivals(&self) -> Arc<Arrivals> {
        self.arrivals.clone()
    }

    /// Bytes that the receiver has received.
    pub(crate) fn received(&self) -> u64 {
        self.arrivals.last().map_or(0, |(_, total)| total)
    }

    /// From `up` to the receiver's first new byte; `None` when none comes within `patience`.
    pub(crate) fn dead_time(&self, up: Instant, patience: Duration) -> Option<Wait> {
        self.arrivals.dead_time(up, patience)
    }

    /// From the sender's end to the receiver's.
    pub(crate) fn flow(&self) -> Flow {
        let addr = |address: SocketAddr| Addr::new(address.ip(), address.port());
        let [src, dst] =
            [self.socket.local_addr(), self.socket.peer_addr()].map(|a| addr(a.unwrap()));
        Flow { src, dst }
    }

    /// The sender's state, from the kernel.
    pub(crate) fn info(&self) -> Info {
        getsockopt(&self.socket, TcpInfo).unwrap()
    }

    /// Ends the connection when data of the sender stay unacknowledged for so long (RFC 5482); `None`: for as
    /// long as the kernel tries.
    pub(crate) fn set_user_timeout(&self, timeout: Option<Duration>) {
        SockRef::from(&self.socket).set_tcp_user_timeout(timeout).unwrap();
    }

    /// The longest time without a new byte between two that came after `since`.
    pub(crate) fn longest_gap(&self, since: Instant) -> Wait {
        let log = self.arrivals.log.lock().unwrap();
        let later: Vec<Instant> = log.iter().map(|&(at, _)| at).filter(|&at| at >= since).collect();
        let gaps = later.windows(2).map(|pair| pair[1] - pair[0]);
        Wait { length: gaps.max().unwrap_or_default(), allowance: lateness::allowance(since) }
    }

    /// The sender resets the connection; how the receiver's ends, if it learns of that in time.
    pub(crate) fn reset_by_sender(self, patience: Duration) -> Option<io::ErrorKind> {
        reset(&self.socket);
        let _ = join(self.sender);
        drop(self.socket);
        let until = Instant::now() + patience;
        while !self.receiver.is_finished() {
            if Instant::now() >= until {
                let _ = self.far.shutdown(Shutdown::Both);
            }
            thread::sleep(Duration::from_millis(5));
        }
        join(self.receiver).err().map(|error| error.kind())
    }

    /// The receiver resets the connection; how the sender's ends.
    pub(crate) fn reset_by_receiver(self) -> io::Error {
        reset(&self.far);
        let _ = join(self.receiver);
        drop(self.far);
        join(self.sender).expect_err("the sender of an endless load learns of the reset")
    }

    /// Waits until both ends have failed; the errors of the sender and of the receiver, if they
    /// have.
    pub(crate) fn ends_by_reset(self) -> [Option<io::ErrorKind>; 2] {
        let until = Instant::now() + PATIENCE;
        while !(self.sender.is_finished() && self.receiver.is_finished()) {
            if Instant::now() >= until {
                let _ = [&self.socket, &self.far].map(|socket| socket.shutdown(Shutdown::Both));
                self.stop.store(true, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(5));
        }
        [self.sender, self.receiver].map(|end| join(end).err().map(|error| error.kind()))
    }

    /// Ends the transfer: the sender closes when it has sent the load, at once when that has no
    /// end; the receiver must get all that was sent.
    pub(crate) fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let until = Instant::now() + END;
        while !(self.sender.is_finished() && self.receiver.is_finished()) {
            if Instant::now() >= until {
                let _ = [&self.socket, &self.far].map(|socket| socket.shutdown(Shutdown::Both));
                let got = self.arrivals.last().map(|(at, total)| (at.elapsed(), total));
                panic!(
                    "not at the end after {END:?}; last arrival so long ago, bytes in all: {got:?}"
                );
            }
            thread::sleep(Duration::from_millis(5));
        }
        let sent = join(self.sender).expect("the sender's connection");
        let received = join(self.receiver).expect("the receiver's connection");
        assert_eq!(received, sent, "bytes received and sent");
        received
    }
}

/// Has the kernel reset the connection when the last handle of the socket is closed, which its
/// thread does now.
fn reset(socket: &TcpStream) {
    SockRef::from(socket).set_linger(Some(Duration::ZERO)).unwrap();
    // Wakes the thread.
    socket.shutdown(Shutdown::Both).unwrap();
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Opens a connection to a server's address; the server's end and the client's.
pub(crate) fn open(server: (&Host, IpAddr), client: &Host) -> (TcpStream, TcpStream) {
    open_by(None, server, client)
}

fn open_by(
    protocol: Option<Protocol>,
    (server, address): (&Host, IpAddr),
    client: &Host,
) -> (TcpStream, TcpStream) {
    let any_port = SocketAddr::new(address, 0);
    let socket = || Socket::new(Domain::for_address(any_port), Type::STREAM, protocol).unwrap();
    let listener = server.within(socket);
    listener.bind(&any_port.into()).unwrap();
    listener.listen(1).unwrap();
    let active = client.within(socket);
    active.connect_timeout(&listener.local_addr().unwrap(), PATIENCE).unwrap();
    (listener.accept().unwrap().0.into(), active.into())
}

fn listen((host, address): (&Host, IpAddr)) -> TcpListener {
    host.within(|| TcpListener::bind((address, 0))).unwrap()
}

/// Connects with this sequence number on the SYN: a socket under repair may be given one.
fn connect_from(sequence: u32, address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
    setsockopt(&socket, TcpRepair, &1).unwrap();
    setsockopt(&socket, TcpRepairQueue, &SEND_QUEUE).unwrap();
    setsockopt(&socket, TcpQueueSeq, &sequence).unwrap();
    setsockopt(&socket, TcpRepair, &0).unwrap();
    socket.connect_timeout(&address.into(), PATIENCE).unwrap();
    socket.into()
}

fn send(
    mut socket: TcpStream,
    seed: u64,
    bytes: Option<u64>,
    allowance: &Allowance,
    stop: &AtomicBool,
) -> io::Result<u64> {
    let mut sent = 0;
    while bytes.map_or(!stop.load(Ordering::Relaxed), |bytes| sent < bytes) {
        let end = allowance.beyond(sent).min(bytes.unwrap_or(u64::MAX)).min(sent + CHUNK);
        socket.write_all(&stream(seed, sent, (end - sent) as usize))?;
        sent = end;
    }
    socket.shutdown(Shutdown::Write)?;
    Ok(sent)
}

fn receive(mut socket: TcpStream, seed: u64, arrivals: &Arrivals) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    loop {
        let size = socket.read(&mut buffer)?;
        if size == 0 {
            return Ok(received);
        }
        assert!(buffer[..size] == stream(seed, received, size), "payload damaged at {received}");
        received += size as u64;
        arrivals.note(size as u64);
    }
}

/// Bytes of one write.
const CHUNK: u64 = 8192;

/// Bytes `start .. start + size` of the endless stream of this seed, which does not repeat.
fn stream(seed: u64, start: u64, size: usize) -> Vec<u8> {
    let first = start / 8;
    let last = (start + size as u64).div_ceil(8);
    // Without optimisation, a chain of iterators here took as much processor time as the gateways.
    let mut bytes = Vec::with_capacity(8 * (last - first) as usize);
    for word in first..last {
        bytes.extend_from_slice(&mix((seed << 40).wrapping_add(word)).to_le_bytes());
    }
    bytes.truncate((start % 8) as usize + size);
    bytes.split_off((start % 8) as usize)
}

/// A number that looks random, from one that does not (SplitMix64).
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn the_old_rate_is_back_with_the_first_second_that_brings_nine_tenths_of_it() {
    let ms = Duration::from_millis;
    let begin = Instant::now();
    let arrivals = Arrivals::default();
    let come = |from: u64, until: u64, bytes| {
        for at in (from..until).step_by(100) {
            arrivals.note_at(begin + ms(at), arrivals.last().map_or(0, |(_, all)| all) + bytes);
        }
    };
    let recovery = || arrivals.recovery(begin + ms(2000), begin + ms(5000));
    assert_eq!(recovery(), None);
    come(0, 2100, 100);
    come(5500, 7000, 50);
    assert_eq!(recovery(), None);
    come(7000, 9000, 100);
    // From 6.7 s to 7.7 s arrive 2 times 50 bytes and 8 times 100.
    assert_eq!(recovery(), Some(ms(1700)));
}
