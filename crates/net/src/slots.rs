//! A path that changes at the ends of time slots, as one through satellites in low orbit does.
//!
//! Read first: H. B. Tanveer et al., "Making Sense of Constellations", CoNEXT Companion 2023, and
//! N. Mohan et al., "A Multifaceted Look at Starlink Performance", WWW 2024. A global controller
//! gives each terminal a satellite for 15 s, everywhere at the same instants: 12, 27, 42 and 57 s
//! after each full minute. With the satellite, the length of the path changes, and so does what
//! holds until the next slot ends.
//!
//! What holds in a slot depends on the seed, the path and the slot's number alone, not on the
//! packets. So both directions of a path step together, and a slot without packets shifts nothing.

use crate::config::{Distribution, ReconfigurationConfig};
use airtcp_core::{Duration, Instant, Stream};

/// The slots of a link: their delays and losses.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    interval: Duration,
    offset: Duration,
    delay: Option<Distribution>,
    /// Upper bound of the loss probabilities.
    loss: f64,
    /// Seed of the slots' streams.
    key: u64,
    /// Decides on packets.
    losses: Stream,
    current: Slot,
}

/// What holds in a slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u64,
    delay: Duration,
    loss: f64,
}

impl Slots {
    /// `path`: the stream of both directions; `losses`: that of this one. `None` if neither delay
    /// nor loss changes.
    pub(crate) fn new(
        config: &ReconfigurationConfig,
        mut path: Stream,
        losses: Stream,
    ) -> Option<Self> {
        let &ReconfigurationConfig { interval, offset, ref delay, loss, .. } = config;
        if delay.is_none() && loss == 0.0 {
            return None;
        }
        let current = Slot { number: 0, delay: Duration::ZERO, loss: 0.0 };
        let (delay, key) = (delay.clone(), path.bits());
        let mut slots = Self { interval, offset, delay, loss, key, losses, current };
        slots.enter(0);
        Some(slots)
    }

    /// The delay of the slot at `at`.
    #[inline(never)]
    pub(crate) fn delay(&mut self, at: Instant) -> Duration {
        self.go_to(at);
        self.current.delay
    }

    /// True if the slot's losses take a packet at `at`.
    #[inline(never)]
    pub(crate) fn loses(&mut self, at: Instant) -> bool {
        self.go_to(at);
        self.loss > 0.0 && self.losses.chance(self.current.loss)
    }

    /// True if the delay changes.
    pub(crate) fn changes_delay(&self) -> bool {
        self.delay.is_some()
    }

    /// From now on, slots add no delay.
    pub(crate) fn end_delays(&mut self) {
        self.delay = None;
        self.enter(self.current.number);
    }

    /// From now on, slots lose nothing.
    pub(crate) fn end_losses(&mut self) {
        self.loss = 0.0;
        self.enter(self.current.number);
    }

    fn go_to(&mut self, at: Instant) {
        let number = match at.since_start().as_nanos().checked_sub(self.offset.as_nanos()) {
            None => 0,
            Some(since) => 1 + since / self.interval.as_nanos(),
        };
        if number != self.current.number {
            self.enter(number);
        }
    }

    /// Draws what holds in a slot.
    fn enter(&mut self, number: u64) {
        let stream = |of: &str| Stream::new(self.key, &format!("{number}/{of}"));
        let delay = self.delay.as_ref();
        // Of no table, so the time does not matter.
        let delay = delay.map(|delay| delay.sample(Instant::ZERO, &mut stream("delay")));
        let loss = if self.loss > 0.0 { stream("loss").uniform(0.0, self.loss) } else { 0.0 };
        self.current = Slot { number, delay: delay.unwrap_or_default(), loss };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OutageMode;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn config() -> ReconfigurationConfig {
        ReconfigurationConfig {
            interval: ms(15_000),
            offset: ms(12_000),
            delay: Some(Distribution::Uniform { low: ms(10), high: ms(30) }),
            loss: 0.0,
            interruption: None,
            mode: OutageMode::Drop,
        }
    }

    fn slots(config: &ReconfigurationConfig, direction: &str) -> Slots {
        let stream = |name: &str| Stream::new(1, name);
        Slots::new(config, stream("path"), stream(direction)).expect("something changes")
    }

    #[test]
    fn slots_end_at_12_27_42_and_57_seconds() {
        // Tanveer et al. 2023.
        let mut slots = slots(&config(), "up");
        let mut last = slots.delay(Instant::ZERO);
        let mut changes = Vec::new();
        for second in 0..75 {
            let before = Instant::from_nanos(Instant::from_secs(second + 1).as_nanos() - 1);
            let delay = slots.delay(Instant::from_secs(second));
            assert_eq!(slots.delay(before), delay, "constant from {second} s on");
            if delay != last {
                changes.push(second);
                last = delay;
            }
        }
        assert_eq!(changes, [12, 27, 42, 57, 72]);
    }

    #[test]
    fn the_mean_over_slots_is_that_of_the_distribution() {
        let mut slots = slots(&config(), "up");
        let n = 10_000;
        let at = |slot| Instant::from_secs(15 * slot);
        let sum: Duration = (0..n).map(|slot| slots.delay(at(slot))).sum();
        // Standard error: 20 ms / sqrt(12) / sqrt(n) = 58 us; the window is four of them.
        assert!((sum / n).abs_diff(ms(20)) < Duration::from_micros(231), "{}", sum / n);
    }

    #[test]
    fn both_directions_of_a_path_have_the_same_slots_whatever_their_packets() {
        let (mut up, mut down) = (slots(&config(), "up"), slots(&config(), "down"));
        // One direction has packets in each slot, the other in every third.
        for slot in 0..300 {
            let at = Instant::from_secs(15 * slot);
            let delay = up.delay(at);
            if slot % 3 == 0 {
                assert_eq!(down.delay(at), delay);
            }
        }
        let other = Slots::new(&config(), Stream::new(1, "another path"), Stream::new(1, "up"));
        assert_ne!(other.expect("it changes").delay(Instant::ZERO), up.delay(Instant::ZERO));
    }

    #[test]
    fn losses_are_uniform_over_slots_and_independent_within() {
        let config = ReconfigurationConfig { delay: None, loss: 0.2, ..config() };
        let (mut up, mut down) = (slots(&config, "up"), slots(&config, "down"));
        let n = 2000;
        let share = |slots: &mut Slots, slot: u64| {
            let at = Instant::from_secs(15 * slot);
            (0..n).filter(|_| slots.loses(at)).count() as f64 / f64::from(n)
        };
        let shares: Vec<_> =
            (0..400).map(|slot| (share(&mut up, slot), share(&mut down, slot))).collect();
        // Four standard deviations of a share are at most 0.036; both directions have one each.
        assert!(shares.iter().all(|(up, down)| (up - down).abs() < 0.051));
        assert!(shares.iter().any(|(up, down)| up != down), "each direction draws for itself");
        let mean = shares.iter().map(|(up, _)| up).sum::<f64>() / 400.0;
        // Standard error of the mean over slots: 0.2 / sqrt(12) / sqrt(400) = 0.0029.
        assert!((mean - 0.1).abs() < 0.012, "{mean}");
    }

    #[test]
    fn nothing_is_drawn_where_nothing_varies() {
        let still = ReconfigurationConfig { delay: None, interruption: Some(ms(100)), ..config() };
        let stream = || Stream::new(1, "x");
        assert!(Slots::new(&still, stream(), stream()).is_none());
        // Without losses, the stream of losses stays as it was.
        let mut slots = slots(&config(), "up");
        assert!((0..100).all(|second| !slots.loses(Instant::from_secs(second))));
        assert_eq!(slots.losses.bits(), Stream::new(1, "up").bits());
    }

    #[test]
    fn the_end_of_time_is_in_a_slot() {
        slots(&config(), "up").delay(Instant::MAX);
    }
}
