//! What stations send each other.

use crate::wifi::category::UserPriority;
use crate::wifi::minstrel::Rate;
use crate::wifi::standard::SentAt;
use crate::wifi::station::{Receiver, StationId};
use airtcp_core::{Bytes, Duration, Instant};

/// Length of an RTS (IEEE Std 802.11-1999 §7.2.1.1).
pub(crate) const RTS: Bytes = Bytes(20);
/// Length of a CTS (§7.2.1.2).
pub(crate) const CTS: Bytes = Bytes(14);
/// Length of an ACK (§7.2.1.3).
pub(crate) const ACK: Bytes = Bytes(14);

/// Length of a compressed block ACK that covers 64 MPDUs (802.11-2020 §9.3.1.8.2).
pub(crate) const BLOCK_ACK: Bytes = Bytes(32);
/// Length of one that covers 256.
pub(crate) const LONG_BLOCK_ACK: Bytes = Bytes(56);

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Acknowledgement of a data frame, or block ACK of an A-MPDU.
    Ack,
    /// A data frame with one packet, or an A-MPDU with several.
    Data,
}

/// A frame put on the air, as a monitor would record it. `T` is a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentFrame<T> {
    /// The frames of a channel are numbered as they are sent, from 0, modulo 2^30.
    pub number: u32,
    /// Departure of its first bit.
    pub at: Instant,
    /// Time on the air.
    pub duration: Duration,
    /// Time for which it reserves the medium after it, the Duration field.
    pub reserves: Duration,
    /// The sending station.
    pub from: StationId,
    /// The receiving station, or all in range.
    pub to: Receiver,
    /// Its rate.
    pub sent_at: SentAt,
    /// Control or data.
    pub content: Content<T>,
}

/// What is in a frame put on the air. `T` is a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<T> {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Acknowledgement of a data frame.
    Ack,
    /// Block ACK of an A-MPDU.
    BlockAck(BlockAck),
    /// One MPDU, or those of an A-MPDU.
    Data(Vec<SentMpdu<T>>),
}

impl<T> Content<T> {
    /// Its kind.
    pub fn kind(&self) -> FrameKind {
        match self {
            Self::Rts => FrameKind::Rts,
            Self::Cts => FrameKind::Cts,
            Self::Ack | Self::BlockAck(_) => FrameKind::Ack,
            Self::Data(_) => FrameKind::Data,
        }
    }

    /// The packet in a data frame, the first in an A-MPDU; `None` also for a retry of one that its
    /// receiver has already.
    pub fn packet(&self) -> Option<&T> {
        match self {
            Self::Data(mpdus) => mpdus.first()?.packets.first(),
            Self::Rts | Self::Cts | Self::Ack | Self::BlockAck(_) => None,
        }
    }

    /// The same with something else for each packet.
    pub fn map<U>(self, mut to: impl FnMut(T) -> U) -> Content<U> {
        match self {
            Self::Rts => Content::Rts,
            Self::Cts => Content::Cts,
            Self::Ack => Content::Ack,
            Self::BlockAck(block) => Content::BlockAck(block),
            Self::Data(mpdus) => {
                let mapped =
                    |SentMpdu { packets, priority, amsdu, sequence, retry, size }| SentMpdu {
                        packets: packets.into_iter().map(&mut to).collect(),
                        priority,
                        amsdu,
                        sequence,
                        retry,
                        size,
                    };
                Content::Data(mpdus.into_iter().map(mapped).collect())
            }
        }
    }
}

/// An MPDU with a packet, or with those of an A-MSDU, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMpdu<T> {
    /// The packets; none in a retry of an MPDU that its receiver has already.
    pub packets: Vec<T>,
    /// The TID in its QoS Control field.
    pub priority: UserPriority,
    /// It is an A-MSDU.
    pub amsdu: bool,
    /// The sender's number of the packet; in A-MPDUs and A-MSDUs, the number of the MPDU among
    /// those to the receiver.
    pub sequence: u32,
    /// It has been sent before.
    pub retry: bool,
    /// Length, MAC header and FCS included, delimiter and padding not.
    pub size: Bytes,
}

/// What a block ACK says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockAck {
    /// The TID of the MPDUs.
    pub priority: UserPriority,
    /// Number of the oldest MPDU in the A-MPDU that it answers.
    pub start: u32,
    /// The MPDUs of that A-MPDU that have arrived.
    pub received: Vec<u32>,
}

/// A frame received by a station that it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedFrame {
    /// Number of the frame ([`SentFrame::number`]).
    pub frame: u32,
    /// The receiving station.
    pub station: StationId,
    /// Arrival of its last bit.
    pub at: Instant,
}

/// The records of a channel's monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitored<T> {
    /// In order of time.
    pub sent: Vec<SentFrame<T>>,
    /// In order of time for each frame.
    pub received: Vec<ReceivedFrame>,
}

impl<T> Default for Monitored<T> {
    fn default() -> Self {
        Self { sent: Vec::new(), received: Vec::new() }
    }
}

/// A frame with what the simulation needs of its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<T> {
    pub(crate) from: StationId,
    pub(crate) to: Receiver,
    /// Rate of the unicast data in its exchange.
    pub(crate) rate: Rate,
    /// Time for which the medium is reserved after the frame (the Duration field, here to the
    /// nanosecond).
    pub(crate) reserves: Duration,
    /// Time on the air.
    pub(crate) duration: Duration,
    /// Length, MAC header and FCS included.
    pub(crate) size: Bytes,
    pub(crate) body: Body<T>,
}

/// The content of a frame, by its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<T> {
    Rts,
    Cts,
    Ack,
    Data {
        packet: T,
        priority: UserPriority,
        /// The sender's number of the packet.
        sequence: u32,
        /// It has been sent before.
        retry: bool,
        /// The receiver has it already; only its ACK was lost.
        delivered: bool,
        /// Time that the packet spent in the sender's queue.
        waited: Duration,
    },
    /// MPDUs that are acknowledged together, each a packet or an A-MSDU
    /// ([`Msdu`](super::aggregate::Msdu)).
    Ampdu {
        /// The first packet, unless its receiver has it already.
        first: Option<T>,
        /// Number of MPDUs.
        mpdus: usize,
        priority: UserPriority,
    },
    BlockAck,
}

impl<T> Body<T> {
    /// Time that its packet spent in the sender's queue.
    pub(crate) fn waited(&self) -> Duration {
        match self {
            Self::Data { waited, .. } => *waited,
            Self::Rts | Self::Cts | Self::Ack | Self::Ampdu { .. } | Self::BlockAck => {
                Duration::ZERO
            }
        }
    }

    pub(crate) fn kind(&self) -> FrameKind {
        match self {
            Self::Rts => FrameKind::Rts,
            Self::Cts => FrameKind::Cts,
            Self::Ack | Self::BlockAck => FrameKind::Ack,
            Self::Data { .. } | Self::Ampdu { .. } => FrameKind::Data,
        }
    }

    /// The packet, unless its receiver has it already.
    pub(crate) fn undelivered(&self) -> Option<T>
    where
        T: Copy,
    {
        match *self {
            Self::Data { packet, delivered: false, .. } => Some(packet),
            Self::Ampdu { first, .. } => first,
            _ => None,
        }
    }
}
