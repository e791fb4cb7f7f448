//! Two endpoints with real bytes over a hostile network. Whatever is lost, reordered, duplicated or
//! cut off, the streams arrive intact or the connection fails loudly, and senders keep to their
//! windows.

use airtcp_core::rng::Stream;
use airtcp_core::{Addr, Bytes, Duration, Events, Flags, Flow, Instant, Segment, SeqNum};
use airtcp_tcp::config::{
    AckConfig, AdaConfig, AdaptivePacingConfig, Congestion, CubicConfig, CubicVariant, CwndIn,
    DaaConfig, DcaConfig, HyStartConfig, InitialWindow, KarakConfig, LossWindow, Nagle,
    NewRenoConfig, PersistConfig, PersistOnShrink, RackConfig, Recovery, RtoConfig,
    RtoPolicyConfig, RttVariation, SackPipe, SpuriousDetection,
};
use airtcp_tcp::congestion::{
    Ack, CongestionControl, Karak, Loss, Reno, Restart, Timeout, Undo, Window,
};
use airtcp_tcp::{Endpoint, Io, Strategies, TcpConfig, TcpState};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time after which the network is perfect: every connection that has not given up must end in
/// order.
const HOSTILE_UNTIL: Instant = Instant::from_secs(60);
/// Upper bound on the events of a case; more means a livelock.
const MOST_EVENTS: usize = 200_000;
/// Interval at which an application retries a write that took nothing.
const RETRY_WRITE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
struct Network {
    delay: Duration,
    /// Largest random addition to each delay; causes reordering.
    jitter: Duration,
    loss: f64,
    duplication: f64,
    /// Start and end of an outage, in milliseconds.
    outage: (u64, u64),
}

#[derive(Clone, Debug)]
struct App {
    bytes: u32,
    /// Size of each write, and the pause until the next one.
    piece: u32,
    write_every: Duration,
    /// Size and interval of slow reads; `None`: all data is read on arrival.
    slow_read: Option<(u32, Duration)>,
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    isns: [u32; 2],
    network: Network,
    configs: [TcpConfig; 2],
    apps: [App; 2],
    simultaneous_open: bool,
}

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn network() -> impl Strategy<Value = Network> {
    let rate = prop_oneof![2 => Just(0.0), 2 => 0.0..0.05, 1 => 0.05..0.35];
    (
        millis(1..200),
        prop_oneof![2 => Just(Duration::ZERO), 2 => millis(1..50), 1 => millis(50..500)],
        rate,
        prop_oneof![2 => Just(0.0), 1 => 0.0..0.2],
        prop_oneof![1 => Just((0, 0)), 1 => (0u64..5_000, 1u64..20_000)],
    )
        .prop_map(|(delay, jitter, loss, duplication, (from, length))| Network {
            delay,
            jitter,
            loss,
            duplication,
            outage: (from, from + length),
        })
}

fn app() -> impl Strategy<Value = App> {
    (
        prop_oneof![
            2 => Just(0u32),
            4 => 1u32..3_000,
            6 => 3_000u32..60_000,
            // Enough for a buffer to grow.
            1 => 60_000u32..400_000,
        ],
        prop_oneof![1 => 1u32..1_000, 3 => 1_000u32..60_000],
        millis(1..300),
        prop_oneof![
            2 => Just(None),
            1 => (1u32..5_000, millis(1..400)).prop_map(Some),
            1 => (5_000u32..60_000, millis(1..9_000)).prop_map(Some),
        ],
    )
        .prop_map(|(bytes, piece, write_every, slow_read)| App {
            bytes,
            // At most some hundred pieces.
            piece: piece.max(bytes / 200),
            write_every,
            slow_read: slow_read.map(|(n, every)| (n.max(bytes / 200), every)),
        })
}

fn recovery() -> impl Strategy<Value = Recovery> {
    prop_oneof![
        any::<bool>().prop_map(|avoid_multi_fr| Recovery::Tahoe { avoid_multi_fr }),
        any::<bool>().prop_map(|avoid_multi_fr| Recovery::Reno { avoid_multi_fr }),
        Just(Recovery::NewReno),
        Just(Recovery::Sack),
        Just(Recovery::Rack(RackConfig::default())),
        Just(Recovery::Rack(RackConfig::default())),
    ]
}

fn congestion() -> impl Strategy<Value = Congestion> {
    prop_oneof![
        2 => Just(Congestion::Reno),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(strict, keep_ssthresh)| {
            Congestion::Karak(KarakConfig { strict, keep_ssthresh, limit: None })
        }),
        1 => Just(Congestion::Westwood),
        1 => (variant(), any::<bool>(), hystart()).prop_map(|(variant, fast_convergence, hystart)| {
            Congestion::Cubic(CubicConfig { variant, fast_convergence, hystart })
        }),
        1 => Just(Congestion::AdaptivePacing(AdaptivePacingConfig::default())),
        1 => Just(Congestion::Bbr),
        1 => Just(Congestion::Bbr3),
    ]
}

fn variant() -> impl Strategy<Value = CubicVariant> {
    prop_oneof![Just(CubicVariant::Rfc9438), Just(CubicVariant::Linux)]
}

fn hystart() -> impl Strategy<Value = HyStartConfig> {
    prop_oneof![
        Just(HyStartConfig::Off),
        Just(HyStartConfig::HyStart),
        Just(HyStartConfig::PlusPlus),
    ]
}

fn ack() -> impl Strategy<Value = AckConfig> {
    let limit = prop_oneof![Just(None), (1u32..10).prop_map(Some)];
    let cwnd_in = prop_oneof![Just(CwndIn::WindowField), Just(CwndIn::Option)];
    let dca = (any::<[bool; 3]>(), limit, cwnd_in).prop_map(|(rules, window_limit, cwnd_in)| {
        let [hop_rule, delay_rule, repeat_acks] = rules;
        AckConfig::Dca(DcaConfig { hop_rule, delay_rule, window_limit, cwnd_in, repeat_acks })
    });
    prop_oneof![
        4 => Just(AckConfig::Every),
        2 => (1u32..5, millis(1..500))
            .prop_map(|(segments, timeout)| AckConfig::Delayed { segments, timeout, quick: 0 }),
        2 => dca,
        1 => (0.1..4.0).prop_map(|spacing_factor| AckConfig::Daa(DaaConfig { spacing_factor })),
        1 => (0.1..4.0).prop_map(|spacing_factor| AckConfig::Ada(AdaConfig { spacing_factor })),
        1 => millis(1..500).prop_map(|timeout| AckConfig::Altman { timeout }),
    ]
}

/// True if data segments report cwnd in place of the window.
fn hides_window(config: &TcpConfig) -> bool {
    matches!(config.ack, AckConfig::Dca(DcaConfig { cwnd_in: CwndIn::WindowField, .. }))
}

/// MSS, receive buffer, send buffer, six switches, and limit of cwnd.
fn windows() -> impl Strategy<Value = (u16, u64, u64, [bool; 6], Option<Bytes>)> {
    (
        prop_oneof![Just(536u16), Just(1000u16), Just(1460u16)],
        // From one MSS to beyond what fits without scaling.
        prop_oneof![
            2 => 1_000u64..3_000,
            2 => 3_000u64..65_536,
            1 => 65_536u64..1_000_000,
        ],
        prop_oneof![1 => 1_000u64..5_000, 3 => 5_000u64..300_000],
        any::<[bool; 6]>(),
        prop_oneof![Just(None), (1_000u64..20_000).prop_map(|b| Some(Bytes(b)))],
    )
}

fn timers() -> impl Strategy<Value = (RtoConfig, PersistConfig, AckConfig)> {
    let timers = (
        prop_oneof![
            Just(PersistOnShrink::Strict),
            Just(PersistOnShrink::Bsd),
            Just(PersistOnShrink::Linux),
        ],
        prop_oneof![Just(1.0), Just(2.0)],
        ack(),
        prop_oneof![3 => Just(15u32), 1 => Just(3u32)],
        prop_oneof![Just(0u64), Just(10u64), Just(500u64)],
        prop_oneof![Just(200u64), Just(1_000u64)],
        prop_oneof![Just(RttVariation::Rfc6298), Just(RttVariation::Linux)],
        prop_oneof![
            2 => Just(RtoPolicyConfig::Exponential),
            1 => Just(RtoPolicyConfig::Fixed),
            1 => Just(RtoPolicyConfig::Constant),
        ],
    );
    timers.prop_map(|timers| {
        let (on_shrink, backoff, ack, max_retransmissions, tick, min, variation, policy) = timers;
        let rto = RtoConfig {
            tick: Duration::from_millis(tick),
            min: Duration::from_millis(min),
            variation,
            max_retransmissions,
            policy,
            ..RtoConfig::default()
        };
        (rto, PersistConfig { on_shrink, backoff, ..PersistConfig::default() }, ack)
    })
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let loss = (
        recovery(),
        any::<[bool; 2]>(),
        1u32..7,
        prop_oneof![Just(None), Just(Some(1u32)), Just(Some(2u32))],
        prop_oneof![
            Just(SpuriousDetection::None),
            Just(SpuriousDetection::Eifel),
            Just(SpuriousDetection::FRto),
        ],
        any::<bool>(),
        any::<bool>(),
        congestion(),
    );
    (windows(), loss, timers()).prop_map(|(windows, loss, (rto, persist, ack))| {
        let (mss, receive, send, switches, cwnd_limit) = windows;
        let [scaling, timestamps, nagle, idle, limited, autotuning] = switches;
        let (recovery, newreno, threshold, abc, spurious, fall_floyd, send_window, congestion) =
            loss;
        let [deflate, impatient] = newreno;
        // Both live on what RACK measures.
        let is_bbr = matches!(congestion, Congestion::Bbr | Congestion::Bbr3);
        let recovery = if is_bbr { Recovery::Rack(RackConfig::default()) } else { recovery };
        TcpConfig {
            mss,
            receive_buffer: Bytes(receive),
            autotuning,
            send_buffer: Bytes(send),
            window_scaling: scaling,
            timestamps,
            congestion,
            recovery,
            newreno: NewRenoConfig { deflate, impatient },
            sack_pipe: if fall_floyd { SackPipe::FallFloyd } else { SackPipe::Rfc6675 },
            loss_window: if send_window { LossWindow::SendWindow } else { LossWindow::FlightSize },
            initial_window: InitialWindow::Rfc5681,
            cwnd_limit,
            duplicate_ack_threshold: threshold,
            limited_transmit: limited,
            abc,
            slow_start_after_idle: idle,
            spurious,
            rto,
            persist,
            ack,
            nagle: if nagle { Nagle::On } else { Nagle::Off },
            ..TcpConfig::default()
        }
    })
}

fn isn() -> impl Strategy<Value = u32> {
    let near_wrap = (0u32..70_000).prop_map(|n| u32::MAX - n);
    prop_oneof![1 => any::<u32>(), 2 => near_wrap, 1 => (i32::MAX as u32 - 60_000)..(1 << 31)]
}

fn case() -> impl Strategy<Value = Case> {
    let ends = ([isn(), isn()], [config(), config()], [app(), app()]);
    (any::<u64>(), network(), ends, 0..4, 0..10).prop_map(
        |(seed, network, ends, patience, open)| {
            let (isns, mut configs, apps) = ends;
            if patience > 0 {
                for config in &mut configs {
                    config.rto.max_retransmissions = 15;
                    config.rto.policy = RtoPolicyConfig::Exponential;
                    config.persist.backoff = 2.0;
                }
            }
            // A sender must know that the window field of data is none.
            if let Some(hiding) = configs.iter().position(hides_window) {
                configs[1 - hiding].ack = configs[hiding].ack;
            }
            Case { seed, isns, network, configs, apps, simultaneous_open: open == 0 }
        },
    )
}

/// Byte number `n` of the stream that `side` writes.
fn pattern(side: usize, n: u32) -> u8 {
    (n.wrapping_add(side as u32 * 77_777).wrapping_mul(0x9e37_79b1) >> 24) as u8
}

#[derive(Debug)]
enum Arrival {
    Segment(usize, Segment<Vec<u8>>),
    Write(usize),
    Read(usize),
}

/// Observed actions of one side.
#[derive(Default)]
struct Side {
    written: u32,
    read: u32,
    closed: bool,
    /// A read (or write) is scheduled.
    reading: bool,
    /// Furthest right edges of the window: shown by the peer, and by us.
    allowed: Option<SeqNum>,
    shown: Option<SeqNum>,
    shown_ack: Option<SeqNum>,
    /// Data delivered without an ACK: its end, and the time of delivery.
    unacknowledged: VecDeque<(SeqNum, Instant)>,
    /// One past the highest sequence number sent.
    max: SeqNum,
    offered_shift: Option<u8>,
}

struct Sim<'a> {
    case: &'a Case,
    ends: [Endpoint<Vec<u8>>; 2],
    sides: [Side; 2],
    now: Instant,
    queue: BTreeMap<(Instant, u64), Arrival>,
    inserted: u64,
    random: Stream,
    /// Hash of everything sent, with times.
    fingerprint: u64,
    /// Last part of the trace, for failure messages.
    recent: VecDeque<String>,
}

impl<'a> Sim<'a> {
    fn new(case: &'a Case) -> Self {
        Self::with(case, |i| Strategies::new(&case.configs[i]))
    }

    fn with(case: &'a Case, strategies: impl Fn(usize) -> Strategies) -> Self {
        let addr = |n| Addr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)), 1000);
        let flow = Flow { src: addr(1), dst: addr(2) };
        let end = |i: usize, flow| {
            let (config, isn) = (case.configs[i].clone(), SeqNum(case.isns[i]));
            Endpoint::with_strategies(config, flow, isn, strategies(i))
        };
        let side = |i: usize| Side { max: SeqNum(case.isns[i]), ..Side::default() };
        Self {
            case,
            ends: [end(0, flow), end(1, flow.reversed())],
            sides: [side(0), side(1)],
            now: Instant::ZERO,
            queue: BTreeMap::new(),
            inserted: 0,
            random: Stream::new(case.seed, "network"),
            fingerprint: 0,
            recent: VecDeque::new(),
        }
    }

    fn schedule(&mut self, at: Instant, arrival: Arrival) {
        self.inserted += 1;
        self.queue.insert((at, self.inserted), arrival);
    }

    fn call<T>(
        &mut self,
        i: usize,
        f: impl FnOnce(&mut Endpoint<Vec<u8>>, Instant, &mut Io<'_, Vec<u8>>) -> T,
    ) -> T {
        let mut out = Vec::new();
        let mut io = Io { out: &mut out, events: Events::none() };
        let result = f(&mut self.ends[i], self.now, &mut io);
        for segment in out {
            self.check_sent(i, &segment);
            self.transmit(i, segment);
        }
        self.check_endpoint(i);
        self.check_delay(i);
        result
    }

    /// Sends a segment through the network.
    fn transmit(&mut self, from: usize, segment: Segment<Vec<u8>>) {
        let Network { delay, jitter, loss, duplication, outage } = self.case.network;
        let text = format!("{} {from} {segment}", self.now);
        self.fingerprint = text
            .bytes()
            .fold(self.fingerprint, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        self.recent.push_back(text);
        if self.recent.len() > 40 {
            self.recent.pop_front();
        }
        let hostile = self.now < HOSTILE_UNTIL;
        let mut copies = 1;
        if hostile {
            let ms = self.now.since_start().as_millis();
            let out = outage.0 <= ms && ms < outage.1;
            if out || self.random.chance(loss) {
                return;
            }
            copies += usize::from(self.random.chance(duplication));
        }
        for _ in 0..copies {
            let extra =
                if hostile { self.random.duration(Duration::ZERO, jitter) } else { Duration::ZERO };
            let at = self.now + delay + extra;
            self.schedule(at, Arrival::Segment(1 - from, segment.clone()));
        }
    }

    /// A window field in bytes; scaled only if both sides offered scaling, and never on a SYN.
    fn window_of(&self, from: usize, segment: &Segment<Vec<u8>>) -> u32 {
        let both = self.sides[0].offered_shift.is_some() && self.sides[1].offered_shift.is_some();
        let scaled = both && !segment.flags.contains(Flags::SYN);
        let shift = if scaled { self.sides[from].offered_shift.unwrap() } else { 0 };
        u32::from(segment.window) << shift
    }

    fn check_sent(&mut self, i: usize, segment: &Segment<Vec<u8>>) {
        if segment.flags.contains(Flags::SYN) {
            self.sides[i].offered_shift = segment.options.window_scale;
        }
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let window = self.window_of(i, segment);
        let side = &mut self.sides[i];
        if let Some(ack) = segment.ack.filter(|_| !segment.flags.contains(Flags::SYN)) {
            // RFC 9293 §3.8.6.2.2: the right edge never moves left (but for what scaling rounds
            // off), nor does the acknowledgement.
            let edge = ack + window;
            let rounding = 1 << side.offered_shift.unwrap_or(0);
            let hidden = hides_window(&self.case.configs[i]) && !segment.payload.is_empty();
            let most = self.case.configs[i].receive_buffer;
            assert!(hidden || Bytes(window.into()) <= most, "more than the buffer: {segment}");
            if let Some(shown) = side.shown.filter(|_| !hidden) {
                assert!((edge + rounding).after(shown), "the window shrank: {segment}");
            }
            if let Some(shown_ack) = side.shown_ack {
                assert!(ack.at_or_after(shown_ack), "the acknowledgement went back: {segment}");
            }
            if !hidden {
                side.shown = Some(side.shown.map_or(edge, |s| s.later(edge)));
            }
            side.shown_ack = Some(ack);
        }
        let end = segment.seq_end();
        let is_new = end.after(side.max);
        if is_new {
            // Nothing beyond the peer's window but a probe's one byte.
            // With cwnd in the place of windows it goes by an old one when data flows both ways.
            let knows_window = !hides_window(&self.case.configs[i]);
            if let Some(allowed) = side.allowed.filter(|_| knows_window) {
                assert!(end.at_or_before(allowed + 1), "beyond the window: {segment}");
            }
            side.max = end;
        }
        let config = &self.case.configs[i];
        let end_point = &self.ends[i];
        if is_new && !segment.payload.is_empty() && !config.recovery.needs_sack() {
            // Endpoint::cwnd is what it was when the segment left, or (after more ACK processing in
            // the same call) larger: reductions come before sending.
            let allowance = if config.limited_transmit { 2 * end_point.mss() } else { 0 };
            let flight = end_point.flight();
            assert!(
                flight <= end_point.cwnd() + allowance + 1,
                "flight {flight} cwnd {}: {segment}",
                end_point.cwnd()
            );
        }
    }

    fn check_endpoint(&self, i: usize) {
        let end = &self.ends[i];
        assert!(end.cwnd() >= 1 && end.ssthresh() >= 1);
        let waits_for_peer = !matches!(end.state(), TcpState::Closed | TcpState::Listen);
        let has_work = end.flight() > 0 || !end.is_all_acked();
        if waits_for_peer && has_work && end.state() != TcpState::TimeWait {
            assert!(end.next_deadline().is_some(), "side {i} waits without a timer: {end:?}");
        }
        if end.state() == TcpState::TimeWait {
            assert!(end.next_deadline().is_some(), "TIME-WAIT without end");
        }
    }

    /// RFC 5681 §4.2: an ACK leaves within 500 ms of the data.
    fn check_delay(&mut self, i: usize) {
        let (end, side) = (&self.ends[i], &mut self.sides[i]);
        let delivered = SeqNum(self.case.isns[1 - i]) + 1 + end.stats().bytes_delivered as u32;
        if end.state() == TcpState::Closed {
            return;
        }
        let waiting = &mut side.unacknowledged;
        if waiting.back().is_none_or(|&(last, _)| delivered.after(last)) {
            waiting.push_back((delivered, self.now));
        }
        let Some(shown) = side.shown_ack else { return };
        while waiting.front().is_some_and(|&(end, _)| end.at_or_before(shown)) {
            waiting.pop_front();
        }
        if let Some(&(_, since)) = waiting.front() {
            let delay = self.now.since(since);
            assert!(delay <= Duration::from_millis(500), "side {i} owes an ACK for {delay}");
        }
    }

    fn on_segment(&mut self, i: usize, segment: Segment<Vec<u8>>) {
        let hidden = hides_window(&self.case.configs[1 - i]) && !segment.payload.is_empty();
        if let Some(ack) = segment.ack.filter(|_| !hidden) {
            let edge = ack + self.window_of(1 - i, &segment);
            let allowed = &mut self.sides[i].allowed;
            *allowed = Some(allowed.map_or(edge, |a| a.later(edge)));
        } else if segment.flags.contains(Flags::SYN) && self.sides[i].allowed.is_none() {
            let edge = SeqNum(self.case.isns[i]) + 1 + self.window_of(1 - i, &segment);
            self.sides[i].allowed = Some(edge);
        }
        self.call(i, |e, now, io| e.on_segment_over(now, &segment, Some(5), io));
        match self.case.apps[i].slow_read {
            None => self.read(i, usize::MAX),
            Some((_, every)) => self.schedule_read(i, every),
        }
        self.call(i, |e, now, io| e.reply(now, io));
    }

    fn schedule_read(&mut self, i: usize, every: Duration) {
        if self.ends[i].readable() > 0 && !self.sides[i].reading {
            self.sides[i].reading = true;
            self.schedule(self.now + every, Arrival::Read(i));
        }
    }

    fn read(&mut self, i: usize, max: usize) {
        let data = self.call(i, |e, now, io| e.read(now, max, io));
        let from = self.sides[i].read;
        for (n, byte) in (from..).zip(&data) {
            assert_eq!(*byte, pattern(1 - i, n), "side {i} read a wrong byte {n}");
        }
        self.sides[i].read += data.len() as u32;
        assert!(self.sides[i].read <= self.sides[1 - i].written, "bytes from nowhere");
    }

    fn write(&mut self, i: usize) {
        let App { bytes, piece, write_every, .. } = self.case.apps[i];
        let from = self.sides[i].written;
        let len = piece.min(bytes - from);
        let data: Vec<u8> = (from..from + len).map(|n| pattern(i, n)).collect();
        // Counted before the call, so that what it sends does not look like bytes from nowhere.
        let space = (self.ends[i].send_space() as u32).min(len);
        self.sides[i].written += space;
        let taken = self.call(i, |e, now, io| e.write(now, &data, io));
        assert_eq!(taken as u32, space);
        // Closing before the handshake would delete the connection (RFC 9293 §3.10.4).
        let opening = matches!(self.ends[i].state(), TcpState::Listen | TcpState::SynSent);
        if self.sides[i].written == bytes && !opening {
            self.sides[i].closed = true;
            self.call(i, |e, now, io| e.close(now, io));
        } else if self.ends.iter().all(|e| e.aborted().is_none()) {
            let pause = if taken == 0 { write_every.max(RETRY_WRITE) } else { write_every };
            self.schedule(self.now + pause, Arrival::Write(i));
        }
    }

    /// Runs until nothing is left to happen.
    fn run(&mut self) {
        if self.case.simultaneous_open {
            self.call(1, |e, now, io| e.connect(now, io));
        } else {
            self.ends[1].listen();
        }
        self.call(0, |e, now, io| e.connect(now, io));
        self.schedule(Instant::from_millis(1), Arrival::Write(0));
        self.schedule(Instant::from_millis(700), Arrival::Write(1));
        for _ in 0..MOST_EVENTS {
            let timer = (0..2)
                .filter_map(|i| self.ends[i].next_deadline().map(|d| Reverse((d, i))))
                .max()
                .map(|Reverse(next)| next);
            let queued = self.queue.first_key_value().map(|(&(at, _), _)| at);
            match (timer, queued) {
                (None, None) => return,
                (Some((deadline, i)), at) if at.is_none_or(|at| deadline < at) => {
                    self.now = self.now.max(deadline);
                    self.call(i, |e, now, io| e.on_timer(now, io));
                }
                _ => {
                    let ((at, _), arrival) = self.queue.pop_first().unwrap();
                    self.now = at;
                    match arrival {
                        Arrival::Segment(i, segment) => self.on_segment(i, segment),
                        Arrival::Write(i) => self.write(i),
                        Arrival::Read(i) => {
                            self.sides[i].reading = false;
                            let (most, every) = self.case.apps[i].slow_read.unwrap();
                            self.read(i, most as usize);
                            self.schedule_read(i, every);
                        }
                    }
                }
            }
        }
        panic!("livelock at {}: {:?}", self.now, self.ends.each_ref().map(Endpoint::state));
    }

    fn judge(&self) {
        let aborted = self.ends.each_ref().map(Endpoint::aborted);
        // Few retransmissions, or these or probes in such quick succession that an outage outlasts
        // them.
        let is_impatient = |c: &TcpConfig| {
            c.rto.max_retransmissions < 15
                || c.rto.policy != RtoPolicyConfig::Exponential
                || c.persist.backoff < 2.0
        };
        let may_give_up = self.case.configs.iter().any(is_impatient);
        let whole = (0..2).all(|i| self.sides[i].read == self.case.apps[1 - i].bytes);
        if aborted == [None; 2] {
            assert!(self.sides.iter().all(|s| s.closed), "not all was written");
            assert_eq!(self.ends.each_ref().map(Endpoint::state), [TcpState::Closed; 2]);
        }
        if !whole {
            assert!(
                may_give_up && aborted.iter().any(Option::is_some),
                "stalled: read {:?} aborted {aborted:?} states {:?} {:?}",
                self.sides.each_ref().map(|s| s.read),
                self.ends.each_ref().map(Endpoint::state),
                self.ends.each_ref().map(|e| *e.stats()),
            );
        }
    }
}

impl Drop for Sim<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let recent: Vec<String> = self.recent.drain(..).collect();
            eprintln!("at {}; sent last (time, side, segment):\n{}", self.now, recent.join("\n"));
        }
    }
}

/// An algorithm, with a flag for a time-out after one or two duplicate ACKs.
#[derive(Debug)]
struct Watched(Box<dyn CongestionControl>, Arc<AtomicBool>);

impl CongestionControl for Watched {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.0.on_ack(window, ack);
    }
    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        self.0.on_growth(window, ack);
    }
    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        self.0.on_fast_retransmit(window, loss);
    }
    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.1.fetch_or(matches!(timeout.duplicate_acks, 1 | 2), Ordering::Relaxed);
        self.0.on_timeout(window, timeout);
    }
    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        self.0.on_restart(window, cause);
    }
    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.0.on_spurious(window, undo);
    }
}

proptest! {
    #[test]
    fn streams_arrive_intact_or_the_connection_fails_loudly(case in case()) {
        let mut sim = Sim::new(&case);
        sim.run();
        sim.judge();
        let mut again = Sim::new(&case);
        again.run();
        prop_assert_eq!(sim.fingerprint, again.fingerprint, "the second run differs");
    }
    /// TCP Karak §3: it differs from NewReno on a time-out after one or two duplicate ACKs only.
    #[test]
    fn without_such_a_timeout_karak_is_newreno(mut case in case(), strict in any::<bool>()) {
        for config in &mut case.configs {
            config.recovery = Recovery::NewReno;
        }
        let different = Arc::new(AtomicBool::new(false));
        let run = |karak: bool| {
            let mut sim = Sim::with(&case, |i| {
                let config = &case.configs[i];
                let inner: Box<dyn CongestionControl> = if karak {
                    let settings = KarakConfig { strict, ..KarakConfig::default() };
                    Box::new(Karak::new(Reno::new(config.abc), settings))
                } else {
                    Box::new(Reno::new(config.abc))
                };
                let congestion = Box::new(Watched(inner, Arc::clone(&different)));
                Strategies { congestion, ..Strategies::new(config) }
            });
            sim.run();
            sim.judge();
            sim.fingerprint
        };
        let (newreno, karak) = (run(false), run(true));
        prop_assert!(different.load(Ordering::Relaxed) || newreno == karak);
    }
}
