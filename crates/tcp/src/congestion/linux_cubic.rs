//! CUBIC as Linux has it (`tcp_cubic.c`), which is older than RFC 9438 and differs from it
//! ([`Cubic`](super::Cubic)):
//!
//! - Windows are whole segments, and so are their growth and what is left after a loss: of seven
//!   segments, four.
//! - The estimate of Reno's window grows by 0.53 segments a round trip forever; RFC 9438 §4.3 goes
//!   on with one, as Reno does, above the window of the last loss. cwnd takes a round trip to
//!   follow.
//! - Before the first loss, and after a time-out, cwnd grows by at least 5 % a round trip.
//! - The curve looks ahead by the smallest RTT, not by the smoothed one.
//! - The slope is computed anew when cwnd has changed or 28 ms have passed, and once in a tick.
//! - A needless reduction restores the window but not the curve.
//!
//! With many losses it is slower than RFC 9438 has it: at 3 % by a fifth (studies/live).

use super::slow_start::SlowStart;
use super::{Ack, CongestionControl, Loss, Reno, Restart, Resume, Timeout, Window};
use crate::config::CubicConfig;
use airtcp_core::{Duration, Instant};

/// `bic_scale` / 1024 · 10: segments per second cubed.
const C: f64 = 410.0 / 1024.0;
/// β in units of `BICTCP_BETA_SCALE`: share of cwnd kept after a loss.
const BETA: u32 = 717;
const SCALE: u32 = 1024;
/// `beta_scale`: eighths of a window whose acknowledgement adds a segment to Reno's estimate.
const RENO_EIGHTHS: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// A jiffy with the usual `CONFIG_HZ` of distributions, 250.
const TICK: Duration = Duration::from_millis(4);
/// `HZ / 32`: age at which the slope is computed again.
const SLOPE_AGE: Duration = Duration::from_millis(28);
/// Segments acknowledged per segment of growth, before the first loss.
const FIRST_SLOPE: u32 = 20;

/// CUBIC that counts in whole segments.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    slow_start: SlowStart,
    fast_convergence: bool,
    /// `last_max_cwnd`, in segments; `None` before a loss.
    w_max: Option<u32>,
    /// `delay_min`: smallest RTT.
    min_rtt: Option<Duration>,
    epoch: Option<Epoch>,
    /// `cnt`: segments acknowledged per segment of growth.
    slope: u32,
    /// Window for which `slope` was computed, and the time.
    computed: (u32, Instant),
    /// `snd_cwnd_cnt`: segments acknowledged since cwnd last grew.
    counted: u32,
    /// Acknowledged bytes that do not make up a segment yet.
    odd: u32,
    /// Time of the last ACK.
    heard: Instant,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K, in seconds.
    k: f64,
    /// `bic_origin_point`: the window at which the curve is flat, in segments.
    origin: u32,
    /// `ack_cnt`: segments acknowledged, for the estimate of Reno's window.
    acked: u32,
    /// `tcp_cwnd`: estimate of Reno's window, in segments.
    reno: u32,
}

impl Epoch {
    fn new(start: Instant, cwnd: u32, w_max: Option<u32>) -> Self {
        let origin = w_max.map_or(cwnd, |w_max| w_max.max(cwnd));
        let k = libm::cbrt(f64::from(origin - cwnd) / C);
        Self { start, k, origin, acked: 0, reno: cwnd }
    }

    /// The curve at `after` since the start of the stage, in whole segments.
    fn cubic(&self, after: Duration) -> u32 {
        let offset = after.as_secs_f64() - self.k;
        // Saturates.
        let distance = (C * offset.abs() * offset * offset) as u32;
        if offset < 0.0 {
            self.origin.saturating_sub(distance)
        } else {
            self.origin.saturating_add(distance)
        }
    }

    /// Updates the estimate of Reno's window. Returns the slope at which cwnd reaches it in a round
    /// trip; `None` if cwnd is not below it.
    fn reno_slope(&mut self, cwnd: u32) -> Option<u32> {
        let each = share(cwnd, RENO_EIGHTHS, 8).max(1);
        while self.acked > each {
            self.acked -= each;
            self.reno += 1;
        }
        let behind = self.reno.checked_sub(cwnd).filter(|&behind| behind > 0)?;
        Some(cwnd / behind)
    }
}

/// `n` · `of` / `whole`, rounded down.
fn share(n: u32, of: u32, whole: u32) -> u32 {
    (u64::from(n) * u64::from(of) / u64::from(whole)) as u32
}

/// Sets ssthresh after a loss at `cwnd`.
fn set_ssthresh(window: &mut Window, cwnd: u32) {
    window.set_ssthresh(share(cwnd, BETA, SCALE).max(2).saturating_mul(window.smss()));
}

fn segments(window: &Window) -> u32 {
    window.cwnd() / window.smss()
}

impl LinuxCubic {
    /// A sender whose slow start is `slow_start`'s unless HyStart++ is on. `paced`: it paces its
    /// segments.
    pub fn new(slow_start: Reno, config: CubicConfig, paced: bool) -> Self {
        Self {
            slow_start: SlowStart::new(slow_start, config.hystart, paced),
            fast_convergence: config.fast_convergence,
            w_max: None,
            min_rtt: None,
            epoch: None,
            slope: 0,
            computed: (0, Instant::ZERO),
            counted: 0,
            odd: 0,
            heard: Instant::ZERO,
        }
    }

    /// Linux's `bictcp_update`: computes the slope.
    fn update_slope(&mut self, now: Instant, cwnd: u32, acked: u32) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        let (for_cwnd, at) = self.computed;
        if for_cwnd == cwnd && now.since(at) <= SLOPE_AGE {
            return;
        }
        let same_tick = now.as_nanos() / TICK.as_nanos() == at.as_nanos() / TICK.as_nanos();
        if !(self.epoch.is_some() && same_tick) {
            self.computed = (cwnd, now);
            let w_max = self.w_max;
            let epoch =
                self.epoch.get_or_insert_with(|| Epoch { acked, ..Epoch::new(now, cwnd, w_max) });
            let ahead = now.since(epoch.start) + self.min_rtt.unwrap_or(Duration::ZERO);
            self.slope = match epoch.cubic(ahead).checked_sub(cwnd) {
                None | Some(0) => cwnd.saturating_mul(100),
                Some(distance) => cwnd / distance,
            };
            if w_max.is_none() {
                self.slope = self.slope.min(FIRST_SLOPE);
            }
        }
        let reno = self.epoch.as_mut().and_then(|epoch| epoch.reno_slope(cwnd));
        self.slope = self.slope.min(reno.unwrap_or(u32::MAX)).max(2);
    }

    /// Linux's `tcp_cong_avoid_ai`: grows cwnd by the slope.
    fn grow(&mut self, window: &mut Window, acked: u32) {
        if self.counted >= self.slope {
            self.counted = 0;
            window.grow(window.smss());
        }
        self.counted += acked;
        window.grow(self.counted / self.slope * window.smss());
        self.counted %= self.slope;
    }

    /// Linux's `bictcp_reset`: forgets the curve.
    fn reset(&mut self) {
        self.w_max = None;
        self.min_rtt = None;
        self.epoch = None;
        self.slope = 0;
        self.computed = (0, Instant::ZERO);
        self.counted = 0;
    }
}

impl CongestionControl for LinuxCubic {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.heard = ack.now;
        // No RTTs are taken in the first second of congestion avoidance.
        let is_early = |epoch: Epoch| ack.now.since(epoch.start) < Duration::from_secs(1);
        if self.epoch.is_some_and(is_early) {
            return;
        }
        if let Some(rtt) = ack.newest_rtt() {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        self.slow_start.on_ack(window, ack);
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() {
            return self.slow_start.on_growth(window, ack);
        }
        self.odd += ack.acked;
        let acked = self.odd / window.smss();
        self.odd %= window.smss();
        if acked > 0 {
            self.update_slope(ack.now, segments(window), acked);
            self.grow(window, acked);
        }
    }

    /// Linux's `cubictcp_recalc_ssthresh`; cwnd follows.
    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        let cwnd = loss.flight / window.smss();
        let gives_way = self.fast_convergence && self.w_max.is_some_and(|w_max| cwnd < w_max);
        self.w_max = Some(if gives_way { share(cwnd, SCALE + BETA, 2 * SCALE) } else { cwnd });
        self.epoch = None;
        self.counted = 0;
        set_ssthresh(window, cwnd);
        window.set_cwnd(window.ssthresh());
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.slow_start.on_timeout(window, timeout);
        if timeout.first {
            set_ssthresh(window, timeout.flight / window.smss());
        }
        self.reset();
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        if cause == Restart::Route {
            self.reset();
        }
        window.set_cwnd(window.cwnd().min(window.initial()));
    }

    /// `CA_EVENT_TX_START`: the curve's time stands still while nothing is sent.
    fn on_resume(&mut self, _: &mut Window, resume: &Resume) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + resume.now.since(self.heard)).min(resume.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::Path;
    use super::super::tests::{SMSS, ack, loss, timeout, window};
    use super::*;
    use crate::config::HyStartConfig;

    fn cubic() -> LinuxCubic {
        LinuxCubic::new(Reno::new(None), CubicConfig::default(), false)
    }

    /// Acknowledges one segment at a time, spread over a round trip, until `until`; returns cwnd
    /// then, in segments.
    fn acknowledge(
        cc: &mut LinuxCubic,
        w: &mut Window,
        now: &mut Instant,
        rtt: Duration,
        until: f64,
    ) -> u32 {
        while now.as_secs_f64() < until {
            let ack = Ack { now: *now, rtt: Some(rtt), flight: w.cwnd(), ..ack(SMSS) };
            cc.on_ack(w, &ack);
            cc.on_growth(w, &ack);
            *now += rtt * u64::from(SMSS) / u64::from(w.cwnd());
        }
        segments(w)
    }

    /// A sender after a loss with `cwnd` segments in flight.
    fn after_loss(cwnd: u32) -> (LinuxCubic, Window, Instant) {
        let (mut cc, mut w) = (cubic(), window(cwnd, cwnd));
        cc.on_fast_retransmit(&mut w, &loss(cwnd * SMSS));
        (cc, w, Instant::from_millis(1000))
    }

    #[test]
    fn a_loss_leaves_whole_segments() {
        for (cwnd, left) in [(100, 70), (10, 7), (7, 4), (3, 2), (2, 2)] {
            let (_, w, _) = after_loss(cwnd);
            assert_eq!((segments(&w), w.ssthresh()), (left, left * SMSS), "{cwnd}");
        }
    }

    // K = cbrt(300 / 0.4004) = 9.083 s.
    #[test]
    fn cwnd_follows_the_curve() {
        let (mut cc, mut w, mut now) = after_loss(1000);
        let rtt = Duration::from_millis(100);
        for (t, expected) in [(1.0, 788), (5.0, 972), (9.083, 1000), (14.083, 1050)] {
            let cwnd = acknowledge(&mut cc, &mut w, &mut now, rtt, 1.0 + t);
            assert!(cwnd.abs_diff(expected) <= 12, "{t} s: {cwnd} and not {expected}");
        }
    }

    // Eight fifteenths of a segment each round trip, beyond the window of the loss, too.
    #[test]
    fn with_a_short_rtt_it_grows_slower_than_reno() {
        let (mut cc, mut w, mut now) = after_loss(20);
        let cwnd = acknowledge(&mut cc, &mut w, &mut now, Duration::from_millis(5), 1.5);
        // 100 round trips from 14; each segment takes a round trip to follow.
        assert!((14 + 45..14 + 54).contains(&cwnd), "{cwnd}");
    }

    // Before a first loss by a twentieth each round trip, though the curve is flat.
    #[test]
    fn without_a_loss_it_grows_by_a_twentieth() {
        let (mut cc, mut w, mut now) = (cubic(), window(100, 100), Instant::from_millis(1000));
        let rtt = Duration::from_millis(100);
        let cwnd = acknowledge(&mut cc, &mut w, &mut now, rtt, 1.5);
        assert!((124..=128).contains(&cwnd), "{cwnd}");
        cc.on_timeout(&mut w, &timeout(100 * SMSS, true));
        assert_eq!((segments(&w), w.ssthresh(), cc.w_max), (1, 70 * SMSS, None));
    }

    // After a needless time-out in an outage the only RTT known is one as long as the outage. The
    // curve is so far ahead then that every other segment acknowledged lets cwnd grow.
    #[test]
    fn after_an_outage_the_curve_looks_ahead_by_its_length() {
        let (mut cc, mut w, now) = after_loss(67);
        cc.on_timeout(&mut w, &timeout(67 * SMSS, true));
        w.set_cwnd(67 * SMSS); // as undone
        let ack = Ack { now, rtt: Some(Duration::from_secs(10)), ..ack(14 * SMSS) };
        cc.on_ack(&mut w, &ack);
        cc.on_growth(&mut w, &ack);
        assert_eq!(segments(&w), 67 + 7);
    }

    #[test]
    fn a_loss_below_the_last_maximum_lowers_it_further() {
        let (mut cc, mut w, _) = after_loss(100);
        cc.on_fast_retransmit(&mut w, &loss(70 * SMSS));
        assert_eq!(cc.w_max, Some(59));
    }

    #[test]
    fn a_pause_does_not_count() {
        let (mut cc, mut w, mut now) = after_loss(1000);
        acknowledge(&mut cc, &mut w, &mut now, Duration::from_millis(100), 2.0);
        let start = cc.epoch.unwrap().start;
        let pause = Duration::from_secs(3);
        let resume = Resume { now: cc.heard + pause, app_limited: true, delivered: 0 };
        cc.on_resume(&mut w, &resume);
        assert_eq!(cc.epoch.unwrap().start, start + pause);
    }

    #[test]
    fn curve() {
        let config = CubicConfig { hystart: HyStartConfig::HyStart, ..CubicConfig::default() };
        let cc = LinuxCubic::new(Reno::new(None), config, false);
        let mut path = Path::new(cc, 20, 40, 1.0);
        path.run(12.0);
        insta::assert_snapshot!(path.curve(0.2));
    }
}
