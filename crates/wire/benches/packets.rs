//! The cost of reading and writing one packet, at the size of a frame and of a merged packet.

use airtcp_core::{Addr, Flow, Options, Segment, SeqNum, Timestamps};
use airtcp_wire::{Checksums, decode_with, encode};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::net::Ipv4Addr;

/// A Linux data segment.
fn data(len: usize) -> Segment<Vec<u8>> {
    let addr = |last, port| Addr::new(Ipv4Addr::new(10, 0, 0, last).into(), port);
    Segment {
        flow: Flow { src: addr(1, 5001), dst: addr(2, 40_000) },
        seq: SeqNum(1),
        ack: Some(SeqNum(1)),
        window: 502,
        options: Options { timestamps: Some(Timestamps::default()), ..Options::default() },
        payload: (0..len).map(|n| n as u8).collect(),
        ..Segment::default()
    }
}

fn packets(criterion: &mut Criterion) {
    for len in [0, 1448, 65_160] {
        let segment = data(len);
        let mut packet = Vec::new();
        encode(&segment, &mut packet).expect("it fits in a packet");
        let mut group = criterion.benchmark_group(format!("{len} B"));
        group.throughput(Throughput::Bytes(packet.len() as u64));
        for checksums in [Checksums::Ignore, Checksums::Verify] {
            group.bench_function(format!("decode, {checksums:?}"), |bencher| {
                bencher.iter(|| decode_with(black_box(&packet), checksums, <[u8]>::len));
            });
        }
        group.bench_function("encode", |bencher| {
            let mut out = Vec::with_capacity(packet.len());
            bencher.iter(|| {
                out.clear();
                encode(black_box(&segment), &mut out)
            });
        });
        group.finish();
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);
