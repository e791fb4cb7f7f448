//! Packet Control on a link that reorders, for Linux' own recovery and for one as old as the paper's senders.

use crate::report;
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::Load;
use std::thread;
use std::time::Instant;

/// Neither SACK nor RACK, TLP, an adaptive threshold of duplicate ACKs, or timestamps to undo by.
const OLD: [(&str, &str); 5] = [
    ("ipv4/tcp_timestamps", "0"),
    ("ipv4/tcp_sack", "0"),
    ("ipv4/tcp_recovery", "0"),
    ("ipv4/tcp_early_retrans", "0"),
    ("ipv4/tcp_max_reordering", "3"),
];

const SIZE: u64 = 8_000_000;

/// Goodput in Mbit/s of a download over a link whose delay varies so much that packets overtake.
fn goodput(
    recovery: &str,
    sysctls: &[(&'static str, &'static str)],
    mechanism: Option<&str>,
) -> f64 {
    let link = "rate = \"8 Mbit/s\"\nqueue = { limit = \"60 kB\" }\n\
                delay = { normal = { mean = \"20 ms\", deviation = \"4 ms\" }, fifo = false }\n";
    let mechanism = mechanism.map(str::to_owned);
    let plan =
        Plan { link: link.to_owned(), mechanism, sysctls: sysctls.to_vec(), ..Plan::default() };
    let bed = Testbed::new(&plan);
    let start = Instant::now();
    let load = Load { bytes: Some(SIZE), ..Load::endless("reno") };
    assert_eq!(bed.download(&load).finish(), SIZE);
    let goodput = SIZE as f64 * 8e-6 / start.elapsed().as_secs_f64();
    let retransmissions = bed.fixed.counter("RetransSegs");
    report::packet_control(recovery, plan.mechanism.is_some(), goodput, retransmissions);
    goodput
}

#[test]
fn packet_control_helps_old_senders_on_a_reordering_link() {
    if !possible() {
        return;
    }
    let with = Some("\"packet-control\"\nthreshold = 10");
    thread::scope(|scope| {
        let run = |recovery, sysctls, mechanism| {
            scope.spawn(move || goodput(recovery, sysctls, mechanism))
        };
        let old = [None, with].map(|mechanism| run("old", &OLD[..], mechanism));
        let new = [None, with].map(|mechanism| run("linux", &[], mechanism));
        let [[old, old_with], [new, new_with]] =
            [old, new].map(|pair| pair.map(|thread| thread.join().unwrap()));
        assert!(old_with > 1.2 * old, "{old_with} against {old} Mbit/s");
        // Linux needs no help, and may lose by it; only that it goes on is required.
        assert!(new_with > 0.5 * new, "{new_with} against {new} Mbit/s");
    });
}
