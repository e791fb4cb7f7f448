//! Both ends of a connection, as a node between them saw them: what a mechanism needs to send
//! segments on the mobile's behalf, and to tell segments of this connection from others that look
//! like them.

use crate::middlebox::{Actions, Side};
use crate::mobile_end::MobileEnd;
use airtcp_core::{Flags, Flow, Options, Payload, SackBlocks, Segment, SeqNum, Timestamps};
use serde::{Deserialize, Serialize};

/// The largest window there is (RFC 7323 §2.3): data further from the mobile's acknowledgement than
/// this is not of this connection.
const MAX_WINDOW: u32 = 1 << 30;

/// What the fixed host showed before the mobile's first acknowledgement came by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Opening {
    /// End of its highest segment.
    sent_end: Option<SeqNum>,
    /// Its highest acknowledgement number, and the window field that came with it last.
    ack: Option<(SeqNum, u16)>,
    /// The newest TSval of the mobile that it echoed.
    echo: Option<SeqNum>,
}

impl Opening {
    /// Takes note of a segment of the fixed host.
    pub fn note<P: Payload>(&mut self, segment: &Segment<P>) {
        self.sent_end = latest(self.sent_end, Some(segment.seq_end()));
        self.ack = latest_ack(self.ack, segment.ack.map(|ack| (ack, segment.window)));
        self.echo = latest(self.echo, echo(segment));
    }
}

/// The TSval that a segment echoes; TSval is compared like a sequence number (RFC 7323 §5.2).
fn echo<P>(segment: &Segment<P>) -> Option<SeqNum> {
    segment.options.timestamps.filter(|_| segment.ack.is_some()).map(|ts| SeqNum(ts.echo))
}

fn latest(a: Option<SeqNum>, b: Option<SeqNum>) -> Option<SeqNum> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.later(b)),
        _ => a.or(b),
    }
}

/// An acknowledgement with its window: `new` unless it acknowledges less.
fn latest_ack(old: Option<(SeqNum, u16)>, new: Option<(SeqNum, u16)>) -> Option<(SeqNum, u16)> {
    match (old, new) {
        (Some(old), Some(new)) if new.0.before(old.0) => Some(old),
        (old, new) => new.or(old),
    }
}

/// What was seen of a connection, from the first acknowledgement of the mobile on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ends {
    /// From the fixed to the mobile host.
    flow: Flow,
    mobile: MobileEnd,
    /// End of the highest segment of the fixed host.
    sent_end: SeqNum,
    /// The fixed host's highest acknowledgement number seen, and the window field that came with it
    /// last.
    fixed_ack: Option<(SeqNum, u16)>,
    /// The newest timestamps that the mobile may have seen.
    passed: Option<Timestamps>,
}

impl Ends {
    /// As the first segment of the mobile shows them; `None` when it acknowledges nothing or is a
    /// reset.
    pub fn new<P: Payload>(segment: &Segment<P>, opening: &Opening) -> Option<Self> {
        if segment.flags.contains(Flags::RST) {
            return None;
        }
        let mobile = MobileEnd::new(segment)?;
        let flow = segment.flow.reversed();
        let sent_end = opening.sent_end.map_or(mobile.ack, |sent| sent.later(mobile.ack));
        let mut ends = Self { flow, mobile, sent_end, fixed_ack: None, passed: None };
        ends.note_fixed_word(opening.ack, opening.echo);
        Some(ends)
    }

    /// The fixed host has acknowledged something, so the sequence number of an ACK on the mobile's
    /// behalf is known. A restarted node may have seen only an old segment of the mobile.
    pub fn is_fixed_known(&self) -> bool {
        self.fixed_ack.is_some()
    }

    /// From the fixed to the mobile host.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The mobile's end.
    pub fn mobile(&self) -> &MobileEnd {
        &self.mobile
    }

    /// The highest byte that the mobile acknowledged, plus one.
    pub fn mobile_ack(&self) -> SeqNum {
        self.mobile.ack
    }

    /// The fixed host has sent all of this segment before. Ask before it is noted.
    pub fn is_retransmission<P: Payload>(&self, segment: &Segment<P>) -> bool {
        segment.seq_len() > 0 && segment.seq_end().at_or_before(self.sent_end)
    }

    /// Takes note of a segment of the fixed host; false when it cannot belong to this connection.
    pub fn note_fixed<P: Payload>(&mut self, segment: &Segment<P>) -> bool {
        if segment.seq.offset_from(self.mobile.ack).unsigned_abs() > MAX_WINDOW {
            return false;
        }
        self.sent_end = self.sent_end.later(segment.seq_end());
        self.note_fixed_word(segment.ack.map(|ack| (ack, segment.window)), echo(segment));
        true
    }

    /// The mobile has sent what the fixed host acknowledges and echoes, even if it did not pass
    /// here.
    fn note_fixed_word(&mut self, ack: Option<(SeqNum, u16)>, echo: Option<SeqNum>) {
        let near = |ack: SeqNum| ack.bytes_after(self.mobile.next_seq) <= MAX_WINDOW;
        if let Some((ack, window)) = ack.filter(|&(ack, _)| near(ack)) {
            self.fixed_ack = latest_ack(self.fixed_ack, Some((ack, window)));
            self.mobile.next_seq = self.mobile.next_seq.later(ack);
        }
        if let (Some(known), Some(echo)) = (&mut self.mobile.timestamps, echo) {
            known.value = SeqNum(known.value).later(echo).0;
        }
    }

    /// Takes note of a segment of the mobile; false when it acknowledges what the fixed host did
    /// not send.
    pub fn note_mobile<P: Payload>(&mut self, segment: &Segment<P>) -> bool {
        let plausible = segment.ack.is_some_and(|ack| ack.at_or_before(self.sent_end));
        if plausible {
            self.mobile.note(segment);
        }
        plausible
    }

    /// A segment of the fixed host with these timestamps goes on to the mobile as it came.
    pub fn note_passed(&mut self, timestamps: Option<Timestamps>) {
        self.passed = match (self.passed, timestamps) {
            (Some(old), Some(new)) if SeqNum(new.value).after(SeqNum(old.value)) => Some(new),
            (old, new) => old.or(new),
        };
    }

    /// A copy as it is sent now: with the fixed host's newest acknowledgement, which a mobile
    /// without this connection repeats in its reset, and the window of that, with timestamps that
    /// the mobile does not take for old (RFC 7323 §5). It may have seen newer ones, on a
    /// retransmission of earlier data.
    pub fn renewed<P: Payload>(&mut self, copy: &Segment<P>) -> Segment<P> {
        let mut renewed = copy.clone();
        let word = latest_ack(copy.ack.map(|ack| (ack, copy.window)), self.fixed_ack);
        if let Some((ack, window)) = word {
            renewed.ack = Some(ack);
            renewed.window = window;
        }
        if copy.options.timestamps.is_some() {
            self.note_passed(copy.options.timestamps);
            renewed.options.timestamps = self.passed;
        }
        renewed
    }

    /// A segment that changes nothing and is answered at once, since it lies before what the mobile
    /// expects: a keep-alive (RFC 9293 §3.8.4). A mobile without this connection repeats its
    /// acknowledgement in its reset.
    pub fn keep_alive<P: Payload>(&self) -> Segment<P> {
        let (ack, window) = self.fixed_ack.unwrap_or((self.mobile.next_seq, 0));
        // No older than any that the mobile has seen, or it would fall to PAWS without an answer.
        let timestamps = self.mobile.timestamps.map(|Timestamps { value, echo }| {
            let passed = self.passed.map_or(SeqNum(echo), |passed| SeqNum(passed.value));
            Timestamps { value: passed.later(SeqNum(echo)).0, echo: value }
        });
        Segment {
            flow: self.flow,
            seq: self.mobile.ack - 1,
            ack: Some(ack),
            window,
            options: Options { timestamps, ..Options::default() },
            ..Segment::default()
        }
    }

    /// This reset ends the connection: its number is one that its receiver expects (RFC 5961 §3.2;
    /// any other may be forged).
    pub fn is_reset<P: Payload>(&self, from: Side, segment: &Segment<P>) -> bool {
        let (first, last) = match from {
            // A window probe that was not accepted counts as sent.
            Side::Fixed => (self.mobile.ack, self.sent_end + 1),
            Side::Mobile => {
                let next = self.mobile.next_seq;
                (self.fixed_ack.map_or(next, |(ack, _)| ack), next)
            }
        };
        segment.flags.contains(Flags::RST)
            && segment.seq.at_or_after(first)
            && segment.seq.at_or_before(last)
    }

    /// The ACK of `ack` with this window field, as the mobile would send it now (see
    /// [`MobileEnd::acknowledge`]).
    pub fn acknowledge<P: Payload>(
        &self,
        ack: SeqNum,
        window: u16,
        echo: Option<u32>,
    ) -> Segment<P> {
        self.mobile.acknowledge(self.flow.reversed(), ack, window, echo)
    }

    /// A reset that the fixed host accepts, on the mobile's behalf.
    pub fn reset_fixed<P: Payload>(&self, acknowledged: SeqNum) -> Segment<P> {
        let ack: Segment<P> = self.acknowledge(acknowledged, 0, None);
        Segment { flags: Flags::RST, ..ack }
    }

    /// A reset that the mobile accepts, on the fixed host's behalf.
    pub fn reset_mobile<P: Payload>(&self) -> Segment<P> {
        Segment {
            flow: self.flow,
            seq: self.mobile.ack,
            ack: Some(self.mobile.next_seq),
            flags: Flags::RST,
            ..Segment::default()
        }
    }
}

/// A segment of the mobile, changed so that the fixed host sends nothing: it acknowledges `ack` at
/// least, closes the window and reports no SACK blocks.
pub fn closing<P: Payload>(segment: &Segment<P>, ack: SeqNum) -> Segment<P> {
    let mut closing = segment.clone();
    closing.ack = segment.ack.map(|own| own.later(ack));
    closing.window = 0;
    closing.options.sack = SackBlocks::new();
    closing
}

/// Drops a segment and answers what a host without this connection does (RFC 9293 §3.10.7.1).
pub fn refuse<P: Payload>(from: Side, segment: Segment<P>, out: &mut Actions<P>) {
    let (seq, ack) = match segment.ack {
        Some(ack) => (ack, None),
        None => (SeqNum(0), Some(segment.seq_end())),
    };
    let flow = segment.flow.reversed();
    out.drop(segment);
    out.inject(from, Segment { flow, seq, ack, flags: Flags::RST, ..Segment::default() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Length;

    fn segment(seq: u32, ack: u32, value: u32, echo: u32) -> Segment<Length> {
        let timestamps = Some(Timestamps { value, echo });
        let options = Options { timestamps, ..Options::default() };
        Segment { seq: SeqNum(seq), ack: Some(SeqNum(ack)), options, ..Segment::default() }
    }

    /// As a mobile showed them that has everything before 0.
    fn ends() -> Ends {
        Ends::new(&segment(7, 0, 900, 90), &Opening::default()).unwrap()
    }

    #[test]
    fn a_keep_alive_lies_before_what_the_mobile_expects_and_brings_no_news() {
        let mut ends = ends();
        ends.note_fixed(&Segment { window: 500, ..segment(0, 5, 100, 900) });
        let keep_alive: Segment<Length> = ends.keep_alive();
        assert_eq!((keep_alive.seq, keep_alive.seq_len()), (SeqNum(u32::MAX), 0));
        assert_eq!((keep_alive.ack, keep_alive.window), (Some(SeqNum(5)), 500), "the last word");
    }

    // RFC 7323 §5.
    #[test]
    fn a_keep_alive_is_no_older_than_what_the_mobile_has_seen() {
        let stamps = |ends: &Ends| ends.keep_alive::<Length>().options.timestamps.unwrap();
        let mut ends = ends();
        assert_eq!(stamps(&ends), Timestamps { value: 90, echo: 900 }, "as it echoed");
        ends.note_passed(segment(0, 7, 100, 900).options.timestamps);
        assert_eq!(stamps(&ends).value, 100, "it may have come");
        ends.note_mobile(&segment(7, 0, 950, 110));
        assert_eq!(stamps(&ends), Timestamps { value: 110, echo: 950 }, "another way");
    }
}
