//! Handovers under traffic: what is lost, what TCP notices, and who hears of them.

use crate::common;
use crate::ear;
use airtcp_core::LinkSignal;
use airtcp_sim::metrics::RunMetrics;
use airtcp_sim::scenario::Scenario;

/// The phone has a window of 300 kB, twice the path's capacity, so that half of it waits at the
/// base station when the handover begins.
const SCENARIO: &str = r#"
duration = "10 s"
[[node]]
name = "server"
[[node]]
name = "BS"
middlebox = { mechanism = "wake", mobiles = ["phone"] }
[[node]]
name = "phone"
[[link]]
between = ["server", "BS"]
rate = "1 Gbit/s"
delay = "25 ms"
queue = { limit = "1000 packets" }
[[link]]
between = ["BS", "phone"]
mobile = "phone"
rate = "20 Mbit/s"
delay = "5 ms"
queue = { limit = "1000 packets" }
handover = { interruption = "50 ms", cells = [{ at = "5 s" }], DATA }
TRAFFIC
"#;

const TCP: &str = r#"
[tcp]
preset = "linux"
receive-buffer = "300 kB"
[[flow]]
from = "server"
to = "phone"
"#;

fn scenario(data: &str, traffic: &str) -> Scenario {
    let text = SCENARIO.replace("DATA", data).replace("TRAFFIC", traffic);
    common::parse(&text, &[])
}

fn run(data: &str, traffic: &str) -> RunMetrics {
    common::run(&scenario(data, traffic), 1)
}

#[test]
fn tcp_loses_nothing_and_has_no_timeout_where_data_is_forwarded() {
    let run = run(r#"data = "forward", forwarding-delay = "10 ms""#, TCP);
    let flow = &run.flows[0];
    assert_eq!((flow.timeouts, flow.cwnd_reductions, flow.retransmission_ratio), (0, 0, 0.0));
    assert_eq!(flow.outages, 1);
    // The packet in front takes 1500 B at 20 Mbit/s and 5 ms.
    assert_eq!(flow.outage_dead_time, Some(0.0056));
}

#[test]
fn tcp_waits_for_data_that_is_forwarded_late() {
    // It is at the target 30 ms after the phone.
    let run = run(r#"data = "forward", forwarding-delay = "80 ms""#, TCP);
    assert_eq!(run.flows[0].outage_dead_time, Some(0.0356));
    assert_eq!(run.flows[0].retransmission_ratio, 0.0);
}

#[test]
fn reordering_beyond_racks_window_is_taken_for_loss() {
    // RFC 8985 §6.2: a quarter of the least round trip, here 15 ms.
    let retransmits = |keys: &str| {
        let run = run(&format!(r#"data = "forward", {keys}"#), TCP);
        assert_eq!(run.flows[0].timeouts, 0);
        (run.flows[0].fast_retransmits, run.links[2].queue_drops)
    };
    assert_eq!(retransmits(r#"forwarding-delay = "10 ms", end-marker = false"#), (0, 0));
    assert_eq!(retransmits(r#"forwarding-delay = "30 ms""#), (0, 0));
    let (retransmits, lost) = retransmits(r#"forwarding-delay = "30 ms", end-marker = false"#);
    assert_eq!((retransmits > 0, lost), (true, 0));
}

#[test]
fn what_the_source_discards_is_the_queue_and_what_comes_in_the_interruption() {
    let run = run(r#"data = "discard""#, TCP);
    // Of the window's 300 kB, the round trip of 60 ms at 20 Mbit/s holds 150 kB and the queue the
    // rest, 100 packets of 1500 B. Data comes for 50 ms, at 20 Mbit/s: 83.3 packets. The headers
    // and the packet in service make a few more or less.
    let lost = run.links[2].outage_drops;
    assert!((178..=190).contains(&lost), "{lost}");
    assert_eq!(run.links[2].queue_drops + run.links[3].outage_drops, 0);
    let sent = run.flows[0].data_segments_sent as f64;
    assert!(run.flows[0].retransmission_ratio * sent >= lost as f64);
}

#[test]
fn datagrams_are_lost_for_as_long_as_the_interruption_lasts() {
    // 1000 datagrams of 1028 B a second.
    let udp =
        "[[udp]]\nfrom = \"server\"\nto = \"phone\"\nrate = \"8.224 Mbit/s\"\nsize = \"1028 B\"\n";
    let mechanism = "middlebox = { mechanism = \"wake\", mobiles = [\"phone\"] }\n";
    let text = SCENARIO.replace(mechanism, "").replace("TRAFFIC", udp);
    let lost = |data: &str| {
        let scenario = common::parse(&text.replace("DATA", data), &[]);
        common::run(&scenario, 1).udp[0].packets_dropped
    };
    let discarded = lost(r#"data = "discard""#);
    assert!((50..=51).contains(&discarded), "{discarded}");
    assert_eq!(lost(r#"data = "forward", forwarding-delay = "20 ms""#), 0);
}

#[test]
fn a_mechanism_hears_of_a_handover_as_of_an_outage() {
    let heard = ear::signals(&scenario(r#"data = "forward""#, TCP), 1);
    let expected = [(4.95, LinkSignal::Fading), (5.0, LinkSignal::Down), (5.05, LinkSignal::Up)];
    assert_eq!(heard, expected);
}
