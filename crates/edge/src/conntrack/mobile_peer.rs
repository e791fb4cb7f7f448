//! What an ACK on the mobile's behalf needs.

use crate::conntrack::ace::Ace;
use airtcp_core::{Ecn, Flags, Flow, Options, Payload, Segment, SeqNum, Timestamps};
use serde::{Deserialize, Serialize};

/// The mobile end of a connection as its own segments, and those to it, showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MobilePeer {
    /// The highest acknowledgement number.
    pub ack: SeqNum,
    /// The window field that came with it last, in the mobile's scale.
    pub window: u16,
    /// Congestion marks that came with it: the ECN echo, or AccECN's counter.
    pub ace: Ace,
    /// The mobile's next sequence number: what the fixed host expects.
    pub next_seq: SeqNum,
    /// The mobile's newest timestamps.
    pub timestamps: Option<Timestamps>,
}

impl MobilePeer {
    /// As the first ACK of a connection shows it; `None` when the segment acknowledges nothing.
    pub fn new<P: Payload>(segment: &Segment<P>) -> Option<Self> {
        Some(Self {
            ack: segment.ack?,
            window: segment.window,
            ace: Ace::of(segment),
            next_seq: segment.seq_end(),
            timestamps: segment.options.timestamps,
        })
    }

    /// Takes note of a later segment of the mobile. An older acknowledgement than the one known
    /// brings no window.
    pub fn note<P: Payload>(&mut self, segment: &Segment<P>) {
        self.next_seq = self.next_seq.later(segment.seq_end());
        if let Some(new) = segment.options.timestamps {
            // TSval is compared like a sequence number (RFC 7323 §5.2); reordered segments carry
            // older ones.
            let newer =
                self.timestamps.is_none_or(|old| SeqNum(new.value).at_or_after(SeqNum(old.value)));
            if newer {
                self.timestamps = Some(new);
            }
        }
        if let Some(ack) = segment.ack
            && ack.at_or_after(self.ack)
        {
            self.ack = ack;
            self.window = segment.window;
            self.ace = self.ace.followed_by(Ace::of(segment));
        }
    }

    /// True if a segment of the mobile repeats its last ACK: a duplicate (RFC 5681 §2), if data is
    /// outstanding. One with a closed window is the answer to a probe.
    pub fn is_repeated_by<P: Payload>(&self, segment: &Segment<P>) -> bool {
        segment.is_pure_ack()
            && segment.ack == Some(self.ack)
            && segment.window == self.window
            && segment.window != 0
            && self.echoes_as(segment.flags)
    }

    /// True if `flags` echo the same congestion marks as the last ACK.
    pub fn echoes_as(&self, flags: Flags) -> bool {
        self.ace.is_shown_by(flags)
    }

    /// The mobile's latest acknowledgement once more, as the mobile would send it now; `flow` is
    /// from the mobile to the fixed host.
    pub fn latest_ack<P: Payload>(&self, flow: Flow) -> Segment<P> {
        self.acknowledge(flow, self.ack, self.window, None)
    }

    /// The pure ACK of `ack` with this window field, as the mobile would send it now; `flow` is
    /// from the mobile to the fixed host. `echo` is a TSval of the fixed host, echoed if it is
    /// newer than what the mobile echoed last.
    pub fn acknowledge<P: Payload>(
        &self,
        flow: Flow,
        ack: SeqNum,
        window: u16,
        echo: Option<u32>,
    ) -> Segment<P> {
        let timestamps = self.timestamps.map(|known| {
            let last = SeqNum(known.echo);
            Timestamps { echo: echo.map_or(last, |new| SeqNum(new).later(last)).0, ..known }
        });
        Segment {
            flow,
            seq: self.next_seq,
            ack: Some(ack),
            window,
            flags: self.ace.echo(),
            ecn: Ecn::NotEct,
            options: Options { timestamps, ..Options::default() },
            payload: P::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Length;

    fn segment(ack: u32, window: u16) -> Segment<Length> {
        Segment { seq: SeqNum(u32::MAX - 9), ack: Some(SeqNum(ack)), window, ..Segment::default() }
    }

    fn with_timestamps(segment: Segment<Length>, value: u32, echo: u32) -> Segment<Length> {
        let timestamps = Some(Timestamps { value, echo });
        Segment { options: Options { timestamps, ..Options::default() }, ..segment }
    }

    fn acknowledged(end: &MobilePeer, echo: Option<u32>) -> Segment<Length> {
        end.acknowledge(Flow::default(), end.ack, end.window, echo)
    }

    #[test]
    fn the_latest_acknowledgement_brings_the_window() {
        let mut end = MobilePeer::new(&segment(100, 10)).unwrap();
        end.note(&segment(50, 20));
        assert_eq!((end.ack, end.window), (SeqNum(100), 10));
        end.note(&segment(100, 30));
        assert_eq!((end.ack, end.window), (SeqNum(100), 30));
    }

    #[test]
    fn an_ack_in_the_mobile_s_name_follows_its_data() {
        let mut end = MobilePeer::new(&segment(100, 10)).unwrap();
        end.note(&Segment { payload: Length(15), ..segment(100, 10) });
        end.note(&Segment { payload: Length(5), ..segment(100, 10) });
        assert_eq!(acknowledged(&end, None).seq, SeqNum(5), "across the wraparound");
    }

    #[test]
    fn timestamps_never_go_back() {
        let mut end = MobilePeer::new(&with_timestamps(segment(1, 10), u32::MAX, 7)).unwrap();
        end.note(&with_timestamps(segment(1, 10), 2, 9));
        end.note(&with_timestamps(segment(1, 10), u32::MAX - 1, 8));
        let timestamps = |echo| acknowledged(&end, echo).options.timestamps.unwrap();
        assert_eq!(timestamps(None), Timestamps { value: 2, echo: 9 });
        assert_eq!(timestamps(Some(8)), Timestamps { value: 2, echo: 9 });
        assert_eq!(timestamps(Some(20)), Timestamps { value: 2, echo: 20 });
    }

    #[test]
    fn without_timestamps_none_are_made_up() {
        let end = MobilePeer::new(&segment(1, 10)).unwrap();
        assert_eq!(acknowledged(&end, Some(5)).options, Options::default());
    }
}
