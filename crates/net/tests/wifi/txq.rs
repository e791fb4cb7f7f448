//! Transmit queues: whose turn it is, and that frames are as full as they can be.
//!
//! Frames at MCS 7 of 802.11n: a packet of 1500 B takes 228 us, one of 100 B 56 us. A receiver gets
//! 256 us a round.

use crate::common::{Draw, line, name};
use airtcp_core::{Bytes, Dscp, Duration, Instant};
use airtcp_net::PacketMeta;
use airtcp_net::config::{QueueConfig, QueueLimit};
use airtcp_net::queue::fq_codel::FqCodelConfig;
use airtcp_net::wifi::{
    AccessCategories, ChannelConfig, Content, MimoConfig, PhyConfig, Receiver, StationId, preset,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::slice;

/// 802.11n without back-off or aggregation, and room for 1000 packets in each transmit queue.
fn cell() -> ChannelConfig {
    let mut config = preset::ieee80211n();
    config.mac.cw_min = 0;
    config.mac.cw_max = 0;
    config.mac.queue_discipline = Some(QueueConfig::DropTail { limit: QueueLimit::Packets(1000) });
    mimo(&mut config).ampdu_limit = Bytes::ZERO;
    config
}

fn mimo(config: &mut ChannelConfig) -> &mut MimoConfig {
    let PhyConfig::Mimo(_, mimo) = &mut config.phy else { panic!("one antenna") };
    mimo
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    micros: u64,
    from: StationId,
    to: Receiver,
    size: u64,
    dscp: Dscp,
}

/// So many packets from A at this time; `*` is all stations.
fn packets(micros: u64, to: char, count: usize, size: u64) -> Vec<Packet> {
    let to = if to == '*' { Receiver::Broadcast } else { Receiver::Station(station(to)) };
    vec![Packet { micros, from: station('A'), to, size, dscp: Dscp::DEFAULT }; count]
}

fn station(name: char) -> StationId {
    StationId(u32::from(name) - u32::from('A'))
}

/// A data frame: its receiver, its packets by their numbers, and its duration.
type Frame = (char, Vec<u32>, Duration);

/// The data frames of station A. Each packet is of a flow of its own.
fn frames(config: &ChannelConfig, packets: &[Packet]) -> Vec<Frame> {
    let places: [(f64, &[Draw]); 5] = [(0.0, &[]); 5];
    let mut channel = line(config, &places);
    channel.monitor();
    for (number, &Packet { micros, from, to, size, dscp }) in (0..).zip(packets) {
        let at = Instant::ZERO + Duration::from_micros(micros);
        while let Some(due) = channel.next_deadline().filter(|&due| due <= at) {
            while channel.poll(due).is_some() {}
        }
        let meta = PacketMeta { dscp, flow: number, ..PacketMeta::from(Bytes(size)) };
        channel.send(at, from, to, number, meta).expect("there is room");
    }
    channel.catch_up(Instant::from_secs(60));
    let sent = channel.monitor().sent.into_iter().filter(|frame| frame.from == station('A'));
    sent.filter_map(|frame| {
        let Content::Data(mpdus) = frame.content else { return None };
        let to = match frame.to {
            Receiver::Station(to) => name(to),
            Receiver::Broadcast => '*',
        };
        let packets = mpdus.into_iter().flat_map(|mpdu| mpdu.packets).collect();
        Some((to, packets, frame.duration))
    })
    .collect()
}

/// The receivers of the data frames of station A, in their order.
fn turns(config: &ChannelConfig, packets: &[Vec<Packet>]) -> String {
    frames(config, &packets.concat()).into_iter().map(|(to, ..)| to).collect()
}

#[test]
fn turns_go_by_airtime() {
    // What B has left after each turn of one frame: 28, -200, then with 256 more each time 56 - 228 =
    // -172, -144. C's turns end at 256 - 5 x 56 = -24, 232 - 5 x 56 = -48 and 208 - 4 x 56 = -16.
    let packets = [packets(0, 'B', 5, 1500), packets(0, 'C', 16, 100)];
    assert_eq!(turns(&cell(), &packets), "BCCCCCBCCCCCBCCCCBCCB");
}

#[test]
fn a_receiver_without_packets_before_goes_first() {
    let packets = [
        packets(0, 'B', 4, 1500),
        packets(0, 'C', 4, 1500),
        // While the third frame is sent.
        packets(800, 'D', 1, 100),
    ];
    assert_eq!(turns(&cell(), &packets), "BCCDBCBCB");
}

#[test]
fn what_a_receiver_owes_is_not_forgotten_when_its_queue_is_empty() {
    // B spends 456 us, then C comes and another packet for B.
    let packets =
        [packets(0, 'B', 2, 1500), packets(2_000, 'C', 3, 100), packets(2_010, 'B', 1, 100)];
    assert_eq!(turns(&cell(), &packets), "BBCCCB");
}

/// So many packets of 1500 B from B to A at this time.
fn packets_from_b(micros: u64, count: usize) -> Vec<Packet> {
    let to_a = packets(micros, 'A', count, 1500).into_iter();
    to_a.map(|packet| Packet { from: station('B'), ..packet }).collect()
}

#[test]
fn frames_from_a_station_are_charged_to_it() {
    // The first packet for C finds the MAC free. Then B's queue is the newest.
    let later = [packets(2_000, 'C', 3, 100), packets(2_000, 'B', 3, 100)].concat();
    assert_eq!(turns(&cell(), slice::from_ref(&later)), "CBBBCC");
    // B has received a packet and sent two.
    let before = [packets(0, 'B', 1, 100), packets_from_b(500, 2)].concat();
    assert_eq!(turns(&cell(), &[before, later]), "BCCCBBB");
}

// Linux, `ieee80211_sta_register_airtime`: only of stations that had packets 100 ms ago or less.
#[test]
fn frames_from_a_station_that_nothing_waits_for_are_not_charged() {
    let from_b = packets_from_b(0, 200);
    let later = [packets(80_000, 'C', 3, 100), packets(80_000, 'B', 3, 100)].concat();
    assert_eq!(turns(&cell(), &[from_b.clone(), later.clone()]), "CBBBCC");
    // A packet more than 100 ms before these changes nothing.
    let mut all = [packets(0, 'B', 1, 100), from_b, later].concat();
    for packet in &mut all[1..] {
        packet.micros += 102_000;
    }
    assert_eq!(turns(&cell(), &[all]), "BCBBBCC");
}

// Linux, `ieee80211_txq_keep_active`: an empty queue goes on having turns for 100 ms, and pays.
#[test]
fn a_debt_is_paid_while_others_are_served() {
    let from_b = packets_from_b(500, 10);
    let turns_after = |from_b: &[Packet], micros| {
        let first = packets(0, 'B', 1, 100);
        let later = [packets(8_000, 'C', 120, 100), packets(micros, 'B', 3, 100)].concat();
        turns(&cell(), &[first, from_b.to_vec(), later])
    };
    // B owes nine rounds. At once they delay it, and a little later they are paid.
    assert_ne!(turns_after(&from_b, 8_100), turns_after(&[], 8_100));
    assert_eq!(turns_after(&from_b, 18_000), turns_after(&[], 18_000));
}

#[test]
fn broadcasts_take_turns_with_receivers() {
    // A broadcast at 6 Mbit/s takes 2 ms, eight rounds.
    let packets = [packets(0, 'B', 3, 1500), packets(0, '*', 3, 1500)];
    assert_eq!(turns(&cell(), &packets), "B*BB**");
}

#[test]
fn frames_are_full_although_flows_take_turns() {
    // The first packet finds the MAC free. B, whose second one comes after C's first, goes first.
    let mut config = cell();
    mimo(&mut config).ampdu_limit = Bytes(65_535);
    for discipline in [
        QueueConfig::DropTail { limit: QueueLimit::Packets(1000) },
        QueueConfig::FqCodel(FqCodelConfig::default()),
    ] {
        config.mac.queue_discipline = Some(discipline);
        let mixed = [packets(0, 'B', 1, 100), packets(0, 'C', 1, 100)].concat().repeat(8);
        let frames = frames(&config, &mixed);
        let frames: Vec<_> = frames.into_iter().map(|(to, packets, _)| (to, packets)).collect();
        let sent = |first, count| (0..count).map(|n| first + 2 * n).collect::<Vec<_>>();
        assert_eq!(frames, [('B', sent(0, 1)), ('B', sent(2_u32, 7)), ('C', sent(1, 8))]);
    }
}

#[test]
fn a_packet_that_a_frame_has_no_room_for_waits_for_the_next() {
    // Frames of up to 3000 B have two packets of 1000 B, and the third is first in the next.
    let mut config = cell();
    mimo(&mut config).ampdu_limit = Bytes(3000);
    let frames = frames(&config, &packets(0, 'B', 6, 1000));
    let frames: Vec<_> = frames.into_iter().map(|(_, packets, _)| packets).collect();
    assert_eq!(frames, [vec![0], vec![1, 2], vec![3, 4], vec![5]]);
}

#[test]
fn each_priority_has_a_queue_and_a_turn() {
    // CS4 and CS5 are both video. B has packets of both kinds, C of one.
    let mut config = cell();
    mimo(&mut config).ampdu_limit = Bytes(3000);
    mimo(&mut config).access_categories = Some(AccessCategories::default());
    let mut all = Vec::new();
    for (to, name) in [('B', "CS4"), ('B', "CS5"), ('C', "CS4")] {
        let mut packets = packets(0, to, 40, 1000);
        packets.iter_mut().for_each(|packet| packet.dscp = Dscp::named(name).unwrap());
        all.push(packets);
    }
    let frames = frames(&config, &all.concat());
    // The first packet is alone, as is the last of each queue with an odd number.
    assert!(frames.iter().filter(|(_, packets, _)| packets.len() == 1).count() <= 4);
    // Until the first queue is empty, each has sent as much: B twice as much as C.
    let halfway = frames[..30].iter();
    let (to_b, to_c): (Vec<_>, Vec<_>) = halfway.partition(|(to, ..)| *to == 'B');
    assert!(to_b.len().abs_diff(2 * to_c.len()) <= 2, "{} and {}", to_b.len(), to_c.len());
}

proptest! {
    /// While all have packets, no receiver has had more airtime than another by more than a round and
    /// the longest frame.
    #[test]
    fn airtime_is_shared_equally(sizes in prop::collection::vec(40_u64..=1500, 2..=4)) {
        let to_all = sizes.iter().zip('B'..).map(|(&size, to)| packets(0, to, 200, size));
        let frames = frames(&cell(), &to_all.collect::<Vec<_>>().concat());
        let longest = frames.iter().map(|(.., duration)| *duration).max().unwrap();
        let mut airtime: BTreeMap<char, (usize, Duration)> =
            sizes.iter().zip('B'..).map(|(_, to)| (to, (0, Duration::ZERO))).collect();
        for (to, packets, duration) in frames {
            let (sent, spent) = airtime.get_mut(&to).unwrap();
            *sent += packets.len();
            *spent += duration;
            if *sent == 200 {
                break;
            }
            let most = airtime.values().map(|&(_, spent)| spent).max().unwrap();
            let least = airtime.values().map(|&(_, spent)| spent).min().unwrap();
            prop_assert!(most - least <= Duration::from_micros(256) * 2 + longest, "{airtime:?}");
        }
    }
}
