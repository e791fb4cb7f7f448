//! Logs of links: they change nothing, and agree with the metrics.

use airtcp_core::Instant;
use airtcp_sim::scenario::{Scenario, files};
use airtcp_sim::trace::{LinkLogs, link_logs};
use airtcp_sim::{Observers, RunMetrics, World};
use std::collections::BTreeSet;
use std::path::Path;

/// An example's scenario, shortened.
fn example(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let path = path.to_str().unwrap();
    let text = files::text(path.as_ref()).unwrap();
    Scenario::parse(path, &text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn logged(scenario: &Scenario, slice: u64) -> (RunMetrics, Vec<String>) {
    let mut logs = LinkLogs::new(scenario, 1, |_| Ok(Vec::new())).unwrap();
    let mut world = World::new(scenario, 1);
    world.report_departures();
    let mut observers = Observers { links: Some(&mut logs), ..Observers::default() };
    let end = Instant::ZERO + scenario.duration;
    let mut until = Instant::ZERO;
    while until < end {
        until = (until + airtcp_core::Duration::from_millis(slice)).min(end);
        world.run_until(until, &mut observers);
    }
    let texts = logs.finish(end).unwrap().into_iter();
    (world.metrics(), texts.map(|text| String::from_utf8(text).unwrap()).collect())
}

/// Lines of a kind: packets, and bytes.
fn sum(log: &str, kind: &str) -> (u64, u64) {
    let words = log.lines().filter(|line| !line.starts_with('#'));
    let lines = words.map(|line| line.split(' ').collect::<Vec<_>>()).filter(|it| it[1] == kind);
    let column = if kind == "d" { 3 } else { 2 };
    lines.fold((0, 0), |(n, sum), it| (n + 1, sum + it[column].parse::<u64>().unwrap()))
}

#[test]
fn logs_change_nothing_and_agree_with_the_metrics() {
    for name in [
        "cell.toml",
        "cellular.toml",
        "handover.toml",
        "leo.toml",
        "outage.toml",
        "quic.toml",
        "quickstart.toml",
        "red.toml",
        "spike.toml",
        "traffic.toml",
    ] {
        let scenario = example(name);
        let mut world = World::new(&scenario, 1);
        world.run(&mut Observers::default());
        let plain = world.metrics();
        let (metrics, logs) = logged(&scenario, 37);
        assert_eq!(
            serde_json::to_string(&metrics).unwrap(),
            serde_json::to_string(&plain).unwrap(),
            "{name}"
        );
        assert_eq!(logged(&scenario, 1_000_000).1, logs, "{name}: in one slice");
        for (link, log) in metrics.links.iter().zip(&logs) {
            let [arrived, departed, dropped] = ["+", "-", "d"].map(|kind| sum(log, kind));
            let lost = link.queue_drops + link.loss_drops + link.policer_drops + link.outage_drops;
            assert_eq!(dropped.0, lost, "{name}, {}", link.name);
            // Some wait, one is being sent; what counts as sent has arrived.
            let inside = arrived.0 - departed.0 - dropped.0;
            assert!(inside <= link.max_queue_packets + 1, "{name}, {}: {inside}", link.name);
            assert!(departed.0 + lost >= link.packets_sent, "{name}, {}", link.name);
            assert!(departed.1 + dropped.1 >= link.bytes_sent, "{name}, {}", link.name);
        }
    }
}

#[test]
fn each_link_has_a_log_of_its_own() {
    // Names of nodes may have anything that a name could have in between.
    let text = r#"
duration = "1 s"
node = [{ name = "a" }, { name = "b-to-c" }, { name = "a-to-b" }, { name = "c" }]
link = [
    { between = ["a", "b-to-c"], rate = "8 Mbit/s", delay = "1 ms", name = "one" },
    { between = ["a-to-b", "c"], rate = "8 Mbit/s", delay = "1 ms", name = "two" },
]
udp = [{ from = "a", to = "b-to-c", rate = "8 kbit/s" }]
"#;
    let scenario = Scenario::parse("t.toml", text, &[]).unwrap();
    let names = scenario.links.iter().map(|link| link_logs::file_name(&link.name));
    assert_eq!(names.collect::<BTreeSet<_>>().len(), 4);
}
