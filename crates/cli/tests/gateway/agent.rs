//! Signals by `airtcp agent` on the mobile, and by attackers.

use crate::control::Agent;
use crate::hostile::send_raw;
use crate::lateness::{allowance, explains_timeouts};
use crate::outages::{WORST, sleep_until};
use crate::testbed::{MOBILE, Plan, ROUTER, Testbed, possible};
use crate::transfer::Load;
use airtcp_core::LinkSignal::{self, Down, Fading, Up};
use airtcp_gateway::status::Status;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// UDP port on which the gateway listens.
const PORT: u16 = 4711;

const AIRTCP: &str = env!("CARGO_BIN_EXE_airtcp");

/// A testbed whose gateway listens to agents.
struct Agents {
    folder: tempfile::TempDir,
    bed: Testbed,
}

impl Agents {
    /// The keys: the mobile's, and one that speaks for others.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [phone, laptop, keys] =
            ["phone", "laptop", "keys"].map(|name| folder.path().join(name));
        keygen("phone", MOBILE[0], &phone);
        keygen("laptop", "10.99.99.99", &laptop);
        let lines = [&phone, &laptop].map(|file| std::fs::read_to_string(file).unwrap());
        // Copied first, for the file's permissions.
        std::fs::copy(&phone, &keys).unwrap();
        std::fs::write(&keys, lines.concat()).unwrap();
        let config = format!("[signals.agent]\nlisten = \"0.0.0.0:{PORT}\"\nkeys = {keys:?}\n");
        let bed = Testbed::new(&Plan { config, ..Plan::with("\"m-tcp-plus\"") });
        Self { folder, bed }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The agent on the mobile.
    fn agent(&self) -> Agent {
        Agent::start(&self.bed.mobile, &gateway(), &self.file("phone"), self.folder.path())
    }

    /// Has the agent send it, and waits until the gateway acts on it.
    fn report(&self, agent: &mut Agent, signal: LinkSignal) {
        agent.say(signal);
        self.bed.daemon().wait_until(|status| away(status) == said(signal));
    }

    /// Somebody at the fixed host reports the mobile down, or up, with a made-up key.
    fn pretend(&self, key: &Path, signal: &str) -> Output {
        let arguments = [AIRTCP, "agent", "--gateway", &gateway(), "--patience", "300 ms"];
        let mut agent = self.bed.fixed.command(&arguments);
        agent.arg("--key").arg(key).args(["send", signal]).output().unwrap()
    }
}

fn gateway() -> String {
    format!("{}:{PORT}", ROUTER[0])
}

fn keygen(name: &str, address: &str, file: &Path) {
    let arguments = ["agent", "keygen", name, address, "--out"];
    assert!(Command::new(AIRTCP).args(arguments).arg(file).status().unwrap().success());
}

/// State of the mobile in the gateway's status.
fn away(status: &Status) -> Option<&str> {
    status.away.get(MOBILE[0]).map(String::as_str)
}

/// State of the mobile after a signal.
fn said(signal: LinkSignal) -> Option<&'static str> {
    (signal != Up).then(|| signal.name())
}

#[test]
fn an_outage_that_the_mobiles_agent_announces_is_survived() {
    if !possible() {
        return;
    }
    let agents = Agents::new();
    let bed = &agents.bed;
    let mut agent = agents.agent();
    let transfer = bed.download(&Load::of(4_000_000));
    transfer.wait_for(2_000_000);
    let (timeouts, since) = (bed.fixed.counter("TCPTimeouts"), Instant::now());
    // Packets in the link's queue arrive before it breaks.
    agents.report(&mut agent, Fading);
    agents.report(&mut agent, Down);
    let down = bed.link(false);
    sleep_until(down + Duration::from_secs(5));
    let up = bed.link(true);
    agent.say(Up);
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{dead:?}");
    let is_excused = explains_timeouts(allowance(since));
    assert!(is_excused || bed.fixed.counter("TCPTimeouts") == timeouts);
    assert_eq!(transfer.finish(), 4_000_000);
}

/// All UDP packets that come to a host, from the IP header on.
struct Wiretap(Socket);

impl Wiretap {
    fn new(agents: &Agents) -> Self {
        let open = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)).unwrap();
        let socket = agents.bed.gateway.within(open);
        socket.set_nonblocking(true).unwrap();
        Self(socket)
    }

    /// The reports that came since the last time.
    fn reports(&mut self) -> Vec<Vec<u8>> {
        let mut buffer = [0; 2048];
        let packets = std::iter::from_fn(|| {
            let size = self.0.read(&mut buffer).ok()?;
            Some(buffer[..size].to_vec())
        });
        packets.filter(|packet| packet[22..24] == PORT.to_be_bytes()).collect()
    }
}

/// Offset of a report, behind the headers of IPv4 and UDP.
const REPORT: usize = 28;

/// The report, but with another signal, mobile or stamp.
fn forgeries(report: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let signal = REPORT + 6;
    let (stamp, mobile) = (REPORT + 31, REPORT + 47);
    let others =
        (1..=3).filter(move |&code| code != report[signal]).map(move |code| (signal, code));
    others.chain([stamp, mobile].map(|at| (at, report[at] ^ 1))).map(|(at, byte)| {
        let mut forged = report.to_vec();
        forged[at] = byte;
        // No checksum of UDP.
        forged[26..28].fill(0);
        forged
    })
}

/// Sends from the fixed host what was overheard, as it was and changed, and what was sealed with
/// wrong keys; the gateway must notice all of it and keep its view.
fn attack(agents: &Agents, overheard: &[Vec<u8>]) {
    let bed = &agents.bed;
    let noticed = |status: &Status| {
        let refused = status.counters.iter().filter(|(name, _)| {
            name.starts_with("agent_reports_") && *name != "agent_reports_taken"
        });
        refused.map(|(_, count)| count).sum::<u64>()
    };
    let before = bed.daemon().status();
    let forged: Vec<_> = overheard.iter().flat_map(|report| forgeries(report)).collect();
    let sent = (overheard.len() + forged.len()) as u64;
    // Sent with the mobile's address as the source.
    send_raw(&bed.fixed, overheard.iter().cloned().chain(forged));
    for signal in ["down", "up"] {
        let output = agents.pretend(&agents.file("forged"), signal);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && told.contains("did not answer"), "{told}");
        let output = agents.pretend(&agents.file("stolen"), signal);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1), "{told}");
    }
    let after = bed.daemon().wait_until(|status| noticed(status) >= noticed(&before) + sent + 4);
    assert_eq!(after.signals, before.signals);
    assert_eq!(after.away, before.away);
}

#[test]
fn forged_and_replayed_reports_change_nothing() {
    if !possible() {
        return;
    }
    let agents = Agents::new();
    let bed = &agents.bed;
    // The name of the mobile's key without its secret, and another's secret for the mobile's
    // address.
    keygen("phone", MOBILE[0], &agents.file("forged"));
    let laptop = std::fs::read_to_string(agents.file("laptop")).unwrap();
    std::fs::copy(agents.file("laptop"), agents.file("stolen")).unwrap();
    std::fs::write(agents.file("stolen"), laptop.replace("10.99.99.99", MOBILE[0])).unwrap();

    let mut wiretap = Wiretap::new(&agents);
    let mut agent = agents.agent();
    let transfer = bed.download(&Load::endless("cubic"));
    transfer.wait_for(1_000_000);
    agents.report(&mut agent, Fading);
    agents.report(&mut agent, Up);
    let mut overheard = wiretap.reports();
    assert!(overheard.len() >= 2, "{overheard:?}");
    let since = Instant::now();
    attack(&agents, &overheard);
    let gap = transfer.longest_gap(since);
    assert!(gap.is_within(Duration::from_millis(500)), "{gap:?}");

    // Not what was sent just now.
    wiretap.reports();
    agents.report(&mut agent, Down);
    bed.link(false);
    overheard.extend(wiretap.reports());
    attack(&agents, &overheard);
    let up = bed.link(true);
    agent.say(Up);
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    assert!(dead.is_some_and(|dead| dead.is_within(Duration::from_secs(1))), "{dead:?}");
    transfer.finish();
}
