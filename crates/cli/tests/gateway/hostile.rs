//! Packets that nobody asked for, while a connection is frozen: it must survive them, and so must the daemon.

use crate::host::Host;
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::{Load, mix};
use airtcp_core::{Addr, Flags, Flow, LinkSignal, Options, Segment, SeqNum};
use airtcp_wire::encode;
use libc::IPPROTO_RAW;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

const SIZE: u64 = 4_000_000;

/// Sends whole IPv4 packets from a host.
pub(crate) fn send_raw(host: &Host, packets: impl Iterator<Item = Vec<u8>> + Send) {
    host.within(|| {
        let socket =
            Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(IPPROTO_RAW))).unwrap();
        for packet in packets {
            let to: [u8; 4] = packet[16..20].try_into().unwrap();
            let to = SocketAddr::from((to, 0)).into();
            // A full queue of the device is its own affair.
            while let Err(error) = socket.send_to(&packet, &to) {
                assert!(error.raw_os_error() == Some(libc::ENOBUFS), "{error}");
                thread::yield_now();
            }
        }
    });
}

fn packet(segment: &Segment<Vec<u8>>) -> Vec<u8> {
    let mut packet = Vec::new();
    encode(segment, &mut packet).unwrap();
    packet
}

/// Freezes a download, lets `attack` loose on its flow (from the fixed host to the mobile) in the outage, and expects
/// it to resume as if nothing had happened, served by the same daemon.
fn expect_unimpressed(config: &str, attack: impl Fn(&Testbed, Flow)) {
    let bed = Testbed::new(&Plan { config: config.to_owned(), ..Plan::with("\"m-tcp-plus\"") });
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 2);
    let daemon = bed.daemon().child();
    let flow = transfer.flow();
    bed.signal(LinkSignal::Fading);
    thread::sleep(Duration::from_millis(100));
    bed.link(false);
    bed.signal(LinkSignal::Down);
    attack(&bed, flow);
    let up = bed.link(true);
    bed.signal(LinkSignal::Up);
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    // Not the bar of an outage: the point is that it goes on at once and not by the sender's timer.
    assert!(dead.is_some_and(|dead| dead <= Duration::from_secs(1)), "{dead:?}");
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
    expect_unimpressed("[limits]\nflows = 1000\n", |bed, flow| {
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
    });
}

/// Segments with everything right but the numbers, which an attacker who does not see the connection must guess.
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
    expect_unimpressed("", |bed, flow| {
        send_raw(&bed.fixed, guesses(flow));
        send_raw(&bed.mobile, guesses(flow.reversed()));
    });
}

#[test]
fn malformed_packets_change_nothing() {
    if !possible() {
        return;
    }
    // Of a segment of the connection, some bytes behind the addresses are replaced, and the end is cut off.
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
    expect_unimpressed("", |bed, flow| {
        send_raw(&bed.fixed, damaged(flow));
        send_raw(&bed.mobile, damaged(flow.reversed()));
    });
}
