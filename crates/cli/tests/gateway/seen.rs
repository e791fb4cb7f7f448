//! What an operator sees: status, metrics, the log, and refusals.

use crate::testbed::{MOBILE, Plan, Testbed, possible};
use crate::transfer::Load;
use airtcp_core::LinkSignal;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

/// What `airtcp gateway` prints with these arguments, on standard output and standard error.
fn printed(bed: &Testbed, args: &[&str]) -> String {
    let output = bed.daemon().airtcp(args);
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
}

fn expect_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn an_outage_that_nobody_announced_is_in_the_status_the_metrics_and_the_log() {
    let Some(bed) = Testbed::with_mirror(&Plan::with("\"wake\"")) else { return };
    let transfer = bed.download(&Load::endless("cubic"));
    transfer.wait_for(500_000);
    bed.link(false);
    bed.daemon().wait_until(|status| status.outages.len() == 1);
    expect_lines(&printed(&bed, &["status"]), &["\naway ", "nobody (silence)"]);
    thread::sleep(Duration::from_secs(1));
    bed.link(true);
    let status = bed.daemon().wait_until(|status| status.outages.is_empty());
    let outages = status.groups[0].outages["silence"];
    assert_eq!((outages.begun, outages.ended, outages.ongoing), (1, 1, 0));
    assert!(outages.seconds > 1.0 && outages.seconds == status.groups[0].longest_outage);
    transfer.finish();
    let of_silence = "{cause=\"silence\",group=\"phones\"}";
    expect_lines(
        &printed(&bed, &["metrics"]),
        &[
            &format!("airtcp_gateway_outages_total{of_silence} 1\n"),
            &format!("airtcp_gateway_ended_outages_total{of_silence} 1\n"),
            &format!("airtcp_gateway_ongoing_outages{of_silence} 0\n"),
            "airtcp_gateway_wake_silences_total{group=\"phones\"} 1\n",
            &format!("airtcp_gateway_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION")),
        ],
    );
    for what in ["began, cause: silence", "ended after"] {
        expect_lines(&bed.daemon().log(), &[&format!("outage of {} (phones) {what}", MOBILE[0])]);
    }
}

#[test]
fn a_status_that_repeats_ends_when_nobody_reads_it() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&Plan::with("\"m-tcp-plus\""));
    for how in [&["status", "--watch"][..], &["status", "--watch", "--json"]] {
        let mut status = bed.daemon().command(how).stdout(Stdio::piped()).spawn().unwrap();
        let mut shown = BufReader::new(status.stdout.take().unwrap());
        shown.read_line(&mut String::new()).unwrap();
        drop(shown);
        assert_eq!(status.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn signals_for_nobody_are_refused_and_a_group_is_signalled_by_its_name() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&Plan::with("\"m-tcp-plus\""));
    let refused = |args: &[&str], why: &str| {
        let output = bed.daemon().airtcp(args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.contains(why), "{args:?}: {told}");
    };
    refused(
        &["signal", "100.64.0.9", "down"],
        "100.64.0.9 is in no group; the nearest is \"phones\" (addresses 100.64.0.2/32)",
    );
    refused(
        &["signal", "--group", "phone", "down"],
        "unknown group \"phone\"; did you mean \"phones\"?",
    );
    refused(&["signal", "--group", "phones", MOBILE[0], "down"], "cannot be used with");
    assert!(bed.daemon().status().away.is_empty());
    let done = bed.daemon().airtcp(&["signal", "--group", "phones", "down"]);
    assert!(done.status.success(), "{done:?}");
    let away: Vec<String> = bed.daemon().status().away.into_keys().collect();
    assert_eq!(away, MOBILE);
    bed.signal(LinkSignal::Up);
    assert_eq!(bed.daemon().status().away.len(), 1);
}

#[test]
fn reloads_and_the_stop_are_in_the_log_and_the_last_reload_is_in_the_metrics() {
    if !possible() {
        return;
    }
    let mut bed = Testbed::new(&Plan::with("\"m-tcp-plus\""));
    let outcome = |bed: &Testbed| {
        let metrics = printed(bed, &["metrics"]);
        let value = |name: &str| -> f64 {
            let is_it = |line: &&str| {
                line.starts_with(&format!("airtcp_gateway_config_last_reload_{name} "))
            };
            metrics.lines().find(is_it).unwrap().split_once(' ').unwrap().1.parse().unwrap()
        };
        [value("successful"), value("success_timestamp_seconds")]
    };
    let [successful, started] = outcome(&bed);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!(successful == 1.0 && (now - 600.0..=now).contains(&started), "{started} {now}");
    bed.daemon().reload_error("mechanism", "mechanims");
    assert_eq!(outcome(&bed), [0.0, started]);
    bed.daemon().reload("mechanims", "copy = \"when-fading\"\nmechanism");
    let [successful, reloaded] = outcome(&bed);
    assert!(successful == 1.0 && reloaded > started, "{reloaded} {started}");
    let log = bed.stop();
    expect_lines(
        &log,
        &[
            "reload failed, configuration unchanged: ",
            "configuration reloaded: copy of group \"phones\" changed",
            "stopping: SIGTERM",
            "gateway stopped",
        ],
    );
}
