//! Segments of one connection through a middlebox, and what becomes of them, in words. Numbers are
//! relative to the two initial sequence numbers, so that the same script runs across a wraparound.

use crate::segments::Hosts;
pub(crate) use crate::segments::{Seg, with_flags, with_payload, with_timestamps, with_window};
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant, Length, LinkSignal, SeqNum, Timestamps};
use airtcp_edge::{Action, Actions, Middlebox, MobileId, Side};

/// Start of the sequence space: in the middle, and so that scripts cross the wraparound.
pub(crate) const ISNS: [u32; 4] = [1_000_000, u32::MAX - 500, u32::MAX - 1500, u32::MAX];

pub(crate) struct Script<M> {
    pub(crate) machine: M,
    pub(crate) now: Instant,
    hosts: Hosts,
}

impl<M: Middlebox<Length>> Script<M> {
    /// No segment yet.
    pub(crate) fn blank(machine: M, isn: u32) -> Self {
        Self { machine, now: Instant::ZERO, hosts: Hosts::new(isn) }
    }

    /// The mobile opened the connection: its last ACK of the handshake went by.
    pub(crate) fn open(machine: M, isn: u32) -> Self {
        let mut script = Self::blank(machine, isn);
        assert_eq!(script.ack(0), ["pass"]);
        script
    }

    /// A segment from the fixed host.
    pub(crate) fn fixed(&self, seq: u32, len: u64) -> Seg {
        self.hosts.fixed(seq, len)
    }
    /// A pure ACK from the mobile.
    pub(crate) fn mobile(&self, ack: u32) -> Seg {
        self.hosts.mobile(ack)
    }
    pub(crate) fn data(&mut self, seq: u32, len: u64) -> Vec<String> {
        self.pass(Side::Fixed, self.fixed(seq, len))
    }
    pub(crate) fn ack(&mut self, ack: u32) -> Vec<String> {
        self.pass(Side::Mobile, self.mobile(ack))
    }

    /// The node's verdict on a segment: `pass`, `drop`, and the segments sent besides.
    pub(crate) fn pass(&mut self, from: Side, segment: Seg) -> Vec<String> {
        let mut out = Actions::new();
        self.machine.on_segment(self.now, from, segment.clone(), &mut out);
        let actions: Vec<_> = out.drain().collect();
        let own = |action: &&Action<Length>| !matches!(action, Action::Inject { .. });
        assert_eq!(actions.iter().filter(own).count(), 1, "{segment} went {actions:?}");
        actions.iter().map(|action| self.describe(action, Some((from, &segment)))).collect()
    }

    pub(crate) fn signal(&mut self, signal: LinkSignal) -> Vec<String> {
        let mut out = Actions::new();
        self.machine.on_link(self.now, MobileId::Host(self.hosts.flow.dst.ip), signal, &mut out);
        out.drain().map(|action| self.describe(&action, None)).collect()
    }

    /// Lets time pass up to `at` milliseconds after the start; what the timers send, and when.
    pub(crate) fn until(&mut self, at: u64) -> Vec<String> {
        let end = Instant::ZERO + Duration::from_millis(at);
        let mut all = Vec::new();
        while let Some(deadline) = self.machine.next_deadline()
            && deadline <= end
        {
            self.now = deadline;
            let mut out = Actions::new();
            self.machine.on_timer(deadline, &mut out);
            assert_ne!(self.machine.next_deadline(), Some(deadline), "the deadline stays");
            let ms = deadline.since_start().as_millis();
            all.extend(out.drain().map(|a| format!("{ms} {}", self.describe(&a, None))));
        }
        self.now = end;
        all
    }

    fn describe(&self, action: &Action<Length>, input: Option<(Side, &Seg)>) -> String {
        let relative = |n: SeqNum, isn: SeqNum| n.offset_from(isn);
        match action {
            Action::Forward { to, segment } => {
                assert_eq!(input, Some((to.opposite(), segment)), "forwarded with a change");
                "pass".to_owned()
            }
            Action::Drop { segment, reason } => {
                assert_eq!((input.map(|i| i.1), *reason), (Some(segment), DropReason::Middlebox));
                "drop".to_owned()
            }
            Action::Inject { to: Side::Fixed, segment } => {
                assert_eq!((segment.flow, segment.seq_len()), (self.hosts.flow.reversed(), 0));
                let mut text = match segment.ack {
                    Some(ack) => format!(
                        "to fixed: ack {} win {}",
                        relative(ack, self.hosts.fixed_isn),
                        segment.window
                    ),
                    None => "to fixed: no ack".to_owned(),
                };
                let seq = relative(segment.seq, self.hosts.mobile_isn);
                if seq != 0 {
                    text += &format!(" seq {seq}");
                }
                text + &extras(segment)
            }
            Action::Inject { to: Side::Mobile, segment } => {
                assert_eq!(segment.flow, self.hosts.flow);
                let start = relative(segment.seq, self.hosts.fixed_isn);
                let text =
                    format!("to mobile: {start}:{}", start as i64 + segment.payload.0 as i64);
                let ack = match segment.ack.map(|ack| relative(ack, self.hosts.mobile_isn)) {
                    Some(0) => String::new(),
                    Some(ack) => format!(" ack {ack}"),
                    None => " no ack".to_owned(),
                };
                text + &ack + &extras(segment)
            }
        }
    }
}

/// Flags and timestamps, where there are any.
fn extras(segment: &Seg) -> String {
    let mut text = String::new();
    if !segment.flags.is_empty() {
        text += &format!(" {:?}", segment.flags);
    }
    if let Some(Timestamps { value, echo }) = segment.options.timestamps {
        text += &format!(" TS val {value} ecr {echo}");
    }
    text
}
