//! Hostile packets, from the mobile's side before an outage and from the fixed host's while the
//! connection is frozen: it must survive them, and so must the daemon. At the worst moment the
//! gateway holds bytes that it has acknowledged and nobody else has.

#[path = "../../../../fuzz/checks/corpus.rs"]
mod corpus;

use crate::host::Host;
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::{Load, mix};
use airtcp_core::{Addr, Flags, Flow, LinkSignal, Options, Segment, SeqNum};
use airtcp_wire::encode;
use libc::IPPROTO_RAW;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

const SIZE: u64 = 4_000_000;
/// Packets that have room in the queue of the mobile's uplink.
const IN_QUEUE: usize = 300;

fn plan() -> Plan {
    Plan::with("\"m-tcp-plus\"")
}

/// Sends whole packets of one IP version from a host.
pub(crate) fn send_raw(host: &Host, packets: impl Iterator<Item = Vec<u8>> + Send) {
    host.within(|| {
        let [ipv4, ipv6] = [Domain::IPV4, Domain::IPV6].map(|domain| {
            Socket::new(domain, Type::RAW, Some(Protocol::from(IPPROTO_RAW))).unwrap()
        });
        for packet in packets {
            let (socket, to) = match packet[0] >> 4 {
                4 => (&ipv4, SocketAddr::from((array::<4>(&packet, 16), 0)).into()),
                _ => (&ipv6, SocketAddr::from((array::<16>(&packet, 24), 0)).into()),
            };
            // The device's queue may be full.
            while let Err(error) = socket.send_to(&packet, &to) {
                assert!(error.raw_os_error() == Some(libc::ENOBUFS), "{error}");
                thread::yield_now();
            }
        }
    });
}

/// The bytes of an address in a header.
fn array<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    packet[at..at + N].try_into().unwrap()
}

fn packet(segment: &Segment<Vec<u8>>) -> Vec<u8> {
    let mut packet = Vec::new();
    encode(segment, &mut packet).unwrap();
    packet
}

/// Lets `before` loose on the flow of a download (from the fixed host to the mobile), freezes it,
/// lets `in_outage` loose on it, and expects it to resume as if nothing had happened, served by the
/// same daemon.
fn expect_unimpressed(
    plan: &Plan,
    before: impl FnOnce(&Testbed, Flow),
    in_outage: impl FnOnce(&Testbed, Flow),
) {
    let bed = Testbed::new(plan);
    let transfer = bed.download(&Load::of(SIZE));
    let daemon = bed.daemon().child();
    let flow = transfer.flow();
    transfer.wait_for(SIZE / 4);
    before(&bed, flow);
    transfer.wait_for(SIZE / 2);
    bed.signal(LinkSignal::Fading);
    thread::sleep(Duration::from_millis(100));
    bed.link(false);
    bed.signal(LinkSignal::Down);
    in_outage(&bed, flow);
    let up = bed.link(true);
    bed.signal(LinkSignal::Up);
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    // Not the bar of an outage: the rest of a flood may fill the queue and displace replayed
    // packets, which are sent again after a second.
    assert!(dead.is_some_and(|dead| dead.is_within(Duration::from_secs(2))), "{dead:?}");
    assert_eq!(transfer.finish(), SIZE);
    assert_eq!(bed.daemon().child(), daemon, "restarted: {}", bed.daemon().log());
    let peak = bed.daemon().peak_memory();
    assert!(peak < 256 << 20, "{peak} bytes of memory");
}

#[test]
fn a_flood_of_a_hundred_thousand_syns_evicts_no_frozen_connection() {
    if !possible() {
        return;
    }
    let config = "[limits]\nflows = 1000\n".to_owned();
    let flood = |bed: &Testbed, flow: Flow| {
        let syn = |n: u32| {
            let src = Addr::new(
                Ipv4Addr::from_bits(0x0a63_0000 + n / 50_000).into(),
                (n % 50_000 + 1024) as u16,
            );
            let options = Options { mss: Some(1460), ..Options::default() };
            let flow = Flow { src, dst: flow.dst };
            packet(&Segment {
                flow,
                seq: SeqNum(n),
                flags: Flags::SYN,
                window: 1000,
                options,
                ..Segment::default()
            })
        };
        send_raw(&bed.fixed, (0..100_000).map(syn));
        let status = bed.daemon().status();
        assert!(status.flow_count <= 1000, "{status:?}");
    };
    expect_unimpressed(&Plan { config, ..plan() }, |_, _| {}, flood);
}

/// Segments that are right except for the sequence numbers, which an attacker who does not see the
/// connection must guess.
fn guesses(flow: Flow) -> impl Iterator<Item = Vec<u8>> {
    (0..5_000_u64).map(move |n| {
        let [seq, ack] = [mix(2 * n), mix(2 * n + 1)].map(|number| SeqNum(number as u32));
        let (flags, ack, window) = match n % 4 {
            0 => (Flags::RST, None, 0),
            1 => (Flags::RST, Some(ack), 0),
            2 => (Flags::empty(), Some(ack), u16::MAX),
            _ => (Flags::FIN, Some(ack), u16::MAX),
        };
        packet(&Segment { flow, seq, ack, flags, window, ..Segment::default() })
    })
}

#[test]
fn guessed_resets_and_acknowledgements_change_nothing() {
    if !possible() {
        return;
    }
    expect_unimpressed(
        &plan(),
        |bed, flow| send_raw(&bed.mobile, guesses(flow.reversed()).take(IN_QUEUE)),
        |bed, flow| send_raw(&bed.fixed, guesses(flow)),
    );
}

/// Freezes a download so late that the gateway has acknowledged what the mobile lacks, lets
/// `attack` loose on it, and expects the download to be complete in the end.
fn expect_promises_kept(mechanism: &str, attack: impl FnOnce(&Testbed, Flow)) {
    let bed = Testbed::new(&Plan::with(mechanism));
    let transfer = bed.download(&Load::of(SIZE));
    let daemon = bed.daemon().child();
    transfer.wait_for(SIZE / 4);
    bed.link(false);
    thread::sleep(Duration::from_secs(1));
    bed.signal(LinkSignal::Down);
    let before = bed.daemon().wait_until(|status| status.held > 0);
    let promises = mechanism.contains("m-tcp-plus");
    assert_eq!(before.committed, u64::from(promises), "{before:?}");
    attack(&bed, transfer.flow());
    let after = bed.daemon().status();
    assert_eq!(after.committed, before.committed, "{after:?}");
    assert!(after.held >= before.held && after.flows[0].state == "frozen", "{after:?}");
    let up = bed.link(true);
    bed.signal(LinkSignal::Up);
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    assert!(dead.is_some_and(|dead| dead.is_within(Duration::from_secs(1))), "{dead:?}");
    assert_eq!(transfer.finish(), SIZE);
    assert_eq!(bed.daemon().child(), daemon, "restarted: {}", bed.daemon().log());
}

/// From an attacker who knows the four numbers of the connection and nothing of what it sends:
/// data, then resets, in the server's name.
fn off_path(flow: Flow) -> impl Iterator<Item = Vec<u8>> {
    (0..800_u64).map(move |n| {
        let [seq, ack] = [mix(2 * n), mix(2 * n + 1)].map(|number| SeqNum(number as u32));
        let (flags, payload) = match n < 400 {
            true => (Flags::PSH, vec![n as u8; 1000]),
            false => (Flags::RST, Vec::new()),
        };
        let segment = Segment {
            flow,
            seq,
            ack: Some(ack),
            flags,
            window: 500,
            payload,
            ..Segment::default()
        };
        packet(&segment)
    })
}

#[test]
fn forged_data_and_resets_do_not_make_the_gateway_forget_what_it_promised() {
    if !possible() {
        return;
    }
    for mechanism in ["\"m-tcp-plus\"", "\"holdover\""] {
        expect_promises_kept(mechanism, |bed, flow| send_raw(&bed.fixed, off_path(flow)));
    }
}

#[test]
fn malformed_packets_change_nothing() {
    if !possible() {
        return;
    }
    // A segment of the connection with some bytes behind the addresses replaced, and its end cut
    // off.
    let damaged = |flow: Flow| {
        (0..5_000_u64).map(move |n| {
            let payload = vec![0; (n % 64) as usize];
            let mut packet =
                packet(&Segment { flow, ack: Some(SeqNum(0)), payload, ..Segment::default() });
            let size = packet.len();
            for harm in 0..=n % 4 {
                let random = mix(4 * n + harm);
                packet[20 + (random >> 8) as usize % (size - 20)] = random as u8;
            }
            packet.truncate(20 + mix(!n) as usize % (size - 20));
            packet
        })
    };
    for plan in [plan(), plan().waiting()] {
        expect_unimpressed(
            &plan,
            |bed, flow| send_raw(&bed.mobile, damaged(flow.reversed()).take(IN_QUEUE)),
            |bed, flow| send_raw(&bed.fixed, damaged(flow)),
        );
    }
}

/// An input kept by fuzzing, as a packet of this flow; `None` if it is of the other IP version or no
/// packet that a kernel sends.
fn aimed(input: &[u8], flow: Flow) -> Option<Vec<u8>> {
    /// MTU of the wire.
    const MOST: usize = 1500;
    let mut packet = input.to_vec();
    let ports = [flow.src.port, flow.dst.port].map(u16::to_be_bytes).concat();
    let (addresses, header) = match (flow.src.ip, flow.dst.ip, packet.first()? >> 4) {
        (IpAddr::V4(src), IpAddr::V4(dst), 4) => (12..20, [src.octets(), dst.octets()].concat()),
        (IpAddr::V6(src), IpAddr::V6(dst), 6) => (8..40, [src.octets(), dst.octets()].concat()),
        _ => return None,
    };
    let size = match packet[0] >> 4 {
        4 => 4 * usize::from(packet[0] & 15),
        _ => 40,
    };
    if !(size..=MOST).contains(&packet.len()) || size < addresses.end {
        return None;
    }
    packet[addresses].copy_from_slice(&header);
    if let Some(there) = packet.get_mut(size..size + 4) {
        there.copy_from_slice(&ports);
    }
    Some(packet)
}

#[test]
fn what_fuzzing_kept_changes_nothing() {
    if !possible() {
        return;
    }
    let mut inputs = Vec::new();
    corpus::replay("segment", |input| inputs.push(input.to_vec()));
    let sent = |from: &Host, flow| {
        let packets: Vec<_> = inputs.iter().filter_map(|input| aimed(input, flow)).collect();
        assert!(packets.len() > 20, "{} packets", packets.len());
        send_raw(from, packets.into_iter());
    };
    thread::scope(|scope| {
        for ipv6 in [false, true] {
            let sent = &sent;
            scope.spawn(move || {
                expect_unimpressed(
                    &Plan { ipv6, ..plan() },
                    |bed, flow| sent(&bed.mobile, flow.reversed()),
                    |bed, flow| {
                        sent(&bed.fixed, flow);
                        let counters = bed.daemon().status().counters;
                        assert!(counters["packets_undecodable"] > 0, "{counters:?}");
                    },
                );
            });
        }
    });
}
