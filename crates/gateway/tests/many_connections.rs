//! Many connections of one mobile through an outage: what the gateway sends for those that are
//! closed, and how often it asks for those that are open.

mod common;

use airtcp_core::{Addr, Duration, Flags, Flow, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::{MobileId, Side};
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::dispatch::{Dispatcher, Effect, Interfaces};
use airtcp_gateway::packets::{Intercepted, PacketId, Verdict};
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use airtcp_gateway::status::Status;
use airtcp_wire::{Checksums, decode, encode};
use common::Forgetful;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

const WAKE: &str = "mechanism = \"wake\"";
const HOLDING: [&str; 2] = [
    "mechanism = \"m-tcp-plus\"\nfifo = \"4 MiB\"\nmax-down = \"24 h\"\nprobe-interval = \"100 ms\"",
    "mechanism = \"holdover\"\nfifo = \"4 MiB\"\nmax-down = \"24 h\"\nprobe-interval = \"100 ms\"",
];

const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));

/// From the fixed host to the mobile.
fn flow(n: u16) -> Flow {
    let server = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    Flow { src: Addr::new(server, 443), dst: Addr::new(MOBILE, 10_000 + n) }
}

/// A segment of connection `n`. Both hosts' numbers begin at 0.
fn segment(n: u16, from: Side, numbers: (u32, u32), len: usize, flags: Flags) -> Segment<Vec<u8>> {
    let (seq, ack) = (SeqNum(numbers.0), Some(SeqNum(numbers.1)));
    let (flow, payload) = (from.to_mobile(flow(n)), vec![7; len]);
    Segment { flow, seq, ack, flags, payload, window: 500, ..Segment::default() }
}

/// A connection on which the server answered a request.
fn exchange(n: u16) -> [Segment<Vec<u8>>; 3] {
    [
        segment(n, Side::Mobile, (1, 1), 100, Flags::empty()),
        segment(n, Side::Fixed, (1, 101), 500, Flags::empty()),
        segment(n, Side::Mobile, (101, 501), 0, Flags::empty()),
    ]
}

/// Its end: every other server closes first.
fn close(n: u16) -> [Segment<Vec<u8>>; 3] {
    let is_server_first = n.is_multiple_of(2);
    let [first, second] =
        if is_server_first { [Side::Fixed, Side::Mobile] } else { [Side::Mobile, Side::Fixed] };
    let next = |side| if side == Side::Fixed { 501 } else { 101 };
    let (one, two) = (next(first), next(second));
    [
        segment(n, first, (one, two), 0, Flags::FIN),
        segment(n, second, (two, one + 1), 0, Flags::FIN),
        segment(n, first, (one + 1, two + 1), 0, Flags::empty()),
    ]
}

struct Gateway {
    dispatcher: Dispatcher,
    now: Instant,
    /// Packets wait for the gateway, as those of M-TCP+ and holdover in an outage.
    waits: bool,
    /// Packets that went on to the mobile as they came.
    passed: usize,
    effects: Vec<Effect>,
}

impl Gateway {
    fn new(mechanism: &str) -> Self {
        let text =
            format!("[[mobile]]\nname = \"phones\"\naddresses = [\"10.0.0.3\"]\n{mechanism}\n");
        let config = GatewayConfig::parse("gateway.toml", &text).unwrap();
        let keeper = Box::new(Forgetful);
        let dispatcher = Dispatcher::new(&config, (1, 2), &Interfaces::new(), keeper).unwrap();
        Self {
            dispatcher,
            now: Instant::from_secs(1),
            waits: false,
            passed: 0,
            effects: Vec::new(),
        }
    }

    fn pass(&mut self, segment: &Segment<Vec<u8>>) {
        let mut packet = Vec::new();
        encode(segment, &mut packet).unwrap();
        let intercepted = Intercepted {
            id: self.waits.then_some(PacketId(1)),
            packet: packet.into(),
            input: None,
            output: None,
            checksums: Checksums::Verify,
            datagram: None,
            silence: None,
            is_closing: false,
        };
        let verdict = self.dispatcher.on_packet(self.now, &intercepted, &mut self.effects);
        if segment.flow.dst.ip == MOBILE && verdict == Verdict::Pass {
            self.passed += 1;
        }
        self.dispatcher.settle();
    }

    fn signal(&mut self, signal: LinkSignal) {
        let mobile = MobileId::Host(MOBILE);
        let signal = MobileSignal { mobile, signal, source: SignalSource::Agent };
        self.dispatcher.on_signal(self.now, signal, &mut self.effects);
        self.dispatcher.settle();
    }

    /// Lets time pass.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.dispatcher.next_deadline().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.dispatcher.on_timer(self.now, &mut self.effects);
            self.dispatcher.settle();
        }
        self.now = end;
    }

    /// Segments that were sent since the last call.
    fn sent(&mut self) -> Vec<Segment<Vec<u8>>> {
        let packets = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Inject { packet, .. } => Some(packet),
            _ => None,
        });
        packets.map(|packet| decode(&packet, Checksums::Verify).unwrap()).collect()
    }

    fn sent_to_mobile(&mut self) -> Vec<Segment<Vec<u8>>> {
        self.sent().into_iter().filter(|segment| segment.flow.dst.ip == MOBILE).collect()
    }

    /// Number of connections in each state, as `airtcp gateway status` lists them.
    fn states(&self) -> BTreeMap<String, u64> {
        let mut states = BTreeMap::new();
        for flow in self.dispatcher.status(self.now).flows {
            *states.entry(flow.state).or_default() += 1;
        }
        states
    }
}

/// Connections in this state, and in no other.
fn all(state: &str, count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(state.to_owned(), count)])
}

const SECOND: Duration = Duration::from_secs(1);

/// An outage of ten seconds, one second after 100 connections were closed: the states of
/// connections in it, and packets that the gateway sent for them. It is shown all packets, or those
/// from the network alone.
fn outage_of_100_closed(mechanism: &str, are_all_shown: bool) -> (BTreeMap<String, u64>, usize) {
    let mut gateway = Gateway::new(mechanism);
    let is_shown = |segment: &Segment<_>| are_all_shown || segment.flow.dst.ip == MOBILE;
    let segments = (0..100).flat_map(exchange).chain((0..100).flat_map(close));
    segments.filter(is_shown).for_each(|segment| gateway.pass(&segment));
    gateway.wait(SECOND);
    gateway.signal(LinkSignal::Down);
    gateway.wait(SECOND * 10);
    let states = gateway.states();
    gateway.signal(LinkSignal::Up);
    gateway.wait(Duration::from_millis(50));
    // The mobile is heard, on another connection.
    gateway.pass(&exchange(100)[0]);
    gateway.wait(SECOND * 2);
    (states, gateway.sent().len())
}

#[test]
fn for_closed_connections_wake_sends_nothing_and_lists_none() {
    assert_eq!(outage_of_100_closed(WAKE, true), (BTreeMap::new(), 0));
}

#[test]
fn closed_connections_of_which_only_one_direction_is_shown_are_woken_after_an_outage() {
    let (states, sent) = outage_of_100_closed(WAKE, false);
    assert_eq!(states, all("frozen", 100));
    // One packet of each at the end, and retries of some before.
    assert!((100..300).contains(&sent), "{sent}");
}

#[test]
fn for_closed_connections_m_tcp_plus_and_holdover_send_nothing_and_list_them_as_closed() {
    for mechanism in HOLDING {
        assert_eq!(outage_of_100_closed(mechanism, true), (all("closed", 100), 0), "{mechanism}");
    }
}

/// Connections of one mobile that have something outstanding when it goes away.
const OPEN: u16 = 1_500;

fn with_open(mechanism: &str) -> Gateway {
    let mut gateway = Gateway::new(mechanism);
    for n in 0..OPEN {
        exchange(n).iter().for_each(|segment| gateway.pass(segment));
    }
    for n in 0..OPEN {
        gateway.pass(&segment(n, Side::Fixed, (501, 101), 500, Flags::empty()));
    }
    gateway.sent();
    gateway.passed = 0;
    gateway
}

#[test]
fn a_mobile_that_is_down_is_probed_as_often_with_1500_connections_as_with_one() {
    let port = |segment: &Segment<_>| segment.flow.dst.port;
    for mechanism in HOLDING {
        let mut gateway = with_open(mechanism);
        gateway.waits = true;
        gateway.signal(LinkSignal::Down);
        gateway.wait(SECOND * 4);
        let probed: Vec<_> = gateway.sent_to_mobile().iter().map(port).collect();
        // From 500 ms on every 100 ms.
        assert_eq!(probed.len(), 36, "{mechanism}");
        assert_eq!(gateway.states(), all("frozen", Status::LISTED as u64), "{mechanism}");
        // It is back and answers the first probe.
        let n = probed[0] - flow(0).dst.port;
        gateway.pass(&segment(n, Side::Mobile, (101, 501), 0, Flags::empty()));
        gateway.wait(Duration::ZERO);
        let resent: BTreeSet<_> = gateway.sent_to_mobile().iter().map(port).collect();
        assert_eq!(resent.len(), usize::from(OPEN), "{mechanism}");
        assert_eq!(gateway.states(), all("resuming", Status::LISTED as u64), "{mechanism}");
    }
}

/// Seconds after the beginning of an outage at which a Linux server probes a closed window, or sends
/// again what it was not acknowledged for: its timer, of 0.2 s at first, doubles.
fn attempts(end: f64) -> impl Iterator<Item = f64> {
    let each = |n: i32| 0.2 * (f64::from(n).exp2() - 1.0);
    (1..).map(each).take_while(move |&at| at < end)
}

#[test]
fn a_mobile_that_is_down_is_not_sent_what_1500_servers_probe_with() {
    for mechanism in HOLDING {
        let mut gateway = with_open(mechanism);
        gateway.waits = true;
        gateway.signal(LinkSignal::Down);
        gateway.wait(Duration::ZERO);
        gateway.sent();
        let begin = gateway.now;
        let (mut answers, mut to_mobile) = (0, 0);
        for at in attempts(60.0) {
            gateway.wait((begin + Duration::from_secs_f64(at)).since(gateway.now));
            to_mobile += gateway.sent_to_mobile().len();
            for n in 0..OPEN {
                // Without anything outstanding an empty segment with a number that was acknowledged
                // (Linux), else the first one again.
                let (seq, len) =
                    if mechanism.contains("m-tcp-plus") { (1000, 0) } else { (501, 500) };
                gateway.pass(&segment(n, Side::Fixed, (seq, 101), len, Flags::empty()));
            }
            let is_answer = |segment: &Segment<_>| segment.flow.src.ip == MOBILE;
            let (answered, probed): (Vec<_>, Vec<_>) =
                gateway.sent().into_iter().partition(is_answer);
            (answers, to_mobile) = (answers + answered.len(), to_mobile + probed.len());
        }
        gateway.wait((begin + SECOND * 60).since(gateway.now));
        to_mobile += gateway.sent_to_mobile().len() + gateway.passed;
        // From 500 ms on every 100 ms, as without the servers' probes.
        assert_eq!((answers, to_mobile), (8 * usize::from(OPEN), 596), "{mechanism}");
        // It is back and answers the next probe.
        gateway.wait(SECOND);
        let port = gateway.sent_to_mobile()[0].flow.dst.port;
        gateway.pass(&segment(port - 10_000, Side::Mobile, (101, 501), 0, Flags::empty()));
        gateway.wait(Duration::ZERO);
        assert_eq!(gateway.states(), all("resuming", Status::LISTED as u64), "{mechanism}");
    }
}

#[test]
fn a_silent_mobile_is_asked_as_often_with_1500_connections_as_with_one() {
    let mut gateway = with_open(WAKE);
    gateway.wait(SECOND * 4);
    assert_eq!(gateway.states(), all("frozen", Status::LISTED as u64));
    // From 300 ms on every 100 ms.
    assert_eq!(gateway.sent().len(), 38);
    // It is back and answers one.
    let from = gateway.now;
    gateway.pass(&segment(0, Side::Mobile, (101, 1001), 0, Flags::empty()));
    let mut woken = BTreeSet::new();
    while woken.len() < usize::from(OPEN) && gateway.now < from + SECOND * 2 {
        gateway.wait(Duration::from_millis(10));
        woken.extend(gateway.sent().iter().map(|segment| segment.flow.dst.port));
    }
    assert_eq!(woken.len(), usize::from(OPEN));
    // 16 every 10 ms.
    assert_eq!(gateway.now.since(from), Duration::from_millis(930));
}
