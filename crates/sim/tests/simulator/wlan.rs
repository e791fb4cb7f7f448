//! Wireless cells, outages of mobiles, and mechanisms against them, in whole scenarios.

use crate::common;
use airtcp_core::{Dscp, Duration, Event, Flow, Instant, Source, Subscriber};
use airtcp_net::wifi::{AccessCategories, CategoryConfig};
use airtcp_sim::metrics::{CallMetrics, FlowMetrics, StationMetrics};
use airtcp_sim::packet::Packet;
use airtcp_sim::scenario::{Marks, Scenario};
use airtcp_sim::trace::{Crossing, Direction, PacketTap, Recorder, Series};
use airtcp_sim::{Observers, RunMetrics, World};
use std::collections::{BTreeMap, BTreeSet};

/// A fixed host behind an access point, and a mobile host in its cell (M-TCP+ §4).
const DOWNLOAD: &str = r#"
    duration = "60 s"
    [[node]]
    name = "FH"
    [[node]]
    name = "AP"
    [[node]]
    name = "MH"
    [[link]]
    between = ["FH", "AP"]
    rate = "100 Mbit/s"
    delay = "1 ms"
    [[wlan]]
    name = "cell"
    stations = ["AP", "MH"]
    preset = "ns2"
    data-rate = "5.5 Mbit/s"
    [tcp]
    preset = "rfc"
    receive-buffer = "8760 B"
    [[flow]]
    name = "ftp"
    from = "FH"
    to = "MH"
"#;

fn run(text: &str, set: &[(&str, &str)]) -> RunMetrics {
    common::run(&common::parse(text, set), 1)
}

fn download(set: &[(&str, &str)]) -> (FlowMetrics, RunMetrics) {
    let metrics = run(DOWNLOAD, set);
    (metrics.flows[0].clone(), metrics)
}

const OUTAGE: (&str, &str) = ("node.MH.outage", "{ listed = [[\"10 s\", \"20 s\"]] }");
const M_TCP_PLUS: (&str, &str) =
    ("node.AP.middlebox", "{ mechanism = \"m-tcp-plus\", mobiles = [\"MH\"] }");

#[test]
fn a_download_crosses_the_cell() {
    let (flow, metrics) = download(&[("flow.ftp.bytes", "1 MB")]);
    assert_eq!((flow.delivered_bytes, flow.retransmission_ratio), (1_000_000, 0.0));
    assert_eq!(flow.state, "TimeWait");
    let [ap, mh] = metrics.stations.as_slice() else { panic!("{:?}", metrics.stations) };
    assert_eq!((ap.name.as_str(), mh.name.as_str()), ("cell/AP", "cell/MH"));
    // 685 segments, the SYN ACK and the ACK of the FIN; each with RTS, CTS and ACK.
    let StationMetrics { data_frames_sent, rts_sent, retries, .. } = ap;
    assert!(*data_frames_sent >= 687 && data_frames_sent - retries <= 687, "{ap:?}");
    assert!(*rts_sent >= 687 && mh.cts_sent >= 687 && mh.ack_frames_sent >= 687, "{ap:?} {mh:?}");
}

/// Routing is by hop count between stations that can receive each other: up to 250 m with ns-2's
/// default radio.
#[test]
fn stations_out_of_range_are_reached_through_others() {
    struct Nodes(Vec<u32>);
    impl PacketTap for Nodes {
        fn on_packet(&mut self, &Crossing { node, direction, packet, .. }: &Crossing<'_>) {
            if direction == Direction::Received && packet.has_data() && !self.0.contains(&node.0) {
                self.0.push(node.0);
            }
        }
    }
    let chain = r#"
        duration = "5 s"
        [[node]]
        name = "n"
        count = 4
        position = ["0 m", "0 m"]
        spacing = ["200 m", "0 m"]
        [[wlan]]
        name = "chain"
        stations = ["n"]
        preset = "ns2"
        [[flow]]
        from = "n0"
        to = "n3"
        bytes = "10 kB"
    "#;
    let mut nodes = Nodes(vec![]);
    let mut world = World::new(&common::parse(chain, &[]), 1);
    world.run(&mut Observers { packets: Some(&mut nodes), ..Observers::default() });
    assert_eq!(nodes.0, [1, 2, 3]);
    assert_eq!(world.metrics().flows[0].delivered_bytes, 10_000);
}

/// M-TCP §3.3: during an outage above the MAC the access point sees no failure; with the radio down
/// it does.
#[test]
fn an_outage_of_the_radio_costs_retries_and_one_above_the_mac_does_not() {
    let (above, metrics) = download(&[OUTAGE]);
    assert_eq!(above.mac_drops, 0);
    assert_eq!(metrics.stations[0].link_failures, 0);
    let (phy, metrics) = download(&[OUTAGE, ("node.MH.outage.layer", "phy")]);
    assert!(phy.mac_drops > 0 && metrics.stations[0].retries > above.mac_drops);
    assert_eq!(metrics.stations[0].mac_drops + metrics.stations[1].mac_drops, phy.mac_drops);
    assert!(phy.outage_dead_time.is_some_and(|dead| dead < 6.0), "{:?}", phy.outage_dead_time);
}

/// RFC 6298 §5.5: from an RTO of 1 s the sender retries 2^k - 1 s after it was cut off, so that
/// outages of 5, 10 and 30 s cost it 2, 5 and 1 s.
#[test]
fn a_sender_without_help_loses_the_time_of_its_back_off() {
    for (end, dead) in [("15 s", 2.0), ("20 s", 5.0), ("40 s", 1.0)] {
        let outage = format!("{{ listed = [[\"10 s\", \"{end}\"]] }}");
        let (flow, _) = download(&[("node.MH.outage", &outage)]);
        let found = flow.outage_dead_time.expect("one outage");
        assert_eq!(flow.outages, 1);
        assert!((found - dead).abs() < 0.1, "{end}: {found}, not {dead}");
    }
}

#[test]
fn the_dead_time_of_an_outage_is_a_series_too() {
    let scenario = common::parse(DOWNLOAD, &[OUTAGE]);
    let mut recorder = Recorder::new(&[Series::OutageDeadTime]);
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers { events: Some(&mut recorder), ..Observers::default() });
    let columns = recorder.columns(Series::OutageDeadTime);
    let dead = world.metrics().flows[0].outage_dead_time.expect("one outage");
    assert_eq!(columns.value, [dead]);
    assert!((columns.time_s[0] - 20.0 - dead).abs() < 1e-9);
}

/// M-TCP+ §3: with the signal the sender waits in persist, its window intact.
#[test]
fn m_tcp_plus_is_told_of_the_outage() {
    let (flow, metrics) = download(&[OUTAGE, M_TCP_PLUS]);
    assert_eq!(metrics.middleboxes[0].kind, "m-tcp-plus");
    assert_eq!(metrics.middleboxes[0].counters["freezes"], 1);
    assert_eq!((flow.timeouts, flow.cwnd_reductions), (0, 0));
    assert!(flow.window_probes > 0);
    assert!(flow.outage_dead_time.is_some_and(|dead| dead < 0.1), "{:?}", flow.outage_dead_time);
}

/// M-TCP+ §3: "without the signal the algorithm is never initiated".
#[test]
fn without_the_signal_m_tcp_plus_changes_nothing() {
    let (without, _) = download(&[OUTAGE]);
    for signal in ["none", "{ missing = 1.0 }"] {
        let (flow, metrics) = download(&[OUTAGE, M_TCP_PLUS, ("node.AP.middlebox.signal", signal)]);
        assert_eq!(metrics.middleboxes[0].counters["freezes"], 0, "{signal}");
        assert_eq!(flow, without, "{signal}");
    }
}

#[test]
fn a_late_signal_leaves_data_to_be_replayed() {
    let late = ("node.AP.middlebox.signal", "{ late = \"0.5 s\" }");
    let (flow, metrics) = download(&[OUTAGE, M_TCP_PLUS, late]);
    let counters = &metrics.middleboxes[0].counters;
    assert_eq!((counters["freezes"], counters["replays"]), (1, 1));
    assert!(flow.outage_dead_time.is_some_and(|dead| dead < 0.1), "{:?}", flow.outage_dead_time);
}

#[test]
fn every_mechanism_brings_the_flow_back_sooner_than_its_back_off() {
    let (alone, _) = download(&[OUTAGE]);
    let alone = alone.outage_dead_time.expect("one outage");
    for kind in ["m-tcp", "m-tcp-plus", "holdover", "snoop"] {
        let (flow, metrics) =
            download(&[OUTAGE, M_TCP_PLUS, ("node.AP.middlebox.mechanism", kind)]);
        assert_eq!(metrics.middleboxes[0].kind, kind);
        let dead = flow.outage_dead_time.expect("one outage");
        assert!(dead < alone / 10.0, "{kind}: {dead} s, alone {alone} s");
    }
}

/// Freeze-TCP: the mobile closes its window when its own radio warns it; M-TCP: a recovery ACK.
#[test]
fn a_mobile_reacts_to_its_own_radio() {
    let (freeze, _) = download(&[OUTAGE, ("flow.ftp.receiver", "{ on-link = \"freeze\" }")]);
    assert_eq!(freeze.timeouts, 0);
    assert!(freeze.outage_dead_time.is_some_and(|dead| dead < 0.1), "{freeze:?}");
    let unwarned = ("node.MH.outage.warning", "0 s");
    let freeze = ("flow.ftp.receiver", "{ on-link = \"freeze\" }");
    let (too_late, _) = download(&[OUTAGE, unwarned, freeze]);
    assert!(too_late.timeouts > 0, "{too_late:?}");

    let m_tcp = ("node.AP.middlebox", "{ mechanism = \"m-tcp\", mobiles = [\"MH\"] }");
    let dead = |on_link| {
        let end = ("flow.ftp.receiver", on_link);
        // It does not end at an instant at which the supervisor host retries by itself.
        let outage = ("node.MH.outage", "{ listed = [[\"10 s\", \"20.1 s\"]] }");
        download(&[outage, m_tcp, end]).0.outage_dead_time.expect("one outage")
    };
    let (without, with) = (dead("{}"), dead("{ on-link = \"recovery-ack\" }"));
    assert!(with < without / 2.0, "{with} s with the recovery ACK, {without} s without");
}

#[test]
fn a_connection_ends_when_its_mobile_is_away_for_max_down() {
    let away = ("node.MH.outage", "{ listed = [[\"10 s\", \"1000 s\"]] }");
    let (waiting, _) = download(&[away, M_TCP_PLUS]);
    assert_eq!((waiting.aborted, waiting.outages), (None, 0));
    let max_down = ("node.AP.middlebox.max-down", "20 s");
    let (reset, metrics) = download(&[away, M_TCP_PLUS, max_down, ("flow.ftp.bytes", "100 MB")]);
    assert_eq!((reset.aborted.as_deref(), reset.download_time), (Some("Reset"), None));
    assert_eq!(metrics.middleboxes[0].counters["resets"], 1);
}

#[test]
fn the_signal_comes_as_early_as_the_scenario_says() {
    struct Injections(u32);
    impl Subscriber for Injections {
        fn on_event(&mut self, _: Instant, source: Source, event: &Event) {
            if let (Source::Node(1), Event::Injected { .. }) = (source, event) {
                self.0 += 1;
            }
        }
    }
    for (signal, at) in
        [("{}", 9_950), ("{ lead = \"1 s\" }", 9_000), ("{ lead = \"0 s\" }", 10_000)]
    {
        let set = [OUTAGE, M_TCP_PLUS, ("node.AP.middlebox.signal", signal)];
        let mut world = World::new(&common::parse(DOWNLOAD, &set), 1);
        let mut count = |ms| {
            let mut seen = Injections(0);
            let observers = &mut Observers { events: Some(&mut seen), ..Observers::default() };
            world.run_until(Instant::from_millis(ms), observers);
            seen.0
        };
        assert_eq!(count(at - 1), 0, "{signal}");
        assert!(count(at) > 0, "{signal}");
    }
}

/// Cross traffic from A to B over a link of 1 Mbit/s.
const NOISE: &str = r#"
    duration = "100 s"
    [[node]]
    name = "A"
    [[node]]
    name = "B"
    [[link]]
    between = ["A", "B"]
    rate = "1 Mbit/s"
    delay = "5 ms"
    [[udp]]
    name = "noise"
    from = "A"
    to = "B"
    rate = "80 kbit/s"
    size = "1000 B"
"#;

#[test]
fn cross_traffic_comes_at_its_rate() {
    let metrics = run(NOISE, &[("udp.noise.start", "10 s"), ("udp.noise.stop", "20 s")]);
    let noise = &metrics.udp[0];
    // Ten packets a second.
    assert_eq!((noise.packets_sent, noise.packets_received, noise.packets_dropped), (100, 100, 0));
    assert!((noise.goodput - 972.0 * 8.0 * 10.0).abs() < 1e-6, "{}", noise.goodput);
    assert_eq!(metrics.links[0].bytes_sent, 100_000);
}

#[test]
fn cross_traffic_pauses() {
    let periods =
        |how| [("udp.noise.on", "1 s"), ("udp.noise.off", "3 s"), ("udp.noise.periods", how)];
    let stop = [("udp.noise.stop", "100 s")];
    let constant = run(NOISE, &[&stop[..], &periods("constant")].concat());
    assert_eq!(constant.udp[0].packets_sent, 250);
    let longer = [("duration", "4000 s")];
    let exponential = run(NOISE, &[&longer[..], &periods("exponential")].concat());
    let sent = exponential.udp[0].packets_sent as f64;
    // 1000 cycles; the standard deviation of the number in one is about its mean. A period begins
    // with a packet.
    assert!((sent / 10_500.0 - 1.0).abs() < 0.1, "{sent}");
}

#[test]
fn a_saturated_source_keeps_the_link_busy_and_loses_nothing() {
    let metrics = run(NOISE, &[("udp.noise.rate", "saturated")]);
    let noise = &metrics.udp[0];
    assert_eq!(noise.packets_dropped, 0);
    assert!(metrics.links[0].bytes_sent.abs_diff(12_500_000) <= 2_000, "{:?}", metrics.links[0]);
    assert_eq!(metrics.links[0].max_queue_packets, 1);
}

/// However long the link is, and whether its queue decides when a packet comes or when it goes.
#[test]
fn a_saturated_source_keeps_long_links_busy() {
    let duration = 10.0;
    let rate = 50e6;
    for queue in ["drop-tail", "codel", "fq-codel", "pie", "dualpi2"] {
        let set = [
            ("duration", "10 s"),
            ("udp.noise.rate", "saturated"),
            ("link.A-B.rate", "50 Mbit/s"),
            ("link.A-B.delay", "300 ms"),
            ("link.A-B.queue", &format!("{{ kind = \"{queue}\" }}")),
        ];
        let metrics = run(NOISE, &set);
        let sent = metrics.udp[0].packets_sent as f64;
        // A packet of 1000 bytes every 160 us; one waits and one is in service.
        assert!((sent - duration * rate / 8000.0).abs() <= 2.0, "{queue}: {sent}");
        assert_eq!((metrics.udp[0].packets_dropped, metrics.links[0].max_queue_packets), (0, 1));
    }
}

#[test]
fn a_saturated_source_goes_on_when_the_entrance_takes_its_packets() {
    let set = |more: &[(&'static str, &'static str)]| {
        run(NOISE, &[&[("udp.noise.rate", "saturated")], more].concat())
    };
    let lost =
        set(&[("link.A-B.loss", "{ kind = \"bernoulli\", p = 0.5, place = \"before-queue\" }")]);
    // A packet takes 8 ms. The next one is sent when its service starts, and if the entrance takes
    // that, when it ends, and every 8 ms from then on: on average the link is idle for 4 ms
    // for each that it carries.
    let received = lost.udp[0].packets_received as f64;
    assert!((received / 12_500.0 - 2.0 / 3.0).abs() < 0.02, "{received}");
    let all =
        set(&[("link.A-B.loss", "{ kind = \"bernoulli\", p = 1, place = \"before-queue\" }")]);
    assert_eq!(
        (all.udp[0].packets_received, all.udp[0].packets_sent),
        (0, 12_501),
        "at 0, 8, ... ms"
    );
    let policed = set(&[("link.A-B.policer", "{ rate = \"250 kbit/s\", burst = \"5 kB\" }")]);
    let received = policed.udp[0].packets_received as f64;
    assert!((received - 100.0 * 250e3 / 8000.0).abs() < 20.0, "{received}");
}

/// While TCP fills the queue it has no room for the source's packets: then the source waits.
#[test]
fn a_saturated_source_shares_a_full_queue() {
    let set = [
        ("udp.noise.rate", "saturated"),
        ("link.A-B.queue", "{ limit = \"1 packet\" }"),
        ("flow", "[{ from = \"A\", to = \"B\" }]"),
    ];
    let metrics = run(NOISE, &set);
    assert!(metrics.udp[0].packets_received > 1000 && metrics.udp[0].packets_dropped < 1_000_000);
}

#[test]
fn two_saturated_stations_share_the_channel() {
    let cell = r#"
        duration = "5 s"
        [[node]]
        name = "s"
        count = 2
        [[node]]
        name = "sink"
        [[wlan]]
        name = "cell"
        stations = ["s", "sink"]
        [[udp]]
        name = "load"
        from = "s"
        to = "sink"
        rate = "saturated"
    "#;
    let metrics = run(cell, &[]);
    let [a, b] = metrics.udp.as_slice() else { panic!("{:?}", metrics.udp) };
    assert_eq!((a.name.as_str(), b.name.as_str()), ("load0", "load1"));
    let total = a.goodput + b.goodput;
    // With 11 Mbit/s and the long preamble, about half is left.
    assert!((4.5e6..7e6).contains(&total) && (a.goodput / total - 0.5).abs() < 0.05, "{a:?} {b:?}");
}

/// A disconnection affects all traffic; above the MAC only SYN and FIN pass (M-TCP §3.3).
#[test]
fn datagrams_are_lost_in_an_outage() {
    let outage = ("node.B.outage", "{ listed = [[\"50 s\", \"60 s\"]] }");
    let metrics = run(NOISE, &[outage, ("udp.noise.stop", "90 s")]);
    let noise = &metrics.udp[0];
    assert_eq!(
        (noise.packets_sent, noise.packets_received, noise.packets_dropped),
        (900, 800, 100)
    );
}

#[test]
fn cells_repeat_and_depend_on_the_seed() {
    let scenario = common::parse(DOWNLOAD, &[("duration", "5 s")]);
    let run = |seed| common::run(&scenario, seed);
    assert_eq!(run(3), run(3));
    assert_ne!(run(3).stations, run(4).stations);
    assert_eq!(run(3).duration, Duration::from_secs(5).as_secs_f64());
}

/// Range 250 m, so that the mobile hears the access point for 15.05 s: until 10 s it stands still,
/// then it leaves with 10 m/s.
#[test]
fn a_mobile_that_leaves_the_range_hears_nothing() {
    let metrics = run(
        r#"
        duration = "60 s"
        [[node]]
        name = "AP"
        position = ["0 m", "0 m"]
        [[node]]
        name = "MH"
        position = ["199.5 m", "0 m"]
        mobility = { model = "path", waypoints = [["10 s", "199.5 m", "0 m"], ["60 s", "699.5 m", "0 m"]] }
        [[wlan]]
        name = "cell"
        stations = ["AP", "MH"]
        preset = "ns2"
        [[udp]]
        from = "AP"
        to = "MH"
        rate = "80 kbit/s"
        size = "1000 B""#,
        &[],
    );
    assert_eq!(metrics.udp[0].packets_received, 151, "{:?}", metrics.udp[0]);
}

/// A download by today's sender over an access point that is the bottleneck.
fn behind_ap(set: &[(&str, &str)]) -> RunMetrics {
    let today = [
        ("duration", "20 s"),
        ("link.FH-AP.delay", "10 ms"),
        ("wlan.cell.preset", "ieee"),
        ("wlan.cell.data-rate", "11 Mbit/s"),
        ("tcp", "{ preset = \"linux\", ecn = \"rfc3168\" }"),
    ];
    run(DOWNLOAD, &[&today, set].concat())
}

#[test]
fn a_discipline_at_the_access_point_marks_and_keeps_its_queue_short() {
    let deep = behind_ap(&[("wlan.cell.queue", "1000 packets")]);
    assert!(deep.stations[0].max_queue_packets > 200, "{:?}", deep.stations[0]);
    for kind in ["{ kind = \"codel\", ecn = true }", "{ kind = \"fq-codel\" }"] {
        let metrics = behind_ap(&[("wlan.cell.queue-discipline", kind)]);
        let (flow, ap) = (&metrics.flows[0], &metrics.stations[0]);
        assert!(ap.ecn_marks > 0 && ap.queue_drops == 0, "{kind}: {ap:?}");
        assert_eq!((flow.retransmission_ratio, flow.timeouts), (0.0, 0), "{kind}");
        assert!(flow.goodput > 0.9 * deep.flows[0].goodput, "{kind}: {}", flow.goodput);
    }
    let dropped = behind_ap(&[("wlan.cell.queue-discipline", "{ kind = \"codel\" }")]);
    assert!(dropped.stations[0].queue_drops > 0 && dropped.stations[0].ecn_marks == 0);
}

#[test]
fn drop_tail_as_a_discipline_is_the_same_run() {
    let discipline = "{ kind = \"drop-tail\", limit = \"30 packets\" }";
    let metrics = behind_ap(&[("wlan.cell.queue-discipline", discipline)]);
    let same = behind_ap(&[("wlan.cell.queue", "30 packets")]);
    assert_eq!((metrics.flows, metrics.stations), (same.flows, same.stations));
}

/// What two stations receive in Mbit/s, one near the access point and one at a distance: by TCP, or of
/// more datagrams than the cell can carry.
fn two_downloads(distance: &str, wlan: &str, by_udp: bool) -> [f64; 2] {
    let (kind, rate) =
        if by_udp { ("udp", "rate = \"60 Mbit/s\"\nsize = \"1500 B\"") } else { ("flow", "") };
    let text = format!(
        r#"
        duration = "10 s"
        [[node]]
        name = "server"
        [[node]]
        name = "AP"
        position = ["0 m", "0 m"]
        [[node]]
        name = "near"
        position = ["5 m", "0 m"]
        [[node]]
        name = "other"
        position = ["0 m", "{distance}"]
        [[link]]
        between = ["server", "AP"]
        rate = "1 Gbit/s"
        delay = "10 ms"
        queue = {{ limit = "2000 packets" }}
        [[wlan]]
        name = "cell"
        stations = ["AP", "near", "other"]
        preset = "ieee80211n"
        {wlan}
        [[{kind}]]
        name = "to-near"
        from = "server"
        to = "near"
        {rate}
        [[{kind}]]
        name = "to-other"
        from = "server"
        to = "other"
        {rate}
        "#
    );
    let metrics = run(&text, &[]);
    let goodputs: Vec<f64> = match by_udp {
        true => metrics.udp.iter().map(|udp| udp.goodput).collect(),
        false => metrics.flows.iter().map(|flow| flow.goodput).collect(),
    };
    [goodputs[0], goodputs[1]].map(|goodput| goodput * 1e-6)
}

const SHARED: &str = "queue = \"200 packets\"";

#[test]
fn with_a_discipline_frames_for_many_receivers_are_full() {
    let shared: f64 = two_downloads("5 m", SHARED, false).iter().sum();
    for kind in ["codel", "fq-codel", "pie"] {
        let discipline = format!("queue-discipline = {{ kind = \"{kind}\" }}");
        let separate: f64 = two_downloads("5 m", &discipline, false).iter().sum();
        assert!(separate > 0.9 * shared, "{kind}: {separate}, not {shared}");
    }
}

/// The performance anomaly (Heusse et al., INFOCOM 2003) and its end (Høiland-Jørgensen et al., USENIX
/// ATC 2017): by packets, a station at a low rate takes the time of the other one.
#[test]
fn by_airtime_a_far_station_does_not_slow_down_a_near_one() {
    let minstrel = "rate-control = \"minstrel-ht\"\nrx-threshold = \"-96 dBm\"\n\
                    cs-threshold = \"-96 dBm\"\n";
    let linux = "queue-discipline = { kind = \"fq-codel\", limit = \"8192 packets\", flows = 4096, \
                 quantum = \"300 B\", target = \"20 ms\" }";
    let of = |queue: &str| two_downloads("500 m", &format!("{minstrel}{queue}"), true);
    let (shared, separate) = (of(SHARED), of(linux));
    println!("Mbit/s of a near and a far station: one queue {shared:.1?}, Linux's {separate:.1?}");
    // Packets take turns in one queue; else the near station has half of the time.
    assert!((shared[0] / shared[1] - 1.0).abs() < 0.2, "{shared:?}");
    let [near, far] = separate;
    let alone = two_downloads("5 m", &format!("{minstrel}{linux}"), true).iter().sum::<f64>();
    assert!((near / (0.5 * alone) - 1.0).abs() < 0.1, "{near}, not half of {alone}");
    assert!(far > 0.5 * shared[1], "{separate:?}, not {shared:?}");
}

#[test]
fn a_discipline_that_cannot_work_is_refused() {
    let text = DOWNLOAD.replace(
        "stations = [\"AP\", \"MH\"]",
        "stations = [\"AP\", \"MH\"]\n    queue-discipline = { kind = \"codel\" }",
    );
    let refuses = |text: &str, expected: &str| {
        let error = Scenario::parse("t.toml", text, &[]).expect_err("a mistake").to_string();
        assert_eq!(error.lines().next(), Some(expected));
    };
    refuses(
        &text.replace("queue-discipline", "queue = \"9 packets\"\n    queue-discipline"),
        "t.toml:16:13: wlan.cell.queue: beside queue-discipline, which has its own limit (expected one \
         of the two)",
    );
    refuses(
        &format!("{text}\n    [routing]\n    protocol = \"aodv\""),
        "t.toml:16:24: wlan.cell.queue-discipline: with a routing protocol (expected shortest paths: \
         routing protocols send their packets first and take others back)",
    );
}

#[test]
fn ampdus_and_amsdus_with_a_routing_protocol_are_refused() {
    let modern = DOWNLOAD
        .replace("preset = \"ns2\"\n    data-rate = \"5.5 Mbit/s\"", "preset = \"ieee80211n\"");
    let error = |text: &str| Scenario::parse("t.toml", text, &[]).expect_err("refused").to_string();
    let routed = format!("{modern}\n    [routing]\n    protocol = \"aodv\"");
    let refused = error(&routed);
    assert!(refused.contains("wlan.cell.preset: A-MPDUs with a routing protocol"), "{refused}");
    let alone = routed.replace("\"ieee80211n\"", "\"ieee80211n\"\n    ampdu-limit = \"0 B\"");
    if let Err(error) = Scenario::parse("t.toml", &alone, &[]) {
        panic!("{}", error.render());
    }
    let refused = error(&alone.replace("\"0 B\"", "\"0 B\"\n    amsdu-limit = \"3839 B\""));
    assert!(
        refused.contains("wlan.cell.amsdu-limit: A-MSDUs with a routing protocol"),
        "{refused}"
    );
}

#[test]
fn keys_of_other_kinds_of_frames_are_refused() {
    let with = |keys: &str| {
        let preset = format!("preset = \"ieee80211n\"\n{keys}");
        let text = DOWNLOAD.replace("preset = \"ns2\"\n    data-rate = \"5.5 Mbit/s\"", &preset);
        Scenario::parse("t.toml", &text, &[]).map(drop).map_err(|error| error.to_string())
    };
    let (alone, window, long) =
        ("ampdu-limit = \"0 B\"\n", "block-ack-window = 8\n", "long-retry-limit = 5\n");
    let refused = with(&[alone, window].concat()).unwrap_err();
    let expected = "wlan.cell.block-ack-window: has no effect with ampdu-limit = \"0 B\"";
    assert!(refused.contains(expected), "{refused}");
    let expected = "wlan.cell.long-retry-limit: has no effect on frames that packets share";
    for keys in [long.to_owned(), [alone, long, "amsdu-limit = \"3839 B\"\n"].concat()] {
        let refused = with(&keys).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
    assert_eq!(with(window), Ok(()));
    assert_eq!(with(&[alone, long].concat()), Ok(()));
}

/// A cell of 802.11n with these keys beside its preset.
fn modern(keys: &str) -> Result<Scenario, String> {
    let preset = format!("preset = \"ieee80211n\"\n{keys}");
    let text = DOWNLOAD.replace("preset = \"ns2\"\n    data-rate = \"5.5 Mbit/s\"", &preset);
    Scenario::parse("t.toml", &text, &[]).map_err(|error| error.to_string())
}

#[test]
fn rate_control_is_refused_where_it_has_no_choice() {
    let minstrel = "rate-control = \"minstrel-ht\"\n";
    assert!(modern(minstrel).is_ok());
    let b = DOWNLOAD.replace("preset = \"ns2\"", &format!("preset = \"ns2\"\n{minstrel}"));
    let refused = |result: Result<Scenario, String>| result.map(drop).unwrap_err();
    for (refused, expected) in [
        (
            refused(modern(&[minstrel, "mcs = 7\n"].concat())),
            "wlan.cell.mcs: has no effect with rate-control = \"minstrel-ht\" (expected rate-control = \
             \"fixed\")",
        ),
        (
            refused(modern(&[minstrel, "amsdu-limit = \"3839 B\"\n"].concat())),
            "wlan.cell.amsdu-limit: amsdu-limit is 3839 B: expected \"0 B\" with rate-control = \
             \"minstrel-ht\"",
        ),
        (
            refused(modern("rate-control = \"minstrel\"\n")),
            "wlan.cell.rate-control: \"minstrel\" is not a choice here (expected \"fixed\" or \
             \"minstrel-ht\")",
        ),
        (
            refused(Scenario::parse("t.toml", &b, &[]).map_err(|error| error.to_string())),
            "wlan.cell.rate-control: has no effect with preset = \"ns2\"",
        ),
    ] {
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn access_categories_have_the_standard_s_values_unless_told_otherwise() {
    let of = |keys: &str| {
        let scenario = modern(keys).unwrap();
        scenario.wlans[0].config.phy.access_categories().copied()
    };
    assert_eq!(of(""), None);
    let standard = AccessCategories::default();
    assert_eq!(of("access-categories = {}"), Some(standard));
    let voice = "access-categories = { voice = { cw-min = 1, txop-limit = \"0 s\" } }";
    let CategoryConfig { aifsn, cw_max, .. } = standard.voice;
    let expected = CategoryConfig { aifsn, cw_min: 1, cw_max, txop_limit: Duration::ZERO };
    assert_eq!(of(voice), Some(AccessCategories { voice: expected, ..standard }));
}

#[test]
fn access_categories_that_cannot_work_are_refused() {
    let on = "access-categories = {}\n";
    for (keys, expected) in [
        (
            "access-categories = { video = { cw-min = 8 } }",
            "wlan.cell.access-categories: video.cw-min is 8: a contention window is 2^k - 1 slots",
        ),
        (
            "access-categories = { voice = { cw-max = 1 } }",
            "wlan.cell.access-categories: voice.cw-min is 3, above cw-max, 1",
        ),
        (
            "access-categories = { best-effort = { txop-limit = \"1 ms\" } }",
            "wlan.cell.access-categories: best-effort.txop-limit is 1 ms: expected a multiple of 32 us, \
             at most 65535 of them, the nearest is 992 us",
        ),
        ("access-categories = { voice = { aifsn = 1 } }", "voice.aifsn: 1 is out of range"),
        ("access-categories = { speech = {} }", "unknown key"),
        (
            &[on, "cw-min = 7"].concat(),
            "wlan.cell.cw-min: has no effect with access-categories: each has its own",
        ),
        (&[on, "aifsn = 2"].concat(), "wlan.cell.aifsn: has no effect with access-categories"),
        (
            &[on, "txop-limit = \"2528 us\""].concat(),
            "wlan.cell.txop-limit: has no effect with access-categories",
        ),
        (
            &[on, "first-access = \"backoff\""].concat(),
            "wlan.cell.first-access: has no effect with access-categories, which act at slot boundaries",
        ),
        (
            &[on, "ampdu-limit = \"0 B\"\n[routing]\nprotocol = \"aodv\""].concat(),
            "wlan.cell.access-categories: with a routing protocol",
        ),
    ] {
        let refused = modern(keys).unwrap_err();
        assert!(refused.contains(expected), "{keys}: {refused}");
    }
    // 802.11b has no QoS.
    let text = DOWNLOAD.replace("preset = \"ns2\"", &[on, "preset = \"ns2\""].concat());
    let refused = Scenario::parse("t.toml", &text, &[]).unwrap_err().to_string();
    assert!(refused.contains("wlan.cell.access-categories"), "{refused}");
}

#[test]
fn a_dscp_is_a_name_or_a_number() {
    let flow = |keys: &str| {
        let text = DOWNLOAD.replace("[[flow]]", &["[[flow]]\n", keys].concat());
        Scenario::parse("t.toml", &text, &[]).map_err(|error| error.to_string())
    };
    let marks = |keys: &str| {
        let Marks { sender, receiver } = flow(keys).unwrap().flows[0].marks;
        (sender.bits(), receiver.bits())
    };
    assert_eq!(marks(""), (0, 0));
    assert_eq!(marks("dscp = \"EF\""), (46, 0));
    assert_eq!(marks("dscp = 33\nreply-dscp = \"AF41\""), (33, 34));
    let refused = flow("dscp = \"ef\"").unwrap_err();
    assert!(refused.contains("did you mean \"EF\"") || refused.contains("\"EF\""), "{refused}");
    let refused = flow("dscp = 64").unwrap_err();
    assert!(refused.contains("flow.ftp.dscp: 64 is out of range"), "{refused}");
    assert!(refused.contains("a whole number from 0 to 63"), "{refused}");
}

/// Also of what a mechanism forwards, and of what it sends itself.
#[test]
fn every_packet_of_an_end_has_its_dscp() {
    struct Marked(BTreeMap<Flow, BTreeSet<Dscp>>);
    impl PacketTap for Marked {
        fn on_packet(&mut self, &Crossing { dscp, packet, .. }: &Crossing<'_>) {
            let Packet::Tcp(segment) = packet else { return };
            self.0.entry(segment.flow).or_default().insert(dscp);
        }
    }
    let marks = [("flow.ftp.dscp", "EF"), ("flow.ftp.reply-dscp", "AF21")];
    for more in [&[OUTAGE, M_TCP_PLUS][..], &[]] {
        let set = [&marks[..], &[("duration", "15 s")], more].concat();
        let mut tap = Marked(BTreeMap::new());
        let mut world = World::new(&common::parse(DOWNLOAD, &set), 1);
        world.run(&mut Observers { packets: Some(&mut tap), ..Observers::default() });
        let froze = world.metrics().middleboxes.first().map(|it| it.counters["freezes"]);
        assert_eq!(froze, more.first().map(|_| 1));
        let mut seen: Vec<_> = tap.0.into_values().collect();
        seen.sort();
        let only = |name| BTreeSet::from([Dscp::named(name).unwrap()]);
        assert_eq!(seen, [only("AF21"), only("EF")]);
    }
}

/// Voice beside a download and an upload: with categories, its packets wait for none of theirs.
#[test]
fn voice_passes_bulk_data_with_its_category_alone() {
    let text = include_str!("../../../../examples/voice.toml");
    let short = [("duration", "5 s")];
    let marked = run(text, &short);
    let bulk = [("call.down.dscp", "CS0"), ("call.up.dscp", "CS0")];
    let unmarked = run(text, &[&short[..], &bulk].concat());
    let [first, second] = [&marked, &unmarked].map(|run| &run.calls[0]);
    let mos = |call: &CallMetrics| call.mos.unwrap();
    assert!(mos(first) > 4.3 && mos(second) < 4.0, "{first:?}, {second:?}");
    assert!(marked.stations[0].internal_collisions > 0);
    // Without categories the mark changes nothing.
    let one = |dscp: &str| {
        let plain = text.replace("access-categories = {}\n", "");
        let metrics = run(&plain, &[short[0], ("call.down.dscp", dscp)]);
        (metrics.flows, metrics.calls, metrics.stations)
    };
    assert_eq!(one("EF"), one("CS0"));
}

/// A download by A-MSDUs needs fewer frames, and counts MPDUs.
#[test]
fn a_download_by_amsdus_has_fewer_frames() {
    let frames = |amsdu: &str| {
        let preset = format!(
            "preset = \"ieee80211n\"\n    ampdu-limit = \"0 B\"\n    amsdu-limit = \"{amsdu}\""
        );
        let text = DOWNLOAD.replace("preset = \"ns2\"\n    data-rate = \"5.5 Mbit/s\"", &preset);
        let metrics = run(&text, &[("flow.ftp.bytes", "1 MB"), ("tcp.receive-buffer", "64 kB")]);
        assert_eq!(metrics.flows[0].delivered_bytes, 1_000_000);
        let ap = &metrics.stations[0];
        ap.data_frames_sent - ap.retries
    };
    let (alone, pairs, many) = (frames("0 B"), frames("3839 B"), frames("7935 B"));
    assert!(alone >= 687, "{alone}");
    assert!(pairs < alone && many < pairs, "{alone}, {pairs}, {many}");
}
