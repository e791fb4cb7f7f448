//! CUBIC (RFC 9438), optionally with HyStart++ (RFC 9406) or Linux's HyStart. Linux's own is
//! [`LinuxCubic`](super::LinuxCubic).
//!
//! After a loss cwnd approaches the window at which the loss happened on a cubic curve in time,
//! stays near it, and then probes beyond it. Where Reno would grow faster, cwnd follows an estimate
//! of Reno's window.
//!
//! Five points differ from the letter of the RFC, as in Linux. An ACK of several segments counts as
//! many ACKs of one. While cwnd is not fully used, because of the application or the peer's window
//! (§5.8 covers only the former), cwnd does not grow and no time passes for the curve. A window
//! above W_max at the start of the curve becomes W_max. Where the estimate of Reno's window is
//! above the curve but below cwnd, which aims at the curve's value a round trip later, cwnd stays
//! (§4.3 would lower it). A time-out forgets W_max at once, not when congestion avoidance begins
//! (§4.8), so that a loss in the slow start between does not give way (§4.7).
//!
//! Compared section by section with the working group's source of the RFC's text
//! (draft-ietf-tcpm-rfc8312bis after its version 14). A mark is answered as a loss (§4.6).

use super::slow_start::SlowStart;
use super::{Ack, CongestionControl, Loss, Reno, Restart, Spurious, Timeout, Undo, Window};
use crate::config::CubicConfig;
use airtcp_core::{Duration, Instant};

/// RFC 9438 §4.1: C, in segments per second cubed.
const C: f64 = 0.4;
/// β_cubic: share of the window kept after a loss (§4.6).
const BETA: f64 = 0.7;
/// α_cubic (§4.3): growth of Reno's window per round trip that gives the same average with
/// [`BETA`].
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Growth on a cubic curve. Windows are in segments.
#[derive(Clone, Debug)]
pub struct Cubic {
    slow_start: SlowStart,
    fast_convergence: bool,
    curve: Curve,
    /// The curve before the last reduction (§4.9).
    before: Option<Curve>,
    /// Time of the last ACK in congestion avoidance.
    heard: Instant,
    /// Growth of less than a byte, carried over.
    credit: f64,
}

/// State that determines the growth in congestion avoidance.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// W_max. `None`: the window at which congestion avoidance begins.
    w_max: Option<f64>,
    /// cwnd_prior: cwnd before the last reduction.
    prior: f64,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K, in seconds.
    k: f64,
    w_max: f64,
    /// W_est: estimate of Reno's window.
    reno: f64,
}

impl Epoch {
    /// Begins with a window of `cwnd` (§4.2).
    fn new(start: Instant, cwnd: f64, w_max: Option<f64>) -> Self {
        let w_max = w_max.map_or(cwnd, |w_max| w_max.max(cwnd));
        Self { start, k: libm::cbrt((w_max - cwnd) / C), w_max, reno: cwnd }
    }

    /// W_cubic at `after` since the start of the stage (eq. 1).
    fn cubic(&self, after: Duration) -> f64 {
        let t = after.as_secs_f64() - self.k;
        C * t * t * t + self.w_max
    }
}

impl Cubic {
    /// A sender whose slow start is `slow_start`'s unless HyStart++ is on. `paced`: it paces its
    /// segments.
    pub fn new(slow_start: Reno, config: CubicConfig, paced: bool) -> Self {
        Self {
            slow_start: SlowStart::new(slow_start, config.hystart, paced),
            fast_convergence: config.fast_convergence,
            curve: Curve::default(),
            before: None,
            heard: Instant::ZERO,
            credit: 0.0,
        }
    }

    fn avoid_congestion(&mut self, window: &mut Window, ack: &Ack) {
        let smss = f64::from(window.smss());
        let cwnd = f64::from(window.cwnd()) / smss;
        let Curve { w_max, prior, .. } = self.curve;
        let epoch = self.curve.epoch.get_or_insert_with(|| {
            self.heard = ack.now;
            self.credit = 0.0;
            Epoch::new(ack.now, cwnd, w_max)
        });
        self.heard = ack.now;
        // The share of a window that is acknowledged.
        let share = (f64::from(ack.acked) / smss / cwnd).min(1.0);
        let alpha = if epoch.reno < prior { ALPHA } else { 1.0 };
        epoch.reno += alpha * share;
        let elapsed = ack.now.since(epoch.start);
        let next = if epoch.cubic(elapsed) < epoch.reno {
            epoch.reno.max(cwnd) // §4.3
        } else {
            let ahead = elapsed + ack.srtt.unwrap_or(Duration::ZERO);
            let target = epoch.cubic(ahead).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) * share // §4.4, §4.5
        };
        let bytes = (next - cwnd) * smss + self.credit;
        window.grow(bytes as u32);
        self.credit = bytes - f64::from(bytes as u32);
    }

    /// Sets ssthresh after a loss at `cwnd` (§4.6).
    fn reduce(&mut self, window: &mut Window, cwnd: u32, flight: u32) {
        self.before = Some(self.curve);
        self.curve.prior = f64::from(cwnd) / f64::from(window.smss());
        self.curve.epoch = None;
        let ssthresh = (f64::from(flight) * BETA) as u32;
        window.set_ssthresh(ssthresh.max(2 * window.smss()));
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        // §5.8: no time passes for the curve while cwnd is not used.
        if let Some(epoch) = self.curve.epoch.as_mut().filter(|_| !ack.cwnd_limited) {
            epoch.start += ack.now.since(self.heard);
            self.heard = ack.now;
        }
        // Linux takes no RTTs in the first second of congestion avoidance.
        let is_early = |epoch: Epoch| ack.now.since(epoch.start) < Duration::from_secs(1);
        if !self.curve.epoch.is_some_and(is_early) {
            self.slow_start.on_ack(window, ack);
        }
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        if !window.in_slow_start() {
            return self.avoid_congestion(window, ack);
        }
        self.curve.epoch = None;
        self.slow_start.on_growth(window, ack);
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        let w_max = self.curve.w_max;
        self.reduce(window, window.cwnd(), loss.flight);
        // §4.7: a flow that lost below the last W_max leaves room for others.
        let cwnd = self.curve.prior;
        let gives_way = self.fast_convergence && w_max.is_some_and(|w_max| cwnd < w_max);
        self.curve.w_max = Some(if gives_way { cwnd * (1.0 + BETA) / 2.0 } else { cwnd });
        window.set_cwnd(window.ssthresh());
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        let cwnd = window.cwnd();
        self.slow_start.on_timeout(window, timeout);
        if timeout.first {
            self.reduce(window, cwnd, timeout.flight);
        }
        // §4.8: the curve begins at its plateau.
        self.curve.w_max = None;
        self.curve.epoch = None;
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        self.curve.epoch = None;
        if cause == Restart::Route {
            self.curve = Curve::default();
        }
        window.set_cwnd(window.cwnd().min(window.initial()));
    }

    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        // §4.9.2: what has grown beyond the window of the loss since stays as it is.
        let cwnd = f64::from(window.cwnd()) / f64::from(window.smss());
        let outgrown = cwnd >= self.curve.prior;
        let before = self.before.take().filter(|_| !outgrown);
        self.curve = before.unwrap_or(self.curve);
        if !outgrown || undo.cause == Spurious::Timeout {
            self.slow_start.on_spurious(window, undo);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::Path;
    use super::super::tests::{SMSS, ack, loss, timeout, window};
    use super::*;
    use crate::config::HyStartConfig;
    use airtcp_core::SeqNum;

    fn cubic() -> Cubic {
        Cubic::new(Reno::new(None), CubicConfig::default(), false)
    }

    fn with(hystart: HyStartConfig) -> Cubic {
        Cubic::new(Reno::new(None), CubicConfig { hystart, ..CubicConfig::default() }, false)
    }

    fn segments(window: &Window) -> f64 {
        f64::from(window.cwnd()) / f64::from(SMSS)
    }

    /// Acknowledges one segment at a time, spread over a round trip, until `until`.
    fn acknowledge(cc: &mut Cubic, w: &mut Window, now: &mut Instant, rtt: Duration, until: f64) {
        while now.as_secs_f64() < until {
            let srtt = Some(rtt);
            cc.on_growth(w, &Ack { now: *now, srtt, flight: w.cwnd(), ..ack(SMSS) });
            *now += rtt * u64::from(SMSS) / u64::from(w.cwnd());
        }
    }

    /// A sender at time zero, after a loss with `cwnd` segments in flight.
    fn after_loss(cwnd: u32) -> (Cubic, Window, Instant) {
        let (mut cc, mut w) = (cubic(), window(cwnd, cwnd));
        cc.on_fast_retransmit(&mut w, &loss(cwnd * SMSS));
        (cc, w, Instant::ZERO)
    }

    // RFC 9438 §4.6.
    #[test]
    fn a_loss_leaves_seven_tenths() {
        let (_, w, _) = after_loss(100);
        assert_eq!((w.cwnd(), w.ssthresh()), (70 * SMSS, 70 * SMSS));
        let (_, w, _) = after_loss(2);
        assert_eq!(w.ssthresh(), 2 * SMSS);
    }

    // §4.2, eq. 1 and 2: W_max = 1000, K = cbrt(300 / 0.4) = 9.0856 s.
    #[test]
    fn cwnd_follows_the_cubic_curve() {
        let (mut cc, mut w, mut now) = after_loss(1000);
        let rtt = Duration::from_millis(100);
        for (t, expected) in [(1.0, 788.5), (5.0, 972.7), (9.0856, 1000.0), (14.0856, 1050.0)] {
            acknowledge(&mut cc, &mut w, &mut now, rtt, t);
            // It aims at where the curve is a round trip later.
            let error = (segments(&w) - expected).abs() / expected;
            assert!(error < 0.01, "{t} s: {} and not {expected}", segments(&w));
        }
    }

    // §4.3: 9/17 of a segment each round trip, and one from the old cwnd on.
    #[test]
    fn with_a_short_rtt_it_grows_like_reno() {
        let (mut cc, mut w, mut now) = after_loss(20);
        let rtt = Duration::from_millis(5);
        for (t, expected) in [(0.05, 14.0 + 10.0 * 9.0 / 17.0), (0.5, 20.0 + 100.0 - 11.33)] {
            acknowledge(&mut cc, &mut w, &mut now, rtt, t);
            let error = (segments(&w) - expected).abs() / expected;
            assert!(error < 0.03, "{t} s: {} and not {expected}", segments(&w));
        }
    }

    // §4.4: at most half as much again in a round trip.
    #[test]
    fn growth_in_a_round_trip_is_bounded() {
        let (mut cc, mut w, mut now) = after_loss(1000);
        acknowledge(&mut cc, &mut w, &mut now, Duration::from_millis(100), 0.1);
        let before = segments(&w);
        now += Duration::from_secs(60);
        let until = now.as_secs_f64() + 0.1;
        acknowledge(&mut cc, &mut w, &mut now, Duration::from_millis(100), until);
        let growth = segments(&w) / before;
        assert!(growth > 1.3 && growth <= 1.66, "{growth}");
    }

    // §4.7.
    #[test]
    fn a_loss_below_the_last_maximum_lowers_it_further() {
        for (fast_convergence, w_max) in [(true, 59.5), (false, 70.0)] {
            let (mut cc, mut w, _) = after_loss(100);
            cc.fast_convergence = fast_convergence;
            cc.on_fast_retransmit(&mut w, &loss(70 * SMSS));
            assert_eq!(cc.curve.w_max, Some(w_max));
        }
    }

    // §4.8: the usual slow start, then a curve that begins at its plateau.
    #[test]
    fn after_a_timeout_the_curve_begins_at_its_plateau() {
        let (mut cc, mut w, _) = after_loss(100);
        cc.on_timeout(&mut w, &timeout(70 * SMSS, true));
        assert_eq!((w.cwnd(), w.ssthresh()), (SMSS, 49 * SMSS));
        cc.on_timeout(&mut w, &timeout(70 * SMSS, false));
        assert_eq!((w.cwnd(), w.ssthresh()), (SMSS, 49 * SMSS));
        for _ in 0..48 {
            cc.on_growth(&mut w, &ack(SMSS));
        }
        assert_eq!(w.cwnd(), 49 * SMSS);
        let mut now = Instant::ZERO;
        acknowledge(&mut cc, &mut w, &mut now, Duration::from_millis(500), 2.0);
        let epoch = cc.curve.epoch.unwrap();
        assert_eq!((epoch.k, epoch.w_max), (0.0, 49.0));
    }

    // §4.10: K = 0 and cwnd_prior = cwnd, so that the estimate of Reno grows as Reno.
    #[test]
    fn after_a_slow_start_without_loss_the_curve_begins_at_its_plateau() {
        let (mut cc, mut w, mut now) = (cubic(), window(50, 50), Instant::ZERO);
        acknowledge(&mut cc, &mut w, &mut now, Duration::from_millis(5), 0.05);
        let epoch = cc.curve.epoch.unwrap();
        assert_eq!((epoch.k, epoch.w_max), (0.0, 50.0));
        assert!((segments(&w) - 60.0).abs() < 1.0, "{}", segments(&w));
    }

    // §5.8. That it does not grow is the sender's business.
    #[test]
    fn the_time_of_an_unused_window_does_not_count() {
        let rtt = Duration::from_millis(100);
        let (mut cc, mut w, mut now) = after_loss(1000);
        acknowledge(&mut cc, &mut w, &mut now, rtt, 2.0);
        let start = cc.curve.epoch.unwrap().start;
        let pause = Duration::from_secs(3);
        now = cc.heard + pause;
        cc.on_ack(&mut w, &Ack { now, cwnd_limited: false, ..ack(SMSS) });
        assert_eq!(cc.curve.epoch.unwrap().start, start + pause);
    }

    // §4.9.
    #[test]
    fn a_needless_reduction_restores_the_curve() {
        let (mut cc, mut w, mut now) = after_loss(100);
        acknowledge(&mut cc, &mut w, &mut now, Duration::from_millis(100), 2.0);
        let epoch = cc.curve.epoch.unwrap();
        cc.on_timeout(&mut w, &timeout(80 * SMSS, true));
        let cause = Spurious::Timeout;
        let (flight, pipe_prev) = (80 * SMSS, 80 * SMSS);
        cc.on_spurious(&mut w, &Undo { now, cause, flight, acked: SMSS, pipe_prev, restore: None });
        let restored = cc.curve.epoch.unwrap();
        assert_eq!((restored.start, restored.k), (epoch.start, epoch.k));
        assert_eq!((cc.curve.w_max, w.ssthresh()), (Some(100.0), 80 * SMSS));
    }

    // §4.9.2.
    #[test]
    fn a_curve_that_led_beyond_the_window_of_the_loss_stays_and_so_does_cwnd() {
        let (mut cc, mut w, mut now) = after_loss(100);
        let rtt = Duration::from_millis(100);
        acknowledge(&mut cc, &mut w, &mut now, rtt, 10.0);
        assert!(w.cwnd() > 100 * SMSS);
        let (start, before) = (cc.curve.epoch.unwrap().start, w);
        let cause = Spurious::FastRetransmit;
        let (flight, pipe_prev) = (w.cwnd() / 2, 100 * SMSS);
        cc.on_spurious(&mut w, &Undo { now, cause, flight, acked: SMSS, pipe_prev, restore: None });
        assert_eq!((cc.curve.epoch.unwrap().start, w), (start, before));
    }

    // RFC 9406 §4.3: an SSTHRESH that was set before is the end of slow start.
    #[test]
    fn hystart_plus_plus_acts_in_the_first_slow_start_only() {
        let grown = |ssthresh| {
            let mut cc = with(HyStartConfig::PlusPlus);
            let mut w = Window::new(SMSS, SMSS, ssthresh, None);
            cc.on_growth(&mut w, &ack(8 * SMSS));
            w.cwnd()
        };
        assert_eq!((grown(None), grown(Some(100 * SMSS))), (9 * SMSS, 2 * SMSS));
    }

    /// Runs slow start over 20 Mbit/s and 40 ms with a queue of one bandwidth-delay product.
    /// Returns the most in flight and the losses, in segments.
    fn slow_start(hystart: HyStartConfig) -> (u32, u64) {
        let mut path = Path::new(with(hystart), 20, 40, 1.0);
        while path.window.in_slow_start() {
            let next = path.now.as_secs_f64() + 0.001;
            path.run(next);
        }
        let end = path.now.as_secs_f64() + 0.1;
        path.run(end);
        let most = path.points.iter().map(|point| point.inflight / SMSS).max().unwrap();
        (most, path.dropped)
    }

    // Ha and Rhee 2011: the path holds 100 segments and the queue as many.
    #[test]
    fn hystart_leaves_slow_start_before_the_queue_overflows() {
        let (most, lost) = slow_start(HyStartConfig::Off);
        assert!(most >= 200 && lost > 50, "{most} in flight, {lost} lost");
        let (most, lost) = slow_start(HyStartConfig::HyStart);
        assert!(most < 200 && lost == 0, "{most} in flight, {lost} lost");
    }

    // It has found the end of one slow start, and looks again after a time-out.
    #[test]
    fn a_timeout_begins_a_slow_start_that_hystart_watches() {
        let mut cc = with(HyStartConfig::HyStart);
        let mut w = window(100, 100);
        cc.on_timeout(&mut w, &timeout(100 * SMSS, true));
        assert_eq!((w.cwnd(), w.ssthresh()), (SMSS, 70 * SMSS));
        let rtt = Some(Duration::from_millis(20));
        let mut now = Instant::from_millis(1000);
        let mut una = SeqNum(0);
        while w.in_slow_start() {
            una += SMSS;
            let max = una + w.cwnd();
            let ack = Ack { now, rtt, srtt: rtt, una, max, ..ack(SMSS) };
            cc.on_ack(&mut w, &ack);
            cc.on_growth(&mut w, &ack);
            now += Duration::from_micros(400);
        }
        assert!(w.cwnd() - w.ssthresh() < SMSS, "no more than congestion avoidance adds");
        assert!((16 * SMSS..70 * SMSS).contains(&w.ssthresh()), "{}", w.ssthresh());
    }

    #[test]
    fn curves() {
        for (name, hystart) in
            [("without_hystart", HyStartConfig::Off), ("hystart", HyStartConfig::HyStart)]
        {
            let mut path = Path::new(with(hystart), 20, 40, 1.0);
            path.run(12.0);
            insta::assert_snapshot!(name, path.curve(0.2));
        }
    }
}
