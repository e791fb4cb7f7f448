//! Snoop: local retransmission at the base station (Balakrishnan, Seshan, Katz 1995; algorithms §4). Only data
//! from the fixed to the mobile host.
//!
//! The base station copies data that the mobile has not acknowledged. When the mobile's ACKs show that a
//! segment is missing, or stay away for twice the RTT of the wireless link, the copy is sent again, and the
//! duplicate ACKs that this loss causes are kept from the fixed host. No ACK is rewritten or made: semantics
//! stay end to end, and losing the state loses nothing.
//!
//! Decisions, where our sources are silent:
//! - The first duplicate triggers the retransmission; as many further ones are expected, and dropped, as
//!   segments were forwarded behind the missing one. More of them than expected mean that the
//!   retransmission was lost too, and trigger the next.
//! - Duplicates pass when the missing segment is not held (lost before it came here, or no room), when the fixed
//!   host has retransmitted it (it counts them now), and when [`SnoopConfig::attempts`] were in vain.
//! - The timer starts with the first copy and with each new ACK, doubles with each retransmission of the same
//!   segment (an RTT cannot be measured on those, Karn), and gives up after [`SnoopConfig::attempts`], so that
//!   a mobile that is gone is not called for ever. A retransmission of the fixed host begins anew.
//! - While the mobile closes its window nothing is copied or retransmitted: the fixed host probes.
//! - Copies leave with the fixed host's newest acknowledgement and timestamp.

use crate::cache::SegmentCache;
use crate::connection::{Connection, Context, PerConnection};
use crate::flow_table::FlowState;
use crate::middlebox::Side;
use crate::observed::{Ends, holds, is_duplicate};
use airtcp_core::{Bytes, Duration, Flags, Instant, LinkSignal, Payload, Segment, SeqNum};

/// The time-out before the first RTT sample (as RFC 6298 §2.1).
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A shorter timer would keep the node busy with nothing else.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

/// Snoop for all connections of a base station.
pub type Snoop<P> = PerConnection<P, Agent<P>>;

/// Settings of Snoop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnoopConfig {
    /// Most payload bytes copied for one connection; what does not fit is forwarded without a copy.
    pub fifo: Bytes,
    /// Lower bound of the local retransmission time-out. At least 1 ms.
    pub min_timeout: Duration,
    /// Local retransmissions of one segment before it is left to the fixed host.
    pub attempts: u32,
}

/// 64 KiB, 100 ms, 6 attempts: at the lower bound they take 6.3 s.
impl Default for SnoopConfig {
    fn default() -> Self {
        Self { fifo: Bytes(65_536), min_timeout: Duration::from_millis(100), attempts: 6 }
    }
}

/// What Snoop did since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnoopCounters {
    /// Data segments copied.
    pub segments_copied: u64,
    /// New data segments that found no room.
    pub overflows: u64,
    /// Segments sent to mobiles again, for duplicate ACKs and time-outs.
    pub local_retransmissions: u64,
    /// Those for time-outs.
    pub timeouts: u64,
    /// Duplicate ACKs kept from fixed hosts.
    pub duplicates_suppressed: u64,
}

/// Snoop for one connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agent<P> {
    /// Data that the mobile has not acknowledged.
    cache: SegmentCache<P>,
    ends: Ends,
    /// Smoothed RTT of the wireless link.
    srtt: Option<Duration>,
    /// The one segment being timed: its end, and when it was forwarded.
    timed: Option<(SeqNum, Instant)>,
    /// Local retransmissions of the first copy.
    attempts: u32,
    /// Duplicates of the last ACK that its missing segment will still cause.
    expected: u64,
    /// The fixed host has retransmitted what the mobile waits for.
    sender_retransmitted: bool,
    deadline: Option<Instant>,
}

impl<P> Default for Agent<P> {
    fn default() -> Self {
        Self {
            cache: SegmentCache::default(),
            ends: Ends::default(),
            srtt: None,
            timed: None,
            attempts: 0,
            expected: 0,
            sender_retransmitted: false,
            deadline: None,
        }
    }
}

/// Never committed: what is held, the fixed host holds too.
impl<P: Payload> FlowState for Agent<P> {
    fn held(&self) -> usize {
        self.cache.bytes()
    }
}

impl<P: Payload> Connection<P> for Agent<P> {
    type Config = SnoopConfig;
    type Counters = SnoopCounters;

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

    /// Nothing: Snoop looks at segments only.
    fn on_link(&mut self, _: Instant, _: LinkSignal, _: &mut Context<'_, P, Self>) {}

    fn on_timer(&mut self, now: Instant, cx: &mut Context<'_, P, Self>) {
        self.deadline = None;
        if !self.cache.is_empty() {
            cx.counters.timeouts += 1;
            self.retransmit(now, cx);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

impl<P: Payload> Agent<P> {
    fn on_fixed(&mut self, now: Instant, segment: Segment<P>, cx: &mut Context<'_, P, Self>) {
        self.ends.on_fixed(&segment);
        if let Some(mobile) = self.ends.mobile.filter(|mobile| mobile.window > 0)
            && segment.seq_len() > 0
        {
            let (seq, end) = (segment.seq, segment.seq_end());
            if end.after(self.cache.end().unwrap_or(mobile.ack)) {
                self.copy(now, &segment, cx);
            } else {
                if self.timed.is_some_and(|(timed, _)| timed.after(seq)) {
                    self.timed = None;
                }
                if seq.at_or_before(mobile.ack) && end.after(mobile.ack) {
                    self.sender_retransmitted = true;
                    self.attempts = 0;
                    self.expected = 0;
                    self.restart_timer(now, cx.config);
                }
            }
        }
        cx.out.forward(Side::Mobile, segment);
    }

    fn copy(&mut self, now: Instant, segment: &Segment<P>, cx: &mut Context<'_, P, Self>) {
        let len = segment.payload.len() as u64;
        if len > cx.room || self.cache.bytes() as u64 + len > cx.config.fifo.get() {
            cx.counters.overflows += 1;
            return;
        }
        cx.counters.segments_copied += 1;
        self.cache.push(segment.clone());
        self.timed.get_or_insert((segment.seq_end(), now));
        if self.attempts > 0 {
            // It passes the missing one by.
            self.expected += 1;
        }
        if self.cache.len() == 1 {
            self.restart_timer(now, cx.config);
        }
    }

    fn on_mobile(&mut self, now: Instant, segment: Segment<P>, cx: &mut Context<'_, P, Self>) {
        let before = self.ends.on_mobile(&segment);
        let (Some(before), Some(mobile), Some(ack)) = (before, self.ends.mobile, segment.ack)
        else {
            return cx.out.forward(Side::Fixed, segment);
        };
        if ack.after(before.ack) {
            self.cache.acknowledge(ack);
            if let Some((end, sent)) = self.timed
                && end.at_or_before(ack)
            {
                self.timed = None;
                let sample = now.since(sent);
                self.srtt = Some(self.srtt.map_or(sample, |srtt| (srtt * 7 + sample) / 8));
            }
            self.attempts = 0;
            self.expected = 0;
            self.sender_retransmitted = false;
            self.restart_timer(now, cx.config);
        } else if is_duplicate(&before, &segment)
            && holds(&self.cache, ack)
            && !self.sender_retransmitted
            && (self.expected > 0 || self.attempts < cx.config.attempts)
        {
            cx.counters.duplicates_suppressed += 1;
            cx.out.drop(segment);
            if self.expected > 0 {
                self.expected -= 1;
            } else {
                // Each copy behind the first causes a duplicate; this one was the first of them.
                self.expected = (self.cache.len() as u64).saturating_sub(2);
                self.retransmit(now, cx);
            }
            return;
        } else if (before.window == 0) != (mobile.window == 0) {
            self.restart_timer(now, cx.config);
        }
        cx.out.forward(Side::Fixed, segment);
    }

    /// Sends the mobile the first copy.
    fn retransmit(&mut self, now: Instant, cx: &mut Context<'_, P, Self>) {
        let Some(first) = self.cache.first() else { return };
        cx.counters.local_retransmissions += 1;
        cx.out.inject(Side::Mobile, self.ends.refreshed(first));
        self.attempts += 1;
        self.timed = None;
        self.restart_timer(now, cx.config);
    }

    fn restart_timer(&mut self, now: Instant, config: &SnoopConfig) {
        let is_open = self.ends.mobile.is_some_and(|mobile| mobile.window > 0);
        let runs = is_open && !self.cache.is_empty() && self.attempts < config.attempts;
        self.deadline = runs.then(|| now + self.timeout(config));
    }

    /// Twice the smoothed RTT, doubled for each retransmission.
    fn timeout(&self, config: &SnoopConfig) -> Duration {
        let timeout = self.srtt.map_or(INITIAL_TIMEOUT, |srtt| srtt * 2);
        let timeout = timeout.max(config.min_timeout).max(SHORTEST_TIMEOUT);
        timeout * (1 << self.attempts.min(16))
    }
}
