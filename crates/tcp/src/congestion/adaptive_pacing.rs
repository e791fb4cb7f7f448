//! TCP-AP, adaptive pacing (ElRakabawy, Klemm, Lindemann, "TCP with Adaptive Pacing for Multihop
//! Wireless Networks", MobiHoc 2005).
//!
//! Nodes four hops apart send at the same time without interference. So the sender spaces its
//! segments by the time that a segment takes over four hops, estimated from the RTT, and by more
//! where that time varies. Windows move as in NewReno. The paper's retransmission time-out does not
//! back off: `rto.policy = "constant"`.
//!
//! Not checked against the paper: the constants, which follow a description of the authors' ns-2
//! code; whether 500 ms bounds samples of the RTT or, as here, of the four-hop delay.

use super::{Ack, CongestionControl, Loss, Reno, Restart, Timeout, Undo, Window};
use crate::config::AdaptivePacingConfig;
use crate::recovery::RecoveryPhase;
use airtcp_core::{Bytes, DataRate, Duration};

/// Hops between two nodes that do not interfere.
const OUT_OF_RANGE: u8 = 4;
/// Bytes that headers and the MAC add to a segment and to an ACK.
const OVERHEAD: Bytes = Bytes(112);
/// The weight of the average so far.
const ALPHA: f64 = 0.7;
/// Longest delay that counts as a measurement of the path.
const LONGEST: Duration = Duration::from_millis(500);
/// Samples in the computation of the variation.
const SAMPLES: usize = 50;

/// NewReno's windows, with segments spaced by the four-hop delay.
#[derive(Clone, Debug)]
pub struct AdaptivePacing {
    reno: Reno,
    config: AdaptivePacingConfig,
    phase: RecoveryPhase,
    delay: Option<FourHopDelay>,
}

/// Time that a segment takes over four hops, in seconds.
#[derive(Clone, Debug)]
struct FourHopDelay {
    average: f64,
    /// The last samples, in a ring.
    recent: [f64; SAMPLES],
    taken: usize,
}

impl FourHopDelay {
    fn first(sample: f64) -> Self {
        Self { average: sample, recent: [sample; SAMPLES], taken: 1 }
    }

    fn take(&mut self, sample: f64) {
        self.average = ALPHA * self.average + (1.0 - ALPHA) * sample;
        self.recent[self.taken % SAMPLES] = sample;
        self.taken += 1;
    }

    /// The mean absolute deviation of the last samples, as a share of their mean.
    fn variation(&self) -> f64 {
        let recent = &self.recent[..self.taken.min(SAMPLES)];
        let mean = recent.iter().sum::<f64>() / recent.len() as f64;
        let deviation = recent.iter().map(|sample| (sample - mean).abs()).sum::<f64>();
        deviation / recent.len() as f64 / mean
    }
}

impl AdaptivePacing {
    /// Paces a sender whose windows follow `reno`.
    pub fn new(reno: Reno, config: AdaptivePacingConfig) -> Self {
        Self { reno, config, phase: RecoveryPhase::Open, delay: None }
    }

    /// The four-hop delay implied by an RTT over this many hops.
    fn sample(&self, rtt: Duration, hops: u8, smss: u32) -> f64 {
        let on_air = |size: Bytes| self.config.link_rate.transmission_time(size).as_secs_f64();
        let (data, ack) = (on_air(Bytes(u64::from(smss)) + OVERHEAD), on_air(OVERHEAD));
        // A hop's share of the RTT that is neither segment nor ACK, half of it on the way there.
        let queueing = (rtt.as_secs_f64() / f64::from(hops) - data - ack).max(0.0) / 2.0;
        let one_hop = queueing + data;
        if hops >= OUT_OF_RANGE { f64::from(OUT_OF_RANGE) * one_hop } else { one_hop }
    }
}

impl CongestionControl for AdaptivePacing {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.phase = ack.phase;
        let (Some(rtt), Some(hops @ 1..)) = (ack.rtt, ack.hops) else { return };
        let sample = self.sample(rtt, hops, window.smss());
        if sample >= LONGEST.as_secs_f64() {
            return;
        }
        match &mut self.delay {
            Some(delay) => delay.take(sample),
            None => self.delay = Some(FourHopDelay::first(sample)),
        }
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        self.reno.on_growth(window, ack);
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        self.phase = RecoveryPhase::Recovery;
        self.reno.on_fast_retransmit(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.phase = RecoveryPhase::Loss;
        self.reno.on_timeout(window, timeout);
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        if cause == Restart::Route {
            self.delay = None;
        }
        self.reno.on_restart(window, cause);
    }

    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.phase = RecoveryPhase::Open;
        self.reno.on_spurious(window, undo);
    }

    fn pacing_rate(&self, window: &Window) -> Option<DataRate> {
        let delay = self.delay.as_ref().filter(|_| self.phase == RecoveryPhase::Open)?;
        let interval = delay.average * (1.0 + 2.0 * delay.variation());
        let bits = Bytes(u64::from(window.smss())).bits();
        DataRate::from_bits_per_sec(((bits as f64 / interval) as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SMSS, ack, loss, timeout, window};
    use super::*;

    /// 2 Mbit/s: a segment takes 4.448 ms on the air, an ACK 0.448 ms.
    fn paced(rtts: &[u64], hops: u8) -> (AdaptivePacing, Window) {
        let config = AdaptivePacingConfig::default();
        let (mut cc, mut w) = (AdaptivePacing::new(Reno::new(None), config), window(10, 10));
        for &ms in rtts {
            let rtt = Some(Duration::from_millis(ms));
            cc.on_ack(&mut w, &Ack { rtt, hops: Some(hops), ..ack(SMSS) });
        }
        (cc, w)
    }

    /// Interval between two segments, in milliseconds.
    fn interval(rtts: &[u64], hops: u8) -> f64 {
        let (cc, w) = paced(rtts, hops);
        8e6 / cc.pacing_rate(&w).expect("paced").bits_per_sec() as f64
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    // 10 ms of RTT a hop: 2.552 ms of queueing each way, 7 ms a hop.
    #[test]
    fn segments_are_spaced_by_the_delay_over_four_hops() {
        assert!(close(interval(&[40], 4), 28.0), "{}", interval(&[40], 4));
        assert!(close(interval(&[80], 8), 28.0));
    }

    #[test]
    fn on_short_paths_by_the_delay_over_one() {
        assert!(close(interval(&[30], 3), 7.0));
    }

    #[test]
    fn an_rtt_too_short_for_the_link_rate_shows_no_queueing() {
        assert!(close(interval(&[4], 4), 4.0 * 4.448));
    }

    // 28 and 42 ms: the average is 32.2 ms, the deviation a fifth of the mean.
    #[test]
    fn variation_spaces_them_further() {
        assert!(close(interval(&[40, 68], 4), 32.2 * 1.4), "{}", interval(&[40, 68], 4));
    }

    #[test]
    fn the_variation_is_that_of_the_last_samples() {
        let rtts: Vec<u64> = [vec![68; 30], vec![40; SAMPLES]].concat();
        assert!(close(interval(&rtts, 4), 28.0), "{}", interval(&rtts, 4));
    }

    #[test]
    fn half_a_second_is_no_measurement() {
        assert!(close(interval(&[40, 1200], 4), 28.0));
    }

    #[test]
    fn retransmissions_are_not_paced() {
        let (mut cc, mut w) = paced(&[40], 4);
        cc.on_fast_retransmit(&mut w, &loss(10 * SMSS));
        assert_eq!(cc.pacing_rate(&w), None);
        cc.on_ack(&mut w, &Ack { phase: RecoveryPhase::Recovery, ..ack(SMSS) });
        assert_eq!(cc.pacing_rate(&w), None);
        cc.on_ack(&mut w, &ack(SMSS));
        assert!(cc.pacing_rate(&w).is_some());
        cc.on_timeout(&mut w, &timeout(10 * SMSS, true));
        assert_eq!(cc.pacing_rate(&w), None);
    }

    #[test]
    fn without_a_hop_count_there_is_no_pace() {
        let (mut cc, mut w) = paced(&[], 4);
        let rtt = Some(Duration::from_millis(40));
        cc.on_ack(&mut w, &Ack { rtt, ..ack(SMSS) });
        assert_eq!(cc.pacing_rate(&w), None);
    }
}
