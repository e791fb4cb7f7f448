//! Carriers, neighbours and an agent for real: a gateway and a mobile in network namespaces, joined
//! by a veth pair.

#![cfg(target_os = "linux")]

use airtcp_core::LinkSignal::{self, Down, Fading, Up};
use airtcp_edge::{MTcpPlusConfig, MechanismConfig, MobileId};
use airtcp_gateway::config::{AgentConfig, CopyMode, Group, Members, Signals};
use airtcp_gateway::signals::keys::KeyName;
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use airtcp_linux::agent::program::Program as Source;
use airtcp_linux::agent::{self, AgentConfig as Reporter, Answered};
use airtcp_linux::command::{Command, Inbox, channel};
use airtcp_linux::signals::{self, Running, key_file};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// True if these tests can run here.
fn possible() -> bool {
    let made = Program::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    let possible = made.is_ok_and(|status| status.success());
    if !possible {
        airtcp_testing::skip("the right to make network namespaces");
    }
    possible
}

fn ip(line: &str) {
    let output = Program::new("ip").args(line.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Moves the calling thread to a namespace.
fn enter(name: &str) {
    let file = File::open(format!("/run/netns/{name}")).unwrap();
    setns(file, CloneFlags::CLONE_NEWNET).unwrap();
}

/// The gateway's interface `wlan0`, 10.0.0.1, and the mobile behind it, 10.0.0.7.
struct Net {
    gateway: String,
    mobile: String,
}

impl Net {
    fn new(what: &str) -> Self {
        let name = |end| format!("signals-{what}-{end}-{}", std::process::id());
        let net = Self { gateway: name("gw"), mobile: name("mh") };
        ip(&format!("netns add {}", net.gateway));
        ip(&format!("netns add {}", net.mobile));
        net.join();
        net
    }

    fn join(&self) {
        let Self { gateway, mobile } = self;
        ip(&format!("-n {gateway} link add wlan0 type veth peer name eth0 netns {mobile}"));
        ip(&format!("-n {gateway} address add 10.0.0.1/24 dev wlan0"));
        ip(&format!("-n {mobile} address add 10.0.0.7/24 dev eth0"));
        ip(&format!("-n {gateway} link set wlan0 up"));
        ip(&format!("-n {mobile} link set eth0 up"));
    }

    /// Does `work` in the gateway's namespace.
    fn at_gateway<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                enter(&self.gateway);
                work()
            });
            inside.join().unwrap()
        })
    }

    /// Sends a packet to the mobile, for which the kernel needs its link-layer address.
    fn send(&self) {
        self.at_gateway(|| {
            let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
            socket.send_to(b"?", "10.0.0.7:9").unwrap();
        });
    }

    fn start(&self, signals: &Signals) -> (Running, Inbox) {
        let group = Group {
            name: "mobiles".to_owned(),
            members: Members::Mobiles {
                addresses: vec!["10.0.0.0/24".parse().unwrap()],
                interfaces: vec!["wlan0".parse().unwrap()],
            },
            mechanism: MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
            copy: CopyMode::Always,
            fast_path: Default::default(),
        };
        let (handle, inbox) = channel().unwrap();
        (
            self.at_gateway(|| {
                signals::start(signals, &[group], Path::new("/nowhere"), handle).unwrap()
            }),
            inbox,
        )
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in [&self.gateway, &self.mobile] {
            let _ = Program::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// Waits for the next signal about 10.0.0.7, which must be this one.
fn expect(inbox: &Inbox, signal: LinkSignal, source: SignalSource) {
    let said = loop {
        match inbox.commands.recv_timeout(Duration::from_secs(8)) {
            Ok(Command::Signal(said)) => break said,
            // The index of the mobile's interface.
            Ok(Command::Interface(..)) => {}
            command => panic!("{command:?} instead of {signal:?}"),
        }
    };
    let mobile = MobileId::Host("10.0.0.7".parse().unwrap());
    assert_eq!(said, MobileSignal { mobile, signal, source });
}

#[test]
fn a_carrier_that_is_lost_and_found_is_told() {
    if !possible() {
        return;
    }
    let net = Net::new("carrier");
    net.send();
    let (_running, inbox) = net.start(&Signals { carrier: true, ..Signals::default() });
    expect(&inbox, Up, SignalSource::Carrier);
    ip(&format!("-n {} link set eth0 down", net.mobile));
    expect(&inbox, Down, SignalSource::Carrier);
    ip(&format!("-n {} link set eth0 up", net.mobile));
    expect(&inbox, Up, SignalSource::Carrier);
    ip(&format!("-n {} link set wlan0 down", net.gateway));
    expect(&inbox, Down, SignalSource::Carrier);
}

/// By itself, the kernel looks for a neighbour once a second.
#[test]
fn a_neighbour_that_was_sought_without_a_carrier_is_found_when_it_is_back() {
    if !possible() {
        return;
    }
    let net = Net::new("sought");
    net.send();
    let (_running, inbox) = net.start(&Signals { carrier: true, ..Signals::default() });
    expect(&inbox, Up, SignalSource::Carrier);
    ip(&format!("-n {} link set eth0 down", net.mobile));
    expect(&inbox, Down, SignalSource::Carrier);
    net.send();
    ip(&format!("-n {} link set eth0 up", net.mobile));
    let back = Instant::now();
    expect(&inbox, Up, SignalSource::Carrier);
    let is_found = || {
        let shown =
            Program::new("ip").args(["-n", &net.gateway, "neigh", "show"]).output().unwrap();
        String::from_utf8(shown.stdout).unwrap().contains("REACHABLE")
    };
    while !is_found() {
        assert!(back.elapsed() < Duration::from_millis(500), "{:?}", back.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_interface_may_vanish_and_come_back() {
    if !possible() {
        return;
    }
    let net = Net::new("vanish");
    net.send();
    let (_running, inbox) = net.start(&Signals { carrier: true, ..Signals::default() });
    expect(&inbox, Up, SignalSource::Carrier);
    ip(&format!("-n {} link delete wlan0", net.gateway));
    expect(&inbox, Down, SignalSource::Carrier);
    net.join();
    expect(&inbox, Up, SignalSource::Carrier);
}

#[test]
fn a_neighbour_that_fails_is_found_again_without_traffic() {
    if !possible() {
        return;
    }
    let net = Net::new("neighbour");
    net.at_gateway(|| {
        // Not to wait 3 s for each failure.
        for (key, value) in [("mcast_solicit", "1"), ("retrans_time_ms", "100")] {
            std::fs::write(format!("/proc/sys/net/ipv4/neigh/wlan0/{key}"), value).unwrap();
        }
    });
    let (_running, inbox) = net.start(&Signals { neighbour: true, ..Signals::default() });
    ip(&format!("-n {} address flush dev eth0", net.mobile));
    net.send();
    expect(&inbox, Down, SignalSource::Neighbour);
    ip(&format!("-n {} address add 10.0.0.7/24 dev eth0", net.mobile));
    let back = Instant::now();
    expect(&inbox, Up, SignalSource::Neighbour);
    assert!(back.elapsed() < Duration::from_secs(5), "{:?}", back.elapsed());
}

#[test]
fn an_agent_whose_network_was_gone_is_heard_when_it_is_back() {
    if !possible() {
        return;
    }
    let net = Net::new("agent");
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let name = KeyName::new("phone").unwrap();
    let key = key_file::generate(name, vec!["10.0.0.7/32".parse().unwrap()]).unwrap();
    key_file::write(&key, &keys).unwrap();
    let agent = Some(AgentConfig { listen: "10.0.0.1:0".parse().unwrap(), keys });
    let (running, inbox) = net.start(&Signals { agent, ..Signals::default() });

    let gateway = running.agent_address().unwrap();
    let patience = airtcp_core::Duration::from_secs(5);
    let config = Reporter::new(gateway, key, Vec::new(), patience).unwrap();
    let fifo = folder.path().join("told");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let told = format!("cat {}", fifo.display());
    let (answers, answered) = mpsc::channel();
    let mobile = net.mobile.clone();
    let agent = std::thread::spawn(move || {
        enter(&mobile);
        let mut source = Source::start(&told).unwrap();
        agent::run(config, &mut source, &mut |answer| answers.send(answer).unwrap())
    });
    let mut tell = File::options().write(true).open(&fifo).unwrap();
    writeln!(tell, "fading").unwrap();
    expect(&inbox, Fading, SignalSource::Agent);
    let taken = answered.recv_timeout(Duration::from_secs(5)).unwrap();
    assert!(matches!(taken, Answered::Taken(Fading, _)), "{taken:?}");

    ip(&format!("-n {} address flush dev eth0", net.mobile));
    writeln!(tell, "down").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(!agent.is_finished(), "to have no network is no reason to end");
    // The mobile comes back with another address, and reports it.
    writeln!(tell, "up").unwrap();
    ip(&format!("-n {} address add 10.0.0.9/24 dev eth0", net.mobile));
    let said = inbox.commands.recv_timeout(Duration::from_secs(8));
    match said {
        // Up came to the agent after the address.
        Ok(Command::Signal(said)) if said.signal == Down => expect(&inbox, Up, SignalSource::Agent),
        Ok(Command::Signal(said)) => assert_eq!(said.signal, Up),
        other => panic!("{other:?}"),
    }
    drop(tell);
    agent.join().unwrap().unwrap();
}
