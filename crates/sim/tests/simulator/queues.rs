//! Queues of today and the senders they are for, end to end.

use crate::common;
use airtcp_sim::metrics::RunMetrics;
use airtcp_sim::scenario::{ConfigError, Scenario};

/// Flows with these congestion controls and words of `ecn` over 40 Mbit/s and 20 ms of round trip.
fn parse(queue: &str, flows: &[(&str, &str)]) -> Result<Scenario, ConfigError> {
    let flow = |(number, (control, ecn)): (usize, &(&str, &str))| {
        format!(
            "[[flow]]\nname = \"{number}\"\nfrom = \"A\"\nto = \"B\"\n\
             sender = {{ congestion = \"{control}\", ecn = \"{ecn}\" }}\n\
             receiver = {{ ecn = \"{ecn}\" }}\n"
        )
    };
    let flows: String = flows.iter().enumerate().map(flow).collect();
    let text = format!(
        r#"duration = "60 s"
node = [{{ name = "A" }}, {{ name = "R" }}, {{ name = "B" }}]
[[link]]
between = ["A", "R"]
rate = "1000 Mbit/s"
delay = "0 s"
queue = {{ limit = "10000 packets" }}
[[link]]
between = ["R", "B"]
rate = "40 Mbit/s"
delay = "10 ms"
queue = {queue}
{flows}"#
    );
    Scenario::parse("t.toml", &text, &[])
}

fn run(queue: &str, flows: &[(&str, &str)]) -> RunMetrics {
    let scenario = parse(queue, flows).unwrap_or_else(|error| panic!("{error}"));
    common::run(&scenario, 1)
}

fn marks_and_drops(metrics: &RunMetrics) -> (u64, u64) {
    let sum =
        |count: fn(&airtcp_sim::metrics::LinkMetrics) -> u64| metrics.links.iter().map(count).sum();
    (sum(|link| link.ecn_marks), sum(|link| link.queue_drops))
}

/// RFC 3168 §5: an ECN-capable sender learns of congestion and loses nothing.
#[test]
fn with_ecn_codel_marks_and_drops_nothing() {
    let metrics = run("{ kind = \"codel\", ecn = true }", &[("cubic", "rfc3168")]);
    let (marks, drops) = marks_and_drops(&metrics);
    assert!(marks > 0 && drops == 0, "{marks} marks, {drops} drops");
    let flow = &metrics.flows[0];
    assert_eq!((flow.retransmission_ratio, flow.timeouts), (0.0, 0));
    assert!(flow.goodput > 0.9 * 40e6, "{} bit/s", flow.goodput);
}

/// The same queue drops what does not take part.
#[test]
fn without_ecn_the_same_queue_drops() {
    let (marks, drops) =
        marks_and_drops(&run("{ kind = \"codel\", ecn = true }", &[("cubic", "off")]));
    assert!(marks == 0 && drops > 0, "{marks} marks, {drops} drops");
}

/// Mbit/s of a flow with this congestion control and marks, and of CUBIC without.
fn beside_cubic(queue: &str, control: &str) -> (f64, f64) {
    let metrics = run(queue, &[(control, "dctcp"), ("cubic", "off")]);
    let [one, cubic] = &metrics.flows[..] else { unreachable!("two flows") };
    println!("{queue}: {control} {:.1}, cubic {:.1}", one.goodput / 1e6, cubic.goodput / 1e6);
    (one.goodput / 1e6, cubic.goodput / 1e6)
}

/// RFC 9332 §1: the coupling gives L4S and classic flows about the same rate.
#[test]
fn prague_and_cubic_share_dualpi2() {
    let (prague, cubic) = beside_cubic("{ kind = \"dualpi2\" }", "prague");
    assert!((0.5..2.0).contains(&(prague / cubic)) && prague + cubic > 36.0, "{prague} {cubic}");
}

/// DCTCP's packets are ECT(0): dualpi2 takes them for classic ones, whose marks mean a halving, and
/// DCTCP does not halve. It is for networks of its own (RFC 8257 §1).
#[test]
fn dctcp_starves_cubic_in_dualpi2() {
    let (dctcp, cubic) = beside_cubic("{ kind = \"dualpi2\" }", "dctcp");
    assert!(dctcp > 4.0 * cubic, "{dctcp} {cubic}");
}

/// RFC 8290 §1.1: each flow has a queue and its turn.
#[test]
fn fq_codel_gives_each_flow_its_half() {
    for control in ["dctcp", "prague"] {
        let queue = "{ kind = \"fq-codel\", ce-threshold = \"1 ms\" }";
        let (one, cubic) = beside_cubic(queue, control);
        assert!((0.9..1.1).contains(&(one / cubic)), "{control} {one}, cubic {cubic}");
    }
}

fn refuses(queue: &str, expected: &str) {
    let found = parse(queue, &[("cubic", "off")]).expect_err("a mistake").to_string();
    assert_eq!(found.lines().next(), Some(expected));
}

#[test]
fn a_queue_is_refused_with_file_line_and_key() {
    refuses(
        "{ kind = \"codle\" }",
        "t.toml:12:18: link.R-B.queue.kind: \"codle\" is not a choice here (expected \"drop-tail\", \
         \"red\", \"codel\", \"fq-codel\", \"pie\" or \"dualpi2\"; did you mean `codel`?)",
    );
    refuses(
        "{ kind = \"codel\", min-threshold = \"5 packets\" }",
        "t.toml:12:27: link.R-B.queue.min-threshold: has no effect with kind = \"codel\" (expected \
         kind = \"red\")",
    );
}
