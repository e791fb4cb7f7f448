//! What a monitor may ask of a connection, in the terms of Linux's `tcp_info`.

use super::Endpoint;
use crate::recovery::Phase;
use airtcp_core::Payload;

impl<P: Payload> Endpoint<P> {
    /// SMSS: the largest payload of a segment that we send, bytes.
    pub fn mss(&self) -> u32 {
        self.tx.mss
    }

    /// Where loss recovery stands.
    pub fn phase(&self) -> Phase {
        self.tx.recovery.phase()
    }

    /// Duplicate ACKs in a row.
    pub fn duplicate_acks(&self) -> u32 {
        self.tx.recovery.duplicate_acks()
    }

    /// Bytes beyond SND.UNA that the peer has reported by SACK.
    pub fn sacked(&self) -> u32 {
        self.tx.board.sacked_before(self.tx.max)
    }

    /// Expiries of the retransmission timer since the last new ACK.
    pub fn expiries(&self) -> u32 {
        self.tx.expiries
    }

    /// Window probes in a row without an answer.
    pub fn unanswered_probes(&self) -> u32 {
        self.tx.persist.as_ref().map_or(0, |persist| persist.unanswered)
    }

    /// Bytes written and not yet acknowledged, sent or not.
    pub fn unacknowledged(&self) -> u32 {
        self.tx.buffer.len() as u32
    }
}
