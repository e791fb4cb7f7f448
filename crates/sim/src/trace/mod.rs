//! Observing a run: packets as tcpdump would see them ([`PacketTap`]; [`pcap`] writes them to
//! files), time series ([`recorder`]), every event in a file ([`events`]), and the whole run as a
//! moving map ([`animation`]).
//!
//! Observers never influence the trajectory, and cost one predictable branch where they are absent.

pub mod animation;
pub mod events;
pub mod link_logs;
pub mod pcap;
mod radiotap;
pub mod recorder;

use crate::packet::Packet;
use crate::scenario::{NodeId, WlanId};
#[cfg(doc)]
use airtcp_core::Ecn;
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Dscp, Duration, Instant, Source};
use airtcp_net::Departure;
use airtcp_net::wifi::{Content, SentAt};
use airtcp_routing::LinkId;
use airtcp_routing::router::{Message, PacketId};

pub use animation::Animation;
pub use events::EventWriter;
pub use link_logs::LinkLogs;
pub use pcap::{Interface, PcapWriter};
pub use recorder::{Columns, Recorder, Series};

/// Direction in which a packet crossed the interface of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The node handed it to a link, and the link's queue took it.
    Sent,
    /// A link delivered it to the node.
    Received,
}

/// A packet at the interface of a node.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<'a> {
    /// The instant of the crossing.
    pub at: Instant,
    /// The node that has the interface.
    pub node: NodeId,
    /// Out of the node, or into it.
    pub direction: Direction,
    /// The node at the other end; `None`: all in range.
    pub neighbour: Option<NodeId>,
    /// The cell, at a radio; `None`: at the end of a link.
    pub wlan: Option<WlanId>,
    /// The TTL in its IP header.
    pub ttl: u8,
    /// The DSCP in its IP header.
    pub dscp: Dscp,
    /// The number of the packet, which no other has while it is in the network, not even a copy.
    pub id: PacketId,
    /// The packet, without link framing.
    pub packet: &'a Packet,
    /// The header that the routing protocol wrote into a data packet.
    pub header: Option<&'a dyn Message>,
}

/// A frame that a station put on the air.
#[derive(Clone, Debug)]
pub struct AirFrame<'a> {
    /// The cell in which it was sent.
    pub wlan: WlanId,
    /// The frames of a cell are numbered as they are sent, from 0, modulo 2^30.
    pub number: u32,
    /// Departure of its first bit.
    pub at: Instant,
    /// Time on the air.
    pub duration: Duration,
    /// Time for which it reserves the medium after it.
    pub reserves: Duration,
    /// The sending node.
    pub from: NodeId,
    /// The receiver; `None`: all in range.
    pub to: Option<NodeId>,
    /// Its rate.
    pub sent_at: SentAt,
    /// What is in it.
    pub content: Content<Crossing<'a>>,
}

/// Sees every packet at every node, in order of simulated time; also where packets are lost and, if
/// it asks, what is on the air, and when links begin to serve packets, which is where tcpdump sees
/// those that are sent.
///
/// A packet that the outgoing queue refuses, or that an outage above the MAC drops before the
/// interface, does not count as sent; one that such an outage drops on its way up counts as
/// received.
pub trait PacketTap {
    /// Called once for each packet and interface it crosses.
    fn on_packet(&mut self, crossing: &Crossing<'_>);

    /// True to receive calls of [`PacketTap::on_service_start`].
    fn sees_service_starts(&self) -> bool {
        false
    }

    /// A link begins to serve a packet that was reported as sent, `marked` with [`Ecn::Ce`] by its
    /// queue or not. Reported in order for each link, as soon as it is known: `crossing.at` may lie
    /// ahead.
    fn on_service_start(&mut self, _crossing: &Crossing<'_>, _marked: bool) {}

    /// All that happens up to `until` has been reported, as far as the run has got.
    fn on_pause(&mut self, _until: Instant) {}

    /// A link or a node dropped a packet. `id`: as in [`Crossing`]; `None`: a mechanism had it.
    fn on_drop(
        &mut self,
        _at: Instant,
        _place: Source,
        _reason: DropReason,
        _id: Option<PacketId>,
        _packet: &Packet,
    ) {
    }

    /// True to receive calls of [`PacketTap::on_frame`] and [`PacketTap::on_reception`].
    fn sees_frames(&self) -> bool {
        false
    }

    /// A frame was sent. Frames are reported in order within a cell, at the latest when something
    /// comes of them.
    fn on_frame(&mut self, _frame: &AirFrame<'_>) {}

    /// A frame of the cell `wlan`, reported before, was received by the node `by`, which it was
    /// for.
    fn on_reception(&mut self, _wlan: WlanId, _number: u32, _by: NodeId) {}
}

/// Sees what becomes of each packet on the links, in order of simulated time for each link.
pub trait LinkTap {
    /// A packet of this size was offered to a link; `taken`: it was not refused.
    fn on_offer(&mut self, at: Instant, link: LinkId, size: Bytes, taken: bool);
    /// A packet that was taken has left the server, or was dropped.
    fn on_departure(&mut self, link: LinkId, departure: Departure);
}

/// Each of them, in turn.
impl PacketTap for Vec<&mut dyn PacketTap> {
    fn on_packet(&mut self, crossing: &Crossing<'_>) {
        self.iter_mut().for_each(|tap| tap.on_packet(crossing));
    }
    fn sees_service_starts(&self) -> bool {
        self.iter().any(|tap| tap.sees_service_starts())
    }
    fn on_service_start(&mut self, crossing: &Crossing<'_>, marked: bool) {
        self.iter_mut().for_each(|tap| tap.on_service_start(crossing, marked));
    }
    fn on_pause(&mut self, until: Instant) {
        self.iter_mut().for_each(|tap| tap.on_pause(until));
    }
    fn on_drop(
        &mut self,
        at: Instant,
        place: Source,
        reason: DropReason,
        id: Option<PacketId>,
        packet: &Packet,
    ) {
        self.iter_mut().for_each(|tap| tap.on_drop(at, place, reason, id, packet));
    }
    fn sees_frames(&self) -> bool {
        self.iter().any(|tap| tap.sees_frames())
    }
    fn on_frame(&mut self, frame: &AirFrame<'_>) {
        self.iter_mut().for_each(|tap| tap.on_frame(frame));
    }
    fn on_reception(&mut self, wlan: WlanId, number: u32, by: NodeId) {
        self.iter_mut().for_each(|tap| tap.on_reception(wlan, number, by));
    }
}
