//! The data path for real: kernel TCP through a queue, in network namespaces.
//!
//! A fixed host, a gateway and a mobile host, joined by veth pairs ([`Net`]); the gateway
//! ([`Gateway`]) and the hosts' programs are threads of the test, each in its namespace. Without
//! the right to make namespaces the tests say so and pass.

#![cfg(target_os = "linux")]

mod mirror;
mod tc;

use airtcp_core::{Bytes, Duration as Span, Segment};
use airtcp_edge::{MechanismConfig, MobileId};
use airtcp_gateway::config::{
    CopyMode, DataPath, GatewayConfig, Group, Limits, Mark, Members, Mode, NfqueueConfig, Signals,
};
use airtcp_gateway::packets::{Egress, Intercepted, Verdict};
use airtcp_linux::datapath::nfqueue::{Nfqueue, NfqueueError};
use airtcp_linux::datapath::rules::{self, Rules, RulesError, Watcher};
use airtcp_wire::{decode, encode};
use nix::sched::{CloneFlags, setns};
use nix::sys::eventfd::EventFd;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FIXED: [&str; 2] = ["10.99.1.2", "fd99:1::2"];
const MOBILE: [&str; 2] = ["10.99.2.2", "fd99:2::2"];
/// The gateway's queue.
const QUEUE: u16 = 7;
/// Longest wait for anything, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// True if these tests can run here.
fn possible() -> bool {
    let made = Command::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    let tools =
        ["ip", "iptables"].into_iter().find(|tool| Command::new(tool).arg("-V").output().is_err());
    let why = match (made, tools) {
        (Ok(status), None) if status.success() && Path::new("/run").exists() => return true,
        (_, Some(tool)) => format!("`{tool}`"),
        _ => "the right to make network namespaces".to_owned(),
    };
    airtcp_testing::skip(&why);
    false
}

/// Fixed host `a`, gateway `g` and mobile host `b`.
struct Net(String);

impl Net {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let net = Self(format!("path-{}-{made}", std::process::id()));
        let name = |host| net.host(host);
        for host in ["a", "g", "b"] {
            ip(&["netns", "add", &name(host)], "");
            // Link-local addresses are usable at once, too.
            net.sh(host, "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad");
        }
        for (host, peer, number) in [("a", "fixed", 1), ("b", "mobile", 2)] {
            let script = format!(
                "link add gw type veth peer name {peer} netns {}
                 link set gw up
                 address add 10.99.{number}.2/24 dev gw
                 address add fd99:{number}::2/64 dev gw nodad
                 route add default via 10.99.{number}.1
                 route add default via fd99:{number}::1\n",
                name("g")
            );
            let there = format!(
                "link set {peer} up
                 address add 10.99.{number}.1/24 dev {peer}
                 address add fd99:{number}::1/64 dev {peer} nodad\n"
            );
            // The addresses of the other end first: routes want a neighbour that is up.
            let (link, rest) = script.split_once('\n').unwrap();
            ip(&["-n", &name(host), "-batch", "-"], link);
            ip(&["-n", &name("g"), "-batch", "-"], &there);
            ip(&["-n", &name(host), "-batch", "-"], rest);
        }
        net.sh(
            "g",
            "echo 1 | tee /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding",
        );
        net
    }

    fn host(&self, host: &str) -> String {
        format!("{}-{host}", self.0)
    }

    fn shell(&self, host: &str, script: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host(host), "sh", "-ec", script]);
        command
    }

    /// Runs a script in a host.
    fn sh(&self, host: &str, script: &str) -> String {
        succeeded(&mut self.shell(host, script))
    }

    /// Runs a function in a host.
    fn run<T: Send + 'static>(
        &self,
        host: &str,
        program: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let file = Path::new("/run/netns").join(self.host(host));
        std::thread::spawn(move || {
            setns(File::open(file).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            program()
        })
    }

    /// All rules of iptables and nftables in the gateway.
    fn rules(&self) -> String {
        self.sh("g", "iptables-save; ip6tables-save; nft list tables")
    }

    /// A connection between the hosts' programs: what the fixed host's returns and what the
    /// mobile's returns.
    fn connect<T: Send + 'static, U: Send + 'static>(
        &self,
        address: &str,
        fixed: impl FnOnce(TcpStream) -> T + Send + 'static,
        mobile: impl FnOnce(TcpStream) -> U + Send + 'static,
    ) -> (JoinHandle<T>, JoinHandle<U>) {
        let address: IpAddr = address.parse().unwrap();
        let listener = self.run("a", move || TcpListener::bind((address, 0)).unwrap());
        let listener = listener.join().unwrap();
        let to: SocketAddr = listener.local_addr().unwrap();
        let server = self.run("a", move || fixed(patient(listener.accept().unwrap().0)));
        let client = self
            .run("b", move || mobile(patient(TcpStream::connect_timeout(&to, PATIENCE).unwrap())));
        (server, client)
    }

    /// The mobile downloads so many bytes, which must arrive as they were sent.
    fn download(&self, address: &str, size: usize) {
        let server = move |mut stream: TcpStream| stream.write_all(&pattern(size)).unwrap();
        let client = |mut stream: TcpStream| {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            bytes
        };
        let (server, client) = self.connect(address, server, client);
        server.join().unwrap();
        assert!(client.join().unwrap() == pattern(size), "payload damaged");
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for host in ["a", "g", "b"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.host(host)]).status();
        }
    }
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ip(arguments: &[&str], input: &str) {
    let mut child = Command::new("ip").args(arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "ip {arguments:?}: {input}");
}

fn succeeded(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Bytes that do not repeat (xorshift).
fn pattern(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(next).collect()
}

fn until(condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "nothing came in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The testbed's mobiles, behind this interface.
fn behind(interface: &str) -> Members {
    mobiles(&["10.99.2.0/24", "fd99:2::/64"], interface)
}

fn host(mobile: &str) -> MobileId {
    MobileId::Host(mobile.parse().unwrap())
}

fn mobiles(addresses: &[&str], interface: &str) -> Members {
    Members::Mobiles {
        addresses: addresses.iter().map(|net| net.parse().unwrap()).collect(),
        interfaces: vec![interface.parse().unwrap()],
    }
}

fn group(name: &str, addresses: &[&str], copy: CopyMode) -> Group {
    Group {
        name: name.into(),
        members: mobiles(addresses, "mobile"),
        mechanism: MechanismConfig::PacketControl { threshold: 3 },
        copy,
        fast_path: Default::default(),
    }
}

fn config(queue: u16, length: u32, groups: Vec<Group>) -> GatewayConfig {
    GatewayConfig {
        nfqueue: NfqueueConfig { queue, length },
        mode: Mode::default(),
        data_path: DataPath::default(),
        mark: Mark::default(),
        state: "/nonexistent".into(),
        control: "/nonexistent".into(),
        limits: Limits { memory: Bytes(0), flows: 0, flows_per_mobile: 0, idle: Span::ZERO },
        groups,
        signals: Signals::default(),
        metrics: None,
        record: None,
    }
}

/// All mobiles, always.
fn always() -> GatewayConfig {
    config(QUEUE, 1000, vec![group("all", &["10.99.2.0/24", "fd99:2::/64"], CopyMode::Always)])
}

/// Verdict of a gateway on a packet, and its side effects.
type Policy = Box<dyn FnMut(&Intercepted, &mut Nfqueue) -> Verdict + Send>;

/// A loop over the data path.
struct Gateway {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    wake: Arc<EventFd>,
    seen: Arc<AtomicUsize>,
}

impl Gateway {
    fn new(net: &Net, mut policy: Policy) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let wake = Arc::new(EventFd::new().unwrap());
        let seen = Arc::new(AtomicUsize::new(0));
        let shared = (stop.clone(), wake.clone(), seen.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = net.run("g", move || {
            let (stop, wake, seen) = shared;
            // That of the gateway before may live on for a moment, in a process that another test
            // is just starting.
            let end = Instant::now() + PATIENCE;
            let mut path = loop {
                match Nfqueue::open(QUEUE, 1000) {
                    Ok(path) => break path,
                    Err(error) => assert!(Instant::now() < end, "{error}"),
                }
                std::thread::sleep(Duration::from_millis(10));
            };
            ready.send(()).unwrap();
            let mut batch = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                path.receive(&[wake.as_fd()], None, &mut batch).unwrap();
                for packet in batch.drain(..) {
                    seen.fetch_add(1, Ordering::Relaxed);
                    let verdict = policy(&packet, &mut path);
                    path.decide(packet.id.unwrap(), verdict).unwrap();
                }
                path.flush().unwrap();
            }
        });
        is_ready.recv().unwrap();
        Self { thread: Some(thread), stop, wake, seen }
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.write(1).unwrap();
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the gateway failed");
    }
}

/// Rules in the gateway's namespace, where they are also removed.
fn install(net: &Net, config: GatewayConfig) -> Installed<'_> {
    Installed { rules: in_gateway(net, move || Some(Rules::install(&config).unwrap())), net }
}

fn in_gateway<T: Send + 'static>(net: &Net, action: impl FnOnce() -> T + Send + 'static) -> T {
    net.run("g", action).join().unwrap()
}

struct Installed<'a> {
    rules: Option<Rules>,
    net: &'a Net,
}

impl Installed<'_> {
    fn change(&mut self, action: impl FnOnce(&mut Rules) + Send + 'static) {
        let mut rules = self.rules.take().unwrap();
        self.rules = Some(in_gateway(self.net, move || {
            action(&mut rules);
            rules
        }));
    }
    /// Leaves the rules, as if the process were killed.
    fn forget(mut self) {
        std::mem::forget(self.rules.take());
        in_gateway(self.net, close_claim);
    }
}

/// Closes the socket by which a gateway holds this namespace, as the end of a process does.
fn close_claim() {
    nix::unistd::close(claim()).unwrap();
}

/// The socket by which a gateway holds this namespace.
fn claim() -> std::os::fd::RawFd {
    let table = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap();
        let row = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        text.lines().map(row).collect::<Vec<_>>()
    };
    // Rows of queues begin with the number and the port of the socket; rows of sockets have the
    // protocol and the port second and third, and end with the inode.
    let (queues, sockets) = (table("netfilter/nfnetlink_queue"), table("netlink"));
    let claim = queues.iter().find(|row| row[0] == NfqueueConfig::CLAIM.to_string()).unwrap();
    let protocol = libc::NETLINK_NETFILTER.to_string();
    let socket = sockets.iter().find(|row| row[1] == protocol && row[2] == claim[1]).unwrap();
    let inode = socket.last().unwrap();
    let socket = format!("socket:[{inode}]");
    let mut files = std::fs::read_dir("/proc/self/fd").unwrap().map(|file| file.unwrap().path());
    let is_claim = |file: &PathBuf| file.read_link().is_ok_and(|link| link == Path::new(&socket));
    let file = files.find(is_claim).unwrap();
    file.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        let rules = self.rules.take();
        in_gateway(self.net, move || drop(rules));
    }
}

fn pass() -> Policy {
    Box::new(|_, _| Verdict::Pass)
}

fn segment(packet: &Intercepted) -> Segment<Vec<u8>> {
    decode(&packet.packet, packet.checksums).unwrap()
}

/// A download comes whole through the gateway, in packets of several segments.
fn a_download_goes_through(net: &Net, gateway: impl Fn(Policy) -> Gateway, config: &GatewayConfig) {
    const SIZE: usize = 20_000_000;
    for (fixed, mobile) in FIXED.into_iter().zip(MOBILE) {
        let (bytes, largest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, size) = (bytes.clone(), largest.clone());
        let mobile: IpAddr = mobile.parse().unwrap();
        let policy = move |packet: &Intercepted, _: &mut Nfqueue| {
            let segment = segment(packet);
            if segment.flow.dst.ip == mobile {
                count.fetch_add(segment.payload.len(), Ordering::Relaxed);
                size.fetch_max(segment.payload.len(), Ordering::Relaxed);
            }
            Verdict::Pass
        };
        let gateway = gateway(Box::new(policy));
        let _rules = install(net, config.clone());
        net.download(fixed, SIZE);
        drop(gateway);
        assert!(bytes.load(Ordering::Relaxed) >= SIZE, "{bytes:?} bytes came");
        assert!(largest.load(Ordering::Relaxed) > 20_000, "{largest:?} bytes at once");
    }
}

#[test]
fn a_download_goes_through_the_queue() {
    if !possible() {
        return;
    }
    let net = Net::new();
    a_download_goes_through(&net, |policy| Gateway::new(&net, policy), &always());
}

#[test]
fn packets_are_queued_with_the_interfaces_they_come_and_leave_by() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let index = |name: &str| {
        let file = format!("cat /sys/class/net/{name}/ifindex");
        net.sh("g", &file).trim().parse::<u32>().ok()
    };
    let (fixed, mobile) = (index("fixed"), index("mobile"));
    let to: IpAddr = MOBILE[0].parse().unwrap();
    let policy = move |packet: &Intercepted, _: &mut Nfqueue| {
        let down = segment(packet).flow.dst.ip == to;
        let wanted = if down { (fixed, mobile) } else { (mobile, fixed) };
        assert_eq!((packet.input, packet.output), wanted);
        Verdict::Pass
    };
    let gateway = Gateway::new(&net, Box::new(policy));
    let _rules = install(&net, always());
    net.download(FIXED[0], 1000);
    assert!(gateway.seen() > 0);
}

#[test]
fn a_dropped_packet_is_sent_again_and_its_neighbours_are_not_lost() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let (count, mut data) = (dropped.clone(), 0);
    let policy = move |packet: &Intercepted, _: &mut Nfqueue| {
        data += usize::from(!segment(packet).payload.is_empty());
        if data % 40 == 7 {
            data += 1;
            count.fetch_add(1, Ordering::Relaxed);
            return Verdict::Drop;
        }
        Verdict::Pass
    };
    let _gateway = Gateway::new(&net, Box::new(policy));
    let _rules = install(&net, always());
    let before = retransmitted(&net);
    net.download(FIXED[0], 4_000_000);
    assert!(dropped.load(Ordering::Relaxed) > 0);
    assert!(retransmitted(&net) - before >= dropped.load(Ordering::Relaxed));
}

/// Segments that the fixed host has sent again.
fn retransmitted(net: &Net) -> usize {
    let counters = net.sh("a", "nstat -asz TcpRetransSegs");
    counters
        .split_whitespace()
        .skip_while(|word| *word != "TcpRetransSegs")
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Drops what either host sends, every time, and sends the same on its behalf.
fn replace(packet: &Intercepted, path: &mut Nfqueue) -> Verdict {
    let segment = segment(packet);
    let egress = if MOBILE.contains(&segment.flow.dst.ip.to_string().as_str()) {
        Egress::Untracked
    } else {
        Egress::Tracked
    };
    if segment.payload.is_empty() {
        return Verdict::Pass;
    }
    let mut bytes = Vec::new();
    encode(&segment, &mut bytes).unwrap();
    path.inject(egress, &bytes).unwrap();
    Verdict::Drop
}

/// The gateway replaces every packet of both hosts, and all data arrive.
fn injected_segments_arrive(net: &Net, address: &str, gateway: Gateway, config: GatewayConfig) {
    let _rules = install(net, config);
    let (fixed, mobile) = net.connect(
        address,
        |mut stream| {
            let mut word = [0; 5];
            stream.read_exact(&mut word).unwrap();
            stream.write_all(b"world").unwrap();
            (word, stream.peer_addr().unwrap().ip())
        },
        |mut stream| {
            stream.write_all(b"hello").unwrap();
            let mut word = [0; 5];
            stream.read_exact(&mut word).unwrap();
            word
        },
    );
    let (heard, peer) = fixed.join().unwrap();
    assert_eq!((&heard, &mobile.join().unwrap()), (b"hello", b"world"));
    // Packets that the gateway injected did not come back to it: it saw SYNs, ACKs, data, FINs and
    // a retransmission or two.
    assert!(gateway.seen() < 40, "{}", gateway.seen());
    let translated = peer.to_string() != MOBILE[usize::from(peer.is_ipv6())];
    assert_eq!(translated, net.rules().contains("MASQUERADE"));
}

#[test]
fn injected_segments_arrive_in_a_router() {
    if !possible() {
        return;
    }
    let net = Net::new();
    for address in FIXED {
        injected_segments_arrive(&net, address, Gateway::new(&net, Box::new(replace)), always());
    }
}

#[test]
fn injected_segments_are_routed_by_their_source() {
    if !possible() {
        return;
    }
    let net = Net::new();
    // Only packets from one host to the other are routed.
    net.sh(
        "g",
        "for v in -4 -6; do
             one=10.99.1.0/24 two=10.99.2.0/24
             [ $v = -4 ] || one=fd99:1::/64 two=fd99:2::/64
             ip $v rule add from $one to $two lookup 7
             ip $v rule add from $two to $one lookup 7
             ip $v route add $one dev fixed table 7
             ip $v route add $two dev mobile table 7
             ip $v route del $one dev fixed
             ip $v route del $two dev mobile
         done",
    );
    for address in FIXED {
        injected_segments_arrive(&net, address, Gateway::new(&net, Box::new(replace)), always());
    }
}

#[test]
fn injected_segments_pass_through_the_translation_of_a_masquerading_router() {
    if !possible() {
        return;
    }
    let net = Net::new();
    net.sh(
        "g",
        "iptables -t nat -A POSTROUTING -o fixed -j MASQUERADE
         ip6tables -t nat -A POSTROUTING -o fixed -j MASQUERADE",
    );
    for address in FIXED {
        injected_segments_arrive(&net, address, Gateway::new(&net, Box::new(replace)), always());
    }
}

#[test]
fn injected_segments_arrive_in_a_bridge_with_an_address() {
    if !possible() {
        return;
    }
    let net = Net::new();
    net.sh(
        "g",
        "ip link add bridge type bridge && ip link set bridge up
         for port in fixed mobile; do ip address flush dev $port; ip link set $port master bridge; done
         ip address add 10.99.2.1/16 dev bridge",
    );
    for host in ["a", "b"] {
        net.sh(host, "ip -4 address flush dev gw; ip -6 address flush dev gw");
    }
    net.sh("a", &format!("ip address add {}/16 dev gw", FIXED[0]));
    net.sh("b", &format!("ip address add {}/16 dev gw", MOBILE[0]));
    let bridged = "echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables";
    if net.shell("g", bridged).output().is_ok_and(|output| !output.status.success()) {
        airtcp_testing::skip("br_netfilter (modprobe br_netfilter)");
        return;
    }
    let mut all = always();
    all.groups[0].members = behind("bridge");
    {
        let gateway = Gateway::new(&net, pass());
        let _rules = install(&net, all.clone());
        net.download(FIXED[0], 4_000_000);
        assert!(gateway.seen() > 0);
    }
    injected_segments_arrive(&net, FIXED[0], Gateway::new(&net, Box::new(replace)), all);
}

#[test]
fn without_a_listener_packets_pass_and_the_next_start_replaces_the_rules() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let before = net.rules();
    let gateway = Gateway::new(&net, pass());
    install(&net, always()).forget();
    let left = ours(&net);
    assert!(!left.is_empty());
    let (go, going) = std::sync::mpsc::channel();
    let (server, client) = net.connect(
        FIXED[0],
        move |mut stream| {
            stream.write_all(&pattern(1_000_000)).unwrap();
            going.recv().unwrap();
            stream.write_all(&pattern(1_000_000)).unwrap();
        },
        |mut stream| {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            bytes
        },
    );
    until(|| gateway.seen() > 5);
    drop(gateway);
    go.send(()).unwrap();
    server.join().unwrap();
    assert!(client.join().unwrap() == [pattern(1_000_000), pattern(1_000_000)].concat());

    let gateway = Gateway::new(&net, pass());
    let rules = install(&net, always());
    assert_eq!(ours(&net), left);
    net.download(FIXED[1], 1000);
    assert!(gateway.seen() > 0);
    drop(rules);
    assert_eq!(ours(&net), Vec::<String>::new());
    assert!(before.lines().filter(|line| line.starts_with("-A")).count() == 0);
}

/// The lines about our rules in the gateway.
fn ours(net: &Net) -> Vec<String> {
    let rules = net.rules();
    let ours = |line: &&str| line.to_lowercase().contains("airtcp") || line.contains("NFQUEUE");
    rules.lines().filter(ours).map(str::to_owned).collect()
}

#[test]
fn rules_of_others_stay_and_those_by_the_same_program_come_before() {
    if !possible() {
        return;
    }
    for iptables in ["iptables", "iptables-legacy"] {
        let net = Net::new();
        let others = format!(
            "{iptables} -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 500
             {iptables} -t raw -A OUTPUT -p udp -j ACCEPT
             {iptables} -t mangle -N AIRTCPISH"
        );
        net.sh("g", &others);
        let rules = format!("{iptables}-save | grep -e ^-A -e AIRTCPISH");
        let before = net.sh("g", &rules);
        let gateway = Gateway::new(
            &net,
            Box::new(move |packet, _| {
                let clamped = segment(packet).options.mss.is_none_or(|mss| mss == 500);
                assert!(clamped || iptables != "iptables");
                Verdict::Pass
            }),
        );
        let installed = install(&net, always());
        net.download(FIXED[0], 1000);
        assert!(gateway.seen() > 0);
        drop(installed);
        assert_eq!(net.sh("g", &rules), before);
    }
}

#[test]
fn a_reload_changes_the_rules() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let mut rules = install(&net, always());
    rules.change(|rules| {
        let ipv4 = group("all", &["10.98.0.0/16"], CopyMode::Always);
        rules.replace(&config(9, 10, vec![ipv4])).unwrap();
    });
    let after = ours(&net).join("\n");
    assert!(after.contains("10.98.0.0/16") && after.contains("--queue-num 9"), "{after}");
    assert!(!after.contains("10.99.") && !after.contains("fd99:"), "{after}");
    drop(rules);
    assert_eq!(ours(&net), Vec::<String>::new());
}

#[test]
fn of_groups_that_copy_when_fading_only_watched_mobiles_are_queued() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let gateway = Gateway::new(&net, pass());
    let group = group("all", &["10.99.2.0/24", "fd99:2::/64"], CopyMode::WhenFading);
    only_watched_mobiles_come(&net, &gateway, config(QUEUE, 1000, vec![group]));
}

/// Packets are queued while the mobiles are watched, and only then.
fn only_watched_mobiles_come(net: &Net, gateway: &Gateway, config: GatewayConfig) {
    let mut rules = install(net, config);
    let mut come = |watch: Option<bool>| {
        if let Some(on) = watch {
            let mobiles = MOBILE.map(host);
            rules.change(move |rules| {
                // Signals repeat.
                rules.watch(&mobiles, on).unwrap();
                rules.watch(&mobiles, on).unwrap();
            });
        }
        FIXED.map(|address| {
            let before = gateway.seen();
            net.download(address, 100_000);
            gateway.seen() > before
        })
    };
    assert_eq!(come(None), [false; 2]);
    assert_eq!(come(Some(true)), [true; 2]);
    assert_eq!(come(Some(false)), [false; 2]);
}

#[test]
fn a_watched_mobile_stays_watched_over_a_reload() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let fading = |addresses: &str| {
        config(QUEUE, 10, vec![group("fading", &[addresses], CopyMode::WhenFading)])
    };
    let mut rules = install(&net, fading("10.99.2.0/24"));
    rules.change(move |rules| {
        rules.watch(&[host(MOBILE[0])], true).unwrap();
        rules.replace(&fading("10.99.0.0/16")).unwrap();
    });
    let text = ours(&net).join("\n");
    assert!(text.contains("-A AIRTCP-WATCHED -s 10.99.2.2/32"), "{text}");
    rules.change(|rules| rules.watch(&[host(MOBILE[0])], false).unwrap());
    assert!(!ours(&net).join("\n").contains("-A AIRTCP-WATCHED"));
}

#[test]
fn of_changes_that_come_faster_than_rules_can_the_last_counts() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let fading = || config(QUEUE, 10, vec![group("all", &["10.99.0.0/16"], CopyMode::WhenFading)]);
    let mobile = |number: u8| MobileId::Host(IpAddr::from([10, 99, 2, number]));
    let watcher = in_gateway(&net, move || {
        let watcher =
            Watcher::new(Rules::install(&fading()).unwrap(), |error| panic!("{error}")).unwrap();
        for number in 0..200 {
            watcher.watch(mobile(number), true);
        }
        for number in 3..200 {
            watcher.watch(mobile(number), false);
        }
        // Done after all that was asked before.
        let (answer, done) = std::sync::mpsc::channel();
        watcher.replace(&fading(), move |result| answer.send(result).unwrap());
        done.recv().unwrap().unwrap();
        watcher
    });
    let watched = ours(&net).into_iter().filter(|line| line.starts_with("-A AIRTCP-WATCHED -s"));
    assert_eq!(watched.count(), 3);
    assert_eq!(watcher.repaired(), 0, "nobody else changes anything");
    drop(watcher);
    assert_eq!(ours(&net), Vec::<String>::new());
}

#[test]
fn a_second_gateway_in_a_namespace_is_refused() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let first = install(&net, always());
    let rules = ours(&net);
    let second = || in_gateway(&net, || Rules::install(&always()).map(drop));
    assert!(matches!(second(), Err(RulesError::Taken)));
    assert_eq!(ours(&net), rules, "they are as they were");
    // As a program that this process starts has one until it calls exec.
    let copy = in_gateway(&net, || {
        let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        pidfd_getfd(this, claim(), PidfdGetfdFlags::empty()).unwrap()
    });
    drop(first);
    assert!(second().is_ok());
    drop(copy);
}

#[test]
fn a_dry_run_shows_the_rules_and_changes_nothing() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let text = in_gateway(&net, || rules::text(&always()).unwrap());
    assert!(text.contains("10.99.2.0/24") && text.contains("fd99:2::/64"), "{text}");
    assert_eq!(ours(&net), Vec::<String>::new());
}

#[test]
fn a_gateway_that_does_not_read_holds_up_no_more_than_its_queue() {
    if !possible() {
        return;
    }
    const LENGTH: u32 = 1;
    let net = Net::new();
    let _rules = install(&net, config(QUEUE, LENGTH, always().groups));
    let path = in_gateway(&net, || Nfqueue::open(QUEUE, LENGTH).unwrap());
    // The first packet stays in the queue; its retransmission passes.
    net.download(FIXED[0], 1_000_000);
    drop(path);
}

#[test]
fn a_gateway_that_is_starting_holds_up_nothing() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let _rules = install(&net, config(QUEUE, 1, always().groups));
    let claimed = in_gateway(&net, || Nfqueue::claim(QUEUE, 1).unwrap());
    net.download(FIXED[0], 1_000_000);
    let mut queue = claimed.listen().unwrap();
    let mut taken = || {
        let mut batch = Vec::new();
        queue.receive(&[], Some(Duration::ZERO), &mut batch).unwrap();
        batch.len()
    };
    assert_eq!(taken(), 0);
    net.download(FIXED[0], 1_000_000);
    assert_eq!(taken(), 1);
}

#[test]
fn a_queue_in_use_is_refused_by_its_number() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let [told, other] = in_gateway(&net, || {
        let _first = Nfqueue::open(QUEUE, 10).unwrap();
        [Nfqueue::open(QUEUE, 10), Nfqueue::open(QUEUE + 1, 10)]
            .map(|opened| opened.err().map(|error: NfqueueError| error.to_string()))
    });
    let told = told.unwrap();
    assert!(told.starts_with("queue 7 is in use by another process"), "{told}");
    assert_eq!(other, None);
}

/// The variable that makes [`without_privileges`] do something.
const ROLE: &str = "AIRTCP_DATAPATH_TEST_ROLE";

#[test]
fn without_privileges_one_line_says_what_is_missing() {
    if std::env::var(ROLE).is_ok() {
        println!("{}", Nfqueue::open(QUEUE, 10).unwrap_err());
        println!("{}", Rules::install(&always()).unwrap_err());
        return;
    }
    if !possible() {
        return;
    }
    let net = Net::new();
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "{ROLE}=1 exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all {} \
         --exact without_privileges_one_line_says_what_is_missing --nocapture",
        program.display()
    );
    let told = net.sh("g", &script);
    assert_eq!(told.matches("CAP_NET_ADMIN").count(), 2, "{told}");
}
