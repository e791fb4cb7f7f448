//! After a replay: copies that the mobile does not acknowledge are sent again, until the fixed
//! host's own timer is short enough.
//!
//! Read first: RFC 8985 §7 (tail loss probes), RFC 6298 §2 and §5 (the fixed host's timer).
//!
//! The acknowledgements of a replay give the fixed host round-trip times as long as the outage (RFC
//! 7323 §4): its time-out becomes a minute or two, and comes down by an eighth with each round trip
//! of data sent since. A loss that later data show is repaired in a round trip. A loss at the end
//! of a transfer shows only by silence, and a fixed host that is recovering sends no tail loss
//! probe (RFC 8985 §7.3). So here the node's timer stands in for the fixed host's:
//! - It runs while the mobile lacks what is held, and starts anew whenever the mobile reports
//!   progress, or the fixed host sends the first of it again.
//! - When it expires, the first segment is sent again. If that was all that was missing, the mobile
//!   acknowledges everything. If it acknowledges no more than was sent, twice as much is sent when
//!   the timer expires next, up to an initial window.
//! - Without an answer it backs off, and ends when it would wait as long as the fixed host's.
//! - It ends after a number of round trips of new data: then the fixed host's timer is short.

use crate::hold::store::Store;
use crate::middlebox::Actions;
use airtcp_core::{Duration, Instant, Payload, Segment, SeqNum};

/// Round trips of new data until the fixed host's timer is short: (7/8)^40 of two minutes, the
/// longest of Linux, is 0.6 s (RFC 6298 §2.3).
const ROUND_TRIPS: u8 = 40;
/// What the fixed host sends within so long counts as one round trip: the node does not know how
/// long that takes from there.
const ROUND_TRIP: Duration = Duration::from_millis(250);
/// The longest wait after a back-off: then the fixed host's timer expires, too. So a silence costs
/// eight expiries at most, if the first one comes after 0.3 s.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Most segments that are sent at once (RFC 6928 §2).
const MOST_SEGMENTS: u32 = 10;

/// The timer, from the end of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tail {
    /// Silence after which the first copy is sent again.
    patience: Duration,
    /// The same, after back-off.
    wait: Duration,
    /// `None`: the mobile has everything.
    deadline: Option<Instant>,
    /// What was sent again, up to here, is not answered yet.
    resent: Option<SeqNum>,
    /// Segments to send when the timer expires.
    segments: u32,
    round_trips_left: u8,
    /// End of the data whose acknowledgement ends a round trip.
    timed: Option<SeqNum>,
    /// The next round trip begins here at the earliest.
    next_round_trip: Instant,
}

impl Tail {
    /// A replay is over; `patience`: the silence that shows a loss. What is still held, such as a
    /// FIN above all data, is under way.
    pub fn new<P: Payload>(now: Instant, patience: Duration, store: &Store<P>) -> Self {
        Self {
            patience,
            wait: patience,
            deadline: (!store.is_empty()).then(|| now + patience),
            resent: None,
            segments: 1,
            round_trips_left: ROUND_TRIPS,
            timed: None,
            next_round_trip: now,
        }
    }

    /// Time of the next [`on_timer`](Self::on_timer) that does something.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The mobile has not answered what was sent again.
    pub fn is_unanswered(&self) -> bool {
        self.resent.is_some()
    }

    /// A segment of the fixed host went on, and a copy of it was kept if there was room; `again`:
    /// it has sent all of it before.
    pub fn on_fixed<P: Payload>(
        &mut self,
        now: Instant,
        again: bool,
        segment: &Segment<P>,
        store: &Store<P>,
    ) {
        if segment.seq_len() == 0 || store.is_empty() {
            return;
        }
        let is_repair = again && segment.seq.at_or_before(store.peers.mobile_ack());
        if is_repair || self.deadline.is_none() {
            self.deadline = Some(now + self.wait);
        }
        if !again && self.timed.is_none() && now >= self.next_round_trip {
            self.timed = Some(segment.seq_end());
            self.next_round_trip = now + ROUND_TRIP;
        }
    }

    /// A segment of the mobile, already noted; `before` is its highest acknowledgement number until
    /// then. Leaves `None` if no timer is needed any more.
    pub fn on_mobile<P: Payload>(
        timer: &mut Option<Box<Self>>,
        now: Instant,
        before: SeqNum,
        segment: &Segment<P>,
        store: &Store<P>,
    ) {
        timer.take_if(|tail| !tail.is_needed_after(now, before, segment, store));
    }

    fn is_needed_after<P: Payload>(
        &mut self,
        now: Instant,
        before: SeqNum,
        segment: &Segment<P>,
        store: &Store<P>,
    ) -> bool {
        let ack = store.peers.mobile_ack();
        let has_progress = ack.after(before);
        if has_progress {
            let is_rest_missing = self.resent.take().is_some_and(|end| ack.at_or_before(end));
            let doubled = (self.segments * 2).min(MOST_SEGMENTS);
            self.segments = if is_rest_missing { doubled } else { 1 };
            self.wait = self.patience;
        }
        if store.is_empty() {
            self.deadline = None;
        } else if has_progress || !segment.options.sack.is_empty() {
            self.deadline = Some(now + self.wait);
        }
        if self.timed.is_some_and(|end| ack.at_or_after(end)) {
            self.timed = None;
            self.round_trips_left -= 1;
        }
        self.round_trips_left > 0
    }

    /// Sends again what is due, and leaves `None` if the fixed host's timer is no longer than this
    /// one. Returns how many segments were sent.
    pub fn on_timer<P: Payload>(
        timer: &mut Option<Box<Self>>,
        now: Instant,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) -> u64 {
        let is_due = |tail: &Self| tail.deadline.is_some_and(|due| due <= now);
        let Some(tail) = timer.as_mut().filter(|tail| is_due(tail)) else { return 0 };
        tail.send_again(now, store, out).unwrap_or_else(|| {
            *timer = None;
            0
        })
    }

    /// Returns how many segments were sent; `None`: no more than that.
    fn send_again<P: Payload>(
        &mut self,
        now: Instant,
        store: &mut Store<P>,
        out: &mut Actions<P>,
    ) -> Option<u64> {
        if self.wait > LONGEST_WAIT {
            return None;
        }
        if self.is_unanswered() {
            self.segments = 1;
        }
        let (mut rest, mut resent) = (store.peers.mobile_ack()..store.end()?, 0);
        while resent < u64::from(self.segments)
            && let Some(sent) = store.send(rest.clone(), store.segment(), out)
        {
            rest.start = sent.end;
            resent += 1;
        }
        self.resent = Some(rest.start);
        self.timed = None;
        self.wait = self.wait * 2;
        self.deadline = Some(now + self.wait);
        Some(resent)
    }
}
