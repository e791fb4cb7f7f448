//! BBR, version 3 (draft-ietf-ccwg-bbr, the editors' copy of August 2026; "§" is a section of it).
//!
//! The sender models the path by the rate at which it delivers and by how much it holds. Both have
//! a long term, what the last two cycles of probing found, and a short term, what losses since the
//! last probe leave of it:
//! - Startup doubles the rate each round until the rate grows no more, or losses say that the path
//!   is full; Drain then empties the queue that this made (§5.3.1, §5.3.2).
//! - ProbeBW cycles through DOWN (give a queue back, leave headroom), CRUISE (match the rate),
//!   REFILL (forget the short term, fill the pipe) and UP (find more), about every two to three
//!   seconds, or sooner where Reno would have grown by as much (§5.3.3).
//! - ProbeRTT halves what is in the network for 200 ms when five seconds brought no lower RTT
//!   (§5.3.4).
//!
//! While it probes, a share of losses above 2 % bounds the volume in the long term
//! (`inflight_longterm`). At other times each round with a loss pulls the short term towards what
//! was delivered, by at most 0.7 (§5.5.10).
//!
//! Decisions where the draft is silent or contradicts itself:
//! - ECN (§3.7): the draft requires that marks count as congestion, but does not say how. A marked
//!   byte counts as a lost one, and an ACK with marks as a lost range. With RFC 3168's ECN all
//!   bytes of the round trip in which the receiver repeats the mark count.
//! - The state for an undo is saved once per episode of recovery (§5.5.11, §5.6.4.4). NoteLoss()
//!   would save it again in each round of it, when it is already reduced, and the entry into
//!   recovery would do so after the response to the first loss.
//! - Round trips that Reno would need (§5.3.3.8) are as many as there are segments in flight.
//! - Drain is bounded by the short term only, as in BoundCwndForModel(); the table of §5.6.1 names
//!   the long term, too.
//! - An ACK whose delivery rate cannot be trusted (§4.1.2.3) counts rounds, but is no sign of a
//!   plateau.
//! - If more was lost before a packet than the threshold allows, InflightAtLoss() returns the
//!   volume in flight before the packet, not less.
//! - The use of cwnd is judged by the data in flight on arrival of each ACK.
//! - The wait between probes is drawn from SND.UNA, not at random.
//! - Segments sent in ProbeRTT are known to the algorithm as held back, not to the rate sampler.
//! - On a new route everything is measured anew; the draft knows no routes.
//!
//! Windows include the draft's budget for segmentation offload (§5.5.8), although a sender here has
//! none. Losses are identified by SACK: RACK needs it, and BBR needs RACK.

use super::path_model::{HeldBack, Round, WindowedMax, bytes_in, draw, pace, rate_of};
use super::{Ack, CongestionControl, Loss, Lost, Restart, Resume, Timeout, Undo, Window};
use crate::recovery::RecoveryPhase;
use airtcp_core::{DataRate, Duration, Instant, SeqNum};

/// A gain or share of 1: both are in hundredths.
const UNIT: u64 = 100;
/// BBR.DefaultCwndGain: 2.
const DEFAULT_CWND_GAIN: u64 = 200;
/// BBR.ProbeRTTCwndGain: 0.5.
const PROBE_RTT_CWND_GAIN: u64 = 50;
/// BBR.PacingMarginPercent: how far below the estimated bandwidth the sender paces.
const PACING_MARGIN: u64 = 1;
/// BBR.LossThresh: tolerated loss rate, 2 %.
const LOSS_THRESH: u64 = 2;
/// BBR.Beta: share of the short-term bounds kept after a round with losses.
const BETA: u64 = 70;
/// BBR.Headroom: share of BBR.inflight_longterm left to other flows.
const HEADROOM: u64 = 15;
/// BBR.MinPipeCwnd, in segments.
const MIN_PIPE_SEGMENTS: u32 = 4;
/// BBR.MaxBwFilterLen, in cycles: the current one and the previous one.
const MAX_BW_CYCLES: u64 = 2;
/// BBR.ExtraAckedFilterLen, in rounds; one in Startup.
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Rounds without growth by a quarter after which the pipe is full (§5.3.1.2).
const FULL_BW_ROUNDS: u32 = 3;
/// BBRStartupFullLossCnt: lost ranges in a round that can end Startup.
const STARTUP_LOST_RANGES: u32 = 6;
/// BBR.MinRTTFilterLen: lifetime of the min_rtt sample.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval: lifetime of the probe_rtt_min_delay sample.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// BBR.ProbeRTTDuration: least time in ProbeRTT.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// Most round trips between probes (§5.3.3.8): time for Reno to grow as much.
const RENO_ROUNDS: u32 = 63;
/// RTT assumed for the first pacing rate without a sample (§5.6.2).
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// No bound, as a volume and as a rate.
const NO_VOLUME_BOUND: u32 = u32::MAX;
const NO_RATE_BOUND: u64 = u64::MAX;

/// BBRv3. Rates are in bits per second; 0: not known.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: BbrState,
    round: Round,
    /// BBR.max_bw_filter, and BBR.cycle_count, its virtual time.
    max_bw: WindowedMax,
    cycle_count: u64,
    /// BBR.bw: estimated bandwidth, the short-term bound included.
    bw: u64,
    min_rtt: Option<Duration>,
    /// Time of the `min_rtt` sample.
    min_rtt_stamp: Option<Instant>,
    pacing_rate: Option<DataRate>,
    /// The first pacing rate was derived from a measured RTT, not the nominal one.
    has_seen_rtt: bool,
    full: FullBw,
    drain_start_round: u64,
    inflight_longterm: u32,
    short_term: ShortTerm,
    congestion: Congestion,
    probe: Probe,
    probe_rtt: ProbeRtt,
    held_back: HeldBack,
    extra_acked: ExtraAcked,
    idle_restart: bool,
    /// cwnd was fully used in this round.
    is_cwnd_limited: bool,
    recovery: Recovery,
    /// C.delivered and SND.UNA at the last call.
    delivered: u64,
    una: Option<SeqNum>,
}

/// BBR.state, with ProbeBW's four phases apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BbrState {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

/// The table of §5.6.1.
impl BbrState {
    fn pacing_gain(self) -> u64 {
        match self {
            Self::Startup => 277, // 4 ln 2
            Self::Drain => 50,
            Self::ProbeBwDown => 90,
            Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeRtt => UNIT,
            Self::ProbeBwUp => 125,
        }
    }

    fn cwnd_gain(self) -> u64 {
        match self {
            Self::ProbeBwUp => 225,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => DEFAULT_CWND_GAIN,
        }
    }

    /// IsInAProbeBWState(): in any phase of ProbeBW.
    fn is_probe_bw(self) -> bool {
        use BbrState::{ProbeBwCruise, ProbeBwDown, ProbeBwRefill, ProbeBwUp};
        matches!(self, ProbeBwDown | ProbeBwCruise | ProbeBwRefill | ProbeBwUp)
    }

    /// IsProbingBW(): in a state that probes for bandwidth.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }
}

/// Detection that the delivery rate has stopped growing (§5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
struct FullBw {
    /// BBR.full_bw: the rate from which growth is measured.
    bw: u64,
    /// BBR.full_bw_count: rounds since it last grew.
    count: u32,
    /// BBR.full_bw_now: reached since the last restart of the measurement.
    now: bool,
    /// BBR.full_bw_reached: reached at least once.
    reached: bool,
}

impl FullBw {
    /// ResetFullBW(), measuring growth from `bw`.
    fn restart(&mut self, bw: u64) {
        *self = Self { bw, reached: self.reached, ..Self::default() };
    }
}

/// BBR.bw_shortterm and BBR.inflight_shortterm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShortTerm {
    bw: u64,
    inflight: u32,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self { bw: NO_RATE_BOUND, inflight: NO_VOLUME_BOUND }
    }
}

/// Losses and deliveries by round (§5.5.10.3).
#[derive(Clone, Copy, Debug, Default)]
struct Congestion {
    /// BBR.bw_latest and BBR.inflight_latest: maxima of this round.
    bw_latest: u64,
    inflight_latest: u32,
    /// End of the round, and whether the current ACK ended it.
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// Ranges of sequence numbers lost in the round, and the end of the last one.
    lost_ranges: u32,
    range_end: Option<SeqNum>,
}

/// BBR.ack_phase: stage of a probe that the current ACKs reflect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The cycle of ProbeBW.
#[derive(Clone, Copy, Debug)]
struct Probe {
    ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample: ACKs are for data sent while probing, and too high a loss rate has
    /// not been answered yet.
    is_sample: bool,
    /// BBR.bw_probe_up_acked, BBR.probe_up_acked_per_inc and BBR.bw_probe_up_rounds.
    up_acked: u32,
    acked_per_inc: u32,
    up_rounds: u32,
    /// BBR.rounds_since_probe_up, for coexistence with Reno.
    rounds_since_up: u32,
    /// BBR.bw_probe_wait, counted from BBR.cycle_stamp.
    wait: Duration,
    cycle_stamp: Instant,
    /// BBR.prev_probe_too_high and BBR.prev_probe_precautionary.
    prev_too_high: bool,
    prev_precautionary: bool,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_sample: false,
            up_acked: 0,
            acked_per_inc: NO_VOLUME_BOUND,
            up_rounds: 0,
            rounds_since_up: 0,
            wait: Duration::ZERO,
            cycle_stamp: Instant::ZERO,
            prev_too_high: false,
            prev_precautionary: false,
        }
    }
}

/// Schedule of ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    /// BBR.probe_rtt_min_delay, and the time of its sample.
    min_delay: Option<Duration>,
    min_stamp: Option<Instant>,
    expired: bool,
    /// BBR.probe_rtt_done_stamp; `None` until the network is half empty.
    done_stamp: Option<Instant>,
    round_done: bool,
}

/// Data that ACKs report at once, beyond what the bandwidth explains (§5.5.9).
#[derive(Clone, Copy, Debug, Default)]
struct ExtraAcked {
    interval_start: Instant,
    delivered: u64,
    filter: WindowedMax,
}

/// An episode of losses: from the first one to the end of recovery.
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    /// C.delivered at its beginning; `None` outside an episode.
    began_at: Option<u64>,
    /// BBR.prior_cwnd: cwnd before the episode, or before ProbeRTT.
    prior_cwnd: u32,
    /// BBR.undo_state: the state that a loss ended.
    undo_state: Option<BbrState>,
    undo_short_term: ShortTerm,
    undo_inflight_longterm: u32,
}

/// RS: rate sample of an ACK.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// RS.delivery_rate; 0 if it cannot be trusted.
    rate: u64,
    delivered: u32,
    prior_delivered: u64,
    tx_inflight: u32,
    /// RS.lost, marked bytes included.
    lost: u64,
    is_app_limited: bool,
    rtt: Option<Duration>,
}

impl Default for Bbr3 {
    fn default() -> Self {
        Self {
            state: BbrState::Startup,
            round: Round::default(),
            max_bw: WindowedMax::default(),
            cycle_count: 0,
            bw: 0,
            min_rtt: None,
            min_rtt_stamp: None,
            pacing_rate: None,
            has_seen_rtt: false,
            full: FullBw::default(),
            drain_start_round: 0,
            inflight_longterm: NO_VOLUME_BOUND,
            short_term: ShortTerm::default(),
            congestion: Congestion::default(),
            probe: Probe::default(),
            probe_rtt: ProbeRtt::default(),
            held_back: HeldBack::default(),
            extra_acked: ExtraAcked::default(),
            idle_restart: false,
            is_cwnd_limited: false,
            recovery: Recovery::default(),
            delivered: 0,
            una: None,
        }
    }
}

/// Converts `bytes` to a volume; saturates.
fn volume(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(NO_VOLUME_BOUND)
}

/// `percent` hundredths of `of`.
fn share(of: u32, percent: u64) -> u32 {
    volume(u64::from(of) * percent / UNIT)
}

/// Least data in flight that is allowed, bytes (§5.6.4.3).
fn min_pipe(window: &Window) -> u32 {
    MIN_PIPE_SEGMENTS * window.smss()
}

/// IsInflightTooHigh(): more of the data in flight was lost than a probe may cost.
fn is_too_high(lost: u64, tx_inflight: u32) -> bool {
    lost * UNIT > u64::from(tx_inflight) * LOSS_THRESH
}

/// InflightAtLoss(): volume in flight at which the losses crossed the threshold.
fn inflight_at_loss(lost: &Lost) -> u32 {
    let inflight_prev = lost.tx_inflight.saturating_sub(lost.bytes);
    let lost_prev = (lost.lost - lost.prior_lost).saturating_sub(u64::from(lost.bytes));
    let allowed = u64::from(inflight_prev) * LOSS_THRESH;
    let lost_prefix = allowed.saturating_sub(lost_prev * UNIT) / (UNIT - LOSS_THRESH);
    inflight_prev.saturating_add(volume(lost_prefix))
}

/// The model, and the volumes in flight derived from it.
impl Bbr3 {
    /// BDPMultiple() for the bandwidth `bw`.
    fn bdp_multiple(&self, window: &Window, bw: u64, gain: u64) -> u64 {
        match self.min_rtt {
            Some(min_rtt) => bytes_in(bw, min_rtt).saturating_mul(gain) / UNIT,
            None => u64::from(window.initial()),
        }
    }

    /// C.send_quantum (§5.6.3), bytes.
    fn send_quantum(&self, window: &Window) -> u64 {
        let rate = self.pacing_rate(window).map_or(0, DataRate::bits_per_sec);
        let quantum = bytes_in(rate, Duration::from_millis(1)).min(64 << 10);
        quantum.max(2 * u64::from(window.smss()))
    }

    /// QuantizationBudget(), TCP's offload budget included (§5.5.8.1).
    fn quantization_budget(&self, window: &Window, inflight_cap: u64) -> u32 {
        let offload_budget = 3 * self.send_quantum(window);
        let cap = inflight_cap.max(offload_budget).max(u64::from(min_pipe(window)));
        let more = if self.state == BbrState::ProbeBwUp { 2 * window.smss() } else { 0 };
        volume(cap).saturating_add(more)
    }

    /// Inflight(1.0) for the bandwidth `bw`.
    fn inflight(&self, window: &Window, bw: u64) -> u32 {
        self.quantization_budget(window, self.bdp_multiple(window, bw, UNIT))
    }

    /// BBR.max_inflight (§5.6.4.2), bytes.
    fn max_inflight(&self, window: &Window) -> u32 {
        let bdp = self.bdp_multiple(window, self.bw, self.state.cwnd_gain());
        self.quantization_budget(window, bdp.saturating_add(self.extra_acked.filter.get()))
    }

    /// InflightWithHeadroom(), bytes.
    fn inflight_with_headroom(&self, window: &Window) -> u32 {
        let longterm = self.inflight_longterm;
        if longterm == NO_VOLUME_BOUND {
            return longterm;
        }
        let headroom = share(longterm, HEADROOM).max(window.smss());
        longterm.saturating_sub(headroom).max(min_pipe(window))
    }

    /// TargetInflight(), bytes.
    fn target_inflight(&self, window: &Window) -> u32 {
        volume(self.bdp_multiple(window, self.bw, UNIT)).min(window.cwnd())
    }

    /// ProbeRTTCwnd() (§5.6.4.5), bytes.
    fn probe_rtt_cwnd(&self, window: &Window) -> u32 {
        volume(self.bdp_multiple(window, self.bw, PROBE_RTT_CWND_GAIN)).max(min_pipe(window))
    }

    fn sample(&self, ack: &Ack) -> Option<Sample> {
        let rate = ack.rate?;
        let least = [self.min_rtt, rate.rtt].into_iter().flatten().min();
        let trusted = rate.rate(least.unwrap_or(Duration::ZERO));
        let lost = ack.delivery.lost - rate.prior_lost;
        let marked = ack.delivery.delivered_ce - rate.prior_delivered_ce;
        Some(Sample {
            rate: trusted.map_or(0, DataRate::bits_per_sec),
            delivered: volume(rate.delivered),
            prior_delivered: rate.prior_delivered,
            tx_inflight: rate.tx_inflight,
            lost: lost + marked,
            is_app_limited: rate.app_limited || self.held_back.holds(rate.prior_delivered),
            rtt: rate.rtt,
        })
    }
}

/// The steps on each ACK, in the draft's order (§5.2.3).
impl Bbr3 {
    fn update_model_and_state(&mut self, window: &mut Window, ack: &Ack, rs: &Sample) {
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(window, rs);
        self.note_cwnd_limited(window, ack);
        self.update_ack_aggregation(window, ack);
        self.check_full_bw_reached(rs);
        self.check_startup_done(window, ack, rs);
        self.check_drain_done(window, ack);
        self.update_probe_bw_cycle_phase(window, ack, rs);
        self.update_min_rtt(ack.now, rs.rtt);
        self.check_probe_rtt(window, ack);
        if self.congestion.loss_round_start {
            // AdvanceLatestDeliverySignals()
            self.congestion.bw_latest = rs.rate;
            self.congestion.inflight_latest = rs.delivered;
        }
        self.bw = self.max_bw.get().min(self.short_term.bw); // BoundBWForModel()
    }

    fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        let signals = &mut self.congestion;
        signals.bw_latest = signals.bw_latest.max(rs.rate);
        signals.inflight_latest = signals.inflight_latest.max(rs.delivered);
        signals.loss_round_start = rs.prior_delivered >= signals.loss_round_delivered;
        if signals.loss_round_start {
            signals.loss_round_delivered = self.delivered;
        }
    }

    fn update_congestion_signals(&mut self, window: &Window, rs: &Sample) {
        self.update_max_bw(rs);
        if self.congestion.loss_round_start {
            self.adapt_lower_bounds(window);
            self.congestion.is_loss_in_round = false;
        }
    }

    /// BBRUpdateMaxBw(), with the round count (§5.5.5).
    fn update_max_bw(&mut self, rs: &Sample) {
        self.round.update(rs.prior_delivered, self.delivered);
        self.probe.rounds_since_up += u32::from(self.round.starts);
        if rs.rate > 0 && (rs.rate >= self.max_bw.get() || !rs.is_app_limited) {
            self.max_bw.update(MAX_BW_CYCLES - 1, self.cycle_count, rs.rate);
        }
    }

    /// AdaptLowerBoundsFromCongestion(), once a round.
    fn adapt_lower_bounds(&mut self, window: &Window) {
        if self.state.is_probing() || !self.congestion.is_loss_in_round {
            return;
        }
        let Congestion { bw_latest, inflight_latest, .. } = self.congestion;
        let short = &mut self.short_term;
        if short.bw == NO_RATE_BOUND {
            short.bw = self.max_bw.get();
        }
        if short.inflight == NO_VOLUME_BOUND {
            short.inflight = window.cwnd();
        }
        short.bw = bw_latest.max(short.bw.saturating_mul(BETA) / UNIT);
        short.inflight = inflight_latest.max(share(short.inflight, BETA));
    }

    /// Updates C.is_cwnd_limited; a new round clears it.
    fn note_cwnd_limited(&mut self, window: &Window, ack: &Ack) {
        let is_used_up = ack.delivery.prior_inflight.saturating_add(window.smss()) > window.cwnd();
        self.is_cwnd_limited = is_used_up || (self.is_cwnd_limited && !self.round.starts);
    }

    /// UpdateACKAggregation() (§5.5.9).
    fn update_ack_aggregation(&mut self, window: &Window, ack: &Ack) {
        let seen = &mut self.extra_acked;
        let mut expected = bytes_in(self.bw, ack.now.since(seen.interval_start));
        if seen.delivered <= expected {
            seen.delivered = 0;
            seen.interval_start = ack.now;
            expected = 0;
        }
        seen.delivered += u64::from(ack.delivery.newly_delivered);
        let extra = (seen.delivered - expected).min(u64::from(window.cwnd()));
        let rounds = if self.full.reached { EXTRA_ACKED_ROUNDS } else { 1 };
        seen.filter.update(rounds, self.round.count, extra);
    }

    /// CheckFullBWReached() (§5.3.1.2).
    fn check_full_bw_reached(&mut self, rs: &Sample) {
        let full = &mut self.full;
        if full.now || !self.round.starts || rs.is_app_limited || rs.rate == 0 {
            return;
        }
        if rs.rate >= full.bw.saturating_add(full.bw / 4) {
            full.restart(rs.rate);
            return;
        }
        full.count += 1;
        full.now = full.count >= FULL_BW_ROUNDS;
        full.reached |= full.now;
    }

    fn check_startup_done(&mut self, window: &Window, ack: &Ack, rs: &Sample) {
        self.check_startup_high_loss(window, ack, rs);
        if self.state == BbrState::Startup && self.full.reached {
            self.state = BbrState::Drain;
            self.drain_start_round = self.round.count;
        }
    }

    /// CheckStartupHighLoss() (§5.3.1.3).
    fn check_startup_high_loss(&mut self, window: &Window, ack: &Ack, rs: &Sample) {
        if !self.congestion.loss_round_start {
            return;
        }
        let lost_ranges = std::mem::take(&mut self.congestion.lost_ranges);
        let in_recovery = matches!(ack.phase, RecoveryPhase::Recovery | RecoveryPhase::Cwr)
            && self.recovery.began_at.is_some_and(|began| rs.prior_delivered >= began);
        let is_high = lost_ranges >= STARTUP_LOST_RANGES && is_too_high(rs.lost, rs.tx_inflight);
        if self.state != BbrState::Startup || self.full.reached || !in_recovery || !is_high {
            return;
        }
        self.recovery.undo_state = Some(BbrState::Startup);
        self.full.now = true;
        self.full.reached = true;
        let bdp = volume(self.bdp_multiple(window, self.bw, UNIT));
        self.inflight_longterm = bdp.max(self.congestion.inflight_latest);
    }

    /// CheckDrainDone() (§5.3.2).
    fn check_drain_done(&mut self, window: &Window, ack: &Ack) {
        if self.state != BbrState::Drain {
            return;
        }
        let is_drained = ack.delivery.inflight <= self.inflight(window, self.bw);
        if is_drained || self.round.count > self.drain_start_round + 3 {
            self.start_probe_bw_down(ack.now);
        }
    }
}

/// ProbeBW (§5.3.3.9).
impl Bbr3 {
    fn start_probe_bw_down(&mut self, now: Instant) {
        // ResetCongestionSignals()
        self.congestion.is_loss_in_round = false;
        self.congestion.bw_latest = 0;
        self.congestion.inflight_latest = 0;
        self.pick_probe_wait();
        self.probe.cycle_stamp = now;
        self.probe.ack_phase = AckPhase::ProbeStopping;
        self.round.start(self.delivered);
        self.state = BbrState::ProbeBwDown;
    }

    fn start_probe_bw_refill(&mut self) {
        self.short_term = ShortTerm::default();
        self.probe.up_rounds = 0;
        self.probe.up_acked = 0;
        self.probe.prev_precautionary = false;
        self.probe.ack_phase = AckPhase::Refilling;
        self.round.start(self.delivered);
        self.state = BbrState::ProbeBwRefill;
    }

    fn start_probe_bw_up(&mut self, window: &Window, rs: &Sample) {
        self.probe.is_sample = true;
        self.probe.ack_phase = AckPhase::ProbeStarting;
        self.round.start(self.delivered);
        self.full.restart(rs.rate);
        self.state = BbrState::ProbeBwUp;
        self.raise_inflight_longterm_slope(window);
    }

    /// PickProbeWait(): two to three seconds, and as many rounds as Reno needs, or one less.
    fn pick_probe_wait(&mut self) {
        let drawn = draw(self.una, 2_000_000_000);
        self.probe.rounds_since_up = drawn % 2;
        self.probe.wait = Duration::from_secs(2) + Duration::from_nanos(u64::from(drawn / 2));
    }

    fn update_probe_bw_cycle_phase(&mut self, window: &Window, ack: &Ack, rs: &Sample) {
        if !self.full.reached || self.adapt_long_term_model(window, ack, rs) {
            return;
        }
        match self.state {
            BbrState::ProbeBwDown => {
                let is_probing = self.is_time_to_probe_bw(window, ack.now);
                if !is_probing && self.is_time_to_cruise(window, ack) {
                    self.state = BbrState::ProbeBwCruise;
                }
            }
            BbrState::ProbeBwCruise => {
                self.is_time_to_probe_bw(window, ack.now);
            }
            BbrState::ProbeBwRefill => {
                if self.round.starts {
                    self.start_probe_bw_up(window, rs);
                }
            }
            BbrState::ProbeBwUp => {
                if self.is_time_to_go_down(window, ack, rs) {
                    self.probe.prev_too_high = false;
                    self.start_probe_bw_down(ack.now);
                }
            }
            BbrState::Startup | BbrState::Drain | BbrState::ProbeRtt => {}
        }
    }

    /// IsTimeToProbeBW(): begins a probe when it is time, by the clock or as Reno would have grown.
    fn is_time_to_probe_bw(&mut self, window: &Window, now: Instant) -> bool {
        let reno_rounds = (self.target_inflight(window) / window.smss()).min(RENO_ROUNDS);
        let is_time = now > self.probe.cycle_stamp + self.probe.wait
            || self.probe.rounds_since_up >= reno_rounds;
        if is_time {
            self.start_probe_bw_refill();
        }
        is_time
    }

    /// IsTimeToCruise(): the queue is drained and headroom is left.
    fn is_time_to_cruise(&self, window: &Window, ack: &Ack) -> bool {
        let inflight = ack.delivery.inflight;
        inflight <= self.inflight_with_headroom(window)
            && inflight <= self.inflight(window, self.max_bw.get())
    }

    /// IsTimeToGoDown(). A plateau does not count while the long-term bound limits the sender.
    fn is_time_to_go_down(&mut self, window: &Window, ack: &Ack, rs: &Sample) -> bool {
        if self.probe.prev_too_high && ack.delivery.inflight >= self.inflight_longterm {
            self.probe.prev_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited && window.cwnd() >= self.inflight_longterm {
            self.full.restart(rs.rate);
            return false;
        }
        self.full.now
    }

    /// AdaptLongTermModel(); returns true if it has chosen the next state.
    fn adapt_long_term_model(&mut self, window: &Window, ack: &Ack, rs: &Sample) -> bool {
        if self.probe.ack_phase == AckPhase::ProbeStarting && self.round.starts {
            self.probe.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.probe.ack_phase == AckPhase::ProbeStopping && self.round.starts {
            self.probe.is_sample = false;
            self.probe.ack_phase = AckPhase::Init;
            let is_probe_bw = self.state.is_probe_bw();
            if is_probe_bw && !rs.is_app_limited {
                self.cycle_count += 1; // AdvanceMaxBwFilter()
            }
            if is_probe_bw && self.probe.prev_precautionary && !self.probe.prev_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if is_too_high(rs.lost, rs.tx_inflight) || self.inflight_longterm == NO_VOLUME_BOUND {
            return false;
        }
        self.inflight_longterm = self.inflight_longterm.max(rs.tx_inflight);
        if self.state == BbrState::ProbeBwUp {
            self.probe_inflight_longterm_upward(window, ack);
        }
        false
    }

    fn probe_inflight_longterm_upward(&mut self, window: &Window, ack: &Ack) {
        if !self.is_cwnd_limited || window.cwnd() < self.inflight_longterm {
            return;
        }
        let probe = &mut self.probe;
        probe.up_acked = probe.up_acked.saturating_add(ack.delivery.newly_delivered);
        let delta = probe.up_acked / probe.acked_per_inc;
        probe.up_acked %= probe.acked_per_inc;
        let more = delta.saturating_mul(window.smss());
        self.inflight_longterm = self.inflight_longterm.saturating_add(more);
        if self.round.starts {
            self.raise_inflight_longterm_slope(window);
        }
    }

    /// RaiseInflightLongtermSlope(): the bound grows by twice as many segments as in the previous
    /// round.
    fn raise_inflight_longterm_slope(&mut self, window: &Window) {
        let growth_this_round = 1_u32 << self.probe.up_rounds;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
        self.probe.acked_per_inc = (window.cwnd() / growth_this_round).max(window.smss());
    }
}

/// ProbeRTT (§5.3.4.3).
impl Bbr3 {
    fn update_min_rtt(&mut self, now: Instant, rtt: Option<Duration>) {
        let probe = &mut self.probe_rtt;
        probe.expired = now > *probe.min_stamp.get_or_insert(now) + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (probe.expired || probe.min_delay.is_none_or(|least| rtt < least))
        {
            probe.min_delay = Some(rtt);
            probe.min_stamp = Some(now);
        }
        let min_rtt_expired = now > *self.min_rtt_stamp.get_or_insert(now) + MIN_RTT_WINDOW;
        if let Some(delay) = probe.min_delay
            && (min_rtt_expired || self.min_rtt.is_none_or(|least| delay < least))
        {
            self.min_rtt = Some(delay);
            self.min_rtt_stamp = probe.min_stamp;
        }
    }

    fn check_probe_rtt(&mut self, window: &mut Window, ack: &Ack) {
        if self.state != BbrState::ProbeRtt && self.probe_rtt.expired && !self.idle_restart {
            self.state = BbrState::ProbeRtt;
            self.save_cwnd(window);
            self.probe_rtt.done_stamp = None;
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.round.start(self.delivered);
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(window, ack);
        }
        self.idle_restart = false;
    }

    fn handle_probe_rtt(&mut self, window: &mut Window, ack: &Ack) {
        let inflight = ack.delivery.inflight;
        self.held_back.extend(self.delivered, self.delivered + u64::from(inflight));
        if self.probe_rtt.done_stamp.is_some() {
            self.probe_rtt.round_done |= self.round.starts;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(window, ack.now);
            }
        } else if inflight <= self.probe_rtt_cwnd(window) {
            self.probe_rtt.done_stamp = Some(ack.now + PROBE_RTT_DURATION);
            self.probe_rtt.round_done = false;
            self.round.start(self.delivered);
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: Instant) {
        if self.probe_rtt.done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt.min_stamp = Some(now);
        self.restore_cwnd(window);
        // ExitProbeRTT() (§5.3.4.4)
        self.short_term = ShortTerm::default();
        if self.full.reached {
            self.start_probe_bw_down(now);
            self.state = BbrState::ProbeBwCruise;
        } else {
            self.state = BbrState::Startup;
        }
    }
}

/// Reactions to losses and marks (§5.5.10, §5.5.11, §5.6.4.4).
impl Bbr3 {
    /// NoteLoss(), also for marks.
    fn note_congestion(&mut self, delivered: u64) {
        if !self.congestion.is_loss_in_round {
            self.congestion.loss_round_delivered = delivered;
        }
        self.congestion.is_loss_in_round = true;
    }

    fn note_marks(&mut self, window: &Window, ack: &Ack, rs: &Sample) {
        if ack.delivery.newly_ce == 0 {
            return;
        }
        self.note_congestion(self.delivered);
        self.congestion.lost_ranges += 1;
        if self.probe.is_sample && is_too_high(rs.lost, rs.tx_inflight) {
            self.handle_inflight_too_high(window, ack.now, rs.tx_inflight, rs.is_app_limited);
        }
    }

    fn count_range(&mut self, lost: &Lost) {
        let signals = &mut self.congestion;
        signals.lost_ranges += u32::from(signals.range_end != Some(lost.seq));
        signals.range_end = Some(lost.seq + lost.bytes);
    }

    fn handle_inflight_too_high(
        &mut self,
        window: &Window,
        now: Instant,
        tx_inflight: u32,
        is_app_limited: bool,
    ) {
        self.probe.prev_too_high = true;
        self.probe.is_sample = false;
        if !is_app_limited {
            self.inflight_longterm = tx_inflight.max(share(self.target_inflight(window), BETA));
        }
        if self.state == BbrState::ProbeBwUp {
            self.recovery.undo_state = Some(BbrState::ProbeBwUp);
            self.start_probe_bw_down(now);
        }
    }

    /// SaveStateUponLoss(), once per episode.
    fn save_state_upon_loss(&mut self, window: &Window) {
        self.save_cwnd(window);
        if self.recovery.began_at.is_none() {
            self.recovery = Recovery {
                began_at: Some(self.delivered),
                prior_cwnd: self.recovery.prior_cwnd,
                undo_state: None,
                undo_short_term: self.short_term,
                undo_inflight_longterm: self.inflight_longterm,
            };
        }
    }

    fn save_cwnd(&mut self, window: &Window) {
        let is_good = self.recovery.began_at.is_none() && self.state != BbrState::ProbeRtt;
        let before = if is_good { 0 } else { self.recovery.prior_cwnd };
        self.recovery.prior_cwnd = before.max(window.cwnd());
    }

    fn restore_cwnd(&self, window: &mut Window) {
        window.set_cwnd(window.cwnd().max(self.recovery.prior_cwnd));
    }
}

/// Pacing and cwnd (§5.6).
impl Bbr3 {
    /// InitPacingRate() for a given RTT.
    fn first_pacing_rate(window: &Window, srtt: Duration) -> Option<DataRate> {
        pace(rate_of(u64::from(window.initial()), srtt) / UNIT * BbrState::Startup.pacing_gain())
    }

    fn set_pacing_rate_with_gain(&mut self, gain: u64) {
        let rate = self.bw.saturating_mul(gain) / UNIT;
        let rate = pace(rate.saturating_mul(UNIT - PACING_MARGIN) / UNIT);
        if self.full.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_pacing_rate(&mut self, window: &Window, srtt: Option<Duration>) {
        if let Some(srtt) = srtt.filter(|_| !self.has_seen_rtt) {
            self.has_seen_rtt = true;
            self.pacing_rate = Self::first_pacing_rate(window, srtt);
        }
        self.set_pacing_rate_with_gain(self.state.pacing_gain());
    }

    /// SetCwnd() (§5.6.4.6).
    fn set_cwnd(&self, window: &mut Window, newly_acked: u32) {
        let max_inflight = self.max_inflight(window);
        let grown = window.cwnd().saturating_add(newly_acked);
        if self.full.reached {
            window.set_cwnd(grown.min(max_inflight));
        } else if window.cwnd() < max_inflight || self.delivered < u64::from(window.initial()) {
            window.set_cwnd(grown);
        }
        window.set_cwnd(window.cwnd().max(min_pipe(window)));
        if self.state == BbrState::ProbeRtt {
            window.set_cwnd(window.cwnd().min(self.probe_rtt_cwnd(window)));
        }
        self.bound_cwnd_for_model(window);
        window.set_cwnd(window.cwnd().min(window.limit()));
    }

    /// BoundCwndForModel() (§5.6.4.7).
    fn bound_cwnd_for_model(&self, window: &mut Window) {
        let cap = match self.state {
            BbrState::ProbeBwDown | BbrState::ProbeBwRefill | BbrState::ProbeBwUp => {
                self.inflight_longterm
            }
            BbrState::ProbeBwCruise | BbrState::ProbeRtt => self.inflight_with_headroom(window),
            BbrState::Startup | BbrState::Drain => NO_VOLUME_BOUND,
        };
        let cap = cap.min(self.short_term.inflight).max(min_pipe(window));
        window.set_cwnd(window.cwnd().min(cap));
    }
}

impl CongestionControl for Bbr3 {
    fn on_established(&mut self, window: &mut Window, now: Instant, srtt: Option<Duration>) {
        self.min_rtt = srtt;
        self.min_rtt_stamp = Some(now);
        self.probe_rtt.min_stamp = Some(now);
        self.extra_acked.interval_start = now;
        self.has_seen_rtt = srtt.is_some();
        self.pacing_rate = Self::first_pacing_rate(window, srtt.unwrap_or(NOMINAL_RTT));
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.delivered = ack.delivery.delivered;
        self.una = Some(ack.una);
        if let Some(rs) = self.sample(ack) {
            self.note_marks(window, ack, &rs);
            self.update_model_and_state(window, ack, &rs);
        }
        self.set_pacing_rate(window, ack.srtt);
        self.set_cwnd(window, ack.delivery.newly_delivered);
    }

    fn on_growth(&mut self, _: &mut Window, _: &Ack) {}

    /// OnEnterFastRecovery(); the model bounds cwnd itself.
    fn on_fast_retransmit(&mut self, window: &mut Window, _: &Loss) {
        self.save_state_upon_loss(window);
    }

    /// OnEnterRTO(): room for one segment; the caller adds the data in flight.
    fn on_timeout(&mut self, window: &mut Window, _: &Timeout) {
        self.save_state_upon_loss(window);
        window.set_cwnd(window.smss());
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        match cause {
            // It knows the rate at which to go on (`on_resume`).
            Restart::Idle => {}
            Restart::Route => {
                let Self { delivered, una, recovery, .. } = *self;
                let recovery = Recovery { undo_state: None, ..recovery };
                *self = Self { delivered, una, recovery, ..Self::default() };
                self.round.start(delivered);
                window.set_cwnd(window.cwnd().min(window.initial()));
            }
        }
    }

    /// HandleSpuriousLossDetection(): restores cwnd, the bounds and the state.
    fn on_spurious(&mut self, window: &mut Window, _: &Undo) {
        self.restore_cwnd(window);
        self.congestion.is_loss_in_round = false;
        self.full.restart(0);
        let Recovery { undo_state, undo_short_term, undo_inflight_longterm, .. } = self.recovery;
        self.short_term.bw = self.short_term.bw.max(undo_short_term.bw);
        self.short_term.inflight = self.short_term.inflight.max(undo_short_term.inflight);
        self.inflight_longterm = self.inflight_longterm.max(undo_inflight_longterm);
        match undo_state {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full.reached = false;
                if self.state != BbrState::ProbeRtt {
                    self.state = BbrState::Startup;
                }
            }
            Some(BbrState::ProbeBwUp)
                if !matches!(self.state, BbrState::ProbeBwUp | BbrState::ProbeRtt) =>
            {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
        self.recovery.undo_state = None;
        self.recovery.began_at = None;
    }

    /// Saves the state; the marks themselves are counted with each ACK.
    fn on_ecn(&mut self, window: &mut Window, _: &Loss) {
        self.save_state_upon_loss(window);
    }

    /// HandleLostPacket(), for each segment.
    fn on_lost(&mut self, window: &mut Window, lost: &Lost) {
        self.delivered = lost.delivered;
        self.save_state_upon_loss(window);
        self.note_congestion(lost.delivered);
        self.count_range(lost);
        if self.probe.is_sample && is_too_high(lost.lost - lost.prior_lost, lost.tx_inflight) {
            let inflight = inflight_at_loss(lost);
            self.handle_inflight_too_high(window, lost.now, inflight, lost.app_limited);
        }
    }

    /// HandleRestartFromIdle() (§5.4.1).
    fn on_resume(&mut self, window: &mut Window, resume: &Resume) {
        if !resume.app_limited {
            return;
        }
        self.delivered = resume.delivered;
        self.idle_restart = true;
        self.extra_acked.interval_start = resume.now;
        if self.state.is_probe_bw() {
            self.set_pacing_rate_with_gain(UNIT);
        } else if self.state == BbrState::ProbeRtt {
            self.check_probe_rtt_done(window, resume.now);
        }
    }

    fn on_recovered(&mut self, window: &mut Window, _: Instant) {
        if self.recovery.began_at.take().is_some() {
            self.restore_cwnd(window);
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn pacing_rate(&self, window: &Window) -> Option<DataRate> {
        self.pacing_rate.or_else(|| Self::first_pacing_rate(window, NOMINAL_RTT))
    }
}

#[cfg(test)]
mod tests;
