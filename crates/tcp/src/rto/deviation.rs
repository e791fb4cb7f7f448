//! Variation of the RTT as Linux measures it (`tcp_rtt_estimator`), which differs from RFC 6298 in
//! three ways. The time-out takes the largest mean deviation of a round trip, not the latest one,
//! so that many samples in a round trip do not make it forget. That maximum decays by a quarter per
//! round trip. And if the RTT falls, the deviation grows only an eighth as fast: an improvement is
//! no reason to wait longer.

use airtcp_core::{Duration, SeqNum};

/// Linux's deviation of the RTT. All values are four times the mean deviation, as the time-out adds
/// them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deviation {
    mean: Duration,
    /// Largest mean of this round trip; at least `floor`.
    largest: Duration,
    /// Time that is added to SRTT.
    bound: Duration,
    /// SND.NXT when the round trip began.
    round_end: SeqNum,
    /// Least time that is added to SRTT.
    floor: Duration,
}

impl Deviation {
    /// State after the first sample.
    pub(super) fn new(rtt: Duration, nxt: SeqNum, floor: Duration) -> Self {
        let bound = (rtt * 2).max(floor);
        Self { mean: rtt * 2, largest: bound, bound, round_end: nxt, floor }
    }

    /// Takes a sample, with SRTT before it, and with SND.UNA and SND.NXT after its ACK. Returns
    /// RTTVAR.
    pub(super) fn sample(
        &mut self,
        rtt: Duration,
        srtt: Duration,
        una: SeqNum,
        nxt: SeqNum,
    ) -> Duration {
        let (off, quarter) = (rtt.abs_diff(srtt), self.mean / 4);
        self.mean = if rtt < srtt && off > quarter {
            self.mean + (off - quarter) / 8
        } else {
            self.mean + off - quarter
        };
        self.largest = self.largest.max(self.mean);
        self.bound = self.bound.max(self.largest);
        if una.after(self.round_end) {
            self.bound = self.bound - (self.bound - self.largest) / 4;
            self.round_end = nxt;
            self.largest = self.floor;
        }
        self.rttvar()
    }

    /// Raises RTTVAR to at least `rttvar`.
    pub(super) fn rise_to(&mut self, rttvar: Duration) {
        self.mean = self.mean.max(rttvar * 4);
        self.largest = self.largest.max(self.mean);
        self.bound = self.bound.max(self.largest);
    }

    /// RTTVAR: the mean deviation (Linux: `tcpi_rttvar`).
    fn rttvar(self) -> Duration {
        self.mean / 4
    }

    /// Time that the time-out adds to SRTT.
    pub(super) fn bound(self) -> Duration {
        self.bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_millis(200);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_round_trip_of_steady_samples_does_not_make_it_forget() {
        let mut deviation = Deviation::new(ms(100), SeqNum(1), ms(0));
        // A spike of 900 ms in a round trip of many samples that ends at 1000.
        deviation.sample(ms(100), ms(100), SeqNum(2), SeqNum(1000));
        deviation.sample(ms(1000), ms(100), SeqNum(3), SeqNum(1000));
        let spike = deviation.bound();
        for una in 4..=1000 {
            deviation.sample(ms(100), ms(100), SeqNum(una), SeqNum(2000));
        }
        assert_eq!(deviation.bound(), spike);
        assert!(deviation.rttvar() < ms(1));
        // The round trip of the spike is over: a quarter less in each that follows.
        deviation.sample(ms(100), ms(100), SeqNum(1001), SeqNum(2001));
        assert_eq!(deviation.bound(), spike);
        deviation.sample(ms(100), ms(100), SeqNum(2002), SeqNum(3001));
        assert!(deviation.bound() < spike * 76 / 100 && deviation.bound() > spike * 74 / 100);
    }

    #[test]
    fn a_falling_rtt_adds_an_eighth() {
        let start = Deviation::new(ms(100), SeqNum(1), ms(0));
        let (mut risen, mut fallen) = (start, start);
        risen.sample(ms(1100), ms(600), SeqNum(1), SeqNum(1));
        fallen.sample(ms(100), ms(600), SeqNum(1), SeqNum(1));
        assert_eq!(risen.rttvar() - start.rttvar(), (ms(500) - start.rttvar()) / 4);
        assert_eq!(fallen.rttvar() - start.rttvar(), (ms(500) - start.rttvar()) / 32);
    }

    #[test]
    fn never_below_the_floor() {
        let mut deviation = Deviation::new(ms(10), SeqNum(1), FLOOR);
        for una in 2..100 {
            deviation.sample(ms(10), ms(10), SeqNum(una), SeqNum(una));
            assert_eq!(deviation.bound(), FLOOR);
        }
    }
}
