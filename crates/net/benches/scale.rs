//! What a frame on the air costs as the number of stations grows at constant density, and how much
//! memory 100,000 stations take: `cargo bench -p airtcp-net --bench scale`.
//!
//! Stations are placed at random in a square. Its size is chosen so that on average, borders
//! included, 25 others sense a frame and 5 to 7 can receive it. Each station sends a packet of 1000
//! B with RTS every second to a station in range. Throughput is counted in frames, so its inverse
//! is the CPU time per frame. `docs/measurements/channel.md` plots it.

use airtcp_core::{Bytes, Duration, Instant, Stream};
use airtcp_net::wifi::{
    Channel, Position, Receiver, StationConfig, StationId, StationStreams, preset,
};
use airtcp_testing::cpu_time;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::collections::VecDeque;
use std::f64::consts::PI;

/// Mean number of stations that sense a frame.
const SENSE: f64 = 25.0;
/// Carrier-sense range of the classic radio, metres.
const SENSING_RANGE: f64 = 550.0;
/// Time between the packets of a station.
const GAP: Duration = Duration::from_millis(1000);

/// By how many of `n` stations in a square with this side a station is sensed, on average over all
/// places.
fn sensing(n: u32, side: f64) -> f64 {
    let r = SENSING_RANGE / side;
    // The mean fraction of the square within a radius r < 1 of a random point in it.
    f64::from(n) * (PI * r * r - 8.0 / 3.0 * r * r * r + r * r * r * r / 2.0)
}

/// The stations, and when and to whom each sends next.
#[derive(Clone)]
struct Network {
    channel: Channel<()>,
    receivers: Vec<Option<StationId>>,
    /// In the order of time: each comes around again after [`GAP`].
    due: VecDeque<(Instant, u32)>,
}

impl Network {
    fn new(n: u32) -> Self {
        let (mut near, mut far) = (SENSING_RANGE, 1e9);
        for _ in 0..100 {
            let middle = (near + far) / 2.0;
            if sensing(n, middle) > SENSE { near = middle } else { far = middle }
        }
        let mut stream = Stream::new(1, "bench/scale");
        let mut place = || Position { x: stream.uniform(0.0, far), y: stream.uniform(0.0, far) };
        let stations: Vec<_> = (0..n).map(|_| StationConfig { position: place() }).collect();
        let streams = (0..n).map(|id| StationStreams::named(1, &format!("bench/{id}"))).collect();
        let channel = Channel::new(&preset::ns2(), &stations, streams);
        let receiver = |id| channel.in_range_of(StationId(id)).nth(id as usize % 4);
        let mut due: Vec<_> =
            (0..n).map(|id| (Instant::ZERO + stream.duration(Duration::ZERO, GAP), id)).collect();
        due.sort_unstable();
        Self { receivers: (0..n).map(receiver).collect(), due: due.into(), channel }
    }

    fn run(&mut self, until: Instant) {
        while let Some(&(at, id)) = self.due.front().filter(|due| due.0 <= until) {
            self.poll(at);
            self.due.pop_front();
            self.due.push_back((at + GAP, id));
            if let Some(to) = self.receivers[id as usize] {
                let to = Receiver::Station(to);
                let _ = self.channel.send(at, StationId(id), to, (), Bytes(1000));
            }
        }
        self.poll(until);
    }

    fn poll(&mut self, until: Instant) {
        while let Some(at) = self.channel.next_deadline().filter(|&at| at <= until) {
            while self.channel.poll(at).is_some() {}
        }
    }

    fn frames(&self) -> u64 {
        let of = |id| {
            let c = self.channel.counters(StationId(id));
            c.rts_sent + c.cts_sent + c.data_sent + c.acks_sent
        };
        (0..self.receivers.len() as u32).map(of).sum()
    }
}

/// The largest resident set so far, MB; `None` where Linux does not report it.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

fn benchmark(c: &mut Criterion) {
    let mut group = c.benchmark_group("a frame at constant density");
    for n in [50, 200, 1_000, 10_000] {
        // All stations have sent, so all neighbours are known. Then about 20,000 frames.
        let start = Instant::ZERO + GAP * 2;
        let end = start + Duration::from_millis(5_000_000 / u64::from(n));
        let mut network = Network::new(n);
        network.run(start);
        let mut finished = network.clone();
        finished.run(end);
        group.throughput(Throughput::Elements(finished.frames() - network.frames()));
        group.bench_function(BenchmarkId::from_parameter(format!("{n} stations")), |b| {
            b.iter_custom(|iterations| {
                let run = |_| {
                    let mut network = network.clone();
                    let start = cpu_time();
                    network.run(end);
                    cpu_time() - start
                };
                (0..iterations).map(run).sum()
            });
        });
    }
    group.finish();

    let mut network = Network::new(100_000);
    network.run(Instant::ZERO + GAP * 2);
    if let Some(peak) = peak_megabytes() {
        let frames = network.frames();
        println!("100,000 stations, {frames} frames: peak memory {peak} MB");
        assert!(peak < 2_000, "{peak} MB");
    }
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
