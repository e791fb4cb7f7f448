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
//! - Algorithm 2 acknowledges at once. Data acknowledged sooner than the mobile would make the
//!   round trip seem shorter than it is; with [`Acknowledge::InTime`] they wait for that time (see
//!   [`ack_timing`](crate::mechanisms::ack_timing)). The window is closed at once in any case.
//! - With nothing outstanding, Linux begins anew with ten segments after an outage (RFC 5681 §4.1),
//!   and a user timeout (RFC 5482) runs until the window opens. So with `InTime` a sender with
//!   timestamps is acknowledged one segment at a time, each before its timer expires. After a while
//!   ([`Acknowledge::InTime`]) all but the last [`LAST_SEGMENTS`] are acknowledged at once: that
//!   frees the sender's buffer, and a limit on its program's writes begins anew. If the mobile is
//!   back before all is acknowledged, the rest is replayed, but the fixed host does not wait for
//!   that.
//! - The sender learns from the echoed timestamp whether what it sent again had been lost (RFC
//!   3522). For data that the mobile had reported missing, the node echoes that of the
//!   retransmission.
//! - After the outage the fixed host has nothing outstanding, so nothing paces it when its window
//!   opens: it may send all of it as one burst, and overflow a queue that is shorter (lwIP). With
//!   [`Open::InSteps`] the window opens as in a slow start, clocked by the mobile's acknowledgements
//!   (see [`Steps`]).
//! - Whoever acknowledges is responsible: from the freeze until the mobile has everything, the
//!   copies are sent again as [`Replay`] says.
//! - The freeze comes with the first of the signals [`Fading`](LinkSignal::Fading) and
//!   [`Down`](LinkSignal::Down). After `Fading` the link may still work: segments are still sent to
//!   the mobile, and its acknowledgements free copies.
//! - The mobile is back with [`Up`](LinkSignal::Up). Signals get lost, so it is back as well when
//!   it is heard after a *probe* (see [`away`](crate::mechanisms::away)): whenever the node itself
//!   answers the fixed host (window probes above all) it sends the mobile the first copy, or
//!   without copies what the fixed host sent; and so it does at the time-out. Once the link is
//!   down it does neither if it sends probes of its own. Retransmissions that
//!   the node has no copy of, sent on into a fading link, are probes too, and with
//!   [`MTcpPlusConfig::probe_interval`] the node sends its own. The mobile is also back when it is
//!   heard after `Down` while it still lacks data, unless the node sends probes of its own: a
//!   replay to an absent mobile does no harm. Other segments may have been on the way when the
//!   signal came, and prove nothing. So a false signal of disconnection, or a lost one of
//!   reconnection, costs the time to the next probe; without that setting, that is the fixed host's
//!   next probe.
//! - The mobile may never have been reported down. When it is [`Up`](LinkSignal::Up) while
//!   connected, and the fixed host has been sending again what is held, or a replay has timed out,
//!   the copies are replayed once: the next retransmission may be a minute off.
//! - Frozen, the fixed host must see no open window: the mobile's pure ACKs are dropped, and its
//!   data goes on with `acked_fh`, window 0 and without SACK blocks. Window 0 needs no scaling.
//! - A reset of the fixed host would be lost on the dead link. While it is frozen, its reset waits
//!   until the mobile has what is held, and is withdrawn if the fixed host sends anything else.
//! - A connection is merely forwarded until it is established (see
//!   [`validate`](crate::conntrack::validate)). So
//!   is one that begins while the mobile is away, until the next signal: the mobile has just been
//!   heard.

use crate::connection::{Connection, Context};
use crate::conntrack::flow_table::{FlowPhase, FlowState, Tracking};
use crate::conntrack::mobile_peer::MobilePeer;
use crate::conntrack::peers;
use crate::conntrack::validate::{Conntrack, Conntracked, Holding, ValidPacket, validate};
use crate::hold::cache::{DEFAULT_FIFO, FIFO};
use crate::hold::journal;
use crate::hold::replay::{INITIAL_WINDOW, LARGEST_INITIAL_WINDOW, Replay};
use crate::hold::store::{Kept, LONGEST_SEGMENT, Store, close_if_reset};
use crate::hold::tail::Tail;
use crate::mechanisms::ack_timing::AckTiming;
use crate::mechanisms::away::{Away, MAX_DOWN, PROBE_INTERVAL, RESUME, Resume};
use crate::middlebox::{Actions, Side};
use crate::per_connection::PerConnection;
use airtcp_core::{
    Bytes, Duration, Flags, Instant, LinkSignal, Payload, Segment, SeqNum, Timestamps, counters,
};
use airtcp_settings::schema::at_least;
use airtcp_settings::{alternatives, choice, settings};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::num::NonZeroU32;

/// Less than the limits on writes of nginx and Apache, 60 s, and of HAProxy, 50 s.
const ACK_PACING: Duration = Duration::from_secs(40);

/// Segments that are acknowledged one at a time to the end: four minutes' supply after
/// [`ACK_PACING`].
const LAST_SEGMENTS: u32 = 8;

/// The longest time between two acknowledgements of a segment: half of the smallest bound on a
/// sender's timer (RFC 6298 §2.5).
const LONGEST_ACK_INTERVAL: Duration = Duration::from_secs(30);

/// A window that opens in steps is opened entirely when nothing was acknowledged for so long: the
/// fixed host has nothing to send, or its own timer is at work.
const STEPS_TIMEOUT: Duration = Duration::from_secs(3);

/// The same so long after the release, whatever is acknowledged. A slow start over a round trip of
/// a second has grown a thousandfold by then: a flow whose window is still not open sends little,
/// as a keyboard does, and would count as interrupted for many minutes.
const LONGEST_STEPS: Duration = Duration::from_secs(10);

/// M-TCP+ for all connections of an intermediate host.
pub type MTcpPlus<P> = PerConnection<P, MTcpPlusState<P>>;

/// A journal note on a connection, for the driver to write down.
pub type MTcpPlusNote<P> = journal::JournalNote<P, MTcpPlusSnapshot<P>>;

/// A connection at one moment, as it is written down.
pub type MTcpPlusSnapshot<P> = journal::ConnectionSnapshot<MTcpPlusState<P>, MTcpPlusConfig>;

settings! {
    /// Settings of M-TCP+.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct MTcpPlusConfig {
        /// Payload bytes that one connection may hold; less than its window leaves data in the
        /// fixed host's charge.
        #[like(FIFO)]
        pub fifo: Bytes = DEFAULT_FIFO,
        /// Event that opens the sender's window again. The paper does not say.
        #[like(RESUME)]
        pub resume: Resume = Resume::Flush,
        /// The longest silence of a mobile before its connections are reset; `None`: for ever.
        #[like(MAX_DOWN)]
        pub max_down: Option<Duration> = None,
        /// Interval of keep-alive probes while the link is down; `None`: no probes.
        #[like(PROBE_INTERVAL)]
        pub probe_interval: Option<Duration> = None,
        /// Timing of the acknowledgements on the mobile's behalf.
        #[keys_of(Acknowledge)]
        pub acknowledge: Acknowledge = Acknowledge::AtOnce,
        /// Opening of the sender's window when the mobile is back. In the paper the sender resumes
        /// with all of its congestion window.
        #[source = "M-TCP+ §3"]
        pub open: Open = Open::AtOnce,
    }
}

impl MTcpPlusConfig {
    fn is_in_time(&self) -> bool {
        matches!(self.acknowledge, Acknowledge::InTime(_))
    }
}

alternatives! {
    /// Timing of the acknowledgements on the mobile's behalf.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[choice("acknowledge", "Timing of the acknowledgements on the mobile's behalf.")]
    #[absent(Acknowledge::AtOnce)]
    #[source = "M-TCP+ §3"]
    pub enum Acknowledge {
        /// as soon as it is held and the mobile is away: the sender takes the round trip to be
        /// shorter than it is
        "at-once" => AtOnce,
        /// no sooner than the mobile would have; to a sender with timestamps one segment at a time,
        /// so that its timer does not expire
        "in-time" => InTime(
            /// Time into an outage at which a sender with timestamps is acknowledged all that is held
            /// but the last 8 segments: its buffer may then take more, and a limit on its program's
            /// writes, if it is longer than this, begins anew. Before and after, it is acknowledged
            /// one segment at a time, at most 30 s apart, so that a user timeout does not run.
            #[kind = at_least(Duration::from_secs(1))]
            #[source = "RFC 5482; Linux, sk_stream_is_writeable"]
            ack_pacing: Duration = ACK_PACING
        ),
    }
}

impl Acknowledge {
    /// In time, with the default of `ack-pacing`.
    pub const IN_TIME: Self = Self::InTime(ACK_PACING);
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
    /// Opening of the fixed host's window when the mobile is back.
    #[derive(Hash, Serialize, Deserialize)]
    #[default(AtOnce)]
    pub enum Open {
        /// all of it at once: the sender may send that as one burst
        AtOnce = "at-once",
        /// as in a slow start: at first half of the replay's congestion window, 10 segments to 64
        /// KiB, and from then on twice what the mobile acknowledges
        InSteps = "in-steps",
    }
}

counters! {
    /// Counters of M-TCP+, over all connections.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct MTcpPlusCounters {
        /// Data segments of which a copy was kept.
        pub segments_copied: u64,
        /// Segments not copied for want of room in the FIFO or in the node's memory.
        pub overflows: u64,
        /// Most payload bytes that one connection held.
        pub held_peak: u64,
        /// Times a fixed host was frozen.
        pub freezes: u64,
        /// Bytes acknowledged before the mobile did.
        pub bytes_acked_early: u64,
        /// Window probes, keep-alives and old data answered with window 0.
        pub answers: u64,
        /// Times copies were replayed from the first to the last.
        pub replays: u64,
        /// Copies that were sent again after a replay, or to find out whether the mobile is there.
        pub copies_resent: u64,
        /// Keep-alives sent to find out whether the mobile is there.
        pub probes_sent: u64,
        /// Pure ACKs of the mobile kept from the fixed host.
        pub acks_suppressed: u64,
        /// Times a fixed host was released.
        pub resumes: u64,
        /// Connections reset because the mobile was away for too long.
        pub resets: u64,
    }
}

/// State of one connection under M-TCP+.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound(
    serialize = "P: Payload + Serialize",
    deserialize = "P: Payload + Deserialize<'de>"
))]
pub struct MTcpPlusState<P> {
    conntrack: Conntrack<Store<P>>,
    phase: MTcpPlusPhase,
    /// Stands still unless what is held is acknowledged [in time](Acknowledge::InTime).
    #[serde(skip)]
    clock: AckTiming,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum MTcpPlusPhase {
    Connected {
        /// The fixed host has sent again what is held, and since then the mobile has neither
        /// acknowledged anything new nor been sent everything: something is lost, or the mobile is
        /// away.
        sent_again: bool,
        /// Distance of the data that the mobile's latest segment reported by SACK beyond its
        /// acknowledgement, in bytes.
        #[serde(skip)]
        reported: Option<NonZeroU32>,
        /// Of a mobile that is back without having been reported away, or before all that is held
        /// was acknowledged. Boxed, as is the tail: few connections have one.
        replay: Option<Box<Replay>>,
        /// The mobile has everything that was replayed, and the fixed host's timer is still long.
        /// Not written down: the fixed host's own timer remains.
        #[serde(skip)]
        tail: Option<Box<Tail>>,
        /// The fixed host's window is not open entirely.
        steps: Option<Box<Steps>>,
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
    paced_acks: Option<PacedAcks>,
    /// The mobile's acknowledgement number and window field when the fixed host was frozen: what
    /// that has sent beyond lies within this window.
    window: (SeqNum, u16),
    /// While there are copies.
    replay: Option<Replay>,
    /// Time at which the connection is reset.
    give_up: Option<Instant>,
}

/// A segment is acknowledged now and then, in time for the sender's timer not to expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PacedAcks {
    since: Instant,
    round_trip: Duration,
    /// Data before this may have been retransmitted, so that it gives no round-trip sample (Karn's
    /// algorithm, RFC 6298 §3): it is acknowledged as soon as it is due.
    from: SeqNum,
    /// Nothing more is acknowledged before.
    next: Instant,
    /// From then on all but the last segments are.
    most: Instant,
}

/// The fixed host's window opens in steps ([`Open::InSteps`]), clocked by the mobile's
/// acknowledgements: each moves the right edge on by twice what it acknowledges (RFC 5681 §3.1,
/// slow start), and so releases that much at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Steps {
    /// Right edge of the window that the fixed host is shown.
    edge: SeqNum,
    /// Bytes that a unit of the window field stands for, at least. The node does not know the
    /// window scale, only what was sent within a window; if that was a part of it, the steps are as
    /// much too large.
    unit: u32,
    /// The window is opened entirely then, and at `end` at the latest.
    due: Instant,
    end: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Link {
    Away(Away),
    Resuming,
    /// The mobile has everything; [`Resume::Probe`].
    AwaitingProbe,
}

impl MTcpPlusPhase {
    const CONNECTED: Self = Self::Connected {
        sent_again: false,
        reported: None,
        replay: None,
        tail: None,
        steps: None,
    };

    fn away(&self) -> Option<&Away> {
        match self {
            Self::Frozen(frozen) => match &frozen.link {
                Link::Away(away) => Some(away),
                Link::Resuming | Link::AwaitingProbe => None,
            },
            Self::Connected { .. } | Self::Reset => None,
        }
    }
}

impl<P> Default for MTcpPlusState<P> {
    fn default() -> Self {
        Self {
            conntrack: Conntrack::default(),
            phase: MTcpPlusPhase::CONNECTED,
            clock: AckTiming::default(),
        }
    }
}

impl<P: Payload> FlowState for MTcpPlusState<P> {
    /// Bytes were acknowledged that the mobile does not have.
    fn is_committed(&self) -> bool {
        match (&self.conntrack.established, &self.phase) {
            (Some(store), MTcpPlusPhase::Frozen(frozen)) => {
                frozen.acked_fh.after(store.peers.mobile_ack())
            }
            _ => false,
        }
    }

    fn tracking(&self) -> Option<&dyn Tracking> {
        Some(&self.conntrack)
    }

    fn phase(&self) -> FlowPhase {
        match &self.phase {
            MTcpPlusPhase::Connected { replay: None, steps: None, .. } => FlowPhase::Connected,
            MTcpPlusPhase::Connected { .. } => FlowPhase::Resuming,
            MTcpPlusPhase::Frozen(frozen) => match frozen.link {
                Link::Away(_) => FlowPhase::Frozen,
                Link::Resuming | Link::AwaitingProbe => FlowPhase::Resuming,
            },
            MTcpPlusPhase::Reset => FlowPhase::Reset,
        }
    }
}

impl<P: Payload> Conntracked<P> for MTcpPlusState<P> {
    type Established = Store<P>;
    fn conntrack(&mut self) -> &mut Conntrack<Store<P>> {
        &mut self.conntrack
    }

    fn last_ack_sent(&self) -> Option<SeqNum> {
        match &self.phase {
            MTcpPlusPhase::Frozen(frozen) => Some(frozen.acked_fh),
            MTcpPlusPhase::Connected { .. } | MTcpPlusPhase::Reset => None,
        }
    }

    fn defers_reset(&self) -> bool {
        matches!(self.phase, MTcpPlusPhase::Frozen(_)) && !self.has_all()
    }
}

type Cx<'a, P> = Context<'a, P, MTcpPlusState<P>>;

impl<P: Payload> Connection<P> for MTcpPlusState<P> {
    type Config = MTcpPlusConfig;
    type Counters = MTcpPlusCounters;

    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, cx: &mut Cx<'_, P>) {
        let Some(segment) = validate(self, now, from, segment, cx.invalid_packets, cx.out) else {
            return;
        };
        self.on_valid(now, from, segment, cx);
        close_if_reset(self, Self::has_all, cx.out);
    }

    fn on_link(&mut self, now: Instant, signal: LinkSignal, cx: &mut Cx<'_, P>) {
        self.on_signal(now, signal, cx);
        close_if_reset(self, Self::has_all, cx.out);
    }

    fn on_timer(&mut self, now: Instant, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        match &mut self.phase {
            MTcpPlusPhase::Frozen(frozen) if frozen.give_up.is_some_and(|due| due <= now) => {
                cx.counters.resets += 1;
                cx.out.inject(Side::Fixed, store.peers.reset_fixed(frozen.acked_fh));
                cx.out.inject(Side::Mobile, store.peers.reset_mobile());
                store.clear();
                self.phase = MTcpPlusPhase::Reset;
            }
            MTcpPlusPhase::Frozen(frozen) => frozen.on_timer(now, store, &self.clock, cx),
            MTcpPlusPhase::Connected { replay, tail, steps, .. } => {
                if steps.take_if(|steps| steps.due <= now).is_some() {
                    let MobilePeer { ack, window, .. } = *store.peers.mobile();
                    cx.out.inject(Side::Fixed, store.peers.acknowledge(ack, window, None));
                }
                if let Some(replay) = replay
                    && replay.deadline() <= now
                {
                    cx.counters.copies_resent += replay.on_timer(now, store, cx.out);
                }
                cx.counters.copies_resent += Tail::on_timer(tail, now, store, cx.out);
            }
            MTcpPlusPhase::Reset => {}
        }
    }

    fn on_passed(&mut self, timestamps: Timestamps) {
        if let Some(store) = &mut self.conntrack.established {
            store.peers.note_passed(Some(timestamps));
        }
    }

    fn probe_interval(config: &MTcpPlusConfig) -> Option<Duration> {
        config.probe_interval
    }

    fn keep_alive_due(&self, interval: Duration) -> Option<Instant> {
        let store = self.conntrack.established.as_ref()?;
        self.phase.away()?.keep_alive_due(interval, store.peers.flow())
    }

    fn on_turn(&mut self, now: Instant, cx: &mut Cx<'_, P>) {
        let Some(store) = &self.conntrack.established else { return };
        if let MTcpPlusPhase::Frozen(frozen) = &mut self.phase
            && let Link::Away(away) = &mut frozen.link
        {
            away.note_keep_alive(now);
            cx.counters.probes_sent += 1;
            cx.out.inject(Side::Mobile, store.peers.keep_alive());
        }
    }

    fn probed_since(&self) -> Option<Instant> {
        self.phase.away()?.probed_since()
    }

    fn down_since(&self) -> Option<Instant> {
        self.phase.away()?.down_since()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let frozen = match &self.phase {
            MTcpPlusPhase::Frozen(frozen) => frozen,
            MTcpPlusPhase::Connected { replay, tail, steps, .. } => {
                let replay = replay.as_ref().map(|replay| replay.deadline());
                let tail = tail.as_ref().and_then(|tail| tail.deadline());
                let steps = steps.as_ref().map(|steps| steps.due);
                return [replay, tail, steps].into_iter().flatten().min();
            }
            MTcpPlusPhase::Reset => return None,
        };
        let replay = frozen.replay.as_ref().map(Replay::deadline);
        let store = self.conntrack.established.as_ref();
        let ack_early = store.and_then(|store| frozen.early_ack_due(store, &self.clock));
        [replay, ack_early, frozen.give_up].into_iter().flatten().min()
    }
}

impl<P: Payload> MTcpPlusState<P> {
    /// A segment that counts.
    fn on_valid(&mut self, now: Instant, from: Side, segment: ValidPacket<P>, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        if self.phase == MTcpPlusPhase::Reset {
            return peers::refuse(from, segment, cx.out);
        }
        let again = from == Side::Fixed && store.peers.is_retransmission(&segment);
        let before = *store.peers.mobile();
        store.note(from, &segment);
        let clock = &mut self.clock;
        if from == Side::Mobile {
            clock.note_ack(now, store.peers.mobile_ack(), store.is_empty());
        }
        let is_released = match (from, &mut self.phase) {
            (_, MTcpPlusPhase::Reset) => false,
            (Side::Fixed, MTcpPlusPhase::Connected { sent_again, reported, replay, tail, .. }) => {
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
                        if let Some(tail) = tail {
                            tail.on_fixed(now, again, &segment, store);
                        }
                        store.forward(segment, cx.out);
                    }
                }
                false
            }
            (
                Side::Mobile,
                MTcpPlusPhase::Connected { sent_again, reported, replay, tail, steps },
            ) => {
                *sent_again &= store.peers.mobile_ack() == before.ack;
                let ack = store.peers.mobile_ack();
                let end = segment.options.sack.end_beyond(ack);
                *reported = end.and_then(|end| NonZeroU32::new(end.bytes_after(ack)));
                if let Some(replaying) = replay {
                    cx.counters.copies_resent +=
                        replaying.on_mobile(now, cx.waiting, &before, &segment, store, cx.out);
                    if replaying.is_done(store) {
                        *tail = tail_after(now, replaying, store, cx);
                        *replay = None;
                    }
                } else {
                    Tail::on_mobile(tail, now, before.ack, &segment, store);
                }
                if let Some(steps) = steps {
                    steps.on_ack(now, ack.bytes_after(before.ack));
                }
                release_to_fixed(steps.as_deref(), ack, segment, cx.out);
                let mobile = store.peers.mobile();
                steps.take_if(|steps| steps.is_over(mobile));
                false
            }
            (Side::Fixed, MTcpPlusPhase::Frozen(frozen)) => {
                frozen.on_fixed(now, again, store, clock, segment, cx)
            }
            (Side::Mobile, MTcpPlusPhase::Frozen(frozen)) => {
                frozen.on_mobile(now, &before, store, clock, segment, cx)
            }
        };
        if let (true, MTcpPlusPhase::Frozen(frozen)) = (is_released, &mut self.phase) {
            self.phase = frozen.release(now, store, cx);
        }
    }

    fn on_signal(&mut self, now: Instant, signal: LinkSignal, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        match (&mut self.phase, signal) {
            (MTcpPlusPhase::Connected { sent_again, replay, tail, .. }, LinkSignal::Up) => {
                // A replay that has timed out began before the outage.
                let is_unheard = replay.as_ref().is_some_and(|replay| !replay.has_begun())
                    || tail.as_ref().is_some_and(|tail| tail.is_unanswered());
                if std::mem::take(sent_again) || is_unheard {
                    cx.counters.replays += 1;
                    *tail = None;
                    *replay = Some(Box::new(Replay::begin(now, cx.waiting, store, cx.out)));
                }
            }
            (MTcpPlusPhase::Reset, LinkSignal::Up) => {
                cx.out.inject(Side::Mobile, store.peers.reset_mobile());
            }
            (MTcpPlusPhase::Connected { sent_again, reported, .. }, _) => {
                let down = signal == LinkSignal::Down;
                self.clock.cancel_sample();
                // What it sent again unreported: its timer has expired, or the mobile has no SACK.
                let is_timed = reported.is_some() || !*sent_again;
                let paced_acks = match cx.config.acknowledge {
                    Acknowledge::InTime(pacing) if is_timed => {
                        PacedAcks::new(now, pacing, *reported, store, &self.clock)
                    }
                    _ => None,
                };
                let frozen = Frozen::new(now, down, paced_acks, store, &self.clock, cx);
                self.phase = MTcpPlusPhase::Frozen(Box::new(frozen));
            }
            (MTcpPlusPhase::Frozen(frozen), LinkSignal::Up) => {
                if frozen.reconnect(now, store, cx) {
                    self.phase = frozen.release(now, store, cx);
                }
            }
            (MTcpPlusPhase::Frozen(frozen), _) => {
                frozen.disconnect(now, signal == LinkSignal::Down, store, cx);
            }
            (MTcpPlusPhase::Reset, _) => {}
        }
    }

    /// The mobile is in reach, and nothing is replayed to it.
    fn has_all(&self) -> bool {
        match &self.phase {
            MTcpPlusPhase::Connected { replay, .. } => replay.is_none(),
            MTcpPlusPhase::Frozen(frozen) => frozen.link == Link::AwaitingProbe,
            MTcpPlusPhase::Reset => false,
        }
    }
}

impl Frozen {
    /// Freezes the fixed host (Algorithm 2).
    fn new<P: Payload>(
        now: Instant,
        down: bool,
        paced_acks: Option<PacedAcks>,
        store: &Store<P>,
        clock: &AckTiming,
        cx: &mut Cx<'_, P>,
    ) -> Self {
        let (acked_fh, echo) = (store.peers.mobile_ack(), store.first_tsval());
        let window = (acked_fh, store.peers.mobile().window);
        cx.counters.freezes += 1;
        cx.out.inject(Side::Fixed, store.peers.acknowledge(acked_fh, 0, None));
        let link = Link::Away(Away::new(now, down));
        let give_up = deadline(now, cx);
        let mut frozen = Self { acked_fh, echo, link, paced_acks, window, replay: None, give_up };
        if frozen.ack_early(now, store, clock, cx) {
            cx.out.inject(Side::Fixed, frozen.answer(store));
        }
        frozen.set_timers(now, store);
        frozen
    }

    /// Acknowledges on the mobile's behalf what is held and due: from here on the node is
    /// responsible for it. True: the fixed host is to get an ACK.
    fn ack_early<P: Payload>(
        &mut self,
        now: Instant,
        store: &Store<P>,
        clock: &AckTiming,
        cx: &mut Cx<'_, P>,
    ) -> bool {
        let before = self.acked_fh;
        let ack_sent = self.ackable(now, store, clock).later(before);
        cx.counters.bytes_acked_early += u64::from(ack_sent.bytes_after(before));
        self.note_ack_sent(now, ack_sent)
    }

    /// Notes that the fixed host gets an ACK of everything before `acked_fh`. True: that is more
    /// than before.
    fn note_ack_sent(&mut self, now: Instant, acked_fh: SeqNum) -> bool {
        let is_more = acked_fh != self.acked_fh;
        self.acked_fh = acked_fh;
        if let (true, Some(paced_acks)) = (is_more, &mut self.paced_acks) {
            paced_acks.on_ack_sent(now);
        }
        is_more
    }

    /// The end of the data that the mobile has acknowledged, or that are held and it is time to
    /// acknowledge.
    fn ackable<P: Payload>(&self, now: Instant, store: &Store<P>, clock: &AckTiming) -> SeqNum {
        let (ack, end) = (store.peers.mobile_ack(), store.data_end());
        let due = clock.early(now).map_or(end, |early| early.earlier(end).later(ack));
        let ack_sent = self.acked_fh.later(ack);
        let limit = self.paced_acks.map(|paced_acks| paced_acks.limit(now, ack_sent, store));
        limit.map_or(due, |limit| due.earlier(limit))
    }

    /// The ACK that the fixed host gets, with its window closed.
    fn answer<P: Payload>(&self, store: &Store<P>) -> Segment<P> {
        store.peers.acknowledge(self.acked_fh, 0, self.echo)
    }

    /// Data are held that it was too early to acknowledge.
    fn is_early<P: Payload>(&self, store: &Store<P>) -> bool {
        store.data_end().after(self.acked_fh.later(store.peers.mobile_ack()))
    }

    /// Time at which to acknowledge more; `None`: nothing waits.
    fn early_ack_due<P: Payload>(&self, store: &Store<P>, clock: &AckTiming) -> Option<Instant> {
        match self.link {
            Link::Away(_) | Link::Resuming if self.is_early(store) => {
                let due = clock.due(self.acked_fh).unwrap_or(Instant::ZERO);
                let next = self.paced_acks.and_then(|paced_acks| paced_acks.wait(self.acked_fh));
                Some(next.map_or(due, |next| due.max(next)))
            }
            _ => None,
        }
    }

    /// The fixed host is on its own again. Data that was not acknowledged early is still replayed.
    fn release<P: Payload>(
        &mut self,
        now: Instant,
        store: &mut Store<P>,
        cx: &mut Cx<'_, P>,
    ) -> MTcpPlusPhase {
        let steps = self.steps(now, store, cx).map(Box::new);
        let is_replaying = self.link != Link::AwaitingProbe && self.is_early(store);
        let tail = match &self.replay {
            Some(replay) if !is_replaying => tail_after(now, replay, store, cx),
            _ => None,
        };
        let replay = is_replaying.then(|| match self.replay.take() {
            Some(replay) if replay.has_begun() => Box::new(replay),
            _ => Box::new(Replay::begin(now, cx.waiting, store, cx.out)),
        });
        MTcpPlusPhase::Connected { sent_again: false, reported: None, replay, tail, steps }
    }

    /// The first step, if the window is to open in steps and is larger than that.
    fn steps<P: Payload>(&self, now: Instant, store: &Store<P>, cx: &Cx<'_, P>) -> Option<Steps> {
        let (from, window) = self.window;
        if cx.config.open == Open::AtOnce || window == 0 {
            return None;
        }
        let sent_end = store.peers.windows().sent_end();
        let unit = sent_end.bytes_after(from).div_ceil(window.into()).next_power_of_two();
        // What the replay's window let pass was not one burst; half of the window may be sent as
        // one, as when a replay begins.
        let window = self.replay.as_ref().and_then(Replay::window).unwrap_or_default();
        let first = (window / 2).clamp(INITIAL_WINDOW * LONGEST_SEGMENT, LARGEST_INITIAL_WINDOW);
        let [due, end] = [STEPS_TIMEOUT, LONGEST_STEPS].map(|time| now + time);
        let steps = Steps { edge: sent_end + first, unit, due, end };
        (!steps.is_over(store.peers.mobile())).then_some(steps)
    }

    /// Another signal that the mobile is out of reach: segments that arrive from it may be older.
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
        self.set_timers(now, store);
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
        if self.acked_fh.after(store.peers.mobile_ack()) {
            self.link = Link::Resuming;
            self.give_up = deadline(now, cx);
            return false;
        }
        let released = cx.config.resume == Resume::Flush;
        if released {
            let MobilePeer { ack, window, .. } = *store.peers.mobile();
            cx.counters.resumes += 1;
            let steps = self.steps(now, store, cx);
            let window = steps.map_or(window, |steps| steps.window(ack, window));
            cx.out.inject(Side::Fixed, store.peers.acknowledge(ack, window, self.echo));
        } else {
            self.await_probe();
        }
        released
    }

    /// The timer of the copies runs while there are any to send again. Keep-alives back off unless a
    /// host sends something.
    fn set_timers<P: Payload>(&mut self, now: Instant, store: &Store<P>) {
        if let Link::Away(away) = &mut self.link {
            away.note_segment(now);
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
        clock: &AckTiming,
        cx: &mut Cx<'_, P>,
    ) {
        if self.early_ack_due(store, clock).is_some_and(|due| due <= now)
            && self.ack_early(now, store, clock, cx)
        {
            cx.out.inject(Side::Fixed, self.answer(store));
        }
        if let Some(replay) = &mut self.replay
            && replay.deadline() <= now
        {
            match &mut self.link {
                // Keep-alives show whether it is there.
                Link::Away(away) if away.is_probed_in_turns(cx.config.probe_interval) => {
                    replay.postpone(now);
                }
                link => {
                    cx.counters.copies_resent += replay.on_timer(now, store, cx.out);
                    if let Link::Away(away) = link {
                        away.note_probe();
                    }
                }
            }
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
        clock: &mut AckTiming,
        segment: ValidPacket<P>,
        cx: &mut Cx<'_, P>,
    ) -> bool {
        let acked_fh = self.acked_fh;
        if again
            && self.paced_acks.is_some_and(|it| segment.seq.at_or_after(it.from.later(acked_fh)))
        {
            self.paced_acks = None;
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
        self.set_timers(now, store);
        let is_more = self.ack_early(now, store, clock, cx);
        cx.counters.answers += u64::from(kept == Kept::Old);
        // An answer that repeats the last one would report a loss.
        if is_more || kept == Kept::Old || !self.is_early(store) {
            cx.out.inject(Side::Fixed, self.answer(store));
        }
        match (&mut self.link, kept) {
            (Link::Away(away), Kept::Old) if away.is_probed_in_turns(cx.config.probe_interval) => {
                cx.out.drop(segment.into_segment());
            }
            (Link::Away(away), Kept::Old) => {
                away.note_probe();
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
                let is_sure = kept == Kept::NoRoom || again || away.is_sent_since_signal(now);
                if in_order && is_sure {
                    away.note_probe();
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
        before: &MobilePeer,
        store: &mut Store<P>,
        clock: &AckTiming,
        segment: ValidPacket<P>,
        cx: &mut Cx<'_, P>,
    ) -> bool {
        if self.give_up.is_some() {
            self.give_up = deadline(now, cx);
        }
        let mobile = *store.peers.mobile();
        let acked_early = self.acked_fh.after(before.ack);
        if let (Link::Resuming, Some(replay)) = (&self.link, &mut self.replay) {
            cx.counters.copies_resent +=
                replay.on_mobile(now, cx.waiting, before, &segment, store, cx.out);
        }
        let lacks = self.acked_fh.after(mobile.ack);
        match &mut self.link {
            Link::Away(away) if !is_back(away, lacks || store.data_end().after(mobile.ack), cx) => {
            }
            Link::AwaitingProbe => {}
            _ if !lacks && acked_early && cx.config.resume == Resume::Probe => self.await_probe(),
            _ if !lacks => {
                cx.counters.resumes += 1;
                let steps = self.steps(now, store, cx);
                release_to_fixed(steps.as_ref(), mobile.ack, segment, cx.out);
                return true;
            }
            Link::Resuming => {}
            Link::Away(_) => {
                self.reconnect(now, store, cx);
            }
        }
        self.set_timers(now, store);
        // The fixed host must see no open window. A gap in what was held may be closed now; but
        // while waiting for a probe the node takes on nothing more.
        let held = match self.link {
            Link::AwaitingProbe => mobile.ack,
            Link::Away(_) | Link::Resuming => self.ackable(now, store, clock),
        };
        let acked_fh = held.later(self.acked_fh);
        if segment.is_pure_ack() && acked_fh == self.acked_fh {
            cx.counters.acks_suppressed += 1;
            cx.out.drop(segment.into_segment());
        } else {
            cx.counters.bytes_acked_early +=
                u64::from(acked_fh.bytes_after(self.acked_fh.later(mobile.ack)));
            self.note_ack_sent(now, acked_fh);
            let closing = peers::closing(&segment, acked_fh);
            cx.out.drop(segment.into_segment());
            cx.out.inject(Side::Fixed, closing);
        }
        false
    }
}

impl Steps {
    /// The mobile has acknowledged so many more bytes.
    fn on_ack(&mut self, now: Instant, bytes: u32) {
        if bytes > 0 {
            self.edge += 2 * bytes;
            self.due = (now + STEPS_TIMEOUT).min(self.end);
        }
    }

    /// The window field to show with the acknowledgement of `ack` where the mobile's is `window`.
    fn window(&self, ack: SeqNum, window: u16) -> u16 {
        let units = self.edge.later(ack).bytes_after(ack).div_ceil(self.unit);
        u16::try_from(units).map_or(window, |units| units.min(window))
    }

    /// All of the mobile's window is shown.
    fn is_over(&self, mobile: &MobilePeer) -> bool {
        mobile.window > 0 && self.window(mobile.ack, mobile.window) == mobile.window
    }
}

/// Sends a segment of the mobile on to the fixed host, with as much of its window as is shown. An
/// acknowledgement older than `latest` brings no window (RFC 9293 §3.10.7.4).
fn release_to_fixed<P: Payload>(
    steps: Option<&Steps>,
    latest: SeqNum,
    segment: ValidPacket<P>,
    out: &mut Actions<P>,
) {
    let shown = match (steps, segment.ack) {
        (Some(steps), Some(ack)) if ack == latest => steps.window(ack, segment.window),
        _ => segment.window,
    };
    if shown == segment.window {
        return out.forward(Side::Fixed, segment.into_segment());
    }
    let narrowed = Segment { window: shown, ..Segment::clone(&segment) };
    out.drop(segment.into_segment());
    out.inject(Side::Fixed, narrowed);
}

impl PacedAcks {
    /// For senders that take the time of each acknowledgement: those with timestamps (RFC 7323 §4).
    /// The mobile has reported data so far beyond its acknowledgement.
    fn new<P: Payload>(
        since: Instant,
        pacing: Duration,
        reported: Option<NonZeroU32>,
        store: &Store<P>,
        clock: &AckTiming,
    ) -> Option<Self> {
        store.first_tsval()?;
        let round_trip = clock.round_trip()?;
        let from = store.peers.mobile_ack() + reported.map_or(0, NonZeroU32::get);
        Some(Self { since, round_trip, from, next: since, most: since + pacing })
    }

    /// Highest number to acknowledge now if everything before `ack_sent` is acknowledged.
    fn limit<P: Payload>(&self, now: Instant, ack_sent: SeqNum, store: &Store<P>) -> SeqNum {
        let segment = store.segment();
        let more = if now < self.next { 0 } else { segment };
        let limit = self.from.later(ack_sent + more);
        if now < self.most {
            limit
        } else {
            limit.later(store.data_end() - LAST_SEGMENTS * segment)
        }
    }

    /// Until when not to acknowledge more than this.
    fn wait(&self, ack_sent: SeqNum) -> Option<Instant> {
        ack_sent.at_or_after(self.from).then_some(self.next)
    }

    /// More was acknowledged, which had been under way since before the freeze. The sender's timer
    /// is now at least as long: a quarter of what a time differs from the mean counts as variation,
    /// and that four times (RFC 6298 §2.3).
    fn on_ack_sent(&mut self, now: Instant) {
        let interval = self.round_trip.max(now.since(self.since) / 2).min(LONGEST_ACK_INTERVAL);
        self.next = now + interval;
        if now < self.most {
            self.next = self.next.min(self.most);
        }
    }
}

/// The mobile is heard: whether it is back. If the node sends no probes, it is enough that the
/// mobile lacks data: a replay to an absent mobile does no harm.
fn is_back<P: Payload>(away: &Away, lacks: bool, cx: &Cx<'_, P>) -> bool {
    let probes = cx.config.probe_interval.is_some();
    away.is_probed() || away.is_down() && lacks && !probes
}

/// Keeps a copy if the segment brings anything new and there is room.
fn keep<P: Payload>(
    now: Instant,
    store: &mut Store<P>,
    clock: &mut AckTiming,
    segment: &ValidPacket<P>,
    cx: &mut Cx<'_, P>,
) -> Kept {
    let kept = store.keep(segment, cx.config.fifo, cx.room);
    match kept {
        Kept::New if cx.config.is_in_time() => clock.note_data(now, segment.seq),
        Kept::Old if segment.seq_len() > 0 => clock.cancel_sample(),
        Kept::New | Kept::Old | Kept::NoRoom => {}
    }
    cx.counters.segments_copied += u64::from(kept == Kept::New);
    cx.counters.overflows += u64::from(kept == Kept::NoRoom);
    cx.counters.held_peak = cx.counters.held_peak.max(store.held() as u64);
    kept
}

/// A replay is over. Acknowledged [in time](Acknowledge::InTime), some of the data give the fixed
/// host a round-trip time as long as the outage. What is acknowledged at once gives none.
fn tail_after<P: Payload>(
    now: Instant,
    replay: &Replay,
    store: &Store<P>,
    cx: &Cx<'_, P>,
) -> Option<Box<Tail>> {
    cx.config.is_in_time().then(|| Box::new(Tail::new(now, replay.patience(), store)))
}

fn deadline<P: Payload>(now: Instant, cx: &Cx<'_, P>) -> Option<Instant> {
    cx.config.max_down.map(|max| now + max)
}
