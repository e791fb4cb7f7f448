//! Chains of stations against ns-2.35: what they carry, and TCP over them. The numbers are means of
//! ns-2 over seven seeds or more and 200 s each, by `studies/validation/ns2/chain.tcl`; the margins
//! are four standard deviations of ns-2's runs plus 2 %, since these runs are shorter. The full
//! comparison is `airtcp study run validation --only V-chain,V-chain-tcp,V-chain-window`.

use crate::common;
use airtcp_sim::RunMetrics;

/// The metrics of a file of the study with these overrides, for 60 s.
fn run(file: &str, hops: u32, set: &[(&str, &str)]) -> RunMetrics {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/validation/scenarios/");
    let text = std::fs::read_to_string(format!("{folder}{file}")).expect("the study has it");
    let place = format!("[\"{} m\", \"0 m\"]", 200 * hops);
    let hops = hops.to_string();
    let chain = [("duration", "60 s"), ("node.n.count", &hops), ("node.D.position", &place)];
    common::run(&common::parse(&text, &[&chain, set].concat()), 1)
}

fn goodput(hops: u32, window: u32, delayed: bool) -> f64 {
    let window = format!("{window} kB");
    let mut set = vec![("tcp.receive-buffer", &*window), ("tcp.initial-ssthresh", &*window)];
    if delayed {
        set.push(("tcp.ack", r#"{ policy = "delayed", segments = 2, timeout = "100 ms" }"#));
    }
    run("chain.toml", hops, &set).flows[0].delivered_bytes as f64 * 8.0 / 60e3
}

#[track_caller]
fn assert_near(what: &str, ours: f64, theirs: f64, margin: f64) {
    assert!((ours - theirs).abs() <= margin, "{what}: {ours:.1} kbit/s, in ns-2 {theirs}");
}

/// Li et al. 2001: stations up to three hops apart take turns.
#[test]
fn a_saturated_chain_carries_a_half_a_third_and_less() {
    for (hops, theirs, margin) in
        [(1, 1548.2, 31.8), (2, 770.6, 16.2), (3, 504.3, 15.7), (4, 350.3, 10.2)]
    {
        let received = run("chain-load.toml", hops, &[]).udp[0].packets_received;
        assert_near(&format!("{hops} hops"), received as f64 * 12.0 / 60.0, theirs, margin);
    }
}

#[test]
fn tcp_over_a_chain_is_as_fast_as_in_ns2() {
    for (hops, window, delayed, theirs, margin) in [
        (1, 20, false, 1072.1, 23.4),
        (2, 20, true, 605.7, 12.9),
        (3, 20, false, 293.7, 31.5),
        (4, 20, false, 211.7, 14.6),
        (4, 20, true, 257.5, 13.6),
        (6, 4, false, 201.2, 8.0),
        (8, 4, false, 188.0, 10.2),
        (8, 4, true, 211.4, 10.6),
    ] {
        let what = format!("{hops} hops, window {window}, delayed ACKs {delayed}");
        assert_near(&what, goodput(hops, window, delayed), theirs, margin);
    }
}

/// Fu et al. 2003: a quarter of the hops.
#[test]
fn the_best_window_is_about_a_quarter_of_the_hops() {
    for (hops, best, others) in [(4, 1, [3, 6, 12]), (8, 3, [1, 6, 12])] {
        let most = goodput(hops, best, false);
        for window in others {
            let less = goodput(hops, window, false);
            assert!(less < most, "{hops} hops: {less:.1} with {window}, {most:.1} with {best}");
        }
    }
}
