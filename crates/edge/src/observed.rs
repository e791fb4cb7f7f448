//! Both ends of a connection as their segments show them, for mechanisms that repeat segments of one and
//! judge acknowledgements of the other.

use crate::cache::SegmentCache;
use crate::mobile_end::MobileEnd;
use airtcp_core::{Flags, Flow, Options, Payload, Segment, SeqNum};

/// What is known of a connection's two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    /// The fixed host, in the same terms as the mobile.
    pub(crate) fixed: Option<MobileEnd>,
    /// The mobile, since its first believable acknowledgement.
    pub(crate) mobile: Option<MobileEnd>,
    /// From the mobile to the fixed host.
    pub(crate) flow: Flow,
}

impl Ends {
    /// Takes note of a segment of the fixed host.
    pub(crate) fn on_fixed<P: Payload>(&mut self, segment: &Segment<P>) {
        match &mut self.fixed {
            Some(fixed) => fixed.note(segment),
            None => {
                self.fixed = MobileEnd::new(segment);
                // What the mobile acknowledged before the fixed host showed itself was never sent.
                self.mobile = self.mobile.filter(|m| m.ack.at_or_before(segment.seq_end()));
            }
        }
    }

    /// Takes note of a segment of the mobile. Returns what was known before; `None` when the segment
    /// leaves no trace (it acknowledges nothing, or what did not come through here), or is the first one.
    pub(crate) fn on_mobile<P: Payload>(&mut self, segment: &Segment<P>) -> Option<MobileEnd> {
        let ack = segment.ack?;
        let sent = self.fixed.map(|fixed| fixed.next_seq);
        let Some(mobile) = &mut self.mobile else {
            if sent.is_none_or(|sent| ack.at_or_before(sent)) {
                self.flow = segment.flow;
                self.mobile = MobileEnd::new(segment);
            }
            return None;
        };
        if ack.after(sent.unwrap_or(mobile.ack)) {
            return None;
        }
        let before = *mobile;
        mobile.note(segment);
        Some(before)
    }

    /// A copied segment as the fixed host would send it again now: with its newest acknowledgement, window
    /// and timestamp. An old timestamp would not pass the mobile's PAWS test (RFC 7323 §5).
    pub(crate) fn refreshed<P: Payload>(&self, copy: &Segment<P>) -> Segment<P> {
        let Some(fixed) = &self.fixed else { return copy.clone() };
        let mut flags = copy.flags - Flags::CWR;
        flags.set(Flags::ECE, fixed.ece);
        Segment {
            ack: Some(fixed.ack),
            window: fixed.window,
            flags,
            options: Options { timestamps: fixed.timestamps, ..Options::default() },
            ..copy.clone()
        }
    }
}

/// Whether `segment` repeats the mobile's last ACK: a duplicate ACK (RFC 5681 §2), if data is outstanding.
/// One with a closed window is the answer to a probe.
pub(crate) fn is_duplicate<P: Payload>(last: &MobileEnd, segment: &Segment<P>) -> bool {
    segment.is_pure_ack()
        && segment.ack == Some(last.ack)
        && segment.window == last.window
        && segment.window != 0
        && segment.flags.contains(Flags::ECE) == last.ece
}

/// Whether the byte at `ack`, which the mobile waits for, is among the copies.
pub(crate) fn holds<P: Payload>(copies: &SegmentCache<P>, ack: SeqNum) -> bool {
    copies.first().is_some_and(|first| first.seq.at_or_before(ack) && first.seq_end().after(ack))
}
