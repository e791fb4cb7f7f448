//! Where the ticks of hosts fall: `tcp.uptime`.

use crate::common;
use std::collections::BTreeSet;

/// Silence of the flows of a host after an outage of 10 s, in a run with this seed.
fn dead_times(uptime: &str, seed: u64) -> Vec<f64> {
    let text = format!(
        r#"
        duration = "60 s"
        node = [{{ name = "A" }}, {{ name = "B" }}]
        flow = [{{ from = "A", to = "B", count = 2 }}]
        tcp = {{ congestion = "reno", uptime = "{uptime}" }}
        [[link]]
        between = ["A", "B"]
        rate = "8 Mbit/s"
        delay = "20 ms"
        outage = {{ listed = [["4 s", "14 s"]] }}"#
    );
    let scenario = common::parse(&text, &[]);
    let flows = common::run(&scenario, seed).flows;
    flows.iter().map(|flow| flow.outage_dead_time.expect("an outage")).collect()
}

/// The dead times of the first flow, in microseconds, under these settings.
fn distinct(runs: impl IntoIterator<Item = (String, u64)>) -> BTreeSet<u64> {
    runs.into_iter().map(|(uptime, seed)| (dead_times(&uptime, seed)[0] * 1e6) as u64).collect()
}

#[test]
fn the_last_retransmission_leaves_by_how_long_the_host_has_been_up() {
    // Of 250 Hz, the timers of the last ones expire in slots of 256 ms.
    let uptimes = |step: u64| (0..4).map(move |n| (format!("{} ms", 2048 + n * step), 1));
    assert_eq!(distinct(uptimes(60)).len(), 4);
    assert_eq!(distinct(uptimes(256)).len(), 1, "a slot later is the same place");
}

#[test]
fn a_random_uptime_differs_from_run_to_run_and_a_given_one_does_not() {
    let seeds = |uptime: &str| {
        let uptime = uptime.to_owned();
        (1..=6).map(move |seed| (uptime.clone(), seed))
    };
    assert_eq!(distinct(seeds("90 s")).len(), 1);
    assert!(distinct(seeds("random")).len() >= 5);
    assert_eq!(dead_times("random", 1), dead_times("random", 1), "the seed decides");
}
