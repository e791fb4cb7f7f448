//! Accurate ECN feedback (AccECN, RFC 9768): the receiver counts marks and the sender reads the
//! counts, instead of one echo a round trip (RFC 3168).
//!
//! `feedback.rs` is the Data Receiver's half (§3.2: counters, the ACE field, the option, ACKs that
//! marks trigger), `decoder.rs` the Data Sender's (marks that an ACK reports for the first time).
//! [`AccEcn`] is the state of a connection that has negotiated it (§3.1): both halves, and what
//! the handshake showed of the path. The endpoint asks it for the fields of each segment to send,
//! and passes it each one received.
//!
//! - After the handshake every segment is ECN-capable, pure ACKs and retransmissions, too, as in
//!   Linux. RFC 9768 §3.2.2.5.1 leaves that to experiments such as ECN++; SYN and SYN/ACK are not.
//! - The option has the order of kind 174, of which the first fields serve L4S.

mod decoder;
mod feedback;

pub(crate) use decoder::{Acked, Decoder, Marks};
pub(crate) use feedback::Feedback;

use crate::config::AccEcnOptions;
use airtcp_core::{Duration, Ecn, Flags, Instant, Options, Payload, Segment, SeqNum};

/// SYN/ACKs that carry AccECN's flags; only the first has the option (RFC 9768 §3.2.3.2.2).
const SYN_ACKS_WITH_FLAGS: u32 = 2;
/// SYNs that carry AccECN's flags (§3.1.4.1).
pub(crate) const SYNS_WITH_FLAGS: u32 = 2;

/// AE, CWR and ECE as a number: the ACE field (RFC 9768 §3.2.2).
pub(crate) fn ace(flags: Flags) -> u8 {
    let bit = |flag, value| if flags.contains(flag) { value } else { 0 };
    bit(Flags::AE, 4) + bit(Flags::CWR, 2) + bit(Flags::ECE, 1)
}

/// The flags for the last three bits of `ace`.
pub(crate) fn ace_flags(ace: u32) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::AE, ace & 4 != 0);
    flags.set(Flags::CWR, ace & 2 != 0);
    flags.set(Flags::ECE, ace & 1 != 0);
    flags
}

/// Flags of a SYN/ACK, or of the ACK that answers it, for the ECN field of the segment answered
/// (RFC 9768 tables 2 and 3).
fn handshake_flags(arrived: Ecn) -> Flags {
    ace_flags(match arrived {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    })
}

/// ECN mode that a SYN requests or a SYN/ACK accepts (RFC 9768 §3.1.2, table 2). Undefined flags
/// count as AccECN (§3.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    None,
    Classic,
    Accurate,
}

impl Offer {
    pub(crate) fn of_syn(flags: Flags) -> Self {
        match ace(flags) {
            0b000 => Self::None,
            0b011 => Self::Classic,
            _ => Self::Accurate,
        }
    }

    /// The mode that a SYN/ACK's flags accept. 111 is the SYN's own flags, reflected by a host that
    /// ignores them.
    pub(crate) fn of_syn_ack(flags: Flags) -> Self {
        match ace(flags) {
            0b000 | 0b111 => Self::None,
            0b001 => Self::Classic,
            _ => Self::Accurate,
        }
    }
}

/// AccECN state of a connection.
#[derive(Debug)]
pub(crate) struct AccEcn {
    pub(crate) feedback: Feedback,
    pub(crate) decoder: Decoder,
    /// The ECN field of the peer's last SYN or SYN/ACK.
    syn: Ecn,
    /// The next pure ACK reports `syn` (§3.2.2.1).
    tells_syn: bool,
    /// SYN/ACKs sent: we are the server.
    syn_acks: u32,
    /// The path corrupts the ECN field or its feedback: we send nothing ECN-capable from now on,
    /// but keep reporting what arrives (§3.2.2.3, §3.2.2.4).
    mangled: bool,
    /// A segment without SYN has arrived.
    heard: bool,
    /// The segment at hand has a newer timestamp than all before.
    pub(crate) newer_timestamp: bool,
    /// Marks that the peer reports are ignored (§3.2.2.4).
    ignores_marks: bool,
    /// The end of the handshake has just reported that our SYN/ACK was marked.
    syn_ack_marked: bool,
    /// Start of the last data that the peer sent again although we had acknowledged it.
    duplicate: Option<SeqNum>,
    /// ACKs with the option do not get through (§3.2.3.2.2).
    options_lost: bool,
    /// The next ACK answers marked ACKs: without SACK blocks it is no duplicate (§3.2.2.5.1).
    pub(crate) answers_acks: bool,
}

impl AccEcn {
    /// The peer's SYN or SYN/ACK has just agreed on AccECN.
    pub(crate) fn new<P: Payload>(syn: &Segment<P>) -> Self {
        let mut new = Self {
            feedback: Feedback::default(),
            decoder: Decoder::default(),
            syn: syn.ecn,
            tells_syn: false,
            syn_acks: 0,
            mangled: false,
            heard: false,
            newer_timestamp: false,
            ignores_marks: false,
            syn_ack_marked: false,
            duplicate: None,
            options_lost: false,
            answers_acks: false,
        };
        if syn.ack.is_some() {
            new.tells_syn = true;
            // Our SYN left without ECN. 101 is reserved: all is well (§3.1.3).
            new.mangled = !matches!(ace(syn.flags), 0b010 | 0b101);
            new.feedback.on_packet(syn.ecn, 0, false);
            new.decoder.note_option(syn.options.accecn.as_ref());
        }
        new
    }

    /// The server receives a SYN again. If the client or the path has given up ECN meanwhile, we
    /// send nothing ECN-capable (§3.1.5).
    pub(crate) fn on_syn_again<P: Payload>(&mut self, syn: &Segment<P>) {
        self.syn = syn.ecn;
        self.mangled |= ace(syn.flags) == 0;
    }

    /// The client receives a SYN/ACK again: the ACK that answers it is like the first.
    pub(crate) fn on_syn_ack_again(&mut self, arrived: Ecn) {
        if self.syn_acks == 0 {
            self.syn = arrived;
            self.tells_syn = true;
        }
    }

    /// Flags of the SYN/ACK that leaves now, and whether it has room for the option.
    pub(crate) fn syn_ack(&mut self) -> (Flags, bool) {
        let before = self.syn_acks;
        self.syn_acks += 1;
        match before {
            0 => (handshake_flags(self.syn), true),
            _ if before < SYN_ACKS_WITH_FLAGS => (handshake_flags(self.syn), false),
            _ => {
                // The client may be without ECN (§3.1.5).
                self.mangled = true;
                (Flags::empty(), false)
            }
        }
    }

    /// Handles a segment without SYN. `begins`: it can be the end of the handshake, since we have
    /// sent nothing after our SYN and it acknowledges no more.
    pub(crate) fn hear<P: Payload>(&mut self, segment: &Segment<P>, begins: bool) {
        self.decoder.note_option(segment.options.accecn.as_ref());
        if std::mem::replace(&mut self.heard, true) {
            return;
        }
        let ace = ace(segment.flags);
        if ace == 0 {
            // §3.2.2.4, table 4: no counter is at zero so early. The path, or the peer, clears it.
            self.mangled = true;
            self.ignores_marks = true;
        } else if self.tells_of_syn_ack(segment, begins) {
            // §3.2.2.3: our SYN/ACK left without ECN.
            self.mangled |= matches!(ace, 0b011 | 0b100 | 0b110);
            self.syn_ack_marked = ace == 0b110;
            self.decoder.on_syn_ack(self.syn_ack_marked);
        }
    }

    /// Marks that an ACK reports for the first time. `is_code`: its ACE field holds the handshake's
    /// code, not a counter.
    pub(crate) fn read(&mut self, acked: &Acked, is_code: bool, is_news: bool) -> Marks {
        if std::mem::take(&mut self.syn_ack_marked) {
            return Marks { segments: 1, bytes: 0 };
        }
        if is_code || !is_news || self.ignores_marks {
            return Marks::default();
        }
        let marks = self.decoder.decode(acked);
        self.mangled |= self.decoder.contradicts();
        marks
    }

    /// The peer repeats data that we acknowledged. If the same data comes a third time, ACKs with
    /// the option may be getting lost.
    pub(crate) fn on_duplicate(&mut self, seq: SeqNum) {
        self.options_lost |= self.duplicate.replace(seq) == Some(seq);
    }

    /// True if the ACE field of a segment is the handshake's code, not the counter (§3.2.2.1).
    pub(crate) fn tells_of_syn_ack<P: Payload>(&self, segment: &Segment<P>, begins: bool) -> bool {
        self.syn_acks > 0 && begins && segment.is_pure_ack() && segment.options.sack.is_empty()
    }

    /// True if segments are sent ECN-capable.
    pub(crate) fn is_capable(&self) -> bool {
        !self.mangled
    }

    /// The ACE field of a segment that leaves; `pure`: without data and SACK blocks.
    pub(crate) fn flags(&mut self, pure: bool) -> Flags {
        if pure && std::mem::take(&mut self.tells_syn) {
            return handshake_flags(self.syn);
        }
        ace_flags(self.feedback.take_cep())
    }

    /// Adds the option to a segment that leaves, if it is due and the peer's options have got
    /// through. §3.2.3.2.3 would probe without that evidence; Linux does not.
    pub(crate) fn add_option(
        &mut self,
        when: AccEcnOptions,
        now: Instant,
        rtt: Option<Duration>,
        options: &mut Options,
    ) {
        let due = match when {
            AccEcnOptions::Never => false,
            AccEcnOptions::Changes => self.feedback.is_due(now, rtt),
            AccEcnOptions::Always => true,
        };
        if due && !self.options_lost && self.decoder.has_seen_option() {
            self.feedback.add_option(now, options);
        }
    }
}
