//! Packet Control on a link that reorders, for Linux' own recovery and for one as old as the
//! paper's senders.

use crate::report;
use crate::testbed::{Place, Plan, Testbed, possible};
use crate::transfer::Load;
use airtcp_core::Addr;
use airtcp_gateway::status::Status;
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

/// A link whose delay varies so much that packets overtake each other.
const REORDERING: &str = "rate = \"8 Mbit/s\"\nqueue = { limit = \"60 kB\" }\n\
                          delay = { normal = { mean = \"20 ms\", deviation = \"4 ms\" }, fifo = false }\n";

/// Goodput in Mbit/s of a download over a reordering link.
fn goodput(
    recovery: &str,
    sysctls: &[(&'static str, &'static str)],
    mechanism: Option<&str>,
) -> f64 {
    let mechanism = mechanism.map(str::to_owned);
    let plan = Plan {
        link: REORDERING.to_owned(),
        mechanism,
        sysctls: sysctls.to_vec(),
        ..Plan::default()
    };
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
        // Linux needs no help and may lose by it; it only has to go on.
        assert!(new_with > 0.5 * new, "{new_with} against {new} Mbit/s");
    });
}

/// For senders without SACK, on the interface that `airtcp link` makes.
fn plan() -> Plan {
    Plan {
        link: REORDERING.to_owned(),
        sysctls: OLD.to_vec(),
        ..Plan::with("\"packet-control\"\nthreshold = 10\ninterfaces = [\"airtcp0\"]")
    }
}

/// A download through the filter: its payload is checked, and what the filter did.
fn filtered(plan: &Plan) {
    if !possible() {
        return;
    }
    let bed = Testbed::new(plan);
    let transfer = bed.download(&Load { bytes: Some(SIZE / 2), ..Load::endless("reno") });
    transfer.wait_for(SIZE / 4);
    let status = bed.daemon().status();
    assert_eq!((status.flow_count, status.flows.len()), (1, 1), "{status:?}");
    // By its own address, even if it is translated further on.
    let Addr { port, .. } = transfer.flow().dst;
    assert_eq!(status.flows[0].device, Addr::new(bed.addresses()[1], port).to_string());
    assert_eq!(transfer.finish(), SIZE / 2);
    let status = bed.daemon().status();
    let counters = &status.groups[0].counters;
    for counter in ["acks_duplicate_dropped", "acks_old_dropped", "acks_forwarded"] {
        assert!(counters[counter] > 10, "{counter}: {status:?}");
    }
    assert_eq!(status.counters["injections_failed"], 0);
    assert!(status.counters["packets_injected"] >= counters["acks_generated"], "{status:?}");
}

#[test]
fn a_filtered_transfer_arrives_intact() {
    filtered(&plan());
}

#[test]
fn a_transfer_over_ipv6_is_filtered() {
    filtered(&Plan { ipv6: true, ..plan() });
}

#[test]
fn a_transfer_behind_a_translating_router_is_filtered() {
    filtered(&Plan { place: Place::Masquerading, ..plan() });
}

#[test]
fn a_reload_changes_the_threshold_and_keeps_the_connections() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&plan());
    let transfer = bed.download(&Load { bytes: Some(SIZE / 2), ..Load::endless("reno") });
    transfer.wait_for(SIZE / 10);
    let forwarded = |status: &Status| status.groups[0].counters["acks_forwarded"];
    let before = bed.daemon().status();
    bed.daemon().reload("threshold = 10", "threshold = 12");
    let status = bed.daemon().status();
    assert_eq!(status.flow_count, 1, "the flow stays");
    assert!(forwarded(&status) >= forwarded(&before), "and so do the counters");
    bed.daemon().wait_until(|now| forwarded(now) > forwarded(&status));
    assert_eq!(transfer.finish(), SIZE / 2);
}
