//! Flows by QUIC: transfers, outages, wake, marks, repeatability, and what is refused.

use crate::common;
use airtcp_core::{Duration, Ecn, Instant, Source, event::DropReason};
use airtcp_routing::router::PacketId;
use airtcp_sim::metrics::{QuicMetrics, RunMetrics};
use airtcp_sim::scenario::{End, Scenario};
use airtcp_sim::trace::{Crossing, Direction, PacketTap};
use airtcp_sim::{Observers, Packet, World};

/// A server, an edge node and a phone, 30 ms apart there and back, 10 Mbit/s.
const NETWORK: &str = r#"
duration = "60 s"
node = [
    { name = "server" },
    { name = "edge" },
    { name = "phone" },
]
link = [
    { between = ["server", "edge"], rate = "1 Gbit/s", delay = "5 ms" },
    { name = "radio", between = ["edge", "phone"], rate = "10 Mbit/s", delay = "10 ms", queue = { limit = "56250 B" } },
]
[[flow]]
name = "get"
from = "server"
to = "phone"
opens = "receiver"
transport = "quic"
bytes = "10 MB"
"#;

const WAKE: (&str, &str) =
    ("node.edge.middlebox", r#"{ mechanism = "wake", mobiles = ["phone"] }"#);

fn parse(set: &[(&str, &str)]) -> Result<Scenario, String> {
    Scenario::parse("t.toml", NETWORK, &common::overrides(set)).map_err(|error| error.to_string())
}

fn scenario(set: &[(&str, &str)]) -> Scenario {
    parse(set).unwrap_or_else(|error| panic!("{error}"))
}

fn run(set: &[(&str, &str)]) -> RunMetrics {
    common::run(&scenario(set), 1)
}

fn get(set: &[(&str, &str)]) -> QuicMetrics {
    run(set).quic[0].clone()
}

/// The radio is gone from 4 s for so long.
fn outage(seconds: f64) -> String {
    format!("{{ listed = [[\"4 s\", \"{} s\"]] }}", 4.0 + seconds)
}

/// Every datagram of QUIC that a node sent: when, by which end, how large, its ECN field and bytes.
#[derive(Default)]
struct Tap {
    sent: Vec<(Instant, End, usize, Ecn, bytes::Bytes)>,
    /// Those of the sender that an outage took.
    lost: Vec<Instant>,
}

impl PacketTap for Tap {
    fn on_packet(&mut self, crossing: &Crossing<'_>) {
        let Packet::Quic(datagram) = crossing.packet else { return };
        // At the host that made it.
        if crossing.direction == Direction::Sent && crossing.ttl == 64 {
            let payload = datagram.payload.clone();
            self.sent.push((crossing.at, datagram.from, payload.len(), datagram.ecn, payload));
        }
    }

    fn on_drop(
        &mut self,
        at: Instant,
        _: Source,
        reason: DropReason,
        _: Option<PacketId>,
        packet: &Packet,
    ) {
        if let Packet::Quic(datagram) = packet
            && datagram.from == End::Sender
            && reason == DropReason::Outage
        {
            self.lost.push(at);
        }
    }
}

fn tapped(set: &[(&str, &str)], seed: u64) -> (Tap, RunMetrics) {
    let mut tap = Tap::default();
    let mut world = World::new(&scenario(set), seed);
    world.run(&mut Observers { packets: Some(&mut tap), ..Observers::default() });
    (tap, world.metrics())
}

#[test]
fn a_download_takes_the_links_rate() {
    let flow = get(&[]);
    assert_eq!((flow.delivered_bytes, &*flow.state), (10_000_000, "Closed"));
    assert_eq!(flow.aborted, None);
    let took = flow.download_time.expect("it is complete");
    // At the least, all bytes at the link's rate; handshake and slow start take ten round trips.
    assert!(took > 8.0 && took < 9.0, "{took}");
    assert!((flow.rtt_min.expect("sampled") - 0.030).abs() < 0.003, "{flow:?}");
    assert_eq!(flow.outages, 0);
}

#[test]
fn an_upload_by_the_client_works_too() {
    let flow = get(&[("flow.get.opens", "sender"), ("flow.get.bytes", "1 MB")]);
    assert_eq!((flow.delivered_bytes, flow.aborted), (1_000_000, None));
}

/// RFC 9000 §14.1: a datagram with an ack-eliciting Initial packet has at least 1200 bytes. The
/// path's MTU is then found (§14.3): 1452 is the most that quinn looks for.
#[test]
fn datagrams_have_the_sizes_of_encrypted_ones() {
    let (tap, metrics) = tapped(&[], 1);
    let (_, from, size, ..) = tap.sent[0];
    assert_eq!((from, size), (End::Receiver, 1200));
    assert_eq!(metrics.quic[0].mtu, 1452);
    assert_eq!(tap.sent.iter().map(|&(_, _, size, ..)| size).max(), Some(1452));
    // Header, packet number, frame header and tag take 21 to 45 bytes of each 1452.
    let overhead = metrics.quic[0].sent_bytes as f64 / 10e6;
    assert!(overhead > 1.0 + 21.0 / 1452.0 && overhead < 1.06, "{overhead}");
}

/// A server that has not seen the client's address confirmed sends at most three times what it got
/// (RFC 9000 §8.1), and the first data comes two round trips after the start.
#[test]
fn the_handshake_takes_its_round_trips() {
    let (tap, _) = tapped(&[("flow.get.bytes", "1 kB")], 1);
    let of = |end: End| tap.sent.iter().filter(move |(_, from, ..)| *from == end);
    let reply = of(End::Sender).next().expect("the server answers").0;
    let second = of(End::Receiver).nth(1).expect("the client goes on").0;
    let data = of(End::Sender).find(|(at, ..)| *at > second).expect("the server goes on").0;
    let ms = |at: Instant| (at.since_start().as_secs_f64() * 1e3).round() as u32;
    assert!((16..19).contains(&ms(reply)), "{reply:?}");
    assert!((46..52).contains(&ms(data)), "{data:?}");
}

#[test]
fn a_seed_determines_every_byte() {
    let set = &[("link.radio.outage", &*outage(1.0)), ("flow.get.bytes", "6 MB")];
    let ((a, first), (b, second), (c, _)) = (tapped(set, 7), tapped(set, 7), tapped(set, 8));
    assert!(a.sent == b.sent, "two runs differ");
    assert_eq!(first, second);
    assert!(a.sent[0].4 != c.sent[0].4, "connection ids are drawn");
}

#[test]
fn neither_observers_nor_pauses_change_a_run() {
    let set = &[("link.radio.outage", &*outage(1.0)), WAKE];
    let (_, observed) = tapped(set, 1);
    let mut paused = World::new(&scenario(set), 1);
    (1..=600).for_each(|n| {
        paused.run_until(Instant::from_millis(100 * n), &mut Observers::default());
    });
    assert_eq!(observed, paused.metrics());
    assert_eq!(observed, run(set));
}

#[test]
fn losses_do_not_keep_a_transfer_from_completing() {
    for seed in 1..=5 {
        let set = [
            ("link.radio.loss", r#"{ kind = "bernoulli", p = 0.03 }"#),
            ("flow.get.bytes", "1 MB"),
        ];
        let flow = &common::run(&scenario(&set), seed).quic[0];
        assert_eq!(flow.delivered_bytes, 1_000_000, "seed {seed}");
        assert!(flow.packets_lost > 0 && flow.congestion_events > 0, "seed {seed}");
    }
}

/// RFC 9002 §6.2.1: the probe timeout doubles each time, and each brings one or two probes.
#[test]
fn in_an_outage_probes_go_out_ever_more_rarely() {
    let (tap, metrics) = tapped(&[("link.radio.outage", &outage(20.0))], 1);
    let mut bursts: Vec<Instant> = Vec::new();
    // What was in the queue when the link went is over after half a second.
    for &at in tap.lost.iter().filter(|at| **at > Instant::from_millis(4_500)) {
        if bursts.last().is_none_or(|&last| at.since(last) > Duration::from_millis(20)) {
            bursts.push(at);
        }
    }
    let gaps: Vec<Duration> = bursts.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.len() >= 4, "{gaps:?}");
    for pair in gaps.windows(2) {
        let ratio = pair[1].as_secs_f64() / pair[0].as_secs_f64();
        assert!((ratio - 2.0).abs() < 0.02, "{gaps:?}");
    }
    // The next probe, one gap later, is what data resumes with.
    let next = *bursts.last().expect("some") + *gaps.last().expect("some") * 2;
    let dead = next.since(Instant::from_secs(24)).as_secs_f64();
    let flow = &metrics.quic[0];
    assert_eq!(flow.outages, 1);
    let measured = flow.outage_dead_time.expect("it went on");
    assert!(measured >= dead && measured < dead + 0.1, "{measured}, expected {dead}");
}

#[test]
fn with_wake_data_flows_a_round_trip_after_an_outage() {
    let dead = |set: &[(&str, &str)]| {
        let outage = outage(10.0);
        let set = [&[("link.radio.outage", &*outage)], set].concat();
        get(&set).outage_dead_time.expect("it goes on")
    };
    let told = dead(&[WAKE]);
    assert!(told < 0.08, "{told}");
    let untold = dead(&[WAKE, ("node.edge.middlebox.signal", "none")]);
    assert!(untold < 0.4, "{untold}");
    assert!(dead(&[]) > 1.0);
}

#[test]
fn wake_counts_the_datagrams_that_it_sends_again() {
    let metrics = run(&[("link.radio.outage", &outage(10.0)), WAKE]);
    let sent = metrics.middleboxes[0].counters["packets_released"];
    // The newest; the tail only if the sender does not go on.
    assert!((1..=2).contains(&sent), "{sent}");
}

/// RFC 9000 §10.1: both ends give up, silently.
#[test]
fn an_outage_beyond_the_idle_timeout_ends_the_connection() {
    let set = [("link.radio.outage", &*outage(8.0)), ("flow.get.quic.idle-timeout", "5 s")];
    let flow = get(&set);
    assert_eq!(flow.aborted.as_deref(), Some("timed out"));
    assert_eq!((&*flow.state, flow.download_time), ("Closed", None));
    let patient = [("link.radio.outage", &*outage(8.0)), ("flow.get.quic.idle-timeout", "20 s")];
    assert_eq!(get(&patient).aborted, None);
}

/// RFC 9002 §7.1: a queue that marks is answered as if it had dropped.
#[test]
fn marks_reduce_the_window_without_losses() {
    let marking = r#"{ kind = "codel", ecn = true, limit = "1000 packets" }"#;
    let flow = get(&[("link.radio.queue", marking)]);
    assert!(flow.congestion_events > 0, "{flow:?}");
    assert_eq!(flow.packets_lost, 0, "{flow:?}");
    let (tap, _) = tapped(&[("flow.get.bytes", "1 MB")], 1);
    assert!(tap.sent.iter().any(|&(_, _, _, ecn, _)| ecn == Ecn::Ect0), "quinn asks for marks");
}

#[test]
fn the_settings_have_their_effects() {
    let lossy = ("link.radio.loss", r#"{ kind = "bernoulli", p = 0.01 }"#);
    let cubic = get(&[lossy]);
    let new_reno = get(&[lossy, ("flow.get.quic.congestion", "new-reno")]);
    assert_ne!(cubic.download_time, new_reno.download_time);
    // A window of 15,000 bytes goes out once a round trip, of 30 ms and its own transmission.
    let small = [("flow.get.quic.receive-window", "15 kB"), ("flow.get.bytes", "1 MB")];
    let rate = get(&small).goodput;
    assert!(rate < 8.0 * 15_000.0 / 0.030 && rate > 8.0 * 15_000.0 / 0.060, "{rate}");
    // The client's first probe comes three initial round trips after its first packet
    // (RFC 9002 §6.2.2).
    let set = [("link.radio.outage", r#"{ listed = [["0 s", "1 s"]] }"#)];
    let second = |set: &[(&str, &str)]| tapped(set, 1).0.sent[1].0.since_start().as_secs_f64();
    assert!((second(&set) - 0.999).abs() < 0.01, "{}", second(&set));
    let quick = [set[0], ("flow.get.quic.initial-rtt", "50 ms")];
    assert!((second(&quick) - 0.15).abs() < 0.01, "{}", second(&quick));
}

#[test]
fn quic_runs_beside_tcp_and_over_radio() {
    let text = r#"
        duration = "20 s"
        node = [{ name = "A" }, { name = "B" }, { name = "C" }]
        link = [{ between = ["A", "B"], rate = "10 Mbit/s", delay = "1 ms" }]
        wlan = [{ name = "cell", stations = ["B", "C"] }]
        flow = [
            { name = "t", from = "A", to = "C", bytes = "100 kB" },
            { name = "q", from = "A", to = "C", bytes = "100 kB", transport = "quic", count = 2 },
        ]"#;
    let scenario = common::parse(text, &[]);
    let metrics = common::run(&scenario, 1);
    let names: Vec<&str> = metrics.quic.iter().map(|flow| &*flow.name).collect();
    assert_eq!(names, ["q0", "q1"]);
    assert!(metrics.quic.iter().all(|flow| flow.delivered_bytes == 100_000));
    assert_eq!(metrics.flows[0].delivered_bytes, 100_000);
    assert!(metrics.fairness.is_some());
}

#[test]
fn what_has_no_effect_on_quic_is_refused() {
    for (set, expected) in [
        (("flow.get.sender", "{ mss = \"1000 B\" }"), "has no effect with transport = \"quic\""),
        (("flow.get.receiver", "{ ack = \"every\" }"), "has no effect with transport = \"quic\""),
        (("flow.get.traffic", "{ kind = \"requests\", answer = \"1 kB\" }"), "has no effect"),
        (("flow.get.random-pairs", "1"), "has no effect with transport = \"quic\""),
        (("flow.get.transport", "sctp"), "tcp"),
        (("flow.get.quic.congestion", "bbr"), "cubic"),
        (("flow.get.quic.idle-timout", "3 s"), "idle-timeout"),
        (("flow.get.quic.idle-timeout", "0 s"), "at least 1 ms"),
        (("flow.get.quic.receive-window", "1 B"), "1200 B"),
        (
            ("node.edge.middlebox", r#"{ mechanism = "snoop", mobiles = ["phone"] }"#),
            "an end of a TCP flow",
        ),
    ] {
        let error = parse(&[set]).expect_err("a mistake");
        assert!(error.contains(expected), "{set:?}: {error}");
    }
    let error = parse(&[("flow.get.transport", "tcp"), ("flow.get.quic.congestion", "cubic")])
        .expect_err("a mistake");
    assert!(error.contains("has no effect with transport = \"tcp\""), "{error}");
}

/// Without its traffic it would be another flow, so an override does not make that obsolete. The
/// settings of TCP may go: a sweep can compare the protocols.
#[test]
fn quic_instead_of_tcp() {
    let with = |keys: &str, set: &[(&str, &str)]| {
        let text = format!(
            r#"
            duration = "20 s"
            node = [{{ name = "A" }}, {{ name = "B" }}]
            link = [{{ between = ["A", "B"], rate = "10 Mbit/s", delay = "1 ms" }}]
            flow = [{{ name = "f", from = "A", to = "B", {keys} }}]
            [tcp]
            mss = "1000 B""#
        );
        Scenario::parse("t.toml", &text, &common::overrides(set)).map_err(|error| error.to_string())
    };
    let quic = [("flow.f.transport", "quic")];
    assert_eq!(
        with("sender = { mss = \"500 B\" }", &quic).map(|scenario| scenario.quic.len()),
        Ok(1)
    );
    for keys in [r#"traffic = { kind = "requests", answer = "1 kB" }"#, "random-pairs = 1"] {
        let error = with(keys, &quic).expect_err(keys);
        assert!(error.contains("has no effect with transport = \"quic\""), "{error}");
    }
    let error = with("transport = \"quic\"", &[]).expect_err("nothing is by TCP");
    let expected = "t.toml:6:13: tcp: has no effect without a flow by TCP (expected a [[flow]] with \
                    transport = \"tcp\")";
    assert!(error.starts_with(expected), "{error}");
}

/// The NAT of the phone gives it another port every five seconds. The server follows, with its
/// congestion window (RFC 9000 §9.4: the port alone has changed).
#[test]
fn a_server_follows_a_client_whose_nat_gives_it_another_port() {
    let rebinding = ("flow.get.quic.nat-rebind-interval", "5 s");
    let [plain, rebound] = [get(&[]), get(&[rebinding])];
    let [plain, rebound] = [plain, rebound].map(|flow| flow.download_time.unwrap());
    assert!((plain..plain + 0.5).contains(&rebound), "{rebound} s, {plain} s without");
    let mut tap = Ports::default();
    let mut observers = Observers { packets: Some(&mut tap), ..Observers::default() };
    World::new(&scenario(&[rebinding]), 1).run(&mut observers);
    let seen = tap.0.iter().map(|&(at, port)| (at.since_start().as_millis() / 5000, port));
    let seen: std::collections::BTreeSet<_> = seen.collect();
    assert_eq!(seen.len(), 2, "one port in the first five seconds, another from then on: {seen:?}");
}

/// The ports from which the phone sends.
#[derive(Default)]
struct Ports(Vec<(Instant, u16)>);

impl PacketTap for Ports {
    fn on_packet(&mut self, crossing: &Crossing<'_>) {
        let Packet::Quic(datagram) = crossing.packet else { return };
        if crossing.direction == Direction::Sent
            && crossing.ttl == 64
            && datagram.from == End::Receiver
        {
            self.0.push((crossing.at, datagram.flow.src.port));
        }
    }
}

/// The port changes while the radio is gone. What the server sends, or wake for it, goes to the old
/// one. So the server waits for the phone, which has nothing to send but a retransmission; or PINGs.
#[test]
fn after_a_port_has_changed_in_an_outage_only_the_client_can_end_the_silence() {
    let dead = |extra: &[(&str, &str)]| {
        [&[][..], &[("flow.get.quic.nat-rebind-interval", "9 s")]].map(|rebinding| {
            let radio = ("link.radio.outage", &*outage(10.0));
            let set = [&[radio, ("duration", "100 s")], rebinding, extra].concat();
            get(&set).outage_dead_time.unwrap()
        })
    };
    let [plain, rebound] = dead(&[]);
    assert!(rebound > plain + 1.0, "{plain}, {rebound}");
    let [woken, rebound_and_woken] = dead(&[WAKE]);
    assert!(woken < 0.1 && rebound_and_woken == rebound, "{woken}, {rebound_and_woken}");
    let [alive, rebound_and_alive] = dead(&[("flow.get.quic.keep-alive-interval", "5 s")]);
    assert!((alive..alive + 0.1).contains(&rebound_and_alive), "{alive}, {rebound_and_alive}");
}

/// Copies that wake makes of a port long gone arrive late. TLS refuses them if their truncated packet
/// numbers are taken for others (RFC 9000 §17.1), and so must its stand-in.
#[test]
fn stale_copies_of_an_old_port_do_no_harm() {
    for interval in ["700 ms", "1 s", "3 s"] {
        let flow = get(&[
            WAKE,
            ("flow.get.opens", "sender"),
            ("flow.get.bytes", "endless"),
            ("flow.get.quic.nat-rebind-interval", interval),
        ]);
        assert_eq!((flow.state.as_str(), flow.aborted), ("Established", None), "{interval}");
        assert!(flow.goodput > 6e6, "{interval}: {}", flow.goodput);
    }
}
