//! Properties of every cell, whatever its rules, positions and traffic.

use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, DataRate, Dscp, Duration, Ecn, Instant};
use airtcp_net::PacketMeta;
use airtcp_net::config::{QueueConfig, QueueLimit};
use airtcp_net::queue::codel::CodelConfig;
use airtcp_net::queue::dualpi2::DualPi2Config;
use airtcp_net::queue::fq_codel::FqCodelConfig;
use airtcp_net::queue::pie::PieConfig;
use airtcp_net::queue::red::RedConfig;
use airtcp_net::wifi::{
    AccessCategories, Channel, ChannelConfig, Format, FrameErrors, Output, PhyConfig, Position,
    Power, RateControl, ReceivedFrame, Receiver, Reception, SentFrame, StationConfig, StationId,
    StationStreams, UserPriority, preset,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A cell and what its stations are asked to send.
#[derive(Clone, Debug)]
struct Scenario {
    config: ChannelConfig,
    places: Vec<Position>,
    /// Microseconds after the previous packet, sender, receiver (itself: to all), bytes.
    packets: Vec<(u64, usize, usize, u64)>,
    seed: u64,
}

fn config() -> impl Strategy<Value = ChannelConfig> {
    let base = prop::sample::select(vec![
        preset::ieee(),
        preset::ns2(),
        preset::glomosim(),
        preset::opnet(),
        dsss(60.0),
    ]);
    let errors = prop::sample::select(vec![0.0, 1e-5, 3e-4]);
    let threshold = prop::sample::select(vec![0, 256, 2347]);
    (base, errors, 0_u64..5, discipline(), threshold).prop_map(
        |(base, errors, queue, discipline, threshold)| {
            let mut config = base;
            config.radio.bit_error_rate = errors;
            config.mac.queue = QueueLimit::Packets(queue);
            config.mac.queue_discipline = discipline;
            config.mac.rts_threshold = Bytes(threshold);
            config
        },
    )
}

/// Of any kind, such that it acts in runs as short as these.
fn discipline() -> impl Strategy<Value = Option<QueueConfig>> {
    let (target, interval) = (Duration::from_micros(500), Duration::from_millis(5));
    let codel = move |ecn| CodelConfig { target, interval, ecn, ..CodelConfig::default() };
    let fq_codel = FqCodelConfig { target, interval, limit: 6, flows: 3, ..Default::default() };
    let pie = PieConfig { target, ..PieConfig::default() };
    let red =
        RedConfig { min_threshold: 1.0, max_threshold: 3.0, weight: 0.5, ..Default::default() };
    prop_oneof![
        4 => Just(None),
        1 => any::<bool>().prop_map(move |ecn| Some(QueueConfig::Codel(codel(ecn)))),
        1 => Just(Some(QueueConfig::FqCodel(fq_codel))),
        1 => Just(Some(QueueConfig::Pie(pie))),
        1 => Just(Some(QueueConfig::DualPi2(DualPi2Config::default()))),
        1 => any::<bool>().prop_map(move |ecn| {
            Some(QueueConfig::Red(RedConfig { ecn, ..red.clone() }))
        }),
    ]
}

/// The standard's cell with the bit errors of the modulations, and stations 10 m apart at so many
/// decibels above the noise.
fn dsss(decibels: f64) -> ChannelConfig {
    let mut config = preset::ieee();
    config.radio.rx_threshold = Power::from_dbm(-100.0);
    config.radio.cs_threshold = Power::from_dbm(-100.0);
    // Friis over 10 m at 914 MHz.
    let gain = (299_792_458.0 / 914e6 / (4.0 * std::f64::consts::PI * 10.0)).powi(2);
    let received = config.radio.tx_power.as_watts() * gain;
    config.radio.reception = Reception::CumulativeSinr {
        noise: Power::from_watts(received / 10_f64.powf(decibels / 10.0)),
        min_sinr: 1.0,
        interference_floor: Power::from_dbm(-111.0),
        frame_errors: FrameErrors::Dsss,
    };
    config
}

/// OFDM, mostly with A-MPDUs or A-MSDUs.
fn ofdm() -> impl Strategy<Value = ChannelConfig> {
    let base = prop::sample::select(vec![
        preset::ieee80211g(),
        preset::ieee80211n(),
        preset::ieee80211ac(),
        preset::ieee80211ax(),
    ]);
    let errors = prop::sample::select(vec![0.0, 1e-5, 3e-4]);
    let threshold = prop::sample::select(vec![0, 2000, 65_535]);
    let shared = any::<[bool; 5]>();
    (base, errors, 0_u64..20, discipline(), threshold, 1_u32..8, shared).prop_map(
        |(
            base,
            errors,
            queue,
            discipline,
            threshold,
            attempts,
            [txop, ampdu, amsdu, categories, chooses],
        )| {
            let mut config = base;
            config.radio.bit_error_rate = errors;
            config.mac.queue = QueueLimit::Packets(queue);
            config.mac.queue_discipline = discipline;
            config.mac.rts_threshold = Bytes(threshold);
            config.mac.short_retry_limit = attempts;
            if let PhyConfig::Mimo(format, phy) = &mut config.phy {
                if !ampdu {
                    phy.ampdu_limit = Bytes::ZERO;
                }
                let longest = if *format == Format::Ht { 3839 } else { 3895 };
                phy.amsdu_limit = Bytes(if amsdu { longest } else { 0 });
                phy.txop_limit = Duration::from_micros(if txop { 2_528 } else { 0 });
                phy.block_ack_window = 8;
                phy.access_categories = categories.then(AccessCategories::default);
                if chooses && !amsdu {
                    phy.rate_control = RateControl::MinstrelHt;
                }
            }
            config
        },
    )
}

fn scenario() -> impl Strategy<Value = Scenario> {
    scenario_of(config().boxed(), 5000)
}

/// Of any standard.
fn any_scenario() -> impl Strategy<Value = Scenario> {
    prop_oneof![scenario(), scenario_of(ofdm().boxed(), 300)]
}

/// So many microseconds between packets at most.
fn scenario_of(config: BoxedStrategy<ChannelConfig>, gap: u64) -> impl Strategy<Value = Scenario> {
    (2_usize..7).prop_flat_map(move |stations| {
        let place = (0.0..700.0_f64, 0.0..300.0_f64).prop_map(|(x, y)| Position { x, y });
        let packet = (0..gap, 0..stations, 0..stations, 1_u64..1500);
        (
            config.clone(),
            prop::collection::vec(place, stations),
            prop::collection::vec(packet, 1..60),
            any::<u64>(),
        )
            .prop_map(|(config, places, packets, seed)| Scenario {
                config,
                places,
                packets,
                seed,
            })
    })
}

/// Of three flows, one of which takes part in ECN, with any DSCP.
fn meta(packet: usize, size: u64) -> PacketMeta {
    let flow = packet as u32 % 3;
    let ecn = if flow == 0 { Ecn::Ect0 } else { Ecn::NotEct };
    let dscp = Dscp::new((packet * 11 % 64) as u8).unwrap();
    PacketMeta { flow, ecn, dscp, ..PacketMeta::from(Bytes(size)) }
}

/// Outputs of a run.
#[derive(Clone, Debug, Default, PartialEq)]
struct Log {
    outputs: Vec<(Instant, Output<usize>)>,
    frames: Vec<SentFrame<usize>>,
    received: Vec<ReceivedFrame>,
    /// Packets that entered a queue.
    accepted: Vec<usize>,
    longest_queue: usize,
    /// The latest call.
    called: Instant,
}

fn channel(scenario: &Scenario) -> Channel<usize> {
    let stations: Vec<_> =
        scenario.places.iter().map(|&position| StationConfig { position }).collect();
    let streams = (0..stations.len())
        .map(|id| StationStreams::named(scenario.seed, &format!("property/{id}")));
    Channel::new(&scenario.config, &stations, streams.collect())
}

fn run(scenario: &Scenario) -> (Channel<usize>, Log) {
    let mut channel = channel(scenario);
    channel.monitor();
    let mut log = Log::default();
    let mut now = Instant::ZERO;
    for (packet, &(gap, from, to, size)) in scenario.packets.iter().enumerate() {
        now += Duration::from_micros(gap);
        run_until(&mut channel, now, &mut log);
        let (station, to) = (StationId(from as u32), StationId(to as u32));
        let receiver = if station == to { Receiver::Broadcast } else { Receiver::Station(to) };
        if channel.send(now, station, receiver, packet, meta(packet, size)).is_ok() {
            log.accepted.push(packet);
        }
        log.called = now;
        log.longest_queue = log.longest_queue.max(channel.queue_len(station));
    }
    run_until(&mut channel, Instant::MAX, &mut log);
    channel.catch_up(Instant::MAX);
    (channel, log)
}

fn run_until(channel: &mut Channel<usize>, until: Instant, log: &mut Log) {
    while let Some(at) = channel.next_deadline().filter(|&at| at <= until) {
        // What a queue drops as a packet is sent comes out at that instant.
        if at > log.called {
            let before = at - Duration::from_nanos(1);
            assert_eq!(channel.poll(before), None, "nothing before the deadline");
        }
        log.called = at;
        while let Some(output) = channel.poll(at) {
            log.outputs.push((at, output));
        }
        let monitored = channel.monitor();
        log.frames.extend(monitored.sent);
        log.received.extend(monitored.received);
    }
}

/// Time at which a frame passes a station.
fn passes(scenario: &Scenario, frame: &SentFrame<usize>, station: StationId) -> (Instant, Instant) {
    let place = |id: StationId| scenario.places[id.0 as usize];
    let metres = place(frame.from).distance(place(station));
    let delay = Duration::from_nanos((metres * 1e9 / 299_792_458.0).ceil() as u64);
    (frame.at + delay, frame.at + frame.duration + delay)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A caller with nothing else to do gets the same outputs at the same times as one who wakes up
    /// at each deadline.
    #[test]
    fn going_ahead_changes_nothing(scenario in any_scenario(), until in 0_u64..100_000) {
        let queued = || {
            let mut channel = channel(&scenario);
            for (packet, &(_, from, to, size)) in scenario.packets.iter().enumerate() {
                let (from, to) = (StationId(from as u32), StationId(to as u32));
                let to = if from == to { Receiver::Broadcast } else { Receiver::Station(to) };
                let _ = channel.send(Instant::ZERO, from, to, packet, meta(packet, size));
            }
            channel
        };
        let until = Instant::ZERO + Duration::from_micros(until);
        let mut log = Log::default();
        run_until(&mut queued(), until, &mut log);
        let (mut ahead, mut now) = (queued(), Instant::ZERO);
        let next = || ahead.poll_ahead(&mut now, until, &mut 0).map(|output| (now, output));
        let outputs: Vec<_> = std::iter::from_fn(next).collect();
        prop_assert_eq!(outputs, log.outputs);
    }

    /// Conservation: every packet sent is delivered or dropped.
    #[test]
    fn every_unicast_packet_comes_out_exactly_once(scenario in any_scenario()) {
        let (_, log) = run(&scenario);
        let mut ends = BTreeMap::new();
        for &(_, output) in &log.outputs {
            match output {
                Output::Deliver { packet, last: true, .. } | Output::Drop { packet, .. } => {
                    *ends.entry(packet).or_insert(0) += 1;
                }
                _ => {}
            }
        }
        let expected: BTreeMap<_, _> = log.accepted.iter().map(|&packet| (packet, 1)).collect();
        prop_assert_eq!(ends, expected);
    }

    /// A receiver gets the packets of a sender in their order, whatever of an A-MPDU is lost, unless
    /// a queue discipline changes it. With access categories, those of one user priority.
    #[test]
    fn the_packets_of_a_sender_arrive_in_order(scenario in scenario_of(ofdm().boxed(), 300)) {
        let mut scenario = scenario;
        let categories = scenario.config.phy.access_categories().is_some();
        scenario.config.mac.queue_discipline = None;
        let (_, log) = run(&scenario);
        let mut latest = BTreeMap::new();
        for &(_, output) in &log.outputs {
            let Output::Deliver { station, from, packet, .. } = output else { continue };
            let (_, _, to, _) = scenario.packets[packet];
            if station.0 as usize == to {
                let priority = categories.then(|| UserPriority::of(meta(packet, 1).dscp));
                let before = latest.insert((from, station, priority), packet);
                prop_assert!(before.is_none_or(|before| before < packet), "{before:?}, {packet}");
            }
        }
    }

    #[test]
    fn a_packet_is_delivered_at_most_once_and_only_to_its_receiver(scenario in any_scenario()) {
        let (_, log) = run(&scenario);
        let mut seen = std::collections::BTreeSet::new();
        for &(_, output) in &log.outputs {
            let Output::Deliver { station, from, packet, .. } = output else { continue };
            prop_assert!(seen.insert((station, packet)));
            let (_, sender, to, _) = scenario.packets[packet];
            prop_assert_eq!(from.0 as usize, sender);
            prop_assert!(station != from && (to == sender || to == station.0 as usize));
        }
    }

    #[test]
    fn the_monitor_shows_the_reception_of_every_packet_that_comes_out(scenario in scenario()) {
        let (_, log) = run(&scenario);
        let mut shown = Vec::new();
        for &ReceivedFrame { frame, station, at } in &log.received {
            let sent = &log.frames[frame as usize];
            prop_assert_eq!(sent.number, frame);
            prop_assert_eq!(at, passes(&scenario, sent, station).1);
            shown.extend(sent.content.packet().map(|&packet| (station, packet)));
        }
        let delivered = |&(_, output): &(Instant, Output<usize>)| match output {
            Output::Deliver { station, packet, .. } => Some((station, packet)),
            _ => None,
        };
        let mut delivered: Vec<_> = log.outputs.iter().filter_map(delivered).collect();
        delivered.sort_unstable();
        shown.sort_unstable();
        prop_assert_eq!(shown, delivered);
    }

    /// A radio receives one frame at a time, and none while it sends.
    #[test]
    fn a_radio_does_one_thing_at_a_time(scenario in scenario()) {
        let (_, log) = run(&scenario);
        for id in 0..scenario.places.len() {
            let id = StationId(id as u32);
            // Held back by less than 3 us (the last copy of a broadcast marks itself).
            let slack = Duration::from_micros(3);
            let received = log.outputs.iter().filter_map(|&(at, output)| match output {
                Output::Deliver { station, from, .. } if station == id => {
                    log.frames.iter().filter(|frame| frame.from == from)
                        .map(|frame| passes(&scenario, frame, id))
                        .find(|&(_, end)| end <= at && at <= end + slack)
                }
                _ => None,
            });
            let sent = log.frames.iter().filter(|frame| frame.from == id)
                .map(|frame| (frame.at, frame.at + frame.duration));
            let mut busy: Vec<_> = received.chain(sent).collect();
            busy.sort();
            prop_assert!(busy.windows(2).all(|w| w[0].1 <= w[1].0), "{:?}: {:?}", id, busy);
        }
    }

    #[test]
    fn the_queue_never_exceeds_its_limit(scenario in scenario()) {
        let (_, log) = run(&scenario);
        let QueueLimit::Packets(limit) = scenario.config.mac.queue else { unreachable!() };
        let limited = scenario.config.mac.queue_discipline.is_none();
        prop_assert!(!limited || log.longest_queue as u64 <= limit);
    }

    #[test]
    fn the_counters_agree_with_what_happened(scenario in scenario()) {
        let (channel, log) = run(&scenario);
        let count = |what: &dyn Fn(&Output<usize>) -> bool| {
            log.outputs.iter().filter(|(_, output)| what(output)).count() as u64
        };
        let stations = || (0..scenario.places.len()).map(|id| channel.counters(StationId(id as u32)));
        prop_assert_eq!(
            stations().map(|c| c.mac_drops).sum::<u64>(),
            count(&|o| matches!(o, Output::Drop { reason: DropReason::Retries, .. }))
        );
        let given_up = stations().map(|c| c.link_failures).sum::<u64>();
        let failures = count(&|o| matches!(o, Output::LinkFailure { .. }));
        match &scenario.config.phy {
            // Several packets of a frame may be given up at once.
            PhyConfig::Mimo(_, mimo) if mimo.ampdu_limit > Bytes::ZERO => {
                prop_assert!(given_up >= failures);
            }
            _ => prop_assert_eq!(given_up, failures),
        }
        prop_assert!(stations().all(|c| c.link_failures >= c.mac_drops));
        prop_assert_eq!(
            stations().map(|c| c.queue_drops).sum::<u64>(),
            (scenario.packets.len() - log.accepted.len()) as u64
                + count(&|o| matches!(o, Output::Drop { reason: DropReason::Queue, .. }))
        );
        prop_assert_eq!(
            stations().map(|c| c.ecn_marks).sum::<u64>(),
            count(&|o| matches!(o, Output::Mark { .. }))
        );
        let sent = |c: airtcp_net::wifi::StationCounters| {
            c.rts_sent + c.cts_sent + c.acks_sent + c.data_sent + c.broadcasts_sent
        };
        prop_assert_eq!(stations().map(sent).sum::<u64>(), log.frames.len() as u64);
    }

    /// A packet that is marked takes part in ECN, and goes on.
    #[test]
    fn marked_packets_are_ecn_capable_and_no_queue_drops(scenario in scenario()) {
        let (_, log) = run(&scenario);
        let mut dropped = std::collections::BTreeSet::new();
        for &(_, output) in log.outputs.iter().rev() {
            match output {
                Output::Drop { packet, reason: DropReason::Queue, .. } => _ = dropped.insert(packet),
                Output::Mark { packet } => {
                    prop_assert!(meta(packet, 1).ecn == Ecn::Ect0 && !dropped.contains(&packet));
                }
                _ => {}
            }
        }
    }

    /// Runs with one seed are equal.
    #[test]
    fn the_same_seed_gives_the_same_run(scenario in any_scenario()) {
        prop_assert_eq!(run(&scenario).1, run(&scenario).1);
    }

    /// Each station has its own streams: another one far away changes nothing.
    #[test]
    fn a_station_out_of_reach_changes_nothing(scenario in scenario()) {
        let mut larger = scenario.clone();
        larger.places.push(Position { x: 1e6, y: 0.0 });
        prop_assert_eq!(run(&scenario).1, run(&larger).1);
    }

    /// The frequency of a caller's polls does not matter. Unless a packet is offered at the instant at
    /// which a station gives one up: it goes on once its caller has heard of that.
    #[test]
    fn late_polls_see_the_same_packets(scenario in any_scenario()) {
        let (_, log) = run(&scenario);
        let is_report = |output: &Output<usize>| matches!(output, Output::LinkFailure { .. });
        let reports = log.outputs.iter().filter(|(_, output)| is_report(output));
        let reports: Vec<Instant> = reports.map(|&(at, _)| at).collect();
        let mut offer = Instant::ZERO;
        for &(gap, ..) in &scenario.packets {
            offer += Duration::from_micros(gap);
            prop_assume!(!reports.contains(&offer));
        }
        let mut late = channel(&scenario);
        let mut outputs = Vec::new();
        let mut now = Instant::ZERO;
        for (packet, &(gap, from, to, size)) in scenario.packets.iter().enumerate() {
            now += Duration::from_micros(gap);
            let to = if from == to { Receiver::Broadcast } else { Receiver::Station(StationId(to as u32)) };
            let _ = late.send(now, StationId(from as u32), to, packet, meta(packet, size));
        }
        outputs.extend(std::iter::from_fn(|| late.poll(Instant::from_secs(1000))));
        prop_assert_eq!(outputs, log.outputs.into_iter().map(|(_, o)| o).collect::<Vec<_>>());
    }
}

/// A sends 1000 packets to B over a noisy channel.
fn noisy(errors: f64, rts: bool) -> Scenario {
    let mut config = preset::ieee();
    config.radio.bit_error_rate = errors;
    config.mac.queue = QueueLimit::Packets(1000);
    config.mac.rts_threshold = Bytes(if rts { 0 } else { 2347 });
    let places = vec![Position::default(), Position { x: 100.0, y: 0.0 }];
    Scenario { config, places, packets: vec![(0, 0, 1, 1500); 1000], seed: 1 }
}

#[test]
fn a_packet_whose_ack_was_lost_is_acknowledged_again_but_not_delivered_again() {
    // §9.2.9. One ACK in 9 is lost, and four data frames in five: 1000 packets need more than 5000
    // attempts.
    let mut scenario = noisy(1e-3, false);
    scenario.packets = vec![(0, 0, 1, 100); 1000];
    let (channel, log) = run(&scenario);
    let counters = channel.counters(StationId(1));
    assert!(counters.duplicates > 50, "{counters:?}");
    let delivered =
        log.outputs.iter().filter(|(_, o)| matches!(o, Output::Deliver { .. })).count() as u64;
    assert_eq!(counters.acks_sent, delivered + counters.duplicates);
}

#[test]
fn a_retry_is_known_after_packets_of_other_priorities() {
    // §10.3.2.14.3. Half of the data frames are lost, and one ACK in 9; packets of other user
    // priorities arrive between a packet and its retry.
    let mut scenario = noisy(1e-3, false);
    scenario.config = ChannelConfig { mac: scenario.config.mac, ..preset::ieee80211n() };
    scenario.config.radio.bit_error_rate = 1e-3;
    let PhyConfig::Mimo(_, phy) = &mut scenario.config.phy else { unreachable!() };
    phy.ampdu_limit = Bytes::ZERO;
    phy.access_categories = Some(AccessCategories::default());
    scenario.places[1].x = 1.0;
    scenario.packets = vec![(0, 0, 1, 50); 1000];
    let (channel, log) = run(&scenario);
    let counters = channel.counters(StationId(1));
    assert!(counters.duplicates > 50, "{counters:?}");
    let delivered = log.outputs.iter().filter_map(|(_, output)| match output {
        Output::Deliver { packet, .. } => Some(*packet),
        _ => None,
    });
    let mut delivered: Vec<_> = delivered.collect();
    let all = delivered.len();
    delivered.sort_unstable();
    delivered.dedup();
    assert_eq!(delivered.len(), all);
    assert_eq!(counters.acks_sent, all as u64 + counters.duplicates);
}

#[test]
fn a_link_failure_is_told_even_of_a_packet_that_has_arrived() {
    let mut scenario = noisy(3e-3, false);
    scenario.packets = vec![(0, 0, 1, 1); 1000];
    let (channel, _) = run(&scenario);
    let counters = channel.counters(StationId(0));
    assert!(counters.link_failures > counters.mac_drops, "{counters:?}");
    assert!(counters.mac_drops > 0, "{counters:?}");
}

#[test]
fn data_after_cts_are_sent_until_their_counter_reaches_the_long_retry_limit() {
    // §9.2.5.3. No data frame gets through (12 288 bits), most control frames do: 4 attempts each,
    // not counting RTS.
    let mut scenario = noisy(1e-3, true);
    scenario.config.mac.short_retry_limit = 100;
    let (channel, _) = run(&scenario);
    let counters = channel.counters(StationId(0));
    assert_eq!((counters.mac_drops, counters.data_sent), (1000, 4000));
    assert!(counters.rts_sent > 4000);
}

#[test]
fn bit_errors_are_as_frequent_as_configured() {
    // A broadcast of 1500 B is 12 288 bits: at 3e-5, 69.2 % arrive. 1000 broadcasts: 4 standard
    // errors are 6 %.
    let mut scenario = noisy(3e-5, false);
    scenario.packets = vec![(0, 0, 0, 1500); 1000];
    let (_, log) = run(&scenario);
    let delivered = log.outputs.iter().filter(|(_, o)| matches!(o, Output::Deliver { .. })).count();
    assert!((632..=752).contains(&delivered), "{delivered}");
}

/// Number of 1000 broadcasts of 1024 B, MAC headers included, that get through at 2 Mbit/s.
fn broadcasts_through(decibels: f64) -> usize {
    let mut config = dsss(decibels);
    crate::common::dsss(&mut config).broadcast_rate = DataRate::mbps(2);
    config.mac.queue = QueueLimit::Packets(2000);
    let places = vec![Position::default(), Position { x: 10.0, y: 0.0 }];
    let packets = vec![(0, 0, 0, 1024 - 28 - 8); 1000];
    let scenario = Scenario { config, places, packets, seed: 1 };
    let (_, log) = run(&scenario);
    let delivered = |(_, o): &&(_, Output<usize>)| matches!(o, Output::Deliver { .. });
    log.outputs.iter().filter(delivered).count()
}

#[test]
fn dsss_errors_are_as_frequent_as_their_curve_says() {
    // ns-3's packet error rates of 1024 B at 2 Mbit/s: 0.7963 at 0 dB, 0.2346 at 1 dB, 0.0287 at 2
    // dB. Four standard errors of 1000 broadcasts, and the PLCP's own errors (below 1e-6).
    for (decibels, through, margin) in
        [(0.001, 203.7, 51.0), (1.0, 765.4, 54.0), (2.0, 971.3, 21.0)]
    {
        let delivered = broadcasts_through(decibels) as f64;
        assert!((delivered - through).abs() < margin, "{decibels} dB: {delivered}");
    }
}
