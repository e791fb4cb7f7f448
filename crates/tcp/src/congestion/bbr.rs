//! BBR, version 1, as Linux has it (`net/ipv4/tcp_bbr.c`; Cardwell, Cheng, Gunn, Hassas Yeganeh and
//! Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016).
//!
//! The sender estimates the bandwidth of the path, the largest delivery rate of ten rounds, and its
//! round-trip time without queues, the smallest RTT of ten seconds. It paces at the bandwidth times
//! a gain and keeps at most a multiple of their product in the network:
//! - Startup doubles the rate each round until the bandwidth has grown by less than a quarter for
//!   three rounds; Drain then empties the queue that this made.
//! - ProbeBw cycles through eight gains, each for about a round trip: 5/4 to find more bandwidth,
//!   3/4 to give the queue back, six times 1.
//! - ProbeRtt keeps four segments in the network for 200 ms when ten seconds brought no lower RTT.
//!
//! Loss sets no rate. It holds cwnd to what is delivered for a round of recovery, and two long
//! intervals with the same rate and over a fifth lost mean a policer, whose rate is then kept for
//! 48 rounds.
//!
//! Where this differs from Linux:
//! - Windows are in bytes, times in nanoseconds; Linux counts segments, microseconds and, for RTTs
//!   that expire, jiffies. Gains are Linux's, in 256ths.
//! - Linux counts as in flight what will be in the network when the next segment leaves its pacer
//!   (`bbr_packets_in_net_at_edt`). Here a segment that waits has not been sent.
//! - The first phase of a cycle is drawn from SND.UNA, not at random.
//! - A delivery rate is refused if its interval is below the smallest RTT of ten seconds; Linux
//!   compares with the smallest of five minutes.
//! - Segments sent in ProbeRtt are known to the algorithm as held back, not to the rate sampler.
//! - On a new route everything is measured anew; Linux knows no routes.
//!
//! Windows include the room for segmentation offload that Linux adds, although a sender here has
//! none: it is half of the queue that a Linux sender makes on a fast path.

use super::path_model::{HeldBack, Round, WindowedMax, bytes_in, draw, pace, rate_of};
use super::{Ack, CongestionControl, Loss, RateSample, Restart, Resume, Timeout, Undo, Window};
use crate::recovery::RecoveryPhase;
use airtcp_core::{DataRate, Duration, Instant, SeqNum};

/// A gain of 1: gains are in 256ths.
const UNIT: u64 = 256;
/// 2/ln 2, the least gain that doubles the rate each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Inverse of [`HIGH_GAIN`]: drains in a round the queue that Startup built in one.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Gain of cwnd in ProbeBw: leaves room for delayed and stretched ACKs.
const CWND_GAIN: u64 = 2 * UNIT;
/// Pacing gains of ProbeBw's phases.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Candidates for the first phase: any but the second.
const FIRST_PHASES: u32 = 7;
/// Percentage by which the pacing rate stays below the estimate, to keep the queue small.
const MARGIN: u64 = 1;
/// Length of the bandwidth filter, in rounds.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Length of the RTT filter.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Least time for which ProbeRtt keeps the network nearly empty.
const PROBE_RTT: Duration = Duration::from_millis(200);
/// cwnd in ProbeRtt, and its minimum elsewhere, in segments.
const MIN_SEGMENTS: u32 = 4;
/// Linux's TCP_INIT_CWND: a safe window without an estimate, in segments.
const INITIAL_SEGMENTS: u32 = 10;
/// RTT assumed for the first pacing rate without a sample.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Rounds without growth by a quarter after which the pipe is full.
const FULL_ROUNDS: u32 = 3;
/// Rounds for which each of two windows of aggregation is kept.
const AGGREGATION_ROUNDS: u32 = 5;
/// Most data added to cwnd for aggregation, as time at the estimated bandwidth.
const AGGREGATION_MOST: Duration = Duration::from_millis(100);
/// Acknowledged segments after which the sampling of aggregation begins anew.
const AGGREGATION_RESET: u64 = 1 << 20;

/// BBRv1. Rates are in bits per second; 0: not known.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    round: Round,
    bandwidth: WindowedMax,
    min_rtt: Option<Duration>,
    /// Time of the `min_rtt` sample.
    min_rtt_at: Option<Instant>,
    pacing_rate: Option<DataRate>,
    /// The pacing rate is derived from a measured RTT, not the nominal one.
    has_seen_rtt: bool,
    pacing_gain: u64,
    full: FullPipe,
    /// Index of the current phase of ProbeBw, and its start.
    phase: usize,
    phase_start: Instant,
    probe_rtt: ProbeRtt,
    held_back: HeldBack,
    /// Data were sent after the application paused, and no ACK has come since.
    idle_restart: bool,
    long_term: LongTerm,
    aggregation: Aggregation,
    recovery: Recovery,
    heard: Heard,
}

/// State of BBR's state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Detection of a full pipe in Startup.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    /// Bandwidth from which growth is measured.
    rate: u64,
    /// Rounds since `rate` last grew.
    rounds: u32,
    reached: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    /// Earliest end of ProbeRtt; `None` until the network is nearly empty.
    done: Option<Instant>,
    /// A round trip has passed since the network became nearly empty.
    round_done: bool,
}

/// Sampling of long intervals between losses, to detect a policer.
#[derive(Clone, Copy, Debug, Default)]
struct LongTerm {
    is_sampling: bool,
    /// Rounds in the interval, or since `rate` came into use.
    rounds: u32,
    /// Delivery rate of the previous interval, or of the policer.
    rate: u64,
    /// The policer sets the rate.
    in_use: bool,
    start: Instant,
    delivered: u64,
    lost: u64,
}

impl LongTerm {
    /// Fewest rounds in an interval; it is abandoned after four times as many.
    const ROUNDS: u32 = 4;
    /// Rounds for which the rate of a policer is kept.
    const KEPT: u32 = 48;
    /// Largest difference of rates that count as equal, in bits per second.
    const SAME: u64 = 4000;

    /// Begins an interval.
    fn restart(&mut self, now: Instant, delivered: u64, lost: u64) {
        *self = Self { rounds: 0, start: now, delivered, lost, ..*self };
    }

    /// Discards the samples and the policer's rate.
    fn reset(&mut self, now: Instant, delivered: u64, lost: u64) {
        *self = Self::default();
        self.restart(now, delivered, lost);
    }

    /// Ends an interval with a high share of losses, and detects a policer if its rate is like that
    /// of the one before.
    fn conclude(&mut self, rate: u64, now: Instant, delivered: u64, lost: u64) {
        let difference = rate.abs_diff(self.rate);
        if self.rate > 0 && (difference <= self.rate / 8 || difference <= Self::SAME) {
            self.rate = u64::midpoint(rate, self.rate);
            self.in_use = true;
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.restart(now, delivered, lost);
    }
}

/// Data that ACKs report at once, beyond what the bandwidth allows (ACK aggregation).
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    since: Instant,
    acked: u64,
    /// Largest excess in this window of rounds and in the previous one, bytes.
    most: [u32; 2],
    rounds: u32,
}

/// State of cwnd in loss recovery.
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    phase: RecoveryPhase,
    /// Phase at the last ACK that delivered something. A recovery that begins on the ACK that ends
    /// another continues it, as in Linux (`prev_ca_state`): cwnd is neither restored nor cut
    /// between them.
    phase_before: RecoveryPhase,
    /// Packet conservation: sends as much as is delivered, in the first round of recovery.
    conserves: bool,
    /// cwnd before recovery, or before ProbeRtt.
    prior_cwnd: u32,
}

/// State taken from the last ACK.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// Bytes in the network after it plus those that it delivered.
    conserved: u32,
    delivered: u64,
    lost: u64,
    una: Option<SeqNum>,
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            mode: Mode::Startup,
            round: Round::default(),
            bandwidth: WindowedMax::default(),
            min_rtt: None,
            min_rtt_at: None,
            pacing_rate: None,
            has_seen_rtt: false,
            pacing_gain: HIGH_GAIN,
            full: FullPipe::default(),
            phase: 0,
            phase_start: Instant::ZERO,
            probe_rtt: ProbeRtt::default(),
            held_back: HeldBack::default(),
            idle_restart: false,
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
            recovery: Recovery::default(),
            heard: Heard::default(),
        }
    }
}

/// Quantities derived from the model.
impl Bbr {
    /// Estimated bandwidth: a policer's rate, or the maximum of the filter.
    fn rate(&self) -> u64 {
        if self.long_term.in_use { self.long_term.rate } else { self.bandwidth.get() }
    }

    /// Segments that Linux hands to the network card at once: a millisecond's worth, at least two
    /// unless the rate is low, at most 64 kB.
    fn offload_segments(&self, window: &Window) -> u32 {
        let rate = self.pacing_rate(window).map_or(0, DataRate::bits_per_sec);
        let bytes = (rate / 8 / 1024).min(65_215);
        let least = if rate < 1_200_000 { 1 } else { 2 };
        ((bytes / u64::from(window.smss())) as u32).clamp(least, 127)
    }

    /// Product of `rate`, the smallest RTT and a gain, in bytes.
    fn bdp(&self, window: &Window, rate: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else {
            return u64::from(INITIAL_SEGMENTS * window.smss());
        };
        let smss = u64::from(window.smss());
        (bytes_in(rate, min_rtt).saturating_mul(gain) / UNIT).div_ceil(smss) * smss
    }

    /// Adds room for offload and rounds up to an even number of segments, so that delayed ACKs do
    /// not stall; lets the probing phase exceed a small product.
    fn with_budget(&self, window: &Window, bytes: u64) -> u32 {
        let smss = u64::from(window.smss());
        let mut segments = bytes.div_ceil(smss) + 3 * u64::from(self.offload_segments(window));
        segments += segments % 2;
        if self.mode == Mode::ProbeBw && self.phase == 0 {
            segments += 2;
        }
        u32::try_from(segments * smss).unwrap_or(u32::MAX)
    }

    /// Target of the data in flight at `gain`.
    fn inflight_at(&self, window: &Window, gain: u64) -> u32 {
        self.with_budget(window, self.bdp(window, self.bandwidth.get(), gain))
    }

    /// Room in cwnd for aggregated ACKs, bytes.
    fn aggregation_room(&self) -> u64 {
        if !self.full.reached {
            return 0;
        }
        let most = self.aggregation.most[0].max(self.aggregation.most[1]);
        u64::from(most).min(bytes_in(self.rate(), AGGREGATION_MOST))
    }

    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = pace((self.rate() * gain / UNIT / 100).saturating_mul(100 - MARGIN));
        if self.full.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Pacing rate before there is an estimate: the window per RTT, times the gain of Startup.
    fn first_pacing_rate(cwnd: u32, rtt: Duration) -> Option<DataRate> {
        pace(rate_of(u64::from(cwnd), rtt) / 100 * (100 - MARGIN) * HIGH_GAIN / UNIT)
    }
}

/// The steps on each ACK, in Linux's order.
impl Bbr {
    /// The delivery rate of an ACK, if it can be trusted, with its sample.
    fn sample(&self, ack: &Ack) -> Option<(RateSample, u64)> {
        let sample = ack.rate?;
        let least = [self.min_rtt, sample.rtt].into_iter().flatten().min();
        let rate = sample.rate(least.unwrap_or(Duration::ZERO))?.bits_per_sec();
        let app_limited = sample.app_limited || self.held_back.holds(sample.prior_delivered);
        Some((RateSample { app_limited, ..sample }, rate))
    }

    fn update_bandwidth(&mut self, ack: &Ack, sample: Option<&(RateSample, u64)>) {
        self.round.starts = false;
        let Some(&(ref sample, rate)) = sample else { return };
        self.round.update(sample.prior_delivered, ack.delivery.delivered);
        self.recovery.conserves &= !self.round.starts;
        let lost = ack.delivery.newly_lost > 0;
        self.sample_long_term(ack.now, lost, sample.app_limited);
        if !sample.app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.round.count, rate);
        }
    }

    /// Looks for a policer, over intervals of 4 to 16 rounds from loss to loss.
    fn sample_long_term(&mut self, now: Instant, lost: bool, app_limited: bool) {
        let Heard { delivered, lost: total_lost, .. } = self.heard;
        let interval = &mut self.long_term;
        if interval.in_use {
            if self.mode == Mode::ProbeBw && self.round.starts {
                interval.rounds += 1;
                if interval.rounds >= LongTerm::KEPT {
                    interval.reset(now, delivered, total_lost);
                    self.enter_probe_bw(now);
                }
            }
            return;
        }
        // The first loss says that the policer's tokens are used up.
        if !interval.is_sampling {
            if !lost {
                return;
            }
            interval.restart(now, delivered, total_lost);
            interval.is_sampling = true;
        }
        if app_limited {
            return interval.reset(now, delivered, total_lost);
        }
        interval.rounds += u32::from(self.round.starts);
        if interval.rounds < LongTerm::ROUNDS {
            return;
        }
        if interval.rounds > 4 * LongTerm::ROUNDS {
            return interval.reset(now, delivered, total_lost);
        }
        let (of, gone) = (delivered - interval.delivered, total_lost - interval.lost);
        let time = now.since(interval.start);
        // 50/256: about a fifth.
        if !lost || of == 0 || gone * UNIT < 50 * of || time < Duration::from_millis(1) {
            return;
        }
        interval.conclude(rate_of(of, time), now, delivered, total_lost);
    }

    fn update_aggregation(&mut self, window: &Window, ack: &Ack, is_valid: bool) {
        let newly = u64::from(ack.delivery.newly_delivered);
        if !is_valid || newly == 0 {
            return;
        }
        let rate = self.rate();
        let seen = &mut self.aggregation;
        if self.round.starts {
            seen.rounds += 1;
            if seen.rounds >= AGGREGATION_ROUNDS {
                seen.rounds = 0;
                seen.most = [0, seen.most[0]];
            }
        }
        let mut expected = bytes_in(rate, ack.now.since(seen.since));
        let too_many = AGGREGATION_RESET * u64::from(window.smss());
        if seen.acked <= expected || seen.acked + newly >= too_many {
            seen.acked = 0;
            seen.since = ack.now;
            expected = 0;
        }
        seen.acked += newly;
        let extra = (seen.acked - expected).min(u64::from(window.cwnd())) as u32;
        seen.most[0] = seen.most[0].max(extra);
    }

    /// Advances to the next gain once the phase has lasted an RTT and done its work.
    fn update_phase(&mut self, window: &Window, ack: &Ack) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let full_length = self.min_rtt.is_some_and(|rtt| ack.now.since(self.phase_start) > rtt);
        let inflight = ack.delivery.prior_inflight;
        let next = match self.pacing_gain {
            UNIT => full_length,
            // Until the queue is gone; longer would leave the link idle.
            gain if gain < UNIT => full_length || inflight <= self.inflight_at(window, UNIT),
            // Until as much is in the network as the gain is for, or not even that fits.
            gain => {
                let next_burst = self.offload_segments(window) * window.smss();
                let is_filled =
                    inflight.saturating_add(next_burst) >= self.inflight_at(window, gain);
                full_length && (ack.delivery.newly_lost > 0 || is_filled)
            }
        };
        if next {
            self.advance_phase(ack.now);
        }
    }

    fn advance_phase(&mut self, now: Instant) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_start = now;
    }

    fn enter_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        self.phase = CYCLE.len() - 1 - draw(self.heard.una, FIRST_PHASES) as usize;
        self.advance_phase(now);
    }

    fn check_full_pipe(&mut self, app_limited: bool) {
        if self.full.reached || !self.round.starts || app_limited {
            return;
        }
        let rate = self.bandwidth.get();
        if rate >= self.full.rate + self.full.rate / 4 {
            self.full = FullPipe { rate, rounds: 0, reached: false };
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, window: &mut Window, ack: &Ack) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            window.set_ssthresh(self.inflight_at(window, UNIT));
        }
        if self.mode == Mode::Drain && ack.delivery.inflight <= self.inflight_at(window, UNIT) {
            self.enter_probe_bw(ack.now);
        }
    }

    fn update_min_rtt(&mut self, window: &mut Window, ack: &Ack) {
        let at = *self.min_rtt_at.get_or_insert(ack.now);
        let expired = ack.now > at + MIN_RTT_WINDOW;
        if let Some(sample) = ack.rate
            && let Some(rtt) = sample.rtt
        {
            // A lone small segment may have waited for a delayed ACK.
            let is_delayed = sample.tx_inflight < window.smss();
            if self.min_rtt.is_none_or(|least| rtt <= least) || (expired && !is_delayed) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = Some(ack.now);
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.probe_rtt = ProbeRtt::default();
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(window, ack);
        }
        if ack.rate.is_some() {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, window: &mut Window, ack: &Ack) {
        let (delivered, inflight) = (ack.delivery.delivered, ack.delivery.inflight);
        self.held_back.extend(delivered, delivered + u64::from(inflight));
        if self.probe_rtt.done.is_some() {
            self.probe_rtt.round_done |= self.round.starts;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(window, ack.now);
            }
        } else if inflight <= MIN_SEGMENTS * window.smss() {
            self.probe_rtt = ProbeRtt { done: Some(ack.now + PROBE_RTT), round_done: false };
            self.round.start(delivered);
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: Instant) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt_at = Some(now);
        window.set_cwnd(window.cwnd().max(self.recovery.prior_cwnd));
        if self.full.reached {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Sets the mode's pacing gain and returns its gain of cwnd.
    fn update_gains(&mut self) -> u64 {
        let (pacing, cwnd) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.in_use => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
        self.pacing_gain = pacing;
        cwnd
    }

    fn save_cwnd(&mut self, window: &Window) {
        let is_good =
            self.recovery.phase_before == RecoveryPhase::Open && self.mode != Mode::ProbeRtt;
        let before = if is_good { 0 } else { self.recovery.prior_cwnd };
        self.recovery.prior_cwnd = before.max(window.cwnd());
    }

    fn begin_or_end_recovery(&mut self, window: &mut Window) {
        let Recovery { phase, .. } = self.recovery;
        let before = std::mem::replace(&mut self.recovery.phase_before, phase);
        match phase {
            RecoveryPhase::Recovery if before != phase => self.conserve_packets(window),
            RecoveryPhase::Open if before != phase => {
                self.recovery.conserves = false;
                window.set_cwnd(window.cwnd().max(self.recovery.prior_cwnd));
            }
            _ => {}
        }
    }

    /// Begins the first round of recovery: sends as much as is delivered.
    fn conserve_packets(&mut self, window: &mut Window) {
        self.recovery.conserves = true;
        self.round.start(self.heard.delivered);
        window.set_cwnd(self.heard.conserved);
    }

    /// Moves cwnd towards its target: up by what was delivered, or down at once if the pipe is
    /// full.
    fn set_cwnd(&mut self, window: &mut Window, ack: &Ack, gain: u64) {
        let delivery = &ack.delivery;
        let least = MIN_SEGMENTS * window.smss();
        let newly = delivery.newly_delivered;
        if newly > 0 {
            window.set_cwnd(window.cwnd().saturating_sub(delivery.newly_lost));
            self.begin_or_end_recovery(window);
            if self.recovery.conserves {
                window.set_cwnd(window.cwnd().max(self.heard.conserved));
            } else {
                let bytes = self.bdp(window, self.rate(), gain) + self.aggregation_room();
                let target = self.with_budget(window, bytes);
                let grown = window.cwnd().saturating_add(newly);
                let untried = u64::from(INITIAL_SEGMENTS * window.smss());
                if self.full.reached {
                    window.set_cwnd(grown.min(target));
                } else if window.cwnd() < target || delivery.delivered < untried {
                    window.set_cwnd(grown);
                }
                window.set_cwnd(window.cwnd().max(least));
            }
        }
        window.set_cwnd(window.cwnd().min(window.limit()));
        if self.mode == Mode::ProbeRtt {
            window.set_cwnd(window.cwnd().min(least));
        }
    }
}

impl CongestionControl for Bbr {
    fn on_established(&mut self, window: &mut Window, now: Instant, srtt: Option<Duration>) {
        self.min_rtt = srtt;
        self.min_rtt_at = Some(now);
        self.aggregation.since = now;
        self.has_seen_rtt = srtt.is_some();
        self.pacing_rate = Self::first_pacing_rate(window.cwnd(), srtt.unwrap_or(NOMINAL_RTT));
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let delivery = &ack.delivery;
        self.heard = Heard {
            conserved: delivery.inflight.saturating_add(delivery.newly_delivered),
            delivered: delivery.delivered,
            lost: delivery.lost,
            una: Some(ack.una),
        };
        let sample = self.sample(ack);
        let app_limited = sample.is_some_and(|(sample, _)| sample.app_limited);

        self.update_bandwidth(ack, sample.as_ref());
        self.update_aggregation(window, ack, sample.is_some());
        self.update_phase(window, ack);
        self.check_full_pipe(app_limited);
        self.check_drain(window, ack);
        self.update_min_rtt(window, ack);
        let cwnd_gain = self.update_gains();

        if let Some(srtt) = ack.srtt.filter(|_| !self.has_seen_rtt) {
            self.has_seen_rtt = true;
            self.pacing_rate = Self::first_pacing_rate(window.cwnd(), srtt);
        }
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(window, ack, cwnd_gain);
    }

    fn on_growth(&mut self, _: &mut Window, _: &Ack) {}

    fn on_fast_retransmit(&mut self, window: &mut Window, _: &Loss) {
        self.save_cwnd(window);
        self.recovery.phase = RecoveryPhase::Recovery;
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.save_cwnd(window);
        (self.recovery.phase, self.recovery.phase_before) =
            (RecoveryPhase::Loss, RecoveryPhase::Loss);
        self.recovery.conserves = false;
        self.full.rate = 0;
        // The time-out counts as the end of a round with a loss.
        self.round.starts = true;
        self.sample_long_term(timeout.now, true, false);
        window.set_cwnd(window.smss());
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        match cause {
            // It knows the rate at which to go on (`on_resume`).
            Restart::Idle => {}
            Restart::Route => {
                let Self { recovery, heard, .. } = *self;
                *self = Self { recovery, heard, ..Self::default() };
                self.round.start(heard.delivered);
                window.set_cwnd(window.cwnd().min(window.initial()));
            }
        }
    }

    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.full.rate = 0;
        self.full.rounds = 0;
        self.long_term.reset(undo.now, self.heard.delivered, self.heard.lost);
        self.on_recovered(window, undo.now);
    }

    /// Does nothing: BBR does not take marks for congestion.
    fn on_ecn(&mut self, _: &mut Window, _: &Loss) {}

    fn on_resume(&mut self, window: &mut Window, resume: &Resume) {
        if !resume.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.since = resume.now;
        self.aggregation.acked = 0;
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(window, resume.now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn on_recovered(&mut self, _: &mut Window, _: Instant) {
        self.recovery.phase = RecoveryPhase::Open;
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn pacing_rate(&self, window: &Window) -> Option<DataRate> {
        self.pacing_rate.or_else(|| Self::first_pacing_rate(window.cwnd(), NOMINAL_RTT))
    }
}

#[cfg(test)]
mod tests;
