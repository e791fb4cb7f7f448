//! The segments of one connection for scripts, numbered relative to the two initial sequence
//! numbers, so that the same script runs across a wraparound.

use airtcp_core::{Addr, Flags, Flow, Length, Options, Segment, SeqNum, Timestamps};
use std::net::{IpAddr, Ipv4Addr};

pub(crate) type Seg = Segment<Length>;

/// The mobile's window field.
const WINDOW: u16 = 500;

/// A fixed and a mobile host.
pub(crate) struct Hosts {
    /// From the fixed to the mobile host.
    pub(crate) flow: Flow,
    pub(crate) fixed_isn: SeqNum,
    pub(crate) mobile_isn: SeqNum,
}

impl Hosts {
    pub(crate) fn new(isn: u32) -> Self {
        let addr = |last, port| Addr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port);
        Self {
            flow: Flow { src: addr(1, 80), dst: addr(3, 5001) },
            fixed_isn: SeqNum(isn),
            mobile_isn: SeqNum(isn ^ 0x5555_5555),
        }
    }

    /// A segment from the fixed host.
    pub(crate) fn fixed(&self, seq: u32, len: u64) -> Seg {
        Segment {
            flow: self.flow,
            seq: self.fixed_isn + seq,
            ack: Some(self.mobile_isn),
            window: 8760,
            payload: Length(len),
            ..Segment::default()
        }
    }

    /// A pure ACK from the mobile.
    pub(crate) fn mobile(&self, ack: u32) -> Seg {
        Segment {
            flow: self.flow.reversed(),
            seq: self.mobile_isn,
            ack: Some(self.fixed_isn + ack),
            window: WINDOW,
            ..Segment::default()
        }
    }
}

pub(crate) fn with_flags(segment: Seg, flags: Flags) -> Seg {
    Segment { flags, ..segment }
}
pub(crate) fn with_window(segment: Seg, window: u16) -> Seg {
    Segment { window, ..segment }
}
pub(crate) fn with_payload(segment: Seg, len: u64) -> Seg {
    Segment { payload: Length(len), ..segment }
}
pub(crate) fn with_timestamps(segment: Seg, value: u32, echo: u32) -> Seg {
    let options = Options { timestamps: Some(Timestamps { value, echo }), ..segment.options };
    Segment { options, ..segment }
}
