//! All mobiles go away and come back at one instant, and nobody else notices.
//!
//! The connections are made of raw packets: 102,400 of them by sockets would take both processors
//! for minutes. Servers and mobiles are addresses behind hosts that do not have them, so nobody
//! answers.

use crate::control::Gateway;
use crate::host::Host;
use crate::hostile::send_raw;
use crate::outages::is_long_possible;
use airtcp_core::{Addr, Flow, LinkSignal, Segment, SeqNum};
use airtcp_gateway::status::Status;
use airtcp_testing::skip;
use airtcp_wire::encode;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

const MOBILES: u32 = 256;
const CONNECTIONS: u16 = 400;
const ALL: usize = MOBILES as usize * CONNECTIONS as usize;
/// Payload bytes under way on each connection.
const SIZE: usize = 1000;
/// The mobiles that go away: half of them with one signal.
const HALVES: [&str; 2] = ["10.77.0.0/24", "10.77.1.0/24"];
/// A mobile that stays in reach, and whose packets all wait for the gateway.
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 9, 9));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Bound for a busy machine; benches/gateway/README.md has measurements.
const LONGEST_DELAY: Duration = Duration::from_millis(500);
const ALL_RESUMED: Duration = Duration::from_secs(8);

/// A host with the servers, the gateway, and a host with the mobiles.
struct Bed {
    // In this order they go.
    daemon: Gateway,
    servers: Host,
    mobiles: Host,
    _gateway: Host,
    _files: tempfile::TempDir,
}

impl Bed {
    fn new(mechanism: &str) -> Self {
        let [servers, gateway, mobiles] = ["servers", "gateway", "mobiles"].map(Host::new);
        for (host, wire, net, beyond) in [
            (&servers, "left", "10.7.0", "192.0.2.0/24"),
            (&mobiles, "right", "10.8.0", "10.77.0.0/16"),
        ] {
            let link = ["link", "add", wire, "type", "veth", "peer", "name", "wire", "netns"];
            gateway.ip(&[&link[..], &[host.name()]].concat());
            for (end, device, last) in [(&gateway, wire, "1"), (host, "wire", "2")] {
                end.ip(&["addr", "add", &format!("{net}.{last}/24"), "dev", device]);
                end.ip(&["link", "set", device, "up"]);
            }
            let [near, far] = ["1", "2"].map(|last| format!("{net}.{last}"));
            host.ip(&["route", "add", "default", "via", &near]);
            gateway.ip(&["route", "add", beyond, "via", &far]);
        }
        gateway.sysctl("ipv4/ip_forward", "1");
        let files = tempfile::tempdir_in("/dev/shm").unwrap();
        let config = format!(
            "limits = {{ flows = 200000, memory = \"1 GiB\" }}\n\
             [[mobile]]\nname = \"phones\"\naddresses = {HALVES:?}\nmechanism = \"{mechanism}\"\n\
             [[mobile]]\nname = \"other\"\naddresses = [\"{OTHER}\"]\nmechanism = \"holdover\"\nfast-path = \"off\"\n"
        );
        let daemon = Gateway::start(&gateway, &config, files.path(), &[]);
        Self { daemon, servers, mobiles, _gateway: gateway, _files: files }
    }

    /// Opens all connections: the gateway meets both ends of each, and data are under way.
    fn connect(&self) {
        let count = |status: &Status| status.groups[0].flows as usize;
        for mobile in 0..MOBILES {
            let flows = (0..CONNECTIONS).map(|n| flow(mobile, n));
            send_raw(&self.mobiles, flows.clone().map(|flow| packet(flow.reversed(), 0)));
            send_raw(&self.servers, flows.map(|flow| packet(flow, SIZE)));
            if mobile % 16 == 15 {
                // As fast as the gateway takes the copies.
                let known = (mobile as usize + 1) * usize::from(CONNECTIONS);
                self.daemon.wait_until(|status| count(status) == known);
            }
        }
    }

    /// Sends the gateway a signal about all mobiles.
    fn signal(&self, signal: LinkSignal) {
        for half in HALVES {
            self.daemon.signal(half, signal);
        }
    }

    /// Sends a packet to the other mobile each millisecond until `end`.
    fn probe<'a>(&'a self, scope: &'a Scope<'a, '_>, end: &'a AtomicBool) {
        scope.spawn(move || {
            // A packet that is late before it is sent says nothing.
            rustix::process::setpriority_process(None, -10).unwrap();
            let probes = std::iter::from_fn(|| {
                thread::sleep(Duration::from_millis(1));
                (!end.load(Ordering::Relaxed)).then(|| {
                    let (src, dst) = (Addr::new(SERVER, 443), Addr::new(OTHER, 443));
                    let payload = now().as_nanos().to_be_bytes().to_vec();
                    let seq = SeqNum(0);
                    segment(Segment { flow: Flow { src, dst }, seq, payload, ..Segment::default() })
                })
            });
            send_raw(&self.servers, probes);
        });
    }

    /// Takes note, until `end`, of what reaches the mobiles.
    fn watch(&self, end: &AtomicBool) -> Seen {
        let protocol = Protocol::from(i32::from((libc::ETH_P_IP as u16).to_be()));
        let socket = || Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol)).unwrap();
        let socket = self.mobiles.within(socket);
        setsockopt(&socket, RcvBufForce, &(256 << 20)).unwrap();
        setsockopt(&socket, ReceiveTimestampns, &true).unwrap();
        let mut seen = Seen::default();
        let mut packet = [0; 2048];
        while !end.load(Ordering::Relaxed) {
            let mut control = nix::cmsg_space!(TimeSpec);
            let mut vectors = [IoSliceMut::new(&mut packet)];
            let (fd, flags) = (socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
            let Ok(received) = recvmsg::<()>(fd, &mut vectors, Some(&mut control), flags) else {
                // If it waited on the socket, each of the gateway's packets would have to wake it.
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let at = received.cmsgs().unwrap().find_map(|one| match one {
                ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
                _ => None,
            });
            let length = received.bytes;
            seen.note(at.unwrap(), &packet[..length]);
        }
        seen
    }
}

/// Packets that reached the mobiles.
#[derive(Default)]
struct Seen {
    /// Arrival of the first packet of each connection.
    first: BTreeMap<(IpAddr, u16), Duration>,
    /// Longest way of a packet to the other mobile, and how many there were.
    longest: Duration,
    probes: usize,
}

impl Seen {
    fn note(&mut self, at: Duration, packet: &[u8]) {
        let to = IpAddr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap());
        if to == OTHER {
            let sent = u128::from_be_bytes(packet[packet.len() - 16..].try_into().unwrap());
            let sent = Duration::from_nanos(sent as u64);
            self.longest = self.longest.max(at.saturating_sub(sent));
            self.probes += 1;
        } else if packet.len() > SIZE {
            let port = u16::from_be_bytes([packet[22], packet[23]]);
            self.first.entry((to, port)).or_insert(at);
        }
    }
}

fn flow(mobile: u32, connection: u16) -> Flow {
    let [half, last] = [mobile / (MOBILES / 2), 1 + mobile % (MOBILES / 2)].map(|n| n as u8);
    let mobile = IpAddr::V4(Ipv4Addr::new(10, 77, half, last));
    Flow { src: Addr::new(SERVER, 443), dst: Addr::new(mobile, 1024 + connection) }
}

fn packet(flow: Flow, len: usize) -> Vec<u8> {
    let (seq, payload) = (SeqNum(0), vec![7; len]);
    segment(Segment { flow, seq, payload, ..Segment::default() })
}

fn segment(segment: Segment<Vec<u8>>) -> Vec<u8> {
    let mut packet = Vec::new();
    encode(&Segment { ack: Some(SeqNum(0)), window: 1000, ..segment }, &mut packet).unwrap();
    packet
}

/// On the clock of the kernel's times of arrival.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_REALTIME).unwrap().into()
}

/// Does something, and takes note of what reaches the mobiles for some seconds.
fn during(bed: &Bed, act: impl FnOnce() + Send) -> Seen {
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        bed.probe(scope, &end);
        let watch = scope.spawn(|| bed.watch(&end));
        thread::sleep(Duration::from_millis(200));
        let acting = scope.spawn(act);
        thread::sleep(ALL_RESUMED);
        end.store(true, Ordering::Relaxed);
        acting.join().unwrap();
        watch.join().unwrap()
    })
}

fn expect_unnoticed(mechanism: &str) {
    if !is_long_possible() {
        return;
    }
    let bed = Bed::new(mechanism);
    if bed.daemon.status().groups[0].path != "mirror" {
        skip("CAP_BPF and BPF programs at netfilter's hooks (Linux 6.4)");
        return;
    }
    let child = bed.daemon.child();
    bed.connect();
    let down = during(&bed, || bed.signal(LinkSignal::Down));
    let mut up = Duration::ZERO;
    let resumed = during(&bed, || {
        up = now();
        bed.signal(LinkSignal::Up);
    });
    let times = resumed.first.values().map(|at| at.saturating_sub(up));
    let (first, last) = (times.clone().min(), times.max());
    println!(
        "{mechanism}: {} connections resumed, the first after {first:.3?}, the last after {last:.3?}; others' packets \
         came after {:.1?} at most when all went down ({}), {:.1?} when all came back ({})",
        resumed.first.len(),
        down.longest,
        down.probes,
        resumed.longest,
        resumed.probes,
    );
    assert_eq!(bed.daemon.child(), child, "it was killed: {}", bed.daemon.log());
    assert_eq!(resumed.first.len(), ALL);
    assert!(last.is_some_and(|last| last < ALL_RESUMED));
    assert!(down.longest.max(resumed.longest) < LONGEST_DELAY && resumed.probes > 1000);
}

#[test]
fn two_hundred_fifty_six_mobiles_that_go_and_come_back_at_once_hold_nobody_up() {
    for mechanism in ["m-tcp-plus", "holdover"] {
        expect_unnoticed(mechanism);
    }
}
