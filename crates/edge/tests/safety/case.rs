//! What the property tests are run on: networks, outages, link signals, endpoints, applications.

use crate::subjects::Limits;
use airtcp_core::{Bytes, Duration, Flags, Instant, LinkSignal};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{
    AckConfig, InitialWindow, LinkReaction, Nagle, PersistConfig, PersistOnShrink, Recovery,
    RtoConfig, SpuriousDetection,
};
use proptest::prelude::*;

/// Outages and losses end here; signals may still come late.
pub(crate) const HOSTILE_UNTIL: Instant = Instant::from_secs(60);

/// One of the two paths, wired or wireless, both directions alike.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) delay: Duration,
    /// Added uniformly to each delay: reorders.
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
}

/// Behaviour of an application at one end.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) bytes: u32,
    /// Written at once, and how long until the next piece.
    pub(crate) piece: u32,
    pub(crate) write_every: Duration,
    /// Read at most this much at a time; `None`: all, as soon as it arrives.
    pub(crate) slow_read: Option<(u32, Duration)>,
    /// Closes when all is written; if not, only once the peer has closed (half close).
    pub(crate) closes_first: bool,
}

/// Everything that determines a run.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) isns: [u32; 2],
    /// Paths of the wired and the wireless side.
    pub(crate) paths: [Path; 2],
    /// Nothing passes the wireless path between these.
    pub(crate) outages: Vec<(Instant, Instant)>,
    /// Signals of the node's radio.
    pub(crate) signals: Vec<(Instant, LinkSignal)>,
    /// Signals of the mobile's own radio: all outages, in time; perhaps more.
    pub(crate) mobile_signals: Vec<(Instant, LinkSignal)>,
    /// Settings of the fixed and the mobile host.
    pub(crate) configs: [TcpConfig; 2],
    pub(crate) apps: [App; 2],
    pub(crate) limits: Limits,
    /// The node loses its memory.
    pub(crate) crash: Option<Instant>,
    pub(crate) forgeries: Vec<(Instant, Forgery)>,
}

/// A segment in a host's name, by somebody who knows the connection and at most one of its numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forgery {
    /// 0: the fixed host's, 1: the mobile's.
    pub(crate) from: usize,
    pub(crate) seq: Number,
    pub(crate) ack: Option<Number>,
    pub(crate) flags: Flags,
    pub(crate) len: usize,
}

/// A forger's choice of a sequence number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// So far from the next byte expected, in either direction, that no window reaches it.
    Far(u32),
    /// So far beyond the last byte of the stream: perhaps in the window, but never expected.
    Beyond(u32),
    /// The next byte expected, as far as the node knows.
    Next,
}

impl Case {
    /// No end gives up before the network is perfect again.
    pub(crate) fn is_patient(&self) -> bool {
        let patient = |c: &TcpConfig| c.rto.max_retransmissions >= 15 && c.persist.backoff >= 2.0;
        self.configs.iter().all(patient)
    }
}

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn path() -> impl Strategy<Value = Path> {
    let loss = prop_oneof![3 => Just(0.0), 2 => 0.0..0.05, 1 => 0.05..0.3];
    (
        millis(1..120),
        prop_oneof![3 => Just(Duration::ZERO), 2 => millis(1..30), 1 => millis(30..300)],
        loss,
        prop_oneof![3 => Just(0.0), 1 => 0.0..0.2],
    )
        .prop_map(|(delay, jitter, loss, duplication)| Path {
            delay,
            jitter,
            loss,
            duplication,
        })
}

/// Up to three outages, in order, before [`HOSTILE_UNTIL`].
fn outages() -> impl Strategy<Value = Vec<(Instant, Instant)>> {
    let outage = (0u64..8_000, prop_oneof![2 => 1u64..1_000, 2 => 1_000u64..10_000]);
    proptest::collection::vec(outage, 0..4).prop_map(in_order)
}

/// Outages one after the other: how many milliseconds the link is up, then down.
pub(crate) fn in_order(gaps: impl IntoIterator<Item = (u64, u64)>) -> Vec<(Instant, Instant)> {
    let mut at = 0;
    let after = |(up, down): (u64, u64)| {
        let from = at + up;
        at = from + down;
        (Instant::from_millis(from), Instant::from_millis(at))
    };
    gaps.into_iter().map(after).collect()
}

/// Signals of the radio for one outage: delays in milliseconds, negative when it is early; `None`:
/// not at all.
#[derive(Clone, Debug)]
struct Reports {
    fading: Option<i64>,
    down: Option<i64>,
    up: Option<i64>,
    /// The last one comes twice.
    again: Option<i64>,
}

fn reports() -> impl Strategy<Value = Reports> {
    let delay = || prop_oneof![2 => Just(0i64), 2 => -300i64..300, 1 => -2_000i64..3_000];
    let perhaps = |some| proptest::option::weighted(some, delay());
    (
        proptest::option::weighted(0.3, -1_500i64..100),
        perhaps(0.85),
        perhaps(0.85),
        proptest::option::weighted(0.2, 0i64..2_000),
    )
        .prop_map(|(fading, down, up, again)| Reports { fading, down, up, again })
}

/// Signals while nothing is wrong.
fn false_alarm() -> impl Strategy<Value = Vec<(u64, LinkSignal)>> {
    let kind = prop_oneof![Just(LinkSignal::Fading), Just(LinkSignal::Down), Just(LinkSignal::Up)];
    let up = proptest::option::weighted(0.7, 1u64..5_000);
    (0u64..20_000, kind, up).prop_map(|(at, kind, up)| {
        let mut signals = vec![(at, kind)];
        signals.extend(up.map(|after| (at + after, LinkSignal::Up)));
        signals
    })
}

/// Outages with the signals about them.
#[derive(Clone, Debug)]
struct Radio {
    outages: Vec<(Instant, Instant)>,
    signals: Vec<(Instant, LinkSignal)>,
    mobile_signals: Vec<(Instant, LinkSignal)>,
}

fn radio() -> impl Strategy<Value = Radio> {
    let alarms = proptest::collection::vec(false_alarm(), 0..3);
    let leads = proptest::collection::vec(proptest::option::of(-1_500i64..0), 3);
    let quiet = proptest::bool::weighted(0.1);
    (outages(), proptest::collection::vec(reports(), 3), alarms, leads, quiet).prop_map(
        |(outages, reports, alarms, leads, quiet)| {
            let mut signals = Vec::new();
            let shifted = |at: Instant, by: i64| {
                Instant::from_millis(at.since_start().as_millis().saturating_add_signed(by))
            };
            let mut mobile_signals = Vec::new();
            for (&(from, to), lead) in outages.iter().zip(leads) {
                mobile_signals.extend(lead.map(|by| (shifted(from, by), LinkSignal::Fading)));
                mobile_signals.extend([(from, LinkSignal::Down), (to, LinkSignal::Up)]);
            }
            for ((from, to), report) in outages.iter().zip(reports) {
                signals.extend(report.fading.map(|d| (shifted(*from, d), LinkSignal::Fading)));
                signals.extend(report.down.map(|d| (shifted(*from, d), LinkSignal::Down)));
                signals.extend(report.up.map(|d| (shifted(*to, d), LinkSignal::Up)));
                if let (Some(by), Some(&(at, signal))) = (report.again, signals.last()) {
                    signals.push((shifted(at, by), signal));
                }
            }
            let alarms = alarms.into_iter().flatten();
            signals.extend(alarms.map(|(at, signal)| (Instant::from_millis(at), signal)));
            if quiet {
                signals.clear();
            }
            Radio { outages, signals, mobile_signals }
        },
    )
}

fn app(bytes: impl Strategy<Value = u32>) -> impl Strategy<Value = App> {
    (
        bytes,
        prop_oneof![1 => 1u32..1_000, 4 => 1_000u32..60_000],
        millis(1..300),
        prop_oneof![
            5 => Just(None),
            1 => (500u32..5_000, millis(1..300)).prop_map(Some),
        ],
        any::<bool>(),
    )
        .prop_map(|(bytes, piece, write_every, slow_read, closes_first)| App {
            bytes,
            // At most some fifty pieces.
            piece: piece.max(bytes / 50),
            write_every,
            slow_read,
            closes_first,
        })
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let sizes = (
        prop_oneof![Just(536u16), Just(1460u16)],
        prop_oneof![
            1 => 1_000u64..3_000,
            3 => 3_000u64..65_536,
            1 => 65_536u64..500_000,
        ],
        any::<[bool; 4]>(),
    );
    let recovery = prop_oneof![
        Just(Recovery::Reno { avoid_multi_fr: false }),
        Just(Recovery::NewReno),
        Just(Recovery::Sack),
    ];
    let spurious = prop_oneof![
        Just(SpuriousDetection::None),
        Just(SpuriousDetection::Eifel),
        Just(SpuriousDetection::FRto),
    ];
    let on_shrink = prop_oneof![
        Just(PersistOnShrink::Strict),
        Just(PersistOnShrink::Bsd),
        Just(PersistOnShrink::Linux),
    ];
    let ack = prop_oneof![
        Just(AckConfig::Every),
        (2u32..4, millis(1..500)).prop_map(|(segments, timeout)| AckConfig::Delayed {
            segments,
            timeout,
            quick: 0
        }),
    ];
    let on_link = prop_oneof![
        3 => Just(LinkReaction::None),
        1 => Just(LinkReaction::RecoveryAck),
        1 => Just(LinkReaction::Freeze),
    ];
    let timers = (on_shrink, ack, prop_oneof![Just(200u64), Just(1_000u64)], on_link);
    (sizes, recovery, spurious, timers).prop_map(|(sizes, recovery, spurious, timers)| {
        let (mss, receive, [scaling, timestamps, nagle, limited]) = sizes;
        let (on_shrink, ack, min, on_link) = timers;
        TcpConfig {
            mss,
            receive_buffer: Bytes(receive),
            window_scaling: scaling,
            timestamps,
            nagle: if nagle { Nagle::On } else { Nagle::Off },
            limited_transmit: limited,
            recovery,
            initial_window: InitialWindow::Rfc5681,
            spurious,
            rto: RtoConfig { min: Duration::from_millis(min), ..RtoConfig::default() },
            persist: PersistConfig { on_shrink, ..PersistConfig::default() },
            ack,
            on_link,
            ..TcpConfig::default()
        }
    })
}

/// Few retransmissions, or quick probes.
fn impatience() -> impl Strategy<Value = Option<(u32, f64)>> {
    let few = prop_oneof![Just((3, 2.0)), Just((6, 2.0)), Just((15, 1.0))];
    proptest::option::weighted(0.2, few)
}

fn isn() -> impl Strategy<Value = u32> {
    let near_wrap = (0u32..40_000).prop_map(|n| u32::MAX - n);
    prop_oneof![1 => any::<u32>(), 2 => near_wrap, 1 => (i32::MAX as u32 - 20_000)..(1 << 31)]
}

fn limits() -> impl Strategy<Value = Limits> {
    let size = || {
        prop_oneof![
            1 => 1u64..1_500,
            2 => 1_500u64..10_000,
            4 => Just(1u64 << 20),
        ]
    };
    let max_down = proptest::option::weighted(0.15, millis(500..20_000));
    let probe_interval = proptest::option::of(millis(100..2_000));
    (size(), size(), max_down, probe_interval).prop_map(
        |(fifo, memory, max_down, probe_interval)| Limits {
            fifo,
            memory,
            max_down,
            probe_interval,
        },
    )
}

/// A download with every kind of trouble, and sometimes an upload on the same connection.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    let down = prop_oneof![1 => Just(0u32), 2 => 1u32..3_000, 4 => 3_000u32..40_000];
    let up = prop_oneof![3 => Just(0u32), 1 => 1u32..3_000, 1 => 3_000u32..20_000];
    let ends = ([isn(), isn()], [config(), config()], (app(down), app(up)), impatience());
    (any::<u64>(), [path(), path()], radio(), ends, limits()).prop_map(
        |(seed, paths, radio, (isns, mut configs, apps, impatience), limits)| {
            for config in &mut configs {
                if let Some((retransmissions, backoff)) = impatience {
                    config.rto.max_retransmissions = retransmissions;
                    config.persist.backoff = backoff;
                }
            }
            let mut apps = [apps.0, apps.1];
            // Somebody must begin to close.
            apps[0].closes_first |= !apps[1].closes_first;
            let Radio { outages, signals, mobile_signals } = radio;
            Case {
                seed,
                isns,
                paths,
                outages,
                signals,
                mobile_signals,
                configs,
                apps,
                limits,
                crash: None,
                forgeries: Vec::new(),
            }
        },
    )
}

/// As [`case`], and the node loses its memory once.
pub(crate) fn case_with_crash() -> impl Strategy<Value = Case> {
    (case(), 0u64..30_000)
        .prop_map(|(case, at)| Case { crash: Some(Instant::from_millis(at)), ..case })
}

pub(crate) fn forgery() -> impl Strategy<Value = Forgery> {
    // Half of them not far beyond what a node that meets a connection takes for under way, 64 MiB.
    // Nearer, a forger who knows the other number shows it a connection that is not there: its
    // acknowledgements then have numbers that the fixed host ignores.
    let far = || {
        let by = prop_oneof![1u32 << 27..1 << 29, 1u32 << 27..u32::MAX - (1 << 27)];
        by.prop_map(Number::Far)
    };
    // No host has sent so much yet. One long acknowledged a host may take (RFC 5961 §5.2 is
    // optional). So much is also too far from any that is `far` for two forgeries that agree by
    // chance, one in each host's name: these, too, would show a connection that is not there.
    let ahead = || (1u32 << 21..1 << 25).prop_map(Number::Far);
    let beyond = || (2u32..2_000).prop_map(Number::Beyond);
    let ack = || proptest::option::of(prop_oneof![far(), Just(Number::Next)]);
    let unseen = || prop_oneof![far(), beyond()];
    let kind = prop_oneof![
        // What no window reaches may say what it likes.
        (far(), ack(), prop_oneof![Just(Flags::empty()), Just(Flags::FIN)], 0usize..1_461),
        // The right sequence number does not help without a credible acknowledgement.
        (Just(Number::Next), ahead().prop_map(Some), Just(Flags::empty()), 0usize..1_461),
        // RFC 5961 §3.2 and §4.2: challenged anywhere in the window.
        (unseen(), ack(), Just(Flags::RST), Just(0)),
        (unseen(), Just(None), Just(Flags::SYN), Just(0)),
    ];
    (0usize..2, kind).prop_map(|(from, (seq, ack, flags, len))| Forgery {
        from,
        seq,
        ack,
        flags,
        len,
    })
}

/// As [`case_with_crash`], with a forger at work, on paths that reorder.
pub(crate) fn case_with_forger() -> impl Strategy<Value = Case> {
    let forgeries = proptest::collection::vec((0u64..30_000, forgery()), 1..40);
    (case_with_crash(), forgeries, [millis(30..300), millis(30..300)]).prop_map(
        |(mut case, forgeries, jitters)| {
            for (path, jitter) in case.paths.iter_mut().zip(jitters) {
                path.jitter = jitter;
            }
            let at = |(ms, forgery)| (Instant::from_millis(ms), forgery);
            Case { forgeries: forgeries.into_iter().map(at).collect(), ..case }
        },
    )
}
