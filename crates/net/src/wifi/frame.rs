//! What stations send each other.

use crate::wifi::station::{Receiver, StationId};
use airtcp_core::{Bytes, Duration, Instant};

/// Length of an RTS (IEEE Std 802.11-1999 §7.2.1.1).
pub(crate) const RTS: Bytes = Bytes(20);
/// Length of a CTS (§7.2.1.2).
pub(crate) const CTS: Bytes = Bytes(14);
/// Length of an ACK (§7.2.1.3).
pub(crate) const ACK: Bytes = Bytes(14);

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Acknowledgement.
    Ack,
    /// A packet.
    Data,
}

/// A frame put on the air, as a monitor would record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// When its first bit left.
    pub at: Instant,
    /// How long it lasted.
    pub duration: Duration,
    /// The sender.
    pub from: StationId,
    /// The receiver.
    pub to: Receiver,
    /// What it was.
    pub kind: FrameKind,
    /// Length, MAC header and FCS included.
    pub size: Bytes,
}

/// A frame with what the simulation needs of its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<T> {
    pub(crate) from: StationId,
    pub(crate) to: Receiver,
    /// How long the medium is reserved after the frame (the Duration field, here to the
    /// nanosecond).
    pub(crate) reserves: Duration,
    /// How long the frame lasts.
    pub(crate) duration: Duration,
    /// Length, MAC header and FCS included.
    pub(crate) size: Bytes,
    pub(crate) body: Body<T>,
}

/// What is in a frame, by its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<T> {
    Rts,
    Cts,
    Ack,
    Data {
        packet: T,
        /// The sender's number of the packet.
        sequence: u32,
        /// It has been sent before.
        retry: bool,
        /// The receiver has it already; only its ACK was lost.
        delivered: bool,
        /// How long the packet waited in the sender's queue.
        waited: Duration,
    },
}

impl<T> Body<T> {
    /// How long its packet waited in the sender's queue.
    pub(crate) fn waited(&self) -> Duration {
        match self {
            Self::Data { waited, .. } => *waited,
            Self::Rts | Self::Cts | Self::Ack => Duration::ZERO,
        }
    }

    pub(crate) fn kind(&self) -> FrameKind {
        match self {
            Self::Rts => FrameKind::Rts,
            Self::Cts => FrameKind::Cts,
            Self::Ack => FrameKind::Ack,
            Self::Data { .. } => FrameKind::Data,
        }
    }
}
