//! What a replay costs the gateway: `cargo bench -p airtcp-edge --bench replay`.
//!
//! A mobile comes back and is sent what a path holds with a queue as long, or a tenth of that, so
//! that much is lost. The path, the mobile and keeping the copies are included. Throughput is
//! counted in segments sent.

#[path = "../tests/replay/path.rs"]
mod path;

use airtcp_core::{Bytes, DataRate, Duration, Length};
use airtcp_edge::{FlowTableConfig, HoldoverConfig, Mechanism, MechanismConfig};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use path::{Path, replay};

const MEMORY: Bytes = Bytes(1 << 30);
const MSS: u32 = 1448;

fn node() -> Mechanism<Length> {
    let config = MechanismConfig::Holdover(HoldoverConfig { fifo: MEMORY, ..Default::default() });
    Mechanism::new(&config, FlowTableConfig::default(), MEMORY).expect("the defaults go together")
}

fn benchmark(c: &mut Criterion) {
    let mut group = c.benchmark_group("a replayed segment");
    for rate in [100, 500] {
        let delay = Duration::from_millis(50);
        let bytes = rate as u32 * 12_500;
        for part in [1, 10] {
            let queue = u64::from(bytes) / part;
            let path = Path {
                rate: DataRate::mbps(rate),
                delay,
                queue,
                jitter: Duration::ZERO,
                loss: 0.0,
                first_lost: 0..0,
                arrived: 0..0,
                sack: true,
                seed: 1,
            };
            let segments = replay(&path, node(), 2 * bytes, MSS).sent / u64::from(MSS);
            group.throughput(Throughput::Elements(segments));
            let name = format!("{rate} Mbit/s, queue 1/{part}");
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| replay(&path, node(), 2 * bytes, MSS));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
