//! `airtcp run --animate`: the file, and the page in headless Chromium.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const PHONE: u32 = 360;
const DESKTOP: u32 = 1200;

/// Scenario of a map with two hundred moving nodes.
const CROWD: &str = r#"
    duration = "6 s"
    [[node]]
    name = "n"
    count = 200
    mobility = { model = "random-waypoint", area = ["2000 m", "1200 m"], speed = "10 m/s", pause = "1 s", start = "stationary" }
    [[wlan]]
    name = "field"
    stations = ["n"]
    preset = "ns2"
    [routing]
    protocol = "aodv"
    preset = "ns2"
"#;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airtcp")).arg("run").args(arguments).output().unwrap()
}

/// The page of a run of the scenario in `text`.
fn page(folder: &Path, text: &str, arguments: &[&str]) -> String {
    let scenario = folder.join("s.toml");
    let page = folder.join("map.html");
    std::fs::write(&scenario, text).unwrap();
    let always = [scenario.to_str().unwrap(), "--animate", page.to_str().unwrap()];
    let output = run(&[&always, arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(page).unwrap()
}

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// A browser; killed when the test ends.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Findings of the probe in the page, in a window of this width; `None` (and a note) without a
/// browser.
fn probed(folder: &Path, page: &str, width: u32) -> Option<Value> {
    let probe = include_str!("probe.js");
    let page = page.replacen("<meta", &format!("<script>{probe}</script>\n<meta"), 1);
    let file = folder.join("probed.html");
    let page = if width < 500 {
        // No window is as narrow as a phone, but a frame can be.
        let inner = page.replace('&', "&amp;").replace('"', "&quot;");
        format!(
            "<!doctype html><iframe width=\"{width}\" height=\"800\" srcdoc=\"{inner}\"></iframe>"
        )
    } else {
        page
    };
    std::fs::write(&file, page).unwrap();
    let child = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", &format!("--window-size={width},900")])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut browser = match child {
        Ok(child) => Browser(child),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            airtcp_testing::skip("chromium");
            return None;
        }
        Err(error) => panic!("chromium: {error}"),
    };
    let mut log = String::new();
    for line in BufReader::new(browser.0.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, found)) = line.split_once("\"found {") {
            let (found, _) = found.rsplit_once("}\", source:").expect("the log's form");
            return Some(serde_json::from_str(&format!("{{{found}}}")).unwrap());
        }
        log += &format!("{line}\n");
    }
    panic!("the probe found nothing:\n{log}");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Asserts what every page must satisfy.
fn assert_works(found: &Value, end: f64) {
    assert_eq!(found["errors"], serde_json::json!([]), "{found}");
    assert_eq!(found["resources"], serde_json::json!([]), "{found}");
    let start = number(&found["start"]);
    assert!(start > 0.0 && start < end, "opens after the first transmission: {found}");
    assert!(number(&found["played"]) > start, "frames advance: {found}");
    assert_eq!(found["label"], "Pause");
    assert_eq!(found["paused"], found["still"], "{found}");
    let middle = number(&found["scrubbed"]);
    assert!((middle / end - 0.5).abs() < 0.1, "{found}");
    assert!(number(&found["further"]) > middle, "{found}");
    assert!(number(&found["stepped"]) >= number(&found["further"]), "{found}");
    assert_eq!(found["home"], 0.0, "{found}");
    assert_eq!(found["speed"], "1/100");
    assert!(number(&found["ink"]) > 0.01, "the map is drawn: {found}");
    // No scrolling sideways, and a map large enough to see something.
    assert!(number(&found["width"]) <= number(&found["room"]), "{found}");
    assert_eq!(found["overlap"], false);
    assert_eq!(found["covered"], serde_json::json!([]), "labels lie on each other: {found}");
    let map = &found["map"];
    assert!(number(&map[0]) >= 300.0 && number(&map[1]) >= 200.0, "{found}");
}

/// Asserts that each of these nodes has its label at some time.
fn assert_named(found: &Value, nodes: impl Iterator<Item = String>) {
    let words = found["words"].as_array().unwrap();
    for node in nodes {
        assert!(words.iter().any(|word| *word == node.as_str()), "{node} has no label: {found}");
    }
}

#[test]
fn a_map_of_moving_nodes_plays_pauses_and_scrubs() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), &example("manet.toml"), &["--set", "duration=10 s"]);
    for width in [PHONE, DESKTOP] {
        let Some(found) = probed(folder.path(), &page, width) else { return };
        assert_works(&found, 10.0);
        let flows = found["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 5);
        assert!(flows[0].as_str().unwrap().starts_with("n0-n1cwnd "), "{flows:?}");
        // On a phone, not every node has room for its name; the ends of flows come first.
        let named = if width == PHONE { 10 } else { 30 };
        assert_named(&found, (0..named).map(|n| format!("n{n}")));
    }
}

#[test]
fn a_map_of_wired_nodes_needs_no_positions() {
    let folder = tempfile::tempdir().unwrap();
    let walk = folder.path().join("walk.tcl");
    std::fs::write(&walk, example("walk.tcl")).unwrap();
    // In the walk, the server stands beside the access point.
    for name in ["quickstart.toml", "walk.toml"] {
        let page = page(folder.path(), &example(name), &[]);
        for width in [PHONE, DESKTOP] {
            let Some(found) = probed(folder.path(), &page, width) else { return };
            assert_works(&found, 60.0);
            assert_named(&found, ["server", "AP", "phone"].map(String::from).into_iter());
        }
    }
}

/// How long a frame takes is the machine's; how often it paints is ours. A node takes four calls:
/// its dot, the dot's rim, its name and the name's rim. At 1,341 a frame took 14 to 28 ms on two
/// busy cores without a graphics card; 33 ms are 30 frames a second.
#[test]
fn two_hundred_nodes_take_seven_calls_each_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let flow = |n: u32| format!("[[flow]]\nfrom = \"n{n}\"\nto = \"n{}\"\n", n + 100);
    let flows: String = (0..20).map(flow).collect();
    let page = page(folder.path(), &format!("{CROWD}{flows}"), &[]);
    let Some(found) = probed(folder.path(), &page, DESKTOP) else { return };
    assert_works(&found, 6.0);
    assert!(number(&found["painted"]) <= 7.0 * 200.0, "{found}");
}

#[test]
fn each_run_has_its_map() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/quickstart.toml");
    let map = ["--animate", "map.html", "--runs", "2", "--set", "duration=1 s"];
    let output =
        run(&[&[path.to_str().unwrap(), "--out", out.to_str().unwrap()], &map[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for seed in [1, 2] {
        let page = std::fs::read_to_string(out.join(format!("map-seed{seed}.html"))).unwrap();
        assert!(page.contains(&format!("\"seed\":{seed},")), "seed {seed}");
    }
}

#[test]
fn a_part_that_is_empty_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("s.toml");
    std::fs::write(&scenario, example("quickstart.toml")).unwrap();
    let map = folder.path().join("map.html");
    let always = [scenario.to_str().unwrap(), "--animate", map.to_str().unwrap()];
    for (part, expected) in [
        (&["--animate-from", "60 s"][..], "--animate-from: expected a time before 60 s"),
        (
            &["--animate-from", "5 s", "--animate-to", "4 s"],
            "--animate-from: expected a time before 4 s",
        ),
        (&["--animate-from", "soon"], "--animate-from"),
    ] {
        let output = run(&[&always, part].concat());
        assert_eq!(output.status.code(), Some(2), "{part:?}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(expected), "{message}");
        assert!(!map.exists());
    }
}
