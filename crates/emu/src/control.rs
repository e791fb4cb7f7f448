//! The control socket: orders to a running link, and its answers.
//!
//! A Unix socket that only its user can open. An order is a line ([`Order`]); the answer is a line
//! of JSON ([`LinkStatus`], or an object with `error`), sent when the order has taken effect.
//! [`ask`] is the client. A separate thread serves clients, one order at a time; the pump carries
//! the orders out.

use crate::EmuError;
use crate::emulator::DirectionSetup;
use crate::lateness::Lateness;
use crate::pump::Lane;
use airtcp_core::{DataRate, Instant};
use airtcp_net::LinkCounters;
use airtcp_net::config::{LinkRate, LossConfig};
use airtcp_settings::units;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use nix::sys::stat::{Mode, fchmod};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most clients connected at once; further ones wait.
const CONNECTIONS: usize = 16;
/// Longest order, in bytes; a client that sends more without a newline is dropped.
const LONGEST_ORDER: usize = 64;
/// A client that does not read the answer in this time is dropped.
const PATIENCE: Duration = Duration::from_secs(1);

/// One direction of the link, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// Uplink and downlink.
    Both,
    /// From the inside (or the first namespace) to the outside.
    Uplink,
    /// From the outside to the inside.
    Downlink,
}

impl Directions {
    /// True for each of uplink and downlink that is included, in this order.
    pub(crate) fn include(self) -> [bool; 2] {
        [self != Self::Downlink, self != Self::Uplink]
    }
}

/// An order to a running link.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use airtcp_emu::control::{Change, Directions, Order};
/// assert_eq!("down uplink".parse(), Ok(Order::Change(Change::Down, Directions::Uplink)));
/// assert_eq!(Order::Change(Change::Up, Directions::Both).to_string(), "up");
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// A [`Change`], and perhaps `uplink` or `downlink`.
    Change(Change, Directions),
    /// `status`: changes nothing.
    Status,
}

/// A change of a running link. All but `down` and `up` replace what its configuration says, and last
/// until the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// `down`: begins an outage. `outage.mode` of the link says what happens to packets.
    Down,
    /// `up`: ends an outage begun by `down`. A scheduled outage continues.
    Up,
    /// `rate RATE`: the rate is constant.
    Rate(DataRate),
    /// `delay TIME`: the delay is constant.
    Delay(airtcp_core::Duration),
    /// `loss P`: each packet is lost with this probability.
    Loss(f64),
    /// `duplicate P`: each packet is followed by a copy with this probability.
    Duplicate(f64),
    /// `corrupt P`: each packet has one bit flipped with this probability.
    Corrupt(f64),
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let directions = match words.last() {
            Some(&"uplink") => Directions::Uplink,
            Some(&"downlink") => Directions::Downlink,
            _ => Directions::Both,
        };
        if directions != Directions::Both {
            words.pop();
        }
        let change = match words[..] {
            ["status"] if directions == Directions::Both => return Ok(Self::Status),
            ["down"] => Ok(Change::Down),
            ["up"] => Ok(Change::Up),
            ["rate", ref value @ ..] => units::rate(&value.join(" ")).map(Change::Rate),
            ["delay", ref value @ ..] => units::duration(&value.join(" ")).map(Change::Delay),
            ["loss", ref value @ ..] => probability(&value.join(" ")).map(Change::Loss),
            ["duplicate", ref value @ ..] => probability(&value.join(" ")).map(Change::Duplicate),
            ["corrupt", ref value @ ..] => probability(&value.join(" ")).map(Change::Corrupt),
            _ => {
                return Err(format!(
                    "no such order: {text:?} (expected status, down, up, rate RATE, delay TIME, \
                     loss P, duplicate P or corrupt P; all but status for one direction: down uplink, \
                     rate 5mbit downlink, …){}",
                    meant(&words)
                ));
            }
        };
        let change = change.map_err(|expected| format!("{text:?}: {expected}{}", meant(&words)));
        Ok(Self::Change(change?, directions))
    }
}

/// `; did you mean …?` for a misspelt word of an order, or nothing.
fn meant(words: &[&str]) -> String {
    const ORDERS: [&str; 8] =
        ["status", "down", "up", "rate", "delay", "loss", "duplicate", "corrupt"];
    const DIRECTIONS: [&str; 2] = ["uplink", "downlink"];
    let near = match words {
        [order, ..] if !ORDERS.contains(order) => {
            let known = [&ORDERS[..], &DIRECTIONS].concat();
            airtcp_config::nearest(order, &known)
        }
        [_, .., last] => airtcp_config::nearest(last, &DIRECTIONS),
        _ => None,
    };
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

fn probability(text: &str) -> Result<f64, String> {
    let p = text.parse().ok().filter(|p| (0.0..=1.0).contains(p));
    p.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Change(change, directions) = self else { return f.write_str("status") };
        match change {
            Change::Down => f.write_str("down")?,
            Change::Up => f.write_str("up")?,
            Change::Rate(rate) => write!(f, "rate {rate}")?,
            Change::Delay(delay) => write!(f, "delay {delay}")?,
            Change::Loss(p) => write!(f, "loss {p}")?,
            Change::Duplicate(p) => write!(f, "duplicate {p}")?,
            Change::Corrupt(p) => write!(f, "corrupt {p}")?,
        }
        match directions {
            Directions::Both => Ok(()),
            Directions::Uplink => f.write_str(" uplink"),
            Directions::Downlink => f.write_str(" downlink"),
        }
    }
}

/// State of a link: the answer to every order, sent after it took effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Time at which the order took effect, CLOCK_MONOTONIC in nanoseconds.
    pub monotonic_ns: u64,
    /// From the inside to the outside.
    pub uplink: DirectionStatus,
    /// From the outside to the inside.
    pub downlink: DirectionStatus,
    /// Lateness of the packets released so far.
    pub lateness: LatenessStatus,
    /// The emulator runs with SCHED_FIFO.
    pub real_time: bool,
}

/// State of one direction; counted since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// What orders can change, as it is in force.
    #[serde(flatten)]
    pub settings: DirectionSettings,
    /// True in an outage, whether ordered or scheduled.
    pub down: bool,
    /// Packets in the queue, not counting the one in service.
    pub queue_packets: u64,
    /// Packets accepted that have not come out of the link yet.
    pub in_transit_packets: u64,
    /// Packets that have come out of the link, including lost ones.
    pub packets_sent: u64,
    /// Bytes in `packets_sent`.
    pub bytes_sent: u64,
    /// Packets the queue refused or dropped.
    pub queue_drops: u64,
    /// Packets the queue marked instead of dropping (ECN).
    pub ecn_marks: u64,
    /// Packets dropped by the loss model.
    pub loss_drops: u64,
    /// Copies made of packets (`duplicate`), whatever became of them.
    pub duplicates: u64,
    /// Packets in which a bit was flipped (`corrupt`).
    pub corrupted: u64,
    /// Packets that passed beside the link (`only`).
    pub beside_packets: u64,
    /// Packets dropped by the policer.
    pub policer_drops: u64,
    /// Packets dropped by an outage.
    pub outage_drops: u64,
    /// Longest queue so far, in packets.
    pub max_queue_packets: u64,
}

/// What orders can change of one direction: as in the configuration until one replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionSettings {
    /// A rate, such as `8 Mbit/s`, or `variable`: it follows a file or a channel.
    pub rate: String,
    /// A delay, such as `20 ms`, or `variable`: it follows a distribution or a table.
    pub delay: String,
    /// Probability that a packet is lost, such as `0.01`, or `variable`: it is not the same for all.
    pub loss: String,
    /// Probability that a packet is followed by a copy.
    pub duplicate: String,
    /// Probability that a packet has a bit flipped.
    pub corrupt: String,
}

impl DirectionSettings {
    /// Those of the configuration.
    pub(crate) fn of(setup: DirectionSetup<'_>) -> Self {
        let DirectionSetup { config, corrupt, .. } = setup;
        let variable = || "variable".to_owned();
        let slots = config.reconfiguration.as_deref();
        let cells = config.handover.iter().flat_map(|handover| handover.times.cells());
        let (cell_rate, cell_delay) = cells.fold((false, false), |(rate, delay), cell| {
            (rate || cell.rate.is_some(), delay || cell.delay.is_some())
        });
        Self {
            rate: match &config.rate {
                LinkRate::Constant(rate) if !cell_rate => rate.to_string(),
                _ => variable(),
            },
            delay: match config.delay.variation.is_some()
                || slots.is_some_and(|it| it.delay.is_some())
                || cell_delay
            {
                false => config.delay.base.to_string(),
                true => variable(),
            },
            loss: match config.loss.model {
                _ if slots.is_some_and(|it| it.loss > 0.0) => variable(),
                LossConfig::None => "0".to_owned(),
                LossConfig::Bernoulli { p } => p.to_string(),
                _ => variable(),
            },
            duplicate: config.duplicate.to_string(),
            corrupt: corrupt.to_string(),
        }
    }

    pub(crate) fn change(&mut self, change: Change) {
        match change {
            Change::Down | Change::Up => {}
            Change::Rate(rate) => self.rate = rate.to_string(),
            Change::Delay(delay) => self.delay = delay.to_string(),
            Change::Loss(p) => self.loss = p.to_string(),
            Change::Duplicate(p) => self.duplicate = p.to_string(),
            Change::Corrupt(p) => self.corrupt = p.to_string(),
        }
    }
}

/// Lateness of the packets released since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatenessStatus {
    /// Number of packets released.
    pub packets: u64,
    /// Median lateness.
    pub p50_ns: u64,
    /// 99th percentile of the lateness.
    pub p99_ns: u64,
    /// Largest lateness.
    pub max_ns: u64,
}

impl DirectionStatus {
    pub(crate) fn of(lane: &Lane, now: Instant) -> Self {
        let Lane { link, corruption, beside, settings, .. } = lane;
        let LinkCounters {
            packets_sent,
            bytes_sent,
            queue_drops,
            ecn_marks,
            loss_drops,
            duplicates,
            policer_drops,
            outage_drops,
            max_queue_packets,
        } = link.counters();
        Self {
            settings: settings.clone(),
            down: link.is_down(now),
            queue_packets: link.queue_len() as u64,
            in_transit_packets: link.in_transit() as u64,
            packets_sent,
            bytes_sent: bytes_sent.get(),
            queue_drops,
            ecn_marks,
            loss_drops,
            duplicates,
            corrupted: corruption.packets(),
            beside_packets: *beside,
            policer_drops,
            outage_drops,
            max_queue_packets,
        }
    }
}

impl LatenessStatus {
    pub(crate) fn of(lateness: &Lateness) -> Self {
        Self {
            packets: lateness.count(),
            p50_ns: lateness.quantile(0.5).as_nanos(),
            p99_ns: lateness.quantile(0.99).as_nanos(),
            max_ns: lateness.max().as_nanos(),
        }
    }
}

/// Sends an order to the link whose control socket is `socket` and waits for its answer, which
/// comes when the order has taken effect.
///
/// # Errors
/// No link listens there, or it refuses the order.
pub fn ask(socket: &Path, order: Order) -> io::Result<LinkStatus> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{order}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::other("the link ended before it answered"));
    }
    serde_json::from_str(&answer).map_err(|_| io::Error::other(answer.trim().to_owned()))
}

/// An order that waits for the pump, with the channel for its answer.
type Request = (Order, SyncSender<LinkStatus>);

/// The control socket of a running link; removed on drop.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    /// Device and inode of the socket's file, so that another link's file is not removed.
    file: (u64, u64),
    /// `None` only while this is being dropped.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    requests: Receiver<Request>,
    /// Readable when a request waits.
    bell: UnixStream,
    /// Stops the thread when closed.
    stop: UnixStream,
    thread: JoinHandle<()>,
}

impl Control {
    /// Listens at `path`. Replaces a socket that a dead process left behind.
    pub(crate) fn listen(path: &Path) -> Result<Self, EmuError> {
        let failed = |source| EmuError::Control { path: path.to_owned(), source };
        let listener = open(path).map_err(failed)?;
        let metadata = fs::symlink_metadata(path).map_err(failed)?;
        let (give, requests) = channel();
        let (bell, ring) = UnixStream::pair()?;
        let (stop, stopped) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        let thread = std::thread::spawn(move || {
            let mut server = Server { listener, ring, give, clients: Vec::new() };
            while server.serve(&stopped) {}
        });
        Ok(Self {
            path: path.to_owned(),
            file: (metadata.dev(), metadata.ino()),
            running: Some(Running { requests, bell, stop, thread }),
        })
    }

    /// Readable while requests wait for [`Control::carry_out`].
    pub(crate) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.running.as_ref().map(|running| running.bell.as_fd())
    }

    /// Has `handle` carry out each waiting order, and sends its answer to the client.
    pub(crate) fn carry_out(&self, mut handle: impl FnMut(Order) -> LinkStatus) {
        let Some(Running { requests, bell, .. }) = &self.running else { return };
        // Drained before the requests are read: one that arrives later makes it readable again.
        let mut bell: &UnixStream = bell;
        while bell.read(&mut [0; 64]).is_ok_and(|size| size > 0) {}
        for (order, answer) in requests.try_iter() {
            // Fails only if the server has stopped.
            let _ = answer.send(handle(order));
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|m| (m.dev(), m.ino()) == self.file);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(Running { requests, bell: _bell, stop, thread }) = self.running.take() {
            // Wakes a server that waits for an answer.
            drop(requests);
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// Binds the socket so that only its user can connect, from the first moment on.
fn open(path: &Path) -> io::Result<UnixListener> {
    remove_stale(path)?;
    let fd = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // Before it has a name: Linux gives the file the mode of the socket (unix(7) leaves it to the
    // umask).
    fchmod(&fd, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&fd, Backlog::new(CONNECTIONS as i32)?)?;
    let listener = UnixListener::from(fd);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Removes a socket that nobody listens on; refuses to remove anything else of that name.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file of that name exists and is not a socket",
        ));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another link listens there")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

/// State of the thread that serves clients.
struct Server {
    listener: UnixListener,
    ring: UnixStream,
    give: Sender<Request>,
    clients: Vec<Client>,
}

/// A client, with the bytes received of its next order.
struct Client {
    stream: UnixStream,
    line: Vec<u8>,
}

impl Server {
    /// Waits for one event and handles it; false when the thread must end.
    fn serve(&mut self, stopped: &UnixStream) -> bool {
        let full = self.clients.len() >= CONNECTIONS;
        let sources = [stopped.as_fd(), self.listener.as_fd()].into_iter();
        let sources = sources.take(if full { 1 } else { 2 });
        let mut polled: Vec<PollFd<'_>> = sources
            .chain(self.clients.iter().map(|client| client.stream.as_fd()))
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        match poll(&mut polled, PollTimeout::NONE) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => return true,
            Err(_) => return false,
        }
        let mut ready: Vec<bool> = polled.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        if ready[0] {
            return false;
        }
        let readable = ready.split_off(if full { 1 } else { 2 });
        let mut open = true;
        let Self { ring, give, clients, .. } = self;
        let mut readable = readable.into_iter();
        clients.retain_mut(|client| {
            !readable.next().unwrap_or(false)
                || client.listen(&mut |o| order(o, ring, give), &mut open)
        });
        if ready.get(1) == Some(&true)
            && let Ok((stream, _)) = self.listener.accept()
            && stream.set_write_timeout(Some(PATIENCE)).is_ok()
        {
            self.clients.push(Client { stream, line: Vec::new() });
        }
        open
    }
}

/// Has the pump carry out an order; `None` if the pump has ended.
fn order(order: Order, mut ring: &UnixStream, give: &Sender<Request>) -> Option<LinkStatus> {
    let (answer, answered) = sync_channel(1);
    give.send((order, answer)).ok()?;
    ring.write_all(&[0]).ok()?;
    answered.recv().ok()
}

impl Client {
    /// Reads what has arrived and answers each complete line; false when the connection is over.
    /// Sets `open` to false if there is no pump to carry out `order`.
    fn listen(
        &mut self,
        order: &mut dyn FnMut(Order) -> Option<LinkStatus>,
        open: &mut bool,
    ) -> bool {
        let mut buffer = [0; LONGEST_ORDER];
        let size = match self.stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(size) => size,
        };
        self.line.extend_from_slice(&buffer[..size]);
        while let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let answer = match String::from_utf8_lossy(&line).trim().parse::<Order>() {
                Ok(parsed) => match order(parsed) {
                    Some(status) => serde_json::to_string(&status),
                    None => {
                        *open = false;
                        return false;
                    }
                },
                Err(error) => serde_json::to_string(&serde_json::json!({ "error": error })),
            };
            let answered = answer.map_err(io::Error::from).and_then(|mut answer| {
                answer.push('\n');
                self.stream.write_all(answer.as_bytes())
            });
            if answered.is_err() {
                return false;
            }
        }
        self.line.len() <= LONGEST_ORDER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn orders_are_read_as_they_are_written() {
        use Directions::{Both, Downlink, Uplink};
        for directions in [Both, Uplink, Downlink] {
            let changes = [
                Change::Down,
                Change::Up,
                Change::Rate(DataRate::kbps(2500)),
                Change::Delay(airtcp_core::Duration::from_micros(1500)),
                Change::Loss(0.02),
                Change::Duplicate(0.5),
                Change::Corrupt(0.125),
            ];
            let changes = changes.map(|change| Order::Change(change, directions));
            for order in changes.into_iter().chain([Order::Status]) {
                assert_eq!(order.to_string().parse(), Ok(order));
            }
        }
        let rate = Order::Change(Change::Rate(DataRate::mbps(5)), Downlink);
        for text in ["rate 5mbit downlink", "rate 5 Mbit/s downlink"] {
            assert_eq!(text.parse(), Ok(rate));
        }
        for wrong in ["", "dwon", "down both", "down uplink now", "status uplink", "uplink"] {
            let error = wrong.parse::<Order>().unwrap_err();
            assert!(error.contains("expected status, down, up, rate RATE"), "{error}");
        }
        for (wrong, expected) in [
            ("rate", "expected a rate above 0, such as 8 Mbit/s"),
            ("rate 0 bit/s", "expected a rate above 0, such as 8 Mbit/s"),
            ("delay 5", "expected a duration, such as 20 ms"),
            ("loss 2 uplink", "expected a number from 0 to 1"),
            ("loss NaN", "expected a number from 0 to 1"),
            ("duplicate 1%", "expected a number from 0 to 1"),
        ] {
            assert_eq!(wrong.parse::<Order>(), Err(format!("{wrong:?}: {expected}")));
        }
    }

    fn status(monotonic_ns: u64) -> LinkStatus {
        let [rate, delay, none] = ["8 Mbit/s", "20 ms", "0"].map(str::to_owned);
        let [loss, duplicate, corrupt] = [none.clone(), none.clone(), none];
        let direction = DirectionStatus {
            settings: DirectionSettings { rate, delay, loss, duplicate, corrupt },
            down: false,
            queue_packets: 0,
            in_transit_packets: 0,
            packets_sent: 0,
            bytes_sent: 0,
            queue_drops: 0,
            ecn_marks: 0,
            loss_drops: 0,
            duplicates: 0,
            corrupted: 0,
            beside_packets: 0,
            policer_drops: 0,
            outage_drops: 0,
            max_queue_packets: 0,
        };
        LinkStatus {
            monotonic_ns,
            uplink: direction.clone(),
            downlink: direction,
            lateness: LatenessStatus { packets: 0, p50_ns: 0, p99_ns: 0, max_ns: 0 },
            real_time: false,
        }
    }

    /// Acts as the pump until this many orders are done.
    fn handle(control: &Control, mut orders: usize) -> Vec<Order> {
        let mut done = Vec::new();
        while orders > 0 {
            let mut polled = [PollFd::new(control.bell().unwrap(), PollFlags::POLLIN)];
            poll(&mut polled, PollTimeout::from(5000_u16)).unwrap();
            control.carry_out(|order| {
                orders -= 1;
                done.push(order);
                status(done.len() as u64)
            });
        }
        done
    }

    const DOWN: Order = Order::Change(Change::Down, Directions::Both);

    #[test]
    fn an_order_is_answered_when_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let control = Control::listen(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let asked = std::thread::spawn(move || {
            let down = ask(&path, DOWN).unwrap();
            (down.monotonic_ns, ask(&path, Order::Status).unwrap().monotonic_ns)
        });
        assert_eq!(handle(&control, 2), [DOWN, Order::Status]);
        assert_eq!(asked.join().unwrap(), (1, 2));
    }

    #[test]
    fn an_idle_client_does_not_block_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let control = Control::listen(&path).unwrap();
        let _idle = UnixStream::connect(&path).unwrap();
        let asked = std::thread::spawn(move || ask(&path, Order::Status).unwrap());
        handle(&control, 1);
        assert_eq!(asked.join().unwrap(), status(1));
    }

    #[test]
    fn several_orders_on_one_connection_and_a_wrong_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let control = Control::listen(&path).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"up\nsideways\nstatus\n").unwrap();
        assert_eq!(handle(&control, 2).len(), 2);
        let lines = BufReader::new(stream).lines().take(3).map(Result::unwrap);
        let lines: Vec<String> = lines.collect();
        assert!(lines[0].contains("\"monotonic_ns\":1"), "{lines:?}");
        assert!(lines[1].contains("\"error\":\"no such order"), "{lines:?}");
        assert!(lines[2].contains("\"monotonic_ns\":2"), "{lines:?}");
    }

    #[test]
    fn a_client_that_waits_when_the_link_ends_gets_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let control = Control::listen(&path).unwrap();
        let asked = std::thread::spawn({
            let path = path.clone();
            move || ask(&path, Order::Status)
        });
        let mut polled = [PollFd::new(control.bell().unwrap(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::from(5000_u16)).unwrap();
        drop(control);
        assert!(asked.join().unwrap().is_err());
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        drop(UnixListener::bind(&path).unwrap());
        let control = Control::listen(&path).unwrap();
        let told = Control::listen(&path).unwrap_err().to_string();
        assert!(told.contains("another link listens there"), "{told}");
        drop(control);

        fs::write(&path, "precious").unwrap();
        let told = Control::listen(&path).unwrap_err().to_string();
        assert!(told.contains("not a socket"), "{told}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
