//! Taps both sides of the node and judges what comes out by what went in. It shares no code with
//! the mechanisms.
//!
//! Positions are bytes after the initial sequence number of the host that sent them (SYN is
//! position 0, the first byte position 1), so that they do not wrap.

use crate::subjects::Promise;
use airtcp_core::{Flags, Flow, Segment, SeqNum};
use airtcp_edge::{Action, Side};

/// A violation of the rules by the node.
pub(crate) type Violation = String;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
pub(crate) use ensure;

type Seg = Segment<Vec<u8>>;

/// Byte number `n` (from 0) of the stream that host `host` (0: fixed, 1: mobile) writes.
pub(crate) fn pattern(host: usize, n: u32) -> u8 {
    (n.wrapping_add(host as u32 * 77_777).wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// Everything that one host showed on its side of the node.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    isn: SeqNum,
    /// Positions of its stream that came by; FIN counts as one.
    sent: Vec<bool>,
    /// One past its highest position seen.
    pub(crate) end: u32,
    /// Position of its FIN.
    fin: Option<u32>,
    /// Its highest acknowledgement, as a position of the other host.
    pub(crate) acked: u32,
    /// The furthest right edge of its window, as a position of the other host.
    edge: u32,
    shift: Option<u8>,
    /// Its newest TSval.
    pub(crate) timestamp: Option<u32>,
    /// Its last window field above zero.
    pub(crate) window: u16,
}

impl Host {
    fn new(isn: u32) -> Self {
        Self {
            isn: SeqNum(isn),
            sent: Vec::new(),
            end: 0,
            fin: None,
            acked: 0,
            edge: 0,
            shift: None,
            timestamp: None,
            window: 0,
        }
    }

    fn position(&self, seq: SeqNum) -> u32 {
        seq.bytes_after(self.isn)
    }

    fn has_sent(&self, from: u32, to: u32) -> bool {
        (from..to).all(|n| self.sent.get(n as usize) == Some(&true))
    }

    fn note(&mut self, segment: &Seg, other_isn: SeqNum, shift: u8) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let (from, to) = (self.position(segment.seq), self.position(segment.seq_end()));
        self.sent.resize(self.sent.len().max(to as usize), false);
        self.sent[from as usize..to as usize].fill(true);
        self.end = self.end.max(to);
        if segment.flags.contains(Flags::FIN) {
            self.fin = Some(to - 1);
        }
        if segment.flags.contains(Flags::SYN) {
            self.shift = segment.options.window_scale;
        }
        if let Some(ack) = segment.ack {
            let ack = ack.bytes_after(other_isn);
            self.acked = self.acked.max(ack);
            self.edge = self.edge.max(ack + (u32::from(segment.window) << shift));
        }
        if segment.window > 0 {
            self.window = segment.window;
        }
        // Only once both have agreed on them (RFC 7323 §3.2).
        let agreed = !segment.flags.contains(Flags::SYN);
        if let Some(ts) = segment.options.timestamps.filter(|_| agreed) {
            self.timestamp = Some(newer(self.timestamp, ts.value));
        }
    }
}

fn newer(known: Option<u32>, value: u32) -> u32 {
    known.map_or(value, |known| SeqNum(known).later(SeqNum(value)).0)
}

/// A tap on both sides of the node.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    promise: Promise,
    /// From the fixed to the mobile host.
    flow: Flow,
    /// The fixed and the mobile host.
    pub(crate) hosts: [Host; 2],
    /// The highest acknowledgement that the fixed host was shown (since the node's crash).
    pub(crate) told: u32,
    /// The node crashed, or a late SYN or a RST told it to forget: it may repeat what is old, which
    /// the fixed host ignores.
    has_forgotten: bool,
    /// Segments that the mechanism holds back and may still forward.
    kept: Vec<Seg>,
    /// Forged segments that the mechanism was handed, and from which side.
    forged: Vec<(Side, Seg)>,
    /// Newest TSval that the mobile may have taken for TS.Recent (RFC 7323 §4.3): an older one
    /// would be discarded by PAWS.
    pub(crate) shown_to_mobile: Option<u32>,
    /// The mechanism has reset the connection.
    pub(crate) is_reset: bool,
    /// Segments of the mechanism's own making, to the fixed and to the mobile host.
    pub(crate) injected: [u64; 2],
}

impl Observer {
    /// `isns` and `flow` of a connection that the fixed host, `flow.src`, has with a mobile.
    pub(crate) fn new(promise: Promise, flow: Flow, isns: [u32; 2]) -> Self {
        Self {
            promise,
            flow,
            hosts: isns.map(Host::new),
            told: 0,
            has_forgotten: false,
            kept: Vec::new(),
            forged: Vec::new(),
            shown_to_mobile: None,
            is_reset: false,
            injected: [0; 2],
        }
    }

    /// The initial sequence numbers, of the fixed host first.
    pub(crate) fn isns(&self) -> [SeqNum; 2] {
        self.hosts.each_ref().map(|host| host.isn)
    }

    /// The node's memory was lost: it has nothing to forward any more, and does not know what it
    /// has said.
    pub(crate) fn crash(&mut self) {
        self.kept.clear();
        self.forged.clear();
        self.told = 0;
        self.has_forgotten = true;
    }

    /// Bytes acknowledged to the fixed host that the mobile has not acknowledged.
    pub(crate) fn custody(&self) -> u32 {
        self.told.saturating_sub(self.hosts[1].acked)
    }

    /// The shift of a host's window field; none unless both offered it (RFC 7323 §2.2).
    fn shift(&self, host: &Host) -> u8 {
        let both = self.hosts.iter().all(|h| h.shift.is_some());
        host.shift.filter(|_| both).unwrap_or(0)
    }

    /// A segment reaches the node from `side`.
    pub(crate) fn on_input(&mut self, side: Side, segment: &Seg) {
        let i = index(side);
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.shift(&self.hosts[i]) };
        let begins_late = segment.flags.contains(Flags::SYN) && self.hosts[0].end > 1;
        self.has_forgotten |= begins_late || segment.flags.contains(Flags::RST);
        let other_isn = self.hosts[1 - i].isn;
        self.hosts[i].note(segment, other_isn, shift);
    }

    /// A forged segment reaches the node. It may make it forget what it is not bound by.
    pub(crate) fn on_forgery(&mut self, from: Side, segment: &Seg) {
        self.has_forgotten = true;
        self.forged.push((from, segment.clone()));
    }

    /// A forged segment once more, as it was, or the keep-alive that asks in its flow (RFC 9293
    /// §3.8.4). Both say nothing that the forger has not said, and their receiver judges them as it
    /// judged him (RFC 5961): at most it answers with an ACK. A SYN or RST that comes late might
    /// meet the next connection.
    fn is_repeated_forgery(&self, to: Side, segment: &Seg) -> bool {
        let is_it = |(from, forged): &(Side, Seg)| {
            let keep_alive = Segment {
                seq: forged.seq - 1,
                flags: Flags::empty(),
                payload: Vec::new(),
                ..forged.clone()
            };
            let asks = forged.ack.is_some() && keep_alive == *segment;
            *from == to.opposite() && (forged == segment || asks)
        };
        self.promise == Promise::Repeats
            && !segment.flags.intersects(Flags::SYN | Flags::RST)
            && self.forged.iter().any(is_it)
    }

    /// Checks the node's output when a forged segment came: it may hand it on.
    pub(crate) fn on_output_of_forgery(
        &mut self,
        forgery: (Side, &Seg),
        actions: &[Action<Vec<u8>>],
    ) -> Result<(), Violation> {
        let (from, forged) = forgery;
        let hands_on = |action: &Action<Vec<u8>>| match action {
            Action::Forward { to, segment } => *to == from.opposite() && segment == forged,
            Action::Drop { segment, .. } => segment == forged,
            Action::Inject { .. } => false,
        };
        let rest: Vec<_> = actions.iter().filter(|action| !hands_on(action)).cloned().collect();
        self.on_output(None, &rest)
    }

    /// Checks the node's output of one call. `input`: the segment it was called with.
    pub(crate) fn on_output(
        &mut self,
        input: Option<(Side, &Seg)>,
        actions: &[Action<Vec<u8>>],
    ) -> Result<(), Violation> {
        let arrived = input;
        let mut input = input;
        for action in actions {
            let (to, segment, injected) = match action {
                Action::Inject { to, segment } => (*to, segment, true),
                Action::Forward { to, segment } => {
                    self.account_for(&mut input, Some(*to), segment)?;
                    (*to, segment, false)
                }
                Action::Drop { segment, .. } => {
                    self.account_for(&mut input, None, segment)?;
                    continue;
                }
            };
            self.injected[index(to)] += u64::from(injected);
            if injected && self.is_repeated_forgery(to, segment) {
                continue;
            }
            self.is_reset |= injected && segment.flags.contains(Flags::RST);
            match to {
                Side::Fixed if injected => {
                    self.reaches_fixed(segment, true)?;
                    let is_owed = |(from, arrived)| {
                        is_rewritten(from, arrived, segment) || is_refused(from, arrived, segment)
                    };
                    if !arrived.is_some_and(is_owed) {
                        self.made_for_fixed(segment)?;
                    }
                }
                Side::Fixed => self.reaches_fixed(segment, false)?,
                Side::Mobile => self.reaches_mobile(segment, injected)?,
            }
        }
        if let Some((_, segment)) = input {
            self.kept.push(segment.clone());
        }
        Ok(())
    }

    /// `segment`, forwarded (`to` a side) or dropped, is the input or was kept before, unchanged.
    fn account_for(
        &mut self,
        input: &mut Option<(Side, &Seg)>,
        to: Option<Side>,
        segment: &Seg,
    ) -> Result<(), Violation> {
        if let Some((from, arrived)) = *input
            && arrived == segment
            && to.is_none_or(|to| to == from.opposite())
        {
            *input = None;
            return Ok(());
        }
        let kept = self.kept.iter().position(|kept| kept == segment);
        ensure!(kept.is_some(), "forwarded or dropped what did not come in: {segment}");
        self.kept.remove(kept.unwrap_or_default());
        Ok(())
    }

    fn reaches_fixed(&mut self, segment: &Seg, injected: bool) -> Result<(), Violation> {
        let [fixed, mobile] = &self.hosts;
        ensure!(segment.flow == self.flow.reversed(), "to the fixed host on flow {}", segment.flow);
        if let Some(ack) = segment.ack.filter(|_| !segment.flags.contains(Flags::RST)) {
            let ack = fixed.position(ack);
            let by_mobile = ack <= mobile.acked;
            ensure!(
                by_mobile || self.promise == Promise::Custody,
                "acknowledges {ack}, the mobile only {}: {segment}",
                mobile.acked
            );
            ensure!(
                by_mobile || fixed.has_sent(mobile.acked, ack),
                "acknowledges {ack}, which never came: {segment}"
            );
            ensure!(
                by_mobile || fixed.fin.is_none_or(|fin| ack <= fin),
                "acknowledges the FIN for the mobile: {segment}"
            );
            ensure!(
                !injected || self.has_forgotten || ack >= self.told,
                "acknowledges {ack} after {}: {segment}",
                self.told
            );
            self.told = self.told.max(ack);
        }
        Ok(())
    }

    /// A segment in the mobile's name that is none of the mobile's own.
    fn made_for_fixed(&self, segment: &Seg) -> Result<(), Violation> {
        let [fixed, mobile] = &self.hosts;
        // In the fixed host's window (RFC 9293 §3.10.7.4), and within what the mobile has sent.
        let seq = mobile.position(segment.seq);
        ensure!(
            // A byte beyond the window was a probe, which the fixed host may have taken.
            seq >= fixed.acked && seq <= fixed.edge + 1 && seq <= mobile.end,
            "position {seq} outside the window {}..{}: {segment}",
            fixed.acked,
            fixed.edge
        );
        ensure!(segment.seq_len() == 0, "data in the mobile's name: {segment}");
        if segment.flags.contains(Flags::RST) {
            return Ok(());
        }
        let timestamps = segment.options.timestamps;
        ensure!(
            timestamps.is_some() == mobile.timestamp.is_some(),
            "timestamps or none, unlike the mobile: {segment}"
        );
        if let (Some(ts), Some(newest)) = (timestamps, mobile.timestamp) {
            // An older one would be discarded (PAWS), a newer one would make the mobile's own old.
            ensure!(ts.value == newest || self.has_forgotten, "TSval {} after {newest}", ts.value);
            let sent = SeqNum(fixed.timestamp.unwrap_or(0));
            ensure!(SeqNum(ts.echo).at_or_before(sent), "echoes {}, never sent", ts.echo);
        }
        Ok(())
    }

    fn reaches_mobile(&mut self, segment: &Seg, injected: bool) -> Result<(), Violation> {
        let [fixed, mobile] = &self.hosts;
        ensure!(segment.flow == self.flow, "to the mobile on flow {}", segment.flow);
        if injected && !segment.flags.contains(Flags::RST) {
            content(fixed, segment)?;
            let ack = segment.ack.map_or(0, |ack| mobile.position(ack));
            ensure!(ack <= fixed.acked, "acknowledges {ack} to the mobile: {segment}");
            let edge = ack + (u32::from(segment.window) << self.shift(fixed));
            ensure!(edge <= fixed.edge, "window up to {edge}, not {}: {segment}", fixed.edge);
            ensure!(
                segment.options.timestamps.is_some() == fixed.timestamp.is_some(),
                "timestamps or none, unlike the fixed host: {segment}"
            );
        }
        let in_order = fixed.position(segment.seq) <= mobile.acked;
        if let Some(ts) = segment.options.timestamps.filter(|_| in_order) {
            self.shown_to_mobile = Some(newer(self.shown_to_mobile, ts.value));
        }
        Ok(())
    }
}

/// A reset that answers a segment of a connection which the node has ended (RFC 9293 §3.10.7.1). If
/// that segment was late, so is the reset, and the fixed host ignores it.
fn is_refused(from: Side, arrived: &Seg, segment: &Seg) -> bool {
    let is_bare = segment.flags == Flags::RST && segment.ack.is_none() && segment.seq_len() == 0;
    from == Side::Fixed && is_bare && arrived.ack == Some(segment.seq)
}

/// The mobile's own segment, but for what it acknowledges.
fn is_rewritten(from: Side, arrived: &Seg, segment: &Seg) -> bool {
    let mut same = segment.clone();
    same.ack = arrived.ack;
    same.window = arrived.window;
    same.options.sack = arrived.options.sack;
    from == Side::Mobile && same == *arrived
}

/// A replay carries what the fixed host sent at its position, and FIN only in its place.
fn content(fixed: &Host, segment: &Seg) -> Result<(), Violation> {
    let from = fixed.position(segment.seq);
    for (n, byte) in (from..).zip(&segment.payload) {
        ensure!(
            fixed.has_sent(n, n + 1) && *byte == pattern(0, n.wrapping_sub(1)),
            "a wrong byte at {n}: {segment}"
        );
    }
    let fin = from + segment.payload.len() as u32;
    let has_fin = segment.flags.contains(Flags::FIN);
    ensure!(!has_fin || fixed.fin == Some(fin), "FIN at {fin}: {segment}");
    ensure!(!segment.flags.contains(Flags::SYN), "an injected SYN: {segment}");
    Ok(())
}

pub(crate) fn index(side: Side) -> usize {
    match side {
        Side::Fixed => 0,
        Side::Mobile => 1,
    }
}
