//! Accurate ECN (RFC 9768) from end to end: queues mark, receivers count, and each congestion
//! control answers in its way.

use crate::common;

/// The results of a flow of 20 s over 50 Mbit/s with a round trip of 10 ms.
#[derive(Debug)]
struct Outcome {
    /// Goodput as a share of the link's rate.
    share: f64,
    retransmitted: f64,
    reductions: u64,
    marks: u64,
}

fn flow(tcp: &str, queue: &str) -> Outcome {
    let text = format!(
        r#"
        duration = "20 s"
        node = [{{ name = "A" }}, {{ name = "B" }}]
        flow = [{{ from = "A", to = "B" }}]
        [[link]]
        between = ["A", "B"]
        rate = "50 Mbit/s"
        delay = "5 ms"
        queue = {{ limit = "500 packets", {queue} }}
        [tcp]
        {tcp}"#
    );
    let scenario = common::parse(&text, &[]);
    let metrics = common::run(&scenario, 1);
    let flow = &metrics.flows[0];
    Outcome {
        share: flow.goodput / 50e6,
        retransmitted: flow.retransmission_ratio,
        reductions: flow.cwnd_reductions,
        marks: metrics.links.iter().map(|link| link.ecn_marks).sum(),
    }
}

// RFC 9768 §1: any congestion control, over queues that mark in their own ways.
#[test]
fn every_control_fills_the_link_and_loses_nothing() {
    for (control, queue) in [
        ("reno", "kind = \"codel\", ecn = true"),
        ("cubic", "kind = \"codel\", ecn = true"),
        ("dctcp", "kind = \"codel\", ce-threshold = \"1 ms\", ecn = true"),
        ("prague", "kind = \"dualpi2\""),
    ] {
        let tcp = format!("congestion = \"{control}\"\necn = \"accecn\"");
        let outcome = flow(&tcp, queue);
        assert!(outcome.share > 0.85, "{control}: {outcome:?}");
        assert!(outcome.marks > 0 && outcome.reductions > 0, "{control}: {outcome:?}");
        assert!(outcome.retransmitted < 0.001, "{control}: {outcome:?}");
    }
}

// §3.1.5, RFC 3168 §6.1.2: a control that takes a mark for a loss does so once a round trip.
#[test]
fn a_classic_control_reduces_no_more_often_than_with_classic_ecn() {
    let queue = "kind = \"codel\", ecn = true";
    let [accurate, classic] = ["accecn", "rfc3168"]
        .map(|ecn| flow(&format!("congestion = \"reno\"\necn = \"{ecn}\""), queue));
    assert!(
        accurate.reductions <= classic.reductions + classic.reductions / 10,
        "{accurate:?} {classic:?}"
    );
    assert!((accurate.share - classic.share).abs() < 0.02, "{accurate:?} {classic:?}");
}

// RFC 8257 §3.2 and RFC 9768 §3.2.2.5.1: a first mark is acknowledged at once by both. With AccECN
// a segment is 12 bytes longer.
#[test]
fn dctcp_does_as_well_as_with_its_own_echo() {
    let queue = "kind = \"codel\", ce-threshold = \"1 ms\", ecn = true";
    let outcomes = ["accecn", "dctcp"]
        .map(|ecn| flow(&format!("congestion = \"dctcp\"\necn = \"{ecn}\""), queue));
    let [accurate, own] = &outcomes;
    assert!((accurate.share - own.share).abs() < 0.02, "{outcomes:?}");
    assert!(accurate.marks < own.marks + own.marks / 4, "{outcomes:?}");
}

// §3.2.3: without the option ACE alone suffices where ACKs are for a segment or two.
#[test]
fn the_option_can_be_left_out() {
    let queue = "kind = \"dualpi2\"";
    for option in ["never", "changes"] {
        let tcp = "congestion = \"prague\"\necn = \"accecn\"\naccecn-option";
        let outcome = flow(&format!("{tcp} = \"{option}\""), queue);
        assert!(outcome.share > 0.85 && outcome.retransmitted < 0.001, "{option}: {outcome:?}");
    }
}
