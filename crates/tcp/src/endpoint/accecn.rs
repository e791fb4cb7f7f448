//! Accurate ECN on a connection (RFC 9768): negotiation in the handshake, counts of received marks,
//! and the marks that each ACK reports.

use super::Endpoint;
use super::receive::Reply;
use super::receive::data_end;
use crate::accecn::{AccEcn, Acked, Marks, Offer, SYNS_WITH_FLAGS, ace};
use crate::config::{AccEcnOptions, EcnConfig};
use airtcp_core::{
    AccEcnOption, AccEcnOrder, EcnBytes, Flags, MAX_OPTIONS_LEN, Options, Payload, Segment, SeqNum,
};

/// Marked segments and bytes of payload by ECN field, since the connection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnCounts {
    /// Segments marked CE, pure ACKs included.
    pub marked: u32,
    /// Bytes by ECN field, in 24 bits: they wrap.
    pub bytes: EcnBytes,
}

impl EcnCounts {
    fn new(marked: u32, bytes: EcnBytes) -> Self {
        let from = |counter: u32, first: u32| counter.wrapping_sub(first) & 0x00ff_ffff;
        let EcnBytes { ect0, ect1, ce } = EcnBytes::INITIAL;
        let bytes = EcnBytes {
            ect0: from(bytes.ect0, ect0),
            ect1: from(bytes.ect1, ect1),
            ce: from(bytes.ce, ce),
        };
        Self { marked, bytes }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Marks received here so far; `None` without AccECN.
    pub fn ecn_received(&self) -> Option<EcnCounts> {
        let feedback = &self.accecn.as_ref()?.feedback;
        Some(EcnCounts::new(feedback.marked(), feedback.bytes()))
    }

    /// Marks on our segments as reported by the peer; `None` without AccECN.
    pub fn ecn_delivered(&self) -> Option<EcnCounts> {
        let decoder = &self.accecn.as_ref()?.decoder;
        Some(EcnCounts::new(decoder.marked(), decoder.bytes()))
    }

    /// Sets which segments carry the AccECN option from now on.
    pub fn set_accecn_option(&mut self, when: AccEcnOptions) {
        self.accecn_option = when;
    }

    /// Sets the ECN mode from the peer's first SYN or its SYN/ACK.
    pub(super) fn negotiate_ecn(&mut self, syn: &Segment<P>) {
        self.tx.ecn_ok = false;
        self.accecn = None;
        let classic = syn.flags & (Flags::ECE | Flags::CWR);
        let answers = syn.ack.is_some();
        match self.config.ecn {
            EcnConfig::Off => {}
            EcnConfig::Rfc3168 | EcnConfig::Dctcp => {
                let offered = if answers { Flags::ECE } else { Flags::ECE | Flags::CWR };
                self.tx.ecn_ok = classic == offered;
            }
            EcnConfig::AccEcn => {
                let offer =
                    if answers { Offer::of_syn_ack(syn.flags) } else { Offer::of_syn(syn.flags) };
                self.tx.ecn_ok = offer == Offer::Classic;
                if offer == Offer::Accurate {
                    self.accecn = Some(Box::new(AccEcn::new(syn)));
                }
            }
        }
    }

    /// The flags of our SYN that offer ECN (RFC 3168 §6.1.1, RFC 9768 §3.1.1).
    pub(super) fn offered_ecn(&self) -> Flags {
        match self.config.ecn {
            EcnConfig::Off => Flags::empty(),
            EcnConfig::Rfc3168 | EcnConfig::Dctcp => Flags::ECE | Flags::CWR,
            // RFC 9768 §3.1.4.1: what keeps SYNs from getting through may be the flags.
            EcnConfig::AccEcn if self.tx.expiries >= SYNS_WITH_FLAGS => Flags::empty(),
            EcnConfig::AccEcn => Flags::AE | Flags::ECE | Flags::CWR,
        }
    }

    /// The flags of our SYN/ACK that agree to ECN, and the option.
    pub(super) fn accept_ecn(&mut self, options: &mut Options) -> Flags {
        let Some(accecn) = &mut self.accecn else {
            return if self.tx.ecn_ok { Flags::ECE } else { Flags::empty() };
        };
        let (flags, has_option) = accecn.syn_ack();
        let may = self.accecn_option != AccEcnOptions::Never;
        let option = AccEcnOption::new(AccEcnOrder::Ect1First, &EcnBytes::INITIAL, 3);
        let fits = options.encoded_len() + AccEcnOption::padded_len(3) <= MAX_OPTIONS_LEN;
        options.accecn = Some(option).filter(|_| has_option && fits && may);
        flags
    }

    /// Handles an acceptable segment without SYN, before its acknowledgement is processed.
    pub(super) fn hear_ecn(&mut self, segment: &Segment<P>) {
        let begins = segment.ack.is_some_and(|ack| self.is_handshake_ack(ack));
        let newer = (segment.options.timestamps)
            .filter(|_| self.timestamps)
            .is_some_and(|ts| SeqNum(ts.value).after(SeqNum(self.rx.ts_recent)));
        if let Some(accecn) = &mut self.accecn {
            accecn.hear(segment, begins);
            accecn.newer_timestamp = newer;
        }
    }

    /// True if we have sent nothing after our SYN and `ack` acknowledges just that.
    fn is_handshake_ack(&self, ack: SeqNum) -> bool {
        self.tx.max == self.tx.iss + 1 && ack == self.tx.max
    }

    /// Counts a segment that arrived. Returns true if an ACK is due at once.
    pub(super) fn count_ecn(&mut self, segment: &Segment<P>) -> bool {
        let len = segment.payload.len() as u32;
        let unacked = len > 0 || self.rx.policy.deadline().is_some();
        let Some(accecn) = &mut self.accecn else { return false };
        accecn.feedback.on_packet(segment.ecn, len, unacked)
    }

    /// Schedules the ACK of `segment` if its mark makes one due: `marked`, from `count_ecn`.
    pub(super) fn answer_marks(&mut self, marked: bool, segment: &Segment<P>) -> Reply {
        if !marked {
            return Reply::None;
        }
        self.rx.owe_ack();
        if let Some(accecn) = self.accecn.as_mut().filter(|_| segment.seq_len() == 0) {
            accecn.answers_acks = true;
        }
        Reply::Ack
    }

    /// True if a SYN asks for RFC 3168 in place of AccECN, or the other way round (RFC 9768
    /// §3.1.5).
    pub(super) fn offers_conflict(&self, syn: &Segment<P>) -> bool {
        self.config.ecn == EcnConfig::AccEcn
            && match Offer::of_syn(syn.flags) {
                Offer::None => false,
                Offer::Classic => self.accecn.is_some(),
                Offer::Accurate => self.tx.ecn_ok,
            }
    }

    /// Notes a data segment without new data: the ACK of the first copy may have been lost.
    pub(super) fn note_repetition(&mut self, segment: &Segment<P>) {
        if let Some(accecn) = &mut self.accecn
            && data_end(segment).at_or_before(self.rx.nxt)
        {
            accecn.on_duplicate(segment.seq);
        }
    }

    /// Marks that an ACK reports, which newly delivers `segments` and `bytes`; `None` without
    /// AccECN. An ACK without progress may be out of order and is not read (RFC 9768 §3.2.2.2).
    pub(super) fn read_marks(
        &mut self,
        segment: &Segment<P>,
        segments: u32,
        bytes: u32,
        progress: bool,
    ) -> Option<Marks> {
        let begins = segment.ack.is_some_and(|ack| self.is_handshake_ack(ack));
        let smss = self.tx.mss;
        let accecn = self.accecn.as_mut()?;
        let is_news = progress || accecn.newer_timestamp;
        let is_code =
            segment.flags.contains(Flags::SYN) || accecn.tells_of_syn_ack(segment, begins);
        let (ace, option) = (ace(segment.flags), segment.options.accecn);
        Some(accecn.read(&Acked { ace, option, segments, bytes, smss }, is_code, is_news))
    }
}
