//! What a replay costs the gateway: `cargo bench -p airtcp-edge --bench replay`.
//!
//! A mobile comes back, and holdover sends it what a path and a queue as long hold. In half of the
//! cases the queue is now a tenth as long, so that much is lost. The simulated path, the mobile and
//! keeping the copies are included. Throughput is counted in segments sent.

#[path = "../tests/mechanisms/replay/path.rs"]
mod path;

use airtcp_core::DataRate;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use path::{FAST, Outcome, Path, nodes};

const MSS: u32 = 1448;

fn replay(path: &Path, bytes: u32) -> Outcome {
    let [_, holdover] = nodes();
    path::replay(path, holdover, bytes, MSS)
}

fn benchmark(c: &mut Criterion) {
    let mut group = c.benchmark_group("a replayed segment");
    for times in [1, 5] {
        let rate = 100 * u64::from(times);
        let queue = FAST.queue * u64::from(times);
        let bytes = 2_500_000 * times;
        for part in [1, 10] {
            let path = Path { rate: DataRate::mbps(rate), queue: queue / part, ..FAST };
            let segments = replay(&path, bytes).sent / u64::from(MSS);
            group.throughput(Throughput::Elements(segments));
            let name = format!("{rate} Mbit/s, queue 1/{part}");
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| replay(&path, bytes));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
