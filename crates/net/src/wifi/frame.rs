//! What stations send each other.

use crate::wifi::channel::{Receiver, StationId};
use airtcp_core::{Bytes, Duration};

/// Length of an RTS.
pub(crate) const RTS: Bytes = Bytes(20);
/// Length of a CTS.
pub(crate) const CTS: Bytes = Bytes(14);
/// Length of an ACK.
pub(crate) const ACK: Bytes = Bytes(14);

/// A frame with what the simulation needs of its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<T> {
    pub(crate) from: StationId,
    pub(crate) to: Receiver,
    /// How long the medium is reserved after the frame (the Duration field, here to the nanosecond).
    pub(crate) reserves: Duration,
    /// How long the frame takes.
    pub(crate) duration: Duration,
    /// Length, MAC header and FCS included.
    pub(crate) size: Bytes,
    pub(crate) body: Body<T>,
}

/// The kinds of frames.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<T> {
    Rts,
    Cts,
    Ack,
    Data {
        packet: T,
        /// Numbers the packets of a sender.
        sequence: u32,
        /// It has been sent before.
        retry: bool,
    },
}
