//! M-TCP at the supervisor host (M-TCP §2.2, §3.4; algorithms §1.1; decisions below).
//!
//! Read first: M-TCP §2.2 (the idea), §3.4.3 (what the supervisor host does with each segment), RFC 9293
//! §3.8.6.1 (zero windows).
//!
//! The supervisor host forwards and copies data for the mobile, and acknowledges to the fixed host one byte
//! less than the mobile did. When the mobile has acknowledged nothing for [`MTcpConfig::timer`], the withheld
//! byte makes the *persist packet*, a new ACK that closes the window: the fixed host persists instead of
//! backing off (state SHRINK). Meanwhile the copies are sent to the mobile until it answers; its answer opens
//! the window again. Letters and numbers in the code are the events of algorithms §1.1.
//!
//! Nothing is ever acknowledged that the mobile has not: losing the state loses no byte, and whatever has no
//! copy (no room, no state) the fixed host retransmits as if M-TCP were absent.
//!
//! Decisions, where the paper is silent:
//! - The first ACK of the mobile passes as it is: it may be the handshake's (F), or one repeated from before
//!   our time. Until it comes, and with it what a generated ACK needs, nothing is copied.
//! - Only pure ACKs are rewritten. Other segments of the mobile pass unchanged, options unknown to us included;
//!   their ACK number gives the withheld byte away, and the persist packet is then a window update, which
//!   closes the window just as well (RFC 9293 §3.10.7.4).
//! - A duplicate ACK is local only if the byte the mobile waits for is queued. Otherwise it was lost before
//!   it came here (or had no room), and the fixed host must hear of it even if later data is queued (B.2
//!   looks at the queue's emptiness only). Such a duplicate also restarts the timer: the mobile is there.
//! - While the mobile itself closes its window, nothing is withheld, copied or retransmitted: the fixed host
//!   persists by itself, and its probes are the mobile's to answer.
//! - An old segment passes, instead of being answered for the mobile (A.3), when it brings the mobile an
//!   acknowledgement or window, and when it is one byte or less: a keep-alive, whose sender asks for the mobile.
//! - In SHRINK any segment one number long counts as a window probe (A.4), and the empty one before the
//!   window that Linux sends.
//! - Link signals are ignored: M-TCP finds out by itself.
//!
//! Known weaknesses, kept: the timer is constant and takes any 0.4 s without an ACK for an outage. Without
//! timestamps a segment is timed until the ACK after its own. What the fixed host retransmits in SHRINK goes to
//! the mobile and stays unanswered.

use crate::cache::SegmentCache;
use crate::connection::{Connection, Context, PerConnection};
use crate::flow_table::FlowState;
use crate::middlebox::Side;
use crate::mobile_end::MobileEnd;
use crate::observed::{Ends, holds, is_duplicate};
use airtcp_core::{Bytes, Duration, Flags, Instant, LinkSignal, Payload, Segment, SeqNum};

/// Duplicate ACKs that make the supervisor host retransmit (RFC 5681 §3.2).
const DUPLICATE_ACK_THRESHOLD: u32 = 3;

/// A shorter timer would keep the node busy with nothing else.
const SHORTEST_TIMER: Duration = Duration::from_millis(1);

/// M-TCP for all connections of a supervisor host.
pub type MTcp<P> = PerConnection<P, Supervised<P>>;

/// Settings of M-TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MTcpConfig {
    /// How long the mobile may acknowledge nothing, and the time between retransmissions to it; constant
    /// (M-TCP §3.4.3). At least 1 ms.
    pub timer: Duration,
    /// What is sent to the mobile at each expiry after the first, which always sends the whole queue.
    pub retransmit: Retransmit,
    /// When the withheld byte is acknowledged after the mobile has acknowledged all that is queued (rule E).
    pub release: Duration,
    /// Most payload bytes queued for one connection; what does not fit is forwarded without a copy.
    pub fifo: Bytes,
}

/// 0.4 s, the head, 0.1 s, 64 KiB.
impl Default for MTcpConfig {
    fn default() -> Self {
        Self {
            timer: Duration::from_millis(400),
            retransmit: Retransmit::Head,
            release: Duration::from_millis(100),
            fifo: Bytes(65_536),
        }
    }
}

/// Which copies a further expiry of the timer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retransmit {
    /// The first one: it is enough to make the mobile answer, and does not flood the wireless queue.
    Head,
    /// All (M-TCP §3.4.3: "un-acknowledged packets are retransmitted to MH periodically").
    All,
}

/// What M-TCP did since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MTcpCounters {
    /// Data segments queued.
    pub segments_copied: u64,
    /// New data segments that found no room in the queue.
    pub overflows: u64,
    /// ACKs rewritten to acknowledge one byte less.
    pub acks_reduced: u64,
    /// ACKs sent for a withheld byte after the connection fell idle (rule E).
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
}

/// M-TCP for one connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Supervised<P> {
    /// Data that the mobile has not acknowledged.
    queue: SegmentCache<P>,
    /// `ends.mobile.ack` is the paper's `last_ack`.
    ends: Ends,
    /// The fixed host was told one byte less than the mobile acknowledged: `sent_ack` is `last_ack - 1`,
    /// otherwise `last_ack`. So it never goes back (B.4).
    withheld: bool,
    /// The mobile is taken for gone, and the fixed host's window is closed.
    shrunk: bool,
    /// Duplicates of the last ACK.
    duplicates: u32,
    /// The fixed host has sent its FIN.
    fin_seen: bool,
    /// With data queued the retransmission timer, else the time to release the withheld byte.
    deadline: Option<Instant>,
}

impl<P> Default for Supervised<P> {
    fn default() -> Self {
        Self {
            queue: SegmentCache::default(),
            ends: Ends::default(),
            withheld: false,
            shrunk: false,
            duplicates: 0,
            fin_seen: false,
            deadline: None,
        }
    }
}

/// Never committed: what is held, the fixed host holds too.
impl<P: Payload> FlowState for Supervised<P> {
    fn held(&self) -> usize {
        self.queue.bytes()
    }
}

impl<P: Payload> Connection<P> for Supervised<P> {
    type Config = MTcpConfig;
    type Counters = MTcpCounters;

    fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<P>,
        cx: &mut Context<'_, P, Self>,
    ) {
        if segment.flags.contains(Flags::RST) {
            *self = Self::default();
            return cx.out.forward(from.opposite(), segment);
        }
        match from {
            Side::Fixed => self.on_fixed(now, segment, cx),
            Side::Mobile => self.on_mobile(now, segment, cx),
        }
    }

    /// Nothing: M-TCP finds out by itself.
    fn on_link(&mut self, _: Instant, _: LinkSignal, _: &mut Context<'_, P, Self>) {}

    /// C, or E when nothing is queued.
    fn on_timer(&mut self, now: Instant, cx: &mut Context<'_, P, Self>) {
        self.deadline = None;
        let Some(mobile) = self.ends.mobile else { return };
        if self.queue.is_empty() {
            if std::mem::replace(&mut self.withheld, false) {
                cx.counters.releases += 1;
                self.acknowledge(&mobile, mobile.window, None, cx);
            }
            return;
        }
        let first = !std::mem::replace(&mut self.shrunk, true);
        if first {
            cx.counters.persist_packets += 1;
            self.withheld = false;
            self.acknowledge(&mobile, 0, None, cx);
        }
        let all = first || cx.config.retransmit == Retransmit::All;
        self.retransmit(if all { usize::MAX } else { 1 }, cx);
        self.deadline = Some(now + cx.config.timer.max(SHORTEST_TIMER));
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

impl<P: Payload> Supervised<P> {
    /// A: a segment from the fixed host.
    fn on_fixed(&mut self, now: Instant, segment: Segment<P>, cx: &mut Context<'_, P, Self>) {
        let is_news =
            self.ends.fixed.is_none_or(|known| {
                segment.ack != Some(known.ack) || segment.window != known.window
            }) || !segment.options.sack.is_empty();
        self.ends.on_fixed(&segment);
        self.fin_seen |= segment.flags.contains(Flags::FIN);
        let Some(mobile) = self.ends.mobile else { return cx.out.forward(Side::Mobile, segment) };
        if self.shrunk && is_probe(&segment, mobile.ack) {
            // A.4
            cx.counters.probes_answered += 1;
            let echo = segment.options.timestamps.map(|t| t.value);
            cx.out.drop(segment);
            return self.acknowledge(&mobile, 0, echo, cx);
        }
        let is_old = segment.seq_end().at_or_before(mobile.ack);
        if is_old && segment.payload.len() > 1 && !is_news {
            // A.3
            cx.counters.old_segments_answered += 1;
            self.withheld = false;
            let window = if self.shrunk { 0 } else { mobile.window };
            cx.out.drop(segment);
            return self.acknowledge(&mobile, window, None, cx);
        }
        let queued_end = self.queue.end().unwrap_or(mobile.ack);
        if segment.seq_len() > 0 && segment.seq_end().after(queued_end) && mobile.window > 0 {
            // A.1; anything else is A.2.
            self.copy(now, &segment, cx);
        }
        cx.out.forward(Side::Mobile, segment);
    }

    fn copy(&mut self, now: Instant, segment: &Segment<P>, cx: &mut Context<'_, P, Self>) {
        let len = segment.payload.len() as u64;
        if len > cx.room || self.queue.bytes() as u64 + len > cx.config.fifo.get() {
            cx.counters.overflows += 1;
            return;
        }
        cx.counters.segments_copied += 1;
        self.queue.push(segment.clone());
        if self.queue.len() == 1 {
            self.restart_timer(now, cx.config);
        }
    }

    /// B: a segment from the mobile.
    fn on_mobile(&mut self, now: Instant, segment: Segment<P>, cx: &mut Context<'_, P, Self>) {
        let before = self.ends.on_mobile(&segment);
        let (Some(before), Some(mobile), Some(ack)) = (before, self.ends.mobile, segment.ack)
        else {
            return cx.out.forward(Side::Fixed, segment);
        };
        let is_new = ack.after(before.ack);
        if is_new {
            self.queue.acknowledge(ack);
            self.duplicates = 0;
        }
        let is_duplicate = is_duplicate(&before, &segment);
        if is_duplicate && !self.shrunk && holds(&self.queue, ack) {
            // B.2
            cx.counters.duplicates_suppressed += 1;
            cx.out.drop(segment);
            self.duplicates += 1;
            if self.duplicates == DUPLICATE_ACK_THRESHOLD {
                self.retransmit(1, cx);
            }
            return;
        }
        let is_back = std::mem::replace(&mut self.shrunk, false);
        let stays_open = mobile.window > 0 && !(self.queue.is_empty() && self.fin_seen);
        let is_current = segment.is_pure_ack() && ack == mobile.ack;
        if is_current && stays_open && (is_new || self.withheld && !is_duplicate) {
            // B.1, and window updates
            cx.counters.acks_reduced += 1;
            self.withheld = true;
            let reduced = Segment { ack: Some(ack - 1), ..segment.clone() };
            cx.out.drop(segment);
            cx.out.inject(Side::Fixed, reduced);
        } else {
            self.withheld &= ack != mobile.ack;
            cx.out.forward(Side::Fixed, segment);
        }
        if is_back {
            // B.3
            cx.counters.reconnections += 1;
            self.duplicates = 0;
            if mobile.window > 0 {
                if ack.before(mobile.ack) {
                    self.acknowledge(&mobile, mobile.window, None, cx);
                }
                self.retransmit(usize::MAX, cx);
            }
        }
        let opens_or_closes = (before.window == 0) != (mobile.window == 0);
        if is_new || is_duplicate || is_back || opens_or_closes {
            self.restart_timer(now, cx.config);
        }
    }

    /// B.1: the retransmission timer while there is something to retransmit, else the time to release what
    /// is withheld.
    fn restart_timer(&mut self, now: Instant, config: &MTcpConfig) {
        let is_open = self.ends.mobile.is_some_and(|mobile| mobile.window > 0);
        self.deadline = if !self.queue.is_empty() {
            is_open.then(|| now + config.timer.max(SHORTEST_TIMER))
        } else {
            self.withheld.then(|| now + config.release)
        };
    }

    /// Sends the fixed host all that the mobile acknowledged, less what is withheld.
    fn acknowledge(
        &self,
        mobile: &MobileEnd,
        window: u16,
        echo: Option<u32>,
        cx: &mut Context<'_, P, Self>,
    ) {
        let ack = mobile.ack - u32::from(self.withheld);
        cx.out.inject(Side::Fixed, mobile.acknowledge(self.ends.flow, ack, window, echo));
    }

    /// Sends the mobile the first `most` copies.
    fn retransmit(&self, most: usize, cx: &mut Context<'_, P, Self>) {
        for copy in self.queue.iter().take(most) {
            cx.counters.local_retransmissions += 1;
            cx.out.inject(Side::Mobile, self.ends.refreshed(copy));
        }
    }
}

/// Whether a segment asks if the window, closed at `edge`, is open: one byte (RFC 9293 §3.8.6.1), a FIN alone,
/// or nothing just before the window (Linux).
fn is_probe<P: Payload>(segment: &Segment<P>, edge: SeqNum) -> bool {
    match segment.seq_len() {
        0 => segment.seq + 1 == edge,
        len => len == 1,
    }
}
