//! What a run must deliver, from first principles.

use crate::common::{self, Network, wire};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, DataRate, Duration, Event, Flags, Instant, Source, Subscriber};
use airtcp_net::config::{LossConfig, OutageConfig, OutageMode, Schedule};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::scenario::{NodeId, NodeOutage};
use airtcp_sim::trace::{Crossing, Direction, PacketTap, Recorder, Series};
use airtcp_sim::{Observers, Packet, World};
use airtcp_tcp::TcpConfig;

fn tcp() -> TcpConfig {
    TcpConfig { mss: 1000, ..TcpConfig::default() }
}

/// One flow over one link.
fn one_link(config: &airtcp_net::config::LinkConfig, tcp: &TcpConfig, seconds: u64) -> Scenario {
    let mut network = Network::new(Duration::from_secs(seconds));
    let (from, to) = (network.node(), network.node());
    network.connect(from, to, config);
    network.flow(from, to, None, tcp);
    network.0
}

/// While the window is the limit, goodput is W·MSS/RTT. Here the RTT is both serialisations and
/// both propagation delays, and the window leaves back to back, once per round trip.
#[test]
fn a_window_limited_flow_sends_one_window_per_round_trip() {
    let rate = DataRate::mbps(10);
    let link = wire(rate, Duration::from_millis(50), 100);
    let limited = TcpConfig { receive_buffer: Bytes(8_000), ..tcp() };
    let flow = &common::run(&one_link(&link, &limited, 60), 1).flows[0];
    let rtt = rate.transmission_time(Bytes(1040)) + rate.transmission_time(Bytes(40));
    let rtt = rtt.as_secs_f64() + 0.1;
    let expected = 8.0 * 8_000.0 / rtt;
    assert!((flow.goodput / expected - 1.0).abs() < 0.01, "{} of {expected}", flow.goodput);
    assert_eq!(flow.retransmission_ratio, 0.0);
    assert!((flow.srtt.expect("sampled") - rtt).abs() < 1e-4, "{:?}", flow.srtt);
}

/// With the window above the bandwidth-delay product the link is the limit.
#[test]
fn one_flow_saturates_a_link() {
    let link = wire(DataRate::mbps(1), Duration::from_millis(10), 100);
    let metrics = common::run(&one_link(&link, &tcp(), 60), 1);
    let payload_rate = 1e6 * 1000.0 / 1040.0;
    let goodput = metrics.flows[0].goodput;
    assert!(goodput < payload_rate && goodput > 0.99 * payload_rate, "{goodput}");
}

#[test]
fn every_packet_is_accounted_for() {
    let mut link = wire(DataRate::mbps(2), Duration::from_millis(20), 10);
    link.loss.model = LossConfig::Bernoulli { p: 0.02 };
    let metrics = common::run(&common::dumbbell(3, &link, Duration::from_secs(20)), 1);
    let data: u64 = metrics.flows.iter().map(|f| f.data_segments_sent).sum();
    let forward = &metrics.links[0];
    assert!(forward.queue_drops > 0 && forward.loss_drops > 0);
    // Besides data the forward link sees the SYN and the last ACK of the handshake of each flow.
    let seen = forward.packets_sent + forward.queue_drops;
    assert!(seen.abs_diff(data) < 100, "{seen} on the link, {data} sent");
}

#[test]
fn a_transfer_ends_with_the_last_byte_and_an_orderly_close() {
    let mut network = Network::new(Duration::from_secs(30));
    let (a, r, b) = (network.node(), network.node(), network.node());
    let link = wire(DataRate::mbps(1), Duration::from_millis(5), 100);
    network.connect(a, r, &link);
    network.connect(r, b, &link);
    network.flow(a, b, Some(Bytes(123_456)), &tcp());
    network.0.flows[0].start = Instant::from_secs(2);
    let flow = &common::run(&network.0, 1).flows[0];
    assert_eq!((flow.delivered_bytes, flow.sent_bytes), (123_456, 123_456));
    let time = flow.download_time.expect("complete");
    // Handshake 20 ms, then 124 packets at 8.32 ms and propagation; slow start adds a little.
    let least = 0.02 + 123_456.0 * 1.04 * 8e-6 + 0.01;
    assert!(time > least && time < least + 0.1, "{time} against {least}");
    assert!((flow.goodput - 8.0 * 123_456.0 / time).abs() < 1.0);
    assert_eq!(flow.state, "TimeWait");
    assert_eq!(flow.aborted, None);
}

#[test]
fn jitter_delays_the_start_differently_with_each_seed() {
    struct First(Option<Instant>);
    impl Subscriber for First {
        fn on_event(&mut self, at: Instant, _: Source, _: &Event) {
            self.0.get_or_insert(at);
        }
    }
    let mut network = Network::new(Duration::from_secs(5));
    let (a, b) = (network.node(), network.node());
    network.connect(a, b, &wire(DataRate::mbps(1), Duration::from_millis(5), 100));
    network.flow(a, b, Some(Bytes(1000)), &tcp());
    network.0.flows[0].start = Instant::from_secs(2);
    network.0.flows[0].jitter = Duration::from_secs(1);
    let starts = [1, 2].map(|seed| {
        let mut first = First(None);
        World::new(&network.0, seed)
            .run(&mut Observers { events: Some(&mut first), ..Observers::default() });
        first.0.expect("something happened")
    });
    let possible = Instant::from_secs(2)..Instant::from_secs(3);
    assert!(
        starts.iter().all(|start| possible.contains(start)) && starts[0] != starts[1],
        "{starts:?}"
    );
}

#[test]
fn a_flow_that_has_not_started_has_done_nothing() {
    let link = wire(DataRate::mbps(1), Duration::from_millis(5), 50);
    let mut scenario = one_link(&link, &tcp(), 10);
    scenario.flows[0].start = Instant::from_secs(20);
    let metrics = common::run(&scenario, 1);
    assert_eq!((metrics.flows[0].throughput, metrics.flows[0].sent_bytes), (0.0, 0));
    assert_eq!(metrics.links[0].packets_sent, 0);
}

#[test]
fn without_a_path_a_segment_is_dropped_with_the_reason() {
    struct Reasons(Vec<(Source, DropReason)>);
    impl Subscriber for Reasons {
        fn on_event(&mut self, _: Instant, source: Source, event: &Event) {
            if let Event::Dropped { reason, .. } = *event {
                self.0.push((source, reason));
            }
        }
    }
    let mut network = Network::new(Duration::from_secs(1));
    let (a, b) = (network.node(), network.node());
    network.flow(a, b, None, &tcp());
    let mut reasons = Reasons(Vec::new());
    let mut observers = Observers { events: Some(&mut reasons), ..Observers::default() };
    World::new(&network.0, 1).run(&mut observers);
    assert_eq!(reasons.0[0], (Source::Node(0), DropReason::NoRoute));
}

/// M-TCP §3.3: while a mobile is disconnected, its IP layer drops all TCP packets in both
/// directions except SYN and FIN.
#[test]
fn an_outage_above_the_mac_stops_all_but_syn_and_fin() {
    #[derive(Default)]
    struct Tap {
        received: Vec<(Instant, Flags)>,
        sent: Vec<(Instant, Flags)>,
    }
    impl PacketTap for Tap {
        fn on_packet(&mut self, &Crossing { at, node, direction, packet, .. }: &Crossing<'_>) {
            if node == NodeId(1) {
                let Packet::Tcp(s) = packet else { panic!("{packet:?}") };
                match direction {
                    Direction::Received => self.received.push((at, s.flags)),
                    Direction::Sent => self.sent.push((at, s.flags)),
                }
            }
        }
    }
    let link = wire(DataRate::mbps(1), Duration::from_millis(5), 50);
    let mut scenario = one_link(&link, &tcp(), 10);
    let (down, up) = (Instant::from_secs(2), Instant::from_secs(4));
    let outages = Schedule::Listed(vec![(Instant::ZERO, Instant::from_millis(8)), (down, up)]);
    scenario.nodes[NodeId(1)].outage = Some(NodeOutage::above_mac(outages));
    let mut tap = Tap::default();
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers { packets: Some(&mut tap), ..Observers::default() });
    let during = |at: &Instant| *at >= down && *at < up;
    // The handshake succeeded although the node was down.
    assert_eq!(tap.sent[0], (Instant::from_nanos(5_352_000), Flags::SYN));
    // The packets still arrive at the interface, but none is answered.
    assert!(tap.received.iter().any(|(at, _)| during(at)));
    assert!(!tap.sent.iter().any(|(at, _)| during(at)));
    assert!(tap.sent.last().is_some_and(|(at, _)| *at > up));
    assert!(world.metrics().flows[0].timeouts >= 1);
}

/// A tap sees a packet once at each interface it crosses, in order of time.
#[test]
fn a_tap_sees_each_hop() {
    #[derive(Default)]
    struct Hops(Vec<(Instant, u32, Direction)>);
    impl PacketTap for Hops {
        fn on_packet(&mut self, &Crossing { at, node, direction, packet, .. }: &Crossing<'_>) {
            if packet.wire_len() == Bytes(540) {
                self.0.push((at, node.0, direction));
            }
        }
    }
    let mut network = Network::new(Duration::from_secs(5));
    let (a, r, b) = (network.node(), network.node(), network.node());
    let link = wire(DataRate::kbps(540), Duration::from_millis(2), 50);
    network.connect(a, r, &link);
    network.connect(r, b, &link);
    network.flow(a, b, Some(Bytes(500)), &tcp());
    let mut hops = Hops::default();
    World::new(&network.0, 1)
        .run(&mut Observers { packets: Some(&mut hops), ..Observers::default() });
    let start = hops.0[0].0;
    let hop = Duration::from_millis(8 + 2);
    assert_eq!(
        hops.0,
        [
            (start, 0, Direction::Sent),
            (start + hop, 1, Direction::Received),
            (start + hop, 1, Direction::Sent),
            (start + hop + hop, 2, Direction::Received),
        ]
    );
}

/// The recorder's series and the metrics count the same things.
#[test]
fn recorded_series_agree_with_the_metrics() {
    let mut link = wire(DataRate::mbps(2), Duration::from_millis(20), 10);
    link.loss.model = LossConfig::Bernoulli { p: 0.01 };
    let mut world = World::new(&one_link(&link, &tcp(), 30), 1);
    let mut recorder = Recorder::new(&Series::ALL);
    world.run(&mut Observers { events: Some(&mut recorder), ..Observers::default() });
    let flow = &world.metrics().flows[0];
    let rows = |s| recorder.columns(s).value.len() as u64;
    let last = |s| recorder.columns(s).value.last().copied().unwrap_or(0.0);
    assert_eq!(rows(Series::SeqSent), flow.data_segments_sent);
    assert_eq!(recorder.columns(Series::SeqSent).value[0], 0.0);
    assert_eq!(rows(Series::CwndReductions), flow.cwnd_reductions);
    assert_eq!(last(Series::FastRetransmits), flow.fast_retransmits as f64);
    assert_eq!(last(Series::Timeouts), flow.timeouts as f64);
    assert_eq!(last(Series::Delivered), flow.delivered_bytes as f64);
    assert_eq!(last(Series::Cwnd), f64::from(flow.cwnd));
    assert_eq!(last(Series::Rto), flow.rto);
    let resent = flow.data_segments_sent as f64 * flow.retransmission_ratio
        / (1.0 + flow.retransmission_ratio);
    assert!((rows(Series::SeqRetransmitted) as f64 - resent).abs() < 0.5);
    // The last ACK covers only bytes that were sent and that the receiver had.
    assert!(last(Series::AckReceived) <= flow.delivered_bytes as f64);
}

/// Packet Control §V: with a threshold above the sender's three, the base station holds back
/// duplicate ACKs.
#[test]
fn packet_control_acts_on_the_flows_of_its_mobiles() {
    let long = Duration::from_secs(100);
    let cuts = |threshold| {
        let metrics = common::run(&common::reordering(threshold, long), 1);
        (metrics.flows[0].cwnd_reductions, metrics.middleboxes)
    };
    let (without, none) = cuts(None);
    assert_eq!(none, []);
    let (with, middleboxes) = cuts(Some(12));
    assert!(with < without / 2, "{with} reductions with R = 12, {without} without");
    assert_eq!(middleboxes[0].name, "n1");
    assert!(middleboxes[0].counters["acks_duplicate_dropped"] > 100);

    let mut other = common::reordering(Some(12), long);
    if let Some(middlebox) = &mut other.nodes[NodeId(1)].middlebox {
        middlebox.mobiles.clear();
    }
    let metrics = common::run(&other, 1);
    assert_eq!(metrics.flows[0].cwnd_reductions, without);
    assert_eq!(metrics.middleboxes[0].counters["acks_forwarded"], 0);
}

/// A radio reports that its link is down, however the scenario puts it: as an outage of the link or
/// of the node behind it.
#[test]
fn an_outage_of_the_link_is_signalled_as_that_of_the_mobile() {
    let outage = "outage = { listed = [[\"5 s\", \"15 s\"]] }";
    let scenario = |node: &str, link: &str| {
        let text = format!(
            "duration = \"30 s\"\n\
             [[node]]\nname = \"FH\"\n\
             [[node]]\nname = \"BS\"\n\
             middlebox = {{ mechanism = \"m-tcp-plus\", mobiles = [\"MH\"] }}\n\
             [[node]]\nname = \"MH\"\n{node}\n\
             [[link]]\nbetween = [\"FH\", \"BS\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
             [[link]]\nbetween = [\"BS\", \"MH\"]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n{link}\n\
             [[flow]]\nfrom = \"FH\"\nto = \"MH\"\n"
        );
        common::run(&common::parse(&text, &[]), 1)
    };
    // The end of a slot is an outage that everybody knows of.
    let slot =
        "reconfiguration = { interval = \"60 s\", offset = \"5 s\", interruption = \"10 s\" }";
    for metrics in [scenario(outage, ""), scenario("", outage), scenario("", slot)] {
        let flow = &metrics.flows[0];
        assert_eq!(flow.timeouts, 0);
        assert!(
            flow.outage_dead_time.is_some_and(|dead| dead < 0.1),
            "{:?}",
            flow.outage_dead_time
        );
    }
}

/// Segments that a middlebox generates go out on the path of their flow, and are published as
/// events.
#[test]
fn a_middlebox_injects_towards_the_fixed_host() {
    #[derive(Default)]
    struct Seen {
        injected: Vec<Instant>,
        dropped: u64,
    }
    impl Subscriber for Seen {
        fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
            match *event {
                Event::Injected { .. } => {
                    assert_eq!(source, Source::Node(1));
                    self.injected.push(at);
                }
                Event::Dropped { reason: DropReason::Middlebox, .. } => self.dropped += 1,
                _ => {}
            }
        }
    }
    // The wired network delivers no ACK for a while: the sender retransmits what the mobile has,
    // and every second retransmission of a segment is answered.
    let mut scenario = common::reordering(Some(6), Duration::from_secs(60));
    let schedule = Schedule::Listed(vec![(Instant::from_secs(10), Instant::from_secs(20))]);
    scenario.links[1].config.outage = Some(OutageConfig { schedule, mode: OutageMode::Drop });
    let mut seen = Seen::default();
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers { events: Some(&mut seen), ..Observers::default() });
    let counters = &world.metrics().middleboxes[0].counters;
    assert!(counters["acks_generated"] > 0, "the data filter had nothing to answer");
    assert_eq!(seen.injected.len() as u64, counters["acks_generated"]);
    let dropped = ["acks_old_dropped", "acks_duplicate_dropped", "data_dropped"];
    assert_eq!(seen.dropped, dropped.iter().map(|name| counters[name]).sum::<u64>());
}
