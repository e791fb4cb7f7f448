//! What an ACK in the mobile's name needs.

use airtcp_core::{Flags, Flow, Options, Payload, Segment, SeqNum, Timestamps};

/// The mobile end of a connection as its own segments, and those to it, showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MobileEnd {
    /// The highest acknowledgement number.
    pub ack: SeqNum,
    /// The window field that came with it last, in the mobile's scale.
    pub window: u16,
    /// ECN echo that came with it.
    pub ece: bool,
    /// The mobile's next sequence number: what the fixed host expects.
    pub next_seq: SeqNum,
    /// The mobile's newest timestamps.
    pub timestamps: Option<Timestamps>,
}

impl MobileEnd {
    /// As the first ACK of a connection shows it; `None` when the segment acknowledges nothing.
    pub fn new<P: Payload>(segment: &Segment<P>) -> Option<Self> {
        Some(Self {
            ack: segment.ack?,
            window: segment.window,
            ece: segment.flags.contains(Flags::ECE),
            next_seq: segment.seq_end(),
            timestamps: segment.options.timestamps,
        })
    }

    /// Takes note of a later segment of the mobile. An older acknowledgement than the one known brings no
    /// window.
    pub fn note<P: Payload>(&mut self, segment: &Segment<P>) {
        self.next_seq = self.next_seq.later(segment.seq_end());
        if let Some(new) = segment.options.timestamps {
            // TSval is compared like a sequence number (RFC 7323 §5.2); reordered segments carry older ones.
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
            self.ece = segment.flags.contains(Flags::ECE);
        }
    }

    /// The pure ACK of `ack` with this window field, as the mobile would send it now; `flow` is from the
    /// mobile to the fixed host. `echo` is the fixed host's TSval to echo, if it is newer than the mobile's
    /// last echo.
    pub fn acknowledge<P: Payload>(
        &self,
        flow: Flow,
        ack: SeqNum,
        window: u16,
        echo: Option<u32>,
    ) -> Segment<P> {
        let timestamps =
            self.timestamps.map(|known| Timestamps { echo: echo.unwrap_or(known.echo), ..known });
        Segment {
            flow,
            seq: self.next_seq,
            ack: Some(ack),
            window,
            flags: if self.ece { Flags::ECE } else { Flags::empty() },
            options: Options { timestamps, ..Options::default() },
            payload: P::default(),
        }
    }
}
