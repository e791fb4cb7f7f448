//! The Data Receiver: counters of received segments and bytes, and their encoding (RFC 9768 §3.2.1,
//! §3.2.3.3).

use airtcp_core::{
    AccEcnOption, AccEcnOrder, Duration, Ecn, EcnBytes, Instant, MAX_OPTIONS_LEN, Options,
};

/// Initial r.cep, so that ACE is neither all zeros nor all ones (§3.2.1).
pub(super) const FIRST_CEP: u32 = 5;
/// Counter order of the options we send.
const ORDER: AccEcnOrder = AccEcnOrder::Ect1First;
/// Marked segments that make an ACK leave at once: with data to acknowledge, and without
/// (§3.2.2.5.1: n; above 2, so that two hosts do not acknowledge each other's ACKs forever).
const MARKS_WITH_DATA: u32 = 2;
const MARKS_WITHOUT_DATA: u32 = 3;
/// Options sent after a change if not every segment has one: the first may be lost.
const OPTIONS_AFTER_CHANGE: u32 = 2;
/// Options in a round trip at least (Linux: `TCP_ACCECN_OPTION_BEACON`).
const BEACONS: u64 = 3;
/// SACK blocks that counters never displace: loss reports cannot wait (§3.2.3.3).
const SACK_BLOCKS_KEPT: usize = 2;

/// Counters of received segments and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback {
    /// r.cep: segments marked CE, of any kind.
    cep: u32,
    /// r.e0b, r.e1b and r.ceb: bytes received by ECN field.
    bytes: EcnBytes,
    /// Option fields needed to show every counter that has changed.
    fields: usize,
    /// ECN field of the last segment.
    last: Ecn,
    /// ECN field of the last payload that was counted.
    counted: Ecn,
    /// Marks not yet reported in an ACE field.
    untold: u32,
    /// Segments still to carry the option because of the last change.
    owed: u32,
    /// Time of the last option sent.
    told_at: Option<Instant>,
}

impl Default for Feedback {
    fn default() -> Self {
        Self {
            cep: FIRST_CEP,
            bytes: EcnBytes::INITIAL,
            fields: 0,
            last: Ecn::NotEct,
            untold: 0,
            counted: Ecn::NotEct,
            owed: 0,
            told_at: None,
        }
    }
}

impl Feedback {
    /// Counts a segment with `payload` bytes; `unacked`: data awaits an ACK, including this
    /// segment's. Returns true if an ACK is due at once (§3.2.2.5.1): for the first mark on data
    /// after an unmarked segment, or for several marks.
    pub(crate) fn on_packet(&mut self, ecn: Ecn, payload: u32, unacked: bool) -> bool {
        if payload > 0 {
            self.count_bytes(ecn, payload);
        }
        let is_first = std::mem::replace(&mut self.last, ecn) != Ecn::Ce;
        if ecn != Ecn::Ce {
            return false;
        }
        self.cep = self.cep.wrapping_add(1);
        self.untold += 1;
        let most = if unacked { MARKS_WITH_DATA } else { MARKS_WITHOUT_DATA };
        (payload > 0 && is_first) || self.untold >= most
    }

    fn count_bytes(&mut self, ecn: Ecn, payload: u32) {
        self.bytes.add(ecn, payload);
        self.fields = self.fields.max(ORDER.fields_for(ecn));
        if ecn == Ecn::Ce || (ecn.is_capable() && ecn != self.counted) {
            self.owed = OPTIONS_AFTER_CHANGE;
        }
        if ecn.is_capable() {
            self.counted = ecn;
        }
    }

    /// True if a mark or a change of the ECN field has yet to be reported (§3.2.3.3), or no option
    /// was sent for a third of a round trip.
    pub(super) fn is_due(&self, now: Instant, rtt: Option<Duration>) -> bool {
        let is_late = |told: Instant| rtt.is_none_or(|rtt| now.since(told) * BEACONS >= rtt);
        self.owed > 0 || self.told_at.is_none_or(is_late)
    }

    /// r.cep, for a segment that leaves now: reports all marks so far.
    pub(super) fn take_cep(&mut self) -> u32 {
        self.untold = 0;
        self.cep
    }

    /// Marked segments since the connection began.
    pub(crate) fn marked(&self) -> u32 {
        self.cep.wrapping_sub(FIRST_CEP)
    }

    /// Bytes received by ECN field, as the option reports them.
    pub(crate) fn bytes(&self) -> EcnBytes {
        self.bytes
    }

    /// Adds the option where it fits, with as many counters as there is room for, but no fewer than
    /// have changed. It displaces the third and fourth SACK block.
    pub(super) fn add_option(&mut self, now: Instant, options: &mut Options) {
        let blocks = options.sack.as_slice().len();
        let least = if self.fields > 0 { SACK_BLOCKS_KEPT.min(blocks) } else { blocks };
        for kept in (least..=blocks).rev() {
            let sack = options.sack.as_slice()[..kept].iter().copied().collect();
            let shorter = Options { sack, ..*options };
            let room = MAX_OPTIONS_LEN.saturating_sub(shorter.encoded_len());
            let fields =
                (self.fields..=3).rev().find(|fields| AccEcnOption::padded_len(*fields) <= room);
            if let Some(fields) = fields {
                let accecn = Some(AccEcnOption::new(ORDER, &self.bytes, fields));
                *options = Options { accecn, ..shorter };
                self.owed = self.owed.saturating_sub(1);
                self.told_at = Some(now);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{SackBlock, SeqNum, Timestamps};

    fn options(timestamps: bool, blocks: u32) -> Options {
        let block = |i| SackBlock { left: SeqNum(10 * i), right: SeqNum(10 * i + 5) };
        let timestamps = timestamps.then(Timestamps::default);
        Options { timestamps, sack: (0..blocks).map(block).collect(), ..Options::default() }
    }

    /// Counters after payload with these ECN fields; returns how many SACK blocks and option fields
    /// are sent.
    fn fit(seen: &[Ecn], timestamps: bool, blocks: u32) -> (usize, Option<usize>) {
        let mut feedback = Feedback::default();
        for ecn in seen {
            feedback.on_packet(*ecn, 1000, true);
        }
        let mut options = options(timestamps, blocks);
        feedback.add_option(Instant::ZERO, &mut options);
        assert!(options.encoded_len() <= MAX_OPTIONS_LEN);
        (options.sack.as_slice().len(), options.accecn.map(|accecn| accecn.wire().len() / 3))
    }

    // RFC 9768 §3.2, §3.2.1: r.cep counts every marked segment, and begins with 5.
    #[test]
    fn each_marked_segment_counts_with_and_without_data() {
        let mut feedback = Feedback::default();
        for (ecn, payload) in [(Ecn::Ce, 1000), (Ecn::Ce, 0), (Ecn::Ect0, 1000), (Ecn::Ce, 10)] {
            feedback.on_packet(ecn, payload, payload > 0);
        }
        assert_eq!(feedback.take_cep(), 8);
        assert_eq!(feedback.bytes, EcnBytes { ect0: 1001, ect1: 1, ce: 1010 });
    }

    // §3.2.2.5.1
    #[test]
    fn the_first_mark_and_every_second_ask_for_an_ack() {
        let mut feedback = Feedback::default();
        assert!(!feedback.on_packet(Ecn::Ect0, 1000, true));
        assert!(feedback.on_packet(Ecn::Ce, 1000, true), "a change");
        feedback.take_cep();
        assert!(!feedback.on_packet(Ecn::Ce, 1000, true));
        assert!(feedback.on_packet(Ecn::Ce, 1000, true), "two untold");
    }

    // §3.2.3.3: the next ACK and the one after it; then, as Linux, three in a round trip.
    #[test]
    fn options_are_due_after_changes_and_three_times_a_round_trip() {
        let (mut feedback, rtt) = (Feedback::default(), Some(Duration::from_millis(90)));
        let tell = |feedback: &mut Feedback, ms| {
            feedback.add_option(Instant::from_millis(ms), &mut Options::default());
        };
        let due = |feedback: &Feedback, ms| feedback.is_due(Instant::from_millis(ms), rtt);
        feedback.on_packet(Ecn::Ect0, 9, true);
        tell(&mut feedback, 100);
        assert!(due(&feedback, 100));
        tell(&mut feedback, 100);
        assert!(!due(&feedback, 129));
        assert!(due(&feedback, 130));
        feedback.on_packet(Ecn::Ce, 9, true);
        assert!(due(&feedback, 100), "a mark");
    }

    // §3.2.2.5.1: without data it takes three.
    #[test]
    fn three_marked_acks_ask_for_an_ack() {
        let mut feedback = Feedback::default();
        let asks = [0; 3].map(|payload| feedback.on_packet(Ecn::Ce, payload, false));
        assert_eq!(asks, [false, false, true]);
    }

    // §3.2.3.3: all counters where there is room, at least those that have moved otherwise.
    #[test]
    fn the_option_has_as_many_counters_as_fit() {
        assert_eq!(fit(&[Ecn::Ect0], true, 0), (0, Some(3)));
        assert_eq!(fit(&[Ecn::Ect1], true, 1), (1, Some(3)));
        assert_eq!(fit(&[Ecn::Ect1, Ecn::Ce], true, 2), (2, Some(2)));
        assert_eq!(fit(&[Ecn::Ect0], true, 2), (2, None), "the third does not fit");
    }

    // §3.2.3.3: SACK first, but not all of it.
    #[test]
    fn the_third_sack_block_makes_way() {
        assert_eq!(fit(&[Ecn::Ect1], true, 3), (2, Some(2)));
        assert_eq!(fit(&[Ecn::Ect0], false, 4), (3, Some(3)));
        assert_eq!(fit(&[Ecn::Ect0], true, 3), (3, None), "nothing is gained");
        assert_eq!(fit(&[], true, 3), (3, None), "no counter has moved");
    }
}
