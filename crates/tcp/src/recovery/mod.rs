//! What to retransmit and when, apart from how cwnd moves: the phase of a sender and the SACK scoreboard.

pub mod scoreboard;

use airtcp_core::SeqNum;

/// Where a sender stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing lost that we know of.
    Open,
    /// Fast recovery after a fast retransmit.
    Recovery {
        /// NewReno, impatient (RFC 6582 §4): a partial ACK has already reset the timer.
        partial_seen: bool,
    },
    /// After a time-out, or Tahoe's fast retransmit: slow start from SND.UNA until SND.UNA passes the
    /// recovery point.
    Loss,
}

/// The guard against a second reduction for one window of data: RFC 6582's `recover`, ns-2's
/// `bugFix_`, RFC 6675's RecoveryPoint.
///
/// Holds SND.MAX at the last reduction until SND.UNA has passed it, then nothing: a stale mark would come
/// back to life half the sequence space later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryPoint(Option<SeqNum>);

impl RecoveryPoint {
    /// Marks the highest sequence number sent so far (exclusive).
    pub fn set(&mut self, max: SeqNum) {
        self.0 = Some(max);
    }
    /// Forgets the mark: the retransmission was spurious.
    pub fn clear(&mut self) {
        self.0 = None;
    }
    /// SND.UNA advanced: drops the mark when it lies behind (RFC 6582 §3.2 step 2 wants *more* than
    /// `recover` acknowledged).
    pub fn advance(&mut self, una: SeqNum) {
        if self.0.is_some_and(|mark| una.after(mark)) {
            self.0 = None;
        }
    }
    /// A new reduction is allowed.
    pub fn is_clear(&self) -> bool {
        self.0.is_none()
    }
    /// All data up to the mark is acknowledged: a full, not a partial ACK.
    pub fn is_reached(&self, una: SeqNum) -> bool {
        self.0.is_none_or(|mark| una.at_or_after(mark))
    }
    /// The mark.
    pub fn mark(&self) -> Option<SeqNum> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_mark_does_not_return_half_the_sequence_space_later() {
        let mut point = RecoveryPoint::default();
        point.set(SeqNum(1000));
        point.advance(SeqNum(1000));
        assert!(!point.is_clear() && point.is_reached(SeqNum(1000)));
        point.advance(SeqNum(1001));
        point.advance(SeqNum(1001) + (1 << 31));
        assert!(point.is_clear());
    }
}
