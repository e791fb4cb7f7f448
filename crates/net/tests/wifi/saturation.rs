//! Saturation throughput against Bianchi's model (IEEE JSAC 18(3), 2000).

use crate::common::stream;
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_net::config::QueueLimit;
use airtcp_net::wifi::{
    BackoffDraw, Channel, ChannelConfig, EifsRule, Output, Position, Receiver, ResponseTimeout,
    StationConfig, StationId, StationStreams, preset,
};

/// The model's assumptions: header 28 B, no LLC, control frames at 1 Mbit/s, infinite retries.
fn model(rate: DataRate, rts: bool) -> ChannelConfig {
    let mut config = preset::ieee();
    config.phy.data_rate = rate;
    config.phy.control_rate = DataRate::mbps(1);
    config.phy.whole_microseconds = false;
    config.mac.llc = Bytes::ZERO;
    config.mac.rts_threshold = Bytes(if rts { 0 } else { 10_000 });
    config.mac.short_retry_limit = u32::MAX;
    config.mac.long_retry_limit = u32::MAX;
    config
}

/// Mbit/s of packets delivered over `seconds` by `n` saturated senders to one sink, all within 1 us.
fn throughput(config: &ChannelConfig, n: u32, size: u64, seconds: u64, seed: u64) -> f64 {
    let mut places = stream(seed);
    let stations: Vec<_> = (0..=n)
        .map(|_| StationConfig {
            position: Position { x: places.uniform(0.0, 200.0), y: places.uniform(0.0, 200.0) },
        })
        .collect();
    let streams = (0..=n).map(|id| StationStreams::named(seed, &format!("bianchi/{id}"))).collect();
    let mut channel = Channel::new(config, &stations, streams);
    let sink = Receiver::Station(StationId(n));
    let mut fill = |channel: &mut Channel<u32>, now, station| {
        channel.send(now, station, sink, 0, Bytes(size)).unwrap();
    };
    for id in 0..n {
        fill(&mut channel, Instant::ZERO, StationId(id));
        fill(&mut channel, Instant::ZERO, StationId(id));
    }
    let mut delivered = 0_u64;
    while let Some(at) = channel.next_deadline().filter(|&at| at <= Instant::from_secs(seconds)) {
        while let Some(output) = channel.poll(at) {
            if let Output::Deliver { from, .. } = output {
                delivered += 1;
                fill(&mut channel, at, from);
            }
        }
    }
    delivered as f64 * size as f64 * 8e-6 / seconds as f64
}

#[test]
fn explore() {
    let table = [
        (1, [1.6064, 1.4139, 4.9516, 3.4879, 1.7192, 1.5670, 6.0628, 4.5159]),
        (2, [1.6075, 1.4454, 5.2966, 3.6856, 1.7053, 1.5926, 6.3659, 4.7351]),
        (5, [1.5258, 1.4537, 5.2524, 3.7400, 1.6098, 1.5993, 6.2332, 4.7949]),
        (10, [1.4220, 1.4444, 4.9692, 3.6797, 1.4975, 1.5918, 5.8709, 4.7286]),
        (20, [1.3048, 1.4277, 4.5963, 3.5726, 1.3727, 1.5782, 5.4173, 4.6103]),
        (50, [1.1385, 1.3958, 4.0352, 3.3796, 1.1970, 1.5521, 4.7473, 4.3943]),
    ];
    for variant in 0..4 {
        println!("variant {variant}");
        for (n, row) in table {
            for (col, want) in row.into_iter().enumerate() {
                let rate = if col % 4 < 2 { 2 } else { 11 };
                let size = if col < 4 { 1000 } else { 1500 };
                let mut config = model(DataRate::mbps(rate), col % 2 == 1);
                if variant & 1 == 1 {
                    config.mac.response_timeout =
                        ResponseTimeout::WholeFrame { margin: Duration::from_micros(4) };
                }
                if variant & 2 == 2 {
                    config.mac.response_timeout =
                        ResponseTimeout::WholeFrame { margin: Duration::from_micros(4) };
                    config.mac.difs_after_timeout = true;
                    if variant == 3 {
                        let mac = config.mac.clone();
                        config = preset::ns2();
                        config.phy.data_rate = DataRate::mbps(rate);
                        config.mac.header = mac.header;
                        config.mac.rts_threshold = mac.rts_threshold;
                        config.mac.short_retry_limit = u32::MAX;
                        config.mac.long_retry_limit = u32::MAX;
                    }
                }
                let got = throughput(&config, n, size, 10, 1);
                print!("{got:.3} ({:+.1}%)  ", (got / want - 1.0) * 100.0);
            }
            println!();
        }
    }
}
