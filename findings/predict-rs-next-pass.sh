#!/bin/sh
# The Rust crate predict-rs 0.1.1 ports libpredict, whose times are in days, to Unix seconds, and left two things
# behind. predict_next_aos and predict_next_los (observer.rs) still step by fractions of a day, 0.00035 or 20 minutes of
# it, which are now fractions of a second; and they take the observer's min_elevation for the tolerance that libpredict
# has there. So for a least elevation of 10 degrees the satellite "rises" where it is still a degree below the horizon,
# nearly three minutes early, and sets at the same instant: a pass has no length, and no Doppler or range of it is
# right. Nothing is said. get_passes of the same crate is right. And the observer's place is computed with the fraction
# of the second counted twice (predict_to_julian_double): within each second the Earth turns at double speed and then
# falls back, so that a range in steps of 0.1 s has a saw tooth of up to 0.4 km. The range rate is right.
#
# Seen, NOAA 19 over 30.5 N 73.9 W, from 10 degrees of elevation: get_passes 1148 s to 1776 s, both at 10.0 degrees;
# next AOS and next LOS both at 981 s and -1.0 degrees. At a whole second during the pass the range jumps by 0.19 km.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[dependencies]
predict-rs = "=0.1.1"
sgp4 = "=2.3.0"

[profile.dev]
debug = false
opt-level = 1

[workspace]
END
cat >src/main.rs <<'END'
use predict_rs::consts::{DEG_TO_RAD, RAD_TO_DEG};
use predict_rs::observer::{
    get_passes, predict_next_aos, predict_next_los, predict_observe_orbit,
};
use predict_rs::orbit::predict_orbit;
use predict_rs::predict::{ObserverElements, PredictObservation, PredictObserver};

const START: f64 = 1_740_405_600.0; // s, 24 February 2025, 14:00 UTC

fn main() {
    let elements = sgp4::Elements::from_tle(
        None,
        b"1 33591U 09005A   25055.14587056  .00000347  00000+0  20897-3 0  9990",
        b"2 33591  99.0114 119.2046 0012856 303.3262  56.6679 14.13292610827219",
    )
    .unwrap();
    let constants = sgp4::Constants::from_elements(&elements).unwrap();
    let observer = PredictObserver {
        name: String::new(),
        latitude: 30.5 * DEG_TO_RAD,
        longitude: -73.9 * DEG_TO_RAD,
        altitude: 0.0,
        min_elevation: 10.0,
    };
    let from = ObserverElements { observer: &observer, elements: &elements, constants: &constants };
    let show = |event: &PredictObservation| {
        format!("{:.0} s, {:.1} degrees", event.time - START, event.elevation * RAD_TO_DEG)
    };
    let pass = get_passes(&from, START, START + 7200.0).unwrap().passes.remove(0);
    let events = [
        show(&pass.aos.unwrap()),
        show(&pass.los.unwrap()),
        show(&predict_next_aos(&from, START).unwrap()),
        show(&predict_next_los(&from, START).unwrap()),
    ];
    let names = ["get_passes, AOS", "get_passes, LOS", "next AOS", "next LOS"];
    for (name, event) in names.iter().zip(&events) {
        println!("{name}: {event}");
    }
    let range = |time| {
        let position = predict_orbit(&elements, &constants, time).unwrap();
        let seen = predict_observe_orbit(&observer, &position);
        (seen.range, seen.range_rate)
    };
    // The step of the range over the last tenth of a second, and what the range rate says of it.
    let (before, rate) = range(START + 1200.9);
    let (after, _) = range(START + 1201.0);
    let jump = format!("{:.2}", after - before - 0.1 * rate);
    println!("jump of the range at a whole second: {jump} km");
    let expected =
        ["1148 s, 10.0 degrees", "1776 s, 10.0 degrees", "981 s, -1.0 degrees", "981 s, -1.0 degrees"];
    std::process::exit((events != expected || jump != "0.19").into());
}
END
cargo run --quiet
