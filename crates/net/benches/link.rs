//! Nanoseconds per packet through a link: `cargo bench -p airtcp-net`.
//!
//! The caller keeps a window of packets on the link and sends the next one when one arrives, as a
//! window-limited TCP flow does. Each packet costs one send, one deadline and one delivery, and the
//! queue is never empty.

use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_net::config::{
    DelayConfig, Distribution, LinkConfig, LossConfig, QueueConfig, QueueLimit, Variation,
};
use airtcp_net::{Link, LinkStreams, PacketMeta};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

const PACKETS: u32 = 10_000;
const WINDOW: u32 = 150;

/// The bottleneck of the wired dumbbell: 100 Mbit/s, 10 ms.
fn config(delay: DelayConfig, loss: LossConfig) -> LinkConfig {
    LinkConfig {
        rate: DataRate::mbps(100).into(),
        delay,
        loss: loss.into(),
        duplicate: 0.0,
        policer: None,
        outage: None,
        reconfiguration: None,
        handover: None,
        rlc: None,
        queue: QueueConfig::DropTail { limit: QueueLimit::Packets(1000) },
    }
}

fn transfer(link: &mut Link<u32>, now: &mut Instant) {
    let meta = PacketMeta::new(Bytes(1040), true);
    for id in 0..WINDOW {
        let _ = link.send(*now, id, meta);
    }
    let mut id = WINDOW;
    while let Some(at) = link.next_deadline() {
        *now = at;
        while let Some(output) = link.poll(at) {
            black_box(output);
            if id < PACKETS {
                let _ = link.send(at, id, meta);
                id += 1;
            }
        }
    }
}

fn benchmark(c: &mut Criterion) {
    let constant = DelayConfig { base: Duration::from_millis(10), variation: None };
    let varying = DelayConfig {
        variation: Some(Variation {
            from: Instant::ZERO,
            distribution: Distribution::Uniform {
                low: Duration::from_millis(8),
                high: Duration::from_millis(12),
            },
            fifo: false,
        }),
        ..constant.clone()
    };
    let mut group = c.benchmark_group("link");
    group.throughput(Throughput::Elements(PACKETS.into()));
    for (name, config) in [
        ("constant delay", config(constant.clone(), LossConfig::None)),
        ("constant delay, 1 % loss", config(constant, LossConfig::Bernoulli { p: 0.01 })),
        ("overtaking", config(varying, LossConfig::None)),
    ] {
        let mut link = Link::new(&config, LinkStreams::named(1, "bench"));
        let mut now = Instant::ZERO;
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| transfer(&mut link, &mut now));
        });
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
