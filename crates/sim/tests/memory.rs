//! What a run allocates, measured with a counting allocator.
#![allow(unsafe_code)] // A global allocator cannot be written without; here alone.

mod common;

use airtcp_core::{DataRate, Duration, Instant};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::{Observers, World};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with counts per thread, so that other tests do not disturb it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(allocations: u64, bytes: i64) {
    ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
    LIVE_BYTES.set(LIVE_BYTES.get() + bytes);
}

// SAFETY: every call goes to the system's allocator unchanged. The counters are thread-local cells
// without destructors, so touching them neither allocates nor fails.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: the caller's obligations are the same.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: the caller's obligations are the same.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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

    let before = ALLOCATIONS.get();
    world.run_until(Instant::from_secs(20), &mut Observers::default());
    let allocations = ALLOCATIONS.get() - before;

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
    let scenario = Scenario::parse("t.toml", text, &[]).expect("a right scenario");
    let mut world = World::new(&scenario, 1);
    world.run_until(Instant::from_secs(90), &mut Observers::default());
    let frames =
        |world: &World| world.metrics().stations.iter().map(|s| s.data_frames_sent).sum::<u64>();
    let sent = frames(&world);

    let before = ALLOCATIONS.get();
    world.run_until(Instant::from_secs(120), &mut Observers::default());
    let allocations = ALLOCATIONS.get() - before;

    let sent = frames(&world) - sent;
    assert!(sent > 5_000 && world.metrics().stations[0].retries > 0, "{sent} frames");
    assert_eq!(allocations, 0, "in {sent} frames");
}

/// 10,000 concurrent flows stay under 100 MB, scenario included.
#[test]
fn ten_thousand_flows_fit_in_100_megabytes() {
    let before = LIVE_BYTES.get();
    let bottleneck = common::wire(DataRate::mbps(1000), Duration::from_millis(10), 10_000);
    let scenario = common::dumbbell(10_000, &bottleneck, Duration::from_secs(1));
    let scenario_bytes = LIVE_BYTES.get() - before;
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers::default());
    let live = LIVE_BYTES.get() - before;
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
        let before = LIVE_BYTES.get();
        let scenario = Scenario::parse("t.toml", &text, &[]).expect("a right scenario");
        let _world = World::new(&scenario, 1);
        let bytes = (LIVE_BYTES.get() - before) / 10_000;
        println!("{preset}: {bytes} bytes");
        assert!(bytes <= most, "{preset}: {bytes} bytes");
    }
}
