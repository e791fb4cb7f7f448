#!/bin/sh
# The Rust crate linkbudget 0.6.2, for satellite links, is off in two places, and nothing is said. The radial velocity
# at an elevation (max_radial_velocity_circular in doppler.rs) is for it the speed in orbit times the cosine of the
# elevation, "at horizon ≈ orbital velocity". But that is the angle at the station, and the velocity goes by the one at
# the satellite: by the law of sines the cosine shrinks by R / (R + h). So the Doppler shift of a low orbit is a tenth
# too large and that of GPS four times what it is. And a receiver (receiver.rs) has a "system noise temperature", in
# which the receiver's own noise is by definition, and a noise figure besides: the SNR has both, G/T the temperature
# alone. So C/N0 from the SNR and C/N0 from EIRP, G/T and path loss differ by the noise figure, in the first example of
# README.md too. Whatever the user takes the two for, one is wrong.
#
# Seen, 10 degrees up: from 550 km at 12 GHz 299.2 kHz, right is 275.4; GPS L1 20.1 kHz, right is 4.8. The receiver of
# README.md, with 2 dB: C/N0 of 80.7 dBHz by c_over_no, 82.7 by G/T; without a noise figure 82.7 by both.
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
linkbudget = { version = "=0.6.2", default-features = false }

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use linkbudget::orbits::circular::calculate_circular_orbit_speed;
use linkbudget::{
    doppler_shift_hz, max_radial_velocity_circular, LinkBudget, PathLoss, Receiver, Transmitter,
};

const EARTH_MASS: f64 = 5.9722e24; // kg
const EARTH_RADIUS: f64 = 6371e3; // m
const ELEVATION: f64 = 10.0; // degrees
const BOLTZMANN: f64 = -228.6; // dBW/K/Hz

fn main() {
    let mut told = Vec::new();
    for (name, altitude, frequency) in [("550 km, 12 GHz", 550e3, 12e9), ("GPS L1", 20_180e3, 1575.42e6)] {
        let radius = EARTH_RADIUS + altitude;
        let speed = calculate_circular_orbit_speed(EARTH_MASS, radius);
        let shift = |velocity| format!("{:.1}", doppler_shift_hz(frequency, velocity) / 1e3);
        let right = speed * ELEVATION.to_radians().cos() * EARTH_RADIUS / radius;
        told.push(shift(max_radial_velocity_circular(speed, ELEVATION)));
        println!("{name}: {} kHz at most, right {}", told.last().unwrap(), shift(right));
    }
    let carrier_to_noise = |temperature, noise_figure| {
        let link = LinkBudget {
            name: "Ka band",
            bandwidth: 36e6,
            transmitter: Transmitter { output_power: 10.0, gain: 35.0, bandwidth: 36e6 },
            receiver: Receiver { gain: 40.0, temperature, noise_figure, bandwidth: 36e6 },
            path_loss: PathLoss { frequency: 20e9, distance: 550e3 },
            frequency_dependent_loss: Some(3.0),
        };
        let parts = link.transmitter.eirp_dbw() + link.receiver.g_over_t_db() - link.path_loss();
        format!("{:.1} {:.1}", link.c_over_no(), parts - BOLTZMANN)
    };
    for noise_figure in [0.0, 2.0] {
        told.push(carrier_to_noise(290.0, noise_figure));
        println!("noise figure of {noise_figure} dB, C/N0 by SNR and by G/T: {} dBHz", told.last().unwrap());
    }
    std::process::exit((told != ["299.2", "20.1", "82.7 82.7", "80.7 82.7"]).into());
}
END
cargo run --quiet
