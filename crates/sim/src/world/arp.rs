//! Address resolution between the routing of a node and the queue of its radio, in cells that have
//! it.

use super::packets::Journey;
use super::{Component, World};
use crate::packet::{Control, Packet};
use crate::scenario::WlanId;
use crate::world::Observers;
use airtcp_core::Source;
use airtcp_core::event::DropReason;
use airtcp_net::Dropped;
use airtcp_net::wifi::{Receiver, StationId};
use airtcp_routing::NodeId;
use airtcp_routing::arp::{Action, Message};
use airtcp_routing::router::PacketId;
use std::sync::Arc;

impl World {
    /// A node sends a packet to a neighbour whose address it may have to ask for.
    pub(super) fn resolve(
        &mut self,
        channel: WlanId,
        from: StationId,
        to: StationId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let state = &mut self.channels[channel];
        let (node, neighbour) = (state.nodes[from], state.nodes[to]);
        let arp = &mut state.arps[from];
        if arp.knows(neighbour) {
            return self.enqueue(node, channel, from, Receiver::Station(to), packet, observers);
        }
        let mut actions = Vec::new();
        arp.send(packet, neighbour, &mut actions);
        self.carry_out_arp(channel, from, actions, observers);
    }

    /// If a packet is a message of ARP, the station takes it in.
    pub(super) fn take_arp(
        &mut self,
        channel: WlanId,
        station: StationId,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) -> bool {
        let Packet::Control(Control { message, .. }) = self.packets.packet(packet) else {
            return false;
        };
        let Some(&message) = message.downcast_ref::<Message>() else { return false };
        self.packets.remove(packet);
        let mut actions = Vec::new();
        self.channels[channel].arps[station].hears(&message, &mut actions);
        self.carry_out_arp(channel, station, actions, observers);
        true
    }

    fn carry_out_arp(
        &mut self,
        channel: WlanId,
        station: StationId,
        actions: Vec<Action>,
        observers: &mut Observers<'_>,
    ) {
        let node = self.channels[channel].nodes[station];
        let source = Source::Node(node.0);
        for action in actions {
            match action {
                Action::Send(packet, to) => {
                    if let Some(to) = self.channels[channel].station(to) {
                        let to = Receiver::Station(to);
                        self.enqueue(node, channel, station, to, packet, observers);
                    }
                }
                Action::Broadcast(message) => {
                    self.send_arp(channel, station, None, message, observers);
                }
                Action::Tell(to, message) => {
                    self.send_arp(channel, station, Some(to), message, observers);
                }
                Action::Drop(packet) => self.discard(packet, DropReason::Queue, source, observers),
                Action::GiveUp(neighbour, packets) => {
                    let mut packets = packets.into_iter().flatten();
                    match self.nodes[node].router {
                        Some(router) => {
                            self.tried = packets.next().map(|packet| self.give_back(packet));
                            self.taken.extend(packets);
                            self.link_failed(router, neighbour, observers);
                        }
                        None => packets.for_each(|packet| {
                            self.discard(packet, DropReason::Retries, source, observers);
                        }),
                    }
                }
            }
        }
    }

    /// Queues a message behind all packets, as ns-2 does.
    fn send_arp(
        &mut self,
        channel: WlanId,
        station: StationId,
        to: Option<NodeId>,
        message: Message,
        observers: &mut Observers<'_>,
    ) {
        let state = &self.channels[channel];
        let from = state.nodes[station];
        let receiver = match to {
            None => Receiver::Broadcast,
            Some(to) => match state.station(to) {
                Some(to) => Receiver::Station(to),
                None => return,
            },
        };
        let control = Packet::Control(Control { from, to, message: Arc::new(message) });
        let packet = self.packets.insert(from, Journey { ttl: 1, ..Journey::START }, control);
        let size = self.packets.meta(packet).size;
        let machine = &mut self.channels[channel].channel;
        match machine.send(self.now, station, receiver, packet, size) {
            Ok(()) => {
                let deadline = machine.next_deadline();
                self.wakeups.arm(self.components.id(Component::Channel(channel)), deadline);
            }
            Err(Dropped(packet, reason)) => {
                self.discard(packet, reason, Source::Node(from.0), observers);
            }
        }
    }
}
