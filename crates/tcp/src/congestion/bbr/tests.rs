//! Each test names the step of `tcp_bbr.c` or the section of the paper (ACM Queue 14(5), 2016) that
//! it proves.

use super::super::path::{Path, Policer, SMSS};
use super::*;
use crate::congestion::Delivery;
use crate::recovery::RecoveryPhase;
use airtcp_core::DataRate;

/// 20 Mbit/s and 40 ms: 100 segments.
fn path(bdps: f64) -> Path<Bbr> {
    Path::new(Bbr::default(), 20, 40, bdps)
}

fn pacing(path: &Path<Bbr>) -> f64 {
    path.cc.pacing_rate(&path.window).unwrap().bits_per_sec() as f64 / 1e6
}

// `bbr_init_pacing_rate_from_rtt`.
#[test]
fn the_first_pacing_rate_is_the_initial_window_in_an_rtt() {
    let mut window = Window::new(SMSS, 10 * SMSS, None, None);
    let mut cc = Bbr::default();
    let mbps = |cc: &Bbr| cc.pacing_rate(&window).unwrap().bits_per_sec() as f64 / 1e6;
    // 80 kbit in 1 ms, times 2.887, less 1 %.
    assert!((mbps(&cc) - 228.6).abs() < 0.1, "{}", mbps(&cc));
    let mut other = window;
    cc.on_established(&mut other, Instant::ZERO, Some(Duration::from_millis(40)));
    assert!((mbps(&cc) - 5.716).abs() < 0.01, "{}", mbps(&cc));
    window = other;
    assert_eq!(window.cwnd(), 10 * SMSS);
}

// "Startup": the rate doubles each round. Two and a half after the first (5.7 Mbit/s) it exceeds the
// link's; its largest sample is known a round later, and three without growth follow.
#[test]
fn startup_finds_the_rate_in_a_logarithm_of_rounds_and_leaves_it_after_three() {
    let mut path = path(4.0);
    path.run(0.28);
    let rate = path.cc.bandwidth.get() as f64 / 1e6;
    assert!(path.cc.mode == Mode::Startup && rate > 19.0, "{:?} {rate}", path.cc.mode);
    path.run(0.68);
    assert!(path.cc.full.reached && path.cc.mode != Mode::Startup);
    assert!((path.cc.bandwidth.get() as f64 / 1e6 - 20.0).abs() < 0.1);
}

// "Drain".
#[test]
fn drain_leaves_no_queue_of_startup() {
    let mut path = path(4.0);
    path.run(1.0);
    let most = path.longest_queue(0.0, 1.0);
    assert!(most > path.bdp(), "Startup queues: {most}");
    assert_eq!(path.cc.mode, Mode::ProbeBw);
    let drained = path.between(0.0, 1.0).skip_while(|point| point.queue < most);
    assert!(drained.map(|point| point.queue).min().unwrap() < 10 * SMSS);
}

// "Steady-state behavior": in six of eight phases the network holds little more than the product.
#[test]
fn the_link_is_full_and_its_queue_small() {
    let mut path = path(4.0);
    path.run(2.0);
    let rate = path.run(9.0);
    assert!(rate > 0.98 * 20.0, "{rate}");
    let mut inflight: Vec<u32> = path.between(2.0, 9.0).map(|point| point.inflight).collect();
    inflight.sort_unstable();
    let median = inflight[inflight.len() / 2];
    let bdp = path.bdp();
    assert!((bdp * 95 / 100..bdp * 115 / 100).contains(&median), "{median} and {bdp}");
    let most = inflight.last().unwrap();
    assert!((bdp * 5 / 4..bdp * 3 / 2).contains(most), "5/4 of the product while probing: {most}");
    assert_eq!(path.dropped, 0);
}

// `bbr_update_min_rtt`. The first RTTs after a dip are still the smallest, and begin the ten seconds.
#[test]
fn every_ten_seconds_without_a_lower_rtt_it_keeps_four_segments_for_200_ms() {
    let mut path = path(4.0);
    // Another sender's queue, so to speak: what BBR measures then it takes for the path.
    path.run(0.6);
    path.rtt = Duration::from_millis(45);
    path.run(35.0);
    let mut dips: Vec<(f64, f64)> = Vec::new();
    for point in path.points.iter().filter(|point| point.cwnd <= 4 * SMSS) {
        let at = point.at.as_secs_f64();
        match dips.last_mut().filter(|(_, end)| at - *end < 0.1) {
            Some((_, end)) => *end = at,
            None => dips.push((at, at)),
        }
    }
    assert_eq!(dips.len(), 3, "{dips:?}");
    for (begin, end) in &dips {
        assert!((0.2..0.35).contains(&(end - begin)), "{dips:?}");
    }
    for pair in dips.windows(2) {
        assert!((9.9..11.0).contains(&(pair[1].0 - pair[0].1)), "{dips:?}");
    }
    assert_eq!(path.cc.min_rtt.unwrap().as_millis(), 45);
}

// `tp->app_limited` in `bbr_update_min_rtt`: ten rounds of four segments would empty the filter.
#[test]
fn probe_rtt_leaves_the_bandwidth_estimate() {
    let mut path = path(4.0);
    path.run(0.6);
    path.rtt = Duration::from_millis(2);
    path.run(0.8);
    path.rtt = Duration::from_millis(3);
    path.run(11.5);
    let rates: Vec<f64> = path.between(1.0, 11.5).filter_map(|point| point.pacing).collect();
    assert!(path.points.iter().any(|point| point.cwnd <= 4 * SMSS));
    assert!(rates.iter().all(|&rate| rate > 14.0), "{:?}", rates.iter().copied().reduce(f64::min));
}

// `bbr_update_cycle_phase`: seven eighths of the time at the rate or below it.
#[test]
fn the_gain_cycles_through_eight_phases() {
    let mut path = path(4.0);
    path.run(2.0);
    let mut phases = Vec::new();
    for step in 0..1000 {
        path.run(2.0 + 0.001 * f64::from(step + 1));
        if phases.last() != Some(&path.cc.phase) {
            phases.push(path.cc.phase);
        }
    }
    assert!(phases.len() > 16, "{phases:?}");
    assert!(phases.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 8), "{phases:?}");
}

// `bbr_reset_probe_bw_mode`: any phase but the one that drains.
#[test]
fn the_first_phase_differs_between_flows_and_never_drains() {
    let mut first = [0; 8];
    for una in 0..800_u32 {
        let mut cc = Bbr::default();
        cc.heard.una = Some(SeqNum(una * 5_368_709));
        cc.enter_probe_bw(Instant::ZERO);
        first[cc.phase] += 1;
    }
    assert_eq!(first[1], 0);
    assert!(first.iter().enumerate().all(|(phase, &n)| phase == 1 || n > 80), "{first:?}");
}

// `bbr_update_bw`: the filter holds ten rounds.
#[test]
fn a_slower_link_is_believed_after_ten_rounds() {
    let mut path = path(4.0);
    path.run(3.0);
    path.rate = DataRate::mbps(10);
    path.run(3.2);
    assert!(path.cc.bandwidth.get() > 19_000_000);
    path.run(5.0);
    assert!((path.cc.bandwidth.get() as f64 / 1e6 - 10.0).abs() < 0.2);
}

// The paper's "Steady-state behavior": the rate grows by a quarter each eight phases.
#[test]
fn a_faster_link_is_found_by_probing() {
    let mut path = path(4.0);
    path.run(3.0);
    path.rate = DataRate::mbps(40);
    path.run(6.0);
    assert!(path.cc.bandwidth.get() > 39_000_000, "{}", path.cc.bandwidth.get());
}

// "BBR and loss": losses below the gain of ProbeBw do not slow it.
#[test]
fn one_percent_of_random_loss_costs_one_percent() {
    let mut path = path(2.0);
    path.drop_every = Some(100);
    path.run(2.0);
    let rate = path.run(9.0);
    assert!(rate > 0.95 * 20.0, "{rate}");
}

fn begin_recovery(path: &mut Path<Bbr>) {
    let loss = Loss { now: path.now, flight: 90 * SMSS, duplicate_acks: 3 };
    path.cc.on_fast_retransmit(&mut path.window, &loss);
}

/// An ACK that delivers a segment and leaves `inflight` bytes in the network.
fn one_delivered(path: &mut Path<Bbr>, inflight: u32) {
    let delivered = path.cc.heard.delivered + u64::from(SMSS);
    let delivery = Delivery { delivered, newly_delivered: SMSS, inflight, ..Delivery::default() };
    let ack = Ack {
        now: path.now,
        acked: SMSS,
        rtt: None,
        srtt: None,
        flight: inflight,
        duplicate_acks: 0,
        phase: RecoveryPhase::Recovery,
        cwnd_limited: true,
        una: SeqNum(0),
        max: SeqNum(0),
        hops: None,
        delivery,
        rate: None,
    };
    path.cc.on_ack(&mut path.window, &ack);
}

// `bbr_set_cwnd_to_recover_or_restore`.
#[test]
fn the_first_round_of_recovery_conserves_packets_and_its_end_restores_cwnd() {
    let mut path = path(2.0);
    path.run(3.0);
    let before = path.window.cwnd();
    begin_recovery(&mut path);
    one_delivered(&mut path, 79 * SMSS);
    assert_eq!(path.window.cwnd(), 80 * SMSS);
    assert!(path.cc.recovery.conserves);
    path.cc.on_recovered(&mut path.window, Instant::ZERO);
    one_delivered(&mut path, 79 * SMSS);
    assert_eq!(path.window.cwnd(), before);
}

// `prev_ca_state`: as of the last ACK.
#[test]
fn a_recovery_that_follows_at_once_is_the_same() {
    let mut path = path(2.0);
    path.run(3.0);
    begin_recovery(&mut path);
    one_delivered(&mut path, 79 * SMSS);
    path.cc.recovery.conserves = false; // the first round is over
    path.cc.on_recovered(&mut path.window, Instant::ZERO);
    begin_recovery(&mut path);
    one_delivered(&mut path, 59 * SMSS);
    assert_eq!(path.window.cwnd(), 81 * SMSS);
    assert!(!path.cc.recovery.conserves);
}

// `tcp_enter_loss` and `bbr_set_state`.
#[test]
fn a_timeout_leaves_one_segment_and_the_rate() {
    let mut path = path(2.0);
    path.run(3.0);
    let (before, rate) = (path.window.cwnd(), path.cc.bandwidth.get());
    let now = Instant::ZERO + Duration::from_secs(4);
    let timeout = Timeout {
        now,
        flight: 100 * SMSS,
        first: true,
        duplicate_acks: 0,
        phase: RecoveryPhase::Open,
    };
    path.cc.on_timeout(&mut path.window, &timeout);
    assert_eq!((path.window.cwnd(), path.cc.bandwidth.get()), (SMSS, rate));
    assert_eq!(path.window.ssthresh(), {
        path.cc.on_recovered(&mut path.window, now);
        path.window.ssthresh()
    });
    one_delivered(&mut path, SMSS);
    assert_eq!(path.window.cwnd(), before);
}

// `bbr_lt_bw_sampling`: two intervals of four rounds with a fifth lost, then 48 rounds at the rate.
#[test]
fn a_policer_is_recognised_and_its_rate_kept_for_48_rounds() {
    let mut path = path(4.0);
    path.policer = Some(Policer::new(DataRate::mbps(5), 200 * SMSS));
    path.run(0.7);
    assert!(path.cc.long_term.in_use);
    let first = path.cc.round.count - u64::from(path.cc.long_term.rounds);
    assert!((path.cc.rate() as f64 / 5e6 - 1.0).abs() < 1.0 / 8.0, "{}", path.cc.rate());
    while path.cc.long_term.in_use {
        let next = path.now.as_secs_f64() + 0.001;
        path.run(next);
    }
    assert_eq!(path.cc.round.count - first, 48);
}

#[test]
fn a_full_queue_is_no_policer() {
    let mut path = path(0.5);
    path.run(9.0);
    assert!(path.dropped > 0 && !path.cc.long_term.in_use);
}

// `bbr_cwnd_event`: it paces at the rate, neither in a burst nor from the initial window.
#[test]
fn after_a_pause_it_goes_on_at_the_rate() {
    let mut path = path(4.0);
    path.pause = Some((Instant::from_millis(3000), Instant::from_millis(5000)));
    path.run(3.0);
    let cwnd = path.window.cwnd();
    path.run(5.001);
    assert!(path.cc.idle_restart);
    assert!((pacing(&path) - 19.8).abs() < 0.3, "{}", pacing(&path));
    path.run(5.2);
    assert!(!path.cc.idle_restart);
    assert!(path.window.cwnd() >= cwnd * 9 / 10);
    let rate = path.run(6.0);
    assert!(rate > 18.0, "{rate}");
}

// A pause longer than ten seconds is as good as ProbeRtt.
#[test]
fn a_pause_of_eleven_seconds_needs_no_probe_rtt() {
    let mut path = path(4.0);
    path.pause = Some((Instant::from_millis(3000), Instant::from_millis(14_000)));
    path.run(15.0);
    assert!(path.between(14.0, 15.0).all(|point| point.cwnd > 4 * SMSS));
}

// `bbr_update_ack_aggregation`: 20 segments at once beyond what the rate explains.
#[test]
fn acks_in_lumps_widen_the_window() {
    let mut path = path(4.0);
    path.run(2.0);
    let room = path.cc.aggregation_room();
    let mut cc = path.cc.clone();
    let now = Instant::ZERO + Duration::from_secs(2);
    let rate = RateSample {
        delivered: 100_000,
        interval: Duration::from_millis(40),
        prior_delivered: 0,
        prior_delivered_ce: 0,
        prior_lost: 0,
        tx_inflight: 100 * SMSS,
        app_limited: false,
        retransmitted: false,
        rtt: Some(Duration::from_millis(40)),
    };
    let mut ack = super::super::tests::ack(20 * SMSS);
    ack.now = now;
    ack.rate = Some(rate);
    ack.delivery = path.delivery;
    ack.delivery.newly_delivered = 20 * SMSS;
    cc.on_ack(&mut path.window, &ack);
    assert!(cc.aggregation_room() >= (20 * u64::from(SMSS)).max(room));
}

#[test]
fn it_answers_no_marks() {
    let mut path = path(4.0);
    path.run(2.0);
    let before = path.window;
    let loss = Loss { now: Instant::from_millis(2000), flight: 100 * SMSS, duplicate_acks: 0 };
    path.cc.on_ecn(&mut path.window, &loss);
    assert_eq!(path.window, before);
}

#[test]
fn curve() {
    let mut path = path(2.0);
    path.run(11.0);
    insta::assert_snapshot!(path.curve(0.2));
}
