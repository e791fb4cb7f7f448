//! The event queue: which component of the world wakes up next.
//!
//! The only event there is is a component's wake-up (a link, an endpoint, a middlebox), and each component
//! has at most one. Timers are lazy: a deadline that moves *later* touches nothing (the component is woken
//! too early, finds nothing due and sleeps on); only one that moves *earlier* does. Restarting a
//! retransmission timer on every ACK therefore costs nothing.
//!
//! With one entry a component, and nearly every wake-up followed by the next one of the same component, the
//! queue is a knock-out tournament of the components, the earliest of four winning each match; a component
//! that sleeps on plays its matches again up to the final. That path is fixed, so that nothing in it is
//! unpredictable to the processor: it is faster than a binary heap (`benches/wakeups.rs`).
//!
//! Ties are first in, first out: the key is (time, insertion number), so a run is one trajectory.

use airtcp_core::Instant;

/// A component, by a number the world assigns.
pub type ComponentId = u32;

/// Time (64 bits), insertion number (40 bits), component (24 bits): one comparison of integers orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

const COMPONENT_BITS: u32 = 24;
const MAX_INSERTIONS: u64 = 1 << (64 - COMPONENT_BITS);

impl Key {
    /// Later than every entry.
    const NEVER: Self = Self(u128::MAX);

    fn new(time: Instant, insertion: u64, component: ComponentId) -> Self {
        let low = (insertion << COMPONENT_BITS) | u64::from(component);
        Self((u128::from(time.as_nanos()) << 64) | u128::from(low))
    }
    fn time(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
    fn component(self) -> ComponentId {
        self.0 as u32 & ((1 << COMPONENT_BITS) - 1)
    }
}

/// The wake-ups to come.
///
/// Use: [`Wakeups::next`], let the component act (others may be armed meanwhile), [`Wakeups::sleep`].
#[derive(Debug)]
pub struct Wakeups {
    /// The keys of the four sides of each match. Winners and components have places, first the former:
    /// place `p > 0` is side `(p - 1) % 4` of match `(p - 1) / 4`, and the winner of match `m` is in place
    /// `m`. Match 0 is the final.
    matches: Vec<[Key; 4]>,
    /// The winner of the final.
    earliest: Key,
    /// For each component the time of its key; [`Instant::MAX`] without one.
    armed: Vec<Instant>,
    insertions: u64,
    now: Instant,
}

impl Wakeups {
    /// For components 0 to `components` - 1, none armed. At most 2^24 of them.
    pub fn new(components: usize) -> Self {
        assert!(components <= 1 << COMPONENT_BITS, "too many components: {components}");
        // Each match takes up to four and leaves one.
        let matches = components.saturating_sub(1).div_ceil(3).max(1);
        Self {
            matches: vec![[Key::NEVER; 4]; matches],
            earliest: Key::NEVER,
            armed: vec![Instant::MAX; components],
            insertions: 0,
            now: Instant::ZERO,
        }
    }

    /// Sees to it that `component` wakes up at `deadline` or before; a deadline in the past is due now.
    #[inline]
    pub fn arm(&mut self, component: ComponentId, deadline: Option<Instant>) {
        if let Some(deadline) = deadline
            && deadline < self.armed[component as usize]
        {
            self.enter_anew(component, deadline);
        }
    }

    /// Seldom: nearly all keys enter by [`Wakeups::sleep`].
    #[inline(never)]
    fn enter_anew(&mut self, component: ComponentId, deadline: Instant) {
        self.enter(component, deadline);
    }

    /// The next component to wake up, if that is at `until` or before. It counts as awake until
    /// [`Wakeups::sleep`], which must follow; arming it meanwhile does nothing.
    #[inline]
    pub fn next(&mut self, until: Instant) -> Option<(Instant, ComponentId)> {
        let earliest = self.earliest;
        if earliest == Key::NEVER || earliest.time() > until {
            return None;
        }
        self.now = earliest.time();
        Some((earliest.time(), earliest.component()))
    }

    /// Ends the wake-up that [`Wakeups::next`] returned: the component sleeps until `deadline`.
    #[inline]
    pub fn sleep(&mut self, component: ComponentId, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => self.enter(component, deadline),
            None => {
                self.armed[component as usize] = Instant::MAX;
                self.play(self.place(component), Key::NEVER);
            }
        }
    }

    #[inline]
    fn place(&self, component: ComponentId) -> usize {
        self.matches.len() + component as usize
    }

    /// Puts a key in a place, and whatever follows from it up to the final.
    #[inline]
    fn play(&mut self, mut place: usize, mut key: Key) {
        while place > 0 {
            let (number, side) = ((place - 1) / 4, (place - 1) % 4);
            let sides = &mut self.matches[number];
            sides[side] = key;
            // Not `sides[side]` again: the other three do not wait for it.
            key = key.min(sides[side ^ 1].min(sides[side ^ 2]).min(sides[side ^ 3]));
            place = number;
        }
        self.earliest = key;
    }

    #[inline]
    fn enter(&mut self, component: ComponentId, deadline: Instant) {
        if self.insertions == MAX_INSERTIONS {
            self.renumber();
        }
        let time = deadline.max(self.now);
        self.armed[component as usize] = time;
        let key = Key::new(time, self.insertions, component);
        self.insertions += 1;
        self.play(self.place(component), key);
    }

    /// Starts the insertion numbers over, keeping the order: a very long run exhausts 40 bits.
    #[cold]
    fn renumber(&mut self) {
        let places = self.matches.as_flattened();
        let mut armed = places[self.place(0) - 1..].to_vec();
        armed.retain(|&key| key != Key::NEVER);
        armed.sort_unstable();
        self.insertions = 0;
        for key in armed {
            let renumbered = Key::new(key.time(), self.insertions, key.component());
            self.insertions += 1;
            self.play(self.place(key.component()), renumbered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    /// Wakes everything up to `until` once, without re-arming.
    fn drain(wakeups: &mut Wakeups, until: Instant) -> Vec<(Instant, ComponentId)> {
        let mut order = Vec::new();
        while let Some((at, component)) = wakeups.next(until) {
            order.push((at, component));
            wakeups.sleep(component, None);
        }
        order
    }

    #[test]
    fn in_the_order_of_time_then_of_insertion() {
        let mut w = Wakeups::new(4);
        w.arm(3, Some(ms(5)));
        w.arm(1, Some(ms(5)));
        w.arm(0, Some(ms(2)));
        w.arm(2, None);
        assert_eq!(drain(&mut w, ms(4)), [(ms(2), 0)]);
        assert_eq!(drain(&mut w, ms(9)), [(ms(5), 3), (ms(5), 1)]);
    }

    #[test]
    fn a_later_deadline_leaves_the_queue_alone() {
        let mut w = Wakeups::new(1);
        for n in 0..1000 {
            w.arm(0, Some(ms(1000 + n)));
        }
        assert_eq!(w.insertions, 1);
        // The early wake-up: the component sleeps on until its true deadline.
        assert_eq!(w.next(Instant::MAX), Some((ms(1000), 0)));
        w.sleep(0, Some(ms(1999)));
        assert_eq!(drain(&mut w, Instant::MAX), [(ms(1999), 0)]);
    }

    #[test]
    fn an_earlier_deadline_replaces_the_old_one() {
        let mut w = Wakeups::new(1);
        w.arm(0, Some(ms(10)));
        w.arm(0, Some(ms(5)));
        assert_eq!(w.next(Instant::MAX), Some((ms(5), 0)));
        // Re-armed for the time of the old entry: woken once, not twice.
        w.sleep(0, Some(ms(10)));
        assert_eq!(drain(&mut w, Instant::MAX), [(ms(10), 0)]);
    }

    #[test]
    fn a_deadline_in_the_past_is_due_now() {
        let mut w = Wakeups::new(2);
        w.arm(0, Some(ms(10)));
        assert_eq!(w.next(Instant::MAX), Some((ms(10), 0)));
        w.arm(1, Some(ms(3)));
        w.sleep(0, None);
        assert_eq!(drain(&mut w, Instant::MAX), [(ms(10), 1)]);
    }

    #[test]
    fn insertion_numbers_start_over_without_a_change_of_order() {
        let mut w = Wakeups::new(4);
        w.insertions = MAX_INSERTIONS - 3;
        w.arm(2, Some(ms(7)));
        w.arm(2, Some(ms(5)));
        w.arm(3, Some(ms(5)));
        w.arm(1, Some(ms(5)));
        assert!(w.insertions < 10);
        assert_eq!(drain(&mut w, Instant::MAX), [(ms(5), 2), (ms(5), 3), (ms(5), 1)]);
    }

    proptest! {
        /// Against a model: the deadlines in a plain list, the earliest armed and then the first wins.
        #[test]
        fn wakes_as_a_sorted_list_would(
            actions in proptest::collection::vec((0..6u32, 0..50u64, any::<bool>()), 1..200)
        ) {
            let mut w = Wakeups::new(6);
            let mut model: Vec<(u64, usize, u32)> = Vec::new();
            let mut now = 0;
            for (n, (component, after, wake)) in actions.into_iter().enumerate() {
                let at = now + after;
                if wake {
                    let woken = w.next(Instant::MAX);
                    let expected = model.iter().min().copied();
                    prop_assert_eq!(woken, expected.map(|(t, _, c)| (ms(t), c)));
                    if let Some((t, _, c)) = expected {
                        now = t;
                        model.retain(|e| e.2 != c);
                        model.push((now + after, n, c));
                        w.sleep(c, Some(ms(now + after)));
                    }
                } else {
                    w.arm(component, Some(ms(at)));
                    match model.iter_mut().find(|e| e.2 == component) {
                        None => model.push((at, n, component)),
                        Some(e) if at < e.0 => *e = (at, n, component),
                        Some(_) => {}
                    }
                }
            }
        }
    }
}
