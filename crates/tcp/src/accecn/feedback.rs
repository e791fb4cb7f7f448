//! The Data Receiver: counters of what arrived, and how they travel (RFC 9768 §3.2.1, §3.2.3.3).

use airtcp_core::{AccEcnOption, AccEcnOrder, Ecn, EcnBytes, MAX_OPTIONS_LEN, Options};

/// What r.cep begins with: ACE is then neither all zeros nor all ones (§3.2.1).
pub(super) const FIRST_CEP: u32 = 5;
/// The order of our options.
const ORDER: AccEcnOrder = AccEcnOrder::Ect1First;
/// Marked segments after which an ACK leaves at once: with data to acknowledge, and without (§3.2.2.5.1:
/// n, where more than 2 keeps two hosts from acknowledging each other's ACKs for ever).
const MARKS_WITH_DATA: u32 = 2;
const MARKS_WITHOUT_DATA: u32 = 3;
/// SACK blocks that do not make way for counters: what is lost cannot wait (§3.2.3.3).
const SACK_BLOCKS_KEPT: usize = 2;

/// Counters of what arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback {
    /// r.cep: segments marked CE, of any kind.
    cep: u32,
    /// r.e0b, r.e1b and r.ceb.
    bytes: EcnBytes,
    /// Fields that the option needs to show each counter that has moved.
    fields: usize,
    /// ECN field of the last segment.
    last: Ecn,
    /// Marks that no ACE field of ours has told.
    untold: u32,
}

impl Default for Feedback {
    fn default() -> Self {
        Self { cep: FIRST_CEP, bytes: EcnBytes::INITIAL, fields: 0, last: Ecn::NotEct, untold: 0 }
    }
}

impl Feedback {
    /// A segment with `payload` bytes arrived. Returns whether it asks for an ACK at once
    /// (§3.2.2.5.1): it is the first mark after a segment without one, or one of several.
    pub(crate) fn on_packet(&mut self, ecn: Ecn, payload: u32) -> bool {
        let before = std::mem::replace(&mut self.last, ecn);
        if payload > 0 {
            self.bytes.add(ecn, payload);
            self.fields = self.fields.max(ORDER.fields_for(ecn));
        }
        if ecn != Ecn::Ce {
            return false;
        }
        self.cep = self.cep.wrapping_add(1);
        self.untold += 1;
        if payload > 0 {
            before != Ecn::Ce || self.untold >= MARKS_WITH_DATA
        } else {
            self.untold >= MARKS_WITHOUT_DATA
        }
    }

    /// r.cep, for a segment that leaves now.
    pub(super) fn take_cep(&mut self) -> u32 {
        self.untold = 0;
        self.cep
    }

    /// Marked segments since the connection began.
    pub(crate) fn marked(&self) -> u32 {
        self.cep.wrapping_sub(FIRST_CEP)
    }

    /// The byte counters.
    pub(crate) fn bytes(&self) -> EcnBytes {
        self.bytes
    }

    /// Adds the option where it fits: with as many counters as there is room for, but no fewer than
    /// have moved. The third and fourth SACK block make way.
    pub(crate) fn add_option(&self, options: &mut Options) {
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

    /// Counters after payload with these ECN fields, and how many blocks and fields leave.
    fn fit(seen: &[Ecn], timestamps: bool, blocks: u32) -> (usize, Option<usize>) {
        let mut feedback = Feedback::default();
        for ecn in seen {
            feedback.on_packet(*ecn, 1000);
        }
        let mut options = options(timestamps, blocks);
        feedback.add_option(&mut options);
        assert!(options.encoded_len() <= MAX_OPTIONS_LEN);
        (options.sack.as_slice().len(), options.accecn.map(|accecn| accecn.wire().len() / 3))
    }

    // RFC 9768 §3.2.1: r.cep counts every marked segment, and begins with 5.
    #[test]
    fn each_marked_segment_counts_with_and_without_data() {
        let mut feedback = Feedback::default();
        for (ecn, payload) in [(Ecn::Ce, 1000), (Ecn::Ce, 0), (Ecn::Ect0, 1000), (Ecn::Ce, 10)] {
            feedback.on_packet(ecn, payload);
        }
        assert_eq!(feedback.take_cep(), 8);
        assert_eq!(feedback.bytes, EcnBytes { ect0: 1001, ect1: 1, ce: 1010 });
    }

    // §3.2.2.5.1
    #[test]
    fn the_first_mark_and_every_second_ask_for_an_ack() {
        let mut feedback = Feedback::default();
        assert!(!feedback.on_packet(Ecn::Ect0, 1000));
        assert!(feedback.on_packet(Ecn::Ce, 1000), "a change");
        feedback.take_cep();
        assert!(!feedback.on_packet(Ecn::Ce, 1000));
        assert!(feedback.on_packet(Ecn::Ce, 1000), "two untold");
    }

    // §3.2.2.5.1: without data it takes three.
    #[test]
    fn three_marked_acks_ask_for_an_ack() {
        let mut feedback = Feedback::default();
        let asks = [0; 3].map(|payload| feedback.on_packet(Ecn::Ce, payload));
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
