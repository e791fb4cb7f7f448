//! Transfers with strategies of our own.

use airtcp_core::rng::Stream;
use airtcp_core::{Bytes, DataRate, Duration, Flags, Instant};
use airtcp_tcp::config::{
    AckConfig, AdaConfig, AdaptivePacingConfig, Congestion, DaaConfig, DcaConfig, ElfnConfig,
    InitialWindow, SpuriousDetection,
};
use airtcp_tcp::congestion::{Ack, CongestionControl, Loss, Reno, Timeout, Window};
use airtcp_tcp::route::{Elfn, Resume, Standby, Thaw};
use airtcp_tcp::{Strategies, TcpConfig, TcpState};
use airtcp_tcp_strategies::ack::{self, Cumulative};
use airtcp_tcp_strategies::congestion::{self, HopPaced};
use airtcp_tcp_strategies::network::{ISN, Network};
use airtcp_tcp_strategies::route::Snooze;
use airtcp_tcp_strategies::rto::Stretched;
use std::sync::{Arc, Mutex};

const MSS: u32 = 1000;
const DELAY: Duration = Duration::from_millis(50);

fn config() -> TcpConfig {
    TcpConfig { mss: MSS as u16, ..TcpConfig::default() }
}

fn window(segments: u32) -> TcpConfig {
    TcpConfig { initial_window: InitialWindow::Segments(segments), ..config() }
}

/// Sends `bytes` from end 0, whose strategies `change` modifies.
fn transfer(
    config: &TcpConfig,
    hops: u8,
    bytes: u64,
    change: impl FnOnce(&mut Strategies),
) -> Network {
    let mut ends = [Strategies::new(config), Strategies::new(config)];
    change(&mut ends[0]);
    Network::new(config, ends, DELAY, hops, [bytes, 0])
}

fn hop_paced(hops_per_segment: u32) -> (Box<HopPaced>, Arc<Mutex<congestion::Seen>>) {
    let seen = Arc::default();
    (Box::new(HopPaced::new(hops_per_segment, Arc::clone(&seen))), seen)
}

fn seconds(s: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(s)
}

/// Loses the first transmission of these segments of end 0.
fn lose_once(network: &mut Network, segments: &'static [u32]) {
    let mut left = segments.to_vec();
    network.lose(move |sent| {
        let found = left
            .iter()
            .position(|n| sent.from == 0 && sent.segment.payload.0 > 0 && sent.offset == n * MSS);
        found.map(|i| left.remove(i)).is_some()
    });
}

#[test]
fn congestion_control_hears_every_ack_in_every_phase() {
    let (control, seen) = hop_paced(1);
    let mut network = transfer(&config(), 100, 200_000, |s| s.congestion = control);
    lose_once(&mut network, &[20, 22, 150]);
    network.run();
    let (seen, stats) = (seen.lock().unwrap(), network.ends[0].stats());
    assert_eq!(seen.acked, 200_001, "all data and the FIN");
    let [open, recovery, loss] = seen.acks;
    assert!(open.0 > 0 && recovery.0 >= 2 && recovery.1 > 0, "{seen:?}");
    assert_eq!(loss, (0, 0));
    assert_eq!(u64::from(open.1 + recovery.1 + loss.1), stats.duplicate_acks_received);
    assert!(seen.rounds > 5, "{seen:?}");
}

#[test]
fn an_application_that_writes_little_is_seen_as_the_limit() {
    let limited = |bytes| {
        let (control, seen) = hop_paced(1);
        let config = TcpConfig { slow_start_after_idle: false, ..window(10) };
        let mut network = transfer(&config, 100, bytes, |s| s.congestion = control);
        network.run_until(seconds(0.25));
        let seen = seen.lock().unwrap();
        (seen.unused > 0, seen.acks[0].0 > 0)
    };
    assert_eq!(limited(2_000), (true, true));
    assert_eq!(limited(2_000_000), (false, true));
}

#[test]
fn the_number_of_hops_bounds_the_window() {
    let (control, _) = hop_paced(4);
    let mut network = transfer(&config(), 16, 300_000, |s| s.congestion = control);
    network.run();
    assert_eq!(network.ends[0].cwnd(), 4 * MSS);
}

#[test]
fn a_pacing_rate_spaces_what_leaves() {
    let closest = |paced: bool| {
        let mut network = transfer(&window(10), 100, 300_000, |strategies| {
            if paced {
                strategies.congestion = hop_paced(1).0;
            }
        });
        network.run();
        let times: Vec<Instant> = network.data(0).skip(40).map(|sent| sent.at).collect();
        times.windows(2).map(|w| w[1].since(w[0])).min().unwrap()
    };
    assert_eq!(closest(false), Duration::ZERO);
    // 100 segments, the limit, in a round trip of 100 ms.
    let spacing = closest(true);
    assert!(spacing >= Duration::from_millis(1), "{spacing}");
}

// TCP-AP: 20 ms of RTT a hop, so 7.552 ms of queueing and 4.448 ms on the air; four times that.
#[test]
fn adaptive_pacing_spaces_segments_by_the_delay_over_four_hops() {
    let congestion = Congestion::AdaptivePacing(AdaptivePacingConfig::default());
    let config = TcpConfig { congestion, timestamps: true, ..window(4) };
    let mut network = transfer(&config, 5, 100_000, |_| {});
    network.run();
    let times: Vec<Instant> = network.data(0).skip(20).map(|sent| sent.at).collect();
    let least = times.windows(2).map(|w| w[1].since(w[0])).min().unwrap();
    assert_eq!(least.as_millis(), 48);
}

/// A segment of 1000 bytes a second.
#[derive(Debug)]
struct Slow(Reno);

impl CongestionControl for Slow {
    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        self.0.on_growth(window, ack);
    }
    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        self.0.on_fast_retransmit(window, loss);
    }
    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.0.on_timeout(window, timeout);
    }
    fn pacing_rate(&self, _: &Window) -> Option<DataRate> {
        Some(DataRate::kbps(8))
    }
}

#[test]
fn a_segment_that_waits_for_its_turn_is_no_closed_window() {
    let slow = Box::new(Slow(Reno::new(None)));
    let mut network = transfer(&config(), 1, 5_000, |s| s.congestion = slow);
    network.run_until(seconds(0.5));
    assert!(!network.ends[0].is_persisting());
    network.run();
    let times: Vec<Instant> = network.data(0).map(|sent| sent.at).collect();
    assert_eq!(times, [0.1, 1.1, 2.1, 3.1, 4.1].map(seconds));
    assert_eq!(network.ends[0].stats().window_probes, 0);
}

#[test]
fn pacing_survives_loss_and_a_closing_window() {
    let (control, _) = hop_paced(1);
    let config = TcpConfig { receive_buffer: Bytes(3 * u64::from(MSS)), ..window(10) };
    let mut network = transfer(&config, 100, 100_000, |s| s.congestion = control);
    lose_once(&mut network, &[5, 6, 7, 50, 99]);
    network.run();
}

#[test]
fn a_timeout_shows_the_duplicates_before_it() {
    // TCP Karak's table: two duplicates, a quarter of eight segments.
    let (control, seen) = hop_paced(1);
    let mut network = transfer(&window(8), 100, 20_000, |s| s.congestion = control);
    lose_once(&mut network, &[0, 3, 4, 5, 6, 7]);
    network.run();
    assert_eq!(seen.lock().unwrap().timeouts, [2]);
    let expiry = network.data(0).find(|sent| sent.at >= seconds(1.0)).unwrap().at;
    let first: Vec<u32> = network
        .data(0)
        .filter(|sent| sent.at >= expiry && sent.at < expiry + DELAY * 2)
        .map(|sent| sent.offset)
        .collect();
    assert_eq!(first, [0, MSS], "two segments, paced");
}

#[test]
fn a_needless_timeout_is_undone_by_the_algorithm() {
    let (control, seen) = hop_paced(1);
    let spurious = SpuriousDetection::Eifel;
    let config = TcpConfig { timestamps: true, spurious, ..window(4) };
    let mut network = transfer(&config, 100, 100_000, |s| s.congestion = control);
    // All ACKs of the first window are lost but the last, which the time-out overtakes.
    let mut acks = 0;
    network.lose(move |sent| {
        acks += u32::from(sent.from == 1 && sent.segment.flags.is_empty());
        sent.from == 1 && sent.segment.flags.is_empty() && acks <= 4
    });
    network.run();
    assert_eq!(seen.lock().unwrap().undone, 1);
}

/// Retransmissions of end 0's first segment of data after the path failed at 1 s, as times since
/// the failure.
fn retransmissions(stretch: Option<u64>) -> Vec<u64> {
    let mut network = transfer(&config(), 1, 10_000_000, |strategies| {
        if let Some(by) = stretch {
            strategies.rto = Box::new(Stretched { by });
        }
    });
    network.run_until(seconds(1.0));
    network.lose(|_| true);
    let una = network.ends[0].stats().bytes_acked as u32;
    network.run_until(seconds(20.0));
    let times: Vec<u64> = network
        .data(0)
        .filter(|sent| sent.at > seconds(1.2) && sent.offset >= una)
        .map(|sent| sent.at.as_nanos() / 1_000_000)
        .collect();
    times.windows(2).map(|w| w[1] - w[0]).collect()
}

#[test]
fn an_rto_policy_can_stop_doubling() {
    assert_eq!(retransmissions(None), [2000, 4000, 8000]);
    assert_eq!(retransmissions(Some(1)), [2000; 9]);
}

#[test]
fn an_rto_policy_can_stretch_the_timeout() {
    assert_eq!(retransmissions(Some(3)), [6000; 2]);
}

fn cumulative(repeat_after: Duration) -> (Box<Cumulative>, Arc<Mutex<ack::Seen>>) {
    let seen = Arc::default();
    let delay = Duration::from_millis(200);
    (Box::new(Cumulative::new(delay, repeat_after, Arc::clone(&seen))), seen)
}

/// Runs a transfer in which both ends delay ACKs cumulatively; returns what the receiver's policy
/// observed.
fn delayed(
    config: &TcpConfig,
    hops: u8,
    bytes: [u64; 2],
    repeat_after: Duration,
) -> (Network, Arc<Mutex<ack::Seen>>) {
    let (sender, _) = cumulative(repeat_after);
    let (receiver, seen) = cumulative(repeat_after);
    let ends = [
        Strategies { ack: sender, ..Strategies::new(config) },
        Strategies { ack: receiver, ..Strategies::new(config) },
    ];
    (Network::new(config, ends, DELAY, hops, bytes), seen)
}

const NEVER: Duration = Duration::from_secs(1000);

#[test]
fn an_ack_policy_reads_cwnd_in_the_window_field_and_counts_hops() {
    let acks = |hops, segments: u32| {
        let config = TcpConfig { cwnd_limit: Some(Bytes(20_000)), ..config() };
        let (mut network, seen) = delayed(&config, hops, [200_000, 0], NEVER);
        network.run();
        let seen = seen.lock().unwrap();
        assert_eq!(seen.hops, [hops]);
        assert_eq!(seen.cwnds.last(), Some(&20_000));
        let (acks, full) = (network.pure_acks(1).count(), 200 / segments as usize);
        assert!((full - 1..full + 10).contains(&acks), "{hops} hops: {acks} ACKs");
    };
    acks(1, 20);
    acks(6, 5);
    acks(12, 3);
}

#[test]
fn the_delay_timer_acknowledges_what_does_not_fill_a_window() {
    let (mut network, seen) = delayed(&window(10), 1, [3_000, 0], NEVER);
    // A FIN is acknowledged at once.
    network.lose(|sent| sent.segment.flags.contains(Flags::FIN));
    network.run_until(seconds(0.5));
    assert_eq!(seen.lock().unwrap().delays, 1);
    assert_eq!(network.ends[0].stats().timeouts, 0);
}

#[test]
fn a_second_timer_repeats_a_lost_ack() {
    let stalls = |repeat_after| {
        let (mut network, seen) = delayed(&window(4), 1, [100_000, 0], repeat_after);
        let mut lost = 0;
        network.lose(move |sent| {
            let is_ack = sent.from == 1 && sent.at > seconds(0.5) && sent.segment.payload.0 == 0;
            lost += u32::from(is_ack);
            is_ack && lost == 1
        });
        network.run();
        let seen = seen.lock().unwrap();
        (network.ends[0].stats().timeouts, seen.duplicates, seen.repeats > 0)
    };
    assert_eq!(stalls(NEVER), (1, 1, false), "the policy sees the needless retransmission");
    assert_eq!(stalls(Duration::from_millis(300)), (0, 0, true));
}

/// Whatever the policy: the sender's retransmission is a duplicate, and gets an ACK at once.
#[test]
fn a_lost_last_ack_stalls_nothing_for_ever() {
    let dca = |repeat_acks| AckConfig::Dca(DcaConfig { repeat_acks, ..DcaConfig::default() });
    for ack in [
        AckConfig::Every,
        AckConfig::Delayed { segments: 2, timeout: DELAY, quick: 0 },
        dca(false),
        dca(true),
        AckConfig::Daa(DaaConfig::default()),
        AckConfig::Ada(AdaConfig::default()),
        AckConfig::Altman { timeout: DELAY },
    ] {
        let config = TcpConfig { ack, timestamps: true, ..window(4) };
        let mut network = transfer(&config, 5, 100_000, |_| {});
        // All that answers the first transmission of the end is lost, three times over.
        let mut losses = 3;
        network.lose(move |sent| {
            let is_last = sent.segment.ack.is_some_and(|ack| ack.0.wrapping_sub(ISN.0) > 97_000);
            let lost = sent.from == 1 && is_last && losses > 0;
            losses -= u32::from(lost);
            lost
        });
        network.run();
        assert_eq!(network.ends[1].stats().bytes_delivered, 100_000);
        let end = network.sent.last().unwrap().at;
        assert!(end < seconds(80.0), "{ack:?}: {end}");
    }
}

// Chen, Xue and Nahrstedt 2003: a fifth of the round trip's hops, and room for two segments.
#[test]
fn cwnd_may_be_bounded_by_the_hops_of_the_round_trip() {
    for (hops, segments) in [(1, 2), (5, 2), (6, 3), (8, 4), (16, 7)] {
        let config = TcpConfig { cwnd_limit_by_hops: true, ..config() };
        let mut network = transfer(&config, hops, 300_000, |_| {});
        network.run();
        assert_eq!(network.ends[0].cwnd(), segments * MSS, "{hops} hops");
    }
}

#[test]
fn of_two_bounds_of_cwnd_the_smaller_one_counts() {
    for (limit, segments) in [(2_000, 2), (5_000, 4)] {
        let cwnd_limit = Some(Bytes(limit));
        let config = TcpConfig { cwnd_limit, cwnd_limit_by_hops: true, ..config() };
        let mut network = transfer(&config, 8, 300_000, |_| {});
        network.run();
        assert_eq!(network.ends[0].cwnd(), segments * MSS);
    }
}

#[test]
fn an_ack_policy_knows_that_no_more_data_comes() {
    let (mut network, seen) = delayed(&config(), 1, [10_000, 0], NEVER);
    network.run_until(seconds(0.2));
    assert_eq!(seen.lock().unwrap().after_fin, 0);
    network.run();
    assert!(seen.lock().unwrap().after_fin > 0);
}

#[test]
fn cwnd_in_the_window_field_is_no_receive_window() {
    let (mut network, _) = delayed(&window(2), 1, [100_000, 100_000], NEVER);
    network.run_until(seconds(0.4));
    let told = network.data(1).last().unwrap().segment.window;
    assert!(told < 30_000, "{told}");
    assert_eq!(network.ends[0].send_window(), 65_535);
    network.run();
}

#[test]
fn an_ack_policy_measures_the_round_trip_by_timestamps() {
    let config = TcpConfig { timestamps: true, ..window(4) };
    let (mut network, seen) = delayed(&config, 1, [100_000, 0], NEVER);
    network.run();
    let seen = seen.lock().unwrap();
    let least = seen.rtts.iter().min().unwrap();
    assert!((100..=101).contains(&least.as_millis()), "{:?}", seen.rtts);
    assert!(seen.rtts.len() < 20, "one for each ACK: {:?}", seen.rtts);
}

/// A transfer whose path fails from 1.98 s to 12 s. The sender gets a notice at 2.2 s if `noticed`,
/// and a report of a new route at `restored_at`.
fn broken_route(
    noticed: bool,
    restored_at: Option<Instant>,
    change: impl FnOnce(&mut Strategies),
) -> Network {
    let config = TcpConfig { initial_ssthresh: Some(Bytes(10_000)), ..config() };
    let mut network = transfer(&config, 5, 10_000_000, change);
    network.run_until(seconds(1.98));
    network.lose(|sent| (seconds(1.98)..seconds(12.0)).contains(&sent.at));
    network.run_until(seconds(2.2));
    if noticed {
        let stuck = network.data(0).find(|sent| sent.lost).unwrap().segment.seq;
        network.call(0, |end, now, io| end.on_route_failure(now, Some(stuck), io));
    }
    network.run_until(restored_at.unwrap_or(seconds(12.0)));
    if restored_at.is_some() {
        network.call(0, |end, now, io| end.on_route_restored(now, io));
    }
    network
}

fn elfn(probe_interval: Duration, thaw: Thaw) -> Box<Elfn> {
    let config = ElfnConfig { probe_interval, window: thaw, rto: thaw, resume_on_route: true };
    Box::new(Elfn::new(config))
}

/// Latest time of the first new acknowledgement that end 0 receives after the outage.
fn back_at(network: &mut Network) -> Instant {
    let before = network.ends[0].stats().bytes_acked;
    while network.ends[0].stats().bytes_acked == before {
        network.run_until(network.now + Duration::from_millis(10));
    }
    network.now
}

#[test]
fn a_sender_told_of_a_broken_route_stands_by() {
    let elfn = elfn(Duration::from_secs(2), Thaw::AsFrozen);
    let mut network = broken_route(true, None, |s| s.route = elfn);
    let sender = &network.ends[0];
    assert!(sender.is_standing_by());
    assert_eq!(sender.stats().timeouts, 0);
    let (cwnd, rto) = (sender.cwnd(), sender.rto());
    assert!(cwnd > 20_000, "{cwnd}");
    let probes = network.data(0).filter(|sent| sent.at > seconds(2.2)).count();
    assert_eq!(probes, 4, "at 4.2, 6.2, 8.2 and 10.2 s");
    let back = back_at(&mut network);
    assert!(back < seconds(12.32), "a round trip after the probe at 12.2 s: {back}");
    let sender = &network.ends[0];
    assert!(!sender.is_standing_by());
    assert_eq!((sender.stats().timeouts, sender.rto()), (0, rto));
    assert!(sender.cwnd() >= cwnd);
    network.run();
}

#[test]
fn without_a_policy_a_notice_changes_nothing() {
    let trace = |noticed| {
        let mut network = broken_route(noticed, None, |_| {});
        assert!(network.ends[0].stats().timeouts > 2);
        network.run();
        network.sent.iter().map(|sent| (sent.at, sent.segment.clone())).collect::<Vec<_>>()
    };
    assert_eq!(trace(true), trace(false));
}

#[test]
fn news_of_a_route_ends_standby_at_once() {
    let elfn = elfn(Duration::from_secs(30), Thaw::AsFrozen);
    let mut network = broken_route(true, Some(seconds(12.0)), |s| s.route = elfn);
    let back = back_at(&mut network);
    assert!(back < seconds(12.12), "{back}");
    network.run();
}

#[test]
fn a_new_route_can_start_anew() {
    let (control, seen) = hop_paced(1);
    let mut network = broken_route(true, None, |strategies| {
        strategies.route = elfn(Duration::from_secs(2), Thaw::Initial);
        strategies.congestion = control;
    });
    back_at(&mut network);
    assert_eq!(seen.lock().unwrap().new_routes, 1);
    network.run();
}

#[test]
fn a_notice_of_acknowledged_data_is_old() {
    let elfn = elfn(Duration::from_secs(2), Thaw::AsFrozen);
    let mut network = transfer(&config(), 5, 10_000_000, |s| s.route = elfn);
    network.run_until(seconds(1.0));
    let first = network.data(0).next().unwrap().segment.seq;
    network.call(0, |end, now, io| end.on_route_failure(now, Some(first), io));
    assert!(!network.ends[0].is_standing_by());
}

#[test]
fn standby_ends_with_the_connection() {
    let elfn = elfn(Duration::from_secs(2), Thaw::AsFrozen);
    let mut network = broken_route(true, None, |s| s.route = elfn);
    network.call(0, |end, now, io| end.abort(now, io));
    assert!(!network.ends[0].is_standing_by());
    assert_eq!(network.ends[0].next_deadline(), None);
}

/// A sender that snoozes from 1.98 s on, with a window in flight whose ACKs have yet to arrive. The
/// path may have lost the first segment of that window.
fn snoozing(until: Option<Instant>, then: Standby, with_loss: bool) -> Network {
    let config = TcpConfig { initial_ssthresh: Some(Bytes(10_000)), ..config() };
    let policy = Box::new(Snooze { until, then });
    let mut network = transfer(&config, 5, 1_000_000, |s| s.route = policy);
    network.run_until(seconds(1.88));
    let mut loses = with_loss;
    network.lose(move |sent| sent.from == 0 && std::mem::take(&mut loses));
    network.run_until(seconds(1.98));
    let first = network.ends[0].stats().bytes_acked as u32;
    let stuck = network.data(0).find(|sent| sent.offset == first).unwrap().segment.seq;
    network.call(0, |end, now, io| end.on_route_failure(now, Some(stuck), io));
    assert!(network.ends[0].is_standing_by());
    network
}

const AS_FROZEN: Standby =
    Standby::Leave(Resume { window: Thaw::AsFrozen, rto: Thaw::AsFrozen, retransmit: true });

#[test]
fn in_standby_acks_are_taken_and_nothing_else_happens() {
    let mut network = snoozing(Some(seconds(60.0)), AS_FROZEN, false);
    let (cwnd, sent) = (network.ends[0].cwnd(), network.data(0).count());
    assert!(network.ends[0].flight() > 10_000);
    network.run_until(seconds(59.0));
    let sender = &network.ends[0];
    assert_eq!((sender.flight(), sender.cwnd(), network.data(0).count()), (0, cwnd, sent));
    assert_eq!(sender.next_deadline(), Some(seconds(60.0)));
    network.run_until(seconds(60.0));
    assert_eq!(network.data(0).last().unwrap().at, seconds(60.0));
    network.run();
    assert_eq!(network.ends[0].stats().timeouts, 0);
}

#[test]
fn in_standby_duplicates_are_no_loss() {
    let mut network = snoozing(None, AS_FROZEN, true);
    let cwnd = network.ends[0].cwnd();
    network.run_until(seconds(10.0));
    let stats = network.ends[0].stats();
    assert!(stats.duplicate_acks_received > 3, "{stats:?}");
    assert_eq!((stats.fast_retransmits, network.ends[0].cwnd()), (0, cwnd));
    network.call(0, |end, now, io| end.on_route_restored(now, io));
    network.run();
    assert_eq!(network.ends[0].stats().segments_retransmitted, 1);
}

#[test]
fn a_probe_starts_no_retransmission_timer() {
    let mut network = snoozing(None, Standby::Probe, true);
    network.run_until(seconds(10.0));
    network.lose(|_| true);
    network.call(0, |end, now, io| end.on_route_restored(now, io));
    assert_eq!(network.data(0).last().unwrap().at, seconds(10.0));
    assert_eq!(network.ends[0].next_deadline(), None);
}

#[test]
fn all_strategies_together_survive_a_lossy_path_and_false_notices() {
    let config = TcpConfig { timestamps: true, spurious: SpuriousDetection::Eifel, ..config() };
    let strategies = || Strategies {
        congestion: hop_paced(1).0,
        rto: Box::new(Stretched { by: 1 }),
        ack: cumulative(Duration::from_millis(700)).0,
        route: elfn(Duration::from_millis(300), Thaw::Initial),
    };
    let (mut timeouts, mut notices) = (0, 0);
    for seed in 0..50 {
        let mut random = Stream::new(seed, "lossy path");
        let ends = [strategies(), strategies()];
        let mut network = Network::new(&config, ends, DELAY, 7, [200_000, 50_000]);
        let mut loss = Stream::new(seed, "loss");
        network.lose(move |_| loss.chance(0.1));
        while network.ends.iter().any(|end| end.state() != TcpState::Closed) {
            network.run_until(network.now + Duration::from_millis(100));
            assert!(network.now < seconds(3600.0), "seed {seed}: {:?}", network.ends);
            let lost = network.data(0).filter(|sent| sent.lost).last().map(|sent| sent.segment.seq);
            if let Some(seq) = lost.filter(|_| random.chance(0.2)) {
                network.call(0, |end, now, io| end.on_route_failure(now, Some(seq), io));
                notices += u32::from(network.ends[0].is_standing_by());
            }
        }
        network.run();
        timeouts += network.ends[0].stats().timeouts;
    }
    assert!(timeouts > 50 && notices > 50, "{timeouts} time-outs, {notices} notices");
}
