//! Segments of one connection and what becomes of them. Numbers are relative to the two initial
//! sequence numbers, so that the same script runs across a wraparound.

use crate::segments::Hosts;
pub(crate) use crate::segments::{Seg, with_flags, with_payload, with_timestamps, with_window};
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant, Payload};
use airtcp_edge::{
    Action, Actions, FlowTableConfig, Middlebox, PacketControl, PacketControlCounters, Side,
};

/// The base station's verdict on a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Forwarded,
    Dropped,
    /// Dropped, and answered with this segment to the fixed host.
    Answered(Box<Seg>),
}

pub(crate) struct Script {
    pub(crate) filter: PacketControl,
    pub(crate) now: Instant,
    hosts: Hosts,
}

impl Script {
    /// Threshold R and the initial sequence numbers; 10,000 bytes from the fixed host came through,
    /// and the mobile acknowledged 1000 of them.
    pub(crate) fn new(threshold: u32, isn: u32) -> Self {
        let mut script = Self::blank(threshold, isn);
        assert_eq!(script.data(0, 10_000), Verdict::Forwarded);
        assert_eq!(script.ack(1000), Verdict::Forwarded);
        script
    }

    /// No segment yet.
    pub(crate) fn blank(threshold: u32, isn: u32) -> Self {
        Self {
            filter: PacketControl::new(threshold, FlowTableConfig::default()).unwrap(),
            now: Instant::ZERO,
            hosts: Hosts::new(isn),
        }
    }

    /// A segment from the fixed host.
    pub(crate) fn fixed(&self, seq: u32, len: u64) -> Seg {
        self.hosts.fixed(seq, len)
    }
    /// A pure ACK from the mobile.
    pub(crate) fn mobile(&self, ack: u32) -> Seg {
        self.hosts.mobile(ack)
    }
    pub(crate) fn data(&mut self, seq: u32, len: u64) -> Verdict {
        self.fixed_sends(self.fixed(seq, len))
    }
    pub(crate) fn ack(&mut self, ack: u32) -> Verdict {
        self.mobile_sends(self.mobile(ack))
    }
    pub(crate) fn fixed_sends(&mut self, segment: Seg) -> Verdict {
        self.pass(Side::Fixed, segment)
    }
    pub(crate) fn mobile_sends(&mut self, segment: Seg) -> Verdict {
        self.pass(Side::Mobile, segment)
    }

    /// Numbers of the next `n` duplicates of `ack` that are forwarded, from 1.
    pub(crate) fn forwarded_duplicates(&mut self, ack: u32, n: usize) -> Vec<usize> {
        (1..=n).filter(|_| self.ack(ack) == Verdict::Forwarded).collect()
    }

    pub(crate) fn counters(&self) -> PacketControlCounters {
        self.filter.counters()
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// Passes a segment and checks that it comes out once: unchanged to the other side, or dropped.
    pub(crate) fn pass(&mut self, from: Side, segment: Seg) -> Verdict {
        let mut out = Actions::new();
        self.filter.on_segment(self.now, from, segment.clone(), &mut out);
        let actions: Vec<_> = out.drain().collect();
        let dropped =
            |s: &Seg, reason: DropReason| *s == segment && reason == DropReason::Middlebox;
        match actions.as_slice() {
            [Action::Forward { to, segment: s }] if *to == from.opposite() && *s == segment => {
                Verdict::Forwarded
            }
            [Action::Drop { segment: s, reason }] if dropped(s, *reason) => Verdict::Dropped,
            [
                Action::Drop { segment: s, reason },
                Action::Inject { to: Side::Fixed, segment: answer },
            ] if dropped(s, *reason) && answer.flow == segment.flow.reversed() => {
                Verdict::Answered(Box::new(answer.clone()))
            }
            other => panic!("{segment} from {from:?} gave {other:?}"),
        }
    }
}

/// Payload length, for messages.
pub(crate) fn len(segment: &Seg) -> usize {
    segment.payload.len()
}
