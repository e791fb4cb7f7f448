//! `mode = "observe"`: what it says would have been saved, and that it changes nothing.

use crate::failures::with_promise;
use crate::hostile::send_raw;
use crate::outages::{Told, outage};
use crate::report;
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::{Load, Transfer};
use crate::wake::{ip_counter, udp};
use airtcp_core::LinkSignal;
use airtcp_gateway::status::{GroupReport, Status};
use std::thread;
use std::time::{Duration, Instant};

const SIZE: u64 = 4_000_000;
/// The sender's timer has backed off to seconds at its end.
const OUTAGE: Duration = Duration::from_secs(6);

fn plan() -> Plan {
    Plan { config: "mode = \"observe\"\n".to_owned(), ..Plan::with("\"wake\"") }
}

fn seen(status: &Status) -> &GroupReport {
    &status.report.as_ref().expect("it observes").groups[0]
}

fn downloading() -> (Testbed, Transfer) {
    let bed = Testbed::new(&plan());
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 4);
    (bed, transfer)
}

/// An outage in a download; how long the download waited for when the link was back, with how much
/// the machine may have been late, and what was reported.
fn observed_outage(told: Told) -> ([f64; 2], GroupReport) {
    let (bed, transfer) = downloading();
    let own = || bed.gateway.within(|| ip_counter("OutRequests"));
    let before = own();
    let up = outage(&bed, Instant::now() + Duration::from_millis(300), OUTAGE, told, || {});
    let dead = transfer.dead_time(up, Duration::from_secs(60)).expect("it goes on");
    let status = bed.daemon().wait_until(|status| seen(status).tcp.resumed == 1);
    assert_eq!(transfer.finish(), SIZE);
    assert_eq!(own(), before, "packets of the gateway's own");
    let dead = [dead.length, dead.allowance].map(|time| time.as_secs_f64());
    let seen = seen(&status).clone();
    report::observed(dead[0], [seen.tcp.saved_least, seen.tcp.saved_most]);
    (dead, seen)
}

#[test]
fn what_an_outage_costs_is_reported_within_300_ms_if_signals_tell_its_end() {
    if !possible() {
        return;
    }
    let ([dead, late], report) = observed_outage(Told::Timely);
    assert_eq!((report.outages_signalled, report.outages_silent), (1, 0));
    assert_eq!((report.tcp.stalled, report.away), (1, 0));
    for saved in [report.tcp.saved_least, report.tcp.saved_most] {
        assert!((saved - dead).abs() <= 0.3 + late, "{dead}: {report:?}");
    }
    assert!((report.outage_seconds - OUTAGE.as_secs_f64()).abs() < 0.3 + late, "{report:?}");
}

#[test]
fn what_an_outage_costs_is_reported_with_bounds_if_nobody_tells_its_end() {
    if !possible() {
        return;
    }
    let ([dead, late], report) = observed_outage(Told::Nothing);
    assert_eq!((report.outages_signalled, report.outages_silent), (0, 1));
    let (least, most) = (report.tcp.saved_least, report.tcp.saved_most);
    assert!(least <= dead + 0.3 + late && dead - 0.3 - late <= most, "{dead}: {report:?}");
}

#[test]
fn a_gateway_that_observes_has_nothing_to_change_packets_with() {
    if !possible() {
        return;
    }
    let (bed, transfer) = downloading();
    assert_eq!(transfer.finish(), SIZE);
    let of_kernel = bed.gateway.within(|| {
        ["raw", "raw6", "netfilter/nfnetlink_queue"]
            .map(|name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap())
    });
    let [raw, raw6, queues] = of_kernel.map(|text| text.lines().count());
    assert_eq!([raw, raw6, queues], [1, 1, 0], "raw sockets below a line of heads, and queues");
    let rules = "iptables-save; ip6tables-save; iptables-legacy-save; nft list ruleset";
    let rules = bed.gateway.command(&["sh", "-c", rules]).output().unwrap().stdout;
    let rules = String::from_utf8(rules).unwrap().to_lowercase();
    assert!(!rules.contains("airtcp"), "{rules}");
}

#[test]
fn packets_and_flows_are_counted_by_protocol() {
    if !possible() {
        return;
    }
    let (bed, transfer) = downloading();
    assert_eq!(transfer.finish(), SIZE);
    let mobile = bed.addresses()[1];
    for _ in 0..10 {
        send_raw(&bed.fixed, udp(mobile, [443, 5004].into_iter()));
    }
    thread::sleep(Duration::from_millis(500));
    let status = bed.daemon().status();
    let GroupReport { tcp, quic, other, .. } = seen(&status);
    assert_eq!((tcp.flows, quic.flows), (1, 1), "{status:?}");
    assert!(tcp.bytes > SIZE && tcp.packets > SIZE / 1500, "{tcp:?}");
    assert_eq!((quic.packets, quic.bytes), (10, 10 * 36));
    assert!(other.packets >= 10 && other.stalled == 0, "{other:?}");
}

#[test]
fn the_report_is_for_people_and_for_programs() {
    if !possible() {
        return;
    }
    let (bed, transfer) = downloading();
    assert_eq!(transfer.finish(), SIZE);
    let [text, json] = [&["report"][..], &["report", "--json"]].map(|args| {
        let output = bed.daemon().airtcp(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    });
    assert!(text.starts_with("Observed for ") && text.contains("\nphones  TCP "), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["groups"][0]["name"], "phones");
    let refused = bed.daemon().reload_error("mode = \"observe\"", "mode = \"protect\"");
    assert!(refused.contains("mode cannot change while the gateway runs"), "{refused}");
}

#[test]
fn a_gateway_that_protects_has_no_report() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&Plan::with("\"wake\""));
    let output = bed.daemon().airtcp(&["report"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("no report: this gateway protects"), "{told}");
}

#[test]
fn what_an_earlier_gateway_holds_is_not_left_to_one_that_observes() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&Plan::with("\"m-tcp-plus\""));
    let transfer = with_promise(&bed);
    bed.daemon().crash();
    bed.daemon().configure("[[mobile]]", "mode = \"observe\"\n[[mobile]]");
    let output = bed.daemon().run(&bed.gateway);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && told.contains("left 1 connection that"), "{told}");
    bed.daemon().configure("mode = \"observe\"", "mode = \"protect\"");
    bed.daemon().restart(&bed.gateway);
    bed.link(true);
    bed.signal(LinkSignal::Up);
    transfer.finish();
}
