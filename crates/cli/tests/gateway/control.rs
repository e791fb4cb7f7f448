//! The programs under the test: `airtcp link`, `airtcp gateway` and `airtcp agent`.

use crate::host::Host;
use crate::lateness::slowness;
use airtcp_core::LinkSignal;
use airtcp_emu::control::{Change, Directions, Order};
use airtcp_gateway::control::{Answer, Request, Whose};
use airtcp_gateway::status::Status;
use airtcp_linux::daemon::client::{AskError, ask};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, mkfifo};
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time a program may take to start or to end.
pub(crate) fn patience() -> Duration {
    Duration::from_secs(20) * slowness()
}

/// True if a retry may succeed: the daemon is restarting, or its loop hangs, and it will be killed
/// unless it recovers. Any other refusal is final.
fn will_pass(error: &AskError) -> bool {
    match error {
        AskError::Absent { .. } | AskError::Broken { .. } => true,
        AskError::Refused(reason) => reason.contains("loop does not answer"),
        AskError::Forbidden { .. } => false,
    }
}

/// `airtcp link` between two hosts.
#[derive(Debug)]
pub(crate) struct Emulator {
    _process: Process,
    control: PathBuf,
    /// Open as long as the emulator may write to it.
    _told: Lines<BufReader<ChildStderr>>,
}

impl Emulator {
    pub(crate) fn start(inside: &Host, outside: &Host, config: &str, folder: &Path) -> Self {
        let [file, control] = ["link.toml", "link.sock"].map(|name| folder.join(name));
        std::fs::write(&file, config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_airtcp"))
            .args(["link", "--late", "1 s", "--config", file.to_str().unwrap()])
            .args(["--control", control.to_str().unwrap()])
            .args(["--between", inside.name(), outside.name()])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
        let process = Process(child);
        let mut before = Vec::new();
        // "airtcp: airtcp0: 100.64.0.2 in A, 100.64.0.1 in B"
        while !before.last().is_some_and(|line: &String| line.contains(" in ")) {
            let line = told.next().unwrap_or_else(|| panic!("airtcp link: {before:?}"));
            before.push(line.unwrap());
        }
        Self { _process: process, control, _told: told }
    }

    /// Takes the link down or up; when that was.
    pub(crate) fn set(&self, up: bool) -> Instant {
        let order = Order::Change(if up { Change::Up } else { Change::Down }, Directions::Both);
        let status = airtcp_emu::control::ask(&self.control, order).unwrap();
        let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap());
        Instant::now() - now.saturating_sub(Duration::from_nanos(status.monotonic_ns))
    }
}

/// `airtcp gateway` on a host.
#[derive(Debug)]
pub(crate) struct Gateway {
    process: Mutex<Process>,
    files: Files,
}

/// The gateway's files.
#[derive(Clone, Debug)]
struct Files {
    config: PathBuf,
    control: PathBuf,
    log: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Gateway {
    /// Starts it and waits until it works. `config` has everything but the paths.
    pub(crate) fn start(
        host: &Host,
        config: &str,
        folder: &Path,
        environment: &[(&'static str, String)],
    ) -> Self {
        let [control, state, file, log] =
            ["gateway.sock", "state", "gateway.toml", "gateway.log"].map(|name| folder.join(name));
        let paths = format!("state = {state:?}\ncontrol = {control:?}\n");
        std::fs::write(&file, paths + config).unwrap();
        let files = Files { config: file, control, log, environment: environment.to_vec() };
        Self { process: files.start(host).into(), files }
    }

    /// Starts it again after it was killed, as a service manager does.
    pub(crate) fn restart(&self, host: &Host) {
        *self.process.lock().unwrap() = self.files.start(host);
    }

    /// Sends it a signal about a mobile, by its address, or about an uplink, by its interface.
    pub(crate) fn signal(&self, whose: &str, signal: LinkSignal) {
        let answer = self.ask(&Request::Signal { whose: Whose::parse(whose).unwrap(), signal });
        assert_eq!(answer, Answer::Done {}, "{}", self.log());
    }

    /// Replaces a piece of its configuration.
    pub(crate) fn configure(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.files.config).unwrap();
        assert!(text.contains(from), "{from:?} is not in {text}");
        std::fs::write(&self.files.config, text.replace(from, to)).unwrap();
    }

    /// Replaces a piece of its configuration and has it read again.
    pub(crate) fn reload(&self, from: &str, to: &str) {
        self.configure(from, to);
        assert_eq!(self.ask(&Request::Reload), Answer::Done {}, "{}", self.log());
    }

    /// Replaces a piece of its configuration and has it read again, which it refuses; why.
    pub(crate) fn reload_error(&self, from: &str, to: &str) -> String {
        self.configure(from, to);
        match ask(&self.files.control, &Request::Reload) {
            Err(AskError::Refused(message)) => message,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// `airtcp gateway` with these arguments about it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
        command.arg("gateway").args(args).arg("--control").arg(&self.files.control);
        command
    }

    /// The output of [`Gateway::command`].
    pub(crate) fn airtcp(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs it until it ends by itself.
    pub(crate) fn run(&self, host: &Host) -> Output {
        let mut command = host.command(&[env!("CARGO_BIN_EXE_airtcp"), "gateway", "--config"]);
        command.arg(&self.files.config).output().unwrap()
    }

    /// Its status, from the control socket.
    pub(crate) fn status(&self) -> Status {
        match self.ask(&Request::Status) {
            Answer::Status(status) => *status,
            other => panic!("asked for the status: {other:?}"),
        }
    }

    /// Waits until its status is as wanted; the status then.
    pub(crate) fn wait_until(&self, wanted: impl Fn(&Status) -> bool) -> Status {
        let until = Instant::now() + patience();
        loop {
            let status = self.status();
            if wanted(&status) {
                return status;
            }
            assert!(Instant::now() < until, "{status:?}\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks until there is an answer.
    fn ask(&self, request: &Request) -> Answer {
        let until = Instant::now() + patience();
        loop {
            match ask(&self.files.control, request) {
                Ok(answer) => return answer,
                Err(error) if will_pass(&error) && Instant::now() < until => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => panic!("{request:?}: {error}\n{}", self.files.log()),
            }
        }
    }

    /// The daemon's log so far.
    pub(crate) fn log(&self) -> String {
        self.files.log()
    }

    /// Ends it; its log.
    pub(crate) fn stop(self) -> String {
        drop(self.process);
        self.files.log()
    }

    /// Sends a signal to the parent.
    pub(crate) fn signal_parent(&self, signal: Signal) {
        kill(self.process.lock().unwrap().id(), signal).unwrap();
    }

    /// Sends a signal to the child.
    pub(crate) fn signal_child(&self, signal: Signal) {
        kill(self.child().expect("the gateway has a child"), signal).unwrap();
    }

    /// Kills the parent and the daemon.
    pub(crate) fn kill_all(&self) {
        let child = self.child();
        self.signal_parent(Signal::SIGKILL);
        if let Some(child) = child {
            // It may have ended with its parent.
            let _ = kill(child, Signal::SIGKILL);
        }
    }

    /// Kills both, and waits as long as a service manager does until it restarts them.
    pub(crate) fn crash(&self) {
        self.kill_all();
        thread::sleep(Duration::from_millis(200));
    }

    /// The process id of the child, which does the work.
    pub(crate) fn child(&self) -> Option<Pid> {
        let parent = self.process.lock().unwrap().id();
        let path = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(path).ok()?;
        Some(Pid::from_raw(children.split_whitespace().next()?.parse().ok()?))
    }

    /// The most memory that the child ever had, bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let child = self.child().expect("the gateway has a child");
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        1024 * line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    }
}

impl Files {
    fn start(&self, host: &Host) -> Process {
        let log = std::fs::File::options().create(true).append(true).open(&self.log).unwrap();
        let child = host
            .command(&["nice", "-n", unit("Nice="), "setpriv", &capabilities(), "--"])
            .args([env!("CARGO_BIN_EXE_airtcp"), "gateway", "--config"])
            .arg(&self.config)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stderr(log)
            .spawn();
        let mut process = Process(child.unwrap());
        let until = Instant::now() + patience();
        while ask(&self.control, &Request::Status).is_err() {
            let ended = process.0.try_wait().unwrap();
            assert!(ended.is_none(), "the gateway ended: {}", self.log());
            assert!(Instant::now() < until, "the gateway does not answer: {}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
        process
    }

    /// The daemon's log so far.
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Value of a key in the shipped unit.
fn unit(key: &str) -> &'static str {
    let unit = include_str!("../../../../dist/airtcp-gateway.service");
    unit.lines().find_map(|line| line.strip_prefix(key)).expect("the unit has the key")
}

/// The option by which setpriv(1) leaves root what the unit leaves it.
fn capabilities() -> String {
    let names = unit("CapabilityBoundingSet=").to_lowercase().replace("cap_", "+");
    format!("--bounding-set=-all,{}", names.replace(' ', ","))
}

/// `airtcp agent` on a host, with signals from the test.
#[derive(Debug)]
pub(crate) struct Agent {
    // Dropped in this order: the agent ends by itself once no more words can come.
    words: File,
    _process: Process,
}

impl Agent {
    /// Starts it, with a gateway (`HOST:PORT`) and a key.
    pub(crate) fn start(host: &Host, gateway: &str, key: &Path, folder: &Path) -> Self {
        let pipe = folder.join("words");
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        // Linux opens a pipe for both without waiting for the other end.
        let words = File::options().read(true).write(true).open(&pipe).unwrap();
        let child = host
            .command(&[env!("CARGO_BIN_EXE_airtcp"), "agent", "--gateway", gateway, "--key"])
            .arg(key)
            .args(["--source", "command", "--source-command"])
            .arg(format!("exec cat {pipe:?}"))
            .spawn();
        Self { words, _process: Process(child.unwrap()) }
    }

    /// Has it send a signal until the gateway acknowledges it.
    pub(crate) fn say(&mut self, signal: LinkSignal) {
        writeln!(self.words, "{}", signal.name()).unwrap();
    }
}

/// A program that gets SIGTERM when this is dropped, then SIGKILL if it does not end.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Process {
    fn id(&self) -> Pid {
        Pid::from_raw(self.0.id() as i32)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill(self.id(), Signal::SIGTERM);
        let until = Instant::now() + patience();
        while Instant::now() < until {
            if let Ok(Some(_)) = self.0.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
