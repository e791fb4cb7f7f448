//! The event queue: which component of the world wakes up next.
//!
//! The only kind of event is the wake-up of a component (a link, an endpoint, a middlebox), and
//! each component has at most one. Timers are lazy: moving a deadline *later* does not touch the
//! queue (the component wakes up too early, finds nothing due and sleeps on); only moving it
//! *earlier* does. Restarting a retransmission timer on every ACK therefore costs nothing.
//!
//! Each component has one entry, and nearly every wake-up is followed by the next one of the same
//! component. So the queue is a knock-out tournament of the components, in which the earliest of
//! four wins each match; a component that sleeps again replays its matches up to the final. That
//! path is fixed, so the processor has nothing to mispredict, and it is faster than a binary heap
//! (`benches/wakeups.rs`).
//!
//! Ties are first in, first out: of two deadlines at the same time, the one known for longer comes
//! first. Of two that became known at the same time, the component with the lower number comes
//! first. So a run is one trajectory. What counts is when a deadline becomes known to the simulated
//! world; the caller says when, because the simulator may know it earlier.

use airtcp_core::{Id, IdVec, Instant};
use std::hint::select_unpredictable;

airtcp_core::ids! {
    /// A component, by a number the world assigns.
    pub struct ComponentId;
}

/// The time at which a component wakes up, and its rank among simultaneous wake-ups. The earlier is
/// the smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    nanos: u64,
    /// The time for which the wake-up was known ahead (40 bits, enough for 18 minutes), the longest
    /// first; then the component (24 bits).
    rank: u64,
}

const COMPONENT_BITS: u32 = 24;
const LONGEST_AHEAD: u64 = (1 << (64 - COMPONENT_BITS)) - 1;

impl Key {
    /// Later than every entry.
    const NEVER: Self = Self { nanos: u64::MAX, rank: u64::MAX };

    /// The wake-up of a component at `time`, which became known at `known`.
    pub(crate) fn new(time: Instant, known: Instant, component: ComponentId) -> Self {
        let ahead = time.as_nanos().saturating_sub(known.as_nanos()).min(LONGEST_AHEAD);
        let rank = ((LONGEST_AHEAD - ahead) << COMPONENT_BITS) | u64::from(component.0);
        Self { nanos: time.as_nanos(), rank }
    }

    /// The time of the wake-up.
    pub(crate) fn time(self) -> Instant {
        Instant::from_nanos(self.nanos)
    }

    /// Who wakes up.
    fn component(self) -> ComponentId {
        ComponentId(self.rank as u32 & ((1 << COMPONENT_BITS) - 1))
    }

    /// The earlier of two, found without a branch, which could not be predicted.
    #[inline]
    fn earlier(self, other: Self) -> Self {
        let order = |key: Self| (u128::from(key.nanos) << 64) | u128::from(key.rank);
        let first = order(self) < order(other);
        Self {
            nanos: select_unpredictable(first, self.nanos, other.nanos),
            rank: select_unpredictable(first, self.rank, other.rank),
        }
    }
}

/// The wake-ups to come.
///
/// Use: [`Wakeups::next`], let the component act (others may be armed meanwhile),
/// [`Wakeups::sleep`].
#[derive(Debug)]
pub struct Wakeups {
    /// The keys of the four sides of each match. Winners and components have places, winners first:
    /// place `p > 0` is side `(p - 1) % 4` of match `(p - 1) / 4`, and the winner of match `m` is
    /// in place `m`. Match 0 is the final.
    matches: Vec<[Key; 4]>,
    /// The winner of the final.
    earliest: Key,
    /// The time of each component's key; [`Instant::MAX`] without one.
    armed: IdVec<ComponentId, Instant>,
    now: Instant,
}

impl Wakeups {
    /// For components 0 to `components` - 1, none armed. At most 2^24 of them.
    pub fn new(components: usize) -> Self {
        assert!(components <= 1 << COMPONENT_BITS, "too many components: {components}");
        // Each match takes up to four entries and leaves one.
        let matches = components.saturating_sub(1).div_ceil(3).max(1);
        Self {
            matches: vec![[Key::NEVER; 4]; matches],
            earliest: Key::NEVER,
            armed: vec![Instant::MAX; components].into(),
            now: Instant::ZERO,
        }
    }

    /// Makes room for components 0 to `components` - 1 and for as many again, if there is not: the
    /// new ones sleep.
    pub fn reserve(&mut self, components: usize) {
        if components <= self.armed.len() {
            return;
        }
        let mut larger = Self::new((2 * components).min(1 << COMPONENT_BITS).max(components));
        larger.now = self.now;
        for (component, &armed) in self.armed.enumerated() {
            let place = self.place(component);
            larger.armed[component] = armed;
            let key = self.matches[(place - 1) / 4][(place - 1) % 4];
            if key != Key::NEVER {
                larger.play(larger.place(component), key);
            }
        }
        *self = larger;
    }

    /// Ensures that `component` wakes up at `deadline` or earlier; a deadline in the past is due
    /// now.
    #[inline]
    pub fn arm(&mut self, component: ComponentId, deadline: Option<Instant>) {
        self.arm_ahead(component, deadline, self.now);
    }

    /// The same, for a deadline that becomes known at `known`; one before that is due then.
    #[inline]
    pub fn arm_ahead(&mut self, component: ComponentId, deadline: Option<Instant>, known: Instant) {
        if let Some(deadline) = deadline
            && deadline < self.armed[component]
        {
            self.enter_anew(component, deadline, known);
        }
    }

    /// Next wake-up of a component, which may be earlier than it needs; [`Instant::MAX`] if it
    /// sleeps on.
    #[inline]
    pub fn wake_up_of(&self, component: ComponentId) -> Instant {
        self.armed[component]
    }

    /// Rarely called: nearly all keys enter by [`Wakeups::sleep`].
    #[inline(never)]
    fn enter_anew(&mut self, component: ComponentId, deadline: Instant, known: Instant) {
        self.enter(component, deadline, known);
    }

    /// The next component to wake up, if it is due by `until`. It counts as awake until
    /// [`Wakeups::sleep`], which must follow; arming it meanwhile has no effect.
    #[inline]
    pub fn next(&mut self, until: Instant) -> Option<(Instant, ComponentId)> {
        let earliest = self.earliest;
        if earliest == Key::NEVER || earliest.time() > until {
            return None;
        }
        self.now = earliest.time();
        Some((earliest.time(), earliest.component()))
    }

    /// Next wake-up of any component but this one, which may be earlier than that component needs;
    /// [`Instant::MAX`] if all sleep on.
    #[inline]
    pub fn next_besides(&self, component: ComponentId) -> Instant {
        let mut place = self.place(component);
        let mut earliest = u64::MAX;
        while place > 0 {
            let (number, side) = ((place - 1) / 4, (place - 1) % 4);
            let sides = &self.matches[number];
            for other in 1..4 {
                earliest = earliest.min(sides[side ^ other].nanos);
            }
            place = number;
        }
        Instant::from_nanos(earliest)
    }

    /// Time goes on to `now` while the component woken is awake. No other may be due before.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        self.now = now;
    }

    /// Ends the wake-up that [`Wakeups::next`] returned: the component sleeps until `deadline`.
    #[inline]
    pub fn sleep(&mut self, component: ComponentId, deadline: Option<Instant>) {
        self.sleep_ahead(component, deadline, self.now);
    }

    /// The same, for a deadline that becomes known at `known`.
    #[inline]
    pub fn sleep_ahead(
        &mut self,
        component: ComponentId,
        deadline: Option<Instant>,
        known: Instant,
    ) {
        match deadline {
            Some(deadline) => self.enter(component, deadline, known),
            None => {
                self.armed[component] = Instant::MAX;
                self.play(self.place(component), Key::NEVER);
            }
        }
    }

    #[inline]
    fn place(&self, component: ComponentId) -> usize {
        self.matches.len() + component.index()
    }

    /// Puts a key in a place, and whatever follows from it up to the final.
    #[inline(always)]
    fn play(&mut self, mut place: usize, mut key: Key) {
        // The first matches stand outside of the loop: in innermost loops the compiler turns
        // selects into branches, which cannot be predicted and double the time.
        let (place, key) = (&mut place, &mut key);
        let won = self.meet(place, key) || self.meet(place, key) || self.meet(place, key);
        if !won && !self.meet(place, key) {
            while !self.meet(place, key) {}
        }
        self.earliest = *key;
    }

    /// Puts a key in a place and plays its match: `place` and `key` become the winner's. Returns
    /// whether that was the final.
    #[inline(always)]
    fn meet(&mut self, place: &mut usize, key: &mut Key) -> bool {
        let (number, side) = ((*place - 1) / 4, (*place - 1) % 4);
        let sides = &mut self.matches[number];
        sides[side] = *key;
        // Not `sides[side]` again: the other three do not wait for it.
        *key = key.earlier(sides[side ^ 1].earlier(sides[side ^ 2]).earlier(sides[side ^ 3]));
        *place = number;
        number == 0
    }

    #[inline]
    fn enter(&mut self, component: ComponentId, deadline: Instant, known: Instant) {
        let time = deadline.max(known).max(self.now);
        self.armed[component] = time;
        self.play(self.place(component), Key::new(time, known, component));
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
    fn order_is_by_time_then_by_when_known_then_by_number() {
        let mut w = Wakeups::new(5);
        w.arm(ComponentId(3), Some(ms(5)));
        w.arm(ComponentId(1), Some(ms(5)));
        w.arm(ComponentId(0), Some(ms(2)));
        w.arm(ComponentId(2), None);
        assert_eq!(w.next(ms(4)), Some((ms(2), ComponentId(0))));
        // Known later than the others, or not known yet.
        w.arm_ahead(ComponentId(4), Some(ms(5)), ms(3));
        w.sleep(ComponentId(0), Some(ms(5)));
        assert_eq!(drain(&mut w, ms(4)), []);
        assert_eq!(
            drain(&mut w, ms(9)),
            [1, 3, 0, 4].map(|component| (ms(5), ComponentId(component)))
        );
    }

    #[test]
    fn a_later_deadline_leaves_the_queue_alone() {
        let mut w = Wakeups::new(1);
        for n in 0..1000 {
            w.arm(ComponentId(0), Some(ms(1000 + n)));
        }
        // Woken early, the component sleeps on until its true deadline.
        assert_eq!(w.next(Instant::MAX), Some((ms(1000), ComponentId(0))));
        w.sleep(ComponentId(0), Some(ms(1999)));
        assert_eq!(drain(&mut w, Instant::MAX), [(ms(1999), ComponentId(0))]);
    }

    #[test]
    fn an_earlier_deadline_replaces_the_old_one() {
        let mut w = Wakeups::new(1);
        w.arm(ComponentId(0), Some(ms(10)));
        w.arm(ComponentId(0), Some(ms(5)));
        assert_eq!(w.next(Instant::MAX), Some((ms(5), ComponentId(0))));
        // Re-armed for the time of the old entry: woken once, not twice.
        w.sleep(ComponentId(0), Some(ms(10)));
        assert_eq!(drain(&mut w, Instant::MAX), [(ms(10), ComponentId(0))]);
    }

    #[test]
    fn a_deadline_in_the_past_is_due_now() {
        let mut w = Wakeups::new(2);
        w.arm(ComponentId(0), Some(ms(10)));
        assert_eq!(w.next(Instant::MAX), Some((ms(10), ComponentId(0))));
        w.arm(ComponentId(1), Some(ms(3)));
        w.sleep(ComponentId(0), None);
        assert_eq!(drain(&mut w, Instant::MAX), [(ms(10), ComponentId(1))]);
    }

    /// While a component is awake, too.
    #[test]
    fn room_for_more_components_leaves_the_others_as_they_were() {
        let mut w = Wakeups::new(3);
        w.arm(ComponentId(0), Some(ms(7)));
        w.arm(ComponentId(1), Some(ms(1)));
        w.arm(ComponentId(2), Some(ms(7)));
        assert_eq!(w.next(ms(9)), Some((ms(1), ComponentId(1))));
        w.reserve(100);
        w.arm(ComponentId(99), Some(ms(2)));
        w.sleep(ComponentId(1), Some(ms(8)));
        let order = [(2, 99), (7, 0), (7, 2), (8, 1)];
        assert_eq!(drain(&mut w, ms(9)), order.map(|(at, n)| (ms(at), ComponentId(n))));
    }

    proptest! {
        /// Against a model: the deadlines in a plain list, with the times at which they became
        /// known.
        #[test]
        fn wakes_as_a_sorted_list_would(
            actions in proptest::collection::vec((0..6u32, 0..50u64, any::<bool>()), 1..200)
        ) {
            let mut w = Wakeups::new(6);
            let mut model: Vec<(u64, u64, u32)> = Vec::new();
            let mut now = 0;
            for (component, after, wake) in actions {
                let at = now + after;
                if wake {
                    let woken = w.next(Instant::MAX);
                    let expected = model.iter().min().copied();
                    prop_assert_eq!(woken, expected.map(|(t, _, c)| (ms(t), ComponentId(c))));
                    if let Some((t, _, c)) = expected {
                        let others = model.iter().filter(|e| e.2 != c).map(|e| ms(e.0)).min();
                        prop_assert_eq!(w.next_besides(ComponentId(c)), others.unwrap_or(Instant::MAX));
                        now = t;
                        model.retain(|e| e.2 != c);
                        model.push((now + after, now, c));
                        w.sleep(ComponentId(c), Some(ms(now + after)));
                    }
                } else {
                    w.arm(ComponentId(component), Some(ms(at)));
                    match model.iter_mut().find(|e| e.2 == component) {
                        None => model.push((at, now, component)),
                        Some(e) if at < e.0 => *e = (at, now, component),
                        Some(_) => {}
                    }
                }
            }
        }
    }
}
