//! Parts shared by BBRv1 and BBRv3: a windowed maximum, round trips, the product of bandwidth and
//! time, marks of segments that the algorithm held back, and random draws.

use airtcp_core::{DataRate, Duration, SeqNum};

/// Windowed maximum, as of the last update. It keeps the three best samples, each later than the
/// one before, so that it needs no list (Kathleen Nichols' algorithm, as in Linux's
/// `win_minmax.c`). The result can be older than the window by a quarter of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMax {
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// In the window's unit, such as rounds.
    time: u64,
    value: u64,
}

impl WindowedMax {
    /// The maximum; 0 before the first value.
    pub(super) fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Adds `value` at `time`; the window has this `length`.
    pub(super) fn update(&mut self, length: u64, time: u64, value: u64) {
        let new = Sample { time, value };
        let best = &mut self.best;
        if value >= best[0].value || time - best[2].time > length {
            *best = [new; 3];
            return;
        }
        if value >= best[1].value {
            best[1] = new;
            best[2] = new;
        } else if value >= best[2].value {
            best[2] = new;
        }
        let age = time - best[0].time;
        if age > length {
            *best = [best[1], best[2], new];
            if time - best[0].time > length {
                *best = [best[1], best[2], new];
            }
        } else if best[1].time == best[0].time && age > length / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].time == best[1].time && age > length / 2 {
            best[2] = new;
        }
    }
}

/// Round trips counted by deliveries: one is over when data sent after its beginning is
/// acknowledged (draft-ietf-ccwg-bbr §5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) count: u64,
    /// [`Delivery::delivered`](super::Delivery::delivered) at the beginning of the round.
    began_at: u64,
    /// True if the current ACK began a round.
    pub(super) starts: bool,
}

impl Round {
    /// Begins a round without counting the one before.
    pub(super) fn start(&mut self, delivered: u64) {
        self.began_at = delivered;
    }

    /// Takes an ACK after which `delivered` bytes are delivered in all, for data sent when
    /// `prior_delivered` were.
    pub(super) fn update(&mut self, prior_delivered: u64, delivered: u64) {
        self.starts = prior_delivered >= self.began_at;
        if self.starts {
            self.start(delivered);
            self.count += 1;
        }
    }
}

/// Bytes that arrive at `rate`, in bits per second, in `time`.
pub(super) fn bytes_in(rate: u64, time: Duration) -> u64 {
    let bit_nanos = u128::from(rate) * u128::from(time.as_nanos());
    u64::try_from(bit_nanos / 8_000_000_000).unwrap_or(u64::MAX)
}

/// `bytes` in `time`, in bits per second.
pub(super) fn rate_of(bytes: u64, time: Duration) -> u64 {
    let bit_nanos = u128::from(bytes) * 8_000_000_000;
    u64::try_from(bit_nanos / u128::from(time.as_nanos().max(1))).unwrap_or(u64::MAX)
}

/// Pacing rate for `rate` bits per second: at least one bit per second.
pub(super) fn pace(rate: u64) -> Option<DataRate> {
    DataRate::from_bits_per_sec(rate.max(1))
}

/// Segments that the algorithm itself held back, in ProbeRTT. Like those of an application without
/// data, their delivery rates say nothing about the path. Linux marks them in the rate sampler;
/// here the algorithm recognizes them by the bytes delivered when they left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldBack {
    span: Option<(u64, u64)>,
}

impl HeldBack {
    /// Segments sent from now on, with `delivered` bytes delivered, are held back until `until`
    /// bytes are.
    pub(super) fn extend(&mut self, delivered: u64, until: u64) {
        let from = self.span.filter(|&(_, to)| to >= delivered).map_or(delivered, |(from, _)| from);
        self.span = Some((from, until));
    }

    /// True if the algorithm held back a segment that was sent when `prior_delivered` bytes were
    /// delivered.
    pub(super) fn holds(&self, prior_delivered: u64) -> bool {
        self.span.is_some_and(|(from, to)| (from..=to).contains(&prior_delivered))
    }
}

/// A pseudo-random number below `n`. A congestion control has no random stream and needs none:
/// flows must only not draw the same number at the same time. The low bits of SND.UNA differ
/// between flows, as initial sequence numbers are random, and between draws; a multiplication mixes
/// them (Fibonacci hashing).
pub(super) fn draw(una: Option<SeqNum>, n: u32) -> u32 {
    let mixed = una.map_or(0, |una| una.0).wrapping_mul(0x9E37_79B9);
    ((u64::from(mixed) * u64::from(n)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // It is never below the maximum of the window, and never a value from outside it by more
        // than the algorithm's slack.
        #[test]
        fn a_windowed_maximum_is_a_recent_value_and_not_below_the_latest(
            values in prop::collection::vec(0_u64..1000, 1..200),
        ) {
            let mut filter = WindowedMax::default();
            for (time, &value) in values.iter().enumerate() {
                filter.update(10, time as u64, value);
                let since = time.saturating_sub(10);
                prop_assert!(filter.get() >= value);
                prop_assert!(values[since..=time].contains(&filter.get()));
                prop_assert!(filter.get() <= *values[since..=time].iter().max().unwrap());
            }
        }
    }

    #[test]
    fn a_maximum_is_forgotten_after_the_window() {
        let mut filter = WindowedMax::default();
        for (time, value) in [(0, 100), (5, 50), (10, 50), (11, 50)] {
            filter.update(10, time, value);
        }
        assert_eq!(filter.get(), 50);
    }

    // draft-ietf-ccwg-bbr §5.5.1.
    #[test]
    fn a_round_ends_with_the_first_data_that_left_after_it_began() {
        let mut round = Round::default();
        for (prior_delivered, delivered, starts, count) in [
            (0, 1000, true, 1),
            (0, 2000, false, 1),
            (999, 3000, false, 1),
            (1000, 4000, true, 2),
            (3999, 5000, false, 2),
        ] {
            round.update(prior_delivered, delivered);
            assert_eq!((round.starts, round.count), (starts, count), "{delivered}");
        }
        round.start(5000);
        round.update(4000, 6000);
        assert!(!round.starts);
    }

    #[test]
    fn what_is_held_back_is_what_left_between() {
        let mut held = HeldBack::default();
        assert!(!held.holds(0));
        held.extend(1000, 5000);
        held.extend(2000, 6000);
        assert_eq!([999, 1000, 6000, 6001].map(|at| held.holds(at)), [false, true, true, false]);
        held.extend(9000, 9500);
        assert_eq!([6000, 8999, 9000].map(|at| held.holds(at)), [false, false, true]);
    }

    #[test]
    fn draws_cover_their_range() {
        let mut drawn = [0; 7];
        for n in 0..7000_u32 {
            drawn[draw(Some(SeqNum(12_345) + n * 1460), 7) as usize] += 1;
        }
        assert!(drawn.iter().all(|count| (900..1100).contains(count)), "{drawn:?}");
    }
}
