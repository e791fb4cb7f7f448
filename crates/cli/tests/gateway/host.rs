//! A host: a network namespace with a name, and what is done inside.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// A network namespace of its own while it lives.
#[derive(Debug)]
pub(crate) struct Host {
    name: String,
    /// The device of the VRF in which its commands run.
    pub(crate) vrf: Option<&'static str>,
}

impl Host {
    /// A new one, with its loopback device up.
    pub(crate) fn new(role: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("e2e-{}-{number}-{role}", std::process::id());
        let host = Self { name, vrf: None };
        let made = try_run(&["ip", "netns", "add", &host.name]);
        made.unwrap_or_else(|error| panic!("ip netns add: {error}"));
        // A socket that begins with bbr, which may be the machine's default, stays paced when it is
        // given another congestion control.
        host.sysctl("ipv4/tcp_congestion_control", "reno");
        // Addresses are usable at once.
        host.sysctl("ipv6/conf/default/accept_dad", "0");
        host.ip(&["link", "set", "lo", "up"]);
        host
    }

    /// The name that `ip netns` knows.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` inside.
    pub(crate) fn ip(&self, args: &[&str]) {
        self.try_ip(args).unwrap_or_else(|error| panic!("ip {args:?}: {error}"));
    }

    /// Runs `ip` inside; what it says if it fails.
    pub(crate) fn try_ip(&self, args: &[&str]) -> Result<(), String> {
        try_run(&[&["ip", "-n", &self.name], args].concat())
    }

    /// A command that is started inside.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]);
        if let Some(vrf) = self.vrf {
            command.args(["ip", "vrf", "exec", vrf]);
        }
        command.args(args);
        command
    }

    /// Does `work` inside, on a thread of its own, and waits for it.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let path: PathBuf = ["/run/netns", &self.name].iter().collect();
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Sets a kernel parameter of the namespace, by its path below /proc/sys/net.
    pub(crate) fn sysctl(&self, name: &str, value: &str) {
        let path = format!("/proc/sys/net/{name}");
        self.within(|| std::fs::write(&path, value).unwrap_or_else(|e| panic!("{path}: {e}")));
    }

    /// A file of the namespace, by its path below /proc/net.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = format!("/proc/thread-self/net/{name}");
        self.within(|| std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}")))
    }

    /// A counter of the namespace's TCP or Multipath TCP, by its name in `nstat` without the prefix,
    /// such as `RetransSegs`.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let tables = ["snmp", "netstat"].map(|file| self.file(file));
        let lines: Vec<&str> = tables.iter().flat_map(|table| table.lines()).collect();
        // A line of names, then a line of values, both begun by the prefix.
        let found = lines.chunks(2).find_map(|pair| {
            let at = pair[0].split_whitespace().position(|n| n == name)?;
            ["Tcp", "MPTcp"]
                .iter()
                .any(|prefix| pair[0].starts_with(prefix))
                .then(|| pair[1].split_whitespace().nth(at))?
        });
        found.unwrap_or_else(|| panic!("no counter {name}")).parse().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// Runs a command; what it says if it fails.
fn try_run(args: &[&str]) -> Result<(), String> {
    let output = Command::new(args[0]).args(&args[1..]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or_else(said)
}
