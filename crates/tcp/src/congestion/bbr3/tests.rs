//! Each test names the section of draft-ietf-ccwg-bbr that it proves, or the example of its
//! appendix ("App.").

use super::super::path::{Path, Policer, SMSS};
use super::super::tests::{ack, loss, timeout};
use super::super::{Delivery, Spurious};
use super::*;
use BbrState::{Drain, ProbeBwCruise, ProbeBwDown, ProbeBwRefill, ProbeBwUp, Startup};
use std::fmt::Write;

const RTT: Duration = Duration::from_millis(40);
const BDP: u32 = 100 * SMSS;

/// 20 Mbit/s and 40 ms: 100 segments.
fn path(bdps: f64) -> Path<Bbr3> {
    Path::new(Bbr3::default(), 20, 40, bdps)
}

/// Runs until the state changes to `state`; returns that time, in seconds.
fn run_to(path: &mut Path<Bbr3>, state: BbrState) -> f64 {
    let limit = path.now + Duration::from_secs(20);
    let mut before = path.cc.state;
    loop {
        path.run(path.now.as_secs_f64() + 0.001);
        if path.cc.state == state && before != state {
            return path.now.as_secs_f64();
        }
        before = path.cc.state;
        assert!(path.now < limit, "no {state:?} in 20 s, but {before:?}");
    }
}

/// Runs until the state changes; returns that time, in seconds.
fn run_out(path: &mut Path<Bbr3>) -> f64 {
    let state = path.cc.state;
    while path.cc.state == state {
        path.run(path.now.as_secs_f64() + 0.001);
        assert!(path.now < Instant::from_millis(60_000), "{state:?} forever");
    }
    path.now.as_secs_f64()
}

fn mbps(rate: u64) -> f64 {
    rate as f64 / 1e6
}

/// A sender that has found 20 Mbit/s and 40 ms, in `state`, and its window.
fn model(state: BbrState) -> (Bbr3, Window) {
    let mut cc = Bbr3 { state, bw: 20_000_000, min_rtt: Some(RTT), ..Bbr3::default() };
    cc.max_bw.update(1, 0, cc.bw);
    cc.full.reached = state != Startup;
    cc.pacing_rate = pace(cc.bw);
    (cc, Window::new(SMSS, 2 * BDP, None, None))
}

fn sample(rate: u64) -> Sample {
    Sample {
        rate,
        delivered: BDP,
        prior_delivered: 0,
        tx_inflight: BDP,
        lost: 0,
        is_app_limited: false,
        rtt: None,
    }
}

fn lost(bytes: u32, tx_inflight: u32, lost: u64) -> Lost {
    let (now, seq) = (Instant::ZERO, SeqNum(0));
    Lost { now, seq, bytes, tx_inflight, prior_lost: 0, lost, delivered: 0, app_limited: false }
}

// §5.6.2.
#[test]
fn the_first_pacing_rate_is_the_initial_window_in_an_rtt() {
    let mut window = Window::new(SMSS, 10 * SMSS, None, None);
    let mut cc = Bbr3::default();
    let rate = |cc: &Bbr3, window: &Window| mbps(cc.pacing_rate(window).unwrap().bits_per_sec());
    assert!((rate(&cc, &window) - 2.77 * 80.0).abs() < 0.1, "{}", rate(&cc, &window));
    cc.on_established(&mut window, Instant::ZERO, Some(RTT));
    assert!((rate(&cc, &window) - 2.77 * 2.0).abs() < 0.01, "{}", rate(&cc, &window));
    assert_eq!(window.cwnd(), 10 * SMSS);
}

// §5.3.1.2; App.: "Exiting STARTUP on Bandwidth Plateau".
#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut path = path(4.0);
    run_to(&mut path, Drain);
    let cc = &path.cc;
    assert!(cc.full.now && cc.full.reached && cc.full.count == 3, "{:?}", cc.full);
    assert!((mbps(cc.max_bw.get()) - 20.0).abs() < 0.4, "{}", mbps(cc.max_bw.get()));
    assert!(cc.round.count <= 10, "a logarithm of rounds: {}", cc.round.count);
    assert_eq!((path.dropped, cc.inflight_longterm), (0, NO_VOLUME_BOUND));
}

// §5.3.1.2.
#[test]
fn growth_by_a_quarter_begins_the_count_anew() {
    let (mut cc, _) = model(Startup);
    cc.round.starts = true;
    for (rate, count) in [(100, 0), (124, 1), (124, 2), (125, 0), (155, 1), (155, 2)] {
        cc.check_full_bw_reached(&sample(rate));
        assert_eq!((cc.full.count, cc.full.now), (count, false), "{rate}");
    }
    cc.check_full_bw_reached(&Sample { is_app_limited: true, ..sample(155) });
    assert!(!cc.full.now, "App.: application-limited rounds show no plateau");
    cc.check_full_bw_reached(&sample(155));
    assert!(cc.full.now && cc.full.reached);
}

// §5.3.1.3.
#[test]
fn startup_ends_by_losses() {
    let mut path = path(0.1);
    run_to(&mut path, Drain);
    let cc = &path.cc;
    assert!(cc.full.count < 3, "by losses, not by a plateau: {:?}", cc.full);
    assert!(cc.full.reached && cc.recovery.undo_state == Some(Startup));
    assert!(cc.inflight_longterm >= BDP && cc.inflight_longterm < 3 * BDP);
}

// §5.3.1.3: all three criteria; App.: "Exiting STARTUP on Loss When Application-Limited".
#[test]
fn startup_ends_by_losses_only_when_all_criteria_are_met() {
    let ends = |phase, ranges, lost, is_app_limited| {
        let (mut cc, window) = model(Startup);
        cc.congestion.loss_round_start = true;
        cc.congestion.lost_ranges = ranges;
        cc.congestion.inflight_latest = 3 * BDP;
        cc.recovery.began_at = Some(1000);
        let rs = Sample { prior_delivered: 1000, lost, is_app_limited, ..sample(1) };
        let ack = Ack { phase, ..ack(SMSS) };
        cc.check_startup_done(&window, &ack, &rs);
        assert_eq!(cc.full.reached, cc.state == Drain);
        assert!(cc.state == Startup || cc.inflight_longterm == 3 * BDP);
        cc.state == Drain
    };
    let more_than_two_percent = 2001;
    assert!(ends(RecoveryPhase::Recovery, 6, more_than_two_percent, false));
    assert!(ends(RecoveryPhase::Recovery, 6, more_than_two_percent, true), "application-limited");
    assert!(!ends(RecoveryPhase::Open, 6, more_than_two_percent, false), "no recovery");
    assert!(!ends(RecoveryPhase::Recovery, 5, more_than_two_percent, false), "five ranges");
    assert!(!ends(RecoveryPhase::Recovery, 6, 2000, false), "no more than 2 %");
}

// §5.3.1.3.
#[test]
fn adjacent_losses_are_one_range() {
    let (mut cc, _) = model(Startup);
    for (seq, ranges) in [(0, 1), (1, 1), (2, 1), (5, 2), (6, 2), (9, 3)] {
        cc.count_range(&Lost { seq: SeqNum(seq * SMSS), ..lost(SMSS, BDP, 0) });
        assert_eq!(cc.congestion.lost_ranges, ranges, "{seq}");
    }
}

// §5.3.2; App.: "Exiting DRAIN Based on Inflight".
#[test]
fn drain_empties_the_queue_of_startup_in_a_round() {
    let mut path = path(4.0);
    let began = run_to(&mut path, Drain);
    assert!(path.longest_queue(0.0, began) > BDP * 9 / 10);
    let rate = path.cc.pacing_rate(&path.window).unwrap().bits_per_sec();
    assert!((mbps(rate) - 0.5 * 19.8).abs() < 0.1, "{}", mbps(rate));
    let ended = run_out(&mut path);
    assert!(ended - began < 0.09, "{began} to {ended}");
    assert!(path.cc.state.is_probe_bw() && path.delivery.inflight <= BDP + SMSS);
}

// §5.3.2; App.: "Exiting DRAIN Based on Time".
#[test]
fn drain_ends_after_three_rounds() {
    let (mut cc, window) = model(Drain);
    let mut ack = ack(SMSS);
    ack.delivery = Delivery { inflight: 2 * BDP, ..Delivery::default() };
    for (rounds, state) in [(3, Drain), (4, ProbeBwDown)] {
        cc.round.count = cc.drain_start_round + rounds;
        cc.check_drain_done(&window, &ack);
        assert_eq!(cc.state, state, "{rounds} rounds");
    }
}

// §5.3.3, §5.6.1.
#[test]
fn probe_bw_cycles_through_four_phases_at_their_gains() {
    let mut path = path(4.0);
    run_to(&mut path, ProbeBwDown);
    for (state, gain) in [
        (ProbeBwCruise, 1.0),
        (ProbeBwRefill, 1.0),
        (ProbeBwUp, 1.25),
        (ProbeBwDown, 0.9),
        (ProbeBwCruise, 1.0),
    ] {
        run_to(&mut path, state);
        let rate = mbps(path.cc.pacing_rate(&path.window).unwrap().bits_per_sec());
        let expected = mbps(path.cc.bw) * gain * 0.99;
        assert!((rate - expected).abs() < 0.01, "{state:?}: {rate}, not {expected}");
    }
}

// §5.3.3.3.
#[test]
fn refill_lasts_a_round_and_forgets_the_short_term() {
    let mut path = path(4.0);
    run_to(&mut path, ProbeBwCruise);
    path.cc.short_term = ShortTerm { bw: 15_000_000, inflight: 80 * SMSS };
    let began = run_to(&mut path, ProbeBwRefill);
    assert_eq!(path.cc.short_term, ShortTerm::default());
    let lasted = run_to(&mut path, ProbeBwUp) - began;
    assert!((0.039..0.083).contains(&lasted), "{lasted}");
}

// §5.3.3.7; App.: "Exiting PROBE_UP on Bandwidth Plateau".
#[test]
fn up_ends_on_a_plateau_of_three_rounds() {
    let mut path = path(4.0);
    run_to(&mut path, ProbeBwUp);
    let began = path.cc.round.count;
    run_to(&mut path, ProbeBwDown);
    assert!(path.cc.full.now && path.dropped == 0 && !path.cc.probe.prev_too_high);
    assert!((3..=4).contains(&(path.cc.round.count - began)), "{}", path.cc.round.count - began);
}

// §5.5.10.2; App.: "Handling Loss During PROBE_UP After inflight_longterm is Set".
#[test]
fn up_ends_when_it_loses_more_than_two_percent() {
    let mut path = path(0.2);
    run_to(&mut path, ProbeBwUp);
    run_to(&mut path, ProbeBwDown);
    let cc = &path.cc;
    assert!(cc.probe.prev_too_high && !cc.probe.is_sample && !cc.full.now);
    // The pipe and its queue, and the segments sent before the loss was known.
    let longterm = cc.inflight_longterm;
    assert!((BDP..BDP * 3 / 2).contains(&longterm), "{longterm}");
    assert_eq!(cc.recovery.undo_state, Some(ProbeBwUp));
}

// §5.3.3.6: "Deceleration".
#[test]
fn after_a_probe_that_went_too_high_the_next_ends_at_the_long_term() {
    for (too_high, inflight, state) in
        [(true, BDP, ProbeBwDown), (true, BDP - 1, ProbeBwUp), (false, BDP, ProbeBwUp)]
    {
        let (mut cc, window) = model(ProbeBwUp);
        cc.inflight_longterm = BDP;
        cc.probe.prev_too_high = too_high;
        let mut ack = ack(SMSS);
        ack.delivery.inflight = inflight;
        cc.congestion = Congestion { bw_latest: 1, inflight_latest: 1, ..cc.congestion };
        cc.update_probe_bw_cycle_phase(&window, &ack, &sample(1));
        assert_eq!(cc.state, state, "{too_high} {inflight}");
        let Congestion { bw_latest, inflight_latest, .. } = cc.congestion;
        let kept = u64::from(state == ProbeBwUp);
        assert_eq!((bw_latest, u64::from(inflight_latest)), (kept, kept), "§5.3.3.9");
        assert_eq!(cc.probe.prev_precautionary, state == ProbeBwDown);
        assert_eq!(cc.probe.prev_too_high, too_high && state == ProbeBwUp);
    }
}

// §5.3.3.6: "Acceleration".
#[test]
fn a_brief_probe_without_losses_is_repeated_after_a_round() {
    for (precautionary, too_high, state) in
        [(true, false, ProbeBwRefill), (true, true, ProbeBwDown), (false, false, ProbeBwDown)]
    {
        let (mut cc, window) = model(ProbeBwDown);
        cc.probe.wait = Duration::from_secs(2);
        cc.probe.ack_phase = AckPhase::ProbeStopping;
        cc.probe.is_sample = true;
        cc.probe.prev_precautionary = precautionary;
        cc.probe.prev_too_high = too_high;
        cc.round.starts = true;
        let mut ack = ack(SMSS);
        ack.delivery.inflight = 2 * BDP;
        cc.update_probe_bw_cycle_phase(&window, &ack, &sample(1));
        assert_eq!(cc.state, state, "{precautionary} {too_high}");
        assert_eq!((cc.cycle_count, cc.probe.is_sample), (1, false), "§5.5.6");
    }
}

// §5.5.10.2: 98 segments before it allow 1.96 lost ones; one was.
#[test]
fn inflight_at_loss_is_the_prefix_that_fits() {
    let at =
        |lost_prev: u64, tx_inflight| inflight_at_loss(&lost(SMSS, tx_inflight, lost_prev + 1000));
    assert_eq!(at(1000, 99 * SMSS), 98_000 + 960 * 100 / 98);
    assert_eq!(at(0, 51 * SMSS), 50_000 + 1000 * 100 / 98);
    assert_eq!(at(9000, 99 * SMSS), 98_000, "not less than before the packet");
}

// §5.5.10.2: at most CUBIC's decrease, and none for a sender without data.
#[test]
fn a_probe_that_went_too_high_lowers_the_long_term_by_at_most_beta() {
    let (mut cc, mut window) = model(ProbeBwRefill);
    cc.probe.is_sample = true;
    cc.on_lost(&mut window, &Lost { app_limited: true, ..lost(SMSS, 30 * SMSS, 1000) });
    assert_eq!((cc.inflight_longterm, cc.probe.is_sample), (NO_VOLUME_BOUND, false));
    cc.probe.is_sample = true;
    cc.on_lost(&mut window, &lost(SMSS, 30 * SMSS, 1000));
    assert_eq!(cc.inflight_longterm, BDP * 7 / 10);
    assert_eq!(cc.state, ProbeBwRefill);
    cc.on_lost(&mut window, &lost(SMSS, 90 * SMSS, 50_000));
    assert_eq!(cc.inflight_longterm, BDP * 7 / 10, "once for each probe");
}

// §5.3.3.5.
#[test]
fn the_long_term_grows_by_twice_as_much_each_round() {
    let (mut cc, mut window) = model(ProbeBwUp);
    window.set_cwnd(64 * SMSS);
    cc.inflight_longterm = 64 * SMSS;
    cc.is_cwnd_limited = true;
    cc.raise_inflight_longterm_slope(&window);
    let mut grown = Vec::new();
    for _ in 0..5 {
        let before = cc.inflight_longterm;
        for acked in 0..64 {
            cc.round.starts = acked == 63;
            window.set_cwnd(cc.inflight_longterm);
            cc.probe_inflight_longterm_upward(&window, &delivering(SMSS));
        }
        grown.push((cc.inflight_longterm - before) / SMSS);
    }
    assert_eq!(grown[0], 1);
    assert!(grown.windows(2).all(|pair| pair[1] >= pair[0] * 3 / 2), "{grown:?}");
    assert!(*grown.last().unwrap() > 8, "{grown:?}");
    cc.is_cwnd_limited = false;
    let before = cc.inflight_longterm;
    cc.probe_inflight_longterm_upward(&window, &delivering(64 * SMSS));
    assert_eq!(cc.inflight_longterm, before, "not what is not used up");
}

fn delivering(newly_delivered: u32) -> Ack {
    let delivery = Delivery { newly_delivered, ..Delivery::default() };
    Ack { delivery, ..ack(0) }
}

// §5.3.3.8.
#[test]
fn the_wait_between_probes_differs_between_flows_and_draws() {
    let (mut thirds, mut rounds) = ([0; 3], [0; 2]);
    for una in 0..3000_u32 {
        let mut cc = Bbr3 { una: Some(SeqNum(una * 1_431_655)), ..Bbr3::default() };
        cc.pick_probe_wait();
        let more = cc.probe.wait.as_secs_f64() - 2.0;
        thirds[(more * 3.0) as usize] += 1;
        rounds[cc.probe.rounds_since_up as usize] += 1;
    }
    assert!(thirds.iter().all(|n| (900..1100).contains(n)), "{thirds:?}");
    assert!(rounds.iter().all(|n| (1400..1600).contains(n)), "{rounds:?}");
}

// §5.3.3.8.
#[test]
fn the_next_probe_comes_when_reno_would_have_grown_as_much() {
    let waits = |mbps, rtt| {
        let mut path = Path::new(Bbr3::default(), mbps, rtt, 4.0);
        run_to(&mut path, ProbeBwRefill);
        let probe = &path.cc.probe;
        (path.now.since(probe.cycle_stamp).as_secs_f64(), probe.rounds_since_up)
    };
    // 12 segments.
    let (_, rounds) = waits(5, 20);
    assert_eq!(rounds, 12);
    // 250 segments, but 63 rounds at most.
    let (seconds, rounds) = waits(100, 20);
    assert!(rounds == 63 && seconds < 2.0, "{rounds} rounds, {seconds} s");
    // 62 rounds of 200 ms take longer than three seconds.
    let (seconds, rounds) = waits(20, 200);
    assert!(rounds < 62 && (2.0..3.2).contains(&seconds), "{rounds} rounds, {seconds} s");
}

// §5.3.3.1; App.: "Exiting PROBE_DOWN on Inflight", "Exiting PROBE_DOWN After Max Time".
#[test]
fn down_ends_with_the_queue_gone_and_headroom_left() {
    let (mut cc, window) = model(ProbeBwDown);
    cc.probe.wait = Duration::from_secs(2);
    let mut ack = ack(SMSS);
    let mut state = |longterm, inflight, ms| {
        cc.state = ProbeBwDown;
        cc.inflight_longterm = longterm;
        ack.now = Instant::from_millis(ms);
        ack.delivery.inflight = inflight;
        cc.update_probe_bw_cycle_phase(&window, &ack, &sample(1));
        cc.state
    };
    assert_eq!(state(NO_VOLUME_BOUND, BDP + 1, 1), ProbeBwDown);
    assert_eq!(state(NO_VOLUME_BOUND, BDP, 1), ProbeBwCruise);
    assert_eq!(state(BDP, BDP * 85 / 100 + 1, 1), ProbeBwDown);
    assert_eq!(state(BDP, BDP * 85 / 100, 1), ProbeBwCruise);
    assert_eq!(state(BDP, BDP, 2001), ProbeBwRefill);
}

// §5.5.3, §5.5.6: the maximum of this cycle and of the one before.
#[test]
fn the_bandwidth_filter_spans_two_cycles() {
    let mut cc = Bbr3::default();
    for (cycle, rate, max) in [(0, 90, 90), (0, 100, 100), (1, 50, 100), (1, 60, 100), (2, 40, 60)]
    {
        cc.cycle_count = cycle;
        cc.update_max_bw(&sample(rate));
        assert_eq!(cc.max_bw.get(), max, "{rate} in cycle {cycle}");
    }
}

// §5.5.4; App.: "Handling Application-Limited Sending During PROBE_REFILL".
#[test]
fn application_limited_samples_only_raise_the_bandwidth() {
    let mut cc = Bbr3::default();
    cc.update_max_bw(&sample(100));
    cc.cycle_count = 2;
    cc.update_max_bw(&Sample { is_app_limited: true, ..sample(50) });
    assert_eq!(cc.max_bw.get(), 100);
    cc.update_max_bw(&Sample { is_app_limited: true, ..sample(150) });
    assert_eq!(cc.max_bw.get(), 150);
}

// App.: "Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached".
#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut path = path(4.0);
    run_to(&mut path, ProbeBwCruise);
    path.rate = DataRate::mbps(200);
    path.queue = 10 * BDP;
    let began = run_to(&mut path, ProbeBwUp);
    let ended = run_to(&mut path, ProbeBwDown);
    let found = mbps(path.cc.max_bw.get());
    assert!(found > 190.0, "{found} Mbit/s in {} s", ended - began);
}

// App.: "Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down".
#[test]
fn a_tenth_of_the_bandwidth_is_believed_after_two_cycles() {
    let mut path = path(1.0);
    run_to(&mut path, ProbeBwCruise);
    path.rate = DataRate::mbps(2);
    let until = path.now.as_secs_f64() + 4.0;
    path.run(until);
    assert!(path.cc.short_term.bw <= 14_000_000, "by losses: {:?}", path.cc.short_term);
    for _ in 0..3 {
        run_to(&mut path, ProbeBwRefill);
    }
    let max_bw = mbps(path.cc.max_bw.get());
    assert!((max_bw - 2.0).abs() < 0.1, "{max_bw}");
}

// §5.3.4; App.: "Entering and Exiting PROBE_RTT".
#[test]
fn every_five_seconds_it_halves_what_is_in_flight_for_200_ms() {
    let mut path = path(4.0);
    path.run(16.0);
    let mut dips: Vec<(f64, f64)> = Vec::new();
    for point in path.points.iter().filter(|p| p.cwnd <= BDP * 51 / 100 && p.at.as_secs_f64() > 1.0)
    {
        let at = point.at.as_secs_f64();
        match dips.last_mut().filter(|(_, end)| at - *end < 0.1) {
            Some((_, end)) => *end = at,
            None => dips.push((at, at)),
        }
        assert!(point.cwnd > BDP * 49 / 100, "half of the product: {}", point.cwnd);
    }
    assert_eq!(dips.len(), 3, "{dips:?}");
    for (begin, end) in &dips {
        assert!((0.2..0.35).contains(&(end - begin)), "{dips:?}");
    }
    for pair in dips.windows(2) {
        assert!((4.9..5.2).contains(&(pair[1].0 - pair[0].1)), "{dips:?}");
    }
    assert!(mbps(path.cc.max_bw.get()) > 19.0, "§5.3.4.3: its low rates are no samples");
}

// §5.3.4.4; App.: "Entering and Exiting PROBE_RTT During STARTUP".
#[test]
fn probe_rtt_leads_back_to_cruise_or_startup() {
    for (reached, state) in [(true, ProbeBwCruise), (false, Startup)] {
        let (mut cc, mut window) = model(BbrState::ProbeRtt);
        cc.full.reached = reached;
        cc.short_term.bw = 1;
        cc.recovery.prior_cwnd = 150 * SMSS;
        cc.probe_rtt.done_stamp = Some(Instant::from_millis(200));
        window.set_cwnd(BDP / 2);
        cc.check_probe_rtt_done(&mut window, Instant::from_millis(200));
        assert_eq!(cc.state, BbrState::ProbeRtt);
        cc.check_probe_rtt_done(&mut window, Instant::from_millis(201));
        assert_eq!((cc.state, window.cwnd()), (state, 150 * SMSS));
        assert_eq!(cc.short_term, ShortTerm::default());
        assert_eq!(cc.probe_rtt.min_stamp, Some(Instant::from_millis(201)));
    }
}

// §5.3.4.3: the RTT filter remembers ten seconds, the schedule of ProbeRTT five.
#[test]
fn a_longer_rtt_is_believed_after_ten_seconds() {
    let mut cc = Bbr3::default();
    let ms = Duration::from_millis;
    for (at, rtt, min_rtt, expired) in [
        (0, 40, 40, false),
        (5000, 45, 40, false),
        (5001, 45, 40, true),
        (10_000, 45, 40, false),
        (10_001, 45, 45, false),
        (10_002, 39, 39, true),
    ] {
        cc.update_min_rtt(Instant::from_millis(at), Some(ms(rtt)));
        assert_eq!((cc.min_rtt, cc.probe_rtt.expired), (Some(ms(min_rtt)), expired), "{at}");
    }
}

// §5.4.1.
#[test]
fn after_a_pause_it_goes_on_at_the_rate() {
    let mut path = path(4.0);
    path.pause = Some((Instant::from_millis(3000), Instant::from_millis(4000)));
    path.run(3.0);
    let cwnd = path.window.cwnd();
    path.run(4.001);
    let rate = mbps(path.cc.pacing_rate(&path.window).unwrap().bits_per_sec());
    assert!(path.cc.idle_restart && (rate - 19.8).abs() < 0.1, "{rate}");
    path.run(4.2);
    assert!(!path.cc.idle_restart && path.window.cwnd() >= cwnd * 9 / 10);
    let rate = path.run(4.9);
    assert!(rate > 19.0, "{rate}");
}

// §5.4.1: at the bandwidth itself, whatever the phase.
#[test]
fn a_pause_in_a_slow_phase_ends_at_the_bandwidth() {
    let (mut cc, mut window) = model(ProbeBwDown);
    cc.set_pacing_rate(&window, None);
    assert_eq!(mbps(cc.pacing_rate(&window).unwrap().bits_per_sec()), 0.9 * 19.8);
    let resume = |app_limited| Resume { now: Instant::from_millis(9), app_limited, delivered: 0 };
    cc.on_resume(&mut window, &resume(false));
    assert!(!cc.idle_restart, "cwnd or the peer's window had emptied the network");
    cc.on_resume(&mut window, &resume(true));
    assert!(cc.idle_restart);
    assert_eq!(mbps(cc.pacing_rate(&window).unwrap().bits_per_sec()), 19.8);
}

// §5.3.4.2; App.: "Skipping PROBE_RTT Due to Application-Limited Sending".
#[test]
fn a_pause_of_six_seconds_needs_no_probe_rtt() {
    let mut path = path(4.0);
    path.pause = Some((Instant::from_millis(3000), Instant::from_millis(9000)));
    path.run(10.0);
    assert!(path.between(9.0, 10.0).all(|point| point.cwnd > BDP / 2));
}

// §5.5.9; App.: "Achieving Expected Cruise Bandwidth on a Link With Aggregation".
#[test]
fn acks_in_lumps_widen_the_window_for_ten_rounds() {
    let (mut cc, window) = model(ProbeBwCruise);
    let before = cc.max_inflight(&window);
    let now = Instant::from_millis(1);
    cc.update_ack_aggregation(&window, &Ack { now, ..delivering(20 * SMSS) });
    assert_eq!(cc.max_inflight(&window), before + 20 * SMSS);
    for (rounds, more) in [(10, 20), (11, 1)] {
        cc.round.count = rounds;
        // As late as the bandwidth has it.
        let now = Instant::from_millis(1000 * rounds);
        cc.update_ack_aggregation(&window, &Ack { now, ..delivering(SMSS) });
        assert_eq!(cc.max_inflight(&window), before + more * SMSS, "{rounds} rounds");
    }
}

// §5.5.10.3.
#[test]
fn a_round_with_loss_brings_the_short_term_towards_what_is_delivered() {
    let adapt = |state, bw_latest, inflight_latest| {
        let (mut cc, window) = model(state);
        cc.congestion = Congestion {
            bw_latest,
            inflight_latest,
            is_loss_in_round: true,
            ..Congestion::default()
        };
        cc.adapt_lower_bounds(&window);
        cc.short_term
    };
    for state in [Drain, ProbeBwDown, ProbeBwCruise, BbrState::ProbeRtt] {
        let delivered = ShortTerm { bw: 18_000_000, inflight: 150 * SMSS };
        assert_eq!(adapt(state, 18_000_000, 150 * SMSS), delivered, "{state:?}");
        let beta = ShortTerm { bw: 14_000_000, inflight: 140 * SMSS };
        assert_eq!(adapt(state, 1_000_000, 10 * SMSS), beta, "{state:?}");
    }
    for state in [Startup, ProbeBwRefill, ProbeBwUp] {
        assert_eq!(adapt(state, 1, 1), ShortTerm::default(), "{state:?}");
    }
}

// §5.6.1, §5.6.4.7.
#[test]
fn the_models_bound_the_window() {
    let bounded = |state, longterm, shortterm| {
        let (mut cc, mut window) = model(state);
        cc.inflight_longterm = longterm;
        cc.short_term.inflight = shortterm;
        window.set_cwnd(200 * SMSS);
        cc.bound_cwnd_for_model(&mut window);
        window.cwnd() / SMSS
    };
    for state in [ProbeBwDown, ProbeBwRefill, ProbeBwUp] {
        assert_eq!(bounded(state, 100 * SMSS, NO_VOLUME_BOUND), 100, "{state:?}");
    }
    for state in [ProbeBwCruise, BbrState::ProbeRtt] {
        assert_eq!(bounded(state, 100 * SMSS, NO_VOLUME_BOUND), 85, "{state:?}");
        assert_eq!(bounded(state, NO_VOLUME_BOUND, 70 * SMSS), 70, "{state:?}");
        assert_eq!(bounded(state, SMSS, SMSS), 4, "{state:?}");
    }
    assert_eq!(bounded(Startup, 100 * SMSS, NO_VOLUME_BOUND), 200);
    assert_eq!(bounded(Drain, 100 * SMSS, 90 * SMSS), 90);
}

// §5.6.4.3; App.: "Correctly Managing Sub-Packet BDPs".
#[test]
fn a_product_below_a_segment_leaves_four() {
    let mut path = path(1.0);
    path.rate = DataRate::kbps(100);
    path.rtt = Duration::from_millis(10);
    path.queue = 20 * SMSS;
    path.run(20.0);
    let rate = path.run(30.0);
    assert!(rate > 0.09, "{rate}");
    assert!(path.between(20.0, 30.0).all(|point| point.cwnd >= 4 * SMSS));
}

// §5.5.8, §5.6.3: three times what leaves in a millisecond.
#[test]
fn small_products_leave_room_for_offload() {
    let (mut cc, window) = model(ProbeBwCruise);
    cc.min_rtt = Some(Duration::from_micros(100));
    assert_eq!(cc.max_inflight(&window), 3 * 2500);
    cc.pacing_rate = pace(8_000_000_000);
    assert_eq!(cc.max_inflight(&window), 3 * 65_536, "64 kB at most");
    cc.pacing_rate = pace(1_000_000);
    assert_eq!(cc.max_inflight(&window), 3 * 2 * SMSS, "two segments at least");
}

// §5.6.4.4.
#[test]
fn a_timeout_leaves_one_segment_and_recovery_restores_the_window() {
    let (mut cc, mut window) = model(ProbeBwCruise);
    assert!(cc.owns_recovery(), "proportional rate reduction does not move cwnd");
    let before = window.cwnd();
    let timeout = timeout(BDP, true);
    cc.on_timeout(&mut window, &timeout);
    assert_eq!((window.cwnd(), cc.bw), (SMSS, 20_000_000));
    cc.on_recovered(&mut window, Instant::ZERO);
    assert_eq!(window.cwnd(), before);
    window.set_cwnd(10 * SMSS);
    cc.on_recovered(&mut window, Instant::ZERO);
    assert_eq!(window.cwnd(), 10 * SMSS, "once");
}

fn undo() -> Undo {
    let cause = Spurious::FastRetransmit;
    Undo { now: Instant::ZERO, cause, flight: BDP, acked: 0, pipe_prev: BDP, restore: None }
}

// §5.5.11; App.: "Handling Spurious Fast Recovery".
#[test]
fn a_needless_recovery_goes_back_to_the_probe_and_to_the_model() {
    let (mut cc, mut window) = model(ProbeBwUp);
    cc.probe.is_sample = true;
    cc.full.now = true;
    cc.full.bw = cc.bw;
    cc.inflight_longterm = 150 * SMSS;
    let before = window.cwnd();
    cc.on_lost(&mut window, &lost(SMSS, BDP, 5000));
    cc.on_fast_retransmit(&mut window, &loss(BDP));
    assert!(cc.state == ProbeBwDown && cc.inflight_longterm < 150 * SMSS);
    // Another round of the same episode saves nothing anew.
    cc.short_term = ShortTerm { bw: 1, inflight: 1 };
    cc.congestion.is_loss_in_round = false;
    cc.on_lost(&mut window, &lost(SMSS, BDP, 9000));
    window.set_cwnd(50 * SMSS);
    cc.on_spurious(&mut window, &undo());
    assert_eq!((cc.state, window.cwnd()), (ProbeBwRefill, before));
    assert_eq!((cc.inflight_longterm, cc.short_term), (150 * SMSS, ShortTerm::default()));
    assert!(!cc.full.now && cc.full.bw == 0, "the plateau is looked for anew");
}

// §5.5.11; App.: "Handling Spurious RTO Recovery".
#[test]
fn a_needless_timeout_in_startup_goes_back_to_startup() {
    let (mut cc, mut window) = model(Startup);
    let before = window.cwnd();
    cc.on_lost(&mut window, &lost(SMSS, BDP, 5000));
    cc.on_timeout(&mut window, &timeout(BDP, true));
    cc.recovery.undo_state = Some(Startup);
    cc.full.reached = true;
    cc.state = Drain;
    cc.on_spurious(&mut window, &undo());
    assert_eq!((cc.state, cc.full.reached, window.cwnd()), (Startup, false, before));
}

// §3.7.
#[test]
fn marks_are_taken_for_losses() {
    let mut path = path(4.0);
    path.run(0.7);
    path.mark_above = Some(BDP / 10);
    run_to(&mut path, ProbeBwUp);
    run_to(&mut path, ProbeBwDown);
    assert!(path.cc.probe.prev_too_high && path.dropped == 0);
    assert!(path.cc.inflight_longterm < BDP * 3 / 2, "{}", path.cc.inflight_longterm);
    run_to(&mut path, ProbeBwCruise);
    path.cc.short_term = ShortTerm::default();
    path.mark_above = Some(0);
    path.rate = DataRate::mbps(15);
    path.run(path.now.as_secs_f64() + 0.3);
    assert!(path.cc.short_term.bw < 20_000_000, "{:?}", path.cc.short_term);
}

// §3.7, §5.3.1.3.
#[test]
fn marks_end_startup_as_losses_do() {
    let (mut cc, mut window) = model(Startup);
    cc.on_ecn(&mut window, &loss(BDP));
    let mut heard = delivering(SMSS);
    heard.phase = RecoveryPhase::Cwr;
    heard.delivery.newly_ce = SMSS;
    let rs = Sample { lost: u64::from(6 * SMSS), ..sample(1) };
    for _ in 0..6 {
        cc.note_marks(&window, &heard, &rs);
    }
    cc.congestion.loss_round_start = true;
    cc.check_startup_done(&window, &heard, &rs);
    assert_eq!(cc.state, Drain);
}

// App.: "Handling Token Bucket Policers".
#[test]
fn a_policer_is_lived_with() {
    let mut path = path(4.0);
    path.policer = Some(Policer::new(DataRate::mbps(5), 50 * SMSS));
    path.run(10.0);
    let (dropped, delivered) = (path.dropped, path.delivery.delivered);
    let rate = path.run(40.0);
    let share = (path.dropped - dropped) as f64 * f64::from(SMSS)
        / (path.delivery.delivered - delivered) as f64;
    assert!(rate > 0.8 * 5.0, "{rate}");
    assert!(share < 0.1, "{share} of it is dropped");
}

// §5.3.3.8: "reduce the sending rate by X%" in a round with X % of loss, from probe to probe.
#[test]
fn one_percent_of_loss_costs_at_most_one_percent_each_round() {
    let mut path = path(2.0);
    path.drop_every = Some(100);
    run_to(&mut path, ProbeBwUp);
    run_to(&mut path, ProbeBwCruise);
    let (from, began) = (path.cc.bw, path.cc.round.count);
    run_to(&mut path, ProbeBwRefill);
    let rounds = (path.cc.round.count - began) as i32;
    let least = mbps(from) * 0.99_f64.powi(rounds);
    let before = path.points.iter().rev().find(|point| point.pacing.unwrap() < 19.0).unwrap();
    assert!(rounds > 40 && before.pacing.unwrap() > least * 0.99, "{rounds} {least} {before:?}");
    let rate = path.run(30.0);
    assert!(rate > 0.7 * 20.0, "{rate}");
}

#[test]
fn a_new_route_is_measured_anew() {
    let (mut cc, mut window) = model(ProbeBwCruise);
    cc.delivered = 7000;
    cc.on_restart(&mut window, Restart::Idle);
    assert_eq!(cc.state, ProbeBwCruise);
    cc.on_restart(&mut window, Restart::Route);
    assert_eq!((cc.state, cc.max_bw.get(), cc.min_rtt), (Startup, 0, None));
    let now = Instant::from_millis(60_000);
    cc.update_min_rtt(now, Some(RTT));
    assert!(!cc.probe_rtt.expired, "no ProbeRTT at once");
    cc.update_max_bw(&Sample { prior_delivered: 6999, ..sample(1) });
    assert!(!cc.round.starts, "rounds go on from what was delivered");
}

/// Each change of state: when, what the model says, in Mbit/s and segments.
fn phases(path: &mut Path<Bbr3>, until: f64) -> String {
    let mut text = String::from("     s  state          max_bw     bw inflight longterm  lost\n");
    let mut state = None;
    while path.now.as_secs_f64() < until {
        path.run(path.now.as_secs_f64() + 0.001);
        let cc = &path.cc;
        if state != Some(cc.state) {
            state = Some(cc.state);
            let longterm = match cc.inflight_longterm {
                NO_VOLUME_BOUND => "-".to_owned(),
                bytes => (bytes / SMSS).to_string(),
            };
            let (at, name) = (path.now.as_secs_f64(), format!("{:?}", cc.state));
            let (max_bw, bw, inflight) =
                (mbps(cc.max_bw.get()), mbps(cc.bw), path.delivery.inflight / SMSS);
            let lost = path.dropped;
            writeln!(
                text,
                "{at:6.2}  {name:13} {max_bw:7.2} {bw:6.2} {inflight:8} {longterm:>8} {lost:5}"
            )
            .unwrap();
        }
    }
    text
}

#[test]
fn phases_with_a_deep_queue() {
    insta::assert_snapshot!(phases(&mut path(4.0), 11.0));
}

#[test]
fn phases_with_a_shallow_queue() {
    insta::assert_snapshot!(phases(&mut path(0.2), 11.0));
}

#[test]
fn curve() {
    let mut path = path(2.0);
    path.run(11.0);
    insta::assert_snapshot!(path.curve(0.2));
}
