//! Both peers of a connection, as a node between them saw them: all that a mechanism needs to send
//! segments on behalf of either.

use crate::conntrack::mobile_peer::MobilePeer;
use crate::conntrack::validate::{ValidPacket, Windows, latest_ack};
use crate::middlebox::{Actions, Side};
use airtcp_core::{
    Duration, Flags, Flow, Instant, Options, Payload, SackBlocks, Segment, SeqNum, Timestamps,
};
use serde::{Deserialize, Serialize};

/// Both peers of an established connection, as their segments showed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Peers {
    /// From the fixed to the mobile host.
    flow: Flow,
    windows: Windows,
    /// The newest timestamps that the mobile may have seen.
    passed: Option<Timestamps>,
    /// Time of the last challenge ACK to the fixed host.
    challenged: Option<Instant>,
}

impl Peers {
    /// Of the connection with this flow from the fixed to the mobile host.
    pub fn new(flow: Flow, windows: Windows) -> Self {
        Self { flow, windows, passed: None, challenged: None }
    }

    /// Sequence numbers, acknowledgements and windows of both directions.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// From the fixed to the mobile host.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The mobile's end.
    pub fn mobile(&self) -> &MobilePeer {
        self.windows.mobile()
    }

    /// The highest byte that the mobile acknowledged, plus one.
    pub fn mobile_ack(&self) -> SeqNum {
        self.mobile().ack
    }

    /// The fixed host has sent all of this segment before. Ask before it is noted.
    pub fn is_retransmission<P: Payload>(&self, segment: &Segment<P>) -> bool {
        segment.seq_len() > 0 && segment.seq_end().at_or_before(self.windows.sent_end())
    }

    /// Takes note of a segment.
    pub fn note<P: Payload>(&mut self, from: Side, segment: &ValidPacket<P>) {
        self.windows.note(from, segment);
    }

    /// A segment of the fixed host with these timestamps goes on to the mobile as it came.
    pub fn note_passed(&mut self, timestamps: Option<Timestamps>) {
        self.passed = newer(self.passed, timestamps);
    }

    /// A copy as it is sent now: with the fixed host's newest acknowledgement, which a mobile
    /// without this connection repeats in its reset, and the window of that, with timestamps that
    /// the mobile does not take for old (RFC 7323 §5). It may have seen newer ones, on a
    /// retransmission of earlier data. AccECN's option is left out, as it may be from any segment
    /// (RFC 9768 §3.2.3): its counts are old.
    pub fn renewed<P: Payload>(&mut self, copy: &Segment<P>) -> Segment<P> {
        let mut renewed = copy.clone();
        let latest = self.windows.fixed_ack();
        let (ack, window) = copy.ack.map_or(latest, |ack| latest_ack((ack, copy.window), latest));
        renewed.ack = Some(ack);
        renewed.window = window;
        renewed.flags = self.windows.fixed_ace().renew(renewed.flags);
        renewed.options.accecn = None;
        if copy.options.timestamps.is_some() {
            self.note_passed(copy.options.timestamps);
            renewed.options.timestamps = self.newest_seen();
        }
        renewed
    }

    /// The newest timestamps of the fixed host that the mobile may have seen: passed here, or shown
    /// by the mobile's echoes, if they went another way or before this node started.
    fn newest_seen(&self) -> Option<Timestamps> {
        let reversed = |Timestamps { value, echo }| Timestamps { value: echo, echo: value };
        newer(self.passed, self.mobile().timestamps.map(reversed))
    }

    /// A segment that changes nothing and is answered at once, since it lies before what the mobile
    /// expects: a keep-alive (RFC 9293 §3.8.4). A mobile without this connection repeats its
    /// acknowledgement in its reset.
    pub fn keep_alive<P: Payload>(&self) -> Segment<P> {
        let (ack, window) = self.windows.fixed_ack();
        // No older than any that the mobile has seen, or it would fall to PAWS without an answer.
        let timestamps = self.mobile().timestamps.and_then(|mobile| {
            self.newest_seen().map(|newest| Timestamps { echo: mobile.value, ..newest })
        });
        Segment {
            flow: self.flow,
            seq: self.mobile().ack - 1,
            ack: Some(ack),
            window,
            flags: self.windows.fixed_ace().echo(),
            options: Options { timestamps, ..Options::default() },
            ..Segment::default()
        }
    }

    /// Asks the fixed host, on the mobile's behalf, what it meant (RFC 5961 §3.2, §4.2): the ACK of
    /// `ack_sent` with a closed window, unless one was sent less than `interval` ago.
    pub(crate) fn challenge<P: Payload>(
        &mut self,
        now: Instant,
        ack_sent: SeqNum,
        interval: Duration,
    ) -> Option<Segment<P>> {
        if self.challenged.is_some_and(|last| now.since(last) < interval) {
            return None;
        }
        self.challenged = Some(now);
        Some(self.acknowledge(ack_sent, 0, None))
    }

    /// The ACK of `ack` with this window field, as the mobile would send it now (see
    /// [`MobilePeer::acknowledge`]).
    pub fn acknowledge<P: Payload>(
        &self,
        ack: SeqNum,
        window: u16,
        echo: Option<u32>,
    ) -> Segment<P> {
        self.mobile().acknowledge(self.flow.reversed(), ack, window, echo)
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
            seq: self.mobile().ack,
            ack: Some(self.mobile().next_seq),
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

/// The newer timestamps by TSval (RFC 7323 §5.2), `known` if they are equal.
fn newer(known: Option<Timestamps>, other: Option<Timestamps>) -> Option<Timestamps> {
    match (known, other) {
        (Some(old), Some(new)) if SeqNum(new.value).after(SeqNum(old.value)) => Some(new),
        _ => known.or(other),
    }
}

/// Drops a segment and answers what a host without this connection does (RFC 9293 §3.10.7.1).
pub fn refuse<P: Payload>(from: Side, segment: ValidPacket<P>, out: &mut Actions<P>) {
    let (seq, ack) = match segment.ack {
        Some(ack) => (ack, None),
        None => (SeqNum(0), Some(segment.seq_end())),
    };
    let flow = segment.flow.reversed();
    out.drop(segment.into_segment());
    out.inject(from, Segment { flow, seq, ack, flags: Flags::RST, ..Segment::default() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conntrack::validate::Pickup;
    use airtcp_core::Length;

    fn segment(seq: u32, ack: u32, value: u32, echo: u32) -> Segment<Length> {
        let timestamps = Some(Timestamps { value, echo });
        let options = Options { timestamps, ..Options::default() };
        Segment { seq: SeqNum(seq), ack: Some(SeqNum(ack)), options, ..Segment::default() }
    }

    /// As a mobile showed them that has everything before 0, and a fixed host that has sent that.
    fn peers() -> Peers {
        let mut pickup = Pickup::default();
        let mobile = segment(7, 0, 900, 90);
        assert_eq!(pickup.update(Side::Mobile, &mobile), None);
        let fixed = Segment { options: Options::default(), ..segment(0, 5, 0, 0) };
        Peers::new(Flow::default(), pickup.update(Side::Fixed, &fixed).expect("they agree"))
    }

    fn note(peers: &mut Peers, from: Side, segment: Segment<Length>) {
        peers.note(from, &ValidPacket::unjudged(segment));
    }

    #[test]
    fn a_keep_alive_lies_before_what_the_mobile_expects_and_brings_no_news() {
        let mut peers = peers();
        note(&mut peers, Side::Fixed, Segment { window: 500, ..segment(0, 5, 100, 900) });
        let keep_alive: Segment<Length> = peers.keep_alive();
        assert_eq!((keep_alive.seq, keep_alive.seq_len()), (SeqNum(u32::MAX), 0));
        assert_eq!((keep_alive.ack, keep_alive.window), (Some(SeqNum(5)), 500), "the last word");
    }

    // RFC 7323 §5.
    #[test]
    fn a_keep_alive_is_no_older_than_what_the_mobile_has_seen() {
        let stamps = |peers: &Peers| peers.keep_alive::<Length>().options.timestamps.unwrap();
        let mut peers = peers();
        assert_eq!(stamps(&peers), Timestamps { value: 90, echo: 900 }, "as it echoed");
        peers.note_passed(segment(0, 7, 100, 900).options.timestamps);
        assert_eq!(stamps(&peers).value, 100, "it may have come");
        note(&mut peers, Side::Mobile, segment(7, 0, 950, 110));
        assert_eq!(stamps(&peers), Timestamps { value: 110, echo: 950 }, "another way");
    }

    // RFC 7323 §5. A node that starts anew has not seen what passed before.
    #[test]
    fn a_copy_is_sent_with_timestamps_no_older_than_the_mobile_echoes() {
        let mut peers = peers();
        let copy = segment(0, 5, 100, 900);
        let value = |peers: &mut Peers| peers.renewed(&copy).options.timestamps.unwrap().value;
        assert_eq!(value(&mut peers), 100);
        note(&mut peers, Side::Mobile, segment(7, 0, 950, 110));
        assert_eq!(value(&mut peers), 110);
    }
}
