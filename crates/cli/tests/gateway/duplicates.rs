//! Packets that wake repeats although nothing was lost do no harm, whatever the protocol.
//!
//! When a link is reported to fade and then to be up again, wake sends once more what it keeps: up
//! to two packets of each flow, more of a tunnel. Here that happens forty times a second, over a
//! link that loses nothing.

use crate::host::Host;
use crate::quic::{self, Download};
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::Load;
use airtcp_core::LinkSignal::{Fading, Up};
use airtcp_core::{Addr, Flow};
use airtcp_testing::skip;
use airtcp_wire::encode_udp;
use boringtun::noise::errors::WireGuardError;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::UdpSocket;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// From one repetition to the next. Less than a round trip (40 ms): there is always an answer due,
/// without which nothing would be repeated.
const PERIOD: Duration = Duration::from_millis(25);

/// Packets sent one by one, and from one to the next.
const PACKETS: u16 = 60;
const INTERVAL: Duration = Duration::from_millis(10);

/// No packet takes longer, of a busy machine either.
const QUIET: Duration = Duration::from_secs(2);

/// Has wake repeat packets while `work` is done. Then no answer is due any more.
fn repeating<T: Send>(bed: &Testbed, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let work = scope.spawn(work);
        while !work.is_finished() {
            bed.signal(Fading);
            thread::sleep(PERIOD);
            bed.signal(Up);
        }
        work.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Number of packets that wake has repeated.
fn repeated(bed: &Testbed) -> u64 {
    let counters = &bed.daemon().status().groups[0].counters;
    counters["packets_released"] + counters["packets_retried"]
}

/// Sends packets that the mobile echoes, and has wake repeat some of them. What came back: what the
/// mobile got, for nothing is lost, and nothing from the mobile is repeated.
fn echoes(bed: &Testbed, socket: &UdpSocket, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (echoes, repeated) = exchange(bed, socket, packets);
    assert_eq!(echoes.len() as u64, packets.len() as u64 + repeated, "echoes of all packets");
    echoes
}

/// The same, with how many packets wake repeated.
fn exchange(bed: &Testbed, socket: &UdpSocket, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, u64) {
    socket.set_read_timeout(Some(QUIET)).unwrap();
    let all_sent = AtomicBool::new(false);
    let echoes = thread::scope(|scope| {
        let echoes = scope.spawn(|| {
            let mut buffer = [0; 2048];
            let mut echoes = Vec::new();
            loop {
                let is_last = all_sent.load(SeqCst);
                match socket.recv(&mut buffer) {
                    Ok(size) => echoes.push(buffer[..size].to_vec()),
                    Err(_) if is_last => return echoes,
                    // Some program was held up.
                    Err(_) => {}
                }
            }
        });
        repeating(bed, || {
            for packet in packets {
                socket.send(packet).unwrap();
                thread::sleep(INTERVAL);
            }
        });
        all_sent.store(true, SeqCst);
        echoes.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    let repeated = repeated(bed);
    assert!(repeated >= u64::from(PACKETS) / 6, "{repeated} packets were repeated");
    (echoes, repeated)
}

/// A socket of the fixed host, connected to this port of the mobile, which echoes datagrams.
fn echoed(bed: &Testbed, port: u16) -> UdpSocket {
    let [fixed, mobile] = bed.addresses();
    let bind = |ip| move || UdpSocket::bind((ip, port)).unwrap();
    let (socket, echo) = (bed.fixed.within(bind(fixed)), bed.mobile.within(bind(mobile)));
    socket.connect((mobile, port)).unwrap();
    echo.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((size, from)) = echo.recv_from(&mut buffer) {
            echo.send_to(&buffer[..size], from).unwrap();
        }
    });
    socket
}

/// The same without repetitions, which come after their originals.
fn once(all: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let is_first = |&n: &usize| !all[..n].contains(&all[n]);
    (0..all.len()).filter(is_first).map(|n| all[n].clone()).collect()
}

fn bed() -> Testbed {
    Testbed::new(&Plan::with("\"wake\""))
}

/// RFC 8085 §3.3: UDP leaves it to applications to cope with duplicates.
#[test]
fn by_udp_an_application_gets_a_repeated_datagram_again() {
    if !possible() {
        return;
    }
    let bed = bed();
    let datagrams: Vec<_> = (0..PACKETS).map(|n| n.to_be_bytes().to_vec()).collect();
    let got = echoes(&bed, &echoed(&bed, 5000), &datagrams);
    assert_eq!(once(&got), datagrams);
}

/// RFC 792: a reply has the sequence number of its request, by which duplicates are recognised.
#[test]
fn an_echo_request_that_is_repeated_is_answered_again() {
    if !possible() {
        return;
    }
    let bed = bed();
    // Sockets of this kind are for ICMP echo; the kernel fills in identifier and checksum.
    bed.fixed.sysctl("ipv4/ping_group_range", "0 0");
    let kind = (Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4));
    let socket = bed.fixed.within(|| Socket::new(kind.0, kind.1, kind.2)).unwrap();
    let socket = UdpSocket::from(socket);
    socket.connect((bed.addresses()[1], 0)).unwrap();
    let requests: Vec<_> =
        (0..PACKETS).map(|n| [&[8, 0, 0, 0, 0, 0], &n.to_be_bytes()[..]].concat()).collect();
    let answers = echoes(&bed, &socket, &requests);
    let numbers: Vec<_> = answers.iter().map(|answer| answer[6..].to_vec()).collect();
    assert_eq!(once(&numbers), requests.iter().map(|r| r[6..].to_vec()).collect::<Vec<_>>());
}

/// RFC 4303 §3.4.3: each packet has a number, and a receiver keeps a window of them.
#[test]
fn esp_drops_what_is_repeated() {
    if !(possible() && has_esp()) {
        return;
    }
    let bed = bed();
    let [fixed, mobile] = bed.addresses().map(|ip| ip.to_string());
    for (host, [own, other]) in [(&bed.fixed, [&fixed, &mobile]), (&bed.mobile, [&mobile, &fixed])]
    {
        for (from, to, direction) in [(own, other, "out"), (other, own, "in")] {
            let ends = ["src", from, "dst", to];
            host.ip(&[&["xfrm", "state", "add"], &ends[..], &ASSOCIATION].concat());
            let template = ["dir", direction, "tmpl", "proto", "esp", "mode", "transport"];
            host.ip(&[&["xfrm", "policy", "add"], &ends[..], &template].concat());
        }
    }
    let datagrams: Vec<_> = (0..PACKETS).map(|n| n.to_be_bytes().to_vec()).collect();
    let (got, repeated) = exchange(&bed, &echoed(&bed, 5000), &datagrams);
    assert_eq!(got, datagrams);
    let dropped = bed.mobile.file("xfrm_stat");
    println!("{repeated} packets repeated\n{dropped}");
    let dropped = dropped.lines().find_map(|line| line.strip_prefix("XfrmInStateSeqError"));
    assert_eq!(dropped.expect("a counter").trim(), repeated.to_string());
}

/// A security association in transport mode, whose receiver looks for repeated packets.
const ASSOCIATION: [&str; 14] = [
    "proto",
    "esp",
    "spi",
    "0x100",
    "mode",
    "transport",
    "replay-window",
    "32",
    "auth",
    "hmac(sha256)",
    "0x0101010101010101010101010101010101010101010101010101010101010101",
    "enc",
    "cbc(aes)",
    "0x02020202020202020202020202020202",
];

/// True if the kernel has ESP; prints a note if not.
fn has_esp() -> bool {
    let ends = ["xfrm", "state", "add", "src", "192.0.2.1", "dst", "192.0.2.2"];
    let has = Host::new("esp").try_ip(&[&ends[..], &ASSOCIATION].concat()).is_ok();
    if !has {
        skip("ESP (CONFIG_INET_ESP)");
    }
    has
}

/// WireGuard (whitepaper §5.4.6) keeps a window of counters, as ESP does.
#[test]
fn wireguard_drops_what_is_repeated() {
    if !possible() {
        return;
    }
    let [mut near, mut far] = tunnel();
    let [mut out, mut rest] = [[0; 2048]; 2];
    // The handshake, each message twice.
    let initiation = sent(near.format_handshake_initiation(&mut out, false));
    let response = sent(far.decapsulate(None, &initiation, &mut out));
    let again = far.decapsulate(None, &initiation, &mut out);
    assert!(matches!(again, TunnResult::Err(WireGuardError::WrongTai64nTimestamp)), "{again:?}");
    let confirmation = sent(near.decapsulate(None, &response, &mut out));
    let again = near.decapsulate(None, &response, &mut out);
    assert!(matches!(again, TunnResult::Err(WireGuardError::UnexpectedPacket)), "{again:?}");
    assert!(matches!(far.decapsulate(None, &confirmation, &mut out), TunnResult::Done));

    let inner: Vec<_> = (0..PACKETS).map(inner).collect();
    let outer: Vec<_> = inner.iter().map(|p| sent(near.encapsulate(p, &mut out))).collect();
    let bed = bed();
    let mut got = Vec::new();
    for datagram in echoes(&bed, &echoed(&bed, 51820), &outer) {
        match far.decapsulate(None, &datagram, &mut rest) {
            TunnResult::WriteToTunnelV4(packet, _) => got.push(packet.to_vec()),
            TunnResult::Err(WireGuardError::DuplicateCounter) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(got, inner);
}

/// The two ends of a tunnel.
fn tunnel() -> [Tunn; 2] {
    let keys = [1, 2].map(|n| StaticSecret::from([n; 32]));
    let of = |own: usize, other: usize| {
        Tunn::new(keys[own].clone(), PublicKey::from(&keys[other]), None, None, 1, None)
    };
    [of(0, 1), of(1, 0)]
}

/// The packet that an end of a tunnel sends.
fn sent(result: TunnResult<'_>) -> Vec<u8> {
    match result {
        TunnResult::WriteToNetwork(datagram) => datagram.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// A packet for the tunnel.
fn inner(number: u16) -> Vec<u8> {
    let [src, dst] = [1, 2].map(|last| Addr::new([10, 0, 0, last].into(), 7));
    let mut packet = Vec::new();
    encode_udp(&Flow { src, dst }, &number.to_be_bytes().to_vec(), &mut packet).unwrap();
    packet
}

/// RFC 9293 §3.10.7.4: a segment that is not new is answered by an ACK. With SACK that says so
/// itself (RFC 2883). Without, a sender takes some of them for a loss, retransmits a segment, and
/// sees by its timestamp that it need not have (RFC 4015).
#[test]
fn tcp_answers_a_repeated_segment_and_goes_on() {
    const SIZE: u64 = 2_000_000;
    if !possible() {
        return;
    }
    let download = |mechanism: Option<&str>, sack| {
        let mechanism = mechanism.map(str::to_owned);
        // The sender's window fits into the queue: nothing is lost.
        let sysctls = vec![("ipv4/tcp_sack", sack), ("ipv4/tcp_wmem", "4096 32768 32768")];
        let bed = Testbed::new(&Plan { mechanism, sysctls, ..Plan::default() });
        let begin = Instant::now();
        let transfer = bed.download(&Load::of(SIZE));
        match bed.child() {
            Some(_) => repeating(&bed, || transfer.wait_for(SIZE)),
            None => transfer.wait_for(SIZE),
        }
        let time = begin.elapsed();
        // Payload is compared, and a reset would be an error.
        assert_eq!(transfer.finish(), SIZE);
        (bed, time)
    };
    thread::scope(|scope| {
        for sack in ["1", "0"] {
            scope.spawn(move || {
                let (bed, time) = download(Some("\"wake\""), sack);
                // Segments that were old on arrival, and recoveries of the sender.
                let (repeated, old) = (repeated(&bed), bed.mobile.counter("DelayedACKLost"));
                let recoveries = ["TCPSackRecovery", "TCPRenoRecovery"];
                let recoveries: u64 = recoveries.map(|name| bed.fixed.counter(name)).iter().sum();
                drop(bed);
                let (_, without) = download(None, sack);
                let what = format!(
                    "SACK {sack}: {repeated} segments repeated, {old} old ones, {recoveries} \
                     recoveries; {time:?}, {without:?} without a gateway"
                );
                println!("{what}");
                // Large ones go in two pieces. A busy machine may lose some, or delay others.
                assert!(repeated >= 20 && old >= repeated, "{what}");
                assert!(sack == "0" || recoveries <= repeated / 4, "{what}");
            });
        }
    });
}

/// RFC 9000 §12.3: packets whose number was processed are discarded.
#[test]
fn quic_discards_repeated_packets() {
    const SIZE: u64 = 2_000_000;
    if !possible() {
        return;
    }
    for stack in ["quinn", "aioquic"].into_iter().filter_map(quic::built) {
        let bed = bed();
        let files = tempfile::tempdir_in("/dev/shm").unwrap();
        let ends = ((&bed.fixed, bed.addresses()[0]), &bed.mobile);
        // From the handshake on. An error at either end would leave bytes missing.
        let time = repeating(&bed, || {
            let download = Download::start(stack, ends.0, ends.1, SIZE, files.path());
            let arrivals = download.arrivals();
            download.finish();
            arrivals.last().unwrap().0 - arrivals.first().unwrap()
        });
        let repeated = repeated(&bed);
        println!("{stack:?}: {time:?}, {repeated} packets repeated");
        assert!(repeated >= 20, "{repeated} packets were repeated");
    }
}
