//! Mirrored packets, in network namespaces.

use super::*;
use airtcp_core::{Addr, Flags, Flow, SeqNum};
use airtcp_edge::{Towards, WakeConfig};
use airtcp_gateway::config::FastPathMode;
use airtcp_linux::datapath::mirror::{Mirror, Taken};
use airtcp_wire::{Checksums, encode_udp, outline};
use nix::sys::eventfd::EfdFlags;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::mpsc;

/// The paths by which packets can be mirrored.
const PATHS: [DataPath; 2] = [DataPath::Netfilter, DataPath::Tc];

fn by(data_path: DataPath, config: GatewayConfig) -> GatewayConfig {
    GatewayConfig { data_path, ..config }
}

/// Packets of all mobiles are mirrored.
fn mirroring() -> GatewayConfig {
    let mut config = always();
    config.groups[0].mechanism = MechanismConfig::MTcpPlus(Default::default());
    config.groups[0].fast_path = FastPathMode::Auto;
    config
}

/// The same with wake, which mirrors only packets sent while answers are overdue.
fn waking(towards: Towards) -> GatewayConfig {
    let mut config = mirroring();
    config.groups[0].mechanism =
        MechanismConfig::Wake(WakeConfig { towards, ..WakeConfig::default() });
    config
}

/// The program, attached in the calling thread's namespace; `None`, with a note on standard error,
/// if that is not possible here.
fn start(config: GatewayConfig) -> Option<Mirror> {
    let mut copies = Mirror::default();
    match copies.prepare(config) {
        Ok((config, prepared)) => copies.commit(&config, prepared),
        Err(error) => airtcp_testing::skip(&format!("a path for mirrored packets: {error}")),
    }
    copies.program().is_some().then_some(copies)
}

/// The time, if ring buffers that have grown are not to be given back.
const NOW: airtcp_core::Instant = airtcp_core::Instant::ZERO;

fn take_all(source: &mut Mirror, copies: &mut Vec<Intercepted>) {
    while source.take(NOW, copies).unwrap() != Taken::None {}
}

/// For each step, does `step` in the gateway's namespace, where the program is, and then `action`;
/// returns the mirrored packets of each step.
fn mirrored_of<T: Send + 'static>(
    net: &Net,
    config: GatewayConfig,
    steps: Vec<T>,
    mut step: impl FnMut(&Mirror, T) + Send + 'static,
    mut action: impl FnMut(),
) -> Option<Vec<Vec<Intercepted>>> {
    let ((ready, is_ready), (done, is_done)) = (mpsc::channel(), mpsc::channel());
    let thread = net.run("g", move || {
        let mut source = start(config)?;
        let of_each = steps.into_iter().map(|next| {
            step(&source, next);
            ready.send(()).unwrap();
            is_done.recv().unwrap();
            let mut copies = Vec::new();
            take_all(&mut source, &mut copies);
            copies
        });
        Some(of_each.collect())
    });
    while is_ready.recv().is_ok() {
        action();
        done.send(()).unwrap();
    }
    thread.join().unwrap()
}

/// The packets that are queued and mirrored during `action`. Meanwhile the function that `prepare`
/// returns is called repeatedly in the gateway's namespace, where the program is.
fn queued_and_mirrored<F: FnMut()>(
    net: &Net,
    path: DataPath,
    prepare: impl FnOnce(&Mirror) -> F + Send + 'static,
    action: impl FnOnce(),
) -> Option<[Vec<Intercepted>; 2]> {
    let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap());
    let (ready, is_ready) = mpsc::channel();
    let thread = net.run("g", {
        let wake = wake.clone();
        move || {
            let mut source = start(by(path, mirroring()))?;
            let mut queue = Nfqueue::open(QUEUE, 4000).unwrap();
            let mut turn = prepare(&source);
            ready.send(()).unwrap();
            let (mut queued, mut copies) = (Vec::new(), Vec::new());
            // When the hosts are done, their last packets may still be in flight.
            let mut quiet_since = None;
            while quiet_since.is_none_or(|since: Instant| since.elapsed() < QUIET) {
                if wake.read().is_ok() {
                    quiet_since = Some(Instant::now());
                }
                turn();
                let before = queued.len() + copies.len();
                let mut batch = Vec::new();
                let timeout = Some(Duration::from_millis(1));
                queue.receive(&[wake.as_fd()], timeout, &mut batch).unwrap();
                for packet in &batch {
                    queue.decide(packet.id.unwrap(), Verdict::Pass).unwrap();
                }
                queue.flush().unwrap();
                queued.append(&mut batch);
                source.take(NOW, &mut copies).unwrap();
                if queued.len() + copies.len() > before {
                    quiet_since = quiet_since.map(|_| Instant::now());
                }
            }
            Some([queued, copies])
        }
    });
    if is_ready.recv().is_ok() {
        action();
    }
    wake.write(1).unwrap();
    thread.join().unwrap()
}

/// Time without a packet after which no more are expected.
const QUIET: Duration = Duration::from_millis(200);

/// Sends whole packets from a host.
fn send_raw(net: &Net, host: &str, packets: Vec<Vec<u8>>) {
    let send = move || {
        for (number, packet) in packets.into_iter().enumerate() {
            // More at once than a processor's backlog has room for would be lost.
            if number % 50 == 49 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let to = outline(&packet).unwrap().1.dst.ip;
            let domain = if to.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
            let protocol = Some(Protocol::from(libc::IPPROTO_RAW));
            let raw = Socket::new(domain, Type::RAW, protocol).unwrap();
            raw.send_to(&packet, &SocketAddr::from((to, 0)).into()).unwrap();
        }
    };
    net.run(host, send).join().unwrap();
}

/// Hosts and a gateway that knows link-layer addresses of hosts that do not exist: packets to them
/// leave, and nothing answers, not even an error.
fn net_with_nobody() -> Net {
    let net = Net::new();
    for [fixed, mobile] in NOBODY {
        for (address, interface) in [(fixed, "fixed"), (mobile, "mobile")] {
            let neighbour = format!("{address} lladdr 02:00:00:00:00:77 dev {interface}");
            net.sh("g", &format!("ip neigh add {neighbour} nud permanent"));
        }
    }
    net
}

/// Addresses of fixed and mobile hosts that do not exist.
const NOBODY: [[&str; 2]; 2] = [["10.99.1.77", "10.99.2.77"], ["fd99:1::77", "fd99:2::77"]];

/// From such a fixed host to such a mobile; flows differ by their ports.
fn flow(family: usize, port: u16) -> Flow {
    let [fixed, mobile] = NOBODY[family].map(|ip| ip.parse().unwrap());
    Flow { src: Addr::new(fixed, port), dst: Addr::new(mobile, 7) }
}

fn udp(flow: Flow) -> Vec<u8> {
    let mut packet = Vec::new();
    encode_udp(&flow, &b"hello".to_vec(), &mut packet).unwrap();
    packet
}

/// Longer than the time after which a mobile that answers at once counts as silent.
const SILENCE: Duration = Duration::from_millis(100);

#[test]
fn hardly_any_packets_of_a_mobile_that_answers_are_mirrored_for_wake() {
    if !possible() {
        return;
    }
    const SIZE: usize = 20_000_000;
    let net = Net::new();
    let mut sizes = [100_000, SIZE].into_iter();
    let copies = mirrored_of(
        &net,
        waking(Towards::Mobile),
        vec![(), ()],
        |_, ()| {},
        || {
            net.download(FIXED[0], sizes.next().unwrap());
        },
    );
    let Some(copies) = copies else { return };
    // On a busy machine answers are late now and then.
    let bytes: usize = copies[1].iter().map(|copy| copy.packet.len()).sum();
    assert!(bytes < SIZE / 2, "{bytes}");
}

#[test]
fn packets_into_a_silence_are_mirrored_with_its_state_and_so_is_its_end() {
    if !possible() {
        return;
    }
    let cases = [(Towards::Mobile, 0), (Towards::Mobile, 1), (Towards::Network, 0)];
    for (path, (towards, family)) in
        PATHS.into_iter().flat_map(|path| cases.map(|case| (path, case)))
    {
        let net = net_with_nobody();
        let [asks, answers] = match towards {
            Towards::Mobile => ["a", "b"],
            Towards::Network => ["b", "a"],
        };
        let question = |port| match towards {
            Towards::Mobile => flow(family, port),
            Towards::Network => flow(family, port).reversed(),
        };
        let answer = question(1).reversed();
        let mut turn = 0;
        let steps = vec![(); 5];
        let copies = mirrored_of(
            &net,
            by(path, waking(towards)),
            steps,
            |_, ()| {},
            || {
                match turn {
                    0 | 2 => send_raw(&net, asks, vec![udp(question(1))]),
                    1 | 4 => send_raw(&net, answers, vec![udp(answer), udp(answer)]),
                    _ => {
                        std::thread::sleep(SILENCE);
                        send_raw(&net, asks, vec![udp(question(1)), udp(question(2))]);
                    }
                }
                turn += 1;
            },
        );
        let Some(copies) = copies else { continue };
        let flows: Vec<Vec<Flow>> = copies
            .iter()
            .map(|copies| copies.iter().map(|copy| outline(&copy.packet).unwrap().1).collect())
            .collect();
        assert_eq!(flows[0], [question(1)], "nobody knows whether it will answer");
        assert_eq!(flows[1], [answer], "it is there, which is said once");
        assert!(flows[2].is_empty(), "it will answer");
        assert_eq!(flows[3], [question(1), question(2)], "it did not");
        assert_eq!(flows[4], [answer], "it did, which is said once");
        assert_eq!(copies[0][0].silence, None);
        let [known, new] = [0, 1].map(|n| copies[3][n].silence.unwrap());
        assert_eq!([known, new].map(|silence| silence.is_flow_new), [false, true]);
        assert_eq!(known.since, new.since);
    }
}

#[test]
fn a_pure_ack_asks_for_no_answer_and_a_segment_does() {
    if !possible() {
        return;
    }
    for (path, family) in PATHS.into_iter().flat_map(|path| [(path, 0), (path, 1)]) {
        let net = net_with_nobody();
        let segment = |len| {
            let (payload, flow) = (vec![7; len], flow(family, 1));
            let ack = Some(SeqNum(1));
            let mut packet = Vec::new();
            encode(&Segment { flow, ack, payload, ..Segment::default() }, &mut packet).unwrap();
            packet
        };
        let mut turn = 0;
        let steps = vec![(); 4];
        let copies = mirrored_of(
            &net,
            by(path, waking(Towards::Mobile)),
            steps,
            |_, ()| {},
            || {
                match turn {
                    0 => send_raw(&net, "b", vec![udp(flow(family, 1).reversed())]),
                    1 => send_raw(&net, "a", vec![segment(0)]),
                    // The pure ACK is old.
                    2 => send_raw(&net, "a", vec![segment(10)]),
                    _ => send_raw(&net, "a", vec![segment(10)]),
                }
                std::thread::sleep(SILENCE);
                turn += 1;
            },
        );
        let Some(copies) = copies else { continue };
        assert_eq!(copies.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0, 1], "{path:?}");
    }
}

/// Flags and payload of a segment of the fixed host, which begins at 1000, or of the mobile.
type Shown = (bool, u32, u32, Flags, usize);

#[test]
fn the_end_of_a_connection_that_was_mirrored_is_mirrored_while_the_mobile_answers() {
    if !possible() {
        return;
    }
    const FIXED: bool = true;
    const MOBILE: bool = false;
    let (none, fin, rst) = (Flags::empty(), Flags::FIN, Flags::RST);
    // Connection, what passes, and how much of it is mirrored.
    let steps: [(u16, &[Shown], usize); 18] = [
        // The mobile is there.
        (1, &[(MOBILE, 1, 1000, none, 0)], 1),
        // Of what goes to a mobile that answers nothing is mirrored, its end neither.
        (1, &[(FIXED, 1000, 1, fin, 10), (MOBILE, 1, 1011, none, 0)], 0),
        (1, &[(MOBILE, 1, 1011, rst, 0), (FIXED, 1011, 1, rst, 0)], 0),
        // An answer fails to come, and comes late.
        (2, &[(FIXED, 1000, 1, none, 10)], 0),
        (2, &[(FIXED, 1000, 1, none, 10), (MOBILE, 1, 1010, none, 0)], 2),
        (2, &[(FIXED, 1010, 1, none, 10), (MOBILE, 1, 1020, none, 0)], 0),
        // The mobile's FIN says nothing of the fixed host's data; of the fixed host's FIN the
        // acknowledgement of all of it counts, with or without data.
        (2, &[(MOBILE, 1, 1020, fin, 0), (FIXED, 1020, 2, none, 0)], 0),
        (2, &[(FIXED, 1020, 2, fin, 500), (MOBILE, 2, 1520, none, 0)], 1),
        (2, &[(MOBILE, 2, 1521, none, 0), (MOBILE, 2, 1521, none, 0)], 1),
        (2, &[(FIXED, 1020, 2, fin, 500), (MOBILE, 2, 1521, none, 0)], 0),
        // Resets by either host.
        (3, &[(FIXED, 1000, 1, none, 10)], 0),
        (3, &[(FIXED, 1000, 1, none, 10), (MOBILE, 1, 1010, none, 0), (FIXED, 7, 0, rst, 0)], 3),
        (3, &[(FIXED, 7, 0, rst, 0), (MOBILE, 1, 0, rst, 0)], 0),
        // In a silence they are mirrored anyway, and marked no less.
        (4, &[(FIXED, 1000, 1, none, 10)], 0),
        (4, &[(FIXED, 1000, 1, none, 10), (MOBILE, 7, 1000, rst, 0)], 2),
        // Of one in a silence the number counts: the connection may not have ended.
        (4, &[(MOBILE, 1, 1010, rst, 0), (MOBILE, 1, 1010, rst, 0)], 1),
        (5, &[(FIXED, 1000, 1, none, 10)], 0),
        (5, &[(FIXED, 1000, 1, none, 10), (FIXED, 7, 0, rst, 0)], 2),
    ];
    for (path, family) in PATHS.into_iter().flat_map(|path| [(path, 0), (path, 1)]) {
        let net = net_with_nobody();
        let mut turns = steps.iter();
        let copies = mirrored_of(
            &net,
            by(path, waking(Towards::Mobile)),
            vec![(); steps.len()],
            |_, ()| {},
            || {
                let (port, segments, mirrored) = turns.next().unwrap();
                for &(is_of_fixed, seq, ack, flags, len) in *segments {
                    let flow = flow(family, *port);
                    let flow = if is_of_fixed { flow } else { flow.reversed() };
                    let (seq, ack, payload) = (SeqNum(seq), Some(SeqNum(ack)), vec![7; len]);
                    let segment = Segment { flow, seq, ack, flags, payload, ..Segment::default() };
                    let mut packet = Vec::new();
                    encode(&segment, &mut packet).unwrap();
                    send_raw(&net, if is_of_fixed { "a" } else { "b" }, vec![packet]);
                }
                // The next comes into a silence. Only a second after a late answer it may be as short.
                if *mirrored == 0 && segments.len() == 1 {
                    let is_soon = *port > 2;
                    std::thread::sleep(if is_soon {
                        Duration::from_secs(1) + SILENCE
                    } else {
                        SILENCE
                    });
                }
            },
        );
        let Some(copies) = copies else { continue };
        let expected: Vec<usize> = steps.iter().map(|&(.., mirrored)| mirrored).collect();
        let mirrored: Vec<usize> = copies.iter().map(Vec::len).collect();
        assert_eq!(mirrored, expected, "{path:?}, {family}");
        let closing: Vec<bool> = copies[7..9]
            .iter()
            .chain([&copies[11], &copies[14], &copies[15], &copies[17]])
            .flatten()
            .map(|copy| copy.is_closing)
            .collect();
        let of_resets = [false, false, true, false, true, true, false, true];
        assert_eq!(closing, [&[true, true], &of_resets[..]].concat(), "{path:?}, {family}");
        assert!(copies[7][0].silence.is_none());
    }
}

/// So many that a few hundred have the same place in the program's table as another.
const CONNECTIONS: u16 = 8000;

/// The connection with this number. With ports in a row hardly any would have the same place.
fn connection(number: u16) -> Flow {
    let flow = flow(0, number);
    Flow { dst: Addr { port: number.wrapping_mul(number), ..flow.dst }, ..flow }
}

fn segment_of(flow: Flow, seq: u32, ack: u32, flags: Flags, payload: &[u8]) -> Vec<u8> {
    let (seq, ack, payload) = (SeqNum(seq), Some(SeqNum(ack)), payload.to_vec());
    let mut packet = Vec::new();
    encode(&Segment { flow, seq, ack, flags, payload, ..Segment::default() }, &mut packet).unwrap();
    packet
}

/// Three bytes of data, from 1000 on.
fn data_of(flow: Flow) -> Vec<u8> {
    segment_of(flow, 1000, 1, Flags::empty(), b"one")
}

/// What is mirrored of each of these `steps`, packets that a host sends, after data of all connections
/// were mirrored in a silence and an answer has ended it.
fn mirrored_after_all_were(
    path: DataPath,
    steps: Vec<(&'static str, Vec<Vec<u8>>)>,
) -> Option<Vec<Vec<Intercepted>>> {
    let net = net_with_nobody();
    let answer = || vec![segment_of(flow(0, 1).reversed(), 1, 1, Flags::empty(), b"")];
    let data = (1..=CONNECTIONS).map(|number| data_of(connection(number))).collect();
    let turns = vec![(); 3 + steps.len()];
    let mut steps = [("a", data), ("b", answer())].into_iter().chain(steps);
    let mut is_silent = false;
    let copies = mirrored_of(
        &net,
        by(path, waking(Towards::Mobile)),
        turns,
        |_, ()| {},
        || {
            if !std::mem::replace(&mut is_silent, true) {
                send_raw(&net, "b", answer());
                send_raw(&net, "a", vec![data_of(flow(0, 1))]);
                std::thread::sleep(SILENCE);
                return;
            }
            let (host, packets) = steps.next().unwrap();
            send_raw(&net, host, packets);
        },
    );
    let mut copies = copies?;
    let mirrored: Vec<usize> = copies[1..3].iter().map(Vec::len).collect();
    assert_eq!(mirrored, [usize::from(CONNECTIONS), 1], "{path:?}");
    Some(copies.split_off(3))
}

#[test]
fn no_end_is_missed_among_many_connections_that_were_mirrored() {
    if !possible() {
        return;
    }
    for path in PATHS {
        let reset = |number| segment_of(connection(number), 1003, 1, Flags::RST, b"");
        let resets = (1..=CONNECTIONS).map(reset).collect();
        let Some(copies) = mirrored_after_all_were(path, vec![("a", resets)]) else { continue };
        assert_eq!(copies[0].len(), usize::from(CONNECTIONS), "{path:?}");
        assert!(copies[0].iter().all(|copy| copy.is_closing), "{path:?}");
    }
}

#[test]
fn a_reset_hides_no_end_of_a_connection_that_has_the_same_hash() {
    if !possible() {
        return;
    }
    // Those that send a FIN are too few to have each other's hash, except for one pair at times; about
    // twelve of them have that of one of the many that are reset.
    const FINS: u16 = 100;
    let ends = |flags, numbers: RangeInclusive<u16>| {
        numbers.map(|number| segment_of(connection(number), 1003, 1, flags, b"")).collect()
    };
    let ack = |number| segment_of(connection(number).reversed(), 1, 1004, Flags::empty(), b"");
    for path in PATHS {
        let steps = vec![
            ("a", ends(Flags::FIN, 1..=FINS)),
            ("a", ends(Flags::RST, FINS + 1..=CONNECTIONS)),
            ("b", (1..=FINS).map(ack).collect()),
        ];
        let Some(copies) = mirrored_after_all_were(path, steps) else { continue };
        let mirrored: Vec<usize> = copies.iter().map(Vec::len).collect();
        let (fins, all) = (usize::from(FINS), usize::from(CONNECTIONS));
        assert_eq!(mirrored[..2], [fins, all - fins], "{path:?}");
        assert!((fins - 2..=fins).contains(&mirrored[2]), "{path:?}: {}", mirrored[2]);
    }
}

#[test]
fn a_fragment_ends_no_connection() {
    if !possible() {
        return;
    }
    for path in PATHS {
        let net = net_with_nobody();
        let segment = |flags, fragment: u16| {
            let (flow, payload, ack) = (flow(0, 1), vec![7; 16], Some(SeqNum(1)));
            let mut packet = Vec::new();
            let segment = Segment { flow, ack, flags, payload, ..Segment::default() };
            encode(&segment, &mut packet).unwrap();
            packet[6..8].copy_from_slice(&fragment.to_be_bytes());
            packet
        };
        let mut turn = 0;
        let copies = mirrored_of(
            &net,
            by(path, waking(Towards::Mobile)),
            vec![(); 3],
            |_, ()| {},
            || {
                match turn {
                    // Mirrored: nobody has answered yet.
                    0 => send_raw(&net, "a", vec![segment(Flags::empty(), 0)]),
                    1 => send_raw(&net, "b", vec![udp(flow(0, 1).reversed())]),
                    // The beginning of a packet, and a later part of one.
                    _ => {
                        let fragments = [0x2000, 0x0002, 0];
                        let fragments = fragments.map(|fragment| segment(Flags::RST, fragment));
                        send_raw(&net, "a", fragments.into());
                    }
                }
                turn += 1;
            },
        );
        let Some(copies) = copies else { continue };
        assert_eq!(copies.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1], "{path:?}");
    }
}

#[test]
fn all_packets_of_a_mobile_can_be_mirrored() {
    if !possible() {
        return;
    }
    for path in PATHS {
        let net = net_with_nobody();
        let steps = vec![false, true, false];
        let step = |source: &Mirror, on| source.mirror_all(host(NOBODY[0][1]), on);
        let copies = mirrored_of(&net, by(path, waking(Towards::Mobile)), steps, step, || {
            for n in 0..3 {
                send_raw(&net, "b", vec![udp(flow(0, n).reversed())]);
                send_raw(&net, "a", vec![udp(flow(0, n))]);
            }
        });
        let Some(copies) = copies else { continue };
        // The mobile's first packet; all packets; the answer to the last packet of the second step.
        assert_eq!(copies.iter().map(Vec::len).collect::<Vec<_>>(), [1, 6, 1], "{path:?}");
    }
}

/// A packet without what changes on its way through a router, the one thing that tc sees before.
fn without_hop_limit(mut packet: Vec<u8>) -> Vec<u8> {
    match packet[0] >> 4 {
        4 => [8, 10, 11].iter().for_each(|&at| packet[at] = 0),
        _ => packet[7] = 0,
    }
    packet
}

#[test]
fn packets_that_would_be_queued_are_mirrored_once_unchanged() {
    if !possible() {
        return;
    }
    for path in PATHS {
        let net = Net::new();
        let _rules = install(&net, always());
        let seen = queued_and_mirrored(
            &net,
            path,
            |_| || {},
            || {
                for address in FIXED {
                    net.download(address, 3_000_000);
                }
            },
        );
        let Some(seen) = seen else { continue };
        let [queued, copies] = seen.map(|packets| {
            let known = |p: Intercepted| {
                let verified = p.checksums == Checksums::Verify;
                (without_hop_limit(p.packet.into()), p.input, p.output, verified)
            };
            let mut known: Vec<_> = packets.into_iter().map(known).collect();
            known.sort();
            known
        });
        assert!(queued.iter().any(|(packet, ..)| packet.len() > 20_000), "of several segments");
        assert!(queued == copies, "{path:?}: {} queued, {} copied", queued.len(), copies.len());
    }
}

#[test]
fn packets_of_watched_mobiles_are_not_mirrored() {
    if !possible() {
        return;
    }
    for path in PATHS {
        let net = Net::new();
        let mut rules = None;
        let step = move |source: &Mirror, watched: Option<bool>| {
            let rules = rules.get_or_insert_with(|| {
                let mut rules = Rules::install(&mirroring()).unwrap();
                rules.set_mirror(source.switch());
                rules
            });
            if let Some(on) = watched {
                rules.watch(&MOBILE.map(host), on).unwrap();
            }
        };
        let steps = vec![None, Some(true), Some(false)];
        let copies = mirrored_of(&net, by(path, mirroring()), steps, step, || {
            // Nobody listens to the queue: what is in it passes.
            for address in FIXED {
                net.download(address, 100_000);
            }
        });
        let Some(copies) = copies else { continue };
        // The last segments of a connection may come in the step after its own.
        let mut known = BTreeSet::new();
        let of_new_connections = copies.iter().map(|copies| {
            let flows: Vec<_> = copies.iter().map(|copy| segment(copy).flow).collect();
            let new: Vec<_> = flows.iter().filter(|flow| !known.contains(*flow)).copied().collect();
            known.extend(flows);
            MOBILE.map(|mobile| {
                let mobile: IpAddr = mobile.parse().unwrap();
                new.iter().filter(|flow| [flow.src.ip, flow.dst.ip].contains(&mobile)).count()
            })
        });
        let [before, watched, after] = of_new_connections.collect::<Vec<_>>().try_into().unwrap();
        assert!(before.iter().chain(&after).all(|&copies| copies > 2), "{before:?} {after:?}");
        assert_eq!(watched, [0; 2], "{path:?}");
    }
}

#[test]
fn a_damaged_segment_is_mirrored_as_one_to_be_verified() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let sent = Segment {
        flow: Flow {
            src: Addr::new(FIXED[0].parse().unwrap(), 80),
            dst: Addr::new(MOBILE[0].parse().unwrap(), 5000),
        },
        seq: SeqNum(7),
        ack: Some(SeqNum(1)),
        payload: b"payload".to_vec(),
        ..Segment::default()
    };
    let mut packet = Vec::new();
    encode(&sent, &mut packet).unwrap();
    for path in PATHS {
        let copies = mirrored_of(
            &net,
            by(path, mirroring()),
            vec![()],
            |_, ()| {},
            || {
                let mut damaged = packet.clone();
                *damaged.last_mut().unwrap() ^= 1;
                send_raw(&net, "a", vec![damaged, packet.clone()]);
            },
        );
        let Some(copies) = copies else { continue };
        let read: Vec<_> = copies[0]
            .iter()
            .filter(|copy| copy.packet.len() == packet.len())
            .map(|copy| decode(&copy.packet, copy.checksums).ok())
            .collect();
        assert!(
            matches!(read.as_slice(), [None, Some(segment)] if *segment == sent),
            "{path:?}: {read:?}"
        );
    }
}

#[test]
fn unread_packets_are_missed_and_delay_nothing() {
    if !possible() {
        return;
    }
    let net = Net::new();
    let missed = Arc::new(AtomicUsize::new(0));
    let step = {
        let missed = missed.clone();
        move |source: &Mirror, ()| {
            missed.store(source.missed().unwrap() as usize, Ordering::Relaxed);
            // What was read before makes room for more, but not at once.
            std::thread::sleep(QUIET);
        }
    };
    let mut sizes = [60_000_000, 60_000_000, 100_000].into_iter();
    let copies = mirrored_of(&net, mirroring(), vec![(); 3], step, || {
        net.download(FIXED[0], sizes.next().unwrap());
    });
    let Some(copies) = copies else { return };
    assert!(missed.load(Ordering::Relaxed) > 0);
    let bytes = |n: usize| {
        let of_one = |copy| segment(copy).payload.len();
        copies[n].iter().map(of_one).sum::<usize>()
    };
    assert!((300_000..4 << 20).contains(&bytes(0)), "{}", bytes(0));
    // These are in larger ring buffers, of 4 and 32 MiB on a machine with memory.
    assert!((1 << 20..60_000_000).contains(&bytes(1)), "{}", bytes(1));
    let data = || copies[1].iter().map(segment).filter(|segment| !segment.payload.is_empty());
    let mut pairs = data().zip(data().skip(1));
    let is_late = pairs.any(|(earlier, later)| later.seq.before(earlier.seq - (1 << 20)));
    assert!(!is_late, "in the order in which they were made");
    assert!(bytes(2) >= 100_000, "{}: there is room again", bytes(2));
}

#[test]
fn every_packet_is_queued_or_mirrored_however_often_that_changes() {
    if !possible() {
        return;
    }
    const SIZE: usize = 30_000_000;
    for path in PATHS {
        let net = Net::new();
        let turns = Arc::new(AtomicUsize::new(0));
        let prepare = {
            let turns = turns.clone();
            move |source: &Mirror| {
                let rules = Rules::install(&mirroring()).unwrap();
                let rules = Watcher::new(rules, |error| panic!("{error}")).unwrap();
                rules.set_mirror(source.switch());
                let mut next = Instant::now();
                move || {
                    if Instant::now() >= next {
                        let turn = turns.fetch_add(1, Ordering::Relaxed);
                        rules.watch(host(MOBILE[0]), turn.is_multiple_of(2));
                        next += Duration::from_millis(30);
                    }
                }
            }
        };
        let seen = queued_and_mirrored(&net, path, prepare, || {
            // Slow enough for many turns.
            net.sh("g", "tc qdisc add dev mobile root tbf rate 200mbit burst 100kb latency 50ms");
            net.download(FIXED[0], SIZE);
        });
        let Some([queued, copies]) = seen else { continue };
        assert!(turns.load(Ordering::Relaxed) > 10, "{turns:?} turns");
        assert!(queued.len() > 20 && copies.len() > 20, "{} and {}", queued.len(), copies.len());
        let first = |packets: &[Intercepted]| {
            let syn = |s: &Segment<Vec<u8>>| s.flags.contains(airtcp_core::Flags::SYN);
            packets.iter().map(segment).find(|s| syn(s) && s.ack.is_some()).map(|s| s.seq + 1)
        };
        let first = first(&copies).or_else(|| first(&queued)).expect("the connection begins");
        let mut seen: Vec<_> = copies
            .iter()
            .chain(&queued)
            .map(segment)
            .filter(|s| s.flow.src.ip.to_string() == FIXED[0] && !s.payload.is_empty())
            .map(|s| (s.seq.bytes_after(first) as usize, s.payload.len()))
            .collect();
        seen.sort_unstable();
        let end = seen.iter().fold(0, |end, &(from, len)| {
            assert!(from <= end, "neither queued nor copied: {end} to {from} of {SIZE}");
            end.max(from + len)
        });
        assert_eq!(end, SIZE);
    }
}
