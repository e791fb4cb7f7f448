//! `airtcp delack` for real: kernel TCP at both ends of an emulated link. What is compared are
//! counts of the kernel, which do not depend on how busy the machine is; where time is compared, it
//! is that of transfers taken in turns.

#![cfg(target_os = "linux")]

#[path = "gateway/host.rs"]
mod host;

use airtcp_testing::skip;
use host::Host;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
const PORT: u16 = 8000;
/// The outside end of the first link of a namespace.
const SERVER: &str = "100.64.0.1";

/// A process that is killed when dropped, with the lines of its standard error.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        Self { child, lines }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Waits for a line with `text`.
    fn says(&self, text: &str) -> String {
        let mut told = Vec::new();
        let until = Instant::now() + PATIENCE;
        while let Ok(line) =
            self.lines.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            if line.contains(text) {
                return line;
            }
            told.push(line);
        }
        panic!("never said {text:?}: {told:#?}");
    }

    /// Ends by a signal; the exit code.
    fn end(mut self, signal: Signal) -> Option<i32> {
        kill(self.pid(), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill(self.pid(), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

/// A mobile host that downloads from a server over a link.
struct Bed {
    _link: Process,
    mobile: Host,
    server: Host,
}

/// What the kernels counted in a transfer.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    took: Duration,
    /// Segments that the server sent.
    data: u64,
    /// ACKs that the server got, and those that the mobile's kernel made.
    acks: u64,
    made: u64,
    timeouts: u64,
    retransmissions: u64,
}

impl Transfer {
    fn acks_per_segment(&self) -> f64 {
        self.acks as f64 / self.data as f64
    }

    /// Nearly every ACK that the kernel made left. The last ones may still be on their way.
    fn is_plain(&self) -> bool {
        self.acks * 10 >= self.made * 9
    }
}

impl Bed {
    /// `None` where there are no namespaces, TUN devices or NFQUEUE.
    fn new(link: &[&str]) -> Option<Self> {
        let doctor = Command::new(env!("CARGO_BIN_EXE_airtcp"))
            .args(["doctor", "--require", "link", "--require", "delack"])
            .stdout(Stdio::null())
            .status();
        let is_root = nix::unistd::geteuid().is_root();
        if !is_root || !Path::new("/dev/net/tun").exists() || !doctor.is_ok_and(|s| s.success()) {
            skip("root, /dev/net/tun and NFQUEUE");
            return None;
        }
        let [mobile, server] = ["mobile", "server"].map(Host::new);
        let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
        // Whether the emulator keeps up is not what is tested.
        command.args(["link", "--between", mobile.name(), server.name(), "--late", "10 s"]);
        command.args(link);
        let link = Process::start(command);
        link.says("airtcp0");
        Some(Self { _link: link, mobile, server })
    }

    fn delack(&self, options: &[&str]) -> Process {
        let program = env!("CARGO_BIN_EXE_airtcp");
        let mut command = self.mobile.command(&[program, "delack", "--interface", "airtcp0"]);
        command.args(options);
        let delack = Process::start(command);
        delack.says("acknowledgements are delayed");
        delack
    }

    /// The mobile downloads so many bytes; `halfway` is done when half of them are there.
    fn download(&self, bytes: usize, halfway: impl FnOnce()) -> Transfer {
        let counters = || {
            let names = ["OutSegs", "InSegs", "TCPTimeouts", "RetransSegs"];
            (names.map(|name| self.server.counter(name)), self.mobile.counter("OutSegs"))
        };
        let (before, made_before) = counters();
        let listener = self.server.within(|| TcpListener::bind(("0.0.0.0", PORT)).unwrap());
        let start = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut peer, _) = listener.accept().unwrap();
                peer.write_all(&vec![7; bytes]).unwrap();
            });
            let mut stream = self.mobile.within(|| TcpStream::connect((SERVER, PORT)).unwrap());
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut buffer = vec![0; 1 << 16];
            let mut read = 0;
            let mut read_until = |end| {
                while read < end {
                    let more = stream.read(&mut buffer).unwrap();
                    assert!(more > 0, "{read} of {bytes} bytes");
                    read += more;
                }
            };
            read_until(bytes / 2);
            halfway();
            read_until(bytes);
        });
        let took = start.elapsed();
        let (after, made_after) = counters();
        let [data, acks, timeouts, retransmissions] = [0, 1, 2, 3].map(|i| after[i] - before[i]);
        Transfer { took, data, acks, made: made_after - made_before, timeouts, retransmissions }
    }

    /// The mobile's rules.
    fn rules(&self) -> String {
        let output = self.mobile.command(&["iptables-save"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A wire of 20 Mbit/s and 10 ms that drops nothing.
const WIRE: [&str; 6] = ["--rate", "20mbit", "--delay", "5ms", "--queue", "10MB"];

#[test]
fn a_window_of_segments_has_one_ack() {
    let Some(bed) = Bed::new(&WIRE) else { return };
    let plain = bed.download(4_000_000, || ());
    let delack = bed.delack(&["--window", "8"]);
    let delayed = bed.download(4_000_000, || ());
    // An ACK for eight segments, but more at the start and by timers on a busy machine.
    assert!(plain.is_plain(), "{plain:?}");
    assert!(delayed.acks_per_segment() < 0.3 && !delayed.is_plain(), "{delayed:?}");
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
}

/// The shortest of some downloads without and with `airtcp delack`, taken in turns.
fn in_turns(bed: &Bed, bytes: usize) -> [Duration; 2] {
    let mut best = [Duration::MAX; 2];
    for _ in 0..3 {
        best[0] = best[0].min(bed.download(bytes, || ()).took);
        let delack = bed.delack(&[]);
        let transfer = bed.download(bytes, || ());
        best[1] = best[1].min(transfer.took);
        // An ACK that comes too late lets the sender's timer expire.
        assert_eq!(transfer.timeouts, 0, "{transfer:?}");
        assert_eq!(delack.end(Signal::SIGTERM), Some(0));
    }
    best
}

#[test]
fn a_clean_path_loses_nothing_by_it() {
    let Some(bed) = Bed::new(&WIRE) else { return };
    let [plain, delayed] = in_turns(&bed, 3_000_000);
    assert!(delayed < plain.mul_f64(1.1), "{delayed:?} against {plain:?}");
}

#[test]
fn data_gain_what_acks_leave_of_a_shared_medium() {
    let Some(bed) = Bed::new(&["--wlan", "ieee"]) else { return };
    let [plain, delayed] = in_turns(&bed, 2_000_000);
    // An ACK every second segment and every tenth: 5.24 and 5.80 Mbit/s at most.
    assert!(delayed < plain.mul_f64(0.97), "{delayed:?} against {plain:?}");
}

#[test]
fn a_loss_is_told_at_once() {
    let Some(bed) = Bed::new(&[&WIRE[..], &["--down-loss", "0.01"]].concat()) else { return };
    let delack = bed.delack(&[]);
    let transfer = bed.download(4_000_000, || ());
    // Fast retransmissions do it: duplicates do not wait. A lost retransmission may need the timer.
    assert!(transfer.retransmissions >= 10 && transfer.timeouts <= 3, "{transfer:?}");
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
}

/// The daemon, a child of `delack`.
fn daemon(delack: &Process) -> Pid {
    let pid = delack.pid();
    let file = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(file).unwrap();
    Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap())
}

#[test]
fn a_daemon_that_is_killed_takes_no_connection_with_it_and_comes_back() {
    let Some(bed) = Bed::new(&WIRE) else { return };
    let delack = bed.delack(&[]);
    let daemon = daemon(&delack);
    let transfer = bed.download(4_000_000, || kill(daemon, Signal::SIGKILL).unwrap());
    // The ACK that waited is lost. Later ones say the same, or the retransmission of what it
    // acknowledged draws another.
    assert!(transfer.timeouts <= 1, "{transfer:?}");
    delack.says("acknowledgements are delayed");
    let delayed = bed.download(4_000_000, || ());
    assert!(!delayed.is_plain(), "{delayed:?}");
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
}

#[test]
fn rules_go_with_the_daemon_or_with_the_next_one() {
    const CHAIN: &str = "AIRTCP-ACKS";
    let Some(bed) = Bed::new(&WIRE) else { return };
    let delack = bed.delack(&[]);
    assert!(bed.rules().contains(CHAIN), "{}", bed.rules());
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
    assert!(!bed.rules().contains(CHAIN), "{}", bed.rules());

    // Killed with its parent it leaves them, and they let packets pass.
    let delack = bed.delack(&[]);
    let daemon = daemon(&delack);
    kill(delack.pid(), Signal::SIGSTOP).unwrap();
    kill(daemon, Signal::SIGKILL).unwrap();
    assert_eq!(delack.end(Signal::SIGKILL), None);
    assert!(bed.rules().contains(CHAIN), "{}", bed.rules());
    let plain = bed.download(2_000_000, || ());
    assert!(plain.is_plain(), "{plain:?}");
    let delack = bed.delack(&[]);
    assert_eq!(bed.rules().matches(&format!("-j {CHAIN}")).count(), 1, "{}", bed.rules());
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
    assert!(!bed.rules().contains(CHAIN), "{}", bed.rules());
}

#[test]
fn bad_input_is_refused_with_what_was_expected() {
    let refused = |args: &[&str], told: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
        let output = command.arg("delack").args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(told), "{stderr}");
    };
    refused(&["--interface", "no-such-if"], "there is no interface \"no-such-if\"");
    refused(&["--interface", "lo", "--peer", "10.0.0"], "an address or a prefix");
    refused(&["--interface", "lo", "--window", "1"], "2..=1000");
    refused(&["--interface", "lo", "--policy", "dac"], "dca");
    refused(&[], "--interface");
}
