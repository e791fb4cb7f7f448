//! Cells under traffic: who gets which share, and what an idle cell costs.

use crate::common;
use airtcp_core::{Event, Instant, Source, Subscriber};
use airtcp_sim::metrics::{LinkMetrics, RunMetrics};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::{Observers, World};

/// A base station with two phones, each at 20 Mbit/s alone, and a server 10 ms away.
const SCENARIO: &str = r#"
duration = "20 s"
TRAFFIC
[[node]]
name = "server"
[[node]]
name = "BS"
[[node]]
name = "phone"
count = 2
[[cell]]
name = "down"
CELL
[[link]]
between = ["server", "BS"]
rate = "1 Gbit/s"
delay = "10 ms"
queue = { limit = "1000 packets" }
[[link]]
between = ["BS", "phone"]
rate = "20 Mbit/s"
delay = "5 ms"
queue = { limit = "100 packets" }
forward = { cell = "down" }
"#;

const PF: &str = "scheduler = \"proportional-fair\"";

fn scenario(cell: &str, traffic: &str) -> Scenario {
    let text = SCENARIO.replace("CELL", cell).replace("TRAFFIC", traffic);
    common::parse(&text, &[])
}

fn run(cell: &str, traffic: &str) -> RunMetrics {
    common::run(&scenario(cell, traffic), 1)
}

fn link<'a>(metrics: &'a RunMetrics, name: &str) -> &'a LinkMetrics {
    metrics.links.iter().find(|link| link.name == name).expect(name)
}

#[test]
fn tcp_flows_of_all_phones_share_the_cell() {
    for cell in [PF, "scheduler = \"round-robin\""] {
        let metrics = run(cell, "flow = [{ from = \"server\", to = \"phone\" }]");
        let [a, b] = ["BS>phone0", "BS>phone1"].map(|name| link(&metrics, name).utilisation);
        // Slow start takes a few round trips.
        assert!((0.97..=1.0).contains(&(a + b)), "{cell}: {a} and {b}");
        assert!((a - b).abs() < 0.02, "{cell}: {a} and {b}");
    }
}

#[test]
fn tcp_takes_what_datagrams_of_another_phone_leave() {
    // 500 small packets a second: half of the intervals have one, which takes 8 % of it.
    let traffic = r#"
flow = [{ from = "server", to = "phone0" }]
udp = [{ from = "server", to = "phone1", rate = "800 kbit/s", size = "200 B" }]"#;
    for cell in [PF, "scheduler = \"round-robin\""] {
        let metrics = run(cell, traffic);
        let [tcp, udp] = ["BS>phone0", "BS>phone1"].map(|name| link(&metrics, name).utilisation);
        assert!((udp - 0.04).abs() < 0.001, "{cell}: {udp}");
        assert!((0.93..=0.96).contains(&tcp), "{cell}: {tcp}");
        // Up to one interval until the next begins, one to wait while the other has its turn, and
        // the one in which it is sent.
        let source = &metrics.udp[0];
        assert_eq!((source.packets_dropped, source.packets_sent), (0, 10_001), "{cell}");
        let p99 = source.delay_p99.expect("datagrams arrived");
        assert!(p99 < 0.015 + 0.003 + 0.0005, "{cell}: {p99}");
    }
}

#[test]
fn a_phone_alone_has_its_rate() {
    for cell in [PF, "scheduler = \"round-robin\"", "scheduler = \"max-rate\""] {
        let metrics = run(cell, "flow = [{ from = \"server\", to = \"phone1\" }]");
        let utilisation = link(&metrics, "BS>phone1").utilisation;
        assert!((0.97..=1.0).contains(&utilisation), "{cell}: {utilisation}");
    }
}

#[test]
fn an_idle_cell_costs_no_events() {
    // One datagram, and then nothing for a minute.
    let traffic = r#"udp = [{ from = "server", to = "phone0", rate = "8 kbit/s", size = "200 B", stop = "0.1 s" }]"#;
    let short = run(PF, traffic);
    let mut scenario = scenario(PF, traffic);
    scenario.duration = airtcp_core::Duration::from_secs(60);
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers::default());
    assert_eq!(world.metrics().udp[0].packets_received, 1);
    assert_eq!(world.metrics().events, short.events);
}

/// The events of a run.
#[derive(Default)]
struct Log(String);

impl Subscriber for Log {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        self.0 += &format!("{at}{source:?}{event:?}\n");
    }
}

#[test]
fn fading_repeats_with_the_seed_and_differs_between_phones() {
    let fading =
        "rate = { fading = { snr = \"12 dB\", bandwidth = \"9 MHz\", coherence-time = \"5 ms\" } }";
    let traffic = "flow = [{ from = \"server\", to = \"phone\" }]";
    let text = SCENARIO.replace("CELL", PF).replace("TRAFFIC", traffic);
    let text = text.replace("rate = \"20 Mbit/s\"", fading);
    let scenario = common::parse(&text, &[]);
    let run = |seed| {
        let mut log = Log::default();
        let mut world = World::new(&scenario, seed);
        world.run(&mut Observers { events: Some(&mut log), ..Observers::default() });
        (log.0, world.metrics())
    };
    let first = run(1);
    assert_eq!(run(1), first);
    assert_ne!(run(2).0, first.0);
    let [a, b] = ["BS>phone0", "BS>phone1"].map(|name| link(&first.1, name).bytes_sent);
    assert_ne!(a, b);
    // Each phone gets more than half of what it would have alone: the scheduler waits for its
    // better intervals.
    for name in ["BS>phone0", "BS>phone1"] {
        let utilisation = link(&first.1, name).utilisation;
        assert!((0.55..0.75).contains(&utilisation), "{name}: {utilisation}");
    }
}
