//! `wake` in trouble: killed, reloaded, flooded, with forged and damaged packets, with many flows.

use crate::hostile::send_raw;
use crate::outages::{Told, expect_data_after};
use crate::testbed::{Plan, ROUTER, Testbed, possible};
use crate::transfer::{Load, Transfer, mix};
use airtcp_core::{Addr, Flow, Segment, SeqNum};
use airtcp_wire::{encode, encode_udp};
use nix::sys::signal::Signal;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::{Duration, Instant};

const SIZE: u64 = 4_000_000;
/// The sender's timer has backed off to seconds at its end.
const OUTAGE: Duration = Duration::from_secs(6);
/// Bound on the dead time of a woken sender, with or without a signal. Other tests measure it.
const WOKEN: Duration = Duration::from_millis(400);

fn plan() -> Plan {
    Plan::with("\"wake\"\nretry-interval = \"100 ms\"")
}

/// A testbed with a download on its way.
fn downloading(plan: &Plan) -> (Testbed, Transfer) {
    let bed = Testbed::new(plan);
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 4);
    (bed, transfer)
}

/// Makes an outage in the download, with `harm` two seconds after it began, and expects data soon
/// after.
fn expect_woken(bed: &Testbed, transfer: Transfer, told: Told, harm: impl FnOnce() + Send) {
    expect_data_after(bed, &transfer, (OUTAGE, told), WOKEN, harm);
    assert_eq!(transfer.finish(), SIZE);
}

/// UDP packets to `mobile`, one for each of these ports.
pub(crate) fn udp(
    mobile: IpAddr,
    ports: impl Iterator<Item = u16>,
) -> impl Iterator<Item = Vec<u8>> {
    // Not an address that answers.
    let from = IpAddr::V4(Ipv4Addr::new(10, 7, 0, 9));
    ports.map(move |port| {
        let flow = Flow { src: Addr::new(from, port), dst: Addr::new(mobile, 7) };
        let mut packet = Vec::new();
        encode_udp(&flow, &vec![0; 8], &mut packet).unwrap();
        packet
    })
}

#[test]
fn wake_killed_in_an_outage_wakes_with_what_the_sender_tries_since() {
    if !possible() {
        return;
    }
    let (bed, transfer) = downloading(&plan());
    bed.link(false);
    thread::sleep(Duration::from_secs(2));
    let killed = bed.child();
    bed.daemon().signal_child(Signal::SIGKILL);
    // However long its successor takes to start: the sender tries again and again, and then the
    // mobile is silent.
    bed.daemon().wait_until(|status| {
        bed.child() != killed && status.groups[0].counters.get("silences") == Some(&1)
    });
    let dead = transfer.dead_time(bed.link(true), Duration::from_secs(60));
    assert!(
        dead.is_some_and(|dead| dead.is_within(WOKEN)),
        "{dead:?}: {:?}",
        bed.daemon().status()
    );
    assert_eq!(transfer.finish(), SIZE);
}

#[test]
fn wake_killed_while_the_link_is_up_holds_nothing_up_and_wakes_after_the_next_outage() {
    if !possible() {
        return;
    }
    let (bed, transfer) = downloading(&plan());
    let since = Instant::now();
    bed.daemon().kill_all();
    transfer.wait_for(SIZE / 2);
    let gap = transfer.longest_gap(since);
    assert!(gap.is_within(Duration::from_millis(500)), "{gap:?}");
    bed.daemon().restart(&bed.gateway);
    expect_woken(&bed, transfer, Told::Nothing, || {});
}

/// Its segments have options that only the hosts can make, and are repeated as they are: on veth
/// with a checksum to be finished, and several in one packet.
#[test]
fn multipath_tcp_is_woken_as_plain_tcp_is() {
    if !possible() {
        return;
    }
    for told in [Told::Timely, Told::Nothing] {
        let bed = Testbed::new(&plan());
        let transfer = bed.download(&Load { is_multipath: true, ..Load::of(SIZE) });
        transfer.wait_for(SIZE / 4);
        assert_eq!(bed.mobile.counter("MPCapableSYNACKRX"), 1);
        expect_woken(&bed, transfer, told, || {});
        assert_eq!(bed.mobile.counter("InCsumErrors"), 0);
    }
}

#[test]
fn wake_reloaded_in_an_outage_keeps_what_it_has() {
    if !possible() {
        return;
    }
    let (bed, transfer) = downloading(&plan());
    expect_woken(&bed, transfer, Told::Nothing, || {
        let before = bed.daemon().status().flow_count;
        bed.daemon().reload("retry-interval = \"100 ms\"", "retry-interval = \"90 ms\"");
        assert_eq!((before, bed.daemon().status().flow_count), (1, 1));
    });
}

#[test]
fn a_flood_of_new_flows_in_an_outage_holds_no_old_flow_up() {
    if !possible() {
        return;
    }
    for told in [Told::Timely, Told::Nothing] {
        let (bed, transfer) = downloading(&plan());
        let mobile = bed.addresses()[1];
        expect_woken(&bed, transfer, told, || {
            send_raw(&bed.fixed, udp(mobile, 1000..11_000));
            let status = bed.daemon().wait_until(|s| s.groups[0].segments_refused > 9_000);
            // In one run of 25, one of the 10,000 flows has the download's place in the BPF
            // program's map of flows, and so seems to be old.
            assert!((200..=260).contains(&status.flow_count), "{status:?}");
        });
    }
}

#[test]
fn forged_packets_of_a_flow_in_an_outage_displace_nothing_from_before() {
    if !possible() {
        return;
    }
    let (bed, transfer) = downloading(&plan());
    let flow = transfer.flow();
    expect_woken(&bed, transfer, Told::Timely, || {
        let forged = (0..1000).map(|n| {
            let seq = SeqNum(mix(n) as u32);
            let payload = vec![0; 100];
            let mut packet = Vec::new();
            encode(&Segment { flow, seq, payload, ..Segment::default() }, &mut packet).unwrap();
            packet
        });
        send_raw(&bed.fixed, forged);
    });
}

#[test]
fn packets_shorter_than_their_headers_pass_and_are_counted() {
    if !possible() {
        return;
    }
    let (bed, transfer) = downloading(&plan());
    assert_eq!(transfer.finish(), SIZE);
    let [fixed, mobile] = bed.addresses();
    let short = |protocol: u8| {
        let mut packet = vec![0x45, 0, 0, 24, 0, 0, 0, 0, 64, protocol, 0, 0];
        for address in [fixed, mobile] {
            let IpAddr::V4(address) = address else { unreachable!() };
            packet.extend(address.octets());
        }
        packet.extend([0; 4]);
        packet
    };
    let received = || bed.mobile.within(|| ip_counter("InReceives"));
    // Waits for the rest of the download.
    thread::sleep(Duration::from_millis(500));
    let before = received();
    // TCP's header has 20 bytes.
    send_raw(&bed.fixed, (0..10).map(|_| short(6)));
    bed.daemon().wait_until(|status| status.counters["packets_undecodable"] >= 10);
    let until = Instant::now() + Duration::from_secs(5);
    while received() < before + 10 {
        assert!(Instant::now() < until, "{} of 10", received() - before);
        thread::sleep(Duration::from_millis(10));
    }
}

/// A counter of the calling thread's namespace for IPv4, by its name in /proc/net/snmp.
pub(crate) fn ip_counter(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Ip:"));
    let [names, values] = [(); 2].map(|()| lines.next().unwrap().split_whitespace());
    names.zip(values).find(|(found, _)| *found == name).unwrap().1.parse().unwrap()
}

#[test]
fn of_100_000_flows_no_more_than_4_kb_each_is_kept_and_a_download_is_woken_among_them() {
    /// Mobiles, besides the download's, and flows of each.
    const MOBILES: u16 = 1_000;
    const FLOWS: u16 = 100;
    /// Mobiles of which the flows fit into the data path's buffers.
    const SHARE: u16 = 100;
    if !possible() {
        return;
    }
    let config = "[limits]\nflows = 200_000\n".to_owned();
    let mechanism = Some("\"wake\"\n\n[[mobile]]\nname = \"many\"\naddresses = [\"10.9.0.0/16\"]\nmechanism = \"wake\"".to_owned());
    let bed = Testbed::new(&Plan { config, mechanism, ..Plan::default() });
    // Nobody is there.
    bed.gateway.ip(&["link", "add", "many", "type", "veth", "peer", "name", "end"]);
    for device in ["many", "end"] {
        bed.gateway.ip(&["link", "set", device, "arp", "off", "up"]);
    }
    bed.gateway.ip(&["route", "add", "10.9.0.0/16", "dev", "many"]);
    bed.fixed.ip(&["route", "add", "10.9.0.0/16", "via", ROUTER[0]]);
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 4);
    let before = bed.daemon().peak_memory();
    expect_woken(&bed, transfer, Told::Timely, || {
        let send = |mobile: u16| {
            let [high, low] = mobile.to_be_bytes();
            let mobile = IpAddr::V4(Ipv4Addr::new(10, 9, high, low));
            send_raw(&bed.fixed, udp(mobile, 1000..1000 + FLOWS));
        };
        let mut known = 0;
        for last in (SHARE..=MOBILES).step_by(usize::from(SHARE)) {
            // Again, if the daemon got no processor and missed some.
            while known < u64::from(last) * u64::from(FLOWS) * 99 / 100 {
                (last - SHARE..last).for_each(send);
                thread::sleep(Duration::from_millis(50));
                known = bed.daemon().status().flow_count;
            }
        }
    });
    let peak = bed.daemon().peak_memory().saturating_sub(before);
    assert!(peak < 100_000 * 4_096, "{peak} bytes");
}
