//! Split TCP in a network: what the node acknowledges arrives, whatever the path loses.

use crate::common;
use airtcp_sim::RunMetrics;
use proptest::prelude::*;

/// Downloads and uploads of `bytes` each over a node that splits them.
fn network(bytes: u64, loss: f64, buffer: u32, congestion: &str, preset: &str) -> String {
    format!(
        r#"
        duration = "600 s"
        [[node]]
        name = "fixed"
        [[node]]
        name = "edge"
        middlebox = {{ mechanism = "split", mobiles = ["mobile"], buffer = "{buffer} B", tcp = {{ congestion = "{congestion}" }} }}
        [[node]]
        name = "mobile"
        [[link]]
        between = ["fixed", "edge"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        loss = {{ kind = "bernoulli", p = 0.002 }}
        [[link]]
        between = ["edge", "mobile"]
        rate = "2 Mbit/s"
        delay = "10 ms"
        loss = {{ kind = "bernoulli", p = {loss:.4} }}
        [tcp]
        preset = "{preset}"
        [[flow]]
        name = "down"
        count = 2
        from = "fixed"
        to = "mobile"
        bytes = "{bytes} B"
        [[flow]]
        name = "up"
        from = "mobile"
        to = "fixed"
        bytes = "{bytes} B"
        "#
    )
}

fn run(text: &str, seed: u64) -> RunMetrics {
    let scenario = common::parse(text, &[]);
    common::run(&scenario, seed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_byte_arrives_once_and_the_buffer_bounds_what_is_held(
        bytes in 1u64..300_000,
        loss in 0.0f64..0.1,
        buffer in 3_000u32..65_000,
        congestion in prop::sample::select(vec!["reno", "cubic", "westwood"]),
        preset in prop::sample::select(vec!["linux", "rfc"]),
        seed in 1u64..1000,
    ) {
        let metrics = run(&network(bytes, loss, buffer, congestion, preset), seed);
        for flow in &metrics.flows {
            prop_assert_eq!(flow.delivered_bytes, bytes, "{}", flow.name);
            prop_assert!(flow.aborted.is_none());
        }
        let counters = &metrics.middleboxes[0].counters;
        prop_assert_eq!(counters["connections"], 3);
        prop_assert_eq!(counters["bytes_taken"], 3 * bytes);
        prop_assert_eq!(counters["bytes_held"] + counters["bytes_lost"], 0);
        prop_assert!(counters["most_bytes_held"] <= 3 * u64::from(buffer));
    }
}

#[test]
fn a_run_with_a_node_that_splits_repeats() {
    let text = network(200_000, 0.02, 20_000, "reno", "linux");
    assert_eq!(run(&text, 7), run(&text, 7));
    assert_ne!(run(&text, 7), run(&text, 8));
}
