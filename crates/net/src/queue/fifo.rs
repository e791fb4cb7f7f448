//! The list of packets under every discipline.

use super::Waiting;
use airtcp_core::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// Packets in order of arrival, and their bytes.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: Bytes,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: Bytes::ZERO }
    }
}

impl<T> Fifo<T> {
    pub(crate) fn push(&mut self, packet: Waiting<T>) {
        self.bytes += packet.meta.size;
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting<T>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.meta.size;
        Some(packet)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// True if a packet of this flow is among them.
    pub(crate) fn holds(&self, flow: u32) -> bool {
        self.packets.iter().any(|packet| packet.meta.flow == flow)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Time for which the first packet has waited; zero without packets.
    pub(crate) fn delay(&self, now: Instant) -> Duration {
        self.packets.front().map_or(Duration::ZERO, |first| first.sojourn(now))
    }
}
