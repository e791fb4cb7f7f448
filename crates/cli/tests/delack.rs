//! `airtcp delack` for real: kernel TCP at both ends of an emulated link. What is compared are
//! counts of the kernel, which do not depend on how busy the machine is; where time is compared, it
//! is that of transfers taken in turns.

#![cfg(target_os = "linux")]

#[path = "gateway/congestion.rs"]
mod congestion;
#[path = "gateway/host.rs"]
mod host;
#[path = "gateway/info.rs"]
mod info;
#[expect(dead_code, reason = "the rest is about outages")]
#[path = "gateway/lateness.rs"]
mod lateness;

use airtcp_testing::skip;
use congestion::{has_congestion_control, set_congestion_control};
use host::Host;
use info::{Info, TcpInfo};
use lateness::explains_timeouts;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::getsockopt;
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Port of the server of downloads.
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

    /// Ends; the numbers of the line with `text` that it says then, by their names.
    fn numbers(mut self, text: &str) -> impl Fn(&str) -> u64 {
        kill(self.pid(), Signal::SIGTERM).unwrap();
        let line = self.says(text);
        assert!(self.child.wait().unwrap().success(), "{line}");
        move |name| {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(name));
            let value = word.and_then(|rest| rest.strip_prefix('=')).map(str::parse);
            value.unwrap_or_else(|| panic!("no {name}: {line}")).unwrap()
        }
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

fn info(end: &TcpStream) -> Info {
    getsockopt(end, TcpInfo).unwrap()
}

/// Counters of the kernels in a transfer.
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
    /// The longest time without data.
    gap: Duration,
    /// Delay that the machine may have added to a round trip.
    allowance: Duration,
    /// Bytes of data in a full segment, as the mobile sees it.
    mss: u32,
}

impl Transfer {
    fn acks_per_segment(&self) -> f64 {
        self.acks as f64 / self.data as f64
    }

    /// Nearly every ACK that the kernel made left. The last ones may still be on their way.
    fn is_plain(&self) -> bool {
        self.acks * 10 >= self.made * 9
    }

    /// At most so many timers expired, or the machine was late.
    fn has_at_most(&self, timeouts: u64) -> bool {
        self.timeouts <= timeouts || explains_timeouts(self.allowance)
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
        // The test does not depend on the emulator's lateness.
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
        delack.says("delaying acknowledgements");
        delack
    }

    /// Has the server send its cwnd.
    fn sender(&self, options: &[&str]) -> Process {
        let program = env!("CARGO_BIN_EXE_airtcp");
        let mut command = self.server.command(&[program, "delack", "--sender"]);
        command.args(options);
        let sender = Process::start(command);
        sender.says("exchanging cwnd");
        sender
    }

    /// The mobile downloads so many bytes; `halfway` is done when half of them are there.
    fn download(&self, bytes: usize, halfway: impl FnOnce()) -> Transfer {
        let counters = || {
            let names = ["OutSegs", "InSegs", "TCPTimeouts", "RetransSegs"];
            (names.map(|name| self.server.counter(name)), self.mobile.counter("OutSegs"))
        };
        let (before, made_before) = counters();
        let listener = self.server.within(|| TcpListener::bind(("0.0.0.0", PORT)).unwrap());
        lateness::watch();
        let start = Instant::now();
        let mut gap = Duration::ZERO;
        let mss = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut peer, _) = listener.accept().unwrap();
                peer.write_all(&vec![7; bytes]).unwrap();
            });
            let mut stream = self.mobile.within(|| TcpStream::connect((SERVER, PORT)).unwrap());
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut buffer = vec![0; 1 << 16];
            let mut read = 0;
            let mut last = None;
            let mut read_until = |end| {
                while read < end {
                    let more = stream.read(&mut buffer).unwrap();
                    assert!(more > 0, "{read} of {bytes} bytes");
                    read += more;
                    let now = Instant::now();
                    gap = gap.max(last.replace(now).map_or(Duration::ZERO, |last| now - last));
                }
            };
            read_until(bytes / 2);
            halfway();
            read_until(bytes);
            info(&stream).rcv_mss
        });
        let (took, allowance) = (start.elapsed(), lateness::allowance(start));
        let (after, made_after) = counters();
        let [data, acks, timeouts, retransmissions] = [0, 1, 2, 3].map(|i| after[i] - before[i]);
        let made = made_after - made_before;
        Transfer { took, data, acks, made, timeouts, retransmissions, gap, allowance, mss }
    }

    /// The mobile's rules.
    fn rules(&self) -> String {
        let output = self.mobile.command(&["iptables-save"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A wire of 20 Mbit/s and 10 ms that drops nothing.
const WIRE: [&str; 6] = ["--rate", "20mbit", "--delay", "5ms", "--queue", "10MB"];
/// Of the wire: its delay, there and back.
const ROUND_TRIP: Duration = Duration::from_millis(10);

#[test]
fn a_window_of_segments_has_one_ack() {
    let Some(bed) = Bed::new(&WIRE) else { return };
    let plain = bed.download(4_000_000, || ());
    let delack = bed.delack(&["--window", "8"]);
    let delayed = bed.download(4_000_000, || ());
    // An ACK for eight segments (0.125), but more at the start and by timers on a busy machine.
    assert!(plain.is_plain(), "{plain:?}");
    assert!(delayed.acks_per_segment() < 0.25 && !delayed.is_plain(), "{delayed:?}");
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
}

/// Five downloads without and with `airtcp delack`, taken in turns; the least of each in what is
/// measured.
fn in_turns<const N: usize>(
    bed: &Bed,
    bytes: usize,
    measure: [fn(&Transfer) -> Duration; N],
) -> [[Duration; 2]; N] {
    let mut least = [[Duration::MAX; 2]; N];
    let mut note = |turn: usize, transfer: Transfer| {
        for (least, measure) in least.iter_mut().zip(measure) {
            least[turn] = least[turn].min(measure(&transfer));
        }
    };
    let mut timed_out = Vec::new();
    for _ in 0..5 {
        note(0, bed.download(bytes, || ()));
        let delack = bed.delack(&[]);
        let transfer = bed.download(bytes, || ());
        if !transfer.has_at_most(0) {
            timed_out.push(format!("{transfer:?}"));
        }
        note(1, transfer);
        assert_eq!(delack.end(Signal::SIGTERM), Some(0));
    }
    // ACKs that come too late let the sender's timer expire in more than one. In one it did once, beside other
    // work: with 65 retransmissions and no data for 0.47 s, from a cause that is not known.
    assert!(timed_out.len() <= 1, "{timed_out:?}");
    least
}

#[test]
fn a_clean_path_loses_nothing_by_it_and_does_not_stall() {
    let Some(bed) = Bed::new(&WIRE) else { return };
    let [[plain, delayed], [plain_gap, gap]] =
        in_turns(&bed, 3_000_000, [|transfer| transfer.took, |transfer| transfer.gap]);
    assert!(delayed < plain.mul_f64(1.1), "{delayed:?} against {plain:?}");
    // Two round trips. A wait beyond the time that a window takes would be a tail-loss probe, if not
    // a time-out.
    assert!(gap < plain_gap + Duration::from_millis(40), "{gap:?} against {plain_gap:?}");
}

#[test]
fn data_gain_what_acks_leave_of_a_shared_medium() {
    // A queue in which nothing is lost: a lost retransmission needs the timer, whatever the ACKs do.
    let Some(bed) = Bed::new(&["--wlan", "ieee", "--queue", "10MB"]) else { return };
    let [[plain, delayed]] = in_turns(&bed, 2_000_000, [|transfer| transfer.took]);
    // An ACK every second segment and every tenth: 5.24 and 5.80 Mbit/s at most, so that a machine
    // that is late may take a tenth away.
    assert!(delayed < plain, "{delayed:?} against {plain:?}");
}

#[test]
fn a_loss_is_told_at_once() {
    let Some(bed) = Bed::new(&[&WIRE[..], &["--down-loss", "0.01"]].concat()) else { return };
    let delack = bed.delack(&[]);
    let transfer = bed.download(4_000_000, || ());
    // Fast retransmissions do it: duplicates do not wait. A lost retransmission may need the timer.
    assert!(transfer.retransmissions >= 10 && transfer.has_at_most(3), "{transfer:?}");
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
    assert!(transfer.has_at_most(1), "{transfer:?}");
    delack.says("delaying acknowledgements");
    let delayed = bed.download(4_000_000, || ());
    assert!(!delayed.is_plain(), "{delayed:?}");
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
}

/// The server sends so many bytes under this congestion control, the mobile has them, and both say no
/// more; then `meanwhile`. How often the server's kernel timed out until all of it was acknowledged
/// and the connection closed, and how often it sent a tail-loss probe.
fn last_ack(bed: &Bed, congestion: &str, bytes: usize, meanwhile: impl FnOnce()) -> [u64; 2] {
    // Any port: a child of another test may hold the last listener for a moment longer.
    let listener = bed.server.within(|| TcpListener::bind(("0.0.0.0", 0)).unwrap());
    let port = listener.local_addr().unwrap().port();
    let mut stream = bed.mobile.within(|| TcpStream::connect((SERVER, port)).unwrap());
    let (mut peer, _) = listener.accept().unwrap();
    set_congestion_control(&peer, congestion);
    let counters = || ["TCPTimeouts", "TCPLossProbes"].map(|name| bed.server.counter(name));
    let before = counters();
    for end in [&stream, &peer] {
        end.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    peer.write_all(&vec![7; bytes]).unwrap();
    stream.read_exact(&mut vec![0; bytes]).unwrap();
    meanwhile();
    let until = Instant::now() + PATIENCE;
    while info(&peer).unacked > 0 {
        assert!(Instant::now() < until, "{} segments", info(&peer).unacked);
        std::thread::sleep(Duration::from_millis(1));
    }
    // Both ends learn of the other's.
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    drop(stream);
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    let after = counters();
    [0, 1].map(|i| after[i] - before[i])
}

/// Ten transfers, with each number of segments left over from the last window: no timer expires, and
/// at most so many tail-loss probes leave in all. One in which the machine was late does not count: a
/// probe leaves when an ACK is late by a round trip (RFC 8985 §7.2).
fn expect_last_acks(congestion: &str, most_probes: u64) {
    let Some(bed) = Bed::new(&WIRE) else { return };
    let delack = bed.delack(&[]);
    lateness::watch();
    let transfers: Vec<_> = (91..=100)
        .map(|segments| {
            let start = Instant::now();
            let [timeouts, probes] = last_ack(&bed, congestion, segments * 1448, || ());
            (segments, timeouts, probes, lateness::allowance(start))
        })
        .collect();
    let [mut all_timeouts, mut all_probes] = [0, 0];
    for &(_, timeouts, probes, allowance) in &transfers {
        all_timeouts += if explains_timeouts(allowance) { 0 } else { timeouts };
        all_probes += if allowance < ROUND_TRIP { probes } else { 0 };
    }
    assert!(all_timeouts == 0 && all_probes <= most_probes, "{transfers:?}");
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
}

#[test]
fn the_last_ack_of_a_transfer_leaves_before_a_paced_sender_asks_for_it() {
    if !has_congestion_control("bbr") {
        return;
    }
    // Now and then a little later.
    expect_last_acks("bbr", 4);
}

#[test]
fn the_last_ack_of_a_transfer_leaves_when_a_sender_asks_for_it_at_the_latest() {
    // A sender that is not paced sends in bursts: between them segments seem to be rare, and the
    // last ones are waited for as long.
    expect_last_acks("reno", 10);
}

#[test]
fn a_daemon_killed_at_the_end_of_a_transfer_costs_one_time_out_at_most() {
    let Some(bed) = Bed::new(&WIRE) else { return };
    let delack = bed.delack(&[]);
    for segments in [91, 94, 97, 100] {
        let daemon = daemon(&delack);
        let end = || kill(daemon, Signal::SIGKILL).unwrap();
        lateness::watch();
        let start = Instant::now();
        let [timeouts, probes] = last_ack(&bed, "reno", segments * 1448, end);
        let is_excused = explains_timeouts(lateness::allowance(start));
        assert!(timeouts <= 1 || is_excused, "{segments}: {timeouts}, {probes}");
        delack.says("delaying acknowledgements");
    }
    assert_eq!(delack.end(Signal::SIGTERM), Some(0));
}

/// Counts for a server whose cwnd is 4: segments that carried cwnd, of those with data;
/// connections that learned it; bytes of data in a segment; ACKs per segment. `sender`: the
/// server's options, if it sends its cwnd; `options`: the receiver's.
fn told(sender: Option<&[&str]>, options: &[&str]) -> Option<([u64; 3], u32, f64)> {
    let bed = Bed::new(&WIRE)?;
    let route = bed.server.command(&["ip", "-4", "route", "show", "dev", "airtcp0"]).output();
    let route = String::from_utf8(route.unwrap().stdout).unwrap();
    let words: Vec<_> = route.split_whitespace().collect();
    let clamp = ["dev", "airtcp0", "cwnd", "lock", "4"];
    bed.server.ip(&[&["route", "replace"], &words[..], &clamp].concat());
    // The kernel remembers it when a connection ends.
    bed.download(100_000, || ());
    let sender = sender.map(|options| bed.sender(options));
    let delack = bed.delack(options);
    let transfer = bed.download(1_000_000, || ());
    let of_receiver = delack.numbers("stopped delaying");
    let connections =
        sender.map_or(0, |sender| sender.numbers("stopped exchanging")("connections_reported"));
    let counts = [of_receiver("segments_with_cwnd"), of_receiver("data_segments"), connections];
    Some((counts, transfer.mss, transfer.acks_per_segment()))
}

#[test]
fn a_receiver_that_asks_is_told_the_cwnd_and_waits_for_as_many_segments() {
    let Some(([with, of, connections], mss, acks)) = told(Some(&[]), &["--ask-cwnd"]) else {
        return;
    };
    // All but a few: the first may leave before the receiver's request has arrived.
    assert!(with * 10 >= of * 9 && connections == 1, "{with} of {of}, {connections}");
    // The option's 8 bytes are data's loss.
    assert_eq!(mss, 1440);
    // The whole window of four.
    assert!(acks < 0.35, "{acks}");
}

#[test]
fn who_does_not_ask_is_told_nothing() {
    let Some(([with, _, connections], mss, acks)) = told(Some(&[]), &[]) else { return };
    assert_eq!([with, connections, u64::from(mss)], [0, 0, 1448]);
    // A quarter of the flight is one segment, and the kernel acknowledges every second; on a busy
    // machine every third.
    assert!(acks > 0.3, "{acks}");
}

#[test]
fn a_sender_tells_those_it_is_to_tell() {
    let cases: [(&[&str], _); 4] = [
        (&["--peer", "10.0.0.0/8"], 0),
        (&["--peer", "100.64.0.0/10", "--port", "8000"], 1),
        (&["--port", "8001"], 0),
        (&["--peer", "2001:db8::/32"], 0),
    ];
    for (options, expected) in cases {
        let Some(([_, _, told], ..)) = told(Some(options), &["--ask-cwnd"]) else { return };
        assert_eq!(told, expected, "{options:?}");
    }
}

#[test]
fn a_sender_that_does_not_tell_is_acknowledged_by_its_flight() {
    let Some(([with, ..], mss, acks)) = told(None, &["--ask-cwnd"]) else { return };
    assert_eq!([with, u64::from(mss)], [0, 1448]);
    assert!(acks > 0.3, "{acks}");
}

#[test]
fn a_path_that_drops_the_option_costs_one_time_out() {
    let Some(bed) = Bed::new(&WIRE) else { return };
    let dropping = ["iptables", "-A", "INPUT", "-p", "tcp", "--tcp-option", "253", "-j", "DROP"];
    let dropping = bed.mobile.command(&dropping).output().unwrap();
    assert!(dropping.status.success(), "{dropping:?}");
    let (sender, delack) = (bed.sender(&[]), bed.delack(&["--ask-cwnd"]));
    let transfer = bed.download(1_000_000, || ());
    assert!(transfer.timeouts >= 1 && transfer.has_at_most(2), "{transfer:?}");
    assert_eq!(sender.numbers("stopped exchanging")("connections_reported"), 1);
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
    refused(&["--interface", "no-such-if"], "no interface \"no-such-if\"");
    refused(&["--interface", "lo", "--peer", "10.0.0"], "an address or a prefix");
    refused(&["--interface", "lo", "--window", "1"], "2..=1000");
    refused(&["--interface", "lo", "--policy", "dac"], "dca");
    refused(&[], "--interface");
    refused(&["--sender", "--ask-cwnd"], "--interface");
}
