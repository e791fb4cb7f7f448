//! Routing protocols over 802.11, by scenario files.

use crate::common;
use airtcp_core::{Duration, Event, Instant, Source, Subscriber};
use airtcp_sim::metrics::RunMetrics;
use airtcp_sim::trace::{Crossing, Direction, PacketTap};
use airtcp_sim::{Observers, Packet, World};

fn run(text: &str, set: &[(&str, &str)], seed: u64) -> (Log, RunMetrics) {
    let scenario = common::parse(text, set);
    let (mut events, mut packets) = (Log::default(), Log::default());
    let mut world = World::new(&scenario, seed);
    world.run(&mut Observers {
        events: Some(&mut events),
        packets: Some(&mut packets),
        ..Observers::default()
    });
    (Log { arrivals: packets.arrivals, ..events }, world.metrics())
}

/// Reports of the routing protocols to transport, and packets that arrived.
#[derive(Default)]
struct Log {
    failed: Vec<(Instant, u32)>,
    found: Vec<(Instant, u32)>,
    delivered: Vec<Instant>,
    /// Packets of transport protocols, with the nodes that received them, relays too.
    arrivals: Vec<(Instant, u32)>,
}

impl Subscriber for Log {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        match (source, event) {
            (Source::Node(node), Event::RouteFailed { .. }) => self.failed.push((at, node)),
            (Source::Node(node), Event::RouteFound { .. }) => self.found.push((at, node)),
            (_, Event::Delivered { .. }) => self.delivered.push(at),
            _ => {}
        }
    }
}

impl PacketTap for Log {
    fn on_packet(&mut self, &Crossing { at, node, direction, packet, .. }: &Crossing<'_>) {
        if direction == Direction::Received && !matches!(packet, Packet::Control(_)) {
            self.arrivals.push((at, node.0));
        }
    }
}

impl Log {
    /// The longest time without delivery after this instant.
    fn longest_gap_after(&self, start: Instant) -> Duration {
        let late = self.delivered.iter().copied().filter(|&at| at >= start);
        let times: Vec<Instant> = [start].into_iter().chain(late).collect();
        times.windows(2).map(|pair| pair[1].since(pair[0])).max().expect("something was delivered")
    }

    fn through(&self, node: u32, from: Instant, until: Instant) -> usize {
        let here = |(at, there): &&(Instant, u32)| *there == node && *at >= from && *at < until;
        self.arrivals.iter().filter(here).count()
    }
}

/// A chain of nodes 200 m apart; the radios reach 250 m.
fn chain(hops: u32, traffic: &str) -> String {
    format!(
        r#"
        duration = "10 s"
        node = [{{ name = "n", count = {}, position = ["0 m", "0 m"], spacing = ["200 m", "0 m"] }}]
        wlan = [{{ name = "air", stations = ["n"], preset = "ns2" }}]
        routing = {{ protocol = "aodv" }}
        {traffic}"#,
        hops + 1
    )
}

/// The waits for rings that fail, 0.24, 0.40, 0.56 and 0.72 s (RFC 3561 §6.4), and about 8 ms a hop
/// of back-off, jitter, request and reply on the air.
#[test]
fn discovery_takes_the_rings_that_fail_and_some_milliseconds_a_hop() {
    let waits = [(1, 0), (2, 240), (3, 240), (4, 640), (5, 640), (6, 1200), (7, 1200), (8, 1920)];
    for (hops, wait) in waits {
        let udp = format!(
            r#"udp = [{{ from = "n0", to = "n{hops}", rate = "8 bit/s", size = "1000 B" }}]"#
        );
        let mut total = Duration::ZERO;
        for seed in 1..=10 {
            let (log, _) = run(&chain(hops, &udp), &[], seed);
            let arrival = log.arrivals.iter().find(|(_, node)| *node == hops);
            total += arrival.expect("it arrives").0.since_start();
        }
        let rest = (total / 10).as_secs_f64() - f64::from(wait) / 1e3;
        // The packet itself takes 6 ms a hop.
        let a_hop = rest / f64::from(hops) - 0.006;
        assert!((0.002..0.014).contains(&a_hop), "{hops} hops: {a_hop} s a hop beside the rings");
    }
}

/// `b` relays between `a` and `d`, and leaves after 8 s; `c` has come by then.
const RELAYS: &str = r#"
    duration = "20 s"
    node = [
        { name = "a", position = ["0 m", "0 m"] },
        { name = "b", position = ["200 m", "0 m"], mobility = { model = "path", waypoints = [
            ["8 s", "200 m", "0 m"], ["18 s", "200 m", "1000 m"]] } },
        { name = "c", position = ["200 m", "-1000 m"], mobility = { model = "path", waypoints = [
            ["5 s", "200 m", "-50 m"]] } },
        { name = "d", position = ["400 m", "0 m"] },
    ]
    wlan = [{ name = "air", stations = ["a", "b", "c", "d"], preset = "ns2" }]
    flow = [{ from = "a", to = "d" }]
    tcp = { preset = "rfc", rto = { min = "200 ms" } }
    routing = { protocol = "aodv" }"#;

#[test]
fn a_relay_that_leaves_is_replaced_by_another() {
    for preset in ["rfc", "ns2", "glomosim"] {
        let (log, metrics) = run(RELAYS, &[("routing.preset", preset)], 1);
        let (five, ten) = (Instant::from_secs(5), Instant::from_secs(12));
        assert!(log.through(1, Instant::ZERO, five) > 500, "{preset}: b relays at first");
        assert!(log.through(2, ten, Instant::from_secs(20)) > 500, "{preset}: c relays at last");
        // Whichever end notices first.
        assert!(log.failed.iter().any(|&(at, _)| at > five), "{preset}");
        assert!(!log.found.is_empty(), "{preset}");
        let gap = log.longest_gap_after(five);
        assert!(gap < Duration::from_secs(2), "{preset}: {gap}");
        let flow = &metrics.flows[0];
        assert!(flow.goodput > 400_000.0, "{preset}: {flow:?}");
    }
}

#[test]
fn dsr_and_gpsr_replace_a_relay_that_leaves_too() {
    for set in [
        &[("routing.protocol", "dsr")][..],
        &[("routing.protocol", "dsr"), ("routing.preset", "ns2")],
        &[("routing.protocol", "gpsr")],
        &[("routing.protocol", "gpsr"), ("routing.resend-returned", "false")],
    ] {
        let (log, metrics) = run(RELAYS, set, 1);
        let (five, twelve) = (Instant::from_secs(5), Instant::from_secs(12));
        assert!(log.through(2, twelve, Instant::from_secs(20)) > 500, "{set:?}: c relays at last");
        let gap = log.longest_gap_after(five);
        assert!(gap < Duration::from_secs(2), "{set:?}: {gap}");
        assert!(metrics.flows[0].goodput > 400_000.0, "{set:?}: {:?}", metrics.flows[0]);
    }
}

/// A gap of 1 km in the straight line, and a way around it.
#[test]
fn gpsr_leads_around_a_void() {
    let text = r#"
    duration = "10 s"
    node = [
        { name = "a", position = ["0 m", "0 m"] },
        { name = "n0", position = ["-60 m", "180 m"] },
        { name = "n1", position = ["120 m", "300 m"] },
        { name = "n2", position = ["330 m", "250 m"] },
        { name = "n3", position = ["500 m", "110 m"] },
        { name = "d", position = ["500 m", "-60 m"] },
    ]
    wlan = [{ name = "air", stations = ["a", "n0", "n1", "n2", "n3", "d"], preset = "ns2" }]
    udp = [{ from = "a", to = "d", rate = "8 kbit/s", size = "500 B", start = "5 s" }]
    routing = { protocol = "gpsr" }"#;
    let (log, metrics) = run(text, &[], 1);
    assert_eq!(metrics.udp[0].packets_dropped, 0);
    let through = |node| log.through(node, Instant::ZERO, Instant::from_secs(10));
    assert!((1..=5).all(|node| through(node) >= 10));
}

/// The last relay of a chain leaves, and another is in reach of the one before.
#[test]
fn a_route_is_repaired_where_it_breaks() {
    let text = r#"
    duration = "12 s"
    node = [
        { name = "n", count = 3, position = ["0 m", "0 m"], spacing = ["200 m", "0 m"] },
        { name = "b", position = ["600 m", "0 m"], mobility = { model = "path", waypoints = [
            ["6 s", "600 m", "0 m"], ["6 s", "600 m", "5000 m"]] } },
        { name = "c", position = ["5000 m", "-140 m"], mobility = { model = "path", waypoints = [
            ["4 s", "5000 m", "-140 m"], ["4 s", "600 m", "-140 m"]] } },
        { name = "d", position = ["800 m", "0 m"] },
    ]
    wlan = [{ name = "air", stations = ["n", "b", "c", "d"], preset = "ns2" }]
    udp = [{ from = "n0", to = "d", rate = "40 kbit/s", size = "500 B" }]
    routing = { protocol = "aodv" }"#;
    let outcome = |repair| {
        let (log, metrics) = run(text, &[("routing.local-repair", repair)], 1);
        (log.failed.len(), metrics.udp[0].packets_dropped)
    };
    assert_eq!(outcome("near-destination"), (0, 0));
    let (failed, dropped) = outcome("off");
    assert!(failed == 1 && dropped > 0, "{failed} {dropped}");
}

/// A source 200 m from its destination, without routing.
fn pair(set: &[(&str, &str)]) -> RunMetrics {
    let text = r#"
        duration = "10 s"
        node = [{ name = "n0", position = ["0 m", "0 m"] }, { name = "n1", position = ["200 m", "0 m"] }]
        wlan = [{ name = "air", stations = ["n0", "n1"], preset = "ns2" }]
        udp = [{ from = "n0", to = "n1", rate = "80 kbit/s", size = "1000 B" }]"#;
    run(text, set, 1).1
}

/// RFC 826: a request, a reply, and no more.
#[test]
fn address_resolution_costs_an_exchange_before_the_first_packet() {
    let [without, with] = ["false", "true"].map(|arp| pair(&[("wlan.air.arp", arp)]));
    assert_eq!(without.udp[0].packets_received, with.udp[0].packets_received);
    let broadcasts = |metrics: &RunMetrics, n: usize| metrics.stations[n].broadcasts_sent;
    assert_eq!((broadcasts(&without, 0), broadcasts(&with, 0)), (0, 1));
    // The reply is the only unicast packet of the destination.
    let data = |metrics: &RunMetrics| metrics.stations[1].data_frames_sent;
    assert_eq!((data(&without), data(&with)), (0, 1));
}

/// ns-2: three requests, and the fourth packet finds the neighbour gone; the packets that were
/// replaced are lost.
#[test]
fn a_neighbour_that_never_answers_is_asked_for_by_three_packets_of_four() {
    let away = ("node.n1.outage", r#"{ layer = "phy", listed = [["0 s", "10 s"]] }"#);
    let source = &pair(&[("wlan.air.arp", "true"), away]);
    assert_eq!(source.udp[0].packets_received, 0);
    // A packet every 0.1 s, 100 in all.
    assert_eq!(source.stations[0].broadcasts_sent, 75);
    assert_eq!(source.stations[0].rts_sent, 0);
}
