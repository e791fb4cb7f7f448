//! Cost of a segment in the two endpoints alone: a window-limited transfer over a perfect
//! network without delay, no simulator around it.

use airtcp_core::{Addr, Events, Flow, Instant, Length, Segment, SeqNum};
use airtcp_tcp::{Endpoint, Io, TcpConfig};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const SEGMENTS: u64 = 10_000;

fn transfer(config: &TcpConfig) -> u64 {
    let flow =
        Flow { src: Addr::new([10, 0, 0, 1].into(), 1), dst: Addr::new([10, 0, 0, 2].into(), 2) };
    let mut sender = Endpoint::<Length>::new(config.clone(), flow, SeqNum(0));
    let mut receiver = Endpoint::<Length>::new(config.clone(), flow.reversed(), SeqNum(0));
    let (mut data, mut acks) = (Vec::<Segment<Length>>::new(), Vec::new());
    let mut now = Instant::ZERO;
    receiver.listen();
    sender.connect(now, &mut Io { out: &mut data, events: Events::none() });
    let total = SEGMENTS * u64::from(config.mss);
    while receiver.stats().bytes_delivered < total {
        now = Instant::from_nanos(now.as_nanos() + 1000);
        let mut io = Io { out: &mut data, events: Events::none() };
        let space = sender.send_space() as u64;
        sender.write(now, &Length(space), &mut io);
        for segment in data.drain(..) {
            let mut io = Io { out: &mut acks, events: Events::none() };
            receiver.on_segment(now, segment, &mut io);
            receiver.read(now, usize::MAX, &mut io);
            receiver.reply(now, &mut io);
        }
        for segment in acks.drain(..) {
            let mut io = Io { out: &mut data, events: Events::none() };
            sender.on_segment(now, segment, &mut io);
            sender.reply(now, &mut io);
        }
    }
    receiver.stats().bytes_delivered
}

fn endpoints(c: &mut Criterion) {
    let mut group = c.benchmark_group("endpoint");
    group.throughput(Throughput::Elements(SEGMENTS));
    let config = TcpConfig { mss: 1000, ..TcpConfig::default() };
    group.bench_function("data segment and its ACK", |b| b.iter(|| transfer(&config)));
    let config = TcpConfig { timestamps: true, ..config };
    group.bench_function("with timestamps", |b| b.iter(|| transfer(&config)));
}

criterion_group!(benches, endpoints);
criterion_main!(benches);
