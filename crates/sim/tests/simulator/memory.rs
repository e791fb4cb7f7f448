//! What a run allocates, measured with a counting allocator.

use crate::common;
use airtcp_core::{DataRate, Duration, Instant};
use airtcp_sim::{Observers, World};
use airtcp_testing::CountingAllocator;

fn packets(world: &World) -> u64 {
    world.metrics().links.iter().map(|link| link.packets_sent).sum()
}

/// No allocation per packet in steady state, while queues overflow and flows recover from losses.
#[test]
fn steady_state_allocates_nothing() {
    let bottleneck = common::wire(DataRate::mbps(100), Duration::from_millis(10), 300);
    let scenario = common::dumbbell(10, &bottleneck, Duration::from_secs(30));
    let mut world = World::new(&scenario, 1);
    // In slices, because packets under way between two slices have a list of their own on each
    // link.
    for ms in (4000..=10_000).step_by(100) {
        world.run_until(Instant::from_millis(ms), &mut Observers::default());
    }
    let (sent, dropped) = (packets(&world), world.metrics().links[0].queue_drops);

    let before = CountingAllocator::allocations();
    world.run_until(Instant::from_secs(20), &mut Observers::default());
    let allocations = CountingAllocator::allocations() - before;

    let sent = packets(&world) - sent;
    assert!(sent > 100_000, "{sent} packets over a link");
    assert!(world.metrics().links[0].queue_drops > dropped, "no recovery in the sample");
    assert_eq!(allocations, 0, "in {sent} packets over a link");
}

/// The same over a wireless cell, with cross traffic and collisions.
#[test]
fn a_cell_in_steady_state_allocates_nothing() {
    let text = r#"
        duration = "60 s"
        node = [{ name = "AP" }, { name = "MH" }, { name = "other" }]
        wlan = [{ name = "cell", stations = ["AP", "MH", "other"], queue = "10 packets" }]
        flow = [{ from = "AP", to = "MH" }]
        udp = [{ from = "other", to = "AP", rate = "2 Mbit/s" }]"#;
    let scenario = common::parse(text, &[]);
    let mut world = World::new(&scenario, 1);
    world.run_until(Instant::from_secs(90), &mut Observers::default());
    let frames =
        |world: &World| world.metrics().stations.iter().map(|s| s.data_frames_sent).sum::<u64>();
    let sent = frames(&world);

    let before = CountingAllocator::allocations();
    world.run_until(Instant::from_secs(120), &mut Observers::default());
    let allocations = CountingAllocator::allocations() - before;

    let sent = frames(&world) - sent;
    assert!(sent > 5_000 && world.metrics().stations[0].retries > 0, "{sent} frames");
    assert_eq!(allocations, 0, "in {sent} frames");
}

/// The same in a cell of phones whose channels fade.
#[test]
fn a_cell_of_phones_in_steady_state_allocates_nothing() {
    let text = r#"
        duration = "60 s"
        node = [{ name = "server" }, { name = "BS" }, { name = "phone", count = 5 }]
        cell = [{ name = "down", scheduler = "proportional-fair" }]
        flow = [{ from = "server", to = "phone" }]
        [[link]]
        between = ["server", "BS"]
        rate = "1 Gbit/s"
        delay = "10 ms"
        [[link]]
        between = ["BS", "phone"]
        rate = { fading = { snr = "12 dB", bandwidth = "9 MHz", coherence-time = "5 ms" } }
        delay = "5 ms"
        forward = { cell = "down" }"#;
    let scenario = common::parse(text, &[]);
    let mut world = World::new(&scenario, 1);
    world.run_until(Instant::from_secs(40), &mut Observers::default());
    let (sent, dropped) = (packets(&world), world.metrics().links[2].queue_drops);

    let before = CountingAllocator::allocations();
    world.run_until(Instant::from_secs(60), &mut Observers::default());
    let allocations = CountingAllocator::allocations() - before;

    let sent = packets(&world) - sent;
    assert!(sent > 50_000 && world.metrics().links[2].queue_drops > dropped, "{sent} packets");
    assert_eq!(allocations, 0, "in {sent} packets over a link");
}

/// 10,000 concurrent flows stay under 100 MB, scenario included.
#[test]
fn ten_thousand_flows_fit_in_100_megabytes() {
    let before = CountingAllocator::live_bytes();
    let bottleneck = common::wire(DataRate::mbps(1000), Duration::from_millis(10), 10_000);
    let scenario = common::dumbbell(10_000, &bottleneck, Duration::from_secs(1));
    let scenario_bytes = CountingAllocator::live_bytes() - before;
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers::default());
    let live = CountingAllocator::live_bytes() - before;
    let metrics = world.metrics();
    assert!(metrics.flows.iter().all(|f| f.state == "Established"));
    println!("10,000 flows: {live} bytes, {scenario_bytes} of them for the scenario");
    assert!(live < 100_000_000, "{live} bytes");
}

/// Bytes for each of 10,000 flows of a host that have yet to open, scenario included.
#[test]
fn an_idle_flow_takes_two_and_a_half_kilobytes() {
    // CUBIC and RACK keep more than Reno.
    for (preset, most) in [("rfc", 2500), ("linux", 3000)] {
        let text = format!(
            r#"
            duration = "60 s"
            tcp = {{ preset = "{preset}" }}
            node = [{{ name = "a" }}, {{ name = "b" }}]
            link = [{{ between = ["a", "b"], rate = "1 Gbit/s", delay = "10 ms" }}]
            flow = [{{ from = "a", to = "b", start = "1 s", count = 10000 }}]"#
        );
        let before = CountingAllocator::live_bytes();
        let scenario = common::parse(&text, &[]);
        let _world = World::new(&scenario, 1);
        let bytes = (CountingAllocator::live_bytes() - before) / 10_000;
        println!("{preset}: {bytes} bytes");
        assert!(bytes <= most, "{preset}: {bytes} bytes");
    }
}
