//! M-TCP+: while the mobile is away, the intermediate host acknowledges on its behalf and closes
//! the window.
//!
//! Read first: the M-TCP+ paper §3 (Algorithm 2, Fig. 3), RFC 9293 §3.8.6.1 (persist), RFC 5961
//! §3.2 (resets).
//!
//! *Connected*, the node is a plain forwarder that keeps a copy of each data segment until the
//! mobile acknowledges it. A link signal *freezes* the fixed host: Algorithm 2 acknowledges all
//! that the node holds and closes the window, so that nothing is outstanding and the sender waits
//! in persist with cwnd intact. While the mobile is *away* the node answers window probes and
//! stores what was still under way. When the mobile is back the node is *resuming*: it replays the
//! copies and keeps the fixed host frozen until the mobile itself has acknowledged everything that
//! was acknowledged on its behalf (`acked_fh`). That ACK goes through and opens the window.
//!
//! What the paper leaves open:
//! - The node acknowledges only data that it holds without a gap ([`Store::data_end`]): copies end
//!   at a full FIFO, and at a loss on the wired side. The fixed host remains responsible for what
//!   follows, as in plain TCP, and for its FIN, which is copied but never acknowledged.
//! - Algorithm 2 acknowledges at once. Data acknowledged sooner than the mobile would make the round
//!   trip seem shorter than it is; with [`Acknowledge::InTime`] they wait for that time (see
//!   [`ack_clock`](crate::ack_clock)). The window is closed at once in any case.
//! - With nothing outstanding, Linux begins anew with ten segments after an outage (RFC 5681 §4.1).
//!   So with `InTime` a sender with timestamps is acknowledged one segment at a time, each before
//!   its timer expires, for ten seconds. If the mobile is back before all is acknowledged, the rest
//!   is replayed, but the fixed host does not wait for that.
//! - The sender learns from the echoed timestamp whether what it sent again had been lost (RFC 3522).
//!   For data that the mobile had reported missing, the node echoes that of the retransmission.
//! - Whoever acknowledges is responsible: from the freeze until the mobile has everything, the
//!   copies are sent again as [`Replay`] says.
//! - The freeze comes with the first of the signals [`Fading`](LinkSignal::Fading) and
//!   [`Down`](LinkSignal::Down). After `Fading` the link may still work: segments are still sent to
//!   the mobile, and its acknowledgements free copies.
//! - The mobile is back with [`Up`](LinkSignal::Up). Signals get lost, so it is back as well when
//!   it is heard after a *nudge* (see [`away`](crate::away)): whenever the node itself answers the
//!   fixed host (window probes above all) it sends the mobile the first copy, or without copies
//!   what the fixed host sent; and so it does at the time-out. Retransmissions that the node has no
//!   copy of, sent on into a fading link, are nudges too, and with [`MTcpPlusConfig::nudge`] the
//!   node sends its own. The mobile is also back when it is heard after `Down` while it still lacks
//!   data, unless the node sends nudges of its own: a replay to an absent mobile does no harm.
//!   Other segments may have been on the way when the signal came, and prove nothing. So a false
//!   signal of disconnection, or a lost one of reconnection, costs the time to the next nudge;
//!   without that setting, that is the fixed host's next probe.
//! - The mobile may never have been reported down. When it is [`Up`](LinkSignal::Up) while
//!   connected, and the fixed host has been sending again what is held, or a replay has timed out,
//!   the copies are replayed once: the next retransmission may be a minute off.
//! - Frozen, the fixed host must see no open window: the mobile's pure ACKs are dropped, and its
//!   data goes on with `acked_fh`, window 0 and without SACK blocks. Window 0 needs no scaling.
//! - A reset of the fixed host would be lost on the dead link. While it is frozen, its reset waits
//!   until the mobile has what is held, and is withdrawn if the fixed host sends anything else.
//! - A connection is merely forwarded until both hosts were met (see [`belief`](crate::belief)). So
//!   is one that begins while the mobile is away, until the next signal: the mobile has just been
//!   heard.

use crate::ack_clock::AckClock;
use crate::away::{Away, Interval, MAX_DOWN, NUDGE};
use crate::belief::{Acquaintance, Acquainted, Believed, hear};
use crate::cache::{DEFAULT_FIFO, FIFO};
use crate::connection::{Connection, Context};
use crate::counters::counters;
use crate::ends;
use crate::flow_table::{FlowPhase, FlowState};
use crate::journal;
use crate::middlebox::Side;
use crate::mobile_end::MobileEnd;
use crate::per_connection::PerConnection;
use crate::replay::Replay;
use crate::store::{Kept, Store, end_if_reset};
use airtcp_core::{
    Bytes, Duration, Flags, Instant, LinkSignal, Payload, Segment, SeqNum, Timestamps,
};
use airtcp_settings::{choice, settings};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::num::NonZeroU32;
use std::ops::Range;

/// After so long all that is held is acknowledged. The sender's timer has become as long, and stays
/// so for some round trips after the outage.
const LONGEST_THRIFT: Duration = Duration::from_secs(10);

/// M-TCP+ for all connections of an intermediate host.
pub type MTcpPlus<P> = PerConnection<P, State<P>>;

/// What the driver writes down about a connection.
pub type Note<P> = journal::Note<P, Snapshot<P>>;

/// A connection at one moment, as it is written down.
pub type Snapshot<P> = journal::Snapshot<State<P>, MTcpPlusConfig>;

settings! {
    /// Settings of M-TCP+.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct MTcpPlusConfig {
        /// Payload bytes that one connection may hold; less than its window leaves data in the
        /// fixed host's charge.
        #[like(FIFO)]
        pub fifo: Bytes = DEFAULT_FIFO,
        /// How the sender learns that the mobile is back. The paper does not say.
        #[source = "M-TCP+ §3"]
        pub resume: Resume = Resume::Flush,
        /// How long the mobile may be silent; `None`: for ever.
        #[like(MAX_DOWN)]
        pub max_down: Option<Duration> = None,
        /// How often the mobile is asked whether it is back; `None`: never.
        #[like(NUDGE)]
        pub nudge: Option<Duration> = None,
        /// When what is held is acknowledged on the mobile's behalf.
        #[source = "M-TCP+ §3"]
        pub acknowledge: Acknowledge = Acknowledge::AtOnce,
    }
}

impl MTcpPlusConfig {
    fn is_in_time(&self) -> bool {
        self.acknowledge == Acknowledge::InTime
    }
}

choice! {
    /// When what is held is acknowledged on the mobile's behalf.
    #[derive(Hash)]
    #[default(AtOnce)]
    pub enum Acknowledge {
        /// as soon as it is held and the mobile is away: the sender takes the round trip to be
        /// shorter than it is
        AtOnce = "at-once",
        /// no sooner than the mobile would have; to a sender with timestamps one segment at a time
        /// for 10 s, so that its timer does not expire
        InTime = "in-time",
    }
}

/// Not written down, as the round trip is not: a successor acknowledges at once what its
/// predecessor held.
impl Serialize for Acknowledge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Acknowledge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self::AtOnce)
    }
}

choice! {
    /// How the fixed host learns that the mobile is back.
    #[derive(Hash, Serialize, Deserialize)]
    #[default(Flush)]
    pub enum Resume {
        /// the mobile's ACK of the last copy opens the sender's window
        Flush = "flush",
        /// only the answer to the sender's next window probe does
        Probe = "probe",
    }
}

counters! {
    /// What M-TCP+ did, over all connections.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct MTcpPlusCounters {
        /// Segments copied.
        pub segments_copied: u64,
        /// Segments not copied for want of room in the FIFO or in the node's memory.
        pub overflows: u64,
        /// Most payload bytes that one connection held.
        pub held_peak: u64,
        /// Times a fixed host was frozen.
        pub freezes: u64,
        /// Bytes acknowledged before the mobile did.
        pub bytes_promised: u64,
        /// Window probes, keep-alives and old data answered with window 0.
        pub answers: u64,
        /// Times copies were replayed from the first to the last.
        pub replays: u64,
        /// Copies that were sent again after a replay, or to find out whether the mobile is there.
        pub copies_resent: u64,
        /// Keep-alives sent to find out whether the mobile is there.
        pub nudges: u64,
        /// Pure ACKs of the mobile kept from the fixed host.
        pub acks_suppressed: u64,
        /// Times a fixed host was released.
        pub resumes: u64,
        /// Connections reset because the mobile was away for too long.
        pub resets: u64,
    }
}

/// What M-TCP+ knows of one connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound(
    serialize = "P: Payload + Serialize",
    deserialize = "P: Payload + Deserialize<'de>"
))]
pub struct State<P> {
    known: Acquaintance<Store<P>>,
    phase: Phase,
    /// Stands still unless what is held is acknowledged [in time](Acknowledge::InTime).
    #[serde(skip)]
    clock: AckClock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Phase {
    Connected {
        /// The fixed host has sent again what is held, and since then the mobile has neither
        /// acknowledged anything new nor been sent everything: something is lost, or the mobile is
        /// away.
        sent_again: bool,
        /// How far beyond its acknowledgement the mobile's latest segment reported data, in bytes.
        #[serde(skip)]
        reported: Option<NonZeroU32>,
        /// Of a mobile that is back without having been reported away.
        replay: Option<Replay>,
    },
    /// Boxed, for few connections are frozen.
    Frozen(Box<Frozen>),
    /// Given up: each host gets a reset when it is heard.
    Reset,
}

/// The fixed host is in persist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Frozen {
    /// The highest ACK number sent to the fixed host. The mobile has acknowledged everything below
    /// it, or the node holds it.
    acked_fh: SeqNum,
    /// The TSval of the fixed host to echo.
    echo: Option<u32>,
    link: Link,
    /// `None`: what is held is acknowledged as soon as it is due, as it is once the fixed host's
    /// timer has expired.
    #[serde(skip)]
    thrift: Option<Thrift>,
    /// While there are copies.
    replay: Option<Replay>,
    /// When to reset the connection.
    give_up: Option<Instant>,
}

/// A segment is acknowledged now and then, in time for the sender's timer not to expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Thrift {
    since: Instant,
    round_trip: Duration,
    /// What is before this may have been sent again, so that no time is taken of it (Karn's
    /// algorithm, RFC 6298 §3): it is acknowledged as soon as it is due.
    from: SeqNum,
    /// Nothing more is acknowledged before.
    next: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Link {
    Away(Away),
    Resuming,
    /// The mobile has everything; [`Resume::Probe`].
    AwaitingProbe,
}

impl Phase {
    const CONNECTED: Self = Self::connected(None);

    /// The fixed host has sent nothing again yet.
    const fn connected(replay: Option<Replay>) -> Self {
        Self::Connected { sent_again: false, reported: None, replay }
    }
}

impl<P> Default for State<P> {
    fn default() -> Self {
        Self { known: Acquaintance::default(), phase: Phase::CONNECTED, clock: AckClock::default() }
    }
}

impl<P: Payload> FlowState for State<P> {
    /// Bytes were acknowledged that the mobile does not have.
    fn is_committed(&self) -> bool {
        match (&self.known.met, &self.phase) {
            (Some(store), Phase::Frozen(frozen)) => frozen.acked_fh.after(store.ends.mobile_ack()),
            _ => false,
        }
    }

    fn held(&self) -> usize {
        self.known.held()
    }

    fn is_closed(&self) -> bool {
        self.known.is_closed()
    }

    fn in_flight(&self) -> Option<Range<SeqNum>> {
        self.known.in_flight()
    }

    fn phase(&self) -> FlowPhase {
        match &self.phase {
            Phase::Connected { replay: None, .. } => FlowPhase::Connected,
            Phase::Connected { .. } => FlowPhase::Resuming,
            Phase::Frozen(frozen) => match frozen.link {
                Link::Away(_) => FlowPhase::Frozen,
                Link::Resuming | Link::AwaitingProbe => FlowPhase::Resuming,
            },
            Phase::Reset => FlowPhase::Reset,
        }
    }
}

impl<P: Payload> Acquainted<P> for State<P> {
    type Met = Store<P>;
    fn acquaintance(&mut self) -> &mut Acquaintance<Store<P>> {
        &mut self.known
    }

    fn told(&self) -> Option<SeqNum> {
        match &self.phase {
            Phase::Frozen(frozen) => Some(frozen.acked_fh),
            Phase::Connected { .. } | Phase::Reset => None,
        }
    }

    fn defers_reset(&self) -> bool {
        matches!(self.phase, Phase::Frozen(_)) && !self.has_all()
    }
}

type Cx<'a, P> = Context<'a, P, State<P>>;

impl<P: Payload> Connection<P> for State<P> {
    type Config = MTcpPlusConfig;
    type Counters = MTcpPlusCounters;

    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, cx: &mut Cx<'_, P>) {
        let Some(segment) = hear(self, now, from, segment, cx.doubts, cx.out) else { return };
        self.on_believed(now, from, segment, cx);
        let has_all = self.has_all();
        end_if_reset(self, has_all, cx.out);
    }

    fn on_link(&mut self, now: Instant, signal: LinkSignal, cx: &mut Cx<'_, P>) {
        self.on_signal(now, signal, cx);
        let has_all = self.has_all();
        end_if_reset(self, has_all, cx.out);
    }

    fn on_timer(&mut self, now: Instant, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.known.met else { return };
        match &mut self.phase {
            Phase::Frozen(frozen) if frozen.give_up.is_some_and(|due| due <= now) => {
                cx.counters.resets += 1;
                cx.out.inject(Side::Fixed, store.ends.reset_fixed(frozen.acked_fh));
                cx.out.inject(Side::Mobile, store.ends.reset_mobile());
                store.clear();
                self.phase = Phase::Reset;
            }
            Phase::Frozen(frozen) => frozen.on_timer(now, store, &self.clock, cx),
            Phase::Connected { replay: Some(replay), .. } => {
                cx.counters.copies_resent += replay.on_timer(now, store, cx.out);
            }
            Phase::Connected { .. } | Phase::Reset => {}
        }
    }

    fn on_passed(&mut self, timestamps: Timestamps) {
        if let Some(store) = &mut self.known.met {
            store.ends.note_passed(Some(timestamps));
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let frozen = match &self.phase {
            Phase::Frozen(frozen) => frozen,
            Phase::Connected { replay, .. } => return replay.as_ref().map(Replay::deadline),
            Phase::Reset => return None,
        };
        let replay = frozen.replay.as_ref().map(Replay::deadline);
        let nudge = match &frozen.link {
            Link::Away(away) => away.deadline(),
            Link::Resuming | Link::AwaitingProbe => None,
        };
        let store = self.known.met.as_ref();
        let promise = store.and_then(|store| frozen.promise_due(store, &self.clock));
        [replay, nudge, promise, frozen.give_up].into_iter().flatten().min()
    }
}

impl<P: Payload> State<P> {
    /// A segment that counts.
    fn on_believed(&mut self, now: Instant, from: Side, segment: Believed<P>, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.known.met else { return };
        if self.phase == Phase::Reset {
            return ends::refuse(from, segment, cx.out);
        }
        let again = from == Side::Fixed && store.ends.is_retransmission(&segment);
        let before = *store.ends.mobile();
        store.note(from, &segment);
        let clock = &mut self.clock;
        if from == Side::Mobile {
            clock.note_ack(now, store.ends.mobile_ack(), store.is_empty());
        }
        let is_released = match (from, &mut self.phase) {
            (_, Phase::Reset) => false,
            (Side::Fixed, Phase::Connected { sent_again, reported, replay }) => {
                if again && reported.is_some() {
                    store.note_repair(&segment);
                }
                let is_taken = replay.as_ref().is_some_and(|r| r.takes(store, &segment));
                let kept = keep(now, store, clock, &segment, cx);
                *sent_again |= replay.is_none() && kept == Kept::Old && store.lacks(&segment);
                match (kept, replay) {
                    (Kept::New, Some(replay)) if is_taken => {
                        replay.send(now, &segment, store, cx.out)
                    }
                    (Kept::Old, Some(_)) if is_taken => cx.out.drop(segment.into_segment()),
                    (_, replay) => {
                        match replay {
                            Some(replay) => replay.note_passed(&segment),
                            None if kept == Kept::New && cx.config.is_in_time() => {
                                clock.note_passed(now, segment.seq_end());
                            }
                            None => {}
                        }
                        store.forward(segment, cx.out);
                    }
                }
                false
            }
            (Side::Mobile, Phase::Connected { sent_again, reported, replay }) => {
                *sent_again &= store.ends.mobile_ack() == before.ack;
                let ack = store.ends.mobile_ack();
                let end = segment.options.sack.end_beyond(ack);
                *reported = end.and_then(|end| NonZeroU32::new(end.bytes_after(ack)));
                if let Some(replaying) = replay {
                    cx.counters.copies_resent +=
                        replaying.on_mobile(now, cx.waiting, &before, &segment, store, cx.out);
                    if replaying.is_done(store) {
                        *replay = None;
                    }
                }
                cx.out.forward(Side::Fixed, segment.into_segment());
                false
            }
            (Side::Fixed, Phase::Frozen(frozen)) => {
                frozen.on_fixed(now, again, store, clock, segment, cx)
            }
            (Side::Mobile, Phase::Frozen(frozen)) => {
                frozen.on_mobile(now, &before, store, clock, segment, cx)
            }
        };
        if let (true, Phase::Frozen(frozen)) = (is_released, &mut self.phase) {
            self.phase = frozen.release(now, store, cx);
        }
    }

    fn on_signal(&mut self, now: Instant, signal: LinkSignal, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.known.met else { return };
        match (&mut self.phase, signal) {
            (Phase::Connected { sent_again, replay, .. }, LinkSignal::Up) => {
                // A replay that has timed out began before the outage.
                let is_unheard = replay.as_ref().is_some_and(|replay| !replay.has_begun());
                if std::mem::take(sent_again) || is_unheard {
                    cx.counters.replays += 1;
                    *replay = Some(Replay::begin(now, cx.waiting, store, cx.out));
                }
            }
            (Phase::Reset, LinkSignal::Up) => {
                cx.out.inject(Side::Mobile, store.ends.reset_mobile());
            }
            (Phase::Connected { sent_again, reported, .. }, _) => {
                let down = signal == LinkSignal::Down;
                self.clock.note_doubt();
                // What it sent again unreported: its timer has expired, or the mobile has no SACK.
                let is_timed = reported.is_some() || !*sent_again;
                let thrift =
                    is_timed.then(|| Thrift::new(now, *reported, store, &self.clock)).flatten();
                let frozen = Frozen::new(now, down, thrift, store, &self.clock, cx);
                self.phase = Phase::Frozen(Box::new(frozen));
            }
            (Phase::Frozen(frozen), LinkSignal::Up) => {
                if frozen.reconnect(now, store, cx) {
                    self.phase = frozen.release(now, store, cx);
                }
            }
            (Phase::Frozen(frozen), _) => {
                frozen.disconnect(now, signal == LinkSignal::Down, store, cx);
            }
            (Phase::Reset, _) => {}
        }
    }

    /// The mobile is in reach, and nothing is replayed to it.
    fn has_all(&self) -> bool {
        match &self.phase {
            Phase::Connected { replay, .. } => replay.is_none(),
            Phase::Frozen(frozen) => frozen.link == Link::AwaitingProbe,
            Phase::Reset => false,
        }
    }
}

impl Frozen {
    /// Algorithm 2.
    fn new<P: Payload>(
        now: Instant,
        down: bool,
        thrift: Option<Thrift>,
        store: &Store<P>,
        clock: &AckClock,
        cx: &mut Cx<'_, P>,
    ) -> Self {
        let (acked_fh, echo) = (store.ends.mobile_ack(), store.first_tsval());
        cx.counters.freezes += 1;
        cx.out.inject(Side::Fixed, store.ends.acknowledge(acked_fh, 0, None));
        let link = Link::Away(Away::new(now, down));
        let give_up = deadline(now, cx);
        let mut frozen = Self { acked_fh, echo, link, thrift, replay: None, give_up };
        if frozen.promise(now, store, clock, cx) {
            cx.out.inject(Side::Fixed, frozen.answer(store));
        }
        frozen.set_timers(now, store, cx);
        frozen
    }

    /// Acknowledges on the mobile's behalf what is held and due: from here on the node is
    /// responsible for it. True: the fixed host is to be told.
    fn promise<P: Payload>(
        &mut self,
        now: Instant,
        store: &Store<P>,
        clock: &AckClock,
        cx: &mut Cx<'_, P>,
    ) -> bool {
        let before = self.acked_fh;
        let told = self.promisable(now, store, clock).later(before);
        cx.counters.bytes_promised += u64::from(told.bytes_after(before));
        self.tell(now, told)
    }

    /// The fixed host is told that everything before `acked_fh` arrived. True: that is more than
    /// before.
    fn tell(&mut self, now: Instant, acked_fh: SeqNum) -> bool {
        let is_more = acked_fh != self.acked_fh;
        self.acked_fh = acked_fh;
        if let (true, Some(thrift)) = (is_more, &mut self.thrift) {
            thrift.on_told(now);
        }
        is_more
    }

    /// The end of the data that the mobile has acknowledged, or that are held and it is time to
    /// acknowledge.
    fn promisable<P: Payload>(&self, now: Instant, store: &Store<P>, clock: &AckClock) -> SeqNum {
        let (ack, end) = (store.ends.mobile_ack(), store.data_end());
        let due = clock.early(now).map_or(end, |early| early.earlier(end).later(ack));
        let told = self.acked_fh.later(ack);
        let limit = self.thrift.and_then(|thrift| thrift.limit(now, told, store));
        limit.map_or(due, |limit| due.earlier(limit))
    }

    /// What the fixed host is told.
    fn answer<P: Payload>(&self, store: &Store<P>) -> Segment<P> {
        store.ends.acknowledge(self.acked_fh, 0, self.echo)
    }

    /// Data are held that it was too early to acknowledge.
    fn is_early<P: Payload>(&self, store: &Store<P>) -> bool {
        store.data_end().after(self.acked_fh.later(store.ends.mobile_ack()))
    }

    /// When to acknowledge more.
    fn promise_due<P: Payload>(&self, store: &Store<P>, clock: &AckClock) -> Option<Instant> {
        match self.link {
            Link::Away(_) | Link::Resuming if self.is_early(store) => {
                let due = clock.due(self.acked_fh).unwrap_or(Instant::ZERO);
                let next = self.thrift.and_then(|thrift| thrift.wait(self.acked_fh));
                Some(next.map_or(due, |next| due.max(next)))
            }
            _ => None,
        }
    }

    /// The fixed host is on its own again. What it was not promised is still replayed.
    fn release<P: Payload>(
        &mut self,
        now: Instant,
        store: &mut Store<P>,
        cx: &mut Cx<'_, P>,
    ) -> Phase {
        let is_replaying = self.link != Link::AwaitingProbe && self.is_early(store);
        let replay = is_replaying.then(|| match self.replay.take() {
            Some(replay) if replay.has_begun() => replay,
            _ => Replay::begin(now, cx.waiting, store, cx.out),
        });
        Phase::connected(replay)
    }

    /// Another signal that the mobile is out of reach: what is heard of it from now on may be
    /// older.
    fn disconnect<P: Payload>(
        &mut self,
        now: Instant,
        down: bool,
        store: &Store<P>,
        cx: &mut Cx<'_, P>,
    ) {
        match &mut self.link {
            Link::Away(away) => away.on_signal(now, down),
            Link::Resuming | Link::AwaitingProbe => {
                self.link = Link::Away(Away::new(now, down));
                self.give_up = deadline(now, cx);
            }
        }
        self.replay = None;
        self.set_timers(now, store, cx);
    }

    /// The mobile is back: replays all. True: the fixed host was released at once, there is no ACK
    /// to wait for.
    fn reconnect<P: Payload>(
        &mut self,
        now: Instant,
        store: &mut Store<P>,
        cx: &mut Cx<'_, P>,
    ) -> bool {
        cx.counters.replays += u64::from(!store.is_empty());
        let replay = Replay::begin(now, cx.waiting, store, cx.out);
        self.replay = Some(replay);
        if self.acked_fh.after(store.ends.mobile_ack()) {
            self.link = Link::Resuming;
            self.give_up = deadline(now, cx);
            return false;
        }
        let released = cx.config.resume == Resume::Flush;
        if released {
            let MobileEnd { ack, window, .. } = *store.ends.mobile();
            cx.counters.resumes += 1;
            cx.out.inject(Side::Fixed, store.ends.acknowledge(ack, window, self.echo));
        } else {
            self.await_probe();
        }
        released
    }

    /// The timer of the copies runs while there are any to send again, that of the nudges while a
    /// host waits for the mobile.
    fn set_timers<P: Payload>(&mut self, now: Instant, store: &Store<P>, cx: &Cx<'_, P>) {
        if let Link::Away(away) = &mut self.link {
            away.ask(now, interval(cx), store.ends.flow());
        }
        if store.is_empty() || self.link == Link::AwaitingProbe {
            self.replay = None;
        } else if self.replay.is_none() {
            self.replay = Some(Replay::waiting(now));
        }
    }

    fn on_timer<P: Payload>(
        &mut self,
        now: Instant,
        store: &mut Store<P>,
        clock: &AckClock,
        cx: &mut Cx<'_, P>,
    ) {
        if self.promise_due(store, clock).is_some_and(|due| due <= now)
            && self.promise(now, store, clock, cx)
        {
            cx.out.inject(Side::Fixed, self.answer(store));
        }
        if let Some(replay) = &mut self.replay
            && replay.deadline() <= now
        {
            cx.counters.copies_resent += replay.on_timer(now, store, cx.out);
            if let Link::Away(away) = &mut self.link {
                away.nudge();
            }
        }
        if let Link::Away(away) = &mut self.link
            && away.on_timer(now, interval(cx))
        {
            cx.counters.nudges += 1;
            cx.out.inject(Side::Mobile, store.ends.keep_alive());
        }
    }

    fn await_probe(&mut self) {
        self.link = Link::AwaitingProbe;
        self.replay = None;
        self.give_up = None;
    }

    /// A segment of the fixed host; `again`: it has sent all of it before. True: it was released.
    fn on_fixed<P: Payload>(
        &mut self,
        now: Instant,
        again: bool,
        store: &mut Store<P>,
        clock: &mut AckClock,
        segment: Believed<P>,
        cx: &mut Cx<'_, P>,
    ) -> bool {
        let acked_fh = self.acked_fh;
        if again && self.thrift.is_some_and(|it| segment.seq.at_or_after(it.from.later(acked_fh))) {
            self.thrift = None;
        }
        let in_order = segment.seq.at_or_before(store.data_end().later(acked_fh));
        if segment.is_pure_ack() && !segment.seq.before(acked_fh) {
            store.forward(segment, cx.out);
            return false;
        }
        if self.link == Link::AwaitingProbe {
            cx.counters.resumes += 1;
            keep(now, store, clock, &segment, cx);
            store.forward(segment, cx.out);
            return true;
        }
        if segment.seq.at_or_before(acked_fh)
            && let Some(timestamps) = segment.options.timestamps
        {
            self.echo = Some(timestamps.value);
        }
        // One byte where new data belongs; of old data one byte, or none (keep-alives, Linux).
        let probe = in_order && segment.payload.len() <= 1 && !segment.flags.contains(Flags::FIN);
        let kept = if probe { Kept::Old } else { keep(now, store, clock, &segment, cx) };
        self.set_timers(now, store, cx);
        let is_more = self.promise(now, store, clock, cx);
        cx.counters.answers += u64::from(kept == Kept::Old);
        // An answer that repeats the last one would report a loss.
        if is_more || kept == Kept::Old || !self.is_early(store) {
            cx.out.inject(Side::Fixed, self.answer(store));
        }
        match (&mut self.link, kept) {
            (Link::Away(away), Kept::Old) => {
                away.nudge();
                let resent = store.resend_first(cx.out);
                cx.counters.copies_resent += resent;
                if resent == 0 {
                    store.forward(segment, cx.out);
                } else {
                    cx.out.drop(segment.into_segment());
                }
            }
            (Link::Resuming | Link::AwaitingProbe, Kept::Old) => {
                cx.out.drop(segment.into_segment())
            }
            // The copy is what will be sent.
            (Link::Away(away), Kept::New) if away.is_down() => {}
            (Link::Resuming, Kept::New) => {
                self.replay.iter_mut().for_each(|replay| replay.send(now, &segment, store, cx.out));
            }
            // The mobile answers what it waits for. Without room the fixed host remains
            // responsible; what was copied may have been on the wire when the signal came.
            (Link::Away(away), _) => {
                let is_sure = kept == Kept::NoRoom || again || away.is_over_wire(now);
                if in_order && is_sure {
                    away.nudge();
                }
                store.forward(segment, cx.out);
            }
            _ => store.forward(segment, cx.out),
        }
        false
    }

    /// A segment of the mobile, already noted; `before` is its end as known until then. True: the
    /// fixed host was released.
    fn on_mobile<P: Payload>(
        &mut self,
        now: Instant,
        before: &MobileEnd,
        store: &mut Store<P>,
        clock: &AckClock,
        segment: Believed<P>,
        cx: &mut Cx<'_, P>,
    ) -> bool {
        if self.give_up.is_some() {
            self.give_up = deadline(now, cx);
        }
        let mobile = *store.ends.mobile();
        let promised = self.acked_fh.after(before.ack);
        if let (Link::Resuming, Some(replay)) = (&self.link, &mut self.replay) {
            cx.counters.copies_resent +=
                replay.on_mobile(now, cx.waiting, before, &segment, store, cx.out);
        }
        let lacks = self.acked_fh.after(mobile.ack);
        match &mut self.link {
            Link::Away(away) if !is_back(away, lacks || store.data_end().after(mobile.ack)) => {}
            Link::AwaitingProbe => {}
            _ if !lacks && promised && cx.config.resume == Resume::Probe => self.await_probe(),
            _ if !lacks => {
                cx.counters.resumes += 1;
                cx.out.forward(Side::Fixed, segment.into_segment());
                return true;
            }
            Link::Resuming => {}
            Link::Away(_) => {
                self.reconnect(now, store, cx);
            }
        }
        self.set_timers(now, store, cx);
        // The fixed host must see no open window. A gap in what was held may be closed now; but
        // while waiting for a probe the node takes on nothing more.
        let held = match self.link {
            Link::AwaitingProbe => mobile.ack,
            Link::Away(_) | Link::Resuming => self.promisable(now, store, clock),
        };
        let acked_fh = held.later(self.acked_fh);
        if segment.is_pure_ack() && acked_fh == self.acked_fh {
            cx.counters.acks_suppressed += 1;
            cx.out.drop(segment.into_segment());
        } else {
            cx.counters.bytes_promised +=
                u64::from(acked_fh.bytes_after(self.acked_fh.later(mobile.ack)));
            self.tell(now, acked_fh);
            let closing = ends::closing(&segment, acked_fh);
            cx.out.drop(segment.into_segment());
            cx.out.inject(Side::Fixed, closing);
        }
        false
    }
}

impl Thrift {
    /// For senders that take the time of each acknowledgement: those with timestamps (RFC 7323 §4).
    /// The mobile has reported data so far beyond its acknowledgement.
    fn new<P: Payload>(
        since: Instant,
        reported: Option<NonZeroU32>,
        store: &Store<P>,
        clock: &AckClock,
    ) -> Option<Self> {
        store.first_tsval()?;
        let round_trip = clock.round_trip()?;
        let from = store.ends.mobile_ack() + reported.map_or(0, NonZeroU32::get);
        Some(Self { since, round_trip, from, next: since })
    }

    /// How far to acknowledge now if everything before `told` is acknowledged; `None`: as far as is
    /// due.
    fn limit<P: Payload>(&self, now: Instant, told: SeqNum, store: &Store<P>) -> Option<SeqNum> {
        (now.since(self.since) <= LONGEST_THRIFT).then(|| {
            let more = if now < self.next { 0 } else { store.segment() };
            self.from.later(told + more)
        })
    }

    /// Until when not to acknowledge more than this.
    fn wait(&self, told: SeqNum) -> Option<Instant> {
        told.at_or_after(self.from).then_some(self.next)
    }

    /// More was acknowledged, which had been under way since before the freeze. The sender's timer is
    /// now at least as long: a quarter of what a time differs from the mean counts as variation, and
    /// that four times (RFC 6298 §2.3).
    fn on_told(&mut self, now: Instant) {
        self.next = now + self.round_trip.max(now.since(self.since) / 2);
    }
}

/// The mobile is heard: whether it is back. If the node sends no nudges, it is enough that the
/// mobile lacks data: a replay to an absent mobile does no harm.
fn is_back(away: &Away, lacks: bool) -> bool {
    away.is_nudged() || away.is_down() && lacks && !away.is_asking()
}

/// Keeps a copy if the segment brings anything new and there is room.
fn keep<P: Payload>(
    now: Instant,
    store: &mut Store<P>,
    clock: &mut AckClock,
    segment: &Believed<P>,
    cx: &mut Cx<'_, P>,
) -> Kept {
    let kept = store.keep(segment, cx.config.fifo, cx.room);
    match kept {
        Kept::New if cx.config.is_in_time() => clock.note_data(now, segment.seq),
        Kept::Old if segment.seq_len() > 0 => clock.note_doubt(),
        Kept::New | Kept::Old | Kept::NoRoom => {}
    }
    cx.counters.segments_copied += u64::from(kept == Kept::New);
    cx.counters.overflows += u64::from(kept == Kept::NoRoom);
    cx.counters.held_peak = cx.counters.held_peak.max(store.held() as u64);
    kept
}

fn deadline<P: Payload>(now: Instant, cx: &Cx<'_, P>) -> Option<Instant> {
    cx.config.max_down.map(|max| now + max)
}

fn interval<P: Payload>(cx: &Cx<'_, P>) -> Interval {
    Interval::new(cx.config.nudge, cx.interrupted)
}
