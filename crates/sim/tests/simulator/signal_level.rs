//! Signals made from the level of an access point's frames: they come when the closed form of the
//! path loss says.

use crate::common;
use crate::ear;
use airtcp_core::LinkSignal;

/// A phone that walks away at 4 m/s from 10 s on, is 320 m away at 40 s, and comes back.
const WALK: &str = r#"
duration = "90 s"
[[node]]
name = "server"
[[node]]
name = "AP"
position = ["0 m", "0 m"]
middlebox = { mechanism = "m-tcp-plus", mobiles = ["phone"], signal = { level = { down = "-64 dBm", up = "-63 dBm" } } }
[[node]]
name = "phone"
position = ["200 m", "0 m"]
mobility = { model = "path", waypoints = [["10 s", "200 m", "0 m"], ["40 s", "320 m", "0 m"], ["70 s", "200 m", "0 m"]] }
[[link]]
between = ["server", "AP"]
rate = "100 Mbit/s"
delay = "10 ms"
[[wlan]]
name = "cell"
stations = ["AP", "phone"]
preset = "ns2"
[[flow]]
from = "server"
to = "phone"
"#;

fn signals(text: &str, seed: u64) -> Vec<(f64, LinkSignal)> {
    let scenario = common::parse(text, &[]);
    ear::signals(&scenario, seed)
}

/// Distance at which ns-2's radio is received with `dbm`, by two-ray ground: 0.2818 W, 1.5 m high.
fn distance(dbm: f64) -> f64 {
    1.5 * (0.281_838_15 / (1e-3 * 10_f64.powf(dbm / 10.0))).powf(0.25)
}

#[track_caller]
fn assert_signals(found: &[(f64, LinkSignal)], expected: &[(f64, LinkSignal)]) {
    let close = |(a, b): (&(f64, _), &(f64, _))| (a.0 - b.0).abs() < 1e-6 && a.1 == b.1;
    let all = found.len() == expected.len() && found.iter().zip(expected).all(close);
    assert!(all, "{found:?}, expected {expected:?}");
}

/// When the walker is so far away, on the way out and on the way back.
fn out(metres: f64) -> f64 {
    10.0 + (metres - 200.0) / 4.0
}
fn back(metres: f64) -> f64 {
    70.0 - (metres - 200.0) / 4.0
}

#[test]
fn the_signals_come_when_the_level_crosses_the_thresholds() {
    let (down, up) = (out(distance(-64.0)), back(distance(-63.0)));
    assert_signals(&signals(WALK, 1), &[(down, LinkSignal::Down), (up, LinkSignal::Up)]);
    // Fading comes ahead of the loss of frames: the radio reaches 250 m.
    let text = WALK.replace("level = {", "level = { fading = \"-63.5 dBm\",");
    let fades = out(distance(-63.5));
    let expected = [(fades, LinkSignal::Fading), (down, LinkSignal::Down), (up, LinkSignal::Up)];
    assert_signals(&signals(&text, 1), &expected);
    assert!(fades < out(250.0) - 2.0);
}

#[test]
fn reports_may_be_late_or_missing() {
    let text = WALK.replace("signal = {", "signal = { late = \"100 ms\", delay = \"2 s\",");
    let (down, up) = (out(distance(-64.0)) + 0.1, back(distance(-63.0)) + 2.0);
    assert_signals(&signals(&text, 1), &[(down, LinkSignal::Down), (up, LinkSignal::Up)]);
    let text = WALK.replace("signal = {", "signal = { missing = 1,");
    assert_signals(&signals(&text, 1), &[]);
}

#[test]
fn the_access_point_may_be_what_moves() {
    let fixed = "position = [\"0 m\", \"0 m\"]";
    let walk = "position = [\"200 m\", \"0 m\"]\nmobility = { model = \"path\", waypoints = [[\"10 s\", \"200 m\", \"0 m\"], [\"40 s\", \"320 m\", \"0 m\"], [\"70 s\", \"200 m\", \"0 m\"]] }";
    assert!(WALK.contains(fixed) && WALK.contains(walk));
    let text = WALK.replace(walk, "WALK").replace(fixed, walk).replace("WALK", fixed);
    assert_signals(&signals(&text, 1), &signals(WALK, 1));
}

#[test]
fn random_walks_cross_at_times_of_their_own() {
    let model = "mobility = { model = \"random-waypoint\", area = [\"600 m\", \"600 m\"], speed = \"20 m/s\" }";
    let start = WALK.find("position = [\"200 m\"").unwrap();
    let end = WALK.find("[[link]]").unwrap();
    let text = format!("{}{model}\n{}", &WALK[..start], &WALK[end..]);
    let runs: Vec<_> = (1..=3).map(|seed| signals(&text, seed)).collect();
    assert_eq!(runs[0], signals(&text, 1));
    assert!(runs.iter().any(|run| *run != runs[0]));
    for run in &runs {
        let alternate = run.windows(2).all(|pair| pair[0].1 != pair[1].1 && pair[0].0 <= pair[1].0);
        assert!(alternate, "{run:?}");
    }
}
