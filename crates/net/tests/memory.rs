//! What a channel allocates, measured with a counting allocator.

use airtcp_core::{Bytes, Duration, Instant};
use airtcp_net::mobility::{Mobility, Path};
use airtcp_net::wifi::{
    Channel, Output, PhyConfig, Position, RateControl, Receiver, StationConfig, StationId,
    StationStreams, preset,
};
use airtcp_testing::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const STATIONS: u32 = 30;

/// Each station sends a packet to the next one, or to all, every 20 ms from `from` to `until`.
fn send(channel: &mut Channel<u32>, from: Instant, until: Instant) {
    let mut now = from;
    for packet in 0.. {
        if now >= until {
            return;
        }
        let station = packet % STATIONS;
        let to = match packet % 7 {
            0 => Receiver::Broadcast,
            _ => Receiver::Station(StationId((station + 1) % STATIONS)),
        };
        let _ = channel.send(now, StationId(station), to, packet, Bytes(500));
        while channel.poll(now).is_some() {}
        now += Duration::from_micros(667);
    }
}

#[test]
fn stations_that_move_allocate_nothing_in_steady_state() {
    let at = |x, y| Position { x, y };
    let places = (0..STATIONS).map(|id| at(f64::from(id % 6) * 150.0, f64::from(id / 6) * 150.0));
    let stations: Vec<_> = places.map(|position| StationConfig { position }).collect();
    let streams = (0..STATIONS).map(|id| StationStreams::named(1, &format!("memory/{id}")));
    let mut channel = Channel::new(&preset::ns2(), &stations, streams.collect());
    // To and fro over three cells of the grid; a third of the stations stand still.
    for id in (0..STATIONS).filter(|id| id % 3 > 0) {
        let way = (0..60).map(|turn| {
            let x = f64::from(id % 6) * 150.0 + if turn % 2 == 0 { 0.0 } else { 900.0 };
            (Instant::from_secs(turn), at(x, stations[id as usize].position.y))
        });
        let path = Path::new(way.collect()).expect("a path");
        channel.set_mobility(Instant::ZERO, StationId(id), Mobility::Path(path));
    }
    send(&mut channel, Instant::ZERO, Instant::from_secs(40));
    let sent = |channel: &Channel<u32>| {
        let of = |id| channel.counters(StationId(id));
        (0..STATIONS).map(of).map(|c| c.data_sent + c.broadcasts_sent).sum::<u64>()
    };
    let before = (CountingAllocator::allocations(), sent(&channel));

    send(&mut channel, Instant::from_secs(40), Instant::from_secs(55));

    let frames = sent(&channel) - before.1;
    assert!(frames > 2_000, "{frames} packets");
    assert_eq!(CountingAllocator::allocations() - before.0, 0, "in {frames} packets");
}

#[test]
fn stations_that_choose_rates_allocate_nothing_in_steady_state() {
    let mut config = preset::ieee80211n();
    let PhyConfig::Mimo(_, mimo) = &mut config.phy else { panic!("one antenna") };
    // A-MPDUs allocate.
    (mimo.rate_control, mimo.ampdu_limit) = (RateControl::MinstrelHt, Bytes::ZERO);
    let stations = [0.0, 20.0, 300.0].map(|x| StationConfig { position: Position { x, y: 0.0 } });
    let streams = (0..3).map(|id| StationStreams::named(1, &format!("rates/{id}")));
    let mut channel = Channel::new(&config, &stations, streams.collect());
    let access_point = StationId(0);
    for to in [1, 2].map(StationId) {
        let _ = channel.send(Instant::ZERO, access_point, Receiver::Station(to), to, Bytes(1500));
    }
    // Each packet that arrives is followed by another.
    let mut run = |until| {
        while let Some(at) = channel.next_deadline().filter(|&at| at <= until) {
            while let Some(output) = channel.poll(at) {
                if let Output::Deliver { packet: to, .. } = output {
                    let _ = channel.send(at, access_point, Receiver::Station(to), to, Bytes(1500));
                }
            }
        }
        channel.counters(access_point).data_sent
    };
    let sent = run(Instant::from_secs(2));
    let before = CountingAllocator::allocations();

    let frames = run(Instant::from_secs(4)) - sent;

    assert!(frames > 2_000, "{frames} frames");
    assert_eq!(CountingAllocator::allocations() - before, 0, "in {frames} frames");
}
