//! Core cases of the others with packets mirrored by tc (`data-path = "tc"`), and flow tables.

use crate::outages::{Told, WORST, expect_data_after, outage};
use crate::testbed::{
    LINK, MOBILE, Place, Plan, Testbed, has_bridge_netfilter, has_vrfs, possible,
};
use crate::transfer::{Load, Transfer};
use airtcp_testing::skip;
use nix::sys::signal::Signal;
use std::thread;
use std::time::{Duration, Instant};

const SIZE: u64 = 4_000_000;
/// The sender's timer has backed off to seconds at its end.
const OUTAGE: Duration = Duration::from_secs(6);
/// Bound on the dead time of a woken sender. Other tests measure it.
const WOKEN: Duration = Duration::from_millis(400);

/// A mechanism whose packets tc mirrors.
fn plan(mechanism: &str) -> Plan {
    Plan { config: "data-path = \"tc\"\n".to_owned(), ..Plan::with(mechanism) }
}

/// Makes an outage in a download, with `harm` two seconds after it began, and expects data within
/// `most` of its end.
fn expect_resumed(bed: &Testbed, told: Told, most: Duration, harm: impl FnOnce() + Send) {
    expect_resumed_of(bed, bed.download(&Load::of(SIZE)), told, most, harm);
}

/// The same in a transfer that has begun.
fn expect_resumed_of(
    bed: &Testbed,
    transfer: Transfer,
    told: Told,
    most: Duration,
    harm: impl FnOnce() + Send,
) {
    transfer.wait_for(SIZE / 4);
    expect_data_after(bed, &transfer, (OUTAGE, told), most, harm);
    assert_eq!(transfer.finish(), SIZE);
}

/// The filters of tc on the gateway's interfaces.
fn filters(bed: &Testbed) -> String {
    let script = "for d in /sys/class/net/*; do d=${d##*/}; tc filter show dev $d ingress; tc filter show dev $d egress; done";
    let output = bed.gateway.command(&["sh", "-c", script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn wake_by_tc_resumes_a_download_with_and_without_signals() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        for (told, ipv6, place) in [
            (Told::Nothing, false, Place::Router),
            (Told::Timely, true, Place::Router),
            (Told::Nothing, false, Place::Masquerading),
        ] {
            scope.spawn(move || {
                let mut bed = Testbed::new(&Plan { ipv6, place, ..plan("\"wake\"") });
                assert!(filters(&bed).contains("mirror_ingress"));
                expect_resumed(&bed, told, WOKEN, || {});
                let log = bed.stop();
                assert!(log.contains("packets are mirrored"), "{log}");
                assert_eq!(filters(&bed), "");
            });
        }
    });
}

#[test]
fn wake_by_tc_that_is_killed_leaves_nothing_to_the_next() {
    if !possible() {
        return;
    }
    let mut bed = Testbed::new(&plan("\"wake\""));
    expect_resumed(&bed, Told::Nothing, WOKEN, || bed.daemon().signal_child(Signal::SIGKILL));
    assert_eq!(filters(&bed).matches("mirror_egress:").count(), 2, "one on each interface");
    // The supervisor cannot start another.
    bed.daemon().signal_parent(Signal::SIGSTOP);
    bed.daemon().signal_child(Signal::SIGKILL);
    thread::sleep(Duration::from_millis(100));
    assert!(filters(&bed).contains("mirror_ingress"), "nobody removes them");
    bed.daemon().signal_parent(Signal::SIGKILL);
    bed.daemon().restart(&bed.gateway);
    assert_eq!(filters(&bed).matches("mirror_egress:").count(), 2);
    bed.stop();
    assert_eq!(filters(&bed), "");
}

#[test]
fn copies_made_by_tc_protect_a_download() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        for (mechanism, place) in [
            ("\"m-tcp-plus\"", Place::Router),
            ("\"m-tcp-plus\"", Place::Masquerading),
            ("\"holdover\"", Place::Router),
        ] {
            scope.spawn(move || {
                let bed = Testbed::new(&Plan { place, ..plan(mechanism) });
                assert_eq!(bed.path(), "mirror");
                expect_resumed(&bed, Told::Timely, WORST, || {});
                let status = bed.daemon().status();
                assert!(status.groups[0].counters["segments_copied"] > 100, "{status:?}");
                assert_eq!(status.counters["mirror_missed_packets"], 0);
            });
        }
    });
}

#[test]
fn tc_sees_what_a_bridge_forwards_and_what_a_vrf_does() {
    if possible() && has_bridge_netfilter() {
        let bed = Testbed::new(&Plan { place: Place::Bridge, ..plan("\"m-tcp-plus\"") });
        expect_resumed(&bed, Told::Timely, WORST, || {});
    }
    if possible() && has_vrfs() {
        let bed = Testbed::new(&Plan { place: Place::Vrf, ..plan("\"wake\"") });
        expect_resumed(&bed, Told::Nothing, WOKEN, || {});
    }
}

#[test]
fn wake_by_tc_resumes_uploads_from_board() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        for (place, is_own) in
            [(Place::OnBoard, false), (Place::OnBoardMasquerading, false), (Place::OnBoard, true)]
        {
            scope.spawn(move || {
                let bed = Testbed::new(&Plan { place, ..plan("\"wake\"") });
                // The sender opens the connection: its router may masquerade it.
                let load = Load { first_sequence: Some(1_000_000), ..Load::of(SIZE) };
                let transfer =
                    if is_own { bed.upload_of_gateway(&load) } else { bed.upload(&load) };
                expect_resumed_of(&bed, transfer, Told::Nothing, WOKEN, || {});
            });
        }
    });
}

#[test]
fn an_outage_is_observed_by_tc() {
    if !possible() {
        return;
    }
    let config = "data-path = \"tc\"\nmode = \"observe\"\n".to_owned();
    let bed = Testbed::new(&Plan { config, ..Plan::with("\"wake\"") });
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 4);
    outage(&bed, Instant::now() + Duration::from_millis(300), OUTAGE, Told::Nothing, || {});
    assert_eq!(transfer.finish(), SIZE);
    let seen = |status: &airtcp_gateway::status::Status| {
        status.report.as_ref().expect("it observes").groups[0].clone()
    };
    let status = bed.daemon().wait_until(|status| seen(status).tcp.resumed == 1);
    let report = seen(&status);
    assert_eq!((report.outages_signalled, report.outages_silent, report.tcp.flows), (0, 1, 1));
    assert!(report.tcp.bytes > SIZE && report.tcp.packets > SIZE / 1500, "{report:?}");
}

/// A flow table for the download's packets; false, with a note, if the kernel has none.
fn add_flow_table(bed: &Testbed) -> bool {
    let rules = format!(
        "table inet fast {{
            flowtable ft {{ hook ingress priority 0; devices = {{ wire, {LINK} }}; }}
            chain forward {{
                type filter hook forward priority 0;
                ip daddr {mobile} flow add @ft
                ip saddr {mobile} flow add @ft
            }}
        }}",
        mobile = MOBILE[0]
    );
    let output = bed.gateway.command(&["nft", &rules]).output().unwrap();
    if !output.status.success() {
        skip("flow tables of nftables (CONFIG_NF_FLOW_TABLE, CONFIG_NFT_FLOW_OFFLOAD)");
    }
    output.status.success()
}

#[test]
fn downloads_are_protected_in_spite_of_a_flow_table() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        // `auto` takes tc when it starts beside a flow table.
        for (mechanism, told, most) in
            [("\"wake\"", Told::Nothing, WOKEN), ("\"wake\"", Told::Timely, WOKEN)]
        {
            scope.spawn(move || {
                let mut bed = Testbed::new(&Plan::with(mechanism));
                if !add_flow_table(&bed) {
                    return;
                }
                bed.daemon().kill_all();
                bed.daemon().restart(&bed.gateway);
                expect_resumed(&bed, told, most, || {});
                let log = bed.stop();
                assert!(log.contains("flow table ft of table fast"), "{log}");
            });
        }
    });
}
