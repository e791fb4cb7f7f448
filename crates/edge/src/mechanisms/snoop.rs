//! Snoop: local retransmission at the base station (Balakrishnan, Seshan, Katz 1995, §3). Only for
//! data from the fixed to the mobile host.
//!
//! The base station copies data that the mobile has not acknowledged. When the mobile's ACKs show
//! that a segment is missing, or stay away for twice the RTT of the wireless link, the copy is sent
//! again, and the duplicate ACKs that this loss causes are kept from the fixed host. No ACK is
//! rewritten or made: semantics stay end to end, and losing the state loses nothing.
//!
//! Decisions, where our sources are silent:
//! - The first duplicate triggers the retransmission; as many further ones are expected, and
//!   dropped, as segments were forwarded behind the missing one. More of them than expected mean
//!   that the retransmission was lost too, and trigger the next.
//! - Duplicates pass when the missing segment is not held (lost before it came here, or no room),
//!   when the fixed host has retransmitted it (it counts them now), and after
//!   [`SnoopConfig::attempts`] without success.
//! - The timer starts with the first copy and with each new ACK, doubles with each retransmission
//!   of the same segment (an RTT cannot be measured on those, Karn), and gives up after
//!   [`SnoopConfig::attempts`], so that nothing is sent to an absent mobile for ever. A
//!   retransmission of the fixed host begins anew.
//! - While the mobile closes its window nothing is copied or retransmitted: the fixed host probes.
//! - Copies leave with the fixed host's newest acknowledgement and timestamp.

use crate::connection::{Connection, Context};
use crate::conntrack::flow_table::{FlowState, Tracking};
use crate::conntrack::mobile_peer::MobilePeer;
use crate::conntrack::validate::{Conntrack, Conntracked, ValidPacket, validate};
use crate::hold::cache::{DEFAULT_FIFO, FIFO};
use crate::hold::store::{Kept, Store};
use crate::middlebox::Side;
use crate::per_connection::PerConnection;
use airtcp_core::{Bytes, Duration, Instant, Payload, Segment, SeqNum, counters};
use airtcp_settings::schema::{Kind, at_least};
use airtcp_settings::settings;

/// The time-out before the first RTT sample (as RFC 6298 §2.1).
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A shorter timer would take all of the node's time.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

/// Snoop for all connections of a base station.
pub type Snoop<P> = PerConnection<P, SnoopState<P>>;

settings! {
    /// Settings of Snoop. At the lower bound of the time-out, 6 attempts take 6.3 s.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SnoopConfig {
        /// Most payload bytes copied for one connection.
        #[like(FIFO)]
        pub fifo: Bytes = DEFAULT_FIFO,
        /// Lower bound of the local retransmission time-out.
        #[kind = at_least(SHORTEST_TIMEOUT)]
        pub min_timeout: Duration = Duration::from_millis(100),
        /// Local retransmissions of one segment before it is left to the sender.
        #[kind = Kind::Integer { min: 1, max: 1_000 }]
        pub attempts: u32 = 6,
    }
}

counters! {
    /// Counters of Snoop since the start.
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
}

/// Snoop for one connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SnoopState<P> {
    conntrack: Conntrack<Store<P>>,
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

impl<P> Default for SnoopState<P> {
    fn default() -> Self {
        Self {
            conntrack: Conntrack::default(),
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
impl<P: Payload> FlowState for SnoopState<P> {
    fn tracking(&self) -> Option<&dyn Tracking> {
        Some(&self.conntrack)
    }
}

impl<P: Payload> Conntracked<P> for SnoopState<P> {
    type Established = Store<P>;
    fn conntrack(&mut self) -> &mut Conntrack<Store<P>> {
        &mut self.conntrack
    }
}

type Cx<'a, P> = Context<'a, P, SnoopState<P>>;

impl<P: Payload> Connection<P> for SnoopState<P> {
    type Config = SnoopConfig;
    type Counters = SnoopCounters;

    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, cx: &mut Cx<'_, P>) {
        let Some(segment) = validate(self, now, from, segment, cx.invalid_packets, cx.out) else {
            return;
        };
        let Some(store) = &mut self.conntrack.established else { return };
        let before = *store.peers.mobile();
        store.note(from, &segment);
        match from {
            Side::Fixed => self.on_fixed(now, segment, cx),
            Side::Mobile => self.on_mobile(now, &before, segment, cx),
        }
    }

    fn on_timer(&mut self, now: Instant, cx: &mut Cx<'_, P>) {
        self.deadline = None;
        cx.counters.timeouts += 1;
        self.retransmit(now, cx);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

impl<P: Payload> SnoopState<P> {
    /// A segment from the fixed host, already noted.
    fn on_fixed(&mut self, now: Instant, segment: ValidPacket<P>, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        let ack = store.peers.mobile_ack();
        let (seq, end) = (segment.seq, segment.seq_end());
        if store.peers.mobile().window == 0 {
            return store.forward(segment, cx.out);
        }
        let was_empty = store.is_empty();
        let kept = store.keep(&segment, cx.config.fifo, cx.room);
        store.forward(segment, cx.out);
        match kept {
            Kept::New => {
                cx.counters.segments_copied += 1;
                self.timed.get_or_insert((end, now));
                // While something is missing, this one passes it by.
                self.expected += u64::from(self.attempts > 0);
            }
            Kept::Old if self.timed.is_some_and(|(timed, _)| timed.after(seq)) => self.timed = None,
            Kept::Old => {}
            Kept::NoRoom => cx.counters.overflows += 1,
        }
        let is_next = seq.at_or_before(ack) && end.after(ack);
        if is_next && !was_empty {
            self.sender_retransmitted = true;
            self.attempts = 0;
            self.expected = 0;
        }
        if is_next || was_empty {
            self.restart_timer(now, cx.config);
        }
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
        let ack = store.peers.mobile_ack();
        if ack.after(before.ack) {
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
        } else if before.is_repeated_by(&segment)
            && store.holds_next()
            && !self.sender_retransmitted
            && (self.expected > 0 || self.attempts < cx.config.attempts)
        {
            cx.counters.duplicates_suppressed += 1;
            cx.out.drop(segment.into_segment());
            if self.expected > 0 {
                self.expected -= 1;
            } else {
                // Each copy behind the first causes a duplicate; this one was the first of them.
                self.expected = (store.len() as u64).saturating_sub(2);
                self.retransmit(now, cx);
            }
            return;
        } else if (before.window == 0) != (store.peers.mobile().window == 0) {
            self.restart_timer(now, cx.config);
        }
        cx.out.forward(Side::Fixed, segment.into_segment());
    }

    /// Sends the mobile the first copy.
    fn retransmit(&mut self, now: Instant, cx: &mut Cx<'_, P>) {
        let Some(store) = &mut self.conntrack.established else { return };
        cx.counters.local_retransmissions += store.resend_first(cx.out);
        self.attempts += 1;
        self.timed = None;
        self.restart_timer(now, cx.config);
    }

    fn restart_timer(&mut self, now: Instant, config: &SnoopConfig) {
        let Some(store) = &self.conntrack.established else { return };
        let is_open = store.peers.mobile().window > 0;
        let runs = is_open && !store.is_empty() && self.attempts < config.attempts;
        self.deadline = runs.then(|| now + self.timeout(config));
    }

    /// Twice the smoothed RTT, doubled for each retransmission.
    fn timeout(&self, config: &SnoopConfig) -> Duration {
        let timeout = self.srtt.map_or(INITIAL_TIMEOUT, |srtt| srtt * 2);
        let timeout = timeout.max(config.min_timeout).max(SHORTEST_TIMEOUT);
        timeout * (1 << self.attempts.min(16))
    }
}
