//! TCP segments (RFC 9293 §3.1) with the options of RFC 2018 (SACK) and RFC 7323 (timestamps,
//! window scaling), independent of the layer that carries them.

use crate::accecn::AccEcnOption;
use crate::payload::Payload;
use crate::seq::SeqNum;
use crate::units::Bytes;
use bitflags::bitflags;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// One end of a connection: address and port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Addr {
    /// IPv4 or IPv6 address.
    pub ip: IpAddr,
    /// TCP or UDP port.
    pub port: u16,
}

impl Addr {
    /// An address from its parts.
    pub const fn new(ip: IpAddr, port: u16) -> Self {
        Self { ip, port }
    }
}
impl Default for Addr {
    fn default() -> Self {
        Self::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)
    }
}
impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip {
            IpAddr::V4(ip) => write!(f, "{ip}:{}", self.port),
            IpAddr::V6(ip) => write!(f, "[{ip}]:{}", self.port),
        }
    }
}

/// The directed 4-tuple of a segment.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Flow {
    /// Address and port of the sender.
    pub src: Addr,
    /// Address and port of the receiver.
    pub dst: Addr,
}

impl Flow {
    /// The same connection seen from the other end.
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src }
    }
}
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.src, self.dst)
    }
}

bitflags! {
    /// The control bits (RFC 9293 §3.1, RFC 3168) except ACK, which is `Segment::ack.is_some()`: an
    /// acknowledgement number without its flag cannot be read by accident.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub struct Flags: u8 {
        /// No more data from the sender.
        const FIN = 0x01;
        /// Synchronise sequence numbers.
        const SYN = 0x02;
        /// Reset the connection.
        const RST = 0x04;
        /// PSH: pushes data to the application.
        const PSH = 0x08;
        /// Urgent pointer is significant.
        const URG = 0x20;
        /// ECE: echoes congestion (RFC 3168 §6.1).
        const ECE = 0x40;
        /// Congestion window reduced.
        const CWR = 0x80;
        /// Accurate ECN (RFC 9768 §2.2). In the header it is bit 8; here it takes the place of ACK,
        /// so that ledgers of a gateway keep their layout.
        const AE = 0x10;
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ecn {
    /// The sender does not take part: a queue can only drop the packet.
    #[default]
    NotEct,
    /// ECN-capable, of a sender that asks for L4S (RFC 9331 §4.1).
    Ect1,
    /// ECT(0): ECN-capable transport.
    Ect0,
    /// Congestion experienced: a queue marked it.
    Ce,
}

impl Ecn {
    /// From the two bits of the field; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
    /// The two bits of the field.
    pub const fn bits(self) -> u8 {
        self as u8
    }
    /// A queue may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock, echoed.
    pub echo: u32,
}

/// Received bytes `left..right` above the cumulative acknowledgement (RFC 2018 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SackBlock {
    /// First byte held.
    pub left: SeqNum,
    /// One past the last byte held.
    pub right: SeqNum,
}

/// Up to four SACK blocks, inline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<SackBlock>", into = "Vec<SackBlock>")]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    len: u8,
}

impl SackBlocks {
    /// An empty list.
    pub const fn new() -> Self {
        const ZERO: SackBlock = SackBlock { left: SeqNum(0), right: SeqNum(0) };
        Self { blocks: [ZERO; 4], len: 0 }
    }
    /// Appends a block; returns false, and changes nothing, if there are four already.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = block;
        self.len += 1;
        true
    }
    /// The blocks, in the order of the option.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }
    /// End of the last data that a block reports beyond `ack`, the acknowledgement that it came
    /// with: some of what is between them is missing. A duplicate that is reported lies before it
    /// (RFC 2883).
    pub fn end_beyond(&self, ack: SeqNum) -> Option<SeqNum> {
        let ends = self.as_slice().iter().map(|block| block.right);
        ends.filter(|end| end.after(ack)).reduce(SeqNum::later)
    }

    /// True if there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}
impl FromIterator<SackBlock> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = SackBlock>>(iter: I) -> Self {
        let mut blocks = Self::new();
        for b in iter {
            if !blocks.push(b) {
                break;
            }
        }
        blocks
    }
}

impl TryFrom<Vec<SackBlock>> for SackBlocks {
    type Error = &'static str;
    fn try_from(list: Vec<SackBlock>) -> Result<Self, Self::Error> {
        let mut blocks = Self::new();
        let fits = list.into_iter().all(|block| blocks.push(block));
        fits.then_some(blocks).ok_or("more than four SACK blocks")
    }
}
impl From<SackBlocks> for Vec<SackBlock> {
    fn from(blocks: SackBlocks) -> Self {
        blocks.as_slice().to_vec()
    }
}

/// The TCP options airtcp reads and writes. Others on live traffic stay in the original packet,
/// which the driver forwards unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    /// Maximum segment size (SYN only).
    pub mss: Option<u16>,
    /// Window scale shift (SYN only, RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK permitted (SYN only).
    pub sack_permitted: bool,
    /// Timestamps option (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// Blocks of the SACK option (RFC 2018).
    pub sack: SackBlocks,
    /// The sender's congestion window in bytes (TCP-DCA §VI), an experimental option (RFC 6994).
    pub cwnd: Option<u32>,
    /// AccECN counters (RFC 9768 §3.2.3). A saved segment loses them, and keeps its layout: what is
    /// sent again would tell old counts.
    #[serde(skip)]
    pub accecn: Option<AccEcnOption>,
}

/// The most bytes of options a TCP header can hold: its length is at most 60 bytes (RFC 9293 §3.1).
pub const MAX_OPTIONS_LEN: usize = 40;

impl Default for Options {
    fn default() -> Self {
        Self::NONE
    }
}

impl Options {
    /// A header without options.
    pub const NONE: Self = Self {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks::new(),
        cwnd: None,
        accecn: None,
    };

    /// Bytes these options take in the header, each group padded to four bytes as deployed stacks
    /// do (MSS 4; window scale 4; SACK permitted 4; timestamps 12; SACK 4 + 8 a block; cwnd 8;
    /// AccECN 4 to 12).
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let sack = self.sack.as_slice().len();
        usize::from(self.mss.is_some()) * 4
            + usize::from(self.window_scale.is_some()) * 4
            + usize::from(self.sack_permitted) * 4
            + usize::from(self.timestamps.is_some()) * 12
            + if sack == 0 { 0 } else { 4 + 8 * sack }
            + usize::from(self.cwnd.is_some()) * 8
            + self.accecn.map_or(0, |accecn| accecn.len().next_multiple_of(4))
    }
}

/// A TCP segment. `P` is a length in the simulator and real bytes elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment<P> {
    /// Source and destination.
    pub flow: Flow,
    /// Sequence number of the first byte (or of the SYN).
    pub seq: SeqNum,
    /// Acknowledgement number; `None` when the ACK flag is off.
    pub ack: Option<SeqNum>,
    /// The window field, unscaled.
    pub window: u16,
    /// Control bits other than ACK.
    pub flags: Flags,
    /// ECN field of the IP header: TCP sets it, queues change it (RFC 3168 §6.1). A saved segment
    /// loses it: what is sent again is not ECN-capable (§6.1.5).
    #[serde(skip)]
    pub ecn: Ecn,
    /// TCP options.
    pub options: Options,
    /// User data, or only its length.
    pub payload: P,
}

impl<P: Payload> Segment<P> {
    /// The same headers with another payload.
    pub fn with_payload<Q>(&self, payload: Q) -> Segment<Q> {
        let &Self { flow, seq, ack, window, flags, ecn, options, payload: _ } = self;
        Segment { flow, seq, ack, window, flags, ecn, options, payload }
    }
    /// Length in sequence space: payload, plus one each for SYN and FIN (RFC 9293 §3.4).
    pub fn seq_len(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }
    /// The sequence number after this segment.
    pub fn seq_end(&self) -> SeqNum {
        self.seq + self.seq_len()
    }
    /// An acknowledgement and nothing else: no data, SYN, FIN or RST.
    pub fn is_pure_ack(&self) -> bool {
        self.ack.is_some()
            && self.payload.is_empty()
            && !self.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST)
    }
    /// It shows that the connection has Accurate ECN: by the flag AE, or by the option. Any segment
    /// of such a connection may lack both (RFC 9768 §3.2.2, §3.2.3).
    pub fn shows_accecn(&self) -> bool {
        self.flags.contains(Flags::AE) || self.options.accecn.is_some()
    }
    /// TCP header with options.
    pub fn tcp_header_len(&self) -> usize {
        20 + self.options.encoded_len()
    }
    /// Size as an IP packet without link framing: IP header (20 or 40), TCP header with options,
    /// payload.
    pub fn wire_len(&self) -> Bytes {
        let ip = if self.flow.src.ip.is_ipv4() { 20 } else { 40 };
        Bytes((ip + self.tcp_header_len() + self.payload.len()) as u64)
    }
}

/// The segment as tcpdump writes it: `S 0:0(0) ack 1 win 8760 <mss 1460>`.
impl<P: Payload> fmt::Display for Segment<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut any = false;
        for (flag, letter) in
            [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P')]
        {
            if self.flags.contains(flag) {
                write!(f, "{letter}")?;
                any = true;
            }
        }
        if !any {
            write!(f, ".")?;
        }
        let len = self.payload.len();
        write!(f, " {}:{}({len})", self.seq, self.seq + len as u32)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        write!(f, " win {}", self.window)?;
        let Options { mss, window_scale, sack_permitted, timestamps, sack, cwnd, accecn } =
            &self.options;
        let mut opts = Vec::new();
        opts.extend(mss.map(|m| format!("mss {m}")));
        opts.extend(window_scale.map(|s| format!("wscale {s}")));
        opts.extend(sack_permitted.then(|| "sackOK".to_owned()));
        opts.extend(timestamps.map(|t| format!("TS val {} ecr {}", t.value, t.echo)));
        opts.extend(sack.as_slice().iter().map(|b| format!("sack {}:{}", b.left, b.right)));
        opts.extend(cwnd.map(|cwnd| format!("cwnd {cwnd}")));
        opts.extend(accecn.map(|accecn| accecn.to_string()));
        if !opts.is_empty() {
            write!(f, " <{}>", opts.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Length;

    #[test]
    fn sequence_length_counts_syn_and_fin() {
        let mut s = Segment { payload: Length(10), ..Segment::default() };
        assert_eq!(s.seq_len(), 10);
        s.flags = Flags::FIN;
        assert_eq!(s.seq_len(), 11);
        s.seq = SeqNum(u32::MAX);
        assert_eq!(s.seq_end(), SeqNum(10));
    }

    #[test]
    fn ns2_default_packet_is_1040_bytes() {
        let s = Segment { payload: Length(1000), ..Segment::default() };
        assert_eq!(s.wire_len(), Bytes(1040));
    }

    #[test]
    fn three_sack_blocks_and_timestamps_fill_the_header() {
        let block = SackBlock { left: SeqNum(1), right: SeqNum(2) };
        let options = Options {
            timestamps: Some(Timestamps::default()),
            sack: [block; 3].into_iter().collect(),
            ..Options::default()
        };
        assert_eq!(options.encoded_len(), 40);
    }

    #[test]
    fn reads_like_tcpdump() {
        let s = Segment {
            seq: SeqNum(1),
            ack: Some(SeqNum(7)),
            window: 100,
            payload: Length(5),
            options: Options {
                sack: [SackBlock { left: SeqNum(9), right: SeqNum(12) }].into_iter().collect(),
                ..Options::default()
            },
            ..Segment::default()
        };
        assert_eq!(s.to_string(), ". 1:6(5) ack 7 win 100 <sack 9:12>");
    }
}
