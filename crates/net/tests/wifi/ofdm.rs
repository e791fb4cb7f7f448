//! 802.11a to ax: each rule of block acknowledgement as a timeline, and throughput of cells against
//! Bianchi's model, closed forms and ns-3's examples.
//!
//! Acceptance windows: 1.5 % of Bianchi's model, as in ns-3's check of itself; 1 % of a closed form
//! with the mean back-off.

use crate::common::{line, play};
use crate::throughput::{Cell, bianchi};
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_net::config::QueueLimit;
use airtcp_net::wifi::{
    Channel, ChannelConfig, Content, Format, FrameErrors, MimoConfig, OfdmConfig, Output,
    PhyConfig, Power, Receiver, Reception, StationId, Width, preset,
};

/// The parameters of 802.11n, ac or ax.
fn mimo(config: &mut ChannelConfig) -> &mut MimoConfig {
    let PhyConfig::Mimo(_, mimo) = &mut config.phy else { panic!("one antenna") };
    mimo
}

/// 802.11ax without aggregation.
fn he(width: Width, mcs: u32) -> ChannelConfig {
    let mut config = preset::ieee80211ax();
    let phy = mimo(&mut config);
    (phy.width, phy.mcs, phy.ampdu_limit) = (width, mcs, Bytes::ZERO);
    config
}

/// Frames are lost by collisions only, whatever their powers, and attempts are unlimited.
fn lossless(mut config: ChannelConfig) -> ChannelConfig {
    let capture_ratio = 1e6;
    config.radio.reception = Reception::FirstLock { capture_ratio, ignored_frame_sets_nav: false };
    config.radio.rx_threshold = Power::from_dbm(-82.0);
    config.mac.short_retry_limit = u32::MAX;
    config.mac.long_retry_limit = u32::MAX;
    config
}

const SENDERS: [u32; 4] = [5, 10, 20, 50];

/// Saturation throughput of Bianchi's model for packets of 1500 B, Mbit/s, with EIFS after a
/// collision as long as a response and DIFS. `data` is how long a frame takes, `again` the
/// probability that a sender draws no back-off and goes on at once, which the others cannot
/// (Tinnirello, Bianchi and Xiao, "Refinements on IEEE 802.11 distributed coordination function
/// modeling approaches", IEEE Transactions on Vehicular Technology 59(3), 2010).
fn model(n: u32, data: f64, ack_rate: f64, again: f64) -> f64 {
    let (sifs, difs, slot, delay) = (16.0, 34.0, 9.0, 0.1);
    let exchange = data + sifs + duration(20.0, 4.0, ack_rate * 4.0, 14.0) + difs + delay;
    let success = exchange / (1.0 - again) + slot;
    bianchi(n, (16.0, 6), (success, exchange, slot), 12_000.0 / (1.0 - again))
}

/// Microseconds of a frame of so many bytes: its preamble, and symbols of so many data bits.
fn duration(preamble: f64, symbol: f64, per_symbol: f64, bytes: f64) -> f64 {
    preamble + symbol * ((16.0 + 8.0 * bytes + 6.0) / per_symbol).ceil()
}

/// ns-3's reference values (`src/wifi/examples/wifi-bianchi.cc`, with EIFS): a rate of 802.11a, or an
/// MCS of 802.11ax with the data bits of a symbol; the rate of ACKs; Mbit/s.
const LEGACY: [(u64, u64, [f64; 4]); 2] =
    [(6, 6, [4.6899, 4.3390, 3.9890, 3.4980]), (54, 24, [29.2861, 27.3763, 25.3325, 22.4162])];
const HE: [(Width, u32, f64, u64, [f64; 4]); 4] = [
    (Width::Mhz20, 0, 117.0, 6, [6.3381, 5.8172, 5.3146, 4.6317]),
    (Width::Mhz20, 7, 1170.0, 24, [34.1710, 31.9398, 29.5261, 26.0271]),
    (Width::Mhz20, 11, 1950.0, 24, [41.8065, 39.2749, 36.4282, 32.2164]),
    (Width::Mhz160, 11, 16_333.0, 24, [62.8834, 59.9147, 56.0992, 50.0803]),
];
/// Of the smallest window, 15.
const AGAIN: f64 = 1.0 / 16.0;

/// ns-3 solves the model on a grid, for 802.11a a coarse one, and for 802.11ax leaves out `again`.
#[test]
fn the_model_is_that_of_ns3() {
    for (rate, ack, table) in LEGACY {
        for (n, expected) in SENDERS.into_iter().zip(table) {
            let data = duration(20.0, 4.0, rate as f64 * 4.0, 1534.0);
            let ours = model(n, data, ack as f64, AGAIN);
            assert!((ours / expected - 1.0).abs() < 0.01, "{rate}, {n}: {ours}, not {expected}");
        }
    }
    for (_, mcs, per_symbol, ack, table) in HE {
        for (n, expected) in SENDERS.into_iter().zip(table) {
            let ours = model(n, duration(44.0, 13.6, per_symbol, 1538.0), ack as f64, 0.0);
            assert!((ours / expected - 1.0).abs() < 1e-4, "{mcs}, {n}: {ours}, not {expected}");
        }
    }
}

fn follows(name: &str, config: &ChannelConfig, model: impl Fn(u32) -> f64, table: [f64; 4]) {
    // The slower, the longer.
    let seconds = (150.0 / model(5)).ceil() as u64;
    let cell = Cell { radius: 1.0, backlog: 2, size: 1500, seconds };
    let mut worst = 0.0_f64;
    for (n, table) in SENDERS.into_iter().zip(table) {
        let ours = cell.throughput(config, n);
        let percent = |other: f64| (ours / other - 1.0) * 100.0;
        println!(
            "{name}, {n} senders: {ours:.4}, {:+.2} % of the model, {:+.2} % of ns-3's table",
            percent(model(n)),
            percent(table)
        );
        worst = worst.max(percent(model(n)).abs());
    }
    assert!(worst < 1.5, "{name}: {worst} %");
}

#[test]
fn saturation_of_802_11a_follows_bianchi() {
    for (rate, ack, table) in LEGACY {
        let mut config = lossless(preset::ieee80211a());
        config.phy = PhyConfig::Ofdm(OfdmConfig { data_rate: DataRate::mbps(rate) });
        config.mac.llc = Bytes(6);
        config.mac.eifs_ack_rate = DataRate::mbps(ack);
        let data = duration(20.0, 4.0, rate as f64 * 4.0, 1534.0);
        let model = |n| model(n, data, ack as f64, AGAIN);
        follows(&format!("802.11a, {rate} Mbit/s"), &config, model, table);
    }
}

#[test]
fn saturation_of_802_11ax_follows_bianchi() {
    for (width, mcs, per_symbol, ack, table) in HE {
        let mut config = lossless(he(width, mcs));
        // The model has DIFS.
        mimo(&mut config).aifsn = 2;
        config.mac.eifs_ack_rate = DataRate::mbps(ack);
        let data = duration(43.2, 13.6, per_symbol, 1538.0);
        let model = |n| model(n, data, ack as f64, AGAIN);
        follows(&format!("802.11ax, {}, MCS {mcs}", width.word()), &config, model, table);
    }
}

/// Data bits of a symbol for each data subcarrier of a stream, by MCS.
const DENSITY: [f64; 12] =
    [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 4.5, 5.0, 6.0, 20.0 / 3.0, 7.5, 25.0 / 3.0];
const ACK_RATES: [f64; 12] =
    [6.0, 12.0, 12.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0];

#[test]
fn a_lone_sender_reaches_the_closed_form_at_every_mcs() {
    let cell = Cell { radius: 1.0, backlog: 2, size: 1500, seconds: 2 };
    // Preamble, symbol, subcarriers.
    for (format, base, mode, delimiter) in [
        (Format::Ht, preset::ieee80211n(), (36.0, 4.0, 52.0), 0.0),
        (Format::Vht, preset::ieee80211ac(), (40.0, 4.0, 234.0), 4.0),
        (Format::He, preset::ieee80211ax(), (43.2, 13.6, 980.0), 4.0),
    ] {
        let modes = match format {
            Format::Ht => 0..=7,
            Format::Vht => 0..=9,
            Format::He => 0..=11,
        };
        for mcs in modes {
            for aggregates in [false, true] {
                let mut config = lossless(base.clone());
                let phy = mimo(&mut config);
                phy.mcs = mcs;
                // A window of one MPDU.
                phy.block_ack_window = 1;
                if !aggregates {
                    phy.ampdu_limit = Bytes::ZERO;
                }
                let (preamble, symbol, subcarriers) = mode;
                let per_symbol = (subcarriers * DENSITY[mcs as usize] + 1e-9).floor();
                let header = 38.0 + if aggregates { delimiter } else { 0.0 };
                let data = duration(preamble, symbol, per_symbol, 1500.0 + header);
                let ack = duration(20.0, 4.0, ACK_RATES[mcs as usize] * 4.0, 14.0);
                // AIFS, and the mean back-off of 7.5 slots.
                let exchange = 16.0 + 3.0 * 9.0 + 7.5 * 9.0 + data + 16.0 + ack;
                let (ours, expected) = (cell.throughput(&config, 1), 12_000.0 / exchange);
                let error = ours / expected - 1.0;
                assert!(error.abs() < 0.01, "{format:?} MCS {mcs}: {ours}, not {expected}");
            }
        }
    }
}

/// Limits of A-MPDU, A-MSDU and TXOP: bytes, bytes and microseconds.
type Limits = (u64, u64, u64);

/// One access point and one station, 5 m apart, with packets of 1500 B of which 1472 are payload
/// (ns-3, `examples/wireless/wifi-aggregation.cc`): Mbit/s of payload.
fn aggregation((ampdu, amsdu, txop): Limits) -> f64 {
    let mut config = preset::ieee80211n();
    let phy = mimo(&mut config);
    phy.ampdu_limit = Bytes(ampdu);
    phy.amsdu_limit = Bytes(amsdu);
    phy.txop_limit = Duration::from_micros(txop);
    config.check().unwrap();
    let cell = Cell { radius: 5.0, backlog: 100, size: 1500, seconds: 10 };
    cell.throughput(&config, 1) * 1472.0 / 1500.0
}

/// The same by hand: so many packets by so many microseconds of frames and answers, after AIFS and a
/// mean back-off of 7.5 slots.
fn by_hand(packets: f64, exchanges: f64) -> f64 {
    packets * 1472.0 * 8.0 / (43.0 + 7.5 * 9.0 + exchanges)
}

fn is_as_by_hand(limits: Limits, packets: f64, exchanges: f64) {
    let (ours, expected) = (aggregation(limits), by_hand(packets, exchanges));
    println!("{limits:?}: {ours:.3} Mbit/s, {expected:.3} by hand");
    assert!((ours / expected - 1.0).abs() < 0.01, "{limits:?}: {ours}, not {expected}");
}

/// HT, MCS 7: microseconds of a frame of so many bytes, with a SIFS and its answer of so many.
fn exchange(bytes: f64, answer: f64) -> f64 {
    duration(36.0, 4.0, 260.0, bytes) + 16.0 + answer
}

const ACK: f64 = 28.0;
const BLOCK_ACK: f64 = 32.0;
/// Two packets of 1500 B, with 8 B of LLC, as an A-MSDU: 14 + 1508 B, padded to 1524, and 1522.
const PAIR: f64 = 30.0 + 1524.0 + 1522.0;
/// Five of them.
const FIVE: f64 = 30.0 + 4.0 * 1524.0 + 1522.0;

#[test]
fn aggregation_is_worth_as_much_as_the_closed_form() {
    for (limits, packets, exchanges) in aggregations() {
        is_as_by_hand(limits, packets, exchanges);
    }
    is_as_by_hand((0, 3839, 0), 2.0, exchange(PAIR, ACK));
}

/// One frame and its answer: packets, and the time that they take. The limits are those of ns-3's
/// example.
fn aggregations() -> [(Limits, f64, f64); 4] {
    [
        // 5.484 ms end an A-MPDU at 28 MPDUs.
        ((65_535, 0, 0), 28.0, exchange(27.0 * 1544.0 + 1542.0, BLOCK_ACK)),
        ((0, 0, 0), 1.0, exchange(1538.0, ACK)),
        ((0, 7935, 0), 5.0, exchange(FIVE, ACK)),
        // Ten A-MSDUs, and what is left has room for a packet.
        ((32_768, 3839, 0), 21.0, exchange(10.0 * (4.0 + PAIR) + 1542.0, BLOCK_ACK)),
    ]
}

#[test]
fn saturation_by_a_msdus_follows_bianchi() {
    let mut config = lossless(preset::ieee80211n());
    let phy = mimo(&mut config);
    (phy.ampdu_limit, phy.amsdu_limit) = (Bytes::ZERO, Bytes(7935));
    // The model has DIFS.
    phy.aifsn = 2;
    config.mac.eifs_ack_rate = DataRate::mbps(24);
    let data = duration(36.0, 4.0, 260.0, FIVE);
    let cell = Cell { radius: 1.0, backlog: 10, size: 1500, seconds: 50 };
    for n in SENDERS {
        let (ours, expected) = (cell.throughput(&config, n), 5.0 * model(n, data, 24.0, AGAIN));
        println!("{n} senders: {ours:.3} Mbit/s, {expected:.3} of the model");
        assert!((ours / expected - 1.0).abs() < 0.015, "{n} senders: {ours}, not {expected}");
    }
}

#[test]
fn a_txop_saves_back_offs() {
    for (limits, packets, exchanges) in txops() {
        is_as_by_hand(limits, packets, exchanges);
    }
}

/// What fits into a TXOP of 3520 us: packets, and the time that they take.
fn txops() -> [(Limits, f64, f64); 4] {
    let sifs = 16.0;
    let single = exchange(1538.0, ACK);
    [
        ((65_535, 0, 3520), 18.0, exchange(17.0 * 1544.0 + 1542.0, BLOCK_ACK)),
        ((0, 0, 3520), 12.0, 12.0 * single + 11.0 * sifs),
        // Three A-MSDUs of five, and one packet: the rest is too short for two.
        ((0, 7935, 3520), 16.0, 3.0 * (exchange(FIVE, ACK) + sifs) + single),
        ((32_768, 3839, 3520), 18.0, exchange(8.0 * (4.0 + PAIR) + 4.0 + PAIR, BLOCK_ACK)),
    ]
}

/// Mbit/s of payload of `examples/wireless/wifi-aggregation.cc` and `wifi-txop-aggregation.cc` in
/// ns-3 3.37, as Debian has it: between 5 and 25 s, the mean of five runs, of which none differs by
/// more than 0.02.
const NS3: [[f64; 4]; 2] = [[59.608, 30.708, 51.766, 59.043], [58.444, 38.957, 52.643, 58.571]];

/// ns-3's access point sends beacons, of 149 B (224 us) every 102.4 ms after PIFS. And its sender
/// truncates a TXOP whose rest is too short for data but not for a SIFS and a CF-End (§10.23.2.10:
/// may), of 20 B at 6 Mbit/s. By hand with both, the rates are those of ns-3.
#[test]
fn with_beacons_and_truncated_txops_rates_are_those_of_ns3() {
    let truncation = 16.0 + duration(20.0, 4.0, 24.0, 20.0);
    for (table, ns3) in [aggregations(), txops()].into_iter().zip(NS3) {
        for ((limits, packets, exchanges), ns3) in table.into_iter().zip(ns3) {
            let (_, _, txop) = limits;
            let truncated = exchanges + truncation <= txop as f64;
            let exchanges = exchanges + if truncated { truncation } else { 0.0 };
            let theirs = by_hand(packets, exchanges) * (1.0 - (25.0 + 224.0) / 102_400.0);
            println!("{limits:?}: {theirs:.3} by hand, {ns3:.3} of ns-3, CF-End: {truncated}");
            assert!((theirs / ns3 - 1.0).abs() < 5e-4, "{limits:?}: {theirs}, not {ns3}");
        }
    }
}

/// MPDUs that each take whole symbols, and no back-off.
fn timeline() -> ChannelConfig {
    let mut config = preset::ieee80211n();
    config.mac.cw_min = 0;
    config.mac.cw_max = 0;
    config
}

#[test]
fn packets_that_wait_share_a_frame_and_a_block_ack() {
    // HT, MCS 7, 260 bits a symbol. The first alone: 1538 B, 36 + 48 x 4 us, and its ACK 28 us. The
    // others together: 1544 + 1538 B, 36 + 96 x 4 us, and a block ACK. AIFS is 43 us.
    let mut cell = line(&timeline(), &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    A>B DATA
         228  B got 0
         244  B>A ACK
         315  A>B DATA
         735  B got 1
         735  B got 2
         751  B>A ACK",
    );
}

#[test]
fn a_frame_has_packets_for_one_receiver_in_their_order() {
    let mut cell = line(&timeline(), &[(0.0, &[]), (0.0, &[]), (0.0, &[])]);
    // 100 B: 138 B, 36 + 5 x 4 us; 144 + 138 B: 36 + 9 x 4 us.
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 100
         0    send A>C 100
         0    send A>B 100
         0    A>B DATA
         228  B got 0
         244  B>A ACK
         315  A>B DATA
         387  B got 1
         387  B got 3
         403  B>A ACK
         478  A>C DATA
         534  C got 2
         550  C>A ACK",
    );
}

/// The same with A-MSDUs of up to 3839 B.
fn amsdus(ampdu_limit: u64) -> ChannelConfig {
    let mut config = timeline();
    let phy = mimo(&mut config);
    (phy.ampdu_limit, phy.amsdu_limit) = (Bytes(ampdu_limit), Bytes(3839));
    config
}

#[test]
fn packets_that_wait_share_an_mpdu_and_its_ack() {
    // §9.3.2.2. Two have 30 + 1524 + 1522 B, 36 + 95 x 4 us; a third would make 4570 B of A-MSDU.
    let mut cell = line(&amsdus(0), &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    A>B DATA
         228  B got 0
         244  B>A ACK
         315  A>B DATA
         731  B got 1
         731  B got 2
         747  B>A ACK
         818  A>B DATA
         1046 B got 3
         1062 B>A ACK",
    );
}

#[test]
fn an_a_mpdu_holds_a_msdus_and_single_packets() {
    // §10.11. Two A-MSDUs and a packet: 2 x 3080 + 4 + 1038 B, 36 + 222 x 4 us, and a block ACK.
    let mut cell = line(&amsdus(65_535), &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1000
         0    A>B DATA
         228  B got 0
         244  B>A ACK
         315  A>B DATA
         1239 B got 1
         1239 B got 2
         1239 B got 3
         1239 B got 4
         1239 B got 5
         1255 B>A ACK",
    );
}

#[test]
fn an_a_msdu_has_packets_for_one_receiver() {
    // 30 + 14 + 108, padded to 124, and 14 + 108 B: 276 B, 36 + 9 x 4 us.
    let mut cell = line(&amsdus(0), &[(0.0, &[]), (0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 100
         0    send A>C 100
         0    send A>B 100
         0    A>B DATA
         228  B got 0
         244  B>A ACK
         315  A>B DATA
         387  B got 1
         387  B got 3
         403  B>A ACK
         474  A>C DATA
         530  C got 2
         546  C>A ACK",
    );
}

#[test]
fn an_a_msdu_is_sent_again_as_it_was_and_given_up_as_a_whole() {
    // B is out of reach. The first packet has been sent, so none joins it. The next two are an
    // A-MSDU of 416 us.
    let mut config = amsdus(0);
    config.mac.short_retry_limit = 2;
    let mut cell = line(&config, &[(0.0, &[]), (9000.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    A>B DATA
         316  A>B DATA
         589  A drop 0
         589  A lost B
         632  A>B DATA
         1136 A>B DATA
         1597 A drop 1
         1597 A drop 2
         1597 A lost B",
    );
}

#[test]
fn a_frame_whose_rts_failed_is_no_retry_and_may_still_be_filled_up() {
    let mut config = lossless(preset::ieee80211n());
    let phy = mimo(&mut config);
    (phy.ampdu_limit, phy.amsdu_limit) = (Bytes::ZERO, Bytes(3839));
    config.mac.rts_threshold = Bytes::ZERO;
    let mut cell = line(&config, &[(0.0, &[]), (1.0, &[]), (2.0, &[])]);
    cell.monitor();
    let to = Receiver::Station(StationId(0));
    let stations = [StationId(1), StationId(2)];
    let send = |cell: &mut Channel<u32>, at| {
        for station in stations {
            cell.send(at, station, to, station.0, Bytes(1500)).unwrap();
        }
    };
    // Both send an RTS at once. A second packet comes before the next attempt.
    send(&mut cell, Instant::ZERO);
    while cell.poll(Instant::ZERO).is_some() {}
    send(&mut cell, Instant::ZERO + Duration::from_micros(1));
    let mut frames = Vec::new();
    while let Some(at) = cell.next_deadline() {
        while cell.poll(at).is_some() {}
        frames.extend(cell.monitor().sent);
    }
    assert!(frames.iter().filter(|frame| frame.content == Content::Rts).count() > 2);
    for station in stations {
        let mut data = frames.iter().filter(|frame| frame.from == station);
        let first = data.find_map(|frame| match &frame.content {
            Content::Data(mpdus) => Some(&mpdus[..]),
            _ => None,
        });
        let Some([mpdu]) = first else { panic!("{first:?}") };
        assert_eq!((mpdu.retry, mpdu.amsdu, mpdu.packets.len()), (false, true, 2));
    }
}

#[test]
fn an_a_msdu_is_lost_or_received_as_a_whole() {
    // One FCS for 3076 B: at 2e-5 a bit, 61 % arrive; of packets alone it would be 78 %. 1000 of
    // them, each sent once: four standard errors are 6 %.
    let mut config = amsdus(0);
    config.mac.short_retry_limit = 1;
    config.mac.queue = QueueLimit::Packets(2001);
    config.radio.bit_error_rate = 2e-5;
    let mut cell = line(&config, &[(0.0, &[]), (1.0, &[])]);
    let (a, b) = (StationId(0), Receiver::Station(StationId(1)));
    for packet in 0..2001 {
        cell.send(Instant::ZERO, a, b, packet, Bytes(1500)).unwrap();
    }
    let mut arrived = vec![false; 2001];
    while let Some(at) = cell.next_deadline() {
        while let Some(output) = cell.poll(at) {
            if let Output::Deliver { packet, .. } = output {
                arrived[packet as usize] = true;
            }
        }
    }
    let pairs: Vec<_> = arrived[1..].chunks(2).collect();
    assert!(pairs.iter().all(|pair| pair[0] == pair[1]));
    let whole = pairs.iter().filter(|pair| pair[0]).count();
    assert!((549..=673).contains(&whole), "{whole}");
}

#[test]
fn who_hears_an_a_mpdu_for_another_reads_it_if_one_mpdu_is_intact() {
    // At 2e-6 a bit, 2.5 % of MPDUs are hit: half of the A-MPDUs somewhere, and hardly one in all of
    // them. Left are some that repeat one MPDU alone.
    let mut config = preset::ieee80211n();
    config.radio.bit_error_rate = 2e-6;
    config.mac.queue = QueueLimit::Packets(3000);
    let mut cell = line(&config, &[(0.0, &[]), (1.0, &[]), (2.0, &[])]);
    let (a, b) = (StationId(0), Receiver::Station(StationId(1)));
    for packet in 0..3000 {
        cell.send(Instant::ZERO, a, b, packet, Bytes(1500)).unwrap();
    }
    while let Some(at) = cell.next_deadline() {
        while cell.poll(at).is_some() {}
    }
    let errors = cell.counters(StationId(2)).errors;
    assert!(errors <= 5, "{errors}");
}

#[test]
fn what_is_not_answered_is_sent_again_and_given_up_at_the_short_retry_limit() {
    let mut config = timeline();
    config.mac.short_retry_limit = 2;
    config.mac.queue = QueueLimit::Packets(10);
    // B is out of reach. An ACK, or a block ACK, is missing after 16 + 9 + 20 us; then AIFS.
    let mut cell = line(&config, &[(0.0, &[]), (9000.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 1500
         0    A>B DATA
         316  A>B DATA
         781  A drop 0
         781  A lost B
         824  A>B DATA
         1097 A drop 1
         1097 A lost B",
    );
}

#[test]
fn in_a_txop_frames_are_a_sifs_apart() {
    let mut config = timeline();
    let phy = mimo(&mut config);
    phy.ampdu_limit = Bytes::ZERO;
    // Three exchanges of 228 + 16 + 28 us, and two SIFS: 848 us.
    phy.txop_limit = Duration::from_micros(896);
    let mut cell = line(&config, &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    A>B DATA
         228  B got 0
         244  B>A ACK
         288  A>B DATA
         516  B got 1
         532  B>A ACK
         576  A>B DATA
         804  B got 2
         820  B>A ACK
         891  A>B DATA
         1119 B got 3
         1135 B>A ACK",
    );
}

#[test]
fn an_a_mpdu_is_as_long_as_the_rest_of_the_txop_allows() {
    // §10.23.2.8. Behind the first exchange, of 272 us, the rest is 656 us. Two MPDUs of 420 us with
    // a SIFS before and after them and a block ACK of 32 us fit; three, of 608 us, would be 16 us too
    // long.
    let mut config = timeline();
    mimo(&mut config).txop_limit = Duration::from_micros(928);
    let mut cell = line(&config, &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    A>B DATA
         228  B got 0
         244  B>A ACK
         288  A>B DATA
         708  B got 1
         708  B got 2
         724  B>A ACK
         799  A>B DATA
         1027 B got 3
         1043 B>A ACK",
    );
}

#[test]
fn an_a_msdu_is_as_long_as_the_rest_of_the_txop_allows() {
    // Behind the first exchange, 304 us are left: room for one packet, with its SIFS and ACK 288 us,
    // but not for the two of an A-MSDU. The next TXOP begins with two, 416 us.
    let mut config = amsdus(0);
    mimo(&mut config).txop_limit = Duration::from_micros(576);
    let mut cell = line(&config, &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    send A>B 1500
         0    A>B DATA
         228  B got 0
         244  B>A ACK
         288  A>B DATA
         516  B got 1
         532  B>A ACK
         603  A>B DATA
         1019 B got 2
         1019 B got 3
         1035 B>A ACK",
    );
}

#[test]
fn a_txop_limit_of_zero_is_one_exchange_and_a_long_first_frame_is_sent_alone() {
    // §10.23.2.9: 32 us are less than any frame.
    for limit in [0, 32] {
        let mut config = timeline();
        let phy = mimo(&mut config);
        phy.ampdu_limit = Bytes::ZERO;
        phy.txop_limit = Duration::from_micros(limit);
        let mut cell = line(&config, &[(0.0, &[]), (0.0, &[])]);
        play(
            &mut cell,
            "0    send A>B 1500
             0    send A>B 1500
             0    A>B DATA
             228  B got 0
             244  B>A ACK
             315  A>B DATA
             543  B got 1
             559  B>A ACK",
        );
    }
}

/// What a change makes of a preset.
fn refused(mut config: ChannelConfig, change: impl FnOnce(&mut ChannelConfig)) -> String {
    change(&mut config);
    config.check().unwrap_err().to_string()
}

#[test]
fn a_mode_that_the_standard_lacks_is_refused_with_the_nearest() {
    let (a, n) = (preset::ieee80211a(), preset::ieee80211n());
    let (ac, ax) = (preset::ieee80211ac(), preset::ieee80211ax());
    assert_eq!(
        refused(ac.clone(), |c| mimo(c).width = Width::Mhz20),
        "mcs is 9: 802.11ac has no such MCS at 20 MHz with 1 stream, the nearest is 8"
    );
    assert_eq!(
        refused(n.clone(), |c| mimo(c).mcs = 9),
        "mcs is 9: 802.11n has no such MCS at 20 MHz with 1 stream, the nearest is 7"
    );
    assert_eq!(
        refused(n.clone(), |c| mimo(c).width = Width::Mhz80),
        "width is 80 MHz: 802.11n has at most 40 MHz at 5 GHz"
    );
    assert_eq!(
        refused(ac.clone(), |c| mimo(c).band = airtcp_net::wifi::Band::Ghz2),
        "band is 2.4 GHz: 802.11ac has no such band, the nearest is 5 GHz"
    );
    assert_eq!(
        refused(ax.clone(), |c| mimo(c).guard_interval = Duration::from_nanos(400)),
        "guard-interval is 400 ns: 802.11ax has no such interval, the nearest is 800 ns"
    );
    assert_eq!(
        refused(ac, |c| mimo(c).block_ack_window = 128),
        "block-ack-window is 128: 802.11ac has at most 64"
    );
    assert_eq!(
        refused(n.clone(), |c| mimo(c).ampdu_limit = Bytes(100_000)),
        "ampdu-limit is 100000 B: 802.11n allows at most 65535 B"
    );
    let txop =
        |micros| move |c: &mut ChannelConfig| mimo(c).txop_limit = Duration::from_micros(micros);
    assert_eq!(
        refused(n.clone(), txop(900)),
        "txop-limit is 900 us: expected a multiple of 32 us, at most 65535 of them, the nearest is 896 us"
    );
    assert_eq!(
        refused(n.clone(), txop(3_200_000)),
        "txop-limit is 3.2 s: expected a multiple of 32 us, at most 65535 of them, the nearest is \
         2.09712 s"
    );
    let amsdu = |limit| move |c: &mut ChannelConfig| mimo(c).amsdu_limit = Bytes(limit);
    assert_eq!(
        refused(n.clone(), amsdu(4000)),
        "amsdu-limit is 4000 B: 802.11n has no such limit at 5 GHz, the nearest is 3839 B"
    );
    assert_eq!(
        refused(ax.clone(), amsdu(7935)),
        "amsdu-limit is 7935 B: 802.11ax has no such limit at 5 GHz, the nearest is 7991 B"
    );
    assert_eq!(
        refused(n.clone(), amsdu(7935)),
        "amsdu-limit is 7935 B: an MPDU in an A-MPDU of 802.11n has at most 4095 B; expected 3839 B, \
         or ampdu-limit = \"0 B\""
    );
    assert_eq!(
        refused(a, |c| {
            c.phy = PhyConfig::Ofdm(OfdmConfig { data_rate: DataRate::mbps(11) });
        }),
        "data-rate is 11 Mbit/s: OFDM has 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s"
    );
    let dsss = |c: &mut ChannelConfig| {
        if let Reception::CumulativeSinr { frame_errors, .. } = &mut c.radio.reception {
            *frame_errors = FrameErrors::Dsss;
        }
    };
    assert_eq!(
        refused(n, dsss),
        "frame-errors is \"dsss\": expected \"ofdm\", as the preset's rates are, or \"threshold\""
    );
}
