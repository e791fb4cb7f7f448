//! A script of segments and link signals for one connection, and what a mechanism does at each
//! step, as text:
//!
//! - `>M 0:1000` forwarded to the mobile as it came, `+M 0:1000` made by the mechanism, `x 0:1000`
//!   dropped, `kept 0:1000` neither; likewise `>F`, `+F` towards the fixed host.
//! - The fixed host's segments are shown as `first:end` of their data, the mobile's as `ack N win
//!   W`; before it stand `F` or `R` and the mobile's data, if any.
//!
//! Numbers are relative to the two initial sequence numbers, so that the same script runs across a
//! wraparound.

use crate::segments::Hosts;
pub(crate) use crate::segments::{Seg, with_flags, with_payload, with_timestamps, with_window};
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Flags, Instant, Length, LinkSignal, Payload};
use airtcp_edge::{Action, Actions, Middlebox, MobileId, Side};

/// Start of the sequence space: in the middle, and so that scripts cross the wraparound.
pub(crate) const ISNS: [u32; 4] = [1_000_000, u32::MAX - 500, u32::MAX - 3500, u32::MAX - 6000];

pub(crate) struct Script<M> {
    pub(crate) node: M,
    pub(crate) now: Instant,
    hosts: Hosts,
}

impl<M: Middlebox<Length>> Script<M> {
    /// No segment yet.
    pub(crate) fn blank(node: M, isn: u32) -> Self {
        Self { node, now: Instant::ZERO, hosts: Hosts::new(isn) }
    }

    /// Six segments of 1000 bytes are under way from the fixed host, and the mobile has
    /// acknowledged the first.
    pub(crate) fn new(node: M, isn: u32) -> Self {
        let mut script = Self::blank(node, isn);
        assert_eq!(script.ack(0), [">F ack 0 win 500"]);
        for i in 0..6 {
            assert_eq!(script.data(1000 * i, 1000).len(), 1);
        }
        assert_eq!(script.ack(1000), [">F ack 1000 win 500"]);
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
        self.fixed_sends(self.fixed(seq, len))
    }
    pub(crate) fn ack(&mut self, ack: u32) -> Vec<String> {
        self.mobile_sends(self.mobile(ack))
    }
    pub(crate) fn fixed_sends(&mut self, segment: Seg) -> Vec<String> {
        self.pass(Side::Fixed, segment)
    }
    pub(crate) fn mobile_sends(&mut self, segment: Seg) -> Vec<String> {
        self.pass(Side::Mobile, segment)
    }
    pub(crate) fn fading(&mut self) -> Vec<String> {
        self.signal(LinkSignal::Fading)
    }
    pub(crate) fn down(&mut self) -> Vec<String> {
        self.signal(LinkSignal::Down)
    }
    pub(crate) fn up(&mut self) -> Vec<String> {
        self.signal(LinkSignal::Up)
    }
    /// Both hosts close, and the last acknowledgement ends it.
    pub(crate) fn expect_signals_pass_by_a_closed_connection(mut self) {
        assert_eq!(self.ack(6000).len(), 1);
        let fin = with_flags(self.fixed(6000, 0), Flags::FIN);
        assert_eq!(self.fixed_sends(fin).len(), 1);
        let fin = with_flags(self.mobile(6001), Flags::FIN);
        assert_eq!(self.mobile_sends(fin).len(), 1);
        assert!(!self.down().is_empty(), "the fixed host has not acknowledged the FIN");
        assert!(!self.up().is_empty());
        let mut last = self.fixed(6001, 0);
        last.ack = last.ack.map(|ack| ack + 1);
        assert_eq!(self.fixed_sends(last).len(), 1);
        assert_eq!(self.down(), [""; 0]);
        assert_eq!(self.up(), [""; 0]);
    }

    /// A signal of fading came just before the outage. The mobile was still heard, so the replay
    /// began; then came the outage, of which nobody told.
    pub(crate) fn expect_unanswered_replay_begins_anew(&mut self) {
        self.data(1000, 1000);
        assert_eq!(self.up().len(), 5);
        assert!(self.up().is_empty(), "it is under way");
        assert_eq!(self.timer(1), ["+M 1000:2000"], "it is not answered");
        self.data(1000, 1000);
        assert_eq!(self.up().len(), 5);
    }

    /// Both hosts are silent for a day: the mobile is sent this again and again, at least once a
    /// minute, and not much more often when it is gone for long.
    pub(crate) fn expect_probes(&mut self, probe: &str) {
        let (start, mut probes) = (self.now, 0);
        while self.now.since(start) < Duration::from_secs(24 * 3600) {
            let before = self.now;
            assert_eq!(self.next_timer(), [probe]);
            assert!(self.now.since(before) <= Duration::from_secs(62), "after {probes}");
            probes += 1;
        }
        assert!(probes < 24 * 60 + 400, "{probes}");
    }

    pub(crate) fn signal(&mut self, signal: LinkSignal) -> Vec<String> {
        let mut out = Actions::new();
        self.node.on_link(self.now, MobileId::Host(self.hosts.flow.dst.ip), signal, &mut out);
        out.drain().map(|action| self.show(&action)).collect()
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// Waits until a timer does something, which must be this many seconds from now.
    pub(crate) fn timer(&mut self, after: u64) -> Vec<String> {
        let start = self.now;
        let shown = self.next_timer();
        assert_eq!(self.now.since(start), Duration::from_secs(after), "{shown:?}");
        shown
    }

    /// Waits until a timer does something, or none runs any more (then nothing is shown).
    pub(crate) fn next_timer(&mut self) -> Vec<String> {
        let mut out = Actions::new();
        while let Some(deadline) = self.node.next_deadline()
            && out.as_slice().is_empty()
        {
            self.now = deadline;
            self.node.on_timer(self.now, &mut out);
            assert!(self.node.next_deadline().is_none_or(|next| next > self.now), "it moves on");
        }
        out.drain().map(|action| self.show(&action)).collect()
    }

    /// The node's verdict on a segment; checks that it is forwarded as it came, dropped or kept,
    /// once.
    pub(crate) fn pass(&mut self, from: Side, segment: Seg) -> Vec<String> {
        let actions = self.actions(from, segment.clone());
        let mut shown: Vec<String> = actions.iter().map(|action| self.show(action)).collect();
        let fate = |action: &&Action<Length>| match action {
            Action::Forward { to, segment: s } => {
                assert_eq!((*to, s), (from.opposite(), &segment), "forwarded means unchanged");
                true
            }
            Action::Drop { segment: s, reason } => {
                assert_eq!((s, *reason), (&segment, DropReason::Middlebox));
                true
            }
            Action::Inject { .. } => false,
        };
        match actions.iter().filter(fate).count() {
            0 => shown.push(format!("kept {}", self.describe(&segment))),
            n => assert_eq!(n, 1, "{shown:?}"),
        }
        shown
    }

    /// The segments that the node made itself at this one.
    pub(crate) fn injected(&mut self, from: Side, segment: Seg) -> Vec<Seg> {
        injections(self.actions(from, segment))
    }

    /// The segments that the node made itself at this signal.
    pub(crate) fn injected_by(&mut self, signal: LinkSignal) -> Vec<Seg> {
        let mut out = Actions::new();
        self.node.on_link(self.now, MobileId::Host(self.hosts.flow.dst.ip), signal, &mut out);
        injections(out.drain().collect())
    }

    fn actions(&mut self, from: Side, segment: Seg) -> Vec<Action<Length>> {
        let mut out = Actions::new();
        self.node.on_segment(self.now, from, segment, &mut out);
        out.drain().collect()
    }

    fn show(&self, action: &Action<Length>) -> String {
        let letter = |side: &Side| match side {
            Side::Fixed => 'F',
            Side::Mobile => 'M',
        };
        match action {
            Action::Forward { to, segment } => {
                format!(">{} {}", letter(to), self.describe(segment))
            }
            Action::Inject { to, segment } => {
                let from_fixed = segment.flow.src == self.hosts.flow.src;
                assert_eq!(*to == Side::Mobile, from_fixed, "in the name of the other side");
                format!("+{} {}", letter(to), self.describe(segment))
            }
            Action::Drop { segment, .. } => format!("x {}", self.describe(segment)),
        }
    }

    fn describe(&self, segment: &Seg) -> String {
        let from_fixed = segment.flow.src == self.hosts.flow.src;
        let isn = if from_fixed { self.hosts.fixed_isn } else { self.hosts.mobile_isn };
        let mut text = String::new();
        for (flag, letter) in [(Flags::FIN, "F "), (Flags::RST, "R ")] {
            if segment.flags.contains(flag) {
                text += letter;
            }
        }
        let first = segment.seq.offset_from(isn);
        if from_fixed || !segment.payload.is_empty() || segment.flags.contains(Flags::RST) {
            text += &format!("{first}:{}", first + segment.payload.len() as i32);
        }
        if !from_fixed && let Some(ack) = segment.ack {
            let space = if text.is_empty() || text.ends_with(' ') { "" } else { " " };
            let ack = ack.offset_from(self.hosts.fixed_isn);
            text += &format!("{space}ack {ack} win {}", segment.window);
        }
        text
    }
}

fn injections(actions: Vec<Action<Length>>) -> Vec<Seg> {
    let injected = |action| match action {
        Action::Inject { segment, .. } => Some(segment),
        Action::Forward { .. } | Action::Drop { .. } => None,
    };
    actions.into_iter().filter_map(injected).collect()
}
