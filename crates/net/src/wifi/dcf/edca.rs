//! Access functions: a station has one, the DCF, or EDCA's four (IEEE Std 802.11-2020, §10.23.2).
//!
//! One function is *at hand*: its packets and attempts are in [`Traffic::function`], where the
//! exchange of frames, aggregation and the queue find them. With one function, that is all. The other
//! three are *parked*.
//!
//! With four, the fields of contention at the head of [`Dcf`] mean one of two things:
//!
//! - In the exchange of a function, and while something is done as a function, they are its own.
//! - Otherwise they are an *envelope*: what is the earliest of all functions. `counting_from` is that
//!   of the shortest AIFS, and `backoff` ends when the first function with a packet is due. So all
//!   bounds on deadlines hold as they are.
//!
//! The functions act at slot boundaries (§10.23.2.4): the end of AIFS is one, and each slot after it.
//! At each, a function does one thing: it sends, loses an internal collision, or counts one slot. So a
//! back-off interrupted in its first slot has counted one already, which the DCF's has not.

use super::txq::TransmitQueues;
use super::{Backoff, Dcf, Effects, Job, Phase, Traffic};
use crate::wifi::aggregate::{Aggregates, End};
use crate::wifi::category::{AccessCategory, UserPriority};
use crate::wifi::minstrel::Series;
use crate::wifi::rules::{FunctionRules, Rules};
use crate::wifi::station::{Receiver, StationStreams};
use airtcp_core::{Bytes, Duration, Instant, Stream};
use std::collections::VecDeque;
use std::mem;

/// What an access function has to send, and how its attempts fare.
#[derive(Clone, Debug)]
pub(crate) struct Function<T> {
    pub(super) rules: FunctionRules,
    pub(super) cw: u32,
    pub(super) short_retries: u32,
    pub(super) long_retries: u32,
    /// The packet to send.
    pub(crate) current: Option<Job<T>>,
    pub(crate) aggregates: Aggregates<T>,
    /// The rates of the attempts for the frame to send, if the station chooses them.
    pub(crate) series: Option<Series>,
    pub(crate) queue: VecDeque<Job<T>>,
    pub(super) queue_bytes: Bytes,
    /// In the place of `queue`.
    pub(crate) transmit_queues: Option<Box<TransmitQueues<T>>>,
}

impl<T: Copy> Function<T> {
    /// The function in this place of `rules`.
    pub(super) fn new(place: usize, rules: &Rules, stream: Stream) -> Self {
        let disciplined = rules.mac.queue_discipline.is_some();
        let transmit_queues = disciplined.then(|| Box::new(TransmitQueues::new(stream)));
        let rules = rules.functions[place];
        Self {
            rules,
            cw: rules.cw_min,
            short_retries: 0,
            long_retries: 0,
            current: None,
            aggregates: Aggregates::none(),
            series: None,
            queue: VecDeque::new(),
            queue_bytes: Bytes::ZERO,
            transmit_queues,
        }
    }
}

/// The contention of a function that is not at hand.
#[derive(Clone, Copy, Debug)]
struct Contention {
    /// [`FunctionRules::later`].
    later: Duration,
    /// Rest of the back-off when the function begins to count.
    backoff: Backoff,
    has_packet: bool,
}

/// A station's four access functions, in ascending order of priority.
#[derive(Clone, Debug)]
pub(super) struct Edca<T> {
    /// The place of the one at hand; what is in that place of `parked` has no meaning.
    at_hand: usize,
    parked: [Function<T>; 4],
    contention: [Contention; 4],
    /// The head of [`Dcf`] has the contention of the function at hand, not the envelope.
    is_entered: bool,
}

impl<T: Copy> Edca<T> {
    /// Four functions with nothing to send; the first of them is at hand.
    pub(super) fn new(rules: &Rules, streams: &StationStreams) -> Self {
        let seed = streams.queue.clone().bits();
        let function = |category: AccessCategory| {
            let stream = Stream::new(seed, &format!("{category:?}"));
            Function::new(category.index(), rules, stream)
        };
        let idle = |FunctionRules { later, .. }| Contention {
            later,
            backoff: Backoff::NONE,
            has_packet: false,
        };
        Self {
            at_hand: 0,
            parked: AccessCategory::ALL.map(function),
            contention: rules.functions.map(idle),
            is_entered: false,
        }
    }
}

impl<T: Copy> Dcf<T> {
    /// All functions, in no particular order.
    pub(super) fn functions(&self) -> impl Iterator<Item = &Function<T>> {
        let edca = self.traffic.edca.as_deref();
        let parked = edca.map(|edca| {
            let others = edca.parked.iter().enumerate();
            others.filter(|(place, _)| *place != edca.at_hand).map(|(_, function)| function)
        });
        std::iter::once(&self.traffic.function).chain(parked.into_iter().flatten())
    }

    /// All functions, in no particular order.
    pub(super) fn functions_mut(&mut self) -> impl Iterator<Item = &mut Function<T>> {
        let Traffic { function, edca, .. } = &mut *self.traffic;
        let parked = edca.as_deref_mut().map(|&mut Edca { at_hand, ref mut parked, .. }| {
            let others = parked.iter_mut().enumerate();
            others.filter(move |(place, _)| *place != at_hand).map(|(_, function)| function)
        });
        std::iter::once(function).chain(parked.into_iter().flatten())
    }

    /// The function of packets with this priority.
    pub(super) fn function_of(&mut self, priority: UserPriority) -> &mut Function<T> {
        let Traffic { function, edca, .. } = &mut *self.traffic;
        let place = priority.category().index();
        match edca.as_deref_mut() {
            Some(edca) if edca.at_hand != place => &mut edca.parked[place],
            _ => function,
        }
    }

    /// Does something as the function of a category: head and function are its own meanwhile.
    pub(super) fn as_function<R>(
        &mut self,
        now: Instant,
        category: AccessCategory,
        action: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let Some(edca) = self.traffic.edca.as_deref() else { return action(self) };
        let exchanging = edca.is_entered.then_some(edca.at_hand);
        self.store();
        self.enter(category.index());
        let result = action(self);
        self.store();
        match exchanging {
            Some(place) => self.enter(place),
            None => self.envelop(now),
        }
        result
    }

    /// The function at hand has no exchange in progress any more.
    #[inline]
    pub(super) fn leave(&mut self, now: Instant, rules: &Rules) {
        if rules.has_categories {
            self.store();
            self.envelop(now);
        }
    }

    /// Puts the contention of the function at hand aside, if it is at the head.
    fn store(&mut self) {
        let Some(edca) = self.traffic.edca.as_deref_mut().filter(|edca| edca.is_entered) else {
            return;
        };
        edca.is_entered = false;
        let &mut Self { backoff, has_packet, .. } = self;
        let later = self.traffic.function.rules.later;
        edca.contention[edca.at_hand] = Contention { later, backoff, has_packet };
        if self.counting_from < Instant::MAX {
            self.counting_from = Instant::ZERO + (self.counting_from.since_start() - later);
        }
    }

    /// Brings a function to hand, and its contention to the head.
    fn enter(&mut self, place: usize) {
        let Traffic { function, edca, .. } = &mut *self.traffic;
        let Some(edca) = edca.as_deref_mut() else { return };
        if edca.at_hand != place {
            mem::swap(function, &mut edca.parked[edca.at_hand]);
            mem::swap(function, &mut edca.parked[place]);
            edca.at_hand = place;
        }
        edca.is_entered = true;
        let Contention { backoff, has_packet, later } = edca.contention[place];
        (self.backoff, self.has_packet) = (backoff, has_packet);
        if self.counting_from < Instant::MAX {
            self.counting_from += later;
        }
    }

    /// Makes the head the envelope of all functions.
    fn envelop(&mut self, now: Instant) {
        let Some(edca) = self.traffic.edca.as_deref() else { return };
        let due = edca.due(Instant::ZERO).map(|(_, due)| due.since_start()).min();
        self.has_packet = due.is_some();
        self.backoff = due.map_or(Backoff::NONE, Backoff);
        if self.phase == Phase::Contend {
            self.deadline = Instant::MAX;
            self.set_access_deadline(now);
        }
    }

    /// The medium, on which the functions have counted, is no longer idle: each has counted the slot
    /// boundaries that it has seen.
    #[cold]
    pub(super) fn freeze_functions(&mut self, now: Instant, rules: &Rules, from: Instant) {
        let Some(edca) = self.traffic.edca.as_deref_mut() else { return };
        let slot = rules.phy.slot;
        for Contention { later, backoff, has_packet } in &mut edca.contention {
            let begin = from + *later;
            let Some(rest) = backoff.rest().filter(|_| begin <= now) else { continue };
            let boundaries = now.since(begin).as_nanos() / slot.as_nanos() + 1;
            let left = rest - slot * boundaries;
            let over = left.is_zero() && !*has_packet;
            *backoff = if over { Backoff::NONE } else { Backoff(left) };
        }
        self.envelop(now);
    }

    /// The packet that has just become the current one of the function asks for the medium. If it
    /// finds the medium idle and no back-off in progress, it is sent at the next slot boundary;
    /// otherwise it backs off (§10.23.2.2 a).
    pub(super) fn first_access_at_boundary(&mut self, now: Instant, rules: &Rules) {
        let from = self.counting_from;
        let idle = from < Instant::MAX && now >= self.nav.end();
        let rest = self.backoff.rest().filter(|rest| !rest.is_zero());
        match rest {
            Some(rest) if !idle || from + rest > now => {}
            _ if idle => {
                let slot = rules.phy.slot.as_nanos();
                let slots = now.since(from).as_nanos().div_ceil(slot);
                self.backoff = Backoff(rules.phy.slot * slots);
            }
            _ => self.draw_backoff(now, rules),
        }
    }

    /// While a function counts, a back-off drawn at `now` begins at the next slot boundary.
    pub(super) fn counted_until_next_boundary(&self, now: Instant, rules: &Rules) -> Duration {
        let from = self.counting_from;
        if from > now {
            return Duration::ZERO;
        }
        let slot = rules.phy.slot;
        slot * (now.since(from).as_nanos() / slot.as_nanos() + 1)
    }

    /// The first functions are due. The one of the highest category sends; another one, which
    /// collides with it inside the station, behaves as after a collision on the medium (§10.23.2.4).
    /// One step: if the collision leaves others due, the deadline comes again.
    #[cold]
    pub(super) fn access_by_category(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        let Some(edca) = self.traffic.edca.as_deref() else { return };
        let from = self.counting_from;
        let due = || edca.due(from).filter(|(_, due)| *due <= now).map(|(place, _)| place);
        let Some(lowest) = due().next() else { return };
        if due().count() > 1 {
            let category = AccessCategory::ALL[lowest];
            return self.as_function(now, category, |dcf| {
                dcf.collide_internally(now, rules, out);
            });
        }
        self.freeze(now, rules);
        self.enter(lowest);
        self.access(now, rules, out);
    }

    /// An internal collision: the function has lost it. It counts as a failed attempt, though nothing
    /// was sent (§10.23.2.2 d, §10.23.2.12.1). A broadcast, which has one attempt, only waits.
    fn collide_internally(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        self.traffic.counters.internal_collisions += 1;
        let rate = self.choose_rate(now, rules);
        let time = rules.longest_data(rate, self.traffic.function.rules.txop_limit);
        self.assemble(now, rules, time, out);
        let Some(job) = self.traffic.function.current else { return };
        let gives_up = match job.to {
            Receiver::Broadcast => false,
            Receiver::Station(_) => self.attempt_failed(job, rules, End::Unsent, out),
        };
        self.back_off_or_give_up(now, rules, job, gives_up, out);
    }

    /// [`Dcf::go_on`] of the functions that have given up.
    #[cold]
    pub(super) fn go_on_by_category(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        for category in AccessCategory::ALL {
            self.as_function(now, category, |dcf| {
                if dcf.traffic.function.current.is_some() && !dcf.has_packet {
                    dcf.next_packet(now, rules, out);
                }
            });
        }
    }
}

impl<T> Edca<T> {
    /// The functions with a packet, and when each is due if the one of the shortest AIFS begins to
    /// count at `from`.
    fn due(&self, from: Instant) -> impl Iterator<Item = (usize, Instant)> {
        let functions = self.contention.iter().enumerate();
        let waiting = functions.filter(|(_, contention)| contention.has_packet);
        waiting.map(move |(place, &Contention { later, backoff, .. })| {
            (place, from + later + backoff.delay())
        })
    }
}
