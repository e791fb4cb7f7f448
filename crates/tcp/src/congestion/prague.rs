//! Prague (draft-briscoe-iccrg-prague-congestion-control-04, 2024): DCTCP for the Internet, as
//! L4S requires (RFC 9331).
//!
//! Implemented parts of the draft:
//! - Data are ECT(1), and marks are counted by byte. It needs a receiver that reports each
//!   (AccECN, RFC 9768).
//! - The share of marks is a moving average, as in DCTCP. It begins at 1 with the first mark.
//! - A mark reduces the window by half of the share, once a round trip.
//! - Unmarked bytes grow it, in a round trip with a reduction, too: by a segment a round trip.
//! - Reduced dependence on the RTT: after 500 round trips outside slow start a flow whose RTT is
//!   below 25 ms acts like one of 25 ms. It estimates and reduces once in 25 ms, and grows in that
//!   time by as much as that flow: a round trip adds the square of the RTT's share of 25 ms,
//!   in segments.
//! - It paces at a window a round trip, and at twice that while the window is below half of
//!   ssthresh.
//! - A loss or a time-out halves, as Reno's.
//!
//! Not implemented: a fallback for queues that mark as in RFC 3168, windows below two segments, and
//! credit for a reduction by marks when a loss follows in the same round trip (the Linux
//! implementation has none either).
//!
//! The sections of the draft were not at hand in version 04: compared with the implementation for
//! Linux by its authors (`tcp_prague.c` of L4STeam/linux).

use super::marks::MarkedShare;
use super::path_model::{pace, rate_of};
use super::{Ack, CongestionControl, Loss, Reno, Restart, Timeout, Undo, Window};
use airtcp_core::{DataRate, Duration, Ecn, Instant};

/// The virtual RTT: a flow with a smaller RTT acts as if it had this one.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Round trips outside slow start after which the virtual RTT applies.
const TRANSITION: u32 = 500;

/// Growth by unmarked bytes, and reduction by the share of marked ones.
#[derive(Clone, Debug)]
pub struct Prague {
    /// Slow start and the reactions to losses.
    reno: Reno,
    marks: MarkedShare,
    has_seen_marks: bool,
    srtt: Option<Duration>,
    /// Round trips outside slow start.
    rounds: u32,
    /// Last update of the share, and last reduction by it.
    updated: Instant,
    reduced: Option<Instant>,
    /// Growth of less than a byte, carried over.
    credit: f64,
}

impl Prague {
    /// A sender whose slow start and reactions to losses are `reno`'s.
    pub fn new(reno: Reno) -> Self {
        Self {
            reno,
            marks: MarkedShare::default(),
            has_seen_marks: false,
            srtt: None,
            rounds: 0,
            updated: Instant::ZERO,
            reduced: None,
            credit: 0.0,
        }
    }

    /// The RTT as a share of the virtual RTT, at most 1; 1 while the flow is young.
    fn rtt_share(&self) -> f64 {
        let Some(srtt) = self.srtt.filter(|_| self.rounds >= TRANSITION) else { return 1.0 };
        (srtt.as_secs_f64() / VIRTUAL_RTT.as_secs_f64()).min(1.0)
    }

    /// True if a virtual round trip has passed since `then`. Always true if the real RTT counts:
    /// the caller detects its end.
    fn has_passed(&self, then: Instant, now: Instant) -> bool {
        self.rtt_share() >= 1.0 || now.since(then) >= VIRTUAL_RTT
    }
}

impl CongestionControl for Prague {
    fn on_established(&mut self, _: &mut Window, now: Instant, srtt: Option<Duration>) {
        self.updated = now;
        self.srtt = srtt;
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.srtt = ack.srtt.or(self.srtt);
        self.marks.count(ack);
        if ack.delivery.newly_ce > 0 && !self.has_seen_marks {
            self.has_seen_marks = true;
        }
        if !self.marks.is_window_over(ack) || !self.has_passed(self.updated, ack.now) {
            return;
        }
        self.updated = ack.now;
        if !window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        // Before a mark nothing says that a queue marks at all.
        if self.has_seen_marks {
            self.marks.update(ack);
        } else {
            self.marks.begin_window(ack);
        }
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        let unmarked = ack.acked.saturating_sub(ack.delivery.newly_ce);
        if window.in_slow_start() {
            return self.reno.on_growth(window, &Ack { acked: unmarked, ..*ack });
        }
        let (smss, cwnd) = (f64::from(window.smss()), f64::from(window.cwnd()));
        let a_round = self.rtt_share() * self.rtt_share() * smss;
        let bytes = f64::from(unmarked) * a_round / cwnd + self.credit;
        window.grow(bytes as u32);
        self.credit = bytes - f64::from(bytes as u32);
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        self.reno.on_fast_retransmit(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.reno.on_timeout(window, timeout);
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        if cause == Restart::Route {
            let srtt = self.srtt;
            *self = Self { srtt, updated: self.updated, ..Self::new(self.reno.clone()) };
        }
        self.reno.on_restart(window, cause);
    }

    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.reno.on_spurious(window, undo);
    }

    fn on_ecn(&mut self, window: &mut Window, mark: &Loss) {
        if self.reduced.is_some_and(|then| !self.has_passed(then, mark.now)) {
            return;
        }
        self.reduced = Some(mark.now);
        let reduced = self.marks.reduced(window.cwnd(), window.smss());
        window.set_ssthresh(reduced);
        window.set_cwnd(reduced);
    }

    fn codepoint(&self) -> Ecn {
        Ecn::Ect1
    }

    fn pacing_rate(&self, window: &Window) -> Option<DataRate> {
        let rate = rate_of(u64::from(window.cwnd()), self.srtt?);
        let in_early_slow_start = window.cwnd() < window.ssthresh() / 2;
        pace(if in_early_slow_start { 2 * rate } else { rate })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Delivery;
    use super::super::path::{Path, SMSS};
    use super::super::tests::{ack, loss, window};
    use super::*;
    use airtcp_core::SeqNum;

    fn prague() -> Prague {
        Prague::new(Reno::new(None))
    }

    fn unmarked(acked: u32) -> Ack {
        let delivery = Delivery { newly_delivered: acked, ..Delivery::default() };
        Ack { delivery, ..ack(acked) }
    }

    #[test]
    fn data_are_ect_1() {
        assert_eq!(prague().codepoint(), Ecn::Ect1);
    }

    // "Moving average of ECN feedback": from 1 at the first mark.
    #[test]
    fn the_share_is_one_until_a_mark_was_seen() {
        let (mut cc, mut w) = (prague(), window(10, 10));
        let mut una = SeqNum(0);
        for round in 0..100 {
            for _ in 0..10 {
                una += SMSS;
                let mut ack = Ack { una, max: una + 10 * SMSS, ..unmarked(SMSS) };
                if round == 50 {
                    ack.delivery.newly_ce = SMSS;
                }
                cc.on_ack(&mut w, &ack);
            }
            assert_eq!(round < 50, (cc.marks.alpha - 1.0).abs() < 1e-9, "round {round}");
        }
        assert!(cc.marks.alpha < 0.2, "{}", cc.marks.alpha);
    }

    // "Additive increase and ECN feedback": a segment a round trip, by unmarked bytes alone.
    #[test]
    fn unmarked_bytes_grow_the_window() {
        let (mut cc, mut w) = (prague(), window(100, 100));
        for _ in 0..100 {
            cc.on_growth(&mut w, &unmarked(SMSS));
        }
        assert!((w.cwnd() - 100 * SMSS).abs_diff(SMSS) < 10, "{}", w.cwnd());
        let before = w.cwnd();
        let mut marked = unmarked(SMSS);
        marked.delivery.newly_ce = SMSS;
        cc.on_growth(&mut w, &marked);
        assert_eq!(w.cwnd(), before);
    }

    // "Reduced RTT-dependence": 5 ms are a fifth of 25 ms, so that a round trip adds a 25th of a
    // segment, and 25 ms add a fifth: the same rate of change of the rate as with 25 ms.
    #[test]
    fn an_old_flow_with_a_small_rtt_grows_as_one_of_25_ms() {
        for (rtt, segment) in [(5, 1000 / 25), (25, 1000), (100, 1000)] {
            let (mut cc, mut w) = (prague(), window(100, 100));
            cc.srtt = Some(Duration::from_millis(rtt));
            cc.rounds = TRANSITION;
            for _ in 0..100 {
                cc.on_growth(&mut w, &unmarked(SMSS));
            }
            let grown = w.cwnd() - 100 * SMSS;
            assert!(grown.abs_diff(segment) <= 10, "{rtt} ms: {grown}");
        }
    }

    #[test]
    fn it_reduces_by_half_of_the_share_once_in_25_ms_when_old_and_a_round_trip_when_young() {
        for (rounds, second) in [(0, 81_000), (TRANSITION, 90_000)] {
            let (mut cc, mut w) = (prague(), window(100, 1000));
            cc.marks.alpha = 0.2;
            cc.srtt = Some(Duration::from_millis(5));
            cc.rounds = rounds;
            let at = |ms| Loss { now: Instant::from_millis(ms), ..loss(100 * SMSS) };
            cc.on_ecn(&mut w, &at(100));
            assert_eq!((w.cwnd(), w.ssthresh()), (90_000, 90_000));
            cc.on_ecn(&mut w, &at(105));
            assert_eq!(w.cwnd(), second);
            cc.on_ecn(&mut w, &at(130));
            assert!(w.cwnd() < second);
        }
    }

    #[test]
    fn a_loss_halves() {
        let (mut cc, mut w) = (prague(), window(100, 1000));
        cc.on_fast_retransmit(&mut w, &loss(100 * SMSS));
        assert_eq!((w.cwnd(), w.ssthresh()), (50 * SMSS, 50 * SMSS));
    }

    // "Pacing".
    #[test]
    fn it_paces_at_a_window_a_round_trip_and_twice_that_early_in_slow_start() {
        let mut cc = prague();
        assert_eq!(cc.pacing_rate(&window(100, 100)), None);
        cc.srtt = Some(Duration::from_millis(10));
        assert_eq!(cc.pacing_rate(&window(100, 100)), Some(DataRate::mbps(80)));
        assert_eq!(cc.pacing_rate(&window(100, 1000)), Some(DataRate::mbps(160)));
    }

    /// A path of 50 Mbit/s and 10 ms, 62 segments, that marks above 1 ms of queue, as L4S queues
    /// do.
    fn marked() -> Path<Prague> {
        let mut path = Path::new(prague(), 50, 10, 4.0);
        path.mark_above = Some(6 * SMSS);
        path
    }

    #[test]
    fn the_link_is_full_with_a_millisecond_of_queue() {
        let mut path = marked();
        path.run(2.0);
        let rate = path.run(15.0);
        assert!(rate > 0.95 * 50.0, "{rate}");
        assert_eq!(path.dropped, 0);
        let most = path.longest_queue(2.0, 15.0);
        assert!(most < 15 * SMSS, "{most}");
    }

    #[test]
    fn curve() {
        let mut path = marked();
        path.run(3.0);
        insta::assert_snapshot!(path.curve(0.05));
    }
}
