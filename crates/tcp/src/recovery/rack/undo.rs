//! Detection of needless reductions: DSACKs report each retransmission as a duplicate (RFC 2883,
//! RFC 3708), or the timestamp of an ACK shows that an original transmission arrived (Eifel, RFC
//! 3522).

use crate::congestion::Windows;
use airtcp_core::SeqNum;

/// The reduction that may be undone, and the evidence that it was needless.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// SND.UNA when the phase began. Kept after its end: DSACKs may be late.
    marker: Option<SeqNum>,
    /// Retransmissions since then not reported by a DSACK; `None` before the first.
    unreported: Option<u32>,
    /// The windows before the reduction.
    before: Option<Windows>,
    /// Retransmissions and reported duplicates since the connection began.
    retransmitted: u64,
    duplicates: u64,
}

impl Undo {
    /// Saves the windows before the reduction.
    pub(super) fn save(&mut self, before: Windows) {
        self.before = Some(before);
    }

    /// Forgets the saved windows, which must not be restored: a queue has marked a packet.
    pub(super) fn forget_windows(&mut self) {
        self.before = None;
    }

    pub(super) fn take_windows(&mut self) -> Option<Windows> {
        self.before.take()
    }

    /// Begins a phase, with `in_network` retransmissions in the network.
    pub(super) fn arm(&mut self, una: SeqNum, in_network: u32) {
        self.marker = Some(una);
        self.unreported = (in_network > 0).then_some(in_network);
    }

    pub(super) fn disarm(&mut self) {
        self.marker = None;
    }

    pub(super) fn is_armed(&self) -> bool {
        self.marker.is_some()
    }

    pub(super) fn on_retransmitted(&mut self) {
        self.retransmitted += 1;
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// Counts reported duplicates; false if they outnumber the retransmissions.
    pub(super) fn count_duplicate(&mut self, segments: u32) -> bool {
        self.duplicates += u64::from(segments);
        self.duplicates <= self.retransmitted
    }

    /// Handles reported duplicates of data up to `end`.
    pub(super) fn on_duplicate(&mut self, end: SeqNum, segments: u32) {
        if self.marker.is_some_and(|marker| end.after(marker))
            && let Some(unreported) = self.unreported.filter(|&n| n > 0)
        {
            self.unreported = Some(unreported.saturating_sub(segments));
        }
    }

    /// True if every retransmission was a duplicate.
    pub(super) fn all_duplicates(&self) -> bool {
        self.marker.is_some() && self.unreported == Some(0)
    }

    /// True if the reduction was needless. Both arguments are times of our timestamp clock.
    pub(super) fn is_needless(&self, echo: Option<u32>, first_retransmission: Option<u32>) -> bool {
        self.all_duplicates() || (self.is_armed() && was_delayed(echo, first_retransmission))
    }
}

/// True if the segment that an ACK covers was sent before the first retransmission, or there was
/// none.
pub(super) fn was_delayed(echo: Option<u32>, first_retransmission: Option<u32>) -> bool {
    match (echo, first_retransmission) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(echo), Some(first)) => is_older(echo, first),
    }
}

/// Compares timestamps, which wrap.
pub(super) fn is_older(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dsack_for_each_retransmission_undoes() {
        let mut undo = Undo::default();
        undo.arm(SeqNum(1000), 0);
        assert!(!undo.all_duplicates(), "nothing was retransmitted yet");
        undo.on_retransmitted();
        undo.on_retransmitted();
        assert!(undo.count_duplicate(1));
        undo.on_duplicate(SeqNum(2000), 1);
        assert!(!undo.all_duplicates());
        undo.on_duplicate(SeqNum(3000), 1);
        assert!(undo.all_duplicates());
    }

    #[test]
    fn duplicates_from_before_the_phase_say_nothing() {
        let mut undo = Undo::default();
        undo.arm(SeqNum(1000), 1);
        undo.on_duplicate(SeqNum(1000), 1);
        assert!(!undo.all_duplicates());
    }

    // RFC 3522 §3.2: an echo from before the retransmission, also across the wrap.
    #[test]
    fn an_older_echo_shows_that_the_original_arrived() {
        assert!(was_delayed(Some(u32::MAX - 4), Some(3)));
        assert!(!was_delayed(Some(3), Some(3)));
        assert!(!was_delayed(None, Some(3)));
    }
}
