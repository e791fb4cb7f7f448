//! M-TCP at the supervisor host (M-TCP §2.2, §3.4; decisions below).
//!
//! Read first: M-TCP §2.2 (the idea), §3.4.3 (what the supervisor host does with each segment), RFC
//! 9293 §3.8.6.1 (zero windows).
//!
//! The supervisor host forwards and copies data for the mobile, and acknowledges to the fixed host
//! one byte less than the mobile does. When the mobile has acknowledged nothing for
//! [`MTcpConfig::timer`], an ACK of the withheld byte, the *persist packet*, closes the window: the
//! fixed host persists instead of backing off (state SHRINK). Meanwhile the copies are sent to the
//! mobile until it answers; its answer opens the window again. That is [`Detect::Timer`].
//!
//! With [`Detect::Signal`] the supervisor host does what the M-TCP+ paper says of M-TCP (§2.5) and
//! no more: it withholds a byte, and gives it when a disconnection is detected, here by the link's
//! signal. It keeps no copies and retransmits nothing, so events A.1, A.2, B.2 and C do not occur.
//! What was on the way when the signal came is the fixed host's: its timer runs if it persists only
//! with nothing outstanding.
//!
//! Events, by the letters and numbers used below (M-TCP §3.4.3, Figs. 10 to 12):
//! - A, a segment from the fixed host: A.1 new data, A.2 old data that is queued, A.3 old data that
//!   the mobile has acknowledged, A.4 a window probe in SHRINK.
//! - B, an ACK from the mobile: B.1 a new one, B.2 a duplicate, B.3 any in SHRINK. B.4: the
//!   acknowledgements to the fixed host never go back.
//! - C, the timer with data queued. E, the timer with nothing queued, which releases the withheld
//!   byte.
//!
//! Nothing is acknowledged before the mobile has it, so losing the state loses no byte. What has no
//! copy (no room, no state) is retransmitted by the fixed host, as if M-TCP were absent.
//!
//! Decisions, where the paper is silent:
//! - The first ACK of the mobile passes as it is: it may be the handshake's, or a repetition of one
//!   from before the node's start. Until it comes, and with it what a generated ACK needs, nothing
//!   is copied; until a second one confirms it, no data counts as old (A.3): a wrong first ACK
//!   would starve the connection.
//! - Only pure ACKs are rewritten. Other segments of the mobile pass unchanged, with any unknown
//!   options; their ACK number gives the withheld byte away, and the persist packet is then a
//!   window update, which closes the window just as well (RFC 9293 §3.10.7.4).
//! - A duplicate ACK is local only if the byte the mobile waits for is queued. Otherwise it was
//!   lost before it came here (or had no room), and the fixed host must hear of it even if later
//!   data is queued (B.2 looks at the queue's emptiness only). Such a duplicate also restarts the
//!   timer: the mobile is there.
//! - While the mobile itself closes its window, nothing is withheld, copied or retransmitted: the
//!   fixed host persists by itself, and its probes are the mobile's to answer.
//! - An old segment passes, instead of being answered for the mobile (A.3), when it brings the
//!   mobile an acknowledgement or window, and when it is one byte or less: a keep-alive, which the
//!   mobile itself must answer.
//! - In SHRINK any segment one number long counts as a window probe (A.4), and the empty one before
//!   the window that Linux sends.
//! - With [`Detect::Timer`] link signals are ignored: M-TCP detects outages by itself. With
//!   [`Detect::Signal`] they may be lost, late or false, as for M-TCP+ (see
//!   [`m_tcp_plus`](crate::mechanisms::m_tcp_plus)): the mobile is back with
//!   [`Up`](LinkSignal::Up), or when it is heard after a retransmission or probe of the fixed host,
//!   which in SHRINK go on to it. Before that its acknowledgements count, and its window does not.
//!   With [`Resume::Probe`] only the latter opens the window.
//! - A mobile that never answers would be sent copies for ever, and the fixed host kept in persist:
//!   after [`MTcpConfig::max_down`], checked when the timer expires, both are reset. A host that
//!   missed the reset, as a mobile out of reach does, gets another when it is heard.
//!
//! Known weaknesses, kept: the timer is constant and takes any 0.4 s without an ACK for an outage.
//! Without timestamps a segment is timed until the ACK after its own. What the fixed host
//! retransmits in SHRINK goes to the mobile and stays unanswered.

use crate::connection::{Connection, Context};
use crate::conntrack::flow_table::{FlowPhase, FlowState, Tracking};
use crate::conntrack::mobile_peer::MobilePeer;
use crate::conntrack::peers;
use crate::conntrack::validate::{Conntrack, Conntracked, ValidPacket, validate};
use crate::hold::cache::{DEFAULT_FIFO, FIFO};
use crate::hold::store::{Kept, Store};
use crate::mechanisms::away::{Away, MAX_DOWN, RESUME, Resume};
use crate::middlebox::Side;
use crate::per_connection::PerConnection;
use airtcp_core::{
    Bytes, Duration, Flags, Instant, LinkSignal, Payload, Segment, SeqNum, counters,
};
use airtcp_settings::schema::{POSITIVE_TIME, at_least};
use airtcp_settings::{alternatives, choice, settings};

/// Duplicate ACKs that make the supervisor host retransmit (RFC 5681 §3.2).
const DUPLICATE_ACK_THRESHOLD: u32 = 3;

/// A shorter timer would take all of the node's time.
const SHORTEST_TIMER: Duration = Duration::from_millis(1);

/// M-TCP for all connections of a supervisor host.
pub type MTcp<P> = PerConnection<P, MTcpState<P>>;

settings! {
    /// Settings of M-TCP.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MTcpConfig {
        /// Evidence by which the mobile is taken for gone.
        #[keys_of(Detect)]
        pub detect: Detect = Detect::Timer,
        /// Silence of the mobile after which it is taken for disconnected, and the interval of
        /// local retransmission; constant.
        #[kind = at_least(SHORTEST_TIMER)]
        #[source = "M-TCP §2.2, §3.4.3"]
        #[only("detect" in Detect::BY_TIMER)]
        pub timer: Duration = Duration::from_millis(400),
        /// Copies that the timer sends again to a disconnected mobile, after the whole queue the
        /// first time.
        #[only("detect" in Detect::BY_TIMER)]
        pub retransmit: Retransmit = Retransmit::Head,
        /// The withheld byte is acknowledged when nothing was outstanding for so long (event E).
        #[kind = POSITIVE_TIME]
        pub release: Duration = Duration::from_millis(100),
        /// Most payload bytes queued for one connection.
        #[like(FIFO)]
        #[only("detect" in Detect::BY_TIMER)]
        pub fifo: Bytes = DEFAULT_FIFO,
        /// Event that opens the fixed host's window again after a signal closed it. The paper does
        /// not say.
        #[like(RESUME)]
        #[only("detect" in Detect::BY_SIGNAL)]
        pub resume: Resume = Resume::Flush,
        /// The longest silence of a mobile in SHRINK; `None`: for ever.
        #[like(MAX_DOWN)]
        pub max_down: Option<Duration> = None,
    }
}

alternatives! {
    /// Evidence by which the mobile is taken for gone.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice("detect", "Evidence by which the mobile is taken for gone.")]
    #[absent(Detect::Timer)]
    #[source = "M-TCP §3.4.3; M-TCP+ §2.5"]
    pub enum Detect {
        /// its silence
        "timer" => Timer,
        /// the link's signal; nothing is queued or retransmitted here
        "signal" => Signal,
    }
}

impl Detect {
    /// With these words copies are held.
    pub(crate) const BY_TIMER: &'static [&'static str] = &[Self::Timer.word()];
    /// With these words link signals count.
    pub(crate) const BY_SIGNAL: &'static [&'static str] = &[Self::Signal.word()];
}

choice! {
    /// Copies that a further expiry of the timer sends.
    pub enum Retransmit {
        /// the first copy: enough to make the mobile answer, and it does not flood the wireless
        /// queue
        Head = "head",
        /// all copies (M-TCP §3.4.3)
        All = "all",
    }
}

counters! {
    /// Counters of M-TCP since the start.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct MTcpCounters {
        /// Data segments queued.
        pub segments_copied: u64,
        /// New data segments that found no room in the queue.
        pub overflows: u64,
        /// ACKs rewritten to acknowledge one byte less.
        pub acks_reduced: u64,
        /// ACKs sent for a withheld byte after the connection fell idle (event E).
        pub releases: u64,
        /// Duplicate ACKs kept from fixed hosts.
        pub duplicates_suppressed: u64,
        /// Segments sent to mobiles again.
        pub local_retransmissions: u64,
        /// Persist packets sent: times that a mobile was taken for gone.
        pub persist_packets: u64,
        /// Times that a mobile taken for gone was heard again.
        pub reconnections: u64,
        /// Window probes answered for a mobile taken for gone.
        pub probes_answered: u64,
        /// Old segments from fixed hosts dropped, and answered with the last ACK.
        pub old_segments_answered: u64,
        /// Connections reset because the mobile was gone for too long.
        pub resets: u64,
    }
}

/// M-TCP for one connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MTcpState<P> {
    /// Its copies are the queue; `ends.mobile_ack` is the paper's `last_ack`.
    conntrack: Conntrack<Store<P>>,
    /// Acknowledgement and window that the fixed host sent last.
    fixed_ack: Option<(SeqNum, u16)>,
    /// The mobile has acknowledged data that came through here.
    is_trusted: bool,
    /// The fixed host got an ACK of one byte less than the mobile acknowledged: `sent_ack` is
    /// `last_ack - 1`, otherwise `last_ack`. So it never goes back (B.4).
    withheld: bool,
    /// The mobile is taken for gone, and the fixed host's window is closed.
    shrunk: bool,
    /// In SHRINK because of a signal.
    away: Option<Away>,
    /// In SHRINK: when to reset the connection.
    give_up: Option<Instant>,
    /// Given up: each host gets a reset when it is heard.
    is_reset: bool,
    /// Duplicates of the last ACK, counted up to the threshold.
    duplicates: u32,
    /// The fixed host has sent its FIN.
    fin_seen: bool,
    /// With data queued the retransmission timer, else the time to release the withheld byte; after
    /// a signal the time to give up.
    deadline: Option<Instant>,
}

impl<P> Default for MTcpState<P> {
    fn default() -> Self {
        Self {
            conntrack: Conntrack::default(),
            fixed_ack: None,
            is_trusted: false,
            withheld: false,
            shrunk: false,
            away: None,
            give_up: None,
            is_reset: false,
            duplicates: 0,
            fin_seen: false,
            deadline: None,
        }
    }
}

/// Never committed: what is held, the fixed host holds too.
impl<P: Payload> FlowState for MTcpState<P> {
    fn tracking(&self) -> Option<&dyn Tracking> {
        Some(&self.conntrack)
    }

    fn phase(&self) -> FlowPhase {
        match self {
            Self { is_reset: true, .. } => FlowPhase::Reset,
            Self { shrunk: true, .. } => FlowPhase::Frozen,
            _ => FlowPhase::Connected,
        }
    }
}

impl<P: Payload> Conntracked<P> for MTcpState<P> {
    type Established = Store<P>;
    fn conntrack(&mut self) -> &mut Conntrack<Store<P>> {
        &mut self.conntrack
    }

    fn last_ack_sent(&self) -> Option<SeqNum> {
        let store = self.conntrack.established.as_ref()?;
        self.shrunk.then(|| store.peers.mobile_ack())
    }
}

type Cx<'a, P> = Context<'a, P, MTcpState<P>>;

impl<P: Payload> Connection<P> for MTcpState<P> {
    type Config = MTcpConfig;
    type Counters = MTcpCounters;

    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, cx: &mut Cx<'_, P>) {
        let Some(segment) = validate(self, now, from, segment, cx.invalid_packets, cx.out) else {
            return;
        };
        let Some(store) = &mut self.conntrack.established else { return };
        if self.is_reset {
            return peers::refuse(from, segment, cx.out);
        }
        let again = from == Side::Fixed && store.peers.is_retransmission(&segment);
        let before = *store.peers.mobile();
        store.note(from, &segment);
        match from {
            Side::Fixed => self.on_fixed(now, again, segment, cx),
            Side::Mobile => self.on_mobile(now, &before, segment, cx),
        }
    }

    fn on_link(&mut self, now: Instant, signal: LinkSignal, cx: &mut Cx<'_, P>) {
        let Some(store) = &self.conntrack.established else { return };
        let (last_ack, window) = (store.peers.mobile_ack(), store.peers.mobile().window);
        let down = signal == LinkSignal::Down;
        match (&mut self.away, signal) {
            // The mobile answers the fixed host's next probe.
            (Some(_), LinkSignal::Up) if cx.config.resume == Resume::Probe => {}
            (Some(_), LinkSignal::Up) => {
                cx.counters.reconnections += 1;
                cx.out.inject(Side::Fixed, store.peers.acknowledge(last_ack, window, None));
                self.shrunk = false;
                self.away = None;
                self.give_up = None;
                self.deadline = None;
            }
            (Some(away), _) => away.on_signal(now, down),
            (None, LinkSignal::Up) => {}
            (None, _) => {
                let listens = cx.config.detect == Detect::Signal;
                if listens && !self.shrunk && !self.is_reset {
                    cx.counters.persist_packets += 1;
                    cx.out.inject(Side::Fixed, store.peers.acknowledge(last_ack, 0, None));
                    self.withheld = false;
                    self.shrunk = true;
                    self.away = Some(Away::new(now, down));
                    self.give_up = cx.config.max_down.map(|max| now + max);
                    self.deadline = self.give_up;
                }
            }
        }
    }

    /// C, or E when nothing is queued.
    fn on_timer(&mut self, now: Instant, cx: &mut Cx<'_, P>) {
        self.deadline = None;
        let Some(store) = &mut self.conntrack.established else { return };
        let last_ack = store.peers.mobile_ack();
        if store.is_empty() && self.away.is_none() {
            if std::mem::replace(&mut self.withheld, false) {
                cx.counters.releases += 1;
                let window = store.peers.mobile().window;
                cx.out.inject(Side::Fixed, store.peers.acknowledge(last_ack, window, None));
            }
            return;
        }
        if self.give_up.is_some_and(|due| due <= now) {
            cx.counters.resets += 1;
            cx.out.inject(Side::Fixed, store.peers.reset_fixed(last_ack));
            cx.out.inject(Side::Mobile, store.peers.reset_mobile());
            store.clear();
            self.shrunk = false;
            self.away = None;
            self.is_reset = true;
            return;
        }
        if self.away.is_some() {
            self.deadline = self.give_up;
            return;
        }
        let first = !std::mem::replace(&mut self.shrunk, true);
        if first {
            cx.counters.persist_packets += 1;
            self.withheld = false;
            self.give_up = cx.config.max_down.map(|max| now + max);
            cx.out.inject(Side::Fixed, store.peers.acknowledge(last_ack, 0, None));
        }
        cx.counters.local_retransmissions += match cx.config.retransmit {
            Retransmit::Head if !first => store.resend_first(cx.out),
            Retransmit::Head | Retransmit::All => store.replay(cx.out),
        };
        self.deadline = Some(now + cx.config.timer.max(SHORTEST_TIMER));
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

impl<P: Payload> MTcpState<P> {
    /// A: a segment from the fixed host, already noted; `again`: it has sent all of it before.
    fn on_fixed(&mut self, now: Instant, again: bool, segment: ValidPacket<P>, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        let last_ack = store.peers.mobile_ack();
        let window = if self.shrunk { 0 } else { store.peers.mobile().window };
        let fixed_ack = segment.ack.map(|ack| (ack, segment.window));
        let is_news = fixed_ack != self.fixed_ack || !segment.options.sack.is_empty();
        self.fixed_ack = fixed_ack;
        self.fin_seen |= segment.flags.contains(Flags::FIN);
        if self.shrunk && is_probe(&segment, last_ack) {
            // A.4
            cx.counters.probes_answered += 1;
            let echo = segment.options.timestamps.map(|timestamps| timestamps.value);
            match &mut self.away {
                Some(away) => {
                    away.note_probe();
                    store.forward(segment, cx.out);
                }
                None => cx.out.drop(segment.into_segment()),
            }
            return cx.out.inject(Side::Fixed, store.peers.acknowledge(last_ack, 0, echo));
        }
        let is_old = self.is_trusted && segment.seq_end().at_or_before(last_ack);
        if is_old && segment.payload.len() > 1 && !is_news {
            // A.3
            cx.counters.old_segments_answered += 1;
            self.withheld = false;
            cx.out.drop(segment.into_segment());
            return cx.out.inject(Side::Fixed, store.peers.acknowledge(last_ack, window, None));
        }
        if let Some(away) = &mut self.away
            && (again || away.is_sent_since_signal(now))
            && segment.seq_len() > 0
        {
            away.note_probe();
        }
        // The mobile's own window: closed by it, not by us.
        if store.peers.mobile().window > 0 && cx.config.detect == Detect::Timer {
            let was_empty = store.is_empty();
            match store.keep(&segment, cx.config.fifo, cx.room) {
                Kept::New => cx.counters.segments_copied += 1, // A.1
                Kept::Old => {}                                // A.2
                Kept::NoRoom => cx.counters.overflows += 1,
            }
            store.forward(segment, cx.out);
            if was_empty && !store.is_empty() {
                self.restart_timer(now, cx.config);
            }
        } else {
            store.forward(segment, cx.out);
        }
    }

    /// B: a segment from the mobile, already noted; `before` is its end as known until then.
    fn on_mobile(
        &mut self,
        now: Instant,
        before: &MobilePeer,
        segment: ValidPacket<P>,
        cx: &mut Cx<'_, P>,
    ) {
        let (Some(store), Some(ack)) = (&mut self.conntrack.established, segment.ack) else {
            return;
        };
        let (last_ack, window) = (store.peers.mobile_ack(), store.peers.mobile().window);
        let is_new = ack.after(before.ack);
        let is_duplicate = before.is_repeated_by(&segment);
        if is_new {
            self.is_trusted = true;
            self.duplicates = 0;
        }
        if self.away.is_some_and(|away| !away.is_probed()) {
            // It was on the way when the signal came.
            self.give_up = cx.config.max_down.map(|max| now + max);
            let closing = peers::closing(&segment, last_ack);
            if segment.is_pure_ack() && !is_new {
                cx.counters.duplicates_suppressed += 1;
                return cx.out.drop(segment.into_segment());
            }
            cx.out.drop(segment.into_segment());
            return cx.out.inject(Side::Fixed, closing);
        }
        if is_duplicate && !self.shrunk && store.holds_next() {
            // B.2
            cx.counters.duplicates_suppressed += 1;
            cx.out.drop(segment.into_segment());
            if self.duplicates < DUPLICATE_ACK_THRESHOLD {
                self.duplicates += 1;
                if self.duplicates == DUPLICATE_ACK_THRESHOLD {
                    cx.counters.local_retransmissions += store.resend_first(cx.out);
                }
            }
            return;
        }
        let withholds = window > 0 && !(store.is_empty() && self.fin_seen);
        let is_last = segment.is_pure_ack() && ack == last_ack;
        if is_last && withholds && (is_new || self.withheld && !is_duplicate) {
            // B.1, and window updates
            cx.counters.acks_reduced += 1;
            self.withheld = true;
            let reduced = Segment { ack: Some(ack - 1), ..Segment::clone(&segment) };
            cx.out.drop(segment.into_segment());
            cx.out.inject(Side::Fixed, reduced);
        } else {
            self.withheld &= ack != last_ack;
            cx.out.forward(Side::Fixed, segment.into_segment());
        }
        let is_back = std::mem::replace(&mut self.shrunk, false);
        if is_back {
            // B.3
            cx.counters.reconnections += 1;
            self.away = None;
            self.give_up = None;
            self.duplicates = 0;
            if ack.before(last_ack) {
                cx.out.inject(Side::Fixed, store.peers.acknowledge(last_ack, window, None));
            }
            if window > 0 {
                cx.counters.local_retransmissions += store.replay(cx.out);
            }
        }
        let opens_or_closes = (before.window == 0) != (window == 0);
        if is_new || is_duplicate || is_back || opens_or_closes {
            self.restart_timer(now, cx.config);
        }
    }

    /// B.1: the retransmission timer while there is something to retransmit, else the time to
    /// release what is withheld.
    fn restart_timer(&mut self, now: Instant, config: &MTcpConfig) {
        let Some(store) = &self.conntrack.established else { return };
        self.deadline = if store.is_empty() {
            self.withheld.then(|| now + config.release)
        } else {
            let is_open = store.peers.mobile().window > 0;
            is_open.then(|| now + config.timer.max(SHORTEST_TIMER))
        };
    }
}

/// True if a segment probes the window closed at `edge`: one byte (RFC 9293 §3.8.6.1), a FIN alone,
/// or nothing just before the window (Linux).
fn is_probe<P: Payload>(segment: &Segment<P>, edge: SeqNum) -> bool {
    match segment.seq_len() {
        0 => segment.seq + 1 == edge,
        len => len == 1,
    }
}
