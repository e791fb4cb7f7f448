//! Holdover: while the mobile is away, the node closes the fixed host's window and acknowledges
//! nothing; when it is back, the node replays what the mobile missed. `docs/holdover.md` is its
//! specification.
//!
//! Read first: docs/holdover.md, RFC 9293 §3.8.6.1 (persist), RFC 3522 (Eifel), RFC 5682 (F-RTO).
//!
//! *Connected*, the node is a plain forwarder that keeps a copy of each data segment until the
//! mobile acknowledges it. When the link fades, or goes down with nothing outstanding, the fixed
//! host's window is closed: the node repeats the mobile's last ACK with window 0, and the mobile's
//! other segments go on with window 0, too. With data outstanding on a link that is down, the
//! window is open until the fixed host's first time-out. Time-outs and probes are answered with
//! window 0. When the mobile is back the copies are replayed, and the first segment it is heard
//! with goes through as it is: a genuine ACK with an open window. What the fixed host sends once
//! more of the replayed data, because it went back to its first unacknowledged byte, is dropped.
//!
//! All signals may be lost, late or false, as for M-TCP+ (see
//! [`m_tcp_plus`](crate::mechanisms::m_tcp_plus)): only [`Up`](LinkSignal::Up), or being heard
//! after a *probe* (see [`away`](crate::mechanisms::away)), says that the mobile is back.

use crate::connection::{Connection, Context};
use crate::conntrack::flow_table::{FlowPhase, FlowState, Tracking};
use crate::conntrack::mobile_peer::MobilePeer;
use crate::conntrack::peers;
use crate::conntrack::validate::{Conntrack, Conntracked, Holding, ValidPacket, validate};
use crate::hold::cache::{DEFAULT_FIFO, FIFO};
use crate::hold::journal;
use crate::hold::replay::Replay;
use crate::hold::store::{Kept, Store, close_if_reset};
use crate::hold::tail::Tail;
use crate::mechanisms::away::{Away, MAX_DOWN, PROBE_INTERVAL};
use crate::middlebox::Side;
use crate::per_connection::PerConnection;
use airtcp_core::{
    Bytes, Duration, Flags, Instant, LinkSignal, Payload, Segment, SeqNum, Timestamps, counters,
};
use airtcp_settings::settings;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Holdover for all connections of an edge node.
pub type Holdover<P> = PerConnection<P, HoldoverState<P>>;

/// A connection at one moment, as it is written down.
pub type HoldoverSnapshot<P> = journal::ConnectionSnapshot<HoldoverState<P>, HoldoverConfig>;

settings! {
    /// Settings of holdover.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct HoldoverConfig {
        /// Payload bytes that one connection may hold; what does not fit is lost in an outage, as
        /// in plain TCP.
        #[like(FIFO)]
        pub fifo: Bytes = DEFAULT_FIFO,
        /// The longest silence of a mobile before its connections are reset; `None`: for ever.
        #[like(MAX_DOWN)]
        pub max_down: Option<Duration> = None,
        /// Interval of keep-alive probes while the link is down; `None`: no probes.
        #[like(PROBE_INTERVAL)]
        pub probe_interval: Option<Duration> = None,
    }
}

counters! {
    /// Counters of holdover, over all connections.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct HoldoverCounters {
        /// Data segments of which a copy was kept.
        pub segments_copied: u64,
        /// Segments not copied for want of room in the FIFO or in the node's memory.
        pub overflows: u64,
        /// Most payload bytes that one connection held.
        pub held_peak: u64,
        /// Times a fixed host was frozen.
        pub freezes: u64,
        /// Retransmissions, window probes and keep-alives answered with window 0.
        pub answers: u64,
        /// Times copies were replayed from the first to the last.
        pub replays: u64,
        /// Copies that were sent again after a replay, or to find out whether the mobile is there.
        pub copies_resent: u64,
        /// Keep-alives sent to find out whether the mobile is there.
        pub probes_sent: u64,
        /// Segments of the fixed host dropped because their copies were replayed, or will be.
        pub data_dropped: u64,
        /// Pure ACKs of the mobile without news kept from the fixed host.
        pub acks_suppressed: u64,
        /// Times a fixed host was released.
        pub resumes: u64,
        /// Connections reset because the mobile was away for too long.
        pub resets: u64,
    }
}

/// State of one connection under holdover. Forgetting it loses nothing: see
/// [`FlowState::is_committed`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound(
    serialize = "P: Payload + Serialize",
    deserialize = "P: Payload + Deserialize<'de>"
))]
pub struct HoldoverState<P> {
    conntrack: Conntrack<Store<P>>,
    phase: HoldoverPhase,
    /// The mobile is back, and has not acknowledged everything that was replayed.
    replay: Option<Replay>,
    /// Data replayed last, which the fixed host may still retransmit, in order.
    replayed: Option<Range<SeqNum>>,
    /// The mobile has everything that was replayed, and the fixed host's timer is still long. Not
    /// written down: the connection is not interrupted.
    #[serde(skip)]
    tail: Option<Box<Tail>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum HoldoverPhase {
    Connected {
        /// The fixed host has sent again what is held, and since then the mobile has neither
        /// acknowledged anything new nor been sent everything: something is lost, or the mobile is
        /// away.
        sent_again: bool,
    },
    Frozen(Frozen),
    /// Given up: each host gets a reset when it is heard.
    Reset,
}

/// The fixed host's window is closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Frozen {
    away: Away,
    /// The fixed host was shown window 0 last.
    is_closed: bool,
    /// Time at which the connection is reset.
    give_up: Option<Instant>,
}

impl HoldoverPhase {
    const CONNECTED: Self = Self::Connected { sent_again: false };
}

impl<P> Default for HoldoverState<P> {
    fn default() -> Self {
        Self {
            conntrack: Conntrack::default(),
            phase: HoldoverPhase::CONNECTED,
            replay: None,
            replayed: None,
            tail: None,
        }
    }
}

impl<P: Payload> FlowState for HoldoverState<P> {
    fn tracking(&self) -> Option<&dyn Tracking> {
        Some(&self.conntrack)
    }

    fn phase(&self) -> FlowPhase {
        match self.phase {
            HoldoverPhase::Reset => FlowPhase::Reset,
            _ if self.replay.is_some() => FlowPhase::Resuming,
            HoldoverPhase::Connected { .. } => FlowPhase::Connected,
            HoldoverPhase::Frozen(_) => FlowPhase::Frozen,
        }
    }
}

impl<P: Payload> Conntracked<P> for HoldoverState<P> {
    type Established = Store<P>;
    fn conntrack(&mut self) -> &mut Conntrack<Store<P>> {
        &mut self.conntrack
    }

    fn last_ack_sent(&self) -> Option<SeqNum> {
        let store = self.conntrack.established.as_ref()?;
        matches!(self.phase, HoldoverPhase::Frozen(_)).then(|| store.peers.mobile_ack())
    }

    fn defers_reset(&self) -> bool {
        matches!(self.phase, HoldoverPhase::Frozen(_))
    }
}

type Cx<'a, P> = Context<'a, P, HoldoverState<P>>;

impl<P: Payload> Connection<P> for HoldoverState<P> {
    type Config = HoldoverConfig;
    type Counters = HoldoverCounters;

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
        if let HoldoverPhase::Frozen(frozen) = &self.phase
            && frozen.give_up.is_some_and(|due| due <= now)
        {
            cx.counters.resets += 1;
            cx.out.inject(Side::Fixed, store.peers.reset_fixed(store.peers.mobile_ack()));
            cx.out.inject(Side::Mobile, store.peers.reset_mobile());
            store.clear();
            self.phase = HoldoverPhase::Reset;
            self.replay = None;
            return;
        }
        if let Some(replay) = &mut self.replay
            && replay.deadline() <= now
        {
            cx.counters.copies_resent += replay.on_timer(now, store, cx.out);
        }
        cx.counters.copies_resent += Tail::on_timer(&mut self.tail, now, store, cx.out);
    }

    fn probe_interval(config: &HoldoverConfig) -> Option<Duration> {
        config.probe_interval
    }

    fn keep_alive_due(&self, interval: Duration) -> Option<Instant> {
        let HoldoverPhase::Frozen(frozen) = &self.phase else { return None };
        let store = self.conntrack.established.as_ref()?;
        frozen.away.keep_alive_due(interval, store.peers.flow())
    }

    fn on_turn(&mut self, now: Instant, cx: &mut Cx<'_, P>) {
        let HoldoverPhase::Frozen(frozen) = &mut self.phase else { return };
        let Some(store) = &self.conntrack.established else { return };
        frozen.away.note_keep_alive(now);
        cx.counters.probes_sent += 1;
        cx.out.inject(Side::Mobile, store.peers.keep_alive());
    }

    fn probed_since(&self) -> Option<Instant> {
        match &self.phase {
            HoldoverPhase::Frozen(frozen) => frozen.away.probed_since(),
            HoldoverPhase::Connected { .. } | HoldoverPhase::Reset => None,
        }
    }

    fn down_since(&self) -> Option<Instant> {
        match &self.phase {
            HoldoverPhase::Frozen(frozen) => frozen.away.down_since(),
            HoldoverPhase::Connected { .. } | HoldoverPhase::Reset => None,
        }
    }

    fn on_passed(&mut self, timestamps: Timestamps) {
        if let Some(store) = &mut self.conntrack.established {
            store.peers.note_passed(Some(timestamps));
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let give_up = match &self.phase {
            HoldoverPhase::Frozen(frozen) => frozen.give_up,
            HoldoverPhase::Connected { .. } | HoldoverPhase::Reset => None,
        };
        let replay = self.replay.as_ref().map(Replay::deadline);
        let tail = self.tail.as_ref().and_then(|tail| tail.deadline());
        [replay, tail, give_up].into_iter().flatten().min()
    }
}

impl<P: Payload> HoldoverState<P> {
    /// A segment that counts.
    fn on_valid(&mut self, now: Instant, from: Side, segment: ValidPacket<P>, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        if matches!(self.phase, HoldoverPhase::Reset) {
            return peers::refuse(from, segment, cx.out);
        }
        let again = from == Side::Fixed && store.peers.is_retransmission(&segment);
        let before = *store.peers.mobile();
        store.note(from, &segment);
        match (from, &mut self.phase) {
            (_, HoldoverPhase::Reset) => {}
            (Side::Fixed, HoldoverPhase::Connected { sent_again }) => {
                let replay = &mut self.replay;
                let is_taken = replay.as_ref().is_some_and(|r| r.takes(store, &segment));
                let kept = keep(store, &segment, cx);
                let is_needless = is_needless(&mut self.replayed, &segment);
                match (kept, replay) {
                    (Kept::New, Some(replay)) if is_taken => {
                        replay.send(now, &segment, store, cx.out)
                    }
                    (Kept::Old, _) if is_taken || is_needless => {
                        cx.counters.data_dropped += 1;
                        cx.out.drop(segment.into_segment());
                    }
                    (_, replay) => {
                        *sent_again |=
                            replay.is_none() && kept == Kept::Old && store.lacks(&segment);
                        replay.iter_mut().for_each(|replay| replay.note_passed(&segment));
                        if let Some(tail) = &mut self.tail {
                            tail.on_fixed(now, again, &segment, store);
                        }
                        store.forward(segment, cx.out);
                    }
                }
            }
            (Side::Fixed, HoldoverPhase::Frozen(frozen)) => {
                frozen.away.note_segment(now);
                let again = again || frozen.away.is_sent_since_signal(now);
                frozen.on_fixed(now, again, &mut self.replay, store, segment, cx);
            }
            (Side::Mobile, _) => self.on_mobile(now, &before, segment, cx),
        }
    }

    fn on_signal(&mut self, now: Instant, signal: LinkSignal, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        let down = signal == LinkSignal::Down;
        match (&mut self.phase, signal) {
            (HoldoverPhase::Connected { sent_again }, LinkSignal::Up) => {
                // The mobile was never reported down, or it was heard once more after a signal that
                // came early. The fixed host is responsible, and retransmits what is lost.
                let is_unheard = self.replay.as_ref().is_some_and(|replay| !replay.has_begun())
                    || self.tail.as_ref().is_some_and(|tail| tail.is_unanswered());
                if std::mem::take(sent_again) || is_unheard {
                    cx.counters.replays += 1;
                    self.replay = Some(Replay::begin(now, cx.waiting, store, cx.out));
                    self.tail = None;
                }
            }
            (HoldoverPhase::Connected { .. }, _) => {
                cx.counters.freezes += 1;
                let mut away = Away::new(now, down);
                let is_closed = shown_window(&away, store) == 0;
                if is_closed {
                    let ack = store.peers.mobile_ack();
                    cx.out.inject(Side::Fixed, store.peers.acknowledge(ack, 0, None));
                }
                away.note_segment(now);
                self.phase =
                    HoldoverPhase::Frozen(Frozen { away, is_closed, give_up: deadline(now, cx) });
                self.replay = None;
                self.replayed = None;
                self.tail = None;
            }
            (HoldoverPhase::Frozen(frozen), LinkSignal::Up) => {
                frozen.away.on_up();
                frozen.give_up = deadline(now, cx);
                if store.is_empty() {
                    // No ACK will come by itself: repeat the mobile's last one.
                    let MobilePeer { ack, window, .. } = *store.peers.mobile();
                    cx.out.inject(Side::Fixed, store.peers.acknowledge(ack, window, None));
                    cx.counters.resumes += 1;
                    self.phase = HoldoverPhase::CONNECTED;
                } else {
                    self.replay(now, cx);
                }
            }
            (HoldoverPhase::Frozen(frozen), _) => {
                if self.replay.take().is_some() {
                    frozen.give_up = deadline(now, cx);
                }
                frozen.away.on_signal(now, down);
                frozen.away.note_segment(now);
                frozen.open(store, cx);
            }
            (HoldoverPhase::Reset, LinkSignal::Up) => {
                cx.out.inject(Side::Mobile, store.peers.reset_mobile());
            }
            (HoldoverPhase::Reset, _) => {}
        }
    }

    /// The mobile is in reach, and nothing is replayed to it.
    fn has_all(&self) -> bool {
        FlowState::phase(self) == FlowPhase::Connected
    }

    /// A segment of the mobile, already noted; `before` is its end as known until then.
    fn on_mobile(
        &mut self,
        now: Instant,
        before: &MobilePeer,
        segment: ValidPacket<P>,
        cx: &mut Cx<'_, P>,
    ) {
        let Some(store) = &mut self.conntrack.established else { return };
        let mobile = *store.peers.mobile();
        let progress = mobile.ack.after(before.ack);
        if let Some(replay) = &mut self.replay {
            cx.counters.copies_resent +=
                replay.on_mobile(now, cx.waiting, before, &segment, store, cx.out);
            if replay.is_done(store) {
                self.tail = Some(Box::new(Tail::new(now, replay.patience(), store)));
                self.replay = None;
            }
        } else {
            Tail::on_mobile(&mut self.tail, now, before.ack, &segment, store);
        }
        let frozen = match &mut self.phase {
            HoldoverPhase::Frozen(frozen) => frozen,
            HoldoverPhase::Connected { sent_again } => {
                *sent_again &= !progress;
                return cx.out.forward(Side::Fixed, segment.into_segment());
            }
            HoldoverPhase::Reset => return cx.out.forward(Side::Fixed, segment.into_segment()),
        };
        if frozen.away.is_probed() {
            self.phase = HoldoverPhase::CONNECTED;
            cx.counters.resumes += 1;
            cx.out.forward(Side::Fixed, segment.into_segment());
            if self.replay.is_none() {
                // It is back without a signal.
                self.replay(now, cx);
            }
            return;
        }
        if frozen.give_up.is_some() {
            frozen.give_up = deadline(now, cx);
        }
        // It may have been on the way when the signal came: its acknowledgement counts, its window
        // does not.
        if segment.is_pure_ack() && !progress {
            cx.counters.acks_suppressed += 1;
            cx.out.drop(segment.into_segment());
        } else if shown_window(&frozen.away, store) > 0 {
            frozen.is_closed = false;
            cx.out.forward(Side::Fixed, segment.into_segment());
        } else {
            frozen.is_closed = true;
            let closing = peers::closing(&segment, mobile.ack);
            cx.out.drop(segment.into_segment());
            cx.out.inject(Side::Fixed, closing);
        }
    }

    /// Sends the mobile all copies, and repeats them until they arrive.
    fn replay(&mut self, now: Instant, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        if let Some(until) = store.end() {
            cx.counters.replays += 1;
            self.replayed = Some(store.peers.mobile_ack()..until);
            self.replay = Some(Replay::begin(now, cx.waiting, store, cx.out));
        }
    }
}

impl Frozen {
    /// More may be outstanding than before: see [`shown_window`].
    fn open<P: Payload>(&mut self, store: &Store<P>, cx: &mut Cx<'_, P>) {
        let window = shown_window(&self.away, store);
        if window > 0 && std::mem::take(&mut self.is_closed) {
            let ack = store.peers.mobile_ack();
            cx.out.inject(Side::Fixed, store.peers.acknowledge(ack, window, None));
        }
    }

    /// A segment of the fixed host; `again`: it has sent all of it before, or left it after the
    /// last signal.
    fn on_fixed<P: Payload>(
        &mut self,
        now: Instant,
        again: bool,
        replay: &mut Option<Replay>,
        store: &mut Store<P>,
        segment: ValidPacket<P>,
        cx: &mut Cx<'_, P>,
    ) {
        let ack = store.peers.mobile_ack();
        if segment.is_pure_ack() && !segment.seq.before(ack) {
            return store.forward(segment, cx.out);
        }
        // One byte where new data belongs; of old data one byte, or none (keep-alives, Linux).
        let probe = segment.payload.len() <= 1
            && segment.seq.at_or_before(store.data_end())
            && !segment.flags.contains(Flags::FIN);
        match if probe { Kept::Old } else { keep(store, &segment, cx) } {
            Kept::Old => {
                // A time-out sends the first byte. What comes before it, a tail loss probe, would
                // have the window closed when it expires for the first time.
                if probe || segment.seq.at_or_before(ack) || !self.away.is_down() {
                    cx.counters.answers += 1;
                    self.is_closed = true;
                    cx.out.inject(Side::Fixed, store.peers.acknowledge(ack, 0, None));
                }
                if replay.is_some() || self.away.is_probed_in_turns(cx.config.probe_interval) {
                    return cx.out.drop(segment.into_segment());
                }
                self.away.note_probe();
                let resent = store.resend_first(cx.out);
                cx.counters.copies_resent += resent;
                if resent == 0 {
                    store.forward(segment, cx.out);
                } else {
                    cx.out.drop(segment.into_segment());
                }
            }
            // The copy is what will be sent.
            Kept::New if self.away.is_down() && segment.seq.after(ack) => self.open(store, cx),
            Kept::New if replay.is_some() => {
                replay.iter_mut().for_each(|replay| replay.send(now, &segment, store, cx.out));
            }
            // What the mobile waits for must be answered, and may be a retransmission of data that
            // did not come through here or found no room.
            Kept::New | Kept::NoRoom => {
                if (self.away.is_down() || again) && segment.seq.at_or_before(ack) {
                    self.away.note_probe();
                }
                store.forward(segment, cx.out);
            }
        }
    }
}

/// The window that the fixed host is shown. On a fading link ACKs still come: closed, it leaves
/// nothing outstanding. Once the link is down, what is outstanding stays so, and the fixed host's
/// timer expires: Linux then keeps what it needs to undo that only if the window is open.
fn shown_window<P: Payload>(away: &Away, store: &Store<P>) -> u16 {
    let is_outstanding = store.peers.windows().sent_end().after(store.peers.mobile_ack());
    if away.is_down() && is_outstanding { store.peers.mobile().window } else { 0 }
}

/// The segment brings nothing but data that was replayed, for the first time since. The next time,
/// something was lost: then it must pass.
fn is_needless<P: Payload>(replayed: &mut Option<Range<SeqNum>>, segment: &Segment<P>) -> bool {
    let Some(range) = replayed else { return false };
    let end = segment.seq_end();
    if end.after(range.end) {
        // The fixed host is beyond.
        *replayed = None;
        return false;
    }
    let needless = segment.seq_len() > 0 && segment.seq.at_or_after(range.start);
    if needless {
        range.start = end;
    }
    needless
}

/// Keeps a copy if the segment brings anything new and there is room.
fn keep<P: Payload>(store: &mut Store<P>, segment: &ValidPacket<P>, cx: &mut Cx<'_, P>) -> Kept {
    let kept = store.keep(segment, cx.config.fifo, cx.room);
    cx.counters.segments_copied += u64::from(kept == Kept::New);
    cx.counters.overflows += u64::from(kept == Kept::NoRoom);
    cx.counters.held_peak = cx.counters.held_peak.max(store.held() as u64);
    kept
}

fn deadline<P: Payload>(now: Instant, cx: &Cx<'_, P>) -> Option<Instant> {
    cx.config.max_down.map(|max| now + max)
}
