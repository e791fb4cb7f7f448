//! Live packets that the decoder reads, and packets that it refuses.

use airtcp_core::{
    Ecn, Flags, Length, Options, SackBlock, SackBlocks, Segment, SeqNum, Timestamps,
};
use airtcp_wire::{Checksums, DecodeError, Headers, decode, decode_headers, decode_with, encode};

/// A SYN of Linux 6 on its loopback interface: checksum left to the (absent) network card, options
/// in Linux's order and packing (MSS, SACK permitted, timestamps, window scale).
const LINUX_SYN: &[u8] = &[
    0x45, 0x00, 0x00, 0x3c, 0xcc, 0x12, 0x40, 0x00, 0x40, 0x06, 0x70, 0xa7, 0x7f, 0x00, 0x00, 0x01,
    0x7f, 0x00, 0x00, 0x01, 0xea, 0x20, 0x13, 0x88, 0x2f, 0xab, 0xd1, 0xd0, 0x00, 0x00, 0x00, 0x00,
    0xa0, 0x02, 0xff, 0xd7, 0xfe, 0x30, 0x00, 0x00, 0x02, 0x04, 0xff, 0xd7, 0x04, 0x02, 0x08, 0x0a,
    0xc1, 0xfa, 0xe3, 0x9b, 0x00, 0x00, 0x00, 0x00, 0x01, 0x03, 0x03, 0x0a,
];
/// Offset of the TCP header in an IPv4 packet without options.
const TCP: usize = 20;

/// An IPv4 packet with the data "hello" and the given raw options; its TCP checksum is not set.
fn ipv4_with_options(options: &[u8]) -> Vec<u8> {
    let mut packet = encoded(&Segment { ack: Some(SeqNum(1)), ..Segment::default() });
    packet.extend_from_slice(options);
    packet.extend_from_slice(b"hello");
    packet[TCP + 12] = ((20 + options.len() as u8) / 4) << 4;
    let total = packet.len() as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet
}

fn ipv6(src: [u8; 16], dst: [u8; 16]) -> Segment<Vec<u8>> {
    let mut segment = hello();
    segment.flow.src.ip = src.into();
    segment.flow.dst.ip = dst.into();
    segment
}

/// Puts `extension` (whose first byte must be the next header) between the IPv6 header and TCP.
fn with_ipv6_extension(mut packet: Vec<u8>, kind: u8, extension: &[u8]) -> Vec<u8> {
    packet[6] = kind;
    let length = u16::from_be_bytes([packet[4], packet[5]]) + extension.len() as u16;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet.splice(40..40, extension.iter().copied());
    packet
}

fn hello() -> Segment<Vec<u8>> {
    Segment { ack: Some(SeqNum(1)), payload: b"hello".to_vec(), ..Segment::default() }
}

fn encoded(segment: &Segment<Vec<u8>>) -> Vec<u8> {
    let mut packet = Vec::new();
    encode(segment, &mut packet).unwrap();
    packet
}

/// The error of decoding `packet`.
fn error(packet: &[u8]) -> DecodeError {
    decode(packet, Checksums::Ignore).unwrap_err()
}

#[test]
fn reads_a_linux_syn() {
    let syn = decode(LINUX_SYN, Checksums::Ignore).unwrap();
    assert_eq!(syn.flow.to_string(), "127.0.0.1:59936 > 127.0.0.1:5000");
    assert_eq!(syn.flags, Flags::SYN);
    assert_eq!(syn.ack, None);
    assert_eq!(syn.seq, SeqNum(0x2fab_d1d0));
    assert_eq!(syn.window, 65495);
    assert_eq!(
        syn.options,
        Options {
            mss: Some(65495),
            window_scale: Some(10),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 3_254_444_955, echo: 0 }),
            sack: SackBlocks::new(),
            cwnd: None,
            accecn: None,
        }
    );
    assert!(syn.payload.is_empty());
}

#[test]
fn a_checksum_left_to_the_network_card_is_refused_only_on_request() {
    assert_eq!(decode(LINUX_SYN, Checksums::Verify), Err(DecodeError::BadTcpChecksum));
    assert!(decode(LINUX_SYN, Checksums::Ignore).is_ok());
}

#[test]
fn the_ip_header_checksum_is_verified() {
    let mut packet = encoded(&hello());
    packet[8] -= 1; // time to live
    assert_eq!(decode(&packet, Checksums::Verify), Err(DecodeError::BadIpChecksum));
    assert_eq!(decode(&packet, Checksums::Ignore), Ok(hello()));
}

/// Also one that no field has, as the reserved flag of IPv4 and those of TCP.
#[test]
fn no_flipped_bit_of_a_packet_goes_unnoticed() {
    for segment in [hello(), ipv6([1; 16], [2; 16])] {
        let packet = encoded(&segment);
        // Of IPv6, neither traffic class and flow label nor the hop limit are in any checksum.
        let is_covered = |byte: &usize| packet[0] >> 4 == 4 || ![0, 1, 2, 3, 7].contains(byte);
        for byte in (0..packet.len()).filter(is_covered) {
            for bit in 0..8 {
                let mut flipped = packet.clone();
                flipped[byte] ^= 1 << bit;
                assert!(decode(&flipped, Checksums::Verify).is_err(), "bit {bit} of byte {byte}");
            }
        }
    }
}

#[test]
fn a_flipped_payload_bit_fails_the_tcp_checksum() {
    for segment in [hello(), ipv6([1; 16], [2; 16])] {
        let mut packet = encoded(&segment);
        *packet.last_mut().unwrap() ^= 1;
        assert_eq!(decode(&packet, Checksums::Verify), Err(DecodeError::BadTcpChecksum));
    }
}

#[test]
fn an_acknowledgement_number_without_its_flag_is_none() {
    let mut packet = encoded(&hello());
    packet[TCP + 13] &= !0x10;
    assert_eq!(decode(&packet, Checksums::Ignore).unwrap().ack, None);
}

#[test]
fn link_padding_after_the_packet_is_not_payload() {
    let mut packet = encoded(&hello());
    packet.extend_from_slice(&[0; 6]);
    assert_eq!(decode(&packet, Checksums::Verify), Ok(hello()));
}

#[test]
fn ip_options_are_skipped() {
    let mut packet = encoded(&hello());
    packet.splice(20..20, [1; 4]); // four NOPs
    packet[0] = 0x46;
    packet[3] += 4;
    assert_eq!(decode(&packet, Checksums::Ignore), Ok(hello()));
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let segment = ipv6([1; 16], [2; 16]);
    let pad_n = [6, 0, 1, 4, 0, 0, 0, 0];
    let packet = with_ipv6_extension(encoded(&segment), 0, &pad_n);
    assert_eq!(decode(&packet, Checksums::Verify), Ok(segment.clone()));
    let destination_options_too = with_ipv6_extension(
        encoded(&segment),
        0,
        &[60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0],
    );
    assert_eq!(decode(&destination_options_too, Checksums::Verify), Ok(segment));
}

#[test]
fn an_atomic_ipv6_fragment_is_whole() {
    // RFC 6946: a fragment header with offset 0 and no more fragments.
    let segment = ipv6([1; 16], [2; 16]);
    let packet = with_ipv6_extension(encoded(&segment), 44, &[6, 0, 0, 0, 0, 0, 0, 9]);
    assert_eq!(decode(&packet, Checksums::Verify), Ok(segment));
}

#[test]
fn ipv6_payload_length_zero_reaches_to_the_end() {
    let segment = ipv6([1; 16], [2; 16]);
    let mut packet = encoded(&segment);
    packet[4..6].fill(0);
    assert_eq!(decode(&packet, Checksums::Verify), Ok(segment));
}

#[test]
fn fragments_are_refused() {
    let mut first = encoded(&hello());
    first[6] |= 0x20; // more fragments
    assert_eq!(error(&first), DecodeError::Fragment);
    let mut later = encoded(&hello());
    later[7] = 1; // offset 8 bytes
    assert_eq!(error(&later), DecodeError::Fragment);
    let packet = encoded(&ipv6([1; 16], [2; 16]));
    let v6 = with_ipv6_extension(packet, 44, &[6, 0, 0, 1, 0, 0, 0, 9]);
    assert_eq!(error(&v6), DecodeError::Fragment);
}

#[test]
fn other_protocols_are_refused() {
    let mut packet = encoded(&hello());
    packet[9] = 17;
    assert_eq!(error(&packet), DecodeError::NotTcp { protocol: 17 });
    assert_eq!(error(&[0x60; 1]), DecodeError::Truncated { needed: 40, got: 1 });
    assert_eq!(error(&[0x00; 40]), DecodeError::NotIp);
}

#[test]
fn every_proper_prefix_is_refused_as_truncated() {
    for packet in [encoded(&hello()), encoded(&ipv6([1; 16], [2; 16]))] {
        for len in 0..packet.len() {
            let error = error(&packet[..len]);
            assert!(matches!(error, DecodeError::Truncated { .. }), "{len} bytes: {error:?}");
        }
    }
}

#[test]
fn an_ip_length_that_cuts_the_tcp_header_is_truncation() {
    let mut packet = encoded(&hello());
    packet[3] = 30;
    assert_eq!(error(&packet), DecodeError::Truncated { needed: 20, got: 10 });
}

#[test]
fn header_lengths_below_the_minimum_are_refused() {
    let mut ip = encoded(&hello());
    ip[0] = 0x44;
    assert_eq!(error(&ip), DecodeError::BadHeaderLength { words: 4 });
    let mut tcp = encoded(&hello());
    tcp[TCP + 12] = 0x40;
    assert_eq!(error(&tcp), DecodeError::BadHeaderLength { words: 4 });
}

#[test]
fn a_tcp_header_longer_than_the_packet_is_truncation() {
    let mut packet = encoded(&hello());
    packet[TCP + 12] = 0xf0;
    assert_eq!(error(&packet), DecodeError::Truncated { needed: 60, got: 25 });
}

#[test]
fn a_misplaced_ipv6_extension_header_is_refused() {
    // RFC 8200 §4.1: hop-by-hop options come first or not at all.
    let packet = encoded(&ipv6([1; 16], [2; 16]));
    let options = [0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(error(&with_ipv6_extension(packet, 60, &options)), DecodeError::BadExtensionHeader);
}

#[test]
fn unknown_options_are_skipped_by_their_length() {
    // RFC 9293 §3.1 MUST-6. Multipath TCP (30), then MSS.
    let packet = ipv4_with_options(&[30, 4, 0x81, 0, 2, 4, 5, 0xb4]);
    let segment = decode(&packet, Checksums::Ignore).unwrap();
    assert_eq!(segment.options, Options { mss: Some(1460), ..Options::default() });
    assert_eq!(segment.payload, b"hello");
}

#[test]
fn nothing_after_the_end_of_the_option_list_counts() {
    let packet = ipv4_with_options(&[2, 4, 5, 0xb4, 0, 3, 3, 7]);
    let segment = decode(&packet, Checksums::Ignore).unwrap();
    assert_eq!(segment.options, Options { mss: Some(1460), ..Options::default() });
}

#[test]
fn the_last_of_a_doubled_option_counts() {
    let packet = ipv4_with_options(&[2, 4, 1, 1, 2, 4, 5, 0xb4]);
    assert_eq!(decode(&packet, Checksums::Ignore).unwrap().options.mss, Some(1460));
}

#[test]
fn malformed_options_are_refused_by_kind() {
    for (options, kind) in [
        ([2, 3, 0, 0], 2),   // MSS takes 4
        ([1, 1, 1, 3], 3),   // window scale without a length
        ([8, 10, 0, 0], 8),  // timestamps past the header
        ([5, 2, 0, 0], 5),   // SACK without a block
        ([5, 12, 0, 0], 5),  // SACK with half a block
        ([30, 0, 0, 0], 30), // unknown, length 0 would never end
        ([30, 1, 0, 0], 30), // unknown, shorter than its own two bytes
        ([30, 5, 0, 0], 30), // unknown, past the header
        ([1, 1, 1, 30], 30), // unknown without a length
    ] {
        let result = decode(&ipv4_with_options(&options), Checksums::Ignore);
        assert_eq!(result, Err(DecodeError::BadOption { kind }), "{options:?}");
    }
}

#[test]
fn a_window_scale_above_14_is_passed_on() {
    // RFC 7323 §2.3: the endpoint uses 14 in its place.
    let segment = decode(&ipv4_with_options(&[1, 3, 3, 15]), Checksums::Ignore).unwrap();
    assert_eq!(segment.options.window_scale, Some(15));
}

#[test]
fn four_sack_blocks_are_read_in_order() {
    let mut options = vec![1, 1, 5, 34];
    for n in 0..8u32 {
        options.extend_from_slice(&n.to_be_bytes());
    }
    let segment = decode(&ipv4_with_options(&options), Checksums::Ignore).unwrap();
    let expected: Vec<_> = [(0, 1), (2, 3), (4, 5), (6, 7)]
        .map(|(left, right)| SackBlock { left: SeqNum(left), right: SeqNum(right) })
        .into();
    assert_eq!(segment.options.sack.as_slice(), expected);
}

#[test]
fn the_payload_is_made_from_its_slice_of_the_packet() {
    let mut packet = encoded(&hello());
    packet.extend_from_slice(&[0; 6]); // padding
    let decoded = decode_with(&packet, Checksums::Verify, |payload| payload.as_ptr_range());
    let payload = decoded.unwrap().segment.payload;
    assert_eq!(payload, packet[TCP + 20..packet.len() - 6].as_ptr_range());
}

/// The foreign option of a segment with these options and control bits.
fn foreign_option(options: &[u8], control: u8) -> Option<u8> {
    let mut packet = ipv4_with_options(options);
    packet[TCP + 13] = control;
    decode_with(&packet, Checksums::Ignore, |_| ()).unwrap().foreign_option
}

const ACK: u8 = 0x10;
const SYN: u8 = 0x02;

#[test]
fn options_that_cannot_be_written_are_reported() {
    let mut md5 = vec![1, 1, 19, 18];
    md5.resize(20, 7);
    assert_eq!(foreign_option(&md5, ACK), Some(19));
    for kind in [29, 30, 34, 200] {
        assert_eq!(foreign_option(&[1, 1, kind, 6, 0, 0, 0, 0], ACK), Some(kind), "{kind}");
    }
}

// RFC 9768 §3.2.3: any segment may lack the option; the ACE field is on every one.
#[test]
fn accecn_is_not_foreign() {
    for kind in [172, 174] {
        assert_eq!(foreign_option(&[1, kind, 11, 0, 0, 1, 0, 0, 0, 0, 0, 1], ACK), None);
        assert_eq!(foreign_option(&[kind, 2, 30, 2], ACK), Some(30), "but another option is");
    }
    let packet = encoded(&Segment { flags: Flags::AE | Flags::ECE, ..hello() });
    assert_eq!(decode_with(&packet, Checksums::Verify, |_| ()).unwrap().foreign_option, None);
}

#[test]
fn options_that_can_be_written_or_left_out_are_not_foreign() {
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(foreign_option(&timestamps, ACK), None);
    for experimental in [253, 254] {
        assert_eq!(foreign_option(&[experimental, 4, 0xac, 0xce], ACK), None);
    }
    assert_eq!(foreign_option(&[], ACK), None);
}

/// RFC 6994 §2.1: the identifier distinguishes experiments of one kind.
#[test]
fn only_the_experiment_of_our_own_tells_cwnd() {
    let cwnd = |options: &[u8]| {
        decode(&ipv4_with_options(options), Checksums::Ignore).unwrap().options.cwnd
    };
    assert_eq!(cwnd(&[253, 8, 0xa1, 0xdc, 0, 1, 0xe2, 0x40]), Some(123_456));
    assert_eq!(cwnd(&[254, 8, 0xa1, 0xdc, 0, 1, 0xe2, 0x40]), None);
    assert_eq!(cwnd(&[253, 8, 0xa1, 0xdd, 0, 1, 0xe2, 0x40]), None);
    assert_eq!(cwnd(&[253, 4, 0xa1, 0xdc]), None);
    let cut = ipv4_with_options(&[1, 1, 1, 1, 253, 8, 0xa1, 0xdc]);
    assert_eq!(error(&cut), DecodeError::BadOption { kind: 253 });
}

/// RFC 9768 §3.2.3: the length says how many counters there are.
#[test]
fn accecn_counters_are_read_in_both_orders() {
    let accecn = |options: &[u8]| {
        decode(&ipv4_with_options(options), Checksums::Ignore).unwrap().options.accecn.unwrap()
    };
    let whole = accecn(&[1, 172, 11, 0, 0, 1, 0, 1, 0, 1, 0, 0]);
    let counters = [Ecn::Ect0, Ecn::Ce, Ecn::Ect1].map(|ecn| whole.get(ecn));
    assert_eq!(counters, [Some(1), Some(256), Some(65_536)]);
    let short = accecn(&[174, 5, 0, 0, 7, 1, 1, 1]);
    assert_eq!((short.get(Ecn::Ect1), short.get(Ecn::Ce)), (Some(7), None));
    assert!(accecn(&[174, 2, 1, 1]).is_empty());
    let cut = ipv4_with_options(&[174, 11, 0, 0]);
    assert_eq!(error(&cut), DecodeError::BadOption { kind: 174 });
}

#[test]
fn an_offer_in_a_syn_is_not_yet_foreign() {
    for control in [SYN, SYN | ACK] {
        assert_eq!(foreign_option(&[30, 4, 0x00, 0x81], control), None);
    }
}

#[test]
fn a_foreign_option_is_found_behind_others() {
    let options = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 253, 4, 1, 2, 30, 4, 0x20, 1];
    assert_eq!(foreign_option(&options, ACK), Some(30));
    // Nothing after the end of the list counts.
    assert_eq!(foreign_option(&[1, 0, 30, 2], ACK), None);
}

#[test]
fn headers_are_read_where_the_payload_was_cut_off() {
    for segment in [hello(), ipv6([1; 16], [2; 16])] {
        let whole = encoded(&segment);
        let expected = decode(&whole, Checksums::Ignore).unwrap();
        let headers = whole.len() - 5;
        for length in headers..=whole.len() {
            let Headers { segment, ttl } = decode_headers(&whole[..length]).unwrap();
            assert_eq!((segment.payload, ttl), (Length(5), 64));
            assert_eq!((segment.flow, segment.seq), (expected.flow, expected.seq));
            assert_eq!((segment.ack, segment.options), (expected.ack, expected.options));
        }
        for length in 0..headers {
            assert!(decode_headers(&whole[..length]).is_err(), "{length}");
        }
    }
}

#[test]
fn headers_of_what_is_no_whole_tcp_header_are_refused() {
    let mut udp = encoded(&hello());
    udp[9] = 17;
    assert_eq!(decode_headers(&udp).unwrap_err(), DecodeError::NotTcp { protocol: 17 });
    let mut fragment = encoded(&hello());
    fragment[6] = 0x20;
    assert_eq!(decode_headers(&fragment).unwrap_err(), DecodeError::Fragment);
}
