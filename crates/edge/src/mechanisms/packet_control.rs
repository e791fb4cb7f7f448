//! TCP Packet Control: an ACK filter and a data filter at the base station (the Packet Control
//! paper §V-VI; hazards and decisions below).
//!
//! Read first: paper §V.B (the two filters), §VI (their variables), RFC 5681 §2 (what a duplicate
//! ACK is).
//!
//! The *ACK filter* looks at pure ACKs from the mobile. It drops those below the highest ACK seen
//! (`last_ack`) and thins duplicates, so that the fixed host's third one is the base station's
//! R-th: reordering on the wireless link up to R - 1 then triggers no fast retransmit. The *data
//! filter* looks at data from the fixed host. What `last_ack` covers is a spurious retransmission
//! and is dropped; every second one of the same segment is answered with an ACK, in case the ACK
//! itself was lost on the wired path.
//!
//! Beyond the paper, for live traffic:
//! - SYN, FIN, RST, segments with payload from the mobile, a changed window and a changed ECN echo
//!   pass uncounted.
//! - So do ACKs that RFC 5681 §2 does not call duplicates, because nothing is outstanding (an
//!   answer to a keep-alive), and those that hold the window at zero (an answer to a window probe).
//! - An ACK of data that did not come through here passes without a trace in the state: a wrong
//!   `last_ack` would make every honest ACK old, and the flow would starve.
//! - Old data is dropped whole or not at all, whatever its size. It passes when it brings the
//!   mobile an acknowledgement, a window or SACK blocks that went by before in no other segment,
//!   when it carries FIN, and when it is one byte or less: a keep-alive or a window probe, which
//!   the mobile itself must answer.

use crate::conntrack::flow_table::{FlowReport, FlowState, FlowTable, FlowTableConfig, Tracking};
use crate::conntrack::mobile_peer::MobilePeer;
use crate::conntrack::validate::{
    Conntrack, Conntracked, InvalidPackets, ValidPacket, Windows, validate,
};
use crate::middlebox::{Actions, Middlebox, MobileId, Side};
use airtcp_core::{Flags, Flow, Instant, LinkSignal, Payload, Segment, SeqNum, counters};
use thiserror::Error;

/// Retransmissions further behind `last_ack` than this are forgotten when it advances.
const REMEMBERED_BYTES: u32 = 64 * 1024;

/// Most retransmitted segments remembered for a flow, the oldest making room: the 64 KiB above hold
/// this many of the smallest segments in practice (536 B, RFC 9293 §3.7.1). One that was forgotten
/// counts from one again.
const REMEMBERED_SEGMENTS: usize = 128;

/// The duplicate-ACK threshold of every sender (RFC 5681 §3.2).
pub(crate) const SENDER_THRESHOLD: u64 = 3;

/// The duplicate-ACK threshold of the base station was below the sender's: the filter can only
/// raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the duplicate-ACK threshold of Packet Control must be at least 3, not {0}")]
pub struct ThresholdTooSmall(pub u32);

counters! {
    /// Counters of Packet Control since the start.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PacketControlCounters {
        /// Pure ACKs below the highest one, dropped.
        pub acks_old_dropped: u64,
        /// Duplicate ACKs dropped.
        pub acks_duplicate_dropped: u64,
        /// Pure ACKs from mobiles, forwarded.
        pub acks_forwarded: u64,
        /// Segments from fixed hosts dropped as already acknowledged.
        pub data_dropped: u64,
        /// ACKs sent to fixed hosts in answer to those.
        pub acks_generated: u64,
    }
}

/// TCP Packet Control for all flows of a base station.
#[derive(Clone, Debug)]
pub struct PacketControl {
    threshold: u32,
    flows: FlowTable<Filters>,
    counters: PacketControlCounters,
    invalid_packets: InvalidPackets,
}

impl PacketControl {
    /// Filters with the user-defined duplicate-ACK threshold `threshold` (the paper's
    /// `redefine3DupAck`).
    pub fn new(threshold: u32, table: FlowTableConfig) -> Result<Self, ThresholdTooSmall> {
        let (threshold, counters) = (checked(threshold)?, PacketControlCounters::default());
        Ok(Self {
            threshold,
            flows: FlowTable::new(table),
            counters,
            invalid_packets: InvalidPackets::default(),
        })
    }

    /// Counters since the start.
    pub fn counters(&self) -> PacketControlCounters {
        self.counters
    }

    /// Counters of invalid packets since the start.
    pub fn invalid_packets(&self) -> InvalidPackets {
        self.invalid_packets
    }

    /// Number of connections known.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Goes on with another threshold and other limits; flows stay.
    pub fn reconfigure(
        &mut self,
        threshold: u32,
        table: FlowTableConfig,
    ) -> Result<(), ThresholdTooSmall> {
        self.threshold = checked(threshold)?;
        self.flows.reconfigure(table);
        Ok(())
    }

    /// Payload bytes held: none.
    pub fn held(&self) -> u64 {
        self.flows.held()
    }

    /// The mobile host of this connection has sent a segment.
    pub fn is_mobile_heard(&self, flow: &Flow) -> bool {
        self.flows.is_mobile_heard(flow)
    }

    /// Connections of this mobile are not [`FlowPhase::Connected`](crate::FlowPhase::Connected):
    /// never.
    pub fn is_interrupted(&self, mobile: MobileId) -> bool {
        self.flows.is_interrupted(mobile)
    }

    /// Number of its interrupted connections: none.
    pub fn interrupted(&self, mobile: MobileId) -> usize {
        self.flows.interrupted(mobile)
    }

    /// Reports on all connections.
    pub fn reports(&self) -> impl Iterator<Item = FlowReport> + '_ {
        self.flows.reports()
    }

    /// Segments forwarded unfiltered because the flow table was full.
    pub fn segments_refused(&self) -> u64 {
        self.flows.refused()
    }
}

fn checked(threshold: u32) -> Result<u32, ThresholdTooSmall> {
    let enough = u64::from(threshold) >= SENDER_THRESHOLD;
    enough.then_some(threshold).ok_or(ThresholdTooSmall(threshold))
}

impl<P: Payload> Middlebox<P> for PacketControl {
    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        let key = from.to_mobile(segment.flow);
        let is_ack = from == Side::Mobile && segment.is_pure_ack();
        let (threshold, counters, invalid_packets) =
            (self.threshold, &mut self.counters, &mut self.invalid_packets);
        let Some(mut tracked) = self.flows.track(now, from, &segment) else {
            counters.acks_forwarded += u64::from(is_ack);
            return out.forward(from.opposite(), segment);
        };
        tracked.with(now, |filters| {
            let was_established = filters.conntrack.established.is_some();
            let Some(segment) = validate(filters, now, from, segment, invalid_packets, out) else {
                if let Some(windows) = filters.conntrack.established.filter(|_| !was_established) {
                    filters.fixed_ack = Some(windows.fixed_ack());
                    filters.duplicate = Some(0);
                }
                counters.acks_forwarded += u64::from(is_ack);
                return;
            };
            match from {
                Side::Fixed => match filters.on_fixed(&segment) {
                    Data::Forward => out.forward(Side::Mobile, segment.into_segment()),
                    Data::Drop { answer } => {
                        counters.data_dropped += 1;
                        out.drop(segment.into_segment());
                        if let Some(mobile) = answer {
                            counters.acks_generated += 1;
                            out.inject(Side::Fixed, mobile.latest_ack(key.reversed()));
                        }
                    }
                },
                Side::Mobile => match filters.on_mobile(&segment, threshold) {
                    Ack::Forward => {
                        counters.acks_forwarded += u64::from(is_ack);
                        out.forward(Side::Fixed, segment.into_segment());
                    }
                    Ack::DropOld => {
                        counters.acks_old_dropped += 1;
                        out.drop(segment.into_segment());
                    }
                    Ack::DropDuplicate => {
                        counters.acks_duplicate_dropped += 1;
                        out.drop(segment.into_segment());
                    }
                },
            }
        });
        if tracked.state().is_closed() {
            self.flows.retire(&key);
        }
    }

    /// Nothing: the filters do not depend on link signals.
    fn on_link(&mut self, _: Instant, _: MobileId, _: LinkSignal, _: &mut Actions<P>) {}

    /// Nothing: the filters have no timers.
    fn on_timer(&mut self, _: Instant, _: &mut Actions<P>) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// Verdict of the ACK filter.
enum Ack {
    Forward,
    DropOld,
    DropDuplicate,
}

/// Verdict of the data filter.
enum Data {
    Forward,
    Drop { answer: Option<MobilePeer> },
}

/// The two filters of one flow.
#[derive(Clone, Debug, Default)]
struct Filters {
    /// `ack` of the mobile's end is the highest ACK number forwarded, the paper's `lastAck`.
    conntrack: Conntrack<Windows>,
    /// Acknowledgement number and window that the fixed host sent last.
    fixed_ack: Option<(SeqNum, u16)>,
    /// Number of the latest duplicate of the highest ACK, from 1 to R and then from 1 again: the
    /// pattern of [`forwards_duplicate`] repeats after R. 0: none came; `None`: nor did an ACK
    /// since the connection was established.
    duplicate: Option<u32>,
    /// Dropped retransmissions, the paper's `lstRetransWiredDataPkt`.
    retransmissions: Vec<Retransmission>,
}

/// A segment that was retransmitted though acknowledged.
#[derive(Clone, Copy, Debug)]
struct Retransmission {
    seq: SeqNum,
    /// Times that it came, the paper's `m_iNumOfRtm`.
    count: u32,
}

/// Never committed: nothing is held.
impl FlowState for Filters {
    fn tracking(&self) -> Option<&dyn Tracking> {
        Some(&self.conntrack)
    }
}

impl<P: Payload> Conntracked<P> for Filters {
    type Established = Windows;
    fn conntrack(&mut self) -> &mut Conntrack<Windows> {
        &mut self.conntrack
    }
}

impl Filters {
    /// The ACK filter (paper §V.B.1).
    fn on_mobile<P: Payload>(&mut self, segment: &ValidPacket<P>, threshold: u32) -> Ack {
        let (Some(windows), Some(ack)) = (&mut self.conntrack.established, segment.ack) else {
            return Ack::Forward;
        };
        let known = *windows.mobile();
        windows.note(Side::Mobile, segment);
        let outstanding = windows.sent_end().after(known.ack);
        let Some(duplicate) = &mut self.duplicate else {
            self.duplicate = Some(0);
            return Ack::Forward;
        };
        if ack.after(known.ack) {
            *duplicate = 0;
            self.forget_retransmissions(ack);
            return Ack::Forward;
        }
        let same = segment.window == known.window && known.echoes_as(segment.flags);
        if !segment.is_pure_ack() || !same {
            return Ack::Forward;
        }
        if ack.before(known.ack) {
            return Ack::DropOld;
        }
        if !outstanding || segment.window == 0 {
            return Ack::Forward;
        }
        *duplicate = *duplicate % threshold + 1;
        if forwards_duplicate(*duplicate, threshold) { Ack::Forward } else { Ack::DropDuplicate }
    }

    /// The data filter (paper §V.B.2).
    fn on_fixed<P: Payload>(&mut self, segment: &ValidPacket<P>) -> Data {
        let Some(windows) = &mut self.conntrack.established else { return Data::Forward };
        windows.note(Side::Fixed, segment);
        let mobile = *windows.mobile();
        let fixed_ack = segment.ack.map(|ack| (ack, segment.window));
        let news = fixed_ack != self.fixed_ack || !segment.options.sack.is_empty();
        self.fixed_ack = fixed_ack;
        let indispensable =
            news || segment.payload.len() <= 1 || segment.flags.contains(Flags::FIN);
        let is_old = self.duplicate.is_some() && segment.seq_end().at_or_before(mobile.ack);
        if indispensable || !is_old {
            return Data::Forward;
        }
        let is_answered = self.count_retransmission(segment.seq).is_multiple_of(2);
        Data::Drop { answer: is_answered.then_some(mobile) }
    }

    /// Times that the acknowledged segment at `seq` came, this one included.
    fn count_retransmission(&mut self, seq: SeqNum) -> u32 {
        if let Some(known) = self.retransmissions.iter_mut().find(|r| r.seq == seq) {
            known.count = known.count.wrapping_add(1);
            return known.count;
        }
        if self.retransmissions.len() == REMEMBERED_SEGMENTS {
            self.retransmissions.remove(0);
        }
        self.retransmissions.push(Retransmission { seq, count: 1 });
        1
    }

    fn forget_retransmissions(&mut self, last_ack: SeqNum) {
        if self.retransmissions.is_empty() {
            return;
        }
        self.retransmissions.retain(|r| last_ack.bytes_after(r.seq) <= REMEMBERED_BYTES);
        if self.retransmissions.is_empty() {
            self.retransmissions = Vec::new();
        }
    }
}

/// True if the `n`-th duplicate (from 1) is forwarded under threshold R: the k-th forwarded one is
/// number ceil(k·R/3). For R divisible by 3 that is the paper's `nextDupAckToSend` (§VI).
fn forwards_duplicate(n: u32, threshold: u32) -> bool {
    // Duplicates to have been forwarded after n came: the greatest k with k·R/3 <= n.
    let forwarded = |n: u32| SENDER_THRESHOLD * u64::from(n) / u64::from(threshold);
    forwarded(n) > forwarded(n - 1)
}
