//! The options part of the TCP header.

use crate::DecodeError;
use airtcp_core::{
    AccEcnOption, AccEcnOrder, MAX_OPTIONS_LEN, Options, SackBlock, SeqNum, Timestamps,
};
use etherparse::{TcpOptionElement, TcpOptionReadError, TcpOptionsIterator, tcp_option};

/// Option kinds shared by experiments (RFC 6994).
const EXPERIMENTAL: [u8; 2] = [253, 254];
/// Start of the option that reports the sender's cwnd (TCP-DCA §VI): kind, length and experiment
/// identifier, which is not registered with IANA. Four bytes of cwnd follow.
const CWND: [u8; 4] = [253, 8, 0xa1, 0xdc];

/// Options in the layout of [`Options::encoded_len`]; each group is padded in front with NOPs, as
/// deployed stacks do, so that 32-bit fields are aligned.
///
/// SACK blocks that do not fit in 40 bytes are left out from the end: the first block reports the
/// newest data and is required (RFC 2018 §4), the others repeat earlier reports. With timestamps,
/// the fourth block does not fit.
pub(crate) struct EncodedOptions {
    bytes: [u8; MAX_OPTIONS_LEN],
    len: usize,
}

impl EncodedOptions {
    pub(crate) fn new(options: &Options) -> Self {
        let Options { mss, window_scale, sack_permitted, timestamps, sack, cwnd, accecn } = options;
        let mut out = Self { bytes: [0; MAX_OPTIONS_LEN], len: 0 };
        if let Some(mss) = mss {
            out.put(&[tcp_option::KIND_MAXIMUM_SEGMENT_SIZE, 4]);
            out.put(&mss.to_be_bytes());
        }
        if let Some(shift) = window_scale {
            out.put(&[tcp_option::KIND_NOOP, tcp_option::KIND_WINDOW_SCALE, 3, *shift]);
        }
        if *sack_permitted {
            out.put(&[
                tcp_option::KIND_NOOP,
                tcp_option::KIND_NOOP,
                tcp_option::KIND_SELECTIVE_ACK_PERMITTED,
                2,
            ]);
        }
        if let Some(Timestamps { value, echo }) = timestamps {
            out.put(&[
                tcp_option::KIND_NOOP,
                tcp_option::KIND_NOOP,
                tcp_option::KIND_TIMESTAMP,
                10,
            ]);
            out.put(&value.to_be_bytes());
            out.put(&echo.to_be_bytes());
        }
        if let Some(cwnd) = cwnd {
            out.put(&CWND);
            out.put(&cwnd.to_be_bytes());
        }
        let room = (MAX_OPTIONS_LEN - out.len).saturating_sub(4) / 8;
        let blocks = &sack.as_slice()[..room.min(sack.as_slice().len())];
        if !blocks.is_empty() {
            out.put(&[
                tcp_option::KIND_NOOP,
                tcp_option::KIND_NOOP,
                tcp_option::KIND_SELECTIVE_ACK,
                2 + 8 * blocks.len() as u8,
            ]);
            for SackBlock { left, right } in blocks {
                out.put(&left.0.to_be_bytes());
                out.put(&right.0.to_be_bytes());
            }
        }
        // SACK goes first: AccECN has the ACE field besides (RFC 9768 §3.2.3.3).
        if let Some(accecn) = accecn.filter(|a| padded(a) <= MAX_OPTIONS_LEN - out.len) {
            let padding = padded(&accecn) - accecn.len();
            out.put(&[tcp_option::KIND_NOOP; 3][..padding]);
            out.put(&[accecn.order().kind(), accecn.len() as u8]);
            out.put(accecn.wire());
        }
        out
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

fn padded(accecn: &AccEcnOption) -> usize {
    accecn.len().next_multiple_of(4)
}

/// Reads the options up to the end of the header or an end-of-list option; unknown ones are skipped
/// by their length (RFC 9293 §3.1, MUST-6). If an option appears twice, the last one counts. Also
/// returns the kind of the first option that only the hosts may write: an unknown one that is not
/// experimental.
pub(crate) fn decode_options(mut bytes: &[u8]) -> Result<(Options, Option<u8>), DecodeError> {
    let mut options = Options::default();
    let mut foreign = None;
    loop {
        let mut elements = TcpOptionsIterator::from_slice(bytes);
        match elements.next() {
            None => return Ok((options, foreign)),
            Some(Ok(element)) => {
                apply(&mut options, element);
                bytes = elements.rest();
            }
            // The library stops at an option it does not know; its length says where the next
            // begins.
            Some(Err(TcpOptionReadError::UnknownId(kind))) => {
                let (option, rest) = bytes
                    .get(1)
                    .filter(|len| **len >= 2)
                    .and_then(|len| bytes.split_at_checked(usize::from(*len)))
                    .ok_or(DecodeError::BadOption { kind })?;
                if let Some((&CWND, [a, b, c, d])) = option.split_first_chunk() {
                    options.cwnd = Some(u32::from_be_bytes([*a, *b, *c, *d]));
                } else if let Some(order) = AccEcnOrder::from_kind(kind) {
                    options.accecn = Some(AccEcnOption::from_wire(order, &option[2..]));
                } else if !EXPERIMENTAL.contains(&kind) {
                    foreign = foreign.or(Some(kind));
                }
                bytes = rest;
            }
            Some(Err(
                TcpOptionReadError::UnexpectedEndOfSlice { option_id: kind, .. }
                | TcpOptionReadError::UnexpectedSize { option_id: kind, .. },
            )) => return Err(DecodeError::BadOption { kind }),
        }
    }
}

fn apply(options: &mut Options, element: TcpOptionElement) {
    match element {
        TcpOptionElement::Noop => {}
        TcpOptionElement::MaximumSegmentSize(mss) => options.mss = Some(mss),
        TcpOptionElement::WindowScale(shift) => options.window_scale = Some(shift),
        TcpOptionElement::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
        TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
            options.sack = std::iter::once(first)
                .chain(rest.into_iter().flatten())
                .map(|(left, right)| SackBlock { left: SeqNum(left), right: SeqNum(right) })
                .collect();
        }
        TcpOptionElement::Timestamp(value, echo) => {
            options.timestamps = Some(Timestamps { value, echo });
        }
    }
}
