//! What becomes of packets, one rule a test. 10.0.0.0/24 are the mobiles, 192.0.2.1 is the fixed
//! host.

use super::actions::pieces;
use super::signal::SETTLING;
use super::*;
use crate::config::{
    CopyMode, DataPath, FastPathMode, Group, Mark, Members, Mode, NfqueueConfig, Signals,
};
use crate::ledger::{Refused, Saved, WriteError};
use crate::packets::{Egress, Intercepted, PacketId, Verdict};
use crate::signals::{MobileSignal, SignalSource};
use airtcp_core::{
    AccEcnOption, AccEcnOrder, Addr, Bytes, Duration, EcnBytes, Flags, LinkSignal, Options,
    Segment, SeqNum,
};
use airtcp_edge::{
    Action, HoldoverConfig, InterfaceName, MTcpPlusConfig, MechanismConfig, MechanismNote,
    MechanismSnapshot, Side, Towards, WakeConfig,
};
use airtcp_record::{Contents, Input, Setup, Writer};
use airtcp_wire::{Checksums, decode, encode, outline};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, Once};

const MOBILE: MobileId = MobileId::Host(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7)));
/// Interfaces that are there; the first has index 1.
const INTERFACES: [&str; 3] = ["lan0", "wwan0", "wwan1"];
/// To the fixed and the mobile host; other MSS values than the default, to tell them apart.
const MSS: [u16; 2] = [1000, 500];

fn config(copy: CopyMode) -> GatewayConfig {
    let group = Group {
        name: "phones".to_owned(),
        members: Members::Mobiles {
            addresses: vec!["10.0.0.0/24".parse().unwrap()],
            interfaces: Vec::new(),
        },
        mechanism: MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
        copy,
        fast_path: Default::default(),
    };
    GatewayConfig {
        nfqueue: NfqueueConfig { queue: 1, length: 100 },
        mode: Mode::default(),
        data_path: DataPath::default(),
        mark: Mark::default(),
        state: "/nowhere".into(),
        control: "/nowhere".into(),
        limits: Limits {
            memory: Bytes(1 << 20),
            flows: 10,
            flows_per_mobile: 10,
            idle: Duration::from_secs(300),
        },
        groups: vec![group],
        signals: Signals::default(),
        metrics: None,
        record: None,
    }
}

/// Of packets that are not intercepted come copies.
fn copied() -> GatewayConfig {
    let mut config = config(CopyMode::Always);
    config.groups[0].fast_path = FastPathMode::Auto;
    config
}

struct Bench {
    dispatcher: Dispatcher,
    written: Written,
    /// Packets have gone on when they come.
    only_copies: bool,
    /// Over which interface packets come from each side.
    over: [Option<u32>; 2],
    /// What the fixed and the mobile host offer.
    mss: [u16; 2],
    /// Payload bytes of the packets that offloads will make of each.
    part: Option<u16>,
    now: Instant,
    effects: Vec<Effect>,
}

/// What was written down of each connection: the state it leads to.
#[derive(Clone, Debug, Default)]
struct Written(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    is_full: bool,
    connections: BTreeMap<Flow, MechanismSnapshot<SharedBytes>>,
    released: Vec<Flow>,
    /// To be written down anew.
    due: Vec<Flow>,
}

impl Keeper for Written {
    fn write(
        &mut self,
        _group: &str,
        notes: &[MechanismNote<SharedBytes>],
    ) -> Result<(), WriteError> {
        let mut written = self.0.lock().unwrap();
        if written.is_full {
            let flows = notes.iter().map(|note| *note.flow()).collect();
            let source = io::ErrorKind::StorageFull.into();
            return Err(WriteError { flows, dir: "/nowhere".into(), source });
        }
        for note in notes {
            match note.clone() {
                MechanismNote::Snapshot(flow, known) => {
                    drop(written.connections.insert(flow, *known))
                }
                MechanismNote::Input(flow, input) => {
                    written.connections.get_mut(&flow).unwrap().apply(input)
                }
                MechanismNote::Released(flow) => written.released.push(flow),
            }
        }
        Ok(())
    }

    fn settle(&mut self) -> Vec<Flow> {
        let mut notes = self.0.lock().unwrap();
        for flow in std::mem::take(&mut notes.released) {
            notes.connections.remove(&flow);
        }
        std::mem::take(&mut notes.due)
    }
}

fn interfaces() -> Interfaces {
    INTERFACES.iter().map(|name| name.parse().unwrap()).zip(1..).collect()
}

impl Bench {
    fn new(config: &GatewayConfig) -> Self {
        let written = Written::default();
        let keeper = Box::new(written.clone());
        let dispatcher = Dispatcher::new(config, (1, 2), &interfaces(), keeper).unwrap();
        let (now, effects) = (Instant::ZERO, Vec::new());
        let (mss, part, over) = (MSS, None, [None; 2]);
        Self { dispatcher, written, only_copies: false, over, mss, part, now, effects }
    }

    /// Takes over what an earlier process wrote down of this group.
    fn take_over(&mut self, earlier: &mut Self) -> [usize; 2] {
        self.take_over_group("phones", earlier)
    }

    fn take_over_group(&mut self, group: &str, earlier: &mut Self) -> [usize; 2] {
        let written = std::mem::take(&mut *earlier.written.0.lock().unwrap()).connections;
        let saved = |(flow, snapshot)| Saved { group: group.to_owned(), flow, snapshot };
        let connections = written.into_iter().map(saved).collect();
        self.dispatcher.take_over(self.now, connections, Vec::new(), &mut self.effects)
    }

    fn packet(&mut self, packet: Vec<u8>) -> Verdict {
        let (_, Flow { src, .. }) = outline(&packet).unwrap_or_default();
        let is_from_mobile = src.port == flow().dst.port;
        let [from_fixed, from_mobile] = self.over;
        let (input, output) = match is_from_mobile {
            true => (from_mobile, from_fixed),
            false => (from_fixed, from_mobile),
        };
        let intercepted = Intercepted {
            id: (!self.only_copies).then_some(PacketId(1)),
            packet: packet.into(),
            input,
            output,
            checksums: Checksums::Verify,
            datagram: self.part,
            silence: None,
            is_closing: false,
        };
        self.dispatcher.on_packet(self.now, &intercepted, &mut self.effects)
    }

    fn segment(&mut self, segment: &Segment<Vec<u8>>) -> Verdict {
        self.packet(encoded(segment))
    }

    fn signal(&mut self, signal: LinkSignal) {
        self.signal_about(MOBILE, signal);
    }

    fn signal_about(&mut self, mobile: MobileId, signal: LinkSignal) {
        let signal = MobileSignal { mobile, signal, source: SignalSource::Control };
        self.dispatcher.on_signal(self.now, signal, &mut self.effects);
    }

    fn says(&mut self, source: SignalSource, signal: LinkSignal) {
        let signal = MobileSignal { mobile: MOBILE, signal, source };
        self.dispatcher.on_signal(self.now, signal, &mut self.effects);
    }

    /// Handshake, and `len` bytes under way to the mobile.
    fn establish(&mut self, len: usize) {
        let syn = |mss| Options { mss: Some(mss), ..Options::default() };
        let mut from_mobile = from_mobile(99, 0);
        from_mobile.flags = Flags::SYN;
        from_mobile.ack = None;
        from_mobile.options = syn(self.mss[1]);
        assert_eq!(self.segment(&from_mobile), Verdict::Pass);
        let mut from_fixed = from_fixed(499, 0);
        from_fixed.flags = Flags::SYN;
        from_fixed.options = syn(self.mss[0]);
        assert_eq!(self.segment(&from_fixed), Verdict::Pass);
        assert_eq!(self.segment(&self::from_mobile(100, 0)), Verdict::Pass);
        assert_eq!(self.segment(&self::from_fixed(500, len)), Verdict::Pass);
    }

    fn injected(&mut self) -> Vec<(Side, Segment<Vec<u8>>)> {
        let inject = |effect| match effect {
            Effect::Inject { to, packet, .. } => {
                Some((to, decode(&packet, Checksums::Verify).expect("checksums are right")))
            }
            Effect::Watch { .. } | Effect::MirrorAll { .. } => None,
        };
        self.effects.drain(..).filter_map(inject).collect()
    }
}

fn encoded(segment: &Segment<Vec<u8>>) -> Vec<u8> {
    let mut packet = Vec::new();
    encode(segment, &mut packet).unwrap();
    packet
}

fn flow() -> Flow {
    let fixed = Addr::new("192.0.2.1".parse().unwrap(), 80);
    Flow { src: fixed, dst: Addr::new("10.0.0.7".parse().unwrap(), 5000) }
}

fn from_fixed(seq: u32, len: usize) -> Segment<Vec<u8>> {
    Segment {
        flow: flow(),
        seq: SeqNum(seq),
        ack: Some(SeqNum(100)),
        window: 1000,
        payload: (0..len).map(|n| n as u8).collect(),
        ..Segment::default()
    }
}

fn from_mobile(seq: u32, len: usize) -> Segment<Vec<u8>> {
    Segment {
        flow: flow().reversed(),
        seq: SeqNum(seq),
        ack: Some(SeqNum(500)),
        payload: vec![7; len],
        window: 2000,
        ..Segment::default()
    }
}

#[test]
fn what_is_no_tcp_segment_passes() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    assert_eq!(bench.packet(vec![0x45, 0, 0]), Verdict::Pass);
    let mut udp = Vec::new();
    airtcp_wire::encode_udp(&flow(), &vec![1_u8], &mut udp).unwrap();
    assert_eq!(bench.packet(udp), Verdict::Pass);
    let mut damaged = encoded(&from_fixed(1, 10));
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(bench.packet(damaged), Verdict::Pass);
    assert_eq!(
        (bench.dispatcher.counters.undecodable, bench.dispatcher.counters.unmatched),
        (2, 1)
    );
}

/// Wake, which gets copies alone.
fn waking() -> Bench {
    let mut config = copied();
    config.groups[0].mechanism = MechanismConfig::Wake(Default::default());
    Bench { only_copies: true, ..Bench::new(&config) }
}

#[test]
fn of_a_mobile_that_is_down_wake_is_shown_all_until_it_is_back() {
    let mut bench = waking();
    let mirror_all = |on| [Effect::MirrorAll { mobile: MOBILE, on }];
    bench.signal(LinkSignal::Down);
    assert_eq!(std::mem::take(&mut bench.effects), mirror_all(true));
    bench.signal(LinkSignal::Up);
    bench.now += SETTLING;
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    assert_eq!(bench.effects, mirror_all(false));
}

#[test]
fn what_wake_cannot_keep_passes_and_is_counted() {
    let mut bench = waking();
    let mut short = encoded(&from_fixed(1, 0));
    short.truncate(24);
    short[3] = 24;
    assert_eq!(bench.packet(short), Verdict::Pass);
    let mut large = Vec::new();
    airtcp_wire::encode_udp(&flow(), &vec![1; 4000], &mut large).unwrap();
    assert_eq!(bench.packet(large), Verdict::Pass);
    let counters = bench.dispatcher.counters;
    assert_eq!((counters.passed, counters.undecodable, counters.unsendable), (2, 1, 1));
    assert_eq!(bench.dispatcher.status(bench.now).flow_count, 0);
}

#[test]
fn a_silent_mobile_without_tcp_is_asked_by_echo_requests_of_the_fixed_host() {
    let mut bench = waking();
    let mut udp = Vec::new();
    airtcp_wire::encode_udp(&flow(), &vec![1_u8], &mut udp).unwrap();
    assert_eq!(bench.packet(udp.clone()), Verdict::Pass);
    let end = bench.now + Duration::from_secs(9);
    while let Some(due) = bench.dispatcher.next_deadline().filter(|&due| due < end) {
        bench.now = due;
        bench.dispatcher.on_timer(due, &mut bench.effects);
    }
    let mut echo_request = Vec::new();
    airtcp_wire::encode_echo_request(&flow(), 0xa17c, &mut echo_request).unwrap();
    let sent = |wanted: &[u8]| {
        let packets = bench.effects.iter().filter_map(|effect| match effect {
            Effect::Inject { to: Side::Mobile, packet, .. } => Some(packet),
            _ => None,
        });
        packets.filter(|packet| packet.as_slice() == wanted).count()
    };
    // From 5 s on retries are further apart than keep-alives.
    assert!((20..40).contains(&sent(&echo_request)), "{:?}", bench.effects);
    assert!(sent(&udp) > 50, "{:?}", bench.effects);
}

#[test]
fn who_is_in_no_group_is_left_alone() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    let mut other = from_fixed(1, 10);
    other.flow.dst.ip = "10.0.1.7".parse().unwrap();
    assert_eq!(bench.segment(&other), Verdict::Pass);
    assert_eq!(bench.dispatcher.counters.unmatched, 1);
}

#[test]
fn an_outage_freezes_the_fixed_host_and_the_copies_are_replayed_in_the_mobile_s_mss() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(1200);
    assert_eq!(bench.effects, []);
    bench.signal(LinkSignal::Down);
    let injected = bench.injected();
    let (side, promise) = injected.last().unwrap();
    assert_eq!((*side, promise.ack, promise.window), (Side::Fixed, Some(SeqNum(1700)), 0));
    bench.signal(LinkSignal::Up);
    let injected = bench.injected();
    let cut: Vec<_> = injected.iter().map(|(to, s)| (*to, s.seq, s.payload.len())).collect();
    let pieces = [(500, 500), (1000, 500), (1500, 200)];
    assert_eq!(cut, pieces.map(|(seq, len)| (Side::Mobile, SeqNum(seq), len)));
    let bytes: Vec<u8> = injected.into_iter().flat_map(|(_, s)| s.payload).collect();
    assert_eq!(bytes, from_fixed(500, 1200).payload);
}

#[test]
fn what_is_replayed_is_no_larger_than_what_arrived() {
    // A router has clamped the MSS after the gateway saw it, or the path's MTU is smaller.
    let mut bench = Bench::new(&copied());
    (bench.mss, bench.part, bench.only_copies) = ([1460; 2], Some(1300), true);
    bench.establish(6500);
    bench.segment(&Segment { ack: Some(SeqNum(7000)), ..from_mobile(100, 0) });
    bench.segment(&from_fixed(7000, 6500));
    bench.signal(LinkSignal::Down);
    bench.injected();
    bench.effects.clear();
    bench.signal(LinkSignal::Up);
    let sizes: Vec<_> = bench.injected().into_iter().map(|(_, s)| s.payload.len()).collect();
    assert_eq!(sizes, [1300; 5]);
}

/// What a router behind the gateway says of a packet of the fixed host.
fn fragmentation_needed(mtu: u16, quote: &[u8]) -> Vec<u8> {
    let quote = &quote[..28];
    let mut packet = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 254];
    packet.extend(&quote[12..16]);
    packet.extend([3, 4, 0, 0, 0, 0]);
    packet.extend(mtu.to_be_bytes());
    packet.extend(quote);
    let words = packet[20..].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = !((sum >> 16) + (sum & 0xffff)) as u16;
    packet[22..24].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// 1,400 bytes are under way in one segment to a mobile that is down, and then a router says this
/// of a segment of that length that begins there. The sizes of what is replayed, and whether the
/// router was believed.
fn replayed_after(seq: u32, message: impl Fn(&[u8]) -> Vec<u8>) -> (Vec<usize>, bool) {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.mss = [1460; 2];
    bench.establish(1400);
    bench.segment(&Segment { ack: Some(SeqNum(1900)), ..from_mobile(100, 0) });
    bench.segment(&from_fixed(1900, 1400));
    bench.signal(LinkSignal::Down);
    bench.injected();
    let message = message(&encoded(&from_fixed(seq, 1400)));
    assert_eq!(bench.packet(message), Verdict::Pass, "the fixed host needs it, too");
    assert_eq!(bench.injected(), []);
    bench.signal(LinkSignal::Up);
    let sizes = bench.injected().into_iter().map(|(_, s)| s.payload.len()).collect();
    let Counters { too_big_accepted, too_big_ignored, passed, .. } = bench.dispatcher.counters;
    assert_eq!((too_big_accepted + too_big_ignored, passed), (1, 7));
    (sizes, too_big_accepted == 1)
}

// RFC 1191, RFC 5927 §4.1.
#[test]
fn a_router_that_returns_a_segment_in_flight_is_believed() {
    let smaller = replayed_after(1900, |quote| fragmentation_needed(1000, quote));
    assert_eq!(smaller, (vec![960, 440], true));
    let larger = replayed_after(1900, |quote| fragmentation_needed(1439, quote));
    assert_eq!(larger, (vec![1399, 1], true));
    let (sizes, is_believed) = replayed_after(1900, |quote| fragmentation_needed(68, quote));
    assert!(is_believed && sizes[0] == 88, "{sizes:?}");
}

#[test]
fn a_router_that_returns_what_is_not_in_flight_is_not_believed() {
    let all = (vec![1400], false);
    for seq in [1899, 3300, 1900 + (1 << 31)] {
        assert_eq!(replayed_after(seq, |quote| fragmentation_needed(1000, quote)), all, "{seq}");
    }
    let changed = |at: usize| {
        move |quote: &[u8]| {
            let mut quote = quote.to_vec();
            quote[at] ^= 1;
            fragmentation_needed(1000, &quote)
        }
    };
    // Protocol, mobile, ports.
    for at in [9, 19, 21, 23] {
        assert_eq!(replayed_after(1900, changed(at)), all, "{at}");
    }
    let reversed = |_: &[u8]| fragmentation_needed(1000, &encoded(&from_mobile(100, 1400)));
    assert_eq!(replayed_after(1900, reversed), all);
    assert_eq!(replayed_after(1900, |quote| fragmentation_needed(1440, quote)), all, "it fits");
    let cut_off = |quote: &[u8]| {
        let mut message = fragmentation_needed(1000, quote);
        message.truncate(50);
        message[3] = 50;
        message
    };
    assert_eq!(replayed_after(1900, cut_off), all);
}

#[test]
fn a_router_behind_another_interface_is_not_believed() {
    let mut config = config(CopyMode::Always);
    let Members::Mobiles { interfaces, .. } = &mut config.groups[0].members else { unreachable!() };
    interfaces.push("lan0".parse().unwrap());
    let mut bench = Bench::new(&config);
    bench.over = [Some(2), Some(1)];
    bench.establish(1400);
    let message = fragmentation_needed(1000, &encoded(&from_fixed(500, 1400)));
    // It has no ports: as if the fixed host had sent it.
    bench.packet(message);
    assert_eq!(bench.dispatcher.counters.too_big_ignored, 1);
}

#[test]
fn interfaces_of_mobiles_come_and_go() {
    let mut config = config(CopyMode::Always);
    let Members::Mobiles { interfaces, .. } = &mut config.groups[0].members else { unreachable!() };
    interfaces.push("ppp*".parse().unwrap());
    let mut bench = Bench::new(&config);
    bench.over = [Some(2), Some(9)];
    let segments = |bench: &mut Bench| {
        bench.packet(encoded(&from_fixed(500, 100)));
        let counters = &bench.dispatcher.counters;
        [counters.passed, counters.unmatched]
    };
    let ppp0 = "ppp0".parse().unwrap();
    assert_eq!(segments(&mut bench), [0, 1], "it is not there yet");
    bench.dispatcher.set_index("eth1".parse().unwrap(), Some(9));
    assert_eq!(segments(&mut bench), [0, 2], "another one is");
    bench.dispatcher.set_index(ppp0, Some(9));
    assert_eq!(segments(&mut bench), [1, 2]);
    bench.dispatcher.set_index(ppp0, Some(10));
    assert_eq!(segments(&mut bench), [1, 3], "made anew");
    bench.dispatcher.set_index(ppp0, None);
    bench.over[1] = Some(10);
    assert_eq!(segments(&mut bench), [1, 4]);
    let there = [(ppp0, 10)].into();
    bench.dispatcher.reload(bench.now, &config, &there, &mut bench.effects).unwrap();
    assert_eq!(segments(&mut bench), [2, 4], "after a reload it is known");
}

#[test]
fn what_the_first_link_does_not_take_is_cut_once_more() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    let packet = encoded(&from_fixed(500, 1200));
    assert_eq!(bench.dispatcher.cut_smaller(Side::Mobile, &packet).len(), 3);
    let small = encoded(&from_fixed(500, 500));
    assert!(
        bench.dispatcher.cut_smaller(Side::Mobile, &small).is_empty(),
        "nothing smaller is left"
    );
}

#[test]
fn a_forged_syn_does_not_change_the_size_of_replayed_segments() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(1000);
    for mut forged in [from_mobile(7, 0), from_fixed(7, 0)] {
        forged.flags = Flags::SYN;
        forged.options.mss = Some(1);
        bench.segment(&forged);
        forged.ack = None;
        bench.segment(&forged);
    }
    bench.signal(LinkSignal::Down);
    bench.signal(LinkSignal::Up);
    let replayed = bench.injected().into_iter().filter(|(to, _)| *to == Side::Mobile);
    let sizes: Vec<usize> = replayed.map(|(_, segment)| segment.payload.len()).collect();
    assert_eq!(sizes, [500, 500]);
}

#[test]
fn frozen_data_is_kept_and_not_passed() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    bench.injected();
    assert_eq!(bench.segment(&from_fixed(600, 100)), Verdict::Drop);
    assert_eq!(bench.injected().last().unwrap().1.ack, Some(SeqNum(700)));
    let Counters { held, dropped, .. } = bench.dispatcher.counters;
    assert_eq!((held, dropped), (1, 0), "it is not lost");
    assert_eq!(bench.segment(&from_mobile(100, 0)), Verdict::Drop, "answered by the gateway");
    let Counters { held, dropped, .. } = bench.dispatcher.counters;
    assert_eq!((held, dropped), (1, 1));
}

/// The packet of a segment with an option of Multipath TCP.
fn multipath(mut segment: Segment<Vec<u8>>) -> Vec<u8> {
    segment.options.timestamps = Some(Default::default());
    let mut packet = encoded(&segment);
    // The option behind two NOPs becomes one of Multipath TCP; the sum of its words changes by 22.
    assert_eq!(packet[42], 8, "timestamps");
    packet[42] = 30;
    let checksum = u16::from_be_bytes([packet[36], packet[37]]);
    let (changed, wraps) = checksum.overflowing_sub(22 << 8);
    packet[36..38].copy_from_slice(&(changed - u16::from(wraps)).to_be_bytes());
    packet
}

#[test]
fn a_forged_option_does_not_break_a_promise() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    bench.packet(multipath(from_fixed(600, 10)));
    bench.injected();
    bench.signal(LinkSignal::Up);
    assert_eq!(bench.injected()[0].1.seq, SeqNum(500), "what was promised is replayed");
    assert_eq!(bench.dispatcher.counters.foreign, 0);
}

#[test]
fn a_connection_that_nobody_else_can_speak_for_is_left_alone() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    let packet = multipath(from_mobile(100, 0));
    assert_eq!(bench.packet(packet), Verdict::Pass);
    bench.segment(&from_mobile(100, 0));
    bench.segment(&from_fixed(500, 100));
    bench.signal(LinkSignal::Down);
    assert_eq!((bench.dispatcher.counters.foreign, bench.effects.len()), (3, 0));
    let mut syn = from_mobile(99, 0);
    (syn.flags, syn.ack) = (Flags::SYN, None);
    bench.segment(&syn);
    assert_eq!(bench.dispatcher.counters.passed, 0, "it may be forged");
    let syn_ack = Segment { flags: Flags::SYN, ..from_fixed(499, 0) };
    bench.segment(&syn_ack);
    assert_eq!(bench.dispatcher.counters.passed, 1, "another connection");
}

/// A segment of a host with AccECN (RFC 9768): its counter, and the option if it has one.
fn accurate(ace: u8, has_option: bool, segment: Segment<Vec<u8>>) -> Segment<Vec<u8>> {
    let bits = [(4, Flags::AE), (2, Flags::CWR), (1, Flags::ECE)];
    let flags = bits.into_iter().filter(|(bit, _)| ace & bit != 0).map(|(_, flag)| flag).collect();
    let option = AccEcnOption::new(AccEcnOrder::Ect1First, &EcnBytes::INITIAL, 3);
    let accecn = has_option.then_some(option);
    Segment { flags, options: Options { accecn, ..segment.options }, ..segment }
}

/// The counter that a segment shows.
fn ace(segment: &Segment<Vec<u8>>) -> Flags {
    segment.flags & (Flags::AE | Flags::CWR | Flags::ECE)
}

/// A bench with a connection with AccECN: the fixed host's counter is 5, and the mobile's `ace`.
/// Both send the option with their first segment alone, or on every one.
fn with_accecn(config: &GatewayConfig, mobile_ace: u8, always: bool) -> Bench {
    let mut bench = Bench::new(config);
    assert_eq!(bench.segment(&accurate(5, true, from_mobile(100, 0))), Verdict::Pass);
    assert_eq!(bench.segment(&accurate(5, true, from_fixed(500, 100))), Verdict::Pass);
    let acknowledged = Segment { ack: Some(SeqNum(600)), ..from_mobile(100, 0) };
    assert_eq!(bench.segment(&accurate(mobile_ace, always, acknowledged)), Verdict::Pass);
    assert_eq!(bench.segment(&accurate(5, always, from_fixed(600, 100))), Verdict::Pass);
    assert_eq!(bench.dispatcher.counters.foreign, 0);
    bench
}

/// RFC 9768 §3.2.3: the option may be missing from any segment. §3.2.2: the counter is on every
/// one, in three flags, and an acknowledgement with another than the mobile's would report marks
/// that never were.
#[test]
fn a_connection_with_accecn_is_protected_whichever_segments_have_the_option() {
    let mechanisms = [
        MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
        MechanismConfig::Holdover(HoldoverConfig::default()),
    ];
    for (mechanism, always) in mechanisms.into_iter().flat_map(|m| [(m, true), (m, false)]) {
        let mut config = config(CopyMode::Always);
        config.groups[0].mechanism = mechanism;
        for mobile_ace in 0..8 {
            let mut bench = with_accecn(&config, mobile_ace, always);
            bench.signal(LinkSignal::Down);
            bench.segment(&accurate(5, always, from_fixed(700, 100)));
            bench.segment(&accurate(5, always, from_fixed(600, 100)));
            let own = ace(&accurate(mobile_ace, false, from_mobile(100, 0)));
            let injected = bench.injected().into_iter();
            let acks: Vec<_> = injected.filter(|(to, _)| *to == Side::Fixed).collect();
            assert!(!acks.is_empty(), "{mechanism:?}");
            for (_, ack) in &acks {
                assert_eq!((ace(ack), ack.options.accecn), (own, None));
            }
            bench.signal(LinkSignal::Up);
            let injected = bench.injected();
            let mut replayed = injected.iter().filter(|(to, _)| *to == Side::Mobile);
            let (_, first) = replayed.next().expect("what was held is replayed");
            let counter = Flags::AE | Flags::ECE;
            assert_eq!((first.seq, ace(first)), (SeqNum(600), counter));
            assert_eq!(first.options.accecn, None, "its counts are old");
        }
    }
}

#[test]
fn the_counter_of_accecn_outlives_the_gateway() {
    let mut before = with_accecn(&config(CopyMode::Always), 2, false);
    before.signal(LinkSignal::Down);
    let mut after = Bench::new(&config(CopyMode::Always));
    assert_eq!(after.take_over(&mut before), [1, 0]);
    after.signal(LinkSignal::Down);
    after.segment(&accurate(5, false, from_fixed(700, 100)));
    let (to, ack) = after.injected().pop().unwrap();
    assert_eq!((to, ace(&ack)), (Side::Fixed, Flags::CWR));
}

#[test]
fn wake_keeps_segments_with_accecn_as_their_sender_made_them() {
    let mut bench = waking();
    let newest = accurate(7, true, from_fixed(600, 100));
    bench.segment(&newest);
    bench.signal(LinkSignal::Down);
    bench.signal(LinkSignal::Up);
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    assert_eq!(bench.injected(), [(Side::Mobile, newest)]);
}

#[test]
fn a_mobile_that_owes_an_answer_and_is_silent_is_down_until_it_is_heard() {
    let mut config = config(CopyMode::Always);
    config.signals.silence = Some(Duration::from_secs(1));
    let mut bench = Bench::new(&config);
    bench.establish(100);
    bench.now = Instant::ZERO + Duration::from_secs(1);
    assert_eq!(bench.dispatcher.next_deadline(), Some(bench.now));
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    assert_eq!(bench.injected().last().unwrap().1.window, 0);
    assert_eq!(bench.segment(&from_mobile(100, 0)), Verdict::Drop, "until it has all");
    let replayed = bench.injected();
    assert_eq!((replayed[0].0, replayed[0].1.seq), (Side::Mobile, SeqNum(500)));
}

#[test]
fn a_mobile_is_watched_from_fading_until_all_is_settled() {
    let mut bench = Bench::new(&config(CopyMode::WhenFading));
    bench.signal(LinkSignal::Fading);
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: true }]);
    bench.effects.clear();
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    bench.signal(LinkSignal::Up);
    bench.injected();
    bench.now += SETTLING;
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    let lacking = |effect: &Effect| matches!(effect, Effect::Inject { .. });
    assert!(bench.effects.iter().all(lacking), "the mobile lacks what was promised");
    let all = Segment { ack: Some(SeqNum(600)), ..from_mobile(100, 0) };
    assert_eq!(bench.segment(&all), Verdict::Pass);
    bench.effects.clear();
    bench.now += SETTLING;
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: false }]);
    assert_eq!(bench.dispatcher.unwatch, None);
}

#[test]
fn copies_do_for_an_outage_what_the_packets_do() {
    let injected = [false, true].map(|only_copies| {
        let mut bench = Bench::new(&copied());
        bench.only_copies = only_copies;
        bench.establish(100);
        bench.signal(LinkSignal::Down);
        let watched = Effect::Watch { mobile: MOBILE, watched: true };
        assert_eq!(bench.effects.iter().filter(|effect| **effect == watched).count(), 1);
        // The last one until the packets themselves come.
        bench.segment(&from_fixed(600, 50));
        bench.only_copies = false;
        assert_eq!(bench.segment(&from_fixed(650, 50)), Verdict::Drop);
        bench.signal(LinkSignal::Up);
        bench.injected()
    });
    assert_eq!(injected[0], injected[1]);
    let replayed = injected[0].iter().filter(|(to, _)| *to == Side::Mobile);
    assert_eq!(replayed.map(|(_, segment)| segment.payload.len()).sum::<usize>(), 200);
}

#[test]
fn a_mobile_is_watched_from_the_first_copy_on_that_should_not_have_gone_on() {
    let mut bench = Bench::new(&copied());
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    bench.signal(LinkSignal::Up);
    bench.injected();
    // As if the rules had been too slow.
    bench.dispatcher.watched.clear();
    bench.only_copies = true;
    let lacking = Segment { ack: Some(SeqNum(550)), ..from_mobile(100, 0) };
    bench.segment(&lacking);
    assert!(bench.effects.contains(&Effect::Watch { mobile: MOBILE, watched: true }));
    assert_eq!(bench.dispatcher.counters.dropped, 0, "it has gone on");
    bench.effects.clear();
    bench.segment(&Segment { ack: Some(SeqNum(600)), ..lacking });
    bench.now += SETTLING;
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: false }]);
}

#[test]
fn copies_are_only_for_groups_that_get_some() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.only_copies = true;
    bench.establish(100);
    let status = bench.dispatcher.status(bench.now);
    assert_eq!((status.flow_count, status.groups[0].path.as_str()), (0, "nfqueue"));
    let mut bench = Bench::new(&copied());
    bench.only_copies = true;
    bench.establish(100);
    let status = bench.dispatcher.status(bench.now);
    assert_eq!((status.flow_count, status.groups[0].path.as_str()), (1, "mirror"));
}

#[test]
fn a_segment_is_cut_to_what_the_receiver_takes() {
    let mut segment = from_fixed(u32::MAX, 25);
    segment.flags = Flags::FIN | Flags::PSH | Flags::CWR;
    segment.options.timestamps = Some(Default::default());
    let cut: Vec<_> =
        pieces(segment, 22, false).map(|s| (s.seq.0, s.flags, s.payload.len())).collect();
    let (first, last) = (Flags::CWR, Flags::FIN | Flags::PSH);
    assert_eq!(cut, [(u32::MAX, first, 10), (9, Flags::empty(), 10), (19, last, 5)]);
    assert_eq!(pieces(from_fixed(1, 0), 100, false).count(), 1, "without payload there is one");
    let counted = accurate(7, false, from_fixed(1, 20));
    assert!(
        pieces(counted, 10, false).all(|piece| piece.flags.contains(Flags::CWR)),
        "of the counter"
    );
}

/// A counter of 2 is CWR alone, as RFC 3168 has it: only earlier segments tell that it is a counter.
#[test]
fn all_pieces_have_the_counter_of_accecn_though_it_looks_like_rfc_3168() {
    let mut config = config(CopyMode::Always);
    config.groups[0].mechanism = MechanismConfig::Holdover(HoldoverConfig::default());
    let mut bench = with_accecn(&config, 5, false);
    bench.signal(LinkSignal::Down);
    bench.segment(&accurate(2, false, from_fixed(700, 3000)));
    bench.signal(LinkSignal::Up);
    let replayed = bench
        .injected()
        .into_iter()
        .filter(|(to, s)| *to == Side::Mobile && s.seq.at_or_after(SeqNum(700)));
    let counters: Vec<_> = replayed.map(|(_, segment)| ace(&segment)).collect();
    assert!(counters.len() > 1, "it was cut");
    assert!(counters.iter().all(|&counter| counter == Flags::CWR), "{counters:?}");
}

#[test]
fn a_promise_that_cannot_be_written_down_is_not_given() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.written.0.lock().unwrap().is_full = true;
    bench.signal(LinkSignal::Down);
    assert_eq!(bench.injected(), []);
    assert_eq!(bench.dispatcher.counters.unkept, 1);
    bench.written.0.lock().unwrap().is_full = false;
    bench.segment(&from_fixed(500, 100));
    let injected = bench.injected();
    let (_, answer) = injected.iter().find(|(to, _)| *to == Side::Fixed).unwrap();
    assert_eq!((answer.ack, answer.window), (Some(SeqNum(600)), 0), "the next answer promises it");
    assert_eq!(bench.written.0.lock().unwrap().connections.len(), 1);
}

#[test]
fn another_process_goes_on_with_what_was_promised() {
    let config = config(CopyMode::WhenFading);
    let mut first = Bench::new(&config);
    first.establish(100);
    first.signal(LinkSignal::Down);
    first.segment(&from_fixed(600, 50));
    let mut second = Bench::new(&config);
    assert_eq!(second.take_over(&mut first), [1, 0]);
    assert_eq!(second.effects, [Effect::Watch { mobile: MOBILE, watched: true }]);
    assert_eq!(second.written.0.lock().unwrap().connections.len(), 1, "and writes it down again");
    let (signal, source) = (LinkSignal::Up, SignalSource::Carrier);
    let signal = MobileSignal { mobile: MOBILE, signal, source };
    second.dispatcher.on_signal(second.now, signal, &mut second.effects);
    let replayed: Vec<u8> = second.injected().into_iter().flat_map(|(_, s)| s.payload).collect();
    assert_eq!(replayed, [from_fixed(500, 100).payload, from_fixed(600, 50).payload].concat());
}

#[test]
fn a_frozen_connection_goes_on_in_another_process_though_nothing_was_promised() {
    for mechanism in [
        MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
        MechanismConfig::Holdover(HoldoverConfig::default()),
    ] {
        let mut config = config(CopyMode::WhenFading);
        config.groups[0].mechanism = mechanism;
        let mut first = Bench::new(&config);
        first.establish(100);
        first.signal(LinkSignal::Fading);
        first.segment(&Segment { ack: Some(SeqNum(600)), ..from_mobile(100, 0) });
        assert_eq!(first.dispatcher.status(first.now).committed, 0);
        let mut second = Bench::new(&config);
        assert_eq!(second.take_over(&mut first), [1, 0]);
        second.effects.clear();
        second.signal(LinkSignal::Up);
        let [(to, update)] = &second.injected()[..] else { panic!("one ACK") };
        assert_eq!((*to, update.ack), (Side::Fixed, Some(SeqNum(600))));
        assert!(update.window > 0, "the window is open again");
    }
}

#[test]
fn an_outage_that_began_before_the_start_goes_on_in_status_log_and_metrics() {
    for mechanism in [
        MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
        MechanismConfig::Holdover(HoldoverConfig::default()),
    ] {
        let mut config = config(CopyMode::Always);
        config.groups[0].mechanism = mechanism;
        let mut first = Bench::new(&config);
        first.establish(100);
        first.wait(SECOND);
        first.signal(LinkSignal::Down);
        let mut second = Bench::new(&config);
        second.now = first.now + SECOND * 30;
        let lines = logged(|| {
            second.take_over(&mut first);
            let status = second.dispatcher.status(second.now);
            let [outage] = &status.outages[..] else { panic!("{status:?}") };
            let told = (outage.mobile.as_str(), outage.group.as_str(), outage.cause.as_str());
            assert_eq!(told, ("10.0.0.7", "phones", "earlier-gateway"));
            assert_eq!((outage.seconds, status.flows[0].since), (30.0, Some(30.0)));
            assert_eq!(second.outages("earlier-gateway"), (1, 0, 0.0));
            // Somebody who reports it now does not begin another.
            second.says(SignalSource::Carrier, LinkSignal::Down);
            second.wait(SECOND * 2);
            second.says(SignalSource::Carrier, LinkSignal::Up);
            assert_eq!(second.outages("earlier-gateway"), (1, 1, 32.0));
        });
        assert_eq!(
            lines,
            [
                "outage of 10.0.0.7 (phones) began before this start, cause: earlier-gateway, 1 connection interrupted",
                "outage of 10.0.0.7 (phones) ended after 32.0 s, cause: earlier-gateway, 1 connection interrupted"
            ]
        );
    }
}

#[test]
fn a_link_that_only_faded_before_the_start_is_in_no_outage() {
    let mut first = Bench::new(&config(CopyMode::Always));
    first.establish(100);
    first.signal(LinkSignal::Fading);
    let mut second = Bench::new(&config(CopyMode::Always));
    assert_eq!(second.take_over(&mut first), [1, 0]);
    assert_eq!(second.dispatcher.status(second.now).outages, []);
}

/// What an earlier gateway with M-TCP+ froze, promising 100 bytes.
fn frozen() -> Bench {
    let mut first = Bench::new(&config(CopyMode::Always));
    first.establish(100);
    first.signal(LinkSignal::Down);
    first
}

#[test]
fn a_renamed_group_keeps_its_connections() {
    assert_eq!(Bench::new(&renamed()).take_over(&mut frozen()), [1, 0]);
}

#[test]
fn connections_that_no_group_can_go_on_with_are_reset_at_both_ends() {
    let mut other = config(CopyMode::Always);
    other.groups[0].mechanism = MechanismConfig::Holdover(HoldoverConfig::default());
    for config in [elsewhere(), other] {
        let mut second = Bench::new(&config);
        assert_eq!(second.take_over(&mut frozen()), [0, 1]);
        second.effects.clear();
        second.dispatcher.on_timer(second.now, &mut second.effects);
        let injected = second.injected().into_iter().filter(|(_, s)| s.flags == Flags::RST);
        let resets: Vec<_> = injected.map(|(to, s)| (to, s.flags, s.seq)).collect();
        let expected = [(Side::Fixed, SeqNum(100)), (Side::Mobile, SeqNum(500))];
        assert_eq!(resets, expected.map(|(to, seq)| (to, Flags::RST, seq)));
        assert_eq!(second.dispatcher.counters.refused, 1);
        assert_eq!(second.dispatcher.next_deadline(), Some(second.now + Duration::from_secs(1)));
    }
}

#[test]
fn what_the_hosts_of_an_unreadable_connection_send_is_refused_until_both_know() {
    let mut bench = Bench::new(&config(CopyMode::WhenFading));
    let refused = Refused { flow: flow(), why: "damaged".to_owned(), resets: None };
    bench.dispatcher.take_over(bench.now, Vec::new(), vec![refused], &mut bench.effects);
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: true }]);
    bench.effects.clear();
    assert_eq!(bench.segment(&from_fixed(599, 1)), Verdict::Drop);
    assert_eq!(bench.segment(&from_mobile(100, 0)), Verdict::Drop);
    let resets: Vec<_> = bench.injected().into_iter().map(|(to, s)| (to, s.flags, s.seq)).collect();
    assert_eq!(
        resets,
        [
            (Side::Fixed, Flags::RST, from_fixed(599, 1).ack.unwrap()),
            (Side::Mobile, Flags::RST, from_mobile(100, 0).ack.unwrap())
        ]
    );
    bench.now += SETTLING * 2;
    bench.effects.clear();
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: false }]);
    assert_eq!(bench.written.0.lock().unwrap().released, [flow()]);
}

#[test]
fn what_is_due_is_written_down_anew() {
    let mut bench = frozen();
    let mut written = bench.written.0.lock().unwrap();
    let known = written.connections.remove(&flow());
    written.due.push(flow());
    drop(written);
    bench.dispatcher.settle();
    assert_eq!(bench.written.0.lock().unwrap().connections.remove(&flow()), known);
}

/// The mobile's group under another name.
fn renamed() -> GatewayConfig {
    let mut renamed = config(CopyMode::Always);
    renamed.groups[0].name = "tablets".to_owned();
    renamed
}

/// Without the mobile.
fn elsewhere() -> GatewayConfig {
    let mut config = config(CopyMode::Always);
    let addresses = vec!["10.9.0.0/24".parse().unwrap()];
    config.groups[0].members = Members::Mobiles { addresses, interfaces: Vec::new() };
    config
}

/// An exception for the mobile in front of its group.
fn with_exception(mechanism: MechanismConfig) -> GatewayConfig {
    let mut config = renamed();
    config.groups[0].mechanism = mechanism;
    config.groups.extend(self::config(CopyMode::Always).groups);
    config
}

#[test]
fn a_reload_hands_over_what_is_held_up_to_the_group_that_has_the_mobile_now() {
    let plus = MechanismConfig::MTcpPlus(MTcpPlusConfig::default());
    for config in [renamed(), with_exception(plus)] {
        let mut bench = frozen();
        bench
            .dispatcher
            .reload(bench.now, &config, &Interfaces::new(), &mut bench.effects)
            .unwrap();
        bench.dispatcher.settle();
        assert_eq!(bench.written.0.lock().unwrap().connections.len(), 1);
        let status = bench.dispatcher.status(bench.now);
        assert_eq!((status.flow_count, status.committed), (1, 1));
        assert_eq!(status.flows[0].group, "tablets");
        bench.effects.clear();
        bench.signal(LinkSignal::Up);
        let replayed = bench.injected().into_iter().flat_map(|(_, segment)| segment.payload);
        assert_eq!(replayed.collect::<Vec<_>>(), from_fixed(500, 100).payload);
    }
}

#[test]
fn a_reload_that_leaves_what_is_held_up_to_nobody_is_refused() {
    let holdover = MechanismConfig::Holdover(HoldoverConfig::default());
    let mut other = config(CopyMode::Always);
    other.groups[0].mechanism = holdover;
    let none = GatewayConfig { groups: Vec::new(), ..config(CopyMode::Always) };
    for config in [elsewhere(), with_exception(holdover), other, none] {
        let mut bench = frozen();
        let error =
            bench.dispatcher.reload(bench.now, &config, &Interfaces::new(), &mut bench.effects);
        let error = error.unwrap_err();
        assert!(matches!(error, DispatchError::Interrupted { connections: 1, .. }), "{error}");
        bench.effects.clear();
        bench.signal(LinkSignal::Up);
        assert_eq!(bench.injected()[0].1.seq, SeqNum(500), "it goes on as before");
    }
}

#[test]
fn what_was_written_down_is_forgotten_when_all_else_is_done() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    bench.signal(LinkSignal::Up);
    bench.effects.clear();
    bench.segment(&Segment { ack: Some(SeqNum(600)), ..from_mobile(100, 0) });
    assert_eq!(bench.written.0.lock().unwrap().connections.len(), 1);
    bench.dispatcher.settle();
    assert_eq!(bench.written.0.lock().unwrap().connections.len(), 0);
}

#[test]
fn a_reload_keeps_connections() {
    let mut config = config(CopyMode::Always);
    let mut bench = Bench::new(&config);
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    bench.injected();
    config.limits.flows = 1;
    bench.dispatcher.reload(bench.now, &config, &Interfaces::new(), &mut bench.effects).unwrap();
    bench.signal(LinkSignal::Up);
    assert_eq!(bench.injected()[0].1.seq, SeqNum(500));
    bench.segment(&Segment { ack: Some(SeqNum(600)), ..from_mobile(100, 0) });
    bench.dispatcher.reload(bench.now, &renamed(), &Interfaces::new(), &mut bench.effects).unwrap();
    assert_eq!(bench.dispatcher.status(bench.now).flow_count, 0);
}

/// A recording in memory.
struct Recording {
    writer: Writer,
    file: Arc<Mutex<Vec<u8>>>,
}

impl Recording {
    fn new(now: Instant) -> Self {
        let writer = Writer::new(now, std::time::Duration::ZERO, Contents::Headers);
        Self { writer, file: Arc::default() }
    }
}

impl Recorder for Recording {
    fn begin(&mut self, now: Instant, group: u32, setup: &Setup) {
        self.writer.begin(now, group, setup);
    }

    fn reconfigure(&mut self, now: Instant, group: u32, setup: &Setup) {
        self.writer.reconfigure(now, group, setup);
    }

    fn restore(&mut self, now: Instant, group: u32, connections: u64) {
        self.writer.restore(now, group, connections);
    }

    fn step(
        &mut self,
        now: Instant,
        group: u32,
        input: &Input<&[u8]>,
        actions: &[Action<SharedBytes>],
    ) {
        self.writer.step(now, group, input, actions);
    }

    fn flush(&mut self) {
        self.file.lock().unwrap().extend(self.writer.take());
    }

    fn finish(mut self: Box<Self>) -> io::Result<u64> {
        self.flush();
        Ok(0)
    }
}

#[test]
fn what_is_done_is_recorded_and_replays_across_reloads() {
    let mut config = config(CopyMode::Always);
    let mut bench = Bench::new(&config);
    let recording = Recording::new(bench.now);
    let file = recording.file.clone();
    bench.dispatcher.record(bench.now, &config.limits, Box::new(recording));
    bench.establish(1200);
    bench.signal(LinkSignal::Down);
    config.limits.flows = 1;
    bench.dispatcher.reload(bench.now, &config, &Interfaces::new(), &mut bench.effects).unwrap();
    assert_eq!(bench.segment(&from_fixed(1700, 100)), Verdict::Drop);
    bench.now = bench.dispatcher.next_deadline().unwrap();
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    bench.signal(LinkSignal::Up);
    bench.segment(&Segment { ack: Some(SeqNum(1800)), ..from_mobile(100, 0) });
    config.groups[0].name = "tablets".to_owned();
    bench.dispatcher.reload(bench.now, &config, &Interfaces::new(), &mut bench.effects).unwrap();
    bench.establish(100);
    assert_eq!(bench.dispatcher.end_recording().unwrap(), Some(0));

    let groups = airtcp_record::replay(&file.lock().unwrap()[..]).unwrap();
    let done: Vec<_> =
        groups.values().map(|g| (g.name.as_str(), g.segments, g.signals, g.timers)).collect();
    assert_eq!(done, [("phones", 6, 2, 1), ("tablets", 4, 0, 0)]);
}

#[test]
fn the_status_tells_what_is_done_for_whom() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    bench.now += Duration::from_secs(2);
    let status = bench.dispatcher.status(bench.now);
    assert_eq!(status.away, BTreeMap::from([("10.0.0.7".to_owned(), "down".to_owned())]));
    assert_eq!(status.signals["control"]["down"], 1);
    assert_eq!((status.flow_count, status.committed, status.held), (1, 1, 100));
    let [flow] = &status.flows[..] else { panic!("{status:?}") };
    assert_eq!((flow.state.as_str(), flow.since), ("frozen", Some(2.0)));
    assert_eq!((flow.server.as_str(), flow.device.as_str()), ("192.0.2.1:80", "10.0.0.7:5000"));
    assert_eq!(status.groups[0].counters["freezes"], 1);
}

impl Bench {
    /// Time passes, and what is due is done.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.dispatcher.next_deadline().filter(|&due| due <= end) {
            self.now = due;
            self.dispatcher.on_timer(due, &mut self.effects);
        }
        self.now = end;
    }

    /// Outages of the first group with a cause: begun, ended, and the seconds of the latter.
    fn outages(&self, cause: &str) -> (u64, u64, f64) {
        let status = self.dispatcher.status(self.now);
        let of = status.groups[0].outages.get(cause).copied().unwrap_or_default();
        assert_eq!(of.ongoing, status.outages.iter().filter(|o| o.cause == cause).count() as u64);
        (of.begun, of.ended, of.seconds)
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_outage_lasts_from_the_first_report_that_a_mobile_is_down_to_the_last_that_it_is_up() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.says(SignalSource::Agent, LinkSignal::Fading);
    assert_eq!(bench.outages("agent"), (0, 0, 0.0), "it is still in reach");
    bench.wait(SECOND);
    bench.says(SignalSource::Carrier, LinkSignal::Down);
    bench.wait(SECOND);
    bench.says(SignalSource::Agent, LinkSignal::Down);
    bench.says(SignalSource::Carrier, LinkSignal::Up);
    bench.wait(SECOND);
    assert_eq!((bench.outages("carrier"), bench.outages("agent")), ((1, 0, 0.0), (0, 0, 0.0)));
    let outage = bench.dispatcher.status(bench.now).outages.remove(0);
    assert_eq!((outage.mobile.as_str(), outage.group.as_str()), ("10.0.0.7", "phones"));
    assert_eq!((outage.cause.as_str(), outage.seconds), ("carrier", 2.0));
    bench.says(SignalSource::Agent, LinkSignal::Up);
    assert_eq!((bench.outages("carrier"), bench.outages("agent")), ((1, 1, 2.0), (0, 0, 0.0)));
    assert_eq!(bench.dispatcher.status(bench.now).groups[0].longest_outage, 2.0);
}

#[test]
fn an_outage_whose_end_is_not_reported_ends_when_the_mobile_is_heard() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    bench.segment(&from_mobile(100, 0));
    assert_eq!(bench.outages("control"), (1, 0, 0.0), "it was on its way");
    bench.wait(SECOND * 3);
    bench.segment(&from_mobile(100, 0));
    assert_eq!(bench.outages("control"), (1, 1, 3.0));
    bench.signal(LinkSignal::Up);
    assert_eq!(bench.outages("control"), (1, 1, 3.0));
}

#[test]
fn an_outage_that_nobody_announced_counts_from_the_first_packet_without_an_answer() {
    let mut config = config(CopyMode::Always);
    config.signals.silence = Some(SECOND);
    let mut bench = Bench::new(&config);
    bench.establish(100);
    bench.wait(SECOND * 3);
    bench.segment(&from_mobile(100, 0));
    assert_eq!(bench.outages("silence"), (1, 1, 3.0));
}

#[test]
fn of_wake_too_an_outage_that_nobody_announced_is_counted_and_shown() {
    let mut bench = waking();
    bench.segment(&from_fixed(500, 100));
    bench.wait(SECOND);
    assert_eq!(bench.outages("silence"), (0, 0, 0.0), "it may not exist");
    bench.segment(&from_mobile(100, 0));
    bench.wait(SECOND);
    bench.segment(&from_fixed(600, 100));
    bench.wait(SECOND * 2);
    let status = bench.dispatcher.status(bench.now);
    let [outage] = &status.outages[..] else { panic!("{status:?}") };
    assert_eq!((outage.cause.as_str(), outage.seconds), ("silence", 2.0));
    bench.segment(&from_mobile(100, 0));
    assert_eq!(bench.outages("silence"), (1, 1, 2.0));
}

thread_local! {
    /// Lines that this thread logs, while somebody asks for them.
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// The subscriber of all threads. With one for each thread, tracing would take what a thread without
/// one has met first for something that nobody wants to hear of.
struct Log;

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                LINES.with_borrow_mut(|lines| {
                    lines.iter_mut().for_each(|lines| lines.push(format!("{value:?}")));
                });
            }
        });
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Lines that are logged in the meantime.
fn logged(act: impl FnOnce()) -> Vec<String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Log).unwrap();
        tracing::callsite::rebuild_interest_cache();
    });
    LINES.set(Some(Vec::new()));
    act();
    LINES.take().unwrap_or_default()
}

#[test]
fn wake_counts_the_connections_of_an_announced_outage_when_it_has_seen_them() {
    let lines = logged(|| {
        let mut bench = waking();
        bench.says(SignalSource::Agent, LinkSignal::Down);
        bench.wait(SECOND);
        bench.segment(&from_fixed(500, 100));
        bench.says(SignalSource::Agent, LinkSignal::Up);
    });
    assert_eq!(
        lines,
        [
            "outage of 10.0.0.7 (phones) began, cause: agent",
            "outage of 10.0.0.7 (phones) ended after 1.0 s, cause: agent, 1 connection interrupted"
        ]
    );
    let lines = logged(|| {
        let mut bench = Bench::new(&config(CopyMode::Always));
        bench.establish(100);
        bench.says(SignalSource::Agent, LinkSignal::Down);
    });
    assert_eq!(
        lines,
        ["outage of 10.0.0.7 (phones) began, cause: agent, 1 connection interrupted"]
    );
}

#[test]
fn an_outage_that_wake_found_outlasts_a_fading_signal_and_its_withdrawal() {
    let mut bench = waking();
    bench.segment(&from_fixed(500, 100));
    bench.segment(&from_mobile(100, 0));
    bench.wait(SECOND);
    bench.segment(&from_fixed(600, 100));
    bench.wait(SECOND * 2);
    assert_eq!(bench.outages("silence"), (1, 0, 0.0));
    bench.says(SignalSource::Carrier, LinkSignal::Fading);
    assert_eq!(bench.outages("silence"), (1, 0, 0.0), "fading");
    bench.dispatcher.on_withdrawn(bench.now, SignalSource::Carrier, &mut bench.effects);
    assert_eq!(bench.outages("silence"), (1, 0, 0.0), "withdrawn");
    bench.says(SignalSource::Agent, LinkSignal::Up);
    assert_eq!(bench.outages("silence"), (1, 1, 2.0));
}

#[test]
fn an_announced_outage_ends_when_the_link_is_only_fading() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.says(SignalSource::Carrier, LinkSignal::Down);
    bench.wait(SECOND);
    bench.says(SignalSource::Carrier, LinkSignal::Fading);
    assert_eq!(bench.outages("carrier"), (1, 1, 1.0));
}

#[test]
fn an_outage_found_by_silence_and_reported_since_is_not_given_up() {
    let mut config = config(CopyMode::Always);
    config.signals.silence = Some(SECOND);
    let mut bench = Bench::new(&config);
    bench.establish(100);
    bench.wait(SECOND * 3);
    assert_eq!(bench.outages("silence"), (1, 0, 0.0));
    bench.says(SignalSource::Agent, LinkSignal::Down);
    bench.wait(config.limits.idle * 2);
    let ongoing = bench.dispatcher.status(bench.now).outages;
    assert_eq!(ongoing.len(), 1, "{ongoing:?}");
    assert_eq!(bench.outages("agent"), (0, 0, 0.0), "the same outage");
}

#[test]
fn a_mobile_reported_down_again_after_it_was_heard_is_in_another_outage() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.says(SignalSource::Agent, LinkSignal::Down);
    bench.wait(SECOND * 3);
    bench.segment(&from_mobile(100, 0));
    assert_eq!(bench.outages("agent"), (1, 1, 3.0));
    bench.says(SignalSource::Agent, LinkSignal::Down);
    bench.wait(SECOND);
    bench.says(SignalSource::Agent, LinkSignal::Up);
    assert_eq!(bench.outages("agent"), (2, 2, 4.0));
}

#[test]
fn a_reload_forgets_mobiles_that_no_group_has() {
    let mut config = copied();
    config.groups[0].mechanism = MechanismConfig::Holdover(HoldoverConfig::default());
    let mut bench = Bench::new(&config);
    bench.signal(LinkSignal::Down);
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: true }]);
    bench.effects.clear();
    let mut without = config.clone();
    without.groups[0].members = elsewhere().groups[0].members.clone();
    bench.dispatcher.reload(bench.now, &without, &interfaces(), &mut bench.effects).unwrap();
    let status = bench.dispatcher.status(bench.now);
    assert_eq!((status.away.len(), status.outages.len()), (0, 0), "{status:?}");
    assert_eq!(bench.outages("control"), (1, 0, 0.0));
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: false }]);
    bench.effects.clear();
    bench.dispatcher.reload(bench.now, &config, &interfaces(), &mut bench.effects).unwrap();
    bench.signal(LinkSignal::Down);
    assert_eq!(bench.outages("control"), (2, 0, 0.0));
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: true }]);
}

#[test]
fn a_reload_keeps_the_count_of_outages_and_those_that_are_not_over() {
    let mut bench = Bench::new(&config(CopyMode::Always));
    bench.establish(100);
    bench.signal(LinkSignal::Down);
    let mut config = config(CopyMode::Always);
    config.limits.idle = SECOND;
    bench.dispatcher.reload(bench.now, &config, &interfaces(), &mut bench.effects).unwrap();
    assert_eq!(bench.outages("control"), (1, 0, 0.0));
    bench.wait(SECOND);
    bench.signal(LinkSignal::Up);
    assert_eq!(bench.outages("control"), (1, 1, 1.0));
}

#[test]
fn with_wake_towards_the_network_the_mobiles_end_is_the_devices() {
    let mut config = copied();
    let wake = WakeConfig { towards: Towards::Network, ..WakeConfig::default() };
    config.groups[0].mechanism = MechanismConfig::Wake(wake);
    let mut bench = Bench { only_copies: true, ..Bench::new(&config) };
    bench.segment(&from_mobile(100, 100));
    let status = bench.dispatcher.status(bench.now);
    let ends = status.flows.iter().map(|flow| [flow.server.as_str(), flow.device.as_str()]);
    assert_eq!(ends.collect::<Vec<_>>(), [["192.0.2.1:80", "10.0.0.7:5000"]]);
}

/// On board: 192.0.2.1 is behind lan0, and 10.0.0.7 behind wwan0, the uplink.
fn on_board(mechanism: MechanismConfig) -> GatewayConfig {
    let mut config = config(CopyMode::WhenFading);
    let group = &mut config.groups[0];
    group.members = Members::Uplink(wwan0());
    (group.name, group.mechanism) = ("uplink.wwan0".to_owned(), mechanism);
    config
}

fn wwan0() -> InterfaceName {
    "wwan0".parse().unwrap()
}

fn bench_on_board() -> Bench {
    let bench = Bench::new(&on_board(MechanismConfig::MTcpPlus(MTcpPlusConfig::default())));
    Bench { over: [Some(1), Some(2)], ..bench }
}

#[test]
fn a_signal_about_an_uplink_is_for_all_connections_over_it() {
    let mut bench = bench_on_board();
    bench.establish(100);
    bench.signal_about(MOBILE, LinkSignal::Down);
    assert_eq!(bench.effects, [], "one host beyond it is none of ours");
    let another = |segment: Segment<Vec<u8>>| {
        let other = |addr: Addr| match addr == flow().dst {
            true => Addr::new("10.0.0.8".parse().unwrap(), addr.port),
            false => addr,
        };
        let Flow { src, dst } = segment.flow;
        Segment { flow: Flow { src: other(src), dst: other(dst) }, ..segment }
    };
    bench.segment(&another(from_mobile(100, 1)));
    bench.segment(&another(from_fixed(500, 1)));
    bench.segment(&another(Segment { ack: Some(SeqNum(501)), ..from_mobile(101, 0) }));
    bench.signal_about(MobileId::Uplink(wwan0()), LinkSignal::Down);
    let status = bench.dispatcher.status(bench.now);
    let states: Vec<_> = status.flows.iter().map(|flow| flow.state.as_str()).collect();
    assert_eq!((&states[..], status.committed), (&["frozen"; 2][..], 1));
    assert_eq!(status.away["wwan0"], "down");
    let watch = Effect::Watch { mobile: MobileId::Uplink(wwan0()), watched: true };
    assert!(bench.effects.contains(&watch), "{:?}", bench.effects);
}

#[test]
fn what_does_not_cross_the_uplink_is_left_alone() {
    // Another uplink; from one to the other; the hosts on board among each other.
    for over in [[Some(1), Some(3)], [Some(1), None]] {
        let mut bench = Bench { over, ..bench_on_board() };
        bench.establish(100);
        let counters = bench.dispatcher.counters;
        assert_eq!((counters.passed, counters.unmatched), (0, 4), "{over:?}");
    }
    let mut both = on_board(MechanismConfig::MTcpPlus(MTcpPlusConfig::default()));
    let members = Members::Uplink("wwan1".parse().unwrap());
    both.groups.push(Group { members, name: "uplink.wwan1".to_owned(), ..both.groups[0].clone() });
    let mut bench = Bench { over: [Some(3), Some(2)], ..Bench::new(&both) };
    bench.establish(100);
    assert_eq!(bench.dispatcher.counters.unmatched, 4);
}

#[test]
fn a_mobile_of_a_group_is_not_the_uplinks() {
    let mut both = on_board(MechanismConfig::Holdover(HoldoverConfig::default()));
    let mut phones = config(CopyMode::WhenFading).groups.remove(0);
    let addresses = vec!["192.0.2.0/24".parse().unwrap()];
    phones.members = Members::Mobiles { addresses, interfaces: Vec::new() };
    both.groups.insert(0, phones);
    let mut bench = Bench { over: [Some(1), Some(2)], ..Bench::new(&both) };
    bench.establish(100);
    let groups = bench.dispatcher.status(bench.now).groups;
    assert_eq!([groups[0].flows, groups[1].flows], [1, 0]);
}

#[test]
fn packets_over_the_uplink_leave_by_it_while_it_is_there() {
    let egresses = |bench: &mut Bench| {
        let egress = |effect| match effect {
            Effect::Inject { to, egress, .. } => Some((to, egress)),
            _ => None,
        };
        let mut egresses: Vec<_> = bench.effects.drain(..).filter_map(egress).collect();
        egresses.dedup();
        egresses
    };
    let mut bench = bench_on_board();
    let uplink = MobileId::Uplink(wwan0());
    bench.establish(100);
    bench.signal_about(uplink, LinkSignal::Down);
    assert_eq!(egresses(&mut bench), [(Side::Fixed, Egress::Untracked)]);
    bench.dispatcher.set_index(wwan0(), None);
    bench.signal_about(uplink, LinkSignal::Up);
    assert_eq!(egresses(&mut bench), [], "nowhere to send it");
    bench.dispatcher.set_index(wwan0(), Some(9));
    bench.now = bench.dispatcher.next_deadline().unwrap();
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    assert_eq!(egresses(&mut bench), [(Side::Mobile, Egress::Uplink(9))]);
}

#[test]
fn an_uplink_takes_its_own_connections_over_and_no_others() {
    let frozen = || {
        let mut first = bench_on_board();
        first.establish(100);
        first.signal_about(MobileId::Uplink(wwan0()), LinkSignal::Down);
        first
    };
    let mut second = bench_on_board();
    assert_eq!(second.take_over_group("uplink.wwan0", &mut frozen()), [1, 0]);
    let watch = Effect::Watch { mobile: MobileId::Uplink(wwan0()), watched: true };
    assert!(second.effects.contains(&watch), "{:?}", second.effects);
    assert_eq!(bench_on_board().take_over_group("uplink.wwan1", &mut frozen()), [0, 1]);
    assert_eq!(bench_on_board().take_over_group("phones", &mut frozen()), [0, 1]);
    let mut mobiles = Bench::new(&config(CopyMode::WhenFading));
    assert_eq!(mobiles.take_over_group("uplink.wwan0", &mut frozen()), [0, 1]);
}

#[test]
fn connections_over_an_uplink_that_nobody_can_go_on_with_are_reset_at_both_ends() {
    let mut second = bench_on_board();
    let refused = Refused { flow: flow(), why: "damaged".to_owned(), resets: None };
    second.dispatcher.take_over(second.now, Vec::new(), vec![refused], &mut second.effects);
    let watch = Effect::Watch { mobile: MobileId::Uplink(wwan0()), watched: true };
    assert_eq!(second.effects, [watch]);
    assert_eq!(second.segment(&from_fixed(599, 1)), Verdict::Drop);
    let Some(Effect::Inject { to, egress, .. }) = second.effects.pop() else { panic!("a reset") };
    assert_eq!((to, egress), (Side::Fixed, Egress::Untracked));
    second.dispatcher.on_timer(second.now, &mut second.effects);
    let over = |effect: &Effect| {
        matches!(effect, Effect::Inject { to: Side::Mobile, egress: Egress::Uplink(2), .. })
    };
    assert!(second.effects.iter().any(over), "{:?}", second.effects);
}

#[test]
fn a_connection_of_a_mobile_that_is_refused_is_none_of_the_uplinks() {
    let mut both = config(CopyMode::WhenFading);
    both.groups.extend(on_board(both.groups[0].mechanism).groups);
    let mut bench = Bench::new(&both);
    let refused = Refused { flow: flow(), why: "damaged".to_owned(), resets: None };
    bench.dispatcher.take_over(bench.now, Vec::new(), vec![refused], &mut bench.effects);
    assert_eq!(bench.effects, [Effect::Watch { mobile: MOBILE, watched: true }]);
}

#[test]
fn wake_on_board_hears_the_network_as_one() {
    let mut config = on_board(MechanismConfig::Wake(Default::default()));
    (config.groups[0].copy, config.groups[0].fast_path) = (CopyMode::Always, FastPathMode::Auto);
    let mut bench = Bench { only_copies: true, over: [Some(1), Some(2)], ..Bench::new(&config) };
    bench.segment(&from_fixed(500, 100));
    bench.now = bench.dispatcher.next_deadline().unwrap();
    bench.dispatcher.on_timer(bench.now, &mut bench.effects);
    let is_called = |effect: &Effect| {
        matches!(effect, Effect::Inject { to: Side::Mobile, egress: Egress::Uplink(2), .. })
    };
    assert!(bench.effects.iter().all(is_called) && !bench.effects.is_empty());
    let status = bench.dispatcher.status(bench.now);
    let ends = status.flows.iter().map(|flow| [flow.server.as_str(), flow.device.as_str()]);
    assert_eq!(ends.collect::<Vec<_>>(), [["10.0.0.7:5000", "192.0.2.1:80"]]);
    // Any host beyond the uplink is enough.
    let mut other = from_mobile(1, 1);
    other.flow.src.ip = "10.0.0.8".parse().unwrap();
    bench.segment(&other);
    assert_eq!(bench.dispatcher.status(bench.now).groups[0].counters["releases"], 1);
}
