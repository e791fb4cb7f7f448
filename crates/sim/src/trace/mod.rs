//! Observing a run: packets as tcpdump would see them ([`PacketTap`]; [`pcap`] writes them to a
//! file), time series ([`recorder`]) and every event in a file ([`events`]).
//!
//! Observers never influence the trajectory, and cost one predictable branch where they are absent.

pub mod events;
pub mod pcap;
pub mod recorder;

use crate::packet::Packet;
use crate::scenario::NodeId;
use airtcp_core::Instant;

pub use events::EventWriter;
pub use pcap::PcapWriter;
pub use recorder::{Columns, Recorder, Series};

/// Which way a packet crossed the interface of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The node handed it to a link, and the link's queue took it.
    Sent,
    /// A link delivered it to the node.
    Received,
}

/// Sees every packet at every node, in order of simulated time, as tcpdump would on that node's
/// interfaces.
///
/// A packet that the outgoing queue refuses, or that an outage above the MAC drops before the
/// interface, does not count as sent; one that such an outage drops on its way up counts as
/// received.
pub trait PacketTap {
    /// Called once for each packet and interface it crosses.
    fn on_packet(&mut self, at: Instant, node: NodeId, direction: Direction, packet: &Packet);
}
