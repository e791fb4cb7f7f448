//! The event queue alone, under the "hold" model: the component that wakes up sleeps until a random
//! later time, as links and timers do. Compared with the standard library's heap whose top is
//! replaced in place.

use airtcp_core::{Duration, Instant, Stream};
use airtcp_sim::engine::{ComponentId, Wakeups};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

const HOLDS: usize = 10_000;

/// Serialisation of an ACK, of a packet, a path through the network, a timer.
fn sleeps() -> Vec<Duration> {
    let mut stream = Stream::new(1, "bench/sleeps");
    let kinds = [4_000, 83_200, 1_083_200, 10_000_000];
    let mut sleep = || {
        let mean = kinds[stream.below(4) as usize];
        Duration::from_nanos(stream.below(2 * mean))
    };
    (0..HOLDS).map(|_| sleep()).collect()
}

fn hold(c: &mut Criterion) {
    let mut group = c.benchmark_group("hold");
    group.throughput(Throughput::Elements(HOLDS as u64));
    let sleeps = sleeps();
    for components in [8, 64, 1_000, 50_000] {
        let mut wakeups = Wakeups::new(components);
        for component in 0..components {
            wakeups.arm(
                ComponentId(component as u32),
                Some(Instant::ZERO + sleeps[component % HOLDS]),
            );
        }
        group.bench_function(BenchmarkId::new("tournament", components), |b| {
            b.iter(|| {
                for &sleep in &sleeps {
                    if let Some((now, component)) = wakeups.next(Instant::MAX) {
                        wakeups.sleep(black_box(component), Some(now + sleep));
                    }
                }
            });
        });
        let mut heap: BinaryHeap<Reverse<(Instant, u64, u32)>> = (0..components)
            .map(|n| Reverse((Instant::ZERO + sleeps[n % HOLDS], n as u64, n as u32)))
            .collect();
        let mut insertions = components as u64;
        group.bench_function(BenchmarkId::new("binary heap", components), |b| {
            b.iter(|| {
                for &sleep in &sleeps {
                    if let Some(mut top) = heap.peek_mut() {
                        let Reverse((now, _, component)) = *top;
                        *top = Reverse((now + sleep, insertions, black_box(component)));
                        insertions += 1;
                    }
                }
            });
        });
    }
}

criterion_group!(benches, hold);
criterion_main!(benches);
