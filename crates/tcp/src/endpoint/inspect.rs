//! State of a connection for monitoring, in the terms of Linux's `tcp_info`.

use super::Endpoint;
use crate::recovery::RecoveryPhase;
use airtcp_core::{Duration, Payload};

impl<P: Payload> Endpoint<P> {
    /// SMSS: the largest payload of a segment that we send, bytes.
    pub fn mss(&self) -> u32 {
        self.tx.mss
    }

    /// Phase of loss recovery.
    pub fn phase(&self) -> RecoveryPhase {
        self.tx.recovery.phase()
    }

    /// Duplicate ACKs in a row.
    pub fn duplicate_acks(&self) -> u32 {
        self.tx.recovery.duplicate_acks()
    }

    /// Bytes beyond SND.UNA that the peer has reported by SACK.
    pub fn sacked(&self) -> u32 {
        match &self.tx.rack {
            Some(rack) => rack.queue().sacked().bytes,
            None => self.tx.board.sacked_before(self.tx.max),
        }
    }

    /// Bytes taken for lost and neither acknowledged nor SACKed since; 0 without RACK.
    pub fn lost(&self) -> u32 {
        self.tx.rack.as_ref().map_or(0, |rack| rack.queue().lost().bytes)
    }

    /// Bytes of retransmissions in the network; 0 without RACK.
    pub fn resent(&self) -> u32 {
        self.tx.rack.as_ref().map_or(0, |rack| rack.queue().resent().bytes)
    }

    /// Reordering degree of the path in segments, at least 3 (RFC 5681's DupThresh).
    pub fn reordering(&self) -> u32 {
        self.tx.rack.as_ref().map_or(3, |rack| rack.reordering())
    }

    /// True if data is SACKed or retransmissions are in the network, but nothing is known to be
    /// lost (Linux's Disorder); false without RACK.
    pub fn in_disorder(&self) -> bool {
        let open = self.tx.recovery.phase() == RecoveryPhase::Open;
        open && self.tx.rack.as_ref().is_some_and(|rack| rack.in_disorder())
    }

    /// Bytes delivered, by acknowledgement or SACK; 0 without RACK.
    pub fn delivered(&self) -> u64 {
        self.tx.rack.as_ref().map_or(0, |rack| rack.delivered().total())
    }

    /// Of these, reported as marked by a queue.
    pub fn delivered_ce(&self) -> u64 {
        self.tx.rack.as_ref().map_or(0, |rack| rack.delivered().ce())
    }

    /// Smallest RTT of the last five minutes, measured by RACK.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.tx.rack.as_ref().and_then(|rack| rack.min_rtt())
    }

    /// Expiries of the retransmission timer since the last new ACK.
    pub fn expiries(&self) -> u32 {
        self.tx.expiries
    }

    /// Window probes in a row without an answer.
    pub fn unanswered_probes(&self) -> u32 {
        self.tx.persist.as_ref().map_or(0, |persist| persist.unanswered)
    }

    /// Most bytes that the application read in a round trip; at first ten segments. Measured only
    /// with autotuning.
    pub fn receive_space(&self) -> u32 {
        self.rx.space()
    }

    /// Bytes written and not yet acknowledged, sent or not.
    pub fn unacknowledged(&self) -> u32 {
        self.tx.buffer.len() as u32
    }
}
