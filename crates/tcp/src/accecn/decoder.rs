//! The Data Sender: marks that an ACK reports for the first time (RFC 9768 §3.2.2.5.2, appendix
//! A.2).
//!
//! The ACE field has three bits. It may have wrapped between two ACKs if the second acknowledges
//! more than seven segments. The option then decides: if the bytes marked need more segments than
//! the field shows, it has wrapped. Without the option the sender assumes the most, unless ACKs
//! that cover many segments are usual on this path: then ACKs are thinned out, and a large one is
//! no sign of a wrap.

use super::feedback::FIRST_CEP;
use airtcp_core::{AccEcnOption, Ecn, EcnBytes};

/// The largest change that the ACE field can show.
const MOST: u32 = 7;
/// Half the range of a byte counter: a larger change means that the counter went backwards.
const HALF: u32 = 1 << 23;
/// ACKs of more segments than this, on average, are thinned out (Linux: `ACK_COMP_THRESH`).
const THINNED: u32 = 4;
/// The average has this many fractional bits, and a new ACK the same share of it.
const AVERAGE_BITS: u32 = 6;

/// An ACK's acknowledgement and its report of marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) ace: u8,
    pub(crate) option: Option<AccEcnOption>,
    /// Segments and bytes newly delivered, by acknowledgement or SACK.
    pub(crate) segments: u32,
    pub(crate) bytes: u32,
    pub(crate) smss: u32,
}

/// Marks that an ACK reports for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Segments of any kind.
    pub(crate) segments: u32,
    /// Bytes of payload; estimated without the option's CE counter.
    pub(crate) bytes: u32,
}

/// The sender's copies of the receiver's counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder {
    /// s.cep: the receiver's count of marked segments.
    cep: u32,
    /// s.e0b, s.e1b and s.ceb: the receiver's counts of bytes.
    bytes: EcnBytes,
    /// Marked bytes estimated since the last CE counter.
    estimated: u32,
    /// Segments an ACK delivers, on average, in 64ths; 0 before the first.
    average: u32,
    /// Bytes delivered before the first option. From [`HALF`] on, later options are ignored, as in
    /// Linux: the counters may have wrapped.
    delivered: u32,
    seen: bool,
    /// The counters of bytes and segments contradict each other (§3.2.3.2.5).
    contradicts: bool,
    /// The path zeroes the option, or it came too late (§3.2.3.2.4).
    refused: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            cep: FIRST_CEP,
            bytes: EcnBytes::INITIAL,
            estimated: 0,
            average: 0,
            delivered: 0,
            seen: false,
            contradicts: false,
            refused: false,
        }
    }
}

impl Decoder {
    /// True once the peer's options have got through.
    pub(crate) fn has_seen_option(&self) -> bool {
        self.seen
    }

    /// The end of the handshake says whether our SYN/ACK was marked: a mark is counted at both ends
    /// (§3.2.2.2).
    pub(super) fn on_syn_ack(&mut self, marked: bool) {
        self.cep = FIRST_CEP + u32::from(marked);
    }

    /// True if the last ACK reported marked bytes but no marked segment: the path rewrites one of
    /// the two.
    pub(super) fn contradicts(&self) -> bool {
        self.contradicts
    }

    /// Marked segments that the peer has reported.
    pub(crate) fn marked(&self) -> u32 {
        self.cep.wrapping_sub(FIRST_CEP)
    }

    /// The byte counters that the peer has reported.
    pub(crate) fn bytes(&self) -> EcnBytes {
        self.bytes
    }

    /// Notes whether a segment came with the option.
    pub(crate) fn note_option(&mut self, option: Option<&AccEcnOption>) {
        let Some(option) = option.filter(|_| !self.seen) else { return };
        self.seen = true;
        self.refused |= option.is_zeroed() || self.delivered >= HALF;
    }

    /// Reads an ACK newer than all before; returns the marks that it reports for the first time.
    pub(crate) fn decode(&mut self, acked: &Acked) -> Marks {
        self.note_option(acked.option.as_ref());
        self.delivered = self.delivered.saturating_add(acked.bytes);
        let thinned = self.note_thinning(acked.segments);
        let ceb = self.take_option(acked.option.as_ref());
        let change = u32::from(acked.ace).wrapping_sub(self.cep) & MOST;
        let went_round = acked.segments > MOST;
        self.contradicts =
            !went_round && change == 0 && self.estimated == 0 && ceb.is_some_and(|bytes| bytes > 0);
        let segments = match ceb {
            _ if !went_round => change,
            Some(bytes) => with_option(change, bytes, acked),
            None if thinned => change,
            None => most(change, acked.segments),
        };
        self.cep = self.cep.wrapping_add(segments);
        Marks { segments, bytes: self.marked_bytes(segments, ceb, acked) }
    }

    /// The change of the CE counter; `None` if the option lacks it or came too late.
    fn take_option(&mut self, option: Option<&AccEcnOption>) -> Option<u32> {
        let option = option.filter(|_| !self.refused)?;
        let change = |ecn| {
            let told = option.get(ecn)?;
            let known = self.bytes.get(ecn)?;
            Some(told.wrapping_sub(known) & (2 * HALF - 1)).filter(|change| *change < HALF)
        };
        let fields = [Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        let [ect0, ect1, ce] = fields.map(change);
        for (ecn, change) in fields.into_iter().zip([ect0, ect1, ce]) {
            self.bytes.add(ecn, change.unwrap_or(0));
        }
        ce
    }

    /// Marked bytes for the congestion control. Without the option a marked segment counts in full.
    fn marked_bytes(&mut self, segments: u32, ceb: Option<u32>, acked: &Acked) -> u32 {
        let Some(bytes) = ceb else {
            let bytes = segments.saturating_mul(acked.smss).min(acked.bytes);
            self.estimated = self.estimated.saturating_add(bytes);
            return bytes;
        };
        bytes.saturating_sub(std::mem::take(&mut self.estimated))
    }

    /// True if ACKs here usually cover many segments (§3.2.2.5.2).
    fn note_thinning(&mut self, segments: u32) -> bool {
        if segments > 0 {
            let new = segments << AVERAGE_BITS;
            self.average = match self.average {
                0 => new,
                old => old - (old >> AVERAGE_BITS) + (new >> AVERAGE_BITS),
            };
        }
        self.average > THINNED << AVERAGE_BITS
    }
}

/// The most of `segments` delivered that may have been marked, given the field's `change` (appendix
/// A.2.1: d.safer.cep).
fn most(change: u32, segments: u32) -> u32 {
    segments - (segments.wrapping_sub(change) & MOST)
}

/// Segments marked, given `bytes` marked (appendix A.2.2): those that the field shows, if they can
/// hold the bytes and the most possible would hold over twice as many; otherwise the most.
fn with_option(change: u32, bytes: u32, acked: &Acked) -> u32 {
    let most = most(change, acked.segments);
    let hold = |segments: u32| u64::from(segments) * u64::from(acked.smss);
    let fits = u64::from(bytes) <= hold(change);
    if bytes == 0 || (fits && u64::from(bytes) < hold(most) / 2) { change } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::AccEcnOrder;
    use proptest::prelude::*;

    const SMSS: u32 = 1000;

    /// An ACK of full segments, without the option.
    fn ack(ace: u8, segments: u32) -> Acked {
        Acked { ace, option: None, segments, bytes: segments * SMSS, smss: SMSS }
    }

    fn with(acked: Acked, bytes: EcnBytes) -> Acked {
        Acked { option: Some(AccEcnOption::new(AccEcnOrder::Ect0First, &bytes, 3)), ..acked }
    }

    /// A sender whose ACKs usually cover one or two segments.
    fn usual() -> Decoder {
        let mut decoder = Decoder::default();
        decoder.decode(&ack(5, 1));
        decoder
    }

    // RFC 9768 §3.2.2: three bits of the counter, which begins with 5.
    #[test]
    fn the_field_wraps() {
        let mut decoder = Decoder::default();
        let marks = [6, 7, 0, 1, 1, 3].map(|ace| decoder.decode(&ack(ace, 2)).segments);
        assert_eq!(marks, [1, 1, 1, 1, 0, 2]);
        assert_eq!(decoder.marked(), 6);
    }

    // Appendix A.2.1: "d.safer.cep".
    #[test]
    fn an_ack_of_many_segments_means_the_most_that_the_field_allows() {
        for (segments, ace, marked) in [(7, 5, 0), (8, 5, 8), (9, 5, 8), (9, 6, 9), (10, 0, 3)] {
            assert_eq!(usual().decode(&ack(ace, segments)).segments, marked, "{segments} {ace}");
        }
    }

    // §3.2.2.5.2: unless ACKs are thinned out on this path.
    #[test]
    fn where_acks_cover_many_segments_the_field_is_taken_as_it_is() {
        assert_eq!(Decoder::default().decode(&ack(6, 10)).segments, 1);
    }

    // Appendix A.2.2.
    #[test]
    fn marked_bytes_tell_whether_the_field_went_round() {
        let told = |ce, ace| {
            let bytes = EcnBytes { ce, ..EcnBytes::INITIAL };
            usual().decode(&with(ack(ace, 16), bytes))
        };
        assert_eq!(told(0, 5).segments, 0);
        assert_eq!(told(8 * SMSS, 5), Marks { segments: 16, bytes: 8 * SMSS });
        assert_eq!(told(SMSS, 6), Marks { segments: 1, bytes: SMSS });
        assert_eq!(told(9 * SMSS, 6).segments, 9);
    }

    // §3.2.3.2.4: counters that begin with zero are the work of the path.
    #[test]
    fn an_option_that_was_zeroed_is_ignored() {
        let mut decoder = usual();
        let zeroed = with(ack(6, 1), EcnBytes { ect0: 0, ect1: 0, ce: 0 });
        assert_eq!(decoder.decode(&zeroed), Marks { segments: 1, bytes: SMSS });
        let later = with(ack(6, 1), EcnBytes { ce: 77, ..EcnBytes::INITIAL });
        assert_eq!(decoder.decode(&later), Marks::default());
        assert_eq!(decoder.bytes(), EcnBytes::INITIAL);
    }

    // §3.2.3.2.5
    #[test]
    fn marked_bytes_without_a_marked_segment_are_a_contradiction() {
        let told = |ace| with(ack(ace, 2), EcnBytes { ce: SMSS, ..EcnBytes::INITIAL });
        let contradicts = |decoder: &mut Decoder, ace| {
            decoder.decode(&told(ace));
            decoder.contradicts()
        };
        assert!(contradicts(&mut usual(), 5));
        assert!(!contradicts(&mut usual(), 6));
        // The flags had reported it before, on an ACK without room for the option.
        let mut decoder = usual();
        decoder.decode(&ack(6, 1));
        assert!(!contradicts(&mut decoder, 6));
    }

    #[test]
    fn what_was_estimated_is_not_counted_again() {
        let mut decoder = usual();
        let told = |ce| EcnBytes { ce, ..EcnBytes::INITIAL };
        assert_eq!(decoder.decode(&ack(6, 1)).bytes, SMSS);
        assert_eq!(decoder.decode(&with(ack(7, 1), told(2 * SMSS))).bytes, SMSS);
        assert_eq!(decoder.bytes().ce, 2 * SMSS);
    }

    #[test]
    fn byte_counters_wrap_and_never_go_back() {
        let mut decoder = usual();
        let told = |ce| with(ack(5, 1), EcnBytes { ce, ..EcnBytes::INITIAL });
        decoder.decode(&told(HALF - 1));
        decoder.decode(&told(2 * HALF - 3));
        assert_eq!(decoder.decode(&told(7)).bytes, 10);
        assert_eq!(decoder.decode(&told(5)).bytes, 0);
        assert_eq!(decoder.bytes().ce, 7);
    }

    proptest! {
        /// With the option on each ACK the sender counts every mark, however many segments an ACK
        /// covers, if all are full.
        #[test]
        fn full_segments_are_counted_exactly(
            acks in prop::collection::vec((1u32..60, 0.0f64..=1.0), 1..40),
        ) {
            let (mut decoder, mut bytes, mut cep) = (usual(), EcnBytes::INITIAL, FIRST_CEP);
            for (segments, share) in acks {
                let marked = (f64::from(segments) * share) as u32;
                cep += marked;
                bytes.add(Ecn::Ce, marked * SMSS);
                bytes.add(Ecn::Ect0, (segments - marked) * SMSS);
                let marks = decoder.decode(&with(ack((cep & MOST) as u8, segments), bytes));
                prop_assert_eq!(marks.bytes, marked * SMSS);
                prop_assert_eq!(decoder.bytes(), bytes);
                // The segments are as many, or by eights off: the bytes are what counts.
                prop_assert_eq!(marks.segments % 8, marked % 8);
            }
        }
    }
}
