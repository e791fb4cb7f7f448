//! BBRv3 (draft-ietf-ccwg-bbr) on whole paths of 100 Mbit/s and 20 ms one way, which hold 333
//! packets of 1500 B.
//!
//! `cargo test -p airtcp-sim --test simulator bbr3 -- --nocapture --test-threads 1` prints what
//! docs/measurements/bbr.md says.

use crate::common;
use airtcp_core::{Duration, Instant};
use airtcp_sim::{Observers, World};

const RATE: f64 = 100e6;
/// Packets in a product of bandwidth and round trip.
const BDP: f64 = 333.0;
const SEEDS: [u64; 3] = [1, 2, 3];

/// Flows of these congestion controls, each 100 ms after the one before, for three minutes.
fn world(controls: &[&str], link: &str, tcp: &str, seed: u64) -> World {
    let mut text = format!(
        r#"
        duration = "180 s"
        [[node]]
        name = "R"
        [[node]]
        name = "B"
        [[link]]
        between = ["R", "B"]
        rate = "100 Mbit/s"
        delay = "19 ms"
        {link}
        [tcp]
        receive-buffer = "64 MB"
        send-buffer = "64 MB"
        {tcp}
        "#,
    );
    for (i, control) in controls.iter().enumerate() {
        text += &format!(
            r#"
            [[node]]
            name = "S{i}"
            [[link]]
            between = ["S{i}", "R"]
            rate = "1 Gbit/s"
            delay = "1 ms"
            [[flow]]
            from = "S{i}"
            to = "B"
            start = "{} ms"
            sender = {{ congestion = "{control}" }}
            "#,
            100 * i
        );
    }
    let scenario = common::parse(&text, &[]);
    World::new(&scenario, seed)
}

/// A drop-tail queue of so many products of bandwidth and delay.
fn queue(bdps: f64) -> String {
    format!("queue = {{ limit = \"{} packets\" }}", (bdps * BDP) as u32)
}

/// Goes on for a minute: of each flow its share of the link.
fn minute(world: &mut World) -> Vec<f64> {
    let delivered = |world: &World| -> Vec<u64> {
        world.metrics().flows.iter().map(|flow| flow.delivered_bytes).collect()
    };
    let before = delivered(world);
    let until = world.now().max(Instant::ZERO) + Duration::from_secs(60);
    world.run_until(until, &mut Observers::default());
    let share = |(after, before): (&u64, &u64)| (after - before) as f64 * 8.0 / 60.0 / RATE;
    delivered(world).iter().zip(&before).map(share).collect()
}

/// The share of the link that one flow has in its first minute, and that of its segments sent
/// again.
fn alone(control: &str, link: &str, tcp: &str) -> (f64, f64) {
    let mut world = world(&[control], link, tcp, 1);
    let share = minute(&mut world)[0];
    (share, world.metrics().flows[0].retransmission_ratio)
}

#[test]
fn one_flow_fills_the_link() {
    for bdps in [0.1, 0.5, 1.0, 4.0] {
        let (share, again) = alone("bbr3", &queue(bdps), "");
        println!("alone, queue of {bdps} BDP: {share:.3} of the link, {again:.4} sent again");
        if bdps >= 1.0 {
            assert!(share >= 0.9 && again < 0.03, "{share} of the link, {again} sent again");
        }
    }
}

/// By §5.3.3.8 each of up to 63 rounds takes 1 % off the rate until the next probe restores it:
/// 0.74 of it on average.
#[test]
fn one_percent_of_random_loss_costs_a_quarter() {
    for control in ["bbr3", "bbr", "cubic"] {
        let link = queue(1.0) + "\nloss = { kind = \"bernoulli\", p = 0.01 }";
        let (share, again) = alone(control, &link, "");
        println!("1 % of random loss, {control}: {share:.3} of the link, {again:.4} sent again");
        assert!(control != "bbr3" || share > 0.7, "{share} of the link");
    }
}

/// §3.7: marks are taken for congestion.
#[test]
fn marks_bound_it_as_losses_do() {
    for ecn in ["rfc3168", "dctcp"] {
        let link = "queue = { kind = \"codel\", ecn = true, limit = \"2000 packets\" }";
        let (share, again) = alone("bbr3", link, &format!("ecn = \"{ecn}\""));
        println!("CoDel with marks, {ecn}: {share:.3} of the link, {again:.4} sent again");
        assert!(share >= 0.85 && again < 0.001, "{ecn}: {share} of the link, {again} sent again");
    }
}

/// Two flows in each of so many minutes; prints the means of the seeds, and returns all.
fn shares(controls: [&str; 2], bdps: f64, minutes: usize) -> Vec<Vec<[f64; 2]>> {
    let runs: Vec<Vec<[f64; 2]>> = SEEDS
        .iter()
        .map(|&seed| {
            let mut world = world(&controls, &queue(bdps), "", seed);
            (0..minutes).map(|_| minute(&mut world).try_into().expect("two flows")).collect()
        })
        .collect();
    for minute in 0..minutes {
        let mean =
            |flow: usize| runs.iter().map(|run| run[minute][flow]).sum::<f64>() / runs.len() as f64;
        let [first, second] = controls;
        let (mine, other) = (mean(0), mean(1));
        println!("{bdps} BDP, minute {}: {first} {mine:.3}, {second} {other:.3}", minute + 1);
    }
    runs
}

/// They take two minutes to converge: the rate of a flow grows by at most a quarter in a probe, and
/// is remembered for two cycles of two to three seconds.
#[test]
fn two_flows_come_to_share_the_link() {
    for bdps in [1.0, 4.0] {
        for run in shares(["bbr3", "bbr3"], bdps, 3) {
            assert!(run.iter().all(|[first, second]| first + second > 0.9), "{run:?}");
            let [first, second] = run[2];
            assert!((first - second).abs() < 0.1, "queue of {bdps} BDP: {run:?}");
        }
    }
}

#[test]
fn cubic_is_left_a_share() {
    for bdps in [1.0, 4.0] {
        for run in shares(["bbr3", "cubic"], bdps, 1) {
            assert!(run.iter().flatten().all(|&share| share > 0.05), "{bdps} BDP: {run:?}");
        }
    }
}
