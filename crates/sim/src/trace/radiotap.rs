//! Frames of a cell as a sniffer in monitor mode records them: IEEE 802.11 behind a Radiotap header
//! (LINKTYPE_IEEE802_11_RADIOTAP).
//!
//! Read first: IEEE Std 802.11-2020, §9.3.1 and §9.3.2, and the fields that radiotap.org defines.
//! Stations are those of an independent BSS. Every data frame has the standard's MAC header, LLC and
//! SNAP, also in a cell whose [`MacConfig`](airtcp_net::wifi::MacConfig) counts others.

use super::pcap::encode_packet;
use super::{AirFrame, Crossing};
use crate::addr;
use crate::packet::Packet;
use crate::scenario::{NodeId, WlanId};
use airtcp_core::{DataRate, Duration};
use airtcp_net::wifi::{
    Band, BlockAck, ChannelConfig, Content, Format, PhyConfig, Preamble, SentAt, SentMpdu,
    TxVector, Width,
};
use airtcp_routing::arp;
use airtcp_wire::EncodeError;

/// Largest value of the Duration field, us (§9.2.5.1).
const LONGEST_RESERVATION: u64 = 32_767;
/// Length of the frame check sequence.
const FCS: usize = 4;
/// In the first byte of the QoS Control field (§9.2.4.5.1).
const AMSDU_PRESENT: u8 = 0x80;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;

/// Number of frames, of an A-MPDU of MPDUs, that were sent at once.
pub(super) fn count(frame: &AirFrame<'_>) -> usize {
    match &frame.content {
        Content::Data(mpdus) => mpdus.len(),
        Content::Rts | Content::Cts | Content::Ack | Content::BlockAck(_) => 1,
    }
}

/// Appends one of them, behind its Radiotap header. Returns the length of both, which is more than
/// was appended if the packet is unknown.
pub(super) fn encode(
    config: &ChannelConfig,
    frame: &AirFrame<'_>,
    place: usize,
    out: &mut Vec<u8>,
) -> Result<usize, EncodeError> {
    write_radiotap(config, frame, place, out);
    let start = out.len();
    let reserved = frame.reserves.as_nanos().div_ceil(1000).min(LONGEST_RESERVATION) as u16;
    let to = frame.to.map_or([0xff; 6], address);
    let mut head = |control: [u8; 2]| {
        out.extend(control);
        out.extend(reserved.to_le_bytes());
        out.extend(to);
    };
    let mut unknown = 0;
    match &frame.content {
        Content::Rts => {
            head([0xb4, 0]);
            out.extend(address(frame.from));
        }
        Content::Cts => head([0xc4, 0]),
        Content::Ack => head([0xd4, 0]),
        Content::BlockAck(block) => {
            head([0x94, 0]);
            out.extend(address(frame.from));
            write_block_ack(config, block, out);
        }
        Content::Data(mpdus) => {
            let SentMpdu { packets, priority, amsdu, sequence, retry, size } = &mpdus[place];
            let quality = matches!(config.phy, PhyConfig::Mimo(..));
            head([if quality { 0x88 } else { 0x08 }, if *retry { 0x08 } else { 0 }]);
            out.extend(address(frame.from));
            out.extend(cell_address(frame.wlan));
            out.extend((((sequence & 0xfff) << 4) as u16).to_le_bytes());
            if quality {
                // The TID, and an answer as it follows from the frame.
                out.extend([priority.get() | if *amsdu { AMSDU_PRESENT } else { 0 }, 0]);
            }
            match &packets[..] {
                packets @ [_, ..] if *amsdu => write_amsdu(frame, packets, out)?,
                [crossing, ..] => write_packet(crossing, out)?,
                [] if *amsdu => {
                    unknown = (*size - config.mac.header).get() as usize + FCS;
                }
                [] => {
                    write_llc(ETHERTYPE_IPV4, out);
                    let own = config.mac.header + config.mac.llc;
                    unknown = (*size - own).get() as usize + FCS;
                }
            }
        }
    }
    if unknown == 0 {
        let checksum = crc32fast::hash(&out[start..]);
        out.extend(checksum.to_le_bytes());
    }
    Ok(out.len() + unknown)
}

/// A locally administered address for each node.
fn address(node: NodeId) -> [u8; 6] {
    let [a, b, c, d] = node.0.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

/// The BSSID.
fn cell_address(wlan: WlanId) -> [u8; 6] {
    let [a, b, c, d] = wlan.0.to_be_bytes();
    [0x06, 0, a, b, c, d]
}

fn write_llc(ethertype: u16, out: &mut Vec<u8>) {
    out.extend([0xaa, 0xaa, 0x03, 0, 0, 0]);
    out.extend(ethertype.to_be_bytes());
}

fn write_packet(crossing: &Crossing<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if let Packet::Control(control) = crossing.packet
        && let Some(message) = control.message.downcast_ref()
    {
        write_llc(ETHERTYPE_ARP, out);
        write_arp(message, out);
        return Ok(());
    }
    write_llc(ETHERTYPE_IPV4, out);
    let mut packet = Vec::new();
    encode_packet(crossing, &mut packet)?;
    out.extend(packet);
    Ok(())
}

/// The subframes of an A-MSDU: addresses, length and MSDU, each but the last padded to a multiple of
/// four bytes (§9.3.2.2.2).
fn write_amsdu(
    frame: &AirFrame<'_>,
    packets: &[Crossing<'_>],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    for (place, crossing) in packets.iter().enumerate() {
        let subframe = out.len();
        out.extend(frame.to.map_or([0xff; 6], address));
        out.extend(address(frame.from));
        let length = out.len();
        out.extend([0; 2]);
        let msdu = out.len();
        write_packet(crossing, out)?;
        let bytes = ((out.len() - msdu) as u16).to_be_bytes();
        out[length..msdu].copy_from_slice(&bytes);
        if place + 1 < packets.len() {
            align(out, subframe, 4);
        }
    }
    Ok(())
}

/// RFC 826, for IPv4 over IEEE 802 addresses.
fn write_arp(message: &arp::Message, out: &mut Vec<u8>) {
    let &arp::Message { operation, sender, target } = message;
    let (operation, target_address) = match operation {
        arp::Operation::Request => (1, [0; 6]),
        arp::Operation::Reply => (2, address(target)),
    };
    out.extend([0, 1, 8, 0, 6, 4, 0, operation]);
    out.extend(address(sender));
    out.extend(addr::v4_of_node(sender).octets());
    out.extend(target_address);
    out.extend(addr::v4_of_node(target).octets());
}

/// BA Control, Starting Sequence Control and bitmap of a compressed block ACK (§9.3.1.8.2; 802.11ax
/// Table 9-30a).
fn write_block_ack(config: &ChannelConfig, block: &BlockAck, out: &mut Vec<u8>) {
    const COMPRESSED: u16 = 2 << 1;
    let control = COMPRESSED | u16::from(block.priority.get()) << 12;
    let long = matches!(&config.phy, PhyConfig::Mimo(_, mimo) if mimo.block_ack_window > 64);
    // The fragment number tells the length of the bitmap.
    let (fragment, length) = if long { (4, 32) } else { (0, 8) };
    out.extend(control.to_le_bytes());
    out.extend((((block.start & 0xfff) << 4) as u16 | fragment).to_le_bytes());
    let mut bitmap = [0_u8; 32];
    for sequence in &block.received {
        let bit = sequence.wrapping_sub(block.start) as usize;
        if let Some(byte) = bitmap[..length].get_mut(bit / 8) {
            *byte |= 1 << (bit % 8);
        }
    }
    out.extend(&bitmap[..length]);
}

// Bits of the fields that are present.
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const MCS: u32 = 1 << 19;
const AMPDU: u32 = 1 << 20;
const VHT: u32 = 1 << 21;
const HE: u32 = 1 << 23;

/// The Radiotap header of a frame.
fn write_radiotap(config: &ChannelConfig, frame: &AirFrame<'_>, place: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let mpdus = count(frame);
    // Version, padding, and the length and the fields, which are not known yet.
    out.extend([0; 8]);
    let mut present = FLAGS | CHANNEL;
    /// FCS at the end.
    const WITH_FCS: u8 = 0x10;
    const SHORT_PREAMBLE: u8 = 0x02;
    out.push(WITH_FCS | if short_preamble(config, frame.sent_at) { SHORT_PREAMBLE } else { 0 });
    if let SentAt::Rate(rate) = frame.sent_at {
        present |= RATE;
        out.push((rate.bits_per_sec() / 500_000) as u8);
    }
    align(out, start, 2);
    let (frequency, flags) = channel(&config.phy);
    out.extend(frequency.to_le_bytes());
    out.extend(flags.to_le_bytes());
    if let SentAt::Mcs(Format::Ht, vector) = frame.sent_at {
        present |= MCS;
        out.extend(ht(vector));
    }
    if mpdus > 1 {
        present |= AMPDU;
        align(out, start, 4);
        out.extend(frame.number.to_le_bytes());
        /// It is known which subframe is the last.
        const LAST_KNOWN: u16 = 0x0004;
        const LAST: u16 = 0x0008;
        let last = if place + 1 == mpdus { LAST } else { 0 };
        out.extend((LAST_KNOWN | last).to_le_bytes());
        out.extend([0, 0]);
    }
    match frame.sent_at {
        SentAt::Mcs(Format::Vht, vector) => {
            present |= VHT;
            align(out, start, 2);
            out.extend(vht(vector));
        }
        SentAt::Mcs(Format::He, vector) => {
            present |= HE;
            align(out, start, 2);
            out.extend(he(vector).into_iter().flat_map(u16::to_le_bytes));
        }
        SentAt::Mcs(Format::Ht, _) | SentAt::Rate(_) => {}
    }
    let length = (out.len() - start) as u16;
    out[start + 2..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&present.to_le_bytes());
}

fn align(out: &mut Vec<u8>, start: usize, to: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(to), 0);
}

fn short_preamble(config: &ChannelConfig, sent_at: SentAt) -> bool {
    match (&config.phy, sent_at) {
        (PhyConfig::Dsss(dsss), SentAt::Rate(rate)) => {
            dsss.preamble == Preamble::Short && rate > DataRate::mbps(1)
        }
        _ => false,
    }
}

/// Frequency in MHz of the band's first channel, and the flags of the Channel field.
fn channel(phy: &PhyConfig) -> (u16, u16) {
    const CCK: u16 = 0x0020;
    const OFDM: u16 = 0x0040;
    const GHZ2: u16 = 0x0080;
    // 6 GHz has no flag of its own.
    const GHZ5: u16 = 0x0100;
    let band = match phy {
        PhyConfig::Dsss(_) => return (2412, CCK | GHZ2),
        PhyConfig::Ofdm(_) => Band::Ghz5,
        PhyConfig::Erp(_) => Band::Ghz2,
        PhyConfig::Mimo(_, mimo) => mimo.band,
    };
    match band {
        Band::Ghz2 => (2412, OFDM | GHZ2),
        Band::Ghz5 => (5180, OFDM | GHZ5),
        Band::Ghz6 => (5955, OFDM | GHZ5),
    }
}

fn is_short(guard_interval: Duration) -> bool {
    guard_interval < Duration::from_nanos(800)
}

/// The field MCS: bandwidth, MCS, guard interval, format (mixed) and code (BCC) are known.
fn ht(vector: TxVector) -> [u8; 3] {
    let bandwidth = u8::from(vector.width == Width::Mhz40);
    let interval = if is_short(vector.guard_interval) { 0x04 } else { 0 };
    [0x1f, bandwidth | interval, (vector.mcs + 8 * (vector.streams - 1)) as u8]
}

/// The field VHT: guard interval and bandwidth are known.
fn vht(vector: TxVector) -> [u8; 12] {
    let bandwidth = match vector.width {
        Width::Mhz20 => 0,
        Width::Mhz40 => 1,
        Width::Mhz80 => 4,
        Width::Mhz160 => 11,
    };
    let interval = if is_short(vector.guard_interval) { 0x04 } else { 0 };
    let user = (vector.mcs << 4 | vector.streams) as u8;
    [0x44, 0, interval, bandwidth, user, 0, 0, 0, 0, 0, 0, 0]
}

/// The field HE of a single-user PPDU: MCS, code (LDPC), bandwidth and guard interval are known.
fn he(vector: TxVector) -> [u16; 6] {
    let bandwidth = match vector.width {
        Width::Mhz20 => 0,
        Width::Mhz40 => 1,
        Width::Mhz80 => 2,
        Width::Mhz160 => 3,
    };
    let interval = match vector.guard_interval.as_nanos() {
        0..=800 => 0,
        801..=1600 => 1,
        _ => 2,
    };
    const LDPC: u16 = 0x2000;
    let mcs = (vector.mcs as u16) << 8;
    [
        0x4000 | 0x0080 | 0x0020,
        0x0002,
        mcs | LDPC,
        0,
        bandwidth | interval << 4,
        vector.streams as u16,
    ]
}
