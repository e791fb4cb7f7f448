//! Shared by the wireless tests: cells of named stations, and scripts.
//!
//! A script has one line for each event, with its time in microseconds:
//!
//! ```text
//! 0     send A>B 1500      input: packet for B queued at A, 1500 B; packets are numbered from 0. A
//!                          DSCP may follow
//! 0     A>B DATA           A begins to send a frame (RTS, CTS, ACK, DATA); `A>*` is a broadcast
//! 1304  B got 0            B receives packet 0
//! 1314  B>A ACK
//! ```
//!
//! Also `A drop 0` (the packet never arrived), `A lost B` (link failure) and `A full 0` (queue).

use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Dscp, Duration, Instant};
use airtcp_net::PacketMeta;
use airtcp_net::wifi::{
    Channel, ChannelConfig, DsssConfig, FrameKind, Output, PhyConfig, Position, Receiver,
    StationConfig, StationId, StationStreams,
};

/// The physical layer of 802.11b.
pub(crate) fn dsss(config: &mut ChannelConfig) -> &mut DsssConfig {
    let PhyConfig::Dsss(dsss) = &mut config.phy else { panic!("not 802.11b") };
    dsss
}

/// A back-off: so many slots, drawn from so many values.
pub(crate) type Draw = (u64, u64);

/// Stations A, B, C, … on a line at these places, metres, with the first back-offs of each.
/// Stations at the same place hear each other without delay.
pub(crate) fn line(config: &ChannelConfig, places: &[(f64, &[Draw])]) -> Channel<u32> {
    let stations: Vec<_> =
        places.iter().map(|&(x, _)| StationConfig { position: Position { x, y: 0.0 } }).collect();
    let streams = (0..).zip(places).map(|(id, &(_, draws))| streams(id, draws)).collect();
    Channel::new(config, &stations, streams)
}

/// Streams of station `id` whose first back-offs are `draws`.
fn streams(id: u64, draws: &[Draw]) -> StationStreams {
    let draws_these = |seed: &u64| {
        let mut stream = StationStreams::named(*seed, "test").backoff;
        draws.iter().all(|&(slots, values)| stream.below(values) == slots)
    };
    let seed = (0..).map(|n| id * 1_000_000 + n).find(draws_these).unwrap();
    StationStreams::named(seed, "test")
}

pub(crate) fn name(station: StationId) -> char {
    char::from(b'A' + station.0 as u8)
}

fn station(name: &str) -> StationId {
    StationId(u32::from(name.as_bytes()[0] - b'A'))
}

fn receiver(name: &str) -> Receiver {
    if name == "*" { Receiver::Broadcast } else { Receiver::Station(station(name)) }
}

/// Microseconds, with nanoseconds as decimals if there are any.
fn micros(at: Instant) -> String {
    let nanos = at.as_nanos();
    match nanos % 1000 {
        0 => format!("{}", nanos / 1000),
        rest => format!("{}.{rest:03}", nanos / 1000),
    }
}

/// Runs the inputs of the script and compares the events with its other lines.
pub(crate) fn play(channel: &mut Channel<u32>, script: &str) {
    channel.monitor();
    let lines: Vec<Vec<&str>> = script
        .lines()
        .map(|l| l.split_whitespace().collect())
        .filter(|w: &Vec<_>| !w.is_empty())
        .collect();
    let mut happened = Vec::new();
    let mut expected = Vec::new();
    let mut packet = 0;
    for words in &lines {
        if words[1] != "send" {
            expected.push(words.join(" "));
            continue;
        }
        let at = Instant::ZERO + Duration::from_micros(words[0].parse().unwrap());
        run_until(channel, at, &mut happened);
        let (from, to) = words[2].split_once('>').unwrap();
        let size = Bytes(words[3].parse().unwrap());
        let dscp = words.get(4).map_or(Dscp::DEFAULT, |name| Dscp::named(name).unwrap());
        let meta = PacketMeta { dscp, ..PacketMeta::from(size) };
        if channel.send(at, station(from), receiver(to), packet, meta).is_err() {
            happened.push((at, format!("{from} full {packet}")));
        }
        packet += 1;
    }
    run_until(channel, Instant::from_secs(10), &mut happened);
    channel.catch_up(Instant::from_secs(10));
    // Frames are recorded from the first request on.
    happened.sort_by_key(|&(at, _)| at);
    let happened: Vec<_> =
        happened.into_iter().map(|(at, what)| format!("{} {what}", micros(at))).collect();
    assert_eq!(happened.join("\n"), expected.join("\n"), "\nhappened:\n{}\n", happened.join("\n"));
}

fn run_until(channel: &mut Channel<u32>, until: Instant, log: &mut Vec<(Instant, String)>) {
    while let Some(at) = channel.next_deadline().filter(|&at| at <= until) {
        while let Some(output) = channel.poll(at) {
            log.push((at, describe(output)));
        }
        for sent in channel.monitor().sent {
            let to = match sent.to {
                Receiver::Station(to) => name(to),
                Receiver::Broadcast => '*',
            };
            let kind = match sent.content.kind() {
                FrameKind::Rts => "RTS",
                FrameKind::Cts => "CTS",
                FrameKind::Ack => "ACK",
                FrameKind::Data => "DATA",
            };
            log.push((sent.at, format!("{}>{to} {kind}", name(sent.from))));
        }
    }
}

fn describe(output: Output<u32>) -> String {
    match output {
        Output::Deliver { station, packet, last, .. } => {
            format!("{} got {packet}{}", name(station), if last { "" } else { ", more to come" })
        }
        Output::Drop { station, packet, reason: DropReason::Retries } => {
            format!("{} drop {packet}", name(station))
        }
        Output::Drop { station, packet, reason } => {
            format!("{} drop {packet}: {reason:?}", name(station))
        }
        Output::Overhear { station, packet, last, .. } => {
            let rest = if last { "" } else { ", more to come" };
            format!("{} overheard {packet}{rest}", name(station))
        }
        Output::LinkFailure { station, to } => format!("{} lost {}", name(station), name(to)),
        Output::Mark { packet } => format!("{packet} is marked"),
    }
}
