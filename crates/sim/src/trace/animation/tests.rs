//! What an animation collects.

use super::*;
use crate::metrics::LinkMetrics;
use crate::{Observers, World};
use std::fmt::Write as _;

/// Three stations in a row, 200 m apart; data goes over two hops.
const CHAIN: &str = r#"
    duration = "2 s"
    [[node]]
    name = "n"
    count = 3
    position = ["0 m", "0 m"]
    spacing = ["200 m", "0 m"]
    [[wlan]]
    name = "chain"
    stations = ["n"]
    preset = "ns2"
    [[flow]]
    from = "n0"
    to = "n2"
    [tcp]
    preset = "rfc""#;

/// A link with losses.
const LINK: &str = r#"
    duration = "20 s"
    node = [{ name = "A" }, { name = "B" }]
    link = [{ between = ["A", "B"], rate = "1 Mbit/s", delay = "10 ms", loss = { kind = "bernoulli", p = 0.05 } }]
    flow = [{ from = "A", to = "B" }]
    tcp.preset = "rfc""#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("t.toml", text, &[]).unwrap()
}

fn whole() -> Range<Instant> {
    Instant::ZERO..Instant::MAX
}

/// The animation after a run in so many slices.
fn run(scenario: &Scenario, span: Range<Instant>, limit: usize, slices: u64) -> Animation<'_> {
    let mut animation = Animation::new(scenario, 1, span, limit);
    let (events, packets) = animation.observers();
    let mut observers =
        Observers { events: Some(events), packets: Some(packets), ..Observers::default() };
    let mut world = World::new(scenario, 1);
    for slice in 1..=slices {
        let until = Instant::ZERO + scenario.duration * slice / slices;
        world.run_until(until, &mut observers);
    }
    animation
}

fn page(animation: Animation<'_>) -> String {
    let mut page = Vec::new();
    animation.write(&mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// The header in the page.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"run\">\n").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn frames_are_shown_with_what_is_in_them_and_what_became_of_them() {
    let scenario = scenario(CHAIN);
    let mut animation = run(&scenario, whole(), 30, 1);
    let mut text = String::new();
    for frame in animation.traffic.transmissions(&vec![None; 3].into()) {
        let Transmission { start, duration, from, to, carrier, content, fate } = frame;
        let to = to.map_or("all".to_owned(), |to| scenario.nodes[to].name.clone());
        let from = &scenario.nodes[from].name;
        let micros = duration.as_nanos() / 1000;
        writeln!(text, "{start} {micros:>5} us {from} > {to} {carrier:?} {} {fate:?}", content.0)
            .unwrap();
    }
    insta::assert_snapshot!(text);
}

/// In this cell nobody withholds a CTS, and no ACK is lost.
#[test]
fn the_lost_frames_are_those_that_stations_retry() {
    let text = include_str!("../../../../../examples/wlan.toml");
    let set = [("duration".to_owned(), "8 s".to_owned())];
    let scenario = Scenario::parse("wlan.toml", text, &set).unwrap();
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers::default());
    let retries: u64 = world.metrics().stations.iter().map(|station| station.retries).sum();
    let mut animation = run(&scenario, whole(), MAX_TRANSMISSIONS, 1);
    let movement = scenario.nodes.iter().map(|_| None).collect();
    let frames = animation.traffic.transmissions(&movement);
    let lost = frames.iter().filter(|frame| frame.fate != Fate::Received).count();
    assert!(retries > 10);
    assert_eq!(lost as u64, retries);
}

#[test]
fn a_lost_frame_has_the_reason_that_its_receiver_had() {
    let frame = |from, to, start, fate| Transmission {
        start: Instant::from_millis(start),
        duration: Duration::from_millis(2),
        from: NodeId(from),
        to: Some(NodeId(to)),
        carrier: Carrier::Data,
        content: Content::NONE,
        fate,
    };
    let mut frames = [
        frame(0, 1, 0, Fate::Lost),
        // Node 2 is hidden from node 0, and sensed by node 1.
        frame(2, 3, 1, Fate::Received),
        frame(0, 1, 10, Fate::Lost),
        frame(1, 2, 11, Fate::Received),
        frame(0, 2, 20, Fate::Lost),
        frame(0, 1, 30, Fate::Lost),
        // Begins when the one before has ended.
        frame(2, 3, 32, Fate::Received),
    ];
    let position =
        |node: NodeId, _| Some(airtcp_core::Position { x: f64::from(node.0) * 200.0, y: 0.0 });
    give_reasons(&mut frames, (250.0, 300.0), position);
    let fates = frames.map(|frame| frame.fate);
    let lost = [fates[0], fates[2], fates[4], fates[5]];
    assert_eq!(lost, [Fate::Collision, Fate::Deaf, Fate::OutOfRange, Fate::Lost]);
}

#[test]
fn the_path_of_a_flow_is_that_of_its_data() {
    let scenario = scenario(CHAIN);
    let animation = run(&scenario, whole(), MAX_TRANSMISSIONS, 1);
    let paths: Vec<_> = animation.traffic.paths.iter().map(|p| p.nodes.clone()).collect();
    assert_eq!(paths, [[0, 1, 2].map(NodeId)]);
    assert!(animation.traffic.under_way.len() < 100, "lost packets are forgotten");
}

#[test]
fn packets_that_a_link_loses_are_shown_as_lost() {
    let scenario = scenario(LINK);
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers::default());
    let losses: u64 = world.metrics().links.iter().map(|link| link.loss_drops).sum();
    let mut animation = run(&scenario, whole(), MAX_TRANSMISSIONS, 1);
    let lost = |t: &Transmission| t.fate == Fate::Lost;
    let shown =
        animation.traffic.transmissions(&vec![None; 2].into()).into_iter().filter(lost).count();
    assert!(losses > 10);
    assert_eq!(shown as u64, losses);
}

/// What a queue marks or drops while it waits is not on the way until the end of the run.
#[test]
fn a_packet_is_on_its_way_from_when_it_leaves_the_queue() {
    const QUEUED: &str = r#"
        duration = "4 s"
        node = [{ name = "A" }, { name = "B" }]
        link = [{ between = ["A", "B"], rate = "8 Mbit/s", delay = "20 ms", queue = { kind = "KIND" } }]
        flow = [{ from = "A", to = "B" }]
        tcp.ecn = "rfc3168""#;
    for (kind, drops) in [("drop-tail", true), ("codel", true), ("fq-codel", false)] {
        let scenario = scenario(&QUEUED.replace("KIND", kind));
        let mut animation = run(&scenario, whole(), MAX_TRANSMISSIONS, 1);
        assert_eq!(!animation.traffic.drops.is_empty(), drops, "{kind}");
        let on_the_way = Duration::from_micros(20_000 + 1500);
        let sent = animation.traffic.transmissions(&vec![None; 2].into());
        let sent = sent.iter().filter(|it| it.end() < Instant::ZERO + scenario.duration);
        assert!(sent.clone().count() > 3000, "{kind}");
        assert!(sent.clone().all(|it| it.duration <= on_the_way), "{kind}");
        assert!(animation.traffic.on_wires.len() < 1000, "{kind}");
    }
}

/// Of packets that look the same, the one that a link lost is shown as lost, and its copy is not;
/// a mark changes nothing.
#[test]
fn each_packet_on_a_link_ends_as_it_did() {
    let lossy = r#", queue = { kind = "codel", ce-threshold = "1 ms" }"#;
    let cases = [
        (lossy, r#"kind = "bernoulli", p = 0.05"#, true),
        (", duplicate = 0.3", r#"kind = "bernoulli", p = 0.1"#, true),
        (", duplicate = 0.3", r#"kind = "bernoulli", p = 0.1, place = "before-queue""#, false),
        (
            r#", duplicate = 0.3, policer = { rate = "4 Mbit/s", burst = "30 kB" }"#,
            r#"kind = "none""#,
            false,
        ),
        (
            r#", duplicate = 0.3, mobile = "B", handover = { interval = "300 ms", interruption = "50 ms", data = "discard" }"#,
            r#"kind = "none""#,
            false,
        ),
    ];
    for (keys, loss, loses) in cases {
        let text = format!(
            r#"
            duration = "6 s"
            node = [{{ name = "A" }}, {{ name = "B" }}]
            link = [{{ between = ["A", "B"], rate = "8 Mbit/s", delay = "20 ms", loss = {{ {loss} }} {keys} }}]
            flow = [{{ from = "A", to = "B" }}, {{ from = "B", to = "A" }}]
            udp = [{{ from = "A", to = "B", rate = "2 Mbit/s" }}]
            tcp.ecn = "rfc3168""#
        );
        let scenario = scenario(&text);
        let mut world = World::new(&scenario, 1);
        world.run(&mut Observers::default());
        let links = world.metrics().links;
        let count = |count: fn(&LinkMetrics) -> u64| links.iter().map(count).sum::<u64>() as usize;
        assert_eq!(count(|it| it.ecn_marks) > 0, keys == lossy, "{keys}");
        let mut animation = run(&scenario, whole(), MAX_TRANSMISSIONS, 1);
        let shown = animation.traffic.transmissions(&vec![None; 2].into());
        let lost = shown.iter().filter(|it| it.fate == Fate::Lost).count();
        let drops = count(|it| it.loss_drops + it.policer_drops + it.outage_drops);
        assert!(drops > 10, "{keys}: {drops}");
        assert_eq!(lost, if loses { drops } else { 0 }, "{keys}");
        let end = Instant::ZERO + scenario.duration;
        let ended = shown.iter().filter(|it| it.end() < end).count();
        assert_eq!(ended, count(|it| it.packets_sent), "{keys}");
    }
}

#[test]
fn an_interval_keeps_its_largest_and_its_last_window() {
    let mut scenario = scenario(LINK);
    scenario.duration = Duration::from_secs(100);
    let span = Instant::from_secs(10)..Instant::from_secs(100);
    let mut windows = Windows::new(&scenario, &span);
    assert_eq!(windows.interval, Duration::from_millis(45));
    let mut window = |millis, cwnd| {
        let event = Event::Window { cwnd, ssthresh: 0, flight: 0 };
        windows.on_event(Instant::from_millis(millis), Source::Sender(Connection::of(0)), &event);
    };
    window(100, 1000);
    window(200, 2000);
    window(10_050, 3000);
    window(10_060, 1500);
    window(20_000, 1500);
    window(20_046, 1600);
    // What was before the map begins counts by its last value.
    assert_eq!(windows.flows[0].windows, [(0, 2000, 2000), (1, 3000, 1500), (223, 1600, 1600)]);
}

#[test]
fn of_connections_at_a_time_the_latest_shows_its_windows() {
    let scenario = scenario(LINK);
    let mut windows = Windows::new(&scenario, &(Instant::ZERO..Instant::from_secs(10)));
    let mut window = |millis, transfer, cwnd| {
        let event = Event::Window { cwnd, ssthresh: 0, flight: 0 };
        let source = Source::Sender(Connection { flow: 0, transfer: Some(transfer) });
        windows.on_event(Instant::from_millis(millis), source, &event);
    };
    window(100, 0, 1000);
    window(200, 1, 500);
    window(300, 0, 9000);
    window(400, 1, 600);
    let shown: Vec<u32> = windows.flows[0].windows.iter().map(|&(_, most, _)| most).collect();
    assert_eq!(shown, [1000, 500, 600]);
}

#[test]
fn the_same_run_gives_the_same_bytes_in_however_many_slices() {
    let scenario = scenario(CHAIN);
    let whole_page = page(run(&scenario, whole(), MAX_TRANSMISSIONS, 1));
    assert!(whole_page == page(run(&scenario, whole(), MAX_TRANSMISSIONS, 7)));
}

#[test]
fn a_full_animation_ends_early_and_says_so() {
    let scenario = scenario(CHAIN);
    let animation = run(&scenario, whole(), 100, 1);
    let cut_at = animation.cut_at().expect("there are more frames");
    let data = data(&page(animation));
    assert_eq!(data["cut"], true);
    assert_eq!(data["to"], cut_at.as_nanos() / 1000);
}

/// Up to there it is what a whole one is, and nothing is later.
#[test]
fn a_full_animation_has_all_up_to_its_end() {
    // Links decide packets when they come, or when their service starts; frames are told late.
    const ALL: &str = r#"
        duration = "1 s"
        node = [{ name = "A" }, { name = "B" }, { name = "AP" }, { name = "s" }, { name = "t" }]
        link = [{ between = ["A", "B"], rate = "2 Mbit/s", delay = "20 ms" },
                { between = ["B", "AP"], rate = "3 Mbit/s", delay = "300 ms", queue = { kind = "codel" } }]
        wlan = [{ name = "one", stations = ["AP", "s"], preset = "ns2" }, { name = "two", stations = ["B", "t"] }]
        flow = [{ from = "A", to = "t" }]
        udp = [{ from = "A", to = "s", rate = "3 Mbit/s" }, { from = "t", to = "A", rate = "1 Mbit/s" }]"#;
    for text in [CHAIN, LINK, ALL] {
        let scenario = scenario(text);
        let nodes: IdVec<_, _> = scenario.nodes.iter().map(|_| None).collect();
        let shown = |limit| {
            let mut animation = run(&scenario, whole(), limit, 1);
            let end = animation.cut_at();
            let all = animation.traffic.transmissions(&nodes);
            let drops: Vec<Instant> = animation.traffic.drops.iter().map(|it| it.at).collect();
            let all: Vec<_> = all.iter().map(|it| (it.start, it.end(), it.from, it.to)).collect();
            (all, drops, end)
        };
        let (all, all_drops, end) = shown(MAX_TRANSMISSIONS);
        assert!(end.is_none() && all.len() > 400, "{}", all.len());
        for limit in (0..400).step_by(7) {
            let (some, drops, end) = shown(limit);
            let end = end.expect("there is more");
            assert!(some.len() * 2 >= limit && some.len() < limit + 10, "{limit}: {}", some.len());
            let before = all.iter().filter(|it| it.0 < end);
            assert!(some.iter().eq(before), "{limit}");
            assert!(drops.iter().eq(all_drops.iter().filter(|at| **at < end)), "{limit}");
        }
    }
}

#[test]
fn a_part_of_a_run_begins_and_ends_where_it_was_asked_to() {
    let scenario = scenario(CHAIN);
    let span = Instant::from_millis(500)..Instant::from_millis(700);
    let mut animation = run(&scenario, span.clone(), MAX_TRANSMISSIONS, 1);
    let shown = animation.traffic.transmissions(&vec![None; 3].into());
    assert!(shown.len() > 50);
    assert!(shown.iter().all(|frame| span.contains(&frame.start)));
    assert!(shown.iter().any(|frame| frame.fate == Fate::Received));
    // The path was found before.
    assert_eq!(animation.traffic.paths.len(), 1);
    let data = data(&page(animation));
    assert_eq!((&data["from"], &data["to"]), (&500_000.into(), &700_000.into()));
}

#[test]
fn outages_are_marked_once_and_within_what_is_shown() {
    let text = LINK.replace(
        "delay = \"10 ms\"",
        "delay = \"10 ms\", outage = { listed = [[\"1 s\", \"2 s\"], [\"5 s\", \"9 s\"]] }",
    );
    let scenario = scenario(&text);
    let seconds = |n| Instant::ZERO + Duration::from_secs(n);
    let page = page(run(&scenario, Instant::ZERO..seconds(6), MAX_TRANSMISSIONS, 1));
    let expected = serde_json::json!([[1_000_000, 2_000_000], [5_000_000, 6_000_000]]);
    assert_eq!(data(&page)["outages"], expected);
}
