//! The testbed: fixed host - wire - gateway - emulated wireless link - mobile host.

use crate::host::Host;
use crate::transfer::{Load, Transfer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// The fixed host's addresses.
const FIXED: [&str; 2] = ["10.7.0.2", "fd00:7::2"];
/// The gateway's, at the same wire.
const GATEWAY: [&str; 2] = ["10.7.0.1", "fd00:7::1"];
/// The mobile's, which `airtcp link` gives it.
const MOBILE: [&str; 2] = ["100.64.0.2", "fd4c:91e7:3b0a::2"];

/// What a testbed is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The link file.
    pub(crate) link: String,
    /// Address family of the transfers.
    pub(crate) ipv6: bool,
}

impl Default for Plan {
    fn default() -> Self {
        let link = "rate = \"8 Mbit/s\"\ndelay = \"20 ms\"\nqueue = { limit = \"60 kB\" }\n";
        Self { link: link.to_owned(), ipv6: false }
    }
}

/// A testbed; all of it goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Testbed {
    // In this order they go.
    link: Emulator,
    pub(crate) fixed: Host,
    pub(crate) gateway: Host,
    pub(crate) mobile: Host,
    ipv6: bool,
    _files: tempfile::TempDir,
}

impl Testbed {
    pub(crate) fn new(plan: &Plan) -> Self {
        let [fixed, gateway, mobile] = ["fixed", "gateway", "mobile"].map(Host::new);
        fixed.ip(&[
            "link",
            "add",
            "wire",
            "type",
            "veth",
            "peer",
            "name",
            "wire",
            "netns",
            gateway.name(),
        ]);
        for (host, addresses) in [(&fixed, FIXED), (&gateway, GATEWAY)] {
            host.ip(&["addr", "add", &format!("{}/24", addresses[0]), "dev", "wire"]);
            host.ip(&["addr", "add", &format!("{}/64", addresses[1]), "dev", "wire", "nodad"]);
            host.ip(&["link", "set", "wire", "up"]);
        }
        for sysctl in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            gateway.sysctl(sysctl, "1");
        }
        let files = tempfile::tempdir().unwrap();
        let link = Emulator::start(&mobile, &gateway, &plan.link, files.path());
        for (family, via) in ["-4", "-6"].iter().zip(GATEWAY) {
            fixed.ip(&[family, "route", "add", "default", "via", via]);
            mobile.ip(&[family, "route", "add", "default", "dev", "airtcp0"]);
        }
        Self { link, fixed, gateway, mobile, ipv6: plan.ipv6, _files: files }
    }

    /// A transfer from the fixed host to the mobile.
    pub(crate) fn download(&self, load: &Load) -> Transfer {
        let [fixed, mobile] = self.addresses();
        Transfer::start((&self.fixed, fixed), (&self.mobile, mobile), load)
    }

    /// The fixed host's and the mobile's.
    fn addresses(&self) -> [IpAddr; 2] {
        [FIXED, MOBILE].map(|pair| pair[usize::from(self.ipv6)].parse().unwrap())
    }

    /// When the link began.
    pub(crate) fn began(&self) -> Instant {
        self.link.began
    }
}

/// `airtcp link` between two hosts.
#[derive(Debug)]
struct Emulator {
    began: Instant,
    _process: Process,
    _told: Lines<BufReader<ChildStderr>>,
}

impl Emulator {
    fn start(inside: &Host, outside: &Host, config: &str, folder: &Path) -> Self {
        let file = folder.join("link.toml");
        std::fs::write(&file, config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_airtcp"))
            .args(["link", "--late", "1 s", "--config", file.to_str().unwrap()])
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
        Self { began: Instant::now(), _process: process, _told: told }
    }
}

/// A program that is asked to end when this is dropped, and made to when it does not.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            if let Ok(Some(_)) = self.0.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether testbeds can be made here; says why not.
pub(crate) fn possible() -> bool {
    let namespaces = Command::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    let possible = namespaces.is_ok_and(|status| status.success())
        && Path::new("/dev/net/tun").exists()
        && nix::unistd::geteuid().is_root();
    if !possible {
        // Not eprintln!, which the test harness keeps to itself when a test passes.
        let _ =
            writeln!(std::io::stderr(), "skipped: needs root, network namespaces and /dev/net/tun");
    }
    possible
}
