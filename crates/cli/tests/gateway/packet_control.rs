//! Packet Control on a link that reorders, for Linux' own recovery and for one as old as the paper's senders; and its fast
//! path in the kernel.

use crate::report;
use crate::testbed::{Place, Plan, Testbed, possible};
use crate::transfer::Load;
use airtcp_core::Addr;
use airtcp_live::gateway::command::Status;
use nix::sys::signal::Signal;
use std::thread;
use std::time::{Duration, Instant};

/// Neither SACK nor RACK, TLP, an adaptive threshold of duplicate ACKs, or timestamps to undo by.
const OLD: [(&str, &str); 5] = [
    ("ipv4/tcp_timestamps", "0"),
    ("ipv4/tcp_sack", "0"),
    ("ipv4/tcp_recovery", "0"),
    ("ipv4/tcp_early_retrans", "0"),
    ("ipv4/tcp_max_reordering", "3"),
];

const SIZE: u64 = 8_000_000;

/// A link whose delay varies so much that packets overtake.
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
        // Linux needs no help, and may lose by it; only that it goes on is required.
        assert!(new_with > 0.5 * new, "{new_with} against {new} Mbit/s");
    });
}

/// With the fast path, on the interface that `airtcp link` makes.
fn plan() -> Plan {
    Plan {
        link: REORDERING.to_owned(),
        sysctls: OLD.to_vec(),
        ..Plan::with(
            "\"packet-control\"\nthreshold = 10\ninterfaces = [\"airtcp0\"]\nfast-path = \"auto\"",
        )
    }
}

/// A testbed in which the kernel filters the group's packets; says why there is none.
fn in_the_kernel(plan: &Plan) -> Option<Testbed> {
    Testbed::with_path(plan, "tcx", "TCX (Linux 6.6)")
}

/// A download through the kernel's filters: its payload is checked, and what the filters did.
fn filtered(plan: &Plan) {
    let Some(bed) = in_the_kernel(plan) else { return };
    let transfer = bed.download(&Load { bytes: Some(SIZE / 2), ..Load::endless("reno") });
    transfer.wait_for(SIZE / 4);
    let status = bed.daemon().status();
    assert_eq!((status.flow_count, status.flows.len()), (1, 1), "{status:?}");
    // By its own address, even if it is translated further on.
    let Addr { port, .. } = transfer.flow().dst;
    assert_eq!(status.flows[0].mobile, Addr::new(bed.addresses()[1], port).to_string());
    assert_eq!(transfer.finish(), SIZE / 2);
    let status = bed.daemon().status();
    let counters = &status.groups[0].counters;
    for counter in ["acks_duplicate_dropped", "acks_old_dropped", "acks_forwarded"] {
        assert!(counters[counter] > 10, "{counter}: {status:?}");
    }
    assert_eq!(status.counters["injections_failed"], 0);
    let answers = counters["acks_generated"];
    // The last ones may not be sent yet.
    assert!(status.counters["packets_injected"] + 2 >= answers, "{status:?}");
}

#[test]
fn the_kernel_filters_a_transfer_whose_payload_stays_intact() {
    filtered(&plan());
}

#[test]
fn the_kernel_filters_a_transfer_over_ipv6() {
    filtered(&Plan { ipv6: true, ..plan() });
}

#[test]
fn the_kernel_filters_behind_a_translating_router() {
    filtered(&Plan { place: Place::Masquerading, ..plan() });
}

/// Identifiers of TCX links on this machine.
fn links() -> Vec<u32> {
    let is_tcx = |info: &libbpf_rs::query::LinkInfo| {
        matches!(info.info, libbpf_rs::query::LinkTypeInfo::Tcx(_))
    };
    libbpf_rs::query::LinkInfoIter::default().filter(is_tcx).map(|info| info.id).collect()
}

/// Those of a process.
fn links_of(process: nix::unistd::Pid) -> Vec<u32> {
    let files = std::fs::read_dir(format!("/proc/{process}/fdinfo")).unwrap();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok());
    let id = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("link_id:")?.trim().parse().ok())
    };
    texts.filter_map(id).collect()
}

#[test]
fn the_programs_go_with_the_process_however_it_ends() {
    let Some(bed) = in_the_kernel(&plan()) else { return };
    let expect_end = |how: &str, end: &dyn Fn()| {
        let own = links_of(bed.daemon().child().expect("the gateway has a child"));
        assert_eq!(own.len(), 2, "one a direction");
        assert!(own.iter().all(|id| links().contains(id)));
        end();
        let until = Instant::now() + Duration::from_secs(20);
        while links().iter().any(|id| own.contains(id)) {
            assert!(Instant::now() < until, "after {how} the programs are still there");
            thread::sleep(Duration::from_millis(10));
        }
    };
    let transfer = bed.download(&Load { bytes: Some(SIZE / 4), ..Load::endless("reno") });
    expect_end("kill -9", &|| bed.daemon().kill_all());
    assert_eq!(transfer.finish(), SIZE / 4);
    bed.daemon().restart(&bed.gateway);
    assert_eq!(bed.path(), "tcx");
    expect_end("SIGTERM", &|| bed.daemon().signal_parent(Signal::SIGTERM));
}

#[test]
fn a_reload_moves_a_group_into_the_kernel_and_out_of_it() {
    let Some(bed) = in_the_kernel(&plan()) else { return };
    let transfer = bed.download(&Load { bytes: Some(SIZE / 2), ..Load::endless("reno") });
    for (n, (from, to, wanted)) in [
        ("threshold = 10", "threshold = 12", "tcx"),
        ("\"auto\"", "\"off\"", "nfqueue"),
        ("\"off\"", "\"auto\"", "tcx"),
    ]
    .into_iter()
    .enumerate()
    {
        transfer.wait_for((n as u64 + 1) * SIZE / 10);
        let before = bed.daemon().status();
        bed.daemon().reload(from, to);
        let status = bed.daemon().status();
        assert_eq!(status.groups[0].path, wanted);
        if n == 0 {
            assert_eq!(status.flow_count, 1, "the flow stays");
            let forwarded = |s: &Status| s.groups[0].counters["acks_forwarded"];
            assert!(forwarded(&status) >= forwarded(&before), "and so do the counters");
        }
        let forwarded = |status: Status| status.groups[0].counters["acks_forwarded"];
        let start = forwarded(status);
        let until = Instant::now() + Duration::from_secs(20);
        while forwarded(bed.daemon().status()) <= start {
            assert!(Instant::now() < until, "no packets come to the {wanted} path");
            thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(transfer.finish(), SIZE / 2);
}
