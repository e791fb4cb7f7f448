//! The wired dumbbell: 10 NewReno flows over 100 Mbit/s and 10 ms, 1000-byte payload, five
//! simulated seconds. Throughput is in events (wake-ups) per second.

#[path = "../tests/simulator/common.rs"]
mod common;

use airtcp_core::{DataRate, Duration, Event, Instant, Source, Subscriber};
use airtcp_sim::{Observers, World};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// The cheapest subscriber possible: what remains is the cost of publishing.
struct Count(u64);

impl Subscriber for Count {
    fn on_event(&mut self, _: Instant, _: Source, event: &Event) {
        self.0 += u64::from(!matches!(black_box(event), Event::Closed));
    }
}

fn dumbbell(c: &mut Criterion) {
    let bottleneck = common::wire(DataRate::mbps(100), Duration::from_millis(10), 300);
    let scenario = common::dumbbell(10, &bottleneck, Duration::from_secs(5));
    let events = {
        let mut world = World::new(&scenario, 1);
        world.run(&mut Observers::default());
        world.events_processed()
    };
    let mut group = c.benchmark_group("dumbbell");
    group.throughput(Throughput::Elements(events)).sample_size(20);
    group.bench_function("no subscriber", |b| {
        b.iter(|| World::new(&scenario, 1).run(&mut Observers::default()));
    });
    group.bench_function("a subscriber that counts", |b| {
        b.iter(|| {
            let mut count = Count(0);
            let mut observers = Observers { events: Some(&mut count), ..Observers::default() };
            World::new(&scenario, 1).run(&mut observers);
            count.0
        });
    });
}

criterion_group!(benches, dumbbell);
criterion_main!(benches);
