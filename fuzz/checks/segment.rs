//! The segment codec on any bytes: no panic, and a decoded segment survives encoding.

use airtcp_core::{MAX_OPTIONS_LEN, Options, SackBlocks, Segment};
use airtcp_wire::{Checksums, DecodeError, EncodeError, decode, encode};

/// Panics when the codec breaks a promise on this packet.
pub(crate) fn check(packet: &[u8]) {
    let decoded = decode(packet, Checksums::Ignore);
    match decode(packet, Checksums::Verify) {
        Err(DecodeError::BadIpChecksum | DecodeError::BadTcpChecksum) => {}
        verified => assert_eq!(verified, decoded, "checksums change nothing else"),
    }
    let Ok(segment) = decoded else { return };

    let mut encoded = Vec::new();
    match encode(&segment, &mut encoded) {
        Ok(()) => {}
        // An incoming packet can be longer than an encoded one: without padding between its
        // options, or as an IPv6 packet above 64 KiB.
        Err(EncodeError::TooLong { .. }) if packet.len() > 65_000 => return,
        Err(error) => panic!("{error}: {segment:?}"),
    }
    let again = decode(&encoded, Checksums::Verify).expect("an encoded segment decodes");
    assert_eq!(without_lists(&again), without_lists(&segment));
    let (kept, all) = (again.options.sack, segment.options.sack);
    assert!(all.as_slice().starts_with(kept.as_slice()), "the first SACK blocks are kept");
    assert_eq!(kept.is_empty(), all.is_empty(), "one block always fits");
    let (kept, accecn) = (again.options.accecn, segment.options.accecn);
    let fits = segment.options.encoded_len() <= MAX_OPTIONS_LEN;
    assert!(kept == accecn || (kept.is_none() && !fits), "AccECN is left out only without room");

    let mut encoded_again = Vec::new();
    encode(&again, &mut encoded_again).expect("what was encoded once is encoded again");
    assert_eq!(encoded_again, encoded);
}

fn without_lists(segment: &Segment<Vec<u8>>) -> Segment<Vec<u8>> {
    let options = Options { sack: SackBlocks::new(), accecn: None, ..segment.options };
    Segment { options, ..segment.clone() }
}
