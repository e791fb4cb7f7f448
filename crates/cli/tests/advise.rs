//! `airtcp advise` as its users see it.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn advise(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airtcp"))
        .arg("advise")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("airtcp starts")
}

/// What it prints if it succeeds.
fn advice(folder: &Path, arguments: &[&str]) -> String {
    let output = advise(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What it complains about if it refuses the input.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = advise(folder, arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).expect("UTF-8")
}

fn folder(link: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("link.toml"), link).expect("a link file");
    folder
}

const MOBILE: &str = "rate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = { limit = \"60 kB\" }\n";

#[test]
fn against_outages_wake_is_advised_at_the_edge() {
    let folder = folder(MOBILE);
    let arguments =
        ["--link", "link.toml", "--outages", "5s/20s", "--runs", "8", "--duration", "60s"];
    let text = advice(folder.path(), &arguments);
    assert!(text.contains("At the edge of the link, wake helps:"), "{text}");
    assert!(text.contains("    mechanism = \"wake\"\n"), "{text}");
    let one_at_once = advice(folder.path(), &[&arguments[..], &["--jobs", "1"]].concat());
    assert_eq!(text, one_at_once);
}

#[test]
fn a_trace_may_come_through_a_pipe() {
    let mut writer = Command::new("sh")
        .args(["-c", "seq 1 1000"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh starts");
    let arguments =
        ["--link", "/dev/stdin", "--outages", "2s/8s", "--runs", "2", "--duration", "10s"];
    let output = Command::new(env!("CARGO_BIN_EXE_airtcp"))
        .arg("advise")
        .args(arguments)
        .stdin(writer.stdout.take().expect("a pipe"))
        .output()
        .expect("airtcp starts");
    assert!(writer.wait().expect("sh ends").success());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn interruptions_at_the_ends_of_slots_are_announced_by_a_timetable() {
    let reconfiguration = "reconfiguration = { interruption = \"200 ms\" }\n";
    let folder = folder(&format!("rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\n{reconfiguration}"));
    let arguments = ["--link", "link.toml", "--runs", "2", "--duration", "30s"];
    let error = refusal(folder.path(), &[&arguments[..], &["--report-delay", "50ms"]].concat());
    assert!(error.contains("--report-delay: has no effect"), "{error}");
    // Told 50 ms ahead, as in this scenario, and not late: the same goodput.
    let row = |text: &str| -> String {
        let line = text.lines().find(|line| line.starts_with("gateway: holdover, told"));
        line.expect("a row").to_owned()
    };
    let timetable = advice(folder.path(), &arguments);
    let text = "rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\n\
                outage = { origin = \"12 s\", period = \"15 s\", end = \"200 ms\" }\n";
    std::fs::write(folder.path().join("link.toml"), text).expect("a link file");
    let late = advice(folder.path(), &arguments);
    assert_ne!(row(&timetable), row(&late));
}

#[test]
fn without_outages_no_gateway_that_must_be_told_is_tried_and_none_is_advised() {
    let folder = folder(MOBILE);
    let text = advice(folder.path(), &["--link", "link.toml", "--runs", "2", "--duration", "20s"]);
    assert!(!text.contains("told of outages"), "{text}");
    assert!(text.contains("At the edge of the link, nothing here helps."), "{text}");
}

#[test]
fn outages_that_end_before_they_are_reported_tell_nobody() {
    let handover =
        "handover = { interruption = \"50 ms\", data = \"discard\", interval = \"5 s\" }\n";
    let folder = folder(&format!("rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\n{handover}"));
    let arguments = ["--link", "link.toml", "--runs", "2", "--duration", "20s"];
    let text = advice(folder.path(), &arguments);
    assert!(!text.contains("told of outages  "), "{text}");
    assert!(text.contains("each outage is over before it is reported, 100 ms after"), "{text}");
    let text = advice(folder.path(), &[&arguments[..], &["--report-delay", "49ms"]].concat());
    assert!(text.contains("told of outages  ") && !text.contains("is over before"), "{text}");
}

#[test]
fn a_delay_of_reports_needs_something_to_report() {
    let folder = folder("rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\n");
    let error = refusal(folder.path(), &["--link", "link.toml", "--report-delay", "200ms"]);
    assert!(error.contains("--report-delay: has no effect: the link has no outages"), "{error}");
}

#[test]
fn bbr_is_advised_against_losses() {
    let folder = folder(MOBILE);
    let loss = ["--set", "loss.kind=bernoulli", "--set", "loss.p=0.03"];
    let short = ["--link", "link.toml", "--runs", "6", "--duration", "60s"];
    for traffic in ["download", "requests"] {
        let arguments = [&short[..], &loss, &["--traffic", traffic]].concat();
        let text = advice(folder.path(), &arguments);
        assert!(text.contains("On the server, bbr helps:"), "{traffic}: {text}");
        assert!(text.contains("tcp_congestion_control=bbr"), "{traffic}: {text}");
    }
}

#[test]
fn video_is_judged_by_its_stalls() {
    let folder = folder(MOBILE);
    let arguments = ["--traffic", "video", "--runs", "2", "--duration", "30s"];
    let text = advice(folder.path(), &[&["--link", "link.toml"], &arguments[..]].concat());
    assert!(text.contains("stalled %"), "{text}");
    assert!(!text.contains("-0.00"), "{text}");
}

#[test]
fn a_trace_is_a_link_of_both_directions() {
    let folder = tempfile::tempdir().expect("a folder");
    // A packet of 1500 B each 3 ms: 4 Mbit/s.
    std::fs::write(folder.path().join("lte.down"), "3\n").expect("a trace");
    let arguments = ["--link", "lte.down", "--set", "delay=20ms", "--runs", "2"];
    let text = advice(folder.path(), &[&arguments[..], &["--duration", "30s"]].concat());
    let today = text.lines().find(|line| line.starts_with("as it is")).expect("a row");
    let goodput: f64 = today.split_whitespace().nth(3).and_then(|it| it.parse().ok()).expect(today);
    assert!((3.6..4.0).contains(&goodput), "{text}");
}

#[test]
fn a_table_is_followed_in_all_its_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = "time (s),rate (Mbit/s),delay (ms),loss (%)\n0,4,150,0\n20,4,150,1\n";
    std::fs::write(folder.path().join("path.csv"), table).expect("a table");
    let arguments = ["--link", "path.csv", "--runs", "2", "--duration", "30s"];
    let text = advice(folder.path(), &arguments);
    let today = text.lines().find(|line| line.starts_with("as it is")).expect("a row");
    // Twice 150 ms and 10 ms to the server; losses are sent again.
    let numbers: Vec<f64> = today.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    assert!(numbers[numbers.len() - 2] >= 320.0, "{text}");
    assert!(numbers[numbers.len() - 4] > 0.1, "{text}");
}

#[test]
fn what_is_wrong_is_named() {
    let folder = folder("rate = \"4 Mbit/s\"\ndelai = \"20 ms\"\n");
    let of = |arguments: &[&str]| refusal(folder.path(), arguments);
    let error = of(&["--link", "link.toml"]);
    assert!(error.contains("link.toml:2:1: delai: unknown key (did you mean `delay`?)"), "{error}");
    let error = of(&["--link", "none.toml"]);
    assert!(error.contains("none.toml: there is no such file"), "{error}");
    std::fs::write(folder.path().join("air.toml"), "wlan = { preset = \"ieee\" }\n")
        .expect("a file");
    let error = of(&["--link", "air.toml"]);
    assert!(error.contains("air.toml: wlan: "), "{error}");
    std::fs::write(folder.path().join("only.toml"), "only = { ports = [443] }\n").expect("a file");
    let error = of(&["--link", "only.toml"]);
    assert!(error.contains("only.toml: only: has no effect"), "{error}");
    std::fs::write(folder.path().join("bad.down"), "3\nx\n").expect("a file");
    let error = of(&["--link", "bad.down"]);
    assert!(error.contains("bad.down: line 2"), "{error}");
    std::fs::write(folder.path().join("good.toml"), MOBILE).expect("a file");
    let error = of(&["--link", "good.toml", "--outages", "5s/10min"]);
    assert!(error.contains("begins at 595 s: expected a longer --duration"), "{error}");
    let wrong =
        [("--outages", "5s"), ("--outages", "5s/4s"), ("--runs", "1"), ("--duration", "1s")];
    for (option, value) in wrong {
        let error = of(&["--link", "air.toml", option, value]);
        assert!(error.contains(&format!("{option} <")), "{error}");
    }
}
