//! Downloads by QUIC, whose ends are programs of their own (`benches/quic`): what
//! [`crate::transfer`] is for the kernel's TCP.

use crate::exchange::{ANSWER, EVERY, REQUEST};
use crate::host::Host;
use crate::lateness;
use crate::outages::{Told, WAKE_TOLD, WAKE_UNTOLD, outage};
use crate::testbed::{Place, Plan, Testbed, possible};
use crate::transfer::Arrivals;
use airtcp_testing::skip;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The next server's port: there may be several on a host.
static PORT: AtomicU16 = AtomicU16::new(4433);

/// A QUIC stack with a congestion control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack {
    /// The program and its first arguments, below `target/quic`.
    program: &'static [&'static str],
    congestion: &'static str,
}

/// The stack with this name, as `studies/wake` calls it.
pub(crate) fn stack(name: &str) -> Option<Stack> {
    const QUINN: &[&str] = &["release/quic-peer"];
    const AIOQUIC: &[&str] = &["venv/bin/python", "../../benches/quic/aioquic_peer.py"];
    let (program, congestion) = match name {
        "quinn" => (QUINN, "cubic"),
        "quinn-bbr" => (QUINN, "bbr"),
        "aioquic" => (AIOQUIC, "reno"),
        _ => return None,
    };
    Some(Stack { program, congestion })
}

/// The same, if its program is there; says if not.
pub(crate) fn built(name: &str) -> Option<Stack> {
    let stack = stack(name)?;
    let program = stack.path(0);
    if !program.exists() {
        skip(&format!("`make quic-peers`: {}", program.display()));
        return None;
    }
    Some(stack)
}

impl Stack {
    /// A word of the command.
    fn path(self, word: usize) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/quic").join(self.program[word])
    }

    fn command(self, host: &Host, args: &[&str]) -> Command {
        let words: Vec<PathBuf> = (0..self.program.len()).map(|word| self.path(word)).collect();
        assert!(words[0].exists(), "{}: `make quic-peers` makes it", words[0].display());
        let mut command = host.command(&[]);
        command.args(words).args(args);
        command.stdout(Stdio::piped());
        command
    }
}

/// A download, from one host to the other.
#[derive(Debug)]
pub(crate) struct Download {
    server: Child,
    client: JoinHandle<()>,
    arrivals: Arc<Arrivals>,
    bytes: u64,
}

impl Download {
    /// Starts a download of so many bytes, with `folder` for the server's certificate. The client's
    /// first packet leaves when this returns.
    pub(crate) fn start(
        stack: Stack,
        from: (&Host, IpAddr),
        to: &Host,
        bytes: u64,
        folder: &Path,
    ) -> Self {
        let serve = ["serve", &bytes.to_string(), stack.congestion];
        Self::run(stack, from, to, (&serve, &["fetch"]), bytes, folder)
    }

    /// Starts a download of the answers to so many requests, all on one stream. The first arrival,
    /// of 0 bytes, is the time of the first request.
    pub(crate) fn of_answers(
        stack: Stack,
        from: (&Host, IpAddr),
        to: &Host,
        requests: u32,
        folder: &Path,
    ) -> Self {
        let [request, answer] = [REQUEST, ANSWER].map(|size| size.to_string());
        let [count, every] = [requests, EVERY.as_millis() as u32].map(|number| number.to_string());
        let serve = ["answer", &request, &answer, stack.congestion];
        let fetch = ["ask", &request, &count, &every, stack.congestion];
        let bytes = u64::from(requests) * ANSWER as u64;
        Self::run(stack, from, to, (&serve, &fetch), bytes, folder)
    }

    /// Runs the commands of server and client, each given as a word and the arguments after the
    /// address and the certificate.
    fn run(
        stack: Stack,
        from: (&Host, IpAddr),
        to: &Host,
        (serve, fetch): (&[&str], &[&str]),
        bytes: u64,
        folder: &Path,
    ) -> Self {
        lateness::watch();
        let port = PORT.fetch_add(1, Ordering::Relaxed);
        let address = format!("{}:{port}", from.1);
        let file = folder.join(format!("certificate-{port}"));
        let file = file.to_str().expect("an ASCII path");
        let spawn = |host: &Host, words: &[&str]| {
            let mut command = stack.command(host, &[words[0], &address, file]);
            command.args(&words[1..]).spawn().unwrap()
        };
        let mut server = spawn(from.0, serve);
        let mut ready = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready.trim(), "ready");

        let mut client = spawn(to, fetch);
        let arrivals = Arc::new(Arrivals::default());
        let told = arrivals.clone();
        let client = thread::spawn(move || {
            let lines = BufReader::new(client.stdout.take().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let (at, total) = line.split_once(' ').expect("a time and a number of bytes");
                told.note_at(instant(at.parse().unwrap()), total.parse().unwrap());
            }
            let _ = client.wait();
        });
        Self { server, client, arrivals, bytes }
    }

    /// Bytes that the client has received, with their times.
    pub(crate) fn arrivals(&self) -> Arc<Arrivals> {
        self.arrivals.clone()
    }

    /// Waits until all is there.
    pub(crate) fn finish(mut self) {
        self.client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let _ = self.server.kill();
        let _ = self.server.wait();
        let received = self.arrivals.last().map(|(_, total)| total);
        assert_eq!(received, Some(self.bytes), "bytes received and sent");
    }
}

/// The time of a monotonic clock that shows so many nanoseconds.
fn instant(nanoseconds: u64) -> Instant {
    let now = Instant::now();
    let shown = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    now - (Duration::from(shown) - Duration::from_nanos(nanoseconds))
}

/// Uploads through a gateway on board: the host behind it sends, and the fixed host opens the
/// connection, which is nothing to wake.
#[test]
fn wake_on_board_serves_quic_as_it_serves_tcp() {
    const SIZE: u64 = 4_000_000;
    if !possible() {
        return;
    }
    let Some(stack) = built("quinn") else { return };
    let upload = |told, length, most| {
        let place = Place::OnBoard;
        let bed = Testbed::new(&Plan { place, ..Plan::with("\"wake\"") });
        let files = tempfile::tempdir_in("/dev/shm").unwrap();
        let sender = (&bed.mobile, bed.addresses()[1]);
        let upload = Download::start(stack, sender, &bed.fixed, SIZE, files.path());
        let arrivals = upload.arrivals();
        arrivals.wait_for(SIZE / 4);
        let begin = Instant::now() + Duration::from_millis(200);
        let up = outage(&bed, begin, length, told, || {});
        let dead = arrivals.dead_time(up, Duration::from_secs(60));
        println!("{told:?}: {dead:?}");
        assert!(dead.is_some_and(|dead| dead.is_within(most)), "{told:?}: {dead:?}");
        upload.finish();
    };
    thread::scope(|scope| {
        scope.spawn(|| upload(Told::Timely, Duration::from_secs(5), WAKE_TOLD));
        scope.spawn(|| upload(Told::Nothing, Duration::from_secs(3), WAKE_UNTOLD));
    });
}
