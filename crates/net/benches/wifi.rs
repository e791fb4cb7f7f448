//! Saturated cells and a download through an access point: `cargo bench -p airtcp-net --bench
//! wifi`.
//!
//! Throughput is counted in simulated exchanges (packets delivered), so its inverse is the CPU time
//! per exchange.

use airtcp_core::{Bytes, DataRate, Instant};
use airtcp_net::wifi::{
    Channel, ChannelConfig, Output, PhyConfig, Position, Receiver, StationConfig, StationId,
    StationStreams, preset,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::f64::consts::TAU;

/// 802.11b at 11 Mbit/s with the rules of ns-2.
fn config(rts: bool) -> ChannelConfig {
    let mut config = preset::ns2();
    if let PhyConfig::Dsss(dsss) = &mut config.phy {
        dsss.data_rate = DataRate::mbps(11);
    }
    config.mac.rts_threshold = Bytes(if rts { 0 } else { 2347 });
    config
}

/// `senders` saturated stations on a circle of 100 m around the sink; returns the 1500-B packets
/// delivered in `seconds`.
fn saturation(config: &ChannelConfig, senders: u32, seconds: u64) -> u64 {
    let at = |x, y| StationConfig { position: Position { x, y } };
    let circle = (0..senders).map(|id| {
        let angle = TAU * f64::from(id) / f64::from(senders);
        at(100.0 * angle.cos(), 100.0 * angle.sin())
    });
    let stations: Vec<_> = circle.chain([at(0.0, 0.0)]).collect();
    let streams = (0..=senders).map(|id| StationStreams::named(1, &format!("bench/{id}")));
    let mut channel = Channel::new(config, &stations, streams.collect());
    let sink = Receiver::Station(StationId(senders));
    for id in (0..senders).chain(0..senders) {
        let _ = channel.send(Instant::ZERO, StationId(id), sink, (), Bytes(1500));
    }
    let mut delivered = 0;
    while let Some(at) = channel.next_deadline().filter(|&at| at <= Instant::from_secs(seconds)) {
        while let Some(output) = channel.poll(at) {
            delivered += u64::from(matches!(output, Output::Deliver { .. }));
            if let Output::Deliver { from, .. } | Output::Drop { station: from, .. } = output {
                let _ = channel.send(at, from, sink, (), Bytes(1500));
            }
        }
    }
    delivered
}

fn benchmark(c: &mut Criterion) {
    let mut group = c.benchmark_group("saturation, 1 s");
    for (name, rts, senders) in
        [("20 stations", false, 20), ("20 stations, RTS", true, 20), ("1 station, RTS", true, 1)]
    {
        let config = config(rts);
        group.throughput(Throughput::Elements(saturation(&config, senders, 1)));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| saturation(&config, senders, 1));
        });
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
