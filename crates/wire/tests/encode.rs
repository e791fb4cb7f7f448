//! Output of the encoder, byte by byte; decoding restores the segment.

use airtcp_core::{
    AccEcnOption, AccEcnOrder, Addr, Ecn, EcnBytes, Flags, Flow, Length, Options, SackBlock,
    SackBlocks, Segment, SeqNum, Timestamps,
};
use airtcp_wire::{Checksums, EncodeError, decode, encode, encode_echo_request, encode_udp};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn flow() -> Flow {
    Flow {
        src: Addr::new(Ipv4Addr::new(10, 0, 0, 1).into(), 1000),
        dst: Addr::new(Ipv4Addr::new(10, 0, 0, 2).into(), 2000),
    }
}

fn encoded(segment: &Segment<Vec<u8>>) -> Vec<u8> {
    let mut packet = Vec::new();
    encode(segment, &mut packet).unwrap();
    packet
}

fn options_bytes(options: Options) -> Vec<u8> {
    encoded(&Segment { flow: flow(), options, ..Segment::default() })[40..].to_vec()
}

fn blocks(n: u32) -> SackBlocks {
    (0..n).map(|i| SackBlock { left: SeqNum(2 * i), right: SeqNum(2 * i + 1) }).collect()
}

/// RFC 1071 §4.1, sixteen bits at a time; shares no code with the encoder.
fn ones_complement_sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0u16, |sum, word| {
        let word = u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]);
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

/// The sums over IPv4 header and pseudo-header + TCP; all ones when a checksum is right.
fn sums(packet: &[u8]) -> (Option<u16>, u16) {
    let v4 = packet[0] >> 4 == 4;
    let (ip_len, addresses) = if v4 { (20, 12..20) } else { (40, 8..40) };
    let tcp = &packet[ip_len..];
    let mut pseudo = packet[addresses].to_vec();
    pseudo.extend_from_slice(&(tcp.len() as u32).to_be_bytes());
    pseudo.extend_from_slice(&[0, 0, 0, 6]);
    pseudo.extend_from_slice(tcp);
    (v4.then(|| ones_complement_sum(&packet[..ip_len])), ones_complement_sum(&pseudo))
}

#[test]
fn the_packet_byte_by_byte() {
    let segment = Segment {
        flow: flow(),
        seq: SeqNum(0x0102_0304),
        ack: Some(SeqNum(0x0506_0708)),
        window: 0x1112,
        flags: Flags::PSH | Flags::FIN | Flags::CWR,
        ecn: Ecn::NotEct,
        options: Options::default(),
        payload: b"hi".to_vec(),
    };
    let packet = encoded(&segment);
    #[rustfmt::skip]
    let expected = [
        0x45, 0, 0, 42, 0, 0, 0x40, 0, 64, 6, 0x26, 0xcc, 10, 0, 0, 1, 10, 0, 0, 2,
        0x03, 0xe8, 0x07, 0xd0, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0b1001_1001, 0x11, 0x12, 0, 0, 0, 0,
        b'h', b'i',
    ];
    let mut without_tcp_checksum = packet.clone();
    without_tcp_checksum[36..38].fill(0);
    assert_eq!(without_tcp_checksum, expected);
    assert_eq!(sums(&packet), (Some(0xffff), 0xffff));
}

#[test]
fn options_are_laid_out_in_aligned_groups() {
    let syn = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        sack: SackBlocks::new(),
        cwnd: None,
        accecn: None,
    };
    assert_eq!(
        options_bytes(syn),
        [2, 4, 5, 0xb4, 1, 3, 3, 7, 1, 1, 4, 2, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]
    );
    let ack = Options { sack: blocks(1), ..Options::default() };
    assert_eq!(options_bytes(ack), [1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn the_fourth_sack_block_beside_timestamps_is_left_out() {
    let timestamps = Some(Timestamps::default());
    let packet = encoded(&Segment {
        flow: flow(),
        options: Options { timestamps, sack: blocks(4), ..Options::default() },
        payload: b"data".to_vec(),
        ..Segment::default()
    });
    let segment = decode(&packet, Checksums::Verify).unwrap();
    assert_eq!(segment.options.sack, blocks(3));
    assert_eq!(segment.options.timestamps, timestamps);
    assert_eq!(segment.payload, b"data");
}

/// RFC 6994 §2.1: kind 253, then the identifier of the experiment.
#[test]
fn cwnd_travels_in_an_experimental_option() {
    let options = Options { cwnd: Some(0x0001_e240), ..Options::default() };
    assert_eq!(options.encoded_len(), 8);
    assert_eq!(options_bytes(options), [253, 8, 0xa1, 0xdc, 0, 1, 0xe2, 0x40]);
}

fn accecn(fields: usize) -> Option<AccEcnOption> {
    let bytes = EcnBytes { ect0: 0x01_02_03, ect1: 0x04_05_06, ce: 0x07_08_09 };
    Some(AccEcnOption::new(AccEcnOrder::Ect1First, &bytes, fields))
}

/// RFC 9768 §3.2.3, in whole words.
#[test]
fn accecn_counters_travel_behind_padding() {
    let options = |fields| Options { accecn: accecn(fields), ..Options::default() };
    assert_eq!(options_bytes(options(3)), [1, 174, 11, 4, 5, 6, 7, 8, 9, 1, 2, 3]);
    assert_eq!(options_bytes(options(2)), [174, 8, 4, 5, 6, 7, 8, 9]);
    assert_eq!(options_bytes(options(1)), [1, 1, 1, 174, 5, 4, 5, 6]);
    assert_eq!(options_bytes(options(0)), [1, 1, 174, 2]);
}

#[test]
fn sack_goes_before_accecn() {
    let options = Options { sack: blocks(4), accecn: accecn(3), ..Options::default() };
    assert_eq!(options_bytes(options).len(), 36);
    let options = Options { sack: blocks(3), accecn: accecn(3), ..Options::default() };
    assert_eq!(options_bytes(options).len(), 40);
}

#[test]
fn four_sack_blocks_alone_fit() {
    let options = Options { sack: blocks(4), ..Options::default() };
    assert_eq!(options_bytes(options).len(), 36);
}

#[test]
fn a_length_is_written_as_zeros() {
    let of_length = Segment { flow: flow(), payload: Length(1001), ..Segment::default() };
    let of_zeros = Segment { flow: flow(), payload: vec![0; 1001], ..Segment::default() };
    let mut packet = Vec::new();
    encode(&of_length, &mut packet).unwrap();
    assert_eq!(packet, encoded(&of_zeros));
}

#[test]
fn appends_to_what_is_there() {
    let segment = Segment { flow: flow(), payload: b"odd".to_vec(), ..Segment::default() };
    let mut out = b"before".to_vec();
    encode(&segment, &mut out).unwrap();
    assert_eq!(&out[..6], b"before");
    assert_eq!(out[6..], encoded(&segment));
}

#[test]
fn mixed_ip_versions_are_refused_and_nothing_written() {
    let mut segment = Segment { flow: flow(), payload: Length(1), ..Segment::default() };
    segment.flow.dst.ip = Ipv6Addr::LOCALHOST.into();
    let mut out = Vec::new();
    assert_eq!(encode(&segment, &mut out), Err(EncodeError::MixedAddresses(segment.flow)));
    assert!(out.is_empty());
}

#[test]
fn the_longest_packet_of_each_ip_version() {
    let v6 = Flow {
        src: Addr::new(Ipv6Addr::LOCALHOST.into(), 1),
        dst: Addr::new(Ipv6Addr::LOCALHOST.into(), 2),
    };
    for (flow, max) in [(flow(), 65_515), (v6, 65_535)] {
        let mut out = Vec::new();
        let fits = Segment { flow, payload: Length(max - 20), ..Segment::default() };
        assert_eq!(encode(&fits, &mut out), Ok(()));
        out.clear();
        let too_long = Segment { payload: Length(max - 19), ..fits };
        assert_eq!(
            encode(&too_long, &mut out),
            Err(EncodeError::TooLong { len: max as usize + 1, max: max as usize })
        );
        assert!(out.is_empty());
    }
}

fn any_flow() -> impl Strategy<Value = Flow> {
    let v4 = any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let v6 = any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    (prop_oneof![v4, v6], any::<(u16, u16)>()).prop_map(|((src, dst), (sport, dport))| Flow {
        src: Addr::new(src, sport),
        dst: Addr::new(dst, dport),
    })
}

fn any_options() -> impl Strategy<Value = Options> {
    let sack = prop::collection::vec(any::<(u32, u32)>(), 0..=4);
    let accecn = any::<Option<(bool, [u8; 9])>>().prop_flat_map(|option| {
        (0..=3_usize).prop_map(move |fields| {
            let (ect0, bytes) = option?;
            let order = if ect0 { AccEcnOrder::Ect0First } else { AccEcnOrder::Ect1First };
            Some(AccEcnOption::from_wire(order, &bytes[..3 * fields]))
        })
    });
    let others = any::<(Option<u16>, Option<u8>, bool, Option<(u32, u32)>, Option<u32>)>();
    (others, sack, accecn).prop_map(
        |((mss, window_scale, sack_permitted, timestamps, cwnd), sack, accecn)| Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            sack: sack
                .into_iter()
                .map(|(left, right)| SackBlock { left: SeqNum(left), right: SeqNum(right) })
                .collect(),
            cwnd,
            accecn,
        },
    )
}

fn any_segment() -> impl Strategy<Value = Segment<Vec<u8>>> {
    let header = any::<(u32, Option<u32>, u16, u8, u8)>();
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    (any_flow(), header, any_options(), payload).prop_map(
        |(flow, (seq, ack, window, flags, ecn), options, payload)| Segment {
            flow,
            seq: SeqNum(seq),
            ack: ack.map(SeqNum),
            window,
            flags: Flags::from_bits_truncate(flags),
            ecn: Ecn::from_bits(ecn),
            options,
            payload,
        },
    )
}

proptest! {
    #[test]
    fn decoding_gives_back_the_segment(segment in any_segment()) {
        let packet = encoded(&segment);
        let back = decode(&packet, Checksums::Verify).unwrap();
        if segment.options.encoded_len() <= 40 {
            prop_assert_eq!(segment.wire_len().get(), packet.len() as u64);
            prop_assert_eq!(back, segment);
        } else {
            let kept = back.options.sack.as_slice();
            let Options { cwnd, accecn, .. } = segment.options;
            prop_assert!(!kept.is_empty() || cwnd.is_some() || accecn.is_some());
            prop_assert_eq!(kept, &segment.options.sack.as_slice()[..kept.len()]);
            prop_assert!(back.options.accecn.is_none() || back.options.accecn == accecn);
            let (sack, accecn) = (back.options.sack, back.options.accecn);
            let options = Options { sack, accecn, ..segment.options };
            prop_assert_eq!(back, Segment { options, ..segment });
        }
    }

    #[test]
    fn checksums_are_valid(segment in any_segment()) {
        let (ip, tcp) = sums(&encoded(&segment));
        prop_assert_eq!(ip.unwrap_or(0xffff), 0xffff);
        prop_assert_eq!(tcp, 0xffff);
    }
}

/// RFC 768: the length covers header and data; the sum over pseudo-header and datagram is all ones.
#[test]
fn an_echo_request_has_its_identifier_and_a_valid_checksum() {
    let mut packet = Vec::new();
    encode_echo_request(&flow(), 0x1234, &mut packet).unwrap();
    assert_eq!(packet[9], 1);
    assert_eq!(ones_complement_sum(&packet[..20]), u16::MAX);
    assert_eq!(packet[20..], [8, 0, 0xe5, 0xcb, 0x12, 0x34, 0, 0]);

    let [src, dst] = [1, 2].map(|last| Addr::new(Ipv6Addr::from_bits(last).into(), 1000));
    let mut packet = Vec::new();
    encode_echo_request(&Flow { src, dst }, 0x1234, &mut packet).unwrap();
    assert_eq!((packet[6], packet[40]), (58, 128));
    let mut pseudo = packet[8..40].to_vec();
    pseudo.extend([0, 0, 0, 8, 0, 0, 0, 58]);
    pseudo.extend(&packet[40..]);
    assert_eq!(ones_complement_sum(&pseudo), u16::MAX);
}

#[test]
fn a_udp_datagram_has_its_length_and_a_valid_checksum() {
    for len in [0, 1, 1472] {
        let mut packet = Vec::new();
        encode_udp(&flow(), &Length(len), &mut packet).unwrap();
        let parsed = etherparse::SlicedPacket::from_ip(&packet).unwrap();
        let Some(etherparse::TransportSlice::Udp(udp)) = parsed.transport else { panic!("{len}") };
        assert_eq!((udp.source_port(), udp.destination_port()), (flow().src.port, flow().dst.port));
        assert_eq!(u64::from(udp.length()), 8 + len);
        let etherparse::NetSlice::Ipv4(ip) = parsed.net.unwrap() else { panic!("not IPv4") };
        let expected = udp.to_header().calc_checksum_ipv4(&ip.header().to_header(), udp.payload());
        assert_eq!(udp.checksum(), expected.unwrap());
    }
}
