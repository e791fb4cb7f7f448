//! TCP Karak (Almobaideen and Al-maitah, "TCP Karak: A New TCP AIMD Algorithm Based on Duplicated
//! Acknowledgement for MANET", 2014, §3, Table 1).
//!
//! NewReno but for the time-out. One or two duplicate ACKs before it indicate a broken link or a
//! bit error rather than congestion, so slow start begins at an eighth or a quarter of cwnd,
//! raised to a power of two.
//!
//! Decisions where the paper is silent or contradicts itself:
//! - Its pseudo-code never resets the count of duplicates, and so would react to the first loss
//!   only. Here they count since the last ACK that advanced SND.UNA or the last time-out.
//! - ssthresh is half of FlightSize, as in RFC 5681 §3.1. The pseudo-code does not set it, and with
//!   the setting `keep-ssthresh` no time-out does; the text says half of cwnd.
//! - The window that is divided is cwnd, but at most FlightSize: a sender that the application held
//!   back would otherwise restart with more than it ever had in the network.
//! - cwnd restarts at ssthresh at most.
//! - A restart from one segment, which the table gives for small windows, is NewReno's.
//! - "The first power of two value higher than" a point leaves a power of two as it is. The setting
//!   `strict` raises it; after two duplicates slow start then often begins at its end.

use super::{Ack, CongestionControl, Loss, Reno, Restart, Timeout, Undo, Window};
use crate::config::KarakConfig;

/// Reno's congestion control, with a larger window after a time-out that one or two duplicate ACKs
/// preceded.
#[derive(Clone, Debug)]
pub struct Karak {
    reno: Reno,
    config: KarakConfig,
    /// Time-outs to which the rule was applied.
    answered: u32,
}

impl Karak {
    /// Follows `reno` but for the rule's time-outs.
    pub fn new(reno: Reno, config: KarakConfig) -> Self {
        Self { reno, config, answered: 0 }
    }

    /// Smallest power of two of segments that is at least, or if strict above, `window` /
    /// `divisor`; in bytes.
    fn restart_window(&self, window: u32, divisor: u32, smss: u32) -> u32 {
        let unit = u64::from(smss) * u64::from(divisor);
        let mut segments = 1;
        let is_below = |segments: u64| {
            let times_divisor = segments * unit;
            let window = u64::from(window);
            times_divisor < window || (self.config.strict && times_divisor == window)
        };
        while is_below(segments) {
            segments *= 2;
        }
        (segments * u64::from(smss)).min(u64::from(u32::MAX)) as u32
    }
}

impl CongestionControl for Karak {
    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        self.reno.on_growth(window, ack);
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        self.reno.on_fast_retransmit(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        let larger = self.larger_restart(window, timeout);
        let ssthresh = window.ssthresh();
        self.reno.on_timeout(window, timeout);
        if self.config.keep_ssthresh {
            window.set_ssthresh(ssthresh);
        }
        if let Some(cwnd) = larger
            && self.config.limit.is_none_or(|limit| self.answered < limit)
        {
            self.answered += 1;
            window.set_cwnd(cwnd.min(window.ssthresh()));
        }
    }

    fn larger_restart(&self, window: &Window, timeout: &Timeout) -> Option<u32> {
        let divisor = match timeout.duplicate_acks {
            1 => 8,
            2 => 4,
            _ => return None,
        };
        let used = window.cwnd().min(timeout.flight);
        let cwnd = self.restart_window(used, divisor, window.smss());
        (cwnd > window.smss()).then_some(cwnd)
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        self.reno.on_restart(window, cause);
    }

    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.reno.on_spurious(window, undo);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SMSS, timeout, window};
    use super::*;

    /// cwnd and ssthresh in segments after a time-out with all of `cwnd` in flight.
    fn after(strict: bool, cwnd: u32, duplicate_acks: u32) -> (f64, f64) {
        let mut window = window(cwnd, 1000);
        let timeout = Timeout { duplicate_acks, ..timeout(cwnd * SMSS, true) };
        Karak::new(Reno::new(None), KarakConfig { strict, ..KarakConfig::default() })
            .on_timeout(&mut window, &timeout);
        (f64::from(window.cwnd()) / 1000.0, f64::from(window.ssthresh()) / 1000.0)
    }

    // Table 1: an eighth of cwnd after one duplicate, a quarter after two, else one segment.
    const TABLE: [(u32, f64, f64, f64); 10] = [
        (4, 1.0, 1.0, 2.0),
        (5, 1.0, 2.0, 2.5),
        (8, 1.0, 2.0, 4.0),
        (10, 2.0, 4.0, 5.0),
        (12, 2.0, 4.0, 6.0),
        (16, 2.0, 4.0, 8.0),
        (20, 4.0, 8.0, 10.0),
        (24, 4.0, 8.0, 12.0),
        (32, 4.0, 8.0, 16.0),
        (33, 8.0, 16.0, 16.5),
    ];

    #[test]
    fn slow_start_begins_at_an_eighth_or_a_quarter_raised_to_a_power_of_two() {
        for (cwnd, one, two, ssthresh) in TABLE {
            assert_eq!(after(false, cwnd, 1), (one, ssthresh), "{cwnd}, one duplicate");
            assert_eq!(after(false, cwnd, 2), (two, ssthresh), "{cwnd}, two duplicates");
            for duplicates in [0, 3, 4] {
                assert_eq!(after(false, cwnd, duplicates), (1.0, ssthresh), "{duplicates}");
            }
        }
    }

    #[test]
    fn strict_rounding_raises_a_power_of_two_too() {
        for (cwnd, one, two) in
            [(4, 1.0, 2.0), (8, 2.0, 4.0), (10, 2.0, 4.0), (16, 4.0, 8.0), (32, 8.0, 16.0)]
        {
            assert_eq!((after(true, cwnd, 1).0, after(true, cwnd, 2).0), (one, two), "{cwnd}");
        }
    }

    #[test]
    fn slow_start_begins_at_ssthresh_at_most() {
        let mut window = window(16, 2);
        let karak = &mut Karak::new(Reno::new(None), KarakConfig::default());
        let again = Timeout { duplicate_acks: 2, ..timeout(16 * SMSS, false) };
        karak.on_timeout(&mut window, &again);
        assert_eq!(window.cwnd(), 2 * SMSS);
    }

    // Table 1 sets cwnd at a time-out, and nothing else.
    #[test]
    fn as_printed_no_timeout_changes_ssthresh() {
        let config = KarakConfig { keep_ssthresh: true, ..KarakConfig::default() };
        for (duplicate_acks, restart) in [(0, 1), (1, 2), (2, 4)] {
            let mut window = window(16, 1000);
            let timeout = Timeout { duplicate_acks, ..timeout(16 * SMSS, true) };
            Karak::new(Reno::new(None), config).on_timeout(&mut window, &timeout);
            assert_eq!((window.cwnd(), window.ssthresh()), (restart * SMSS, 1000 * SMSS));
        }
    }

    #[test]
    fn what_the_application_held_back_does_not_count() {
        let mut window = window(64, 1000);
        let few = Timeout { duplicate_acks: 2, ..timeout(10 * SMSS, true) };
        Karak::new(Reno::new(None), KarakConfig::default()).on_timeout(&mut window, &few);
        assert_eq!((window.cwnd(), window.ssthresh()), (4 * SMSS, 5 * SMSS));
    }

    #[test]
    fn beyond_its_limit_the_rule_is_counted_and_not_obeyed() {
        let mut karak =
            Karak::new(Reno::new(None), KarakConfig { limit: Some(1), ..KarakConfig::default() });
        let timeout = Timeout { duplicate_acks: 1, ..timeout(16 * SMSS, true) };
        for restart in [2, 1] {
            let mut window = window(16, 1000);
            assert_eq!(karak.larger_restart(&window, &timeout), Some(2 * SMSS));
            karak.on_timeout(&mut window, &timeout);
            assert_eq!(window.cwnd(), restart * SMSS);
        }
    }

    #[test]
    fn where_it_gives_one_segment_the_rule_asks_for_nothing() {
        let karak = Karak::new(Reno::new(None), KarakConfig::default());
        let asks = |cwnd, duplicate_acks| {
            let timeout = Timeout { duplicate_acks, ..timeout(cwnd * SMSS, true) };
            karak.larger_restart(&window(cwnd, 1000), &timeout).is_some()
        };
        assert_eq!(
            [(8, 1), (9, 1), (4, 2), (5, 2)].map(|(w, d)| asks(w, d)),
            [false, true, false, true]
        );
        assert_eq!([0, 3].map(|d| asks(32, d)), [false, false]);
    }
}
