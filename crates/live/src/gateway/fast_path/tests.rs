//! The programs in the kernel against the reference, packet by packet. 10.0.0.0/24 and fd00::/64 are the mobiles.
//!
//! The same packets go through a [`Shell`] with the mechanism of `airtcp-edge`, and by BPF_PROG_TEST_RUN through the programs.
//! Verdicts, answers and counters must be the same.

use super::program::Program;
use super::*;
use crate::gateway::command::Status;
use crate::gateway::config::{CopyMode, DataPathConfig, GatewayConfig, Group, Limits, Signals};
use crate::gateway::datapath::{Intercepted, PacketId, Verdict};
use crate::gateway::driver::now;
use crate::gateway::payload::SharedBytes;
use crate::gateway::shell::{Effect, Keeper, Shell};
use airtcp_core::{Bytes, Duration, Instant};
use airtcp_edge::{MechanismConfig, Side, m_tcp_plus};
use airtcp_wire::{Checksums, decode_with};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// Test runs are on the loopback device, the first interface of a namespace.
const LOOPBACK: u32 = 1;
const IDLE: Duration = Duration::from_secs(300);
const FLOWS: usize = 10;

const FIXED: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
const MOBILE: [&str; 2] = ["10.0.0.7", "fd00::7"];

fn config(threshold: u32) -> GatewayConfig {
    let group = Group {
        name: "phones".to_owned(),
        addresses: ["10.0.0.0/24", "fd00::/64"].map(|net| net.parse().unwrap()).into(),
        interfaces: vec!["lo".to_owned()],
        mechanism: MechanismConfig::PacketControl { threshold },
        copy: CopyMode::Always,
        fast_path: FastPathMode::Auto,
    };
    GatewayConfig {
        data_path: DataPathConfig::Nfqueue { queue: 1, length: 100 },
        state: "/nowhere".into(),
        control: "/nowhere".into(),
        limits: Limits { memory: Bytes(1 << 20), flows: FLOWS, idle: IDLE },
        groups: vec![group],
        signals: Signals::default(),
        metrics: None,
        record: None,
    }
}

/// Packet Control promises nothing.
struct NoKeeper;

impl Keeper for NoKeeper {
    fn write(&mut self, _: &str, _: &m_tcp_plus::Note<SharedBytes>) -> io::Result<()> {
        unreachable!("Packet Control promises nothing")
    }
    fn settle(&mut self) {}
}

/// The programs, loaded; `None`, said on standard error, where that is not permitted.
fn loaded(flows: usize) -> Option<Program> {
    match Program::load(flows) {
        Ok(program) => Some(program),
        Err(error) if error.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
            let _ = writeln!(io::stderr(), "skipped: needs CAP_BPF and CAP_NET_ADMIN: {error}");
            None
        }
        Err(error) => panic!("the programs do not load: {error}"),
    }
}

/// A segment as bytes.
#[derive(Clone, Debug)]
struct Packet {
    from: Side,
    ipv6: bool,
    /// Of the mobile.
    port: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    /// Filled up to a multiple of four with ends of the list.
    options: Vec<u8>,
    payload: usize,
    damaged: bool,
}

const ACK: u8 = 0x10;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;

impl Packet {
    /// A pure ACK of the mobile, or an empty segment of the fixed host.
    fn new(from: Side) -> Self {
        let (seq, ack) = (1, 1);
        Self {
            from,
            ipv6: false,
            port: 4000,
            seq,
            ack,
            flags: ACK,
            window: 500,
            options: Vec::new(),
            payload: 0,
            damaged: false,
        }
    }

    fn ends(&self) -> [IpAddr; 2] {
        let [fixed, mobile] =
            [FIXED, MOBILE].map(|pair| pair[usize::from(self.ipv6)].parse().unwrap());
        match self.from {
            Side::Fixed => [fixed, mobile],
            Side::Mobile => [mobile, fixed],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 0);
        let (src_port, dst_port) = match self.from {
            Side::Fixed => (80, self.port),
            Side::Mobile => (self.port, 80),
        };
        let mut tcp = Vec::new();
        tcp.extend([u16::to_be_bytes(src_port), u16::to_be_bytes(dst_port)].concat());
        tcp.extend([self.seq.to_be_bytes(), self.ack.to_be_bytes()].concat());
        tcp.extend([(((20 + options.len()) / 4) << 4) as u8, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend((0..self.payload).map(|n| n as u8));
        let len = tcp.len();
        let [src, dst] = self.ends().map(|ip| match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        });
        let pseudo = [&src[..], &dst, &(len as u32).to_be_bytes(), &[0, 0, 0, 6]].concat();
        let sum = checksum(&[&pseudo[..], &tcp].concat());
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        // By chance a checksum may look like one that is still to be made.
        if self.damaged && sum != !checksum(&pseudo) {
            tcp[14] ^= 0x40;
        }
        let mut ip = if self.ipv6 {
            let mut ip = vec![0x60, 0, 0, 0];
            ip.extend((len as u16).to_be_bytes());
            ip.extend([6, 64]);
            ip
        } else {
            let mut ip = vec![0x45, 0];
            ip.extend((20 + len as u16).to_be_bytes());
            ip.extend([0, 0, 0, 0, 64, 6, 0, 0]);
            ip
        };
        ip.extend([src, dst].concat());
        if !self.ipv6 {
            let sum = checksum(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        ip.extend(tcp);
        ip
    }
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u64 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// What became of a packet: where it went, and what was sent to the fixed host in answer.
type Outcome = (Verdict, Vec<Vec<u8>>);

/// The programs and what they ask to be answered.
struct Kernel {
    program: Program,
    answers: libbpf_rs::RingBuffer<'static>,
    answered: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Kernel {
    fn new(program: Program) -> Self {
        let answered = Arc::new(Mutex::new(Vec::new()));
        let answers = program
            .answers({
                let answered = answered.clone();
                move |flow, mobile| answered.lock().unwrap().push(segment(flow, &mobile).unwrap())
            })
            .unwrap();
        Self { program, answers, answered }
    }

    /// Begins with an empty table and these settings.
    fn begin(&mut self, config: &GatewayConfig) {
        let MechanismConfig::PacketControl { threshold } = config.groups[0].mechanism else {
            panic!("another mechanism");
        };
        let indices = BTreeMap::from([("lo".to_owned(), LOOPBACK)]);
        let prefixes = prefixes::prefixes(&config.groups, "phones", &indices);
        self.program.configure(threshold, config.limits.idle, prefixes).unwrap();
        let flows = self.program.map("flows");
        for key in flows.keys().collect::<Vec<_>>() {
            flows.delete(&key).unwrap();
        }
    }

    /// A packet that came in by the loopback device, or leaves by it, `forwarded` from another.
    fn verdict(&self, from: Side, packet: &[u8], forwarded: bool) -> Verdict {
        let (name, interface) = match from {
            Side::Fixed => ("to_mobile", u32::from(forwarded)),
            Side::Mobile => ("from_mobile", LOOPBACK),
        };
        let kind: [u8; 2] = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
        let frame = [&[0; 12][..], &kind, packet].concat();
        // `struct __sk_buff`: ingress_ifindex is the tenth word.
        let mut context = [0; 192];
        context[36..40].copy_from_slice(&interface.to_ne_bytes());
        let input = ProgramInput {
            context_in: Some(&mut context),
            data_in: Some(&frame),
            ..ProgramInput::default()
        };
        match self.program.program(name).test_run(input).unwrap().return_value as i32 {
            -1 => Verdict::Pass,
            2 => Verdict::Drop,
            other => panic!("verdict {other}"),
        }
    }

    fn pass(&self, packet: &Packet) -> Outcome {
        let verdict = self.verdict(packet.from, &packet.bytes(), true);
        self.answers.consume().unwrap();
        (verdict, std::mem::take(&mut self.answered.lock().unwrap()))
    }

    /// Lets time go by for the table.
    fn wait(&self, time: Duration) {
        let flows = self.program.map("flows");
        for key in flows.keys().collect::<Vec<_>>() {
            let mut value = flows.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            let last = u64::from_ne_bytes(value[16..24].try_into().unwrap());
            let last = last.wrapping_sub(time.as_nanos());
            value[16..24].copy_from_slice(&last.to_ne_bytes());
            flows.update(&key, &value, MapFlags::EXIST).unwrap();
        }
    }

    /// By the names that the shell has.
    fn counters(&self) -> BTreeMap<String, u64> {
        let counters = self.program.counters().unwrap();
        let mechanism = counters.mechanism.by_name().into_iter();
        mechanism.chain(counters.packets()).map(|(name, n)| (name.to_owned(), n)).collect()
    }
}

/// The reference.
struct Reference {
    shell: Shell,
    now: Instant,
}

impl Reference {
    fn new(config: &GatewayConfig) -> Self {
        let mut config = config.clone();
        for group in &mut config.groups {
            group.fast_path = FastPathMode::Off;
        }
        let shell = Shell::new(&config, (1, 2), &|_| Some(LOOPBACK), Box::new(NoKeeper)).unwrap();
        Self { shell, now: now() }
    }

    fn pass(&mut self, packet: &Packet) -> Outcome {
        let (input, output) = match packet.from {
            Side::Fixed => (Some(2), Some(LOOPBACK)),
            Side::Mobile => (Some(LOOPBACK), Some(2)),
        };
        let checksums = Checksums::Verify;
        let packet = packet.bytes().into();
        let intercepted = Intercepted { id: Some(PacketId(1)), packet, input, output, checksums };
        let mut effects = Vec::new();
        let verdict = self.shell.on_packet(self.now, &intercepted, &mut effects);
        let injected = |effect| match effect {
            Effect::Inject { to: Side::Fixed, packet } => packet,
            other => panic!("{other:?}"),
        };
        (verdict, effects.into_iter().map(injected).collect())
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let Status { groups, counters, .. } = self.shell.status(self.now);
        groups[0].counters.clone().into_iter().chain(counters).collect()
    }
}

/// A step of a random stream.
#[derive(Clone, Debug)]
struct Step {
    gap: Duration,
    /// The packet comes so often.
    times: usize,
    packet: Packet,
}

fn options() -> impl Strategy<Value = Vec<u8>> {
    let timestamps = (any::<u32>(), any::<u32>(), prop_oneof![Just(100_u32), any::<u32>()])
        .prop_map(|(value, echo, base)| {
            // Mostly near each other, on both sides of the wraparound.
            let value = base.wrapping_sub(150).wrapping_add(value % 300);
            [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
        });
    let sack = (1..=3_u8).prop_map(|n| {
        let blocks = (0..8 * n).collect::<Vec<u8>>();
        [&[1, 1, 5, 2 + 8 * n][..], &blocks].concat()
    });
    let odd = prop_oneof![
        3 => Just(vec![253, 4, 0, 0]),
        2 => Just(vec![1, 1, 0]),
        1 => Just(vec![2, 4, 5, 180]),
        1 => Just(vec![3, 3, 7, 4, 2]),
        // Malformed: of a wrong size, cut off, of size 0 and 1.
        1 => Just(vec![8, 9, 0, 0, 0, 0, 0, 0, 0]),
        1 => Just(vec![5, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        1 => Just(vec![1, 1, 253, 8]),
        1 => Just(vec![99, 0, 1, 1]),
        1 => Just(vec![253, 1, 1, 1]),
        1 => Just(vec![1, 1, 1, 8]),
        1 => prop_oneof![
            10 => proptest::collection::vec(any::<u8>(), 0..12),
            // Multipath TCP: nothing is done for the connection from then on, so not often.
            1 => Just(vec![30, 4, 0, 0]),
        ],
    ];
    let part = prop_oneof![6 => Just(Vec::new()), 6 => timestamps, 1 => sack, 1 => odd];
    proptest::collection::vec(part, 1..=2).prop_map(|parts| {
        let mut all = parts.concat();
        all.truncate(40);
        all
    })
}

fn step(ipv6: bool, isn: u32) -> impl Strategy<Value = Step> {
    let number = || {
        prop_oneof![
            8 => (0_u32..8).prop_map(|n| n * 500),
            3 => 0_u32..10_000,
            2 => (0_u32..40).prop_map(|n| n * 10_000),
            1 => 0_u32..1 << 30,
        ]
    };
    let payload =
        prop_oneof![5 => Just(0_usize), 1 => 1_usize..3, 4 => Just(500), 1 => 1_usize..3000];
    let flags = prop_oneof![
        30 => Just(ACK),
        3 => Just(ACK | 0x40),
        3 => Just(ACK | 0x08),
        1 => any::<u8>(),
        1 => Just(SYN),
        1 => Just(SYN | ACK),
        1 => Just(FIN | ACK),
        1 => Just(RST),
        1 => Just(0),
    ];
    let window = prop_oneof![8 => Just(500_u16), 1 => Just(0), 1 => any::<u16>()];
    let gap = prop_oneof![30 => Just(0), 1 => 1..6_u64].prop_map(|n| Duration::from_secs(70 * n));
    let rare = prop_oneof![30 => Just(false), 1 => Just(true)];
    let ports = prop_oneof![6 => Just(4000_u16), 1 => Just(4001)];
    let heads = (any::<bool>(), ports, number(), number(), flags, window);
    let times = prop_oneof![6 => Just(1_usize), 2 => 2_usize..9];
    (heads, options(), payload, gap, times, rare).prop_map(
        move |((fixed, port, seq, ack, flags, window), options, payload, gap, times, damaged)| {
            let from = if fixed { Side::Fixed } else { Side::Mobile };
            // Each host's numbers begin elsewhere.
            let (seq, ack) = match from {
                Side::Fixed => (isn.wrapping_add(seq), (!isn).wrapping_add(ack % 3)),
                Side::Mobile => ((!isn).wrapping_add(seq % 3000), isn.wrapping_add(ack)),
            };
            let damaged = damaged && !fixed;
            let packet =
                Packet { from, ipv6, port, seq, ack, flags, window, options, payload, damaged };
            Step { gap, times, packet }
        },
    )
}

fn streams() -> impl Strategy<Value = (u32, Vec<Step>)> {
    // Also right before the wraparound.
    let isn = prop_oneof![any::<u32>(), (0..20_000_u32).prop_map(|n| n.wrapping_neg())];
    (3_u32..20, any::<bool>(), isn).prop_flat_map(|(threshold, ipv6, isn)| {
        (Just(threshold), proptest::collection::vec(step(ipv6, isn), 1..250))
    })
}

/// A table in which the mobile has acknowledged 1000 of 10,000 bytes.
fn at_work(kernel: &mut Kernel, threshold: u32) {
    kernel.begin(&config(threshold));
    let data =
        (1..=10).map(|n| Packet { seq: n * 1000, payload: 1000, ..Packet::new(Side::Fixed) });
    let ack = Packet { ack: 2000, ..Packet::new(Side::Mobile) };
    for packet in data.chain([ack]) {
        assert_eq!(kernel.pass(&packet), (Verdict::Pass, vec![]));
    }
}

#[test]
fn only_forwarded_packets_of_the_group_are_looked_at() {
    let Some(program) = loaded(FLOWS) else { return };
    let mut kernel = Kernel::new(program);
    at_work(&mut kernel, 6);
    let copy = Packet { seq: 1000, payload: 1000, ..Packet::new(Side::Fixed) };
    assert_eq!(kernel.verdict(Side::Fixed, &copy.bytes(), false), Verdict::Pass, "of this host");
    assert_eq!(kernel.verdict(Side::Fixed, &copy.bytes(), true), Verdict::Drop);
    let mut fragment = copy.bytes();
    fragment[6] = 0x20;
    assert_eq!(kernel.verdict(Side::Fixed, &fragment, true), Verdict::Pass);
    let mut udp = copy.bytes();
    udp[9] = 17;
    assert_eq!(kernel.verdict(Side::Fixed, &udp, true), Verdict::Pass);
    // Within the TCP header; within the payload, which the kernel has looked at where it forwards.
    let data = Packet { payload: 1000, ..Packet::new(Side::Mobile) };
    for (cut_off, length) in [(&copy, 25), (&data, 25), (&data, 45)] {
        let undecodable = || kernel.program.counters().unwrap().packets_undecodable;
        let before = undecodable();
        let bytes = &cut_off.bytes()[..length];
        assert_eq!(kernel.verdict(cut_off.from, bytes, true), Verdict::Pass);
        assert_eq!(undecodable(), before + 1);
    }
    // Another interface, and an exception before the rule.
    let net = |net: &str| net.parse().unwrap();
    for others in [((2, net("10.0.0.0/24")), true), ((LOOPBACK, net("10.0.0.0/28")), false)] {
        let all = [others, ((LOOPBACK, net("10.0.0.128/25")), true)];
        kernel.program.configure(6, IDLE, all.into()).unwrap();
        assert_eq!(kernel.verdict(Side::Fixed, &copy.bytes(), true), Verdict::Pass);
    }
    kernel.program.configure(6, IDLE, [((LOOPBACK, net("10.0.0.7/32")), true)].into()).unwrap();
    assert_eq!(kernel.verdict(Side::Fixed, &copy.bytes(), true), Verdict::Drop);
}

#[test]
fn a_full_table_lets_new_connections_pass_until_it_is_swept() {
    let Some(program) = loaded(1) else { return };
    let mut kernel = Kernel::new(program);
    at_work(&mut kernel, 6);
    let known = |kernel: &Kernel| kernel.program.flow_count(&kernel.program.counters().unwrap());
    let other = Packet { port: 4001, payload: 1000, ..Packet::new(Side::Fixed) };
    for _ in 0..3 {
        assert_eq!(kernel.pass(&other), (Verdict::Pass, vec![]));
    }
    assert_eq!((known(&kernel), kernel.program.counters().unwrap().segments_refused), (1, 3));
    // It is neither closed nor idle; then closed, for a while.
    let later = now() + Duration::from_secs(61);
    kernel.program.sweep(later, IDLE).unwrap();
    assert_eq!(known(&kernel), 1);
    kernel.pass(&Packet { flags: RST, ..Packet::new(Side::Mobile) });
    kernel.program.sweep(now(), IDLE).unwrap();
    assert_eq!(known(&kernel), 1);
    kernel.program.sweep(later, IDLE).unwrap();
    assert_eq!((known(&kernel), kernel.program.flows(10).len()), (0, 0));
    kernel.pass(&other);
    let flows = kernel.program.flows(10);
    assert_eq!(
        (flows.len(), flows[0].dst.port, flows[0].dst.ip.to_string().as_str()),
        (1, 4001, MOBILE[0])
    );
    kernel.program.sweep(now() + IDLE, IDLE).unwrap();
    assert_eq!(known(&kernel), 0);
}

#[test]
fn what_nobody_can_answer_passes() {
    let Some(program) = loaded(FLOWS) else { return };
    let mut kernel = Kernel::new(program);
    at_work(&mut kernel, 6);
    let copy = Packet { seq: 1000, payload: 1000, ..Packet::new(Side::Fixed) }.bytes();
    // Nobody reads the ring buffer.
    let answered = || kernel.program.counters().unwrap().mechanism.acks_generated;
    let mut before = answered();
    while kernel.verdict(Side::Fixed, &copy, true) == Verdict::Drop {
        assert!(answered() < 100_000, "the buffer has no end");
    }
    before = answered() - before;
    assert!(before > 100, "{before}");
}

#[test]
fn the_first_group_that_has_an_address_counts() {
    let group = |name: &str, interfaces: &[&str], addresses: &[&str]| Group {
        name: name.to_owned(),
        addresses: addresses.iter().map(|net| net.parse().unwrap()).collect(),
        interfaces: interfaces.iter().map(|name| (*name).to_owned()).collect(),
        ..config(3).groups.remove(0)
    };
    let groups = [
        group("exception", &[], &["10.0.1.0/24", "10.0.2.0/28"]),
        group("elsewhere", &["eth9"], &["10.0.0.0/16"]),
        group("own", &["wlan0", "wlan1"], &["10.0.0.0/16", "10.0.1.7/32", "fd00::/64"]),
        group("behind", &["wlan0"], &["10.0.5.0/24", "10.0.0.0/8"]),
    ];
    let indices = [("wlan0", 4), ("wlan1", 5)].map(|(name, index)| (name.to_owned(), index)).into();
    let found = prefixes::prefixes(&groups, "own", &indices);
    let of_each = [
        ("10.0.0.0/16", true),
        // 10.0.1.7 is in the first group.
        ("10.0.1.0/24", false),
        ("10.0.2.0/28", false),
        ("fd00::/64", true),
    ];
    let wanted = [4, 5]
        .into_iter()
        .flat_map(|index| of_each.map(|(net, is_own)| ((index, net.parse().unwrap()), is_own)));
    assert_eq!(found, wanted.collect());
    // Within a group of before nothing is left.
    let groups = [group("all", &[], &["10.0.0.0/8"]), group("own", &["wlan0"], &["10.0.0.0/16"])];
    let indices = [("wlan0".to_owned(), 4)].into();
    let wanted = [((4, "10.0.0.0/8".parse().unwrap()), false)].into();
    assert_eq!(prefixes::prefixes(&groups, "own", &indices), wanted);
}

#[test]
fn the_programs_decide_as_the_reference_does() {
    let Some(program) = loaded(FLOWS) else { return };
    let kernel = std::cell::RefCell::new(Kernel::new(program));
    let seen = std::cell::RefCell::new(BTreeMap::<String, u64>::new());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    });
    let result = runner.run(&streams(), |(threshold, steps)| {
        let config = config(threshold);
        let mut kernel = kernel.borrow_mut();
        let mut reference = Reference::new(&config);
        kernel.begin(&config);
        let before = kernel.counters();
        // Ports of connections that are in the table.
        let mut known = BTreeSet::new();
        for (n, Step { gap, times, packet }) in steps.iter().enumerate() {
            if let Ok(decoded) = decode_with(&packet.bytes(), Checksums::Verify, |_| ()) {
                let enters = packet.from == Side::Fixed && packet.flags & (ACK | SYN | RST) == ACK;
                let needs_entry = decoded.foreign_option.is_some()
                    || packet.from == Side::Fixed && packet.flags & (ACK | SYN | RST) == 0;
                if needs_entry && !enters && !known.contains(&packet.port) {
                    // The programs remember that only of connections which the fixed host entered into the table.
                    continue;
                }
                if enters {
                    known.insert(packet.port);
                } else if packet.flags & SYN != 0 {
                    known.remove(&packet.port);
                }
            }
            if *gap > Duration::ZERO {
                reference.now += *gap;
                kernel.wait(*gap);
            }
            for _ in 0..*times {
                let (wanted, found) = (reference.pass(packet), kernel.pass(packet));
                prop_assert_eq!(found, wanted, "packet {} {:?}", n, packet);
            }
        }
        let after = kernel.counters();
        let wanted = reference.counters();
        for (name, count) in &after {
            let counted = count - before[name];
            prop_assert_eq!(counted, wanted[name], "{}", name);
            *seen.borrow_mut().entry(name.clone()).or_default() += counted;
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // A comparison of nothing would prove nothing.
    let seen = seen.into_inner();
    for (name, count) in seen {
        assert!(count > 50, "{name}: only {count}");
    }
}
